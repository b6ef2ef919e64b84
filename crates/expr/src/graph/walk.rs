//! Walks over a graph. None of them recurses: a chain of a million nodes is an ordinary input.

use super::ids::{ExprId, IdMap, IdSet};
use super::program::Program;
use super::store::Graph;

impl Graph {
    /// The nodes that the roots need, roots included.
    ///
    /// One backward pass over the ids: every user of a node has a larger id.
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

    /// The nodes that the roots need in the order of a depth-first walk, operands first: the
    /// order in which a reader meets them, whatever order they were built in.
    pub fn post_order(&self, roots: &[ExprId]) -> Vec<ExprId> {
        let mut order = Vec::new();
        let mut seen = IdSet::default();
        // Each entry is a node and how many of its operands have been visited.
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

    /// How many nodes of a set use each node, counting an operand twice if it is used twice.
    pub fn use_counts(&self, order: &[ExprId]) -> IdMap<u32> {
        let mut counts = IdMap::default();
        for &id in order {
            for &operand in self.operands(id) {
                *counts.get_mut(operand) += 1;
            }
        }
        counts
    }
}

impl Program {
    /// For each input, whether an output or a hook needs it.
    pub fn used_inputs(&self) -> Vec<bool> {
        let reachable = self.graph().reachable(&self.roots());
        self.parameters().iter().map(|&id| reachable.contains(id)).collect()
    }
}
