//! Loops inside a trace.
//!
//! Outside a trace the Python package runs loops as Python code, because all values are concrete.

use nxla_runtime::graph::{Replay, ReplayMethod};
use nxla_runtime::vectors::control::Vectorized;
use nxla_runtime::vectors::loops::{Iteration, LoopFunctions, Rows, trace_loop};
use nxla_runtime::{Error, Trace};
use pyo3::prelude::*;

use super::add_functions;
use super::control::{call_region, current_trace, leaves_like, leaves_of, wrap_all};
use crate::containers::{PyTree, Tree};
use crate::errors::{OrRaise, argument_error, exception};
use crate::names::argument_name;
use crate::source;

/// Repeats `body(state)` while `condition(state)` is true.
///
/// Errors name `function`, the public function. `roots` contains the names of parts of its state,
/// by the first step of their paths. The caller's condition ends the loop after `max_trips`
/// iterations.
#[pyfunction]
#[pyo3(signature = (
    condition, body, initial, function="while_loop", roots=vec![], gradient="auto",
    gradient_bytes=Replay::BYTES, max_trips=None
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
    max_trips: Option<i64>,
) -> PyResult<Py<PyAny>> {
    let replay = Replay { method: replay_method(function, gradient)?, bytes: gradient_bytes };
    let trace = current_trace(py, function)?;
    let (initial, tree) = leaves_of(&trace, function, initial)?;
    let roots = &roots[..];
    let (trace, tree, rows) = (&trace, &tree, None);
    let mut functions = Loop { trace, tree, condition, body, function, roots, rows, max_trips };
    trace.drop_hooks_on_error(|| {
        let (state, _) = trace_loop(trace, replay, initial, &mut functions)?;
        functions.state(&state)
    })
}

/// A counting loop that collects the rows of each iteration: the final state, and all rows.
///
/// `body` maps the state to the next state, the index of the row among `count`, and the rows. It is
/// called once, and a second time if it adds vectorized axes or names to the state. Errors name
/// `function`, the public function.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "only the package calls it")]
fn scan_loop(
    py: Python<'_>,
    condition: &Bound<'_, PyAny>,
    body: &Bound<'_, PyAny>,
    initial: &Bound<'_, PyAny>,
    count: usize,
    function: &str,
    roots: Vec<(String, String)>,
    gradient: &str,
    gradient_bytes: u64,
) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
    let replay = Replay { method: replay_method(function, gradient)?, bytes: gradient_bytes };
    let trace = current_trace(py, function)?;
    let (initial, tree) = leaves_of(&trace, function, initial)?;
    let roots = &roots[..];
    let (trace, tree, rows, max_trips) = (&trace, &tree, Some((count, None)), None);
    let mut functions = Loop { trace, tree, condition, body, function, roots, rows, max_trips };
    trace.drop_hooks_on_error(|| {
        let (state, rows) = trace_loop(trace, replay, initial, &mut functions)?;
        let state = functions.state(&state)?;
        let (_, rows_tree) = functions.rows.expect("the loop collects rows");
        let rows_tree = rows_tree.expect("the body was traced");
        Ok((state, rows_tree.rebuild(py, &mut wrap_all(py, trace, rows))?))
    })
}

/// Calls a function for the types of its results; its hooks are not part of any program.
#[pyfunction]
fn without_effects<'py>(function: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = function.py();
    let trace = current_trace(py, "scan")?;
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
    /// For a loop that collects rows: their number, and the structure of the rows of an iteration.
    rows: Option<(usize, Option<Tree>)>,
    /// The number of iterations after which the condition ends the loop, if it is known.
    max_trips: Option<i64>,
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
    fn state(&self, state: &[Vectorized]) -> PyResult<Py<PyAny>> {
        let py = self.condition.py();
        self.tree.rebuild(py, &mut wrap_all(py, self.trace, state.to_vec()))
    }

    /// The leaves of a next state. Python scalars take the dtypes of the state.
    fn leaves(&self, next: &Bound<'_, PyAny>, state: &[Vectorized]) -> PyResult<Vec<Vectorized>> {
        let py = self.condition.py();
        let (next, tree) = leaves_like(self.trace, self.function, next, state)?;
        if !tree.same_structure(py, self.tree)? {
            let (found, expected) = (PyTree::text(&tree, py)?, PyTree::text(self.tree, py)?);
            let line = source::at_current_line(py);
            let name = argument_name(py, self.function, "body").unwrap_or("body");
            let why = format!(
                "{name}: must return the structure of the initial state, {expected}; got {found}{line}"
            );
            return Err(argument_error(self.function, why));
        }
        Ok(next)
    }

    /// The values of an iteration whose body returned `results`. A separate function, so that a level of
    /// nested loops uses little of the stack.
    fn iteration(
        &mut self,
        results: &Bound<'_, PyAny>,
        state: &[Vectorized],
    ) -> PyResult<Iteration> {
        let Some((count, _)) = self.rows else {
            return Ok(Iteration { state: self.leaves(results, state)?, rows: None });
        };
        let (next, index, rows): (Bound<'_, PyAny>, Bound<'_, PyAny>, Bound<'_, PyAny>) =
            results.extract()?;
        let state = self.leaves(&next, state)?;
        let (values, tree) = leaves_of(self.trace, self.function, &rows)?;
        let (index, _) = leaves_of(self.trace, self.function, &index)?;
        self.rows = Some((count, Some(tree)));
        Ok(Iteration { state, rows: Some(Rows { values, index: index[0].0, count }) })
    }
}

impl LoopFunctions for Loop<'_, '_> {
    type Error = PyErr;

    fn condition(&mut self, state: &[Vectorized]) -> PyResult<Vectorized> {
        let state = self.state(state)?;
        let holds = call_region(self.function, self.condition, (state,))?;
        let (holds, _) = leaves_of(self.trace, self.function, &holds)?;
        <[Vectorized; 1]>::try_from(holds).map(|[holds]| holds).map_err(|values| {
            let py = self.condition.py();
            let name = argument_name(py, self.function, "condition").unwrap_or("condition");
            let why = format!("{name}: must return one scalar; got {} values", values.len());
            argument_error(self.function, why)
        })
    }

    fn body(&mut self, state: &[Vectorized]) -> PyResult<Iteration> {
        let results = call_region(self.function, self.body, (self.state(state)?,))?;
        self.iteration(&results, state)
    }

    fn max_trips(&self) -> Option<i64> {
        self.max_trips
    }

    /// Returns an exception that names the public function and the part of the user's state.
    fn convert_error(&self, error: Error) -> PyErr {
        let named = self.roots.iter().map(|(start, name)| (start.as_str(), name.as_str()));
        let roots: Vec<(&str, &str)> = named.chain([("", "state")]).collect();
        exception(error.in_function(self.function).locate(
            self.function,
            &roots,
            |region, result| {
                (region, self.tree.leaf_path(self.condition.py(), result).ok().flatten())
            },
        ))
    }

    fn mark_line(&self) -> PyResult<()> {
        source::mark(self.condition.py(), self.trace)
    }
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    add_functions!(module: while_loop, scan_loop, without_effects);
    Ok(())
}
