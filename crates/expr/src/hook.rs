//! Hooks: host functions that see values while a program runs.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use nxla_tensor::HostTensor;
use serde::{Deserialize, Serialize};

/// A host function that is shown values.
pub trait HostFn: Send + Sync {
    /// Called once each time the hook is reached. An error ends the program.
    fn call(&self, values: &[HostTensor]) -> Result<(), String>;
}

impl<F: Fn(&[HostTensor]) -> Result<(), String> + Send + Sync> HostFn for F {
    fn call(&self, values: &[HostTensor]) -> Result<(), String> {
        self(values)
    }
}

/// Attributes of [`Op::Hook`](crate::Op::Hook).
///
/// The sequence number is the hook's identity: two hooks are never the same node, and they run in
/// the order of their numbers. The host function is no part of it, nor of a program's digest: it
/// is looked up for each call, so that one compiled program serves different listeners.
#[derive(Clone, Serialize, Deserialize)]
pub struct HookOp {
    /// The name under which a caller can install its own function.
    pub name: Option<Arc<str>>,
    /// Position in program order among the hooks of the same region.
    pub sequence: u32,
    /// Called unless the caller installed another one under the name.
    #[serde(skip)]
    pub default: Option<Arc<dyn HostFn>>,
}

impl PartialEq for HookOp {
    fn eq(&self, other: &Self) -> bool {
        self.sequence == other.sequence && self.name == other.name
    }
}

impl Eq for HookOp {}

impl Hash for HookOp {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.sequence.hash(state);
        self.name.hash(state);
    }
}

impl fmt::Debug for HookOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HookOp")
            .field("name", &self.name)
            .field("sequence", &self.sequence)
            .field("has_default", &self.default.is_some())
            .finish()
    }
}
