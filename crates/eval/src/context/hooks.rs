//! The host functions that a caller passes for the named hooks of a program.

use std::fmt;
use std::sync::Arc;

use nxla_expr::{HookOp, HostFn, Listener};
use rustc_hash::FxHashMap;

/// Host functions by hook name. They take precedence over the functions of the program.
///
/// ```
/// use std::sync::Arc;
/// use nxla_eval::Hooks;
///
/// let mut hooks = Hooks::new();
/// hooks.insert("loss", Arc::new(|values: &[nxla_tensor::HostTensor]| {
///     if values[0].get(0).as_f64().is_nan() { Err("not a number".into()) } else { Ok(()) }
/// }));
/// assert!(!hooks.is_empty());
/// ```
#[derive(Clone, Default)]
pub struct Hooks {
    functions: FxHashMap<Arc<str>, Arc<dyn HostFn>>,
    own: Vec<Arc<dyn HostFn>>,
}

impl Hooks {
    /// No functions.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the function for the hooks of this name, and returns the function that it replaces.
    pub fn insert(
        &mut self,
        name: impl Into<Arc<str>>,
        function: Arc<dyn HostFn>,
    ) -> Option<Arc<dyn HostFn>> {
        self.functions.insert(name.into(), function)
    }

    /// Sets the functions that [`Program::detach_hooks`](nxla_expr::Program::detach_hooks) removed from the
    /// program.
    #[must_use]
    pub fn with_own(mut self, functions: &[Arc<dyn HostFn>]) -> Self {
        self.own = functions.to_vec();
        self
    }

    /// Returns true if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty() && self.own.is_empty()
    }

    /// The function that receives the values of a hook.
    pub(crate) fn listener<'a>(&'a self, hook: &'a HookOp) -> Option<Listener<'a>> {
        let named = hook.listener_name().and_then(|name| self.functions.get(name));
        hook.listener(named, &self.own)
    }
}

impl FromIterator<(Arc<str>, Arc<dyn HostFn>)> for Hooks {
    fn from_iter<I: IntoIterator<Item = (Arc<str>, Arc<dyn HostFn>)>>(functions: I) -> Self {
        Self { functions: functions.into_iter().collect(), own: Vec::new() }
    }
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names: Vec<&Arc<str>> = self.functions.keys().collect();
        names.sort_unstable();
        f.debug_tuple("Hooks").field(&names).finish()
    }
}
