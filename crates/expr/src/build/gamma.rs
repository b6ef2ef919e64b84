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
//! `f64`. Narrow floats are computed in `f32`. From ½ to 2½, around its zeros at 1 and 2, the logarithm is
//! the Taylor series at 2, whose coefficients are 1 - γ and (-1)ⁿ (ζ(n) - 1) / n; ln Γ(1 + t) is
//! ln Γ(2 + t) - ln(1 + t). Near its positive root x₀, the digamma function is its
//! Taylor series, whose coefficients are the values (-1)ⁿ⁺¹ ζ(n + 1, x₀) of the Hurwitz zeta function.

use std::f64::consts::PI;

use nxla_tensor::{DType, Scalar};

use super::formula::{Formula, Term};
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

/// The coefficients of the powers 1 to 28 of `t` in ln Γ(2 + t).
const ZERO_SERIES: [f64; 28] = [
    0.422_784_335_098_467_13,
    0.322_467_033_424_113_2,
    -0.067_352_301_053_198_1,
    0.020_580_808_427_784_546,
    -0.007_385_551_028_673_986,
    0.002_890_510_330_741_523_4,
    -0.001_192_753_911_703_261,
    0.000_509_669_524_743_042_5,
    -0.000_223_154_758_453_579_39,
    9.945_751_278_180_853e-5,
    -4.492_623_673_813_314e-5,
    2.050_721_277_567_069e-5,
    -9.439_488_275_268_397e-6,
    4.374_866_789_907_488e-6,
    -2.039_215_753_801_366e-6,
    9.551_412_130_407_42e-7,
    -4.492_469_198_764_566e-7,
    2.120_718_480_555_466_5e-7,
    -1.004_322_482_396_809_9e-7,
    4.769_810_169_363_980_4e-8,
    -2.271_109_460_894_316_4e-8,
    1.083_865_921_489_695_5e-8,
    -5.183_475_041_970_047e-9,
    2.483_674_543_802_478_5e-9,
    -1.192_140_140_586_091e-9,
    5.731_367_241_678_862e-10,
    -2.759_522_885_124_233e-10,
    1.330_476_437_424_449e-10,
];

/// The number of these coefficients that has the accuracy of `f32` up to a distance of ½.
const ZERO_TERMS_F32: usize = 13;

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
struct LanczosParts<'f> {
    /// The argument as a sufficiently wide float, and whether it is reflected.
    x: Term<'f>,
    is_reflected: Term<'f>,
    /// The argument minus one, after reflection.
    z: Term<'f>,
    /// `z + g + ½` and its logarithm.
    shifted: Term<'f>,
    log: Term<'f>,
    /// `A(z)`.
    series: Term<'f>,
}

impl Graph {
    /// Returns the logarithm of the absolute value of the gamma function; integers become floats.
    /// It is infinite at zero and at negative integers.
    ///
    /// # Errors
    /// Returns an error for complex dtypes.
    pub fn log_gamma(&mut self, x: ExprId) -> Result<ExprId> {
        let dtype = self.real_float("log_gamma", x)?;
        let formula = Formula::new(self);
        let parts = LanczosParts::new(formula.term(x), dtype);
        // Combining the first two terms reduces cancellation.
        let main = (parts.z + 0.5 - parts.shifted / parts.log) * parts.log;
        let plain = main + (parts.series.log() + 0.5 * (2.0 * PI).ln());
        // The unused branch receives a safe argument.
        let distance = parts.signed_distance().abs();
        let reflected = PI.ln() - (distance * PI).sin().log() - plain;
        let value = parts.is_reflected.select(reflected, plain);
        let value = log_gamma_near_zeros(parts.x, value);
        // Infinities of either sign have an infinite value. So have poles, where the reflection of a
        // large number is a difference of infinities.
        let is_infinite = parts.x.is_infinity() | distance.equal(0.0);
        let value = is_infinite.select(f64::INFINITY, value).as_type(dtype).id()?;
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
        let formula = Formula::new(self);
        let x = formula.term(x).as_type(dtype);
        let is_pole = x.floor().equal(x) & x.less_equal(0.0);
        let is_special = is_pole | x.is_infinity();
        let parts = LanczosParts::new(is_special.select(1.0, x), dtype);
        let slope = (1_u32..)
            .zip(COEFFICIENTS)
            .map(|(index, coefficient)| -coefficient / (parts.z + f64::from(index)).square())
            .reduce(|sum, term| sum + term)
            .expect("there are coefficients");
        let (relative, less) = (slope / parts.series, G / parts.shifted);
        let plain = parts.log + relative - less;
        // A tangent would be nearly infinite at halves, where the cotangent is smooth.
        let angle = parts.signed_distance() * PI;
        let (sine, cosine) = (angle.sin(), angle.cos());
        let value = parts.is_reflected.select(plain - PI * (cosine / sine), plain);
        let value = digamma_near_root(parts.x, value).as_type(dtype);
        is_special.select(special_digamma(x, is_special), value).id()
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
}

impl<'f> LanczosParts<'f> {
    fn new(x: Term<'f>, dtype: DType) -> Self {
        let x = x.as_type(dtype.at_least_f32());
        let is_reflected = x.less(0.5);
        let less = x - 1.0;
        let z = is_reflected.select(-x, less);
        let terms = (1_u32..)
            .zip(COEFFICIENTS)
            .map(|(index, coefficient)| coefficient / (z + f64::from(index)));
        let series = terms.fold(z.number(FIRST), |sum, term| sum + term);
        let offset = z.number(G + 0.5);
        let shifted = z + offset;
        // This sum is more accurate for small `z` than the logarithm of `shifted`.
        let log = (G + 0.5).ln() + (z / offset).log1p();
        Self { x, is_reflected, z, shifted, log, series }
    }

    /// Returns the distance of the argument from the nearest integer where it is reflected, and the
    /// distance of a safe argument elsewhere: the branch that is not selected must have a finite
    /// derivative.
    fn signed_distance(&self) -> Term<'f> {
        let safe = self.is_reflected.select(self.x, 0.25);
        safe - safe.round_half_even()
    }
}

/// Returns the Taylor series around the zeros at 1 and 2, and the other value elsewhere. The terms of
/// the general formula cancel at the zeros, which leaves no correct digits.
fn log_gamma_near_zeros<'f>(x: Term<'f>, elsewhere: Term<'f>) -> Term<'f> {
    let is_lower = x.less(1.5);
    // The distance from the nearest zero is exact.
    let distance = is_lower.select(x - 1.0, x - 2.0);
    let is_near = distance.abs().less_equal(0.5);
    let distance = is_near.select(distance, 0.0);
    let terms = if x.dtype() == DType::F64 { ZERO_SERIES.len() } else { ZERO_TERMS_F32 };
    let (&highest, lower) = ZERO_SERIES[..terms].split_last().expect("there are coefficients");
    let coefficients = lower.iter().rev();
    let series = coefficients
        .fold(x.number(highest), |series, &coefficient| series * distance + coefficient);
    let series = series * distance;
    let value = is_lower.select(series - distance.log1p(), series);
    is_near.select(value, elsewhere)
}

/// Returns the Taylor series near the root, and the other value elsewhere. The terms of the
/// general formula cancel at the root, which leaves no correct digits.
fn digamma_near_root<'f>(x: Term<'f>, elsewhere: Term<'f>) -> Term<'f> {
    // The distance from the root as a number of the dtype is exact. The value at this number is
    // the constant term.
    let rounded = Scalar::Float(ROOT.0).cast(x.dtype()).parts().0;
    let error = ROOT.0 - rounded + ROOT.1;
    let at_rounded = -error * (ROOT_SERIES[0] - error * ROOT_SERIES[1]);
    let distance = x - rounded;
    let is_near = distance.abs().less(ROOT_RADIUS);
    // The series is infinite for large numbers, and its derivative would be NaN.
    let distance = is_near.select(distance, 0.0);
    let [lower @ .., highest] = ROOT_SERIES;
    let coefficients = lower.into_iter().rev().chain([at_rounded]);
    let series =
        coefficients.fold(x.number(highest), |series, coefficient| series * distance + coefficient);
    is_near.select(series, elsewhere)
}

/// Returns the values at poles and infinities, as functions with the same derivatives.
fn special_digamma<'f>(x: Term<'f>, is_special: Term<'f>) -> Term<'f> {
    let is_zero = x.equal(0.0);
    let at_zero = -1.0 / is_zero.select(x, 1.0);
    // √x is infinite with the slope 0 at infinity, and NaN at negative numbers.
    let elsewhere = is_special.select(is_zero.select(1.0, x), 1.0).sqrt();
    is_zero.select(at_zero, elsewhere)
}
