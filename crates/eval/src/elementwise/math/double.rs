//! Functions of `f64`: those of the platform's library.

#[inline(always)]
pub(super) fn exp(x: f64) -> f64 {
    x.exp()
}

#[inline(always)]
pub(super) fn expm1(x: f64) -> f64 {
    x.exp_m1()
}

#[inline(always)]
pub(super) fn log(x: f64) -> f64 {
    x.ln()
}

#[inline(always)]
pub(super) fn log1p(x: f64) -> f64 {
    x.ln_1p()
}

#[inline(always)]
pub(super) fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + exp(-x))
}

#[inline(always)]
pub(super) fn tanh(x: f64) -> f64 {
    x.tanh()
}

#[inline(always)]
pub(super) fn sin(x: f64) -> f64 {
    x.sin()
}

#[inline(always)]
pub(super) fn cos(x: f64) -> f64 {
    x.cos()
}

/// Whether [`sin_near`] and [`cos_near`] are right for an angle: always.
#[inline(always)]
pub(super) fn is_near(_: f64) -> bool {
    true
}

pub(super) use {cos as cos_near, sin as sin_near};
