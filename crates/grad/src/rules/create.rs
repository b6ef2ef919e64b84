//! Creation ops have no operands and therefore no derivatives.

/// The results of `iota` and `eye` depend on no operand.
pub(super) const CARRIES: bool = false;
