"""Shapes and positions: functions that move, repeat and join elements."""

from __future__ import annotations

import itertools
import math
import operator
from itertools import chain, pairwise

from nxla import _core, _hints
from nxla._values import (
    as_count,
    as_int,
    as_pairs,
    as_tensor,
    as_tensors,
    call_as,
    index_list,
    user_line,
)
from nxla.errors import ArgumentError, ShapeError, TraceError
from nxla.ops.metadata import axis_position

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any, Literal

    from nxla._core import Tensor
    from nxla._types import Axes, Axis, TensorLike


def matrix_transpose(x: TensorLike, /) -> Tensor:
    """Exchange the last two axes.

    Raises
    ------
    ShapeError
        If the tensor has fewer than two axes.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.matrix_transpose([[[1, 2]], [[3, 4]]]).shape
    (2, 2, 1)
    """
    x = as_tensor(x)
    if x.ndim < 2:
        raise ShapeError(
            "matrix_transpose: x: must have at least 2 axes; "
            f"got shape {tuple(x.shape)}{user_line()}"
        )
    return _core.swapaxes(x, -2, -1)


def moveaxis(x: TensorLike, source: Axes, destination: int | Sequence[int], /) -> Tensor:
    """Move axes to other positions; the others keep their order.

    Parameters
    ----------
    x : tensor_like
        Any tensor.
    source : int or str, or a sequence
        Axes of `x`.
    destination : int or sequence of int
        The positions of these axes in the result.

    Returns
    -------
    Tensor
        The elements with the axes, their sizes and their names in the new order.

    Raises
    ------
    ShapeError
        If the axis does not exist.
    ArgumentError
        If a position is out of range or repeated.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.moveaxis(nx.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = as_tensor(x)
    named = index_list("moveaxis", "source", source)
    found = [axis_position("moveaxis", x, axis, "source") for axis in named]
    sources = _positions("source", found, x.ndim)
    destinations = _positions("destination", destination, x.ndim)
    if len(sources) != len(destinations):
        raise ArgumentError(
            f"moveaxis: destination: must have {len(sources)} axes, like source; got "
            f"{len(destinations)}"
        )
    order = [axis for axis in range(x.ndim) if axis not in sources]
    for axis, position in sorted(zip(sources, destinations, strict=True), key=lambda pair: pair[1]):
        order.insert(position, axis)
    return _core.permute_dims(x, order)


def _positions(argument: str, axes: int | Sequence[int], rank: int) -> list[int]:
    given = index_list("moveaxis", argument, axes, names=False)
    positions = [axis + rank if axis < 0 else axis for axis in given]
    if any(not 0 <= axis < rank for axis in positions) or len(set(positions)) < len(positions):
        raise ArgumentError(
            f"moveaxis: {argument}: must be distinct axes of a tensor with {rank} axes; got {axes}"
        )
    return positions


def unstack(x: TensorLike, /, axis: Axis = 0) -> tuple[Tensor, ...]:
    """Split a tensor into its entries along an axis; the inverse of `stack`.

    Parameters
    ----------
    x : tensor_like
        A tensor with at least one axis.
    axis : int or str
        The axis, which the entries do not have.

    Raises
    ------
    ShapeError
        If the axis does not exist.

    Examples
    --------
    >>> import nxla as nx
    >>> [row.tolist() for row in nx.unstack([[1, 2], [3, 4]])]
    [[1, 2], [3, 4]]
    """
    x = as_tensor(x)
    return tuple(moveaxis(x, axis_position("unstack", x, axis), 0))


def split(
    x: TensorLike,
    positions: float | Sequence[int] | None = None,
    /,
    axis: Axis = 0,
    *,
    at: float | None = None,
    sections: int | None = None,
    size: int | None = None,
) -> tuple[Tensor, ...]:
    """Split a tensor into parts along an axis.

    An integer means a position in Nx, a number of parts in NumPy and JAX, and the size of a part in
    PyTorch, so an integer is passed by keyword.

    Parameters
    ----------
    x : tensor_like
        A tensor with at least one axis.
    positions : sequence of int or float, optional
        The indices at which all parts but the first begin; a negative index counts from the end. A
        float is the share of the first of two parts, rounded up.
    axis : int or str
        The axis.
    at : int or float, optional
        The index at which the second of two parts begins, or the share of the first part (Nx).
    sections : int, optional
        The number of parts, all of one size (NumPy, JAX).
    size : int, optional
        The size of each part; the last part has the remaining elements (PyTorch).

    Returns
    -------
    tuple of Tensor
        The parts.

    Raises
    ------
    ArgumentError
        If a part would be empty, positions do not increase, `sections` does not divide the axis, or
        not exactly one of `positions`, `at`, `sections` and `size` is given.

    Examples
    --------
    >>> import nxla as nx
    >>> x = nx.arange(6)
    >>> [part.tolist() for part in nx.split(x, [1, -1])]
    [[0], [1, 2, 3, 4], [5]]
    >>> [part.tolist() for part in nx.split(x, at=2)]
    [[0, 1], [2, 3, 4, 5]]
    >>> [part.tolist() for part in nx.split(x, sections=3)]
    [[0, 1], [2, 3], [4, 5]]
    >>> [part.tolist() for part in nx.split(x, size=4)]
    [[0, 1, 2, 3], [4, 5]]
    """
    x = as_tensor(x)
    if not isinstance(positions, float) and _is_integer(positions):
        raise ArgumentError(
            f"split: positions: an integer has three meanings; got {positions}; write "
            f"at={positions} for two parts (Nx), sections={positions} for equal parts (NumPy), or "
            f"size={positions} for parts of that size (PyTorch)"
        )
    given = [value for value in (positions, at, sections, size) if value is not None]
    if len(given) != 1:
        raise ArgumentError(
            "split: exactly one of positions, at, sections and size is required; "
            f"got {len(given)} of them"
        )
    axis = axis_position("split", x, axis)
    length = x.shape[axis]
    if sections is not None:
        count = as_count("split", "sections", sections, 1)
        if length % count:
            raise ArgumentError(
                f"split: sections: must divide the axis; got {count} for an axis of {length}"
            )
        size = length // count
    if size is not None:
        size = as_count("split", "size", size, 1)
        return _parts(x, range(size, length, size), axis, length)
    position: Any = positions if at is None else at
    if isinstance(position, float):
        if not math.isfinite(position):
            raise ArgumentError(f"split: at: must be finite; got {position}")
        return _parts(x, [-int(-position * length // 1)], axis, length)  # Rounds up.
    if at is not None:
        if not _is_integer(at):
            raise ArgumentError(
                f"split: at: must be an integer or a float; got {at!r}; pass several positions as "
                "positions, as in nx.split(x, [2, 4])"
            )
        position = [at]
    return _parts(x, position, axis, length)


def _is_integer(value: Any) -> bool:
    """Return whether a value is an integer of Python, NumPy or a scalar tensor."""
    return hasattr(value, "__index__") and not getattr(value, "ndim", 0)


def _parts(x: Tensor, positions: Iterable[int], axis: Axis, length: int) -> tuple[Tensor, ...]:
    """Return the parts between the ends of an axis and some positions."""
    try:
        positions = [operator.index(position) for position in positions]
    except TypeError:
        raise ArgumentError(
            f"split: positions: must be a sequence of integers; got {positions!r}"
        ) from None
    ends = [0, *(place + length if place < 0 else place for place in positions), length]
    if any(end <= begin for begin, end in pairwise(ends)):
        raise ArgumentError(
            f"split: positions: every part needs an element; got {positions} for an axis "
            f"of {length}"
        )
    return tuple(
        _core.slice_along_axis(x, begin, end - begin, axis) for begin, end in pairwise(ends)
    )


def repeat(x: TensorLike, repeats: TensorLike, /, axis: Axis | None = None) -> Tensor:
    """Repeat each element a number of times.

    Parameters
    ----------
    x : tensor_like
        Any tensor.
    repeats : int, sequence of int or tensor
        The number of copies, for all elements of the axis or for each.
    axis : int or str, optional
        The axis; None flattens the tensor first.

    Returns
    -------
    Tensor
        A tensor whose axis has the sum of the counts of all elements as its size; a vector if
        `axis` is None.

    Raises
    ------
    ArgumentError
        If the number of counts differs from the number of elements, or a count is negative.
    TraceError
        If the counts are traced, because they determine the shape of the result.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.repeat([1, 2], 2).tolist(), nx.repeat([1, 2], [1, 3]).tolist()
    ([1, 1, 2, 2], [1, 2, 2, 2])
    """
    x = as_tensor(x)
    if axis is None:
        x, axis = _core.flatten(x), 0
    place = axis_position("repeat", x, axis)
    size = x.shape[place]
    if isinstance(repeats, _core.Expr):
        raise TraceError(
            "repeat: repeats: must not be traced, because it determines the shape of the "
            "result; make it a static argument (static_argnames=)"
        )
    given = repeats if isinstance(repeats, int) else _core.tensor(repeats).tolist()
    entries = given if isinstance(given, list) else [given]
    counts = [as_count("repeat", "repeats", entry) for entry in entries]
    if len(counts) not in (1, size):
        raise ArgumentError(
            f"repeat: repeats: must have one entry for each of {size} elements; got {repeats}"
        )
    if len(counts) == 1:
        before, after = x.shape[:place], x.shape[place + 1 :]
        apart = _core.reshape(_core.rename(x, [None] * x.ndim), (*before, size, 1, *after))
        copies = _core.broadcast_to(apart, (*before, size, counts[0], *after))
        joined = _core.reshape(copies, (*before, size * counts[0], *after))
        return _core.rename(joined, x.names)
    from array import array

    # Python computes the indices, so that they are a constant in a trace.
    places = array("i", chain.from_iterable(map(itertools.repeat, range(size), counts)))
    return _core.take(x, _core.tensor(places, _core.s32), axis=axis)


def roll(
    x: TensorLike,
    /,
    shift: TensorLike | Sequence[TensorLike],
    axis: Axis | Sequence[Axis] | None = None,
) -> Tensor:
    """Shift elements cyclically along axes.

    Parameters
    ----------
    x : tensor_like
        Any tensor.
    shift : int, integer scalar, or a sequence of them
        The distance toward higher indices; one number for all axes, or one for each. A shift may be
        a tensor or a traced value.
    axis : int or str, or a sequence, optional
        The axes; None rolls the elements in row-major order.

    Returns
    -------
    Tensor
        A tensor with the shape and the dtype of `x`.

    Raises
    ------
    ArgumentError
        If the number of shifts differs from the number of axes.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.roll([1, 2, 3, 4], 1).tolist()
    [4, 1, 2, 3]
    """
    x = as_tensor(x)
    several = list(shift) if isinstance(shift, list | tuple) else None
    if axis is None:
        if several is not None:
            raise ArgumentError("roll: axis: must have one axis for each shift")
        return _core.reshape(roll(_core.flatten(x), shift, axis=0), x.shape)
    axes = index_list("roll", "axis", axis)
    shifts = [shift] * len(axes) if several is None else several
    if len(shifts) != len(axes):
        raise ArgumentError(
            f"roll: shift: must be {len(axes)}, one for each axis; got {len(shifts)}"
        )
    for one_axis, one_shift in zip(axes, shifts, strict=True):
        x = _roll_axis(x, one_shift, axis_position("roll", x, one_axis))
    return x


def _roll_axis(x: Tensor, shift: Any, axis: int) -> Tensor:
    """Shift elements along one axis."""
    size = x.shape[axis]
    if size == 0:
        return x
    if not isinstance(shift, _core.Tensor | _core.Expr):
        cut = -as_int("roll", "shift", shift) % size
        if cut == 0:
            return x
        left, right = _parts(x, [cut], axis, size)
        return _core.concat([right, left], axis=axis)
    if shift.ndim or shift.dtype.kind not in ("signed", "unsigned"):
        raise ArgumentError(
            f"roll: shift: must be an integer scalar; got {shift.dtype} of shape {shift.shape}"
        )
    # Only the start depends on the shift, so that the shape is known when a function is traced.
    wide = shift if shift.dtype == _core.u64 else _core.astype(shift, _core.s64)
    start = _core.subtract(size, _core.remainder(wide, size))
    return _core.slice_along_axis(_core.concat([x, x], axis=axis), start, size, axis)


def to_batched(
    x: TensorLike, size: int, /, *, leftover: Literal["repeat", "discard"] = "repeat"
) -> Iterator[Tensor]:
    """Iterate over the first axis in batches of one size.

    Parameters
    ----------
    x : tensor_like
        At least one axis.
    size : int
        The number of elements of the first axis in each batch.
    leftover : {"repeat", "discard"}
        ``"repeat"`` fills a shorter last batch with elements from the start; ``"discard"`` omits
        it.

    Returns
    -------
    iterator of Tensor
        Each batch is created on request, on the device of `x`. One program creates all full
        batches.

    Raises
    ------
    ArgumentError
        If the size is not positive, or larger than the axis.

    Examples
    --------
    >>> import nxla as nx
    >>> [batch.tolist() for batch in nx.to_batched([1, 2, 3, 4, 5], 2)]
    [[1, 2], [3, 4], [5, 1]]
    """
    (x,) = as_tensors("to_batched", x)
    if leftover not in ("repeat", "discard"):
        raise ArgumentError(
            f'to_batched: leftover: must be "repeat" or "discard"; got {leftover!r}'
        )
    if x.ndim == 0:
        raise ArgumentError("to_batched: x: must have at least one axis; got a scalar")
    length, size = x.shape[0], as_int("to_batched", "size", size)
    if not 0 < size <= length:
        raise ArgumentError(
            f"to_batched: size: must be from 1 to {length}, the size of the first axis; got {size}"
        )
    return _batches(x, size, length, leftover == "repeat")


def _batches(x: Tensor, size: int, length: int, repeat: bool) -> Iterator[Tensor]:
    # The start is data outside a trace, so that one program creates all full batches.
    at = int if _core.is_tracing() else _core.tensor
    for start in range(0, length - size + 1, size):
        yield _core.slice_along_axis(x, at(start), size)
    rest = length % size
    if rest and repeat:
        last = _core.slice_along_axis(x, length - rest, rest)
        yield _core.concat([last, _core.slice_along_axis(x, 0, size - rest)])


def pad_outer(
    x: TensorLike,
    rule: TensorLike | Literal["cyclic", "mirror", "reflect", "replicate"],
    widths: Sequence[tuple[int, int]],
    /,
) -> Tensor:
    """Pad a tensor with its own elements or with a number.

    Parameters
    ----------
    x : tensor_like
        Any tensor.
    rule : {"cyclic", "mirror", "reflect", "replicate"} or number
        The padding of ``a b c``: ``"cyclic"`` continues from the other end
        (``… b c | a b c | a b …``), ``"mirror"`` reflects with the outermost element twice
        (``… b a | a b c | c b …``), ``"reflect"`` with the outermost element once
        (``… c b | a b c | b a …``), and ``"replicate"`` repeats the outermost element. A number is
        the padding value.
    widths : sequence of (int, int)
        The numbers of padding elements before and after each axis.

    Returns
    -------
    Tensor
        A tensor with the padding elements added to the sizes of `x`.

    Raises
    ------
    ArgumentError
        If the rule does not exist, the number of pairs differs from the number of axes, a width is
        negative, or an axis has no elements to repeat.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.pad_outer([1, 2, 3], "reflect", [(2, 1)]).tolist()
    [3, 2, 1, 2, 3, 2]
    >>> nx.pad_outer([1, 2, 3], 0, [(0, 2)]).tolist()
    [1, 2, 3, 0, 0]
    """
    pairs = as_pairs("pad_outer", "widths", widths, "(low, high)")
    if isinstance(rule, str):
        return _core.pad_with_own(x, rule, pairs)
    return call_as("pad_outer", _core.pad, x, rule, pairs)


_hints.install(globals())
