//! Neural network functions without state.
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
use super::random::draw_with;

/// Generates activation functions without options.
macro_rules! activations {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        methods! {
            $($(#[$doc])* fn $name(x) one |graph| graph.$name(x);)*
        }
    };
}

activations! {
    /// Returns the element where it is positive, and 0 elsewhere.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// assert_eq!(Tensor::from([-1.0f32, 2.0]).relu()?.to_vec::<f32>()?, [0.0, 2.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    relu;
    /// Clamps elements to the range from 0 to 6.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([-1.0f32, 2.0, 9.0]);
    /// assert_eq!(x.relu6()?.to_vec::<f32>()?, [0.0, 2.0, 6.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    relu6;
    /// Clamps elements to the range from -1 to 1.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([-3.0f32, 0.5, 3.0]);
    /// assert_eq!(x.hard_tanh()?.to_vec::<f32>()?, [-1.0, 0.5, 1.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    hard_tanh;
    /// Returns `relu6(x + 3) / 6`.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([-3.0f32, 0.0, 3.0]);
    /// assert_eq!(x.hard_sigmoid()?.to_vec::<f32>()?, [0.0, 0.5, 1.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    hard_sigmoid;
    /// Returns `x hard_sigmoid(x)`.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([-3.0f32, 0.0, 3.0]);
    /// assert_eq!(x.hard_silu()?.to_vec::<f32>()?, [0.0, 0.0, 3.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    hard_silu;
    /// Returns `x sigmoid(x)`.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// assert_eq!(Tensor::from(0.0f32).silu()?.item::<f32>()?, 0.0);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    silu;
    /// Returns `elu` with constants that preserve mean and variance.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// assert_eq!(Tensor::from(0.0f32).selu()?.item::<f32>()?, 0.0);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    selu;
    /// Returns `log(1 + exp(x))` without overflow.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let y = Tensor::from(0.0f32).softplus()?.item::<f32>()?;
    /// assert!((y - 2f32.ln()).abs() < 1e-6);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    softplus;
    /// Returns `log(sigmoid(x))` without overflow.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let y = Tensor::from(0.0f32).log_sigmoid()?.item::<f32>()?;
    /// assert!((y + 2f32.ln()).abs() < 1e-6);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    log_sigmoid;
    /// Returns `x / (1 + |x|)`.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// assert_eq!(Tensor::from([-1.0f32, 3.0]).soft_sign()?.to_vec::<f32>()?, [-0.5, 0.75]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    soft_sign;
    /// Returns `x tanh(softplus(x))`.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// assert_eq!(Tensor::from(0.0f32).mish()?.item::<f32>()?, 0.0);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    mish;
    /// Returns 0 below -1, `x` above 1, and a parabola between them.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([-2.0f32, 0.0, 2.0]);
    /// assert_eq!(x.sparse_plus()?.to_vec::<f32>()?, [0.0, 0.25, 2.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    sparse_plus;
    /// Returns the derivative of `sparse_plus`.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([-2.0f32, 0.0, 2.0]);
    /// assert_eq!(x.sparse_sigmoid()?.to_vec::<f32>()?, [0.0, 0.5, 1.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    sparse_sigmoid;
    /// Returns `log(1 - exp(-x))` for positive values.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let y = Tensor::from(2f32.ln()).log1mexp()?.item::<f32>()?;
    /// assert!((y + 2f32.ln()).abs() < 1e-6);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    log1mexp;
}

methods! {
    /// Returns `x Φ(x)` with the normal distribution `Φ`, or its tanh approximation with
    /// `approximate`.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// assert_eq!(Tensor::from([0.0f32, 10.0]).gelu(false)?.to_vec::<f32>()?, [0.0, 10.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn gelu(x; approximate: bool) one |graph| graph.gelu(x, approximate);

    /// Returns the element where it is positive, and `alpha (exp(x) - 1)` elsewhere.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([f32::NEG_INFINITY, 2.0]);
    /// assert_eq!(x.elu(0.5)?.to_vec::<f32>()?, [-0.5, 2.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn elu(x; alpha: f64) one |graph| graph.elu(x, alpha);

    /// Returns the element where it is positive, and `alpha (exp(x / alpha) - 1)` elsewhere.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([f32::NEG_INFINITY, 2.0]);
    /// assert_eq!(x.celu(0.5)?.to_vec::<f32>()?, [-0.5, 2.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn celu(x; alpha: f64) one |graph| graph.celu(x, alpha);

    /// Returns the element where it is positive, and `slope x` elsewhere.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([-2.0f32, 2.0]);
    /// assert_eq!(x.leaky_relu(0.5)?.to_vec::<f32>()?, [-1.0, 2.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn leaky_relu(x; slope: f64) one |graph| graph.leaky_relu(x, slope);

    /// Returns `(x + √(x² + b)) / 2`.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// assert_eq!(Tensor::from([0.0f32, -3.0]).squareplus(4.0)?.shape()[..], [2]);
    /// assert_eq!(Tensor::from(0.0f32).squareplus(4.0)?.item::<f32>()?, 1.0);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn squareplus(x; b: f64) one |graph| graph.squareplus(x, b);

    /// Returns exponentials divided by their sum along an axis.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from(vec![1000.0f32, 1000.0]);
    /// assert_eq!(x.softmax(-1)?.to_vec::<f32>()?, [0.5, 0.5]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn softmax(x; axis into Axis) one |graph| graph.softmax(x, axis.of(graph, x)?);

    /// Returns the logarithm of the softmax along an axis.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let y = Tensor::from([0.0f32, 0.0]).log_softmax(0)?.reduce_max()?.item::<f32>()?;
    /// assert!((y + 2f32.ln()).abs() < 1e-6);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn log_softmax(x; axis into Axis) one |graph| graph.log_softmax(x, axis.of(graph, x)?);

    /// Returns the first half of an axis times the sigmoid of the second half.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([2.0f32, 4.0, 0.0, 0.0]);
    /// assert_eq!(x.glu(0)?.to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn glu(x; axis into Axis) one |graph| graph.glu(x, axis.of(graph, x)?);

    /// Returns ones where the index along a new axis equals the integer, and zeros elsewhere. An
    /// integer outside of `0..classes` has zeros only.
    ///
    /// ```
    /// use nxla::{DType, Tensor};
    ///
    /// let x = Tensor::from([0, 2]).one_hot(3, -1, DType::U8)?;
    /// assert_eq!(x.to_vec::<u8>()?, [1, 0, 0, 0, 0, 1]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn one_hot(x; classes: usize, axis: i64, dtype: DType) one |graph|
        graph.one_hot(x, classes, axis, dtype);

    /// Returns the rows of this table at integer indices. Negative indices count from the end, and
    /// indices out of range are clamped.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let table = Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]);
    /// let rows = table.embedding(Tensor::from([1, 0]))?;
    /// assert_eq!(rows.to_vec::<f32>()?, [3.0, 4.0, 1.0, 2.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn embedding(table, x) one |graph| graph.embedding(table, x);

    /// Sets elements of `x` to zero with the probability `rate`, drawn with this key, and divides the
    /// other elements by `1 - rate`. Returns the result and the next key.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let (kept, _key) = Tensor::random_key(0)?.dropout(Tensor::from([1.0f32, 2.0]), 0.0)?;
    /// assert_eq!(kept.to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn dropout(key, x; rate: f64) two |graph|
        draw_with(graph, key, |graph, key| graph.dropout(key, x, rate));

    /// Normalizes elements along these axes to mean 0 and variance 1.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([[1.0f32, 3.0], [5.0, 7.0]]);
    /// assert_eq!(x.layer_norm(-1, 0.0)?.to_vec::<f32>()?, [-1.0, 1.0, -1.0, 1.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn layer_norm(x; over into Over, epsilon: f64) one |graph|
        graph.layer_norm(x, [None, None], &over.of_all(graph, x)?, epsilon);

    /// Applies [`layer_norm`](Self::layer_norm), then multiplies by a scale and adds a bias.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let (scale, bias) = (Tensor::from([2.0f32, 2.0]), Tensor::from([1.0f32, 1.0]));
    /// let x = Tensor::from([1.0f32, 3.0]).affine_layer_norm(scale, bias, -1, 0.0)?;
    /// assert_eq!(x.to_vec::<f32>()?, [-1.0, 3.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn affine_layer_norm(x, scale, bias; over into Over, epsilon: f64) one |graph|
        graph.layer_norm(x, [Some(scale), Some(bias)], &over.of_all(graph, x)?, epsilon);

    /// Normalizes elements along these axes to a mean square of 1, then multiplies by a scale.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([2.0f32, -2.0]).rms_norm(Tensor::from([1.0f32, 3.0]), -1, 0.0)?;
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, -3.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn rms_norm(x, scale; over into Over, epsilon: f64) one |graph|
        graph.rms_norm(x, Some(scale), &over.of_all(graph, x)?, epsilon);

    /// Normalizes groups of channels of each example to mean 0 and variance 1, then multiplies by a
    /// scale and adds a bias for each channel.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([[[1.0f32, 3.0], [5.0, 7.0]]]);
    /// let (scale, bias) = (Tensor::from([1.0f32, 2.0]), Tensor::from([0.0f32, 0.0]));
    /// let x = x.group_norm(scale, bias, 2, 1, 0.0)?;
    /// assert_eq!(x.to_vec::<f32>()?, [-1.0, 1.0, -2.0, 2.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn group_norm(x, scale, bias; groups: usize, axis into Axis, epsilon: f64) one |graph|
        graph.group_norm(x, groups, [Some(scale), Some(bias)], axis.of(graph, x)?, epsilon);

    /// Subtracts a mean from each channel, divides by the root of a variance, multiplies by a scale
    /// and adds a bias.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([[1.0f32], [3.0]]);
    /// let [mean, one, zero] = [2.0f32, 1.0, 0.0].map(|number| Tensor::from([number]));
    /// let x = x.batch_norm(mean, &one, &one, zero, 1, 0.0)?;
    /// assert_eq!(x.to_vec::<f32>()?, [-1.0, 1.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn batch_norm(x, mean, variance, scale, bias; axis into Axis, epsilon: f64) one |graph|
        graph.batch_norm(x, [mean, variance], [Some(scale), Some(bias)], axis.of(graph, x)?, epsilon);

    /// Applies [`batch_norm`](Self::batch_norm) with the statistics of this tensor, and returns
    /// updated running statistics.
    ///
    /// ```
    /// use nxla::{RunningNorm, Tensor};
    ///
    /// let x = Tensor::from([[1.0f32], [3.0]]);
    /// let [one, zero] = [1.0f32, 0.0].map(|number| Tensor::from([number]));
    /// let options = RunningNorm { axis: 1, epsilon: 0.0, momentum: 0.5 };
    /// let (x, mean, _variance) = x.batch_norm_train(&zero, &one, &one, &zero, options)?;
    /// assert_eq!((x.to_vec::<f32>()?, mean.item::<f32>()?), (vec![-1.0, 1.0], 1.0));
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn batch_norm_train(x, mean, variance, scale, bias; options: RunningNorm) three |graph|
        graph.batch_norm_train(x, [mean, variance], [Some(scale), Some(bias)], options);

    /// Returns means of the values, weighted by the softmax of the products of these queries with the
    /// keys, divided by the square root of the number of features.
    ///
    /// Queries have the axes `[.., queries, heads, features]`, and keys and values the axes `[..,
    /// keys, heads, features]`. The number of heads of the keys divides the number of heads of the
    /// queries. With `causal`, a query attends to the keys at its own and at earlier positions.
    /// A. Vaswani et al., "Attention is all you need" (2017).
    ///
    /// ```
    /// use nxla::{DType, Tensor};
    ///
    /// let query = Tensor::ones([5, 2, 4], DType::F32)?;
    /// let key = Tensor::ones([7, 2, 4], DType::F32)?;
    /// let mean = query.attention(&key, &key, false)?;
    /// assert_eq!(mean.shape()[..], [5, 2, 4]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn attention(query, key, value; causal: bool) one |graph| {
        let options = Attention { causal, ..Attention::default() };
        graph.dot_product_attention([query, key, value], options)
    };

    /// Applies [`attention`](Self::attention) to the keys for which a mask is nonzero.
    ///
    /// ```
    /// use nxla::{DType, Tensor};
    ///
    /// let query = Tensor::zeros([1, 1, 1], DType::F32)?;
    /// let key = Tensor::zeros([2, 1, 1], DType::F32)?;
    /// let value = Tensor::from([[[3.0f32]], [[5.0]]]);
    /// let mask = Tensor::from([[[false, true]]]);
    /// assert_eq!(query.masked_attention(key, value, mask, false)?.item::<f32>()?, 5.0);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn masked_attention(query, key, value, mask; causal: bool) one |graph| {
        let options = Attention { causal, mask: Some(mask), ..Attention::default() };
        graph.dot_product_attention([query, key, value], options)
    };

    /// Applies [`attention`](Self::attention) with a bias that is added to the products.
    ///
    /// ```
    /// use nxla::{DType, Tensor};
    ///
    /// let query = Tensor::zeros([1, 1, 1], DType::F32)?;
    /// let key = Tensor::zeros([2, 1, 1], DType::F32)?;
    /// let value = Tensor::from([[[3.0f32]], [[5.0]]]);
    /// let bias = Tensor::from([[[0.0f32, f32::NEG_INFINITY]]]);
    /// assert_eq!(query.biased_attention(key, value, bias, false)?.item::<f32>()?, 3.0);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn biased_attention(query, key, value, bias; causal: bool) one |graph| {
        let options = Attention { causal, bias: Some(bias), ..Attention::default() };
        graph.dot_product_attention([query, key, value], options)
    };

    /// Returns `-Σ labels log_softmax(logits)` along an axis.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let (logits, labels) = (Tensor::from([0.0f32, 0.0]), Tensor::from([1.0f32, 0.0]));
    /// let loss = logits.softmax_cross_entropy(labels, 0)?.item::<f32>()?;
    /// assert!((loss - 2f32.ln()).abs() < 1e-6);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn softmax_cross_entropy(logits, labels; axis into Axis) one |graph|
        graph.softmax_cross_entropy(logits, labels, axis.of_operands(graph, [logits, labels])?);

    /// Returns `-log_softmax(logits)` at integer labels along an axis. The loss of a label that is
    /// not the index of a class is NaN, without a gradient.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let (logits, labels) = (Tensor::from([[0.0f32, 0.0]]), Tensor::from([1]));
    /// let loss = logits.integer_cross_entropy(labels, -1)?;
    /// assert_eq!(loss.shape()[..], [1]);
    /// assert!((loss.item::<f32>()? - 2f32.ln()).abs() < 1e-6);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn integer_cross_entropy(logits, labels; axis into Axis) one |graph|
        graph.integer_cross_entropy(logits, labels, axis.of(graph, logits)?);

    /// Returns the cross entropy of labels and the sigmoids of logits.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let loss = Tensor::from(0.0f32).sigmoid_cross_entropy(1)?.item::<f32>()?;
    /// assert!((loss - 2f32.ln()).abs() < 1e-6);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn sigmoid_cross_entropy(logits, labels) one |graph|
        graph.sigmoid_cross_entropy(logits, labels);

    /// Returns half of the squared error up to an error of `delta`, and a linear function above.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let loss = Tensor::from([0.0f32, 3.0]).huber_loss(Tensor::from([1.0f32, 0.0]), 1.0)?;
    /// assert_eq!(loss.to_vec::<f32>()?, [0.5, 2.5]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn huber_loss(x, target; delta: f64) one |graph| graph.huber_loss(x, target, delta);

    /// Returns the squared error to a target.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([1.0f32, 3.0]);
    /// assert_eq!(x.squared_error(1)?.to_vec::<f32>()?, [0.0, 4.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn squared_error(x, target) one |graph| graph.squared_error(x, target);

    /// Returns the Kullback–Leibler divergence of targets from predictions, which are given as
    /// logarithms.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let half = Tensor::from([0.5f32, 0.5]);
    /// assert!(half.log()?.kl_divergence(&half, 0)?.item::<f32>()?.abs() < 1e-6);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn kl_divergence(log_predictions, targets; axis into Axis) one |graph| {
        let axis = axis.of_operands(graph, [log_predictions, targets])?;
        graph.kl_divergence(log_predictions, targets, axis)
    };

    /// Returns the cosines of the angles between vectors along an axis.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let (x, y) = (Tensor::from([2.0f32, 0.0]), Tensor::from([0.0f32, 3.0]));
    /// assert_eq!(x.cosine_similarity(y, 0, 1e-8)?.item::<f32>()?, 0.0);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn cosine_similarity(x, y; axis into Axis, epsilon: f64) one |graph|
        graph.cosine_similarity(x, y, axis.of_operands(graph, [x, y])?, epsilon);

    /// Returns the largest elements of windows over the spatial axes.
    ///
    /// ```
    /// use nxla::{Pool, Tensor};
    ///
    /// let image = Tensor::from([[[[1.0f32, 2.0], [3.0, 4.0]]]]);
    /// let pool = Pool { window: vec![2, 2], ..Pool::default() };
    /// assert_eq!(image.max_pool(&pool)?.item::<f32>()?, 4.0);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn max_pool(x; pool: &Pool) one |graph| graph.max_pool(x, pool);

    /// Returns the means of windows over the spatial axes.
    ///
    /// ```
    /// use nxla::{Pool, Tensor};
    ///
    /// let image = Tensor::from([[[[1.0f32, 2.0], [3.0, 4.0]]]]);
    /// let pool = Pool { window: vec![2, 2], ..Pool::default() };
    /// assert_eq!(image.avg_pool(&pool)?.item::<f32>()?, 2.5);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn avg_pool(x; pool: &Pool) one |graph| graph.avg_pool(x, pool);
}
