"""Reductions: many elements become one, along some axes or all."""

from __future__ import annotations

import itertools
import math

from nxla import _core, _hints
from nxla._signatures import run_traced
from nxla._values import as_bool, as_tensors, require_callable
from nxla.errors import ShapeError
from nxla.ops.metadata import axis_positions

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
        If True, the reduced axes are kept with size 1.
    dtype : dtype_like, optional
        The dtype to fold in, and of the result; by default the promoted dtype of `x` and `initial`.

    Returns
    -------
    Tensor
        The last accumulators, without the reduced axes.

    Raises
    ------
    ShapeError
        If `initial` is not a scalar.
    ArgumentError
        If the function does not return one scalar.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.reduce([1, 2, 3], 0, lambda element, total: total + element**2).item()
    14
    """
    require_callable("reduce", "function", function)
    keepdims = as_bool("reduce", "keepdims", keepdims)

    def fold(x: Tensor, initial: Tensor) -> Tensor:
        if dtype is not None:
            x, initial = _core.astype(x, dtype), _core.astype(initial, dtype)
        result = _core.fold(x, initial, function, axis, keepdims)
        if result is None:
            return _fold_in_a_loop(x, initial, function, axis, keepdims)
        return result

    return run_traced(fold, "reduce", x, initial)


def _fold_in_a_loop(
    x: Tensor,
    initial: Tensor,
    function: Callable[[Tensor, Tensor], TensorLike],
    axis: Axes | None,
    keepdims: bool,
) -> Tensor:
    """Fold with a function that uses vectorized values, so that each entry has its own function.

    One step of the loop folds one element of each row. The rows are vectorized, so that the
    function sees scalars.
    """
    from nxla._loop_elements import row_at
    from nxla.ops.loops import fori

    x, initial = as_tensors("reduce", x, initial)
    if initial.ndim:
        raise ShapeError(f"reduce: initial: must be a scalar; got shape {initial.shape}")
    dtype = _core.result_type(x, initial)
    axes = axis_positions("reduce", x, axis)
    kept = [position for position in range(x.ndim) if position not in axes]
    sizes = [x.shape[position] for position in kept]
    count = math.prod(x.shape[position] for position in axes)
    rows = _core.reshape(_core.permute_dims(x, [*axes, *kept]), (count, *sizes))
    number = next(_NUMBERS)
    own = [(f"reduce:{number}.{position}", size) for position, size in enumerate(sizes)]

    def step(index: Tensor, accumulator: Tensor) -> Tensor:
        row = row_at(rows, index)
        element = _core.vectorize(row, own) if own else row
        return _core.astype(function(element, accumulator), dtype)

    result = fori(0, count, step, _core.astype(initial, dtype))
    outer = [pair for pair in result.vectorized_axes if pair not in own]
    shape = [1 if p in axes else x.shape[p] for p in range(x.ndim) if keepdims or p in kept]
    if not own:
        return _core.reshape(result, shape) if shape else result
    # The axes of the rows follow the other vectorized axes.
    zeros = _core.full([size for _, size in (*outer, *own)], 0, dtype)
    result = _core.align_vectors([_core.vectorize(zeros, [*outer, *own]), result], False, True)[1]
    return _core.revectorize(result, outer, shape, None)


#: Counter for unique axis names of nested folds.
_NUMBERS = itertools.count()


_hints.install(globals())
