"""Bessel functions of orders 0 and 1.

Each function is a Chebyshev series near zero, and its asymptotic form times a Chebyshev series
beyond. All series are evaluated in ``float64`` and the result is rounded once.
"""

from __future__ import annotations

import math

from nxla import _core, _hints
from nxla.special import _tables as tables
from nxla.special._wide import Ruled, custom_rule, elementwise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from nxla._core import Tensor
    from nxla._types import TensorLike

__all__ = ["i0", "i0e", "i1", "i1e", "j0", "j1", "k0", "k0e", "k1", "k1e", "y0", "y1"]


def _chebyshev(coefficients: Sequence[float], x: Tensor, high: float) -> Tensor:
    """Evaluate a Chebyshev series from 0 to a number by Clenshaw's recurrence."""
    t = x * (4.0 / high) - 2.0
    current, previous = _core.multiply(t, 0.0), _core.multiply(t, 0.0)
    for coefficient in reversed(coefficients[1:]):
        current, previous = t * current - previous + coefficient, current
    return t * current * 0.5 - previous + coefficients[0]


def _clip_to(x: Tensor, high: float) -> Tensor:
    """Clip an argument to the interval of a series, whose value elsewhere is not used."""
    return _core.clip(x, 0.0, high)


def _near_i0e(size: Tensor) -> Tensor:
    """Return ``exp(-x) I0(x)`` of numbers from 0 to 8."""
    return _chebyshev(tables.I0_SMALL, size, 8.0)


def _near_i1e(size: Tensor) -> Tensor:
    """Return ``exp(-x) I1(x) / x`` of numbers from 0 to 8."""
    return _chebyshev(tables.I1_SMALL, size, 8.0)


@custom_rule
def _i0e(x: Tensor) -> Tensor:
    size = _core.abs(x)
    near, far = _near_i0e(_clip_to(size, 8.0)), _core.maximum(size, 8.0)
    value = _chebyshev(tables.I0_LARGE, 8.0 / far, 1.0) / _core.sqrt(far)
    return _core.where(size <= 8.0, near, value)


@custom_rule
def _i1e(x: Tensor) -> Tensor:
    size = _core.abs(x)
    near = _near_i1e(_clip_to(size, 8.0)) * x
    far = _core.maximum(size, 8.0)
    value = _chebyshev(tables.I1_LARGE, 8.0 / far, 1.0) / _core.sqrt(far)
    return _core.where(size <= 8.0, near, _core.sign(x) * value)


def _per_x(value: Tensor, x: Tensor, near: Tensor) -> Tensor:
    """Return ``value / x``, or the series of the quotient up to 8, which has all derivatives."""
    is_near = _core.abs(x) <= 8.0
    return _core.where(is_near, near, value / _core.where(is_near, 8.0, x))


def _i1e_per_x(x: Tensor) -> Tensor:
    return _per_x(_i1e(x), x, _near_i1e(_clip_to(_core.abs(x), 8.0)))


def _j1_per_x(x: Tensor) -> Tensor:
    return _per_x(_j1(x), x, _near_j1(_clip_to(_core.abs(x), 8.0)))


def _slope_of_abs(x: Tensor) -> Tensor:
    """Return the derivative of ``abs(x)``, which is 1 at 0 as in `nxla.abs`."""
    return _core.where(x < 0.0, -1.0, 1.0)


@_i0e.defjvp
def _(primals: tuple[Tensor], tangents: tuple[Tensor]) -> Tensor:
    (x,) = primals
    return tangents[0] * (_i1e(x) - _slope_of_abs(x) * _i0e(x))


@_i1e.defjvp
def _(primals: tuple[Tensor], tangents: tuple[Tensor]) -> Tensor:
    (x,) = primals
    value = _i1e(x)
    return tangents[0] * (_i0e(x) - _slope_of_abs(x) * value - _i1e_per_x(x))


def _times_exp(value: Tensor, x: Tensor, limit: Tensor | float) -> Tensor:
    """Return ``value * exp(abs(x))``, and its limit at infinity.

    The square root of the exponential is multiplied twice, because the exponential overflows before
    the product does.
    """
    is_infinite = _core.isinf(x)
    half = _core.exp(_core.abs(_core.where(is_infinite, 0.0, x)) * 0.5)
    return _core.where(is_infinite, limit, half * value * half)


@custom_rule
def _i0(x: Tensor) -> Tensor:
    return _times_exp(_i0e(x), x, math.inf)


@custom_rule
def _i1(x: Tensor) -> Tensor:
    return _times_exp(_i1e(x), x, x)


@_i0.defjvp
def _(primals: tuple[Tensor], tangents: tuple[Tensor]) -> Tensor:
    return tangents[0] * _i1(primals[0])


@_i1.defjvp
def _(primals: tuple[Tensor], tangents: tuple[Tensor]) -> Tensor:
    (x,) = primals
    return tangents[0] * _times_exp(_i0e(x) - _i1e_per_x(x), x, math.inf)


def _is_positive(x: Tensor, value: Tensor, at_zero: float) -> Tensor:
    """Return a value for positive `x`, its limit at zero, and NaN elsewhere."""
    edge = _core.where(_core.equal(x, 0.0), at_zero, math.nan)
    return _core.where(x > 0.0, value, edge)


def _positive(x: Tensor, high: float) -> Tensor:
    """Return `x` up to `high`, and 1 where `x` is not positive and the value is not used."""
    return _clip_to(_core.where(x > 0.0, x, 1.0), high)


def _scaled_k(x: Tensor, order: int, small: Sequence[float], large: Sequence[float]) -> Tensor:
    """Return ``exp(x) K(x)``."""
    near = _positive(x, 2.0)
    series = _chebyshev(small, near * near, 4.0)
    # Half of a small number may be subnormal, which XLA replaces by zero.
    log = _core.log(near) - math.log(2.0)
    i = _near_i0e(near) if order == 0 else _near_i1e(near) * near
    i = _core.exp(near) * i
    value = series - log * i if order == 0 else series / near + log * i
    far = _core.maximum(x, 2.0)
    beyond = _chebyshev(large, 2.0 / far, 1.0) / _core.sqrt(far)
    return _is_positive(x, _core.where(x <= 2.0, value * _core.exp(near), beyond), math.inf)


@custom_rule
def _k0e(x: Tensor) -> Tensor:
    return _scaled_k(x, 0, tables.K0_SMALL, tables.K0_LARGE)


@custom_rule
def _k1e(x: Tensor) -> Tensor:
    return _scaled_k(x, 1, tables.K1_SMALL, tables.K1_LARGE)


@_k0e.defjvp
def _(primals: tuple[Tensor], tangents: tuple[Tensor]) -> Tensor:
    (x,) = primals
    return tangents[0] * (_off_zero(_k0e, x) - _k1e(x))


@_k1e.defjvp
def _(primals: tuple[Tensor], tangents: tuple[Tensor]) -> Tensor:
    (x,) = primals
    return tangents[0] * (_off_zero(_k1e, x) - _off_zero(_k0e, x) - _k1e(x) / x)


def _off_zero(function: Ruled, x: Tensor) -> Tensor:
    """Return a function that has a weaker pole at zero than the terms to which it is added.

    At zero it is left out, because the difference of two infinities is NaN.
    """
    is_zero = _core.equal(x, 0.0)
    return _core.where(is_zero, 0.0, function(_core.where(is_zero, 1.0, x)))


def _k0(x: Tensor) -> Tensor:
    return _core.exp(_core.negative(x)) * _k0e(x)


def _k1(x: Tensor) -> Tensor:
    return _core.exp(_core.negative(x)) * _k1e(x)


def _waves(
    x: Tensor, even: Sequence[float], odd: Sequence[float], order: int
) -> tuple[Tensor, Tensor]:
    """Return J and Y of `x` of at least 8 from their modulus and phase.

    The phase is ``x - pi / 4`` or ``x - 3 pi / 4``. Addition theorems avoid the rounding error of
    the difference.
    """
    x = _core.maximum(x, 8.0)
    u = 64.0 / (x * x)
    p, q = _chebyshev(even, u, 1.0), _chebyshev(odd, u, 1.0) / x
    sin, cos = _core.sin(x), _core.cos(x)
    if order == 1:
        sin, cos = _core.negative(cos), sin
    cosine, sine = cos + sin, sin - cos
    root = math.sqrt(math.pi) * _core.sqrt(x)
    return (p * cosine - q * sine) / root, (p * sine + q * cosine) / root


def _near_j0(x: Tensor) -> Tensor:
    """Return J0 of numbers from 0 to 8."""
    return _chebyshev(tables.J0_SMALL, x * x, 64.0)


def _near_j1(x: Tensor) -> Tensor:
    """Return ``J1(x) / x`` of numbers from 0 to 8."""
    return _chebyshev(tables.J1_SMALL, x * x, 64.0)


@custom_rule
def _j0(x: Tensor) -> Tensor:
    size = _core.abs(x)
    near = _near_j0(_clip_to(size, 8.0))
    value = _core.where(size <= 8.0, near, _waves(size, tables.P0, tables.Q0, 0)[0])
    return _core.where(_core.isinf(x), 0.0, value)


@custom_rule
def _j1(x: Tensor) -> Tensor:
    size = _core.abs(x)
    near = _near_j1(_clip_to(size, 8.0)) * x
    far = _core.sign(x) * _waves(size, tables.P1, tables.Q1, 1)[0]
    return _core.where(_core.isinf(x), 0.0, _core.where(size <= 8.0, near, far))


@_j0.defjvp
def _(primals: tuple[Tensor], tangents: tuple[Tensor]) -> Tensor:
    return _core.negative(tangents[0] * _j1(primals[0]))


@_j1.defjvp
def _(primals: tuple[Tensor], tangents: tuple[Tensor]) -> Tensor:
    (x,) = primals
    return tangents[0] * (_j0(x) - _j1_per_x(x))


@custom_rule
def _y0(x: Tensor) -> Tensor:
    near = _positive(x, 8.0)
    series = _chebyshev(tables.Y0_SMALL, near * near, 64.0)
    value = series + (2.0 / math.pi) * _core.log(near) * _near_j0(near)
    far = _core.where(_core.isinf(x), 0.0, _waves(x, tables.P0, tables.Q0, 0)[1])
    return _is_positive(x, _core.where(x <= 8.0, value, far), -math.inf)


@custom_rule
def _y1(x: Tensor) -> Tensor:
    near = _positive(x, 8.0)
    series = _chebyshev(tables.Y1_SMALL, near * near, 64.0) * near
    value = series + (2.0 / math.pi) * (_core.log(near) * _near_j1(near) * near - 1.0 / near)
    far = _core.where(_core.isinf(x), 0.0, _waves(x, tables.P1, tables.Q1, 1)[1])
    return _is_positive(x, _core.where(x <= 8.0, value, far), -math.inf)


@_y0.defjvp
def _(primals: tuple[Tensor], tangents: tuple[Tensor]) -> Tensor:
    return _core.negative(tangents[0] * _y1(primals[0]))


@_y1.defjvp
def _(primals: tuple[Tensor], tangents: tuple[Tensor]) -> Tensor:
    (x,) = primals
    return tangents[0] * (_off_zero(_y0, x) - _y1(x) / x)


def i0(x: TensorLike, /) -> Tensor:
    """Return the modified Bessel function of the first kind of order 0.

    Parameters
    ----------
    x : tensor_like
        Real numbers; integers count as ``float32``.

    Returns
    -------
    Tensor
        Floats of the shape of `x`.

    Raises
    ------
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> round(nx.special.i0(1.0).item(), 5)
    1.26607
    """
    return elementwise("i0", _i0, x)


def i0e(x: TensorLike, /) -> Tensor:
    """Return ``exp(-abs(x)) * i0(x)``, which does not overflow. See `i0`.

    Examples
    --------
    >>> import nxla as nx
    >>> round(nx.special.i0e(1000.0).item(), 5)
    0.01262
    """
    return elementwise("i0e", _i0e, x)


def i1(x: TensorLike, /) -> Tensor:
    """Return the modified Bessel function of the first kind of order 1. See `i0`.

    Examples
    --------
    >>> import nxla as nx
    >>> round(nx.special.i1(1.0).item(), 5)
    0.56516
    """
    return elementwise("i1", _i1, x)


def i1e(x: TensorLike, /) -> Tensor:
    """Return ``exp(-abs(x)) * i1(x)``, which does not overflow. See `i0`.

    Examples
    --------
    >>> import nxla as nx
    >>> round(nx.special.i1e(-1.0).item(), 5)
    -0.20791
    """
    return elementwise("i1e", _i1e, x)


def k0(x: TensorLike, /) -> Tensor:
    """Return the modified Bessel function of the second kind of order 0. See `i0`.

    The value at 0 is infinity, and NaN for negative numbers.

    Examples
    --------
    >>> import nxla as nx
    >>> round(nx.special.k0(1.0).item(), 5)
    0.42102
    """
    return elementwise("k0", _k0, x)


def k0e(x: TensorLike, /) -> Tensor:
    """Return ``exp(x) * k0(x)``, which does not underflow. See `k0`.

    Examples
    --------
    >>> import nxla as nx
    >>> round(nx.special.k0e(1000.0).item(), 5)
    0.03963
    """
    return elementwise("k0e", _k0e, x)


def k1(x: TensorLike, /) -> Tensor:
    """Return the modified Bessel function of the second kind of order 1. See `k0`.

    Examples
    --------
    >>> import nxla as nx
    >>> round(nx.special.k1(1.0).item(), 5)
    0.60191
    """
    return elementwise("k1", _k1, x)


def k1e(x: TensorLike, /) -> Tensor:
    """Return ``exp(x) * k1(x)``, which does not underflow. See `k0`.

    Examples
    --------
    >>> import nxla as nx
    >>> round(nx.special.k1e(1000.0).item(), 5)
    0.03965
    """
    return elementwise("k1e", _k1e, x)


def j0(x: TensorLike, /) -> Tensor:
    """Return the Bessel function of the first kind of order 0. See `i0`.

    Examples
    --------
    >>> import nxla as nx
    >>> round(nx.special.j0(1.0).item(), 5)
    0.7652
    """
    return elementwise("j0", _j0, x)


def j1(x: TensorLike, /) -> Tensor:
    """Return the Bessel function of the first kind of order 1. See `i0`.

    Examples
    --------
    >>> import nxla as nx
    >>> round(nx.special.j1(1.0).item(), 5)
    0.44005
    """
    return elementwise("j1", _j1, x)


def y0(x: TensorLike, /) -> Tensor:
    """Return the Bessel function of the second kind of order 0. See `i0`.

    The value at 0 is minus infinity, and NaN for negative numbers.

    Examples
    --------
    >>> import nxla as nx
    >>> round(nx.special.y0(1.0).item(), 5)
    0.08826
    """
    return elementwise("y0", _y0, x)


def y1(x: TensorLike, /) -> Tensor:
    """Return the Bessel function of the second kind of order 1. See `y0`.

    Examples
    --------
    >>> import nxla as nx
    >>> round(nx.special.y1(1.0).item(), 5)
    -0.78121
    """
    return elementwise("y1", _y1, x)


_hints.install(globals())
