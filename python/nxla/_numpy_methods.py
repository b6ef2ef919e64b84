"""Methods that NumPy functions call: ``np.sum(x)`` is ``x.sum(axis=None, out=None)``.

Their parameters equal the parameters of the methods of NumPy arrays. Tensors do not change, so
`out` must be None. Each method calls a function of the package.
"""

from __future__ import annotations

import nxla as nx
from nxla import _core, _hints
from nxla._values import as_tensor, call_as, float_dtype, to_index, widen
from nxla.errors import ArgumentError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Literal

    from nxla._core import Tensor
    from nxla._types import Axes, Axis, DTypeLike, TensorLike

#: NumPy's names of sorting algorithms. nxla has one algorithm, which is stable.
KINDS = (None, "quicksort", "mergesort", "heapsort", "stable")


def _no_out(function: str, out: Any) -> None:
    """Reject an output argument."""
    if out is not None:
        raise ArgumentError(
            f"{function}: out: must be None, because tensors do not change; got a "
            f"{type(out).__name__}; use the result"
        )


def _mask(x: Tensor, where: TensorLike | None, value: TensorLike) -> Tensor:
    """Return a tensor with a value in place of the elements that `where` excludes."""
    return x if where is None else _core.where(where, x, value)


def _no_where(function: str, where: Any) -> None:
    """Reject `where` without `initial`, because it may exclude all elements."""
    if where is not None:
        raise ArgumentError(
            f"{function}: initial: is required with where=, which may exclude all elements"
        )


def _combine(extreme: Callable[..., Tensor], found: Tensor, initial: TensorLike) -> Tensor:
    """Return the extreme of a result and `initial`: a boolean, and not an integer, for booleans."""
    is_boolean = found.dtype.kind == as_tensor(initial).dtype.kind == "pred"
    return _convert(extreme(found, initial), "pred" if is_boolean else None)


def _convert(x: Tensor, dtype: DTypeLike | None) -> Tensor:
    """Convert a tensor to a dtype, unless the dtype is None."""
    return x if dtype is None else _core.astype(x, dtype)


def all(
    x: Tensor,
    /,
    axis: Axes | None = None,
    out: None = None,
    *,
    keepdims: bool = False,
    where: TensorLike | None = None,
) -> Tensor:
    """Return whether all elements are true: see `nxla.all`.

    Examples
    --------
    >>> import nxla as nx
    >>> import numpy as np
    >>> np.all(nx.tensor([True, False])).item()
    False
    """
    _no_out("all", out)
    return _core.all(_mask(x, where, True), axis, keepdims=keepdims)


def any(
    x: Tensor,
    /,
    axis: Axes | None = None,
    out: None = None,
    *,
    keepdims: bool = False,
    where: TensorLike | None = None,
) -> Tensor:
    """Return whether any element is true: see `nxla.any`.

    Examples
    --------
    >>> import nxla as nx
    >>> import numpy as np
    >>> np.any(nx.tensor([True, False])).item()
    True
    """
    _no_out("any", out)
    return _core.any(_mask(x, where, False), axis, keepdims=keepdims)


def argmax(
    x: Tensor,
    /,
    axis: Axis | None = None,
    out: None = None,
    *,
    keepdims: bool = False,
    tie_break: Literal["low", "high"] = "low",
    dtype: DTypeLike = "int32",
) -> Tensor:
    """Find the index of the largest element: see `nxla.argmax`.

    Examples
    --------
    >>> import nxla as nx
    >>> import numpy as np
    >>> np.argmax(nx.tensor([1, 3, 2])).item()
    1
    """
    _no_out("argmax", out)
    return _core.argmax(x, axis, keepdims=keepdims, tie_break=tie_break, dtype=dtype)


def argmin(
    x: Tensor,
    /,
    axis: Axis | None = None,
    out: None = None,
    *,
    keepdims: bool = False,
    tie_break: Literal["low", "high"] = "low",
    dtype: DTypeLike = "int32",
) -> Tensor:
    """Find the index of the smallest element: see `nxla.argmin`.

    Examples
    --------
    >>> import nxla as nx
    >>> import numpy as np
    >>> np.argmin(nx.tensor([2, 1, 3])).item()
    1
    """
    _no_out("argmin", out)
    return _core.argmin(x, axis, keepdims=keepdims, tie_break=tie_break, dtype=dtype)


def argsort(
    x: Tensor,
    /,
    axis: Axis = -1,
    kind: str | None = None,
    order: None = None,
    *,
    descending: bool = False,
    stable: bool | None = True,
    dtype: DTypeLike = "int32",
) -> Tensor:
    """Find the indices that sort an axis: see `nxla.argsort`.

    The argument `kind` accepts the names of NumPy, and has no effect.

    Examples
    --------
    >>> import nxla as nx
    >>> import numpy as np
    >>> np.argsort(nx.tensor([30, 10, 20])).tolist()
    [1, 2, 0]
    """
    if kind not in KINDS or order is not None:
        raise ArgumentError(
            f"argsort: kind: must be one of {', '.join(map(repr, KINDS))}, with order=None; "
            f"got {kind!r} and {order!r}"
        )
    stable = stable is None or stable
    return _core.argsort(x, axis, descending=descending, stable=stable, dtype=dtype)


def clip(
    x: Tensor,
    /,
    min: TensorLike | None = None,
    max: TensorLike | None = None,
    out: None = None,
) -> Tensor:
    """Limit the elements to a range: see `nxla.clip`.

    Examples
    --------
    >>> import nxla as nx
    >>> import numpy as np
    >>> np.clip(nx.tensor([1, 5, 9]), 2, 6).tolist()
    [2, 5, 6]
    """
    _no_out("clip", out)
    return _core.clip(x, min, max)


def cumprod(
    x: Tensor,
    /,
    axis: Axis | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    *,
    include_initial: bool = False,
    reverse: bool = False,
) -> Tensor:
    """Return cumulative products along an axis, or of all elements: see `nxla.cumulative_prod`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.tensor([[1, 2], [3, 4]]).cumprod().tolist()
    [1, 2, 6, 24]
    """
    _no_out("cumprod", out)
    x = nx.flatten(x) if axis is None else x
    options = {"dtype": dtype, "include_initial": include_initial, "reverse": reverse}
    return call_as("cumprod", _core.cumulative_prod, x, axis, **options)


def cumsum(
    x: Tensor,
    /,
    axis: Axis | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    *,
    include_initial: bool = False,
    reverse: bool = False,
) -> Tensor:
    """Return cumulative sums along an axis, or of all elements: see `nxla.cumulative_sum`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.tensor([[1, 2], [3, 4]]).cumsum().tolist()
    [1, 3, 6, 10]
    """
    _no_out("cumsum", out)
    x = nx.flatten(x) if axis is None else x
    options = {"dtype": dtype, "include_initial": include_initial, "reverse": reverse}
    return call_as("cumsum", _core.cumulative_sum, x, axis, **options)


def max(
    x: Tensor,
    /,
    axis: Axes | None = None,
    out: None = None,
    *,
    keepdims: bool = False,
    initial: TensorLike | None = None,
    where: TensorLike | None = None,
) -> Tensor:
    """Find the largest element: see `nxla.max`.

    With `where`, which may select no element, `initial` is required.

    Examples
    --------
    >>> import nxla as nx
    >>> import numpy as np
    >>> np.max(nx.tensor([[1, 5], [3, 4]]), axis=0).tolist()
    [3, 5]
    """
    _no_out("max", out)
    if initial is None:
        _no_where("max", where)
        return _core.max(x, axis, keepdims=keepdims)
    found = _core.max(_mask(x, where, initial), axis, keepdims=keepdims)
    return _combine(_core.maximum, found, initial)


def mean(
    x: Tensor,
    /,
    axis: Axes | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    *,
    keepdims: bool = False,
    where: TensorLike | None = None,
) -> Tensor:
    """Return the mean of the elements that `where` selects, in a dtype: see `nxla.mean`.

    The mean of no element is NaN.

    Examples
    --------
    >>> import nxla as nx
    >>> import numpy as np
    >>> np.mean(nx.tensor([[1.0, 2.0], [3.0, 4.0]]), axis=1, dtype="f64").tolist()
    [1.5, 3.5]
    >>> x = nx.tensor([1.0, 2.0, 6.0])
    >>> np.mean(x, where=x < 5).item()
    1.5
    """
    _no_out("mean", out)
    x = _convert(x, dtype)
    if where is None:
        return _convert(_core.mean(x, axis, keepdims=keepdims), dtype)
    mean = _mean_of(widen(x), axis, where, keepdims=keepdims)
    return _core.astype(mean, float_dtype(x) if dtype is None else dtype)


def min(
    x: Tensor,
    /,
    axis: Axes | None = None,
    out: None = None,
    *,
    keepdims: bool = False,
    initial: TensorLike | None = None,
    where: TensorLike | None = None,
) -> Tensor:
    """Find the smallest element: see `nxla.min`.

    With `where`, which may select no element, `initial` is required.

    Examples
    --------
    >>> import nxla as nx
    >>> import numpy as np
    >>> np.min(nx.tensor([[1, 5], [3, 4]]), axis=0).tolist()
    [1, 4]
    """
    _no_out("min", out)
    if initial is None:
        _no_where("min", where)
        return _core.min(x, axis, keepdims=keepdims)
    found = _core.min(_mask(x, where, initial), axis, keepdims=keepdims)
    return _combine(_core.minimum, found, initial)


def prod(
    x: Tensor,
    /,
    axis: Axes | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    *,
    keepdims: bool = False,
    initial: TensorLike | None = None,
    where: TensorLike | None = None,
) -> Tensor:
    """Return the product of `initial` and the elements that `where` selects: see `nxla.prod`.

    Examples
    --------
    >>> import nxla as nx
    >>> import numpy as np
    >>> np.prod(nx.tensor([2, 3, 4])).item()
    24
    """
    _no_out("prod", out)
    found = _core.prod(_mask(x, where, 1), axis, dtype, keepdims=keepdims)
    return found if initial is None else found * initial


def round(x: Tensor, /, decimals: int = 0, out: None = None) -> Tensor:
    """Round to a number of decimals, halves to even: see `nxla.round`.

    A negative number of decimals rounds to tens, hundreds and so on.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.tensor([1.25, 12.5], "f64").round(1).tolist()
    [1.2, 12.5]
    >>> round(nx.tensor([1234, 1250]), -2).tolist()
    [1200, 1200]
    """
    _no_out("round", out)
    digits = to_index(decimals)
    if digits is None:
        raise ArgumentError(f"round: decimals: must be an int; got {decimals!r}")
    whole = x.dtype.kind in ("signed", "unsigned", "pred")
    if digits == 0 or (whole and digits > 0):
        return _core.round(x)
    if whole:
        return _core.astype(round(_core.astype(x, "f64"), digits), x.dtype)
    scale = 10.0 ** abs(digits)
    return _core.round(x * scale) / scale if digits > 0 else _core.round(x / scale) * scale


def std(
    x: Tensor,
    /,
    axis: Axes | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: float = 0,
    *,
    correction: float = 0,
    keepdims: bool = False,
    where: TensorLike | None = None,
) -> Tensor:
    """Return the standard deviation of the elements that `where` selects: see `nxla.std`.

    NumPy's argument `ddof` is called `correction` in the Array API standard.

    Examples
    --------
    >>> import nxla as nx
    >>> import numpy as np
    >>> np.std(nx.tensor([1.0, 3.0])).item(), np.std(nx.tensor([1.0, 3.0, 5.0]), ddof=1).item()
    (1.0, 2.0)
    """
    _no_out("std", out)
    correction = _correction("std", ddof, correction)
    x = _convert(x, dtype)
    if where is None:
        return _core.std(x, axis, correction=correction, keepdims=keepdims)
    variance = _variance_of(widen(x), axis, where, correction, keepdims=keepdims)
    return _core.astype(_core.sqrt(variance), float_dtype(x))


def sum(
    x: Tensor,
    /,
    axis: Axes | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    *,
    keepdims: bool = False,
    initial: TensorLike | None = None,
    where: TensorLike | None = None,
) -> Tensor:
    """Return the sum of `initial` and the elements that `where` selects: see `nxla.sum`.

    Examples
    --------
    >>> import nxla as nx
    >>> import numpy as np
    >>> np.sum(nx.tensor([[1, 2], [3, 4]]), axis=0).tolist()
    [4, 6]
    """
    _no_out("sum", out)
    found = _core.sum(_mask(x, where, 0), axis, dtype, keepdims=keepdims)
    return found if initial is None else found + initial


def var(
    x: Tensor,
    /,
    axis: Axes | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: float = 0,
    *,
    correction: float = 0,
    keepdims: bool = False,
    where: TensorLike | None = None,
) -> Tensor:
    """Return the variance of the elements that `where` selects: see `nxla.var`.

    NumPy's argument `ddof` is called `correction` in the Array API standard. The variance of at
    most `ddof` elements is NaN or infinite.

    Examples
    --------
    >>> import nxla as nx
    >>> import numpy as np
    >>> np.var(nx.tensor([1.0, 3.0])).item()
    1.0
    """
    _no_out("var", out)
    correction = _correction("var", ddof, correction)
    x = _convert(x, dtype)
    if where is None:
        return _core.var(x, axis, correction=correction, keepdims=keepdims)
    variance = _variance_of(widen(x), axis, where, correction, keepdims=keepdims)
    return _core.astype(variance, float_dtype(x))


def _mean_of(
    x: Tensor,
    axis: Axes | None,
    where: TensorLike,
    correction: float = 0,
    *,
    keepdims: bool,
) -> Tensor:
    """Return the sum of the elements that `where` selects, divided by their corrected number."""
    total = _core.sum(_core.where(where, x, 0), axis, keepdims=keepdims)
    ones = _core.full(x.shape, 1, _core.s32)
    count = _core.sum(_core.where(where, ones, 0), axis, keepdims=keepdims)
    count = _core.astype(count, _core.real(x).dtype)
    return _core.divide(total, _core.maximum(_core.subtract(count, correction), 0))


def _variance_of(
    x: Tensor,
    axis: Axes | None,
    where: TensorLike,
    correction: float,
    *,
    keepdims: bool,
) -> Tensor:
    # The square of an excluded NaN or infinity would have the derivative NaN.
    change = _core.subtract(x, _mean_of(x, axis, where, keepdims=True))
    size = _core.abs(_core.where(where, change, 0))
    return _mean_of(_core.multiply(size, size), axis, where, correction, keepdims=keepdims)


def _correction(function: str, ddof: float, correction: float) -> float:
    """Return the correction of the number of elements, by either name."""
    if ddof and correction:
        raise ArgumentError(f"{function}: ddof, correction: must not be passed together")
    return ddof or correction


_hints.install(globals())
