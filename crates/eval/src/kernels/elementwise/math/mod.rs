//! Real and complex functions of one number.
//!
//! The kernels call everything through [`Real`], so that a function can have its own
//! implementation for each width, and complex numbers through the functions of [`complex`].

mod arcs;
mod circular;
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

/// Declares the trait of real functions, and implements it for `f32` and `f64` by the functions of one module each.
macro_rules! real_functions {
    ($($(#[$doc:meta])* $name:ident($($argument:ident),*) -> $result:ty;)*) => {
        /// The real functions of the op table.
        pub(crate) trait Real: Copy {
            /// `self * factor + addend`, rounded once.
            fn mul_add(self, factor: Self, addend: Self) -> Self;
            /// Returns true if [`Real::pow_plain`] computes the power.
            fn is_plain_power(self, exponent: Self) -> bool;
            $($(#[$doc])* fn $name(self $(, $argument: Self)*) -> $result;)*
        }
        real_functions!(@implement f32 single $($name($($argument),*) -> $result;)*);
        real_functions!(@implement f64 double $($name($($argument),*) -> $result;)*);
    };
    (@implement $t:ident $module:ident $($name:ident($($argument:ident),*) -> $result:ty;)*) => {
        impl Real for $t {
            #[inline(always)]
            fn mul_add(self, factor: Self, addend: Self) -> Self {
                $t::mul_add(self, factor, addend)
            }
            #[inline(always)]
            fn is_plain_power(self, exponent: Self) -> bool {
                let is_bounded = (self < $t::INFINITY) & (exponent.abs() < $t::INFINITY);
                is_bounded & (self >= $t::MIN_POSITIVE)
            }
            $(
                #[inline(always)]
                fn $name(self $(, $argument: Self)*) -> $result {
                    $module::$name(self $(, $argument)*)
                }
            )*
        }
    };
}
real_functions! {
    exp() -> Self;
    expm1() -> Self;
    log() -> Self;
    log1p() -> Self;
    sigmoid() -> Self;
    sin() -> Self;
    cos() -> Self;
    tan() -> Self;
    asin() -> Self;
    acos() -> Self;
    atan() -> Self;
    sinh() -> Self;
    cosh() -> Self;
    tanh() -> Self;
    asinh() -> Self;
    acosh() -> Self;
    atanh() -> Self;
    cbrt() -> Self;
    erf() -> Self;
    erfc() -> Self;
    erf_inv() -> Self;
    round() -> Self;
    pow(exponent) -> Self;
    /// The power of a positive normal number, without the cases of signs and infinities.
    pow_plain(exponent) -> Self;
    atan2(x) -> Self;
    /// True if [`Real::remainder_plain`] computes the remainder.
    is_plain_remainder(divisor) -> bool;
    /// The remainder of a division whose quotient is not huge.
    remainder_plain(divisor) -> Self;
    /// True if the next three functions are accurate for this angle.
    is_near() -> bool;
    /// The sine without the branch for large angles.
    sin_near() -> Self;
    /// The cosine without the branch for large angles.
    cos_near() -> Self;
    /// The tangent without the branch for large angles.
    tan_near() -> Self;
}
