//! Division and rounding functions without an op.

use std::fmt;

use nxla_tensor::{DType, Scalar, promote};

use crate::graph::{ExprId, Graph, Op, Result};

impl Graph {
    /// Returns the quotient rounded toward minus infinity: `-7 / 2` is `-4`. Integers remain
    /// integers.
    ///
    /// # Errors
    /// Returns an error for shapes that do not broadcast or complex dtypes.
    pub fn floor_divide(&mut self, x: ExprId, y: ExprId) -> Result<ExprId> {
        let promoted = promote(self.dtype(x), self.dtype(y));
        if !promoted.is_integer() {
            // In fewer bits, the quotient would be rounded by more than one.
            let wide = promoted.at_least_f32();
            let (x, y) = (self.as_type(x, wide)?, self.as_type(y, wide)?);
            let quotient = self.floor_divide_floats(x, y)?;
            return self.as_type(quotient, promoted.to_floating());
        }
        // Elements of `u64` that wrap around to `s64` are negative.
        let (x, y) = (self.as_type(x, promoted)?, self.as_type(y, promoted)?);
        let quotient = self.quotient(x, y)?;
        if promoted.is_unsigned() {
            return Ok(quotient);
        }
        let correction = self.truncation_rounds_up(x, y)?;
        let correction = self.as_type(correction, promoted)?;
        self.subtract(quotient, correction)
    }

    /// Subtracts the remainder before dividing, which makes the dividend a multiple of the divisor.
    /// Otherwise a rounded quotient could reach the next integer and be off by one.
    fn floor_divide_floats(&mut self, x: ExprId, y: ExprId) -> Result<ExprId> {
        let quotient = self.divide(x, y)?;
        let floor = self.floor(quotient)?;
        let dtype = self.dtype(floor);
        let (x, y) = (self.as_type(x, dtype)?, self.as_type(y, dtype)?);
        let remainder = self.remainder(x, y)?;
        let multiple = self.subtract(x, remainder)?;
        let whole = self.divide(multiple, y)?;
        let correction = self.truncation_rounds_up(x, y)?;
        let correction = self.as_type(correction, dtype)?;
        let whole = self.subtract(whole, correction)?;
        let whole = self.round(whole)?;
        // The multiple may have lost the sign of a zero quotient.
        let whole = self.zeros_signed_as(whole, quotient)?;
        // Infinities and zeros have no remainder, but they have a quotient.
        let has_none = self.is_nan(remainder)?;
        self.select(has_none, floor, whole)
    }

    /// Returns the remainder of [`Graph::floor_divide`], which has the sign of the divisor, even if
    /// it is zero.
    ///
    /// # Errors
    /// Returns an error for shapes that do not broadcast or complex dtypes.
    pub fn floor_remainder(&mut self, x: ExprId, y: ExprId) -> Result<ExprId> {
        let remainder = self.remainder(x, y)?;
        let dtype = self.dtype(remainder);
        let (x, y) = (self.as_type(x, dtype)?, self.as_type(y, dtype)?);
        if dtype.is_unsigned() {
            return Ok(remainder);
        }
        let differs = self.truncation_rounds_up(x, y)?;
        let zero = self.scalar_constant(Scalar::zero(dtype), dtype)?;
        let correction = self.select(differs, y, zero)?;
        let result = self.add(remainder, correction)?;
        if !dtype.is_float() {
            return Ok(result);
        }
        let negative = self.less(y, zero)?;
        let negative_zero = self.scalar_constant(Scalar::Float(-0.0), dtype)?;
        let signed = self.select(negative, negative_zero, zero)?;
        let vanished = self.equal(result, zero)?;
        // The zero has the derivative of the remainder: the subtracted difference is `0`.
        let fixed = self.stop_grad(result)?;
        let difference = self.subtract(fixed, result)?;
        let signed = self.subtract(signed, difference)?;
        self.select(vanished, signed, result)
    }

    /// Returns whether the quotient is negative and not an integer, so that truncation rounds it
    /// up.
    fn truncation_rounds_up(&mut self, x: ExprId, y: ExprId) -> Result<ExprId> {
        let remainder = self.remainder(x, y)?;
        let dtype = self.dtype(remainder);
        let zero = self.scalar_constant(Scalar::zero(dtype), dtype)?;
        // The sign of a constant is known.
        if let Op::Constant(divisor) = self.op(y) {
            match divisor.value.as_f64() {
                divisor if divisor > 0.0 => return self.less(remainder, zero),
                divisor if divisor < 0.0 => return self.greater(remainder, zero),
                _ => {}
            }
        }
        let left = self.not_equal(remainder, zero)?;
        let negative_remainder = self.less(remainder, zero)?;
        let negative_divisor = self.less(y, zero)?;
        let signs_differ = self.logical_xor(negative_remainder, negative_divisor)?;
        self.logical_and(left, signs_differ)
    }

    /// Replaces the sign of zeros in `x` by the sign of finite values of the same dtype.
    fn zeros_signed_as(&mut self, x: ExprId, signs: ExprId) -> Result<ExprId> {
        let zero = self.scalar_constant(Scalar::Float(0.0), self.dtype(x))?;
        let vanished = self.equal(x, zero)?;
        let signed_zero = self.multiply(signs, zero)?;
        self.select(vanished, signed_zero, x)
    }

    /// Returns whether all elements of `x` differ from `y` by at most `absolute + relative * |y|`.
    /// Equal infinities are close; NaN is close to NaN with `equal_nan`. This is a block.
    ///
    /// # Errors
    /// Returns an error for shapes that do not broadcast.
    pub fn all_close(
        &mut self,
        x: ExprId,
        y: ExprId,
        relative: f64,
        absolute: f64,
        equal_nan: bool,
    ) -> Result<ExprId> {
        let tolerances = [Scalar::Float(relative), Scalar::Float(absolute)];
        let attributes: [(&str, &dyn fmt::Display); 3] =
            [("equal_nan", &equal_nan), ("rtol", &tolerances[0]), ("atol", &tolerances[1])];
        self.composite("all_close", &attributes, [x, y], |graph, [x, y]| {
            let close = graph.is_close(x, y, relative, absolute, equal_nan)?;
            graph.all(close, None, false)
        })
    }

    /// Returns where elements are close as defined by [`Graph::all_close`].
    ///
    /// # Errors
    /// Returns an error for shapes that do not broadcast.
    pub fn is_close(
        &mut self,
        x: ExprId,
        y: ExprId,
        relative: f64,
        absolute: f64,
        equal_nan: bool,
    ) -> Result<ExprId> {
        let near = self.near_elements(x, y, relative, absolute)?;
        if !equal_nan {
            return Ok(near);
        }
        let (x_nan, y_nan) = (self.is_nan(x)?, self.is_nan(y)?);
        let both = self.logical_and(x_nan, y_nan)?;
        self.logical_or(near, both)
    }

    fn near_elements(
        &mut self,
        x: ExprId,
        y: ExprId,
        relative: f64,
        absolute: f64,
    ) -> Result<ExprId> {
        // Differences of integers may overflow their dtype.
        let [x, y] = if self.dtype(x).is_integer() && self.dtype(y).is_integer() {
            [self.as_type(x, DType::F64)?, self.as_type(y, DType::F64)?]
        } else {
            [x, y]
        };
        let magnitude = self.abs(y)?;
        let relative = self.weak_number(relative.into(), magnitude)?;
        let scaled = self.multiply(magnitude, relative)?;
        let absolute = self.weak_number(absolute.into(), scaled)?;
        let bound = self.add(scaled, absolute)?;
        let difference = self.subtract(x, y)?;
        let distance = self.abs(difference)?;
        let near = self.less_equal(distance, bound)?;
        // An infinite bound would make all values close to infinity.
        let (x_infinite, y_infinite) = (self.is_infinity(x)?, self.is_infinity(y)?);
        let infinite = self.logical_or(x_infinite, y_infinite)?;
        let equal = self.equal(x, y)?;
        self.select(infinite, equal, near)
    }
}
