"""Gradients of programs against finite differences, and against JAX if it is installed.

The tests compare derivatives along a direction: by reverse mode, forward mode and finite
differences. They compare second derivatives in the same way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import nxla as nx
from fuzz import programs
from fuzz.driver import Failure, main

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

STEP = 1e-6
#: Above this value, products of derivatives may overflow although results do not.
HUGE = 1e100

#: Operations for which finite differences are accurate. Others have kinks or jumps nearby, or sums
#: that cancel.
SMOOTH = frozenset(
    {
        "sin",
        "cos",
        "tanh",
        "arctan",
        "square",
        "negative",
        "sigmoid",
        "add",
        "subtract",
        "multiply",
        "hypot",
        "sum",
        "mean",
        "prod",
        "cumulative_sum",
        "flip",
        "roll",
        "expand_dims",
        "permute_dims",
        "reshape",
        "concat",
        "matmul",
        "slice",
        "pad",
        "take",
        "log1p_abs",
        "exp",
    }
)


def generate(rng: random.Random) -> Any:
    return programs.generate(
        rng, steps=rng.randint(1, 7), kinds="f", special=False, smooth=True, dtypes=("f64",)
    ) | {"seed": rng.randrange(1 << 30)}


def check(case: Any) -> int:
    steps = case["steps"]
    if not steps or any(name not in SMOOTH for name, *_ in steps):
        return 0
    arrays = [programs.array_of(given) for given in case["inputs"]]
    rng = np.random.default_rng(case["seed"])
    # Avoid kinks, such as `abs` at 0, and equal elements.
    arrays = [np.asarray(array + rng.uniform(0.01, 0.1, array.shape)) for array in arrays]
    directions = [np.asarray(rng.normal(size=array.shape)) for array in arrays]

    def function(*xs: Any) -> Any:
        return nx.sum(programs.run(case, xs)[-1])

    with np.errstate(all="ignore"):

        def moved(by: float) -> Any:
            tensors = [
                nx.tensor(np.asarray(a + by * d)) for a, d in zip(arrays, directions, strict=True)
            ]
            return float(function(*tensors).item())

        middle = moved(0.0)
        difference = (moved(STEP) - moved(-STEP)) / (2 * STEP)
        coarse = (moved(2 * STEP) - moved(-2 * STEP)) / (4 * STEP)
    if not np.isfinite(difference) or abs(middle) > 1e5 or abs(difference) > 1e5:
        return 0
    if abs(difference - coarse) > 1e-5 * (1 + abs(difference)):
        return 0  # The finite difference itself is inaccurate here.
    tensors = [nx.tensor(array) for array in arrays]
    if not all(np.all(np.abs(np.asarray(value)) < HUGE) for value in programs.run(case, tensors)):
        # At infinity, the chain rule returns NaN for a constant function: 0 * inf.
        return 0
    every = tuple(range(len(arrays)))
    try:
        gradient = nx.grad(function, argnums=every)
        reverse = sum(
            float((part.numpy() * direction).sum())
            for part, direction in zip(gradient(*tensors), directions, strict=True)
        )
        _, forward = nx.jvp(function, tuple(tensors), tuple(nx.tensor(d) for d in directions))
    except (nx.NxlaError, TypeError, ValueError) as raised:
        raise Failure(f"raises {type(raised).__name__}: {raised}") from raised
    close = 1e-4 * (1 + abs(difference)) + 1e-9 * abs(middle) / STEP
    for name, found in (("reverse", reverse), ("forward", float(forward.item()))):
        if not abs(found - difference) <= close:
            raise Failure(f"{name} mode returns {found!r}, differences {difference!r}")
    second(gradient, arrays, directions, reverse, every)
    return 3


def second(gradient: Any, arrays: Any, directions: Any, first: float, every: Any) -> None:
    """Compare the derivative of the gradient along the same direction."""

    def along(*xs: Any) -> Any:
        parts = zip(gradient(*xs), directions, strict=True)
        return sum(nx.sum(part * nx.tensor(direction)) for part, direction in parts)

    def moved(by: float) -> float:
        tensors = [
            nx.tensor(np.asarray(a + by * d)) for a, d in zip(arrays, directions, strict=True)
        ]
        return float(along(*tensors).item())

    difference = (moved(STEP) - moved(-STEP)) / (2 * STEP)
    coarse = (moved(4 * STEP) - moved(-4 * STEP)) / (8 * STEP)
    if abs(difference) > 1e5 or abs(difference - coarse) > 1e-4 * (1 + abs(difference)):
        return
    parts = nx.grad(along, argnums=every)(*(nx.tensor(array) for array in arrays))
    found = sum(
        float((part.numpy() * direction).sum())
        for part, direction in zip(parts, directions, strict=True)
    )
    if not abs(found - difference) <= 1e-3 * (1 + abs(difference)) + 1e-9 * abs(first) / STEP:
        raise Failure(f"the second derivative is {found!r}, differences return {difference!r}")


def smaller(case: Any) -> Iterator[Any]:
    for program in programs.smaller(case):
        yield {"seed": case["seed"], **program}


show = programs.show

if __name__ == "__main__":
    main(["gradients"])
