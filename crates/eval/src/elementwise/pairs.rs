//! Two operations of arithmetic, or a comparison and what is made of its truth value, at once.
//!
//! Code that goes through blocks one operation after the other is bound by reading and writing
//! the cache. Where one operation alone reads what another gives, both are one kernel, which
//! keeps the value between them in a register of the processor. Each rounds as it does alone.

use nxla_expr::BinaryOp;

use super::code::{Instruction, Loc, Target};
use super::dtype::Compute;
use super::lanes::{Kernel, kernel};

/// What an instruction computes, as far as others ask.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// An operation of two numbers.
    Binary(BinaryOp, Compute),
    /// The square of one.
    Square(BinaryOp, Compute),
    Absolute,
    Other,
}

/// Makes one instruction of two where a kernel is there for both. `kinds` says what each computes, and
/// `is_kept` whether others than instructions need what it gives. Registers have the numbers of
/// the instructions that write them, before and after; gives the new number of each.
pub(super) fn join(
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
            &[(left, Loc::None, Side::Both)][..]
        } else {
            &[(left, right, Side::Left), (right, left, Side::Right)]
        };
        let found = reads.iter().find_map(|&(read, other, side)| {
            let first = register(read)?;
            let times = if side == Side::Both { 2 } else { 1 };
            let is_free = readers[first] == times && !is_kept(first);
            let (Kind::Binary(op, of), Kind::Binary(next, same)) = (kinds[first], kinds[at]) else {
                return None;
            };
            let kernel = pair_kernel((op, of), (next, same), side).filter(|_| is_free)?;
            let kind = if side == Side::Both { Kind::Square(op, of) } else { Kind::Other };
            Some((first, other, kernel, kind))
        });
        let Some((first, other, kernel, kind)) = found else { continue };
        let [x, y, _] = instructions[first].operands;
        instructions[at].operands = [x, y, other];
        instructions[at].kernel = kernel;
        // Three operands leave no room for a fourth.
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

/// Where an operation has what another one gives.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
    Both,
}

/// The kernel of an operation on two operands, of which the one on this side is what another operation
/// gives: its operands are those of the first, then the other one of the second.
fn pair_kernel(
    (first, compute): (BinaryOp, Compute),
    (second, of): (BinaryOp, Compute),
    side: Side,
) -> Option<Kernel> {
    match (compute, of) {
        (Compute::F32, Compute::F32) => pair_f32(first, second, side),
        (Compute::F64, Compute::F64) => pair_f64(first, second, side),
        (_, Compute::U8) if side != Side::Both => compared_kernel(first, compute, second),
        _ => None,
    }
}

/// The kernel of a comparison whose truth value is joined with another one.
fn compared_kernel(first: BinaryOp, compute: Compute, second: BinaryOp) -> Option<Kernel> {
    use BinaryOp::{Equal, Greater, Less, LogicalAnd, LogicalOr};
    macro_rules! with {
        ($t:ident) => {
            Some(match (first, second) {
                (Equal, LogicalOr) => kernel!(|x: $t, y: $t, z: u8| -> u8 { u8::from(x == y) | z }),
                (Equal, LogicalAnd) => {
                    kernel!(|x: $t, y: $t, z: u8| -> u8 { u8::from(x == y) & z })
                }
                (Less, LogicalOr) => kernel!(|x: $t, y: $t, z: u8| -> u8 { u8::from(x < y) | z }),
                (Less, LogicalAnd) => kernel!(|x: $t, y: $t, z: u8| -> u8 { u8::from(x < y) & z }),
                (Greater, LogicalOr) => {
                    kernel!(|x: $t, y: $t, z: u8| -> u8 { u8::from(x > y) | z })
                }
                (Greater, LogicalAnd) => {
                    kernel!(|x: $t, y: $t, z: u8| -> u8 { u8::from(x > y) & z })
                }
                _ => return None,
            })
        };
    }
    match compute {
        Compute::F32 => with!(f32),
        Compute::F64 => with!(f64),
        Compute::S32 => with!(i32),
        Compute::S64 => with!(i64),
        Compute::U8
        | Compute::U16
        | Compute::U32
        | Compute::U64
        | Compute::S8
        | Compute::S16
        | Compute::C64
        | Compute::C128 => None,
    }
}

macro_rules! pairs {
    ($name:ident, $t:ident) => {
        fn $name(first: BinaryOp, second: BinaryOp, side: Side) -> Option<Kernel> {
            use BinaryOp::{Add, Multiply, Subtract};
            use Side::{Both, Left, Right};
            Some(match (first, second, side) {
                (Add, Multiply, Both) => kernel!(|x: $t, y: $t| -> $t { (x + y) * (x + y) }),
                (Subtract, Multiply, Both) => kernel!(|x: $t, y: $t| -> $t { (x - y) * (x - y) }),
                (Multiply, Multiply, Both) => kernel!(|x: $t, y: $t| -> $t { (x * y) * (x * y) }),
                (_, _, Both) => return None,
                (Add, Add, _) => kernel!(|x: $t, y: $t, z: $t| -> $t { (x + y) + z }),
                (Add, Subtract, Left) => kernel!(|x: $t, y: $t, z: $t| -> $t { (x + y) - z }),
                (Add, Subtract, Right) => kernel!(|x: $t, y: $t, z: $t| -> $t { z - (x + y) }),
                (Add, Multiply, _) => kernel!(|x: $t, y: $t, z: $t| -> $t { (x + y) * z }),
                (Subtract, Add, _) => kernel!(|x: $t, y: $t, z: $t| -> $t { (x - y) + z }),
                (Subtract, Subtract, Left) => kernel!(|x: $t, y: $t, z: $t| -> $t { (x - y) - z }),
                (Subtract, Subtract, Right) => kernel!(|x: $t, y: $t, z: $t| -> $t { z - (x - y) }),
                (Subtract, Multiply, _) => kernel!(|x: $t, y: $t, z: $t| -> $t { (x - y) * z }),
                (Multiply, Add, _) => kernel!(|x: $t, y: $t, z: $t| -> $t { (x * y) + z }),
                (Multiply, Subtract, Left) => kernel!(|x: $t, y: $t, z: $t| -> $t { (x * y) - z }),
                (Multiply, Subtract, Right) => kernel!(|x: $t, y: $t, z: $t| -> $t { z - (x * y) }),
                (Multiply, Multiply, _) => kernel!(|x: $t, y: $t, z: $t| -> $t { (x * y) * z }),
                _ => return None,
            })
        }
    };
}

pairs!(pair_f32, f32);
pairs!(pair_f64, f64);
