//! Derivatives of slices, gathers, scatters and sorts: what is read gets its cotangent back at
//! the place it was read from, and what is overwritten gets none.
//!
//! Places are integers and have no derivative. Out of range, a read is clamped and a write is
//! dropped, and the derivatives do the same.

mod forward;

use nxla_expr::{
    Axes, ExprId, Graph, Iota, Op, Padding, Reduce, ReduceOp, Slice, Sort, Start, TensorType,
};
use nxla_tensor::{DType, HostTensor, Scalar, Shape};

use super::movement::put_back;
use crate::emit::{self, filled, keep_where, pad_zeros, signed, spread};
use crate::error::Result;
use crate::sweep::{Sweep, Visit};

pub(super) use forward::{
    gather_tangent, indexed_add_tangent, indexed_put_tangent, put_slice_tangent, slice_tangent,
    sort_tangent,
};

/// The elements between the strides and outside of the range get zero. A slice at known places
/// is undone by padding, which compiles to less than an update.
pub(super) fn slice(sweep: &mut Sweep<'_>, visit: &Visit, attributes: &Slice) -> Result<()> {
    let dy = sweep.dy(visit)?;
    let Slice { starts, lengths, strides } = attributes;
    let graph = &mut *sweep.graph;
    let (from, to) = (graph.shape(visit.operands[0]).clone(), graph.shape(dy).clone());
    if to.size() == 0 {
        return Ok(());
    }
    let padding = |axis: usize| match starts[axis] {
        Start::Static(start) => {
            let last = signed(from[axis] - lengths[axis]);
            put_back(start.clamp(0, last), to[axis], strides[axis], from[axis])
        }
        // Up to the length of the range, so that the update is clamped as the slice was.
        Start::Dynamic => {
            let high = signed(lengths[axis]) - signed(spread(to[axis], strides[axis]));
            Padding { low: 0, high, interior: strides[axis] - 1 }
        }
    };
    let padding: Vec<Padding> = (0..from.rank()).map(padding).collect();
    let placed = pad_zeros(graph, dy, &padding)?;
    let dx = if visit.operands.len() == 1 {
        placed
    } else {
        let zeros = filled(graph, 0.0, graph.dtype(dy), &from)?;
        let starts = starts.iter().map(|start| match start {
            Start::Static(_) => Start::Static(0),
            Start::Dynamic => Start::Dynamic,
        });
        let operands: Vec<ExprId> =
            [zeros, placed].into_iter().chain(visit.operands[1..].iter().copied()).collect();
        graph.make(Op::PutSlice(starts.collect()), &operands)?
    };
    sweep.give(visit, 0, dx)
}

/// The tensor gets the cotangent with zeros where it was overwritten; the update gets the slice.
pub(super) fn put_slice(sweep: &mut Sweep<'_>, visit: &Visit, starts: &[Start]) -> Result<()> {
    let dy = sweep.dy(visit)?;
    let update = sweep.graph.shape(visit.operands[1]).clone();
    let dynamic = &visit.operands[2..];
    if sweep.wants(visit, 0) {
        let graph = &mut *sweep.graph;
        let zeros = filled(graph, 0.0, graph.dtype(dy), &update)?;
        let operands: Vec<ExprId> = [dy, zeros].iter().chain(dynamic).copied().collect();
        let part = graph.make(Op::PutSlice(starts.into()), &operands)?;
        sweep.give(visit, 0, part)?;
    }
    if sweep.wants(visit, 1) {
        let slice = Slice {
            starts: starts.into(),
            lengths: update.as_slice().into(),
            strides: vec![1; update.rank()].into(),
        };
        let operands: Vec<ExprId> = [dy].iter().chain(dynamic).copied().collect();
        let part = sweep.graph.make(Op::Slice(Box::new(slice)), &operands)?;
        sweep.give(visit, 1, part)?;
    }
    Ok(())
}

/// What was read several times adds up.
pub(super) fn gather(sweep: &mut Sweep<'_>, visit: &Visit, axes: &Axes) -> Result<()> {
    let dy = sweep.dy(visit)?;
    let indices = sweep.operand(visit, 1)?;
    let graph = &mut *sweep.graph;
    let shape = graph.shape(visit.operands[0]).clone();
    if graph.shape(dy).size() == 0 {
        return Ok(());
    }
    let clamped = clamp(graph, indices, &shape, axes)?;
    let zeros = filled(graph, 0.0, graph.dtype(dy), &shape)?;
    let dx = graph.make(Op::IndexedAdd(axes.clone()), &[zeros, clamped, dy])?;
    sweep.give(visit, 0, dx)
}

/// The tensor gets the whole cotangent, each update the part where it was added.
pub(super) fn indexed_add(sweep: &mut Sweep<'_>, visit: &Visit, axes: &Axes) -> Result<()> {
    let dy = sweep.dy(visit)?;
    sweep.give(visit, 0, dy)?;
    match read_updates(sweep, visit, axes, dy)? {
        Some(part) => sweep.give(visit, 2, part),
        None => Ok(()),
    }
}

/// The tensor gets the cotangent with zeros where it was overwritten. Of several updates of one
/// place, only the one that stays gets the cotangent of that place; the others get zero.
pub(super) fn indexed_put(sweep: &mut Sweep<'_>, visit: &Visit, axes: &Axes) -> Result<()> {
    let dy = sweep.dy(visit)?;
    if sweep.wants(visit, 0) {
        let indices = sweep.operand(visit, 1)?;
        let graph = &mut *sweep.graph;
        let shape = graph.shape(visit.operands[2]).clone();
        let zeros = filled(graph, 0.0, graph.dtype(dy), &shape)?;
        let part = graph.make(Op::IndexedPut(axes.clone()), &[dy, indices, zeros])?;
        sweep.give(visit, 0, part)?;
    }
    let Some(part) = read_updates(sweep, visit, axes, dy)? else { return Ok(()) };
    let indices = sweep.operand(visit, 1)?;
    let (shape, updates) = (sweep.graph.shape(dy).clone(), sweep.graph.shape(part).clone());
    let stays = winners(sweep.graph, indices, &shape, axes, &updates)?;
    let part = match stays {
        Some(stays) => keep_where(sweep.graph, stays, part)?,
        None => part,
    };
    sweep.give(visit, 2, part)
}

/// A mask of the updates that no other update of the same place overwrites, or `None` if there is
/// only one. Each update writes its number by the same op, so the backend decides which one stays.
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
    // A gather clamps indices out of range, whose updates are dropped by `read_updates`.
    let stays = graph.make(Op::Gather(all), &[written, indices])?;
    let stays = graph.equal(stays, numbers)?;
    Ok(Some(emit::broadcast(graph, stays, updates.clone(), (0..depth).collect())?))
}

/// Reads the cotangent of each update from the place it was written to, zero where there is none.
/// Gives `None` if no cotangent of the updates is needed.
fn read_updates(
    sweep: &mut Sweep<'_>,
    visit: &Visit,
    axes: &Axes,
    dy: ExprId,
) -> Result<Option<ExprId>> {
    let updates = sweep.graph.shape(visit.operands[2]).clone();
    if !sweep.wants(visit, 2) || updates.size() == 0 {
        return Ok(None);
    }
    let indices = sweep.operand(visit, 1)?;
    let graph = &mut *sweep.graph;
    let shape = graph.shape(dy).clone();
    let read = graph.make(Op::Gather(axes.clone()), &[dy, indices])?;
    let rank = updates.rank();
    let lengths: Axes = updates.as_slice().into();
    let read = emit::slice(graph, read, &vec![0; rank], lengths, vec![1; rank].into())?;
    let inside = in_range(graph, indices, &shape, axes, &updates)?;
    Ok(Some(keep_where(graph, inside, read)?))
}

/// A number per coordinate, or a single one where they are all the same; a dtype that cannot
/// hold one of them has no index beyond it either.
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

/// Indices limited to the places that exist.
fn clamp(graph: &mut Graph, indices: ExprId, shape: &Shape, axes: &[usize]) -> Result<ExprId> {
    let dtype = graph.dtype(indices);
    if axes.is_empty() {
        return Ok(indices);
    }
    let last: Vec<i64> = axes.iter().map(|&axis| signed(shape[axis]) - 1).collect();
    let last = per_coordinate(graph, &last, dtype)?;
    let limited = graph.min(indices, last)?;
    if dtype.is_unsigned() {
        return Ok(limited);
    }
    let zero = graph.scalar_constant(Scalar::Int(0), dtype)?;
    Ok(graph.max(limited, zero)?)
}

/// Whether all coordinates of an update exist, in the shape of the updates.
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
    Ok(emit::broadcast(graph, all, updates.clone(), (0..coordinates).collect())?)
}

/// Element `j` of the sorted axis came from `argsort[j]`: the cotangents are written back there.
pub(super) fn sort(sweep: &mut Sweep<'_>, visit: &Visit, attributes: Sort) -> Result<()> {
    let dy = sweep.dy(visit)?;
    let x = sweep.operand(visit, 0)?;
    let graph = &mut *sweep.graph;
    let shape = graph.shape(x).clone();
    if shape.size() == 0 {
        return Ok(());
    }
    let indices = sorted_places(graph, x, attributes)?;
    let zeros = filled(graph, 0.0, graph.dtype(dy), &shape)?;
    let axes: Axes = (0..shape.rank()).collect();
    let dx = graph.make(Op::IndexedPut(axes), &[zeros, indices, dy])?;
    sweep.give(visit, 0, dx)
}

/// Where in `x` each element of the sorted tensor comes from, one coordinate for each axis.
fn sorted_places(graph: &mut Graph, x: ExprId, attributes: Sort) -> Result<ExprId> {
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
            emit::reshape(graph, places, pair.clone())
        })
        .collect::<nxla_expr::Result<Vec<_>>>()?;
    Ok(graph.make(Op::Concatenate(shape.rank()), &coordinates)?)
}

/// `argsort`: none, a position is constant by parts.
pub(super) fn no_derivative() -> Result<()> {
    Ok(())
}
