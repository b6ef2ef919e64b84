"""Print the path of the plugin for tests of XLA.

It is the installed one for the CPU, or for the platform that ``NXLA_TEST_PLATFORM`` names. Without
one, the output is the name of the platform, and the search by this name fails.
"""

import os
import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    # The package itself cannot be imported before its compiled module is built.
    source = Path(__file__).parents[1] / "python/nxla/plugins.py"
    platform = os.environ.get("NXLA_TEST_PLATFORM") or "cpu"
    sys.stdout.write(f"{runpy.run_path(str(source))['find_for'](platform) or platform}\n")
