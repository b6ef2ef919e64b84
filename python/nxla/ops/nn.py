"""Neural-network functions for training, which return several results."""

from __future__ import annotations

from nxla import _core, _hints

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nxla._core import Tensor
    from nxla._types import Axis, TensorLike


def batch_norm_train(
    x: TensorLike,
    mean: TensorLike,
    variance: TensorLike,
    /,
    scale: TensorLike | None = None,
    bias: TensorLike | None = None,
    *,
    axis: Axis = -1,
    epsilon: float = 1e-5,
    momentum: float = 0.99,
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalize each channel with its mean and variance, then scale and shift it.

    S. Ioffe and C. Szegedy, "Batch normalization" (2015). Use this function for training, and
    `batch_norm` for inference with the running statistics that this function returns.

    Parameters
    ----------
    x : tensor_like
        Real numbers; integers count as ``float32``.
    mean, variance : tensor_like
        The running statistics: a number for each channel.
    scale, bias : tensor_like, optional
        A number for each channel.
    axis : int or str
        The axis of the channels.
    epsilon : float
        A constant that is added to the variance.
    momentum : float
        The weight of the old running statistics; the statistics of `x` have the remaining weight.
        The variance is divided by the number of elements. No gradient flows through the statistics.

    Returns
    -------
    tuple[Tensor, Tensor, Tensor]
        The normalized tensor, and the next running mean and variance.

    Raises
    ------
    ShapeError
        If the axis does not exist, or a vector has another size.
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> x = [[1.0], [3.0]]
    >>> y, mean, variance = nx.nn.batch_norm_train(x, [0.0], [1.0], epsilon=0.0, momentum=0.5)
    >>> y.tolist(), mean.tolist(), variance.tolist()
    ([[-1.0], [1.0]], [1.0], [1.0])
    """
    arguments = (x, mean, variance, scale, bias, axis, epsilon, momentum)
    y, next_mean, next_variance = _core.batch_norm_parts(*arguments)
    return y, next_mean, next_variance


def dropout(key: TensorLike, x: TensorLike, /, rate: float = 0.5) -> tuple[Tensor, Tensor]:
    """Set elements to zero at random, and scale the others to preserve the mean.

    N. Srivastava et al., "Dropout: a simple way to prevent neural networks from overfitting"
    (2014). Omit the call in inference.

    Parameters
    ----------
    key : tensor_like
        A key of `nxla.random`.
    x : tensor_like
        Numbers; integers count as ``float32``.
    rate : float
        The probability that an element is set to 0.

    Returns
    -------
    tuple[Tensor, Tensor]
        The tensor, and the next key.

    Raises
    ------
    ArgumentError
        If the rate is not from 0 to 1.
    ShapeError
        If `key` is not a key.

    Examples
    --------
    >>> import nxla as nx
    >>> y, key = nx.nn.dropout(nx.random.key(0), nx.ones(1000), 0.25)
    >>> 0.9 < nx.mean(y).item() < 1.1
    True
    """
    kept, following = _core.dropout_with(key, x, rate, True)
    return kept, following


def dropout_split(key: TensorLike, x: TensorLike, /, rate: float = 0.5) -> Tensor:
    """Apply `dropout` without returning the next key.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nn.dropout_split(nx.random.key(0), nx.ones(3), 0.0).tolist()
    [1.0, 1.0, 1.0]
    """
    return _core.dropout_with(key, x, rate, False)[0]


_hints.install(globals())
