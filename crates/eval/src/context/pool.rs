//! The thread pool of the process.
//!
//! * A process that was created by `fork` has none of the threads of its parent. The pool therefore stores
//!   its process, and a forked process creates another pool. The pool of the parent is never freed, because
//!   threads that do not exist cannot be joined.
//! * If no threads can be spawned, all work runs on the calling thread.
//! * Waking a thread takes longer than most steps. A large run therefore moves to a thread of the pool
//!   ([`run_on_pool`]), where sharing work is cheap, and the other threads poll for tasks for a while before
//!   they sleep. One run occupies the pool at a time. Other runs stay on their threads, so that no run waits
//!   for the end of another one.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, mpsc};
use std::time::{Duration, Instant};

use rayon::{ThreadPool, ThreadPoolBuilder, Yield};

use super::{Cancel, CancelToken, EvalError, ExecContext};

/// The threads of one process.
struct Pool {
    process: u32,
    threads: ThreadPool,
    /// True if a run occupies the pool.
    is_occupied: AtomicBool,
    /// The number of threads that poll for tasks.
    polling: AtomicUsize,
    /// True if threads were woken that do not poll yet.
    is_waking: AtomicBool,
    /// The pool of a forked process.
    next: OnceLock<Box<Pool>>,
}

/// The time for which an idle thread polls for tasks.
const POLL_TIME: Duration = Duration::from_micros(100);

static POOL: OnceLock<Box<Pool>> = OnceLock::new();

/// The pool of this process, or `None` if no threads can be spawned.
fn current() -> Option<&'static Pool> {
    let process = std::process::id();
    let mut cell = &POOL;
    loop {
        match cell.get() {
            Some(pool) if pool.process == process => return Some(pool),
            Some(pool) => cell = &pool.next,
            None => {
                let named = ThreadPoolBuilder::new().thread_name(|index| format!("nxla {index}"));
                let pool = Pool {
                    process,
                    // Worker threads need the stack size of the main thread, so that runs can nest
                    // equally deep.
                    threads: named.stack_size(8 << 20).build().ok()?,
                    is_occupied: AtomicBool::new(false),
                    polling: AtomicUsize::new(0),
                    is_waking: AtomicBool::new(false),
                    next: OnceLock::new(),
                };
                // The threads are spawned before the cell is set, so that a fork finds the cell
                // either empty or complete. If two threads create a pool at once, one of the pools
                // is dropped.
                let _ = cell.set(Box::new(pool));
            }
        }
    }
}

impl ExecContext<'_> {
    /// The number of threads.
    pub(crate) fn threads(&self) -> usize {
        current().map_or(1, Pool::count)
    }

    /// The pool if it has several threads, which begin to poll for tasks.
    fn pool(&self) -> Option<&'static Pool> {
        if self.is_alone {
            return None;
        }
        let pool = current().filter(|pool| pool.count() > 1)?;
        pool.wake(self);
        Some(pool)
    }

    /// Runs work whose calls of rayon use the threads of the pool.
    pub(crate) fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        match self.pool() {
            Some(pool) => pool.threads.install(work),
            None => work(),
        }
    }

    /// Runs a task for each item. Each thread initializes a state for its tasks.
    pub(super) fn share<I: Send, W>(
        &self,
        items: impl ExactSizeIterator<Item = I> + DoubleEndedIterator + Send,
        init: fn() -> W,
        task: &(dyn Fn(&mut W, I) + Sync),
    ) {
        match self.pool() {
            Some(pool) => pool.share(items, init, task),
            None => {
                let mut state = init();
                items.for_each(|item| task(&mut state, item));
            }
        }
    }
}

impl Pool {
    /// The number of threads.
    fn count(&self) -> usize {
        self.threads.current_num_threads()
    }

    /// Runs a task for each item. This thread takes items from the front, and other threads take
    /// items from the back, so that each thread processes the same items in the next call, and
    /// finds them in its cache. This thread begins without waiting for the other threads, which may
    /// be asleep. Each thread initializes a state for its tasks.
    fn share<I: Send, W>(
        &self,
        items: impl ExactSizeIterator<Item = I> + DoubleEndedIterator + Send,
        init: fn() -> W,
        task: &(dyn Fn(&mut W, I) + Sync),
    ) {
        let others = (self.count() - 1).min(items.len().saturating_sub(1));
        let items = Mutex::new(items);
        let items = || items.lock().expect("taking an item does not panic");
        let work = |next: &dyn Fn() -> Option<I>| {
            let mut state = init();
            while let Some(item) = next() {
                task(&mut state, item);
            }
        };
        self.run_with_others(others, &|| work(&|| items().next()), &|| {
            work(&|| items().next_back())
        });
    }

    /// Runs `front` on this thread, and `back` on up to `others` threads that begin before `front` ends.
    fn run_with_others(&self, others: usize, front: &(dyn Fn() + Sync), back: &(dyn Fn() + Sync)) {
        if self.threads.current_thread_index().is_some() {
            return join_all(others, front, back);
        }
        let (begun, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
        self.threads.in_place_scope(|scope| {
            for _ in 0..others {
                scope.spawn(|_| {
                    begun.fetch_add(1, Ordering::Relaxed);
                    back();
                    ended.fetch_add(1, Ordering::Relaxed);
                });
            }
            front();
            // Poll, because sleeping and waking usually takes longer than the remaining tasks.
            // Threads that have not begun will find no tasks; they may be waiting for the processor
            // of this thread, so the wait for them is shorter.
            let since = Instant::now();
            loop {
                let ended = ended.load(Ordering::Relaxed);
                let is_busy = ended < begun.load(Ordering::Relaxed);
                let wait = if is_busy { POLL_TIME } else { POLL_TIME / 10 };
                if ended == others || since.elapsed() >= wait {
                    break;
                }
                std::hint::spin_loop();
            }
        });
    }

    /// Makes the other threads poll for tasks if the run occupies the pool and they do not poll yet.
    #[inline]
    fn wake(&'static self, cx: &ExecContext<'_>) {
        if cx.on_pool
            && self.polling.load(Ordering::Relaxed) == 0
            && !self.is_waking.swap(true, Ordering::Relaxed)
        {
            let this = self.threads.current_thread_index();
            self.threads.spawn_broadcast(move |thread| {
                if Some(thread.index()) != this {
                    self.poll();
                }
            });
        }
    }

    /// Runs tasks until none has arrived for a while.
    fn poll(&self) {
        self.is_waking.store(false, Ordering::Relaxed);
        self.polling.fetch_add(1, Ordering::Relaxed);
        let mut last = Instant::now();
        while last.elapsed() < POLL_TIME {
            match rayon::yield_now() {
                Some(Yield::Executed) => last = Instant::now(),
                Some(Yield::Idle) => std::hint::spin_loop(),
                None => break,
            }
        }
        self.polling.fetch_sub(1, Ordering::Relaxed);
    }

    /// Occupies the pool until the guard is dropped. Returns `None` if another run occupies the pool, if there
    /// is one thread only, or if this thread belongs to the pool.
    fn occupy(&self) -> Option<PoolGuard<'_>> {
        let is_worker = self.threads.current_thread_index().is_some();
        if self.count() < 2 || is_worker || self.is_occupied.swap(true, Ordering::Acquire) {
            return None;
        }
        Some(PoolGuard(self))
    }
}

/// Runs `front` on this thread of the pool, and `back` on up to `others` threads that start in
/// time.
fn join_all(others: usize, front: &(dyn Fn() + Sync), back: &(dyn Fn() + Sync)) {
    match others.checked_sub(1) {
        Some(others) => {
            rayon::join(|| join_all(others, front, back), back);
        }
        None => front(),
    }
}

/// A guard of the run that occupies the pool.
struct PoolGuard<'a>(&'a Pool);

impl Drop for PoolGuard<'_> {
    fn drop(&mut self) {
        self.0.is_occupied.store(false, Ordering::Release);
    }
}

/// Moves a run to a thread of the pool, while this thread calls the callback. If another run occupies the
/// pool, the run stays on this thread.
pub(crate) fn run_on_pool<R: Send>(
    cx: &ExecContext<'_>,
    run: impl FnOnce(&ExecContext<'_>) -> Result<R, EvalError> + Send,
) -> Result<R, EvalError> {
    let Some((pool, _occupied)) = current().and_then(|pool| Some((pool, pool.occupy()?))) else {
        return run(cx);
    };
    let token = CancelToken::default();
    let (done, over) = mpsc::channel::<()>();
    let mut result = None;
    let interrupt = match cx.cancel {
        Cancel::Poll(interrupt) => Some(interrupt),
        Cancel::Never | Cancel::Token(_) => None,
    };
    pool.threads.in_place_scope(|scope| {
        let (result, token) = (&mut result, &token);
        scope.spawn(move |_| {
            let _done = done;
            *result = Some(run(&cx.on_pool().with_token(token)));
        });
        token.wait(&over, interrupt);
    });
    match result {
        Some(result) if !token.is_cancelled() => result,
        _ => Err(EvalError::Interrupted),
    }
}
