"""Compare how long one XLA compiles the models of ``zoo.py`` as nxla and as JAX write them.

The first result of a model on XLA waits for the compiler. To isolate the influence of nxla, the
same plugin compiles two modules: the module of nxla, and the module of JAX, which
`nxla.import_stablehlo` reads. Each figure is the minimum of three new processes in milliseconds,
without tracing and without loading the plugin. The third column is the time of JAX's XLA for the
module of JAX. Further columns contain the numbers of instructions after XLA's optimizations. A dash
marks a module with custom calls that only JAX has.

``make bench`` runs all benchmarks; ``python benches/python/compile_times.py [--dump FOLDER]
[WORD…]`` selects the models whose name contains a word. FOLDER receives XLA's dumps of both
programs: ``*_after_optimizations.txt`` is the program that is run.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROUNDS = 3
#: The libraries that write and compile the module.
SOURCES = ("nxla", "imported", "jax")


def seconds(work: Callable[[], Any]) -> float:
    """Return the seconds that a function takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def compile_in(source: str, model: str, text: Path, dumps: str) -> float:
    """Compile a model for one library in this process, and return the seconds."""
    from libraries import library
    from zoo import MODELS

    if source == "jax":
        import jax

        lib = library("jax")
        spec = MODELS[model](lib)
        lowered = jax.jit(spec.step).lower(*lib.put(spec.arguments))
        text.write_text(lowered.as_text(), encoding="utf-8")
        return seconds(lowered.compile)
    import nxla as nx

    options = {"xla_dump_to": dumps, "xla_dump_hlo_as_text": True} if dumps else {}
    # The plugin is loaded by its first program.
    nx.jit(lambda x: x + 1, compiler="xla")(nx.tensor([1.0])).block_until_ready()
    if source == "imported":
        return seconds(nx.import_stablehlo(text.read_text(encoding="utf-8"), **options).compile)
    lib = library("xla")
    spec = MODELS[model](lib)
    step = nx.jit(spec.step, compiler="xla", **options)
    return seconds(step.lower(*lib.put(spec.arguments)).compile)


def compile_in_process(source: str, model: str, text: Path, dumps: Path | str) -> float | None:
    """Return the seconds of one library in a new process, or None for an unsupported module."""
    command = [sys.executable, __file__, "--worker", source, model, str(text), str(dumps)]
    run = subprocess.run(command, check=False, capture_output=True, text=True)
    if run.returncode == 0:
        return float(json.loads(run.stdout.splitlines()[-1]))
    if source == "imported" and "No FFI handler" in run.stderr:
        return None
    raise SystemExit(run.stderr)


def instructions(dumps: Path) -> int | None:
    """Return the number of instructions of the program that XLA dumped."""
    texts = sorted(dumps.glob("*after_optimizations.txt"))
    return texts[-1].read_text(encoding="utf-8").count(" = ") if texts else None


def cell(value: float | None) -> str:
    """Return a whole number, or a dash."""
    return f"{'—' if value is None else f'{value:.0f}':>10}"


def figures_of(model: str, folder: Path) -> list[float | None]:
    """Return the milliseconds of each library, and the numbers of instructions of two libraries."""
    text = folder / "jax.mlir"
    for source in SOURCES:
        (folder / source).mkdir(parents=True, exist_ok=True)
    # Runs that write dumps are slower, so they are not timed.
    for source in reversed(SOURCES):
        compile_in_process(source, model, text, folder / source)
    best: dict[str, float | None] = dict.fromkeys(SOURCES)
    for _ in range(ROUNDS):
        for source in reversed(SOURCES):
            elapsed, best_so_far = compile_in_process(source, model, text, ""), best[source]
            if elapsed is not None:
                best[source] = min(elapsed * 1e3, best_so_far or math.inf)
    return [*best.values(), *(instructions(folder / source) for source in ("nxla", "imported"))]


def main() -> None:
    """Print the table."""
    from zoo import MODELS

    words = sys.argv[1:]
    dump_folder = None
    if "--dump" in words:
        position = words.index("--dump")
        dump_folder = Path(words[position + 1])
        del words[position : position + 2]
    columns = ("nxla", "imported", "jax", "nxla", "imported")
    print(f"{'milliseconds, instructions':30}" + "".join(f"{name:>10}" for name in columns))
    with tempfile.TemporaryDirectory() as temporary:
        for model in MODELS:
            if words and not any(word.lower() in model.lower() for word in words):
                continue
            folder = (dump_folder or Path(temporary)) / model.replace(", ", "-").replace(" ", "-")
            print(f"{model:30}" + "".join(map(cell, figures_of(model, folder))), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        source, model, text, dumps = sys.argv[2:]
        print(json.dumps(compile_in(source, model, Path(text), dumps)))
    else:
        main()
