//! The queues of a stream: chunks that wait for their step, and results that wait for a receiver.
//!
//! Several threads may send and receive concurrently; each result is received once. The lock is never
//! held while user code may run, including drops of values.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crate::background::{ASK_EVERY, Interrupt, interruption};
use crate::device::{Device, common_device, join_devices};
use crate::error::{Error, Result};
use crate::sync::{Condvar, Mutex, MutexGuard};
use crate::tensor::RawTensor;

/// The leaves of a chunk, a result or a state.
pub type Parts = Vec<RawTensor>;

/// The outcome of a chunk: its result or an error.
pub type Outcome = Result<Parts, StreamError>;

/// A callback for the result of a chunk.
pub type Deferred = Box<dyn FnOnce(Outcome) + Send>;

/// The error of a stream.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The buffer is full.
    #[error("stream: the buffer is full with {0} results; receive results before sending")]
    Full(usize),
    /// The result is not there in time; it can be received later.
    #[error("stream: the result is not available yet")]
    NotYet,
    /// Everything that was sent has been received, and nothing more can be sent.
    #[error("stream: all results have been received")]
    Nothing,
    /// The stream was finished before all results were received.
    #[error("stream: {0} results have not been received")]
    Unreceived(usize),
    /// The stream has ended.
    #[error("stream: must not be used after done")]
    Done,
    /// The stream was cancelled, so it has no final state.
    #[error("stream: the stream was cancelled")]
    Cancelled,
    /// A step failed. The stream has ended, and every later call reports the error.
    #[error(transparent)]
    Failed(Arc<Error>),
}

/// The limit of chunks that a stream holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Capacity {
    /// At most this number of chunks sent whose results have not been received.
    InFlight(usize),
    /// At most this number of chunks whose step has not begun. Results are not counted.
    Waiting(usize),
}

/// The time limit and the interrupt of a wait.
#[derive(Clone, Copy, Default)]
pub struct Wait<'a> {
    /// The end of the wait; `None` waits without a limit.
    pub until: Option<Instant>,
    /// Polled some twenty times a second; `true` ends the wait.
    pub interrupt: Option<&'a Interrupt<'a>>,
}

impl fmt::Debug for Wait<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wait").field("until", &self.until).finish_non_exhaustive()
    }
}

impl<'a> Wait<'a> {
    /// Returns a wait that ends at once.
    pub fn never() -> Self {
        Self { until: Some(Instant::now()), interrupt: None }
    }

    /// Returns a wait with a time limit; `None` and times beyond the clock's range wait without a limit.
    pub fn at_most(time: Option<Duration>, interrupt: Option<&'a Interrupt<'a>>) -> Self {
        Self { until: time.and_then(|time| Instant::now().checked_add(time)), interrupt }
    }
}

/// A running stream, which [`Step::start`](crate::Step::start) returns. It ends by
/// [`finish`](RawStream::finish), [`close`](RawStream::close), [`cancel`](RawStream::cancel),
/// [`abandon`](RawStream::abandon), or a step that fails.
pub struct RawStream {
    inner: Mutex<Inner>,
    changed: Condvar,
    /// The chunks must be on the device of the state.
    follows_operands: bool,
}

impl fmt::Debug for RawStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawStream").finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Inner {
    /// Chunks whose step has not begun, with their numbers.
    chunks: VecDeque<(u64, Parts)>,
    /// The results that have not been received, in the order of the chunks; `None` for a result that
    /// is not computed yet.
    results: VecDeque<Option<Outcome>>,
    /// The number of the chunk whose result is received next.
    next: u64,
    /// Receivers of results that are not computed yet, by number of the result.
    deferred: BTreeMap<u64, Deferred>,
    /// The device of the state, set by the first chunk on a device.
    device: Option<Device>,
    /// True if no more chunks will be sent.
    closed: bool,
    /// Waiting chunks are dropped, and the stream has no last state.
    cancelled: bool,
    /// True if the handle was dropped, so that the current step can be interrupted.
    abandoned: bool,
    /// The result of the thread once it has ended: the last state, or the error of a step.
    ended: Option<Result<Parts, Arc<Error>>>,
    /// Tasks that wait for a change.
    tasks: Vec<Waker>,
}

/// Deferred receivers to notify after the lock is released.
type Notifications = Vec<(Deferred, Outcome)>;

impl Inner {
    /// Returns the reason why the stream has ended, if it has ended.
    fn end_reason(&self) -> Option<StreamError> {
        match &self.ended {
            _ if self.cancelled => Some(StreamError::Cancelled),
            Some(Err(error)) => Some(StreamError::Failed(error.clone())),
            Some(Ok(_)) | None => None,
        }
    }

    /// Returns `true` if the sender need not wait: the buffer has room, or the stream accepts no chunks.
    fn is_sender_ready(&self, capacity: Capacity) -> bool {
        self.closed || self.ended.is_some() || !self.is_full(capacity)
    }

    fn is_full(&self, capacity: Capacity) -> bool {
        match capacity {
            Capacity::InFlight(most) => self.results.len() >= most,
            Capacity::Waiting(most) => self.chunks.len() >= most,
        }
    }

    /// Returns `true` if the receiver need not wait: the next result is ready, or no result will follow.
    /// With `until_closed`, further chunks may be sent.
    fn is_receiver_ready(&self, until_closed: bool) -> bool {
        match self.results.front() {
            Some(result) => result.is_some(),
            None => !until_closed || self.closed || self.ended.is_some(),
        }
    }

    /// Removes the next available result.
    fn take(&mut self) -> Option<Outcome> {
        let result = self.results.pop_front().flatten()?;
        self.next += 1;
        Some(result)
    }

    /// Records the outcome of a chunk, unless the stream was abandoned.
    fn settle(
        &mut self,
        number: u64,
        outcome: Outcome,
        notifications: &mut Notifications,
    ) -> Option<Outcome> {
        if let Some(deferred) = self.deferred.remove(&number) {
            notifications.push((deferred, outcome));
            return None;
        }
        let index = number.checked_sub(self.next).and_then(|index| usize::try_from(index).ok());
        match index.and_then(|index| self.results.get_mut(index)) {
            Some(result) => result.replace(outcome),
            None => Some(outcome),
        }
    }
}

impl RawStream {
    /// A stream without a thread. With `follows_operands`, chunks join the state on its device.
    pub(super) fn new(device: Option<Device>, follows_operands: bool) -> Self {
        let inner = Inner { device, ..Inner::default() };
        Self { inner: Mutex::new(inner), changed: Condvar::new(), follows_operands }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `holds` returns `true`; returns `None` after the time limit.
    fn wait_until(
        &self,
        wait: &Wait<'_>,
        holds: impl Fn(&Inner) -> bool,
    ) -> Result<Option<MutexGuard<'_, Inner>>> {
        let mut inner = self.lock();
        while !holds(&inner) {
            let left = wait.until.map(|until| until.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Ok(None);
            }
            let most = wait.interrupt.map(|_| ASK_EVERY);
            let pause = left.into_iter().chain(most).min();
            inner = match pause {
                None => self.changed.wait(inner).unwrap_or_else(PoisonError::into_inner),
                Some(pause) => {
                    let waited = self.changed.wait_timeout(inner, pause);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
            if let Some(interrupt) = wait.interrupt {
                // `interrupt` may run the user's signal handlers, so the lock must not be held.
                drop(inner);
                if interrupt() {
                    return Err(interruption());
                }
                inner = self.lock();
            }
        }
        Ok(Some(inner))
    }

    /// Wakes all waiting threads after a change, and notifies deferred receivers.
    fn notify(&self, mut inner: MutexGuard<'_, Inner>, notifications: Notifications) {
        let tasks = std::mem::take(&mut inner.tasks);
        drop(inner);
        self.changed.notify_all();
        tasks.into_iter().for_each(Waker::wake);
        notifications.into_iter().for_each(|(deferred, outcome)| deferred(outcome));
    }

    /// Hands over a chunk; waits for room.
    ///
    /// # Errors
    /// Returns an error for a full buffer at the end of the time limit, a stream that has ended, or
    /// a chunk on another device than the state, unless the options select a device.
    pub fn send(&self, chunk: Parts, capacity: Capacity, wait: &Wait<'_>) -> Result<()> {
        let device = if self.follows_operands { common_device("stream", &chunk)? } else { None };
        let Some(mut inner) = self.wait_until(wait, |inner| inner.is_sender_ready(capacity))?
        else {
            let (Capacity::InFlight(most) | Capacity::Waiting(most)) = capacity;
            return Err(StreamError::Full(most).into());
        };
        if let Some(why) = inner.end_reason() {
            return Err(why.into());
        }
        if inner.closed {
            return Err(StreamError::Done.into());
        }
        inner.device = join_devices("stream", inner.device.as_ref(), device)?;
        let number = inner.next + inner.results.len() as u64;
        inner.chunks.push_back((number, chunk));
        inner.results.push_back(None);
        self.notify(inner, Notifications::new());
        Ok(())
    }

    /// The next result, in the order of the chunks, for which it waits; `None` when everything has
    /// been received. With `until_closed` it waits for chunks as well.
    ///
    /// # Errors
    /// Returns an error if the result is not available in time.
    pub fn receive(&self, until_closed: bool, wait: &Wait<'_>) -> Result<Option<Outcome>> {
        let settled = |inner: &Inner| inner.is_receiver_ready(until_closed);
        let Some(mut inner) = self.wait_until(wait, settled)? else {
            return Err(StreamError::NotYet.into());
        };
        let result = inner.take();
        self.notify(inner, Notifications::new());
        Ok(result)
    }

    /// Does the same as [`RawStream::receive`] without blocking. The task is woken when it should poll
    /// again.
    pub fn poll(&self, until_closed: bool, task: &mut Context<'_>) -> Poll<Option<Outcome>> {
        let mut inner = self.lock();
        if !inner.is_receiver_ready(until_closed) {
            if !inner.tasks.iter().any(|other| other.will_wake(task.waker())) {
                inner.tasks.push(task.waker().clone());
            }
            return Poll::Pending;
        }
        let result = inner.take();
        self.notify(inner, Notifications::new());
        Poll::Ready(result)
    }

    /// Receives the next result without waiting: `deferred` is called with it once it is ready, on
    /// the thread that learns of it first.
    ///
    /// # Errors
    /// Returns an error for a stream whose results have all been received.
    pub fn receive_deferred(&self, deferred: Deferred) -> Result<()> {
        let mut inner = self.lock();
        let Some(result) = inner.results.pop_front() else {
            return Err(StreamError::Nothing.into());
        };
        let number = inner.next;
        inner.next += 1;
        let mut notifications = Notifications::new();
        match result {
            Some(outcome) => notifications.push((deferred, outcome)),
            None => drop(inner.deferred.insert(number, deferred)),
        }
        self.notify(inner, notifications);
        Ok(())
    }

    /// The number of results that have not been received.
    pub fn in_flight(&self) -> usize {
        self.lock().results.len()
    }

    /// Drops the results that have not been received.
    pub fn forget_results(&self) {
        let mut inner = self.lock();
        inner.next += inner.results.len() as u64;
        let forgotten = std::mem::take(&mut inner.results);
        self.notify(inner, Notifications::new());
        drop(forgotten);
    }

    /// Closes the input of the stream.
    pub fn close(&self) {
        let mut inner = self.lock();
        inner.closed = true;
        self.notify(inner, Notifications::new());
    }

    /// Ends the stream and returns its state. A repeated call returns the same state.
    ///
    /// # Errors
    /// Returns the error of a step, and an error for results that have not been received or a stream
    /// that was cancelled.
    pub fn finish(&self, wait: &Wait<'_>) -> Result<Parts> {
        let inner = self.lock();
        if let Some(why) = inner.end_reason() {
            return Err(why.into());
        }
        let left = inner.results.len();
        drop(inner);
        if left > 0 {
            return Err(StreamError::Unreceived(left).into());
        }
        self.close();
        self.state(wait)
    }

    /// Waits for the last chunk and returns the state after it, also with results not received.
    ///
    /// # Errors
    /// Returns the error of a step, or an error if the stream was cancelled or has not ended in
    /// time.
    pub fn state(&self, wait: &Wait<'_>) -> Result<Parts> {
        let over = |inner: &Inner| inner.ended.is_some() || inner.cancelled;
        let Some(inner) = self.wait_until(wait, over)? else {
            return Err(StreamError::NotYet.into());
        };
        match (inner.end_reason(), &inner.ended) {
            (None, Some(Ok(state))) => Ok(state.clone()),
            (Some(why), _) => Err(why.into()),
            (None, _) => Err(StreamError::NotYet.into()),
        }
    }

    /// Ends the stream without its state. Waiting chunks are dropped, and their receivers get an error.
    /// The current step runs to its end, and its result can be received. A stream that has ended does
    /// not change.
    pub fn cancel(&self) {
        let mut inner = self.lock();
        if inner.ended.is_some() {
            return;
        }
        (inner.closed, inner.cancelled) = (true, true);
        let dropped = std::mem::take(&mut inner.chunks);
        let mut notifications = Notifications::new();
        for (number, _) in &dropped {
            inner.settle(*number, Err(StreamError::Cancelled), &mut notifications);
        }
        self.notify(inner, notifications);
    }

    /// Cancels the stream, drops its results, and interrupts the current step if possible. A stream
    /// that has already ended keeps its state or error.
    pub fn abandon(&self) {
        self.cancel();
        self.lock().abandoned = true;
        self.forget_results();
    }

    /// Waits until the thread has ended, and returns whether it has.
    pub(super) fn wait_for_end(&self, wait: &Wait<'_>) -> bool {
        let ended = self.wait_until(wait, |inner| inner.ended.is_some());
        ended.is_ok_and(|inner| inner.is_some())
    }

    /// Records that the thread does not exist in this process. Does nothing if another thread held
    /// the lock when the process forked.
    pub(super) fn orphan(&self) {
        let unused = self.inner.try_lock().is_ok_and(|inner| inner.ended.is_none());
        if unused {
            let why = "stream: must be used in the process that started it; this process is a fork";
            self.end(Err(Arc::new(Error::Usage(why.to_owned()))));
        }
    }

    // --- the side of the thread ---

    pub(super) fn is_abandoned(&self) -> bool {
        self.lock().abandoned
    }

    /// Waits for the next chunk and returns it with its number; `None` after the last chunk.
    pub(super) fn next_chunk(&self) -> Option<(u64, Parts)> {
        let settled = |inner: &Inner| !inner.chunks.is_empty() || inner.closed;
        let inner = self.wait_until(&Wait::default(), settled);
        let mut inner = inner.ok().flatten()?;
        let chunk = inner.chunks.pop_front()?;
        self.notify(inner, Notifications::new());
        Some(chunk)
    }

    /// Records the result of a chunk.
    pub(super) fn record_result(&self, number: u64, result: Parts) {
        let (mut inner, mut notifications) = (self.lock(), Notifications::new());
        let unwanted = inner.settle(number, Ok(result), &mut notifications);
        self.notify(inner, notifications);
        drop(unwanted);
    }

    /// Records the result of the thread. An error becomes the outcome of every pending chunk.
    pub(super) fn end(&self, ended: Result<Parts, Arc<Error>>) {
        let mut inner = self.lock();
        let chunks = std::mem::take(&mut inner.chunks);
        let mut notifications = Notifications::new();
        if let Err(error) = &ended {
            let why = StreamError::Failed(error.clone());
            let pending = inner.results.iter_mut().filter(|result| result.is_none());
            pending.for_each(|result| *result = Some(Err(why.clone())));
            let deferred = std::mem::take(&mut inner.deferred).into_values();
            notifications.extend(deferred.map(|deferred| (deferred, Err(why.clone()))));
        }
        inner.ended = Some(ended);
        inner.closed = true;
        self.notify(inner, notifications);
        drop(chunks);
    }
}
