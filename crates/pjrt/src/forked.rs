//! Processes that were forked off one with a plugin.
//!
//! The threads of a plugin stay with the parent: whatever is asked of it in the child waits for ever,
//! or aborts. So nothing is asked of it there, not even to free something.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::Error;

static FORKED: AtomicBool = AtomicBool::new(false);

// SAFETY: the declaration is that of POSIX; any function without arguments may be given.
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
    // Refused only for lack of memory; then a child is not told from its parent.
    #[cfg(unix)]
    WATCHING.call_once(|| {
        let _ = pthread_atfork(None, None, Some(in_child));
    });
    #[cfg(not(unix))]
    WATCHING.call_once(|| ());
}

/// Refuses to go on in a process that was forked off one that had a plugin, or was loading one.
///
/// # Errors
/// [`Error::Forked`].
#[inline]
pub fn check_not_forked() -> Result<(), Error> {
    if is_child() { Err(Error::Forked) } else { Ok(()) }
}

/// Whether the process was forked off one that had a plugin.
#[inline]
pub(crate) fn is_child() -> bool {
    FORKED.load(Ordering::Relaxed)
}
