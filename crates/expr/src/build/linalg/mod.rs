//! Fourier transforms and linear algebra on matrices in the last two axes.

mod determinant;
mod factor;
mod fourier;
mod norm;
mod products;
mod solve;

pub use fourier::FftNorm;
pub use norm::Norm;
pub use solve::Tolerance;

use crate::graph::{Axes, ExprId, Graph, Op, Result};

impl Graph {
    /// Returns the conjugate transpose of the last two axes. A vector is only conjugated.
    ///
    /// # Errors
    /// Returns an error for invalid operands.
    pub fn adjoint(&mut self, x: ExprId) -> Result<ExprId> {
        let rank = self.shape(x).rank();
        let x = if self.dtype(x).is_complex() { self.conjugate(x)? } else { x };
        if rank < 2 {
            return Ok(x);
        }
        let order: Axes = (0..rank - 2).chain([rank - 1, rank - 2]).collect();
        self.make(Op::Transpose(order), &[x])
    }
}
