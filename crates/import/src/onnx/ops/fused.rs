//! Operators of `com.microsoft` that stand for several operators of the default domain.

use nxla_expr::{BinaryOp, ExprId};
use nxla_tensor::DType;

use super::activation::{hard_sigmoid, relu, thresholded_relu};
use super::contract::{conv, gemm, scale_by};
use super::neural::affine;
use super::{Operator, operator};
use crate::numbers::to_i64;
use crate::onnx::error::{Built, unsupported};
use crate::onnx::node::Call;

/// The operators of this family.
pub(super) const OPERATORS: &[Operator] = &[
    operator("com.microsoft:EmbedLayerNormalization", embed_words),
    operator("com.microsoft:FusedConv", |call| {
        let [x, kernel] = call.inputs()?;
        let bias = call.optional(2);
        let mut result = conv(call, x, kernel, bias)?[0];
        if let Some(sum) = call.optional(3) {
            result = call.graph().add(result, sum)?;
        }
        let parameters = call.floats("activation_params")?.unwrap_or_default();
        let parameter = |index: usize| parameters.get(index).copied();
        // The second parameter of a function is beta or gamma: no function has both.
        let parameters = [parameter(0), parameter(1), parameter(1)];
        Ok(vec![activate(call, result, parameters)?])
    }),
    operator("com.microsoft:FusedGemm", |call| {
        let result = gemm(call)?[0];
        let parameters = [
            call.maybe_float("activation_alpha")?,
            call.maybe_float("activation_beta")?,
            call.maybe_float("activation_gamma")?,
        ];
        Ok(vec![activate(call, result, parameters)?])
    }),
    operator("com.microsoft:FusedMatMul", matmul),
];

/// Applies the function that the attribute `activation` names, with its parameters.
fn activate(
    call: &mut Call<'_, '_, '_>,
    x: ExprId,
    [alpha, beta, gamma]: [Option<f64>; 3],
) -> Built<ExprId> {
    let name = call.text("activation", "")?;
    Ok(match name.as_str() {
        "" => x,
        "Celu" => call.graph().celu(x, alpha.unwrap_or(1.0))?,
        "Clip" => {
            let (low, high) = (alpha.unwrap_or(f64::NEG_INFINITY), beta.unwrap_or(f64::INFINITY));
            let (low, high) = (call.scalar(low, x)?, call.scalar(high, x)?);
            call.graph().clip(x, low, high)?
        }
        "Elu" => call.graph().elu(x, alpha.unwrap_or(1.0))?,
        "HardSigmoid" => hard_sigmoid(call, x, alpha.unwrap_or(0.2), beta.unwrap_or(0.5))?,
        "LeakyRelu" => call.graph().leaky_relu(x, alpha.unwrap_or(0.01))?,
        "Relu" => relu(call, x)?,
        "Selu" => {
            let gamma = call.scalar(gamma.unwrap_or(1.050_701), x)?;
            let graph = call.graph();
            let curve = graph.elu(x, alpha.unwrap_or(1.673_263_2))?;
            graph.multiply(curve, gamma)?
        }
        "Sigmoid" => call.graph().sigmoid(x)?,
        "Softplus" => call.graph().softplus(x)?,
        "Softsign" => call.graph().soft_sign(x)?,
        "Tanh" => call.graph().tanh(x)?,
        "ThresholdedRelu" => thresholded_relu(call, x, alpha.unwrap_or(1.0), BinaryOp::Greater)?,
        other => {
            return unsupported(format!("activation: the function {other:?} is not supported"));
        }
    })
}

/// Returns `alpha op(a) op(b)`.
fn matmul(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let [mut a, mut b] = call.inputs()?;
    for (x, batch, name) in [(&mut a, "transBatchA", "transA"), (&mut b, "transBatchB", "transB")] {
        let rank = call.rank(*x);
        if call.flag(batch, false)? && rank > 2 {
            // The first axis becomes the axis of the rows.
            *x = call.graph().move_axes(*x, &[0], &[to_i64(rank) - 2])?;
        }
        if call.flag(name, false)? && rank > 1 {
            *x = call.graph().swap_axes(*x, -1, -2)?;
        }
    }
    let alpha = call.float("alpha", 1.0)?;
    let product = call.graph().matmul(a, b)?;
    let (scaled, dtype) = (scale_by(call, product, alpha)?, call.dtype(product));
    Ok(vec![call.graph().as_type(scaled, dtype)?])
}

/// Adds the embeddings of words, positions and segments, and normalizes the sum. The second result is
/// the number of words of each sequence that a mask contains.
fn embed_words(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let [words, word_table, position_table] = [call.input(0)?, call.input(2)?, call.input(3)?];
    let (scale, shift) = (call.input(5)?, call.input(6)?);
    let shape = call.shape(words);
    let [batch, length] = shape[..] else {
        return unsupported(format!("input_ids: must have 2 axes; got {}", call.ty(words)));
    };
    let positions = match call.optional(8) {
        Some(positions) => positions,
        None => call.graph().iota([1, length], Some(1), DType::S64)?,
    };
    let graph = call.graph();
    let mut sum = graph.take(word_table, words, 0)?;
    let position = graph.take(position_table, positions, 0)?;
    sum = graph.add(sum, position)?;
    if let (Some(segments), Some(table)) = (call.optional(1), call.optional(4)) {
        let graph = call.graph();
        let segment = graph.take(table, segments, 0)?;
        sum = graph.add(sum, segment)?;
    }
    let epsilon = call.float("epsilon", 1e-12)?;
    let normal = call.graph().layer_norm(sum, [None, None], &[-1], epsilon)?;
    let result = affine(call, normal, Some(scale), Some(shift))?;
    let count = match call.optional(7) {
        Some(mask) => {
            let one = call.scalar(1.0, mask)?;
            let graph = call.graph();
            let is_word = graph.equal(mask, one)?;
            let is_word = graph.as_type(is_word, DType::S32)?;
            graph.sum(is_word, Some(&[1]), false)?
        }
        None => {
            let zero = call.scalar_of(0.0, DType::S32)?;
            call.broadcast(zero, &[batch])?
        }
    };
    Ok(vec![result, count, sum])
}
