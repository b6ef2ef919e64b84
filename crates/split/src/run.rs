//! Running all stages on the threads of this process.
//!
//! Workers share one [`Schedule`] behind a lock that is held only between stages. A worker that
//! fails, or panics, stops the others from starting more; what is running is waited for.

use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::schedule::{Schedule, ScheduleError, Task};
use crate::stage::{Stage, StageGraph, StageId};

/// How to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RunOptions {
    /// The most stages that run at the same time; with 1 they run in order on the calling thread.
    pub threads: NonZeroUsize,
}

impl RunOptions {
    /// One stage after the other, on the calling thread.
    pub fn sequential() -> Self {
        Self { threads: NonZeroUsize::MIN }
    }
}

impl Default for RunOptions {
    /// As many stages at the same time as there are processors.
    fn default() -> Self {
        Self { threads: thread::available_parallelism().unwrap_or(NonZeroUsize::MIN) }
    }
}

/// Why a run ended early.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError<E> {
    /// A stage failed; of several, the first to fail.
    #[error("{stage}: {error}")]
    Stage {
        /// The stage.
        stage: StageId,
        /// Its error.
        error: E,
    },
    /// Values that do not fit: inputs of the call, or results of a stage.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
}

impl StageGraph {
    /// Runs every stage and gives the outputs of the original program.
    ///
    /// `run_stage` gets a stage and one value for each input of its program, and gives one for
    /// each output. Stages that do not depend on each other run at the same time if the options
    /// allow. Each value is dropped, or moved into the last stage that takes it, as soon as that
    /// stage starts. After the first error no further stage starts.
    ///
    /// # Errors
    /// The first error of `run_stage`; another number of inputs or outputs than there should be.
    ///
    /// # Panics
    /// If `run_stage` panics, with the same payload, once the other threads have stopped.
    pub fn run<V: Clone + Send, E: Send>(
        &self,
        inputs: Vec<V>,
        run_stage: impl Fn(&Stage, Vec<V>) -> Result<Vec<V>, E> + Sync,
        options: RunOptions,
    ) -> Result<Vec<V>, RunError<E>> {
        let schedule = Schedule::new(self, inputs)?;
        let pool = Pool {
            graph: self,
            run_stage,
            shared: Mutex::new(Shared { schedule, failure: None, stopped: false }),
            changed: Condvar::new(),
        };
        let useful = if self.plan.is_chain { 1 } else { self.stages().len() };
        pool.run(options.threads.get().min(useful));
        let shared = pool.shared.into_inner().unwrap_or_else(PoisonError::into_inner);
        match shared.failure {
            Some(failure) => Err(failure),
            None => Ok(shared.schedule.finish()?),
        }
    }
}

/// What the workers share.
struct Shared<V, E> {
    schedule: Schedule<V>,
    failure: Option<RunError<E>>,
    /// No further stage is to start: all are done, one failed, or a worker panicked.
    stopped: bool,
}

struct Pool<'g, V, E, F> {
    graph: &'g StageGraph,
    run_stage: F,
    shared: Mutex<Shared<V, E>>,
    /// Stages became ready, or everything stopped.
    changed: Condvar,
}

impl<V, E, F> Pool<'_, V, E, F>
where
    V: Clone + Send,
    E: Send,
    F: Fn(&Stage, Vec<V>) -> Result<Vec<V>, E> + Sync,
{
    /// Works on this many threads, the calling one included.
    fn run(&self, threads: usize) {
        if threads <= 1 {
            return self.work();
        }
        let panicked = thread::scope(|scope| {
            let helpers: Vec<_> = (1..threads).map(|_| scope.spawn(|| self.work())).collect();
            self.work();
            helpers.into_iter().map(|helper| helper.join()).collect::<Vec<_>>()
        });
        if let Some(payload) = panicked.into_iter().find_map(Result::err) {
            resume_unwind(payload);
        }
    }

    fn work(&self) {
        let stop = StopOnUnwind(self);
        while let Some(task) = self.next_task() {
            let stage = task.stage;
            let result = (self.run_stage)(self.graph.stage(stage), task.arguments);
            let mut shared = self.lock();
            let outcome = match result {
                Ok(outputs) => shared.schedule.complete(stage, outputs).map_err(RunError::from),
                Err(error) => Err(RunError::Stage { stage, error }),
            };
            if let Err(failure) = outcome {
                shared.failure.get_or_insert(failure);
                shared.stopped = true;
            }
            shared.stopped |= shared.schedule.is_finished();
            drop(shared);
            self.changed.notify_all();
        }
        drop(stop);
    }

    /// Waits for a stage to run; `None` when there is none left to start.
    fn next_task(&self) -> Option<Task<V>> {
        let mut shared = self.lock();
        loop {
            if shared.stopped {
                return None;
            }
            if let Some(task) = shared.schedule.next_ready() {
                return Some(task);
            }
            if shared.schedule.running() == 0 {
                return None;
            }
            shared = self.changed.wait(shared).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl<V, E, F> Pool<'_, V, E, F> {
    /// A panic while the lock is held can only come from cloning or dropping a value; the worker
    /// it happens in stops all others, so that nothing is done with a half-changed schedule.
    fn lock(&self) -> MutexGuard<'_, Shared<V, E>> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Stops all workers when the one that holds it panics, so that none waits for it for ever.
struct StopOnUnwind<'p, 'g, V, E, F>(&'p Pool<'g, V, E, F>);

impl<V, E, F> Drop for StopOnUnwind<'_, '_, V, E, F> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.lock().stopped = true;
            self.0.changed.notify_all();
        }
    }
}
