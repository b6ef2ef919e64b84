//! Device buffers: reference counted, asynchronous, usable from any thread.
//!
//! A buffer handle exists before its data does. Reading waits; passing a buffer to a program does
//! not, the program waits on the device. An operation that fails later leaves its error in the
//! buffers of its results, and every read of such a buffer returns that error.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use nxla_tensor::{DType, HostTensor, Shape};

use crate::client::{Client, PjrtDevice, non_null};
use crate::error::Error;
use crate::event::Event;
use crate::foreign::Lender;
use crate::storage::Storage;
use crate::sys::*;

/// A tensor in the memory of a device. Clones share it; the last one frees it.
#[derive(Clone)]
pub struct Buffer {
    inner: Arc<Inner>,
}

struct Inner {
    storage: Storage,
    client: Client,
    device: usize,
    dtype: DType,
    shape: Shape,
    /// Set by the first `delete`, the only one that returns true.
    freed: AtomicBool,
    /// The call that the memory was donated to.
    donated_to: OnceLock<Box<str>>,
    /// The number of references by code outside of the plugin, which has one reference for all of them: it does not
    /// synchronize its own count.
    holds: Mutex<usize>,
    /// Present if the memory belongs to another library: the owner, until the buffer is deleted.
    lender: Option<Mutex<Option<Lender>>>,
}

// SAFETY: PJRT buffers may be used and destroyed on any thread, and from several at once; the
// other fields are `Send` and `Sync` themselves.
unsafe impl Send for Inner {}
// SAFETY: see `Send`.
unsafe impl Sync for Inner {}

impl Buffer {
    /// Takes ownership of a plugin's buffer.
    ///
    /// # Safety
    /// `raw` is a live buffer of `client` with this type and shape, and this handle alone destroys
    /// it.
    pub(crate) unsafe fn new(
        raw: NonNull<PJRT_Buffer>,
        client: Client,
        device: usize,
        dtype: DType,
        shape: Shape,
    ) -> Buffer {
        Self::of(Storage::from_raw(raw), client, device, dtype, shape, None)
    }

    /// Takes ownership of a plugin's view of the memory of another library.
    ///
    /// # Safety
    /// As for [`new`](Buffer::new); the view refers to the memory of the lender.
    pub(crate) unsafe fn new_view(
        raw: NonNull<PJRT_Buffer>,
        client: Client,
        device: usize,
        dtype: DType,
        shape: Shape,
        lender: Lender,
    ) -> Buffer {
        Self::of(Storage::from_raw(raw), client, device, dtype, shape, Some(lender))
    }

    /// A buffer of host memory that has not been sent to the plugin.
    pub(crate) fn new_deferred(tensor: HostTensor, client: Client, device: usize) -> Buffer {
        let (dtype, shape) = (tensor.dtype(), tensor.shape().clone());
        Self::of(Storage::new_deferred(tensor), client, device, dtype, shape, None)
    }

    fn of(
        storage: Storage,
        client: Client,
        device: usize,
        dtype: DType,
        shape: Shape,
        lender: Option<Lender>,
    ) -> Buffer {
        let (freed, donated_to) = (AtomicBool::new(false), OnceLock::new());
        let holds = Mutex::new(0);
        let lender = lender.map(|lender| Mutex::new(Some(lender)));
        let inner =
            Inner { storage, client, device, dtype, shape, freed, donated_to, holds, lender };
        inner.client.devices()[device].live().add(inner.byte_size());
        Buffer { inner: Arc::new(inner) }
    }

    /// The plugin's object. A deferred tensor is sent to the plugin.
    ///
    /// # Errors
    /// Returns [`Error::Released`] for a deferred tensor that has been freed, or the error of the
    /// plugin.
    #[inline]
    pub(crate) fn raw(&self) -> Result<*mut PJRT_Buffer, Error> {
        let send = |tensor: &HostTensor| self.client().send(tensor, self.inner.device);
        Ok(self.inner.storage.raw_or_send(send)?.as_ptr())
    }

    /// Returns true if the tensor has not been sent to the plugin, see [`Client::adopt`].
    #[must_use]
    pub fn is_deferred(&self) -> bool {
        self.inner.storage.raw().is_none()
    }

    /// The tensor, if it has not been sent to the plugin.
    ///
    /// # Errors
    /// Returns [`Error::Donated`] if the buffer was donated, and [`Error::Released`] if it was
    /// deferred and has been freed.
    pub(crate) fn deferred_tensor(&self) -> Result<Option<HostTensor>, Error> {
        if self.inner.storage.raw().is_some() {
            return Ok(None);
        }
        self.check_not_donated()?;
        match self.inner.storage.tensor() {
            None if self.inner.storage.is_empty() => Err(Error::Released),
            tensor => Ok(tensor),
        }
    }

    /// The client the buffer belongs to.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.inner.client
    }

    /// The device whose memory holds the data.
    #[must_use]
    pub fn device(&self) -> &PjrtDevice {
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

    /// Returns true if the data is available or its operation has failed. Never blocks.
    ///
    /// # Errors
    /// Returns [`Error::Released`] if the data has been freed, or the plugin's error.
    pub fn is_ready(&self) -> Result<bool, Error> {
        if self.is_deleted()? {
            return Err(self.deleted_error());
        }
        self.ready_event()?.map_or(Ok(true), |event| event.is_ready())
    }

    /// Blocks until the data is available.
    ///
    /// # Errors
    /// Returns the error of the operation that computes the data, or an error if the buffer was
    /// deleted or donated.
    pub fn wait(&self) -> Result<(), Error> {
        self.ready_event()?.map_or(Ok(()), |event| event.wait())
    }

    /// Calls `callback` when the data is available or its operation has failed; see
    /// [`Event::on_ready`].
    ///
    /// # Errors
    /// Returns the plugin's error if the registration fails; the callback is then dropped without
    /// being called.
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

    /// `None` if there is nothing to wait for.
    fn ready_event(&self) -> Result<Option<Event>, Error> {
        if self.deferred_tensor()?.is_some() {
            return Ok(None);
        }
        let mut args = PJRT_Buffer_ReadyEvent_Args::new();
        args.buffer = self.raw()?;
        // SAFETY: the buffer is alive, and this function owns the event.
        unsafe {
            self.call(&mut args)?;
            Ok(Event::from_raw(args.event, &self.inner.client))
        }
    }

    /// Copies the buffer to a device of the same client, without waiting. The copy is independent
    /// of this buffer, also on the same device.
    ///
    /// # Errors
    /// Returns [`Error::ForeignObject`] for a device of another client, and errors of the plugin.
    pub fn copy_to(&self, device: &PjrtDevice) -> Result<Buffer, Error> {
        let client = self.client();
        let index = client.index_of(device)?;
        if index == self.inner.device {
            if let Some(tensor) = self.deferred_tensor()? {
                return Ok(Buffer::new_deferred(tensor, client.clone(), index));
            }
            // PJRT only copies between devices, not to the host.
            return client.put(&self.to_host()?, device);
        }
        let mut args = PJRT_Buffer_CopyToDevice_Args::new();
        args.buffer = self.raw()?;
        args.dst_device = device.as_ptr();
        // SAFETY: the buffer is alive and the device belongs to its client. This function owns the
        // new buffer.
        unsafe {
            self.call(&mut args)?;
            let raw = non_null(&args, args.dst_buffer, &client.plugin())?;
            let copy = Buffer::new(raw, client.clone(), index, self.dtype(), self.shape().clone());
            if self.inner.lender.is_some() {
                // The owner may release the memory as soon as this buffer is dropped.
                copy.wait()?;
            }
            Ok(copy)
        }
    }

    /// The number of references by code outside of the plugin.
    pub(crate) fn holds(&self) -> MutexGuard<'_, usize> {
        self.inner.holds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The owner of the memory if it belongs to another library and the buffer is not deleted.
    #[inline]
    pub(crate) fn lender(&self) -> Option<Lender> {
        let lender = self.inner.lender.as_ref()?;
        lender.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns true if code outside of the plugin can read the memory, which a program must not
    /// overwrite then.
    #[inline]
    pub(crate) fn is_shared_outside(&self) -> bool {
        self.inner.lender.is_some() || *self.holds() > 0
    }

    /// A number that is unique among all live buffers.
    #[must_use]
    pub fn address(&self) -> usize {
        Arc::as_ptr(&self.inner).addr()
    }

    /// Returns true if two handles refer to the same buffer.
    #[must_use]
    pub fn is(&self, other: &Buffer) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Frees the device memory after running programs have finished, even if other handles exist.
    /// Returns false if the buffer was deleted or donated before.
    ///
    /// # Errors
    /// Returns the error of the plugin.
    pub fn delete(&self) -> Result<bool, Error> {
        if !self.inner.forget_size() || self.is_deleted()? {
            return Ok(false);
        }
        if self.inner.storage.clear() {
            return Ok(true);
        }
        let mut args = PJRT_Buffer_Delete_Args::new();
        args.buffer = self.raw()?;
        // SAFETY: the buffer is alive; deleting frees its memory, not the object.
        unsafe { self.call(&mut args)? };
        if let Some(lender) = &self.inner.lender {
            let lender = lender.lock().unwrap_or_else(PoisonError::into_inner).take();
            drop(lender);
        }
        Ok(true)
    }

    /// Records that the memory was donated to the call of this name: every later use is an
    /// [`Error::Donated`] with the name. Memory that the program did not reuse is freed.
    ///
    /// # Errors
    /// Returns the error of the plugin.
    pub fn donate(&self, to: &str) -> Result<(), Error> {
        self.delete()?;
        self.mark_donated(to);
        Ok(())
    }

    /// Records a donation as [`donate`](Buffer::donate) does, but frees nothing: the program that
    /// reuses the memory frees it, or the last handle does.
    pub fn mark_donated(&self, to: &str) {
        let _ = self.inner.donated_to.set(to.into());
    }

    /// Returns the error of a use after a donation.
    #[inline]
    pub(crate) fn check_not_donated(&self) -> Result<(), Error> {
        match self.inner.donated_to.get() {
            None => Ok(()),
            Some(to) => Err(Error::Donated { to: to.to_string() }),
        }
    }

    /// Returns true if the buffer was deleted, or donated to a program.
    ///
    /// # Errors
    /// Returns the error of the plugin.
    pub fn is_deleted(&self) -> Result<bool, Error> {
        if self.inner.donated_to.get().is_some() {
            return Ok(true);
        }
        let Some(raw) = self.inner.storage.raw() else {
            return Ok(self.inner.storage.is_empty());
        };
        let mut args = PJRT_Buffer_IsDeleted_Args::new();
        args.buffer = raw.as_ptr();
        // SAFETY: the buffer is alive.
        unsafe { self.call(&mut args)? };
        Ok(args.is_deleted)
    }

    /// Returns the cause of an error of this buffer: [`Error::Released`] or [`Error::Donated`] for a
    /// buffer that was deleted or donated, and else the error itself.
    #[must_use]
    pub fn cause(&self, error: Error) -> Error {
        match self.is_deleted() {
            Ok(true) => self.deleted_error(),
            Ok(false) | Err(_) => error,
        }
    }

    /// The error for a buffer that was deleted, or donated to a program.
    fn deleted_error(&self) -> Error {
        self.check_not_donated().err().unwrap_or(Error::Released)
    }

    /// # Safety
    /// As for [`Plugin::call`](crate::Plugin).
    pub(crate) unsafe fn call<A: Args>(&self, args: &mut A) -> Result<(), Error> {
        self.check_not_donated()?;
        // SAFETY: the caller guarantees the requirements of `call`.
        unsafe { self.inner.client.plugin().call(args) }
    }
}

impl Inner {
    /// Returns the number of bytes that are counted for the elements.
    fn byte_size(&self) -> usize {
        self.shape.byte_size(self.dtype)
    }

    /// Counts the memory as free. Returns `true` on the first call.
    fn forget_size(&self) -> bool {
        let first = !self.freed.swap(true, Ordering::AcqRel);
        if first {
            self.client.devices()[self.device].live().remove(self.byte_size());
        }
        first
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.forget_size();
        let Some(raw) = self.storage.raw() else { return };
        let mut args = PJRT_Buffer_Destroy_Args::new();
        args.buffer = raw.as_ptr();
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
