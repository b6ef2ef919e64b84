//! Conversions to 8-bit floats, in which numbers beyond the range of the dtype are not finite.

use nxla_expr::{ExprId, Graph, Result};
use nxla_tensor::{DType, Scalar};

/// The largest number that rounds to 448, the largest number of `f8_e4m3fn`.
const E4M3FN_LIMIT: f64 = 464.0;

/// Converts numbers to an 8-bit float. A number beyond the range becomes the largest number of its
/// sign if the conversion saturates. Otherwise, the number becomes infinite, or NaN in `f8_e4m3fn`,
/// which has no infinity.
pub(crate) fn to_float8(
    graph: &mut Graph,
    x: ExprId,
    dtype: DType,
    saturates: bool,
) -> Result<ExprId> {
    let from = graph.dtype(x);
    let is_in_range = from == dtype || from.is_pred() || from.is_integer() && from.bits() <= 8;
    if is_in_range || !saturates && dtype != DType::F8E4M3FN {
        return graph.as_type(x, dtype);
    }
    let wide = from.to_real().at_least_f32();
    let x = graph.as_type(x, wide)?;
    if saturates {
        let largest = dtype.float_limits().map_or(f64::INFINITY, |limits| limits.max);
        let low = graph.scalar_constant(Scalar::Float(-largest), wide)?;
        let high = graph.scalar_constant(Scalar::Float(largest), wide)?;
        let x = graph.clip(x, low, high)?;
        return graph.as_type(x, dtype);
    }
    let limit = graph.scalar_constant(Scalar::Float(E4M3FN_LIMIT), wide)?;
    let nan = graph.scalar_constant(Scalar::Float(f64::NAN), wide)?;
    let size = graph.abs(x)?;
    let is_outside = graph.greater(size, limit)?;
    let x = graph.select(is_outside, nan, x)?;
    graph.as_type(x, dtype)
}
