//! Folds with a function of the user's, as programs of ops that have derivatives.
//!
//! A fold whose function is a sum, a product or an extremum is that reduction, combined with the
//! initial value. Any other one is a loop over the elements in their order, which carries an
//! accumulator for each result. That takes them one after the other, where the fold itself might not,
//! and stores what the derivative of each step has to know.

use nxla_expr::batch::Batched;
use nxla_expr::{
    Axes, BinaryOp, ExprId, Graph, Op, Padding, Program, Reduce, ReduceFun, ReduceOp, Replay,
    Stack, TensorType, WindowFun, WindowOp,
};
use nxla_tensor::Shape;

use super::control::repeat::{add, build_loop, integer, read_row};
use super::control::through;
use super::window::Offsets;
use crate::emit::{self, reduced_axes, reshape, transpose};
use crate::error::Result;
use crate::push::{Dual, Step, push};
use crate::region::quiet_program;
use crate::sweep::{Sweep, Visit};

/// What a fold is over: axes, or windows.
pub(super) enum Fold<'a> {
    Axes(&'a ReduceFun),
    Windows(&'a WindowFun),
}

impl Fold<'_> {
    /// The rule, by way of the program.
    pub(super) fn rule(&self, sweep: &mut Sweep<'_>, visit: &Visit) -> Result<()> {
        if sweep.graph.tensor_type(visit.id).shape.size() == 0 {
            return Ok(());
        }
        let mut operands = visit.operands.to_vec();
        for operand in operands.iter_mut().take(2) {
            *operand = emit::plain(sweep.graph, *operand)?;
        }
        let program = self.program(sweep.graph, &operands, visit.id)?;
        through(sweep, visit, &program, &operands)
    }

    /// How the result changes, by way of the program.
    pub(super) fn tangent(&self, step: &mut Step<'_>) -> Result<Option<ExprId>> {
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
        Ok(push(step.graph, &program, &duals, &[true])?[0].tangent)
    }

    /// The program of a node with these operands.
    fn program(&self, around: &Graph, operands: &[ExprId], node: ExprId) -> Result<Program> {
        let types: Vec<TensorType> =
            operands.iter().map(|&id| around.tensor_type(id).clone()).collect();
        let shape = around.tensor_type(node).shape.clone();
        let mut graph = Graph::with_options(around.options());
        let parameters: Vec<ExprId> =
            types.iter().enumerate().map(|(at, ty)| graph.parameter(at, ty.clone())).collect();
        let result = match self {
            Fold::Axes(fold) => over_axes(&mut graph, fold, &parameters)?,
            Fold::Windows(fold) => over_windows(&mut graph, fold, &parameters, &shape)?,
        };
        let result = emit::cast(&mut graph, result, around.tensor_type(node).dtype)?;
        let result = reshape(&mut graph, result, shape)?;
        Ok(Program::new(&graph, types, &[result])?)
    }
}

/// The op that a function of an element and an accumulator is, if it is one that has no order.
fn monoid(function: &Program) -> Option<BinaryOp> {
    let graph = function.graph();
    let output = function.outputs()[0];
    let Op::Binary(op) = graph.op(output) else { return None };
    let own = &function.parameters()[..2];
    let takes_both = own.iter().all(|parameter| graph.operands(output).contains(parameter));
    let is_one = matches!(op, BinaryOp::Add | BinaryOp::Multiply | BinaryOp::Max | BinaryOp::Min);
    (takes_both && is_one && function.effects().is_empty()).then_some(*op)
}

fn over_axes(graph: &mut Graph, fold: &ReduceFun, parameters: &[ExprId]) -> Result<ExprId> {
    let (x, initial) = (parameters[0], parameters[1]);
    let shape = graph.shape(x).clone();
    let axes = reduced_axes(&fold.reduce, shape.rank());
    let uniform = monoid(&fold.function).and_then(|op| Some((op, reduction_of(op)?)));
    if let Some((op, reduction)) = uniform {
        let attributes = Reduce { axes: Some(axes), keep_axes: false };
        let reduced = graph.make(Op::Reduce(reduction, Box::new(attributes)), &[x])?;
        return Ok(graph.binary(op, reduced, initial)?);
    }
    let kept: Axes = (0..shape.rank()).filter(|axis| !axes.contains(axis)).collect();
    let sizes: Shape = kept.iter().map(|&axis| shape[axis]).collect();
    let count = axes.iter().map(|&axis| shape[axis]).product();
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
    // The padding holds the initial value, which is folded like an element.
    let padding = fold.window.padding.iter().map(|&(low, high)| Padding { low, high, interior: 0 });
    let initial = emit::cast(graph, initial, graph.dtype(x))?;
    let padded = graph.make(Op::Pad(padding.collect()), &[x, initial])?;
    let uniform = monoid(&fold.function).and_then(|op| Some((op, window_of(op)?)));
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

fn reduction_of(op: BinaryOp) -> Option<ReduceOp> {
    match op {
        BinaryOp::Add => Some(ReduceOp::Sum),
        BinaryOp::Multiply => Some(ReduceOp::Product),
        BinaryOp::Max => Some(ReduceOp::Max),
        BinaryOp::Min => Some(ReduceOp::Min),
        _ => None,
    }
}

fn window_of(op: BinaryOp) -> Option<WindowOp> {
    match op {
        BinaryOp::Add => Some(WindowOp::Sum),
        BinaryOp::Multiply => Some(WindowOp::Product),
        BinaryOp::Max => Some(WindowOp::Max),
        BinaryOp::Min => Some(WindowOp::Min),
        _ => None,
    }
}

/// The loop: each row has an element for each of the results.
fn run(
    graph: &mut Graph,
    function: &std::sync::Arc<Program>,
    (rows, count): (ExprId, usize),
    sizes: &Shape,
    parameters: &[ExprId],
) -> Result<ExprId> {
    let function = quiet_program(function)?;
    let (element, accumulator) = (&function.inputs()[0], &function.inputs()[1]);
    let rows = emit::cast(graph, rows, element.dtype)?;
    let initial = emit::cast(graph, parameters[1], accumulator.dtype)?;
    let initial = emit::broadcast(graph, initial, sizes.clone(), Axes::default())?;
    let row = TensorType::new(element.dtype, sizes.clone());
    let start = integer(graph, 0)?;
    let results = build_loop(
        graph,
        Replay::default(),
        &[start, initial],
        |graph, state| {
            let count = integer(graph, emit::signed(count))?;
            Ok(graph.less(state[0], count)?)
        },
        |graph, state| {
            let element = read_row(graph, rows, state[0], &row)?;
            let mut arguments = vec![Batched::each(element), Batched::each(state[1])];
            arguments.extend(parameters[2..].iter().copied().map(Batched::shared));
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
            let next = emit::cast(graph, next, graph.dtype(state[1]))?;
            Ok(vec![add(graph, state[0], 1)?, next])
        },
    )?;
    Ok(results[1])
}
