"""A short run of every fuzzer, and all that they ever found."""

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = str(Path(__file__).parent.parent)
if TESTS not in sys.path:
    sys.path.append(TESTS)

from fuzz import driver  # noqa: E402

#: How many cases of each are tried here; `make fuzz` goes on for as long as it is told.
CASES = {
    "differential": 40, "gradients": 12, "splits": 12, "transforms": 6, "formats": 40,
    "buffers": 400, "containers": 12, "api": 400, "starved": 40,
}  # fmt: skip


@pytest.mark.parametrize("name", driver.FUZZERS)
def test_a_short_run_and_what_was_ever_found(name):
    # In a process of its own: some of it would take this one along, or its memory.
    process = driver.child("some", name, "1", str(CASES[name]), output=subprocess.PIPE)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output.decode()


def test_a_failing_case_is_shrunk():
    class Module:
        @staticmethod
        def check(case):
            if 7 in case:
                raise driver.Failure("there is a seven")
            return 1

        @staticmethod
        def smaller(case):
            return (case[:at] + case[at + 1 :] for at in range(len(case)))

    found = driver.shrink(Module, driver.Found([1, 7, 3, 9], ""))
    assert found == driver.Found([7], "there is a seven")
