//! Construction of loops.
//!
//! A region decides once for all entries. With a vectorized condition a loop continues while any
//! entry does, and keeps the state of entries that have finished (`Repetition`); otherwise it is
//! an ordinary loop (`OpenLoop`). [`trace_loop`] calls users' functions between the steps of the
//! construction.

use std::ops::ControlFlow;

use nxla_expr::{
    Difference, ErrorKind, ExprId, Graph, Mark, Misfit, Region, Replay, Scope, TensorType, Traced,
};
use nxla_tensor::{DType, Scalar, to_i64};

use super::active_entries::ActiveEntries;
use super::control::{Vectorized, choose, predicate_mask};
use super::entry::spread;
use super::{VectorAxes, mistake};
use crate::error::{Error, Result};
use crate::trace::Trace;

/// The functions of a loop, which [`trace_loop`] calls.
pub trait LoopFunctions {
    /// The error of a function.
    type Error;

    /// Traces the condition for a state.
    ///
    /// # Errors
    /// Returns the error of the condition.
    fn condition(&mut self, state: &[Vectorized]) -> Result<Vectorized, Self::Error>;

    /// Traces an iteration for a state.
    ///
    /// # Errors
    /// Returns the error of the body.
    fn body(&mut self, state: &[Vectorized]) -> Result<Iteration, Self::Error>;

    /// Returns a number of iterations that no entry exceeds, if it is known.
    fn max_trips(&self) -> Option<i64> {
        None
    }

    /// Converts an error of the construction of the loop.
    fn convert_error(&self, error: Error) -> Self::Error;

    /// Sets the source line of the nodes that the loop creates.
    ///
    /// # Errors
    /// Returns an error if the trace has finished.
    fn mark_line(&self) -> Result<(), Self::Error>;
}

/// The results of a traced iteration.
#[derive(Debug)]
pub struct Iteration {
    /// The next state.
    pub state: Vec<Vectorized>,
    /// The rows that the loop collects, if it collects rows.
    pub rows: Option<Rows>,
}

/// The rows of one iteration, which a loop writes at an index of `count` rows.
#[derive(Debug)]
pub struct Rows {
    /// The rows.
    pub values: Vec<Vectorized>,
    /// The index of the rows among all rows.
    pub index: ExprId,
    /// The number of all rows.
    pub count: usize,
}

/// The last state of a loop, and the rows that it has collected.
pub type LoopResults = (Vec<Vectorized>, Vec<Vectorized>);

/// Returns the last state and the rows of a loop. The functions are traced again if the condition is
/// vectorized, or if the body adds vectorized axes or names to the initial state.
///
/// # Errors
/// Returns the errors of the functions, and an error for a next state of other types or a condition
/// that is not a scalar.
pub fn trace_loop<L: LoopFunctions>(
    trace: &Trace,
    replay: Replay,
    mut initial: Vec<Vectorized>,
    functions: &mut L,
) -> Result<LoopResults, L::Error> {
    loop {
        match trace_once(trace, replay, initial, functions)? {
            ControlFlow::Break(results) => return Ok(results),
            ControlFlow::Continue(wide) => initial = wide,
        }
    }
}

/// Returns the results of a loop, or the initial state with the vectorized axes and the names that
/// the body adds.
type Attempt = ControlFlow<LoopResults, Vec<Vectorized>>;

/// Traces a loop once.
fn trace_once<L: LoopFunctions>(
    trace: &Trace,
    replay: Replay,
    initial: Vec<Vectorized>,
    functions: &mut L,
) -> Result<Attempt, L::Error> {
    let begin = |graph: &mut Graph| Ok(OpenLoop::begin(graph, initial.clone()));
    let open = build(trace, functions, begin)?;
    let holds = functions.condition(&open.state())?;
    let condition = build(trace, functions, |graph| Ok(graph.traced(open.mark, vec![holds.0])))?;
    if !holds.1.is_empty() {
        return trace_per_entry(trace, replay, &initial, &holds.1, functions);
    }
    let next = functions.body(&open.state())?;
    let widen = |graph: &mut Graph| widen_state(graph, open.mark, &initial, &next.state);
    if let Some(wide) = build(trace, functions, widen)? {
        return Ok(ControlFlow::Continue(wide));
    }
    functions.mark_line()?;
    let finish = |graph: &mut Graph| open.finish(graph, condition, next, replay);
    Ok(ControlFlow::Break(build(trace, functions, finish)?))
}

/// Traces a loop whose entries run different numbers of iterations; see [`trace_once`]. The condition
/// has the axes `vectors`.
fn trace_per_entry<L: LoopFunctions>(
    trace: &Trace,
    replay: Replay,
    initial: &[Vectorized],
    vectors: &VectorAxes,
    functions: &mut L,
) -> Result<Attempt, L::Error> {
    let before = build(trace, functions, |graph| Ok(graph.mark()))?;
    let widen = |graph: &mut Graph| Repetition::widen_by_condition(graph, initial, vectors);
    let start = build(trace, functions, widen)?;
    let holds = functions.condition(&start)?;
    let begin = |graph: &mut Graph| Repetition::begin(graph, start, &holds);
    let repetition = build(trace, functions, begin)?;
    let start = build(trace, functions, |graph| Ok(graph.mark()))?;
    let entered = trace.enter_entries(Some(repetition.active.clone()));
    let next = functions.body(&repetition.inputs)?;
    drop(entered);
    if next.rows.is_some() {
        let why = "condition: must be equal for all entries in a loop that collects rows";
        return Err(functions.convert_error(mistake("while", why)));
    }
    let widen = |graph: &mut Graph| widen_state(graph, before, &repetition.initial, &next.state);
    if let Some(wide) = build(trace, functions, widen)? {
        return Ok(ControlFlow::Continue(wide));
    }
    let state = build(trace, functions, |graph| repetition.chosen(graph, &next.state))?;
    let holds = functions.condition(&state)?;
    functions.mark_line()?;
    let replay = (replay, functions.max_trips());
    let finish = |graph: &mut Graph| repetition.finish(graph, start, &state, &holds, replay);
    Ok(ControlFlow::Break((build(trace, functions, finish)?, Vec::new())))
}

/// Builds a step of the construction of a loop.
fn build<L: LoopFunctions, T>(
    trace: &Trace,
    functions: &L,
    step: impl FnOnce(&mut Graph) -> Result<T>,
) -> Result<T, L::Error> {
    trace.build(step).map_err(|error| functions.convert_error(error))
}

/// A loop whose condition decides once for all entries.
///
/// Its condition and then its body are traced on [`OpenLoop::state`]. The state for
/// collected rows is added once the body is known, so that the body is traced once.
#[derive(Debug)]
struct OpenLoop {
    initial: Vec<Vectorized>,
    mark: Mark,
    scope: Scope,
}

impl OpenLoop {
    /// Opens a loop over a state.
    fn begin(graph: &mut Graph, initial: Vec<Vectorized>) -> Self {
        let types: Vec<TensorType> =
            initial.iter().map(|&(id, _)| graph.tensor_type(id).clone()).collect();
        let (mark, scope) = (graph.mark(), graph.open_scope("while", &types));
        Self { initial, mark, scope }
    }

    /// The state before a trip.
    fn state(&self) -> Vec<Vectorized> {
        let parameters = self.scope.parameters.iter().copied();
        parameters.zip(self.initial.iter().map(|(_, own)| own.clone())).collect()
    }

    /// Ends the loop with the results of its body. Returns the last state and all rows.
    ///
    /// # Errors
    /// Returns an error for a next state of other types, or with additional vectorized axes or a
    /// condition that is not a scalar.
    fn finish(
        mut self,
        graph: &mut Graph,
        condition: Traced,
        next: Iteration,
        replay: Replay,
    ) -> Result<LoopResults> {
        let carried = self.initial.len();
        let Iteration { state, rows } = next;
        let mut next = self.conform(graph, state)?;
        if let Some(Rows { values, index, count }) = rows {
            for value in &values {
                next.push(self.write_rows(graph, value, index, count)?);
            }
        }
        let mut state = self.close(graph, condition, next, replay)?;
        let rows = state.split_off(carried);
        Ok((state, rows))
    }

    /// Returns an additional loop state, which starts with zeros, after the rows of one iteration are
    /// written.
    fn write_rows(
        &mut self,
        graph: &mut Graph,
        (rows, vectors): &Vectorized,
        index: ExprId,
        count: usize,
    ) -> Result<ExprId> {
        let axis = vectors.len();
        let mut ty = graph.tensor_type(*rows).clone();
        let sizes = ty.shape.iter().enumerate();
        ty.shape = sizes.map(|(at, &n)| if at == axis { count } else { n }).collect();
        let zeros = graph.constant(Scalar::zero(ty.dtype), ty.clone())?;
        self.initial.push((zeros, vectors.clone()));
        let so_far = graph.grow_scope(&mut self.scope, ty);
        Ok(graph.put_slice_along_axis(so_far, index, *rows, to_i64(axis))?)
    }

    /// The next state with the vectorized axes of the state.
    fn conform(&self, graph: &mut Graph, next: Vec<Vectorized>) -> Result<Vec<ExprId>> {
        let state = self.state();
        if state.iter().chain(&next).all(|(_, vectors)| vectors.is_empty()) {
            return Ok(next.into_iter().map(|(id, _)| id).collect());
        }
        check_state(graph, &state, &next)?;
        let pairs = next.into_iter().zip(&state);
        pairs.map(|((id, own), (_, to))| spread(graph, id, &own, to)).collect()
    }

    fn close(
        self,
        graph: &mut Graph,
        condition: Traced,
        next: Vec<ExprId>,
        replay: Replay,
    ) -> Result<Vec<Vectorized>> {
        let body = graph.traced(self.mark, next);
        let (initial, vectors): (Vec<ExprId>, Vec<VectorAxes>) = self.initial.into_iter().unzip();
        let regions = (condition, body);
        let ids = graph.while_loop_with(self.mark, &self.scope, &initial, regions, replay)?;
        Ok(ids.into_iter().zip(vectors).collect())
    }
}

/// A loop whose condition is vectorized.
///
/// The state contains a mask of the active entries, the state of each entry, and the state before the
/// last iteration of each entry. A finished entry is recomputed from the state before its last
/// iteration, at which the body is defined, so that it does not add NaN to a derivative.
#[derive(Debug)]
struct Repetition {
    vectors: VectorAxes,
    initial: Vec<Vectorized>,
    /// For each part of the state, values that are safe in the first iteration of each entry.
    safe: Vec<ExprId>,
    mark: Mark,
    scope: Scope,
    start_mask: ExprId,
    /// The state to trace the body on.
    inputs: Vec<Vectorized>,
    /// The entries that begin, for which the body is traced.
    active: ActiveEntries,
}

impl Repetition {
    /// Returns the initial state with the vectorized axes of its condition. The condition is traced
    /// again for this state.
    ///
    /// # Errors
    /// Returns an error if axes of one name have different sizes.
    fn widen_by_condition(
        graph: &mut Graph,
        initial: &[Vectorized],
        condition: &VectorAxes,
    ) -> Result<Vec<Vectorized>> {
        let mut wide = Vec::with_capacity(initial.len());
        for (id, own) in initial {
            let vectors = VectorAxes::union("while", [condition, own])?;
            wide.push((spread(graph, *id, own, &vectors)?, vectors));
        }
        Ok(wide)
    }

    /// Begins a loop over a state that has the axes of the condition. `condition` is its value for
    /// the initial state.
    ///
    /// # Errors
    /// Returns an error for a condition that is not a scalar.
    fn begin(graph: &mut Graph, initial: Vec<Vectorized>, condition: &Vectorized) -> Result<Self> {
        let vectors = condition.1.clone();
        let start_mask = predicate_mask(graph, "while", condition, &vectors)?;
        let mut active = ActiveEntries::new((start_mask, vectors.clone()), graph);
        let mut safe = Vec::with_capacity(initial.len());
        for value in &initial {
            let (id, found) = active.make_safe(graph, value)?;
            safe.push(spread(graph, id, &found, &value.1)?);
        }
        let mut types = vec![graph.tensor_type(start_mask).clone()];
        types.extend(
            initial.iter().map(|(id, _)| id).chain(&safe).map(|&id| graph.tensor_type(id).clone()),
        );
        let (mark, scope) = (graph.mark(), graph.open_scope("while", &types));
        let (mask, states) = scope.parameters.split_first().expect("the mask is a parameter");
        let (old, before) = states.split_at(initial.len());
        let mask = (*mask, vectors.clone());
        let mut inputs = Vec::with_capacity(initial.len());
        for ((&old, &before), (_, own)) in old.iter().zip(before).zip(&initial) {
            let before = graph.stop_grad(before)?;
            inputs.push(choose_part(graph, &mask, [old, before], own)?);
        }
        Ok(Self { vectors, initial, safe, mark, scope, start_mask, inputs, active })
    }

    /// The state before an iteration.
    fn state(&self) -> Vec<Vectorized> {
        let parameters = self.scope.parameters[1..].iter().copied();
        parameters.zip(self.initial.iter().map(|(_, own)| own.clone())).collect()
    }

    fn mask(&self) -> ExprId {
        self.scope.parameters[0]
    }

    /// The state after an iteration, from the results of the body: finished entries keep their
    /// state.
    ///
    /// # Errors
    /// Returns an error for results that do not have the number and types of the state.
    fn chosen(&self, graph: &mut Graph, body: &[Vectorized]) -> Result<Vec<Vectorized>> {
        let old = self.state();
        check_state(graph, &old, body)?;
        let mask = (self.mask(), self.vectors.clone());
        let mut state = Vec::with_capacity(old.len());
        for ((old, own), (new, vectors)) in old.into_iter().zip(body) {
            let new = spread(graph, *new, vectors, &own)?;
            state.push(choose_part(graph, &mask, [new, old], &own)?);
        }
        Ok(state)
    }

    /// Ends the loop, whose body began at `start`, with the state after a trip and the
    /// condition of that state. `max_trips` is a number of iterations that no entry exceeds; a
    /// counter that all entries share makes it known to the derivative.
    ///
    /// # Errors
    /// Returns an error for a condition that is not a scalar, or has additional vectorized axes.
    fn finish(
        mut self,
        graph: &mut Graph,
        start: Mark,
        state: &[Vectorized],
        condition: &Vectorized,
        (replay, max_trips): (Replay, Option<i64>),
    ) -> Result<Vec<Vectorized>> {
        if VectorAxes::union("while", [&self.vectors, &condition.1])? != self.vectors {
            let why = format!(
                "condition: vectorized axes must stay the same; got {} in the first iteration \
                 and {} later",
                self.vectors, condition.1
            );
            return Err(mistake("while", why));
        }
        let holds = predicate_mask(graph, "while", condition, &self.vectors)?;
        let mask = graph.logical_and(self.mask(), holds)?;
        let states = state.iter().chain(&self.inputs).map(|(id, _)| *id);
        let mut results: Vec<ExprId> = std::iter::once(mask).chain(states).collect();
        let mut initial = vec![self.start_mask];
        initial.extend(self.initial.iter().map(|(id, _)| *id));
        initial.extend(&self.safe);
        let mut bounded = None;
        if let Some(max_trips) = max_trips {
            let mut count = |number| graph.scalar_constant(Scalar::Int(number), DType::S64);
            let (zero, one, end) = (count(0)?, count(1)?, count(max_trips)?);
            initial.push(zero);
            let count = graph.grow_scope(&mut self.scope, TensorType::scalar(DType::S64));
            results.push(graph.add(count, one)?);
            bounded = Some((count, end));
        }
        let body = graph.traced(start, results);
        let start = graph.mark();
        let mut goes_on = graph.any(self.mask(), None, false)?;
        if let Some((count, end)) = bounded {
            let is_below = graph.less(count, end)?;
            goes_on = graph.logical_and(is_below, goes_on)?;
        }
        let goes_on: Traced = graph.traced(start, vec![goes_on]);
        let ids =
            graph.while_loop_with(self.mark, &self.scope, &initial, (goes_on, body), replay)?;
        let vectors = self.initial.into_iter().map(|(_, own)| own);
        Ok(ids.into_iter().skip(1).zip(vectors).collect())
    }
}

/// Chooses one of two values of a part of the state for each entry. The values and the result have the
/// vectorized axes `own`.
fn choose_part(
    graph: &mut Graph,
    mask: &Vectorized,
    [on_true, on_false]: [ExprId; 2],
    own: &VectorAxes,
) -> Result<Vectorized> {
    let [on_true, on_false] = [on_true, on_false].map(|id| (id, own.clone()));
    let (id, found) = choose(graph, "while", mask, on_true, on_false)?;
    Ok((spread(graph, id, &found, own)?, own.clone()))
}

/// Returns the initial state with the vectorized axes and the names that the body adds to it, or
/// `None` if the body adds no axes.
///
/// All entries of an added axis are equal at the start. The caller traces the loop again for the
/// returned state, until the body adds nothing: axes are only added, and there are finitely many.
/// The effects of the discarded trace are dropped.
fn widen_state(
    graph: &mut Graph,
    mark: Mark,
    initial: &[Vectorized],
    next: &[Vectorized],
) -> Result<Option<Vec<Vectorized>>> {
    let mut wide = Vec::with_capacity(initial.len());
    for ((id, own), (next, axes)) in initial.iter().zip(next) {
        let vectors = VectorAxes::union("loop", [own, axes])?;
        let found = axes.entry_type(graph.tensor_type(*next));
        let mut id = spread(graph, *id, own, &vectors)?;
        let entry = vectors.entry_type(graph.tensor_type(id));
        if entry.names.is_none() && found.names.is_some() && entry.shape == found.shape {
            id = graph.rename(id, vectors.full_type(&found).names)?;
        }
        wide.push((id, vectors));
    }
    if wide == initial {
        return Ok(None);
    }
    graph.drop_effects(mark);
    Ok(Some(wide))
}

/// Checks that a body returns a state of the same entry types, without further vectorized axes.
fn check_state(graph: &Graph, state: &[Vectorized], body: &[Vectorized]) -> Result<()> {
    let invalid =
        |why: String| -> Error { graph.error("while", ErrorKind::invalid("body", why)).into() };
    if state.len() != body.len() {
        let why = format!(
            "must return as many results as the state has tensors; got {} and {}",
            body.len(),
            state.len()
        );
        return Err(invalid(why));
    }
    for (position, ((old, own), (new, vectors))) in state.iter().zip(body).enumerate() {
        let expected = own.entry_type(graph.tensor_type(*old));
        let found = vectors.entry_type(graph.tensor_type(*new));
        let grows =
            vectors.iter().any(|axis| !own.contains(axis) && own.position(&axis.name).is_none());
        let difference = Difference::between(&found, &expected);
        if let Some(difference) = difference.or(grows.then_some(Difference::Shape)) {
            let misfit = Misfit {
                region: Region::Body,
                result: position,
                path: None,
                found: format!("{vectors}{found}"),
                expected: format!("{own}{expected}"),
                difference,
            };
            return Err(graph.error("while", ErrorKind::Misfit(misfit.into())).into());
        }
    }
    Ok(())
}
