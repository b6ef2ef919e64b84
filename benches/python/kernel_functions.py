"""Functions of one or two numbers, among the kernels of ``kernels.py``."""

from __future__ import annotations

from typing import Any

from kernel_case import Kernel, alike

FLAT = ((1_000,), (100_000,), (10_000_000,))


def cube_root(xp: Any, x: Any) -> Any:
    """Return the cube root, which the array API standard lacks."""
    return xp.cbrt(x)


FUNCTIONS = {
    name: Kernel("function", FLAT, make)
    for name, make in {
        "sine": alike(lambda xp, x: xp.sin(x)),
        "tangent": alike(lambda xp, x: xp.tan(x)),
        "arcsine": alike(lambda xp, x: xp.asin(x / 8)),
        "arctangent": alike(lambda xp, x: xp.atan(x)),
        "angles of points": alike(lambda xp, x, y: xp.atan2(y, x), 2),
        "hyperbolic sine": alike(lambda xp, x: xp.sinh(x)),
        "hyperbolic cosine": alike(lambda xp, x: xp.cosh(x)),
        "hyperbolic arcsine": alike(lambda xp, x: xp.asinh(x)),
        "hyperbolic arctangent": alike(lambda xp, x: xp.atanh(x / 8)),
        "logarithm": alike(lambda xp, x: xp.log(xp.abs(x))),
        "logarithm of what is above one": alike(lambda xp, x: xp.log1p(xp.abs(x))),
        "exponential less one": alike(lambda xp, x: xp.expm1(x)),
        "cube root": alike(cube_root),
        "remainder": alike(lambda xp, x: xp.remainder(x, 0.7)),
        "nearest whole number": alike(lambda xp, x: xp.round(x)),
        "square root": alike(lambda xp, x: xp.sqrt(xp.abs(x))),
    }.items()
}
