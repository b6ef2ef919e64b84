//! Parameters, literals, tuples, regions and hooks.
//!
//! A region with active hooks receives the order value and returns it with its results. The condition
//! of a loop can return only its predicate. A condition with hooks is therefore evaluated before the
//! loop and at the end of its body, and the predicate is part of the state.

use std::sync::Arc;

use nxla_expr::{Block, BlockKind, Cond, HookOp, Node, Op, Program, TensorType, While};
use nxla_tensor::{DType, HostTensor, Scalar, Shape};
use smallvec::SmallVec;

use crate::builder::Range;
use crate::context::Cx;
use crate::error::Result;
use crate::index;
use crate::literal::{Dense, stored_as};
use crate::partition;
use crate::region::{self, Frame, Source, Sources};
use crate::types::Ty;
use crate::widen;
use crate::writer::{Value, Values};

pub(crate) fn lower<'a>(cx: &mut Cx<'a>, frame: &Frame<'_>, node: &Node<'a>) -> Result<Sources> {
    match node.op {
        Op::Parameter(parameter) => Ok(one(frame.input(parameter.index))),
        Op::Constant(constant) => {
            let ty = cx.tensor_ty(&constant.ty);
            Ok(one(Source::Splat(constant.value, ty)))
        }
        Op::Tensor(literal) => Ok(one(tensor(cx, &literal.0))),
        Op::Metadata(metadata) => {
            // Operands after the results are used only by a derivative.
            let shown = &node.operands[..node.ty.parts().len()];
            if cx.options.partition.is_none() || shown.len() != 1 {
                return Ok(shown.iter().map(|&id| frame.tensor(id)).collect());
            }
            let value = cx.value(frame.tensor(shown[0]));
            Ok(one(partition::constrain(cx, metadata, value).into()))
        }
        Op::Elem(index) => Ok(one(frame.parts(node.operands[0])[*index])),
        Op::Cond(op) => cond(cx, op, &frame.operands(node), node),
        Op::While(op) => while_loop(cx, op, &frame.operands(node), node),
        Op::Hook(hook) => {
            let operands = frame.operands(node);
            if !cx.active_hooks.are_called_by(node.op) {
                return Ok(operands);
            }
            let types = node.operands.iter().map(|&id| frame.graph.tensor_type(id).clone());
            let results = host_call(cx, hook, &operands, types.collect())?;
            Ok(if hook.results.is_some() { results } else { operands })
        }
        Op::Block(op) => block(cx, op, &frame.operands(node)),
        op @ nxla_expr::outside!(control) => unreachable!("{} is of another family", op.name()),
    }
}

fn one(source: Source) -> Sources {
    Sources::from_slice(&[source])
}

/// Many sources of values.
fn sources(values: &[Value]) -> Sources {
    values.iter().map(|&value| value.into()).collect()
}

// --- literals ---

fn tensor(cx: &mut Cx<'_>, tensor: &HostTensor) -> Source {
    let ty = cx.ty(tensor.dtype(), tensor.shape());
    if let Some(number) = repeated(tensor) {
        return Source::Splat(number, ty);
    }
    let stored = cx.ty(stored_as(tensor.dtype()), tensor.shape());
    let value = cx.writer.constant(format_args!("{}", Dense(tensor)), stored);
    cx.convert(value, tensor.dtype()).into()
}

/// Returns the number that all elements equal bitwise; `None` for NaN, whose bits a number does not
/// determine.
fn repeated(tensor: &HostTensor) -> Option<Scalar> {
    if tensor.size() == 0 {
        return Some(Scalar::UInt(0));
    }
    let mut elements = tensor.bytes().chunks_exact(tensor.dtype().size());
    let first = elements.next()?;
    let number = tensor.get(0);
    let (re, im) = number.parts();
    let is_nan = re.is_nan() || im.is_nan();
    (!is_nan && elements.all(|element| element == first)).then_some(number)
}

// --- hooks ---

/// Shows values to the host, and returns the results of a runtime call. The new order value
/// depends on the old one, so calls stay in order.
fn host_call(
    cx: &mut Cx<'_>,
    hook: &HookOp,
    shown: &[Source],
    arguments: Vec<TensorType>,
) -> Result<Sources> {
    let id = cx.add_host_call(hook, arguments)?;
    let order = order(cx);
    let shown = shown.iter().map(|&x| cx.value(x));
    let operands: Values = std::iter::once(order).chain(shown).collect();
    let given = hook.results.as_deref().unwrap_or_default();
    let given = given.iter().map(|ty| cx.tensor_ty(ty));
    let types: Vec<Ty> = std::iter::once(order.ty).chain(given).collect();
    let config = format_args!("id = {id} : i64");
    let results = cx.call_host(&operands, "has_side_effect = true, ", config, &types);
    cx.order = Some(results[0]);
    Ok(sources(&results[1..]))
}

/// The end of the chain of hooks.
fn order(cx: &Cx<'_>) -> Value {
    cx.order.expect("a block with hooks has an order value")
}

/// The values that a region returns: its results, and the order value if it has hooks.
fn with_order(cx: &mut Cx<'_>, results: &[Source], has_hooks: bool) -> Values {
    let mut values: Values = results.iter().map(|&result| cx.value(result)).collect();
    if has_hooks {
        values.push(order(cx));
    }
    values
}

/// The results of an operation. An order value among them becomes the present one.
fn without_order(cx: &mut Cx<'_>, mut results: Values, has_hooks: bool) -> Sources {
    if has_hooks {
        cx.order = results.pop();
    }
    sources(&results)
}

// --- regions ---

/// Writes a program as a part of the present block; inputs and results are as they pass borders.
fn inline<'a>(cx: &mut Cx<'a>, program: &'a Program, inputs: &[Source]) -> Result<Sources> {
    let inputs: Vec<Option<Source>> = (inputs.iter().zip(program.inputs()))
        .map(|(&input, ty)| Some(cx.packed_source(input, ty.dtype)))
        .collect();
    let results = region::lower(cx, program, &inputs)?;
    Ok(unpacked(cx, &results))
}

/// Values as they pass the border of a region, where XLA loses packed elements.
fn unpacked(cx: &mut Cx<'_>, sources: &[Source]) -> Sources {
    sources.iter().map(|&source| cx.unpacked(source)).collect()
}

/// Results that have passed a border, as the graph knows them.
fn packed(cx: &mut Cx<'_>, sources: &[Source], node: &Node<'_>) -> Sources {
    (sources.iter().zip(node.ty.parts()))
        .map(|(&source, ty)| cx.packed_source(source, ty.dtype))
        .collect()
}

/// The answer of a predicate, as a scalar `pred`.
fn answer<'a>(cx: &mut Cx<'a>, program: &'a Program, inputs: &[Source]) -> Result<Value> {
    let results = inline(cx, program, inputs)?;
    Ok(cx.truth(results[0]))
}

/// A chain of `if`s: each predicate is evaluated in the other branch of the one before it.
fn cond<'a>(
    cx: &mut Cx<'a>,
    op: &'a Cond,
    captures: &[Source],
    node: &Node<'a>,
) -> Result<Sources> {
    let has_hooks = cx.active_hooks.are_called_by(node.op);
    let captures = unpacked(cx, captures);
    let mut types: SmallVec<[Ty; 4]> =
        (node.ty.parts().iter()).map(|ty| cx.ty(widen::stored(ty.dtype), &ty.shape)).collect();
    if has_hooks {
        types.push(order(cx).ty);
    }
    let mut opened = Vec::with_capacity(op.clauses.len());
    for (predicate, body) in &op.clauses {
        let predicate = answer(cx, predicate, &captures)?;
        let mut open = cx.writer.open("stablehlo.if", &[predicate], &types);
        let before = cx.order;
        cx.begin_region(&mut open, &[]);
        let results = inline(cx, body, &captures)?;
        let results = with_order(cx, &results, has_hooks);
        cx.end_region(&results);
        cx.order = before;
        cx.begin_region(&mut open, &[]);
        opened.push(open);
    }
    let mut results = inline(cx, &op.otherwise, &captures)?;
    for open in opened.into_iter().rev() {
        let values = with_order(cx, &results, has_hooks);
        cx.end_region(&values);
        let values = cx.writer.close(open, format_args!(""));
        results = without_order(cx, values, has_hooks);
    }
    Ok(packed(cx, &results, node))
}

/// Converts a loop state. XLA crashes for counters of some integer dtypes, so these counters get
/// another dtype, and are converted before each use.
fn carried(cx: &mut Cx<'_>, state: Value) -> Value {
    let dtype = cx.dtype(state.ty);
    let is_counted_in = matches!(dtype, DType::S32 | DType::S64);
    let may_count = dtype.is_integer() && cx.shape(state.ty).rank() == 0;
    if may_count && !is_counted_in { cx.convert(state, DType::S64) } else { state }
}

fn while_loop<'a>(
    cx: &mut Cx<'a>,
    op: &'a While,
    operands: &[Source],
    node: &Node<'a>,
) -> Result<Sources> {
    let operands = unpacked(cx, operands);
    let (initial, captures) = operands.split_at(op.state);
    let asks_hooks = cx.active_hooks.are_in(&op.condition);
    let has_hooks = asks_hooks || cx.active_hooks.are_in(&op.body);
    let with_captures =
        |state: &[Source]| -> Sources { state.iter().chain(captures).copied().collect() };
    // The loop carries the user's state, then the result of the condition, then the order value.
    let mut start: Values = initial.iter().map(|&x| cx.value(x)).collect();
    start.iter_mut().for_each(|state| *state = carried(cx, *state));
    if asks_hooks {
        start.push(answer(cx, &op.condition, &with_captures(initial))?);
    }
    if has_hooks {
        start.push(order(cx));
    }
    let types: SmallVec<[Ty; 4]> = start.iter().map(|value| value.ty).collect();
    let mut open = cx.writer.open("stablehlo.while", &start, &types);

    let state = cx.begin_region(&mut open, &types);
    let goes_on = match asks_hooks {
        true => state[op.state],
        false => answer(cx, &op.condition, &with_captures(&sources(&state[..op.state])))?,
    };
    cx.end_region(&[goes_on]);

    let state = cx.begin_region(&mut open, &types);
    if has_hooks {
        cx.order = state.last().copied();
    }
    let inside = sources(&state[..op.state]);
    let mut results = inline(cx, &op.body, &with_captures(&inside))?;
    if asks_hooks {
        let goes_on = answer(cx, &op.condition, &with_captures(&results))?;
        results.push(goes_on.into());
    }
    let mut results = with_order(cx, &results, has_hooks);
    results.iter_mut().take(op.state).for_each(|state| *state = carried(cx, *state));
    cx.end_region(&results);
    let results = cx.writer.close(open, format_args!(""));
    let results = without_order(cx, results, has_hooks);
    Ok(packed(cx, &results, node))
}

/// A call of a function that is written once for equal bodies; a body with hooks is written in
/// place, where it finds the order value.
fn block<'a>(cx: &mut Cx<'a>, op: &'a Block, operands: &[Source]) -> Result<Sources> {
    if let BlockKind::Scatter { op: combine } = op.kind {
        let result = index::combined(cx, combine, operands, &op.body.inputs()[0]);
        return Ok(one(result.into()));
    }
    let body: &'a Program = &op.body;
    if cx.active_hooks.are_in(body) {
        let inputs: Vec<Option<Source>> = operands.iter().copied().map(Some).collect();
        return region::lower(cx, body, &inputs);
    }
    let function: Arc<str> = cx.function(op);
    let operands: Values = operands.iter().map(|&x| cx.value(x)).collect();
    let types: SmallVec<[Ty; 4]> = body.output_types().map(|ty| cx.tensor_ty(ty)).collect();
    if matches!(op.kind, BlockKind::Checkpoint { again: true, .. })
        && let Some(&last) = operands.last()
        && let Some(holds) = always(cx, last)
    {
        return Ok(apart(cx, (&function, body), &operands, &types, holds));
    }
    let results = cx.writer.call(&function, &operands, &types, "");
    Ok(sources(&results))
}

/// Writes a call in a branch that is always taken, which XLA does not know. Otherwise XLA would reuse
/// equal values from before and keep them in memory. Barriers do not prevent this, because XLA's CPU
/// compiler removes barriers before it merges equal values.
fn apart(
    cx: &mut Cx<'_>,
    (function, body): (&str, &Program),
    operands: &[Value],
    types: &[Ty],
    holds: Value,
) -> Sources {
    let mut open = cx.writer.open("stablehlo.if", &[holds], types);
    cx.begin_region(&mut open, &[]);
    let results = cx.writer.call(function, operands, types, "");
    cx.end_region(&results);
    cx.begin_region(&mut open, &[]);
    let zero = |cx: &mut Cx<'_>, ty: &TensorType| cx.splat(Scalar::UInt(0), ty.dtype, &ty.shape);
    let zeros: Values = body.output_types().map(|ty| zero(cx, ty)).collect();
    cx.end_region(&zeros);
    let results = cx.writer.close(open, format_args!(""));
    sources(&results)
}

/// Returns a condition that always holds but depends on a value: the first element is equal to
/// itself, or it is not. Returns `None` for integers, where XLA would simplify the condition, and
/// for tensors without elements.
pub(crate) fn always(cx: &mut Cx<'_>, value: Value) -> Option<Value> {
    let dtype = cx.dtype(value.ty);
    let shape = cx.shape(value.ty).clone();
    if shape.size() == 0 || !(dtype.is_float() || dtype.is_complex()) {
        return None;
    }
    let (zeros, ones) = (vec![0; shape.rank()], vec![1; shape.rank()]);
    let first = cx.slice(value, &Range { starts: &zeros, lengths: &ones, strides: &ones });
    let first = cx.reshape(first, &Shape::from([]));
    let first = cx.convert(first, DType::F32);
    let (is_one, is_other) = (cx.compare("LE", first, first), cx.compare("NE", first, first));
    Some(cx.uniform("stablehlo.or", &[is_one, is_other]))
}

#[cfg(test)]
mod tests {
    use nxla_tensor::DType;

    use super::*;

    #[test]
    fn repeated_numbers() {
        let full = |value| HostTensor::full(Scalar::Float(value), DType::F32, [2, 2]).unwrap();
        assert_eq!(repeated(&full(1.5)), Some(Scalar::Float(1.5)));
        assert_eq!(repeated(&full(-0.0)), Some(Scalar::Float(-0.0)));
        assert_eq!(repeated(&full(f64::NAN)), None);
        assert_eq!(repeated(&HostTensor::from_slice(&[0.0_f32, -0.0], [2]).unwrap()), None);
        let empty = HostTensor::zeros(DType::C64, [0]).unwrap();
        assert_eq!(repeated(&empty), Some(Scalar::UInt(0)));
    }
}
