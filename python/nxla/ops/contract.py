"""Products that add up along axes: matrix products and convolutions."""

from __future__ import annotations

from nxla import _core
from nxla.errors import ArgumentError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from nxla._core import Tensor
    from nxla._types import TensorLike


def tensordot(
    x1: TensorLike,
    x2: TensorLike,
    /,
    *,
    axes: int | tuple[Sequence[int], Sequence[int]] = 2,
) -> Tensor:
    """Multiply and add up along the last axes of one and the first of the other, or given ones.

    Parameters
    ----------
    x1, x2 : tensor_like
        Operands.
    axes : int or (sequence of int, sequence of int)
        How many axes, or which of each.

    Raises
    ------
    ShapeError
        If paired axes differ in size.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.tensordot([[1, 2], [3, 4]], [[1, 0], [0, 1]]).item()
    5
    """
    if not isinstance(axes, int):
        left, right = axes
        return _core.dot(x1, x2, x1_contract=list(left), x2_contract=list(right))
    if axes < 0:
        raise ArgumentError(f"tensordot: axes must not be negative, got {axes}")
    last, first = list(range(-axes, 0)), list(range(axes))
    return _core.dot(x1, x2, x1_contract=last, x2_contract=first)
