//! Stages on threads of this process.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use nxla_split::{StageGraph, StageId};

use super::drive::Completion;
use crate::error::{Error, Result};

/// Runs a stage on its values.
type Run<'a, V> = dyn Fn(StageId, Vec<V>) -> Result<Vec<V>> + Sync + 'a;

struct Job<V: Send + 'static> {
    stage: StageId,
    values: Vec<V>,
    done: Completion<V>,
}

/// The number of threads for the local stages: 0 if they can run one after the other on the
/// caller's thread, which must be free if the run has an executor.
pub(super) fn useful(
    graph: &StageGraph,
    is_local: impl Fn(StageId) -> bool,
    has_executor: bool,
) -> usize {
    let width = |level: Vec<StageId>| level.into_iter().filter(|&stage| is_local(stage)).count();
    let widest = graph.levels().into_iter().map(width).max().unwrap_or(0);
    let processors = thread::available_parallelism().map_or(1, usize::from);
    match widest.min(processors) {
        1 if !has_executor => 0,
        threads => threads,
    }
}

/// The threads that run stages of this process.
pub(super) struct Threads<'a, V: Send + 'static> {
    run: &'a Run<'a, V>,
    /// The channel to the threads; without threads, stages run synchronously.
    jobs: Option<Sender<Job<V>>>,
}

impl<V: Send + 'static> Threads<'_, V> {
    /// Begins a stage.
    pub(super) fn start(&self, stage: StageId, values: Vec<V>, done: Completion<V>) -> Result<()> {
        match &self.jobs {
            None => {
                let results = (self.run)(stage, values);
                done.end(move || results);
                Ok(())
            }
            Some(jobs) => jobs
                .send(Job { stage, values, done })
                .map_err(|_| Error::Internal("the threads of a run of stages have ended".into())),
        }
    }
}

/// Calls `work` while `count` threads run the stages that it starts. With 0, a stage runs on the
/// thread that starts it.
///
/// # Panics
/// Panics with the payload of a stage that panicked, after all other stages have ended.
pub(super) fn with_threads<V: Send + 'static, T>(
    count: usize,
    run: &Run<'_, V>,
    work: impl FnOnce(&Threads<'_, V>) -> Result<T>,
) -> Result<T> {
    if count == 0 {
        return work(&Threads { run, jobs: None });
    }
    let (give, jobs) = channel();
    let jobs = Mutex::new(jobs);
    let (outcome, ends) = thread::scope(|scope| {
        let helpers: Vec<_> = (0..count).map(|_| scope.spawn(|| take_jobs(&jobs, run))).collect();
        // The threads end when the channel is closed.
        let outcome = work(&Threads { run, jobs: Some(give) });
        (outcome, helpers.into_iter().map(|helper| helper.join()).collect::<Vec<_>>())
    });
    match ends.into_iter().find_map(|end| end.unwrap_or_else(Some)) {
        Some(payload) => resume_unwind(payload),
        None => outcome,
    }
}

/// The payload of a panic.
type Payload = Box<dyn Any + Send>;

/// Runs jobs until the channel closes; returns the panic of a stage. After a panic the remaining
/// jobs are dropped, so that the run does not wait for them.
fn take_jobs<V: Send + 'static>(
    jobs: &Mutex<Receiver<Job<V>>>,
    run: &Run<'_, V>,
) -> Option<Payload> {
    let mut panicked = None;
    loop {
        let next = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Job { stage, values, done }) = next else { return panicked };
        if panicked.is_some() {
            continue;
        }
        match catch_unwind(AssertUnwindSafe(|| run(stage, values))) {
            Ok(results) => done.end(move || results),
            Err(payload) => panicked = Some(payload),
        }
    }
}
