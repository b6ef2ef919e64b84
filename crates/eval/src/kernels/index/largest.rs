//! The largest elements of each row, without sorting all of them.
//!
//! Elements are mapped to sort keys. Vector code skips the elements that are not better than the worst of the best so
//! far, which are nearly all.

use nxla_tensor::{DType, HostTensor, Shape};

use super::sort::Keyed;
use crate::context;
use crate::context::{Cx, Fault};
use crate::kernels::elementwise::{convert, vectorize};
use crate::kernels::limits::TASK_ELEMENTS;
use crate::kernels::ordered::{match_ordered, widened_float};

/// Elements of a row that one task looks through.
const PART: usize = 4 * TASK_ELEMENTS;

/// Elements that are passed over together.
const BLOCK: usize = 64;

/// Returns true if looking for the largest is less work than sorting.
pub(crate) fn pays(k: usize, size: usize) -> bool {
    k <= size / 8
}

/// The `k` largest elements of the last axis, largest first, and their positions as `s32`. Of equal
/// elements the first ones are taken, in order.
pub(crate) fn top_k(cx: Cx<'_>, x: &HostTensor, k: usize) -> Result<[HostTensor; 2], Fault> {
    let (dtype, rank) = (x.dtype(), x.rank());
    let size = x.shape()[rank - 1];
    let shape: Shape = x.shape()[..rank - 1].iter().copied().chain([k]).collect();
    let x = convert(cx, x, widened_float(dtype))?;
    match_ordered!(x.dtype(), T => {
        let elements = context::slice::<T>(&x);
        let positions = context::build(DType::S32, &shape, |out: &mut [i32]| {
            cx.rows(out, k, 4 * size, |first, out| {
                for (row, out) in out.chunks_exact_mut(k).enumerate() {
                    largest(cx, &elements[(first + row) * size..][..size], out);
                }
            });
        })?;
        let values = context::build(x.dtype(), &shape, |out: &mut [T]| {
            let rows = elements.chunks_exact(size.max(1));
            let found = context::slice::<i32>(&positions).chunks_exact(k);
            for ((row, found), out) in rows.zip(found).zip(out.chunks_exact_mut(k)) {
                found.iter().zip(out).for_each(|(&at, out)| *out = row[at as usize]);
            }
        })?;
        Ok([convert(cx, &values, dtype)?, positions])
    })
}

/// Writes the positions of the largest elements of a row, as many as there is room for.
fn largest<T: Keyed>(cx: Cx<'_>, row: &[T], out: &mut [i32]) {
    let k = out.len();
    let part = |index: usize| {
        let first = index * PART;
        candidates(&row[first..row.len().min(first + PART)], first, k)
    };
    let parts = row.len().div_ceil(PART);
    let mut found: Vec<T::Pair> = match parts {
        1 => part(0),
        _ => cx.collect(parts, &part).into_iter().flatten().collect(),
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
    context::require::<T::Pair>(room);
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
                // The earlier of equal elements is better, and the elements so far are earlier.
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
    use crate::kernels::index::sort::argsort;

    #[test]
    fn the_first_of_those_that_are_sorted() {
        let cx = crate::context::test_context();
        for dtype in
            [DType::U8, DType::S16, DType::S64, DType::U64, DType::BF16, DType::F32, DType::F64]
        {
            for (rows, size, k) in
                [(1, 400_000, 100), (5, 300, 7), (2, 1, 1), (3, 90, 90), (0, 9, 2)]
            {
                let numbers: Vec<i64> =
                    (0..rows * size).map(|at| (at * 7919 % 10_007) as i64).collect();
                let x = HostTensor::from_vec(numbers, [rows, size]).unwrap();
                let x = convert(cx, &x, dtype).unwrap();
                let [values, positions] = top_k(cx, &x, k).unwrap();
                let sort = Sort { axis: 1, descending: true, stable: true };
                let order = argsort(cx, sort, &x, DType::S32).unwrap();
                for row in 0..rows {
                    let order = &context::slice::<i32>(&order)[row * size..][..k];
                    assert_eq!(
                        &context::slice::<i32>(&positions)[row * k..][..k],
                        order,
                        "{dtype}"
                    );
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
        let cx = crate::context::test_context();
        let mut x = vec![-1.0_f32; 100];
        (x[3], x[50], x[70], x[71]) = (0.0, f32::NAN, -0.0, f32::INFINITY);
        let x = HostTensor::from_vec(x, [100]).unwrap();
        let [_, positions] = top_k(cx, &x, 5).unwrap();
        assert_eq!(context::slice::<i32>(&positions), [50, 71, 3, 70, 0]);
    }
}
