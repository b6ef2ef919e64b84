//! Derivatives of checkpoints: functions whose values are recomputed instead of stored.
//!
//! The derivative is a block that takes the arguments, the residuals and the cotangents, and
//! recomputes the other values in its body. As a separate program, its nodes are not merged with
//! the equal nodes of the original. XLA inlines blocks; the kind of this block marks its contents
//! so that they are not merged either. Residuals become additional results of the original block,
//! which a new block replaces.

use std::sync::Arc;

use nxla_expr::{Block, BlockKind, ExprId, Graph, Keep, Op, Operands};

use super::{operands_to_differentiate, results_with_cotangents};
use crate::builder;
use crate::error::Result;
use crate::programs::{ResidualSplit, pullback_of, split_at_residuals};
use crate::region::{Hooks, narrow};
use crate::reverse::{ReversePass, Visit};

pub(super) fn rule(
    pass: &mut ReversePass<'_>,
    visit: &Visit,
    block: &Block,
    keep: &Keep,
) -> Result<()> {
    let body = &block.body;
    let (given, cotangents) = results_with_cotangents(pass, visit)?;
    let types = cotangents.iter().map(|&id| pass.graph.tensor_type(id).clone());
    let wanted = operands_to_differentiate(pass, visit);
    let whole = pullback_of(body, (&given, types.collect()), &wanted)?;
    let values = body.outputs().len();
    // Hooks have already been called; computing residuals separately would call them again.
    let keep = if body.effects().is_empty() { keep } else { &Keep::Nothing };
    let ResidualSplit { known, rest, residuals } =
        split_at_residuals(&whole, body.inputs().len(), values, &mut |graph, id| {
            is_stored(keep, graph, id)
        })?;
    let mut operands = Operands::new();
    if residuals > 0 {
        let kept = Block { body: known, ..block.clone() };
        let node = pass.graph.make(Op::Block(Arc::new(kept)), &visit.operands)?;
        let parts = pass.graph.parts(node)?;
        let (results, kept) = parts.split_at(values);
        let own = pass.graph.parts(visit.id)?;
        pass.replace(own.into_iter().zip(results.iter().copied()).collect());
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
    let node = pass.graph.make(Op::Block(Arc::new(back)), &operands)?;
    for (position, part) in wanted.into_iter().zip(pass.graph.parts(node)?) {
        let part = builder::strip_names(pass.graph, part)?;
        pass.add_cotangent(visit, position, part)?;
    }
    Ok(())
}

/// Returns whether the policy stores a value of the function if the derivative needs the value.
fn is_stored(keep: &Keep, graph: &Graph, id: ExprId) -> bool {
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
