//! Loops inside a trace: `while_loop`, and functions that are based on it.

use std::marker::PhantomData;
use std::panic::Location;

use nxla_expr::{Difference, ErrorKind, Misfit, Region, Replay, TensorType};
use nxla_tensor::{Scalar, promote, to_i64};

use super::control::{exprs, vectorized_nodes};
use crate::Operand;
use crate::Trace;
use crate::apply;
use crate::containers::{
    Container, Expected, Leaves, Outputs, Structure, attempt_call, leaves_of, locate_error,
    trace_of,
};
use crate::expr::Expr;
use crate::{Error, Result};
use nxla_runtime::vectors::control::Vectorized;
use nxla_runtime::vectors::loops::{Iteration, LoopFunctions, LoopResults, Rows, trace_loop};

/// Repeats `state = body(state)` while `condition(state)` is nonzero, and returns the first state
/// for which it is zero.
///
/// The next state must have the structure, dtypes and shapes of the previous state. Captured values
/// are computed once, before the loop. If the condition is vectorized, the loop continues while it
/// holds for some entry, and finished entries keep their state; the condition is then traced
/// several times.
///
/// ```
/// use nxla::{Expr, jit, while_loop};
///
/// let digits = jit(|n: Expr| {
///     let start = (n, Expr::of(0));
///     while_loop(start, |(n, _)| n.greater(0), |(n, count)| (n.quotient(10), count + 1)).1
/// });
/// assert_eq!(digits.call(2024)?.item::<f64>()?, 4.0);
/// # Ok::<(), nxla::Error>(())
/// ```
#[must_use = "write `let _ = …` for a loop that runs only for its effects"]
#[track_caller]
pub fn while_loop<S: Container, R: Outputs<Container = S>>(
    initial: S,
    condition: impl FnMut(S) -> Expr,
    body: impl FnMut(S) -> R,
) -> R::Return<S> {
    while_loop_with(Replay::default(), initial, condition, body)
}

/// Does the same as [`while_loop`], with a replay method for its derivative, which visits the
/// iterations in reverse order.
///
/// ```
/// use nxla::{Expr, Replay, ReplayMethod, grad, jit, while_loop_with};
///
/// // Sixty-four iterations; the gradient stores a few states.
/// let few = Replay { method: ReplayMethod::Sqrt, ..Replay::default() };
/// let halved = move |x: Expr| {
///     let start = (Expr::of(0), x);
///     while_loop_with(few, start, |(i, _)| i.less(64), |(i, x)| (i + 1, x.sin() * 0.5)).1
/// };
/// assert_eq!(jit(grad(halved)).call(0.0f64)?.item::<f64>()?, 0.5f64.powi(64));
/// # Ok::<(), nxla::Error>(())
/// ```
#[must_use = "write `let _ = …` for a loop that runs only for its effects"]
#[track_caller]
pub fn while_loop_with<S: Container, R: Outputs<Container = S>>(
    replay: Replay,
    initial: S,
    condition: impl FnMut(S) -> Expr,
    body: impl FnMut(S) -> R,
) -> R::Return<S> {
    let expected = expected_state("while_loop", ("", "state"));
    R::from_result(repeat((expected, replay), initial, condition, body))
}

/// Builds a [`while_loop`] for a function whose users know the path of a part of the state by
/// another name.
#[track_caller]
fn repeat<S: Container, R: Outputs<Container = S>>(
    (expected, replay): (Expected, Replay),
    initial: S,
    condition: impl FnMut(S) -> Expr,
    mut body: impl FnMut(S) -> R,
) -> Result<S> {
    let location = Location::caller();
    let start = leaves_of(&initial);
    let trace = trace_of(&start.items);
    let located = |error| locate_error(error, expected.function, &[expected.root], &initial);
    let values = attempt_call(&trace, location, |errors| {
        let body = |state| Ok((errors.check(body(state))?, None));
        let functions = Loop::new((expected, &trace), &start.structure, location, condition, body);
        let traced = functions.trace(replay, &start);
        if errors.has_error() { traced } else { traced.map_err(located) }
    })?;
    Ok(match values {
        None => initial,
        Some((values, _)) => S::rebuild(&mut Leaves::new(exprs(&trace, values), start.structure)),
    })
}

/// The functions of a loop on states of the type `S`.
struct Loop<'a, S, F, B> {
    /// The requirement on the states that `body` returns.
    expected: Expected,
    trace: &'a Trace,
    structure: &'a Structure,
    location: &'static Location<'static>,
    condition: F,
    body: B,
    state: PhantomData<fn(S) -> S>,
}

impl<'a, S, F, B> Loop<'a, S, F, B>
where
    S: Container,
    F: FnMut(S) -> Expr,
    B: FnMut(S) -> Result<(S, Option<Rows>)>,
{
    fn new(
        (expected, trace): (Expected, &'a Trace),
        structure: &'a Structure,
        location: &'static Location<'static>,
        condition: F,
        body: B,
    ) -> Self {
        Self { expected, trace, structure, location, condition, body, state: PhantomData }
    }

    /// Returns the last state and the rows of the loop.
    fn trace(mut self, replay: Replay, start: &Leaves<Expr>) -> Result<LoopResults> {
        let initial = vectorized_nodes(self.trace, start)?;
        trace_loop(self.trace, replay, initial, &mut self)
    }

    fn state(&self, values: &[Vectorized]) -> S {
        let exprs = exprs(self.trace, values.iter().cloned());
        S::rebuild(&mut Leaves::new(exprs, self.structure.clone()))
    }
}

impl<S, F, B> LoopFunctions for Loop<'_, S, F, B>
where
    S: Container,
    F: FnMut(S) -> Expr,
    B: FnMut(S) -> Result<(S, Option<Rows>)>,
{
    type Error = Error;

    fn condition(&mut self, state: &[Vectorized]) -> Result<Vectorized> {
        let state = self.state(state);
        let holds = leaves_of(&(self.condition)(state));
        Ok(nodes(self.trace, &holds)?.remove(0))
    }

    fn body(&mut self, state: &[Vectorized]) -> Result<Iteration> {
        let previous = self.state(state);
        let (next, rows) = (self.body)(previous)?;
        let following = nodes(self.trace, &leaves_of(&next))?;
        self.expected.check(&next, &leaves_of(&self.state(state)))?;
        Ok(Iteration { state: following, rows })
    }

    fn convert_error(&self, error: Error) -> Error {
        error.in_function(self.expected.function)
    }

    fn mark_line(&self) -> Result<()> {
        self.trace.enter_rust(self.location)
    }
}

/// Returns the results of a function of a loop as nodes. An error of an operator in the function
/// takes precedence.
fn nodes(trace: &Trace, leaves: &Leaves<Expr>) -> Result<Vec<Vectorized>> {
    match trace.take_failure() {
        Some(error) => Err(error),
        None => vectorized_nodes(trace, leaves),
    }
}

/// Repeats `state = body(i, state)` for `i` from `lower` up to and excluding `upper`. Both are
/// integer scalars and may be traced; `i` has their promoted dtype.
///
/// ```
/// use nxla::{fori, jit, Expr};
///
/// let factorial = jit(|n: Expr| fori(1, n + 1, Expr::of(1), |i, product| product * i));
/// assert_eq!(factorial.call(5)?.item::<f64>()?, 120.0);
/// # Ok::<(), nxla::Error>(())
/// ```
#[must_use = "write `let _ = …` for a loop that runs only for its effects"]
#[track_caller]
pub fn fori<S: Container, R: Outputs<Container = S>>(
    lower: impl Operand,
    upper: impl Operand,
    initial: S,
    body: impl FnMut(Expr, S) -> R,
) -> R::Return<S> {
    fori_with(Replay::default(), lower, upper, initial, body)
}

/// Does the same as [`fori`], with a replay method for its derivative; see [`while_loop_with`].
///
/// ```
/// use nxla::Replay;
/// use nxla::{Expr, fori_with, grad, jit};
///
/// let cube = |x: Expr| fori_with(Replay::default(), 0, 3, Expr::of(1.0), |_, y| y * &x);
/// assert_eq!(jit(grad(cube)).call(2.0f32)?.item::<f32>()?, 12.0);
/// # Ok::<(), nxla::Error>(())
/// ```
#[must_use = "write `let _ = …` for a loop that runs only for its effects"]
#[track_caller]
pub fn fori_with<S: Container, R: Outputs<Container = S>>(
    replay: Replay,
    lower: impl Operand,
    upper: impl Operand,
    initial: S,
    mut body: impl FnMut(Expr, S) -> R,
) -> R::Return<S> {
    let (first, upper) = (first_count("fori", &lower, &upper), upper.to_value());
    let step = |(i, state): (Expr, S)| Ok::<_, Error>((&i + 1, body(i, state).into_container()?));
    let expected = expected_state("fori", (".1", "state"));
    let last = repeat((expected, replay), (first, initial), |(i, _)| i.less(&upper), step);
    R::from_result(last.map(|(_, state)| state))
}

/// Returns the requirement on the states of a loop.
fn expected_state(function: &'static str, root: (&'static str, &'static str)) -> Expected {
    Expected { function, argument: "body", of: "the initial state", root }
}

/// Returns the lower bound of a counter in the promoted dtype of both bounds. In a narrower dtype
/// the counter would overflow before it reaches the upper bound.
#[track_caller]
fn first_count(function: &str, lower: &impl Operand, upper: &impl Operand) -> Expr {
    let bounds = [lower.view(), upper.view()];
    let trace = Expr::trace_of(&bounds);
    apply::in_trace(function, &trace, Location::caller(), &bounds, |graph, ids| {
        let &[lower, upper] = ids else { unreachable!("as many as operands") };
        for (argument, bound) in [("lower", lower), ("upper", upper)] {
            let found = graph.dtype(bound);
            if !found.is_integer() {
                let kind = ErrorKind::DType { argument, found, expected: "an integer" };
                return Err(graph.error(function, kind).into());
            }
        }
        Ok(graph.as_type(lower, promote(graph.dtype(lower), graph.dtype(upper)))?)
    })
}

/// Carries a state over the elements of the first axis of `xs`, and collects a result for each:
/// `(carry, y) = body(carry, x)`.
///
/// The first axes of all values in `xs` must have equal sizes. The results are stacked along a new
/// first axis. The next carry must have the structure, dtypes and shapes of the previous carry.
///
/// ```
/// use nxla::{Expr, Tensor, jit, scan};
///
/// let sums = jit(|xs: Expr| scan(Expr::of(0), xs, |total, x| (&total + x, total)));
/// let (total, before) = sums.call(Tensor::from(vec![1, 2, 3]))?;
/// assert_eq!(total.item::<f64>()?, 6.0);
/// assert_eq!(before.to_vec::<i32>()?, [0, 1, 3]);
/// # Ok::<(), nxla::Error>(())
/// ```
#[must_use = "write `let _ = …` for a loop that runs only for its effects"]
#[track_caller]
pub fn scan<C: Container, X: Container, Y: Container, R: Outputs<Container = (C, Y)>>(
    initial: C,
    xs: X,
    body: impl FnMut(C, X) -> R,
) -> R::Return<(C, Y)> {
    scan_with(Replay::default(), initial, xs, body)
}

/// Does the same as [`scan`], with a replay method for its derivative; see [`while_loop_with`].
///
/// ```
/// use nxla::Replay;
/// use nxla::{Expr, Tensor, jit, scan_with};
///
/// let sums = jit(|xs: Expr| {
///     scan_with(Replay::default(), Expr::of(0), xs, |total, x| (&total + x, total)).0
/// });
/// assert_eq!(sums.call(Tensor::from([1, 2, 3]))?.item::<i32>()?, 6);
/// # Ok::<(), nxla::Error>(())
/// ```
#[must_use = "write `let _ = …` for a loop that runs only for its effects"]
#[track_caller]
pub fn scan_with<C: Container, X: Container, Y: Container, R: Outputs<Container = (C, Y)>>(
    replay: Replay,
    initial: C,
    xs: X,
    body: impl FnMut(C, X) -> R,
) -> R::Return<(C, Y)> {
    R::from_result(scan_elements((Order::Forward, replay), initial, xs, body))
}

/// Does the same as [`scan`] from the last element to the first. The results are stacked in the
/// order of the elements.
///
/// ```
/// use nxla::{Expr, Tensor, jit, scan_reverse};
///
/// // Discounted sums of future rewards.
/// let returns = jit(|rewards: Expr| {
///     let step = |later: Expr, reward: Expr| {
///         let total = reward + later * 0.5;
///         (total.clone(), total)
///     };
///     scan_reverse(Expr::of(0.0), rewards, step).1
/// });
/// let found = returns.call(Tensor::from([1.0f32, 2.0, 4.0]))?;
/// assert_eq!(found.to_vec::<f32>()?, [3.0, 4.0, 4.0]);
/// # Ok::<(), nxla::Error>(())
/// ```
#[must_use = "write `let _ = …` for a loop that runs only for its effects"]
#[track_caller]
pub fn scan_reverse<C: Container, X: Container, Y: Container, R: Outputs<Container = (C, Y)>>(
    initial: C,
    xs: X,
    body: impl FnMut(C, X) -> R,
) -> R::Return<(C, Y)> {
    R::from_result(scan_elements((Order::Reverse, Replay::default()), initial, xs, body))
}

/// The order in which a scan visits its elements.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Forward,
    Reverse,
}

/// Carries a state over the elements of the first axis of `xs`.
#[track_caller]
fn scan_elements<C: Container, X: Container, Y: Container, R: Outputs<Container = (C, Y)>>(
    (order, replay): (Order, Replay),
    initial: C,
    xs: X,
    body: impl FnMut(C, X) -> R,
) -> Result<(C, Y)> {
    let leaves = leaves_of(&xs);
    let sizes = || leaves.items.iter().map(|x| x.shape().first().copied());
    let steps = sizes().next().flatten();
    if let Some(steps) = steps
        && sizes().all(|size| size == Some(steps))
    {
        return scan_steps((steps, order, replay), initial, xs, body);
    }
    let types: Vec<String> = leaves.items.iter().map(|x| x.ty().to_string()).collect();
    let why = if types.is_empty() {
        "must contain a tensor; got none (use `scan_times`)".to_owned()
    } else {
        format!("must have first axes of equal sizes; got {}", types.join(", "))
    };
    trace_of(&leaves.items)
        .fail(Location::caller(), ErrorKind::invalid("xs", why).of("scan").into());
    scan_steps((0, order, replay), initial, xs, body)
}

/// Carries a state over a number of steps, and collects a result for each: `(carry, y) =
/// body(carry)`. See [`scan`].
///
/// ```
/// use nxla::{Expr, Tensor, jit, scan_times};
///
/// let powers = jit(|x: Expr| scan_times(4, Expr::of(1), |power| (&power * &x, power)).1);
/// assert_eq!(powers.call(3)?.to_vec::<i32>()?, [1, 3, 9, 27]);
/// # Ok::<(), nxla::Error>(())
/// ```
#[must_use = "write `let _ = …` for a loop that runs only for its effects"]
#[track_caller]
pub fn scan_times<C: Container, Y: Container, R: Outputs<Container = (C, Y)>>(
    steps: usize,
    initial: C,
    mut body: impl FnMut(C) -> R,
) -> R::Return<(C, Y)> {
    let body = |carry, ()| body(carry);
    let options = (steps, Order::Forward, Replay::default());
    R::from_result(scan_steps(options, initial, (), body))
}

#[track_caller]
fn scan_steps<C: Container, X: Container, Y: Container, R: Outputs<Container = (C, Y)>>(
    (steps, order, replay): (usize, Order, Replay),
    initial: C,
    xs: X,
    mut body: impl FnMut(C, X) -> R,
) -> Result<(C, Y)> {
    let elements = leaves_of(&xs);
    if steps == 0 {
        return scan_no_steps(initial, &elements, |carry, x| body(carry, x).into_container());
    }
    let element = |index: &Expr| {
        // The indices are never negative.
        let rows = elements.items.iter().map(|x| x.slice_along_axis(index, 1, 0).squeeze(0));
        X::rebuild(&mut Leaves::new(rows, elements.structure.clone()))
    };
    let before = leaves_of(&initial);
    let trace = trace_of(&before.items);
    let location = Location::caller();
    let end = to_i64(steps);
    let start = (first_count("scan", &0, &end), C::rebuild(&mut before.clone()));
    let start = leaves_of(&start);
    let mut rows_structure = Structure::default();
    let condition = |(index, _): (Expr, C)| index.less(end);
    let expected = expected_state("scan", (".1", "carry"));
    let traced = attempt_call(&trace, location, |errors| {
        let step = |(index, carry): (Expr, C)| {
            let row = match order {
                Order::Forward => index.clone(),
                Order::Reverse => -&index + (end - 1),
            };
            let (next, y) = errors.check(body(carry, element(&row)))?;
            check_carry(location, &before, &next);
            let mut y = leaves_of(&y);
            y.items.iter_mut().for_each(|y| *y = y.new_axis(0));
            let rows = Rows { values: nodes(&trace, &y)?, index: trace.id(&row)?, count: steps };
            rows_structure = y.structure;
            Ok(((&index + 1, next), Some(rows)))
        };
        let functions = Loop::new((expected, &trace), &start.structure, location, condition, step);
        functions.trace(replay, &start)
    })?;
    let Some((state, rows)) = traced else {
        return body(initial, element(&Expr::of(0))).into_container();
    };
    let carry = C::rebuild(&mut Leaves::new(exprs(&trace, state).skip(1), before.structure));
    Ok((carry, Y::rebuild(&mut Leaves::new(exprs(&trace, rows), rows_structure))))
}

/// Returns the results of a scan without steps. Only the types of a step matter; its nodes and
/// hooks are dropped.
#[track_caller]
fn scan_no_steps<C: Container, X: Container, Y: Container>(
    initial: C,
    elements: &Leaves<Expr>,
    body: impl FnOnce(C, X) -> Result<(C, Y)>,
) -> Result<(C, Y)> {
    let before = leaves_of(&initial);
    let trace = trace_of(&before.items);
    let location = Location::caller();
    let from = trace.attempt(location, || trace.edit(|graph| graph.mark()));
    let rows = elements.items.iter().map(|x| {
        let dtype = x.dtype();
        zeros_of(location, &x.sum_over(0), |ty| ty.dtype = dtype)
    });
    let row = X::rebuild(&mut Leaves::new(rows, elements.structure.clone()));
    let (carry, y) = trace.drop_hooks_on_error(|| body(initial, row))?;
    check_carry(location, &before, &carry);
    let mut y = leaves_of(&y);
    for leaf in &mut y.items {
        let axis = leaf.vectors().len();
        let sizes = |(at, &size): (usize, &usize)| if at == axis { 0 } else { size };
        *leaf = zeros_of(location, &leaf.new_axis(0), |ty| {
            ty.shape = ty.shape.iter().enumerate().map(sizes).collect();
        });
    }
    if let Some(from) = from {
        trace.attempt(location, || trace.edit(|graph| graph.drop_effects(from)));
    }
    Ok((C::rebuild(&mut before.clone()), Y::rebuild(&mut y)))
}

/// Returns zeros with the vectorized axes of a value, and with its type after `change`. The type
/// has the vectorized axes in front. `change` must not read expressions, since the trace is locked.
fn zeros_of(
    location: &'static Location<'static>,
    like: &Expr,
    change: impl FnOnce(&mut TensorType),
) -> Expr {
    let trace = like.trace();
    let zeros = trace.attempt(location, || {
        let id = like.id()?;
        trace.build(|graph| {
            let mut ty = graph.tensor_type(id).clone();
            change(&mut ty);
            graph.constant(Scalar::zero(ty.dtype), ty)
        })
    });
    match zeros {
        Some(id) => Expr::of_node(trace.clone(), id, like.vectors().clone()),
        None => Expr::new_failed(trace),
    }
}

/// Applies a function to each element of the first axis, and stacks the results along a new first
/// axis.
///
/// ```
/// use nxla::{Expr, Tensor, jit, map};
///
/// let norms = jit(|rows: Expr| map(rows, |row| row.pow(2).sum()));
/// let rows = Tensor::new(vec![1, 2, 3, 4], [2, 2])?;
/// assert_eq!(norms.call(rows)?.to_vec::<i32>()?, [5, 25]);
/// # Ok::<(), nxla::Error>(())
/// ```
#[must_use = "write `let _ = …` for a loop that runs only for its effects"]
#[track_caller]
pub fn map<X: Container, R: Outputs>(
    xs: X,
    mut function: impl FnMut(X) -> R,
) -> R::Return<R::Container> {
    let body = |(), x| Ok::<_, Error>(((), function(x).into_container()?));
    R::from_result(scan((), xs, body).map(|((), ys)| ys))
}

/// Checks that a step returns a carry of the previous structure and types; the trace records the
/// error.
fn check_carry<C: Container>(
    location: &'static Location<'static>,
    before: &Leaves<Expr>,
    carry: &C,
) {
    let (function, of, root) = ("scan", "the initial carry", ("", "carry"));
    let checked = Expected { function, argument: "body", of, root }.check(carry, before);
    let checked = checked.and_then(|after| {
        let mut pairs = before.items.iter().zip(&after.items).enumerate();
        match pairs.find_map(|(at, (old, new))| misfit(at, &new.ty(), &old.ty())) {
            Some(error) => Err(locate_error(error, function, &[root], carry)),
            None => Ok(()),
        }
    });
    if let Err(error) = checked {
        trace_of(&before.items).fail(location, error);
    }
}

/// Returns the error of a step of a scan that changes the type of the carry, if it does.
fn misfit(result: usize, found: &TensorType, expected: &TensorType) -> Option<Error> {
    let difference = Difference::between(found, expected)?;
    let (found, expected) = (found.to_string(), expected.to_string());
    let misfit = Misfit { region: Region::Body, result, path: None, found, expected, difference };
    Some(ErrorKind::Misfit(misfit.into()).of("scan").into())
}
