"""Print the path of the installed XLA plugin for the CPU; nothing where there is none."""

import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    # The package itself cannot be imported before its compiled module is built.
    source = Path(__file__).parents[1] / "python/nxla/plugins.py"
    sys.stdout.write(f"{runpy.run_path(str(source))['find_cpu']() or ''}\n")
