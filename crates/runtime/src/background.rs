//! Work on separate threads, which an interrupted caller abandons.
//!
//! Compiling with XLA can take minutes, and XLA runs small programs, loops among them, on the
//! thread that starts them. A caller that must stay interruptible passes such work to another
//! thread and waits here. If the caller is interrupted, the work continues to its end, and its
//! result is dropped or, for executables, kept in the cache.

use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use nxla_eval::EvalError;
pub(crate) use nxla_eval::Interrupt;

use crate::error::{Error, Result};

/// The interval at which a waiting caller polls for an interrupt.
pub(crate) const ASK_EVERY: Duration = Duration::from_millis(50);

/// XLA recurses over long programs; a main thread has 8 MiB as well.
const STACK_BYTES: usize = 16 << 20;

/// Starts work on a new thread.
///
/// # Errors
/// Returns an error if the system cannot start a thread.
pub(crate) fn start(name: &str, work: impl FnOnce() + Send + 'static) -> Result<()> {
    let thread = thread::Builder::new().name(name.into()).stack_size(STACK_BYTES);
    let refused = |error: io::Error| Error::Usage(format!("cannot start a thread: {error}"));
    thread.spawn(work).map(drop).map_err(refused)
}

/// Returns the error of a caller that was interrupted.
pub(crate) fn interruption() -> Error {
    Error::Eval(EvalError::Interrupted)
}

/// Waits for the result of work on another thread; `None` if it ended without a result.
///
/// # Errors
/// Returns an error if the caller was interrupted.
pub(crate) fn wait<T>(given: &Receiver<T>, interrupt: &Interrupt<'_>) -> Result<Option<T>> {
    loop {
        match given.recv_timeout(ASK_EVERY) {
            Ok(value) => return Ok(Some(value)),
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
            Err(RecvTimeoutError::Timeout) if interrupt() => return Err(interruption()),
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// Does work on another thread, and waits for its result.
///
/// # Errors
/// Returns the error of the work, and an error if the caller was interrupted or the system cannot start a thread.
pub fn run_watched<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> Result<T> + Send + 'static,
    interrupt: &Interrupt<'_>,
) -> Result<T> {
    let (give, given) = mpsc::channel();
    start(name, move || {
        // Sending fails if the caller has stopped waiting.
        let _ = give.send(work());
    })?;
    let panicked = || Error::Internal(format!("{name}: the thread panicked"));
    wait(&given, interrupt)?.unwrap_or_else(|| Err(panicked()))
}
