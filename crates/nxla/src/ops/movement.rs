//! Functions that move elements without computing.

use nxla_tensor::Shape;

use crate::expr::Expr;

impl Expr {
    /// The same elements in row-major order under another shape of the same size.
    #[must_use]
    #[track_caller]
    pub fn reshape(&self, shape: impl Into<Shape>) -> Expr {
        self.then(|graph, x| Ok(graph.reshape(x, shape)?))
    }

    /// The axes in another order.
    #[must_use]
    #[track_caller]
    pub fn transpose(&self, axes: &[i64]) -> Expr {
        self.then(|graph, x| Ok(graph.transpose(x, Some(axes))?))
    }

    /// Repeated to a shape, axes aligned at the right.
    #[must_use]
    #[track_caller]
    pub fn broadcast_to(&self, shape: impl Into<Shape>) -> Expr {
        self.then(|graph, x| Ok(graph.broadcast(x, shape, None)?))
    }
}
