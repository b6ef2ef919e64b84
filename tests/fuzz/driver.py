"""Running a fuzzer: the loop, the process around it, shrinking, and the corpus."""

from __future__ import annotations

import argparse
import faulthandler
import hashlib
import importlib
import itertools
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import ModuleType

FUZZERS = (
    "differential",
    "gradients",
    "splits",
    "transforms",
    "formats",
    "buffers",
    "containers",
    "api",
    "starved",
)
CORPUS = Path(__file__).parent / "corpus"

#: The seconds that a case may compute or sleep before it counts as hanging.
PATIENCE = 120
#: The factor between the allowed elapsed time and the allowed computing time.
LOAD = 10
#: The number of smaller cases that are tried in separate processes.
TRIES = 80


#: The exit status of a process that has found a fault.
FOUND = 3


class Failure(Exception):
    """A property does not hold."""


class Found(NamedTuple):
    """A failing case and its failure."""

    case: Any
    why: str


def module_of(name: str) -> ModuleType:
    return importlib.import_module(f"fuzz.{name}")


def corpus(name: str) -> Iterator[tuple[Path, Any]]:
    """Yield the stored cases of a fuzzer."""
    for path in sorted((CORPUS / name).glob("*.json")):
        yield path, json.loads(path.read_text())


def keep(name: str, case: Any) -> Path:
    """Write a case to the corpus."""
    text = json.dumps(case, indent=1, sort_keys=True) + "\n"
    path = CORPUS / name / f"{hashlib.sha256(text.encode()).hexdigest()[:12]}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def fails(module: ModuleType, case: Any) -> str | None:
    """Return the failure of a case, or None if all properties hold."""
    try:
        module.check(case)
    except Failure as failed:
        return str(failed)
    return None


def shrink(module: ModuleType, found: Found, seconds: float = 30.0) -> Found:
    """Return the smallest case that still fails, found by a greedy descent."""
    end = time.monotonic() + seconds
    progress = True
    while progress and time.monotonic() < end:
        progress = False
        for case in module.smaller(found.case):
            why = fails(module, case)
            if why is not None:
                found, progress = Found(case, why), True
                break
            if time.monotonic() > end:
                break
    return found


class Counts(NamedTuple):
    """The numbers of cases and inputs."""

    cases: int
    inputs: int


def cases_of(module: ModuleType, seed: int, start: int = 0) -> Iterator[Any]:
    """Yield an endless sequence of cases; each depends only on the seed and its number."""
    number = start
    while True:
        yield module.generate(random.Random(f"{module.__name__} {seed} {number}"))
        number += 1


def work(name: str, seed: int, start: int, seconds: float, journal: Path) -> int:
    """Run cases until the time is over or a case fails; the journal contains the current case."""
    module = module_of(name)
    end = time.monotonic() + seconds
    cases = inputs = 0
    with journal.open("w") as log:
        for number, case in enumerate(cases_of(module, seed, start), start):
            note(log, {"number": number, "inputs": inputs, "case": case})
            why = None
            try:
                inputs += module.check(case)
            except Failure as failed:
                why = str(failed)
            cases += 1
            if why is not None:
                note(log, {"number": number, "inputs": inputs, "case": case, "shrinking": True})
                small = shrink(module, Found(case, why))
                note(
                    log, {"number": number, "inputs": inputs, "case": small.case, "why": small.why}
                )
                return FOUND
            if time.monotonic() > end:
                note(log, {"number": number, "inputs": inputs, "over": True})
                return 0
    return 0


def some(name: str, seed: int, count: int) -> int:
    """Run the stored cases and `count` random ones; print the first failure."""
    module = module_of(name)
    random_ones = itertools.islice(cases_of(module, seed), count)
    for case in itertools.chain((case for _, case in corpus(name)), random_ones):
        why = fails(module, case)
        if why is not None:
            report(name, [shrink(module, Found(case, why), 20.0)], write=False)
            return FOUND
    return 0


def note(log: Any, entry: dict[str, Any]) -> None:
    """Replace the contents of the journal."""
    log.seek(0)
    log.write(json.dumps(entry))
    log.truncate()
    log.flush()


def child(*arguments: str, output: int | None = None) -> subprocess.Popen[bytes]:
    """Start this file in another process."""
    paths = [str(Path(__file__).parent.parent), os.environ.get("PYTHONPATH", "")]
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, paths)))
    command = [sys.executable, "-m", "fuzz.driver", *arguments]
    return subprocess.Popen(command, env=environment, start_new_session=True, stdout=output)


class Use(NamedTuple):
    """The activity of the processes of a session."""

    #: The computing time of the processes in seconds.
    seconds: float
    #: True if a thread of the processes is running or runnable.
    awake: bool


def use_of(session: int) -> Use | None:
    """Return the activity of the processes of a session, or None if the system hides them."""
    ticks, awake, shown = 0, False, False
    for process in Path("/proc").glob("[0-9]*"):
        try:
            fields = (process / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) != session:
                continue
            states = [
                stat.read_text().rpartition(")")[2].split()[0]
                for stat in process.glob("task/*/stat")
            ]
        except (OSError, IndexError):
            continue  # The process has just ended.
        shown = True
        ticks += sum(map(int, fields[11:15]))
        awake |= any(state in "RD" for state in states)
    return Use(ticks / os.sysconf("SC_CLK_TCK"), awake) if shown else None


class Watch:
    """Distinguishes a case that hangs from a case that other processes slow down.

    A case hangs if it has computed for long, or if it was idle for long without a thread that waits
    for a processor. If the system hides the activity, only the elapsed time counts.
    """

    def __init__(self, session: int) -> None:
        self.session = session
        self.begin()

    def begin(self) -> None:
        """Record the start of a case."""
        self.began = self.before = time.monotonic()
        use = use_of(self.session)
        self.start = self.computed = use.seconds if use else 0.0
        self.asleep = 0.0

    def verdict(self) -> str | None:
        """Return the reason why the case counts as hanging, or None. Call it every second."""
        now, use = time.monotonic(), use_of(self.session)
        passed, self.before = now - self.before, now
        computed = use.seconds - self.computed if use else passed
        if use:
            self.computed = use.seconds
        if not use or (not use.awake and computed < passed / 50):
            self.asleep += passed
        if use and use.seconds - self.start > PATIENCE:
            return f"no end after {use.seconds - self.start:.0f} seconds of computing"
        if self.asleep > PATIENCE:
            return f"nothing happens for {self.asleep:.0f} seconds"
        if now - self.began > PATIENCE * LOAD:
            return f"no end after {now - self.began:.0f} seconds"
        return None


def stacks_beside(journal: Path) -> Path:
    """Return the file to which the process of a journal writes its stacks."""
    return journal.with_suffix(".stacks")


def stacks_of(journal: Path) -> str:
    """Return the stacks that a process has written, as the end of a sentence."""
    path = stacks_beside(journal)
    text = path.read_text(errors="replace").strip() if path.exists() else ""
    return f"\n{text}" if text else ""


def ask_for_stacks(process: subprocess.Popen[bytes], journal: Path) -> None:
    """Make a process write its stacks, and wait for the file."""
    path = stacks_beside(journal)
    os.kill(process.pid, signal.SIGUSR1)
    for _ in range(50):
        time.sleep(0.1)
        if path.exists() and path.stat().st_size:
            break
    # Threads write their stacks with a short delay.
    time.sleep(0.2)


def wait(process: subprocess.Popen[bytes], journal: Path) -> str | None:
    """Wait for a process; return how it was terminated, and its last stacks."""
    seen, watch = "", Watch(process.pid)
    while True:
        try:
            process.wait(1.0)
        except subprocess.TimeoutExpired:
            text = journal.read_text() if journal.exists() else ""
            if text != seen:
                seen = text
                watch.begin()
            why = watch.verdict()
            if why is not None:
                ask_for_stacks(process, journal)
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return f"hangs: {why}{stacks_of(journal)}"
            continue
        if process.returncode < 0:
            name = signal.Signals(-process.returncode).name
            return f"ends the process by {name}{stacks_of(journal)}"
        if process.returncode in (0, FOUND):
            return None
        return f"exit status {process.returncode}{stacks_of(journal)}"


def entry_of(journal: Path) -> dict[str, Any]:
    """Return the last entry of a journal, even if its process was killed during a write."""
    text = journal.read_text() if journal.exists() else ""
    entry: dict[str, Any] = json.JSONDecoder().raw_decode(text)[0] if text else {}
    return entry


def shrink_outside(name: str, found: Found) -> Found:
    """Shrink a case that ends the process, with a separate process for each smaller case."""
    module = module_of(name)
    tries = 0
    progress = True
    while progress and tries < TRIES:
        progress = False
        for case in module.smaller(found.case):
            tries += 1
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "case.json"
                path.write_text(json.dumps(case))
                ended = wait(child("try", name, str(path)), path)
            if ended is not None:
                found, progress = Found(case, ended), True
                break
            if tries >= TRIES:
                break
    return found


def fuzz(name: str, seed: int, seconds: float) -> tuple[Counts, list[Found]]:
    """Run a fuzzer in processes for some seconds; return the counts and the failures."""
    end = time.monotonic() + seconds
    start = cases = inputs = 0
    found: list[Found] = []
    while (left := end - time.monotonic()) > 0 and len(found) < 5:
        with tempfile.TemporaryDirectory() as folder:
            journal = Path(folder) / "journal.json"
            process = child("work", name, str(seed), str(start), str(left), str(journal))
            ended = wait(process, journal)
            entry = entry_of(journal)
        if not entry:
            found.append(Found(None, f"before the first case: {ended or 'ends without a word'}"))
            break
        cases += entry["number"] + 1 - start
        inputs += entry["inputs"]
        start = entry["number"] + 1
        if ended is not None:
            found.append(shrink_outside(name, Found(entry["case"], ended)))
        elif "why" in entry:
            found.append(Found(entry["case"], entry["why"]))
    return Counts(cases, inputs), found


def report(name: str, found: Iterable[Found], write: bool) -> None:
    module = module_of(name)
    shown = getattr(module, "show", lambda case: json.dumps(case, indent=1))
    for case, why in found:
        print(f"\n== {name} found ==\n{'' if case is None else shown(case)}\n-- {why}")
        if write and case is not None:
            print(f"kept in {keep(name, case)}")


def main(names: Iterable[str] = FUZZERS) -> None:
    """Run fuzzers by the command line."""
    parser = argparse.ArgumentParser(description="Try programs, bytes and arguments at random.")
    parser.add_argument("--seconds", type=float, default=60.0, help="for all fuzzers together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", action="store_true", help="write what is found to the corpus")
    options = parser.parse_args()
    names = tuple(names)
    bad = 0
    for name in names:
        module = module_of(name)
        for path, case in corpus(name):
            why = fails(module, case)
            if why is not None:
                print(f"{path}: {why}")
                bad += 1
        counts, found = fuzz(name, options.seed, options.seconds / len(names))
        print(
            f"{name:>14}: {counts.cases:>9,} cases, {counts.inputs:>10,} inputs, "
            f"{len(found)} found",
            flush=True,
        )
        report(name, found, options.keep)
        bad += len(found)
    raise SystemExit(1 if bad else 0)


def show_stacks(journal: Path | None) -> None:
    """Make this process write its stacks next to its journal on a crash or on a signal."""
    if journal is None:
        faulthandler.enable()
        return
    # The file stays open until the process ends.
    file = os.open(stacks_beside(journal), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    faulthandler.enable(file)
    faulthandler.register(signal.SIGUSR1, file)


def command(what: str, name: str, *arguments: str) -> int:
    """Run the command of `child`."""
    show_stacks(None if what == "some" else Path(arguments[-1]))
    limit = getattr(module_of(name), "ADDRESS_SPACE", None)
    if limit is not None:
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    if what == "work":
        seed, start, seconds, journal = arguments
        return work(name, int(seed), int(start), float(seconds), Path(journal))
    if what == "some":
        seed, count = arguments
        return some(name, int(seed), int(count))
    (path,) = arguments
    fails(module_of(name), json.loads(Path(path).read_text()))
    return 0


if __name__ == "__main__":
    # Import this module under the name that the fuzzers use.
    from fuzz import driver  # noqa: PLW0406

    raise SystemExit(driver.command(*sys.argv[1:]))
