"""Reading and writing at indices, and sorting.

``x[...]`` takes integers, ranges, ``None``, ``...``, traced scalars and tensors of indices. Tensors
never change: what writes gives a new tensor.
"""

from __future__ import annotations

from nxla import _core
from nxla._values import as_tensor
from nxla.errors import ArgumentError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from nxla._core import Tensor
    from nxla._types import Axes, Axis, DTypeLike, TensorLike


def take(x: TensorLike, indices: TensorLike, /, *, axis: Axis | None = None) -> Tensor:
    """Take elements of an axis by index.

    Parameters
    ----------
    x : tensor_like
        Any tensor.
    indices : tensor_like
        Integers, of any shape.
    axis : int or str, optional
        The axis; may be left out if there is only one.

    Returns
    -------
    Tensor
        Of the shape of `x`, with the axes of `indices` in place of `axis`.

    Raises
    ------
    ArgumentError
        If there are several axes, and none is given.
    DTypeError
        If the indices are no integers.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.take([10, 20, 30], [2, 0]).tolist()
    [30, 10]
    """
    if axis is None:
        x = as_tensor(x)
        if x.ndim != 1:
            raise ArgumentError(f"take: axis must be given, x has {x.ndim} axes")
        axis = 0
    return _core.take(x, indices, axis)


def take_along_axis(x: TensorLike, indices: TensorLike, /, *, axis: Axis = -1) -> Tensor:
    """Take one element of an axis for each index, in step along the other axes.

    Parameters
    ----------
    x : tensor_like
        Any tensor.
    indices : tensor_like
        Integers, of the shape of `x` but for `axis`.
    axis : int or str
        The axis.

    Raises
    ------
    ShapeError
        If the shapes differ in another axis.

    Examples
    --------
    >>> import nxla as nx
    >>> x = nx.tensor([[3, 1], [5, 9]])
    >>> nx.take_along_axis(x, nx.argsort(x)).tolist()
    [[1, 3], [5, 9]]
    """
    return _core.take_along_axis(x, indices, axis)


def slice(
    x: TensorLike,
    starts: Sequence[TensorLike],
    lengths: Sequence[int],
    /,
    *,
    strides: Sequence[int] | None = None,
) -> Tensor:
    """Cut out a block.

    Parameters
    ----------
    x : tensor_like
        Any tensor.
    starts : sequence of int or integer scalar
        Where the block begins along each axis. It is moved so that the block fits.
    lengths : sequence of int
        How much of each axis, counted before strides.
    strides : sequence of int, optional
        Which elements of the block are kept along each axis; every one by default.

    Raises
    ------
    ShapeError
        If there is not one number for each axis, or the block is larger than the tensor.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.slice([[1, 2, 3], [4, 5, 6]], [0, 1], [2, 2]).tolist()
    [[2, 3], [5, 6]]
    """
    return _core.slice(x, starts, lengths, strides)


def slice_along_axis(
    x: TensorLike, start: TensorLike, length: int, /, *, axis: Axis = 0, stride: int = 1
) -> Tensor:
    """Cut a range out of one axis. Parameters and errors are those of `slice`, for that axis.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.slice_along_axis([1, 2, 3, 4], 1, 2).tolist()
    [2, 3]
    """
    return _core.slice_along_axis(x, start, length, axis, stride)


def put_slice(x: TensorLike, starts: Sequence[TensorLike], update: TensorLike, /) -> Tensor:
    """Write a block into a copy of a tensor.

    Parameters
    ----------
    x : tensor_like
        Any tensor.
    starts : sequence of int or integer scalar
        Where the block goes along each axis. It is moved so that the block fits.
    update : tensor_like
        The block; the dtypes promote.

    Raises
    ------
    ShapeError
        If the block is larger than the tensor, or has another number of axes.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.put_slice([1, 2, 3, 4], [1], [8, 9]).tolist()
    [1, 8, 9, 4]
    """
    return _core.put_slice(x, starts, update)


def gather(x: TensorLike, indices: TensorLike, /, *, axes: Axes | None = None) -> Tensor:
    """Take elements, or slices, at tuples of indices.

    Parameters
    ----------
    x : tensor_like
        Any tensor.
    indices : tensor_like
        Integers; the last axis holds the tuples.
    axes : sequence of int or str, optional
        The axis that each number of a tuple counts along, in increasing order; the first ones by
        default.

    Returns
    -------
    Tensor
        The other axes of `indices`, then the axes of `x` that are not counted along.

    Raises
    ------
    ShapeError
        If the tuples have more numbers than there are axes.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.gather([[1, 2], [3, 4]], [[1, 1], [0, 1]]).tolist()
    [4, 2]
    """
    return _core.gather(x, indices, axes)


def indexed_add(
    x: TensorLike, indices: TensorLike, updates: TensorLike, /, *, axes: Axes | None = None
) -> Tensor:
    """Add numbers at tuples of indices; what meets at one place adds up.

    Parameters
    ----------
    x : tensor_like
        Any tensor.
    indices : tensor_like
        Integers; the last axis holds the tuples, as for `gather`.
    updates : tensor_like
        What `gather` would give for these indices, in shape.
    axes : sequence of int or str, optional
        As for `gather`.

    Raises
    ------
    ShapeError
        If the updates have another shape.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.indexed_add([0, 0, 0], [[1], [1], [2]], [5, 6, 7]).tolist()
    [0, 11, 7]
    """
    return _core.indexed_add(x, indices, updates, axes)


def indexed_put(
    x: TensorLike, indices: TensorLike, updates: TensorLike, /, *, axes: Axes | None = None
) -> Tensor:
    """Write numbers at tuples of indices; the last one stays. Parameters as for `indexed_add`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.indexed_put([0, 0, 0], [[1], [2]], [5, 7]).tolist()
    [0, 5, 7]
    """
    return _core.indexed_put(x, indices, updates, axes)


def sort(
    x: TensorLike, /, *, axis: Axis = -1, descending: bool = False, stable: bool = True
) -> Tensor:
    """Put the elements of an axis in order; NaN counts as larger than everything.

    Parameters
    ----------
    x : tensor_like
        Real numbers.
    axis : int or str
        The axis.
    descending : bool
        Whether the largest comes first.
    stable : bool
        Whether equal elements keep their order.

    Raises
    ------
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.sort([3, 1, 2]).tolist(), nx.sort([3, 1, 2], descending=True).tolist()
    ([1, 2, 3], [3, 2, 1])
    """
    return _core.sort(x, axis, descending, stable)


def argsort(
    x: TensorLike,
    /,
    *,
    axis: Axis = -1,
    descending: bool = False,
    stable: bool = True,
    dtype: DTypeLike = _core.s32,
) -> Tensor:
    """Return the indices that put the elements of an axis in order.

    Parameters and errors are those of `sort`; `dtype` is that of the indices.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.argsort([3, 1, 2]).tolist()
    [1, 2, 0]
    """
    return _core.argsort(x, axis, descending, stable, dtype)


def top_k(x: TensorLike, /, k: int = 1) -> tuple[Tensor, Tensor]:
    """Find the largest elements of the last axis.

    Parameters
    ----------
    x : tensor_like
        Real numbers, with at least one axis.
    k : int
        How many.

    Returns
    -------
    values, indices : Tensor
        The elements, the largest first, and where they are.

    Raises
    ------
    ArgumentError
        If the axis has fewer elements.

    Examples
    --------
    >>> import nxla as nx
    >>> [found.tolist() for found in nx.top_k([1, 9, 5], 2)]
    [[9, 5], [1, 2]]
    """
    return _core.top_k(x, k)


def diff(
    x: TensorLike,
    /,
    *,
    axis: Axis = -1,
    n: int = 1,
    prepend: TensorLike | None = None,
    append: TensorLike | None = None,
) -> Tensor:
    """Subtract each element from the next.

    Parameters
    ----------
    x : tensor_like
        Numbers, with at least one axis.
    axis : int or str
        The axis; it gets shorter by `n`.
    n : int
        How many times over.
    prepend, append : tensor_like, optional
        What to put before and behind `x` first; of its shape but for `axis`.

    Raises
    ------
    ShapeError
        If there is no such axis.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.diff([1, 4, 9]).tolist(), nx.diff([1, 4, 9], n=2).tolist()
    ([3, 5], [2])
    """
    parts = [part for part in (prepend, x, append) if part is not None]
    return _core.diff(_core.concatenate(parts, axis) if len(parts) > 1 else x, n, axis)
