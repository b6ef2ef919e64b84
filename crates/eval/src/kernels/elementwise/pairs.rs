//! Kernels of two operations: arithmetic, or a comparison and a logical operation.
//!
//! The value between the operations stays in a register of the processor. Each operation rounds as it does alone.

use nxla_expr::BinaryOp;

use super::dtype::Compute;
use super::lanes::{Kernel, kernel};

/// The operand that is the result of another operation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Left,
    Right,
    Both,
}

/// The kernel of the operation `second` whose operand on this side is the result of `first`. The operands of the kernel
/// are the operands of `first`, then the other operand of `second`.
pub(crate) fn pair_kernel(
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

/// The kernel of a comparison whose result is combined with another boolean.
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
