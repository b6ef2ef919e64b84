//! Conversion of arrays of other libraries to tensors, whose values never change.
//!
//! Memory is shared if no one can write to it, and copied otherwise: the caller may overwrite an
//! array as soon as the call returns, although the program may still run. `copy=False` avoids the
//! copy and promises not to write.
//!
//! A read-only flag does not prove immutability. It belongs to one handle: the owner of the memory
//! and earlier views can still write, and NumPy lets an owner clear the flag.

use nxla_runtime::host::{DType, HostTensor, Shape, TensorError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyList, PyMemoryView, PyTuple, PyType};

use nxla_runtime::{RawTensor, TensorType};

use crate::dlpack::{self, BorrowedMemory, Buffer, Capsule, Exported};
use crate::dtype::DTypeArg;
use crate::errors::{argument_error, dtype_error, kind_of};
use crate::exchange;
use crate::shutdown;

/// The treatment of the memory of an array.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// Share the memory if no one can write to it, and copy it otherwise.
    ByValue,
    /// Copy the memory.
    Never,
    /// Share the memory, because the user promises not to write to it; reject memory that cannot be
    /// shared.
    Promised,
}

impl Sharing {
    /// The argument `copy` of the Array API standard.
    pub(crate) fn of(copy: Option<bool>) -> Self {
        match copy {
            None => Sharing::ByValue,
            Some(true) => Sharing::Never,
            Some(false) => Sharing::Promised,
        }
    }
}

/// Below this size a copy is cheaper than the check whether a copy is needed.
pub(crate) const COPY_BELOW: usize = 4096;

/// Returns whether an object is an array: it exports DLPack or a buffer of numbers, or converts to
/// a NumPy array as the columns and frames of pandas do.
pub(crate) fn is_array(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = value.py();
    if value.is_instance_of::<PyType>() {
        return Ok(false); // A class has the attributes of its arrays.
    }
    if value.hasattr(intern!(py, "__dlpack__"))?
        || value.hasattr(intern!(py, "__array_interface__"))?
    {
        return Ok(true);
    }
    if dlpack::has_buffer(value) {
        return Ok(!value.is_instance_of::<PyBytes>());
    }
    value.hasattr(intern!(py, "__array__"))
}

/// The NumPy array to which an object converts by `__array__` or `__array_interface__`.
fn to_numpy_array<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = value.py();
    let array = if value.hasattr(intern!(py, "__array__"))? {
        value.call_method0(intern!(py, "__array__"))?
    } else if value.hasattr(intern!(py, "__array_interface__"))? {
        py.import(intern!(py, "numpy"))?.call_method1(intern!(py, "asarray"), (value,))?
    } else {
        return Ok(None);
    };
    Ok(array.is_instance(numpy_array(py)?)?.then_some(array))
}

/// The type that an object states in `dtype` and `shape`, if `__array__` is the only way to read its
/// data. The data stays unread. `None` for every other object.
pub(crate) fn stated_type(value: &Bound<'_, PyAny>) -> PyResult<Option<TensorType>> {
    let py = value.py();
    if value.is_instance_of::<PyType>()
        || !value.hasattr(intern!(py, "__array__"))?
        || value.hasattr(intern!(py, "__dlpack__"))?
        || value.hasattr(intern!(py, "__array_interface__"))?
        || dlpack::has_buffer(value)
    {
        return Ok(None);
    }
    let dtype = value.getattr_opt(intern!(py, "dtype"))?;
    let shape = value.getattr_opt(intern!(py, "shape"))?;
    let (Some(dtype), Some(shape)) = (dtype, shape) else { return Ok(None) };
    let (Ok(dtype), Ok(dims)) = (dtype.extract::<DTypeArg>(), shape.extract::<Vec<usize>>()) else {
        return Ok(None);
    };
    Ok(Some(TensorType { dtype: dtype.0, shape: Shape::from(dims), names: None }))
}

/// Returns the tensor of an array, or `None` for other values. The tensor is on the device of the
/// array.
pub(crate) fn import(value: &Bound<'_, PyAny>, sharing: Sharing) -> PyResult<Option<RawTensor>> {
    shutdown::prepare();
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() || !is_array(value)? {
        return Ok(None);
    }
    let py = value.py();
    refuse_masked(value)?;
    match dlpack::buffer_of(value)? {
        Some(Buffer::Borrowed(lent, read_only)) => {
            refuse_text_and_dates(value, lent.dtype())?;
            let frozen = sharing == Sharing::ByValue
                && read_only
                && lent.length() >= COPY_BELOW
                && is_immutable(value)?;
            return import_host_memory(py, lent, frozen, sharing).map(RawTensor::from).map(Some);
        }
        Some(Buffer::Gathered(_)) if sharing == Sharing::Promised => return Err(must_copy()),
        Some(Buffer::Gathered(tensor)) => return Ok(Some(tensor.into())),
        None => {}
    }
    if let Some(dtype) = extension_dtype(value)? {
        return extension(value, dtype, sharing).map(RawTensor::from).map(Some);
    }
    if value.hasattr(intern!(py, "__dlpack__"))? {
        let (capsule, exporter) = dlpack::capsule_of(value)?;
        let frozen = sharing == Sharing::ByValue
            && (exporter.copied || exporter.read_only && is_immutable(value)?);
        return match capsule {
            Capsule::Host(lent) => {
                import_host_memory(py, lent, frozen, sharing).map(RawTensor::from)
            }
            Capsule::Cuda(memory) => exchange::import_device_memory(py, memory, frozen, sharing),
        }
        .map(Some);
    }
    match to_numpy_array(value)? {
        Some(array) => import(&array, sharing),
        None => Err(unreadable(value)),
    }
}

/// A tensor of a buffer of plain bytes, which are its elements. Memory is shared if it is
/// immutable, or if the user promises this and the alignment permits it.
pub(crate) fn from_raw(
    value: &Bound<'_, PyAny>,
    dtype: DType,
    shape: Shape,
    promised: bool,
    damaged: impl Fn(TensorError) -> PyErr,
) -> PyResult<HostTensor> {
    // The size is checked before memory is allocated, and the caller's error names the mismatch.
    if let Ok(plain) = value.cast::<PyBytes>() {
        let bytes = plain.as_bytes();
        let fits = shape.checked_byte_size(dtype) == Some(bytes.len());
        if !fits || bytes.len() < COPY_BELOW || dtype.bits() < 8 || dtype.is_pred() {
            return HostTensor::from_bytes(dtype, shape, bytes).map_err(damaged);
        }
    }
    let Some(Buffer::Borrowed(lent, _)) = dlpack::buffer_of(value)? else {
        return Err(unreadable(value));
    };
    let lent = lent.reinterpret(dtype, shape);
    let frozen = promised || lent.length() >= COPY_BELOW && is_constant(value)?;
    if frozen && lent.is_shareable() { lent.into_shared() } else { lent.copy(value.py()) }
}

/// Returns whether a buffer is one of the two immutable kinds, or a view of one.
fn is_constant(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let owner = if value.is_instance_of::<PyMemoryView>() {
        value.getattr(intern!(value.py(), "obj"))?
    } else {
        value.clone()
    };
    Ok(owner.is_instance_of::<PyBytes>() || owner.is_instance_of::<Exported>())
}

/// Returns dtype and shape of an array without reading its elements, or `None` if the object is not
/// an array.
pub(crate) fn array_type(value: &Bound<'_, PyAny>) -> PyResult<Option<(DType, Shape)>> {
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() || !is_array(value)? {
        return Ok(None);
    }
    refuse_masked(value)?;
    if let Some(ty) = dlpack::buffer_type(value)? {
        refuse_text_and_dates(value, ty.0)?;
        return Ok(Some(ty));
    }
    let py = value.py();
    if let Some(dtype) = extension_dtype(value)? {
        let dims: Vec<usize> = value.getattr(intern!(py, "shape"))?.extract()?;
        return Ok(Some((dtype, Shape::from(dims))));
    }
    if value.hasattr(intern!(py, "__dlpack__"))? {
        let (dtype, shape) = match dlpack::capsule_of(value)?.0 {
            Capsule::Host(lent) => (lent.dtype(), lent.shape().clone()),
            Capsule::Cuda(memory) => (memory.dtype(), memory.shape().clone()),
        };
        return Ok(Some((dtype, shape)));
    }
    if let Some(stated) = stated_type(value)? {
        return Ok(Some((stated.dtype, stated.shape)));
    }
    match to_numpy_array(value)? {
        Some(array) => array_type(&array),
        None => Err(unreadable(value)),
    }
}

fn unreadable(value: &Bound<'_, PyAny>) -> PyErr {
    match kind_of(value) {
        Ok(kind) => {
            argument_error("tensor", format!("value: must have readable memory; got {kind}"))
        }
        Err(error) => error,
    }
}

/// Rejects memory that cannot be shared if the user requires sharing.
pub(crate) fn refuse(sharing: Sharing) -> PyResult<()> {
    match sharing {
        Sharing::Promised => Err(must_copy()),
        Sharing::ByValue | Sharing::Never => Ok(()),
    }
}

pub(crate) fn must_copy() -> PyErr {
    let why = "copy: must not be False for memory with another layout, alignment, dtype or \
               device; pass copy=None to allow a copy";
    argument_error("asarray", why)
}

/// A tensor of memory of another library. `frozen` states that no one can write to it.
///
/// Every byte except 0 of a boolean array is true, as in NumPy. Tensors only contain 0 and 1, so
/// such an array is copied unless the user promises that it can be shared.
fn import_host_memory(
    py: Python<'_>,
    lent: BorrowedMemory,
    frozen: bool,
    sharing: Sharing,
) -> PyResult<HostTensor> {
    match sharing {
        Sharing::ByValue | Sharing::Never if lent.dtype().is_pred() => {
            Ok(lent.with_dtype(DType::U8).copy(py)?.cast(DType::Pred))
        }
        Sharing::Promised if !lent.is_shareable() => Err(must_copy()),
        Sharing::Promised => lent.into_shared(),
        Sharing::ByValue if frozen && lent.is_shareable() => lent.into_shared(),
        Sharing::ByValue | Sharing::Never => lent.copy(py),
    }
}

/// Returns whether no handle can write to the memory of an array: its owner is known and immutable.
fn is_immutable(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    /// Follows views of views; NumPy keeps the chain short.
    const LONGEST_CHAIN: usize = 16;
    let py = value.py();
    let mut owner = value.clone();
    for _ in 0..LONGEST_CHAIN {
        if owner.is_instance_of::<PyBytes>()
            || owner.is_instance_of::<Exported>()
            || is_jax(&owner)?
        {
            return Ok(true);
        }
        let next = if owner.is_instance_of::<PyMemoryView>() {
            intern!(py, "obj")
        } else if owner.is_instance(numpy_array(py)?)? {
            intern!(py, "base")
        } else {
            return Ok(false);
        };
        owner = owner.getattr(next)?;
    }
    Ok(false)
}

fn numpy_array(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    CLASS.import(py, "numpy", "ndarray")
}

fn numpy_scalar(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    CLASS.import(py, "numpy", "generic")
}

/// Returns whether an object is a JAX array, which is immutable.
fn is_jax(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let module = value.get_type().module()?;
    let package = module.to_cow()?;
    Ok(package.split('.').next() == Some("jaxlib"))
}

// --- dtypes that the buffer protocol has no letter for ---

/// The dtype of a numpy array that exports no buffer of a known format: one of `ml_dtypes`, or one
/// in the other byte order.
fn extension_dtype(value: &Bound<'_, PyAny>) -> PyResult<Option<DType>> {
    let py = value.py();
    let Some(dtype) = value.getattr_opt(intern!(py, "dtype"))? else { return Ok(None) };
    if !value.hasattr(intern!(py, "__array_interface__"))? {
        return Ok(None);
    }
    // Other objects may have a `dtype` that is not a dtype of NumPy.
    if !value.is_instance(numpy_array(py)?)? && !value.is_instance(numpy_scalar(py)?)? {
        return Ok(None);
    }
    match crate::dtype::dtype_of(&dtype) {
        Ok(dtype) => Ok(Some(dtype)),
        Err(_) => Err(dtype_error(format!("tensor: value: dtype must exist in nxla; got {dtype}"))),
    }
}

/// Rejects masked NumPy arrays, whose masks a tensor would lose.
fn refuse_masked(value: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = value.py();
    if value.get_type().module()?.to_str()? == "numpy" {
        return Ok(());
    }
    // A masked array exists only if its module has been imported.
    let modules = py.import(intern!(py, "sys"))?.getattr(intern!(py, "modules"))?;
    let Ok(module) = modules.get_item(intern!(py, "numpy.ma")) else { return Ok(()) };
    if !value.is_instance(&module.getattr(intern!(py, "MaskedArray"))?)? {
        return Ok(());
    }
    let why = "value: must not be masked; got a numpy.ma.MaskedArray; pass value.filled(number), \
               or nx.where(value.mask, number, value.data)";
    Err(argument_error("tensor", why))
}

/// NumPy scalars of strings and dates export plain bytes, which are not numbers.
fn refuse_text_and_dates(value: &Bound<'_, PyAny>, lent: DType) -> PyResult<()> {
    if lent == DType::U8 && !value.get_type().is(numpy_array(value.py())?) {
        extension_dtype(value)?;
    }
    Ok(())
}

/// A numpy array whose elements are read as integers of the same width.
fn extension(value: &Bound<'_, PyAny>, dtype: DType, sharing: Sharing) -> PyResult<HostTensor> {
    let py = value.py();
    let order: String = value.getattr("dtype")?.getattr("byteorder")?.extract()?;
    if order == ">" {
        if sharing == Sharing::Promised {
            return Err(must_copy());
        }
        let native = value.getattr("dtype")?.call_method1("newbyteorder", ("=",))?;
        let swapped = import(&value.call_method1("astype", (native,))?, Sharing::Never)?;
        return match swapped {
            Some(RawTensor::Host(swapped)) => Ok(swapped),
            _ => Err(unreadable(value)),
        };
    }
    // NumPy adds an axis to a scalar.
    let dims: Vec<usize> = value.getattr("shape")?.extract()?;
    let plain = if matches!(dtype, DType::S2 | DType::S4) {
        // The bytes of `ml_dtypes` may lack the sign: -1 of `int4` is 0x0f, and 0xff in a tensor.
        refuse(sharing)?;
        value.call_method1("astype", ("i1", "C"))?
    } else {
        let contiguous = py.import("numpy")?.call_method1("ascontiguousarray", (value,))?;
        if sharing == Sharing::Promised && !contiguous.is(value) {
            return Err(must_copy());
        }
        contiguous.call_method1("view", (format!("u{}", dtype.size()),))?
    };
    match dlpack::buffer_of(&plain.call_method1("reshape", (dims,))?)? {
        Some(Buffer::Borrowed(lent, _)) => {
            import_host_memory(py, lent.with_dtype(dtype), false, sharing)
        }
        Some(Buffer::Gathered(_)) | None => Err(unreadable(value)),
    }
}
