//! Memory shared with other Python libraries: the buffer protocol and DLPack.
//!
//! Apart from `shutdown.rs`, only this file of the crate contains `unsafe` code. Incoming memory is
//! copied, unless it is immutable (`arrays.rs` decides) or the user promises not to write to it.
//! Exported memory keeps its tensor alive. `exchange.rs` decides which memory is exported, and how
//! memory on CUDA devices is imported.
//!
//! Memory that others can write to is [`BorrowedMemory`]: its bytes are copied through a raw pointer and
//! never become a Rust slice, because the compiler assumes that a slice is constant. Only [`UnchangingMemory`]
//! memory becomes a slice, and its constructor documents the promise.
#![allow(unsafe_code, reason = "the two protocols are C interfaces")]

use std::ffi::{CStr, c_char, c_int, c_void};

use nxla_runtime::host::{DType, Frozen, HostTensor, Shape};
use nxla_runtime::pjrt::{ExternalReference, ForeignMemory};
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyCapsule, PyDict};

use crate::errors::{OrRaise, argument_error, user_error};
use crate::shutdown;
use crate::strides::Strides;

/// DLPack's number for host memory.
pub(crate) const CPU: i32 = 1;

/// DLPack's number for the memory of a CUDA device.
pub(crate) const CUDA: i32 = 2;

/// The maximum number of axes that is accepted from another library.
const MOST_AXES: usize = 1024;

/// Copies of at least this size release the interpreter lock. Acquiring the lock again can take
/// longer than a short copy.
const DETACH_FROM: usize = 1 << 20;

// --- memory of others ---

/// Memory of another library, which stays in place while this value lives. Other code may write to
/// it.
pub(crate) struct BorrowedMemory {
    /// The object that keeps the memory in place.
    _owner: Owner,
    data: *const u8,
    length: usize,
    dtype: DType,
    shape: Shape,
    /// The order of the elements, unless they are adjacent and in row-major order.
    strides: Option<Strides>,
}

enum Owner {
    Buffer(#[allow(dead_code, reason = "held for its drop")] HeldBuffer),
    Capsule(#[allow(dead_code, reason = "held for its drop")] Managed),
}

// SAFETY: the memory does not move with the handle. The owner is released with the interpreter
// attached, on any thread.
unsafe impl Send for BorrowedMemory {}
// SAFETY: as above; shared access only reads.
unsafe impl Sync for BorrowedMemory {}

impl BorrowedMemory {
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    pub(crate) fn dtype(&self) -> DType {
        self.dtype
    }

    pub(crate) fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The same bytes as elements of another dtype of the same size.
    pub(crate) fn with_dtype(self, dtype: DType) -> Self {
        Self { dtype, ..self }
    }

    /// The same bytes as elements of a dtype in a shape, without a check of their number; creating
    /// a tensor checks it.
    pub(crate) fn reinterpret(self, dtype: DType, shape: Shape) -> Self {
        Self { dtype, shape, ..self }
    }

    /// A tensor with a copy of the present contents.
    pub(crate) fn copy(&self, py: Python<'_>) -> PyResult<HostTensor> {
        HostTensor::from_writer(
            self.dtype,
            self.shape.clone(),
            |out| -> Result<(), nxla_runtime::Error> {
                if out.len() != self.length {
                    let why = format!(
                        "value: must have the size of its dtype and shape; got {} bytes for {}{}",
                        self.length, self.dtype, self.shape
                    );
                    return Err(user_error(argument_error("tensor", why)));
                }
                if self.length >= DETACH_FROM {
                    py.detach(|| self.copy_to(out));
                } else {
                    self.copy_to(out);
                }
                Ok(())
            },
        )
        .or_raise()
    }

    fn copy_to(&self, out: &mut [u8]) {
        assert_eq!(out.len(), self.length, "the caller has compared the lengths");
        if out.is_empty() {
            return;
        }
        if let Some(strides) = &self.strides {
            for (offset, run) in strides.offsets().zip(out.chunks_exact_mut(strides.run_bytes())) {
                // SAFETY: the owner keeps the bytes of all elements in place while this lives, and a run
                // consists of elements, whose addresses do not overflow, as `lent_by` has checked. `out`
                // belongs to this call, so the regions do not overlap. A race has no effect but other
                // bytes, as below.
                unsafe {
                    let from = self.data.wrapping_offset(offset);
                    std::ptr::copy_nonoverlapping(from, run.as_mut_ptr(), run.len());
                }
            }
            return;
        }
        // SAFETY: the owner keeps `length` bytes from `data` in place while this lives, and `out`
        // belongs to this call, so the regions do not overlap. Another thread that writes to the array
        // meanwhile races with this copy, as with a copy by any other library; every resulting byte
        // is valid, and this code reads the array only once.
        unsafe { std::ptr::copy_nonoverlapping(self.data, out.as_mut_ptr(), out.len()) }
    }

    /// Returns whether a tensor can share the memory: the elements are in row-major order, and the
    /// address is aligned for the dtype.
    pub(crate) fn is_shareable(&self) -> bool {
        let is_aligned = (self.data as usize).is_multiple_of(self.dtype.align());
        self.length == 0 || is_aligned && self.strides.is_none()
    }

    /// A tensor that shares the memory, which must be shareable. The caller guarantees that the memory
    /// is not written to any more: it is immutable, or the user has promised it.
    pub(crate) fn into_shared(self) -> PyResult<HostTensor> {
        assert!(self.strides.is_none(), "the caller has checked the order of the elements");
        let (dtype, shape) = (self.dtype, self.shape.clone());
        HostTensor::from_frozen(dtype, shape, Frozen::promised_by(UnchangingMemory(self)))
            .or_raise()
    }
}

/// Memory of another library that is not written to any more.
struct UnchangingMemory(BorrowedMemory);

impl AsRef<[u8]> for UnchangingMemory {
    fn as_ref(&self) -> &[u8] {
        if self.0.length == 0 {
            return &[];
        }
        // SAFETY: the owner keeps `length` bytes from `data` in place while `self` lives, and the
        // caller of `shared` guarantees that they do not change.
        unsafe { std::slice::from_raw_parts(self.0.data, self.0.length) }
    }
}

/// Memory of another library on a CUDA device, which the host cannot read.
pub(crate) struct CudaMemory {
    memory: BorrowedMemory,
    device: i32,
}

impl CudaMemory {
    pub(crate) fn dtype(&self) -> DType {
        self.memory.dtype
    }

    pub(crate) fn shape(&self) -> &Shape {
        &self.memory.shape
    }
}

// SAFETY: the exporter states that the bytes are on the device, and the owner keeps them in place.
unsafe impl ForeignMemory for CudaMemory {
    fn platform(&self) -> &str {
        "cuda"
    }

    fn hardware_id(&self) -> i32 {
        self.device
    }

    fn address(&self) -> usize {
        self.memory.data.expose_provenance()
    }

    fn byte_size(&self) -> usize {
        self.memory.length
    }
}

// --- the buffer protocol ---

/// Returns whether an object exports a buffer.
pub(crate) fn has_buffer(value: &Bound<'_, PyAny>) -> bool {
    // SAFETY: the object is alive; the call only looks at its type.
    unsafe { ffi::PyObject_CheckBuffer(value.as_ptr()) == 1 }
}

/// A buffer of another object, held until dropped.
struct HeldBuffer {
    view: Box<ffi::Py_buffer>,
}

/// The export of an object by the buffer protocol.
pub(crate) enum Buffer {
    /// Elements in row-major order, and whether the handle is read-only.
    Borrowed(BorrowedMemory, bool),
    /// Elements in another order, copied to row-major order.
    Gathered(HostTensor),
}

/// The buffer of an object; `None` without one, or for element types without a format character.
pub(crate) fn buffer_of(value: &Bound<'_, PyAny>) -> PyResult<Option<Buffer>> {
    let Some(buffer) = HeldBuffer::of(value) else { return Ok(None) };
    let Some(dtype) = buffer.dtype() else { return Ok(None) };
    let shape = buffer.shape()?;
    if !buffer.is_contiguous() {
        return Ok(Some(Buffer::Gathered(gather(value, dtype, shape)?)));
    }
    let read_only = buffer.view.readonly != 0;
    let (data, length) = (buffer.view.buf.cast_const().cast(), buffer.length());
    let owner = Owner::Buffer(buffer);
    let lent = BorrowedMemory { _owner: owner, data, length, dtype, shape, strides: None };
    Ok(Some(Buffer::Borrowed(lent, read_only)))
}

/// Copies the elements of a buffer to row-major order. NumPy copies rows of elements, where
/// `PyBuffer_ToContiguous` computes the address of each element by a call.
fn gather(value: &Bound<'_, PyAny>, dtype: DType, shape: Shape) -> PyResult<HostTensor> {
    let py = value.py();
    let order = [("order", "C")].into_py_dict(py)?;
    let copy = py.import(intern!(py, "numpy"))?.call_method("array", (value,), Some(&order))?;
    let Some(Buffer::Borrowed(memory, _)) = buffer_of(&copy)? else {
        return Err(argument_error("buffer", "must be convertible to an array by NumPy"));
    };
    if dtype.is_pred() {
        // Every byte except 0 is true, see `arrays`.
        return Ok(memory.reinterpret(DType::U8, shape).into_shared()?.cast(dtype));
    }
    memory.reinterpret(dtype, shape).into_shared()
}

/// Dtype and shape of an object's buffer, without looking at its elements.
pub(crate) fn buffer_type(value: &Bound<'_, PyAny>) -> PyResult<Option<(DType, Shape)>> {
    let Some(buffer) = HeldBuffer::of(value) else { return Ok(None) };
    let Some(dtype) = buffer.dtype() else { return Ok(None) };
    Ok(Some((dtype, buffer.shape()?)))
}

impl HeldBuffer {
    /// Requests a buffer with format, shape and strides; `None` if the object refuses.
    fn of(value: &Bound<'_, PyAny>) -> Option<Self> {
        let mut view = Box::new(ffi::Py_buffer::new());
        // SAFETY: the object is alive and the view is a fresh structure for the call to fill.
        let code =
            unsafe { ffi::PyObject_GetBuffer(value.as_ptr(), &mut *view, ffi::PyBUF_RECORDS_RO) };
        if code != 0 {
            // The refusal is not an error, because another protocol may succeed.
            drop(PyErr::take(value.py()));
            return None;
        }
        Some(Self { view })
    }

    fn length(&self) -> usize {
        usize::try_from(self.view.len).unwrap_or(0)
    }

    fn shape(&self) -> PyResult<Shape> {
        let shape = self.view.shape.cast_const().cast();
        // SAFETY: a view with `ndim` axes has that many entries in `shape`.
        let dims: &[isize] = unsafe { entries(shape, self.view.ndim, "buffer")? };
        sizes(dims.iter().map(|&dim| dim as i64), "buffer")
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
}

/// The entries of a C array with one entry for each axis; null means no entries.
///
/// # Safety
/// If it is not null, `data` points to `count` values that outlive `'a`.
unsafe fn entries<'a, T>(data: *const T, count: i32, what: &str) -> PyResult<&'a [T]> {
    match usize::try_from(count) {
        Ok(0) => Ok(&[]),
        // A larger rank is invalid, and its entries would be read from unrelated memory.
        Ok(count) if count > MOST_AXES => {
            Err(argument_error(what, format!("must have at most {MOST_AXES} axes; got {count}")))
        }
        // SAFETY: the pointer is not null, and the caller guarantees the other requirements.
        Ok(count) if !data.is_null() => Ok(unsafe { std::slice::from_raw_parts(data, count) }),
        Ok(count) => Err(argument_error(
            what,
            format!("must have a size for each of {count} axes; got a null pointer"),
        )),
        Err(_) => {
            Err(argument_error(what, format!("number of axes must not be negative; got {count}")))
        }
    }
}

/// A shape from the sizes of another library.
fn sizes(dims: impl Iterator<Item = i64>, what: &str) -> PyResult<Shape> {
    dims.map(|dim| {
        usize::try_from(dim)
            .map_err(|_| argument_error(what, format!("sizes must not be negative; got {dim}")))
    })
    .collect()
}

impl Drop for HeldBuffer {
    fn drop(&mut self) {
        shutdown::prepare();
        // A device may release the data after the interpreter has ended. The release is skipped
        // then, because waiting for the interpreter would block the end of the process.
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

/// The memory of a tensor as a Python buffer of bytes.
#[pyclass(frozen)]
pub(crate) struct Exported {
    pub(crate) host: HostTensor,
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
            PyBufferError::new_err("the tensor exceeds the size limit of Python buffers")
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

/// The exporter made a copy for this consumer.
const IS_COPIED: u64 = 2;

/// Memory to export.
pub(crate) enum Exportable {
    Host(HostTensor),
    /// The memory of a CUDA device, and the number of the device.
    Cuda(ExternalReference, i32),
}

/// The memory that an exported capsule keeps alive, at the address in `context`.
struct Backing {
    _memory: Exportable,
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
        // DLPack packs these elements; nxla stores one element in each byte.
        DType::U2 | DType::U4 | DType::S2 | DType::S4 => return None,
    })
}

fn dtype_of_dlpack(code: u8, bits: u8) -> Option<DType> {
    DType::ALL.iter().copied().find(|&dtype| dlpack_type(dtype) == Some((code, bits)))
}

/// Rejects a dtype that DLPack does not have.
pub(crate) fn check_exportable(dtype: DType) -> PyResult<()> {
    if dlpack_type(dtype).is_some() {
        return Ok(());
    }
    Err(PyBufferError::new_err(format!("__dlpack__: dtype must exist in DLPack; got {dtype}")))
}

/// A capsule that lends memory, in the versioned struct or in the older one. The consumer must not
/// write to the memory unless it is a copy for the consumer.
pub(crate) fn export(
    py: Python<'_>,
    memory: Exportable,
    versioned: bool,
    copied: bool,
) -> PyResult<Py<PyAny>> {
    let (dtype, shape) = match &memory {
        Exportable::Host(host) => (host.dtype(), host.shape()),
        Exportable::Cuda(reference, _) => (reference.buffer().dtype(), reference.buffer().shape()),
    };
    check_exportable(dtype)?;
    let (code, bits) = dlpack_type(dtype).expect("the dtype was checked");
    let shape: Vec<i64> = shape.iter().map(|&dim| dim as i64).collect();
    let (data, device_type, device_id): (*mut c_void, i32, i32) = match &memory {
        Exportable::Host(host) => (host.bytes().as_ptr().cast_mut().cast(), CPU, 0),
        Exportable::Cuda(reference, device) => {
            (std::ptr::with_exposed_provenance_mut(reference.address()), CUDA, *device)
        }
    };
    let ndim = i32::try_from(shape.len()).expect("few axes");
    let lent = Box::into_raw(Box::new(Backing { _memory: memory, shape }));
    // SAFETY: `lent` was just made from a box and is not shared yet.
    let shape = unsafe { (*lent).shape.as_mut_ptr() };
    let tensor = DlTensor {
        data,
        device_type,
        device_id,
        ndim,
        code,
        bits,
        lanes: 1,
        shape,
        strides: std::ptr::null_mut(),
        byte_offset: 0,
    };
    if versioned {
        let flags = if copied { IS_COPIED } else { READ_ONLY };
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
    // SAFETY: the call returns a new reference, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(py, capsule) }.map(Bound::unbind)
}

unsafe extern "C" fn delete_managed(managed: *mut DlManaged) {
    // SAFETY: DLPack calls the deleter once, with the structure that `export` boxed.
    unsafe {
        let managed = Box::from_raw(managed);
        drop(Box::from_raw(managed.context.cast::<Backing>()));
    }
}

unsafe extern "C" fn delete_versioned(managed: *mut DlVersioned) {
    // SAFETY: as for `delete_managed`.
    unsafe {
        let managed = Box::from_raw(managed);
        drop(Box::from_raw(managed.context.cast::<Backing>()));
    }
}

/// Frees the content of a capsule that no consumer has renamed.
unsafe extern "C" fn drop_managed(capsule: *mut ffi::PyObject) {
    // SAFETY: the interpreter calls this function with the capsule that it destroys. The pointer is
    // taken only if no consumer has renamed the capsule.
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

/// A struct from a capsule; its deleter is called when this value is dropped.
enum Managed {
    Old(*mut DlManaged),
    Versioned(*mut DlVersioned),
}

impl Managed {
    /// Takes the struct out of an unused capsule.
    fn take(capsule: &Bound<'_, PyCapsule>) -> PyResult<Self> {
        let capsule = capsule.as_ptr();
        // SAFETY: the name of the capsule determines the type of the structure, and the capsule is
        // renamed so that other consumers cannot use it.
        unsafe {
            if ffi::PyCapsule_IsValid(capsule, VERSIONED.as_ptr()) == 1 {
                let pointer = ffi::PyCapsule_GetPointer(capsule, VERSIONED.as_ptr());
                ffi::PyCapsule_SetName(capsule, c"used_dltensor_versioned".as_ptr());
                return Ok(Managed::Versioned(pointer.cast()));
            }
            if ffi::PyCapsule_IsValid(capsule, MANAGED.as_ptr()) == 1 {
                let pointer = ffi::PyCapsule_GetPointer(capsule, MANAGED.as_ptr());
                ffi::PyCapsule_SetName(capsule, c"used_dltensor".as_ptr());
                return Ok(Managed::Old(pointer.cast()));
            }
        }
        Err(argument_error("from_dlpack", "capsule: must be an unused DLPack tensor"))
    }

    /// The tensor, if the version is known.
    fn tensor(&self) -> PyResult<&DlTensor> {
        // SAFETY: a valid capsule holds an initialized structure, which exists until the deleter is
        // called. For another major version, only the fields before the tensor have known offsets.
        unsafe {
            match self {
                Managed::Old(managed) => Ok(&(**managed).tensor),
                Managed::Versioned(managed) if (**managed).major == 1 => Ok(&(**managed).tensor),
                Managed::Versioned(managed) => {
                    let why = format!(
                        "capsule: must have major version 1 of DLPack; got {}",
                        (**managed).major
                    );
                    Err(argument_error("from_dlpack", why))
                }
            }
        }
    }

    fn flags(&self) -> u64 {
        match self {
            Managed::Old(_) => 0,
            // SAFETY: as for `tensor`.
            Managed::Versioned(managed) => unsafe { (**managed).flags },
        }
    }
}

impl Drop for Managed {
    fn drop(&mut self) {
        shutdown::prepare();
        // As for buffers, nothing is released after the interpreter has ended. SAFETY: the
        // structure came from a capsule that was marked as used; its deleter, which may need the
        // interpreter, is called once.
        Python::try_attach(|_| unsafe {
            match *self {
                Managed::Old(managed) => {
                    if let Some(deleter) = (*managed).deleter {
                        deleter(managed);
                    }
                }
                Managed::Versioned(managed) => {
                    if let Some(deleter) = (*managed).deleter {
                        deleter(managed);
                    }
                }
            }
        });
    }
}

/// The memory that an object exports by DLPack.
pub(crate) enum Capsule {
    Host(BorrowedMemory),
    Cuda(CudaMemory),
}

/// The memory that an object exports by DLPack, with the flags of the exporter. The exporter makes
/// the default stream of a CUDA device wait for its writes.
pub(crate) fn capsule_of(value: &Bound<'_, PyAny>) -> PyResult<(Capsule, Exporter)> {
    /// The number of the default stream in DLPack.
    const DEFAULT_STREAM: i32 = 1;
    let py = value.py();
    let (kind, device): (i32, i32) =
        value.call_method0(intern!(py, "__dlpack_device__"))?.extract()?;
    if kind != CPU && kind != CUDA {
        return Err(argument_error(
            "from_dlpack",
            "data: must be in host memory; copy the data to the host first",
        ));
    }
    let kwargs = PyDict::new(py);
    if kind == CUDA {
        kwargs.set_item(intern!(py, "stream"), DEFAULT_STREAM)?;
    }
    kwargs.set_item(intern!(py, "max_version"), (1, 0))?;
    let capsule = match value.call_method(intern!(py, "__dlpack__"), (), Some(&kwargs)) {
        // Exporters before version 1.0 do not have the argument.
        Err(error) if error.is_instance_of::<PyTypeError>(py) => {
            kwargs.del_item(intern!(py, "max_version"))?;
            value.call_method(intern!(py, "__dlpack__"), (), Some(&kwargs))?
        }
        given => given?,
    };
    let managed = Managed::take(&capsule.cast_into::<PyCapsule>()?)?;
    let exporter = Exporter {
        read_only: managed.flags() & READ_ONLY != 0,
        copied: managed.flags() & IS_COPIED != 0,
    };
    let DlTensor { device_type, device_id, .. } = *managed.tensor()?;
    if device_type != kind || kind == CUDA && device_id != device {
        let why = format!(
            "capsule: must be on device ({kind}, {device}), as __dlpack_device__ states; got \
             ({device_type}, {device_id})"
        );
        return Err(argument_error("from_dlpack", why));
    }
    let memory = lent_by(managed)?;
    let capsule = match kind {
        CPU => Capsule::Host(memory),
        _ => Capsule::Cuda(CudaMemory { memory, device }),
    };
    Ok((capsule, exporter))
}

/// The flags of a capsule.
#[derive(Clone, Copy)]
pub(crate) struct Exporter {
    /// The consumer must not write to the memory; other code may.
    pub(crate) read_only: bool,
    /// The memory was copied for the consumer, which is its only user.
    pub(crate) copied: bool,
}

/// The error for strides to addresses that do not exist.
const OUTSIDE: &str = "strides: elements must be in the address space";

/// Checks the fields of a struct.
fn lent_by(managed: Managed) -> PyResult<BorrowedMemory> {
    let wrong = |why: String| argument_error("from_dlpack", why);
    let tensor = managed.tensor()?;
    let Some(dtype) = dtype_of_dlpack(tensor.code, tensor.bits).filter(|_| tensor.lanes == 1)
    else {
        let (code, bits) = (tensor.code, tensor.bits);
        let why = format!(
            "from_dlpack: dtype: must exist in nxla; got DLPack type code {code} with {bits} bits"
        );
        return Err(crate::errors::dtype_error(why));
    };
    // SAFETY: a tensor of `ndim` axes has that many sizes, and strides unless they are null.
    let (dims, strides) = unsafe {
        let dims = entries(tensor.shape.cast_const(), tensor.ndim, "from_dlpack")?;
        let strides = if tensor.strides.is_null() {
            None
        } else {
            Some(entries(tensor.strides.cast_const(), tensor.ndim, "from_dlpack")?)
        };
        (dims, strides)
    };
    let shape = sizes(dims.iter().copied(), "from_dlpack")?;
    let length = shape.checked_byte_size(dtype);
    let Some(length) = length.filter(|&length| isize::try_from(length).is_ok()) else {
        return Err(wrong(format!("data: must fit the address space; got {dtype}{shape}")));
    };
    let strides = match strides.filter(|_| length > 0) {
        Some(strides) => match Strides::new(&shape, strides, dtype.size()) {
            Some(strides) => Some(strides).filter(|strides| !strides.are_contiguous()),
            None => return Err(wrong(OUTSIDE.into())),
        },
        None => None,
    };
    if strides.is_some() && tensor.device_type != CPU {
        let why = "data: must be in row-major order on a device; make a contiguous copy first";
        return Err(wrong(why.into()));
    }
    if length > 0 && tensor.data.is_null() {
        return Err(wrong(format!("data: must not be null for {dtype}{shape}")));
    }
    let start = usize::try_from(tensor.byte_offset).ok();
    let start = start.and_then(|offset| (tensor.data as usize).checked_add(offset));
    let end = start.and_then(|start| start.checked_add(length));
    let Some(offset) = end.filter(|&end| isize::try_from(end).is_ok()).and(start) else {
        return Err(wrong(format!(
            "byte_offset: must stay in the address space; got {}",
            tensor.byte_offset
        )));
    };
    let offset = offset - tensor.data as usize;
    let data = tensor.data.cast::<u8>().cast_const().wrapping_add(offset);
    if strides.as_ref().is_some_and(|strides| !strides.fit_at(data as usize)) {
        return Err(wrong(OUTSIDE.into()));
    }
    Ok(BorrowedMemory { _owner: Owner::Capsule(managed), data, length, dtype, shape, strides })
}
