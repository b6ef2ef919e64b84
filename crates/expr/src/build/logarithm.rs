//! Logarithms to base 2 and 10.
//!
//! The quotient of two natural logarithms is not exact for many powers of the base, and its floor can
//! be off by one. Writing `x` as `m * 2^e`, as in `e_log10.c` of fdlibm, makes `e` contribute exactly:
//! the logarithm is `e * log(2) + log(m)`. Both terms have the same sign, so none cancels the other.

use std::f64::consts::{LOG2_E, LOG10_E};

use nxla_tensor::DType;

use super::composed::bits_of;
use super::formula::{Formula, Term};
use crate::graph::{ExprId, Graph, Result};

/// The constants of a base.
struct Base {
    /// The logarithm of `e`.
    of_e: f64,
    /// The logarithm of 2, whose last bits are zero, so that products with exponents are exact.
    of_two: f64,
    /// The error of `of_two`.
    rest: f64,
}

impl Base {
    const TWO: Base = Base { of_e: LOG2_E, of_two: 1.0, rest: 0.0 };

    fn ten(dtype: DType) -> Self {
        let (of_two, rest) = if dtype == DType::F64 {
            (f64::from_bits(0x3fd3_4413_509f_6000), f64::from_bits(0x3d59_fef3_11f1_2b36))
        } else {
            (f32::from_bits(0x3e9a_2080).into(), f32::from_bits(0x3554_27db).into())
        };
        Self { of_e: LOG10_E, of_two, rest }
    }
}

impl Graph {
    /// Returns the base-2 logarithm, which is exact for powers of two. This is a block.
    ///
    /// # Errors
    /// Returns the errors of [`Graph::log`].
    pub fn log2(&mut self, x: ExprId) -> Result<ExprId> {
        self.composite("log2", &[], [x], |graph, [x]| graph.log_of_base(x, |_| Base::TWO))
    }

    /// Returns the base-10 logarithm. This is a block.
    ///
    /// # Errors
    /// Returns the errors of [`Graph::log`].
    pub fn log10(&mut self, x: ExprId) -> Result<ExprId> {
        self.composite("log10", &[], [x], |graph, [x]| graph.log_of_base(x, Base::ten))
    }

    fn log_of_base(&mut self, x: ExprId, base: impl Fn(DType) -> Base) -> Result<ExprId> {
        let dtype = self.dtype(x).to_floating();
        if !dtype.is_complex() {
            let formula = Formula::new(self);
            let x = formula.term(x).as_type(dtype.at_least_f32());
            return log_by_exponent(x, &base(x.dtype())).as_type(dtype).id();
        }
        let formula = Formula::new(self);
        let log = formula.term(x).log();
        // Scales the parts separately: a complex product would make a part NaN if the other is
        // infinite.
        let (re, im) = (log.real(), log.imag());
        let of_e = base(re.dtype()).of_e;
        (re * of_e).complex(im * of_e).id()
    }
}

/// Adds the logarithm of the power of two that is next to a float toward 1 and the logarithm of
/// their quotient.
fn log_by_exponent<'f>(x: Term<'f>, base: &Base) -> Term<'f> {
    let power = x.apply(Graph::power_of_two);
    let doubled = power + power;
    // Twice the power of a large negative number has no normal inverse.
    let power = x.abs().less(1.0).select(doubled, power);
    // XLA would join a quotient and its derivative to a quotient of products that overflow.
    let mantissa = x * (1.0 / power);
    let mut sum = mantissa.log() * base.of_e;
    let exponent = exponent_of_power(power);
    if base.rest != 0.0 {
        sum = sum + exponent * base.rest;
    }
    sum + exponent * base.of_two
}

/// Returns the exponent of a normal power of two, as a float.
fn exponent_of_power(power: Term<'_>) -> Term<'_> {
    let dtype = power.dtype();
    let mantissa_bits = dtype.float_limits().expect("the caller has floats").mantissa_bits;
    let bits = power.apply(|graph, power| graph.bitcast(power, bits_of(dtype)));
    let exponent_bits = dtype.bits() - 1 - mantissa_bits;
    let bias = (1_i64 << (exponent_bits - 1)) - 1;
    (bits.right_shift(mantissa_bits) - bias).as_type(dtype)
}
