//! The graph: nodes in an arena, each distinct one stored once.
//!
//! A graph belongs to one trace and is only ever appended to. `Graph::make` is the one way in for
//! whoever builds: it infers the type (and so checks shapes and dtypes), brings the node into
//! simplified form and interns it. What comes back may be an older node. Because operands are made
//! first, they always have smaller ids, and a plain loop over ids is a topological walk.
//!
//! The store itself knows no rule of any op.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::panic::Location;

use hashbrown::HashTable;
use nxla_tensor::{DType, Shape};
use rustc_hash::FxHasher;

use super::error::{Error, ErrorKind};
use super::ids::ExprId;
use super::op::{Op, Parameter};
use super::source::{Line, Source, SourceId, SourceMap, Sources};
use super::types::{TensorType, Type, TypeId, TypeMap, TypeTable};

/// The stored form of a node: its operands are a range of the graph's operand pool.
#[derive(Clone)]
struct Stored {
    op: Op,
    first_operand: u32,
    operand_count: u32,
    ty: TypeId,
    source: SourceId,
}

/// A node as seen from outside.
#[derive(Clone, Copy, Debug)]
pub struct Node<'g> {
    /// Its id.
    pub id: ExprId,
    /// The operation with its attributes.
    pub op: &'g Op,
    /// The operands, all with smaller ids.
    pub operands: &'g [ExprId],
    /// The type of the result.
    pub ty: &'g Type,
}

/// An entry of the intern table. Keeping the hash spares rehashing nodes when the table grows,
/// and most comparisons when it is searched.
#[derive(Clone, Copy)]
struct Interned {
    hash: u32,
    id: ExprId,
}

/// A hash-consed, typed expression graph.
#[derive(Clone, Default)]
pub struct Graph {
    nodes: Vec<Stored>,
    operands: Vec<ExprId>,
    types: TypeTable,
    interned: HashTable<Interned>,
    /// How many nodes have been put into the table, or kept out of it for their effects. A closed
    /// program is read and not built on, so that copying its nodes leaves the table to whoever needs
    /// it; see [`Graph::index`].
    indexed: usize,
    sources: Sources,
    /// The nodes with effects that no region has claimed, in order.
    effects: Vec<ExprId>,
    next_scope: u32,
    /// The most that regions nest in any node.
    nesting: usize,
    options: Options,
}

/// How a graph simplifies what is built in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Also applies the laws that hold for real numbers but change the rounding of floats, such
    /// as `c1 + (c2 + x) = (c1 + c2) + x`. Integers are reassociated in any case.
    pub reassociate_floats: bool,
}

impl Graph {
    /// An empty graph.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty graph with options.
    pub fn with_options(options: Options) -> Self {
        Self { options, ..Self::default() }
    }

    /// How this graph simplifies.
    pub fn options(&self) -> Options {
        self.options
    }

    /// How deep regions nest in the nodes: 0 if no node has any.
    pub fn nesting(&self) -> usize {
        self.nesting
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Every id, operands before the nodes that use them.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = ExprId> + use<> {
        (0..self.nodes.len()).map(ExprId::from_index)
    }

    /// The node with this id.
    pub fn node(&self, id: ExprId) -> Node<'_> {
        let stored = &self.nodes[id.index()];
        Node {
            id,
            op: &stored.op,
            operands: self.operand_range(stored),
            ty: self.types.get(stored.ty),
        }
    }

    /// The operation of a node.
    pub fn op(&self, id: ExprId) -> &Op {
        &self.nodes[id.index()].op
    }

    /// The operands of a node.
    pub fn operands(&self, id: ExprId) -> &[ExprId] {
        self.operand_range(&self.nodes[id.index()])
    }

    /// The type of a node.
    pub fn ty(&self, id: ExprId) -> &Type {
        self.types.get(self.nodes[id.index()].ty)
    }

    /// The type of a node that is one tensor.
    ///
    /// # Panics
    /// If the node is a tuple; constructors never hand out a tuple where a tensor is due.
    pub fn tensor_type(&self, id: ExprId) -> &TensorType {
        self.ty(id).as_tensor().expect("the node is a tensor, not a tuple")
    }

    /// The dtype of a tensor node.
    pub fn dtype(&self, id: ExprId) -> DType {
        self.tensor_type(id).dtype
    }

    /// The shape of a tensor node.
    pub fn shape(&self, id: ExprId) -> &Shape {
        &self.tensor_type(id).shape
    }

    fn operand_range(&self, stored: &Stored) -> &[ExprId] {
        let first = stored.first_operand as usize;
        &self.operands[first..first + stored.operand_count as usize]
    }

    /// An input of the program that is being traced.
    pub fn parameter(&mut self, index: usize, ty: TensorType) -> ExprId {
        self.scope_parameter(0, index, ty)
    }

    /// A parameter of the program (scope 0) or of a region that is being traced.
    pub(crate) fn scope_parameter(&mut self, scope: u32, index: usize, ty: TensorType) -> ExprId {
        let index = u32::try_from(index).expect("fewer than 2^32 inputs");
        let id = self.types.intern(Type::Tensor(ty.clone()));
        self.intern(Op::Parameter(Box::new(Parameter { scope, index, ty })), &[], id)
    }

    /// Stores a node that is checked and simplified, or finds the equal one.
    pub(crate) fn intern(&mut self, op: Op, operands: &[ExprId], ty: TypeId) -> ExprId {
        self.index();
        let hash = hash_node(&op, operands);
        match self.lookup(hash, &op, operands) {
            Some(id) => id,
            None => self.push_indexed(hash, op, operands, ty),
        }
    }

    /// Stores a node with effects, which is checked. It is not in the intern table, so that no other
    /// node is ever taken for it.
    pub(crate) fn push_effect(&mut self, op: Op, operands: &[ExprId], ty: TypeId) -> ExprId {
        self.index();
        self.indexed += 1;
        self.push(op, operands, ty)
    }

    /// The id of a type.
    pub(crate) fn intern_type(&mut self, ty: Type) -> TypeId {
        self.types.intern(ty)
    }

    /// Appends a node that the intern table, which is complete, does not have yet.
    pub(crate) fn push_indexed(
        &mut self,
        hash: u32,
        op: Op,
        operands: &[ExprId],
        ty: TypeId,
    ) -> ExprId {
        let id = self.push(op, operands, ty);
        self.indexed += 1;
        self.interned
            .insert_unique(spread(hash), Interned { hash, id }, |entry| spread(entry.hash));
        id
    }

    /// Puts nodes that were copied without looking for equal ones into the intern table.
    #[inline]
    pub(crate) fn index(&mut self) {
        if self.indexed < self.nodes.len() {
            self.index_copied();
        }
    }

    #[cold]
    fn index_copied(&mut self) {
        self.interned.reserve(self.nodes.len() - self.indexed, |entry| spread(entry.hash));
        for position in self.indexed..self.nodes.len() {
            let id = ExprId::from_index(position);
            if self.op(id).has_effects() {
                continue;
            }
            let hash = hash_node(self.op(id), self.operands(id));
            self.interned
                .insert_unique(spread(hash), Interned { hash, id }, |entry| spread(entry.hash));
        }
        self.indexed = self.nodes.len();
    }

    /// Appends a node, and lists it if it has effects.
    fn push(&mut self, op: Op, operands: &[ExprId], ty: TypeId) -> ExprId {
        let id = ExprId::from_index(self.nodes.len());
        let first_operand = u32::try_from(self.operands.len()).expect("fewer than 2^32 operands");
        let operand_count = u32::try_from(operands.len()).expect("fewer than 2^32 operands");
        self.operands.extend_from_slice(operands);
        if op.has_effects() {
            self.effects.push(id);
        }
        self.nesting = self.nesting.max(op.nesting());
        let source = self.sources.current;
        self.nodes.push(Stored { op, first_operand, operand_count, ty, source });
        id
    }

    /// The node with this op and these operands, if there is one among those indexed.
    pub(crate) fn find(&self, op: &Op, operands: &[ExprId]) -> Option<ExprId> {
        self.lookup(hash_node(op, operands), op, operands)
    }

    /// The node with this op and these operands, of which the hash is known.
    pub(crate) fn lookup(&self, hash: u32, op: &Op, operands: &[ExprId]) -> Option<ExprId> {
        let found = self.interned.find(spread(hash), |entry| {
            entry.hash == hash && {
                let stored = &self.nodes[entry.id.index()];
                stored.op == *op && self.operand_range(stored) == operands
            }
        });
        found.map(|entry| entry.id)
    }

    /// Replaces the op of a node by an equal one: equality leaves out the functions of hooks.
    pub(crate) fn replace_equal(&mut self, id: ExprId, op: Op) {
        let stored = &mut self.nodes[id.index()];
        debug_assert!(stored.op == op, "{:?} is not {op:?}", stored.op);
        stored.op = op;
    }

    /// Copies a node of another graph, whose operands are already here, as it is: it has been
    /// simplified there, and distinct nodes stay distinct. The map remembers the types that have
    /// been copied from that graph.
    pub(crate) fn adopt(
        &mut self,
        (from, id): (&Graph, ExprId),
        op: Op,
        operands: &[ExprId],
        copied: &mut TypeMap,
    ) -> ExprId {
        let ty = *copied
            .entry(from.type_id(id))
            .or_insert_with(|| self.types.intern(from.ty(id).clone()));
        self.push(op, operands, ty)
    }

    /// The type id of a node, for rules that keep it.
    pub(crate) fn type_id(&self, id: ExprId) -> TypeId {
        self.nodes[id.index()].ty
    }

    /// The type behind an id.
    pub(crate) fn type_at(&self, id: TypeId) -> &Type {
        self.types.get(id)
    }

    // --- source lines ---

    /// Adds a source, to be made current with [`Graph::set_source`].
    pub fn add_source(&mut self, source: Source) -> SourceId {
        self.sources.add(source)
    }

    /// Nodes made from now on come from this source.
    pub fn set_source(&mut self, source: SourceId) {
        self.sources.current = source;
    }

    /// The source that new nodes get, to come back to it after a detour.
    pub fn current_source(&self) -> SourceId {
        self.sources.current
    }

    /// Nodes made from now on come from where those of another graph come from now.
    pub fn take_current_source(&mut self, from: &Graph) {
        let source = from.sources.get(from.sources.current).clone();
        self.sources.current = self.sources.add(source);
    }

    /// Nodes made from now on come from this place in Rust code.
    pub fn enter_rust(&mut self, location: &'static Location<'static>) {
        self.sources.enter_rust(location);
    }

    /// The id of a node's source, to make it current.
    pub fn source_id(&self, id: ExprId) -> SourceId {
        self.nodes[id.index()].source
    }

    /// Whether a node was made as part of a derivative in reverse mode.
    pub fn is_derived(&self, id: ExprId) -> bool {
        self.source_id(id).is_derived()
    }

    /// The source of a node.
    pub fn source(&self, id: ExprId) -> &Source {
        self.sources.get(self.nodes[id.index()].source)
    }

    /// Nodes made from now on come from where a node of another graph comes from. The map
    /// remembers what has been copied from that graph.
    pub(crate) fn copy_source(&mut self, from: &Graph, id: ExprId, copied: &mut SourceMap) {
        let source = from.nodes[id.index()].source;
        let sources = &mut self.sources;
        let copy = || sources.add(from.sources.get(source).clone()).derived_as(source);
        sources.current = *copied.entry(source).or_insert_with(copy);
    }

    /// The user's line behind a node, if known.
    pub fn line(&self, id: ExprId) -> Option<Line> {
        self.source(id).line()
    }

    /// The user's line that new nodes get, if known.
    pub fn current_line(&self) -> Option<Line> {
        self.sources.get(self.sources.current).line()
    }

    /// An error at the current source line.
    pub fn error(&self, op: impl Into<String>, kind: ErrorKind) -> Error {
        Error { op: op.into(), kind, line: self.current_line() }
    }

    // --- effects and scopes ---

    /// The hooks, and nodes with hooks inside, made so far that no region has claimed, in the order
    /// in which they were made and run.
    pub fn effects(&self) -> &[ExprId] {
        &self.effects
    }

    /// Takes the nodes with effects made at or after a position; a region that encloses them owns them now.
    pub(crate) fn take_effects_since(&mut self, first: ExprId) -> Vec<ExprId> {
        let kept = self.effects.partition_point(|&id| id < first);
        self.effects.split_off(kept)
    }

    /// Gives nodes back that a region had taken, when it turns out to be no region.
    pub(crate) fn return_effects(&mut self, effects: &[ExprId]) {
        self.effects.extend_from_slice(effects);
        self.effects.sort_unstable();
    }

    /// Nodes that were made again with other operands replace the originals, which are given in
    /// the order of the list.
    pub(crate) fn remove_effects(&mut self, replaced: &[ExprId]) {
        let mut replaced = replaced.iter().peekable();
        self.effects.retain(|id| replaced.next_if_eq(&id).is_none());
    }

    /// A scope number that no parameter has yet; 0 is the program itself.
    pub(crate) fn fresh_scope(&mut self) -> u32 {
        self.next_scope += 1;
        self.next_scope
    }
}

#[cfg(test)]
impl Graph {
    /// Changes a stored node behind the intern table's back, to test that it is noticed. There
    /// must be as many operands as before.
    pub(crate) fn overwrite(&mut self, id: ExprId, op: Op, operands: &[ExprId], ty: Type) {
        let ty = self.types.intern(ty);
        let stored = &mut self.nodes[id.index()];
        let first = stored.first_operand as usize;
        self.operands[first..first + stored.operand_count as usize].copy_from_slice(operands);
        (stored.op, stored.ty) = (op, ty);
    }

    /// Adds a node that may equal another one, to test that it is noticed.
    pub(crate) fn push_twin(&mut self, id: ExprId) -> ExprId {
        let twin = self.nodes[id.index()].clone();
        self.nodes.push(twin);
        ExprId::from_index(self.nodes.len() - 1)
    }
}

impl fmt::Debug for Graph {
    /// One line a node, for debugging; see [`crate::print`] for the text that users read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for id in self.ids() {
            let node = self.node(id);
            writeln!(f, "{id} = {:?} {:?} : {}", node.op, node.operands, node.ty)?;
        }
        Ok(())
    }
}

/// The hash under which a node is interned.
pub(crate) fn hash_node(op: &Op, operands: &[ExprId]) -> u32 {
    let mut hasher = FxHasher::default();
    op.hash(&mut hasher);
    for operand in operands {
        hasher.write_u32(operand.0);
    }
    let hash = hasher.finish();
    #[expect(clippy::cast_possible_truncation, reason = "the upper half is folded in first")]
    let folded = (hash ^ (hash >> 32)) as u32;
    folded
}

/// The table reads the top bits of a 64-bit hash as well as the low ones.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}
