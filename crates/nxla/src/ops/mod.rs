//! Functions on tensors, with one file per family.
//!
//! Each function is a method of [`Expr`](crate::Expr), which adds to the trace and returns an
//! `Expr`, and a method of [`Tensor`](crate::Tensor), which computes eagerly and returns a
//! `Result`. One row of the macro [`methods`] defines both; its body builds the node from the
//! operand nodes. Functions without operands (`iota`, `zeros`, …) are associated functions of both
//! types.
//!
//! A function has the same name as its node in printed expressions. The trace records errors in an
//! expression with their source lines and reports them when it ends; errors in a tensor function
//! are returned immediately.

mod axes;
mod batches;
mod contract;
mod control;
mod create;
mod elementwise;
mod hooks;
mod index;
mod linalg;
mod loops;
mod metadata;
mod movement;
mod nn;
mod position;
mod random;
mod reduce;
mod statistics;
mod window;

pub use axes::{Axis, Over};
pub use batches::Leftover;
pub(crate) use control::annotate_at;
pub use control::{
    When, annotate, block, checkpoint, cond, custom_grad, custom_jvp, if_, metadata, when,
};
pub use hooks::{HookResult, hook, named_hook, named_hook_or, print_value, runtime_call};
pub use index::{Slice, Sort};
pub use linalg::Triangular;
pub use loops::{
    fori, fori_with, map, scan, scan_reverse, scan_times, scan_with, while_loop, while_loop_with,
};
pub use nxla_expr::build::ConvOptions as Convolution;
pub use nxla_expr::build::{Pool, Quantile, QuantileMethod, RunningNorm, Segment, Side};
pub use position::{Index, Indices, NewAxis};
pub use reduce::Arg;
pub use window::Window;

/// One, two or three results, or a list of results.
macro_rules! results {
    (one $of:ty) => { $of };
    (two $of:ty) => { ($of, $of) };
    (three $of:ty) => { ($of, $of, $of) };
    (many $of:ty) => { Vec<$of> };
}

/// The form in which a builder receives an operand of a method.
macro_rules! operand {
    ($x:ident, $operand:ident position) => {
        nxla_runtime::position(&$operand)
    };
    ($x:ident, $operand:ident element) => {
        nxla_runtime::element(&$operand, $x.dtype())
    };
    ($x:ident, $operand:ident precise) => {
        nxla_runtime::element(&$operand, nxla_runtime::DType::F64)
    };
    ($x:ident, $operand:ident parameter $draw:ident) => {
        nxla_runtime::parameter(&$operand, $draw.dtype)
    };
    ($x:ident, $operand:ident Equality) => {
        nxla_runtime::compared_with(&$operand, $x.dtype())
    };
    ($x:ident, $operand:ident Order) => {
        nxla_runtime::compared_with(&$operand, $x.dtype())
    };
    ($x:ident, $operand:ident $($class:ident)?) => {
        &$operand
    };
}

/// Defines methods of both `Expr` and `Tensor`.
///
/// `fn name(x, y; option: Type) one |graph| body` has the operands `x` (the receiver) and `y`,
/// which are nodes in the body, and an option. A scalar for `y` takes the dtype to which the other
/// operands are promoted, and a scalar for `y as position` its default dtype. With `as element`, it
/// takes the dtype of `x`; with `as parameter(draw)`, the dtype of the draw; with `as precise`,
/// `f64`; and with the class of a comparison, a dtype in which the comparison is exact.
///
/// The option `axis into Axis` has the type `impl Into<Axis>`, and `pairs each (i64, i64)` the type
/// `impl IntoIterator<Item = (i64, i64)>`. The macro converts them before it calls the builder: a
/// builder runs under the lock of the trace, and a conversion by the caller's code may read an
/// expression of the same trace.
macro_rules! methods {
    ($(
        $(#[$meta:meta])*
        fn $name:ident($x:ident $(, $operand:ident $(as $kind:ident $(($with:ident))?)?)*
            $(; $($arg:ident $(into $to:ident)? $(each $item:ty)? $(: $ty:ty)?),+)?)
            $count:ident |$graph:ident| $body:expr;
    )*) => {
        impl crate::Expr {
            $(
                $(#[$meta])*
                #[must_use]
                #[track_caller]
                pub fn $name(
                    &self
                    $(, $operand: impl crate::Operand)*
                    $($(,
                        $arg: $(impl Into<$to>)? $(impl IntoIterator<Item = $item>)? $($ty)?
                    )+)?
                ) -> $crate::ops::results!($count crate::Expr) {
                    $($(
                        $(let $arg: $to = $arg.into();)?
                        $(let $arg: Vec<$item> = $arg.into_iter().collect();)?
                    )+)?
                    $(let $operand = $crate::ops::operand!(self, $operand $($kind $($with)?)?);)*
                    let operands =
                        [crate::Operand::view(self) $(, crate::Operand::view(&$operand))*];
                    let location = std::panic::Location::caller();
                    let function = stringify!($name);
                    let trace = self.trace();
                    crate::apply::in_trace(function, trace, location, &operands, |$graph, ids| {
                        let &[$x $(, $operand)*] = ids else { unreachable!("as many as operands") };
                        Ok($body?)
                    })
                }
            )*
        }

        impl crate::Tensor {
            $(
                $(#[$meta])*
                ///
                /// # Errors
                /// Returns an error for invalid operands or arguments, and the errors of the
                /// computation.
                #[track_caller]
                pub fn $name(
                    &self
                    $(, $operand: impl crate::Operand)*
                    $($(,
                        $arg: $(impl Into<$to>)? $(impl IntoIterator<Item = $item>)? $($ty)?
                    )+)?
                ) -> crate::Result<$crate::ops::results!($count crate::Tensor)> {
                    $($(
                        $(let $arg: $to = $arg.into();)?
                        $(let $arg: Vec<$item> = $arg.into_iter().collect();)?
                    )+)?
                    $(let $operand = $crate::ops::operand!(self, $operand $($kind $($with)?)?);)*
                    let operands =
                        [crate::Operand::view(self) $(, crate::Operand::view(&$operand))*];
                    crate::apply::run_eagerly(stringify!($name), &operands, |$graph, ids| {
                        let &[$x $(, $operand)*] = ids else { unreachable!("as many as operands") };
                        Ok($body?)
                    })
                }
            )*
        }
    };
}

/// Defines functions without operands, of both `Expr` and `Tensor`.
macro_rules! makers {
    ($(
        $(#[$meta:meta])*
        fn $name:ident($($arg:ident $(into $to:ident)? $(: $ty:ty)?),*) |$graph:ident| $body:expr;
    )*) => {
        impl crate::Expr {
            $(
                $(#[$meta])*
                ///
                /// Builds in the current trace of this thread.
                #[must_use]
                #[track_caller]
                pub fn $name($($arg: $(impl Into<$to>)? $($ty)?),*) -> crate::Expr {
                    $($(let $arg: $to = $arg.into();)?)*
                    let trace = crate::Expr::current_trace();
                    let location = std::panic::Location::caller();
                    let none: [crate::View<'_>; 0] = [];
                    let function = stringify!($name);
                    crate::apply::in_trace(function, &trace, location, &none, |$graph, _| Ok($body?))
                }
            )*
        }

        impl crate::Tensor {
            $(
                $(#[$meta])*
                ///
                /// # Errors
                /// Returns an error for invalid arguments, and the errors of the computation.
                #[track_caller]
                pub fn $name($($arg: $(impl Into<$to>)? $($ty)?),*) -> crate::Result<crate::Tensor> {
                    $($(let $arg: $to = $arg.into();)?)*
                    let none: [crate::View<'_>; 0] = [];
                    crate::apply::run_eagerly(stringify!($name), &none, |$graph, _| Ok($body?))
                }
            )*
        }
    };
}

/// Defines functions of a list of operands, of both `Expr` and `Tensor`. An argument after `|`
/// precedes the list.
macro_rules! joiners {
    ($(
        $(#[$meta:meta])*
        fn $name:ident(
            $parts:ident $(| $lead:ident: $lead_ty:ty)?
            $(; $($arg:ident $(into $to:ident)? $(: $ty:ty)?),+)?
        ) $count:ident |$graph:ident| $body:expr;
    )*) => {
        impl crate::Expr {
            $(
                $(#[$meta])*
                #[must_use]
                #[track_caller]
                pub fn $name<T: crate::Operand>(
                    $($lead: $lead_ty,)? $parts: &[T]
                    $($(, $arg: $(impl Into<$to>)? $($ty)?)+)?
                ) -> $crate::ops::results!($count crate::Expr) {
                    $($($(let $arg: $to = $arg.into();)?)+)?
                    let operands: Vec<_> = $parts.iter().map(crate::Operand::view).collect();
                    let location = std::panic::Location::caller();
                    let trace = crate::Expr::trace_of(&operands);
                    let function = stringify!($name);
                    crate::apply::in_trace(function, &trace, location, &operands, |$graph, $parts| {
                        Ok($body?)
                    })
                }
            )*
        }

        impl crate::Tensor {
            $(
                $(#[$meta])*
                ///
                /// # Errors
                /// Returns an error for invalid operands or arguments, and the errors of the
                /// computation.
                #[track_caller]
                pub fn $name<T: crate::Operand>(
                    $($lead: $lead_ty,)? $parts: &[T]
                    $($(, $arg: $(impl Into<$to>)? $($ty)?)+)?
                ) -> crate::Result<$crate::ops::results!($count crate::Tensor)> {
                    $($($(let $arg: $to = $arg.into();)?)+)?
                    let operands: Vec<_> = $parts.iter().map(crate::Operand::view).collect();
                    let function = stringify!($name);
                    crate::apply::run_eagerly(function, &operands, |$graph, $parts| Ok($body?))
                }
            )*
        }
    };
}

use {joiners, makers, methods, operand, results};
