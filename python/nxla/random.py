"""Random numbers from keys.

A key is a tensor of two ``uint32``. What is drawn depends on the key alone, so each key is used
once: functions return what they drew and the key to go on with.

>>> import nxla as nx
>>> key = nx.random.key(42)
>>> x, key = nx.random.normal(key, shape=(2, 3))
>>> y, key = nx.random.normal(key, shape=(2, 3))
>>> nx.all_close(x, y).item()
False

Functions whose name ends with ``_split`` take a key that `split` made and return what they drew
alone. Keys, bits and integers are bit for bit those of Nx; floats of 32 and 64 bits are the same up
to rounding. Narrower floats are drawn in 32 bits and rounded. No gradient flows through a draw.
"""

from __future__ import annotations

from nxla import _core
from nxla.devices import made_on
from nxla.errors import ArgumentError
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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from nxla._core import Tensor
    from nxla._types import Axis, DeviceLike, DTypeLike, Names, Shape, TensorLike

    Method = Literal["cholesky", "eigh", "svd"]

__all__ = [
    "bernoulli",
    "bernoulli_split",
    "beta",
    "beta_split",
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
    "truncated_normal",
    "truncated_normal_split",
    "uniform",
    "uniform_split",
]


def _count(op: str, argument: str, count: int) -> int:
    """Refuse a negative number of things."""
    if count < 0:
        raise ArgumentError(f"{op}: {argument} must not be negative, got {count}")
    return count


def key(seed: TensorLike, /, *, device: DeviceLike | None = None) -> Tensor:
    """Return the key of a seed.

    Parameters
    ----------
    seed : int or tensor_like
        An integer, of which 64 bits count.
    device : Device or str, optional
        Where to make it. Numbers drawn with the key are made where it lives.

    Returns
    -------
    Tensor
        ``uint32`` of shape (2,).

    Raises
    ------
    DTypeError
        If the seed is no integer.
    ShapeError
        If it is no scalar.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.random.key(12).tolist()
    [0, 12]
    """
    return made_on(device, _core.random_key, seed)


def split(key: TensorLike, /, *, parts: int = 2) -> Tensor:
    """Return keys that have nothing to do with each other, nor with the given one.

    Parameters
    ----------
    key : tensor_like
        A key.
    parts : int
        How many.

    Returns
    -------
    Tensor
        ``uint32`` of shape (parts, 2).

    Raises
    ------
    ShapeError
        If `key` is no key.
    ArgumentError
        If `parts` is negative.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.random.split(nx.random.key(1701)).tolist()
    [[56197195, 1801093307], [961309823, 1704866707]]
    """
    return _core.random_split(key, _count("split", "parts", parts))


def fold_in(key: TensorLike, data: TensorLike, /) -> Tensor:
    """Return a key for each of some integers; equal integers give equal keys.

    Parameters
    ----------
    key : tensor_like
        A key.
    data : tensor_like
        Integers, of which 64 bits count.

    Returns
    -------
    Tensor
        ``uint32``, of the shape of `data` with a last axis of size 2.

    Raises
    ------
    ShapeError
        If `key` is no key.
    DTypeError
        If `data` are no integers.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.random.fold_in(nx.random.key(42), 99).tolist()
    [2015327502, 1351855566]
    """
    return _core.random_fold_in(key, data)


def uniform(
    key: TensorLike,
    low: TensorLike = 0.0,
    high: TensorLike = 1.0,
    /,
    *,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    names: Names | None = None,
) -> tuple[Tensor, Tensor]:
    """Draw floats that are equally likely everywhere in ``[low, high)``.

    Parameters
    ----------
    key : tensor_like
        A key.
    low, high : tensor_like
        Bounds, which broadcast to `shape`.
    shape : int or sequence of int
        How many numbers to draw.
    dtype : dtype_like, optional
        A float dtype, or a complex one for numbers whose two parts are drawn so; by default that of
        the bounds.
    names : sequence of str or None, optional
        Names of the axes.

    Returns
    -------
    tuple[Tensor, Tensor]
        The numbers, and the next key.

    Raises
    ------
    ShapeError
        If `key` is no key.
    DTypeError
        If the dtype is no float.

    Examples
    --------
    >>> import nxla as nx
    >>> x, key = nx.random.uniform(nx.random.key(1701))
    >>> x.item()
    0.9728643894195557
    """
    drawn, following = _core.random_uniform(key, low, high, shape, dtype, names, True)
    return drawn, following


def uniform_split(
    key: TensorLike,
    low: TensorLike = 0.0,
    high: TensorLike = 1.0,
    /,
    *,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    names: Names | None = None,
) -> Tensor:
    """Draw as `uniform` does, with a key that has been split; return the numbers alone.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.random.uniform_split(nx.random.key(12)).item()
    0.3037703037261963
    """
    return _core.random_uniform(key, low, high, shape, dtype, names, False)[0]


def normal(
    key: TensorLike,
    mean: TensorLike = 0.0,
    standard_deviation: TensorLike = 1.0,
    /,
    *,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    names: Names | None = None,
) -> tuple[Tensor, Tensor]:
    """Draw floats with the normal distribution.

    Parameters
    ----------
    key : tensor_like
        A key.
    mean, standard_deviation : tensor_like
        Of the distribution; they broadcast to `shape`.
    shape, dtype, names
        As for `uniform`.

    Returns
    -------
    tuple[Tensor, Tensor]
        The numbers, and the next key.

    Raises
    ------
    ShapeError
        If `key` is no key.
    DTypeError
        If the dtype is no float.

    Examples
    --------
    >>> import nxla as nx
    >>> x, key = nx.random.normal(nx.random.key(42))
    >>> round(x.item(), 5)
    1.36947
    """
    arguments = (key, mean, standard_deviation, shape, dtype, names)
    drawn, following = _core.random_normal(*arguments, True)
    return drawn, following


def normal_split(
    key: TensorLike,
    mean: TensorLike = 0.0,
    standard_deviation: TensorLike = 1.0,
    /,
    *,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    names: Names | None = None,
) -> Tensor:
    """Draw as `normal` does, with a key that has been split; return the numbers alone.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.random.normal_split(nx.random.key(0), shape=(2, 3)).shape
    (2, 3)
    """
    return _core.random_normal(key, mean, standard_deviation, shape, dtype, names, False)[0]


def randint(
    key: TensorLike,
    low: TensorLike,
    high: TensorLike,
    /,
    *,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    names: Names | None = None,
) -> tuple[Tensor, Tensor]:
    """Draw integers that are equally likely everywhere in ``[low, high)``.

    Parameters
    ----------
    key : tensor_like
        A key.
    low, high : tensor_like
        Bounds, which broadcast to `shape`.
    shape, names
        As for `uniform`.
    dtype : dtype_like, optional
        An integer dtype; by default that of the bounds.

    Returns
    -------
    tuple[Tensor, Tensor]
        The integers, and the next key.

    Raises
    ------
    ShapeError
        If `key` is no key.
    DTypeError
        If the dtype is no integer of at least 8 bits.

    Examples
    --------
    >>> import nxla as nx
    >>> x, key = nx.random.randint(nx.random.key(1701), 1, 100, shape=(3, 2), dtype=nx.uint32)
    >>> x.tolist()
    [[9, 20], [19, 6], [71, 15]]
    """
    drawn, following = _core.random_integers(key, low, high, shape, dtype, names, True)
    return drawn, following


def randint_split(
    key: TensorLike,
    low: TensorLike,
    high: TensorLike,
    /,
    *,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    names: Names | None = None,
) -> Tensor:
    """Draw as `randint` does, with a key that has been split; return the integers alone.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.random.randint_split(nx.random.key(1), 0, 10, shape=5).tolist()
    [1, 3, 5, 0, 4]
    """
    return _core.random_integers(key, low, high, shape, dtype, names, False)[0]


def gumbel(
    key: TensorLike,
    /,
    *,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    names: Names | None = None,
) -> tuple[Tensor, Tensor]:
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
    tuple[Tensor, Tensor]
        The numbers, and the next key.

    Raises
    ------
    ShapeError
        If `key` is no key.
    DTypeError
        If the dtype is no float.

    Examples
    --------
    >>> import nxla as nx
    >>> x, key = nx.random.gumbel(nx.random.key(1))
    >>> round(x.item(), 5)
    -0.72946
    """
    drawn, following = _core.random_gumbel(key, shape, dtype, names, True)
    return drawn, following


def gumbel_split(
    key: TensorLike,
    /,
    *,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    names: Names | None = None,
) -> Tensor:
    """Draw as `gumbel` does, with a key that has been split; return the numbers alone.

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
) -> tuple[Tensor, Tensor]:
    """Draw vectors with a normal distribution.

    Parameters
    ----------
    key : tensor_like
        A key.
    mean : tensor_like
        A vector.
    covariance : tensor_like
        A symmetric matrix without negative eigenvalues.
    method : {"cholesky", "eigh", "svd"}
        How to take its root. The first, which is the fastest, needs positive eigenvalues.
    shape : int or sequence of int
        How many vectors to draw; the result has one more axis.
    dtype : dtype_like, optional
        A float dtype; by default that of mean and covariance.
    names : sequence of str or None, optional
        Names of the axes of the result.

    Returns
    -------
    tuple[Tensor, Tensor]
        The vectors, and the next key.

    Raises
    ------
    ShapeError
        If `key` is no key, or mean and covariance do not fit together.
    DTypeError
        If the dtype is no float.
    ArgumentError
        If there is no such method.

    Examples
    --------
    >>> import nxla as nx
    >>> mean, covariance = [0.0, 1.0], [[2.0, 0.5], [0.5, 1.0]]
    >>> x, key = nx.random.multivariate_normal(nx.random.key(0), mean, covariance, shape=10)
    >>> x.shape
    (10, 2)
    """
    arguments = (key, mean, covariance, method, shape, dtype, names)
    drawn, following = _core.random_multivariate_normal(*arguments, True)
    return drawn, following


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
    """Draw as `multivariate_normal` does, with a key that has been split.

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
) -> tuple[Tensor, Tensor]:
    """Put the entries along an axis in a random order.

    Parameters
    ----------
    key : tensor_like
        A key.
    x : tensor_like
        A tensor with at least one axis.
    axis : int or str
        The axis.
    independent : bool
        Whether there is an order of its own for each index of the other axes.

    Returns
    -------
    tuple[Tensor, Tensor]
        The tensor in its new order, and the next key.

    Raises
    ------
    ShapeError
        If `key` is no key, or there is no such axis.

    Examples
    --------
    >>> import nxla as nx
    >>> x, key = nx.random.shuffle(nx.random.key(0), nx.arange(10))
    >>> x.tolist()
    [2, 7, 9, 6, 0, 8, 1, 3, 4, 5]
    """
    shuffled, following = _core.random_shuffle(key, x, axis, independent)
    return shuffled, following


def choice(
    key: TensorLike,
    x: TensorLike,
    p: TensorLike | None = None,
    /,
    *,
    samples: int = 1,
    axis: Axis | None = None,
    replace: bool = True,
) -> tuple[Tensor, Tensor]:
    """Take random samples of a tensor.

    Parameters
    ----------
    key : tensor_like
        A key.
    x : tensor_like
        A tensor with at least one axis.
    p : tensor_like, optional
        How likely each entry is; all are equally likely by default.
    samples : int
        How many to take.
    axis : int or str, optional
        The axis along which they are taken; by default elements of the flattened tensor are.
    replace : bool
        Whether an entry can be taken several times.

    Returns
    -------
    tuple[Tensor, Tensor]
        The samples, and the next key.

    Raises
    ------
    ShapeError
        If `key` is no key, or `p` has not one number for each entry.
    ArgumentError
        If there are fewer entries than samples, and none can be taken several times; if `samples`
        is negative.

    Examples
    --------
    >>> import nxla as nx
    >>> x, key = nx.random.choice(nx.random.key(0), nx.arange(5), samples=3, replace=False)
    >>> x.tolist()
    [1, 0, 4]
    """
    count = _count("choice", "samples", samples)
    samples_taken, following = _core.random_choice(key, x, p, count, axis, replace)
    return samples_taken, following


if not TYPE_CHECKING:  # A module that answers for every name has no mistakes to a type checker.

    def __getattr__(name: str) -> object:
        """Say what a function of another library is called here."""
        from nxla._elsewhere import missing

        raise missing(name, __name__)
