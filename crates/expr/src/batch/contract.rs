//! Batching rules of contractions. For `dot`, batch axes become batch axes of the product if both
//! operands have them, and free axes otherwise. Convolutions have no batch axes for kernels, so
//! entries become groups.

use nxla_tensor::{Shape, inverse_permutation};

use super::batcher::{Batched, Batcher};
use crate::graph::{Axes, Conv, Dot, ExprId, Op, Result};

pub(super) fn batch(batcher: &mut Batcher<'_>, op: &Op, operands: &[Batched]) -> Result<ExprId> {
    let [left, right] = *operands else { unreachable!("a product has two operands") };
    match op {
        Op::Dot(attributes) => dot(batcher, attributes, left, right),
        Op::Conv(attributes) => conv(batcher, attributes, left, right),
        op @ crate::outside!(contract) => unreachable!("{} is of another family", op.name()),
    }
}

fn dot(b: &mut Batcher<'_>, dot: &Dot, left: Batched, right: Batched) -> Result<ExprId> {
    let (left_id, right_id) = (b.strip_names(left.id)?, b.strip_names(right.id)?);
    let own = dot.left_batch.len();
    if left.batched && right.batched {
        let attributes = Dot {
            left_contract: b.shift_all(&dot.left_contract),
            left_batch: b.with_batch_axes(&dot.left_batch),
            right_contract: b.shift_all(&dot.right_contract),
            right_batch: b.with_batch_axes(&dot.right_batch),
        };
        return b.make(Op::Dot(Box::new(attributes)), &[left_id, right_id]);
    }
    // The batch axes of the op must lead, so the batch follows them: it is then a free axis, and
    // the first free axis of its operand in the result.
    let mut attributes = dot.clone();
    let position = if left.batched {
        attributes.left_contract = b.shift_all(&dot.left_contract);
        own
    } else {
        attributes.right_contract = b.shift_all(&dot.right_contract);
        b.graph.shape(left_id).rank() - dot.left_contract.len()
    };
    let id = if left.batched { left_id } else { right_id };
    let moved = b.move_batch_behind(id, own)?;
    let operands = if left.batched { [moved, right_id] } else { [left_id, moved] };
    let product = b.make(Op::Dot(Box::new(attributes)), &operands)?;
    b.bring_forward(product, position)
}

/// Merges the entries of a convolution into another axis. Entries of the input alone are merged
/// into the batch of the convolution, entries of the kernel alone into its output channels, and
/// entries of both into groups. If the convolution has groups and only one operand has entries, the
/// entries are merged inside each group, so that each group still combines corresponding channels.
fn conv(b: &mut Batcher<'_>, conv: &Conv, input: Batched, kernel: Batched) -> Result<ExprId> {
    let count: usize = b.sizes.iter().product();
    if count == 0 {
        return empty(b, conv, input, kernel);
    }
    let input_id = canonical(b, input, &conv.input_permutation, count)?;
    let kernel_id = canonical(b, kernel, &conv.kernel_permutation, count)?;
    let rank = conv.input_permutation.len();
    let identity: Axes = (0..rank).collect();
    let mut attributes = Conv {
        input_permutation: identity.clone(),
        kernel_permutation: identity.clone(),
        output_permutation: identity,
        ..conv.clone()
    };
    // `axis` of the result contains the entries, inside of `groups` groups.
    let (input_id, kernel_id, (axis, groups)) = match (input.batched, kernel.batched) {
        (true, false) => {
            let groups = conv.batch_groups;
            (fold(b, input_id, 1, groups)?, kernel_id, (0, 1))
        }
        (false, true) => {
            let groups = conv.batch_groups.max(conv.feature_groups);
            (input_id, fold(b, kernel_id, 1, groups)?, (1, groups))
        }
        (true, true) if conv.batch_groups > 1 => {
            attributes.batch_groups *= count;
            (fold(b, input_id, 1, 1)?, fold(b, kernel_id, 1, 1)?, (1, 1))
        }
        (true, true) => {
            attributes.feature_groups *= count;
            (fold(b, input_id, 2, 1)?, fold(b, kernel_id, 1, 1)?, (1, 1))
        }
        (false, false) => unreachable!("an operand has batch axes"),
    };
    let result = b.make(Op::Conv(Box::new(attributes)), &[input_id, kernel_id])?;

    // Splits the axis and moves the entries to the front.
    let mut sizes = b.graph.shape(result).to_vec();
    let own = sizes[axis] / count;
    sizes.splice(axis..=axis, [groups, count, own / groups]);
    let split = b.graph.reshape(result, sizes.clone())?;
    let order: Axes = std::iter::once(axis + 1)
        .chain((0..sizes.len()).filter(|&other| other != axis + 1))
        .collect();
    let moved = b.make(Op::Transpose(order), &[split])?;
    sizes.splice(axis..axis + 3, [own]);
    let unfolded = b.batch_shape(&sizes);
    let unfolded = b.graph.reshape(moved, unfolded)?;
    b.permute_entry(unfolded, &inverse_permutation(&conv.output_permutation))
}

/// Returns the operand in canonical layout without names; a batch becomes one leading axis.
fn canonical(b: &mut Batcher<'_>, x: Batched, order: &[usize], count: usize) -> Result<ExprId> {
    let id = b.strip_names(x.id)?;
    if !x.batched {
        return b.make(Op::Transpose(order.into()), &[id]);
    }
    let id = b.permute_entry(id, order)?;
    let entry = b.entry_shape(Batched::each(id));
    let shape: Shape = std::iter::once(count).chain(entry.iter().copied()).collect();
    b.graph.reshape(id, shape)
}

/// Merges the leading axis of entries into another axis, inside each of its groups.
fn fold(b: &mut Batcher<'_>, x: ExprId, axis: usize, groups: usize) -> Result<ExprId> {
    let mut sizes = b.graph.shape(x).to_vec();
    let (count, own) = (sizes[0], sizes[axis]);
    sizes.splice(axis..=axis, [groups, own / groups]);
    let grouped = b.graph.reshape(x, sizes.clone())?;
    let order: Axes = (1..=axis).chain([0]).chain(axis + 1..sizes.len()).collect();
    let moved = b.make(Op::Transpose(order), &[grouped])?;
    sizes.remove(0);
    sizes.splice(axis - 1..=axis, [count * own]);
    b.graph.reshape(moved, sizes)
}

/// Returns the result for a batch without entries, for which the number of groups would be zero.
fn empty(b: &mut Batcher<'_>, conv: &Conv, input: Batched, kernel: Batched) -> Result<ExprId> {
    let one = |b: &mut Batcher<'_>, x: Batched| -> Result<ExprId> {
        let (dtype, shape) = (b.graph.dtype(x.id), b.entry_shape(x));
        let ty = crate::TensorType::new(dtype, shape);
        b.graph.constant(nxla_tensor::Scalar::zero(dtype), ty)
    };
    let (input, kernel) = (one(b, input)?, one(b, kernel)?);
    let entry = b.make(Op::Conv(Box::new(conv.clone())), &[input, kernel])?;
    b.lift(Batched::from_shared(entry))
}
