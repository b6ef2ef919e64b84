//! What neural networks are made of: activations, normalisation, attention, losses and pooling, as
//! functions without a state of their own.
//!
//! Narrow floats are computed in 32 bits and rounded once. Where a branch is not taken its operand
//! is replaced before anything is computed with it, so that derivatives stay finite.

mod activations;
mod attention;
mod losses;
mod norms;
mod pool;

pub use attention::Attention;
pub use norms::RunningNorm;
pub use pool::Pool;

use nxla_tensor::{DType, Number};

use crate::graph::{ErrorKind, ExprId, Graph, Result};

impl Graph {
    /// A float operand in a dtype to compute in, and the dtype of the result.
    fn floating(&mut self, op: &'static str, x: ExprId) -> Result<(ExprId, DType)> {
        let dtype = self.dtype(x).to_floating();
        if !dtype.is_float() {
            let (argument, expected) = ("operand", "a real dtype");
            return Err(self.error(op, ErrorKind::DType { argument, found: dtype, expected }));
        }
        Ok((self.as_type(x, dtype.at_least_f32())?, dtype))
    }

    /// A number as it stands next to `x`.
    fn beside(&mut self, x: ExprId, number: f64) -> Result<ExprId> {
        self.weak_number(Number::Float(number), x)
    }

    /// `x * number`.
    fn scaled(&mut self, x: ExprId, number: f64) -> Result<ExprId> {
        let number = self.beside(x, number)?;
        self.multiply(x, number)
    }

    /// `x + number`.
    fn shifted(&mut self, x: ExprId, number: f64) -> Result<ExprId> {
        let number = self.beside(x, number)?;
        self.add(x, number)
    }
}
