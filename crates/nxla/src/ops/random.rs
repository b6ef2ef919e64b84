//! Random numbers from keys.
//!
//! What is drawn depends on the key alone, so each function gives back the key to go on with.
//!
//! ```
//! use nxla::{Draw, Tensor};
//!
//! let key = Tensor::random_key(42)?;
//! let (x, key) = key.random_normal(0.0, 1.0, Draw::new([2, 3]))?;
//! let (y, _) = key.random_normal(0.0, 1.0, Draw::new([2, 3]))?;
//! assert_ne!(x.to_vec::<f32>()?, y.to_vec::<f32>()?);
//! # Ok::<(), nxla::Error>(())
//! ```

use std::ops::Range;

use nxla_expr::build::{Choice, Covariance, Draw};
use nxla_tensor::Number;

use super::axes::Axis;
use super::{makers, methods};

makers! {
    /// The key of a seed.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// assert_eq!(Tensor::random_key(12)?.to_vec::<u32>()?, [0, 12]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn random_key(seed: i64) |graph| {
        let seed = graph.number(Number::Int(seed.into()))?;
        graph.random_key(seed)
    };
}

methods! {
    /// Keys that have nothing to do with each other, nor with the receiver, along the first axis.
    fn random_split(key; parts: usize) one |graph| graph.random_split(key, parts);

    /// A key for each of the integers `data`; equal numbers give equal keys.
    fn random_fold_in(key, data) one |graph| graph.random_fold_in(key, data);

    /// Floats that are equally likely everywhere in the range, and the next key.
    fn random_uniform(key; range: Range<f64>, draw: Draw) two |graph| {
        let (next, key) = graph.random_next(key)?;
        let low = graph.number(Number::Float(range.start))?;
        let high = graph.number(Number::Float(range.end))?;
        graph.random_uniform(key, low, high, &draw).map(|drawn| (drawn, next))
    };

    /// Floats with the normal distribution, and the next key.
    fn random_normal(key; mean: f64, deviation: f64, draw: Draw) two |graph| {
        let (next, key) = graph.random_next(key)?;
        let mean = graph.number(Number::Float(mean))?;
        let deviation = graph.number(Number::Float(deviation))?;
        graph.random_normal(key, mean, deviation, &draw).map(|drawn| (drawn, next))
    };

    /// Integers that are equally likely everywhere in the range, and the next key.
    ///
    /// ```
    /// use nxla::{DType, Draw, Tensor};
    ///
    /// let draw = Draw::new([3, 2]).dtype(DType::U32);
    /// let (x, _) = Tensor::random_key(1701)?.random_integers(1..100, draw)?;
    /// assert_eq!(x.to_vec::<u32>()?, [9, 20, 19, 6, 71, 15]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn random_integers(key; range: Range<i64>, draw: Draw) two |graph| {
        let (next, key) = graph.random_next(key)?;
        let low = graph.number(Number::Int(range.start.into()))?;
        let high = graph.number(Number::Int(range.end.into()))?;
        graph.random_integers(key, low, high, &draw).map(|drawn| (drawn, next))
    };

    /// Floats with the standard Gumbel distribution, and the next key.
    fn random_gumbel(key; draw: Draw) two |graph| {
        let (next, key) = graph.random_next(key)?;
        graph.random_gumbel(key, &draw).map(|drawn| (drawn, next))
    };

    /// Truth values that are true with the probability `p`, and the next key.
    fn random_bernoulli(key, p as position; draw: Draw) two |graph| {
        let (next, key) = graph.random_next(key)?;
        graph.random_bernoulli(key, p, &draw).map(|drawn| (drawn, next))
    };

    /// Floats with the exponential distribution of mean `scale`, and the next key.
    fn random_exponential(key, scale as position; draw: Draw) two |graph| {
        let (next, key) = graph.random_next(key)?;
        graph.random_exponential(key, scale, &draw).map(|drawn| (drawn, next))
    };

    /// Floats with the Laplace distribution, and the next key.
    fn random_laplace(key, mean as position, scale as position; draw: Draw) two |graph| {
        let (next, key) = graph.random_next(key)?;
        graph.random_laplace(key, mean, scale, &draw).map(|drawn| (drawn, next))
    };

    /// Floats with the standard normal distribution between two bounds, and the next key.
    fn random_truncated_normal(key, low as position, high as position; draw: Draw) two |graph| {
        let (next, key) = graph.random_next(key)?;
        graph.random_truncated_normal(key, low, high, &draw).map(|drawn| (drawn, next))
    };

    /// Floats with the gamma distribution of shape `a`, and the next key.
    fn random_gamma(key, a as position; draw: Draw) two |graph| {
        let (next, key) = graph.random_next(key)?;
        graph.random_gamma(key, a, &draw).map(|drawn| (drawn, next))
    };

    /// Floats with the beta distribution, and the next key.
    fn random_beta(key, a as position, b as position; draw: Draw) two |graph| {
        let (next, key) = graph.random_next(key)?;
        graph.random_beta(key, a, b, &draw).map(|drawn| (drawn, next))
    };

    /// Numbers of events with the Poisson distribution, `s32` by default, and the next key.
    fn random_poisson(key, rate as position; draw: Draw) two |graph| {
        let (next, key) = graph.random_next(key)?;
        graph.random_poisson(key, rate, &draw).map(|drawn| (drawn, next))
    };

    /// Shares with the distribution of Dirichlet along the last axis of `alpha`, and the next key.
    fn random_dirichlet(key, alpha as position; draw: Draw) two |graph| {
        let (next, key) = graph.random_next(key)?;
        graph.random_dirichlet(key, alpha, &draw).map(|drawn| (drawn, next))
    };

    /// Indices along an axis of `logits`, with a probability in proportion to their exponentials,
    /// and the next key.
    ///
    /// ```
    /// use nxla::{Draw, Tensor};
    ///
    /// let logits = Tensor::from(vec![f32::NEG_INFINITY, 0.0]);
    /// let (x, _) = Tensor::random_key(0)?.random_categorical(&logits, -1, Draw::new([3]))?;
    /// assert_eq!(x.to_vec::<i32>()?, [1, 1, 1]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn random_categorical(key, logits; axis: impl Into<Axis>, draw: Draw) two |graph| {
        let axis = axis.into().of(graph, "categorical", logits)?;
        let (next, key) = graph.random_next(key)?;
        graph.random_categorical(key, logits, axis, &draw).map(|drawn| (drawn, next))
    };

    /// Vectors with a normal distribution, and the next key; `method` says how to take the root of
    /// the covariance.
    fn random_multivariate_normal(key, mean, covariance; method: Covariance, draw: Draw)
        two |graph| {
            let (next, key) = graph.random_next(key)?;
            let drawn = graph.random_multivariate_normal(key, mean, covariance, method, &draw);
            drawn.map(|drawn| (drawn, next))
        };

    /// `x` with the entries along an axis in a random order, and the next key.
    fn random_shuffle(key, x; axis: impl Into<Axis>, independent: bool) two |graph| {
        let axis = axis.into().of(graph, "shuffle", x)?;
        graph.random_shuffle(key, x, axis, independent)
    };

    /// Samples of `x`, all equally likely, and the next key.
    fn random_choice(key, x; choice: Choice) two |graph| {
        graph.random_choice(key, x, None, choice)
    };

    /// Samples of `x` that are as likely as `probabilities` say, and the next key.
    fn random_weighted_choice(key, x, probabilities; choice: Choice) two |graph| {
        graph.random_choice(key, x, Some(probabilities), choice)
    };
}
