//! A value inside a trace.

use std::fmt;
use std::ops::{Add, BitAnd, BitOr, BitXor, Deref, Div, Mul, Neg, Not, Rem, Shl, Shr, Sub};
use std::panic::Location;

use nxla_expr::{BinaryOp, ExprId, Op};
use nxla_runtime::{self as runtime, Error, Operand, Result, Trace, Vectors, View};

use crate::apply;
use crate::tensor::Tensor;

/// A tensor that is being computed: a node of the graph of a [`Trace`].
///
/// Operators and methods build further nodes. They never panic: a mistake (shapes that do not
/// broadcast, say) is kept by the trace with the line that made it, and [`Jit::call`] returns it.
///
/// A number next to it takes its dtype as far as it can. On the right of an operator it may be of
/// any type, on the left `f64` or `i32`, which is what literals are; write `x * rate` for a `rate`
/// of another type, or `Expr::of(1u8) << x` where the order matters.
///
/// ```
/// use nxla::{Expr, jit};
///
/// let (rate, count) = (0.5f32, 4usize);
/// let f = jit(move |x: Expr| 2.0 * &x * rate + &x / count);
/// assert_eq!(f.call(2.0f32)?.item::<f32>()?, 2.5);
/// # Ok::<(), nxla::Error>(())
/// ```
///
/// [`Jit::call`]: crate::Jit::call
#[derive(Clone)]
pub struct Expr(runtime::Expr);

impl From<runtime::Expr> for Expr {
    fn from(expr: runtime::Expr) -> Self {
        Self(expr)
    }
}

impl Deref for Expr {
    type Target = runtime::Expr;

    fn deref(&self) -> &runtime::Expr {
        &self.0
    }
}

impl AsRef<runtime::Expr> for Expr {
    fn as_ref(&self) -> &runtime::Expr {
        &self.0
    }
}

impl Operand for Expr {
    #[inline]
    fn view(&self) -> View<'_> {
        View::Expr(&self.0)
    }
}

impl Expr {
    /// The node `id` of a trace.
    ///
    /// ```
    /// use nxla::{Expr, jit};
    ///
    /// let f = jit(|x: Expr| -> nxla::Result<Expr> {
    ///     let sine = x.sin();
    ///     Ok(Expr::new(sine.trace().clone(), sine.id()?) + 1)
    /// });
    /// assert_eq!(f.call(0.0f32)?.item::<f32>()?, 1.0);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    pub fn new(trace: Trace, id: ExprId) -> Self {
        Self(runtime::Expr::new(trace, id))
    }

    /// The node `id` of a trace, whose first axes are these vectorized ones.
    ///
    /// ```
    /// use nxla::{Expr, Tensor, VectorAxis, Vectors, jit};
    ///
    /// let sums = jit(|x: Expr| -> nxla::Result<Expr> {
    ///     let rows = Vectors::new([VectorAxis { name: "row".into(), size: 2 }]);
    ///     let rows = Expr::with_vectors(x.trace().clone(), x.id()?, rows);
    ///     Ok(rows.sum().devectorize(false))
    /// });
    /// assert_eq!(sums.call(Tensor::from([[1, 2], [3, 4]]))?.to_vec::<i32>()?, [3, 7]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    pub fn with_vectors(trace: Trace, id: ExprId, vectors: Vectors) -> Self {
        Self(runtime::Expr::with_vectors(trace, id, vectors))
    }

    /// A value of a trace that could not be built.
    pub(crate) fn failed(trace: &Trace) -> Self {
        Self(runtime::Expr::failed(trace.clone()))
    }

    /// A tensor or a number inside the trace under way on this thread. A small tensor becomes part
    /// of the program, a large one a further input of it.
    ///
    /// ```
    /// use nxla::{Expr, jit};
    ///
    /// let count = jit(|x: Expr| [Expr::of(0), x]);
    /// assert_eq!(count.call(1)?[0].item::<f64>()?, 0.0);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    #[track_caller]
    pub fn of(value: impl Operand) -> Expr {
        let operands = [value.view()];
        let trace = Self::trace_of(&operands);
        apply::in_trace(&trace, Location::caller(), &operands, |_, ids| Ok(ids[0]))
    }

    /// The trace under way on this thread. Without one, a trace that has failed already, so that
    /// using its values is an error.
    pub(crate) fn current_trace() -> Trace {
        Self::trace_of::<View<'_>>(&[])
    }

    /// The trace of the first traced operand, or that under way on this thread.
    pub(crate) fn trace_of<O: Operand>(operands: &[O]) -> Trace {
        Self::traced_among(operands).cloned().or_else(Trace::current).unwrap_or_else(|| {
            let trace = Trace::new();
            let why = "an expression is made outside a traced function; use `Tensor` there";
            trace.fail(Error::Usage(why.into()));
            trace
        })
    }

    /// The trace of the first traced operand.
    fn traced_among<O: Operand>(operands: &[O]) -> Option<&Trace> {
        operands.iter().find_map(|operand| match operand.view() {
            View::Expr(expr) => Some(expr.trace()),
            View::Tensor(_) | View::Number(_) => None,
        })
    }
}

/// Two types without values. The compiler reports the bound of `comparisons!` only if it cannot rule out at
/// first that a comparison applies, for which it needs several impls without a bound.
enum Never {}
enum Neither {}

macro_rules! comparisons {
    ($($ty:ty)*; $($empty:ty)*) => {
        $(
            #[doc(hidden)]
            impl<'a> PartialEq<$ty> for Expr
            where
                &'a Expr: sealed::Known,
            {
                fn eq(&self, _: &$ty) -> bool {
                    false
                }
            }

            #[doc(hidden)]
            impl<'a> PartialOrd<$ty> for Expr
            where
                &'a Expr: sealed::Known,
            {
                fn partial_cmp(&self, _: &$ty) -> Option<std::cmp::Ordering> {
                    None
                }
            }
        )*
        $(
            impl PartialEq<$empty> for Expr {
                fn eq(&self, never: &$empty) -> bool {
                    match *never {}
                }
            }

            impl PartialOrd<$empty> for Expr {
                fn partial_cmp(&self, never: &$empty) -> Option<std::cmp::Ordering> {
                    match *never {}
                }
            }
        )*
    };
}

// One float and one integer, so that the type of a literal is known.
comparisons!(Expr f64 i32; Never Neither);

impl fmt::Display for Expr {
    /// The expression line by line.
    ///
    /// ```
    /// use nxla::{Expr, jit};
    ///
    /// let text = std::cell::Cell::new(String::new());
    /// let f = jit(|x: Expr| {
    ///     let y = x.sin();
    ///     text.set(y.to_string());
    ///     y
    /// });
    /// f.call(1.0f32)?;
    /// let expected = "#nxla.Expr<\n  f32\n  \n  parameter a:0   f32\n  b = sin a       f32\n>";
    /// assert_eq!(text.take(), expected);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// The other operand on the left or the right; an expression is always traced.
#[track_caller]
fn traced(op: BinaryOp, left: View<'_>, right: View<'_>) -> Expr {
    let operands = [left, right];
    let trace = Expr::traced_among(&operands).expect("one of the two is traced");
    apply::in_trace(trace, Location::caller(), &operands, |graph, ids| {
        Ok(graph.make(Op::Binary(op), ids)?)
    })
}

/// Data on both sides is computed at once.
fn computed(op: BinaryOp, left: View<'_>, right: View<'_>) -> Result<Tensor> {
    apply::op_at_once(&Op::Binary(op), &[left, right])
}

/// What may stand next to a tensor so that the result is computed at once: everything but what is
/// traced.
///
/// ```
/// use nxla::{Concrete, Tensor};
///
/// fn halved(x: impl Concrete) -> nxla::Result<Tensor> {
///     Tensor::from(0.5f32) * x
/// }
///
/// assert_eq!(halved(3)?.item::<f32>()?, 1.5);
/// assert_eq!(halved(&Tensor::from([1.0f32, 2.0]))?.to_vec::<f32>()?, [0.5, 1.0]);
/// # Ok::<(), nxla::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither a tensor nor a number",
    note = "other data becomes a tensor by `Tensor::from` or `Tensor::new`"
)]
pub trait Concrete: Operand + sealed::Sealed {}

mod sealed {
    /// Keeps [`super::Concrete`] to tensors and numbers.
    pub trait Sealed {}

    /// Implemented for nothing: its message is that of a comparison by an operator of Rust.
    #[diagnostic::on_unimplemented(
        message = "a traced value has no value yet, so Rust cannot compare it",
        note = "compare by `x.greater(0)`, `x.less(y)` or `x.equal(y)`, whose results are traced values",
        note = "branch on a traced value by `cond(x.greater(0), || …, || …)`, or choose between elements \
                by `x.greater(0).select(…, …)`"
    )]
    pub trait Known {}

    /// What nothing is: it gives the compiler something to say of a number on the wrong side.
    #[diagnostic::on_unimplemented(
        message = "a number on the left of an operator is `f64` or `i32`",
        label = "the number on the left is of another type",
        note = "on the right it may be of any type: write `x * rate` instead of `rate * x`",
        note = "where the order matters, write `Expr::of(rate) - x` in a trace, and \
                `Tensor::from(rate) - x` outside"
    )]
    pub trait OnTheRight {}
}

macro_rules! concrete {
    ($($ty:ty)*) => {
        $(
            impl sealed::Sealed for $ty {}
            impl Concrete for $ty {}
        )*
    };
}

concrete!(Tensor &Tensor bool u8 u16 u32 u64 usize i8 i16 i32 i64 i128 isize f32 f64);

macro_rules! operators {
    ($numbers:tt $others:tt; $($trait:ident $method:ident $op:ident;)*) => {
        $(
            operators!(@generic $trait $method $op (Operand) traced Expr; Expr &Expr);
            operators!(@generic $trait $method $op (Concrete) computed Result<Tensor>;
                Tensor &Tensor);
            operators!(@pairs $trait $method $op traced Expr;
                (Tensor, Expr) (Tensor, &Expr) (&Tensor, Expr) (&Tensor, &Expr));
            operators!(@numbers $trait $method $op traced Expr, Expr; $numbers);
            operators!(@numbers $trait $method $op computed Tensor, Result<Tensor>; $numbers);
            operators!(@others $trait $method $op traced Expr, Expr; $others);
            operators!(@others $trait $method $op computed Tensor, Result<Tensor>; $others);
        )*
    };
    (@generic $trait:ident $method:ident $op:ident ($bound:ident) $how:ident $output:ty;
        $($left:ty)*) => {
        $(
            impl<T: $bound> $trait<T> for $left {
                type Output = $output;

                #[track_caller]
                fn $method(self, other: T) -> $output {
                    $how(BinaryOp::$op, self.view(), other.view())
                }
            }
        )*
    };
    (@numbers $trait:ident $method:ident $op:ident $how:ident $right:ty, $output:ty;
        ($($number:ty)*)) => {
        $(
            operators!(@pairs $trait $method $op $how $output;
                ($number, $right) ($number, &$right));
        )*
    };
    // These never apply. The lifetime keeps the compiler from finding that out too early.
    (@others $trait:ident $method:ident $op:ident $how:ident $right:ty, $output:ty;
        ($($number:ty)*)) => {
        $(
            operators!(@never $trait $method $op $how $output; $number, $right);
            operators!(@never $trait $method $op $how $output; $number, &$right);
        )*
    };
    (@never $trait:ident $method:ident $op:ident $how:ident $output:ty; $left:ty, $right:ty) => {
        #[doc(hidden)]
        impl<'a> $trait<$right> for $left
        where
            &'a Expr: sealed::OnTheRight,
        {
            type Output = $output;

            #[track_caller]
            fn $method(self, other: $right) -> $output {
                $how(BinaryOp::$op, self.view(), other.view())
            }
        }
    };
    (@pairs $trait:ident $method:ident $op:ident $how:ident $output:ty;
        $(($left:ty, $right:ty))*) => {
        $(
            impl $trait<$right> for $left {
                type Output = $output;

                #[track_caller]
                fn $method(self, other: $right) -> $output {
                    $how(BinaryOp::$op, self.view(), other.view())
                }
            }
        )*
    };
}

// On the left there is one float and one integer only. With two, Rust would not know what a literal
// is before the function ends, and refuse both `(1.0 - x).log()` and `jit(|x: Expr| 2.0 * x).call(y)`.
operators! {
    (i32 f64) (u8 u16 u32 u64 usize i8 i16 i64 i128 isize f32);
    Add add Add;
    Sub sub Subtract;
    Mul mul Multiply;
    Div div Divide;
    Rem rem Remainder;
}

operators! {
    (i32) (u8 u16 u32 u64 usize i8 i16 i64 i128 isize);
    BitAnd bitand BitwiseAnd;
    BitOr bitor BitwiseOr;
    BitXor bitxor BitwiseXor;
    Shl shl LeftShift;
    Shr shr RightShift;
}

macro_rules! unary_operators {
    ($($trait:ident $method:ident $function:ident;)*) => {
        $(
            impl $trait for Expr {
                type Output = Expr;

                #[track_caller]
                fn $method(self) -> Expr {
                    Expr::$function(&self)
                }
            }

            impl $trait for &Expr {
                type Output = Expr;

                #[track_caller]
                fn $method(self) -> Expr {
                    Expr::$function(self)
                }
            }

            impl $trait for Tensor {
                type Output = Result<Tensor>;

                fn $method(self) -> Result<Tensor> {
                    Tensor::$function(&self)
                }
            }

            impl $trait for &Tensor {
                type Output = Result<Tensor>;

                fn $method(self) -> Result<Tensor> {
                    Tensor::$function(self)
                }
            }
        )*
    };
}

unary_operators! {
    Neg neg negate;
    Not not bitwise_not;
}
