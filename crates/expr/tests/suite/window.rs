//! Window functions: shapes, dtypes, padding and errors.

use std::sync::Arc;

use crate::common::outcome;
use nxla_expr::build::{Cumulative, WindowOptions, WindowPadding};
use nxla_expr::{Block, BlockKind, Graph, Op, TensorType};
use nxla_tensor::DType;

fn window_sums(input: &str, dimensions: &[usize], options: &WindowOptions) -> String {
    outcome(&[input], |g, x| g.window_sum(x[0], dimensions, options))
}

fn explicit_padding(padding: &[(i64, i64)]) -> WindowPadding {
    WindowPadding::Explicit(padding.to_vec())
}

#[test]
fn window_counts() {
    let valid = WindowOptions::default();
    assert_eq!(window_sums("f32[x: 6]", &[2], &valid), "f32[x: 5]");
    assert_eq!(window_sums("f32[6]", &[6], &valid), "f32[1]");
    assert_eq!(window_sums("f32[6]", &[7], &valid), "f32[0]");
    assert_eq!(window_sums("f32[0]", &[1], &valid), "f32[0]");
    assert_eq!(window_sums("f32", &[], &valid), "f32");
    let strided = WindowOptions { strides: Some(vec![2, 1]), ..valid.clone() };
    assert_eq!(window_sums("f32[5][4]", &[2, 3], &strided), "f32[2][2]");
    let dilated = WindowOptions { dilations: Some(vec![2]), ..valid.clone() };
    assert_eq!(window_sums("f32[6]", &[2], &dilated), "f32[4]");
    let padded = WindowOptions { padding: explicit_padding(&[(2, -1)]), ..valid };
    assert_eq!(window_sums("f32[6]", &[3], &padded), "f32[5]");
}

#[test]
fn same_padding_puts_the_odd_element_last() {
    let mut graph = Graph::new();
    let x = graph.parameter(0, TensorType::new(DType::F32, [3, 4]));
    let same = WindowOptions { padding: WindowPadding::Same, ..WindowOptions::default() };
    let strided = WindowOptions { strides: Some(vec![1, 2]), ..same.clone() };
    let sum = graph.window_sum(x, &[2, 2], &strided).unwrap();
    let Op::Window(_, window) = graph.op(sum) else { panic!("a window op") };
    assert_eq!(*window.padding, [(0, 1), (0, 1)]);
    assert_eq!(graph.shape(sum).as_slice(), [3, 2]);
    let dilated = WindowOptions { dilations: Some(vec![1, 2]), ..same };
    let sum = graph.window_sum(x, &[1, 3], &dilated).unwrap();
    let Op::Window(_, window) = graph.op(sum) else { panic!("a window op") };
    assert_eq!(*window.padding, [(0, 0), (2, 2)]);
    assert_eq!(graph.shape(sum).as_slice(), [3, 4]);
}

#[test]
fn dtypes_are_kept() {
    let options = WindowOptions::default();
    for dtype in DType::ALL {
        let input = format!("{dtype}[3]");
        let sum_dtype = if dtype.is_pred() { DType::U8 } else { dtype };
        assert_eq!(window_sums(&input, &[2], &options), format!("{sum_dtype}[2]"));
        let product = outcome(&[&input], |g, x| g.window_product(x[0], &[2], &options));
        assert_eq!(product, format!("{sum_dtype}[2]"));
        let max = outcome(&[&input], |g, x| g.window_max(x[0], &[2], &options));
        let complex_error = format!("window_max: operand: expected a real dtype; got {dtype}");
        assert_eq!(max, if dtype.is_complex() { complex_error } else { format!("{dtype}[2]") });
        let mean = outcome(&[&input], |g, x| g.window_mean(x[0], &[2], &options));
        assert_eq!(mean, format!("{}[2]", dtype.to_floating()));
    }
}

#[test]
fn option_lengths_are_checked() {
    let valid = WindowOptions::default();
    assert_eq!(
        window_sums("f32[2]", &[1, 1], &valid),
        "window_sum: dimensions: expected 1 entry for f32[2]; got 2"
    );
    assert_eq!(
        window_sums("f32[2]", &[0], &valid),
        "window_sum: dimensions: must be at least 1; got 0 for axis 0"
    );
    let strides = WindowOptions { strides: Some(vec![1, 0]), ..valid.clone() };
    assert_eq!(
        window_sums("f32[2][2]", &[1, 1], &strides),
        "window_sum: strides: must be at least 1; got 0 for axis 1"
    );
    assert_eq!(
        window_sums("f32[2]", &[1], &strides),
        "window_sum: strides: expected 1 entry for f32[2]; got 2"
    );
    let dilations = WindowOptions { dilations: Some(vec![0]), ..valid.clone() };
    assert_eq!(
        window_sums("f32[2]", &[1], &dilations),
        "window_sum: dilations: must be at least 1; got 0 for axis 0"
    );
    let too_large = WindowOptions { strides: Some(vec![1 << 63]), ..valid.clone() };
    assert_eq!(
        window_sums("f32[2]", &[1], &too_large),
        "window_sum: strides: must be less than 2^63; got 9223372036854775808 for axis 0"
    );
    let cancels =
        WindowOptions { padding: explicit_padding(&[(i64::MIN, i64::MAX)]), ..valid.clone() };
    assert_eq!(
        window_sums("f32[2]", &[1], &cancels),
        format!(
            "window_sum: padding: must be at most 2^60 in absolute value; got ({}, {})",
            i64::MIN,
            i64::MAX
        )
    );
    let padding = WindowOptions { padding: explicit_padding(&[(-2, -1)]), ..valid };
    assert_eq!(
        window_sums("f32[2]", &[1], &padding),
        "window_sum: padding: must leave a valid size; got (-2, -1) for axis 0 of f32[2]"
    );
    assert_eq!(
        outcome(&["f32[2]"], |g, x| g.window_mean(x[0], &[2, 2], &WindowOptions::default())),
        "window_sum: dimensions: expected 1 entry for f32[2]; got 2"
    );
}

#[test]
fn window_folds() {
    let fold = |x: &str, initial: &str| {
        outcome(&[x, initial], |g, x| {
            let options = WindowOptions::default();
            g.window_reduce(x[0], x[1], &[2], &options, |g, element, sum| g.add(element, sum))
        })
    };
    assert_eq!(fold("f32[x: 3]", "s32"), "f32[x: 2]");
    assert_eq!(fold("u8[3]", "u8"), "u8[2]");
    assert_eq!(
        fold("s32[3]", "f32"),
        "window_reduce: initial: must have a dtype that promotes to s32; got f32"
    );
    assert_eq!(fold("f32[3]", "f32[1]"), "window_reduce: initial: expected a scalar; got [1]");
}

#[test]
fn window_scatters() {
    let scatter = |x: &str, source: &str, initial: &str| {
        outcome(&[x, source, initial], |g, x| {
            let options = WindowOptions { strides: Some(vec![2]), ..WindowOptions::default() };
            g.window_scatter_max(x[0], x[1], x[2], &[2], &options)
        })
    };
    assert_eq!(scatter("s32[x: 4]", "f32[2]", "s32"), "f32[x: 4]");
    assert_eq!(scatter("f32[4]", "pred[2]", "pred"), "u8[4]");
    assert_eq!(
        scatter("f32[4]", "f32[3]", "f32"),
        "window_scatter_max: source: expected [2], one element for each window of \
         f32[4]; got [3]"
    );
    assert_eq!(
        scatter("c64[4]", "f32[2]", "f32"),
        "window_scatter_max: operand: expected a real dtype; got c64"
    );
    assert_eq!(
        scatter("f32[4]", "f32[2]", "f32[2]"),
        "window_scatter_max: initial: expected a scalar; got [2]"
    );
    assert_eq!(
        outcome(&["f32[4]", "f32[3]", "f32"], |g, x| {
            g.window_scatter_min(x[0], x[1], x[2], &[2], &WindowOptions::default())
        }),
        "f32[4]"
    );
}

#[test]
fn cumulative_functions_keep_shape_and_dtype() {
    for dtype in DType::ALL {
        let input = format!("{dtype}[x: 2][0]");
        let sum_dtype = if dtype.is_pred() { DType::U8 } else { dtype };
        let sum = outcome(&[&input], |g, x| g.cumulative(Cumulative::Sum, x[0], 0, true));
        assert_eq!(sum, format!("{sum_dtype}[x: 2][0]"));
        let max = outcome(&[&input], |g, x| g.cumulative(Cumulative::Max, x[0], 1, false));
        let complex_error = format!("cumulative_max: operand: expected a real dtype; got {dtype}");
        assert_eq!(
            max,
            if dtype.is_complex() { complex_error } else { format!("{sum_dtype}[x: 2][0]") }
        );
    }
    assert_eq!(
        outcome(&["f32[2]"], |g, x| g.cumulative(Cumulative::Min, x[0], -2, false)),
        "cumulative_min: axis: must be in range for f32[2]; got -2"
    );
}

#[test]
fn cumulative_bodies_take_logarithmically_many_steps() {
    let mut graph = Graph::new();
    let x = graph.parameter(0, TensorType::new(DType::F32, [9]));
    let sum = graph.cumulative(Cumulative::Sum, x, 0, false).unwrap();
    let Op::Block(block) = graph.op(sum) else { panic!("{:?}", graph.op(sum)) };
    assert_eq!(block.name(), "cumulative_sum");
    let body = block.body.graph();
    let steps = body.ids().filter(|&id| matches!(body.op(id), Op::Pad(_))).count();
    assert_eq!(steps, 4);
}

#[test]
fn blocks_of_another_kind_are_rejected() {
    let mut graph = Graph::new();
    let x = graph.parameter(0, TensorType::new(DType::F32, [9]));
    let sum = graph.cumulative(Cumulative::Sum, x, 0, false).unwrap();
    let Op::Block(block) = graph.op(sum).clone() else { panic!("{:?}", graph.op(sum)) };
    let kinds = [
        BlockKind::Cumulative { op: Cumulative::Sum, axis: 1, reverse: false },
        BlockKind::TopK { k: 3 },
    ];
    for kind in kinds {
        let block = Op::Block(Arc::new(Block { kind, ..(*block).clone() }));
        let error = graph.make(block, &[x]).unwrap_err().to_string();
        assert!(error.contains("with this configuration"), "{error}");
    }
}
