"""Compare the evaluator with numpy, kernel by kernel, in one process.

Each line runs one task in both, in alternation, so that whatever else the machine does slows both;
the figure of each is its best time. Inputs and results are in host memory on both sides, and both
may use all cores.

Run it with ``make bench``, or by itself: ``python benches/python/kernels.py [NAME…]``.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import nxla as nx

SECONDS = 1.5
LEAST_TURNS = 5

Task = tuple[Callable[[], Any], Callable[[], Any]]


def wait_for_idle_threads() -> None:
    """Return when no thread of this process is busy any more.

    Those of OpenBLAS look for more work for up to a tenth of a second after a product, which would
    be on the account of whoever is next.
    """
    step = 0.005
    for _ in range(100):
        used = time.process_time()
        time.sleep(step)
        if time.process_time() - used < step / 10:
            return


def best_times(task: Task) -> list[float]:
    """Return the best time of each side, in seconds."""
    for side in task:
        side()
    best = [math.inf] * len(task)
    turns, until = 0, time.perf_counter() + SECONDS
    while turns < LEAST_TURNS or time.perf_counter() < until:
        turns += 1
        for index, side in enumerate(task):
            wait_for_idle_threads()
            start = time.perf_counter()
            side()
            best[index] = min(best[index], time.perf_counter() - start)
    return best


def task(function: Callable[..., Any], reference: Callable[..., Any], *arrays: Any) -> Task:
    """Return one task for both sides: the function of nxla is jitted for the evaluator."""
    compiled = nx.jit(function, compiler="evaluator")
    tensors = [nx.tensor(array) for array in arrays]
    ours, theirs = compiled(*tensors), reference(*arrays)
    check(ours, theirs)
    return (lambda: compiled(*tensors)), (lambda: reference(*arrays))


def check(ours: Any, theirs: Any) -> None:
    """Refuse to time two sides that compute different things."""
    left, right = np.asarray(ours), np.asarray(theirs)
    tolerance = 2e-3 if right.dtype in (np.float32, np.complex64) else 1e-8
    np.testing.assert_allclose(left, right, rtol=tolerance, atol=tolerance)


def ten_operations(xp: Any) -> Callable[[Any], Any]:
    """Return a chain of ten cheap element-wise operations."""

    def chain(x: Any) -> Any:
        y = xp.abs(x * 1.5 - 0.5) + x
        z = xp.sqrt(y * 2.0 + 0.25)
        return (z - x) * z + 1.0

    return chain


def transcendental(xp: Any) -> Callable[[Any], Any]:
    """Return a chain of element-wise functions that take long."""
    return lambda x: xp.exp(xp.sin(x)) * 0.5 + xp.tanh(x)


def softmax(xp: Any, keep: str) -> Callable[[Any], Any]:
    """Return the softmax over the last axis, written out."""

    def function(x: Any) -> Any:
        shifted = xp.exp(x - xp.max(x, axis=-1, **{keep: True}))
        return shifted / xp.sum(shifted, axis=-1, **{keep: True})

    return function


def convolution(x: Any, kernel: Any) -> Any:
    """Return a 3x3 convolution as numpy users write it: patches times the kernel."""
    patches = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
    return np.tensordot(patches, kernel, axes=((1, 4, 5), (1, 2, 3))).transpose(0, 3, 1, 2)


def tasks(dtype: type[np.floating[Any]]) -> dict[str, Callable[[], Task]]:
    """Return the tasks for a dtype by name; data is only made when one runs."""
    random = np.random.default_rng(0)

    def normal(*shape: int) -> Any:
        return random.standard_normal(shape, dtype)

    def definite(size: int) -> Any:
        square = normal(size, size)
        return square @ square.T + size * np.eye(size, dtype=dtype)

    indices = random.integers(0, 1_000_000, 1_000_000, dtype=np.int32)
    return {
        "chain of 10 ops, 10 M": lambda: task(
            ten_operations(nx), ten_operations(np), normal(10_000_000)
        ),
        "chain of functions, 10 M": lambda: task(
            transcendental(nx), transcendental(np), normal(10_000_000)
        ),
        "sum by row, 3000 x 3000": lambda: task(
            lambda x: nx.sum(x, axis=1), lambda x: np.sum(x, axis=1), normal(3000, 3000)
        ),
        "sum by column, 3000 x 3000": lambda: task(
            lambda x: nx.sum(x, axis=0), lambda x: np.sum(x, axis=0), normal(3000, 3000)
        ),
        "max by row, 3000 x 3000": lambda: task(
            lambda x: nx.max(x, axis=1), lambda x: np.max(x, axis=1), normal(3000, 3000)
        ),
        "max by column, 3000 x 3000": lambda: task(
            lambda x: nx.max(x, axis=0), lambda x: np.max(x, axis=0), normal(3000, 3000)
        ),
        "matmul, 1024": lambda: task(
            lambda a, b: a @ b, lambda a, b: a @ b, normal(1024, 1024), normal(1024, 1024)
        ),
        "conv 3x3, 8x32x64x64": lambda: task(
            nx.conv, convolution, normal(8, 32, 64, 64), normal(32, 32, 3, 3)
        ),
        "sort, 10 M": lambda: task(nx.sort, np.sort, normal(10_000_000)),
        "gather, 1 M of 1 M": lambda: task(
            lambda x, i: nx.take(x, i, axis=0),
            lambda x, i: np.take(x, i, axis=0),
            normal(1_000_000),
            indices,
        ),
        "fft, 256 x 4096": lambda: task(nx.fft.fft, np.fft.fft, normal(256, 4096)),
        "cholesky, 1024": lambda: task(nx.linalg.cholesky, np.linalg.cholesky, definite(1024)),
        "softmax, 4096 x 1024": lambda: task(
            softmax(nx, "keepdims"), softmax(np, "keepdims"), normal(4096, 1024)
        ),
    }


def figures(wanted: list[str]) -> dict[str, tuple[float, float]]:
    """Return the times of nxla and numpy for the tasks whose name has a wanted word."""
    found = {}
    for dtype in (np.float32, np.float64):
        for name, make in tasks(dtype).items():
            if not wanted or any(word in name for word in wanted):
                ours, theirs = best_times(make())
                found[f"{name}, {np.dtype(dtype).name}"] = (ours, theirs)
    return found


def print_table(found: dict[str, tuple[float, float]]) -> None:
    """Print the times and how many times as fast nxla is."""
    print(f"{'evaluator against numpy':<44}{'nxla':>12}{'numpy':>12}{'numpy / nxla':>14}")
    for name, (ours, theirs) in found.items():
        print(f"{name:<44}{ours * 1e3:>9.2f} ms{theirs * 1e3:>9.2f} ms{theirs / ours:>14.2f}")
    ratios = [theirs / ours for ours, theirs in found.values()]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"{'geometric mean':<68}{mean:>14.2f}")
    print(f"{'least':<68}{min(ratios):>14.2f}")


def main() -> None:
    """Measure what the command line names, or everything."""
    arguments = sys.argv[1:]
    as_json = "--json" in arguments
    found = figures([argument for argument in arguments if argument != "--json"])
    if as_json:
        print(json.dumps(found))
    else:
        print_table(found)


if __name__ == "__main__":
    main()
