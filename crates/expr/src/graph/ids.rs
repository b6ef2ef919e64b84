//! Node ids, and sets and maps of nodes.

use std::fmt;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The id of a node in one graph. Prints as `%12`.
///
/// An id of one graph is meaningless in another graph. Methods of [`Graph`](crate::Graph) that read a
/// node panic if the graph has no node with the id, as an index outside of a slice does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExprId(pub(super) u32);

impl ExprId {
    /// Returns the position of the node in the graph, for side tables.
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// Returns the node at this position, which must be below the length of the graph.
    pub fn from_index(index: usize) -> Self {
        Self(u32::try_from(index).expect("a graph holds fewer than 2^32 nodes"))
    }
}

impl fmt::Display for ExprId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{}", self.0)
    }
}

impl fmt::Debug for ExprId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The operands of a node that is being created.
pub type Operands = SmallVec<[ExprId; 4]>;

/// A set of nodes of one graph.
#[derive(Clone, Default, Debug)]
pub struct IdSet {
    words: Vec<u64>,
}

impl IdSet {
    /// Creates an empty set for a graph of this length.
    pub fn with_len(len: usize) -> Self {
        Self { words: vec![0; len.div_ceil(64)] }
    }

    /// Adds a node, and returns whether it was absent.
    pub fn insert(&mut self, id: ExprId) -> bool {
        let (word, bit) = (id.index() / 64, 1 << (id.index() % 64));
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let absent = self.words[word] & bit == 0;
        self.words[word] |= bit;
        absent
    }

    /// Returns whether a node is in the set.
    pub fn contains(&self, id: ExprId) -> bool {
        self.words.get(id.index() / 64).is_some_and(|word| word & (1 << (id.index() % 64)) != 0)
    }
}

/// A map from the nodes of one graph to values, initially `T::default()`.
#[derive(Clone, Default, Debug)]
pub struct IdMap<T> {
    values: Vec<T>,
}

impl<T: Clone + Default> IdMap<T> {
    /// Creates a map for a graph of this length.
    pub fn with_len(len: usize) -> Self {
        Self { values: vec![T::default(); len] }
    }

    /// Returns the value of a node.
    pub fn get(&self, id: ExprId) -> T {
        self.values.get(id.index()).cloned().unwrap_or_default()
    }

    /// Returns a mutable reference to the value of a node.
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

/// A map for the nodes from some position on, and for a few earlier nodes. Its memory does not
/// depend on the number of earlier nodes.
#[derive(Clone, Default, Debug)]
pub(crate) struct TailMap<T> {
    first: usize,
    tail: IdMap<T>,
    before: FxHashMap<ExprId, T>,
}

impl<T: Clone + Default> TailMap<T> {
    /// Creates a map for the nodes from a position on.
    pub(crate) fn from_position(first: usize) -> Self {
        Self { first, tail: IdMap::default(), before: FxHashMap::default() }
    }

    /// Returns the value of a node, `T::default()` by default.
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
