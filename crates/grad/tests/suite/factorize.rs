//! Derivatives of matrix factorizations and of functions that use them.

use crate::common::{check, check_twice, check_with, samples};
use nxla_expr::build::Norm;
use nxla_expr::{ExprId, Graph, Result};
use nxla_tensor::{DType, HostTensor, Scalar};

fn uniform(shape: &[usize], seed: u64) -> HostTensor {
    samples(shape, (-1.0, 1.0), seed)
}

/// Checks the gradient of all results together.
fn check_parts(
    inputs: &[HostTensor],
    build: impl Fn(&mut Graph, &[ExprId]) -> Result<Vec<ExprId>>,
) {
    check_with(inputs, 5e-7, |graph, x| {
        let parts = build(graph, x).unwrap();
        concatenate(graph, &parts)
    });
}

/// Concatenates all elements to a vector.
fn concatenate(graph: &mut Graph, parts: &[ExprId]) -> ExprId {
    let mut flat = Vec::new();
    for &part in parts {
        let parts = if graph.dtype(part).is_complex() {
            vec![graph.real(part).unwrap(), graph.imag(part).unwrap()]
        } else {
            vec![part]
        };
        flat.extend(parts.into_iter().map(|part| graph.flatten(part, None).unwrap()));
    }
    graph.concatenate(&flat, 0).unwrap()
}

/// `x + i y`, from real inputs.
fn complex(graph: &mut Graph, x: ExprId, y: ExprId) -> Result<ExprId> {
    let i = graph.scalar_constant(Scalar::Complex(0.0, 1.0), DType::C128)?;
    let imaginary = graph.multiply(i, y)?;
    graph.add(x, imaginary)
}

/// Returns the Hermitian part, so that a change of one element keeps the matrix Hermitian.
fn hermitian(graph: &mut Graph, x: ExprId) -> Result<ExprId> {
    let adjoint = graph.adjoint(x)?;
    graph.add(x, adjoint)
}

#[test]
fn lu() {
    let parts = |graph: &mut Graph, a: ExprId| {
        let (_, l, u) = graph.lu(a)?;
        Ok(vec![l, u])
    };
    check_parts(&[uniform(&[3, 3], 1)], |graph, x| parts(graph, x[0]));
    check_parts(&[uniform(&[2, 4, 4], 2)], |graph, x| parts(graph, x[0]));
    check_parts(&[uniform(&[3, 3], 1), uniform(&[3, 3], 4)], |graph, x| {
        let a = complex(graph, x[0], x[1])?;
        parts(graph, a)
    });
}

#[test]
fn qr() {
    for shape in [&[3, 3][..], &[4, 2], &[2, 4], &[2, 3, 2]] {
        check_parts(&[uniform(shape, 3)], |graph, x| {
            let (q, r) = graph.qr(x[0], false)?;
            Ok(vec![q, r])
        });
    }
    check_parts(&[uniform(&[4, 2], 1), uniform(&[4, 2], 4)], |graph, x| {
        let a = complex(graph, x[0], x[1])?;
        let (q, r) = graph.qr(a, false)?;
        Ok(vec![q, r])
    });
    // The matrix determines only the span of the additional columns.
    check_parts(&[uniform(&[4, 2], 1)], |graph, x| {
        let (q, r) = graph.qr(x[0], true)?;
        let rest = graph.slice_along_axis(q, 2, 2, 1, 1)?;
        let projection = graph.dot_general(rest, &[1], &[], rest, &[1], &[])?;
        let first = graph.slice_along_axis(q, 0, 2, 1, 1)?;
        Ok(vec![projection, first, r])
    });
}

#[test]
fn eigh() {
    check_parts(&[uniform(&[2, 4, 4], 1)], |graph, x| {
        let a = hermitian(graph, x[0])?;
        let (w, v) = graph.eigh(a)?;
        // The signs of the eigenvectors are not determined.
        let squares = graph.multiply(v, v)?;
        Ok(vec![w, squares])
    });
    check_parts(&[uniform(&[3, 3], 1), uniform(&[3, 3], 4)], |graph, x| {
        let a = complex(graph, x[0], x[1])?;
        let a = hermitian(graph, a)?;
        let (w, v) = graph.eigh(a)?;
        let size = graph.abs(v)?;
        let exponential = graph.exp(w)?;
        let scaled = graph.multiply(v, exponential)?;
        let adjoint = graph.adjoint(v)?;
        let function = graph.dot(scaled, adjoint)?;
        Ok(vec![w, size, function])
    });
}

/// Returns values that do not depend on the phases of a decomposition.
fn invariants(graph: &mut Graph, a: ExprId, full: bool) -> Result<Vec<ExprId>> {
    let (u, s, vh) = graph.svd(a, full)?;
    let count = graph.shape(s)[0] as i64;
    let first = graph.slice_along_axis(u, 0, count as usize, 1, 1)?;
    let last = graph.slice_along_axis(vh, 0, count as usize, 0, 1)?;
    let squares = graph.multiply(s, s)?;
    let scaled = graph.multiply(first, squares)?;
    let mut parts = vec![s, graph.abs(first)?, graph.abs(last)?, graph.dot(scaled, last)?];
    for (x, axis) in [(u, 1), (vh, 0)] {
        let (size, other) = (graph.shape(x)[axis], graph.shape(x)[1 - axis]);
        if size as i64 > count && other > 0 {
            let axis = axis as i64;
            let rest = graph.slice_along_axis(x, count, size - count as usize, axis, 1)?;
            let conjugate = if graph.dtype(x).is_complex() { graph.conjugate(rest)? } else { rest };
            parts.push(graph.dot_general(rest, &[axis], &[], conjugate, &[axis], &[])?);
        }
    }
    Ok(parts)
}

#[test]
fn svd() {
    for shape in [&[3, 3][..], &[4, 2], &[2, 4]] {
        for full in [false, true] {
            check_parts(&[uniform(shape, 3)], |graph, x| invariants(graph, x[0], full));
            check_parts(&[uniform(shape, 3), uniform(shape, 5)], |graph, x| {
                let a = complex(graph, x[0], x[1])?;
                invariants(graph, a, full)
            });
        }
    }
    check_parts(&[uniform(&[2, 3, 2], 3)], |graph, x| {
        let (_, s, _) = graph.svd(x[0], true)?;
        Ok(vec![s])
    });
}

#[test]
fn systems() {
    check_twice(&[uniform(&[2, 3, 3], 1), uniform(&[2, 3, 2], 2)], |graph, x| {
        graph.solve(x[0], x[1]).unwrap()
    });
    check(&[uniform(&[3, 3], 1), uniform(&[3], 2)], |graph, x| graph.solve(x[0], x[1]).unwrap());
    check_parts(&[uniform(&[3, 3], 1), uniform(&[3, 3], 4)], |graph, x| {
        let a = complex(graph, x[0], x[1])?;
        let inverse = graph.invert(a)?;
        Ok(vec![graph.solve(a, x[0])?, inverse, graph.matrix_power(a, -2)?])
    });
    check_twice(&[uniform(&[3, 3], 1)], |graph, x| graph.invert(x[0]).unwrap());
}

#[test]
fn determinants() {
    for size in 1..=5 {
        check_twice(&[uniform(&[2, size, size], 1)], |graph, x| graph.determinant(x[0]).unwrap());
        check_parts(&[uniform(&[size, size], 1)], |graph, x| {
            let (sign, logarithm) = graph.slogdet(x[0])?;
            Ok(vec![graph.reshape(sign, [1])?, graph.reshape(logarithm, [1])?])
        });
    }
    check_parts(&[uniform(&[4, 4], 1), uniform(&[4, 4], 4)], |graph, x| {
        let a = complex(graph, x[0], x[1])?;
        let (sign, logarithm) = graph.slogdet(a)?;
        let determinant = graph.determinant(a)?;
        [sign, logarithm, determinant].iter().map(|&part| graph.reshape(part, [1])).collect()
    });
    // The determinant is a polynomial of the elements, so singular matrices have a derivative too.
    check(&[HostTensor::zeros(DType::F64, [2, 2]).unwrap()], |graph, x| {
        graph.determinant(x[0]).unwrap()
    });
}

#[test]
fn pseudo_inverses() {
    for shape in [&[3, 3][..], &[4, 2], &[2, 4], &[2, 3, 2]] {
        check(&[uniform(shape, 3)], |graph, x| graph.pinv(x[0], None).unwrap());
    }
    check_parts(&[uniform(&[3, 2], 1), uniform(&[3, 2], 4)], |graph, x| {
        let a = complex(graph, x[0], x[1])?;
        Ok(vec![graph.pinv(a, None)?])
    });
    // The singular values of an identity matrix are equal, so its singular vectors are not
    // determined.
    let eye = crate::common::tensor(&[2, 2], &[1.0, 0.0, 0.0, 1.0]);
    check(&[eye], |graph, x| graph.pinv(x[0], None).unwrap());
    check(&[uniform(&[4, 2], 1), uniform(&[4, 3], 2)], |graph, x| {
        graph.least_squares(x[0], x[1], None).unwrap()
    });
    check(&[uniform(&[4, 2], 1), uniform(&[4], 2)], |graph, x| {
        graph.least_squares(x[0], x[1], None).unwrap()
    });
}

#[test]
fn norms_and_products() {
    for norm in [Norm::Power(2.0), Norm::Power(-2.0), Norm::Nuclear, Norm::Power(1.0), Norm::Euclid]
    {
        check(&[uniform(&[3, 2, 2], 3)], |graph, x| {
            graph.norm(x[0], norm, Some(&[0, 2]), false).unwrap()
        });
    }
    check(&[uniform(&[5], 3)], |graph, x| graph.norm(x[0], Norm::Power(2.5), None, false).unwrap());
    check_twice(&[uniform(&[2, 3, 3], 3)], |graph, x| graph.matrix_power(x[0], 5).unwrap());
    check(&[uniform(&[2, 3], 3), uniform(&[3], 4)], |graph, x| {
        graph.cross(x[0], x[1], -1).unwrap()
    });
    check(&[uniform(&[2, 3, 4], 3)], |graph, x| graph.trace(x[0], 1).unwrap());
}

#[test]
fn second_derivatives() {
    check_twice(&[uniform(&[3, 3], 1)], |graph, x| {
        let a = hermitian(graph, x[0]).unwrap();
        graph.eigh(a).unwrap().0
    });
    check_twice(&[uniform(&[3, 2], 1)], |graph, x| {
        let (q, r) = graph.qr(x[0], false).unwrap();
        concatenate(graph, &[q, r])
    });
    check_twice(&[uniform(&[3, 3], 1)], |graph, x| {
        let (_, l, u) = graph.lu(x[0]).unwrap();
        concatenate(graph, &[l, u])
    });
    // Phase-independent values of tall, wide and square matrices. The matrix determines only the
    // span of the columns without a singular value, which the last values use.
    for (shape, full) in [(&[3, 3][..], false), (&[3, 2], true), (&[2, 3], true)] {
        check_twice(&[uniform(shape, 3)], |graph, x| {
            let parts = invariants(graph, x[0], full).unwrap();
            concatenate(graph, &parts)
        });
    }
}

/// Values that are smooth at equal singular values: of a rotation, and of a stretched rotation.
#[test]
fn repeated_singular_values() {
    let rotation = [0.6, -0.8, 0.0, 0.8, 0.6, 0.0, 0.0, 0.0, 1.0];
    let stretched: Vec<f64> =
        rotation.iter().enumerate().map(|(at, x)| x * [2.0, 2.0, 0.5][at % 3]).collect();
    for elements in [&rotation[..], &stretched] {
        let a = crate::common::tensor(&[3, 3], elements);
        // The gradient of the sum of the singular values is the nearest rotation.
        check_twice(std::slice::from_ref(&a), |graph, x| {
            let (_, s, _) = graph.svd(x[0], false).unwrap();
            graph.sum(s, None, false).unwrap()
        });
        check(&[a], |graph, x| {
            let (u, _, vh) = graph.svd(x[0], false).unwrap();
            graph.dot(u, vh).unwrap()
        });
    }
}
