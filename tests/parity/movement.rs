//! Ops that move elements without computing. The results have the same bits.

use std::fmt::Debug;

use nxla::graph::{BinaryOp, Op, Padding};
use nxla::{DType, HostTensor};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::case::{Case, accepts};
use crate::values::{Numbers, RANKS, axes, dtype_among, for_some_axes, full_shape, shape, tensor};

pub(crate) fn strategy(op: &Op, dtype: DType) -> BoxedStrategy<Case> {
    match op {
        Op::Reshape(_) => reshape(dtype),
        Op::Squeeze(_) => squeeze(dtype),
        Op::Transpose(_) => transpose(dtype),
        Op::Reverse(_) => reverse(dtype),
        Op::Broadcast(_) => broadcast(dtype),
        Op::Pad(_) => pad(dtype),
        Op::Concatenate(_) => concatenate(dtype),
        Op::Stack(_) => stack(dtype),
        op @ nxla::graph::outside!(movement) => unreachable!("{} is of another family", op.name()),
    }
}

/// Draws a tensor and attributes that depend on its shape.
fn with_attributes<T: Debug + Clone + 'static>(
    dtype: DType,
    drawn: impl Fn(&[usize]) -> BoxedStrategy<T> + 'static,
) -> BoxedStrategy<(HostTensor, T)> {
    shape(RANKS)
        .prop_flat_map(move |sizes| (tensor(dtype, &sizes, Numbers::Any), drawn(&sizes)))
        .boxed()
}

fn signed_axes(axes: &[usize]) -> Vec<i64> {
    axes.iter().map(|&axis| i64::try_from(axis).unwrap()).collect()
}

/// Axes in another order, neighbors merged, and axes of size 1 in between.
fn reshape(dtype: DType) -> BoxedStrategy<Case> {
    let shapes = |sizes: &[usize]| {
        let count = sizes.len();
        (Just(sizes.to_vec()).prop_shuffle(), vec(any::<bool>(), count), vec(0..=count, 0..=1))
            .prop_map(|(sizes, merges, ones)| {
                let mut result: Vec<usize> = Vec::new();
                for (size, merges) in sizes.into_iter().zip(merges) {
                    match result.last_mut() {
                        Some(last) if merges => *last *= size,
                        _ => result.push(size),
                    }
                }
                ones.iter().for_each(|&at| result.insert(at.min(result.len()), 1));
                result
            })
            .boxed()
    };
    with_attributes(dtype, shapes)
        .prop_map(|(x, sizes)| {
            Case::new(vec![x], sizes.clone(), move |graph, x| graph.reshape(x[0], &sizes[..]))
        })
        .boxed()
}

fn squeeze(dtype: DType) -> BoxedStrategy<Case> {
    with_attributes(dtype, |sizes| vec(any::<bool>(), sizes.len()).boxed())
        .prop_map(|(x, drops)| {
            let axes: Vec<i64> = (x.shape().iter().zip(drops).enumerate())
                .filter(|&(_, (&size, drops))| size == 1 && drops)
                .map(|(axis, _)| i64::try_from(axis).unwrap())
                .collect();
            Case::new(vec![x], axes.clone(), move |graph, x| graph.squeeze(x[0], Some(&axes)))
        })
        .boxed()
}

fn transpose(dtype: DType) -> BoxedStrategy<Case> {
    with_attributes(dtype, |sizes| {
        Just((0..sizes.len()).collect::<Vec<_>>()).prop_shuffle().boxed()
    })
    .prop_map(|(x, order)| {
        let order = signed_axes(&order);
        Case::new(vec![x], order.clone(), move |graph, x| graph.transpose(x[0], Some(&order)))
    })
    .boxed()
}

fn reverse(dtype: DType) -> BoxedStrategy<Case> {
    with_attributes(dtype, |sizes| axes(sizes.len()))
        .prop_map(|(x, axes)| {
            let axes = signed_axes(&axes);
            Case::new(vec![x], axes.clone(), move |graph, x| graph.reverse(x[0], Some(&axes)))
        })
        .boxed()
}

/// Some axes of the result are the operand's, and some of those had size 1.
fn broadcast(dtype: DType) -> BoxedStrategy<Case> {
    shape(RANKS)
        .prop_flat_map(|sizes| {
            let rank = sizes.len();
            (Just(sizes), axes(rank), vec(any::<bool>(), rank))
        })
        .prop_flat_map(move |(sizes, axes, ones)| {
            let operand = axes.iter().map(|&axis| if ones[axis] { 1 } else { sizes[axis] });
            let operand: Vec<usize> = operand.collect();
            (tensor(dtype, &operand, Numbers::Any), Just(sizes), Just(signed_axes(&axes)))
        })
        .prop_map(|(x, sizes, axes)| {
            Case::new(vec![x], (sizes.clone(), axes.clone()), move |graph, x| {
                graph.broadcast(x[0], &sizes[..], Some(&axes))
            })
        })
        .boxed()
}

fn pad(dtype: DType) -> BoxedStrategy<Case> {
    let entry = (-2..=3_i64, -2..=3_i64, 0..=2_usize);
    let neutral = (0, 0, 0);
    (
        with_attributes(dtype, move |sizes| for_some_axes(sizes.len(), neutral, entry.clone())),
        other_dtype(dtype),
    )
        .prop_flat_map(|((x, padding), other)| {
            (Just(x), tensor(other, &[], Numbers::Any), Just(padding))
        })
        .prop_map(|(x, value, padding)| {
            let padding: Vec<Padding> = (x.shape().iter().zip(padding))
                .map(|(&size, (low, high, interior))| {
                    let spread = i64::try_from(size + size.saturating_sub(1) * interior).unwrap();
                    // Negative padding does not exceed the size.
                    let high = high.max(-(spread + low).max(0));
                    let low = low.max(-spread);
                    Padding { low, high: high.max(-(spread + low)), interior }
                })
                .collect();
            Case::new(vec![x, value], padding.clone(), move |graph, x| {
                graph.pad(x[0], x[1], &padding)
            })
        })
        .boxed()
}

/// Draws the dtype of the other operand.
fn other_dtype(dtype: DType) -> BoxedStrategy<DType> {
    let fits = |&other: &DType| accepts(&Op::Binary(BinaryOp::Add), &[dtype, other]);
    let all = DType::ALL.into_iter().filter(fits).collect();
    prop_oneof![2 => Just(dtype), 1 => dtype_among(all)].boxed()
}

fn concatenate(dtype: DType) -> BoxedStrategy<Case> {
    (full_shape(1..=*RANKS.end()), any::<Index>(), vec((0..=3_usize, other_dtype(dtype)), 1..=2))
        .prop_flat_map(move |(sizes, axis, rest)| {
            let axis = axis.index(sizes.len());
            let first = tensor(dtype, &sizes, Numbers::Any);
            let rest = rest.into_iter().map(|(size, dtype)| {
                let mut sizes = sizes.clone();
                sizes[axis] = size;
                tensor(dtype, &sizes, Numbers::Any)
            });
            let parts: Vec<_> = std::iter::once(first).chain(rest).collect();
            (parts, Just(i64::try_from(axis).unwrap()))
        })
        .prop_map(|(parts, axis)| {
            Case::new(parts, axis, move |graph, parts| graph.concatenate(parts, axis))
        })
        .boxed()
}

fn stack(dtype: DType) -> BoxedStrategy<Case> {
    (shape(0..=RANKS.end() - 1), any::<Index>(), vec(other_dtype(dtype), 0..=2))
        .prop_flat_map(move |(sizes, axis, rest)| {
            let dtypes = std::iter::once(dtype).chain(rest);
            let parts: Vec<_> = dtypes.map(|dtype| tensor(dtype, &sizes, Numbers::Any)).collect();
            (parts, Just(i64::try_from(axis.index(sizes.len() + 1)).unwrap()))
        })
        .prop_map(|(parts, axis)| {
            Case::new(parts, axis, move |graph, parts| graph.stack(parts, axis, None))
        })
        .boxed()
}
