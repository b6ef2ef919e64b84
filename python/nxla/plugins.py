"""Finding the plugin through which XLA is reached.

The first of these wins: the option ``plugin=``, the environment variable ``NXLA_PJRT_PLUGIN``, and
the packages that announce themselves under the entry-point groups ``xla_plugins`` and
``jax_plugins``. Nothing is looked for, let alone loaded, before XLA is asked for. If nothing is
found here, the engine looks at the usual places itself, and its error lists them all.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["announce", "find"]

VARIABLE = "NXLA_PJRT_PLUGIN"
GROUPS = ("xla_plugins", "jax_plugins")


def find() -> str | None:
    """Return the path of the first plugin that an installed package brings, if there is one.

    The CPU plugin is preferred to others: it is the one that runs on any machine.
    """
    from importlib.metadata import entry_points

    found = [entry for group in GROUPS for entry in entry_points(group=group)]
    found.sort(key=lambda entry: "cpu" not in entry.value)
    for entry in found:
        path = _library(entry)
        if path is not None:
            return path
    return None


def _library(entry: EntryPoint) -> str | None:
    """Return the shared library in the package of an entry point, without importing it."""
    from importlib.util import find_spec

    try:
        spec = find_spec(entry.module)
    except ImportError:
        return None
    if spec is None or spec.origin is None:
        return None
    folder = os.path.dirname(spec.origin)
    names = sorted(name for name in os.listdir(folder) if name.endswith((".so", ".dylib", ".dll")))
    names.sort(key=lambda name: "pjrt" not in name)
    return os.path.join(folder, names[0]) if names else None


def announce() -> None:
    """Tell the engine, and the processes that this one starts, where the plugin is."""
    if not os.environ.get(VARIABLE):
        path = find()
        if path is not None:
            os.environ[VARIABLE] = path
