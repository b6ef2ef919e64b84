//! The largest elements of each row, without sorting all of them.
//!
//! Elements become the keys by which they are sorted. Whoever is not better than the worst of the
//! best so far, which is nearly everybody, is passed over by vector code.

use nxla_tensor::{DType, HostTensor, Shape};

use super::sort::Keyed;
use crate::elementwise::{convert, vectorize};
use crate::error::Fault;
use crate::reduce::{match_ordered, widened_float};
use crate::{memory, parallel, value};

/// Elements of a row that one task looks through.
const PART: usize = 1 << 17;

/// Elements that are passed over together.
const BLOCK: usize = 64;

/// Whether looking for the largest is less work than sorting.
pub(crate) fn pays(k: usize, size: usize) -> bool {
    k <= size / 8
}

/// The `k` largest elements of the last axis, largest first, and their positions as `s32`. Of equal
/// elements the first ones are taken, in order.
pub(crate) fn top_k(x: &HostTensor, k: usize) -> Result<[HostTensor; 2], Fault> {
    let (dtype, rank) = (x.dtype(), x.rank());
    let size = x.shape()[rank - 1];
    let shape: Shape = x.shape()[..rank - 1].iter().copied().chain([k]).collect();
    let x = convert(x, widened_float(dtype))?;
    match_ordered!(x.dtype(), T => {
        let elements = value::slice::<T>(&x);
        let positions = value::build(DType::S32, &shape, |out: &mut [i32]| {
            parallel::rows(out, k, 4 * size, |first, out| {
                for (row, out) in out.chunks_exact_mut(k).enumerate() {
                    largest(&elements[(first + row) * size..][..size], out);
                }
            });
        })?;
        let values = value::build(x.dtype(), &shape, |out: &mut [T]| {
            let rows = elements.chunks_exact(size.max(1));
            let found = value::slice::<i32>(&positions).chunks_exact(k);
            for ((row, found), out) in rows.zip(found).zip(out.chunks_exact_mut(k)) {
                found.iter().zip(out).for_each(|(&at, out)| *out = row[at as usize]);
            }
        })?;
        Ok([convert(&values, dtype)?, positions])
    })
}

/// Writes the positions of the largest elements of a row, as many as there is room for.
fn largest<T: Keyed>(row: &[T], out: &mut [i32]) {
    let k = out.len();
    let part = |index: usize| {
        let first = index * PART;
        candidates(&row[first..row.len().min(first + PART)], first, k)
    };
    let parts = row.len().div_ceil(PART);
    let mut found: Vec<T::Pair> = match parts {
        1 => part(0),
        _ => parallel::collect(parts, &part).into_iter().flatten().collect(),
    };
    found.sort_unstable();
    for (out, &pair) in out.iter_mut().zip(&found) {
        *out = T::position(pair) as i32;
    }
}

/// The `k` best of a part that begins at `first`, or all if there are fewer, in any order.
fn candidates<T: Keyed>(part: &[T], first: usize, k: usize) -> Vec<T::Pair> {
    // Inverted keys have the opposite order, so that the least is the best.
    let key = |x: T| !x.equal_key();
    let room = 2 * k.max(BLOCK);
    memory::expect::<T::Pair>(room);
    let mut found = Vec::with_capacity(room);
    let (head, rest) = part.split_at(k.min(part.len()));
    found.extend(head.iter().enumerate().map(|(at, &x)| T::pair(key(x), first + at)));
    let Some(mut worst) = head.iter().map(|&x| key(x)).max() else { return found };
    vectorize(
        #[inline(always)]
        || {
            for (index, block) in rest.chunks(BLOCK).enumerate() {
                if !block.iter().fold(false, |any, &x| any | (key(x) < worst)) {
                    continue;
                }
                let start = first + head.len() + index * BLOCK;
                // Of equal elements the earlier one is better, and those that were found are.
                let better = block.iter().enumerate().filter(|(_, x)| key(**x) < worst);
                found.extend(better.map(|(at, &x)| T::pair(key(x), start + at)));
                if found.len() + BLOCK > room {
                    let (_, &mut last, _) = found.select_nth_unstable(k - 1);
                    found.truncate(k);
                    worst = key(part[T::position(last) as usize - first]);
                }
            }
        },
    );
    if found.len() > k {
        found.select_nth_unstable(k - 1);
        found.truncate(k);
    }
    found
}

#[cfg(test)]
mod tests {
    use nxla_expr::Sort;

    use super::*;
    use crate::index::sort::argsort;

    #[test]
    fn the_first_of_those_that_are_sorted() {
        for dtype in
            [DType::U8, DType::S16, DType::S64, DType::U64, DType::BF16, DType::F32, DType::F64]
        {
            for (rows, size, k) in
                [(1, 400_000, 100), (5, 300, 7), (2, 1, 1), (3, 90, 90), (0, 9, 2)]
            {
                let numbers: Vec<i64> =
                    (0..rows * size).map(|at| (at * 7919 % 10_007) as i64).collect();
                let x = HostTensor::from_vec(numbers, [rows, size]).unwrap();
                let x = convert(&x, dtype).unwrap();
                let [values, positions] = top_k(&x, k).unwrap();
                let sort = Sort { axis: 1, descending: true, stable: true };
                let order = argsort(sort, &x, DType::S32).unwrap();
                for row in 0..rows {
                    let order = &value::slice::<i32>(&order)[row * size..][..k];
                    assert_eq!(&value::slice::<i32>(&positions)[row * k..][..k], order, "{dtype}");
                    for (at, &position) in order.iter().enumerate() {
                        let expected = x.get(row * size + position as usize);
                        assert_eq!(values.get(row * k + at), expected, "{dtype}");
                    }
                }
            }
        }
    }

    #[test]
    fn not_a_number_comes_first_and_zeros_are_equal() {
        let mut x = vec![-1.0_f32; 100];
        (x[3], x[50], x[70], x[71]) = (0.0, f32::NAN, -0.0, f32::INFINITY);
        let x = HostTensor::from_vec(x, [100]).unwrap();
        let [_, positions] = top_k(&x, 5).unwrap();
        assert_eq!(value::slice::<i32>(&positions), [50, 71, 3, 70, 0]);
    }
}
