//! Functions of matrices, and the order of frequencies.

use crate::common::{agree, compilers, numbers};
use nxla::testing::check_grads;
use nxla::{DType, Expr, Tensor, jit, vmap};

/// The exponential of this matrix is a rotation.
fn turn(angle: f64) -> Tensor {
    Tensor::from([[0.0, -angle], [angle, 0.0]])
}

fn assert_is_rotation(found: &[f64], angle: f64) {
    let (sin, cos) = angle.sin_cos();
    for (found, expected) in found.iter().zip([cos, -sin, sin, cos]) {
        assert!((found - expected).abs() < 1e-12, "{angle}: {found} instead of {expected}");
    }
}

#[test]
fn exponentials_of_matrices() {
    let angles = [0.0, 1e-3, 1.0, 40.0];
    let all = Tensor::stack(&angles.map(turn), 0).unwrap();
    for compiler in compilers() {
        let single = jit(|x: Expr| x.expm()).compiler(compiler);
        let mapped = jit(vmap(|x: Expr| x.expm(), 0, 0)).compiler(compiler);
        for angle in angles {
            assert_is_rotation(&numbers(&single.call(turn(angle)).unwrap()), angle);
        }
        for found in [single.call(&all).unwrap(), mapped.call(&all).unwrap()] {
            let found = numbers(&found);
            found.chunks(4).zip(angles).for_each(|(found, angle)| assert_is_rotation(found, angle));
        }
    }
    assert_is_rotation(&numbers(&turn(2.0).expm().unwrap()), 2.0);
    let x = Tensor::from([[0.5f64, -1.0, 2.0], [3.0, 0.1, 0.2], [-2.0, 4.0, 1.0]]);
    check_grads(|x: Expr| x.expm(), (x / 3).unwrap()).unwrap();
}

#[test]
fn exponentials_keep_shapes_and_float_dtypes() {
    for (shape, dtype, expected) in [
        ([2, 2], DType::F16, DType::F16),
        ([2, 2], DType::S32, DType::F32),
        ([2, 2], DType::C128, DType::C128),
        ([0, 0], DType::F64, DType::F64),
    ] {
        let found = Tensor::eye(shape, dtype).unwrap().expm().unwrap();
        assert_eq!((found.dtype(), &found.shape()[..]), (expected, &shape[..]));
    }
    let error = Tensor::from([[1.0f32, 2.0]]).expm().unwrap_err().to_string();
    assert!(error.starts_with("expm: operand: expected square matrices"), "{error}");
}

#[test]
fn frequency_zero_moves_to_the_middle() {
    let x = Tensor::from([[0, 1, 2], [3, 4, 5]]);
    agree!((x) => x.fftshift(()), [2, 3], [5, 3, 4, 2, 0, 1]);
    agree!((x) => x.fftshift(-1), [2, 3], [2, 0, 1, 5, 3, 4]);
    agree!((x) => x.ifftshift([0, 1]), [2, 3], [4, 5, 3, 1, 2, 0]);
    let names = Tensor::from([0, 1, -1]).with_names(["frequency"]).unwrap();
    assert_eq!(numbers(&names.fftshift("frequency").unwrap()), [-1.0, 0.0, 1.0]);
}
