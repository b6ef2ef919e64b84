"""Time programs on XLA with and without the thresholds that nxla sets for glibc's allocator.

Both configurations run in separate processes, alternately, because the thresholds are set once for
a process. Each line has the milliseconds of a call, the least of the medians of the processes, and
the page faults of a call. Run it alone: ``python benches/python/allocator.py [WORD…]`` selects
the programs whose name contains a word.
"""

from __future__ import annotations

import json
import resource
import statistics
import sys
import time

import numpy as np
from processes import figures_of

import nxla as nx

ROUNDS = 3
CALLS = 40
#: The environment of each configuration.
CONFIGURATIONS = {
    "without": {"NXLA_MALLOC_THRESHOLDS": "0"},
    "thresholds": {"NXLA_MALLOC_THRESHOLDS": "1"},
}


def scalings():
    """Write eight scaled copies of 4 MiB. The results are dropped after each call."""
    return lambda x: [x * (i + 0.5) for i in range(8)], (np.ones((1024, 1024), np.float32),)


def softmax():
    """Normalize the rows of 8 MiB."""

    def normalize(x):
        e = nx.exp(x - nx.max(x, axis=1, keepdims=True))
        return e / nx.sum(e, axis=1, keepdims=True)

    return normalize, (np.ones((1024, 2048), np.float32),)


def gradient():
    """Differentiate a perceptron of two layers for a batch of 256."""

    def loss(w, v, x):
        return nx.sum(nx.tanh(nx.tanh(x @ w) @ v) ** 2)

    shapes = ((512, 1024), (1024, 512), (256, 512))
    arguments = tuple(np.full(shape, 0.01, np.float32) for shape in shapes)
    return nx.grad(loss, argnums=(0, 1)), arguments


PROGRAMS = {"scalings": scalings, "softmax": softmax, "gradient": gradient}


def measure(name):
    """Return the median of the seconds of some calls, and the page faults of a call."""
    function, arguments = PROGRAMS[name]()
    compiled = nx.jit(function, compiler="xla")
    arguments = [nx.device_put(x, nx.devices()[1]) for x in arguments]

    def call():
        start = time.perf_counter()
        for leaf in nx.tree.leaves(compiled(*arguments)):
            leaf.block_until_ready()
        return time.perf_counter() - start

    # glibc sets its thresholds according to the first blocks that a process frees.
    single = nx.jit(lambda x: x * 2.5, compiler="xla")
    for _ in range(CALLS):
        single(arguments[0]).block_until_ready()
    for _ in range(5):
        call()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    median = statistics.median(call() for _ in range(CALLS))
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    return median, faults // CALLS


def in_process(name, configuration):
    """Measure a program in a new process."""
    environment = CONFIGURATIONS[configuration]
    return figures_of(__file__, "--measure", name, environment=environment)


def main(words):
    """Print a line for each program."""
    print(f"{'program':12}" + "".join(f"{name:>26}" for name in CONFIGURATIONS))
    for name in PROGRAMS:
        if words and not any(word in name for word in words):
            continue
        best = {}
        for _ in range(ROUNDS):
            for configuration in CONFIGURATIONS:
                found = in_process(name, configuration)
                best[configuration] = min(best.get(configuration, found), found)
        figures = [f"{1e3 * best[key][0]:.2f} ms, {best[key][1]:,}" for key in CONFIGURATIONS]
        print(f"{name:12}" + "".join(f"{figure:>26}" for figure in figures))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure(sys.argv[2])))
    else:
        main(sys.argv[1:])
