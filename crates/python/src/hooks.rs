//! Python functions as hooks, and runs that Ctrl-C can stop.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use nxla::graph::HostFn;
use nxla::host::HostTensor;
use nxla::{Executable, Options, RunContext, Tensor};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::errors::{argument_error, exception};
use crate::tensor::PyTensor;

/// A Python function that is shown values.
pub(crate) struct PyHook {
    function: Py<PyAny>,
    /// Puts the values into the container that the user gave the hook.
    arrange: Option<Box<dyn Arrange>>,
}

/// Puts values into a container.
pub(crate) trait Arrange: Send + Sync {
    fn arrange(&self, py: Python<'_>, values: Vec<Py<PyAny>>) -> PyResult<Py<PyAny>>;
}

/// The exceptions of hooks, by the thread that runs the program; the run raises them again.
static RAISED: Mutex<Vec<PyErr>> = Mutex::new(Vec::new());

impl PyHook {
    /// A hook that calls a function with its value, or with a tuple of several.
    pub(crate) fn of(function: &Bound<'_, PyAny>) -> PyResult<Arc<dyn HostFn>> {
        Self::arranged(function, None)
    }

    /// A hook that calls a function with its values in a container.
    pub(crate) fn arranged(
        function: &Bound<'_, PyAny>,
        arrange: Option<Box<dyn Arrange>>,
    ) -> PyResult<Arc<dyn HostFn>> {
        if !function.is_callable() {
            let kind = function.get_type().name()?;
            return Err(argument_error("hook", format!("expected a function, got {kind}")));
        }
        let hook: Arc<dyn HostFn> =
            Arc::new(PyHook { function: function.clone().unbind(), arrange });
        remember(&hook, function);
        Ok(hook)
    }

    fn show(&self, py: Python<'_>, values: &[HostTensor]) -> PyResult<()> {
        let mut tensors = Vec::with_capacity(values.len());
        for value in values {
            tensors.push(PyTensor::wrap(py, Tensor::Host(value.clone()))?);
        }
        let argument = match (&self.arrange, tensors.len()) {
            (Some(arrange), _) => arrange.arrange(py, tensors)?,
            (None, 1) => tensors.remove(0),
            (None, _) => PyTuple::new(py, tensors)?.into_any().unbind(),
        };
        self.function.call1(py, (argument,)).map(drop)
    }
}

impl HostFn for PyHook {
    fn call(&self, values: &[HostTensor]) -> Result<(), String> {
        Python::attach(|py| {
            self.show(py, values).map_err(|raised| {
                let text = format!("a hook raised {raised}");
                RAISED.lock().unwrap_or_else(PoisonError::into_inner).push(raised);
                text
            })
        })
    }
}

/// The hooks that are alive and their functions, to show options as they were given.
static CALLABLES: Mutex<Vec<(Weak<dyn HostFn>, Py<PyAny>)>> = Mutex::new(Vec::new());

fn remember(hook: &Arc<dyn HostFn>, function: &Bound<'_, PyAny>) {
    let mut known = CALLABLES.lock().unwrap_or_else(PoisonError::into_inner);
    known.retain(|(hook, _)| hook.strong_count() > 0);
    known.push((Arc::downgrade(hook), function.clone().unbind()));
}

/// The Python function behind a hook; None for one of another language.
pub(crate) fn callable_of(py: Python<'_>, hook: &Arc<dyn HostFn>) -> Py<PyAny> {
    let known = CALLABLES.lock().unwrap_or_else(PoisonError::into_inner);
    let found = known
        .iter()
        .find(|(other, _)| other.upgrade().is_some_and(|other| Arc::ptr_eq(&other, hook)));
    found.map_or_else(|| py.None(), |(_, function)| function.clone_ref(py))
}

/// How long a run goes on between looks for signals.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(50);

/// Runs an executable without holding up other Python threads; Ctrl-C stops it, and the exception
/// of a hook comes out as it was raised.
pub(crate) fn run_interruptible(
    py: Python<'_>,
    executable: &dyn Executable,
    inputs: &[&Tensor],
    options: &Options,
) -> PyResult<Vec<Tensor>> {
    let signals = Signals::default();
    let check = || signals.pending();
    let outcome = py.detach(|| {
        executable.run(inputs, &RunContext { hooks: Some(&options.hooks), interrupt: Some(&check) })
    });
    outcome.map_err(|error| {
        if let Some(raised) = signals.take() {
            return raised;
        }
        let raised = RAISED.lock().unwrap_or_else(PoisonError::into_inner).pop();
        match raised {
            Some(raised) if error.to_string().contains("a hook raised") => raised,
            _ => exception(error),
        }
    })
}

/// Looks for signals now and then. Python runs their handlers on its main thread only, which is
/// the thread that runs the program if the user waits for it there.
///
/// Making one reads no clock: a run that is over at once never looks.
#[derive(Default)]
struct Signals {
    calls: AtomicU32,
    last: Mutex<Option<Instant>>,
    raised: Mutex<Option<PyErr>>,
}

/// Reading the clock costs as much as a small operation, so it is read only every so often.
const CALLS_BETWEEN_LOOKS: u32 = 32;

impl Signals {
    fn pending(&self) -> bool {
        if !self.calls.fetch_add(1, Ordering::Relaxed).is_multiple_of(CALLS_BETWEEN_LOOKS) {
            return false;
        }
        {
            let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            let waited = last.get_or_insert_with(Instant::now).elapsed();
            if waited < SIGNAL_INTERVAL {
                return false;
            }
            *last = Some(Instant::now());
        }
        match Python::attach(|py| py.check_signals()) {
            Ok(()) => false,
            Err(raised) => {
                *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(raised);
                true
            }
        }
    }

    fn take(&self) -> Option<PyErr> {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
