"""Measure derivatives relative to their function, in nxla and JAX: nodes, tracing and step time.

For a transformer of 12 layers, a perceptron, a convolutional net and a scan of 1,000 steps: the
gradient, a ``jvp`` and a Hessian-vector product, in nodes and in time over the forward pass, and
the time of each trace. Then the gradient of a scan by each method to store residuals: nodes, time,
and the peak memory of the process above the memory for the loss alone. Each library and each method
runs in a separate process.

``make bench`` runs all benchmarks; ``python benches/python/derivatives.py [WORD…]`` selects the
models whose name contains a word.
"""

from __future__ import annotations

import functools
import json
import re
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
from libraries import least_time, library
from processes import figures_of
from zoo import attention_block, block_parameters, layer_norm, log_softmax, normal

LIBRARIES = ("xla", "evaluator", "jax")
SECONDS = 1.0

#: The maximum time of each derivative, relative to the forward pass.
TARGETS = {"gradient": 3.0, "jvp": 2.0}

METHODS = ("store", "recompute", "sqrt", "log", "auto")


def perceptron(lib):
    """Return the loss of three layers on a batch of 128, and its arguments."""
    random = np.random.default_rng(0)
    sizes = (784, 512, 512, 10)
    layers = [
        {"w": normal(random, a, b, scale=a**-0.5), "b": np.zeros(b, np.float32)}
        for a, b in pairwise(sizes)
    ]
    labels = np.eye(10, dtype=np.float32)[random.integers(0, 10, 128)]
    x = normal(random, 128, 784)

    def loss(layers, x, labels):
        for layer in layers[:-1]:
            x = lib.xp.tanh(x @ layer["w"] + layer["b"])
        scores = x @ layers[-1]["w"] + layers[-1]["b"]
        return -lib.xp.mean(lib.xp.sum(log_softmax(lib.xp, scores) * labels, axis=-1))

    return loss, (layers, x, labels)


def convolutions(lib):
    """Return the loss of two convolutions on 16 pictures of 32x32, and its arguments."""
    random = np.random.default_rng(0)
    parameters = {
        "k1": normal(random, 16, 3, 3, 3, scale=0.2),
        "k2": normal(random, 32, 16, 3, 3, scale=0.1),
        "w": normal(random, 32 * 32 * 32, 10, scale=0.01),
    }
    x = normal(random, 16, 3, 32, 32)

    def loss(parameters, x):
        x = lib.xp.tanh(lib.conv(x, parameters["k1"]))
        x = lib.xp.tanh(lib.conv(x, parameters["k2"]))
        scores = lib.xp.reshape(x, (16, -1)) @ parameters["w"]
        return -lib.xp.mean(log_softmax(lib.xp, scores)[:, 0])

    return loss, (parameters, x)


def transformer(lib):
    """Return the loss of 12 layers of 64 features on 64 positions, and its arguments."""
    random = np.random.default_rng(0)
    layers = [block_parameters(random, 64) for _ in range(12)]
    x = normal(random, 2, 64, 64)

    def loss(layers, x):
        for layer in layers:
            x = attention_block(lib, x, layer, 4)
        ones = np.ones(64, np.float32)
        return lib.xp.mean(layer_norm(lib.xp, x, ones, ones) ** 2)

    return loss, (layers, x)


def recurrence(lib, steps=1000, batch=16, **options):
    """Return the loss of a recurrent network on a batch of sequences, and its arguments."""
    random = np.random.default_rng(0)
    weights = {"h": normal(random, 64, 64, scale=0.1), "x": normal(random, 32, 64, scale=0.2)}
    x = normal(random, steps, batch, 32)

    def loss(weights, x):
        def step(h, row):
            h = lib.xp.tanh(h @ weights["h"] + row @ weights["x"])
            return h, lib.xp.mean(h * h)

        h, norms = lib.scan(step, np.zeros((batch, 64), np.float32), x, **options)
        return lib.xp.sum(norms) + lib.xp.mean(h)

    return loss, (weights, x)


MODELS = {
    "transformer, 12 layers": transformer,
    "perceptron": perceptron,
    "conv net": convolutions,
    "scan, 1,000 steps": recurrence,
}


def derivatives(name, loss, arguments):
    """Return the function and its derivatives for the first argument, with their arguments."""
    first, *rest = arguments
    if name == "jax":
        import jax

        grad, jvp = jax.grad, jax.jvp
    else:
        import nxla as nx

        grad, jvp = nx.grad, nx.jvp

    def directional_derivative(first, direction, *rest):
        return jvp(lambda first: loss(first, *rest), (first,), (direction,))[1]

    def hessian_product(first, direction, *rest):
        return jvp(lambda first: grad(loss)(first, *rest), (first,), (direction,))[1]

    with_direction = (first, first, *rest)
    return {
        "forward": (loss, arguments),
        "gradient": (grad(loss), arguments),
        "jvp": (directional_derivative, with_direction),
        "hvp": (hessian_product, with_direction),
    }


def nodes_of(name, function, arguments):
    """Return the number of nodes of a function, including its regions."""
    if name != "jax":
        import nxla as nx

        def count_nodes(expression):
            regions = [region for node in expression.nodes for region in node.regions]
            return len(expression.nodes) + sum(count_nodes(region) for region in regions)

        return count_nodes(nx.debug_expr(function)(*arguments))
    import jax

    def count(jaxpr):
        inner = 0
        for equation in jaxpr.eqns:
            inner += 1
            for value in jax.tree.leaves(
                list(equation.params.values()), is_leaf=lambda x: hasattr(x, "eqns")
            ):
                region = getattr(value, "jaxpr", value)
                inner += count(region) if hasattr(region, "eqns") else 0
        return inner

    return count(jax.make_jaxpr(function)(*arguments).jaxpr)


def tracing_time(name, function, arguments):
    """Return the least time that a function took to trace."""
    import jax

    import nxla as nx

    times = []
    for _ in range(10):
        start = time.perf_counter()
        if name == "jax":
            jax.clear_caches()
            start = time.perf_counter()
            jax.jit(functools.partial(function)).trace(*arguments)
        else:
            nx.debug_expr(functools.partial(function))(*arguments)
        times.append(time.perf_counter() - start)
    return min(times)


def step_time(lib, function, arguments):
    """Return the least time of a step of a compiled function."""
    step = lib.jit(function)
    lib.wait(step(*arguments))
    return least_time(lib, step, arguments, SECONDS)


def measure_model(model, name):
    """Return nodes, tracing and time of a model and its derivatives in one library."""
    lib = library(name)
    loss, arguments = MODELS[model](lib)
    arguments = lib.wait(lib.put(arguments))
    figures = {}
    for derivative, (function, inputs) in derivatives(name, loss, arguments).items():
        figures[derivative] = {
            "nodes": nodes_of(name, function, inputs),
            "trace": tracing_time(name, function, inputs),
            "step": step_time(lib, function, inputs),
        }
    return figures


def status_kilobytes(key):
    """Return a figure of this process in kilobytes from Linux's process status."""
    return int(re.search(key + r":\s+(\d+) kB", Path("/proc/self/status").read_text())[1])


def measure_scan(method, name, steps):
    """Return nodes, time and memory of the gradient of a scan with a method for residuals."""
    lib = library(name)
    options = {} if method in ("forward", "default") else {"gradient": method}
    loss, arguments = recurrence(lib, int(steps), 128, **options)
    arguments = lib.wait(lib.put(arguments))
    function = derivatives(name, loss, arguments)["forward" if method == "forward" else "gradient"][
        0
    ]
    # Allocate the memory for compilation first, so that it is not counted.
    lib.wait(lib.jit(loss)(*arguments))
    before = status_kilobytes("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # Reset the peak memory of the process.
    lib.wait(lib.jit(function)(*arguments))
    memory = status_kilobytes("VmHWM") - before
    nodes = nodes_of(name, function, arguments)
    return {"nodes": nodes, "step": step_time(lib, function, arguments), "memory": memory / 1024}


def table_of_models(words):
    """Print the first table, and whether each target is met."""
    columns = f"{'library':<11}{'nodes':>7}{'x':>6}{'trace ms':>10}{'step ms':>9}{'x':>6}"
    print(f"{'model':<24}{'':<10}{columns}")
    missed = []
    for model in MODELS:
        if words and not any(word in model for word in words):
            continue
        found = {name: figures_of(__file__, "--worker", "model", model, name) for name in LIBRARIES}
        for derivative in ("forward", "gradient", "jvp", "hvp"):
            for name in LIBRARIES:
                figures, base = found[name][derivative], found[name]["forward"]
                share, nodes = figures["step"] / base["step"], figures["nodes"] / base["nodes"]
                print(
                    f"{model:<24}{derivative:<10}{name:<11}{figures['nodes']:>7}{nodes:>6.2f}"
                    f"{figures['trace'] * 1e3:>10.2f}{figures['step'] * 1e3:>9.2f}{share:>6.2f}"
                )
                if name != "jax" and share > TARGETS.get(derivative, share):
                    missed.append(f"{model}, {derivative} on {name}: {share:.2f} times forward")
            ratio = found["jax"][derivative]["step"] / found["xla"][derivative]["step"]
            if ratio < 1.0:
                missed.append(f"{model}, {derivative} on xla: {1 / ratio:.2f} of JAX's time")
            traces = found["jax"][derivative]["trace"] / found["xla"][derivative]["trace"]
            if traces < 100.0:
                missed.append(f"{model}, {derivative}: tracing {traces:.0f} times as fast as JAX")
    for line in missed:
        print(f"target missed: {line}")


def table_of_scans():
    """Print the cost of the gradient of a scan for each method."""
    print(
        f"\n{'gradient of a scan':<24}{'method':<11}{'library':<11}{'nodes':>7}{'ms':>9}{'MB':>8}"
    )
    for steps in ("200", "1000"):
        configurations = [
            ("default", "jax"),
            *((method, name) for name in ("xla", "evaluator") for method in ("forward", *METHODS)),
        ]
        for method, name in configurations:
            figures = figures_of(__file__, "--worker", "scan", method, name, steps)
            print(
                f"{steps + ' steps':<24}{method:<11}{name:<11}{figures['nodes']:>7}"
                f"{figures['step'] * 1e3:>9.2f}{figures['memory']:>8.1f}"
            )


def main() -> None:
    """Measure in a worker process, or print both tables."""
    if sys.argv[1:2] == ["--worker"]:
        kind, *words = sys.argv[2:]
        measure = measure_model if kind == "model" else measure_scan
        print(json.dumps(measure(*words)))
        return
    words = [word.lower() for word in sys.argv[1:]]
    table_of_models(words)
    if not words or any(word in "scan" for word in words):
        table_of_scans()


if __name__ == "__main__":
    main()
