//! Programs without the functions of their hooks.
//!
//! Slot numbers replace the functions, and each run resolves the slots. A program is thus compiled
//! once for all functions.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::hook::{HookOp, HostFn};
use super::nested::Contents;
use super::op::Op;
use super::program::Program;

/// A program without the functions of its hooks.
#[derive(Debug)]
pub struct DetachedProgram {
    /// The program, with [`HookOp::slot`] instead of [`HookOp::default`]. Its digest is unchanged.
    pub program: Arc<Program>,
    /// The functions, by slot.
    pub functions: Vec<Arc<dyn HostFn>>,
    /// A number for each hook: whether it is called, and its slot. A compiled program can be reused
    /// for another program of equal digest and equal pattern, because their slots correspond.
    pub pattern: Vec<u32>,
}

impl Program {
    /// Removes the functions from the hooks of the program and of its regions. `listens` returns
    /// whether the caller has a listener for a name.
    ///
    /// Visits only nodes with effects; a program without effects is returned unchanged.
    pub fn detach_hooks(self: &Arc<Self>, listens: &dyn Fn(&str) -> bool) -> DetachedProgram {
        let mut detacher = Detacher {
            listens,
            functions: Vec::new(),
            slots: FxHashMap::default(),
            pattern: Vec::new(),
            done: FxHashMap::default(),
        };
        let program = detacher.program(self);
        let Detacher { functions, pattern, .. } = detacher;
        DetachedProgram { program, functions, pattern }
    }
}

struct Detacher<'a> {
    listens: &'a dyn Fn(&str) -> bool,
    functions: Vec<Arc<dyn HostFn>>,
    /// Slots by address of the function.
    slots: FxHashMap<*const (), u32>,
    pattern: Vec<u32>,
    /// Results by address of the program, with a number in order of the first visit. Regions can be
    /// shared.
    done: FxHashMap<*const Program, (Arc<Program>, u32)>,
}

/// Entries of a pattern; a slot is `FIRST_SLOT` plus its number.
const SILENT: u32 = 0;
const NAMED: u32 = 1;
const SEEN_BEFORE: u32 = 2;
const FIRST_SLOT: u32 = 3;

impl Detacher<'_> {
    /// The recursion depth is the nesting depth of regions, which is limited.
    fn program(&mut self, program: &Arc<Program>) -> Arc<Program> {
        if program.effects().is_empty() {
            return program.clone();
        }
        if let Some((detached, visit_number)) = self.done.get(&Arc::as_ptr(program)) {
            self.pattern.extend([SEEN_BEFORE, *visit_number]);
            return detached.clone();
        }
        let visit_number = u32::try_from(self.done.len()).expect("fewer than 2^32 regions");
        let mut changed = Vec::new();
        for &id in program.effects() {
            let op = program.graph().op(id);
            let new = match op.contents() {
                Contents::None | Contents::Stored(_) => None,
                Contents::HostFunction(hook) => {
                    self.hook(hook).map(|hook| Op::Hook(Box::new(hook)))
                }
                Contents::Executed(_) => {
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
        let detached = if changed.is_empty() {
            program.clone()
        } else {
            Arc::new(program.with_other_functions(changed))
        };
        self.done.insert(Arc::as_ptr(program), (detached.clone(), visit_number));
        detached
    }

    /// Returns the hook without its function, or `None` if it has no function.
    fn hook(&mut self, hook: &HookOp) -> Option<HookOp> {
        let named = || hook.listener_name().is_some_and(|name| (self.listens)(name));
        let Some(function) = hook.default.as_ref().filter(|own| !own.is_silent() || named()) else {
            self.pattern.push(if named() { NAMED } else { SILENT });
            return hook.default.is_some().then(|| HookOp { default: None, ..hook.clone() });
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
