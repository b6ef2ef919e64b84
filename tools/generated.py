"""Write files that are generated from other files, or check that they are up to date."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def write_or_check(files: dict[Path, str], command: str) -> None:
    """Write the files whose content differs; with ``--check``, fail if there are any.

    ``command`` is the command that writes the files.
    """
    parser = argparse.ArgumentParser(description=f"Write the files of `{command}`.")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail if a file is out of date"
    )
    check = parser.parse_args().check
    stale = {
        path: content
        for path, content in files.items()
        if not path.exists() or path.read_text(encoding="utf-8") != content
    }
    if stale and check:
        sys.exit(f"run `{command}`: {', '.join(map(os.path.relpath, stale))}")
    for path, content in stale.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
