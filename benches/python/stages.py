"""Time stages: compilation, execution on a cluster and on threads, and splitting.

Compile times are measured in separate processes without compiled programs. Run it with ``make
bench`` or ``python benches/python/stages.py [WORD…]``, which selects the lines whose name contains
a word.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from processes import figures_of

import nxla as nx

CHAIN = 2_000
NODES, BOUNDARIES = 1_000_000, 10_000


def seconds(work, rounds=1):
    """Return the best time of some rounds."""
    found = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return min(found)


def after_every(count, op):
    """Return a decision that cuts after every `count` operations of a kind."""
    seen = iter(range(10**9))
    return lambda node: "after" if node.op == op and next(seen) % count == count - 1 else "none"


# --- compilation, in a separate process ---


def chain(x):
    """A chain of equal steps."""
    for _ in range(CHAIN // 2):
        x = nx.sin(x) * 1.01 + 0.1
    return x


def different_steps(x):
    """A chain of different steps."""
    for number in range(CHAIN // 2):
        x = nx.sin(x) * (1.0 + number / 1e4) + 0.1
    return x


def minilm_step():
    """A training step of MiniLM, cut at its widest products."""
    from libraries import library
    from zoo import MODELS

    model = MODELS["MiniLM, training"](library("xla"))
    return model.step, model.arguments, after_every(6, "dot")


MODELS = {
    "a chain": lambda: (chain, (np.ones(64, np.float32),), after_every(CHAIN // 32, "sin")),
    "a chain without repetition": lambda: (
        different_steps,
        (np.ones(64, np.float32),),
        after_every(CHAIN // 32, "sin"),
    ),
    "MiniLM, training": minilm_step,
}


def zero_arguments(stage):
    """Return zeros as arguments for a stage."""
    return [nx.zeros(shape, dtype=dtype) for shape, dtype in stage.expr.inputs]


def compile_time(name, mode):
    """Return the compile time of XLA for a model, or for its stages on some threads."""
    function, arguments, decide = MODELS[name]()
    expression = nx.debug_expr(function)(*arguments)
    nx.jit(lambda x: x + 1, compiler="xla")(1.0)  # Load the plugin.
    if mode == "whole":
        return {"seconds": seconds(lambda: expression.run(*arguments, compiler="xla"))}
    stages = nx.graph.split(expression, decide)
    threads = int(mode)
    # Equal stages are compiled once, as by the executable cache.
    distinct = list({stage.digest: stage for stage in stages.stages}.values())
    work = [(stage, zero_arguments(stage)) for stage in distinct]

    def build():
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda item: item[0].run(*item[1], compiler="xla"), work))

    return {"seconds": seconds(build), "stages": len(stages), "programs": len(distinct)}


def compiling():
    """Print the time of compilation, whole and in stages."""
    print(f"{'compiling for XLA':<32}{'whole':>9}{'1 thread':>10}{'2 threads':>11}{'stages':>9}")
    for name in MODELS:
        found = {}
        for mode in ("whole", "1", "2"):
            found[mode] = figures_of(__file__, "--compile", name, mode)
        times = [found[mode]["seconds"] for mode in ("whole", "1", "2")]
        stages = f"{found['1']['stages']} of {found['1']['programs']}"
        print(f"{name:<32}{times[0]:>7.2f} s{times[1]:>8.2f} s{times[2]:>9.2f} s{stages:>9}")


# --- on a cluster ---


def cluster():
    """Print the overhead of a stage on Dask, compared with a plain task of Dask."""
    from distributed import Client

    count = 200

    def increment(x):
        return x + 1

    def tasks():
        future = client.submit(increment, 0, pure=False)
        for _ in range(count - 1):
            future = client.submit(increment, future, pure=False)
        return future.result()

    def small(x):
        for _ in range(count):
            x = nx.sin(x)
        return x

    expression = nx.debug_expr(small)(1.0)
    stages = nx.graph.split(expression, lambda node: "after" if node.op == "sin" else "none")
    with Client(n_workers=1, threads_per_worker=1, dashboard_address=":0") as client:
        tasks()
        nx.graph.run(stages, 1.0, executor=client)
        dask_times, stage_times = [], []
        for _ in range(3):
            dask_times.append(seconds(tasks) / count)
            stage_times.append(
                seconds(lambda: nx.graph.run(stages, 1.0, executor=client)) / len(stages.stages)
            )
    print(
        f"a chain of {count} on Dask: {min(stage_times) * 1e3:.2f} ms a stage, "
        f"{min(dask_times) * 1e3:.2f} ms a task of Dask; "
        f"{min(stage_times) / min(dask_times):.2f} times as much"
    )


# --- concurrent stages ---


def branches():
    """Print the speedup of two branches on two threads over one thread."""

    def branch(x):
        return nx.fori(0, 200_000, lambda _, s: nx.sin(s) + 1.0, x)

    def both(x, y):
        return nx.sqrt(branch(x)), nx.sqrt(branch(y))

    expression = nx.debug_expr(both)(0.5, 0.25)
    # Each branch is a separate stage; the last stage contains the roots.
    stages = nx.graph.split(expression, lambda node: "before" if node.op == "sqrt" else "none")
    levels = [len(level) for level in stages.levels]
    if max(levels) != 2:
        raise SystemExit(f"expected two branches in one level, got {levels}")
    branch_stages = [stage for stage in stages.stages if not stage.dependencies]
    first, second = nx.tensor(0.5), nx.tensor(0.25)

    def run_sequentially():
        for stage, x in zip(branch_stages, (first, second), strict=True):
            stage.run(x, compiler="evaluator")

    def run_concurrently():
        nx.graph.run(stages, first, second, compiler="evaluator")

    run_sequentially()
    shares = [seconds(run_sequentially) / seconds(run_concurrently) for _ in range(5)]
    share = statistics.median(shares)
    print(f"two branches on two threads: {share:.2f} times as fast as one after the other")


# --- predictions ---

#: The numbers of iterations of the loops in the branches.
LOOPS = (400_000, 600_000, 800_000, 1_000_000)


def simulation():
    """Print the error of predicted times for threads and for workers of Dask."""
    from distributed import Client

    def branch(x, count):
        return nx.fori(0, count, lambda _, s: nx.sin(s) + 1.0, x)

    def all_of_them(x):
        return sum(nx.sqrt(branch(x * number, count)) for number, count in enumerate(LOOPS, 1))

    expression = nx.debug_expr(all_of_them)(0.5)
    stages = nx.graph.split(expression, lambda node: "before" if node.op == "sqrt" else "none")
    times = stages.measure(0.5, repeat=3, compiler="evaluator")
    print(f"a run of {len(stages)} stages, {sum(times):.2f} s of work")
    for workers in (1, 2):
        predicted = stages.simulate(workers, seconds=times).makespan
        found = {}
        with ThreadPoolExecutor(workers) as pool:
            found["threads"] = timed_run(stages, pool)
        with Client(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as client:
            found["Dask"] = timed_run(stages, client)
        for where, real in found.items():
            print(
                f"  {workers} of {where:<8} predicted {predicted:.2f} s, took {real:.2f} s: "
                f"{predicted / real - 1:+.0%}"
            )


def timed_run(stages, executor):
    """Return the time of a run after data and programs have been sent."""

    def run():
        nx.graph.run(stages, 0.5, executor=executor, compiler="evaluator")

    run()
    return seconds(run, 3)


# --- splitting ---


def splitting():
    """Print the time to cut a large graph in many places."""

    def large(x):
        for _ in range(NODES):
            x = nx.sin(x)
        return x

    expression = nx.debug_expr(large)(1.0)
    step = math.ceil(NODES / BOUNDARIES)
    answers = iter([*(["none"] * (step - 1)), "after"] * (BOUNDARIES + 1))
    stages = []
    time_ = seconds(lambda: stages.append(nx.graph.split(expression, lambda _: next(answers))))
    nodes = len(expression.nodes)
    print(
        f"{nodes:,} nodes cut in {len(stages[0].stages) - 1:,} places: {time_:.2f} s, including "
        f"{seconds(lambda: call_decision(nodes)):.2f} s for calls of a Python function"
    )


def call_decision(count):
    """Call a Python function as many times as `split` calls its decision function."""
    answers = iter(["none"] * count)
    for _ in range(count):
        next(answers)


LINES = {
    "compiling": compiling,
    "cluster": cluster,
    "branches": branches,
    "simulation": simulation,
    "splitting": splitting,
}


def main():
    """Print the lines on the command line, or all lines."""
    words = sys.argv[1:]
    if words[:1] == ["--compile"]:
        print(json.dumps(compile_time(*words[1:])))
        return
    for name, line in LINES.items():
        if not words or any(word in name for word in words):
            line()


if __name__ == "__main__":
    main()
