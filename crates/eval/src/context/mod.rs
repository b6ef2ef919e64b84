//! The state of a run that kernels receive as one argument: hooks, cancellation, threads and scratch memory.
//!
//! An [`ExecContext`] is created per run and passed down to every kernel, so that no kernel consults a
//! thread-local to find out which run it serves.

mod args;
mod cancel;
mod error;
mod hooks;
mod limits;
mod memory;
#[cfg(not(feature = "parallel"))]
mod no_pool;
mod parallel;
#[cfg(feature = "parallel")]
mod pool;
mod value;

pub(crate) use args::{Arg, Args};
pub use cancel::Interrupt;
pub(crate) use cancel::{Cancel, CancelToken, run_cancellable};
pub(crate) use error::Stop;
pub use error::{EvalError, Fault, HookFailure, NotFinite};
pub use hooks::Hooks;
pub(crate) use memory::{
    LINE, ScratchGuard, catch_stop, collect_vec, fill, filled, is_available, require, resize,
};
#[cfg(not(feature = "parallel"))]
pub(crate) use no_pool::run_on_pool;
pub(crate) use parallel::may_split;
#[cfg(feature = "parallel")]
pub(crate) use pool::run_on_pool;
pub(crate) use value::{
    Results, build, build_bytes, bytes_mut, fresh, integer, integer_of, one, reshape, slice,
    slice_mut,
};

/// The state of a run besides its operands.
#[derive(Clone, Copy)]
pub(crate) struct ExecContext<'a> {
    /// The host functions of the caller.
    pub(crate) hooks: &'a Hooks,
    /// The source of a cancellation.
    pub(crate) cancel: Cancel<'a>,
    /// True if the run occupies the thread pool, whose other threads then poll for tasks.
    on_pool: bool,
    /// True inside of a task that must not be split any further.
    is_alone: bool,
}

/// The context as functions receive it.
pub(crate) type Cx<'a> = &'a ExecContext<'a>;

impl<'a> ExecContext<'a> {
    /// The context of a run on the thread of its caller.
    pub(crate) fn new(hooks: &'a Hooks, interrupt: Option<&'a Interrupt<'a>>) -> Self {
        let cancel = interrupt.map_or(Cancel::Never, Cancel::Poll);
        Self { hooks, cancel, on_pool: false, is_alone: false }
    }

    /// The same run under a token that another thread cancels.
    pub(crate) fn with_token(self, token: &'a CancelToken) -> Self {
        Self { cancel: Cancel::Token(token), ..self }
    }

    /// The same run on a thread of the pool.
    #[cfg(feature = "parallel")]
    fn on_pool(self) -> Self {
        Self { on_pool: true, ..self }
    }

    /// The same run without other threads, for the tasks of a step that is already split.
    pub(crate) fn alone(self) -> Self {
        Self { is_alone: true, ..self }
    }

    /// Returns an error if the run is cancelled. Called before each long step and in each iteration of a loop.
    #[inline]
    pub(crate) fn check(&self) -> Result<(), EvalError> {
        let is_cancelled = match self.cancel {
            Cancel::Never => false,
            Cancel::Poll(interrupted) => interrupted(),
            Cancel::Token(token) => token.is_cancelled(),
        };
        if is_cancelled { Err(EvalError::Interrupted) } else { Ok(()) }
    }

    /// Returns true if another thread has cancelled the run. Kernels may then leave their results unwritten.
    #[inline]
    pub(crate) fn is_cancelled(&self) -> bool {
        match self.cancel {
            // The callback may be slow, and only the executor knows when to call it.
            Cancel::Never | Cancel::Poll(_) => false,
            Cancel::Token(token) => token.is_cancelled(),
        }
    }

    /// Scratch memory, which returns to the free list of its thread when the guard is dropped.
    #[inline]
    pub(crate) fn scratch(&self) -> ScratchGuard {
        ScratchGuard::take()
    }
}
