//! Helpers for several tests of this crate.

use nxla_eval::evaluate;
use nxla_expr::{ExprId, Graph, Program, Result, TensorType};
use nxla_tensor::HostTensor;

/// Builds a program with inputs of these types; `build` adds its outputs.
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

/// The result of a function of these tensors.
pub(crate) fn evaluate_op(
    inputs: &[HostTensor],
    build: impl FnOnce(&mut Graph, &[ExprId]) -> Result<ExprId>,
) -> HostTensor {
    let types: Vec<TensorType> =
        inputs.iter().map(|x| TensorType::new(x.dtype(), x.shape().clone())).collect();
    let built = program(&types, |graph, ids| {
        vec![build(graph, ids).expect("the test applies ops to operands that they accept")]
    });
    evaluate(&built, inputs.to_vec()).expect("the run succeeds").remove(0)
}

/// Pseudo-random numbers, which are the same in every run.
pub(crate) fn random_bits(count: usize) -> impl Iterator<Item = u64> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    (0..count).map(move |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    })
}
