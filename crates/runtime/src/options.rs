//! Options: the compiler that runs a function, and its settings.
//!
//! Options have four sources; a later source overrides an earlier one: the environment variable
//! `NXLA_COMPILER`, the defaults of the process, the defaults of the thread, and the call.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use nxla_expr::{GraphOptions, HostFn};
use nxla_split::Policy;
use nxla_tensor::HostTensor;
use rustc_hash::FxHasher;

use crate::compiler::{Compiler, CompilerChoice, compiler_named};
use crate::device::{Device, common_device};
use crate::error::{Error, Result};
use crate::tensor::RawTensor;

/// Settings that select the device of programs instead of a [`Device`].
pub(crate) const DEVICE_SETTINGS: [&str; 4] =
    ["plugin", "device", "cpu_device_count", "preallocate"];

/// The setting of XLA for custom calls of the evaluator's kernels.
pub(crate) const KERNELS: &str = "kernels";

/// The setting of `auto` for the number of calls that run on the evaluator; see [`crate::Auto`].
pub(crate) const COMPILE_AFTER: &str = "compile_after";

/// The setting of `auto` for the estimated microseconds up to which the evaluator runs a program.
pub(crate) const COMPILE_ABOVE: &str = "compile_above";

/// The settings of `auto` that are not settings of XLA.
pub(crate) const AUTO_SETTINGS: [&str; 2] = [COMPILE_ABOVE, COMPILE_AFTER];

/// A setting of a compiler.
///
/// ```
/// use nxla::{Options, Setting};
///
/// let options = Options::new().set("plugin", "cuda").set("opt_level", 2);
/// assert_eq!(options.settings["opt_level"], Setting::Int(2));
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Setting {
    /// A switch.
    Bool(bool),
    /// A number.
    Int(i64),
    /// A name or a path.
    Text(String),
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Setting::Bool(value) => value.fmt(f),
            Setting::Int(value) => value.fmt(f),
            Setting::Text(value) => write!(f, "{value:?}"),
        }
    }
}

impl From<bool> for Setting {
    fn from(value: bool) -> Self {
        Setting::Bool(value)
    }
}

impl From<i64> for Setting {
    fn from(value: i64) -> Self {
        Setting::Int(value)
    }
}

impl From<i32> for Setting {
    fn from(value: i32) -> Self {
        Setting::Int(value.into())
    }
}

/// Settings are `i64`: a larger number becomes the largest one.
impl From<usize> for Setting {
    fn from(value: usize) -> Self {
        Setting::Int(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<String> for Setting {
    fn from(value: String) -> Self {
        Setting::Text(value)
    }
}

impl From<&str> for Setting {
    fn from(value: &str) -> Self {
        Setting::Text(value.into())
    }
}

/// Settings by name, as a compiler understands them.
pub type Settings = BTreeMap<String, Setting>;

/// Options of a call.
///
/// ```
/// use nxla::{Device, Expr, Options, jit, with_default_options};
///
/// let options = Options::new().compiler("evaluator").device(Device::HOST);
/// let defaults = with_default_options(&options);
/// assert_eq!(jit(|x: Expr| x * 2).call(4)?.item::<i32>()?, 8);
/// drop(defaults);
/// # Ok::<(), nxla::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Options {
    /// The compiler; `None` leaves the choice to the defaults, and then to the operands.
    pub compiler: Option<CompilerChoice>,
    /// Settings for the compiler.
    pub settings: Settings,
    /// The device that runs programs. `None` selects the device of the settings, of the defaults or
    /// of the operands, in this order.
    pub device: Option<Device>,
    /// Host functions for named hooks.
    pub hooks: BTreeMap<Arc<str>, Arc<dyn HostFn>>,
    /// The policy that cuts programs into separately compiled stages; `None` compiles whole
    /// programs.
    pub stages: Option<Policy>,
    /// The receiver of the progress of stages.
    pub progress: Option<Progress>,
}

/// A receiver of progress. It is called with a description and a number of steps, and returns a
/// function to call after each step, from any thread.
#[derive(Clone)]
pub struct Progress(Arc<Begin>);

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Progress").finish_non_exhaustive()
    }
}

type Begin = dyn Fn(&str, usize) -> Box<Step> + Send + Sync;
type Step = dyn Fn() + Send + Sync;

impl Progress {
    /// Calls `begin` at the start of a task, and the function it returns after each step.
    pub fn new(begin: impl Fn(&str, usize) -> Box<Step> + Send + Sync + 'static) -> Self {
        Self(Arc::new(begin))
    }

    /// Reports the start of a task of `steps` steps.
    pub fn begin(&self, what: &str, steps: usize) -> Box<Step> {
        (self.0)(what, steps)
    }
}

impl Options {
    /// Returns options without any choice, for which the defaults apply.
    ///
    /// ```
    /// use nxla::Options;
    ///
    /// assert!(Options::new().compiler.is_none());
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// Selects a compiler, by name or as an object.
    ///
    /// ```
    /// use nxla::Options;
    ///
    /// let options = Options::new().compiler("xla");
    /// assert_eq!(options.compiler.unwrap().name(), "xla");
    /// ```
    #[must_use]
    pub fn compiler(mut self, compiler: impl Into<CompilerChoice>) -> Self {
        self.compiler = Some(compiler.into());
        self
    }

    /// Selects the device that runs programs.
    ///
    /// ```
    /// use nxla::{Device, Options};
    ///
    /// assert_eq!(Options::new().device(Device::HOST).device, Some(Device::HOST));
    /// ```
    #[must_use]
    pub fn device(mut self, device: Device) -> Self {
        self.device = Some(device);
        self
    }

    /// Sets a setting of the compiler.
    ///
    /// ```
    /// use nxla::{Options, Setting};
    ///
    /// let options = Options::new().compiler("xla").set("plugin", "cuda");
    /// assert_eq!(options.settings["plugin"], Setting::from("cuda"));
    /// ```
    #[must_use]
    pub fn set(mut self, name: impl Into<String>, value: impl Into<Setting>) -> Self {
        self.settings.insert(name.into(), value.into());
        self
    }

    /// Sets the host function of the hooks with a name.
    ///
    /// ```
    /// use nxla::{Expr, HostTensor, Options, jit, named_hook, with_default_options};
    ///
    /// let show = |values: &[HostTensor]| {
    ///     assert_eq!(values[0].to_vec::<i32>()?, [8]);
    ///     Ok(())
    /// };
    /// let defaults = with_default_options(&Options::new().hook("doubled", show));
    /// jit(|x: Expr| named_hook(x * 2, "doubled")).call(4)?;
    /// drop(defaults);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    pub fn hook(mut self, name: impl Into<Arc<str>>, function: impl HostFn + 'static) -> Self {
        self.hooks.insert(name.into(), Arc::new(function));
        self
    }

    /// Returns options with only the names of called hooks; each run passes the functions.
    pub(crate) fn with_hook_names<'a>(hooks: impl IntoIterator<Item = &'a Arc<str>>) -> Self {
        let listen = |_: &[HostTensor]| Ok(());
        let hooks = hooks.into_iter().map(|name| (name.clone(), Arc::new(listen) as _));
        Self { hooks: hooks.collect(), ..Self::new() }
    }

    /// Compiles programs in stages.
    ///
    /// ```
    /// use nxla::split::Policy;
    /// use nxla::{Expr, Options, jit, with_default_options};
    ///
    /// let defaults = with_default_options(&Options::new().stages(Policy::EveryOps(1)));
    /// assert_eq!(jit(|x: Expr| (x * 2).abs()).call(-4)?.item::<i32>()?, 8);
    /// drop(defaults);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    pub fn stages(mut self, policy: Policy) -> Self {
        self.stages = Some(policy);
        self
    }

    /// Merges these options into others. If the compilers differ, the settings and the device of
    /// `below` are dropped.
    ///
    /// ```
    /// use nxla::{Device, Options};
    ///
    /// let below = Options::new().compiler("evaluator").device(Device::HOST);
    /// assert_eq!(Options::new().over(&below).device, Some(Device::HOST));
    /// assert_eq!(Options::new().compiler("xla").over(&below).device, None);
    /// ```
    #[must_use]
    pub fn over(&self, below: &Options) -> Options {
        let mut merged = below.clone();
        if self.compiler.is_some() {
            // Settings and devices belong to the compiler that they were written for.
            if self.compiler != merged.compiler {
                merged.settings.clear();
                merged.device = None;
            }
            merged.compiler.clone_from(&self.compiler);
        }
        // A device replaces settings that select a device, and vice versa.
        if self.device.is_some() {
            merged.settings.retain(|name, _| !DEVICE_SETTINGS.contains(&&**name));
        } else if DEVICE_SETTINGS.iter().any(|name| self.settings.contains_key(*name)) {
            merged.device = None;
        }
        merged.settings.extend(self.settings.clone());
        if self.device.is_some() {
            merged.device.clone_from(&self.device);
        }
        merged.hooks.extend(self.hooks.iter().map(|(name, hook)| (name.clone(), hook.clone())));
        if self.stages.is_some() {
            merged.stages.clone_from(&self.stages);
        }
        if self.progress.is_some() {
            merged.progress.clone_from(&self.progress);
        }
        merged
    }

    /// Returns these options for a program over a mesh, merged with the current defaults for XLA.
    ///
    /// # Errors
    /// Returns an error for another compiler, for options that select a device, and for options that are
    /// not supported for such programs.
    pub fn of_a_mesh(&self) -> Result<Options> {
        let refused = |why: String| Err(Error::Options(format!("mesh: {why}")));
        if let Some(other) = self.compiler.as_ref().filter(|choice| !choice.may_use_xla()) {
            let name = other.name();
            return refused(format!(
                "compiler: must be \"xla\" for a program over several devices; got {name:?}"
            ));
        }
        let unsupported = [&DEVICE_SETTINGS[..], &AUTO_SETTINGS].concat();
        let setting = unsupported.iter().find(|name| self.settings.contains_key(**name)).copied();
        let calls_kernels =
            self.settings.get(KERNELS).is_some_and(|on| *on != Setting::Bool(false));
        let given = [
            (calls_kernels, KERNELS),
            (self.device.is_some(), "device"),
            (!self.hooks.is_empty(), "hooks"),
            (self.stages.is_some(), "stages"),
        ];
        let given = given.into_iter().find_map(|(given, name)| given.then_some(name));
        if let Some(name) = setting.or(given) {
            return refused(format!(
                "option {name:?}: not supported for a program over several devices"
            ));
        }
        let mut settings = Settings::new();
        let defaults = default_options();
        if defaults.compiler.as_ref().is_some_and(CompilerChoice::may_use_xla) {
            settings.extend(defaults.settings);
            settings.retain(|name, _| name != KERNELS && !unsupported.contains(&name.as_str()));
        }
        settings.extend(self.settings.clone());
        Ok(Options { compiler: Some("xla".into()), settings, ..Options::default() })
    }

    /// Returns the device of the operands, on which the function runs; `None` if all operands are on the
    /// host, or if these options select the device.
    ///
    /// # Errors
    /// Returns an error for operands on two devices.
    pub(crate) fn common_device<'a>(
        &self,
        function: &str,
        operands: impl IntoIterator<Item = &'a RawTensor>,
    ) -> Result<Option<Device>> {
        if self.selects_target() { Ok(None) } else { common_device(function, operands) }
    }

    /// Returns the compiler and the device of a program with operands on `operand_device`.
    ///
    /// # Errors
    /// Returns an error for an unknown compiler or a device that the compiler does not run on.
    pub fn target(&self, operand_device: Option<&Device>) -> Result<ExecutionTarget> {
        let device =
            if self.selects_target() { self.device.clone() } else { operand_device.cloned() };
        let compiler = self.compiler_on(device.as_ref())?;
        if let Some(device) = &device {
            compiler.check_device(device)?;
        }
        Ok(ExecutionTarget { compiler, device })
    }

    /// The compiler that the options name, or else the one for a device.
    fn compiler_on(&self, device: Option<&Device>) -> Result<Arc<dyn Compiler>> {
        match (&self.compiler, device) {
            (Some(choice), _) => choice.resolve(),
            (None, Some(device)) if !device.is_host() => compiler_named("xla"),
            (None, _) => compiler_named("evaluator"),
        }
    }

    /// The device that the options select for programs and data, if they select one.
    ///
    /// # Errors
    /// Returns an error for an unknown compiler or setting or a device that the compiler does not
    /// run on.
    pub fn selected_device(&self) -> Result<Option<Device>> {
        if !self.selects_target() {
            return Ok(None);
        }
        self.own_results_device().map(Some)
    }

    /// Checks the settings against the compiler that these options and the ones below select. If
    /// the choice depends on operands, one of the possible compilers must accept them.
    ///
    /// ```
    /// use nxla::Options;
    ///
    /// let options = Options::new().compiler("evaluator").set("speed", 11);
    /// assert!(options.check(&Options::new()).is_err());
    /// ```
    ///
    /// # Errors
    /// Returns an error for an unknown compiler or setting or an invalid value of a setting.
    pub fn check(&self, below: &Options) -> Result<()> {
        if self.settings.is_empty() {
            return Ok(());
        }
        let merged = self.over(below);
        let compiler = if merged.selects_target() {
            merged.compiler_on(merged.device.as_ref())?
        } else {
            compiler_named("xla").or_else(|_| compiler_named("evaluator"))?
        };
        compiler.check_settings(&merged.settings)
    }

    /// Checks options that are to become the default options of a thread or of the process. Without a
    /// compiler or a device, operands select the compiler, so a setting that only some compilers have
    /// would make other calls fail.
    ///
    /// ```
    /// use nxla::Options;
    ///
    /// assert!(Options::new().set("precision", "high").check_defaults().is_err());
    /// assert!(Options::new().compiler("evaluator").check_defaults().is_ok());
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`Options::check`], and an error for a setting without its compiler.
    pub fn check_defaults(&self) -> Result<()> {
        self.check(&Options::new())?;
        match self.settings.keys().next() {
            Some(name) if !self.selects_target() => Err(Error::Options(format!(
                "{name}: must be set together with its compiler; add compiler=\"xla\""
            ))),
            Some(_) | None => Ok(()),
        }
    }

    /// Returns the device that holds the results of functions that run with these options, and with
    /// the default options of the thread below them.
    ///
    /// ```
    /// use nxla::{Device, Options};
    ///
    /// assert_eq!(Options::new().compiler("evaluator").results_device()?, Device::HOST);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`Error::Options`] for an unknown compiler, a setting that the compiler does not
    /// have, or a device that does not exist.
    pub fn results_device(&self) -> Result<Device> {
        self.over(&default_options()).own_results_device()
    }

    /// Does the same as [`Options::results_device`], without the default options.
    fn own_results_device(&self) -> Result<Device> {
        let ExecutionTarget { compiler, device } = self.target(None)?;
        device.map_or_else(|| compiler.results_device(&self.settings), Ok)
    }

    /// These options, and the default options of the thread below them, once for each device on
    /// which their compiler can run programs at the same time.
    ///
    /// ```
    /// use nxla::Options;
    ///
    /// assert_eq!(Options::new().compiler("evaluator").partitions()?.len(), 1);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error for an unknown compiler, and for settings that it does not have.
    pub fn partitions(&self) -> Result<Vec<Options>> {
        let options = self.over(&default_options());
        let compiler = options.target(None)?.compiler;
        compiler.check_settings(&options.settings)?;
        let partitions = compiler.partitions(&options.settings)?;
        let settled = |settings| Options { settings, ..options.clone() };
        Ok(partitions.into_iter().map(settled).collect())
    }

    /// Returns `true` if the options select the compiler and the device independently of operands.
    pub fn selects_target(&self) -> bool {
        self.compiler.is_some() || self.device.is_some()
    }

    /// Returns a fingerprint of the options that affect compilation.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut hasher = FxHasher::default();
        self.compiler.hash(&mut hasher);
        self.settings.hash(&mut hasher);
        self.device.hash(&mut hasher);
        self.stages.hash(&mut hasher);
        self.hooks.keys().for_each(|name| name.hash(&mut hasher));
        hasher.finish()
    }
}

/// The compiler and the device of a program.
#[derive(Clone, Debug)]
pub struct ExecutionTarget {
    /// The compiler.
    pub compiler: Arc<dyn Compiler>,
    /// The device to run on; `None` leaves the choice to the compiler's settings.
    pub device: Option<Device>,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("compiler", &self.compiler)
            .field("settings", &self.settings)
            .field("device", &self.device)
            .field("hooks", &self.hooks.keys())
            .finish()
    }
}

static GLOBAL: RwLock<Option<Options>> = RwLock::new(None);

thread_local! {
    static THREAD: RefCell<Option<Options>> = const { RefCell::new(None) };
}

/// Returns the current options of this thread.
///
/// ```
/// use nxla::{Options, default_options, set_default_options};
///
/// set_default_options(Some(Options::new().compiler("evaluator")));
/// assert_eq!(default_options().compiler.unwrap().name(), "evaluator");
/// set_default_options(None);
/// ```
pub fn default_options() -> Options {
    THREAD.with_borrow(Clone::clone).unwrap_or_else(global_default_options)
}

/// Returns `true` if defaults are set for the thread, for the process, or by the environment.
///
/// ```
/// use nxla::{Options, has_default_options, with_default_options};
///
/// let defaults = with_default_options(&Options::new().compiler("evaluator"));
/// assert!(has_default_options());
/// drop(defaults);
/// ```
pub fn has_default_options() -> bool {
    THREAD.with_borrow(Option::is_some)
        || environment_compiler().is_some()
        || GLOBAL.read().unwrap_or_else(PoisonError::into_inner).is_some()
}

/// Sets the options of this thread; with `None`, the thread uses the options of the process.
/// Returns the previous options of the thread, or `None` if it used the options of the process.
///
/// ```
/// use nxla::{Options, has_default_options, set_default_options};
///
/// let had_options = has_default_options();
/// let before = set_default_options(Some(Options::new().compiler("evaluator")));
/// set_default_options(before);
/// assert_eq!(has_default_options(), had_options);
/// ```
pub fn set_default_options(options: Option<Options>) -> Option<Options> {
    THREAD.replace(options)
}

/// Returns the options of the process, which apply to threads without their own options.
///
/// ```
/// use nxla::{Options, global_default_options, set_global_default_options};
///
/// set_global_default_options(Options::new().compiler("evaluator"));
/// assert_eq!(global_default_options().compiler.unwrap().name(), "evaluator");
/// ```
pub fn global_default_options() -> Options {
    let global = GLOBAL.read().unwrap_or_else(PoisonError::into_inner).clone();
    global.unwrap_or_else(|| Options { compiler: environment_compiler(), ..Options::default() })
}

/// The value of `NXLA_COMPILER`. It is read once, since every call needs the options.
fn environment_compiler() -> Option<CompilerChoice> {
    static COMPILER: OnceLock<Option<CompilerChoice>> = OnceLock::new();
    let read = || std::env::var("NXLA_COMPILER").ok().filter(|name| !name.is_empty());
    COMPILER.get_or_init(|| read().map(Into::into)).clone()
}

/// Sets the options of the process and returns the previous ones.
///
/// ```
/// use nxla::{Expr, Options, jit, set_global_default_options};
///
/// set_global_default_options(Options::new().compiler("evaluator"));
/// let compute = || jit(|x: Expr| x * 2).call(4)?.item::<i32>();
/// assert_eq!(std::thread::spawn(compute).join().unwrap()?, 8);
/// # Ok::<(), nxla::Error>(())
/// ```
pub fn set_global_default_options(options: Options) -> Options {
    let before = global_default_options();
    *GLOBAL.write().unwrap_or_else(PoisonError::into_inner) = Some(options);
    before
}

/// Restores the options of the thread when dropped. The guard cannot move to another thread, whose
/// options it would replace.
///
/// ```compile_fail,E0277
/// let guard = nxla::with_default_options(&nxla::Options::new());
/// std::thread::spawn(move || drop(guard));
/// ```
///
/// Guards restore the options from before their creation, so they must be dropped in the reverse order,
/// as local variables are.
#[derive(Debug)]
#[must_use = "the options are restored when this is dropped"]
pub struct OptionsGuard {
    before: Option<Options>,
    not_send: PhantomData<*const ()>,
}

impl OptionsGuard {
    /// Sets the options of the thread until the guard is dropped.
    fn set(options: Options) -> Self {
        Self { before: THREAD.replace(Some(options)), not_send: PhantomData }
    }
}

impl Drop for OptionsGuard {
    fn drop(&mut self) {
        THREAD.set(self.before.take());
    }
}

/// Merges options into the current defaults of this thread until the result is dropped.
///
/// ```
/// use nxla::{Options, default_options, with_default_options};
///
/// let guard = with_default_options(&Options::new().compiler("evaluator"));
/// assert!(default_options().compiler.is_some());
/// drop(guard);
/// ```
pub fn with_default_options(options: &Options) -> OptionsGuard {
    OptionsGuard::set(options.over(&default_options()))
}

/// Runs operations of this thread on a device until the guard is dropped. The device overrides the
/// options; hooks stay.
///
/// ```
/// use nxla::{Device, Tensor, run_on};
///
/// let guard = run_on(&Device::HOST);
/// assert_eq!((Tensor::from([1, 2]) * 2)?.device(), Device::HOST);
/// drop(guard);
/// # Ok::<(), nxla::Error>(())
/// ```
pub fn run_on(device: &Device) -> OptionsGuard {
    let hooks = default_options().hooks;
    OptionsGuard::set(Options { hooks, device: Some(device.clone()), ..Options::default() })
}

thread_local! {
    static REASSOCIATE: Cell<bool> = const { Cell::new(false) };
}

/// Returns the options for graphs that are traced on this thread.
pub fn graph_options() -> GraphOptions {
    GraphOptions { reassociate_floats: REASSOCIATE.get() }
}

/// Allows or forbids traces of this thread to reorder float arithmetic. Returns the previous
/// setting.
pub fn set_reassociate_floats(allow: bool) -> bool {
    REASSOCIATE.replace(allow)
}

/// Returns `true` if this thread overrides the options of the process.
pub fn has_own_options() -> bool {
    THREAD.with_borrow(Option::is_some)
}
