//! The caches of plans and roots of unity for Fourier transforms.
//!
//! Threads do not share caches, because a shared cache would need a lock, which a fork can leave locked forever.

use std::cell::RefCell;
use std::f64::consts::TAU;
use std::sync::Arc;
use std::thread::LocalKey;

use nxla_tensor::Complex;
use rustc_hash::FxHashMap;
use rustfft::{Fft, FftNum, FftPlanner};

use super::{ExecContext, collected, require};

/// The cache of a thread.
pub(crate) struct Cache<T: FftNum> {
    planner: FftPlanner<T>,
    /// The roots of unity by length, see [`ExecContext::roots`].
    roots: FxHashMap<usize, Arc<[Complex<T>]>>,
}

/// Real numbers whose transforms are cached.
pub(crate) trait Real: FftNum + Default {
    const CACHE: &'static LocalKey<RefCell<Cache<Self>>>;
    fn of(x: f64) -> Self;
}

macro_rules! real {
    ($($real:ident $cache:ident)*) => {
        $(
            thread_local! {
                static $cache: RefCell<Cache<$real>> = RefCell::new(Cache {
                    planner: FftPlanner::new(),
                    roots: FxHashMap::default(),
                });
            }

            impl Real for $real {
                const CACHE: &'static LocalKey<RefCell<Cache<Self>>> = &$cache;
                fn of(x: f64) -> Self {
                    x as $real
                }
            }
        )*
    };
}
real!(f32 SINGLE f64 DOUBLE);

impl ExecContext<'_> {
    /// The plan of a transform of this length.
    pub(crate) fn transform<T: Real>(&self, length: usize, inverse: bool) -> Arc<dyn Fft<T>> {
        // A plan holds a few factors per element.
        require::<Complex<T>>(length.saturating_mul(4));
        T::CACHE.with_borrow_mut(|Cache { planner, .. }| match inverse {
            true => planner.plan_fft_inverse(length),
            false => planner.plan_fft_forward(length),
        })
    }

    /// `exp(-2πi k / length)` for the first half of the circle; the value at the quarter is exact.
    pub(crate) fn roots<T: Real>(&self, length: usize) -> Arc<[Complex<T>]> {
        let root = |k: usize| match 4 * k == length {
            true => Complex::new(T::zero(), -T::one()),
            false => {
                let (sine, cosine) = (-TAU * k as f64 / length as f64).sin_cos();
                Complex::new(T::of(cosine), T::of(sine))
            }
        };
        T::CACHE.with_borrow_mut(|Cache { roots, .. }| {
            let computed = || collected((0..length / 2).map(root)).into();
            roots.entry(length).or_insert_with(computed).clone()
        })
    }
}
