//! The dependencies of stages in the form that schedules need, computed once for all runs.
//!
//! Every value has a *slot*: inputs first, then the outputs of each stage.

use std::sync::OnceLock;

use crate::lists::Lists;
use crate::stage::{Stage, ValueSource};

/// The dependencies of a graph of stages.
#[derive(Clone, Debug)]
pub(crate) struct StageDependencies {
    /// The number of inputs.
    pub(crate) inputs: usize,
    /// The first output slot of each stage, and the number of slots.
    pub(crate) first_slot: Vec<usize>,
    /// The argument slots of each stage.
    pub(crate) arguments: Lists<usize>,
    /// The number of stages and final outputs that take each slot.
    pub(crate) uses: Vec<u32>,
    /// The number of dependencies of each stage.
    pub(crate) waits: Vec<u32>,
    /// The stages that depend on each stage.
    pub(crate) dependents: Lists<usize>,
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
        let taken = stages.iter().enumerate().flat_map(|(index, stage)| {
            stage.arguments.iter().map(move |source| (index, slot(source)))
        });
        let arguments = Lists::group(stages.len(), taken);
        let outputs: Vec<usize> = outputs.iter().map(slot).collect();
        let mut uses = vec![0; first_slot[stages.len()]];
        for &slot in arguments.entries().iter().chain(&outputs) {
            uses[slot] += 1;
        }
        let (mut waits, mut dependents) = (Vec::with_capacity(stages.len()), Vec::new());
        for (index, stage) in stages.iter().enumerate() {
            let dependencies = stage.dependencies();
            waits.push(u32::try_from(dependencies.len()).expect("fewer than 2^32 stages"));
            dependents.extend(dependencies.into_iter().map(|id| (id.index(), index)));
        }
        let dependents = Lists::group(stages.len(), dependents);
        let ranks = OnceLock::new();
        Self { inputs, first_slot, arguments, uses, waits, dependents, outputs, ranks }
    }

    /// Returns the number of stages.
    pub(crate) fn stages(&self) -> usize {
        self.waits.len()
    }
}
