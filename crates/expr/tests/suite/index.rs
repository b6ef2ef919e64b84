//! Slices, gathers, scatters and sorts: shapes, dtypes, names and errors.

use crate::common::outcome;
use nxla_expr::build::{Combine, SliceStart, Subscript, Update};
use nxla_expr::{Graph, Op, Start, TensorType};
use nxla_tensor::{DType, Scalar};

fn slice(input: &str, starts: &[i64], lengths: &[usize], strides: Option<&[usize]>) -> String {
    let starts: Vec<SliceStart> = starts.iter().map(|&start| start.into()).collect();
    outcome(&[input], |g, x| g.slice(x[0], &starts, lengths, strides))
}

#[test]
fn slices() {
    assert_eq!(slice("pred[x: 6]", &[4], &[2], None), "pred[x: 2]");
    assert_eq!(slice("f32[6]", &[-3], &[2], None), "f32[2]");
    assert_eq!(slice("f32[6]", &[0], &[5], Some(&[2])), "f32[3]");
    assert_eq!(slice("f32[6][x: 3]", &[0, 0], &[0, 3], None), "f32[0][x: 3]");
    assert_eq!(slice("f32", &[], &[], None), "f32");
    assert_eq!(
        slice("f32[6]", &[0], &[7], None),
        "slice: lengths: must be at most 6, the size of axis 0 of f32[6]; got 7"
    );
    assert_eq!(
        slice("f32[6]", &[0, 0], &[1], None),
        "slice: starts: expected 1 entry for f32[6]; got 2"
    );
    assert_eq!(
        slice("f32[6]", &[0], &[], None),
        "slice: lengths: expected 1 entry for f32[6]; got 0"
    );
    assert_eq!(
        slice("f32[6]", &[0], &[1], Some(&[0])),
        "slice: strides: must be at least 1; got 0 for axis 0"
    );
    assert_eq!(
        slice("f32[6]", &[0], &[1], Some(&[usize::MAX])),
        "slice: strides: must be less than 2^63; got 18446744073709551615 for axis 0"
    );
}

#[test]
fn dynamic_starts_are_scalar_integers() {
    let dynamic = |start: &str| {
        outcome(&["f32[6][4]", start], |g, x| {
            g.slice(x[0], &[x[1].into(), 1.into()], &[2, 2], None)
        })
    };
    assert_eq!(dynamic("u8"), "f32[2][2]");
    assert_eq!(dynamic("f32"), "slice: start: expected an integer dtype; got f32");
    assert_eq!(dynamic("pred"), "slice: start: expected an integer dtype; got pred");
    assert_eq!(dynamic("s32[1]"), "slice: start: expected a scalar; got [1]");
}

#[test]
fn a_constant_start_is_static() {
    let mut graph = Graph::new();
    let x = graph.parameter(0, TensorType::new(DType::F32, [6]));
    let two = graph.scalar_constant(Scalar::UInt(2), DType::U8).unwrap();
    let sliced = graph.slice(x, &[two.into()], &[3], None).unwrap();
    assert_eq!(graph.slice(x, &[2.into()], &[3], None).unwrap(), sliced);
    let Op::Slice(slice) = graph.op(sliced) else { panic!("a slice") };
    assert_eq!(*slice.starts, [Start::Static(2)]);
    assert_eq!(graph.operands(sliced), [x]);
}

#[test]
fn slicing_one_axis() {
    let along = |length, axis, stride| {
        outcome(&["f32[x: 2][y: 6]"], move |g, x| g.slice_along_axis(x[0], 1, length, axis, stride))
    };
    assert_eq!(along(3, -1, 2), "f32[x: 2][y: 2]");
    assert_eq!(
        along(7, 1, 1),
        "slice: lengths: must be at most 6, the size of axis 1 of \
         f32[x: 2][y: 6]; got 7"
    );
    assert_eq!(
        along(1, 2, 1),
        "slice_along_axis: axis: must be in range for f32[x: 2][y: 6]; got 2"
    );
    let mut graph = Graph::new();
    let x = graph.parameter(0, TensorType::new(DType::F32, [2, 6]));
    assert_eq!(graph.slice_along_axis(x, 5, 6, 1, 1).unwrap(), x);
    assert_ne!(graph.slice_along_axis(x, 0, 6, 1, 2).unwrap(), x);
}

#[test]
fn put_slice_promotes_and_merges_names() {
    let put = |x: &str, update: &str| {
        outcome(&[x, update], |g, x| g.put_slice(x[0], &[0.into(), 1.into()], x[1]))
    };
    assert_eq!(put("s32[x: 2][3]", "f32[2][y: 1]"), "f32[x: 2][y: 3]");
    assert_eq!(put("pred[2][3]", "pred[0][1]"), "pred[2][3]");
    assert_eq!(
        put("f32[2][3]", "f32[1][4]"),
        "put_slice: update: expected the rank of f32[2][3] and no larger axis; got [1][4]"
    );
    assert!(put("f32[2][3]", "f32[2]").ends_with("and no larger axis; got [2]"));
    assert!(put("f32[x: 2][3]", "f32[y: 1][1]").contains("cannot merge name x"));
    let mut graph = Graph::new();
    let x = graph.parameter(0, TensorType::new(DType::F32, [6]));
    let update = graph.parameter(1, TensorType::new(DType::F32, [2]));
    let start = graph.parameter(2, TensorType::scalar(DType::S32));
    let put = graph.put_slice(x, &[start.into()], update).unwrap();
    assert_eq!(graph.operands(put), [x, update, start]);
}

#[test]
fn gathers() {
    let gather = |x: &str, indices: &str, axes: Option<&[i64]>| {
        outcome(&[x, indices], |g, x| g.gather(x[0], x[1], axes))
    };
    assert_eq!(gather("f32[x: 2][y: 3]", "s32[a: 5][b: 2]", None), "f32[5]");
    assert_eq!(gather("pred[2][3]", "u8[5][1]", None), "pred[5][3]");
    assert_eq!(gather("f32[2][3][4]", "s32[5][6][1]", Some(&[1])), "f32[5][6][2][4]");
    assert_eq!(gather("f32[2][3]", "s32[2]", None), "f32");
    assert_eq!(gather("f32[2][3]", "s32[4][0]", None), "f32[4][2][3]");
    assert_eq!(gather("f32[0][3]", "s32[0][1]", None), "f32[0][3]");
    assert_eq!(
        gather("f32[0][3]", "s32[2][1]", None),
        "gather: axes: must have elements to index; got axis 0 of f32[0][3]"
    );
    assert_eq!(
        gather("f32[2][3]", "s32[5][2]", Some(&[1, 0])),
        "gather: axes: must be in increasing order; got [1, 0]"
    );
    assert_eq!(
        gather("f32[2][3]", "s32[5][2]", Some(&[0])),
        "gather: indices: expected a last axis with one coordinate for each of \
         axes [0]; got [5][2]"
    );
    assert_eq!(
        gather("f32[2]", "s32[5][2]", None),
        "gather: indices: expected a last axis of at most 1 coordinates; got s32[5][2]"
    );
    assert!(gather("f32[2]", "s32", None).ends_with("coordinates; got s32"));
    assert_eq!(
        gather("f32[2]", "f32[5][1]", None),
        "gather: indices: expected an integer dtype; got f32"
    );
}

#[test]
fn scatters() {
    let add = |x: &str, indices: &str, updates: &str, axes: Option<&[i64]>| {
        outcome(&[x, indices, updates], |g, x| g.indexed_add(x[0], x[1], x[2], axes))
    };
    assert_eq!(add("s32[x: 3]", "s32[4][1]", "f32[4]", None), "f32[x: 3]");
    assert_eq!(add("pred[3]", "s32[4][1]", "pred[4]", None), "u8[3]");
    assert_eq!(add("f32[2][3]", "s32[4][1]", "f32[4][2]", Some(&[1])), "f32[2][3]");
    assert_eq!(add("f32[2][3]", "s32[5][4][1]", "f32[5][4][1]", None), "f32[2][3]");
    assert_eq!(add("f32[2][3]", "s32[2]", "f32", None), "f32[2][3]");
    assert_eq!(add("f32[2][3]", "s32[1]", "f32[3]", None), "f32[2][3]");
    assert_eq!(
        add("f32[2][3]", "s32[4][1]", "f32[3][3]", None),
        "indexed_add: updates: expected [4][3]: the leading axes of indices \
         [4][1], then the axes of f32[2][3] that are not indexed; got [3][3]"
    );
    assert!(add("f32[2][3]", "s32[4][1]", "f32[4][4]", None).contains("expected [4][3]"));
    assert!(add("f32[2][3]", "s32[4][1]", "f32[4]", None).contains("expected [4][3]"));
    let put = |x: &str, updates: &str| {
        outcome(&[x, "s32[4][1]", updates], |g, x| g.indexed_put(x[0], x[1], x[2], None))
    };
    assert_eq!(put("pred[3]", "pred[4]"), "pred[3]");
    assert_eq!(put("u8[3]", "s8[4]"), "s16[3]");
    assert!(put("f32", "f32[4]").ends_with("coordinates; got s32[4][1]"));
}

#[test]
fn take_replaces_the_axis_by_index_axes() {
    let take =
        |x: &str, indices: &str, axis| outcome(&[x, indices], |g, x| g.take(x[0], x[1], axis));
    assert_eq!(take("f32[2][3][4]", "s32[5][6]", 1), "f32[2][5][6][4]");
    assert_eq!(take("f32[2][3]", "s32", -1), "f32[2]");
    assert_eq!(take("f32[x: 2][y: 3]", "s32[a: 1][b: 2]", 1), "f32[x: 2][a: 1][b: 2]");
    assert_eq!(take("f32[x: 2][y: 3]", "s32[2]", 0), "f32[x: 2][y: 3]");
    assert_eq!(take("f32[2][y: 3]", "s32[a: 2]", 0), "f32[a: 2][y: 3]");
    let conflict = take("f32[x: 2][y: 3]", "s32[a: 2]", 0);
    assert!(
        conflict.starts_with("take: ") && conflict.contains("cannot merge name x"),
        "{conflict}"
    );
    assert_eq!(take("f32[2]", "f32[2]", 0), "gather: indices: expected an integer dtype; got f32");
    assert_eq!(take("f32", "s32[2]", 0), "take: axis: must be in range for f32; got 0");
    assert_eq!(
        take("f32[0]", "s32[2]", 0),
        "gather: axes: must have elements to index; got axis 0 of f32[0]"
    );
}

#[test]
fn take_of_the_first_axis_is_one_gather() {
    let mut graph = Graph::new();
    let x = graph.parameter(0, TensorType::new(DType::F32, [6, 2]));
    let indices = graph.parameter(1, TensorType::new(DType::S32, [4]));
    let taken = graph.take(x, indices, 0).unwrap();
    let Op::Block(block) = graph.op(taken) else { panic!("take is a block") };
    let body = &block.body;
    assert!(matches!(body.graph().op(body.outputs()[0]), Op::Gather(axes) if **axes == [0]));
}

#[test]
fn take_along_axis_keeps_the_shape_of_the_indices() {
    let take = |x: &str, indices: &str, axis| {
        outcome(&[x, indices], |g, x| g.take_along_axis(x[0], x[1], axis))
    };
    assert_eq!(take("f32[x: 2][y: 3]", "s32[2][1]", 1), "f32[x: 2][y: 1]");
    assert_eq!(take("pred[2][3]", "u8[5][3]", 0), "pred[5][3]");
    assert_eq!(take("f32[2][3]", "s32[a: 2][b: 1]", -1), "f32[2][1]");
    assert_eq!(take("f32[4]", "u64[2]", 0), "f32[2]");
    assert_eq!(
        take("f32[2][3]", "s32[3][1]", 1),
        "take_along_axis: indices: expected the shape of f32[2][3] but for axis \
         1; got s32[3][1]"
    );
    assert!(take("f32[2][3]", "s32[1]", 1).ends_with("for axis 1; got s32[1]"));
    assert_eq!(take("f32[2]", "f32[2]", 0), "gather: indices: expected an integer dtype; got f32");
}

#[test]
fn sorts() {
    let x = ["f32[x: 2][y: 3]"];
    assert_eq!(outcome(&x, |g, x| g.sort(x[0], -1, true, false)), "f32[x: 2][y: 3]");
    assert_eq!(outcome(&["pred[3]"], |g, x| g.sort(x[0], 0, false, true)), "pred[3]");
    let argsort = |g: &mut Graph, x, dtype| g.argsort(x, 0, false, false, dtype);
    assert_eq!(outcome(&x, |g, x| argsort(g, x[0], DType::U16)), "u16[x: 2][y: 3]");
    assert_eq!(
        outcome(&["f32"], |g, x| g.sort(x[0], 0, false, false)),
        "sort: axis: must be in range for f32; got 0"
    );
    assert_eq!(
        outcome(&["c64[2]"], |g, x| g.sort(x[0], 0, false, false)),
        "sort: operand: expected a real dtype; got c64"
    );
    assert_eq!(outcome(&x, |g, x| argsort(g, x[0], DType::F32)), "f32[x: 2][y: 3]");
}

#[test]
fn top_k_returns_values_and_indices() {
    let top = |x: &str, k, indices: bool| {
        outcome(&[x], |g, x| g.top_k(x[0], k).map(|(values, at)| if indices { at } else { values }))
    };
    assert_eq!(top("u8[x: 2][y: 5]", 3, false), "u8[x: 2][y: 3]");
    assert_eq!(top("u8[x: 2][y: 5]", 3, true), "s32[x: 2][y: 3]");
    assert_eq!(top("f32[3]", 3, false), "f32[3]");
    assert_eq!(
        top("f32[5]", 6, false),
        "top_k: k: must be from 1 to 5, the size of the last axis of f32[5]; got 6"
    );
    assert!(top("f32[5]", 0, false).starts_with("top_k: k: must be from 1 to 5"));
    assert_eq!(top("f32", 1, false), "top_k: operand: must have at least one axis; got a scalar");
    assert_eq!(top("c64[2]", 1, false), "argsort: operand: expected a real dtype; got c64");
}

#[test]
fn diagonals() {
    let take = |x: &str, offset| outcome(&[x], |g, x| g.take_diagonal(x[0], offset));
    assert_eq!(take("f32[x: 3][y: 4]", 0), "f32[3]");
    assert_eq!(take("f32[3][4]", -1), "f32[2]");
    assert_eq!(take("f32[5][6][2][3]", 2), "f32[5][6][1]");
    assert_eq!(
        take("f32[3][3]", -3),
        "diagonal: offset: must be inside a matrix of 3 by 3; got -3"
    );
    assert_eq!(take("f32[3]", 0), "diagonal: operand: expected at least two axes; got f32[3]");
    let make = |x: &str, offset| outcome(&[x], |g, x| g.make_diagonal(x[0], offset));
    assert_eq!(make("f32[x: 3]", 0), "f32[3][3]");
    assert_eq!(make("f32[2]", -1), "f32[3][3]");
    assert_eq!(make("u8[1]", 2), "s32[3][3]");
    assert_eq!(make("f32[0]", 1), "f32[1][1]");
    assert_eq!(make("f32", 0), "diagonal: operand: expected a vector; got f32");
    let put = |x: &str, diagonal: &str, offset| {
        outcome(&[x, diagonal], |g, x| g.put_diagonal(x[0], x[1], offset))
    };
    assert_eq!(put("f32[x: 3][4]", "s32[3]", 1), "f32[x: 3][4]");
    assert_eq!(put("f32[3][3]", "f32[2]", 0), "put_diagonal: diagonal: expected [3]; got [2]");
    assert_eq!(put("f32[3]", "f32[3]", 0), "put_diagonal: operand: expected a matrix; got f32[3]");
    assert_eq!(
        put("f32[3][3]", "f32[1][3]", 0),
        "diagonal: diagonal: expected a vector; got f32[1][3]"
    );
}

#[test]
fn invalid_nodes_are_rejected() {
    let mut graph = Graph::new();
    let x = graph.parameter(0, TensorType::new(DType::F32, [4]));
    let text = |result: nxla_expr::Result<_>| result.unwrap_err().to_string();
    let op = Op::PutSlice([Start::Dynamic].into());
    assert_eq!(
        text(graph.make(op.clone(), &[x])),
        "put_slice: operands: expected two or more; got 1"
    );
    assert_eq!(
        text(graph.make(op, &[x, x])),
        "put_slice: starts: must have one operand for each of the 1 dynamic starts; got 0"
    );
}

#[test]
fn differences() {
    let diff = |x: &str, order, axis| outcome(&[x], |g, x| g.diff(x[0], order, axis));
    assert_eq!(diff("s32[x: 2][y: 3]", 1, 0), "s32[x: 1][y: 3]");
    assert_eq!(diff("u8[2][3]", 2, -1), "u8[2][1]");
    assert_eq!(diff("f32[3]", 0, 0), "f32[3]");
    assert_eq!(diff("f32[3]", 9, 0), "f32[0]");
    assert_eq!(diff("f32", 1, -1), "diff: axis: must be in range for f32; got -1");
}

#[test]
fn argsort_nodes_require_integer_dtypes() {
    let mut graph = Graph::new();
    let x = graph.parameter(0, TensorType::new(DType::F32, [4]));
    let sort = nxla_expr::SortAttributes { axis: 0, descending: false, stable: false };
    let error = graph.make(Op::Argsort(sort, DType::F32), &[x]).unwrap_err();
    assert_eq!(error.to_string(), "argsort: dtype: must be an integer dtype; got f32");
}

#[test]
fn leading_axis_updates_include_trailing_axes() {
    let update = |value: &str, update: Update| {
        outcome(&["f32[5][4][3]", "s64[7]", value], |g, x| {
            g.subscript_update(x[0], &[Subscript::Take(x[1])], x[2], update)
        })
    };
    for kind in [Update::Set, Update::Add, Update::Combine(Combine::Max)] {
        assert_eq!(update("f32[7][4][3]", kind), "f32[5][4][3]");
        assert_eq!(update("f32[3]", kind), "f32[5][4][3]");
        assert!(update("f32[7]", kind).contains("broadcasts to [7][4][3]; got [7]"));
    }
}
