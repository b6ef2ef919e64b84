//! Memory estimates of stages.

use nxla_expr::{ExprId, Op, Program};

use crate::cost::result_bytes;
use crate::partition::Sequence;
use crate::stage::bytes_of;

/// The memory of a stage if each value is freed after its last use. Arguments and outputs remain
/// until the stage ends, because the caller owns them.
#[derive(Default)]
pub(crate) struct Footprint {
    held: u64,
    pub(crate) peak: u64,
}

impl Footprint {
    /// Counts a value that is not freed yet.
    pub(crate) fn allocate(&mut self, bytes: u64) {
        self.held = self.held.saturating_add(bytes);
        self.peak = self.peak.max(self.held);
    }

    /// Counts an argument, which is held from the start of the stage.
    fn add_argument(&mut self, bytes: u64) {
        self.held = self.held.saturating_add(bytes);
        self.peak = self.peak.saturating_add(bytes);
    }

    pub(crate) fn free(&mut self, bytes: u64) {
        self.held -= bytes;
    }
}

/// Returns the peak memory of a program that runs node by node, including its inputs and outputs. A
/// backend that fuses nodes needs less.
pub(crate) fn peak_bytes(program: &Program) -> u64 {
    let graph = program.graph();
    let mut last_use: Vec<Option<ExprId>> = vec![None; graph.len()];
    for id in graph.ids() {
        for &operand in graph.operands(id) {
            last_use[operand.index()] = Some(id);
        }
    }
    for &output in program.outputs() {
        last_use[output.index()] = None;
    }
    let mut footprint = Footprint::default();
    for ty in program.inputs() {
        footprint.allocate(bytes_of(ty));
    }
    for id in graph.ids() {
        if names_another(graph.op(id)) {
            continue;
        }
        footprint.allocate(result_bytes(graph, id));
        let mut freed: Vec<ExprId> = graph.operands(id).to_vec();
        freed.sort_unstable();
        freed.dedup();
        for operand in freed {
            if last_use[operand.index()] == Some(id) && !names_another(graph.op(operand)) {
                footprint.free(result_bytes(graph, operand));
            }
        }
    }
    footprint.peak
}

/// Returns whether a node has no memory: inputs are counted separately, and elements and
/// annotations are names. The named values count as alive until the end, which is an upper bound.
fn names_another(op: &Op) -> bool {
    matches!(op, Op::Parameter(_) | Op::Elem(_) | Op::Metadata(_))
}

/// Measures the memory of stages that grow node by node.
pub(crate) struct StageMemory<'s> {
    sequence: &'s Sequence<'s>,
    footprint: Footprint,
    /// For each node, the number (from 1) of the last stage that took its value.
    taken: Vec<u32>,
    stage: u32,
    start: usize,
}

impl<'s> StageMemory<'s> {
    pub(crate) fn new(sequence: &'s Sequence<'s>) -> Self {
        let taken = vec![0; sequence.graph().len()];
        Self { sequence, footprint: Footprint::default(), taken, stage: 1, start: 0 }
    }

    /// Starts a stage at a position.
    pub(crate) fn begin(&mut self, start: usize) {
        self.footprint = Footprint::default();
        self.stage += 1;
        self.start = start;
    }

    /// Adds the node at the next position, and returns the peak memory of the stage with it.
    pub(crate) fn add(&mut self, position: usize) -> u64 {
        let sequence = self.sequence;
        let graph = sequence.graph();
        let id = sequence.nodes[position];
        let mut dying = Vec::new();
        for &operand in graph.operands(id) {
            let from = sequence.position_of(operand);
            let is_own = from.is_some_and(|from| from >= self.start);
            if is_own {
                dying.extend(from.filter(|&from| sequence.last_use[from] == position));
            } else if std::mem::replace(&mut self.taken[operand.index()], self.stage) != self.stage
            {
                self.footprint.add_argument(result_bytes(graph, operand));
            }
        }
        self.footprint.allocate(result_bytes(graph, id));
        dying.sort_unstable();
        dying.dedup();
        for from in dying {
            self.footprint.free(result_bytes(graph, sequence.nodes[from]));
        }
        self.footprint.peak
    }
}
