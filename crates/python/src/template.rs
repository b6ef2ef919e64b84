//! Templates: types of inputs without data.

use std::collections::HashSet;
use std::fmt;

use nxla_runtime::host::Names;
use nxla_runtime::{RawTensor, TensorType, VectorAxes};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::dtype::{DTypeArg, PyDType};
use crate::errors::argument_error;
use crate::ops::args::{Count, NamesArg, ShapeArg};
use crate::ops::declare::Converted;
use crate::ops::vectors::{vectors_of, vectors_to_python};
use crate::program::axis_names;

/// The type of a leaf: of one entry, with its vectorized axes.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct LeafType {
    pub(crate) ty: TensorType,
    pub(crate) vectors: VectorAxes,
}

impl LeafType {
    /// A type without vectorized axes.
    pub(crate) fn of(ty: TensorType) -> Self {
        Self { ty, vectors: VectorAxes::NONE }
    }

    /// The type of a tensor.
    pub(crate) fn of_tensor(tensor: &RawTensor) -> Self {
        Self { ty: tensor.ty(), vectors: tensor.vectors().clone() }
    }

    /// The type of the data, in which vectorized axes are ordinary leading axes.
    pub(crate) fn full_type(&self) -> TensorType {
        self.vectors.full_type(&self.ty)
    }
}

impl fmt::Display for LeafType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.vectors.is_empty() {
            write!(f, "{} ", self.vectors)?;
        }
        self.ty.fmt(f)
    }
}

/// Describes an input by dtype and shape, without data.
#[pyclass(name = "Template", module = "nxla", frozen)]
pub(crate) struct PyTemplate(pub(crate) LeafType);

#[pymethods]
impl PyTemplate {
    #[new]
    #[pyo3(
        signature = (shape, dtype, names=None, vectorized_axes=Converted::of(vec![])),
        text_signature = "(shape, dtype, names=None, vectorized_axes=())"
    )]
    fn new(
        py: Python<'_>,
        shape: Converted<ShapeArg>,
        dtype: Converted<DTypeArg>,
        names: Option<Converted<NamesArg>>,
        vectorized_axes: Converted<Vec<(String, Count)>>,
    ) -> PyResult<Self> {
        let function = "template";
        let shape = shape.value(py, function, "shape")?;
        let dtype = dtype.value(py, function, "dtype")?;
        let names = names.map(|names| names.value(py, function, "names")).transpose()?;
        let kind = "Sequence[tuple[str, int]]";
        let axes = vectorized_axes.or_name(py, function, "vectorized_axes", kind)?;
        let names: Option<Names> = match names {
            Some(names) if names.0.len() != shape.0.rank() => {
                let (axes, count) = (shape.0.rank(), names.0.len());
                let why = format!("names: must be {axes}, one for each axis; got {count}");
                return Err(argument_error(function, why));
            }
            Some(names) => names.names(),
            None => None,
        };
        let ty = TensorType { dtype: dtype.0, shape: shape.0, names };
        let mut seen = HashSet::new();
        if let Some((twice, _)) = axes.iter().find(|(name, _)| !seen.insert(name.as_str())) {
            let why = format!("vectorized_axes: names must be distinct; got {twice:?} twice");
            return Err(argument_error(function, why));
        }
        let axes = axes.into_iter().map(|(name, Count(size))| (name, size)).collect();
        Ok(Self(LeafType { ty, vectors: vectors_of(axes) }))
    }

    /// The element type.
    #[getter]
    fn dtype(&self) -> PyDType {
        PyDType(self.0.ty.dtype)
    }

    /// The size of each axis.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.ty.shape.iter())
    }

    /// The number of axes.
    #[getter]
    fn ndim(&self) -> usize {
        self.0.ty.shape.rank()
    }

    /// The number of elements.
    #[getter]
    fn size(&self) -> usize {
        self.0.ty.shape.size()
    }

    /// The names of the axes; None for an axis without a name.
    #[getter]
    fn names(&self) -> Vec<Option<String>> {
        axis_names(&self.0.ty)
    }

    /// The vectorized axes as pairs of a name and a size, which `shape` omits.
    #[getter]
    fn vectorized_axes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        vectors_to_python(py, &self.0.vectors)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<PyTemplate>().is_ok_and(|other| other.get().0 == self.0)
    }

    fn __hash__(&self) -> usize {
        self.0
            .ty
            .shape
            .iter()
            .fold(self.0.ty.dtype as usize, |hash, size| hash.wrapping_mul(31) ^ size)
    }

    fn __repr__(&self) -> String {
        self.0.to_string()
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyTemplate>()
}
