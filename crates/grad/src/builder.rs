//! Builders for nodes that several derivative rules create.
//!
//! Arguments are resolved axes and sizes, so the builders call [`Graph::make`] directly.

use std::cmp::Ordering;

use nxla_expr::{
    Axes, Broadcast, ExprId, Graph, Op, Operands, Padding, Reduce, ReduceOp, Reshape, Result,
    SliceAttributes, Start, TensorType, UnaryOp,
};
use nxla_tensor::{DType, Names, Scalar, Shape, to_i64};

/// Creates the parameters of a program.
pub(crate) fn parameters(graph: &mut Graph, types: &[TensorType]) -> Vec<ExprId> {
    types.iter().enumerate().map(|(at, ty)| graph.parameter(at, ty.clone())).collect()
}

/// Creates a scalar constant.
pub(crate) fn scalar(graph: &mut Graph, value: f64, dtype: DType) -> Result<ExprId> {
    graph.scalar_constant(Scalar::Float(value), dtype)
}

/// Creates a constant of a shape with all elements equal.
pub(crate) fn full(graph: &mut Graph, value: f64, dtype: DType, shape: &Shape) -> Result<ExprId> {
    graph.constant(Scalar::Float(value), TensorType::new(dtype, shape.clone()))
}

/// Returns whether `x` is a constant whose elements are all zero.
pub(crate) fn is_zero(graph: &Graph, x: ExprId) -> bool {
    match graph.op(x) {
        Op::Constant(constant) => constant.value.is_zero(),
        _ => false,
    }
}

/// Multiplies `x` by a scalar.
pub(crate) fn scale(graph: &mut Graph, x: ExprId, factor: f64) -> Result<ExprId> {
    let factor = scalar(graph, factor, graph.dtype(x))?;
    graph.multiply(factor, x)
}

/// Selects `dy` where `mask` is true, and zero elsewhere.
pub(crate) fn select_or_zero(graph: &mut Graph, mask: ExprId, dy: ExprId) -> Result<ExprId> {
    let zero = scalar(graph, 0.0, graph.dtype(dy))?;
    graph.select(mask, dy, zero)
}

/// Casts `x` to a dtype.
pub(crate) fn cast(graph: &mut Graph, x: ExprId, dtype: DType) -> Result<ExprId> {
    if graph.dtype(x) == dtype { Ok(x) } else { graph.as_type(x, dtype) }
}

/// Casts `x` to a floating-point dtype: integers become `f32`.
pub(crate) fn to_float(graph: &mut Graph, x: ExprId) -> Result<ExprId> {
    cast(graph, x, graph.dtype(x).to_floating())
}

/// Removes the axis names of `x`. Cotangents have no names, because the axes of an operand and of
/// its cotangent correspond only by position; equal names on other axes would be rejected.
pub(crate) fn strip_names(graph: &mut Graph, x: ExprId) -> Result<ExprId> {
    with_names(graph, x, None)
}

/// Replaces the axis names of `x`.
pub(crate) fn with_names(graph: &mut Graph, x: ExprId, names: Option<Names>) -> Result<ExprId> {
    let ty = graph.tensor_type(x);
    if ty.names == names {
        return Ok(x);
    }
    let shape = ty.shape.clone();
    graph.make(Op::Reshape(Box::new(Reshape { shape, names })), &[x])
}

/// Casts a cotangent to a dtype with at least the precision and the range of a float of dtype
/// `primal`. A rule can then divide the cotangent by a count that `primal` represents.
pub(crate) fn widen(graph: &mut Graph, dy: ExprId, primal: DType) -> Result<ExprId> {
    let own = graph.dtype(dy);
    let (real, least) = (own.to_real(), primal.to_floating().to_real());
    let wide = match real.bits().cmp(&least.bits()) {
        Ordering::Less => least,
        Ordering::Equal if real != least => DType::F32,
        Ordering::Equal | Ordering::Greater => return Ok(dy),
    };
    let wide = if own.is_complex() { wide.to_complex() } else { wide };
    cast(graph, dy, wide)
}

/// Adds two derivatives that may be missing.
pub(crate) fn add_optional(
    graph: &mut Graph,
    a: Option<ExprId>,
    b: Option<ExprId>,
) -> Result<Option<ExprId>> {
    Ok(match (a, b) {
        (Some(a), Some(b)) => Some(graph.add(a, b)?),
        (one, other) => one.or(other),
    })
}

/// Adds two cotangents in the wider of their dtypes.
pub(crate) fn add(graph: &mut Graph, a: ExprId, b: ExprId) -> Result<ExprId> {
    let (left, right) = (graph.dtype(a), graph.dtype(b));
    if left == right {
        return graph.add(a, b);
    }
    let (a, b) = (widen(graph, a, right)?, widen(graph, b, left)?);
    graph.add(a, b)
}

/// Takes the real part of a cotangent if the node is real, since `df = Re(c dx)` for a real `dx`.
pub(crate) fn real_part_if_real(graph: &mut Graph, dy: ExprId, primal: DType) -> Result<ExprId> {
    if graph.dtype(dy).is_complex() && !primal.is_complex() {
        return graph.make(Op::Unary(UnaryOp::Real), &[dy]);
    }
    Ok(dy)
}

/// Returns the cotangent of a node, given the sum of its contributions. It is real if the node is
/// real, and has 32 bits if the node is a float of at most 32 bits. Without this limit, one operation
/// in `f64` would make all derivatives before it `f64`.
pub(crate) fn complete_cotangent(graph: &mut Graph, sum: ExprId, primal: DType) -> Result<ExprId> {
    let sum = real_part_if_real(graph, sum, primal)?;
    let is_narrower = primal == primal.to_floating() && primal.to_real() != DType::F64;
    match graph.dtype(sum) {
        DType::F64 if is_narrower => cast(graph, sum, DType::F32),
        DType::C128 if is_narrower => cast(graph, sum, DType::C64),
        _ => Ok(sum),
    }
}

pub(crate) fn reshape(graph: &mut Graph, x: ExprId, shape: Shape) -> Result<ExprId> {
    if *graph.shape(x) == shape {
        return Ok(x);
    }
    graph.make(Op::Reshape(Box::new(Reshape { shape, names: None })), &[x])
}

/// Transposes `x`: axis `i` of the result is axis `permutation[i]` of `x`.
pub(crate) fn transpose(graph: &mut Graph, x: ExprId, permutation: Axes) -> Result<ExprId> {
    graph.make(Op::Transpose(permutation), &[x])
}

/// Sums over axes and removes them; narrow floats are summed in a wider dtype.
pub(crate) fn sum(graph: &mut Graph, x: ExprId, axes: Axes) -> Result<ExprId> {
    if axes.is_empty() {
        return Ok(x);
    }
    let x = cast(graph, x, graph.dtype(x).to_counting())?;
    let attributes = Reduce { axes: Some(axes), keep_axes: false };
    graph.make(Op::Reduce(ReduceOp::Sum, Box::new(attributes)), &[x])
}

/// Sums all elements.
pub(crate) fn sum_all(graph: &mut Graph, x: ExprId) -> Result<ExprId> {
    let axes = (0..graph.shape(x).rank()).collect();
    sum(graph, x, axes)
}

/// Broadcasts `x` to a shape; axis `i` of `x` becomes axis `axes[i]`.
pub(crate) fn broadcast(graph: &mut Graph, x: ExprId, shape: Shape, axes: Axes) -> Result<ExprId> {
    if *graph.shape(x) == shape {
        return Ok(x);
    }
    graph.make(Op::Broadcast(Box::new(Broadcast { shape, axes, names: None })), &[x])
}

/// Applies the adjoint of broadcasting from `shape`: sums over the axes that broadcasting added or
/// stretched.
pub(crate) fn unbroadcast(graph: &mut Graph, dy: ExprId, shape: &Shape) -> Result<ExprId> {
    let from = graph.shape(dy);
    if from == shape {
        return Ok(dy);
    }
    let added = from.rank() - shape.rank();
    let stretched = |axis: usize| axis < added || (shape[axis - added] == 1 && from[axis] != 1);
    let axes: Axes = (0..from.rank()).filter(|&axis| stretched(axis)).collect();
    let summed = sum(graph, dy, axes)?;
    reshape(graph, summed, shape.clone())
}

/// Broadcasts the result of a reduction back to the shape of its operand.
pub(crate) fn unreduce(
    graph: &mut Graph,
    x: ExprId,
    shape: &Shape,
    reduced: &[usize],
) -> Result<ExprId> {
    let kept: Axes = (0..shape.rank()).filter(|axis| !reduced.contains(axis)).collect();
    let without = kept.iter().map(|&axis| shape[axis]).collect();
    let x = reshape(graph, x, without)?;
    broadcast(graph, x, shape.clone(), kept)
}

/// Pads `x` with zeros around and between its elements; negative counts trim.
pub(crate) fn pad_zeros(graph: &mut Graph, x: ExprId, padding: &[Padding]) -> Result<ExprId> {
    if padding.iter().all(|axis| *axis == Padding::NONE) {
        return Ok(x);
    }
    let zero = scalar(graph, 0.0, graph.dtype(x))?;
    graph.make(Op::Pad(padding.into()), &[x, zero])
}

/// Slices `lengths` elements from `starts` with `strides`.
pub(crate) fn slice(
    graph: &mut Graph,
    x: ExprId,
    starts: &[usize],
    lengths: Axes,
    strides: Axes,
) -> Result<ExprId> {
    let starts = starts.iter().map(|&start| Start::Static(to_i64(start))).collect();
    graph.make(Op::Slice(Box::new(SliceAttributes { starts, lengths, strides })), &[x])
}

/// Returns the size of an axis with `step - 1` elements inserted between neighbors.
pub(crate) fn dilated_size(size: usize, step: usize) -> usize {
    size.checked_sub(1).map_or(0, |gaps| gaps * step + 1)
}

/// Computes `sum + part`. If `part` is zero except for a slice, only this slice of `sum` is
/// updated. The backend updates `sum` in place, so a loop over the rows of a sequence costs the
/// size of a row for each iteration and not the size of the sequence.
pub(crate) fn accumulate(graph: &mut Graph, sum: ExprId, part: ExprId) -> Result<ExprId> {
    let fits = graph.ty(sum) == graph.ty(part);
    let operands: Operands = graph.operands(part).into();
    match graph.op(part).clone() {
        Op::PutSlice(starts) if fits && is_zero(graph, operands[0]) => {
            let lengths: Axes = graph.shape(operands[1]).as_slice().into();
            let strides = vec![1; lengths.len()].into();
            let slice = SliceAttributes { starts: starts.clone(), lengths, strides };
            let dynamic = operands[2..].iter().copied();
            let read: Operands = std::iter::once(sum).chain(dynamic.clone()).collect();
            let present = graph.make(Op::Slice(Box::new(slice)), &read)?;
            let grown = graph.add(present, operands[1])?;
            let written: Operands = [sum, grown].into_iter().chain(dynamic).collect();
            graph.make(Op::PutSlice(starts), &written)
        }
        Op::IndexedAdd(axes) if fits && is_zero(graph, operands[0]) => {
            graph.make(Op::IndexedAdd(axes), &[sum, operands[1], operands[2]])
        }
        _ => graph.add(sum, part),
    }
}
