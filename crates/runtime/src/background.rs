//! Work that the caller may have to leave behind.
//!
//! Compiling with XLA can take minutes, and XLA runs small programs, loops among them, on the
//! thread that starts them. A caller who wants to stay interruptible hands such work to a thread
//! of its own and waits here. If it is interrupted, the work goes on to its end, and whatever it
//! gives is dropped or, for executables, kept in the cache.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use nxla_eval::EvalError;
pub(crate) use nxla_eval::Interrupt;

use crate::error::{Error, Result};

/// How often a waiting caller asks whether it has been interrupted.
pub(crate) const ASK_EVERY: Duration = Duration::from_millis(50);

/// XLA recurses over long programs; a main thread has 8 MiB as well.
const STACK_BYTES: usize = 16 << 20;

/// Starts work on a thread of its own.
///
/// # Errors
/// If there can be no more threads.
pub(crate) fn start(name: &str, work: impl FnOnce() + Send + 'static) -> Result<()> {
    let thread = thread::Builder::new().name(name.into()).stack_size(STACK_BYTES);
    let refused = |error: io::Error| Error::Usage(format!("no thread could be started: {error}"));
    thread.spawn(work).map(drop).map_err(refused)
}

/// The error of a caller that was interrupted.
pub(crate) fn interrupted() -> Error {
    Error::Eval(EvalError::Interrupted)
}

/// Waits for what work on another thread gives; `None` if it ended without giving anything.
///
/// # Errors
/// The caller was interrupted.
pub(crate) fn wait<T>(given: &Receiver<T>, interrupt: &Interrupt<'_>) -> Result<Option<T>> {
    loop {
        match given.recv_timeout(ASK_EVERY) {
            Ok(value) => return Ok(Some(value)),
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
            Err(RecvTimeoutError::Timeout) if interrupt() => return Err(interrupted()),
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}
