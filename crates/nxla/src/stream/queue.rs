//! Chunks on their way in and results on their way out, between those who send and receive and
//! the thread that computes.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;

use crate::tensor::Tensor;
use crate::{Error, Result};

/// The leaves of a chunk, a result or a state.
pub(super) type Parts = Vec<Tensor>;

/// What a stream's handles and its thread share.
#[derive(Default)]
pub(super) struct Queue {
    inner: Mutex<Inner>,
    changed: Condvar,
}

#[derive(Default)]
struct Inner {
    chunks: VecDeque<Parts>,
    results: VecDeque<Parts>,
    /// Chunks that have been sent and whose results have not been received.
    in_flight: usize,
    /// Nothing more is sent.
    closed: bool,
    /// Nobody waits for anything any more.
    cancelled: bool,
    /// How it ended: with the last state, or with the error of a step.
    outcome: Option<Result<Parts, Arc<Error>>>,
    /// The task that waits for a result, if one does.
    waiting: Option<Waker>,
}

impl Inner {
    /// Whether a result can be received, or none will ever be. With `until_closed` further chunks
    /// may be sent.
    fn is_settled(&self, until_closed: bool) -> bool {
        let can_come = self.in_flight > 0 || (until_closed && !self.closed);
        !self.results.is_empty() || self.outcome.is_some() || self.cancelled || !can_come
    }

    /// The next result, once that is settled.
    fn take(&mut self) -> Option<Result<Parts, Arc<Error>>> {
        let Some(result) = self.results.pop_front() else {
            // The results of the steps before the one that failed have been received by now.
            let in_flight = std::mem::take(&mut self.in_flight);
            return match &self.outcome {
                Some(Err(error)) if in_flight > 0 => Some(Err(error.clone())),
                _ => None,
            };
        };
        self.in_flight -= 1;
        Some(Ok(result))
    }
}

/// Why a chunk was not taken.
pub(super) enum Refused {
    Full(usize),
    Closed,
}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        Error::Usage(match refused {
            Refused::Full(capacity) => format!(
                "stream: {capacity} results have not been received, and the stream holds no \
                 more; receive before sending"
            ),
            Refused::Closed => "stream: it is done, nothing can be sent any more".into(),
        })
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'q>(
        &'q self,
        inner: MutexGuard<'q, Inner>,
        goes_on: impl FnMut(&mut Inner) -> bool,
    ) -> MutexGuard<'q, Inner> {
        self.changed.wait_while(inner, goes_on).unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells all who wait, threads and tasks, that something has changed.
    fn notify(&self) {
        self.changed.notify_all();
        let waiting = self.lock().waiting.take();
        if let Some(waiting) = waiting {
            waiting.wake();
        }
    }

    // --- the side of the user ---

    /// Hands over a chunk unless so many are in flight; `waits` says whether to wait for room.
    pub(super) fn send(&self, chunk: Parts, capacity: usize, waits: bool) -> Result<(), Refused> {
        let over = |inner: &Inner| inner.closed || inner.cancelled || inner.outcome.is_some();
        let mut inner = self.lock();
        if waits {
            inner = self.wait(inner, |inner| inner.in_flight >= capacity && !over(inner));
        }
        if over(&inner) {
            return Err(Refused::Closed);
        }
        if inner.in_flight >= capacity {
            return Err(Refused::Full(capacity));
        }
        inner.in_flight += 1;
        inner.chunks.push_back(chunk);
        drop(inner);
        self.notify();
        Ok(())
    }

    /// The next result, for which it waits; `None` when no chunk is in flight. With `until_closed`
    /// it waits for chunks as well, and gives `None` when there will be none.
    pub(super) fn receive(&self, until_closed: bool) -> Option<Result<Parts, Arc<Error>>> {
        let mut inner = self.wait(self.lock(), |inner| !inner.is_settled(until_closed));
        let result = inner.take();
        drop(inner);
        self.notify();
        result
    }

    /// The next result, for a task that is woken when it is worth asking again.
    pub(super) fn poll(&self, task: &mut Context<'_>) -> Poll<Option<Result<Parts, Arc<Error>>>> {
        let mut inner = self.lock();
        if !inner.is_settled(true) {
            inner.waiting = Some(task.waker().clone());
            return Poll::Pending;
        }
        let result = inner.take();
        drop(inner);
        self.notify();
        Poll::Ready(result)
    }

    /// Says that nothing more is sent.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.notify();
    }

    /// Ends the stream after the step under way; results are dropped.
    pub(super) fn cancel(&self) {
        let mut inner = self.lock();
        inner.cancelled = true;
        inner.chunks.clear();
        inner.results.clear();
        drop(inner);
        self.notify();
    }

    pub(super) fn in_flight(&self) -> usize {
        self.lock().in_flight
    }

    /// The error of a step, if one has failed.
    pub(super) fn failure(&self) -> Option<Arc<Error>> {
        self.lock().outcome.as_ref().and_then(|outcome| outcome.as_ref().err().cloned())
    }

    /// How the stream ended, for which it waits; `None` if it was cancelled.
    pub(super) fn outcome(&self) -> Option<Result<Parts, Arc<Error>>> {
        let inner = self.wait(self.lock(), |inner| inner.outcome.is_none() && !inner.cancelled);
        inner.outcome.clone()
    }

    // --- the side of the thread ---

    pub(super) fn is_cancelled(&self) -> bool {
        self.lock().cancelled
    }

    /// Computes chunk after chunk until there will be none, and notes how that ended.
    pub(super) fn work(
        &self,
        mut state: Parts,
        mut step: impl FnMut(Parts, Parts) -> Result<(Parts, Parts)>,
    ) {
        let _ending = Ending(self);
        loop {
            let mut inner = self.wait(self.lock(), |inner| {
                inner.chunks.is_empty() && !inner.closed && !inner.cancelled
            });
            let chunk = inner.chunks.pop_front();
            drop(inner);
            let Some(chunk) = chunk else { return self.end(Ok(state)) };
            match step(chunk, state) {
                Ok((result, next)) => {
                    state = next;
                    self.lock().results.push_back(result);
                    self.notify();
                }
                Err(error) => return self.end(Err(Arc::new(error))),
            }
        }
    }

    /// Notes how it ended.
    fn end(&self, outcome: Result<Parts, Arc<Error>>) {
        self.lock().outcome = Some(outcome);
        self.notify();
    }
}

/// Makes sure that nobody waits for a thread that has panicked.
struct Ending<'q>(&'q Queue);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            let why = "a step of a stream panicked".to_owned();
            self.0.end(Err(Arc::new(Error::Internal(why))));
        }
    }
}

/// Cancels the stream when dropped.
pub(super) struct Cancel(pub(super) Arc<Queue>);

impl Drop for Cancel {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Says when dropped that nothing more is sent.
pub(super) struct Close(pub(super) Arc<Queue>);

impl Drop for Close {
    fn drop(&mut self) {
        self.0.close();
    }
}
