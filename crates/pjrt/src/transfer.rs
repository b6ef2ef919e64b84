//! Transfers of tensors between host and device.
//!
//! Surprising points:
//! * Sub-byte integers travel as one byte each, although devices pack them. Plugins leave the
//!   upper bits of signed integers zero in reads; here they are filled with the sign.
//! * Large host tensors are lent, not copied: a CPU device computes with the host's memory in
//!   place if it is aligned to 64 bytes, as a [`HostTensor`] is. Programs run on after the
//!   call that started them, so only [`Frozen`] memory is lent.
//! * The host reads memory of a CPU device in place, because a copy by the plugin would use another
//!   thread.

use std::ops::Range;
use std::ptr::NonNull;

use nxla_tensor::{DType, Frozen, HostTensor, Shape};
use smallvec::SmallVec;

use crate::buffer::Buffer;
use crate::client::{Client, PjrtDevice, non_null};
use crate::dtype;
use crate::error::Error;
use crate::event::Event;
use crate::sys::*;
use crate::traffic::{count_read, count_sent};

/// Bytes of a tensor from which on it is lent to a device: keeping fewer alive costs more than a
/// copy.
const LENT_BYTES: usize = 4096;

/// The reason why a new tensor is writable.
pub(crate) const NEW_IS_UNIQUE: &str = "a new tensor has its memory for itself";

/// The sizes of a shape as the plugin takes them.
pub(crate) fn dims_of(shape: &Shape) -> SmallVec<[i64; 8]> {
    // Sizes above `i64::MAX` can only occur next to a zero; the plugin refuses them.
    shape.iter().map(|&size| size as i64).collect()
}

impl Client {
    /// Copies a host tensor to a device, without waiting for the copy.
    ///
    /// Large tensors are not copied twice: the device reads the host memory directly, and a CPU
    /// device can even use it in place. The tensor's storage is kept alive until the device is
    /// done with it.
    ///
    /// # Errors
    /// Returns [`Error::ForeignObject`] for a device of another client, and errors of the plugin.
    pub fn buffer_from_host(
        &self,
        tensor: &HostTensor,
        device: &PjrtDevice,
    ) -> Result<Buffer, Error> {
        let (index, dtype) = (self.index_of(device)?, tensor.dtype());
        let raw = self.send(tensor, index)?;
        count_sent(tensor.byte_size());
        // SAFETY: the plugin has just created the object, with this type and shape.
        Ok(unsafe { Buffer::new(raw, self.clone(), index, dtype, tensor.shape().clone()) })
    }

    /// Copies a host tensor to a device with separate memory, or [adopts](Client::adopt) it; both
    /// are counted as [`Traffic`](crate::Traffic).
    ///
    /// # Errors
    /// Returns the errors of [`adopt`](Client::adopt).
    pub fn put(&self, tensor: &HostTensor, device: &PjrtDevice) -> Result<Buffer, Error> {
        let buffer = self.adopt(tensor, device)?;
        if self.computes_on_host() {
            count_sent(tensor.byte_size());
        }
        Ok(buffer)
    }

    /// Makes a buffer of a host tensor without telling the plugin, where its devices compute in
    /// host memory: it gets to know from the first program that is given the buffer. Elsewhere it
    /// is as [`buffer_from_host`](Client::buffer_from_host).
    ///
    /// # Errors
    /// Returns the errors of [`buffer_from_host`](Client::buffer_from_host); the first program that
    /// uses the buffer returns errors of the plugin.
    pub fn adopt(&self, tensor: &HostTensor, device: &PjrtDevice) -> Result<Buffer, Error> {
        if !self.computes_on_host() {
            return self.buffer_from_host(tensor, device);
        }
        let device = self.index_of(device)?;
        Ok(Buffer::new_deferred(tensor.clone().with_names(None)?, self.clone(), device))
    }

    /// Returns true if devices store elements of a dtype as the host does: in row-major order,
    /// unpacked. CPUs and GPUs do; other devices tile.
    pub(crate) fn stores_as_host(&self, dtype: DType) -> bool {
        matches!(self.platform_name(), "cpu" | "cuda" | "rocm" | "gpu") && dtype.bits() >= 8
    }

    /// Makes the plugin's object of a host tensor.
    pub(crate) fn send(
        &self,
        tensor: &HostTensor,
        device: usize,
    ) -> Result<NonNull<PJRT_Buffer>, Error> {
        let (dtype, shape) = (tensor.dtype(), tensor.shape());
        match tensor.bytes() {
            bytes if bytes.len() < LENT_BYTES => self.send_bytes(dtype, shape, bytes, device),
            _ => self.send_frozen(dtype, shape, tensor.share(), device),
        }
    }

    /// Copies elements in row-major order to a device. Sub-byte integers travel as one byte each.
    fn send_bytes(
        &self,
        dtype: DType,
        shape: &Shape,
        bytes: &[u8],
        device: usize,
    ) -> Result<NonNull<PJRT_Buffer>, Error> {
        let during_call = host_buffer_semantics::IMMUTABLE_ONLY_DURING_CALL;
        // SAFETY: `bytes` is borrowed for the whole call, and these semantics do not require more.
        let (raw, _done) = unsafe { self.upload(dtype, shape, bytes, during_call, device)? };
        Ok(raw)
    }

    /// Lends host memory to a device, which reads it in place or copies it. The handle is dropped
    /// when the device needs the memory no more, possibly on a thread of the plugin.
    fn send_frozen(
        &self,
        dtype: DType,
        shape: &Shape,
        memory: Frozen,
        device: usize,
    ) -> Result<NonNull<PJRT_Buffer>, Error> {
        let zero_copy = host_buffer_semantics::IMMUTABLE_ZERO_COPY;
        // SAFETY: frozen memory neither moves nor changes while a handle to it exists. The callback
        // below owns a handle until the plugin no longer needs the bytes.
        let (raw, done) = unsafe { self.upload(dtype, shape, memory.bytes(), zero_copy, device)? };
        if let Some(done) = done {
            let kept = memory.clone();
            done.on_ready(move |_| drop(kept)).inspect_err(|_| {
                // Without a callback the end of the transfer is unknown, so the memory is leaked.
                std::mem::forget(memory);
            })?;
        }
        Ok(raw)
    }

    /// Starts a transfer to a device. The event is ready when `bytes` is not needed any more.
    ///
    /// # Safety
    /// `bytes` has the elements of the shape, and stays valid and unchanged for as long as
    /// `semantics` say.
    unsafe fn upload(
        &self,
        dtype: DType,
        shape: &Shape,
        bytes: &[u8],
        semantics: c_enum,
        device: usize,
    ) -> Result<(NonNull<PJRT_Buffer>, Option<Event>), Error> {
        debug_assert_eq!(bytes.len(), shape.byte_size(dtype));
        let dims = dims_of(shape);
        let mut args = PJRT_Client_BufferFromHostBuffer_Args::new();
        args.client = self.as_ptr();
        args.data = bytes.as_ptr().cast();
        args.element_type = dtype::to_pjrt(dtype);
        args.dims = dims.as_ptr();
        args.num_dims = dims.len();
        args.host_buffer_semantics = semantics;
        args.device = self.devices()[device].as_ptr();
        // SAFETY: client and device are alive, `dims` outlives the call, and the caller guarantees
        // `bytes`. This function owns the returned buffer and event.
        unsafe {
            self.plugin().call(&mut args)?;
            let done = Event::from_raw(args.done_with_host_buffer, self);
            Ok((non_null(&args, args.buffer, &self.plugin())?, done))
        }
    }
}

impl Buffer {
    /// Waits for the data and copies it to the host.
    ///
    /// # Errors
    /// Returns the errors of [`wait`](Buffer::wait).
    pub fn to_host(&self) -> Result<HostTensor, Error> {
        if let Some(tensor) = self.deferred_tensor()? {
            count_read(tensor.byte_size());
            return Ok(tensor);
        }
        if let Some(memory) = self.map()? {
            // This copy reads the memory once. A copy by the plugin reads it twice and switches
            // threads twice.
            count_read(memory.len());
            return Ok(HostTensor::from_bytes(self.dtype(), self.shape(), &memory)?);
        }
        let mut tensor = HostTensor::scratch(self.dtype(), self.shape())?;
        let out = tensor.try_unique_mut().expect(NEW_IS_UNIQUE);
        if out.is_empty() {
            // An empty buffer needs no copy, but the error of a failed operation must be returned.
            self.wait()?;
        } else {
            self.transfer_into(out)?;
        }
        Ok(tensor)
    }

    /// Lets the plugin copy the data to `out`, which has its size and is not empty.
    fn transfer_into(&self, out: &mut [u8]) -> Result<(), Error> {
        let rank = self.shape().rank();
        let minor_to_major: SmallVec<[i64; 8]> = (0..rank as i64).rev().collect();
        let mut layout = PJRT_Buffer_MemoryLayout::new();
        layout.kind = MEMORY_LAYOUT_TILED;
        layout.tiled = PJRT_Buffer_MemoryLayout_Tiled::new();
        layout.tiled.minor_to_major = minor_to_major.as_ptr();
        layout.tiled.minor_to_major_size = rank;
        let mut args = PJRT_Buffer_ToHostBuffer_Args::new();
        args.src = self.raw()?;
        args.host_layout = &raw mut layout;
        args.dst = out.as_mut_ptr().cast();
        args.dst_size = out.len();
        // SAFETY: the buffer is alive, and the layout and its arrays outlive the call. `out` is
        // borrowed until the copy is complete, because the event is waited for.
        unsafe {
            self.call(&mut args)?;
            Event::from_raw(args.event, self.client()).map_or(Ok(()), |event| event.wait())?;
        }
        count_read(out.len());
        extend_signs(self.dtype(), out);
        Ok(())
    }

    /// Waits for the data and copies ranges of elements, in row-major order, to a tensor of one
    /// dimension. Parts of ranges beyond the elements are ignored.
    ///
    /// # Errors
    /// Returns the errors of [`wait`](Buffer::wait).
    pub fn read(&self, ranges: &[Range<usize>]) -> Result<HostTensor, Error> {
        let (size, width) = (self.shape().size(), self.dtype().size());
        let within = |range: &Range<usize>| range.start.min(size)..range.end.min(size);
        let ranges: Vec<Range<usize>> = ranges.iter().map(within).collect();
        let count = ranges.iter().map(Range::len).sum::<usize>();
        let mut tensor = HostTensor::scratch(self.dtype(), [count])?;
        let mut rest = tensor.try_unique_mut().expect(NEW_IS_UNIQUE);
        let mut parts = Vec::with_capacity(ranges.len());
        for range in ranges {
            let (part, after) = rest.split_at_mut(range.len() * width);
            parts.push((range.start * width, part));
            rest = after;
        }
        let copy = |bytes: &[u8], parts: Vec<(usize, &mut [u8])>| {
            for (offset, part) in parts {
                part.copy_from_slice(&bytes[offset..offset + part.len()]);
            }
        };
        if let Some(tensor) = self.deferred_tensor()? {
            count_read(count * width);
            copy(tensor.bytes(), parts);
        } else if let Some(memory) = self.map()? {
            count_read(count * width);
            copy(&memory, parts);
        } else if !self.is_stored_as_on_host() || count == 0 {
            copy(self.to_host()?.bytes(), parts);
        } else {
            parts.into_iter().try_for_each(|(offset, part)| self.read_raw(offset, part))?;
        }
        Ok(tensor)
    }

    /// See [`Client::stores_as_host`].
    pub(crate) fn is_stored_as_on_host(&self) -> bool {
        self.client().stores_as_host(self.dtype())
    }

    /// Copies bytes of the device memory from an offset.
    fn read_raw(&self, offset: usize, out: &mut [u8]) -> Result<(), Error> {
        let mut args = PJRT_Buffer_CopyRawToHost_Args::new();
        args.buffer = self.raw()?;
        args.dst = out.as_mut_ptr().cast();
        args.offset = offset as i64;
        args.transfer_size = out.len() as i64;
        // The raw copy of some plugins ignores the state of the buffer.
        self.wait()?;
        count_read(out.len());
        // SAFETY: the buffer is alive and at least as long as the range. `out` is borrowed until
        // the copy is complete, because the event is waited for.
        unsafe {
            self.call(&mut args)?;
            Event::from_raw(args.event, self.client()).map_or(Ok(()), |event| event.wait())
        }
    }
}

/// Copies the sign of signed sub-byte integers to their upper bits, which plugins set to zero.
fn extend_signs(dtype: DType, bytes: &mut [u8]) {
    if dtype.is_signed() && dtype.bits() < 8 {
        let unused = 8 - dtype.bits();
        bytes.iter_mut().for_each(|byte| *byte = ((*byte << unused) as i8 >> unused) as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Plugin, discover};

    /// Reads on a CPU use mapped memory, so other devices depend on the functions tested here.
    #[test]
    fn all_read_functions_agree() {
        let Ok(path) = discover(None) else { return };
        let client = Client::new(&Plugin::load(path).unwrap(), &[]).unwrap();
        let tensor = HostTensor::from_vec((0..24_i16).collect(), [2, 3, 4]).unwrap();
        let buffer = client.buffer_from_host(&tensor, &client.devices()[0]).unwrap();
        let mut bytes = vec![0; 48];
        buffer.transfer_into(&mut bytes).unwrap();
        assert_eq!(bytes, tensor.bytes());
        let mut bytes = vec![0; 10];
        buffer.read_raw(6, &mut bytes).unwrap();
        assert_eq!(bytes, tensor.bytes()[6..16]);
        let read = buffer.read(&[1..3, 20..99]).unwrap();
        assert_eq!(read.to_vec::<i16>().unwrap(), [1, 2, 20, 21, 22, 23]);
        assert_eq!(buffer.delete(), Ok(true));
        assert!(buffer.transfer_into(&mut [0; 48]).is_err());
        assert!(buffer.read_raw(0, &mut [0; 10]).is_err());
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
