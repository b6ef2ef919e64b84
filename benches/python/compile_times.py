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

TURNS = 3
#: The libraries that write and compile the module.
WAYS = ("nxla", "imported", "jax")


def seconds(work: Callable[[], Any]) -> float:
    """Return the seconds that a function takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def compile_in(way: str, model: str, text: Path, dumps: str) -> float:
    """Compile a model for one library in this process, and return the seconds."""
    from libraries import library
    from zoo import MODELS

    if way == "jax":
        import jax

        lib = library("jax")
        made = MODELS[model](lib)
        lowered = jax.jit(made.step).lower(*lib.put(made.arguments))
        text.write_text(lowered.as_text(), encoding="utf-8")
        return seconds(lowered.compile)
    import nxla as nx

    options = {"xla_dump_to": dumps, "xla_dump_hlo_as_text": True} if dumps else {}
    # The plugin is loaded by its first program.
    nx.jit(lambda x: x + 1, compiler="xla")(nx.tensor([1.0])).block_until_ready()
    if way == "imported":
        return seconds(nx.import_stablehlo(text.read_text(encoding="utf-8"), **options).compile)
    lib = library("xla")
    made = MODELS[model](lib)
    step = nx.jit(made.step, compiler="xla", **options)
    return seconds(step.lower(*lib.put(made.arguments)).compile)


def turn(way: str, model: str, text: Path, dumps: Path | str) -> float | None:
    """Return the seconds of one library in a new process, or None for an unsupported module."""
    command = [sys.executable, __file__, "--worker", way, model, str(text), str(dumps)]
    run = subprocess.run(command, check=False, capture_output=True, text=True)
    if run.returncode == 0:
        return float(json.loads(run.stdout.splitlines()[-1]))
    if way == "imported" and "No FFI handler" in run.stderr:
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
    for way in WAYS:
        (folder / way).mkdir(parents=True, exist_ok=True)
    # Runs that write dumps are slower, so they are not timed.
    for way in reversed(WAYS):
        turn(way, model, text, folder / way)
    best: dict[str, float | None] = dict.fromkeys(WAYS)
    for _ in range(TURNS):
        for way in reversed(WAYS):
            took, before = turn(way, model, text, ""), best[way]
            if took is not None:
                best[way] = min(took * 1e3, before or math.inf)
    return [*best.values(), *(instructions(folder / way) for way in ("nxla", "imported"))]


def main() -> None:
    """Print the table."""
    from zoo import MODELS

    words = sys.argv[1:]
    kept = None
    if "--dump" in words:
        at = words.index("--dump")
        kept = Path(words[at + 1])
        del words[at : at + 2]
    columns = ("nxla", "imported", "jax", "nxla", "imported")
    print(f"{'milliseconds, instructions':30}" + "".join(f"{name:>10}" for name in columns))
    with tempfile.TemporaryDirectory() as temporary:
        for model in MODELS:
            if words and not any(word.lower() in model.lower() for word in words):
                continue
            folder = (kept or Path(temporary)) / model.replace(", ", "-").replace(" ", "-")
            print(f"{model:30}" + "".join(map(cell, figures_of(model, folder))), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        way, model, text, dumps = sys.argv[2:]
        print(json.dumps(compile_in(way, model, Path(text), dumps)))
    else:
        main()
