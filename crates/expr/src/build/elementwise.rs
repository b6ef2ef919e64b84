//! Element-wise functions. One method per row of the op table.

use nxla_tensor::DType;

use crate::graph::{BinaryOp, ExprId, Graph, Op, Result, UnaryOp};
use crate::{for_each_binary, for_each_unary};

macro_rules! unary_methods {
    ($($(#[$doc:meta])* $variant:ident $method:ident $name:literal $class:ident ($($lowering:tt)*) $domain:tt $public:literal [$($example:literal)*];)*) => {
        impl Graph {
            $(
                $(#[$doc])*
                #[doc = concat!("\n\nElement-wise; dtypes as [`UnaryClass::", stringify!($class), "`](crate::UnaryClass::", stringify!($class), ").\n\n# Errors\nAn operand of another dtype.")]
                pub fn $method(&mut self, x: ExprId) -> Result<ExprId> {
                    self.make(Op::Unary(UnaryOp::$variant), &[x])
                }
            )*
        }
    };
}
for_each_unary!(unary_methods);

macro_rules! binary_methods {
    ($($(#[$doc:meta])* $variant:ident $method:ident $name:literal $class:ident ($($lowering:tt)*) $public:literal [$($example:literal)*];)*) => {
        impl Graph {
            $(
                $(#[$doc])*
                #[doc = concat!("\n\nElement-wise with broadcasting; dtypes as [`BinaryClass::", stringify!($class), "`](crate::BinaryClass::", stringify!($class), ").\n\n# Errors\nShapes that do not broadcast; operands of other dtypes.")]
                pub fn $method(&mut self, x: ExprId, y: ExprId) -> Result<ExprId> {
                    self.make(Op::Binary(BinaryOp::$variant), &[x, y])
                }
            )*
        }
    };
}
for_each_binary!(binary_methods);

impl Graph {
    /// A unary op of the table.
    ///
    /// # Errors
    /// An operand of a dtype that the op refuses.
    pub fn unary(&mut self, op: UnaryOp, x: ExprId) -> Result<ExprId> {
        self.make(Op::Unary(op), &[x])
    }

    /// A binary op of the table.
    ///
    /// # Errors
    /// Shapes that do not broadcast; operands of dtypes that the op refuses.
    pub fn binary(&mut self, op: BinaryOp, x: ExprId, y: ExprId) -> Result<ExprId> {
        self.make(Op::Binary(op), &[x, y])
    }

    /// `on_true` where `predicate` is non-zero, else `on_false`. All three broadcast.
    ///
    /// # Errors
    /// Shapes that do not broadcast.
    pub fn select(
        &mut self,
        predicate: ExprId,
        on_true: ExprId,
        on_false: ExprId,
    ) -> Result<ExprId> {
        self.make(Op::Select, &[predicate, on_true, on_false])
    }

    /// `x` limited to `[min, max]`, both scalar. NaN stays NaN.
    ///
    /// # Errors
    /// Bounds that are not scalar; complex operands.
    pub fn clip(&mut self, x: ExprId, min: ExprId, max: ExprId) -> Result<ExprId> {
        self.make(Op::Clip, &[x, min, max])
    }

    /// `x` converted to a dtype by the rules of [`Scalar::cast`](nxla_tensor::Scalar::cast).
    ///
    /// # Errors
    /// None for tensors; the result is fallible like that of every builder.
    pub fn as_type(&mut self, x: ExprId, dtype: DType) -> Result<ExprId> {
        self.make(Op::AsType(dtype), &[x])
    }

    /// The bits of `x` read as another dtype of the same width.
    ///
    /// # Errors
    /// A dtype of another width; complex dtypes.
    pub fn bitcast(&mut self, x: ExprId, dtype: DType) -> Result<ExprId> {
        self.make(Op::Bitcast(dtype), &[x])
    }

    /// The base-2 logarithm, as `log(x) / log(2)`.
    ///
    /// # Errors
    /// As for [`Graph::log`].
    pub fn log2(&mut self, x: ExprId) -> Result<ExprId> {
        self.log_of_base(x, 2.0)
    }

    /// The base-10 logarithm, as `log(x) / log(10)`.
    ///
    /// # Errors
    /// As for [`Graph::log`].
    pub fn log10(&mut self, x: ExprId) -> Result<ExprId> {
        self.log_of_base(x, 10.0)
    }

    fn log_of_base(&mut self, x: ExprId, base: f64) -> Result<ExprId> {
        let log = self.log(x)?;
        let scale = nxla_tensor::Number::Float(base.ln());
        if !self.dtype(log).is_complex() {
            let scale = self.weak_number(scale, log)?;
            return self.divide(log, scale);
        }
        // Part by part: a division of complex numbers makes NaN of a part next to an infinity.
        let parts = [self.real(log)?, self.imag(log)?];
        let scale = self.weak_number(scale, parts[0])?;
        let (re, im) = (self.divide(parts[0], scale)?, self.divide(parts[1], scale)?);
        self.complex(re, im)
    }

    /// The angle of a complex number in radians, in `(-pi, pi]`.
    ///
    /// # Errors
    /// None for tensors; the result is fallible like that of every builder.
    pub fn phase(&mut self, x: ExprId) -> Result<ExprId> {
        self.composite("phase", &[], [x], |graph, [x]| {
            let (im, re) = (graph.imag(x)?, graph.real(x)?);
            graph.atan2(im, re)
        })
    }
}
