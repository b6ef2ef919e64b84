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
mod single;

/// The value of a polynomial by Horner's rule, coefficients from the highest degree down, rounded once
/// per degree.
#[inline(always)]
fn polynomial<T: Real, const N: usize>(x: T, coefficients: [T; N]) -> T {
    let (first, rest) = coefficients.split_first().expect("a polynomial has a coefficient");
    rest.iter().fold(*first, |sum, &coefficient| sum.mul_add(x, coefficient))
}

/// The same value, evaluated from pairs of neighboring coefficients, which shortens the chain of
/// dependent operations by half. `exp` takes 0.7 of its time with Horner's rule on a processor with
/// a latency of five cycles for a multiply-add.
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

/// `x^y` from the power of `|x|`, with the correct sign, and with the correct value where the
/// logarithm does not exist.
macro_rules! signed_power {
    ($t:ident, $x:ident, $y:ident, $power:expr) => {{
        let power: $t = $power;
        // Large floats are even integers, and infinity is treated as one.
        let (whole, halves) = ($y == $y.floor(), 0.5 * $y == (0.5 * $y).floor());
        let no_number = ($x < 0.0) & !whole & ($x.abs() < $t::INFINITY);
        let power = if no_number { $t::NAN } else { power };
        let odd = whole & !halves;
        let power = if odd { power.copysign($x) } else { power };
        // In these cases the product is zero times infinity, or must not depend on NaN.
        let is_one = ($y == 0.0) | ($x == 1.0) | (($x == -1.0) & $y.is_infinite());
        if is_one { 1.0 } else { power }
    }};
}
use signed_power;

/// Declares the trait of real functions, and implements it for `f32` and `f64` by the functions of one module each.
macro_rules! real_functions {
    ($($name:ident($($x:ident)?))*; $($test:ident($($y:ident)?))*) => {
        /// The real functions of the op table. Functions whose names end in `near` and `plain` omit
        /// rare arguments, so that they need no branches; predicates return where they apply.
        pub(crate) trait Real: Copy {
            /// `self * factor + addend`, rounded once.
            fn mul_add(self, factor: Self, addend: Self) -> Self;
            /// Returns true if [`Real::pow_plain`] computes the power.
            fn is_plain_power(self, exponent: Self) -> bool;
            $(fn $name(self $(, $x: Self)?) -> Self;)*
            $(fn $test(self $(, $y: Self)?) -> bool;)*
        }
        real_functions!(@implement f32 single $($name($($x)?))*; $($test($($y)?))*);
        real_functions!(@implement f64 double $($name($($x)?))*; $($test($($y)?))*);
    };
    (@implement $t:ident $module:ident
        $($name:ident($($x:ident)?))*; $($test:ident($($y:ident)?))*) => {
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
                fn $name(self $(, $x: Self)?) -> Self {
                    $module::$name(self $(, $x)?)
                }
            )*
            $(
                #[inline(always)]
                fn $test(self $(, $y: Self)?) -> bool {
                    $module::$test(self $(, $y)?)
                }
            )*
        }
    };
}
real_functions! {
    exp() expm1() log() log1p() sigmoid() sin() cos() tan() asin() acos() atan() sinh() cosh() tanh() asinh() acosh()
        atanh() cbrt() erf() erfc() erf_inv() round() sin_near() cos_near() tan_near() pow(exponent) pow_plain(exponent)
        atan2(x) remainder_plain(divisor);
    is_near() is_plain_remainder(divisor)
}
