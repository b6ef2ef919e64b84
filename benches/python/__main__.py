"""Compare nxla with other libraries, as a table of ratios.

Each task is written once, over the names that the Python Array API standard gives to functions, and
prepared for every engine. Then all engines run it in alternation, so that whatever else the machine
does hits them alike. Results are waited for before the clock stops. The figure is the median.

Run it with ``make bench``, or ``python benches/python [part of a task's name]``.
"""

import statistics
import sys
import time
from collections.abc import Callable

from engines import ENGINES, REFERENCE, Engine
from tasks import TASKS, Task

ROUNDS = 15
"""How often each engine has its turn."""

TURN_SECONDS = 0.05
"""About how long a turn lasts: short calls are repeated within it."""


def repetitions(call: Callable[[], object]) -> int:
    """Return how many calls fill a turn; this also warms up whatever compiles lazily."""
    call()
    start = time.perf_counter()
    call()
    return max(1, round(TURN_SECONDS / max(time.perf_counter() - start, 1e-9)))


def measure(task: Task, engines: list[Engine]) -> dict[str, float]:
    """Return the median seconds of a call for each engine that can do the task."""
    calls = {engine.name: task.prepare(engine) for engine in engines}
    able = {name: call for name, call in calls.items() if call is not None}
    counts = {name: repetitions(call) for name, call in able.items()}
    times: dict[str, list[float]] = {name: [] for name in able}
    for _ in range(ROUNDS):
        for name, call in able.items():
            start = time.perf_counter()
            for _ in range(counts[name]):
                call()
            times[name].append((time.perf_counter() - start) / counts[name])
    return {name: statistics.median(taken) for name, taken in times.items()}


def duration(seconds: float) -> str:
    """Return a time with a unit that suits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def row(task: Task, seconds: dict[str, float], engines: list[Engine]) -> str:
    """Return a line of the table: the reference's time, and how many times as fast others are."""
    reference = seconds[REFERENCE]
    cells = [f"{task.name:<34}", f"{duration(reference):>12}"]
    for engine in engines:
        if engine.name != REFERENCE:
            taken = seconds.get(engine.name)
            cells.append(f"{'—' if taken is None else f'{reference / taken:.2f}':>16}")
    return " ".join(cells)


def main() -> None:
    """Measure the tasks whose names contain the argument, or all of them."""
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    engines = [make() for make in ENGINES]
    others = [engine.name for engine in engines if engine.name != REFERENCE]
    head = [f"{'task':<34}", f"{REFERENCE:>12}", *(f"{name:>16}" for name in others)]
    print(" ".join(head))
    for task in TASKS:
        if wanted in task.name:
            print(row(task, measure(task, engines), engines), flush=True)
    print(f"\n{REFERENCE}: time of a call. Others: how many times as fast; above 1 is faster.")


if __name__ == "__main__":
    main()
