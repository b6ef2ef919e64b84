"""Element-wise functions, and conversions of dtypes."""

from __future__ import annotations

from typing import Any

import nxla as nx
from golden.calls.adapter import Adapter, adapt

#: Functions without options, where the names differ.
RENAMED = {
    "as_type": "astype",
    "bitwise_not": "bitwise_invert",
    "conjugate": "conj",
    "is_infinity": "isinf",
    "is_nan": "isnan",
    "left_shift": "bitwise_left_shift",
    "max": "maximum",
    "min": "minimum",
    "negate": "negative",
    "remainder": "fmod",
    "right_shift": "bitwise_right_shift",
    "round": "round_half_away",
    "select": "where",
}
SAME = [
    "abs",
    "acos",
    "acosh",
    "add",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitcast",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "cbrt",
    "ceil",
    "clip",
    "cos",
    "cosh",
    "count_leading_zeros",
    "divide",
    "equal",
    "erf",
    "erf_inv",
    "erfc",
    "exp",
    "expm1",
    "floor",
    "greater",
    "greater_equal",
    "imag",
    "less",
    "less_equal",
    "log10",
    "log1p",
    "log2",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "multiply",
    "not_equal",
    "phase",
    "population_count",
    "pow",
    "quotient",
    "real",
    "rsqrt",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "subtract",
    "tan",
    "tanh",
]


def _log(x: Any, base: Any = None) -> Any:
    return nx.log(x) if base is None else nx.log(x, base)


CALLS: dict[tuple[str, str], Adapter] = {
    **{("Nx", name): adapt(name) for name in SAME},
    **{("Nx", theirs): adapt(name) for theirs, name in RENAMED.items()},
    ("Nx", "log"): adapt(_log),
    ("Nx", "complex"): adapt("complex"),
    ("Nx", "all_close"): adapt("all_close"),
}
