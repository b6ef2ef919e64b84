"""Comparison of matrix factors, which are not unique.

The signs and orders of factors differ from Nx's reference backend. Therefore the tests multiply the
factors, and compare dtypes, shapes and unique quantities with the recorded ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import nxla as nx
from golden.values import Data

#: The allowed difference of products from the matrix, relative to its largest element.
TOLERANCES = {"bf16": 0.1, "f16": 2e-2, "f64": 1e-9, "c128": 1e-9}
DEFAULT_TOLERANCE = 1e-4


def _array(x: nx.Tensor) -> Any:
    if x.vectorized_axes:
        x = nx.devectorize(x)
    # NumPy has no bf16.
    wide = nx.astype(x, "f32") if str(x.dtype) in ("bf16", "f8_e5m2", "f8_e4m3fn") else x
    return wide.numpy()


def _recorded(x: Data) -> Any:
    # Vectorized axes come first, and NumPy's functions treat them as batch axes.
    return np.array(x.data).reshape((*(size for _, size in x.vectorized), *x.shape))


def _adjoint(x: Any) -> Any:
    return np.conj(np.swapaxes(x, -1, -2))


def _orthonormal(x: Any, bound: float) -> str | None:
    product = _adjoint(x) @ x if x.shape[-2] >= x.shape[-1] else x @ _adjoint(x)
    deviation = np.abs(product - np.eye(product.shape[-1])).max(initial=0)
    return None if deviation <= bound else f"vectors deviate from orthonormal by {deviation}"


def _equal(name: str, left: Any, right: Any, bound: float) -> str | None:
    deviation = np.abs(left - right).max(initial=0)
    scale = max(1.0, float(np.abs(right).max(initial=0)))
    return None if deviation <= bound * scale else f"{name} deviates by {deviation}"


def _qr(a: Any, factors: list[Any], _: Any, bound: float) -> list[str | None]:
    q, r = factors
    return [
        _equal("q r", q @ r, a, bound),
        _equal("r", np.triu(r), r, bound),
        _orthonormal(q, bound),
    ]


def _lu(a: Any, factors: list[Any], _: Any, bound: float) -> list[str | None]:
    p, lower, upper = factors
    return [
        _equal("p l u", p @ lower @ upper, a, bound),
        _equal("l", np.tril(lower), lower, bound),
        _equal("u", np.triu(upper), upper, bound),
        _orthonormal(p, bound),
    ]


def _eigh(a: Any, factors: list[Any], expected: Any, bound: float) -> list[str | None]:
    values, vectors = factors
    recorded = np.sort(_recorded(expected[0]).real, axis=-1)
    return [
        _equal("a v - v w", a @ vectors, vectors * values[..., None, :], bound),
        _equal("eigenvalues", np.sort(values, axis=-1), recorded, bound),
        _orthonormal(vectors, bound),
    ]


def _svd(a: Any, factors: list[Any], expected: Any, bound: float) -> list[str | None]:
    u, s, v = factors
    count = s.shape[-1]
    product = (u[..., :count] * s[..., None, :]) @ v[..., :count, :]
    return [
        _equal("u s v", product, a, bound),
        _equal("singular values", s, _recorded(expected[1]), max(bound, 1e-3)),
        _orthonormal(u, bound),
        _orthonormal(v, bound),
    ]


#: The check of each factorization.
CHECKS: dict[str, Callable[..., list[str | None]]] = {
    "qr": _qr,
    "lu": _lu,
    "eigh": _eigh,
    "svd": _svd,
}


def mismatch(op: str, matrix: Data, expected: Any, actual: Any) -> str | None:
    """Return the fault of factors of a matrix, or None."""
    shapes = [(tuple(x.shape), [tuple(axis) for axis in x.vectorized_axes]) for x in actual]
    required = [(x.shape, list(x.vectorized)) for x in expected]
    if shapes != required:
        return f"shapes {shapes}, expected {required}"
    dtype = str(actual[-1].dtype)
    if dtype != expected[-1].dtype:
        return f"dtype {dtype}, expected {expected[-1].dtype}"
    bound = TOLERANCES.get(dtype, DEFAULT_TOLERANCE)
    verdicts = CHECKS[op](_recorded(matrix), [_array(x) for x in actual], expected, bound)
    return next((reason for reason in verdicts if reason is not None), None)
