//! Running stages step by step, whoever runs them.
//!
//! A [`Schedule`] hands out stages that are ready and takes their results. It holds each value
//! from the moment it is there until the last stage that needs it has been handed out, which gets
//! it by move: if nobody else holds the value, its memory can be reused for the results.
//!
//! ```
//! # use nxla_split::{Schedule, StageGraph};
//! fn run_one_by_one(graph: &StageGraph, inputs: Vec<f64>) -> Vec<f64> {
//!     let mut schedule = Schedule::new(graph, inputs).expect("one value for each input");
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

use crate::plan::Plan;
use crate::stage::{StageGraph, StageId};

/// A stage that can run now, with its arguments.
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
    /// Another number of values than the program has inputs.
    #[error("the program takes {expected} inputs, got {found}")]
    Inputs {
        /// Inputs of the program.
        expected: usize,
        /// Values given.
        found: usize,
    },
    /// Another number of results than the stage has outputs.
    #[error("{stage} gives {expected} outputs, got {found}")]
    Outputs {
        /// The stage.
        stage: StageId,
        /// Outputs of its program.
        expected: usize,
        /// Results given.
        found: usize,
    },
    /// Results of a stage that was not handed out, or that has been completed before.
    #[error("{0} is not running")]
    NotRunning(StageId),
    /// The end was asked for while stages were still to run.
    #[error("{left} stages have not been completed")]
    Unfinished {
        /// How many.
        left: usize,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Waiting,
    Running,
    Completed,
}

/// The progress of one run.
#[derive(Debug)]
pub struct Schedule<V> {
    plan: Arc<Plan>,
    values: Vec<Option<V>>,
    /// How many stages and outputs have yet to take each value.
    uses: Vec<u32>,
    /// How many stages each stage still waits for.
    waits: Vec<u32>,
    states: Vec<State>,
    /// Stages that are ready, by their rank.
    ready: BinaryHeap<Reverse<(usize, usize)>>,
    urgent: bool,
    running: usize,
    completed: usize,
}

impl<V: Clone> Schedule<V> {
    /// Starts a run that hands out stages in the order of the program, in which few values wait for
    /// their use. Inputs that no stage needs are dropped at once.
    ///
    /// # Errors
    /// [`ScheduleError::Inputs`].
    pub fn new(graph: &StageGraph, inputs: Vec<V>) -> Result<Self, ScheduleError> {
        Self::begin(graph, inputs, false)
    }

    /// Starts a run that hands out those stages first after which most is to be done, as
    /// [`StageGraph::ranks`] has them: several workers are done sooner that way.
    ///
    /// # Errors
    /// [`ScheduleError::Inputs`].
    pub fn by_urgency(graph: &StageGraph, inputs: Vec<V>) -> Result<Self, ScheduleError> {
        graph.ranks();
        Self::begin(graph, inputs, true)
    }

    fn begin(graph: &StageGraph, inputs: Vec<V>, urgent: bool) -> Result<Self, ScheduleError> {
        let plan = graph.plan.clone();
        if inputs.len() != plan.inputs {
            return Err(ScheduleError::Inputs { expected: plan.inputs, found: inputs.len() });
        }
        let uses = plan.uses.clone();
        let mut values: Vec<Option<V>> = inputs
            .into_iter()
            .zip(&uses)
            .map(|(value, &uses)| (uses > 0).then_some(value))
            .collect();
        values.resize_with(uses.len(), || None);
        let waits = plan.waits.clone();
        let states = vec![State::Waiting; plan.stages()];
        let ready = BinaryHeap::new();
        let mut schedule =
            Self { plan, values, uses, waits, states, ready, urgent, running: 0, completed: 0 };
        for stage in 0..schedule.waits.len() {
            if schedule.waits[stage] == 0 {
                schedule.now_ready(stage);
            }
        }
        Ok(schedule)
    }

    fn now_ready(&mut self, stage: usize) {
        let rank = match self.plan.ranks.get() {
            Some(ranks) if self.urgent => ranks[stage],
            _ => stage,
        };
        self.ready.push(Reverse((rank, stage)));
    }

    /// Hands out the first stage that is ready, or `None` if every stage that is left waits for
    /// one that is running, or none is left.
    pub fn next_ready(&mut self) -> Option<Task<V>> {
        let Reverse((_, stage)) = self.ready.pop()?;
        self.states[stage] = State::Running;
        self.running += 1;
        let plan = self.plan.clone();
        let arguments = plan.arguments.of(stage).iter().map(|&slot| self.take(slot)).collect();
        Some(Task { stage: StageId::from_index(stage), arguments })
    }

    /// Whether [`Schedule::next_ready`] would give a stage.
    pub fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// How many stages have been handed out and not completed.
    pub fn running(&self) -> usize {
        self.running
    }

    /// Whether every stage has been completed.
    pub fn is_finished(&self) -> bool {
        self.completed == self.plan.stages()
    }

    /// Takes the results of a stage; stages that waited only for them become ready. Results that
    /// no stage needs are dropped at once.
    ///
    /// # Errors
    /// [`ScheduleError::NotRunning`], [`ScheduleError::Outputs`]; nothing changes then.
    pub fn complete(&mut self, stage: StageId, outputs: Vec<V>) -> Result<(), ScheduleError> {
        let index = stage.index();
        if self.states.get(index) != Some(&State::Running) {
            return Err(ScheduleError::NotRunning(stage));
        }
        let slots = self.plan.first_slot[index]..self.plan.first_slot[index + 1];
        if outputs.len() != slots.len() {
            let (expected, found) = (slots.len(), outputs.len());
            return Err(ScheduleError::Outputs { stage, expected, found });
        }
        for (slot, value) in slots.zip(outputs) {
            self.values[slot] = (self.uses[slot] > 0).then_some(value);
        }
        self.states[index] = State::Completed;
        self.running -= 1;
        self.completed += 1;
        let plan = self.plan.clone();
        for &dependent in plan.dependents.of(index) {
            self.waits[dependent] -= 1;
            if self.waits[dependent] == 0 {
                self.now_ready(dependent);
            }
        }
        Ok(())
    }

    /// The outputs of the original program.
    ///
    /// # Errors
    /// [`ScheduleError::Unfinished`].
    pub fn finish(mut self) -> Result<Vec<V>, ScheduleError> {
        if !self.is_finished() {
            let left = self.plan.stages() - self.completed;
            return Err(ScheduleError::Unfinished { left });
        }
        let plan = self.plan.clone();
        Ok(plan.outputs.iter().map(|&slot| self.take(slot)).collect())
    }

    /// A copy of a value, or for the last user the value itself.
    fn take(&mut self, slot: usize) -> V {
        self.uses[slot] -= 1;
        let value = &mut self.values[slot];
        let value = if self.uses[slot] == 0 { value.take() } else { value.clone() };
        value.expect("a value stays from the end of its stage until its last use")
    }
}
