//! Functions that can be traced: their arguments and results.

use std::cell::Cell;
use std::panic::Location;

use super::Container;
use crate::{Error, Result, Trace};

/// The return type of a traced function: a container, or a `Result` of one.
///
/// Functions that call a traced function, such as [`grad`](crate::grad), [`vmap`](crate::vmap),
/// [`cond`](crate::cond) and [`scan`](crate::scan), accept both. If the traced function returns a
/// `Result`, so do they, with its error. Conditions of loops and functions of
/// [`reduce`](crate::Expr::reduce) return expressions only.
///
/// ```
/// use nxla::{Expr, Tensor, grad, jit};
///
/// let squares = |x: Expr| -> nxla::Result<Expr> {
///     x.axis_size(0)?;
///     Ok(x.pow(2).sum())
/// };
/// assert_eq!(jit(squares).call(Tensor::from([1, 2]))?.item::<i32>()?, 5);
/// assert!(jit(squares).call(1).is_err());
///
/// let slopes = jit(move |x: Expr| Ok::<_, nxla::Error>(grad(squares)(x)? + 1));
/// assert_eq!(slopes.call(Tensor::from([1.0f32, 2.0]))?.to_vec::<f32>()?, [3.0, 5.0]);
/// # Ok::<(), nxla::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither a container of expressions nor a `Result` of one",
    note = "derive `nxla::Container` for your struct, which must be generic in its leaves: \
            `struct Layer<T> {{ weights: T }}` is a container as `Layer<Expr>`",
    note = "convert a scalar or a tensor to an expression: `Expr::of(1.0)`",
    note = "return `nxla::Result` from a fallible function, and convert other errors with \
            `Error::user`"
)]
pub trait Outputs {
    /// The container.
    type Container: Container;

    /// The return type of a function with the value `T` that calls the traced function: `T` or
    /// `Result<T>`.
    type Return<T>;

    /// Returns the container.
    ///
    /// # Errors
    /// Returns the error of the function.
    fn into_container(self) -> Result<Self::Container>;

    /// Converts the result of a function that calls the traced function.
    ///
    /// # Panics
    /// Panics if the traced function returns a container, and `result` is an error.
    fn from_result<T>(result: Result<T>) -> Self::Return<T>;
}

impl<C: Container> Outputs for C {
    type Container = C;
    type Return<T> = T;

    fn into_container(self) -> Result<C> {
        Ok(self)
    }

    fn from_result<T>(result: Result<T>) -> T {
        result.expect("a function that returns a container has no error")
    }
}

impl<C: Container, E> Outputs for Result<C, E>
where
    Error: From<E>,
{
    type Container = C;
    type Return<T> = Result<T>;

    fn into_container(self) -> Result<C> {
        Ok(self?)
    }

    fn from_result<T>(result: Result<T>) -> Result<T> {
        result
    }
}

/// Distinguishes an error of a traced function from an error of the code that calls it.
#[derive(Default)]
pub(crate) struct TracedErrors {
    occurred: Cell<bool>,
}

impl TracedErrors {
    /// Returns `true` if the traced function has returned an error.
    pub(crate) fn has_error(&self) -> bool {
        self.occurred.get()
    }

    /// Returns the container that a traced function returned.
    pub(crate) fn check<R: Outputs>(&self, returned: R) -> Result<R::Container> {
        returned.into_container().inspect_err(|_| self.occurred.set(true))
    }
}

/// Calls `build`, which calls a traced function, by [`Trace::attempt`]. Returns an error of the
/// traced function; the trace records other errors.
pub(crate) fn attempt_call<T>(
    trace: &Trace,
    location: &'static Location<'static>,
    build: impl FnOnce(&TracedErrors) -> Result<T>,
) -> Result<Option<T>> {
    let errors = TracedErrors::default();
    let built = trace.attempt(location, || match trace.drop_hooks_on_error(|| build(&errors)) {
        Err(error) if errors.has_error() => Ok(Err(error)),
        built => built.map(Ok),
    });
    built.transpose()
}

/// A function that can be traced: of one to twelve containers of expressions.
///
/// Functions and closures implement it. `Inputs` is the tuple of the argument types, which
/// distinguishes functions with different numbers of arguments.
///
/// ```
/// use nxla::{Expr, jit};
///
/// fn doubled(x: Expr) -> Expr {
///     x * 2
/// }
///
/// assert_eq!(jit(doubled).call(4)?.item::<i32>()?, 8);
/// assert_eq!(jit(|x: Expr, y: Expr| x + y).call((4, 5))?.item::<i32>()?, 9);
/// # Ok::<(), nxla::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a function of one to twelve containers of expressions",
    note = "write the types of the arguments: `|x: Expr, (a, b): (Expr, Expr)| …`",
    note = "use containers of expressions as arguments and results; derive `nxla::Container` for \
            your structs",
    note = "pass more than twelve arguments as one tuple or struct",
    note = "call a jitted function inside the function with `Jit::join`, which returns expressions; \
            `Jit::call` returns tensors",
    note = "return `nxla::Result` from a fallible function, and convert other errors with \
            `Error::user`",
    note = "write `Expr::of(&w).dot(x)` for a captured tensor `w`: the methods of `Tensor` compute \
            eagerly",
    note = "write a function without arguments as `|(): ()| …`"
)]
pub trait Function<Inputs> {
    /// The number of arguments.
    const COUNT: usize;

    /// The argument, or the tuple of several arguments.
    type Arguments: Container;
    /// The results.
    type Results: Container;

    /// Calls the function.
    ///
    /// ```
    /// use nxla::{Expr, Function, jit};
    ///
    /// fn twice<F>(function: F) -> impl Fn(Expr) -> nxla::Result<Expr>
    /// where
    ///     F: Function<(Expr,), Arguments = Expr, Results = Expr>,
    /// {
    ///     move |x| function.invoke(function.invoke(x)?)
    /// }
    ///
    /// assert_eq!(jit(twice(|x: Expr| x * 3)).call(2)?.item::<i32>()?, 18);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the error of the function.
    fn invoke(&self, arguments: Self::Arguments) -> Result<Self::Results>;
}

impl<F, A, R> Function<(A,)> for F
where
    F: Fn(A) -> R,
    A: Container,
    R: Outputs,
{
    const COUNT: usize = 1;
    type Arguments = A;
    type Results = R::Container;

    fn invoke(&self, argument: A) -> Result<R::Container> {
        self(argument).into_container()
    }
}

macro_rules! functions {
    ($(($($name:ident $index:tt),+))*) => {
        $(
            impl<Fun, Ret, $($name),+> Function<($($name,)+)> for Fun
            where
                Fun: Fn($($name),+) -> Ret,
                Ret: Outputs,
                $($name: Container),+
            {
                const COUNT: usize = [$($index),+].len();
                type Arguments = ($($name,)+);
                type Results = Ret::Container;

                fn invoke(&self, arguments: ($($name,)+)) -> Result<Ret::Container> {
                    self($(arguments.$index),+).into_container()
                }
            }
        )*
    };
}

functions! {
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, F 5)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11)
}
