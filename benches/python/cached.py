"""Time the first training step of MiniLM in a new process, with the cache on disk.

The script starts processes of nxla without a cache folder, with an empty folder and with the
filled folder, and a process of JAX with its own filled cache. Each process reports the elapsed
time and the processor time of the first call minus those of a later call. The processor time
depends less on the load of the machine.

Run it with ``make bench`` or ``python benches/python/cached.py``.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time

from libraries import library
from processes import figures_of
from zoo import MODELS

ROUNDS = 2
#: The required speedup of starting a second process that uses the disk cache.
TARGET = 10.0


def measure(name: str) -> dict[str, float]:
    """Return the elapsed time and the processor time of the first call."""
    if name == "jax":
        import jax

        jax.config.update("jax_compilation_cache_dir", os.environ["NXLA_CACHE_DIR"])
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    lib = library("jax" if name == "jax" else "xla")
    model = MODELS["MiniLM, training"](lib)
    arguments = lib.wait(lib.put(model.arguments))
    step = lib.jit(model.step)

    def call() -> tuple[float, float]:
        wall, cpu = time.perf_counter(), time.process_time()
        lib.wait(step(*arguments))
        return time.perf_counter() - wall, time.process_time() - cpu

    first = call()
    later = [call() for _ in range(3)]
    return {
        "wall": max(first[0] - min(wall for wall, _ in later), 0.0),
        "cpu": max(first[1] - min(cpu for _, cpu in later), 0.0),
    }


def process(name: str, folder: str) -> dict[str, float]:
    """Return the figures that a separate process measured."""
    environment = {"NXLA_CACHE_DIR": folder}
    figures: dict[str, float] = figures_of(__file__, "--worker", name, environment=environment)
    return figures


def best(name: str, folder: str) -> dict[str, float]:
    """Return the best figures of some rounds."""
    rounds = [process(name, folder) for _ in range(ROUNDS)]
    return {figure: min(figures[figure] for figures in rounds) for figure in rounds[0]}


def main() -> None:
    """Measure, and print a line for each kind of process."""
    if sys.argv[1:2] == ["--worker"]:
        print(json.dumps(measure(sys.argv[2])))
        return
    with tempfile.TemporaryDirectory() as ours, tempfile.TemporaryDirectory() as theirs:
        found = {"nxla, without a folder": best("nxla", "")}
        found["nxla, an empty folder"] = process("nxla", ours)
        found["nxla, a second process"] = best("nxla", ours)
        found["jax, an empty folder"] = process("jax", theirs)
        found["jax, a second process"] = best("jax", theirs)
    print(f"{'MiniLM, training':<26}{'first call':>12}{'processors':>12}")
    for name, figures in found.items():
        print(f"{name:<26}{figures['wall'] * 1e3:>9.0f} ms{figures['spent'] * 1e3:>9.0f} ms")
    without, second = found["nxla, without a folder"], found["nxla, a second process"]
    for figure in ("wall", "cpu"):
        share = without[figure] / max(second[figure], 1e-9)
        verdict = "reached" if share >= TARGET else "MISSED"
        theirs_share = second[figure] / max(found["jax, a second process"][figure], 1e-9)
        print(f"{figure}: {share:.1f} times as soon ({verdict}), {theirs_share:.2f} of JAX")


if __name__ == "__main__":
    main()
