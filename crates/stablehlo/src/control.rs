//! Parameters, literals, tuples, regions and hooks.
//!
//! Hooks run in order because each takes the hook token of the one before and returns a new one. A
//! region with active hooks receives the token and returns it with its results. The condition of a
//! loop can return only its predicate. A condition with hooks is therefore evaluated before the loop
//! and at the end of its body, and the predicate is part of the state.

use std::sync::Arc;

use nxla_expr::{Block, BlockKind, Cond, HookOp, Node, Op, Program, TensorType, While};
use nxla_tensor::{DType, HostTensor, Scalar, Shape};
use smallvec::SmallVec;

use crate::context::Cx;
use crate::error::Result;
use crate::index::{self, Update};
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

/// Wraps values as sources.
fn sources(values: &[Value]) -> Sources {
    values.iter().map(|&value| value.into()).collect()
}

// --- literals ---

fn tensor(cx: &mut Cx<'_>, tensor: &HostTensor) -> Source {
    let ty = cx.ty(tensor.dtype(), tensor.shape());
    if let Some(number) = splat_number(tensor) {
        return Source::Splat(number, ty);
    }
    let stored = cx.ty(stored_as(tensor.dtype()), tensor.shape());
    let value = cx.writer.constant(format_args!("{}", Dense(tensor)), stored);
    cx.convert(value, tensor.dtype()).into()
}

/// Returns the number that all elements equal bitwise; `None` for NaN, whose bits a number does not
/// determine.
fn splat_number(tensor: &HostTensor) -> Option<Scalar> {
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

/// Passes values to the host, and returns the results of a runtime call. The new hook token depends
/// on the old one, so calls stay in order.
fn host_call(
    cx: &mut Cx<'_>,
    hook: &HookOp,
    shown: &[Source],
    arguments: Vec<TensorType>,
) -> Result<Sources> {
    let id = cx.add_host_call(hook, arguments)?;
    let token = hook_token(cx);
    let shown = shown.iter().map(|&x| cx.value(x));
    let operands: Values = std::iter::once(token).chain(shown).collect();
    let results = hook.results.as_deref().unwrap_or_default();
    let results = results.iter().map(|ty| cx.tensor_ty(ty));
    let types: Vec<Ty> = std::iter::once(token.ty).chain(results).collect();
    let config = format_args!("id = {id} : i64");
    let results = cx.call_host(&operands, "has_side_effect = true, ", config, &types);
    cx.hook_token = Some(results[0]);
    Ok(sources(&results[1..]))
}

/// The current hook token.
fn hook_token(cx: &Cx<'_>) -> Value {
    cx.hook_token.expect("a block with hooks has a hook token")
}

/// Returns the values that a region returns: its results, and the hook token if it has hooks.
fn add_hook_token(cx: &mut Cx<'_>, results: &[Source], has_hooks: bool) -> Values {
    let mut values: Values = results.iter().map(|&result| cx.value(result)).collect();
    if has_hooks {
        values.push(hook_token(cx));
    }
    values
}

/// Returns the results of an operation. A hook token among them becomes the current one.
fn take_hook_token(cx: &mut Cx<'_>, mut results: Values, has_hooks: bool) -> Sources {
    if has_hooks {
        cx.hook_token = results.pop();
    }
    sources(&results)
}

// --- regions ---

/// Writes a program into the current block. Inputs and results are unpacked, as at region boundaries.
fn inline<'a>(cx: &mut Cx<'a>, program: &'a Program, inputs: &[Source]) -> Result<Sources> {
    let inputs: Vec<Option<Source>> = (inputs.iter().zip(program.inputs()))
        .map(|(&input, ty)| Some(cx.pack_source(input, ty.dtype)))
        .collect();
    let results = region::lower(cx, program, &inputs)?;
    Ok(unpack_all(cx, &results))
}

/// Unpacks values for a region boundary, where XLA loses packed elements.
fn unpack_all(cx: &mut Cx<'_>, sources: &[Source]) -> Sources {
    sources.iter().map(|&source| cx.unpack(source)).collect()
}

/// Converts the results of a region to the dtypes of the graph.
fn pack_results(cx: &mut Cx<'_>, sources: &[Source], node: &Node<'_>) -> Sources {
    (sources.iter().zip(node.ty.parts()))
        .map(|(&source, ty)| cx.pack_source(source, ty.dtype))
        .collect()
}

/// Writes the program of a predicate; returns its result as a scalar `pred`.
fn lower_predicate<'a>(cx: &mut Cx<'a>, program: &'a Program, inputs: &[Source]) -> Result<Value> {
    let results = inline(cx, program, inputs)?;
    Ok(cx.cast(results[0], DType::Pred))
}

/// A chain of `if`s: each predicate is evaluated in the other branch of the one before it.
///
/// A branch that returns a value unchanged comes first, with the negated predicate if it is the other
/// branch. If it came second, XLA would copy the value in each iteration of a surrounding loop: 200
/// iterations that may assign to an element of 400 x 400 would take 9 ms instead of 0.1 ms.
fn cond<'a>(
    cx: &mut Cx<'a>,
    op: &'a Cond,
    captures: &[Source],
    node: &Node<'a>,
) -> Result<Sources> {
    let has_hooks = cx.active_hooks.are_called_by(node.op);
    let captures = unpack_all(cx, captures);
    let mut types: SmallVec<[Ty; 4]> =
        (node.ty.parts().iter()).map(|ty| cx.ty(widen::storage(ty.dtype), &ty.shape)).collect();
    if has_hooks {
        types.push(hook_token(cx).ty);
    }
    let lower_branch = |cx: &mut Cx<'a>, body: &'a Program, token: Option<Value>| -> Result<()> {
        cx.hook_token = token;
        let results = inline(cx, body, &captures)?;
        let results = add_hook_token(cx, &results, has_hooks);
        cx.end_region(&results);
        Ok(())
    };
    let mut opened = Vec::with_capacity(op.clauses.len());
    for (predicate, body) in &op.clauses {
        let mut predicate = lower_predicate(cx, predicate, &captures)?;
        let comes_first = returns_inputs(body);
        if !comes_first {
            predicate = cx.uniform("stablehlo.not", &[predicate]);
        }
        let mut open = cx.writer.open("stablehlo.if", &[predicate], &types);
        let token = cx.hook_token;
        cx.begin_region(&mut open, &[]);
        if comes_first {
            lower_branch(cx, body, token)?;
            cx.hook_token = token;
            cx.begin_region(&mut open, &[]);
        }
        opened.push((open, token, (!comes_first).then_some(&**body)));
    }
    let mut results = inline(cx, &op.otherwise, &captures)?;
    for (mut open, token, second) in opened.into_iter().rev() {
        let values = add_hook_token(cx, &results, has_hooks);
        cx.end_region(&values);
        if let Some(body) = second {
            cx.begin_region(&mut open, &[]);
            lower_branch(cx, body, token)?;
        }
        let values = cx.writer.close(open, format_args!(""));
        results = take_hook_token(cx, values, has_hooks);
    }
    Ok(pack_results(cx, &results, node))
}

/// Returns whether a program returns an input.
fn returns_inputs(program: &Program) -> bool {
    let graph = program.graph();
    program.outputs().iter().any(|&output| matches!(graph.op(output), Op::Parameter(_)))
}

/// Converts a loop state that may be a counter. XLA crashes for counters of some integer dtypes, so
/// these counters have another dtype in the loop, and are converted before each use.
fn as_loop_counter(cx: &mut Cx<'_>, state: Value) -> Value {
    let dtype = cx.dtype(state.ty);
    let is_supported = matches!(dtype, DType::S32 | DType::S64);
    let may_be_counter = dtype.is_integer() && cx.shape(state.ty).rank() == 0;
    if may_be_counter && !is_supported { cx.convert(state, DType::S64) } else { state }
}

fn while_loop<'a>(
    cx: &mut Cx<'a>,
    op: &'a While,
    operands: &[Source],
    node: &Node<'a>,
) -> Result<Sources> {
    let operands = unpack_all(cx, operands);
    let (initial, captures) = operands.split_at(op.state);
    let condition_has_hooks = cx.active_hooks.are_in(&op.condition);
    let has_hooks = condition_has_hooks || cx.active_hooks.are_in(&op.body);
    let with_captures =
        |state: &[Source]| -> Sources { state.iter().chain(captures).copied().collect() };
    // The state of the loop is the user's state, the result of the condition, and the hook token.
    let mut start: Values = initial.iter().map(|&x| cx.value(x)).collect();
    start.iter_mut().for_each(|state| *state = as_loop_counter(cx, *state));
    if condition_has_hooks {
        start.push(lower_predicate(cx, &op.condition, &with_captures(initial))?);
    }
    if has_hooks {
        start.push(hook_token(cx));
    }
    let types: SmallVec<[Ty; 4]> = start.iter().map(|value| value.ty).collect();
    let mut open = cx.writer.open("stablehlo.while", &start, &types);

    let state = cx.begin_region(&mut open, &types);
    let predicate = if condition_has_hooks {
        state[op.state]
    } else {
        lower_predicate(cx, &op.condition, &with_captures(&sources(&state[..op.state])))?
    };
    cx.end_region(&[predicate]);

    let state = cx.begin_region(&mut open, &types);
    if has_hooks {
        cx.hook_token = state.last().copied();
    }
    let inside = sources(&state[..op.state]);
    let mut results = inline(cx, &op.body, &with_captures(&inside))?;
    if condition_has_hooks {
        let predicate = lower_predicate(cx, &op.condition, &with_captures(&results))?;
        results.push(predicate.into());
    }
    let mut results = add_hook_token(cx, &results, has_hooks);
    results.iter_mut().take(op.state).for_each(|state| *state = as_loop_counter(cx, *state));
    cx.end_region(&results);
    let results = cx.writer.close(open, format_args!(""));
    let results = take_hook_token(cx, results, has_hooks);
    Ok(pack_results(cx, &results, node))
}

/// Calls a function that is written once for equal bodies. A body with hooks is inlined, because it
/// needs the current hook token.
fn block<'a>(cx: &mut Cx<'a>, op: &'a Block, operands: &[Source]) -> Result<Sources> {
    if let BlockKind::Scatter { op: combine } = op.kind {
        let ty = &op.body.inputs()[0];
        let result = index::scatter(cx, &[0], operands, ty, Update::Combine(combine));
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
        && let Some(condition) = opaque_true(cx, last)
    {
        return Ok(call_without_cse(cx, (&function, body), &operands, &types, condition));
    }
    let results = cx.writer.call(&function, &operands, &types, "");
    Ok(sources(&results))
}

/// Writes a call in a branch whose condition XLA cannot simplify to true. Otherwise XLA would merge the
/// results with equal values from before (common subexpression elimination) and keep these in memory.
/// Barriers do not prevent this, because XLA's CPU compiler removes barriers before it merges equal
/// values.
fn call_without_cse(
    cx: &mut Cx<'_>,
    (function, body): (&str, &Program),
    operands: &[Value],
    types: &[Ty],
    condition: Value,
) -> Sources {
    let mut open = cx.writer.open("stablehlo.if", &[condition], types);
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

/// Returns a condition that is true, but depends on a value: the first element is equal to itself, or
/// it is not. Returns `None` for integers, where XLA would simplify the condition, and for tensors
/// without elements.
pub(crate) fn opaque_true(cx: &mut Cx<'_>, value: Value) -> Option<Value> {
    let dtype = cx.dtype(value.ty);
    let shape = cx.shape(value.ty).clone();
    if shape.size() == 0 || !(dtype.is_float() || dtype.is_complex()) {
        return None;
    }
    let first = cx.slice_first(value, &vec![1; shape.rank()]);
    let first = cx.reshape(first, &Shape::scalar());
    let first = cx.convert(first, DType::F32);
    let (is_number, is_nan) = (cx.compare("LE", first, first), cx.compare("NE", first, first));
    Some(cx.uniform("stablehlo.or", &[is_number, is_nan]))
}

#[cfg(test)]
mod tests {
    use nxla_tensor::DType;

    use super::*;

    #[test]
    fn finds_splat_numbers() {
        let full = |value| HostTensor::full(Scalar::Float(value), DType::F32, [2, 2]).unwrap();
        assert_eq!(splat_number(&full(1.5)), Some(Scalar::Float(1.5)));
        assert_eq!(splat_number(&full(-0.0)), Some(Scalar::Float(-0.0)));
        assert_eq!(splat_number(&full(f64::NAN)), None);
        assert_eq!(splat_number(&HostTensor::from_slice(&[0.0_f32, -0.0], [2]).unwrap()), None);
        let empty = HostTensor::zeros(DType::C64, [0]).unwrap();
        assert_eq!(splat_number(&empty), Some(Scalar::UInt(0)));
    }
}
