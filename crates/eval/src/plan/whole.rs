//! Steps with what they read and make, for passes that put them together.

use smallvec::SmallVec;

use super::Step;
use super::build::{Built, ValueId};

/// A step with what it reads and makes.
pub(super) struct Whole {
    pub(super) step: Step,
    pub(super) args: SmallVec<[ValueId; 4]>,
    pub(super) results: SmallVec<[ValueId; 2]>,
}

/// The steps, and all the rest, to which steps can be written.
pub(super) fn taken_apart(built: Built) -> (Built, Vec<Whole>) {
    let Built { steps, args, results, inputs, outputs, values, work } = built;
    let mut wholes = Vec::with_capacity(steps.len());
    let mut steps = steps.into_iter().peekable();
    while let Some(step) = steps.next() {
        let (first_arg, first_target) = (step.first_arg as usize, step.first_target as usize);
        let next = steps.peek();
        let last_arg = next.map_or(args.len(), |next| next.first_arg as usize);
        let last_target = next.map_or(results.len(), |next| next.first_target as usize);
        wholes.push(Whole {
            step,
            args: args[first_arg..last_arg].into(),
            results: results[first_target..last_target].into(),
        });
    }
    let (steps, args, results) = (Vec::new(), Vec::new(), Vec::new());
    (Built { steps, args, results, inputs, outputs, values, work }, wholes)
}

/// Writes a step behind those that have been written.
pub(super) fn write(built: &mut Built, whole: Whole) {
    let Whole { mut step, args, results } = whole;
    step.first_arg = u32::try_from(built.args.len()).expect("no more than before");
    step.first_target = u32::try_from(built.results.len()).expect("no more than before");
    built.steps.push(step);
    built.args.extend(args);
    built.results.extend(results);
}

/// How often each value is read, by steps and as an output.
pub(super) fn uses(built: &Built) -> Vec<u32> {
    let mut uses = vec![0; built.values];
    for &value in built.args.iter().chain(&built.outputs) {
        uses[value as usize] += 1;
    }
    uses
}
