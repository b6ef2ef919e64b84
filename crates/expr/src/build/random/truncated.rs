//! The standard normal distribution between two bounds.

use nxla_tensor::{DType, Shape};

use super::Draw;
use crate::graph::{ExprId, Graph, Result};

/// The distance from 0 from which intervals are drawn by rejection. Closer to 0, the error function
/// in 64 bits is accurate enough, and rejection would reject more candidates.
const TAIL: f64 = 2.0;

impl Graph {
    /// Draws floats of the standard normal distribution between `low` and `high`, computed in 64 bits. The
    /// result is NaN where `low` is above `high`.
    ///
    /// Intervals near the center are drawn by inverting the error function. Intervals in a tail are
    /// drawn by rejection from an exponential distribution (C. P. Robert, "Simulation of truncated
    /// normal variables", 1995), which is exact at any distance.
    ///
    /// # Errors
    /// Returns the errors of [`Graph::random_uniform`], and an error for complex numbers.
    pub fn random_truncated_normal(
        &mut self,
        key: ExprId,
        low: ExprId,
        high: ExprId,
        draw: &Draw,
    ) -> Result<ExprId> {
        self.check_key(key)?;
        self.check_spread([("low", low), ("high", high)], &draw.shape)?;
        let [dtype, _] = self.float_draw(low, high, draw)?;
        let low = self.spread_to(low, DType::F64, &draw.shape)?;
        let high = self.spread_to(high, DType::F64, &draw.shape)?;
        let [own, tail_key] = self.keys(key)?;
        let (right, left) = (self.near(low, TAIL)?, self.near(low, -TAIL)?);
        let (is_right, is_left) = (self.greater(low, right)?, self.less(high, left)?);
        // The left tail is the mirror image of the right tail.
        let (mirrored_low, mirrored_high) = (self.negate(high)?, self.negate(low)?);
        let near = self.select(is_left, mirrored_low, low)?;
        let far = self.select(is_left, mirrored_high, high)?;
        let is_tail = self.logical_or(is_right, is_left)?;
        let tail = self.tail_samples(tail_key, [near, far], is_tail, &draw.shape)?;
        let mirrored = self.negate(tail)?;
        let tail = self.select(is_left, mirrored, tail)?;
        let middle = self.middle_samples(own, [low, high], &draw.shape)?;
        let x = self.select(is_tail, tail, middle)?;
        let x = self.max(x, low)?;
        let x = self.min(x, high)?;
        let (is_empty, nan) = (self.greater(low, high)?, self.near(x, f64::NAN)?);
        let x = self.select(is_empty, nan, x)?;
        let x = self.as_type(x, dtype)?;
        self.finish_draw(x, draw)
    }

    /// Draws samples between bounds that are not in the same tail, by the inverse distribution
    /// function.
    fn middle_samples(
        &mut self,
        key: ExprId,
        [low, high]: [ExprId; 2],
        shape: &Shape,
    ) -> Result<ExprId> {
        let root = self.near(low, std::f64::consts::FRAC_1_SQRT_2)?;
        let ends = [self.multiply(low, root)?, self.multiply(high, root)?];
        let ends = [self.erf(ends[0])?, self.erf(ends[1])?];
        let u = self.uniform_in(key, ends[0], ends[1], DType::F64, shape)?;
        // The inverse of the error function is infinite at -1 and 1.
        let last = 1.0 - f64::EPSILON / 2.0;
        let (least, most) = (self.near(u, -last)?, self.near(u, last)?);
        let u = self.clip(u, least, most)?;
        let x = self.erf_inv(u)?;
        self.divide(x, root)
    }

    /// Draws samples between `near` and `far`, where `is_tail` states that both are in the tail. A
    /// candidate is at an exponentially distributed distance `d` from `near` with rate `near`, and
    /// is accepted with the probability `exp(-d²/2)`, which is above 0.8 on average.
    fn tail_samples(
        &mut self,
        key: ExprId,
        [near, far]: [ExprId; 2],
        is_tail: ExprId,
        shape: &Shape,
    ) -> Result<ExprId> {
        // Elements with infinite, reversed or NaN bounds must not prolong the loop.
        let (is_finite, width) = (self.is_finite(near)?, self.subtract(far, near)?);
        let zero = self.near(near, 0.0)?;
        let in_order = self.greater_equal(width, zero)?;
        let proper = self.logical_and(is_finite, in_order)?;
        let proper = self.logical_and(is_tail, proper)?;
        let one = self.near(near, 1.0)?;
        let rate = self.select(proper, near, one)?;
        let width = self.select(proper, width, one)?;
        // The negated probability of the exponential distribution below `width`: -1 without an
        // upper bound.
        let exponent = self.multiply(rate, width)?;
        let exponent = self.negate(exponent)?;
        let share = self.expm1(exponent)?;
        let done = self.logical_not(proper)?;
        let start = self.broadcast(zero, shape.clone(), None)?;
        let distance = self.until_all([key, done, start], |graph, key| {
            let [first, second] = graph.keys(key)?;
            let u = graph.unit(first, DType::F64, shape)?;
            let u = graph.multiply(u, share)?;
            let logarithm = graph.log1p(u)?;
            let distance = graph.divide(logarithm, rate)?;
            let distance = graph.negate(distance)?;
            let half = graph.near(distance, -0.5)?;
            let square = graph.multiply(distance, distance)?;
            let exponent = graph.multiply(half, square)?;
            let probability = graph.exp(exponent)?;
            let u = graph.unit(second, DType::F64, shape)?;
            let accepted = graph.less(u, probability)?;
            Ok((distance, accepted))
        })?;
        self.add(near, distance)
    }
}
