"""Choosing between elements, comparing up to a tolerance, and converting dtypes."""

from __future__ import annotations

from nxla import _core
from nxla._values import as_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nxla._core import DType, Tensor
    from nxla._types import DTypeLike, TensorLike


def where(condition: TensorLike, x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Choose between two elements, one place at a time.

    Parameters
    ----------
    condition : tensor_like
        Where it is not zero, the element of `x1` is taken.
    x1, x2 : tensor_like
        What to choose from; their dtypes promote.

    Returns
    -------
    Tensor
        Of the shape that all three broadcast to.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.where([True, False], [1, 2], 0).tolist()
    [1, 0]
    """
    return _core.select(condition, x1, x2)


def clip(x: TensorLike, /, min: TensorLike | None = None, max: TensorLike | None = None) -> Tensor:
    """Limit elements to a range.

    Parameters
    ----------
    x : tensor_like
        Real numbers.
    min, max : tensor_like, optional
        The limits; where a minimum exceeds the maximum, the maximum wins.

    Raises
    ------
    DTypeError
        If an operand is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.clip([1, 5, 9], 2, 8).tolist(), nx.clip([1, 5, 9], max=4).tolist()
    ([2, 5, 8], [1, 4, 4])
    """
    if min is not None and max is not None:
        if _is_scalar(min) and _is_scalar(max):
            return _core.clip(x, min, max)
        return _core.min(_core.max(x, min), max)
    if min is not None:
        return _core.max(x, min)
    if max is not None:
        return _core.min(x, max)
    return as_tensor(x)


def _is_scalar(x: TensorLike) -> bool:
    return isinstance(x, int | float) or as_tensor(x).ndim == 0


def all_close(
    x1: TensorLike,
    x2: TensorLike,
    /,
    *,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    equal_nan: bool = False,
) -> Tensor:
    """Tell whether all elements are equal up to a tolerance.

    Parameters
    ----------
    x1, x2 : tensor_like
        Numbers; their shapes broadcast.
    rtol, atol : float
        Elements are close if ``abs(x1 - x2) <= atol + rtol * abs(x2)``. Equal infinities are close.
    equal_nan : bool
        Whether NaN is close to NaN.

    Returns
    -------
    Tensor
        One truth value.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.all_close([1.0, 2.0], [1.0, 2.00001]).item(), nx.all_close(1.0, 1.1).item()
    (True, False)
    """
    return _core.all_close(x1, x2, rtol, atol, equal_nan)


def astype(
    x: TensorLike,
    dtype: DTypeLike,
    /,
    *,
    copy: bool = True,  # noqa: ARG001 — tensors never change, so a copy cannot be told
) -> Tensor:
    """Convert elements to another dtype.

    Floats lose what is behind the point when they become integers, and are limited to what the
    dtype holds; NaN becomes zero. Integers wrap. Complex numbers lose their imaginary part.

    Parameters
    ----------
    x : tensor_like
        Any tensor.
    dtype : dtype_like
        The dtype.
    copy : bool
        Part of the standard. It makes no difference: tensors never change.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.astype([1.9, -1.9], nx.int32).tolist()
    [1, -1]
    """
    return _core.as_type(x, dtype)


def bitcast(x: TensorLike, dtype: DTypeLike, /) -> Tensor:
    """Read the bits of elements as another dtype of the same width.

    Raises
    ------
    DTypeError
        If the widths differ.

    Examples
    --------
    >>> import nxla as nx
    >>> hex(nx.bitcast(1.0, nx.uint32).item())
    '0x3f800000'
    """
    return _core.bitcast(x, dtype)


def result_type(*operands: TensorLike | DTypeLike) -> DType:
    """Return the dtype that operands have together; plain numbers adapt to the others.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.result_type(nx.int8, nx.tensor([1.5], "f16")), nx.result_type("u8", 1)
    (f16, u8)
    """
    return _core.result_type(*operands)


def can_cast(from_: TensorLike | DTypeLike, to: DTypeLike, /) -> bool:
    """Tell whether an operand of one dtype next to one of another takes the dtype of the other.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.can_cast(nx.int8, nx.int32), nx.can_cast(nx.float32, nx.int32)
    (True, False)
    """
    return _core.result_type(from_, to) == to
