//! Templates: what an input is like, without its data.

use nxla::TensorType;
use nxla::host::Names;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::dtype::{DTypeArg, PyDType};
use crate::errors::argument_error;
use crate::ops::args::{NamesArg, ShapeArg};
use crate::program::axis_names;

/// Stands for an input of a shape and dtype; it has no data, so nothing can be computed with it.
#[pyclass(name = "Template", module = "nxla", frozen)]
pub(crate) struct PyTemplate(pub(crate) TensorType);

#[pymethods]
impl PyTemplate {
    #[new]
    #[pyo3(signature = (shape, dtype, names=None))]
    fn new(shape: ShapeArg, dtype: DTypeArg, names: Option<NamesArg>) -> PyResult<Self> {
        let names: Option<Names> = match names {
            Some(names) if names.0.len() != shape.0.rank() => {
                let (axes, count) = (shape.0.rank(), names.0.len());
                let why = format!("{count} names for {axes} axes");
                return Err(argument_error("template", why));
            }
            Some(names) => names.names(),
            None => None,
        };
        Ok(Self(TensorType { dtype: dtype.0, shape: shape.0, names }))
    }

    /// The element type.
    #[getter]
    fn dtype(&self) -> PyDType {
        PyDType(self.0.dtype)
    }

    /// The size of each axis.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.shape.iter())
    }

    /// The number of axes.
    #[getter]
    fn ndim(&self) -> usize {
        self.0.shape.rank()
    }

    /// The number of elements.
    #[getter]
    fn size(&self) -> usize {
        self.0.shape.size()
    }

    /// The names of the axes, None for those without.
    #[getter]
    fn names(&self) -> Vec<Option<String>> {
        axis_names(&self.0)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<PyTemplate>().is_ok_and(|other| other.get().0 == self.0)
    }

    fn __hash__(&self) -> usize {
        self.0.shape.iter().fold(self.0.dtype as usize, |hash, size| hash.wrapping_mul(31) ^ size)
    }

    fn __repr__(&self) -> String {
        self.0.to_string()
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyTemplate>()
}
