//! Two operations of arithmetic at once.
//!
//! Code that goes through blocks one operation after the other is bound by reading and writing
//! the cache. Where one operation alone reads what another gives, both are one kernel, which
//! keeps the value between them in a register of the processor. Each rounds as it does alone.

use nxla_expr::BinaryOp;

use super::code::{Instruction, Loc, Target};
use super::dtype::Compute;
use super::lanes::{Kernel, kernel};

/// What an instruction computes, if it is an operation of two numbers.
pub(super) type Arithmetic = Option<(BinaryOp, Compute)>;

/// Makes one instruction of two where a kernel is there for both. `kinds` says what each computes, and
/// `is_kept` whether others than instructions need what it gives. Registers have the numbers of
/// the instructions that write them, before and after; gives the new number of each.
pub(super) fn join(
    instructions: &mut Vec<Instruction>,
    kinds: &mut [Arithmetic],
    is_kept: impl Fn(usize) -> bool,
) -> Vec<u16> {
    let mut readers = vec![0_usize; instructions.len()];
    for register in instructions.iter().flat_map(|next| next.operands).filter_map(register) {
        readers[register] += 1;
    }
    let mut is_joined = vec![false; instructions.len()];
    for at in 0..instructions.len() {
        let found = [0, 1].into_iter().find_map(|side| {
            let first = register(instructions[at].operands[side])?;
            let is_free = readers[first] == 1 && !is_kept(first);
            let kernel = pair_kernel(kinds[first]?, kinds[at]?, side).filter(|_| is_free)?;
            Some((side, first, kernel))
        });
        let Some((side, first, kernel)) = found else { continue };
        let [x, y, _] = instructions[first].operands;
        let z = instructions[at].operands[1 - side];
        instructions[at].operands = [x, y, z];
        instructions[at].kernel = kernel;
        // Three operands leave no room for a fourth.
        kinds[at] = None;
        is_joined[first] = true;
    }
    remove(instructions, &is_joined)
}

fn register(loc: Loc) -> Option<usize> {
    match loc {
        Loc::Register(register) => Some(usize::from(register)),
        Loc::Input(_) | Loc::Constant(_) | Loc::Once(_) | Loc::Result(_) | Loc::None => None,
    }
}

/// Takes instructions away, and numbers the registers of the others again.
fn remove(instructions: &mut Vec<Instruction>, is_removed: &[bool]) -> Vec<u16> {
    let mut next = 0;
    let numbers: Vec<u16> = is_removed
        .iter()
        .map(|&is_removed| {
            next += u16::from(!is_removed);
            // That of a removed one is never asked for.
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

/// The kernel of an operation on two operands, of which the one on this side is what another operation
/// gives: its operands are those of the first, then the other one of the second.
fn pair_kernel(
    (first, compute): (BinaryOp, Compute),
    (second, of): (BinaryOp, Compute),
    side: usize,
) -> Option<Kernel> {
    match (compute, of) {
        (Compute::F32, Compute::F32) => pair_f32(first, second, side),
        (Compute::F64, Compute::F64) => pair_f64(first, second, side),
        _ => None,
    }
}

macro_rules! pairs {
    ($name:ident, $t:ident) => {
        fn $name(first: BinaryOp, second: BinaryOp, side: usize) -> Option<Kernel> {
            use BinaryOp::{Add, Multiply, Subtract};
            Some(match (first, second, side) {
                (Add, Add, _) => kernel!(|x: $t, y: $t, z: $t| -> $t { (x + y) + z }),
                (Add, Subtract, 0) => kernel!(|x: $t, y: $t, z: $t| -> $t { (x + y) - z }),
                (Add, Subtract, _) => kernel!(|x: $t, y: $t, z: $t| -> $t { z - (x + y) }),
                (Add, Multiply, _) => kernel!(|x: $t, y: $t, z: $t| -> $t { (x + y) * z }),
                (Subtract, Add, _) => kernel!(|x: $t, y: $t, z: $t| -> $t { (x - y) + z }),
                (Subtract, Subtract, 0) => kernel!(|x: $t, y: $t, z: $t| -> $t { (x - y) - z }),
                (Subtract, Subtract, _) => kernel!(|x: $t, y: $t, z: $t| -> $t { z - (x - y) }),
                (Subtract, Multiply, _) => kernel!(|x: $t, y: $t, z: $t| -> $t { (x - y) * z }),
                (Multiply, Add, _) => kernel!(|x: $t, y: $t, z: $t| -> $t { (x * y) + z }),
                (Multiply, Subtract, 0) => kernel!(|x: $t, y: $t, z: $t| -> $t { (x * y) - z }),
                (Multiply, Subtract, _) => kernel!(|x: $t, y: $t, z: $t| -> $t { z - (x * y) }),
                (Multiply, Multiply, _) => kernel!(|x: $t, y: $t, z: $t| -> $t { (x * y) * z }),
                _ => return None,
            })
        }
    };
}

pairs!(pair_f32, f32);
pairs!(pair_f64, f64);
