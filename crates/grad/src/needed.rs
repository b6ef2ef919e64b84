//! Needed tangents: the nodes whose tangents the outputs of a program depend on.
//!
//! This analysis is the counterpart of `active` in the opposite direction. Forward mode computes a
//! tangent only if the node is active and its tangent is needed. An integer quotient that only
//! computes an index therefore adds no nodes and causes no error, and a loop carries no unused
//! tangents.

use std::collections::HashMap;

use nxla_expr::{ExprId, Fact, Family, Graph, IdSet, Op, Program};

use crate::active::active_sources;
use crate::rules;

/// The set of nodes whose tangents are needed.
pub(crate) struct NeededTangents {
    nodes: IdSet,
    /// For each tuple, a flag per element.
    parts: HashMap<ExprId, Box<[bool]>>,
}

impl NeededTangents {
    /// Marks the nodes that contribute to the tangents of the marked outputs.
    pub(crate) fn new(program: &Program, wanted: &[bool]) -> Self {
        let graph = program.graph();
        let mut needed =
            NeededTangents { nodes: IdSet::with_len(graph.len()), parts: HashMap::new() };
        for (&output, &wanted) in program.outputs().iter().zip(wanted) {
            if wanted {
                needed.nodes.insert(output);
            }
        }
        for id in graph.ids().rev() {
            if needed.nodes.contains(id) {
                needed.mark_operands(program, id);
            }
        }
        needed
    }

    /// Returns whether the tangent of a node, or of an element of a tuple, is needed.
    pub(crate) fn contains(&self, id: ExprId) -> bool {
        self.nodes.contains(id)
    }

    /// Returns for each of the `count` results of a node whether its tangent is needed.
    pub(crate) fn parts(&self, id: ExprId, count: usize) -> Vec<bool> {
        match self.parts.get(&id) {
            Some(parts) => parts.to_vec(),
            None => vec![self.nodes.contains(id); count],
        }
    }

    fn mark_operands(&mut self, program: &Program, id: ExprId) {
        let graph = program.graph();
        let (op, operands) = (graph.op(id), graph.operands(id));
        if let Op::Elem(index) = op {
            let count = graph.ty(operands[0]).parts().len();
            let parts = self.parts.entry(operands[0]);
            parts.or_insert_with(|| vec![false; count].into())[*index] = true;
            self.nodes.insert(operands[0]);
            return;
        }
        let parts = self.parts(id, graph.ty(id).parts().len());
        let needed = needed_operands(graph, op, operands, &parts);
        for (&operand, needed) in operands.iter().zip(needed) {
            if needed {
                self.nodes.insert(operand);
            }
        }
    }
}

/// Returns for each operand of an op whether the marked results need its tangent.
pub(crate) fn needed_operands(
    graph: &Graph,
    op: &Op,
    operands: &[ExprId],
    results: &[bool],
) -> Vec<bool> {
    match op.family() {
        Family::Control => rules::control::needed_operands(graph, op, operands, results),
        _ => (0..operands.len()).map(|at| rules::carries(graph, op, operands, at)).collect(),
    }
}

/// Returns for each input of a program whether the marked outputs need its tangent.
pub(crate) fn needed_inputs(program: &Program, wanted: &[bool]) -> Vec<bool> {
    let needed = NeededTangents::new(program, wanted);
    program.parameters().iter().map(|&parameter| needed.contains(parameter)).collect()
}

/// Marks the states of a loop whose tangents are needed after any number of iterations. Returns for
/// each input of the body whether the marked states need its tangent.
pub(crate) fn needed_loop_inputs(body: &Program, states: &mut [bool]) -> Vec<bool> {
    let sources = active_sources(body);
    loop {
        let marked = || sources.iter().zip(&*states).filter(|(_, marked)| **marked);
        let needed = (0..body.inputs().len())
            .map(|input| marked().any(|(sources, _)| sources.contains(input)));
        let needed: Vec<bool> = needed.collect();
        let mut grew = false;
        for (state, needed) in states.iter_mut().zip(&needed) {
            grew |= state.merge(needed);
        }
        if !grew {
            return needed;
        }
    }
}
