//! Sums of a function of two operands along short rows: products of rows, distances of points, squares of deviations.
//! The values of the function are not stored.
//!
//! A row is summed in the order of a reduction of stored elements, so the bits are the same.

use bytemuck::{cast_slice, cast_slice_mut};
use nxla_expr::ReduceOp;
use nxla_tensor::DType;

use super::kernel::{ReducedRun, Reducer, SHORT_RUN, SHORT_RUN_LANES, Sum, short_runs};
use crate::kernels::elementwise::PairFunction;
use crate::kernels::number::Number;

/// An operand of some rows.
pub(crate) struct RowOperand<'a> {
    pub(crate) bytes: &'a [u8],
    /// The offset of each row. The elements of a row are contiguous.
    pub(crate) starts: Vec<usize>,
    /// True if a row is one element, which is repeated.
    pub(crate) is_single: bool,
}

/// Returns true if [`map_reduce_rows`] computes a reduction of rows of this many columns.
pub(crate) fn has_map_reduce_kernel(op: ReduceOp, dtype: DType, columns: usize) -> bool {
    op == ReduceOp::Sum
        && matches!(dtype, DType::F32 | DType::F64)
        && (SHORT_RUN_LANES..SHORT_RUN).contains(&columns)
}

/// Sums a function of pairs of rows of `count` elements, to one result for each pair. At most one
/// operand has single elements.
pub(crate) fn map_reduce_rows(
    function: PairFunction,
    dtype: DType,
    [left, right]: [RowOperand<'_>; 2],
    count: usize,
    out: &mut [u8],
) {
    // The functions are symmetric, so the operands can be exchanged.
    let rows = if left.is_single { [right, left] } else { [left, right] };
    match dtype {
        DType::F32 => fill_rows::<f32>(function, rows, count, cast_slice_mut(out)),
        DType::F64 => fill_rows::<f64>(function, rows, count, cast_slice_mut(out)),
        dtype => unreachable!("sums of {dtype} have no kernel"),
    }
}

fn fill_rows<T: Number + std::ops::Sub<Output = T>>(
    function: PairFunction,
    rows: [RowOperand<'_>; 2],
    count: usize,
    out: &mut [T],
) {
    match function {
        PairFunction::Product => sum_rows(|x: T, y| x.times(y), rows, count, out),
        PairFunction::SquaredDifference => {
            sum_rows(|x: T, y| (x - y).times(x - y), rows, count, out)
        }
    }
}

fn sum_rows<T: Number>(
    pair: impl Fn(T, T) -> T + Copy,
    [left, right]: [RowOperand<'_>; 2],
    count: usize,
    out: &mut [T],
) {
    let (xs, ys) = (cast_slice::<u8, T>(left.bytes), cast_slice::<u8, T>(right.bytes));
    let (rows, add) = (out.len(), |sum, x: T| T::add(sum, x.widen()));
    let sums = Reducer { start: T::EMPTY_SUM, step: add, merge: T::add };
    let x = |row: usize| &xs[left.starts[row]..][..count];
    let put = |row: usize, sum| out[row] = T::narrow(sum);
    if right.is_single {
        let single = |row: usize| {
            let y = ys[right.starts[row]];
            Pairs { x: x(row), y: x(row), pair: move |x, _| pair(x, y) }
        };
        return short_runs(single, rows, sums, put);
    }
    let both = |row: usize| Pairs { x: x(row), y: &ys[right.starts[row]..][..count], pair };
    short_runs(both, rows, sums, put);
}

/// A function of the elements of two rows of one length.
#[derive(Clone, Copy)]
pub(super) struct Pairs<'a, X, Y, F> {
    pub(super) x: &'a [X],
    pub(super) y: &'a [Y],
    pub(super) pair: F,
}

impl<X: Copy, Y: Copy, T: Sum, F: Fn(X, Y) -> T + Copy> ReducedRun<T> for Pairs<'_, X, Y, F> {
    #[inline(always)]
    fn len(self) -> usize {
        self.x.len()
    }

    #[inline(always)]
    fn take(self, count: usize) -> Self {
        Self { x: self.x.take(count), y: self.y.take(count), ..self }
    }

    #[inline(always)]
    fn chunk<const N: usize>(self, index: usize) -> [T; N] {
        let (x, y) = (self.x.chunk::<N>(index), self.y.chunk::<N>(index));
        let mut values = [T::zeroed(); N];
        for lane in 0..N {
            values[lane] = (self.pair)(x[lane], y[lane]);
        }
        values
    }
}
