//! Buffers of device memory that belongs to another library: views of it, and copies on the device.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::Arc;

use nxla_tensor::{DType, Frozen, HostTensor, Shape};

use crate::buffer::Buffer;
use crate::client::{Client, PjrtDevice, non_null};
use crate::cuda::Primary;
use crate::dtype;
use crate::error::Error;
use crate::external::MemoryHold;
use crate::in_flight::ForeignThread;
use crate::release::{Release, release};
use crate::sys::*;
use crate::transfer::{NEW_IS_UNIQUE, dims_of};

/// Memory of a device that belongs to another library, which keeps it in place while the value
/// lives. The value may be dropped on any thread.
///
/// # Safety
/// While the value lives, [`address`](ForeignMemory::address) is the start of
/// [`byte_size`](ForeignMemory::byte_size) readable bytes in the memory of the device that
/// [`platform`](ForeignMemory::platform) and [`hardware_id`](ForeignMemory::hardware_id) name.
/// All methods always return the same values.
pub unsafe trait ForeignMemory: Send + Sync + 'static {
    /// The platform of the device, such as `cuda`; `cpu` for host memory.
    fn platform(&self) -> &str;

    /// The number of the device in the driver of its platform; not used for host memory.
    fn hardware_id(&self) -> i32;

    /// The address of the first byte.
    fn address(&self) -> usize;

    /// The number of bytes.
    fn byte_size(&self) -> usize;
}

// SAFETY: the bytes are borrowed from an owner that neither moves nor changes them.
unsafe impl ForeignMemory for Frozen {
    fn platform(&self) -> &str {
        "cpu"
    }

    fn hardware_id(&self) -> i32 {
        0
    }

    fn address(&self) -> usize {
        self.bytes().as_ptr().addr()
    }

    fn byte_size(&self) -> usize {
        self.bytes().len()
    }
}

/// The owner of memory that a buffer views, for the buffer and for the programs that read it.
pub(crate) type Lender = Arc<Owner>;

/// Foreign memory, which is dropped on the thread of [`release`].
pub(crate) struct Owner(Option<Box<dyn ForeignMemory>>);

impl Drop for Owner {
    fn drop(&mut self) {
        if let Some(memory) = self.0.take() {
            release(Release::Viewed(memory));
        }
    }
}

/// The alignment in bytes that programs of XLA require of their inputs: on CPUs (`MinAlign` of its
/// CPU functions), and elsewhere (`kEntryParameterAlignBytes` of its GPU compiler).
const CPU_ALIGNMENT: usize = 64;
const DEVICE_ALIGNMENT: usize = 16;

impl Client {
    /// The alignment in bytes that [`view`](Client::view) requires.
    #[must_use]
    pub fn view_alignment(&self) -> usize {
        if self.computes_on_host() { CPU_ALIGNMENT } else { DEVICE_ALIGNMENT }
    }

    /// Creates a buffer that views the memory of another library in row-major order, without a
    /// copy. The memory is dropped when the buffer and the programs that read it are done with it, on
    /// a separate thread.
    ///
    /// The caller promises that no code writes to the memory from this call on until the memory is
    /// dropped, and that all earlier writes are complete; see
    /// [`wait_for_default_stream`](Client::wait_for_default_stream). Programs do not write to the
    /// memory either: a program to which the buffer is donated works on a copy.
    ///
    /// # Errors
    /// Returns [`Error::ForeignMemory`] if the memory is on another device, has another size than
    /// the elements or is not aligned to [`view_alignment`](Client::view_alignment), or if the
    /// device stores the dtype in another way; [`Error::ForeignObject`] for a device of another
    /// client, and errors of the plugin.
    pub fn view<M: ForeignMemory>(
        &self,
        memory: M,
        dtype: DType,
        shape: impl Into<Shape>,
        device: &PjrtDevice,
    ) -> Result<Buffer, Error> {
        let shape = shape.into();
        let index = self.check_foreign(&memory, dtype, &shape, device)?;
        if memory.byte_size() == 0 {
            return self.buffer_from_host(&HostTensor::from_bytes(dtype, shape, &[])?, device);
        }
        let (address, alignment) = (memory.address(), self.view_alignment());
        if !address.is_multiple_of(alignment) {
            let why = format!("address: must be a multiple of {alignment}; got {address:#x}");
            return Err(Error::ForeignMemory { why });
        }
        let lender: Lender = Arc::new(Owner(Some(Box::new(memory))));
        let dims = dims_of(&shape);
        let lent = Box::into_raw(Box::new(lender.clone()));
        let mut args = PJRT_Client_CreateViewOfDeviceBuffer_Args::new();
        args.client = self.as_ptr();
        args.device_buffer_ptr = std::ptr::with_exposed_provenance_mut(address);
        args.dims = dims.as_ptr();
        args.num_dims = dims.len();
        args.element_type = dtype::to_pjrt(dtype);
        args.device = device.as_ptr();
        args.on_delete_callback = Some(return_memory);
        args.on_delete_callback_arg = lent.cast();
        // SAFETY: client and device are alive, `dims` outlives the call, and the memory stays in
        // place until the callback drops its owner. This function owns the buffer.
        unsafe {
            if let Err(error) = self.plugin().call(&mut args) {
                // After an error the plugin has not stored the callback.
                drop(Box::from_raw(lent));
                return Err(error);
            }
            let raw = non_null(&args, args.buffer, &self.plugin())?;
            Ok(Buffer::new_view(raw, self.clone(), index, dtype, shape, lender))
        }
    }

    /// Copies the memory of another library in row-major order to a new buffer on the same device,
    /// and waits for the copy. On a CUDA device, the copy follows the earlier work of the default
    /// stream. The memory may have any alignment, and may be overwritten afterwards.
    ///
    /// # Errors
    /// Returns the errors of [`view`](Client::view) except for the alignment, and [`Error::Driver`]
    /// if the driver of the device fails.
    pub fn copy_foreign(
        &self,
        memory: &impl ForeignMemory,
        dtype: DType,
        shape: impl Into<Shape>,
        device: &PjrtDevice,
    ) -> Result<Buffer, Error> {
        let shape = shape.into();
        let index = self.check_foreign(memory, dtype, &shape, device)?;
        let (address, length) = (memory.address(), memory.byte_size());
        let from: *const u8 = std::ptr::with_exposed_provenance(address);
        if length == 0 || self.computes_on_host() {
            let mut tensor = HostTensor::scratch(dtype, shape)?;
            let out = tensor.try_unique_mut().expect(NEW_IS_UNIQUE);
            if length > 0 {
                // SAFETY: the memory has `length` readable bytes of the host, which is the size of
                // `out`, a new tensor.
                unsafe { std::ptr::copy_nonoverlapping(from, out.as_mut_ptr(), length) };
            }
            return self.buffer_from_host(&tensor, device);
        }
        if self.platform_name() != "cuda" {
            let why = format!("platform: must be cuda; got {}", self.platform_name());
            return Err(Error::ForeignMemory { why });
        }
        let copy = self.new_uninitialized(dtype, shape, index)?;
        let hold = MemoryHold::of(&copy)?;
        let context = Primary::enter(memory.hardware_id()).map_err(driver_error)?;
        // SAFETY: both ranges are in the memory of the device and have `length` bytes. No program
        // uses the new buffer yet.
        unsafe { context.copy(from, hold.pointer(), length) }.map_err(driver_error)?;
        drop(hold);
        Ok(copy)
    }

    /// Blocks until the work in the default stream of a CUDA device is complete; returns at once on
    /// other platforms. Libraries let this stream wait for their writes before they pass memory on.
    ///
    /// # Errors
    /// Returns [`Error::Driver`] if the driver fails, and [`Error::ForeignObject`] for a device of
    /// another client.
    pub fn wait_for_default_stream(&self, device: &PjrtDevice) -> Result<(), Error> {
        self.index_of(device)?;
        let Some(id) = device.hardware_id().filter(|_| self.platform_name() == "cuda") else {
            return Ok(());
        };
        let context = Primary::enter(id).map_err(driver_error)?;
        context.wait_for_default_stream().map_err(driver_error)
    }

    /// Checks that memory can be a buffer on a device, and returns the index of the device.
    fn check_foreign(
        &self,
        memory: &impl ForeignMemory,
        dtype: DType,
        shape: &Shape,
        device: &PjrtDevice,
    ) -> Result<usize, Error> {
        let index = self.index_of(device)?;
        let wrong = |why: String| Err(Error::ForeignMemory { why });
        let (platform, id) = (memory.platform(), memory.hardware_id());
        let is_here = platform == self.platform_name()
            && (self.computes_on_host() || device.hardware_id() == Some(id));
        if !is_here {
            let device = device.debug_string();
            return wrong(format!("device: must be {device}; got {platform}:{id}"));
        }
        if !self.stores_as_host(dtype) {
            return wrong(format!("dtype: must have at least 8 bits; got {dtype}"));
        }
        let (expected, found) = (shape.byte_size(dtype), memory.byte_size());
        if expected != found {
            let why = format!("size: must be {expected} bytes for {dtype}{shape}; got {found}");
            return wrong(why);
        }
        // XLA would find a wrong address while a program runs, and no later program could run.
        if platform == "cuda" && found > 0 {
            let context = Primary::enter(id).map_err(driver_error)?;
            let address = memory.address();
            if context.owner_of(address) != Some(id) {
                return wrong(format!("address: must be on CUDA device {id}; got {address:#x}"));
            }
        }
        Ok(index)
    }

    /// Allocates a buffer, whose contents are undefined.
    fn new_uninitialized(
        &self,
        dtype: DType,
        shape: Shape,
        device: usize,
    ) -> Result<Buffer, Error> {
        let dims = dims_of(&shape);
        let mut args = PJRT_Client_CreateUninitializedBuffer_Args::new();
        args.client = self.as_ptr();
        args.shape_dims = dims.as_ptr();
        args.shape_num_dims = dims.len();
        args.shape_element_type = dtype::to_pjrt(dtype);
        args.device = self.devices()[device].as_ptr();
        // SAFETY: client and device are alive, and `dims` outlives the call. This function owns the
        // buffer.
        unsafe {
            self.plugin().call(&mut args)?;
            let raw = non_null(&args, args.buffer, &self.plugin())?;
            Ok(Buffer::new(raw, self.clone(), device, dtype, shape))
        }
    }
}

fn driver_error(why: String) -> Error {
    Error::Driver { why }
}

/// The function C calls when the plugin no longer needs the memory of a view.
///
/// # Safety
/// `lender` comes from [`Client::view`] and is passed here once.
unsafe extern "C" fn return_memory(_: *mut c_void, lender: *mut c_void) {
    let _foreign = ForeignThread::enter();
    let Some(lender) = NonNull::new(lender.cast::<Lender>()) else { return };
    // SAFETY: the pointer was made by `Box::into_raw` and is converted back once.
    let lender = unsafe { Box::from_raw(lender.as_ptr()) };
    // Unwinding into C++ is undefined behavior.
    let _ = catch_unwind(AssertUnwindSafe(move || drop(lender)));
}
