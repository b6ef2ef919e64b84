//! Lowering of loops and branches: the instructions of their regions, with jumps.

use std::sync::Arc;

use nxla_expr::{Op, TensorType};

use super::build::{At, Builder, Held};
use super::region::Site;
use crate::execute::code::{Handle, Inst};
use crate::schedule::{Loop, Schedule, Work};

impl Builder {
    /// Lowers a loop, whose operands may die with it.
    pub(super) fn while_loop(&mut self, of: &Loop, operands: &[Held], lasts: &[bool]) -> Vec<Held> {
        let mut state = Vec::with_capacity(of.state);
        for (index, (held, &last)) in operands[..of.state].iter().zip(lasts).enumerate() {
            state.push(self.first_state(held, last, is_put_into(&of.body, index)));
        }
        let captures: Vec<Held> =
            operands[of.state..].iter().map(|held| self.capture(held)).collect();
        self.blocks.push(Vec::new());
        let inputs = |state: &[Held], is_lent: bool| -> Vec<Held> {
            let state = state.iter().map(|held| if is_lent { held.lent() } else { held.clone() });
            state.chain(captures.iter().cloned()).collect()
        };
        for held in &mut state {
            held.level = self.depth();
        }
        self.push(Inst::Check);
        let continues = self.region(&of.condition, &inputs(&state, true));
        let leave = self.jump_unless(&continues[0]);
        let results = self.region(&of.body, &inputs(&state, false));
        self.next_state(&state, results);
        let block = self.blocks.last_mut().expect("the block of the loop");
        let begin = block.len();
        block.push(Inst::Jump(-distance(begin)));
        let end = block.len();
        block[leave].set_distance(distance(end - leave));
        self.end_block();
        for (capture, operand) in captures.iter().zip(&operands[of.state..]) {
            if capture.at != operand.lent().at {
                self.release(capture, false);
            }
        }
        let depth = self.depth();
        state.into_iter().map(|held| Held { level: depth, ..held }).collect()
    }

    /// The initial value of a state, in a new place. A state into which the body puts slices stays boxed,
    /// because the arena would copy it for each slice.
    fn first_state(&mut self, held: &Held, is_last: bool, is_put_into: bool) -> Held {
        let level = self.depth();
        if self.is_small_in_loops(&held.ty) && !is_put_into {
            let (first, to) = self.result(held.ty.clone(), level);
            self.copy(held, to);
            return first;
        }
        let to = self.slots.take();
        self.push(match held.at {
            At::Arena(from) => Handle::Store { from, ty: Box::new(held.ty.clone()), to },
            At::Slot { slot: from, is_own: true } if is_last => Handle::Move { from, to },
            At::Slot { slot: from, .. } => Handle::Share { from, to },
        });
        Held { ty: held.ty.clone(), at: At::Slot { slot: to, is_own: true }, level }
    }

    /// A value that a loop captures: a copy in the arena if the value is small and boxed.
    fn capture(&mut self, held: &Held) -> Held {
        match held.at {
            At::Slot { .. } if self.is_small_in_loops(&held.ty) => {
                let (copy, to) = self.result(held.ty.clone(), self.depth());
                self.copy(held, to);
                copy
            }
            At::Slot { .. } | At::Arena(_) => held.lent(),
        }
    }

    /// Moves the results of an iteration to the places of the state.
    fn next_state(&mut self, state: &[Held], results: Vec<Held>) {
        let mut results = results;
        // A result that occupies the place of another state is moved before that place is
        // overwritten.
        for (held, result) in state.iter().zip(&mut results) {
            let is_elsewhere = result.at != held.at;
            if is_elsewhere && state.iter().any(|other| other.at == result.at) {
                result.at = self.set_aside(result);
            }
        }
        for (held, result) in state.iter().zip(results) {
            if held.at != result.at {
                self.store(&result, held.at);
            }
            self.release_result(&result, held.at);
        }
    }

    /// Moves a value away from a place that will be written.
    fn set_aside(&mut self, held: &Held) -> At {
        match held.at {
            At::Arena(from) => {
                let (aside, to) = self.result(held.ty.clone(), self.depth());
                self.copy(held, to);
                self.arena.release(from.at);
                aside.at
            }
            At::Slot { slot: from, is_own } => {
                let to = self.slots.take();
                self.push(Handle::Move { from, to });
                At::Slot { slot: to, is_own }
            }
        }
    }

    /// Stores a value that dies at the place of another value.
    fn store(&mut self, result: &Held, at: At) {
        self.push(match (result.at, at) {
            (_, At::Arena(to)) => return self.copy(result, to),
            (At::Arena(from), At::Slot { slot: to, .. }) => {
                Handle::Store { from, ty: Box::new(result.ty.clone()), to }
            }
            (At::Slot { slot: from, .. }, At::Slot { slot: to, .. }) => Handle::Move { from, to },
        });
    }

    /// Releases the place of a result that was stored at another place.
    fn release_result(&mut self, result: &Held, stored: At) {
        match result.at {
            At::Arena(span) => self.arena.release(span.at),
            // A copy in the arena leaves the tensor in its slot.
            At::Slot { .. } if result.at != stored => {
                self.release(result, matches!(stored, At::Slot { .. }));
            }
            At::Slot { .. } => {}
        }
    }

    /// Lowers a conditional: the first branch whose predicate is true runs.
    pub(super) fn branches(&mut self, regions: &[Arc<Schedule>], site: &Site<'_>) -> Vec<Held> {
        let results: Vec<Held> = site.types.iter().map(|ty| self.branch_result(ty)).collect();
        let lent: Vec<Held> = site.operands.iter().map(Held::lent).collect();
        let (clauses, otherwise) = regions.as_chunks::<2>();
        let mut leave = Vec::with_capacity(clauses.len());
        self.branches += 1;
        for [predicate, branch] in clauses {
            let holds = self.region(predicate, &lent);
            let skip = self.jump_unless(&holds[0]);
            self.branch(branch, site, &results);
            leave.push(self.here());
            self.push(Inst::Jump(0));
            let here = self.here();
            self.patch(skip, here);
        }
        self.branch(&otherwise[0], site, &results);
        self.branches -= 1;
        let here = self.here();
        leave.into_iter().for_each(|jump| self.patch(jump, here));
        results
    }

    fn branch(&mut self, region: &Schedule, site: &Site<'_>, results: &[Held]) {
        let inputs = site.inputs();
        for (found, expected) in self.region(region, &inputs).into_iter().zip(results) {
            self.store(&found, expected.at);
            self.release_result(&found, expected.at);
        }
    }

    /// The place in which all branches store a result.
    fn branch_result(&mut self, ty: &TensorType) -> Held {
        let depth = self.depth();
        if self.is_small(ty) {
            return self.result(ty.clone(), depth).0;
        }
        let at = At::Slot { slot: self.slots.take(), is_own: true };
        Held { ty: ty.clone(), at, level: depth }
    }

    /// Appends a jump whose distance is not known, and returns its position.
    fn jump_unless(&mut self, holds: &Held) -> usize {
        let predicate = self.arena_copy(holds);
        self.release(holds, false);
        self.release_scratch();
        let at = self.here();
        self.push(Inst::JumpUnless { predicate, dtype: holds.ty.dtype, by: 0 });
        at
    }

    /// The position of the next instruction in its block.
    fn here(&self) -> usize {
        self.blocks[self.depth()].len()
    }

    fn patch(&mut self, jump: usize, target: usize) {
        let depth = self.depth();
        self.blocks[depth][jump].set_distance(distance(target - jump));
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
