//! Loops inside a trace.
//!
//! Outside a trace the Python package runs them as plain Python: it knows the values.

use nxla_runtime::graph::{ExprId, Mark, Replay, ReplayMethod, Scope, Traced};
use nxla_runtime::vectors::control::{Repetition, Vectorized, collect, conform, widened};
use nxla_runtime::{Error, Trace, Vectors};
use pyo3::prelude::*;

use super::add_functions;
use super::control::{call_region, ids, in_place_of, in_trace, leaves_of, wrap_all};
use crate::containers::{PyTree, Tree};
use crate::errors::{OrRaise, argument_error};
use crate::source;

/// Repeats `body(state)` while `condition(state)` holds.
///
/// Errors speak of `function`, which the user has called. `roots` names parts of its state: the
/// beginnings of their paths, and what they are called.
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
    let open = repeat.open(py, &initial)?;
    if !open.vectors.is_empty() {
        return repeat.per_entry(py, &initial, &open.vectors);
    }
    let start = trace.build(|graph| Ok::<_, Error>(graph.mark())).or_raise()?;
    let next = repeat.body(py, &open.state)?;
    let next = trace.build(|graph| conform(graph, &open.state, next));
    let next = next.map_err(|error| repeat.located(py, error)).or_raise()?;
    let body = trace.build(|graph| Ok::<_, Error>(graph.traced(start, next))).or_raise()?;
    let results = repeat.close(py, open, &ids(&initial), body)?;
    repeat.state(py, &in_place_of(results, initial))
}

/// A loop that counts, and collects what each trip gives: the last state, and all rows.
///
/// `body` takes the state and gives the next one, the place of the trip's rows among `count`, and
/// the rows. It is called once, and once more where it gives parts of the state vectorized axes or
/// names that they have not had.
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
    loop {
        if let Some(results) = repeat.collecting(py, &mut start, count)? {
            return Ok(results);
        }
    }
}

/// Calls a function for the types of what it gives: what it shows is shown by no program.
#[pyfunction]
fn without_effects<'py>(function: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = function.py();
    let (trace, _) = in_trace(py, "scan", &[])?;
    let start = trace.build(|graph| Ok::<_, Error>(graph.mark())).or_raise()?;
    let answer = function.call0()?;
    trace.build(|graph| Ok::<_, Error>(graph.traced(start, vec![]))).or_raise()?;
    Ok(answer)
}

/// A loop of which the condition is traced.
struct OpenLoop {
    mark: Mark,
    scope: Scope,
    /// What stands for the state before a trip.
    state: Vec<Vectorized>,
    condition: Traced,
    /// The vectorized axes of the condition.
    vectors: Vectors,
}

/// The functions of a loop, and the structure of its state.
struct Loop<'a, 'py> {
    trace: &'a Trace,
    tree: &'a Tree,
    condition: &'a Bound<'py, PyAny>,
    body: &'a Bound<'py, PyAny>,
    /// What the user has called.
    function: &'a str,
    /// What parts of the state are called, by the beginnings of their paths.
    roots: &'a [(String, String)],
    replay: Replay,
}

/// What the derivative of a loop is to keep.
fn replay_method(function: &str, name: &str) -> PyResult<ReplayMethod> {
    let found = ReplayMethod::ALL.into_iter().find(|method| method.name() == name);
    found.ok_or_else(|| {
        let names = ReplayMethod::ALL.map(|method| format!("{:?}", method.name())).join(", ");
        argument_error(function, format!("gradient must be one of {names}, got {name:?}"))
    })
}

impl Loop<'_, '_> {
    /// An error in terms of the user's state.
    fn located(&self, py: Python<'_>, error: Error) -> Error {
        let named = self.roots.iter().map(|(start, name)| (start.as_str(), name.as_str()));
        let roots: Vec<(&str, &str)> = named.chain([("", "state")]).collect();
        error.locate(self.function, &roots, |region, result| {
            (region, self.tree.leaf_path(py, result).ok().flatten())
        })
    }

    fn state(&self, py: Python<'_>, state: &[Vectorized]) -> PyResult<Py<PyAny>> {
        self.tree.rebuild(py, &mut wrap_all(py, self.trace, state.to_vec()).into_iter())
    }

    fn open(&self, py: Python<'_>, initial: &[Vectorized]) -> PyResult<OpenLoop> {
        let (mark, scope) = self
            .trace
            .build(|graph| {
                let types: Vec<_> =
                    initial.iter().map(|&(id, _)| graph.tensor_type(id).clone()).collect();
                Ok::<_, Error>((graph.mark(), graph.open_scope(&types)))
            })
            .or_raise()?;
        let state = in_place_of(scope.parameters.clone(), initial.to_vec());
        let start = self.trace.build(|graph| Ok::<_, Error>(graph.mark())).or_raise()?;
        let holds = self.condition(py, &state)?;
        let vectors = holds.first().map(|(_, vectors)| vectors.clone()).unwrap_or_default();
        let condition = self
            .trace
            .build(|graph| Ok::<_, Error>(graph.traced(start, ids(&holds))))
            .or_raise()?;
        Ok(OpenLoop { mark, scope, state, condition, vectors })
    }

    fn close(
        &self,
        py: Python<'_>,
        open: OpenLoop,
        initial: &[ExprId],
        body: Traced,
    ) -> PyResult<Vec<ExprId>> {
        source::mark(py, self.trace)?;
        let regions = (open.condition, body);
        let results = self.trace.build(|graph| {
            graph.while_loop_with(open.mark, &open.scope, initial, regions, self.replay)
        });
        results.map_err(|error| self.located(py, error)).or_raise()
    }

    /// A loop whose body gives rows, which it collects: the last state, and all rows. None where the
    /// state at the start has got vectorized axes or names, with which it is to be tried again.
    fn collecting(
        &self,
        py: Python<'_>,
        initial: &mut Vec<Vectorized>,
        count: usize,
    ) -> PyResult<Option<(Py<PyAny>, Py<PyAny>)>> {
        let trace = self.trace;
        let mut open = self.open(py, initial)?;
        let from = trace.build(|graph| Ok::<_, Error>(graph.mark())).or_raise()?;
        let answer = call_region(self.function, self.body, (self.state(py, &open.state)?,))?;
        let (next, place, rows): (Bound<'_, PyAny>, Bound<'_, PyAny>, Bound<'_, PyAny>) =
            answer.extract()?;
        let next = self.leaves(py, &next)?;
        let (rows, rows_tree) = leaves_of(trace, self.function, &rows)?;
        let (place, _) = leaves_of(trace, self.function, &place)?;
        let wide = trace.build(|graph| widened(graph, initial, &next)).or_raise()?;
        if let Some(wide) = wide {
            // What this body has shown is dropped with it.
            trace.build(|graph| Ok::<_, Error>(graph.traced(from, vec![]))).or_raise()?;
            *initial = wide;
            return Ok(None);
        }
        let next = trace.build(|graph| conform(graph, &open.state, next));
        let mut next = next.map_err(|error| self.located(py, error)).or_raise()?;
        let (mut start, mut vectors): (Vec<ExprId>, Vec<Vectors>) = initial.iter().cloned().unzip();
        let collected = trace.build(|graph| {
            let collect = |rows| collect(graph, &mut open.scope, rows, place[0].0, count);
            rows.iter().map(collect).collect::<Result<Vec<_>, _>>()
        });
        for part in collected.or_raise()? {
            start.push(part.initial);
            next.push(part.next);
            vectors.push(part.vectors);
        }
        let body = trace.build(|graph| Ok::<_, Error>(graph.traced(from, next))).or_raise()?;
        let results = self.close(py, open, &start, body)?;
        let mut results: Vec<Vectorized> = results.into_iter().zip(vectors).collect();
        let rows = wrap_all(py, trace, results.split_off(initial.len()));
        let rows = rows_tree.rebuild(py, &mut rows.into_iter())?;
        Ok(Some((self.state(py, &results)?, rows)))
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
            let why = format!("the body gives {found}, the initial state is {expected}{line}");
            return Err(argument_error(self.function, why));
        }
        Ok(next)
    }

    /// The loop for entries that go on for different numbers of trips.
    fn per_entry(
        &self,
        py: Python<'_>,
        initial: &[Vectorized],
        vectors: &Vectors,
    ) -> PyResult<Py<PyAny>> {
        let trace = self.trace;
        let initial = trace.build(|graph| Repetition::widen(graph, initial, vectors)).or_raise()?;
        let holds = self.single(self.condition(py, &initial)?)?;
        let repetition =
            trace.build(|graph| Repetition::begin(graph, initial, &holds)).or_raise()?;
        let start = trace.build(|graph| Ok::<_, Error>(graph.mark())).or_raise()?;
        let next = self.body(py, &repetition.state())?;
        let state = trace.build(|graph| repetition.chosen(graph, &next));
        let state = state.map_err(|error| self.located(py, error)).or_raise()?;
        let holds = self.single(self.condition(py, &state)?)?;
        source::mark(py, trace)?;
        let results = trace
            .build(|graph| repetition.finish(graph, start, &state, &holds, self.replay))
            .or_raise()?;
        self.state(py, &results)
    }

    fn single(&self, holds: Vec<Vectorized>) -> PyResult<Vectorized> {
        <[Vectorized; 1]>::try_from(holds)
            .map(|[holds]| holds)
            .map_err(|_| argument_error(self.function, "the condition must give one scalar"))
    }
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    add_functions!(module: while_loop, scan_loop, without_effects);
    Ok(())
}
