"""A few of the random programs of ``tests/random_programs.py``, where JAX is installed."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "random_programs.py"


@pytest.mark.skipif(find_spec("jax") is None, reason="JAX is not installed")
def test_random_programs_agree_with_jax():
    command = [sys.executable, str(SCRIPT), "--count", "12", "--depth", "2"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
