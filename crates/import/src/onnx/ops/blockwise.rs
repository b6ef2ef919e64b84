//! Weights with a scale for each block, in integers that may share a byte.

use nxla_expr::ExprId;
use nxla_expr::build::{Formula, SliceStart};
use nxla_tensor::{DType, Shape};

use super::quantize::repeat_blocks;
use super::{Operator, operator};
use crate::numbers::{to_f64, to_i64};
use crate::onnx::error::{Built, invalid, unsupported};
use crate::onnx::node::Call;

/// The operators of this family.
pub(super) const OPERATORS: &[Operator] = &[
    operator("com.microsoft:GatherBlockQuantized", gather_blocks),
    operator("com.microsoft:MatMulNBits", matmul_n_bits),
];

/// Returns the bits of an integer, which divide a byte.
fn bits(call: &Call<'_, '_, '_>) -> Built<usize> {
    match call.int("bits", 4)? {
        2 => Ok(2),
        4 => Ok(4),
        8 => Ok(8),
        other => unsupported(format!("bits: must be 2, 4 or 8; got {other}")),
    }
}

/// Returns the integers that share the bytes of the last axis, lowest bits first.
fn unpack(call: &mut Call<'_, '_, '_>, packed: ExprId, bits: usize) -> Built<ExprId> {
    if bits == 8 {
        return Ok(packed);
    }
    let mut shape = call.shape(packed);
    let Some(last) = shape.rank().checked_sub(1) else {
        return invalid(format!("input: must have an axis; got {}", call.ty(packed)));
    };
    let mask = call.scalar_of(to_f64((1 << bits) - 1), DType::U8)?;
    let mut parts = Vec::with_capacity(8 / bits);
    for shift in (0..8).step_by(bits) {
        let shift = call.scalar_of(to_f64(shift), DType::U8)?;
        let graph = call.graph();
        let shifted = graph.right_shift(packed, shift)?;
        parts.push(graph.bitwise_and(shifted, mask)?);
    }
    shape.as_mut_slice()[last] = shape[last].saturating_mul(8 / bits);
    let graph = call.graph();
    let stacked = graph.stack(&parts, -1, None)?;
    Ok(graph.reshape(stacked, shape)?)
}

/// Returns the first elements along an axis.
fn take_first(call: &mut Call<'_, '_, '_>, x: ExprId, axis: usize, count: usize) -> Built<ExprId> {
    Ok(call.graph().slice_along_axis(x, SliceStart::at(0), count, to_i64(axis), 1)?)
}

/// The weights of a matrix product, `[outputs, inputs]`.
struct Weights {
    outputs: usize,
    inputs: usize,
    block: usize,
    bits: usize,
}

impl Weights {
    fn blocks(&self) -> usize {
        self.inputs.div_ceil(self.block)
    }

    /// Returns the integers, `[outputs, blocks * block]`. The bytes have an axis for the blocks, or
    /// the bytes of all blocks are one axis.
    fn integers(&self, call: &mut Call<'_, '_, '_>, packed: ExprId) -> Built<ExprId> {
        if call.dtype(packed) != DType::U8 {
            let found = call.ty(packed);
            return unsupported(format!("B: must contain bytes of the dtype u8; got {found}"));
        }
        let bytes = self.blocks().saturating_mul(self.block.saturating_mul(self.bits).div_ceil(8));
        let packed = call.graph().reshape(packed, [self.outputs, bytes])?;
        unpack(call, packed, self.bits)
    }

    /// Returns the zero points, `[outputs, blocks]`. Bytes are packed as the weights are.
    fn zero_points(&self, call: &mut Call<'_, '_, '_>, scales: ExprId) -> Built<ExprId> {
        let Some(zero) = call.optional(3) else {
            return call.scalar(to_f64(1 << (self.bits - 1)), scales);
        };
        if call.dtype(zero) != DType::U8 {
            return Ok(call.graph().reshape(zero, [self.outputs, self.blocks()])?);
        }
        let bytes = (self.blocks().saturating_mul(self.bits)).div_ceil(8);
        let zero = call.graph().reshape(zero, [self.outputs, bytes])?;
        let zero = unpack(call, zero, self.bits)?;
        take_first(call, zero, 1, self.blocks())
    }

    /// Returns the weights, `(integer - zero point) * scale`. `group` holds the block of each input;
    /// by default, blocks follow each other.
    fn matrix(
        &self,
        call: &mut Call<'_, '_, '_>,
        [packed, scales]: [ExprId; 2],
        group: Option<ExprId>,
    ) -> Built<ExprId> {
        let (outputs, blocks) = (self.outputs, self.blocks());
        let mut integers = self.integers(call, packed)?;
        let mut scales = call.graph().reshape(scales, [outputs, blocks])?;
        let mut zero = self.zero_points(call, scales)?;
        if let Some(group) = group {
            let group = take_first(call, group, 0, self.inputs)?;
            integers = take_first(call, integers, 1, self.inputs)?;
            scales = call.graph().take(scales, group, 1)?;
            if call.rank(zero) > 0 {
                zero = call.graph().take(zero, group, 1)?;
            }
            return dequantize(call, integers, scales, Some(zero));
        }
        let graph = call.graph();
        integers = graph.reshape(integers, [outputs, blocks, self.block])?;
        scales = graph.reshape(scales, [outputs, blocks, 1])?;
        if graph.shape(zero).rank() > 0 {
            zero = graph.reshape(zero, [outputs, blocks, 1])?;
        }
        let matrix = dequantize(call, integers, scales, Some(zero))?;
        let matrix = call.graph().reshape(matrix, [outputs, blocks.saturating_mul(self.block)])?;
        take_first(call, matrix, 1, self.inputs)
    }
}

/// Returns the product with weights of few bits, `(weight - zero point) * scale`, and adds a bias.
fn matmul_n_bits(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let [x, packed, scales] = call.inputs()?;
    let weights = Weights {
        outputs: call.positive("N", 0)?,
        inputs: call.positive("K", 0)?,
        block: call.positive("block_size", 0)?,
        bits: bits(call)?,
    };
    let layout = call.int("weight_prepacked", 0)?;
    if layout != 0 {
        let why = format!("must be 0; got {layout}: the layout depends on the device");
        return unsupported(format!("weight_prepacked: {why}"));
    }
    let dtype = call.dtype(x);
    let product = if call.shape(packed).size() == 0 {
        // A projection without weights returns zeros. Weights that are cut off still have scales.
        if call.shape(scales).size() != 0 {
            let (packed, scales) = (call.ty(packed), call.ty(scales));
            return invalid(format!("B: must have elements for the scales {scales}; got {packed}"));
        }
        let mut shape = call.shape(x);
        match shape.as_mut_slice().last_mut() {
            Some(last) => *last = weights.outputs,
            None => return invalid(format!("A: must have an axis; got {}", call.ty(x))),
        }
        let zero = call.scalar(0.0, x)?;
        call.broadcast(zero, &shape)?
    } else {
        let group = call.optional(4);
        let matrix = weights.matrix(call, [packed, scales], group)?;
        let graph = call.graph();
        let matrix = graph.as_type(matrix, dtype)?;
        let matrix = graph.transpose(matrix, None)?;
        graph.matmul(x, matrix)?
    };
    let result = match call.optional(5) {
        Some(bias) => call.graph().add(product, bias)?,
        None => product,
    };
    Ok(vec![result])
}

/// Returns `(x - zero) * scale` in the dtype of the scale.
fn dequantize(
    call: &mut Call<'_, '_, '_>,
    x: ExprId,
    scale: ExprId,
    zero: Option<ExprId>,
) -> Built<ExprId> {
    let formula = Formula::new(call.graph());
    let scale = formula.term(scale);
    let mut wide = formula.term(x).as_type(scale.dtype());
    if let Some(zero) = zero {
        wide = wide - formula.term(zero).as_type(scale.dtype());
    }
    Ok((wide * scale).id()?)
}

/// Gathers entries of a table, and dequantizes them. The entry of an index out of range is zero.
fn gather_blocks(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let [mut table, indices, mut scales] = call.inputs()?;
    let (rank, dtype) = (call.rank(table), call.dtype(table));
    let bits = if dtype == DType::U8 { bits(call)? } else { 8 };
    let along = call.axis(call.int("gather_axis", 0)?, rank)?;
    let mut axis = call.axis(call.int("quantize_axis", 1)?, rank)?;
    let mut zero = call.optional(3);
    for (part, name) in [(Some(scales), "scales"), (zero, "zero_points")] {
        if let Some(part) = part.filter(|&part| call.rank(part) != rank) {
            return invalid(format!("{name}: must have {rank} axes; got {}", call.ty(part)));
        }
    }
    // Entries are gathered before the conversion to floats, unless a block contains several entries.
    let is_gathered = along != axis;
    if is_gathered && bits < 8 && along + 1 == rank {
        return unsupported("gather_axis: must be 0 for integers that share a byte");
    }
    let mut size = call.shape(table)[along];
    let last = call.shape(scales)[rank - 1];
    if is_gathered {
        for part in [&mut table, &mut scales].into_iter().chain(&mut zero) {
            *part = gather_entries(call, *part, indices, along, size)?;
        }
        if along < axis {
            axis = axis + call.rank(indices) - 1;
        }
    }
    table = unpack(call, table, bits)?;
    zero = match zero {
        Some(zero) if bits < 8 => {
            let zero = unpack(call, zero, bits)?;
            let at = call.rank(zero) - 1;
            Some(take_first(call, zero, at, last)?)
        }
        None if dtype == DType::U8 => Some(call.scalar(to_f64(1 << (bits - 1)), scales)?),
        zero => zero,
    };
    let length = call.shape(table)[axis];
    let block = match usize::try_from(call.int("block_size", 128)?) {
        Ok(0) if dtype.is_float() => length,
        Ok(block) if block > 0 => block,
        _ => return invalid("block_size: must be positive"),
    };
    scales = repeat_blocks(call, scales, (axis, block, length))?;
    if let Some(zero) = zero.as_mut().filter(|zero| call.rank(**zero) > 0) {
        *zero = repeat_blocks(call, *zero, (axis, block, length))?;
    }
    let mut result = dequantize(call, table, scales, zero)?;
    if !is_gathered {
        size = length;
        result = call.graph().take_from_end(result, indices, to_i64(along))?;
    }
    Ok(vec![clear_missing(call, result, indices, (along, size))?])
}

/// Returns the entries of an axis at indices. A part of size 1 belongs to all entries.
fn gather_entries(
    call: &mut Call<'_, '_, '_>,
    part: ExprId,
    indices: ExprId,
    along: usize,
    size: usize,
) -> Built<ExprId> {
    let shape = call.shape(part);
    if shape[along] == size {
        return Ok(call.graph().take_from_end(part, indices, to_i64(along))?);
    }
    let ones = std::iter::repeat_n(1, call.rank(indices));
    let aligned = shape[..along].iter().copied().chain(ones);
    let aligned: Shape = aligned.chain(shape[along + 1..].iter().copied()).collect();
    Ok(call.graph().reshape(part, aligned)?)
}

/// Replaces entries by zeros where an index is out of the range of an axis.
fn clear_missing(
    call: &mut Call<'_, '_, '_>,
    result: ExprId,
    indices: ExprId,
    (along, size): (usize, usize),
) -> Built<ExprId> {
    let mut aligned = vec![1; call.rank(result)];
    aligned[along..along + call.rank(indices)].copy_from_slice(&call.shape(indices));
    let limit = to_i64(size);
    let indices = call.graph().reshape(indices, aligned)?;
    let formula = Formula::new(call.graph());
    let [result, indices] = formula.terms([result, indices]);
    let is_inside = indices.greater_equal(-limit) & indices.less(limit);
    Ok(is_inside.select(result, 0.0).id()?)
}
