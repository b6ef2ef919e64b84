//! Sequences, which are lists of the trace and not values of the program.

use nxla_expr::ExprId;
use nxla_expr::build::SliceStart;
use nxla_tensor::{DType, Scalar};

use super::{Operator, value_operator};
use crate::numbers::to_i64;
use crate::onnx::error::{Built, invalid, unsupported};
use crate::onnx::importer::TracedValue;
use crate::onnx::node::Call;

/// The number of parts of a tensor, beyond which a node is rejected: each part is a node of the graph.
const LONGEST: usize = 1 << 16;

/// The operators of this family. `Identity` is one of them because it accepts sequences.
pub(super) const OPERATORS: &[Operator] = &[
    value_operator("ConcatFromSequence", concatenate),
    value_operator("Identity", |_, values| match values {
        [Some(value)] => Ok(vec![value.clone()]),
        _ => invalid("input 0: must not be missing"),
    }),
    value_operator("SequenceAt", |call, values| {
        let sequence = sequence_input(values)?;
        let position = call.input(1)?;
        let position = call.integer(position, "position")?;
        let index = resolve(position, sequence.len())?;
        let element = sequence.get(index).copied();
        let why = || format!("position: must be below {}; got {position}", sequence.len());
        Ok(vec![TracedValue::Tensor(element.ok_or_else(why)?)])
    }),
    value_operator("SequenceConstruct", |call, _| to_sequence(call, call.inputs_from(0)?)),
    value_operator("SequenceEmpty", |call, _| to_sequence(call, Vec::new())),
    value_operator("SequenceErase", |call, values| {
        let mut elements = sequence_input(values)?.to_vec();
        let index = position(call, 1, elements.len())?;
        let index = index.unwrap_or_else(|| elements.len().saturating_sub(1));
        if index >= elements.len() {
            return invalid(format!("position: must be below {}; got {index}", elements.len()));
        }
        elements.remove(index);
        to_sequence(call, elements)
    }),
    value_operator("SequenceInsert", |call, values| {
        let mut elements = sequence_input(values)?.to_vec();
        let index = position(call, 2, elements.len())?.unwrap_or(elements.len());
        elements.insert(index, call.input(1)?);
        to_sequence(call, elements)
    }),
    value_operator("SequenceLength", |call, values| {
        let length = Scalar::Int(to_i64(sequence_input(values)?.len()));
        Ok(vec![TracedValue::Tensor(call.graph().scalar_constant(length, DType::S64)?)])
    }),
    value_operator("SplitToSequence", split),
];

/// Returns the first input, which must be a sequence.
fn sequence_input(values: &[Option<TracedValue>]) -> Built<&[ExprId]> {
    match values.first() {
        Some(Some(TracedValue::Sequence(elements))) => Ok(elements),
        _ => invalid("input 0: must be a sequence; got a tensor"),
    }
}

/// Returns a sequence of tensors, which must have one dtype.
fn to_sequence(call: &Call<'_, '_, '_>, elements: Vec<ExprId>) -> Built<Vec<TracedValue>> {
    let mut dtypes = elements.iter().map(|&element| call.dtype(element));
    if let Some(first) = dtypes.next()
        && let Some(other) = dtypes.find(|&dtype| dtype != first)
    {
        return invalid(format!(
            "sequence: must have elements of one dtype; got {first} and {other}"
        ));
    }
    Ok(vec![TracedValue::Sequence(elements.into())])
}

/// Returns a position, which may count from the end, as an index up to the length.
fn resolve(position: i64, length: usize) -> Built<usize> {
    let counted = if position < 0 { position.saturating_add(to_i64(length)) } else { position };
    match usize::try_from(counted) {
        Ok(index) if index <= length => Ok(index),
        _ => invalid(format!("position: must be from -{length} to {length}; got {position}")),
    }
}

/// Returns the position that an optional input holds.
fn position(call: &mut Call<'_, '_, '_>, index: usize, length: usize) -> Built<Option<usize>> {
    let Some(position) = call.optional(index) else { return Ok(None) };
    let position = call.integer(position, "position")?;
    resolve(position, length).map(Some)
}

/// Joins the elements along an axis, which may be a new one.
fn concatenate(
    call: &mut Call<'_, '_, '_>,
    values: &[Option<TracedValue>],
) -> Built<Vec<TracedValue>> {
    let elements = sequence_input(values)?;
    let axis = call.int("axis", 0)?;
    let is_new = call.flag("new_axis", false)?;
    let graph = call.graph();
    let joined = if is_new {
        graph.stack(elements, axis, None)?
    } else {
        graph.concatenate(elements, axis)?
    };
    Ok(vec![TracedValue::Tensor(joined)])
}

/// Counts the parts of a tensor as nodes of the model: a loop can split tensors many times.
fn count_parts(call: &mut Call<'_, '_, '_>, count: usize) -> Built<()> {
    if count > LONGEST {
        return unsupported(format!("split: must be at most {LONGEST} parts; got {count}"));
    }
    Ok(call.importer.count(&call.node.label(), count)?)
}

/// Splits a tensor into parts of the sizes of a list, of one size, or of one element. Parts of one
/// element may drop the axis; PyTorch also writes their size, which ONNX Runtime accepts.
fn split(call: &mut Call<'_, '_, '_>, _: &[Option<TracedValue>]) -> Built<Vec<TracedValue>> {
    let x = call.input(0)?;
    let axis = call.axis(call.int("axis", 0)?, call.rank(x))?;
    let (size, along) = (call.shape(x)[axis], to_i64(axis));
    let each = match call.optional(1) {
        None => Some(1),
        Some(split) if call.rank(split) == 0 => Some(call.integer(split, "split")?),
        Some(_) => None,
    };
    let drops_axis = each == Some(1) && !call.flag("keepdims", true)?;
    let parts = match each.map(usize::try_from) {
        Some(Ok(each)) if each > 0 => {
            let count = size.div_ceil(each);
            count_parts(call, count)?;
            (0..count).map(|part| each.min(size - part * each)).collect()
        }
        Some(_) => return invalid("split: must be positive"),
        None => {
            let sizes = call.input(1).and_then(|split| call.sizes(split, "split"))?;
            count_parts(call, sizes.len())?;
            sizes
        }
    };
    let total = parts.iter().fold(0_usize, |sum, &part| sum.saturating_add(part));
    if total != size {
        return invalid(format!("split: must add up to {size}; got {parts:?}"));
    }
    let mut elements = Vec::with_capacity(parts.len());
    let mut start = 0;
    for part in parts {
        let graph = call.graph();
        let mut element = graph.slice_along_axis(x, SliceStart::at(start), part, along, 1)?;
        if drops_axis {
            element = graph.squeeze(element, Some(&[along]))?;
        }
        elements.push(element);
        start += part;
    }
    to_sequence(call, elements)
}
