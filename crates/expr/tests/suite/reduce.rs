//! Reductions: shapes, dtypes, names, compositions and errors.

use crate::common::outcome;
use nxla_expr::{Graph, Op, TensorType};
use nxla_tensor::{DType, Number, Scalar};

#[test]
fn reduced_axes_are_removed_or_kept() {
    let x = ["f32[a: 2][3][c: 4]"];
    assert_eq!(outcome(&x, |g, x| g.sum(x[0], None, false)), "f32");
    assert_eq!(outcome(&x, |g, x| g.sum(x[0], None, true)), "f32[a: 1][1][c: 1]");
    assert_eq!(outcome(&x, |g, x| g.sum(x[0], Some(&[-1, 0]), false)), "f32[3]");
    assert_eq!(outcome(&x, |g, x| g.sum(x[0], Some(&[1]), false)), "f32[a: 2][c: 4]");
    assert_eq!(outcome(&x, |g, x| g.sum(x[0], Some(&[1]), true)), "f32[a: 2][1][c: 4]");
    assert_eq!(outcome(&["u8[2]"], |g, x| g.sum(x[0], Some(&[]), false)), "u32[2]");
    assert_eq!(outcome(&["f32[0][3]"], |g, x| g.reduce_max(x[0], Some(&[0]), false)), "f32[3]");
    assert_eq!(outcome(&["f32"], |g, x| g.sum(x[0], None, true)), "f32");
    assert_eq!(
        outcome(&x, |g, x| g.sum(x[0], Some(&[3]), false)),
        "sum: axis: must be in range for f32[a: 2][3][c: 4]; got 3"
    );
    assert!(outcome(&x, |g, x| g.all(x[0], Some(&[0, -3]), false)).starts_with("all: "));
}

#[test]
fn sums_with_and_without_kept_axes_are_shared() {
    let x = ["f32[rows: 2][columns: 3]"];
    for (first, second) in [
        ((false, "f32[rows: 2]"), (true, "f32[rows: 2][columns: 1]")),
        ((true, "f32[rows: 2][columns: 1]"), (false, "f32[rows: 2]")),
    ] {
        let text = outcome(&x, |g, x| {
            let known = g.sum(x[0], Some(&[1]), first.0)?;
            assert_eq!(g.ty(known).to_string(), first.1);
            let same = g.sum(x[0], Some(&[1]), second.0)?;
            assert!(matches!(g.op(same), Op::Reshape(_)) && g.operands(same) == [known]);
            let other = g.reduce_max(x[0], Some(&[1]), second.0)?;
            assert!(matches!(g.op(other), Op::Reduce(..)));
            Ok(same)
        });
        assert_eq!(text, second.1);
    }
}

#[test]
fn dtypes_of_every_reduction() {
    for dtype in DType::ALL {
        let input = format!("{dtype}[2]");
        let aggregate = dtype.to_aggregate().to_string();
        assert_eq!(outcome(&[&input], |g, x| g.sum(x[0], None, false)), aggregate);
        assert_eq!(outcome(&[&input], |g, x| g.product(x[0], None, false)), aggregate);
        assert_eq!(outcome(&[&input], |g, x| g.all(x[0], None, false)), "pred");
        assert_eq!(outcome(&[&input], |g, x| g.any(x[0], None, false)), "pred");
        for (name, text) in [
            ("reduce_max", outcome(&[&input], |g, x| g.reduce_max(x[0], None, false))),
            ("reduce_min", outcome(&[&input], |g, x| g.reduce_min(x[0], None, false))),
        ] {
            let complex_error = format!("{name}: operand: expected a real dtype; got {dtype}");
            assert_eq!(text, if dtype.is_complex() { complex_error } else { dtype.to_string() });
        }
        let mean = dtype.to_floating().to_string();
        assert_eq!(outcome(&[&input], |g, x| g.mean(x[0], None, false)), mean);
    }
}

#[test]
fn all_axes_and_listed_axes_are_distinct_nodes() {
    let mut graph = Graph::new();
    let x = graph.parameter(0, TensorType::new(DType::F32, [2, 3]));
    let every = graph.sum(x, Some(&[1, 0]), false).unwrap();
    assert_eq!(graph.sum(x, Some(&[0, 1]), false).unwrap(), every);
    let all = graph.sum(x, None, false).unwrap();
    assert_ne!(all, every);
    assert_eq!(graph.ty(all), graph.ty(every));
}

#[test]
fn arg_reductions() {
    let argmax = |input: &str, axis, keep_axis, dtype| {
        outcome(&[input], |g, x| g.argmax(x[0], axis, keep_axis, false, dtype))
    };
    assert_eq!(argmax("f32[x: 2][y: 3]", None, false, DType::S32), "s32");
    assert_eq!(argmax("f32[x: 2][y: 3]", None, true, DType::S32), "s32[x: 1][y: 1]");
    assert_eq!(argmax("f32[x: 2][y: 3]", Some(-1), false, DType::U8), "u8[x: 2]");
    assert_eq!(argmax("pred[x: 2][y: 3]", Some(0), true, DType::S64), "s64[x: 1][y: 3]");
    assert_eq!(argmax("f32[0][3]", Some(1), false, DType::S32), "s32[0]");
    assert_eq!(
        argmax("f32[0][3]", Some(0), false, DType::S32),
        "argmax: operand: must have elements along the reduced axes; got f32[0][3]"
    );
    assert_eq!(
        argmax("c64[2]", None, false, DType::S32),
        "argmax: operand: expected a real dtype; got c64"
    );
    assert_eq!(argmax("f32[2]", None, false, DType::BF16), "bf16");
    assert_eq!(
        outcome(&["f32[2]"], |g, x| g.argmin(x[0], Some(1), false, true, DType::S32)),
        "argmin: axis: must be in range for f32[2]; got 1"
    );
}

#[test]
fn folds_promote_and_convert() {
    let fold = |x: &str, initial: &str| {
        outcome(&[x, initial], |g, x| {
            g.reduce_fun(x[0], x[1], Some(&[0]), true, |g, element, sum| g.less(element, sum))
        })
    };
    assert_eq!(fold("s32[x: 2][3]", "f32"), "f32[x: 1][3]");
    assert_eq!(fold("u8[2]", "s32"), "s32[1]");
    assert_eq!(fold("pred[2]", "pred"), "pred[1]");
    assert_eq!(fold("f32[2]", "f32[1]"), "reduce: initial: expected a scalar; got [1]");
    assert_eq!(
        outcome(&["f32[2]", "f32"], |g, x| {
            g.reduce_fun(x[0], x[1], None, false, |g, element, _| g.new_axis(element, 0, None))
        }),
        "reduce: function: must return one f32; got (f32[1])"
    );
    assert_eq!(
        outcome(&["f32[2]", "f32"], |g, x| {
            g.reduce_fun(x[0], x[1], Some(&[1]), false, |g, element, sum| g.add(element, sum))
        }),
        "reduce: axis: must be in range for f32[2]; got 1"
    );
}

#[test]
fn folds_capture_outer_values() {
    let mut graph = Graph::new();
    let x = graph.parameter(0, TensorType::new(DType::F32, [4]));
    let scale = graph.parameter(1, TensorType::scalar(DType::F32));
    let zero = graph.number(Number::Float(0.0)).unwrap();
    let folded = graph
        .reduce_fun(x, zero, None, false, |graph, element, sum| {
            let scaled = graph.multiply(scale, element)?;
            graph.add(scaled, sum)
        })
        .unwrap();
    assert_eq!(graph.operands(folded), [x, zero, scale]);
    let Op::ReduceFun(fold) = graph.op(folded) else { panic!("{:?}", graph.op(folded)) };
    assert_eq!(fold.function.inputs().len(), 3);
}

#[test]
fn folds_reject_hooks_and_functions_of_other_graphs() {
    let mut graph = Graph::new();
    let x = graph.parameter(0, TensorType::new(DType::F32, [4]));
    let zero = graph.number(Number::Float(0.0)).unwrap();
    let error = graph
        .reduce_fun(x, zero, None, false, |graph, element, sum| {
            let shown = graph.hook(&[element], Some("seen"), None)?;
            graph.add(shown[0], sum)
        })
        .unwrap_err();
    assert!(error.to_string().starts_with("reduce: function: must not contain hooks"), "{error}");

    let folded = graph
        .reduce_fun(x, zero, None, false, |graph, element, sum| graph.add(element, sum))
        .unwrap();
    let op = graph.op(folded).clone();
    let integers = graph.parameter(1, TensorType::new(DType::S32, [4]));
    let start = graph.number(Number::Int(0)).unwrap();
    assert_eq!(
        graph.make(op.clone(), &[integers, start]).unwrap_err().to_string(),
        "reduce: function: must take two s32 and the captures; got (f32, f32)"
    );
    assert_eq!(
        graph.make(op.clone(), &[integers, zero]).unwrap_err().to_string(),
        "reduce: initial: must have the dtype of the operand s32[4]; got f32"
    );
    assert_eq!(
        graph.make(op, &[x]).unwrap_err().to_string(),
        "reduce: operands: expected two or more; got 1"
    );
}

#[test]
fn mean_divides_the_sum_by_the_count() {
    let mut graph = Graph::new();
    let x = graph.parameter(0, TensorType::new(DType::BF16, [2, 3]));
    let mean = graph.mean(x, Some(&[-1]), false).unwrap();
    let sum = graph.sum(x, Some(&[1]), false).unwrap();
    let [dividend, count] = graph.operands(mean)[..] else { panic!("a division") };
    assert_eq!(dividend, sum);
    let Op::Constant(count) = graph.op(count) else { panic!("a constant") };
    assert_eq!((count.value, count.ty.dtype), (Scalar::Int(3), DType::S32));
    assert_eq!(graph.dtype(mean), DType::BF16);
}

#[test]
fn variance_deviation_and_median() {
    let x = ["s32[x: 2][y: 3]"];
    assert_eq!(outcome(&x, |g, x| g.variance(x[0], None, false, 0.0)), "f32");
    assert_eq!(outcome(&x, |g, x| g.variance(x[0], Some(&[0]), true, 1.0)), "f32[x: 1][y: 3]");
    assert_eq!(outcome(&x, |g, x| g.standard_deviation(x[0], Some(&[1]), false, 0.0)), "f32[x: 2]");
    assert_eq!(outcome(&x, |g, x| g.median(x[0], None, true)), "f32[x: 1][y: 1]");
    assert_eq!(outcome(&x, |g, x| g.median(x[0], Some(&[1]), false)), "s32[x: 2]");
    assert_eq!(outcome(&x, |g, x| g.median(x[0], Some(&[0]), true)), "f32[x: 1][y: 3]");
    assert_eq!(outcome(&["f32[4]"], |g, x| g.median(x[0], Some(&[-1]), false)), "f32");
    assert_eq!(outcome(&["f32[4][2][3]"], |g, x| g.median(x[0], Some(&[0, -1]), false)), "f32[2]");
    assert_eq!(
        outcome(&["s8[4][2][3]"], |g, x| g.median(x[0], Some(&[2, 0]), true)),
        "f32[1][2][1]"
    );
    assert_eq!(
        outcome(&["f32[2][0]"], |g, x| g.median(x[0], Some(&[1]), false)),
        "median: operand: must have at least one element; got f32[2][0]"
    );
    assert_eq!(
        outcome(&["c64[3]"], |g, x| g.median(x[0], None, false)),
        "sort: operand: expected a real dtype; got c64"
    );
}

#[test]
fn types_of_logsumexp() {
    let x = ["f64[x: 2][y: 3]"];
    assert_eq!(outcome(&x, |g, x| g.logsumexp(x[0], None, false, None)), "f64");
    assert_eq!(outcome(&x, |g, x| g.logsumexp(x[0], Some(&[-1]), true, None)), "f64[x: 2][y: 1]");
    assert_eq!(outcome(&["u8[2][3]"], |g, x| g.logsumexp(x[0], Some(&[0]), false, None)), "f32[3]");
    assert_eq!(
        outcome(&["f32[2][3]", "f32[3]"], |g, x| g.logsumexp(x[0], None, false, Some(x[1]))),
        "f32"
    );
    assert_eq!(
        outcome(&["c64[2]"], |g, x| g.logsumexp(x[0], None, false, None)),
        "reduce_max: operand: expected a real dtype; got c64"
    );
}

#[test]
fn weights_follow_the_order_of_axes() {
    let mean = |x: &str, weights: &str, axes: Option<&[i64]>, keep| {
        outcome(&[x, weights], |g, x| g.weighted_mean(x[0], x[1], axes, keep))
    };
    assert_eq!(mean("s32[3]", "s32[3]", None, false), "f32");
    assert_eq!(mean("f32[2][3]", "f32[2]", Some(&[0]), false), "f32[3]");
    assert_eq!(mean("f32[2][3]", "f32[3]", Some(&[-1]), true), "f32[2][1]");
    assert_eq!(mean("f32[2][3][4]", "f32[4][2]", Some(&[2, 0]), false), "f32[3]");
    assert_eq!(
        mean("f32[2][3]", "f32[2]", Some(&[1]), false),
        "weighted_mean: weights: expected [3]; got [2]"
    );
    assert_eq!(
        mean("f32[2][3]", "f32[2]", None, false),
        "weighted_mean: axes: must be given if the weights and the tensor differ in shape"
    );
}

#[test]
fn modes() {
    let mode = |x: &str, axis, keep| outcome(&[x], |g, x| g.mode(x[0], axis, keep));
    assert_eq!(mode("u8[x: 2][y: 3]", None, false), "u8");
    assert_eq!(mode("f32[x: 2][y: 3]", None, true), "f32[x: 1][y: 1]");
    assert_eq!(mode("f32[x: 2][y: 3]", Some(-1), false), "f32[x: 2]");
    assert_eq!(mode("pred[x: 2][y: 3]", Some(0), true), "pred[x: 1][y: 3]");
    assert_eq!(mode("s32", None, false), "s32");
    assert_eq!(
        mode("f32[2][0]", Some(1), false),
        "mode: operand: must have at least one element; got f32[2][0]"
    );
    assert_eq!(mode("c64[2]", Some(0), false), "sort: operand: expected a real dtype; got c64");
    assert_eq!(mode("f32[2]", Some(1), false), "mode: axis: must be in range for f32[2]; got 1");
}

#[test]
fn covariances() {
    let covariance = |x: &str| outcome(&[x], |g, x| g.covariance(x[0], None, 1));
    assert_eq!(covariance("s32[x: 3][y: 2]"), "f32[2][2]");
    assert_eq!(covariance("f64[5][6][3][2]"), "f64[5][6][2][2]");
    assert_eq!(covariance("c64[3][2]"), "c64[2][2]");
    assert_eq!(covariance("f32[3]"), "diagonal: operand: expected at least two axes; got f32[3]");
    let with_mean =
        |mean: &str| outcome(&["s32[3][2]", mean], |g, x| g.covariance(x[0], Some(x[1]), 0));
    assert_eq!(with_mean("s32[2]"), "f32[2][2]");
    assert_eq!(
        with_mean("s32[3]"),
        "subtract: operands: expected shapes that broadcast; got f64[3][2] and s32[1][3]"
    );
    assert_eq!(
        with_mean("s32"),
        "covariance: mean: must have one element for each column; got a scalar"
    );
}
