//! Cancellation of runs.
//!
//! A caller passes a callback, which only the thread of the caller may call. Work on another thread sees a
//! [`CancelToken`] instead, which the waiting caller sets.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::{EvalError, ExecContext};

/// A callback that returns true if the run is to stop.
pub type Interrupt<'a> = dyn Fn() -> bool + Sync + 'a;

/// The source of a cancellation.
#[derive(Clone, Copy)]
pub(crate) enum Cancel<'a> {
    /// The run is not cancelled.
    Never,
    /// The run calls this callback.
    Poll(&'a Interrupt<'a>),
    /// The caller waits on another thread, calls the callback there, and sets this token.
    Token(&'a CancelToken),
}

/// A flag that tells work on other threads that its result is no longer wanted.
#[derive(Debug, Default)]
pub(crate) struct CancelToken(AtomicBool);

/// The time between two calls of the callback while a caller waits.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

impl CancelToken {
    #[inline]
    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Waits until the sender of `done` is dropped, and cancels the work if the callback returns true.
    pub(super) fn wait(&self, done: &mpsc::Receiver<()>, interrupt: Option<&Interrupt<'_>>) {
        while done.recv_timeout(POLL_INTERVAL) == Err(mpsc::RecvTimeoutError::Timeout) {
            if !self.is_cancelled() && interrupt.is_some_and(|interrupt| interrupt()) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
    }
}

/// Runs a long step on a new thread, while this thread calls the callback.
///
/// A cancelled step may leave its result unwritten, so the result is dropped.
pub(crate) fn run_cancellable<R: Send>(
    cx: &ExecContext<'_>,
    interrupt: &Interrupt<'_>,
    work: impl FnOnce(&ExecContext<'_>) -> R + Send,
) -> Result<R, EvalError> {
    let token = CancelToken::default();
    let (done, over) = mpsc::channel::<()>();
    // `work` is declared outside of the closure, so that it still exists if no thread can be
    // spawned.
    let mut work = Some(work);
    let result = thread::scope(|scope| {
        let task = || {
            let _done = done;
            work.take().map(|work| work(&cx.with_token(&token)))
        };
        let builder = thread::Builder::new().name("nxla step".into());
        let Ok(worker) = builder.spawn_scoped(scope, task) else { return None };
        token.wait(&over, Some(interrupt));
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    match (result, work) {
        _ if token.is_cancelled() => Err(EvalError::Interrupted),
        (Some(result), _) => Ok(result),
        (None, Some(work)) => Ok(work(cx)),
        (None, None) => unreachable!("a spawned step returns a result"),
    }
}

impl ExecContext<'_> {
    /// Runs work that cannot be cancelled. If the token is set meanwhile, the work continues on a detached
    /// thread and this function returns `None` at once.
    pub(crate) fn run_detached<R, F>(&self, work: F) -> Option<R>
    where
        R: Send + 'static,
        F: FnOnce() -> R + Send + 'static,
    {
        let Cancel::Token(token) = self.cancel else { return Some(work()) };
        let (sender, result) = mpsc::channel();
        // The closure of a thread that cannot be spawned is lost, so the work is sent to the thread.
        let (give_work, receive_work) = mpsc::channel::<F>();
        let task = move || {
            if let Ok(work) = receive_work.recv() {
                drop(sender.send(work()));
            }
        };
        let Ok(worker) = thread::Builder::new().name("nxla step".into()).spawn(task) else {
            return Some(work());
        };
        give_work.send(work).expect("the thread receives its work before it ends");
        loop {
            match result.recv_timeout(POLL_INTERVAL) {
                Ok(result) => return Some(result),
                Err(mpsc::RecvTimeoutError::Timeout) if token.is_cancelled() => return None,
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => match worker.join() {
                    Err(panic) => std::panic::resume_unwind(panic),
                    Ok(()) => unreachable!("a step that ends sends its result"),
                },
            }
        }
    }
}
