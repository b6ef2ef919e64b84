//! The node store: nodes in an arena, with structurally equal nodes stored once.
//!
//! A graph belongs to one trace, and nodes are only appended. All builders create nodes with
//! `Graph::make`, which infers the type, checks the operands, simplifies the node and interns it.
//! The result may be an existing node. Operands are created first and have smaller ids, so a loop
//! over ids visits nodes in topological order.
//!
//! The store does not depend on the rules of any op.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::panic::Location;
use std::sync::Arc;

use hashbrown::HashTable;
use nxla_tensor::{DType, Shape};
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use smallvec::SmallVec;

use super::block::BlockKind;
use super::error::{Error, ErrorKind};
use super::ids::ExprId;
use super::op::{Op, Parameter};
use super::program::Program;
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

/// A node with its op, operands and type.
#[derive(Clone, Copy, Debug)]
pub struct Node<'g> {
    /// The id of the node.
    pub id: ExprId,
    /// The op with its attributes.
    pub op: &'g Op,
    /// The operands, all with smaller ids.
    pub operands: &'g [ExprId],
    /// The type of the result.
    pub ty: &'g Type,
}

/// An entry of the intern table. The stored hash avoids rehashing when the table grows, and most
/// comparisons during lookup.
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
    /// The number of nodes that are in the intern table or have effects. A closed program is only
    /// read, so its nodes are added to the table when they are first needed; see [`Graph::index`].
    indexed: usize,
    sources: Sources,
    /// The nodes with effects that do not belong to a region, in order.
    effects: Vec<ExprId>,
    /// The name of each scope that was opened, such as `while`; the program itself has no entry.
    scopes: Vec<&'static str>,
    /// The largest nesting depth of regions in any node.
    nesting: usize,
    /// The bodies of blocks that their kind determines.
    pub(crate) bodies: FxHashMap<BodyKey, ClosedBody>,
    options: GraphOptions,
}

/// A kind of block with the types of its operands, which determine its body, and the source of the body.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct BodyKey {
    kind: BlockKind,
    operands: SmallVec<[TypeId; 4]>,
    source: SourceId,
}

/// The body of a block, and the nodes that it captures.
#[derive(Clone, Debug)]
pub(crate) struct ClosedBody {
    pub(crate) program: Arc<Program>,
    pub(crate) captures: Vec<ExprId>,
}

/// Options for simplification.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GraphOptions {
    /// Also applies laws of real arithmetic that do not hold for floats, such as `c1 + (c2 + x) = (c1
    /// + c2) + x` and `x + 0 = x`. Integers are always reassociated.
    pub reassociate_floats: bool,
}

impl Graph {
    /// Creates an empty graph.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an empty graph with options.
    pub fn with_options(options: GraphOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// Returns the options.
    pub fn options(&self) -> GraphOptions {
        self.options
    }

    /// Returns the nesting depth of regions: 0 if no node has a region.
    pub fn nesting_depth(&self) -> usize {
        self.nesting
    }

    /// Returns the number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns `true` if there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns all ids, operands before their users.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = ExprId> + use<> {
        (0..self.nodes.len()).map(ExprId::from_index)
    }

    /// Returns the node with this id.
    pub fn node(&self, id: ExprId) -> Node<'_> {
        let stored = &self.nodes[id.index()];
        Node {
            id,
            op: &stored.op,
            operands: self.operand_range(stored),
            ty: self.types.get(stored.ty),
        }
    }

    /// Returns the op of a node.
    pub fn op(&self, id: ExprId) -> &Op {
        &self.nodes[id.index()].op
    }

    /// Returns the operands of a node.
    pub fn operands(&self, id: ExprId) -> &[ExprId] {
        self.operand_range(&self.nodes[id.index()])
    }

    /// Returns the type of a node.
    pub fn ty(&self, id: ExprId) -> &Type {
        self.types.get(self.nodes[id.index()].ty)
    }

    /// Returns the type of a node that is a tensor.
    ///
    /// # Panics
    /// Panics if the node is a tuple; builders never return a tuple where a tensor is expected.
    pub fn tensor_type(&self, id: ExprId) -> &TensorType {
        self.ty(id).as_tensor().expect("the node is a tensor, not a tuple")
    }

    /// Returns the dtype of a tensor node.
    pub fn dtype(&self, id: ExprId) -> DType {
        self.tensor_type(id).dtype
    }

    /// Returns the shape of a tensor node.
    pub fn shape(&self, id: ExprId) -> &Shape {
        &self.tensor_type(id).shape
    }

    fn operand_range(&self, stored: &Stored) -> &[ExprId] {
        let first = stored.first_operand as usize;
        &self.operands[first..first + stored.operand_count as usize]
    }

    /// Creates an input of the program that is being traced.
    pub fn parameter(&mut self, index: usize, ty: TensorType) -> ExprId {
        self.scope_parameter(0, index, ty)
    }

    /// Creates a parameter of the program (scope 0) or of a region that is being traced.
    pub(crate) fn scope_parameter(&mut self, scope: u32, index: usize, ty: TensorType) -> ExprId {
        let index = u32::try_from(index).expect("fewer than 2^32 inputs");
        let id = self.types.intern(Type::Tensor(ty.clone()));
        self.intern(Op::Parameter(Box::new(Parameter { scope, index, ty })), &[], id)
    }

    /// Returns the existing equal node, or stores a checked and simplified node.
    pub(crate) fn intern(&mut self, op: Op, operands: &[ExprId], ty: TypeId) -> ExprId {
        self.index();
        let hash = hash_node(&op, operands);
        match self.lookup(hash, &op, operands) {
            Some(id) => id,
            None => self.push_indexed(hash, op, operands, ty),
        }
    }

    /// Stores a checked node with effects. The intern table does not contain it, so no other node
    /// is merged with it.
    pub(crate) fn push_effect(&mut self, op: Op, operands: &[ExprId], ty: TypeId) -> ExprId {
        self.index();
        self.indexed += 1;
        self.push(op, operands, ty)
    }

    /// Returns the id of a type.
    pub(crate) fn intern_type(&mut self, ty: Type) -> TypeId {
        self.types.intern(ty)
    }

    /// Appends a node that is not in the intern table, which must be complete.
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

    /// Adds copied nodes to the intern table.
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

    /// Appends a node, and records it if it has effects.
    fn push(&mut self, op: Op, operands: &[ExprId], ty: TypeId) -> ExprId {
        let id = ExprId::from_index(self.nodes.len());
        let first_operand = u32::try_from(self.operands.len()).expect("fewer than 2^32 operands");
        let operand_count = u32::try_from(operands.len()).expect("fewer than 2^32 operands");
        self.operands.extend_from_slice(operands);
        if op.has_effects() {
            self.effects.push(id);
        }
        self.nesting = self.nesting.max(op.nesting_depth());
        let source = self.sources.current;
        self.nodes.push(Stored { op, first_operand, operand_count, ty, source });
        id
    }

    /// Returns the indexed node with this op and these operands.
    pub(crate) fn find(&self, op: &Op, operands: &[ExprId]) -> Option<ExprId> {
        self.lookup(hash_node(op, operands), op, operands)
    }

    /// Returns the node with this op and these operands, for a known hash.
    pub(crate) fn lookup(&self, hash: u32, op: &Op, operands: &[ExprId]) -> Option<ExprId> {
        let found = self.interned.find(spread(hash), |entry| {
            entry.hash == hash && {
                let stored = &self.nodes[entry.id.index()];
                stored.op == *op && self.operand_range(stored) == operands
            }
        });
        found.map(|entry| entry.id)
    }

    /// Replaces the op of a node by an equal op: the functions of hooks are not part of equality.
    pub(crate) fn replace_equal(&mut self, id: ExprId, op: Op) {
        let stored = &mut self.nodes[id.index()];
        debug_assert!(stored.op == op, "{:?} is not {op:?}", stored.op);
        stored.op = op;
    }

    /// Copies a node of another graph, whose operands are already copied, without simplifying it
    /// again. Distinct nodes stay distinct. The map holds the types that were copied from the other
    /// graph.
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

    /// Returns the type id of a node.
    pub(crate) fn type_id(&self, id: ExprId) -> TypeId {
        self.nodes[id.index()].ty
    }

    /// Returns the key in [`Graph::bodies`] of a block at the current source.
    pub(crate) fn body_key(&self, kind: &BlockKind, operands: &[ExprId]) -> BodyKey {
        BodyKey {
            kind: kind.clone(),
            operands: operands.iter().map(|&id| self.type_id(id)).collect(),
            source: self.sources.current,
        }
    }

    /// Returns the type with an id.
    pub(crate) fn type_at(&self, id: TypeId) -> &Type {
        self.types.get(id)
    }

    // --- source lines ---

    /// Adds a source, for use with [`Graph::set_source`].
    pub fn add_source(&mut self, source: Source) -> SourceId {
        self.sources.add(source)
    }

    /// Sets the source of new nodes.
    pub fn set_source(&mut self, source: SourceId) {
        self.sources.current = source;
    }

    /// Returns the source of new nodes, to restore it later.
    pub fn current_source(&self) -> SourceId {
        self.sources.current
    }

    /// Sets the source of new nodes to the current source of another graph.
    pub fn copy_current_source(&mut self, from: &Graph) {
        let source = from.sources.get(from.sources.current).clone();
        self.sources.current = self.sources.add(source);
    }

    /// Sets the source of new nodes to a location in Rust code.
    pub fn enter_rust(&mut self, location: &'static Location<'static>) {
        self.sources.enter_rust(location);
    }

    /// Returns the source id of a node.
    pub fn source_id(&self, id: ExprId) -> SourceId {
        self.nodes[id.index()].source
    }

    /// Returns whether reverse-mode differentiation created a node.
    pub fn is_derived(&self, id: ExprId) -> bool {
        self.source_id(id).is_derived()
    }

    /// Returns the source of a node.
    pub fn source(&self, id: ExprId) -> &Source {
        self.sources.get(self.nodes[id.index()].source)
    }

    /// Sets the source of new nodes to the source of a node of another graph, also for nodes of
    /// derivatives. The map holds the sources that were copied from the other graph.
    pub fn copy_source(&mut self, from: &Graph, id: ExprId, copied: &mut SourceMap) {
        let source = from.nodes[id.index()].source;
        let sources = &mut self.sources;
        let copy = || sources.add(from.sources.get(source).clone()).mark_derived_like(source);
        sources.current = *copied.entry(source).or_insert_with(copy);
    }

    /// Returns the user's source line of a node, if known.
    pub fn line(&self, id: ExprId) -> Option<Line> {
        self.source(id).line()
    }

    /// Returns the user's source line of new nodes, if known.
    pub fn current_line(&self) -> Option<Line> {
        self.sources.get(self.sources.current).line()
    }

    /// Creates an error at the current source line.
    pub fn error(&self, op: impl Into<String>, kind: ErrorKind) -> Error {
        Error { op: op.into(), kind, line: self.current_line() }
    }

    // --- effects and scopes ---

    /// Returns the hooks, and nodes that contain hooks, that do not belong to a region, in the
    /// order in which they run.
    pub fn effects(&self) -> &[ExprId] {
        &self.effects
    }

    /// Removes and returns the nodes with effects since a position, for the region that encloses
    /// them.
    pub(crate) fn take_effects_since(&mut self, first: ExprId) -> Vec<ExprId> {
        let kept = self.effects.partition_point(|&id| id < first);
        self.effects.split_off(kept)
    }

    /// Restores effects that [`Graph::take_effects_since`] removed, if no region was created after
    /// all.
    pub(crate) fn return_effects(&mut self, effects: &[ExprId]) {
        self.effects.extend_from_slice(effects);
        self.effects.sort_unstable();
    }

    /// Removes nodes that were recreated with other operands from the effects; `replaced` is in
    /// order.
    pub(crate) fn remove_effects(&mut self, replaced: &[ExprId]) {
        let mut replaced = replaced.iter().peekable();
        self.effects.retain(|id| replaced.next_if_eq(&id).is_none());
    }

    /// Adds a scope of a name and returns its number, which no parameter has yet; 0 is the program
    /// itself.
    pub(crate) fn fresh_scope(&mut self, name: &'static str) -> u32 {
        self.scopes.push(name);
        u32::try_from(self.scopes.len()).expect("fewer than 2^32 scopes")
    }

    /// The name of the innermost scope whose parameters a node depends on: `"root"` is the program,
    /// and [`Graph::open_scope`] names every other scope. `None` if the node depends on no parameter.
    pub fn context(&self, id: ExprId) -> Option<&'static str> {
        let (mut waiting, mut seen) = (vec![id], FxHashSet::default());
        let mut innermost = None;
        while let Some(id) = waiting.pop() {
            if !seen.insert(id) {
                continue;
            }
            if let Op::Parameter(parameter) = self.op(id) {
                innermost = innermost.max(Some(parameter.scope));
            }
            waiting.extend_from_slice(self.operands(id));
        }
        let name = |scope: u32| match scope.checked_sub(1) {
            None => "root",
            Some(index) => self.scopes[index as usize],
        };
        innermost.map(name)
    }
}

#[cfg(test)]
impl Graph {
    /// Changes a stored node without updating the intern table, for tests of `verify`. The number
    /// of operands must stay the same.
    pub(crate) fn overwrite(&mut self, id: ExprId, op: Op, operands: &[ExprId], ty: Type) {
        let ty = self.types.intern(ty);
        let stored = &mut self.nodes[id.index()];
        let first = stored.first_operand as usize;
        self.operands[first..first + stored.operand_count as usize].copy_from_slice(operands);
        (stored.op, stored.ty) = (op, ty);
    }

    /// Adds a duplicate of a node, for tests of `verify`.
    pub(crate) fn push_twin(&mut self, id: ExprId) -> ExprId {
        let twin = self.nodes[id.index()].clone();
        self.nodes.push(twin);
        ExprId::from_index(self.nodes.len() - 1)
    }
}

impl fmt::Debug for Graph {
    /// Writes one line per node, for debugging; see [`crate::print`] for expression text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for id in self.ids() {
            let node = self.node(id);
            writeln!(f, "{id} = {:?} {:?} : {}", node.op, node.operands, node.ty)?;
        }
        Ok(())
    }
}

/// Returns the hash of a node in the intern table.
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

/// Spreads a 32-bit hash to 64 bits, because the table reads the highest and the lowest bits.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}
