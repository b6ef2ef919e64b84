//! Conversions of sizes to other numbers.

/// Returns a size, an index or an axis as a signed integer. Sizes beyond 63 bits become the largest
/// integer, which is the size or the index of no tensor.
pub(crate) fn to_i64(size: usize) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

/// Returns the float that is nearest to a size.
#[expect(clippy::cast_precision_loss, reason = "the nearest float of a size above 2^53")]
pub(crate) fn to_f64(size: usize) -> f64 {
    size as f64
}
