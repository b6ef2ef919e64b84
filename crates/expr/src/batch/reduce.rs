//! Batching rules of reductions: reduced axes shift, and "all axes" means all axes of an entry.

use super::batcher::{Batched, Batcher, ids};
use super::entries;
use crate::graph::{ArgReduce, ExprId, Op, Reduce, ReduceFun, Result, Type};

pub(super) fn batch(
    batcher: &mut Batcher<'_>,
    op: &Op,
    operands: &[Batched],
    ty: &Type,
) -> Result<ExprId> {
    let x = operands[0];
    match op {
        Op::Reduce(reduction, attributes) => {
            let reduce = shift_axes(batcher, attributes, x);
            batcher.make(Op::Reduce(*reduction, Box::new(reduce)), &[x.id])
        }
        Op::ArgReduce(extremum, attributes) => {
            let (x, axis) = match attributes.axis {
                Some(axis) => (x.id, axis),
                None => {
                    let size = batcher.entry_shape(x).size();
                    let flat = batcher.batch_shape(&[size]);
                    (batcher.graph.reshape(x.id, flat)?, 0)
                }
            };
            let keep_axis = attributes.keep_axis && attributes.axis.is_some();
            let axis = Some(batcher.shift(axis));
            let attributes = ArgReduce { axis, keep_axis, ..(**attributes).clone() };
            batcher.make(Op::ArgReduce(*extremum, Box::new(attributes)), &[x])
        }
        Op::ReduceFun(attributes) => {
            // One function folds all entries, so all entries must share the initial value and the
            // captures.
            if operands[1..].iter().any(|operand| operand.batched) {
                return entries::one_by_one(batcher, op, operands, ty);
            }
            let reduce = shift_axes(batcher, &attributes.reduce, x);
            let function = attributes.function.clone();
            batcher.make(Op::ReduceFun(Box::new(ReduceFun { reduce, function })), &ids(operands))
        }
        op @ crate::outside!(reduce) => unreachable!("{} is of another family", op.name()),
    }
}

fn shift_axes(batcher: &Batcher<'_>, attributes: &Reduce, x: Batched) -> Reduce {
    let axes = match &attributes.axes {
        Some(axes) => batcher.shift_all(axes),
        None => (0..batcher.entry_shape(x).rank()).map(|axis| batcher.shift(axis)).collect(),
    };
    Reduce { axes: Some(axes), keep_axes: attributes.keep_axes }
}
