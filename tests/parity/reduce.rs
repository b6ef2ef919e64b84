//! Reductions: sums and extrema, positions of extrema, and folds with a function.

use nxla::DType;
use nxla::graph::{ArgReduce, ArgReduceOp, BinaryOp, Op, Reduce, ReduceOp};
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::case::{Case, accepts};
use crate::tolerance;
use crate::values::{Numbers, RANKS, axes, dtype_among, shape, tensor};

pub(crate) fn strategy(op: &Op, dtype: DType) -> BoxedStrategy<Case> {
    match op {
        Op::Reduce(reduction, _) => uniform(op, *reduction, dtype),
        Op::ArgReduce(op, _) => arg_reduce(*op, dtype),
        Op::ReduceFun(_) => reduce_fun(op, dtype),
        op @ nxla::graph::outside!(reduce) => unreachable!("{} is of another family", op.name()),
    }
}

/// Some axes of a shape, or all of them as `None`.
fn reduced_axes(rank: usize) -> BoxedStrategy<Option<Vec<usize>>> {
    prop_oneof![3 => axes(rank).prop_map(Some), 1 => Just(None)].boxed()
}

fn uniform(op: &Op, reduction: ReduceOp, dtype: DType) -> BoxedStrategy<Case> {
    let numbers = tolerance::of(op, dtype).numbers;
    (shape(RANKS), any::<bool>())
        .prop_flat_map(move |(sizes, keep)| {
            (tensor(dtype, &sizes, numbers), reduced_axes(sizes.len()), Just(keep))
        })
        .prop_map(move |(x, axes, keep_axes)| {
            let attributes = Reduce { axes: axes.map(Into::into), keep_axes };
            Case::new(vec![x], attributes.clone(), move |graph, x| {
                graph.make(Op::Reduce(reduction, Box::new(attributes.clone())), x)
            })
        })
        .boxed()
}

fn arg_reduce(op: ArgReduceOp, dtype: DType) -> BoxedStrategy<Case> {
    let integers = DType::ALL.into_iter().filter(|dtype| dtype.is_integer()).collect();
    let flags = (any::<bool>(), any::<bool>(), dtype_among(integers));
    (shape(RANKS), any::<Option<Index>>(), flags)
        .prop_flat_map(move |(mut sizes, axis, flags)| {
            // An axis without elements has no extremum.
            let axis = axis.filter(|_| !sizes.is_empty()).map(|axis| axis.index(sizes.len()));
            for (at, size) in sizes.iter_mut().enumerate() {
                if axis.is_none_or(|axis| axis == at) {
                    *size = (*size).max(1);
                }
            }
            (tensor(dtype, &sizes, Numbers::Any), Just(axis), Just(flags))
        })
        .prop_map(move |(x, axis, (keep_axis, tie_high, dtype))| {
            let attributes = ArgReduce { axis, keep_axis, tie_high, dtype };
            Case::new(vec![x], attributes.clone(), move |graph, x| {
                graph.make(Op::ArgReduce(op, Box::new(attributes.clone())), x)
            })
        })
        .boxed()
}

/// Functions that can be folded in any order, as far as a dtype has them.
pub(crate) fn associative(dtype: DType) -> Vec<BinaryOp> {
    let all = [
        BinaryOp::Add,
        BinaryOp::Multiply,
        BinaryOp::Max,
        BinaryOp::Min,
        BinaryOp::BitwiseXor,
        BinaryOp::LogicalOr,
    ];
    let fits = |op: &BinaryOp| {
        let is_logical = *op == BinaryOp::LogicalOr;
        accepts(&Op::Binary(*op), &[dtype, dtype]) && is_logical == dtype.is_pred()
    };
    all.into_iter().filter(fits).collect()
}

/// The function of an extremum captures a bound half of the time.
fn reduce_fun(op: &Op, dtype: DType) -> BoxedStrategy<Case> {
    let numbers = tolerance::of(op, dtype).numbers;
    (shape(RANKS), select(associative(dtype)), any::<(bool, bool)>())
        .prop_flat_map(move |(sizes, function, flags)| {
            let x = tensor(dtype, &sizes, numbers);
            let scalar = || tensor(dtype, &[], numbers);
            (x, scalar(), scalar(), reduced_axes(sizes.len()), Just((function, flags)))
        })
        .prop_map(move |(x, initial, bound, axes, (function, (keep_axes, captures)))| {
            let axes: Option<Vec<i64>> =
                axes.map(|axes| axes.iter().map(|&axis| axis as i64).collect());
            let captures = captures && matches!(function, BinaryOp::Max | BinaryOp::Min);
            let attributes = (function, axes.clone(), keep_axes, captures);
            Case::new(vec![x, initial, bound], attributes, move |graph, x| {
                let (x, initial, bound) = (x[0], x[1], x[2]);
                graph.reduce_fun(x, initial, axes.as_deref(), keep_axes, |graph, x, y| {
                    let x = if captures { graph.binary(function, x, bound)? } else { x };
                    graph.binary(function, x, y)
                })
            })
        })
        .boxed()
}
