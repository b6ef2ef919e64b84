"""The table of error messages in the documentation is up to date."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_table_is_up_to_date() -> None:
    command = [sys.executable, ROOT / "tools" / "errors.py", "--check"]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr


def _rows() -> list[str]:
    page = (ROOT / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")
    rows = [row for row in page.splitlines() if row.startswith("| ``")]
    assert len(rows) > 500
    return rows


def test_messages_end_without_a_period() -> None:
    assert [row for row in _rows() if row.endswith(". `` |")] == []


def test_messages_about_limits_show_the_value() -> None:
    limit = re.compile(
        r"must (be|have|contain|fit) (at (least|most) (\d|one)|inside|in (\d|memory))"
    )
    # The functions stop at the limit, so the value is unknown.
    known = [
        "must contain at most 40 links",
        "serialize: container: integers must have at most 4300 digits",
    ]
    rows = [row for row in _rows() if limit.search(row) and "got" not in row]
    assert [row for row in rows if row[5:-5] not in known] == []
