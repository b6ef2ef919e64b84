//! Functions of complex numbers: cancellation, overflow, branch cuts, infinities and NaN.

use std::f64::consts::FRAC_PI_2;

use nxla_expr::{BinaryOp, UnaryOp};
use nxla_tensor::{Complex, HostTensor};

use super::common::evaluate_op;

type C = Complex<f64>;

fn number(z: C) -> HostTensor {
    HostTensor::from_slice(&[z], [1]).expect("one number")
}

fn unary(op: UnaryOp, z: C) -> C {
    let found = evaluate_op(&[number(z)], |g, x| g.unary(op, x[0]));
    found.to_vec::<C>().expect("complex numbers")[0]
}

fn binary(op: BinaryOp, z: C, w: C) -> C {
    let found = evaluate_op(&[number(z), number(w)], |g, x| g.binary(op, x[0], x[1]));
    found.to_vec::<C>().expect("complex numbers")[0]
}

fn assert_close(a: C, b: C) {
    assert!((a - b).norm() <= 1e-14 * b.norm().max(1e-300), "{a} {b}");
}

/// Does the same as `assert_eq`, but NaN equals NaN.
fn assert_same(a: C, b: C) {
    let part = |a: f64, b: f64| a == b || a.is_nan() && b.is_nan();
    assert!(part(a.re, b.re) && part(a.im, b.im), "{a} {b}");
}

#[test]
fn functions_are_accurate_near_zero() {
    let z = C::new(1e-9, 2e-9);
    assert_close(unary(UnaryOp::Expm1, z), z + z * z * 0.5);
    assert_close(unary(UnaryOp::Log1p, z), z - z * z * 0.5);
    assert_close(unary(UnaryOp::Log1p, C::new(1.5, -2.0)), (1.0 + C::new(1.5, -2.0)).ln());
    assert_close(unary(UnaryOp::Expm1, C::new(1.5, -2.0)), C::new(1.5, -2.0).exp() - 1.0);
}

#[test]
fn intermediate_results_do_not_overflow() {
    assert_eq!(unary(UnaryOp::Tanh, C::new(1e6, 1.0)), C::new(1.0, 0.0));
    assert_eq!(unary(UnaryOp::Tan, C::new(1.0, -1e6)), C::new(0.0, -1.0));
    assert_close(unary(UnaryOp::Sigmoid, C::new(-800.0, 0.0)), C::new(0.0, 0.0));
    assert_eq!(unary(UnaryOp::Sigmoid, C::new(800.0, 1.0)), C::ONE);
    assert_close(unary(UnaryOp::Tan, C::new(0.5, 0.25)), C::new(0.5, 0.25).tan());
}

#[test]
fn functions_of_large_numbers_are_accurate() {
    let (half, large, log) = (FRAC_PI_2, 1e300, 2e300_f64.ln());
    assert_close(unary(UnaryOp::Asin, C::new(large, -1.0)), C::new(half, -log));
    assert_close(unary(UnaryOp::Acos, C::new(large, 1.0)), C::new(0.0, -log));
    assert_close(unary(UnaryOp::Acosh, C::new(-large, 1.0)), C::new(log, 2.0 * half));
    assert_close(
        unary(UnaryOp::Asinh, C::new(large, large)),
        C::new(log + 2_f64.sqrt().ln(), 0.5 * half),
    );
    assert_close(unary(UnaryOp::Atanh, C::new(large, -large)), C::new(0.5 / large, -half));
    assert_close(unary(UnaryOp::Atan, C::new(f64::INFINITY, 0.0)), C::new(half, 0.0));
    assert_close(
        unary(UnaryOp::Rsqrt, C::new(0.0, large)),
        C::new(1.0, -1.0) * (0.5 / large).sqrt(),
    );
    let (sine, cosine) = large.sin_cos();
    let scale = 0.5_f64.sinh().powi(2) + cosine * cosine;
    let expected = C::new(0.5_f64.sinh() * 0.5_f64.cosh() / scale, sine * cosine / scale);
    assert_close(unary(UnaryOp::Tanh, C::new(0.5, large)), expected);
}

#[test]
fn inverse_functions_undo_their_functions() {
    let inverses: [(UnaryOp, fn(C) -> C); 6] = [
        (UnaryOp::Asin, C::sin),
        (UnaryOp::Acos, C::cos),
        (UnaryOp::Atan, C::tan),
        (UnaryOp::Asinh, C::sinh),
        (UnaryOp::Acosh, C::cosh),
        (UnaryOp::Atanh, C::tanh),
    ];
    for z in [C::new(0.5, 0.25), C::new(-1.5, 2.0), C::new(3.0, -0.5), C::new(-0.2, -4.0)] {
        for (op, inverse) in inverses {
            assert_close(inverse(unary(op, z)), z);
        }
    }
}

#[test]
fn signed_zeros_select_sides_of_branch_cuts() {
    let (above, below) = (C::new(2.0, 0.0), C::new(2.0, -0.0));
    let (half, log) = (FRAC_PI_2, 2f64.acosh());
    assert_close(unary(UnaryOp::Asin, above), C::new(half, log));
    assert_close(unary(UnaryOp::Asin, below), C::new(half, -log));
    assert_close(unary(UnaryOp::Acos, above), C::new(0.0, -log));
    assert_close(unary(UnaryOp::Acos, below), C::new(0.0, log));
    assert_close(unary(UnaryOp::Atanh, above), C::new(0.5 * 3f64.ln(), half));
    assert_close(unary(UnaryOp::Atanh, below), C::new(0.5 * 3f64.ln(), -half));
    assert_close(unary(UnaryOp::Acosh, C::new(-2.0, 0.0)), C::new(log, 2.0 * half));
    assert_close(unary(UnaryOp::Asinh, C::new(0.0, 2.0)), C::new(log, half));
    assert_close(unary(UnaryOp::Atan, C::new(0.0, 2.0)), C::new(half, 0.5 * 3f64.ln()));
}

#[test]
fn infinities_and_nan() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let cases = [
        // The imaginary part of a number on the real axis stays zero, however large the other part is.
        (UnaryOp::Exp, C::new(1e4, 0.0), C::new(inf, 0.0)),
        (UnaryOp::Sinh, C::new(-1e4, 0.0), C::new(-inf, 0.0)),
        (UnaryOp::Cosh, C::new(1e4, 0.0), C::new(inf, 0.0)),
        (UnaryOp::Sin, C::new(0.0, 1e4), C::new(0.0, inf)),
        (UnaryOp::Cos, C::new(0.0, 1e4), C::new(inf, 0.0)),
        (UnaryOp::Sqrt, C::new(inf, 0.5), C::new(inf, 0.0)),
        (UnaryOp::Sqrt, C::new(-inf, -0.5), C::new(0.0, -inf)),
        (UnaryOp::Cbrt, C::new(inf, 0.5), C::new(inf, 0.0)),
        (UnaryOp::Expm1, C::new(inf, 0.0), C::new(inf, 0.0)),
        // An unknown angle leaves a known size.
        (UnaryOp::Exp, C::new(inf, inf), C::new(inf, nan)),
        (UnaryOp::Expm1, C::new(inf, inf), C::new(inf, nan)),
        (UnaryOp::Expm1, C::new(-inf, inf), C::new(-1.0, 0.0)),
        (UnaryOp::Sinh, C::new(inf, nan), C::new(inf, nan)),
        (UnaryOp::Cosh, C::new(0.0, inf), C::new(nan, 0.0)),
        (UnaryOp::Tanh, C::new(inf, nan), C::new(1.0, 0.0)),
        (UnaryOp::Tanh, C::new(-40.0, inf), C::new(nan, nan)),
        (UnaryOp::Tanh, C::new(-0.0, inf), C::new(-0.0, nan)),
        (UnaryOp::Tan, C::new(nan, 0.0), C::new(nan, 0.0)),
        (UnaryOp::Acosh, C::new(0.0, nan), C::new(nan, FRAC_PI_2)),
        (UnaryOp::Sqrt, C::new(nan, inf), C::new(inf, inf)),
        (UnaryOp::Sqrt, C::new(nan, 0.0), C::new(nan, nan)),
        (UnaryOp::Cbrt, C::new(inf, nan), C::new(inf, nan)),
        (UnaryOp::Rsqrt, C::new(0.0, inf), C::ZERO),
    ];
    for (op, z, expected) in cases {
        assert_same(unary(op, z), expected);
    }
    // A finite number divided by infinity is zero.
    assert_same(binary(BinaryOp::Divide, C::ONE, C::new(inf, inf)), C::ZERO);
    assert_same(binary(BinaryOp::Pow, C::new(0.0, inf), C::new(-1.0, 0.0)), C::ZERO);
    assert_same(binary(BinaryOp::Pow, C::I, C::new(0.0, -1e4)), C::new(inf, 0.0));
}

#[test]
fn powers_of_zero() {
    let pow = |z, w| binary(BinaryOp::Pow, z, w);
    assert_eq!(pow(C::ZERO, C::ZERO), C::ONE);
    assert_eq!(pow(C::ZERO, C::new(2.0, 1.0)), C::ZERO);
    assert!(pow(C::ZERO, C::new(-1.0, 0.0)).re.is_nan());
    assert_eq!(pow(C::new(1.0, 2.0), C::new(2.0, 0.0)), C::new(-3.0, 4.0));
}
