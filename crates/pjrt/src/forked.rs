//! Processes that were forked off one with a plugin.
//!
//! The threads of a plugin stay with the parent. A call of the plugin in the child would wait for
//! ever or abort, so the child makes none, not even to free memory.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::Error;

static FORKED: AtomicBool = AtomicBool::new(false);

// SAFETY: this is the declaration in POSIX; any function without arguments may be passed.
#[cfg(unix)]
unsafe extern "C" {
    safe fn pthread_atfork(
        prepare: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
    ) -> std::ffi::c_int;
}

#[cfg(unix)]
extern "C" fn in_child() {
    FORKED.store(true, Ordering::Relaxed);
}

/// Has forks noticed from now on.
pub(crate) fn watch() {
    static WATCHING: Once = Once::new();
    // The registration fails only if memory is exhausted; a forked process is then not detected.
    #[cfg(unix)]
    WATCHING.call_once(|| {
        let _ = pthread_atfork(None, None, Some(in_child));
    });
    #[cfg(not(unix))]
    WATCHING.call_once(|| ());
}

/// Checks that this process is not a fork of a process that had loaded a plugin.
///
/// # Errors
/// Returns [`Error::Forked`] in such a process.
#[inline]
pub fn check_not_forked() -> Result<(), Error> {
    if is_child() { Err(Error::Forked) } else { Ok(()) }
}

/// Returns true if the process was forked from one with a plugin.
#[inline]
pub(crate) fn is_child() -> bool {
    FORKED.load(Ordering::Relaxed)
}
