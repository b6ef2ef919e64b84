//! Walks over a graph. None of them recurses: a chain of a million nodes is an ordinary input.

use rustc_hash::FxHashMap;

use crate::graph::{ExprId, Graph};

/// A set of nodes of one graph.
#[derive(Clone, Default, Debug)]
pub struct IdSet {
    words: Vec<u64>,
}

impl IdSet {
    /// An empty set with room for the nodes of a graph of this length.
    pub fn with_len(len: usize) -> Self {
        Self { words: vec![0; len.div_ceil(64)] }
    }

    /// Adds a node; whether it was absent.
    pub fn insert(&mut self, id: ExprId) -> bool {
        let (word, bit) = (id.index() / 64, 1 << (id.index() % 64));
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let absent = self.words[word] & bit == 0;
        self.words[word] |= bit;
        absent
    }

    /// Whether a node is in the set.
    pub fn contains(&self, id: ExprId) -> bool {
        self.words.get(id.index() / 64).is_some_and(|word| word & (1 << (id.index() % 64)) != 0)
    }
}

/// A value for each node of one graph, `T::default()` until set.
#[derive(Clone, Default, Debug)]
pub struct IdMap<T> {
    values: Vec<T>,
}

impl<T: Clone + Default> IdMap<T> {
    /// A map with room for the nodes of a graph of this length.
    pub fn with_len(len: usize) -> Self {
        Self { values: vec![T::default(); len] }
    }

    /// The value of a node.
    pub fn get(&self, id: ExprId) -> T {
        self.values.get(id.index()).cloned().unwrap_or_default()
    }

    /// The value of a node, to be changed.
    pub fn get_mut(&mut self, id: ExprId) -> &mut T {
        if id.index() >= self.values.len() {
            self.values.resize(id.index() + 1, T::default());
        }
        &mut self.values[id.index()]
    }

    /// Sets the value of a node.
    pub fn set(&mut self, id: ExprId, value: T) {
        *self.get_mut(id) = value;
    }
}

/// A value for each of the nodes from some position on, and for a few before it: side tables for
/// what was built last in a long graph take no more room than that.
#[derive(Clone, Default, Debug)]
pub(crate) struct TailMap<T> {
    first: usize,
    tail: IdMap<T>,
    before: FxHashMap<ExprId, T>,
}

impl<T: Clone + Default> TailMap<T> {
    /// A map whose nodes are mostly those from a position on.
    pub(crate) fn from_position(first: usize) -> Self {
        Self { first, tail: IdMap::default(), before: FxHashMap::default() }
    }

    /// The value of a node, `T::default()` until set.
    pub(crate) fn get(&self, id: ExprId) -> T {
        match id.index().checked_sub(self.first) {
            Some(index) => self.tail.get(ExprId::from_index(index)),
            None => self.before.get(&id).cloned().unwrap_or_default(),
        }
    }

    /// Sets the value of a node.
    pub(crate) fn set(&mut self, id: ExprId, value: T) {
        match id.index().checked_sub(self.first) {
            Some(index) => self.tail.set(ExprId::from_index(index), value),
            None => {
                self.before.insert(id, value);
            }
        }
    }
}

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
