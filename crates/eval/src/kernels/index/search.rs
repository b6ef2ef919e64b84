//! Binary search: counts the elements of an increasing vector that come before each number.

use std::sync::OnceLock;

use nxla_expr::Order;
use nxla_tensor::{DType, Element, HostTensor};

use crate::context::{self, Cx, Fault};
use crate::kernels::elementwise::{convert, vectorize};
use crate::kernels::limits::BLOCK_ELEMENTS;
use crate::kernels::ordered::{comparison_dtype, match_sorted};

/// Searches that advance in one pass, because each step waits for the memory that the previous step read. Measured by
/// the family `index` of `benches/python/kernels.py`.
const SEARCHES_PER_PASS: usize = 64;

/// For each element of `x`, the number of elements of `sorted` that come before it, as `s32`. The
/// search reads the same elements as the body of the block, so that the results are equal even if
/// the vector is not sorted.
pub(crate) fn search(
    cx: Cx<'_>,
    sorted: &HostTensor,
    x: &HostTensor,
    order: Order,
) -> Result<HostTensor, Fault> {
    let dtype = comparison_dtype(x.dtype());
    let (sorted, x) = (&convert(cx, sorted, dtype)?, &convert(cx, x, dtype)?);
    match_sorted!(x.dtype(), T => if order.equal {
        counts::<T>(cx, sorted, x, order, |element, x| element <= x)
    } else {
        counts::<T>(cx, sorted, x, order, |element, x| element < x)
    })
}

fn counts<T: Element>(
    cx: Cx<'_>,
    sorted: &HostTensor,
    x: &HostTensor,
    order: Order,
    precedes: impl Fn(T, T) -> bool + Copy + Sync,
) -> Result<HostTensor, Fault> {
    let (sorted, xs) = (context::slice::<T>(sorted), context::slice::<T>(x));
    // Only NaN is not equal to itself.
    #[expect(clippy::eq_op, reason = "only NaN differs from itself")]
    let is_nan = |x: &T| order.nan_last && x != x;
    let numbers = OnceLock::new();
    let count_numbers = || {
        if order.equal {
            sorted.len() as i32
        } else {
            sorted.iter().filter(|x| !is_nan(x)).count() as i32
        }
    };
    let steps = sorted.len().checked_ilog2().unwrap_or(0) as usize + 1;
    context::build(DType::S32, x.shape(), |out: &mut [i32]| {
        cx.pieces(out, BLOCK_ELEMENTS, 2 * steps, |first, out| {
            let xs = &xs[first..first + out.len()];
            vectorize(
                #[inline(always)]
                || {
                    for (out, xs) in
                        out.chunks_mut(SEARCHES_PER_PASS).zip(xs.chunks(SEARCHES_PER_PASS))
                    {
                        // A group at the end of the piece may be incomplete; its other elements are
                        // placeholders.
                        let mut group = [xs[0]; SEARCHES_PER_PASS];
                        group[..xs.len()].copy_from_slice(xs);
                        out.copy_from_slice(&bisect(sorted, &group, precedes)[..xs.len()]);
                        if xs.iter().any(is_nan) {
                            let numbers = *numbers.get_or_init(count_numbers);
                            let nans = out.iter_mut().zip(xs).filter(|(_, x)| is_nan(x));
                            nans.for_each(|(out, _)| *out = numbers);
                        }
                    }
                },
            );
        });
    })
}

/// For each number, the count of elements that come before it.
#[inline(always)]
fn bisect<T: Element>(
    sorted: &[T],
    xs: &[T; SEARCHES_PER_PASS],
    precedes: impl Fn(T, T) -> bool,
) -> [i32; SEARCHES_PER_PASS] {
    let mut before = [0_i32; SEARCHES_PER_PASS];
    let mut left = sorted.len();
    while left > 0 {
        let half = (left / 2).max(1);
        // Read all elements before comparing any, otherwise each comparison becomes a branch.
        let mut elements = *xs;
        for at in 0..SEARCHES_PER_PASS {
            elements[at] = sorted[before[at] as usize + half - 1];
        }
        for at in 0..SEARCHES_PER_PASS {
            before[at] += if precedes(elements[at], xs[at]) { half as i32 } else { 0 };
        }
        left -= half;
    }
    before
}
