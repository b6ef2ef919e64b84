//! Traversals of a graph, without recursion: a chain of a million nodes is ordinary input.

use super::ids::{ExprId, IdSet};
use super::op::While;
use super::program::Program;
use super::store::Graph;

impl Graph {
    /// Returns the nodes that the roots need, including the roots.
    ///
    /// One pass over the ids in decreasing order suffices, because users have larger ids.
    pub fn reachable(&self, roots: &[ExprId]) -> IdSet {
        let Some(last) = roots.iter().max() else { return IdSet::default() };
        let mut set = IdSet::with_len(last.index() + 1);
        for &root in roots {
            set.insert(root);
        }
        for index in (0..=last.index()).rev() {
            let id = ExprId::from_index(index);
            if set.contains(id) {
                for &operand in self.operands(id) {
                    set.insert(operand);
                }
            }
        }
        set
    }
}

impl Program {
    /// Returns for each input whether an output or a hook needs it.
    pub fn used_inputs(&self) -> Vec<bool> {
        let reachable = self.graph().reachable(&self.roots());
        self.parameters().iter().map(|&id| reachable.contains(id)).collect()
    }
}

impl While {
    /// Returns for each state whether the marked states depend on it after any number of iterations.
    /// The marked states are included.
    #[must_use]
    pub fn needed_states(&self, mut needed: Vec<bool>) -> Vec<bool> {
        let body = &self.body;
        loop {
            let outputs = body.outputs().iter().zip(&needed);
            let roots: Vec<ExprId> =
                outputs.filter_map(|(&output, &needed)| needed.then_some(output)).collect();
            let reachable = body.graph().reachable(&roots);
            let mut grew = false;
            for (needed, &parameter) in needed.iter_mut().zip(body.parameters()) {
                grew |= reachable.contains(parameter) && !*needed;
                *needed |= reachable.contains(parameter);
            }
            if !grew {
                return needed;
            }
        }
    }
}
