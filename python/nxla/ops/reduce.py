"""Reductions: many elements become one, along some axes or all."""

from __future__ import annotations

from nxla import _core
from nxla._values import as_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal

    from nxla._core import Tensor
    from nxla._types import Axes, Axis, DTypeLike, TensorLike


def sum(
    x: TensorLike,
    /,
    *,
    axis: Axes | None = None,
    keepdims: bool = False,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Add up the elements.

    Parameters
    ----------
    x : tensor_like
        Numbers of any dtype.
    axis : int or str, or a sequence, optional
        The axes; all by default.
    keepdims : bool
        Whether these axes stay, with size 1.
    dtype : dtype_like, optional
        The dtype to add in, and of the result. By default narrow integers become ``int32`` or
        ``uint32``, and everything else keeps its dtype.

    Raises
    ------
    ShapeError
        If there is no such axis, or one is given twice.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.sum([[1, 2], [3, 4]]).item(), nx.sum([[1, 2], [3, 4]], axis=0).tolist()
    (10, [4, 6])
    """
    if dtype is None:
        return _core.sum(x, axis, keepdims)
    return _core.as_type(_core.sum(_core.as_type(x, dtype), axis, keepdims), dtype)


def prod(
    x: TensorLike,
    /,
    *,
    axis: Axes | None = None,
    keepdims: bool = False,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Multiply the elements. Parameters and errors are those of `sum`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.prod([[1, 2], [3, 4]], axis=1).tolist()
    [2, 12]
    """
    if dtype is None:
        return _core.product(x, axis, keepdims)
    return _core.as_type(_core.product(_core.as_type(x, dtype), axis, keepdims), dtype)


def max(x: TensorLike, /, *, axis: Axes | None = None, keepdims: bool = False) -> Tensor:
    """Find the largest element; NaN if there is one.

    Parameters
    ----------
    x : tensor_like
        Real numbers.
    axis : int or str, or a sequence, optional
        The axes; all by default.
    keepdims : bool
        Whether these axes stay, with size 1.

    Raises
    ------
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.max([[1, 5], [3, 4]], axis=1).tolist()
    [5, 4]
    """
    return _core.reduce_max(x, axis, keepdims)


def min(x: TensorLike, /, *, axis: Axes | None = None, keepdims: bool = False) -> Tensor:
    """Find the smallest element; NaN if there is one. Parameters and errors are those of `max`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.min([[1, 5], [3, 4]], axis=1).tolist()
    [1, 3]
    """
    return _core.reduce_min(x, axis, keepdims)


def all(x: TensorLike, /, *, axis: Axes | None = None, keepdims: bool = False) -> Tensor:
    """Tell whether no element is zero. Parameters are those of `max`, any dtype will do.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.all([[1, 0], [3, 4]], axis=1).tolist()
    [False, True]
    """
    return _core.all(x, axis, keepdims)


def any(x: TensorLike, /, *, axis: Axes | None = None, keepdims: bool = False) -> Tensor:
    """Tell whether an element is not zero. Parameters are those of `max`, any dtype will do.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.any([[0, 0], [3, 0]], axis=1).tolist()
    [False, True]
    """
    return _core.any(x, axis, keepdims)


def count_nonzero(x: TensorLike, /, *, axis: Axes | None = None, keepdims: bool = False) -> Tensor:
    """Count the elements that are not zero, as ``int32``. Parameters are those of `max`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.count_nonzero([[0, 1], [2, 3]]).item()
    3
    """
    return _core.sum(_core.as_type(_core.not_equal(x, 0), _core.s32), axis, keepdims)


def mean(x: TensorLike, /, *, axis: Axes | None = None, keepdims: bool = False) -> Tensor:
    """Return the arithmetic mean.

    Parameters
    ----------
    x : tensor_like
        Numbers; integers count as ``float32``.
    axis : int or str, or a sequence, optional
        The axes; all by default.
    keepdims : bool
        Whether these axes stay, with size 1.

    Raises
    ------
    ShapeError
        If there is no such axis, or one is given twice.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.mean([[1, 2], [3, 4]], axis=0).tolist()
    [2.0, 3.0]
    """
    return _core.mean(x, axis, keepdims)


def weighted_mean(
    x: TensorLike, weights: TensorLike, /, *, axis: Axes | None = None, keepdims: bool = False
) -> Tensor:
    """Return the mean, with a weight for each element.

    Parameters
    ----------
    x : tensor_like
        Numbers; integers count as ``float32``.
    weights : tensor_like
        Of the shape of `x`, or with one axis for each of `axis`.
    axis : int or str, or a sequence, optional
        The axes; all by default.
    keepdims : bool
        Whether these axes stay, with size 1.

    Raises
    ------
    ShapeError
        If the weights have another shape.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.weighted_mean([1.0, 3.0], [3, 1]).item()
    1.5
    """
    return _core.weighted_mean(x, weights, axis, keepdims)


def var(
    x: TensorLike,
    /,
    *,
    axis: Axes | None = None,
    correction: float = 0,
    keepdims: bool = False,
) -> Tensor:
    """Return the variance: the mean squared distance from the mean.

    Parameters
    ----------
    x : tensor_like
        Numbers; integers count as ``float32``.
    axis : int or str, or a sequence, optional
        The axes; all by default.
    correction : float
        What is taken off the number of elements that the sum is divided by; 1 for a sample.
    keepdims : bool
        Whether these axes stay, with size 1.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.var([1.0, 2.0, 3.0, 4.0]).item()
    1.25
    """
    if correction == int(correction):
        return _core.variance(x, axis, keepdims, int(correction))
    x = as_tensor(x)
    variance = _core.variance(x, axis, keepdims)
    count = x.size / variance.size if variance.size else 0.0
    return _core.multiply(variance, count / (count - correction))


def std(
    x: TensorLike,
    /,
    *,
    axis: Axes | None = None,
    correction: float = 0,
    keepdims: bool = False,
) -> Tensor:
    """Return the standard deviation: the root of `var`, with its parameters.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.std([1.0, 3.0]).item()
    1.0
    """
    if correction == int(correction):
        return _core.standard_deviation(x, axis, keepdims, int(correction))
    return _core.sqrt(var(x, axis=axis, correction=correction, keepdims=keepdims))


def covariance(x: TensorLike, /, mean: TensorLike | None = None, *, correction: int = 0) -> Tensor:
    """Return the covariance of columns.

    Parameters
    ----------
    x : tensor_like
        Matrices, one row for each observation, in the last two axes.
    mean : tensor_like, optional
        One number for each column; computed by default.
    correction : int
        What is taken off the number of rows that the sums are divided by.

    Returns
    -------
    Tensor
        A matrix with a row and a column for each column of `x`.

    Raises
    ------
    ShapeError
        If there are fewer than two axes.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.covariance([[1.0, 2.0], [3.0, 6.0]]).tolist()
    [[1.0, 2.0], [2.0, 4.0]]
    """
    return _core.covariance(x, mean, correction)


def median(x: TensorLike, /, *, axis: Axis | None = None, keepdims: bool = False) -> Tensor:
    """Return the middle element in order of size; the mean of two of them for an even number.

    Parameters
    ----------
    x : tensor_like
        Real numbers.
    axis : int or str, optional
        The axis; all elements by default.
    keepdims : bool
        Whether the axis stays, with size 1.

    Raises
    ------
    ShapeError
        If there is no such axis.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.median([3, 1, 2]).item(), nx.median([4.0, 1.0, 2.0, 3.0]).item()
    (2, 2.5)
    """
    return _core.median(x, axis, keepdims)


def mode(x: TensorLike, /, *, axis: Axis | None = None, keepdims: bool = False) -> Tensor:
    """Return the most frequent element, the smallest of several. Parameters are those of `median`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.mode([3, 1, 3, 2]).item()
    3
    """
    return _core.mode(x, axis, keepdims)


def argmax(
    x: TensorLike,
    /,
    *,
    axis: Axis | None = None,
    keepdims: bool = False,
    tie_break: Literal["low", "high"] = "low",
    dtype: DTypeLike = _core.s32,
) -> Tensor:
    """Return the index of the largest element; of a NaN if there is one.

    Parameters
    ----------
    x : tensor_like
        Real numbers.
    axis : int or str, optional
        The axis; by default the index is one into all elements in row-major order.
    keepdims : bool
        Whether the axis stays, with size 1.
    tie_break : {"low", "high"}
        Which of several equal elements: the first or the last.
    dtype : dtype_like
        The dtype of the index.

    Raises
    ------
    DTypeError
        If `x` is complex.
    ShapeError
        If there is no such axis, or no element.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.argmax([[1, 5], [3, 3]], axis=1).tolist()
    [1, 0]
    """
    return _core.argmax(x, axis, keepdims, tie_break, dtype)


def argmin(
    x: TensorLike,
    /,
    *,
    axis: Axis | None = None,
    keepdims: bool = False,
    tie_break: Literal["low", "high"] = "low",
    dtype: DTypeLike = _core.s32,
) -> Tensor:
    """Return the index of the smallest element. Parameters and errors are those of `argmax`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.argmin([3, 1, 1], tie_break="high").item()
    2
    """
    return _core.argmin(x, axis, keepdims, tie_break, dtype)


def logsumexp(
    x: TensorLike,
    /,
    *,
    axis: Axes | None = None,
    keepdims: bool = False,
    scale: TensorLike | None = None,
) -> Tensor:
    """Return the logarithm of the sum of exponentials, without overflow.

    Parameters
    ----------
    x : tensor_like
        Numbers; integers count as ``float32``.
    axis : int or str, or a sequence, optional
        The axes; all by default.
    keepdims : bool
        Whether these axes stay, with size 1.
    scale : tensor_like, optional
        A factor for each exponential.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.logsumexp([1000.0, 1000.0]).item()
    1000.6931762695312
    """
    return _core.logsumexp(x, axis, keepdims, scale)


def reduce(
    x: TensorLike,
    initial: TensorLike,
    function: Callable[[Tensor, Tensor], TensorLike],
    /,
    *,
    axis: Axes | None = None,
    keepdims: bool = False,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Fold the elements with a function of one's own.

    Parameters
    ----------
    x : tensor_like
        Any tensor.
    initial : number or scalar tensor
        The accumulator at the start.
    function : callable
        Takes ``(element, accumulator)``, both scalars, and gives the new accumulator. The order of
        elements is not specified, so it should be associative.
    axis : int or str, or a sequence, optional
        The axes; all by default.
    keepdims : bool
        Whether these axes stay, with size 1.
    dtype : dtype_like, optional
        The dtype to fold in, and of the result; by default the one that `x` and `initial` have
        together.

    Raises
    ------
    ShapeError
        If `initial` or what the function gives is no scalar.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.reduce([1, 2, 3], 0, lambda element, total: total + element**2).item()
    14
    """

    def fold(x: Tensor, initial: Tensor) -> Tensor:
        if dtype is not None:
            x, initial = _core.as_type(x, dtype), _core.as_type(initial, dtype)
        return _core.reduce(x, initial, function, axis, keepdims)

    return _traced(fold, "reduce", x, initial)


def _traced(function: Callable[..., Tensor], name: str, *operands: TensorLike) -> Tensor:
    """Run something that only works in a trace: in the present one, or in one of its own."""
    if _core.is_tracing():
        return function(*operands)
    # Plain numbers stay plain, so that they take the dtype of what stands next to them.
    plain = [isinstance(operand, bool | int | float | complex) for operand in operands]

    def call(*tensors: Tensor) -> Tensor:
        given = iter(tensors)
        pairs = zip(operands, plain, strict=True)
        return function(*(operand if is_plain else next(given) for operand, is_plain in pairs))

    tensors = (x for x, is_plain in zip(operands, plain, strict=True) if not is_plain)
    return _core.Function(call, name)(*(_core.tensor(x) for x in tensors))
