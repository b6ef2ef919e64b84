"""Transformations in random order around a program: vmap, grad, jit, loops, checkpoints.

Each transformation is compared with its definition: vmap with separate calls, jit with the plain
function, a loop of one iteration with one call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import nxla as nx
from fuzz import programs
from fuzz.driver import Failure, main

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator

LAYERS = ("jit", "xla", "vmap", "grad", "loop", "cond", "while", "vmap", "grad")


def generate(rng: random.Random) -> Any:
    made = programs.generate(
        rng, steps=rng.randint(1, 4), kinds="f", special=False, smooth=True, dtypes=("f64",)
    )
    layers = [rng.choice(LAYERS) for _ in range(rng.randint(1, 4))]
    return {**made, "layers": layers, "seed": rng.randrange(1 << 30)}


def wrapped(layers: list[str], function: Callable[[Any], Any], reference: bool) -> Any:
    """Wrap a function from vectors to vectors; `reference` uses the definitions."""
    for layer in layers:
        function = wrap(layer, function, reference)
    return function


def wrap(layer: str, function: Callable[[Any], Any], reference: bool) -> Callable[[Any], Any]:
    if layer == "vmap":

        def rows(x: Any) -> Any:
            scales = (1.0, 0.5)
            if reference:
                return sum(function(x * scale) for scale in scales)
            many = nx.stack([x * scale for scale in scales])
            return nx.sum(nx.vmap(function)(many), axis=0)

        return rows
    if layer == "grad":
        return nx.grad(lambda x: nx.sum(function(x)))
    if reference:
        return function
    if layer in ("jit", "xla"):
        backend = "xla" if layer == "xla" else "evaluator"
        return nx.jit(function, compiler=backend, on_conflict="reuse")
    if layer == "cond":
        return lambda x: nx.cond(nx.sum(x) > -1e30, function, lambda x: x, x)
    if layer == "loop":
        return lambda x: nx.fori(0, 1, lambda i, x: function(x), x)
    return lambda x: nx.while_loop(
        lambda state: state[0] < 1,
        lambda state: (state[0] + 1, function(state[1])),
        (nx.tensor(0), x),
    )[1]


def check(case: Any) -> int:
    layers = case["layers"]
    if not case["steps"]:
        return 0
    # Reverse mode requires a bounded number of iterations.
    first = layers.index("while") if "while" in layers else len(layers)
    if "grad" in layers[first:]:
        return 0
    arrays = [programs.array_of(given) for given in case["inputs"]]
    rng = np.random.default_rng(case["seed"])
    arrays = [np.asarray(array + rng.uniform(0.01, 0.1, array.shape)) for array in arrays]
    flat = np.concatenate([array.ravel() for array in arrays])

    def function(x: Any) -> Any:
        values, start = [], 0
        for array in arrays:
            piece = x[start : start + array.size]
            values.append(nx.reshape(piece, array.shape))
            start += array.size
        last = programs.run(case, values)[-1]
        return x * nx.sum(nx.tanh(last)) + nx.mean(x)

    x = nx.tensor(flat)
    try:
        expected = wrapped(layers, function, True)(x).numpy()
        found = wrapped(layers, function, False)(x).numpy()
    except (nx.NxlaError, TypeError, ValueError) as raised:
        raise Failure(f"raises {type(raised).__name__}: {raised}") from raised
    with np.errstate(all="ignore"):
        scale = np.abs(expected).max(initial=0.0)
        near = np.allclose(found, expected, rtol=1e-6, atol=1e-7 * (1 + scale), equal_nan=True)
    if np.isfinite(scale) and scale < 1e8 and not near:
        raise Failure(f"{found.tolist()} is not {expected.tolist()}"[:1000])
    return 1


def smaller(case: Any) -> Iterator[Any]:
    rest = {"layers": case["layers"], "seed": case["seed"]}
    for at in range(len(case["layers"])):
        yield {**case, "layers": case["layers"][:at] + case["layers"][at + 1 :]}
    for program in programs.smaller(case):
        yield {**program, **rest}


def show(case: Any) -> str:
    return f"# layers, the innermost first: {case['layers']}\n{programs.show(case)}"


if __name__ == "__main__":
    main(["transforms"])
