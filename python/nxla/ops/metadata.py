"""Properties of tensors that need no computation."""

from __future__ import annotations

from nxla import _core, _hints, tree
from nxla._values import as_count, as_tensor, index_list, to_index
from nxla.errors import ArgumentError, ShapeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from nxla._core import Tensor
    from nxla._types import Axes, Axis, TensorLike


def axis_index(x: TensorLike, axis: Axis, /) -> int:
    """Return the position of an axis.

    Parameters
    ----------
    x : tensor_like
        Any tensor.
    axis : int or str
        The axis; negative numbers count from the end.

    Returns
    -------
    int
        The position from 0 on.

    Raises
    ------
    ShapeError
        If the axis does not exist.
    ArgumentError
        If `axis` is neither an integer nor a name.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.axis_index(nx.zeros((2, 3), names=["row", None]), -1)
    1
    """
    return axis_position("axis_index", as_tensor(x), axis)


def axis_size(x: TensorLike, axis: Axis, /) -> int:
    """Return the size of an axis. Parameters and errors are the same as for `axis_index`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.axis_size(nx.zeros((2, 3), names=["row", None]), "row")
    2
    """
    x = as_tensor(x)
    return x.shape[axis_position("axis_size", x, axis)]


def axis_position(function: str, x: Tensor, axis: Axis, argument: str = "axis") -> int:
    """Return the position of an axis; errors name the function and its argument."""
    position = to_index(axis)
    if isinstance(axis, str):
        if axis in x.names:
            return x.names.index(axis)
    elif position is None:
        raise ArgumentError(
            f"{function}: {argument}: must be an int or a name; got {type(axis).__name__}"
        )
    elif -x.ndim <= position < x.ndim:
        return position % x.ndim
    raise ShapeError(
        f"{function}: {argument}: must be an axis of shape {x.shape} with names {x.names}; "
        f"got {axis!r}"
    )


def axis_positions(function: str, x: Tensor, axis: Axes | None) -> list[int]:
    """Return the positions of distinct axes, by default all axes; errors name the function."""
    if axis is None:
        return list(range(x.ndim))
    is_single = isinstance(axis, str) or to_index(axis) is not None or not hasattr(axis, "__iter__")
    given: Any = [axis] if is_single else axis
    positions = [axis_position(function, x, each) for each in given]
    if len(set(positions)) < len(positions):
        raise ShapeError(f"{function}: axes: must be distinct; got {axis!r}")
    return positions


def broadcast_shapes(*shapes: int | Sequence[int]) -> tuple[int, ...]:
    """Return the shape that tensors of these shapes broadcast to.

    Parameters
    ----------
    *shapes : int or sequence of int
        The shapes; an integer is the size of a vector.

    Returns
    -------
    tuple of int
        The common shape.

    Raises
    ------
    ShapeError
        If they do not broadcast.
    ArgumentError
        If a size is not an integer or is negative.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.broadcast_shapes((2, 1), (3,), ())
    (2, 3)
    """
    checked = []
    for shape in shapes:
        sizes = index_list("broadcast_shapes", "shapes", shape, names=False)
        checked.append([as_count("broadcast_shapes", "shapes", size) for size in sizes])
    common = common_shape(checked)
    if common is None:
        raise ShapeError(
            f"broadcast_shapes: shapes: must broadcast; got {', '.join(map(str, shapes))}"
        )
    return common


def common_shape(shapes: Sequence[Sequence[int]]) -> tuple[int, ...] | None:
    """Return the broadcast shape of several shapes; None if the shapes do not broadcast."""
    common: list[int] = []
    for shape in shapes:
        longer = max(len(shape), len(common))
        left, right = ([1] * (longer - len(part)) + list(part) for part in (common, shape))
        common = [b if a == 1 else a for a, b in zip(left, right, strict=True)]
        if any(b not in (1, size) for b, size in zip(right, common, strict=True)):
            return None
    return tuple(common)


def compatible(left: Any, right: Any, /) -> bool:
    """Return whether two containers have equal structures and types.

    Parameters
    ----------
    left, right : container
        Tensors, templates, traced values and numbers, at any depth.

    Returns
    -------
    bool
        True if the structures, and the dtypes, shapes and vectorized axes of all leaves, are equal.
        Names of axes must be equal, or missing on one side.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.compatible({"a": 1}, {"a": 2}), nx.compatible(1, 1.0)
    (True, False)
    >>> nx.compatible(nx.zeros(2, names=["x"]), nx.zeros(2))
    True
    """
    return leaves_fit(left, right, _alike)


def leaves_fit(left: Any, right: Any, fits: Callable[[Any, Any], bool]) -> bool:
    """Return whether two containers have equal structures and every pair of leaves fits."""
    leaves, structure = tree.flatten(left)
    others, other_structure = tree.flatten(right)
    return structure == other_structure and all(map(fits, leaves, others))


def _alike(left: Any, right: Any) -> bool:
    known = (_core.Tensor, _core.Expr, _core.Template)
    left, right = (x if isinstance(x, known) else _core.tensor(x) for x in (left, right))
    if left.dtype != right.dtype or tuple(left.shape) != tuple(right.shape):
        return False
    if left.vectorized_axes != right.vectorized_axes:
        return False
    pairs = zip(left.names, right.names, strict=True)
    return all(a is None or b is None or a == b for a, b in pairs)


_hints.install(globals())
