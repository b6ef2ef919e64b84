//! Sorting along an axis. NaN counts as the largest number, and equal elements keep their order.
//!
//! Elements become unsigned keys of the same order, so that there is one sort for all dtypes. If
//! positions are requested, the lower half of the key is the position, which makes all keys
//! distinct and the sort stable.

use nxla_expr::SortAttributes;
use nxla_tensor::{DType, HostTensor};

use super::radix::{self, Key};
use crate::context::{self, Cx, Fault};
use crate::kernels::elementwise::convert;
use crate::kernels::ordered::{Ordered, comparison_dtype, match_sorted};
use crate::kernels::reduce::Plane;

/// An element that has an unsigned key of the same order.
pub(super) trait Keyed: Ordered {
    type Key: Key + std::ops::Not<Output = Self::Key>;
    /// A key that holds a key and a position.
    type Pair: Key;
    /// Bits of a key.
    const BITS: u32;
    /// The keys of the two zeros of a float; each is the inverse of the other.
    const ZEROS: Option<[Self::Key; 2]>;

    /// The key. The key of `-0.0` is one less than the key of `0.0`.
    fn key(self) -> Self::Key;
    fn of_key(key: Self::Key) -> Self;
    /// The key for comparisons of equality: equal numbers, such as `0.0` and `-0.0`, have the same
    /// key.
    fn equal_key(self) -> Self::Key;
    fn pair(key: Self::Key, position: usize) -> Self::Pair;
    fn position(pair: Self::Pair) -> i64;
}

macro_rules! keyed {
    ($($t:ident, $bits:ident, $pair:ident: $key:expr, $of_key:expr, $equal:expr, $zeros:expr;)*) => {
        $(impl Keyed for $t {
            type Key = $bits;
            type Pair = $pair;
            const BITS: u32 = $bits::BITS;
            const ZEROS: Option<[$bits; 2]> = $zeros;

            #[inline(always)]
            fn key(self) -> $bits {
                $key(self)
            }
            #[inline(always)]
            fn of_key(key: $bits) -> Self {
                $of_key(key)
            }
            #[inline(always)]
            fn equal_key(self) -> $bits {
                $key($equal(self))
            }
            #[inline(always)]
            fn pair(key: $bits, position: usize) -> $pair {
                $pair::from(key) << $bits::BITS | position as $pair
            }
            #[inline(always)]
            fn position(pair: $pair) -> i64 {
                (pair & $pair::from($bits::MAX)) as i64
            }
        })*
    };
}

macro_rules! float_keys {
    ($key:ident, $of_key:ident, $t:ident, $bits:ident) => {
        /// Positive numbers are in order by their bits, negative ones in reverse.
        #[inline(always)]
        fn $key(x: $t) -> $bits {
            let bits = if x.is_nan() { $t::NAN.abs().to_bits() } else { x.to_bits() };
            let sign = (bits >> ($bits::BITS - 1)) * $bits::MAX;
            bits ^ (sign | 1 << ($bits::BITS - 1))
        }

        #[inline(always)]
        fn $of_key(key: $bits) -> $t {
            let positive = (key >> ($bits::BITS - 1)) * $bits::MAX;
            $t::from_bits(key ^ (!positive | 1 << ($bits::BITS - 1)))
        }
    };
}
float_keys!(key_f32, f32_of_key, f32, u32);
float_keys!(key_f64, f64_of_key, f64, u64);

keyed! {
    u32, u32, u64: |x| x, |key| key, |x| x, None;
    u64, u64, u128: |x| x, |key| key, |x| x, None;
    i32, u32, u64: |x| x as u32 ^ 1 << 31, |key| (key ^ 1 << 31) as i32, |x| x, None;
    i64, u64, u128: |x| x as u64 ^ 1 << 63, |key| (key ^ 1 << 63) as i64, |x| x, None;
    // Adding zero converts -0 to 0, so that both have the same key.
    f32, u32, u64: key_f32, f32_of_key, |x| x + 0.0, Some([u32::MAX >> 1, 1 << 31]);
    f64, u64, u128: key_f64, f64_of_key, |x| x + 0.0, Some([u64::MAX >> 1, 1 << 63]);
}

pub(super) fn sort(
    cx: Cx<'_>,
    attributes: SortAttributes,
    x: &HostTensor,
) -> Result<HostTensor, Fault> {
    let (dtype, shape) = (x.dtype(), x.shape());
    let x = convert(cx, x, comparison_dtype(dtype))?;
    let plane = Plane::along(shape, attributes.axis);
    let sorted = match_sorted!(x.dtype(), T => {
        let elements = context::slice::<T>(&x);
        context::build(x.dtype(), shape, |out: &mut [T]| {
            each_run(cx, plane, out, |first, out| {
                sort_run(cx, &elements[first..], plane.inner, attributes.descending, out);
            });
        })?
    });
    convert(cx, &sorted, dtype)
}

pub(super) fn argsort(
    cx: Cx<'_>,
    attributes: SortAttributes,
    x: &HostTensor,
    to: DType,
) -> Result<HostTensor, Fault> {
    let shape = x.shape();
    let x = convert(cx, x, comparison_dtype(x.dtype()))?;
    let plane = Plane::along(shape, attributes.axis);
    let positions = match_sorted!(x.dtype(), T => {
        let elements = context::slice::<T>(&x);
        context::build(DType::S64, shape, |out: &mut [i64]| {
            each_run(cx, plane, out, |first, out| {
                argsort_run(cx, &elements[first..], plane.inner, attributes.descending, out);
            });
        })?
    });
    convert(cx, &positions, to)
}

/// Sorts every `inner`th element of `x` into the same positions of `out`.
fn sort_run<T: Keyed>(cx: Cx<'_>, x: &[T], inner: usize, descending: bool, out: &mut [T]) {
    // Inverted keys have the opposite order.
    let key = |x: T| if descending { !x.key() } else { x.key() };
    let element = |key: T::Key| T::of_key(if descending { !key } else { key });
    let read = |first: usize, keys: &mut [T::Key]| read_run(x, inner, first, keys, |_, x| key(x));
    if inner == 1 {
        // Keys are stored in the memory of the result while they are sorted.
        let keys = bytemuck::cast_slice_mut::<T, T::Key>(out);
        radix::sort(cx, keys, 0, &read, &|keys| {
            keys.iter_mut().for_each(|key| *key = bytemuck::cast(element(*key)));
        });
        return keep_zeros(T::ZEROS, out, key, x.iter().copied());
    }
    let mut keys = context::filled(T::Key::default(), out.len().div_ceil(inner));
    radix::sort(cx, &mut keys, 0, &read, &|_| {});
    keep_zeros(T::ZEROS, &mut keys, |key| key, x.iter().step_by(inner).map(|&x| key(x)));
    let targets = out.iter_mut().step_by(inner);
    targets.zip(&keys).for_each(|(out, &key)| *out = element(key));
}

/// Restores the original order of zeros in a sorted run: they are equal, but their keys are not.
fn keep_zeros<E: Copy, K: Key>(
    zeros: Option<[K; 2]>,
    sorted: &mut [E],
    key: impl Fn(E) -> K,
    came: impl Iterator<Item = E>,
) {
    let Some([lower, upper]) = zeros else { return };
    let first = sorted.partition_point(|&x| key(x) < lower);
    let count = sorted[first..].partition_point(|&x| key(x) <= upper);
    let run = &mut sorted[first..first + count];
    if run.first().map(|&x| key(x)) != run.last().map(|&x| key(x)) {
        let came = came.filter(|&x| key(x) == lower || key(x) == upper);
        run.iter_mut().zip(came).for_each(|(to, x)| *to = x);
    }
}

/// Writes the positions that sort every `inner`th element of `x` to the same positions of `out`.
fn argsort_run<T: Keyed>(cx: Cx<'_>, x: &[T], inner: usize, descending: bool, out: &mut [i64]) {
    let pair =
        |position, x: T| T::pair(if descending { !x.equal_key() } else { x.equal_key() }, position);
    let read = |first: usize, keys: &mut [T::Pair]| read_run(x, inner, first, keys, pair);
    if inner == 1 && size_of::<T::Pair>() == size_of::<i64>() {
        let keys = bytemuck::cast_slice_mut::<i64, T::Pair>(out);
        return radix::sort(cx, keys, T::BITS, &read, &|keys| {
            let positions = bytemuck::cast_slice_mut::<T::Pair, i64>(keys);
            positions.iter_mut().for_each(|key| *key = T::position(bytemuck::cast(*key)));
        });
    }
    let mut keys = context::filled(T::Pair::default(), out.len().div_ceil(inner));
    radix::sort(cx, &mut keys, T::BITS, &read, &|_| {});
    let targets = out.iter_mut().step_by(inner);
    targets.zip(&keys).for_each(|(out, &key)| *out = T::position(key));
}

/// Writes the keys of every `inner`th element of `x`, from the position `first` on.
#[inline(always)]
fn read_run<T: Copy, K>(
    x: &[T],
    inner: usize,
    first: usize,
    keys: &mut [K],
    key: impl Fn(usize, T) -> K,
) {
    if inner == 1 {
        let run = keys.iter_mut().zip(&x[first..]).enumerate();
        return run.for_each(|(at, (out, &x))| *out = key(first + at, x));
    }
    let run = keys.iter_mut().zip(x[first * inner..].iter().step_by(inner)).enumerate();
    run.for_each(|(at, (out, &x))| *out = key(first + at, x));
}

/// Calls `sort` for each run along the axis. The arguments are the position of its first element, and the result from
/// this element to the end of the block.
fn each_run<R: Send>(
    cx: Cx<'_>,
    plane: Plane,
    out: &mut [R],
    sort: impl Fn(usize, &mut [R]) + Sync,
) {
    let Plane { count, inner, .. } = plane;
    let block = count * inner;
    // Sorting takes a number of passes that grows with the logarithm of the length.
    let cost = 4 * block * (1 + count.max(1).ilog2() as usize);
    cx.rows(out, block, cost, |first, out| {
        for (index, out) in out.chunks_exact_mut(block).enumerate() {
            for column in 0..inner {
                sort((first + index) * block + column, &mut out[column..]);
            }
        }
    });
}
