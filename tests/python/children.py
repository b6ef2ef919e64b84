"""Run Python code in a separate process, for tests that may end the process."""

import subprocess
import sys
import textwrap

PRELUDE = """
import os, resource, signal, sys, threading, time
import numpy as np
import nxla as nx

def limit(megabytes):
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (megabytes << 20),) * 2)
"""


def run(code, *, status=0, timeout=60, env=None):
    """Run code in a child process, which must end with this status; return its output."""
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=timeout,
        env=env,
        check=False,
    )
    assert done.returncode == status, f"{done.returncode}\n{done.stdout}\n{done.stderr[-3000:]}"
    return done.stdout
