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
    pub fn new(trace: Trace, id: ExprId) -> Self {
        Self(runtime::Expr::new(trace, id))
    }

    /// The node `id` of a trace, whose first axes are these vectorized ones.
    pub fn with_vectors(trace: Trace, id: ExprId, vectors: Vectors) -> Self {
        Self(runtime::Expr::with_vectors(trace, id, vectors))
    }

    /// A tensor or a number inside the trace under way on this thread. A small tensor becomes part
    /// of the program, a large one a further input of it.
    ///
    /// ```
    /// use nxla::{Expr, jit};
    ///
    /// let count = jit(|x: Expr| [Expr::of(0), x]);
    /// assert_eq!(count.call(1)?[0].item()?.as_f64(), 0.0);
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
    apply::at_once(op.name(), &[left, right], |graph, ids| Ok(graph.make(Op::Binary(op), ids)?))
}

macro_rules! operators {
    ($numbers:tt; $($trait:ident $method:ident $op:ident;)*) => {
        $(
            impl<T: Operand> $trait<T> for Expr {
                type Output = Expr;

                #[track_caller]
                fn $method(self, other: T) -> Expr {
                    traced(BinaryOp::$op, self.view(), other.view())
                }
            }

            impl<T: Operand> $trait<T> for &Expr {
                type Output = Expr;

                #[track_caller]
                fn $method(self, other: T) -> Expr {
                    traced(BinaryOp::$op, self.view(), other.view())
                }
            }

            operators!(@pairs $trait $method $op traced Expr;
                (Tensor, Expr) (Tensor, &Expr) (&Tensor, Expr) (&Tensor, &Expr));
            operators!(@pairs $trait $method $op computed Result<Tensor>;
                (Tensor, Tensor) (Tensor, &Tensor) (&Tensor, Tensor) (&Tensor, &Tensor));
            operators!(@numbers $trait $method $op $numbers);
        )*
    };
    (@numbers $trait:ident $method:ident $op:ident ($($number:ty)*)) => {
        $(
            operators!(@pairs $trait $method $op traced Expr; ($number, Expr) ($number, &Expr));
            operators!(@pairs $trait $method $op computed Result<Tensor>;
                ($number, Tensor) ($number, &Tensor) (Tensor, $number) (&Tensor, $number));
        )*
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

// One float and one integer only, so that it is clear what a literal is.
operators! {
    (f64 i32);
    Add add Add;
    Sub sub Subtract;
    Mul mul Multiply;
    Div div Divide;
    Rem rem Remainder;
}

operators! {
    (i32);
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
