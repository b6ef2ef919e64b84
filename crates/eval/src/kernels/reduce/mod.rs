//! Reductions along axes.
//!
//! Sums and products of `f32` accumulate in `f64`, and of `c64` in `c128`, and are rounded once.
//! The order of additions does not depend on the number of threads.

mod arg;
mod kernel;
mod map_reduce;
mod plane;
mod weighted;

use bytemuck::cast_slice_mut;
use nxla_expr::{Op, Reduce, ReduceOp, TensorType};
use nxla_tensor::{DType, Element, HostTensor, Scalar};

use crate::context::{self, Args, Cx, Fault};
use crate::kernels::elementwise::{Domain, convert};
use crate::kernels::number::{Number, accumulator_dtype, compute_dtype, match_number, match_wide};
use crate::kernels::ordered::{match_order, pick_better};
use kernel::{Elements, Reducer, finds_largest, is_in_pieces, neutral, reduce};
pub(crate) use kernel::{Producer, ROUND, hide_lanes, piece};
pub(crate) use map_reduce::{RowOperand, has_map_reduce_kernel, map_reduce_rows};
pub(crate) use plane::{Plane, reduced_first};
pub(crate) use weighted::{combine_rows, multiply_rows};

pub(crate) fn evaluate(
    cx: Cx<'_>,
    op: &Op,
    ty: &TensorType,
    args: &Args<'_>,
) -> Result<HostTensor, Fault> {
    match op {
        Op::Reduce(op, attributes) => reduce_tensor(cx, *op, attributes, args.get(0), ty),
        Op::ArgReduce(op, attributes) => arg::arg_reduce(cx, *op, attributes, args.get(0), ty),
        Op::ReduceFun(_) => unreachable!("the executor folds with functions"),
        op @ nxla_expr::outside!(reduce) => unreachable!("{} is of another family", op.name()),
    }
}

fn reduce_tensor(
    cx: Cx<'_>,
    op: ReduceOp,
    attributes: &Reduce,
    x: &HostTensor,
    ty: &TensorType,
) -> Result<HostTensor, Fault> {
    let dtype = operand_dtype(op, x.dtype());
    let x = convert(cx, x, dtype)?;
    let (x, plane) = Plane::of(cx, &x, |axis| attributes.reduces(axis))?;
    let reduction = InMemory { op, dtype, neutral: neutral(op, ty.dtype), plane };
    let dtype = result_dtype(op, dtype);
    let result = context::build_bytes(dtype, &ty.shape, |out| reduction.fill(cx, x.bytes(), out))?;
    convert(cx, &result, ty.dtype)
}

/// A reduction that reads elements in place and without conversion.
pub(crate) struct InMemory {
    op: ReduceOp,
    dtype: DType,
    neutral: Scalar,
    plane: Plane,
}

impl InMemory {
    /// Reduces the bytes of a tensor.
    pub(crate) fn fill(&self, cx: Cx<'_>, x: &[u8], out: &mut [u8]) {
        fill(cx, self.op, self.neutral, self.dtype, Elements::Stored(x, self.plane), out);
    }
}

/// A reduction, with the types of its operand and result.
pub(crate) struct Reduction<'a> {
    pub(crate) op: ReduceOp,
    pub(crate) attributes: &'a Reduce,
    pub(crate) x: &'a TensorType,
    pub(crate) ty: &'a TensorType,
}

impl Reduction<'_> {
    /// Returns true if a kernel reads elements and writes results without conversion.
    fn is_plain(&self) -> bool {
        let dtype = self.x.dtype;
        operand_dtype(self.op, dtype) == dtype && self.ty.dtype == result_dtype(self.op, dtype)
    }

    /// The axes with more than one element: the reduced axes, and the other axes.
    fn axes(&self) -> (Vec<usize>, Vec<usize>) {
        let axes = (0..self.x.shape.rank()).filter(|&axis| self.x.shape[axis] != 1);
        axes.partition(|&axis| self.attributes.reduces(axis))
    }

    /// The reduction of elements in place, if it converts no elements.
    pub(crate) fn in_memory(&self) -> Option<InMemory> {
        let plane = Plane::in_memory(&self.x.shape, |axis| self.attributes.reduces(axis))?;
        let neutral = neutral(self.op, self.ty.dtype);
        self.is_plain().then_some(InMemory { op: self.op, dtype: self.x.dtype, neutral, plane })
    }

    /// The rows and columns of a matrix whose rows are reduced to elements of the same dtype without conversion.
    pub(crate) fn by_row(&self) -> Option<Domain> {
        let (reduced, kept) = self.axes();
        let is_last = kept.last() < reduced.first();
        let size = |axes| self.x.shape.size_along(axes);
        (is_last && self.is_plain() && self.ty.dtype == self.x.dtype)
            .then(|| Domain { rows: size(kept), columns: size(reduced) })
    }

    /// The number of results of a reduction that can consume elements while they are computed: one, or one row of
    /// results of many rows. The reduction must not convert elements.
    pub(crate) fn total_results(&self) -> Option<usize> {
        let (reduced, kept) = self.axes();
        let is_first = reduced.last() < kept.first();
        let has_one_result = kept.is_empty();
        let size = |axes| self.x.shape.size_along(axes);
        let (count, inner) = (size(reduced), size(kept));
        let is_made = has_one_result || is_first && is_in_pieces(count, inner);
        (self.is_plain() && is_made).then_some(inner)
    }
}

/// Reduces rows of `count` elements of a dtype, one result for each.
pub(crate) fn fill_by_row(
    cx: Cx<'_>,
    op: ReduceOp,
    dtype: DType,
    x: &[u8],
    count: usize,
    out: &mut [u8],
) {
    let plane = Plane { times: 1, outer: out.len() / dtype.size(), count, inner: 1 };
    fill(cx, op, neutral(op, dtype), dtype, Elements::Stored(x, plane), out);
}

/// Reduces `len` elements of a dtype while `produce` computes them.
pub(crate) fn fill_total(
    cx: Cx<'_>,
    op: ReduceOp,
    dtype: DType,
    len: usize,
    produce: &Producer<'_>,
    out: &mut [u8],
) {
    fill(cx, op, neutral(op, dtype), dtype, Elements::Computed(len, produce), out);
}

/// Reduces elements of a dtype that [`operand_dtype`] returns.
fn fill(cx: Cx<'_>, op: ReduceOp, neutral: Scalar, dtype: DType, x: Elements<'_>, out: &mut [u8]) {
    match op {
        ReduceOp::Sum if is_counted(dtype) => {
            let step = |sum: u32, x: u8| sum.wrapping_add(u32::from(x));
            let counts = Reducer { start: 0, step, merge: u32::wrapping_add };
            reduce(cx, x, counts, |sum| sum, cast_slice_mut(out));
        }
        ReduceOp::Sum => match_number!(dtype, T => {
            let step = |sum, x: T| T::add(sum, x.widen());
            let sums = Reducer { start: T::EMPTY_SUM, step, merge: T::add };
            reduce(cx, x, sums, T::narrow, cast_slice_mut(out));
        }),
        ReduceOp::Product => match_wide!(dtype, T => {
            let products = Reducer { start: T::EMPTY_PRODUCT, step: T::multiply, merge: T::multiply };
            reduce(cx, x, products, |product: T| product, cast_slice_mut(out));
        }),
        ReduceOp::Max | ReduceOp::Min | ReduceOp::Any | ReduceOp::All => {
            match_order!(dtype, finds_largest(op), T, is_better => {
                let (start, pick) = (T::from_scalar(neutral), pick_better(is_better));
                let reducer = Reducer { start, step: pick, merge: pick };
                reduce::<T, T, T>(cx, x, reducer, |a| a, cast_slice_mut(out));
            };
                DType::Pred | DType::U2 | DType::U4 | DType::U8 | DType::S2 | DType::S4 | DType::S8 => i8,
                DType::U16 | DType::S16 => i16,
            );
        }
    }
}

/// The dtype to which an operand is converted before its reduction.
fn operand_dtype(op: ReduceOp, dtype: DType) -> DType {
    match op {
        ReduceOp::Sum if is_counted(dtype) => dtype,
        ReduceOp::Sum => compute_dtype(dtype),
        // Products are rare, so they have kernels for wide numbers only.
        ReduceOp::Product => accumulator_dtype(dtype),
        ReduceOp::All | ReduceOp::Any => DType::Pred,
        ReduceOp::Max | ReduceOp::Min => dtype.at_least_f32(),
    }
}

/// Returns true if a sum reads the bytes of a dtype directly, without a copy in the dtype of the
/// sum.
fn is_counted(dtype: DType) -> bool {
    matches!(dtype, DType::Pred | DType::U2 | DType::U4 | DType::U8)
}

/// The dtype of the result of a reduction of elements of an [operand dtype](operand_dtype).
pub(crate) fn result_dtype(op: ReduceOp, dtype: DType) -> DType {
    if op == ReduceOp::Sum { operand_dtype(op, dtype).to_aggregate() } else { dtype }
}
