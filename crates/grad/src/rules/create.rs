//! Creation ops have no operands and therefore no derivatives.

use crate::error::Result;

/// The results of `iota` and `eye` depend on no operand.
pub(super) const CARRIES: bool = false;

/// Adds nothing: `iota` and `eye` have no operands.
pub(super) fn none() -> Result<()> {
    Ok(())
}
