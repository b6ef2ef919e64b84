"""The charts and drawings of the documentation are up to date."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("tool", ["charts.py", "drawings.py"])
def test_pictures_are_up_to_date(tool: str) -> None:
    command = [sys.executable, ROOT / "tools" / tool, "--check"]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr


def test_each_result_has_a_chart_and_each_chart_is_shown() -> None:
    results = {path.stem for path in (ROOT / "benches" / "results").glob("*.csv")}
    charts = {path.stem for path in (ROOT / "docs" / "_static" / "charts").glob("*.svg")}
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    assert results == charts
    for name in charts:
        assert f"_static/charts/{name}.svg" in page
        assert f"benches/results/{name}.csv" in page
