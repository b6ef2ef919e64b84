//! Kernels that convert between dtypes by the rules of [`Scalar::cast`](nxla_tensor::Scalar::cast).
//!
//! Frequent pairs have loops that compile to vector code. The other pairs are converted in two steps, through the
//! widest dtype of the kind of the source, which represents all its elements exactly; the generic loops of the steps
//! are far fewer than the pairs.

use bytemuck::Pod;
use half::slice::HalfFloatSliceExt;
use nxla_tensor::{Complex, DType, Element, F8E4M3, F8E5M2, HostTensor, bf16, f16, match_dtype};
use smallvec::{SmallVec, smallvec};

use super::binary::copy_kernel;
use super::lanes::{Kernel, Src, kernel, map1_near};
use super::{ROUND_F32, ROUND_F64, vectorize};
use crate::context::{self, Cx, Fault};
use crate::kernels::number::accumulator_dtype;

/// The tensor in another dtype; another handle to the same tensor if it has that dtype.
pub(crate) fn convert(cx: Cx<'_>, x: &HostTensor, to: DType) -> Result<HostTensor, Fault> {
    let from = x.dtype();
    if from == to {
        return Ok(x.clone());
    }
    let kernels = convert_kernels(from, to);
    context::build_bytes(to, x.shape(), |out| {
        cx.rows(out, to.size(), 1, |first, out| {
            let bytes = &x.bytes()[first * from.size()..];
            let bytes = &bytes[..out.len() / to.size() * from.size()];
            match kernels[..] {
                [(kernel, _)] => run(kernel, bytes, out),
                _ => convert_blocks(cx, &kernels, (bytes, from), (out, to)),
            }
        });
    })
}

fn run(kernel: Kernel, bytes: &[u8], out: &mut [u8]) {
    kernel([Src { bytes, splat: false }, Src::NONE, Src::NONE], out);
}

/// Applies two kernels to blocks of elements, so that the results of the first one stay in the cache.
fn convert_blocks(
    cx: Cx<'_>,
    kernels: &ConvertKernels,
    (bytes, from): (&[u8], DType),
    (out, to): (&mut [u8], DType),
) {
    let [(widen, wide), (narrow, _)] = kernels[..] else { unreachable!("there are two kernels") };
    let mut scratch = cx.scratch();
    let blocks = out.chunks_mut(BLOCK * to.size());
    for (bytes, out) in bytes.chunks(BLOCK * from.size()).zip(blocks) {
        let wide = scratch.bytes(bytes.len() / from.size() * wide.size());
        run(widen, bytes, wide);
        run(narrow, wide, out);
    }
}

/// A tensor of a dtype to which no other handle exists: this tensor if possible, and a copy
/// otherwise.
pub(crate) fn owned(cx: Cx<'_>, mut tensor: HostTensor, dtype: DType) -> Result<HostTensor, Fault> {
    if tensor.dtype() != dtype {
        return convert(cx, &tensor, dtype);
    }
    if tensor.try_unique_mut().is_some() {
        return Ok(tensor);
    }
    context::build_bytes(tensor.dtype(), tensor.shape(), |out| out.copy_from_slice(tensor.bytes()))
}

/// Fills `out` with consecutive integers from `first` on, as elements of a dtype. They wrap in
/// narrow integer dtypes.
pub(crate) fn count_from(first: usize, dtype: DType, out: &mut [u8]) {
    let end = i32::try_from(first.saturating_add(out.len() / dtype.size()));
    match (dtype, end) {
        (DType::F32, Ok(_)) => count_up(first as i32, bytemuck::cast_slice_mut(out), |n| n as f32),
        (DType::F64, Ok(_)) => count_up(first as i32, bytemuck::cast_slice_mut(out), f64::from),
        (DType::S32 | DType::U32, Ok(_)) => {
            count_up(first as i32, bytemuck::cast_slice_mut(out), |n| n);
        }
        _ => {
            let kernel = from_wide(DType::S64, dtype);
            let mut numbers = [0_i64; BLOCK];
            for (block, out) in out.chunks_mut(BLOCK * dtype.size()).enumerate() {
                let numbers = &mut numbers[..out.len() / dtype.size()];
                numbers
                    .iter_mut()
                    .zip((first + block * BLOCK) as i64..)
                    .for_each(|(to, n)| *to = n);
                run(kernel, bytemuck::cast_slice(numbers), out);
            }
        }
    }
}

/// Consecutive integers from `first` on, converted by `make`.
fn count_up<T>(first: i32, numbers: &mut [T], make: impl Fn(i32) -> T) {
    vectorize(
        #[inline(always)]
        || {
            for (at, number) in numbers.iter_mut().enumerate() {
                *number = make(first + at as i32);
            }
        },
    );
}

/// Elements of a block, which stays in the cache.
const BLOCK: usize = 1024;

/// A float clamped to the range of an integer, and 0 for NaN. The operator `as` does the same but is not vectorized.
macro_rules! saturated {
    ($x:expr, $from:ident, $to:ident) => {{
        let number = if $x.is_nan() { 0.0 } else { $x };
        let number = if number > $to::MIN as $from { number } else { $to::MIN as $from };
        if number < $to::MAX as $from { number } else { $to::MAX as $from }
    }};
}

/// The kernels from floats to integers that are the low bits of a wider integer.
macro_rules! truncated {
    (f32, $to:ident) => {
        kernel!(|x: f32| -> $to { small_to_i32(saturated!(x, f32, $to)) as $to })
    };
    (f64, $to:ident) => {
        kernel!(|x: f64| -> $to { near_to_i64(saturated!(x, f64, $to)) as $to })
    };
}

/// The kernels from floats to 64-bit integers, which are vectorized for small numbers.
macro_rules! truncated_far {
    ($from:ident) => {
        |srcs, out| {
            map1_near(
                srcs,
                out,
                #[inline(always)]
                |x: $from| x.abs() < 2_251_799_813_685_248.0,
                #[inline(always)]
                |x| near_to_i64(f64::from(x)),
                #[inline(always)]
                |x| x as i64,
            )
        }
    };
}

/// The kernel between primitive types, by Rust's conversion.
macro_rules! cast {
    ($from:ident, $to:ident) => {
        kernel!(|x: $from| -> $to { x as $to })
    };
}

/// The kernel that compares numbers with zero.
macro_rules! is_nonzero {
    ($from:ident) => {
        kernel!(|x: $from| -> u8 { u8::from(x != 0 as $from) })
    };
}

/// Kernels that run one after the other, each with the dtype of its result.
pub(crate) type ConvertKernels = SmallVec<[(Kernel, DType); 2]>;

/// The kernels that convert elements of one dtype to another.
pub(crate) fn convert_kernels(from: DType, to: DType) -> ConvertKernels {
    let wide = accumulator_dtype(from);
    match frequent_kernel(from, to) {
        Some(kernel) => smallvec![(kernel, to)],
        None if from == wide => smallvec![(from_wide(from, to), to)],
        None if to == wide => smallvec![(to_wide(from), to)],
        None => smallvec![(to_wide(from), wide), (from_wide(wide, to), to)],
    }
}

/// The kernel of a frequent pair of dtypes. A narrow integer is a value of the integer that stores it.
fn frequent_kernel(from: DType, to: DType) -> Option<Kernel> {
    let from = match_dtype!(from, S => S::DTYPE);
    let is_integer = from.is_integer() && to.is_integer();
    Some(match (from, to) {
        (from, to) if is_integer && from.bits() == to.bits() => copy_kernel(from.size()),
        (DType::F32, DType::F64) => cast!(f32, f64),
        (DType::F64, DType::F32) => cast!(f64, f32),
        (DType::U8, DType::F32) => cast!(u8, f32),
        (DType::U8, DType::F64) => cast!(u8, f64),
        (DType::U8, DType::S16 | DType::U16) => cast!(u8, i16),
        (DType::U8, DType::S32 | DType::U32) => cast!(u8, i32),
        (DType::U8, DType::S64 | DType::U64) => cast!(u8, i64),
        (DType::S8, DType::F32) => cast!(i8, f32),
        (DType::S8, DType::F64) => cast!(i8, f64),
        (DType::S8, DType::S16 | DType::U16) => cast!(i8, i16),
        (DType::S8, DType::S32 | DType::U32) => cast!(i8, i32),
        (DType::S8, DType::S64 | DType::U64) => cast!(i8, i64),
        (DType::S16, DType::F32) => cast!(i16, f32),
        (DType::S16, DType::S32 | DType::U32) => cast!(i16, i32),
        (DType::U16, DType::F32) => cast!(u16, f32),
        (DType::U16, DType::S32 | DType::U32) => cast!(u16, i32),
        (DType::S16 | DType::U16, DType::S8 | DType::U8) => cast!(i16, u8),
        (DType::S32, DType::F32) => cast!(i32, f32),
        (DType::S32, DType::F64) => cast!(i32, f64),
        (DType::S32, DType::S64 | DType::U64) => cast!(i32, i64),
        (DType::S32 | DType::U32, DType::U8 | DType::S8) => cast!(i32, u8),
        (DType::S32 | DType::U32, DType::U16 | DType::S16) => cast!(i32, u16),
        (DType::U32, DType::F32) => cast!(u32, f32),
        (DType::U32, DType::F64) => cast!(u32, f64),
        (DType::U32, DType::S64 | DType::U64) => cast!(u32, i64),
        (DType::S64, DType::F32) => cast!(i64, f32),
        (DType::S64, DType::F64) => cast!(i64, f64),
        (DType::S64 | DType::U64, DType::S32 | DType::U32) => cast!(i64, i32),
        (DType::S64 | DType::U64, DType::U8 | DType::S8) => cast!(i64, u8),
        (DType::U8 | DType::S8, DType::Pred) => is_nonzero!(u8),
        (DType::U16 | DType::S16, DType::Pred) => is_nonzero!(u16),
        (DType::S32 | DType::U32, DType::Pred) => is_nonzero!(i32),
        (DType::S64 | DType::U64, DType::Pred) => is_nonzero!(i64),
        (DType::F32, DType::Pred) => is_nonzero!(f32),
        (DType::F64, DType::Pred) => is_nonzero!(f64),
        (DType::F32, DType::U8) => truncated!(f32, u8),
        (DType::F32, DType::S8) => truncated!(f32, i8),
        (DType::F32, DType::U16) => truncated!(f32, u16),
        (DType::F32, DType::S16) => truncated!(f32, i16),
        (DType::F64, DType::U8) => truncated!(f64, u8),
        (DType::F64, DType::S8) => truncated!(f64, i8),
        (DType::F64, DType::U16) => truncated!(f64, u16),
        (DType::F64, DType::S16) => truncated!(f64, i16),
        (DType::F32, DType::S32) => f32_to_i32,
        (DType::F64, DType::S32) => truncated!(f64, i32),
        (DType::F32, DType::S64) => truncated_far!(f32),
        (DType::F64, DType::S64) => truncated_far!(f64),
        (DType::F32, DType::F16) => f32_to_f16,
        (DType::F16, DType::F32) => f16_to_f32,
        (DType::U8, DType::BF16) => kernel!(|x: u8| -> u16 { f32_to_bf16(f32::from(x)) }),
        (DType::F32, DType::BF16) => kernel!(|x: f32| -> u16 { f32_to_bf16(x) }),
        (DType::BF16, DType::F32) => {
            kernel!(|x: u16| -> f32 { f32::from_bits(u32::from(x) << 16) })
        }
        (DType::C64, DType::F32) => kernel!(|x: Complex<f32>| -> f32 { x.re }),
        (DType::U8, DType::U2) => kernel!(|x: u8| -> u8 { x & 0x3 }),
        (DType::U8, DType::U4) => kernel!(|x: u8| -> u8 { x & 0xf }),
        (DType::S8, DType::S2) => kernel!(|x: i8| -> i8 { (x << 6) >> 6 }),
        (DType::S8, DType::S4) => kernel!(|x: i8| -> i8 { (x << 4) >> 4 }),
        _ => return None,
    })
}

/// The kernel that converts elements to the widest dtype of their kind.
fn to_wide(from: DType) -> Kernel {
    macro_rules! widen {
        ($from:ty, $to:ty) => {
            |srcs, out| convert_each(srcs, out, |x: $from| <$to>::from_scalar(x.to_scalar()))
        };
    }
    match from {
        DType::Pred | DType::U2 | DType::U4 | DType::U8 => widen!(u8, u64),
        DType::U16 => widen!(u16, u64),
        DType::U32 => widen!(u32, u64),
        DType::S2 | DType::S4 | DType::S8 => widen!(i8, i64),
        DType::S16 => widen!(i16, i64),
        DType::S32 => widen!(i32, i64),
        DType::F8E5M2 => widen!(F8E5M2, f64),
        DType::F8E4M3FN => widen!(F8E4M3, f64),
        DType::BF16 => widen!(bf16, f64),
        DType::F16 => widen!(f16, f64),
        DType::F32 => widen!(f32, f64),
        DType::C64 => widen!(Complex<f32>, Complex<f64>),
        DType::U64 | DType::S64 | DType::F64 | DType::C128 => copy_kernel(from.size()),
    }
}

/// The kernel that converts elements of the widest dtype of a kind.
fn from_wide(wide: DType, to: DType) -> Kernel {
    match wide {
        DType::U64 => from_storage::<u64>(to),
        DType::S64 => from_storage::<i64>(to),
        DType::F64 => from_storage::<f64>(to),
        DType::C128 => from_storage::<Complex<f64>>(to),
        dtype => unreachable!("{dtype} is not the widest dtype of its kind"),
    }
}

/// The generic kernels. Storage types do not determine the width of sub-byte integers.
fn from_storage<S: Element>(to: DType) -> Kernel {
    match to {
        DType::Pred => {
            |srcs, out| convert_each(srcs, out, |x: S| u8::from(!x.to_scalar().is_zero()))
        }
        DType::U2 => |srcs, out| convert_each(srcs, out, |x: S| narrow::<S, u8>(x, DType::U2)),
        DType::U4 => |srcs, out| convert_each(srcs, out, |x: S| narrow::<S, u8>(x, DType::U4)),
        DType::S2 => |srcs, out| convert_each(srcs, out, |x: S| narrow::<S, i8>(x, DType::S2)),
        DType::S4 => |srcs, out| convert_each(srcs, out, |x: S| narrow::<S, i8>(x, DType::S4)),
        to => match_dtype!(to, T => {
            |srcs, out| convert_each(srcs, out, |x: S| T::from_scalar(x.to_scalar()))
        }),
    }
}

#[inline(always)]
fn narrow<S: Element, T: Element>(x: S, to: DType) -> T {
    T::from_scalar(x.to_scalar().cast(to))
}

/// A loop that is compiled once instead of for each instruction set, because there are many pairs.
#[inline(always)]
fn convert_each<S: Pod, T: Pod>([source, ..]: [Src<'_>; 3], out: &mut [u8], f: impl Fn(S) -> T) {
    let from: &[S] = bytemuck::cast_slice(source.bytes);
    let out: &mut [T] = bytemuck::cast_slice_mut(out);
    if source.splat {
        if let Some(&x) = from.first() {
            out.fill(f(x));
        }
        return;
    }
    let from = &from[..out.len()];
    for index in 0..out.len() {
        out[index] = f(from[index]);
    }
}

/// Small numbers, the frequent case, take a third of the time.
fn f32_to_i32(srcs: [Src<'_>; 3], out: &mut [u8]) {
    map1_near(
        srcs,
        out,
        #[inline(always)]
        |x: f32| x.abs() < 4_194_304.0,
        small_to_i32,
        #[inline(always)]
        |x| near_to_i64(saturated!(f64::from(x), f64, i32)) as i32,
    );
}

/// Truncates a number below `2^22`.
#[inline(always)]
fn small_to_i32(x: f32) -> i32 {
    (x.trunc() + ROUND_F32).to_bits().wrapping_sub(ROUND_F32.to_bits()) as i32
}

/// Truncates a number below `2^51`.
#[inline(always)]
fn near_to_i64(x: f64) -> i64 {
    (x.trunc() + ROUND_F64).to_bits().wrapping_sub(ROUND_F64.to_bits()) as i64
}

/// Rounds to nearest, ties to even; the upper half of the bits is the `bf16`.
#[inline(always)]
fn f32_to_bf16(x: f32) -> u16 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
    // Rounding could change a NaN to infinity, so a quiet NaN is returned instead.
    let nan = (bits >> 16) | 0x40;
    (if x.is_nan() { nan } else { rounded }) as u16
}

fn f32_to_f16(srcs: [Src<'_>; 3], out: &mut [u8]) {
    let from: &[f32] = bytemuck::cast_slice(srcs[0].bytes);
    if srcs[0].splat {
        return convert_each(srcs, out, f16::from_f32);
    }
    let out: &mut [f16] = bytemuck::cast_slice_mut(out);
    out.convert_from_f32_slice(&from[..out.len()]);
}

fn f16_to_f32(srcs: [Src<'_>; 3], out: &mut [u8]) {
    let from: &[f16] = bytemuck::cast_slice(srcs[0].bytes);
    if srcs[0].splat {
        return convert_each(srcs, out, f16::to_f32);
    }
    let out: &mut [f32] = bytemuck::cast_slice_mut(out);
    from[..out.len()].convert_to_f32_slice(out);
}
