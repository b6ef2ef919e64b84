//! Derivatives of what holds the graph together: annotations, composites, hooks and regions.

mod checkpoint;
pub(super) mod cond;
mod forward;
pub(super) mod repeat;

use nxla_expr::{Block, BlockKind, ExprId, Metadata, Op, Program, RuleFor};

use crate::active::{active_outputs, close_over_trips};
use crate::emit::{broadcast, cast, filled};
use crate::error::Result;
use crate::region::{Backward, Hooks, splice};
use crate::sweep::{Sweep, Visit};
use crate::transpose::{Linear, transpose};

pub(crate) use forward::{asked_operands, push};

/// Which results of an op depend on the marked operands through differentiable paths.
pub(crate) fn active_parts(op: &Op, operands: &[bool]) -> Vec<bool> {
    match op {
        Op::Parameter(_) | Op::Constant(_) | Op::Tensor(_) => vec![false],
        Op::Metadata(metadata) => {
            let results = metadata.custom_grad.as_ref().map_or(operands.len(), |it| it.outputs);
            match &metadata.custom_grad {
                _ if metadata.stop_grad => vec![false; results],
                Some(custom) => {
                    vec![operands[custom.declared()].contains(&true); results]
                }
                None => operands.to_vec(),
            }
        }
        Op::Cond(cond) => {
            let branches = cond.clauses.iter().map(|(_, body)| body).chain([&cond.otherwise]);
            branches.map(|body| active_outputs(body, operands)).fold(Vec::new(), |any, active| {
                if any.is_empty() {
                    active
                } else {
                    any.iter().zip(active).map(|(a, b)| a | b).collect()
                }
            })
        }
        Op::While(op) => {
            let mut inputs = operands.to_vec();
            close_over_trips(&op.body, op.state, &mut inputs);
            inputs.truncate(op.state);
            inputs
        }
        // Nothing is known of what a host function computes.
        Op::Hook(hook) => match &hook.results {
            Some(results) => vec![false; results.len()],
            None => operands.to_vec(),
        },
        Op::Block(block) => active_outputs(&block.body, operands),
        Op::Elem(_) => unreachable!("a part is looked up in its tuple"),
        op @ nxla_expr::outside!(control) => unreachable!("{} is of another family", op.name()),
    }
}

/// Inputs, constants and literals: none, they depend on nothing.
pub(super) fn leaf() -> Result<()> {
    Ok(())
}

/// An annotation is the identity, unless it stops the gradient or replaces it.
pub(super) fn metadata(sweep: &mut Sweep<'_>, visit: &Visit, metadata: &Metadata) -> Result<()> {
    if metadata.stop_grad {
        return Ok(());
    }
    if metadata.custom_grad.is_some() {
        return custom_grad(sweep, visit, metadata);
    }
    pass(sweep, visit)
}

/// A hook shows its values and passes them on.
pub(super) fn hook(sweep: &mut Sweep<'_>, visit: &Visit) -> Result<()> {
    pass(sweep, visit)
}

/// Each result is the operand of the same position.
fn pass(sweep: &mut Sweep<'_>, visit: &Visit) -> Result<()> {
    for (position, part) in sweep.parts(visit)?.into_iter().enumerate() {
        if let Some(part) = part {
            sweep.give(visit, position, part)?;
        }
    }
    Ok(())
}

/// The user's program makes the cotangents of the declared inputs from those of the outputs. It
/// may give one that broadcasts to its input, such as a number.
fn custom_grad(sweep: &mut Sweep<'_>, visit: &Visit, metadata: &Metadata) -> Result<()> {
    let custom = metadata.custom_grad.as_ref().expect("the caller has looked");
    let parts = sweep.parts(visit)?;
    if custom.rule == RuleFor::Tangents {
        // The user says how tangents go on: cotangents go back through the transpose.
        let captures = &visit.operands[custom.declared().end..];
        let found = transpose(sweep.graph, &Linear::of(custom), captures, &parts)?;
        for (position, cotangent) in custom.declared().zip(found) {
            if let Some(cotangent) = cotangent {
                sweep.give(visit, position, cotangent)?;
            }
        }
        return Ok(());
    }
    let mut arguments = Vec::new();
    for (part, ty) in parts.into_iter().zip(custom.program.inputs()) {
        arguments.push(match part {
            Some(part) => cast(sweep.graph, part, ty.dtype)?,
            None => filled(sweep.graph, 0.0, ty.dtype, &ty.shape)?,
        });
    }
    let captures = &visit.operands[custom.declared().end..];
    arguments.extend(captures);
    let cotangents = custom.program.inline(sweep.graph, &arguments)?;
    for (position, cotangent) in custom.declared().zip(cotangents) {
        let shape = sweep.graph.shape(visit.operands[position]).clone();
        let cotangent = crate::emit::plain(sweep.graph, cotangent)?;
        let added = shape.rank() - sweep.graph.shape(cotangent).rank();
        let axes = (added..shape.rank()).collect();
        let cotangent = broadcast(sweep.graph, cotangent, shape, axes)?;
        sweep.give(visit, position, cotangent)?;
    }
    Ok(())
}

/// A composite is differentiated through its default body. The derivative computes what it needs
/// of the body again: the values inside of the composite belong to it.
pub(super) fn block(sweep: &mut Sweep<'_>, visit: &Visit, block: &Block) -> Result<()> {
    if let BlockKind::Checkpoint { keep, .. } = &block.kind {
        return checkpoint::rule(sweep, visit, block, keep);
    }
    through(sweep, visit, &block.body, &visit.operands)
}

/// Differentiates a node through a program that computes the same from these operands.
pub(super) fn through(
    sweep: &mut Sweep<'_>,
    visit: &Visit,
    body: &Program,
    operands: &[ExprId],
) -> Result<()> {
    let (given, cotangents) = given(sweep, visit)?;
    let types: Vec<_> = cotangents.iter().map(|&id| sweep.graph.tensor_type(id).clone()).collect();
    let wanted = wanted(sweep, visit);
    let backward = Backward::new(body, &given, &types, &wanted)?;
    let flows = backward.flows();
    let program = backward.program(&flows)?;
    let arguments: Vec<Option<ExprId>> =
        operands.iter().copied().chain(cotangents).map(Some).collect();
    let outputs: Vec<usize> = (0..program.outputs().len()).collect();
    let parts = splice(&program, sweep.graph, &arguments, &outputs, Hooks::Keep)?;
    let flowing = wanted.into_iter().zip(flows).filter(|(_, flows)| *flows);
    for ((position, _), part) in flowing.zip(parts) {
        sweep.give(visit, position, part)?;
    }
    Ok(())
}

/// The results of a node that have a cotangent, and those cotangents.
fn given(sweep: &mut Sweep<'_>, visit: &Visit) -> Result<(Vec<usize>, Vec<ExprId>)> {
    let parts = sweep.parts(visit)?.into_iter().enumerate();
    Ok(parts.filter_map(|(position, part)| Some((position, part?))).unzip())
}

/// The operands whose cotangents are of use.
fn wanted(sweep: &Sweep<'_>, visit: &Visit) -> Vec<usize> {
    (0..visit.operands.len()).filter(|&position| sweep.wants(visit, position)).collect()
}
