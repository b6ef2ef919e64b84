//! Kernels of two arithmetic operations.
//!
//! The value between the operations stays in a register of the processor. Each operation rounds as it does alone.

use nxla_expr::BinaryOp;

use super::dtype::Compute;
use super::lanes::{Kernel, kernel};

/// The operand that is the result of another operation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum JoinedSide {
    Left,
    Right,
    Both,
}

/// The kernel of the operation `second` whose operand on this side is the result of `first`. The operands of the kernel
/// are the operands of `first`, then the other operand of `second`.
pub(crate) fn pair_kernel(
    compute: Compute,
    first: BinaryOp,
    second: BinaryOp,
    side: JoinedSide,
) -> Option<Kernel> {
    match compute {
        Compute::F32 => pair_f32(first, second, side),
        Compute::F64 => pair_f64(first, second, side),
        _ => None,
    }
}

macro_rules! pairs {
    ($name:ident, $t:ident) => {
        fn $name(first: BinaryOp, second: BinaryOp, side: JoinedSide) -> Option<Kernel> {
            use BinaryOp::{Add, Multiply, Subtract};
            use JoinedSide::{Both, Left, Right};
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
