"""Reading golden files, plain or compressed."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

#: The folder of the stored files.
HERE = Path(__file__).parent


def files(folder: Path) -> list[Path]:
    """List the files of the format in a folder."""
    return sorted(path for path in folder.iterdir() if path.name.endswith((".jsonl", ".jsonl.gz")))


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """Read one file, a JSON object for each case."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as file:
        for line in file:
            if line.strip():
                yield json.loads(line)
