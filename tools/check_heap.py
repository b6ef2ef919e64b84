"""Run a command with every allocation checked by the C library: `python check_heap.py COMMAND…`.

glibc checks the bytes around a block when it is freed, and aborts the process if they were
written to (``MALLOC_CHECK_``). New and freed blocks are filled with a nonzero byte, so that
uninitialized memory does not read as zero (``MALLOC_PERTURB_``). Since glibc 2.34 the checks are in
a separate library, which must be preloaded.

Before it runs the command, the script verifies that the checks detect a process that writes past
its block.
"""

import os
import signal
import subprocess
import sys

LIBRARY = "libc_malloc_debug.so.0"

#: Write one byte past a block, and free the block. The interpreter allocates the block, because
#: only its calls are redirected; `ctypes` would call another `malloc`.
OVERRUN = """
import ctypes, os
with open("/proc/self/maps") as maps:
    if "libc_malloc_debug" not in maps.read():
        os._exit(3)
allocate, free = ctypes.pythonapi.PyMem_RawMalloc, ctypes.pythonapi.PyMem_RawFree
allocate.restype, allocate.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
free.restype, free.argtypes = None, [ctypes.c_void_p]
block = allocate(24)
ctypes.memset(block + 24, 1, 1)
free(block)
"""


def checked_environment() -> dict[str, str]:
    """Return the environment in which allocations are checked, including allocations of plugins."""
    preload = " ".join(filter(None, [LIBRARY, os.environ.get("LD_PRELOAD")]))
    checks = {"MALLOC_CHECK_": "3", "MALLOC_PERTURB_": "165"}
    return {**os.environ, "LD_PRELOAD": preload, **checks}


def failure_reason() -> str | None:
    """Return why allocations cannot be checked here, if they cannot."""
    run = [sys.executable, "-S", "-c", OVERRUN]
    overrun = subprocess.run(
        run, env=checked_environment(), capture_output=True, text=True, check=False
    )
    if overrun.returncode == -signal.SIGABRT:
        return None
    if overrun.returncode == 3 or "cannot be preloaded" in overrun.stderr:
        return (
            f"the heap cannot be checked: {LIBRARY} is missing. It is a part of glibc 2.34 and "
            "later (Debian and Ubuntu: the package libc6); other C libraries have none"
        )
    return (
        "the heap cannot be checked: a process that wrote past its block was not caught, and "
        f"ended with {overrun.returncode}: {overrun.stderr.strip()}"
    )


def main() -> None:
    """Replace this process by the command, with its allocations checked."""
    if len(sys.argv) < 2:
        sys.exit("usage: python check_heap.py COMMAND…")
    reason = failure_reason()
    if reason is not None:
        sys.exit(reason)
    os.execvpe(sys.argv[1], sys.argv[1:], checked_environment())


if __name__ == "__main__":
    main()
