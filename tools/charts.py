"""Draw the charts of the documentation from the measurements in ``benches/results``.

``python tools/charts.py`` writes one SVG file for each chart into ``docs/_static/charts``.
``python tools/charts.py --check`` writes nothing and fails if a file is out of date.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from html import escape
from pathlib import Path

from generated import write_or_check

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benches" / "results"
CHARTS = ROOT / "docs" / "_static" / "charts"

COLORS = ("#2b6cb0", "#dd8452", "#8c8c8c", "#55a868")
LABELS, BARS, VALUES = 230, 380, 90
BAR, GAP, HEAD, FOOT = 13, 9, 62, 12


@dataclass(frozen=True)
class Chart:
    """The title and the unit of one chart, and the scale of its bars."""

    title: str
    unit: str
    log: bool = False


#: The chart of each file of ``benches/results``, by the name of the file.
CHART_SPECS = {
    "models": Chart("Models on a CPU: one step", "ms", log=True),
    "first_results": Chart("Models on a CPU: from definition to first result", "ms", log=True),
    "kernels": Chart("Evaluator, as a multiple of the faster of NumPy and JAX", "times"),
    "functions": Chart("Functions of a million float32", "µs", log=True),
    "loops": Chart("Loops over small tensors", "ms", log=True),
    "tracing": Chart("Tracing, per operation", "µs", log=True),
    "small_calls": Chart("A call of x + 1 on 1,000 float32", "µs"),
    "imports": Chart("Starting a process", "ms"),
    "gpu_models": Chart("Models on one NVIDIA H200: one step", "ms", log=True),
    "stages": Chart("Compiling with XLA, whole and in stages", "s"),
    "derivatives": Chart("Gradient, as a multiple of the function", "times"),
    "replay": Chart("Memory of the gradient of a scan, by replay method", "MB"),
    "builds": Chart("Release build of a Rust program that uses nxla", "CPU s"),
}


def read(path: Path) -> tuple[list[str], list[tuple[str, list[float | None]]]]:
    """Return the names of the series, and the label and values of each row."""
    with path.open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    table = [(row[0], [float(cell) if cell else None for cell in row[1:]]) for row in rows]
    return head[1:], table


def lengths(values: list[float], log: bool) -> dict[float, float]:
    """Return the length of the bar of each value, in pixels."""
    largest = max(values)
    if not log:
        return {value: BARS * value / largest for value in values}
    # The scale of a logarithmic chart begins at a power of ten below the smallest value.
    low = math.floor(math.log10(min(values)) - 1e-9)
    span = math.log10(largest) - low
    return {value: BARS * (math.log10(value) - low) / span for value in values}


def text(x: float, y: float, content: str, style: str = "") -> str:
    """Return an SVG text element that starts at a point."""
    return f'<text x="{x:g}" y="{y:g}"{style}>{escape(content)}</text>'


def draw(chart: Chart, series: list[str], rows: list[tuple[str, list[float | None]]]) -> str:
    """Return the chart as an SVG document."""
    scale = lengths([value for _, values in rows for value in values if value], chart.log)
    group = BAR * len(series) + GAP
    width, height = LABELS + BARS + VALUES, HEAD + group * len(rows) + FOOT
    unit = f"{chart.unit}, logarithmic scale" if chart.log else chart.unit
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" rx="6" fill="#ffffff"/>',
        text(12, 22, f"{chart.title} ({unit})", ' font-size="14" font-weight="bold"'),
    ]
    for number, name in enumerate(series):
        x = LABELS + 120 * number
        parts.append(
            f'<rect x="{x}" y="36" width="11" height="11" fill="{COLORS[number]}"/>'
            + text(x + 16, 46, name)
        )
    for row, (label, values) in enumerate(rows):
        top = HEAD + row * group
        middle = top + (group - GAP) / 2 + 4
        parts.append(text(LABELS - 8, middle, label, ' text-anchor="end"'))
        for number, value in enumerate(values):
            if value is None:
                continue
            y, length = top + number * BAR, max(scale[value], 1.0)
            parts.append(
                f'<rect x="{LABELS}" y="{y}" width="{length:.1f}" height="{BAR - 2}" '
                f'fill="{COLORS[number]}"/>'
                + text(round(LABELS + length + 5, 1), y + 10, f"{value:,g}", ' font-size="11"')
            )
    return "\n".join([*parts, "</svg>"]) + "\n"


def drawings() -> dict[Path, str]:
    """Return the content of each chart file."""
    return {
        CHARTS / f"{name}.svg": draw(chart, *read(RESULTS / f"{name}.csv"))
        for name, chart in CHART_SPECS.items()
    }


if __name__ == "__main__":
    write_or_check(drawings(), "python tools/charts.py")
