"""Reductions, windows and running totals."""

from __future__ import annotations

import re
from typing import Any

import nxla as nx
from golden.calls.adapter import Adapter, adapt
from golden.values import Fun

AXES = {"axes": "axis", "keep_axes": "keepdims"}
AXIS = {"keep_axis": "keepdims"}
WINDOW = {"window_dilations": "dilations"}
STATISTIC = AXES | {"ddof": "correction"}


def function(source: Fun) -> Any:
    """Read a function that applies one function of Nx to its two arguments."""
    found = re.fullmatch(r"fn x, y -> Nx\.(\w+)\(x, y\) end", source.source)
    if found is None:
        raise NotImplementedError(f"cannot read {source.source}")
    name = {"max": "maximum", "min": "minimum"}.get(found[1], found[1])
    return getattr(nx, name)


def _reduce(x: Any, initial: Any, combine: Fun, **options: Any) -> Any:
    return nx.reduce(x, initial, function(combine), **options)


def _window_reduce(x: Any, initial: Any, dimensions: Any, combine: Fun, **options: Any) -> Any:
    return nx.window_reduce(x, initial, function(combine), dimensions, **options)


def _covariance(*args: Any, **options: Any) -> Any:
    # For complex numbers, Nx returns the conjugate of the matrix of nxla and NumPy.
    found = nx.covariance(*args, **options)
    return nx.conj(found) if found.dtype.kind == "complex" else found


def _scatter(name: str) -> Any:
    def call(x: Any, source: Any, initial: Any, dimensions: Any, **options: Any) -> Any:
        # Nx converts the initial value to a tensor, whose dtype enters the promotion.
        return getattr(nx, name)(x, source, nx.asarray(initial), dimensions, **options)

    return call


CALLS: dict[tuple[str, str], Adapter] = {
    ("Nx", "sum"): adapt("sum", AXES),
    ("Nx", "product"): adapt("prod", AXES),
    ("Nx", "reduce_max"): adapt("max", AXES),
    ("Nx", "reduce_min"): adapt("min", AXES),
    ("Nx", "all"): adapt("all", AXES),
    ("Nx", "any"): adapt("any", AXES),
    ("Nx", "mean"): adapt("mean", AXES),
    ("Nx", "weighted_mean"): adapt("weighted_mean", AXES),
    ("Nx", "variance"): adapt("var", STATISTIC),
    ("Nx", "standard_deviation"): adapt("std", STATISTIC),
    ("Nx", "covariance"): adapt(_covariance, {"ddof": "correction"}),
    ("Nx", "median"): adapt("median", AXIS),
    ("Nx", "mode"): adapt("mode", AXIS),
    ("Nx", "argmax"): adapt("argmax", AXIS | {"type": "dtype"}),
    ("Nx", "argmin"): adapt("argmin", AXIS | {"type": "dtype"}),
    ("Nx", "logsumexp"): adapt("logsumexp", AXES | {"exp_scaling_factor": "scale"}),
    ("Nx", "reduce"): adapt(_reduce, AXES | {"type": "dtype"}),
    **{
        ("Nx", f"window_{name}"): adapt(f"window_{name}", WINDOW)
        for name in ("sum", "product", "max", "min", "mean")
    },
    ("Nx", "window_reduce"): adapt(_window_reduce, WINDOW),
    ("Nx", "window_scatter_max"): adapt(_scatter("window_scatter_max"), WINDOW),
    ("Nx", "window_scatter_min"): adapt(_scatter("window_scatter_min"), WINDOW),
    ("Nx", "cumulative_sum"): adapt("cumulative_sum", axis=0),
    ("Nx", "cumulative_product"): adapt("cumulative_prod", axis=0),
    ("Nx", "cumulative_max"): adapt("cumulative_max", axis=0),
    ("Nx", "cumulative_min"): adapt("cumulative_min", axis=0),
}
