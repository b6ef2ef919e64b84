"""Differences and integrals of samples."""

from __future__ import annotations

from nxla import _core, _hints
from nxla._values import as_tensor, as_tensors, call_as, float_dtype, widen
from nxla.errors import ArgumentError, ShapeError
from nxla.ops.metadata import axis_position, axis_positions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nxla._core import Tensor
    from nxla._types import Axes, Axis, TensorLike


def _samples(function: str, x: TensorLike, *others: TensorLike) -> Tensor:
    """Return samples; a list takes the precision of the other operands."""
    if not isinstance(x, _core.Tensor | _core.Expr):
        x = as_tensors(function, x, *others)[0]
    return as_tensor(x)


def _steps(x: Tensor, axis: int = -1, lag: int = 1) -> Tensor:
    """Return the differences of elements `lag` apart, in the dtype of the computation."""
    is_integer = x.dtype.kind in ("signed", "unsigned")
    x = x if is_integer else widen(x)
    size = x.shape[axis_position("diff", x, axis)]
    length = max(size - lag, 0)
    low = _core.slice_along_axis(x, 0, length, axis)
    high = _core.slice_along_axis(x, size - length, length, axis)
    if not is_integer:
        return _core.subtract(high, low)

    def distance(larger: Tensor, smaller: Tensor) -> Tensor:
        # Every distance of two integers fits in the unsigned dtype, to which differences wrap.
        return widen(_core.astype(_core.subtract(larger, smaller), f"u{x.dtype.bits}"))

    # Selecting among differences has the right derivative where neighbors are equal. A maximum and
    # a minimum would share it, and cancel.
    rise, fall = distance(high, low), _core.negative(distance(low, high))
    return _core.where(_core.less(high, low), fall, rise)


def _along(values: Tensor, ndim: int, axis: int) -> Tensor:
    """Return a vector in a shape that broadcasts along one axis."""
    return _core.reshape(values, [-1 if i == axis else 1 for i in range(ndim)])


def gradient(
    f: TensorLike,
    /,
    *varargs: TensorLike,
    axis: Axes | None = None,
    edge_order: int = 1,
) -> Tensor | tuple[Tensor, ...]:
    """Return the gradient of samples on a grid by central differences.

    Parameters
    ----------
    f : tensor_like
        The samples; integers count as ``float32``.
    *varargs : tensor_like
        The spacing: nothing for 1, one number for all axes, or for each axis a number or a vector
        of coordinates.
    axis : int or str, or a sequence, optional
        The axes; all by default.
    edge_order : {1, 2}
        The order of the differences at both ends.

    Returns
    -------
    Tensor or tuple of Tensor
        A tensor for each axis, without the tuple for one axis.

    Raises
    ------
    ShapeError
        If an axis has fewer elements than ``edge_order + 1``, or coordinates have another length.
    ArgumentError
        If the number of spacings or the order is invalid.

    Notes
    -----
    The differences equal ``numpy.gradient``, and are second-order accurate inside. `nxla.grad`
    computes the derivative of a function.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.gradient([1.0, 2.0, 4.0, 7.0]).tolist()
    [1.0, 1.5, 2.5, 3.0]
    >>> nx.gradient([0.0, 1.0, 9.0], nx.tensor([0.0, 1.0, 3.0]), edge_order=2).tolist()
    [0.0, 2.0, 6.0]
    """
    f = _samples("gradient", f, *varargs)
    if edge_order not in (1, 2):
        raise ArgumentError(f"gradient: edge_order: must be 1 or 2; got {edge_order!r}")
    axes = axis_positions("gradient", f, axis)
    if len(varargs) not in (0, 1, len(axes)):
        raise ArgumentError(
            f"gradient: varargs: must be nothing, one spacing or {len(axes)}; got {len(varargs)}"
        )
    spacings = varargs if len(varargs) == len(axes) else (varargs or (1.0,)) * len(axes)
    found = tuple(
        _gradient(f, spacing, axis, edge_order)
        for axis, spacing in zip(axes, spacings, strict=True)
    )
    return found[0] if len(axes) == 1 else found


def _gradient(f: Tensor, spacing: TensorLike, axis: int, edge_order: int) -> Tensor:
    """Return the differences along one axis."""
    size = f.shape[axis]
    if size < edge_order + 1:
        raise ShapeError(
            f"gradient: f: must have at least {edge_order + 1} elements along axis {axis}; "
            f"got shape {f.shape}"
        )
    dtype = widen(f).dtype
    places = as_tensors("gradient", widen(f), spacing)[1]
    if places.ndim == 0:
        widths = _core.broadcast_to(places, [size - 1])
    elif places.shape == (size,):
        widths = _steps(places)
    else:
        raise ShapeError(
            f"gradient: spacing: must be a number or {size} coordinates; got shape {places.shape}"
        )
    steps = _steps(f, axis)
    widths = _along(_core.astype(widths, dtype), f.ndim, axis)

    def part(x: Tensor, start: int, length: int) -> Tensor:
        return _core.slice_along_axis(x, start, length, axis)

    slopes = steps / widths
    first, last = part(slopes, 0, 1), part(slopes, size - 2, 1)
    if size == 2:
        return _core.astype(_core.concat([first, last], axis), float_dtype(f))
    left, right = part(widths, 0, size - 2), part(widths, 1, size - 2)
    before, after = part(slopes, 0, size - 2), part(slopes, 1, size - 2)
    if places.ndim == 0:
        # The element itself cancels: with rounding, or NaN, it would change the slope.
        inside = _steps(f, axis, 2) / (2.0 * left)
    else:
        # The slope of the parabola through three points: each slope is weighted by the width of the
        # other interval. Products of slopes and widths would overflow.
        inside = right / (left + right) * before + left / (left + right) * after
    if edge_order == 2:
        bend = (after - before) / (left + right)
        first = first - part(bend, 0, 1) * part(widths, 0, 1)
        last = last + part(bend, size - 3, 1) * part(widths, size - 2, 1)
    return _core.astype(_core.concat([first, inside, last], axis), float_dtype(f))


def trapezoid(
    y: TensorLike, x: TensorLike | None = None, /, dx: TensorLike = 1.0, axis: Axis = -1
) -> Tensor:
    """Integrate samples along an axis by the trapezoidal rule.

    Parameters
    ----------
    y : tensor_like
        The samples; integers count as ``float32``.
    x : tensor_like, optional
        The coordinates: a vector, or a tensor that broadcasts with `y`.
    dx : float
        The spacing without `x`.
    axis : int or str
        The axis.

    Returns
    -------
    Tensor
        The integrals, without the axis; a float dtype.

    Raises
    ------
    ShapeError
        If the axis does not exist, or the coordinates do not broadcast with the samples.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.trapezoid([1.0, 2.0, 3.0]).item(), nx.trapezoid([1.0, 2.0, 3.0], [4.0, 6.0, 8.0]).item()
    (4.0, 8.0)
    """
    spacing = dx if x is None else x
    y = _samples("trapezoid", y, spacing)
    axis = axis_position("trapezoid", y, axis)
    size = y.shape[axis]
    dtype = _core.result_type(float_dtype(y), as_tensors("trapezoid", y, spacing)[1].dtype)
    y = widen(y)
    widths = as_tensors("trapezoid", y, spacing)[1]
    if x is not None and widths.ndim == 1:
        widths = _along(_steps(widths), y.ndim, axis)
    elif x is not None:
        widths = _steps(widths, axis - y.ndim)
    length = max(size - 1, 0)
    first = _core.slice_along_axis(y, 0, length, axis)
    second = _core.slice_along_axis(y, size - length, length, axis)
    return _core.astype(_core.sum((first + second) * widths, axis) * 0.5, dtype)


def nan_to_num(
    x: TensorLike,
    /,
    *,
    nan: TensorLike = 0.0,
    posinf: TensorLike | None = None,
    neginf: TensorLike | None = None,
) -> Tensor:
    """Replace NaN and infinities by finite numbers.

    Parameters
    ----------
    x : tensor_like
        Numbers; the parts of complex numbers are replaced separately, and integers are unchanged.
    nan : float
        The replacement of NaN.
    posinf, neginf : float, optional
        The replacements of the infinities; by default the largest and the smallest finite number of
        the dtype.

    Returns
    -------
    Tensor
        A tensor with the shape and the dtype of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nan_to_num([1.0, float("nan"), float("-inf")], neginf=-9.0).tolist()
    [1.0, 0.0, -9.0]
    """
    from nxla.limits import finfo

    x = as_tensor(x)
    if x.dtype.kind == "complex":
        parts = (
            nan_to_num(part, nan=nan, posinf=posinf, neginf=neginf)
            for part in (_core.real(x), _core.imag(x))
        )
        return _core.complex(*parts)
    if x.dtype.kind != "float":
        return x
    if nan is None:
        raise ArgumentError("nan_to_num: nan: must be a number; got None")
    limits = finfo(x.dtype)
    above, below = (
        limits.max if posinf is None else posinf,
        limits.min if neginf is None else neginf,
    )
    # A replacement may be infinite or NaN itself, so all conditions test the operand.
    found = call_as("nan_to_num", _core.where, _core.isnan(x), nan, x)
    infinite = _core.isinf(x)
    found = call_as("nan_to_num", _core.where, infinite & (x > 0), above, found)
    return call_as("nan_to_num", _core.where, infinite & (x < 0), below, found)


_hints.install(globals())
