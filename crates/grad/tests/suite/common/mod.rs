//! Compares gradients with central finite differences in `f64`, and forward mode with reverse mode:
//! the tangent of a sum in a direction is the dot product of its gradient with the direction.
#![allow(dead_code, reason = "each test binary uses a part of this")]

use std::sync::Arc;

use nxla_eval::{Hooks, Plan, evaluate};
use nxla_expr::verify::verify;
use nxla_expr::{ExprId, Graph, Program, TensorType};
use nxla_grad::{gradients, jvp};
use nxla_tensor::{DType, HostTensor, Scalar, Shape};

/// The step of the finite differences; their error is proportional to its square.
const STEP: f64 = 1e-5;

/// Returns deterministic, unordered and distinct values in an interval.
pub(crate) fn samples(shape: &[usize], (low, high): (f64, f64), seed: u64) -> HostTensor {
    let count: usize = shape.iter().product();
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let numbers: Vec<f64> = (0..count)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            low + (high - low) * ((state >> 11) as f64 / (1u64 << 53) as f64)
        })
        .collect();
    HostTensor::from_slice(&numbers, Shape::from(shape)).unwrap()
}

pub(crate) fn tensor(shape: &[usize], numbers: &[f64]) -> HostTensor {
    HostTensor::from_slice(numbers, Shape::from(shape)).unwrap()
}

pub(crate) fn integers(shape: &[usize], numbers: &[i64]) -> HostTensor {
    HostTensor::from_slice(numbers, Shape::from(shape)).unwrap()
}

pub(crate) fn number(graph: &mut Graph, value: f64) -> ExprId {
    graph.scalar_constant(Scalar::Float(value), DType::F64).unwrap()
}

pub(crate) fn types(inputs: &[HostTensor]) -> Vec<TensorType> {
    inputs.iter().map(|input| TensorType::new(input.dtype(), input.shape().clone())).collect()
}

/// Creates parameters with the types of `inputs`.
pub(crate) fn parameters(graph: &mut Graph, inputs: &[HostTensor]) -> Vec<ExprId> {
    let types = types(inputs);
    types.into_iter().enumerate().map(|(at, ty)| graph.parameter(at, ty)).collect()
}

/// Evaluates the outputs of a graph.
pub(crate) fn run(graph: &Graph, inputs: &[HostTensor], outputs: &[ExprId]) -> Vec<HostTensor> {
    let program = Program::new(graph, types(inputs), outputs).unwrap();
    evaluate(&program, inputs.to_vec()).unwrap()
}

pub(crate) fn f64s(tensor: &HostTensor) -> Vec<f64> {
    tensor.cast(DType::F64).to_vec::<f64>().unwrap()
}

/// Returns the sum of `x` with distinct weights, which detects a wrong order of elements.
pub(crate) fn weighted_sum(graph: &mut Graph, x: ExprId) -> ExprId {
    let shape = graph.shape(x).clone();
    let x = graph.rename(x, None).unwrap();
    let count = graph.iota(shape, None, DType::F64).unwrap();
    let one = number(graph, 1.0);
    let phase = graph.add(count, one).unwrap();
    let weights = graph.sin(phase).unwrap();
    let product = graph.multiply(x, weights).unwrap();
    graph.sum(product, None, false).unwrap()
}

/// Compares the gradient of a weighted sum of the result of `build` with finite differences, for
/// every `f64` input; other inputs are constants.
pub(crate) fn check(inputs: &[HostTensor], build: impl Fn(&mut Graph, &[ExprId]) -> ExprId) {
    check_with(inputs, 2e-7, build);
}

pub(crate) fn check_with(
    inputs: &[HostTensor],
    tolerance: f64,
    build: impl Fn(&mut Graph, &[ExprId]) -> ExprId,
) {
    let mut graph = Graph::new();
    let parameters = parameters(&mut graph, inputs);
    let result = build(&mut graph, &parameters);
    let loss = weighted_sum(&mut graph, result);
    compare(&mut graph, inputs, &parameters, loss, tolerance);
}

/// Does the same as [`check`], and checks the gradient of a weighted sum of the gradients.
pub(crate) fn check_twice(inputs: &[HostTensor], build: impl Fn(&mut Graph, &[ExprId]) -> ExprId) {
    check(inputs, &build);
    let mut graph = Graph::new();
    let parameters = parameters(&mut graph, inputs);
    let result = build(&mut graph, &parameters);
    let loss = weighted_sum(&mut graph, result);
    let wrt = differentiate(inputs, &parameters);
    let first = gradients(&mut graph, loss, &wrt).unwrap();
    let sums: Vec<ExprId> = first.into_iter().map(|it| weighted_sum(&mut graph, it)).collect();
    let total = sums.into_iter().reduce(|a, b| graph.add(a, b).unwrap()).unwrap();
    compare(&mut graph, inputs, &parameters, total, 1e-6);
}

fn differentiate(inputs: &[HostTensor], parameters: &[ExprId]) -> Vec<ExprId> {
    let pairs = inputs.iter().zip(parameters);
    pairs.filter(|(input, _)| input.dtype() == DType::F64).map(|(_, &id)| id).collect()
}

fn compare(
    graph: &mut Graph,
    inputs: &[HostTensor],
    parameters: &[ExprId],
    loss: ExprId,
    tolerance: f64,
) {
    let wrt = differentiate(inputs, parameters);
    let found = gradients(graph, loss, &wrt).unwrap();
    for (&input, &gradient) in wrt.iter().zip(&found) {
        assert_eq!(graph.tensor_type(gradient), graph.tensor_type(input));
    }
    assert_eq!(verify(graph), Ok(()));
    let found = run(graph, inputs, &found);
    compare_forward(graph, inputs, loss, &found);
    let plan = Plan::new(Arc::new(Program::new(graph, types(inputs), &[loss]).unwrap()));
    let evaluate = |inputs: &[HostTensor]| -> f64 {
        f64s(&plan.run(inputs.to_vec(), &Hooks::new()).unwrap()[0])[0]
    };
    let positions = (0..inputs.len()).filter(|&at| inputs[at].dtype() == DType::F64);
    for (position, found) in positions.zip(found) {
        let numbers = f64s(&inputs[position]);
        for (element, (&number, found)) in numbers.iter().zip(f64s(&found)).enumerate() {
            let at = |value: f64| {
                let mut moved = numbers.clone();
                moved[element] = value;
                let mut inputs = inputs.to_vec();
                inputs[position] = tensor(inputs[position].shape(), &moved);
                evaluate(&inputs)
            };
            let expected = (at(number + STEP) - at(number - STEP)) / (2.0 * STEP);
            let scale = 1.0f64.max(expected.abs()).max(found.abs());
            assert!(
                (found - expected).abs() <= tolerance.max(STEP * STEP) * scale,
                "input {position}, element {element}: gradient {found}, differences {expected}"
            );
        }
    }
}

/// Compares the forward-mode derivative of a scalar in a direction with its gradient with respect
/// to the `f64` inputs.
fn compare_forward(graph: &Graph, inputs: &[HostTensor], loss: ExprId, gradient: &[HostTensor]) {
    let program = Program::new(graph, types(inputs), &[loss]).unwrap();
    let is_moved = |input: &&HostTensor| input.dtype() == DType::F64;
    let directions: Vec<HostTensor> = inputs
        .iter()
        .filter(is_moved)
        .zip(77..)
        .map(|(input, seed)| samples(input.shape(), (-1.0, 1.0), seed))
        .collect();
    let all: Vec<HostTensor> = inputs.iter().chain(&directions).cloned().collect();
    let mut forward = Graph::new();
    let ids = parameters(&mut forward, &all);
    let (values, moved) = ids.split_at(inputs.len());
    let mut moved = moved.iter().copied();
    let tangents: Vec<Option<ExprId>> =
        inputs.iter().map(|input| is_moved(&input).then(|| moved.next().unwrap())).collect();
    let (outputs, changes) = jvp(&mut forward, &program, values, &tangents, 1).unwrap();
    assert_eq!(verify(&forward), Ok(()));
    let expected_value = f64s(&run(graph, inputs, &[loss])[0])[0];
    let found = run(&forward, &all, &[outputs[0], changes[0]]);
    let (value, found) = (f64s(&found[0])[0], f64s(&found[1])[0]);
    assert!(
        (value - expected_value).abs() <= 1e-9 * 1.0f64.max(value.abs()),
        "forward mode returns {value}, the function {expected_value}"
    );
    let mut expected = 0.0;
    let mut scale = 1.0f64;
    for (gradient, direction) in gradient.iter().zip(&directions) {
        for (slope, step) in f64s(gradient).iter().zip(f64s(direction)) {
            expected += slope * step;
            scale = scale.max((slope * step).abs());
        }
    }
    assert!(
        (found - expected).abs() <= 1e-8 * scale,
        "forward mode returns {found}, the gradient {expected}"
    );
}
