"""What is measured, written once for all engines."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from engines import Array, Engine, Function

Call = Callable[[], object]


@dataclass(frozen=True)
class Task:
    """A piece of work; `prepare` gives a call that does it once, or None if the engine cannot."""

    name: str
    prepare: Callable[[Engine], Call | None]


def numbers(*shape: int) -> np.ndarray[Any, Any]:
    """Return the same random numbers for every engine."""
    return np.random.default_rng(0).uniform(0.1, 0.9, shape).astype(np.float32)


def run(engine: Engine, function: Function, *values: np.ndarray[Any, Any]) -> Call:
    """Return a call of the compiled function that waits for the result."""
    compiled = engine.compiled(function)
    arguments = [engine.tensor(value) for value in values]
    return lambda: engine.wait(compiled(*arguments))


def chain(engine: Engine, links: int) -> Function:
    """Return a function that applies `x * 1.5 + tanh(x)` so many times."""

    def function(x: Array) -> Array:
        for _ in range(links):
            x = x * 0.5 + engine.xp.tanh(x)
        return x

    return function


def call_scalar(engine: Engine) -> Call:
    """Call a compiled `x + 1`: the price of a call."""
    return run(engine, lambda x: x + 1, numbers())


def call_many(engine: Engine) -> Call:
    """Call a compiled function of many arguments and results."""
    return run(engine, lambda *xs: [x + 1 for x in xs], *[numbers()] * 50)


def eager(engine: Engine) -> Call:
    """Add without compiling anything by hand."""
    x = engine.tensor(numbers())
    return lambda: engine.wait(x + 1)


def elementwise(engine: Engine) -> Call:
    """Run thirty element-wise operations, which compilers fuse."""
    return run(engine, chain(engine, 10), numbers(1_000_000))


def reduction(engine: Engine) -> Call:
    """Sum along rows."""
    return run(engine, lambda x: engine.xp.sum(x, axis=1), numbers(2_000, 2_000))


def product(engine: Engine) -> Call:
    """Multiply two square matrices."""
    return run(engine, lambda x, y: x @ y, numbers(1024, 1024), numbers(1024, 1024))


def training(engine: Engine) -> Call | None:
    """Differentiate the loss of a small network by its first layer."""
    xp = engine.xp

    def loss(first: Array, second: Array, x: Array, y: Array) -> Array:
        return xp.mean((xp.tanh(x @ first) @ second - y) ** 2)

    gradient = engine.gradient(loss)
    if gradient is None:
        return None
    shapes = ((64, 96), (96, 10), (128, 64), (128, 10))
    return run(engine, gradient, *(numbers(*shape) for shape in shapes))


def tracing(engine: Engine) -> Call | None:
    """Trace three thousand operations, and stop there."""
    return engine.traced(chain(engine, 1_000), [engine.tensor(numbers())])


def compilation(engine: Engine) -> Call | None:
    """Trace, compile and run a function of three hundred operations that nobody has seen yet."""
    if engine.gradient(lambda x: x) is None:
        return None
    fresh = itertools.count()
    x = engine.tensor(numbers(16))

    def call() -> None:
        offset = float(next(fresh))
        function = chain(engine, 100)
        engine.wait(engine.compiled(lambda x: function(x) + offset)(x))

    return call


TASKS = [
    Task("call x + 1", call_scalar),
    Task("call, 50 arguments and results", call_many),
    Task("x + 1 without compiling", eager),
    Task("30 element-wise ops, 1M numbers", elementwise),
    Task("sum of rows, 4M numbers", reduction),
    Task("matrix product, 1024 x 1024", product),
    Task("gradient of a small network", training),
    Task("trace 3000 ops", tracing),
    Task("trace and compile 300 ops", compilation),
]
