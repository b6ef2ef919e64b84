"""Print what a build of the module takes and how large it is, by commit, and measure this build.

``benches/results/history/builds.csv`` has a row for each commit that changed the build, measured on
an idle machine with two cores: ``make demo`` in a new clone, the compiled module, the wheel, and
the time of ``import nxla`` as a part of the time of ``import numpy``. The last line is measured
now; times of a build are not.

Run it with ``make bench`` or ``python benches/python/builds.py``.
"""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import nxla._core

HISTORY = Path(__file__).resolve().parent.parent / "results" / "history" / "builds.csv"
ROUNDS = 10


def import_seconds(module: str) -> float:
    """Return the shortest time of an import in new interpreters."""
    code = (
        "import time\nstart = time.perf_counter()\n"
        f"import {module}\nprint(time.perf_counter() - start)"
    )
    command = [sys.executable, "-c", code]
    runs = [
        subprocess.run(command, capture_output=True, text=True, check=True)
        for _ in range(1 + ROUNDS)
    ]
    return min(float(run.stdout) for run in runs[1:])


def main() -> None:
    """Print the table."""
    with HISTORY.open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    size = Path(nxla._core.__file__).stat().st_size / 1e6
    ratio = import_seconds("nxla") / import_seconds("numpy")
    now = {"commit": "now", "module MB": f"{size:.1f}", "import / numpy": f"{ratio:.2f}"}
    rows.append([now.get(column, "—") for column in head])
    widths = [max(len(row[at]) for row in [head, *rows]) for at in range(len(head))]
    for row in [head, *rows]:
        print("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))


if __name__ == "__main__":
    main()
