//! Data as numpy arrays.

use nxla_runtime::host::{DType, HostTensor};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::dlpack::Exported;

/// The data as a numpy array that shares the tensor's memory, read-only.
pub(crate) fn to_numpy(py: Python<'_>, host: HostTensor) -> PyResult<Py<PyAny>> {
    let dtype = host.dtype();
    let shape = PyTuple::new(py, host.shape().iter())?;
    let numpy_dtype = numpy_dtype(py, dtype)?;
    let numpy = py.import(intern!(py, "numpy"))?;
    if host.size() == 0 {
        return Ok(numpy.call_method1("empty", (shape, numpy_dtype))?.unbind());
    }
    let exported = Bound::new(py, Exported { host })?;
    let flat = numpy.call_method1(intern!(py, "frombuffer"), (exported, numpy_dtype))?;
    Ok(flat.call_method1(intern!(py, "reshape"), (shape,))?.unbind())
}

/// An instance of numpy's dtype.
pub(crate) fn instance(py: Python<'_>, dtype: DType) -> PyResult<Bound<'_, PyAny>> {
    py.import(intern!(py, "numpy"))?.call_method1(intern!(py, "dtype"), (numpy_dtype(py, dtype)?,))
}

fn numpy_dtype<'py>(py: Python<'py>, dtype: DType) -> PyResult<Bound<'py, PyAny>> {
    let (module, name) = match dtype {
        DType::Pred => ("numpy", "bool_"),
        DType::U2 | DType::U4 | DType::U8 => ("numpy", "uint8"),
        DType::U16 => ("numpy", "uint16"),
        DType::U32 => ("numpy", "uint32"),
        DType::U64 => ("numpy", "uint64"),
        DType::S2 | DType::S4 | DType::S8 => ("numpy", "int8"),
        DType::S16 => ("numpy", "int16"),
        DType::S32 => ("numpy", "int32"),
        DType::S64 => ("numpy", "int64"),
        DType::F8E5M2 => ("ml_dtypes", "float8_e5m2"),
        DType::F8E4M3FN => ("ml_dtypes", "float8_e4m3fn"),
        DType::BF16 => ("ml_dtypes", "bfloat16"),
        DType::F16 => ("numpy", "float16"),
        DType::F32 => ("numpy", "float32"),
        DType::F64 => ("numpy", "float64"),
        DType::C64 => ("numpy", "complex64"),
        DType::C128 => ("numpy", "complex128"),
    };
    let module = py.import(module).map_err(|error| match module {
        "ml_dtypes" => crate::errors::dtype_error(format!(
            "numpy: dtype must exist in NumPy; got {dtype}; install the package ml_dtypes, or \
             convert the tensor to float32 first"
        )),
        _ => error,
    })?;
    module.getattr(name)
}
