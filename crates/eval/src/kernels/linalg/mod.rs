//! Fourier transforms, factorizations and triangular systems, batched over leading axes and
//! computed in the dtype of the operands.

#[cfg(feature = "linalg")]
mod eigen;
mod factorize;
#[cfg(feature = "fft")]
mod fft;
mod field;
#[cfg(not(feature = "fft"))]
mod no_fft;
mod systems;
mod triangular;

use nxla_expr::{Op, Type};

use crate::context::{Args, Cx, Fault, Results, one};

#[cfg(feature = "linalg")]
pub use eigen::eigen;
#[cfg(not(feature = "fft"))]
use no_fft as fft;
pub(crate) use systems::{is_small, solve};
pub(crate) use triangular::Triangle;

/// Computes the results of an op; `is_read` returns whether a step reads a result.
pub(crate) fn evaluate(
    cx: Cx<'_>,
    op: &Op,
    ty: &Type,
    is_read: impl Fn(usize) -> bool,
    args: &mut Args<'_>,
) -> Result<Results, Fault> {
    let result = &ty.parts()[0];
    match op {
        Op::Fft(attributes) => fft::fft(cx, *attributes, args.get(0), result).map(one),
        Op::TriangularSolve(attributes) => {
            triangular::solve(cx, *attributes, args.get(0), args.get(1), result).map(one)
        }
        Op::Cholesky => triangular::cholesky(cx, args.get(0), result).map(one),
        Op::Factorize(factorization) => {
            factorize::factorize(cx, *factorization, args.get(0), ty.parts(), is_read)
                .map(Results::from_vec)
        }
        op @ nxla_expr::outside!(linalg) => unreachable!("{} is of another family", op.name()),
    }
}
