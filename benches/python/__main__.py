"""Compare nxla with JAX and numpy, as a table of ratios.

Each library is measured by ``worker.py`` in a process of its own. Two figures taken far apart say
little on a machine that does other things as well, so the libraries take turns, and each figure is
the best of the turns.

Run it with ``make bench``.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

LIBRARIES = ("nxla", "jax", "numpy")
TURNS = 2
UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def figures_of(library: str) -> dict[str, float]:
    """Return what one worker measured."""
    worker = Path(__file__).with_name("worker.py")
    command = [sys.executable, str(worker), library]
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    figures: dict[str, float] = json.loads(run.stdout.splitlines()[-1])
    return figures


def best_figures() -> dict[str, dict[str, float]]:
    """Return the best figures of each library over all turns."""
    best: dict[str, dict[str, float]] = {library: {} for library in LIBRARIES}
    for turn in range(TURNS):
        for library in LIBRARIES:
            print(f"turn {turn + 1} of {TURNS}: {library}", file=sys.stderr, flush=True)
            for name, figure in figures_of(library).items():
                best[library][name] = min(figure, best[library].get(name, figure))
    return best


def text(name: str, figure: float | None) -> str:
    """Return a figure with its unit: times are in seconds unless the name says otherwise."""
    if figure is None:
        return "—"
    if "bytes" in name or "against" in name:
        return f"{figure:.3g}"
    size, unit = next(((size, unit) for size, unit in UNITS if figure >= size), UNITS[-1])
    return f"{figure / size:.3g} {unit}"


def ratio(ours: float, theirs: float | None) -> str:
    """Return how many times as fast nxla is."""
    return "—" if theirs is None else f"{theirs / ours:.2f}"


def main() -> None:
    """Measure all libraries and print the table."""
    best = best_figures()
    columns = ("nxla", "jax", "numpy", "jax / nxla", "numpy / nxla")
    print(f"{'':<52}" + "".join(f"{column:>14}" for column in columns))
    for name, ours in best["nxla"].items():
        jax, numpy = best["jax"].get(name), best["numpy"].get(name)
        cells = [text(name, ours), text(name, jax), text(name, numpy)]
        cells += [ratio(ours, jax), ratio(ours, numpy)]
        print(f"{name:<52}" + "".join(f"{cell:>14}" for cell in cells))
    print("\nTimes: less is better. Ratios: how many times as fast nxla is; above 1 it is faster.")


if __name__ == "__main__":
    main()
