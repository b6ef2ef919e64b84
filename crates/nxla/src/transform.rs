//! Gradients and other derivatives of functions.

mod derivatives;

pub use derivatives::{
    hessian, hessian_diagonal, hvp, jacfwd, jacobian, jacrev, jvp, linearize, vjp,
};

use std::panic::Location;

use crate::containers::{Container, Leaves, Tree, leaves_of, trace_of};
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
pub fn grad<F, A>(function: F) -> impl Fn(A) -> A
where
    F: Fn(A) -> Expr,
    A: Container,
{
    let both = value_and_grad(function);
    move |argument| both(argument).1
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
pub trait Loss: sealed::Sealed {
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
pub fn value_and_grad<F, A, R>(function: F) -> impl Fn(A) -> (R::Value, A)
where
    F: Fn(A) -> R,
    A: Container,
    R: Loss,
{
    let location = Location::caller();
    move |argument| {
        let wrt = leaves_of(&argument);
        let trace = trace_of(&wrt.items);
        let mut given = None;
        let found = trace.attempt(location, || {
            values_and_gradients(&trace, &wrt.items, |tracers| {
                let tracers = tracers.into_iter().map(Expr::from);
                let mut tracers = Leaves::new(tracers, wrt.structure.clone());
                let (value, rest) = function(A::rebuild(&mut tracers)).split_value();
                let passed_on = leaves_of(&rest);
                let mut results = inner(std::slice::from_ref(&value));
                results.extend(inner(&passed_on.items));
                given = Some((value, rest));
                Ok(Differentiated { value: results[0].clone(), results, more: passed_on.structure })
            })
        });
        match found {
            Some((results, gradients, structure)) => {
                let mut results = results.into_iter().map(Expr::from);
                let value = results.next().expect("the value is the first result");
                let rest = R::Rest::rebuild(&mut Leaves::new(results, structure));
                let gradients = gradients.into_iter().map(Expr::from);
                (R::join_value(value, rest), A::rebuild(&mut Leaves::new(gradients, wrt.structure)))
            }
            // The trace has an error, so the results are dropped.
            None => {
                let result = match given {
                    Some((value, rest)) => R::join_value(value, rest),
                    None => {
                        let (value, rest) = function(A::rebuild(&mut wrt.clone())).split_value();
                        R::join_value(value, rest)
                    }
                };
                (result, argument)
            }
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
pub fn safe_where(
    condition: &Expr,
    x: &Expr,
    inside: impl Operand,
    function: impl FnOnce(Expr) -> Expr,
    otherwise: impl Operand,
) -> Expr {
    let value = function(condition.select(x, inside));
    condition.select(value, otherwise)
}
