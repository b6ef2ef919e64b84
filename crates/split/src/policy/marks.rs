//! Stages that end at annotations.

use std::collections::BTreeSet;
use std::sync::Arc;

use nxla_expr::{Op, Program, SHARDING_NOTE};

use crate::Decision;
use crate::error::SplitError;
use crate::stage::StageGraph;

/// Cuts after each annotation with one of these strings, or after each annotation.
pub(super) fn split(program: &Program, notes: &[String]) -> Result<StageGraph, SplitError> {
    let graph = program.graph();
    let mut present = BTreeSet::new();
    let in_order = graph.ids().filter_map(|id| note(graph.op(id)).filter(|it| present.insert(*it)));
    let in_order: Vec<&str> = in_order.collect();
    if let Some(missing) = notes.iter().find(|note| !present.contains(note.as_str())) {
        let known = if in_order.is_empty() { "none".to_owned() } else { in_order.join(", ") };
        return Err(SplitError::Policy(format!(
            "marks: must be marks of the expression ({known}); got {missing:?}"
        )));
    }
    let mut names: Vec<Arc<str>> = Vec::new();
    let mut stages = crate::split(program, |node| match note(node.op) {
        Some(note) if notes.is_empty() || notes.iter().any(|chosen| chosen == note) => {
            names.push(note.into());
            Decision::After
        }
        _ => Decision::None,
    })?;
    stages.name(names);
    Ok(stages)
}

/// Returns the annotation that a user added to a node; stopping gradients and sharding constraints are not annotations.
fn note(op: &Op) -> Option<&str> {
    match op {
        Op::Metadata(metadata) if !metadata.stop_grad => {
            metadata.inspect.as_deref().filter(|note| !note.starts_with(SHARDING_NOTE))
        }
        _ => None,
    }
}
