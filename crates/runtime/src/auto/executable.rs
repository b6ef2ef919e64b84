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
use crate::options::{Engine, Options, Settings};
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
    /// The evaluator's executable, if it runs any calls.
    evaluator: Option<ExecutableHandle>,
    /// XLA's executable, which is compiled when it is needed.
    xla: Option<Arc<ExecutableHandle>>,
    /// The number of calls so far, up to the number that the evaluator runs.
    begun: AtomicU64,
}

const CHOSEN: &str = "a backend is made before the policy selects it";

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
        let evaluator = match decision.choice {
            Choice::Xla => None,
            Choice::Evaluator | Choice::Tiers(_) => {
                let options = backend_options(options, Settings::new());
                let engine = Engine { compiler: compiler_named("evaluator")?, device: None };
                let handle = ExecutableHandle::new_lazy(program, &options, &engine, &[]);
                handle.load(interrupt)?;
                Some(handle)
            }
        };
        let xla = match (&decision.choice, &results_device) {
            (Choice::Evaluator, None) => None,
            (_, Some(results_device)) if results_device.is_host() => None,
            _ => {
                // XLA checks flags when it compiles, which a later call does, or none.
                if decision.choice != Choice::Xla {
                    xla::check_flags(&settings, device)?;
                }
                let options = backend_options(options, settings);
                let engine = Engine { compiler: compiler_named("xla")?, device: device.cloned() };
                Some(Arc::new(ExecutableHandle::new_lazy(program, &options, &engine, donated)))
            }
        };
        if decision.choice == Choice::Xla {
            xla.as_ref().expect(CHOSEN).load(interrupt)?;
        }
        let (results_device, begun) = (results_device.unwrap_or(Device::HOST), AtomicU64::new(0));
        let program = program.clone();
        Ok(Self { program, decision, results_device, evaluator, xla, begun })
    }

    /// Counts a call of the evaluator; returns its number, counted from 1, or `None` if XLA runs
    /// it.
    fn count(&self, after: u64) -> Option<u64> {
        let one_more = |begun: u64| (begun < after).then_some(begun + 1);
        let order = Ordering::Relaxed;
        self.begun.fetch_update(order, order, one_more).ok().map(|before| before + 1)
    }

    /// The handle of the next call.
    fn next(&self) -> &ExecutableHandle {
        let by_evaluator = match self.decision.choice {
            Choice::Evaluator => true,
            Choice::Xla => false,
            Choice::Tiers(after) => self.begun.load(Ordering::Relaxed) < after,
        };
        if by_evaluator { self.evaluator.as_ref() } else { self.xla.as_deref() }.expect(CHOSEN)
    }

    fn run_on_xla(
        &self,
        inputs: &[&RawTensor],
        context: &RunContext<'_>,
    ) -> Result<Vec<RawTensor>> {
        self.xla.as_ref().expect(CHOSEN).run(inputs, context)
    }

    /// Runs on the evaluator, and moves the results to the device.
    fn run_on_evaluator(
        &self,
        inputs: &[&RawTensor],
        context: &RunContext<'_>,
    ) -> Result<Vec<RawTensor>> {
        let results = self.evaluator.as_ref().expect(CHOSEN).run(inputs, context)?;
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

    fn start_compilation(&self) {
        let xla = self.xla.as_ref().expect(CHOSEN).clone();
        // If the thread does not start or the compilation fails, the next call compiles and returns
        // the error. This call does not need XLA.
        let _ = background::start("nxla compile", move || {
            let _ = xla.load(None);
        });
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
        match self.decision.choice {
            Choice::Evaluator => self.run_on_evaluator(inputs, context),
            Choice::Xla => self.run_on_xla(inputs, context),
            Choice::Tiers(after) => match self.count(after) {
                None => self.run_on_xla(inputs, context),
                Some(call) => {
                    if call == after {
                        self.start_compilation();
                    }
                    self.run_on_evaluator(inputs, context)
                }
            },
        }
    }

    fn byte_size(&self) -> usize {
        let evaluator = self.evaluator.as_ref().map_or(0, ExecutableHandle::byte_size);
        evaluator + self.xla.as_ref().map_or(0, |xla| xla.byte_size())
    }

    /// XLA's analysis of the program, also while the evaluator runs it.
    fn analysis(&self) -> Result<Analysis> {
        match &self.xla {
            Some(xla) => xla.analysis(),
            None => Ok(Analysis::default()),
        }
    }

    fn is_loaded(&self) -> bool {
        self.next().is_loaded() || self.evaluator.as_ref().is_some_and(ExecutableHandle::is_loaded)
    }

    fn explain(&self) -> Option<Explanation> {
        let call = self.begun.load(Ordering::Relaxed) + 1;
        let mut explanation = self.next().explain(self.decision.explain(call), &self.program);
        let others = [self.evaluator.as_ref(), self.xla.as_deref()];
        for handle in others.into_iter().flatten() {
            explanation.measured.extend(handle.measured_seconds());
        }
        Some(explanation)
    }
}
