//! Cutting a program: deciding which stage computes which node.
//!
//! The nodes are visited depth first from the outputs, operands before users, and the caller
//! decides at each node. A boundary ends a stage with some values as its declared outputs. This
//! stage *owns* every node that its outputs need and that no earlier stage owns; the last stage
//! owns the remaining nodes. Each node thus has exactly one owner, and an owner never needs a later
//! stage. All boundaries together cost one traversal of the graph.
//!
//! Notable details:
//!
//! * Constants (literals, `iota`, `eye`, annotated or not) have no owner: each stage that needs a
//!   constant contains a copy. Simplification depends on constant operands (`x ** 2` becomes `x * x`), so a stage with
//!   a constant as an input could compute other bits than the whole program. A boundary may still
//!   declare a constant as an output, but no later stage takes this output.
//! * Annotations of other values have no owner either, because they cost nothing. Passing an annotated value on
//!   would make independent stages wait for each other. If a boundary declares an annotated value,
//!   it is passed on like other values.
//! * Nodes with effects form a chain: each depends on the preceding one. The owner of a hook
//!   therefore owns all earlier hooks or comes after their owners, which preserves the order of
//!   hooks.

use nxla_expr::{ExprId, Graph, Node, Op, Program};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::Decision;
use crate::lists::Lists;

/// A tensor: a node, or one element of a node with several results.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Value {
    pub(crate) node: ExprId,
    pub(crate) part: usize,
}

impl Value {
    /// Returns the tensor of a node: `elem` only names an element of its operand.
    pub(crate) fn of(graph: &Graph, id: ExprId) -> Self {
        match (graph.op(id), graph.operands(id)) {
            (&Op::Elem(part), &[node]) => Value { node, part },
            _ => Value { node: id, part: 0 },
        }
    }
}

/// The number of nested annotations of a constant that a stage copies. It bounds the copies of long chains.
const NESTED_ANNOTATIONS: usize = 16;

/// Returns whether a node is a compile-time constant or annotates one. Each stage copies it.
pub(crate) fn is_constant(graph: &Graph, id: ExprId) -> bool {
    let mut value = id;
    for _ in 0..NESTED_ANNOTATIONS {
        match (graph.op(value), graph.operands(value)) {
            (Op::Metadata(_), &[operand]) => value = operand,
            _ => break,
        }
    }
    matches!(graph.op(value), Op::Constant(_) | Op::Iota(_) | Op::Eye(_) | Op::Tensor(_))
}

/// Returns whether each stage copies a node: the node is a constant, or it annotates its only
/// operand. Other annotations of annotations are not copied, so that long chains are not copied
/// repeatedly.
pub(crate) fn is_copied(graph: &Graph, id: ExprId) -> bool {
    match (graph.op(id), graph.operands(id)) {
        _ if is_constant(graph, id) => true,
        (Op::Metadata(_), &[operand]) => !matches!(graph.op(operand), Op::Metadata(_)),
        _ => false,
    }
}

/// The owner of a node without an owner.
const NO_OWNER: u32 = u32::MAX;

/// The result of cutting a program.
pub(crate) struct Cut {
    owners: Vec<u32>,
    /// The declared outputs of each stage. The last stage declares the outputs of the program.
    pub(crate) declared: Vec<Vec<Value>>,
    /// The nodes with effects in the order in which they run.
    pub(crate) effects: Vec<ExprId>,
    /// True if the last stage returns all outputs of the program and passes outputs of earlier
    /// stages through. Otherwise each output comes from the stage that computes it.
    pub(crate) gathers: bool,
}

impl Cut {
    /// Creates `stages` stages without nodes.
    pub(crate) fn empty(program: &Program, stages: usize) -> Self {
        Self {
            owners: vec![NO_OWNER; program.graph().len()],
            declared: vec![Vec::new(); stages],
            effects: program.effects().to_vec(),
            gathers: false,
        }
    }

    /// Sets the owner of a node.
    pub(crate) fn assign(&mut self, id: ExprId, stage: usize) {
        self.owners[id.index()] = u32::try_from(stage).expect("fewer stages than nodes");
    }

    /// Returns the stage that computes a node, or `None` for inputs, names of elements, and copied
    /// nodes.
    pub(crate) fn owner(&self, id: ExprId) -> Option<usize> {
        let owner = self.owners[id.index()];
        (owner != NO_OWNER).then_some(owner as usize)
    }

    /// Returns the nodes of each stage, operands before users.
    pub(crate) fn nodes_by_stage(&self) -> Lists<ExprId> {
        let owned = self.owners.iter().enumerate().filter(|&(_, &owner)| owner != NO_OWNER);
        let nodes = owned.map(|(index, &owner)| (owner as usize, ExprId::from_index(index)));
        Lists::group(self.declared.len(), nodes)
    }
}

/// Visits the program and cuts it as `decide` requests.
pub(crate) fn cut<E>(
    program: &Program,
    mut decide: impl FnMut(Node<'_>) -> Result<Decision, E>,
) -> Result<Cut, E> {
    let mut cutter = Cutter::new(program);
    let mut seen = vec![false; program.graph().len()];
    // Each entry is a node and the number of its dependencies that were visited.
    let mut stack: Vec<(ExprId, usize)> = Vec::new();
    for &root in program.outputs().iter().chain(program.effects()) {
        if !std::mem::replace(&mut seen[root.index()], true) {
            stack.push((root, 0));
        }
        while let Some((id, visited)) = stack.last_mut() {
            let id = *id;
            if let Some(dependency) = cutter.dependency(id, *visited) {
                *visited += 1;
                if !std::mem::replace(&mut seen[dependency.index()], true) {
                    stack.push((dependency, 0));
                }
                continue;
            }
            stack.pop();
            let node = cutter.graph.node(id);
            if !matches!(node.op, Op::Parameter(_) | Op::Elem(_)) {
                let decision = decide(node)?;
                cutter.apply(node, decision);
            }
        }
    }
    Ok(cutter.finish(program))
}

struct Cutter<'p> {
    graph: &'p Graph,
    cut: Cut,
    /// The values that earlier boundaries declared.
    declared: FxHashSet<Value>,
    /// For each node with effects, the node with effects that must run before it.
    previous_effect: FxHashMap<ExprId, ExprId>,
    stack: Vec<ExprId>,
}

impl<'p> Cutter<'p> {
    fn new(program: &'p Program) -> Self {
        let graph = program.graph();
        let cut = Cut { gathers: true, ..Cut::empty(program, 0) };
        let previous_effect = cut.effects.windows(2).map(|pair| (pair[1], pair[0])).collect();
        Self { graph, cut, declared: FxHashSet::default(), previous_effect, stack: Vec::new() }
    }

    /// Returns a dependency of a node: its operands, then the preceding effect.
    fn dependency(&self, id: ExprId, position: usize) -> Option<ExprId> {
        let operands = self.graph.operands(id);
        if position < operands.len() {
            Some(operands[position])
        } else if position == operands.len() && !self.previous_effect.is_empty() {
            self.previous_effect.get(&id).copied()
        } else {
            None
        }
    }

    fn apply(&mut self, node: Node<'_>, decision: Decision) {
        let (before, after) = match (decision, node.op) {
            (Decision::None, _) => return,
            // A conditional becomes a stage as a whole, with the nodes that it needs.
            (_, Op::Cond(_)) => (false, true),
            (Decision::Before, _) => (true, false),
            (Decision::After, _) => (false, true),
            (Decision::Both, _) => (true, true),
        };
        let hoisted = if before { self.hoisted_operands(node) } else { Vec::new() };
        let cut_before = !hoisted.is_empty();
        if cut_before {
            self.boundary(hoisted);
        }
        // If all operands are provided already, the node itself becomes the stage, except a loop.
        if after || (before && !cut_before && !matches!(node.op, Op::While(_))) {
            let parts = 0..node.ty.parts().len();
            self.boundary(parts.map(|part| Value { node: node.id, part }).collect());
        }
    }

    /// Returns the operands that no earlier stage provides, each once.
    fn hoisted_operands(&self, node: Node<'_>) -> Vec<Value> {
        let mut distinct = FxHashSet::default();
        let values = node.operands.iter().map(|&operand| Value::of(self.graph, operand));
        values.filter(|&value| !self.is_provided(value) && distinct.insert(value)).collect()
    }

    fn is_provided(&self, value: Value) -> bool {
        let (graph, id) = (self.graph, value.node);
        if matches!(graph.op(id), Op::Parameter(_)) || self.declared.contains(&value) {
            return true;
        }
        match graph.operands(id) {
            _ if !is_copied(graph, id) => self.cut.owner(id).is_some(),
            [] => false,
            // An annotation is provided if the annotated value is provided.
            operands => operands.iter().all(|&operand| self.is_provided(Value::of(graph, operand))),
        }
    }

    /// Ends a stage with these values as outputs.
    fn boundary(&mut self, values: Vec<Value>) {
        for &value in &values {
            self.declared.insert(value);
            self.claim(value.node);
        }
        self.cut.declared.push(values);
    }

    /// Makes the current stage the owner of a node and of all nodes that it needs.
    fn claim(&mut self, root: ExprId) {
        let stage = u32::try_from(self.cut.declared.len()).expect("fewer stages than nodes");
        self.stack.push(root);
        while let Some(id) = self.stack.pop() {
            let op = self.graph.op(id);
            if matches!(op, Op::Parameter(_)) {
                continue;
            }
            if !matches!(op, Op::Elem(_)) && !is_copied(self.graph, id) {
                let owner = &mut self.cut.owners[id.index()];
                if *owner != NO_OWNER {
                    continue;
                }
                *owner = stage;
            }
            let mut position = 0;
            while let Some(dependency) = self.dependency(id, position) {
                self.stack.push(dependency);
                position += 1;
            }
        }
    }

    /// Ends the last stage, which returns the outputs of the program and runs the remaining
    /// effects.
    fn finish(mut self, program: &Program) -> Cut {
        for &effect in program.effects() {
            self.claim(effect);
        }
        let outputs = program.outputs().iter().map(|&id| Value::of(self.graph, id)).collect();
        self.boundary(outputs);
        self.cut
    }
}
