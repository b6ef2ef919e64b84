"""Distributions with parameters, each also in a form that does not return the next key."""

from __future__ import annotations

from nxla import _core, _hints
from nxla._sample import Sample, refuse_shape
from nxla._values import as_count, as_tensor, to_index
from nxla.errors import ShapeError
from nxla.ops.metadata import common_shape

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
    """Draw from a distribution; the default shape is the broadcast shape of its parameters."""
    if shape is None:
        function = name if advance else f"{name}_split"
        shape = _together(function, [as_tensor(x).shape for x in parameters])
    return _core.random_from(name, key, parameters, shape, dtype, names, advance)


def _together(name: str, shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the broadcast shape of several shapes."""
    result = common_shape(shapes)
    if result is None:
        listed = " and ".join(map(str, shapes))
        raise ShapeError(f"{name}: parameters: must broadcast; got shapes {listed}")
    return result


def bernoulli(
    key: TensorLike,
    p: TensorLike = 0.5,
    /,
    shape: Shape | None = None,
    *,
    names: Names | None = None,
) -> Sample:
    """Draw booleans that are true with a given probability.

    Parameters
    ----------
    key : tensor_like
        A key.
    p : tensor_like
        The probability of true, from 0 to 1.
    shape : int or sequence of int, optional
        The shape of the result, to which the parameters broadcast; their shape by default.
    names : sequence of str or None, optional
        Names of the axes.

    Returns
    -------
    Sample
        The booleans, and the next key.

    Raises
    ------
    ShapeError
        If `key` is not a key, or a parameter does not broadcast to the shape.
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
    return Sample(*_draw("bernoulli", key, (p,), shape, None, names, True))


def bernoulli_split(
    key: TensorLike,
    p: TensorLike = 0.5,
    /,
    shape: Shape | None = None,
    *,
    names: Names | None = None,
) -> Tensor:
    """Draw like `bernoulli`, without returning the next key.

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
        The mean, the inverse of the rate.
    shape : int or sequence of int, optional
        The shape of the result, to which the parameters broadcast; their shape by default.
    dtype : dtype_like, optional
        A float dtype; by default the dtype of the parameters.
    names : sequence of str or None, optional
        Names of the axes.

    Returns
    -------
    Sample
        The samples, and the next key.

    Raises
    ------
    ShapeError
        If `key` is not a key, or a parameter does not broadcast to the shape.
    DTypeError
        If the dtype is not a float dtype, or a parameter is complex.

    Notes
    -----
    The samples have no gradient with respect to the scale.

    Examples
    --------
    >>> import nxla as nx
    >>> x, key = nx.random.exponential(nx.random.key(0), 2.0, shape=1000)
    >>> 1.8 < nx.mean(x).item() < 2.2
    True
    """
    refuse_shape("exponential", "scale", scale)
    return Sample(*_draw("exponential", key, (scale,), shape, dtype, names, True))


def exponential_split(
    key: TensorLike,
    scale: TensorLike = 1.0,
    /,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    names: Names | None = None,
) -> Tensor:
    """Draw like `exponential`, without returning the next key.

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
    """Draw floats with the Laplace distribution.

    Parameters
    ----------
    key : tensor_like
        A key.
    mean : tensor_like
        The mean.
    scale : tensor_like
        The mean distance from the mean.
    shape : int or sequence of int, optional
        The shape of the result, to which the parameters broadcast; their shape by default.
    dtype : dtype_like, optional
        A float dtype; by default the dtype of the parameters.
    names : sequence of str or None, optional
        Names of the axes.

    Returns
    -------
    Sample
        The samples, and the next key.

    Raises
    ------
    ShapeError
        If `key` is not a key, or a parameter does not broadcast to the shape.
    DTypeError
        If the dtype is not a float dtype, or a parameter is complex.

    Notes
    -----
    The samples have no gradient with respect to the parameters.

    Examples
    --------
    >>> import nxla as nx
    >>> x, key = nx.random.laplace(nx.random.key(0), shape=1000)
    >>> abs(nx.mean(x).item()) < 0.2
    True
    """
    refuse_shape("laplace", "mean", mean)
    return Sample(*_draw("laplace", key, (mean, scale), shape, dtype, names, True))


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
    """Draw like `laplace`, without returning the next key.

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
    """Draw floats with the standard normal distribution, restricted to an interval.

    Intervals beyond 2 on either side use rejection from an exponential distribution (C. P.
    Robert, "Simulation of truncated normal variables", 1995), which is exact in both tails. Other
    intervals use the inverse error function. Both compute in 64 bits.

    Parameters
    ----------
    key : tensor_like
        A key.
    low : tensor_like
        The lower bound.
    high : tensor_like
        The upper bound. The result is NaN where the lower bound is above it.
    shape : int or sequence of int, optional
        The shape of the result, to which the parameters broadcast; their shape by default.
    dtype : dtype_like, optional
        A float dtype; by default the dtype of the parameters.
    names : sequence of str or None, optional
        Names of the axes.

    Returns
    -------
    Sample
        The samples, and the next key.

    Raises
    ------
    ShapeError
        If `key` is not a key, or a parameter does not broadcast to the shape.
    DTypeError
        If the dtype is not a float dtype, or a parameter is complex.

    Notes
    -----
    The samples have no gradient with respect to the parameters.

    Examples
    --------
    >>> import nxla as nx
    >>> x, key = nx.random.truncated_normal(nx.random.key(0), -2.0, 2.0, shape=1000)
    >>> -2.0 <= nx.min(x).item() < nx.max(x).item() <= 2.0
    True
    """
    return Sample(*_draw("truncated_normal", key, (low, high), shape, dtype, names, True))


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
    """Draw like `truncated_normal`, without returning the next key.

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

    The method is from G. Marsaglia and W. W. Tsang, "A simple method for generating gamma
    variables" (2000).

    Parameters
    ----------
    key : tensor_like
        A key.
    a : tensor_like
        The shape parameter, k; a negative value produces NaN.
    shape : int or sequence of int, optional
        The shape of the result, to which the parameters broadcast; their shape by default.
    dtype : dtype_like, optional
        A float dtype; by default the dtype of the parameters.
    names : sequence of str or None, optional
        Names of the axes.

    Returns
    -------
    Sample
        The samples, and the next key.

    Raises
    ------
    ShapeError
        If `key` is not a key, or a parameter does not broadcast to the shape.
    DTypeError
        If the dtype is not a float dtype, or a parameter is complex.

    Notes
    -----
    The samples have no gradient with respect to `a`.

    Examples
    --------
    >>> import nxla as nx
    >>> x, key = nx.random.gamma(nx.random.key(0), 3.0, shape=1000)
    >>> 2.8 < nx.mean(x).item() < 3.2
    True
    """
    return Sample(*_draw("gamma", key, (a,), shape, dtype, names, True))


def gamma_split(
    key: TensorLike,
    a: TensorLike,
    /,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    names: Names | None = None,
) -> Tensor:
    """Draw like `gamma`, without returning the next key.

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
        The first shape parameter, alpha; a positive number.
    b : tensor_like
        The second shape parameter, beta; a positive number.
    shape : int or sequence of int, optional
        The shape of the result, to which the parameters broadcast; their shape by default.
    dtype : dtype_like, optional
        A float dtype; by default the dtype of the parameters.
    names : sequence of str or None, optional
        Names of the axes.

    Returns
    -------
    Sample
        The samples, and the next key.

    Raises
    ------
    ShapeError
        If `key` is not a key, or a parameter does not broadcast to the shape.
    DTypeError
        If the dtype is not a float dtype, or a parameter is complex.

    Notes
    -----
    The samples have no gradient with respect to the parameters.

    Examples
    --------
    >>> import nxla as nx
    >>> x, key = nx.random.beta(nx.random.key(0), 2.0, 6.0, shape=1000)
    >>> 0.22 < nx.mean(x).item() < 0.28
    True
    """
    return Sample(*_draw("beta", key, (a, b), shape, dtype, names, True))


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
    """Draw like `beta`, without returning the next key.

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
    """Draw integers with the Poisson distribution.

    Rates from 10 on use W. Hörmann, "The transformed rejection method for generating Poisson
    random variables" (1993); lower rates use inversion.

    Parameters
    ----------
    key : tensor_like
        A key.
    rate : tensor_like
        The mean; a negative value or NaN produces -1.
    shape : int or sequence of int, optional
        The shape of the result, to which the parameters broadcast; their shape by default.
    dtype : dtype_like, optional
        An integer dtype; ``int32`` by default.
    names : sequence of str or None, optional
        Names of the axes.

    Returns
    -------
    Sample
        The samples, and the next key.

    Raises
    ------
    ShapeError
        If `key` is not a key, or a parameter does not broadcast to the shape.
    DTypeError
        If the dtype is not an integer dtype, or the rate is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> x, key = nx.random.poisson(nx.random.key(0), 4.0, shape=1000)
    >>> x.dtype, 3.8 < nx.mean(x).item() < 4.2
    (s32, True)
    """
    return Sample(*_draw("poisson", key, (rate,), shape, dtype, names, True))


def poisson_split(
    key: TensorLike,
    rate: TensorLike,
    /,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    names: Names | None = None,
) -> Tensor:
    """Draw like `poisson`, without returning the next key.

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
    """Draw vectors with the Dirichlet distribution.

    Parameters
    ----------
    key : tensor_like
        A key.
    alpha : tensor_like
        The concentrations, positive numbers along the last axis.
    shape : int or sequence of int, optional
        The shape of the result without its last axis; by default the shape of `alpha` without its
        last axis, which broadcasts to it.
    dtype : dtype_like, optional
        A float dtype; by default the dtype of `alpha`.
    names : sequence of str or None, optional
        Names of the axes of the result.

    Returns
    -------
    Sample
        Vectors along the last axis, whose elements sum to 1, and the next key.

    Raises
    ------
    ShapeError
        If `key` is not a key, or `alpha` has no axis or does not broadcast.
    DTypeError
        If the dtype is not a float dtype, or `alpha` is complex.

    Notes
    -----
    The samples have no gradient with respect to the parameters.

    Examples
    --------
    >>> import nxla as nx
    >>> x, key = nx.random.dirichlet(nx.random.key(0), [1.0, 2.0, 3.0], shape=4)
    >>> x.shape, nx.all_close(nx.sum(x, axis=1), 1.0).item()
    ((4, 3), True)
    """
    shape = as_tensor(alpha).shape[:-1] if shape is None else shape
    return Sample(*_core.random_from("dirichlet", key, [alpha], shape, dtype, names, True))


def dirichlet_split(
    key: TensorLike,
    alpha: TensorLike,
    /,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    names: Names | None = None,
) -> Tensor:
    """Draw like `dirichlet`, without returning the next key.

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
    """Draw categories with probabilities proportional to ``exp(logits)``.

    Parameters
    ----------
    key : tensor_like
        A key.
    logits : tensor_like
        A real number for each category; a category with minus infinity is never drawn.
    axis : int or str
        The axis of the categories.
    shape : int or sequence of int, optional
        The shape of the result, which ends with the other axes of `logits`; by default only these.
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
        If `key` is not a key, the axis does not exist, or the shape does not end so.
    ArgumentError
        If the number of categories is 0.
    DTypeError
        If the dtype is not an integer dtype, or the logits are complex.

    Examples
    --------
    >>> import nxla as nx
    >>> x, key = nx.random.categorical(nx.random.key(0), [0.0, float("-inf"), 0.0], shape=100)
    >>> nx.bincount(x).tolist()[1]
    0
    """
    shape = _batch(logits, axis) if shape is None else shape
    return Sample(*_core.random_categorical(key, logits, axis, shape, dtype, names, True))


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
    """Draw like `categorical`, without returning the next key.

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
    at = x.names.index(axis) if axis in x.names else to_index(axis)
    if at is None or not -x.ndim <= at < x.ndim:
        return ()  # Type inference reports the invalid axis.
    at %= x.ndim
    return x.shape[:at] + x.shape[at + 1 :]


def permutation(
    key: TensorLike, x: TensorLike, /, *, axis: Axis = 0, independent: bool = False
) -> Sample:
    """Return a random permutation of a tensor's entries, or of the integers below an int.

    Parameters
    ----------
    key : tensor_like
        A key.
    x : int or tensor_like
        The number of integers, or a tensor to shuffle.
    axis : int or str
        The axis.
    independent : bool
        If True, a separate order is drawn for each index of the other axes.

    Returns
    -------
    Sample
        The permuted entries, and the next key.

    Raises
    ------
    ShapeError
        If `key` is not a key, or the axis does not exist.
    ArgumentError
        If the int is negative.

    Examples
    --------
    >>> import nxla as nx
    >>> x, key = nx.random.permutation(nx.random.key(0), 10)
    >>> x.tolist()
    [2, 7, 9, 6, 0, 8, 1, 3, 4, 5]
    """
    if to_index(x) is not None:
        x = _core.iota((as_count("permutation", "x", x),), None, "s32")
    return Sample(*_core.random_shuffle("permutation", key, x, axis, independent))


_hints.install(globals())
