//! The standard normal distribution between two bounds.

use nxla_tensor::DType;

use super::super::formula::Formula;
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
        let parameters = [("low", low), ("high", high)];
        self.draw_float(key, parameters, DType::F64, draw, |graph, [low, high]| {
            let [own, tail_key] = graph.keys(key)?;
            let middle = graph.middle_samples(own, low, high)?;
            let formula = Formula::new(graph);
            let [low, high, middle] = formula.terms([low, high, middle]);
            let (is_right, is_left) = (low.greater(TAIL), high.less(-TAIL));
            // The left tail is the mirror image of the right tail.
            let (near, far) = (is_left.select(-high, low), is_left.select(-low, high));
            let is_tail = is_right | is_left;
            let [near, far, in_tail] = formula.ids([near, far, is_tail])?;
            let tail = formula.build(|graph| graph.tail_samples(tail_key, [near, far], in_tail))?;
            let x = is_tail.select(is_left.select(-tail, tail), middle).max(low).min(high);
            low.greater(high).select(f64::NAN, x).id()
        })
    }

    /// Draws samples between bounds that are not in the same tail, by the inverse distribution
    /// function.
    fn middle_samples(&mut self, key: ExprId, low: ExprId, high: ExprId) -> Result<ExprId> {
        let (root, shape) = (std::f64::consts::FRAC_1_SQRT_2, self.shape(low).clone());
        let formula = Formula::new(self);
        let [low, high] = formula.terms([low, high]).map(|bound| (bound * root).erf());
        let [least, most] = formula.ids([low, high])?;
        let u = formula.build(|graph| graph.uniform_in(key, least, most, DType::F64, &shape))?;
        // The inverse of the error function is infinite at -1 and 1.
        let last = 1.0 - f64::EPSILON / 2.0;
        (u.clip(-last, last).erf_inv() / root).id()
    }

    /// Draws samples between `near` and `far`, where `is_tail` states that both are in the tail. A
    /// candidate is at an exponentially distributed distance `d` from `near` with rate `near`, and
    /// is accepted with the probability `exp(-d²/2)`, which is above 0.8 on average.
    fn tail_samples(
        &mut self,
        key: ExprId,
        [near, far]: [ExprId; 2],
        is_tail: ExprId,
    ) -> Result<ExprId> {
        let shape = self.shape(near).clone();
        let formula = Formula::new(self);
        let [low, high, is_tail] = formula.terms([near, far, is_tail]);
        // Elements with infinite, reversed or NaN bounds must not prolong the loop.
        let width = high - low;
        let proper = is_tail & (low.is_finite() & width.greater_equal(0.0));
        let rate = proper.select(low, 1.0);
        // The negated probability of the exponential distribution below `width`: -1 without an
        // upper bound.
        let share = (-(rate * proper.select(width, 1.0))).expm1();
        let [rate, share, done, zero] = formula.ids([rate, share, !proper, low.number(0.0)])?;
        let start = self.broadcast(zero, shape, None)?;
        let distance = self.until_all([key, done, start], |graph, key| {
            let [first, second] = graph.keys(key)?;
            let (u, v) = (graph.unit(first, near)?, graph.unit(second, near)?);
            let formula = Formula::new(graph);
            let [u, v, share, rate] = formula.terms([u, v, share, rate]);
            let distance = -((u * share).log1p() / rate);
            let accepted = v.less((-0.5 * (distance * distance)).exp());
            Ok((distance.id()?, accepted.id()?))
        })?;
        self.add(near, distance)
    }
}
