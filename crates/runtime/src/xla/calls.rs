//! The queue of calls from a running program to the host thread that executes them.
//!
//! A thread of the program pushes calls, and waits for room or for the reply of a call. The thread
//! that serves the run pops them until the program is over or the run is stopped.

use std::collections::VecDeque;
use std::sync::PoisonError;
use std::time::Duration;

use crate::background::{ASK_EVERY, Interrupt, interruption};
use crate::error::Result;
use crate::sync::{Condvar, Mutex, MutexGuard};

/// The longest wait of a program for room. The limit breaks a deadlock: a hook may wait for another
/// thread, which waits for the device.
const MAX_ROOM_WAIT: Duration = Duration::from_secs(1);

/// The limit of waiting calls.
#[derive(Clone, Copy)]
pub(crate) struct Room {
    pub(crate) calls: usize,
    /// Bytes of values, unless a single call has more.
    pub(crate) bytes: usize,
}

/// The calls `C` of a program on another thread, the result of its start (`T`), its error (`E`),
/// and the values it needs after the caller has left (`L`).
pub(super) struct Calls<C, T, E, L> {
    state: Mutex<State<C, T, E, L>>,
    room: Room,
    /// Something for the caller to do.
    call_arrived: Condvar,
    /// Room for another call.
    room_available: Condvar,
}

struct State<C, T, E, L> {
    calls: VecDeque<(C, usize)>,
    bytes: usize,
    /// The number of programs that the hooks of this run wait for.
    nested: usize,
    /// The caller has left: calls are dropped.
    stopped: bool,
    /// The result of starting the program.
    results: Option<Result<T, E>>,
    /// The end of the program, after which it makes no calls.
    over: Option<Result<(), E>>,
    /// Values to drop when the program is over.
    kept_values: Option<L>,
}

impl<C, T, E, L> Calls<C, T, E, L> {
    pub(super) fn new(room: Room) -> Self {
        let state = State {
            calls: VecDeque::new(),
            bytes: 0,
            nested: 0,
            stopped: false,
            results: None,
            over: None,
            kept_values: None,
        };
        Self {
            state: Mutex::new(state),
            room,
            call_arrived: Condvar::new(),
            room_available: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<C, T, E, L>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // --- the side of the program ---

    /// Records the result of the start of the program.
    pub(super) fn record_start(&self, results: Result<T, E>) {
        let mut state = self.lock();
        if results.is_err() {
            state.over = Some(Ok(()));
            state.kept_values = None;
        }
        state.results = Some(results);
        self.call_arrived.notify_all();
    }

    /// Records the end of the program.
    pub(super) fn record_end(&self, outcome: Result<(), E>) {
        let mut state = self.lock();
        state.over = Some(outcome);
        state.kept_values = None;
        drop(state);
        self.call_arrived.notify_all();
    }

    /// Queues a call whose values have `bytes` bytes; waits for room.
    ///
    /// # Errors
    /// Returns an error if the run was stopped.
    pub(super) fn push(&self, call: C, bytes: usize) -> Result<(), String> {
        let Room { calls: most, bytes: most_bytes } = self.room;
        let is_full = |state: &State<C, T, E, L>| {
            let crowded = state.calls.len() >= most || state.bytes + bytes > most_bytes;
            crowded && !state.calls.is_empty() && state.nested == 0 && !state.stopped
        };
        let mut state = self.lock();
        while is_full(&state) {
            let waited = self.room_available.wait_timeout(state, MAX_ROOM_WAIT);
            let (guard, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            state = guard;
            if timeout.timed_out() {
                break;
            }
        }
        if state.stopped {
            // The program is stopping after an error. Later hooks are not called, as in program
            // order.
            return Err("an earlier hook has failed".into());
        }
        state.bytes += bytes;
        state.calls.push_back((call, bytes));
        self.call_arrived.notify_all();
        Ok(())
    }

    // --- the side of the thread that serves the run ---

    /// The next call; `None` when the program is over.
    ///
    /// # Errors
    /// Returns an error if the caller was interrupted.
    pub(super) fn next(&self, interrupt: Option<&Interrupt<'_>>) -> Result<Option<C>> {
        let mut state = self.lock();
        loop {
            if let Some((call, bytes)) = state.calls.pop_front() {
                state.bytes -= bytes;
                self.room_available.notify_all();
                return Ok(Some(call));
            }
            if state.results.is_some() && state.over.is_some() {
                return Ok(None);
            }
            let Some(interrupt) = interrupt else {
                state = self.call_arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let waited = self.call_arrived.wait_timeout(state, ASK_EVERY);
            let (guard, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            state = guard;
            if timeout.timed_out() {
                // `interrupt` may run the user's signal handlers, so the lock must not be held.
                drop(state);
                if interrupt() {
                    return Err(interruption());
                }
                state = self.lock();
            }
        }
    }

    /// Stops the run: waiting calls are dropped, and later calls are rejected.
    pub(super) fn stop(&self) {
        let mut state = self.lock();
        state.stopped = true;
        let dropped = std::mem::take(&mut state.calls);
        state.bytes = 0;
        drop(state);
        self.room_available.notify_all();
        drop(dropped);
    }

    /// The results of the start and of the end of a program that is over. They are returned once.
    pub(super) fn outcome(&self) -> Option<(Result<T, E>, Result<(), E>)> {
        let mut state = self.lock();
        state.results.take().zip(state.over.take())
    }

    /// Keeps something until the program is over, unless it is.
    pub(super) fn keep_until_end(&self, make: impl FnOnce() -> L) {
        let mut state = self.lock();
        if state.over.is_none() && state.kept_values.is_none() {
            state.kept_values = Some(make());
        }
    }

    /// Records that a hook of this run runs a program: until it is over, calls do not wait for
    /// room.
    pub(super) fn begin_nested(&self) {
        self.lock().nested += 1;
        self.room_available.notify_all();
    }

    /// Notes that such a program is over.
    pub(super) fn end_nested(&self) {
        self.lock().nested -= 1;
    }

    /// Returns the number of calls that wait for an answer.
    #[cfg(test)]
    pub(super) fn pending_calls(&self) -> usize {
        self.lock().calls.len()
    }
}

/// The reply to a call, for the thread of the program that waits for it.
pub(super) struct Reply<T> {
    state: Mutex<ReplyState<T>>,
    answer_set: Condvar,
}

enum ReplyState<T> {
    Awaited,
    Set(T),
    /// The function has failed, or the run was stopped.
    Missing,
}

impl<T> Reply<T> {
    pub(super) fn new() -> Self {
        Self { state: Mutex::new(ReplyState::Awaited), answer_set: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, ReplyState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the answer, or `None` for a missing answer, unless it is set already.
    pub(super) fn set_reply(&self, answer: Option<T>) {
        let mut state = self.lock();
        if matches!(*state, ReplyState::Awaited) {
            *state = answer.map_or(ReplyState::Missing, ReplyState::Set);
        }
        self.answer_set.notify_all();
    }

    /// Waits for the answer, which is returned once; `None` for a missing answer.
    pub(super) fn take(&self) -> Option<T> {
        let mut state = self.lock();
        loop {
            match std::mem::replace(&mut *state, ReplyState::Missing) {
                ReplyState::Set(answer) => return Some(answer),
                ReplyState::Missing => return None,
                ReplyState::Awaited => *state = ReplyState::Awaited,
            }
            state = self.answer_set.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
