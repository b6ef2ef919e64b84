//! Public functions that consist of several ops.

use nxla::graph::build::{ConvOptions, Cumulative, FftNorm, WindowPadding};
use nxla::graph::{BinaryOp, ExprId, Graph, Op, Result};
use nxla::{DType, HostTensor, Number, Shape};

use crate::case::{Case, Other, differences};
use crate::common::has_plugin;
use crate::tolerance::SUMMED;

/// Returns numbers around zero, some of them equal.
fn numbers(dtype: DType, shape: impl Into<Shape>) -> HostTensor {
    let shape = shape.into();
    let numbers: Vec<f64> = (0..shape.size()).map(|n| ((n * 5) % 7) as f64 - 2.0).collect();
    HostTensor::from_slice(&numbers, shape).unwrap().cast(dtype)
}

fn check(
    inputs: Vec<HostTensor>,
    build: impl Fn(&mut Graph, &[ExprId]) -> Result<Vec<ExprId>> + Send + Sync + 'static,
) {
    let case = Case::of_many(inputs, (), build);
    for other in [Other::Reference, Other::Xla] {
        if matches!(other, Other::Xla) && !has_plugin() {
            continue;
        }
        assert_eq!(differences(&[(&case, SUMMED)], other), Ok(vec![None]), "{case:?}");
    }
}

const DTYPES: [DType; 4] = [DType::F32, DType::S32, DType::U8, DType::BF16];

#[test]
fn cumulative_functions() {
    for dtype in DTYPES {
        check(vec![numbers(dtype, [2, 3, 4])], |graph, x| {
            let ops = [Cumulative::Sum, Cumulative::Product, Cumulative::Max, Cumulative::Min];
            ops.into_iter().map(|op| graph.cumulative(op, x[0], 1, true)).collect()
        });
    }
}

#[test]
fn movement_and_index_functions() {
    for dtype in DTYPES {
        let indices = numbers(DType::S32, [2, 2]);
        check(vec![numbers(dtype, [3, 4]), indices], |graph, x| {
            let (x, indices) = (x[0], x[1]);
            let (values, top_indices) = graph.top_k(x, 2)?;
            Ok(vec![
                graph.tile(x, &[2, 2])?,
                graph.tril(x, -1)?,
                graph.triu(x, 1)?,
                graph.take_diagonal(x, 1)?,
                graph.take(x, indices, 1)?,
                graph.diff(x, 1, 0)?,
                values,
                top_indices,
            ])
        });
    }
}

/// Triangles of one element are compared with constants, which a plugin folds.
#[test]
fn triangular_solves_of_size_one() {
    for (rows, columns) in [(1, 1), (1, 3), (3, 1)] {
        check(vec![numbers(DType::F32, [rows, columns])], |graph, x| {
            let offsets = -2..=2;
            let lower: Result<Vec<ExprId>> =
                offsets.clone().map(|offset| graph.tril(x[0], offset)).collect();
            let upper: Result<Vec<ExprId>> =
                offsets.map(|offset| graph.triu(x[0], offset)).collect();
            Ok([lower?, upper?].concat())
        });
    }
}

#[test]
fn products_and_transforms() {
    for dtype in [DType::F32, DType::F64] {
        check(vec![numbers(dtype, [3, 4])], |graph, x| {
            let x = x[0];
            Ok(vec![
                graph.outer(x, x)?,
                graph.rfft(x, None, -1, FftNorm::Backward)?,
                graph.irfft(x, None, 0, FftNorm::Backward)?,
            ])
        });
    }
}

/// Both axes of a plane, one after the other.
#[test]
fn transforms_of_planes() {
    for dtype in [DType::F32, DType::F64] {
        check(vec![numbers(dtype, [3, 4])], |graph, x| {
            // The sums of the unscaled values are near 1, where relative errors of `1 - x` are
            // large.
            let sixteenth = graph.weak_number(Number::Float(0.0625), x[0])?;
            let x = graph.multiply(x[0], sixteenth)?;
            let lines = graph.fft(x, None, -1, FftNorm::Backward)?;
            let plane = graph.fft(lines, None, 0, FftNorm::Backward)?;
            let columns = graph.ifft(plane, None, 0, FftNorm::Backward)?;
            Ok(vec![plane, graph.ifft(columns, None, 1, FftNorm::Backward)?])
        });
    }
}

/// A plugin that folds constants divides by zero, which has ended the process.
#[test]
fn integer_division_by_constant_zeros() {
    for dtype in [DType::S32, DType::U8, DType::S64, DType::U2] {
        check(vec![numbers(dtype, [4])], move |graph, x| {
            let zeros = graph.make(Op::Binary(BinaryOp::Subtract), &[x[0], x[0]])?;
            let mut tensor = |elements: [f64; 4]| {
                graph.tensor(HostTensor::from_slice(&elements, [4]).unwrap().cast(dtype))
            };
            let fives = tensor([5.0, 6.0, 7.0, 8.0])?;
            let mixed = tensor([0.0, 1.0, 0.0, 1.0])?;
            let pairs = [(x[0], zeros), (zeros, zeros), (fives, mixed), (fives, zeros)];
            let ops = [BinaryOp::Remainder, BinaryOp::Quotient];
            let all = ops.into_iter().flat_map(|op| pairs.map(|(x, y)| (op, x, y)));
            all.map(|(op, x, y)| graph.make(Op::Binary(op), &[x, y])).collect()
        });
    }
}

/// XLA lowers an axis whose input is dilated by the size of the kernel to a batch of products, and
/// has ended the process if input and kernel differ in size.
#[test]
fn convolutions_with_window_sized_input_dilation() {
    for (rows, columns, window, stride) in [(1, 3, 2, 1), (1, 2, 2, 1), (2, 3, 3, 2), (1, 5, 3, 2)]
    {
        let inputs = vec![
            numbers(DType::F32, [2, 1, rows, columns]),
            numbers(DType::F32, [1, 1, 2, window]),
        ];
        check(inputs, move |graph, x| {
            let options = ConvOptions {
                strides: Some(vec![1, stride]),
                padding: WindowPadding::Explicit(vec![(1, 2), (0, 0)]),
                input_dilation: Some(vec![1, window]),
                ..ConvOptions::default()
            };
            Ok(vec![graph.conv(x[0], x[1], &options)?])
        });
    }
}
