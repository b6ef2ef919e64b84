//! Traversals of a graph, without recursion: a chain of a million nodes is ordinary input.

use super::ids::{ExprId, IdSet};
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
