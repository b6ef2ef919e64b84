"""The Hurwitz zeta function and polygamma functions, by the Euler-Maclaurin formula."""

from __future__ import annotations

import math

from nxla import _core, _hints
from nxla.special._wide import elementwise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nxla._core import Tensor
    from nxla._types import TensorLike

__all__ = ["polygamma", "zeta"]

#: ``B(2 j) / (2 j)!``, the coefficients of the Euler-Maclaurin formula.
_EULER_MACLAURIN = (
    1 / 12,
    -1 / 720,
    1 / 30240,
    -1 / 1209600,
    1 / 47900160,
    -691 / 1307674368000,
    1 / 74724249600,
    -3617 / 10670622842880000,
    43867 / 5109094217170944000,
    -174611 / 802857662698291200000,
)
#: The number of terms that are summed before the Euler-Maclaurin formula.
_TERMS = 10
#: The exponent from which the terms after the sum are zero: they contain powers of at least 10.
_LAST_EXPONENT = 400.0


def _zeta(s: Tensor, q: Tensor) -> Tensor:
    # The poles are inside, because the formula has their infinite derivatives.
    inside = (s >= 1.0) & (q >= 0.0)
    finite = inside & _core.isfinite(s) & _core.isfinite(q)
    safe_s, safe_q = _core.where(finite, s, 2.0), _core.where(finite, q, 1.0)
    total = safe_s * 0.0
    for k in range(_TERMS):
        total = total + _core.pow(safe_q + k, -safe_s)
    total = total + _euler_maclaurin(safe_s, safe_q + _TERMS)
    outside = _core.where(_core.equal(s, 1.0), math.inf, math.nan)
    return _core.where(finite, total, _core.where(inside, _limit(s, q), outside))


def _euler_maclaurin(s: Tensor, end: Tensor) -> Tensor:
    """Return the sum of ``(end + k)**-s`` over all `k` from 0 on, for `end` of at least 10."""
    # The derivative multiplies a power of `s`, which would overflow, by zero.
    s = _core.minimum(s, _LAST_EXPONENT)
    # The power of `-s` would underflow before the integral does.
    integral = _core.pow(end, 1.0 - s)
    power = integral / end
    total = integral / (s - 1.0) + power * 0.5
    term = power * s / end
    for j, coefficient in enumerate(_EULER_MACLAURIN):
        total = total + term * coefficient
        order = s + (2 * j + 1)
        term = term * order * (order + 1.0) / (end * end)
    return total


def _limit(s: Tensor, q: Tensor) -> Tensor:
    """Return the zeta function where an argument is infinite."""
    is_steep = _core.equal(s, math.inf) & (q <= 1.0)
    base, exponent = _core.where(is_steep, q, 1.0), _core.where(is_steep, s, 1.0)
    value = _core.where(is_steep, _core.pow(base, -exponent), 0.0)
    return _core.where(_core.equal(s, 1.0), math.inf, value)


def _polygamma(n: Tensor, x: Tensor) -> Tensor:
    is_first = _core.equal(n, 0.0)
    order = _core.where(is_first, 1.0, n)
    # The function that is not selected may have an infinite derivative at `x`.
    first_x, x = _core.where(is_first, x, 1.0), _core.where(is_first, 1.0, x)
    sign = 1.0 - 2.0 * _core.remainder(order + 1.0, 2.0)
    value = sign * _core.exp(_core.lgamma(order + 1.0)) * _zeta(order + 1.0, x)
    whole = (n >= 0.0) & _core.equal(_core.floor(n), n)
    return _core.where(whole, _core.where(is_first, _core.digamma(first_x), value), math.nan)


def polygamma(n: TensorLike, x: TensorLike, /) -> Tensor:
    """Return a derivative of the digamma function.

    Parameters
    ----------
    n : tensor_like
        The order: whole numbers from 0 on; order 0 is `digamma` itself.
    x : tensor_like
        Real numbers. Orders from 1 on are NaN for negative numbers, and 0 at infinity.

    Returns
    -------
    Tensor
        A float tensor of the broadcast shape.

    Raises
    ------
    DTypeError
        If an argument is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> round(nx.special.polygamma(1, 1.0).item(), 5)
    1.64493
    """
    return elementwise("polygamma", _polygamma, n, x)


def zeta(s: TensorLike, q: TensorLike = 1.0, /) -> Tensor:
    """Return the Hurwitz zeta function, the sum of ``(q + k)**-s`` over all `k` from 0 on.

    The values at infinite arguments are limits.

    Parameters
    ----------
    s : tensor_like
        Real numbers; NaN below 1.
    q : tensor_like
        Real numbers; NaN below 0. By default 1, which is Riemann's zeta function.

    Returns
    -------
    Tensor
        A float tensor of the broadcast shape; infinite where `s` is 1.

    Raises
    ------
    DTypeError
        If an argument is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> round(nx.special.zeta(2.0).item(), 5)
    1.64493
    """
    return elementwise("zeta", _zeta, s, q)


_hints.install(globals())
