//! Functions compiled for the types of templates, and for no others.

use std::collections::BTreeMap;
use std::sync::Arc;

use nxla_runtime::{Inputs, Options, Trace};
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};

use crate::errors::{OrRaise, argument_error, exception};
use crate::expected::Expected;
use crate::function::{Borrowings, Entry, PyFunction, generic_alias, run_entry};

/// A function compiled for certain types of arguments. Made by ``nx.compile``.
#[pyclass(name = "Compiled", module = "nxla", frozen, dict, weakref)]
pub(crate) struct PyCompiled {
    /// What it was compiled from, which owns what hooks call. Always there; the interpreter may
    /// collect garbage while it makes the object, and then finds zeros, which are `None`.
    pub(crate) function: Option<Py<PyFunction>>,
    pub(crate) name: String,
    pub(crate) entry: Arc<Entry>,
    pub(crate) options: Options,
    pub(crate) expected: Expected,
    /// Whether results must be finite.
    pub(crate) check: bool,
}

#[pymethods]
impl PyCompiled {
    /// ``nx.Compiled[nx.Tensor]`` is a type for annotations.
    #[classmethod]
    fn __class_getitem__<'py>(
        cls: &Bound<'py, PyType>,
        types: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        generic_alias(cls, types)
    }

    /// What it holds, for the garbage collector.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.function)
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        if Trace::current().is_some() {
            return Err(exception(nxla_runtime::Error::Usage(format!(
                "{}: a compiled function cannot be called while another function is traced; \
                 call the function that it was compiled from",
                self.name
            ))));
        }
        let inputs = self.inputs(py, args, kwargs)?;
        let inputs: Borrowings<'_> = inputs.iter().collect();
        run_entry(py, &self.name, &self.entry, &inputs, &self.options, self.check)
    }

    /// Raises what a call with these arguments would raise about their types.
    #[pyo3(signature = (*args, **kwargs))]
    fn check(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        self.inputs(py, args, kwargs).map(drop)
    }

    /// What the compiler expects it to cost: numbers by name, such as ``flops`` and ``bytes
    /// accessed``. None where the compiler does not say.
    fn cost_analysis(&self, py: Python<'_>) -> PyResult<Option<BTreeMap<String, f64>>> {
        let analysis = py.detach(|| self.entry.analysis()).or_raise()?;
        Ok(analysis.cost.map(|cost| cost.into_iter().collect()))
    }

    /// The bytes that a run takes: ``arguments``, ``outputs``, ``aliased`` (of the arguments, for
    /// outputs), ``temporaries``, and ``code``. None where the compiler does not say.
    fn memory_analysis(&self, py: Python<'_>) -> PyResult<Option<BTreeMap<&'static str, i64>>> {
        let analysis = py.detach(|| self.entry.analysis()).or_raise()?;
        Ok(analysis.memory.map(|memory| {
            BTreeMap::from([
                ("arguments", memory.arguments),
                ("outputs", memory.outputs),
                ("aliased", memory.aliased),
                ("temporaries", memory.temporaries),
                ("code", memory.code),
            ])
        }))
    }

    /// The digest of the program.
    #[getter]
    fn digest(&self) -> String {
        self.entry.program().digest().to_string()
    }

    fn __repr__(&self) -> String {
        let types = self.expected.types();
        format!("<nxla function {} compiled for ({})>", self.name, types.join(", "))
    }
}

impl PyCompiled {
    /// The tensors of a call that fits.
    fn inputs(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Inputs> {
        let (args, rest) = self.expected.bind(&self.name, args, kwargs)?;
        if let Some((keyword, _)) = rest.iter().flatten().next() {
            let why = format!("has no argument {}", keyword.repr()?);
            return Err(argument_error(&self.name, why));
        }
        self.expected.inputs(py, &self.name, &args)
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyCompiled>()
}
