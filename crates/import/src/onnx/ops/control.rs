//! Conditionals, loops and scans.

use nxla_expr::build::SliceStart;
use nxla_expr::{ExprId, Graph, TensorType};
use nxla_tensor::{DType, Scalar, Shape};

use super::{Operator, operator, value_operator};
use crate::numbers::to_i64;
use crate::onnx::error::{Built, Fault, invalid, unsupported};
use crate::onnx::importer::TracedValue;
use crate::onnx::node::Call;
use crate::onnx::proto;
use crate::onnx::tensors::dtype_of;

/// The operators of this family.
pub(super) const OPERATORS: &[Operator] =
    &[value_operator("If", branch), value_operator("Loop", repeat), operator("Scan", scan)];

const DATA_ITERATIONS: &str = "body: the number of iterations depends on the data, and so does the \
                               shape of the stacked results";

fn scalar_of(call: &mut Call<'_, '_, '_>, x: ExprId) -> Built<ExprId> {
    Ok(call.graph().reshape(x, Shape::scalar())?)
}

/// Returns whether a known value is true.
fn known_truth(call: &mut Call<'_, '_, '_>, condition: ExprId) -> Built<Option<bool>> {
    let value = call.known_value(condition)?;
    Ok(value.map(|value| (0..value.size()).any(|index| !value.get(index).is_zero())))
}

fn call_body(
    call: &mut Call<'_, '_, '_>,
    body: &'static str,
    inputs: &[TracedValue],
) -> Built<Vec<TracedValue>> {
    let graph = call.subgraph(body)?;
    Ok(call.importer.trace_subgraph(graph, inputs)?)
}

/// Returns the outputs of a body, which must be tensors.
fn expect_tensors(outputs: Vec<TracedValue>, body: &str) -> Built<Vec<ExprId>> {
    let outputs = outputs.into_iter().enumerate().map(|(position, output)| {
        output.tensor().map_err(|fault| fault.of(&format!("{body}: output {position}")))
    });
    outputs.collect()
}

/// Returns tensors as values of the trace.
fn to_values(tensors: &[ExprId]) -> Vec<TracedValue> {
    tensors.iter().copied().map(TracedValue::Tensor).collect()
}

/// Traces one branch if the condition is known, and both otherwise.
fn branch(call: &mut Call<'_, '_, '_>, _: &[Option<TracedValue>]) -> Built<Vec<TracedValue>> {
    let condition = call.input(0)?;
    if let Some(truth) = known_truth(call, condition)? {
        return call_body(call, if truth { "then_branch" } else { "else_branch" }, &[]);
    }
    let condition = scalar_of(call, condition)?;
    let mark = call.graph().mark();
    let predicate = call.graph().traced(mark, vec![condition]);
    let mut bodies = Vec::with_capacity(2);
    for body in ["then_branch", "else_branch"] {
        let start = call.graph().mark();
        let outputs = expect_tensors(call_body(call, body, &[])?, body)?;
        bodies.push(call.graph().traced(start, outputs));
    }
    let otherwise = bodies.pop().ok_or("else_branch: must not be missing")?;
    let then = bodies.pop().ok_or("then_branch: must not be missing")?;
    // A conditional broadcasts results of different shapes, which ONNX does not.
    for (position, (&x, &y)) in then.outputs().iter().zip(otherwise.outputs()).enumerate() {
        let (x, y) = (call.ty(x), call.ty(y));
        if x.shape != y.shape {
            return unsupported(format!(
                "then_branch, else_branch: the shape of output {position} must not depend on the \
                 data; got {x} and {y}"
            ));
        }
    }
    let results = call.graph().cond(mark, vec![(predicate, then)], otherwise)?;
    Ok(to_values(&results))
}

fn index(graph: &mut Graph, value: usize) -> Built<ExprId> {
    let value = Scalar::Int(to_i64(value));
    Ok(graph.scalar_constant(value, DType::S64)?)
}

/// A body of a loop as a function of the iteration and the state.
type Body<'b, 'c, 'm, 'e> =
    dyn FnMut(&mut Call<'c, 'm, 'e>, ExprId, &[ExprId]) -> Built<LoopResults> + 'b;

/// The results of a loop, or of one iteration, whose stacked results are one element each.
pub(super) struct LoopResults {
    pub(super) state: Vec<ExprId>,
    pub(super) stacked: Vec<ExprId>,
}

fn zeros(graph: &mut Graph, dtype: DType, shape: Shape) -> Built<ExprId> {
    let zero = graph.scalar_constant(Scalar::zero(dtype), dtype)?;
    Ok(graph.broadcast(zero, shape, None)?)
}

/// Returns the element of a sequence at an iteration. An empty sequence has none, but the body is
/// still traced for the types of its results: zeros represent the element.
pub(super) fn element_at(
    call: &mut Call<'_, '_, '_>,
    sequence: ExprId,
    iteration: ExprId,
) -> Built<ExprId> {
    let ty = call.ty(sequence);
    if ty.shape[0] == 0 {
        return zeros(call.graph(), ty.dtype, Shape::from(&ty.shape[1..]));
    }
    let graph = call.graph();
    let one = graph.slice_along_axis(sequence, SliceStart::Dynamic(iteration), 1, 0, 1)?;
    Ok(graph.squeeze(one, Some(&[0]))?)
}

/// Returns the initial state, and stacks without elements. The body determines their types.
fn run_empty_loop<'c, 'm, 'e>(
    call: &mut Call<'c, 'm, 'e>,
    initial: &[ExprId],
    body: &mut Body<'_, 'c, 'm, 'e>,
) -> Built<LoopResults> {
    let iteration = index(call.graph(), 0)?;
    let step = body(call, iteration, initial)?;
    let mut stacked = Vec::with_capacity(step.stacked.len());
    for element in step.stacked {
        let mut ty = call.ty(element);
        ty.shape.insert(0, 0);
        stacked.push(zeros(call.graph(), ty.dtype, ty.shape)?);
    }
    Ok(LoopResults { state: initial.to_vec(), stacked })
}

/// Runs a body a known number of times, and stacks results along a new first axis. With `reverse`,
/// a stacked result is filled from its end.
pub(super) fn run_counted_loop<'c, 'm, 'e>(
    call: &mut Call<'c, 'm, 'e>,
    count: usize,
    initial: &[ExprId],
    reverse: &[bool],
    body: &mut Body<'_, 'c, 'm, 'e>,
) -> Built<LoopResults> {
    if count == 0 {
        return run_empty_loop(call, initial, body);
    }
    let mark = call.graph().mark();
    let mut types = vec![TensorType::scalar(DType::S64)];
    types.extend(initial.iter().map(|&id| call.ty(id)));
    let mut scope = call.graph().open_scope("while", &types);
    let (iteration, state) = (scope.parameters[0], scope.parameters[1..].to_vec());
    let end = index(call.graph(), count)?;
    let goes_on = call.graph().less(iteration, end)?;
    let condition = call.graph().traced(mark, vec![goes_on]);
    let start = call.graph().mark();
    let step = body(call, iteration, &state)?;
    let graph = call.graph();
    let one = index(graph, 1)?;
    let last = index(graph, count - 1)?;
    let backward = graph.subtract(last, iteration)?;
    let first = index(graph, 0)?;
    let mut all = vec![first];
    all.extend_from_slice(initial);
    let mut next = vec![graph.add(iteration, one)?];
    next.extend(step.state);
    for (position, &element) in step.stacked.iter().enumerate() {
        let ty = graph.tensor_type(element).clone();
        let mut shape = ty.shape.clone();
        shape.insert(0, count);
        all.push(zeros(graph, ty.dtype, shape.clone())?);
        let buffer = graph.grow_scope(&mut scope, TensorType::new(ty.dtype, shape));
        let element = graph.new_axis(element, 0, None)?;
        let is_reversed = reverse.get(position).copied().unwrap_or(false);
        let place = if is_reversed { backward } else { iteration };
        next.push(graph.put_slice_along_axis(buffer, SliceStart::Dynamic(place), element, 0)?);
    }
    let body = graph.traced(start, next);
    let results = graph.while_loop(mark, &scope, &all, condition, body)?;
    let (state, stacked) = results[1..].split_at(initial.len());
    Ok(LoopResults { state: state.to_vec(), stacked: stacked.to_vec() })
}

/// The inputs are the largest number of iterations, the condition and the initial state. A state with
/// sequences has no type for all iterations, so the loop is unrolled.
fn repeat(call: &mut Call<'_, '_, '_>, inputs: &[Option<TracedValue>]) -> Built<Vec<TracedValue>> {
    let limit = match call.optional(0) {
        Some(limit) if call.ty(limit).shape.size() != 1 => {
            let found = call.ty(limit);
            return invalid(format!("M: must be one number; got {found}"));
        }
        Some(limit) => call.known_value(limit)?.and_then(|value| value.get(0).as_i64()),
        None => Some(i64::MAX),
    };
    let truth = match call.optional(1) {
        Some(condition) => known_truth(call, condition)?,
        None => Some(true),
    };
    let initial = inputs.iter().skip(2).cloned().collect::<Option<Vec<TracedValue>>>();
    let initial = initial.ok_or("initial state: must not be missing")?;
    let count = limit.map(|limit| usize::try_from(limit).unwrap_or(0));
    let known = count.filter(|_| truth == Some(true));
    let body = call.subgraph("body")?;
    let stacked = body.outputs.len().saturating_sub(1 + initial.len());
    if truth == Some(false) || count == Some(0) {
        return without_iteration(call, body, initial, stacked);
    }
    if initial.iter().any(|value| matches!(value, TracedValue::Sequence(_))) {
        let why = "body: a sequence needs a number of iterations that does not depend on the data";
        let count = known.ok_or_else(|| Fault::Unsupported(why.into()))?;
        return unroll(call, count, initial, stacked);
    }
    let state = expect_tensors(initial.clone(), "initial state")?;
    let rolled = convert_loop(call, known, &state, stacked);
    match (rolled, known) {
        (Ok(results), _) => Ok(to_values(&results)),
        // A body that computes shapes from its iteration is traced once for each iteration.
        (Err(fault), Some(count)) => unroll(call, count, initial, stacked).map_err(|_| fault),
        (Err(fault), None) => Err(fault),
    }
}

/// Returns the initial state, and no elements for the stacked results.
fn without_iteration(
    call: &mut Call<'_, '_, '_>,
    body: &proto::Graph,
    mut results: Vec<TracedValue>,
    stacked: usize,
) -> Built<Vec<TracedValue>> {
    for info in body.outputs.iter().rev().take(stacked).rev() {
        let dtype = dtype_of(info.data_type)?;
        let mut shape = Shape::from(&[0][..]);
        for dim in info.shape.iter().flatten() {
            shape.push(if let proto::Dim::Size(size) = dim { *size } else { 0 });
        }
        results.push(TracedValue::Tensor(zeros(call.graph(), dtype, shape)?));
    }
    Ok(results)
}

/// Traces the body of a `Loop`, and returns its condition, its state and its stacked results.
fn call_iteration(
    call: &mut Call<'_, '_, '_>,
    iteration: ExprId,
    go: ExprId,
    state: &[TracedValue],
) -> Built<(ExprId, Vec<TracedValue>, Vec<ExprId>)> {
    let inputs = [&to_values(&[iteration, go])[..], state].concat();
    let mut outputs = call_body(call, "body", &inputs)?;
    if outputs.len() <= state.len() {
        return Err("body: must return a condition and the state".into());
    }
    let stacked = expect_tensors(outputs.split_off(1 + state.len()), "body")?;
    let state = outputs.split_off(1);
    Ok((expect_tensors(outputs, "body")?[0], state, stacked))
}

/// Traces the body of a `Loop` whose state consists of tensors, and returns its condition and its
/// results.
fn call_step(
    call: &mut Call<'_, '_, '_>,
    iteration: ExprId,
    go: ExprId,
    state: &[ExprId],
) -> Built<(ExprId, LoopResults)> {
    let (go, state, stacked) = call_iteration(call, iteration, go, &to_values(state))?;
    Ok((go, LoopResults { state: expect_tensors(state, "body")?, stacked }))
}

fn convert_loop(
    call: &mut Call<'_, '_, '_>,
    count: Option<usize>,
    initial: &[ExprId],
    stacked: usize,
) -> Built<Vec<ExprId>> {
    if let Some(count) = count {
        let counted = run_counted_loop(call, count, initial, &[], &mut |call, iteration, state| {
            let go = call.graph().scalar_constant(Scalar::from(true), DType::Pred)?;
            let (go, results) = call_step(call, iteration, go, state)?;
            if known_truth(call, go)? != Some(true) {
                return unsupported(DATA_ITERATIONS);
            }
            Ok(results)
        });
        match counted {
            Ok(LoopResults { mut state, stacked }) => {
                state.extend(stacked);
                return Ok(state);
            }
            Err(fault) if stacked > 0 => return Err(fault),
            Err(_) => {}
        }
    }
    if stacked > 0 {
        return unsupported(DATA_ITERATIONS);
    }
    conditional(call, initial)
}

/// A loop that ends when its condition is false, or after the largest number of iterations.
fn conditional(call: &mut Call<'_, '_, '_>, initial: &[ExprId]) -> Built<Vec<ExprId>> {
    let mark = call.graph().mark();
    let go = match call.optional(1) {
        Some(condition) => scalar_of(call, condition)?,
        None => call.graph().scalar_constant(Scalar::from(true), DType::Pred)?,
    };
    let limit = call.optional(0).map(|limit| scalar_of(call, limit)).transpose()?;
    let first = index(call.graph(), 0)?;
    let mut all = vec![first, go];
    all.extend_from_slice(initial);
    let types: Vec<TensorType> = all.iter().map(|&id| call.ty(id)).collect();
    let graph = call.graph();
    let scope = graph.open_scope("while", &types);
    let mut goes_on = scope.parameters[1];
    if let Some(limit) = limit {
        let is_below = graph.less(scope.parameters[0], limit)?;
        goes_on = graph.logical_and(is_below, goes_on)?;
    }
    let condition = graph.traced(mark, vec![goes_on]);
    let start = graph.mark();
    let (iteration, go) = (scope.parameters[0], scope.parameters[1]);
    let (go, results) = call_step(call, iteration, go, &scope.parameters[2..])?;
    let graph = call.graph();
    let one = index(graph, 1)?;
    let mut next = vec![graph.add(iteration, one)?, graph.reshape(go, Shape::scalar())?];
    next.extend(results.state);
    let body = graph.traced(start, next);
    let results = graph.while_loop(mark, &scope, &all, condition, body)?;
    Ok(results[2..].to_vec())
}

fn unroll(
    call: &mut Call<'_, '_, '_>,
    count: usize,
    mut state: Vec<TracedValue>,
    stacked: usize,
) -> Built<Vec<TracedValue>> {
    let mut elements = vec![Vec::new(); stacked];
    let mut go = call.graph().scalar_constant(Scalar::from(true), DType::Pred)?;
    for iteration in 0..count {
        let iteration = index(call.graph(), iteration)?;
        let results;
        (go, state, results) = call_iteration(call, iteration, go, &state)?;
        for (all, element) in elements.iter_mut().zip(results) {
            all.push(call.graph().new_axis(element, 0, None)?);
        }
        match known_truth(call, go)? {
            Some(true) => {}
            Some(false) => break,
            None => return unsupported(DATA_ITERATIONS),
        }
    }
    for all in elements {
        state.push(TracedValue::Tensor(call.graph().concatenate(&all, 0)?));
    }
    Ok(state)
}

/// The inputs are the initial state, then the sequences.
fn scan(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let sequences = usize::try_from(call.int("num_scan_inputs", 0)?).unwrap_or(0);
    if call.version < 9 {
        return unsupported("scans with a batch axis are not supported");
    }
    let mut initial = call.inputs_from(0)?;
    if sequences == 0 || sequences > initial.len() {
        return invalid(format!("num_scan_inputs: must be from 1 to {}", initial.len()));
    }
    let inputs = initial.split_off(initial.len() - sequences);
    let list =
        |call: &Call<'_, '_, '_>, name: &str| Ok::<_, Fault>(call.ints(name)?.unwrap_or_default());
    let axes = list(call, "scan_input_axes")?;
    let backward = list(call, "scan_input_directions")?;
    let output_axes = list(call, "scan_output_axes")?;
    let reversed: Vec<bool> =
        list(call, "scan_output_directions")?.iter().map(|&direction| direction == 1).collect();
    let mut count = None;
    let mut moved = Vec::with_capacity(sequences);
    for (position, &x) in inputs.iter().enumerate() {
        let axis = axes.get(position).copied().unwrap_or(0);
        let at = call.axis(axis, call.rank(x))?;
        let size = call.shape(x)[at];
        if *count.get_or_insert(size) != size {
            return Err("inputs: must have sequences of equal lengths".into());
        }
        let graph = call.graph();
        let mut first = graph.move_axes(x, &[axis], &[0])?;
        if backward.get(position) == Some(&1) {
            first = graph.reverse(first, Some(&[0]))?;
        }
        moved.push(first);
    }
    let count = count.unwrap_or(0);
    let LoopResults { mut state, stacked } =
        run_counted_loop(call, count, &initial, &reversed, &mut |call, iteration, state| {
            let mut inputs = state.to_vec();
            for &x in &moved {
                inputs.push(element_at(call, x, iteration)?);
            }
            let mut outputs =
                expect_tensors(call_body(call, "body", &to_values(&inputs))?, "body")?;
            if outputs.len() < state.len() {
                return Err("body: must return the state".into());
            }
            let stacked = outputs.split_off(state.len());
            Ok(LoopResults { state: outputs, stacked })
        })?;
    for (position, x) in stacked.into_iter().enumerate() {
        let axis = output_axes.get(position).copied().unwrap_or(0);
        state.push(call.graph().move_axes(x, &[0], &[axis])?);
    }
    Ok(state)
}
