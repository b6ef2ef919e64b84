//! Gradients and other derivatives of functions.

mod derivatives;

pub use derivatives::{
    hessian, hessian_diagonal, hvp, jacfwd, jacobian, jacrev, jvp, linearize, vjp,
};

use std::panic::Location;

use crate::Result;
use crate::containers::{Container, Leaves, Outputs, Tree, attempt_call, leaves_of, trace_of};
use crate::expr::Expr;
use crate::vectors::inner;
use nxla_runtime::{Differentiated, Operand, values_and_gradients};

/// Returns the function that computes the gradient of `function` with respect to its argument, which may
/// be a container.
///
/// **If the value is not a scalar, the sum of its elements is differentiated.** If the argument has an
/// integer dtype, the gradient is `f32`. A gradient through a
/// [`runtime_call`](crate::runtime_call) without a custom rule around the call is an error.
///
/// The result can be jitted, called inside another function, or differentiated once more. Values that the
/// function captures are constant.
///
/// ```
/// use nxla::{Expr, Tensor, grad, jit};
///
/// let cube = |x: Expr| x.pow(3);
/// let slope = jit(grad(grad(cube))).call(2.0f32)?;
/// assert_eq!(slope.item::<f64>()?, 12.0);
///
/// let slopes = jit(grad(cube)).call(Tensor::from([1, 2]))?;
/// assert_eq!(slopes.to_vec::<f32>()?, [3.0, 12.0]);
/// # Ok::<(), nxla::Error>(())
/// ```
#[track_caller]
pub fn grad<F, A, R>(function: F) -> impl Fn(A) -> R::Return<A>
where
    F: Fn(A) -> R,
    A: Container,
    R: Outputs<Container = Expr>,
{
    let slopes = gradient(function, Location::caller());
    move |argument| R::from_result(slopes(argument))
}

/// Implements [`grad`] with a `Result`.
fn gradient<A: Container, R: Outputs<Container = Expr>>(
    function: impl Fn(A) -> R,
    location: &'static Location<'static>,
) -> impl Fn(A) -> Result<A> {
    move |argument| Ok(value_and_gradient(&function, location, argument)?.1)
}

mod sealed {
    use crate::containers::Container;
    use crate::expr::Expr;

    /// Restricts [`super::Loss`] to a value, alone or first in a pair.
    pub trait Sealed {}

    impl Sealed for Expr {}
    impl<C: Container> Sealed for (Expr, C) {}
}

/// The result of a function for its gradient: the value to differentiate, alone or first in a pair
/// whose second item, any container, is passed through.
///
/// ```
/// use nxla::{Expr, jit, value_and_grad};
///
/// // The loss, and predictions that are passed on.
/// let loss = |w: Expr| {
///     let predictions = w * 3;
///     (predictions.pow(2), predictions)
/// };
/// let ((loss, predictions), gradient) = jit(value_and_grad(loss)).call(2.0)?;
/// assert_eq!(loss.item::<f64>()?, 36.0);
/// assert_eq!(predictions.item::<f64>()?, 6.0);
/// assert_eq!(gradient.item::<f64>()?, 36.0);
/// # Ok::<(), nxla::Error>(())
/// ```
pub trait Loss: Container + sealed::Sealed {
    /// The container that is passed through.
    type Rest: Container;
    /// The result for the caller.
    type Value;

    /// Returns the value and the other results.
    fn split_value(self) -> (Expr, Self::Rest);

    /// Combines the value and the other results.
    fn join_value(value: Expr, rest: Self::Rest) -> Self::Value;
}

impl Loss for Expr {
    type Rest = ();
    type Value = Expr;

    fn split_value(self) -> (Expr, ()) {
        (self, ())
    }

    fn join_value(value: Expr, (): ()) -> Expr {
        value
    }
}

impl<C: Container> Loss for (Expr, C) {
    type Rest = C;
    type Value = (Expr, C);

    fn split_value(self) -> (Expr, C) {
        self
    }

    fn join_value(value: Expr, rest: C) -> (Expr, C) {
        (value, rest)
    }
}

/// Returns the function that computes the value of `function` and its gradient with respect to its
/// argument, which may be a container.
///
/// The function returns the value, or a pair of the value and a container that is passed through.
/// Other arguments are captured:
///
/// ```
/// use nxla::{Expr, Tensor, jit, value_and_grad};
///
/// let loss = |(w, b): &(Expr, Expr), x: &Expr| ((w * x + b) - 1.0).pow(2).sum();
/// let step = jit(move |parameters: (Expr, Expr), x: Expr| {
///     value_and_grad(|parameters| loss(&parameters, &x))(parameters)
/// });
/// let parameters = (Tensor::from(2.0f32), Tensor::from(0.0f32));
/// let (value, (dw, db)) = step.call((&parameters, 3.0f32))?;
/// assert_eq!(value.item::<f64>()?, 25.0);
/// assert_eq!((dw.item::<f64>()?, db.item::<f64>()?), (30.0, 10.0));
/// # Ok::<(), nxla::Error>(())
/// ```
#[track_caller]
pub fn value_and_grad<F, A, R>(function: F) -> impl Fn(A) -> R::Return<ValueAndGradient<R, A>>
where
    F: Fn(A) -> R,
    A: Container,
    R: Outputs<Container: Loss>,
{
    let location = Location::caller();
    move |argument| R::from_result(value_and_gradient(&function, location, argument))
}

/// The value of a function that returns `R`, and its gradient for an argument of type `A`.
type ValueAndGradient<R, A> = (<<R as Outputs>::Container as Loss>::Value, A);

/// Implements [`value_and_grad`] with a `Result`.
fn value_and_gradient<A: Container, R: Outputs<Container: Loss>>(
    function: &impl Fn(A) -> R,
    location: &'static Location<'static>,
    argument: A,
) -> Result<ValueAndGradient<R, A>> {
    let wrt = leaves_of(&argument);
    let trace = trace_of(&wrt.items);
    let mut given = None;
    let found = attempt_call(&trace, location, |errors| {
        values_and_gradients(&trace, &wrt.items, |tracers| {
            let tracers = tracers.into_iter().map(Expr::from);
            let mut tracers = Leaves::new(tracers, wrt.structure.clone());
            let result = errors.check(function(A::rebuild(&mut tracers)))?;
            let (value, rest) = result.split_value();
            let passed_on = leaves_of(&rest);
            let mut results = inner(std::slice::from_ref(&value));
            results.extend(inner(&passed_on.items));
            given = Some((value, rest));
            Ok(Differentiated { value: results[0].clone(), results, more: passed_on.structure })
        })
    })?;
    let join = <R::Container as Loss>::join_value;
    match found {
        Some((results, gradients, structure)) => {
            let mut results = results.into_iter().map(Expr::from);
            let value = results.next().expect("the value is the first result");
            let rest = Tree::rebuild(&mut Leaves::new(results, structure));
            let gradients = gradients.into_iter().map(Expr::from);
            Ok((join(value, rest), A::rebuild(&mut Leaves::new(gradients, wrt.structure))))
        }
        // The trace has an error, so the results are dropped.
        None => {
            let (value, rest) = match given {
                Some(given) => given,
                None => function(A::rebuild(&mut wrt.clone())).into_container()?.split_value(),
            };
            Ok((join(value, rest), argument))
        }
    }
}

/// Returns `function(x)` where `condition` is true, and `otherwise` elsewhere, with a gradient that
/// ignores unselected elements.
///
/// The gradient of a `select` is NaN where `function` has an infinite slope that is not selected,
/// because the slope is multiplied by 0. Here, `function` receives `inside` for unselected
/// elements, an argument for which it is smooth.
///
/// ```
/// use nxla::{Expr, Tensor, grad, jit, safe_where};
///
/// let root = |x: Expr| safe_where(&x.greater(0), &x, 1, |x| x.sqrt(), 0).sum();
/// let slopes = jit(grad(root)).call(Tensor::from([0.0f32, 4.0]))?;
/// assert_eq!(slopes.to_vec::<f32>()?, [0.0, 0.25]);
/// # Ok::<(), nxla::Error>(())
/// ```
#[must_use]
#[track_caller]
pub fn safe_where<R: Outputs<Container = Expr>>(
    condition: &Expr,
    x: &Expr,
    inside: impl Operand,
    function: impl FnOnce(Expr) -> R,
    otherwise: impl Operand,
) -> R::Return<Expr> {
    R::from_result(match function(condition.select(x, inside)).into_container() {
        Ok(value) => Ok(condition.select(value, otherwise)),
        Err(error) => Err(error),
    })
}
