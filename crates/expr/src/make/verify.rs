//! Verification of the invariants of graphs and programs.
//!
//! No code of this workspace can violate them, so this module serves tests and developers who
//! change the graph. A violation names the node and the rule. Verification takes time linear in the
//! number of nodes, including regions. It copies the graph once, because checking whether a node is
//! simplified means building it again.
//!
//! That nodes never change cannot be checked at one point in time. Instead, each node must be found
//! under its op and operands, and a program must still have its digest.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use crate::graph::{Digest, ExprId, Graph, Node, Op, Program, Type};
use crate::infer::infer;

/// The invariants, in the order of the [crate documentation](crate).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Invariant {
    /// Equal nodes have equal ids.
    Unique,
    /// Operands have smaller ids than their users.
    Order,
    /// The stored type equals the inferred type.
    Typed,
    /// Nodes never change and are never removed.
    Unchanged,
    /// A program or region refers only to its own parameters.
    Closed,
    /// Building a node again returns the same id.
    Simplified,
    /// Nodes with effects are listed in the order of their ids.
    Hooks,
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Invariant::Unique => "equal nodes have equal ids",
            Invariant::Order => "operands have smaller ids",
            Invariant::Typed => "stored types equal inferred types",
            Invariant::Unchanged => "nodes never change",
            Invariant::Closed => "a program refers only to its own parameters",
            Invariant::Simplified => "nodes are in simplified form",
            Invariant::Hooks => "hooks are listed in order",
        })
    }
}

/// A violated invariant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// The path to the region that contains the node, outermost first: the node that contains the
    /// region, and the index of the region in [`Op::regions`].
    pub within: Vec<(ExprId, usize)>,
    /// The node, or `None` if the program as a whole is invalid.
    pub node: Option<ExprId>,
    /// The invariant.
    pub invariant: Invariant,
    /// The details.
    pub facts: String,
}

impl std::error::Error for Violation {}

impl fmt::Display for Violation {
    /// `%3 in region 1 of %7: uses %9 (operands have smaller ids)`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.node {
            Some(node) => write!(f, "{node}")?,
            None => f.write_str("the program")?,
        }
        for (holder, region) in self.within.iter().rev() {
            write!(f, " in region {region} of {holder}")?;
        }
        write!(f, ": {} ({})", self.facts, self.invariant)
    }
}

/// The violations of a graph or of a program, at least one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violations(Vec<Violation>);

impl Deref for Violations {
    type Target = [Violation];

    fn deref(&self) -> &[Violation] {
        &self.0
    }
}

impl IntoIterator for Violations {
    type Item = Violation;
    type IntoIter = std::vec::IntoIter<Violation>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&texts.join("; "))
    }
}

impl std::error::Error for Violations {}

/// Checks a graph, which may be unfinished, and all its regions.
///
/// # Errors
/// Returns all violations.
///
/// ```
/// use nxla_expr::{Graph, TensorType, verify::verify};
/// use nxla_tensor::DType;
///
/// let mut graph = Graph::new();
/// let x = graph.parameter(0, TensorType::new(DType::F32, [2]));
/// graph.exp(x)?;
/// assert_eq!(verify(&graph), Ok(()));
/// # Ok::<(), nxla_expr::Error>(())
/// ```
pub fn verify(graph: &Graph) -> Result<(), Violations> {
    let mut verifier = Verifier::default();
    verifier.graph(graph);
    verifier.listed_hooks(graph, graph.effects());
    verifier.regions(graph, &[]);
    verifier.finish()
}

/// Checks a program and all its regions.
///
/// # Errors
/// Returns all violations.
pub fn verify_program(program: &Program) -> Result<(), Violations> {
    let mut verifier = Verifier::default();
    verifier.program(program);
    verifier.regions(program.graph(), &[]);
    verifier.finish()
}

/// The path to a region, and the region.
type Waiting<'g> = (Vec<(ExprId, usize)>, &'g Arc<Program>);

#[derive(Default)]
struct Verifier<'g> {
    violations: Vec<Violation>,
    /// The path to the current graph.
    within: Vec<(ExprId, usize)>,
    waiting: Vec<Waiting<'g>>,
    seen: FxHashSet<Digest>,
}

impl<'g> Verifier<'g> {
    fn finish(mut self) -> Result<(), Violations> {
        while let Some((within, program)) = self.waiting.pop() {
            self.within.clone_from(&within);
            self.program(program);
            self.regions(program.graph(), &within);
        }
        if self.violations.is_empty() { Ok(()) } else { Err(Violations(self.violations)) }
    }

    fn report(&mut self, node: Option<ExprId>, invariant: Invariant, facts: String) {
        self.violations.push(Violation { within: self.within.clone(), node, invariant, facts });
    }

    /// Queues the regions of a graph, each distinct one once.
    fn regions(&mut self, graph: &'g Graph, within: &[(ExprId, usize)]) {
        for id in graph.ids() {
            for (place, region) in graph.op(id).regions().into_iter().enumerate() {
                if self.seen.insert(region.digest()) {
                    let mut path = within.to_vec();
                    path.push((id, place));
                    self.waiting.push((path, region));
                }
            }
        }
    }

    fn graph(&mut self, graph: &Graph) {
        let before = self.violations.len();
        let mut indexed = graph.clone();
        indexed.index();
        for id in graph.ids() {
            let node = graph.node(id);
            if self.order(graph, &node) {
                self.check_interned(&indexed, &node);
                self.check_type(graph, &node);
            }
        }
        // Only a node that is otherwise valid can be built again.
        if self.violations.len() == before {
            self.check_simplified(graph);
        }
    }

    fn order(&mut self, graph: &Graph, node: &Node<'_>) -> bool {
        let wrong = node.operands.iter().find(|&&operand| operand >= node.id);
        if let Some(operand) = wrong {
            let facts = if operand.index() < graph.len() {
                format!("{} uses {operand}", node.op.name())
            } else {
                format!("{} uses {operand}, which does not exist", node.op.name())
            };
            self.report(Some(node.id), Invariant::Order, facts);
        }
        wrong.is_none()
    }

    fn check_interned(&mut self, graph: &Graph, node: &Node<'_>) {
        match graph.find(node.op, node.operands) {
            // Nodes with effects are not interned.
            None if node.op.has_effects() => {}
            Some(id) if id == node.id => {}
            Some(id) => {
                let facts =
                    format!("{} with operands {:?} is {id} too", node.op.name(), node.operands);
                self.report(Some(node.id), Invariant::Unique, facts);
            }
            None => {
                let facts = format!("{} is not the op it was made with", node.op.name());
                self.report(Some(node.id), Invariant::Unchanged, facts);
            }
        }
    }

    fn check_type(&mut self, graph: &Graph, node: &Node<'_>) {
        let operands: Vec<&Type> = node.operands.iter().map(|&id| graph.ty(id)).collect();
        let facts = match infer(node.op, &operands) {
            Ok(ty) if ty == *node.ty => return,
            Ok(ty) => format!("{} is stored as {}, inference says {ty}", node.op.name(), node.ty),
            Err(error) => format!("{}: {error}", node.op.name()),
        };
        self.report(Some(node.id), Invariant::Typed, facts);
    }

    fn check_simplified(&mut self, graph: &Graph) {
        let mut copy = graph.clone();
        for id in graph.ids().filter(|&id| !graph.op(id).has_effects()) {
            let node = graph.node(id);
            let facts = match copy.make_as_new(node.op.clone(), node.operands) {
                Ok(made) if made == id => continue,
                Ok(made) => {
                    let made = copy.node(made);
                    format!("{} becomes {} {:?}", node.op.name(), made.op.name(), made.operands)
                }
                Err(error) => error.to_string(),
            };
            self.report(Some(id), Invariant::Simplified, facts);
        }
    }

    fn program(&mut self, program: &Program) {
        let graph = program.graph();
        self.graph(graph);
        self.parameters(program);
        for (what, roots) in [("output", program.outputs()), ("hook", program.effects())] {
            for &root in roots.iter().filter(|root| root.index() >= graph.len()) {
                let facts = format!("{what} {root} does not exist");
                self.report(None, Invariant::Closed, facts);
            }
        }
        self.listed_hooks(graph, program.effects());
        let listed: FxHashSet<ExprId> = program.effects().iter().copied().collect();
        for id in graph.ids() {
            let op = graph.op(id);
            if op.has_effects() && !listed.contains(&id) {
                let facts = format!("{} has effects and is not listed", op.name());
                self.report(Some(id), Invariant::Hooks, facts);
            }
        }
        let digest = program.computed_digest();
        if digest != program.digest() {
            let facts = format!("the digest is {digest}, it was {}", program.digest());
            self.report(None, Invariant::Unchanged, facts);
        }
    }

    fn parameters(&mut self, program: &Program) {
        let (inputs, parameters) = (program.inputs(), program.parameters());
        if inputs.len() != parameters.len() {
            let facts = format!("{} inputs have {} parameters", inputs.len(), parameters.len());
            self.report(None, Invariant::Closed, facts);
        }
        for id in program.graph().ids() {
            let Op::Parameter(parameter) = program.graph().op(id) else { continue };
            let index = parameter.index as usize;
            if parameter.scope != 0 {
                let facts = format!("a parameter of the open region {}", parameter.scope);
                self.report(Some(id), Invariant::Closed, facts);
            } else if parameters.get(index) != Some(&id) || inputs.get(index) != Some(&parameter.ty)
            {
                let facts = format!("parameter {index} ({}) matches no input", parameter.ty);
                self.report(Some(id), Invariant::Closed, facts);
            }
        }
    }

    fn listed_hooks(&mut self, graph: &Graph, listed: &[ExprId]) {
        let mut last = None;
        for &id in listed.iter().filter(|id| id.index() < graph.len()) {
            if !graph.op(id).has_effects() {
                let facts = format!("{} is listed among the effects", graph.op(id).name());
                self.report(Some(id), Invariant::Hooks, facts);
                continue;
            }
            if let Some(last) = last.filter(|&last| id <= last) {
                let facts = format!("the node is listed after {last}");
                self.report(Some(id), Invariant::Hooks, facts);
            }
            last = Some(id);
        }
    }
}

#[cfg(test)]
mod tests;
