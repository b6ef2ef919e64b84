//! Batching rules of element-wise ops: the same op, after ranks are aligned. Entries broadcast from
//! the right, so batch axes must stay left of the longest entry.

use super::batcher::{Batched, Batcher};
use crate::graph::{ExprId, Op, Result};

pub(super) fn batch(batcher: &mut Batcher<'_>, op: &Op, operands: &[Batched]) -> Result<ExprId> {
    match op {
        Op::Unary(_) | Op::AsType(_) | Op::Bitcast(_) => {
            batcher.make(op.clone(), &[operands[0].id])
        }
        Op::Binary(_) | Op::Select => {
            let operands = batcher.align_ranks(operands)?;
            batcher.make(op.clone(), &operands)
        }
        Op::Clip => clip(batcher, operands),
        op @ crate::outside!(elementwise) => unreachable!("{} is of another family", op.name()),
    }
}

/// Batches a clip, whose bounds must be scalars. Bounds that differ between entries become the
/// equivalent maximum and minimum.
fn clip(batcher: &mut Batcher<'_>, operands: &[Batched]) -> Result<ExprId> {
    let [x, min, max] = operands else { unreachable!("clip has three operands") };
    if !min.batched && !max.batched {
        return batcher.make(Op::Clip, &[x.id, min.id, max.id]);
    }
    let aligned = batcher.align_ranks(operands)?;
    let raised = batcher.graph.max(aligned[0], aligned[1])?;
    batcher.graph.min(raised, aligned[2])
}
