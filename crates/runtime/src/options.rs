//! Which compiler runs a function, and with what settings.
//!
//! Options come from four places, the later ones winning: the environment variable
//! `NXLA_COMPILER`, the defaults of the process, the defaults of the thread, and the call.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use nxla_expr::HostFn;

/// A setting of a compiler.
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

impl From<&str> for Setting {
    fn from(value: &str) -> Self {
        Setting::Text(value.into())
    }
}

/// Settings by name, as a compiler understands them.
pub type Settings = BTreeMap<String, Setting>;

/// Options of a call.
#[derive(Clone, Default)]
pub struct Options {
    /// The compiler's name; `None` leaves the choice to the defaults.
    pub compiler: Option<Arc<str>>,
    /// Settings for the compiler.
    pub settings: Settings,
    /// Host functions for named hooks.
    pub hooks: BTreeMap<Arc<str>, Arc<dyn HostFn>>,
}

impl Options {
    /// No options.
    pub fn new() -> Self {
        Self::default()
    }

    /// With this compiler, by name.
    #[must_use]
    pub fn compiler(mut self, name: impl Into<Arc<str>>) -> Self {
        self.compiler = Some(name.into());
        self
    }

    /// With a setting of the compiler.
    #[must_use]
    pub fn set(mut self, name: impl Into<String>, value: impl Into<Setting>) -> Self {
        self.settings.insert(name.into(), value.into());
        self
    }

    /// With a host function for the hooks of this name.
    #[must_use]
    pub fn hook(mut self, name: impl Into<Arc<str>>, function: impl HostFn + 'static) -> Self {
        self.hooks.insert(name.into(), Arc::new(function));
        self
    }

    /// These options on top of others.
    #[must_use]
    pub fn over(&self, below: &Options) -> Options {
        let mut merged = below.clone();
        if self.compiler.is_some() {
            // Settings belong to the compiler that they were written for.
            if self.compiler != merged.compiler {
                merged.settings.clear();
            }
            merged.compiler.clone_from(&self.compiler);
        }
        merged.settings.extend(self.settings.clone());
        merged.hooks.extend(self.hooks.iter().map(|(name, hook)| (name.clone(), hook.clone())));
        merged
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("compiler", &self.compiler)
            .field("settings", &self.settings)
            .field("hooks", &self.hooks.keys())
            .finish()
    }
}

static GLOBAL: RwLock<Option<Options>> = RwLock::new(None);

thread_local! {
    static THREAD: RefCell<Option<Options>> = const { RefCell::new(None) };
}

/// The options in force on this thread.
pub fn default_options() -> Options {
    THREAD.with_borrow(Clone::clone).unwrap_or_else(global_default_options)
}

/// Whether any defaults are set: for the thread, the process, or by the environment. A call that
/// finds none need not merge anything.
pub fn has_default_options() -> bool {
    THREAD.with_borrow(Option::is_some)
        || environment_compiler().is_some()
        || GLOBAL.read().unwrap_or_else(PoisonError::into_inner).is_some()
}

/// Sets the options of this thread, or with `None` returns to those of the process; gives what
/// was in force before.
pub fn set_default_options(options: Option<Options>) -> Options {
    let before = default_options();
    THREAD.set(options);
    before
}

/// The options of the process, which threads without their own use.
pub fn global_default_options() -> Options {
    let global = GLOBAL.read().unwrap_or_else(PoisonError::into_inner).clone();
    global.unwrap_or_else(|| Options { compiler: environment_compiler(), ..Options::default() })
}

/// What `NXLA_COMPILER` says. It is read once, since every call asks for the options.
fn environment_compiler() -> Option<Arc<str>> {
    static COMPILER: OnceLock<Option<Arc<str>>> = OnceLock::new();
    let read = || std::env::var("NXLA_COMPILER").ok().filter(|name| !name.is_empty());
    COMPILER.get_or_init(|| read().map(Into::into)).clone()
}

/// Sets the options of the process; gives what was in force before.
pub fn set_global_default_options(options: Options) -> Options {
    let before = global_default_options();
    *GLOBAL.write().unwrap_or_else(PoisonError::into_inner) = Some(options);
    before
}

/// Restores the thread's options when dropped.
#[must_use = "the options are restored when this is dropped"]
pub struct OptionsGuard(Option<Options>);

impl Drop for OptionsGuard {
    fn drop(&mut self) {
        THREAD.set(self.0.take());
    }
}

/// Puts options on top of those in force, on this thread, until the result is dropped.
pub fn with_default_options(options: &Options) -> OptionsGuard {
    let merged = options.over(&default_options());
    OptionsGuard(THREAD.replace(Some(merged)))
}
