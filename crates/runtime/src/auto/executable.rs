//! The executable of `auto`: a program on the backend that the policy chooses for each call.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nxla_eval::Interrupt;
use nxla_expr::Program;

use super::explain::Explanation;
use super::policy::{Choice, Decision, Limits, decide, xla_settings};
use crate::analysis::Analysis;
use crate::background;
use crate::compiler::{Executable, Purpose, RunContext, compiler_named};
use crate::device::Device;
use crate::error::Result;
use crate::options::{ExecutionTarget, Options, Settings};
use crate::program::ExecutableHandle;
use crate::tensor::RawTensor;
use crate::xla;

/// A program that the evaluator or XLA runs, by the number of the call. Both backends return results on the
/// same device.
pub(crate) struct AutoExecutable {
    program: Arc<Program>,
    decision: Decision,
    /// The device that holds the results.
    results_device: Device,
    backends: Backends,
}

/// The executables of the backends that run calls.
enum Backends {
    Evaluator {
        evaluator: ExecutableHandle,
        /// XLA's executable for an analysis, which compiles it; `None` without a device of XLA.
        analyzed: Option<ExecutableHandle>,
    },
    Xla(ExecutableHandle),
    Tiers(Tiers),
}

/// The evaluator for the first calls, and XLA for the following ones.
struct Tiers {
    evaluator: ExecutableHandle,
    /// It is compiled when it is needed.
    xla: Arc<ExecutableHandle>,
    /// The number of calls that the evaluator runs.
    after: u64,
    /// The number of calls so far, up to `after`.
    begun: AtomicU64,
}

impl Tiers {
    /// The handle of the next call.
    fn next(&self) -> &ExecutableHandle {
        if self.begun.load(Ordering::Relaxed) < self.after { &self.evaluator } else { &self.xla }
    }

    /// Counts a call of the evaluator, and starts the compilation for XLA with its last call. Returns
    /// `true` if the evaluator runs the call.
    fn begin_call_of_evaluator(&self) -> bool {
        let one_more = |begun: u64| (begun < self.after).then_some(begun + 1);
        let order = Ordering::Relaxed;
        let before = self.begun.fetch_update(order, order, one_more);
        if before.is_ok_and(|before| before + 1 == self.after) {
            let xla = self.xla.clone();
            // If the thread does not start or the compilation fails, the next call compiles and
            // returns the error. This call does not need XLA.
            let _ = background::start("nxla compile", move || {
                let _ = xla.load(None);
            });
        }
        before.is_ok()
    }
}

impl AutoExecutable {
    /// Chooses the backends of a program and compiles for the one that runs the first call.
    ///
    /// # Errors
    /// Returns an error for invalid settings or an invalid device, and errors of the backend.
    pub(crate) fn new(
        purpose: Purpose,
        program: &Arc<Program>,
        options: &Options,
        device: Option<&Device>,
        donated: &[bool],
        interrupt: Option<&Interrupt<'_>>,
    ) -> Result<Self> {
        let settings = xla_settings(&options.settings);
        let results_device = results_device(&settings, device)?;
        let limits = Limits::of(&options.settings)?;
        let decision = decide(program, limits, results_device.as_ref(), purpose)?;
        let results_device = results_device.unwrap_or(Device::HOST);
        let evaluator = || {
            let options = backend_options(options, Settings::new());
            let target = ExecutionTarget { compiler: compiler_named("evaluator")?, device: None };
            let handle = ExecutableHandle::new_lazy(program, &options, &target, &[]);
            handle.load(interrupt).map(|()| handle)
        };
        let xla = || -> Result<ExecutableHandle> {
            // XLA checks flags when it compiles, which a later call does, or none.
            if decision.choice != Choice::Xla {
                xla::check_flags(&settings, device)?;
            }
            let options = backend_options(options, settings.clone());
            let target =
                ExecutionTarget { compiler: compiler_named("xla")?, device: device.cloned() };
            Ok(ExecutableHandle::new_lazy(program, &options, &target, donated))
        };
        let backends = match decision.choice {
            Choice::Evaluator => {
                let evaluator = evaluator()?;
                let analyzed = (!results_device.is_host()).then(xla).transpose()?;
                Backends::Evaluator { evaluator, analyzed }
            }
            Choice::Xla => {
                let xla = xla()?;
                xla.load(interrupt)?;
                Backends::Xla(xla)
            }
            Choice::Tiers(after) => {
                let (evaluator, xla) = (evaluator()?, Arc::new(xla()?));
                Backends::Tiers(Tiers { evaluator, xla, after, begun: AtomicU64::new(0) })
            }
        };
        Ok(Self { program: program.clone(), decision, results_device, backends })
    }

    /// The handle of the next call.
    fn next(&self) -> &ExecutableHandle {
        match &self.backends {
            Backends::Evaluator { evaluator, .. } => evaluator,
            Backends::Xla(xla) => xla,
            Backends::Tiers(tiers) => tiers.next(),
        }
    }

    /// The handles of the evaluator and of XLA.
    fn handles(&self) -> [Option<&ExecutableHandle>; 2] {
        match &self.backends {
            Backends::Evaluator { evaluator, analyzed } => [Some(evaluator), analyzed.as_ref()],
            Backends::Xla(xla) => [None, Some(xla)],
            Backends::Tiers(tiers) => [Some(&tiers.evaluator), Some(&tiers.xla)],
        }
    }

    /// Runs on the evaluator, and moves the results to the device.
    fn run_on_evaluator(
        &self,
        evaluator: &ExecutableHandle,
        inputs: &[&RawTensor],
        context: &RunContext<'_>,
    ) -> Result<Vec<RawTensor>> {
        let results = evaluator.run(inputs, context)?;
        if self.results_device.is_host() {
            return Ok(results);
        }
        // `collect` into a `Result` does not reserve the vector's memory, because its iterator has no lower
        // size bound.
        let mut on_device = Vec::with_capacity(results.len());
        for result in &results {
            on_device.push(result.adopt_on(&self.results_device)?);
        }
        Ok(on_device)
    }
}

/// Returns the options of a backend: hooks are listened to, and their functions come with each
/// call.
fn backend_options(options: &Options, settings: Settings) -> Options {
    let (stages, progress) = (options.stages.clone(), options.progress.clone());
    Options { settings, stages, progress, ..Options::with_hook_names(options.hooks.keys()) }
}

/// Returns the device that results of `auto` live on; `None` if no plugin is installed.
///
/// # Errors
/// Returns an error for invalid settings, and errors of the plugin.
pub(super) fn results_device(
    settings: &Settings,
    device: Option<&Device>,
) -> Result<Option<Device>> {
    match device {
        Some(device) if device.is_host() => Ok(Some(Device::HOST)),
        device => xla::installed_device(settings, device),
    }
}

impl Executable for AutoExecutable {
    fn run(&self, inputs: &[&RawTensor], context: &RunContext<'_>) -> Result<Vec<RawTensor>> {
        match &self.backends {
            Backends::Evaluator { evaluator, .. } => {
                self.run_on_evaluator(evaluator, inputs, context)
            }
            Backends::Xla(xla) => xla.run(inputs, context),
            Backends::Tiers(tiers) if tiers.begin_call_of_evaluator() => {
                self.run_on_evaluator(&tiers.evaluator, inputs, context)
            }
            Backends::Tiers(tiers) => tiers.xla.run(inputs, context),
        }
    }

    fn byte_size(&self) -> usize {
        self.handles().into_iter().flatten().map(ExecutableHandle::byte_size).sum()
    }

    /// XLA's analysis of the program, also while the evaluator runs it.
    fn analysis(&self) -> Result<Analysis> {
        let [_, xla] = self.handles();
        xla.map_or_else(|| Ok(Analysis::default()), ExecutableHandle::analysis)
    }

    fn is_loaded(&self) -> bool {
        let [evaluator, _] = self.handles();
        self.next().is_loaded() || evaluator.is_some_and(ExecutableHandle::is_loaded)
    }

    fn explain(&self) -> Option<Explanation> {
        let begun = match &self.backends {
            Backends::Tiers(tiers) => tiers.begun.load(Ordering::Relaxed),
            Backends::Evaluator { .. } | Backends::Xla(_) => 0,
        };
        let mut explanation = self.next().explain(self.decision.explain(begun + 1), &self.program);
        for handle in self.handles().into_iter().flatten() {
            explanation.measured.extend(handle.measured_seconds());
        }
        Some(explanation)
    }
}
