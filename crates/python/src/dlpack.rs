//! Memory shared with other Python libraries: the buffer protocol and DLPack.
//!
//! The only file of this crate with `unsafe` code. What comes in is copied, or kept alive by the
//! object that owns it; what goes out keeps the tensor alive.
#![allow(unsafe_code, reason = "the two protocols are C interfaces")]

use std::ffi::{CStr, c_char, c_int, c_void};

use nxla_runtime::host::{DType, Frozen, HostTensor, Shape};
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList, PyTuple};

use crate::errors::{OrRaise, argument_error};

/// DLPack's number for host memory.
pub(crate) const CPU: i32 = 1;

/// Whether an object is an array: it exports DLPack or a buffer of numbers.
pub(crate) fn is_array(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = value.py();
    if value.hasattr(intern!(py, "__dlpack__"))?
        || value.hasattr(intern!(py, "__array_interface__"))?
    {
        return Ok(true);
    }
    // SAFETY: the object is alive; the call only looks at its type.
    let exports = unsafe { ffi::PyObject_CheckBuffer(value.as_ptr()) } == 1;
    Ok(exports && !value.is_instance_of::<pyo3::types::PyBytes>())
}

/// The array behind an object, copied unless told otherwise; `None` for what is no array.
pub(crate) fn import(value: &Bound<'_, PyAny>, copy: bool) -> PyResult<Option<HostTensor>> {
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() || !is_array(value)? {
        return Ok(None);
    }
    if let Some(tensor) = import_buffer(value, copy)? {
        return Ok(Some(tensor));
    }
    if value.hasattr(intern!(value.py(), "__dlpack__"))? {
        return import_dlpack(value, copy).map(Some);
    }
    let kind = value.get_type().name()?;
    Err(argument_error("tensor", format!("cannot read the memory of a {kind}")))
}

// --- the buffer protocol ---

/// A buffer of another object, held until dropped.
struct HeldBuffer {
    view: Box<ffi::Py_buffer>,
}

// SAFETY: the view is only read, and released with the interpreter attached; the memory it
// describes stays in place until then, whichever thread looks at it.
unsafe impl Send for HeldBuffer {}
// SAFETY: as above; shared access only reads.
unsafe impl Sync for HeldBuffer {}

impl HeldBuffer {
    /// Asks for a buffer with format, shape and strides; `None` if the object refuses.
    fn of(value: &Bound<'_, PyAny>) -> Option<Self> {
        let mut view = Box::new(ffi::Py_buffer::new());
        // SAFETY: the object is alive and the view is a fresh structure for the call to fill.
        let code =
            unsafe { ffi::PyObject_GetBuffer(value.as_ptr(), &mut *view, ffi::PyBUF_RECORDS_RO) };
        if code != 0 {
            // The refusal is not an error here: another protocol may serve.
            drop(PyErr::take(value.py()));
            return None;
        }
        Some(Self { view })
    }

    fn shape(&self) -> Shape {
        let rank = usize::try_from(self.view.ndim).unwrap_or(0);
        if rank == 0 {
            return Shape::scalar();
        }
        // SAFETY: a view with `ndim` axes has that many entries in `shape`.
        let dims = unsafe { std::slice::from_raw_parts(self.view.shape, rank) };
        dims.iter().map(|&dim| usize::try_from(dim).unwrap_or(0)).collect()
    }

    fn dtype(&self) -> Option<DType> {
        if self.view.format.is_null() {
            return Some(DType::U8);
        }
        // SAFETY: a non-null format is a null-terminated string that lives as long as the view.
        let format = unsafe { CStr::from_ptr(self.view.format) };
        dtype_of_format(format.to_str().ok()?, usize::try_from(self.view.itemsize).ok()?)
    }

    fn is_contiguous(&self) -> bool {
        // SAFETY: the view was filled by the interpreter.
        unsafe { ffi::PyBuffer_IsContiguous(&*self.view, b'C' as c_char) == 1 }
    }

    /// The elements in row-major order.
    fn to_bytes(&self) -> PyResult<Vec<u8>> {
        let length = usize::try_from(self.view.len).unwrap_or(0);
        let mut bytes = vec![0u8; length];
        // SAFETY: `bytes` has room for `len` bytes, which is what the call writes.
        let code = unsafe {
            ffi::PyBuffer_ToContiguous(
                bytes.as_mut_ptr().cast(),
                (&raw const *self.view).cast_mut(),
                self.view.len,
                b'C' as c_char,
            )
        };
        match code {
            0 => Ok(bytes),
            _ => Err(Python::attach(PyErr::fetch)),
        }
    }
}

impl AsRef<[u8]> for HeldBuffer {
    fn as_ref(&self) -> &[u8] {
        let length = usize::try_from(self.view.len).unwrap_or(0);
        if length == 0 {
            return &[];
        }
        // SAFETY: only contiguous views are shared (see `import_buffer`), so `len` bytes follow
        // `buf`; the exporter keeps them in place until the view is released.
        unsafe { std::slice::from_raw_parts(self.view.buf.cast(), length) }
    }
}

impl Drop for HeldBuffer {
    fn drop(&mut self) {
        // A device may let go of the data when the interpreter has ended. There is nothing to
        // release then, and waiting for it would hold up the end of the process.
        // SAFETY: the view was filled by `PyObject_GetBuffer` and is released once.
        Python::try_attach(|_| unsafe { ffi::PyBuffer_Release(&mut *self.view) });
    }
}

/// The dtype of a buffer format in native byte order.
fn dtype_of_format(format: &str, size: usize) -> Option<DType> {
    let format = format.trim_start_matches(['@', '=']);
    #[cfg(target_endian = "little")]
    let format = format.trim_start_matches('<');
    Some(match (format, size) {
        ("?", 1) => DType::Pred,
        ("B" | "c", 1) => DType::U8,
        ("H", 2) => DType::U16,
        ("I" | "L", 4) => DType::U32,
        ("L" | "Q" | "N", 8) => DType::U64,
        ("b", 1) => DType::S8,
        ("h", 2) => DType::S16,
        ("i" | "l", 4) => DType::S32,
        ("l" | "q" | "n", 8) => DType::S64,
        ("e", 2) => DType::F16,
        ("f", 4) => DType::F32,
        ("d", 8) => DType::F64,
        ("Zf", 8) => DType::C64,
        ("Zd", 16) => DType::C128,
        _ => return None,
    })
}

fn import_buffer(value: &Bound<'_, PyAny>, copy: bool) -> PyResult<Option<HostTensor>> {
    let Some(buffer) = HeldBuffer::of(value) else { return extension_dtype(value) };
    let Some(dtype) = buffer.dtype() else {
        drop(buffer);
        return extension_dtype(value);
    };
    let shape = buffer.shape();
    if !copy && buffer.is_contiguous() {
        let shared = HostTensor::from_frozen(dtype, shape.clone(), Frozen::promised_by(buffer));
        if let Ok(tensor) = shared {
            return Ok(Some(tensor));
        }
        // Misaligned memory cannot be shared, only copied.
        let Some(buffer) = HeldBuffer::of(value) else { return Ok(None) };
        return HostTensor::from_bytes(dtype, shape, &buffer.to_bytes()?).or_raise().map(Some);
    }
    HostTensor::from_bytes(dtype, shape, &buffer.to_bytes()?).or_raise().map(Some)
}

/// numpy arrays of dtypes that the buffer protocol has no letter for (those of `ml_dtypes`): read
/// as bytes of the same width.
fn extension_dtype(value: &Bound<'_, PyAny>) -> PyResult<Option<HostTensor>> {
    let py = value.py();
    let Some(dtype) = value.getattr_opt(intern!(py, "dtype"))? else { return Ok(None) };
    if !value.hasattr(intern!(py, "__array_interface__"))? {
        return Ok(None);
    }
    let dtype = match crate::dtype::dtype_of(&dtype) {
        Ok(dtype) => dtype,
        Err(_) => return unsupported(&dtype),
    };
    let order: String = value.getattr("dtype")?.getattr("byteorder")?.extract()?;
    if order == ">" {
        let native = value.getattr("dtype")?.call_method1("newbyteorder", ("=",))?;
        return import(&value.call_method1("astype", (native,))?, true);
    }
    let contiguous = py.import("numpy")?.call_method1("ascontiguousarray", (value,))?;
    let shape: Vec<usize> = value.getattr("shape")?.extract()?;
    let bytes: Vec<u8> = contiguous.call_method0("tobytes")?.extract()?;
    HostTensor::from_bytes(dtype, shape, &bytes).or_raise().map(Some)
}

fn unsupported(dtype: &Bound<'_, PyAny>) -> PyResult<Option<HostTensor>> {
    Err(crate::errors::dtype_error(format!("arrays of dtype {dtype} are not supported")))
}

// --- numpy ---

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
            "numpy has no dtype {dtype}: install the package ml_dtypes, or convert the tensor to \
             float32 first"
        )),
        _ => error,
    })?;
    module.getattr(name)
}

/// The memory of a tensor as a Python buffer of bytes.
#[pyclass(frozen)]
struct Exported {
    host: HostTensor,
}

#[pymethods]
impl Exported {
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let bytes = slf.get().host.bytes();
        let length = ffi::Py_ssize_t::try_from(bytes.len()).map_err(|_| {
            PyBufferError::new_err("the tensor is larger than a Python buffer can be")
        })?;
        // SAFETY: the interpreter passes a view to fill. It takes a reference to `slf`, whose
        // tensor never changes, so the bytes stay in place until the view is released; `1` marks
        // them read-only.
        let code = unsafe {
            ffi::PyBuffer_FillInfo(
                view,
                slf.as_ptr(),
                bytes.as_ptr().cast_mut().cast::<c_void>(),
                length,
                1,
                flags,
            )
        };
        match code {
            0 => Ok(()),
            _ => Err(PyErr::fetch(slf.py())),
        }
    }
}

// --- DLPack ---

/// `DLTensor` of dlpack.h.
#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

/// `DLManagedTensor` of dlpack.h, the form before version 1.0.
#[repr(C)]
struct DlManaged {
    tensor: DlTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut DlManaged)>,
}

/// `DLManagedTensorVersioned` of dlpack.h.
#[repr(C)]
struct DlVersioned {
    major: u32,
    minor: u32,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut DlVersioned)>,
    flags: u64,
    tensor: DlTensor,
}

/// The memory must not be written to.
const READ_ONLY: u64 = 1;

/// The exporter made a copy for us.
const IS_COPIED: u64 = 2;

/// What an exported tensor keeps alive, at the address in `context`.
struct Lent {
    _host: HostTensor,
    shape: Vec<i64>,
}

/// DLPack's code and bits of a dtype.
fn dlpack_type(dtype: DType) -> Option<(u8, u8)> {
    let bits = u8::try_from(dtype.bits()).ok()?;
    Some(match dtype {
        DType::Pred => (6, 8),
        DType::S8 | DType::S16 | DType::S32 | DType::S64 => (0, bits),
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => (1, bits),
        DType::F16 | DType::F32 | DType::F64 => (2, bits),
        DType::BF16 => (4, 16),
        DType::C64 | DType::C128 => (5, bits),
        DType::F8E4M3FN => (10, 8),
        DType::F8E5M2 => (12, 8),
        // DLPack packs these, we keep one per byte.
        DType::U2 | DType::U4 | DType::S2 | DType::S4 => return None,
    })
}

fn dtype_of_dlpack(code: u8, bits: u8) -> Option<DType> {
    DType::ALL.iter().copied().find(|&dtype| dlpack_type(dtype) == Some((code, bits)))
}

/// A capsule that lends the tensor's memory.
pub(crate) fn export(
    py: Python<'_>,
    host: HostTensor,
    max_version: Option<(u32, u32)>,
    copy: bool,
) -> PyResult<Py<PyAny>> {
    let Some((code, bits)) = dlpack_type(host.dtype()) else {
        let why = format!("DLPack cannot carry dtype {}", host.dtype());
        return Err(PyBufferError::new_err(why));
    };
    let versioned = max_version.is_some_and(|(major, _)| major >= 1);
    // The old form cannot say that memory is read-only, so it gets a copy of its own.
    let host = match copy || !versioned {
        true => {
            HostTensor::from_bytes(host.dtype(), host.shape().clone(), host.bytes()).or_raise()?
        }
        false => host,
    };
    let shape: Vec<i64> = host.shape().iter().map(|&dim| dim as i64).collect();
    let data = host.bytes().as_ptr().cast_mut().cast();
    let ndim = i32::try_from(shape.len()).expect("few axes");
    let lent = Box::into_raw(Box::new(Lent { _host: host, shape }));
    // SAFETY: `lent` was just made from a box and is not shared yet.
    let shape = unsafe { (*lent).shape.as_mut_ptr() };
    let tensor = DlTensor {
        data,
        device_type: CPU,
        device_id: 0,
        ndim,
        code,
        bits,
        lanes: 1,
        shape,
        strides: std::ptr::null_mut(),
        byte_offset: 0,
    };
    if versioned {
        let flags = if copy { IS_COPIED } else { READ_ONLY };
        let context = lent.cast();
        let deleter = Some(delete_versioned as unsafe extern "C" fn(*mut DlVersioned));
        let managed = DlVersioned { major: 1, minor: 0, context, deleter, flags, tensor };
        return capsule(py, Box::into_raw(Box::new(managed)).cast(), VERSIONED, drop_versioned);
    }
    let managed = DlManaged { tensor, context: lent.cast(), deleter: Some(delete_managed) };
    capsule(py, Box::into_raw(Box::new(managed)).cast(), MANAGED, drop_managed)
}

const MANAGED: &CStr = c"dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";

fn capsule(
    py: Python<'_>,
    managed: *mut c_void,
    name: &'static CStr,
    destructor: unsafe extern "C" fn(*mut ffi::PyObject),
) -> PyResult<Py<PyAny>> {
    // SAFETY: `managed` is a live structure of the kind that `name` says, the name is static, and
    // the destructor frees the structure unless a consumer has renamed the capsule.
    let capsule = unsafe { ffi::PyCapsule_New(managed, name.as_ptr(), Some(destructor)) };
    // SAFETY: the call gives a new reference, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(py, capsule) }.map(Bound::unbind)
}

unsafe extern "C" fn delete_managed(managed: *mut DlManaged) {
    // SAFETY: DLPack calls the deleter once, with the structure that `export` boxed.
    unsafe {
        let managed = Box::from_raw(managed);
        drop(Box::from_raw(managed.context.cast::<Lent>()));
    }
}

unsafe extern "C" fn delete_versioned(managed: *mut DlVersioned) {
    // SAFETY: as for `delete_managed`.
    unsafe {
        let managed = Box::from_raw(managed);
        drop(Box::from_raw(managed.context.cast::<Lent>()));
    }
}

/// Frees what a capsule holds that nobody consumed: a consumer renames it.
unsafe extern "C" fn drop_managed(capsule: *mut ffi::PyObject) {
    // SAFETY: called by the interpreter with the capsule being destroyed; the pointer is taken
    // only while the name is still ours.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, MANAGED.as_ptr()) == 1 {
            delete_managed(ffi::PyCapsule_GetPointer(capsule, MANAGED.as_ptr()).cast());
        }
    }
}

unsafe extern "C" fn drop_versioned(capsule: *mut ffi::PyObject) {
    // SAFETY: as for `drop_managed`.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, VERSIONED.as_ptr()) == 1 {
            delete_versioned(ffi::PyCapsule_GetPointer(capsule, VERSIONED.as_ptr()).cast());
        }
    }
}

/// Memory lent by another library.
struct Borrowed {
    managed: *mut DlManaged,
    data: *const u8,
    length: usize,
}

// SAFETY: DLPack memory may be read and its deleter called from any thread.
unsafe impl Send for Borrowed {}
// SAFETY: as above; shared access only reads.
unsafe impl Sync for Borrowed {}

impl AsRef<[u8]> for Borrowed {
    fn as_ref(&self) -> &[u8] {
        if self.length == 0 {
            return &[];
        }
        // SAFETY: the exporter promises `length` bytes from `data` until the deleter is called.
        unsafe { std::slice::from_raw_parts(self.data, self.length) }
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        // As for buffers, there is nothing to do when the interpreter has ended.
        // SAFETY: the structure came out of a capsule that we marked as used; its deleter, which
        // may need the interpreter, is called once.
        Python::try_attach(|_| unsafe {
            if let Some(deleter) = (*self.managed).deleter {
                deleter(self.managed);
            }
        });
    }
}

fn import_dlpack(value: &Bound<'_, PyAny>, copy: bool) -> PyResult<HostTensor> {
    let py = value.py();
    let (device, _): (i32, i32) =
        value.call_method0(intern!(py, "__dlpack_device__"))?.extract()?;
    if device != CPU {
        return Err(argument_error(
            "from_dlpack",
            "the data is not in host memory; copy it there first",
        ));
    }
    let capsule = value.call_method0(intern!(py, "__dlpack__"))?.cast_into::<PyCapsule>()?;
    // SAFETY: the name is checked before the pointer is taken, and the capsule is renamed so that
    // nobody else takes it.
    let managed: *mut DlManaged = unsafe {
        if ffi::PyCapsule_IsValid(capsule.as_ptr(), MANAGED.as_ptr()) != 1 {
            return Err(argument_error("from_dlpack", "the capsule is no unused DLPack tensor"));
        }
        let pointer = ffi::PyCapsule_GetPointer(capsule.as_ptr(), MANAGED.as_ptr());
        ffi::PyCapsule_SetName(capsule.as_ptr(), c"used_dltensor".as_ptr());
        pointer.cast()
    };
    // SAFETY: a valid capsule holds a filled structure.
    let tensor = unsafe { &(*managed).tensor };
    let dtype = dtype_of_dlpack(tensor.code, tensor.bits).filter(|_| tensor.lanes == 1);
    let (shape, strides) = layout(tensor);
    let (size, item) = (shape.size(), dtype.map_or(1, DType::size));
    let offset = usize::try_from(tensor.byte_offset).unwrap_or(0);
    // SAFETY: `byte_offset` is within the memory that the exporter describes.
    let data = unsafe { tensor.data.cast::<u8>().cast_const().add(offset) };
    let code = (tensor.code, tensor.bits);
    let borrowed = Borrowed { managed, data, length: size * item };
    let Some(dtype) = dtype else {
        let why = format!("DLPack type code {} of {} bits is not supported", code.0, code.1);
        return Err(crate::errors::dtype_error(why));
    };
    let contiguous = strides.is_none_or(|strides| {
        shape.size() == 0
            || strides
                .iter()
                .zip(shape.strides())
                .zip(shape.iter())
                .all(|((&stride, expected), &dim)| dim == 1 || stride == expected as i64)
    });
    if !contiguous {
        return Err(argument_error(
            "from_dlpack",
            "the exporter's memory is not in row-major order; make a contiguous copy first",
        ));
    }
    if copy {
        return HostTensor::from_bytes(dtype, shape, borrowed.as_ref()).or_raise();
    }
    let address = borrowed.data as usize;
    if !address.is_multiple_of(item.max(1)) {
        return HostTensor::from_bytes(dtype, shape, borrowed.as_ref()).or_raise();
    }
    HostTensor::from_frozen(dtype, shape, Frozen::promised_by(borrowed)).or_raise()
}

/// Shape and strides (in elements) of a DLPack tensor.
fn layout(tensor: &DlTensor) -> (Shape, Option<Vec<i64>>) {
    let rank = usize::try_from(tensor.ndim).unwrap_or(0);
    if rank == 0 {
        return (Shape::scalar(), None);
    }
    // SAFETY: a tensor of `ndim` axes has that many sizes, and strides unless they are null.
    unsafe {
        let shape = std::slice::from_raw_parts(tensor.shape, rank);
        let shape = shape.iter().map(|&dim| usize::try_from(dim).unwrap_or(0)).collect();
        let strides = (!tensor.strides.is_null())
            .then(|| std::slice::from_raw_parts(tensor.strides, rank).to_vec());
        (shape, strides)
    }
}
