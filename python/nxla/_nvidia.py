"""The NVIDIA driver and the NVIDIA libraries of a machine, for ``python -m nxla doctor``.

Nothing is loaded: the functions read the file of the driver and list folders.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

#: The file in which the kernel module reports its version.
DRIVER = "/proc/driver/nvidia/version"
#: The device file that exists also in containers without the file of the driver.
CONTROL = "/dev/nvidiactl"
#: The folders that are searched after the packages.
SYSTEM = ("/usr/local/cuda/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib64")
#: Libraries that XLA loads when a program needs them, by the names in their files.
LIBRARIES = (
    "cublas",
    "cublasLt",
    "cudart",
    "cudnn",
    "cufft",
    "cupti",
    "cusolver",
    "cusparse",
    "nccl",
    "nvJitLink",
)


def has_gpu() -> bool:
    """Return whether the machine has an NVIDIA driver."""
    return os.path.exists(DRIVER) or os.path.exists(CONTROL)


def driver_version() -> str | None:
    """Return the version of the kernel module, or None if it does not report one."""
    try:
        with open(DRIVER, encoding="utf-8") as file:
            line = file.readline()
    except OSError:
        return None
    # The line is "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release …".
    numbers = [word for word in line.split() if word[:1].isdigit() and "." in word]
    return numbers[0] if numbers else line.strip() or None


def library_folders(plugin: str) -> dict[str, list[str]]:
    """Return the libraries by the folder in which the plugin finds them.

    A plugin from a package searches the NVIDIA packages of its environment, then the folders of the
    system.
    """
    folders: dict[str, list[str]] = {}
    pending = set(LIBRARIES)
    for folder in dict.fromkeys(_folders(plugin)):
        try:
            files = os.listdir(folder)
        except OSError:
            continue
        found = {
            name for name in pending if any(file.startswith(f"lib{name}.so") for file in files)
        }
        if found:
            folders[folder] = sorted(found, key=LIBRARIES.index)
            pending -= found
    return folders


def _folders(plugin: str) -> Iterator[str]:
    """Return the folders in which a plugin searches, in its order."""
    beside = os.path.dirname(os.path.realpath(plugin))
    for root in (os.path.dirname(os.path.dirname(beside)), os.path.dirname(beside)):
        packages = os.path.join(root, "nvidia")
        if os.path.isdir(packages):
            for name in sorted(os.listdir(packages)):
                yield os.path.join(packages, name, "lib")
    yield from filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep))
    yield from SYSTEM
