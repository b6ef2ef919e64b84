//! Loops inside a trace.
//!
//! Outside a trace the Python package runs loops as Python code, because all values are concrete.

use nxla_runtime::graph::{Replay, ReplayMethod, Traced};
use nxla_runtime::vectors::control::Vectorized;
use nxla_runtime::vectors::loops::{OpenLoop, Repetition};
use nxla_runtime::{Error, Trace, Vectors};
use pyo3::prelude::*;

use super::add_functions;
use super::control::{call_region, drop_effects_on_error, in_trace, leaves_of, wrap_all};
use crate::containers::{PyTree, Tree};
use crate::errors::{OrRaise, argument_error};
use crate::source;

/// Repeats `body(state)` while `condition(state)` is true.
///
/// Errors name `function`, the public function. `roots` contains the names of parts of its state,
/// by the first step of their paths.
#[pyfunction]
#[pyo3(signature = (
    condition, body, initial, function="while_loop", roots=vec![], gradient="auto",
    gradient_bytes=Replay::BYTES
))]
#[expect(clippy::too_many_arguments, reason = "only the package calls it")]
fn while_loop(
    py: Python<'_>,
    condition: &Bound<'_, PyAny>,
    body: &Bound<'_, PyAny>,
    initial: &Bound<'_, PyAny>,
    function: &str,
    roots: Vec<(String, String)>,
    gradient: &str,
    gradient_bytes: u64,
) -> PyResult<Py<PyAny>> {
    let replay = Replay { method: replay_method(function, gradient)?, bytes: gradient_bytes };
    let (trace, _) = in_trace(py, function, &[])?;
    let (initial, tree) = leaves_of(&trace, function, initial)?;
    let roots = &roots[..];
    let repeat = Loop { trace: &trace, tree: &tree, condition, body, function, roots, replay };
    let mut start = initial;
    drop_effects_on_error(&trace, || {
        loop {
            if let Some(results) = repeat.trace_loop(py, &mut start)? {
                return Ok(results);
            }
        }
    })
}

/// A counting loop that collects the rows of each iteration: the final state, and all rows.
///
/// `body` maps the state to the next state, the index of the row among `count`, and the rows. It is
/// called once, and a second time if it adds vectorized axes or names to the state.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "only the package calls it")]
fn scan_loop(
    py: Python<'_>,
    condition: &Bound<'_, PyAny>,
    body: &Bound<'_, PyAny>,
    initial: &Bound<'_, PyAny>,
    count: usize,
    roots: Vec<(String, String)>,
    gradient: &str,
    gradient_bytes: u64,
) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
    let function = "scan";
    let replay = Replay { method: replay_method(function, gradient)?, bytes: gradient_bytes };
    let (trace, _) = in_trace(py, function, &[])?;
    let (initial, tree) = leaves_of(&trace, function, initial)?;
    let roots = &roots[..];
    let repeat = Loop { trace: &trace, tree: &tree, condition, body, function, roots, replay };
    let mut start = initial;
    drop_effects_on_error(&trace, || {
        loop {
            if let Some(results) = repeat.trace_collecting_loop(py, &mut start, count)? {
                return Ok(results);
            }
        }
    })
}

/// Calls a function for the types of its results; its hooks are not part of any program.
#[pyfunction]
fn without_effects<'py>(function: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = function.py();
    let (trace, _) = in_trace(py, "scan", &[])?;
    let start = trace.edit(|graph| graph.mark()).or_raise()?;
    let answer = function.call0();
    trace.edit(|graph| graph.drop_effects(start)).or_raise()?;
    answer
}

/// The functions of a loop, and the structure of its state.
struct Loop<'a, 'py> {
    trace: &'a Trace,
    tree: &'a Tree,
    condition: &'a Bound<'py, PyAny>,
    body: &'a Bound<'py, PyAny>,
    /// The public function.
    function: &'a str,
    /// The names of parts of the state, by the first step of their paths.
    roots: &'a [(String, String)],
    replay: Replay,
}

/// The replay method.
fn replay_method(function: &str, name: &str) -> PyResult<ReplayMethod> {
    let found = ReplayMethod::ALL.into_iter().find(|method| method.name() == name);
    found.ok_or_else(|| {
        let names = ReplayMethod::ALL.map(|method| format!("{:?}", method.name())).join(", ");
        argument_error(function, format!("gradient: must be one of {names}; got {name:?}"))
    })
}

impl Loop<'_, '_> {
    /// An error that names the part of the user's state.
    fn locate_error(&self, py: Python<'_>, error: Error) -> Error {
        let named = self.roots.iter().map(|(start, name)| (start.as_str(), name.as_str()));
        let roots: Vec<(&str, &str)> = named.chain([("", "state")]).collect();
        error.locate(self.function, &roots, |region, result| {
            (region, self.tree.leaf_path(py, result).ok().flatten())
        })
    }

    fn state(&self, py: Python<'_>, state: &[Vectorized]) -> PyResult<Py<PyAny>> {
        self.tree.rebuild(py, &mut wrap_all(py, self.trace, state.to_vec()).into_iter())
    }

    /// Opens the loop and traces its condition, which has these vectorized axes.
    fn open(
        &self,
        py: Python<'_>,
        initial: &[Vectorized],
    ) -> PyResult<(OpenLoop, Traced, Vectors)> {
        let begin = |graph: &mut _| OpenLoop::begin(graph, initial.to_vec());
        let open = self.trace.edit(begin).or_raise()?;
        let holds = self.condition(py, &open.state())?;
        let condition = self.trace.edit(|graph| open.condition(graph, &holds)).or_raise()?;
        let axes = holds.into_iter().next().map(|(_, axes)| axes).unwrap_or_default();
        Ok((open, condition, axes))
    }

    /// Traces the loop and returns its final state. Returns None if the body adds vectorized axes
    /// or names to the state; the initial state then has them.
    fn trace_loop(
        &self,
        py: Python<'_>,
        initial: &mut Vec<Vectorized>,
    ) -> PyResult<Option<Py<PyAny>>> {
        let trace = self.trace;
        let (open, condition, axes) = self.open(py, initial)?;
        if !axes.is_empty() {
            return self.per_entry(py, initial, &axes);
        }
        let next = self.body(py, &open.state())?;
        if let Some(wide) = trace.build(|graph| open.widen(graph, &next)).or_raise()? {
            *initial = wide;
            return Ok(None);
        }
        source::mark(py, trace)?;
        let results = trace.build(|graph| open.finish(graph, condition, next, self.replay));
        self.state(py, &results.map_err(|error| self.locate_error(py, error)).or_raise()?).map(Some)
    }

    /// A loop whose body returns rows, which are collected: the final state, and all rows. None if
    /// the initial state has gained vectorized axes or names, so that the loop must be traced
    /// again.
    fn trace_collecting_loop(
        &self,
        py: Python<'_>,
        initial: &mut Vec<Vectorized>,
        count: usize,
    ) -> PyResult<Option<(Py<PyAny>, Py<PyAny>)>> {
        let trace = self.trace;
        let (open, condition, _) = self.open(py, initial)?;
        let answer = call_region(self.function, self.body, (self.state(py, &open.state())?,))?;
        let (next, place, rows): (Bound<'_, PyAny>, Bound<'_, PyAny>, Bound<'_, PyAny>) =
            answer.extract()?;
        let next = self.leaves(py, &next)?;
        let (rows, rows_tree) = leaves_of(trace, self.function, &rows)?;
        let (place, _) = leaves_of(trace, self.function, &place)?;
        if let Some(wide) = trace.build(|graph| open.widen(graph, &next)).or_raise()? {
            *initial = wide;
            return Ok(None);
        }
        source::mark(py, trace)?;
        let rows = (&rows[..], place[0].0, count);
        let results = trace.build(|graph| open.collect(graph, condition, next, rows, self.replay));
        let (state, rows) = results.map_err(|error| self.locate_error(py, error)).or_raise()?;
        let mut rows = wrap_all(py, trace, rows).into_iter();
        Ok(Some((self.state(py, &state)?, rows_tree.rebuild(py, &mut rows)?)))
    }

    fn condition(&self, py: Python<'_>, state: &[Vectorized]) -> PyResult<Vec<Vectorized>> {
        let state = self.state(py, state)?;
        let holds = call_region(self.function, self.condition, (state,))?;
        Ok(leaves_of(self.trace, self.function, &holds)?.0)
    }

    fn body(&self, py: Python<'_>, state: &[Vectorized]) -> PyResult<Vec<Vectorized>> {
        let state = self.state(py, state)?;
        let next = call_region(self.function, self.body, (state,))?;
        self.leaves(py, &next)
    }

    /// The leaves of a next state.
    fn leaves(&self, py: Python<'_>, next: &Bound<'_, PyAny>) -> PyResult<Vec<Vectorized>> {
        let (next, tree) = leaves_of(self.trace, self.function, next)?;
        if !tree.same_structure(py, self.tree)? {
            let (found, expected) = (PyTree::text(&tree, py)?, PyTree::text(self.tree, py)?);
            let line = source::current_line(py).map(|line| format!(" ({line})"));
            let line = line.unwrap_or_default();
            let why = format!(
                "body: must return the structure of the initial state, {expected}; got {found}{line}"
            );
            return Err(argument_error(self.function, why));
        }
        Ok(next)
    }

    /// Traces a loop whose entries run different numbers of iterations, see [`Self::trace_loop`].
    fn per_entry(
        &self,
        py: Python<'_>,
        initial: &mut Vec<Vectorized>,
        vectors: &Vectors,
    ) -> PyResult<Option<Py<PyAny>>> {
        let trace = self.trace;
        let widen = |graph: &mut _| Repetition::widen_by_condition(graph, initial, vectors);
        let start = trace.build(widen).or_raise()?;
        let before = trace.edit(|graph| graph.mark()).or_raise()?;
        let holds = self.single(self.condition(py, &start)?)?;
        let repetition = trace.build(|graph| Repetition::begin(graph, start, &holds)).or_raise()?;
        let start = trace.edit(|graph| graph.mark()).or_raise()?;
        let entered = trace.enter_lanes(Some(repetition.lanes()));
        let next = self.body(py, repetition.inputs())?;
        drop(entered);
        if let Some(wide) = trace.build(|graph| repetition.widen(graph, &next)).or_raise()? {
            // The condition is traced again, outside of the loop that `widen` has dropped.
            trace.edit(|graph| graph.drop_effects(before)).or_raise()?;
            *initial = wide;
            return Ok(None);
        }
        let state = trace.build(|graph| repetition.chosen(graph, &next));
        let state = state.map_err(|error| self.locate_error(py, error)).or_raise()?;
        let holds = self.single(self.condition(py, &state)?)?;
        source::mark(py, trace)?;
        let results = trace
            .build(|graph| repetition.finish(graph, start, &state, &holds, self.replay))
            .or_raise()?;
        self.state(py, &results).map(Some)
    }

    fn single(&self, holds: Vec<Vectorized>) -> PyResult<Vectorized> {
        <[Vectorized; 1]>::try_from(holds)
            .map(|[holds]| holds)
            .map_err(|_| argument_error(self.function, "condition: must return one scalar"))
    }
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    add_functions!(module: while_loop, scan_loop, without_effects);
    Ok(())
}
