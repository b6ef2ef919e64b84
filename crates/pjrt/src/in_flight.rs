//! Running programs, and the end of clients and processes.
//!
//! A client must not be destroyed, and a process must not run the destructors of a plugin's static
//! objects, while programs run: XLA crashes in both cases. Therefore programs that run after their
//! start has returned are counted, and the end of a client or process waits until the count is zero. A
//! process that still runs, compiles or loads a program after the time limit, or still loads a plugin, ends
//! without these destructors. Other threads begin no call of a plugin from then on.

use std::cell::Cell;
use std::ffi::c_int;
#[cfg(target_os = "linux")]
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, Once, PoisonError, Weak};
use std::time::{Duration, Instant};

use crate::count::Count;
#[cfg(target_os = "linux")]
use crate::forked;

/// The time for which the end of a process waits for running programs. On Linux the wait only lets the
/// plugin finish; nothing depends on it.
const EXIT_TIMEOUT: Duration =
    if cfg!(target_os = "linux") { Duration::from_millis(300) } else { Duration::from_secs(30) };

/// The number of running programs of a client.
#[derive(Default)]
pub(crate) struct InFlight(Count);

impl InFlight {
    /// Counts a program until the result is dropped.
    pub(crate) fn begin(self: &Arc<InFlight>) -> ProgramInFlight {
        stop_at_exit();
        static BEGUN: AtomicU64 = AtomicU64::new(0);
        if (BEGUN.fetch_add(1, Ordering::Relaxed) + 1).is_power_of_two() {
            wait_at_exit();
        }
        wait_first_at_exit_of_this_thread();
        self.0.begin();
        ProgramInFlight(self.clone())
    }

    /// Blocks until no program runs, or the time is up.
    pub(crate) fn wait_until(&self, deadline: Option<Instant>) {
        self.0.wait_until(deadline);
    }
}

/// A program that runs.
pub(crate) struct ProgramInFlight(Arc<InFlight>);

impl Drop for ProgramInFlight {
    fn drop(&mut self) {
        self.0.0.end();
    }
}

/// The number of threads in long calls of a plugin.
static LONG_CALLS: AtomicUsize = AtomicUsize::new(0);

/// A call that can take long and cannot be cancelled: loading a plugin, making a client, compiling, and
/// loading a program.
pub(crate) struct LongCall(());

impl LongCall {
    pub(crate) fn begin() -> LongCall {
        stop_at_exit();
        // The call is counted before the plugin function checks for the end of the process again. So either
        // the call sees the end, or the end sees the call.
        LONG_CALLS.fetch_add(1, Ordering::SeqCst);
        wait_at_exit_once();
        wait_first_at_exit_of_this_thread();
        LongCall(())
    }
}

impl Drop for LongCall {
    fn drop(&mut self) {
        LONG_CALLS.fetch_sub(1, Ordering::AcqRel);
    }
}

/// True from the time at which the process waits for its programs in order to end.
static IS_ENDING: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// True on the thread that loaded this library, which is usually the one that ends the process.
    static IS_MAIN: Cell<bool> = const { Cell::new(false) };
    /// True on the thread that ends the process.
    static ENDS_PROCESS: Cell<bool> = const { Cell::new(false) };
}

/// Stops the thread for good if another thread is ending the process, which destroys the objects that a call of a
/// plugin would use. Threads of a plugin go on, because the plugin may wait for them.
#[inline]
pub(crate) fn stop_at_exit() {
    if IS_ENDING.load(Ordering::SeqCst) && !ENDS_PROCESS.get() && !ForeignThread::is_current() {
        loop {
            std::thread::park();
        }
    }
}

/// The number of threads in code that a plugin called.
static FOREIGN: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static IS_FOREIGN: Cell<bool> = const { Cell::new(false) };
}

/// Marks code that a plugin called, usually on one of its threads. Such code must not wait for
/// programs, which may need that thread.
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
static ALL: Mutex<Vec<Weak<InFlight>>> = Mutex::new(Vec::new());

/// Clients whose last handle was dropped on a foreign thread, and that are being closed.
static CLOSING: LazyLock<Arc<InFlight>> = LazyLock::new(|| {
    let closing = Arc::default();
    register(&closing);
    closing
});

/// Makes the process wait for the programs of a client when it ends.
pub(crate) fn register(running: &Arc<InFlight>) {
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|running| running.strong_count() > 0);
    all.push(Arc::downgrade(running));
}

/// Closes a client on a new thread. If no thread can be started, the client is leaked.
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
/// Those functions include the destructors of the static objects that exist. Plugins create more static
/// objects while they run, so [`InFlight::begin`] repeats the registration after 1, 2, 4, 8... runs.
fn wait_at_exit() {
    // If the registration fails, the process ends without waiting.
    #[cfg(target_os = "linux")]
    let _ = on_exit(at_exit_with, std::ptr::null_mut());
    #[cfg(not(target_os = "linux"))]
    let _ = atexit(at_exit);
}

/// Done with the first call of [`wait_at_exit_once`].
static WAITS: Once = Once::new();

/// Calls [`wait_at_exit`] unless it has been called before.
fn wait_at_exit_once() {
    WAITS.call_once(wait_at_exit);
}

/// Registers [`at_exit`] once more when the thread ends: always on the main thread, and on others, which can be many,
/// if a plugin is working then.
struct RegisterAtEnd;

impl Drop for RegisterAtEnd {
    fn drop(&mut self) {
        if (IS_MAIN.get() && WAITS.is_completed()) || is_working() {
            wait_at_exit();
        }
    }
}

/// Makes the process wait before it runs any other exit function if this thread ends the process.
///
/// A plugin makes static objects while it is loaded and during its first runs, after those were counted, and
/// the process destroys the newest objects first. The end of a process begins with the thread-local variables
/// of the thread that ends it, so a registration from there is the newest.
fn wait_first_at_exit_of_this_thread() {
    thread_local!(static GUARD: RegisterAtEnd = const { RegisterAtEnd });
    // A thread that is ending has no such variables any more.
    let _ = GUARD.try_with(|_| ());
}

/// Does the same for the main thread, which ends most processes but may call no function of this crate. The
/// dynamic linker calls the functions of this section before the main function of a program, and when it loads
/// a library.
#[cfg(target_os = "linux")]
#[used]
// SAFETY: the section contains pointers to functions without results. The linker passes arguments, which the
// function may ignore in the calling convention of C.
#[unsafe(link_section = ".init_array")]
static WAIT_FIRST_AT_EXIT_OF_MAIN_THREAD: extern "C" fn() = {
    extern "C" fn wait() {
        IS_MAIN.set(true);
        wait_first_at_exit_of_this_thread();
    }
    wait
};

/// Returns true while a plugin runs programs or is in a long call.
fn is_working() -> bool {
    LONG_CALLS.load(Ordering::SeqCst) > 0 || !is_idle()
}

// SAFETY: these are the declarations in the C standard and in the C library of Linux. Any function
// without arguments may be passed; the pointer is passed on and not read.
unsafe extern "C" {
    #[cfg(not(target_os = "linux"))]
    safe fn atexit(function: extern "C" fn()) -> c_int;
    #[cfg(target_os = "linux")]
    safe fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
    #[cfg(target_os = "linux")]
    safe fn _exit(status: c_int) -> !;
    #[cfg(target_os = "linux")]
    fn fflush(stream: *mut c_void) -> c_int;
}

/// Ends the process immediately with its exit status if a plugin is still working, because the
/// destructors of static objects, which would run next, would crash.
#[cfg(target_os = "linux")]
extern "C" fn at_exit_with(status: c_int, _: *mut c_void) {
    if !forked::is_child() {
        at_exit();
    }
    if (forked::is_child() || is_working()) && !ForeignThread::is_current() {
        // SAFETY: null means all streams.
        unsafe { fflush(std::ptr::null_mut()) };
        _exit(status);
    }
}

extern "C" fn at_exit() {
    if ForeignThread::is_current() {
        return;
    }
    ENDS_PROCESS.set(true);
    IS_ENDING.store(true, Ordering::SeqCst);
    let deadline = Instant::now() + EXIT_TIMEOUT;
    // A callback that is about to return may drop the last handle of a client.
    while FOREIGN.load(Ordering::Acquire) > 0 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
    wait_for_all(Some(deadline));
    #[cfg(target_os = "linux")]
    wait_until_others_sleep(deadline);
}

/// Waits until no other thread of the process runs, up to a deadline.
///
/// A thread of a plugin reports the end of a program before it drops its reference to the executable. If
/// it is the last reference, the thread destroys the executable, which uses static objects of the plugin.
#[cfg(target_os = "linux")]
fn wait_until_others_sleep(deadline: Instant) {
    while is_other_thread_running() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Returns true if another thread of the process runs or waits for a processor, as `/proc` reports.
#[cfg(target_os = "linux")]
fn is_other_thread_running() -> bool {
    let own = std::fs::read_link("/proc/thread-self");
    let own = own.as_ref().ok().and_then(|path| path.file_name());
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return false };
    threads.flatten().filter(|thread| Some(&*thread.file_name()) != own).any(|thread| {
        // The state follows the name of the thread, which is in parentheses.
        let state = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        state.rsplit_once(')').is_some_and(|(_, rest)| rest.starts_with(" R"))
    })
}

/// Blocks until no program of any client of this process runs.
///
/// For embedders that end the process themselves: XLA can crash when the process ends while
/// programs run. Dropping the clients does the same; where handles are left, as at the end of an
/// interpreter, call this.
pub fn wait_until_all_idle() {
    wait_for_all(None);
}

/// Does the same as [`wait_until_all_idle`] with a time limit. Returns `true` if no program runs.
pub fn wait_until_all_idle_for(patience: Duration) -> bool {
    wait_first_at_exit_of_this_thread();
    wait_for_all(Some(Instant::now() + patience));
    is_idle()
}

fn is_idle() -> bool {
    let all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    all.iter().filter_map(Weak::upgrade).all(|running| running.0.get() == 0)
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
    fn wait_ends_with_the_last_program_or_timeout() {
        let running = Arc::new(InFlight::default());
        running.wait_until(None);
        let (first, second) = (running.begin(), running.begin());
        drop(first);
        running.wait_until(Some(Instant::now() + Duration::from_millis(5)));
        assert_eq!(running.0.get(), 1);
        let waiting = std::thread::spawn({
            let running = running.clone();
            move || running.wait_until(None)
        });
        drop(second);
        waiting.join().unwrap();
        assert_eq!(running.0.get(), 0);
    }

    #[test]
    fn foreign_thread_marks_nest() {
        let outer = ForeignThread::enter();
        drop(ForeignThread::enter());
        assert!(ForeignThread::is_current());
        drop(outer);
        assert!(!ForeignThread::is_current());
    }
}
