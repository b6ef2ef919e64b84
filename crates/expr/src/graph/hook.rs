//! Hooks: host functions that see values while a program runs, and runtime calls, whose functions
//! give values too.
//!
//! A hook has its identity from its place in the program, not from its function: a program is
//! compiled once, whoever listens. [`Program::detach_hooks`] takes the functions out of a program
//! and leaves numbers in their place, which each run resolves.

use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use nxla_tensor::HostTensor;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::nested::Inside;
use crate::op::Op;
use crate::program::Program;
use crate::types::TensorType;

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

/// Attributes of [`Op::Hook`].
///
/// Two hooks are never the same node, and they run in the order in which they were made. The host
/// function is no part of what a hook is, nor of a program's digest: it is looked up for each call,
/// so that one compiled program serves different listeners.
#[derive(Clone, Serialize, Deserialize)]
pub struct HookOp {
    /// The name under which a caller can install its own function.
    pub name: Option<Arc<str>>,
    /// Called unless the caller installed another one under the name.
    #[serde(skip)]
    pub default: Option<Arc<dyn HostFn>>,
    /// In place of `default` in programs from [`Program::detach_hooks`]: which function of the run
    /// it is.
    #[serde(skip)]
    pub slot: Option<u32>,
    /// The types of what the function gives: then it is a runtime call, and the results are those.
    /// A hook has none, and gives back what it shows.
    pub results: Option<Box<[TensorType]>>,
}

/// Calls the function of a runtime call, and checks that it gives what it is meant to.
///
/// # Errors
/// That of the function; another number of results, or results of other types.
pub fn compute(
    function: &dyn HostFn,
    values: &[HostTensor],
    expected: &[TensorType],
) -> Result<Vec<HostTensor>, HostError> {
    let results = function.compute(values)?;
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

/// A program without the functions of its hooks.
pub struct Detached {
    /// The program, with [`HookOp::slot`] in place of [`HookOp::default`]. Its digest is the same.
    pub program: Arc<Program>,
    /// The functions, by slot.
    pub functions: Vec<Arc<dyn HostFn>>,
    /// Which hooks are called, and which share a function. Programs of equal digest and equal
    /// pattern can run as one another: slot by slot, their functions have the same places.
    pub pattern: Vec<u32>,
}

impl Program {
    /// Takes the functions out of the program's hooks, those in its regions included. `listens`
    /// says for which names the caller has functions.
    ///
    /// Looks at nodes with effects only; a program without any is given back as it is.
    pub fn detach_hooks(self: &Arc<Self>, listens: &dyn Fn(&str) -> bool) -> Detached {
        let mut detacher = Detacher {
            listens,
            functions: Vec::new(),
            slots: FxHashMap::default(),
            pattern: Vec::new(),
            done: FxHashMap::default(),
        };
        let program = detacher.program(self);
        let Detacher { functions, pattern, .. } = detacher;
        Detached { program, functions, pattern }
    }
}

struct Detacher<'a> {
    listens: &'a dyn Fn(&str) -> bool,
    functions: Vec<Arc<dyn HostFn>>,
    /// By the address of the function.
    slots: FxHashMap<*const (), u32>,
    pattern: Vec<u32>,
    /// By the address of the program: what it became, and when it was met. Regions can be shared.
    done: FxHashMap<*const Program, (Arc<Program>, u32)>,
}

/// Entries of a pattern; a slot is `FIRST_SLOT` plus its number.
const SILENT: u32 = 0;
const NAMED: u32 = 1;
const SEEN_BEFORE: u32 = 2;
const FIRST_SLOT: u32 = 3;

impl Detacher<'_> {
    /// Regions nest only as deep as the user's control flow is written, and so does this call.
    fn program(&mut self, program: &Arc<Program>) -> Arc<Program> {
        if program.effects().is_empty() {
            return program.clone();
        }
        if let Some((detached, met)) = self.done.get(&Arc::as_ptr(program)) {
            self.pattern.extend([SEEN_BEFORE, *met]);
            return detached.clone();
        }
        let met = u32::try_from(self.done.len()).expect("fewer than 2^32 regions");
        let mut changed = Vec::new();
        for &id in program.effects() {
            let op = program.graph().op(id);
            let new = match op.inside() {
                Inside::Nothing | Inside::Keeps(_) => None,
                Inside::Hook(hook) => self.hook(hook).map(|hook| Op::Hook(Box::new(hook))),
                Inside::Runs(_) => {
                    let mut differs = false;
                    let new = op.map_regions(|region| {
                        let detached = self.program(region);
                        differs |= !Arc::ptr_eq(&detached, region);
                        detached
                    });
                    differs.then_some(new)
                }
            };
            changed.extend(new.map(|op| (id, op)));
        }
        let detached = match changed.is_empty() {
            true => program.clone(),
            false => Arc::new(program.with_other_functions(changed)),
        };
        self.done.insert(Arc::as_ptr(program), (detached.clone(), met));
        detached
    }

    /// The hook without its function; `None` if it has none.
    fn hook(&mut self, hook: &HookOp) -> Option<HookOp> {
        let Some(function) = &hook.default else {
            let named = hook.name.as_deref().is_some_and(self.listens);
            self.pattern.push(if named { NAMED } else { SILENT });
            return None;
        };
        let next = u32::try_from(self.functions.len()).expect("fewer than 2^32 hooks");
        let slot = *self.slots.entry(Arc::as_ptr(function).cast()).or_insert_with(|| {
            self.functions.push(function.clone());
            next
        });
        self.pattern.push(FIRST_SLOT + slot);
        Some(HookOp { default: None, slot: Some(slot), ..hook.clone() })
    }
}
