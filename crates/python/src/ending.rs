//! The end of the interpreter, while threads of Python are in the middle of something.
//!
//! A thread that is not waited for (a daemon, or one of ours) and that asks for the interpreter while
//! it ends is ended by it, on the spot: before Python 3.14 by unwinding all its frames, and frames of
//! Rust do not allow that, which ended the whole process with an abort. So threads stop by themselves:
//!
//! * When the interpreter begins to end, [`begin`] says so. From then on, threads that are about to
//!   begin or to end something that takes long sleep for ever instead, see [`gate`], and programs
//!   that are about to call a function of Python fail, see [`inside`].
//! * Functions that programs are calling already are waited for, for a while.
//! * Who is still inside after that, and gets unwound, sleeps as soon as the unwinding comes to the
//!   call, which is [`call`]'s.
//!
//! A thread that sleeps holds no lock of the interpreter, and ends with the process.
#![allow(unsafe_code, reason = "only C can say that a call may unwind")]

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

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

// SAFETY: the declaration is that of the C interface, of which all versions have the function. That
// it may unwind is no promise which that interface makes, but what it does, see above.
unsafe extern "C-unwind" {
    fn PyObject_Call(
        callable: *mut ffi::PyObject,
        args: *mut ffi::PyObject,
        kwargs: *mut ffi::PyObject,
    ) -> *mut ffi::PyObject;
}

/// Sleeps for ever when it is dropped.
struct Sleep;

impl Drop for Sleep {
    fn drop(&mut self) {
        sleep_for_ever();
    }
}

/// Calls a function of Python that may take long, or call something else that does.
pub(crate) fn call<'py>(
    function: &Bound<'py, PyAny>,
    args: Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let kwargs = kwargs.map_or(std::ptr::null_mut(), Bound::as_ptr);
    // Dropped only by the unwinding with which the interpreter ends this thread.
    let unwound = Sleep;
    // SAFETY: function and arguments are alive, and the thread is in the interpreter.
    let result = unsafe { PyObject_Call(function.as_ptr(), args.as_ptr(), kwargs) };
    // Before the result is looked at: a panic that came as an exception goes on from there.
    std::mem::forget(unwound);
    // SAFETY: the result is ours, or null for an exception that is set.
    unsafe { Bound::from_owned_ptr_or_err(function.py(), result) }
}
