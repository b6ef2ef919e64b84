//! Normalization and attention.

use nxla_expr::ExprId;
use nxla_expr::build::{Formula, Norm};
use nxla_tensor::{DType, Scalar};

use super::activation::softmax_with_replacement;
use super::{Operator, operator};
use crate::numbers::{to_f64, to_i64};
use crate::onnx::error::{Built, invalid, unsupported};
use crate::onnx::node::Call;

/// The operators of this family.
pub(super) const OPERATORS: &[Operator] = &[
    operator("Attention", attention),
    operator("BatchNormalization", batch_norm),
    operator("GroupNormalization", group_norm),
    operator("InstanceNormalization", instance_norm),
    operator("LayerNormalization", |call| {
        let (x, scale) = (call.input(0)?, call.optional(1));
        let bias = call.optional(2);
        layer_norm(call, x, scale, bias)
    }),
    operator("LpNormalization", lp_norm),
    operator("MeanVarianceNormalization", mean_variance_norm),
    operator("RMSNormalization", rms_norm),
    operator("SimplifiedLayerNormalization", rms_norm),
    operator("com.microsoft:SimplifiedLayerNormalization", rms_norm),
    operator("com.microsoft:SkipLayerNormalization", |call| skip_norm(call, false)),
    operator("com.microsoft:SkipSimplifiedLayerNormalization", |call| skip_norm(call, true)),
];

/// Normalizes channels. In training (`training_mode`, or further outputs before version 14), the
/// statistics of the batch are used and returned.
fn batch_norm(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let [x, scale, bias, mean, variance] = call.inputs()?;
    let (epsilon, momentum) = (call.float("epsilon", 1e-5)?, call.float("momentum", 0.9)?);
    let (affine, is_old) = ([Some(scale), Some(bias)], call.version < 14);
    let is_training = if is_old { call.has_output(1) } else { call.flag("training_mode", false)? };
    let graph = call.graph();
    if !is_training {
        return Ok(vec![graph.batch_norm(x, [mean, variance], affine, 1, epsilon)?]);
    }
    let mut train = |momentum| {
        let running = nxla_expr::build::RunningNorm { axis: 1, epsilon, momentum };
        graph.batch_norm_train(x, [mean, variance], affine, running)
    };
    let (y, new_mean, new_variance) = train(momentum)?;
    let mut outputs = vec![y, new_mean, new_variance];
    if is_old {
        let (_, batch_mean, batch_variance) = train(0.0)?;
        outputs.extend([batch_mean, batch_variance]);
    }
    Ok(outputs)
}

fn instance_norm(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let [x, scale, bias] = call.inputs()?;
    let epsilon = call.float("epsilon", 1e-5)?;
    let Some(&channels) = call.shape(x).get(1) else {
        return invalid(format!("input: must have channels; got {}", call.ty(x)));
    };
    let affine = [Some(scale), Some(bias)];
    Ok(vec![call.graph().group_norm(x, channels, affine, 1, epsilon)?])
}

/// Before operator set 21, scale and bias have an entry for each group.
fn group_norm(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let [x, mut scale, mut bias] = call.inputs()?;
    let (epsilon, groups) = (call.float("epsilon", 1e-5)?, call.int("num_groups", 0)?);
    let groups = usize::try_from(groups).unwrap_or(0);
    let channels = call.shape(x).get(1).copied().unwrap_or(0);
    if groups == 0 || !channels.is_multiple_of(groups) {
        return invalid(format!("num_groups: must divide {channels} channels; got {groups}"));
    }
    for parameter in [&mut scale, &mut bias] {
        if call.version < 21 && call.shape(*parameter)[..] == [groups] {
            *parameter = call.graph().repeat(*parameter, &[channels / groups], 0)?;
        }
    }
    let affine = [Some(scale), Some(bias)];
    Ok(vec![call.graph().group_norm(x, groups, affine, 1, epsilon)?])
}

/// Returns the axes from `axis` on.
fn last_axes(call: &Call<'_, '_, '_>, x: ExprId) -> Built<Vec<i64>> {
    let rank = call.rank(x);
    let axis = call.axis(call.int("axis", -1)?, rank)?;
    Ok((0..).take(rank).skip(axis).collect())
}

/// Multiplies by a scale and adds a bias, which broadcast.
pub(super) fn affine(
    call: &mut Call<'_, '_, '_>,
    mut x: ExprId,
    scale: Option<ExprId>,
    bias: Option<ExprId>,
) -> Built<ExprId> {
    if let Some(scale) = scale {
        x = call.graph().multiply(x, scale)?;
    }
    if let Some(bias) = bias {
        x = call.graph().add(x, bias)?;
    }
    Ok(x)
}

/// Returns the result, the mean and the inverse standard deviation.
fn layer_norm(
    call: &mut Call<'_, '_, '_>,
    x: ExprId,
    scale: Option<ExprId>,
    bias: Option<ExprId>,
) -> Built<Vec<ExprId>> {
    let axes = last_axes(call, x)?;
    let epsilon = call.float("epsilon", 1e-5)?;
    let result = call.graph().layer_norm(x, [None, None], &axes, epsilon)?;
    let mut results = vec![affine(call, result, scale, bias)?];
    if call.node.output_count() > 1 {
        let wide = call.dtype(x).at_least_f32();
        let epsilon = call.scalar_of(epsilon, wide)?;
        let graph = call.graph();
        let x = graph.as_type(x, wide)?;
        results.push(graph.mean(x, Some(&axes), true)?);
        let variance = graph.variance(x, Some(&axes), true, 0.0)?;
        let raised = graph.add(variance, epsilon)?;
        results.push(graph.rsqrt(raised)?);
    }
    Ok(results)
}

/// The result has the dtype of the scale. The second result is the inverse root of the mean square.
fn rms_norm(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let (x, scale) = (call.input(0)?, call.optional(1));
    let axes = last_axes(call, x)?;
    let epsilon = call.float("epsilon", 1e-5)?;
    let dtype = call.dtype(scale.unwrap_or(x));
    let normal = call.graph().rms_norm(x, None, &axes, epsilon)?;
    let result = affine(call, normal, scale, None)?;
    let mut results = vec![call.graph().as_type(result, dtype)?];
    if call.has_output(1) {
        let formula = Formula::new(call.graph());
        let x = formula.term(x);
        let wide = x.as_type(x.dtype().at_least_f32());
        let mean = (wide * wide).apply(|graph, square| graph.mean(square, Some(&axes), true));
        results.push((mean + epsilon).rsqrt().id()?);
    }
    Ok(results)
}

/// Adds a residual connection and an optional bias, then normalizes. The fourth output is the sum.
fn skip_norm(call: &mut Call<'_, '_, '_>, is_simple: bool) -> Built<Vec<ExprId>> {
    let [x, skip, scale] = call.inputs()?;
    let (shift, bias) =
        if is_simple { (None, call.optional(3)) } else { (call.optional(3), call.optional(4)) };
    let epsilon = call.float("epsilon", 1e-12)?;
    let mut sum = call.graph().add(x, skip)?;
    if let Some(bias) = bias {
        sum = call.graph().add(sum, bias)?;
    }
    let graph = call.graph();
    let normal = if is_simple {
        graph.rms_norm(sum, None, &[-1], epsilon)?
    } else {
        graph.layer_norm(sum, [None, None], &[-1], epsilon)?
    };
    let result = affine(call, normal, Some(scale), shift)?;
    if call.has_output(1) || call.has_output(2) {
        return unsupported("mean, inv_std_var: are outputs for training only");
    }
    Ok(vec![result, result, result, sum])
}

fn lp_norm(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let x = call.input(0)?;
    let (axis, p) = (call.int("axis", -1)?, call.int("p", 2)?);
    let norm = match p {
        1 => Norm::Power(1.0),
        2 => Norm::Euclid,
        other => return invalid(format!("p: must be 1 or 2; got {other}")),
    };
    let (zero, one) = (call.scalar(0.0, x)?, call.scalar(1.0, x)?);
    let graph = call.graph();
    let norm = graph.norm(x, norm, Some(&[axis]), true)?;
    let is_zero = graph.equal(norm, zero)?;
    let divisor = graph.select(is_zero, one, norm)?;
    Ok(vec![graph.divide(x, divisor)?])
}

fn mean_variance_norm(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let x = call.input(0)?;
    let axes = call.ints("axes")?.unwrap_or_else(|| vec![0, 2, 3]);
    let normal = call.in_wide_float(x, |call, x| {
        let epsilon = call.scalar(1e-9, x)?;
        let graph = call.graph();
        let mean = graph.mean(x, Some(&axes), true)?;
        let distance = graph.subtract(x, mean)?;
        let square = graph.multiply(distance, distance)?;
        let variance = graph.mean(square, Some(&axes), true)?;
        let deviation = graph.sqrt(variance)?;
        let divisor = graph.add(deviation, epsilon)?;
        Ok(graph.divide(distance, divisor)?)
    })?;
    Ok(vec![normal])
}

/// Splits the last axis into heads: from `[batch, length, heads * size]` to
/// `[batch, heads, length, size]`.
pub(super) fn split_heads(
    call: &mut Call<'_, '_, '_>,
    x: ExprId,
    heads: usize,
    name: &str,
) -> Built<ExprId> {
    match call.shape(x)[..] {
        [batch, length, all] if heads != 0 && all.is_multiple_of(heads) => {
            let graph = call.graph();
            let split = graph.reshape(x, [batch, length, heads, all / heads])?;
            Ok(graph.swap_axes(split, 1, 2)?)
        }
        _ => {
            let found = call.ty(x);
            invalid(format!("{name}: must divide the last of 3 axes; got {heads} for {found}"))
        }
    }
}

/// Splits the last axis into the heads that an attribute counts, unless there is an axis of heads.
pub(super) fn heads_of(call: &mut Call<'_, '_, '_>, x: ExprId, name: &str) -> Built<ExprId> {
    if call.rank(x) == 4 {
        return Ok(x);
    }
    let heads = usize::try_from(call.int(name, 0)?).unwrap_or(0);
    split_heads(call, x, heads, name)
}

/// Repeats each head so that keys have as many heads as queries.
pub(super) fn repeat_heads(call: &mut Call<'_, '_, '_>, x: ExprId, heads: usize) -> Built<ExprId> {
    let [batch, own, length, size] = call.shape(x)[..] else {
        return invalid(format!("K, V: must have 4 axes; got {}", call.ty(x)));
    };
    if own == heads {
        return Ok(x);
    }
    if own == 0 || !heads.is_multiple_of(own) {
        return invalid(format!("kv_num_heads: must divide {heads}; got {own}"));
    }
    let graph = call.graph();
    let one = graph.reshape(x, [batch, own, 1, length, size])?;
    let repeated = graph.broadcast(one, [batch, own, heads / own, length, size], None)?;
    Ok(graph.reshape(repeated, [batch, heads, length, size])?)
}

/// The operands of attention, with a head axis.
struct AttentionOperands {
    query: ExprId,
    key: ExprId,
    value: ExprId,
    /// The keys before the first query: a number, or one for each entry of the batch.
    offset: ExprId,
}

fn attention(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let [query, key, value] = call.inputs()?;
    let is_flat = call.rank(query) == 3;
    let query = heads_of(call, query, "q_num_heads")?;
    let mut key = heads_of(call, key, "kv_num_heads")?;
    let mut value = heads_of(call, value, "kv_num_heads")?;
    let [_, heads, length, size] = call.shape(query)[..] else {
        return invalid(format!("Q: must have 3 or 4 axes; got {}", call.ty(query)));
    };
    let mut past = 0;
    if let Some([past_key, past_value]) = call.optional_pair(4, "past_key, past_value")? {
        past = call.shape(past_key).get(2).copied().unwrap_or(0);
        key = call.graph().concatenate(&[past_key, key], 2)?;
        value = call.graph().concatenate(&[past_value, value], 2)?;
    }
    let present = [key, value];
    let offset = match call.optional(6) {
        Some(valid) => {
            let queries = call.scalar_of(to_f64(length), DType::S64)?;
            let graph = call.graph();
            let valid = graph.as_type(valid, DType::S64)?;
            let offset = graph.subtract(valid, queries)?;
            let batch = graph.shape(offset).size();
            graph.reshape(offset, [batch, 1, 1, 1])?
        }
        None => call.scalar_of(to_f64(past), DType::S64)?,
    };
    let key = repeat_heads(call, key, heads)?;
    let value = repeat_heads(call, value, heads)?;
    let attended = AttentionOperands { query, key, value, offset };
    let bias = attention_bias(call, &attended)?;
    let scale = call.float("scale", 1.0 / to_f64(size).sqrt())?;
    let (mut result, weights) = weighted_values(call, &attended, bias, scale)?;
    if is_flat {
        let [batch, heads, length, size] = call.shape(result)[..] else {
            return invalid(format!("V: must have 4 axes; got {}", call.ty(result)));
        };
        let graph = call.graph();
        result = graph.transpose(result, Some(&[0, 2, 1, 3]))?;
        result = graph.reshape(result, [batch, length, heads.saturating_mul(size)])?;
    }
    Ok(vec![result, present[0], present[1], weights])
}

/// Returns the sum of the mask and of negative infinity where a query may not read a key.
fn attention_bias(call: &mut Call<'_, '_, '_>, at: &AttentionOperands) -> Built<Option<ExprId>> {
    let dtype = call.dtype(at.query);
    let (queries, keys) = (call.shape(at.query)[2], call.shape(at.key)[2]);
    let never = call.scalar_of(f64::NEG_INFINITY, dtype)?;
    let zero = call.scalar_of(0.0, dtype)?;
    let mut bias = None;
    if let Some(mut mask) = call.optional(3) {
        if call.dtype(mask).is_pred() {
            mask = call.graph().select(mask, zero, never)?;
        }
        let shape = call.shape(mask);
        let missing = keys.saturating_sub(shape.last().copied().unwrap_or(keys));
        if missing > 0 {
            mask = call.pad_axis(mask, never, shape.rank() - 1, (0, to_i64(missing)))?;
        }
        bias = Some(mask);
    }
    let graph = call.graph();
    let query = graph.iota([queries, keys], Some(0), DType::S64)?;
    let key = graph.iota([queries, keys], Some(1), DType::S64)?;
    let place = graph.add(query, at.offset)?;
    let mut allowed = Vec::new();
    if call.flag("is_causal", false)? {
        allowed.push(call.graph().less_equal(key, place)?);
    }
    for (name, is_left) in [("left_window_size", true), ("right_window_size", false)] {
        let window = call.int(name, -1)?;
        if window < 0 {
            continue;
        }
        let graph = call.graph();
        let window = graph.scalar_constant(Scalar::Int(window), DType::S64)?;
        let distance =
            if is_left { graph.subtract(place, key)? } else { graph.subtract(key, place)? };
        allowed.push(graph.less_equal(distance, window)?);
    }
    if let Some(valid) = call.optional(6) {
        let graph = call.graph();
        let valid = graph.as_type(valid, DType::S64)?;
        let batch = graph.shape(valid).size();
        let valid = graph.reshape(valid, [batch, 1, 1, 1])?;
        allowed.push(graph.less(key, valid)?);
    }
    for allowed in allowed {
        let graph = call.graph();
        let masked = graph.select(allowed, zero, never)?;
        bias = Some(match bias {
            Some(bias) => graph.add(bias, masked)?,
            None => masked,
        });
    }
    Ok(bias)
}

/// Returns the mean of the values in the dtype of the query, and the matrix that
/// `qk_matmul_output_mode` selects.
fn weighted_values(
    call: &mut Call<'_, '_, '_>,
    at: &AttentionOperands,
    bias: Option<ExprId>,
    scale: f64,
) -> Built<(ExprId, ExprId)> {
    let (dtype, softcap) = (call.dtype(at.query), call.float("softcap", 0.0)?);
    let mode = call.int("qk_matmul_output_mode", 0)?;
    let root = call.scalar_of(scale.sqrt(), dtype)?;
    let graph = call.graph();
    let query = graph.multiply(at.query, root)?;
    let key = graph.multiply(at.key, root)?;
    let key = graph.swap_axes(key, -1, -2)?;
    let mut logits = graph.matmul(query, key)?;
    let mut shown = logits;
    if softcap > 0.0 {
        let cap = call.scalar_of(softcap, dtype)?;
        let graph = call.graph();
        let share = graph.divide(logits, cap)?;
        let share = graph.tanh(share)?;
        logits = graph.multiply(share, cap)?;
    }
    if mode == 1 {
        shown = logits;
    }
    if let Some(bias) = bias {
        logits = call.graph().add(logits, bias)?;
    }
    if mode == 2 {
        shown = logits;
    }
    if let Some(wide) = call.data_type("softmax_precision")? {
        logits = call.graph().as_type(logits, wide)?;
    }
    let weights = match bias {
        None => call.graph().softmax(logits, -1)?,
        Some(bias) => {
            // A query that may read no key gets zeros.
            let zero = call.scalar(0.0, logits)?;
            let never = call.scalar(f64::NEG_INFINITY, bias)?;
            let graph = call.graph();
            let largest = graph.reduce_max(bias, Some(&[-1]), true)?;
            let is_masked = graph.equal(largest, never)?;
            softmax_with_replacement(call, (logits, -1), is_masked, zero)?
        }
    };
    let graph = call.graph();
    let weights = graph.as_type(weights, dtype)?;
    if mode == 3 {
        shown = weights;
    }
    let result = graph.matmul(weights, at.value)?;
    Ok((graph.as_type(result, dtype)?, shown))
}
