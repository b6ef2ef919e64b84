//! The derivative of a program as a program: which way it goes, and what of it can be computed
//! before anything goes through it.

use std::sync::Arc;

use nxla_expr::{ExprId, Family, Graph, Op, Program, TensorType};

use crate::demand::Demand;
use crate::error::Result;
use crate::push::jvp;
use crate::region::{Hooks, quiet_program, splice};
use crate::sweep::values_and_vjp;

/// The type of how a value changes, and of its cotangent, as callers pass them: a float in place
/// of an integer.
fn change_type(ty: &TensorType) -> TensorType {
    TensorType { dtype: ty.dtype.to_floating(), ..ty.clone() }
}

/// What of a program is differentiated; the rest is captured, or passed on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sides {
    /// The first of its inputs, this many.
    pub inputs: usize,
    /// The first of its outputs, this many.
    pub outputs: usize,
}

/// The program `(inputs…, tangents of the first inputs…) -> (outputs…, tangents of the first
/// outputs…)`. Hooks of the program are hooks of this one.
///
/// # Errors
/// As for [`jvp`].
pub fn pushforward(program: &Program, sides: Sides) -> Result<Program> {
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

/// The program `(inputs…, cotangents of the first outputs…) -> (outputs…, cotangents of the first
/// inputs…)`. Hooks of the program are not called by it.
///
/// # Errors
/// As for [`vjp`](crate::vjp).
pub fn pullback(program: &Program, sides: Sides) -> Result<Program> {
    let mut graph = Graph::with_options(program.graph().options());
    let mut types = program.inputs().to_vec();
    types.extend(program.output_types().take(sides.outputs).map(change_type));
    let parameters = parameters(&mut graph, &types);
    let (inputs, cotangents) = parameters.split_at(program.inputs().len());
    let arguments: Vec<Option<ExprId>> = inputs.iter().copied().map(Some).collect();
    let all: Vec<usize> = (0..program.outputs().len()).collect();
    let outputs = splice(program, &mut graph, &arguments, &all, Hooks::Drop)?;
    let differentiated = (&outputs[..sides.outputs], cotangents);
    let wrt = &inputs[..sides.inputs];
    let (mut results, found) = values_and_vjp(&mut graph, &outputs, differentiated, wrt)?;
    results.extend(found);
    Ok(Program::new(&graph, types, &results)?)
}

fn parameters(graph: &mut Graph, types: &[TensorType]) -> Vec<ExprId> {
    types.iter().enumerate().map(|(at, ty)| graph.parameter(at, ty.clone())).collect()
}

/// A program without its hooks: it computes again what ran before. Runtime calls stay, since they
/// give values.
///
/// # Errors
/// None; the result is fallible like that of every builder.
pub fn without_hooks(program: &Arc<Program>) -> Result<Arc<Program>> {
    quiet_program(program)
}

/// A program cut in two: what does not depend on its last inputs, and what does.
#[derive(Clone, Debug)]
pub struct Halves {
    /// `first inputs… -> residuals…`: all that the other half needs to know.
    pub known: Arc<Program>,
    /// `(residuals…, last inputs…) -> outputs…`.
    pub rest: Arc<Program>,
}

/// Cuts some outputs of a program in two at what its last inputs, those from `first` on, reach.
/// The derivative of a function at one point can be applied many times then, without computing the
/// function again.
///
/// # Errors
/// None; the result is fallible like that of every builder.
pub fn halve(program: &Program, first: usize, outputs: &[usize]) -> Result<Halves> {
    let graph = program.graph();
    let wanted: Vec<ExprId> = outputs.iter().map(|&output| program.outputs()[output]).collect();
    let reachable = graph.reachable(&wanted);
    let mut varies = vec![false; graph.len()];
    for &parameter in &program.parameters()[first..] {
        varies[parameter.index()] = true;
    }
    let mut residuals: Vec<ExprId> = Vec::new();
    let mut is_residual = vec![false; graph.len()];
    let mut keep = |id: ExprId, residuals: &mut Vec<ExprId>| {
        let is_free = graph.operands(id).is_empty() && !matches!(graph.op(id), Op::Parameter(_));
        if !is_free && !std::mem::replace(&mut is_residual[id.index()], true) {
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
        }
    }
    for &output in wanted.iter().filter(|output| !varies[output.index()]) {
        keep(output, &mut residuals);
    }
    let (known, rest) = program.inputs().split_at(first);
    let (own, last) = program.parameters().split_at(first);
    let mut types: Vec<TensorType> =
        residuals.iter().map(|&id| graph.tensor_type(id).clone()).collect();
    types.extend_from_slice(rest);
    let given: Vec<ExprId> = residuals.iter().chain(last).copied().collect();
    Ok(Halves {
        known: Arc::new(part(graph, own, known.to_vec(), &residuals)?),
        rest: Arc::new(part(graph, &given, types, &wanted)?),
    })
}

/// A program cut in two before anything is computed: all that the other half needs to know are those
/// of the first inputs that it uses.
///
/// # Errors
/// None; the result is fallible like that of every builder.
pub(crate) fn whole(program: &Program, first: usize) -> Result<Halves> {
    let used = program.used_inputs();
    let (own, last) = program.parameters().split_at(first);
    let residuals: Vec<ExprId> =
        own.iter().zip(&used).filter(|(_, used)| **used).map(|(&id, _)| id).collect();
    let given: Vec<ExprId> = residuals.iter().chain(last).copied().collect();
    let graph = program.graph();
    let types = given.iter().map(|&id| graph.tensor_type(id).clone()).collect();
    Ok(Halves {
        known: Arc::new(part(graph, own, program.inputs()[..first].to_vec(), &residuals)?),
        rest: Arc::new(part(graph, &given, types, program.outputs())?),
    })
}

/// A program cut in two, of which the second half computes again what is not kept of the first.
pub(crate) struct Cut {
    /// `first inputs… -> (first outputs…, what is kept…)`.
    pub(crate) known: Arc<Program>,
    /// `(what is kept…, all inputs…) -> last outputs…`.
    pub(crate) rest: Arc<Program>,
    /// How many values are kept.
    pub(crate) residuals: usize,
}

/// Cuts a program in two at those values that do not change with its last inputs, those from
/// `first` on, and that are to be kept: `keeps` is asked for each. A note says it of the value behind
/// it. Of these only such are kept as the outputs from `values` on need; the first outputs do not
/// change with the last inputs.
///
/// # Errors
/// None; the result is fallible like that of every builder.
pub(crate) fn cut(
    program: &Program,
    first: usize,
    values: usize,
    keeps: &mut dyn FnMut(&Graph, ExprId) -> bool,
) -> Result<Cut> {
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
        // What a note stands on may be what the derivative needs.
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
    Ok(Cut {
        known: Arc::new(part(graph, own, program.inputs()[..first].to_vec(), &kept)?),
        rest: Arc::new(part(graph, &given, types, wanted)?),
        residuals: residuals.len(),
    })
}

/// The first outputs of a program, which depend on its first inputs alone.
///
/// # Errors
/// If an output depends on another input.
pub fn restrict(program: &Program, inputs: usize, outputs: usize) -> Result<Program> {
    let types = program.inputs()[..inputs].to_vec();
    let (given, outputs) = (&program.parameters()[..inputs], &program.outputs()[..outputs]);
    part(program.graph(), given, types, outputs)
}

/// The program of some nodes in terms of others, which become its inputs.
pub(crate) fn part(
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
    for id in from.ids() {
        if !needed[id.index()] || made[id.index()].is_some() {
            continue;
        }
        let new = |operand: &ExprId| made[operand.index()].expect("operands come first");
        let operands: Vec<ExprId> = from.operands(id).iter().map(new).collect();
        made[id.index()] = Some(graph.make(from.op(id).clone(), &operands)?);
    }
    let new = |output: &ExprId| made[output.index()].expect("outputs are needed");
    let outputs: Vec<ExprId> = outputs.iter().map(new).collect();
    Ok(Program::new(&graph, types, &outputs)?)
}

/// Whether each of the first outputs of a program, as far as it changes with the first inputs, changes
/// element by element with the one of its own position: then its Jacobian is diagonal.
pub fn is_elementwise(program: &Program, sides: Sides) -> bool {
    let graph = program.graph();
    let wanted: Vec<bool> = (0..program.outputs().len()).map(|at| at < sides.outputs).collect();
    let demand = Demand::new(program, &wanted);
    // For each node, the only input that it changes with, element by element.
    let mut follows: Vec<Option<usize>> = vec![None; graph.len()];
    let mut mixed = vec![false; graph.len()];
    for (input, &parameter) in program.parameters()[..sides.inputs].iter().enumerate() {
        follows[parameter.index()] = Some(input);
    }
    for id in graph.ids().filter(|&id| demand.contains(id)) {
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
        match alone {
            true => follows[id.index()] = Some(first),
            false => mixed[id.index()] = true,
        }
    }
    program.outputs()[..sides.outputs].iter().enumerate().all(|(at, output)| {
        !mixed[output.index()] && follows[output.index()].is_none_or(|input| input == at)
    })
}
