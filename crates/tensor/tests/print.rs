//! Printed tensors, compared with the output of Nx.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use nxla_tensor::{Complex, DType, HostTensor, Names, PrintOptions, Scalar, f16};

fn iota<const N: usize>(shape: [usize; N]) -> HostTensor {
    let size: usize = shape.iter().product();
    HostTensor::from_vec((0..size as i32).collect(), shape).unwrap()
}

/// Returns the printed tensor without the line of its type.
fn body(tensor: &HostTensor) -> String {
    tensor.body_text(&PrintOptions::default(), 0)
}

#[test]
fn scalars_and_vectors() {
    let scalar = HostTensor::scalar(Scalar::Int(1), DType::S32);
    assert_eq!(scalar.to_string(), "#nxla.Tensor<\n  s32\n  1\n>");
    let vector = HostTensor::from_slice(&[1_u8, 2], [2]).unwrap();
    let vector = vector.with_names(Some(Names::from([Some("x")]))).unwrap();
    assert_eq!(vector.to_string(), "#nxla.Tensor<\n  u8[x: 2]\n  [1, 2]\n>");
}

#[test]
fn matrices_nest() {
    let matrix = HostTensor::from_slice(&[1.0_f32, 2.0, 3.0, 4.0], [2, 2]).unwrap();
    let matrix = matrix.with_names(Some(Names::from([Some("x"), None]))).unwrap();
    let expected = "\
#nxla.Tensor<
  f32[x: 2][2]
  [
    [1.0, 2.0],
    [3.0, 4.0]
  ]
>";
    assert_eq!(matrix.to_string(), expected);
}

#[test]
fn higher_ranks_nest_deeper() {
    let expected = "\
[
  [
    [0, 1],
    [2, 3]
  ],
  [
    [4, 5],
    [6, 7]
  ]
]";
    assert_eq!(body(&iota([2, 2, 2])), expected);
}

#[test]
fn the_limit_cuts_rows_and_lists() {
    assert_eq!(body(&iota([50])).matches("...").count(), 0);
    assert!(body(&iota([51])).ends_with("48, 49, ...]"));
    let expected = "\
[
  [
    [0, 1, 2, 3],
    [4, ...],
    ...
  ],
  ...
]";
    let limited = PrintOptions { limit: Some(5) };
    assert_eq!(iota([3, 3, 4]).body_text(&limited, 0), expected);
    let at_the_end_of_a_row = PrintOptions { limit: Some(4) };
    assert_eq!(iota([2, 4]).body_text(&at_the_end_of_a_row, 0), "[\n  [0, 1, 2, 3],\n  ...\n]");
    let all = PrintOptions { limit: None };
    assert!(iota([51]).body_text(&all, 0).ends_with("49, 50]"));
    let nothing = PrintOptions { limit: Some(0) };
    assert_eq!(iota([3]).body_text(&nothing, 0), "[...]");
}

#[test]
fn empty_tensors() {
    assert_eq!(body(&iota([0])), "[]");
    assert_eq!(body(&iota([0, 3])), "[]");
    assert_eq!(body(&iota([2, 0])), "[\n  [],\n  []\n]");
    let many = HostTensor::zeros(DType::F32, [1 << 40, 0]).unwrap();
    let limited = PrintOptions { limit: Some(2) };
    assert_eq!(many.body_text(&limited, 0), "[\n  [],\n  [],\n  ...\n]");
}

#[test]
fn indentation_applies_to_inner_lines() {
    let text = iota([1, 2]).body_text(&PrintOptions::default(), 4);
    assert_eq!(text, "[\n      [0, 1]\n    ]");
}

#[test]
fn floats_print_the_digits_of_their_type() {
    let values = [0.1, 1e-7, 1e7, 123_456.79, 1.0 / 3.0, f32::NAN, f32::NEG_INFINITY];
    let tensor = HostTensor::from_slice(&values, [7]).unwrap();
    assert_eq!(body(&tensor), "[0.1, 1e-7, 1e7, 123456.79, 0.33333334, NaN, -Inf]");
    let doubles = HostTensor::from_slice(&[0.1, 1e-7, 1e22, 123_456.789], [4]).unwrap();
    assert_eq!(body(&doubles), "[0.1, 1.0e-7, 1.0e22, 123456.789]");
    let halves = HostTensor::from_slice(&[0.1, 65504.0].map(f16::from_f32), [2]).unwrap();
    assert_eq!(body(&halves), "[0.1, 6.55e4]");
    let eight = HostTensor::from_slice(&[0.1_f32, 448.0], [2]).unwrap().cast(DType::F8E4M3FN);
    assert_eq!(body(&eight), "[0.1, 450.0]");
}

#[test]
fn complex_and_predicates() {
    let values = [Complex::new(f32::NAN, f32::INFINITY), Complex::new(f32::NEG_INFINITY, 1.0)];
    let tensor = HostTensor::from_slice(&values, [2]).unwrap();
    assert_eq!(body(&tensor), "[NaN+Infi, -Inf+1.0i]");
    let double = HostTensor::from_slice(&[Complex::new(0.5_f64, -1.0)], []).unwrap();
    assert_eq!(body(&double), "0.5-1.0i");
    let bools = HostTensor::from_bools(&[true, false], [2]).unwrap();
    assert_eq!(bools.to_string(), "#nxla.Tensor<\n  pred[2]\n  [1, 0]\n>");
}
