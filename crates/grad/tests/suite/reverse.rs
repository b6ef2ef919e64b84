//! The reverse pass: types of results, number of nodes, and errors.

use std::time::Instant;

use crate::common::{check, check_twice, f64s, number, run, samples, tensor};
use nxla_expr::{Graph, Line, Op, Source, TensorType, Type};
use nxla_grad::{GradError, gradients, vjp};
use nxla_tensor::{AxisName, DType, Names, Scalar};

#[test]
fn gradient_of_output_is_ones() {
    let mut graph = Graph::new();
    let x = graph.parameter(0, TensorType::new(DType::F16, [2]));
    let found = gradients(&mut graph, x, &[x]).unwrap()[0];
    assert_eq!(graph.tensor_type(found).to_string(), "f16[2]");
    assert!(matches!(graph.op(found), Op::Constant(constant) if constant.value.is_one()));
}

#[test]
fn unused_inputs_have_zero_gradients() {
    let mut graph = Graph::new();
    let x = graph.parameter(0, TensorType::new(DType::F64, [2]));
    let unused = [DType::F32, DType::S8, DType::C64, DType::Pred]
        .map(|dtype| graph.parameter(1, TensorType::new(dtype, [3, 1])));
    let y = graph.sin(x).unwrap();
    let found = gradients(&mut graph, y, &unused).unwrap();
    let texts: Vec<String> = found.iter().map(|&id| graph.tensor_type(id).to_string()).collect();
    assert_eq!(texts, ["f32[3][1]", "f32[3][1]", "c64[3][1]", "f32[3][1]"]);
    for id in found {
        assert!(matches!(graph.op(id), Op::Constant(constant) if constant.value.is_zero()));
    }
}

#[test]
fn gradients_have_the_dtypes_of_inputs() {
    let mut graph = Graph::new();
    let dtypes = [DType::BF16, DType::F32, DType::F64, DType::S32, DType::C64];
    let inputs: Vec<_> = dtypes
        .iter()
        .enumerate()
        .map(|(at, &dtype)| graph.parameter(at, TensorType::scalar(dtype)))
        .collect();
    let mut y = inputs[0];
    for &input in &inputs[1..] {
        y = graph.multiply(y, input).unwrap();
    }
    let found = gradients(&mut graph, y, &inputs).unwrap();
    let found: Vec<DType> = found.iter().map(|&id| graph.dtype(id)).collect();
    assert_eq!(found, [DType::BF16, DType::F32, DType::F64, DType::F64, DType::C64]);
}

#[test]
fn integers_have_float_gradients() {
    let mut graph = Graph::new();
    let inputs = [crate::common::integers(&[2], &[2, -3])];
    let x = crate::common::parameters(&mut graph, &inputs)[0];
    let y = graph.multiply(x, x).unwrap();
    let found = gradients(&mut graph, y, &[x]).unwrap();
    assert_eq!(graph.dtype(found[0]), DType::F32);
    assert_eq!(f64s(&run(&graph, &inputs, &found)[0]), [4.0, -6.0]);
}

#[test]
fn several_inputs_and_shared_subexpressions() {
    let inputs = [samples(&[2], (0.5, 1.5), 1), samples(&[2], (0.5, 1.5), 2)];
    check_twice(&inputs, |graph, x| {
        let shared = graph.multiply(x[0], x[1]).unwrap();
        let sine = graph.sin(shared).unwrap();
        let sum = graph.add(shared, sine).unwrap();
        let product = graph.multiply(sum, shared).unwrap();
        graph.divide(product, x[0]).unwrap()
    });
}

#[test]
fn intermediate_nodes_can_be_inputs() {
    let mut graph = Graph::new();
    let inputs = [tensor(&[], &[2.0])];
    let x = crate::common::parameters(&mut graph, &inputs)[0];
    let square = graph.multiply(x, x).unwrap();
    let y = graph.multiply(square, x).unwrap();
    // The derivative with respect to `x` includes the path through `square`.
    let found = gradients(&mut graph, y, &[square, x, x]).unwrap();
    let found: Vec<f64> = run(&graph, &inputs, &found).iter().map(|it| f64s(it)[0]).collect();
    assert_eq!(found, [2.0, 12.0, 12.0]);
}

#[test]
fn higher_derivatives() {
    let mut graph = Graph::new();
    let inputs = [tensor(&[], &[0.7])];
    let x = crate::common::parameters(&mut graph, &inputs)[0];
    let mut y = graph.sin(x).unwrap();
    for _ in 0..4 {
        y = gradients(&mut graph, y, &[x]).unwrap()[0];
    }
    assert_eq!(f64s(&run(&graph, &inputs, &[y])[0]), [0.7f64.sin()]);
}

#[test]
fn vjp_combines_several_outputs() {
    let mut graph = Graph::new();
    let inputs = [tensor(&[2], &[2.0, 3.0]), tensor(&[2], &[10.0, 100.0])];
    let ids = crate::common::parameters(&mut graph, &inputs);
    let square = graph.multiply(ids[0], ids[0]).unwrap();
    let total = graph.sum(ids[0], None, false).unwrap();
    let five = number(&mut graph, 5.0);
    let found = vjp(&mut graph, &[square, total], &[ids[1], five], &[ids[0]]).unwrap();
    assert_eq!(f64s(&run(&graph, &inputs, &found)[0]), [45.0, 605.0]);
    assert_eq!(vjp(&mut graph, &[], &[], &[ids[0]]).unwrap().len(), 1);
}

#[test]
fn vjp_checks_cotangents() {
    let mut graph = Graph::new();
    let x = graph.parameter(0, TensorType::new(DType::F64, [2]));
    let error = vjp(&mut graph, &[x], &[], &[x]).unwrap_err();
    assert_eq!(error.to_string(), "grad: cotangents: must be one for each of the 1 outputs; got 0");
    let seed = number(&mut graph, 1.0);
    let error = vjp(&mut graph, &[x], &[seed], &[x]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "grad: cotangent: must have the shape of the output f64[2]; got f64"
    );
}

#[test]
fn tuples_are_rejected() {
    let mut graph = Graph::new();
    let x = graph.parameter(0, TensorType::new(DType::F64, [2]));
    let pair = graph.metadata(&[x, x], nxla_expr::Metadata::default()).unwrap();
    assert!(matches!(graph.ty(pair), Type::Tuple(_)));
    let error = gradients(&mut graph, pair, &[x]).unwrap_err();
    assert_eq!(error.to_string(), "grad: output: must be a tensor; got tuple2");
    let error = gradients(&mut graph, x, &[pair]).unwrap_err();
    assert_eq!(error.to_string(), "grad: input: must be a tensor; got tuple2");
}

fn names(list: &[&str]) -> Option<Names> {
    Some(Names::new(list.iter().map(|name| Some(AxisName::from(*name)))))
}

#[test]
fn gradients_have_the_axis_names_of_inputs() {
    let mut graph = Graph::new();
    let ty = |shape: [usize; 2], list: &[&str]| TensorType {
        names: names(list),
        ..TensorType::new(DType::F64, shape)
    };
    let a = graph.parameter(0, ty([2, 3], &["rows", "inner"]));
    let b = graph.parameter(1, ty([3, 2], &["other", "columns"]));
    let product = graph.dot(a, b).unwrap();
    let transposed = graph.transpose(product, None).unwrap();
    let renamed = graph.rename(transposed, names(&["columns", "rows"])).unwrap();
    let sine = graph.sin(renamed).unwrap();
    let total = graph.sum(sine, Some(&[0]), false).unwrap();
    let found = gradients(&mut graph, total, &[a, b]).unwrap();
    assert_eq!(graph.tensor_type(found[0]), graph.tensor_type(a));
    assert_eq!(graph.tensor_type(found[1]), graph.tensor_type(b));
}

#[test]
fn empty_tensors() {
    check(&[samples(&[0], (0.5, 1.5), 1), samples(&[], (0.5, 1.5), 2)], |graph, x| {
        let product = graph.multiply(x[0], x[1]).unwrap();
        let total = graph.sum(product, None, false).unwrap();
        let sine = graph.sin(x[1]).unwrap();
        graph.add(total, sine).unwrap()
    });
}

#[test]
fn errors_name_the_op_and_the_line() {
    let mut graph = Graph::new();
    let x = graph.parameter(0, TensorType::new(DType::S32, [2]));
    let line = Line { file: "train.py".into(), line: 31 };
    let source = graph.add_source(Source::Line(line.clone()));
    graph.set_source(source);
    let two = graph.scalar_constant(Scalar::Int(2), DType::S32).unwrap();
    let y = graph.quotient(x, two).unwrap();
    let error = gradients(&mut graph, y, &[x]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "quotient: integer division has no derivative; divide instead, or mark it with stop_grad \
         (train.py:31)"
    );
    // The error also names the line of an op inside a composite, whose body is a separate graph.
    let z = graph
        .block("halve", Vec::new(), &[x], |graph, x| -> nxla_expr::Result<_> {
            Ok(vec![graph.quotient(x[0], two)?])
        })
        .unwrap()[0];
    let GradError::NotDifferentiable { line: found, .. } =
        gradients(&mut graph, z, &[x]).unwrap_err()
    else {
        panic!("an op without a rule is not differentiable")
    };
    assert_eq!(found, Some(line));
}

#[test]
fn shared_nodes_have_derivatives_of_linear_size() {
    // Every node has two uses: the number of paths doubles at each step, the number of nodes must
    // not.
    let mut graph = Graph::new();
    let x = graph.parameter(0, TensorType::new(DType::F64, [2]));
    let mut y = x;
    for _ in 0..100 {
        let sine = graph.sin(y).unwrap();
        y = graph.multiply(sine, y).unwrap();
    }
    let before = graph.len();
    gradients(&mut graph, y, &[x]).unwrap();
    assert!(graph.len() - before <= 100 * 6, "{} new nodes", graph.len() - before);
}

#[test]
fn input_independent_nodes_add_no_derivatives() {
    let mut graph = Graph::new();
    let x = graph.parameter(0, TensorType::new(DType::F64, [2]));
    let mut w = graph.parameter(1, TensorType::new(DType::F64, [2]));
    for _ in 0..50 {
        w = graph.sin(w).unwrap();
    }
    let y = graph.multiply(x, w).unwrap();
    let before = graph.len();
    let found = gradients(&mut graph, y, &[x]).unwrap();
    assert!(graph.len() - before <= 2, "{} new nodes", graph.len() - before);
    // The product of 1 and `w`, without a broadcast, is `w`.
    assert_eq!(found, [w]);
}

#[test]
fn long_chains_take_linear_time() {
    let time = |count: usize| {
        let mut graph = Graph::new();
        let x = graph.parameter(0, TensorType::new(DType::F64, [4]));
        let mut y = x;
        for _ in 0..count {
            y = graph.sin(y).unwrap();
        }
        let start = Instant::now();
        gradients(&mut graph, y, &[x]).unwrap();
        (start.elapsed(), graph.len())
    };
    let (_, small) = time(1_000);
    let (elapsed, large) = time(1_000_000);
    assert!(large <= small * 1_000);
    // 2 million nodes: a quadratic pass would take hours.
    assert!(elapsed.as_secs() < 20, "{elapsed:?}");
}
