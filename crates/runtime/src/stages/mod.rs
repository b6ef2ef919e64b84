//! Runs of a split program: independent stages run concurrently, on threads of this process or on an
//! executor.
//!
//! The stages run on the device of the operands, like the whole program. A stage whose hooks have a
//! listener always runs in this process, because functions cannot be sent.

mod donation;
mod drive;
mod staged;
#[cfg(test)]
mod tests;
mod threads;

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nxla_eval::{EvalError, Interrupt};
use nxla_expr::Program;
use nxla_split::{Stage, StageGraph, StageId, StageScheduler};
use rustc_hash::FxHashSet;

use self::donation::StageDonations;
use self::drive::{Stop, drive};
use self::threads::with_threads;
use crate::background::interruption;
use crate::compiler::Purpose;
use crate::donation::RunDonation;
use crate::error::{Error, Result};
use crate::options::{Options, Progress, default_options};
use crate::profile::{self, Work};
use crate::program::{compile_for, run_on_backend};
use crate::tensor::RawTensor;

pub(crate) use self::staged::StagedExecutable;

/// The handle that reports the results of a stage; see [`StageExecutor`].
pub type Done = drive::Completion<RawTensor>;

/// Runs stages somewhere else: in other threads, processes or machines.
///
/// ```
/// use nxla::runtime::{Done, RawTensor, run_program};
/// use nxla::split::{Policy, Stage};
/// use nxla::{DType, Expr, Options, Result, StageExecutor, TensorType, jit};
///
/// /// Runs each stage on the calling thread.
/// struct Here;
///
/// impl StageExecutor for Here {
///     fn submit(&self, stage: &Stage, inputs: Vec<RawTensor>, done: Done) -> Result<()> {
///         let inputs: Vec<&RawTensor> = inputs.iter().collect();
///         let results = run_program("stage", &stage.program, &Options::new(), &inputs, None);
///         done.end(move || results);
///         Ok(())
///     }
/// }
///
/// let f = jit(|x: Expr| x.sin().cos());
/// let stages = f.stages(&TensorType::scalar(DType::F32), &Policy::EveryOps(1))?;
/// assert_eq!(stages.run_on(&Here, 0.0f32)?.item::<f32>()?, 1.0);
/// # Ok::<(), nxla::Error>(())
/// ```
pub trait StageExecutor: Sync {
    /// Starts a stage on one tensor for each of its arguments. Any thread passes the results to `done`.
    /// If `done` is dropped instead, the stage has failed.
    ///
    /// # Errors
    /// Returns an error if the stage cannot be started.
    fn submit(&self, stage: &Stage, inputs: Vec<RawTensor>, done: Done) -> Result<()>;
}

/// A split program, ready to run.
///
/// ```
/// use nxla::runtime::StageRunner;
/// use nxla::split::{Decision, split};
/// use nxla::{DType, Expr, Options, Tensor, TensorType, jit};
///
/// let f = jit(|x: Expr| x.sin().cos());
/// let (program, _) = f.trace(TensorType::scalar(DType::F32))?;
/// let graph = split(&program, |node| match node.op.name() {
///     "cos" => Decision::Before,
///     _ => Decision::None,
/// })?;
/// let stages = StageRunner::compile(graph, &Options::new())?;
/// assert_eq!(stages.graph().stages().len(), 2);
/// let results = stages.run_leaves(vec![Tensor::from(0.0f32).into_inner()], None, None)?;
/// assert_eq!(results[0].item()?.as_f64(), 1.0);
/// # Ok::<(), nxla::Error>(())
/// ```
pub struct StageRunner {
    graph: StageGraph,
    donations: StageDonations,
    options: Options,
}

impl fmt::Debug for StageRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StageRunner")
            .field("graph", &self.graph)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl StageRunner {
    /// Stages to be run under these options, on top of the defaults. Each is compiled when it runs
    /// for the first time, in the process in which it does.
    pub fn new(graph: StageGraph, options: &Options) -> Self {
        let donations = StageDonations::of(&graph, &[]);
        Self { graph, donations, options: options.over(&default_options()) }
    }

    /// Like [`StageRunner::new`], and compiles every stage for operands on the host unless the options select
    /// a device.
    ///
    /// # Errors
    /// Returns an error for an unknown compiler or setting, and errors of the compiler.
    pub fn compile(graph: StageGraph, options: &Options) -> Result<Self> {
        let stages = Self::new(graph, options);
        let target = stages.options.target(None)?;
        for stage in stages.graph.stages() {
            let donated = &stages.donations.of_stage(stage.id).marks;
            let (purpose, options) = (Purpose::Compile, &stages.options);
            compile_for(purpose, &stage.program, options, &target, donated, None)?;
        }
        Ok(stages)
    }

    /// The stages.
    pub fn graph(&self) -> &StageGraph {
        &self.graph
    }

    /// The current options.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Runs all stages on the inputs of the original program, and returns its outputs: on
    /// `executor`, or without one on threads of this process. A value is freed after the last stage
    /// that needs it, which reuses its memory if possible.
    ///
    /// # Errors
    /// Returns the first error of a stage, after which no other stage starts. Returns an error for a
    /// wrong number of inputs, for inputs on two devices, or if `interrupt` returns `true`.
    pub fn run_leaves(
        &self,
        inputs: Vec<RawTensor>,
        executor: Option<&dyn StageExecutor>,
        interrupt: Option<&Interrupt<'_>>,
    ) -> Result<Vec<RawTensor>> {
        let device = self.options.common_device("run", &inputs)?;
        let target = self.options.target(device.as_ref())?;
        let listening = self.calls_functions();
        let is_local = |stage: StageId| executor.is_none() || listening[stage.index()];
        let steps = self.graph.stages().len();
        let begin = |progress: &Progress| progress.begin("running stages", steps);
        let step = self.options.progress.as_ref().map(begin);
        let run = |stage: StageId, values: Vec<RawTensor>, interrupt: &Interrupt<'_>| {
            let (program, options) = (&self.graph.stage(stage).program, &self.options);
            let _span = profile::span_with(Work::Stage, || stage.to_string().into());
            let values: Vec<&RawTensor> = values.iter().collect();
            let donation = self.donations.of_stage(stage);
            let results =
                run_on_backend(program, options, &target, &values, donation, Some(interrupt));
            step.iter().for_each(|step| step());
            results
        };
        run_all(
            &self.graph,
            inputs,
            &StageTarget { executor, is_local: &is_local },
            &run,
            interrupt,
        )
    }

    /// Measures each stage separately: the shortest of `repeat` runs, one stage after the other.
    ///
    /// # Errors
    /// Returns the errors of [`StageRunner::run_leaves`].
    pub fn measure(
        &self,
        inputs: &[RawTensor],
        repeat: usize,
        interrupt: Option<&Interrupt<'_>>,
    ) -> Result<Vec<Duration>> {
        let target =
            self.options.target(self.options.common_device("measure", inputs)?.as_ref())?;
        let mut best = vec![Duration::MAX; self.graph.stages().len()];
        let mut schedule = StageScheduler::new(&self.graph, inputs.to_vec())?;
        while let Some(task) = schedule.next_ready() {
            let program = &self.graph.stage(task.stage).program;
            let values: Vec<&RawTensor> = task.arguments.iter().collect();
            let once = || {
                let begin = Instant::now();
                let none = RunDonation::default();
                let results =
                    run_on_backend(program, &self.options, &target, &values, &none, interrupt)?;
                for result in &results {
                    result.wait()?;
                }
                Ok::<_, Error>((begin.elapsed(), results))
            };
            // The first run includes compilation and is not measured.
            let (_, mut results) = once()?;
            for _ in 0..repeat.max(1) {
                let (time, again) = once()?;
                best[task.stage.index()] = best[task.stage.index()].min(time);
                results = again;
            }
            schedule.complete(task.stage, results)?;
        }
        Ok(best)
    }

    /// Returns for each stage whether it calls functions, and must therefore run in this process.
    pub fn calls_functions(&self) -> Vec<bool> {
        self.graph.stages().iter().map(|stage| self.listens(&stage.program)).collect()
    }

    /// Returns `true` if a program calls a function: the default function of a hook, a function in the
    /// options, or a runtime call.
    fn listens(&self, program: &Arc<Program>) -> bool {
        let any = Cell::new(false);
        let listens = |name: &str| {
            let listens = self.options.hooks.contains_key(name);
            any.set(any.get() || listens);
            listens
        };
        let detached = program.detach_hooks(&listens);
        any.get() || !detached.functions.is_empty()
    }
}

/// The executor of stages.
struct StageTarget<'a> {
    executor: Option<&'a dyn StageExecutor>,
    /// Returns `true` for a stage that runs in this process with any executor.
    is_local: &'a dyn Fn(StageId) -> bool,
}

/// Runs a stage in this process. The stage polls for interrupts.
type RunHere<'a> =
    dyn Fn(StageId, Vec<RawTensor>, &Interrupt<'_>) -> Result<Vec<RawTensor>> + Sync + 'a;

/// Runs all stages, in this process or on the executor, and returns the outputs of the program.
fn run_all(
    graph: &StageGraph,
    inputs: Vec<RawTensor>,
    target: &StageTarget<'_>,
    run_here: &RunHere<'_>,
    interrupt: Option<&Interrupt<'_>>,
) -> Result<Vec<RawTensor>> {
    let threads = threads::useful(graph, target.is_local, target.executor.is_some());
    let stop = Stop::new(interrupt);
    let stops = || if threads == 0 { stop.ask() } else { stop.is_set() };
    let run = |stage: StageId, values: Vec<RawTensor>| {
        // Another stage may have failed while this one waited for a thread.
        if stops() {
            return Err(interruption());
        }
        run_here(stage, values, &stops).map_err(|error| stage_error(graph.stage(stage), error))
    };
    with_threads(threads, &run, |threads| {
        let start = |stage: &Stage, values: Vec<RawTensor>, done: Done| match target.executor {
            Some(executor) if !(target.is_local)(stage.id) => executor.submit(stage, values, done),
            Some(_) | None => threads.start(stage.id, values, done),
        };
        drive(graph, inputs, start, check, &stop)
    })
}

/// Returns the error of a stage with its number and the user's lines.
fn stage_error(stage: &Stage, error: Error) -> Error {
    if matches!(error, Error::Eval(EvalError::Interrupted)) {
        return error;
    }
    let name = stage.name.as_deref().map(|name| format!(" ('{name}')")).unwrap_or_default();
    let stage = format!("{}{name}{}", stage.id, describe_lines(&stage.program));
    Error::Stage { stage, error: Box::new(error) }
}

/// The number of lines of a stage in an error.
const LINES: usize = 3;

/// Returns the user's lines of a stage at the end of its name in an error: `, from model.py:3`.
#[must_use]
pub fn describe_lines(program: &Program) -> String {
    let graph = program.graph();
    let mut lines: Vec<String> = Vec::new();
    let mut seen = FxHashSet::default();
    for line in graph.ids().filter_map(|id| graph.line(id)).map(|line| line.to_string()) {
        if seen.insert(line.clone()) {
            lines.push(line);
        }
    }
    if lines.is_empty() {
        return String::new();
    }
    let more = lines.len().saturating_sub(LINES);
    lines.truncate(LINES);
    if more > 0 {
        lines.push(format!("and {more} more lines"));
    }
    format!(", from {}", lines.join(", "))
}

/// Checks that results have the types of the program's outputs: an executor may return any values,
/// and later stages trust the types.
fn check(stage: &Stage, results: &[RawTensor]) -> Result<()> {
    for (position, (result, ty)) in results.iter().zip(stage.program.output_types()).enumerate() {
        if (result.dtype(), result.shape()) != (ty.dtype, &ty.shape) {
            let (id, found) = (stage.id, result.ty());
            let why = format!("result {position} of {id}: must be {ty}; got {found}");
            return Err(Error::Arguments { function: "stages".into(), why });
        }
    }
    Ok(())
}
