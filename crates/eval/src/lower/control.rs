//! Lowering of loops and branches: the instructions of their regions, with jumps.

use std::sync::Arc;

use nxla_expr::{Op, TensorType};

use super::build::{BytecodeBuilder, Location, Value};
use super::region::StepContext;
use crate::execute::code::{Handle, Inst};
use crate::schedule::{Loop, Schedule, Work};

impl BytecodeBuilder {
    /// Lowers a loop, whose operands may die with it.
    pub(super) fn while_loop(
        &mut self,
        of: &Loop,
        operands: &[Value],
        lasts: &[bool],
    ) -> Vec<Value> {
        let mut state = Vec::with_capacity(of.state);
        for (index, (value, &last)) in operands[..of.state].iter().zip(lasts).enumerate() {
            state.push(self.first_state(value, last, is_put_into(&of.body, index)));
        }
        let captures: Vec<Value> =
            operands[of.state..].iter().map(|value| self.capture(value)).collect();
        self.levels.push(Vec::new());
        let inputs = |state: Vec<Value>| [state, captures.clone()].concat();
        for value in &mut state {
            value.level = self.depth();
        }
        self.push(Inst::Check);
        let borrowed = state.iter().map(Value::to_borrowed).collect();
        let continues = self.region(&of.condition, &inputs(borrowed));
        let leave = self.jump_unless(&continues[0]);
        let results = self.region(&of.body, &inputs(state.clone()));
        self.next_state(&state, results);
        self.push(Inst::Jump(-distance(self.here())));
        self.end_jump(leave);
        self.end_loop();
        for (capture, operand) in captures.iter().zip(&operands[of.state..]) {
            if capture.location != operand.to_borrowed().location {
                self.release(capture);
            }
        }
        let depth = self.depth();
        state.into_iter().map(|value| Value { level: depth, ..value }).collect()
    }

    /// The initial value of a state, at a new location. A state into which the body puts slices stays boxed,
    /// because the arena would copy it for each slice.
    fn first_state(&mut self, value: &Value, is_last: bool, is_put_into: bool) -> Value {
        let level = self.depth();
        if self.is_small_in_loops(&value.ty) && !is_put_into {
            let (first, to) = self.result(value.ty.clone(), level);
            self.copy(value, to);
            return first;
        }
        let to = self.slots.take();
        self.push(match value.location {
            Location::Arena(from) => Handle::Box { from, ty: Box::new(value.ty.clone()), to },
            Location::Slot { slot: from, owned: true } if is_last => Handle::Move { from, to },
            Location::Slot { slot: from, .. } => Handle::Share { from, to },
        });
        Value { ty: value.ty.clone(), location: Location::Slot { slot: to, owned: true }, level }
    }

    /// A value that a loop captures: a copy in the arena if the value is small and boxed.
    fn capture(&mut self, value: &Value) -> Value {
        match value.location {
            Location::Slot { .. } if self.is_small_in_loops(&value.ty) => {
                let (copy, to) = self.result(value.ty.clone(), self.depth());
                self.copy(value, to);
                copy
            }
            Location::Slot { .. } | Location::Arena(_) => value.to_borrowed(),
        }
    }

    /// Moves the results of an iteration to the locations of the state.
    fn next_state(&mut self, state: &[Value], results: Vec<Value>) {
        let mut results = results;
        // A result at the location of another state moves before that state is overwritten.
        for (value, result) in state.iter().zip(&mut results) {
            let is_elsewhere = result.location != value.location;
            if is_elsewhere && state.iter().any(|other| other.location == result.location) {
                result.location = self.set_aside(result);
            }
        }
        for (value, result) in state.iter().zip(results) {
            if value.location != result.location {
                self.store(&result, value.location);
            }
            self.release_stored(&result, value.location);
        }
    }

    /// Moves a value away from a location that will be overwritten.
    fn set_aside(&mut self, value: &Value) -> Location {
        let aside = match value.location {
            Location::Arena(_) => {
                let (aside, to) = self.result(value.ty.clone(), self.depth());
                self.copy(value, to);
                aside.location
            }
            Location::Slot { slot: from, owned } => {
                let to = self.slots.take();
                self.push(Handle::Move { from, to });
                Location::Slot { slot: to, owned }
            }
        };
        self.release_moved(value);
        aside
    }

    /// Stores a value that dies at the location of another value.
    fn store(&mut self, result: &Value, target: Location) {
        self.push(match (result.location, target) {
            (_, Location::Arena(to)) => return self.copy(result, to),
            (Location::Arena(from), Location::Slot { slot: to, .. }) => {
                Handle::Box { from, ty: Box::new(result.ty.clone()), to }
            }
            (Location::Slot { slot: from, .. }, Location::Slot { slot: to, .. }) => {
                Handle::Move { from, to }
            }
        });
    }

    /// Releases a result that was stored at a location, or that is an unchanged state there.
    fn release_stored(&mut self, result: &Value, stored: Location) {
        match (result.location, stored) {
            // A copy in the arena leaves the tensor in its slot.
            (Location::Slot { .. }, Location::Arena(_)) => self.release(result),
            (Location::Slot { .. }, Location::Slot { .. }) | (Location::Arena(_), _) => {
                self.release_moved(result);
            }
        }
    }

    /// Lowers a conditional: the first branch whose predicate is true runs.
    pub(super) fn branches(
        &mut self,
        regions: &[Arc<Schedule>],
        site: &StepContext<'_>,
    ) -> Vec<Value> {
        let results: Vec<Value> = site.types.iter().map(|ty| self.branch_result(ty)).collect();
        let operands: Vec<Value> = site.operands.iter().map(Value::to_borrowed).collect();
        let (clauses, otherwise) = regions.as_chunks::<2>();
        let mut leave = Vec::with_capacity(clauses.len());
        self.branches += 1;
        for [predicate, branch] in clauses {
            let holds = self.region(predicate, &operands);
            let skip = self.jump_unless(&holds[0]);
            self.branch(branch, site, &results);
            leave.push(self.here());
            self.push(Inst::Jump(0));
            self.end_jump(skip);
        }
        self.branch(&otherwise[0], site, &results);
        self.branches -= 1;
        leave.into_iter().for_each(|jump| self.end_jump(jump));
        results
    }

    fn branch(&mut self, region: &Schedule, site: &StepContext<'_>, results: &[Value]) {
        let inputs = site.inputs();
        for (found, expected) in self.region(region, &inputs).into_iter().zip(results) {
            self.store(&found, expected.location);
            self.release_stored(&found, expected.location);
        }
    }

    /// The result of a conditional, which all branches store at one location.
    fn branch_result(&mut self, ty: &TensorType) -> Value {
        let depth = self.depth();
        if self.is_small(ty) {
            return self.result(ty.clone(), depth).0;
        }
        let location = Location::Slot { slot: self.slots.take(), owned: true };
        Value { ty: ty.clone(), location, level: depth }
    }

    /// Appends a jump whose distance is not known, and returns its position.
    fn jump_unless(&mut self, holds: &Value) -> usize {
        let predicate = self.arena_copy(holds);
        self.release(holds);
        self.release_scratch();
        let position = self.here();
        self.push(Inst::JumpUnless { predicate, dtype: holds.ty.dtype, by: 0 });
        position
    }

    /// The position of the next instruction in its level.
    fn here(&self) -> usize {
        self.levels[self.depth()].len()
    }

    /// Sets the target of a jump to the next instruction.
    fn end_jump(&mut self, jump: usize) {
        let (depth, by) = (self.depth(), distance(self.here() - jump));
        self.levels[depth][jump].set_distance(by);
    }
}

impl Inst {
    fn set_distance(&mut self, distance: i32) {
        match self {
            Inst::Jump(by) | Inst::JumpUnless { by, .. } => *by = distance,
            _ => unreachable!("only jumps have a distance"),
        }
    }
}

fn distance(insts: usize) -> i32 {
    i32::try_from(insts).expect("jumps are short")
}

/// Returns true if the body of a loop puts a slice into this state.
fn is_put_into(body: &Schedule, index: usize) -> bool {
    let Some(value) = body.inputs[index] else { return false };
    let graph = body.program.graph();
    body.steps.iter().any(|step| {
        let is_put = matches!(step.work, Work::Op) && matches!(graph.op(step.id), Op::PutSlice(_));
        is_put && step.args[0] == value
    })
}
