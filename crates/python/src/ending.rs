//! The end of the interpreter, while threads of Python are in the middle of something.
//!
//! A thread that is not waited for (a daemon, or one of ours) and that asks for the interpreter while
//! it ends is ended by it, on the spot. It may ask wherever Python runs, and that is wherever we call
//! it: functions of users, attributes and iterators of their objects, and what an allocation has the
//! garbage collector finalize. Before Python 3.14, with glibc, a thread is ended by unwinding all its
//! frames, and frames of Rust do not allow that, which ended the whole process with an abort. So
//! threads stop by themselves:
//!
//! * When the interpreter begins to end, [`begin`] says so. From then on, threads that are about to
//!   begin or to end something that takes long sleep for ever instead, see [`gate`], and programs
//!   that are about to call a function of Python fail, see [`inside`].
//! * Functions that programs are calling already are waited for, for a while.
//! * Who is ended after that sleeps before the first frame is unwound, in a handler that the thread
//!   has left with the C library, see [`prepare`].
//!
//! A thread that sleeps holds no lock of the interpreter, and ends with the process.
#![allow(unsafe_code, reason = "only the C library knows when it ends a thread")]

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// The thread that ends the interpreter, once it does.
static ENDING: OnceLock<ThreadId> = OnceLock::new();

/// How many threads are in the interpreter by [`inside`].
static INSIDE: AtomicUsize = AtomicUsize::new(0);

/// Whether the interpreter is being ended by another thread than this one.
pub(crate) fn is_over() -> bool {
    ENDING.get().is_some_and(|&ending| ending != thread::current().id())
}

fn sleep_for_ever() -> ! {
    loop {
        thread::park();
    }
}

/// To be called without the interpreter lock, before it is asked for or work is begun. Does not come
/// back where the interpreter ends.
pub(crate) fn gate() {
    if is_over() {
        sleep_for_ever();
    }
}

/// Counts a thread that is inside.
struct Inside;

impl Inside {
    fn enter() -> Inside {
        INSIDE.fetch_add(1, Ordering::AcqRel);
        Inside
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        // A process that was forked off begins to count anew, see `forget`.
        let less = |inside: usize| inside.checked_sub(1);
        let _ = INSIDE.fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
    }
}

/// Enters the interpreter from a thread that may be anybody's.
pub(crate) fn inside<T>(work: impl FnOnce(Python<'_>) -> PyResult<T>) -> PyResult<T> {
    let _inside = Inside::enter();
    if is_over() {
        return Err(PyRuntimeError::new_err("the interpreter is ending"));
    }
    attach(work)
}

/// Enters the interpreter from a thread that sleeps should it be ended there.
pub(crate) fn attach<T>(work: impl FnOnce(Python<'_>) -> T) -> T {
    prepare();
    Python::attach(work)
}

/// Forgets the threads that a forked process does not have.
pub(crate) fn forget() {
    INSIDE.store(0, Ordering::Release);
}

/// Says that the interpreter ends, by this thread.
pub(crate) fn begin() {
    ENDING.get_or_init(|| thread::current().id());
}

/// Waits, without the interpreter lock, until no other thread is inside, for so long at most.
pub(crate) fn wait_until_outside(time: Duration) -> bool {
    let begun = Instant::now();
    while INSIDE.load(Ordering::Acquire) > 0 {
        if begun.elapsed() >= time {
            return false;
        }
        thread::sleep(Duration::from_millis(1));
    }
    true
}

/// Has the calling thread sleep where the interpreter would end it. Once is enough for a thread, and
/// from then on it is so wherever the thread may be. Whatever lets Python run for long begins with it.
#[inline]
pub(crate) fn prepare() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    handler::leave();
}

/// The handler that a thread leaves with glibc, which calls it as soon as the thread is ended.
///
/// A guard in a frame of ours would come too late, after all frames above it, or not at all: the
/// compiler leaves it out where any declaration of the function that is called promises not to unwind,
/// as PyO3's do. This one is on the heap. Where the end of a thread has come to among the frames is
/// compared with the addresses of the handlers, and an address outside of the stack is passed at the
/// first step (`nptl/unwind.c`).
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

    // SAFETY: so they are declared in glibc. All versions have them, for programs that were compiled
    // before `pthread_cleanup_push` was a macro.
    unsafe extern "C" {
        fn _pthread_cleanup_push(buffer: *mut Buffer, routine: Routine, argument: *mut c_void);
        fn _pthread_cleanup_pop(buffer: *mut Buffer, execute: c_int);
    }

    /// A handler of this thread, until the thread has ended by itself.
    struct Handler(*mut Buffer);

    thread_local! {
        static HANDLER: Handler = Handler::push();
    }

    /// Leaves a handler, if the thread has not yet.
    #[inline]
    pub(super) fn leave() {
        // A thread that is about to be gone needs none any more.
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
            // SAFETY: this is the thread that pushed the buffer, none of whose frames is left that
            // could have pushed another one since; it came from a box.
            unsafe {
                _pthread_cleanup_pop(self.0, 0);
                drop(Box::from_raw(self.0));
            }
        }
    }

    /// Called on a thread that is being ended. Somebody else may end it, before the interpreter does.
    unsafe extern "C" fn ended(_argument: *mut c_void) {
        if is_over() {
            sleep_for_ever();
        }
    }
}
