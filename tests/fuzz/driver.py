"""Running a fuzzer: the loop, the process around it, shrinking, and the corpus."""

from __future__ import annotations

import argparse
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

#: Seconds after which one case counts as hanging, on a machine that does nothing else.
PATIENCE = 120
#: How many smaller cases are tried in processes of their own.
TRIES = 80


#: The exit status of a process that has found something.
FOUND = 3


class Failure(Exception):
    """Something that should hold does not."""


class Found(NamedTuple):
    """A case that fails, and how."""

    case: Any
    why: str


def module_of(name: str) -> ModuleType:
    return importlib.import_module(f"fuzz.{name}")


def corpus(name: str) -> Iterator[tuple[Path, Any]]:
    """Give the cases that are kept for a fuzzer."""
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
    """Return what fails for a case, and None where all holds."""
    try:
        module.check(case)
    except Failure as failed:
        return str(failed)
    return None


def shrink(module: ModuleType, found: Found, seconds: float = 30.0) -> Found:
    """Return the smallest case that still fails, of those that a walk downwards meets."""
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
    """How much was tried."""

    cases: int
    inputs: int


def cases_of(module: ModuleType, seed: int, start: int = 0) -> Iterator[Any]:
    """Give cases without end; each depends on the seed and its number alone."""
    number = start
    while True:
        yield module.generate(random.Random(f"{module.__name__} {seed} {number}"))
        number += 1


def work(name: str, seed: int, start: int, seconds: float, journal: Path) -> int:
    """Try cases until the time is up or one fails; the journal says which one is at work."""
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
    """Try so many cases, and all that are kept; show the first that fails."""
    module = module_of(name)
    random_ones = itertools.islice(cases_of(module, seed), count)
    for case in itertools.chain((case for _, case in corpus(name)), random_ones):
        why = fails(module, case)
        if why is not None:
            report(name, [shrink(module, Found(case, why), 20.0)], write=False)
            return FOUND
    return 0


def note(log: Any, entry: dict[str, Any]) -> None:
    """Replace what the journal says."""
    log.seek(0)
    log.write(json.dumps(entry))
    log.truncate()
    log.flush()


def child(*arguments: str, output: int | None = None) -> subprocess.Popen[bytes]:
    """Start this file in another process."""
    environment = dict(os.environ, PYTHONPATH=str(Path(__file__).parent.parent))
    command = [sys.executable, "-m", "fuzz.driver", *arguments]
    return subprocess.Popen(command, env=environment, start_new_session=True, stdout=output)


def wait(process: subprocess.Popen[bytes], journal: Path) -> str | None:
    """Wait for a process; say how it ended, if not by itself."""
    seen, since = "", time.monotonic()
    while True:
        try:
            process.wait(1.0)
        except subprocess.TimeoutExpired:
            text = journal.read_text() if journal.exists() else ""
            if text != seen:
                seen, since = text, time.monotonic()
            # Where others compute as well, everything takes longer.
            patience = PATIENCE * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
            if time.monotonic() - since > patience:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return f"hangs: no end after {patience:.0f} seconds"
            continue
        if process.returncode < 0:
            return f"ends the process by {signal.Signals(-process.returncode).name}"
        return None if process.returncode in (0, FOUND) else f"exit status {process.returncode}"


def shrink_outside(name: str, found: Found) -> Found:
    """As `shrink`, for a case that ends the process: each smaller one has a process of its own."""
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
    """Run a fuzzer for a while, in processes; return what was tried and what was found."""
    end = time.monotonic() + seconds
    start = cases = inputs = 0
    found: list[Found] = []
    while (left := end - time.monotonic()) > 0 and len(found) < 5:
        with tempfile.TemporaryDirectory() as folder:
            journal = Path(folder) / "journal.json"
            process = child("work", name, str(seed), str(start), str(left), str(journal))
            ended = wait(process, journal)
            entry = json.loads(journal.read_text() or "{}") if journal.exists() else {}
        if not entry:
            raise SystemExit(f"{name}: {ended or 'ended without a word'}")
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
        print(f"\n== {name} found ==\n{shown(case)}\n-- {why}")
        if write:
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


def command(what: str, name: str, *arguments: str) -> int:
    """Do what `child` was asked for."""
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
    # As the module that the fuzzers know.
    from fuzz import driver  # noqa: PLW0406

    raise SystemExit(driver.command(*sys.argv[1:]))
