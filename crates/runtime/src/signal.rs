//! An event that wakes a task.

use std::fmt;
use std::sync::PoisonError;
use std::task::{Context, Waker};

use crate::sync::Mutex;

/// An event that is set once, and the task to wake when it is set.
#[derive(Default)]
pub struct Signal(Mutex<State>);

impl fmt::Debug for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signal").finish_non_exhaustive()
    }
}

#[derive(Default)]
struct State {
    is_set: bool,
    task: Option<Waker>,
}

impl Signal {
    /// Sets the event and wakes the task.
    pub fn set(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_set = true;
        let task = state.task.take();
        drop(state);
        task.into_iter().for_each(Waker::wake);
    }

    /// Returns `true` if the event is set. Otherwise registers the task to wake, which replaces an
    /// earlier one.
    pub fn poll(&self, task: &Context<'_>) -> bool {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.is_set {
            state.task = Some(task.waker().clone());
        }
        state.is_set
    }
}
