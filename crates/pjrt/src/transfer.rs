//! Tensors on their way between host and device.
//!
//! Surprising points:
//! * Sub-byte integers travel as one byte each, although devices pack them. Plugins leave the
//!   upper bits of signed ones zero on the way back; here they are filled with the sign.
//! * Large host tensors are lent, not copied: a CPU device computes with the host's memory in
//!   place if it is aligned to 64 bytes, as that of a [`HostTensor`] is. Programs run on after the
//!   call that started them, so only [`Frozen`] memory is lent.
//! * The other way round, memory of a CPU device is read in place, since the plugin's own copy
//!   goes through another thread.

use std::ops::Deref;
use std::ptr::NonNull;

use nxla_tensor::{DType, Frozen, HostTensor, Shape};

use crate::buffer::Buffer;
use crate::client::{Client, Device, non_null};
use crate::dtype;
use crate::error::Error;
use crate::event::Event;
use crate::scratch::with_scratch;
use crate::sys::*;
use crate::traffic::{count_read, count_sent};
use crate::value;

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
        self.buffer_from_frozen(tensor.dtype(), tensor.shape(), tensor.share(), device)
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

    /// Lends host memory to a device, which reads it in place or copies it when it likes. The
    /// device's handle is dropped when it needs the memory no more, possibly on a thread of the
    /// plugin.
    ///
    /// # Errors
    /// As for [`buffer_from_bytes`](Client::buffer_from_bytes).
    pub fn buffer_from_frozen(
        &self,
        dtype: DType,
        shape: &Shape,
        memory: Frozen,
        device: &Device,
    ) -> Result<Buffer, Error> {
        let zero_copy = host_buffer_semantics::IMMUTABLE_ZERO_COPY;
        // SAFETY: frozen memory neither moves nor changes while a handle to it lives, and the
        // callback below keeps one until the plugin has no more use for the bytes.
        let (buffer, done) =
            unsafe { self.upload(dtype, shape, memory.bytes(), zero_copy, device)? };
        if let Some(done) = done {
            let kept = memory.clone();
            done.on_ready(move |_| drop(kept)).inspect_err(|_| {
                // Nobody will tell when the memory is free, so it has to stay.
                std::mem::forget(memory);
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
                count_sent(bytes.len());
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

impl Buffer {
    /// Waits for the data and copies it to the host.
    ///
    /// # Errors
    /// As for [`wait`](Buffer::wait).
    pub fn to_host(&self) -> Result<HostTensor, Error> {
        if let Some(memory) = self.map_if_possible()? {
            // One pass over the memory; the way below takes two.
            count_read(memory.len());
            return Ok(HostTensor::from_bytes(self.dtype(), self.shape(), &memory)?);
        }
        let mut tensor = HostTensor::scratch(self.dtype(), self.shape())?;
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
        match self.map_if_possible()? {
            // Spares two changes of thread, which cost more than the copy of a small tensor.
            Some(memory) => {
                count_read(memory.len());
                out.copy_from_slice(&memory);
            }
            None => self.transfer_into(out)?,
        }
        Ok(())
    }

    /// Lets the plugin copy the data to `out`, which has its size and is not empty.
    fn transfer_into(&self, out: &mut [u8]) -> Result<(), Error> {
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
                Event::from_raw(args.event, self.client()).map_or(Ok(()), |event| event.wait())
            }
        })?;
        count_read(out.len());
        extend_signs(self.dtype(), out);
        Ok(())
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
            count_read(len_bytes);
            return Ok(HostTensor::from_bytes(self.dtype(), [len], &memory[..len_bytes])?);
        }
        if !self.is_stored_as_on_host() || len == 0 {
            let whole = self.to_host()?;
            return Ok(HostTensor::from_bytes(self.dtype(), [len], &whole.bytes()[..len_bytes])?);
        }
        let mut tensor = HostTensor::scratch(self.dtype(), [len])?;
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
        count_read(out.len());
        // SAFETY: the buffer is alive and at least as long as `out`, which is borrowed until the
        // copy is over, because the event is waited for.
        unsafe {
            self.call(&mut args)?;
            Event::from_raw(args.event, self.client()).map_or(Ok(()), |event| event.wait())
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
        // SAFETY: the buffer is alive, and the reference was taken in `map`. It is given back even
        // if the buffer has been given away. An error cannot be reported from here.
        let _ = unsafe { self.buffer.client().plugin().call(&mut args) };
    }
}

/// Bytes that a tensor takes on the host; saturates where no memory could hold it.
fn byte_size(dtype: DType, shape: &Shape) -> usize {
    shape.size().saturating_mul(dtype.size())
}

/// Fills the upper bits of signed sub-byte integers with the sign, which plugins leave zero.
fn extend_signs(dtype: DType, bytes: &mut [u8]) {
    if dtype.is_signed() && dtype.bits() < 8 {
        let unused = 8 - dtype.bits();
        bytes.iter_mut().for_each(|byte| *byte = ((*byte << unused) as i8 >> unused) as u8);
    }
}

fn check_size(dtype: DType, shape: &Shape, actual: usize) -> Result<(), Error> {
    let expected = byte_size(dtype, shape);
    if actual == expected {
        return Ok(());
    }
    Err(Error::HostSize { dtype, shape: shape.clone(), expected, actual })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Plugin, discover};

    /// On a CPU, reading goes through mapped memory; other devices need the ways tested here.
    #[test]
    fn all_ways_to_read_agree() {
        let client = Client::new(&Plugin::load(discover(None).unwrap()).unwrap(), &[]).unwrap();
        let tensor = HostTensor::from_vec((0..24_i16).collect(), [2, 3, 4]).unwrap();
        let buffer = client.buffer_from_host(&tensor, &client.devices()[0]).unwrap();
        let mut bytes = vec![0; 48];
        buffer.transfer_into(&mut bytes).unwrap();
        assert_eq!(bytes, tensor.bytes());
        let mut bytes = vec![0; 10];
        buffer.read_raw(&mut bytes).unwrap();
        assert_eq!(bytes, tensor.bytes()[..10]);
        assert_eq!(buffer.delete(), Ok(true));
        assert!(buffer.transfer_into(&mut [0; 48]).is_err());
        assert!(buffer.read_raw(&mut [0; 10]).is_err());
    }

    #[test]
    fn signs_are_extended_for_narrow_signed_types_only() {
        for (dtype, expected) in [
            (DType::S2, [0x00, 0x01, 0xfe, 0xff]),
            (DType::S4, [0x00, 0x01, 0x02, 0x03]),
            (DType::U2, [0x00, 0x01, 0x02, 0x03]),
            (DType::S8, [0x00, 0x01, 0x02, 0x03]),
        ] {
            let mut bytes = [0, 1, 2, 3];
            extend_signs(dtype, &mut bytes);
            assert_eq!(bytes, expected, "{dtype}");
        }
    }
}
