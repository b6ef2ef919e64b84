//! Distributions with parameters: exponential, gamma, beta, Dirichlet, Poisson, Bernoulli,
//! categorical.
//!
//! Samples without a closed formula are drawn by rejection: a loop draws candidates until every
//! element has accepted one.

use nxla_tensor::{DType, Scalar, Shape};

use super::Draw;
use crate::graph::{ErrorKind, ExprId, Graph, Result};

/// The factors of gamma samples.
struct GammaParts {
    /// The parameter of the distribution.
    a: ExprId,
    /// The scale of the accepted candidates, about the mean.
    scale: ExprId,
    /// The accepted candidates.
    accepted: ExprId,
    /// The logarithm of the third factor, for parameters below 1.
    power: ExprId,
    /// True for parameters of at least 1, which have two factors.
    is_large: ExprId,
    /// True for positive and finite parameters.
    proper: ExprId,
}

/// The rate from which Poisson samples are drawn by rejection.
const LARGE_RATE: f64 = 10.0;

impl Graph {
    /// Returns the float dtype of a draw and the dtype for computations.
    pub(super) fn float_draw(&self, x: ExprId, y: ExprId, draw: &Draw) -> Result<[DType; 2]> {
        let dtype = self.float_of(x, y, draw)?;
        if !dtype.is_float() {
            return Err(self.not_a(dtype, "a float dtype"));
        }
        Ok([dtype, dtype.at_least_f32()])
    }

    /// Draws uniform values in `[0, 1)`.
    pub(super) fn unit(&mut self, key: ExprId, dtype: DType, shape: &Shape) -> Result<ExprId> {
        let low = self.scalar_constant(Scalar::Float(0.0), dtype)?;
        let high = self.scalar_constant(Scalar::Float(1.0), dtype)?;
        self.uniform_in(key, low, high, dtype, shape)
    }

    /// Draws values of the standard normal distribution.
    fn standard_normal(&mut self, key: ExprId, dtype: DType, shape: &Shape) -> Result<ExprId> {
        let mean = self.scalar_constant(Scalar::Float(0.0), dtype)?;
        let deviation = self.scalar_constant(Scalar::Float(1.0), dtype)?;
        self.random_normal(key, mean, deviation, &Draw::new(shape.clone()))
    }

    /// Splits a key into `N` keys.
    pub(super) fn keys<const N: usize>(&mut self, key: ExprId) -> Result<[ExprId; N]> {
        let keys = self.random_split(key, N)?;
        let mut rows = [keys; N];
        for (index, row) in rows.iter_mut().enumerate() {
            *row = self.row(keys, index)?;
        }
        Ok(rows)
    }

    /// Converts a parameter to a dtype and broadcasts it to the shape of the draw.
    pub(super) fn spread_to(&mut self, x: ExprId, dtype: DType, shape: &Shape) -> Result<ExprId> {
        let (x, shape) = (self.rename(x, None)?, shape.clone());
        let x = self.as_type(x, dtype)?;
        self.broadcast(x, shape, None)
    }

    /// Draws booleans that are true with the probability `p`.
    ///
    /// # Errors
    /// Returns an error for a `key` that is not a `u32[2]`, a `p` that does not broadcast to the
    /// shape, or complex numbers.
    pub fn random_bernoulli(&mut self, key: ExprId, p: ExprId, draw: &Draw) -> Result<ExprId> {
        self.check_key(key)?;
        self.check_spread([("p", p), ("p", p)], &draw.shape)?;
        let untyped = Draw { dtype: None, ..draw.clone() };
        let [_, wide] = self.float_draw(p, p, &untyped)?;
        let u = self.unit(key, wide, &draw.shape)?;
        let p = self.spread_to(p, wide, &draw.shape)?;
        let x = self.less(u, p)?;
        self.finish_draw(x, draw)
    }

    /// Draws floats of the exponential distribution with the mean `scale`.
    ///
    /// # Errors
    /// Returns the errors of [`Graph::random_uniform`], and an error for complex numbers.
    pub fn random_exponential(
        &mut self,
        key: ExprId,
        scale: ExprId,
        draw: &Draw,
    ) -> Result<ExprId> {
        self.check_key(key)?;
        self.check_spread([("scale", scale), ("scale", scale)], &draw.shape)?;
        let [dtype, wide] = self.float_draw(scale, scale, draw)?;
        let u = self.unit(key, wide, &draw.shape)?;
        let u = self.negate(u)?;
        let x = self.log1p(u)?;
        let x = self.negate(x)?;
        let scale = self.spread_to(scale, wide, &draw.shape)?;
        let x = self.multiply(x, scale)?;
        let x = self.as_type(x, dtype)?;
        self.finish_draw(x, draw)
    }

    /// Draws floats of the Laplace distribution around `mean`.
    ///
    /// # Errors
    /// Returns the errors of [`Graph::random_uniform`], and an error for complex numbers.
    pub fn random_laplace(
        &mut self,
        key: ExprId,
        mean: ExprId,
        scale: ExprId,
        draw: &Draw,
    ) -> Result<ExprId> {
        self.check_key(key)?;
        self.check_spread([("mean", mean), ("scale", scale)], &draw.shape)?;
        let [dtype, wide] = self.float_draw(mean, scale, draw)?;
        // The sign uses separate bits, so all other bits determine the distance.
        let [side, distance] = self.keys(key)?;
        let side = self.unit(side, wide, &draw.shape)?;
        let half = self.near(side, 0.5)?;
        let is_left = self.less(side, half)?;
        let u = self.unit(distance, wide, &draw.shape)?;
        let u = self.negate(u)?;
        let left = self.log1p(u)?;
        let right = self.negate(left)?;
        let x = self.select(is_left, left, right)?;
        let mean = self.spread_to(mean, wide, &draw.shape)?;
        let scale = self.spread_to(scale, wide, &draw.shape)?;
        let x = self.multiply(x, scale)?;
        let x = self.add(x, mean)?;
        let x = self.as_type(x, dtype)?;
        self.finish_draw(x, draw)
    }

    /// Draws floats of the gamma distribution with shape `a` and scale 1. The result is NaN for
    /// negative `a`.
    ///
    /// # Errors
    /// Returns the errors of [`Graph::random_uniform`], and an error for complex numbers.
    pub fn random_gamma(&mut self, key: ExprId, a: ExprId, draw: &Draw) -> Result<ExprId> {
        self.check_key(key)?;
        self.check_spread([("a", a), ("a", a)], &draw.shape)?;
        let [dtype, wide] = self.float_draw(a, a, draw)?;
        let parts = self.gamma_parts(key, a, wide, &draw.shape)?;
        let logarithm = self.combine_logarithms(&parts)?;
        let small = self.exp(logarithm)?;
        // The logarithm of a large number has a coarser relative error than the number.
        let large = self.multiply(parts.scale, parts.accepted)?;
        let is_large = self.logical_and(parts.proper, parts.is_large)?;
        let x = self.select(is_large, large, small)?;
        let x = self.as_type(x, dtype)?;
        self.finish_draw(x, draw)
    }

    /// Draws floats of the beta distribution. The result is NaN for a negative parameter.
    ///
    /// # Errors
    /// Returns the errors of [`Graph::random_uniform`], and an error for complex numbers.
    pub fn random_beta(
        &mut self,
        key: ExprId,
        a: ExprId,
        b: ExprId,
        draw: &Draw,
    ) -> Result<ExprId> {
        self.check_key(key)?;
        self.check_spread([("a", a), ("b", b)], &draw.shape)?;
        let [dtype, wide] = self.float_draw(a, b, draw)?;
        let [first, second] = self.keys(key)?;
        let x = self.log_gamma_samples(first, a, wide, &draw.shape)?;
        let y = self.log_gamma_samples(second, b, wide, &draw.shape)?;
        // `x / (x + y)` from the logarithms of `x` and `y`, which may underflow themselves.
        let difference = self.subtract(x, y)?;
        let share = self.sigmoid(difference)?;
        let share = self.as_type(share, dtype)?;
        self.finish_draw(share, draw)
    }

    /// Draws vectors of the Dirichlet distribution, whose elements add up to 1. The last axis of
    /// `alpha` holds the parameters of one vector; `draw.shape` does not include this axis.
    /// `draw.names` are the names of the result.
    ///
    /// # Errors
    /// Returns the errors of [`Graph::random_uniform`], and an error for an `alpha` without axes or
    /// shares or complex numbers.
    pub fn random_dirichlet(&mut self, key: ExprId, alpha: ExprId, draw: &Draw) -> Result<ExprId> {
        let op = "dirichlet";
        self.check_key(key)?;
        let Some(&shares) = self.shape(alpha).last().filter(|&&shares| shares > 0) else {
            let found = self.tensor_type(alpha).to_string();
            let (argument, expected) = ("alpha", "a last axis of at least one share".to_owned());
            return Err(self.error(op, ErrorKind::Shape { argument, found, expected }));
        };
        let shape: Shape = draw.shape.iter().copied().chain([shares]).collect();
        self.check_spread([("alpha", alpha), ("alpha", alpha)], &shape)?;
        let [dtype, wide] = self.float_draw(alpha, alpha, draw)?;
        let logarithms = self.log_gamma_samples(key, alpha, wide, &shape)?;
        let largest = self.reduce_max(logarithms, Some(&[-1]), true)?;
        let lower = self.subtract(logarithms, largest)?;
        let parts = self.exp(lower)?;
        let whole = self.sum(parts, Some(&[-1]), true)?;
        let x = self.divide(parts, whole)?;
        let x = self.as_type(x, dtype)?;
        self.finish_draw(x, &Draw { shape, dtype: draw.dtype, names: draw.names.clone() })
    }

    /// Draws logarithms of gamma samples.
    fn log_gamma_samples(
        &mut self,
        key: ExprId,
        a: ExprId,
        dtype: DType,
        shape: &Shape,
    ) -> Result<ExprId> {
        let parts = self.gamma_parts(key, a, dtype, shape)?;
        self.combine_logarithms(&parts)
    }

    /// Draws the factors of gamma samples by G. Marsaglia and W. W. Tsang, "A simple method for
    /// generating gamma variables" (2000). For shapes below 1, samples for `a + 1` are multiplied
    /// by a power of a uniform value.
    fn gamma_parts(
        &mut self,
        key: ExprId,
        a: ExprId,
        dtype: DType,
        shape: &Shape,
    ) -> Result<GammaParts> {
        let a = self.spread_to(a, dtype, shape)?;
        let [own, boost] = self.keys(key)?;
        let one = self.near(a, 1.0)?;
        let is_large = self.greater_equal(a, one)?;
        let raised = self.add(a, one)?;
        let raised = self.select(is_large, a, raised)?;
        let third = self.near(a, 1.0 / 3.0)?;
        let d = self.subtract(raised, third)?;
        let nine = self.near(d, 9.0)?;
        let c = self.multiply(nine, d)?;
        let c = self.rsqrt(c)?;
        // An element with an invalid parameter counts as drawn, because it would otherwise never be
        // accepted and the loop would not end.
        let (zero, finite) = (self.near(a, 0.0)?, self.is_finite(a)?);
        let positive = self.greater(a, zero)?;
        let proper = self.logical_and(finite, positive)?;
        let done = self.logical_not(proper)?;
        let start = self.broadcast(one, shape.clone(), None)?;
        let state = [own, done, start];
        let accepted =
            self.until_all(state, |graph, key| graph.gamma_candidate(key, c, d, dtype, shape))?;
        let u = self.unit(boost, dtype, shape)?;
        let u = self.negate(u)?;
        let u = self.log1p(u)?;
        let power = self.divide(u, a)?;
        Ok(GammaParts { a, scale: d, accepted, power, is_large, proper })
    }

    /// Returns logarithms of gamma samples, which underflow less than the samples.
    fn combine_logarithms(&mut self, parts: &GammaParts) -> Result<ExprId> {
        let scale = self.log(parts.scale)?;
        let accepted = self.log(parts.accepted)?;
        let logarithm = self.add(scale, accepted)?;
        let smaller = self.add(logarithm, parts.power)?;
        let logarithm = self.select(parts.is_large, logarithm, smaller)?;
        // `log(a)` is minus infinity for 0, infinity for infinity, and NaN otherwise.
        let limit = self.log(parts.a)?;
        self.select(parts.proper, logarithm, limit)
    }

    /// Returns a candidate divided by `d`, and whether it is accepted.
    fn gamma_candidate(
        &mut self,
        key: ExprId,
        c: ExprId,
        d: ExprId,
        dtype: DType,
        shape: &Shape,
    ) -> Result<(ExprId, ExprId)> {
        let [first, second] = self.keys(key)?;
        let x = self.standard_normal(first, dtype, shape)?;
        let one = self.near(x, 1.0)?;
        let zero = self.near(x, 0.0)?;
        // The sample is `v = (1 + t)^3`. Large parameters make `t` small, so that `log(v) - (v - 1)` is computed from
        // `t` and not from the rounded `v`.
        let t = self.multiply(c, x)?;
        let minus_one = self.near(x, -1.0)?;
        let positive = self.greater(t, minus_one)?;
        let t = self.select(positive, t, zero)?;
        let three = self.near(x, 3.0)?;
        let log_v = self.log1p(t)?;
        let log_v = self.multiply(three, log_v)?;
        let rise = self.add(three, t)?;
        let rise = self.multiply(rise, t)?;
        let rise = self.add(rise, three)?;
        let rise = self.multiply(rise, t)?;
        let v = self.add(rise, one)?;
        let half = self.near(x, 0.5)?;
        let x = self.multiply(x, x)?;
        let bound = self.multiply(half, x)?;
        let excess = self.subtract(log_v, rise)?;
        let excess = self.multiply(d, excess)?;
        let bound = self.add(bound, excess)?;
        let u = self.unit(second, dtype, shape)?;
        let u = self.negate(u)?;
        let log_u = self.log1p(u)?;
        let below = self.less(log_u, bound)?;
        Ok((v, self.logical_and(positive, below)?))
    }

    /// Draws candidates until every element has accepted one. The state is a key, the finished
    /// elements and the samples; `candidate` returns samples and whether to accept them.
    pub(super) fn until_all(
        &mut self,
        initial: [ExprId; 3],
        candidate: impl FnOnce(&mut Graph, ExprId) -> Result<(ExprId, ExprId)>,
    ) -> Result<ExprId> {
        let types: Vec<_> = initial.iter().map(|&id| self.tensor_type(id).clone()).collect();
        let mark = self.mark();
        let scope = self.open_scope("while", &types);
        let (key, done, samples) = (scope.parameters[0], scope.parameters[1], scope.parameters[2]);
        let all = self.all(done, None, false)?;
        let goes_on = self.logical_not(all)?;
        let condition = self.traced(mark, vec![goes_on]);
        let inner = self.mark();
        let (next, own) = self.random_next(key)?;
        let (drawn, accepted) = candidate(self, own)?;
        let waiting = self.logical_not(done)?;
        let taken = self.logical_and(waiting, accepted)?;
        let samples = self.select(taken, drawn, samples)?;
        let done = self.logical_or(done, accepted)?;
        let body = self.traced(inner, vec![next, done, samples]);
        Ok(self.while_loop(mark, &scope, &initial, condition, body)?[2])
    }

    /// Draws counts of the Poisson distribution with a rate, as `s32` by default. The result is -1
    /// for a negative or NaN rate.
    ///
    /// Rates below 10 use the inverse distribution function. Other rates use rejection by W.
    /// Hörmann, "The transformed rejection method for generating Poisson random variables" (1993).
    ///
    /// # Errors
    /// Returns the errors of [`Graph::random_uniform`], and an error for a dtype that is not an
    /// integer, or complex rates.
    pub fn random_poisson(&mut self, key: ExprId, rate: ExprId, draw: &Draw) -> Result<ExprId> {
        self.check_key(key)?;
        self.check_spread([("rate", rate), ("rate", rate)], &draw.shape)?;
        let dtype = draw.dtype.unwrap_or(DType::S32);
        if !dtype.is_integer() || dtype.is_pred() {
            return Err(self.not_a(dtype, "an integer dtype"));
        }
        if self.dtype(rate).is_complex() {
            return Err(self.not_a(self.dtype(rate), "a real dtype"));
        }
        let rate = self.spread_to(rate, DType::F64, &draw.shape)?;
        let limit = self.near(rate, LARGE_RATE)?;
        let is_large = self.greater_equal(rate, limit)?;
        let [small_key, large_key] = self.keys(key)?;
        let small = self.few_events(small_key, rate, is_large)?;
        let large = self.many_events(large_key, rate, is_large)?;
        let x = self.select(is_large, large, small)?;
        let zero = self.near(rate, 0.0)?;
        let proper = self.greater_equal(rate, zero)?;
        let none = self.near(rate, -1.0)?;
        let x = self.select(proper, x, none)?;
        let x = self.as_type(x, dtype)?;
        self.finish_draw(x, draw)
    }

    /// Returns the number of terms of the distribution whose sum reaches a uniform value.
    fn few_events(&mut self, key: ExprId, rate: ExprId, is_large: ExprId) -> Result<ExprId> {
        let shape = self.shape(rate).clone();
        let u = self.unit(key, DType::F64, &shape)?;
        let zero = self.near(rate, 0.0)?;
        let small = self.select(is_large, zero, rate)?;
        let small = self.max(small, zero)?;
        let negative = self.negate(small)?;
        let term = self.exp(negative)?;
        let number = self.broadcast(zero, shape, None)?;
        let initial = [number, term, term];
        let types: Vec<_> = initial.iter().map(|&id| self.tensor_type(id).clone()).collect();
        let mark = self.mark();
        let scope = self.open_scope("while", &types);
        let (number, term, sum) = (scope.parameters[0], scope.parameters[1], scope.parameters[2]);
        // The search also ends when a term no longer changes the sum.
        let searching = |graph: &mut Graph| -> Result<ExprId> {
            let before = graph.less(sum, u)?;
            let tiny = graph.near(term, 1e-30)?;
            let matters = graph.greater(term, tiny)?;
            graph.logical_and(before, matters)
        };
        let goes_on = searching(self)?;
        let goes_on = self.any(goes_on, None, false)?;
        let condition = self.traced(mark, vec![goes_on]);
        let inner = self.mark();
        let active = searching(self)?;
        let one = self.near(number, 1.0)?;
        let following = self.add(number, one)?;
        let ratio = self.divide(small, following)?;
        let next_term = self.multiply(term, ratio)?;
        let next_sum = self.add(sum, next_term)?;
        let results = vec![
            self.select(active, following, number)?,
            self.select(active, next_term, term)?,
            self.select(active, next_sum, sum)?,
        ];
        let body = self.traced(inner, results);
        Ok(self.while_loop(mark, &scope, &initial, condition, body)?[0])
    }

    fn many_events(&mut self, key: ExprId, rate: ExprId, is_large: ExprId) -> Result<ExprId> {
        let limit = self.near(rate, LARGE_RATE)?;
        let finite = self.is_finite(rate)?;
        let proper = self.logical_and(is_large, finite)?;
        let done = self.logical_not(proper)?;
        let safe = self.select(proper, rate, limit)?;
        let shape = self.shape(rate).clone();
        let zero = self.near(rate, 0.0)?;
        let start = self.broadcast(zero, shape.clone(), None)?;
        let events = self.until_all([key, done, start], |graph, key| {
            graph.poisson_candidate(key, safe, &shape)
        })?;
        self.select(proper, events, rate)
    }

    /// Returns a count and whether it is accepted. The constants are from the paper.
    fn poisson_candidate(
        &mut self,
        key: ExprId,
        rate: ExprId,
        shape: &Shape,
    ) -> Result<(ExprId, ExprId)> {
        let [first, second] = self.keys(key)?;
        let u = self.unit(first, DType::F64, shape)?;
        let half = self.near(u, 0.5)?;
        let u = self.subtract(u, half)?;
        let v = self.unit(second, DType::F64, shape)?;
        let linear = |graph: &mut Graph, offset: f64, factor: f64, x: ExprId| -> Result<ExprId> {
            let factor = graph.near(x, factor)?;
            let scaled = graph.multiply(factor, x)?;
            let offset = graph.near(x, offset)?;
            graph.add(offset, scaled)
        };
        let inverse = |graph: &mut Graph, x: ExprId, less: f64| -> Result<ExprId> {
            let shifted = linear(graph, -less, 1.0, x)?;
            graph.reciprocal(shifted)
        };
        let root = self.sqrt(rate)?;
        let b = linear(self, 0.931, 2.53, root)?;
        let a = linear(self, -0.059, 0.02483, b)?;
        let from_b = inverse(self, b, 3.4)?;
        let inverse_alpha = linear(self, 1.1239, 1.1328, from_b)?;
        let from_b = inverse(self, b, 2.0)?;
        let quick_limit = linear(self, 0.9277, -3.6224, from_b)?;
        let distance = self.abs(u)?;
        let us = linear(self, 0.5, -1.0, distance)?;
        // k = floor((2 a / us + b) u + rate + 0.43)
        let double = linear(self, 0.0, 2.0, a)?;
        let steep = self.divide(double, us)?;
        let slope = self.add(steep, b)?;
        let place = self.multiply(slope, u)?;
        let place = self.add(place, rate)?;
        let place = linear(self, 0.43, 1.0, place)?;
        let k = self.floor(place)?;
        let bound = |graph: &mut Graph, value: f64| graph.near(us, value);
        let (wide, narrow) = (bound(self, 0.07)?, bound(self, 0.013)?);
        let inside = self.greater_equal(us, wide)?;
        let below = self.less_equal(v, quick_limit)?;
        let quick = self.logical_and(inside, below)?;
        let zero = self.near(k, 0.0)?;
        let possible = self.greater_equal(k, zero)?;
        let edge = self.less(us, narrow)?;
        let above = self.greater(v, us)?;
        let refused = self.logical_and(edge, above)?;
        let not_refused = self.logical_not(refused)?;
        let possible = self.logical_and(possible, not_refused)?;
        // log(v / alpha / (a / us² + b)) <= log(probability of k)
        let square = self.multiply(us, us)?;
        let density = self.divide(a, square)?;
        let density = self.add(density, b)?;
        let height = self.multiply(v, inverse_alpha)?;
        let height = self.divide(height, density)?;
        let height = self.log(height)?;
        let count = self.max(k, zero)?;
        let allowed = self.log_poisson_mass(count, rate)?;
        let exact = self.less_equal(height, allowed)?;
        let exact = self.logical_and(possible, exact)?;
        Ok((k, self.logical_or(quick, exact)?))
    }

    /// Returns `k log(rate) - rate - log(k!)` by Stirling's series for `log(Γ(z))`, `z = k + 1`.
    ///
    /// The large terms are combined: `-k log(z / rate) + z - rate`. Computed one by one, they would
    /// round to multiples of more than 1 for large rates.
    fn log_poisson_mass(&mut self, k: ExprId, rate: ExprId) -> Result<ExprId> {
        let one = self.near(k, 1.0)?;
        let z = self.add(k, one)?;
        let distance = self.subtract(z, rate)?;
        let ratio = self.divide(distance, rate)?;
        let ratio = self.log1p(ratio)?;
        let product = self.multiply(k, ratio)?;
        let main = self.subtract(distance, product)?;
        let inverse = self.reciprocal(z)?;
        let square = self.multiply(inverse, inverse)?;
        let mut series = self.near(z, 1.0 / 1260.0)?;
        for coefficient in [-1.0 / 360.0, 1.0 / 12.0] {
            series = self.multiply(series, square)?;
            let coefficient = self.near(z, coefficient)?;
            series = self.add(series, coefficient)?;
        }
        let series = self.multiply(series, inverse)?;
        let logarithm = self.log(z)?;
        let half = self.near(z, 0.5)?;
        let root = self.multiply(half, logarithm)?;
        let constant = self.near(z, 0.5 * std::f64::consts::TAU.ln())?;
        let rest = self.add(root, constant)?;
        let rest = self.add(rest, series)?;
        self.subtract(main, rest)
    }

    /// Draws indices along an axis of `logits` with probabilities proportional to `exp(logits)`:
    /// the position of the maximum of logits plus Gumbel noise. `draw.shape` is the shape of the
    /// result, which ends with the other axes of `logits`. The default dtype is `s32`.
    ///
    /// # Errors
    /// Returns an error for a `key` that is not a `u32[2]`; for an axis out of range or without
    /// elements; for a shape that does not fit; for complex numbers, or a dtype that is not an
    /// integer.
    pub fn random_categorical(
        &mut self,
        key: ExprId,
        logits: ExprId,
        axis: i64,
        draw: &Draw,
    ) -> Result<ExprId> {
        let op = "categorical";
        self.check_key(key)?;
        let at = self.axis(op, logits, axis)?;
        let own = self.shape(logits).clone();
        let mut batch = own.clone();
        let categories = batch.remove(at);
        let added = draw.shape.rank().checked_sub(batch.rank());
        let Some(added) = added.filter(|&added| draw.shape[added..] == batch[..]) else {
            let (argument, found) = ("shape", format!("{:?}", &draw.shape[..]));
            let expected = format!("a shape that ends with {:?}, as the logits do", &batch[..]);
            return Err(self.error(op, ErrorKind::Shape { argument, found, expected }));
        };
        if categories == 0 {
            let found = self.tensor_type(logits);
            let why = format!("must have at least one category along axis {at}; got {found}");
            return Err(self.invalid(op, "logits", why));
        }
        let dtype = draw.dtype.unwrap_or(DType::S32);
        if !dtype.is_integer() || dtype.is_pred() {
            return Err(self.not_a(dtype, "an integer dtype"));
        }
        // Narrow floats have too few distinct values for the noise and for its sum with logits.
        let float = self.dtype(logits).to_floating().at_least_f32();
        if !float.is_float() {
            return Err(self.not_a(float, "a real dtype"));
        }
        let shape: Shape = draw.shape[..added].iter().chain(own.iter()).copied().collect();
        let noise = Draw { shape, dtype: Some(float), names: None };
        let noise = self.random_gumbel(key, &noise)?;
        let logits = self.rename(logits, None)?;
        let total = self.add(noise, logits)?;
        let axis = i64::try_from(added + at).expect("an axis is small");
        let x = self.argmax(total, Some(axis), false, false, dtype)?;
        self.finish_draw(x, draw)
    }
}
