//! Convolutions of every kind and size have the sums of the definition.

use nxla_expr::build::{ConvOptions, WindowPadding};
use nxla_tensor::{DType, HostTensor};

use super::common::evaluate_op;

/// A convolution with two spatial axes.
#[derive(Clone, Copy, Debug)]
struct Case {
    batch: usize,
    /// Channels of the input that each group reads, and channels that it returns.
    channels: usize,
    outputs: usize,
    groups: usize,
    input: [usize; 2],
    kernel: [usize; 2],
    stride: usize,
    dilation: usize,
    padding: (i64, i64),
}

const CASE: Case = Case {
    batch: 1,
    channels: 3,
    outputs: 4,
    groups: 1,
    input: [9, 11],
    kernel: [3, 3],
    stride: 1,
    dilation: 1,
    padding: (1, 1),
};

impl Case {
    /// Small integers, whose sums are exact in every order.
    fn operands(&self) -> [HostTensor; 2] {
        let [h, w] = self.input;
        let [kh, kw] = self.kernel;
        let input = [self.batch, self.groups * self.channels, h, w];
        let kernel = [self.groups * self.outputs, self.channels, kh, kw];
        [&input, &kernel].map(|shape| {
            let size: usize = shape.iter().product();
            let numbers: Vec<f32> = (0..size).map(|at| (at * 37 % 19) as f32 - 9.0).collect();
            HostTensor::from_slice(&numbers, &shape[..]).unwrap()
        })
    }

    fn direct_convolution(&self, input: &[f32], kernel: &[f32]) -> Vec<f32> {
        let [h, w] = self.input.map(|size| size as i64);
        let [kh, kw] = self.kernel;
        let (low, high) = self.padding;
        let size = |input: i64, taps: usize| {
            let reach = ((taps - 1) * self.dilation) as i64;
            (input + low + high - reach - 1) / self.stride as i64 + 1
        };
        let inputs = self.groups * self.channels;
        let mut sums = Vec::new();
        for image in 0..self.batch {
            for output in 0..self.groups * self.outputs {
                let first = image * inputs + output / self.outputs * self.channels;
                for (row, column) in
                    (0..size(h, kh)).flat_map(|i| (0..size(w, kw)).map(move |j| (i, j)))
                {
                    let mut sum = 0.0;
                    for at in 0..self.channels * kh * kw {
                        let (channel, i, j) = (at / (kh * kw), at / kw % kh, at % kw);
                        let source = |position: i64, tap: usize| {
                            position * self.stride as i64 + (tap * self.dilation) as i64 - low
                        };
                        let (y, x) = (source(row, i), source(column, j));
                        if (0..h).contains(&y) && (0..w).contains(&x) {
                            let plane = ((first + channel) * (h * w) as usize) as i64;
                            let weight = kernel[output * self.channels * kh * kw + at];
                            sum += input[(plane + y * w + x) as usize] * weight;
                        }
                    }
                    sums.push(sum);
                }
            }
        }
        sums
    }

    fn check(&self) {
        let operands = self.operands();
        let [input, kernel] = operands.each_ref().map(|x| x.as_slice::<f32>().unwrap());
        let expected = self.direct_convolution(input, kernel);
        for dtype in [DType::F32, DType::F64, DType::C64, DType::S32, DType::S64] {
            for exchanges in [[false; 2], [true; 2], [true, false], [false, true]] {
                let operands = operands.each_ref().map(|x| x.cast(dtype));
                let found = self.run(operands, exchanges).cast(DType::F32);
                let is_exact = found.as_slice::<f32>().unwrap() == expected;
                assert!(is_exact, "{dtype}, exchanged axes: {exchanges:?}: {self:?}");
            }
        }
    }

    /// The result for operands in canonical layout. `exchanges` says whether the first two axes of the kernel that the
    /// convolution reads, and of the result that it writes, are exchanged.
    fn run(&self, operands: [HostTensor; 2], exchanges: [bool; 2]) -> HostTensor {
        let order = |exchanges| if exchanges { [1, 0, 2, 3] } else { [0, 1, 2, 3] };
        let [kernel_order, result_order] = exchanges.map(order);
        let options = ConvOptions {
            strides: Some(vec![self.stride; 2]),
            padding: WindowPadding::Explicit(vec![self.padding; 2]),
            kernel_dilation: Some(vec![self.dilation; 2]),
            feature_groups: self.groups,
            kernel_permutation: Some(kernel_order.to_vec()),
            output_permutation: Some(result_order.to_vec()),
            ..ConvOptions::default()
        };
        evaluate_op(&operands, |graph, x| {
            let kernel = graph.transpose(x[1], Some(&kernel_order))?;
            let result = graph.conv(x[0], kernel, &options)?;
            graph.transpose(result, Some(&result_order))
        })
    }
}

#[test]
fn strides_dilations_and_padding() {
    for (stride, dilation) in [(1, 1), (2, 1), (1, 2), (3, 2), (2, 3)] {
        for padding in [(0, 0), (1, 1), (3, 0), (0, 5), (-1, 1)] {
            Case { stride, dilation, padding, batch: 2, ..CASE }.check();
        }
    }
}

/// Only the central taps read elements, or no tap does.
#[test]
fn taps_that_read_only_padding() {
    for stride in [1, 2] {
        for dilation in [9, 12, 36] {
            let case = Case { stride, dilation, batch: 2, ..CASE };
            Case { padding: (dilation as i64, dilation as i64), ..case }.check();
            Case { padding: (0, 2 * dilation as i64), ..case }.check();
            Case { padding: (20, 2 * dilation as i64), ..case }.check();
            Case { outputs: 1, groups: 3, padding: (2 * dilation as i64, 0), ..case }.check();
        }
    }
}

#[test]
fn results_of_several_tiles() {
    // Tiles that end inside of a row, and tiles of several images.
    Case { batch: 3, channels: 16, input: [33, 29], ..CASE }.check();
    Case { batch: 20, channels: 8, outputs: 24, input: [5, 5], ..CASE }.check();
    Case { batch: 2, channels: 40, outputs: 33, groups: 2, input: [14, 15], ..CASE }.check();
}

#[test]
fn all_row_widths_and_vector_lengths() {
    for width in 1..36 {
        for outputs in [2, 5, 8, 16, 17, 32, 33, 40] {
            let input = [3, width];
            Case { batch: 2, channels: 2, outputs, input, ..CASE }.check();
        }
    }
}

#[test]
fn kernels_or_results_of_one_position() {
    for (batch, outputs) in [(1, 1), (1, 20), (3, 1), (3, 20)] {
        let case = Case { batch, outputs, channels: 30, padding: (0, 0), ..CASE };
        Case { kernel: [1, 1], ..case }.check();
        Case { kernel: [1, 1], stride: 2, ..case }.check();
        Case { kernel: case.input, ..case }.check();
        Case { kernel: case.input, groups: 2, ..case }.check();
        Case { kernel: [1, 1], padding: (1, 1), ..case }.check();
    }
}

#[test]
fn kernels_larger_than_the_result() {
    for (stride, dilation) in [(1, 1), (2, 1), (1, 2)] {
        let input = [30 * dilation + 2, 30 * dilation + 2];
        let case = Case { batch: 5, channels: 7, kernel: [30, 30], input, ..CASE };
        Case { stride, dilation, padding: (1, 0), ..case }.check();
        // One output in each group.
        Case { stride, dilation, outputs: 1, groups: 3, ..case }.check();
    }
    // Parts of the channels are summed separately if there are few results.
    let case = Case { channels: 40, outputs: 3, kernel: [64, 64], input: [64, 64], ..CASE };
    case.check();
}

#[test]
fn groups_with_one_output() {
    for (stride, dilation) in [(1, 1), (2, 1), (1, 2), (3, 2)] {
        let case = Case { batch: 2, outputs: 1, groups: 5, stride, dilation, ..CASE };
        Case { channels: 1, input: [20, 70], ..case }.check();
        Case { channels: 3, padding: (50, 45), ..case }.check();
    }
    for width in 1..36 {
        let case = Case { channels: 2, outputs: 1, groups: 2, input: [2, width], ..CASE };
        Case { padding: (2, 2), ..case }.check();
        Case { padding: (width as i64, 0), kernel: [2, width], ..case }.check();
    }
}

/// Vectors read elements after the end of a run.
#[test]
fn infinite_elements_do_not_affect_other_results() {
    for (input, kernel) in [([12, 21], [12, 20]), ([12, 21], [3, 3]), ([3, 7], [3, 6])] {
        let case =
            Case { outputs: 1, groups: 2, channels: 1, input, kernel, padding: (0, 0), ..CASE };
        let mut operands = case.operands().map(|x| vec![1.0; x.shape().size()]);
        for row in operands[0].chunks_exact_mut(input[1]) {
            row[input[1] - 1] = f32::INFINITY;
        }
        let expected = case.direct_convolution(&operands[0], &operands[1]);
        assert!(expected.iter().any(|x| x.is_finite()));
        let shapes = case.operands().map(|x| x.shape().clone());
        let [input, kernel] =
            [0, 1].map(|at| HostTensor::from_slice(&operands[at], &shapes[at][..]).unwrap());
        let found = case.run([input, kernel], [false; 2]);
        assert_eq!(found.as_slice::<f32>().unwrap(), expected);
    }
}
