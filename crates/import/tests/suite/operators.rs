//! Results of ONNX operators for inputs that the published tests lack.

use nxla_expr::TensorType;
use nxla_tensor::{DType, Element, HostTensor, Scalar};

use crate::common::models::{Attribute, Node, data_type};

fn tensor<T: Element>(values: &[T], shape: &[usize]) -> HostTensor {
    HostTensor::from_slice(values, shape.to_vec()).unwrap()
}

fn numbers(x: &HostTensor) -> Vec<f64> {
    (0..x.size()).map(|at| x.get(at).as_f64()).collect()
}

fn assert_close(found: &[f64], expected: &[f64], of: &str) {
    let is_close = |(x, y): (&f64, &f64)| (x - y).abs() < 1e-6;
    let is_equal = found.len() == expected.len() && found.iter().zip(expected).all(is_close);
    assert!(is_equal, "{of}: {found:?}, expected {expected:?}");
}

/// The entry of an ignored label is infinite, so only the second row has a loss.
#[test]
fn infinite_scores_of_ignored_labels_are_excluded() {
    let scores = tensor(&[f32::NEG_INFINITY, 1.0, 2.0, 0.0, 1.0, 2.0], &[2, 3]);
    let labels = tensor(&[-100_i64, 1], &[2]);
    let expected = (1.0 + 1_f64.exp() + 2_f64.exp()).ln() - 1.0;
    for reduction in ["mean", "sum"] {
        let attributes =
            [("ignore_index", Attribute::Int(-100)), ("reduction", Attribute::Text(reduction))];
        let node = |op| Node { op, attributes: &attributes, outputs: 1, version: 13 };
        let inputs = [scores.clone(), labels.clone()];
        let found = numbers(&node("SoftmaxCrossEntropyLoss").results(&inputs, &[])[0]);
        assert!((found[0] - expected).abs() < 1e-6, "{reduction}: {found:?}");
        let found = numbers(&node("NegativeLogLikelihoodLoss").results(&inputs, &[])[0]);
        assert_eq!(found, [-1.0], "{reduction}");
    }
}

/// The kernel has one element: the offset moves each position by half an element to the right, and the
/// mask halves what the kernel reads.
#[test]
fn deformable_convolutions_interpolate_and_mask() {
    let node = Node { op: "DeformConv", attributes: &[], outputs: 1, version: 22 };
    let x = tensor(&[1.0_f32, 3.0, 5.0, 9.0], &[1, 1, 2, 2]);
    let kernel = tensor(&[2.0_f32], &[1, 1, 1, 1]);
    let mut offsets = [0.0_f32; 8];
    offsets[4..].fill(0.5);
    let offsets = tensor(&offsets, &[1, 2, 2, 2]);
    let (bias, mask) = (tensor(&[10.0_f32], &[1]), tensor(&[0.5_f32; 4], &[1, 1, 2, 2]));
    let found = node.results(&[x.clone(), kernel.clone(), offsets, bias], &[mask]);
    // Elements outside of the image are zero.
    assert_close(&numbers(&found[0]), &[12.0, 11.5, 17.0, 14.5], "DeformConv");
    let offsets = tensor(&[0.0_f32; 4], &[1, 1, 2, 2]);
    let error = node.try_results(&[x, kernel, offsets], &[]).unwrap_err();
    assert!(error.contains("offset: must have the shape [1, 2, 2, 2]"), "{error}");
}

/// Until version 13, a node with five outputs is one in training.
#[test]
fn old_batch_normalizations_with_statistics_are_in_training() {
    let x = tensor(&[1.0_f32, 3.0, 2.0, 6.0], &[2, 1, 2]);
    let ones = tensor(&[1.0_f32], &[1]);
    let operands = [ones.clone(), ones.clone(), ones.clone(), ones];
    let node = Node { op: "BatchNormalization", attributes: &[], outputs: 5, version: 9 };
    let results = node.results(std::slice::from_ref(&x), &operands);
    let (mean, variance) = (3.0, 3.5);
    let expected: Vec<f64> =
        numbers(&x).iter().map(|x| 1.0 + (x - mean) / f64::sqrt(variance + 1e-5)).collect();
    assert_close(&numbers(&results[0]), &expected, "Y");
    let statistics = [0.9 + 0.1 * mean, 0.9 + 0.1 * variance, mean, variance];
    for (result, expected) in results[1..].iter().zip(statistics) {
        assert_close(&numbers(result), &[expected], "statistics");
    }
    let node = Node { outputs: 1, ..node };
    let y = numbers(&node.results(std::slice::from_ref(&x), &operands)[0]);
    let shift: Vec<f64> =
        numbers(&x).iter().map(|x| 1.0 + (x - 1.0) / f64::sqrt(1.0 + 1e-5)).collect();
    assert_close(&y, &shift, "inference");
}

/// The first query may read no key: its result is zero, and so are its gradients.
#[test]
fn gradients_of_queries_without_keys_are_zero() {
    let node = Node { op: "Attention", attributes: &[], outputs: 1, version: 23 };
    let operand = tensor(&[0.5_f32, -1.0, 2.0, 0.25], &[1, 1, 2, 2]);
    let mask = tensor(&[f32::NEG_INFINITY, f32::NEG_INFINITY, 0.0, 0.0], &[2, 2]);
    let inputs = [operand.clone(), operand.clone(), operand];
    let result = numbers(&node.results(&inputs, std::slice::from_ref(&mask))[0]);
    assert_eq!(result[..2], [0.0; 2]);
    let gradients = node.gradients(&inputs, &[mask]);
    assert_eq!(numbers(&gradients[0])[..2], [0.0; 2]);
    for gradient in &gradients {
        assert!(numbers(gradient).iter().all(|number| number.is_finite()), "{gradient}");
    }
}

/// All elements are the smallest number of the dtype, which is also the padding.
#[test]
fn indices_of_pools_are_inside_their_windows() {
    let attributes =
        [("kernel_shape", Attribute::Ints(&[2, 2])), ("pads", Attribute::Ints(&[1, 0, 0, 0]))];
    let node = Node { op: "MaxPool", attributes: &attributes, outputs: 2, version: 12 };
    let shape = [1, 1, 3, 3];
    for x in [tensor(&[0_u8; 9], &shape), tensor(&[f32::NEG_INFINITY; 9], &shape)] {
        let indices = &node.results(&[x], &[])[1];
        assert_eq!(numbers(indices), [0.0, 1.0, 0.0, 1.0, 3.0, 4.0]);
    }
    let columns = [
        ("kernel_shape", Attribute::Ints(&[2, 2])),
        ("pads", Attribute::Ints(&[1, 0, 0, 0])),
        ("storage_order", Attribute::Int(1)),
    ];
    let node = Node { attributes: &columns, ..node };
    let indices = &node.results(&[tensor(&[0_u8; 9], &shape)], &[])[1];
    assert_eq!(numbers(indices), [0.0, 3.0, 0.0, 3.0, 1.0, 4.0]);
}

/// A kernel has an axis for its output channels, another one for its input channels, and spatial axes.
#[test]
fn kernels_without_spatial_axes_are_rejected() {
    let node = Node { op: "ConvInteger", attributes: &[], outputs: 1, version: 10 };
    let (x, kernel) = (tensor(&[1_u8; 4], &[1, 1, 4]), tensor(&[1_u8], &[]));
    let (x_zero, kernel_zero) = (tensor(&[0_u8], &[]), tensor(&[0_u8, 1], &[2]));
    let error = node.try_results(&[x, kernel, x_zero, kernel_zero], &[]).unwrap_err();
    assert!(error.contains("must have spatial axes"), "{error}");
}

#[test]
fn sizes_beyond_memory_are_errors() {
    let node = |op| Node { op, attributes: &[], outputs: 1, version: 17 };
    let signal = TensorType::new(DType::F32, [1, 1 << 44]);
    let one = tensor(&[1_i64], &[]);
    let constants = [one, tensor(&[1_f32; 2], &[2]), tensor(&[2_i64], &[])];
    let error = node("STFT").error_for_type(&signal, &constants);
    assert!(error.contains("17592186044415 frames of 2 elements"), "{error}");
    let attributes = [("axis", Attribute::Int(2))];
    let flatten = Node { attributes: &attributes, ..node("Flatten") };
    let empty = TensorType::new(DType::F32, [1 << 40, 1 << 40, 0]);
    let error = flatten.error_for_type(&empty, &[]);
    assert!(error.contains("axis"), "{error}");
    let attributes = [("blocksize", Attribute::Int(1 << 15))];
    for (op, shape) in [("DepthToSpace", [1, 0, 1 << 50, 1]), ("SpaceToDepth", [1, 1 << 40, 0, 0])]
    {
        let node = Node { attributes: &attributes, ..node(op) };
        let error = node.error_for_type(&TensorType::new(DType::F32, shape), &[]);
        assert!(error.contains(op), "{error}");
    }
    let attributes = [("kernel_shape", Attribute::Ints(&[1])), ("pads", Attribute::Ints(&[1, 0]))];
    let pool = Node { attributes: &attributes, outputs: 2, ..node("MaxPool") };
    let error = pool.error_for_type(&empty, &[]);
    assert!(error.contains("MaxPool"), "{error}");
}

#[test]
fn recurrent_weights_of_other_sizes_are_errors() {
    let attributes = [("hidden_size", Attribute::Int(1))];
    let node = Node { op: "LSTM", attributes: &attributes, outputs: 1, version: 22 };
    let x = TensorType::new(DType::F32, [1, 1, 1]);
    for shape in [[1, 4, 2], [1, 0, 1 << 62]] {
        let recurrent = HostTensor::zeros(DType::F32, shape).unwrap();
        let error = node.error_for_type(&x, &[tensor(&[0_f32; 4], &[1, 4, 1]), recurrent]);
        assert!(error.contains("X, R: have shapes that do not fit"), "{error}");
    }
}

/// The result of `Resize` of operator set 10 or of `Upsample` of operator set 9.
fn resize_by_scales(op: &str, version: u64, x: &HostTensor, scales: &[f32]) -> HostTensor {
    let node = Node { op, attributes: &[], outputs: 1, version };
    node.results(std::slice::from_ref(x), &[tensor(scales, &[scales.len()])]).remove(0)
}

#[test]
fn old_resizes_shrink_by_nearest_next_element() {
    let x: Vec<f32> = (1_u8..=8).map(f32::from).collect();
    let x = tensor(&x, &[1, 1, 2, 4]);
    let scales = [1.0, 1.0, 0.6, 0.6];
    assert_eq!(numbers(&resize_by_scales("Resize", 10, &x, &scales)), [1.0, 3.0]);
    let scales = [1.0, 1.0, 1.0, 1.5];
    let longer = [1.0, 1.0, 2.0, 3.0, 3.0, 4.0, 5.0, 5.0, 6.0, 7.0, 7.0, 8.0];
    assert_eq!(numbers(&resize_by_scales("Resize", 10, &x, &scales)), longer);
    assert_eq!(numbers(&resize_by_scales("Upsample", 9, &x, &scales)), longer);
}

/// In 32 bits, 0.7 is below 0.7, and 10 / 7 is above 10 / 7.
#[test]
fn sizes_and_coordinates_of_resizes_are_rounded_to_32_bits() {
    let x: Vec<f32> = (0_u8..14).map(f32::from).collect();
    let found = resize_by_scales("Resize", 10, &tensor(&x[..10], &[10]), &[0.7]);
    assert_eq!(numbers(&found), [0.0, 2.0, 3.0, 5.0, 6.0, 8.0, 9.0]);
    let found = resize_by_scales("Upsample", 9, &tensor(&x, &[14]), &[10.0 / 7.0]);
    let expected = (0_u8..20).map(|index| (f64::from(index) * 0.7 + 1e-9).floor());
    assert_eq!(numbers(&found), expected.collect::<Vec<f64>>());
    let attributes = [
        ("coordinate_transformation_mode", Attribute::Text("asymmetric")),
        ("nearest_mode", Attribute::Text("floor")),
    ];
    let node = Node { op: "Resize", attributes: &attributes, outputs: 1, version: 11 };
    let none = tensor::<f32>(&[], &[0]);
    let found = node.results(&[tensor(&x[..10], &[10])], &[none, tensor(&[0.7_f32], &[1])]);
    assert_eq!(numbers(&found[0]), [0.0, 1.0, 2.0, 4.0, 5.0, 7.0, 8.0]);
}

/// 2^24 + 1 is not an `f32`.
const ODD: i32 = 16_777_217;

#[test]
fn interpolations_represent_all_integers() {
    let node = Node {
        op: "Resize",
        attributes: &[("mode", Attribute::Text("linear"))],
        outputs: 1,
        version: 13,
    };
    let none = tensor::<f32>(&[], &[0]);
    let found = node.results(&[tensor(&[ODD, ODD], &[2])], &[none, tensor(&[2_f32], &[1])]);
    assert_eq!(numbers(&found[0]), [f64::from(ODD); 4]);
    for mode in ["nearest", "linear"] {
        let attributes = [("mode", Attribute::Text(mode))];
        let node = Node { op: "GridSample", attributes: &attributes, outputs: 1, version: 20 };
        let grid = tensor(&[0_f32, 0.0], &[1, 1, 1, 2]);
        let found = node.results(&[tensor(&[ODD], &[1, 1, 1, 1]), grid], &[]);
        assert_eq!(numbers(&found[0]), [f64::from(ODD)], "{mode}");
    }
}

/// The samples are outside of an image of infinite elements.
#[test]
fn samples_outside_of_an_image_are_zero() {
    for mode in ["nearest", "linear", "cubic"] {
        let attributes = [("mode", Attribute::Text(mode))];
        let node = Node { op: "GridSample", attributes: &attributes, outputs: 1, version: 20 };
        let x = tensor(&[f32::INFINITY; 4], &[1, 1, 2, 2]);
        let grid = tensor(&[9_f32, 9.0, 0.0, -9.0], &[1, 1, 2, 2]);
        assert_eq!(numbers(&node.results(&[x, grid], &[])[0]), [0.0, 0.0], "{mode}");
    }
}

#[test]
fn normalizations_have_the_dtype_of_their_scale() {
    for op in ["RMSNormalization", "SimplifiedLayerNormalization"] {
        let node = Node { op, attributes: &[], outputs: 1, version: 23 };
        for (from, to) in [(DType::F32, DType::F16), (DType::F16, DType::F32)] {
            let x = tensor(&[3_f32, -3.0], &[1, 2]).cast(from);
            let found = node.results(&[x, tensor(&[1_f32, 2.0], &[2]).cast(to)], &[]).remove(0);
            assert_eq!(found.dtype(), to, "{op}");
            let found = numbers(&found);
            assert!((found[0] - 1.0).abs() < 1e-3 && (found[1] + 2.0).abs() < 1e-3, "{found:?}");
        }
    }
}

#[test]
fn attention_has_the_dtype_of_its_query() {
    let node = Node { op: "Attention", attributes: &[], outputs: 1, version: 23 };
    let ones = tensor(&[1_f32; 4], &[1, 1, 2, 2]);
    let half = ones.cast(DType::F16);
    let found = node.results(&[half.clone(), half, ones], &[]).remove(0);
    assert_eq!(found.dtype(), DType::F16);
    assert_eq!(numbers(&found), [1.0; 4]);
}

#[test]
fn powers_of_integers_are_exact_for_float_exponents() {
    let node = Node { op: "Pow", attributes: &[], outputs: 1, version: 15 };
    let exponents = tensor(&[1_f32, 3.0, -1.0], &[3]);
    let found = node.results(&[tensor(&[ODD, -3, 2], &[3]), exponents], &[]).remove(0);
    assert_eq!(found.dtype(), DType::S32);
    assert_eq!(numbers(&found), [f64::from(ODD), -27.0, 0.0]);
    let base = tensor(&[(1_i64 << 53) - 1], &[1]);
    let found = node.results(&[base, tensor(&[1_f32], &[1])], &[]).remove(0);
    assert_eq!(found.get(0), Scalar::Int((1 << 53) - 1));
    let found = node.results(&[tensor(&[2_f32], &[1]), tensor(&[3_i64], &[1])], &[]).remove(0);
    assert_eq!((found.dtype(), found.get(0)), (DType::F32, Scalar::Float(8.0)));
}

#[test]
fn integers_saturate_in_8_bit_floats() {
    let x = tensor(&[100_000_i32, -100_000, 448, 465, 3], &[5]);
    let (infinity, nan) = (f64::INFINITY, f64::NAN);
    for (dtype, saturates, expected) in [
        (DType::F8E5M2, 1, [57344.0, -57344.0, 448.0, 448.0, 3.0]),
        (DType::F8E5M2, 0, [infinity, -infinity, 448.0, 448.0, 3.0]),
        (DType::F8E4M3FN, 1, [448.0, -448.0, 448.0, 448.0, 3.0]),
        (DType::F8E4M3FN, 0, [nan, nan, 448.0, nan, 3.0]),
    ] {
        let to = i64::try_from(data_type(dtype)).unwrap();
        let attributes = [("to", Attribute::Int(to)), ("saturate", Attribute::Int(saturates))];
        let node = Node { op: "Cast", attributes: &attributes, outputs: 1, version: 19 };
        let found = numbers(&node.results(std::slice::from_ref(&x), &[])[0]);
        let is_same = |(x, y): (&f64, f64)| *x == y || x.is_nan() && y.is_nan();
        assert!(found.iter().zip(expected).all(is_same), "{dtype} {saturates}: {found:?}");
    }
}

/// The coefficients of frames `[a, b, 0, 0]` are `a + b`, `a - i b` and `a - b`.
#[test]
fn short_time_transforms_have_the_dtype_of_their_signal() {
    let x: Vec<f32> = (1_u8..=8).map(f32::from).collect();
    let node = Node { op: "STFT", attributes: &[], outputs: 1, version: 17 };
    let expected = [3.0, 0.0, 1.0, -2.0, -1.0, 0.0, 11.0, 0.0, 5.0, -6.0, -1.0, 0.0];
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        let x = tensor(&x, &[1, 8]).cast(dtype);
        for shape in [&[1, 8][..], &[1, 8, 1]] {
            let x = x.reshape(shape.to_vec()).unwrap();
            let window = tensor(&[1_f32, 1.0, 0.0, 0.0], &[4]).cast(dtype);
            let constants = [tensor(&[4_i64], &[]), window, tensor(&[4_i64], &[])];
            let found = node.results(std::slice::from_ref(&x), &constants).remove(0);
            assert_eq!((found.dtype(), &found.shape()[..]), (dtype, &[1, 2, 3, 2][..]));
            assert_close(&numbers(&found), &expected, &format!("{dtype} {shape:?}"));
        }
    }
}

#[test]
fn windows_have_the_length_of_frames() {
    let node = Node { op: "STFT", attributes: &[], outputs: 1, version: 17 };
    let x = tensor(&[1_f32; 8], &[1, 8]);
    for size in [1, 3, 5] {
        let window = tensor(&vec![1_f32; size], &[size]);
        let constants = [tensor(&[4_i64], &[]), window, tensor(&[4_i64], &[])];
        let error = node.try_results(std::slice::from_ref(&x), &constants).unwrap_err();
        let expected = format!("window: must have frame_length = 4 elements; got f32[{size}]");
        assert!(error.ends_with(&expected), "{error}");
    }
}

#[test]
fn fourier_transforms_have_the_dtype_of_their_input() {
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        let real = tensor(&[1_f32, 2.0, 3.0, 4.0], &[1, 4, 1]).cast(dtype);
        let half = tensor(&[10_f32, 0.0, -2.0, 2.0, -2.0, 0.0], &[1, 3, 2]).cast(dtype);
        let full = [10.0, 0.0, -2.0, 2.0, -2.0, 0.0, -2.0, -2.0];
        for (inverse, one_sided, x, expected) in [
            (0, 0, &real, &full[..]),
            (0, 1, &real, &full[..6]),
            (1, 1, &half, &[1.0, 2.0, 3.0, 4.0]),
        ] {
            let attributes =
                [("inverse", Attribute::Int(inverse)), ("onesided", Attribute::Int(one_sided))];
            let node = Node { op: "DFT", attributes: &attributes, outputs: 1, version: 17 };
            let found = node.results(std::slice::from_ref(x), &[]).remove(0);
            assert_eq!(found.dtype(), dtype);
            assert_close(&numbers(&found), expected, &dtype.to_string());
        }
    }
}

#[test]
fn reductions_have_the_dtype_of_their_input() {
    let ops = ["L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare"];
    for (op, is_noop) in ops.into_iter().flat_map(|op| [(op, 0), (op, 1)]) {
        let attributes = [("noop_with_empty_axes", Attribute::Int(is_noop))];
        let op = &format!("Reduce{op}");
        let node = Node { op, attributes: &attributes, outputs: 1, version: 18 };
        for dtype in [DType::S32, DType::S64, DType::F16, DType::BF16, DType::F32, DType::F64] {
            let x = tensor(&[1_f32, 3.0], &[2]).cast(dtype);
            let found = node.results(&[x], &[]).remove(0);
            assert_eq!(found.dtype(), dtype, "{op} {is_noop}");
            if op == "ReduceLogSum" && dtype.is_integer() {
                let expected: &[f64] = if is_noop == 1 { &[0.0, 1.0] } else { &[1.0] };
                assert_eq!(numbers(&found), expected);
            }
        }
    }
}

#[test]
fn old_dropout_masks_have_the_input_dtype() {
    for (version, mask) in [(7, None), (9, None), (10, Some(DType::Pred)), (13, Some(DType::Pred))]
    {
        let node = Node { op: "Dropout", attributes: &[], outputs: 2, version };
        for dtype in [DType::F16, DType::F32, DType::F64] {
            let found = node.results(&[tensor(&[1_f32, 2.0], &[2]).cast(dtype)], &[]);
            assert_eq!(found[1].dtype(), mask.unwrap_or(dtype), "{version}");
            assert_eq!(numbers(&found[1]), [1.0, 1.0]);
        }
    }
}

#[test]
fn old_softmax_merges_trailing_axes() {
    let attributes = [("axis", Attribute::Int(1))];
    let x = tensor(&[0_f32, 0.0, 9.0, 9.0, 8.0, 0.0, 8.0, 1.0], &[2, 2, 2]);
    let node = Node { op: "Hardmax", attributes: &attributes, outputs: 1, version: 11 };
    let largest = numbers(&node.results(std::slice::from_ref(&x), &[])[0]);
    assert_eq!(largest, [0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0]);
    for op in ["Softmax", "LogSoftmax"] {
        let found = numbers(&Node { op, ..node }.results(std::slice::from_ref(&x), &[])[0]);
        let number = |x: f64| if op == "Softmax" { x } else { x.exp() };
        for row in found.chunks(4) {
            let sum: f64 = row.iter().map(|&x| number(x)).sum();
            assert!((sum - 1.0).abs() < 1e-5, "{op}: {sum}");
        }
    }
    let node = Node { version: 13, ..node };
    let largest = numbers(&node.results(&[x], &[])[0]);
    assert_eq!(largest, [0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 1.0]);
}

/// The result of `Resize` for scales of the last axes.
fn resize_with(
    attributes: &[(&str, Attribute<'_>)],
    version: u64,
    x: &HostTensor,
    scales: &[f32],
) -> HostTensor {
    let node = Node { op: "Resize", attributes, outputs: 1, version };
    let none = tensor::<f32>(&[], &[0]);
    node.results(std::slice::from_ref(x), &[none, tensor(scales, &[scales.len()])]).remove(0)
}

/// An integer is rounded after both axes are interpolated, and saturates.
#[test]
fn resized_integers_are_rounded_once() {
    let rows =
        [[0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 1.0, 1.0], [0.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 2.0]];
    let x = tensor(&[0_u8, 1, 1, 2], &[2, 2]);
    for dtype in [DType::U8, DType::S32, DType::S64] {
        let found =
            resize_with(&[("mode", Attribute::Text("linear"))], 13, &x.cast(dtype), &[2.0, 2.0]);
        assert_eq!((found.dtype(), numbers(&found)), (dtype, rows.concat()));
    }
    let x = tensor(&[0_u8, 255, 0, 255, 255, 0, 255, 0, 10, 200, 30, 90], &[3, 4]);
    let cubic = [("mode", Attribute::Text("cubic"))];
    let exact = numbers(&resize_with(&cubic, 13, &x.cast(DType::F32), &[1.5, 1.5]));
    assert!(exact.iter().any(|&x| x < 0.0) && exact.iter().any(|&x| x > 255.0));
    let expected: Vec<f64> = exact.iter().map(|x| x.trunc().clamp(0.0, 255.0)).collect();
    assert_eq!(numbers(&resize_with(&cubic, 13, &x, &[1.5, 1.5])), expected);
}

/// 1.5 / 0.6 - 0.5 is 2 in 32 bits.
#[test]
fn coordinates_of_resizes_follow_the_formulas_in_32_bits() {
    for (coordinates, rounding, version, size, scale, expected) in [
        ("half_pixel", "floor", 11, 4, 0.6, &[0.0, 2.0][..]),
        ("half_pixel_symmetric", "floor", 19, 5, 0.6, &[0.0, 1.0, 3.0]),
        ("pytorch_half_pixel", "floor", 11, 4, 0.6, &[0.0, 2.0]),
        ("pytorch_half_pixel", "round_prefer_floor", 11, 4, 0.4, &[0.0]),
        ("tf_half_pixel_for_nn", "floor", 11, 4, 2.0, &[0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0]),
        ("tf_half_pixel_for_nn", "floor", 12, 4, 0.5, &[1.0, 3.0]),
    ] {
        let attributes = [
            ("coordinate_transformation_mode", Attribute::Text(coordinates)),
            ("nearest_mode", Attribute::Text(rounding)),
        ];
        let x = tensor(&[0_f32, 1.0, 2.0, 3.0, 4.0][..size], &[size]);
        let found = numbers(&resize_with(&attributes, version, &x, &[scale]));
        assert_eq!(found, expected, "{coordinates}");
    }
}

/// The result of `Resize` for sizes.
fn to_sizes(attributes: &[(&str, Attribute<'_>)], x: &HostTensor, sizes: &[i64]) -> HostTensor {
    let node = Node { op: "Resize", attributes, outputs: 1, version: 13 };
    let none = tensor::<f32>(&[], &[0]);
    let sizes = tensor(sizes, &[sizes.len()]);
    node.results(std::slice::from_ref(x), &[none.clone(), none, sizes]).remove(0)
}

#[test]
fn aligned_corners_are_exact() {
    let attributes = [
        ("coordinate_transformation_mode", Attribute::Text("align_corners")),
        ("nearest_mode", Attribute::Text("floor")),
    ];
    for size in 2_u8..20 {
        let x: Vec<f32> = (0..size).map(f32::from).collect();
        let x = tensor(&x, &[x.len()]);
        for result in [2, 3, 5, 7, 11, 49] {
            let found = numbers(&to_sizes(&attributes, &x, &[result]));
            assert_eq!(found.last(), Some(&f64::from(size - 1)), "{size} to {result}");
        }
    }
}

/// The scale 0.6 resizes 4 elements to 2.4, which is rounded down, as in PyTorch.
#[test]
fn corners_are_aligned_after_sizes_are_rounded_down() {
    let x = tensor(&[1_f32, 2.0, 3.0, 4.0], &[4]);
    for (mode, scale, expected) in [
        ("linear", 0.6, &[1.0, 4.0][..]),
        ("linear", 0.8, &[1.0, 2.5, 4.0]),
        ("cubic", 0.8, &[1.0, 2.5, 4.0]),
        ("nearest", 0.6, &[1.0, 4.0]),
    ] {
        let attributes = [
            ("coordinate_transformation_mode", Attribute::Text("align_corners")),
            ("mode", Attribute::Text(mode)),
        ];
        let found = numbers(&resize_with(&attributes, 13, &x, &[scale]));
        assert_eq!(found, expected, "{mode} {scale}");
    }
}

#[test]
fn empty_batches_are_resized() {
    for mode in ["nearest", "linear", "cubic"] {
        let attributes = [("mode", Attribute::Text(mode))];
        let x = tensor::<f32>(&[], &[0, 2]);
        assert_eq!(to_sizes(&attributes, &x, &[0, 4]).shape()[..], [0, 4], "{mode}");
        assert_eq!(resize_with(&attributes, 13, &x, &[1.0, 2.0]).shape()[..], [0, 4], "{mode}");
    }
}

/// The weight of an element at a distance, in cubic convolution.
fn cubic(distance: f64) -> f64 {
    let (a, x) = (-0.75, distance.abs());
    match x {
        x if x <= 1.0 => ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0,
        x if x < 2.0 => ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a,
        _ => 0.0,
    }
}

/// A sample beyond the border interpolates between elements of the padded image.
#[test]
fn cubic_samples_interpolate_the_padded_image() {
    let image = [1.0, -2.0, 4.0, 8.0];
    let x = tensor(&image, &[1, 1, 1, 4]).cast(DType::F32);
    let padded = |padding: &str, index: i32| match padding {
        "zeros" if !(0..4).contains(&index) => 0.0,
        "reflection" => image[usize::try_from(3 - (index.rem_euclid(6) - 3).abs()).unwrap()],
        _ => image[usize::try_from(index.clamp(0, 3)).unwrap()],
    };
    for padding in ["zeros", "border", "reflection"] {
        let attributes = [
            ("mode", Attribute::Text("cubic")),
            ("padding_mode", Attribute::Text(padding)),
            ("align_corners", Attribute::Int(1)),
        ];
        let node = Node { op: "GridSample", attributes: &attributes, outputs: 1, version: 20 };
        for coordinate in [-2.5, -1.25, -1.0, -0.75, 0.5, 1.0, 1.125, 1.5, 3.0] {
            let grid = tensor(&[coordinate, 0.0_f32], &[1, 1, 1, 2]);
            let found = numbers(&node.results(&[x.clone(), grid], &[])[0])[0];
            let position = (f64::from(coordinate) + 1.0) * 1.5;
            let indices = -8..14;
            let term = |index| cubic(position - f64::from(index)) * padded(padding, index);
            let expected: f64 = indices.map(term).sum();
            assert!((found - expected).abs() < 1e-5, "{padding} {coordinate}: {found} {expected}");
        }
    }
}

/// A step of a decoder has sequences of one element.
#[test]
fn rotary_positions_broadcast_over_sequences() {
    let node =
        Node { op: "com.microsoft:RotaryEmbedding", attributes: &[], outputs: 1, version: 1 };
    let (cos, sin) = (tensor(&[1_f32, 0.0, -1.0], &[3, 1]), tensor(&[0_f32, 1.0, 0.0], &[3, 1]));
    for length in [1, 2] {
        let x = tensor(&[1_f32, 2.0].repeat(2 * length), &[2, 1, length, 2]);
        let expected = [-2.0, 1.0, -1.0, -2.0];
        for shape in [&[][..], &[1]] {
            let inputs = [x.clone(), tensor(&[1_i64], shape), cos.clone(), sin.clone()];
            let found = numbers(&node.results(&inputs, &[])[0]);
            assert_eq!(found, expected[..2 * length].repeat(2), "{length}");
        }
    }
}
