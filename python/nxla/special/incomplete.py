"""Incomplete gamma and beta functions.

Series and continued fractions run until all elements have converged. Their prefactors use
Stirling's series, so that large parameters do not cancel. Small parameters have a separate series
of the complement. Large parameters of the gamma functions have an expansion with a fixed number of
terms. Everything is computed in `float64` and rounded once.
"""

from __future__ import annotations

import math

from nxla import _core, _hints, tree
from nxla.derivatives import jvp
from nxla.ops.loops import while_loop
from nxla.special._wide import elementwise, with_slopes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from nxla._core import Tensor
    from nxla._types import TensorLike

__all__ = ["betainc", "betaln", "gammainc", "gammaincc"]

#: The relative changes of a value and of its derivative below which an iteration has converged.
_TOLERANCE = 4e-16
_SLOPE_TOLERANCE = 1e-13
_TINY = 1e-300
#: The smallest normal number. XLA replaces smaller numbers by zero.
_SMALLEST = 2.0**-1022
#: The argument from which Stirling's series has full precision.
_STIRLING = 10.0
#: The parameters below which ``1 - value`` would cancel, so the complement has its own series.
_SMALL_GAMMA = 0.2
_SMALL_BETA = 5e-3
#: The parameter from which Temme's expansion has full precision. The number of steps of the series
#: and the fraction grows with the square root of the parameter; it is below 1000 here.
_LARGE_GAMMA = 1e4
#: From this argument on, the upper function underflows if the parameter is below `_LARGE_GAMMA`.
_FAR_GAMMA = 1e6
#: The number of iterations after which an element that has not converged is NaN. The fraction of
#: the beta function needs more iterations if both parameters exceed about 1e13.
_MAX_ITERATIONS = 100_000
#: The values of ``(x - a) / a`` beyond which one of the functions of large `a` underflows.
_LARGE_RANGE = (-0.4, 0.5)
#: The power series of the first functions ``c_k(eta)`` of the expansion, by DLMF 8.12.9 to 8.12.11.
_TEMME = (
    (
        -0.3333333333333333, 0.08333333333333333, -0.014814814814814815, 0.0011574074074074073,
        0.0003527336860670194, -0.0001787551440329218, 3.919263178522438e-05,
        -2.185448510679992e-06, -1.85406221071516e-06, 8.296711340953087e-07,
        -1.7665952736826078e-07, 6.707853543401498e-09, 1.0261809784240309e-08,
        -4.382036018453353e-09, 9.14769958223679e-10, -2.5514193994946248e-11,
    ),
    (
        -0.001851851851851852, -0.003472222222222222, 0.0026455026455026454,
        -0.0009902263374485596, 0.00020576131687242798, -4.018775720164609e-07,
        -1.8098550334489977e-05, 7.64916091608111e-06, -1.6120900894563446e-06,
        4.647127802807434e-09,
    ),
    (
        0.004133597883597883, -0.0026813271604938273, 0.0007716049382716049,
        2.0093878600823047e-06, -0.0001073666322636516, 5.2923448829120125e-05,
    ),
)  # fmt: skip
#: ``1 - gamma`` with Euler's constant, and ``(-1)**k (zeta(k) - 1) / k`` of `k` from 2 on.
_LGAMMA1P = (
    0.42278433509846713, 0.3224670334241132, -0.0673523010531981, 0.020580808427784546,
    -0.007385551028673986, 0.0028905103307415234, -0.001192753911703261, 0.0005096695247430425,
    -0.00022315475845357939, 9.945751278180853e-05, -4.492623673813314e-05, 2.050721277567069e-05,
    -9.439488275268397e-06, 4.374866789907488e-06, -2.039215753801366e-06,
)  # fmt: skip


def _stirling(x: Tensor) -> Tensor:
    """Return ``lgamma(x) - ((x - 0.5) log(x) - x + 0.5 log(2 pi))`` of `x` of at least 10."""
    u = 1.0 / (x * x)
    total = _core.multiply(u, 0.0)
    for number in (1 / 156, -691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12):
        total = total * u + number
    return total / x


def _lgamma1p(x: Tensor) -> Tensor:
    """Return ``lgamma(1 + x)`` of `x` from 0 to 0.2, without rounding ``1 + x``.

    The series is 5.7.3 in NIST's Digital Library of Mathematical Functions (DLMF).
    """
    return _polynomial(_LGAMMA1P, x) * x - _core.log1p(x)


def _large_digamma(x: Tensor) -> Tensor:
    """Return the digamma function of `x` of at least 10, by its asymptotic series (DLMF 5.11.2)."""
    u = 1.0 / (x * x)
    total = x * 0.0
    for number in (1 / 12, -691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12):
        total = (total + number) * u
    return _core.log(x) - 0.5 / x - total


def _polynomial(coefficients: tuple[float, ...], x: Tensor) -> Tensor:
    """Return the sum of ``coefficients[n] * x**n``."""
    total = x * 0.0
    for coefficient in reversed(coefficients):
        total = total * x + coefficient
    return total


def _curvature(change: Tensor) -> Tensor:
    """Return ``2 (x - log(1 + x)) / x**2`` of `x` from -0.4 to 0.5."""
    # log((1 + r) / (1 - r)) = 2 (r + r**3 / 3 + r**5 / 5 + …) with r = x / (2 + x), where 2 r - x
    # = -r x.
    ratio = change / (change + 2.0)
    series = _polynomial(tuple(1.0 / odd for odd in range(3, 33, 2)), ratio * ratio)
    return (2.0 - 4.0 * ratio * series / (change + 2.0)) / (change + 2.0)


def _log_minus_change(x: Tensor, a: Tensor) -> Tensor:
    """Return ``log(x / a) - (x - a) / a`` of positive numbers."""
    change = (x - a) / a
    near = _core.clip(change, -0.1, 0.1)
    series = -0.5 * near * near * _curvature(near)
    # The change of a small `x` rounds to -1. A quotient that underflows would have an infinite
    # logarithm.
    is_low = change < -0.5
    quotient = _core.maximum(x / a, _SMALLEST)
    log = _core.where(is_low, _core.log(quotient), _core.log1p(_core.where(is_low, 0.0, change)))
    return _core.where(_core.abs(change) < 0.1, series, log - change)


def _log_gamma_term(a: Tensor, x: Tensor) -> Tensor:
    """Return ``a log(x) - x - lgamma(a + 1)`` without cancellation for large `a`."""
    # A maximum and a minimum would halve the derivative at the threshold.
    is_small = a < _STIRLING
    large, small = _core.where(is_small, _STIRLING, a), _core.where(is_small, a, _STIRLING)
    phase = large * _log_minus_change(x, large)
    beyond = phase - 0.5 * _core.log(large * (2.0 * math.pi)) - _stirling(large)
    return _core.where(is_small, small * _core.log(x) - x - _core.lgamma(small + 1.0), beyond)


def _large_gamma_parts(a: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the lower and the upper function of large `a`, by Temme's expansion (DLMF 8.12.3).

    The variable ``eta`` is the signed root of ``2 (m - log(1 + m))`` with ``m = (x - a) / a``.
    """
    change = _core.clip((x - a) / a, *_LARGE_RANGE)
    eta, root = change * _core.sqrt(_curvature(change)), _core.sqrt(0.5 * a)
    rest = eta * 0.0
    for coefficients in reversed(_TEMME):
        rest = rest / a + _polynomial(coefficients, eta)
    scaled = eta * root
    rest = rest * _core.exp(-scaled * scaled) / (root * math.sqrt(4.0 * math.pi))
    return 0.5 * _core.erfc(-scaled) - rest, 0.5 * _core.erfc(scaled) + rest


def _is_still(change: Tensor, tolerance: float) -> Tensor:
    """Return whether a change is below the tolerance; NaN counts as converged."""
    return ~(_core.abs(change) > tolerance)


def _repeat(step: Callable[[Any], Any], state: Any, is_still: Callable[[Any], Tensor]) -> Any:
    """Repeat a step until each element has converged once.

    Because of rounding, the change of an element may stay near the tolerance forever. An element
    that does not converge in `_MAX_ITERATIONS` is NaN.
    """

    def is_unfinished(loop: Any) -> Any:
        _, done, count = loop
        return _core.any(~done) & (count < _MAX_ITERATIONS)

    def following(loop: Any) -> Any:
        state, done, count = loop
        state = step(state)
        return state, done | is_still(state), count + 1

    start = (state, is_still(state), _core.tensor(0, "s32"))
    state, done, _ = while_loop(is_unfinished, following, start)
    return tree.map(lambda x: _core.where(done, x, math.nan), state)


def _converge(step: Callable[..., Any], params: Any, state: Any) -> Any:
    """Repeat a step until the first entry of the state, a relative change, has converged."""
    return _repeat(
        lambda state: step(params, state), state, lambda state: _is_still(state[0], _TOLERANCE)
    )


def _converge_with_slope(
    step: Callable[..., Any], params: Any, state: Any, tangents: Any, slopes: Any = None
) -> tuple[Any, Any]:
    """Repeat a step and its derivative along `tangents` of the parameters until both converge.

    The value of a fraction with a whole parameter is exact after a few steps, but its derivative is
    not.
    """

    def both(pair: Any) -> Any:
        return jvp(step, (params, pair[0]), (tangents, pair[1]))

    def is_still(pair: Any) -> Tensor:
        value, slope = pair[0][0], pair[1][0]
        return _is_still(value, _TOLERANCE) & _is_still(slope, _SLOPE_TOLERANCE)

    slopes = tuple(x * 0.0 for x in state) if slopes is None else slopes
    found: tuple[Any, Any] = _repeat(both, (state, slopes), is_still)
    return found


def _series_step(ratio: Callable[..., Tensor]) -> Callable[..., Any]:
    """Return a step that adds a term of a series.

    `ratio` returns the quotient of a term and the term before it, of the parameters and the index.
    """

    def step(params: Any, state: Any) -> Any:
        _, term, total, n = state
        term = term * ratio(*params, n)
        total = total + term
        return term / total, term, total, n + 1.0

    return step


def _series_start(like: Tensor) -> tuple[Tensor, ...]:
    one = like * 0.0 + 1.0
    return one, one, one, _core.tensor(1.0, "f64")


def _fraction_step(partial: Callable[..., tuple[Tensor, Tensor]]) -> Callable[..., Any]:
    """Return a step of Lentz's method for ``first + p1 / (q1 + p2 / (q2 + …))``.

    `partial` returns ``p`` and ``q`` of the parameters and the index.
    """

    def nonzero(x: Tensor) -> Tensor:
        return _core.where(_core.equal(x, 0.0), _TINY, x)

    def step(params: Any, state: Any) -> Any:
        _, c, d, value, n = state
        p, q = partial(*params, n)
        d = 1.0 / nonzero(q + p * d)
        c = nonzero(q + p / c)
        ratio = c * d
        return ratio - 1.0, c, d, value * ratio, n + 1.0

    return step


def _fraction_start(first: Tensor) -> tuple[Tensor, ...]:
    zero = first * 0.0
    return zero + 1.0, first, zero, first, _core.tensor(1.0, "f64")


@_fraction_step
def _upper_step(a: Tensor, x: Tensor, n: Tensor) -> tuple[Tensor, Tensor]:
    """Return the parts of ``x + 1 - a + 1 (a - 1) / (x + 3 - a + …)``, for `x` above about `a`."""
    return n * (a - n), x + (2.0 * n + 1.0) - a


class _Gamma:
    """The arguments of an incomplete gamma function, split into the regions of its forms.

    With Kummer's function ``M``, the lower function is ``x**a exp(-x) M(1, a + 1, x)`` divided by
    ``gamma(a + 1)``, which equals ``x**a M(a, a + 1, -x) / gamma(a + 1)`` (DLMF 8.5.1). For small
    `a`, all factors of the second form are near 1, so the upper function does not cancel.
    """

    def __init__(self, a: Tensor, x: Tensor) -> None:
        # The fraction does not converge on XLA for the largest arguments, whose reciprocals are
        # subnormal: XLA replaces the reciprocals by zero.
        x = _core.where((x >= _FAR_GAMMA) & (a < _LARGE_GAMMA), math.inf, x)
        self.a, self.x = a, x
        self.is_low = x < a + 1.0
        # Both forms compute all elements, so each receives valid arguments for elements of the
        # other form.
        inside = (a >= 0.0) & (x > 0.0) & _core.isfinite(a) & _core.isfinite(x)
        self.is_large = inside & (a >= _LARGE_GAMMA)
        self.valid = inside & ~self.is_large
        self.safe_a = safe = _core.where(self.valid, a, 1.0)
        self.low_x = _core.where(self.valid & self.is_low, x, safe * 0.5)
        self.high_x = _core.where(self.valid & ~self.is_low, x, safe + 2.0)
        self.is_small = self.valid & self.is_low & (a < _SMALL_GAMMA)
        self.step = _series_step(self._ratio)

    def _ratio(self, a: Tensor, x: Tensor, n: Tensor) -> Tensor:
        """Return a quotient of terms of M(1, a + 1, x).

        For small `a`, the series is ``(1 - M(a, a + 1, -x)) (a + 1) / (a x)``.
        """
        small = _core.negative(x) * (a + n) / ((n + 1.0) * (a + n + 1.0))
        return _core.where(self.is_small, small, x / (a + n))

    def sums(self) -> tuple[Tensor, Tensor]:
        """Return the series of the lower function and the fraction of the upper function."""
        low, high = (self.safe_a, self.low_x), (self.safe_a, self.high_x)
        series = _converge(self.step, low, _series_start(self.safe_a))[2]
        first = self.high_x + 1.0 - self.safe_a
        return series, _converge(_upper_step, high, _fraction_start(first))[3]

    def slopes(self) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        """Return the series and the fraction, and their derivatives in `a`."""
        low, high = (self.safe_a, self.low_x), (self.safe_a, self.high_x)
        one, zero = self.safe_a * 0.0 + 1.0, self.safe_a * 0.0
        start = _series_start(self.safe_a)
        series = _converge_with_slope(self.step, low, start, (one, zero))
        first = self.high_x + 1.0 - self.safe_a
        fraction = _fraction_slope(_upper_step, high, (first, -one), (one, zero))
        return (series[0][2], fraction[0]), (series[1][2], fraction[1])

    def parts(self, a: Tensor, sums: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Return the lower and the upper function."""
        safe = _core.where(self.valid, a, 1.0)
        lower = _core.exp(_log_gamma_term(safe, self.low_x)) * sums[0]
        upper = safe * _core.exp(_log_gamma_term(safe, self.high_x)) / sums[1]
        p = _core.where(self.is_low, lower, 1.0 - upper)
        q = _core.where(self.is_low, 1.0 - lower, upper)
        small_p, small_q = self._small_parts(a, sums[0])
        p, q = _core.where(self.is_small, small_p, p), _core.where(self.is_small, small_q, q)
        large_a, large_x = (_core.where(self.is_large, y, _LARGE_GAMMA) for y in (a, self.x))
        large_p, large_q = _large_gamma_parts(large_a, large_x)
        p, q = _core.where(self.is_large, large_p, p), _core.where(self.is_large, large_q, q)
        return _gamma_edges(self.a, self.x, p, 1.0), _gamma_edges(self.a, self.x, q, 0.0)

    def _small_parts(self, a: Tensor, series: Tensor) -> tuple[Tensor, Tensor]:
        """Return both functions where `a` is small."""
        a, x = _core.where(self.is_small, a, 0.1), _core.where(self.is_small, self.low_x, 0.5)
        log = a * _core.log(x) - _lgamma1p(a)
        rest = a * x / (a + 1.0) * series
        power = _core.exp(log)
        return power * (1.0 - rest), power * rest - _core.expm1(log)


def _fraction_slope(
    step: Callable[..., Any], params: Any, first: tuple[Tensor, Tensor], tangents: Any
) -> tuple[Tensor, Tensor]:
    """Return a continued fraction and its derivative.

    `first` is the value and the derivative of the first entry.
    """
    value, slope = first
    zero = value * 0.0
    state, still = _fraction_start(value), (zero, slope, zero, slope, _core.tensor(0.0, "f64"))
    found = _converge_with_slope(step, params, state, tangents, still)
    return found[0][3], found[1][3]


def _gamma_edges(a: Tensor, x: Tensor, value: Tensor, at_infinity: float) -> Tensor:
    """Return the value with its limits at zero and infinity, and NaN outside of the domain."""
    at_zero = 1.0 - at_infinity
    value = _core.where(_core.equal(x, 0.0) | _core.equal(a, math.inf), at_zero, value)
    value = _core.where(_core.equal(x, math.inf), at_infinity, value)
    # The limit at `a` of 0 has no rounding error, but the derivative of the value.
    limit = value - _core.stop_grad(value) + at_infinity
    value = _core.where(_core.equal(a, 0.0), limit, value)
    both = _core.equal(x, 0.0) & _core.equal(a, 0.0)
    both = both | (_core.equal(x, math.inf) & _core.equal(a, math.inf))
    outside = (a < 0.0) | (x < 0.0) | _core.isnan(a) | _core.isnan(x) | both
    return _core.where(outside, math.nan, value)


def _gamma_density(a: Tensor, x: Tensor) -> Tensor:
    """Return the derivative of the lower function in `x`: ``x**(a - 1) exp(-x) / gamma(a)``."""
    is_defined = (x >= 0.0) & (a >= 0.0)
    inside = is_defined & (x > 0.0) & _core.isfinite(a) & _core.isfinite(x)
    safe_a, safe_x = _core.where(inside, a, 1.0), _core.where(inside, x, 1.0)
    value = safe_a * _core.exp(_log_gamma_term(safe_a, safe_x)) / safe_x
    # At 0 the power itself has all derivatives, and its logarithm has none.
    at_zero = _core.equal(x, 0.0)
    safe_a, safe_x = _core.where(at_zero, a, 1.0), _core.where(at_zero, x, 1.0)
    limit = _core.pow(safe_x, safe_a - 1.0) * _core.exp(-safe_x - _core.lgamma(safe_a))
    edge = _core.where(at_zero, limit, _core.where(is_defined, 0.0, math.nan))
    return _core.where(inside, value, edge)


def _gamma_slope(index: int) -> Callable[..., Tensor]:
    """Return the derivative of one of the two functions in `a`."""

    def slope(a: Tensor, x: Tensor) -> Tensor:
        gamma = _Gamma(a, x)
        sums, slopes = gamma.slopes()
        one = a * 0.0 + 1.0
        found: Tensor = jvp(lambda a, sums: gamma.parts(a, sums)[index], (a, sums), (one, slopes))[
            1
        ]
        return found

    return slope


def _gamma_parts(a: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    gamma = _Gamma(a, x)
    return gamma.parts(a, gamma.sums())


_gammainc = with_slopes(lambda a, x: _gamma_parts(a, x)[0], _gamma_slope(0), _gamma_density)
_gammaincc = with_slopes(
    lambda a, x: _gamma_parts(a, x)[1],
    _gamma_slope(1),
    lambda a, x: _core.negative(_gamma_density(a, x)),
)


def _betaln_value(a: Tensor, b: Tensor) -> Tensor:
    p, q = _core.minimum(a, b), _core.maximum(a, b)
    wide = _core.maximum(q, _STIRLING)
    # The larger parameter is large, so Stirling's series computes lgamma(q) - lgamma(p + q).
    small = _core.minimum(p, _STIRLING)
    beyond = _stirling(wide) - _stirling(small + wide)
    beyond = beyond + small - small * _core.log(small + wide)
    beyond = beyond + _core.lgamma(small) - (wide - 0.5) * _core.log1p(small / wide)
    # Both are.
    large = _core.maximum(p, _STIRLING)
    both = _stirling(large) + _stirling(wide) - _stirling(large + wide)
    both = both - 0.5 * _core.log(wide) + 0.5 * math.log(2.0 * math.pi)
    both = both + (large - 0.5) * _core.log(large / (large + wide))
    both = both - wide * _core.log1p(large / wide)
    plain = _core.lgamma(p) + _core.lgamma(q) - _core.lgamma(p + q)
    value = _core.where(p >= _STIRLING, both, _core.where(q >= _STIRLING, beyond, plain))
    value = _core.where(_core.equal(q, math.inf), -math.inf, value)
    value = _core.where(_core.equal(p, 0.0), math.inf, value)
    return _core.where((p < 0.0) | _core.isnan(p + q), math.nan, value)


def _betaln_slope(a: Tensor, b: Tensor) -> Tensor:
    """Return ``digamma(a) - digamma(a + b)``, whose limit at infinite `a` is zero."""
    is_limit = _core.isinf(a) & _core.isfinite(b)
    return _core.where(is_limit, 0.0, _core.digamma(a) - _core.digamma(a + b))


_betaln = with_slopes(_betaln_value, _betaln_slope, lambda a, b: _betaln_slope(b, a))


def _log_small_beta(p: Tensor, q: Tensor) -> Tensor:
    """Return ``log(p B(p, q))`` of small `p`, which is near zero.

    The value is ``lgamma(1 + p) - (lgamma(p + w) - lgamma(w))`` with ``w = q + 10``, plus the
    logarithm of ``(1 + p / q) (1 + p / (q + 1)) … (1 + p / (q + 9))``. The difference is the
    integral of digamma, by Gauss's quadrature of two points.
    """
    excess = p * 0.0  # The product minus 1.
    for k in range(int(_STIRLING)):
        step = p / (q + k)
        excess = excess * (1.0 + step) + step
    middle, width = q + _STIRLING + 0.5 * p, math.sqrt(1 / 12) * p
    mean = 0.5 * (_large_digamma(middle - width) + _large_digamma(middle + width))
    return _lgamma1p(p) + _core.log1p(excess) - p * mean


def _beta_scale(p: Tensor, rest: Tensor) -> Tensor:
    """Return the scale of the entries of the fraction of the incomplete beta function."""
    return p * rest + 1.0


def _beta_start(p: Tensor, q: Tensor, y: Tensor, rest: Tensor) -> Tensor:
    """Return the first entry of the fraction of the incomplete beta function."""
    return (p * rest - q * y + 1.0) / _beta_scale(p, rest)


@_fraction_step
def _beta_step(p: Tensor, q: Tensor, y: Tensor, rest: Tensor, n: Tensor) -> tuple[Tensor, Tensor]:
    """Return the parts of the fraction of the incomplete beta function.

    It is the fraction of Didonato and Morris (1992, algorithm 708), every second convergent of
    DLMF 8.17.22. `rest` is ``1 - y``: for `y` near 1, ``p - (p + q) y`` would cancel. The entries
    are divided by their scale, so that parameters of any size neither overflow nor underflow, and
    the fraction by ``p / (p + 1)``; `_Beta.value` multiplies both back.
    """
    scale, middle = _beta_scale(p, rest), p + 2.0 * n - 1.0
    weight = _core.where(_core.equal(n, 1.0), p + 1.0, p + n - 1.0) / middle
    numerator = weight * ((p + q + n - 1.0) * y / middle) * n * ((q - n) * y / scale) / scale
    slope = (p + n) / (middle + 2.0) * ((p * rest - q * y + 1.0 + n * (1.0 + rest)) / scale)
    return numerator, n / middle * ((q - n) * y / scale) + n / scale + slope


@_series_step
def _small_beta_step(p: Tensor, q: Tensor, y: Tensor, n: Tensor) -> Tensor:
    """Return a quotient of terms of ``(1 - F(p, 1 - q; p + 1; y)) (p + 1) / (p (q - 1) y)``.

    ``F`` is Gauss's hypergeometric function.
    """
    return y * (n + 1.0 - q) * (n + p) / ((n + 1.0) * (n + 1.0 + p))


class _Beta:
    """The arguments of an incomplete beta function, with which its fraction converges fast.

    For small `b`, the complement is ``y**b F(b, 1 - a; b + 1; y) / (b B(a, b))`` with ``y = 1 - x``
    (DLMF 8.17.7). All factors are near 1, so the function does not cancel.
    """

    def __init__(self, a: Tensor, b: Tensor, x: Tensor) -> None:
        self.inside = (a > 0.0) & (b > 0.0) & (x > 0.0) & (x < 1.0) & _core.isfinite(a + b)
        where = _core.where
        a, b = where(self.inside, a, 1.0), where(self.inside, b, 1.0)
        self.x = x = where(self.inside, x, 0.5)
        self.is_low = x < (a + 1.0) / (a + b + 2.0)
        self.a, self.b = a, b
        p, q = self._exchange(a, b)
        y = where(self.is_low, x, 1.0 - x)
        self.params = (p, q, y, where(self.is_low, 1.0 - x, x))
        self.is_small = ~self.is_low & (b < _SMALL_BETA)
        self.small_params = (p, q, where(self.is_small, y, 0.0))

    def _exchange(self, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
        """Exchange two values where the complement is computed."""
        where = _core.where
        return where(self.is_low, first, second), where(self.is_low, second, first)

    def sums(self) -> tuple[Tensor, Tensor]:
        """Return the fraction of the function, and the series of the complement for small `b`."""
        one = self.a * 0.0 + 1.0
        start = _fraction_start(_beta_start(*self.params))
        fraction = _converge(_beta_step, self.params, start)[3]
        return fraction, _converge(_small_beta_step, self.small_params, _series_start(one))[2]

    def slope(self, index: int) -> Tensor:
        """Return the derivative of the function in `a` or `b`."""
        zero, one = self.a * 0.0, self.a * 0.0 + 1.0
        changes = (one, zero) if index == 0 else (zero, one)
        tangents = (*self._exchange(*changes), zero, zero)
        first = jvp(_beta_start, self.params, tangents)
        fraction, slope = _fraction_slope(_beta_step, self.params, first, tangents)
        series = _converge_with_slope(
            _small_beta_step, self.small_params, _series_start(one), tangents[:3]
        )
        sums, slopes = (fraction, series[0][2]), (slope, series[1][2])
        found: Tensor = jvp(self.value, (self.a, self.b, sums), (*changes, slopes))[1]
        return found

    def value(self, a: Tensor, b: Tensor, sums: tuple[Tensor, Tensor]) -> Tensor:
        """Return the function of arguments inside of its domain."""
        p, q = self._exchange(a, b)
        logs = self._exchange(_core.log(self.x), _core.log1p(-self.x))
        power = _core.exp(p * logs[0] + q * logs[1] - _betaln(p, q))
        value = power / (p / (p + 1.0) * _beta_scale(p, self.params[3]) * sums[0])
        high = _core.where(self.is_small, self._small_value(a, b, sums[1]), 1.0 - value)
        return _core.where(self.is_low, value, high)

    def _small_value(self, a: Tensor, b: Tensor, series: Tensor) -> Tensor:
        """Return the function where `b` is small and the complement would be computed."""
        where, y = _core.where, self.small_params[2]
        b = where(self.is_small, b, _SMALL_BETA)
        log = b * _core.log1p(where(self.is_small, -self.x, -0.5)) - _log_small_beta(b, a)
        rest = b * (a - 1.0) * y / (b + 1.0) * series
        return _core.exp(log) * rest - _core.expm1(log)


def _betainc_value(a: Tensor, b: Tensor, x: Tensor) -> Tensor:
    beta = _Beta(a, b, x)
    # The rounding errors of the logarithms may increase a value near 1.
    value = _core.minimum(beta.value(beta.a, beta.b, beta.sums()), 1.0)
    return _core.where(beta.inside, value, _beta_edges(a, b, x))


def _beta_edges(a: Tensor, b: Tensor, x: Tensor) -> Tensor:
    """Return the limits at the ends of the domain, and NaN outside of the domain."""
    at_zero, at_one = _core.equal(x, 0.0), _core.equal(x, 1.0)
    is_between = (x > 0.0) & (x < 1.0)
    # The distribution concentrates at 1 for infinite `a` and at 0 for infinite `b`.
    at_zero = at_zero | (is_between & _core.isinf(a) & _core.isfinite(b))
    at_one = at_one | (is_between & _core.isinf(b) & _core.isfinite(a))
    # Outside of the range of the fraction, the sum of finite parameters overflows. The distribution
    # then concentrates at its mean.
    is_finite, mean = is_between & _core.isfinite(a) & _core.isfinite(b), 1.0 / (1.0 + b / a)
    at_zero, at_one = at_zero | (is_finite & (x < mean)), at_one | (is_finite & (x > mean))
    edge = _core.where(at_zero, 0.0, _core.where(at_one, 1.0, math.nan))
    return _core.where((a > 0.0) & (b > 0.0), edge, math.nan)


def _beta_slope(index: int) -> Callable[..., Tensor]:
    """Return the derivative of the function in `a` or `b`."""

    def slope(a: Tensor, b: Tensor, x: Tensor) -> Tensor:
        beta = _Beta(a, b, x)
        return _core.where(beta.inside, beta.slope(index), 0.0)

    return slope


def _beta_density(a: Tensor, b: Tensor, x: Tensor) -> Tensor:
    """Return the derivative of the function in `x`."""
    beta = _Beta(a, b, x)
    log = (beta.a - 1.0) * _core.log(beta.x) + (beta.b - 1.0) * _core.log1p(-beta.x)
    value = _core.exp(log - _betaln(beta.a, beta.b))
    # At 0 and 1 the powers themselves have all derivatives, and their logarithms have none.
    at_end = (_core.equal(x, 0.0) | _core.equal(x, 1.0)) & (a > 0.0) & (b > 0.0)
    at_end = at_end & _core.isfinite(a) & _core.isfinite(b)
    a, b, x = (_core.where(at_end, parameter, 1.0) for parameter in (a, b, x))
    limit = _core.pow(x, a - 1.0) * _core.pow(1.0 - x, b - 1.0) * _core.exp(-_betaln(a, b))
    return _core.where(beta.inside, value, _core.where(at_end, limit, 0.0))


_betainc = with_slopes(_betainc_value, _beta_slope(0), _beta_slope(1), _beta_density)


def gammainc(a: TensorLike, x: TensorLike, /) -> Tensor:
    """Return the regularized lower incomplete gamma function.

    It is the integral of ``t**(a - 1) * exp(-t)`` from 0 to `x`, divided by the gamma function of
    `a`: the distribution function of the gamma distribution.

    Parameters
    ----------
    a : tensor_like
        Positive real numbers; integers count as ``float32``.
    x : tensor_like
        Real numbers from 0 on, which broadcast with `a`.

    Returns
    -------
    Tensor
        Floats from 0 to 1; NaN outside of the domain.

    Raises
    ------
    DTypeError
        If an argument is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> round(nx.special.gammainc(1.0, 2.0).item(), 5)
    0.86466
    """
    return elementwise("gammainc", _gammainc, a, x)


def gammaincc(a: TensorLike, x: TensorLike, /) -> Tensor:
    """Return the regularized upper incomplete gamma function, ``1 - gammainc(a, x)``.

    Parameters and errors are the same as for `gammainc`. Small values are computed without
    cancellation.

    Examples
    --------
    >>> import nxla as nx
    >>> round(nx.special.gammaincc(1.0, 2.0).item(), 5)
    0.13534
    """
    return elementwise("gammaincc", _gammaincc, a, x)


def betainc(a: TensorLike, b: TensorLike, x: TensorLike, /) -> Tensor:
    """Return the regularized incomplete beta function.

    It is the integral of ``t**(a - 1) * (1 - t)**(b - 1)`` from 0 to `x`, divided by the integral
    to 1: the distribution function of the beta distribution. Small values are computed without
    cancellation. If one parameter is infinite, the result is the limit. If both parameters exceed
    about 1e13 and `x` is near the mean ``a / (a + b)``, the result is NaN.

    Parameters
    ----------
    a, b : tensor_like
        Positive real numbers; integers count as ``float32``.
    x : tensor_like
        Real numbers from 0 to 1, which broadcast with `a` and `b`.

    Returns
    -------
    Tensor
        Floats from 0 to 1; NaN outside of the domain.

    Raises
    ------
    DTypeError
        If an argument is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> round(nx.special.betainc(2.0, 3.0, 0.5).item(), 5)
    0.6875
    """
    return elementwise("betainc", _betainc, a, b, x)


def betaln(a: TensorLike, b: TensorLike, /) -> Tensor:
    """Return the logarithm of the beta function, ``lgamma(a) + lgamma(b) - lgamma(a + b)``.

    The limit at an infinite parameter is minus infinity.

    Parameters
    ----------
    a, b : tensor_like
        Positive real numbers; integers count as ``float32``.

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
    >>> round(nx.special.betaln(2.0, 3.0).item(), 5)
    -2.48491
    """
    return elementwise("betaln", _betaln, a, b)


_hints.install(globals())
