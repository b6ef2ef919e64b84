//! Hooks: host functions that see values while a program runs, and runtime calls, whose functions
//! give values too.
//!
//! A hook has its identity from its place in the program, not from its function: a program is
//! compiled once, whoever listens. [`Program::detach_hooks`](crate::Program::detach_hooks) takes the
//! functions out of a program and leaves numbers in their place, which each run resolves.

use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use nxla_tensor::HostTensor;
use serde::{Deserialize, Serialize};

use super::types::TensorType;

/// What a host function fails with; it reaches the caller of the program as it is.
pub type HostError = Box<dyn std::error::Error + Send + Sync>;

/// A host function that is shown values.
pub trait HostFn: Any + Send + Sync {
    /// Called once each time the hook is reached.
    ///
    /// # Errors
    /// An error ends the program.
    fn call(&self, values: &[HostTensor]) -> Result<(), HostError>;

    /// Called each time a runtime call is reached; gives its results.
    ///
    /// # Errors
    /// An error ends the program. A function that is shown values only has no results to give.
    fn compute(&self, values: &[HostTensor]) -> Result<Vec<HostTensor>, HostError> {
        let _ = values;
        Err("the function gives no results: it is one of a hook".into())
    }

    /// Whether this calls nobody: it only knows how values look, for a function that a caller
    /// installs under the hook's name.
    fn is_silent(&self) -> bool {
        false
    }

    /// Shows values to the function that a caller has installed in place of this one. A function
    /// that knows what container the values came in hands them over in it.
    ///
    /// # Errors
    /// Those of the installed function.
    fn show_to(&self, installed: &dyn HostFn, values: &[HostTensor]) -> Result<(), HostError> {
        installed.call(values)
    }
}

impl<F: Fn(&[HostTensor]) -> Result<(), HostError> + Send + Sync + 'static> HostFn for F {
    fn call(&self, values: &[HostTensor]) -> Result<(), HostError> {
        self(values)
    }
}

/// A host function of a runtime call, made of a closure.
///
/// ```
/// use nxla_expr::{Compute, HostFn};
/// use nxla_tensor::HostTensor;
///
/// let first = Compute(|values: &[HostTensor]| Ok(vec![values[0].clone()]));
/// let one = HostTensor::from_slice(&[1.0f32], [1])?;
/// assert_eq!(first.compute(&[one])?.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
pub struct Compute<F>(pub F);

impl<F> HostFn for Compute<F>
where
    F: Fn(&[HostTensor]) -> Result<Vec<HostTensor>, HostError> + Send + Sync + 'static,
{
    fn call(&self, values: &[HostTensor]) -> Result<(), HostError> {
        self.compute(values).map(drop)
    }

    fn compute(&self, values: &[HostTensor]) -> Result<Vec<HostTensor>, HostError> {
        (self.0)(values)
    }
}

/// Attributes of [`Op::Hook`](crate::Op::Hook).
///
/// Two hooks are never the same node, and they run in the order in which they were made. The host
/// function is no part of what a hook is, nor of a program's digest: it is looked up for each call,
/// so that one compiled program serves different listeners.
#[derive(Clone, Serialize, Deserialize)]
pub struct HookOp {
    /// The name under which a caller can install its own function.
    pub name: Option<Arc<str>>,
    /// Called unless the caller installed another one under the name, which gets the values as this
    /// one would. It may be [silent](HostFn::is_silent).
    #[serde(skip)]
    pub default: Option<Arc<dyn HostFn>>,
    /// In place of `default` in programs from
    /// [`Program::detach_hooks`](crate::Program::detach_hooks): which function of the run it is.
    #[serde(skip)]
    pub slot: Option<u32>,
    /// The types of what the function gives: then it is a runtime call, and the results are those.
    /// A hook has none, and gives back what it shows.
    pub results: Option<Box<[TensorType]>>,
}

impl HookOp {
    /// Whether the hook calls a function of its own.
    pub fn has_function(&self) -> bool {
        self.slot.is_some() || self.default.as_ref().is_some_and(|own| !own.is_silent())
    }
}

/// Who is shown the values of a hook.
#[derive(Clone, Copy)]
pub struct Listener<'a> {
    function: &'a Arc<dyn HostFn>,
    /// The hook's own function, where a caller has installed another.
    own: Option<&'a Arc<dyn HostFn>>,
}

impl<'a> Listener<'a> {
    /// The function that a caller has installed, else the hook's own; `None` if neither is called.
    pub fn of(
        installed: Option<&'a Arc<dyn HostFn>>,
        own: Option<&'a Arc<dyn HostFn>>,
    ) -> Option<Self> {
        match installed {
            Some(function) => Some(Self { function, own }),
            None => {
                let function = own.filter(|own| !own.is_silent())?;
                Some(Self { function, own: None })
            }
        }
    }

    /// Shows values.
    ///
    /// # Errors
    /// Those of the function.
    pub fn call(self, values: &[HostTensor]) -> Result<(), HostError> {
        match self.own {
            Some(own) => own.show_to(&**self.function, values),
            None => self.function.call(values),
        }
    }

    /// Calls the function of a runtime call, and checks that it gives what it is meant to.
    ///
    /// # Errors
    /// That of the function; another number of results, or results of other types.
    pub fn compute(
        self,
        values: &[HostTensor],
        expected: &[TensorType],
    ) -> Result<Vec<HostTensor>, HostError> {
        let results = self.function.compute(values)?;
        if results.len() != expected.len() {
            let (expected, found) = (expected.len(), results.len());
            return Err(format!("the function gave {found} results, expected {expected}").into());
        }
        for (index, (result, ty)) in results.iter().zip(expected).enumerate() {
            if result.dtype() != ty.dtype || *result.shape() != ty.shape {
                let found = format!("{}{}", result.dtype(), result.shape());
                let why = format!("result {index} of the function is {found}, expected {ty}");
                return Err(why.into());
            }
        }
        Ok(results)
    }
}

impl PartialEq for HookOp {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.results == other.results
    }
}

impl Eq for HookOp {}

impl Hash for HookOp {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
        self.results.hash(state);
    }
}

impl fmt::Debug for HookOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HookOp")
            .field("name", &self.name)
            .field("has_default", &self.default.is_some())
            .field("slot", &self.slot)
            .field("results", &self.results)
            .finish()
    }
}
