"""Print the path of the installed XLA plugin for the CPU; nothing where there is none."""

import sys
from importlib.util import find_spec
from pathlib import Path


def plugin() -> Path | None:
    """Return the shared library of the package `xla-cpu-pjrt`, if it is installed."""
    try:
        spec = find_spec("xla_plugins.xla_cpu_pjrt")
    except ModuleNotFoundError:
        return None
    if spec is None or spec.origin is None:
        return None
    return next(Path(spec.origin).parent.glob("*.so"), None)


if __name__ == "__main__":
    sys.stdout.write(f"{plugin() or ''}\n")
