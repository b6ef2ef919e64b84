//! Running programs, and the end of clients and processes.
//!
//! A client must not be destroyed, and a process must not run the destructors of a plugin's static
//! objects, while programs run: XLA crashes in both cases, although nobody is left who wants the
//! results. So programs that are not over when their start returns are counted, and who ends
//! something waits for the count to be zero.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// How long the end of a process is held up for running programs.
const EXIT_PATIENCE: Duration = Duration::from_secs(30);

/// How many programs of a client run.
#[derive(Default)]
pub(crate) struct Running {
    count: Mutex<usize>,
    idle: Condvar,
}

impl Running {
    fn lock(&self) -> MutexGuard<'_, usize> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a program until the result is dropped.
    pub(crate) fn begin(self: &Arc<Running>) -> RunningProgram {
        static BEGUN: AtomicU64 = AtomicU64::new(0);
        if (BEGUN.fetch_add(1, Ordering::Relaxed) + 1).is_power_of_two() {
            wait_at_exit();
        }
        *self.lock() += 1;
        RunningProgram(self.clone())
    }

    /// Blocks until no program runs, or the time is up.
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

/// A program that runs.
pub(crate) struct RunningProgram(Arc<Running>);

impl Drop for RunningProgram {
    fn drop(&mut self) {
        let mut count = self.0.lock();
        *count -= 1;
        if *count == 0 {
            self.0.idle.notify_all();
        }
    }
}

/// How many threads are in code that a plugin called.
static FOREIGN: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static IS_FOREIGN: Cell<bool> = const { Cell::new(false) };
}

/// Marks code that a plugin called, most often on a thread of its own. Such code must not wait for
/// programs, which may need that very thread.
pub(crate) struct ForeignThread {
    was_foreign: bool,
}

impl ForeignThread {
    pub(crate) fn enter() -> ForeignThread {
        FOREIGN.fetch_add(1, Ordering::AcqRel);
        ForeignThread { was_foreign: IS_FOREIGN.replace(true) }
    }

    pub(crate) fn is_current() -> bool {
        IS_FOREIGN.get()
    }
}

impl Drop for ForeignThread {
    fn drop(&mut self) {
        IS_FOREIGN.set(self.was_foreign);
        FOREIGN.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The counts of all clients that may have running programs.
static ALL: Mutex<Vec<Weak<Running>>> = Mutex::new(Vec::new());

/// Clients whose last handle was dropped on a foreign thread, and that are being closed.
static CLOSING: LazyLock<Arc<Running>> = LazyLock::new(|| {
    let closing = Arc::default();
    register(&closing);
    closing
});

/// Makes the process wait for the programs of a client when it ends.
pub(crate) fn register(running: &Arc<Running>) {
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|running| running.strong_count() > 0);
    all.push(Arc::downgrade(running));
}

/// Closes a client on a thread of its own. If there can be none, the client stays.
pub(crate) fn close_elsewhere(close: impl FnOnce() + Send + 'static) {
    let closing = CLOSING.begin();
    wait_at_exit();
    let _ = std::thread::Builder::new().spawn(move || {
        close();
        drop(closing);
    });
}

/// Has [`at_exit`] called when the process ends, before the functions that were registered so far.
///
/// Those include the destructors of the static objects that exist. Plugins make more while they
/// run, so this is repeated, ever more rarely.
fn wait_at_exit() {
    // If there is no room for another function, the process ends without waiting.
    let _ = atexit(at_exit);
}

// SAFETY: the declaration is that of the C standard; any function without arguments may be given.
unsafe extern "C" {
    safe fn atexit(function: extern "C" fn()) -> std::ffi::c_int;
}

extern "C" fn at_exit() {
    if ForeignThread::is_current() {
        return;
    }
    let deadline = Instant::now() + EXIT_PATIENCE;
    // A callback that is just returning may be about to drop the last handle of a client.
    while FOREIGN.load(Ordering::Acquire) > 0 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
    wait_for_all(Some(deadline));
}

/// Blocks until no program of any client of this process runs.
///
/// For embedders that end the process themselves: XLA can crash when the process ends while
/// programs run. Dropping the clients does the same; where handles are left, as at the end of an
/// interpreter, call this.
pub fn wait_until_all_idle() {
    wait_for_all(None);
}

/// Like [`wait_until_all_idle`], for a while; whether no program runs.
pub fn wait_until_all_idle_for(patience: Duration) -> bool {
    wait_for_all(Some(Instant::now() + patience));
    let all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    all.iter().filter_map(Weak::upgrade).all(|running| *running.lock() == 0)
}

fn wait_for_all(deadline: Option<Instant>) {
    let all = ALL.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for running in all.iter().filter_map(Weak::upgrade) {
        running.wait_until(deadline);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_ends_with_the_last_program_or_with_the_time() {
        let running = Arc::new(Running::default());
        running.wait_until(None);
        let (first, second) = (running.begin(), running.begin());
        drop(first);
        running.wait_until(Some(Instant::now() + Duration::from_millis(5)));
        assert_eq!(*running.lock(), 1);
        let waiting = std::thread::spawn({
            let running = running.clone();
            move || running.wait_until(None)
        });
        drop(second);
        waiting.join().unwrap();
        assert_eq!(*running.lock(), 0);
    }

    #[test]
    fn marks_nest() {
        let outer = ForeignThread::enter();
        drop(ForeignThread::enter());
        assert!(ForeignThread::is_current());
        drop(outer);
        assert!(!ForeignThread::is_current());
    }
}
