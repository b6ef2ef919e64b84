//! Streams of the runtime with Python containers.

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use nxla_runtime::{
    Capacity, Error, Inspect, Outcome, RawStream, RawTensor, Step, StreamError, Wait,
};
use pyo3::PyTraverseError;
use pyo3::exceptions::PyValueError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::compiled::PyCompiled;
use crate::containers::{PyTree, Tree, flatten};
use crate::debug;
use crate::errors::{OrRaise, argument_error, user_error};
use crate::expected::Expected;
use crate::function::{Entry, check_results, wrap_results};
use crate::interrupt::interruptible;
use crate::shutdown;
use crate::signature::{Arguments, is_leaf};
use crate::tensor::PyTensor;

/// A running stream, which ends when it is dropped.
#[pyclass(name = "Stream", module = "nxla._core", frozen)]
pub(crate) struct PyStream {
    stream: Arc<RawStream>,
    /// The compiled step, which owns the functions of its hooks.
    step: Py<PyCompiled>,
    chunk: Expected,
    capacity: Capacity,
    /// The containers of a result and of the state.
    results: Arc<Trees>,
}

/// The container of the results of a step.
struct Trees {
    entry: Arc<Entry>,
    state: Tree,
}

/// The maximum number of waiting chunks without a bound.
const DEFAULT_CAPACITY: Capacity = Capacity::Waiting(64);

#[pymethods]
impl PyStream {
    /// Starts a stream of steps from a chunk, the state and the constants to a result and the next
    /// state. ``bound`` is the maximum number of chunks that are sent and not received.
    #[new]
    #[pyo3(signature = (step, template, initial, constants, bound=None))]
    fn new(
        py: Python<'_>,
        step: &Bound<'_, PyCompiled>,
        template: &Bound<'_, PyAny>,
        initial: &Bound<'_, PyAny>,
        constants: &Bound<'_, PyTuple>,
        bound: Option<usize>,
    ) -> PyResult<Self> {
        let compiled = step.clone().unbind();
        let step = step.get();
        let results = Arc::new(Trees::of(py, &step.entry, initial)?);
        let chunk = Expected::like("stream", "chunk", template)?;
        let check = step.check.unwrap_or_else(debug::is_on);
        let inspect = check.then(|| inspector(step.name.clone()));
        let work = Step {
            entry: step.entry.clone(),
            options: step.options.clone(),
            constants: leaves_of(constants.as_any(), "constants")?,
            inspect,
        };
        let stream = work.start(state_of(initial)?).or_raise()?;
        let capacity = bound.map_or(DEFAULT_CAPACITY, Capacity::InFlight);
        Ok(Self { stream, step: compiled, chunk, capacity, results })
    }

    /// Visits the members for the garbage collector. The members of the stream's thread are in use
    /// and not visited.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.step)?;
        self.chunk.statics().iter().try_for_each(|value| visit.call(value.object()))
    }

    /// Sends a chunk; waits for room up to a timeout in seconds.
    #[pyo3(signature = (chunk, timeout=None))]
    fn send(&self, py: Python<'_>, chunk: &Bound<'_, PyAny>, timeout: Option<f64>) -> PyResult<()> {
        let inputs = self.chunk.inputs(py, "stream", &PyTuple::new(py, [chunk])?, None)?;
        let (inputs, time) = (inputs.into_vec(), seconds(timeout)?);
        interruptible(py, |interrupt| {
            self.stream.send(inputs, self.capacity, &Wait::at_most(time, Some(interrupt)))
        })
    }

    /// Waits for the next result, also of a chunk that is sent later, up to a timeout in seconds.
    #[pyo3(signature = (timeout=None))]
    fn recv(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Py<PyAny>> {
        let time = seconds(timeout)?;
        let received = interruptible(py, |interrupt| {
            self.stream.receive(true, &Wait::at_most(time, Some(interrupt)))
        })?;
        let nothing = || Err(StreamError::Nothing);
        self.results.wrap_result(py, received.unwrap_or_else(nothing))
    }

    /// The next result in a tuple, if it is computed; an empty tuple if everything has been
    /// received; else ``None``, and ``wake`` is called once when a result is available.
    fn poll<'py>(&self, py: Python<'py>, wake: Py<PyAny>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let waker = Waker::from(Arc::new(Call(wake)));
        match py.detach(|| self.stream.poll(false, &mut Context::from_waker(&waker))) {
            Poll::Pending => Ok(None),
            Poll::Ready(None) => Ok(Some(PyTuple::empty(py))),
            Poll::Ready(Some(outcome)) => {
                let result = self.results.wrap_result(py, outcome)?;
                PyTuple::new(py, [result]).map(Some)
            }
        }
    }

    /// Completes a ``concurrent.futures`` future with the next result.
    fn recv_deferred(&self, py: Python<'_>, future: Py<PyAny>) -> PyResult<()> {
        let results = self.results.clone();
        let tell = move |outcome: Outcome| {
            shutdown::attach(|py| {
                if let Err(raised) = results.tell(py, future.bind(py), outcome) {
                    raised.write_unraisable(py, Some(future.bind(py)));
                }
            });
        };
        py.detach(|| self.stream.receive_deferred(Box::new(tell))).or_raise()
    }

    /// The number of chunks sent whose results have not been received.
    #[getter]
    fn in_flight(&self) -> usize {
        self.stream.in_flight()
    }

    /// Ends the stream and returns its state.
    fn done(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let state = interruptible(py, |interrupt| {
            self.stream.finish(&Wait::at_most(None, Some(interrupt)))
        })?;
        wrap_results(py, &self.results.state, state)
    }

    /// Ends the stream without its state; waiting chunks are dropped.
    fn cancel(&self, py: Python<'_>) {
        py.detach(|| self.stream.cancel());
    }
}

impl Drop for PyStream {
    fn drop(&mut self) {
        // Cancelling lets futures receive the result of the running step.
        self.stream.cancel();
    }
}

impl Trees {
    /// The containers of the results of a step; the state must keep its container.
    fn of(py: Python<'_>, entry: &Arc<Entry>, initial: &Bound<'_, PyAny>) -> PyResult<Self> {
        let wrong = |why: String| argument_error("stream", why);
        let Some([_, state]) = pair(entry.results()) else {
            return Err(wrong("function: must return (result, state)".into()));
        };
        let before = flatten(initial, "initial", &mut |item, _| is_leaf(item))?;
        if !state.same_structure(py, &before)? {
            let (new, old) = (PyTree::text(state, py)?, PyTree::text(&before, py)?);
            return Err(wrong(format!(
                "function: must return a state like the old one, {old}; got {new}"
            )));
        }
        Ok(Self { entry: entry.clone(), state: before })
    }

    fn wrap_result(&self, py: Python<'_>, outcome: Outcome) -> PyResult<Py<PyAny>> {
        let results = outcome.map_err(Error::from).or_raise()?;
        let [result, _] =
            pair(self.entry.results()).expect("the state was checked when the stream began");
        wrap_results(py, result, results)
    }

    /// Completes a future with the result of its chunk, unless the future is cancelled.
    fn tell(&self, py: Python<'_>, future: &Bound<'_, PyAny>, outcome: Outcome) -> PyResult<()> {
        if matches!(outcome, Err(StreamError::Cancelled)) {
            return future.call_method0("cancel").map(drop);
        }
        if !future.call_method0("set_running_or_notify_cancel")?.is_truthy()? {
            return Ok(());
        }
        match self.wrap_result(py, outcome) {
            Ok(result) => future.call_method1("set_result", (result,)).map(drop),
            Err(raised) => future.call_method1("set_exception", (raised,)).map(drop),
        }
    }
}

/// The result and the next state of a step.
fn pair(tree: &Tree) -> Option<&[Tree; 2]> {
    match tree {
        Tree::Tuple(children) | Tree::Named(_, children) => children.as_slice().try_into().ok(),
        _ => None,
    }
}

/// Calls a Python function when it is woken.
struct Call(Py<PyAny>);

impl Wake for Call {
    fn wake(self: Arc<Self>) {
        shutdown::attach(|py| {
            if let Err(raised) = self.0.call0(py) {
                raised.write_unraisable(py, Some(self.0.bind(py)));
            }
        });
    }
}

/// Checks for results that are not finite.
fn inspector(name: String) -> Box<Inspect<Tree>> {
    Box::new(move |entry, arguments, results| {
        shutdown::attach(|py| check_results(py, &name, entry, arguments, results))
            .map_err(user_error)
    })
}

/// The tensors in a container.
fn leaves_of(value: &Bound<'_, PyAny>, path: &str) -> PyResult<Vec<RawTensor>> {
    let mut arguments = Arguments::default();
    arguments.argument(value, &|| format!("stream: {path}"))?;
    arguments.call.refuse_templates("stream").or_raise()?;
    Ok(arguments.into_inputs(value.py(), None)?.into_vec())
}

/// The leaves of the initial state, with their vectorized axes.
fn state_of(initial: &Bound<'_, PyAny>) -> PyResult<Vec<RawTensor>> {
    let mut vectors = Vec::new();
    flatten(initial, "initial", &mut |item, _| {
        let leaf = is_leaf(item)?;
        if leaf {
            let tensor = item.cast::<PyTensor>().ok();
            let own = tensor.map(|tensor| tensor.get().read().vectors().clone());
            vectors.push(own.unwrap_or_default());
        }
        Ok(leaf)
    })?;
    let data = leaves_of(initial, "initial")?;
    Ok(data.into_iter().zip(vectors).map(|(data, own)| data.with_vectors(own)).collect())
}

/// A timeout in seconds; a negative timeout is zero.
fn seconds(time: Option<f64>) -> PyResult<Option<Duration>> {
    match time {
        None => Ok(None),
        Some(time) if time.is_nan() => {
            Err(PyValueError::new_err("stream: timeout: must not be NaN"))
        }
        // A timeout beyond the range of durations is infinite.
        Some(time) => Ok(Duration::try_from_secs_f64(time.max(0.0)).ok()),
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyStream>()
}
