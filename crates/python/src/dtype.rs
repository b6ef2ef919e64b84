//! The dtype class, and conversion of objects to dtypes.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::str::FromStr;

use nxla_runtime::DType;
use pyo3::basic::CompareOp;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyString, PyType};

use crate::errors::dtype_error;

/// An element type, such as ``nx.float32``.
///
/// Prints and compares as its short name (``f32``). Comparisons return True or False and never
/// raise; a string or a NumPy dtype with the same element type is equal.
#[pyclass(name = "DType", module = "nxla", frozen)]
#[derive(Clone, Copy)]
pub(crate) struct PyDType(pub(crate) DType);

#[pymethods]
impl PyDType {
    #[new]
    fn new(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        dtype_of(value).map(PyDType)
    }

    /// The short name: ``f32``, ``s32``, ``pred``.
    #[getter]
    fn name(&self) -> &'static str {
        self.0.name()
    }

    /// Bytes per element in memory.
    #[getter]
    fn itemsize(&self) -> usize {
        self.0.size()
    }

    /// Bits that carry the value.
    #[getter]
    fn bits(&self) -> u32 {
        self.0.bits()
    }

    /// One of ``pred``, ``unsigned``, ``signed``, ``float``, ``complex``.
    #[getter]
    fn kind(&self) -> String {
        format!("{:?}", self.0.kind()).to_lowercase()
    }

    /// The NumPy dtype (or ``ml_dtypes`` dtype) that NumPy functions use, as in ``numpy.zeros(3,
    /// dtype=x.dtype)``.
    #[getter]
    fn __numpy_dtype__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        crate::numpy::instance(py, self.0).map(Bound::unbind)
    }

    /// The same as ``__numpy_dtype__``, for NumPy before 2.4.
    #[getter]
    fn dtype(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        crate::numpy::instance(py, self.0).map(Bound::unbind)
    }

    /// The limits of a float or complex dtype: the distance from 1 to the next larger number, the
    /// largest finite number, and the smallest positive number with full precision.
    #[getter]
    fn _float_limits(&self) -> Option<(f64, f64, f64)> {
        let limits = self.0.float_limits()?;
        Some((limits.epsilon, limits.max, limits.smallest_normal))
    }

    fn __repr__(&self) -> &'static str {
        self.0.name()
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.0.hash(&mut hasher);
        hasher.finish()
    }

    fn __richcmp__(&self, other: &Bound<'_, PyAny>, op: CompareOp) -> PyResult<Py<PyAny>> {
        let py = other.py();
        // Only objects that look like dtypes are compared, so nothing can raise.
        let equal = parse(other).is_ok_and(|dtype| dtype == Some(self.0));
        Ok(match op {
            CompareOp::Eq => PyBool::new(py, equal).to_owned().into_any().unbind(),
            CompareOp::Ne => PyBool::new(py, !equal).to_owned().into_any().unbind(),
            CompareOp::Lt | CompareOp::Le | CompareOp::Gt | CompareOp::Ge => py.NotImplemented(),
        })
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyType>, (&'static str,))> {
        Ok((slf.get_type(), (slf.get().0.name(),)))
    }
}

/// The dtype of an object, or `None` if the object does not name a dtype.
pub(crate) fn parse(value: &Bound<'_, PyAny>) -> PyResult<Option<DType>> {
    if let Ok(dtype) = value.cast::<PyDType>() {
        return Ok(Some(dtype.get().0));
    }
    if let Ok(name) = value.cast::<PyString>() {
        let name = name.to_cow()?;
        return match DType::from_str(&name) {
            Ok(dtype) => Ok(Some(dtype)),
            Err(_) if is_ambiguous(&name) => Ok(None),
            Err(_) => as_numpy_says(value),
        };
    }
    if let Ok(class) = value.cast::<PyType>() {
        return python_type(class);
    }
    // NumPy dtypes and dtypes of ml_dtypes have a name.
    match value.getattr_opt("name")? {
        Some(name) if value.hasattr("itemsize")? => parse(&name),
        _ => Ok(None),
    }
}

/// Python's number types, and NumPy's scalar types by their names.
fn python_type(class: &Bound<'_, PyType>) -> PyResult<Option<DType>> {
    let py = class.py();
    Ok(if class.is(py.get_type::<PyBool>()) {
        Some(DType::Pred)
    } else if class.is(py.get_type::<PyInt>()) {
        Some(DType::S32)
    } else if class.is(py.get_type::<PyFloat>()) {
        Some(DType::F32)
    } else if class.is(py.get_type::<PyComplex>()) {
        Some(DType::C64)
    } else {
        let name = class.name()?;
        let name = name.to_cow()?;
        match DType::from_str(name.trim_end_matches('_')) {
            Ok(dtype) => Some(dtype),
            Err(_) => as_numpy_says(class)?,
        }
    })
}

/// Returns whether a name is a letter and a number. Such a name counts bytes in NumPy and bits in
/// nxla, so `i4` is ambiguous and rejected, since `u4` has four bits.
fn is_ambiguous(name: &str) -> bool {
    let digits = name.trim_start_matches(|first: char| first.is_ascii_alphabetic());
    name.len() == digits.len() + 1 && digits.bytes().all(|digit| digit.is_ascii_digit())
}

/// The dtype that NumPy assigns to a name or a class: ``"<f4"``, ``"float"``, ``numpy.longlong``.
fn as_numpy_says(value: &Bound<'_, PyAny>) -> PyResult<Option<DType>> {
    let py = value.py();
    let Ok(numpy) = py.import(intern!(py, "numpy")) else { return Ok(None) };
    let Ok(dtype) = numpy.call_method1(intern!(py, "dtype"), (value,)) else { return Ok(None) };
    let name = dtype.getattr(intern!(py, "name"))?.extract::<String>()?;
    Ok(DType::from_str(&name).ok())
}

/// The dtype of an object.
pub(crate) fn dtype_of(value: &Bound<'_, PyAny>) -> PyResult<DType> {
    match parse(value)? {
        Some(dtype) => Ok(dtype),
        None => {
            let names: Vec<&str> = DType::ALL.iter().map(|dtype| dtype.name()).collect();
            let shown = value.repr()?.to_cow()?.into_owned();
            let names = names.join(", ");
            let is_of_numpy = value.is_instance_of::<PyString>() && as_numpy_says(value)?.is_some();
            let why = if is_of_numpy {
                "; the number counts bytes in NumPy and bits in nxla"
            } else {
                ""
            };
            Err(dtype_error(format!(
                "dtype: must be a NumPy name or one of {names}; got {shown}{why}"
            )))
        }
    }
}

/// An argument that is a dtype or None.
pub(crate) struct DTypeArg(pub(crate) DType);

/// A default of a function, by the dtype's name.
impl From<&'static str> for DTypeArg {
    fn from(name: &'static str) -> Self {
        DTypeArg(DType::from_str(name).expect("defaults are dtypes"))
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for DTypeArg {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        dtype_of(&value).map(DTypeArg)
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyDType>()?;
    for dtype in DType::ALL {
        module.add(dtype.name(), PyDType(dtype))?;
    }
    Ok(())
}
