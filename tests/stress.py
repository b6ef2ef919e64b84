"""Run threads that trace, compile and call shared and separate functions.

Run by ``make stress``; ``python tests/stress.py --seconds 10 --threads 4`` is shorter. Results are
checked, hooks count their calls, and streams stay open. The script fails if a result is wrong, if a
thread makes no progress, or if memory keeps growing.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import os
import random
import sys
import threading
import time
import traceback

import nxla as nx

#: A thread without progress for this time is stuck.
STUCK_SECONDS = 120

#: The allowed growth of memory while caches fill.
ALLOWED_GROWTH = 192 << 20


def shared(x):
    """The function that all threads share."""
    return nx.sum(nx.sin(x) ** 2 + nx.cos(x) ** 2)


def loop_with_branch(n, x):
    """A loop with a conditional in its body."""
    return nx.fori(0, n, lambda i, s: nx.cond(i % 2 == 0, lambda: s + i, lambda: s * 1.0), x)


class Worker:
    """A thread and the counts of its calls."""

    def __init__(self, number: int, compilers: list[str], until: float) -> None:
        self.random = random.Random(number)
        self.compilers = compilers
        self.until = until
        self.rounds = 0
        self.doing = "nothing"
        self.failure: str | None = None
        self.last = time.monotonic()
        self.streams = {
            name: nx.stream(lambda x, s: (s, s + x), nx.template((), nx.int32), 0, compiler=name)
            for name in compilers
        }
        self.sums = dict.fromkeys(compilers, 0)
        self.thread = threading.Thread(target=self.run, name=f"worker {number}", daemon=True)

    def run(self) -> None:
        """Run the tasks alternately."""
        tasks = [
            self.call_shared, self.call_new, self.loops, self.hooks, self.gradients, self.stream,
            self.nested, self.failing,
        ]  # fmt: skip
        try:
            while time.monotonic() < self.until:
                task = self.random.choice(tasks)
                compiler = self.random.choice(self.compilers)
                self.doing = f"{task.__name__} on {compiler}"
                task(compiler)
                self.rounds += 1
                self.last = time.monotonic()
            for name, stream in self.streams.items():
                self.doing = f"end of the stream on {name}"
                expect(stream.done().item(), self.sums[name])
            self.doing = "nothing"
        except BaseException:
            self.failure = traceback.format_exc()

    def call_shared(self, compiler: str) -> None:
        """Call the shared function."""
        size = self.random.randrange(1, 9)
        expect(SHARED[compiler](nx.ones((size,))).item(), float(size))

    def call_new(self, compiler: str) -> None:
        """Trace a new function, which is compiled unless the cache contains its program."""
        factor = self.random.randrange(40)
        f = nx.jit(lambda x: x * factor + 1, compiler=compiler)
        expect(f(3).item(), 3 * factor + 1)

    def loops(self, compiler: str) -> None:
        """Run a loop of a few iterations."""
        n = self.random.randrange(20)
        expect(LOOP[compiler](n, 0.0).item(), float(sum(range(0, n, 2))))

    def hooks(self, compiler: str) -> None:
        """Run a loop with a hook, and count its calls."""
        n, seen = self.random.randrange(1, 30), []
        callback = lambda v: seen.append(v.item())  # noqa: E731
        f = nx.jit(
            lambda n: nx.fori(0, n, lambda i, s: nx.hook(s + 1, callback), 0), compiler=compiler
        )
        expect(f(n).item(), n)
        expect(seen, list(range(1, n + 1)))

    def nested(self, compiler: str) -> None:
        """Run a program in a hook."""
        seen = []
        callback = lambda v: seen.append(round(SHARED[compiler](nx.ones((3,)) * v).item(), 3))  # noqa: E731
        f = nx.jit(lambda x: nx.hook(nx.hook(x, callback) + 1, callback), compiler=compiler)
        expect(f(1.0).item(), 2.0)
        expect(seen, [3.0, 3.0])

    def failing(self, compiler: str) -> None:
        """Raise in a hook."""

        def callback(value):
            raise KeyError(threading.get_ident())

        try:
            nx.jit(lambda x: nx.hook(x - 1, callback), compiler=compiler)(1.0)
        except KeyError as error:
            expect(error.args, (threading.get_ident(),))
        else:
            raise AssertionError("the hook's exception was not raised")

    def gradients(self, compiler: str) -> None:
        """Compute a gradient."""
        x = self.random.randrange(1, 5)
        expect(GRADIENT[compiler](float(x)).item(), 3.0 * x * x)

    def stream(self, compiler: str) -> None:
        """Send chunks to the open stream."""
        stream = self.streams[compiler]
        chunks = [self.random.randrange(10) for _ in range(5)]
        for chunk in chunks:
            stream.send(chunk)
        for chunk in chunks:
            expect(stream.recv().item(), self.sums[compiler])
            self.sums[compiler] += chunk


def expect(found: object, expected: object) -> None:
    """Check a result; the order of float operations may change it slightly."""
    if isinstance(found, float) and isinstance(expected, float):
        equal = abs(found - expected) <= 1e-4 * max(1.0, abs(expected))
    else:
        equal = found == expected
    if not equal:
        raise AssertionError(f"found {found!r}, expected {expected!r}")


def memory() -> int:
    """Return the resident memory of the process in bytes."""
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def available() -> list[str]:
    """Return the compilers that work here."""
    try:
        nx.jit(lambda x: x + 1, compiler="xla")(1.0)
    except nx.DeviceError as error:
        sys.stdout.write(f"without XLA: {error}\n")
        return ["evaluator"]
    return ["evaluator", "xla", "auto"]


SHARED: dict[str, nx.Function] = {}
LOOP: dict[str, nx.Function] = {}
GRADIENT: dict[str, nx.Function] = {}


def main() -> int:
    """Run the threads, and check their progress and the memory."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--threads", type=int, default=8)
    arguments = parser.parse_args()
    faulthandler.enable()
    compilers = available()
    for name in compilers:
        SHARED[name] = nx.jit(shared, compiler=name)
        LOOP[name] = nx.jit(loop_with_branch, compiler=name)
        GRADIENT[name] = nx.jit(nx.grad(lambda x: x * x * x), compiler=name)
    start = time.monotonic()
    until = start + arguments.seconds
    workers = [Worker(number, compilers, until) for number in range(arguments.threads)]
    for worker in workers:
        worker.thread.start()
    # All programs that are compiled once exist after a quarter of the time.
    initial_memory: int | None = None
    while any(worker.thread.is_alive() for worker in workers):
        time.sleep(0.2)
        now = time.monotonic()
        if initial_memory is None and now - start > arguments.seconds / 4:
            initial_memory = memory()
        for worker in workers:
            if worker.thread.is_alive() and now - worker.last > STUCK_SECONDS:
                sys.stdout.write(f"{worker.thread.name} is stuck: {worker.doing}\n")
                faulthandler.dump_traceback(all_threads=True)
                return 1
    gc.collect()
    final_memory = memory()
    initial_memory = final_memory if initial_memory is None else initial_memory
    failures = [worker.failure for worker in workers if worker.failure]
    for failure in failures:
        sys.stdout.write(failure)
    rounds = sum(worker.rounds for worker in workers)
    growth = final_memory - initial_memory
    sys.stdout.write(
        f"{arguments.threads} threads, {time.monotonic() - start:.0f} s, {rounds} tasks, "
        f"{len(failures)} failures; memory {initial_memory >> 20} MiB at first, "
        f"{final_memory >> 20} MiB at the end; "
        f"{nx.cache_report()}\n"
    )
    return 1 if failures or growth > ALLOWED_GROWTH else 0


if __name__ == "__main__":
    sys.exit(main())
