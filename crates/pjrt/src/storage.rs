//! The storage of a buffer's data: with the plugin, or a host tensor that has not been sent.
//!
//! Devices that compute in host memory need no copy of a tensor, and sending a small tensor to the
//! plugin takes longer than computing with it. A deferred tensor is sent when the first program
//! uses it; until then it is read, copied and freed without the plugin.

use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use nxla_tensor::HostTensor;

use crate::error::Error;
use crate::sys::PJRT_Buffer;

/// The storage of data. Data that is neither deferred nor sent to the plugin has been freed.
pub(crate) struct Storage {
    sent: OnceLock<NonNull<PJRT_Buffer>>,
    deferred: Mutex<Option<HostTensor>>,
}

impl Storage {
    /// Creates the storage of a tensor that the plugin has.
    pub(crate) fn from_raw(raw: NonNull<PJRT_Buffer>) -> Self {
        Self { sent: OnceLock::from(raw), deferred: Mutex::new(None) }
    }

    /// Creates the storage of a tensor in host memory that the plugin does not know yet.
    pub(crate) fn new_deferred(tensor: HostTensor) -> Self {
        Self { sent: OnceLock::new(), deferred: Mutex::new(Some(tensor)) }
    }

    /// The plugin's object, if it has been sent.
    #[inline]
    pub(crate) fn raw(&self) -> Option<NonNull<PJRT_Buffer>> {
        self.sent.get().copied()
    }

    /// The tensor, if it is deferred.
    pub(crate) fn tensor(&self) -> Option<HostTensor> {
        match self.raw() {
            Some(_) => None,
            None => self.lock().clone(),
        }
    }

    /// Returns true if the data has been freed before it was sent.
    pub(crate) fn is_empty(&self) -> bool {
        self.raw().is_none() && {
            let deferred = self.lock();
            deferred.is_none() && self.raw().is_none()
        }
    }

    /// Frees a deferred tensor; returns true if there was one.
    pub(crate) fn clear(&self) -> bool {
        self.lock().take().is_some()
    }

    /// The plugin's object, which `send` makes of a deferred tensor.
    ///
    /// # Errors
    /// Returns [`Error::Released`] if the data has been freed, or an error of `send`, after which
    /// the tensor stays deferred.
    #[inline]
    pub(crate) fn raw_or_send(
        &self,
        send: impl FnOnce(&HostTensor) -> Result<NonNull<PJRT_Buffer>, Error>,
    ) -> Result<NonNull<PJRT_Buffer>, Error> {
        if let Some(raw) = self.raw() {
            return Ok(raw);
        }
        let mut deferred = self.lock();
        if let Some(raw) = self.raw() {
            return Ok(raw);
        }
        let raw = send(deferred.as_ref().ok_or(Error::Released)?)?;
        *deferred = None;
        Ok(*self.sent.get_or_init(|| raw))
    }

    fn lock(&self) -> MutexGuard<'_, Option<HostTensor>> {
        self.deferred.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
