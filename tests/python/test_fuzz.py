"""A short run of every fuzzer, and all stored cases."""

import subprocess
import sys
from pathlib import Path

import pytest

if sys.platform != "linux":
    pytest.skip("fuzzers read /proc and limit memory", allow_module_level=True)

TESTS = str(Path(__file__).parent.parent)
if TESTS not in sys.path:
    sys.path.append(TESTS)

from fuzz import driver  # noqa: E402

#: The number of cases of each fuzzer in this test; `make fuzz` runs for a given time.
CASES = {
    "differential": 40, "gradients": 12, "splits": 12, "transforms": 6, "formats": 40,
    "buffers": 400, "containers": 12, "api": 400, "starved": 40,
}  # fmt: skip


@pytest.mark.parametrize("name", driver.FUZZERS)
def test_short_runs_and_stored_cases_pass(name):
    # Use a separate process, because a case may end the process or exhaust its memory.
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
            return (case[:i] + case[i + 1 :] for i in range(len(case)))

    found = driver.shrink(Module, driver.Found([1, 7, 3, 9], ""))
    assert found == driver.Found([7], "there is a seven")


#: The expected message for each action that never ends.
STUCK = {"nothing happens for": "time.sleep(100)", "seconds of computing": "while True: pass"}


@pytest.mark.parametrize("why", STUCK)
def test_hanging_cases_are_killed_with_their_stack(why, tmp_path, monkeypatch):
    monkeypatch.setattr(driver, "PATIENCE", 1)
    journal = tmp_path / "journal.json"
    code = f"""
import pathlib, sys, time
sys.path.append({TESTS!r})
from fuzz import driver
def stuck():
    {STUCK[why]}
driver.show_stacks(pathlib.Path(sys.argv[1]))
stuck()
"""
    process = subprocess.Popen([sys.executable, "-c", code, str(journal)], start_new_session=True)
    ended = driver.wait(process, journal)
    assert ended.startswith("hangs: ")
    assert why in ended
    assert "in stuck" in ended
    assert process.returncode == -9


def test_starved_cases_are_not_reported_as_hanging(monkeypatch):
    now, use = 0.0, driver.Use(0.0, awake=True)
    monkeypatch.setattr(driver.time, "monotonic", lambda: now)
    monkeypatch.setattr(driver, "use_of", lambda session: use)
    watch = driver.Watch(1)
    # Use a hundredth of a processor for much longer than the limits of a case.
    for _ in range(5 * driver.PATIENCE):
        now, use = now + 1, driver.Use(use.seconds + 0.01, awake=True)
        assert watch.verdict() is None
    # An idle process without competition for the processor counts as hanging.
    for _ in range(driver.PATIENCE + 1):
        now, use = now + 1, driver.Use(use.seconds, awake=False)
        why = watch.verdict()
    assert "nothing happens" in why
    watch.begin()
    assert watch.verdict() is None
