"""Counts and sums by index: bins, histograms and segments."""

from __future__ import annotations

from nxla import _core, _hints
from nxla._values import as_count, as_pairs, as_tensor, as_tensors, to_index
from nxla.errors import ArgumentError, TraceError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Literal

    from nxla._core import Tensor
    from nxla._types import TensorLike

    Kind = Literal["sum", "prod", "max", "min"]


def bincount(
    x: TensorLike,
    /,
    weights: TensorLike | None = None,
    minlength: int = 0,
    *,
    length: int | None = None,
) -> Tensor:
    """Count the occurrences of each integer.

    Parameters
    ----------
    x : tensor_like
        A vector of non-negative integers, or of booleans, which count as 0 and 1.
    weights : tensor_like, optional
        The weight of each entry of `x`; 1 by default.
    minlength : int
        The minimum length of the result.
    length : int, optional
        The length of the result; larger and negative integers are ignored. It is required if `x` is
        traced. By default the largest element of `x` determines it.

    Returns
    -------
    Tensor
        ``int32``, or of the dtype of a sum of the weights; entry ``i`` is the count of ``i``.

    Raises
    ------
    ArgumentError
        If `x` is not traced, contains a negative integer, and `length` is omitted; if `length` or
        `minlength` is negative.
    TraceError
        If `x` is traced and `length` is omitted.
    ShapeError, DTypeError
        If `x` is not a vector of integers, or the weights have another shape.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.bincount([0, 1, 1, 3]).tolist()
    [1, 2, 0, 1]
    >>> nx.bincount([0, 1, 1, 7], length=2).tolist()
    [1, 2]
    """
    x = as_tensor(x)
    minlength = as_count("bincount", "minlength", minlength)
    if length is None:
        length = _count_of("bincount", "x", x, "length")
    else:
        length = as_count("bincount", "length", length)
    return _core.count_numbers(x, weights, max(length, minlength))


def _count_of(function: str, operand: str, numbers: Any, argument: str) -> int:
    """Return the largest element plus one; the elements must be concrete and one entry."""
    if isinstance(numbers, _core.Expr):
        raise TraceError(
            f"{function}: {argument}: is required for traced values, because it determines "
            "the shape of the result"
        )
    if numbers.vectorized_axes:
        raise ArgumentError(
            f"{function}: {argument}: is required for vectorized integers, because it determines "
            "the shape of the result of all entries"
        )
    if not numbers.size:
        return 0
    if numbers.dtype.kind not in ("signed", "unsigned", "pred"):
        return 0  # Type inference reports the invalid dtype.
    if int(_core.min(numbers).item()) < 0:
        raise ArgumentError(f"{function}: {operand}: must not be negative without {argument}=")
    return int(_core.max(numbers).item()) + 1


def histogram(
    x: TensorLike,
    /,
    bins: int | TensorLike = 10,
    range: Sequence[float] | None = None,
    weights: TensorLike | None = None,
    density: bool = False,
) -> tuple[Tensor, Tensor]:
    """Count the elements in each bin.

    Parameters
    ----------
    x : tensor_like
        Real numbers of any shape.
    bins : int or tensor_like
        The number of bins of equal width, or a vector of increasing edges. A bin contains its first
        edge and excludes its last edge, except for the last bin, which contains both.
    range : (float, float), optional
        The first and the last edge; by default the smallest and the largest element. Elements
        outside are ignored. The argument has no effect if `bins` contains edges.
    weights : tensor_like, optional
        The weight of each element; 1 by default.
    density : bool
        If True, return the share of all counts divided by the width of the bin.

    Returns
    -------
    counts : Tensor
        ``int32``, or the dtype of a sum of the weights; with `density` a float.
    edges : Tensor
        The edges, one more than the number of bins.

    Raises
    ------
    ArgumentError
        If the number of bins is 0, or the range is empty.
    ShapeError
        If the edges are not a vector of two or more, or the weights have another shape.

    Examples
    --------
    >>> import nxla as nx
    >>> counts, edges = nx.histogram([1.0, 2.0, 1.0, 4.0], bins=3)
    >>> counts.tolist(), edges.tolist()
    ([2, 1, 1], [1.0, 2.0, 3.0, 4.0])
    """
    count = to_index(bins)
    if count is None:
        x, edges = as_tensors("histogram", x, bins, compared=True)
        return _core.histogram_of(x, edges, weights, density), edges
    limits = None
    if range is not None:
        ((first, last),) = as_pairs("histogram", "range", [range], "of numbers")
        limits = first, last
    x = as_tensor(x)
    edges = _core.bin_edges(x, count, limits)
    counts = _core.histogram_of(x, edges, weights, density)
    if x.dtype.kind in ("signed", "unsigned"):
        # The edges of integers are `float64`: `float32` rounds close integers to one number.
        edges = _core.astype(edges, _core.f32)
        if density:
            own = () if weights is None else (weights,)
            counts = _core.astype(counts, _core.result_type(_core.f32, *own))
    return counts, edges


def _segments(
    kind: Kind, data: TensorLike, segment_ids: TensorLike, num_segments: int | None
) -> Tensor:
    ids = as_tensor(segment_ids)
    if num_segments is None:
        num_segments = _count_of(f"segment_{kind}", "segment_ids", ids, "num_segments")
    else:
        num_segments = as_count(f"segment_{kind}", "num_segments", num_segments)
    return _core.segment(kind, data, ids, num_segments)


def segment_sum(
    data: TensorLike, segment_ids: TensorLike, /, num_segments: int | None = None
) -> Tensor:
    """Sum the entries of each segment.

    Parameters
    ----------
    data : tensor_like
        A tensor whose first axis contains the entries.
    segment_ids : tensor_like
        A vector of integers: the segment of each entry, in any order.
    num_segments : int, optional
        The number of segments; entries of other segments are ignored. It is required if the ids are
        traced. By default the largest id is the last segment.

    Returns
    -------
    Tensor
        The dtype of `data`; the first axis has one entry for each segment, 0 for an empty one.

    Raises
    ------
    TraceError
        If the ids are traced and the number of segments is omitted.
    ShapeError, DTypeError
        If the ids are not a vector with one integer for each entry.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.segment_sum([1.0, 2.0, 4.0], [0, 2, 0]).tolist()
    [5.0, 0.0, 2.0]
    """
    return _segments("sum", data, segment_ids, num_segments)


def segment_prod(
    data: TensorLike, segment_ids: TensorLike, /, num_segments: int | None = None
) -> Tensor:
    """Multiply the entries of each segment; an empty segment is 1. See `segment_sum`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.segment_prod([2.0, 3.0, 4.0], [0, 2, 0]).tolist()
    [8.0, 1.0, 3.0]
    """
    return _segments("prod", data, segment_ids, num_segments)


def segment_max(
    data: TensorLike, segment_ids: TensorLike, /, num_segments: int | None = None
) -> Tensor:
    """Return the maximum of each segment, NaN if the segment contains NaN.

    An empty segment returns the minimum of the dtype, which is minus infinity for floats.
    Parameters and errors are the same as for `segment_sum`; complex numbers are not ordered.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.segment_max([1.0, 2.0, 4.0], [0, 1, 0]).tolist()
    [4.0, 2.0]
    """
    return _segments("max", data, segment_ids, num_segments)


def segment_min(
    data: TensorLike, segment_ids: TensorLike, /, num_segments: int | None = None
) -> Tensor:
    """Return the minimum of each segment, NaN if the segment contains NaN.

    An empty segment returns the maximum of the dtype, which is infinity for floats.
    Parameters and errors are the same as for `segment_sum`; complex numbers are not ordered.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.segment_min([1.0, 2.0, 4.0], [0, 1, 0]).tolist()
    [1.0, 2.0]
    """
    return _segments("min", data, segment_ids, num_segments)


_hints.install(globals())
