"""Random numbers from keys.

A key is a tensor of two ``uint32``. The samples depend only on the key, so use each key once:
functions return the samples and the next key.

>>> import nxla as nx
>>> key = nx.random.key(42)
>>> x, key = nx.random.normal(key, shape=(2, 3))
>>> y, key = nx.random.normal(key, shape=(2, 3))
>>> nx.all_close(x, y).item()
False

Functions whose name ends with ``_split`` return only the samples; pass them a key from `split`.
Keys, bits and integers equal the results of Nx bit by bit, and floats of 32 and 64 bits equal them
up to rounding. Narrower floats are drawn in 32 bits and rounded. Samples have no gradient in the
parameters of their distribution.
"""

from __future__ import annotations

from nxla import _core, _hints
from nxla._sample import Sample, is_shape, is_traced_shape, refuse_shape
from nxla._values import as_count, as_tensors, to_index
from nxla.errors import ArgumentError, DTypeError
from nxla.ops.counts import (
    binomial,
    binomial_split,
    multinomial,
    multinomial_split,
    student_t,
    student_t_split,
)
from nxla.ops.random import (
    bernoulli,
    bernoulli_split,
    beta,
    beta_split,
    categorical,
    categorical_split,
    dirichlet,
    dirichlet_split,
    exponential,
    exponential_split,
    gamma,
    gamma_split,
    laplace,
    laplace_split,
    permutation,
    poisson,
    poisson_split,
    truncated_normal,
    truncated_normal_split,
)
from nxla.placement import made_on

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

    from nxla._core import Tensor
    from nxla._types import Axis, DeviceLike, DTypeLike, Names, Shape, TensorLike

    Method = Literal["cholesky", "eigh", "svd"]

__all__ = [
    "Sample",
    "bernoulli",
    "bernoulli_split",
    "beta",
    "beta_split",
    "binomial",
    "binomial_split",
    "categorical",
    "categorical_split",
    "choice",
    "dirichlet",
    "dirichlet_split",
    "exponential",
    "exponential_split",
    "fold_in",
    "gamma",
    "gamma_split",
    "gumbel",
    "gumbel_split",
    "key",
    "laplace",
    "laplace_split",
    "multinomial",
    "multinomial_split",
    "multivariate_normal",
    "multivariate_normal_split",
    "normal",
    "normal_split",
    "permutation",
    "poisson",
    "poisson_split",
    "randint",
    "randint_split",
    "shuffle",
    "split",
    "student_t",
    "student_t_split",
    "truncated_normal",
    "truncated_normal_split",
    "uniform",
    "uniform_split",
]


def key(seed: TensorLike, /, *, device: DeviceLike | None = None) -> Tensor:
    """Return the key of a seed.

    Parameters
    ----------
    seed : int or tensor_like
        An integer; the lower 64 bits are used.
    device : Device or str, optional
        The device of the key. Samples are on the device of their key.

    Returns
    -------
    Tensor
        ``uint32`` of shape (2,).

    Raises
    ------
    DTypeError
        If the seed is not an integer.
    ShapeError
        If the seed is not a scalar.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.random.key(12).tolist()
    [0, 12]
    """
    number = to_index(seed)
    if number is not None and not -(2**63) <= number < 2**64:
        seed = number % 2**64
    return made_on("key", device, _core.random_key, seed)


def split(key: TensorLike, /, parts: int = 2) -> Tensor:
    """Return independent keys.

    Parameters
    ----------
    key : tensor_like
        A key.
    parts : int
        The number of keys.

    Returns
    -------
    Tensor
        ``uint32`` of shape (parts, 2).

    Raises
    ------
    ShapeError
        If `key` is not a key.
    ArgumentError
        If `parts` is not positive.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.random.split(nx.random.key(1701)).tolist()
    [[56197195, 1801093307], [961309823, 1704866707]]
    """
    return _core.random_split(key, as_count("split", "parts", parts, 1))


def fold_in(key: TensorLike, data: TensorLike, /) -> Tensor:
    """Return a key for each integer; equal integers produce equal keys.

    Parameters
    ----------
    key : tensor_like
        A key.
    data : tensor_like
        Integers; the lower 64 bits of each are used.

    Returns
    -------
    Tensor
        ``uint32``, of the shape of `data` with a last axis of size 2.

    Raises
    ------
    ShapeError
        If `key` is not a key.
    DTypeError
        If `data` does not contain integers.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.random.fold_in(nx.random.key(42), 99).tolist()
    [2015327502, 1351855566]
    """
    return _core.random_fold_in(key, data)


def uniform(
    key: TensorLike,
    low: TensorLike | None = None,
    high: TensorLike | DTypeLike | None = None,
    minval: TensorLike | None = None,
    maxval: TensorLike | None = None,
    *,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    names: Names | None = None,
) -> Sample:
    """Draw floats from the uniform distribution on ``[low, high)``.

    JAX's order of arguments works too: ``uniform(key, shape, dtype, minval, maxval)``. A tuple of
    integers in the place of `low` is a shape if `shape` is not given.

    Parameters
    ----------
    key : tensor_like
        A key: ``uint32`` of shape (2,).
    low, high : tensor_like, optional
        The bounds, which broadcast to `shape`; by default 0 and 1.
    minval, maxval : tensor_like, optional
        The bounds by the names that they have in JAX.
    shape : int or sequence of int, optional
        The shape of the result; by default ().
    dtype : dtype_like, optional
        A float dtype; by default the dtype of the bounds. A complex dtype draws the real and the
        imaginary part, each between the same parts of complex bounds.
    names : sequence of str or None, optional
        Names of the axes.

    Returns
    -------
    Sample
        The floats, and the next key.

    Raises
    ------
    ShapeError
        If `key` is not a key, or a bound does not broadcast to `shape`.
    DTypeError
        If the dtype is not a float or complex dtype, or is a float dtype of complex bounds.
    ArgumentError
        If the bounds are numbers, and `high` is below `low`, or an argument is passed twice.

    Notes
    -----
    The samples have no gradient with respect to the bounds.

    Examples
    --------
    >>> import nxla as nx
    >>> x, key = nx.random.uniform(nx.random.key(1701))
    >>> x.item()
    0.9728643894195557
    """
    arguments = _uniform_arguments("uniform", low, high, minval, maxval, shape, dtype)
    return Sample(*_core.random_uniform(key, *arguments, names, True))


def uniform_split(
    key: TensorLike,
    low: TensorLike | None = None,
    high: TensorLike | DTypeLike | None = None,
    minval: TensorLike | None = None,
    maxval: TensorLike | None = None,
    *,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    names: Names | None = None,
) -> Tensor:
    """Draw like `uniform`, without returning the next key.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.random.uniform_split(nx.random.key(12)).item()
    0.3037703037261963
    """
    arguments = _uniform_arguments("uniform_split", low, high, minval, maxval, shape, dtype)
    return _core.random_uniform(key, *arguments, names, False)[0]


def _merge(op: str, argument: str, value: Any, other: Any, default: Any = None) -> Any:
    """Return an argument that a call may contain in one of two places."""
    if value is not None and other is not None:
        shape = f"; a shape is passed as shape={other}" if is_shape(other) else ""
        raise ArgumentError(
            f"{op}: {argument}: must be passed once; got {value!r} and {other!r}{shape}"
        )
    value = other if value is None else value
    return default if value is None else value


def _refuse_two_shapes(op: str, first: Any, second: Any, shape: Any) -> None:
    """Raise `ArgumentError` for a shape in the order of JAX and the argument `shape`."""
    if shape is not None and second is None and is_shape(first):
        raise ArgumentError(
            f"{op}: shape: must be passed once; got {first} and {shape}; write parameters as a "
            "list or a tensor"
        )


def _uniform_arguments(
    op: str, low: Any, high: Any, minval: Any, maxval: Any, shape: Any, dtype: Any
) -> tuple[Any, Any, Any, Any]:
    """Return the bounds, the shape and the dtype of either order of arguments."""
    _refuse_two_shapes(op, low, high, shape)
    if shape is None and is_traced_shape(low):
        shape, dtype = low, _merge(op, "dtype", high, dtype)
        low, high = None, None
    low = _merge(op, "low (minval)", low, minval, 0.0)
    high = _merge(op, "high (maxval)", high, maxval, 1.0)
    return low, high, () if shape is None else shape, dtype


def normal(
    key: TensorLike,
    mean: TensorLike = 0.0,
    standard_deviation: TensorLike | DTypeLike | None = None,
    /,
    *,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    names: Names | None = None,
) -> Sample:
    """Draw floats from the normal distribution.

    JAX's order of arguments works too: ``normal(key, shape, dtype)``. A tuple of integers in the
    place of `mean` is a shape if `shape` is not given.

    Parameters
    ----------
    key : tensor_like
        A key: ``uint32`` of shape (2,).
    mean, standard_deviation : tensor_like, optional
        The parameters of the distribution, which broadcast to `shape`; by default 0 and 1.
    shape, dtype, names
        As for `uniform`.

    Returns
    -------
    Sample
        The floats, and the next key.

    Raises
    ------
    ShapeError
        If `key` is not a key, or a parameter does not broadcast to `shape`.
    DTypeError
        If the dtype is not a float or complex dtype.
    ArgumentError
        If the shape or the dtype is passed twice.

    Notes
    -----
    The samples have no gradient with respect to the mean and the standard deviation.

    Examples
    --------
    >>> import nxla as nx
    >>> x, key = nx.random.normal(nx.random.key(42))
    >>> round(x.item(), 5)
    1.36947
    >>> nx.random.normal(key, (64, 32)).value.shape
    (64, 32)
    """
    arguments = _normal_arguments("normal", mean, standard_deviation, shape, dtype)
    return Sample(*_core.random_normal(key, *arguments, names, True))


def normal_split(
    key: TensorLike,
    mean: TensorLike = 0.0,
    standard_deviation: TensorLike | DTypeLike | None = None,
    /,
    *,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    names: Names | None = None,
) -> Tensor:
    """Draw like `normal`, without returning the next key.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.random.normal_split(nx.random.key(0), (2, 3)).shape
    (2, 3)
    """
    arguments = _normal_arguments("normal_split", mean, standard_deviation, shape, dtype)
    return _core.random_normal(key, *arguments, names, False)[0]


def _normal_arguments(
    op: str, mean: Any, standard_deviation: Any, shape: Any, dtype: Any
) -> tuple[Any, Any, Any, Any]:
    """Return the parameters, the shape and the dtype of either order of arguments."""
    _refuse_two_shapes(op, mean, standard_deviation, shape)
    if shape is None and is_traced_shape(mean):
        return 0.0, 1.0, mean, _merge(op, "dtype", standard_deviation, dtype)
    standard_deviation = 1.0 if standard_deviation is None else standard_deviation
    return mean, standard_deviation, () if shape is None else shape, dtype


def randint(
    key: TensorLike,
    low: TensorLike | None = None,
    high: TensorLike | None = None,
    maxval: TensorLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    minval: TensorLike | None = None,
    shape: Shape | None = None,
    names: Names | None = None,
) -> Sample:
    """Draw integers from the uniform distribution on ``[low, high)``.

    JAX's order of arguments works too: ``randint(key, shape, minval, maxval, dtype)``. A tuple of
    integers in the place of `low` is a shape if `shape` is not given.

    Parameters
    ----------
    key : tensor_like
        A key: ``uint32`` of shape (2,).
    low, high : tensor_like
        The bounds, which broadcast to `shape`. Where tensors have no integers between them, the
        result is `low`.
    minval, maxval : tensor_like
        The bounds by the names that they have in JAX.
    shape, names
        As for `uniform`.
    dtype : dtype_like, optional
        An integer dtype; by default the dtype of the bounds.

    Returns
    -------
    Sample
        The integers, and the next key.

    Raises
    ------
    ArgumentError
        If a bound is missing, an argument is passed twice, or the bounds are numbers without
        integers between them.
    ShapeError
        If `key` is not a key, or a bound does not broadcast to `shape`.
    DTypeError
        If the dtype is not an integer dtype of at least 8 bits, or a bound is not an integer and
        `dtype` is omitted.

    Examples
    --------
    >>> import nxla as nx
    >>> x, key = nx.random.randint(nx.random.key(1701), 1, 100, shape=(3, 2), dtype=nx.uint32)
    >>> x.tolist()
    [[9, 20], [19, 6], [71, 15]]
    """
    arguments = _randint_arguments("randint", low, high, minval, maxval, shape, dtype)
    return Sample(*_core.random_integers(key, *arguments, dtype, names, True))


def randint_split(
    key: TensorLike,
    low: TensorLike | None = None,
    high: TensorLike | None = None,
    maxval: TensorLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    minval: TensorLike | None = None,
    shape: Shape | None = None,
    names: Names | None = None,
) -> Tensor:
    """Draw like `randint`, without returning the next key.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.random.randint_split(nx.random.key(1), 0, 10, shape=5).tolist()
    [1, 3, 5, 0, 4]
    """
    arguments = _randint_arguments("randint_split", low, high, minval, maxval, shape, dtype)
    return _core.random_integers(key, *arguments, dtype, names, False)[0]


def _randint_arguments(
    op: str, low: Any, high: Any, minval: Any, maxval: Any, shape: Any, dtype: Any
) -> tuple[Any, Any, Any]:
    """Return the bounds and the shape of either order of arguments."""
    _refuse_two_shapes(op, low, high, shape)
    if shape is None and is_traced_shape(low):
        shape, low, high = low, high, None
    low = _merge(op, "low (minval)", low, minval)
    high = _merge(op, "high (maxval)", high, maxval)
    if low is None or high is None:
        missing = "low (minval)" if low is None else "high (maxval)"
        raise ArgumentError(f"{op}: {missing}: a bound is required; got None")
    for name, bound in (("low (minval)", low), ("high (maxval)", high)):
        found = as_tensors(op, bound)[0].dtype
        if dtype is None and found.kind not in ("signed", "unsigned"):
            raise DTypeError(f"{op}: {name}: must be an integer if dtype is omitted; got {found}")
    return low, high, () if shape is None else shape


def gumbel(
    key: TensorLike,
    /,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    *,
    names: Names | None = None,
) -> Sample:
    """Draw floats with the standard Gumbel distribution.

    Parameters
    ----------
    key : tensor_like
        A key.
    shape, names
        As for `uniform`.
    dtype : dtype_like, optional
        A float dtype; ``float32`` by default.

    Returns
    -------
    Sample
        The samples, and the next key.

    Raises
    ------
    ShapeError
        If `key` is not a key.
    DTypeError
        If the dtype is not a float dtype.

    Examples
    --------
    >>> import nxla as nx
    >>> x, key = nx.random.gumbel(nx.random.key(1))
    >>> round(x.item(), 5)
    -0.72946
    """
    return Sample(*_core.random_gumbel(key, shape, dtype, names, True))


def gumbel_split(
    key: TensorLike,
    /,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    *,
    names: Names | None = None,
) -> Tensor:
    """Draw like `gumbel`, without returning the next key.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.random.gumbel_split(nx.random.key(0), shape=3).shape
    (3,)
    """
    return _core.random_gumbel(key, shape, dtype, names, False)[0]


def multivariate_normal(
    key: TensorLike,
    mean: TensorLike,
    covariance: TensorLike,
    /,
    *,
    method: Method = "cholesky",
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    names: Names | None = None,
) -> Sample:
    """Draw vectors with a multivariate normal distribution.

    Parameters
    ----------
    key : tensor_like
        A key.
    mean : tensor_like
        A vector.
    covariance : tensor_like
        A symmetric matrix without negative eigenvalues.
    method : {"cholesky", "eigh", "svd"}
        The factorization of the covariance. ``"cholesky"`` is the fastest and needs positive
        eigenvalues.
    shape : int or sequence of int
        The shape of the result without its last axis.
    dtype : dtype_like, optional
        A float dtype; by default the dtype of mean and covariance.
    names : sequence of str or None, optional
        Names of the axes of the result.

    Returns
    -------
    Sample
        The vectors, and the next key.

    Raises
    ------
    ShapeError
        If `key` is not a key, or the shapes of mean and covariance do not match.
    DTypeError
        If the dtype is not a float dtype.
    ArgumentError
        If the method does not exist.

    Notes
    -----
    The samples have no gradient with respect to the mean and the covariance.

    Examples
    --------
    >>> import nxla as nx
    >>> mean, covariance = [0.0, 1.0], [[2.0, 0.5], [0.5, 1.0]]
    >>> x, key = nx.random.multivariate_normal(nx.random.key(0), mean, covariance, shape=10)
    >>> x.shape
    (10, 2)
    """
    arguments = (key, mean, covariance, method, shape, dtype, names)
    return Sample(*_core.random_multivariate_normal(*arguments, True))


def multivariate_normal_split(
    key: TensorLike,
    mean: TensorLike,
    covariance: TensorLike,
    /,
    *,
    method: Method = "cholesky",
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    names: Names | None = None,
) -> Tensor:
    """Draw like `multivariate_normal`, without returning the next key.

    Examples
    --------
    >>> import nxla as nx
    >>> key = nx.random.key(0)
    >>> nx.random.multivariate_normal_split(key, [0.0], [[1.0]], method="eigh").shape
    (1,)
    """
    arguments = (key, mean, covariance, method, shape, dtype, names)
    return _core.random_multivariate_normal(*arguments, False)[0]


def shuffle(
    key: TensorLike, x: TensorLike, /, *, axis: Axis = 0, independent: bool = False
) -> Sample:
    """Shuffle the entries along an axis.

    Parameters
    ----------
    key : tensor_like
        A key.
    x : tensor_like
        A tensor with at least one axis.
    axis : int or str
        The axis.
    independent : bool
        If True, a separate order is drawn for each index of the other axes.

    Returns
    -------
    Sample
        The shuffled tensor, and the next key.

    Raises
    ------
    ShapeError
        If `key` is not a key, or the axis does not exist.

    Examples
    --------
    >>> import nxla as nx
    >>> x, key = nx.random.shuffle(nx.random.key(0), nx.arange(10))
    >>> x.tolist()
    [2, 7, 9, 6, 0, 8, 1, 3, 4, 5]
    """
    return Sample(*_core.random_shuffle("shuffle", key, x, axis, independent))


def choice(
    key: TensorLike,
    x: TensorLike,
    p: TensorLike | None = None,
    /,
    *,
    samples: int = 1,
    axis: Axis | None = None,
    replace: bool = True,
) -> Sample:
    """Take random samples of a tensor.

    Parameters
    ----------
    key : tensor_like
        A key.
    x : tensor_like
        A tensor with at least one axis.
    p : tensor_like, optional
        The probability of each entry; equal by default.
    samples : int
        The number of samples.
    axis : int or str, optional
        The axis of the samples; by default the tensor is flattened.
    replace : bool
        If True, an entry can be taken several times. Otherwise, entries with the probability 0
        follow when no other entries are left.

    Returns
    -------
    Sample
        The samples, and the next key.

    Raises
    ------
    ShapeError
        If `key` is not a key, or `p` does not have one number for each entry.
    ArgumentError
        If the tensor has no entries, or fewer than `samples` and `replace` is False, or if
        `samples` is negative, or if `p` is a tuple of integers: in JAX, it would be a shape.

    Examples
    --------
    >>> import nxla as nx
    >>> x, key = nx.random.choice(nx.random.key(0), nx.arange(5), samples=3, replace=False)
    >>> x.tolist()
    [1, 0, 4]
    """
    refuse_shape("choice", "p", p, "write samples=, or pass the probabilities")
    count = as_count("choice", "samples", samples)
    return Sample(*_core.random_choice(key, x, p, count, axis, replace))


_hints.install(globals())
_hints.install_missing_names(globals())
