//! Replacement for the thread pool without the feature `parallel`: all work runs on the calling thread.

use super::{EvalError, ExecContext};

/// The thread pool, which does not exist.
pub(super) enum Pool {}

impl ExecContext<'_> {
    /// Returns `None`.
    pub(super) fn pool(&self) -> Option<&'static Pool> {
        debug_assert!(!self.on_pool, "without a pool, no run occupies it");
        None
    }
}

/// Runs on the calling thread.
pub(crate) fn run_on_pool<R: Send>(
    cx: &ExecContext<'_>,
    run: impl FnOnce(&ExecContext<'_>) -> Result<R, EvalError> + Send,
) -> Result<R, EvalError> {
    run(cx)
}

impl Pool {
    pub(super) fn count(&self) -> usize {
        match *self {}
    }

    pub(super) fn wake(&self, _cx: &ExecContext<'_>) {
        match *self {}
    }

    pub(super) fn install<R: Send>(&self, _work: impl FnOnce() -> R + Send) -> R {
        match *self {}
    }

    pub(super) fn share<I: Send, W>(
        &self,
        _items: impl ExactSizeIterator<Item = I> + DoubleEndedIterator + Send,
        _init: fn() -> W,
        _task: &(dyn Fn(&mut W, I) + Sync),
    ) {
        match *self {}
    }
}
