"""Compare nxla with JAX and NumPy in a table of ratios, and report which targets are met.

``worker.py`` measures each library in a separate process. The load of the machine varies, so the
libraries are measured alternately, and each figure is the best of all rounds.

Run it with ``make bench``.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from processes import figures_of

LIBRARIES = ("nxla", "jax", "numpy")
ROUNDS = 3
UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


# Each target: the figure, the compared value (the figure itself, or its ratio to another library),
# and the limit.
TARGETS = (
    ("import", "itself", 0.1),
    ("import to first result", "itself", 0.2),
    ("trace, per operation", "itself", 1e-6),
    ("trace, per operation", "of JAX", 1 / 50),
    ("trace of a gradient, per operation", "of JAX", 1 / 100),
    ("trace from Rust, per operation", "itself", 150e-9),
    ("jitted x + 1", "of JAX", 0.5),
    ("jitted, 50 arguments to 50 results", "of JAX", 0.5),
    ("jitted, 100 arguments to 1 result", "of JAX", 0.5),
    ("x + 1 as typed", "itself", 1.5e-6),
    ("x + 1 as typed, 256 x 256", "of numpy", 1.5),
    ("rows in a loop, as typed", "of JAX", 0.2),
    ("two threads that call, against one", "itself", 1 / 1.7),
    ("64 MB to the device and back, against copies", "itself", 1 / 0.8),
    ("an array of 4 MB as an argument, copies of it", "itself", 1.15),
    ("chain, time per node at 1,000,000 against 10,000", "itself", 1.5),
    ("chain, bytes per node", "itself", 150.0),
)
ROOT = Path(__file__).resolve().parents[2]
#: The script that measures one library.
WORKER = Path(__file__).with_name("worker.py")


def best_figures() -> dict[str, dict[str, float]]:
    """Return the best figures of each library over all rounds."""
    best: dict[str, dict[str, float]] = {library: {} for library in LIBRARIES}
    for round_index in range(ROUNDS):
        for library in LIBRARIES:
            print(f"round {round_index + 1} of {ROUNDS}: {library}", file=sys.stderr, flush=True)
            for name, figure in figures_of(str(WORKER), library).items():
                best[library][name] = min(figure, best[library].get(name, figure))
    return best


def rust_figures() -> dict[str, float]:
    """Return the tracing time of the last ``cargo bench``; empty if there is none."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    nodes = 10_000
    estimates = target / "criterion" / "trace_graph" / str(nodes) / "new" / "estimates.json"
    if not estimates.exists():
        return {}
    median: float = json.loads(estimates.read_text(encoding="utf-8"))["median"]["point_estimate"]
    return {"trace from Rust, per operation": median * 1e-9 / nodes}


def print_targets(best: dict[str, dict[str, float]]) -> None:
    """Print each target and whether it is met."""
    print(f"\n{'target':<62}{'at most':>12}{'measured':>12}")
    for name, compared, limit in TARGETS:
        own_figure, other = best["nxla"].get(name), compared.removeprefix("of ").lower()
        reference = best[other].get(name) if other in best else None
        if own_figure is None or (other in best and reference is None):
            print(f"{name + ', ' + compared:<62}{'':>12}{'not run':>12}")
            continue
        value = own_figure / reference if reference else own_figure
        columns = (f"{limit:.3g}", f"{value:.3g}")
        if compared == "itself":
            columns = (text(name, limit), text(name, value))
        verdict = "reached" if value <= limit else "MISSED"
        print(f"{name + ', ' + compared:<62}{columns[0]:>12}{columns[1]:>12}  {verdict}")


def text(name: str, figure: float | None) -> str:
    """Return a figure with its unit: seconds, unless the name contains another unit."""
    if figure is None:
        return "—"
    if "bytes" in name or "against" in name or "copies" in name:
        return f"{figure:.3g}"
    size, unit = next(((size, unit) for size, unit in UNITS if figure >= size), UNITS[-1])
    return f"{figure / size:.3g} {unit}"


def ratio(own_figure: float, reference: float | None) -> str:
    """Return how many times as fast nxla is."""
    return "—" if reference is None else f"{reference / own_figure:.2f}"


def main() -> None:
    """Measure all libraries and print the table."""
    best = best_figures()
    best["nxla"].update(rust_figures())
    columns = ("nxla", "jax", "numpy", "jax / nxla", "numpy / nxla")
    print(f"{'':<52}" + "".join(f"{column:>14}" for column in columns))
    for name, own_figure in best["nxla"].items():
        jax, numpy = best["jax"].get(name), best["numpy"].get(name)
        cells = [text(name, own_figure), text(name, jax), text(name, numpy)]
        cells += [ratio(own_figure, jax), ratio(own_figure, numpy)]
        print(f"{name:<52}" + "".join(f"{cell:>14}" for cell in cells))
    print_targets(best)
    print("\nTimes: less is better. Ratios: how many times as fast nxla is; above 1 it is faster.")


if __name__ == "__main__":
    main()
