"""Measurements in new processes, so that they share neither threads nor caches nor an allocator."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any


def figures_of(script: str, *arguments: str, environment: dict[str, str] | None = None) -> Any:
    """Run a script in a new process, and decode the JSON in the last line that it prints.

    ``environment`` is added to the environment of this process.
    """
    run = subprocess.run(
        [sys.executable, script, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env={**os.environ, **(environment or {})},
    )
    return json.loads(run.stdout.splitlines()[-1])
