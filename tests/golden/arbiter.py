"""Results of NumPy for cases in which nxla differs from the recorded result.

Nx's reference backend differs from other libraries in some functions. A case passes if NumPy
returns the result of nxla, and fails if NumPy differs or lacks the function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import nxla as nx
from golden import compare
from golden.values import SPECIAL, Data

#: The NumPy dtype of each dtype of nxla; narrow floats map to wider floats.
DTYPES = {
    **{f"s{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    **dict.fromkeys(("f8_e5m2", "f8_e4m3fn", "bf16", "f16", "f32"), "float32"),
    "f64": "float64",
    "c64": "complex64",
    "c128": "complex128",
}

#: The allowed difference relative to the largest number, because NumPy rounds differently.
TOLERANCE = 1e-4


def agrees(
    function: tuple[str, str], args: Sequence[Any], options: Mapping[str, Any], actual: Any
) -> bool:
    """Return whether NumPy returns the result of nxla."""
    found = OPS.get(function)
    if found is None:
        return False
    arrays = [_array(value) for value in args]
    axes_before = len(args[0].vectorized) if isinstance(args[0], Data) else 0
    with np.errstate(all="ignore"):
        try:
            expected = found(*arrays, first=axes_before, **options)
        except np.linalg.LinAlgError:
            # nxla returns NaN for matrices that NumPy rejects.
            return isinstance(actual, nx.Tensor) and bool(nx.any(nx.isnan(actual)).item())
        except (IndexError, TypeError, ValueError):
            return False
    return _same(expected, actual)


def _array(value: Any) -> Any:
    if isinstance(value, Data):
        shape = (*(size for _, size in value.vectorized), *value.shape)
        return np.array(value.data, dtype=DTYPES.get(value.dtype)).reshape(shape)
    return value


def _same(expected: Any, actual: Any) -> bool:
    if isinstance(expected, bytes | float) and not isinstance(expected, np.generic):
        return bool(expected == actual)
    if not isinstance(actual, nx.Tensor):
        return False
    dense = nx.devectorize(actual) if actual.vectorized_axes else actual
    if tuple(dense.shape) != expected.shape:
        return False
    finite = np.abs(expected[np.isfinite(expected)])
    bound = compare.Tolerance(0.0, TOLERANCE * max(1.0, float(finite.max(initial=0.0))))
    pairs = zip(expected.ravel().tolist(), compare.flat(dense.tolist()), strict=True)
    return all(compare.close(want, got, bound) for want, got in pairs)


def _unary(function: Callable[[Any], Any]) -> Callable[..., Any]:
    def call(x: Any, *, first: int) -> Any:
        del first
        x = x if isinstance(x, np.ndarray) else np.array(x, "complex64")
        return function(x if x.dtype.kind in "fc" else x.astype("float32"))

    return call


def _axes(x: Any, first: int, axes: Any) -> tuple[int, ...]:
    if axes is None:
        return tuple(range(first, x.ndim))
    return tuple(axis + first if axis >= 0 else axis for axis in axes)


def _reduction(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(x: Any, *, first: int, axes: Any = None, keep_axes: bool = False) -> Any:
        return function(x, axis=_axes(x, first, axes), keepdims=keep_axes)

    return call


def _log_sum(x: Any, *, first: int, axes: Any = None, keep_axes: bool = False) -> Any:
    wide = x.astype("float64")
    return np.log(np.sum(np.exp(wide), axis=_axes(x, first, axes), keepdims=keep_axes))


def _extreme(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(
        x: Any, *, first: int, axis: Any = None, keep_axis: bool = False, tie_break: str = "low"
    ) -> Any:
        del first
        axis, x = (0, x.ravel()) if axis is None else (axis, x)
        if tie_break == "low":
            return function(x, axis=axis, keepdims=keep_axis)
        return x.shape[axis] - 1 - function(np.flip(x, axis), axis=axis, keepdims=keep_axis)

    return call


def _clip(x: Any, low: Any, high: Any, *, first: int) -> Any:
    del first
    return np.clip(x, low, high)


def _pad(x: Any, value: Any, config: Any, *, first: int) -> Any:
    del first
    if any(len(entry) > 2 and entry[2] for entry in config) or not isinstance(value, float):
        raise ValueError("numpy pads at the ends only")
    widths = [tuple(entry[:2]) for entry in config]
    return np.pad(x.astype("float32"), widths, constant_values=value)


def _fft2(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(
        x: Any, *, first: int, lengths: Any = None, axes: Any = (-2, -1), eps: Any = None
    ) -> Any:
        del first, eps
        return function(x, s=lengths, axes=tuple(axes))

    return call


def _norm(x: Any, *, first: int, ord: Any = None, axes: Any = None, keep_axes: bool = False) -> Any:
    del first
    axis = None if axes is None else tuple(axes)
    word = {"frobenius": "fro", "nuclear": "nuc"}.get(ord, SPECIAL.get(str(ord), ord))
    return np.asarray(np.linalg.norm(x.astype("float64"), word, axis, keep_axes))


def _linear(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(x: Any, *, first: int, eps: Any = None) -> Any:
        del first, eps
        if not np.allclose(x, np.conj(np.swapaxes(x, -1, -2))) and function is np.linalg.cholesky:
            raise np.linalg.LinAlgError("not Hermitian")
        return np.asarray(function(x))

    return call


def _nearest_half(bits: Any, dropped: int) -> Any:
    """Drop low bits, rounding to nearest even."""
    half = (1 << (dropped - 1)) - 1
    return (bits.astype("uint64") + half + ((bits >> dropped) & 1)) >> dropped


def _dump_bf16(x: Any, *, first: int) -> bytes:
    del first
    return _nearest_half(np.array(x, "<f4").view("<u4"), 16).astype("<u2").tobytes()


def _dump_f8(x: Any, *, first: int) -> bytes:
    del first
    return _nearest_half(np.array(x, "<f2").view("<u2"), 8).astype("u1").tobytes()


def _load_f8(x: bytes, *, first: int) -> float:
    del first
    return float(np.frombuffer(b"\0" + x, "<f2")[0])


UNARY: dict[str, Callable[[Any], Any]] = {
    **{name: getattr(np, name) for name in ("exp", "expm1", "log", "log1p", "log2", "log10")},
    **{name: getattr(np, name) for name in ("abs", "sqrt", "sign")},
    **{name: getattr(np, name) for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{f"a{name}": getattr(np, f"arc{name}") for name in ("sin", "cos", "tan")},
    **{f"a{name}": getattr(np, f"arc{name}") for name in ("sinh", "cosh", "tanh")},
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}

OPS: dict[tuple[str, str], Callable[..., Any]] = {
    **{("Nx", name): _unary(function) for name, function in UNARY.items()},
    ("Nx", "all"): _reduction(np.all),
    ("Nx", "any"): _reduction(np.any),
    ("Nx", "argmax"): _extreme(np.argmax),
    ("Nx", "argmin"): _extreme(np.argmin),
    ("Nx", "clip"): _clip,
    ("Nx", "logsumexp"): _log_sum,
    ("Nx", "pad"): _pad,
    ("Nx", "pad_outer"): _pad,
    ("Nx", "fft2"): _fft2(np.fft.fft2),
    ("Nx", "ifft2"): _fft2(np.fft.ifft2),
    ("Nx.LinAlg", "cholesky"): _linear(np.linalg.cholesky),
    ("Nx.LinAlg", "norm"): _norm,
    ("Nx.LinAlg", "pinv"): _linear(np.linalg.pinv),
    ("Nx.Floating", "dump_bf16"): _dump_bf16,
    ("Nx.Floating", "dump_f8"): _dump_f8,
    ("Nx.Floating", "load_f8"): _load_f8,
}
