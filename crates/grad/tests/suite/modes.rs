//! Compares forward mode with reverse mode for every element-wise op and dtype at points where
//! finite differences fail, and checks the derivatives of selections in ties.

use crate::common::{f64s, parameters, run, types};
use nxla_expr::build::WindowOptions;
use nxla_expr::{BinaryOp, ExprId, Graph, Op, Program, ReduceOp, Result, UnaryOp, WindowOp};
use nxla_grad::{gradients, jvp};
use nxla_tensor::{DType, HostTensor, Scalar};

/// A function of the values of some operands.
type Build<'a> = &'a dyn Fn(&mut Graph, &[ExprId]) -> Result<ExprId>;

/// Finite numbers at which functions have zeros, poles, kinks and ties.
const FINITE: [f64; 7] = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -3.0];

/// The numbers above, and infinities.
const SPECIAL: [f64; 9] = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -3.0, f64::INFINITY, f64::NEG_INFINITY];

/// Returns an operand of each dtype, so that their elements take all combinations of the numbers.
/// Unsigned integers take the absolute values.
fn combinations(numbers: &[f64], dtypes: &[DType]) -> Vec<HostTensor> {
    let base = numbers.len();
    let total = dtypes.iter().fold(1, |total, _| total * base);
    let mut every = 1;
    let of_dtype = |&dtype: &DType| {
        let number = |at: usize| match numbers[at / every % base] {
            number if dtype.is_unsigned() => number.abs(),
            number => number,
        };
        let elements: Vec<f64> = (0..total).map(number).collect();
        every *= base;
        HostTensor::from_slice(&elements, [total]).unwrap().cast(dtype)
    };
    dtypes.iter().map(of_dtype).collect()
}

/// Returns the operands of each combination as scalars.
fn points(inputs: &[HostTensor]) -> Vec<Vec<HostTensor>> {
    let scalar = |input: &HostTensor, at| HostTensor::scalar(input.get(at), input.dtype());
    let point = |at| inputs.iter().map(|input| scalar(input, at)).collect();
    (0..inputs[0].size()).map(point).collect()
}

/// Returns the real parts of the derivatives of the elements of a result with respect to the
/// elements of one operand, in both modes; `None` if the op does not take the operands. An error of
/// one mode must be an error of the other.
fn derivatives(
    inputs: &[HostTensor],
    position: usize,
    direction: Scalar,
    build: Build<'_>,
) -> Option<[Vec<f64>; 2]> {
    let mut graph = Graph::new();
    let ids = parameters(&mut graph, inputs);
    let output = build(&mut graph, &ids).ok()?;
    let program = Program::new(&graph, types(inputs), &[output]).unwrap();
    let real = |graph: &mut Graph, x: ExprId| {
        let x = if graph.dtype(x).is_complex() { graph.real(x).unwrap() } else { x };
        graph.as_type(x, DType::F64).unwrap()
    };

    let mut forward = Graph::new();
    let ids_forward = parameters(&mut forward, inputs);
    let dtype = inputs[position].dtype().to_floating();
    let along = forward.scalar_constant(direction, dtype).unwrap();
    let shape = inputs[position].shape().clone();
    let along = forward.broadcast(along, shape, None).unwrap();
    let mut tangents = vec![None; inputs.len()];
    tangents[position] = Some(along);
    let pushed = jvp(&mut forward, &program, &ids_forward, &tangents, 1);

    let pulled = gradients(&mut graph, output, &[ids[position]]);
    assert_eq!(pushed.is_err(), pulled.is_err(), "{pushed:?} {pulled:?}");
    let (tangent, gradient) = (pushed.ok()?.1[0], pulled.ok()?[0]);
    let tangent = real(&mut forward, tangent);
    let tangent = f64s(&run(&forward, inputs, &[tangent])[0]);
    let direction = graph.scalar_constant(direction, dtype).unwrap();
    let product = graph.multiply(gradient, direction).unwrap();
    let product = real(&mut graph, product);
    let gradient = f64s(&run(&graph, inputs, &[product])[0]);
    Some([tangent, gradient])
}

/// Compares both modes for each operand, for the result and for its product with the operand, which
/// needs the tangent of an operand that an op may not carry.
fn compare(name: &str, inputs: &[HostTensor], build: Build<'_>) {
    for (position, input) in inputs.iter().enumerate() {
        let product: Build<'_> = &|graph, x| {
            let y = build(graph, x)?;
            graph.multiply(y, x[position])
        };
        let mut directions = vec![Scalar::Float(1.0)];
        directions.extend(input.dtype().is_complex().then_some(Scalar::Complex(0.0, 1.0)));
        for direction in directions {
            for (function, is_product) in [(build, false), (product, true)] {
                let Some([forward, reverse]) = derivatives(inputs, position, direction, function)
                else {
                    continue;
                };
                let tolerance = if input.dtype().bits() < 32 { 0.15 } else { 1e-4 };
                // A complex quotient by zero has infinite and NaN parts.
                let is_complex = inputs.iter().any(|input| input.dtype().is_complex());
                for (at, (a, b)) in forward.iter().zip(&reverse).enumerate() {
                    let is_same = a == b
                        || a.is_nan() && b.is_nan()
                        || is_complex && !a.is_finite() && !b.is_finite()
                        || (a - b).abs() <= tolerance * a.abs().max(1.0);
                    let point: Vec<Scalar> = inputs.iter().map(|input| input.get(at)).collect();
                    // The product of a derivative of 0 and an infinite operand is NaN in one mode.
                    if is_product && point.iter().any(|value| !value.as_f64().is_finite()) {
                        continue;
                    }
                    let dtypes: Vec<DType> = inputs.iter().map(HostTensor::dtype).collect();
                    assert!(
                        is_same,
                        "{name} of {dtypes:?} at {point:?}, operand {position}: forward mode \
                         returns {a}, reverse mode {b}"
                    );
                }
            }
        }
    }
}

#[test]
fn modes_agree_for_unary_ops() {
    for dtype in DType::ALL {
        let numbers = match dtype {
            // The dtype has no infinity, so that a pole has the value NaN or the largest number.
            DType::F8E4M3FN => &[0.5, -0.5, 2.0, -3.0],
            dtype if dtype.is_integer() => &FINITE[..],
            _ => &SPECIAL[..],
        };
        let inputs = combinations(numbers, &[dtype]);
        for &op in UnaryOp::ALL {
            compare(op.name(), &inputs, &|graph, x| graph.unary(op, x[0]));
        }
    }
}

#[test]
fn modes_agree_for_conversions() {
    for from in DType::ALL {
        let inputs = combinations(&FINITE, &[from]);
        for to in DType::ALL {
            compare("as_type", &inputs, &|graph, x| graph.as_type(x[0], to));
            compare("bitcast", &inputs, &|graph, x| graph.make(Op::Bitcast(to), x));
        }
    }
}

#[test]
fn the_derivative_of_log_gamma_is_digamma() {
    let numbers = [&SPECIAL[..], &[-2.0, -2.5, 1e-20, -1e-20, f64::NAN]].concat();
    for dtype in [DType::F16, DType::F32, DType::F64, DType::S32] {
        let numbers = if dtype.is_integer() { &FINITE[..] } else { &numbers };
        let inputs = combinations(numbers, &[dtype]);
        let found = derivatives(&inputs, 0, Scalar::Float(1.0), &|graph, x| graph.log_gamma(x[0]));
        let mut graph = Graph::new();
        let x = parameters(&mut graph, &inputs);
        let digamma = graph.digamma(x[0]).unwrap();
        let expected = f64s(&run(&graph, &inputs, &[digamma])[0]);
        for found in found.unwrap() {
            for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
                let is_same = found == expected || found.is_nan() && expected.is_nan();
                assert!(is_same, "{dtype}, {}: {found}, not {expected}", numbers[at]);
            }
        }
    }
}

/// Pairs of dtypes of operands.
const PAIRS: [(DType, DType); 7] = [
    (DType::F64, DType::F64),
    (DType::F32, DType::BF16),
    (DType::C128, DType::F64),
    (DType::F32, DType::Pred),
    (DType::S32, DType::F32),
    (DType::U8, DType::S32),
    (DType::Pred, DType::Pred),
];

#[test]
fn modes_agree_for_binary_ops() {
    for (first, second) in PAIRS {
        let is_float = first.is_float() && second.is_float();
        let numbers = if is_float { &SPECIAL[..] } else { &FINITE };
        let inputs = combinations(numbers, &[first, second]);
        for &op in BinaryOp::ALL {
            compare(op.name(), &inputs, &|graph, x| graph.binary(op, x[0], x[1]));
        }
    }
}

#[test]
fn modes_agree_for_selections_by_operands() {
    for (first, second) in PAIRS {
        let is_float = first.is_float() && second.is_float();
        let numbers = if is_float { &SPECIAL[..] } else { &FINITE };
        let inputs = combinations(numbers, &[first, second, first]);
        compare("select", &inputs, &|graph, x| {
            let predicate = graph.as_type(x[0], DType::Pred)?;
            graph.select(predicate, x[1], x[2])
        });
        for point in points(&inputs) {
            compare("clip", &point, &|graph, x| graph.clip(x[0], x[1], x[2]));
        }
    }
}

/// A function that selects one of three scalars.
type Selection = fn(&mut Graph, &[ExprId]) -> Result<ExprId>;

const SELECTIONS: [(&str, Selection); 9] = [
    ("max", |graph, x| graph.max(x[0], x[1])),
    ("min", |graph, x| graph.min(x[0], x[1])),
    ("select", |graph, x| {
        let predicate = graph.less(x[0], x[1])?;
        graph.select(predicate, x[1], x[2])
    }),
    ("clip", |graph, x| graph.clip(x[0], x[1], x[2])),
    ("reduce_max", |graph, x| reduce_stacked(graph, ReduceOp::Max, x)),
    ("reduce_min", |graph, x| reduce_stacked(graph, ReduceOp::Min, x)),
    ("window_max", |graph, x| reduce_window(graph, WindowOp::Max, x)),
    ("window_min", |graph, x| reduce_window(graph, WindowOp::Min, x)),
    ("sort", |graph, x| {
        let x = graph.stack(x, 0, None)?;
        let sorted = graph.sort(x, 0, false, false)?;
        graph.slice_along_axis(sorted, 1, 1, 0, 1)
    }),
];

fn reduce_stacked(graph: &mut Graph, op: ReduceOp, x: &[ExprId]) -> Result<ExprId> {
    let x = graph.stack(x, 0, None)?;
    graph.reduction(op, x, None, false)
}

fn reduce_window(graph: &mut Graph, op: WindowOp, x: &[ExprId]) -> Result<ExprId> {
    let x = graph.stack(x, 0, None)?;
    graph.window_reduction(op, x, &[3], &WindowOptions::default())
}

/// If all operands grow by the same amount, so does the selected operand, also in ties.
#[test]
fn selection_derivatives_sum_to_one() {
    for (name, function) in SELECTIONS {
        for point in points(&combinations(&[0.0, 1.0, 2.0], &[DType::F64; 3])) {
            let mut sums = [0.0; 2];
            for position in 0..3 {
                let found = derivatives(&point, position, Scalar::Float(1.0), &function);
                let found = found.unwrap_or_else(|| panic!("{name} takes no scalars"));
                sums.iter_mut().zip(found).for_each(|(sum, part)| *sum += part[0]);
            }
            assert_eq!(sums, [1.0; 2], "{name} at {point:?}");
        }
    }
}
