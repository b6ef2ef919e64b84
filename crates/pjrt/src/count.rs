//! A counter of running work, with a wait until the count is zero.

use std::sync::PoisonError;
use std::time::Instant;

use crate::sync::{Condvar, Mutex, MutexGuard};

/// A counter that can be awaited.
pub(crate) struct Count {
    count: Mutex<usize>,
    idle: Condvar,
}

impl Default for Count {
    fn default() -> Self {
        Self { count: Mutex::new(0), idle: Condvar::new() }
    }
}

impl Count {
    fn lock(&self) -> MutexGuard<'_, usize> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the count.
    pub(crate) fn get(&self) -> usize {
        *self.lock()
    }

    /// One more.
    pub(crate) fn begin(&self) {
        *self.lock() += 1;
    }

    /// One less.
    pub(crate) fn end(&self) {
        let mut count = self.lock();
        *count -= 1;
        if *count == 0 {
            self.idle.notify_all();
        }
    }

    /// Blocks until the count is zero or the deadline has passed.
    pub(crate) fn wait_until(&self, deadline: Option<Instant>) {
        let mut count = self.lock();
        while *count > 0 {
            let Some(deadline) = deadline else {
                count = self.idle.wait(count).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let Some(left) = deadline.checked_duration_since(Instant::now()) else {
                return;
            };
            count = self.idle.wait_timeout(count, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
