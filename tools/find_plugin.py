"""Print the path of the XLA plugin for tests, or nothing if no plugin is installed.

It is the installed one for the CPU, or for the platform that ``NXLA_TEST_PLATFORM`` names.
"""

import os
import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    # The package itself cannot be imported before its compiled module is built.
    source = Path(__file__).parents[1] / "python/nxla/plugins.py"
    platform = os.environ.get("NXLA_TEST_PLATFORM") or "cpu"
    sys.stdout.write(f"{runpy.run_path(str(source))['find_for'](platform) or ''}\n")
