//! Active nodes: the nodes that depend on the inputs through differentiable operands.
//!
//! The reverse pass visits only active nodes. A comparison, an index or a counter that depends on
//! an input therefore adds no nodes, and such an op needs no derivative rule.

use std::collections::HashMap;

use nxla_expr::{ExprId, Fact, Family, Graph, Op, Program, Sources, Type, close_over_iterations};

use crate::rules;

/// The active nodes of a graph, starting at the first input. The fact about a node is whether it is
/// active, or with [`Sources`] the inputs that make it active.
pub(crate) struct Active<F = bool> {
    base: usize,
    facts: Vec<F>,
    /// The facts about the elements of each active tuple.
    parts: HashMap<ExprId, Box<[F]>>,
}

impl Active {
    /// Marks the nodes up to `last` that depend on `inputs`.
    pub(crate) fn new(graph: &Graph, inputs: &[ExprId], last: ExprId) -> Self {
        Self::with_facts(graph, inputs.iter().map(|&input| (input, true)), last)
    }

    /// Returns whether a node is active.
    pub(crate) fn contains(&self, id: ExprId) -> bool {
        self.fact(id).is_some_and(|&fact| fact)
    }
}

impl<F: Fact> Active<F> {
    /// Finds the facts about the nodes up to `last` that follow from the facts about some nodes.
    fn with_facts(
        graph: &Graph,
        inputs: impl Iterator<Item = (ExprId, F)> + Clone,
        last: ExprId,
    ) -> Self {
        let base = inputs.clone().map(|(id, _)| id).min().unwrap_or(last).index();
        let facts = vec![F::default(); (last.index() + 1).saturating_sub(base)];
        let mut active = Active { base, facts, parts: HashMap::new() };
        for (input, fact) in inputs {
            if let Some(known) = active.facts.get_mut(input.index() - base) {
                *known = fact;
            }
        }
        for offset in 0..active.facts.len() {
            if active.facts[offset].is_empty() {
                let id = ExprId::from_index(base + offset);
                active.facts[offset] = active.inherit(graph, id);
            }
        }
        active
    }

    /// Returns the smallest index of a node that can be active.
    pub(crate) fn base(&self) -> usize {
        self.base
    }

    /// Returns the fact about an active node.
    fn fact(&self, id: ExprId) -> Option<&F> {
        let fact = self.facts.get(id.index().checked_sub(self.base)?)?;
        (!fact.is_empty()).then_some(fact)
    }

    /// Returns the fact that a node inherits from its operands.
    fn inherit(&mut self, graph: &Graph, id: ExprId) -> F {
        let operands = graph.operands(id);
        if operands.iter().all(|&operand| self.fact(operand).is_none()) {
            return F::default();
        }
        let op = graph.op(id);
        if let Op::Elem(index) = op {
            let parts = self.parts.get(&operands[0]).map(|parts| &parts[*index]);
            return parts.or_else(|| self.fact(operands[0])).cloned().unwrap_or_default();
        }
        if op.family() == Family::Control {
            let operand = |&id: &ExprId| self.fact(id).cloned().unwrap_or_default();
            let inputs: Vec<F> = operands.iter().map(operand).collect();
            let parts = rules::control::active_parts(graph, op, operands, &inputs);
            let any = F::union(&parts);
            self.parts.insert(id, parts.into());
            return any;
        }
        if let (Op::Factorize(_), Type::Tuple(types)) = (op, graph.ty(id)) {
            // Row permutations are integers and piecewise constant, so they have no derivative.
            let any = F::union(operands.iter().filter_map(|&id| self.fact(id)));
            let is_continuous = types.iter().map(|ty| rules::is_continuous(ty.dtype));
            let part = |is_continuous: bool| if is_continuous { any.clone() } else { F::default() };
            self.parts.insert(id, is_continuous.map(part).collect());
            return any;
        }
        let carried = operands.iter().enumerate().filter_map(|(position, &operand)| {
            let fact = self.fact(operand)?;
            rules::carries(graph, op, operands, position).then_some(fact)
        });
        F::union(carried)
    }
}

/// Returns the facts about the outputs of a program that follow from the facts about its inputs.
pub(crate) fn active_outputs<F: Fact>(program: &Program, inputs: &[F]) -> Vec<F> {
    let Some(&last) = program.outputs().iter().max() else { return Vec::new() };
    if inputs.iter().all(F::is_empty) {
        return vec![F::default(); program.outputs().len()];
    }
    let known = program.parameters().iter().copied().zip(inputs.iter().cloned());
    let active =
        Active::with_facts(program.graph(), known.filter(|(_, fact)| !fact.is_empty()), last);
    let outputs = program.outputs().iter();
    outputs.map(|&output| active.fact(output).cloned().unwrap_or_default()).collect()
}

/// Returns the inputs on which each output of a program depends through differentiable operands.
pub(crate) fn active_sources(program: &Program) -> Vec<Sources> {
    active_outputs(program, &Sources::of_inputs(program.inputs().len()))
}

/// Adds the facts that the states of a loop inherit in any number of iterations.
pub(crate) fn mark_active_states<F: Fact>(body: &Program, inputs: &mut [F]) {
    close_over_iterations(&active_sources(body), inputs);
}
