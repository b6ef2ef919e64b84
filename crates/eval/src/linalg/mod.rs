//! Fourier transforms and factorisations, batched over leading axes and computed in `f64`.

mod fft;
mod triangular;

use nxla_expr::{Op, TensorType};
use nxla_tensor::HostTensor;

use crate::args::Args;
use crate::error::Fault;

pub(crate) fn evaluate(op: &Op, ty: &TensorType, args: &mut Args<'_>) -> Result<HostTensor, Fault> {
    match op {
        Op::Fft(attributes) => fft::fft(*attributes, args.get(0), ty),
        Op::TriangularSolve(attributes) => {
            triangular::solve(*attributes, args.get(0), args.get(1), ty)
        }
        Op::Cholesky => triangular::cholesky(args.get(0), ty),
        op @ nxla_expr::outside!(linalg) => unreachable!("{} is of another family", op.name()),
    }
}
