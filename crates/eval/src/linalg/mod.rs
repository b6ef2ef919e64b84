//! Fourier transforms and factorisations, batched over leading axes and computed in `f64`.

mod factorize;
mod fft;
mod field;
mod triangular;

use nxla_expr::{Factorization, Op, TensorType, Type};
use nxla_tensor::HostTensor;

use crate::args::Args;
use crate::error::Fault;
use crate::run::{Results, one};

pub(crate) fn evaluate(op: &Op, ty: &Type, args: &mut Args<'_>) -> Result<Results, Fault> {
    let result = &ty.parts()[0];
    match op {
        Op::Fft(attributes) => fft::fft(*attributes, args.get(0), result).map(one),
        Op::TriangularSolve(attributes) => {
            triangular::solve(*attributes, args.get(0), args.get(1), result).map(one)
        }
        Op::Cholesky => triangular::cholesky(args.get(0), result).map(one),
        Op::Factorize(factorization) => {
            factorize::factorize(*factorization, args.get(0), ty.parts()).map(Results::from_vec)
        }
        op @ nxla_expr::outside!(linalg) => unreachable!("{} is of another family", op.name()),
    }
}

/// The parts of a factorisation of the matrices in the last two axes of `a`. Other engines call it
/// where they have no kernels of their own.
///
/// # Errors
/// An operand that the factorisation does not take; results larger than memory can address.
///
/// ```
/// use nxla_expr::Factorization;
/// use nxla_tensor::HostTensor;
///
/// let a = HostTensor::from_slice(&[3.0_f64, 0.0, 4.0, 5.0], [2, 2])?;
/// let parts = nxla_eval::factorize(Factorization::Qr { complete: false }, &a)?;
/// assert_eq!(parts[1].as_slice::<f64>()?[0], 5.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn factorize(factorization: Factorization, a: &HostTensor) -> Result<Vec<HostTensor>, Fault> {
    let ty = TensorType::new(a.dtype(), a.shape().clone());
    let types = factorization.parts(&ty).map_err(|kind| Fault::Operand(Box::new(kind)))?;
    factorize::factorize(factorization, a, &types)
}
