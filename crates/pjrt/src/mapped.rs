//! Memory of devices that the host reads in place.

use std::ops::Deref;
use std::ptr::NonNull;

use nxla_tensor::{Frozen, HostTensor};

use crate::buffer::Buffer;
use crate::error::Error;
use crate::external::MemoryHold;
use crate::value;

impl Buffer {
    /// Waits for the data and maps it in place; returns `None` for devices with their own memory
    /// and for types that the device packs.
    ///
    /// While the result lives, the memory stays where it is, even if the buffer is deleted; a
    /// program that would overwrite it works on a copy.
    ///
    /// # Errors
    /// Returns the errors of [`wait`](Buffer::wait).
    pub(crate) fn map(&self) -> Result<Option<MappedBuffer>, Error> {
        if !self.client().computes_on_host() || !self.is_stored_as_on_host() {
            return Ok(None);
        }
        if let Some(tensor) = self.deferred_tensor()? {
            return Ok(Some(MappedBuffer::Deferred(tensor)));
        }
        let held = MemoryHold::of(self)?;
        let (data, len) = match NonNull::new(held.pointer().cast()) {
            Some(data) => (data, self.shape().byte_size(self.dtype())),
            None => (NonNull::dangling(), 0),
        };
        Ok(Some(MappedBuffer::Plugin { data, len, _held: held }))
    }

    /// Waits for the data and returns it as a host tensor, which shares the memory if the host can
    /// read it, and is a copy otherwise.
    ///
    /// While the result lives, the memory does not change; see `Buffer::map`.
    ///
    /// # Errors
    /// Returns the errors of [`wait`](Buffer::wait).
    pub fn share(&self) -> Result<HostTensor, Error> {
        if let Some(tensor) = self.deferred_tensor()? {
            return Ok(tensor);
        }
        let Some(memory) = self.map()? else { return self.to_host() };
        let frozen = Frozen::promised_by(memory);
        let shared = HostTensor::from_frozen(self.dtype(), self.shape().clone(), frozen);
        // Misaligned memory is copied.
        shared.or_else(|_| self.to_host())
    }
}

/// The memory of a buffer, readable in place; see [`Buffer::map`].
pub(crate) enum MappedBuffer {
    /// The tensor of a buffer that the plugin has not received.
    Deferred(HostTensor),
    Plugin {
        data: NonNull<u8>,
        len: usize,
        _held: MemoryHold,
    },
}

// SAFETY: the memory is read only and held by an external reference until drop.
unsafe impl Send for MappedBuffer {}
// SAFETY: see `Send`.
unsafe impl Sync for MappedBuffer {}

impl Deref for MappedBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            MappedBuffer::Deferred(tensor) => tensor.bytes(),
            // SAFETY: the plugin keeps the memory in place and unchanged while the external
            // reference is held; for an empty tensor the pointer dangles and the length is 0.
            MappedBuffer::Plugin { data, len, .. } => unsafe { value::slice(data.as_ptr(), *len) },
        }
    }
}

impl AsRef<[u8]> for MappedBuffer {
    fn as_ref(&self) -> &[u8] {
        self
    }
}
