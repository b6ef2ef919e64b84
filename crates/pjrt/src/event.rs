//! Events: the completion of asynchronous work.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::Arc;

use crate::client::Client;
use crate::error::Error;
use crate::in_flight::ForeignThread;
use crate::plugin::Plugin;
use crate::sys::*;

/// An event that becomes ready once, when asynchronous work has finished or failed.
///
/// Clones share it. Dropping an event does not cancel the work.
#[derive(Clone)]
pub struct Event {
    inner: Arc<Inner>,
}

struct Inner {
    raw: NonNull<PJRT_Event>,
    client: Client,
}

// SAFETY: PJRT objects may be used and destroyed on any thread.
unsafe impl Send for Inner {}
// SAFETY: PJRT functions may be called on one object from several threads at once, and becoming
// ready is the only change of an event.
unsafe impl Sync for Inner {}

impl Event {
    /// Takes ownership of an event; `None` for null, which some plugins return for finished work.
    ///
    /// # Safety
    /// `raw` is null or a live event of this client, which this handle alone destroys.
    pub(crate) unsafe fn from_raw(raw: *mut PJRT_Event, client: &Client) -> Option<Event> {
        let client = client.clone();
        NonNull::new(raw).map(|raw| Event { inner: Arc::new(Inner { raw, client }) })
    }

    /// Does the same as [`from_raw`](Event::from_raw), but returns `None` for an event that is
    /// ready, with or without an error. This saves an allocation for short programs.
    ///
    /// # Safety
    /// As for [`from_raw`](Event::from_raw).
    #[inline]
    pub(crate) unsafe fn from_raw_if_pending(
        raw: *mut PJRT_Event,
        client: &Client,
    ) -> Option<Event> {
        if raw.is_null() {
            return None;
        }
        let mut args = PJRT_Event_IsReady_Args::new();
        args.event = raw;
        let mut destroy = PJRT_Event_Destroy_Args::new();
        destroy.event = raw;
        // SAFETY: the event is alive, and either destroyed or passed on.
        unsafe {
            if client.plugin().call(&mut args).is_ok() && args.is_ready {
                let _ = client.plugin().call(&mut destroy);
                return None;
            }
            Event::from_raw(raw, client)
        }
    }

    fn plugin(&self) -> Plugin {
        self.inner.client.plugin()
    }

    /// Returns true if the work has finished or failed. Never blocks.
    ///
    /// # Errors
    /// Returns the plugin's error about the query, not the outcome of the work.
    pub fn is_ready(&self) -> Result<bool, Error> {
        let mut args = PJRT_Event_IsReady_Args::new();
        args.event = self.inner.raw.as_ptr();
        // SAFETY: the event is alive.
        unsafe { self.plugin().call(&mut args)? };
        Ok(args.is_ready)
    }

    /// Blocks until the work has finished.
    ///
    /// # Errors
    /// Returns the error of the work.
    pub fn wait(&self) -> Result<(), Error> {
        let mut args = PJRT_Event_Await_Args::new();
        args.event = self.inner.raw.as_ptr();
        // SAFETY: the event is alive.
        unsafe { self.plugin().call(&mut args) }
    }

    /// Calls `callback` with the outcome of the work: immediately for finished work, otherwise on a thread
    /// of the plugin, which must not be blocked for long.
    ///
    /// A panic of the callback is caught and ignored, because it has no caller in Rust.
    ///
    /// # Errors
    /// Returns the plugin's error if the registration fails; the callback is then dropped without
    /// being called.
    pub fn on_ready(
        &self,
        callback: impl FnOnce(Result<(), Error>) + Send + 'static,
    ) -> Result<(), Error> {
        let plugin = self.plugin();
        let mut args = PJRT_Event_OnReady_Args::new();
        args.event = self.inner.raw.as_ptr();
        args.callback = Some(on_ready);
        // The event is dropped after its callback: plugins differ in whether an event may be
        // destroyed while a callback waits for it.
        let waiting = Box::into_raw(Box::new(CallbackState {
            event: self.clone(),
            callback: Box::new(callback),
        }));
        args.user_arg = waiting.cast();
        // SAFETY: the event is alive. The plugin calls `on_ready` exactly once, with this pointer.
        let registered = unsafe { plugin.call(&mut args) };
        if registered.is_err() {
            // SAFETY: after an error the plugin has not stored the callback, so this pointer is the only
            // one to the box.
            drop(unsafe { Box::from_raw(waiting) });
        }
        registered
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let mut args = PJRT_Event_Destroy_Args::new();
        args.event = self.raw.as_ptr();
        // SAFETY: the event is alive, and this is its last use. An error cannot be reported from
        // here, and the event is destroyed in any case.
        let _ = unsafe { self.client.plugin().call(&mut args) };
    }
}

impl std::fmt::Debug for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Event").field("is_ready", &self.is_ready()).finish()
    }
}

/// The state of a callback, boxed behind the pointer that C passes.
struct CallbackState {
    event: Event,
    callback: Box<dyn FnOnce(Result<(), Error>) + Send>,
}

/// The function C calls when an event is ready.
///
/// # Safety
/// `waiting` comes from [`Event::on_ready`] and is passed here once; `error` is null or an error
/// that the callee owns.
unsafe extern "C" fn on_ready(error: *mut PJRT_Error, waiting: *mut c_void) {
    let _foreign = ForeignThread::enter();
    // SAFETY: the pointer was made by `Box::into_raw` and is converted back once.
    let CallbackState { event, callback } =
        *unsafe { Box::from_raw(waiting.cast::<CallbackState>()) };
    // SAFETY: this function owns the error.
    let outcome = unsafe { event.plugin().check("PJRT_Event_OnReady", error) };
    // Unwinding into C++ is undefined behavior. The closure is consumed, so its broken state is not
    // visible.
    let _ = catch_unwind(AssertUnwindSafe(move || callback(outcome)));
}
