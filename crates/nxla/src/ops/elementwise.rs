//! Element-wise functions: a method for each row of the op table, and compositions.

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
use crate::apply::{in_trace, run_eagerly};
use crate::expr::Expr;
use crate::tensor::Tensor;

/// The end of a method's docs: the dtypes of operands and result, and an example.
macro_rules! docs {
    (unary $class:ident $method:ident) => {
        docs!("Operand: ", unary_class!(takes $class), unary_class!(returns $class), $method "()")
    };
    (binary $class:ident $method:ident) => {
        docs!("Operands: ", binary_class!(takes $class), binary_class!(returns $class), $method "(2)")
    };
    ($label:literal, $takes:expr, $returns:expr, $method:ident $arguments:literal) => {
        concat!(
            $label, $takes, " Result: ", $returns,
            "\n\n```\nlet x = nxla::Tensor::from([1, 2]);\nassert_eq!(x.", stringify!($method),
            $arguments, "?.shape()[..], [2]);\n# Ok::<(), nxla::Error>(())\n```"
        )
    };
}

macro_rules! unary_methods {
    ($($(#[$doc:meta])* $variant:ident $method:ident $name:literal $class:ident ($($lowering:tt)*) $operations:literal $domain:tt $public:literal [$($example:literal)*];)*) => {
        methods! {
            $(
                $(#[$doc])*
                ///
                #[doc = docs!(unary $class $method)]
                fn $method(x) one |graph| graph.make(Op::Unary(UnaryOp::$variant), &[x]);
            )*
        }
    };
}
for_each_unary!(unary_methods);

macro_rules! binary_methods {
    ($($(#[$doc:meta])* $variant:ident $method:ident $name:literal $class:ident ($($lowering:tt)*) $operations:literal $public:literal [$($example:literal)*];)*) => {
        methods! {
            $(
                $(#[$doc])*
                ///
                /// A scalar takes the dtype of the tensor with which it is combined.
                #[doc = docs!(binary $class $method)]
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
                #[doc = docs!(unary $class $method)]
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
                /// A scalar takes the dtype of the tensor with which it is combined.
                #[doc = docs!(binary $class $method)]
                fn $method(x, other) one |graph| graph.$method(x, other);
            )*
        }
    };
}
for_each_composed_binary!(composed_binary_methods);

methods! {
    /// Clamps to `[min, max]`; NaN remains NaN.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from(vec![-2.0f32, 0.5, 9.0]);
    /// assert_eq!(x.clip(0, 1)?.to_vec::<f32>()?, [0.0, 0.5, 1.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn clip(x, min, max) one |graph| graph.clip(x, min, max);

    /// Converts to another dtype. Conversions from floats to integers truncate.
    ///
    /// ```
    /// use nxla::{DType, Tensor};
    ///
    /// let x = Tensor::from([1.9f32, -1.9]);
    /// assert_eq!(x.as_type(DType::S32)?.to_vec::<i32>()?, [1, -1]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[doc(alias = "astype")]
    #[doc(alias = "cast")]
    fn as_type(x; dtype: DType) one |graph| graph.as_type(x, dtype);

    /// Interprets the bits as another dtype of the same width.
    ///
    /// ```
    /// use nxla::{DType, Tensor};
    ///
    /// assert_eq!(Tensor::from(1.0f32).bitcast(DType::U32)?.to_vec::<u32>()?, [0x3f80_0000]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn bitcast(x; dtype: DType) one |graph| graph.bitcast(x, dtype);

    /// Returns whether all elements differ from the other elements by at most `absolute + relative
    /// * |other|`. NaN is close to NaN with `equal_nan`, and otherwise to nothing.
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

    /// Returns where elements are close, as defined by [`all_close`](Self::all_close).
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from(vec![1.0f32, f32::INFINITY]);
    /// let y = Tensor::from(vec![1.0f32, 5.0]);
    /// assert_eq!(x.is_close(&y, 1e-5, 1e-8, false)?.to_vec::<bool>()?, [true, false]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn is_close(x, other; relative: f64, absolute: f64, equal_nan: bool) one |graph|
        graph.is_close(x, other, relative, absolute, equal_nan);
}

fn select(graph: &mut Graph, ids: &[ExprId]) -> Result<ExprId> {
    let &[predicate, on_true, on_false] = ids else { unreachable!("three operands") };
    Ok(graph.select(predicate, on_true, on_false)?)
}

impl Expr {
    /// Returns `on_true` where this is nonzero, and `on_false` elsewhere; all three broadcast.
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
    #[doc(alias = "where")]
    pub fn select(&self, on_true: impl Operand, on_false: impl Operand) -> Expr {
        let location = Location::caller();
        let either = || either([on_true.to_value(), on_false.to_value()]);
        let either = self.trace().attempt(location, either);
        let [on_true, on_false] = either.unwrap_or_else(|| [self.to_value(), self.to_value()]);
        let operands = [self.to_value(), on_true, on_false];
        in_trace("select", self.trace(), location, &operands, select)
    }
}

impl Tensor {
    /// Returns `on_true` where this is nonzero, and `on_false` elsewhere; all three broadcast.
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
    /// Returns an error for shapes that do not broadcast and for two integers that share no dtype,
    /// and the errors of the computation.
    #[doc(alias = "where")]
    #[track_caller]
    pub fn select(&self, on_true: impl Operand, on_false: impl Operand) -> Result<Tensor> {
        let either = either([on_true.to_value(), on_false.to_value()]);
        let location = Location::caller();
        let [on_true, on_false] = either.map_err(|error| error.at_location(location))?;
        run_eagerly("select", &[self.to_value(), on_true, on_false], select)
    }
}
