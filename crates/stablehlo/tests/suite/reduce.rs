//! Reductions, windows and folds.

use crate::common::{assert_lines, body, scalar, ty};
use nxla_expr::build::{WindowOptions, WindowPadding};
use nxla_expr::{Graph, ReduceOp};
use nxla_tensor::DType;

#[test]
fn narrow_floats_are_summed_in_f32() {
    assert_lines(
        &body(&[ty(DType::BF16, [2, 3])], |g, p| Ok(vec![g.sum(p[0], Some(&[1]), true)?])),
        r#"
        %1 = "stablehlo.convert"(%0) : (tensor<2x3xbf16>) -> tensor<2x3xf32>
        %2 = stablehlo.constant dense<0.0> : tensor<f32>
        %3 = "stablehlo.reduce"(%1, %2) ({
        ^bb0(%4: tensor<f32>, %5: tensor<f32>):
        %6 = stablehlo.add %4, %5 : tensor<f32>
        stablehlo.return %6 : tensor<f32>
        }) {dimensions = array<i64: 1>} : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
        %7 = "stablehlo.reshape"(%3) : (tensor<2xf32>) -> tensor<2x1xf32>
        %8 = "stablehlo.convert"(%7) : (tensor<2x1xf32>) -> tensor<2x1xbf16>
        "#,
    );
}

#[test]
fn neutral_elements() {
    let neutral = |op, dtype| {
        let text = body(&[ty(dtype, [3])], |g, p| Ok(vec![g.reduction(op, p[0], None, false)?]));
        let line = text.lines().find(|line| line.contains("constant")).expect("an initial value");
        line.split("dense<").nth(1).unwrap().split('>').next().unwrap().to_owned()
    };
    assert_eq!(neutral(ReduceOp::Sum, DType::U64), "0");
    assert_eq!(neutral(ReduceOp::Product, DType::C64), "(1.0, 0.0)");
    assert_eq!(neutral(ReduceOp::All, DType::F32), "true");
    assert_eq!(neutral(ReduceOp::Any, DType::F32), "false");
    assert_eq!(neutral(ReduceOp::Max, DType::F32), "0xFF800000");
    assert_eq!(neutral(ReduceOp::Min, DType::F16), "0x7C00");
    assert_eq!(neutral(ReduceOp::Max, DType::F8E4M3FN), "-448.0");
    assert_eq!(neutral(ReduceOp::Max, DType::S4), "-8");
    assert_eq!(neutral(ReduceOp::Min, DType::U2), "3");
    assert_eq!(neutral(ReduceOp::Max, DType::Pred), "false");
}

#[test]
fn argmax_and_argmin() {
    let text = body(&[ty(DType::S32, [2, 3])], |g, p| {
        Ok(vec![g.argmin(p[0], Some(1), false, true, DType::S64)?])
    });
    assert_lines(
        &text,
        r#"
        %1 = "stablehlo.iota"() {iota_dimension = 1 : i64} : () -> tensor<2x3xi32>
        %2 = stablehlo.constant dense<2147483647> : tensor<i32>
        %3 = stablehlo.constant dense<-1> : tensor<i32>
        %4:2 = "stablehlo.reduce"(%0, %1, %2, %3) ({
        ^bb0(%5: tensor<i32>, %6: tensor<i32>, %7: tensor<i32>, %8: tensor<i32>):
        %9 = "stablehlo.compare"(%5, %7) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %10 = "stablehlo.compare"(%5, %7) {comparison_direction = #stablehlo<comparison_direction EQ>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %11 = "stablehlo.compare"(%6, %8) {comparison_direction = #stablehlo<comparison_direction GT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %12 = "stablehlo.select"(%10, %11, %9) : (tensor<i1>, tensor<i1>, tensor<i1>) -> tensor<i1>
        %13 = "stablehlo.select"(%12, %5, %7) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
        %14 = "stablehlo.select"(%12, %6, %8) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
        stablehlo.return %13, %14 : tensor<i32>, tensor<i32>
        }) {dimensions = array<i64: 1>} : (tensor<2x3xi32>, tensor<2x3xi32>, tensor<i32>, tensor<i32>) -> (tensor<2xi32>, tensor<2xi32>)
        %15 = "stablehlo.convert"(%4#1) : (tensor<2xi32>) -> tensor<2xi64>
        "#,
    );
}

/// The initial value is an element, and the outer scalar is carried along.
#[test]
fn scalar_folds_are_reductions() {
    let text = body(&[ty(DType::S32, [2, 3]), scalar(DType::S32), scalar(DType::S32)], |g, p| {
        let folded = g.reduce_fun(p[0], p[1], Some(&[0]), false, |g, element, accumulator| {
            let sum = g.add(element, accumulator)?;
            g.max(sum, p[2])
        })?;
        Ok(vec![folded])
    });
    assert_lines(
        &text,
        r#"
        %3 = "stablehlo.broadcast_in_dim"(%1) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> tensor<1x3xi32>
        %4 = "stablehlo.concatenate"(%3, %0) {dimension = 0 : i64} : (tensor<1x3xi32>, tensor<2x3xi32>) -> tensor<3x3xi32>
        %5 = stablehlo.constant dense<true> : tensor<3x3xi1>
        %6 = stablehlo.constant dense<false> : tensor<i1>
        %7 = "stablehlo.broadcast_in_dim"(%2) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> tensor<3x3xi32>
        %8:3 = "stablehlo.reduce"(%5, %4, %7, %6, %1, %2) ({
        ^bb0(%9: tensor<i1>, %10: tensor<i32>, %11: tensor<i32>, %12: tensor<i1>, %13: tensor<i32>, %14: tensor<i32>):
        %15 = stablehlo.add %13, %10 : tensor<i32>
        %16 = stablehlo.maximum %15, %11 : tensor<i32>
        %17 = stablehlo.and %9, %12 : tensor<i1>
        %18 = stablehlo.or %9, %12 : tensor<i1>
        %19 = "stablehlo.select"(%9, %10, %13) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
        %20 = "stablehlo.select"(%17, %16, %19) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
        stablehlo.return %18, %20, %11 : tensor<i1>, tensor<i32>, tensor<i32>
        }) {dimensions = array<i64: 0>} : (tensor<3x3xi1>, tensor<3x3xi32>, tensor<3x3xi32>, tensor<i1>, tensor<i32>, tensor<i32>) -> (tensor<3xi1>, tensor<3xi32>, tensor<3xi32>)
        "#,
    );
}

#[test]
fn folds_with_captures_are_loops() {
    let inputs = [ty(DType::S32, [4]), scalar(DType::S32), ty(DType::S32, [8])];
    let text = body(&inputs, |g, p| {
        let folded = g.reduce_fun(p[0], p[1], None, false, |g, element, accumulator| {
            let found = g.slice_along_axis(p[2], element, 1, 0, 1)?;
            let found = g.reshape(found, [0_usize; 0])?;
            g.add(accumulator, found)
        })?;
        Ok(vec![folded])
    });
    assert!(text.contains("stablehlo.while") && !text.contains("stablehlo.reduce"), "{text}");
}

fn options(strides: &[usize], padding: &[(i64, i64)], dilations: &[usize]) -> WindowOptions {
    WindowOptions {
        strides: Some(strides.to_vec()),
        padding: WindowPadding::Explicit(padding.to_vec()),
        dilations: Some(dilations.to_vec()),
    }
}

#[test]
fn windows() {
    let text = body(&[ty(DType::F32, [6, 4])], |g, p| {
        let options = options(&[2, 1], &[(0, 1), (1, 0)], &[1, 3]);
        Ok(vec![g.window_max(p[0], &[3, 2], &options)?])
    });
    assert_lines(
        &text,
        r#"
        %1 = stablehlo.constant dense<0xFF800000> : tensor<f32>
        %2 = "stablehlo.reduce_window"(%0, %1) ({
        ^bb0(%3: tensor<f32>, %4: tensor<f32>):
        %5 = stablehlo.maximum %3, %4 : tensor<f32>
        stablehlo.return %5 : tensor<f32>
        }) {window_dimensions = array<i64: 3, 2>, window_strides = array<i64: 2, 1>, window_dilations = array<i64: 1, 3>, padding = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>} : (tensor<6x4xf32>, tensor<f32>) -> tensor<3x2xf32>
        "#,
    );
    let text = body(&[ty(DType::S8, [5])], |g, p| {
        Ok(vec![g.window_min(p[0], &[2], &WindowOptions::default())?])
    });
    assert!(
        text.contains("dense<127> : tensor<i8>") && text.contains("stablehlo.minimum"),
        "{text}"
    );
}

#[test]
fn window_folds_pad_their_operand() {
    let text = body(&[ty(DType::F32, [6]), scalar(DType::F32)], |g, p| {
        let options = options(&[1], &[(2, 0)], &[1]);
        let fold = |g: &mut Graph, element, accumulator| g.multiply(element, accumulator);
        Ok(vec![g.window_reduce(p[0], p[1], &[3], &options, fold)?])
    });
    assert!(text.contains("\"stablehlo.pad\"(%0, %1)"), "{text}");
    assert!(text.contains("padding = dense<[[0, 0]]>"), "{text}");
}

#[test]
fn window_scatters_compute_indices_of_extrema() {
    // The windows overlap and have gaps.
    let inputs = [ty(DType::S32, [6]), ty(DType::F16, [4]), scalar(DType::F16)];
    let text = body(&inputs, |g, p| {
        let options = options(&[1], &[(0, 0)], &[2]);
        Ok(vec![g.window_scatter_max(p[0], p[1], p[2], &[2], &options)?])
    });
    // Elements are compared in their own dtype, and summed in the dtype of the accumulator.
    for part in [
        "\"stablehlo.iota\"() {iota_dimension = 0 : i64} : () -> tensor<6xi32>",
        "window_dilations = array<i64: 2>",
        "-> (tensor<4xi32>, tensor<4xi32>)",
        "\"stablehlo.scatter\"",
        "(tensor<6xf32>, tensor<4x1xi32>, tensor<4xf32>) -> tensor<6xf32>",
        "(tensor<6xf32>) -> tensor<6xf16>",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}
