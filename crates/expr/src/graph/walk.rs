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

    /// Returns the nodes that the roots need in depth-first order, operands first. The order does
    /// not depend on the order in which the nodes were built.
    pub fn post_order(&self, roots: &[ExprId]) -> Vec<ExprId> {
        let mut order = Vec::new();
        let mut seen = IdSet::default();
        // Each entry is a node and the number of its operands that were visited.
        let mut stack: Vec<(ExprId, usize)> = Vec::new();
        for &root in roots {
            if seen.insert(root) {
                stack.push((root, 0));
            }
            while let Some((id, visited)) = stack.last_mut() {
                let id = *id;
                match self.operands(id).get(*visited) {
                    Some(&operand) => {
                        *visited += 1;
                        if seen.insert(operand) {
                            stack.push((operand, 0));
                        }
                    }
                    None => {
                        order.push(id);
                        stack.pop();
                    }
                }
            }
        }
        order
    }
}

impl Program {
    /// Returns for each input whether an output or a hook needs it.
    pub fn used_inputs(&self) -> Vec<bool> {
        let reachable = self.graph().reachable(&self.roots());
        self.parameters().iter().map(|&id| reachable.contains(id)).collect()
    }
}
