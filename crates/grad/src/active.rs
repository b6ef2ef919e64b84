//! Active nodes: the nodes that depend on the inputs through differentiable operands.
//!
//! The reverse pass visits only active nodes. A comparison, an index or a counter that depends on
//! an input therefore adds no nodes, and such an op needs no derivative rule.

use std::collections::HashMap;

use nxla_expr::{ExprId, Family, Graph, Op, Program, Type};

use crate::rules;

/// The set of active nodes of a graph, starting at the first input.
pub(crate) struct Active {
    base: usize,
    flags: Vec<bool>,
    /// For each active tuple, a flag per element.
    parts: HashMap<ExprId, Box<[bool]>>,
}

impl Active {
    /// Marks the nodes up to `last` that depend on `inputs`.
    pub(crate) fn new(graph: &Graph, inputs: &[ExprId], last: ExprId) -> Self {
        let base = inputs.iter().copied().min().unwrap_or(last).index();
        let flags = vec![false; (last.index() + 1).saturating_sub(base)];
        let mut active = Active { base, flags, parts: HashMap::new() };
        for input in inputs {
            if let Some(flag) = active.flags.get_mut(input.index() - base) {
                *flag = true;
            }
        }
        for offset in 0..active.flags.len() {
            if !active.flags[offset] {
                let id = ExprId::from_index(base + offset);
                active.flags[offset] = active.is_active(graph, id);
            }
        }
        active
    }

    /// Returns the smallest index of a node that can be active.
    pub(crate) fn base(&self) -> usize {
        self.base
    }

    /// Returns whether a node is active.
    pub(crate) fn contains(&self, id: ExprId) -> bool {
        id.index().checked_sub(self.base).is_some_and(|at| self.flags.get(at) == Some(&true))
    }

    fn is_active(&mut self, graph: &Graph, id: ExprId) -> bool {
        let operands = graph.operands(id);
        if !operands.iter().any(|&operand| self.contains(operand)) {
            return false;
        }
        let op = graph.op(id);
        if let Op::Elem(index) = op {
            return self.parts.get(&operands[0]).is_none_or(|parts| parts[*index]);
        }
        if op.family() == Family::Control {
            let inputs: Vec<bool> = operands.iter().map(|&id| self.contains(id)).collect();
            let parts = rules::control::active_parts(graph, op, operands, &inputs);
            let any = parts.contains(&true);
            self.parts.insert(id, parts.into());
            return any;
        }
        if let (Op::Factorize(_), Type::Tuple(types)) = (op, graph.ty(id)) {
            // Row permutations are integers and piecewise constant, so they have no derivative.
            self.parts.insert(id, types.iter().map(|ty| rules::is_continuous(ty.dtype)).collect());
            return true;
        }
        (0..operands.len()).any(|position| {
            self.contains(operands[position]) && rules::carries(graph, op, operands, position)
        })
    }
}

/// Returns for each output of a program whether it depends on the marked inputs.
pub(crate) fn active_outputs(program: &Program, inputs: &[bool]) -> Vec<bool> {
    let marked: Vec<ExprId> = program
        .parameters()
        .iter()
        .zip(inputs)
        .filter_map(|(&parameter, &active)| active.then_some(parameter))
        .collect();
    let Some(&last) = program.outputs().iter().max() else { return Vec::new() };
    if marked.is_empty() {
        return vec![false; program.outputs().len()];
    }
    let active = Active::new(program.graph(), &marked, last);
    program.outputs().iter().map(|&output| active.contains(output)).collect()
}

/// Marks the states of a loop that depend on marked inputs after any number of iterations.
pub(crate) fn mark_active_states(body: &Program, states: usize, inputs: &mut [bool]) {
    loop {
        let outputs = active_outputs(body, inputs);
        let mut grew = false;
        for (input, output) in inputs[..states].iter_mut().zip(outputs) {
            grew |= output && !*input;
            *input |= output;
        }
        if !grew {
            return;
        }
    }
}
