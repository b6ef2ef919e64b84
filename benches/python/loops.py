"""Compare loops over small tensors: nxla on XLA, its evaluator, JAX, and loops over numpy.

Filters, samplers and solvers run thousands of iterations on a few numbers, so the overhead of an
iteration dominates. Each library runs all loops in a separate process, and the processes alternate;
each figure is the minimum time of a call. The script compares the results before it prints the
figures.

``make bench`` runs all benchmarks; ``python benches/python/loops.py [WORD…]`` selects the loops
whose name contains a word.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from libraries import Library, least_time, library
from processes import figures_of

LIBRARIES = ("evaluator", "xla", "jax", "numpy")
ROUNDS = 2
SECONDS = 0.5
#: The tolerance of results, as a share of the largest number.
TOLERANCE = 1e-3

Loop = tuple[Callable[..., object], tuple[object, ...]]


def numbers(*shape: int, scale: float = 1.0) -> np.ndarray:
    """Return random numbers, the same each time."""
    return (np.random.default_rng(0).normal(size=shape) * scale).astype(np.float32)


def counter(lib: Library) -> Loop:
    """Add a number in 10,000 iterations."""
    state = (np.int32(0), np.float32(0))
    continues = lambda s: s[0] < 10_000  # noqa: E731
    return (lambda *s: lib.while_loop(continues, lambda s: (s[0] + 1, s[1] + 1), s)), state


def average(lib: Library) -> Loop:
    """Compute all values of the exponential average of 10,000 numbers."""

    def step(previous, x):
        now = 0.9 * previous + 0.1 * x
        return now, now

    return (lambda xs: lib.scan(step, xs[0] * 0, xs)), (numbers(10_000),)


def kalman(lib: Library) -> Loop:
    """Run a Kalman filter of position and velocity in two dimensions for 500 steps."""
    transition = np.eye(4, dtype=np.float32) + 0.1 * np.eye(4, k=2, dtype=np.float32)
    observation = np.eye(2, 4, dtype=np.float32)
    noise = 0.01 * np.eye(4, dtype=np.float32)

    def run(transition, observation, noise, measured):
        def step(state, z):
            x, p = state
            x, p = transition @ x, transition @ p @ transition.T + noise
            deviation = observation @ p @ observation.T + 10 * noise[:2, :2]
            gain = lib.xp.linalg.solve(deviation, observation @ p).T
            x, p = x + gain @ (z - observation @ x), p - gain @ observation @ p
            return (x, p), x

        return lib.scan(step, (measured[0, 0] * noise[0], noise), measured)

    return run, (transition, observation, noise, numbers(500, 2))


def lorenz(lib: Library) -> Loop:
    """Integrate Lorenz's system from 100 starts for 1,000 steps by the Runge-Kutta method."""

    def slope(s):
        x, y, z = s[:, 0], s[:, 1], s[:, 2]
        return lib.xp.stack([10 * (y - x), x * (28 - z) - y, x * y - (8 / 3) * z], axis=-1)

    def step(s, _):
        first = slope(s)
        second = slope(s + 0.0005 * first)
        third = slope(s + 0.0005 * second)
        last = slope(s + 0.001 * third)
        s = s + (0.001 / 6) * (first + 2 * second + 2 * third + last)
        return s, s[0]

    return (lambda s: lib.scan(step, s, None, length=1_000)), (numbers(100, 3),)


def recurrent(lib: Library) -> Loop:
    """Run a recurrent network of 16 units for 1,000 steps."""

    def run(hidden, inner, xs):
        def step(h, x):
            h = lib.xp.tanh(h @ hidden + x @ inner)
            return h, h

        return lib.scan(step, xs[0, :, :1] * hidden[:1] * 0, xs)

    return run, (numbers(16, 16, scale=0.1), numbers(8, 16, scale=0.1), numbers(1_000, 1, 8))


def recurrent_gradient(lib: Library) -> Loop | None:
    """Differentiate the recurrent network with respect to the weights."""
    if lib.value_and_grad is None:
        return None
    run, arguments = recurrent(lib)

    def loss(hidden, inner, xs):
        return lib.xp.sum(run(hidden, inner, xs)[1] ** 2)

    return (lambda hidden, inner, xs: lib.value_and_grad(loss)(hidden, inner, xs)[1]), arguments


def descent(lib: Library) -> Loop | None:
    """Train a small network by gradient descent on 500 batches."""
    if lib.value_and_grad is None:
        return None

    def loss(weights, x, y):
        return lib.xp.mean((lib.xp.tanh(x @ weights[0]) @ weights[1] - y) ** 2)

    def step(weights, batch):
        value, slope = lib.value_and_grad(loss)(weights, *batch)
        return lib.tree_map(lambda w, s: w - 0.1 * s, weights, slope), value

    def run(first, second, xs, ys):
        return lib.scan(step, (first, second), (xs, ys))

    weights = (numbers(8, 32, scale=0.1), numbers(32, 1, scale=0.1))
    return run, (*weights, numbers(500, 16, 8), numbers(500, 16, 1))


def powers(lib: Library) -> Loop:
    """Apply the power method to a 4x4 matrix for 2,000 steps."""

    def run(matrix):
        def step(x, _):
            x = matrix @ x
            return x / lib.xp.sqrt(lib.xp.sum(x * x)), x[0]

        return lib.scan(step, matrix[0], None, length=2_000)

    return run, (np.abs(numbers(4, 4)),)


LOOPS = {
    "counter": counter,
    "exponential average": average,
    "Kalman filter": kalman,
    "Lorenz's system": lorenz,
    "recurrent net": recurrent,
    "recurrent net, gradient": recurrent_gradient,
    "gradient descent": descent,
    "power method": powers,
}


def measure(name: str, selected: list[str], folder: Path) -> dict[str, float]:
    """Return the minimum time of a call of each loop, and write the results to files."""
    lib = library(name)
    found = {}
    for loop in selected:
        spec = LOOPS[loop](lib)
        if spec is None:
            continue
        arguments = lib.wait(lib.put(spec[1]))
        step = lib.jit(spec[0])
        results = [np.asarray(leaf) for leaf in lib.leaves(lib.wait(step(*arguments)))]
        np.savez(folder / f"{loop}, {name}.npz", *results)
        found[loop] = least_time(lib, step, arguments, SECONDS)
    return found


def compare(loop: str, name: str, folder: Path) -> None:
    """End the run if the results of a library differ from JAX."""
    with (
        np.load(folder / f"{loop}, {name}.npz") as actual,
        np.load(folder / f"{loop}, jax.npz") as expected,
    ):
        for file in expected.files:
            deviation, size = (
                np.max(np.abs(actual[file] - expected[file])),
                np.max(np.abs(expected[file])),
            )
            if not deviation <= TOLERANCE * size:
                raise SystemExit(f"{loop}: {name} and jax differ by {deviation / size:.1e}")


def main() -> None:
    """Measure the loops on the command line, or all loops."""
    words = sys.argv[1:]
    if words[:1] == ["--worker"]:
        print(json.dumps(measure(words[1], words[3:], Path(words[2]))))
        return
    selected = [loop for loop in LOOPS if not words or any(word in loop for word in words)]
    best: dict[str, dict[str, float]] = {loop: {} for loop in selected}
    with tempfile.TemporaryDirectory() as folder:
        for name in LIBRARIES * ROUNDS:
            figures = figures_of(__file__, "--worker", name, folder, *selected)
            for loop, least in figures.items():
                best[loop][name] = min(least, best[loop].get(name, least))
        for loop, times in best.items():
            for name in times:
                compare(loop, name, Path(folder))
    print(
        f"{'ms':<26}"
        + "".join(f"{name:>12}" for name in LIBRARIES)
        + f"{'ev/jax':>9}{'xla/jax':>9}"
    )
    for loop, times in best.items():
        cells = [
            f"{times[name] * 1e3:>12.3f}" if name in times else f"{'—':>12}" for name in LIBRARIES
        ]
        shares = [times[name] / times["jax"] for name in ("evaluator", "xla")]
        print(f"{loop:<26}{''.join(cells)}{shares[0]:>9.2f}{shares[1]:>9.2f}")


if __name__ == "__main__":
    main()
