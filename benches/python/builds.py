"""Print the duration and size of the builds of the module by commit, and measure this build.

``benches/results/history/builds.csv`` has a row for each commit that changed the build, measured on
an idle machine with two cores: ``make demo`` in a new clone, the compiled module, the wheel, and
the time of ``import nxla`` as a part of the time of ``import numpy``. The last line is measured
now; times of a build are not.

Run it with ``make bench`` or ``python benches/python/builds.py``.
"""

from __future__ import annotations

import csv
from pathlib import Path

from worker import in_fresh_process, timed_import

import nxla._core

HISTORY = Path(__file__).resolve().parent.parent / "results" / "history" / "builds.csv"


def main() -> None:
    """Print the table."""
    with HISTORY.open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    size = Path(nxla._core.__file__).stat().st_size / 1e6
    nxla_time, numpy_time = (
        in_fresh_process(timed_import(f"import {name}")) for name in ("nxla", "numpy")
    )
    now = {
        "commit": "now",
        "module MB": f"{size:.1f}",
        "import / numpy": f"{nxla_time / numpy_time:.2f}",
    }
    rows.append([now.get(column, "—") for column in head])
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    for row in [head, *rows]:
        print("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))


if __name__ == "__main__":
    main()
