//! Where each value lives, and when it dies.
//!
//! A slot is taken again as soon as its value is dead, so a chain of a million steps needs as many
//! slots as it has values alive at once.

use super::Target;
use super::build::{Built, ValueId};
use crate::args::Arg;

pub(super) struct Assigned {
    pub(super) args: Vec<Arg>,
    pub(super) targets: Vec<Target>,
    pub(super) inputs: Vec<Target>,
    pub(super) outputs: Vec<Arg>,
    pub(super) slots: usize,
}

/// The slots of values, and those that are free.
struct Slots {
    of_value: Vec<u32>,
    free: Vec<u32>,
    count: u32,
    /// One more than the position of the last step that was found to mention each value.
    seen: Vec<u32>,
}

impl Slots {
    fn take(&mut self, value: ValueId) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.count += 1;
            self.count - 1
        });
        self.of_value[value as usize] = slot;
        slot
    }

    /// The operands of the step at `position` as slots.
    fn args(&mut self, args: &[ValueId], position: u32, last_use: &[u32], out: &mut Vec<Arg>) {
        let first = out.len();
        // Backwards, so that of several mentions of a value the last one ends its life.
        for &value in args.iter().rev() {
            let seen = std::mem::replace(&mut self.seen[value as usize], position + 1);
            let last = last_use[value as usize] == position && seen != position + 1;
            out.push(Arg::new(self.of_value[value as usize], last));
        }
        out[first..].reverse();
    }
}

/// A position after every step.
const NEVER: u32 = u32::MAX;

pub(super) fn assign(built: &Built) -> Assigned {
    let last_use = last_uses(built);
    let zeros = || vec![0; built.values];
    let mut slots = Slots { of_value: zeros(), free: Vec::new(), count: 0, seen: zeros() };
    let inputs = built.inputs.iter().map(|value| value.map(|value| slots.take(value))).collect();
    let mut args = Vec::with_capacity(built.args.len());
    let mut targets = Vec::with_capacity(built.results.len());
    for (position, step) in built.steps.iter().enumerate() {
        let next = built.steps.get(position + 1);
        let end = next.map_or(built.args.len(), |step| step.first_arg as usize);
        let operands = &built.args[step.first_arg as usize..end];
        let first = args.len();
        let at = u32::try_from(position).expect("fewer than 2^32 steps");
        slots.args(operands, at, &last_use, &mut args);
        // Results are stored after dead operands are gone, so they can have their slots.
        let dead = args[first..].iter().filter(|arg| arg.is_last());
        slots.free.extend(dead.map(|arg| arg.slot() as u32));
        let end = next.map_or(built.results.len(), |step| step.first_target as usize);
        for &result in &built.results[step.first_target as usize..end] {
            let needed = last_use[result as usize] != 0;
            targets.push(needed.then(|| slots.take(result)));
        }
    }
    let mut outputs = Vec::with_capacity(built.outputs.len());
    output_args(&slots, &built.outputs, &mut outputs);
    Assigned { args, targets, inputs, outputs, slots: slots.count as usize }
}

/// For each value the position of the last step that reads it. Step 0 reads only inputs, so 0 for
/// the result of a step says that nobody does.
fn last_uses(built: &Built) -> Vec<u32> {
    let mut last_use = vec![0; built.values];
    for (position, step) in built.steps.iter().enumerate() {
        let next = built.steps.get(position + 1);
        let end = next.map_or(built.args.len(), |step| step.first_arg as usize);
        for &value in &built.args[step.first_arg as usize..end] {
            last_use[value as usize] = u32::try_from(position).expect("fewer than 2^32 steps");
        }
    }
    for &value in &built.outputs {
        last_use[value as usize] = NEVER;
    }
    last_use
}

/// Outputs are moved out of their slots; only the last mention of a value can be.
fn output_args(slots: &Slots, outputs: &[ValueId], out: &mut Vec<Arg>) {
    let mut moved = vec![false; slots.count as usize];
    for &value in outputs.iter().rev() {
        let slot = slots.of_value[value as usize];
        let last = !std::mem::replace(&mut moved[slot as usize], true);
        out.push(Arg::new(slot, last));
    }
    out.reverse();
}
