//! The derivative of a function that does not keep what it computed.
//!
//! Going back, the node is a block again: it takes the arguments, what was kept, and the cotangents,
//! and computes in its own body what it needs to know between them. Being a program of its own it is
//! never merged with the nodes that computed the same before, and where programs are opened up, in
//! XLA, its kind says that nothing of it must be. What is kept becomes more results of the first
//! block, another one of which takes its place.

use std::sync::Arc;

use nxla_expr::{Block, BlockKind, ExprId, Graph, Keep, Op, Operands, Program, TensorType};

use super::{given, wanted};
use crate::emit;
use crate::error::Result;
use crate::maps::{Cut, cut};
use crate::region::{Hooks, narrow, splice};
use crate::sweep::{Sweep, Visit, values_and_vjp};

pub(super) fn rule(sweep: &mut Sweep<'_>, visit: &Visit, block: &Block, keep: &Keep) -> Result<()> {
    let body = &block.body;
    let (given, cotangents) = given(sweep, visit)?;
    let types = cotangents.iter().map(|&id| sweep.graph.tensor_type(id).clone());
    let wanted = wanted(sweep, visit);
    let whole = derivative(body, (&given, types.collect()), &wanted)?;
    let values = body.outputs().len();
    // A function with hooks has called them; what is kept would have to call them again.
    let keep = if body.effects().is_empty() { keep } else { &Keep::Nothing };
    let Cut { known, rest, residuals } =
        cut(&whole, body.inputs().len(), values, &mut |graph, id| keeps(keep, graph, id))?;
    let mut operands = Operands::new();
    if residuals > 0 {
        let kept = Block { body: known, ..block.clone() };
        let node = sweep.graph.make(Op::Block(Arc::new(kept)), &visit.operands)?;
        let parts = sweep.graph.parts(node)?;
        let (results, kept) = parts.split_at(values);
        let own = sweep.graph.parts(visit.id)?;
        sweep.replace(own.into_iter().zip(results.iter().copied()).collect());
        operands.extend_from_slice(kept);
    }
    operands.extend(visit.operands.iter().copied());
    operands.extend(cotangents);
    let used = rest.used_inputs();
    let rest = narrow(&rest, rest.inputs(), &used, Hooks::Keep)?;
    let operands: Operands =
        operands.iter().zip(&used).filter(|(_, used)| **used).map(|(&id, _)| id).collect();
    let kind = match &block.kind {
        BlockKind::Checkpoint { keep, .. } => {
            BlockKind::Checkpoint { keep: keep.clone(), again: true }
        }
        kind => kind.clone(),
    };
    let back = Block { kind, batch_axes: block.batch_axes, body: rest };
    let node = sweep.graph.make(Op::Block(Arc::new(back)), &operands)?;
    for (position, part) in wanted.into_iter().zip(sweep.graph.parts(node)?) {
        let part = emit::plain(sweep.graph, part)?;
        sweep.give(visit, position, part)?;
    }
    Ok(())
}

/// The program `(inputs…, cotangents of the given outputs…) -> (outputs…, cotangents of the wanted
/// inputs…)`.
fn derivative(
    body: &Program,
    (given, cotangents): (&[usize], Vec<TensorType>),
    wanted: &[usize],
) -> Result<Program> {
    let mut graph = Graph::with_options(body.graph().options());
    let types: Vec<TensorType> = body.inputs().iter().cloned().chain(cotangents).collect();
    let parameters: Vec<ExprId> =
        types.iter().enumerate().map(|(at, ty)| graph.parameter(at, ty.clone())).collect();
    let (inputs, seeds) = parameters.split_at(body.inputs().len());
    let arguments: Vec<Option<ExprId>> = inputs.iter().copied().map(Some).collect();
    let all: Vec<usize> = (0..body.outputs().len()).collect();
    let outputs = splice(body, &mut graph, &arguments, &all, Hooks::Drop)?;
    let given: Vec<ExprId> = given.iter().map(|&at| outputs[at]).collect();
    let wrt: Vec<ExprId> = wanted.iter().map(|&at| inputs[at]).collect();
    let (mut results, found) = values_and_vjp(&mut graph, &outputs, (&given, seeds), &wrt)?;
    results.extend(found);
    Ok(Program::new(&graph, types, &results)?)
}

/// Whether a value inside of the function is to be kept, if the derivative needs it.
fn keeps(keep: &Keep, graph: &Graph, id: ExprId) -> bool {
    match keep {
        Keep::Nothing => false,
        Keep::Products => matches!(graph.op(id), Op::Dot(_) | Op::Conv(_)),
        Keep::Named(names) => match graph.op(id) {
            Op::Metadata(metadata) => {
                metadata.inspect.as_ref().is_some_and(|note| names.contains(note))
            }
            _ => false,
        },
        Keep::Everything => true,
    }
}
