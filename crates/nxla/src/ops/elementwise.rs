//! Element-wise functions: one method per row of the op table.

use std::panic::Location;

use nxla_expr::{BinaryOp, Op, UnaryOp};
use nxla_expr::{for_each_binary, for_each_unary};
use nxla_tensor::DType;

use crate::expr::Expr;
use crate::operand::Operand;

macro_rules! unary_methods {
    ($($(#[$doc:meta])* $variant:ident $method:ident $name:literal $class:ident ($($lowering:tt)*) $domain:tt;)*) => {
        impl Expr {
            $(
                $(#[$doc])*
                ///
                /// Element-wise: the result has the operand's shape.
                #[must_use]
                #[track_caller]
                pub fn $method(&self) -> Expr {
                    self.then(|graph, x| Ok(graph.make(Op::Unary(UnaryOp::$variant), &[x])?))
                }
            )*
        }
    };
}
for_each_unary!(unary_methods);

macro_rules! binary_methods {
    ($($(#[$doc:meta])* $variant:ident $method:ident $name:literal $class:ident ($($lowering:tt)*);)*) => {
        impl Expr {
            $(
                $(#[$doc])*
                ///
                /// Element-wise: the operands broadcast, and a plain number takes the dtype of the
                /// tensor next to it.
                #[must_use]
                #[track_caller]
                pub fn $method(&self, other: impl Operand) -> Expr {
                    self.with(BinaryOp::$variant, other)
                }
            )*
        }
    };
}
for_each_binary!(binary_methods);

impl Expr {
    /// `on_true` where this is non-zero, else `on_false`; all three broadcast.
    #[must_use]
    #[track_caller]
    pub fn select(&self, on_true: impl Operand, on_false: impl Operand) -> Expr {
        self.trace().operator(Location::caller(), |graph| {
            // A plain number takes the dtype of the other branch, if that is a tensor.
            let on_true = on_true.node(self.trace(), graph, None)?;
            let on_false = on_false.node(self.trace(), graph, Some(on_true))?;
            Ok(graph.select(self.id(), on_true, on_false)?)
        })
    }

    /// Limited to `[min, max]`; NaN stays NaN.
    #[must_use]
    #[track_caller]
    pub fn clip(&self, min: impl Operand, max: impl Operand) -> Expr {
        self.trace().operator(Location::caller(), |graph| {
            let min = min.node(self.trace(), graph, Some(self.id()))?;
            let max = max.node(self.trace(), graph, Some(self.id()))?;
            Ok(graph.clip(self.id(), min, max)?)
        })
    }

    /// Converted to another dtype.
    #[must_use]
    #[track_caller]
    pub fn as_type(&self, dtype: DType) -> Expr {
        self.then(|graph, x| Ok(graph.as_type(x, dtype)?))
    }
}
