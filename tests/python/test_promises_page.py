"""The page of promises names the test of each promise."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_page_of_promises_is_up_to_date():
    command = [sys.executable, str(ROOT / "tools/promises.py"), "--check"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_tests_named_by_the_page_exist():
    page = (ROOT / "docs/learn/nx-promises.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if re.match(r"\| \d", line)]
    assert [int(row.split("|")[1]) for row in rows] == list(range(1, 132))
    for row in rows:
        references = re.findall(r"`([\w/.]+)::(\w+)`", row)
        assert references, row
        # Each promise has a test in Python, and many have one in Rust too.
        assert any(path.endswith(".py") for path, _ in references), row
        for path, name in references:
            code = (ROOT / path).read_text(encoding="utf-8")
            assert re.search(rf"\b(?:def|fn) {name}\b", code), (path, name)
