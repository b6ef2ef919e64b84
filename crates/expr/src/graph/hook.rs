//! Hooks: host functions that receive values while a program runs; and runtime calls, whose host
//! functions also return values.
//!
//! The identity of a hook is its position in the program, not its function, so a program is
//! compiled once for all functions. [`Program::detach_hooks`](crate::Program::detach_hooks)
//! replaces the functions of a program by slot numbers, which each run resolves.

use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use nxla_tensor::HostTensor;
use serde::{Deserialize, Serialize};

use super::types::TensorType;

/// An error of a host function; the caller of the program receives it unchanged.
pub type HostError = Box<dyn std::error::Error + Send + Sync>;

/// A host function that receives values.
pub trait HostFn: Any + Send + Sync {
    /// Called each time the hook is reached.
    ///
    /// # Errors
    /// Returns the error of the function, which ends the run of the program.
    fn call(&self, values: &[HostTensor]) -> Result<(), HostError>;

    /// Called each time a runtime call is reached; returns its results.
    ///
    /// # Errors
    /// Returns the error of the function, which ends the run of the program. The default
    /// implementation returns an error, because hooks have no results.
    fn compute(&self, values: &[HostTensor]) -> Result<Vec<HostTensor>, HostError> {
        let _ = values;
        Err("the function of a hook returns no results".into())
    }

    /// Returns whether this function does nothing and only describes the container of the values,
    /// for a listener that a caller attaches.
    fn is_silent(&self) -> bool {
        false
    }

    /// Passes values to the listener that replaces this function. A function that knows the
    /// container of the values passes the container.
    ///
    /// # Errors
    /// Returns the errors of the listener.
    fn show_to(&self, installed: &dyn HostFn, values: &[HostTensor]) -> Result<(), HostError> {
        installed.call(values)
    }
}

impl fmt::Debug for dyn HostFn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostFn").field("is_silent", &self.is_silent()).finish_non_exhaustive()
    }
}

impl<F: Fn(&[HostTensor]) -> Result<(), HostError> + Send + Sync + 'static> HostFn for F {
    fn call(&self, values: &[HostTensor]) -> Result<(), HostError> {
        self(values)
    }
}

/// A host function of a runtime call, created from a closure.
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

impl<F> fmt::Debug for Compute<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compute").finish_non_exhaustive()
    }
}

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
/// Hooks are never merged, and they run in the order in which they were created. The host function
/// is not part of the identity of a hook or of the digest of a program. It is resolved for each
/// run, so one compiled program serves different listeners.
#[derive(Clone, Serialize, Deserialize)]
pub struct HookOp {
    /// The name under which a caller can attach a listener; the name of a runtime call is for errors
    /// only.
    pub name: Option<Arc<str>>,
    /// The function that is called unless a listener is attached under the name. It may be
    /// [silent](HostFn::is_silent).
    #[serde(skip)]
    pub default: Option<Arc<dyn HostFn>>,
    /// The slot of the function in programs from
    /// [`Program::detach_hooks`](crate::Program::detach_hooks), instead of `default`.
    #[serde(skip)]
    pub slot: Option<u32>,
    /// The result types of a runtime call. For a hook, `None`: its results are its operands.
    pub results: Option<Box<[TensorType]>>,
}

impl HookOp {
    /// Returns the name under which a caller can attach a listener. A runtime call has no such name.
    pub fn listener_name(&self) -> Option<&Arc<str>> {
        self.name.as_ref().filter(|_| self.results.is_none())
    }

    /// Returns whether the hook calls its default function.
    pub fn has_function(&self) -> bool {
        self.slot.is_some() || self.default.as_ref().is_some_and(|own| !own.is_silent())
    }

    /// The function that receives the values: `installed`, which the caller of the program attached
    /// under the name, or else the hook's own function, which is in `own_functions` if it was
    /// [detached](crate::Program::detach_hooks).
    pub fn listener<'a>(
        &'a self,
        installed: Option<&'a Arc<dyn HostFn>>,
        own_functions: &'a [Arc<dyn HostFn>],
    ) -> Option<Listener<'a>> {
        let detached = self.slot.and_then(|slot| own_functions.get(slot as usize));
        Listener::of(installed, detached.or(self.default.as_ref()))
    }
}

/// The function that receives the values of a hook.
#[derive(Clone, Copy, Debug)]
pub struct Listener<'a> {
    function: &'a Arc<dyn HostFn>,
    /// The default function, if a listener replaces it.
    own: Option<&'a Arc<dyn HostFn>>,
}

impl<'a> Listener<'a> {
    /// Returns the listener, or the default function; `None` if neither is to be called.
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

    /// Passes values to the function.
    ///
    /// # Errors
    /// Returns the errors of the function.
    pub fn call(self, values: &[HostTensor]) -> Result<(), HostError> {
        match self.own {
            Some(own) => own.show_to(&**self.function, values),
            None => self.function.call(values),
        }
    }

    /// Calls the function of a runtime call and checks the number and types of its results.
    ///
    /// # Errors
    /// Returns the error of the function, or an error if the number or types of the results are
    /// wrong.
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
                let why = format!("must return {ty} as result {index}; got {found}");
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
