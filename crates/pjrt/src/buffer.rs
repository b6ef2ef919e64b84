//! Device buffers: reference counted, asynchronous, usable from any thread.
//!
//! A buffer handle exists before its data does. Reading waits; passing a buffer to a program does
//! not, the program waits on the device. An operation that fails later leaves its error in the
//! buffers it was to produce, and whoever reads or waits for one gets it.

use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nxla_tensor::{DType, ForeignBytes, HostTensor, Shape};

use crate::client::{Client, Device, non_null};
use crate::dtype;
use crate::error::Error;
use crate::event::Event;
use crate::scratch::with_scratch;
use crate::sys::*;
use crate::value;

/// A tensor in the memory of a device. Clones share it; the last one frees it.
#[derive(Clone)]
pub struct Buffer {
    inner: Arc<Inner>,
}

struct Inner {
    raw: NonNull<PJRT_Buffer>,
    client: Client,
    device: usize,
    dtype: DType,
    shape: Shape,
    /// Set by the first `delete`, so that exactly one caller is told there was something to free.
    freed: AtomicBool,
}

// SAFETY: PJRT buffers may be used and destroyed on any thread, and from several at once; the
// other fields are `Send` and `Sync` themselves.
unsafe impl Send for Inner {}
// SAFETY: see `Send`.
unsafe impl Sync for Inner {}

/// Why a tensor that was just made can be written to.
pub(crate) const NEW_IS_UNIQUE: &str = "a new tensor has its memory for itself";

impl Client {
    /// Copies a host tensor to a device, without waiting for the copy.
    ///
    /// Large tensors are not copied twice: the device reads the host memory directly, and a CPU
    /// device can even use it in place. The tensor's storage is kept alive until the device is
    /// done with it.
    ///
    /// # Errors
    /// [`Error::ForeignObject`] for a device of another client, else what the plugin reports.
    pub fn buffer_from_host(&self, tensor: &HostTensor, device: &Device) -> Result<Buffer, Error> {
        /// Below this size a copy costs less than keeping the tensor alive.
        const COPY_BELOW: usize = 4096;
        if tensor.bytes().len() < COPY_BELOW {
            return self.buffer_from_bytes(tensor.dtype(), tensor.shape(), tensor.bytes(), device);
        }
        let (dtype, shape) = (tensor.dtype(), tensor.shape().clone());
        let owner = Arc::new(TensorBytes(tensor.clone()));
        self.buffer_from_owner(dtype, &shape, owner, device)
    }

    /// Copies elements in row-major order to a device. `bytes` is free again on return.
    ///
    /// Sub-byte integers travel as one byte each, as in a [`HostTensor`].
    ///
    /// # Errors
    /// [`Error::HostSize`] if `bytes` does not have the size that type and shape take,
    /// [`Error::ForeignObject`] for a device of another client, else what the plugin reports.
    pub fn buffer_from_bytes(
        &self,
        dtype: DType,
        shape: &Shape,
        bytes: &[u8],
        device: &Device,
    ) -> Result<Buffer, Error> {
        let during_call = host_buffer_semantics::IMMUTABLE_ONLY_DURING_CALL;
        // SAFETY: `bytes` is borrowed for the whole call, and the semantics ask for no more.
        let (buffer, _done) = unsafe { self.upload(dtype, shape, bytes, during_call, device)? };
        Ok(buffer)
    }

    /// Gives host memory to a device, which reads it in place or copies it when it likes. The
    /// device's share of `owner` is dropped when it needs the memory no more, possibly on a thread
    /// of the plugin; until then, the bytes must not change.
    ///
    /// # Errors
    /// As for [`buffer_from_bytes`](Client::buffer_from_bytes).
    pub fn buffer_from_owner(
        &self,
        dtype: DType,
        shape: &Shape,
        owner: ForeignBytes,
        device: &Device,
    ) -> Result<Buffer, Error> {
        let bytes = (*owner).as_ref();
        let zero_copy = host_buffer_semantics::IMMUTABLE_ZERO_COPY;
        // SAFETY: the bytes live as long as `owner`, which the callback below keeps until the
        // plugin has no more use for them.
        let (buffer, done) = unsafe { self.upload(dtype, shape, bytes, zero_copy, device)? };
        if let Some(done) = done {
            let kept = owner.clone();
            done.on_ready(move |_| drop(kept)).inspect_err(|_| {
                // Nobody will tell when the memory is free, so it has to stay.
                std::mem::forget(owner);
            })?;
        }
        Ok(buffer)
    }

    /// Starts a transfer to a device. The event is ready when `bytes` is not needed any more.
    ///
    /// # Safety
    /// `bytes` stays valid and unchanged for as long as `semantics` say.
    unsafe fn upload(
        &self,
        dtype: DType,
        shape: &Shape,
        bytes: &[u8],
        semantics: c_enum,
        device: &Device,
    ) -> Result<(Buffer, Option<Event>), Error> {
        check_size(dtype, shape, bytes.len())?;
        let index = self.index_of(device)?;
        with_scratch(shape.rank(), 0_i64, |dims| {
            for (to, &from) in dims.iter_mut().zip(shape.iter()) {
                // Sizes above `i64::MAX` can only occur next to a zero; the plugin refuses them.
                *to = from as i64;
            }
            let mut args = PJRT_Client_BufferFromHostBuffer_Args::new();
            args.client = self.as_ptr();
            args.data = bytes.as_ptr().cast();
            args.element_type = dtype::to_pjrt(dtype);
            args.dims = dims.as_ptr();
            args.num_dims = dims.len();
            args.host_buffer_semantics = semantics;
            args.device = device.as_ptr();
            // SAFETY: client and device are alive, `dims` outlives the call, and the caller
            // vouches for `bytes`, whose length was checked. Buffer and event are ours now.
            unsafe {
                self.plugin().call(&mut args)?;
                let done = Event::from_raw(args.done_with_host_buffer, self);
                let raw = non_null(
                    args.buffer,
                    PJRT_Client_BufferFromHostBuffer_Args::FUNCTION,
                    &self.plugin(),
                )?;
                Ok((Buffer::new(raw, self.clone(), index, dtype, shape.clone()), done))
            }
        })
    }
}

/// Keeps a tensor's storage alive. [`HostTensor`] shares it between clones and copies on write.
struct TensorBytes(HostTensor);

impl AsRef<[u8]> for TensorBytes {
    fn as_ref(&self) -> &[u8] {
        self.0.bytes()
    }
}

impl Buffer {
    /// Takes ownership of a plugin's buffer.
    ///
    /// # Safety
    /// `raw` is a live buffer of `client` that nobody else destroys, with this type and shape.
    pub(crate) unsafe fn new(
        raw: NonNull<PJRT_Buffer>,
        client: Client,
        device: usize,
        dtype: DType,
        shape: Shape,
    ) -> Buffer {
        let freed = AtomicBool::new(false);
        Buffer { inner: Arc::new(Inner { raw, client, device, dtype, shape, freed }) }
    }

    pub(crate) fn as_ptr(&self) -> *mut PJRT_Buffer {
        self.inner.raw.as_ptr()
    }

    /// The client the buffer belongs to.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.inner.client
    }

    /// The device whose memory holds the data.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.inner.client.devices()[self.inner.device]
    }

    /// The element type.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.inner.dtype
    }

    /// The shape.
    #[must_use]
    pub fn shape(&self) -> &Shape {
        &self.inner.shape
    }

    /// Bytes the buffer takes on the device, which may pad or pack.
    ///
    /// # Errors
    /// What the plugin reports, for instance that the buffer was deleted.
    pub fn on_device_size(&self) -> Result<usize, Error> {
        let mut args = PJRT_Buffer_OnDeviceSizeInBytes_Args::new();
        args.buffer = self.as_ptr();
        // SAFETY: the buffer is alive.
        unsafe { self.call(&mut args)? };
        Ok(args.on_device_size_in_bytes)
    }

    /// Whether the data is there, or the operation that was to produce it has failed. Never
    /// blocks.
    ///
    /// # Errors
    /// What the plugin reports about the query.
    pub fn is_ready(&self) -> Result<bool, Error> {
        self.ready_event()?.map_or(Ok(true), |event| event.is_ready())
    }

    /// Blocks until the data is there.
    ///
    /// # Errors
    /// The error of the operation that was to produce the data, or that the buffer was deleted or
    /// donated.
    pub fn wait(&self) -> Result<(), Error> {
        self.ready_event()?.map_or(Ok(()), |event| event.wait())
    }

    /// Calls `callback` once the data is there or its operation has failed, see
    /// [`Event::on_ready`].
    ///
    /// # Errors
    /// The registration failed; the callback is dropped without being called.
    pub fn on_ready(
        &self,
        callback: impl FnOnce(Result<(), Error>) + Send + 'static,
    ) -> Result<(), Error> {
        match self.ready_event()? {
            Some(event) => event.on_ready(callback),
            None => {
                callback(Ok(()));
                Ok(())
            }
        }
    }

    fn ready_event(&self) -> Result<Option<Event>, Error> {
        let mut args = PJRT_Buffer_ReadyEvent_Args::new();
        args.buffer = self.as_ptr();
        // SAFETY: the buffer is alive, and the event is ours.
        unsafe {
            self.call(&mut args)?;
            Ok(Event::from_raw(args.event, &self.inner.client))
        }
    }

    /// Waits for the data and copies it to the host.
    ///
    /// # Errors
    /// As for [`wait`](Buffer::wait).
    pub fn to_host(&self) -> Result<HostTensor, Error> {
        if let Some(memory) = self.map_if_possible()? {
            // One pass over the memory; the way below takes two, and two changes of thread.
            return Ok(HostTensor::from_bytes(self.dtype(), self.shape(), &memory)?);
        }
        let mut tensor = HostTensor::zeros(self.dtype(), self.shape())?;
        self.read_into(tensor.try_unique_mut().expect(NEW_IS_UNIQUE))?;
        Ok(tensor)
    }

    /// Waits for the data and copies it to `out`, in row-major order.
    ///
    /// # Errors
    /// [`Error::HostSize`] if `out` does not have the size of the tensor, else as for
    /// [`wait`](Buffer::wait).
    pub fn read_into(&self, out: &mut [u8]) -> Result<(), Error> {
        check_size(self.dtype(), self.shape(), out.len())?;
        if out.is_empty() {
            // There is nothing to copy, but a failed operation must not pass unnoticed.
            return self.wait();
        }
        let rank = self.shape().rank();
        with_scratch(rank, 0_i64, |minor_to_major| {
            for (to, axis) in minor_to_major.iter_mut().zip((0..rank as i64).rev()) {
                *to = axis;
            }
            let mut layout = PJRT_Buffer_MemoryLayout::new();
            layout.kind = MEMORY_LAYOUT_TILED;
            layout.tiled = PJRT_Buffer_MemoryLayout_Tiled::new();
            layout.tiled.minor_to_major = minor_to_major.as_ptr();
            layout.tiled.minor_to_major_size = rank;
            let mut args = PJRT_Buffer_ToHostBuffer_Args::new();
            args.src = self.as_ptr();
            args.host_layout = &raw mut layout;
            args.dst = out.as_mut_ptr().cast();
            args.dst_size = out.len();
            // SAFETY: the buffer is alive, and the layout and what it points to outlive the call.
            // `out` is borrowed until the copy is over, because the event is waited for.
            unsafe {
                self.call(&mut args)?;
                Event::from_raw(args.event, &self.inner.client).map_or(Ok(()), |event| event.wait())
            }
        })
    }

    /// Waits for the data and copies the first `limit` elements, in row-major order, to a tensor
    /// of one dimension.
    ///
    /// # Errors
    /// As for [`wait`](Buffer::wait).
    pub fn read(&self, limit: usize) -> Result<HostTensor, Error> {
        let len = limit.min(self.shape().size());
        let len_bytes = len * self.dtype().size();
        if let Some(memory) = self.map_if_possible()? {
            return Ok(HostTensor::from_bytes(self.dtype(), [len], &memory[..len_bytes])?);
        }
        if !self.is_stored_as_on_host() || len == 0 {
            let whole = self.to_host()?;
            return Ok(HostTensor::from_bytes(self.dtype(), [len], &whole.bytes()[..len_bytes])?);
        }
        let mut tensor = HostTensor::zeros(self.dtype(), [len])?;
        self.read_raw(tensor.try_unique_mut().expect(NEW_IS_UNIQUE))?;
        Ok(tensor)
    }

    /// Whether the device stores elements as the host does: in row-major order, unpacked. That is
    /// known for CPUs and GPUs; other devices tile.
    fn is_stored_as_on_host(&self) -> bool {
        let is_dense = matches!(self.client().platform_name(), "cpu" | "cuda" | "rocm" | "gpu");
        is_dense && self.dtype().bits() >= 8
    }

    /// Copies the first bytes of the device memory.
    fn read_raw(&self, out: &mut [u8]) -> Result<(), Error> {
        let mut args = PJRT_Buffer_CopyRawToHost_Args::new();
        args.buffer = self.as_ptr();
        args.dst = out.as_mut_ptr().cast();
        args.transfer_size = out.len() as i64;
        // The raw copy of some plugins does not look at the state of the buffer.
        self.wait()?;
        // SAFETY: the buffer is alive and at least as long as `out`, which is borrowed until the
        // copy is over, because the event is waited for.
        unsafe {
            self.call(&mut args)?;
            Event::from_raw(args.event, &self.inner.client).map_or(Ok(()), |event| event.wait())
        }
    }

    /// Waits for the data and gives access to it in place, where the host can read the memory of
    /// the device.
    ///
    /// While the result lives, the memory stays where it is, even if the buffer is deleted; a
    /// program that would overwrite it works on a copy or fails.
    ///
    /// # Errors
    /// [`Error::NotOnHost`] for devices with their own memory and for types that the device packs,
    /// else as for [`wait`](Buffer::wait).
    pub fn map(&self) -> Result<MappedBuffer, Error> {
        let device = || self.device().debug_string().to_owned();
        self.map_if_possible()?.ok_or_else(|| Error::NotOnHost { device: device() })
    }

    fn map_if_possible(&self) -> Result<Option<MappedBuffer>, Error> {
        if self.client().platform_name() != "cpu" || !self.is_stored_as_on_host() {
            return Ok(None);
        }
        // A failed or deleted buffer has an error to tell and no memory.
        self.wait()?;
        let mut hold = PJRT_Buffer_IncreaseExternalReferenceCount_Args::new();
        hold.buffer = self.as_ptr();
        // SAFETY: the buffer is alive. The reference is taken before the pointer is read, so that
        // it stays valid, and given back by `MappedBuffer`.
        unsafe { self.call(&mut hold)? };
        let mut mapped = MappedBuffer { buffer: self.clone(), data: NonNull::dangling(), len: 0 };
        let mut pointer = PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args::new();
        pointer.buffer = self.as_ptr();
        // SAFETY: the buffer is alive.
        unsafe { self.call(&mut pointer)? };
        if let Some(data) = NonNull::new(pointer.device_memory_ptr.cast()) {
            mapped.data = data;
            mapped.len = byte_size(self.dtype(), self.shape());
        }
        Ok(Some(mapped))
    }

    /// Copies the buffer to a device of the same client, without waiting. The copy is independent
    /// of this buffer, also on the same device.
    ///
    /// # Errors
    /// [`Error::ForeignObject`] for a device of another client, else what the plugin reports.
    pub fn copy_to(&self, device: &Device) -> Result<Buffer, Error> {
        let client = self.client();
        let index = client.index_of(device)?;
        if index == self.inner.device {
            // PJRT copies between devices only.
            return client.buffer_from_host(&self.to_host()?, device);
        }
        let mut args = PJRT_Buffer_CopyToDevice_Args::new();
        args.buffer = self.as_ptr();
        args.dst_device = device.as_ptr();
        // SAFETY: the buffer is alive and the device belongs to its client. The new buffer is ours.
        unsafe {
            self.call(&mut args)?;
            let function = PJRT_Buffer_CopyToDevice_Args::FUNCTION;
            let raw = non_null(args.dst_buffer, function, &client.plugin())?;
            Ok(Buffer::new(raw, client.clone(), index, self.dtype(), self.shape().clone()))
        }
    }

    /// Frees the device memory as soon as running programs are done with it, although handles
    /// are left. Returns whether there was anything to free: false if it was deleted or donated
    /// before.
    ///
    /// # Errors
    /// What the plugin reports.
    pub fn delete(&self) -> Result<bool, Error> {
        if self.inner.freed.swap(true, Ordering::AcqRel) || self.is_deleted()? {
            return Ok(false);
        }
        let mut args = PJRT_Buffer_Delete_Args::new();
        args.buffer = self.as_ptr();
        // SAFETY: the buffer is alive; deleting frees its memory, not the object.
        unsafe { self.call(&mut args)? };
        Ok(true)
    }

    /// Whether the buffer was deleted, or donated to a program.
    ///
    /// # Errors
    /// What the plugin reports.
    pub fn is_deleted(&self) -> Result<bool, Error> {
        let mut args = PJRT_Buffer_IsDeleted_Args::new();
        args.buffer = self.as_ptr();
        // SAFETY: the buffer is alive.
        unsafe { self.call(&mut args)? };
        Ok(args.is_deleted)
    }

    /// # Safety
    /// As for [`Plugin::call`](crate::Plugin).
    unsafe fn call<A: Args>(&self, args: &mut A) -> Result<(), Error> {
        // SAFETY: passed on to the caller.
        unsafe { self.inner.client.plugin().call(args) }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let mut args = PJRT_Buffer_Destroy_Args::new();
        args.buffer = self.raw.as_ptr();
        // SAFETY: the buffer is alive, and this is its last use. An error cannot be reported from
        // here.
        let _ = unsafe { self.client.plugin().call(&mut args) };
    }
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let device = self.device().debug_string();
        write!(f, "Buffer({}{}, {device})", self.dtype(), self.shape())
    }
}

/// The memory of a buffer, readable in place; see [`Buffer::map`].
pub struct MappedBuffer {
    buffer: Buffer,
    data: NonNull<u8>,
    len: usize,
}

// SAFETY: the memory is read only and held by an external reference until drop.
unsafe impl Send for MappedBuffer {}
// SAFETY: see `Send`.
unsafe impl Sync for MappedBuffer {}

impl MappedBuffer {
    /// The buffer whose memory this is.
    #[must_use]
    pub fn buffer(&self) -> &Buffer {
        &self.buffer
    }
}

impl Deref for MappedBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the plugin keeps the memory in place and unchanged while the external reference
        // is held; for an empty tensor the pointer dangles and the length is 0.
        unsafe { value::slice(self.data.as_ptr(), self.len) }
    }
}

impl AsRef<[u8]> for MappedBuffer {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Drop for MappedBuffer {
    fn drop(&mut self) {
        let mut args = PJRT_Buffer_DecreaseExternalReferenceCount_Args::new();
        args.buffer = self.buffer.as_ptr();
        // SAFETY: the buffer is alive, and the reference was taken in `map`. An error cannot be
        // reported from here.
        let _ = unsafe { self.buffer.call(&mut args) };
    }
}

/// Bytes that a tensor takes on the host; saturates where no memory could hold it.
fn byte_size(dtype: DType, shape: &Shape) -> usize {
    shape.size().saturating_mul(dtype.size())
}

fn check_size(dtype: DType, shape: &Shape, actual: usize) -> Result<(), Error> {
    let expected = byte_size(dtype, shape);
    if actual == expected {
        return Ok(());
    }
    Err(Error::HostSize { dtype, shape: shape.clone(), expected, actual })
}
