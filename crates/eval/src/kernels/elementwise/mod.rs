//! Element-wise ops: their kernels, groups of ops, and the execution of groups block by block.

mod binary;
mod code;
mod convert;
mod division;
mod dtype;
mod exec;
mod lanes;
mod math;
mod pairs;
mod unary;
mod vectorize;

pub(crate) use binary::{
    binary_kernel, clip_kernel, copy_kernel, known_power_kernel, select_kernel,
};
pub(crate) use code::{
    Access, BodyCode, Broadcast, Constant, Domain, Input, Instruction, Loc, PairFunction, Target,
};
pub(crate) use convert::{convert, convert_kernels, count_from, owned};
pub(crate) use division::known_divisor_kernel;
pub(crate) use dtype::Compute;
pub(crate) use exec::{Feed, Feeds, Outs, repeat, split_off};
pub(crate) use lanes::{Kernel, NARROW_LANES, Src, WIDE_LANES};
pub(crate) use pairs::{JoinedSide, pair_kernel};
pub(crate) use unary::{sign_kernel, unary_kernel};
pub(crate) use vectorize::{try_vectorize, try_vectorize_wide, vectorize, vectorize_wide};

/// `1.5 * 2^23` and `1.5 * 2^52`: adding them rounds to an integer, which is then in the low bits.
const ROUND_F32: f32 = 12_582_912.0;
const ROUND_F64: f64 = 6_755_399_441_055_744.0;
