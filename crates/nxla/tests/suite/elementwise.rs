//! Element-wise functions and functions without operands, eager and traced.

use crate::common::{agree, numbers};
use nxla::host::Scalar;
use nxla::{DType, Expr, Tensor, jit};

#[test]
fn elementwise_functions() {
    let x = Tensor::from(vec![-1.5f32, 0.0, 2.0]);
    let n = Tensor::from(vec![-7i32, 7, 2]);
    agree!((x) => x.abs(), [3], [1.5f32, 0.0, 2.0]);
    agree!((x) => x.exp(), [3], [0.223_130_16f32, 1.0, 7.389_056]);
    agree!((x) => x.max(0), [3], [0.0f32, 0.0, 2.0]);
    agree!((x, n) => x.add(n), [3], [-8.5f32, 7.0, 4.0]);
    agree!((n) => n.quotient(2), [3], [-3, 3, 1]);
    agree!((n) => n.remainder(2), [3], [-1, 1, 0]);
    agree!((n) => n.greater(0), [3], [0, 1, 1]);
    agree!((n) => n.bitwise_and(3), [3], [1, 3, 2]);
}

#[test]
fn bitwise_operators() {
    let n = Tensor::from(vec![5i32, -2, 12]);
    let m = Tensor::from(vec![3i32, 3, 10]);
    agree!((n, m) => n & m, [3], [1, 2, 8]);
    agree!((n, m) => n | m, [3], [7, -1, 14]);
    agree!((n, m) => n ^ m, [3], [6, -3, 6]);
    agree!((n) => !n, [3], [-6, 1, -13]);
    agree!((n) => n << 2, [3], [20, -8, 48]);
    agree!((n) => n >> 1, [3], [2, -1, 6]);
    agree!((m) => 1 << m, [3], [8, 8, 1024]);
}

#[test]
fn composed_functions() {
    let x = Tensor::from(vec![-2.5f32, -0.5, 0.5, 1.5, 2.5, f32::NAN, f32::INFINITY]);
    let n = Tensor::from(vec![-7i32, 7, -6]);
    agree!((x) => x.round_half_even(), [7], [-2.0, -0.0, 0.0, 2.0, 2.0, f32::NAN, f32::INFINITY]);
    agree!((x) => x.truncate(), [7], [-2.0, 0.0, 0.0, 1.0, 2.0, f32::NAN, f32::INFINITY]);
    agree!((x) => x.is_finite(), [7], [1, 1, 1, 1, 1, 0, 0]);
    agree!((x) => x.clip(-1, 1), [7], [-1.0, -0.5, 0.5, 1.0, 1.0, f32::NAN, 1.0]);
    agree!((n) => n.floor_divide(2), [3], [-4, 3, -3]);
    agree!((n) => n.floor_remainder(-4), [3], [-3, -1, -2]);
    agree!((n) => n.reciprocal(), [3], [-1.0 / 7.0, 1.0 / 7.0, -1.0 / 6.0]);
    agree!((n) => n.square(), [3], [49, 49, 36]);
    let zeros = Tensor::from(vec![0.0f32, -0.0]);
    agree!((zeros) => zeros.sign_bit(), [2], [0, 1]);
    let pair = Tensor::from(vec![-7.0f32, -7.0]);
    agree!((pair, zeros) => pair.copy_sign(zeros), [2], [7, -7]);
    let (a, b) = (Tensor::from(vec![3e30f32, 0.0]), Tensor::from(vec![4e30f32, 0.0]));
    agree!((a, b) => a.hypot(b), [2], [5e30, 0.0]);
    let (a, b) = (Tensor::from(vec![1000.0f32]), Tensor::from(vec![1000.0f32]));
    agree!((a, b) => a.log_add_exp(b), [1], [1_000.693_1]);
    agree!((a, b) => a.all_close(b, 0.0, 0.0, false), [], [1]);
}

#[test]
fn scalars_take_the_dtype_of_other_operands() {
    let half = Tensor::from(vec![1.0f32, 2.0]).as_type(DType::BF16).unwrap();
    let results = [half.add(0.5), half.clip(0, 1.5), half.greater(1).unwrap().select(&half, 0.25)];
    for result in results {
        assert_eq!(result.unwrap().dtype(), DType::BF16);
    }
    // With two scalars, the predicate does not affect the dtype.
    let chosen = half.greater(1).unwrap().select(1, 2.5).unwrap();
    assert_eq!((chosen.dtype(), numbers(&chosen)), (DType::F32, vec![2.5, 1.0]));
}

#[test]
fn select_rejects_integers_that_share_no_dtype() {
    let mask = Tensor::from([true, false]);
    let eager = mask.select(u64::MAX, -1).unwrap_err().to_string();
    let traced = jit(|mask: Expr| mask.select(-1, 1u64 << 63)).call(&mask).unwrap_err().to_string();
    for error in [eager, traced] {
        let start = "select: negative integers and integers above 2**63 - 1 share no integer dtype";
        assert!(error.starts_with(start), "{error}");
    }
    let large = mask.select(u64::MAX, 1).unwrap();
    assert_eq!(large.to_vec::<u64>().unwrap(), [u64::MAX, 1]);
}

#[test]
fn operators_of_tensors_and_expressions() {
    let (x, y) = (Tensor::from(vec![6.0f32]), Tensor::from(vec![4.0f32]));
    assert_eq!(numbers(&(&x + &y).unwrap()), [10.0]);
    assert_eq!(numbers(&(2 - &x).unwrap()), [-4.0]);
    assert_eq!(numbers(&(-&x).unwrap()), [-6.0]);
    assert_eq!(numbers(&(&x % 4.0).unwrap()), [2.0]);
    let f = jit(|x: Expr| (&y - &x, 1.0 / &x, -x));
    let (difference, ratio, negated) = f.call(&x).unwrap();
    assert_eq!(numbers(&difference), [-2.0]);
    crate::common::assert_close(&numbers(&ratio), &[1.0 / 6.0], "ratio");
    assert_eq!(numbers(&negated), [-6.0]);
}

#[test]
fn creation_functions() {
    agree!(() => Maker::iota([2, 2], Some(1), DType::S32), [2, 2], [0, 1, 0, 1]);
    agree!(() => Maker::eye([2, 2], DType::F32), [2, 2], [1, 0, 0, 1]);
    agree!(() => Maker::tri(2, 3, 0), [2, 3], [1, 0, 0, 1, 1, 0]);
    agree!(() => Maker::linspace(0.0, 1.0, 3, true, DType::F32), [3], [0.0, 0.5, 1.0]);
    agree!(() => Maker::linspace(0.0, 1.0, 1, true, DType::F32), [1], [0.0]);
    agree!(() => Maker::arange(1.0, 2.0, 0.25, DType::F32), [4], [1.0, 1.25, 1.5, 1.75]);
    agree!(() => Maker::arange(3.0, 0.0, -1.0, DType::U8), [3], [3, 2, 1]);
    agree!(() => Maker::arange(0.0, -3.0, 1.0, DType::S32), [0], [0; 0]);
    agree!(() => Maker::full([1, 2], 2.9, DType::S32), [1, 2], [2, 2]);
    agree!(() => Maker::zeros([0, 3], DType::F32), [0, 3], [0; 0]);
    agree!(() => Maker::ones([2], DType::F16), [2], [1, 1]);
    let error = Tensor::arange(0.0, 1.0, 0.0, DType::F32).unwrap_err().to_string();
    assert!(error.starts_with("arange: step"), "{error}");
}

#[test]
fn functions_of_diagonals_and_fill_values() {
    let x = Tensor::new(vec![1, 2, 3, 4, 5, 6], [2, 3]).unwrap();
    agree!((x) => x.tril(0), [2, 3], [1, 0, 0, 4, 5, 0]);
    agree!((x) => x.triu(1), [2, 3], [0, 2, 3, 0, 0, 6]);
    agree!((x) => x.take_diagonal(1), [2], [2, 6]);
    agree!((x) => x.zeros_like(), [2, 3], [0; 6]);
    agree!((x) => x.ones_like(), [2, 3], [1; 6]);
    agree!((x) => x.full_like(9), [2, 3], [9; 6]);
    let d = Tensor::from(vec![7, 8]);
    agree!((d) => d.make_diagonal(-1), [3, 3], [0, 0, 0, 7, 0, 0, 0, 8, 0]);
    agree!((x, d) => x.put_diagonal(d, 0), [2, 3], [7, 2, 3, 4, 8, 6]);
    let (start, stop) = (Tensor::from(vec![0.0f32, 1.0]), Tensor::from(vec![1.0f32, 3.0]));
    agree!((start, stop) => start.linspace_to(stop, 2, true, DType::F32), [2, 2], [0, 1, 1, 3]);
}

#[test]
fn numbers_of_every_dtype() {
    for dtype in DType::ALL {
        let one = Tensor::full([2], 1, dtype).unwrap();
        assert_eq!(one.dtype(), dtype);
        let sum = one.to_host().unwrap();
        assert_eq!(sum.get(1).cast(DType::F64), Scalar::Float(1.0), "{dtype}");
    }
}
