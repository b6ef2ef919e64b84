//! Executables of programs, which are compiled if no equal program has been compiled before.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, Weak};

use nxla_eval::Interrupt;
use nxla_expr::{DetachedProgram, HostFn, Program};

use crate::analysis::Analysis;
use crate::auto::{AutoExecutable, Explanation, Timing, estimate, is_auto};
use crate::cache::{CacheKey, CompilerKey, Found, Used, executables};
use crate::compiler::{CompileRequest, Compiler, Executable, Purpose, RunContext};
use crate::donation::RunDonation;
use crate::error::{Error, Result};
use crate::forks::no_fork;
use crate::options::{ExecutionTarget, Options, Progress};
use crate::profile::{self, Work};
use crate::stages::StagedExecutable;
use crate::tensor::RawTensor;

/// Compiles a program, or finds the executable of an equal one, for operands on the host unless the
/// options select a device.
///
/// Equality ignores the functions of hooks: programs with different functions share an executable,
/// and the handle calls the functions of this program.
///
/// `donated` marks inputs whose memory the outputs may reuse; it is empty or has one entry
/// for each input.
///
/// ```
/// use nxla::{DType, Expr, Options, RunContext, Tensor, TensorType, compile_program, jit};
///
/// let (program, _) = jit(|x: Expr| x * 2).trace(TensorType::scalar(DType::S32))?;
/// let executable = compile_program(&program, &Options::new(), &[])?;
/// let results = executable.run(&[&Tensor::from(4)], &RunContext::default())?;
/// assert_eq!(results[0].to_vec::<i32>()?, [8]);
/// # Ok::<(), nxla::Error>(())
/// ```
///
/// # Errors
/// Returns errors of the compiler and an error for an unknown compiler or setting.
pub fn compile_program(
    program: &Arc<Program>,
    options: &Options,
    donated: &[bool],
) -> Result<Arc<ExecutableHandle>> {
    compile_for(Purpose::Compile, program, options, &options.target(None)?, donated, None)
}

/// Compiles a program for a purpose, compiler and device, or finds the executable of an equal one.
/// A compiler may return an unshared executable for a purpose.
///
/// `interrupt` is polled some twenty times a second while the caller waits for a slow compiler. The
/// compiler continues when the wait ends, and the next caller finds the executable.
///
/// # Errors
/// Returns the errors of [`compile_program`], and an error if `interrupt` returns `true`.
pub fn compile_for(
    purpose: Purpose,
    program: &Arc<Program>,
    options: &Options,
    target: &ExecutionTarget,
    donated: &[bool],
    interrupt: Option<&Interrupt<'_>>,
) -> Result<Arc<ExecutableHandle>> {
    if is_auto(&*target.compiler) {
        let device = target.device.as_ref();
        let auto = AutoExecutable::new(purpose, program, options, device, donated, interrupt)?;
        return Ok(Arc::new(ExecutableHandle::own(Arc::new(auto), target)));
    }
    let listeners: Vec<Arc<str>> = options.hooks.keys().cloned().collect();
    let request = CompileRequest {
        program,
        settings: &options.settings,
        listeners: &listeners,
        donated,
        device: target.device.as_ref(),
    };
    // An own executable runs the whole program, without stages.
    if options.stages.is_none()
        && let Some(own) = target.compiler.own_executable(purpose, &request)
    {
        return Ok(Arc::new(ExecutableHandle::own(own?, target)));
    }
    let handle = ExecutableHandle::new_lazy(program, options, target, donated);
    handle.load(interrupt)?;
    Ok(Arc::new(handle))
}

/// Runs a program once on the device of its inputs, or on the device in the options.
///
/// ```
/// use nxla::runtime::run_program;
/// use nxla::{DType, Expr, Options, Tensor, TensorType, jit};
///
/// let (program, _) = jit(|x: Expr| x * 2).trace(TensorType::scalar(DType::S32))?;
/// let results = run_program("double", &program, &Options::new(), &[&Tensor::from(4)], None)?;
/// assert_eq!(results[0].to_vec::<i32>()?, [8]);
/// # Ok::<(), nxla::Error>(())
/// ```
///
/// # Errors
/// Returns an error for inputs on two devices, errors of [`compile_for`], and errors of the run.
pub fn run_program(
    function: &str,
    program: &Arc<Program>,
    options: &Options,
    inputs: &[&RawTensor],
    interrupt: Option<&Interrupt<'_>>,
) -> Result<Vec<RawTensor>> {
    let device = options.common_device(function, inputs.iter().copied())?;
    let target = options.target(device.as_ref())?;
    run_on_backend(program, options, &target, inputs, &RunDonation::default(), interrupt)
}

/// Runs a program once with a compiler and on a device.
///
/// # Errors
/// Returns the errors of [`compile_for`] and of the run.
pub(crate) fn run_on_backend(
    program: &Arc<Program>,
    options: &Options,
    target: &ExecutionTarget,
    inputs: &[&RawTensor],
    donation: &RunDonation,
    interrupt: Option<&Interrupt<'_>>,
) -> Result<Vec<RawTensor>> {
    let (purpose, donated) = (Purpose::Compile, &donation.marks);
    let handle = compile_for(purpose, program, options, target, donated, interrupt)?;
    let (hooks, kept) = (Some(&options.hooks), &*donation.kept);
    let context = RunContext { hooks, kept, interrupt, ..RunContext::default() };
    let results = handle.run(inputs, &context)?;
    check_count(program, &results)?;
    Ok(results)
}

/// Checks the number of results: a registered compiler may be wrong, and containers trust the
/// number.
///
/// # Errors
/// Returns an error for a wrong number of results.
pub(crate) fn check_count(program: &Program, results: &[RawTensor]) -> Result<()> {
    let (found, expected) = (results.len(), program.outputs().len());
    if found == expected {
        return Ok(());
    }
    let why = format!("the executable of a compiler must return {expected} results; got {found}");
    Err(Error::Usage(why))
}

/// A compilation that any thread can perform.
struct Job {
    key: CacheKey,
    target: ExecutionTarget,
    program: Arc<Program>,
    listeners: Vec<Arc<str>>,
    /// The functions of the program's hooks, if they are not part of the executable.
    functions: Vec<Arc<dyn HostFn>>,
    progress: Option<Progress>,
}

impl Job {
    fn new(
        program: &Arc<Program>,
        options: &Options,
        target: &ExecutionTarget,
        donated: &[bool],
    ) -> Arc<Self> {
        let listens = |name: &str| options.hooks.contains_key(name);
        let DetachedProgram { program: detached, functions, pattern } =
            program.detach_hooks(&listens);
        // Stages are separate programs, in which the numbers of the whole program's hooks are
        // invalid.
        let late = target.compiler.resolves_hooks() && options.stages.is_none();
        let address = |function: &Arc<dyn HostFn>| Arc::as_ptr(function).cast::<()>() as usize;
        let key = CacheKey {
            digest: program.digest(),
            compiler: CompilerKey(target.compiler.clone()),
            settings: options.settings.clone(),
            device: target.device.clone(),
            hooks: pattern,
            functions: if late { Vec::new() } else { functions.iter().map(address).collect() },
            donated: donated.to_vec(),
            stages: options.stages.clone(),
        };
        Arc::new(Job {
            key,
            target: target.clone(),
            program: if late { detached } else { program.clone() },
            listeners: options.hooks.keys().cloned().collect(),
            functions: if late { functions } else { Vec::new() },
            progress: options.progress.clone(),
        })
    }

    /// The executable, compiled if it is not there.
    fn find(self: Arc<Self>, interrupt: Option<&Interrupt<'_>>) -> Result<Found> {
        let watch = interrupt.filter(|_| self.target.compiler.compiles_elsewhere());
        let job = self.clone();
        executables().find(&self.key, move || job.compile(), watch)
    }

    fn compile(&self) -> Result<Arc<dyn Executable>> {
        let name = || format!("compile {}", &self.key.digest.to_string()[..8]).into();
        let _span = profile::span_with(Work::Compile, name)
            .detail("compiler", || self.target.compiler.name().to_owned())
            .detail("nodes", || self.program.graph().len().to_string());
        if let Some(policy) = &self.key.stages {
            let stages = policy.split(&self.program)?;
            // Each stage is compiled as a separate program.
            let (settings, progress) = (self.key.settings.clone(), self.progress.clone());
            let hooks = Options::with_hook_names(&self.listeners);
            let options = Options { settings, progress, ..hooks };
            return StagedExecutable::compile(stages, &options, &self.target, &self.key.donated);
        }
        self.target.compiler.compile(&CompileRequest {
            program: &self.program,
            settings: &self.key.settings,
            listeners: &self.listeners,
            donated: &self.key.donated,
            device: self.target.device.as_ref(),
        })
    }
}

/// A compiled program as its callers hold it, with the host functions of this program's hooks.
///
/// The cache alone keeps a shared executable alive. A handle finds it, and compiles it again if the
/// cache has dropped it.
pub struct ExecutableHandle {
    ownership: Ownership,
    timing: Timing,
}

impl fmt::Debug for ExecutableHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecutableHandle").finish_non_exhaustive()
    }
}

enum Ownership {
    /// An executable of the cache.
    Shared { job: Arc<Job>, current: RwLock<Option<Current>> },
    /// An executable that a compiler has created for this function only.
    Own { executable: Arc<dyn Executable>, compiler: Arc<dyn Compiler> },
}

/// The executable that the cache has returned last.
struct Current {
    executable: Weak<dyn Executable>,
    used: Used,
}

impl Current {
    fn of(found: &Found) -> Self {
        Self { executable: Arc::downgrade(&found.value), used: found.used.clone() }
    }
}

impl ExecutableHandle {
    /// Creates a handle of a program that is compiled in its first run or by
    /// [`ExecutableHandle::load`].
    pub(crate) fn new_lazy(
        program: &Arc<Program>,
        options: &Options,
        target: &ExecutionTarget,
        donated: &[bool],
    ) -> Self {
        let job = Job::new(program, options, target, donated);
        let ownership = Ownership::Shared { job, current: RwLock::default() };
        Self { ownership, timing: Timing::default() }
    }

    fn own(executable: Arc<dyn Executable>, target: &ExecutionTarget) -> Self {
        let ownership = Ownership::Own { executable, compiler: target.compiler.clone() };
        Self { ownership, timing: Timing::default() }
    }

    /// Compiles the program if the cache does not have it.
    ///
    /// # Errors
    /// Returns the errors of [`compile_for`].
    pub(crate) fn load(&self, interrupt: Option<&Interrupt<'_>>) -> Result<()> {
        self.get(interrupt).map(drop)
    }

    fn get(&self, interrupt: Option<&Interrupt<'_>>) -> Result<Arc<dyn Executable>> {
        let (job, current_lock) = match &self.ownership {
            Ownership::Shared { job, current } => (job, current),
            Ownership::Own { executable, .. } => return Ok(executable.clone()),
        };
        let current = read(current_lock);
        let known = current.as_ref().and_then(|current| {
            current.executable.upgrade().inspect(|_| executables().touch(&current.used))
        });
        drop(current);
        if let Some(executable) = known {
            return Ok(executable);
        }
        let found = job.clone().find(interrupt)?;
        let _no_fork = no_fork();
        *current_lock.write().unwrap_or_else(PoisonError::into_inner) = Some(Current::of(&found));
        Ok(found.value)
    }

    /// Returns the executable, if it is in memory.
    fn executable_in_memory(&self) -> Option<Arc<dyn Executable>> {
        match &self.ownership {
            Ownership::Shared { current, .. } => read(current).as_ref()?.executable.upgrade(),
            Ownership::Own { executable, .. } => Some(executable.clone()),
        }
    }

    /// Runs the program. Results may not be ready yet when this returns.
    ///
    /// # Errors
    /// Returns errors of [`Executable::run`], and of [`compile_for`] if the program is not compiled yet.
    pub fn run(&self, inputs: &[&RawTensor], context: &RunContext<'_>) -> Result<Vec<RawTensor>> {
        let executable = self.get(context.interrupt)?;
        let own_hooks = match &self.ownership {
            Ownership::Shared { job, .. } => &*job.functions,
            Ownership::Own { .. } => context.own_hooks,
        };
        let begun = self.timing.begin();
        let results = executable.run(inputs, &RunContext { own_hooks, ..*context })?;
        if let Some(begun) = begun {
            self.timing.end(begun, &results)?;
        }
        Ok(results)
    }

    /// The memory that the executable itself takes, in bytes; 0 if it is not in memory.
    pub fn byte_size(&self) -> usize {
        self.executable_in_memory().map_or(0, |executable| executable.byte_size())
    }

    /// The compiler's figures for cost and memory.
    ///
    /// # Errors
    /// Returns the errors of [`Executable::analysis`].
    pub fn analysis(&self) -> Result<Analysis> {
        self.get(None)?.analysis()
    }

    /// Returns `true` if the executable is in memory. Otherwise the next run compiles it.
    pub fn is_loaded(&self) -> bool {
        self.executable_in_memory().is_some_and(|executable| executable.is_loaded())
    }

    /// Explains which backend runs the next call; `reason` is why this compiler was chosen.
    pub(crate) fn explain(&self, reason: String, program: &Program) -> Explanation {
        self.own_explanation().unwrap_or_else(|| Explanation {
            backend: self.compiler().name().to_owned(),
            reason,
            estimated: estimate(program).seconds(),
            measured: self.measured_seconds().into_iter().collect(),
        })
    }

    /// The explanation of an executable that runs on several backends.
    fn own_explanation(&self) -> Option<Explanation> {
        match &self.ownership {
            Ownership::Shared { .. } => None,
            Ownership::Own { executable, .. } => executable.explain(),
        }
    }

    /// Returns the name of the compiler, and the least seconds of the first runs; `None` before the end
    /// of the first run.
    pub(crate) fn measured_seconds(&self) -> Option<(String, f64)> {
        Some((self.compiler().name().to_owned(), self.timing.least()?))
    }

    fn compiler(&self) -> &dyn Compiler {
        match &self.ownership {
            Ownership::Shared { job, .. } => &*job.target.compiler,
            Ownership::Own { compiler, .. } => &**compiler,
        }
    }

    /// The name of the backend that runs the next call.
    pub(crate) fn backend(&self) -> String {
        let explanation = self.own_explanation();
        explanation.map_or_else(|| self.compiler().name().to_owned(), |found| found.backend)
    }
}

fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}
