//! Whose tangents the outputs of a program ask for.
//!
//! The counterpart of `active`, from the outputs down: a tangent is made where something flows in
//! and something is asked for. A quotient that only computes an index costs nothing and is no error,
//! and what a loop carries for its own sake gets no tangent.

use std::collections::HashMap;

use nxla_expr::{ExprId, Family, IdSet, Op, Program};

use crate::rules;

/// The nodes of a program whose tangents are of use.
pub(crate) struct Demand {
    nodes: IdSet,
    /// Which parts of each tuple are asked for.
    parts: HashMap<ExprId, Box<[bool]>>,
}

impl Demand {
    /// What the tangents of the marked outputs are made of.
    pub(crate) fn new(program: &Program, wanted: &[bool]) -> Self {
        let graph = program.graph();
        let mut demand = Demand { nodes: IdSet::with_len(graph.len()), parts: HashMap::new() };
        for (&output, &wanted) in program.outputs().iter().zip(wanted) {
            if wanted {
                demand.nodes.insert(output);
            }
        }
        for id in graph.ids().rev() {
            if demand.nodes.contains(id) {
                demand.hand_down(program, id);
            }
        }
        demand
    }

    /// Whether the tangent of a node, or of a part of it, is of use.
    pub(crate) fn contains(&self, id: ExprId) -> bool {
        self.nodes.contains(id)
    }

    /// Which of the `count` results of a node are asked for.
    pub(crate) fn parts(&self, id: ExprId, count: usize) -> Vec<bool> {
        match self.parts.get(&id) {
            Some(parts) => parts.to_vec(),
            None => vec![self.nodes.contains(id); count],
        }
    }

    fn hand_down(&mut self, program: &Program, id: ExprId) {
        let graph = program.graph();
        let (op, operands) = (graph.op(id), graph.operands(id));
        if let Op::Elem(index) = op {
            let count = graph.ty(operands[0]).parts().len();
            let parts = self.parts.entry(operands[0]);
            parts.or_insert_with(|| vec![false; count].into())[*index] = true;
            self.nodes.insert(operands[0]);
            return;
        }
        let asked: Vec<bool> = if op.family() == Family::Control {
            let parts = self.parts(id, graph.ty(id).parts().len());
            rules::control::asked_operands(op, &parts)
        } else {
            (0..operands.len()).map(|at| rules::carries(graph, op, operands, at)).collect()
        };
        for (&operand, asked) in operands.iter().zip(asked) {
            if asked {
                self.nodes.insert(operand);
            }
        }
    }
}

/// The inputs of a program whose tangents the marked outputs ask for.
pub(crate) fn asked_inputs(program: &Program, wanted: &[bool]) -> Vec<bool> {
    let demand = Demand::new(program, wanted);
    program.parameters().iter().map(|&parameter| demand.contains(parameter)).collect()
}

/// Marks the states of a loop that are asked for after any number of trips, and gives the inputs
/// of the body that the marked states ask for.
pub(crate) fn ask_over_trips(body: &Program, states: &mut [bool]) -> Vec<bool> {
    loop {
        let asked = asked_inputs(body, states);
        let mut grew = false;
        for (state, &asked) in states.iter_mut().zip(&asked) {
            grew |= asked && !*state;
            *state |= asked;
        }
        if !grew {
            return asked;
        }
    }
}
