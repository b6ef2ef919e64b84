//! Movement ops: shapes, dtypes, names, removed nodes and errors.

use crate::common::outcome;
use nxla_expr::{Graph, Op, Padding, TensorType};
use nxla_tensor::{DType, Names};

#[test]
fn reshape_keeps_the_size_and_drops_names() {
    assert_eq!(outcome(&["f32[2][3]"], |g, x| g.reshape(x[0], [3, 2])), "f32[3][2]");
    assert_eq!(outcome(&["pred[x: 1]"], |g, x| g.reshape(x[0], [0; 0])), "pred");
    assert_eq!(outcome(&["f32[0][3]"], |g, x| g.reshape(x[0], [7, 0])), "f32[7][0]");
    let names = || Some(Names::from([Some("a"), None]));
    assert_eq!(
        outcome(&["u8[x: 6]"], |g, x| g.reshape_named(x[0], [2, 3], names())),
        "u8[a: 2][3]"
    );
    assert_eq!(
        outcome(&["f32[2][3]"], |g, x| g.reshape(x[0], [4])),
        "reshape: shape: must have the 6 elements of f32[2][3]; got 4 in [4]"
    );
    assert_eq!(
        outcome(&["f32[6]"], |g, x| g.reshape_named(x[0], [6], names())),
        "reshape: names: expected 1 entry for f32[6]; got 2"
    );
}

#[test]
fn reshape_infers_one_size() {
    let auto = |sizes: &'static [Option<usize>]| {
        outcome(&["f32[2][3]"], move |g, x| g.reshape_auto(x[0], sizes))
    };
    assert_eq!(auto(&[None]), "f32[6]");
    assert_eq!(auto(&[Some(3), None, Some(1)]), "f32[3][2][1]");
    assert_eq!(auto(&[Some(3), Some(2)]), "f32[3][2]");
    assert_eq!(
        auto(&[None, None]),
        "reshape: shape: must determine all sizes for f32[2][3]; got [unknown, unknown]"
    );
    assert_eq!(
        auto(&[Some(4), None]),
        "reshape: shape: the product of the given sizes must divide the 6 elements of f32[2][3]; got [4, unknown]"
    );
    assert_eq!(
        outcome(&["f32[0]"], |g, x| g.reshape_auto(x[0], &[Some(0), None])),
        "reshape: shape: must determine all sizes for f32[0]; got [0, unknown]"
    );
}

#[test]
fn no_op_movements_create_no_nodes() {
    let mut graph = Graph::new();
    let x = graph.parameter(0, TensorType::new(DType::F32, [2, 3]));
    assert_eq!(graph.reshape(x, [2, 3]).unwrap(), x);
    assert_eq!(graph.rename(x, None).unwrap(), x);
    assert_eq!(graph.squeeze(x, None).unwrap(), x);
    assert_eq!(graph.transpose(x, Some(&[0, 1])).unwrap(), x);
    assert_eq!(graph.reverse(x, Some(&[])).unwrap(), x);
    assert_eq!(graph.broadcast(x, [2, 3], None).unwrap(), x);
    assert_eq!(graph.concatenate(&[x], -1).unwrap(), x);
    assert_eq!(graph.flatten(x, Some(&[])).unwrap(), x);
    assert_eq!(graph.len(), 1);
}

#[test]
fn squeeze_and_new_axis() {
    let ones = ["f32[a: 1][b: 2][c: 1]"];
    assert_eq!(outcome(&ones, |g, x| g.squeeze(x[0], None)), "f32[b: 2]");
    assert_eq!(outcome(&ones, |g, x| g.squeeze(x[0], Some(&[-1]))), "f32[a: 1][b: 2]");
    assert_eq!(outcome(&ones, |g, x| g.squeeze(x[0], Some(&[2, 0]))), "f32[b: 2]");
    assert_eq!(
        outcome(&ones, |g, x| g.squeeze(x[0], Some(&[1]))),
        "squeeze: axes: must have size 1; got size 2 of axis 1 in f32[a: 1][b: 2][c: 1]"
    );
    assert_eq!(
        outcome(&["f32[1]"], |g, x| g.squeeze(x[0], Some(&[1]))),
        "squeeze: axis: must be in range for f32[1]; got 1"
    );
    let named = |axis, name: Option<&'static str>| {
        outcome(&["s8[x: 2][y: 3]"], move |g, x| g.new_axis(x[0], axis, name.map(Into::into)))
    };
    assert_eq!(named(1, Some("z")), "s8[x: 2][z: 1][y: 3]");
    assert_eq!(named(-1, None), "s8[x: 2][y: 3][1]");
    assert_eq!(named(2, None), "s8[x: 2][y: 3][1]");
    assert_eq!(named(-3, None), "s8[1][x: 2][y: 3]");
    assert_eq!(
        named(3, None),
        "new_axis: axis: must be from -3 to 2 for a new axis of s8[x: 2][y: 3]; got 3"
    );
}

#[test]
fn transpose_and_reverse() {
    let x = ["f32[a: 2][b: 3][4]"];
    assert_eq!(outcome(&x, |g, x| g.transpose(x[0], None)), "f32[4][b: 3][a: 2]");
    assert_eq!(outcome(&x, |g, x| g.transpose(x[0], Some(&[-1, 0, 1]))), "f32[4][a: 2][b: 3]");
    assert_eq!(outcome(&["f32"], |g, x| g.transpose(x[0], None)), "f32");
    assert_eq!(
        outcome(&x, |g, x| g.transpose(x[0], Some(&[0, 1]))),
        "transpose: axes: expected 3 entries for f32[a: 2][b: 3][4]; got 2"
    );
    assert_eq!(
        outcome(&x, |g, x| g.transpose(x[0], Some(&[0, 1, -2]))),
        "transpose: axes: must be distinct; got axis 1 twice"
    );
    assert_eq!(outcome(&x, |g, x| g.reverse(x[0], None)), "f32[a: 2][b: 3][4]");
    assert_eq!(
        outcome(&x, |g, x| g.reverse(x[0], Some(&[3]))),
        "reverse: axis: must be in range for f32[a: 2][b: 3][4]; got 3"
    );
}

#[test]
fn equal_sets_of_axes_are_equal_nodes() {
    let mut graph = Graph::new();
    let x = graph.parameter(0, TensorType::new(DType::F32, [2, 3, 4]));
    let one = graph.reverse(x, Some(&[2, 0])).unwrap();
    assert_eq!(graph.reverse(x, Some(&[0, -1])).unwrap(), one);
    let error = graph.make(Op::Reverse([2, 0].into()), &[x]).unwrap_err();
    assert_eq!(error.to_string(), "reverse: axes: must be in increasing order; got [2, 0]");
}

#[test]
fn broadcast_aligns_or_maps_axes() {
    let x = ["f32[x: 3]"];
    assert_eq!(outcome(&x, |g, x| g.broadcast(x[0], [2, 3], None)), "f32[2][3]");
    assert_eq!(outcome(&x, |g, x| g.broadcast(x[0], [3, 2], Some(&[0]))), "f32[3][2]");
    assert_eq!(outcome(&["pred"], |g, x| g.broadcast(x[0], [2, 0], None)), "pred[2][0]");
    assert_eq!(outcome(&["f32[1][3]"], |g, x| g.broadcast(x[0], [0, 3], None)), "f32[0][3]");
    assert_eq!(
        outcome(&x, |g, x| g.broadcast(x[0], [3, 2], None)),
        "broadcast: shape: axis 0 of f32[x: 3] has size 3, which cannot become 2 (axis 1 of [3, 2])"
    );
    assert_eq!(
        outcome(&x, |g, x| g.broadcast(x[0], [3, 2], Some(&[0, 1]))),
        "broadcast: axes: expected 1 entry for f32[x: 3]; got 2"
    );
    assert_eq!(
        outcome(&["f32[2][3]"], |g, x| g.broadcast(x[0], [3, 2], Some(&[1, 0]))),
        "broadcast: axes: must be in increasing order; got [1, 0]"
    );
    assert!(outcome(&["f32[2][3]"], |g, x| g.broadcast(x[0], [3], None)).starts_with("broadcast:"));
    let huge = usize::MAX;
    assert!(
        outcome(&["f32"], |g, x| g.broadcast(x[0], [huge, 2], None)).contains("fewer than 2^64")
    );
}

#[test]
fn pad_sizes() {
    let pad = |input: &'static str, padding: Padding| {
        outcome(&[input, "f32"], move |g, x| g.pad(x[0], x[1], &[padding]))
    };
    assert_eq!(pad("f32[x: 3]", Padding { low: 1, high: 2, interior: 0 }), "f32[x: 6]");
    assert_eq!(pad("f32[3]", Padding { low: -1, high: -1, interior: 2 }), "f32[5]");
    assert_eq!(pad("f32[0]", Padding { low: 2, high: 0, interior: 5 }), "f32[2]");
    assert_eq!(pad("f32[3]", Padding { low: -3, ..Padding::NONE }), "f32[0]");
    assert_eq!(pad("s32[3]", Padding::NONE), "f32[3]");
    let too_large = pad("f32[1]", Padding { interior: 1 << 63, ..Padding::NONE });
    assert!(too_large.starts_with("pad: padding: must leave a valid size; got "), "{too_large}");
    assert_eq!(
        pad("f32[3]", Padding { low: -2, high: -2, interior: 0 }),
        "pad: padding: must leave a valid size; got (-2, -2) for axis 0 of f32[3]"
    );
    assert_eq!(
        outcome(&["pred[2]", "pred"], |g, x| g.pad(x[0], x[1], &[Padding::NONE])),
        "pred[2]"
    );
    assert_eq!(
        outcome(&["f32[3]", "f32[1]"], |g, x| g.pad(x[0], x[1], &[Padding::NONE])),
        "pad: value: expected a scalar; got [1]"
    );
    assert_eq!(
        outcome(&["f32[3]", "f32"], |g, x| g.pad(x[0], x[1], &[])),
        "pad: padding: expected 1 entry for f32[3]; got 0"
    );
}

#[test]
fn concatenate_merges_dtypes_and_names() {
    let join = |inputs: &[&str], axis| outcome(inputs, |g, x| g.concatenate(x, axis));
    assert_eq!(join(&["s32[2][y: 3]", "f32[x: 4][3]"], 0), "f32[x: 6][y: 3]");
    assert_eq!(join(&["pred[2][3]", "pred[2][0]"], -1), "pred[2][3]");
    assert_eq!(join(&["pred[2]", "u8[1]"], 0), "u8[3]");
    assert_eq!(
        join(&["f32[2][3]", "f32[2][4]"], 0),
        "concatenate: operands: must have equal shapes outside of axis 0; got f32[2][3] as \
         operand 0 and f32[2][4] as operand 1"
    );
    assert!(join(&["f32[2]", "f32[2][1]"], 0).ends_with("f32[2][1] as operand 1"));
    assert_eq!(join(&["f32", "f32"], 0), "concatenate: axis: must be in range for f32; got 0");
    assert_eq!(join(&[], 0), "concatenate: operands: expected one or more; got 0");
    let conflict = join(&["f32[x: 1]", "f32[y: 1]"], 0);
    assert!(conflict.contains("cannot merge name x on axis 0 with name y"), "{conflict}");
}

#[test]
fn stack_adds_an_axis() {
    let stack = |inputs: &[&str], axis, name: Option<&str>| {
        outcome(inputs, |g, x| g.stack(x, axis, name.map(Into::into)))
    };
    assert_eq!(stack(&["s32[x: 2]", "f32[2]"], 0, Some("n")), "f32[n: 2][x: 2]");
    assert_eq!(stack(&["f32[2][3]", "f32[2][3]"], -1, None), "f32[2][3][2]");
    assert_eq!(stack(&["pred"], 0, None), "pred[1]");
    assert_eq!(
        stack(&["f32[2]", "f32[1]"], 0, None),
        "stack: operands: must have equal shapes; got f32[2] as operand 0 and f32[1] as operand 1"
    );
    assert!(stack(&["f32[2]"], -3, None).contains("must be from -2 to 1"));
    assert_eq!(stack(&[], 0, None), "concatenate: operands: expected one or more; got 0");
}

#[test]
fn compositions_of_movements() {
    let x = ["f32[a: 2][b: 3][c: 4]"];
    assert_eq!(outcome(&x, |g, x| g.flatten(x[0], None)), "f32[24]");
    assert_eq!(outcome(&x, |g, x| g.flatten(x[0], Some(&[1, 2]))), "f32[a: 2][12]");
    assert_eq!(
        outcome(&x, |g, x| g.flatten(x[0], Some(&[0, 2]))),
        "flatten: axes: must be consecutive; got [0, 2]"
    );
    assert_eq!(outcome(&["f32[2][3]"], |g, x| g.tile(x[0], &[2])), "f32[2][6]");
    assert_eq!(outcome(&["f32[2]"], |g, x| g.tile(x[0], &[2, 1])), "f32[2][2]");
    assert_eq!(outcome(&["f32"], |g, x| g.tile(x[0], &[3])), "f32[3]");
    assert_eq!(outcome(&["f32[2]"], |g, x| g.tile(x[0], &[0])), "f32[0]");
    let part = |index: i64, high: bool| {
        outcome(&["f32[6][x: 2]"], move |g, x| {
            g.split(x[0], index, 0).map(|(low, rest)| if high { rest } else { low })
        })
    };
    assert_eq!((part(2, false), part(2, true)), ("f32[2][x: 2]".into(), "f32[4][x: 2]".into()));
    assert_eq!(part(-2, true), "f32[2][x: 2]");
    assert_eq!((part(0, false), part(6, true)), ("f32[0][x: 2]".into(), "f32[0][x: 2]".into()));
    assert_eq!(part(7, true), "split: index: must be inside axis 0 of f32[6][x: 2]; got 7");
    assert_eq!(part(-7, true), "split: index: must be inside axis 0 of f32[6][x: 2]; got -7");
}

#[test]
fn invalid_nodes_are_rejected() {
    let mut graph = Graph::new();
    let x = graph.parameter(0, TensorType::new(DType::F32, [2, 3]));
    let text = |result: nxla_expr::Result<_>| result.unwrap_err().to_string();
    assert_eq!(
        text(graph.make(Op::Squeeze([1, 1].into()), &[x])),
        "squeeze: axes: must be distinct; got axis 1 twice"
    );
    assert_eq!(
        text(graph.make(Op::Transpose([0, 1].into()), &[])),
        "transpose: operands: expected 1; got 0"
    );
    assert_eq!(
        text(graph.make(Op::Concatenate(2), &[x])),
        "concatenate: axis: must be in range for f32[2][3]; got 2"
    );
}
