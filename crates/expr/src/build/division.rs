//! Division and rounding functions without an op.

use std::fmt;

use nxla_tensor::{DType, Scalar, promote};

use super::formula::{Formula, Term};
use crate::graph::{ExprId, Graph, Result};

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
            let formula = Formula::new(self);
            let quotient = floor_divide_floats(formula.term(x), formula.term(y));
            return quotient.as_type(promoted.to_floating()).id();
        }
        // Elements of `u64` that wrap around to `s64` are negative.
        let formula = Formula::new(self);
        let [x, y] = formula.terms([x, y]).map(|x| x.as_type(promoted));
        let quotient = x.quotient(y);
        if promoted.is_unsigned() {
            return quotient.id();
        }
        (quotient - truncation_rounds_up(x, y).as_type(promoted)).id()
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
        let formula = Formula::new(self);
        let [x, y, remainder] = formula.terms([x, y, remainder]);
        let result = remainder + truncation_rounds_up(x, y).select(y, y.zero());
        if !dtype.is_float() {
            return result.id();
        }
        let signed = y.less(0.0).select(-0.0, y.number(0.0));
        let vanished = result.equal(0.0);
        // The zero has the derivative of the remainder: the subtracted difference is `0`.
        let difference = result.apply(Graph::stop_grad) - result;
        vanished.select(signed - difference, result).id()
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
        let formula = Formula::new(self);
        let [x, y, near] = formula.terms([x, y, near]);
        (near | (x.is_nan() & y.is_nan())).id()
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
        let formula = Formula::new(self);
        let [x, y] = formula.terms([x, y]);
        let bound = y.abs() * relative + absolute;
        let near = (x - y).abs().less_equal(bound);
        // An infinite bound would make all values close to infinity.
        let infinite = x.is_infinity() | y.is_infinity();
        infinite.select(x.equal(y), near).id()
    }
}

/// Subtracts the remainder before dividing, which makes the dividend a multiple of the divisor.
/// Otherwise a rounded quotient could reach the next integer and be off by one.
fn floor_divide_floats<'f>(x: Term<'f>, y: Term<'f>) -> Term<'f> {
    let quotient = x / y;
    let floor = quotient.floor();
    let [x, y] = [x, y].map(|x| x.as_type(floor.dtype()));
    let remainder = x.remainder(y);
    let whole = (x - remainder) / y;
    let whole = (whole - truncation_rounds_up(x, y).as_type(floor.dtype())).round();
    // The multiple may have lost the sign of a zero quotient.
    let whole = whole.equal(0.0).select(quotient * 0.0, whole);
    // Infinities and zeros have no remainder, but they have a quotient.
    remainder.is_nan().select(floor, whole)
}

/// Returns whether the quotient is negative and not an integer, so that truncation rounds it up.
fn truncation_rounds_up<'f>(x: Term<'f>, y: Term<'f>) -> Term<'f> {
    let remainder = x.remainder(y);
    let zero = remainder.zero();
    // The sign of a constant is known.
    match y.constant() {
        Some(divisor) if divisor > 0.0 => return remainder.less(zero),
        Some(divisor) if divisor < 0.0 => return remainder.greater(zero),
        _ => {}
    }
    remainder.not_equal(zero) & remainder.less(zero).logical_xor(y.less(zero))
}
