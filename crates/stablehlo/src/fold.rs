//! Folds with a user function: `reduce` and `window_reduce`.
//!
//! StableHLO's folds differ from user folds in two ways. First, the initial value must be neutral,
//! because a fold may be computed in pieces; users may pass any initial value. Second, regions cannot
//! use outer values, and user functions can.
//!
//! A full reduction therefore prepends the initial value as one more element, and a boolean accumulator
//! says whether the other accumulator holds an element yet. Outer scalars are further
//! accumulators that never change. A function that is more than scalar arithmetic (it has a loop,
//! or looks something up in a table) becomes a loop over the elements.

use nxla_expr::{Family, Op, Program};
use nxla_tensor::{DType, Scalar, Shape};
use smallvec::SmallVec;

use crate::builder::Range;
use crate::context::Cx;
use crate::error::Result;
use crate::literal::I64s;
use crate::region::{self, Source, Sources};
use crate::widen;
use crate::writer::{Value, Values};

/// A user's function `(element, accumulator, captures…) -> accumulator` and its captures.
pub(crate) struct Function<'a> {
    pub(crate) program: &'a Program,
    pub(crate) captures: Sources,
}

impl<'a> Function<'a> {
    /// Writes one step on values in their stored dtype ([`widen::storage`]).
    fn apply(
        &self,
        cx: &mut Cx<'a>,
        element: Value,
        accumulator: Value,
        captures: &[Source],
    ) -> Result<Value> {
        let operands = [element.into(), accumulator.into()];
        let inputs: Vec<Option<Source>> = (operands.iter().chain(captures))
            .zip(self.program.inputs())
            .map(|(&operand, ty)| Some(cx.pack_source(operand, ty.dtype)))
            .collect();
        let outputs = region::lower(cx, self.program, &inputs)?;
        let result = cx.unpack(outputs[0]);
        Ok(cx.value(result))
    }

    /// Returns true if the function can be the region of a fold: scalar arithmetic on scalars.
    pub(crate) fn is_scalar(&self) -> bool {
        let graph = self.program.graph();
        graph.ids().all(|id| {
            let op = graph.op(id);
            let is_plain = match op.family() {
                Family::Elementwise => true,
                Family::Control => {
                    matches!(op, Op::Parameter(_) | Op::Constant(_) | Op::Metadata(_) | Op::Elem(_))
                }
                Family::Create
                | Family::Movement
                | Family::Reduce
                | Family::Window
                | Family::Contract
                | Family::Index
                | Family::Linalg => false,
            };
            is_plain && graph.ty(id).parts().iter().all(|ty| ty.rank() == 0)
        })
    }

    /// Returns the operands of a fold and their initial values: a boolean that is true for an element and
    /// false for the initial value, the elements, and the captures that are values. Constants are
    /// written before each use instead.
    fn operands(&self, cx: &mut Cx<'a>, elements: Value, initial: Value) -> (Values, Values) {
        let shape = cx.shape(elements.ty).clone();
        let is_element = cx.splat(Scalar::UInt(1), DType::Pred, &shape);
        let is_initial = cx.splat(Scalar::UInt(0), DType::Pred, &Shape::scalar());
        let mut values = Values::from_slice(&[is_element, elements]);
        let mut start = Values::from_slice(&[is_initial, initial]);
        for &capture in &self.captures {
            if let Source::Value(capture) = capture {
                values.push(cx.broadcast(capture, &[], &shape));
                start.push(capture);
            }
        }
        (values, start)
    }

    /// Returns the captures in a region whose arguments hold their values.
    fn captures_in_region(&self, arguments: &[Value]) -> Sources {
        let mut arguments = arguments.iter();
        self.captures
            .iter()
            .map(|&capture| match capture {
                Source::Value(_) => (*arguments.next().expect("one for each")).into(),
                Source::Splat(..) => capture,
            })
            .collect()
    }
}

/// Folds the first axis of `elements`, `[n][m]`, into `[m]`, beginning with the scalar `initial`.
pub(crate) fn rows<'a>(
    cx: &mut Cx<'a>,
    elements: Value,
    initial: Value,
    function: &Function<'a>,
) -> Result<Value> {
    if !function.is_scalar() {
        return one_by_one(cx, elements, initial, function);
    }
    let width = cx.shape(elements.ty)[1];
    let first = cx.broadcast(initial, &[], &Shape::from([1, width]));
    let elements = cx.concatenate(&[first, elements], 0);
    let (values, start) = function.operands(cx, elements, initial);
    let results = cx.reduce(&values, &start, &[0], |cx, left, right| {
        let captures = function.captures_in_region(&left[2..]);
        let folded = function.apply(cx, right[1], left[1], &captures)?;
        let both = cx.uniform("stablehlo.and", &[left[0], right[0]]);
        let either = cx.uniform("stablehlo.or", &[left[0], right[0]]);
        let only = cx.select(left[0], left[1], right[1]);
        let accumulator = cx.select(both, folded, only);
        let captures = left[2..].iter().copied();
        Ok([either, accumulator].into_iter().chain(captures).collect())
    })?;
    Ok(results[1])
}

/// Folds each window of `x` with scalar arithmetic. The windows must not reach into padding.
///
/// A boolean operand marks the elements. XLA merges a preceding `pad` with the initial value into the
/// fold, and then does not apply the function to the padding. It cannot do so here, because the boolean of
/// padding differs from the boolean of the initial value.
pub(crate) fn windows<'a>(
    cx: &mut Cx<'a>,
    x: Value,
    initial: Value,
    function: &Function<'a>,
    shape: &Shape,
    attributes: std::fmt::Arguments<'_>,
) -> Result<Value> {
    let (values, start) = function.operands(cx, x, initial);
    let body = |cx: &mut Cx<'a>, left: &[Value], right: &[Value]| {
        let captures = function.captures_in_region(&left[2..]);
        let folded = function.apply(cx, right[1], left[1], &captures)?;
        let either = cx.uniform("stablehlo.or", &[left[0], right[0]]);
        let accumulator = cx.select(right[0], folded, left[1]);
        let captures = left[2..].iter().copied();
        Ok([either, accumulator].into_iter().chain(captures).collect())
    };
    let results = cx.fold("stablehlo.reduce_window", &values, &start, shape, attributes, body)?;
    Ok(results[1])
}

/// Does the same as [`rows`] by a loop over single elements, and accepts any function.
fn one_by_one<'a>(
    cx: &mut Cx<'a>,
    elements: Value,
    initial: Value,
    function: &Function<'a>,
) -> Result<Value> {
    let (height, width) = (cx.shape(elements.ty)[0], cx.shape(elements.ty)[1]);
    let total = height.saturating_mul(width);
    let index = widen::index(total);
    let scalar = Shape::scalar();
    let number =
        |cx: &mut Cx<'a>, value: usize| cx.splat(Scalar::UInt(value as u64), index, &scalar);

    let begin = number(cx, 0);
    let row = cx.broadcast(initial, &[], &Shape::from([width]));
    let types = [begin.ty, row.ty];
    let mut open = cx.writer.open("stablehlo.while", &[begin, row], &types);

    let state = cx.begin_region(&mut open, &types);
    let end = number(cx, total);
    let goes_on = cx.compare("LT", state[0], end);
    cx.end_region(&[goes_on]);

    let state = cx.begin_region(&mut open, &types);
    let (count, row) = (state[0], state[1]);
    let divisor = number(cx, width);
    let at_row = cx.uniform("stablehlo.divide", &[count, divisor]);
    let at_column = cx.uniform("stablehlo.remainder", &[count, divisor]);
    let element = element_at(cx, elements, &[at_row, at_column]);
    let accumulator = element_at(cx, row, &[at_column]);
    let folded = function.apply(cx, element, accumulator, &function.captures)?;
    let folded = cx.reshape(folded, &Shape::from([1]));
    let row = cx.operation("stablehlo.dynamic_update_slice", &[row, folded, at_column], row.ty);
    let one = number(cx, 1);
    let next = cx.uniform("stablehlo.add", &[count, one]);
    cx.end_region(&[next, row]);
    let results = cx.writer.close(open, format_args!(""));
    Ok(results[1])
}

/// Reads an element as a scalar.
fn element_at(cx: &mut Cx<'_>, x: Value, at: &[Value]) -> Value {
    let ones: Shape = at.iter().map(|_| 1).collect();
    let ty = cx.ty(cx.dtype(x.ty), &ones);
    let operands: Values = std::iter::once(x).chain(at.iter().copied()).collect();
    let attributes = format_args!("slice_sizes = {}", I64s(&ones));
    let slice = cx.writer.operation("stablehlo.dynamic_slice", &operands, attributes, ty);
    cx.reshape(slice, &Shape::scalar())
}

/// The elements of each window in row-major order: `[elements of a window][windows…]`.
///
/// One strided slice for each position in a window, so this is for functions that a fold cannot
/// hold.
pub(crate) fn unroll_windows(
    cx: &mut Cx<'_>,
    x: Value,
    window: &nxla_expr::WindowAttributes,
    windows: &Shape,
) -> Value {
    let lengths = spans(window, windows);
    let row: Shape = std::iter::once(1).chain(windows.iter().copied()).collect();
    let rows: Values = window_offsets(window)
        .map(|starts| {
            let range = Range { starts: &starts, lengths: &lengths, strides: &window.strides };
            let slice = cx.slice(x, &range);
            cx.reshape(slice, &row)
        })
        .collect();
    cx.concatenate(&rows, 0)
}

/// Returns the offset of each element of the first window, in row-major order.
fn window_offsets(
    window: &nxla_expr::WindowAttributes,
) -> impl Iterator<Item = SmallVec<[usize; 8]>> {
    let size: usize = window.dimensions.iter().product();
    let strides = Shape::from(&window.dimensions[..]).strides();
    (0..size).map(move |position| {
        (0..window.dimensions.len())
            .map(|axis| position / strides[axis] % window.dimensions[axis] * window.dilations[axis])
            .collect()
    })
}

/// The distance, by axis, from the first to the last of the elements that all windows have at one
/// offset.
fn spans(window: &nxla_expr::WindowAttributes, windows: &Shape) -> SmallVec<[usize; 8]> {
    let axes = windows.iter().zip(&window.strides);
    axes.map(|(&count, &stride)| (count - 1) * stride + 1).collect()
}
