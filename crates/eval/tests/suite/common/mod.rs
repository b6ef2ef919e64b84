//! What several tests of this crate need.

use nxla_expr::{ExprId, Graph, Program, TensorType};

/// A program of inputs of these types, of which `build` makes the outputs.
pub(crate) fn program(
    types: &[TensorType],
    build: impl FnOnce(&mut Graph, &[ExprId]) -> Vec<ExprId>,
) -> Program {
    let mut graph = Graph::new();
    let inputs: Vec<ExprId> =
        types.iter().enumerate().map(|(index, ty)| graph.parameter(index, ty.clone())).collect();
    let outputs = build(&mut graph, &inputs);
    Program::new(&graph, types.to_vec(), &outputs).expect("the outputs are of this graph")
}
