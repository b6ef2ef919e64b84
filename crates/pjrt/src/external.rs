//! References to the memory of buffers by code outside of the plugin.

use crate::buffer::Buffer;
use crate::error::Error;
use crate::release::{Release, release};
use crate::sys::*;

/// Keeps the memory of a buffer in place and unchanged until it is dropped, even if the buffer is
/// deleted. A program that would overwrite the memory works on a copy.
pub(crate) struct MemoryHold {
    buffer: Buffer,
    raw: *mut PJRT_Buffer,
    pointer: *mut u8,
}

// SAFETY: PJRT buffers may be used on any thread, and the pointer is only an address.
unsafe impl Send for MemoryHold {}
// SAFETY: see `Send`.
unsafe impl Sync for MemoryHold {}

impl MemoryHold {
    /// Waits for the data of a buffer and holds its memory.
    ///
    /// # Errors
    /// Returns the errors of [`Buffer::wait`].
    pub(crate) fn of(buffer: &Buffer) -> Result<MemoryHold, Error> {
        buffer.check_not_donated()?;
        let raw = buffer.raw()?;
        // A failed or deleted buffer has an error instead of memory.
        buffer.wait()?;
        let mut holds = buffer.holds();
        if *holds == 0 {
            let mut acquire = PJRT_Buffer_IncreaseExternalReferenceCount_Args::new();
            acquire.buffer = raw;
            // SAFETY: the buffer is alive. The reference is taken before the pointer is read, so
            // that the pointer stays valid; the `drop` of the last hold releases it.
            unsafe { buffer.call(&mut acquire)? };
        }
        *holds += 1;
        drop(holds);
        let mut hold = MemoryHold { buffer: buffer.clone(), raw, pointer: std::ptr::null_mut() };
        let mut pointer = PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args::new();
        pointer.buffer = raw;
        // SAFETY: the buffer is alive.
        unsafe { buffer.call(&mut pointer)? };
        hold.pointer = pointer.device_memory_ptr.cast();
        Ok(hold)
    }

    pub(crate) fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    /// The address of the first element in the memory of the device; null for an empty buffer.
    pub(crate) fn pointer(&self) -> *mut u8 {
        self.pointer
    }
}

impl Drop for MemoryHold {
    fn drop(&mut self) {
        let mut holds = self.buffer.holds();
        if *holds == 1 {
            let mut args = PJRT_Buffer_DecreaseExternalReferenceCount_Args::new();
            args.buffer = self.raw;
            // SAFETY: the buffer is alive, and the first hold took the reference. The reference is
            // released even if the buffer has been donated. An error cannot be reported from here.
            let _ = unsafe { self.buffer.client().plugin().call(&mut args) };
        }
        *holds -= 1;
    }
}

/// The memory of a buffer, lent to another library that reads it on the device.
///
/// Until it is dropped, the memory stays in place and unchanged, even if the buffer is deleted, and
/// a program that would overwrite it works on a copy. On a CUDA device the memory is also kept
/// until the work is complete that the device had accepted before the drop: a library may drop its
/// tensor while programs that read the tensor are still queued.
pub struct ExternalReference {
    /// Present until the drop.
    hold: Option<MemoryHold>,
}

impl ExternalReference {
    /// The buffer.
    #[must_use]
    pub fn buffer(&self) -> &Buffer {
        &self.hold().buffer
    }

    /// The address of the first element in the memory of the device; 0 for an empty buffer.
    #[must_use]
    pub fn address(&self) -> usize {
        self.hold().pointer.addr()
    }

    fn hold(&self) -> &MemoryHold {
        self.hold.as_ref().expect("the hold exists until the drop")
    }
}

impl std::fmt::Debug for ExternalReference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExternalReference").field("buffer", self.buffer()).finish_non_exhaustive()
    }
}

impl Buffer {
    /// Waits for the data and lends the memory to another library; returns `None` for memory that
    /// is not in row-major order with at least one byte for each element.
    ///
    /// # Errors
    /// Returns the errors of [`wait`](Buffer::wait).
    pub fn lend(&self) -> Result<Option<ExternalReference>, Error> {
        if !self.is_stored_as_on_host() {
            return Ok(None);
        }
        let hold = MemoryHold::of(self).map_err(|error| self.cause(error))?;
        Ok(Some(ExternalReference { hold: Some(hold) }))
    }
}

impl Drop for ExternalReference {
    fn drop(&mut self) {
        let Some(hold) = self.hold.take() else { return };
        if hold.buffer.client().platform_name() != "cuda" {
            return;
        }
        release(Release::Lent { running: hold.buffer.client().begin(), hold });
    }
}
