"""Element-wise functions, and conversions of dtypes."""

from __future__ import annotations

import math
from typing import Any

import nxla as nx
from golden.calls.adapter import Adapter, adapt

#: Functions without options that have another name in nxla.
RENAMED = {
    "as_type": "astype",
    "bitwise_not": "bitwise_invert",
    "is_infinity": "isinf",
    "is_nan": "isnan",
    "negate": "negative",
    "round": "round_half_away",
    "select": "where",
}
SAME = [
    *("abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "bitcast", "cbrt", "ceil", "cos"),
    *("cosh", "count_leading_zeros", "erf", "erf_inv", "erfc", "exp", "expm1", "floor"),
    *("log1p", "logical_not", "phase", "population_count", "rsqrt"),
    *("sigmoid", "sign", "sin", "sinh", "sqrt", "tan", "tanh"),
]
#: Functions of two operands, with the names in nxla that differ.
BINARY = {
    "left_shift": "bitwise_left_shift",
    "max": "maximum",
    "min": "minimum",
    "remainder": "fmod",
    "right_shift": "bitwise_right_shift",
    **{
        name: name
        for name in (
            *("add", "atan2", "bitwise_and", "bitwise_or", "bitwise_xor", "divide", "equal"),
            *("greater", "greater_equal", "less", "less_equal", "logical_and", "logical_or"),
            *("logical_xor", "multiply", "not_equal", "pow", "quotient", "subtract"),
        )
    },
}


def _to_tensor(x: Any) -> Any:
    """Convert a number that is an atom in Nx to a tensor; it has the dtype ``f32`` in Nx."""
    return x if not isinstance(x, float) or math.isfinite(x) else nx.tensor(x)


def _binary(name: str) -> Any:
    def call(x: Any, y: Any) -> Any:
        return getattr(nx, name)(_to_tensor(x), _to_tensor(y))

    return call


def _clip(x: Any, low: Any, high: Any) -> Any:
    # Nx converts the bounds to tensors, whose dtypes enter the promotion.
    return nx.clip(x, nx.asarray(low), nx.asarray(high))


def _log(x: Any, base: Any = None) -> Any:
    return nx.log(x) if base is None else nx.log(x, base)


def _log_to(base: int) -> Any:
    """Return the logarithm of Nx: a quotient, which is not exact for all powers as nxla's is."""

    def call(x: Any) -> Any:
        x = nx.asarray(x)
        is_complex = x.dtype.kind == "complex"
        return getattr(nx, f"log{base}")(x) if is_complex else nx.log(x, base)

    return call


def as_node(name: str) -> Any:
    """Return the compiled function: real parts are floats and conjugates complex, as in Nx."""
    return getattr(nx._core, name)


CALLS: dict[tuple[str, str], Adapter] = {
    **{("Nx", name): adapt(name) for name in SAME},
    **{("Nx", nx_name): adapt(name) for nx_name, name in RENAMED.items()},
    **{("Nx", nx_name): adapt(_binary(name)) for nx_name, name in BINARY.items()},
    ("Nx", "log2"): adapt(_log_to(2)),
    ("Nx", "log10"): adapt(_log_to(10)),
    ("Nx", "clip"): adapt(_clip),
    ("Nx", "conjugate"): adapt(as_node("conj")),
    ("Nx", "imag"): adapt(as_node("imag")),
    ("Nx", "real"): adapt(as_node("real")),
    ("Nx", "log"): adapt(_log),
    ("Nx", "complex"): adapt("complex"),
    ("Nx", "all_close"): adapt("all_close"),
}
