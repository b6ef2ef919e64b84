"""Reductions: many elements become one, along some axes or all."""

from __future__ import annotations

from nxla import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from nxla._core import Tensor
    from nxla._types import Axes, DTypeLike, TensorLike


def reduce(
    x: TensorLike,
    initial: TensorLike,
    function: Callable[[Tensor, Tensor], TensorLike],
    /,
    *,
    axis: Axes | None = None,
    keepdims: bool = False,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Fold the elements with a user-defined function.

    Parameters
    ----------
    x : tensor_like
        Any tensor.
    initial : number or scalar tensor
        The accumulator at the start.
    function : callable
        A function of ``(element, accumulator)``, both scalars, that returns the new accumulator.
        The order of elements is not specified, so the function should be associative.
    axis : int or str, or a sequence, optional
        The axes; all by default.
    keepdims : bool
        If True, these axes stay, with size 1.
    dtype : dtype_like, optional
        The dtype to fold in, and of the result; by default the one that `x` and `initial` have
        together.

    Raises
    ------
    ShapeError
        If `initial` or the result of the function is not a scalar.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.reduce([1, 2, 3], 0, lambda element, total: total + element**2).item()
    14
    """

    def fold(x: Tensor, initial: Tensor) -> Tensor:
        if dtype is not None:
            x, initial = _core.astype(x, dtype), _core.astype(initial, dtype)
        return _core.fold(x, initial, function, axis, keepdims)

    return _traced(fold, "reduce", x, initial)


def _traced(function: Callable[..., Tensor], name: str, *operands: TensorLike) -> Tensor:
    """Run a function that needs a trace, in the current trace or in a new one."""
    if _core.is_tracing():
        return function(*operands)
    # Keep Python scalars, which take the dtype of the other operands.
    plain = [isinstance(operand, bool | int | float | complex) for operand in operands]

    def call(*tensors: Tensor) -> Tensor:
        given = iter(tensors)
        pairs = zip(operands, plain, strict=True)
        return function(*(operand if is_plain else next(given) for operand, is_plain in pairs))

    tensors = (x for x, is_plain in zip(operands, plain, strict=True) if not is_plain)
    return _core.Function(call, name)(*(_core.tensor(x) for x in tensors))
