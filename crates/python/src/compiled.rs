//! Functions that are compiled for fixed argument types.

use std::collections::BTreeMap;
use std::sync::Arc;

use nxla_runtime::{Inputs, Options, refuse_trace};
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};

use crate::errors::{OrRaise, argument_error};
use crate::expected::{Expected, names_of};
use crate::function::{Borrowings, Entry, PyFunction, generic_alias, run_entry};

/// A function that is compiled for fixed argument types; returned by ``nx.compile``.
#[pyclass(name = "Compiled", module = "nxla", frozen, dict, weakref)]
pub(crate) struct PyCompiled {
    /// The function from which it was compiled, which owns the functions of hooks. Always present;
    /// if the interpreter collects garbage during construction, the memory is zero, which is
    /// `None`.
    pub(crate) function: Option<Py<PyFunction>>,
    pub(crate) name: String,
    pub(crate) entry: Arc<Entry>,
    pub(crate) options: Options,
    pub(crate) expected: Expected,
    /// `Some(true)` checks that results are finite; `None` leaves the choice to the thread.
    pub(crate) check: Option<bool>,
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

    /// Visits the members for the garbage collector.
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
        refuse_trace(&self.name).or_raise()?;
        let inputs = self.inputs(py, args, kwargs)?;
        let inputs: Borrowings<'_> = inputs.iter().collect();
        run_entry(py, &self.name, &self.entry, &inputs, &self.options, self.check)
    }

    /// Raise the error that a call with these arguments would raise about their types.
    #[pyo3(signature = (*args, **kwargs))]
    fn check(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        self.inputs(py, args, kwargs).map(drop)
    }

    /// Return the estimated cost: numbers by name, such as ``flops`` and ``bytes accessed``. None
    /// if the compiler does not report it.
    fn cost_analysis(&self, py: Python<'_>) -> PyResult<Option<BTreeMap<String, f64>>> {
        let analysis = py.detach(|| self.entry.analysis()).or_raise()?;
        Ok(analysis.cost.map(|cost| cost.into_iter().collect()))
    }

    /// Return the memory of a run in bytes: ``arguments``, ``outputs``, ``aliased`` (arguments
    /// whose memory outputs reuse), ``temporaries``, and ``code``. None if the compiler does not
    /// report it.
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
    /// The tensors of a call with matching types.
    fn inputs(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Inputs> {
        let args = bind_all(&self.expected, &self.name, args, kwargs)?;
        self.expected.inputs(py, &self.name, &args, Some(self.entry.program()))
    }
}

/// The positional arguments of a call whose keywords are all arguments.
fn bind_all<'py>(
    expected: &Expected,
    name: &str,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyTuple>> {
    let (args, rest) = expected.bind(name, args, kwargs)?;
    if let Some((keyword, _)) = rest.iter().flatten().next() {
        let why = format!("got an unexpected keyword argument {}", keyword.repr()?);
        return Err(argument_error(name, why));
    }
    Ok(args)
}

/// The positional arguments of a call of ``function``, which a callback has compiled for these
/// templates. Raises the errors of a compiled function.
#[pyfunction]
fn compiled_arguments<'py>(
    py: Python<'py>,
    name: &str,
    function: &Bound<'py, PyAny>,
    templates: &Bound<'py, PyTuple>,
    args: &Bound<'py, PyTuple>,
    kwargs: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyTuple>> {
    refuse_trace(name).or_raise()?;
    let names = names_of(function, templates.len())?;
    let expected = Expected::of_templates(name, templates, names)?;
    let args = bind_all(&expected, name, args, Some(kwargs))?;
    expected.compare(py, name, &args)?;
    Ok(args)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyCompiled>()?;
    module.add_function(wrap_pyfunction!(compiled_arguments, module)?)
}
