//! Arithmetic, functions, comparisons and conversions, element by element.

use nxla::graph::{BinaryOp, Op, UnaryOp};
use nxla::{DType, HostTensor};
use proptest::prelude::*;

use crate::case::{Case, accepts};
use crate::tolerance;
use crate::values::{Numbers, RANKS, broadcastable, dtype_among, shape, tensor};

pub(crate) fn strategy(op: &Op, dtype: DType) -> BoxedStrategy<Case> {
    match op {
        Op::Unary(op) => unary(*op, dtype),
        Op::Binary(op) => binary(*op, dtype),
        Op::Select => select(dtype),
        Op::Clip => clip(dtype),
        Op::AsType(_) => conversions(dtype, Op::AsType),
        Op::Bitcast(_) => conversions(dtype, Op::Bitcast),
        op @ nxla::graph::outside!(elementwise) => {
            unreachable!("{} is of another family", op.name())
        }
    }
}

fn unary(op: UnaryOp, dtype: DType) -> BoxedStrategy<Case> {
    let numbers = tolerance::of(&Op::Unary(op), dtype).numbers;
    shape(RANKS)
        .prop_flat_map(move |sizes| tensor(dtype, &sizes, numbers))
        .prop_map(move |x| Case::new(vec![x], (), move |graph, x| graph.make(Op::Unary(op), x)))
        .boxed()
}

/// Tensors of these dtypes that broadcast against each other.
fn operands(dtypes: Vec<DType>, numbers: Numbers) -> BoxedStrategy<Vec<HostTensor>> {
    broadcastable(dtypes.len())
        .prop_flat_map(move |shapes| {
            let tensors = dtypes.iter().zip(&shapes);
            tensors.map(|(&dtype, sizes)| tensor(dtype, sizes, numbers)).collect::<Vec<_>>()
        })
        .boxed()
}

/// Draws the dtype of the other operand: usually the same one, sometimes another accepted one.
/// A real operand is drawn only after a complex first one, because the tolerance depends on the first.
fn partner(op: Op, dtype: DType) -> BoxedStrategy<DType> {
    let fits = |&other: &DType| {
        accepts(&op, &[dtype, other]) && (dtype.is_complex() || !other.is_complex())
    };
    let others = DType::ALL.into_iter().filter(fits).collect();
    prop_oneof![2 => Just(dtype), 1 => dtype_among(others)].boxed()
}

fn binary(op: BinaryOp, dtype: DType) -> BoxedStrategy<Case> {
    let numbers = tolerance::of(&Op::Binary(op), dtype).numbers;
    (partner(Op::Binary(op), dtype), any::<bool>())
        .prop_flat_map(move |(other, turned)| {
            operands(if turned { vec![other, dtype] } else { vec![dtype, other] }, numbers)
        })
        .prop_map(move |x| Case::new(x, (), move |graph, x| graph.make(Op::Binary(op), x)))
        .boxed()
}

fn select(dtype: DType) -> BoxedStrategy<Case> {
    (dtype_among(DType::ALL.to_vec()), partner(Op::Binary(BinaryOp::Add), dtype))
        .prop_flat_map(move |(predicate, other)| {
            operands(vec![predicate, dtype, other], Numbers::Any)
        })
        .prop_map(|x| Case::new(x, (), |graph, x| graph.make(Op::Select, x)))
        .boxed()
}

fn clip(dtype: DType) -> BoxedStrategy<Case> {
    let bound = || partner(Op::Binary(BinaryOp::Max), dtype);
    (shape(RANKS), bound(), bound())
        .prop_flat_map(move |(sizes, low, high)| {
            let operands = [(dtype, &sizes[..]), (low, &[]), (high, &[])];
            operands.map(|(dtype, sizes)| tensor(dtype, sizes, Numbers::Any))
        })
        .prop_map(|x| Case::new(x.into(), (), |graph, x| graph.make(Op::Clip, x)))
        .boxed()
}

/// One tensor in every dtype that it can become.
fn conversions(dtype: DType, op: fn(DType) -> Op) -> BoxedStrategy<Case> {
    let fits = |&other: &DType| accepts(&op(other), &[dtype]);
    let others: Vec<DType> = DType::ALL.into_iter().filter(fits).collect();
    shape(RANKS)
        .prop_flat_map(move |sizes| tensor(dtype, &sizes, Numbers::Any))
        .prop_map(move |x| {
            let others = others.clone();
            Case::of_many(vec![x], others.clone(), move |graph, x| {
                others.iter().map(|&other| graph.make(op(other), x)).collect()
            })
        })
        .boxed()
}
