//! Derivatives of folds with a user-defined function, through programs of differentiable ops.
//!
//! A fold whose function is a sum, a product or an extremum becomes the corresponding reduction.
//! Any other fold becomes a loop over the elements in order, with an accumulator for each result.
//! The loop is sequential, even where the fold itself is not, and stores the residuals of each
//! iteration.

use nxla_expr::batch::Batched;
use nxla_expr::{
    Axes, BinaryOp, ExprId, Graph, Op, Padding, Program, Reduce, ReduceFun, Replay, Stack,
    TensorType, WindowFun,
};
use nxla_tensor::{Shape, to_i64};

use super::control::differentiate_program;
use super::control::while_loop::{add, integer, read_row};
use super::window::Offsets;
use crate::builder::{self, reshape, transpose};
use crate::error::{GradError, Result};
use crate::forward::{Dual, JvpStep, jvp_program};
use crate::region::strip_effects;
use crate::reverse::{ReversePass, Visit};

/// The elements that a fold combines: those along axes or those in windows.
pub(crate) enum Fold<'a> {
    Axes(&'a ReduceFun),
    Windows(&'a WindowFun),
}

impl Fold<'_> {
    /// Adds the contributions to the operands, through the program of the fold.
    pub(crate) fn rule(&self, pass: &mut ReversePass<'_>, visit: &Visit) -> Result<()> {
        if pass.graph.tensor_type(visit.id).shape.size() == 0 {
            return Ok(());
        }
        let mut operands = visit.operands.to_vec();
        for operand in operands.iter_mut().take(2) {
            *operand = builder::strip_names(pass.graph, *operand)?;
        }
        let program = self.program(pass.graph, &operands, visit.id)?;
        differentiate_program(pass, visit, &program, &operands)
    }

    /// Returns the tangent of the result, through the program of the fold.
    pub(crate) fn tangent(&self, step: &mut JvpStep<'_>) -> Result<Option<ExprId>> {
        if step.graph.tensor_type(step.node).shape.size() == 0 {
            return Ok(None);
        }
        let mut duals = Vec::with_capacity(step.count());
        for position in 0..step.count() {
            let value = match position {
                0 | 1 => step.x(position)?,
                _ => step.value(position),
            };
            duals.push(Dual { value, tangent: step.dx(position) });
        }
        let operands: Vec<ExprId> = duals.iter().map(|dual| dual.value).collect();
        let program = self.program(step.graph, &operands, step.node)?;
        Ok(jvp_program(step.graph, &program, &duals, &[true])?[0].tangent)
    }

    /// Builds the program that computes the result of the fold from its operands.
    fn program(&self, around: &Graph, operands: &[ExprId], node: ExprId) -> Result<Program> {
        let types: Vec<TensorType> =
            operands.iter().map(|&id| around.tensor_type(id).clone()).collect();
        let shape = around.tensor_type(node).shape.clone();
        let mut graph = Graph::with_options(around.options());
        let parameters = builder::parameters(&mut graph, &types);
        let result = match self {
            Fold::Axes(fold) => over_axes(&mut graph, fold, &parameters)?,
            Fold::Windows(fold) => over_windows(&mut graph, fold, &parameters, &shape)?,
        };
        let result = builder::cast(&mut graph, result, around.tensor_type(node).dtype)?;
        let result = reshape(&mut graph, result, shape)?;
        Ok(Program::new(&graph, types, &[result])?)
    }
}

/// Returns the binary op that the function computes.
fn binary_op(function: &Program) -> Option<BinaryOp> {
    let graph = function.graph();
    let output = function.outputs()[0];
    let Op::Binary(op) = graph.op(output) else { return None };
    let own = &function.parameters()[..2];
    let takes_both = own.iter().all(|parameter| graph.operands(output).contains(parameter));
    (takes_both && function.effects().is_empty()).then_some(*op)
}

fn over_axes(graph: &mut Graph, fold: &ReduceFun, parameters: &[ExprId]) -> Result<ExprId> {
    let (x, initial) = (parameters[0], parameters[1]);
    let shape = graph.shape(x).clone();
    let axes = fold.reduce.axes_of(shape.rank());
    let count = shape.size_along(axes.iter().copied());
    let kept: Axes = (0..shape.rank()).filter(|axis| !axes.contains(axis)).collect();
    let sizes: Shape = kept.iter().map(|&axis| shape[axis]).collect();
    if count == 0 {
        return Ok(builder::broadcast(graph, initial, sizes, Axes::default())?);
    }
    let uniform = binary_op(&fold.function).and_then(|op| Some((op, op.reduction()?)));
    if let Some((op, reduction)) = uniform {
        let attributes = Reduce { axes: Some(axes), keep_axes: false };
        let reduced = graph.make(Op::Reduce(reduction, Box::new(attributes)), &[x])?;
        return Ok(graph.binary(op, reduced, initial)?);
    }
    let rows = transpose(graph, x, axes.iter().chain(&kept).copied().collect())?;
    let rows = reshape(graph, rows, std::iter::once(count).chain(sizes.iter().copied()).collect())?;
    run(graph, &fold.function, (rows, count), &sizes, parameters)
}

fn over_windows(
    graph: &mut Graph,
    fold: &WindowFun,
    parameters: &[ExprId],
    sizes: &Shape,
) -> Result<ExprId> {
    let (x, initial) = (parameters[0], parameters[1]);
    // Padding elements have the initial value and are folded like other elements.
    let padding = fold.window.padding.iter().map(|&(low, high)| Padding { low, high, interior: 0 });
    let initial = builder::cast(graph, initial, graph.dtype(x))?;
    let padded = graph.make(Op::Pad(padding.collect()), &[x, initial])?;
    let uniform = binary_op(&fold.function).and_then(|op| Some((op, op.window_reduction()?)));
    if let Some((op, reduction)) = uniform {
        let mut window = fold.window.clone();
        window.padding.fill((0, 0));
        let reduced = graph.make(Op::Window(reduction, Box::new(window)), &[padded])?;
        return Ok(graph.binary(op, reduced, initial)?);
    }
    let offsets = Offsets::new(&fold.window, graph.shape(x), sizes);
    let elements = offsets
        .iter()
        .map(|offset| offsets.take(graph, padded, &offset))
        .collect::<Result<Vec<_>>>()?;
    let rows = graph.make(Op::Stack(Box::new(Stack { axis: 0, name: None })), &elements)?;
    run(graph, &fold.function, (rows, elements.len()), sizes, parameters)
}

/// Runs the loop over the rows; each row holds an element for each result.
fn run(
    graph: &mut Graph,
    function: &std::sync::Arc<Program>,
    (rows, count): (ExprId, usize),
    sizes: &Shape,
    parameters: &[ExprId],
) -> Result<ExprId> {
    let function = strip_effects(function)?;
    let (element, accumulator) = (&function.inputs()[0], &function.inputs()[1]);
    let rows = builder::cast(graph, rows, element.dtype)?;
    let initial = builder::cast(graph, parameters[1], accumulator.dtype)?;
    let initial = builder::broadcast(graph, initial, sizes.clone(), Axes::default())?;
    let row = TensorType::new(element.dtype, sizes.clone());
    let start = integer(graph, 0)?;
    let results = graph.repeat_while::<GradError>(
        &[start, initial],
        Replay::default(),
        |graph, state| {
            let count = integer(graph, to_i64(count))?;
            Ok(graph.less(state[0], count)?)
        },
        |graph, state| {
            let element = read_row(graph, rows, state[0], &row)?;
            let mut arguments = vec![Batched::each(element), Batched::each(state[1])];
            arguments.extend(parameters[2..].iter().copied().map(Batched::from_shared));
            let next = match sizes.rank() {
                0 => {
                    let ids: Vec<ExprId> = arguments.iter().map(|argument| argument.id).collect();
                    function.inline(graph, &ids)?[0]
                }
                _ => {
                    let (from, outputs) = (function.graph(), function.outputs());
                    let found = graph.batch(from, outputs, &arguments, sizes)?;
                    graph.lift(found[0], sizes)?
                }
            };
            let next = builder::cast(graph, next, graph.dtype(state[1]))?;
            Ok(vec![add(graph, state[0], 1)?, next])
        },
    )?;
    Ok(results[1])
}
