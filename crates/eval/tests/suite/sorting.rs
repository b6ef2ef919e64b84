//! Sorting, and the positions of the largest elements, for all dtypes and distributions of elements.

use std::slice::from_ref;

use nxla_expr::ExprId;
use nxla_tensor::{DType, Element, HostTensor};

use super::common::{evaluate_op, random_bits, tensor};

fn sort(x: &HostTensor, axis: i64, descending: bool) -> HostTensor {
    evaluate_op(from_ref(x), |g, x| g.sort(x[0], axis, descending, true))
}

fn order(x: &HostTensor, axis: i64, descending: bool) -> Vec<i64> {
    let order =
        evaluate_op(from_ref(x), |g, x| g.argsort(x[0], axis, descending, true, DType::S64));
    order.to_vec().expect("positions are integers")
}

/// Sorts in both directions, along adjacent and strided elements, for lengths around multiples of
/// the width of keys.
#[test]
fn every_dtype_is_sorted_by_value() {
    for dtype in DType::ALL.into_iter().filter(|dtype| !dtype.is_complex()) {
        // Negative numbers become huge as `u64`, where `f64` cannot represent their differences.
        let least = if dtype == DType::U64 { 0 } else { -3 };
        for (count, inner) in [(1, 1), (4, 1), (7, 1), (8, 2), (5, 3)] {
            let numbers: Vec<i64> =
                (0..2 * count * inner).map(|at| at as i64 * 37 % 11 + least).collect();
            let x = tensor(&numbers, [2, count, inner]).cast(dtype);
            for descending in [false, true] {
                let (sorted, order) = (sort(&x, 1, descending), order(&x, 1, descending));
                for run in 0..2 * inner {
                    let first = run / inner * count * inner + run % inner;
                    let mut expected: Vec<(f64, i64)> =
                        (0..count).map(|at| x.get(first + at * inner).as_f64()).zip(0..).collect();
                    let direction = if descending { -1.0 } else { 1.0 };
                    expected.sort_by(|a, b| (direction * a.0).total_cmp(&(direction * b.0)));
                    for (at, (number, position)) in expected.into_iter().enumerate() {
                        let index = first + at * inner;
                        assert_eq!(sorted.get(index).as_f64(), number, "{dtype} at {index}");
                        assert_eq!(order[index], position, "{dtype} at {index}");
                    }
                }
            }
        }
    }
}

#[test]
fn nan_sorts_last_and_zeros_keep_their_order() {
    let x = tensor(&[0.0_f32, f32::NAN, -0.0, f32::INFINITY, -1.0, -f32::NAN, 0.0], [7]);
    assert_eq!(order(&x, 0, false), [4, 0, 2, 6, 3, 1, 5]);
    assert_eq!(order(&x, 0, true), [1, 5, 3, 0, 2, 6, 4]);
    for (inner, shape) in [(1, [7, 1]), (2, [4, 2])] {
        let column = [0.0_f32, 1.0, -0.0, 1.0, -1.0, 1.0, 0.0, 1.0];
        let x = tensor(&column[..shape[0] * shape[1]], shape);
        for descending in [false, true] {
            let sorted = sort(&x, 0, descending).to_vec::<f32>().expect("the dtype stays");
            let zeros = sorted.iter().step_by(inner).filter(|x| **x == 0.0);
            let signs: Vec<bool> = zeros.map(|x| x.is_sign_negative()).collect();
            assert_eq!(signs, [false, true, false], "{inner} {descending}");
        }
    }
}

/// Lengths whose keys are compared, counted in one bucket, and spread over several buckets.
const COUNTS: [usize; 8] = [0, 1, 2, 1000, 4096, 4097, 70_001, 300_003];

/// Keys of 32, 64 and 128 bits: elements, and elements with their positions.
fn check_run<T: Element + Ord + std::fmt::Debug>(elements: &[T]) {
    let x = tensor(elements, [elements.len()]);
    let mut expected: Vec<(T, i64)> = elements.iter().copied().zip(0..).collect();
    expected.sort();
    let found = sort(&x, 0, false).to_vec::<T>().expect("the dtype stays");
    assert!(found.iter().eq(expected.iter().map(|(x, _)| x)), "{} elements", elements.len());
    let indices = order(&x, 0, false);
    assert!(indices.iter().eq(expected.iter().map(|(_, at)| at)), "{}", elements.len());
}

#[test]
fn runs_of_all_lengths_are_sorted() {
    for count in COUNTS {
        check_run(&random_bits(count).collect::<Vec<u64>>());
        check_run(&random_bits(count).map(|x| x as i32).collect::<Vec<_>>());
        check_run(&random_bits(count).map(|x| (x % 100) as u32).collect::<Vec<_>>());
    }
}

#[test]
fn unevenly_distributed_elements_are_sorted() {
    let shapes: [fn(u64) -> u64; 7] = [
        |_| 5,
        |x| x % 7,
        |x| x % 3000,
        // All elements but a few in one bin, with low bits that no digit contains.
        |x| if x.is_multiple_of(9973) { x } else { 1 << 60 | x >> 34 },
        // Keys of all magnitudes.
        |x| x >> (x % 64),
        |x| u64::MAX - (x >> (x % 64)),
        // Equal except for the highest and the lowest bits.
        |x| x & 0xc000_0000_0000_0fff,
    ];
    for shape in shapes {
        for count in [4096, 300_003] {
            check_run(&random_bits(count).map(shape).collect::<Vec<u64>>());
            check_run(&random_bits(count).map(|x| shape(x) as u32).collect::<Vec<_>>());
        }
    }
}

/// The positions of the largest elements of each row.
fn top_k_indices(x: &HostTensor, k: usize) -> Vec<i64> {
    let found = evaluate_op(from_ref(x), |g, x| Ok::<ExprId, _>(g.top_k(x[0], k)?.1));
    found.cast(DType::S64).to_vec().expect("positions are integers")
}

#[test]
fn top_k_equals_the_first_sorted_elements() {
    for dtype in
        [DType::U8, DType::S16, DType::S64, DType::U64, DType::BF16, DType::F32, DType::F64]
    {
        for (rows, size, k) in [(1, 400_000, 100), (5, 300, 7), (2, 1, 1), (3, 90, 90), (0, 9, 2)] {
            let numbers: Vec<i64> =
                (0..rows * size).map(|at| (at * 7919 % 10_007) as i64).collect();
            let x = tensor(&numbers, [rows, size]).cast(dtype);
            let values = evaluate_op(from_ref(&x), |g, x| Ok::<ExprId, _>(g.top_k(x[0], k)?.0));
            let found = top_k_indices(&x, k);
            for row in 0..rows {
                let mut expected: Vec<(f64, i64)> =
                    (0..size).map(|at| -x.get(row * size + at).as_f64()).zip(0..).collect();
                expected.sort_by(|a, b| a.0.total_cmp(&b.0));
                for (at, &(number, position)) in expected[..k].iter().enumerate() {
                    assert_eq!(found[row * k + at], position, "{dtype}");
                    assert_eq!(values.get(row * k + at).as_f64(), -number, "{dtype}");
                }
            }
        }
    }
}

#[test]
fn top_k_selects_nan_first_and_ties_zeros() {
    let mut x = vec![-1.0_f32; 100];
    (x[3], x[50], x[70], x[71]) = (0.0, f32::NAN, -0.0, f32::INFINITY);
    assert_eq!(top_k_indices(&tensor(&x, [100]), 5), [50, 71, 3, 70, 0]);
}
