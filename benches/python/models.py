"""Compare whole models: the evaluator, XLA and `auto` of nxla, JAX, and numpy where it can.

``auto`` has its default settings: its first result comes from the evaluator.

Each model of ``zoo.py`` runs in a separate process for each library, so that libraries share
neither threads nor caches nor an allocator. The libraries run alternately, and each figure is the
best of all rounds. The figures are the time to the first result (with tracing and compilation,
without imports and transfers), the time of a later step including the wait for its results, and the
peak memory of the process. The script compares the results before it prints the figures.

``make bench`` runs all benchmarks; ``python benches/python/models.py [WORD…]`` selects the models
whose name contains a word. ``NXLA_PJRT_PLUGIN`` chooses the plugin.
"""

from __future__ import annotations

import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from libraries import least_time, library
from zoo import MODELS, WITH_NUMPY

LIBRARIES = ("evaluator", "xla", "auto", "jax", "numpy")
TURNS = 2
SECONDS = 1.5

# Each target: the figure, the library, and its maximum ratio to JAX.
AIMS = (
    ("step", "xla", 1.25, 0.95),
    ("first", "xla", 0.6, 0.6),
    ("step", "auto", 1.0, 0.9),
    ("first", "auto", 0.4, 0.4),
    ("step", "evaluator", 1.5, 1.1),
    ("first", "evaluator", 0.05, 0.05),
)


def measure(model: str, name: str, results: str) -> dict[str, float]:
    """Return the figures of one model in one library, and write its results to a file."""
    lib = library(name)
    made = MODELS[model](lib)
    arguments = lib.wait(lib.put(made.arguments))
    step = lib.jit(made.step)
    start = time.perf_counter()
    found = lib.wait(step(*arguments))
    first = time.perf_counter() - start
    np.savez(results, *[np.asarray(leaf) for leaf in lib.leaves(found)])
    least = least_time(lib, step, arguments, SECONDS)
    return {"first": first, "step": least, "memory": float(peak_memory())}


def peak_memory() -> int:
    """Return the peak memory of this process in bytes.

    The peak memory of `getrusage` starts with the peak of the parent process.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def turn(model: str, name: str, folder: Path) -> dict[str, float]:
    """Return the figures of one model in a new process."""
    results = folder / f"{name}.npz"
    command = [sys.executable, __file__, "--worker", model, name, str(results)]
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    figures: dict[str, float] = json.loads(run.stdout.splitlines()[-1])
    return figures


def difference(left: Path, right: Path) -> float:
    """Return the difference of results, relative to the largest number of each array."""
    with np.load(left) as ours, np.load(right) as theirs:
        if len(ours.files) != len(theirs.files):
            return math.inf
        shares = [0.0]
        for name in ours.files:
            x, y = ours[name].astype(np.float64), theirs[name].astype(np.float64)
            size = max(float(np.max(np.abs(y), initial=0.0)), 1e-6)
            shares.append(float(np.max(np.abs(x - y), initial=0.0)) / size)
    return max(shares)


def figures_of(model: str) -> dict[str, dict[str, float]]:
    """Return the best figures of each library, after a comparison of the results."""
    names = [name for name in LIBRARIES if name != "numpy" or model in WITH_NUMPY]
    best: dict[str, dict[str, float]] = {name: {} for name in names}
    tolerance = MODELS[model](library("numpy")).tolerance
    with tempfile.TemporaryDirectory() as folder:
        for number in range(TURNS):
            for name in names:
                print(f"{model}: round {number + 1}, {name}", file=sys.stderr, flush=True)
                for figure, value in turn(model, name, Path(folder)).items():
                    best[name][figure] = min(value, best[name].get(figure, value))
        for name in names:
            apart = difference(Path(folder) / f"{name}.npz", Path(folder) / "jax.npz")
            if not apart <= tolerance:
                raise SystemExit(f"{model}: {name} and jax are {apart:.1e} apart")
    return best


def cells(figures: dict[str, float] | None) -> str:
    """Return the three figures of one library."""
    if figures is None:
        return f"{'—':>29}"
    first, step = figures["first"] * 1e3, figures["step"] * 1e3
    return f"{first:>8.0f} ms{step:>9.2f} ms{figures['memory'] / 2**20:>5.0f} M"


def print_aims(found: dict[str, dict[str, dict[str, float]]]) -> None:
    """Print the worst model and the geometric mean for each target."""
    print(f"\n{'share of JAX':<24}{'worst':>8}{'at most':>9}{'mean':>8}{'at most':>9}")
    for figure, name, most, mean in AIMS:
        shares = {model: best[name][figure] / best["jax"][figure] for model, best in found.items()}
        worst = max(shares, key=lambda model: shares[model])
        average = math.exp(sum(map(math.log, shares.values())) / len(shares))
        reached = shares[worst] <= most and average <= mean
        shown = f"{shares[worst]:>8.2f}{most:>9.2f}{average:>8.2f}{mean:>9.2f}"
        verdict = "reached" if reached else "MISSED"
        print(f"{name + ', ' + figure:<24}{shown}  {verdict} ({worst})")


def main() -> None:
    """Measure the models on the command line, or all models."""
    words = sys.argv[1:]
    if words[:1] == ["--worker"]:
        print(json.dumps(measure(*words[1:])))
        return
    wanted = [model for model in MODELS if not words or any(word in model for word in words)]
    from nxla.plugins import find

    plugin = os.environ.get("NXLA_PJRT_PLUGIN") or find()
    print(f"plugin: {plugin}")
    print("for each library: to the first result, a step, most memory of the process")
    print(
        f"{'':<28}" + "".join(f"{name:>29}" for name in LIBRARIES) + f"{'xla/jax':>9}{'ev/jax':>8}"
    )
    found = {}
    for model in wanted:
        best = found[model] = figures_of(model)
        shares = [best[name]["step"] / best["jax"]["step"] for name in ("xla", "evaluator")]
        row = "".join(cells(best.get(name)) for name in LIBRARIES)
        print(f"{model:<28}{row}{shares[0]:>9.2f}{shares[1]:>8.2f}", flush=True)
    if found:
        print_aims(found)


if __name__ == "__main__":
    main()
