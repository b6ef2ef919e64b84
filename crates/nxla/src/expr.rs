//! Traced values.

use std::fmt;
use std::iter::{Product, Sum};
use std::ops::{
    Add, AddAssign, BitAnd, BitAndAssign, BitOr, BitOrAssign, BitXor, BitXorAssign, Deref, Div,
    DivAssign, Mul, MulAssign, Neg, Not, Rem, RemAssign, Shl, ShlAssign, Shr, ShrAssign, Sub,
    SubAssign,
};
use std::panic::Location;

use nxla_expr::{BinaryOp, ExprId, Op};
use nxla_runtime::{self as runtime, Error, Nested, Operand, Result, Trace, VectorAxes, View};

use crate::apply;
use crate::tensor::Tensor;

/// A traced value: a node of the graph of a [`Trace`].
///
/// Operators and methods build further nodes and never panic. The trace records an error (such as
/// shapes that do not broadcast) with its source line, and [`Jit::call`] returns it.
///
/// A scalar takes the dtype of the expression with which it is combined, if possible. The value of an
/// integer counts, not its Rust type: next to integers, the result has the first dtype that holds
/// the integer, so `x + 300` is `u16` for `u8`, and `x * -1` is `s16`. A float next to integers makes
/// the result `f32`, also for an `f64`. Without another operand, `bool` becomes `pred`, floats become
/// `f32`, and integers the first of `s32`, `s64` and `u64` that holds them.
///
/// On the right of an operator, a scalar may have any type; on the left, it must be `f64` or `i32`,
/// the types of literals. For a `rate` of another type, write `x * rate`, or `Expr::of(1u8) << x` for
/// operators that do not commute.
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
pub struct Expr(runtime::RawExpr);

impl From<runtime::RawExpr> for Expr {
    fn from(expr: runtime::RawExpr) -> Self {
        Self(expr)
    }
}

/// Converts numbers to a constant of the current trace of this thread, as [`Expr::of`] does.
///
/// ```
/// use nxla::{Expr, Tensor, jit};
///
/// let rotate = jit(|x: Expr| Expr::from([[0.0f32, -1.0], [1.0, 0.0]]).dot(x));
/// assert_eq!(rotate.call(Tensor::from([1.0f32, 2.0]))?.to_vec::<f32>()?, [-2.0, 1.0]);
/// # Ok::<(), nxla::Error>(())
/// ```
impl<T: Nested, const N: usize> From<[T; N]> for Expr {
    #[track_caller]
    fn from(items: [T; N]) -> Self {
        Expr::of(Tensor::from(items))
    }
}

impl<T: Nested> From<&[T]> for Expr {
    #[track_caller]
    fn from(items: &[T]) -> Self {
        Expr::of(Tensor::from(items))
    }
}

impl<T: Nested> From<Vec<T>> for Expr {
    #[track_caller]
    fn from(items: Vec<T>) -> Self {
        Expr::of(Tensor::from(items))
    }
}

macro_rules! constants {
    ($($ty:ty)*) => {
        $(
            impl From<$ty> for Expr {
                #[track_caller]
                fn from(value: $ty) -> Self {
                    Expr::of(value)
                }
            }
        )*
    };
}

constants!(Tensor &Tensor bool u8 u16 u32 u64 usize i8 i16 i32 i64 i128 isize f32 f64);

impl Deref for Expr {
    type Target = runtime::RawExpr;

    fn deref(&self) -> &runtime::RawExpr {
        &self.0
    }
}

impl AsRef<runtime::RawExpr> for Expr {
    fn as_ref(&self) -> &runtime::RawExpr {
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
    /// Creates an expression for the node `id` of a trace. The trace records an error if it has no
    /// such node, or if the node is a tuple.
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
    #[must_use]
    #[track_caller]
    pub fn new(trace: Trace, id: ExprId) -> Self {
        Self::from_node("Expr::new", trace, id, VectorAxes::NONE)
    }

    /// Creates an expression for the node `id` of a trace whose leading axes are vectorized. The trace
    /// records an error if it has no such node, or if the node is a tuple or has other leading axes.
    ///
    /// ```
    /// use nxla::{Expr, Tensor, VectorAxis, VectorAxes, jit};
    ///
    /// let sums = jit(|x: Expr| -> nxla::Result<Expr> {
    ///     let rows = VectorAxes::new([VectorAxis { name: "row".into(), size: 2 }]);
    ///     let rows = Expr::with_vectors(x.trace().clone(), x.id()?, rows);
    ///     Ok(rows.sum().devectorize(false))
    /// });
    /// assert_eq!(sums.call(Tensor::from([[1, 2], [3, 4]]))?.to_vec::<i32>()?, [3, 7]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    #[track_caller]
    pub fn with_vectors(trace: Trace, id: ExprId, vectors: VectorAxes) -> Self {
        Self::from_node("Expr::with_vectors", trace, id, vectors)
    }

    #[track_caller]
    fn from_node(function: &str, trace: Trace, id: ExprId, vectors: VectorAxes) -> Self {
        // Operations reject the expressions of a finished trace, which has no graph.
        let invalid = trace.read(|graph| {
            if id.index() >= graph.len() {
                return Some(format!(
                    "id: must be one of the {} nodes of the trace; got {id}",
                    graph.len()
                ));
            }
            let Some(ty) = graph.ty(id).as_tensor() else {
                return Some(format!("id: must be a tensor; got the tuple {id}"));
            };
            let begins = ty.shape.starts_with(&vectors.sizes());
            (!begins).then(|| format!("vectors: must be the leading axes of {ty}; got {vectors}"))
        });
        match invalid.flatten() {
            Some(why) => {
                let error = Error::Arguments { function: function.into(), why };
                trace.fail(Location::caller(), error);
                Self::new_failed(&trace)
            }
            None => Self::of_node(trace, id, vectors),
        }
    }

    /// Creates an expression for a node that the trace is known to have.
    pub(crate) fn of_node(trace: Trace, id: ExprId, vectors: VectorAxes) -> Self {
        Self(runtime::RawExpr::with_vectors(trace, id, vectors))
    }

    /// Creates an expression that represents an error of the trace.
    pub(crate) fn new_failed(trace: &Trace) -> Self {
        Self(runtime::RawExpr::new_failed(trace.clone()))
    }

    /// Converts a tensor or a scalar to an expression of the current trace of this thread. A small
    /// tensor becomes a constant of the program, a large tensor an additional input. `Expr::from`
    /// also converts arrays and lists of numbers.
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
        apply::in_trace("of", &trace, Location::caller(), &operands, |_, ids| Ok(ids[0]))
    }

    /// Returns the current trace of this thread. Without one, returns a failed trace, so that using
    /// its values is an error.
    #[track_caller]
    pub(crate) fn current_trace() -> Trace {
        Self::trace_of::<View<'_>>(&[])
    }

    /// Returns the trace of the first traced operand, or the current trace of this thread.
    #[track_caller]
    pub(crate) fn trace_of<O: Operand>(operands: &[O]) -> Trace {
        let location = Location::caller();
        Self::traced_among(operands).cloned().or_else(Trace::current).unwrap_or_else(|| {
            let trace = Trace::new();
            let why = "an `Expr` must be created in a traced function; use `Tensor` outside";
            trace.fail(location, Error::Usage(why.into()));
            trace
        })
    }

    /// Returns the trace of the first traced operand.
    fn traced_among<O: Operand>(operands: &[O]) -> Option<&Trace> {
        operands.iter().find_map(|operand| match operand.view() {
            View::Expr(expr) => Some(expr.trace()),
            View::Tensor(_) | View::Number(_) => None,
        })
    }
}

/// A type without values. The compiler reports the bound of `comparisons!` only if it cannot
/// exclude the comparison early, which requires several impls without a bound.
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

// One float and one integer type, so that the type of a literal is inferred.
comparisons!(Expr f64 i32; Never Neither);

impl fmt::Display for Expr {
    /// Writes the expression line by line.
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

/// Applies an op to operands. At least one operand must be an expression.
#[track_caller]
fn trace_op(op: BinaryOp, left: View<'_>, right: View<'_>) -> Expr {
    let operands = [left, right];
    let trace = Expr::traced_among(&operands).expect("one of the two is traced");
    apply::in_trace(op.name(), trace, Location::caller(), &operands, |graph, ids| {
        Ok(graph.make(Op::Binary(op), ids)?)
    })
}

/// Applies an op eagerly to tensors and scalars.
#[track_caller]
fn compute_op(op: BinaryOp, left: View<'_>, right: View<'_>) -> Result<Tensor> {
    apply::run_op_eagerly(&Op::Binary(op), &[left, right])
}

/// An operand that is not traced, so that an operation with a tensor is computed eagerly.
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
    note = "convert other data with `Tensor::from` or `Tensor::new`"
)]
pub trait Concrete: Operand + sealed::Sealed {}

mod sealed {
    /// Restricts [`super::Concrete`] to tensors and scalars.
    pub trait Sealed {}

    /// Never implemented: its message explains that Rust cannot compare traced values.
    #[diagnostic::on_unimplemented(
        message = "Rust cannot compare traced values, which have no elements during the trace",
        note = "compare with `x.greater(0)`, `x.less(y)` or `x.equal(y)`, which return traced values",
        note = "branch with `cond(x.greater(0), || …, || …)`, or select elements with \
                `x.greater(0).select(…, …)`"
    )]
    pub trait Known {}

    /// Never implemented: its message explains the types of scalars on the left of an operator.
    #[diagnostic::on_unimplemented(
        message = "a scalar on the left of an operator must be `f64` or `i32`",
        label = "the scalar on the left has another type",
        note = "a scalar on the right may have any type: write `x * rate` instead of `rate * x`",
        note = "for operators that do not commute, write `Expr::of(rate) - x` in a trace and \
                `Tensor::from(rate) - x` elsewhere"
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
            operators!(@generic $trait $method $op (Operand) trace_op Expr; Expr &Expr);
            operators!(@generic $trait $method $op (Concrete) compute_op Result<Tensor>;
                Tensor &Tensor);
            operators!(@pairs $trait $method $op trace_op Expr;
                (Tensor, Expr) (Tensor, &Expr) (&Tensor, Expr) (&Tensor, &Expr));
            operators!(@numbers $trait $method $op trace_op Expr, Expr; $numbers);
            operators!(@numbers $trait $method $op compute_op Tensor, Result<Tensor>; $numbers);
            operators!(@others $trait $method $op trace_op Expr, Expr; $others);
            operators!(@others $trait $method $op compute_op Tensor, Result<Tensor>; $others);
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
    // These impls never apply. The lifetime prevents the compiler from detecting this too early.
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

// On the left, only one float and one integer type are supported. With two, Rust could not infer
// the type of a literal, and would reject both `(1.0 - x).log()` and `jit(|x: Expr| 2.0 *
// x).call(y)`.
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

macro_rules! assignments {
    ($($trait:ident $method:ident $op:ident;)*) => {
        $(
            impl<T: Operand> $trait<T> for Expr {
                #[track_caller]
                fn $method(&mut self, other: T) {
                    *self = trace_op(BinaryOp::$op, self.view(), other.view());
                }
            }
        )*
    };
}

assignments! {
    AddAssign add_assign Add;
    SubAssign sub_assign Subtract;
    MulAssign mul_assign Multiply;
    DivAssign div_assign Divide;
    RemAssign rem_assign Remainder;
    BitAndAssign bitand_assign BitwiseAnd;
    BitOrAssign bitor_assign BitwiseOr;
    BitXorAssign bitxor_assign BitwiseXor;
    ShlAssign shl_assign LeftShift;
    ShrAssign shr_assign RightShift;
}

/// Adds expressions in order; the sum of no expressions is the scalar 0.
///
/// ```
/// use nxla::{Expr, jit};
///
/// let total = jit(|xs: Vec<Expr>| {
///     let mut total: Expr = xs.iter().map(|x| x * x).sum();
///     total += 1;
///     total
/// });
/// assert_eq!(total.call(vec![3, 4])?.item::<i32>()?, 26);
/// # Ok::<(), nxla::Error>(())
/// ```
impl Sum for Expr {
    #[track_caller]
    fn sum<I: Iterator<Item = Expr>>(exprs: I) -> Expr {
        exprs.reduce(|sum, x| sum + x).unwrap_or_else(|| Expr::of(0))
    }
}

impl<'a> Sum<&'a Expr> for Expr {
    #[track_caller]
    fn sum<I: Iterator<Item = &'a Expr>>(exprs: I) -> Expr {
        exprs.cloned().sum()
    }
}

/// Multiplies expressions in order; the product of no expressions is the scalar 1.
///
/// ```
/// use nxla::{Expr, jit};
///
/// let product = jit(|xs: Vec<Expr>| xs.iter().product::<Expr>());
/// assert_eq!(product.call(vec![3, 4])?.item::<i32>()?, 12);
/// # Ok::<(), nxla::Error>(())
/// ```
impl Product for Expr {
    #[track_caller]
    fn product<I: Iterator<Item = Expr>>(exprs: I) -> Expr {
        exprs.reduce(|product, x| product * x).unwrap_or_else(|| Expr::of(1))
    }
}

impl<'a> Product<&'a Expr> for Expr {
    #[track_caller]
    fn product<I: Iterator<Item = &'a Expr>>(exprs: I) -> Expr {
        exprs.cloned().product()
    }
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

                #[track_caller]
                fn $method(self) -> Result<Tensor> {
                    Tensor::$function(&self)
                }
            }

            impl $trait for &Tensor {
                type Output = Result<Tensor>;

                #[track_caller]
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
