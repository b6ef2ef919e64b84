//! Batching rules of Fourier transforms and factorizations, which already support leading batch
//! axes.

use super::batcher::{Batched, Batcher};
use crate::graph::{ExprId, Fft, Op, Result};

pub(super) fn batch(batcher: &mut Batcher<'_>, op: &Op, operands: &[Batched]) -> Result<ExprId> {
    match op {
        Op::Fft(attributes) => {
            let axis = batcher.shift(attributes.axis);
            batcher.make(Op::Fft(Fft { axis, ..*attributes }), &[operands[0].id])
        }
        Op::TriangularSolve(_) | Op::Cholesky | Op::Factorize(_) => {
            let operands = batcher.lift_all(operands)?;
            batcher.make(op.clone(), &operands)
        }
        op @ crate::outside!(linalg) => unreachable!("{} is of another family", op.name()),
    }
}
