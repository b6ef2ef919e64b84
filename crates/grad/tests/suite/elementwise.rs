//! Compares the derivatives of every element-wise op with finite differences.

use crate::common::{check, check_twice, check_with, number, run, samples, tensor};
use nxla_expr::{BinaryOp, Graph, TensorType, UnaryClass, UnaryOp};
use nxla_grad::{GradError, gradients};
use nxla_tensor::{DType, HostTensor, Scalar};

/// Returns whether an op accepts floats; `ops_on_integers_only` tests the other ops.
fn accepts_floats(op: UnaryOp) -> bool {
    !matches!(op.class(), UnaryClass::Bits | UnaryClass::Int)
}

#[test]
fn unary_ops() {
    for &op in UnaryOp::ALL.iter().filter(|&&op| accepts_floats(op)) {
        let x = samples(&[2, 4], op.domain(), 7);
        check(&[x], |graph, inputs| {
            let y = graph.unary(op, inputs[0]).unwrap();
            if graph.dtype(y).is_complex() { graph.real(y).unwrap() } else { y }
        });
    }
}

#[test]
fn second_derivatives_of_unary_ops() {
    for &op in UnaryOp::ALL.iter().filter(|&&op| accepts_floats(op)) {
        let (low, high) = op.domain();
        // Away from the ends, where large third derivatives make finite differences inaccurate.
        let x = samples(&[3], (low + 0.25 * (high - low), high - 0.25 * (high - low)), 3);
        check_twice(&[x], |graph, inputs| {
            let y = graph.unary(op, inputs[0]).unwrap();
            if graph.dtype(y).is_complex() { graph.real(y).unwrap() } else { y }
        });
    }
}

/// Checks a complex rule with the real function `(a, b) -> (Re f(a + ib), Im f(a + ib))`.
#[test]
fn complex_unary_ops() {
    let refuse_complex = |op: UnaryOp| {
        matches!(
            op.class(),
            UnaryClass::RealFloat | UnaryClass::SameReal | UnaryClass::Bits | UnaryClass::Int
        )
    };
    for &op in UnaryOp::ALL.iter().filter(|&&op| !refuse_complex(op)) {
        // Avoids the branch cuts, which are on the axes.
        let (a, b) = (samples(&[4], (0.2, 0.9), 5), samples(&[4], (0.2, 0.8), 6));
        check_with(&[a, b], 1e-6, |graph, inputs| {
            let z = complex(graph, inputs[0], inputs[1]);
            let y = graph.unary(op, z).unwrap();
            let (re, im) = (graph.real(y).unwrap(), graph.imag(y).unwrap());
            let re = graph.as_type(re, DType::F64).unwrap();
            let im = graph.as_type(im, DType::F64).unwrap();
            graph.stack(&[re, im], 0, None).unwrap()
        });
    }
}

fn complex(graph: &mut Graph, a: nxla_expr::ExprId, b: nxla_expr::ExprId) -> nxla_expr::ExprId {
    let i = graph.scalar_constant(Scalar::Complex(0.0, 1.0), DType::C128).unwrap();
    let imaginary = graph.multiply(i, b).unwrap();
    graph.add(a, imaginary).unwrap()
}

#[test]
fn complex_binary_ops() {
    for op in
        [BinaryOp::Add, BinaryOp::Subtract, BinaryOp::Multiply, BinaryOp::Divide, BinaryOp::Pow]
    {
        let inputs: Vec<HostTensor> = (1..5).map(|seed| samples(&[3], (0.3, 1.5), seed)).collect();
        check_with(&inputs, 1e-6, |graph, inputs| {
            let x = complex(graph, inputs[0], inputs[1]);
            let y = complex(graph, inputs[2], inputs[3]);
            let z = graph.binary(op, x, y).unwrap();
            let (re, im) = (graph.real(z).unwrap(), graph.imag(z).unwrap());
            graph.stack(&[re, im], 0, None).unwrap()
        });
    }
}

#[test]
fn real_operands_of_complex_products_have_real_gradients() {
    let inputs = [samples(&[3], (0.5, 2.0), 1), samples(&[3], (0.5, 2.0), 2)];
    check(&inputs, |graph, inputs| {
        let z = complex(graph, inputs[1], inputs[0]);
        let product = graph.multiply(inputs[0], z).unwrap();
        let exp = graph.exp(product).unwrap();
        graph.abs(exp).unwrap()
    });
}

fn accepts_float_operands(op: BinaryOp) -> bool {
    use nxla_expr::BinaryClass;
    !matches!(op.class(), BinaryClass::Int | BinaryClass::Bits)
}

/// Returns positive samples (for powers) whose quotients are not integers (for remainders).
fn operands(op: BinaryOp, left: &[usize], right: &[usize]) -> [HostTensor; 2] {
    match op {
        BinaryOp::Remainder => [samples(left, (5.1, 5.9), 1), samples(right, (2.05, 2.45), 2)],
        _ => [samples(left, (0.5, 3.0), 1), samples(right, (0.6, 2.9), 2)],
    }
}

#[test]
fn binary_ops_and_broadcasting() {
    let shapes: [(&[usize], &[usize]); 7] = [
        (&[2, 3], &[2, 3]),
        (&[], &[2, 3]),
        (&[2, 3], &[]),
        (&[3], &[2, 3]),
        (&[2, 1], &[1, 3]),
        (&[4, 1, 2], &[3, 1]),
        (&[0, 3], &[1, 3]),
    ];
    for &op in BinaryOp::ALL.iter().filter(|&&op| accepts_float_operands(op)) {
        for (left, right) in shapes {
            check(&operands(op, left, right), |graph, inputs| {
                graph.binary(op, inputs[0], inputs[1]).unwrap()
            });
        }
    }
}

#[test]
fn second_derivatives_of_binary_ops() {
    for &op in BinaryOp::ALL.iter().filter(|&&op| accepts_float_operands(op)) {
        check_twice(&operands(op, &[2, 1], &[3]), |graph, inputs| {
            graph.binary(op, inputs[0], inputs[1]).unwrap()
        });
    }
}

#[test]
fn ops_on_integers_only() {
    let unary = UnaryOp::ALL.iter().filter(|&&op| !accepts_floats(op));
    for &op in unary {
        let mut graph = Graph::new();
        let x = graph.parameter(0, TensorType::new(DType::S32, [3]));
        let y = graph.unary(op, x).unwrap();
        let found = gradients(&mut graph, y, &[x]).unwrap()[0];
        assert_zeros(&graph, found);
    }
    for &op in BinaryOp::ALL.iter().filter(|&&op| !accepts_float_operands(op)) {
        let mut graph = Graph::new();
        let x = graph.parameter(0, TensorType::new(DType::S32, [3]));
        let y = graph.parameter(1, TensorType::new(DType::S32, [3]));
        let z = graph.binary(op, x, y).unwrap();
        let found = gradients(&mut graph, z, &[x, y]);
        if op == BinaryOp::Quotient {
            let error = found.unwrap_err();
            assert!(
                matches!(error, GradError::NotDifferentiable { op: "quotient", .. }),
                "{error}"
            );
        } else {
            found.unwrap().into_iter().for_each(|found| assert_zeros(&graph, found));
        }
    }
}

fn assert_zeros(graph: &Graph, id: nxla_expr::ExprId) {
    match graph.op(id) {
        nxla_expr::Op::Constant(constant) => assert!(constant.value.is_zero()),
        op => panic!("expected a constant, got {}", op.name()),
    }
    assert_eq!(graph.dtype(id), DType::F32);
}

/// Returns the gradients at points where finite differences fail.
fn gradient_at(
    inputs: &[HostTensor],
    build: impl Fn(&mut Graph, &[nxla_expr::ExprId]) -> nxla_expr::ExprId,
) -> Vec<Vec<f64>> {
    let mut graph = Graph::new();
    let parameters = crate::common::parameters(&mut graph, inputs);
    let output = build(&mut graph, &parameters);
    let found = gradients(&mut graph, output, &parameters).unwrap();
    run(&graph, inputs, &found).iter().map(crate::common::f64s).collect()
}

#[test]
fn ties_share_gradients_of_extrema() {
    let inputs = [tensor(&[3], &[1.0, 2.0, 3.0]), tensor(&[3], &[2.0, 2.0, 2.0])];
    let max = gradient_at(&inputs, |graph, x| graph.max(x[0], x[1]).unwrap());
    assert_eq!(max, [[0.0, 0.5, 1.0], [1.0, 0.5, 0.0]]);
    let min = gradient_at(&inputs, |graph, x| graph.min(x[0], x[1]).unwrap());
    assert_eq!(min, [[1.0, 0.5, 0.0], [0.0, 0.5, 1.0]]);
}

#[test]
fn powers_at_zero() {
    let inputs = [tensor(&[4], &[0.0, 0.0, 0.0, 2.0]), tensor(&[4], &[2.0, 1.0, 0.0, 0.0])];
    let found = gradient_at(&inputs, |graph, x| graph.pow(x[0], x[1]).unwrap());
    assert_eq!(found[0], [0.0, 1.0, 0.0, 0.0]);
    assert_eq!(found[1], [0.0, 0.0, 0.0, 2f64.ln()]);
    for (exponent, expected) in [(0.0, 0.0), (1.0, 1.0), (2.0, 0.0), (3.0, 0.0)] {
        let found = gradient_at(&[tensor(&[], &[0.0])], |graph, x| {
            let exponent = number(graph, exponent);
            graph.pow(x[0], exponent).unwrap()
        });
        assert_eq!(found, [[expected]], "exponent {exponent}");
    }
}

#[test]
fn remainder_gradients_truncate_quotients() {
    let inputs = [tensor(&[4], &[7.0, -7.0, 7.0, -7.0]), tensor(&[4], &[3.0, 3.0, -3.0, -3.0])];
    let found = gradient_at(&inputs, |graph, x| graph.remainder(x[0], x[1]).unwrap());
    assert_eq!(found, [[1.0, 1.0, 1.0, 1.0], [-2.0, 2.0, 2.0, -2.0]]);
}

#[test]
fn gradients_of_saturated_sigmoids_are_zero() {
    let found = gradient_at(&[tensor(&[2], &[-1e4, 1e4])], |graph, x| graph.sigmoid(x[0]).unwrap());
    assert_eq!(found, [[0.0, 0.0]]);
}

#[test]
fn the_magnitude_of_complex_zero_has_gradient_zero() {
    let found = gradient_at(&[tensor(&[1], &[0.0]), tensor(&[1], &[0.0])], |graph, x| {
        let z = complex(graph, x[0], x[1]);
        graph.abs(z).unwrap()
    });
    assert_eq!(found, [[0.0], [0.0]]);
}

#[test]
fn select_and_clip() {
    let predicate = HostTensor::from_slice(&[1u8, 0, 1], [3]).unwrap();
    let branches = [predicate, samples(&[2, 3], (-1.0, 1.0), 1), samples(&[], (-1.0, 1.0), 2)];
    check(&branches, |graph, x| graph.select(x[0], x[1], x[2]).unwrap());
    let x = tensor(&[5], &[-2.0, -0.5, 0.1, 0.7, 3.0]);
    for (low, high) in [(-1.0, 1.0), (1.0, -1.0), (-5.0, 0.5), (4.0, 5.0)] {
        check(&[x.clone(), tensor(&[], &[low]), tensor(&[], &[high])], |graph, x| {
            graph.clip(x[0], x[1], x[2]).unwrap()
        });
    }
}

#[test]
fn conversions_have_identity_derivatives() {
    let x = tensor(&[3], &[1.25, -2.5, 3.75]);
    let found = gradient_at(std::slice::from_ref(&x), |graph, x| {
        let y = graph.as_type(x[0], DType::S32).unwrap();
        graph.multiply(y, y).unwrap()
    });
    assert_eq!(found, [[2.0, -4.0, 6.0]]);
    let found = gradient_at(&[x], |graph, x| {
        let y = graph.as_type(x[0], DType::Pred).unwrap();
        graph.multiply(y, x[0]).unwrap()
    });
    assert_eq!(found, [[1.0, 1.0, 1.0]]);
}
