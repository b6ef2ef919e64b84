//! The logarithm of the gamma function, and its derivative.
//!
//! Both are Lanczos' approximation, from "A Precision Approximation of the Gamma Function" (SIAM Journal
//! on Numerical Analysis, 1964), with g = 7 and the nine coefficients that P. Godfrey computed for it
//! ("A note on the computation of the convergent Lanczos complex Gamma approximation", 2001):
//!
//! ```text
//! Γ(z + 1) = √(2π) (z + g + ½)^(z + ½) exp(-(z + g + ½)) A(z)
//! A(z) = c₀ + c₁ / (z + 1) + … + c₈ / (z + 8)
//! ```
//!
//! Numbers below ½ are reflected: Γ(x) Γ(1 - x) = π / sin(πx). The relative error of Γ is some 10⁻¹⁵ in
//! `f64`. Narrow floats are computed in `f32`. Near its positive root x₀, the digamma function is its
//! Taylor series, whose coefficients are the values (-1)ⁿ⁺¹ ζ(n + 1, x₀) of the Hurwitz zeta function.

use std::f64::consts::PI;

use nxla_tensor::{DType, Scalar};

use crate::graph::{ErrorKind, ExprId, Graph, Result, RuleFor};

const G: f64 = 7.0;

const FIRST: f64 = 0.999_999_999_999_809_9;

/// The coefficients c₁ to c₈.
const COEFFICIENTS: [f64; 8] = [
    676.520_368_121_885_1,
    -1_259.139_216_722_402_8,
    771.323_428_777_653_1,
    -176.615_029_162_140_6,
    12.507_343_278_686_905,
    -0.138_571_095_265_720_12,
    9.984_369_578_019_572e-6,
    1.505_632_735_149_311_6e-7,
];

/// The positive root of the digamma function, and the difference of the exact root from this number.
const ROOT: (f64, f64) = (1.461_632_144_968_362_2, 9.549_995_429_965_697e-17);

/// The distance from the root up to which the Taylor series has the accuracy of `f64`.
const ROOT_RADIUS: f64 = 0.125;

/// The coefficients of the powers 1 to 15 of the distance from the root.
const ROOT_SERIES: [f64; 15] = [
    0.967_672_245_447_621_2,
    -0.442_763_168_983_592_1,
    0.258_499_760_955_651,
    -0.163_942_705_442_406_52,
    0.107_824_050_691_262_37,
    -0.072_199_561_256_454_71,
    0.048_804_288_164_143_11,
    -0.033_161_126_474_847_36,
    0.022_597_648_232_218_104,
    -0.015_424_765_904_948_96,
    0.010_538_791_616_612_175,
    -0.007_204_534_386_356_869,
    0.004_926_781_395_729_853,
    -0.003_369_801_655_439_328,
    0.002_305_126_326_734_928,
];

/// Intermediate values of both functions, for a reflected argument if necessary.
struct LanczosParts {
    /// The argument as a sufficiently wide float, whether it is reflected, and the dtype of the
    /// result.
    x: ExprId,
    is_reflected: ExprId,
    dtype: DType,
    /// The argument minus one, after reflection.
    z: ExprId,
    /// `z + g + ½` and its logarithm.
    shifted: ExprId,
    log: ExprId,
    /// `A(z)`.
    series: ExprId,
}

impl Graph {
    /// Returns the logarithm of the absolute value of the gamma function; integers become floats.
    /// It is infinite at zero and at negative integers.
    ///
    /// # Errors
    /// Returns an error for complex dtypes.
    pub fn log_gamma(&mut self, x: ExprId) -> Result<ExprId> {
        let parts = self.lanczos("log_gamma", x)?;
        // `(z + ½) log t - t + log √(2π) + log A`; combining the first two terms reduces
        // cancellation.
        let half = self.near(parts.z, 0.5)?;
        let power = self.add(parts.z, half)?;
        let one_less = self.divide(parts.shifted, parts.log)?;
        let power = self.subtract(power, one_less)?;
        let main = self.multiply(power, parts.log)?;
        let root = self.near(parts.z, 0.5 * (2.0 * PI).ln())?;
        let series = self.log(parts.series)?;
        let rest = self.add(series, root)?;
        let plain = self.add(main, rest)?;
        // `log π - log |sin πx| -` the value for `1 - x`. The unused branch receives a safe
        // argument.
        let distance = self.distance_from_whole(&parts)?;
        let pi = self.near(distance, PI)?;
        let angle = self.multiply(distance, pi)?;
        let sine = self.sin(angle)?;
        let log_sine = self.log(sine)?;
        let log_pi = self.near(distance, PI.ln())?;
        let reflected = self.subtract(log_pi, log_sine)?;
        let reflected = self.subtract(reflected, plain)?;
        let value = self.select(parts.is_reflected, reflected, plain)?;
        // Infinities of either sign have an infinite value. So have poles, where the reflection of a
        // large number is a difference of infinities.
        let (is_infinite, zero) = (self.is_infinity(parts.x)?, self.zero_like(distance)?);
        let is_pole = self.equal(distance, zero)?;
        let infinite = self.logical_or(is_infinite, is_pole)?;
        let infinity = self.scalar_constant(Scalar::Float(f64::INFINITY), self.dtype(value))?;
        let value = self.select(infinite, infinity, value)?;
        let value = self.as_type(value, parts.dtype)?;
        self.derive_by_digamma(x, value)
    }

    /// Returns the value with the derivative of the logarithm. The derivative of the formula has
    /// another value at poles and infinities.
    fn derive_by_digamma(&mut self, x: ExprId, value: ExprId) -> Result<ExprId> {
        let open = self.open_rule(RuleFor::Tangents, &[x]);
        // The block depends on the tangent, so it is part of the derivative only.
        let operands = [x, open.changes()[0]];
        let tangent =
            self.composite("log_gamma_tangent", &[], operands, |graph, [x, change]| {
                let slope = graph.digamma(x)?;
                graph.multiply(slope, change)
            })?;
        Ok(self.close_rule(open, &[value], &[x], vec![tangent])?[0])
    }

    /// Returns the derivative of [`Graph::log_gamma`]; integers become floats. It is NaN at
    /// negative integers, and infinite at zero with the opposite sign.
    ///
    /// # Errors
    /// Returns an error for complex dtypes.
    pub fn digamma(&mut self, x: ExprId) -> Result<ExprId> {
        let dtype = self.real_float("digamma", x)?;
        let x = self.as_type(x, dtype)?;
        let is_special = self.is_special_for_digamma(x)?;
        let one = self.near(x, 1.0)?;
        let regular = self.select(is_special, one, x)?;
        let parts = self.lanczos("digamma", regular)?;
        // log t + A' / A - g / t.
        let mut slope = None;
        for (index, coefficient) in (1_u32..).zip(COEFFICIENTS) {
            let offset = self.near(parts.z, f64::from(index))?;
            let divisor = self.add(parts.z, offset)?;
            let square = self.square(divisor)?;
            let coefficient = self.near(parts.z, -coefficient)?;
            let term = self.divide(coefficient, square)?;
            slope = Some(match slope {
                None => term,
                Some(sum) => self.add(sum, term)?,
            });
        }
        let slope = slope.expect("there are coefficients");
        let relative = self.divide(slope, parts.series)?;
        let g = self.near(parts.z, G)?;
        let less = self.divide(g, parts.shifted)?;
        let plain = self.add(parts.log, relative)?;
        let plain = self.subtract(plain, less)?;
        // ψ(1 - x) - π / tan πx.
        let safe = self.reflected_argument(&parts)?;
        let whole = self.round_half_even(safe)?;
        let distance = self.subtract(safe, whole)?;
        let pi = self.near(distance, PI)?;
        let angle = self.multiply(distance, pi)?;
        // A tangent would be nearly infinite at halves, where the cotangent is smooth.
        let (sine, cosine) = (self.sin(angle)?, self.cos(angle)?);
        let cotangent = self.divide(cosine, sine)?;
        let cotangent = self.multiply(pi, cotangent)?;
        let reflected = self.subtract(plain, cotangent)?;
        let value = self.select(parts.is_reflected, reflected, plain)?;
        let value = self.digamma_near_root(parts.x, value)?;
        let value = self.as_type(value, dtype)?;
        let special = self.special_digamma(x, is_special)?;
        self.select(is_special, special, value)
    }

    /// Returns the Taylor series near the root, and the other value elsewhere. The terms of the
    /// general formula cancel at the root, which leaves no correct digits.
    fn digamma_near_root(&mut self, x: ExprId, elsewhere: ExprId) -> Result<ExprId> {
        // The distance from the root as a number of the dtype is exact. The value at this number is
        // the constant term.
        let rounded = Scalar::Float(ROOT.0).cast(self.dtype(x)).parts().0;
        let error = ROOT.0 - rounded + ROOT.1;
        let at_rounded = -error * (ROOT_SERIES[0] - error * ROOT_SERIES[1]);
        let root = self.near(x, rounded)?;
        let distance = self.subtract(x, root)?;
        let (size, radius) = (self.abs(distance)?, self.near(x, ROOT_RADIUS)?);
        let (is_near, zero) = (self.less(size, radius)?, self.zero_like(x)?);
        // The series is infinite for large numbers, and its derivative would be NaN.
        let distance = self.select(is_near, distance, zero)?;
        let [lower @ .., highest] = ROOT_SERIES;
        let mut series = self.near(x, highest)?;
        for coefficient in lower.into_iter().rev().chain([at_rounded]) {
            let scaled = self.multiply(series, distance)?;
            let coefficient = self.near(x, coefficient)?;
            series = self.add(scaled, coefficient)?;
        }
        self.select(is_near, series, elsewhere)
    }

    /// Returns true at poles and infinities.
    fn is_special_for_digamma(&mut self, x: ExprId) -> Result<ExprId> {
        let (floor, zero) = (self.floor(x)?, self.zero_like(x)?);
        let (is_whole, is_negative) = (self.equal(floor, x)?, self.less_equal(x, zero)?);
        let is_pole = self.logical_and(is_whole, is_negative)?;
        let is_infinite = self.is_infinity(x)?;
        self.logical_or(is_pole, is_infinite)
    }

    /// Returns the values at poles and infinities, as functions with the same derivatives.
    fn special_digamma(&mut self, x: ExprId, is_special: ExprId) -> Result<ExprId> {
        let (zero, one) = (self.zero_like(x)?, self.near(x, 1.0)?);
        // -1 / x at zero.
        let is_zero = self.equal(x, zero)?;
        let small = self.select(is_zero, x, one)?;
        let minus_one = self.negate(one)?;
        let at_zero = self.divide(minus_one, small)?;
        // √x is infinite with the slope 0 at infinity, and NaN at negative numbers.
        let large = self.select(is_zero, one, x)?;
        let large = self.select(is_special, large, one)?;
        let elsewhere = self.sqrt(large)?;
        self.select(is_zero, at_zero, elsewhere)
    }

    /// Returns the argument where it is reflected, and a safe value elsewhere: the branch that is
    /// not selected must have a finite derivative.
    fn reflected_argument(&mut self, parts: &LanczosParts) -> Result<ExprId> {
        let quarter = self.near(parts.x, 0.25)?;
        self.select(parts.is_reflected, parts.x, quarter)
    }

    /// Returns the distance of the argument from the nearest integer.
    fn distance_from_whole(&mut self, parts: &LanczosParts) -> Result<ExprId> {
        let safe = self.reflected_argument(parts)?;
        let whole = self.round_half_even(safe)?;
        let difference = self.subtract(safe, whole)?;
        self.abs(difference)
    }

    /// Returns the dtype of the result.
    fn real_float(&self, function: &'static str, x: ExprId) -> Result<DType> {
        let found = self.dtype(x);
        if found.is_complex() {
            let kind = ErrorKind::DType { argument: "x", found, expected: "a real dtype" };
            return Err(self.error(function, kind));
        }
        Ok(found.to_floating())
    }

    fn lanczos(&mut self, function: &'static str, x: ExprId) -> Result<LanczosParts> {
        let dtype = self.real_float(function, x)?;
        let wide = if dtype.bits() < 32 { DType::F32 } else { dtype };
        let x = self.as_type(x, wide)?;
        let (half, one) = (self.near(x, 0.5)?, self.near(x, 1.0)?);
        let is_reflected = self.less(x, half)?;
        let less = self.subtract(x, one)?;
        let negative = self.negate(x)?;
        let z = self.select(is_reflected, negative, less)?;
        let mut series = self.near(z, FIRST)?;
        for (index, coefficient) in (1_u32..).zip(COEFFICIENTS) {
            let offset = self.near(z, f64::from(index))?;
            let divisor = self.add(z, offset)?;
            let coefficient = self.near(z, coefficient)?;
            let term = self.divide(coefficient, divisor)?;
            series = self.add(series, term)?;
        }
        let offset = self.near(z, G + 0.5)?;
        let shifted = self.add(z, offset)?;
        // `log (g + ½) + log1p (z / (g + ½))`, which is more accurate for small `z`.
        let relative = self.divide(z, offset)?;
        let relative = self.log1p(relative)?;
        let first = self.near(z, (G + 0.5).ln())?;
        let log = self.add(first, relative)?;
        Ok(LanczosParts { x, is_reflected, dtype, z, shifted, log, series })
    }
}
