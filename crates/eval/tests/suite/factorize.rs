//! The product of the factors equals the matrix.

use std::slice::from_ref;

use nxla_eval::evaluate;
use nxla_expr::{ExprId, Factorization, Graph, Op, Result, TensorType, decompose};
use nxla_tensor::{DType, HostTensor, Shape};

use super::common::{evaluate_all, evaluate_op, program_of};

/// Collects the largest errors: of the product, of orthonormal factors, and of diagonals and
/// triangles.
struct Check<'g> {
    graph: &'g mut Graph,
    a: ExprId,
    wide: DType,
    rank: i64,
    errors: Vec<ExprId>,
}

impl Check<'_> {
    fn multiply(&mut self, x: ExprId, y: ExprId) -> Result<ExprId> {
        let batch: Vec<i64> = (0..self.rank - 2).collect();
        self.graph.dot_general(x, &[self.rank - 1], &batch, y, &[self.rank - 2], &batch)
    }

    fn push_error(&mut self, x: ExprId, y: ExprId) -> Result<()> {
        let difference = self.graph.subtract(x, y)?;
        let size = self.graph.abs(difference)?;
        self.errors.push(self.graph.reduce_max(size, None, false)?);
        Ok(())
    }

    fn expect_operand(&mut self, product: ExprId) -> Result<()> {
        let target = self.graph.as_type(self.a, self.wide)?;
        self.push_error(product, target)
    }

    fn unitary(&mut self, x: ExprId) -> Result<()> {
        let adjoint = self.graph.adjoint(x)?;
        let product = self.multiply(adjoint, x)?;
        let side = *self.graph.shape(product).last().unwrap();
        let eye = self.graph.eye([side, side], self.wide)?;
        self.push_error(product, eye)
    }

    fn lu(&mut self) -> Result<()> {
        let (p, l, u) = self.graph.lu(self.a)?;
        let p = self.graph.as_type(p, self.wide)?;
        let (l, u) = (self.graph.as_type(l, self.wide)?, self.graph.as_type(u, self.wide)?);
        let lu = self.multiply(l, u)?;
        let product = self.multiply(p, lu)?;
        self.expect_operand(product)
    }

    fn qr(&mut self, complete: bool) -> Result<()> {
        let (q, r) = self.graph.qr(self.a, complete)?;
        let (q, r) = (self.graph.as_type(q, self.wide)?, self.graph.as_type(r, self.wide)?);
        let product = self.multiply(q, r)?;
        self.expect_operand(product)?;
        self.unitary(q)?;
        let diagonal = self.graph.take_diagonal(r, 0)?;
        let size = self.graph.abs(diagonal)?;
        self.push_error(diagonal, size)?;
        let (lower, zero) = (self.graph.tril(r, -1)?, self.graph.zero_like(r)?);
        self.push_error(lower, zero)
    }

    fn eigh(&mut self) -> Result<()> {
        let (w, v) = self.graph.eigh(self.a)?;
        let v = self.graph.as_type(v, self.wide)?;
        let sorted = self.graph.sort(w, -1, false, false)?;
        self.push_error(w, sorted)?;
        let w = self.graph.new_axis(w, -2, None)?;
        let scaled = self.graph.multiply(v, w)?;
        let adjoint = self.graph.adjoint(v)?;
        let product = self.multiply(scaled, adjoint)?;
        self.expect_operand(product)?;
        self.unitary(v)
    }

    fn svd(&mut self, full: bool) -> Result<()> {
        let (u, s, vh) = self.graph.svd(self.a, full)?;
        let (u, vh) = (self.graph.as_type(u, self.wide)?, self.graph.as_type(vh, self.wide)?);
        let sorted = self.graph.sort(s, -1, true, false)?;
        self.push_error(s, sorted)?;
        let count = *self.graph.shape(s).last().unwrap();
        let first = self.graph.slice_along_axis(u, 0, count, -1, 1)?;
        let last = self.graph.slice_along_axis(vh, 0, count, -2, 1)?;
        let s = self.graph.new_axis(s, -2, None)?;
        let scaled = self.graph.multiply(first, s)?;
        let product = self.multiply(scaled, last)?;
        self.expect_operand(product)?;
        let v = self.graph.adjoint(vh)?;
        self.unitary(u)?;
        self.unitary(v)
    }
}

fn factorization_errors(graph: &mut Graph, a: ExprId, kind: Factorization) -> Result<Vec<ExprId>> {
    let wide = if graph.dtype(a).is_complex() { DType::C128 } else { DType::F64 };
    let rank = graph.shape(a).rank() as i64;
    let mut check = Check { graph, a, wide, rank, errors: Vec::new() };
    match kind {
        Factorization::Lu => check.lu(),
        Factorization::Qr { complete } => check.qr(complete),
        Factorization::Eigh => check.eigh(),
        Factorization::Svd { full } => check.svd(full),
    }?;
    Ok(check.errors)
}

/// Unordered numbers between -1 and 1.
fn samples(dtype: DType, shape: &[usize], hermitian: bool) -> HostTensor {
    let size: usize = shape.iter().product();
    let noise = |index: usize| ((index as f64 + 1.0).sin() * 43_758.545_3).fract();
    let parts: Vec<_> = (0..size).map(|i| (noise(i), noise(i + size))).collect();
    let wide = HostTensor::from_slice(
        &parts.iter().map(|&(re, im)| nxla_tensor::Complex::new(re, im)).collect::<Vec<_>>(),
        Shape::from(shape),
    )
    .unwrap();
    let tensor = if dtype.is_complex() {
        wide.cast(dtype)
    } else {
        let real: Vec<f64> = parts.iter().map(|&(re, _)| re).collect();
        HostTensor::from_slice(&real, Shape::from(shape)).unwrap().cast(dtype)
    };
    if !hermitian {
        return tensor;
    }
    evaluate_op(&[tensor], |graph, x| {
        let adjoint = graph.adjoint(x[0])?;
        graph.add(x[0], adjoint)
    })
}

fn check(a: &HostTensor, kind: Factorization, composed: bool) {
    let mut program = program_of(from_ref(a), |graph, x| factorization_errors(graph, x[0], kind));
    if composed {
        program = decompose(&program, |_, _| false).unwrap().unwrap();
    }
    let allowed = match a.dtype() {
        DType::F64 | DType::C128 => 1e-12,
        DType::F32 | DType::C64 => 1e-5,
        _ => 2e-2,
    };
    for (index, error) in evaluate(&program, vec![a.clone()]).unwrap().iter().enumerate() {
        let error = error.get(0).as_f64();
        assert!(error <= allowed, "{kind:?} of {}{}: check {index}: {error}", a.dtype(), a.shape());
    }
}

fn check_all(composed: bool) {
    for dtype in [DType::F32, DType::F64, DType::C64, DType::C128, DType::F16] {
        for shape in [&[3, 3][..], &[1, 1], &[5, 3], &[3, 5], &[2, 4, 4], &[2, 2, 2, 3], &[6, 6]] {
            let is_square = shape[shape.len() - 1] == shape[shape.len() - 2];
            for &kind in Factorization::ALL {
                if is_square || matches!(kind, Factorization::Qr { .. } | Factorization::Svd { .. })
                {
                    check(&samples(dtype, shape, kind == Factorization::Eigh), kind, composed);
                }
            }
        }
    }
}

#[test]
fn kernels_factorize_matrices() {
    check_all(false);
}

#[test]
fn compositions_factorize_matrices() {
    check_all(true);
}

#[test]
fn rank_deficient_matrices_are_factorized() {
    let ones = HostTensor::from_slice(&[1.0_f64; 12], [4, 3]).unwrap();
    let zeros = HostTensor::zeros(DType::F64, [3, 3]).unwrap();
    let twice = HostTensor::from_slice(&[0.0, 1.0, 1.0, 0.0, 2.0, 2.0, 0.0, 0.0, 1.0], [3, 3]);
    for composed in [false, true] {
        for &kind in Factorization::ALL {
            check(&zeros, kind, composed);
            match kind {
                Factorization::Lu => check(twice.as_ref().unwrap(), kind, composed),
                Factorization::Eigh => {}
                Factorization::Qr { .. } | Factorization::Svd { .. } => {
                    check(&ones, kind, composed);
                }
            }
        }
    }
}

#[test]
fn large_matrices_are_factorized() {
    for &kind in Factorization::ALL {
        let hermitian = kind == Factorization::Eigh;
        check(&samples(DType::F64, &[40, 40], hermitian), kind, false);
        check(&samples(DType::F64, &[40, 40], hermitian), kind, true);
    }
}

/// The eigenvalues or singular values of a program that reads the vectors too, or the values alone.
fn values_of(a: &HostTensor, kind: Factorization, alone: bool) -> Vec<f64> {
    let values = usize::from(kind != Factorization::Eigh);
    let read = if alone { vec![values] } else { vec![values, 1 - values] };
    let results = evaluate_all(from_ref(a), |graph, x| {
        let parts = graph.make(Op::Factorize(kind), x)?;
        read.iter().map(|&part| graph.elem(parts, part)).collect()
    });
    results[0].cast(DType::F64).to_vec().unwrap()
}

/// If only the values are read, the kernels do not compute vectors.
#[test]
fn values_alone_equal_values_with_vectors() {
    let check = |a: &HostTensor, kind: Factorization, precision: f64| {
        let (alone, all) = (values_of(a, kind, true), values_of(a, kind, false));
        let largest = all.iter().fold(0.0, |largest: f64, x| largest.max(x.abs()));
        assert_eq!(alone.len(), all.len());
        for (x, y) in alone.iter().zip(&all) {
            let is_close = (x - y).abs() <= precision * largest || (x.is_nan() && y.is_nan());
            assert!(is_close, "{kind:?} of {}{}: {x}, {y}", a.dtype(), a.shape());
        }
    };
    let (eigh, svd) = (Factorization::Eigh, Factorization::Svd { full: true });
    for dtype in [DType::F32, DType::F64, DType::C64, DType::C128, DType::F16] {
        let precision = if dtype.bits() < 64 { 1e-3 } else { 1e-6 };
        for shape in [&[1, 1][..], &[2, 2], &[2, 5, 5]] {
            check(&samples(dtype, shape, true), eigh, precision);
            check(&samples(dtype, shape, true), svd, precision);
        }
        for shape in [&[9, 2][..], &[2, 1, 2, 9], &[5, 4], &[1, 3]] {
            check(&samples(dtype, shape, false), svd, precision);
        }
    }
    // The algorithms of faer divide matrices of this size.
    let large = samples(DType::F64, &[130, 130], true);
    let mut huge = samples(DType::F64, &[4, 4], true).to_vec::<f64>().unwrap();
    huge.iter_mut().for_each(|x| *x *= 1e300);
    let huge_then_nan = huge.iter().copied().chain([f64::NAN; 16]).collect::<Vec<_>>();
    let huge_then_nan = HostTensor::from_slice(&huge_then_nan, [2, 4, 4]).unwrap();
    for kind in [eigh, svd] {
        check(&large, kind, 1e-12);
        check(&huge_then_nan, kind, 1e-12);
    }
}

#[test]
fn nan_does_not_spread_to_other_matrices() {
    let mut numbers = vec![1.0_f64, 2.0, 3.0, 5.0, 1.0, 2.0, 3.0, 5.0];
    numbers[1] = f64::NAN;
    let a = HostTensor::from_slice(&numbers, [2, 2, 2]).unwrap();
    for &kind in Factorization::ALL {
        let part = evaluate_op(from_ref(&a), |graph, x| {
            let parts = graph.make(Op::Factorize(kind), x)?;
            graph.elem(parts, 0)
        });
        let values = part.to_vec::<f64>().unwrap();
        let (first, second) = values.split_at(values.len() / 2);
        assert!(first.iter().all(|x| x.is_nan()), "{kind:?}");
        assert!(second.iter().all(|x| x.is_finite()), "{kind:?}");
    }
}

#[test]
fn non_matrices_are_rejected() {
    let mut graph = Graph::new();
    let a = graph.parameter(0, TensorType::new(DType::F32, [3]));
    let error = graph.make(Op::Factorize(Factorization::Lu), &[a]).unwrap_err();
    let expected = "lu: operand: expected matrices in the last two axes; got f32[3]";
    assert_eq!(error.to_string(), expected);
    let a = graph.parameter(0, TensorType::new(DType::F32, [2, 3]));
    let error = graph.make(Op::Factorize(Factorization::Eigh), &[a]).unwrap_err();
    let expected = "eigh: operand: expected square matrices in the last two axes; got f32[2][3]";
    assert_eq!(error.to_string(), expected);
}
