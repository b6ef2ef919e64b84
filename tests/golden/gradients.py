"""Comparison of derivatives with those of Nx and with finite differences.

The allowed differences from the gradients of Nx are:

* A gradient of nxla has the dtype of its input, or ``f32`` for an integer. Nx starts with 1 in
  ``f32``, so the dtype of its gradient depends on the operations. The gradient of a real input is
  real in nxla, even if its gradient in Nx is complex.
* If the notes of a case mark the result of Nx as wrong, finite differences decide.
* If Nx rejects a function that nxla differentiates, finite differences decide.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import nxla as nx
from golden import compare
from golden.defn_case import Case, attempt, judge, printed
from golden.values import Data, Failure, decode

#: The allowed difference of a derivative from finite differences.
DIFFERENCES = compare.Tolerance(2e-3, 2e-3)


def mismatch(case: Case, traced: Any, operands: list[Any], backend: str) -> str | None:
    """Return how the gradient of a function differs from the recorded one; None if it does not."""
    wanted = case.raw["grad"]

    def scalar(*inputs: Any) -> Any:
        result = traced(*inputs)
        return nx.sum(result) if wanted["of"] == "sum(f)" else result

    expected = decode(wanted["result"])
    gradient = nx.jit(nx.grad(scalar, argnums=tuple(wanted["wrt"])), compiler=backend)
    with printed():
        found = attempt(lambda: gradient(*operands))
        if isinstance(found, BaseException):
            refused = isinstance(expected, Failure) and isinstance(found, nx.GradientError)
            return None if refused else judge(expected, found)
        if isinstance(expected, Failure) or wanted.get("fd_note", "").startswith("upstream-bug"):
            slopes = attempt(lambda: finite_differences(scalar, operands, wanted["wrt"]))
            if isinstance(slopes, BaseException):
                return f"finite differences: {type(slopes).__name__}: {slopes}"
            pairs = zip(found, slopes, strict=True)
            return judge([_like(got, data) for got, data in pairs], found, DIFFERENCES)
    alike = [_like(g, e.data) for g, e in zip(found, expected, strict=True)]
    loose = compare.LOOSE["gradients"] if case.tolerance else None
    return judge(alike, found, loose)


def with_our_dtypes(expected: Any, found: Any) -> Any:
    """Convert a recorded result with gradients to the conventions of nxla."""
    if isinstance(expected, Data) and isinstance(found, nx.Tensor):
        float_kinds = ("float", "complex")
        as_ours = found.dtype.kind in float_kinds and expected.dtype[0] in "bfc"
        if not as_ours or expected.shape != tuple(found.shape):
            return expected
        alike = _like(found, expected.data)
        return dataclasses.replace(alike, names=expected.names, vectorized=expected.vectorized)
    if isinstance(expected, tuple) and isinstance(found, tuple) and len(expected) == len(found):
        return tuple(with_our_dtypes(e, f) for e, f in zip(expected, found, strict=True))
    return expected


def _like(found: nx.Tensor, numbers: tuple[Any, ...]) -> Data:
    """Convert expected numbers to the dtype of a gradient."""
    if found.dtype.kind != "complex":
        numbers = tuple(x.real if isinstance(x, complex) else x for x in numbers)
    names, vectorized = tuple(found.names), found.vectorized_axes
    return Data(str(found.dtype), tuple(found.shape), numbers, names, vectorized)


def finite_differences(
    function: Any, operands: list[Any], wrt: list[int], step: float = 1e-5
) -> list[tuple[float, ...]]:
    """Take central differences in double precision, one element at a time."""
    wide = [nx.astype(x, nx.float64) for x in operands]
    compiled = nx.jit(function)
    slopes: list[tuple[float, ...]] = []
    for place in wrt:
        found: list[float] = []
        shape = wide[place].shape
        for element in range(wide[place].size):
            nudge = nx.reshape(nx.where(nx.arange(wide[place].size) == element, step, 0.0), shape)
            ends = []
            for sign in (1.0, -1.0):
                moved = wide[place] + nx.astype(nudge, nx.float64) * sign
                ends.append(compiled(*wide[:place], moved, *wide[place + 1 :]).item())
            found.append((ends[0] - ends[1]) / (2 * step))
        slopes.append(tuple(found))
    return slopes
