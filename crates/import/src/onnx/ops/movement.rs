//! Operators that move elements without computing.

use nxla_expr::ExprId;
use nxla_expr::build::SliceStart;
use nxla_tensor::Shape;

use super::{Operator, RANDOM, operator};
use crate::numbers::to_i64;
use crate::onnx::error::{Built, invalid, unsupported};
use crate::onnx::node::{Call, to_sizes};

/// The operators of this family.
pub(super) const OPERATORS: &[Operator] = &[
    operator("Concat", |call| {
        let (parts, axis) = (call.inputs_from(0)?, call.int("axis", 1)?);
        Ok(vec![call.graph().concatenate(&parts, axis)?])
    }),
    operator("DepthToSpace", depth_to_space),
    operator("Dropout", dropout),
    operator("Expand", expand),
    operator("Flatten", flatten),
    operator("Reshape", reshape),
    operator("ReverseSequence", reverse_sequence),
    operator("SpaceToDepth", space_to_depth),
    operator("Split", split),
    operator("Squeeze", squeeze),
    operator("Tile", tile),
    operator("Transpose", transpose),
    operator("Trilu", trilu),
    operator("Unsqueeze", unsqueeze),
];

fn reshape(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let x = call.input(0)?;
    let Some(sizes) = call.int_list(1, "shape")? else {
        return invalid("shape: must not be missing");
    };
    let (own, keeps_zero) = (call.shape(x), call.flag("allowzero", false)?);
    let mut resolved = Vec::with_capacity(sizes.len());
    for (axis, &size) in sizes.iter().enumerate() {
        resolved.push(match size {
            -1 => None,
            0 if !keeps_zero => match own.get(axis) {
                Some(&size) => Some(size),
                None => {
                    let why = format!("entry {axis} copies a size that {} lacks", call.ty(x));
                    return invalid(format!("shape: {why}"));
                }
            },
            size => Some(to_sizes(&[size], "shape")?[0]),
        });
    }
    Ok(vec![call.graph().reshape_auto(x, &resolved)?])
}

fn transpose(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let x = call.input(0)?;
    let axes = call.ints("perm")?;
    Ok(vec![call.graph().transpose(x, axes.as_deref())?])
}

fn squeeze(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let x = call.input(0)?;
    let axes = call.int_list(1, "axes")?;
    Ok(vec![call.graph().squeeze(x, axes.as_deref())?])
}

fn unsqueeze(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let x = call.input(0)?;
    let axes = call.int_list(1, "axes")?.unwrap_or_default();
    Ok(vec![call.graph().new_axes(x, &axes)?])
}

/// Flattens to a matrix whose rows have the axes before `axis`.
fn flatten(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let x = call.input(0)?;
    let (shape, axis) = (call.shape(x), call.int("axis", 1)?);
    let axis = match usize::try_from(axis) {
        Ok(axis) if axis == shape.rank() => axis,
        _ => call.axis(axis, shape.rank())?,
    };
    let size = |sizes: &[usize]| Shape::from(sizes).size();
    Ok(vec![call.graph().reshape(x, [size(&shape[..axis]), size(&shape[axis..])])?])
}

/// Broadcasts in both directions: a size of 1 keeps the size of the operand.
fn expand(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let [x, shape] = call.inputs()?;
    let sizes = call.sizes(shape, "shape")?;
    let common = nxla_tensor::broadcast_shapes(&call.shape(x), &sizes);
    let common = common.map_err(|error| format!("shape: {error}"))?;
    Ok(vec![call.broadcast(x, &common)?])
}

fn tile(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let [x, repeats] = call.inputs()?;
    let repeats = call.sizes(repeats, "repeats")?;
    if repeats.len() != call.rank(x) {
        let found = repeats.len();
        return invalid(format!("repeats: must have one entry for each axis; got {found}"));
    }
    Ok(vec![call.graph().tile(x, &repeats)?])
}

fn split(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let x = call.input(0)?;
    let axis = call.axis(call.int("axis", 0)?, call.rank(x))?;
    let size = call.shape(x)[axis];
    let parts = match call.int_list(1, "split")? {
        Some(parts) => to_sizes(&parts, "split")?,
        None => {
            let outputs = to_i64(call.node.outputs.len());
            let count = to_sizes(&[call.int("num_outputs", outputs)?], "num_outputs")?[0];
            if count == 0 || count > call.node.outputs.len() {
                return invalid(format!("num_outputs: must be the number of outputs; got {count}"));
            }
            let each = size.div_ceil(count);
            (0..count).map(|part| each.min(size.saturating_sub(part * each))).collect()
        }
    };
    let total = parts.iter().fold(0_usize, |sum, &part| sum.saturating_add(part));
    if total != size {
        return invalid(format!("split: must add up to {size}; got {parts:?}"));
    }
    let along = to_i64(axis);
    let mut start = 0;
    let mut results = Vec::with_capacity(parts.len());
    for part in parts {
        results.push(call.graph().slice_along_axis(x, SliceStart::at(start), part, along, 1)?);
        start += part;
    }
    Ok(results)
}

/// Rearranges through a shape with more axes.
fn rearrange(
    call: &mut Call<'_, '_, '_>,
    x: ExprId,
    inner: &[usize],
    order: &[i64],
    result: &[usize],
) -> Built<Vec<ExprId>> {
    let graph = call.graph();
    let split = graph.reshape(x, Shape::from(inner))?;
    let moved = graph.transpose(split, Some(order))?;
    Ok(vec![graph.reshape(moved, Shape::from(result))?])
}

/// Returns the sizes of an image and the size of a block, which must be positive.
fn image_and_block(call: &Call<'_, '_, '_>, x: ExprId) -> Built<([usize; 4], usize)> {
    let shape = call.shape(x);
    let [n, c, h, w] = shape[..] else {
        return invalid(format!("input: must have 4 axes; got {}", call.ty(x)));
    };
    match usize::try_from(call.int("blocksize", 0)?) {
        Ok(block) if block > 0 && block < 1 << 16 => Ok(([n, c, h, w], block)),
        _ => invalid("blocksize: must be from 1 to 65535"),
    }
}

fn depth_to_space(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let x = call.input(0)?;
    let ([n, c, h, w], b) = image_and_block(call, x)?;
    if !c.is_multiple_of(b * b) {
        let found = call.ty(x);
        return invalid(format!(
            "blocksize: must have a square that divides the channels; got {b} for {found}"
        ));
    }
    let depth = c / (b * b);
    let result = [n, depth, h.saturating_mul(b), w.saturating_mul(b)];
    match call.text("mode", "DCR")?.as_str() {
        "DCR" => rearrange(call, x, &[n, b, b, depth, h, w], &[0, 3, 4, 1, 5, 2], &result),
        "CRD" => rearrange(call, x, &[n, depth, b, b, h, w], &[0, 1, 4, 2, 5, 3], &result),
        other => invalid(format!("mode: must be DCR or CRD; got {other:?}")),
    }
}

fn space_to_depth(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let x = call.input(0)?;
    let ([n, c, h, w], b) = image_and_block(call, x)?;
    if !h.is_multiple_of(b) || !w.is_multiple_of(b) {
        let found = call.ty(x);
        return invalid(format!("blocksize: must divide height and width; got {b} for {found}"));
    }
    let inner = [n, c, h / b, b, w / b, b];
    let order = match call.text("mode", "DCR")?.as_str() {
        "DCR" => [0, 3, 5, 1, 2, 4],
        "CRD" => [0, 1, 3, 5, 2, 4],
        other => return invalid(format!("mode: must be DCR or CRD; got {other:?}")),
    };
    rearrange(call, x, &inner, &order, &[n, c.saturating_mul(b * b), h / b, w / b])
}

/// Inference: the values are unchanged, and the mask is true.
fn dropout(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let x = call.input(0)?;
    if let Some(training) = call.optional(2) {
        let ratio = match call.optional(1) {
            Some(ratio) => call.numbers(ratio, "ratio")?,
            None => vec![0.5],
        };
        let training = call.constant(training, "training_mode")?;
        let is_training = (0..training.size()).any(|index| !training.get(index).is_zero());
        if is_training && ratio.iter().any(|&ratio| ratio != 0.0) {
            return unsupported(format!("training_mode: must be false: {RANDOM}"));
        }
    }
    let shape = call.shape(x);
    // Until version 9, the mask has the dtype of the input.
    let dtype = if call.version < 10 { call.dtype(x) } else { nxla_tensor::DType::Pred };
    let yes = call.graph().scalar_constant(nxla_tensor::Scalar::one(dtype), dtype)?;
    let mask = call.broadcast(yes, &shape)?;
    Ok(vec![x, mask])
}

fn trilu(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let x = call.input(0)?;
    let offset = match call.optional(1) {
        Some(k) => call.integer(k, "k")?,
        None => 0,
    };
    let is_upper = call.flag("upper", true)?;
    let graph = call.graph();
    Ok(vec![if is_upper { graph.triu(x, offset)? } else { graph.tril(x, offset)? }])
}

/// Reverses the first elements along the time axis, with a length for each entry of the batch.
fn reverse_sequence(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let [x, lengths] = call.inputs()?;
    let (batch, time) = (call.int("batch_axis", 1)?, call.int("time_axis", 0)?);
    let shape = call.shape(x);
    let places = reversed_places(call, lengths, &shape, batch, time)?;
    Ok(vec![call.graph().take_along_axis(x, places, time)?])
}

/// Returns the source of each element of a tensor whose sequences are reversed.
pub(super) fn reversed_places(
    call: &mut Call<'_, '_, '_>,
    lengths: ExprId,
    shape: &[usize],
    batch: i64,
    time: i64,
) -> Built<ExprId> {
    let at = call.axis(batch, shape.len())?;
    let dtype = nxla_tensor::DType::S64;
    let one = call.scalar_of(1.0, dtype)?;
    let graph = call.graph();
    let lengths = graph.as_type(lengths, dtype)?;
    let mut aligned = vec![1; shape.len()];
    aligned[at] = shape[at];
    let lengths = graph.reshape(lengths, aligned)?;
    let step = graph.iota(Shape::from(shape), Some(time), dtype)?;
    let last = graph.subtract(lengths, one)?;
    let back = graph.subtract(last, step)?;
    let is_inside = graph.less(step, lengths)?;
    Ok(graph.select(is_inside, back, step)?)
}
