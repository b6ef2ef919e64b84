//! Random numbers from keys.
//!
//! A draw depends on the key alone, so each function also returns the next key.
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
use nxla_expr::{ErrorKind, ExprId, Graph};
use nxla_tensor::Number;

use super::axes::Axis;
use super::{makers, methods};
use crate::initializers::{Initializer, draw_normal, draw_uniform};

/// Draws with one half of a key, and returns the other half too.
pub(super) fn draw_with(
    graph: &mut Graph,
    key: ExprId,
    build: impl FnOnce(&mut Graph, ExprId) -> nxla_expr::Result<ExprId>,
) -> nxla_expr::Result<(ExprId, ExprId)> {
    let (next, key) = graph.random_next(key)?;
    Ok((build(graph, key)?, next))
}

makers! {
    /// Returns the key of a seed.
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
    /// Splits this key into independent keys along the first axis.
    ///
    /// ```
    /// use nxla::{DType, Tensor};
    ///
    /// let keys = Tensor::random_key(0)?.random_split(3)?;
    /// assert_eq!((keys.dtype(), &keys.shape()[..]), (DType::U32, &[3usize, 2][..]));
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn random_split(key; parts: usize) one |graph| graph.random_split(key, parts);

    /// Returns a key for each of the integers `data`; equal integers have equal keys.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let keys = Tensor::random_key(0)?.random_fold_in(Tensor::from([1, 2, 1]))?;
    /// let keys = keys.to_vec::<u32>()?;
    /// assert!(keys[..2] == keys[4..] && keys[..2] != keys[2..4]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn random_fold_in(key, data) one |graph| graph.random_fold_in(key, data);

    /// Draws the first values of parameters with this key, `f32` by default; see
    /// [`initializers`](crate::initializers).
    ///
    /// ```
    /// use nxla::initializers::glorot_uniform;
    /// use nxla::{Draw, Tensor};
    ///
    /// let w = Tensor::random_key(0)?.initialize(glorot_uniform(), Draw::new([30, 20]))?;
    /// assert!(w.abs()?.reduce_max()?.item::<f64>()? < (6f64 / 50.0).sqrt());
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn initialize(key; initializer: Initializer, draw: Draw) one |graph|
        initializer.build(graph, key, &draw);

    /// Draws floats with the uniform distribution on a range, and returns the next key. An empty
    /// range is an error.
    ///
    /// ```
    /// use nxla::{Draw, Tensor};
    ///
    /// let (x, _key) = Tensor::random_key(0)?.random_uniform(2.0..3.0, Draw::new([100]))?;
    /// assert!(x.reduce_min()?.item::<f32>()? >= 2.0 && x.reduce_max()?.item::<f32>()? < 3.0);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn random_uniform(key; range: Range<f64>, draw: Draw) two |graph| {
        if range.is_empty() {
            let why = format!("must have a start below its end; got {}..{}", range.start, range.end);
            return Err(ErrorKind::invalid("range", why).of("random_uniform").into());
        }
        let bounds = [range.start, range.end];
        draw_with(graph, key, |graph, key| draw_uniform(graph, key, bounds, &draw))
    };

    /// Draws floats of the normal distribution, and returns the next key.
    ///
    /// ```
    /// use nxla::{Draw, Tensor};
    ///
    /// let (x, _key) = Tensor::random_key(0)?.random_normal(5.0, 2.0, Draw::new([10_000]))?;
    /// assert!((x.mean()?.item::<f32>()? - 5.0).abs() < 0.2);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn random_normal(key; mean: f64, deviation: f64, draw: Draw) two |graph|
        draw_with(graph, key, |graph, key| draw_normal(graph, key, [mean, deviation], &draw));

    /// Draws integers with the uniform distribution on a range, and returns the next key.
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
        draw_with(graph, key, |graph, key| {
            let low = graph.number(Number::Int(range.start.into()))?;
            let high = graph.number(Number::Int(range.end.into()))?;
            graph.random_integers(key, low, high, &draw)
        })
    };

    /// Draws floats of the standard Gumbel distribution, and returns the next key.
    ///
    /// ```
    /// use nxla::{DType, Draw, Tensor};
    ///
    /// let (x, _key) = Tensor::random_key(0)?.random_gumbel(Draw::new([2, 3]))?;
    /// assert_eq!((x.dtype(), &x.shape()[..]), (DType::F32, &[2usize, 3][..]));
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn random_gumbel(key; draw: Draw) two |graph|
        draw_with(graph, key, |graph, key| graph.random_gumbel(key, &draw));

    /// Draws booleans that are true with the probability `p`, and returns the next key.
    ///
    /// ```
    /// use nxla::{DType, Draw, Tensor};
    ///
    /// let (x, _key) = Tensor::random_key(0)?.random_bernoulli(1.0, Draw::new([3]))?;
    /// assert!(x.dtype() == DType::Pred && x.all()?.item::<bool>()?);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn random_bernoulli(key, p as parameter(draw); draw: Draw) two |graph|
        draw_with(graph, key, |graph, key| graph.random_bernoulli(key, p, &draw));

    /// Draws floats of the exponential distribution with mean `scale`, and returns the next key.
    ///
    /// ```
    /// use nxla::{Draw, Tensor};
    ///
    /// let (x, _key) = Tensor::random_key(0)?.random_exponential(2.0, Draw::new([3]))?;
    /// assert!(x.reduce_min()?.item::<f32>()? >= 0.0);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn random_exponential(key, scale as parameter(draw); draw: Draw) two |graph|
        draw_with(graph, key, |graph, key| graph.random_exponential(key, scale, &draw));

    /// Draws floats of the Laplace distribution, and returns the next key.
    ///
    /// ```
    /// use nxla::{DType, Draw, Tensor};
    ///
    /// let key = Tensor::random_key(0)?;
    /// let (x, _key) = key.random_laplace(0.0, 1.0, Draw::new([3]).dtype(DType::F64))?;
    /// assert_eq!(x.dtype(), DType::F64);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn random_laplace(key, mean as parameter(draw), scale as parameter(draw); draw: Draw) two |graph|
        draw_with(graph, key, |graph, key| graph.random_laplace(key, mean, scale, &draw));

    /// Draws floats of the standard normal distribution between two bounds, and returns the next
    /// key.
    ///
    /// ```
    /// use nxla::{Draw, Tensor};
    ///
    /// let key = Tensor::random_key(0)?;
    /// let (x, _key) = key.random_truncated_normal(-1.0, 1.0, Draw::new([100]))?;
    /// assert!(x.abs()?.reduce_max()?.item::<f32>()? <= 1.0);
    ///
    /// // Tails are exact: beyond 40 the distances from 40 have a mean of 1/40.
    /// let (x, _key) = key.random_truncated_normal(40.0, f32::INFINITY, Draw::new([100]))?;
    /// assert!(x.reduce_min()?.item::<f32>()? < 40.01);
    /// assert!((40.05..41.0).contains(&x.reduce_max()?.item::<f32>()?));
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn random_truncated_normal(key, low as parameter(draw), high as parameter(draw); draw: Draw) two |graph|
        draw_with(graph, key, |graph, key| graph.random_truncated_normal(key, low, high, &draw));

    /// Draws floats of the gamma distribution with shape `a`, and returns the next key.
    ///
    /// ```
    /// use nxla::{Draw, Tensor};
    ///
    /// let (x, _key) = Tensor::random_key(0)?.random_gamma(2.0, Draw::new([100]))?;
    /// assert!(x.reduce_min()?.item::<f32>()? > 0.0);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn random_gamma(key, a as parameter(draw); draw: Draw) two |graph|
        draw_with(graph, key, |graph, key| graph.random_gamma(key, a, &draw));

    /// Draws floats of the beta distribution, and returns the next key.
    ///
    /// ```
    /// use nxla::{Draw, Tensor};
    ///
    /// let (x, _key) = Tensor::random_key(0)?.random_beta(2.0, 3.0, Draw::new([100]))?;
    /// assert!(x.reduce_max()?.item::<f32>()? < 1.0);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn random_beta(key, a as parameter(draw), b as parameter(draw); draw: Draw) two |graph|
        draw_with(graph, key, |graph, key| graph.random_beta(key, a, b, &draw));

    /// Draws counts of the Poisson distribution, `s32` by default, and returns the next key. A
    /// negative or NaN rate has the count -1.
    ///
    /// ```
    /// use nxla::{DType, Draw, Tensor};
    ///
    /// let (x, _key) = Tensor::random_key(0)?.random_poisson(3.0, Draw::new([100]))?;
    /// assert!(x.dtype() == DType::S32 && x.reduce_min()?.item::<i32>()? >= 0);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn random_poisson(key, rate as parameter(draw); draw: Draw) two |graph|
        draw_with(graph, key, |graph, key| graph.random_poisson(key, rate, &draw));

    /// Draws vectors of the Dirichlet distribution along the last axis of `alpha`, and returns the
    /// next key.
    ///
    /// ```
    /// use nxla::{Draw, Tensor};
    ///
    /// let alpha = Tensor::from([1.0f32, 2.0, 3.0]);
    /// let (x, _key) = Tensor::random_key(0)?.random_dirichlet(alpha, Draw::new([4]))?;
    /// assert!(x.sum_over(-1)?.all_close(1.0, 1e-5, 0.0, false)?.item::<bool>()?);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn random_dirichlet(key, alpha as parameter(draw); draw: Draw) two |graph|
        draw_with(graph, key, |graph, key| graph.random_dirichlet(key, alpha, &draw));

    /// Draws indices along an axis of `logits` with probabilities proportional to their
    /// exponentials, and returns the next key.
    ///
    /// ```
    /// use nxla::{Draw, Tensor};
    ///
    /// let logits = Tensor::from(vec![f32::NEG_INFINITY, 0.0]);
    /// let (x, _) = Tensor::random_key(0)?.random_categorical(&logits, -1, Draw::new([3]))?;
    /// assert_eq!(x.to_vec::<i32>()?, [1, 1, 1]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn random_categorical(key, logits; axis into Axis, draw: Draw) two |graph| {
        let axis = axis.of(graph, logits)?;
        draw_with(graph, key, |graph, key| {
            graph.random_categorical(key, logits, axis, &draw)
        })
    };

    /// Draws vectors of a normal distribution, and returns the next key; `method` selects the
    /// factorization of the covariance.
    ///
    /// ```
    /// use nxla::{Covariance, Draw, Tensor};
    ///
    /// let mean = Tensor::from([0.0f32, 9.0]);
    /// let covariance = Tensor::from([[1.0f32, 0.5], [0.5, 1.0]]);
    /// let (key, draw) = (Tensor::random_key(0)?, Draw::new([5]));
    /// let (x, _key) = key.random_multivariate_normal(mean, covariance, Covariance::Cholesky, draw)?;
    /// assert_eq!(x.shape()[..], [5, 2]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn random_multivariate_normal(key, mean, covariance; method: Covariance, draw: Draw)
        two |graph| {
            draw_with(graph, key, |graph, key| {
                graph.random_multivariate_normal(key, mean, covariance, method, &draw)
            })
        };

    /// Shuffles the entries of `x` along an axis, and returns the next key.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let key = Tensor::random_key(0)?;
    /// let (x, _key) = key.random_shuffle(Tensor::from([1, 2, 3]), 0, false)?;
    /// assert_eq!(x.sort(0)?.to_vec::<i32>()?, [1, 2, 3]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn random_shuffle(key, x; axis into Axis, independent: bool) two |graph|
        graph.random_shuffle(key, x, axis.of(graph, x)?, independent);

    /// Draws samples of `x` with equal probabilities, and returns the next key.
    ///
    /// ```
    /// use nxla::{Choice, Tensor};
    ///
    /// let choice = Choice { replace: false, ..Choice::new(3) };
    /// let key = Tensor::random_key(0)?;
    /// let (x, _key) = key.random_choice(Tensor::from([1, 2, 3]), choice)?;
    /// assert_eq!(x.sort(0)?.to_vec::<i32>()?, [1, 2, 3]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn random_choice(key, x; choice: Choice) two |graph| graph.random_choice(key, x, None, choice);

    /// Draws samples of `x` with these probabilities, and returns the next key.
    ///
    /// ```
    /// use nxla::{Choice, Tensor};
    ///
    /// let choice = Choice { samples: 2, axis: Some(0), replace: true };
    /// let (x, never) = (Tensor::from([1, 2]), Tensor::from([1.0f32, 0.0]));
    /// let (x, _key) = Tensor::random_key(0)?.random_weighted_choice(x, never, choice)?;
    /// assert_eq!(x.to_vec::<i32>()?, [1, 1]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn random_weighted_choice(key, x, probabilities; choice: Choice) two |graph|
        graph.random_choice(key, x, Some(probabilities), choice);
}
