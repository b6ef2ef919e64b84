"""Search: positions of elements, unique elements, membership.

The number of nonzero or unique elements depends on data. Functions whose results have such shapes
work only outside traced functions; in a trace, their error names an alternative.
"""

from __future__ import annotations

import sys
from functools import reduce
from typing import NamedTuple

from nxla import _core, _hints
from nxla._values import as_bool, as_tensor, as_tensors, call_as, index_list
from nxla.errors import ArgumentError, DTypeError, ShapeError, TraceError
from nxla.limits import iinfo
from nxla.ops.metadata import axis_position

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Literal

    from nxla._core import Tensor
    from nxla._types import Axis, TensorLike


class UniqueAllResult(NamedTuple):
    """The result of `unique_all`."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCountsResult(NamedTuple):
    """The result of `unique_counts`."""

    values: Tensor
    counts: Tensor


class UniqueInverseResult(NamedTuple):
    """The result of `unique_inverse`."""

    values: Tensor
    inverse_indices: Tensor


def _data(function: str, x: TensorLike, instead: str) -> Tensor:
    """Return an operand with data and without vectorized axes."""
    if isinstance(x, _core.Expr):
        raise TraceError(
            f"{function}: x: must not be traced, because its elements determine the shape of "
            f"the result; {instead}"
        )
    x = as_tensor(x)
    if x.vectorized_axes:
        raise ArgumentError(f"{function}: x: must not have vectorized axes; devectorize it first")
    return x


def nonzero(x: TensorLike, /) -> tuple[Tensor, ...]:
    """Return the indices of elements that are not zero.

    Parameters
    ----------
    x : tensor_like
        Numbers or booleans, with at least one axis.

    Returns
    -------
    tuple of Tensor
        For each axis the ``int32`` indices along it, in row-major order of the elements.

    Raises
    ------
    ShapeError
        If `x` is a scalar.
    TraceError
        If `x` is traced, because the number of indices depends on data.

    Examples
    --------
    >>> import nxla as nx
    >>> [axis.tolist() for axis in nx.nonzero([[0, 5], [7, 0]])]
    [[0, 1], [1, 0]]
    """
    x = _data("nonzero", x, "use nx.where(x, …, …), or nx.top_k(x != 0, k) for a fixed number")
    if x.ndim == 0:
        raise ShapeError("nonzero: x: must have at least one axis; got a scalar")
    is_truth = x.dtype == _core.pred
    return tuple(_core.true_indices(x if is_truth else _core.not_equal(x, 0)))


def _sorted_places(x: Tensor) -> Tensor:
    """Return a stable order that groups the equal elements of a vector."""
    if x.dtype.kind != "complex":
        return _core.argsort(x)
    by_imaginary = _core.argsort(_core.imag(x))
    by_real = _core.argsort(_core.take(_core.real(x), by_imaginary))
    return _core.take(by_imaginary, by_real)


def _begins(ordered: Tensor) -> Tensor:
    """Return whether each element of an ordered vector begins a run of equal elements.

    NaN differs from every element, including NaN, so each NaN is a separate run.
    """
    rest = _core.not_equal(ordered[1:], ordered[:-1])
    return _core.concat([_core.full((1,), True, _core.pred), rest])


class _Runs(NamedTuple):
    """Runs of equal elements."""

    values: Tensor
    #: The index of the first element of each run.
    firsts: Tensor
    #: The run of each element.
    inverse: Tensor
    counts: Tensor


def _runs(function: str, x: TensorLike) -> _Runs:
    x = _data(
        function,
        x,
        "use nx.sort(x) and compare neighbors, which keeps the shape",
    )
    flat = _core.flatten(_core.rename(x, [None] * x.ndim))
    if flat.size == 0:
        nothing = _core.full((0,), 0, _core.s32).to_device(x.device)
        return _Runs(flat, nothing, _core.reshape(nothing, x.shape), nothing)
    order = _sorted_places(flat)
    ordered = _core.take(flat, order)
    begins = _begins(ordered)
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
    """Return the unique elements in increasing order.

    Parameters
    ----------
    x : tensor_like
        Numbers or booleans. Each NaN is a separate element; 0.0 and -0.0 are equal.

    Returns
    -------
    Tensor
        A vector of the dtype of `x`; complex numbers are ordered by their real parts.

    Raises
    ------
    TraceError
        If `x` is traced, because the number of elements depends on data.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.unique_values([3, 1, 3]).tolist()
    [1, 3]
    """
    return _runs("unique_values", x).values


def unique_counts(x: TensorLike, /) -> UniqueCountsResult:
    """Return the unique elements and their counts. See `unique_values`.

    Examples
    --------
    >>> import nxla as nx
    >>> [part.tolist() for part in nx.unique_counts([3, 1, 3])]
    [[1, 3], [1, 2]]
    """
    runs = _runs("unique_counts", x)
    return UniqueCountsResult(runs.values, runs.counts)


def unique_inverse(x: TensorLike, /) -> UniqueInverseResult:
    """Return the unique elements, and the index of each element among them. See `unique_values`.

    Examples
    --------
    >>> import nxla as nx
    >>> [part.tolist() for part in nx.unique_inverse([[3, 1], [3, 2]])]
    [[1, 2, 3], [[2, 0], [2, 1]]]
    """
    runs = _runs("unique_inverse", x)
    return UniqueInverseResult(runs.values, runs.inverse)


def unique_all(x: TensorLike, /) -> UniqueAllResult:
    """Return the unique elements, their first indices, the inverse indices, and their counts.

    See `unique_values`; indices refer to the flattened `x`.

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
    """Return the indices at which elements can be inserted into a sorted vector.

    Parameters
    ----------
    x1 : tensor_like
        A vector of real numbers in increasing order, NaN last.
    x2 : tensor_like
        The elements to insert, of any shape.
    side : {"left", "right"}
        The index before (``"left"``) or after (``"right"``) equal elements.
    sorter : tensor_like, optional
        Indices that sort `x1`, such as the result of `argsort`; `x1` need not be sorted then.

    Returns
    -------
    Tensor
        ``int32`` indices of the shape of `x2`.

    Raises
    ------
    ShapeError
        If `x1` is not a vector.
    DTypeError
        If an operand is complex.
    ArgumentError
        If `side` has another value.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.searchsorted([1, 3, 3, 5], [3, 4]).tolist()
    [1, 3]
    >>> nx.searchsorted([1, 3, 3, 5], [3, 4], side="right").tolist()
    [3, 3]
    """
    below = 0
    if sorter is None:
        x1, below = _held_integers("searchsorted", x1, x2)
    x1, x2 = as_tensors("searchsorted", x1, x2, compared=True)
    if side not in ("left", "right"):
        raise ArgumentError(f'searchsorted: side: must be "left" or "right"; got {side!r}')
    if x1.ndim != 1:
        raise ShapeError(f"searchsorted: x1: must be a vector; got shape {x1.shape}")
    for x in (x1, x2):
        if x.dtype.kind == "complex":
            raise DTypeError(f"searchsorted: operands: must be real; got {x.dtype}")
    if sorter is not None:
        x1 = _core.take(x1, sorter)
    places = _core.places_in_order(x1, x2, side == "right")
    return places + below if below else places


def _held_integers(function: str, values: Any, other: TensorLike) -> tuple[Any, int]:
    """Return a list of Python integers without those that no element of `other` can equal.

    Lists of integers that share a dtype, and other values, are returned unchanged. The second
    result is the number of integers that are less than every element of `other`.
    """
    if not isinstance(values, (list, tuple)) or any(type(value) is not int for value in values):
        return values, 0
    least, most = min(values, default=0), max(values, default=0)
    if (least >= -(2**63) and most < 2**63) or (least >= 0 and most < 2**64):
        return values, 0
    dtype = as_tensors(function, other, compared=True)[0].dtype
    is_inexact = dtype.kind in ("float", "complex")
    if is_inexact:
        low, high = int(-sys.float_info.max), int(sys.float_info.max)
    elif dtype.kind == "pred":
        low, high = 0, 1
    else:
        low, high = iinfo(dtype).min, iinfo(dtype).max
    held = [value for value in values if low <= value <= high]
    below = sum(value < low for value in values)
    return [float(value) for value in held] if is_inexact else held, below


def isin(x1: TensorLike, x2: TensorLike, /, *, invert: bool = False) -> Tensor:
    """Return for each element whether another tensor contains it.

    Parameters
    ----------
    x1 : tensor_like
        The elements to search for, of any shape.
    x2 : tensor_like
        The tensor to search in, of any shape. NaN equals no element.
    invert : bool
        If True, return the opposite booleans.

    Returns
    -------
    Tensor
        Booleans of the shape of `x1`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.isin([1, 2, 3], [3, 1]).tolist()
    [True, False, True]
    """
    x2, _ = _held_integers("isin", x2, x1)
    x1, x2 = as_tensors("isin", x1, x2, compared=True)
    x2 = _core.flatten(x2)
    if x2.size == 0:
        found = _core.full(x1.shape, False, _core.pred)
    elif x2.size <= 16:
        # One fused pass over the elements compares each of them with all of `x2`.
        found = reduce(_core.logical_or, (_core.equal(x1, x2[at]) for at in range(x2.size)))
    elif "complex" in (x1.dtype.kind, x2.dtype.kind):
        found = _in_groups(x1, x2)
    else:
        ordered = _core.sort(x2)
        place = _core.clip(searchsorted(ordered, x1), max=x2.size - 1)
        found = _core.equal(_core.take(ordered, place), x1)
    return _core.logical_not(found) if as_bool("isin", "invert", invert) else found


def _in_groups(x1: Tensor, x2: Tensor) -> Tensor:
    """Return whether a vector contains each element, for numbers that have no order.

    Equal elements of both operands are grouped in a stable order, so the first element of a group
    is from the vector if the vector contains the elements of the group.
    """
    size = x2.shape[0]
    both = _core.concat([x2, _core.flatten(_core.rename(x1, [None] * x1.ndim))])
    order = _sorted_places(both)
    begins = _begins(_core.take(both, order))
    at = _core.iota(begins.shape, 0, _core.s32)
    firsts = _core.cumulative_max(_core.where(begins, at, 0))
    from_vector = _core.less(_core.take(order, firsts), size)
    found = _core.take(from_vector, _core.argsort(order))[size:]
    return _core.rename(_core.reshape(found, x1.shape), x1.names)


def digitize(x: TensorLike, bins: TensorLike, /, right: bool = False) -> Tensor:
    """Return the index of the bin of each element.

    Parameters
    ----------
    x : tensor_like
        Real numbers of any shape.
    bins : tensor_like
        A vector of edges in increasing or decreasing order.
    right : bool
        If True, a bin contains its upper edge instead of its lower edge.

    Returns
    -------
    Tensor
        ``int32`` of the shape of `x`: the number of edges below the element if the order is
        increasing, or above it.

    Raises
    ------
    ShapeError
        If `bins` is not a vector.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.digitize([0.5, 1.0, 9.0], [0.0, 1.0, 2.0]).tolist()
    [1, 2, 3]
    """
    side = "left" if as_bool("digitize", "right", right) else "right"
    x, edges = as_tensors("digitize", x, bins, compared=True)
    if edges.ndim != 1:
        raise ShapeError(f"digitize: bins: must be a vector; got shape {edges.shape}")
    size = edges.shape[0]
    if size == 0:
        return _core.broadcast_to(_core.tensor(0, "s32"), x.shape)
    # In reversed order, decreasing edges increase. A single edge counts as increasing, even if it
    # is NaN.
    rises = (size == 1) | (edges[0] <= edges[-1])
    ordered = _core.where(rises, edges, _core.flip(edges))
    place = call_as("digitize", searchsorted, ordered, x, side=side)
    return _core.where(rises, place, size - place)


def _to_partition(
    op: str, x: TensorLike, kth: int | Sequence[int], axis: Axis
) -> tuple[Tensor, int]:
    """Return the tensor to partition and the position of the axis if the positions exist."""
    x = as_tensor(x)
    axis = axis_position(op, x, axis)
    size = x.shape[axis]
    for position in index_list(op, "kth", kth, names=False):
        if not -size <= position < size:
            raise ArgumentError(f"{op}: kth: must be one of {size} positions; got {position}")
    return x, axis


def partition(x: TensorLike, kth: int | Sequence[int], /, axis: Axis = -1) -> Tensor:
    """Return the elements with the sorted element at a position, and smaller ones before it.

    Parameters
    ----------
    x : tensor_like
        Real numbers; NaN is the largest.
    kth : int or sequence of int
        The positions.
    axis : int or str
        The axis.

    Returns
    -------
    Tensor
        The dtype and shape of `x`. The current implementation sorts all elements.

    Raises
    ------
    ArgumentError
        If the axis has no such position.
    ShapeError
        If the axis does not exist.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.partition([3, 1, 2, 0], 1)[1].item()
    1
    """
    return call_as("partition", _core.sort, *_to_partition("partition", x, kth, axis))


def argpartition(x: TensorLike, kth: int | Sequence[int], /, axis: Axis = -1) -> Tensor:
    """Return the ``int32`` indices of the elements in the order of `partition`.

    Parameters and errors are the same as for `partition`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.argpartition([3, 1, 2, 0], 1)[1].item()
    1
    """
    return call_as("argpartition", _core.argsort, *_to_partition("argpartition", x, kth, axis))


_hints.install(globals())
