//! The three passes of a training step.
//!
//! Nodes of a derivative are marked when they are created. The forward pass contains the nodes that
//! do not depend on them, the backward pass contains these nodes and their dependencies, and the
//! update contains the remaining nodes.

use crate::error::SplitError;
use crate::partition::Sequence;
use crate::stage::StageGraph;

const NAMES: [&str; 3] = ["forward", "backward", "update"];

pub(super) fn split(sequence: &Sequence<'_>) -> Result<StageGraph, SplitError> {
    let graph = sequence.graph();
    let derived: Vec<bool> = sequence.nodes.iter().map(|&id| graph.is_derived(id)).collect();
    if !derived.contains(&true) {
        return Err(SplitError::Policy(
            "policy: training() requires a training step; the expression contains no gradient"
                .into(),
        ));
    }
    let (mut stages, parts) = sequence.assemble_parts(&passes(sequence, &derived))?;
    stages.name(parts.into_iter().map(|part| NAMES[part as usize].into()));
    Ok(stages)
}

/// Returns the pass of each node: 0, 1 or 2.
fn passes(sequence: &Sequence<'_>, derived: &[bool]) -> Vec<u32> {
    // The entries of nodes that the backward pass needs are true. Users have later positions.
    let mut needed = derived.to_vec();
    for position in (0..sequence.len()).rev() {
        if needed[position] {
            sequence.operands(position).for_each(|operand| needed[operand] = true);
        }
    }
    let mut parts = vec![0; sequence.len()];
    for position in 0..sequence.len() {
        let follows = sequence.operands(position).any(|operand| parts[operand] > 0);
        parts[position] = match (follows || derived[position], needed[position]) {
            (false, _) => 0,
            (true, true) => 1,
            (true, false) => 2,
        };
    }
    parts
}
