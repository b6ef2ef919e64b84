//! Attention of `com.microsoft` whose keys serve groups of queries, with a buffer of earlier keys.

use nxla_expr::ExprId;
use nxla_expr::build::{Formula, SliceStart, Subscript};
use nxla_tensor::{DType, Shape};

use super::fused_attention::{Heads, Scores, attend, indices, scale_attribute, swap_heads};
use super::neural::{repeat_heads, split_heads};
use super::rotary::{angles, rotate};
use super::{Operator, operator};
use crate::numbers::to_i64;
use crate::onnx::error::{Built, invalid, unsupported};
use crate::onnx::node::Call;

/// The operators of this family.
pub(super) const OPERATORS: &[Operator] =
    &[operator("com.microsoft:GroupQueryAttention", group_query_attention)];

/// The lengths of the sequences of a batch, each `[batch, 1, 1, 1]`.
struct Lengths {
    /// The number of keys before the first query.
    past: ExprId,
    /// The number of all keys.
    total: ExprId,
    /// The length of the longest sequence with all keys.
    longest: usize,
}

/// Checks the attributes and inputs that have no counterpart.
fn check_cache(call: &Call<'_, '_, '_>) -> Built<()> {
    for name in ["k_quant_type", "v_quant_type"] {
        let kind = call.text(name, "NONE")?;
        if kind != "NONE" {
            return unsupported(format!("{name}: must be NONE; got {kind:?}"));
        }
    }
    if call.flag("sliding_window_cache", false)? {
        return unsupported("sliding_window_cache: must be 0; got 1");
    }
    if call.optional(12).is_some() || call.optional(13).is_some() {
        return unsupported("k_scale, v_scale: must be missing");
    }
    Ok(())
}

/// Reads queries, keys and values, `[batch, heads, length, size]`. Queries may contain the others.
fn read_heads(call: &mut Call<'_, '_, '_>) -> Built<Heads> {
    let (count, own) = (call.positive("num_heads", 0)?, call.positive("kv_num_heads", 0)?);
    let query = call.input(0)?;
    let [query, key, value] = match call.optional_pair(1, "key, value")? {
        Some([key, value]) => [
            split_heads(call, query, count, "num_heads")?,
            split_heads(call, key, own, "kv_num_heads")?,
            split_heads(call, value, own, "kv_num_heads")?,
        ],
        None => {
            let all = count.saturating_add(own.saturating_mul(2));
            let packed = split_heads(call, query, all, "num_heads + 2 kv_num_heads")?;
            let graph = call.graph();
            let mut part = |first: usize, count: usize| {
                graph.slice_along_axis(packed, SliceStart::at(first), count, 1, 1)
            };
            [part(0, count)?, part(count, own)?, part(count + own, own)?]
        }
    };
    if call.shape(query)[2] != call.shape(key)[2] {
        let (query, key) = (call.ty(query), call.ty(key));
        return unsupported(format!("key: must be as long as the queries; got {query} and {key}"));
    }
    Ok(Heads { query, key, value })
}

/// Divides queries and keys by their root mean square, if the node has weights for them.
fn normalize_heads(call: &mut Call<'_, '_, '_>, heads: &mut Heads) -> Built<()> {
    let Some([query, key]) = call.optional_pair(14, "q_norm_weight, k_norm_weight")? else {
        return Ok(());
    };
    let epsilon = call.float("qk_norm_epsilon", 1e-6)?;
    for (x, weight, name) in
        [(&mut heads.query, query, "q_norm_epsilon"), (&mut heads.key, key, "k_norm_epsilon")]
    {
        let epsilon = call.float(name, epsilon)?;
        *x = call.graph().rms_norm(*x, Some(weight), &[-1], epsilon)?;
    }
    Ok(())
}

/// Reads the lengths. New keys follow the keys of earlier calls; the sequences of a batch may have
/// padding at their ends.
fn read_lengths(call: &mut Call<'_, '_, '_>, heads: &Heads) -> Built<Lengths> {
    let (batch, queries) = (call.shape(heads.query)[0], call.shape(heads.query)[2]);
    let last = call.input(5)?;
    let longest = call.input(6)?;
    let longest = call.integer(longest, "total_sequence_length")?;
    let Ok(longest) = usize::try_from(longest) else {
        return invalid(format!("total_sequence_length: must not be negative; got {longest}"));
    };
    let aligned = [batch, 1, 1, 1];
    let graph = call.graph();
    let last = graph.as_type(last, DType::S64)?;
    let last = graph.reshape(last, aligned)?;
    let valid = match call.optional(16) {
        Some(valid) => {
            let valid = call.graph().as_type(valid, DType::S64)?;
            Some(call.graph().reshape(valid, aligned)?)
        }
        None => None,
    };
    let formula = Formula::new(call.graph());
    let total = formula.term(last) + 1_i64;
    let valid = match valid {
        Some(valid) => formula.term(valid),
        None => total.min(to_i64(queries)),
    };
    let [past, total] = formula.ids([total - valid, total])?;
    Ok(Lengths { past, total, longest })
}

/// Rotates queries and keys by the angles of their positions.
fn rotate_heads(call: &mut Call<'_, '_, '_>, heads: &mut Heads, lengths: &Lengths) -> Built<()> {
    if !call.flag("do_rotary", false)? {
        return Ok(());
    }
    let [batch, _, length, size] = call.shape(heads.query)[..] else {
        return invalid(format!("query: must have 4 axes; got {}", call.ty(heads.query)));
    };
    let positions = match call.optional(9) {
        Some(positions) => positions,
        None => {
            let step = indices(call, length, 2)?;
            let graph = call.graph();
            let positions = graph.add(lengths.past, step)?;
            graph.reshape(positions, [batch, length])?
        }
    };
    let mut tables = [call.input(7)?, call.input(8)?];
    let rotated = call.shape(tables[0]).last().map_or(0, |&half| half.saturating_mul(2));
    if rotated == 0 || rotated > size {
        let found = call.ty(tables[0]);
        return invalid(format!("cos_cache: must have at most {} columns; got {found}", size / 2));
    }
    for table in &mut tables {
        *table = angles(call, *table, Some(positions), [batch, length])?;
    }
    let interleaved = call.flag("rotary_interleaved", false)?;
    for x in [&mut heads.query, &mut heads.key] {
        *x = rotate(call, *x, tables, rotated, interleaved)?;
    }
    Ok(())
}

/// Returns the buffer with new elements after the elements of earlier calls. The buffer is as long as
/// before or as the longest sequence. Elements after the end of a sequence are not specified.
fn append(
    call: &mut Call<'_, '_, '_>,
    past: Option<ExprId>,
    new: ExprId,
    lengths: &Lengths,
) -> Built<ExprId> {
    let [batch, _, count, _] = call.shape(new)[..] else {
        return invalid(format!("key, value: must have 4 axes; got {}", call.ty(new)));
    };
    let own = past.map_or(0, |past| call.shape(past).get(2).copied().unwrap_or(0));
    let capacity = own.max(lengths.longest);
    let zero = call.scalar(0.0, new)?;
    let more = |size: usize| (0, to_i64(capacity) - to_i64(size));
    let Some(past) = past.filter(|_| own > 0) else {
        return call.pad_axis(new, zero, 2, more(count));
    };
    if batch == 1 {
        // New elements may end with padding. Without space for the padding, the start would be
        // clamped, and the new elements would replace earlier ones.
        let space = if call.optional(16).is_some() { to_i64(count) } else { 0 };
        let (low, high) = more(own);
        let buffer = call.pad_axis(past, zero, 2, (low, high + space))?;
        let graph = call.graph();
        let start = SliceStart::Dynamic(graph.reshape(lengths.past, Shape::scalar())?);
        let written = graph.put_slice_along_axis(buffer, start, new, 2)?;
        return Ok(graph.slice_along_axis(written, SliceStart::at(0), capacity, 2, 1)?);
    }
    let graph = call.graph();
    let all = graph.concatenate(&[past, new], 2)?;
    let start = graph.reshape(lengths.past, [batch, 1])?;
    let position = graph.iota([1, capacity], Some(1), DType::S64)?;
    let formula = Formula::new(graph);
    let [position, start] = formula.terms([position, start]);
    let is_new = position.greater_equal(start) & position.less(start + to_i64(count));
    let source =
        is_new.select(position - start + to_i64(own), position.min(to_i64(own) - 1)).id()?;
    let graph = call.graph();
    let sequence = graph.iota([batch, capacity], Some(0), DType::S64)?;
    let heads = graph.swap_axes(all, 1, 2)?;
    let taken = graph.subscript(heads, &[Subscript::Take(sequence), Subscript::Take(source)])?;
    swap_heads(call, taken)
}

/// Returns the conditions of the pairs of queries and keys that count.
fn allowed_pairs(
    call: &mut Call<'_, '_, '_>,
    queries: usize,
    lengths: &Lengths,
) -> Built<Vec<ExprId>> {
    let window = call.int("local_window_size", -1)?;
    let is_causal = call.flag("causal", true)?;
    if window > 0 && !is_causal {
        return invalid(format!("local_window_size: must be -1 if causal is 0; got {window}"));
    }
    let (query, key) = (indices(call, queries, 2)?, indices(call, lengths.longest, 3)?);
    let formula = Formula::new(call.graph());
    let [query, key, past, total] = formula.terms([query, key, lengths.past, lengths.total]);
    if !is_causal {
        return Ok(vec![key.less(total).id()?]);
    }
    let position = past + query;
    let mut allowed = vec![key.less_equal(position).id()?];
    if window > 0 {
        allowed.push((position - key).less(window).id()?);
    }
    Ok(allowed)
}

/// Returns the score of the additional key, or `None`.
fn read_sink(call: &mut Call<'_, '_, '_>, query: ExprId) -> Built<Option<ExprId>> {
    if let Some(sink) = call.optional(11) {
        return Ok(Some(sink));
    }
    Ok(match call.int("smooth_softmax", -1)? {
        1 => Some(call.scalar(0.0, query)?),
        _ => None,
    })
}

fn group_query_attention(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    check_cache(call)?;
    let mut heads = read_heads(call)?;
    normalize_heads(call, &mut heads)?;
    let lengths = read_lengths(call, &heads)?;
    rotate_heads(call, &mut heads, &lengths)?;
    let past = call.optional_pair(3, "past_key, past_value")?;
    let key = append(call, past.map(|[key, _]| key), heads.key, &lengths)?;
    let value = append(call, past.map(|[_, value]| value), heads.value, &lengths)?;
    let count = call.shape(heads.query)[1];
    for (x, all) in [(&mut heads.key, key), (&mut heads.value, value)] {
        let first = SliceStart::at(0);
        let used = call.graph().slice_along_axis(all, first, lengths.longest, 2, 1)?;
        *x = repeat_heads(call, used, count)?;
    }
    let queries = call.shape(heads.query)[2];
    let scores = Scores {
        scale: scale_attribute(call)?,
        softcap: call.float("softcap", 0.0)?,
        bias: call.optional(10),
        allowed: allowed_pairs(call, queries, &lengths)?,
        sink: read_sink(call, heads.query)?,
    };
    let attended = attend(call, &heads, &scores)?;
    let mut results = vec![attended.result, key, value];
    match call.int("qk_output", 0)? {
        0 => {}
        1 => results.push(attended.scores),
        2 => results.push(attended.weights),
        other => return invalid(format!("qk_output: must be 0, 1 or 2; got {other}")),
    }
    Ok(results)
}
