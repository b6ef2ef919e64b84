//! Fourier transforms and linear algebra on matrices in the last two axes.

mod determinant;
mod exponential;
mod factor;
mod fourier;
mod norm;
mod products;
mod solve;

pub use fourier::FftNorm;
pub use norm::Norm;
pub use solve::Tolerance;

use crate::graph::{ExprId, Graph, Result};

impl Graph {
    /// Returns the conjugate transpose of the last two axes. A vector is only conjugated.
    ///
    /// # Errors
    /// Returns an error for invalid operands.
    pub fn adjoint(&mut self, x: ExprId) -> Result<ExprId> {
        let x = self.conjugate_complex(x)?;
        if self.shape(x).rank() < 2 { Ok(x) } else { self.matrix_transpose(x) }
    }

    /// Conjugates complex numbers, and returns other numbers unchanged. [`Graph::conjugate`]
    /// converts them to complex numbers.
    ///
    /// ```
    /// use nxla_expr::{Graph, TensorType};
    /// use nxla_tensor::DType;
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.parameter(0, TensorType::scalar(DType::F32));
    /// assert_eq!(graph.conjugate_complex(x)?, x);
    /// # Ok::<(), nxla_expr::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error for invalid operands.
    pub fn conjugate_complex(&mut self, x: ExprId) -> Result<ExprId> {
        if self.dtype(x).is_complex() { self.conjugate(x) } else { Ok(x) }
    }
}
