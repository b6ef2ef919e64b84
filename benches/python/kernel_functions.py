"""Kernels of ``kernels.py`` that are element-wise functions of one or two operands."""

from __future__ import annotations

from typing import Any

from kernel_case import Kernel, shared

FLAT = ((1_000,), (100_000,), (10_000_000,))


def cube_root(xp: Any, x: Any) -> Any:
    """Return the cube root, which the array API standard lacks."""
    return xp.cbrt(x)


FUNCTIONS = {
    name: Kernel("function", FLAT, make)
    for name, make in {
        "sine": shared(lambda xp, x: xp.sin(x)),
        "tangent": shared(lambda xp, x: xp.tan(x)),
        "arcsine": shared(lambda xp, x: xp.asin(x / 8)),
        "arctangent": shared(lambda xp, x: xp.atan(x)),
        "angles of points": shared(lambda xp, x, y: xp.atan2(y, x), 2),
        "hyperbolic sine": shared(lambda xp, x: xp.sinh(x)),
        "hyperbolic cosine": shared(lambda xp, x: xp.cosh(x)),
        "hyperbolic arcsine": shared(lambda xp, x: xp.asinh(x)),
        "hyperbolic arctangent": shared(lambda xp, x: xp.atanh(x / 8)),
        "logarithm": shared(lambda xp, x: xp.log(xp.abs(x))),
        "logarithm of what is above one": shared(lambda xp, x: xp.log1p(xp.abs(x))),
        "exponential less one": shared(lambda xp, x: xp.expm1(x)),
        "cube root": shared(cube_root),
        "remainder": shared(lambda xp, x: xp.remainder(x, 0.7)),
        "nearest whole number": shared(lambda xp, x: xp.round(x)),
        "square root": shared(lambda xp, x: xp.sqrt(xp.abs(x))),
    }.items()
}
