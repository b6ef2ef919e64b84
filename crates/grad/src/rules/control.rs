//! Derivatives of control ops: annotations, composites, hooks and regions.

mod checkpoint;
pub(super) mod cond;
mod forward;
pub(crate) mod while_loop;

use nxla_expr::{
    Block, BlockKind, CustomGrad, ExprId, Fact, Graph, HookOp, Metadata, Op, Program, RuleFor,
    TensorType,
};

use crate::active::{active_outputs, mark_active_states};
use crate::builder::{broadcast, cast, full, is_zero};
use crate::error::{GradError, Result};
use crate::region::{Backward, Hooks, splice_all};
use crate::reverse::{ReversePass, Visit};
use crate::rules::is_continuous;
use crate::transpose::{Linear, transpose};

pub(crate) use forward::{jvp, needed_operands};

/// The error of a runtime call through which a derivative flows.
const NO_DERIVATIVE: &str = "function: must have a derivative, which flows through the call; got a \
                             host function without one; apply stop_grad to the arguments, or \
                             define a derivative with custom_jvp or custom_grad";

/// Returns the facts about the results of an op that follow from the facts about its operands through
/// differentiable operands.
pub(crate) fn active_parts<F: Fact>(
    graph: &Graph,
    op: &Op,
    operands: &[ExprId],
    facts: &[F],
) -> Vec<F> {
    match op {
        Op::Parameter(_) | Op::Constant(_) | Op::Tensor(_) => vec![F::default()],
        Op::Metadata(metadata) => {
            let results = metadata.custom_grad.as_ref().map_or(facts.len(), |it| it.outputs);
            match &metadata.custom_grad {
                _ if metadata.stop_grad => vec![F::default(); results],
                Some(custom) => vec![F::union(&facts[custom.declared_inputs()]); results],
                None => facts.to_vec(),
            }
        }
        Op::Cond(cond) => {
            let mut results = active_outputs(&cond.otherwise, facts);
            for (_, body) in &cond.clauses {
                for (result, output) in results.iter_mut().zip(active_outputs(body, facts)) {
                    result.merge(&output);
                }
            }
            results
        }
        Op::While(op) => {
            let mut inputs = facts.to_vec();
            mark_active_states(&op.body, &mut inputs);
            inputs.truncate(op.state);
            inputs
        }
        // The rule of a runtime call rejects it; see `carries` in the parent module.
        Op::Hook(hook) => match &hook.results {
            Some(results) => {
                let is_operand = |(id, _): &(&ExprId, &F)| is_continuous(graph.dtype(**id));
                let operands = operands.iter().zip(facts).filter(is_operand);
                let any = F::union(operands.map(|(_, fact)| fact));
                let result = |ty: &TensorType| is_continuous(ty.dtype).then(|| any.clone());
                results.iter().map(|ty| result(ty).unwrap_or_default()).collect()
            }
            None => facts.to_vec(),
        },
        Op::Block(block) => active_outputs(&block.body, facts),
        Op::Elem(_) => unreachable!("a part is looked up in its tuple"),
        op @ nxla_expr::outside!(control) => unreachable!("{} is of another family", op.name()),
    }
}

/// An annotation is the identity unless it stops the gradient or holds a custom rule.
pub(super) fn metadata(
    pass: &mut ReversePass<'_>,
    visit: &Visit,
    metadata: &Metadata,
) -> Result<()> {
    if metadata.stop_grad {
        return Ok(());
    }
    if metadata.custom_grad.is_some() {
        return custom_grad(pass, visit, metadata);
    }
    pass_through(pass, visit)
}

/// The results of a hook are its operands. The derivative of a runtime call is unknown, so a
/// cotangent of its results is an error unless it is zero.
pub(super) fn hook(pass: &mut ReversePass<'_>, visit: &Visit, hook: &HookOp) -> Result<()> {
    if hook.results.is_none() {
        return pass_through(pass, visit);
    }
    if pass.parts(visit)?.into_iter().flatten().all(|part| is_zero(pass.graph, part)) {
        Ok(())
    } else {
        Err(GradError::no_rule(pass.graph, visit.id, NO_DERIVATIVE))
    }
}

/// Passes the cotangent of each result to the operand at the same position.
fn pass_through(pass: &mut ReversePass<'_>, visit: &Visit) -> Result<()> {
    for (position, part) in pass.parts(visit)?.into_iter().enumerate() {
        if let Some(part) = part {
            pass.add_cotangent(visit, position, part)?;
        }
    }
    Ok(())
}

/// The user's program computes the cotangents of the declared inputs from the cotangents of the
/// outputs. A cotangent may broadcast to the shape of its input.
fn custom_grad(pass: &mut ReversePass<'_>, visit: &Visit, metadata: &Metadata) -> Result<()> {
    let custom = metadata.custom_grad.as_ref().expect("the caller has looked");
    let parts = pass.parts(visit)?;
    let captures = captures(pass.graph, visit.id, custom, &visit.operands)?;
    if custom.rule == RuleFor::Tangents {
        // The rule computes tangents; its transpose computes cotangents.
        let found = transpose(pass.graph, &Linear::of(custom), &captures, &parts)?;
        for (position, cotangent) in custom.declared_inputs().zip(found) {
            if let Some(cotangent) = cotangent {
                pass.add_cotangent(visit, position, cotangent)?;
            }
        }
        return Ok(());
    }
    let mut arguments = Vec::new();
    for (part, ty) in parts.into_iter().zip(custom.program.inputs()) {
        arguments.push(match part {
            Some(part) => cast(pass.graph, part, ty.dtype)?,
            None => full(pass.graph, 0.0, ty.dtype, &ty.shape)?,
        });
    }
    arguments.extend(captures);
    let cotangents = custom.program.inline(pass.graph, &arguments)?;
    for (position, cotangent) in custom.declared_inputs().zip(cotangents) {
        let shape = pass.graph.shape(visit.operands[position]).clone();
        let cotangent = crate::builder::strip_names(pass.graph, cotangent)?;
        let added = shape.rank() - pass.graph.shape(cotangent).rank();
        let axes = (added..shape.rank()).collect();
        let cotangent = broadcast(pass.graph, cotangent, shape, axes)?;
        pass.add_cotangent(visit, position, cotangent)?;
    }
    Ok(())
}

/// The captures of a custom rule. For an output that the rule captures, they contain the result of the node, so that
/// higher derivatives also follow the rule.
fn captures(
    graph: &mut Graph,
    node: ExprId,
    custom: &CustomGrad,
    operands: &[ExprId],
) -> Result<Vec<ExprId>> {
    let results = graph.parts(node)?;
    let (outputs, inputs) = (&operands[..custom.outputs], &operands[custom.declared_inputs()]);
    let captures = operands[custom.declared_inputs().end..].iter().map(|&capture| {
        let output = outputs.iter().position(|&output| output == capture);
        let output = output.filter(|_| !inputs.contains(&capture));
        output.map_or(capture, |output| results[output])
    });
    Ok(captures.collect())
}

/// A composite is differentiated through its default body. The derivative recomputes the values
/// that it needs, because values inside the composite are not accessible.
pub(super) fn block(pass: &mut ReversePass<'_>, visit: &Visit, block: &Block) -> Result<()> {
    if let BlockKind::Checkpoint { keep, .. } = &block.kind {
        return checkpoint::rule(pass, visit, block, keep);
    }
    differentiate_program(pass, visit, &block.body, &visit.operands)
}

/// Differentiates a node through a program that computes the same results from the operands.
pub(crate) fn differentiate_program(
    pass: &mut ReversePass<'_>,
    visit: &Visit,
    body: &Program,
    operands: &[ExprId],
) -> Result<()> {
    let (given, cotangents) = results_with_cotangents(pass, visit)?;
    let types: Vec<_> = cotangents.iter().map(|&id| pass.graph.tensor_type(id).clone()).collect();
    let wanted = operands_to_differentiate(pass, visit);
    let backward = Backward::new(body, &given, &types, &wanted)?;
    let flows = backward.flows();
    let program = backward.program(&flows)?;
    let arguments: Vec<Option<ExprId>> =
        operands.iter().copied().chain(cotangents).map(Some).collect();
    let parts = splice_all(&program, pass.graph, &arguments, Hooks::Keep)?;
    let flowing = wanted.into_iter().zip(flows).filter(|(_, flows)| *flows);
    for ((position, _), part) in flowing.zip(parts) {
        pass.add_cotangent(visit, position, part)?;
    }
    Ok(())
}

/// Returns the positions of the results that have a cotangent, and the cotangents.
fn results_with_cotangents(
    pass: &mut ReversePass<'_>,
    visit: &Visit,
) -> Result<(Vec<usize>, Vec<ExprId>)> {
    let parts = pass.parts(visit)?.into_iter().enumerate();
    Ok(parts.filter_map(|(position, part)| Some((position, part?))).unzip())
}

/// Returns the positions of the operands that need a cotangent.
fn operands_to_differentiate(pass: &ReversePass<'_>, visit: &Visit) -> Vec<usize> {
    (0..visit.operands.len()).filter(|&position| pass.needs_cotangent(visit, position)).collect()
}
