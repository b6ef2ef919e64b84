//! Writing loops and branches: their regions one after the other, with jumps.

use std::sync::Arc;

use nxla_expr::{Op, TensorType};

use super::build::{At, Builder, Held};
use super::region::{Site, given};
use super::{Handle, Inst, Loop};
use crate::plan::{Action, Plan};

impl Builder {
    /// A loop, whose operands may die with it.
    pub(super) fn while_loop(&mut self, of: &Loop, operands: &[Held], lasts: &[bool]) -> Vec<Held> {
        let mut state = Vec::with_capacity(of.state);
        for (index, (held, &last)) in operands[..of.state].iter().zip(lasts).enumerate() {
            state.push(self.first_state(held, last, is_put_into(&of.body, index)));
        }
        self.blocks.push(Vec::new());
        let inputs = |state: &[Held], lent: bool| -> Vec<Held> {
            let state = state.iter().map(|held| if lent { held.lent() } else { held.clone() });
            state.chain(operands[of.state..].iter().map(Held::lent)).collect()
        };
        for held in &mut state {
            held.level = self.depth();
        }
        self.push(Inst::Check);
        let goes_on = self.region(&of.condition, &inputs(&state, true));
        let leave = self.jump_unless(&goes_on[0]);
        let results = self.region(&of.body, &inputs(&state, false));
        self.next_state(&state, results);
        let block = self.blocks.last_mut().expect("it was begun above");
        let begin = block.len();
        block.push(Inst::Jump(-distance(begin)));
        let end = block.len();
        block[leave].set_distance(distance(end - leave));
        self.end_block();
        let depth = self.depth();
        state.into_iter().map(|held| Held { level: depth, ..held }).collect()
    }

    /// What a loop begins with, in a place or a slot that is its own.
    fn first_state(&mut self, held: &Held, is_last: bool, is_put_into: bool) -> Held {
        let level = self.depth();
        if self.is_near(&held.ty) && !is_put_into {
            let (first, to) = self.result(held.ty.clone(), level);
            self.copy(held, to);
            return first;
        }
        let to = self.new_slot();
        self.push(match held.at {
            At::Near(from) => Handle::Store { from, ty: Box::new(held.ty.clone()), to },
            At::Far { slot: from, is_own: true } if is_last => Handle::Move { from, to },
            At::Far { slot: from, .. } => Handle::Share { from, to },
        });
        Held { ty: held.ty.clone(), at: At::Far { slot: to, is_own: true }, level }
    }

    /// What a trip has made becomes what the next one finds.
    fn next_state(&mut self, state: &[Held], results: Vec<Held>) {
        let mut results = results;
        // What a trip passes on at another place is taken from where it is before that is written.
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
            if let At::Near(span) = result.at {
                self.memory.release(span.at);
            }
        }
    }

    /// A value at a place that will be written.
    fn set_aside(&mut self, held: &Held) -> At {
        match held.at {
            At::Near(from) => {
                let (aside, to) = self.result(held.ty.clone(), self.depth());
                self.copy(held, to);
                self.memory.release(from.at);
                aside.at
            }
            At::Far { slot: from, is_own } => {
                let to = self.new_slot();
                self.push(Handle::Move { from, to });
                At::Far { slot: to, is_own }
            }
        }
    }

    /// Puts a value, which is not needed any more, where another one is expected.
    fn store(&mut self, result: &Held, at: At) {
        self.push(match (result.at, at) {
            (_, At::Near(to)) => return self.copy(result, to),
            (At::Near(from), At::Far { slot: to, .. }) => {
                Handle::Store { from, ty: Box::new(result.ty.clone()), to }
            }
            (At::Far { slot: from, .. }, At::Far { slot: to, .. }) => Handle::Move { from, to },
        });
    }

    /// Branches: the first whose predicate holds.
    pub(super) fn branches(&mut self, regions: &[Arc<Plan>], site: &Site<'_>) -> Vec<Held> {
        let types = site.types.iter();
        let results: Vec<Held> = types.map(|ty| self.expected(ty)).collect();
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

    fn branch(&mut self, plan: &Arc<Plan>, site: &Site<'_>, results: &[Held]) {
        let inputs = given(site);
        for (found, expected) in self.region(plan, &inputs).into_iter().zip(results) {
            self.store(&found, expected.at);
            if let At::Near(span) = found.at {
                self.memory.release(span.at);
            }
        }
    }

    /// Where several branches put a result.
    fn expected(&mut self, ty: &TensorType) -> Held {
        let depth = self.depth();
        if self.is_near(ty) {
            return self.result(ty.clone(), depth).0;
        }
        let at = At::Far { slot: self.new_slot(), is_own: true };
        Held { ty: ty.clone(), at, level: depth }
    }

    /// Writes a jump whose aim is not known, and gives where it is.
    fn jump_unless(&mut self, holds: &Held) -> usize {
        let predicate = self.near_copy(holds);
        let at = self.here();
        self.push(Inst::JumpUnless { predicate, dtype: holds.ty.dtype, by: 0 });
        self.memory.release(predicate.at);
        at
    }

    /// Where the next instruction will be in its block.
    fn here(&self) -> usize {
        self.blocks[self.depth()].len()
    }

    fn patch(&mut self, jump: usize, aim: usize) {
        let depth = self.depth();
        self.blocks[depth][jump].set_distance(distance(aim - jump));
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
    i32::try_from(insts).expect("code is short")
}

/// Whether the body of a loop puts something into this part of its state.
fn is_put_into(body: &Plan, index: usize) -> bool {
    let Some(slot) = body.inputs[index] else { return false };
    let graph = body.program().graph();
    for (position, step) in body.steps.iter().enumerate() {
        let is_put = matches!(step.action, Action::Op)
            && matches!(graph.op(step.id), Op::PutSlice(_))
            && body.args_of(position)[0].slot() == slot as usize;
        // The slot is that of another value once this one is dead.
        let dies =
            body.args_of(position).iter().any(|arg| arg.slot() == slot as usize && arg.is_last());
        if is_put || dies {
            return is_put;
        }
    }
    false
}
