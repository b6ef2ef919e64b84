//! Real and complex functions of one number.
//!
//! The kernels call everything through [`Real`], so that a function can have its own
//! implementation for each width, and complex numbers through the functions of [`complex`].

mod arcs;
pub(crate) mod complex;
mod double;
mod erf;
mod hyperbolic;
mod native;
mod roots;
mod single;

/// The value of a polynomial by Horner's rule, coefficients from the highest degree down, rounded once
/// per degree.
#[inline(always)]
fn polynomial<T: Real, const N: usize>(x: T, coefficients: [T; N]) -> T {
    let (first, rest) = coefficients.split_first().expect("a polynomial has a coefficient");
    rest.iter().fold(*first, |sum, &coefficient| sum.mul_add(x, coefficient))
}

/// The same from pairs of neighbouring coefficients, which wait for each other half as often: where a
/// machine multiplies and adds in five steps, `exp` takes seven tenths of its time by Horner's rule.
#[inline(always)]
fn polynomial_in_pairs<const N: usize>(x: f64, coefficients: [f64; N]) -> f64 {
    let square = x * x;
    let (lone, pairs) = coefficients.as_rchunks::<2>();
    let pair = |[high, low]: [f64; 2]| high.mul_add(x, low);
    match *lone {
        [] => {
            let (&first, rest) = pairs.split_first().expect("a polynomial has a coefficient");
            rest.iter().fold(pair(first), |sum, &next| sum.mul_add(square, pair(next)))
        }
        [first, ..] => pairs.iter().fold(first, |sum, &next| sum.mul_add(square, pair(next))),
    }
}

/// `x^y` from the power of `|x|`, with the signs and the cases that have no logarithm put right.
macro_rules! signed_power {
    ($t:ident, $x:ident, $y:ident, $power:expr) => {{
        let power: $t = $power;
        // Large numbers are even, and infinity counts as such.
        let (whole, halves) = ($y == $y.floor(), 0.5 * $y == (0.5 * $y).floor());
        let no_number = ($x < 0.0) & !whole & ($x.abs() < $t::INFINITY);
        let power = if no_number { $t::NAN } else { power };
        let odd = whole & !halves;
        let power = if odd { power.copysign($x) } else { power };
        // Here the product is zero times infinity, or should not depend on NaN.
        let is_one = ($y == 0.0) | ($x == 1.0) | (($x == -1.0) & $y.is_infinite());
        if is_one { 1.0 } else { power }
    }};
}
use signed_power;

/// The real functions that the op table names.
pub(crate) trait Real: Copy {
    /// `self * factor + addend`, rounded once.
    fn mul_add(self, factor: Self, addend: Self) -> Self;
    fn exp(self) -> Self;
    fn expm1(self) -> Self;
    fn log(self) -> Self;
    fn log1p(self) -> Self;
    fn sigmoid(self) -> Self;
    fn sin(self) -> Self;
    fn cos(self) -> Self;
    fn tan(self) -> Self;
    fn asin(self) -> Self;
    fn acos(self) -> Self;
    fn atan(self) -> Self;
    fn sinh(self) -> Self;
    fn cosh(self) -> Self;
    fn tanh(self) -> Self;
    fn asinh(self) -> Self;
    fn acosh(self) -> Self;
    fn atanh(self) -> Self;
    fn cbrt(self) -> Self;
    fn erf(self) -> Self;
    fn erfc(self) -> Self;
    fn erf_inv(self) -> Self;
    fn round(self) -> Self;
    fn pow(self, exponent: Self) -> Self;
    /// Whether the function after this one gives the power.
    fn is_plain_power(self, exponent: Self) -> bool;
    /// The power without signs, and without the cases that have no logarithm.
    fn pow_plain(self, exponent: Self) -> Self;
    fn atan2(self, x: Self) -> Self;
    /// Whether the function after this one gives what is left by a division.
    fn is_plain_remainder(self, divisor: Self) -> bool;
    /// What is left by a division whose quotient is not huge.
    fn remainder_plain(self, divisor: Self) -> Self;
    /// Whether the functions after this one are right for this angle.
    fn is_near(self) -> bool;
    /// The sine without the branch for large angles.
    fn sin_near(self) -> Self;
    /// The cosine without the branch for large angles.
    fn cos_near(self) -> Self;
    /// The tangent without the branch for large angles.
    fn tan_near(self) -> Self;
}

macro_rules! real {
    ($t:ident, $width:ident) => {
        impl Real for $t {
            #[inline(always)]
            fn mul_add(self, factor: Self, addend: Self) -> Self {
                $t::mul_add(self, factor, addend)
            }
            #[inline(always)]
            fn exp(self) -> Self {
                $width::exp(self)
            }
            #[inline(always)]
            fn expm1(self) -> Self {
                $width::expm1(self)
            }
            #[inline(always)]
            fn log(self) -> Self {
                $width::log(self)
            }
            #[inline(always)]
            fn log1p(self) -> Self {
                $width::log1p(self)
            }
            #[inline(always)]
            fn sigmoid(self) -> Self {
                $width::sigmoid(self)
            }
            #[inline(always)]
            fn sin(self) -> Self {
                $width::sin(self)
            }
            #[inline(always)]
            fn cos(self) -> Self {
                $width::cos(self)
            }
            #[inline(always)]
            fn tan(self) -> Self {
                $width::tan(self)
            }
            #[inline(always)]
            fn asin(self) -> Self {
                $width::asin(self)
            }
            #[inline(always)]
            fn acos(self) -> Self {
                $width::acos(self)
            }
            #[inline(always)]
            fn atan(self) -> Self {
                $width::atan(self)
            }
            #[inline(always)]
            fn sinh(self) -> Self {
                $width::sinh(self)
            }
            #[inline(always)]
            fn cosh(self) -> Self {
                $width::cosh(self)
            }
            #[inline(always)]
            fn tanh(self) -> Self {
                $width::tanh(self)
            }
            #[inline(always)]
            fn asinh(self) -> Self {
                $width::asinh(self)
            }
            #[inline(always)]
            fn acosh(self) -> Self {
                $width::acosh(self)
            }
            #[inline(always)]
            fn atanh(self) -> Self {
                $width::atanh(self)
            }
            #[inline(always)]
            fn cbrt(self) -> Self {
                $width::cbrt(self)
            }
            #[inline(always)]
            fn erf(self) -> Self {
                $width::erf(self)
            }
            #[inline(always)]
            fn erfc(self) -> Self {
                $width::erfc(self)
            }
            #[inline(always)]
            fn erf_inv(self) -> Self {
                $width::erf_inv(self)
            }
            #[inline(always)]
            fn round(self) -> Self {
                $width::round(self)
            }
            #[inline(always)]
            fn pow(self, exponent: Self) -> Self {
                $width::pow(self, exponent)
            }
            #[inline(always)]
            fn is_plain_power(self, exponent: Self) -> bool {
                let is_bounded = (self < $t::INFINITY) & (exponent.abs() < $t::INFINITY);
                is_bounded & (self >= $t::MIN_POSITIVE)
            }
            #[inline(always)]
            fn pow_plain(self, exponent: Self) -> Self {
                $width::pow_plain(self, exponent)
            }
            #[inline(always)]
            fn atan2(self, x: Self) -> Self {
                $width::atan2(self, x)
            }
            #[inline(always)]
            fn is_plain_remainder(self, divisor: Self) -> bool {
                $width::is_plain_remainder(self, divisor)
            }
            #[inline(always)]
            fn remainder_plain(self, divisor: Self) -> Self {
                $width::remainder_plain(self, divisor)
            }
            #[inline(always)]
            fn is_near(self) -> bool {
                $width::is_near(self)
            }
            #[inline(always)]
            fn sin_near(self) -> Self {
                $width::sin_near(self)
            }
            #[inline(always)]
            fn cos_near(self) -> Self {
                $width::cos_near(self)
            }
            #[inline(always)]
            fn tan_near(self) -> Self {
                $width::tan_near(self)
            }
        }
    };
}
real!(f32, single);
real!(f64, double);
