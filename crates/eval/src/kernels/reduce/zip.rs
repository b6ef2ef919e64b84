//! Reductions of a function of two operands: products of rows, distances of points, squares of deviations. The values
//! of the function are not stored.
//!
//! Partial results are combined in the order of a reduction of stored elements, so the bits are the same.

use bytemuck::{cast_slice, cast_slice_mut};
use nxla_expr::ReduceOp;
use nxla_tensor::{DType, Element};

use super::kernel::{
    FEW_LANES, GROUPS, LANES, Reducer, SHORT, SIDE_BY_SIDE, joined, keep_turns_apart, kept_whole,
    merged, narrowed, neutral, piece,
};
use crate::context::Cx;
use crate::kernels::elementwise::{Zip, vectorize};
use crate::kernels::ordered::{larger, smaller};

/// A function of two operands and its reduction.
#[derive(Clone, Copy)]
pub(crate) struct Zipped {
    pub(crate) zip: Zip,
    pub(crate) op: ReduceOp,
    pub(crate) dtype: DType,
}

/// An operand of some rows.
pub(crate) struct ZippedRows<'a> {
    pub(crate) bytes: &'a [u8],
    /// The offset of each row. The elements of a row are contiguous.
    pub(crate) starts: Vec<usize>,
    /// True if a row is one element, which is repeated.
    pub(crate) is_single: bool,
}

impl Zipped {
    /// Returns true if there is a kernel.
    pub(crate) fn has_kernel(self) -> bool {
        matches!(self.op, ReduceOp::Sum | ReduceOp::Max | ReduceOp::Min)
            && matches!(self.dtype, DType::F32 | DType::F64)
    }

    /// Reduces pairs of rows of `count` elements, to one result for each pair. At most one operand is of single
    /// elements.
    pub(crate) fn fill_by_row(self, rows: [ZippedRows<'_>; 2], count: usize, out: &mut [u8]) {
        let [left, right] = rows;
        // In all that is computed, the two can change places.
        let (left, right) = if left.is_single { (right, left) } else { (left, right) };
        self.reduce(ByRow { left, right, count, out });
    }

    /// Reduces all pairs of elements to one result. There are as many on each side, or a single one on one.
    pub(crate) fn fill_total(self, cx: Cx<'_>, operands: [&[u8]; 2], out: &mut [u8]) {
        let [left, right] = operands;
        let (left, right) = if left.len() < right.len() { (right, left) } else { (left, right) };
        self.reduce(Total { cx, left, right, out });
    }

    /// Calls a reduction with its functions.
    fn reduce(self, reduction: impl Reduction) {
        let Self { zip, op, dtype } = self;
        macro_rules! with {
            ($t:ident, $start:expr, $step:expr, $merge:expr, $finish:expr) => {{
                let reducer = Reducer { start: $start, step: $step, merge: $merge };
                match zip {
                    Zip::Product => reduction.run::<$t, _>(|x, y| x * y, reducer, $finish),
                    Zip::SquaredDifference => {
                        reduction.run::<$t, _>(|x, y| (x - y) * (x - y), reducer, $finish)
                    }
                    Zip::AbsoluteDifference => {
                        reduction.run::<$t, _>(|x, y| (x - y).abs(), reducer, $finish)
                    }
                }
            }};
        }
        macro_rules! extremum {
            ($t:ident, $better:ident) => {{
                let start = $t::from_scalar(neutral(op, dtype));
                with!($t, start, $better::<$t>, $better::<$t>, |a| a)
            }};
        }
        match (op, dtype) {
            (ReduceOp::Sum, DType::F32) => {
                with!(f32, 0.0_f64, |a, x| a + f64::from(x), |a, b| a + b, |a| a as f32)
            }
            (ReduceOp::Sum, _) => with!(f64, 0.0_f64, |a, x| a + x, |a, b| a + b, |a| a),
            (ReduceOp::Max, DType::F32) => extremum!(f32, larger),
            (ReduceOp::Max, _) => extremum!(f64, larger),
            (_, DType::F32) => extremum!(f32, smaller),
            _ => extremum!(f64, smaller),
        }
    }
}

/// A reduction of a function of pairs of elements.
trait Reduction {
    fn run<T: Element, A: Copy + Send + Sync>(
        self,
        pair: impl Fn(T, T) -> T + Copy + Sync,
        reducer: Reducer<A, impl Fn(A, T) -> A + Copy + Sync, impl Fn(A, A) -> A + Copy + Sync>,
        finish: impl Fn(A) -> T,
    );
}

/// One result for each pair of rows.
struct ByRow<'a, 'o> {
    left: ZippedRows<'a>,
    right: ZippedRows<'a>,
    count: usize,
    out: &'o mut [u8],
}

impl Reduction for ByRow<'_, '_> {
    fn run<T: Element, A: Copy + Send + Sync>(
        self,
        pair: impl Fn(T, T) -> T + Copy + Sync,
        reducer: Reducer<A, impl Fn(A, T) -> A + Copy + Sync, impl Fn(A, A) -> A + Copy + Sync>,
        finish: impl Fn(A) -> T,
    ) {
        let Self { left, right, count, out } = self;
        let (xs, ys) = (cast_slice::<u8, T>(left.bytes), cast_slice::<u8, T>(right.bytes));
        let out = cast_slice_mut::<u8, T>(out);
        if !right.is_single && count < SHORT {
            let rows = [(xs, &*left.starts), (ys, &*right.starts)];
            return short_rows(rows, count, pair, reducer, finish, out);
        }
        for (out, (&x, &y)) in out.iter_mut().zip(left.starts.iter().zip(&right.starts)) {
            let x = &xs[x..x + count];
            *out = finish(match right.is_single {
                true => row_and_single(x, ys[y], count < SHORT, pair, reducer),
                false => row(x, &ys[y..y + count], false, pair, reducer),
            });
        }
    }
}

/// One result for all.
struct Total<'a, 'o> {
    cx: Cx<'a>,
    left: &'a [u8],
    right: &'a [u8],
    out: &'o mut [u8],
}

impl Reduction for Total<'_, '_> {
    fn run<T: Element, A: Copy + Send + Sync>(
        self,
        pair: impl Fn(T, T) -> T + Copy + Sync,
        reducer: Reducer<A, impl Fn(A, T) -> A + Copy + Sync, impl Fn(A, A) -> A + Copy + Sync>,
        finish: impl Fn(A) -> T,
    ) {
        let (xs, ys) = (cast_slice::<u8, T>(self.left), cast_slice::<u8, T>(self.right));
        let piece = piece(xs.len(), 1);
        let part = |index: usize| {
            let range = index * piece..xs.len().min((index + 1) * piece);
            // The last piece of a long row has as many lanes as the others.
            let sum = match ys {
                &[y] => row_and_single(&xs[range], y, false, pair, reducer),
                ys => row(&xs[range.clone()], &ys[range], false, pair, reducer),
            };
            vec![sum]
        };
        let parts = self.cx.collect(xs.len().div_ceil(piece), &part);
        cast_slice_mut(self.out)[0] = finish(joined(parts, reducer.merge)[0]);
    }
}

/// Short rows, which begin at these places, a few at a time.
fn short_rows<T: Element, A: Copy>(
    rows: [(&[T], &[usize]); 2],
    count: usize,
    pair: impl Fn(T, T) -> T,
    reducer: Reducer<A, impl Fn(A, T) -> A, impl Fn(A, A) -> A>,
    finish: impl Fn(A) -> T,
    out: &mut [T],
) {
    let (whole, rest) = out.as_chunks_mut::<SIDE_BY_SIDE>();
    let first = whole.len() * SIDE_BY_SIDE;
    vectorize(
        #[inline(always)]
        || {
            for (index, out) in whole.iter_mut().enumerate() {
                let rows = rows_from(rows, count, index * SIDE_BY_SIDE);
                let sums = in_step::<T, A, _, _, SIDE_BY_SIDE>(rows, &pair, &reducer);
                for (out, sum) in out.iter_mut().zip(sums) {
                    *out = finish(sum);
                }
            }
            for (index, out) in rest.iter_mut().enumerate() {
                let rows = rows_from(rows, count, first + index);
                let [sum] = in_step::<T, A, _, _, 1>(rows, &pair, &reducer);
                *out = finish(sum);
            }
        },
    );
}

/// `ROWS` pairs of rows from `first` on.
#[inline(always)]
fn rows_from<'a, T, const ROWS: usize>(
    rows: [(&'a [T], &[usize]); 2],
    count: usize,
    first: usize,
) -> [[&'a [T]; ROWS]; 2] {
    let mut found: [[&[T]; ROWS]; 2] = [[&[]; ROWS]; 2];
    for (found, (elements, starts)) in found.iter_mut().zip(rows) {
        for (found, &start) in found.iter_mut().zip(&starts[first..]) {
            *found = &elements[start..start + count];
        }
    }
    found
}

/// Reduces short pairs of rows of one length in step. Loops instead of iterators, since a closure that is not
/// inlined is not vectorized.
#[inline(always)]
fn in_step<T: Element, A: Copy, S, M, const ROWS: usize>(
    [left, right]: [[&[T]; ROWS]; 2],
    pair: &impl Fn(T, T) -> T,
    Reducer { start, step, merge }: &Reducer<A, S, M>,
) -> [A; ROWS]
where
    S: Fn(A, T) -> A,
    M: Fn(A, A) -> A,
{
    let chunks = left[0].len() / FEW_LANES;
    let whole = chunks * FEW_LANES;
    // Slices of provably equal length need no bounds checks.
    let mut xs: [&[[T; FEW_LANES]]; ROWS] = [&[]; ROWS];
    let mut ys = xs;
    for row in 0..ROWS {
        xs[row] = &left[row].as_chunks().0[..chunks];
        ys[row] = &right[row].as_chunks().0[..chunks];
    }
    let mut lanes = [[*start; FEW_LANES]; ROWS];
    for at in 0..chunks {
        for row in 0..ROWS {
            add_pairs(&mut lanes[row], &xs[row][at], &ys[row][at], pair, step);
        }
    }
    let lanes = kept_whole(lanes);
    let mut sums = [*start; ROWS];
    for row in 0..ROWS {
        let mut ends = *start;
        for (&x, &y) in left[row][whole..].iter().zip(&right[row][whole..]) {
            ends = step(ends, pair(x, y));
        }
        sums[row] = merge(narrowed(lanes[row], merge), ends);
    }
    sums
}

/// One pair of rows.
fn row<T: Element, A: Copy>(
    x: &[T],
    y: &[T],
    is_short: bool,
    pair: impl Fn(T, T) -> T,
    reducer: Reducer<A, impl Fn(A, T) -> A, impl Fn(A, A) -> A>,
) -> A {
    let mut sum = reducer.start;
    vectorize(
        #[inline(always)]
        || {
            sum = match is_short {
                true => in_step::<T, A, _, _, 1>([[x], [y]], &pair, &reducer)[0],
                false => long(x, y, &pair, &reducer),
            };
        },
    );
    sum
}

/// A row whose elements are each paired with the same one.
fn row_and_single<T: Element, A: Copy>(
    x: &[T],
    y: T,
    is_short: bool,
    pair: impl Fn(T, T) -> T,
    reducer: Reducer<A, impl Fn(A, T) -> A, impl Fn(A, A) -> A>,
) -> A {
    row(
        x,
        x,
        is_short,
        #[inline(always)]
        |x, _| pair(x, y),
        reducer,
    )
}

/// A long pair of rows, with groups of lanes in rotation.
#[inline(always)]
fn long<T: Element, A: Copy, S, M>(
    x: &[T],
    y: &[T],
    pair: &impl Fn(T, T) -> T,
    Reducer { start, step, merge }: &Reducer<A, S, M>,
) -> A
where
    S: Fn(A, T) -> A,
    M: Fn(A, A) -> A,
{
    let ((xs, x_tail), (ys, y_tail)) = (x.as_chunks::<LANES>(), y.as_chunks::<LANES>());
    let ((x_turns, x_rest), (y_turns, y_rest)) =
        (xs.as_chunks::<GROUPS>(), ys.as_chunks::<GROUPS>());
    // Variables of their own stay in registers.
    let [mut a, mut b, mut c, mut d] = [[*start; LANES]; GROUPS];
    for (x, y) in x_turns.iter().zip(y_turns) {
        add_pairs(&mut a, &x[0], &y[0], pair, step);
        add_pairs(&mut b, &x[1], &y[1], pair, step);
        add_pairs(&mut c, &x[2], &y[2], pair, step);
        add_pairs(&mut d, &x[3], &y[3], pair, step);
        keep_turns_apart();
    }
    for (x, y) in x_rest.iter().zip(y_rest) {
        add_pairs(&mut a, x, y, pair, step);
    }
    let mut ends = *start;
    for (&x, &y) in x_tail.iter().zip(y_tail) {
        ends = step(ends, pair(x, y));
    }
    merge(narrowed(merged(&kept_whole([a, b, c, d]), merge), merge), ends)
}

#[inline(always)]
fn add_pairs<T: Copy, A: Copy, const N: usize>(
    lanes: &mut [A; N],
    x: &[T; N],
    y: &[T; N],
    pair: &impl Fn(T, T) -> T,
    step: &impl Fn(A, T) -> A,
) {
    for lane in 0..N {
        lanes[lane] = step(lanes[lane], pair(x[lane], y[lane]));
    }
}
