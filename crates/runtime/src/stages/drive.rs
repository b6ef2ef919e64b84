//! The driver of one run, which tracks ready stages, results and failures.
//!
//! One thread, the caller's, keeps the schedule. It starts stages and receives their reports,
//! in any order. Values may be of any type that can be cloned.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use nxla_eval::Interrupt;
use nxla_split::{Stage, StageGraph, StageId, StageScheduler};

use crate::background;
use crate::error::{Error, Result};

/// Reads the results of a stage on the thread of the caller.
type Read<V> = Box<dyn FnOnce() -> Result<Vec<V>> + Send>;

/// The report of a stage that has ended, with a function that reads its results.
struct Report<V> {
    stage: StageId,
    results: Read<V>,
}

/// The handle that reports the results of a stage. A dropped handle reports a failure.
pub struct Completion<V: Send + 'static> {
    stage: StageId,
    reports: Option<Sender<Report<V>>>,
}

impl<V: Send + 'static> fmt::Debug for Completion<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Completion").field("stage", &self.stage).finish_non_exhaustive()
    }
}

impl<V: Send + 'static> Completion<V> {
    /// Reports that the stage has ended. `results` returns its results, one for each output, on the
    /// thread that waits for the run.
    pub fn end(mut self, results: impl FnOnce() -> Result<Vec<V>> + Send + 'static) {
        self.report(Box::new(results));
    }

    fn report(&mut self, results: Read<V>) {
        if let Some(reports) = self.reports.take() {
            // The receiver was dropped if its thread was interrupted.
            let _ = reports.send(Report { stage: self.stage, results });
        }
    }
}

impl<V: Send + 'static> Drop for Completion<V> {
    fn drop(&mut self) {
        let stage = self.stage;
        let lost = move || Err(Error::Usage(format!("{stage} ended without results")));
        self.report(Box::new(lost));
    }
}

/// The reasons to stop a run: the caller is interrupted, which the caller's thread must check, or a
/// stage has failed.
pub(super) struct Stop<'a> {
    interrupt: Option<&'a Interrupt<'a>>,
    stopped: AtomicBool,
}

impl<'a> Stop<'a> {
    pub(super) fn new(interrupt: Option<&'a Interrupt<'a>>) -> Self {
        Self { interrupt, stopped: AtomicBool::new(false) }
    }

    /// Asks, and remembers the answer.
    pub(super) fn ask(&self) -> bool {
        if self.interrupt.is_some_and(|interrupt| interrupt()) {
            self.set();
        }
        self.is_set()
    }

    pub(super) fn is_set(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    fn set(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
}

/// Runs every stage of a graph and returns the outputs of the original program.
///
/// `start` begins a stage on one value for each of its arguments. Each value is dropped, or moved
/// into the last stage that uses it, as soon as this stage starts. `check` rejects results of
/// other types. After the first error no other stage starts, and the run waits for the started
/// stages.
pub(super) fn drive<V: Clone + Send + 'static>(
    graph: &StageGraph,
    inputs: Vec<V>,
    mut start: impl FnMut(&Stage, Vec<V>, Completion<V>) -> Result<()>,
    check: impl Fn(&Stage, &[V]) -> Result<()>,
    stop: &Stop<'_>,
) -> Result<Vec<V>> {
    let mut schedule = StageScheduler::by_urgency(graph, inputs)?;
    let (give, given) = channel();
    let mut failure = None;
    // Each started stage sends one report.
    let mut running = 0_usize;
    loop {
        let ready = if failure.is_none() { schedule.next_ready() } else { None };
        let report = match ready {
            Some(task) => {
                let done = Completion { stage: task.stage, reports: Some(give.clone()) };
                running += 1;
                failure = start(graph.stage(task.stage), task.arguments, done).err();
                // A stage that ran synchronously may have failed, so the next one must not start.
                given.try_recv().ok()
            }
            None if running == 0 => break,
            None => Some(wait(&given, stop)?),
        };
        let Some(Report { stage, results }) = report else { continue };
        running -= 1;
        let taken = results().and_then(|results| {
            check(graph.stage(stage), &results)?;
            schedule.complete(stage, results).map_err(Error::from)
        });
        if let Err(error) = taken {
            stop.set();
            failure.get_or_insert(error);
        }
    }
    match failure {
        Some(error) => Err(error),
        None => schedule.finish().map_err(Error::from),
    }
}

fn wait<V>(given: &Receiver<Report<V>>, stop: &Stop<'_>) -> Result<Report<V>> {
    let report = match stop.interrupt {
        Some(_) => background::wait(given, &|| stop.ask())?,
        None => given.recv().ok(),
    };
    report.ok_or_else(|| Error::Internal("all senders of a run of stages were dropped".into()))
}
