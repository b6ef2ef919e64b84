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

/// Where data is. What neither is at hand nor was told to the plugin has been freed.
pub(crate) struct Place {
    told: OnceLock<NonNull<PJRT_Buffer>>,
    at_hand: Mutex<Option<HostTensor>>,
}

impl Place {
    /// With the plugin.
    pub(crate) fn told(raw: NonNull<PJRT_Buffer>) -> Self {
        Self { told: OnceLock::from(raw), at_hand: Mutex::new(None) }
    }

    /// In host memory, and nowhere else.
    pub(crate) fn at_hand(tensor: HostTensor) -> Self {
        Self { told: OnceLock::new(), at_hand: Mutex::new(Some(tensor)) }
    }

    /// The plugin's object, if it has been told.
    #[inline]
    pub(crate) fn raw(&self) -> Option<NonNull<PJRT_Buffer>> {
        self.told.get().copied()
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
            let at_hand = self.lock();
            at_hand.is_none() && self.raw().is_none()
        }
    }

    /// Frees what is at hand; whether something was.
    pub(crate) fn clear(&self) -> bool {
        self.lock().take().is_some()
    }

    /// The plugin's object, which `tell` makes of what is at hand.
    ///
    /// # Errors
    /// [`Error::Released`] if there is nothing; those of `tell`, after which the tensor is at hand still.
    #[inline]
    pub(crate) fn raw_or_tell(
        &self,
        tell: impl FnOnce(&HostTensor) -> Result<NonNull<PJRT_Buffer>, Error>,
    ) -> Result<NonNull<PJRT_Buffer>, Error> {
        if let Some(raw) = self.raw() {
            return Ok(raw);
        }
        let mut at_hand = self.lock();
        if let Some(raw) = self.raw() {
            return Ok(raw);
        }
        let raw = tell(at_hand.as_ref().ok_or(Error::Released)?)?;
        *at_hand = None;
        Ok(*self.told.get_or_init(|| raw))
    }

    fn lock(&self) -> MutexGuard<'_, Option<HostTensor>> {
        self.at_hand.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
