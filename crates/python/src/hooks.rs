//! Python functions as hooks and runtime calls.

use std::any::Any;
use std::cell::Cell;
use std::sync::Arc;

use nxla_runtime::RawTensor;
use nxla_runtime::graph::{HostError, HostFn};
use nxla_runtime::host::HostTensor;
use pyo3::exceptions::PyRecursionError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::callable::{Callable, OwnedFunctions};
use crate::errors::{check_callable, usage_error};
use crate::shutdown;
use crate::tensor::PyTensor;

/// A Python function that receives values.
pub(crate) struct PyHook {
    /// None for a hook that has only a name; the containers of its values are kept for functions of
    /// callers.
    function: Option<Callable>,
    /// Rebuilds the container of the hook's values.
    arrange: Option<Box<dyn Arrange>>,
}

/// Puts values into a container.
pub(crate) trait Arrange: Send + Sync {
    fn arrange(&self, py: Python<'_>, values: Vec<Py<PyAny>>) -> PyResult<Py<PyAny>>;
}

impl PyHook {
    /// A listener for a name, which is called with the values of a hook.
    pub(crate) fn of(function: &Bound<'_, PyAny>) -> Arc<dyn HostFn> {
        Arc::new(PyHook { function: Some(Callable::new(function)), arrange: None })
    }

    /// A hook that passes its values in a container, with an optional function.
    pub(crate) fn in_container(
        function: Option<&Bound<'_, PyAny>>,
        arrange: Box<dyn Arrange>,
    ) -> PyResult<Arc<dyn HostFn>> {
        function.map(|function| check_callable("hook: function", function)).transpose()?;
        let function = function.map(Callable::new);
        Ok(Arc::new(PyHook { function, arrange: Some(arrange) }))
    }

    /// Calls a function with the values of the hook.
    fn show(&self, function: &Callable, values: &[HostTensor]) -> Result<(), HostError> {
        call_host(|py| {
            let function = function.get().ok_or_else(gone)?;
            let argument = self.argument(py, values)?;
            function.bind(py).call1((argument,)).map(drop)
        })
    }

    fn argument(&self, py: Python<'_>, values: &[HostTensor]) -> PyResult<Py<PyAny>> {
        let mut tensors = Vec::with_capacity(values.len());
        for value in values {
            tensors.push(PyTensor::wrap(py, RawTensor::Host(value.clone()))?);
        }
        match (&self.arrange, tensors.len()) {
            (Some(arrange), _) => arrange.arrange(py, tensors),
            (None, 1) => Ok(tensors.remove(0)),
            (None, _) => Ok(PyTuple::new(py, tensors)?.into_any().unbind()),
        }
    }
}

/// The maximum number of host functions of one thread that run inside of each other. Each of them
/// and the program that calls it need about 18 KiB of the stack, which would overflow before Python
/// counts too many calls.
const MAX_NESTED_CALLS: usize = 64;

/// Runs a host function of a program.
fn call_host<T>(work: impl FnOnce(Python<'_>) -> PyResult<T>) -> Result<T, HostError> {
    thread_local! {
        static DEPTH: Cell<usize> = const { Cell::new(0) };
    }
    let called = shutdown::inside(|py| {
        if DEPTH.get() >= MAX_NESTED_CALLS {
            return Err(PyRecursionError::new_err(format!(
                "programs must call functions that run programs at most {MAX_NESTED_CALLS} deep"
            )));
        }
        DEPTH.set(DEPTH.get() + 1);
        let called = work(py);
        DEPTH.set(DEPTH.get() - 1);
        called
    });
    called.map_err(|raised| Box::new(raised) as HostError)
}

/// The error for a program that outlives the owner of its hooks.
fn gone() -> PyErr {
    usage_error(
        "the function of a hook was deleted together with its jitted function; keep the jitted \
         function",
    )
}

impl HostFn for PyHook {
    fn call(&self, values: &[HostTensor]) -> Result<(), HostError> {
        match &self.function {
            Some(function) => self.show(function, values),
            None => Ok(()),
        }
    }

    fn is_silent(&self) -> bool {
        self.function.is_none()
    }

    fn show_to(&self, installed: &dyn HostFn, values: &[HostTensor]) -> Result<(), HostError> {
        let python = (installed as &dyn Any).downcast_ref::<PyHook>();
        match python.and_then(|hook| hook.function.as_ref()) {
            Some(function) => self.show(function, values),
            None => installed.call(values),
        }
    }
}

/// A Python function that computes values, from a list of tensors to a list of tensors.
pub(crate) struct PyCompute(Callable);

impl PyCompute {
    /// A host function for a runtime call.
    pub(crate) fn of(function: &Bound<'_, PyAny>) -> Arc<dyn HostFn> {
        Arc::new(Self(Callable::new(function)))
    }

    fn call_with(&self, py: Python<'_>, values: &[HostTensor]) -> PyResult<Vec<HostTensor>> {
        let tensors = values.iter().map(|value| PyTensor::wrap(py, RawTensor::Host(value.clone())));
        let tensors = tensors.collect::<PyResult<Vec<_>>>()?;
        let function = self.0.get().ok_or_else(gone)?;
        let results: Vec<PyRef<'_, PyTensor>> = function.bind(py).call1((tensors,))?.extract()?;
        // Results may be unfinished, and computing them may need the interpreter lock.
        results.iter().map(|result| result.host(py)).collect()
    }
}

impl HostFn for PyCompute {
    fn call(&self, values: &[HostTensor]) -> Result<(), HostError> {
        self.compute(values).map(drop)
    }

    fn compute(&self, values: &[HostTensor]) -> Result<Vec<HostTensor>, HostError> {
        call_host(|py| self.call_with(py, values))
    }
}

/// Moves the functions of hooks to an owner.
pub(crate) fn give_to<'a>(
    owned: &OwnedFunctions,
    hooks: impl IntoIterator<Item = &'a Arc<dyn HostFn>>,
) {
    for hook in hooks {
        let hook = (&**hook as &dyn Any).downcast_ref::<PyHook>();
        hook.and_then(|hook| hook.function.as_ref()).inspect(|function| function.give(owned));
    }
}

/// The Python function of a hook; None for a Rust function.
pub(crate) fn callable_of(py: Python<'_>, hook: &dyn HostFn) -> Py<PyAny> {
    let hook = (hook as &dyn Any).downcast_ref::<PyHook>();
    let function = hook.and_then(|hook| hook.function.as_ref()?.get());
    function.map_or_else(|| py.None(), |function| function.clone_ref(py))
}
