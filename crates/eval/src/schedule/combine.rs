//! Combining two instructions of element-wise code into one.
//!
//! Element-wise code that passes over a block once per instruction is bound by reads and writes of the cache. If one
//! instruction alone reads the result of another one, a kernel for both keeps the value between them in a
//! register. Each operation rounds as it does alone.

use nxla_expr::BinaryOp;

use crate::kernels::elementwise::{Compute, Instruction, JoinedSide, Loc, Target, pair_kernel};

/// The operation of an instruction, as far as combining depends on it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// An operation of two operands.
    Binary(BinaryOp, Compute),
    /// The square of an operation of two operands.
    Square(BinaryOp, Compute),
    Other,
}

/// Combines pairs of instructions that have a common kernel. `kinds` holds the operation of each
/// instruction, and `is_kept` returns whether the body returns a register. Before and after the
/// call, a register has the number of the instruction that writes it. The result holds the new
/// number of each register.
pub(super) fn combine(
    instructions: &mut Vec<Instruction>,
    kinds: &mut Vec<Kind>,
    is_kept: impl Fn(usize) -> bool,
) -> Vec<u16> {
    let mut readers = vec![0_usize; instructions.len()];
    for register in instructions.iter().flat_map(|next| next.operands).filter_map(register) {
        readers[register] += 1;
    }
    let mut is_joined = vec![false; instructions.len()];
    for at in 0..instructions.len() {
        let [left, right, _] = instructions[at].operands;
        let reads = if left == right {
            &[(left, Loc::None, JoinedSide::Both)][..]
        } else {
            &[(left, right, JoinedSide::Left), (right, left, JoinedSide::Right)]
        };
        let found = reads.iter().find_map(|&(read, other, side)| {
            let first = register(read)?;
            let times = if side == JoinedSide::Both { 2 } else { 1 };
            let (Kind::Binary(op, of), Kind::Binary(next, same)) = (kinds[first], kinds[at]) else {
                return None;
            };
            let is_joinable = of == same && readers[first] == times && !is_kept(first);
            let kernel = pair_kernel(of, op, next, side).filter(|_| is_joinable)?;
            let kind = if side == JoinedSide::Both { Kind::Square(op, of) } else { Kind::Other };
            Some((first, other, kernel, kind))
        });
        let Some((first, other, kernel, kind)) = found else { continue };
        let [x, y, _] = instructions[first].operands;
        instructions[at].operands = [x, y, other];
        instructions[at].kernel = kernel;
        // A kernel has at most three operands.
        kinds[at] = kind;
        is_joined[first] = true;
    }
    let mut at = 0..is_joined.len();
    kinds.retain(|_| at.next().is_some_and(|at| !is_joined[at]));
    remove(instructions, &is_joined)
}

fn register(loc: Loc) -> Option<usize> {
    match loc {
        Loc::Register(register) => Some(usize::from(register)),
        Loc::Input(_) | Loc::Constant(_) | Loc::Once(_) | Loc::Result(_) | Loc::None => None,
    }
}

/// Removes instructions, and renumbers the registers of the others.
fn remove(instructions: &mut Vec<Instruction>, is_removed: &[bool]) -> Vec<u16> {
    let mut next = 0;
    let numbers: Vec<u16> = is_removed
        .iter()
        .map(|&is_removed| {
            next += u16::from(!is_removed);
            // The number of a removed instruction is never used.
            next.saturating_sub(1)
        })
        .collect();
    let mut at = 0..is_removed.len();
    instructions.retain(|_| at.next().is_some_and(|at| !is_removed[at]));
    for instruction in instructions {
        if let Target::Register(register) = &mut instruction.target {
            *register = numbers[usize::from(*register)];
        }
        for operand in &mut instruction.operands {
            if let Loc::Register(register) = operand {
                *register = numbers[usize::from(*register)];
            }
        }
    }
    numbers
}
