"""Comparison of results with recorded results.

Nx returns predicates as ``u8``, and nxla as ``pred``. `same_dtype` accepts the difference, and the
elements are compared as numbers.
"""

from __future__ import annotations

import cmath
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import nxla as nx
from golden.values import SPECIAL, Atom, Data, Template, Type


@dataclass(frozen=True)
class Tolerance:
    """The allowed difference of numbers: ``absolute + relative * abs(expected)``."""

    relative: float
    absolute: float


#: One unit in the last place for narrow floats, and several units for wide floats.
TOLERANCES = {
    "f8_e5m2": Tolerance(2.0**-2, 2.0**-16),
    "f8_e4m3fn": Tolerance(2.0**-3, 2.0**-9),
    "bf16": Tolerance(2.0**-7, 1e-30),
    "f16": Tolerance(2.0**-9, 2.0**-24),
    "f32": Tolerance(1e-5, 1e-7),
    "f64": Tolerance(1e-7, 1e-9),
    "c64": Tolerance(1e-5, 1e-6),
    "c128": Tolerance(1e-7, 1e-9),
}
EXACT = Tolerance(0.0, 0.0)

#: Tolerances of modules whose functions accumulate rounding errors, for the dtypes that need larger
#: ones. Random numbers of narrow floats have narrow intermediate values, which amplify errors.
LOOSE: dict[str, dict[str, Tolerance]] = {
    "Nx.LinAlg": {
        "bf16": Tolerance(2.0**-4, 2.0**-3),
        "f32": Tolerance(1e-3, 1e-5),
        "f64": Tolerance(1e-5, 1e-7),
        "c64": Tolerance(1e-3, 1e-5),
    },
    # Where derivatives are zero, rounding errors of the factors accumulate once more.
    "gradients": {"f32": Tolerance(1e-3, 2e-5), "f64": Tolerance(1e-5, 1e-7)},
    "fft": {"f32": Tolerance(1e-4, 1e-5), "c64": Tolerance(1e-4, 1e-5)},
    "Nx.Random": {
        "bf16": Tolerance(0.05, 0.05),
        "f16": Tolerance(0.01, 0.01),
        "f64": Tolerance(1e-5, 1e-6),
        "c128": Tolerance(1e-5, 1e-6),
    },
}


#: Tolerances of some dtypes that replace the usual ones, or one tolerance for all dtypes.
Loose = Mapping[str, Tolerance] | Tolerance


def tolerance_of(dtype: str, loose: Loose | None = None) -> Tolerance:
    """Return the tolerance for numbers of a dtype."""
    if isinstance(loose, Tolerance):
        return loose
    return (loose or {}).get(dtype) or TOLERANCES.get(dtype, EXACT)


def same_dtype(expected: str, actual: str) -> bool:
    """Return whether two dtypes are the same; ``pred`` corresponds to ``u8`` of Nx."""
    return expected == actual or (expected == "u8" and actual == "pred")


def close(expected: Any, actual: Any, tolerance: Tolerance) -> bool:
    """Return whether two numbers are close; NaN is close to NaN, an infinity to itself."""
    if isinstance(expected, complex) or isinstance(actual, complex):
        return _close_complex(complex(expected), complex(actual), tolerance)
    if isinstance(expected, float) and math.isnan(expected):
        return isinstance(actual, float) and math.isnan(actual)
    if expected == actual:
        return True
    if isinstance(expected, float) and math.isinf(expected):
        return False
    return abs(expected - actual) <= tolerance.absolute + tolerance.relative * abs(expected)


def _close_complex(expected: complex, actual: complex, tolerance: Tolerance) -> bool:
    if cmath.isfinite(expected) and cmath.isfinite(actual):
        bound = tolerance.absolute + tolerance.relative * abs(expected)
        return abs(expected - actual) <= bound
    real = close(expected.real, actual.real, tolerance)
    return real and close(expected.imag, actual.imag, tolerance)


def flat(nested: Any) -> list[Any]:
    """Return the numbers of nested lists, or of one number."""
    if not isinstance(nested, list):
        return [nested]
    return [x for item in nested for x in flat(item)]


def _vectorized(actual: nx.Tensor) -> tuple[tuple[str, int], ...]:
    return tuple((name, size) for name, size in getattr(actual, "vectorized_axes", ()))


def difference(expected: Data, actual: nx.Tensor, loose: Loose | None = None) -> str | None:
    """Return how a tensor differs from the recorded one; None if it does not."""
    dtype = str(actual.dtype)
    if not same_dtype(expected.dtype, dtype):
        return f"dtype {dtype}, expected {expected.dtype}"
    if tuple(actual.shape) != expected.shape:
        return f"shape {tuple(actual.shape)}, expected {expected.shape}"
    if tuple(actual.names) != expected.names:
        return f"names {tuple(actual.names)}, expected {expected.names}"
    if _vectorized(actual) != expected.vectorized:
        return f"vectorized axes {_vectorized(actual)}, expected {expected.vectorized}"
    whole = nx.devectorize(actual) if expected.vectorized else actual
    bound = tolerance_of(expected.dtype, loose)
    numbers = flat(whole.tolist())
    if len(numbers) != len(expected.data):
        return f"{len(numbers)} elements, expected {len(expected.data)}"
    for index, (want, got) in enumerate(zip(expected.data, numbers, strict=True)):
        if not close(want, got, bound):
            return f"element {index} is {got!r}, expected {want!r}"
    return None


def mismatch(expected: Any, actual: Any, loose: Loose | None = None) -> str | None:
    """Return how a result differs from the recorded one; None if it does not.

    Tensors, numbers, dtypes and strings are compared by value. Tuples equal lists with the same
    items, because the format does not always use the same kind of sequence as Python.
    """
    if isinstance(expected, Data):
        if not isinstance(actual, nx.Tensor):
            return f"{type(actual).__name__} {actual!r}, expected a tensor"
        return difference(expected, actual, loose)
    if isinstance(expected, Template):
        found = (str(actual.dtype), tuple(actual.shape), tuple(actual.names))
        required = (expected.dtype, expected.shape, expected.names)
        return None if found == required else f"template {found}, expected {required}"
    if isinstance(expected, Type | Atom):
        text = expected.dtype if isinstance(expected, Type) else expected.name
        return None if str(actual) == text else f"{actual!s}, expected {text}"
    if isinstance(expected, list | tuple):
        return _sequence_mismatch(expected, actual, loose)
    if isinstance(expected, dict):
        if not isinstance(actual, dict) or list(actual) != list(expected):
            return f"{actual!r}, expected a mapping of {list(expected)}"
        pairs = ((f"[{key!r}]", expected[key], actual[key]) for key in expected)
        return _first_mismatch(pairs, loose)
    if isinstance(expected, int | float | complex) and not isinstance(expected, bool):
        # An int must not equal a float, because promotion depends on the kind.
        if type(actual) is not type(expected):
            return f"{type(actual).__name__} {actual!r}, expected {expected!r}"
        bound = tolerance_of("f32", loose)
        exact = isinstance(expected, int)
        ok = close(expected, actual, EXACT if exact else bound)
        return None if ok else f"{actual!r}, expected {expected!r}"
    if isinstance(expected, str):
        expected = _nxla_text(expected, actual)
    return (
        None if expected is actual or expected == actual else f"{actual!r}, expected {expected!r}"
    )


def _nxla_text(expected: str, actual: Any) -> Any:
    """Convert a string of Nx to the notation of nxla, or to the value that it denotes."""
    if isinstance(actual, bytes):
        # A binary that is valid UTF-8 was stored as a string.
        return expected.encode()
    if isinstance(actual, float) and expected in SPECIAL:
        return actual if close(SPECIAL[expected], actual, EXACT) else expected
    text = expected.replace("#Nx.Tensor<", "#nxla.Tensor<").replace(
        "#Nx.Heatmap<", "#nxla.Heatmap<"
    )
    text = re.sub(r"\bf8\[", "f8_e5m2[", text)
    # nxla breaks the lines of tensors differently, and Nx prints only 50 elements.
    start = "".join(text.split("...")[0].split())
    same = isinstance(actual, str) and "".join(actual.split()).startswith(start)
    return actual if "#nxla.Tensor<" in text and same else text


def _sequence_mismatch(expected: Any, actual: Any, loose: Loose | None) -> str | None:
    if not isinstance(actual, list | tuple):
        return f"{type(actual).__name__} {actual!r}, expected a sequence"
    if len(actual) != len(expected):
        return f"{len(actual)} items, expected {len(expected)}"
    pairs = ((f"[{i}]", want, actual[i]) for i, want in enumerate(expected))
    return _first_mismatch(pairs, loose)


def _first_mismatch(pairs: Any, loose: Loose | None) -> str | None:
    for index, want, got in pairs:
        reason = mismatch(want, got, loose)
        if reason is not None:
            return f"{index}: {reason}"
    return None


def numbers_mismatch(expected: tuple[Any, ...], actual: Any) -> str | None:
    """Compare the numbers of a tensor of any shape with the IEEE results."""
    if not isinstance(actual, nx.Tensor):
        return f"{type(actual).__name__} {actual!r}, expected a tensor"
    bound = TOLERANCES.get(str(actual.dtype), EXACT)
    numbers = flat(actual.tolist())
    if len(numbers) != len(expected):
        return f"{len(numbers)} elements, expected {len(expected)}"
    for index, (want, got) in enumerate(zip(expected, numbers, strict=True)):
        if not close(want, got, bound):
            return f"element {index} is {got!r}, expected {want!r}"
    return None
