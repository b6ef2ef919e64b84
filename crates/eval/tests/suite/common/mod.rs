//! Helpers for several tests of this crate.

use std::sync::Arc;

use nxla_eval::{Hooks, Plan, evaluate};
use nxla_expr::{ExprId, Graph, Program, Result, TensorType};
use nxla_tensor::{DType, Element, HostTensor, Shape};

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

/// A tensor of these elements.
pub(crate) fn tensor<T: Element>(elements: &[T], shape: impl Into<Shape>) -> HostTensor {
    HostTensor::from_slice(elements, shape).expect("the shape has the size of the elements")
}

/// A program of a function of these tensors.
pub(crate) fn program_of(
    inputs: &[HostTensor],
    build: impl FnOnce(&mut Graph, &[ExprId]) -> Result<Vec<ExprId>>,
) -> Program {
    let types: Vec<TensorType> =
        inputs.iter().map(|x| TensorType::new(x.dtype(), x.shape().clone())).collect();
    program(&types, |graph, ids| {
        build(graph, ids).expect("the test applies ops to operands that they accept")
    })
}

/// The results of a function of these tensors.
pub(crate) fn evaluate_all(
    inputs: &[HostTensor],
    build: impl FnOnce(&mut Graph, &[ExprId]) -> Result<Vec<ExprId>>,
) -> Vec<HostTensor> {
    evaluate(&program_of(inputs, build), inputs.to_vec()).expect("the run succeeds")
}

/// The only result of a function of these tensors.
pub(crate) fn evaluate_op(
    inputs: &[HostTensor],
    build: impl FnOnce(&mut Graph, &[ExprId]) -> Result<ExprId>,
) -> HostTensor {
    evaluate_all(inputs, |graph, ids| Ok(vec![build(graph, ids)?])).remove(0)
}

/// Runs a program with each operation as a separate step.
pub(crate) fn run_unfused(program: &Arc<Program>, inputs: Vec<HostTensor>) -> Vec<HostTensor> {
    Plan::checked(program.clone()).run(inputs, &Hooks::new()).expect("the run succeeds")
}

/// The dtypes, shapes and bytes of results.
pub(crate) fn contents(results: &[HostTensor]) -> Vec<(DType, Vec<usize>, Vec<u8>)> {
    let parts = |x: &HostTensor| (x.dtype(), x.shape().to_vec(), x.bytes().to_vec());
    results.iter().map(parts).collect()
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
