//! Normalization, attention, losses and pooling.

use nxla_runtime::graph::build::{Attention, Pool};
use pyo3::prelude::*;

use crate::ops::args::{Axis, AxisList, AxisOfOperands, Count};
use crate::ops::declare::functions;
use crate::ops::window::{PaddingArg, Window};

functions! {
    /// Normalize elements along some axes to mean 0 and variance 1, then scale and shift them.
    ///
    /// J. L. Ba et al., "Layer normalization" (2016).
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Real numbers; integers count as ``float32``. Statistics of narrow floats are computed in
    ///     32 bits.
    /// scale, bias : tensor_like, optional
    ///     Tensors with the shape of the normalized axes.
    /// axis : int or str, or a sequence
    ///     The axes.
    /// epsilon : float
    ///     A constant that is added to the variance.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     A tensor with the shape and dtype of `x`.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If an axis does not exist, or scale or bias have other sizes.
    /// DTypeError
    ///     If `x` is complex.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.nn.layer_norm([1.0, 3.0], bias=[10.0, 20.0], epsilon=0.0).tolist()
    /// [9.0, 21.0]
    fn layer_norm(
        x, /, scale: Option<Bound<'_, PyAny>> = None, bias: Option<Bound<'_, PyAny>> = None, *,
        axis: AxisList = -1, epsilon: f64 = 1e-05
    ) |graph| graph.layer_norm(x, [scale, bias], &axis, epsilon);

    /// Normalize elements along some axes to a mean square of 1, then scale them.
    ///
    /// B. Zhang and R. Sennrich, "Root mean square layer normalization" (2019).
    ///
    /// Parameters, result and errors are the same as for `layer_norm`.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.nn.rms_norm([1.0, -1.0], [2.0, 3.0], epsilon=0.0).tolist()
    /// [2.0, -3.0]
    fn rms_norm(
        x, /, scale: Option<Bound<'_, PyAny>> = None, *, axis: AxisList = -1,
        epsilon: f64 = 1e-06
    ) |graph| graph.rms_norm(x, scale, &axis, epsilon);

    /// Normalize groups of channels of each example to mean 0 and variance 1, then scale and shift
    /// each channel.
    ///
    /// Y. Wu and K. He, "Group normalization" (2018).
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Examples along the first axis.
    /// groups : int
    ///     The number of groups; one group for each channel is instance normalization.
    /// scale, bias : tensor_like, optional
    ///     A number for each channel.
    /// axis : int or str
    ///     The axis of the channels.
    /// epsilon : float
    ///     A constant that is added to the variance.
    ///
    /// Raises
    /// ------
    /// ArgumentError
    ///     If the groups do not divide the channels, or the channels are along the first axis.
    /// ShapeError
    ///     If the axis does not exist, or scale or bias have another size.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.nn.group_norm([[1.0, 3.0, 5.0, 5.0]], 2, epsilon=1e-12).tolist()
    /// [[-1.0, 1.0, 0.0, 0.0]]
    fn group_norm(
        x, /, groups: Count, scale: Option<Bound<'_, PyAny>> = None,
        bias: Option<Bound<'_, PyAny>> = None, *, axis: Axis = -1, epsilon: f64 = 1e-05
    ) |graph| graph.group_norm(x, groups, [scale, bias], axis, epsilon);

    /// Normalize channels by a known mean and variance, then scale and shift them.
    ///
    /// S. Ioffe and C. Szegedy, "Batch normalization" (2015), for inference; `batch_norm_train` is
    /// for training.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Real numbers; integers count as ``float32``.
    /// mean, variance : tensor_like
    ///     A number for each channel.
    /// scale, bias : tensor_like, optional
    ///     A number for each channel.
    /// axis : int or str
    ///     The axis of the channels.
    /// epsilon : float
    ///     A constant that is added to the variance.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If the axis does not exist, or a vector has another size.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.nn.batch_norm([[1.0, 2.0]], [1.0, 0.0], [1.0, 4.0], epsilon=0.0).tolist()
    /// [[0.0, 1.0]]
    fn batch_norm(
        x, mean, variance, /, scale: Option<Bound<'_, PyAny>> = None,
        bias: Option<Bound<'_, PyAny>> = None, *, axis: Axis = -1, epsilon: f64 = 1e-05
    ) |graph| graph.batch_norm(x, [mean, variance], [scale, bias], axis, epsilon);

    /// Return means of values, weighted by the similarity of queries and keys.
    ///
    /// A. Vaswani et al., "Attention is all you need" (2017); with fewer heads of keys than of
    /// queries J. Ainslie et al., "GQA: training generalized multi-query transformer models from
    /// multi-head checkpoints" (2023). Computed in 32 bits at least.
    ///
    /// Parameters
    /// ----------
    /// query : tensor_like
    ///     Of shape (..., T, N, H): T queries with N heads of H features.
    /// key : tensor_like
    ///     Of shape (..., S, K, H); K divides N.
    /// value : tensor_like
    ///     Of shape (..., S, K, V).
    /// bias : tensor_like, optional
    ///     Added to the products of queries and keys; broadcasts to (..., N, T, S).
    /// mask : tensor_like, optional
    ///     False, or 0, where a query must not see a key; broadcasts to (..., N, T, S). A query
    ///     with no visible key attends to all keys equally.
    /// scale : float, optional
    ///     The factor of the products of queries and keys; ``1 / sqrt(H)`` by default.
    /// is_causal : bool
    ///     If True, a query does not see keys after its own position.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     Of shape (..., T, N, V), and the dtype of the queries.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If the shapes are inconsistent.
    /// DTypeError
    ///     If an operand is complex.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> x = nx.reshape(nx.arange(6.0), (3, 1, 2))
    /// >>> nx.nn.dot_product_attention(nx.zeros((3, 1, 2)), x, x, is_causal=True).tolist()
    /// [[[0.0, 1.0]], [[1.0, 2.0]], [[2.0, 3.0]]]
    fn dot_product_attention(
        query, key, value, /, bias: Option<Bound<'_, PyAny>> = None,
        mask: Option<Bound<'_, PyAny>> = None, *, scale: Option<f64> = None,
        is_causal: bool = false
    ) |graph| {
        let options = Attention { bias, mask, scale, causal: is_causal };
        graph.dot_product_attention([query, key, value], options)
    };

    /// Return ``-sum(labels * log_softmax(logits))``.
    ///
    /// Parameters
    /// ----------
    /// logits : tensor_like
    ///     Real numbers.
    /// labels : tensor_like
    ///     The probability of each class; 0 adds nothing, even for a logit of minus
    ///     infinity.
    /// axis : int or str
    ///     The axis of the classes.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     A loss for each example, without the axis.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If the axis does not exist, or shapes do not broadcast.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> round(nx.nn.softmax_cross_entropy([0.0, 0.0], [0.5, 0.5]).item(), 4)
    /// 0.6931
    fn softmax_cross_entropy(logits, labels, /, *, axis: AxisOfOperands = -1) |graph|
        graph.softmax_cross_entropy(logits, labels, axis);

    /// Return ``-log_softmax(logits)`` at integer class indices.
    ///
    /// Parameters
    /// ----------
    /// logits : tensor_like
    ///     Real numbers.
    /// labels : tensor_like
    ///     Integers from 0, of the shape of the logits without the axis.
    /// axis : int or str
    ///     The axis of the classes.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     A loss for each example, without the axis. The loss of a label that is not the index of
    ///     a class is NaN, without a gradient.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If the axis does not exist, or the labels have another shape.
    /// DTypeError
    ///     If the labels are not integers.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> logits = [[0.0, 1000.0], [0.0, 0.0]]
    /// >>> loss = nx.nn.softmax_cross_entropy_with_integer_labels(logits, [0, 1])
    /// >>> [round(x, 4) for x in loss.tolist()]
    /// [1000.0, 0.6931]
    fn softmax_cross_entropy_with_integer_labels(logits, labels, /, *, axis: Axis = -1) |graph|
        graph.integer_cross_entropy(logits, labels, axis);

    /// Return the cross entropy of labels and the sigmoids of logits, element by element.
    ///
    /// Parameters
    /// ----------
    /// logits : tensor_like
    ///     Real numbers.
    /// labels : tensor_like
    ///     From 0 to 1; broadcasts with the logits.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     A loss for each element.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.nn.sigmoid_binary_cross_entropy([-1000.0, 1000.0], [1, 0]).tolist()
    /// [1000.0, 1000.0]
    fn sigmoid_binary_cross_entropy(logits, labels, /) |graph|
        graph.sigmoid_cross_entropy(logits, labels);

    /// Return squared distances. Their mean is the mean squared error.
    ///
    /// Parameters
    /// ----------
    /// predictions, targets : tensor_like
    ///     Real numbers, which broadcast.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.mean(nx.nn.squared_error([1.0, 2.0], [1.0, 5.0])).item()
    /// 4.5
    fn squared_error(predictions, targets, /) |graph| graph.squared_error(predictions, targets);

    /// Return the Huber loss: half of squared distances where they are small, and linear elsewhere.
    ///
    /// P. J. Huber, "Robust estimation of a location parameter" (1964).
    ///
    /// Parameters
    /// ----------
    /// predictions, targets : tensor_like
    ///     Real numbers, which broadcast.
    /// delta : float
    ///     The distance at which lines begin.
    ///
    /// Raises
    /// ------
    /// ArgumentError
    ///     If `delta` is negative.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.nn.huber_loss([0.5, 10.0], [0.0, 0.0]).tolist()
    /// [0.125, 9.5]
    fn huber_loss(predictions, targets, /, *, delta: f64 = 1) |graph|
        graph.huber_loss(predictions, targets, delta);

    /// Return the Kullback-Leibler divergence.
    ///
    /// S. Kullback and R. A. Leibler, "On information and sufficiency" (1951).
    ///
    /// Parameters
    /// ----------
    /// log_predictions : tensor_like
    ///     Logarithms of probabilities.
    /// targets : tensor_like
    ///     Probabilities; a probability of 0 contributes nothing.
    /// axis : int or str
    ///     The axis of the classes.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     ``sum(targets * (log(targets) - log_predictions))``, without the axis.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> round(nx.nn.kl_divergence(nx.log([0.5, 0.5]), [1.0, 0.0]).item(), 4)
    /// 0.6931
    fn kl_divergence(log_predictions, targets, /, *, axis: AxisOfOperands = -1) |graph|
        graph.kl_divergence(log_predictions, targets, axis);

    /// Return cosines of the angles between vectors.
    ///
    /// Parameters
    /// ----------
    /// x1, x2 : tensor_like
    ///     Real numbers, which broadcast.
    /// axis : int or str
    ///     The axis of the parts of a vector.
    /// epsilon : float
    ///     The lower bound of the vector norms, which avoids a division by zero.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     Cosines from -1 to 1, without the axis. The cosine distance is 1 minus the result.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> round(nx.nn.cosine_similarity([1.0, 0.0], [1e30, 1e30]).item(), 4)
    /// 0.7071
    fn cosine_similarity(x1, x2, /, *, axis: AxisOfOperands = -1, epsilon: f64 = 1e-08) |graph|
        graph.cosine_similarity(x1, x2, axis, epsilon);

    /// Return the maxima of windows.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Real numbers with axes for examples, channels, and one for each size of the window.
    /// window : int or sequence of int
    ///     The size of the window, for all axes except examples and channels, or for each.
    /// strides : int or sequence of int, optional
    ///     The stride of the windows; their size by default.
    /// padding : {"valid", "same"} or sequence of (int, int)
    ///     The padding, with the lowest value of the dtype: none (``"valid"``); as much as
    ///     ``ceil(size / stride)`` windows need (``"same"``, as in JAX); or pairs ``(before, after)``
    ///     for each axis.
    /// dilations : int or sequence of int, optional
    ///     The distance between the elements of a window; 1 by default.
    /// channels_last : bool
    ///     If True, channels are the last axis, as in JAX and Keras, instead of the second.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If `x` has another number of axes.
    /// ArgumentError
    ///     If strides, padding or dilations have another number of entries.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.nn.max_pool([[[1.0, 5.0, 2.0, 3.0]]], (2,)).tolist()
    /// [[[5.0, 3.0]]]
    /// >>> nx.nn.max_pool(nx.reshape(nx.arange(16), (1, 1, 4, 4)), 2).tolist()
    /// [[[[5, 7], [13, 15]]]]
    fn max_pool(
        x, /, window: Window<2>, *, strides: Option<Window<2>> = None, padding: PaddingArg = "valid",
        dilations: Option<Window<2>> = None, channels_last: bool = false
    ) |graph| {
        let pool =
            Pool { window, strides, padding, dilations, channels_last, count_padding: false };
        graph.max_pool(x, &pool)
    };

    /// Return the means of windows.
    ///
    /// Padding contains zeros. The other parameters and the errors are the same as for `max_pool`.
    ///
    /// Parameters
    /// ----------
    /// count_padding : bool
    ///     If True, padding counts as zeros; otherwise the mean excludes padding.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.nn.avg_pool([[[1.0, 5.0, 2.0]]], (2,), padding="same").tolist()
    /// [[[3.0, 2.0]]]
    fn avg_pool(
        x, /, window: Window<2>, *, strides: Option<Window<2>> = None, padding: PaddingArg = "valid",
        dilations: Option<Window<2>> = None, channels_last: bool = false,
        count_padding: bool = false
    ) |graph| {
        let pool = Pool { window, strides, padding, dilations, channels_last, count_padding };
        graph.avg_pool(x, &pool)
    };
}
