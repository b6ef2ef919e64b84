//! Interpretations of bits as another dtype, and rounding to formats with fewer bits.

use nxla_expr::{BinaryOp, ExprId};
use nxla_tensor::{DType, Scalar};

use super::{Builder, Fail, malformed, unsupported};
use crate::stablehlo::syntax::Operation;

impl Builder<'_> {
    /// Interprets bits as another dtype. A narrower dtype adds an axis, a wider dtype removes the last
    /// axis.
    pub(super) fn bitcast(&mut self, x: ExprId, dtype: DType) -> Result<ExprId, Fail> {
        let found = self.graph.dtype(x);
        let (from, to) = (found.bits(), dtype.bits());
        let is_complex = found.is_complex() || dtype.is_complex();
        if from == to && !is_complex {
            return self.same_width(x, dtype);
        }
        let widths = unsigned_of(from.min(to)).zip(unsigned_of(from.max(to)));
        let Some((narrow, wide)) = widths.filter(|_| !is_complex) else {
            return unsupported(format!("conversion of the bits of {found} to {dtype}"));
        };
        let parts = usize::try_from(from.max(to) / from.min(to)).unwrap_or(1);
        let positions = self.graph.iota([parts], Some(0), wide)?;
        let width = Scalar::UInt(u64::from(from.min(to)));
        let width = self.graph.scalar_constant(width, wide)?;
        let shifts = self.graph.multiply(positions, width)?;
        if from > to {
            let bits = self.same_width(x, wide)?;
            let bits = self.column(bits)?;
            let shifted = self.graph.binary(BinaryOp::RightShift, bits, shifts)?;
            let mask = (1_u64 << to) - 1;
            let mask = self.graph.scalar_constant(Scalar::UInt(mask), wide)?;
            let low = self.graph.bitwise_and(shifted, mask)?;
            let low = self.graph.as_type(low, narrow)?;
            return self.same_width(low, dtype);
        }
        if self.graph.shape(x).last() != Some(&parts) {
            return malformed(format!("the last axis must have size {parts}"));
        }
        let bits = self.same_width(x, narrow)?;
        let bits = self.graph.as_type(bits, wide)?;
        let shifted = self.graph.binary(BinaryOp::LeftShift, bits, shifts)?;
        // The parts have no common bits, so the sum is their union.
        let joined = self.graph.sum(shifted, Some(&[-1]), false)?;
        let joined = self.graph.as_type(joined, wide)?;
        self.same_width(joined, dtype)
    }

    /// Interprets bits as a dtype of the same width.
    fn same_width(&mut self, x: ExprId, dtype: DType) -> Result<ExprId, Fail> {
        if self.graph.dtype(x) == dtype {
            return Ok(x);
        }
        Ok(self.graph.bitcast(x, dtype)?)
    }

    /// Rounds to a narrower format, which must be the format of a dtype.
    pub(super) fn reduce_precision(
        &mut self,
        operation: &Operation,
        x: ExprId,
    ) -> Result<ExprId, Fail> {
        let format = match operation.text(&["format"]) {
            Some(format) => format.to_owned(),
            None => {
                let exponent = operation.integer(&["exponent_bits"])?;
                format!("e{exponent}m{}", operation.integer(&["mantissa_bits"])?)
            }
        };
        let narrow = match &*format {
            "e5m10" => DType::F16,
            "e8m7" => DType::BF16,
            "e5m2" => DType::F8E5M2,
            "e8m23" => DType::F32,
            "e11m52" => DType::F64,
            _ => return unsupported(format!("the format {format} has no dtype")),
        };
        self.rounded_to(x, narrow)
    }

    /// Rounds floats to the mantissa and the exponents of another dtype. Numbers beyond its range become
    /// infinite, and numbers below its smallest normal number become zero, both with their sign.
    fn rounded_to(&mut self, x: ExprId, narrow: DType) -> Result<ExprId, Fail> {
        let dtype = self.graph.dtype(x);
        let own = dtype.float_limits().filter(|_| dtype.is_float());
        let (Some(own), Some(limits)) = (own, narrow.float_limits()) else {
            return malformed(format!("the operand must be a float; got {dtype}"));
        };
        let has_all_exponents =
            narrow.bits() - limits.mantissa_bits >= dtype.bits() - own.mantissa_bits;
        if has_all_exponents && limits.mantissa_bits >= own.mantissa_bits {
            return Ok(x);
        }
        let rounded = self.graph.as_type(x, narrow)?;
        let rounded = self.graph.as_type(rounded, dtype)?;
        if has_all_exponents {
            return Ok(rounded);
        }
        // The smallest number that the mantissa of `narrow` rounds to the smallest normal number.
        let limit = limits.smallest_normal * (1.0 - limits.epsilon / 4.0);
        let limit = self.number(limit, dtype)?;
        let size = self.graph.abs(x)?;
        let is_tiny = self.graph.less(size, limit)?;
        let zero = self.signed_zero(x)?;
        Ok(self.graph.select(is_tiny, zero, rounded)?)
    }

    /// Returns zeros with the signs of floats. Their gradient is zero, because they depend on bits.
    pub(super) fn signed_zero(&mut self, x: ExprId) -> Result<ExprId, Fail> {
        let dtype = self.graph.dtype(x);
        let Some(bits) = unsigned_of(dtype.bits()) else {
            return unsupported(format!("the bits of {dtype} are not supported"));
        };
        let mask = self.graph.scalar_constant(Scalar::UInt(1 << (dtype.bits() - 1)), bits)?;
        let bits = self.graph.bitcast(x, bits)?;
        let sign = self.graph.bitwise_and(bits, mask)?;
        Ok(self.graph.bitcast(sign, dtype)?)
    }
}

fn unsigned_of(bits: u32) -> Option<DType> {
    [DType::U8, DType::U16, DType::U32, DType::U64].into_iter().find(|dtype| dtype.bits() == bits)
}

pub(super) fn signed_of(bits: u32) -> Option<DType> {
    [DType::S8, DType::S16, DType::S32, DType::S64].into_iter().find(|dtype| dtype.bits() == bits)
}

/// Returns the integer dtype of the same width with the other signedness.
pub(super) fn opposite(dtype: DType) -> Option<DType> {
    if dtype.is_signed() { unsigned_of(dtype.bits()) } else { signed_of(dtype.bits()) }
}
