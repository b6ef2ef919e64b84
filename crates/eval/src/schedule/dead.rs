//! Dead states of loops: neither the results nor the other states of the loop depend on them.
//!
//! An example are the rows that a scan collects for a caller that reads only the carry. The scheduled body
//! returns a dead state unchanged, so that nothing computes it.

use std::sync::Arc;

use nxla_expr::{ExprId, Graph, Op, Program, While};
use rustc_hash::FxHashMap;

/// The parts of the results of each loop that are read.
pub(super) struct Read(FxHashMap<ExprId, Vec<bool>>);

impl Read {
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
        let needed = needed(op, self.0.get(&id)?.clone());
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
fn needed(op: &While, mut needed: Vec<bool>) -> Vec<bool> {
    for (needed, is_used) in needed.iter_mut().zip(op.condition.used_inputs()) {
        *needed |= is_used;
    }
    let body = &op.body;
    loop {
        let outputs = body.outputs().iter().zip(&needed);
        let roots: Vec<ExprId> = outputs
            .filter_map(|(&output, &needed)| needed.then_some(output))
            .chain(body.effects().iter().copied())
            .collect();
        let reachable = body.graph().reachable(&roots);
        let mut grew = false;
        for (needed, &parameter) in needed.iter_mut().zip(body.parameters()) {
            grew |= reachable.contains(parameter) && !*needed;
            *needed |= reachable.contains(parameter);
        }
        if !grew {
            return needed;
        }
    }
}

#[cfg(test)]
mod tests {
    use nxla_expr::{TensorType, UnaryOp};
    use nxla_tensor::{DType, HostTensor, Scalar};

    use super::*;
    use crate::evaluate;

    /// A loop of three iterations that returns some of its states: `y` grows by `x`, which doubles, and the states
    /// `z` and `w` are the sines of each other.
    fn program(returned: &[usize]) -> Program {
        let mut graph = Graph::new();
        let types = vec![TensorType::scalar(DType::F64); 5];
        let initial: Vec<ExprId> =
            (0..5).map(|at| graph.parameter(at, types[at].clone())).collect();
        let mark = graph.mark();
        let scope = graph.open_scope("while", &types);
        let &[n, x, y, z, w] = &scope.parameters[..] else { unreachable!("five states") };
        let number = |graph: &mut Graph, value| {
            graph.scalar_constant(Scalar::Float(value), DType::F64).unwrap()
        };
        let (one, three) = (number(&mut graph, 1.0), number(&mut graph, 3.0));
        let holds = graph.less(n, three).unwrap();
        let condition = graph.traced(mark, vec![holds]);
        let next = vec![
            graph.add(n, one).unwrap(),
            graph.add(x, x).unwrap(),
            graph.add(y, x).unwrap(),
            graph.sin(w).unwrap(),
            graph.sin(z).unwrap(),
        ];
        let body = graph.traced(mark, next);
        let found = graph.while_loop(mark, &scope, &initial, condition, body).unwrap();
        let outputs: Vec<ExprId> = returned.iter().map(|&at| found[at]).collect();
        Program::new(&graph, types, &outputs).unwrap()
    }

    /// The number of sines and of binary ops in the scheduled body.
    fn scheduled(program: &Program) -> (usize, usize) {
        let graph = program.graph();
        let read = Read::new(graph);
        let mut loops = graph.ids().filter_map(|id| match graph.op(id) {
            Op::While(op) => Some(read.body(graph, id, op).unwrap_or_else(|| op.body.clone())),
            _ => None,
        });
        let body = loops.next().unwrap();
        let count = |wanted: &dyn Fn(&Op) -> bool| {
            body.graph().ids().filter(|&id| wanted(body.graph().op(id))).count()
        };
        let sines = count(&|op| *op == Op::Unary(UnaryOp::Sin));
        (sines, count(&|op| matches!(op, Op::Binary(_))))
    }

    #[test]
    fn dead_states_are_not_computed() {
        let inputs: Vec<HostTensor> = [0.0, 1.0, 5.0, 0.5, 0.25]
            .map(|value| HostTensor::scalar(Scalar::Float(value), DType::F64))
            .into();
        let zs = 0.25f64.sin().sin().sin();
        for (returned, ops, expected) in [
            (&[2][..], (0, 3), vec![12.0]),
            (&[1, 0], (0, 2), vec![8.0, 3.0]),
            (&[3], (2, 1), vec![zs]),
            (&[2, 3], (2, 3), vec![12.0, zs]),
        ] {
            let program = program(returned);
            assert_eq!(scheduled(&program), ops, "{program}");
            let found = evaluate(&program, inputs.clone()).unwrap();
            let found: Vec<f64> = found.iter().map(|x| x.get(0).as_f64()).collect();
            for (found, expected) in found.iter().zip(&expected) {
                assert!((found - expected).abs() < 1e-12, "{found} {expected}");
            }
        }
    }
}
