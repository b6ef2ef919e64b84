//! Programs that the evaluator has done before a plugin is through with being called.
//!
//! A call of a plugin takes some three microseconds beside its work, and XLA wakes its threads for what
//! the evaluator does on one. On a CPU, where both compute in the same memory, programs whose work is
//! little are the evaluator's: they take a third of the time, and are not compiled at all. Which
//! those are is estimated from the program alone, so that it is the same ones in every run.

use std::sync::{Arc, OnceLock};

use nxla_expr::Program;
use nxla_split::{Speed, seconds_of};

use super::executable::has_loops;
use super::settings::compile_above;
use super::{Target, compiled};
use crate::analysis::Analysis;
use crate::compiler::{CompileRequest, Compiler, Executable, RunContext};
use crate::error::Result;
use crate::evaluator::Evaluator;
use crate::options::Settings;
use crate::substitute::Substitute;
use crate::tensor::Tensor;

/// What the evaluator does in a second, to the order of magnitude. What is fused takes less, so most
/// estimates are above what is measured.
const EVALUATOR: Speed = Speed { flops: 1e10, bytes: 3e10, overhead: 1e-7 };

/// The evaluator's executable of a small program.
pub(super) struct Small {
    substitute: Substitute,
    target: Target,
    program: Arc<Program>,
    settings: Settings,
    listeners: Vec<Arc<str>>,
    donated: Vec<bool>,
    /// What XLA would make of it, once somebody has asked.
    analysis: OnceLock<Analysis>,
}

impl Small {
    /// The executable of what is asked for, if the program is small.
    ///
    /// # Errors
    /// A setting that is no number, or has no meaning on the device.
    pub(super) fn of(request: &CompileRequest<'_>, target: &Target) -> Result<Option<Self>> {
        let limit = compile_above(request.settings, target)?;
        if limit == 0.0 || !is_done_within(limit, request.program) {
            return Ok(None);
        }
        let plain = CompileRequest { settings: &Settings::new(), device: None, ..*request };
        let (evaluator, home) = (Evaluator.compile(&plain)?, target.device()?);
        Ok(Some(Self {
            substitute: Substitute::new(evaluator, home, request.program, request.donated),
            target: target.clone(),
            program: request.program.clone(),
            settings: request.settings.clone(),
            listeners: request.listeners.to_vec(),
            donated: request.donated.to_vec(),
            analysis: OnceLock::new(),
        }))
    }
}

/// Whether the evaluator does a program within so many seconds. Loops are the compiler's, whose trips
/// take a tenth of the evaluator's; those of a block that it has an algorithm for are not run.
fn is_done_within(limit: f64, program: &Program) -> bool {
    !has_loops(program, |kind| !kind.has_algorithm())
        && seconds_of(program, &EVALUATOR).is_some_and(|seconds| seconds <= limit)
}

impl Executable for Small {
    fn run(&self, inputs: &[&Tensor], context: &RunContext<'_>) -> Result<Vec<Tensor>> {
        self.substitute.run(inputs, context)
    }

    fn byte_size(&self) -> usize {
        self.substitute.byte_size()
    }

    /// What XLA would make of it.
    fn analysis(&self) -> Result<Analysis> {
        if let Some(known) = self.analysis.get() {
            return Ok(known.clone());
        }
        let Self { target, program, settings, listeners, donated, .. } = self;
        let request = CompileRequest { program, settings, listeners, donated, device: None };
        let found = compiled(&request, target.clone())?.analysis()?;
        Ok(self.analysis.get_or_init(|| found).clone())
    }
}
