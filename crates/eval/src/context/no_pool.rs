//! Replacement for the thread pool without the feature `parallel`: all work runs on the calling thread.

use super::{EvalError, ExecContext};

impl ExecContext<'_> {
    /// The number of threads.
    pub(crate) fn threads(&self) -> usize {
        1
    }

    /// Runs work on the calling thread.
    pub(crate) fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        work()
    }

    /// Runs tasks on the calling thread.
    pub(super) fn share<I: Send, W>(
        &self,
        items: impl ExactSizeIterator<Item = I> + DoubleEndedIterator + Send,
        init: fn() -> W,
        task: &(dyn Fn(&mut W, I) + Sync),
    ) {
        let mut state = init();
        items.for_each(|item| task(&mut state, item));
    }
}

/// Runs on the calling thread.
pub(crate) fn run_on_pool<R: Send>(
    cx: &ExecContext<'_>,
    run: impl FnOnce(&ExecContext<'_>) -> Result<R, EvalError> + Send,
) -> Result<R, EvalError> {
    debug_assert!(!cx.on_pool, "without a pool, no run occupies it");
    run(cx)
}
