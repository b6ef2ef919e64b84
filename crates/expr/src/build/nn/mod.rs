//! Neural network functions without state: activations, normalization, attention, losses and
//! pooling.
//!
//! Narrow floats are computed in 32 bits and rounded once. The operand of a branch that is not
//! selected is replaced before the computation, so that derivatives are finite.

mod activations;
mod attention;
mod losses;
mod norms;
mod pool;

pub use attention::Attention;
pub use norms::RunningNorm;
pub use pool::Pool;

use nxla_tensor::DType;

use crate::graph::{ErrorKind, ExprId, Graph, Result};

impl Graph {
    /// Converts a float operand to the dtype for computations, and returns the dtype of the result.
    fn widen_to_float(&mut self, x: ExprId) -> Result<(ExprId, DType)> {
        let dtype = self.dtype(x).to_floating();
        if !dtype.is_float() {
            let (argument, expected) = ("operand", "a real dtype");
            return Err(
                self.error("as_type", ErrorKind::DType { argument, found: dtype, expected })
            );
        }
        Ok((self.as_type(x, dtype.at_least_f32())?, dtype))
    }
}
