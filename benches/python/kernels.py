"""Compare kernels of all families of ops: the evaluator, nxla on XLA, numpy and JAX, by size.

Each kernel of ``kernel_zoo.py`` runs for a thousand, a hundred thousand and ten million elements,
or as many as a second allows, in ``f32`` and ``f64``, or on integers. Each library runs all kernels
in a separate process, so that libraries share neither threads nor caches nor an allocator. The
libraries alternate at every line, so that the load of the machine affects all of them. Each figure
is the best of all rounds: the time of a call including the wait for its result, on data on the
device of the library. All libraries may use all cores. Lines with different results end the command
with an error. A dash marks a library that cannot express a kernel.

Run it with ``make bench`` or ``python benches/python/kernels.py [WORD…]``, which selects the lines
with a word (a kernel, a family, a size or a dtype). ``--json`` prints seconds.
``NXLA_PJRT_PLUGIN`` chooses the plugin.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib.metadata import version
from itertools import repeat
from typing import Any

import numpy as np
from kernel_case import Bench, UnsupportedError
from kernel_zoo import KERNELS
from libraries import Library, library

LIBRARIES = ("evaluator", "xla", "numpy", "jax")
#: The allowed time of a backend, relative to the faster of NumPy and JAX.
TARGETS = {"evaluator": 1.5, "xla": 1.2}
DTYPES = {"f32": "float32", "f64": "float64", "s32": "int32", "s64": "int64"}
TOLERANCES = {"float32": 2e-3, "float64": 1e-8, "int32": 1e-6, "int64": 1e-6}
ROUNDS = 2
SECONDS = 0.04
#: Calls are timed together until they take this long, so that the resolution of the clock does not
#: matter.
ROUND = 1e-4
SAMPLES = 64

Figures = dict[str, dict[str, float | None]]


def wait_for_idle_threads() -> None:
    """Wait until no thread of this process is busy.

    The threads of OpenBLAS poll for work for up to a tenth of a second after a product, which would
    slow down the next library.
    """
    step = 0.005
    for _ in range(100):
        used = time.process_time()
        time.sleep(step)
        if time.process_time() - used < step / 10:
            return


def best_time(call: Callable[[], Any]) -> float:
    """Return the shortest time of a call, in seconds."""

    def mean(count: int) -> float:
        start = time.perf_counter()
        for _ in repeat(None, count):
            call()
        return (time.perf_counter() - start) / count

    first, best = mean(1), mean(1)
    if first > SECONDS:
        return min(first, best)
    count = max(1, int(ROUND / best))
    until = time.perf_counter() + SECONDS
    while time.perf_counter() < until:
        best = min(best, mean(count))
    return best


def awaited(lib: Library, step: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """Return a call that waits for its results, and the results of the first call."""
    first = step(*arguments)
    if isinstance(first, np.ndarray | np.generic):
        return (lambda: step(*arguments)), first
    if hasattr(first, "block_until_ready"):
        return (lambda: step(*arguments).block_until_ready()), first
    return (lambda: lib.wait(step(*arguments))), first


def digest(results: tuple[Any, ...]) -> list[dict[str, Any]]:
    """Return the largest number, sums and some elements of each array."""
    found = []
    for result in results:
        array = np.ascontiguousarray(result)
        if array.dtype.kind == "c":
            array = array.view(array.real.dtype)
        flat = array.reshape(-1)
        indices = np.linspace(0, flat.size - 1, min(SAMPLES, flat.size)).astype(np.intp)
        sums = [np.mean(flat, dtype=np.float64), np.mean(np.abs(flat), dtype=np.float64)]
        numbers = [*sums, *flat[indices].astype(np.float64)]
        largest = float(np.max(np.abs(flat)))
        found.append(
            {"shape": array.shape, "largest": largest, "numbers": list(map(float, numbers))}
        )
    return found


def prepare(name: str, lib: Library, line: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return a call of a kernel, and the digest of its results."""
    bench = Bench(name, lib, tuple(line["shape"]), line["dtype"])
    case = KERNELS[line["kernel"]].make(bench)
    arguments = lib.wait(lib.put(case.arguments)) if case.arguments else ()
    call, results = awaited(lib, lib.jit(case.function), arguments)
    essence = case.essence(*(np.asarray(leaf) for leaf in lib.leaves(results)))
    tolerance = case.tolerance or TOLERANCES[line["dtype"]]
    return call, {"digest": digest(essence), "tolerance": tolerance}


def work(name: str) -> None:
    """Read the name of a kernel from each line of the input, and print a line with its time."""
    lib = library(name)
    current, call = "", None
    found: dict[str, Any] = {}
    for request in sys.stdin:
        if request != current:
            call = None
            try:
                call, found = prepare(name, lib, json.loads(request))
            except UnsupportedError:
                found = {}
            current = request
        response = {"time": best_time(call), **found} if call else {}
        wait_for_idle_threads()
        print(json.dumps(response), flush=True)


def start(name: str) -> subprocess.Popen[str]:
    """Start the process of one library."""
    command = [sys.executable, __file__, "--worker", name]
    # JAX needs this setting for double precision.
    environment = {**os.environ, "JAX_ENABLE_X64": "1", "JAX_PLATFORMS": "cpu"}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment)


def ask(name: str, worker: subprocess.Popen[str], line: dict[str, Any]) -> dict[str, Any]:
    """Return the response of a process for a kernel."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    try:
        print(json.dumps(line), file=worker.stdin, flush=True)
        response = worker.stdout.readline()
    except BrokenPipeError:
        response = ""
    if not response:
        raise SystemExit(f"{name} ended at {line}")
    found: dict[str, Any] = json.loads(response)
    return found


def difference(left: list[dict[str, Any]], right: list[dict[str, Any]]) -> float:
    """Return the difference of results, relative to the largest number of each array."""
    if [one["shape"] for one in left] != [one["shape"] for one in right]:
        return math.inf
    deviation = 0.0
    for actual, expected in zip(left, right, strict=True):
        size = max(expected["largest"], 1e-6)
        for x, y in zip(
            [actual["largest"], *actual["numbers"]], [size, *expected["numbers"]], strict=True
        ):
            share = abs(x - y) / size
            deviation = share if not share <= deviation else deviation
    return deviation


def measure(
    workers: dict[str, subprocess.Popen[str]], line: dict[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """Return the best time of each library for a line, and the differences from JAX."""
    best: dict[str, float | None] = dict.fromkeys(workers)
    responses: dict[str, Any] = {}
    for _ in range(ROUNDS):
        for name, worker in workers.items():
            responses[name] = ask(name, worker, line)
            if responses[name]:
                best[name] = min(responses[name]["time"], best[name] or math.inf)
    available = {name: response for name, response in responses.items() if response}
    reference = available.get("jax") or next(iter(available.values()))
    differing = []
    for name, response in available.items():
        deviation = difference(response["digest"], reference["digest"])
        if not deviation <= reference["tolerance"]:
            differing.append(f"{name} differs by {deviation:.1e}")
    return best, differing


def lines(words: list[str]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield the name, the family and the parts of each line with a word."""
    for kernel, kernel_spec in KERNELS.items():
        for shape in kernel_spec.shapes:
            for short in kernel_spec.dtypes:
                name = f"{kernel}, {'x'.join(map(str, shape))}, {short}"
                if not words or any(word in f"{kernel_spec.family}, {name}" for word in words):
                    yield (
                        name,
                        kernel_spec.family,
                        {"kernel": kernel, "shape": shape, "dtype": DTYPES[short]},
                    )


def text(seconds: float | None) -> str:
    """Return a time with its unit."""
    if seconds is None:
        return "—"
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.2f} µs"


def shares(best: dict[str, float | None]) -> dict[str, float]:
    """Return the time of each backend of nxla relative to the fastest other library."""
    others = [best[name] for name in LIBRARIES if name not in TARGETS]
    fastest = min(time for time in others if time)
    return {name: actual / fastest for name in TARGETS if (actual := best[name])}


def row(name: str, best: dict[str, float | None]) -> str:
    """Return a line of the table."""
    cells = [text(best[name]) for name in LIBRARIES]
    cells.append(text(min(time for time in (best["numpy"], best["jax"]) if time)))
    found = shares(best)
    cells += [f"{found[engine]:.2f}" if engine in found else "—" for engine in TARGETS]
    return f"{name:<42}" + "".join(f"{cell:>12}" for cell in cells)


def print_means(found: Figures, families: dict[str, str]) -> None:
    """Print geometric means of each family and of all lines, and lines that miss the targets."""
    ratios = {name: shares(best) for name, best in found.items()}
    print(f"\n{'geometric means':<90}{'lines':>12}{'ev/best':>12}{'xla/best':>12}")
    for family in [*dict.fromkeys(families.values()), "all"]:
        members = [ratios[name] for name in found if family in ("all", families[name])]
        cells = ""
        for engine in TARGETS:
            logarithms = [math.log(one[engine]) for one in members if engine in one]
            mean = math.exp(sum(logarithms) / len(logarithms)) if logarithms else math.nan
            cells += f"{mean:>12.2f}"
        print(f"{family:<90}{len(members):>12}{cells}")
    for engine, limit in TARGETS.items():
        over = {name: one[engine] for name, one in ratios.items() if one.get(engine, 0.0) > limit}
        print(f"\n{engine}: {len(over)} of {len(ratios)} lines over {limit} of the best")
        for name in sorted(over, key=lambda name: -over[name]):
            print(f"{name:<42}{over[name]:>12.2f}")


def main() -> None:
    """Measure the kernels on the command line, or all kernels."""
    words = sys.argv[1:]
    if words[:1] == ["--worker"]:
        work(words[1])
        return
    as_json = "--json" in words
    selected = list(lines([word for word in words if word != "--json"]))
    if not as_json:
        from nxla.plugins import find_default

        print(f"plugin: {find_default()}")
        print(f"numpy {version('numpy')}, JAX {version('jax')}")
        columns = (*LIBRARIES, "best", "ev/best", "xla/best")
        print(f"{'':<42}" + "".join(f"{column:>12}" for column in columns), flush=True)
    found: Figures = {}
    failures: list[str] = []
    with ExitStack() as stack:
        workers = {name: stack.enter_context(start(name)) for name in LIBRARIES}
        for name, _, line in selected:
            found[name], differing = measure(workers, line)
            failures += [f"{name}: {description}" for description in differing]
            if not as_json:
                print(row(name, found[name]), flush=True)
    if as_json:
        print(json.dumps(found))
    elif found:
        print_means(found, {name: family for name, family, _ in selected})
    if failures:
        raise SystemExit("results differ from JAX:\n" + "\n".join(failures))


if __name__ == "__main__":
    main()
