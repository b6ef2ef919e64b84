//! Values that are known during the trace: shapes, and values computed from shapes.

use nxla_expr::{ExprId, Graph, Op, Program};
use nxla_tensor::HostTensor;
use rustc_hash::{FxHashMap, FxHashSet};

/// A function that runs a program without inputs.
pub type Evaluate<'e> = dyn Fn(&Program) -> Result<Vec<HostTensor>, String> + 'e;

/// The largest number of elements of any value that is computed during the trace. Shapes, masks of
/// attention and tables of positions are smaller; a damaged file may request more.
pub(super) const FOLDED_ELEMENTS: usize = 1 << 22;

/// Known values of this many elements stay in memory, so that later nodes do not compute them again.
pub(super) const SMALL: usize = 256;

/// The value of a node during the trace.
pub(super) enum NodeValue {
    Value(HostTensor),
    /// The node depends on a value of more than [`FOLDED_ELEMENTS`] elements.
    TooLarge,
    /// The node depends on an input or has effects.
    Data,
}

/// The operands that a node depends on. A later variant takes precedence over an earlier one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Dependence {
    Constants,
    Large,
    Data,
}

/// The known values of a graph.
pub(super) struct Constants<'e> {
    evaluate: &'e Evaluate<'e>,
    /// The dependence of each node of a prefix.
    dependence: Vec<Dependence>,
    known: FxHashMap<ExprId, HostTensor>,
}

impl<'e> Constants<'e> {
    pub(super) fn new(evaluate: &'e Evaluate<'e>) -> Self {
        Self { evaluate, dependence: Vec::new(), known: FxHashMap::default() }
    }

    /// Returns the value of a node.
    pub(super) fn value(&mut self, graph: &Graph, id: ExprId) -> Result<NodeValue, String> {
        if let Op::Tensor(literal) = graph.op(id) {
            return Ok(NodeValue::Value((*literal.0).clone()));
        }
        match self.dependence(graph, id) {
            Dependence::Constants => {}
            Dependence::Large => return Ok(NodeValue::TooLarge),
            Dependence::Data => return Ok(NodeValue::Data),
        }
        if !self.known.contains_key(&id) {
            self.compute(graph, id)?;
        }
        let value = self.known.get(&id).ok_or("the evaluator returned no value")?;
        Ok(NodeValue::Value(value.clone()))
    }

    /// Computes a node, and the small values that it depends on. The values of earlier calls are
    /// literals of the evaluated program: the work is linear in the length of a chain of nodes.
    fn compute(&mut self, graph: &Graph, id: ExprId) -> Result<(), String> {
        let text = |error: nxla_expr::Error| error.to_string();
        let needed = self.nodes_to_compute(graph, id);
        let mut copy = Graph::with_options(graph.options());
        let mut copied: FxHashMap<ExprId, ExprId> = FxHashMap::default();
        let (mut nodes, mut outputs) = (Vec::new(), Vec::new());
        for node in needed {
            let new = match self.known.get(&node) {
                Some(value) => copy.tensor(value.clone()).map_err(text)?,
                None => {
                    let operands = graph.operands(node).iter().map(|operand| copied[operand]);
                    let operands: Vec<ExprId> = operands.collect();
                    copy.make(graph.op(node).clone(), &operands).map_err(text)?
                }
            };
            copied.insert(node, new);
            let is_literal = matches!(graph.op(node), Op::Constant(_) | Op::Tensor(_));
            let is_small = graph.ty(node).as_tensor().is_some_and(|ty| ty.shape.size() <= SMALL);
            if node == id || is_small && !is_literal && !self.known.contains_key(&node) {
                nodes.push(node);
                outputs.push(new);
            }
        }
        let program = Program::new(&copy, Vec::new(), &outputs).map_err(text)?;
        self.known.extend(nodes.into_iter().zip((self.evaluate)(&program)?));
        Ok(())
    }

    /// Returns the nodes that a node needs, operands first, down to nodes with a known value.
    fn nodes_to_compute(&self, graph: &Graph, id: ExprId) -> Vec<ExprId> {
        let (mut waiting, mut needed) = (vec![id], FxHashSet::default());
        needed.insert(id);
        while let Some(node) = waiting.pop() {
            if !self.known.contains_key(&node) {
                let operands = graph.operands(node).iter();
                waiting.extend(operands.copied().filter(|&operand| needed.insert(operand)));
            }
        }
        let mut needed: Vec<ExprId> = needed.into_iter().collect();
        needed.sort_unstable();
        needed
    }

    fn dependence(&mut self, graph: &Graph, id: ExprId) -> Dependence {
        for index in self.dependence.len()..=id.index() {
            let id = ExprId::from_index(index);
            let op = graph.op(id);
            let is_large = |size: Option<usize>| size.is_none_or(|size| size > FOLDED_ELEMENTS);
            let own = if matches!(op, Op::Parameter(_)) || op.has_effects() {
                Dependence::Data
            } else if graph.ty(id).parts().iter().any(|ty| is_large(ty.shape.checked_size())) {
                Dependence::Large
            } else {
                Dependence::Constants
            };
            let operands = graph.operands(id).iter();
            let operands = operands.map(|operand| self.dependence[operand.index()]);
            let dependence = operands.fold(own, Dependence::max);
            self.dependence.push(dependence);
        }
        self.dependence[id.index()]
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Returns a chain of nodes.
    fn chain(graph: &mut Graph, length: usize) -> Vec<ExprId> {
        let start = HostTensor::from_slice(&[0.5_f32, 0.25], [2]).unwrap();
        let mut nodes = vec![graph.tensor(start).unwrap()];
        for _ in 0..length {
            let last = *nodes.last().unwrap();
            nodes.push(graph.unary(nxla_expr::UnaryOp::Sin, last).unwrap());
        }
        nodes
    }

    /// Each node is computed once, from the value before or together with the values before.
    #[test]
    fn chains_are_evaluated_in_linear_time() {
        let mut graph = Graph::new();
        let nodes = chain(&mut graph, 50);
        for requests in [nodes.clone(), nodes.iter().rev().copied().collect()] {
            let evaluated = Cell::new(0);
            let evaluate = |program: &Program| {
                evaluated.set(evaluated.get() + program.graph().len());
                let zeros = HostTensor::from_slice(&[0_f32; 2], [2]).unwrap();
                Ok(vec![zeros; program.outputs().len()])
            };
            let mut constants = Constants::new(&evaluate);
            for id in requests {
                assert!(matches!(constants.value(&graph, id), Ok(NodeValue::Value(_))));
            }
            assert!(evaluated.get() <= 2 * nodes.len(), "{} nodes", evaluated.get());
        }
    }
}
