//! Reductions over sliding windows, and their scatters.

use nxla::graph::build::{WindowOptions, WindowPadding};
use nxla::graph::{Graph, Op, ScatterOp, WindowAttributes, WindowOp};
use nxla::{DType, Scalar, TensorType};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::case::{Case, Other, differences};
use crate::common::require_plugin;
use crate::reduce::associative;
use crate::tolerance::{self, EXACT};
use crate::values::{Numbers, RANKS, for_some_axes, host, shape, tensor};

pub(crate) fn strategy(op: &Op, dtype: DType) -> BoxedStrategy<Case> {
    match op {
        Op::Window(reduction, _) => uniform(op, *reduction, dtype),
        Op::WindowFun(_) => window_fun(op, dtype),
        Op::WindowScatter(scatter, _) => window_scatter(op, *scatter, dtype),
        op @ nxla::graph::outside!(window) => unreachable!("{} is of another family", op.name()),
    }
}

/// A shape, and windows over it.
fn windows() -> BoxedStrategy<(Vec<usize>, WindowAttributes)> {
    shape(RANKS)
        .prop_flat_map(|sizes| {
            let rank = sizes.len();
            let axes = (vec(1..=3_usize, rank), vec(1..=3_usize, rank), vec(1..=2_usize, rank));
            (Just(sizes), axes, for_some_axes(rank, (0, 0), (-1..=2_i64, -1..=2_i64)))
        })
        .prop_map(|(sizes, (dimensions, strides, dilations), padding)| {
            // Negative padding must not exceed the size.
            let padding = (padding.iter().zip(&sizes))
                .map(
                    |(&(low, high), &size)| {
                        if size < 2 { (low.abs(), high.abs()) } else { (low, high) }
                    },
                )
                .collect();
            let [dimensions, strides, dilations] =
                [dimensions, strides, dilations].map(Vec::into_boxed_slice);
            (sizes, WindowAttributes { dimensions, strides, padding, dilations })
        })
        .boxed()
}

fn uniform(op: &Op, reduction: WindowOp, dtype: DType) -> BoxedStrategy<Case> {
    let numbers = tolerance::of(op, dtype).numbers;
    windows()
        .prop_flat_map(move |(sizes, window)| (tensor(dtype, &sizes, numbers), Just(window)))
        .prop_map(move |(x, window)| {
            Case::new(vec![x], window.clone(), move |graph, x| {
                graph.make(Op::Window(reduction, Box::new(window.clone())), x)
            })
        })
        .boxed()
}

fn window_fun(op: &Op, dtype: DType) -> BoxedStrategy<Case> {
    let numbers = tolerance::of(op, dtype).numbers;
    (windows(), select(associative(dtype)))
        .prop_flat_map(move |((sizes, window), function)| {
            let (x, initial) = (tensor(dtype, &sizes, numbers), tensor(dtype, &[], numbers));
            (x, initial, Just(window), Just(function))
        })
        .prop_map(move |(x, initial, window, function)| {
            Case::new(vec![x, initial], (function, window.clone()), move |graph, x| {
                let options = WindowOptions {
                    strides: Some(window.strides.to_vec()),
                    padding: WindowPadding::Explicit(window.padding.to_vec()),
                    dilations: Some(window.dilations.to_vec()),
                };
                graph.window_reduce(x[0], x[1], &window.dimensions, &options, |graph, x, y| {
                    graph.binary(function, x, y)
                })
            })
        })
        .boxed()
}

fn window_scatter(op: &Op, scatter: ScatterOp, dtype: DType) -> BoxedStrategy<Case> {
    let numbers = tolerance::of(op, dtype).numbers;
    windows()
        .prop_flat_map(move |(sizes, window)| {
            let source = tensor(dtype, &counts(&sizes, &window), Numbers::Tame);
            (
                tensor(dtype, &sizes, numbers),
                source,
                tensor(dtype, &[], Numbers::Tame),
                Just(window),
            )
        })
        .prop_map(move |(x, source, initial, window)| {
            Case::new(vec![x, source, initial], window.clone(), move |graph, x| {
                graph.make(Op::WindowScatter(scatter, Box::new(window.clone())), x)
            })
        })
        .boxed()
}

/// Returns the number of windows along each axis by the type rule.
fn counts(sizes: &[usize], window: &WindowAttributes) -> Vec<usize> {
    let mut graph = Graph::new();
    let x = graph.parameter(0, TensorType::new(DType::F32, sizes));
    let sum = graph.make(Op::Window(WindowOp::Sum, Box::new(window.clone())), &[x]).unwrap();
    graph.shape(sum).to_vec()
}

/// StableHLO has no scatter of dilated windows, so the module contains a composition.
#[test]
fn scatters_of_dilated_windows() {
    require_plugin!();
    let window = WindowAttributes {
        dimensions: [2].into(),
        strides: [1].into(),
        padding: [(0, 0)].into(),
        dilations: [2].into(),
    };
    let ones = |size: usize| host(DType::F32, [size], &vec![Scalar::Float(1.0); size]);
    let initial = host(DType::F32, [], &[Scalar::Float(0.0)]);
    let case = Case::new(vec![ones(4), ones(2), initial], window.clone(), move |graph, x| {
        graph.make(Op::WindowScatter(ScatterOp::Max, Box::new(window.clone())), x)
    });
    assert_eq!(differences(&[(&case, EXACT)], Other::Xla).unwrap(), [None]);
}
