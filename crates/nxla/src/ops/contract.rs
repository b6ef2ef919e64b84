//! Products that contract axes.

use std::panic::Location;

use crate::expr::Expr;
use crate::operand::Operand;

impl Expr {
    /// The dot product: the last axis of this with the last but one (or only) axis of the other.
    #[must_use]
    #[track_caller]
    pub fn dot(&self, other: impl Operand) -> Expr {
        self.trace().operator(Location::caller(), |graph| {
            let other = other.node(self.trace(), graph, Some(self.id()))?;
            Ok(graph.dot(self.id(), other)?)
        })
    }
}
