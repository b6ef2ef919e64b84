"""Looking for elements: where they are, how many kinds of them there are, and in which order.

How many elements a mask has, or a set, is known when there is data. Functions whose results have
shapes that depend on it work outside of traced functions only; inside they say what to use instead.
"""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

from nxla import _core
from nxla._values import as_tensor, as_tensors
from nxla.errors import ArgumentError, DTypeError, ShapeError, TraceError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from nxla._core import Tensor
    from nxla._types import TensorLike


class UniqueAllResult(NamedTuple):
    """What `unique_all` returns."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCountsResult(NamedTuple):
    """What `unique_counts` returns."""

    values: Tensor
    counts: Tensor


class UniqueInverseResult(NamedTuple):
    """What `unique_inverse` returns."""

    values: Tensor
    inverse_indices: Tensor


def _data(function: str, x: TensorLike, instead: str) -> Tensor:
    """Return an operand that has data, without vectorized axes."""
    if isinstance(x, _core.Expr):
        raise TraceError(
            f"{function}: the shape of the result depends on numbers that are known only when the "
            f"function runs; {instead}"
        )
    x = as_tensor(x)
    if x.vectorized_axes:
        raise ArgumentError(f"{function}: x has vectorized axes; devectorize it first")
    return x


def nonzero(x: TensorLike, /) -> tuple[Tensor, ...]:
    """Return where elements are not zero.

    Parameters
    ----------
    x : tensor_like
        Numbers or truth values, with at least one axis.

    Returns
    -------
    tuple of Tensor
        For each axis the ``int32`` indices along it, in row-major order of the elements.

    Raises
    ------
    ShapeError
        If `x` is a scalar.
    TraceError
        If `x` is traced: the number of indices would not be known.

    Examples
    --------
    >>> import nxla as nx
    >>> [axis.tolist() for axis in nx.nonzero([[0, 5], [7, 0]])]
    [[0, 1], [1, 0]]
    """
    x = _data("nonzero", x, "use nx.where(x, …, …), or nx.top_k(x != 0, k) for a fixed number")
    if x.ndim == 0:
        raise ShapeError("nonzero: a scalar has no axes")
    is_truth = x.dtype == _core.pred
    return tuple(_core.true_indices(x if is_truth else _core.not_equal(x, 0)))


def _sorted_places(x: Tensor) -> Tensor:
    """Return the order that brings equal elements of a vector together, the first of them first."""
    if x.dtype.kind != "complex":
        return _core.argsort(x)
    by_imaginary = _core.argsort(_core.imag(x))
    by_real = _core.argsort(_core.take(_core.real(x), by_imaginary))
    return _core.take(by_imaginary, by_real)


class _Runs(NamedTuple):
    """Runs of equal elements."""

    values: Tensor
    #: Where the first of each run is among all elements.
    firsts: Tensor
    #: The run of each element.
    inverse: Tensor
    counts: Tensor


def _runs(function: str, x: TensorLike) -> _Runs:
    x = _data(
        function,
        x,
        "use nx.sort(x) and compare neighbours, which keeps the shape",
    )
    flat = _core.flatten(_core.rename(x, [None] * x.ndim))
    if flat.size == 0:
        nothing = _core.full((0,), 0, _core.s32)
        return _Runs(flat, nothing, _core.reshape(nothing, x.shape), nothing)
    order = _sorted_places(flat)
    ordered = _core.take(flat, order)
    # NaN differs from everything, from NaN too; so does each of them from the next.
    rest = _core.not_equal(
        _core.slice_along_axis(ordered, 1, flat.size - 1),
        _core.slice_along_axis(ordered, 0, flat.size - 1),
    )
    begins = _core.concat([_core.full((1,), True, _core.pred), rest])
    (starts,) = _core.true_indices(begins)
    run = _core.subtract(_core.cumulative_sum(_core.astype(begins, _core.s32)), 1)
    inverse = _core.take(run, _core.argsort(order))
    ends = _core.concat([_core.slice_along_axis(starts, 1, starts.size - 1), [flat.size]])
    return _Runs(
        _core.take(ordered, starts),
        _core.take(order, starts),
        _core.reshape(inverse, x.shape),
        _core.subtract(ends, starts),
    )


def unique_values(x: TensorLike, /) -> Tensor:
    """Return every element once, in increasing order.

    Parameters
    ----------
    x : tensor_like
        Numbers or truth values. Each NaN counts as an element of its own; the zeros are one.

    Returns
    -------
    Tensor
        A vector of the dtype of `x`; complex numbers are in the order of their real parts.

    Raises
    ------
    TraceError
        If `x` is traced: the number of values would not be known.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.unique_values([3, 1, 3]).tolist()
    [1, 3]
    """
    return _runs("unique_values", x).values


def unique_counts(x: TensorLike, /) -> UniqueCountsResult:
    """Return every element once, and how often it is there. See `unique_values`.

    Examples
    --------
    >>> import nxla as nx
    >>> [part.tolist() for part in nx.unique_counts([3, 1, 3])]
    [[1, 3], [1, 2]]
    """
    runs = _runs("unique_counts", x)
    return UniqueCountsResult(runs.values, runs.counts)


def unique_inverse(x: TensorLike, /) -> UniqueInverseResult:
    """Return every element once, and for each element which one it is. See `unique_values`.

    Examples
    --------
    >>> import nxla as nx
    >>> [part.tolist() for part in nx.unique_inverse([[3, 1], [3, 2]])]
    [[1, 2, 3], [[2, 0], [2, 1]]]
    """
    runs = _runs("unique_inverse", x)
    return UniqueInverseResult(runs.values, runs.inverse)


def unique_all(x: TensorLike, /) -> UniqueAllResult:
    """Return every element once, where it is first, which one each is, and how often it is there.

    See `unique_values`; indices count through the flattened `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> [part.tolist() for part in nx.unique_all([3, 1, 3])]
    [[1, 3], [1, 0], [1, 0, 1], [1, 2]]
    """
    runs = _runs("unique_all", x)
    return UniqueAllResult(runs.values, runs.firsts, runs.inverse, runs.counts)


def searchsorted(
    x1: TensorLike,
    x2: TensorLike,
    /,
    *,
    side: Literal["left", "right"] = "left",
    sorter: TensorLike | None = None,
) -> Tensor:
    """Return where elements would have to be put into a sorted vector.

    Parameters
    ----------
    x1 : tensor_like
        A vector of real numbers in increasing order, NaN last.
    x2 : tensor_like
        What would be put in, of any shape.
    side : {"left", "right"}
        Whether it goes before what equals it, or behind.
    sorter : tensor_like, optional
        Indices that put `x1` in order, such as `argsort` gives; then `x1` itself need not be.

    Returns
    -------
    Tensor
        ``int32`` indices of the shape of `x2`.

    Raises
    ------
    ShapeError
        If `x1` is no vector.
    DTypeError
        If an operand is complex.
    ArgumentError
        If there is no such side.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.searchsorted([1, 3, 3, 5], [3, 4]).tolist()
    [1, 3]
    >>> nx.searchsorted([1, 3, 3, 5], [3, 4], side="right").tolist()
    [3, 3]
    """
    x1, x2 = as_tensors("searchsorted", x1, x2, compared=True)
    if side not in ("left", "right"):
        raise ArgumentError(f'searchsorted: side must be "left" or "right", got {side!r}')
    if x1.ndim != 1:
        raise ShapeError(f"searchsorted: x1 has shape {x1.shape}, not one axis")
    for x in (x1, x2):
        if x.dtype.kind == "complex":
            raise DTypeError(f"searchsorted: an operand has dtype {x.dtype}, expected real numbers")
    if sorter is not None:
        x1 = _core.take(x1, sorter)
    return _core.places_in_order(x1, x2, side == "right")


def isin(x1: TensorLike, x2: TensorLike, /, *, invert: bool = False) -> Tensor:
    """Tell which elements are among others.

    Parameters
    ----------
    x1 : tensor_like
        What is asked for, of any shape.
    x2 : tensor_like
        What is there, of any shape. NaN is never there.
    invert : bool
        Whether to tell which ones are not there instead.

    Returns
    -------
    Tensor
        Truth values of the shape of `x1`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.isin([1, 2, 3], [3, 1]).tolist()
    [True, False, True]
    """
    x1, x2 = as_tensors("isin", x1, x2, compared=True)
    x2 = _core.flatten(x2)
    if x2.size == 0:
        found = _core.full(x1.shape, False, _core.pred)
    elif x2.size <= 16:
        # One pass over elements that compares each with all.
        found = reduce(_core.logical_or, (_core.equal(x1, x2[at]) for at in range(x2.size)))
    elif "complex" in (x1.dtype.kind, x2.dtype.kind):
        pairs = _core.equal(_core.expand_dims(x1, axis=-1), x2)
        found = _core.any(pairs, axis=-1)
    else:
        ordered = _core.sort(x2)
        place = _core.clip(searchsorted(ordered, x1), max=x2.size - 1)
        found = _core.equal(_core.take(ordered, place), x1)
    return _core.logical_not(found) if invert else found
