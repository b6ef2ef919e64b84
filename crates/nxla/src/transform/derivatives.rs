//! Other derivatives: directional derivatives, linear maps, Jacobians and second derivatives.

use std::panic::Location;

use nxla_runtime::{self as runtime, Differentiable, Linearized, Mode, differentiable};

use crate::containers::{
    Container, Expected, Leaves, Outputs, Structure, Tree, attempt_call, leaves_of, trace_of,
};
use crate::expr::Expr;
use crate::vectors::inner;
use crate::{Result, Trace};

/// The line of the user's program that derives a function. Errors of the derivative have it.
type Line = &'static Location<'static>;

/// A function that was called on tracers.
struct TracedCall {
    trace: Trace,
    location: Line,
    function: Differentiable,
    argument: Leaves<Expr>,
    result: Leaves<Expr>,
}

impl TracedCall {
    fn attempt<T>(&self, build: impl FnOnce() -> Result<T>) -> Option<T> {
        self.trace.attempt(self.location, build)
    }
}

/// Calls a function on tracers for its argument, with the tangents that
/// [`differentiable`] accepts. The inner `Err` contains the result for the argument itself if this
/// fails; the trace records the error.
///
/// # Errors
/// Returns the error of the function.
fn call<A: Container, R: Outputs>(
    function: &impl Fn(A) -> R,
    location: Line,
    argument: A,
    tangents: Option<&[runtime::RawExpr]>,
) -> Result<Result<TracedCall, (A, R::Container)>> {
    let values = leaves_of(&argument);
    let trace = trace_of(&values.items);
    let called = attempt_call(&trace, location, |errors| {
        differentiable(&trace, &values.items, tangents, |tracers| {
            let tracers = tracers.into_iter().map(Expr::from);
            let mut tracers = Leaves::new(tracers, values.structure.clone());
            let results = leaves_of(&errors.check(function(A::rebuild(&mut tracers)))?);
            let (results, more) = (inner(&results.items), results.structure);
            Ok(runtime::Called { results, passed_on: Vec::new(), more })
        })
    })?;
    Ok(match called {
        Some((function, results, structure)) => {
            let result = Leaves::new(results.into_iter().map(Expr::from), structure);
            Ok(TracedCall { trace, location, function, argument: values, result })
        }
        None => {
            let again = A::rebuild(&mut values.clone());
            Err((argument, function(again).into_container()?))
        }
    })
}

fn rebuilt<C: Container>(items: Vec<runtime::RawExpr>, structure: &Structure) -> C {
    C::rebuild(&mut Leaves::new(items.into_iter().map(Expr::from), structure.clone()))
}

/// Returns the function that computes the Jacobian-vector product: the result of `function`, and
/// its tangent for a tangent of the argument.
///
/// ```
/// use nxla::{Expr, Tensor, jit, jvp};
///
/// let sine = jit(|x: Expr, dx: Expr| jvp(|x: Expr| x.sin())(x, dx));
/// let (y, dy) = sine.call((0.0f32, 3.0f32))?;
/// assert_eq!((y.item::<f64>()?, dy.item::<f64>()?), (0.0, 3.0));
/// # Ok::<(), nxla::Error>(())
/// ```
#[track_caller]
pub fn jvp<F, A, R>(function: F) -> impl Fn(A, A) -> R::Return<(R::Container, R::Container)>
where
    F: Fn(A) -> R,
    A: Container,
    R: Outputs,
{
    let location = Location::caller();
    move |argument, tangent| {
        let names = ("jvp", "tangent");
        R::from_result(push_forward(names, location, &function, argument, &tangent))
    }
}

/// Implements [`jvp`] for a function and an argument that errors name.
fn push_forward<A: Container, R: Outputs>(
    (name, argument_name): (&'static str, &'static str),
    location: Line,
    function: &impl Fn(A) -> R,
    argument: A,
    tangent: &A,
) -> Result<(R::Container, R::Container)> {
    let tangents = inner(&leaves_of(tangent).items);
    let called = match call(function, location, argument, Some(&tangents))? {
        Ok(called) => called,
        Err((_, result)) => return Ok((result.map(Expr::clone), result)),
    };
    let found = called.attempt(|| {
        let (function, root) = (name, ("", argument_name));
        let expected = Expected { function, argument: argument_name, of: "the argument", root };
        let tangents = expected.check(tangent, &called.argument)?;
        called.function.jvp(&tangents.items)
    });
    let (results, changes) = or_results(&called, found);
    Ok((rebuilt(results, &called.result.structure), rebuilt(changes, &called.result.structure)))
}

/// The results of a function and their tangents.
type Changes = (Vec<runtime::RawExpr>, Vec<runtime::RawExpr>);

/// Returns the results, or results of the right structure if the trace has an error.
fn or_results(called: &TracedCall, found: Option<Changes>) -> Changes {
    found.unwrap_or_else(|| (called.function.placeholders(), called.function.placeholders()))
}

/// The derivative of a function at one point, for repeated application. Values that do not depend
/// on its argument are computed once.
struct Map {
    trace: Trace,
    location: Line,
    derivative: Linearized,
    /// The argument of the map.
    argument: Leaves<Expr>,
    /// The structure of the result of the map.
    result: Structure,
}

impl Map {
    /// Returns the result for an argument, which errors name.
    fn apply<A: Container, R: Container>(&self, expected: Expected, argument: &A) -> Option<R> {
        let Linearized { known, map } = &self.derivative;
        let results = self.trace.attempt(self.location, || {
            let leaves = expected.check(argument, &self.argument)?;
            map.apply(&self.trace, known, &leaves.items)
        })?;
        Some(rebuilt(results, &self.result))
    }
}

/// Returns the result of a function, and its derivative as a linear map.
fn linearize_call<A: Container, R: Outputs>(
    function: &impl Fn(A) -> R,
    location: Line,
    argument: A,
    mode: Mode,
) -> Result<(R::Container, Option<Map>)> {
    let called = match call(function, location, argument, None)? {
        Ok(called) => called,
        Err((_, result)) => return Ok((result, None)),
    };
    let found = called.attempt(|| called.function.linear(mode));
    let structure = &called.result.structure;
    Ok(match found {
        None => (rebuilt(called.function.placeholders(), structure), None),
        Some((values, derivative)) => {
            let result = rebuilt(values, structure);
            let (argument, of_result) = match mode {
                Mode::Forward => (called.argument, called.result.structure),
                Mode::Reverse => (called.result, called.argument.structure),
            };
            let trace = called.trace;
            (result, Some(Map { trace, location, derivative, argument, result: of_result }))
        }
    })
}

/// Returns the result of `function`, and the map from cotangents of the result to cotangents of the
/// argument (the vector-Jacobian product).
///
/// ```
/// use nxla::{Expr, jit, vjp};
///
/// let both = jit(|x: Expr| {
///     let (y, pull) = vjp(|x: Expr| x.pow(2), x);
///     (y.clone(), pull(y.ones_like() * 3))
/// });
/// let (y, dx) = both.call(5.0f32)?;
/// assert_eq!((y.item::<f64>()?, dx.item::<f64>()?), (25.0, 30.0));
/// # Ok::<(), nxla::Error>(())
/// ```
#[track_caller]
pub fn vjp<A: Container, R: Outputs>(
    function: impl Fn(A) -> R,
    argument: A,
) -> R::Return<(R::Container, impl Fn(R::Container) -> A)> {
    let fallback = argument.map(Expr::clone);
    let called = linearize_call(&function, Location::caller(), argument, Mode::Reverse);
    R::from_result(called.map(|(result, map)| {
        let pull = move |cotangents: R::Container| {
            let (argument, root) = ("cotangent", ("", "cotangent"));
            let expected = Expected { function: "vjp", argument, of: "the result", root };
            let found = map.as_ref().and_then(|map| map.apply(expected, &cotangents));
            found.unwrap_or_else(|| fallback.map(Expr::clone))
        };
        (result, pull)
    }))
}

/// Returns the result of `function`, and the map from tangents of the argument to tangents of the
/// result: a [`jvp`] whose values that do not depend on the tangent are computed once.
///
/// ```
/// use nxla::{Expr, jit, linearize};
///
/// let steps = jit(|x: Expr, dx: Expr| {
///     let (y, push) = linearize(|x: Expr| x.exp(), x);
///     (y, push(dx.clone()), push(dx * 2))
/// });
/// let (y, once, twice) = steps.call((0.0f32, 1.5f32))?;
/// assert_eq!((once.item::<f64>()?, twice.item::<f64>()?), (1.5, 3.0));
/// # assert_eq!(y.item::<f64>()?, 1.0);
/// # Ok::<(), nxla::Error>(())
/// ```
#[track_caller]
pub fn linearize<A: Container, R: Outputs>(
    function: impl Fn(A) -> R,
    argument: A,
) -> R::Return<(R::Container, impl Fn(A) -> R::Container)> {
    let called = linearize_call(&function, Location::caller(), argument, Mode::Forward);
    R::from_result(called.map(|(result, map)| {
        let fallback = result.map(Expr::clone);
        let push = move |tangents: A| {
            let (argument, root) = ("tangent", ("", "tangent"));
            let expected = Expected { function: "linearize", argument, of: "the argument", root };
            let found = map.as_ref().and_then(|map| map.apply(expected, &tangents));
            found.unwrap_or_else(|| fallback.map(Expr::clone))
        };
        (result, push)
    }))
}

/// The derivative of a result by an argument: the argument in place of each leaf of the result.
type Jacobian<R, A> = <R as Container>::Of<A>;

/// Returns the derivative of every element of each result by every element of each argument, in a
/// mode or the cheaper mode.
fn matrix<A: Container, R: Outputs>(
    function: &impl Fn(A) -> R,
    location: Line,
    argument: A,
    mode: Option<Mode>,
) -> Result<Jacobian<R::Container, A>> {
    let arguments = leaves_of(&argument);
    // In forward mode, no direction has vectorized axes.
    let tangents: Option<&[runtime::RawExpr]> = match mode {
        Some(Mode::Forward) => Some(&[]),
        Some(Mode::Reverse) | None => None,
    };
    let called = call(function, location, argument, tangents)?;
    let (result, found): (R::Container, _) = match called {
        Ok(called) => {
            let mode = mode.unwrap_or_else(|| called.function.cheaper_mode());
            let found = called.attempt(|| called.function.jacobian(mode));
            (rebuilt(called.function.placeholders(), &called.result.structure), found)
        }
        Err((_, result)) => (result, None),
    };
    let blocks: Vec<runtime::RawExpr> = match found {
        Some((_, rows)) => rows.into_iter().flatten().collect(),
        // If the trace has an error, return any blocks of the right number.
        None => leaves_of(&result).items.iter().flat_map(|_| inner(&arguments.items)).collect(),
    };
    Ok(rebuilt(blocks, &arguments.structure.in_each_leaf_of(&result)))
}

/// Returns the function that computes the Jacobian by forward mode. The Jacobian has the axes of
/// the result, then the axes of the argument. One pass computes all elements of the argument, which
/// is efficient for tall Jacobians.
///
/// For containers, the result is a container too: the container of the result, with the container
/// of the argument in place of each leaf.
///
/// ```
/// use nxla::{Expr, Tensor, jacfwd, jit};
///
/// let squares = jit(jacfwd(|x: Expr| x.pow(2)));
/// let found = squares.call(&Tensor::from(vec![1.0f32, 2.0]))?;
/// assert_eq!(found.to_vec::<f32>()?, [2.0, 0.0, 0.0, 4.0]);
///
/// let polar = jit(jacfwd(|(r, angle): (Expr, Expr)| [&r * angle.cos(), &r * angle.sin()]));
/// let [(x_by_r, _), (_, y_by_angle)] = polar.call((2.0f32, 0.0f32))?;
/// assert_eq!((x_by_r.item::<f32>()?, y_by_angle.item::<f32>()?), (1.0, 2.0));
/// # Ok::<(), nxla::Error>(())
/// ```
#[track_caller]
pub fn jacfwd<F, A, R>(function: F) -> impl Fn(A) -> R::Return<Jacobian<R::Container, A>>
where
    F: Fn(A) -> R,
    A: Container,
    R: Outputs,
{
    let location = Location::caller();
    move |argument| R::from_result(matrix(&function, location, argument, Some(Mode::Forward)))
}

/// Returns the function that computes the Jacobian by reverse mode, like [`jacfwd`]. One pass
/// computes all elements of the result, which is efficient for wide Jacobians.
///
/// ```
/// use nxla::{Expr, Tensor, jacrev, jit};
///
/// let slopes = jit(jacrev(|x: Expr| x.pow(2)));
/// let slopes = slopes.call(Tensor::from([1.0f32, 2.0]))?;
/// assert_eq!(slopes.to_vec::<f32>()?, [2.0, 0.0, 0.0, 4.0]);
/// # Ok::<(), nxla::Error>(())
/// ```
#[track_caller]
pub fn jacrev<F, A, R>(function: F) -> impl Fn(A) -> R::Return<Jacobian<R::Container, A>>
where
    F: Fn(A) -> R,
    A: Container,
    R: Outputs,
{
    let location = Location::caller();
    move |argument| R::from_result(matrix(&function, location, argument, Some(Mode::Reverse)))
}

/// Returns the function that computes the Jacobian by [`jacfwd`] or [`jacrev`], depending on the
/// number of directions.
///
/// ```
/// use nxla::{Expr, Tensor, jacobian, jit};
///
/// let slopes = jit(jacobian(|x: Expr| x.pow(2)));
/// let slopes = slopes.call(Tensor::from([1.0f32, 2.0]))?;
/// assert_eq!(slopes.to_vec::<f32>()?, [2.0, 0.0, 0.0, 4.0]);
/// # Ok::<(), nxla::Error>(())
/// ```
#[track_caller]
pub fn jacobian<F, A, R>(function: F) -> impl Fn(A) -> R::Return<Jacobian<R::Container, A>>
where
    F: Fn(A) -> R,
    A: Container,
    R: Outputs,
{
    let location = Location::caller();
    move |argument| R::from_result(matrix(&function, location, argument, None))
}

/// Returns the function that computes the Hessian of a function with a scalar result, forward over
/// reverse: the axes of the argument twice.
///
/// For a container, there is a block for each pair of leaves, in a container of containers.
///
/// ```
/// use nxla::{Expr, Tensor, hessian, jit};
///
/// let cubes = jit(hessian(|x: Expr| x.pow(3).sum()));
/// let found = cubes.call(&Tensor::from(vec![1.0f32, 2.0]))?;
/// assert_eq!(found.to_vec::<f32>()?, [6.0, 0.0, 0.0, 12.0]);
///
/// let mixed = jit(hessian(|(a, b): (Expr, Expr)| a.pow(2) * b));
/// let ((aa, ab), (ba, bb)) = mixed.call((3.0f32, 5.0f32))?;
/// assert_eq!((aa.item::<f32>()?, ab.item::<f32>()?), (10.0, 6.0));
/// assert_eq!((ba.item::<f32>()?, bb.item::<f32>()?), (6.0, 0.0));
/// # Ok::<(), nxla::Error>(())
/// ```
#[track_caller]
pub fn hessian<F, A, R>(function: F) -> impl Fn(A) -> R::Return<Jacobian<A, A>>
where
    F: Fn(A) -> R,
    A: Container,
    R: Outputs<Container = Expr>,
{
    let location = Location::caller();
    let slopes = super::gradient(function, location);
    move |argument| R::from_result(matrix(&slopes, location, argument, Some(Mode::Forward)))
}

/// Returns the function that computes the second derivative by each element of the argument, in the
/// same container. A result that is not a scalar is summed.
///
/// If the gradient is an element-wise function, one forward pass suffices, as for the sum of a
/// function of each element; otherwise there is a direction for each element.
///
/// ```
/// use nxla::{Expr, Tensor, hessian_diagonal, jit};
///
/// let curvatures = jit(hessian_diagonal(|x: Expr| x.pow(3).sum()));
/// let found = curvatures.call(&Tensor::from(vec![1.0f32, 2.0]))?;
/// assert_eq!(found.to_vec::<f32>()?, [6.0, 12.0]);
/// # Ok::<(), nxla::Error>(())
/// ```
#[track_caller]
pub fn hessian_diagonal<F, A, R>(function: F) -> impl Fn(A) -> R::Return<A>
where
    F: Fn(A) -> R,
    A: Container,
    R: Outputs<Container = Expr>,
{
    let location = Location::caller();
    let slopes = super::gradient(function, location);
    move |argument| {
        let called = call(&slopes, location, argument, None);
        R::from_result(called.map(|called| match called {
            Ok(called) => {
                let found = called.attempt(|| called.function.diagonal());
                let diagonal = found.unwrap_or_else(|| called.function.placeholders());
                rebuilt(diagonal, &called.argument.structure)
            }
            Err((argument, _)) => argument,
        }))
    }
}

/// Returns the function that computes the product of the Hessian with a direction, without the
/// Hessian: forward over reverse, at a few times the cost of the function.
///
/// ```
/// use nxla::{Expr, Tensor, hvp, jit};
///
/// let product = jit(|x: Expr, v: Expr| hvp(|x: Expr| x.pow(3).sum())(x, v));
/// let (x, v) = (Tensor::from(vec![1.0f32, 2.0]), Tensor::from(vec![1.0f32, 10.0]));
/// assert_eq!(product.call((&x, &v))?.to_vec::<f32>()?, [6.0, 120.0]);
/// # Ok::<(), nxla::Error>(())
/// ```
#[track_caller]
pub fn hvp<F, A, R>(function: F) -> impl Fn(A, A) -> R::Return<A>
where
    F: Fn(A) -> R,
    A: Container,
    R: Outputs<Container = Expr>,
{
    let location = Location::caller();
    let slopes = super::gradient(function, location);
    move |argument, direction| {
        let names = ("hvp", "direction");
        let pushed = push_forward(names, location, &slopes, argument, &direction);
        R::from_result(pushed.map(|(_, product)| product))
    }
}
