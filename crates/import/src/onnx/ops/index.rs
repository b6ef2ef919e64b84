//! Slices, gathers and sorts.

use nxla_expr::build::{SliceStart, Subscript};
use nxla_expr::{ExprId, Graph};
use nxla_tensor::{DType, HostTensor, Shape};

use super::{Operator, operator};
use crate::numbers::to_i64;
use crate::onnx::error::{Built, invalid};
use crate::onnx::node::Call;

/// The operators of this family.
pub(super) const OPERATORS: &[Operator] = &[
    operator("Compress", compress),
    operator("Gather", gather),
    operator("GatherElements", gather_elements),
    operator("GatherND", gather_nd),
    operator("NonZero", non_zero),
    operator("OneHot", one_hot),
    operator("Slice", slice),
    operator("TopK", top_k),
];

fn gather(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let [x, indices] = call.inputs()?;
    let axis = call.int("axis", 0)?;
    Ok(vec![call.graph().take_from_end(x, indices, axis)?])
}

fn gather_elements(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let [x, indices] = call.inputs()?;
    let items = element_coordinates(call, x, indices)?;
    Ok(vec![call.graph().subscript(x, &items)?])
}

/// Returns the coordinates of elements that `indices` select along an axis. The other coordinates
/// are the position in `indices`, which may be smaller than `x`.
pub(super) fn element_coordinates(
    call: &mut Call<'_, '_, '_>,
    x: ExprId,
    indices: ExprId,
) -> Built<Vec<Subscript>> {
    let rank = call.rank(x);
    let axis = call.axis(call.int("axis", 0)?, rank)?;
    let shape = call.shape(indices);
    if shape.rank() != rank {
        return invalid(format!("indices: must have {rank} axes; got {}", call.ty(indices)));
    }
    let graph = call.graph();
    let indices = graph.as_type(indices, DType::S64)?;
    coordinates_along(graph, &shape, axis, indices)
}

/// Returns coordinates of a shape: `indices` along an axis, and the own position along the others.
pub(super) fn coordinates_along(
    graph: &mut Graph,
    shape: &Shape,
    axis: usize,
    indices: ExprId,
) -> Built<Vec<Subscript>> {
    let mut items = Vec::with_capacity(shape.rank());
    for (along, position) in (0_i64..).zip(0..shape.rank()) {
        items.push(Subscript::Take(if position == axis {
            indices
        } else {
            graph.iota(shape.clone(), Some(along), DType::S64)?
        }));
    }
    Ok(items)
}

/// Returns the coordinates in the last axis of `indices` as separate tensors.
pub(super) fn coordinates(
    call: &mut Call<'_, '_, '_>,
    x: ExprId,
    indices: ExprId,
    first: usize,
) -> Built<Vec<Subscript>> {
    let (sizes, shape) = (call.shape(x), call.shape(indices));
    let count = shape.last().copied().unwrap_or(0);
    if shape.rank() == 0 || first + count > sizes.rank() {
        let limit = sizes.rank().saturating_sub(first);
        let found = call.ty(indices);
        return invalid(format!(
            "indices: must have a last axis of at most {limit} coordinates; got {found}"
        ));
    }
    let graph = call.graph();
    let indices = graph.as_type(indices, DType::S64)?;
    let mut items = Vec::with_capacity(count);
    for column in 0..count {
        let one = graph.slice_along_axis(indices, SliceStart::at(column), 1, -1, 1)?;
        let one = graph.squeeze(one, Some(&[-1]))?;
        items.push(Subscript::Take(one));
    }
    Ok(items)
}

/// The first `batch_dims` axes are common to both operands.
fn gather_nd(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let [x, indices] = call.inputs()?;
    let (x_shape, shape) = (call.shape(x), call.shape(indices));
    let batch = usize::try_from(call.int("batch_dims", 0)?).unwrap_or(usize::MAX);
    if batch >= shape.rank() || batch >= x_shape.rank() || x_shape[..batch] != shape[..batch] {
        let why = format!("must count common leading axes; got {batch}");
        return invalid(format!("batch_dims: {why}"));
    }
    let found = coordinates(call, x, indices, batch)?;
    let outer: Shape = shape[..shape.rank() - 1].into();
    let mut items = Vec::with_capacity(batch + found.len());
    for along in 0..batch {
        let along = to_i64(along);
        items.push(Subscript::Take(call.graph().iota(outer.clone(), Some(along), DType::S64)?));
    }
    items.extend(found);
    Ok(vec![call.graph().subscript(x, &items)?])
}

/// Reads `starts`, `ends`, `axes` and `steps` from inputs, or from attributes in old operator sets.
fn slice(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let x = call.input(0)?;
    let shape = call.shape(x);
    let (Some(starts), Some(ends)) = (call.int_list(1, "starts")?, call.int_list(2, "ends")?)
    else {
        return invalid("starts, ends: must not be missing");
    };
    let axes = call.int_list(3, "axes")?;
    let axes = axes.unwrap_or_else(|| (0..).take(starts.len()).collect());
    let steps = call.int_list(4, "steps")?.unwrap_or_else(|| vec![1; starts.len()]);
    if ends.len() != starts.len() || axes.len() != starts.len() || steps.len() != starts.len() {
        return invalid("starts, ends, axes, steps: must have equal sizes");
    }
    let mut result = x;
    for (index, &axis) in axes.iter().enumerate() {
        let at = call.axis(axis, shape.rank())?;
        let bounds = [starts[index], ends[index], steps[index]];
        let (start, count, step) = range_of(bounds, to_i64(shape[at]))?;
        let along = to_i64(at);
        let stride = usize::try_from(step.unsigned_abs()).unwrap_or(usize::MAX);
        let graph = call.graph();
        if count == 0 {
            result = graph.slice_along_axis(result, 0, 0, along, 1)?;
            continue;
        }
        let reach = (count - 1) * step.abs();
        let first = if step > 0 { start } else { start - reach };
        let length = usize::try_from(reach + 1).unwrap_or(0);
        result = graph.slice_along_axis(result, first, length, along, stride.min(length))?;
        if step < 0 {
            result = graph.reverse(result, Some(&[along]))?;
        }
    }
    Ok(vec![result])
}

/// Returns the first index, the number of elements and the step of a slice of an axis.
fn range_of([start, end, step]: [i64; 3], size: i64) -> Built<(i64, i64, i64)> {
    if step == 0 {
        return invalid("steps: must not be 0");
    }
    let step = step.clamp(-i64::MAX / 2, i64::MAX / 2);
    let from_end = |value: i64| if value < 0 { value.saturating_add(size) } else { value };
    // A reversed slice may end before the first element, but it starts at an element.
    let (low, high) = if step > 0 { (0, size) } else { (-1, size - 1) };
    let (start, end) = (from_end(start).max(0).min(high), from_end(end).clamp(low, high));
    let span = if step > 0 { end - start } else { start - end };
    let count = if span <= 0 { 0 } else { (span - 1) / step.abs() + 1 };
    Ok((start, count, step))
}

fn top_k(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let x = call.input(0)?;
    // The number is an attribute before operator set 10.
    let k = match call.optional(1) {
        Some(k) => call.integer(k, "k")?,
        None => call.int("k", -1)?,
    };
    let k = usize::try_from(k)
        .map_err(|_| format!("k: must be a number that is not negative; got {k}"))?;
    let rank = call.rank(x);
    let axis = call.axis(call.int("axis", -1)?, rank)?;
    let is_largest = call.flag("largest", true)?;
    let size = call.shape(x)[axis];
    if k > size {
        return invalid(format!("k: must be at most {size}; got {k}"));
    }
    let along = to_i64(axis);
    let graph = call.graph();
    if is_largest && axis + 1 == rank && k > 0 {
        let (values, indices) = graph.top_k(x, k)?;
        return Ok(vec![values, graph.as_type(indices, DType::S64)?]);
    }
    let order = graph.argsort(x, along, is_largest, true, DType::S64)?;
    let indices = graph.slice_along_axis(order, 0, k, along, 1)?;
    Ok(vec![graph.take_along_axis(x, indices, along)?, indices])
}

/// Indices outside of the range from `-depth` to `depth - 1` mark no element.
fn one_hot(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let [indices, depth, values] = call.inputs()?;
    let depth = match call.numbers(depth, "depth")?[..] {
        [depth] if (0.0..=1e15).contains(&depth) => depth,
        ref other => return invalid(format!("depth: must be a size; got {other:?}")),
    };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "was checked")]
    let depth = depth as usize;
    let axis = call.int("axis", -1)?;
    let rank = call.rank(indices) + 1;
    let at = to_i64(call.axis(axis, rank)?);
    let graph = call.graph();
    let indices = graph.as_type(indices, DType::S64)?;
    let indices = graph.from_end(indices, depth)?;
    let is_marked = graph.one_hot(indices, depth, at, DType::Pred)?;
    let off = graph.slice_along_axis(values, 0, 1, 0, 1)?;
    let on = graph.slice_along_axis(values, 1, 1, 0, 1)?;
    let (off, on) = (graph.squeeze(off, None)?, graph.squeeze(on, None)?);
    Ok(vec![graph.select(is_marked, on, off)?])
}

/// The number of results depends on the values, which must therefore be known.
fn non_zero(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let x = call.input(0)?;
    let value = call.constant(x, "input")?;
    let shape = value.shape().clone();
    let places: Vec<usize> =
        (0..value.size()).filter(|&index| !value.get(index).is_zero()).collect();
    let strides = shape.strides();
    let mut coordinates = Vec::with_capacity(places.len() * shape.rank());
    for (axis, &size) in shape.iter().enumerate() {
        for &place in &places {
            coordinates.push(to_i64(place / strides[axis] % size));
        }
    }
    let result = HostTensor::from_slice(&coordinates, [shape.rank(), places.len()])?;
    Ok(vec![call.graph().tensor(result)?])
}

/// Takes the elements of an axis that a known condition selects.
fn compress(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let [x, condition] = call.inputs()?;
    let condition = call.constant(condition, "condition")?;
    let chosen: Vec<i64> = (0_i64..)
        .zip(0..condition.size())
        .filter(|&(_, index)| !condition.get(index).is_zero())
        .map(|(place, _)| place)
        .collect();
    let indices = call.literal(&chosen)?;
    let axis = call.maybe_int("axis")?;
    let graph = call.graph();
    let (x, axis) = match axis {
        Some(axis) => (x, axis),
        None => (graph.flatten(x, None)?, 0),
    };
    Ok(vec![graph.take(x, indices, axis)?])
}
