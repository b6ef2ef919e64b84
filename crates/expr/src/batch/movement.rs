//! Batching rules of movement ops: axes shift by the number of batch axes.

use nxla_tensor::{DType, Names, Scalar};

use super::batcher::{Batched, Batcher};
use crate::graph::{Broadcast, ExprId, Op, Padding, Reshape, Result, Stack, TensorType};

pub(super) fn batch(batcher: &mut Batcher<'_>, op: &Op, operands: &[Batched]) -> Result<ExprId> {
    let x = operands[0];
    match op {
        Op::Reshape(attributes) => {
            let shape = batcher.batch_shape(&attributes.shape);
            let names = prefixed_names(batcher, attributes.names.as_ref());
            batcher.make(Op::Reshape(Box::new(Reshape { shape, names })), &[x.id])
        }
        Op::Squeeze(axes) => {
            let axes = batcher.shift_all(axes);
            batcher.make(Op::Squeeze(axes), &[x.id])
        }
        Op::Transpose(permutation) => batcher.permute_entry(x.id, permutation),
        Op::Reverse(axes) => {
            let axes = batcher.shift_all(axes);
            batcher.make(Op::Reverse(axes), &[x.id])
        }
        Op::Broadcast(attributes) => {
            let broadcast = Broadcast {
                shape: batcher.batch_shape(&attributes.shape),
                axes: batcher.with_batch_axes(&attributes.axes),
                names: prefixed_names(batcher, attributes.names.as_ref()),
            };
            batcher.make(Op::Broadcast(Box::new(broadcast)), &[x.id])
        }
        Op::Pad(config) => pad(batcher, config, operands),
        Op::Concatenate(axis) => {
            let axis = batcher.shift(*axis);
            let parts = batcher.lift_all(operands)?;
            batcher.make(Op::Concatenate(axis), &parts)
        }
        Op::Stack(attributes) => {
            let Stack { axis, name } = &**attributes;
            let stack = Stack { axis: batcher.shift(*axis), name: name.clone() };
            let parts = batcher.lift_all(operands)?;
            batcher.make(Op::Stack(Box::new(stack)), &parts)
        }
        op @ crate::outside!(movement) => unreachable!("{} is of another family", op.name()),
    }
}

fn prefixed_names(batcher: &Batcher<'_>, names: Option<&Names>) -> Option<Names> {
    names.map(|names| Names::new(batcher.prepend_batch(None, names)))
}

/// Batches a pad with one padding value per op. Padding values that differ between entries are
/// selected by a mask that is false at the elements of the tensor.
fn pad(batcher: &mut Batcher<'_>, config: &[Padding], operands: &[Batched]) -> Result<ExprId> {
    let [x, value] = *operands else { unreachable!("pad has two operands") };
    let around = batcher.prepend_batch(Padding::NONE, config);
    if !value.batched {
        return batcher.make(Op::Pad(around), &[x.id, value.id]);
    }
    let entry = batcher.entry_shape(x);
    let own = TensorType::new(DType::Pred, entry.clone());
    let own = batcher.graph.constant(Scalar::one(DType::Pred), own)?;
    let none = batcher.graph.scalar_constant(Scalar::zero(DType::Pred), DType::Pred)?;
    let mask = batcher.make(Op::Pad(config.into()), &[own, none])?;
    let dtype = batcher.graph.dtype(x.id);
    let zero = batcher.graph.scalar_constant(Scalar::zero(dtype), dtype)?;
    let config = if x.batched { around } else { config.into() };
    let padded = batcher.make(Op::Pad(config), &[x.id, zero])?;
    let value = batcher.widen(value, entry.rank())?;
    batcher.make(Op::Select, &[mask, padded, value])
}
