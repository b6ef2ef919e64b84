//! Step-by-step execution of stages by any executor.
//!
//! A [`StageScheduler`] returns stages that are ready and receives their results. It holds each value
//! until the last stage that needs it starts. This stage receives the value by move, so the value's
//! memory can be reused for results if there are no other references.
//!
//! ```
//! # use nxla_split::{StageScheduler, StageGraph};
//! fn run_one_by_one(graph: &StageGraph, inputs: Vec<f64>) -> Vec<f64> {
//!     let mut schedule = StageScheduler::new(graph, inputs).expect("one value for each input");
//!     while let Some(task) = schedule.next_ready() {
//!         let results = compute(graph, &task);
//!         schedule.complete(task.stage, results).expect("one value for each output");
//!     }
//!     schedule.finish().expect("every stage has run")
//! }
//! # fn compute(_: &StageGraph, _: &nxla_split::Task<f64>) -> Vec<f64> { vec![] }
//! ```

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use crate::dependencies::StageDependencies;
use crate::stage::{StageGraph, StageId};

/// A stage that can run, with its arguments.
#[derive(Clone, Debug)]
pub struct Task<V> {
    /// The stage.
    pub stage: StageId,
    /// One value for each input of its program.
    pub arguments: Vec<V>,
}

/// Values that do not fit the stages, or steps in the wrong order.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// The number of values differs from the number of inputs of the program.
    #[error("inputs: expected {expected}; got {found}")]
    Inputs {
        /// The number of inputs.
        expected: usize,
        /// The number of values.
        found: usize,
    },
    /// The number of results differs from the number of outputs of the stage.
    #[error("{stage}: must return {expected} outputs; got {found}")]
    Outputs {
        /// The stage.
        stage: StageId,
        /// The number of outputs.
        expected: usize,
        /// The number of results.
        found: usize,
    },
    /// Results of a stage that is not running.
    #[error("complete: {0} must be running")]
    NotRunning(StageId),
    /// The outputs were requested before all stages completed.
    #[error("{left} stages have not been completed")]
    Unfinished {
        /// The number of remaining stages.
        left: usize,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Waiting,
    Running,
    Completed,
}

/// The progress of a run.
#[derive(Debug)]
pub struct StageScheduler<V> {
    dependencies: Arc<StageDependencies>,
    values: Vec<Option<V>>,
    /// The number of stages and outputs that have yet to take each value.
    uses: Vec<u32>,
    /// The number of dependencies for which each stage waits.
    waits: Vec<u32>,
    states: Vec<State>,
    /// The ready stages by rank.
    ready: BinaryHeap<Reverse<(usize, usize)>>,
    urgent: bool,
    completed: usize,
}

impl<V: Clone> StageScheduler<V> {
    /// Starts a run in the order of the program, in which few values are alive. Inputs that no
    /// stage needs are dropped immediately.
    ///
    /// # Errors
    /// Returns [`ScheduleError::Inputs`] for a wrong number of inputs.
    pub fn new(graph: &StageGraph, inputs: Vec<V>) -> Result<Self, ScheduleError> {
        Self::begin(graph, inputs, false)
    }

    /// Starts a run that prefers stages with the most remaining work, see [`StageGraph::ranks`].
    /// This order shortens runs on several workers.
    ///
    /// # Errors
    /// Returns [`ScheduleError::Inputs`] for a wrong number of inputs.
    pub fn by_urgency(graph: &StageGraph, inputs: Vec<V>) -> Result<Self, ScheduleError> {
        graph.ranks();
        Self::begin(graph, inputs, true)
    }

    fn begin(graph: &StageGraph, inputs: Vec<V>, urgent: bool) -> Result<Self, ScheduleError> {
        let dependencies = graph.dependencies.clone();
        if inputs.len() != dependencies.inputs {
            return Err(ScheduleError::Inputs {
                expected: dependencies.inputs,
                found: inputs.len(),
            });
        }
        let uses = dependencies.uses.clone();
        let mut values: Vec<Option<V>> = inputs
            .into_iter()
            .zip(&uses)
            .map(|(value, &uses)| (uses > 0).then_some(value))
            .collect();
        values.resize_with(uses.len(), || None);
        let waits = dependencies.waits.clone();
        let states = vec![State::Waiting; dependencies.stages()];
        let ready = BinaryHeap::new();
        let mut schedule =
            Self { dependencies, values, uses, waits, states, ready, urgent, completed: 0 };
        for stage in 0..schedule.waits.len() {
            if schedule.waits[stage] == 0 {
                schedule.now_ready(stage);
            }
        }
        Ok(schedule)
    }

    fn now_ready(&mut self, stage: usize) {
        let rank = match self.dependencies.ranks.get() {
            Some(ranks) if self.urgent => ranks[stage],
            _ => stage,
        };
        self.ready.push(Reverse((rank, stage)));
    }

    /// Returns the next ready stage, or `None` if there are no stages left or all of them wait for
    /// running stages.
    pub fn next_ready(&mut self) -> Option<Task<V>> {
        let Reverse((_, stage)) = self.ready.pop()?;
        self.states[stage] = State::Running;
        let dependencies = self.dependencies.clone();
        let arguments =
            dependencies.arguments.of(stage).iter().map(|&slot| self.take(slot)).collect();
        Some(Task { stage: StageId::from_index(stage), arguments })
    }

    /// Returns whether every stage has completed.
    pub fn is_finished(&self) -> bool {
        self.completed == self.dependencies.stages()
    }

    /// Receives the results of a stage; stages that waited only for them become ready. Results that
    /// no stage needs are dropped immediately.
    ///
    /// # Errors
    /// Returns [`ScheduleError::NotRunning`] or [`ScheduleError::Outputs`]; the schedule is then
    /// unchanged.
    pub fn complete(&mut self, stage: StageId, outputs: Vec<V>) -> Result<(), ScheduleError> {
        let index = stage.index();
        if self.states.get(index) != Some(&State::Running) {
            return Err(ScheduleError::NotRunning(stage));
        }
        let slots = self.dependencies.first_slot[index]..self.dependencies.first_slot[index + 1];
        if outputs.len() != slots.len() {
            let (expected, found) = (slots.len(), outputs.len());
            return Err(ScheduleError::Outputs { stage, expected, found });
        }
        for (slot, value) in slots.zip(outputs) {
            self.values[slot] = (self.uses[slot] > 0).then_some(value);
        }
        self.states[index] = State::Completed;
        self.completed += 1;
        let dependencies = self.dependencies.clone();
        for &dependent in dependencies.dependents.of(index) {
            self.waits[dependent] -= 1;
            if self.waits[dependent] == 0 {
                self.now_ready(dependent);
            }
        }
        Ok(())
    }

    /// Returns the outputs of the original program.
    ///
    /// # Errors
    /// Returns [`ScheduleError::Unfinished`] if stages remain.
    pub fn finish(mut self) -> Result<Vec<V>, ScheduleError> {
        if !self.is_finished() {
            let left = self.dependencies.stages() - self.completed;
            return Err(ScheduleError::Unfinished { left });
        }
        let dependencies = self.dependencies.clone();
        Ok(dependencies.outputs.iter().map(|&slot| self.take(slot)).collect())
    }

    /// Returns a copy of a value, or the value itself for the last user.
    fn take(&mut self, slot: usize) -> V {
        self.uses[slot] -= 1;
        let value = &mut self.values[slot];
        let value = if self.uses[slot] == 0 { value.take() } else { value.clone() };
        value.expect("a value stays from the end of its stage until its last use")
    }
}
