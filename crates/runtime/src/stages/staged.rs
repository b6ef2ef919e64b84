//! An executable that is made of stages: what a jitted function runs if it is cut by a policy.

use std::sync::Arc;
use std::thread;

use nxla_eval::Interrupt;
use nxla_split::{Source, StageGraph, StageId};

use super::{Where, run_all};
use crate::compiler::{Executable, RunContext};
use crate::error::Result;
use crate::options::{Engine, Options, Progress};
use crate::profile;
use crate::program::compile_for;
use crate::tensor::Tensor;

/// About what a node of a program takes, with its place in the table that finds it.
const NODE_BYTES: usize = 128;

/// Stages, each compiled by itself.
pub(crate) struct Staged {
    graph: StageGraph,
    /// One for each stage; stages with the same program share one.
    executables: Vec<Arc<dyn Executable>>,
}

impl Staged {
    /// Compiles stages, at the same time if the compiler can do that, and equal ones once.
    ///
    /// The memory of a donated input goes to the stage that takes it if no other does.
    ///
    /// # Errors
    /// What the compiler says of a stage.
    pub(crate) fn compile(
        graph: StageGraph,
        options: &Options,
        engine: &Engine,
        donated: &[bool],
    ) -> Result<Arc<dyn Executable>> {
        let donated = given_away(&graph, donated);
        let stages = 0..graph.stages().len();
        let begin = |progress: &Progress| progress.begin("compiling stages", stages.len());
        let step = options.progress.as_ref().map(begin);
        let compile = |stage: usize| {
            let program = &graph.stages()[stage].program;
            let compiled = compile_for(program, options, engine, &donated[stage], None);
            step.iter().for_each(|step| step());
            compiled
        };
        let executables = match engine.compiler.compiles_elsewhere() {
            true => side_by_side(stages.len(), &compile),
            false => stages.map(compile).collect(),
        };
        let executables: Vec<_> = executables?;
        Ok(Arc::new(Self { graph, executables }))
    }
}

/// For each stage which of its arguments nobody needs after it, among the donated inputs.
fn given_away(graph: &StageGraph, donated: &[bool]) -> Vec<Vec<bool>> {
    let mut uses = vec![0_usize; donated.len()];
    let arguments = graph.stages().iter().flat_map(|stage| &stage.arguments);
    for source in arguments.chain(graph.outputs()) {
        if let Source { stage: None, index } = *source {
            uses.get_mut(index).into_iter().for_each(|uses| *uses += 1);
        }
    }
    let is_given = |source: &Source| {
        source.stage.is_none()
            && donated.get(source.index) == Some(&true)
            && uses[source.index] == 1
    };
    let stages = graph.stages().iter().map(|stage| {
        let given: Vec<bool> = stage.arguments.iter().map(is_given).collect();
        if given.contains(&true) { given } else { Vec::new() }
    });
    stages.collect()
}

/// Calls a function with each number below `count`, on as many threads as there are processors.
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

impl Executable for Staged {
    fn run(&self, inputs: &[&Tensor], context: &RunContext<'_>) -> Result<Vec<Tensor>> {
        let inputs = inputs.iter().map(|&input| input.clone()).collect();
        let RunContext { hooks, caller, .. } = *context;
        let run = |stage: StageId, values: Vec<Tensor>, interrupt: &Interrupt<'_>| {
            let _span = profile::span_with("stage", || stage.to_string().into());
            let context = RunContext { hooks, caller, interrupt: Some(interrupt), own_hooks: &[] };
            self.executables[stage.index()].run(&values.iter().collect::<Vec<_>>(), &context)
        };
        let here = Where { executor: None, is_local: &|_| true };
        run_all(&self.graph, inputs, &here, &run, context.interrupt)
    }

    /// What is not counted with the stages, which the cache holds as well.
    fn byte_size(&self) -> usize {
        let nodes = self.graph.stages().iter().map(|stage| stage.program.graph().len());
        nodes.sum::<usize>() * NODE_BYTES
    }
}
