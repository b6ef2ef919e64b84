//! Where the data of a buffer is: with the plugin, or at hand.
//!
//! Devices that compute in host memory need no copy of a tensor, and telling the plugin of it takes longer
//! than computing with a small one. What is at hand is a buffer like others, whose tensor the plugin
//! gets to know from the first program that wants it; until then it is read, copied and freed without
//! the plugin.

use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use nxla_tensor::HostTensor;

use crate::error::Error;
use crate::sys::PJRT_Buffer;

/// Where data is. What neither is at hand nor was sent to the plugin has been freed.
pub(crate) struct Storage {
    sent: OnceLock<NonNull<PJRT_Buffer>>,
    deferred: Mutex<Option<HostTensor>>,
}

impl Storage {
    /// With the plugin.
    pub(crate) fn sent(raw: NonNull<PJRT_Buffer>) -> Self {
        Self { sent: OnceLock::from(raw), deferred: Mutex::new(None) }
    }

    /// In host memory, and nowhere else.
    pub(crate) fn deferred(tensor: HostTensor) -> Self {
        Self { sent: OnceLock::new(), deferred: Mutex::new(Some(tensor)) }
    }

    /// The plugin's object, if it has been sent.
    #[inline]
    pub(crate) fn raw(&self) -> Option<NonNull<PJRT_Buffer>> {
        self.sent.get().copied()
    }

    /// The tensor, if it is at hand.
    pub(crate) fn tensor(&self) -> Option<HostTensor> {
        match self.raw() {
            Some(_) => None,
            None => self.lock().clone(),
        }
    }

    /// Whether there is data neither here nor there.
    pub(crate) fn is_empty(&self) -> bool {
        self.raw().is_none() && {
            let deferred = self.lock();
            deferred.is_none() && self.raw().is_none()
        }
    }

    /// Frees what is at hand; whether something was.
    pub(crate) fn clear(&self) -> bool {
        self.lock().take().is_some()
    }

    /// The plugin's object, which `send` makes of what is at hand.
    ///
    /// # Errors
    /// [`Error::Released`] if there is nothing; those of `send`, after which the tensor is at hand still.
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
