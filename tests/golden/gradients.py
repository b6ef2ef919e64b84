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
TOLERANCE = compare.Tolerance(2e-3, 2e-3)


def mismatch(case: Case, traced: Any, operands: list[Any], backend: str) -> str | None:
    """Return how the gradient of a function differs from the recorded one; None if it does not."""
    spec = case.raw["grad"]

    def scalar(*inputs: Any) -> Any:
        result = traced(*inputs)
        return nx.sum(result) if spec["of"] == "sum(f)" else result

    expected = decode(spec["result"])
    gradient = nx.jit(nx.grad(scalar, argnums=tuple(spec["wrt"])), compiler=backend)
    with printed():
        found = attempt(lambda: gradient(*operands))
        if isinstance(found, BaseException):
            rejected = isinstance(expected, Failure) and isinstance(found, nx.GradientError)
            return None if rejected else judge(expected, found)
        if isinstance(expected, Failure) or spec.get("fd_note", "").startswith("upstream-bug"):
            derivatives = attempt(lambda: finite_differences(scalar, operands, spec["wrt"]))
            if isinstance(derivatives, BaseException):
                return f"finite differences: {type(derivatives).__name__}: {derivatives}"
            pairs = zip(found, derivatives, strict=True)
            return judge([_with_dtype_of(got, data) for got, data in pairs], found, TOLERANCE)
    converted = [_with_dtype_of(g, e.data) for g, e in zip(found, expected, strict=True)]
    loose = compare.LOOSE["gradients"] if case.tolerance else None
    return judge(converted, found, loose)


def with_nxla_dtypes(expected: Any, found: Any) -> Any:
    """Convert a recorded result with gradients to the conventions of nxla."""
    if isinstance(expected, Data) and isinstance(found, nx.Tensor):
        float_kinds = ("float", "complex")
        convertible = found.dtype.kind in float_kinds and expected.dtype[0] in "bfc"
        if not convertible or expected.shape != tuple(found.shape):
            return expected
        converted = _with_dtype_of(found, expected.data)
        return dataclasses.replace(converted, names=expected.names, vectorized=expected.vectorized)
    if isinstance(expected, tuple) and isinstance(found, tuple) and len(expected) == len(found):
        return tuple(with_nxla_dtypes(e, f) for e, f in zip(expected, found, strict=True))
    return expected


def _with_dtype_of(found: nx.Tensor, numbers: tuple[Any, ...]) -> Data:
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
    derivatives: list[tuple[float, ...]] = []
    for position in wrt:
        found: list[float] = []
        shape = wide[position].shape
        for element in range(wide[position].size):
            offset = nx.reshape(
                nx.where(nx.arange(wide[position].size) == element, step, 0.0), shape
            )
            values = []
            for sign in (1.0, -1.0):
                shifted = wide[position] + nx.astype(offset, nx.float64) * sign
                values.append(compiled(*wide[:position], shifted, *wide[position + 1 :]).item())
            found.append((values[0] - values[1]) / (2 * step))
        derivatives.append(tuple(found))
    return derivatives
