//! Which nodes do more than give a value.
//!
//! Hooks do, and so do loops, conditionals and functions with hooks inside. They run in the order
//! of their ids. Stages keep that order among each other; within a stage it is kept for hooks
//! themselves, while a loop with hooks inside runs when the program of the stage comes to it.

use nxla_expr::{Digest, ExprId, Op, Program};
use rustc_hash::FxHashSet;

/// The nodes with effects, in the order in which they run.
pub(crate) fn nodes_with_effects(program: &Program) -> Vec<ExprId> {
    let mut known = Known::default();
    let graph = program.graph();
    graph.ids().filter(|&id| known.has_effects(graph.op(id))).collect()
}

/// What has been found out about regions, so that a shared one is searched once.
#[derive(Default)]
struct Known {
    silent: FxHashSet<Digest>,
    acting: FxHashSet<Digest>,
}

impl Known {
    fn has_effects(&mut self, op: &Op) -> bool {
        match op {
            Op::Hook(_) => true,
            // A derivative of the user's is only kept there, not run.
            Op::Metadata(_) => false,
            op => op.regions().iter().any(|region| self.region_acts(region)),
        }
    }

    /// Whether there is a hook in a region or in a region inside of it.
    fn region_acts(&mut self, region: &Program) -> bool {
        if self.acting.contains(&region.digest()) {
            return true;
        }
        let mut searched = FxHashSet::default();
        let mut waiting = vec![region];
        while let Some(program) = waiting.pop() {
            let digest = program.digest();
            if !program.effects().is_empty() || self.acting.contains(&digest) {
                self.acting.insert(region.digest());
                return true;
            }
            if self.silent.contains(&digest) || !searched.insert(digest) {
                continue;
            }
            let graph = program.graph();
            for id in graph.ids().filter(|&id| !matches!(graph.op(id), Op::Metadata(_))) {
                waiting.extend(graph.op(id).regions().into_iter().map(|inner| &**inner));
            }
        }
        self.silent.extend(searched);
        false
    }
}
