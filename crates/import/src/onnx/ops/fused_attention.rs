//! Attention of `com.microsoft` with a head for each query, and the part that its operators share.

use nxla_expr::ExprId;
use nxla_expr::build::{Formula, SliceStart};
use nxla_tensor::{DType, Shape};

use super::neural::split_heads;
use super::quantized::matmul_integer_to_float;
use super::{Operator, operator};
use crate::numbers::{to_f64, to_i64};
use crate::onnx::error::{Built, invalid, unsupported};
use crate::onnx::node::Call;

/// The operators of this family.
pub(super) const OPERATORS: &[Operator] = &[
    operator("com.microsoft:Attention", attention),
    operator("com.microsoft:MultiHeadAttention", multi_head_attention),
    operator("com.microsoft:QAttention", quantized_attention),
];

/// The operands of attention, `[batch, heads, length, size]`.
pub(super) struct Heads {
    pub(super) query: ExprId,
    pub(super) key: ExprId,
    pub(super) value: ExprId,
}

/// The changes of the products of queries and keys, in the order of their fields.
#[derive(Default)]
pub(super) struct Scores {
    /// The factor of the products; by default, the inverse root of the size of a head.
    pub(super) scale: Option<f64>,
    /// The limit of the magnitudes, if it is positive.
    pub(super) softcap: f64,
    /// A term that broadcasts.
    pub(super) bias: Option<ExprId>,
    /// Conditions of the pairs of queries and keys that count.
    pub(super) allowed: Vec<ExprId>,
    /// The score of an additional key without a value, one for each head.
    pub(super) sink: Option<ExprId>,
}

/// The results of attention.
pub(super) struct Attended {
    /// The means of values, `[batch, length, heads * size]`.
    pub(super) result: ExprId,
    /// The scores before the softmax.
    pub(super) scores: ExprId,
    /// The scores after the softmax.
    pub(super) weights: ExprId,
}

/// Returns the attribute `scale`. The number 0 stands for the default.
pub(super) fn scale_attribute(call: &Call<'_, '_, '_>) -> Built<Option<f64>> {
    Ok(call.maybe_float("scale")?.filter(|&scale| scale != 0.0))
}

/// Moves the heads before the length: from `[batch, length, heads, size]`, or back.
pub(super) fn swap_heads(call: &mut Call<'_, '_, '_>, x: ExprId) -> Built<ExprId> {
    Ok(call.graph().swap_axes(x, 1, 2)?)
}

/// Returns means of values with weights that are the softmax of the scores, in 32 bits or more.
pub(super) fn attend(
    call: &mut Call<'_, '_, '_>,
    heads: &Heads,
    scores: &Scores,
) -> Built<Attended> {
    let (dtype, shape) = (call.dtype(heads.query), call.shape(heads.query));
    let [_, count, length, size] = shape[..] else {
        return invalid(format!("query: must have 4 axes; got {}", call.ty(heads.query)));
    };
    let scale = scores.scale.unwrap_or_else(|| 1.0 / to_f64(size).sqrt());
    let scale = call.scalar(scale, heads.query)?;
    let graph = call.graph();
    let query = graph.multiply(heads.query, scale)?;
    let key = graph.swap_axes(heads.key, -1, -2)?;
    let products = graph.matmul(query, key)?;
    let formula = Formula::new(graph);
    let mut logits = formula.term(products).as_type(dtype.at_least_f32());
    if scores.softcap > 0.0 {
        logits = (logits / scores.softcap).tanh() * scores.softcap;
    }
    if let Some(bias) = scores.bias {
        logits = logits + formula.term(bias).as_type(logits.dtype());
    }
    for &allowed in &scores.allowed {
        logits = formula.term(allowed).select(logits, f64::NEG_INFINITY);
    }
    let logits = logits.id()?;
    let weights = match scores.sink {
        None => call.graph().softmax(logits, -1)?,
        Some(sink) => softmax_with_sink(call, logits, sink, count)?,
    };
    let graph = call.graph();
    let weights = graph.as_type(weights, dtype)?;
    let scores = graph.as_type(logits, dtype)?;
    let means = graph.matmul(weights, heads.value)?;
    let means = swap_heads(call, means)?;
    let [batch, _, _, size] = call.shape(means)[..] else {
        return Err("value: must have 4 axes".into());
    };
    let result = call.graph().reshape(means, [batch, length, count.saturating_mul(size)])?;
    Ok(Attended { result, scores, weights })
}

/// Returns the softmax along the last axis with an additional score for each head, whose weight is
/// dropped.
fn softmax_with_sink(
    call: &mut Call<'_, '_, '_>,
    logits: ExprId,
    sink: ExprId,
    heads: usize,
) -> Built<ExprId> {
    let (dtype, mut shape) = (call.dtype(logits), call.shape(logits));
    let keys = shape[3];
    shape.as_mut_slice()[3] = 1;
    let graph = call.graph();
    let sink = graph.as_type(sink, dtype)?;
    let sink =
        if graph.shape(sink).rank() == 0 { sink } else { graph.reshape(sink, [heads, 1, 1])? };
    let column = graph.broadcast(sink, shape, None)?;
    let all = graph.concatenate(&[logits, column], -1)?;
    let weights = graph.softmax(all, -1)?;
    Ok(graph.slice_along_axis(weights, SliceStart::at(0), keys, -1, 1)?)
}

/// Returns the indices along one axis of scores, whose other axes have size 1.
pub(super) fn indices(call: &mut Call<'_, '_, '_>, count: usize, axis: usize) -> Built<ExprId> {
    let mut shape = [1; 4];
    shape[axis] = count;
    Ok(call.graph().iota(shape, Some(to_i64(axis)), DType::S64)?)
}

/// Returns whether each key is at most as far as its query, which `past` keys precede.
fn causal_mask(
    call: &mut Call<'_, '_, '_>,
    [queries, keys]: [usize; 2],
    past: usize,
) -> Built<ExprId> {
    let (query, key) = (indices(call, queries, 2)?, indices(call, keys, 3)?);
    let formula = Formula::new(call.graph());
    let [query, key] = formula.terms([query, key]);
    Ok(key.less_equal(query + to_i64(past)).id()?)
}

/// Returns whether keys are not padding. A vector holds the number of keys of each sequence, or the
/// ends of all sequences and then their starts. Other masks have a positive number for each key, or
/// for each pair of a query and a key.
fn padding_mask(
    call: &mut Call<'_, '_, '_>,
    mask: ExprId,
    batch: usize,
    [queries, keys]: [usize; 2],
) -> Built<ExprId> {
    let shape = call.shape(mask);
    let key = indices(call, keys, 3)?;
    let graph = call.graph();
    let aligned = match shape[..] {
        [count] if count == batch || count == batch.saturating_mul(2) => {
            let parts = count / batch.max(1);
            let mask = graph.as_type(mask, DType::S64)?;
            let limits = graph.reshape(mask, [parts, batch, 1, 1, 1])?;
            let end = take_part(call, limits, (0, parts), 0)?;
            let mut inside = call.graph().less(key, end)?;
            if count != batch {
                let start = take_part(call, limits, (0, parts), 1)?;
                let graph = call.graph();
                let begins = graph.greater_equal(key, start)?;
                inside = graph.logical_and(inside, begins)?;
            }
            return Ok(inside);
        }
        [own, size] if own == batch && size == keys => [batch, 1, 1, keys],
        [own, rows, size] if own == batch && rows == queries && size == keys => {
            [batch, 1, queries, keys]
        }
        // The rows and columns of all positions.
        [own, 1, rows, columns] if own == batch && rows >= keys && columns >= keys => {
            let first = SliceStart::at(keys.saturating_sub(queries));
            let rows = graph.slice_along_axis(mask, first, queries, 2, 1)?;
            let part = graph.slice_along_axis(rows, SliceStart::at(0), keys, 3, 1)?;
            let zero = graph.zero_like(part)?;
            return Ok(graph.greater(part, zero)?);
        }
        _ => {
            let found = call.ty(mask);
            return unsupported(format!(
                "mask: must have an entry for each sequence, key, or pair of {queries} queries and \
                 {keys} keys; got {found}"
            ));
        }
    };
    let mask = graph.reshape(mask, aligned)?;
    let zero = graph.zero_like(mask)?;
    Ok(graph.greater(mask, zero)?)
}

/// Returns the sum of the bias of a node and of the number `mask_filter_value` for padding.
fn padding_bias(
    call: &mut Call<'_, '_, '_>,
    [bias, mask]: [Option<ExprId>; 2],
    heads: &Heads,
) -> Built<Option<ExprId>> {
    let Some(mask) = mask else { return Ok(bias) };
    let (batch, lengths) = (call.shape(heads.query)[0], lengths(call, heads));
    let inside = padding_mask(call, mask, batch, lengths)?;
    let filter = call.float("mask_filter_value", -10000.0)?;
    let filter = call.scalar_of(filter, call.dtype(heads.query).at_least_f32())?;
    let formula = Formula::new(call.graph());
    let padding = formula.term(inside).select(0.0, formula.term(filter));
    let total = match bias {
        Some(bias) => formula.term(bias).as_type(padding.dtype()) + padding,
        None => padding,
    };
    Ok(Some(total.id()?))
}

/// Returns the numbers of queries and keys.
fn lengths(call: &Call<'_, '_, '_>, heads: &Heads) -> [usize; 2] {
    [call.shape(heads.query)[2], call.shape(heads.key)[2]]
}

/// Returns one of `count` parts that an axis holds, without the axis.
fn take_part(
    call: &mut Call<'_, '_, '_>,
    x: ExprId,
    (axis, count): (usize, usize),
    index: usize,
) -> Built<ExprId> {
    if call.shape(x).get(axis) != Some(&count) {
        let found = call.ty(x);
        return invalid(format!("input: must have {count} parts along axis {axis}; got {found}"));
    }
    let (axis, graph) = (to_i64(axis), call.graph());
    let one = graph.slice_along_axis(x, SliceStart::at(index), 1, axis, 1)?;
    Ok(graph.squeeze(one, Some(&[axis]))?)
}

/// Adds a part of a bias, and splits the last axis into heads unless there is an axis of heads:
/// `[batch, heads, length, size]`.
fn add_and_split(
    call: &mut Call<'_, '_, '_>,
    mut x: ExprId,
    heads: usize,
    bias: Option<(ExprId, usize)>,
) -> Built<ExprId> {
    let shape = call.shape(x);
    if let Some((bias, first)) = bias {
        let features: Shape = shape.iter().skip(2).copied().collect();
        let count = features.size();
        if call.shape(bias).size() < first.saturating_add(count) {
            return invalid(format!(
                "bias: must have an entry for each feature; got {}",
                call.ty(bias)
            ));
        }
        let graph = call.graph();
        let bias = graph.slice_along_axis(bias, SliceStart::at(first), count, 0, 1)?;
        let bias = graph.reshape(bias, features)?;
        x = graph.add(x, bias)?;
    }
    match shape[..] {
        [_, _, own, _] if own == heads => swap_heads(call, x),
        _ => split_heads(call, x, heads, "num_heads"),
    }
}

/// Reads queries, keys and values. Queries may contain the keys and values, and keys the values, along
/// an axis after the heads. Keys and values with four axes have their heads before their length.
fn read_heads(call: &mut Call<'_, '_, '_>, count: usize) -> Built<Heads> {
    let (query, bias) = (call.input(0)?, call.optional(3));
    let (mut key, mut value) = (call.optional(1), call.optional(2));
    let is_cached = key.is_some_and(|key| call.rank(key) == 4);
    let query = if call.rank(query) == 5 {
        let parts = (3, 3);
        (key, value) =
            (Some(take_part(call, query, parts, 1)?), Some(take_part(call, query, parts, 2)?));
        take_part(call, query, parts, 0)?
    } else {
        query
    };
    if let Some(packed) = key.filter(|&key| call.rank(key) == 5) {
        let parts = (3, 2);
        (key, value) =
            (Some(take_part(call, packed, parts, 0)?), Some(take_part(call, packed, parts, 1)?));
    }
    let (Some(mut key), Some(mut value)) = (key, value) else {
        return invalid("key, value: must not be missing");
    };
    let query = add_and_split(call, query, count, bias.map(|bias| (bias, 0)))?;
    if !is_cached {
        let size = count.saturating_mul(call.shape(query)[3]);
        key = add_and_split(call, key, count, bias.map(|bias| (bias, size)))?;
        value = add_and_split(call, value, count, bias.map(|bias| (bias, size.saturating_mul(2))))?;
    }
    Ok(Heads { query, key, value })
}

fn multi_head_attention(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    for (index, name) in [(8, "past_sequence_length"), (9, "cache_indirection")] {
        if call.optional(index).is_some() {
            return unsupported(format!("{name}: must be missing, since buffers are not shared"));
        }
    }
    let count = call.positive("num_heads", 0)?;
    let mut heads = read_heads(call, count)?;
    let mut past = 0;
    if let Some([key, value]) = call.optional_pair(6, "past_key, past_value")? {
        past = call.shape(key).get(2).copied().unwrap_or(0);
        heads.key = call.graph().concatenate(&[key, heads.key], 2)?;
        heads.value = call.graph().concatenate(&[value, heads.value], 2)?;
    }
    let inputs = [call.optional(5), call.optional(4)];
    let attended = attend_masked(call, &heads, inputs, past)?;
    Ok(vec![attended.result, heads.key, heads.value, attended.scores])
}

/// Attends with a bias, a mask of padding, and the causal mask that `unidirectional` selects.
fn attend_masked(
    call: &mut Call<'_, '_, '_>,
    heads: &Heads,
    bias_and_mask: [Option<ExprId>; 2],
    past: usize,
) -> Built<Attended> {
    let bias = padding_bias(call, bias_and_mask, heads)?;
    let mut allowed = Vec::new();
    if call.flag("unidirectional", false)? {
        let lengths = lengths(call, heads);
        allowed.push(causal_mask(call, lengths, past)?);
    }
    let scale = scale_attribute(call)?;
    attend(call, heads, &Scores { scale, bias, allowed, ..Scores::default() })
}

/// Projects the input to queries, keys and values, which the weights hold side by side.
fn attention(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let [x, weights] = call.inputs()?;
    let mut projected = call.graph().matmul(x, weights)?;
    if let Some(bias) = call.optional(2) {
        projected = call.graph().add(projected, bias)?;
    }
    if call.optional(6).is_some() {
        return unsupported("past_sequence_length: must be missing, since buffers are not shared");
    }
    let sizes = call.attribute_sizes("qkv_hidden_sizes")?;
    let inputs = [call.optional(5), call.optional(3)];
    attend_projected(call, projected, sizes, inputs, call.optional(4))
}

/// Projects integers exactly.
fn quantized_attention(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let [x, weights, bias, x_scale, weight_scale] = call.inputs()?;
    let x = (x, x_scale, call.optional(6));
    let weights = (weights, weight_scale, call.optional(7));
    let projected = matmul_integer_to_float(call, x, weights, Some(bias))?;
    attend_projected(call, projected, None, [None, call.optional(5)], call.optional(8))
}

/// Attends with projections side by side, `[batch, length, sizes]`. `past` stacks the keys and values
/// of earlier calls.
fn attend_projected(
    call: &mut Call<'_, '_, '_>,
    projected: ExprId,
    sizes: Option<Vec<usize>>,
    bias_and_mask: [Option<ExprId>; 2],
    past: Option<ExprId>,
) -> Built<Vec<ExprId>> {
    for name in ["do_rotary", "past_present_share_buffer"] {
        if call.flag(name, false)? {
            return unsupported(format!("{name}: must be 0; got 1"));
        }
    }
    let count = call.positive("num_heads", 0)?;
    let all = call.shape(projected).last().copied().unwrap_or(0);
    let sizes = sizes.unwrap_or_else(|| vec![all / 3; 3]);
    let total = sizes.iter().fold(0_usize, |sum, &size| sum.saturating_add(size));
    if sizes.len() != 3 || total != all {
        return invalid(format!(
            "qkv_hidden_sizes: must be three sizes of sum {all}; got {sizes:?}"
        ));
    }
    let mut parts = Vec::with_capacity(3);
    let mut start = 0;
    for size in sizes {
        let one = call.graph().slice_along_axis(projected, SliceStart::at(start), size, -1, 1)?;
        parts.push(split_heads(call, one, count, "num_heads")?);
        start += size;
    }
    let mut heads = Heads { query: parts[0], key: parts[1], value: parts[2] };
    let mut length = 0;
    if let Some(past) = past {
        length = call.shape(past).get(3).copied().unwrap_or(0);
        for (index, now) in [&mut heads.key, &mut heads.value].into_iter().enumerate() {
            let past = take_part(call, past, (0, 2), index)?;
            *now = call.graph().concatenate(&[past, *now], 2)?;
        }
    }
    let attended = attend_masked(call, &heads, bias_and_mask, length)?;
    // Keys and values of different sizes cannot be stacked, and such a node returns no state.
    let mut results = vec![attended.result];
    if call.has_output(1) {
        results.push(call.graph().stack(&[heads.key, heads.value], 0, None)?);
    }
    Ok(results)
}
