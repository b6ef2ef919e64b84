//! Forks of the process.
//!
//! A child process has a copy of the memory, and only the thread that forked. A lock that another
//! thread held during the fork stays locked forever in the child, and its data may be inconsistent.
//! Therefore data that all threads share is [`Shared`]: a fork waits until no thread uses it. The
//! critical sections are short and do not call functions of users. Locks of one call or one trace do
//! not need this, because the child never continues the call of another thread.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

#[cfg(feature = "xla")]
pub use handlers::delay_forks;

/// Threads hold the read lock while they use shared state; the forking thread holds the write lock.
static FORKING: RwLock<()> = RwLock::new(());

/// Handlers of forks. The crate that registers them with the C library comes with the feature `xla`.
#[cfg(feature = "xla")]
mod handlers {
    use std::cell::RefCell;
    use std::sync::{Once, RwLockWriteGuard, TryLockError};
    use std::time::{Duration, Instant};

    use super::FORKING;

    thread_local! {
        static GUARD: RefCell<Option<RwLockWriteGuard<'static, ()>>> = const { RefCell::new(None) };
    }

    /// The longest wait of a fork for other threads. Sections take microseconds; a thread that forks
    /// inside of one would wait for itself.
    const MAX_FORK_WAIT: Duration = Duration::from_secs(2);

    /// Makes forks wait for the users of shared data from now on.
    ///
    /// The C library takes the lock at the fork itself. A handler of Python would take it too early: before it forks,
    /// Python waits for its import lock, and other threads run meanwhile. A thread that holds the import lock and
    /// waits for the end of the fork would then wait forever.
    pub fn delay_forks() {
        static DELAYED: Once = Once::new();
        DELAYED.call_once(|| nxla_pjrt::call_around_forks(before_fork, after_fork));
    }

    pub(super) extern "C" fn before_fork() {
        let until = Instant::now() + MAX_FORK_WAIT;
        let writing = loop {
            // No writer queues, so a reader can take a second lock.
            match FORKING.try_write() {
                Ok(writing) => break writing,
                Err(TryLockError::Poisoned(poisoned)) => break poisoned.into_inner(),
                Err(TryLockError::WouldBlock) if Instant::now() >= until => return,
                Err(TryLockError::WouldBlock) => std::thread::yield_now(),
            }
        };
        // While a thread ends, it has no local data.
        let _ = GUARD.try_with(|guard| guard.replace(Some(writing)));
    }

    /// Runs on the thread that has forked, in the parent process and in the child process.
    pub(super) extern "C" fn after_fork() {
        let _ = GUARD.try_with(RefCell::take);
    }
}

/// A guard that delays forks, for locks that calls take often and sometimes without the interpreter
/// lock, which the forking thread holds.
pub(crate) struct NoFork(#[expect(dead_code, reason = "it is held")] RwLockReadGuard<'static, ()>);

/// Waits for the end of a fork, and delays the next one.
pub(crate) fn no_fork() -> NoFork {
    NoFork(FORKING.read().unwrap_or_else(PoisonError::into_inner))
}

/// Something that all threads share, behind a lock that no fork finds locked.
#[derive(Default, Debug)]
pub(crate) struct Shared<T>(Mutex<T>);

/// Exclusive access to shared data.
pub(crate) struct SharedGuard<'a, T> {
    value: MutexGuard<'a, T>,
    _no_fork: NoFork,
}

impl<T> Shared<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Locks the data, and ignores a panic of an earlier holder of the lock.
    pub(crate) fn lock(&self) -> SharedGuard<'_, T> {
        let no_fork = no_fork();
        let value = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        SharedGuard { value, _no_fork: no_fork }
    }
}

impl<T> Deref for SharedGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for SharedGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

#[cfg(all(test, feature = "xla"))]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use super::handlers::{after_fork, before_fork};
    use super::*;

    #[test]
    fn forks_wait_for_users_of_shared_data() {
        let shared = Arc::new(Shared::new(0));
        let forked = Arc::new(AtomicBool::new(false));
        let (mut first, second) = (shared.lock(), Arc::new(Shared::new(0)));
        let forking = std::thread::spawn({
            let forked = forked.clone();
            move || {
                before_fork();
                forked.store(true, Ordering::SeqCst);
                after_fork();
            }
        });
        for _ in 0..50 {
            // A thread that holds one lock can take another.
            *second.lock() += 1;
            std::thread::yield_now();
        }
        assert!(!forked.load(Ordering::SeqCst));
        *first += 1;
        drop(first);
        forking.join().unwrap();
        assert!(forked.load(Ordering::SeqCst));
        assert_eq!((*shared.lock(), *second.lock()), (1, 50));
    }

    #[test]
    fn shared_data_is_unused_during_a_fork() {
        let shared = Arc::new(Shared::new(0));
        before_fork();
        let waiting = std::thread::spawn({
            let shared = shared.clone();
            move || *shared.lock() += 1
        });
        std::thread::sleep(Duration::from_millis(20));
        assert!(!waiting.is_finished());
        after_fork();
        waiting.join().unwrap();
        assert_eq!(*shared.lock(), 1);
    }
}
