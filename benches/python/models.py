"""Compare whole models: nxla, JAX, PyTorch, and NumPy where it can.

The columns of nxla are the evaluator, XLA and ``auto`` with its default settings, whose first
result comes from the evaluator. The columns of PyTorch are eager execution and ``torch.compile``.

Each model of ``zoo.py`` runs in a separate process for each library, so that libraries share
neither threads nor caches nor an allocator. The libraries run alternately, and each figure is the
best of all rounds. The figures are the time to the first result (with tracing and compilation,
without imports and transfers), the time of a later step including the wait for its results, and the
peak memory of the process. The script compares the results before it prints the figures.

JAX, PyTorch and SciPy, which the models for NumPy use, are optional: the script names the libraries
that are not installed. The development tools exclude PyTorch because of its size; ``pip install
torch`` installs it. ``torch.compile`` needs a C++ compiler, and compiles without its caches.

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
from libraries import installed, least_time, library, processors
from zoo import MODELS, WITH_NUMPY

#: The libraries, and the package that each of them needs.
LIBRARIES = {
    "evaluator": "nxla",
    "xla": "nxla",
    "auto": "nxla",
    "jax": "jax",
    "torch": "torch",
    "torch.compile": "torch",
    "numpy": "scipy",
}
OURS = ("evaluator", "xla", "auto")
#: The libraries of the column "best": the least of their figures.
RIVALS = ("jax", "torch", "torch.compile")
#: The results are compared with the first of these that ran.
REFERENCES = ("jax", "torch", "numpy", "evaluator")
#: The figures, their units, and the factors to the units.
FIGURES = {"step": ("ms", 1e3), "first": ("ms", 1e3), "memory": ("MB", 2**-20)}
ROUNDS = 2
SECONDS = 1.5
#: The most seconds of a process, for programs that ``torch.compile`` does not finish.
PATIENCE = 600

# Each target: the figure, the library, the compared library, and the maximum of the ratio for a
# model and in the geometric mean.
AIMS = (
    ("step", "evaluator", "best", 1.25, 1.0),
    ("step", "xla", "jax", 1.25, 0.95),
    ("first", "xla", "jax", 0.6, 0.6),
    ("step", "auto", "jax", 1.0, 0.9),
    ("first", "auto", "jax", 0.4, 0.4),
    ("first", "evaluator", "jax", 0.05, 0.05),
)

Figures = dict[str, float]


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


def measure_in_process(model: str, name: str, folder: Path) -> Figures | str:
    """Return the figures of one model in a new process, or a word that says why there are none."""
    results = folder / f"{name}.npz"
    command = [sys.executable, __file__, "--worker", model, name, str(results)]
    patience = PATIENCE if name == "torch.compile" else None
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": cache}
        try:
            run = subprocess.run(
                command,
                stdout=subprocess.PIPE,
                text=True,
                check=True,
                timeout=patience,
                env=environment,
            )
        except subprocess.TimeoutExpired:
            return f"> {PATIENCE} s"
    figures: Figures | str = json.loads(run.stdout.splitlines()[-1])
    return figures


def difference(left: Path, right: Path) -> float:
    """Return the difference of results, relative to the largest number of each array."""
    with np.load(left) as ours, np.load(right) as theirs:
        if len(ours.files) != len(theirs.files):
            return math.inf
        return max((distance(ours[name], theirs[name]) for name in ours.files), default=0.0)


def distance(x: np.ndarray, y: np.ndarray) -> float:
    """Return the largest difference of two arrays, relative to the largest number of the second."""
    x, y = x.astype(np.float64), y.astype(np.float64)
    size = max(float(np.max(np.abs(y), initial=0.0)), 1e-6)
    return float(np.max(np.abs(x - y), initial=0.0)) / size


def figures_of(model: str, names: list[str]) -> dict[str, Figures | str]:
    """Return the best figures of each library, after a comparison of the results."""
    names = [name for name in names if name != "numpy" or model in WITH_NUMPY]
    best: dict[str, Figures | str] = {}
    tolerance = MODELS[model](library("evaluator")).tolerance
    with tempfile.TemporaryDirectory() as folder:
        for number in range(ROUNDS):
            for name in names:
                before = best.get(name, {})
                if isinstance(before, str):
                    continue
                print(f"{model}: round {number + 1}, {name}", file=sys.stderr, flush=True)
                found = measure_in_process(model, name, Path(folder))
                if not isinstance(found, str):
                    found = {key: min(found[key], before.get(key, math.inf)) for key in found}
                best[name] = found
        ran = [name for name in names if not isinstance(best[name], str)]
        reference = next(name for name in REFERENCES if name in ran)
        for name in ran:
            apart = difference(Path(folder) / f"{name}.npz", Path(folder) / f"{reference}.npz")
            if not apart <= tolerance:
                raise SystemExit(f"{model}: {name} and {reference} are {apart:.1e} apart")
    rivals = [found for name in RIVALS if isinstance(found := best.get(name), dict)]
    if rivals:
        best["best"] = {key: min(found[key] for found in rivals) for key in FIGURES}
    return best


def ratio(best: dict[str, Figures | str], name: str, other: str, figure: str) -> float | None:
    """Return a figure as a part of the figure of another library, if both ran."""
    ours, theirs = best.get(name), best.get(other)
    if not isinstance(ours, dict) or not isinstance(theirs, dict):
        return None
    return ours[figure] / theirs[figure]


def print_figures(model: str, names: list[str], best: dict[str, Figures | str]) -> None:
    """Print a line for each figure of a model."""
    for figure, (unit, factor) in FIGURES.items():
        row = f"{model if figure == 'step' else '':<28}{f'{figure}, {unit}':<12}"
        for name in names:
            found = best.get(name, "—")
            row += (
                f"{found if isinstance(found, str) else format(found[figure] * factor, '.2f'):>15}"
            )
        for name in OURS:
            share = ratio(best, name, "best", figure)
            row += f"{'—' if share is None else format(share, '.2f'):>15}"
        print(row, flush=True)


def print_aims(found: dict[str, dict[str, Figures | str]]) -> None:
    """Print the worst model and the geometric mean for each target."""
    print(f"\n{'':<34}{'worst':>8}{'at most':>9}{'mean':>8}{'at most':>9}")
    for figure, name, other, most, mean in AIMS:
        label = f"{figure}, {name} / {other}"
        ratios = {model: ratio(best, name, other, figure) for model, best in found.items()}
        shares = {model: share for model, share in ratios.items() if share is not None}
        if not shares:
            print(f"{label:<34}not run")
            continue
        worst = max(shares, key=lambda model: shares[model])
        average = math.exp(sum(map(math.log, shares.values())) / len(shares))
        verdict = "reached" if shares[worst] <= most and average <= mean else "MISSED"
        shown = f"{shares[worst]:>8.2f}{most:>9.2f}{average:>8.2f}{mean:>9.2f}"
        print(f"{label:<34}{shown}  {verdict} ({worst})")


def main() -> None:
    """Measure the models on the command line, or all models."""
    words = sys.argv[1:]
    if words[:1] == ["--worker"]:
        try:
            print(json.dumps(measure(*words[1:])))
        except Exception as error:
            # PyTorch does not compile all programs.
            if words[2] != "torch.compile":
                raise
            print(str(error).partition("\n")[0], file=sys.stderr)
            print(json.dumps(type(error).__name__))
        return
    wanted = [model for model in MODELS if not words or any(word in model for word in words)]
    from nxla.plugins import find_default

    print(f"plugin: {find_default()}; {processors()} processors")
    names = installed(LIBRARIES)
    print(f"best: the best of {', '.join(RIVALS)}")
    heads = [f"{name:>15}" for name in names] + [f"{name + '/best':>15}" for name in OURS]
    print(f"{'':<40}{''.join(heads)}")
    found = {}
    for model in wanted:
        found[model] = figures_of(model, names)
        print_figures(model, names, found[model])
    if found:
        print_aims(found)


if __name__ == "__main__":
    main()
