//! Fused steps, such as reductions with the code around them, return the same bits as separate
//! operations.

use std::sync::Arc;

use crate::common::{contents, program, run_unfused};
use nxla_eval::{Hooks, Plan};
use nxla_expr::{ExprId, Graph, Program, TensorType};
use nxla_tensor::{DType, HostTensor, Scalar};

fn numbers(dtype: DType, shape: &[usize], seed: usize) -> HostTensor {
    let len = shape.iter().product();
    let number = |at: usize| ((at * 37 + seed * 11) % 101) as f64 / 25.0 - 2.0;
    let elements: Vec<f64> = (0..len).map(number).collect();
    let tensor = HostTensor::from_slice(&elements, shape.to_vec()).unwrap();
    tensor.cast(dtype)
}

/// Runs a program as planned and one operation at a time, with inputs that the run may overwrite
/// and with inputs that it may not overwrite.
fn check(program: Program, inputs: &[HostTensor]) -> usize {
    let program = Arc::new(program);
    let copies = || -> Vec<HostTensor> {
        let copy = |x: &HostTensor| {
            HostTensor::from_bytes(x.dtype(), x.shape().clone(), x.bytes()).unwrap()
        };
        inputs.iter().map(copy).collect()
    };
    let expected = run_unfused(&program, copies());
    let plan = Plan::new(program);
    for given in [copies(), inputs.to_vec()] {
        let found = plan.run(given, &Hooks::new()).unwrap();
        assert!(contents(&found) == contents(&expected), "{:?}", plan.program());
    }
    plan.step_count()
}

const SHAPES: [&[usize]; 13] = [
    &[1, 9],
    &[5, 1, 3],
    &[3, 4, 5],
    &[1, 2000],
    &[33, 4, 2],
    &[40, 600],
    &[1, 9000],
    &[1003, 9],
    &[2001, 1, 3],
    &[71, 23, 5],
    &[801, 4, 2],
    &[900, 300],
    &[17, 9000],
];

/// Returns whether steps on tensors of a shape are fused. Small tensors are computed by bytecode in
/// one arena, which needs no fusion.
fn is_fused(dtype: DType, shape: &[usize]) -> bool {
    shape.iter().product::<usize>() * dtype.size() > 1 << 14
}

#[test]
fn a_softmax_is_one_step() {
    for shape in SHAPES {
        for dtype in [DType::F32, DType::F64] {
            let program = program(&[TensorType::new(dtype, shape.to_vec())], |graph, ids| {
                vec![graph.softmax(ids[0], -1).unwrap()]
            });
            let steps = check(program, &[numbers(dtype, shape, 0)]);
            assert_eq!(steps == 1, is_fused(dtype, shape), "{shape:?}: {steps}");
        }
    }
}

#[test]
fn a_layer_norm_is_one_step() {
    for shape in SHAPES {
        let ty = |shape: &[usize]| TensorType::new(DType::F32, shape.to_vec());
        let last = &shape[shape.len() - 1..];
        let program = program(&[ty(shape), ty(last), ty(last)], |graph, ids| {
            vec![graph.layer_norm(ids[0], [Some(ids[1]), Some(ids[2])], &[-1], 1e-5).unwrap()]
        });
        let inputs = [shape, last, last].map(|shape| numbers(DType::F32, shape, shape.len()));
        let steps = check(program, &inputs);
        assert_eq!(steps == 1, is_fused(DType::F32, shape), "{shape:?}: {steps}");
    }
}

#[test]
fn reshaped_row_statistics_are_fused() {
    for shape in [[40, 600], [900, 300], [17, 9000]] {
        for dtype in [DType::F32, DType::F64] {
            let program = program(&[TensorType::new(dtype, shape)], |graph, ids| {
                let largest = graph.reduce_max(ids[0], Some(&[1]), false).unwrap();
                let by_row = graph.reshape(largest, [shape[0], 1]).unwrap();
                let moved = graph.subtract(ids[0], by_row).unwrap();
                let exp = graph.exp(moved).unwrap();
                let sum = graph.sum(exp, Some(&[1]), true).unwrap();
                let flat = graph.squeeze(sum, Some(&[1])).unwrap();
                let log = graph.log(flat).unwrap();
                vec![graph.add(log, largest).unwrap()]
            });
            assert_eq!(check(program, &[numbers(dtype, &shape, 0)]), 1, "{shape:?} of {dtype}");
        }
    }
}

#[test]
fn mean_and_variance_of_all_elements_are_one_step() {
    let program = program(&[TensorType::new(DType::F32, [400, 30])], |graph, ids| {
        let mean = graph.mean(ids[0], None, false).unwrap();
        vec![mean, graph.variance(ids[0], None, false, 0.0).unwrap()]
    });
    assert_eq!(check(program, &[numbers(DType::F32, &[400, 30], 1)]), 1);
}

#[test]
fn few_long_rows_are_not_fused() {
    let program = program(&[TensorType::new(DType::F32, [2, 50_000])], |graph, ids| {
        vec![graph.softmax(ids[0], -1).unwrap()]
    });
    assert!(check(program, &[numbers(DType::F32, &[2, 50_000], 0)]) > 1);
}

/// Sizes of one block and of several blocks, including sizes that are not a multiple of a vector.
const LENGTHS: [usize; 5] = [20_000, 70_001, 131_071, 131_072, 300_007];

#[test]
fn a_loss_is_one_reduction_and_one_division() {
    for length in LENGTHS {
        for dtype in [DType::F32, DType::F64] {
            let types = [TensorType::new(dtype, [length]), TensorType::new(dtype, [length])];
            let inputs = [numbers(dtype, &[length], 0), numbers(dtype, &[length], 1)];
            let loss = program(&types, |graph, ids| {
                let error = graph.subtract(ids[0], ids[1]).unwrap();
                let square = graph.multiply(error, error).unwrap();
                vec![graph.mean(square, None, false).unwrap()]
            });
            assert_eq!(check(loss, &inputs), 2);
            // A value with other consumers is materialized.
            let with_errors = program(&types, |graph, ids| {
                let error = graph.subtract(ids[0], ids[1]).unwrap();
                let square = graph.multiply(error, error).unwrap();
                vec![graph.reduce_max(square, None, true).unwrap(), error, square]
            });
            assert_eq!(check(with_errors, &inputs), 1);
        }
    }
}

#[test]
fn column_norms_are_one_reduction_and_one_root() {
    for shape in [[300, 1000], [5000, 33], [257, 4096], [140_000, 1]] {
        for dtype in [DType::F32, DType::F64, DType::S64] {
            let types = [TensorType::new(dtype, shape), TensorType::new(dtype, [1, shape[1]])];
            let norms = program(&types, |graph, ids| {
                let moved = graph.subtract(ids[0], ids[1]).unwrap();
                let square = graph.multiply(moved, moved).unwrap();
                let sum = graph.sum(square, Some(&[0]), true).unwrap();
                vec![graph.sqrt(sum).unwrap()]
            });
            let inputs = [numbers(dtype, &shape, 0), numbers(dtype, &[1, shape[1]], 1)];
            assert_eq!(check(norms, &inputs), 2, "{shape:?} of {dtype}");
        }
    }
}

/// Element-wise functions of two rows.
fn differences(graph: &mut Graph, x: ExprId, y: ExprId) -> Vec<ExprId> {
    let difference = graph.subtract(x, y).unwrap();
    let two = graph.scalar_constant(Scalar::Float(2.0), graph.dtype(difference)).unwrap();
    vec![
        graph.pow(difference, two).unwrap(),
        graph.multiply(difference, difference).unwrap(),
        graph.abs(difference).unwrap(),
        graph.multiply(x, y).unwrap(),
        graph.multiply(x, x).unwrap(),
    ]
}

/// Reduces one of the [`differences`] of all pairs of rows.
fn distances(dtype: DType, columns: usize, which: usize, reversed: bool) -> Program {
    let types = [[37, columns], [13, columns]].map(|shape| TensorType::new(dtype, shape));
    program(&types, |graph, ids| {
        let x = graph.reshape(ids[0], [37, 1, columns]).unwrap();
        let y = graph.reshape(ids[1], [1, 13, columns]).unwrap();
        let y = if reversed { graph.reverse(y, Some(&[2])).unwrap() } else { y };
        let value = differences(graph, x, y)[which];
        let least = graph.reduce_min(value, Some(&[-1]), false).unwrap();
        let sum = graph.sum(value, Some(&[-1]), false).unwrap();
        let root = graph.sqrt(sum).unwrap();
        // Alone, each reduction is fused with its producer.
        vec![if columns.is_multiple_of(2) { root } else { least }]
    })
}

#[test]
fn pairwise_distances_are_one_step() {
    for dtype in [DType::F32, DType::F64] {
        for columns in [2, 8, 9, 31, 64, 101, 1023, 1024] {
            let mut inputs = [[37, columns], [13, columns]].map(|shape| numbers(dtype, &shape, 3));
            // NaN and infinity have no finite distance to other elements.
            inputs[1] = with_extremes(&inputs[1]);
            for which in 0..5 {
                assert_eq!(check(distances(dtype, columns, which, false), &inputs), 1);
                check(distances(dtype, columns, which, true), &inputs);
            }
        }
    }
}

#[test]
fn map_reduce_does_not_materialize_operands() {
    for dtype in [DType::F32, DType::F64] {
        for shape in [[40, 12], [16, 700], [16, 3000], [3, 70_001], [1, 196_708]] {
            let [rows, columns] = shape;
            let types = [[rows, columns], [rows, 1], [1, columns], [1, 1]]
                .map(|shape| TensorType::new(dtype, shape));
            let mut inputs = types.clone().map(|ty| numbers(dtype, &ty.shape, ty.shape[0]));
            inputs[0] = with_extremes(&inputs[0]);
            for (other, which) in (0..4).flat_map(|other| (0..5).map(move |which| (other, which))) {
                let program = program(&types, |graph, ids| {
                    let value = differences(graph, ids[0], ids[other])[which];
                    let sums = graph.sum(value, Some(&[1]), false).unwrap();
                    let swapped = differences(graph, ids[other], ids[0])[which.min(3)];
                    let total = graph.reduce_max(swapped, None, false).unwrap();
                    vec![graph.sqrt(sums).unwrap(), total]
                });
                check(program, &inputs);
            }
        }
    }
}

/// The same numbers with a NaN and an infinity.
fn with_extremes(x: &HostTensor) -> HostTensor {
    let mut elements = x.cast(DType::F64).as_slice::<f64>().unwrap().to_vec();
    let count = elements.len();
    elements[count / 2] = f64::NAN;
    elements[count - 1] = f64::INFINITY;
    HostTensor::from_slice(&elements, x.shape().clone()).unwrap().cast(x.dtype())
}

#[test]
fn empty_tensors_are_computed() {
    for shape in [[0, 5], [5, 0], [0, 0]] {
        let program = program(&[TensorType::new(DType::F32, shape)], |graph, ids| {
            let sum = graph.sum(ids[0], Some(&[1]), true).unwrap();
            let terms = graph.add(ids[0], sum).unwrap();
            vec![graph.sum(terms, Some(&[1]), true).unwrap(), terms]
        });
        check(program, &[numbers(DType::F32, &shape, 0)]);
    }
}

/// A random program of a few operations on rows.
fn random_values(
    graph: &mut Graph,
    inputs: &[ExprId],
    mut draw: impl FnMut(usize) -> usize,
) -> Vec<ExprId> {
    let mut values = inputs.to_vec();
    for _ in 0..3 + draw(12) {
        let (x, y) = (values[draw(values.len())], values[draw(values.len())]);
        let last = [-1];
        let axes = if draw(5) == 0 { None } else { Some(&last[..]) };
        values.push(match draw(13) {
            0 => graph.sum(x, axes, true).unwrap(),
            1 => graph.reduce_max(x, axes, true).unwrap(),
            2 => graph.sum(x, Some(&[0]), true).unwrap(),
            3 => graph.add(x, y).unwrap(),
            4 => graph.multiply(x, y).unwrap(),
            5 => graph.tanh(x).unwrap(),
            6 => graph.subtract(x, y).unwrap(),
            7 => graph.mean(x, axes, true).unwrap(),
            8 => graph.reverse(x, Some(&[-(1 + draw(2) as i64)])).unwrap(),
            9 => {
                let (axis, size) = [(0, graph.shape(x)[0]), (1, graph.shape(x)[1])][draw(2)];
                graph.slice_along_axis(x, draw(size) as i64, 1, axis, 1).unwrap()
            }
            10 => {
                // Elements that leave the axis at one end enter it at the other end.
                let size = graph.shape(x)[1];
                let cut = draw(size);
                let before = graph.slice_along_axis(x, 0, cut, 1, 1).unwrap();
                let after = graph.slice_along_axis(x, cut as i64, size - cut, 1, 1).unwrap();
                let (before, after) = (graph.tanh(before).unwrap(), graph.negate(after).unwrap());
                graph.concatenate(&[after, before], 1).unwrap()
            }
            11 => {
                let larger = graph.greater(x, y).unwrap();
                graph.select(larger, x, y).unwrap()
            }
            _ => graph.transpose(x, None).and_then(|x| graph.transpose(x, None)).unwrap(),
        });
    }
    let count = 1 + draw(3);
    (0..count).map(|_| values[values.len() - 1 - draw(values.len().min(5))]).collect()
}

/// Checks random programs on matrices and vectors of random sizes.
fn check_random_programs(
    programs: usize,
    mut size: impl FnMut(&mut dyn FnMut(usize) -> usize) -> [usize; 2],
) {
    for seed in 0..programs {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut draw = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) % below
        };
        let [rows, columns] = size(&mut draw);
        let dtype = [DType::F32, DType::F64, DType::S32][draw(3)];
        let shapes = [[rows, columns], [rows, 1], [1, columns], [rows, columns]];
        let types = shapes.map(|shape| TensorType::new(dtype, shape));
        let program = program(&types, |graph, ids| random_values(graph, ids, &mut draw));
        let inputs: Vec<HostTensor> =
            shapes.iter().enumerate().map(|(at, shape)| numbers(dtype, shape, at)).collect();
        check(program, &inputs);
    }
}

#[test]
fn random_row_programs_match_unfused_bits() {
    check_random_programs(400, |draw| [[1, 3, 20, 300][draw(4)], [1, 2, 7, 64, 700][draw(5)]]);
}

#[test]
fn random_vector_programs_match_unfused_bits() {
    check_random_programs(60, |draw| [1, LENGTHS[draw(LENGTHS.len())]]);
    check_random_programs(60, |draw| [[256, 1000, 3000][draw(3)], [1, 50, 600, 1025][draw(4)]]);
}
