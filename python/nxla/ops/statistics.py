"""Counts and sums by number: bins, histograms and segments."""

from __future__ import annotations

from nxla import _core
from nxla._values import as_tensor, as_tensors
from nxla.errors import ArgumentError, TraceError

TYPE_CHECKING = False
if TYPE_CHECKING:
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
    """Count how often each number occurs.

    Parameters
    ----------
    x : tensor_like
        A vector of integers that are not negative.
    weights : tensor_like, optional
        What each entry of `x` counts; 1 by default.
    minlength : int
        How many counts there are at least.
    length : int, optional
        How many counts there are; larger and negative numbers are left out. Needed where `x` is
        traced; by default the largest number of `x` is the last to be counted.

    Returns
    -------
    Tensor
        ``int32``, or of the dtype of the weights; entry ``i`` is the count of ``i``.

    Raises
    ------
    ArgumentError
        If `x` has a negative number, where it is not traced and there is no `length`.
    TraceError
        If `x` is traced and there is no `length`.
    ShapeError, DTypeError
        If `x` is no vector of integers, or the weights have another shape.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.bincount([0, 1, 1, 3]).tolist()
    [1, 2, 0, 1]
    >>> nx.bincount([0, 1, 1, 7], length=2).tolist()
    [1, 2]
    """
    x = as_tensor(x)
    if length is None:
        length = _count_of("bincount", x, "length")
    return _core.count_numbers(x, weights, max(length, minlength))


def _count_of(function: str, numbers: Any, argument: str) -> int:
    """Return one more than the largest number, which has to be known."""
    if isinstance(numbers, _core.Expr):
        raise TraceError(
            f"{function}: how many numbers there are depends on data, and the shape of a traced "
            f"value cannot; give {argument}="
        )
    if not numbers.size:
        return 0
    if numbers.dtype.kind not in ("signed", "unsigned", "pred"):
        return 0  # The engine refuses the dtype.
    if int(_core.min(numbers).item()) < 0:
        raise ArgumentError(f"{function}: numbers must not be negative unless {argument}= is given")
    return int(_core.max(numbers).item()) + 1


def histogram(
    x: TensorLike,
    /,
    bins: int | TensorLike = 10,
    range: tuple[float, float] | None = None,
    weights: TensorLike | None = None,
    density: bool = False,
) -> tuple[Tensor, Tensor]:
    """Count how many elements are in each of some bins.

    Parameters
    ----------
    x : tensor_like
        Real numbers of any shape.
    bins : int or tensor_like
        How many bins of one width, or a vector with their edges in increasing order. A bin has its
        first edge and not its last one, but for the last bin, which has both.
    range : (float, float), optional
        Where the first bin begins and the last one ends; by default at the smallest and the largest
        element. Others are left out. It does not matter where edges are given.
    weights : tensor_like, optional
        What each element counts; 1 by default.
    density : bool
        Whether to return the share of all counts divided by the width of the bin.

    Returns
    -------
    counts : Tensor
        ``int32``, or of the dtype of the weights; with `density` a float.
    edges : Tensor
        One more than there are bins.

    Raises
    ------
    ArgumentError
        If there are no bins, or the range ends before it begins.
    ShapeError
        If the edges are no vector of two or more, or the weights have another shape.

    Examples
    --------
    >>> import nxla as nx
    >>> counts, edges = nx.histogram([1.0, 2.0, 1.0, 4.0], bins=3)
    >>> counts.tolist(), edges.tolist()
    ([2, 1, 1], [1.0, 2.0, 3.0, 4.0])
    """
    if isinstance(bins, int):
        edges = _core.bin_edges(x, bins, range)
    else:
        x, edges = as_tensors("histogram", x, bins, compared=True)
    return _core.histogram_of(x, edges, weights, density), edges


def _segments(
    kind: Kind, data: TensorLike, segment_ids: TensorLike, num_segments: int | None
) -> Tensor:
    ids = as_tensor(segment_ids)
    if num_segments is None:
        num_segments = _count_of(f"segment_{kind}", ids, "num_segments")
    return _core.segment(kind, data, ids, num_segments)


def segment_sum(
    data: TensorLike, segment_ids: TensorLike, /, num_segments: int | None = None
) -> Tensor:
    """Add up the entries of each segment.

    Parameters
    ----------
    data : tensor_like
        Numbers; entries are along the first axis.
    segment_ids : tensor_like
        A vector of integers: the segment that each entry belongs to, in any order.
    num_segments : int, optional
        How many segments there are; entries of others are left out. Needed where the ids are
        traced; by default the largest of them is the last segment.

    Returns
    -------
    Tensor
        Of the dtype of `data`; its first axis has one entry for each segment, 0 for an empty one.

    Raises
    ------
    TraceError
        If the ids are traced and the number of segments is not given.
    ShapeError, DTypeError
        If the ids are not one integer for each entry.

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
    """Multiply the entries of each segment; 1 for an empty one. Otherwise as `segment_sum`.

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
    """Find the largest of the entries of each segment, NaN if there is one.

    An empty segment gives the least number of the dtype, which is minus infinity for floats.
    Parameters and errors are those of `segment_sum`; complex numbers have no order.

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
    """Find the smallest of the entries of each segment, NaN if there is one.

    An empty segment gives the largest number of the dtype, which is infinity for floats.
    Parameters and errors are those of `segment_sum`; complex numbers have no order.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.segment_min([1.0, 2.0, 4.0], [0, 1, 0]).tolist()
    [1.0, 2.0]
    """
    return _segments("min", data, segment_ids, num_segments)
