//! What can stand next to an expression: another one, a number, a tensor.

use nxla_expr::{ExprId, Graph};
use nxla_tensor::Number;

use crate::error::Result;
use crate::expr::Expr;
use crate::tensor::Tensor;
use crate::trace::Trace;

/// Anything that becomes a node of a trace.
pub trait Operand {
    /// The node; a plain number takes the dtype of `next_to` as far as it can.
    ///
    /// # Errors
    /// An expression of another trace; a device tensor that cannot be read.
    fn node(&self, trace: &Trace, graph: &mut Graph, next_to: Option<ExprId>) -> Result<ExprId>;
}

impl Operand for Expr {
    fn node(&self, trace: &Trace, _: &mut Graph, _: Option<ExprId>) -> Result<ExprId> {
        trace.id(self)
    }
}

impl Operand for Number {
    fn node(&self, _: &Trace, graph: &mut Graph, next_to: Option<ExprId>) -> Result<ExprId> {
        Ok(match next_to {
            Some(other) => graph.weak_number(*self, other)?,
            None => graph.number(*self)?,
        })
    }
}

impl Operand for Tensor {
    fn node(&self, _: &Trace, graph: &mut Graph, _: Option<ExprId>) -> Result<ExprId> {
        Ok(graph.tensor(self.to_host()?)?)
    }
}

impl<T: Operand + ?Sized> Operand for &T {
    fn node(&self, trace: &Trace, graph: &mut Graph, next_to: Option<ExprId>) -> Result<ExprId> {
        (**self).node(trace, graph, next_to)
    }
}

macro_rules! numbers {
    ($($ty:ty => $variant:ident as $wide:ty;)*) => {
        $(
            impl Operand for $ty {
                fn node(
                    &self,
                    trace: &Trace,
                    graph: &mut Graph,
                    next_to: Option<ExprId>,
                ) -> Result<ExprId> {
                    Number::$variant(<$wide>::from(*self)).node(trace, graph, next_to)
                }
            }
        )*
    };
}

numbers! {
    bool => Bool as bool;
    i32 => Int as i128;
    i64 => Int as i128;
    u32 => Int as i128;
    u64 => Int as i128;
    f32 => Float as f64;
    f64 => Float as f64;
}
