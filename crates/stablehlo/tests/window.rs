//! Sliding windows.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod common;

use common::{LIMITS, body, lines, program, ty};
use nxla_expr::build::{WindowOptions, WindowPadding};
use nxla_stablehlo::{LowerOptions, lower};
use nxla_tensor::DType;

/// The parts of a text that name an attribute.
#[track_caller]
fn assert_has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}

#[test]
fn a_window_sum_is_a_reduce_window() {
    let options = WindowOptions {
        strides: Some(vec![1, 2]),
        padding: WindowPadding::Explicit(vec![(0, 0), (1, 2)]),
        dilations: Some(vec![1, 3]),
    };
    let text =
        body(&[ty(DType::F32, [4, 9])], |g, p| Ok(vec![g.window_sum(p[0], &[1, 2], &options)?]));
    assert_has(
        &text,
        &[
            "stablehlo.constant dense<0.0> : tensor<f32>",
            "\"stablehlo.reduce_window\"(%0, ",
            "window_dimensions = array<i64: 1, 2>",
            "window_strides = array<i64: 1, 2>",
            "window_dilations = array<i64: 1, 3>",
            "padding = dense<[[0, 0], [1, 2]]> : tensor<2x2xi64>",
            "stablehlo.add %",
            "-> tensor<4x5xf32>",
        ],
    );
}

#[test]
fn extremes_begin_with_the_other_end_of_the_dtype() {
    let options = WindowOptions::default();
    let text = body(&[ty(DType::S8, [5])], |g, p| Ok(vec![g.window_max(p[0], &[2], &options)?]));
    assert_has(&text, &["dense<-128> : tensor<i8>", "stablehlo.maximum", "tensor<4xi8>"]);
    let text = body(&[ty(DType::F64, [5])], |g, p| Ok(vec![g.window_min(p[0], &[2], &options)?]));
    assert_has(&text, &["stablehlo.minimum", "tensor<4xf64>"]);
}

#[test]
fn a_fold_of_ones_own_becomes_the_region() {
    let options = WindowOptions::default();
    let inputs = [ty(DType::F32, [5]), ty(DType::F32, [])];
    let text = body(&inputs, |g, p| {
        let fold = |g: &mut nxla_expr::Graph, x, acc| {
            let square = g.multiply(x, x)?;
            g.add(square, acc)
        };
        Ok(vec![g.window_reduce(p[0], p[1], &[3], &options, fold)?])
    });
    assert_has(&text, &["(%0, %1)", "stablehlo.multiply", "stablehlo.return", "tensor<3xf32>"]);
}

#[test]
fn windows_that_overlap_are_reduced_to_positions() {
    let inputs = [ty(DType::F32, [7]), ty(DType::F32, [3]), ty(DType::F32, [])];
    let scattered = |strides: usize, size: usize, padding: (i64, i64)| {
        let padding = WindowPadding::Explicit(vec![padding]);
        let options =
            WindowOptions { strides: Some(vec![strides]), padding, ..WindowOptions::default() };
        let program = program(&inputs, |g, p| {
            Ok(vec![g.window_scatter_max(p[0], p[1], p[2], &[size], &options)?])
        });
        let options = LowerOptions { shape_limits: Some(LIMITS), ..LowerOptions::default() };
        lines(&lower(&program, &options).unwrap().text)
    };
    for (strides, size, padding) in [(2, 3, (0, 0)), (3, 3, (1, 1))] {
        assert_has(
            &scattered(strides, size, padding),
            &[
                "\"stablehlo.reduce_window\"(%0, ",
                "comparison_direction GT",
                "\"stablehlo.scatter\"",
                "-> tensor<7xf32>",
            ],
        );
    }
    // Windows that have nothing in common need no operation of their own.
    let text = scattered(2, 2, (0, 0));
    assert!(!text.contains("stablehlo.scatter"), "{text}");
    assert_has(
        &text,
        &[
            "start_indices = array<i64: 1>, limit_indices = array<i64: 6>, strides = array<i64: 2>",
            "comparison_direction GT",
            "edge_padding_low = array<i64: 1>, edge_padding_high = array<i64: 1>, \
             interior_padding = array<i64: 1>",
            "-> tensor<7xf32>",
        ],
    );
}
