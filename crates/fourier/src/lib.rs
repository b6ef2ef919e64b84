//! Plans of Fourier transforms by rustfft, and roots of unity.
//!
//! The crate is separate because rustfft is generic: its code is compiled where a plan is made for a type, which takes
//! a fifth of the time of all kernels of the evaluator. Threads do not share caches, because a shared cache would need
//! a lock, which a fork can leave locked forever.
#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::f64::consts::TAU;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use rustfft::FftPlanner;
use rustfft::num_complex::Complex;
pub use rustfft::{Fft, FftNum};

/// Real numbers whose transforms are cached per thread.
pub trait Real: FftNum + Default {
    /// The number that is nearest to `x`.
    fn of(x: f64) -> Self;

    /// The plan of a transform of this length.
    fn plan(length: usize, inverse: bool) -> Arc<dyn Fft<Self>>;

    /// `exp(-2πi k / length)` for the first half of the circle; the value at the quarter is exact.
    ///
    /// ```
    /// use nxla_fourier::Real;
    ///
    /// assert_eq!(f64::roots(4)[1].re, 0.0);
    /// ```
    fn roots(length: usize) -> Arc<[Complex<Self>]>;
}

macro_rules! reals {
    ($($real:ident $plans:ident $roots:ident)*) => {$(
        thread_local! {
            static $plans: RefCell<FftPlanner<$real>> = RefCell::new(FftPlanner::new());
            static $roots: RefCell<FxHashMap<usize, Arc<[Complex<$real>]>>> = RefCell::default();
        }

        impl Real for $real {
            fn of(x: f64) -> Self {
                x as $real
            }

            fn plan(length: usize, inverse: bool) -> Arc<dyn Fft<Self>> {
                $plans.with_borrow_mut(|planner| {
                    if inverse {
                        planner.plan_fft_inverse(length)
                    } else {
                        planner.plan_fft_forward(length)
                    }
                })
            }

            fn roots(length: usize) -> Arc<[Complex<Self>]> {
                let root = |k: usize| {
                    if 4 * k == length {
                        return Complex::new(0.0, -1.0);
                    }
                    let (sine, cosine) = (-TAU * k as f64 / length as f64).sin_cos();
                    Complex::new(cosine as $real, sine as $real)
                };
                let computed = || (0..length / 2).map(root).collect();
                $roots.with_borrow_mut(|roots| roots.entry(length).or_insert_with(computed).clone())
            }
        }
    )*};
}
reals!(f32 SINGLE_PLANS SINGLE_ROOTS f64 DOUBLE_PLANS DOUBLE_ROOTS);
