//! Fourier transforms, triangular solves and factorizations of well-conditioned matrices.
//!
//! Phases of factorizations may differ between backends, so the tests compare quantities that do not
//! depend on them.

use nxla::graph::{ExprId, Factorization, Fft, Graph, Op, Result, Transform, TriangularSolve};
use nxla::{DType, HostTensor, Scalar};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::case::Case;
use crate::tolerance;
use crate::values::{Numbers, RANKS, host, number, shape, tensor};

pub(crate) fn strategy(op: &Op, dtype: DType) -> BoxedStrategy<Case> {
    match op {
        Op::Fft(fft) => transform(op, fft.inverse, dtype),
        Op::TriangularSolve(_) => triangular_solve(op, dtype),
        Op::Cholesky => matrices(dtype, Form::Definite, false)
            .prop_map(|a| Case::new(vec![a], (), |graph, a| graph.cholesky(a[0])))
            .boxed(),
        Op::Factorize(Factorization::Lu) => matrices(dtype, Form::Dominant, false)
            .prop_map(|a| {
                Case::of_many(vec![a], (), |graph, a| {
                    let (p, l, u) = graph.lu(a[0])?;
                    Ok(vec![p, l, u])
                })
            })
            .boxed(),
        Op::Factorize(Factorization::Qr { .. }) => qr(dtype),
        Op::Factorize(Factorization::Eigh) => matrices(dtype, Form::Definite, false)
            .prop_map(|a| {
                Case::of_many(vec![a], (), |graph, a| {
                    let (w, v) = graph.eigh(a[0])?;
                    let adjoint = graph.adjoint(v)?;
                    Ok(vec![w, product(graph, v, w, adjoint)?])
                })
            })
            .boxed(),
        Op::Factorize(Factorization::Svd { .. }) => svd(dtype),
        op @ nxla::graph::outside!(linalg) => unreachable!("{} is of another family", op.name()),
    }
}

fn transform(op: &Op, inverse: bool, dtype: DType) -> BoxedStrategy<Case> {
    let numbers = tolerance::of(op, dtype).numbers;
    (shape(1..=*RANKS.end()), any::<Index>(), 1..=9_usize)
        .prop_flat_map(move |(sizes, axis, length)| {
            let axis = axis.index(sizes.len());
            (tensor(dtype, &sizes, numbers), Just(Fft { inverse, length, axis }))
        })
        .prop_map(|(x, fft)| Case::new(vec![x], fft, move |graph, x| graph.make(Op::Fft(fft), x)))
        .boxed()
}

/// Kinds of matrices; each kind is well conditioned in every dtype.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    /// The diagonal outweighs the rest of its row.
    Dominant,
    /// Dominant and Hermitian.
    Definite,
}

/// Batches of matrices of up to 3 rows and columns.
fn matrices(dtype: DType, form: Form, oblong: bool) -> BoxedStrategy<HostTensor> {
    let batch = shape(0..=RANKS.end() - 2);
    let sides = if oblong {
        (1..=3_usize, 1..=3_usize).boxed()
    } else {
        (1..=3_usize).prop_map(|side| (side, side)).boxed()
    };
    (batch, sides)
        .prop_flat_map(move |(batch, (rows, columns))| {
            let count: usize = batch.iter().product();
            let sizes: Vec<usize> = batch.iter().copied().chain([rows, columns]).collect();
            (Just(sizes), vec(matrix(dtype, form, rows, columns), count))
        })
        .prop_map(move |(sizes, matrices)| host(dtype, &sizes[..], &matrices.concat()))
        .boxed()
}

fn matrix(dtype: DType, form: Form, rows: usize, columns: usize) -> BoxedStrategy<Vec<Scalar>> {
    // The range of small integers does not allow larger numbers.
    let (diagonal, other) = match dtype {
        DType::Pred | DType::S2 => (1.0, 0.0),
        DType::U2 => (3.0, 1.0),
        DType::U4 | DType::S4 => (7.0, 1.0),
        _ => (9.0, 2.0),
    };
    let low = if dtype.is_unsigned() || dtype.is_pred() { 0.0 } else { -other };
    vec(number(dtype, Numbers::Within(low, other)), rows * columns)
        .prop_map(move |mut elements| {
            for row in 0..rows {
                for column in 0..columns {
                    let at = row * columns + column;
                    if row == column {
                        elements[at] = Scalar::Float(diagonal).cast(dtype);
                    } else if form == Form::Definite && row < column {
                        let (re, im) = elements[column * columns + row].parts();
                        elements[at] = Scalar::Complex(re, -im).cast(dtype);
                    }
                }
            }
            elements
        })
        .boxed()
}

fn triangular_solve(op: &Op, dtype: DType) -> BoxedStrategy<Case> {
    let numbers = tolerance::of(op, dtype).numbers;
    let transforms = vec![Transform::None, Transform::Transpose, Transform::Conjugate];
    let attributes = (any::<(bool, bool)>(), select(transforms));
    (matrices(dtype, Form::Dominant, false), attributes, prop::option::of(0..=3_usize))
        .prop_flat_map(move |(a, ((lower, left_side), transform), width)| {
            let [batch @ .., side, _] = a.shape().as_slice() else { panic!("matrices") };
            let mut sizes = batch.to_vec();
            match width {
                None => sizes.push(*side),
                Some(width) if left_side => sizes.extend([*side, width]),
                Some(width) => sizes.extend([width, *side]),
            }
            let b = tensor(dtype, &sizes, numbers);
            (Just(a), b, Just(TriangularSolve { lower, left_side, transform }))
        })
        .prop_map(|(a, b, attributes)| {
            Case::new(vec![a, b], attributes, move |graph, x| {
                graph.make(Op::TriangularSolve(attributes), x)
            })
        })
        .boxed()
}

fn qr(dtype: DType) -> BoxedStrategy<Case> {
    (matrices(dtype, Form::Dominant, true), any::<bool>())
        .prop_map(|(a, complete)| {
            let [.., rows, columns] = *a.shape().as_slice() else { panic!("matrices") };
            Case::of_many(vec![a], complete, move |graph, a| {
                let (q, r) = graph.qr(a[0], complete)?;
                // The matrix does not determine the additional columns of a square `q`.
                let kept = i64::try_from(rows.min(columns)).unwrap();
                let q = if complete {
                    graph.slice_along_axis(q, 0, usize::try_from(kept).unwrap(), -1, 1)?
                } else {
                    q
                };
                Ok(vec![q, r])
            })
        })
        .boxed()
}

fn svd(dtype: DType) -> BoxedStrategy<Case> {
    (matrices(dtype, Form::Dominant, true), any::<bool>())
        .prop_map(|(a, full)| {
            let [.., rows, columns] = *a.shape().as_slice() else { panic!("matrices") };
            let values = rows.min(columns);
            Case::of_many(vec![a], full, move |graph, a| {
                let (u, s, vh) = graph.svd(a[0], full)?;
                let u = graph.slice_along_axis(u, 0, values, -1, 1)?;
                let vh = graph.slice_along_axis(vh, 0, values, -2, 1)?;
                Ok(vec![s, product(graph, u, s, vh)?])
            })
        })
        .boxed()
}

/// `left diag(values) right`, which is determined where the factors are not.
fn product(graph: &mut Graph, left: ExprId, values: ExprId, right: ExprId) -> Result<ExprId> {
    let row = graph.new_axis(values, -2, None)?;
    let scaled = graph.multiply(left, row)?;
    let rank = i64::try_from(graph.shape(scaled).rank()).unwrap();
    let batch: Vec<i64> = (0..rank - 2).collect();
    graph.dot_general(scaled, &[-1], &batch, right, &[-2], &batch)
}
