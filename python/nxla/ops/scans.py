"""Indexed branches and associative scans."""

from __future__ import annotations

from functools import partial

from nxla import _core, _hints, tree
from nxla._values import (
    as_bool,
    as_int,
    as_list,
    as_tensor,
    new_tensor,
    new_tensors,
    require_callable,
)
from nxla.errors import ArgumentError, ShapeError
from nxla.ops.control import _branch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeVar, overload

    from nxla._core import Tensor
    from nxla._types import Leaf, TensorLike

    R = TypeVar("R")


if TYPE_CHECKING:

    @overload
    def switch(
        index: TensorLike, branches: Sequence[Callable[..., complex]], /, *operands: Any
    ) -> Any: ...

    @overload
    def switch(
        index: TensorLike, branches: Sequence[Callable[..., Leaf]], /, *operands: Any
    ) -> Tensor: ...

    @overload
    def switch(index: TensorLike, branches: Sequence[Callable[..., R]], /, *operands: Any) -> R: ...


def switch(index: TensorLike, branches: Sequence[Callable[..., Any]], /, *operands: Any) -> Any:
    """Run one of several functions, selected by an index.

    Parameters
    ----------
    index : integer scalar
        The index of the branch, clamped to the valid range.
    branches : sequence of callable
        Functions of the operands.
    *operands
        Tensors, or containers of them. Branches receive numbers and arrays as tensors.

    Returns
    -------
    tensor or container
        The result of the branch, as for `cond`.

    Raises
    ------
    ArgumentError
        If `branches` is empty, or branches return different structures.
    DTypeError
        If the index is not an integer.
    ShapeError
        If the index is not a scalar.

    Examples
    --------
    >>> import nxla as nx
    >>> f = nx.jit(lambda i, x: nx.switch(i, [nx.sin, nx.cos, nx.zeros_like], x))
    >>> f(1, 0.0).item(), f(9, 1.0).item()
    (1.0, 0.0)
    """
    branches = as_list("switch", "branches", branches)
    if not branches:
        raise ArgumentError("switch: branches: must not be empty")
    for number, branch in enumerate(branches):
        require_callable("switch", f"branches[{number}]", branch)
    operands = new_tensors(operands)
    index = as_tensor(index)
    if index.dtype.kind not in ("signed", "unsigned", "pred"):
        raise _core.DTypeError(f"switch: index: must be an integer; got {index.dtype}")
    if index.ndim:
        raise ShapeError(f"switch: index: must be a scalar; got shape {index.shape}")
    if len(branches) == 1:
        return new_tensors(branches[0](*operands))
    *calls, otherwise = (partial(branch, *operands) for branch in branches)
    predicates = [partial(_core.less_equal, index, number) for number in range(len(calls))]
    if _core.is_tracing():
        # A predicate outside of the conditional would be an operand of each of its regions.
        return _core.cond(list(zip(predicates, calls, strict=True)), otherwise, "switch", True)
    clauses: list[tuple[TensorLike, Callable[[], Any]]]
    clauses = [(holds(), call) for holds, call in zip(predicates, calls, strict=True)]
    return _branch("switch", clauses, otherwise)


def associative_scan(
    f: Callable[[Any, Any], Any], xs: Any, /, reverse: bool = False, axis: int = 0
) -> Any:
    """Combine each element of an axis with all elements before it, in parallel.

    The function is called with many pairs at once, about ``2 log2(n)`` times. It must be
    associative: ``f(f(a, b), c)`` equals ``f(a, f(b, c))``. The order of computation is from
    Blelloch, "Prefix sums and their applications" (1990).

    Parameters
    ----------
    f : callable
        A function from two containers like `xs`, whose tensors have some entries along the axis, to
        one container, entry by entry.
    xs : tensor or container
        Tensors that have the same size along the axis.
    reverse : bool
        If True, start with the last element.
    axis : int
        The axis.

    Returns
    -------
    tensor or container
        Like `xs`; entry ``i`` is the combination of the entries up to ``i``.

    Raises
    ------
    ArgumentError
        If the sizes differ, `xs` has no tensor, or the function returns another structure.
    ShapeError
        If a tensor does not have the axis.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.associative_scan(nx.multiply, nx.tensor([1, 2, 3, 4])).tolist()
    [1, 2, 6, 24]
    >>> step = lambda p, q: (p[0] * q[0], p[1] * q[0] + q[1])  # x -> a x + b, one after another
    >>> [part.tolist() for part in nx.associative_scan(step, (nx.full(3, 2.0), nx.ones(3)))]
    [[2.0, 4.0, 8.0], [1.0, 3.0, 7.0]]
    """
    require_callable("associative_scan", "f", f)
    reverse = as_bool("associative_scan", "reverse", reverse)
    axis = as_int("associative_scan", "axis", axis)
    leaves, structure = tree.flatten(xs)
    leaves = [new_tensor(x) for x in leaves]
    sizes = {_size(x, axis) for x in leaves}
    if len(sizes) != 1:
        shapes = ", ".join(str(x.shape) for x in leaves) or "none"
        raise ArgumentError(
            f"associative_scan: xs: tensors must have the same size along axis {axis}; got "
            f"shapes {shapes}"
        )
    # Move the axis to the front, so that slices along it are simple.
    rows = [
        _core.flip(x, axis=0) if reverse else x for x in (_move_axis(x, axis, 0) for x in leaves)
    ]

    def combine(first: list[Tensor], second: list[Tensor]) -> list[Tensor]:
        sides = ([_move_axis(x, 0, axis) for x in side] for side in (first, second))
        result = f(*(structure.unflatten(side) for side in sides))
        found, kind = tree.flatten(result)
        if kind != structure:
            raise ArgumentError(
                f"associative_scan: f: result must have the structure {structure}; got {kind}"
            )
        results = [as_tensor(x) for x in found]
        # Results of another size would combine without end.
        for x, row in zip(results, first, strict=True):
            expected = _move_axis(row, 0, axis).shape
            if x.shape != expected:
                raise ShapeError(
                    f"associative_scan: f: results must have the shapes of the first argument, "
                    f"{expected}; got {x.shape}"
                )
        return [_move_axis(x, axis, 0) for x in results]

    done = _prefixes(combine, rows)
    done = [_core.flip(x, axis=0) if reverse else x for x in done]
    return structure.unflatten([_move_axis(x, 0, axis) for x in done])


def _size(x: Tensor, axis: int) -> int:
    if not -x.ndim <= axis < x.ndim:
        raise ShapeError(f"associative_scan: axis: must be an axis of shape {x.shape}; got {axis}")
    return x.shape[axis]


def _move_axis(x: Tensor, source: int, destination: int) -> Tensor:
    if source == destination:
        return x
    order = list(range(x.ndim))
    order.insert(destination % x.ndim, order.pop(source % x.ndim))
    return _core.permute_dims(x, order)


def _prefixes(
    combine: Callable[[list[Tensor], list[Tensor]], list[Tensor]], rows: list[Tensor]
) -> list[Tensor]:
    """Combine rows with all rows before them: combine neighbors first, then their results."""
    levels = []
    while rows[0].shape[0] > 1:
        levels.append(rows)
        pairs = rows[0].shape[0] // 2
        rows = combine(
            [_every_second(x, 0, pairs) for x in rows], [_every_second(x, 1, pairs) for x in rows]
        )
    for whole in reversed(levels):
        count = whole[0].shape[0]
        # `rows` holds the odd elements; each even element combines with the odd one before it.
        evens = (count - 1) // 2
        first = [_core.slice_along_axis(x, 0, 1) for x in whole]
        if evens:
            later = combine(
                [_core.slice_along_axis(x, 0, evens) for x in rows],
                [_every_second(x, 2, evens) for x in whole],
            )
            first = [_core.concat([x, y], axis=0) for x, y in zip(first, later, strict=True)]
        rows = [_interleave(x, y, count) for x, y in zip(first, rows, strict=True)]
    return rows


def _every_second(x: Tensor, start: int, count: int) -> Tensor:
    length = max(0, 2 * count - 1)
    return _core.slice_along_axis(x, start, length, stride=2)


def _interleave(even: Tensor, odd: Tensor, count: int) -> Tensor:
    """Interleave the rows of two tensors."""
    if even.shape[0] > odd.shape[0]:
        # The last row has no partner.
        odd = _core.concat([odd, _core.slice_along_axis(even, 0, 1)], axis=0)
    pairs = _core.stack([even, odd], axis=1)
    rows = _core.reshape(pairs, (2 * even.shape[0], *even.shape[1:]))
    return _core.slice_along_axis(rows, 0, count)


_hints.install(globals())
