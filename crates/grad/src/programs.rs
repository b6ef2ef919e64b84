//! Derivatives of programs as programs, and partial evaluation of programs.

use std::sync::Arc;

use nxla_expr::{ExprId, Family, Graph, Op, Program, SourceMap, TensorType};

use crate::builder::parameters;
use crate::error::Result;
use crate::forward::jvp;
use crate::needed::NeededTangents;
use crate::region::{Hooks, splice_all};
use crate::reverse::values_and_vjp;

/// Returns the type of a tangent or cotangent at the public interface: a float dtype for an
/// integer.
fn change_type(ty: &TensorType) -> TensorType {
    TensorType { dtype: ty.dtype.to_floating(), ..ty.clone() }
}

/// The leading inputs and outputs of a program that are differentiated; others are constants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DiffCounts {
    /// The number of differentiated inputs.
    pub inputs: usize,
    /// The number of differentiated outputs.
    pub outputs: usize,
}

/// Builds the program `(inputs…, tangents of the differentiated inputs…) -> (outputs…, tangents of
/// the differentiated outputs…)`. The hooks of `program` are hooks of the result.
///
/// # Errors
/// Returns the errors of [`jvp`].
pub fn pushforward(program: &Program, sides: DiffCounts) -> Result<Program> {
    let mut graph = Graph::with_options(program.graph().options());
    let mut types = program.inputs().to_vec();
    types.extend(program.inputs()[..sides.inputs].iter().map(change_type));
    let parameters = parameters(&mut graph, &types);
    let (inputs, tangents) = parameters.split_at(program.inputs().len());
    let mut directions: Vec<Option<ExprId>> = tangents.iter().copied().map(Some).collect();
    directions.resize(inputs.len(), None);
    let (mut outputs, changes) = jvp(&mut graph, program, inputs, &directions, sides.outputs)?;
    outputs.extend(changes);
    Ok(Program::new(&graph, types, &outputs)?)
}

/// Builds the program `(inputs…, cotangents of the differentiated outputs…) -> (outputs…,
/// cotangents of the differentiated inputs…)`. The result has no hooks.
///
/// # Errors
/// Returns the errors of [`vjp`](crate::vjp).
pub fn pullback(program: &Program, sides: DiffCounts) -> Result<Program> {
    let given: Vec<usize> = (0..sides.outputs).collect();
    let cotangents = program.output_types().take(sides.outputs).map(change_type).collect();
    let wanted: Vec<usize> = (0..sides.inputs).collect();
    pullback_of(program, (&given, cotangents), &wanted)
}

/// Builds the program `(inputs…, cotangents of the given outputs…) -> (outputs…, cotangents of the
/// wanted inputs…)`. The result has no hooks.
pub(crate) fn pullback_of(
    program: &Program,
    (given, cotangents): (&[usize], Vec<TensorType>),
    wanted: &[usize],
) -> Result<Program> {
    let mut graph = Graph::with_options(program.graph().options());
    let mut types = program.inputs().to_vec();
    types.extend(cotangents);
    let parameters = parameters(&mut graph, &types);
    let (inputs, seeds) = parameters.split_at(program.inputs().len());
    let arguments: Vec<Option<ExprId>> = inputs.iter().copied().map(Some).collect();
    let outputs = splice_all(program, &mut graph, &arguments, Hooks::Drop)?;
    let given: Vec<ExprId> = given.iter().map(|&at| outputs[at]).collect();
    let wrt: Vec<ExprId> = wanted.iter().map(|&at| inputs[at]).collect();
    let (mut results, found) = values_and_vjp(&mut graph, &outputs, (&given, seeds), &wrt)?;
    results.extend(found);
    Ok(Program::new(&graph, types, &results)?)
}

/// A program split by partial evaluation into a part that depends on its leading inputs only, and
/// the remaining part.
#[derive(Clone, Debug)]
pub struct PartialEval {
    /// `leading inputs… -> residuals…`.
    pub known: Arc<Program>,
    /// `(residuals…, trailing inputs…) -> outputs…`.
    pub unknown: Arc<Program>,
}

/// Splits a program by partial evaluation: inputs before index `first` are known, the others are
/// unknown. The known part computes every residual, so a derivative at one point can be applied
/// many times without recomputing the function.
///
/// # Errors
/// Returns the error of [`Graph::make`], which accepts every node of a well-typed program.
pub fn partial_eval(program: &Program, first: usize, outputs: &[usize]) -> Result<PartialEval> {
    partial_eval_with(program, first, outputs, |_| false)
}

/// The same as [`partial_eval`], but the unknown part recomputes residuals that follow from other
/// residuals by ops that `is_cheap` accepts. Operands of products remain residuals, because a
/// product over all iterations of a loop needs their rows.
///
/// # Errors
/// Returns the error of [`Graph::make`], which accepts every node of a well-typed program.
pub(crate) fn partial_eval_with(
    program: &Program,
    first: usize,
    outputs: &[usize],
    is_cheap: impl Fn(&Op) -> bool,
) -> Result<PartialEval> {
    let graph = program.graph();
    let wanted: Vec<ExprId> = outputs.iter().map(|&output| program.outputs()[output]).collect();
    let reachable = graph.reachable(&wanted);
    let mut varies = vec![false; graph.len()];
    for &parameter in &program.parameters()[first..] {
        varies[parameter.index()] = true;
    }
    let mut residuals: Vec<ExprId> = Vec::new();
    let (mut is_residual, mut is_factor) = (vec![false; graph.len()], vec![false; graph.len()]);
    let is_constant =
        |id| graph.operands(id).is_empty() && !matches!(graph.op(id), Op::Parameter(_));
    let mut keep = |id: ExprId, residuals: &mut Vec<ExprId>| {
        if !is_constant(id) && !std::mem::replace(&mut is_residual[id.index()], true) {
            residuals.push(id);
        }
    };
    for id in graph.ids().filter(|&id| reachable.contains(id)) {
        let operands = graph.operands(id);
        if !operands.iter().any(|operand| varies[operand.index()]) {
            continue;
        }
        varies[id.index()] = true;
        for &operand in operands.iter().filter(|operand| !varies[operand.index()]) {
            keep(operand, &mut residuals);
            is_factor[operand.index()] |= matches!(graph.op(id), Op::Dot(_));
        }
    }
    for &output in wanted.iter().filter(|output| !varies[output.index()]) {
        keep(output, &mut residuals);
    }
    // The values that the unknown part has as a residual, or recomputes.
    let mut is_available = vec![false; graph.len()];
    for id in graph.ids() {
        let (op, operands) = (graph.op(id), graph.operands(id));
        let follows = !operands.is_empty()
            && !is_factor[id.index()]
            && is_cheap(op)
            && operands.iter().all(|operand| is_available[operand.index()]);
        is_available[id.index()] = is_constant(id) || follows || is_residual[id.index()];
        is_residual[id.index()] &= !follows;
    }
    residuals.retain(|id| is_residual[id.index()]);
    split_at(program, first, &residuals, &wanted)
}

/// Splits a program without precomputing anything: the residuals are the leading inputs that the
/// program uses.
///
/// # Errors
/// Returns the error of [`Graph::make`], which accepts every node of a well-typed program.
pub(crate) fn recompute_all(program: &Program, first: usize) -> Result<PartialEval> {
    let used = program.used_inputs();
    let residuals: Vec<ExprId> = program.parameters()[..first]
        .iter()
        .zip(&used)
        .filter(|(_, used)| **used)
        .map(|(&id, _)| id)
        .collect();
    split_at(program, first, &residuals, program.outputs())
}

/// Splits a program at values that follow from its leading inputs.
fn split_at(
    program: &Program,
    first: usize,
    residuals: &[ExprId],
    outputs: &[ExprId],
) -> Result<PartialEval> {
    let graph = program.graph();
    let (known, unknown) = program.parameters().split_at(first);
    let given: Vec<ExprId> = residuals.iter().chain(unknown).copied().collect();
    let types = given.iter().map(|&id| graph.tensor_type(id).clone()).collect();
    Ok(PartialEval {
        known: Arc::new(extract(graph, known, program.inputs()[..first].to_vec(), residuals)?),
        unknown: Arc::new(extract(graph, &given, types, outputs)?),
    })
}

/// A program split into two parts, where the second part recomputes values that are not residuals.
pub(crate) struct ResidualSplit {
    /// `leading inputs… -> (leading outputs…, residuals…)`.
    pub(crate) known: Arc<Program>,
    /// `(residuals…, all inputs…) -> trailing outputs…`.
    pub(crate) rest: Arc<Program>,
    /// The number of residuals.
    pub(crate) residuals: usize,
}

/// Splits a program at chosen residuals. A value can be a residual if it does not depend on the
/// inputs from index `first` on, if `keeps` accepts it, and if an output from index `values` on
/// needs it. For a note, the annotated value is the residual. The outputs before `values` must not
/// depend on the inputs from `first` on.
///
/// # Errors
/// Returns an error if a node cannot be recreated.
pub(crate) fn split_at_residuals(
    program: &Program,
    first: usize,
    values: usize,
    keeps: &mut dyn FnMut(&Graph, ExprId) -> bool,
) -> Result<ResidualSplit> {
    let graph = program.graph();
    let mut varies = vec![false; graph.len()];
    for &parameter in &program.parameters()[first..] {
        varies[parameter.index()] = true;
    }
    let mut marked = vec![false; graph.len()];
    for id in graph.ids() {
        let operands = graph.operands(id);
        varies[id.index()] |= operands.iter().any(|operand| varies[operand.index()]);
        if varies[id.index()] || operands.is_empty() || !keeps(graph, id) {
            continue;
        }
        // The derivative may need the operand of the note instead of the note itself.
        let behind = matches!(graph.op(id), Op::Metadata(_));
        for &id in if behind { operands } else { std::slice::from_ref(&id) } {
            marked[id.index()] =
                !graph.operands(id).is_empty() && graph.ty(id).as_tensor().is_some();
        }
    }
    let wanted = &program.outputs()[values..];
    let mut needed = vec![false; graph.len()];
    for output in wanted {
        needed[output.index()] = true;
    }
    let mut residuals = Vec::new();
    for id in graph.ids().rev() {
        if !needed[id.index()] {
            continue;
        }
        if marked[id.index()] {
            residuals.push(id);
            continue;
        }
        for operand in graph.operands(id) {
            needed[operand.index()] = true;
        }
    }
    let own = &program.parameters()[..first];
    let kept: Vec<ExprId> = program.outputs()[..values].iter().chain(&residuals).copied().collect();
    let residual_types = residuals.iter().map(|&id| graph.tensor_type(id).clone());
    let types = residual_types.chain(program.inputs().iter().cloned()).collect();
    let given: Vec<ExprId> = residuals.iter().chain(program.parameters()).copied().collect();
    Ok(ResidualSplit {
        known: Arc::new(extract(graph, own, program.inputs()[..first].to_vec(), &kept)?),
        rest: Arc::new(extract(graph, &given, types, wanted)?),
        residuals: residuals.len(),
    })
}

/// Returns the program of the leading outputs as a function of the leading inputs.
///
/// # Errors
/// Returns an error if one of the outputs depends on another input.
pub fn restrict(program: &Program, inputs: usize, outputs: usize) -> Result<Program> {
    let types = program.inputs()[..inputs].to_vec();
    let (given, outputs) = (&program.parameters()[..inputs], &program.outputs()[..outputs]);
    extract(program.graph(), given, types, outputs)
}

/// Returns the program that computes `outputs` from the nodes `given`, which become its inputs.
pub(crate) fn extract(
    from: &Graph,
    given: &[ExprId],
    types: Vec<TensorType>,
    outputs: &[ExprId],
) -> Result<Program> {
    let mut graph = Graph::with_options(from.options());
    let parameters = parameters(&mut graph, &types);
    let mut made: Vec<Option<ExprId>> = vec![None; from.len()];
    for (id, parameter) in given.iter().zip(parameters) {
        made[id.index()] = Some(parameter);
    }
    let mut needed = vec![false; from.len()];
    for &output in outputs {
        needed[output.index()] = true;
    }
    for id in from.ids().rev() {
        if needed[id.index()] && made[id.index()].is_none() {
            for operand in from.operands(id) {
                needed[operand.index()] = true;
            }
        }
    }
    let mut sources = SourceMap::default();
    for id in from.ids() {
        if !needed[id.index()] || made[id.index()].is_some() {
            continue;
        }
        graph.copy_source(from, id, &mut sources);
        let new = |operand: &ExprId| made[operand.index()].expect("operands come first");
        let operands: Vec<ExprId> = from.operands(id).iter().map(new).collect();
        made[id.index()] = Some(graph.make(from.op(id).clone(), &operands)?);
    }
    let new = |output: &ExprId| made[output.index()].expect("outputs are needed");
    let outputs: Vec<ExprId> = outputs.iter().map(new).collect();
    Ok(Program::new(&graph, types, &outputs)?)
}

/// Returns whether the Jacobian of the differentiated outputs is diagonal: output `i` may depend on
/// input `i` only, element by element.
pub fn is_elementwise(program: &Program, sides: DiffCounts) -> bool {
    let graph = program.graph();
    let wanted: Vec<bool> = (0..program.outputs().len()).map(|at| at < sides.outputs).collect();
    let needed = NeededTangents::new(program, &wanted);
    // For each node, the only input on which the node depends, element by element.
    let mut follows: Vec<Option<usize>> = vec![None; graph.len()];
    let mut mixed = vec![false; graph.len()];
    for (input, &parameter) in program.parameters()[..sides.inputs].iter().enumerate() {
        follows[parameter.index()] = Some(input);
    }
    for id in graph.ids().filter(|&id| needed.contains(id)) {
        let operands = graph.operands(id);
        if operands.iter().any(|operand| mixed[operand.index()]) {
            mixed[id.index()] = true;
            continue;
        }
        let mut inputs = operands.iter().filter_map(|operand| follows[operand.index()]);
        let Some(first) = inputs.next() else { continue };
        let keeps_shape = |operand: &&ExprId| {
            follows[operand.index()].is_none()
                || graph.ty(**operand).parts()[0].shape == *graph.shape(id)
        };
        let op = graph.op(id);
        let is_note =
            matches!(op, Op::Metadata(it) if operands.len() == 1 && it.custom_grad.is_none());
        let is_plain =
            op.family() == Family::Elementwise || matches!(op, Op::Reshape(_)) || is_note;
        let alone = is_plain
            && inputs.all(|input| input == first)
            && operands.iter().all(|operand| keeps_shape(&operand));
        if alone { follows[id.index()] = Some(first) } else { mixed[id.index()] = true }
    }
    program.outputs()[..sides.outputs].iter().enumerate().all(|(at, output)| {
        !mixed[output.index()] && follows[output.index()].is_none_or(|input| input == at)
    })
}
