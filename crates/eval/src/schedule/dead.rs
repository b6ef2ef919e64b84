//! Dead states of loops: neither the results nor the other states of the loop depend on them.
//!
//! An example are the rows that a scan collects for a caller that reads only the carry. The scheduled body
//! returns a dead state unchanged, so that nothing computes it.

use std::sync::Arc;

use nxla_expr::{ExprId, Graph, Op, Program, While};
use rustc_hash::FxHashMap;

/// The parts of the results of each loop that are read.
pub(super) struct LoopReads(FxHashMap<ExprId, Vec<bool>>);

impl LoopReads {
    pub(super) fn new(graph: &Graph) -> Self {
        let mut read: FxHashMap<ExprId, Vec<bool>> = FxHashMap::default();
        for id in graph.ids() {
            if let Op::While(op) = graph.op(id) {
                read.insert(id, vec![false; op.state]);
            } else if let Op::Elem(index) = graph.op(id)
                && let Some(parts) = read.get_mut(&graph.operands(id)[0])
            {
                parts[*index] = true;
            }
        }
        Self(read)
    }

    /// The body of a loop without its dead states; `None` if no state is dead.
    pub(super) fn body(&self, graph: &Graph, id: ExprId, op: &While) -> Option<Arc<Program>> {
        // The result of a loop with one state is a tensor, not a tuple.
        if graph.ty(id).as_tensor().is_some() {
            return None;
        }
        let needed = needed_states(op, self.0.get(&id)?.clone());
        if !needed.contains(&false) {
            return None;
        }
        let body = &op.body;
        let pairs = body.outputs().iter().zip(body.parameters()).zip(&needed);
        let outputs: Vec<ExprId> = pairs
            .map(|((&output, &before), &needed)| if needed { output } else { before })
            .collect();
        let lean = Program::new(body.graph(), body.inputs().to_vec(), &outputs);
        Some(Arc::new(lean.expect("a part of a program is a program")))
    }
}

/// The states on which the read states, the condition or the hooks depend after any number of iterations.
fn needed_states(op: &While, mut needed: Vec<bool>) -> Vec<bool> {
    let body = &op.body;
    let hooks = body.graph().reachable(body.effects());
    let states = op.condition.used_inputs().into_iter().zip(body.parameters());
    for (needed, (is_tested, &state)) in needed.iter_mut().zip(states) {
        *needed |= is_tested || hooks.contains(state);
    }
    op.needed_states(needed)
}
