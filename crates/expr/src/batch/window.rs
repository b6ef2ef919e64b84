//! Batching rules of windows: the windows have size 1 along batch axes.

use nxla_tensor::Scalar;

use super::batcher::{Batched, Batcher, ids};
use super::entries;
use crate::graph::{ExprId, Op, Result, ScatterOp, Type, WindowAttributes, WindowFun};

pub(super) fn batch(
    batcher: &mut Batcher<'_>,
    op: &Op,
    operands: &[Batched],
    ty: &Type,
) -> Result<ExprId> {
    match op {
        Op::Window(reduction, window) => {
            let window = extend_window(batcher, window);
            batcher.make(Op::Window(*reduction, Box::new(window)), &[operands[0].id])
        }
        Op::WindowFun(attributes) => {
            // As for `reduce`, one function folds all entries.
            if operands[1..].iter().any(|operand| operand.batched) {
                return entries::one_by_one(batcher, op, operands, ty);
            }
            let window = extend_window(batcher, &attributes.window);
            let function = attributes.function.clone();
            batcher.make(Op::WindowFun(Box::new(WindowFun { window, function })), &ids(operands))
        }
        Op::WindowScatter(extremum, window) => scatter(batcher, *extremum, window, operands),
        op @ crate::outside!(window) => unreachable!("{} is of another family", op.name()),
    }
}

fn extend_window(batcher: &Batcher<'_>, window: &WindowAttributes) -> WindowAttributes {
    WindowAttributes {
        dimensions: batcher.prepend_batch(1, &window.dimensions),
        strides: batcher.prepend_batch(1, &window.strides),
        padding: batcher.prepend_batch((0, 0), &window.padding),
        dilations: batcher.prepend_batch(1, &window.dilations),
    }
}

/// Batches a window scatter. The initial value is only added, so one that differs between entries
/// is added after the scatter.
fn scatter(
    batcher: &mut Batcher<'_>,
    extremum: ScatterOp,
    window: &WindowAttributes,
    operands: &[Batched],
) -> Result<ExprId> {
    let [x, source, initial] = *operands else { unreachable!("a scatter has three operands") };
    let op = Op::WindowScatter(extremum, Box::new(extend_window(batcher, window)));
    let (x_id, source) = (batcher.lift(x)?, batcher.lift(source)?);
    if !initial.batched {
        return batcher.make(op, &[x_id, source, initial.id]);
    }
    let dtype = batcher.graph.dtype(initial.id);
    let zero = batcher.graph.scalar_constant(Scalar::zero(dtype), dtype)?;
    let landed = batcher.make(op, &[x_id, source, zero])?;
    let rank = batcher.entry_shape(x).rank();
    let initial = batcher.widen(initial, rank)?;
    batcher.graph.add(landed, initial)
}
