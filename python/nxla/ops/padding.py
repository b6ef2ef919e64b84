"""Elements beyond the ends of axes: numbers, or a tensor's own."""

from __future__ import annotations

from nxla import _core
from nxla.errors import ArgumentError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from nxla._core import Tensor
    from nxla._types import TensorLike


def pad(
    x: TensorLike, value: TensorLike, config: Sequence[tuple[int, int] | tuple[int, int, int]], /
) -> Tensor:
    """Put a number around the elements, and between them.

    Parameters
    ----------
    x : tensor_like
        Any tensor.
    value : number or scalar tensor
        What to fill in.
    config : sequence of tuples
        For each axis ``(before, after)`` or ``(before, after, between)``. Negative numbers cut
        elements off.

    Raises
    ------
    ShapeError
        If there is not one tuple for each axis, or the value is no scalar.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.pad([1, 2], 0, [(1, 2)]).tolist(), nx.pad([1, 2, 3], 0, [(-1, 0, 1)]).tolist()
    ([0, 1, 2, 0, 0], [0, 2, 0, 3])
    """
    return _core.pad(x, value, [(*axis, 0) if len(axis) == 2 else axis for axis in config])


def pad_outer(
    x: TensorLike,
    rule: TensorLike | Literal["cyclic", "mirror", "reflect", "replicate"],
    widths: Sequence[tuple[int, int]],
    /,
) -> Tensor:
    """Put a tensor's own elements, or a number, beyond the ends of its axes.

    Parameters
    ----------
    x : tensor_like
        Any tensor.
    rule : {"cyclic", "mirror", "reflect", "replicate"} or number
        What stands beyond the ends of ``a b c``: the elements from the other end
        (``… b c | a b c | a b …``), those on this side of the edge with the outermost one twice
        (``… b a | a b c | c b …``) or once (``… c b | a b c | b a …``), or the outermost one again
        and again. A number stands for itself.
    widths : sequence of (int, int)
        How many before and after the elements of each axis.

    Raises
    ------
    ArgumentError
        If there is no such rule, if there is not one pair for each axis, if a width is negative,
        or if there is nothing to repeat.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.pad_outer([1, 2, 3], "reflect", [(2, 1)]).tolist()
    [3, 2, 1, 2, 3, 2]
    >>> nx.pad_outer([1, 2, 3], 0, [(0, 2)]).tolist()
    [1, 2, 3, 0, 0]
    """
    if isinstance(rule, str):
        return _core.pad_outer(x, rule, widths)
    if any(len(width) != 2 for width in widths):
        raise ArgumentError(f"pad_outer: widths are pairs, got {list(widths)}")
    return pad(x, rule, widths)
