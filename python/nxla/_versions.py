"""The versions and settings that a bug report needs."""

from __future__ import annotations

import os
import sys

from nxla import _core, _hints, plugins

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TextIO

#: Packages that nxla calls or exchanges tensors with.
PACKAGES = (
    "numpy",
    "scipy",
    "ml_dtypes",
    "opt_einsum",
    "safetensors",
    "jax",
    "torch",
    "distributed",
    "ray",
)

#: Environment variables that change the behavior of nxla or XLA.
VARIABLES = (
    "NXLA_COMPILER",
    "NXLA_PJRT_PLUGIN",
    "NXLA_PJRT_ALLOW_FAULTS",
    "NXLA_CACHE_DIR",
    "NXLA_CACHE_BYTES",
    "NXLA_MALLOC_THRESHOLDS",
    "NXLA_FULL_TRACEBACKS",
    "XLA_FLAGS",
    "TF_CPP_MIN_LOG_LEVEL",
    "CUDA_VISIBLE_DEVICES",
)


def versions() -> dict[str, str]:
    """Return the versions by name, without loading any plugin or package."""
    import platform

    return {
        "nxla": _core.__version__,
        "python": f"{platform.python_version()} ({_build()})",
        "platform": f"{platform.platform()}, {os.cpu_count()} processors",
        "plugin": plugins.find_default() or "none",
        **dict(_packages()),
    }


def _build() -> str:
    import platform

    is_free_threaded = not getattr(sys, "_is_gil_enabled", lambda: True)()
    return platform.python_implementation() + (", free-threaded" if is_free_threaded else "")


def _packages() -> Iterator[tuple[str, str]]:
    from importlib import metadata

    for name in PACKAGES:
        try:
            yield name, metadata.version(name)
        except metadata.PackageNotFoundError:
            continue


def settings() -> dict[str, str]:
    """Return the environment variables of `VARIABLES` that are set."""
    return {name: value for name in VARIABLES if (value := os.environ.get(name))}


def show_versions(file: TextIO | None = None) -> None:
    """Print the versions of nxla, Python, the platform and related packages, for bug reports.

    Packages that are not installed are omitted. The function imports no package and loads no
    plugin; ``python -m nxla doctor`` prints the same lines and tests the backends.

    Parameters
    ----------
    file
        The text stream that receives the lines; ``sys.stdout`` by default.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.show_versions()
    nxla: ...
    python: ...
    platform: ...
    plugin: ...
    """
    out = sys.stdout if file is None else file
    for name, value in {**versions(), **settings()}.items():
        out.write(f"{name}: {value}\n")


_hints.install(globals())
