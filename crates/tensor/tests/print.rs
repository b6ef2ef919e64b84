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
    assert_eq!(scalar.to_string(), "#nxla.Tensor<s32 1>");
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
fn the_middle_of_long_axes_is_omitted() {
    assert_eq!(body(&iota([10, 100])).matches("...").count(), 0);
    assert_eq!(body(&iota([1001])), "[0, 1, 2, ..., 998, 999, 1000]");
    let expected = "\
[
  [0, 1, ..., 8, 9],
  [10, 11, ..., 18, 19],
  ...,
  [80, 81, ..., 88, 89],
  [90, 91, ..., 98, 99]
]";
    let short = PrintOptions { threshold: 99, edge_items: 2, ..PrintOptions::DEFAULT };
    assert_eq!(iota([10, 10]).body_text(&short, 0), expected);
    // An axis is printed whole if its ends meet.
    let text = iota([4, 100]).body_text(&short, 0);
    assert!(text.starts_with("[\n  [0, 1, ..., 98, 99],\n  [100, 101, ..., 198, 199],"), "{text}");
    assert_eq!(text.matches("...").count(), 4);
}

#[test]
fn long_rows_are_broken_into_lines() {
    let narrow = PrintOptions { line_width: 20, ..PrintOptions::DEFAULT };
    let expected = "\
[
  [0, 1, 2, 3, 4, 5,
   6, 7, 8, 9, 10,
   11]
]";
    assert_eq!(iota([1, 12]).body_text(&narrow, 0), expected);
    for width in 1..40 {
        let options = PrintOptions { line_width: width, ..PrintOptions::DEFAULT };
        let text = iota([2, 12]).body_text(&options, 0);
        // A closing bracket and a comma may follow the last element of a line.
        assert!(text.lines().all(|line| line.len() <= width.max(5) + 2), "{text}");
        let whole: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let usual: String = body(&iota([2, 12])).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(whole, usual);
    }
}

#[test]
fn precision_rounds_numbers_of_all_magnitudes() {
    let values = [1.0 / 3.0, 2.0, 123_456_789.0, 1e-5, 0.005, 0.0, -1.5, f64::NAN];
    let tensor = HostTensor::from_slice(&values, [8]).unwrap();
    let options = PrintOptions { precision: Some(2), ..PrintOptions::DEFAULT };
    let expected = "[0.33, 2.00, 1.23e+08, 1.00e-05, 0.01, 0.00, -1.50, NaN]";
    assert_eq!(tensor.body_text(&options, 0), expected);
}

#[test]
fn printed_ranges_hold_the_printed_elements() {
    for shape in [vec![], vec![7], vec![3, 9], vec![8, 2, 9], vec![0, 4], vec![4, 0, 2]] {
        for (threshold, edge_items) in [(0, 1), (0, 3), (10, 2), (1000, 3)] {
            let options = PrintOptions { threshold, edge_items, ..PrintOptions::DEFAULT };
            let size: usize = shape.iter().product();
            let whole = HostTensor::from_vec((0..size as i32).collect(), &shape[..]).unwrap();
            let shape = whole.shape();
            let printed: Vec<i32> =
                options.printed_ranges(shape).into_iter().flatten().map(|at| at as i32).collect();
            let count = printed.len();
            let part = HostTensor::from_vec(printed, [count]).unwrap();
            let text = part.printed_text(shape, &options, 0);
            assert_eq!(text, whole.body_text(&options, 0));
            let tokens = text.split(|c: char| !c.is_ascii_digit());
            assert_eq!(tokens.filter(|token| !token.is_empty()).count(), count);
        }
    }
}

#[test]
fn empty_tensors() {
    assert_eq!(body(&iota([0])), "[]");
    assert_eq!(body(&iota([0, 3])), "[]");
    assert_eq!(body(&iota([2, 0])), "[\n  [],\n  []\n]");
    let many = HostTensor::zeros(DType::F32, [1 << 40, 0]).unwrap();
    let short = PrintOptions { edge_items: 1, ..PrintOptions::DEFAULT };
    assert_eq!(many.body_text(&short, 0), "[\n  [],\n  ...,\n  []\n]");
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
    let bools = HostTensor::from_slice(&[true, false], [2]).unwrap();
    assert_eq!(bools.to_string(), "#nxla.Tensor<\n  pred[2]\n  [true, false]\n>");
}
