"""Sliding windows and running totals."""

from __future__ import annotations

from nxla import _core, _hints
from nxla._signatures import run_traced
from nxla._values import require_callable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from nxla._core import Tensor
    from nxla._types import Padding, PerAxis, TensorLike


def window_reduce(
    x: TensorLike,
    initial: TensorLike,
    function: Callable[[Tensor, Tensor], TensorLike],
    dimensions: PerAxis,
    /,
    *,
    strides: PerAxis | None = None,
    padding: Padding = "valid",
    dilations: PerAxis | None = None,
) -> Tensor:
    """Fold each window with a user-defined function.

    Parameters
    ----------
    x : tensor_like
        Any tensor.
    initial : number or scalar tensor
        The accumulator at the start of each window, and the value of padding.
    function : callable
        A function of ``(element, accumulator)``, both scalars, that returns the new accumulator.
    dimensions, strides, padding, dilations
        As for `window_sum`.

    Returns
    -------
    Tensor
        The last accumulator of each window, in the dtype of `x`, with the shape that `window_sum`
        returns.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.window_reduce([1, 2, 3], 0, lambda element, total: total + element, (2,)).tolist()
    [3, 5]
    """
    require_callable("window_reduce", "function", function)

    def fold(x: Tensor, initial: Tensor) -> Tensor:
        return _core.window_reduce(x, initial, function, dimensions, strides, padding, dilations)

    return run_traced(fold, "window_reduce", x, initial)


_hints.install(globals())
