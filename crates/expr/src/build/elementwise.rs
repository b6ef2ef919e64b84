//! Element-wise functions. One method per row of the op table.

use nxla_tensor::DType;

use crate::graph::{BinaryOp, ExprId, Graph, Op, Result, UnaryOp};
use crate::{for_each_binary, for_each_unary};

macro_rules! unary_methods {
    ($($(#[$doc:meta])* $variant:ident $method:ident $name:literal $class:ident ($($lowering:tt)*) $operations:literal $domain:tt $public:literal [$($example:literal)*];)*) => {
        impl Graph {
            $(
                $(#[$doc])*
                #[doc = concat!("\n\nElement-wise; dtypes as [`UnaryClass::", stringify!($class), "`](crate::UnaryClass::", stringify!($class), ").\n\n# Errors\nReturns an error for an operand of another dtype.")]
                pub fn $method(&mut self, x: ExprId) -> Result<ExprId> {
                    self.make(Op::Unary(UnaryOp::$variant), &[x])
                }
            )*
        }
    };
}
for_each_unary!(unary_methods);

macro_rules! binary_methods {
    ($($(#[$doc:meta])* $variant:ident $method:ident $name:literal $class:ident ($($lowering:tt)*) $operations:literal $public:literal [$($example:literal)*];)*) => {
        impl Graph {
            $(
                $(#[$doc])*
                #[doc = concat!("\n\nElement-wise with broadcasting; dtypes as [`BinaryClass::", stringify!($class), "`](crate::BinaryClass::", stringify!($class), ").\n\n# Errors\nReturns an error for shapes that do not broadcast or operands of other dtypes.")]
                pub fn $method(&mut self, x: ExprId, y: ExprId) -> Result<ExprId> {
                    self.make(Op::Binary(BinaryOp::$variant), &[x, y])
                }
            )*
        }
    };
}
for_each_binary!(binary_methods);

impl Graph {
    /// Creates a unary op of the table.
    ///
    /// # Errors
    /// Returns an error for an operand of an unsupported dtype.
    pub fn unary(&mut self, op: UnaryOp, x: ExprId) -> Result<ExprId> {
        self.make(Op::Unary(op), &[x])
    }

    /// Creates a binary op of the table.
    ///
    /// # Errors
    /// Returns an error for shapes that do not broadcast or operands of unsupported dtypes.
    pub fn binary(&mut self, op: BinaryOp, x: ExprId, y: ExprId) -> Result<ExprId> {
        self.make(Op::Binary(op), &[x, y])
    }

    /// Returns `on_true` where `predicate` is nonzero, and `on_false` elsewhere. The operands
    /// broadcast.
    ///
    /// # Errors
    /// Returns an error for shapes that do not broadcast.
    pub fn select(
        &mut self,
        predicate: ExprId,
        on_true: ExprId,
        on_false: ExprId,
    ) -> Result<ExprId> {
        self.make(Op::Select, &[predicate, on_true, on_false])
    }

    /// Clamps `x` to `[min, max]`, both scalars. NaN remains NaN.
    ///
    /// # Errors
    /// Returns an error for bounds that are not a scalar or complex operands.
    pub fn clip(&mut self, x: ExprId, min: ExprId, max: ExprId) -> Result<ExprId> {
        self.make(Op::Clip, &[x, min, max])
    }

    /// Converts `x` to a dtype by the rules of [`Scalar::cast`](nxla_tensor::Scalar::cast).
    ///
    /// # Errors
    /// Returns an error for invalid operands.
    pub fn as_type(&mut self, x: ExprId, dtype: DType) -> Result<ExprId> {
        self.make(Op::AsType(dtype), &[x])
    }

    /// Interprets the bits of `x` as another dtype of the same width.
    ///
    /// # Errors
    /// Returns an error for a dtype of another width or complex dtypes.
    pub fn bitcast(&mut self, x: ExprId, dtype: DType) -> Result<ExprId> {
        self.make(Op::Bitcast(dtype), &[x])
    }

    /// Returns the angle of a complex number in radians, in `(-pi, pi]`.
    ///
    /// # Errors
    /// Returns an error for invalid operands.
    pub fn phase(&mut self, x: ExprId) -> Result<ExprId> {
        self.composite("phase", &[], [x], |graph, [x]| {
            let (im, re) = (graph.imag(x)?, graph.real(x)?);
            graph.atan2(im, re)
        })
    }
}
