//! Products of tensors and convolutions.

use nxla::DType;
use nxla::graph::{Broadcast, Conv, Dot, Op};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::case::Case;
use crate::tolerance;
use crate::values::tensor;

pub(crate) fn strategy(op: &Op, dtype: DType) -> BoxedStrategy<Case> {
    match op {
        Op::Dot(_) => dot(op, dtype),
        Op::Conv(_) => conv(op, dtype),
        op @ nxla::graph::outside!(contract) => unreachable!("{} is of another family", op.name()),
    }
}

fn size() -> impl Strategy<Value = usize> + Clone {
    prop_oneof![1 => Just(0_usize), 4 => Just(1), 15 => 2..=4_usize]
}

/// Batch axes come first in both operands; the contracted ones are anywhere behind them. One operand may
/// repeat a smaller tensor along some of the batch, and the other is transposed.
fn dot(op: &Op, dtype: DType) -> BoxedStrategy<Case> {
    let numbers = tolerance::of(op, dtype).numbers;
    let some = |count| vec(size(), 0..=count);
    (some(2), some(2), some(2), some(2))
        .prop_flat_map(move |(batch, contracted, left, right)| {
            let order =
                |free: usize| Just((0..contracted.len() + free).collect::<Vec<_>>()).prop_shuffle();
            let orders = (order(left.len()), order(right.len()));
            (Just((batch, contracted, left, right)), orders)
        })
        .prop_flat_map(move |((batch, contracted, left, right), (left_order, right_order))| {
            let side = |free: &[usize], order: &[usize]| {
                let all: Vec<usize> = contracted.iter().chain(free).copied().collect();
                let sizes: Vec<usize> =
                    batch.iter().copied().chain(order.iter().map(|&at| all[at])).collect();
                let place = |axis| batch.len() + order.iter().position(|&at| at == axis).unwrap();
                (sizes, (0..contracted.len()).map(place).collect::<Box<[usize]>>())
            };
            let (left, left_contract) = side(&left, &left_order);
            let (right, right_contract) = side(&right, &right_order);
            let all: Box<[usize]> = (0..batch.len()).collect();
            let (left_batch, right_batch) = (all.clone(), all);
            let dot = Dot { left_contract, left_batch, right_contract, right_batch };
            let order = |rank: usize| Just((0..rank).collect::<Vec<_>>()).prop_shuffle();
            let orders = [order(left.len()), order(right.len())];
            (Just(([left, right], dot)), 0..=batch.len(), 0..2_usize, orders)
        })
        .prop_flat_map(move |((mut shapes, dot), repeated, side, mut orders)| {
            let order = std::mem::take(&mut orders[1 - side]);
            let permuted = permute(&shapes[1 - side], &order);
            let broadcast = Broadcast {
                shape: shapes[side].clone().into(),
                axes: (0..dot.left_batch.len() - repeated)
                    .chain(dot.left_batch.len()..shapes[side].len())
                    .collect(),
                names: None,
            };
            shapes[1 - side] = permuted;
            shapes[side].drain(dot.left_batch.len() - repeated..dot.left_batch.len());
            let operands = shapes.map(|sizes| tensor(dtype, &sizes, numbers));
            (operands, Just((dot, side, broadcast, order)))
        })
        .prop_map(|(operands, drawn)| {
            Case::new(operands.into(), drawn.clone(), move |graph, x| {
                let (dot, side, broadcast, order) = &drawn;
                let (mut x, side) = ([x[0], x[1]], *side);
                x[side] = graph.make(Op::Broadcast(Box::new(broadcast.clone())), &[x[side]])?;
                x[1 - side] = graph.make(Op::Transpose(order[..].into()), &[x[1 - side]])?;
                graph.make(Op::Dot(Box::new(dot.clone())), &x)
            })
        })
        .boxed()
}

/// Sizes and attributes of one spatial axis.
#[derive(Clone, Debug)]
struct Spatial {
    input: usize,
    kernel: usize,
    stride: usize,
    padding: (i64, i64),
    input_dilation: usize,
    kernel_dilation: usize,
}

fn spatial() -> impl Strategy<Value = Spatial> + Clone {
    let dilations = (1..=2_usize, 1..=2_usize);
    (1..=4_usize, 1..=3_usize, 1..=2_usize, (-1..=2_i64, 0..=2_i64), dilations).prop_map(
        |(input, kernel, stride, padding, (input_dilation, kernel_dilation))| Spatial {
            input,
            kernel,
            stride,
            padding,
            input_dilation,
            kernel_dilation,
        },
    )
}

fn conv(op: &Op, dtype: DType) -> BoxedStrategy<Case> {
    let numbers = tolerance::of(op, dtype).numbers;
    let groups =
        prop_oneof![2 => Just((1, 1)), 1 => (2..=3_usize, Just(1)), 1 => (Just(1), 2..=3_usize)];
    (vec(spatial(), 1..=4), (0..=2_usize, 1..=2_usize, 1..=2_usize), groups)
        .prop_flat_map(|(axes, channels, groups)| {
            let rank = axes.len() + 2;
            let order = || {
                let exchanged = [1, 0].into_iter().chain(2..rank).collect::<Vec<_>>();
                prop_oneof![Just((0..rank).collect::<Vec<_>>()).prop_shuffle(), Just(exchanged)]
            };
            let orders = (order(), order(), order());
            (Just(axes), Just(channels), Just(groups), orders)
        })
        .prop_flat_map(move |(axes, (batch, inputs, outputs), groups, orders)| {
            let (feature_groups, batch_groups) = groups;
            let outputs = outputs * feature_groups * batch_groups;
            let input = [batch * batch_groups, inputs * feature_groups];
            let spatial = axes.iter().map(|axis| axis.input);
            let input: Vec<usize> = input.into_iter().chain(spatial).collect();
            let spatial = axes.iter().map(|axis| axis.kernel);
            let kernel: Vec<usize> = [outputs, inputs].into_iter().chain(spatial).collect();
            let conv = Conv {
                strides: axes.iter().map(|axis| axis.stride).collect(),
                padding: axes.iter().map(|axis| axis.padding).collect(),
                input_dilation: axes.iter().map(|axis| axis.input_dilation).collect(),
                kernel_dilation: axes.iter().map(|axis| axis.kernel_dilation).collect(),
                feature_groups,
                batch_groups,
                input_permutation: orders.0.clone().into(),
                kernel_permutation: orders.1.clone().into(),
                output_permutation: orders.2.into(),
            };
            let operands = [permute(&input, &orders.0), permute(&kernel, &orders.1)]
                .map(|sizes| tensor(dtype, &sizes, numbers));
            (operands, Just(conv))
        })
        .prop_map(|(operands, conv)| {
            Case::new(operands.into(), conv.clone(), move |graph, x| {
                graph.make(Op::Conv(Box::new(conv.clone())), x)
            })
        })
        .boxed()
}

/// Sizes in canonical order, put where a permutation finds them.
fn permute(sizes: &[usize], permutation: &[usize]) -> Vec<usize> {
    let mut permuted = vec![0; sizes.len()];
    for (&size, &axis) in sizes.iter().zip(permutation) {
        permuted[axis] = size;
    }
    permuted
}
