"""Run threads, interrupts, evictions, child processes and open streams together for an hour.

Run by ``make soak MINUTES=60``. Eight threads run the tasks of `stress`. Meanwhile the main thread
interrupts its calls, forks children, starts interpreters that exit with open streams, and clears
the caches. After a warm-up, memory, memory maps, threads and file descriptors must stay constant;
the script prints them about every minute.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import random
import signal
import subprocess
import sys
import threading
import time
from typing import NamedTuple

import nxla as nx
import stress


class Usage(NamedTuple):
    """The resources that the process holds."""

    megabytes: int
    maps: int
    threads: int
    descriptors: int

    @staticmethod
    def now() -> Usage:
        """Return the resources of this process."""
        with open("/proc/self/maps", encoding="ascii") as maps:
            lines = sum(1 for _ in maps)
        threads, descriptors = os.listdir("/proc/self/task"), os.listdir("/proc/self/fd")
        return Usage(stress.memory() >> 20, lines, len(threads), len(descriptors))


#: The allowed growth between the second and the last quarter, for allocators and caches.
SLACK = Usage(256, 12_000, 16, 16)

EXITS = """
import sys, time
import nxla as nx
step = lambda x, s: (nx.hook(s, lambda _: time.sleep(0.02)), s + x)
stream = nx.stream(step, nx.template((), nx.int32), 0, compiler=sys.argv[1])
for i in range(20):
    stream.send(i)
sys.exit(3)
"""


#: A trip count that takes XLA some seconds. XLA cannot cancel a loop: an abandoned loop runs to its
#: end, and its client is available again after that.
TRIPS = 200_000_000


def interrupt_loop(compiler: str) -> None:
    """Interrupt a loop by Ctrl-C; on the evaluator the loop is endless."""

    def continues(state: tuple[nx.Tensor, nx.Tensor]) -> nx.Tensor:
        return state[0] >= 0 if compiler == "evaluator" else state[0] < TRIPS

    def step(state: tuple[nx.Tensor, nx.Tensor]) -> tuple[nx.Tensor, nx.Tensor]:
        trips, x = state
        return (trips + 1) % (TRIPS + 1), nx.sin(x) + 1.0

    loop = nx.jit(lambda x: nx.while_loop(continues, step, (0, x)), compiler=compiler)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        nx.tree.map(lambda x: x.block_until_ready(), loop(1.0))
    except KeyboardInterrupt:
        return
    raise AssertionError("the loop was not interrupted")


def run_in_fork(_: str) -> None:
    """Call a compiled function in a forked child."""
    x = nx.ones((1 << 17,))
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if nx.sum(nx.sin(x) * 0 + 1).item() == 1 << 17 else 1)
        finally:
            os._exit(2)
    end = time.monotonic() + 60
    while time.monotonic() < end:
        finished, status = os.waitpid(child, os.WNOHANG)
        if finished:
            stress.expect(os.waitstatus_to_exitcode(status), 0)
            return
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise AssertionError("the forked child does not terminate")


def exit_with_stream(compiler: str) -> None:
    """Exit an interpreter while a stream computes."""
    done = subprocess.run([sys.executable, "-c", EXITS, compiler], timeout=120, check=False)
    stress.expect(done.returncode, 3)


def evict_cache(compiler: str) -> None:
    """Clear the cache of executables."""
    nx.set_cache_limit(0)
    nx.set_cache_limit(512 << 20)
    stress.expect(nx.jit(lambda x: x + 2, compiler=compiler)(1.0).item(), 3.0)


def run_large_program(compiler: str) -> None:
    """Run a program with a few megabytes of data."""
    x = nx.ones((512, 512))
    stress.expect(nx.jit(lambda x: nx.sum(nx.matmul(x, x)), compiler=compiler)(x).item(), 512.0**3)


def request_too_much(_: str) -> None:
    """Request too much memory, and read damaged data."""
    for attempt in (lambda: nx.zeros((1 << 50,)) + 1, lambda: nx.deserialize(b"nxla" * 9)):
        try:
            attempt()
        except (nx.NxlaError, MemoryError):
            continue
        raise AssertionError("an invalid request succeeded")


TASKS = (
    interrupt_loop,
    run_in_fork,
    exit_with_stream,
    evict_cache,
    run_large_program,
    request_too_much,
)


def main() -> int:
    """Run the threads, and alternate between the tasks of the main thread."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    faulthandler.enable()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    rng = random.Random(arguments.seed)
    compilers = stress.available()
    for name in compilers:
        stress.SHARED[name] = nx.jit(stress.shared, compiler=name)
        stress.LOOP[name] = nx.jit(stress.loop_with_branch, compiler=name)
        stress.GRADIENT[name] = nx.jit(nx.grad(lambda x: x * x * x), compiler=name)
    start = time.monotonic()
    seconds = 60 * arguments.minutes
    workers = [stress.Worker(n, compilers, start + seconds) for n in range(arguments.threads)]
    for worker in workers:
        worker.thread.start()
    done = dict.fromkeys((task.__name__ for task in TASKS), 0)
    last_maximum: Usage | None = None
    first_maximum: Usage | None = None
    last_print = start
    while any(worker.thread.is_alive() for worker in workers):
        now = time.monotonic()
        if now - start < seconds:
            task = rng.choice(TASKS)
            task(rng.choice(compilers))
            done[task.__name__] += 1
        else:
            time.sleep(0.2)
        usage = Usage.now()
        # Memory fluctuates with compilations, so the maximum of a period is compared with the
        # maximum of another period.
        if seconds / 4 < now - start <= seconds / 2:
            first_maximum = Usage(*map(max, usage, first_maximum or usage))
        elif now - start > 3 * seconds / 4:
            last_maximum = Usage(*map(max, usage, last_maximum or usage))
        if now - last_print > min(60, seconds / 5):
            last_print = now
            sys.stdout.write(f"{now - start:6.0f} s  {usage}\n")
            sys.stdout.flush()
        for worker in workers:
            if worker.thread.is_alive() and now - worker.last > stress.STUCK_SECONDS:
                sys.stdout.write(f"{worker.thread.name} is stuck: {worker.doing}\n")
                faulthandler.dump_traceback(all_threads=True)
                return 1
    failures = [worker.failure for worker in workers if worker.failure]
    sys.stdout.write("".join(failures))
    rounds = sum(worker.rounds for worker in workers)
    sys.stdout.write(f"{rounds} tasks of threads, {done}; {len(failures)} failures\n")
    sys.stdout.write(f"at most {first_maximum}\nthen    {last_maximum}\n")
    growth = (
        first_maximum
        and last_maximum
        and any(
            high > low + slack
            for low, high, slack in zip(first_maximum, last_maximum, SLACK, strict=True)
        )
    )
    return 1 if failures or growth else 0


if __name__ == "__main__":
    sys.exit(main())
