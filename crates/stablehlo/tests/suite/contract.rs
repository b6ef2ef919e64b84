//! Contractions, transforms and factorizations.

use crate::common::{assert_lines, body, lines, module, program, ty};
use nxla_expr::build::{ConvOptions, FftNorm, WindowPadding};
use nxla_expr::{Transform, TriangularSolve};
use nxla_stablehlo::{LowerOptions, Precision, lower};
use nxla_tensor::DType;

#[test]
fn dots() {
    let text = body(&[ty(DType::F32, [5, 2, 3]), ty(DType::F32, [5, 3, 4])], |g, p| {
        Ok(vec![g.dot_general(p[0], &[2], &[0], p[1], &[1], &[0])?])
    });
    assert_lines(
        &text,
        r#"
        %2 = "stablehlo.dot_general"(%0, %1) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<5x2x3xf32>, tensor<5x3x4xf32>) -> tensor<5x2x4xf32>
        "#,
    );
}

#[test]
fn narrow_products_are_summed_in_f32() {
    let text =
        body(&[ty(DType::F16, [3]), ty(DType::F16, [3])], |g, p| Ok(vec![g.dot(p[0], p[1])?]));
    assert!(text.contains("(tensor<3xf16>, tensor<3xf16>) -> tensor<f32>"), "{text}");
    assert!(text.contains("(tensor<f32>) -> tensor<f16>"), "{text}");
}

#[test]
fn precision_is_configurable() {
    let program =
        program(&[ty(DType::F32, [3]), ty(DType::F32, [3])], |g, p| Ok(vec![g.dot(p[0], p[1])?]));
    let options = LowerOptions { precision: Precision::Highest, ..LowerOptions::default() };
    let text = lower(&program, &options).unwrap().text;
    assert_eq!(text.matches("#stablehlo<precision HIGHEST>").count(), 2);
}

#[test]
fn convolutions() {
    let text = body(&[ty(DType::F32, [2, 5, 6, 4]), ty(DType::F32, [3, 2, 2, 3])], |g, p| {
        let options = ConvOptions {
            strides: Some(vec![2, 1]),
            padding: WindowPadding::Explicit(vec![(1, 0), (-1, 2)]),
            input_dilation: Some(vec![1, 2]),
            kernel_dilation: Some(vec![2, 1]),
            feature_groups: 2,
            input_permutation: Some(vec![0, 3, 1, 2]),
            kernel_permutation: Some(vec![3, 2, 0, 1]),
            output_permutation: Some(vec![0, 3, 1, 2]),
            ..ConvOptions::default()
        };
        // The kernel is [height][width][input channel][output channel].
        let kernel = g.concatenate(&[p[1], p[1]], 3)?;
        Ok(vec![g.conv(p[0], kernel, &options)?])
    });
    let line = text.lines().last().unwrap();
    for part in [
        "window_strides = array<i64: 2, 1>",
        "padding = dense<[[1, 0], [-1, 2]]> : tensor<2x2xi64>",
        "lhs_dilation = array<i64: 1, 2>",
        "rhs_dilation = array<i64: 2, 1>",
        "#stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>",
        "feature_group_count = 2 : i64, batch_group_count = 1 : i64",
    ] {
        assert!(line.contains(part), "{part}: {line}");
    }
}

#[test]
fn transforms_of_an_inner_axis() {
    let text = body(&[ty(DType::C64, [3, 2])], |g, p| {
        Ok(vec![g.ifft(p[0], Some(4), 0, FftNorm::Backward)?])
    });
    assert_lines(
        &text,
        r#"
        %1 = stablehlo.constant dense<(0.0, 0.0)> : tensor<complex<f32>>
        %2 = "stablehlo.pad"(%0, %1) {edge_padding_low = array<i64: 0, 0>, edge_padding_high = array<i64: 1, 0>, interior_padding = array<i64: 0, 0>} : (tensor<3x2xcomplex<f32>>, tensor<complex<f32>>) -> tensor<4x2xcomplex<f32>>
        %3 = "stablehlo.transpose"(%2) {permutation = array<i64: 1, 0>} : (tensor<4x2xcomplex<f32>>) -> tensor<2x4xcomplex<f32>>
        %4 = "stablehlo.fft"(%3) {fft_type = #stablehlo<fft_type IFFT>, fft_length = array<i64: 4>} : (tensor<2x4xcomplex<f32>>) -> tensor<2x4xcomplex<f32>>
        %5 = "stablehlo.transpose"(%4) {permutation = array<i64: 1, 0>} : (tensor<2x4xcomplex<f32>>) -> tensor<4x2xcomplex<f32>>
        "#,
    );
    let cut = body(&[ty(DType::C64, [8])], |g, p| {
        Ok(vec![g.fft(p[0], Some(5), 0, FftNorm::Backward)?])
    });
    assert!(cut.contains("limit_indices = array<i64: 5>"), "{cut}");
}

#[test]
fn real_transforms_compute_half_of_the_result() {
    let text =
        body(&[ty(DType::F32, [5])], |g, p| Ok(vec![g.fft(p[0], None, 0, FftNorm::Backward)?]));
    assert_lines(
        &text,
        r#"
        %1 = "stablehlo.fft"(%0) {fft_type = #stablehlo<fft_type RFFT>, fft_length = array<i64: 5>} : (tensor<5xf32>) -> tensor<3xcomplex<f32>>
        %2 = "stablehlo.slice"(%1) {start_indices = array<i64: 1>, limit_indices = array<i64: 3>, strides = array<i64: 1>} : (tensor<3xcomplex<f32>>) -> tensor<2xcomplex<f32>>
        %3 = "stablehlo.reverse"(%2) {dimensions = array<i64: 0>} : (tensor<2xcomplex<f32>>) -> tensor<2xcomplex<f32>>
        %4 = "stablehlo.real"(%3) : (tensor<2xcomplex<f32>>) -> tensor<2xf32>
        %5 = "stablehlo.imag"(%3) : (tensor<2xcomplex<f32>>) -> tensor<2xf32>
        %6 = stablehlo.negate %5 : tensor<2xf32>
        %7 = "stablehlo.complex"(%4, %6) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xcomplex<f32>>
        %8 = "stablehlo.concatenate"(%1, %7) {dimension = 0 : i64} : (tensor<3xcomplex<f32>>, tensor<2xcomplex<f32>>) -> tensor<5xcomplex<f32>>
        "#,
    );
    let inverse =
        body(&[ty(DType::F64, [4])], |g, p| Ok(vec![g.ifft(p[0], None, 0, FftNorm::Backward)?]));
    for part in ["RFFT", "dense<0.25> : tensor<3xf64>", "dense<-0.25> : tensor<3xf64>"] {
        assert!(inverse.contains(part), "{part}: {inverse}");
    }
}

fn solve(left_side: bool, transform: Transform) -> TriangularSolve {
    TriangularSolve { lower: true, left_side, transform }
}

#[test]
fn vectors_are_solved_as_matrices() {
    let inputs = [ty(DType::F32, [2, 3, 3]), ty(DType::F32, [2, 3])];
    let column = body(&inputs, |g, p| {
        Ok(vec![g.triangular_solve(p[0], p[1], solve(true, Transform::Transpose))?])
    });
    assert_lines(
        &column,
        r#"
        %2 = "stablehlo.reshape"(%1) : (tensor<2x3xf32>) -> tensor<2x3x1xf32>
        %3 = "stablehlo.triangular_solve"(%0, %2) {left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose TRANSPOSE>} : (tensor<2x3x3xf32>, tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
        %4 = "stablehlo.reshape"(%3) : (tensor<2x3x1xf32>) -> tensor<2x3xf32>
        "#,
    );
    let row = body(&inputs, |g, p| {
        Ok(vec![g.triangular_solve(p[0], p[1], solve(false, Transform::None))?])
    });
    assert!(row.contains("tensor<2x1x3xf32>") && row.contains("NO_TRANSPOSE"), "{row}");
}

#[test]
fn a_conjugated_matrix_is_not_transposed() {
    let inputs = [ty(DType::C64, [2, 2]), ty(DType::C64, [2])];
    let text = body(&inputs, |g, p| {
        Ok(vec![g.triangular_solve(p[0], p[1], solve(true, Transform::Conjugate))?])
    });
    assert!(text.contains("stablehlo.complex") && text.contains("NO_TRANSPOSE"), "{text}");
}

#[test]
fn narrow_matrices_are_factored_in_f32() {
    let program = program(&[ty(DType::BF16, [2, 2])], |g, p| Ok(vec![g.cholesky(p[0])?]));
    let text = lines(&lower(&program, &LowerOptions::default()).unwrap().text);
    assert!(text.contains("{lower = true} : (tensor<2x2xf32>) -> tensor<2x2xf32>"), "{text}");
    assert!(text.lines().last().unwrap().ends_with("-> tensor<2x2xbf16>"), "{text}");
    // The result for a matrix that is not positive definite is NaN.
    assert!(text.contains("dense<0x7FC00000> : tensor<2x2xf32>"), "{text}");
}

#[test]
fn factorizations_use_highest_precision() {
    let text = module(&[ty(DType::F32, [3, 3])], |g, p| {
        let (q, r) = g.qr(p[0], false)?;
        Ok(vec![g.dot(q, r)?])
    })
    .text;
    let (main, function) = text.split_once("func.func private").unwrap();
    assert!(main.contains("stablehlo.dot_general") && main.contains("precision DEFAULT"), "{text}");
    assert!(function.contains("precision HIGHEST"), "{text}");
    assert!(!main.contains("HIGHEST") && !function.contains("DEFAULT"), "{text}");
}
