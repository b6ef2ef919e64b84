//! Python functions as hooks.

use std::any::Any;
use std::sync::Arc;

use nxla_runtime::Tensor;
use nxla_runtime::graph::{HostError, HostFn};
use nxla_runtime::host::HostTensor;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::errors::argument_error;
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
        Ok(Arc::new(PyHook { function: function.clone().unbind(), arrange }))
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
    fn call(&self, values: &[HostTensor]) -> Result<(), HostError> {
        Python::attach(|py| self.show(py, values)).map_err(|raised| Box::new(raised) as HostError)
    }
}

/// A Python function that computes values: it takes a list of tensors, and gives one.
pub(crate) struct PyCompute(Py<PyAny>);

impl PyCompute {
    /// A host function for a runtime call.
    pub(crate) fn of(function: &Bound<'_, PyAny>) -> Arc<dyn HostFn> {
        Arc::new(Self(function.clone().unbind()))
    }

    fn call_with(&self, py: Python<'_>, values: &[HostTensor]) -> PyResult<Vec<HostTensor>> {
        let tensors = values.iter().map(|value| PyTensor::wrap(py, Tensor::Host(value.clone())));
        let tensors = tensors.collect::<PyResult<Vec<_>>>()?;
        let results: Vec<PyRef<'_, PyTensor>> = self.0.bind(py).call1((tensors,))?.extract()?;
        // Results may not be ready yet, and what computes them may need the interpreter lock.
        results.iter().map(|result| result.host(py)).collect()
    }
}

impl HostFn for PyCompute {
    fn call(&self, values: &[HostTensor]) -> Result<(), HostError> {
        self.compute(values).map(drop)
    }

    fn compute(&self, values: &[HostTensor]) -> Result<Vec<HostTensor>, HostError> {
        Python::attach(|py| self.call_with(py, values))
            .map_err(|raised| Box::new(raised) as HostError)
    }
}

/// The Python function behind a hook; None for one of another language.
pub(crate) fn callable_of(py: Python<'_>, hook: &dyn HostFn) -> Py<PyAny> {
    let hook = (hook as &dyn Any).downcast_ref::<PyHook>();
    hook.map_or_else(|| py.None(), |hook| hook.function.clone_ref(py))
}
