//! Rotary embeddings of positions.

use nxla_expr::build::SliceStart;
use nxla_expr::{ExprId, Graph};
use nxla_tensor::{DType, Shape};

use super::neural::{heads_of, split_heads};
use super::{Operator, operator};
use crate::onnx::error::{Built, invalid, unsupported};
use crate::onnx::node::Call;

/// The operators of this family.
pub(super) const OPERATORS: &[Operator] =
    &[operator("RotaryEmbedding", rotary), operator("com.microsoft:RotaryEmbedding", rotary)];

/// Rotates pairs of features by the angles of their positions. The operator of `com.microsoft` has
/// the positions before the tables. Its attribute `is_packed_batching` permits longer sequences than
/// the tables, so it does not change the result.
fn rotary(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let x = call.input(0)?;
    let (positions, cos, sin) = match call.node.domain() {
        "" => (call.optional(3), call.input(1)?, call.input(2)?),
        _ => (call.optional(1), call.input(2)?, call.input(3)?),
    };
    let scale = call.float("scale", 1.0)?;
    if scale != 1.0 {
        return unsupported(format!("scale: must be 1.0; got {scale}"));
    }
    let rotated = call.int("rotary_embedding_dim", 0)?;
    let Ok(rotated) = usize::try_from(rotated) else {
        return invalid(format!("rotary_embedding_dim: must not be negative; got {rotated}"));
    };
    let shape = call.shape(x);
    let is_flat = shape.rank() == 3;
    let mut y = match shape[..] {
        [_, _, all] if call.int("num_heads", 0)? == 0 => {
            // The tables have half as many columns as a head, unless only a part of it is rotated.
            if rotated != 0 {
                return invalid(
                    "num_heads: must be positive if rotary_embedding_dim is set; got 0",
                );
            }
            let size = call.shape(cos).last().map_or(0, |&half| half.saturating_mul(2));
            if size == 0 || !all.is_multiple_of(size) {
                return invalid(format!("num_heads: must be positive for {}", call.ty(x)));
            }
            split_heads(call, x, all / size, "num_heads")?
        }
        _ => heads_of(call, x, "num_heads")?,
    };
    let [batch, _, length, size] = call.shape(y)[..] else {
        return invalid(format!("X: must have 3 or 4 axes; got {}", call.ty(x)));
    };
    let rotated = if rotated == 0 { size } else { rotated };
    if rotated == 0 || rotated > size || !rotated.is_multiple_of(2) {
        let why = format!("must be even and at most {size}; got {rotated}");
        return invalid(format!("rotary_embedding_dim: {why}"));
    }
    let mut tables = [cos, sin];
    for table in &mut tables {
        *table = angles(call, *table, positions, [batch, length])?;
    }
    y = rotate(call, y, tables, rotated, call.flag("interleaved", false)?)?;
    let graph = call.graph();
    if is_flat {
        y = graph.transpose(y, Some(&[0, 2, 1, 3]))?;
    }
    Ok(vec![graph.reshape(y, shape)?])
}

/// Rotates pairs of the first features of `[batch, heads, length, size]`. The tables of cosines and
/// sines have an axis of size 1 for the heads. The pairs are neighbors if they are interleaved, and
/// otherwise the pairs of both halves.
pub(super) fn rotate(
    call: &mut Call<'_, '_, '_>,
    x: ExprId,
    [cos, sin]: [ExprId; 2],
    rotated: usize,
    interleaved: bool,
) -> Built<ExprId> {
    let mut shape = call.shape(x);
    let size = shape.last().copied().unwrap_or(0);
    let half = rotated / 2;
    if [cos, sin].iter().any(|&table| call.shape(table).last() != Some(&half)) {
        let (cos, sin) = (call.ty(cos), call.ty(sin));
        let why = format!("must have {half} columns; got {cos} and {sin}");
        return invalid(format!("cos_cache, sin_cache: {why}"));
    }
    let graph = call.graph();
    let part = |graph: &mut Graph, first: usize, count: usize, step: usize| {
        graph.slice_along_axis(x, SliceStart::at(first), count, -1, step)
    };
    let (first, second) = if interleaved {
        (part(graph, 0, rotated - 1, 2)?, part(graph, 1, rotated - 1, 2)?)
    } else {
        (part(graph, 0, half, 1)?, part(graph, half, half, 1)?)
    };
    let rest = part(graph, rotated, size.saturating_sub(rotated), 1)?;
    let (a, b) = (graph.multiply(cos, first)?, graph.multiply(sin, second)?);
    let real = graph.subtract(a, b)?;
    let (a, b) = (graph.multiply(sin, first)?, graph.multiply(cos, second)?);
    let imag = graph.add(a, b)?;
    let mut y = if interleaved {
        let pairs = graph.stack(&[real, imag], -1, None)?;
        if let Some(last) = shape.as_mut_slice().last_mut() {
            *last = rotated;
        }
        graph.reshape(pairs, shape)?
    } else {
        graph.concatenate(&[real, imag], -1)?
    };
    if rotated < size {
        y = graph.concatenate(&[y, rest], -1)?;
    }
    Ok(y)
}

/// Returns the entries of a table at the positions, with an axis for the heads.
pub(super) fn angles(
    call: &mut Call<'_, '_, '_>,
    table: ExprId,
    positions: Option<ExprId>,
    [batch, length]: [usize; 2],
) -> Built<ExprId> {
    let half = call.shape(table).last().copied().unwrap_or(0);
    let graph = call.graph();
    let taken = match positions {
        // One number is the position of the first element of every sequence.
        Some(start) if graph.shape(start).rank() < 2 && graph.shape(start).size() == 1 => {
            let start = graph.as_type(start, DType::S64)?;
            let start = graph.reshape(start, Shape::scalar())?;
            let step = graph.iota([length], None, DType::S64)?;
            let places = graph.add(start, step)?;
            let taken = graph.take(table, places, 0)?;
            graph.broadcast(taken, [batch, length, half], None)?
        }
        Some(positions) => graph.take(table, positions, 0)?,
        None => table,
    };
    Ok(graph.reshape(taken, [batch, 1, length, half])?)
}
