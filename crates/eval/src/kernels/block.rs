//! Native blocks: composites with a kernel. The executor runs the bodies of other blocks.

use nxla_expr::{Block, BlockKind, Cumulative};
use nxla_tensor::{DType, Element, HostTensor};

use crate::context::{self, Args, Cx, Fault, Results, one};
use crate::kernels::create::{random_wide_words, random_words};
use crate::kernels::elementwise::{convert, vectorize};
use crate::kernels::index::{scatter_to_vector, search, top_k, top_k_pays};
use crate::kernels::linalg::{is_small, solve};
use crate::kernels::number::{Number, compute_dtype, match_number};
use crate::kernels::ordered::{comparison_dtype, match_order, pick_better, worst};
use crate::kernels::reduce::Plane;

/// Returns true if [`evaluate`] computes a block.
pub(crate) fn is_native(block: &Block) -> bool {
    let is_narrow_float = || {
        let dtype = block.body.inputs()[0].dtype;
        dtype.is_float() && dtype.bits() < 32
    };
    match block.kind {
        // The body of a scan rounds to a narrow float after each of its steps.
        BlockKind::Cumulative { .. } => !is_narrow_float(),
        // For a large `k`, the body is as fast: it sorts.
        BlockKind::TopK { k } => {
            let shape = &block.body.inputs()[0].shape;
            shape.last().is_some_and(|&size| top_k_pays(k, size))
        }
        // The kernel searches a single sorted vector; a batch may have one for each entry.
        BlockKind::Search(_) => {
            let counts = block.body.output_types().all(|ty| ty.dtype == DType::S32);
            block.batch_axes == 0 && counts && !is_narrow_float()
        }
        BlockKind::Threefry { .. } | BlockKind::Scatter { .. } => true,
        BlockKind::Solve { .. } => is_small(&block.body),
        BlockKind::Checkpoint { .. } | BlockKind::Named { .. } | BlockKind::Factorize(_) => false,
    }
}

/// Computes a block that [`is_native`].
pub(crate) fn evaluate(cx: Cx<'_>, block: &Block, args: &mut Args<'_>) -> Result<Results, Fault> {
    let x = args.get(0);
    match block.kind {
        BlockKind::Cumulative { op, axis, reverse } => {
            let pass = AxisPass { x, axis: axis + block.batch_axes, reverse };
            cumulative(cx, op, pass).map(one)
        }
        BlockKind::TopK { k } => Ok(top_k(cx, x, k)?.into_iter().collect()),
        BlockKind::Threefry { count, wide: false } => random_words(cx, x, count).map(one),
        BlockKind::Threefry { count, wide: true } => random_wide_words(cx, x, count).map(one),
        BlockKind::Search(order) => search(cx, x, args.get(1), order).map(one),
        BlockKind::Scatter { op } => {
            scatter_to_vector(cx, op, args, &block.body.inputs()[0]).map(one)
        }
        BlockKind::Solve { transposed } => {
            solve(cx, x, args.get(1), args.get(2), transposed).map(one)
        }
        BlockKind::Checkpoint { .. } | BlockKind::Named { .. } | BlockKind::Factorize(_) => {
            unreachable!("the plan runs the body of {}", block.name())
        }
    }
}

fn cumulative(cx: Cx<'_>, op: Cumulative, pass: AxisPass<'_>) -> Result<HostTensor, Fault> {
    let dtype = pass.x.dtype();
    match op {
        Cumulative::Sum => accumulate_axis(cx, pass, true),
        Cumulative::Product => accumulate_axis(cx, pass, false),
        Cumulative::Max | Cumulative::Min => {
            let is_max = op == Cumulative::Max;
            let start = worst(dtype, is_max);
            let x = convert(cx, pass.x, comparison_dtype(dtype))?;
            let pass = AxisPass { x: &x, ..pass };
            let folds = match_order!(x.dtype(), is_max, T, is_better => {
                pass.fold::<T, T>(cx, T::from_scalar(start), pick_better(is_better), |a| a)
            })?;
            convert(cx, &folds, dtype)
        }
    }
}

/// A pass along an axis.
#[derive(Clone, Copy)]
struct AxisPass<'a> {
    x: &'a HostTensor,
    axis: usize,
    reverse: bool,
}

impl AxisPass<'_> {
    /// The fold of all elements up to each position. The accumulator is wider than an element, as
    /// in sums of whole axes.
    fn fold<T: Element, A: Copy + Send + Sync>(
        self,
        cx: Cx<'_>,
        start: A,
        step: impl Fn(A, T) -> A + Copy + Sync,
        finish: impl Fn(A) -> T + Copy + Sync,
    ) -> Result<HostTensor, Fault> {
        let shape = self.x.shape();
        let Plane { count, inner, .. } = Plane::along(shape, self.axis);
        let (source, block) = (context::slice::<T>(self.x), count * inner);
        context::build(self.x.dtype(), shape, |out: &mut [T]| {
            // An element depends on the element before it, so threads divide rows only.
            cx.rows(out, block, 4 * block, |first, out| {
                let blocks = source[first * block..].chunks_exact(block);
                for (out, x) in out.chunks_exact_mut(block).zip(blocks) {
                    if inner == 1 {
                        along_row(x, self.reverse, start, step, finish, out);
                    } else {
                        down_columns(x, inner, self.reverse, start, step, finish, out);
                    }
                }
            });
        })
    }
}

/// The folds of a row, whose accumulator stays in a register.
fn along_row<T: Copy, A: Copy>(
    x: &[T],
    reverse: bool,
    start: A,
    step: impl Fn(A, T) -> A,
    finish: impl Fn(A) -> T,
    out: &mut [T],
) {
    let mut total = start;
    let pairs = out.iter_mut().zip(x);
    let put = |(out, &x): (&mut T, &T)| {
        total = step(total, x);
        *out = finish(total);
    };
    if reverse { pairs.rev().for_each(put) } else { pairs.for_each(put) }
}

/// The folds of columns, which are independent of each other.
fn down_columns<T: Copy, A: Copy>(
    x: &[T],
    inner: usize,
    reverse: bool,
    start: A,
    step: impl Fn(A, T) -> A,
    finish: impl Fn(A) -> T,
    out: &mut [T],
) {
    let mut totals = context::filled(start, inner);
    vectorize(
        #[inline(always)]
        || {
            let rows = x.len() / inner;
            for at in 0..rows {
                let row = inner * if reverse { rows - 1 - at } else { at };
                let (x, out) = (&x[row..row + inner], &mut out[row..row + inner]);
                for ((total, &x), out) in totals.iter_mut().zip(x).zip(out) {
                    *total = step(*total, x);
                    *out = finish(*total);
                }
            }
        },
    );
}

/// Sums or products, in the dtype that computes them.
fn accumulate_axis(cx: Cx<'_>, pass: AxisPass<'_>, is_sum: bool) -> Result<HostTensor, Fault> {
    let dtype = pass.x.dtype();
    let compute = compute_dtype(dtype);
    let x = convert(cx, pass.x, compute)?;
    let pass = AxisPass { x: &x, ..pass };
    let folds = match_number!(compute, T => if is_sum {
        pass.fold(cx, T::EMPTY_SUM, |sum, x: T| T::add(sum, x.widen()), T::narrow)
    } else {
        pass.fold(cx, T::EMPTY_PRODUCT, |product, x: T| T::multiply(product, x.widen()), T::narrow)
    });
    convert(cx, &folds?, dtype)
}
