//! What neural networks are made of, as functions without a state of their own.
//!
//! ```
//! use nxla::{Tensor, Expr, jit};
//!
//! let x = Tensor::from(vec![-1.0f32, 2.0]);
//! assert_eq!(x.relu()?.to_vec::<f32>()?, [0.0, 2.0]);
//! let model = jit(|[x, w]: [Expr; 2]| x.dot(&w).gelu(true).layer_norm(-1, 1e-5));
//! let w = Tensor::new(vec![1.0f32, 0.0, 0.0, 1.0], [2, 2])?;
//! assert_eq!(model.call([&x, &w])?.shape()[..], [2]);
//! # Ok::<(), nxla::Error>(())
//! ```

use nxla_expr::build::{Attention, Pool, RunningNorm};
use nxla_tensor::DType;

use super::axes::{Axis, Over};
use super::methods;

/// Generates activations without options.
macro_rules! activations {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        methods! {
            $($(#[$doc])* fn $name(x) one |graph| graph.$name(x);)*
        }
    };
}

activations! {
    /// The element where it is positive, 0 elsewhere.
    relu;
    /// Limited to the range from 0 to 6.
    relu6;
    /// Limited to the range from -1 to 1.
    hard_tanh;
    /// `relu6(x + 3) / 6`.
    hard_sigmoid;
    /// `x hard_sigmoid(x)`.
    hard_silu;
    /// `x sigmoid(x)`.
    silu;
    /// `elu` with constants that keep mean and variance.
    selu;
    /// `log(1 + exp(x))` without overflow.
    softplus;
    /// `log(sigmoid(x))` without overflow.
    log_sigmoid;
    /// `x / (1 + |x|)`.
    soft_sign;
    /// `x tanh(softplus(x))`.
    mish;
    /// 0 below -1, `x` above 1, a parabola between them.
    sparse_plus;
    /// The derivative of `sparse_plus`.
    sparse_sigmoid;
    /// `log(1 - exp(-x))` of positive numbers.
    log1mexp;
}

methods! {
    /// Times the probability that a normal variable is below; `approximate` takes a hyperbolic
    /// tangent for it.
    fn gelu(x; approximate: bool) one |graph| graph.gelu(x, approximate);

    /// The element where it is positive, `alpha (exp(x) - 1)` elsewhere.
    fn elu(x; alpha: f64) one |graph| graph.elu(x, alpha);

    /// The element where it is positive, `alpha (exp(x / alpha) - 1)` elsewhere.
    fn celu(x; alpha: f64) one |graph| graph.celu(x, alpha);

    /// The element where it is positive, `slope x` elsewhere.
    fn leaky_relu(x; slope: f64) one |graph| graph.leaky_relu(x, slope);

    /// `(x + √(x² + b)) / 2`.
    fn squareplus(x; b: f64) one |graph| graph.squareplus(x, b);

    /// Exponentials divided by their sum along an axis.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from(vec![1000.0f32, 1000.0]);
    /// assert_eq!(x.softmax(-1)?.to_vec::<f32>()?, [0.5, 0.5]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn softmax(x; axis: impl Into<Axis>) one |graph| {
        let axis = axis.into().of(graph, "softmax", x)?;
        graph.softmax(x, axis)
    };

    /// The logarithm of the softmax along an axis.
    fn log_softmax(x; axis: impl Into<Axis>) one |graph| {
        let axis = axis.into().of(graph, "log_softmax", x)?;
        graph.log_softmax(x, axis)
    };

    /// One half of an axis times the sigmoid of the other.
    fn glu(x; axis: impl Into<Axis>) one |graph| {
        let axis = axis.into().of(graph, "glu", x)?;
        graph.glu(x, axis)
    };

    /// Ones where a new axis counts to the integer.
    fn one_hot(x; classes: usize, axis: i64, dtype: DType) one |graph|
        graph.one_hot(x, classes, axis, dtype);

    /// The rows of the receiver that integers say.
    fn embedding(table, x) one |graph| graph.embedding(table, x);

    /// `x` with elements dropped at a rate, drawn with the receiver, and the next key.
    fn dropout(key, x; rate: f64) two |graph| {
        let (next, key) = graph.random_next(key)?;
        graph.dropout(key, x, rate).map(|kept| (kept, next))
    };

    /// Elements along these axes with a mean of 0 and a variance of 1.
    fn layer_norm(x; over: impl Into<Over>, epsilon: f64) one |graph| {
        let axes = over.into().of(graph, "layer_norm", x)?;
        let all: Vec<i64> = (0..).take(graph.shape(x).rank()).collect();
        graph.layer_norm(x, [None, None], &axes.unwrap_or(all), epsilon)
    };

    /// As [`layer_norm`](Self::layer_norm), times a scale and plus a bias.
    fn affine_layer_norm(x, scale, bias; over: impl Into<Over>, epsilon: f64) one |graph| {
        let axes = over.into().of(graph, "layer_norm", x)?;
        let all: Vec<i64> = (0..).take(graph.shape(x).rank()).collect();
        graph.layer_norm(x, [Some(scale), Some(bias)], &axes.unwrap_or(all), epsilon)
    };

    /// Elements along these axes with a mean square of 1, times a scale.
    fn rms_norm(x, scale; over: impl Into<Over>, epsilon: f64) one |graph| {
        let axes = over.into().of(graph, "rms_norm", x)?;
        let all: Vec<i64> = (0..).take(graph.shape(x).rank()).collect();
        graph.rms_norm(x, Some(scale), &axes.unwrap_or(all), epsilon)
    };

    /// Groups of channels of each example with a mean of 0 and a variance of 1, times a scale and
    /// plus a bias of each channel.
    fn group_norm(x, scale, bias; groups: usize, axis: i64, epsilon: f64) one |graph|
        graph.group_norm(x, groups, [Some(scale), Some(bias)], axis, epsilon);

    /// Channels less a mean, over the root of a variance, times a scale and plus a bias.
    fn batch_norm(x, mean, variance, scale, bias; axis: i64, epsilon: f64) one |graph|
        graph.batch_norm(x, [mean, variance], [Some(scale), Some(bias)], axis, epsilon);

    /// As [`batch_norm`](Self::batch_norm) with the statistics of the receiver itself, and the
    /// running ones, which these move.
    fn batch_norm_train(x, mean, variance, scale, bias; options: RunningNorm) three |graph|
        graph.batch_norm_train(x, [mean, variance], [Some(scale), Some(bias)], options);

    /// Means of values, weighted by how the queries of the receiver go with keys.
    fn attention(query, key, value; causal: bool) one |graph| {
        let options = Attention { causal, ..Attention::default() };
        graph.dot_product_attention([query, key, value], options)
    };

    /// As [`attention`](Self::attention), of the keys alone where a mask is not 0.
    fn masked_attention(query, key, value, mask; causal: bool) one |graph| {
        let options = Attention { causal, mask: Some(mask), ..Attention::default() };
        graph.dot_product_attention([query, key, value], options)
    };

    /// As [`attention`](Self::attention), with a bias added to the products.
    fn biased_attention(query, key, value, bias; causal: bool) one |graph| {
        let options = Attention { causal, bias: Some(bias), ..Attention::default() };
        graph.dot_product_attention([query, key, value], options)
    };

    /// `-Σ labels log_softmax(logits)` along an axis.
    fn softmax_cross_entropy(logits, labels; axis: i64) one |graph|
        graph.softmax_cross_entropy(logits, labels, axis);

    /// `-log_softmax(logits)` at integers along an axis.
    fn integer_cross_entropy(logits, labels; axis: i64) one |graph|
        graph.integer_cross_entropy(logits, labels, axis);

    /// The cross entropy of labels and the sigmoids of logits.
    fn sigmoid_cross_entropy(logits, labels) one |graph|
        graph.sigmoid_cross_entropy(logits, labels);

    /// Half of a squared distance up to `delta`, a line beyond.
    fn huber_loss(x, target; delta: f64) one |graph| graph.huber_loss(x, target, delta);

    /// The squared distance from a target.
    fn squared_error(x, target) one |graph| graph.squared_error(x, target);

    /// What is lost by taking one distribution for another, from the logarithms of the first.
    fn kl_divergence(log_predictions, targets; axis: i64) one |graph|
        graph.kl_divergence(log_predictions, targets, axis);

    /// Cosines of the angles between vectors along an axis.
    fn cosine_similarity(x, y; axis: i64, epsilon: f64) one |graph|
        graph.cosine_similarity(x, y, axis, epsilon);

    /// The largest elements of windows over the spatial axes.
    fn max_pool(x; pool: &Pool) one |graph| graph.max_pool(x, pool);

    /// The means of windows over the spatial axes.
    fn avg_pool(x; pool: &Pool) one |graph| graph.avg_pool(x, pool);
}
