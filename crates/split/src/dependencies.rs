//! The dependencies of stages in the form that schedules need, computed once for all runs.
//!
//! Every value has a *slot*: inputs first, then the outputs of each stage. Lists of lists are
//! stored flat, as the ends of the inner lists and their entries.

use std::sync::OnceLock;

use crate::stage::{Stage, ValueSource};

/// Consecutive lists of positions.
#[derive(Clone, Default, Debug)]
pub(crate) struct Lists {
    first: Vec<usize>,
    entries: Vec<usize>,
}

impl Lists {
    fn new() -> Self {
        Self { first: vec![0], entries: Vec::new() }
    }

    fn push(&mut self, list: impl IntoIterator<Item = usize>) {
        self.entries.extend(list);
        self.first.push(self.entries.len());
    }

    /// Returns one list.
    pub(crate) fn of(&self, index: usize) -> &[usize] {
        &self.entries[self.first[index]..self.first[index + 1]]
    }

    /// Returns for each of `count` positions the lists that contain it.
    fn inverse(&self, count: usize) -> Self {
        let mut first = vec![0; count + 1];
        for &entry in &self.entries {
            first[entry + 1] += 1;
        }
        for position in 0..count {
            first[position + 1] += first[position];
        }
        let mut next = first.clone();
        let mut entries = vec![0; self.entries.len()];
        for list in 0..self.first.len() - 1 {
            for &entry in self.of(list) {
                entries[next[entry]] = list;
                next[entry] += 1;
            }
        }
        Self { first, entries }
    }
}

/// The dependencies of a graph of stages.
#[derive(Clone, Debug)]
pub(crate) struct StageDependencies {
    /// The number of inputs.
    pub(crate) inputs: usize,
    /// The first output slot of each stage, and the number of slots.
    pub(crate) first_slot: Vec<usize>,
    /// The argument slots of each stage.
    pub(crate) arguments: Lists,
    /// The number of stages and final outputs that take each slot.
    pub(crate) uses: Vec<u32>,
    /// The number of dependencies of each stage.
    pub(crate) waits: Vec<u32>,
    /// The stages that depend on each stage.
    pub(crate) dependents: Lists,
    /// The slots of the final outputs.
    pub(crate) outputs: Vec<usize>,
    /// The rank of each stage, see [`StageGraph::ranks`](crate::StageGraph::ranks); computed on
    /// first use.
    pub(crate) ranks: OnceLock<Vec<usize>>,
}

impl StageDependencies {
    pub(crate) fn new(inputs: usize, stages: &[Stage], outputs: &[ValueSource]) -> Self {
        let mut first_slot = vec![inputs];
        for (index, stage) in stages.iter().enumerate() {
            first_slot.push(first_slot[index] + stage.program.outputs().len());
        }
        let slot = |source: &ValueSource| match source.stage {
            None => source.index,
            Some(stage) => first_slot[stage.index()] + source.index,
        };
        let (mut arguments, mut dependencies) = (Lists::new(), Lists::new());
        for stage in stages {
            arguments.push(stage.arguments.iter().map(slot));
            dependencies.push(stage.dependencies().into_iter().map(|id| id.index()));
        }
        let outputs: Vec<usize> = outputs.iter().map(slot).collect();
        let mut uses = vec![0; first_slot[stages.len()]];
        for &slot in arguments.entries.iter().chain(&outputs) {
            uses[slot] += 1;
        }
        let waits = (0..stages.len())
            .map(|stage| {
                u32::try_from(dependencies.of(stage).len()).expect("fewer than 2^32 stages")
            })
            .collect();
        let dependents = dependencies.inverse(stages.len());
        let ranks = OnceLock::new();
        Self { inputs, first_slot, arguments, uses, waits, dependents, outputs, ranks }
    }

    /// Returns the number of stages.
    pub(crate) fn stages(&self) -> usize {
        self.waits.len()
    }
}
