//! The executable of a jitted function that a policy splits into stages.

use std::sync::Arc;
use std::thread;

use nxla_eval::Interrupt;
use nxla_split::{Stage, StageGraph, StageId};

use super::donation::StageDonations;
use super::{StageTarget, run_all};
use crate::compiler::{Executable, Purpose, RunContext};
use crate::error::Result;
use crate::evaluator::program_bytes;
use crate::options::{ExecutionTarget, Options, Progress};
use crate::profile::{self, Work};
use crate::program::{ExecutableHandle, compile_for};
use crate::tensor::RawTensor;

/// The approximate memory of a node, including its entry in the lookup table.
const NODE_BYTES: usize = 128;

/// Stages, each compiled separately.
pub(crate) struct StagedExecutable {
    graph: StageGraph,
    donations: StageDonations,
    /// The executable of each stage; stages with the same program share one.
    executables: Vec<Arc<ExecutableHandle>>,
}

impl StagedExecutable {
    /// Compiles stages, at the same time if the compiler can do that, and equal ones once.
    ///
    /// A stage reuses the memory of a value that no other stage uses.
    ///
    /// # Errors
    /// Returns errors of the compiler about a stage.
    pub(crate) fn compile(
        graph: StageGraph,
        options: &Options,
        target: &ExecutionTarget,
        donated: &[bool],
    ) -> Result<Arc<dyn Executable>> {
        let donations = StageDonations::of(&graph, donated);
        let stages = 0..graph.stages().len();
        let begin = |progress: &Progress| progress.begin("compiling stages", stages.len());
        let step = options.progress.as_ref().map(begin);
        let compile = |stage: usize| {
            let Stage { id, program, .. } = &graph.stages()[stage];
            let marks = &donations.of_stage(*id).marks;
            let compiled = compile_for(Purpose::Compile, program, options, target, marks, None);
            step.iter().for_each(|step| step());
            compiled
        };
        let executables = if target.compiler.compiles_elsewhere() {
            side_by_side(stages.len(), &compile)
        } else {
            stages.map(compile).collect()
        };
        let executables: Vec<_> = executables?;
        Ok(Arc::new(Self { graph, donations, executables }))
    }
}

/// Calls a function with each number below `count`, on one thread per processor.
fn side_by_side<T: Send>(
    count: usize,
    function: &(dyn Fn(usize) -> Result<T> + Sync),
) -> Result<Vec<T>> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(count);
    let work = |first: usize| {
        let own = (first..count).step_by(threads);
        own.map(|index| function(index).map(|value| (index, value))).collect::<Result<Vec<_>>>()
    };
    let parts = thread::scope(|scope| {
        let helpers: Vec<_> = (1..threads).map(|first| scope.spawn(move || work(first))).collect();
        let own = work(0);
        let others = helpers.into_iter().map(|helper| match helper.join() {
            Ok(part) => part,
            Err(payload) => std::panic::resume_unwind(payload),
        });
        std::iter::once(own).chain(others).collect::<Result<Vec<_>>>()
    })?;
    let mut all: Vec<(usize, T)> = parts.into_iter().flatten().collect();
    all.sort_by_key(|&(index, _)| index);
    Ok(all.into_iter().map(|(_, value)| value).collect())
}

impl Executable for StagedExecutable {
    fn run(&self, inputs: &[&RawTensor], context: &RunContext<'_>) -> Result<Vec<RawTensor>> {
        let inputs = inputs.iter().map(|&input| input.clone()).collect();
        let hooks = context.hooks;
        let run = |stage: StageId, values: Vec<RawTensor>, interrupt: &Interrupt<'_>| {
            let _span = profile::span_with(Work::Stage, || stage.to_string().into());
            let kept: &[usize] = &self.donations.of_stage(stage).kept;
            let interrupt = Some(interrupt);
            let context = RunContext { hooks, interrupt, own_hooks: &[], kept };
            self.executables[stage.index()].run(&values.iter().collect::<Vec<_>>(), &context)
        };
        let here = StageTarget { executor: None, is_local: &|_| true };
        run_all(&self.graph, inputs, &here, &run, context.interrupt)
    }

    /// The bytes besides the stages, which the cache counts separately.
    fn byte_size(&self) -> usize {
        let stages = self.graph.stages().iter();
        stages.map(|stage| program_bytes(&stage.program, NODE_BYTES)).sum()
    }
}
