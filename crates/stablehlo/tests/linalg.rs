//! Linear algebra and Fourier transforms.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod common;

use common::{body, module, ty};
use nxla_expr::{Transform, TriangularSolve};
use nxla_tensor::DType;

#[track_caller]
fn assert_has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}

#[test]
fn a_factor_is_lower_and_clean_above() {
    let text = body(&[ty(DType::F32, [2, 3, 3])], |g, p| Ok(vec![g.cholesky(p[0])?]));
    assert_has(&text, &["\"stablehlo.cholesky\"(", "lower = true", "-> tensor<2x3x3xf32>"]);
}

#[test]
fn a_triangular_system_says_which_side_and_how() {
    let inputs = [ty(DType::F64, [3, 3]), ty(DType::F64, [2, 3])];
    let options =
        TriangularSolve { lower: false, left_side: false, transform: Transform::Transpose };
    let text = body(&inputs, |g, p| Ok(vec![g.triangular_solve(p[0], p[1], options)?]));
    assert_has(
        &text,
        &[
            "\"stablehlo.triangular_solve\"(%0, %1)",
            "left_side = false",
            "lower = false",
            "unit_diagonal = false",
            "transpose_a = #stablehlo<transpose TRANSPOSE>",
        ],
    );
}

#[test]
fn transforms_are_complex_and_along_the_last_axis() {
    let text = body(&[ty(DType::C64, [4, 8])], |g, p| Ok(vec![g.fft(p[0], None, -1)?]));
    assert_has(
        &text,
        &["fft_type = #stablehlo<fft_type FFT>", "fft_length = array<i64: 8>", "complex<f32>"],
    );
    // Along another axis, which has to come last for the time being.
    let text = body(&[ty(DType::C128, [4, 8])], |g, p| Ok(vec![g.ifft(p[0], None, 0)?]));
    assert_eq!(text.matches("stablehlo.transpose").count(), 2, "{text}");
    assert_has(&text, &["fft_type IFFT", "fft_length = array<i64: 4>"]);
}

#[test]
fn factorizations_multiply_exactly_whatever_products_are_elsewhere() {
    let text = module(&[ty(DType::F32, [3, 3])], |g, p| {
        let (q, r) = g.qr(p[0], false)?;
        Ok(vec![g.dot(q, r)?])
    })
    .text;
    let (main, function) = text.split_once("func.func private").unwrap();
    assert_has(main, &["stablehlo.dot_general", "precision DEFAULT"]);
    assert_has(function, &["stablehlo.dot_general", "precision HIGHEST"]);
    assert!(!main.contains("HIGHEST") && !function.contains("DEFAULT"), "{text}");
}

#[test]
fn transforms_of_planes_are_one() {
    let of_plane = |dtype: DType, lengths: [Option<usize>; 2], axes: [i64; 2]| {
        body(&[ty(dtype, [2, 6, 8])], |g, p| {
            let lines = g.fft(p[0], lengths[0], axes[0])?;
            Ok(vec![g.fft(lines, lengths[1], axes[1])?])
        })
    };
    for axes in [[-1, -2], [-2, -1]] {
        let text = of_plane(DType::F64, [None; 2], axes);
        let plane = "fft_type = #stablehlo<fft_type FFT>, fft_length = array<i64: 6, 8>} : \
                     (tensor<2x6x8xcomplex<f64>>) -> tensor<2x6x8xcomplex<f64>>";
        assert_has(&text, &[plane]);
    }
    let text = body(&[ty(DType::C64, [2, 6, 8])], |g, p| {
        let planes = g.ifft(p[0], None, 2)?;
        let planes = g.ifft(planes, None, 1)?;
        Ok(vec![g.ifft(planes, None, 0)?])
    });
    assert_has(&text, &["fft_type IFFT", "fft_length = array<i64: 2, 6, 8>"]);
    // What is cut, not at the end, or wanted by itself is transformed by itself.
    for text in [
        of_plane(DType::C64, [None, Some(4)], [-1, -2]),
        of_plane(DType::C64, [None; 2], [0, 1]),
        of_plane(DType::C64, [None; 2], [-1, -1]),
    ] {
        assert!(!text.contains("array<i64: 6, 8>"), "{text}");
    }
    let text = body(&[ty(DType::C64, [6, 8])], |g, p| {
        let lines = g.fft(p[0], None, 1)?;
        Ok(vec![lines, g.fft(lines, None, 0)?])
    });
    assert!(!text.contains("array<i64: 6, 8>"), "{text}");
}
