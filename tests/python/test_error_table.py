"""The table of error messages in the documentation is up to date."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_table_is_up_to_date() -> None:
    command = [sys.executable, ROOT / "tools" / "errors.py", "--check"]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr


def test_messages_end_without_a_period() -> None:
    page = (ROOT / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")
    rows = [row for row in page.splitlines() if row.startswith("| ``")]
    assert len(rows) > 500
    assert [row for row in rows if row.endswith(". `` |")] == []
