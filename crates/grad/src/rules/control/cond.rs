//! The derivative of a conditional: a conditional with the same predicates and the derivatives of
//! the branches.
//!
//! A branch recomputes the values that it needs of the original branch, so no value of another
//! branch is ever computed. The predicates are recomputed too; they are small, and compilers merge
//! equal ones.

use std::sync::Arc;

use nxla_expr::{Cond, ExprId, Op, Program, TensorType};

use super::{operands_to_differentiate, results_with_cotangents};
use crate::error::Result;
use crate::region::{Backward, Hooks, narrow};
use crate::reverse::{ReversePass, Visit};

pub(crate) fn rule(pass: &mut ReversePass<'_>, visit: &Visit, cond: &Cond) -> Result<()> {
    let (given, cotangents) = results_with_cotangents(pass, visit)?;
    let types: Vec<TensorType> =
        cotangents.iter().map(|&id| pass.graph.tensor_type(id).clone()).collect();
    let wanted = operands_to_differentiate(pass, visit);
    let branches = cond
        .bodies()
        .map(|body| Backward::new(body, &given, &types, &wanted))
        .collect::<Result<Vec<_>>>()?;

    // An operand to which no branch contributes has no cotangent.
    let mut flows = vec![false; wanted.len()];
    for branch in &branches {
        for (any, flows) in flows.iter_mut().zip(branch.flows()) {
            *any |= flows;
        }
    }
    if !flows.contains(&true) {
        return Ok(());
    }
    let inputs = branches[0].inputs().to_vec();
    let branches = branches
        .into_iter()
        .map(|branch| branch.program(&flows))
        .collect::<Result<Vec<Arc<Program>>>>()?;
    let (backward, used) = conditional(cond, &branches, &inputs)?;
    let operands: Vec<ExprId> = visit
        .operands
        .iter()
        .chain(&cotangents)
        .zip(used)
        .filter_map(|(&id, used)| used.then_some(id))
        .collect();
    let node = pass.graph.make(Op::Cond(Arc::new(backward)), &operands)?;
    let parts = pass.graph.parts(node)?;
    let flowing = wanted.into_iter().zip(flows).filter(|(_, flows)| *flows);
    for ((position, _), part) in flowing.zip(parts) {
        pass.add_cotangent(visit, position, part)?;
    }
    Ok(())
}

/// Builds the conditional of the derivatives, and returns which inputs it needs.
fn conditional(
    cond: &Cond,
    branches: &[Arc<Program>],
    inputs: &[TensorType],
) -> Result<(Cond, Vec<bool>)> {
    let mut used = vec![false; inputs.len()];
    let predicates = cond.clauses.iter().map(|(predicate, _)| predicate);
    for program in predicates.chain(branches) {
        for (any, used) in used.iter_mut().zip(program.used_inputs()) {
            *any |= used;
        }
    }
    let (otherwise, bodies) = branches.split_last().expect("there is a last branch");
    let clauses = cond
        .clauses
        .iter()
        .zip(bodies)
        .map(|((predicate, _), body)| {
            let predicate = narrow(predicate, inputs, &used, Hooks::Drop)?;
            Ok((predicate, narrow(body, inputs, &used, Hooks::Keep)?))
        })
        .collect::<Result<_>>()?;
    let otherwise = narrow(otherwise, inputs, &used, Hooks::Keep)?;
    Ok((Cond { clauses, otherwise }, used))
}
