//! Derivatives of slices, gathers, scatters and sorts. An element that was read receives the
//! cotangent at its index; an overwritten element receives zero.
//!
//! Indices are integers and have no derivative. An out-of-range read is clamped and an out-of-range
//! write is dropped, and the derivatives do the same.

mod forward;

use nxla_expr::{
    Axes, ExprId, Graph, Iota, Op, Padding, Reduce, ReduceOp, SliceAttributes, SortAttributes,
    Start, TensorType,
};
use nxla_tensor::{DType, HostTensor, Scalar, Shape, to_i64};

use super::movement::put_back;
use crate::builder::{self, dilated_size, full, pad_zeros, select_or_zero};
use crate::error::Result;
use crate::reverse::{ReversePass, Visit};

pub(super) use forward::{
    gather_tangent, indexed_add_tangent, indexed_put_tangent, put_slice_tangent, slice_tangent,
    sort_tangent,
};

/// Elements outside the range or between the strides receive zero. A slice at constant indices
/// becomes a `pad`, which compiles to less code than an update.
pub(super) fn slice(
    pass: &mut ReversePass<'_>,
    visit: &Visit,
    attributes: &SliceAttributes,
) -> Result<()> {
    let dy = pass.dy(visit)?;
    let SliceAttributes { starts, lengths, strides } = attributes;
    let graph = &mut *pass.graph;
    let (from, to) = (graph.shape(visit.operands[0]).clone(), graph.shape(dy).clone());
    if to.size() == 0 {
        return Ok(());
    }
    let padding = |axis: usize| match starts[axis] {
        Start::Static(start) => {
            let last = to_i64(from[axis] - lengths[axis]);
            put_back(start.clamp(0, last), to[axis], strides[axis], from[axis])
        }
        // Covers the full extent of the range, so that the update is clamped like the slice.
        Start::Dynamic => {
            let high = to_i64(lengths[axis]) - to_i64(dilated_size(to[axis], strides[axis]));
            Padding { low: 0, high, interior: strides[axis] - 1 }
        }
    };
    let padding: Vec<Padding> = (0..from.rank()).map(padding).collect();
    let placed = pad_zeros(graph, dy, &padding)?;
    let dx = if visit.operands.len() == 1 {
        placed
    } else {
        let zeros = full(graph, 0.0, graph.dtype(dy), &from)?;
        let starts = starts.iter().map(|start| match start {
            Start::Static(_) => Start::Static(0),
            Start::Dynamic => Start::Dynamic,
        });
        let operands: Vec<ExprId> =
            [zeros, placed].into_iter().chain(visit.operands[1..].iter().copied()).collect();
        graph.make(Op::PutSlice(starts.collect()), &operands)?
    };
    pass.add_cotangent(visit, 0, dx)
}

/// The tensor receives the cotangent with zeros at overwritten elements; the update receives the
/// slice.
pub(super) fn put_slice(pass: &mut ReversePass<'_>, visit: &Visit, starts: &[Start]) -> Result<()> {
    let dy = pass.dy(visit)?;
    let update = pass.graph.shape(visit.operands[1]).clone();
    let dynamic = &visit.operands[2..];
    if pass.needs_cotangent(visit, 0) {
        let graph = &mut *pass.graph;
        let zeros = full(graph, 0.0, graph.dtype(dy), &update)?;
        let operands: Vec<ExprId> = [dy, zeros].iter().chain(dynamic).copied().collect();
        let part = graph.make(Op::PutSlice(starts.into()), &operands)?;
        pass.add_cotangent(visit, 0, part)?;
    }
    if pass.needs_cotangent(visit, 1) {
        let slice = SliceAttributes {
            starts: starts.into(),
            lengths: update.as_slice().into(),
            strides: vec![1; update.rank()].into(),
        };
        let operands: Vec<ExprId> = [dy].iter().chain(dynamic).copied().collect();
        let part = pass.graph.make(Op::Slice(Box::new(slice)), &operands)?;
        pass.add_cotangent(visit, 1, part)?;
    }
    Ok(())
}

/// The cotangents of an element that was read several times add up.
pub(super) fn gather(pass: &mut ReversePass<'_>, visit: &Visit, axes: &Axes) -> Result<()> {
    let dy = pass.dy(visit)?;
    let indices = pass.operand(visit, 1)?;
    let graph = &mut *pass.graph;
    let shape = graph.shape(visit.operands[0]).clone();
    if graph.shape(dy).size() == 0 {
        return Ok(());
    }
    let clamped = clamp(graph, indices, &shape, axes)?;
    let zeros = full(graph, 0.0, graph.dtype(dy), &shape)?;
    let dx = graph.make(Op::IndexedAdd(axes.clone()), &[zeros, clamped, dy])?;
    pass.add_cotangent(visit, 0, dx)
}

/// The tensor receives the whole cotangent, each update the elements to which it was added.
pub(super) fn indexed_add(pass: &mut ReversePass<'_>, visit: &Visit, axes: &Axes) -> Result<()> {
    let dy = pass.dy(visit)?;
    pass.add_cotangent(visit, 0, dy)?;
    match read_updates(pass, visit, axes, dy)? {
        Some(part) => pass.add_cotangent(visit, 2, part),
        None => Ok(()),
    }
}

/// The tensor receives the cotangent with zeros at overwritten elements. If several updates write
/// the same element, only the update whose value remains receives the cotangent.
pub(super) fn indexed_put(pass: &mut ReversePass<'_>, visit: &Visit, axes: &Axes) -> Result<()> {
    let dy = pass.dy(visit)?;
    if pass.needs_cotangent(visit, 0) {
        let indices = pass.operand(visit, 1)?;
        let graph = &mut *pass.graph;
        let shape = graph.shape(visit.operands[2]).clone();
        let zeros = full(graph, 0.0, graph.dtype(dy), &shape)?;
        let part = graph.make(Op::IndexedPut(axes.clone()), &[dy, indices, zeros])?;
        pass.add_cotangent(visit, 0, part)?;
    }
    let Some(part) = read_updates(pass, visit, axes, dy)? else { return Ok(()) };
    let indices = pass.operand(visit, 1)?;
    let (shape, updates) = (pass.graph.shape(dy).clone(), pass.graph.shape(part).clone());
    let stays = winners(pass.graph, indices, &shape, axes, &updates)?;
    let part = match stays {
        Some(stays) => select_or_zero(pass.graph, stays, part)?,
        None => part,
    };
    pass.add_cotangent(visit, 2, part)
}

/// Returns a mask of the updates whose values remain, or `None` if there is only one update. The
/// same op writes the number of each update, so the backend's order decides as it does for the
/// values.
fn winners(
    graph: &mut Graph,
    indices: ExprId,
    shape: &Shape,
    axes: &Axes,
    updates: &Shape,
) -> Result<Option<ExprId>> {
    let depth = graph.shape(indices).rank() - 1;
    let counts = Shape::from(&updates[..depth]);
    if counts.size() <= 1 || axes.is_empty() {
        return Ok(None);
    }
    let dtype = if i32::try_from(counts.size()).is_ok() { DType::S32 } else { DType::S64 };
    let numbers = TensorType::new(dtype, counts);
    let numbers = graph.make(Op::Iota(Box::new(Iota { axis: None, ty: numbers })), &[])?;
    let places: Shape = axes.iter().map(|&axis| shape[axis]).collect();
    let places = graph.constant(Scalar::Int(0), TensorType::new(dtype, places))?;
    let all: Axes = (0..axes.len()).collect();
    let written = graph.make(Op::IndexedPut(all.clone()), &[places, indices, numbers])?;
    // A gather clamps out-of-range indices; `read_updates` masks their updates.
    let stays = graph.make(Op::Gather(all), &[written, indices])?;
    let stays = graph.equal(stays, numbers)?;
    Ok(Some(builder::broadcast(graph, stays, updates.clone(), (0..depth).collect())?))
}

/// Reads the cotangent of each update at its index, and zero at out-of-range indices. Returns
/// `None` if no update needs a cotangent.
fn read_updates(
    pass: &mut ReversePass<'_>,
    visit: &Visit,
    axes: &Axes,
    dy: ExprId,
) -> Result<Option<ExprId>> {
    let updates = pass.graph.shape(visit.operands[2]).clone();
    if !pass.needs_cotangent(visit, 2) || updates.size() == 0 {
        return Ok(None);
    }
    let indices = pass.operand(visit, 1)?;
    let graph = &mut *pass.graph;
    let shape = graph.shape(dy).clone();
    let read = graph.make(Op::Gather(axes.clone()), &[dy, indices])?;
    let rank = updates.rank();
    let lengths: Axes = updates.as_slice().into();
    let read = builder::slice(graph, read, &vec![0; rank], lengths, vec![1; rank].into())?;
    let inside = in_range(graph, indices, &shape, axes, &updates)?;
    Ok(Some(select_or_zero(graph, inside, read)?))
}

/// Creates a constant per coordinate, or a scalar if all are equal. A value that `dtype` cannot
/// represent is clamped, since no index of this dtype exceeds it.
fn per_coordinate(graph: &mut Graph, values: &[i64], dtype: DType) -> Result<ExprId> {
    let limit = dtype.max_value().as_i64().unwrap_or(i64::MAX);
    let values: Vec<i64> = values.iter().map(|&value| value.min(limit)).collect();
    if values.iter().all(|value| *value == values[0]) {
        return Ok(graph.scalar_constant(Scalar::Int(values[0]), dtype)?);
    }
    let tensor = HostTensor::from_slice(&values, [values.len()])
        .expect("a list has as many elements as its shape says");
    Ok(graph.tensor(tensor.cast(dtype))?)
}

/// Clamps indices to the valid range.
fn clamp(graph: &mut Graph, indices: ExprId, shape: &Shape, axes: &[usize]) -> Result<ExprId> {
    let dtype = graph.dtype(indices);
    if axes.is_empty() {
        return Ok(indices);
    }
    let last: Vec<i64> = axes.iter().map(|&axis| to_i64(shape[axis]) - 1).collect();
    let last = per_coordinate(graph, &last, dtype)?;
    let limited = graph.min(indices, last)?;
    if dtype.is_unsigned() {
        return Ok(limited);
    }
    let zero = graph.scalar_constant(Scalar::Int(0), dtype)?;
    Ok(graph.max(limited, zero)?)
}

/// Returns a mask, in the shape of the updates, of the indices whose coordinates are all in range.
fn in_range(
    graph: &mut Graph,
    indices: ExprId,
    shape: &Shape,
    axes: &[usize],
    updates: &Shape,
) -> Result<ExprId> {
    let clamped = clamp(graph, indices, shape, axes)?;
    let fits = graph.equal(indices, clamped)?;
    let coordinates = graph.shape(indices).rank() - 1;
    let reduce = Reduce { axes: Some([coordinates].into()), keep_axes: false };
    let all = graph.make(Op::Reduce(ReduceOp::All, Box::new(reduce)), &[fits])?;
    Ok(builder::broadcast(graph, all, updates.clone(), (0..coordinates).collect())?)
}

/// Element `j` of the sorted axis came from index `argsort[j]`, to which its cotangent is written.
pub(super) fn sort(
    pass: &mut ReversePass<'_>,
    visit: &Visit,
    attributes: SortAttributes,
) -> Result<()> {
    let dy = pass.dy(visit)?;
    let x = pass.operand(visit, 0)?;
    let graph = &mut *pass.graph;
    let shape = graph.shape(x).clone();
    if shape.size() == 0 {
        return Ok(());
    }
    let indices = sorted_places(graph, x, attributes)?;
    let zeros = full(graph, 0.0, graph.dtype(dy), &shape)?;
    let axes: Axes = (0..shape.rank()).collect();
    let dx = graph.make(Op::IndexedPut(axes), &[zeros, indices, dy])?;
    pass.add_cotangent(visit, 0, dx)
}

/// Returns the coordinates in `x` of each element of the sorted tensor.
fn sorted_places(graph: &mut Graph, x: ExprId, attributes: SortAttributes) -> Result<ExprId> {
    let shape = graph.shape(x).clone();
    let order = graph.make(Op::Argsort(attributes, DType::S64), &[x])?;
    let mut pair = shape.clone();
    pair.push(1);
    let coordinates = (0..shape.rank())
        .map(|axis| {
            let places = if axis == attributes.axis {
                order
            } else {
                let ty = TensorType::new(DType::S64, shape.clone());
                graph.make(Op::Iota(Box::new(Iota { axis: Some(axis), ty })), &[])?
            };
            builder::reshape(graph, places, pair.clone())
        })
        .collect::<nxla_expr::Result<Vec<_>>>()?;
    Ok(graph.make(Op::Concatenate(shape.rank()), &coordinates)?)
}
