//! The interface of compilers: a compiler translates programs into executables.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use nxla_eval::Interrupt;
use nxla_expr::{HookOp, HostFn, Program, TensorType};

use crate::analysis::Analysis;
use crate::auto::{Auto, Explanation};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::evaluator::Evaluator;
use crate::options::{AUTO_SETTINGS, Options, Setting, Settings};
use crate::tensor::RawTensor;
use crate::xla;

/// Translates programs into executables. Register a compiler with [`register_compiler`].
///
/// ```
/// use std::sync::Arc;
///
/// use nxla::{CompileRequest, Compiler, Evaluator, Executable, Expr, Result, jit};
///
/// /// Prints the number of nodes of each program, which the evaluator then runs.
/// struct Counting;
///
/// impl Compiler for Counting {
///     fn name(&self) -> &str {
///         "counting"
///     }
///
///     fn compile(&self, request: &CompileRequest<'_>) -> Result<Arc<dyn Executable>> {
///         println!("{} nodes", request.program.graph().len());
///         Evaluator.compile(request)
///     }
/// }
///
/// let double = jit(|x: Expr| x * 2).compiler(Arc::new(Counting) as Arc<dyn Compiler>);
/// assert_eq!(double.call(4)?.item::<i32>()?, 8);
/// # Ok::<(), nxla::Error>(())
/// ```
pub trait Compiler: Any + Send + Sync {
    /// The name by which options select the compiler after registration, and which messages show.
    fn name(&self) -> &str;

    /// An identifier that no other live compiler has. Executables belong to one compiler, not to
    /// all compilers of its name.
    fn identity(&self) -> usize {
        std::ptr::from_ref(self).cast::<()>() as usize
    }

    /// Compiles a program.
    ///
    /// # Errors
    /// Returns an error for unknown settings or a program that the compiler does not support.
    fn compile(&self, request: &CompileRequest<'_>) -> Result<Arc<dyn Executable>>;

    /// The executable for a purpose, if it is not the result of `compile`: it may compile later, in
    /// steps, or never. `None`, the default, compiles and shares the executable with equal
    /// programs.
    ///
    /// # Errors
    /// Returns the errors of [`Compiler::compile`].
    fn own_executable(
        &self,
        purpose: Purpose,
        request: &CompileRequest<'_>,
    ) -> Option<Result<Arc<dyn Executable>>> {
        let _ = (purpose, request);
        None
    }

    /// Runs a function on a list of arguments for each partition, if the compiler does so itself.
    /// `None`, the default, runs list `k` with the settings of partition `k`; see
    /// [`Compiler::partitions`].
    ///
    /// # Errors
    /// Returns the errors of [`Compiler::compile`] and of the runs.
    fn run_lists(&self, request: &ListsRequest<'_>) -> Option<Result<Vec<Vec<RawTensor>>>> {
        let _ = request;
        None
    }

    /// Returns the settings for each independent device.
    /// [`Options::partitions`](crate::Options::partitions) calls this method.
    ///
    /// # Errors
    /// Returns an error for unknown settings.
    fn partitions(&self, settings: &Settings) -> Result<Vec<Settings>> {
        Ok(vec![settings.clone()])
    }

    /// Returns `true` if executables read the functions of hooks from [`RunContext::own_hooks`].
    ///
    /// In this case programs contain slot numbers instead of functions ([`HookOp::slot`]), and equal
    /// programs with different functions share an executable. Otherwise programs contain their
    /// functions, and a program with other functions is compiled again.
    fn resolves_hooks(&self) -> bool {
        false
    }

    /// Returns `true` if compilation can take long and works on any thread. A caller that can be
    /// interrupted then need not wait for its end.
    fn compiles_elsewhere(&self) -> bool {
        false
    }

    /// Checks that the compiler supports a device.
    ///
    /// # Errors
    /// Returns an error for a device that the compiler does not run on.
    fn check_device(&self, device: &Device) -> Result<()> {
        let name = self.name();
        Err(Error::Options(format!("compiler: {name:?} does not support the device {device}")))
    }

    /// Returns the device that holds the results with these settings, and on which new data is
    /// placed. The default is the host.
    ///
    /// # Errors
    /// Returns [`Error::Options`] for a setting that the compiler does not have.
    fn results_device(&self, settings: &Settings) -> Result<Device> {
        self.check_settings(settings)?;
        Ok(Device::HOST)
    }

    /// Checks settings when they are set, before a compilation and before the plugin is loaded. By
    /// default, a compiler checks settings when it compiles.
    ///
    /// # Errors
    /// Returns an error for unknown settings and invalid values.
    fn check_settings(&self, settings: &Settings) -> Result<()> {
        let _ = settings;
        Ok(())
    }
}

impl fmt::Debug for dyn Compiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compiler").field("name", &self.name()).finish_non_exhaustive()
    }
}

/// The purpose of a compilation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Purpose {
    /// The calls of a jitted function.
    Jit,
    /// The program is compiled for one signature before its first call.
    Compile,
    /// The steps of a stream. The inputs are a chunk and the state, the outputs a result and the new
    /// state.
    Stream,
}

/// A program to compile, with its settings. A compiler that wraps another one changes a copy.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CompileRequest<'a> {
    /// The program.
    pub program: &'a Arc<Program>,
    /// The compiler's settings.
    pub settings: &'a Settings,
    /// The names of hooks for which the call has functions. The executable omits other hooks without
    /// a default function.
    pub listeners: &'a [Arc<str>],
    /// The inputs whose memory the outputs may reuse; empty means none.
    pub donated: &'a [bool],
    /// The device to run on; `None` leaves the choice to the settings.
    pub device: Option<&'a Device>,
}

/// A function to be run on several partitions, and their arguments.
#[non_exhaustive]
pub struct ListsRequest<'a> {
    /// The number of the function, which does not depend on types: a cache of the results of `trace`
    /// needs `vars` in its key too.
    pub key: u64,
    /// The types of the arguments.
    pub vars: &'a [TensorType],
    /// Traces the function for these types. The tensors that it mentions are the last inputs of the
    /// program.
    pub trace: &'a dyn Fn() -> Result<(Arc<Program>, Vec<RawTensor>)>,
    /// The arguments for each partition, all of the types in `vars`.
    pub args_list: &'a [Vec<RawTensor>],
    /// The options of the call on top of the default options.
    pub options: &'a Options,
}

impl fmt::Debug for ListsRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListsRequest")
            .field("key", &self.key)
            .field("vars", &self.vars)
            .field("args_list", &self.args_list)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl<'a> ListsRequest<'a> {
    /// A request for the function of a key.
    pub fn new(
        key: u64,
        vars: &'a [TensorType],
        trace: &'a dyn Fn() -> Result<(Arc<Program>, Vec<RawTensor>)>,
        args_list: &'a [Vec<RawTensor>],
        options: &'a Options,
    ) -> Self {
        Self { key, vars, trace, args_list, options }
    }
}

impl CompileRequest<'_> {
    /// Returns `true` if the hook has a listener.
    pub fn listens(&self, hook: &HookOp) -> bool {
        let named = hook.listener_name().is_some_and(|name| self.listeners.contains(name));
        named || hook.has_function()
    }
}

/// A compiled program.
///
/// ```
/// use nxla::runtime::RawTensor;
/// use nxla::{Executable, Result, RunContext};
///
/// /// Returns its inputs.
/// struct Identity;
///
/// impl Executable for Identity {
///     fn run(&self, inputs: &[&RawTensor], _: &RunContext<'_>) -> Result<Vec<RawTensor>> {
///         Ok(inputs.iter().map(|&input| input.clone()).collect())
///     }
///
///     fn byte_size(&self) -> usize {
///         0
///     }
/// }
///
/// let x = RawTensor::from([1, 2]);
/// assert!(Identity.run(&[&x], &RunContext::default())?[0].is(&x));
/// # Ok::<(), nxla::Error>(())
/// ```
pub trait Executable: Send + Sync {
    /// Runs it. Results may not be ready yet when this returns.
    ///
    /// # Errors
    /// Returns errors of the run and an error for inputs whose types differ from the program's.
    fn run(&self, inputs: &[&RawTensor], context: &RunContext<'_>) -> Result<Vec<RawTensor>>;

    /// The memory that the executable itself takes, in bytes.
    fn byte_size(&self) -> usize;

    /// The compiler's figures for cost and memory of a run. The default has no figures.
    ///
    /// # Errors
    /// Returns errors of the compiler.
    fn analysis(&self) -> Result<Analysis> {
        Ok(Analysis::default())
    }

    /// Returns `true` if the executable is in memory. The next run compiles one that the cache has
    /// dropped again.
    fn is_loaded(&self) -> bool {
        true
    }

    /// Explains which backend runs the next call, if the executable has several; `None` by default.
    fn explain(&self) -> Option<Explanation> {
        None
    }
}

/// The context of one run: its hooks, caller and interrupt, none of them by default.
///
/// ```
/// use nxla::{Options, RunContext};
///
/// let options = Options::new().hook("loss", |_: &[nxla::HostTensor]| Ok(()));
/// assert!(RunContext::with_hooks(&options.hooks).hooks.is_some());
/// ```
#[derive(Clone, Copy, Default)]
#[non_exhaustive]
pub struct RunContext<'a> {
    /// Host functions for named hooks.
    pub hooks: Option<&'a BTreeMap<Arc<str>, Arc<dyn HostFn>>>,
    /// The functions that hooks of the program have, by [`HookOp::slot`]; [`compile_program`] fills
    /// them in.
    ///
    /// [`compile_program`]: crate::compile_program
    pub own_hooks: &'a [Arc<dyn HostFn>],
    /// The donated inputs whose memory this run must not reuse, although the executable can.
    pub kept: &'a [usize],
    /// Asked at each step of the evaluator, and some twenty times a second while a device is
    /// waited for; `true` stops the run.
    pub interrupt: Option<&'a Interrupt<'a>>,
}

impl fmt::Debug for RunContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunContext").field("kept", &self.kept).finish_non_exhaustive()
    }
}

impl<'a> RunContext<'a> {
    /// Creates a context with functions for named hooks.
    #[must_use]
    pub fn with_hooks(hooks: &'a BTreeMap<Arc<str>, Arc<dyn HostFn>>) -> Self {
        Self { hooks: Some(hooks), ..Self::default() }
    }
}

/// The compiler that options select.
///
/// ```
/// use std::sync::Arc;
///
/// use nxla::{Compiler, CompilerChoice, Evaluator};
///
/// let named = CompilerChoice::from("evaluator");
/// let instance = CompilerChoice::from(Arc::new(Evaluator) as Arc<dyn Compiler>);
/// assert_eq!((named.name(), instance.name()), ("evaluator", "evaluator"));
/// ```
#[derive(Clone)]
pub enum CompilerChoice {
    /// The compiler that is registered under a name.
    Named(Arc<str>),
    /// This compiler, also under a name that is not registered.
    Instance(Arc<dyn Compiler>),
}

impl CompilerChoice {
    /// The name.
    pub fn name(&self) -> &str {
        match self {
            CompilerChoice::Named(name) => name,
            CompilerChoice::Instance(compiler) => compiler.name(),
        }
    }

    /// Returns whether programs may run on XLA: the compiler is `"xla"` or `"auto"`.
    pub fn may_use_xla(&self) -> bool {
        ["auto", "xla"].contains(&self.name())
    }

    /// The compiler.
    ///
    /// # Errors
    /// Returns an error for an unknown name.
    pub fn resolve(&self) -> Result<Arc<dyn Compiler>> {
        match self {
            CompilerChoice::Named(name) => compiler_named(name),
            CompilerChoice::Instance(compiler) => Ok(compiler.clone()),
        }
    }
}

impl PartialEq for CompilerChoice {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (CompilerChoice::Named(name), CompilerChoice::Named(other)) => name == other,
            (CompilerChoice::Instance(compiler), CompilerChoice::Instance(other)) => {
                compiler.identity() == other.identity()
            }
            (CompilerChoice::Named(_) | CompilerChoice::Instance(_), _) => false,
        }
    }
}

impl Eq for CompilerChoice {}

impl Hash for CompilerChoice {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            CompilerChoice::Named(name) => name.hash(state),
            CompilerChoice::Instance(compiler) => compiler.identity().hash(state),
        }
    }
}

impl fmt::Debug for CompilerChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.name())
    }
}

impl From<&str> for CompilerChoice {
    fn from(name: &str) -> Self {
        CompilerChoice::Named(name.into())
    }
}

/// Supports iteration over lists of names by reference.
impl From<&&str> for CompilerChoice {
    fn from(name: &&str) -> Self {
        CompilerChoice::from(*name)
    }
}

impl From<String> for CompilerChoice {
    fn from(name: String) -> Self {
        CompilerChoice::Named(name.into())
    }
}

impl From<Arc<dyn Compiler>> for CompilerChoice {
    fn from(compiler: Arc<dyn Compiler>) -> Self {
        CompilerChoice::Instance(compiler)
    }
}

impl<C: Compiler> From<Arc<C>> for CompilerChoice {
    fn from(compiler: Arc<C>) -> Self {
        CompilerChoice::Instance(compiler)
    }
}

/// ```
/// use nxla::{Evaluator, Expr, jit};
///
/// let double = jit(|x: Expr| x * 2).compiler(Evaluator);
/// assert_eq!(double.call(4)?.item::<i32>()?, 8);
/// # Ok::<(), nxla::Error>(())
/// ```
impl<C: Compiler> From<C> for CompilerChoice {
    fn from(compiler: C) -> Self {
        CompilerChoice::Instance(Arc::new(compiler))
    }
}

type Registry = RwLock<BTreeMap<String, Arc<dyn Compiler>>>;

/// Counts registrations, so that a cached lookup by name can be validated.
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// The number of registrations so far.
pub(crate) fn registry_generation() -> u64 {
    GENERATION.load(Ordering::Acquire)
}

/// The names that mean the same in every program.
const BUILT_IN: [&str; 3] = ["auto", "evaluator", "xla"];

fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(|| {
        let (auto, evaluator): (Arc<dyn Compiler>, Arc<dyn Compiler>) =
            (Arc::new(Auto), Arc::new(Evaluator));
        let built_in = [Some(auto), Some(evaluator), xla::compiler()].into_iter().flatten();
        RwLock::new(built_in.map(|c| (c.name().to_owned(), c)).collect())
    })
}

/// Makes a compiler known under its name, replacing one of the same name.
///
/// ```
/// use std::sync::Arc;
///
/// use nxla::{CompileRequest, Compiler, Evaluator, Executable, Result};
/// use nxla::{compiler_names, register_compiler};
///
/// struct Mine;
///
/// impl Compiler for Mine {
///     fn name(&self) -> &str {
///         "mine"
///     }
///
///     fn compile(&self, request: &CompileRequest<'_>) -> Result<Arc<dyn Executable>> {
///         Evaluator.compile(request)
///     }
/// }
///
/// register_compiler(Arc::new(Mine))?;
/// assert!(compiler_names().contains(&"mine".to_owned()));
/// # Ok::<(), nxla::Error>(())
/// ```
///
/// # Errors
/// Returns an error for an empty name, or the name of a built-in compiler.
pub fn register_compiler(compiler: Arc<dyn Compiler>) -> Result<()> {
    let name = compiler.name().to_owned();
    if name.is_empty() || BUILT_IN.contains(&name.as_str()) {
        let why = format!(
            "register_compiler: name: must not be empty or the name of a built-in \
                           compiler; got {name:?}"
        );
        return Err(Error::Options(why));
    }
    let mut known = registry().write().unwrap_or_else(PoisonError::into_inner);
    known.insert(name, compiler);
    GENERATION.fetch_add(1, Ordering::Release);
    Ok(())
}

/// The names of all compilers, sorted.
///
/// ```
/// use nxla::compiler_names;
///
/// assert!(compiler_names().contains(&"evaluator".to_owned()));
/// ```
pub fn compiler_names() -> Vec<String> {
    let known = registry().read().unwrap_or_else(PoisonError::into_inner);
    known.keys().cloned().collect()
}

/// The compiler of a name.
///
/// ```
/// use nxla::compiler_named;
///
/// assert_eq!(compiler_named("evaluator")?.name(), "evaluator");
/// assert!(compiler_named("llvm").is_err());
/// # Ok::<(), nxla::Error>(())
/// ```
///
/// # Errors
/// Returns an error for an unknown name.
pub fn compiler_named(name: &str) -> Result<Arc<dyn Compiler>> {
    let known = registry().read().unwrap_or_else(PoisonError::into_inner);
    known.get(name).cloned().ok_or_else(|| {
        let names: Vec<String> = known.keys().map(|name| format!("{name:?}")).collect();
        let names = names.join(", ");
        Error::Options(if BUILT_IN.contains(&name) {
            format!(
                "compiler: {name:?} requires the feature {name:?} of the crate nxla; available \
             compilers are {names}"
            )
        } else {
            format!("compiler: name: must be one of {names}; got {name:?}")
        })
    })
}

/// Reads a setting that must be an integer of at least `least`.
pub(crate) fn integer_setting(
    compiler: &str,
    settings: &Settings,
    name: &str,
    least: i64,
) -> Result<Option<usize>> {
    match settings.get(name) {
        None => Ok(None),
        Some(Setting::Int(value)) if *value >= least => {
            Ok(Some(usize::try_from(*value).unwrap_or(usize::MAX)))
        }
        Some(other) => Err(Error::Options(format!(
            "option {name:?} of the compiler {compiler:?}: must be an integer of at least {least}; \
             got {other}"
        ))),
    }
}

/// Rejects unknown settings of a compiler.
pub(crate) fn check_settings(compiler: &str, settings: &Settings, known: &[&str]) -> Result<()> {
    match settings.keys().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) if AUTO_SETTINGS.contains(&name.as_str()) => {
            Err(Error::Options(format!("option {name:?}: requires compiler=\"auto\"")))
        }
        Some(name) if known.is_empty() => {
            let one = Settings::from([(name.clone(), settings[name].clone())]);
            let other = match compiler_named("xla") {
                Ok(xla) if xla.check_settings(&one).is_ok() => "compiler=\"xla\" has it",
                _ => "it has no options",
            };
            Err(Error::Options(format!(
                "the compiler {compiler:?} has no option {name:?}; {other}"
            )))
        }
        // Options that select no compiler are compared with XLA, which the user did not name.
        Some(name) => Err(Error::Options(format!(
            "option {name:?}: does not exist; the compiler {compiler:?} has {}",
            known.join(", ")
        ))),
    }
}
