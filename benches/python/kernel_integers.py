"""Kernels of ``kernels.py`` on integers and booleans: counts, labels and pixels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kernel_case import Bench, Case, Kernel, over

FLAT = ((1_000,), (100_000,), (10_000_000,))
MATRIX = ((32, 32), (316, 316), (3162, 3162))
LABELS = ((100,), (10_000,), (1_000_000,))
DTYPES = ("s32", "s64")


def integers(
    function: Callable[..., Any], shapes: tuple[tuple[int, ...], ...] = FLAT, operands: int = 1
) -> Kernel:
    """Return a kernel over small integers with the same code for all libraries."""
    make = over(lambda b: lambda *arrays: function(b.xp, *arrays), operands)
    return Kernel("integer", shapes, make, DTYPES)


def among(b: Bench) -> Case:
    """Membership of integers in a set of five."""
    return Case(lambda x: b.xp.isin(x, b.xp.arange(5)), (b.normal(*b.shape),))


INTEGERS = {
    "sum of integers": integers(lambda xp, x: xp.sum(x)),
    "largest integer": integers(lambda xp, x: xp.max(x)),
    "number above three": integers(lambda xp, x: xp.sum(x > 3)),
    "share of equal ones": integers(lambda xp, x, y: xp.mean(x == y), operands=2),
    "running sum of integers": integers(lambda xp, x: xp.cumulative_sum(x)),
    "positions of largest integers": integers(lambda xp, x: xp.argmax(x, axis=1), MATRIX),
    "quotients and remainders": integers(lambda _, x: x // 7 + x % 7),
    "squares of integers": integers(lambda _, x: x**2),
    "integers or their negatives": integers(lambda xp, x: xp.where(x > 0, x, -x)),
    "integers as floats": integers(lambda _, x: x.astype("float32") * 0.5),
    "floats of labels": integers(
        lambda xp, x: (x[:, None] == xp.arange(10)).astype("float32"), LABELS
    ),
    "one of five": Kernel("integer", FLAT, among, DTYPES),
}
