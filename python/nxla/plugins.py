"""The search for the plugin of XLA.

The first of these wins: the option ``plugin=``, the environment variable ``NXLA_PJRT_PLUGIN``, the
packages in `CPU_PACKAGES`, and the packages with entry points in the groups ``xla_plugins`` and
``jax_plugins``. The search starts when XLA is first requested. If this module finds no plugin, the
runtime searches the usual folders, and its error lists all of them.

Nothing is imported from this package, so that ``tools/find_plugin.py`` can use this file before the
compiled module is built.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.metadata import EntryPoint

__all__ = ["announce", "find"]

VARIABLE = "NXLA_PJRT_PLUGIN"
GROUPS = ("xla_plugins", "jax_plugins")

#: The Python modules with a CPU plugin, and the file of the plugin. ``nxla[xla]`` installs the
#: first module. The last module has a known fault; it is listed so that its error can describe the
#: fix. ``crates/pjrt/src/discover.rs`` contains the same table, and a test compares the tables.
CPU_PACKAGES = (
    ("fastatomstruct_xla_cpu", "libpjrt_cpu.so"),
    ("lammps_jax_pjrt_cpu", "pjrt_c_api_cpu_plugin.so"),
    ("xla_plugins.xla_cpu_pjrt", "xla_cpu_pjrt.so"),
)


def find() -> str | None:
    """Return the path of the first plugin of an installed package, or None.

    Plugins for the CPU are preferred to others: they run on any machine.
    """
    return find_cpu() or next(_announced_paths(), None)


def find_default() -> str | None:
    """Return the path of the plugin that is used by default, or None.

    ``NXLA_PJRT_PLUGIN`` contains the path of a file or the name of a platform.
    """
    named = os.environ.get(VARIABLE)
    return resolve(named) if named else find()


def resolve(named: str) -> str:
    """Return the path of the plugin that a path or the name of a platform selects.

    The runtime searches a platform only in environments that variables name. This function searches
    the packages of the running interpreter, and returns an unknown name as it is.
    """
    is_platform = named.isidentifier() and not os.path.isfile(named)
    return (find_for(named.lower()) if is_platform else None) or named


def find_cpu() -> str | None:
    """Return the path of the first plugin of `CPU_PACKAGES` that is installed."""
    return next(_cpu_plugins(), None)


def find_for(platform: str) -> str | None:
    """Return the path of the first plugin for a platform such as ``"cpu"`` or ``"cuda"``."""
    if platform == "cpu":
        return find_cpu()
    return next(_announced_paths(platform), None)


def find_all() -> list[str]:
    """Return the paths of the plugins of all installed packages, CPU plugins first."""
    return list(dict.fromkeys([*_cpu_plugins(), *_announced_paths()]))


def _cpu_plugins() -> Iterator[str]:
    """Yield the paths of the plugins of `CPU_PACKAGES` that are installed."""
    for module, name in CPU_PACKAGES:
        folder = _folder(module)
        if folder is not None and os.path.isfile(path := os.path.join(folder, name)):
            yield path


def _announced_paths(platform: str = "") -> Iterator[str]:
    """Yield the paths of the plugins that entry points announce, for a platform or for any."""
    for entry in _entries():
        path = _library(entry) if platform in entry.value else None
        if path is not None:
            yield path


def _entries() -> list[EntryPoint]:
    """Return the entry points of plugins, CPU plugins first."""
    from importlib.metadata import entry_points

    found = [entry for group in GROUPS for entry in entry_points(group=group)]
    return sorted(found, key=lambda entry: "cpu" not in entry.value)


def _library(entry: EntryPoint) -> str | None:
    """Return the shared library in the package of an entry point."""
    folder = _folder(entry.module)
    if folder is None:
        return None
    names = sorted(name for name in os.listdir(folder) if name.endswith((".so", ".dylib", ".dll")))
    names.sort(key=lambda name: "pjrt" not in name)
    return os.path.join(folder, names[0]) if names else None


def _folder(module: str) -> str | None:
    """Return the folder of a module, without importing it."""
    from importlib.util import find_spec

    try:
        spec = find_spec(module)
    except ImportError:
        return None
    if spec is None or spec.origin is None:
        return None
    return os.path.dirname(spec.origin)


def announce() -> None:
    """Set the path of the plugin for the runtime and for child processes."""
    path = find_default()
    if path is not None and path != os.environ.get(VARIABLE):
        os.environ[VARIABLE] = path
