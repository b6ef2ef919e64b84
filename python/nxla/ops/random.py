"""Distributions with parameters of their own, each with a form for a key that has been split."""

from __future__ import annotations

from nxla import _core
from nxla._sample import Sample, refuse_shape
from nxla._values import as_tensor
from nxla.errors import ShapeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from nxla._core import Tensor
    from nxla._types import Axis, DTypeLike, Names, Shape, TensorLike


def _draw(
    name: str,
    key: TensorLike,
    parameters: Sequence[TensorLike],
    shape: Shape | None,
    dtype: DTypeLike | None,
    names: Names | None,
    advance: bool,
) -> list[Tensor]:
    """Draw from a distribution, by default as many numbers as its parameters have together."""
    if shape is None:
        shape = _together(name, [as_tensor(x).shape for x in parameters])
    return _core.random_from(name, key, parameters, shape, dtype, names, advance)


def _together(name: str, shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the shape that shapes broadcast to."""
    result: list[int] = []
    for shape in shapes:
        missing = max(len(result), len(shape))
        left = [1] * (missing - len(result)) + result
        right = [1] * (missing - len(shape)) + list(shape)
        if any(a != b and 1 not in (a, b) for a, b in zip(left, right, strict=True)):
            listed = " and ".join(map(str, shapes))
            raise ShapeError(f"{name}: parameters of shapes {listed} do not broadcast")
        result = [b if a == 1 else a for a, b in zip(left, right, strict=True)]
    return tuple(result)


def bernoulli(
    key: TensorLike,
    p: TensorLike = 0.5,
    /,
    shape: Shape | None = None,
    *,
    names: Names | None = None,
) -> Sample:
    """Draw truth values that are true with a probability.

    Parameters
    ----------
    key : tensor_like
        A key.
    p : tensor_like
        From 0 to 1: how likely they are true.
    shape : int or sequence of int, optional
        How many numbers to draw; the parameters broadcast to it. By default as many as they have.
    names : sequence of str or None, optional
        Names of the axes.

    Returns
    -------
    Sample
        The truth values, and the next key.

    Raises
    ------
    ShapeError
        If `key` is no key, or a parameter does not broadcast to the shape.
    DTypeError
        If `p` is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> x, key = nx.random.bernoulli(nx.random.key(0), 0.3, shape=5)
    >>> x.dtype, x.shape
    (pred, (5,))
    """
    refuse_shape("bernoulli", "p", p)
    drawn, following = _draw("bernoulli", key, (p,), shape, None, names, True)
    return Sample(drawn, following)


def bernoulli_split(
    key: TensorLike,
    p: TensorLike = 0.5,
    /,
    shape: Shape | None = None,
    *,
    names: Names | None = None,
) -> Tensor:
    """Draw as `bernoulli` does, with a key that has been split; return the truth values alone.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.random.bernoulli_split(nx.random.key(0), 0.5, shape=3).shape
    (3,)
    """
    refuse_shape("bernoulli_split", "p", p)
    return _draw("bernoulli", key, (p,), shape, None, names, False)[0]


def exponential(
    key: TensorLike,
    scale: TensorLike = 1.0,
    /,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    names: Names | None = None,
) -> Sample:
    """Draw floats with the exponential distribution.

    Parameters
    ----------
    key : tensor_like
        A key.
    scale : tensor_like
        The mean, which is one over the rate.
    shape : int or sequence of int, optional
        How many numbers to draw; the parameters broadcast to it. By default as many as they have.
    dtype : dtype_like, optional
        A float dtype; by default that of the parameters.
    names : sequence of str or None, optional
        Names of the axes.

    Returns
    -------
    Sample
        The numbers, and the next key.

    Raises
    ------
    ShapeError
        If `key` is no key, or a parameter does not broadcast to the shape.
    DTypeError
        If the dtype is no float, or a parameter is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> x, key = nx.random.exponential(nx.random.key(0), 2.0, shape=1000)
    >>> 1.8 < nx.mean(x).item() < 2.2
    True
    """
    refuse_shape("exponential", "scale", scale)
    drawn, following = _draw("exponential", key, (scale,), shape, dtype, names, True)
    return Sample(drawn, following)


def exponential_split(
    key: TensorLike,
    scale: TensorLike = 1.0,
    /,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    names: Names | None = None,
) -> Tensor:
    """Draw as `exponential` does, with a key that has been split; return the numbers alone.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.random.exponential_split(nx.random.key(0), 1.0, shape=3).shape
    (3,)
    """
    refuse_shape("exponential_split", "scale", scale)
    return _draw("exponential", key, (scale,), shape, dtype, names, False)[0]


def laplace(
    key: TensorLike,
    mean: TensorLike = 0.0,
    scale: TensorLike = 1.0,
    /,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    names: Names | None = None,
) -> Sample:
    """Draw floats with the Laplace distribution: exponential ones to both sides of the mean.

    Parameters
    ----------
    key : tensor_like
        A key.
    mean : tensor_like
        The mean.
    scale : tensor_like
        The mean distance from it.
    shape : int or sequence of int, optional
        How many numbers to draw; the parameters broadcast to it. By default as many as they have.
    dtype : dtype_like, optional
        A float dtype; by default that of the parameters.
    names : sequence of str or None, optional
        Names of the axes.

    Returns
    -------
    Sample
        The numbers, and the next key.

    Raises
    ------
    ShapeError
        If `key` is no key, or a parameter does not broadcast to the shape.
    DTypeError
        If the dtype is no float, or a parameter is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> x, key = nx.random.laplace(nx.random.key(0), shape=1000)
    >>> abs(nx.mean(x).item()) < 0.2
    True
    """
    refuse_shape("laplace", "mean", mean)
    drawn, following = _draw("laplace", key, (mean, scale), shape, dtype, names, True)
    return Sample(drawn, following)


def laplace_split(
    key: TensorLike,
    mean: TensorLike = 0.0,
    scale: TensorLike = 1.0,
    /,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    names: Names | None = None,
) -> Tensor:
    """Draw as `laplace` does, with a key that has been split; return the numbers alone.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.random.laplace_split(nx.random.key(0), 0.0, 1.0, shape=3).shape
    (3,)
    """
    refuse_shape("laplace_split", "mean", mean)
    return _draw("laplace", key, (mean, scale), shape, dtype, names, False)[0]


def truncated_normal(
    key: TensorLike,
    low: TensorLike,
    high: TensorLike,
    /,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    names: Names | None = None,
) -> Sample:
    """Draw floats with the standard normal distribution, of those between two bounds.

    Intervals beyond 2 on either side are drawn by rejection from an exponential distribution (C. P.
    Robert, "Simulation of truncated normal variables", 1995), which is exact in both tails, others
    by inverting the error function. Both compute in 64 bits.

    Parameters
    ----------
    key : tensor_like
        A key.
    low : tensor_like
        The lower bound.
    high : tensor_like
        The upper bound.
    shape : int or sequence of int, optional
        How many numbers to draw; the parameters broadcast to it. By default as many as they have.
    dtype : dtype_like, optional
        A float dtype; by default that of the parameters.
    names : sequence of str or None, optional
        Names of the axes.

    Returns
    -------
    Sample
        The numbers, and the next key.

    Raises
    ------
    ShapeError
        If `key` is no key, or a parameter does not broadcast to the shape.
    DTypeError
        If the dtype is no float, or a parameter is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> x, key = nx.random.truncated_normal(nx.random.key(0), -2.0, 2.0, shape=1000)
    >>> -2.0 <= nx.min(x).item() < nx.max(x).item() <= 2.0
    True
    """
    drawn, following = _draw("truncated_normal", key, (low, high), shape, dtype, names, True)
    return Sample(drawn, following)


def truncated_normal_split(
    key: TensorLike,
    low: TensorLike,
    high: TensorLike,
    /,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    names: Names | None = None,
) -> Tensor:
    """Draw as `truncated_normal` does, with a key that has been split; return the numbers alone.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.random.truncated_normal_split(nx.random.key(0), 0.5, 0.5, shape=3).shape
    (3,)
    """
    return _draw("truncated_normal", key, (low, high), shape, dtype, names, False)[0]


def gamma(
    key: TensorLike,
    a: TensorLike,
    /,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    names: Names | None = None,
) -> Sample:
    """Draw floats with the gamma distribution of scale 1.

    By the method of G. Marsaglia and W. W. Tsang, "A simple method for generating gamma
    variables" (2000).

    Parameters
    ----------
    key : tensor_like
        A key.
    a : tensor_like
        The shape of the distribution; NaN comes of a negative one.
    shape : int or sequence of int, optional
        How many numbers to draw; the parameters broadcast to it. By default as many as they have.
    dtype : dtype_like, optional
        A float dtype; by default that of the parameters.
    names : sequence of str or None, optional
        Names of the axes.

    Returns
    -------
    Sample
        The numbers, and the next key.

    Raises
    ------
    ShapeError
        If `key` is no key, or a parameter does not broadcast to the shape.
    DTypeError
        If the dtype is no float, or a parameter is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> x, key = nx.random.gamma(nx.random.key(0), 3.0, shape=1000)
    >>> 2.8 < nx.mean(x).item() < 3.2
    True
    """
    drawn, following = _draw("gamma", key, (a,), shape, dtype, names, True)
    return Sample(drawn, following)


def gamma_split(
    key: TensorLike,
    a: TensorLike,
    /,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    names: Names | None = None,
) -> Tensor:
    """Draw as `gamma` does, with a key that has been split; return the numbers alone.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.random.gamma_split(nx.random.key(0), 0.5, shape=3).shape
    (3,)
    """
    return _draw("gamma", key, (a,), shape, dtype, names, False)[0]


def beta(
    key: TensorLike,
    a: TensorLike,
    b: TensorLike,
    /,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    names: Names | None = None,
) -> Sample:
    """Draw floats with the beta distribution.

    Parameters
    ----------
    key : tensor_like
        A key.
    a : tensor_like
        How far it leans to 1; positive.
    b : tensor_like
        How far it leans to 0; positive.
    shape : int or sequence of int, optional
        How many numbers to draw; the parameters broadcast to it. By default as many as they have.
    dtype : dtype_like, optional
        A float dtype; by default that of the parameters.
    names : sequence of str or None, optional
        Names of the axes.

    Returns
    -------
    Sample
        The numbers, and the next key.

    Raises
    ------
    ShapeError
        If `key` is no key, or a parameter does not broadcast to the shape.
    DTypeError
        If the dtype is no float, or a parameter is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> x, key = nx.random.beta(nx.random.key(0), 2.0, 6.0, shape=1000)
    >>> 0.22 < nx.mean(x).item() < 0.28
    True
    """
    drawn, following = _draw("beta", key, (a, b), shape, dtype, names, True)
    return Sample(drawn, following)


def beta_split(
    key: TensorLike,
    a: TensorLike,
    b: TensorLike,
    /,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    names: Names | None = None,
) -> Tensor:
    """Draw as `beta` does, with a key that has been split; return the numbers alone.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.random.beta_split(nx.random.key(0), 0.5, 0.5, shape=3).shape
    (3,)
    """
    return _draw("beta", key, (a, b), shape, dtype, names, False)[0]


def poisson(
    key: TensorLike,
    rate: TensorLike,
    /,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    names: Names | None = None,
) -> Sample:
    """Draw how many of rare events happen.

    Rates from 10 on by W. Hörmann, "The transformed rejection method for generating Poisson
    random variables" (1993), lower ones by inverting the distribution.

    Parameters
    ----------
    key : tensor_like
        A key.
    rate : tensor_like
        Their mean number; -1 comes of one that is negative or NaN.
    shape : int or sequence of int, optional
        How many numbers to draw; the parameters broadcast to it. By default as many as they have.
    dtype : dtype_like, optional
        An integer dtype; ``int32`` by default.
    names : sequence of str or None, optional
        Names of the axes.

    Returns
    -------
    Sample
        The numbers, and the next key.

    Raises
    ------
    ShapeError
        If `key` is no key, or a parameter does not broadcast to the shape.
    DTypeError
        If the dtype is no integer, or the rate is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> x, key = nx.random.poisson(nx.random.key(0), 4.0, shape=1000)
    >>> x.dtype, 3.8 < nx.mean(x).item() < 4.2
    (s32, True)
    """
    drawn, following = _draw("poisson", key, (rate,), shape, dtype, names, True)
    return Sample(drawn, following)


def poisson_split(
    key: TensorLike,
    rate: TensorLike,
    /,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    names: Names | None = None,
) -> Tensor:
    """Draw as `poisson` does, with a key that has been split; return the numbers alone.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.random.poisson_split(nx.random.key(0), 0.5, shape=3).shape
    (3,)
    """
    return _draw("poisson", key, (rate,), shape, dtype, names, False)[0]


def dirichlet(
    key: TensorLike,
    alpha: TensorLike,
    /,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    names: Names | None = None,
) -> Sample:
    """Draw shares of a whole, with the distribution of Dirichlet.

    Parameters
    ----------
    key : tensor_like
        A key.
    alpha : tensor_like
        A positive number for each share, along the last axis.
    shape : int or sequence of int, optional
        How many times to draw, without the axis of the shares; by default once for each of the
        other axes of `alpha`, which broadcast to it.
    dtype : dtype_like, optional
        A float dtype; by default that of `alpha`.
    names : sequence of str or None, optional
        Names of the axes of the result.

    Returns
    -------
    Sample
        The shares, which add up to 1 along the last axis, and the next key.

    Raises
    ------
    ShapeError
        If `key` is no key, or `alpha` has no axis or does not broadcast.
    DTypeError
        If the dtype is no float, or `alpha` is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> x, key = nx.random.dirichlet(nx.random.key(0), [1.0, 2.0, 3.0], shape=4)
    >>> x.shape, nx.all_close(nx.sum(x, axis=1), 1.0).item()
    ((4, 3), True)
    """
    shape = as_tensor(alpha).shape[:-1] if shape is None else shape
    drawn, following = _core.random_from("dirichlet", key, [alpha], shape, dtype, names, True)
    return Sample(drawn, following)


def dirichlet_split(
    key: TensorLike,
    alpha: TensorLike,
    /,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    names: Names | None = None,
) -> Tensor:
    """Draw as `dirichlet` does, with a key that has been split; return the shares alone.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.random.dirichlet_split(nx.random.key(0), [1.0, 2.0]).shape
    (2,)
    """
    shape = as_tensor(alpha).shape[:-1] if shape is None else shape
    return _core.random_from("dirichlet", key, [alpha], shape, dtype, names, False)[0]


def categorical(
    key: TensorLike,
    logits: TensorLike,
    /,
    axis: Axis = -1,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    names: Names | None = None,
) -> Sample:
    """Draw categories, with probabilities in proportion to ``exp(logits)``.

    Parameters
    ----------
    key : tensor_like
        A key.
    logits : tensor_like
        A real number for each category; minus infinity is never drawn.
    axis : int or str
        The axis of the categories.
    shape : int or sequence of int, optional
        The shape of the result, which ends with the other axes of `logits`; by default these alone.
    dtype : dtype_like, optional
        An integer dtype; ``int32`` by default.
    names : sequence of str or None, optional
        Names of the axes.

    Returns
    -------
    Sample
        Indices along the axis, and the next key.

    Raises
    ------
    ShapeError
        If `key` is no key, there is no such axis, or the shape does not end so.
    ArgumentError
        If there is no category.
    DTypeError
        If the dtype is no integer, or the logits are complex.

    Examples
    --------
    >>> import nxla as nx
    >>> x, key = nx.random.categorical(nx.random.key(0), [0.0, float("-inf"), 0.0], shape=100)
    >>> nx.bincount(x).tolist()[1]
    0
    """
    shape = _batch(logits, axis) if shape is None else shape
    drawn, following = _core.random_categorical(key, logits, axis, shape, dtype, names, True)
    return Sample(drawn, following)


def categorical_split(
    key: TensorLike,
    logits: TensorLike,
    /,
    axis: Axis = -1,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    names: Names | None = None,
) -> Tensor:
    """Draw as `categorical` does, with a key that has been split; return the indices alone.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.random.categorical_split(nx.random.key(0), [[0.0, 1.0]] * 3).shape
    (3,)
    """
    shape = _batch(logits, axis) if shape is None else shape
    return _core.random_categorical(key, logits, axis, shape, dtype, names, False)[0]


def _batch(logits: TensorLike, axis: Axis) -> tuple[int, ...]:
    """Return the shape of logits without an axis."""
    x = as_tensor(logits)
    at = x.names.index(axis) if isinstance(axis, str) and axis in x.names else axis
    if isinstance(at, str) or not -x.ndim <= at < x.ndim:
        return ()  # The engine says that there is no such axis.
    at %= x.ndim
    return x.shape[:at] + x.shape[at + 1 :]


def permutation(
    key: TensorLike, x: TensorLike, /, *, axis: Axis = 0, independent: bool = False
) -> Sample:
    """Put entries in a random order: those of a tensor, or the numbers below an int.

    Parameters
    ----------
    key : tensor_like
        A key.
    x : int or tensor_like
        How many numbers to order, or a tensor, which is treated as `shuffle` does.
    axis : int or str
        The axis.
    independent : bool
        Whether there is an order of its own for each index of the other axes.

    Returns
    -------
    Sample
        The entries in their new order, and the next key.

    Raises
    ------
    ShapeError
        If `key` is no key, or there is no such axis.
    ArgumentError
        If the int is negative.

    Examples
    --------
    >>> import nxla as nx
    >>> x, key = nx.random.permutation(nx.random.key(0), 10)
    >>> x.tolist()
    [2, 7, 9, 6, 0, 8, 1, 3, 4, 5]
    """
    if isinstance(x, int):
        x = _core.iota((x,), None, "s32")
    shuffled, following = _core.random_shuffle(key, x, axis, independent)
    return Sample(shuffled, following)
