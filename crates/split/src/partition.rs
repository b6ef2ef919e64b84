//! Cutting a program by a given assignment of nodes to parts.

use nxla_expr::{ExprId, Graph, Op, Program};

use crate::assemble::assemble;
use crate::cost::{Estimator, Speed, result_bytes};
use crate::cut::{Cut, Value, is_copied};
use crate::error::SplitError;
use crate::stage::StageGraph;

/// The code for no position.
const NOWHERE: u32 = u32::MAX;

/// The nodes of a program that belong to stages, in an order in which they can run. Inputs, names
/// of elements and copied nodes are excluded.
pub(crate) struct Sequence<'p> {
    pub(crate) program: &'p Program,
    pub(crate) nodes: Vec<ExprId>,
    positions: Vec<u32>,
    /// The position of the last user of each node; the length of the sequence for an output.
    pub(crate) last_use: Vec<usize>,
}

impl<'p> Sequence<'p> {
    pub(crate) fn new(program: &'p Program) -> Self {
        let graph = program.graph();
        let is_owned = |&id: &ExprId| {
            let op = graph.op(id);
            !matches!(op, Op::Parameter(_) | Op::Elem(_)) && !is_copied(graph, id)
        };
        let nodes: Vec<ExprId> = graph.ids().filter(is_owned).collect();
        let mut positions = vec![NOWHERE; graph.len()];
        for (position, &id) in (0..).zip(&nodes) {
            positions[id.index()] = position;
        }
        let mut sequence = Self { program, last_use: Vec::new(), nodes, positions };
        let mut last_use: Vec<usize> = (0..sequence.len()).collect();
        for position in 0..sequence.len() {
            sequence.operands(position).for_each(|operand| last_use[operand] = position);
        }
        for &output in program.outputs() {
            if let Some(output) = sequence.position_of(output) {
                last_use[output] = sequence.len();
            }
        }
        sequence.last_use = last_use;
        sequence
    }

    pub(crate) fn graph(&self) -> &'p Graph {
        self.program.graph()
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the position at which an operand is computed, looking through elements and
    /// annotations.
    pub(crate) fn position_of(&self, operand: ExprId) -> Option<usize> {
        let graph = self.graph();
        let mut id = operand;
        loop {
            let position = self.positions[id.index()];
            if position != NOWHERE {
                return Some(position as usize);
            }
            match (graph.op(id), graph.operands(id)) {
                (Op::Elem(_) | Op::Metadata(_), &[inner]) => id = inner,
                _ => return None,
            }
        }
    }

    /// Returns the positions of the operands of a node, without inputs and copies.
    pub(crate) fn operands(&self, position: usize) -> impl Iterator<Item = usize> {
        let operands = self.graph().operands(self.nodes[position]).iter();
        operands.filter_map(|&operand| self.position_of(operand))
    }

    /// Returns for each position the bytes that cross a cut there: of values that are computed
    /// before it and used at or after it.
    pub(crate) fn crossing_bytes(&self) -> Vec<u64> {
        let mut changes = vec![(0_u64, 0_u64); self.len() + 2];
        for (position, &id) in self.nodes.iter().enumerate() {
            let bytes = result_bytes(self.graph(), id);
            changes[position + 1].0 += bytes;
            changes[self.last_use[position] + 1].1 += bytes;
        }
        let mut bytes = 0;
        let running = changes.iter().map(|(more, less)| {
            bytes = bytes + more - less;
            bytes
        });
        running.take(self.len() + 1).collect()
    }

    /// Returns whether a node counts as an operation.
    pub(crate) fn counts(&self, position: usize) -> bool {
        !matches!(self.graph().op(self.nodes[position]), Op::Metadata(_))
    }

    /// Returns the estimated seconds of each node, without the overhead of stages.
    pub(crate) fn seconds(&self) -> Vec<f64> {
        let speed = Speed { overhead: 0.0, ..Speed::default() };
        let (graph, mut estimator) = (self.graph(), Estimator::new(speed));
        self.nodes.iter().map(|&id| speed.seconds(estimator.node(graph, id).cost)).collect()
    }

    /// Creates stages from ranges between these positions; the first range starts at 0.
    pub(crate) fn cut_at(&self, mut starts: Vec<usize>) -> Result<StageGraph, SplitError> {
        starts.retain(|&start| start > 0 && start < self.len());
        starts.sort_unstable();
        starts.dedup();
        let mut parts = vec![0; self.len()];
        let mut next = starts.iter().copied().peekable();
        let mut part = 0;
        for (position, of_node) in parts.iter_mut().enumerate() {
            if next.next_if_eq(&position).is_some() {
                part += 1;
            }
            *of_node = part;
        }
        self.assemble(&parts)
    }

    /// Moves nodes to later parts if they depend on a later part or follow an effect in a later
    /// part.
    fn settle(&self, parts: &mut [u32]) {
        let mut effects = self.program.effects().iter().filter_map(|&id| self.position_of(id));
        let mut next = effects.next();
        let mut last_effect = 0;
        for position in 0..self.len() {
            let needed = self.operands(position).map(|operand| parts[operand]).max().unwrap_or(0);
            parts[position] = parts[position].max(needed);
            if next == Some(position) {
                last_effect = last_effect.max(parts[position]);
                parts[position] = last_effect;
                next = effects.next();
            }
        }
    }

    /// Creates a stage for each part. Nodes are moved to later parts if they depend on them; empty
    /// parts are skipped.
    pub(crate) fn assemble(&self, parts: &[u32]) -> Result<StageGraph, SplitError> {
        self.assemble_parts(parts).map(|(stages, _)| stages)
    }

    /// Does the same as `assemble`, and returns the part of each stage.
    pub(crate) fn assemble_parts(
        &self,
        parts: &[u32],
    ) -> Result<(StageGraph, Vec<u32>), SplitError> {
        let mut parts = parts.to_vec();
        self.settle(&mut parts);
        let mut used = parts.clone();
        used.sort_unstable();
        used.dedup();
        let mut cut = Cut::empty(self.program, used.len().max(1));
        for (&id, part) in self.nodes.iter().zip(&parts) {
            let stage = used.binary_search(part).expect("the part of a node is used");
            cut.assign(id, stage);
        }
        let graph = self.graph();
        let copied = self.program.outputs().iter().map(|&id| Value::of(graph, id));
        let copied = copied.filter(|value| is_copied(graph, value.node)).collect();
        *cut.declared.last_mut().expect("there is a stage") = copied;
        Ok((assemble(self.program, &cut)?, used))
    }
}
