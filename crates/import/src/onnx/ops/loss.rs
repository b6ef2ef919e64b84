//! Losses of classifiers.

use nxla_expr::ExprId;
use nxla_tensor::DType;

use super::{Operator, operator};
use crate::onnx::error::{Built, invalid};
use crate::onnx::node::Call;

/// The operators of this family.
pub(super) const OPERATORS: &[Operator] = &[
    operator("NegativeLogLikelihoodLoss", |call| {
        let [logs, labels] = call.inputs()?;
        Ok(vec![negative_log_likelihood(call, logs, labels)?])
    }),
    operator("SoftmaxCrossEntropyLoss", |call| {
        let [scores, labels] = call.inputs()?;
        let logs = call.graph().log_softmax(scores, 1)?;
        Ok(vec![negative_log_likelihood(call, logs, labels)?, logs])
    }),
];

/// Returns the negative of the logarithms that the labels select along axis 1, weighted by class.
/// Labels equal to `ignore_index` do not count.
fn negative_log_likelihood(
    call: &mut Call<'_, '_, '_>,
    logs: ExprId,
    labels: ExprId,
) -> Built<ExprId> {
    let zero = call.scalar(0.0, logs)?;
    let one = call.scalar(1.0, logs)?;
    let ignored = call.maybe_int("ignore_index")?;
    let reduction = call.text("reduction", "mean")?;
    let classes = call.optional(2);
    let shape = call.shape(labels);
    let graph = call.graph();
    let labels = graph.as_type(labels, DType::S64)?;
    let mut is_ignored = None;
    let mut places = labels;
    if let Some(ignored) = ignored {
        let ignored = graph.scalar_constant(nxla_tensor::Scalar::Int(ignored), DType::S64)?;
        let first = graph.zero_like(labels)?;
        let matches = graph.equal(labels, ignored)?;
        places = graph.select(matches, first, labels)?;
        is_ignored = Some(matches);
    }
    let mut weights = match classes {
        Some(classes) => graph.take(classes, places, 0)?,
        None => graph.broadcast(one, shape, None)?,
    };
    if let Some(is_ignored) = is_ignored {
        weights = graph.select(is_ignored, zero, weights)?;
    }
    let column = graph.new_axis(places, 1, None)?;
    let chosen = graph.take_along_axis(logs, column, 1)?;
    let mut chosen = graph.squeeze(chosen, Some(&[1]))?;
    if let Some(is_ignored) = is_ignored {
        // The entry of an ignored label may be infinite, and its product with a weight of zero is NaN.
        chosen = graph.select(is_ignored, zero, chosen)?;
    }
    let chosen = graph.negate(chosen)?;
    let losses = graph.multiply(chosen, weights)?;
    match reduction.as_str() {
        "none" => Ok(losses),
        "sum" => Ok(graph.sum(losses, None, false)?),
        "mean" => {
            let (sum, total) = (graph.sum(losses, None, false)?, graph.sum(weights, None, false)?);
            Ok(graph.divide(sum, total)?)
        }
        other => invalid(format!("reduction: must be none, sum or mean; got {other:?}")),
    }
}
