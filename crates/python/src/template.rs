//! Templates: types of inputs without data.

use nxla_runtime::host::Names;
use nxla_runtime::{TensorType, VectorAxes};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::dtype::{DTypeArg, PyDType};
use crate::errors::argument_error;
use crate::ops::args::{NamesArg, ShapeArg};
use crate::ops::vectors::{vectors_of, vectors_to_python};
use crate::program::axis_names;

/// Describes an input by dtype and shape, without data.
#[pyclass(name = "Template", module = "nxla", frozen)]
pub(crate) struct PyTemplate {
    /// The type of one entry.
    pub(crate) ty: TensorType,
    pub(crate) vectors: VectorAxes,
}

#[pymethods]
impl PyTemplate {
    #[new]
    #[pyo3(signature = (shape, dtype, names=None, vectorized_axes=vec![]))]
    fn new(
        shape: ShapeArg,
        dtype: DTypeArg,
        names: Option<NamesArg>,
        vectorized_axes: Vec<(String, usize)>,
    ) -> PyResult<Self> {
        let names: Option<Names> = match names {
            Some(names) if names.0.len() != shape.0.rank() => {
                let (axes, count) = (shape.0.rank(), names.0.len());
                let why = format!("names: must be {axes}, one for each axis; got {count}");
                return Err(argument_error("template", why));
            }
            Some(names) => names.names(),
            None => None,
        };
        let ty = TensorType { dtype: dtype.0, shape: shape.0, names };
        Ok(Self { ty, vectors: vectors_of(vectorized_axes) })
    }

    /// The element type.
    #[getter]
    fn dtype(&self) -> PyDType {
        PyDType(self.ty.dtype)
    }

    /// The size of each axis.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.ty.shape.iter())
    }

    /// The number of axes.
    #[getter]
    fn ndim(&self) -> usize {
        self.ty.shape.rank()
    }

    /// The number of elements.
    #[getter]
    fn size(&self) -> usize {
        self.ty.shape.size()
    }

    /// The names of the axes; None for an axis without a name.
    #[getter]
    fn names(&self) -> Vec<Option<String>> {
        axis_names(&self.ty)
    }

    /// The vectorized axes as pairs of a name and a size, which `shape` omits.
    #[getter]
    fn vectorized_axes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        vectors_to_python(py, &self.vectors)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other
            .cast::<PyTemplate>()
            .is_ok_and(|other| (&other.get().ty, &other.get().vectors) == (&self.ty, &self.vectors))
    }

    fn __hash__(&self) -> usize {
        self.ty.shape.iter().fold(self.ty.dtype as usize, |hash, size| hash.wrapping_mul(31) ^ size)
    }

    fn __repr__(&self) -> String {
        if self.vectors.is_empty() {
            return self.ty.to_string();
        }
        format!("{} {}", self.vectors, self.ty)
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyTemplate>()
}
