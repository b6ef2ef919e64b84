//! Element-wise functions that are compositions of ops.

use nxla_tensor::{DType, promote};

use super::formula::{Formula, Term};
use crate::graph::{ErrorKind, ExprId, Graph, Result};

impl Graph {
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
        let formula = Formula::new(self);
        (1.0 / formula.term(x)).id()
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

    /// Converts two real operands to floats of their common dtype, which have a sign and do not wrap.
    fn as_floats(&mut self, x: ExprId, y: ExprId) -> Result<[ExprId; 2]> {
        let dtype = promote(self.dtype(x), self.dtype(y)).to_floating();
        if dtype.is_complex() {
            let (argument, expected) = ("operand", "a real dtype");
            return Err(
                self.error("as_type", ErrorKind::DType { argument, found: dtype, expected })
            );
        }
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
        let formula = Formula::new(self);
        let [x, y] = formula.terms([x, y]).map(|x| x.as_type(dtype.at_least_f32()));
        let [larger, smaller] = larger_and_smaller(x, y);
        let difference = smaller - larger;
        // Equal infinities have no difference.
        let same = x.equal(y) & larger.is_infinity();
        let sum = larger + same.select(0.0, difference).exp().log1p();
        // Each of two equal operands has half of the derivative.
        same.select(x * 0.5 + y * 0.5, sum).as_type(dtype).id()
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
        let lowest = i64::MIN >> (64 - bits.bits());
        let formula = Formula::new(self);
        let [x, y] = formula.terms([x, y]);
        // The bits of a float, as an integer, increase with its magnitude.
        let at = x.apply(|graph, x| graph.bitcast(x, bits));
        let (up, one) = (y.greater(x), at.number(1));
        let moved = at + up.equal(x.greater(0.0)).select(one, -1);
        let is_zero = at.bitwise_and(!lowest).equal(0);
        let next = is_zero.select(up.select(one, lowest + 1), moved);
        let next = next.apply(|graph, bits| graph.bitcast(bits, dtype));
        let next = x.equal(y).select(y, next);
        (x.is_nan() | y.is_nan()).select(f64::NAN, next).id()
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
        let formula = Formula::new(self);
        let [x, y] = formula.terms([x, y]).map(Term::abs);
        let (x_infinite, y_infinite) = (x.is_infinity(), y.is_infinity());
        let infinite = x_infinite | y_infinite;
        // Two infinite sides share the derivative. An infinite side has no maximum with NaN.
        let at_infinity = x_infinite.select(x, y).max(y_infinite.select(y, x));
        let [x, y] = [x, y].map(|side| infinite.select(1.0, side));
        let [longer, shorter] = larger_and_smaller(x, y);
        let is_zero = longer.equal(0.0);
        let ratio = shorter / is_zero.select(1.0, longer);
        let length = longer * (ratio.square() + 1.0).sqrt();
        // The length has no derivative at zero, where it has its minimum: the gradient is zero. The
        // longer side can be zero beside a NaN.
        let is_zero = is_zero & shorter.equal(0.0);
        infinite.select(at_infinity, is_zero.select(0.0, length)).id()
    }
}

/// Returns the larger and the smaller one of two numbers. Where they are equal, each operand is one of the
/// results: derivatives of a smooth function of both then are right, and a maximum would mix the operands.
fn larger_and_smaller<'f>(x: Term<'f>, y: Term<'f>) -> [Term<'f>; 2] {
    let is_ordered = x.greater_equal(y);
    [is_ordered.select(x, y), is_ordered.select(y, x)]
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
