//! Counting and identity matrices.

use nxla::DType;
use nxla::graph::Op;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::case::Case;
use crate::values::{RANKS, shape};

pub(crate) fn strategy(op: &Op, dtype: DType) -> BoxedStrategy<Case> {
    match op {
        Op::Iota(_) => iota(dtype),
        Op::Eye(_) => {
            let matrix = move |sizes: Vec<usize>| {
                Case::new(vec![], sizes.clone(), move |graph, _| graph.eye(&sizes[..], dtype))
            };
            shape(2..=*RANKS.end()).prop_map(matrix).boxed()
        }
        op @ nxla::graph::outside!(create) => unreachable!("{} is of another family", op.name()),
    }
}

fn iota(dtype: DType) -> BoxedStrategy<Case> {
    (shape(RANKS), any::<Option<Index>>())
        .prop_map(move |(sizes, axis)| {
            let axis =
                axis.filter(|_| !sizes.is_empty()).map(|axis| axis.index(sizes.len()) as i64);
            Case::new(vec![], (sizes.clone(), axis), move |graph, _| {
                graph.iota(&sizes[..], axis, dtype)
            })
        })
        .boxed()
}
