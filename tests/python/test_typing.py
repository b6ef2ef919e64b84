"""Type checkers accept correct code, reject wrong code, and cover the whole compiled module."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "typing"
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def found():
    """Return the reports of strict pyright: the broken rules of each line of each file."""
    pytest.importorskip("pyright", reason="pyright is not installed")
    command = [
        *(sys.executable, "-m", "pyright", "--outputjson"),
        *("--project", str(FOLDER), "--pythonpath", sys.executable),
    ]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    report = json.loads(run.stdout)
    assert report["summary"]["filesAnalyzed"] >= 2
    broken = {}
    for diagnostic in report["generalDiagnostics"]:
        line = diagnostic["range"]["start"]["line"] + 1
        lines = broken.setdefault(Path(diagnostic["file"]).name, {})
        lines.setdefault(line, set()).add(diagnostic.get("rule", diagnostic["message"]))
    return broken


def test_correct_code_has_no_pyright_errors(found):
    assert found.get("right.py", {}) == {}


def test_each_incorrect_line_has_its_expected_errors(found):
    text = (FOLDER / "wrong.py").read_text(encoding="utf-8")
    expected = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if match := re.search(r"# expected: (.*)", line):
            expected[number] = set(match[1].split(", "))
    assert len(expected) > 10
    assert found["wrong.py"] == expected


def test_correct_code_passes_mypy():
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml")]
    run = subprocess.run(
        [*command, str(FOLDER / "right.py")], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert run.returncode == 0, run.stdout + run.stderr
