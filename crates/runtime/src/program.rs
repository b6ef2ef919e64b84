//! Executables of programs: found by what they compute, compiled if need be.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, Weak};

use nxla_eval::Interrupt;
use nxla_expr::{Detached, HostFn, Program};

use crate::analysis::Analysis;
use crate::cache::{CacheKey, CompilerKey, Found, Used, executables};
use crate::compiler::{CompileRequest, Executable, Purpose, RunContext};
use crate::error::{Error, Result};
use crate::forks::no_fork;
use crate::options::{Engine, Options, Progress};
use crate::profile::{self, Work};
use crate::stages::Staged;
use crate::tensor::Tensor;
use crate::tiers::Tiered;

/// Compiles a program, or finds the executable of an equal one, for operands on the host unless the
/// options say where to run.
///
/// Hooks are no part of that: an executable is shared by programs whose hooks have other
/// functions, and what this gives calls the functions of this very program.
///
/// `donated` marks inputs whose memory the outputs may take over; it is empty or has one entry
/// for each input.
///
/// # Errors
/// An unknown compiler or setting; what the compiler says of the program.
pub fn compile_program(
    program: &Arc<Program>,
    options: &Options,
    donated: &[bool],
) -> Result<Arc<dyn Executable>> {
    compile_for(program, options, &options.engine(None)?, donated, None)
}

/// Compiles a program for an engine, or finds the executable of an equal one.
///
/// `interrupt` is asked some twenty times a second while a slow compiler is waited for. The compiler
/// goes on when the wait ends, and the executable is there for the next who asks.
///
/// # Errors
/// As for [`compile_program`], and if `interrupt` answers `true`.
pub fn compile_for(
    program: &Arc<Program>,
    options: &Options,
    engine: &Engine,
    donated: &[bool],
    interrupt: Option<&Interrupt<'_>>,
) -> Result<Arc<dyn Executable>> {
    let job = Job::new(program, options, engine, donated);
    let found = job.clone().find(interrupt)?;
    Ok(Arc::new(Kept { job, current: RwLock::new(Current::of(&found)) }))
}

/// What a compiler gives for a purpose: its own answer, which nobody shares, or as [`compile_for`]. The
/// first calls of a jitted function may be the evaluator's.
///
/// # Errors
/// As for [`compile_for`].
pub(crate) fn compile_to(
    purpose: Purpose,
    program: &Arc<Program>,
    options: &Options,
    engine: &Engine,
    donated: &[bool],
    interrupt: Option<&Interrupt<'_>>,
) -> Result<Arc<dyn Executable>> {
    if purpose == Purpose::Jit
        && let Some(tiered) = Tiered::of(program, options, engine, donated)?
    {
        return Ok(Arc::new(tiered));
    }
    let listeners: Vec<Arc<str>> = options.hooks.keys().cloned().collect();
    let request = CompileRequest {
        program,
        settings: &options.settings,
        listeners: &listeners,
        donated,
        device: engine.device.as_ref(),
    };
    let own = match purpose {
        // A compiler's own way is for programs that come as they are.
        _ if options.stages.is_some() => None,
        Purpose::Jit => engine.compiler.jit(&request),
        Purpose::Compile => None,
        Purpose::Stream => engine.compiler.stream(&request),
    };
    own.unwrap_or_else(|| compile_for(program, options, engine, donated, interrupt))
}

/// Runs a program once where its inputs live, or where the options say.
///
/// # Errors
/// Inputs on two devices; as for [`compile_for`]; what goes wrong in the run.
pub fn run_program(
    function: &str,
    program: &Arc<Program>,
    options: &Options,
    inputs: &[&Tensor],
    interrupt: Option<&Interrupt<'_>>,
) -> Result<Vec<Tensor>> {
    let place = options.place_of(function, inputs.iter().copied())?;
    let none = (&[][..], &[][..]);
    run_on(program, options, &options.engine(place.as_ref())?, inputs, none, interrupt)
}

/// Runs a program once on an engine. The executable takes over the memory of donated inputs, but for
/// those that are kept.
///
/// # Errors
/// As for [`compile_for`]; what goes wrong in the run.
pub(crate) fn run_on(
    program: &Arc<Program>,
    options: &Options,
    engine: &Engine,
    inputs: &[&Tensor],
    (donated, kept): (&[bool], &[usize]),
    interrupt: Option<&Interrupt<'_>>,
) -> Result<Vec<Tensor>> {
    let job = Job::new(program, options, engine, donated);
    let executable = job.clone().find(interrupt)?.value;
    let own_hooks = &job.functions;
    let context =
        RunContext { hooks: Some(&options.hooks), own_hooks, kept, interrupt, caller: None };
    let results = executable.run(inputs, &context)?;
    check_count(program, &results)?;
    Ok(results)
}

/// Compilers are anyone's, and what they give goes into containers as it is.
///
/// # Errors
/// Another number of results than the program has.
pub(crate) fn check_count(program: &Program, results: &[Tensor]) -> Result<()> {
    let (found, expected) = (results.len(), program.outputs().len());
    if found == expected {
        return Ok(());
    }
    let why = format!(
        "an executable gave {found} results for a program of {expected}; its compiler is to blame"
    );
    Err(Error::Usage(why))
}

/// Something to compile, on whichever thread and whenever it is needed.
struct Job {
    key: CacheKey,
    engine: Engine,
    program: Arc<Program>,
    listeners: Vec<Arc<str>>,
    /// What the program's hooks call, if that is no part of the executable.
    functions: Vec<Arc<dyn HostFn>>,
    progress: Option<Progress>,
}

impl Job {
    fn new(
        program: &Arc<Program>,
        options: &Options,
        engine: &Engine,
        donated: &[bool],
    ) -> Arc<Self> {
        let listens = |name: &str| options.hooks.contains_key(name);
        let Detached { program: detached, functions, pattern } = program.detach_hooks(&listens);
        // Stages are programs of their own, in which numbers of hooks of the whole mean nothing.
        let late = engine.compiler.resolves_hooks() && options.stages.is_none();
        let address = |function: &Arc<dyn HostFn>| Arc::as_ptr(function).cast::<()>() as usize;
        let key = CacheKey {
            digest: program.digest(),
            compiler: CompilerKey(engine.compiler.clone()),
            settings: options.settings.clone(),
            device: engine.device.clone(),
            hooks: pattern,
            functions: if late { Vec::new() } else { functions.iter().map(address).collect() },
            donated: donated.to_vec(),
            stages: options.stages.clone(),
        };
        Arc::new(Job {
            key,
            engine: engine.clone(),
            program: if late { detached } else { program.clone() },
            listeners: options.hooks.keys().cloned().collect(),
            functions: if late { functions } else { Vec::new() },
            progress: options.progress.clone(),
        })
    }

    /// The executable, compiled if it is not there.
    fn find(self: Arc<Self>, interrupt: Option<&Interrupt<'_>>) -> Result<Found> {
        let watch = interrupt.filter(|_| self.engine.compiler.compiles_elsewhere());
        let job = self.clone();
        executables().find(&self.key, move || job.compile(), watch)
    }

    fn compile(&self) -> Result<Arc<dyn Executable>> {
        let name = || format!("compile {}", &self.key.digest.to_string()[..8]).into();
        let _span = profile::span_with(Work::Compile, name)
            .detail("compiler", || self.engine.compiler.name().to_owned())
            .detail("nodes", || self.program.graph().len().to_string());
        if let Some(policy) = &self.key.stages {
            let stages = policy.split(&self.program)?;
            let options = self.options_of_stages();
            return Staged::compile(stages, &options, &self.engine, &self.key.donated);
        }
        self.engine.compiler.compile(&CompileRequest {
            program: &self.program,
            settings: &self.key.settings,
            listeners: &self.listeners,
            donated: &self.key.donated,
            device: self.engine.device.as_ref(),
        })
    }
}

impl Job {
    /// Options under which stages of the program are compiled, each as a program of its own.
    fn options_of_stages(&self) -> Options {
        let (settings, progress) = (self.key.settings.clone(), self.progress.clone());
        Options { settings, progress, ..Options::listening(&self.listeners) }
    }
}

/// An executable of the cache, with the functions that one program brings along for its hooks.
struct Kept {
    job: Arc<Job>,
    current: RwLock<Current>,
}

/// What the cache has given last. Only the cache keeps it alive.
struct Current {
    executable: Weak<dyn Executable>,
    used: Used,
}

impl Current {
    fn of(found: &Found) -> Self {
        Self { executable: Arc::downgrade(&found.value), used: found.used.clone() }
    }
}

impl Kept {
    fn current(&self) -> RwLockReadGuard<'_, Current> {
        self.current.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The executable, compiled again if the cache has dropped it.
    fn get(&self, interrupt: Option<&Interrupt<'_>>) -> Result<Arc<dyn Executable>> {
        let current = self.current();
        if let Some(executable) = current.executable.upgrade() {
            executables().touch(&current.used);
            return Ok(executable);
        }
        drop(current);
        let found = self.job.clone().find(interrupt)?;
        let _no_fork = no_fork();
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Current::of(&found);
        Ok(found.value)
    }
}

impl Executable for Kept {
    fn run(&self, inputs: &[&Tensor], context: &RunContext<'_>) -> Result<Vec<Tensor>> {
        let executable = self.get(context.interrupt)?;
        executable.run(inputs, &RunContext { own_hooks: &self.job.functions, ..*context })
    }

    fn byte_size(&self) -> usize {
        self.current().executable.upgrade().map_or(0, |executable| executable.byte_size())
    }

    fn analysis(&self) -> Result<Analysis> {
        self.get(None)?.analysis()
    }

    fn is_loaded(&self) -> bool {
        self.current().executable.strong_count() > 0
    }
}
