//! Forks of the process, and processes that were forked from one with a plugin.
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

extern "C" fn in_child() {
    FORKED.store(true, Ordering::Relaxed);
}

/// Calls `before` on a thread directly before it forks the process, and `after` directly afterwards, in the parent and
/// in the child. The thread runs no Python code between the calls. Systems without forks never call the functions.
pub fn call_around_forks(before: extern "C" fn(), after: extern "C" fn()) {
    register(Some(before), Some(after), Some(after));
}

/// Registers functions for forks of this process, if it can fork.
fn register(
    before: Option<extern "C" fn()>,
    in_parent: Option<extern "C" fn()>,
    in_child: Option<extern "C" fn()>,
) {
    // The registration fails only if memory is exhausted; forks are then not detected.
    #[cfg(unix)]
    let _ = pthread_atfork(before, in_parent, in_child);
    #[cfg(not(unix))]
    let _ = (before, in_parent, in_child);
}

/// Has forks noticed from now on.
pub(crate) fn watch() {
    static WATCHING: Once = Once::new();
    WATCHING.call_once(|| register(None, None, Some(in_child)));
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
