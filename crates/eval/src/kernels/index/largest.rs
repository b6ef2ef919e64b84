//! The largest elements of each row, without sorting all of them.
//!
//! Elements are mapped to sort keys. Vector code skips the elements that are not larger than the
//! smallest candidate so far, which are nearly all elements.

use nxla_tensor::{DType, HostTensor, Shape};

use super::sort::Keyed;
use crate::context::{self, Cx, Fault};
use crate::kernels::elementwise::{convert, vectorize};
use crate::kernels::limits::TASK_ELEMENTS;
use crate::kernels::ordered::{comparison_dtype, match_sorted};

// The constants are measured by the family `index` of `benches/python/kernels.py`.

/// The part of a row, as a divisor, up to which searching for its largest elements takes less time than sorting the
/// row.
const MAX_SHARE: usize = 8;

/// Elements of a row that one task searches.
const SEARCH_PART: usize = 4 * TASK_ELEMENTS;

/// Elements that are skipped together if none of them is a candidate.
const SKIP_BLOCK: usize = 64;

/// Returns true if searching for the largest elements is less work than sorting.
pub(crate) fn pays(k: usize, size: usize) -> bool {
    k <= size / MAX_SHARE
}

/// The `k` largest elements of the last axis, largest first, and their positions as `s32`. Among
/// equal elements, earlier ones come first.
pub(crate) fn top_k(cx: Cx<'_>, x: &HostTensor, k: usize) -> Result<[HostTensor; 2], Fault> {
    let (dtype, rank) = (x.dtype(), x.rank());
    let size = x.shape()[rank - 1];
    let shape: Shape = x.shape()[..rank - 1].iter().copied().chain([k]).collect();
    let x = convert(cx, x, comparison_dtype(dtype))?;
    match_sorted!(x.dtype(), T => {
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

/// Writes the positions of the largest elements of a row until `out` is full.
fn largest<T: Keyed>(cx: Cx<'_>, row: &[T], out: &mut [i32]) {
    let k = out.len();
    let part = |index: usize| {
        let first = index * SEARCH_PART;
        candidates(&row[first..row.len().min(first + SEARCH_PART)], first, k)
    };
    let parts = row.len().div_ceil(SEARCH_PART);
    let mut found: Vec<T::Pair> = match parts {
        1 => part(0),
        _ => cx.collect(parts, &part).into_iter().flatten().collect(),
    };
    found.sort_unstable();
    for (out, &pair) in out.iter_mut().zip(&found) {
        *out = T::position(pair) as i32;
    }
}

/// The `k` largest elements of a part that begins at `first`, or all elements if there are fewer,
/// in any order.
fn candidates<T: Keyed>(part: &[T], first: usize, k: usize) -> Vec<T::Pair> {
    // Inverted keys have the opposite order, so that the least is the best.
    let key = |x: T| !x.equal_key();
    let room = 2 * k.max(SKIP_BLOCK);
    context::require::<T::Pair>(room);
    let mut found = Vec::with_capacity(room);
    let (head, rest) = part.split_at(k.min(part.len()));
    found.extend(head.iter().enumerate().map(|(at, &x)| T::pair(key(x), first + at)));
    let Some(mut worst) = head.iter().map(|&x| key(x)).max() else { return found };
    vectorize(
        #[inline(always)]
        || {
            for (index, block) in rest.chunks(SKIP_BLOCK).enumerate() {
                if !block.iter().fold(false, |any, &x| any | (key(x) < worst)) {
                    continue;
                }
                let start = first + head.len() + index * SKIP_BLOCK;
                // The earlier of equal elements is better, and the elements so far are earlier.
                let better = block.iter().enumerate().filter(|(_, x)| key(**x) < worst);
                found.extend(better.map(|(at, &x)| T::pair(key(x), start + at)));
                if found.len() + SKIP_BLOCK > room {
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
