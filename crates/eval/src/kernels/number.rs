//! The arithmetic of sums and products.
//!
//! Integers wrap, so signed integers are computed as unsigned ones, which have the same bits. Sums of `f32` accumulate
//! in `f64`, and of `c64` in `c128`, and are rounded once.

use nxla_tensor::{Complex, DType, Element};

/// The greatest common divisor.
pub(crate) fn gcd(mut a: usize, mut b: usize) -> usize {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Elements that can be multiplied and added.
pub(crate) trait Number: Element {
    /// The accumulator.
    type Sum: bytemuck::Pod + Send + Sync;
    const EMPTY_SUM: Self::Sum;
    const EMPTY_PRODUCT: Self::Sum;
    fn widen(self) -> Self::Sum;
    fn narrow(sum: Self::Sum) -> Self;
    fn add(a: Self::Sum, b: Self::Sum) -> Self::Sum;
    fn multiply(a: Self::Sum, b: Self::Sum) -> Self::Sum;
    /// The product in the precision of the accumulator.
    #[inline(always)]
    fn wide_product(self, other: Self) -> Self::Sum {
        Self::multiply(self.widen(), other.widen())
    }
    /// Adds a product to a sum.
    #[inline(always)]
    fn add_product(sum: Self::Sum, x: Self, y: Self) -> Self::Sum {
        Self::add(sum, x.wide_product(y))
    }
    /// The sum in the precision of the elements.
    fn plus(self, other: Self) -> Self;
    /// The product in the precision of the elements.
    fn times(self, other: Self) -> Self;
}

macro_rules! numbers {
    ($($t:ty, $sum:ty: $zero:expr, $one:expr, $widen:expr, $narrow:expr,
        $add:expr, $multiply:expr, $plus:expr, $times:expr;)*) => {
        $(impl Number for $t {
            type Sum = $sum;
            const EMPTY_SUM: $sum = $zero;
            const EMPTY_PRODUCT: $sum = $one;
            #[inline(always)]
            fn widen(self) -> $sum {
                $widen(self)
            }
            #[inline(always)]
            fn narrow(sum: $sum) -> $t {
                $narrow(sum)
            }
            #[inline(always)]
            fn add(a: $sum, b: $sum) -> $sum {
                $add(a, b)
            }
            #[inline(always)]
            fn multiply(a: $sum, b: $sum) -> $sum {
                $multiply(a, b)
            }
            #[inline(always)]
            fn plus(self, other: $t) -> $t {
                $plus(self, other)
            }
            #[inline(always)]
            fn times(self, other: $t) -> $t {
                $times(self, other)
            }
        })*
    };
}

macro_rules! integers {
    ($($t:ident)*) => {
        numbers! {
            $($t, $t: 0, 1, |x| x, |x| x, $t::wrapping_add, $t::wrapping_mul,
                $t::wrapping_add, $t::wrapping_mul;)*
        }
    };
}
integers!(u32 u64);

macro_rules! floats {
    ($($t:ty, $sum:ty: $zero:expr, $one:expr, $widen:expr, $narrow:expr;)*) => {
        numbers! {
            $($t, $sum: $zero, $one, $widen, $narrow, |a: $sum, b: $sum| a + b,
                |a: $sum, b: $sum| a * b, |a: $t, b: $t| a + b, |a: $t, b: $t| a * b;)*
        }
    };
}
floats! {
    f32, f64: 0.0, 1.0, f64::from, |sum| sum as f32;
    f64, f64: 0.0, 1.0, |x| x, |sum| sum;
    Complex<f32>, Complex<f64>: Complex::ZERO, Complex::ONE, wide, narrow;
    Complex<f64>, Complex<f64>: Complex::ZERO, Complex::ONE, |z| z, |z| z;
}

#[inline(always)]
pub(crate) fn wide(z: Complex<f32>) -> Complex<f64> {
    Complex::new(f64::from(z.re), f64::from(z.im))
}

#[inline(always)]
pub(crate) fn narrow(z: Complex<f64>) -> Complex<f32> {
    Complex::new(z.re as f32, z.im as f32)
}

/// The dtype that computes sums and products of a dtype. Narrow integers are computed in 32 bits,
/// which wrap to the same result, so that the kernels have few types.
pub(crate) fn compute_dtype(dtype: DType) -> DType {
    dtype.to_aggregate().at_least_f32()
}

/// The dtype that accumulates sums and products of a dtype.
pub(crate) fn accumulator_dtype(dtype: DType) -> DType {
    match dtype {
        dtype if dtype.is_complex() => DType::C128,
        dtype if dtype.is_float() => DType::F64,
        dtype if dtype.is_signed() => DType::S64,
        _ => DType::U64,
    }
}

/// Binds a type to the numbers of a dtype that [`compute_dtype`] returns.
macro_rules! match_number {
    ($dtype:expr, $t:ident => $body:expr) => {{
        use nxla_tensor::{Complex, DType};
        match $dtype {
            DType::F32 => $crate::kernels::with_type!($t = f32 => $body),
            DType::U32 | DType::S32 => $crate::kernels::with_type!($t = u32 => $body),
            DType::C64 => $crate::kernels::with_type!($t = Complex<f32> => $body),
            dtype => $crate::kernels::number::match_wide!(dtype, $t => $body),
        }
    }};
}
pub(crate) use match_number;

/// Binds a type to the numbers of a dtype that [`accumulator_dtype`] returns.
macro_rules! match_wide {
    ($dtype:expr, $t:ident => $body:expr) => {{
        use nxla_tensor::{Complex, DType};
        match $dtype {
            DType::U64 | DType::S64 => $crate::kernels::with_type!($t = u64 => $body),
            DType::F64 => $crate::kernels::with_type!($t = f64 => $body),
            DType::C128 => $crate::kernels::with_type!($t = Complex<f64> => $body),
            dtype => unreachable!("{dtype} is widened before it is added up"),
        }
    }};
}
pub(crate) use match_wide;
