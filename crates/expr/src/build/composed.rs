//! Element-wise functions that are compositions of ops.

use nxla_tensor::{DType, Number, Scalar, promote};

use crate::graph::{ErrorKind, ExprId, Graph, Result};

impl Graph {
    /// Creates a scalar constant in the dtype of `x`.
    pub(super) fn near(&mut self, x: ExprId, number: f64) -> Result<ExprId> {
        self.weak_number(Number::Float(number), x)
    }

    /// Returns `x * x`.
    ///
    /// # Errors
    /// Returns an error for invalid operands.
    pub fn square(&mut self, x: ExprId) -> Result<ExprId> {
        self.multiply(x, x)
    }

    /// Returns `1 / x`; integers become floats.
    ///
    /// # Errors
    /// Returns an error for invalid operands.
    pub fn reciprocal(&mut self, x: ExprId) -> Result<ExprId> {
        let one = self.near(x, 1.0)?;
        self.divide(one, x)
    }

    /// Returns where elements are neither infinite nor NaN.
    ///
    /// # Errors
    /// Returns an error for invalid operands.
    pub fn is_finite(&mut self, x: ExprId) -> Result<ExprId> {
        let (nan, infinite) = (self.is_nan(x)?, self.is_infinity(x)?);
        let either = self.logical_or(nan, infinite)?;
        self.logical_not(either)
    }

    /// Rounds `x` toward zero.
    ///
    /// # Errors
    /// Returns an error for complex dtypes.
    pub fn truncate(&mut self, x: ExprId) -> Result<ExprId> {
        let zero = self.zero_like(x)?;
        let negative = self.less(x, zero)?;
        let (up, down) = (self.ceil(x)?, self.floor(x)?);
        self.select(negative, up, down)
    }

    /// Returns where the sign bit is set, also for zeros and NaN.
    ///
    /// # Errors
    /// Returns an error for complex dtypes.
    pub fn sign_bit(&mut self, x: ExprId) -> Result<ExprId> {
        let x = self.bitcast(x, bits_of(self.dtype(x)))?;
        let zero = self.zero_like(x)?;
        self.less(x, zero)
    }

    /// Converts two operands to floats of their common dtype, which have a sign and do not wrap.
    fn as_floats(&mut self, x: ExprId, y: ExprId) -> Result<[ExprId; 2]> {
        let dtype = promote(self.dtype(x), self.dtype(y)).to_floating();
        Ok([self.as_type(x, dtype)?, self.as_type(y, dtype)?])
    }

    /// Returns the magnitude of `x` with the sign of `sign`; integers become floats.
    ///
    /// # Errors
    /// Returns an error for complex dtypes or shapes that do not broadcast.
    pub fn copy_sign(&mut self, x: ExprId, sign: ExprId) -> Result<ExprId> {
        let is_negative = self.sign_bit(sign)?;
        let [x, _] = self.as_floats(x, sign)?;
        let magnitude = self.abs(x)?;
        let negative = self.negate(magnitude)?;
        self.select(is_negative, negative, magnitude)
    }

    /// Returns `log(exp(x) + exp(y))` without overflow; integers become floats.
    ///
    /// # Errors
    /// Returns an error for complex dtypes or shapes that do not broadcast.
    pub fn log_add_exp(&mut self, x: ExprId, y: ExprId) -> Result<ExprId> {
        let [x, y] = self.as_floats(x, y)?;
        let dtype = self.dtype(x);
        let wide = dtype.at_least_f32();
        let (x, y) = (self.as_type(x, wide)?, self.as_type(y, wide)?);
        let [larger, smaller] = self.larger_and_smaller(x, y)?;
        let difference = self.subtract(smaller, larger)?;
        // Equal infinities have no difference.
        let (equal, infinite) = (self.equal(x, y)?, self.is_infinity(larger)?);
        let same = self.logical_and(equal, infinite)?;
        let zero = self.zero_like(difference)?;
        let gap = self.select(same, zero, difference)?;
        let ratio = self.exp(gap)?;
        let excess = self.log1p(ratio)?;
        let sum = self.add(larger, excess)?;
        // Each of two equal operands has half of the derivative.
        let (half_x, half_y) = (self.scale_by(x, 0.5)?, self.scale_by(y, 0.5)?);
        let mean = self.add(half_x, half_y)?;
        let value = self.select(same, mean, sum)?;
        self.as_type(value, dtype)
    }

    /// The larger and the smaller one of two numbers. Where they are equal each operand is one of the results:
    /// derivatives of a smooth function of both then are right, and a maximum would mix the operands.
    fn larger_and_smaller(&mut self, x: ExprId, y: ExprId) -> Result<[ExprId; 2]> {
        let is_ordered = self.greater_equal(x, y)?;
        Ok([self.select(is_ordered, x, y)?, self.select(is_ordered, y, x)?])
    }

    /// Returns the next value of the dtype after `x` in the direction of `y`, or `y` if both are
    /// equal.
    ///
    /// # Errors
    /// Returns an error for complex dtypes or shapes that do not broadcast.
    pub fn next_after(&mut self, x: ExprId, y: ExprId) -> Result<ExprId> {
        let [x, y] = self.as_floats(x, y)?;
        let dtype = self.dtype(x);
        if dtype.is_complex() {
            let expected = "a real dtype";
            let kind = ErrorKind::DType { argument: "left", found: dtype, expected };
            return Err(self.error("next_after", kind));
        }
        let bits = bits_of(dtype);
        let number = |graph: &mut Graph, value| graph.scalar_constant(Scalar::Int(value), bits);
        let (one, back) = (number(self, 1)?, number(self, -1)?);
        let lowest = i64::MIN >> (64 - bits.bits());
        let (magnitude, negative) = (number(self, !lowest)?, number(self, lowest + 1)?);
        // The bits of a float, as an integer, increase with its magnitude.
        let at = self.bitcast(x, bits)?;
        let (zero, none) = (self.zero_like(x)?, number(self, 0)?);
        let (up, positive) = (self.greater(y, x)?, self.greater(x, zero)?);
        let away = self.equal(up, positive)?;
        let step = self.select(away, one, back)?;
        let moved = self.add(at, step)?;
        let from_zero = self.select(up, one, negative)?;
        let size = self.bitwise_and(at, magnitude)?;
        let is_zero = self.equal(size, none)?;
        let next = self.select(is_zero, from_zero, moved)?;
        let next = self.bitcast(next, dtype)?;
        let equal = self.equal(x, y)?;
        let next = self.select(equal, y, next)?;
        let (x_nan, y_nan) = (self.is_nan(x)?, self.is_nan(y)?);
        let unordered = self.logical_or(x_nan, y_nan)?;
        let nan = self.scalar_constant(Scalar::Float(f64::NAN), dtype)?;
        self.select(unordered, nan, next)
    }

    /// Returns the distance of the point `(x, y)` from the origin without overflow. It is infinite
    /// if a coordinate is infinite, even if the other one is NaN.
    ///
    /// # Errors
    /// Returns an error for complex dtypes or shapes that do not broadcast.
    pub fn hypot(&mut self, x: ExprId, y: ExprId) -> Result<ExprId> {
        let expected = "a real dtype";
        for (argument, id) in [("left", x), ("right", y)] {
            let found = self.dtype(id);
            if found.is_complex() {
                return Err(self.error("hypot", ErrorKind::DType { argument, found, expected }));
            }
        }
        // The smallest integer has no absolute value among integers.
        let [x, y] = self.as_floats(x, y)?;
        let (x, y) = (self.abs(x)?, self.abs(y)?);
        let (x_infinite, y_infinite) = (self.is_infinity(x)?, self.is_infinity(y)?);
        let infinite = self.logical_or(x_infinite, y_infinite)?;
        // Two infinite sides share the derivative. An infinite side has no maximum with NaN.
        let (either_x, either_y) = (self.select(x_infinite, x, y)?, self.select(y_infinite, y, x)?);
        let at_infinity = self.max(either_x, either_y)?;
        let one = self.near(x, 1.0)?;
        let (x, y) = (self.select(infinite, one, x)?, self.select(infinite, one, y)?);
        let [longer, shorter] = self.larger_and_smaller(x, y)?;
        let zero = self.zero_like(longer)?;
        let is_zero = self.equal(longer, zero)?;
        let divisor = self.select(is_zero, one, longer)?;
        // The longer side can be zero beside a NaN.
        let is_shorter_zero = self.equal(shorter, zero)?;
        let is_zero = self.logical_and(is_zero, is_shorter_zero)?;
        let ratio = self.divide(shorter, divisor)?;
        let square = self.square(ratio)?;
        let sum = self.add(square, one)?;
        let root = self.sqrt(sum)?;
        let length = self.multiply(longer, root)?;
        // The length has no derivative at zero, where it has its minimum: the gradient is zero.
        let zero = self.zero_like(length)?;
        let length = self.select(is_zero, zero, length)?;
        self.select(infinite, at_infinity, length)
    }
}

/// Returns the signed integer dtype of the same width as a float; integers are unchanged.
pub(super) fn bits_of(dtype: DType) -> DType {
    match dtype {
        DType::F8E5M2 | DType::F8E4M3FN => DType::S8,
        DType::F16 | DType::BF16 => DType::S16,
        DType::F32 => DType::S32,
        DType::F64 => DType::S64,
        dtype => dtype,
    }
}
