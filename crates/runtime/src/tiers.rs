//! Calls that the evaluator does as long as a slow compiler has not compiled.
//!
//! XLA takes a hundred times as long to compile a model as the evaluator takes to run it once. With the
//! setting `compile_after` the first calls of a jitted function are the evaluator's, and XLA compiles
//! on a thread of its own during the last of them. Whose call it is follows from its number alone, and
//! not from how long compiling takes: a program that is run again gives the same numbers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use nxla_expr::Program;

use crate::analysis::Analysis;
use crate::background;
use crate::compiler::{Executable, Purpose, RunContext, compiler_named};
use crate::error::Result;
use crate::forks::no_fork;
use crate::options::{COMPILE_AFTER, Engine, Options};
use crate::program::{compile_for, compile_to};
use crate::substitute::Substitute;
use crate::tensor::Tensor;

/// An executable of two tiers.
pub(crate) struct Tiered {
    first: Substitute,
    later: Arc<Later>,
    /// How many calls are the evaluator's.
    after: u64,
    /// How many calls have begun, up to that number.
    begun: AtomicU64,
}

/// What the compiler is given, and what it has made of it.
struct Later {
    program: Arc<Program>,
    options: Options,
    engine: Engine,
    donated: Vec<bool>,
    compiled: OnceLock<Arc<dyn Executable>>,
}

impl Later {
    /// The compiler's executable, waited for if it is being compiled. A failure is not remembered:
    /// whoever needs the executable next gets it as an error.
    fn get(&self, context: &RunContext<'_>) -> Result<&Arc<dyn Executable>> {
        if let Some(executable) = self.compiled.get() {
            return Ok(executable);
        }
        let Later { program, options, engine, donated, .. } = self;
        let (purpose, interrupt) = (Purpose::Jit, context.interrupt);
        let executable = compile_to(purpose, program, options, engine, donated, interrupt)?;
        let _no_fork = no_fork();
        Ok(self.compiled.get_or_init(|| executable))
    }
}

impl Tiered {
    /// What runs the calls of a jitted function; `None` if the compiler is to do all of them.
    ///
    /// # Errors
    /// Settings that there are not; a device that there is not.
    pub(crate) fn of(
        program: &Arc<Program>,
        options: &Options,
        engine: &Engine,
        donated: &[bool],
    ) -> Result<Option<Self>> {
        let after = engine.compiler.evaluated_calls(&options.settings)?;
        if after == 0 {
            return Ok(None);
        }
        // Which hooks are called is known now; the functions come with each call.
        let listening = Options::listening(options.hooks.keys());
        let evaluator = Engine { compiler: compiler_named("evaluator")?, device: None };
        let evaluated = compile_for(program, &listening, &evaluator, &[], None)?;
        let mut settings = options.settings.clone();
        settings.remove(COMPILE_AFTER);
        let home = match &engine.device {
            Some(device) => device.clone(),
            None => engine.compiler.device(&settings)?,
        };
        let (stages, progress) = (options.stages.clone(), options.progress.clone());
        let later = Later {
            program: program.clone(),
            options: Options { settings, stages, progress, ..listening },
            engine: engine.clone(),
            donated: donated.to_vec(),
            compiled: OnceLock::new(),
        };
        let first = Substitute::new(evaluated, home, program, donated);
        let begun = AtomicU64::new(0);
        Ok(Some(Self { first, later: Arc::new(later), after, begun }))
    }
}

impl Executable for Tiered {
    fn run(&self, inputs: &[&Tensor], context: &RunContext<'_>) -> Result<Vec<Tensor>> {
        let one_more = |begun: u64| (begun < self.after).then_some(begun + 1);
        let order = Ordering::Relaxed;
        let Ok(before) = self.begun.fetch_update(order, order, one_more) else {
            return self.later.get(context)?.run(inputs, context);
        };
        if before + 1 == self.after {
            let later = self.later.clone();
            // What it could not compile is compiled again by the next call, which says why.
            background::start("nxla compile", move || {
                let _ = later.get(&RunContext::default());
            })?;
        }
        self.first.run(inputs, context)
    }

    fn byte_size(&self) -> usize {
        let compiled = self.later.compiled.get().map_or(0, |executable| executable.byte_size());
        self.first.byte_size() + compiled
    }

    fn analysis(&self) -> Result<Analysis> {
        self.later.get(&RunContext::default())?.analysis()
    }
}
