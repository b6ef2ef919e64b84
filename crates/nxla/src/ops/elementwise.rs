//! Element-wise functions: one method per row of the op table, and what is composed of them.

use std::panic::Location;

use nxla_expr::{BinaryOp, ExprId, Graph, Op, UnaryOp};
use nxla_expr::{
    binary_class, for_each_binary, for_each_composed_binary, for_each_composed_unary,
    for_each_unary, unary_class,
};
use nxla_runtime::either;
use nxla_tensor::DType;

use super::methods;
use crate::Operand;
use crate::Result;
use crate::apply::{at_once, in_trace};
use crate::expr::Expr;
use crate::tensor::Tensor;

macro_rules! unary_methods {
    ($($(#[$doc:meta])* $variant:ident $method:ident $name:literal $class:ident ($($lowering:tt)*) $domain:tt $public:literal [$($example:literal)*];)*) => {
        methods! {
            $(
                $(#[$doc])*
                ///
                #[doc = concat!(
                    "Of: ", unary_class!(takes $class), " Gives: ", unary_class!(gives $class),
                    "\n\n```\nlet x = nxla::Tensor::from([1, 2]);\nassert_eq!(x.", stringify!($method),
                    "()?.shape()[..], [2]);\n# Ok::<(), nxla::Error>(())\n```"
                )]
                fn $method(x) one |graph| graph.make(Op::Unary(UnaryOp::$variant), &[x]);
            )*
        }
    };
}
for_each_unary!(unary_methods);

macro_rules! binary_methods {
    ($($(#[$doc:meta])* $variant:ident $method:ident $name:literal $class:ident ($($lowering:tt)*) $public:literal [$($example:literal)*];)*) => {
        methods! {
            $(
                $(#[$doc])*
                ///
                /// A plain number takes the dtype of the tensor next to it.
                #[doc = concat!(
                    "Of: ", binary_class!(takes $class), " Gives: ", binary_class!(gives $class),
                    "\n\n```\nlet x = nxla::Tensor::from([1, 2]);\nassert_eq!(x.", stringify!($method),
                    "(2)?.shape()[..], [2]);\n# Ok::<(), nxla::Error>(())\n```"
                )]
                fn $method(x, other as $class) one |graph|
                    graph.make(Op::Binary(BinaryOp::$variant), &[x, other]);
            )*
        }
    };
}
for_each_binary!(binary_methods);

macro_rules! composed_unary_methods {
    ($($(#[$doc:meta])* $method:ident $class:ident $public:literal [$($example:literal)*];)*) => {
        methods! {
            $(
                $(#[$doc])*
                ///
                #[doc = concat!(
                    "Of: ", unary_class!(takes $class), " Gives: ", unary_class!(gives $class),
                    "\n\n```\nlet x = nxla::Tensor::from([1, 2]);\nassert_eq!(x.", stringify!($method),
                    "()?.shape()[..], [2]);\n# Ok::<(), nxla::Error>(())\n```"
                )]
                fn $method(x) one |graph| graph.$method(x);
            )*
        }
    };
}
for_each_composed_unary!(composed_unary_methods);

macro_rules! composed_binary_methods {
    ($($(#[$doc:meta])* $method:ident $class:ident $public:literal [$($example:literal)*];)*) => {
        methods! {
            $(
                $(#[$doc])*
                ///
                /// A plain number takes the dtype of the tensor next to it.
                #[doc = concat!(
                    "Of: ", binary_class!(takes $class), " Gives: ", binary_class!(gives $class),
                    "\n\n```\nlet x = nxla::Tensor::from([1, 2]);\nassert_eq!(x.", stringify!($method),
                    "(2)?.shape()[..], [2]);\n# Ok::<(), nxla::Error>(())\n```"
                )]
                fn $method(x, other) one |graph| graph.$method(x, other);
            )*
        }
    };
}
for_each_composed_binary!(composed_binary_methods);

methods! {
    /// Limited to `[min, max]`; NaN stays NaN.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from(vec![-2.0f32, 0.5, 9.0]);
    /// assert_eq!(x.clip(0, 1)?.to_vec::<f32>()?, [0.0, 0.5, 1.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn clip(x, min, max) one |graph| graph.clip(x, min, max);

    /// Converted to another dtype. Floats lose their fraction on the way to integers.
    ///
    /// ```
    /// use nxla::{DType, Tensor};
    ///
    /// let x = Tensor::from([1.9f32, -1.9]);
    /// assert_eq!(x.as_type(DType::S32)?.to_vec::<i32>()?, [1, -1]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn as_type(x; dtype: DType) one |graph| graph.as_type(x, dtype);

    /// The same bits read as another dtype of the same width.
    ///
    /// ```
    /// use nxla::{DType, Tensor};
    ///
    /// assert_eq!(Tensor::from(1.0f32).bitcast(DType::U32)?.to_vec::<u32>()?, [0x3f80_0000]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn bitcast(x; dtype: DType) one |graph| graph.bitcast(x, dtype);

    /// Whether all elements are as near to those of the other as
    /// `absolute + relative * |other|`; NaN is near to NaN with `equal_nan`, else to nothing.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from(vec![1.0f32, f32::INFINITY]);
    /// let y = Tensor::from(vec![1.0f32, 5.0]);
    /// assert!(!x.all_close(&y, 1e-5, 1e-8, false)?.item::<bool>()?);
    /// assert!(x.all_close(&x, 1e-5, 1e-8, false)?.item::<bool>()?);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn all_close(x, other; relative: f64, absolute: f64, equal_nan: bool) one |graph|
        graph.all_close(x, other, relative, absolute, equal_nan);
}

fn select(graph: &mut Graph, ids: &[ExprId]) -> Result<ExprId> {
    let &[predicate, on_true, on_false] = ids else { unreachable!("three operands") };
    Ok(graph.select(predicate, on_true, on_false)?)
}

impl Expr {
    /// `on_true` where this is non-zero, else `on_false`; all three broadcast.
    ///
    /// ```
    /// use nxla::{Expr, Tensor, jit};
    ///
    /// let positive = jit(|x: Expr| x.greater(0).select(&x, 0));
    /// assert_eq!(positive.call(Tensor::from([1, -1]))?.to_vec::<i32>()?, [1, 0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    #[track_caller]
    pub fn select(&self, on_true: impl Operand, on_false: impl Operand) -> Expr {
        let location = Location::caller();
        let either = self.trace().attempt(|| either([on_true.to_value(), on_false.to_value()]));
        let [on_true, on_false] = either.unwrap_or_else(|| [self.to_value(), self.to_value()]);
        in_trace(self.trace(), location, &[self.to_value(), on_true, on_false], select)
    }
}

impl Tensor {
    /// `on_true` where this is non-zero, else `on_false`; all three broadcast.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from(vec![1.0f32, -1.0]);
    /// assert_eq!(x.greater(0)?.select(&x, 0)?.to_vec::<f32>()?, [1.0, 0.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Shapes that do not broadcast, and whatever stops the computation.
    pub fn select(&self, on_true: impl Operand, on_false: impl Operand) -> Result<Tensor> {
        let [on_true, on_false] = either([on_true.to_value(), on_false.to_value()])?;
        at_once("select", &[self.to_value(), on_true, on_false], select)
    }
}
