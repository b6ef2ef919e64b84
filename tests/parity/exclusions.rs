//! Tests that each case excluded from the comparison still differs or is rejected.

use std::sync::Arc;

use nxla::graph::{BinaryOp, ExprId, Graph, Op};
use nxla::runtime::RawTensor;
use nxla::{DType, HostTensor, Options, Program, RunContext, Scalar, TensorType, compile_program};

use crate::common::require_plugin;
use crate::values::host;

/// The results of the evaluator and of XLA.
fn results(
    inputs: &[HostTensor],
    build: impl Fn(&mut Graph, &[ExprId]) -> nxla::graph::Result<ExprId>,
) -> [nxla::Result<HostTensor>; 2] {
    let mut graph = Graph::new();
    let types: Vec<TensorType> =
        inputs.iter().map(|x| TensorType::new(x.dtype(), x.shape().clone())).collect();
    let parameters: Vec<ExprId> =
        types.iter().enumerate().map(|(index, ty)| graph.parameter(index, ty.clone())).collect();
    let output = build(&mut graph, &parameters).unwrap();
    let program = Arc::new(Program::new(&graph, types, &[output]).unwrap());
    let inputs: Vec<RawTensor> = inputs.iter().cloned().map(RawTensor::Host).collect();
    ["evaluator", "xla"].map(|compiler| {
        let executable = compile_program(&program, &Options::new().compiler(compiler), &[])?;
        let inputs: Vec<&RawTensor> = inputs.iter().collect();
        executable.run(&inputs, &RunContext::default())?[0].to_host()
    })
}

/// XLA flushes subnormal numbers.
#[test]
fn subnormal_numbers() {
    require_plugin!();
    let tiny = host(DType::F32, [1], &[Scalar::Float(1e-40)]);
    let [ours, theirs] =
        results(&[tiny], |graph, x| graph.make(Op::Binary(BinaryOp::Add), &[x[0], x[0]]));
    assert!(ours.unwrap().get(0).as_f64() > 1e-40);
    assert_eq!(theirs.unwrap().get(0).as_f64(), 0.0);
}

/// XLA squares the parts of a complex base to find its size.
#[test]
fn large_complex_numbers() {
    require_plugin!();
    let [large, half] = [Scalar::Complex(3e38, 3e38), Scalar::Complex(0.5, 0.0)]
        .map(|number| host(DType::C64, [1], &[number]));
    let [ours, theirs] =
        results(&[large, half], |graph, x| graph.make(Op::Binary(BinaryOp::Pow), x));
    assert!(ours.unwrap().get(0).as_f64().is_finite());
    assert!(theirs.unwrap().get(0).as_f64().is_nan());
}
