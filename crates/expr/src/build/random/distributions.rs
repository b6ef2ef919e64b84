//! Distributions with parameters: exponential, gamma, beta, Dirichlet, Poisson, Bernoulli,
//! categorical.
//!
//! Samples without a closed formula are drawn by rejection: a loop draws candidates until every
//! element has accepted one.

use nxla_tensor::{DType, Shape, to_i64};

use super::super::formula::{Formula, Term};
use super::Draw;
use crate::graph::{ErrorKind, ExprId, Graph, Replay, Result};

/// The rate from which Poisson samples are drawn by rejection.
const LARGE_RATE: f64 = 10.0;

impl Graph {
    /// Draws floats by `sample`, which receives the parameters in the shape of the draw and in at least
    /// the dtype `least`. The result is rounded to the dtype of the draw.
    pub(super) fn draw_float<const N: usize>(
        &mut self,
        key: ExprId,
        parameters: [(&'static str, ExprId); N],
        least: DType,
        draw: &Draw,
        sample: impl FnOnce(&mut Graph, [ExprId; N]) -> Result<ExprId>,
    ) -> Result<ExprId> {
        self.check_key(key)?;
        self.check_spread(&parameters, &draw.shape)?;
        let mut ids = parameters.map(|(_, id)| id);
        let dtype = self.float_of(&ids, draw)?;
        if !dtype.is_float() {
            return Err(self.not_a(dtype, "a float dtype"));
        }
        let compute = if dtype.bits() < least.bits() { least } else { dtype };
        for id in &mut ids {
            *id = self.spread_to(*id, compute, &draw.shape)?;
        }
        let x = sample(self, ids)?;
        let x = self.as_type(x, dtype)?;
        self.finish_draw(x, draw)
    }

    /// Draws uniform values in `[0, 1)` of the type of `like`.
    pub(super) fn unit(&mut self, key: ExprId, like: ExprId) -> Result<ExprId> {
        let (dtype, shape) = (self.dtype(like), self.shape(like).clone());
        let (low, high) = (self.zero_like(like)?, self.one_like(like)?);
        self.uniform_in(key, low, high, dtype, &shape)
    }

    /// Draws values of the standard normal distribution of the type of `like`.
    fn standard_normal(&mut self, key: ExprId, like: ExprId) -> Result<ExprId> {
        let (mean, deviation) = (self.zero_like(like)?, self.one_like(like)?);
        self.random_normal(key, mean, deviation, &Draw::new(self.shape(like).clone()))
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
        self.check_spread(&[("p", p)], &draw.shape)?;
        let float = self.float_of(&[p], &Draw { dtype: None, ..draw.clone() })?;
        if !float.is_float() {
            return Err(self.not_a(float, "a float dtype"));
        }
        let p = self.spread_to(p, float.at_least_f32(), &draw.shape)?;
        let u = self.unit(key, p)?;
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
        self.draw_float(key, [("scale", scale)], DType::F32, draw, |graph, [scale]| {
            let u = graph.unit(key, scale)?;
            let formula = Formula::new(graph);
            let [u, scale] = formula.terms([u, scale]);
            (-(-u).log1p() * scale).id()
        })
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
        let parameters = [("mean", mean), ("scale", scale)];
        self.draw_float(key, parameters, DType::F32, draw, |graph, [mean, scale]| {
            // The sign uses separate bits, so all other bits determine the distance.
            let [side, distance] = graph.keys(key)?;
            let (side, u) = (graph.unit(side, mean)?, graph.unit(distance, mean)?);
            let formula = Formula::new(graph);
            let [side, u, mean, scale] = formula.terms([side, u, mean, scale]);
            let left = (-u).log1p();
            (side.less(0.5).select(left, -left) * scale + mean).id()
        })
    }

    /// Draws floats of the gamma distribution with shape `a` and scale 1. The result is NaN for
    /// negative `a`.
    ///
    /// # Errors
    /// Returns the errors of [`Graph::random_uniform`], and an error for complex numbers.
    pub fn random_gamma(&mut self, key: ExprId, a: ExprId, draw: &Draw) -> Result<ExprId> {
        self.draw_float(key, [("a", a)], DType::F32, draw, |graph, [a]| {
            let [sample, _] = graph.gamma_samples(key, a)?;
            Ok(sample)
        })
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
        self.draw_float(key, [("a", a), ("b", b)], DType::F32, draw, |graph, [a, b]| {
            let [first, second] = graph.keys(key)?;
            let [_, x] = graph.gamma_samples(first, a)?;
            let [_, y] = graph.gamma_samples(second, b)?;
            // `x / (x + y)` from the logarithms of `x` and `y`, which may underflow themselves.
            let difference = graph.subtract(x, y)?;
            graph.sigmoid(difference)
        })
    }

    /// Draws vectors of the Dirichlet distribution, whose elements add up to 1. The last axis of
    /// `alpha` holds the parameters of one vector; `draw.shape` does not include this axis.
    /// `draw.names` are the names of the result.
    ///
    /// # Errors
    /// Returns the errors of [`Graph::random_uniform`], and an error for an `alpha` without axes or
    /// shares or complex numbers.
    pub fn random_dirichlet(&mut self, key: ExprId, alpha: ExprId, draw: &Draw) -> Result<ExprId> {
        let Some(&shares) = self.shape(alpha).last().filter(|&&shares| shares > 0) else {
            let found = self.tensor_type(alpha).to_string();
            let (argument, expected) = ("alpha", "a last axis of at least one share".to_owned());
            let kind = ErrorKind::Shape { argument, found, expected };
            return Err(self.error("dirichlet", kind));
        };
        let shape: Shape = draw.shape.iter().copied().chain([shares]).collect();
        let draw = Draw { shape, ..draw.clone() };
        self.draw_float(key, [("alpha", alpha)], DType::F32, &draw, |graph, [alpha]| {
            let [_, logarithms] = graph.gamma_samples(key, alpha)?;
            let largest = graph.reduce_max(logarithms, Some(&[-1]), true)?;
            let lower = graph.subtract(logarithms, largest)?;
            let parts = graph.exp(lower)?;
            let whole = graph.sum(parts, Some(&[-1]), true)?;
            graph.divide(parts, whole)
        })
    }

    /// Draws gamma samples, and returns the samples and their logarithms, which underflow less. By
    /// G. Marsaglia and W. W. Tsang, "A simple method for generating gamma variables" (2000). For
    /// parameters below 1, samples for `a + 1` are multiplied by a power of a uniform value.
    fn gamma_samples(&mut self, key: ExprId, a: ExprId) -> Result<[ExprId; 2]> {
        let [own, boost] = self.keys(key)?;
        let (u, shape) = (self.unit(boost, a)?, self.shape(a).clone());
        let formula = Formula::new(self);
        let [a, u] = formula.terms([a, u]);
        let is_large = a.greater_equal(1.0);
        let d = is_large.select(a, a + 1.0) - 1.0 / 3.0;
        let c = (9.0 * d).rsqrt();
        let proper = a.is_finite() & a.greater(0.0);
        let ids = formula.ids([c, d, !proper, a.number(1.0)])?;
        let accepted = formula.build(|graph| {
            let [c, d, done, one] = ids;
            // An element with an invalid parameter counts as drawn, because it would otherwise never
            // be accepted and the loop would not end.
            let state = [own, done, graph.broadcast(one, shape, None)?];
            graph.until_all(state, |graph, key| graph.gamma_candidate(key, c, d))
        })?;
        let logarithm = d.log() + accepted.log();
        let logarithm = is_large.select(logarithm, logarithm + (-u).log1p() / a);
        // `log(a)` is minus infinity for 0, infinity for infinity, and NaN otherwise.
        let logarithm = proper.select(logarithm, a.log());
        // The logarithm of a large number has a coarser relative error than the number.
        let sample = (proper & is_large).select(d * accepted, logarithm.exp());
        formula.ids([sample, logarithm])
    }

    /// Returns a candidate divided by `d`, and whether it is accepted.
    fn gamma_candidate(&mut self, key: ExprId, c: ExprId, d: ExprId) -> Result<(ExprId, ExprId)> {
        let [first, second] = self.keys(key)?;
        let (x, u) = (self.standard_normal(first, d)?, self.unit(second, d)?);
        let formula = Formula::new(self);
        let [c, d, x, u] = formula.terms([c, d, x, u]);
        // The sample is `v = (1 + t)^3`. Large parameters make `t` small, so that `log(v) - (v - 1)` is
        // computed from `t` and not from the rounded `v`.
        let t = c * x;
        let positive = t.greater(-1.0);
        let t = positive.select(t, 0.0);
        let log_v = 3.0 * t.log1p();
        let rise = ((3.0 + t) * t + 3.0) * t;
        let bound = 0.5 * (x * x) + d * (log_v - rise);
        let accepted = positive & (-u).log1p().less(bound);
        Ok(((rise + 1.0).id()?, accepted.id()?))
    }

    /// Draws candidates until every element has accepted one. The state is a key, the finished
    /// elements and the samples; `candidate` returns samples and whether to accept them.
    pub(super) fn until_all(
        &mut self,
        initial: [ExprId; 3],
        candidate: impl FnOnce(&mut Graph, ExprId) -> Result<(ExprId, ExprId)>,
    ) -> Result<ExprId> {
        let is_waiting = |graph: &mut Graph, state: &[ExprId]| {
            let all = graph.all(state[1], None, false)?;
            graph.logical_not(all)
        };
        let draw = |graph: &mut Graph, state: &[ExprId]| {
            let (done, samples) = (state[1], state[2]);
            let (next, own) = graph.random_next(state[0])?;
            let (drawn, accepted) = candidate(graph, own)?;
            let waiting = graph.logical_not(done)?;
            let taken = graph.logical_and(waiting, accepted)?;
            let samples = graph.select(taken, drawn, samples)?;
            Ok(vec![next, graph.logical_or(done, accepted)?, samples])
        };
        Ok(self.repeat_while(&initial, Replay::default(), is_waiting, draw)?[2])
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
        self.check_spread(&[("rate", rate)], &draw.shape)?;
        let dtype = draw.dtype.unwrap_or(DType::S32);
        if !dtype.is_integer() || dtype.is_pred() {
            return Err(self.not_a(dtype, "an integer dtype"));
        }
        if self.dtype(rate).is_complex() {
            return Err(self.not_a(self.dtype(rate), "a real dtype"));
        }
        let rate = self.spread_to(rate, DType::F64, &draw.shape)?;
        let limit = self.weak_number(LARGE_RATE.into(), rate)?;
        let is_large = self.greater_equal(rate, limit)?;
        let [small_key, large_key] = self.keys(key)?;
        let small = self.few_events(small_key, rate, is_large)?;
        let large = self.many_events(large_key, rate, is_large)?;
        let formula = Formula::new(self);
        let [rate, is_large, small, large] = formula.terms([rate, is_large, small, large]);
        let x = rate.greater_equal(0.0).select(is_large.select(large, small), -1.0);
        let x = x.as_type(dtype).id()?;
        self.finish_draw(x, draw)
    }

    /// Returns the number of terms of the distribution whose sum reaches a uniform value.
    fn few_events(&mut self, key: ExprId, rate: ExprId, is_large: ExprId) -> Result<ExprId> {
        let (u, shape) = (self.unit(key, rate)?, self.shape(rate).clone());
        let formula = Formula::new(self);
        let [rate, is_large] = formula.terms([rate, is_large]);
        let small = is_large.select(0.0, rate).max(0.0);
        let [zero, small, term] = formula.ids([rate.number(0.0), small, (-small).exp()])?;
        let initial = [self.broadcast(zero, shape, None)?, term, term];
        // The search also ends when a term no longer changes the sum.
        let is_searching = |graph: &mut Graph, state: &[ExprId]| -> Result<ExprId> {
            let formula = Formula::new(graph);
            let [term, sum, u] = formula.terms([state[1], state[2], u]);
            (sum.less(u) & term.greater(1e-30)).id()
        };
        let any_is_searching = |graph: &mut Graph, state: &[ExprId]| {
            let active = is_searching(graph, state)?;
            graph.any(active, None, false)
        };
        let add_term = |graph: &mut Graph, state: &[ExprId]| {
            let active = is_searching(graph, state)?;
            let formula = Formula::new(graph);
            let [active, small] = formula.terms([active, small]);
            let [number, term, sum] = formula.terms([state[0], state[1], state[2]]);
            let following = number + 1.0;
            let next_term = term * (small / following);
            let results = formula.ids([
                active.select(following, number),
                active.select(next_term, term),
                active.select(sum + next_term, sum),
            ])?;
            Ok(results.to_vec())
        };
        Ok(self.repeat_while(&initial, Replay::default(), any_is_searching, add_term)?[0])
    }

    fn many_events(&mut self, key: ExprId, rate: ExprId, is_large: ExprId) -> Result<ExprId> {
        let formula = Formula::new(self);
        let [rate_term, is_large] = formula.terms([rate, is_large]);
        let proper = is_large & rate_term.is_finite();
        let safe = proper.select(rate_term, LARGE_RATE);
        let [proper, done, safe, zero] =
            formula.ids([proper, !proper, safe, rate_term.number(0.0)])?;
        let start = self.broadcast(zero, self.shape(rate).clone(), None)?;
        let events =
            self.until_all([key, done, start], |graph, key| graph.poisson_candidate(key, safe))?;
        self.select(proper, events, rate)
    }

    /// Returns a count and whether it is accepted. The constants are from the paper.
    fn poisson_candidate(&mut self, key: ExprId, rate: ExprId) -> Result<(ExprId, ExprId)> {
        let [first, second] = self.keys(key)?;
        let (u, v) = (self.unit(first, rate)?, self.unit(second, rate)?);
        let formula = Formula::new(self);
        let [u, v, rate] = formula.terms([u, v, rate]);
        let u = u - 0.5;
        let b = 0.931 + 2.53 * rate.sqrt();
        let a = -0.059 + 0.02483 * b;
        let inverse_alpha = 1.1239 + 1.1328 * (-3.4 + b).reciprocal();
        let quick_limit = 0.9277 + -3.6224 * (-2.0 + b).reciprocal();
        let us = 0.5 + -1.0 * u.abs();
        let k = (0.43 + (((0.0 + 2.0 * a) / us + b) * u + rate)).floor();
        let quick = us.greater_equal(0.07) & v.less_equal(quick_limit);
        let refused = us.less(0.013) & v.greater(us);
        let possible = k.greater_equal(0.0) & !refused;
        // log(v / alpha / (a / us² + b)) <= log(probability of k)
        let height = (v * inverse_alpha / (a / (us * us) + b)).log();
        let exact = possible & height.less_equal(log_poisson_mass(k.max(0.0), rate));
        Ok((k.id()?, (quick | exact).id()?))
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
        let noise = Draw::new(shape).dtype(float);
        let noise = self.random_gumbel(key, &noise)?;
        let logits = self.rename(logits, None)?;
        let total = self.add(noise, logits)?;
        let axis = to_i64(added + at);
        let x = self.argmax(total, Some(axis), false, false, dtype)?;
        self.finish_draw(x, draw)
    }
}

/// Returns `k log(rate) - rate - log(k!)` by Stirling's series for `log(Γ(z))`, `z = k + 1`.
///
/// The large terms are combined: `-k log(z / rate) + z - rate`. Computed one by one, they would
/// round to multiples of more than 1 for large rates.
fn log_poisson_mass<'f>(k: Term<'f>, rate: Term<'f>) -> Term<'f> {
    let z = k + 1.0;
    let distance = z - rate;
    let main = distance - k * (distance / rate).log1p();
    let inverse = z.reciprocal();
    let square = inverse * inverse;
    let series = (1.0 / 1260.0 * square + -1.0 / 360.0) * square + 1.0 / 12.0;
    main - (0.5 * z.log() + 0.5 * std::f64::consts::TAU.ln() + series * inverse)
}
