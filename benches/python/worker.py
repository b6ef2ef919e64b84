"""Measure one library and print its figures as JSON, in seconds unless the name has another unit.

``__main__.py`` starts this script in a separate process, so that libraries share neither threads
nor caches nor an allocator.
"""

from __future__ import annotations

import gc
import json
import resource
import subprocess
import sys
import threading
import time

CHAIN = 1000
REPEATS = 5


def smallest(action, repeats=REPEATS):
    """The shortest time of an action, which returns the time of its measured part."""
    gc.collect()
    return min(action() for _ in range(repeats))


def per_call(call, count=500):
    """Seconds per call, as the best of many short series of calls."""

    def once():
        start = time.perf_counter()
        for _ in range(count):
            call()
        return (time.perf_counter() - start) / count

    call()
    return smallest(once, 40 if count > 10 else REPEATS)


def in_fresh_process(code):
    """The smallest of the figures that several new interpreters measure."""
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        for _ in range(REPEATS)
    ]
    return min(float(run.stdout.splitlines()[-1]) for run in runs)


def timed_import(statements):
    """Time code that runs in a new interpreter."""
    return (
        "import time\nstart = time.perf_counter()\n"
        f"{statements}\nprint(time.perf_counter() - start)"
    )


def chain(sin, length=CHAIN):
    """Return a new function of `length` operations, so that no cached trace is used."""

    def function(x):
        y = x
        for _ in range(length // 3):
            y = sin(y) * 1.5 + x
        return y

    return function


#: Force XLA, because `auto` would run small programs on the evaluator.
COMPILED = {"compiler": "xla"}


def measure_nxla():
    """The figures of nxla."""
    figures = {
        "import": in_fresh_process(timed_import("import nxla")),
        "import to first result": in_fresh_process(
            timed_import("import nxla as nx\nfloat(nx.sin(nx.tensor(1.0)))")
        ),
    }
    import numpy as np

    import nxla as nx

    x = nx.tensor(np.float32(0.5))

    def trace():
        traced = nx.debug_expr(chain(nx.sin))
        start = time.perf_counter()
        traced(x)
        return (time.perf_counter() - start) / CHAIN

    def trace_gradient():
        traced = nx.debug_expr(nx.grad(chain(nx.sin)))
        start = time.perf_counter()
        expression = traced(x)
        return (time.perf_counter() - start) / len(expression.nodes)

    figures["trace, per operation"] = smallest(trace, 20)
    figures["trace of a gradient, per operation"] = smallest(trace_gradient, 20)
    increment = nx.jit(lambda x: x + 1, **COMPILED)
    on_device = increment(x)
    figures["jitted x + 1"] = per_call(lambda: increment(on_device))
    many = nx.jit(lambda *args: tuple(arg + 1 for arg in args), **COMPILED)
    arguments = many(*[x] * 50)
    figures["jitted, 50 arguments to 50 results"] = per_call(lambda: many(*arguments), 50)
    total = nx.jit(lambda *args: sum(args), **COMPILED)
    hundred = [on_device] * 100
    figures["jitted, 100 arguments to 1 result"] = per_call(lambda: total(*hundred), 50)
    figures["two threads that call, against one"] = threads_against_one(
        lambda: increment(on_device)
    )
    figures["64 MB to the device and back, against copies"] = round_trip(nx, np)
    local = nx.jit(lambda x: x + 1, compiler="evaluator")
    figures["x + 1 on the host"] = per_call(lambda: local(x))
    figures.update(without_jit(nx, nx.full))
    matrix = nx.tensor(np.ones((1024, 1024), np.float32))
    product = nx.jit(lambda a: a @ a, compiler="xla")
    resident = product(matrix)
    figures["1024 x 1024 product"] = per_call(lambda: product(resident).block_until_ready(), 5)
    interpreted = nx.jit(lambda a: a @ a, compiler="evaluator")
    figures["1024 x 1024 product on the host"] = per_call(lambda: interpreted(matrix), 5)
    figures["an array of 4 MB as an argument, copies of it"] = argument_copies(nx, np)
    figures.update(long_chain(nx))
    return figures


def without_jit(xp, array):
    """The figures of single operations as they are typed, on data where the library has it.

    A loop over elements uses another index in each iteration.
    """
    one, square = array((), 0.5), array((256, 256), 1.0)
    indices = iter(range(1 << 30))
    wait = getattr(type(one), "block_until_ready", lambda result: result)
    return {
        "x + 1 as typed": per_call(lambda: wait(one + 1)),
        "x + 1 as typed, 256 x 256": per_call(lambda: wait(square + 1)),
        "sum of a row as typed": per_call(lambda: wait(xp.sum(square[7]))),
        "rows in a loop, as typed": per_call(lambda: wait(square[next(indices) % 256])),
    }


def threads_against_one(call, count=2000):
    """The time of a call by two threads relative to one thread; 0.5 is the optimum."""

    def calls():
        for _ in range(count):
            call()

    def once():
        start = time.perf_counter()
        calls()
        sequential = time.perf_counter() - start
        threads = [threading.Thread(target=calls) for _ in range(2)]
        start = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return (time.perf_counter() - start) / 2 / sequential

    return smallest(once)


def round_trip(nx, np):
    """The median time of 64 MB to a device and back, relative to two copies."""
    device = nx.jit(lambda x: x + 1, compiler="xla")(1.0).device
    batch = np.ones(1 << 24, np.float32)
    # Writable memory must be copied; read-only memory may be shared.
    ratios = []
    for _ in range(9):
        start = time.perf_counter()
        copied = batch.copy().copy()
        twice = time.perf_counter() - start
        start = time.perf_counter()
        on_device_batch = nx.device_put(batch, device).block_until_ready()
        back = np.array(on_device_batch)
        ratios.append((time.perf_counter() - start) / twice)
        del copied, on_device_batch, back
    return sorted(ratios)[len(ratios) // 2]


def argument_copies(nx, np):
    """Measure the extra cost of an array argument over a device tensor, relative to a copy.

    The three copies alternate, because the speed of memory varies over time, and the median of the
    ratios counts.
    """
    batch = np.ones((1024, 1024), np.float32)
    target = np.empty_like(batch)
    first = nx.jit(lambda x: x[0, 0] + 1, **COMPILED)
    resident = nx.jit(lambda x: x + 0, **COMPILED)(batch).block_until_ready()
    ratios = []
    for _ in range(20):
        copied = per_call(lambda: np.copyto(target, batch), 10)
        with_tensor = per_call(lambda: first(resident).block_until_ready(), 10)
        with_array = per_call(lambda: first(batch).block_until_ready(), 10)
        ratios.append((with_array - with_tensor) / copied)
    return sorted(ratios)[len(ratios) // 2]


def resident_bytes():
    """Return the memory that the process uses now."""
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()


def long_chain(nx):
    """Trace, print, differentiate, split, evaluate and drop a chain of two lengths."""

    def work(nodes):
        function = chain(nx.sin, nodes)
        x = nx.tensor(0.5)
        gc.collect()
        before, start = resident_bytes(), time.perf_counter()
        expression = nx.debug_expr(function)(x)
        retained = resident_bytes() - before
        expression.to_text(limit=20)
        gradient = nx.debug_expr(nx.grad(function))(x)
        count = iter(range(10 * nodes))
        stages = nx.graph.split(
            expression, lambda _: "after" if next(count) % 1000 == 999 else "none"
        )
        nx.graph.run(stages, x, compiler="evaluator")
        total = len(expression.nodes) + len(gradient.nodes)
        del expression, gradient, stages
        gc.collect()
        return (time.perf_counter() - start) / total, retained / nodes

    short = min(work(10_000)[0] for _ in range(3))
    long, retained = min(work(1_000_000) for _ in range(2))
    return {
        "chain of 1,000,000, all steps, per node": long,
        "chain, time per node at 1,000,000 against 10,000": long / short,
        "chain, bytes per node": retained,
    }


def measure_jax():
    """The figures of JAX."""
    figures = {
        "import": in_fresh_process(timed_import("import jax")),
        "import to first result": in_fresh_process(
            timed_import("import jax.numpy as jnp\nfloat(jnp.sin(jnp.float32(1.0)))")
        ),
    }
    import jax
    import jax.numpy as jnp

    x = jnp.float32(0.5)

    def trace():
        traced = jax.make_jaxpr(chain(jnp.sin))
        start = time.perf_counter()
        traced(x)
        return (time.perf_counter() - start) / CHAIN

    def trace_gradient():
        traced = jax.make_jaxpr(jax.grad(chain(jnp.sin)))
        start = time.perf_counter()
        jaxpr = traced(x)
        return (time.perf_counter() - start) / len(jaxpr.eqns)

    figures["trace, per operation"] = smallest(trace)
    figures["trace of a gradient, per operation"] = smallest(trace_gradient)
    increment = jax.jit(lambda x: x + 1)
    on_device = increment(x)
    figures["jitted x + 1"] = per_call(lambda: increment(on_device))
    many = jax.jit(lambda *args: tuple(arg + 1 for arg in args))
    arguments = many(*[x] * 50)
    figures["jitted, 50 arguments to 50 results"] = per_call(lambda: many(*arguments), 50)
    total = jax.jit(lambda *args: sum(args))
    hundred = [on_device] * 100
    figures["jitted, 100 arguments to 1 result"] = per_call(lambda: total(*hundred), 50)
    figures["two threads that call, against one"] = threads_against_one(
        lambda: increment(on_device)
    )
    figures.update(without_jit(jnp, jnp.full))
    matrix = jnp.ones((1024, 1024), jnp.float32)
    product = jax.jit(lambda a: a @ a)
    figures["1024 x 1024 product"] = per_call(lambda: product(matrix).block_until_ready(), 5)
    return figures


def measure_numpy():
    """The figures of numpy."""
    figures = {"import": in_fresh_process(timed_import("import numpy"))}
    first = timed_import("import numpy as np\nfloat(np.sin(np.float32(1.0)))")
    figures["import to first result"] = in_fresh_process(first)
    import numpy as np

    x = np.float32(0.5) * np.ones(())
    figures["x + 1 on the host"] = per_call(lambda: x + 1)
    figures.update(without_jit(np, lambda shape, value: np.full(shape, value, np.float32)))
    matrix = np.ones((1024, 1024), np.float32)
    figures["1024 x 1024 product on the host"] = per_call(lambda: matrix @ matrix, 5)
    return figures


MEASURES = {"nxla": measure_nxla, "jax": measure_jax, "numpy": measure_numpy}

if __name__ == "__main__":
    print(json.dumps(MEASURES[sys.argv[1]]()))
