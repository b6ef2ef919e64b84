//! Dot products and convolutions: shapes, dtypes, names and errors.

use crate::common::outcome;
use nxla_expr::build::{ConvOptions, WindowPadding};
use nxla_expr::{Graph, Op, TensorType};
use nxla_tensor::DType;

fn dot(x: &str, y: &str) -> String {
    outcome(&[x, y], |g, x| g.dot(x[0], x[1]))
}

#[test]
fn dot_contracts_last_with_second_to_last_axis() {
    assert_eq!(dot("f32", "s32[3]"), "f32[3]");
    assert_eq!(dot("f32[3]", "f32[3]"), "f32");
    assert_eq!(dot("f32[2][3]", "f32[3]"), "f32[2]");
    assert_eq!(dot("f32[3]", "f32[5][3][4]"), "f32[5][4]");
    assert_eq!(dot("f32[2][3]", "f32[5][3][4]"), "f32[2][5][4]");
    assert_eq!(dot("f32[2][0]", "f32[0][4]"), "f32[2][4]");
    assert_eq!(
        dot("f32[2][3]", "f32[2][3]"),
        "dot: axis 1 of left and axis 0 of right: must have equal sizes; got 3 and 2 \
         (left is f32[2][3], right is f32[2][3])"
    );
}

#[test]
fn dot_promotes() {
    assert_eq!(dot("pred[3]", "pred[3]"), "u8");
    assert_eq!(dot("u8[3]", "s8[3]"), "s16");
    assert_eq!(dot("s64[3]", "bf16[3]"), "bf16");
    assert_eq!(dot("f64[3]", "c64[3]"), "c128");
}

#[test]
fn dot_names() {
    assert_eq!(dot("s32[x: 1][y: 2]", "s32[h: 2][k: 1]"), "s32[x: 1][k: 1]");
    assert_eq!(dot("s32[x: 2]", "s32[x: 2]"), "s32");
    let batched = |x: &str, y: &str| {
        outcome(&[x, y], |g, x| g.dot_general(x[0], &[2], &[0], x[1], &[1], &[0]))
    };
    assert_eq!(batched("f32[b: 2][x: 3][y: 4]", "f32[2][4][z: 5]"), "f32[b: 2][x: 3][z: 5]");
    let conflict = batched("f32[b: 2][x: 3][y: 4]", "f32[b: 2][w: 4][x: 5]");
    assert!(conflict.contains("duplicate names [b, x, x]"), "{conflict}");
    let conflict = batched("f32[b: 2][3][4]", "f32[c: 2][4][5]");
    assert!(conflict.contains("cannot merge name b"), "{conflict}");
}

#[test]
fn dot_axes_are_checked() {
    let general = |contract: &[i64], batch: &[i64], y_contract: &[i64], y_batch: &[i64]| {
        outcome(&["f32[2][3][4]", "f32[2][4][5]"], |g, x| {
            g.dot_general(x[0], contract, batch, x[1], y_contract, y_batch)
        })
    };
    assert_eq!(general(&[2], &[0], &[1], &[0]), "f32[2][3][5]");
    assert_eq!(general(&[0, 2], &[], &[0, 1], &[]), "f32[3][5]");
    assert_eq!(general(&[], &[], &[], &[]), "f32[2][3][4][2][4][5]");
    assert_eq!(
        general(&[2], &[0], &[1], &[]),
        "dot: left_batch: must have 0 axes, the number for the other operand; got [0]"
    );
    assert_eq!(
        general(&[2], &[], &[1, 0], &[]),
        "dot: left_contract: must have 2 axes, the number for the other operand; got [2]"
    );
    assert_eq!(
        general(&[2], &[1], &[1], &[1]),
        "dot: left_batch: must be 0, 1, … in order; got [1]"
    );
    assert_eq!(
        general(&[0], &[0], &[1], &[0]),
        "dot: left_contract: must differ from the batch axes; got 0"
    );
    assert_eq!(
        general(&[3], &[], &[1], &[]),
        "dot: axis: must be in range for f32[2][3][4]; got 3"
    );
    assert_eq!(
        general(&[1], &[0], &[1], &[0]),
        "dot: axis 1 of left and axis 1 of right: must have equal sizes; got 3 and 4 \
         (left is f32[2][3][4], right is f32[2][4][5])"
    );
}

fn matmul(x: &str, y: &str) -> String {
    outcome(&[x, y], |g, x| g.matmul(x[0], x[1]))
}

#[test]
fn matmul_broadcasts_batches() {
    assert_eq!(matmul("f32[3]", "f32[3]"), "f32");
    assert_eq!(matmul("f32[3]", "f32[5][3][4]"), "f32[5][4]");
    assert_eq!(matmul("f32[5][2][3]", "f32[3]"), "f32[5][2]");
    assert_eq!(matmul("f32[5][2][3]", "f32[3][4]"), "f32[5][2][4]");
    assert_eq!(matmul("f32[2][3]", "f32[5][3][4]"), "f32[5][2][4]");
    assert_eq!(matmul("f32[6][5][2][3]", "f32[5][3][4]"), "f32[6][5][2][4]");
    assert_eq!(matmul("f32[6][5][2][3]", "f32[6][1][3][4]"), "f32[6][5][2][4]");
    assert_eq!(matmul("f32[6][1][2][3]", "f32[1][3][4]"), "f32[6][1][2][4]");
    assert_eq!(matmul("f32[6][1][2][3]", "f32[5][3][4]"), "f32[6][5][2][4]");
    assert_eq!(matmul("f32[0][2][3]", "f32[1][3][4]"), "f32[0][2][4]");
    assert_eq!(matmul("f32", "f32[3]"), "matmul: left: expected at least one axis; got a scalar");
    let conflict = matmul("f32[5][2][3]", "f32[6][3][4]");
    assert!(conflict.starts_with("matmul: "), "{conflict}");
}

#[test]
fn matmul_keeps_names() {
    assert_eq!(matmul("f32[b: 5][t: 2][c: 3]", "f32[c: 3][d: 4]"), "f32[b: 5][t: 2][d: 4]");
    assert_eq!(matmul("f32[b: 5][t: 2][c: 3]", "f32[5][c: 3][d: 4]"), "f32[b: 5][t: 2][d: 4]");
}

/// Returns the names of the ops of a product of two parameters, without the parameters.
fn matmul_ops(x: &[usize], y: &[usize]) -> Vec<&'static str> {
    let mut graph = Graph::new();
    let x = graph.parameter(0, TensorType::new(DType::F32, x));
    let y = graph.parameter(1, TensorType::new(DType::F32, y));
    graph.matmul(x, y).unwrap();
    graph.ids().skip(2).map(|id| graph.op(id).name()).collect()
}

#[test]
fn matmul_does_not_broadcast_shared_operands() {
    assert_eq!(matmul_ops(&[8, 64, 384], &[384, 384]), ["dot"]);
    assert_eq!(matmul_ops(&[2, 3, 4, 5], &[5]), ["dot"]);
    assert_eq!(matmul_ops(&[5], &[2, 3, 5, 4]), ["dot"]);
    assert_eq!(matmul_ops(&[8, 64, 384], &[1, 384, 384]), ["squeeze", "dot"]);
    assert_eq!(matmul_ops(&[8, 2, 4, 5], &[8, 1, 5, 6]), ["squeeze", "dot"]);
    assert_eq!(matmul_ops(&[8, 2, 4, 5], &[8, 2, 5, 6]), ["dot"]);
    // The batch axes that only one operand has are not adjacent to its rows.
    assert_eq!(matmul_ops(&[8, 2, 4, 5], &[2, 5, 6]), ["broadcast", "dot"]);
    assert_eq!(matmul_ops(&[4, 5], &[2, 5, 6]), ["broadcast", "dot"]);
}

#[test]
fn outer_flattens_and_conjugates() {
    let outer = |x: &str, y: &str| outcome(&[x, y], |g, x| g.outer(x[0], x[1]));
    assert_eq!(outer("s32[2][3]", "f32[2]"), "f32[6][2]");
    assert_eq!(outer("s32[3]", "s32"), "s32[3][1]");
    assert_eq!(outer("f32[x: 2]", "s32[x: 4]"), "f32[x: 2][x: 4]");
    let mut graph = Graph::new();
    let x = graph.parameter(0, TensorType::new(DType::C64, [2]));
    graph.outer(x, x).unwrap();
    let conjugates = graph.ids().filter(|&id| graph.op(id).name() == "conjugate").count();
    assert_eq!(conjugates, 1);
}

fn conv(input: &str, kernel: &str, options: &ConvOptions) -> String {
    outcome(&[input, kernel], |g, x| g.conv(x[0], x[1], options))
}

#[test]
fn conv_sizes() {
    let plain = ConvOptions::default();
    assert_eq!(conv("s32[2][3][8][9]", "s32[4][3][2][3]", &plain), "f32[2][4][7][7]");
    assert_eq!(conv("f32[1][1][2]", "f32[1][1][3]", &plain), "f32[1][1][0]");
    assert_eq!(conv("bf16[0][1][3]", "f32[0][1][3]", &plain), "f32[0][0][1]");
    assert_eq!(conv("c64[1][1][4]", "f32[1][1][2]", &plain), "c64[1][1][3]");
    let same = ConvOptions { padding: WindowPadding::Same, ..plain.clone() };
    assert_eq!(conv("f32[1][1][6]", "f32[1][1][3]", &same), "f32[1][1][6]");
    let strided = ConvOptions { strides: Some(vec![2, 2]), ..same.clone() };
    assert_eq!(conv("f32[1][1][3][3]", "f32[1][1][2][2]", &strided), "f32[1][1][2][2]");
    let input_dilated = ConvOptions { input_dilation: Some(vec![2, 2]), ..same.clone() };
    assert_eq!(conv("f32[1][1][3][3]", "f32[1][1][2][2]", &input_dilated), "f32[1][1][5][5]");
    let kernel_dilated = ConvOptions { kernel_dilation: Some(vec![2, 2]), ..same };
    assert_eq!(conv("f32[1][1][3][3]", "f32[1][1][2][2]", &kernel_dilated), "f32[1][1][3][3]");
    let trimmed = ConvOptions { padding: WindowPadding::Explicit(vec![(-1, 3)]), ..plain };
    assert_eq!(conv("f32[1][1][4]", "f32[1][1][2]", &trimmed), "f32[1][1][5]");
}

#[test]
fn conv_layouts_and_names() {
    let last = |permutation: &[i64]| Some(permutation.to_vec());
    let options = ConvOptions {
        input_permutation: last(&[0, 3, 1, 2]),
        kernel_permutation: last(&[-1, 2, 0, 1]),
        output_permutation: last(&[0, 3, 1, 2]),
        ..ConvOptions::default()
    };
    assert_eq!(
        conv("f32[b: 2][h: 8][w: 9][c: 3]", "f32[2][3][3][4]", &options),
        "f32[b: 2][h: 7][w: 7][c: 4]"
    );
    let first = ConvOptions { output_permutation: None, ..options };
    assert_eq!(
        conv("f32[b: 2][h: 8][w: 9][c: 3]", "f32[2][3][3][4]", &first),
        "f32[b: 2][c: 4][h: 7][w: 7]"
    );
}

#[test]
fn conv_groups() {
    let features = |groups| ConvOptions { feature_groups: groups, ..ConvOptions::default() };
    assert_eq!(conv("f32[1][4][3]", "f32[6][2][2]", &features(2)), "f32[1][6][2]");
    assert_eq!(
        conv("f32[1][4][3]", "f32[3][2][2]", &features(2)),
        "conv: feature_groups: must divide 4 input channels and 3 output channels; got 2"
    );
    assert_eq!(
        conv("f32[1][4][3]", "f32[4][4][2]", &features(2)),
        "conv: kernel: must have 4 / 2 input channels (channels of the input / feature groups); got 4"
    );
    let batches = |groups| ConvOptions { batch_groups: groups, ..ConvOptions::default() };
    assert_eq!(conv("f32[4][2][3]", "f32[6][2][2]", &batches(2)), "f32[2][6][2]");
    assert_eq!(
        conv("f32[3][2][3]", "f32[6][2][2]", &batches(2)),
        "conv: batch_groups: must divide a batch of 3 and 6 output channels; got 2"
    );
    assert_eq!(
        conv("f32[1][1][3]", "f32[1][1][2]", &batches(0)),
        "conv: groups: must be at least 1; got 0"
    );
    let both = ConvOptions { feature_groups: 2, batch_groups: 2, ..ConvOptions::default() };
    assert_eq!(
        conv("f32[2][2][3]", "f32[2][1][2]", &both),
        "conv: groups: at most one number of groups can exceed 1; got 2 feature groups and 2 batch groups"
    );
}

#[test]
fn conv_arguments_are_checked() {
    let plain = ConvOptions::default();
    assert_eq!(
        conv("f32[1][3]", "f32[1][1][3]", &plain),
        "conv: input: must have batch, channel and spatial axes; got f32[1][3]"
    );
    assert_eq!(
        conv("f32[1][1][3]", "f32[2]", &plain),
        "conv: kernel: must have batch, channel and spatial axes; got f32[2]"
    );
    assert_eq!(
        conv("f32[1][1][3][3]", "f32[1][1][3]", &plain),
        "conv: kernel: must have the rank of the input f32[1][1][3][3]; got f32[1][1][3]"
    );
    assert_eq!(
        conv("f32[1][1][3]", "f32[1][1][0]", &plain),
        "conv: kernel: must not be empty; got size 0 for spatial axis 0"
    );
    let strides = ConvOptions { strides: Some(vec![1, 1]), ..plain.clone() };
    assert_eq!(
        conv("f32[1][1][3]", "f32[1][1][2]", &strides),
        "conv: strides: must have one entry for each of the 1 spatial axes of f32[1][1][3]; got 2"
    );
    let dilation = ConvOptions { kernel_dilation: Some(vec![0]), ..plain.clone() };
    assert_eq!(
        conv("f32[1][1][3]", "f32[1][1][2]", &dilation),
        "conv: kernel_dilation: must be at least 1; got 0 for axis 0"
    );
    for (argument, options) in [
        ("strides", ConvOptions { strides: Some(vec![1 << 63]), ..plain.clone() }),
        ("input_dilation", ConvOptions { input_dilation: Some(vec![1 << 63]), ..plain.clone() }),
        ("kernel_dilation", ConvOptions { kernel_dilation: Some(vec![1 << 63]), ..plain.clone() }),
    ] {
        assert_eq!(
            conv("f32[1][1][1]", "f32[1][1][1]", &options),
            format!("conv: {argument}: must be less than 2^63; got 9223372036854775808 for axis 0")
        );
    }
    let short = ConvOptions { input_permutation: Some(vec![0, 1]), ..plain.clone() };
    assert_eq!(
        conv("f32[1][1][3]", "f32[1][1][2]", &short),
        "conv: input_permutation: expected 3 entries for f32[1][1][3]; got 2"
    );
    let repeated = ConvOptions { output_permutation: Some(vec![0, 1, 1]), ..plain };
    assert_eq!(
        conv("f32[1][1][3]", "f32[1][1][2]", &repeated),
        "conv: output_permutation: axes must be distinct; got axis 1 twice in [0, 1, 1]"
    );
}

#[test]
fn same_padding_of_conv_is_explicit_in_the_node() {
    let mut graph = Graph::new();
    let input = graph.parameter(0, TensorType::new(DType::F32, [1, 1, 6]));
    let kernel = graph.parameter(1, TensorType::new(DType::F32, [1, 1, 4]));
    let options = ConvOptions { padding: WindowPadding::Same, ..ConvOptions::default() };
    let result = graph.conv(input, kernel, &options).unwrap();
    let Op::Conv(conv) = graph.op(result) else { panic!("a convolution") };
    assert_eq!(*conv.padding, [(1, 2)]);
    assert_eq!(*conv.input_permutation, [0, 1, 2]);
}
