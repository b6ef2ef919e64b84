//! Interpreter shutdown and forks while other threads use Python.
//!
//! A thread that the interpreter does not wait for (a daemon thread, or a thread of nxla) is ended
//! when it acquires the interpreter lock after shutdown has started. It may acquire the lock
//! wherever the crate calls Python: in user functions, attributes and iterators of user objects,
//! and finalizers that an allocation triggers. Before Python 3.14, with glibc, the interpreter ends
//! a thread by unwinding its frames. Rust frames do not allow this, so the process aborted. Threads
//! therefore stop themselves:
//!
//! * [`wait_until_idle`] records the start of the shutdown. From then on, threads that start or
//!   finish long work sleep forever ([`gate`]), and programs that call a Python function fail
//!   ([`inside`]).
//! * The shutdown waits for running functions up to a time limit.
//! * A thread that is ended after that sleeps before the first frame is unwound, in a handler that
//!   the thread has registered with the C library ([`prepare`]).
//!
//! A sleeping thread does not hold the interpreter lock, and ends with the process.
#![allow(unsafe_code, reason = "only the C library knows when it ends a thread")]

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use nxla_runtime::pjrt::wait_until_all_idle_for;
use nxla_runtime::{abandon_streams, wait_until_streams_end};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// The thread that ends the interpreter, once shutdown has started.
static ENDING: OnceLock<ThreadId> = OnceLock::new();

/// The number of threads that are inside [`inside`].
static INSIDE: AtomicUsize = AtomicUsize::new(0);

/// Returns whether another thread is ending the interpreter.
pub(crate) fn is_over() -> bool {
    ENDING.get().is_some_and(|&ending| ending != thread::current().id())
}

fn sleep_for_ever() -> ! {
    loop {
        thread::park();
    }
}

/// Must be called without the interpreter lock, before acquiring it or starting work. Does not
/// return if the interpreter is ending.
pub(crate) fn gate() {
    if is_over() {
        sleep_for_ever();
    }
}

/// Counts a thread that uses the interpreter.
struct Inside;

impl Inside {
    fn enter() -> Inside {
        INSIDE.fetch_add(1, Ordering::AcqRel);
        Inside
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        // A forked process resets the count, see `after_fork_in_child`.
        let less = |inside: usize| inside.checked_sub(1);
        let _ = INSIDE.fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
    }
}

/// Acquires the interpreter on a thread that may not belong to nxla.
pub(crate) fn inside<T>(work: impl FnOnce(Python<'_>) -> PyResult<T>) -> PyResult<T> {
    let _inside = Inside::enter();
    if is_over() {
        return Err(PyRuntimeError::new_err("the Python interpreter is shutting down"));
    }
    attach(work)
}

/// Acquires the interpreter on a thread that sleeps if the interpreter ends it.
pub(crate) fn attach<T>(work: impl FnOnce(Python<'_>) -> T) -> T {
    prepare();
    Python::attach(work)
}

/// Waits without the interpreter lock, up to a time limit, until no other thread uses the
/// interpreter.
fn wait_until_outside(time: Duration) -> bool {
    let begun = Instant::now();
    while INSIDE.load(Ordering::Acquire) > 0 {
        if begun.elapsed() >= time {
            return false;
        }
        thread::sleep(Duration::from_millis(1));
    }
    true
}

/// The time limit of the wait for programs and functions at the end of the interpreter.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);

/// Ends all streams, and waits until no program runs on a device or calls a function. The threads of
/// streams may need the interpreter, and XLA must not run when the process ends. The wait ends after
/// [`EXIT_TIMEOUT`], because a program may loop forever, and on Ctrl-C. Afterwards only the calling
/// thread can run programs.
#[pyfunction]
fn wait_until_idle(py: Python<'_>) -> PyResult<()> {
    const STEP: Duration = Duration::from_millis(50);
    let begun = Instant::now();
    ENDING.get_or_init(|| thread::current().id());
    py.detach(abandon_streams);
    while begun.elapsed() < EXIT_TIMEOUT {
        let idle = || {
            wait_until_streams_end(STEP)
                && wait_until_all_idle_for(STEP)
                && wait_until_outside(STEP)
        };
        if py.detach(idle) {
            break;
        }
        py.check_signals()?;
    }
    Ok(())
}

/// Makes forks of the process wait until no other thread holds a lock of shared state.
#[pyfunction]
fn delay_forks() {
    nxla_runtime::delay_forks();
}

/// Resets the state in a child process after a fork, which has only the calling thread.
#[pyfunction]
fn after_fork_in_child() {
    INSIDE.store(0, Ordering::Release);
    nxla_runtime::after_fork_in_child();
}

/// Makes the calling thread sleep where the interpreter would end it. One call is enough for the
/// lifetime of a thread. Every function that lets Python run for long starts with it.
#[inline]
pub(crate) fn prepare() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    handler::leave();
}

/// The cleanup handler of a thread, which glibc calls as soon as the thread is ended.
///
/// A guard in a Rust frame would run too late, after all inner frames, or not at all: the compiler
/// omits it if a called function is declared not to unwind, as in PyO3. This handler is on the
/// heap. glibc compares the address of a handler with the unwound frames, and runs a handler with
/// an address outside the stack at the first step (`nptl/unwind.c`).
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod handler {
    use std::ffi::{c_int, c_void};
    use std::ptr;

    use super::{is_over, sleep_for_ever};

    type Routine = unsafe extern "C" fn(*mut c_void);

    /// `struct _pthread_cleanup_buffer` of `<pthread.h>`.
    #[repr(C)]
    struct Buffer {
        routine: Option<Routine>,
        argument: *mut c_void,
        cancel_type: c_int,
        previous: *mut Buffer,
    }

    // SAFETY: glibc declares the functions with these types. All of its versions define them, for
    // programs that were compiled before `pthread_cleanup_push` was a macro.
    unsafe extern "C" {
        fn _pthread_cleanup_push(buffer: *mut Buffer, routine: Routine, argument: *mut c_void);
        fn _pthread_cleanup_pop(buffer: *mut Buffer, execute: c_int);
    }

    /// The handler of this thread, which is removed when the thread ends normally.
    struct Handler(*mut Buffer);

    thread_local! {
        static HANDLER: Handler = Handler::push();
    }

    /// Installs a handler if the thread has none.
    #[inline]
    pub(super) fn leave() {
        // A thread that is ending needs no new handler.
        let _ = HANDLER.try_with(|_| ());
    }

    impl Handler {
        #[cold]
        fn push() -> Self {
            let buffer = Box::into_raw(Box::new(Buffer {
                routine: None,
                argument: ptr::null_mut(),
                cancel_type: 0,
                previous: ptr::null_mut(),
            }));
            // SAFETY: the buffer stays where it is until it is popped.
            unsafe { _pthread_cleanup_push(buffer, ended, ptr::null_mut()) };
            Self(buffer)
        }
    }

    impl Drop for Handler {
        fn drop(&mut self) {
            // SAFETY: this thread pushed the buffer, and no live frame of the thread has pushed another
            // one since. The buffer came from a box.
            unsafe {
                _pthread_cleanup_pop(self.0, 0);
                drop(Box::from_raw(self.0));
            }
        }
    }

    /// Runs on a thread that is being ended. Other code, such as `pthread_cancel`, may also end a
    /// thread.
    unsafe extern "C" fn ended(_argument: *mut c_void) {
        if is_over() {
            sleep_for_ever();
        }
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(wait_until_idle, module)?)?;
    module.add_function(wrap_pyfunction!(delay_forks, module)?)?;
    module.add_function(wrap_pyfunction!(after_fork_in_child, module)?)
}
