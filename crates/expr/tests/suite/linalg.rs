//! Fourier transforms and linear algebra: shapes, dtypes, names and errors.

use crate::common::outcome;
use nxla_expr::build::{FftNorm, Norm};
use nxla_expr::{Transform, TriangularSolve};
use nxla_tensor::DType;

#[test]
fn fourier_transforms_are_complex() {
    for dtype in DType::ALL {
        let expected = format!("{}[3]", dtype.to_complex());
        assert_eq!(
            outcome(&[&format!("{dtype}[3]")], |g, x| g.fft(x[0], None, -1, FftNorm::Backward)),
            expected
        );
    }
    let x = ["f32[x: 4][y: 6]"];
    assert_eq!(outcome(&x, |g, x| g.fft(x[0], Some(8), 0, FftNorm::Backward)), "c64[x: 8][y: 6]");
    assert_eq!(outcome(&x, |g, x| g.ifft(x[0], Some(3), 1, FftNorm::Backward)), "c64[x: 4][y: 3]");
    assert_eq!(
        outcome(&["f32[0][2]"], |g, x| g.fft(x[0], None, 1, FftNorm::Backward)),
        "c64[0][2]"
    );
    assert_eq!(
        outcome(&["f32[0][2]"], |g, x| g.ifft(x[0], None, 0, FftNorm::Backward)),
        "ifft: length: must be at least 1; got 0"
    );
    assert_eq!(
        outcome(&["f32"], |g, x| g.fft(x[0], None, -1, FftNorm::Backward)),
        "fft: axis: must be in range for f32; got -1"
    );
}

#[test]
fn real_fourier_transforms() {
    let x = ["f64[x: 2][y: 6]"];
    assert_eq!(outcome(&x, |g, x| g.rfft(x[0], None, -1, FftNorm::Backward)), "c128[x: 2][y: 4]");
    assert_eq!(outcome(&x, |g, x| g.rfft(x[0], Some(5), 0, FftNorm::Backward)), "c128[x: 3][y: 6]");
    assert_eq!(
        outcome(&["c64[2]"], |g, x| g.rfft(x[0], None, 0, FftNorm::Backward)),
        "rfft: operand: expected a real dtype; got c64"
    );
    assert_eq!(
        outcome(&["f32[2]"], |g, x| g.rfft(x[0], Some(0), 0, FftNorm::Backward)),
        "fft: length: must be at least 1; got 0"
    );
    for (length, points) in [(None, 4), (Some(5), 5), (Some(1), 1), (Some(2), 2), (Some(9), 9)] {
        let text = outcome(&["c64[3][x: 2]"], |g, x| g.irfft(x[0], length, 0, FftNorm::Backward));
        assert_eq!(text, format!("f32[{points}][x: 2]"));
    }
    assert_eq!(outcome(&["f32[4]"], |g, x| g.irfft(x[0], None, 0, FftNorm::Backward)), "f32[6]");
    assert_eq!(
        outcome(&["f32[1]"], |g, x| g.irfft(x[0], None, 0, FftNorm::Backward)),
        "irfft: operand: must have at least 2 elements along axis 0 without a length; got 1"
    );
}

fn solve(a: &str, b: &str, left_side: bool) -> String {
    let options = TriangularSolve { lower: true, left_side, transform: Transform::None };
    outcome(&[a, b], |g, x| g.triangular_solve(x[0], x[1], options))
}

#[test]
fn triangular_solves() {
    assert_eq!(solve("s32[x: 2][y: 2]", "s32[z: 2]", true), "f32[2]");
    assert_eq!(solve("f32[2][2]", "f64[2][3]", true), "f64[2][3]");
    assert_eq!(solve("f32[2][2]", "f32[3][2]", false), "f32[3][2]");
    assert_eq!(solve("f32[5][2][2]", "f32[5][2]", false), "f32[5][2]");
    assert_eq!(solve("f32[5][2][2]", "c64[5][2][0]", true), "c64[5][2][0]");
    assert_eq!(
        solve("f32[2][3]", "f32[2]", true),
        "triangular_solve: a: expected square matrices in the last two axes; got f32[2][3]"
    );
    assert_eq!(
        solve("f32[2][2]", "f32[3][2]", true),
        "triangular_solve: b: expected vectors or matrices that fit a x = b for \
         f32[2][2]; got [3][2]"
    );
    for b in ["f32[4][2][3]", "f32[2]", "f32[2][3]", "f32[1][5][2][3]", "f32"] {
        assert!(solve("f32[5][2][2]", b, true).starts_with("triangular_solve: b: expected"), "{b}");
    }
}

#[test]
fn cholesky_and_adjoint() {
    let cholesky = |x: &str| outcome(&[x], |g, x| g.cholesky(x[0]));
    assert_eq!(cholesky("s32[x: 2][y: 2]"), "f32[2][2]");
    assert_eq!(cholesky("c64[3][0][0]"), "c64[3][0][0]");
    assert_eq!(
        cholesky("f32[2]"),
        "cholesky: operand: expected square matrices in the last two axes; got f32[2]"
    );
    let adjoint = |x: &str| outcome(&[x], |g, x| g.adjoint(x[0]));
    assert_eq!(adjoint("f32[5][x: 2][y: 3]"), "f32[5][y: 3][x: 2]");
    assert_eq!(adjoint("c64[x: 2]"), "c64[x: 2]");
    assert_eq!(adjoint("s32"), "s32");
}

#[test]
fn norms() {
    let norm = |x: &str, norm, axes: Option<&[i64]>, keep| {
        outcome(&[x], |g, x| g.norm(x[0], norm, axes, keep))
    };
    for kind in
        [Norm::Euclid, Norm::Power(0.0), Norm::Power(-3.0), Norm::Power(2.5), Norm::Max, Norm::Min]
    {
        assert_eq!(norm("s32[3]", kind, None, false), "f32");
        assert_eq!(norm("c128[3]", kind, None, false), "f64");
        assert_eq!(norm("bf16[x: 2][y: 3]", kind, Some(&[-1]), true), "bf16[x: 2][y: 1]");
    }
    for kind in [
        Norm::Euclid,
        Norm::Frobenius,
        Norm::Power(1.0),
        Norm::Power(-1.0),
        Norm::Power(2.0),
        Norm::Nuclear,
        Norm::Max,
    ] {
        assert_eq!(norm("u8[2][3]", kind, None, false), "f32");
        assert_eq!(norm("f32[x: 2][3][y: 4]", kind, Some(&[2, 0]), false), "f32[3]");
    }
    assert_eq!(
        norm("f32[2][3]", Norm::Power(3.0), None, false),
        "norm: power: must be 1, -1, 2 or -2 for matrices; got 3"
    );
    for kind in [Norm::Frobenius, Norm::Nuclear] {
        assert_eq!(
            norm("f32[3]", kind, None, false),
            "norm: axes: must be two for the Frobenius and the nuclear norm; got 1"
        );
    }
    assert_eq!(
        norm("f32[2][3][4]", Norm::Max, None, false),
        "norm: axes: must be one or two; got 3 of f32[2][3][4]"
    );
    assert_eq!(
        norm("f32", Norm::Euclid, None, false),
        "norm: axes: must be one or two; got 0 of f32"
    );
}

#[test]
fn diagonals_accept_extreme_offsets() {
    for offset in [i64::MIN, i64::MAX] {
        assert_eq!(outcome(&["f32[2][3]"], |g, x| g.diagonal_or_none(x[0], offset)), "f32[0]");
        assert_eq!(outcome(&["f32[2][3]"], |g, x| g.triu(x[0], offset)), "f32[2][3]");
        assert_eq!(outcome(&["f32[2][3]"], |g, x| g.tril(x[0], offset)), "f32[2][3]");
    }
}
