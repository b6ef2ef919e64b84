"""Comparison of random programs with control flow and nested transformations with JAX.

A program maps three numbers to three numbers. It contains element-wise functions, products,
conditionals, scans, `fori` and `while_loop`, and `vmap`, `grad`, `jvp`, `vjp` and `checkpoint`
of other such programs, nested to any depth. The value, the gradient and a directional derivative
must equal those of JAX in double precision without compilation.

Run ``python tests/random_programs.py --count 10000 --seed 0``; ``--compiler evaluator xla``
compares several compilers. The script prints the seed of each program whose results differ;
``--seed N --count 1`` repeats it.
"""

from __future__ import annotations

import argparse
import functools
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

SIZE = 3

#: The allowed difference of results, relative to the largest number.
TOLERANCE = 1e-8


@dataclass(frozen=True)
class Library:
    """The functions that programs use, from nxla or JAX."""

    xp: Any
    array: Callable[[Any], Any]
    integer: Callable[[int], Any]
    cond: Callable[..., Any]
    scan: Callable[..., Any]
    fori: Callable[..., Any]
    while_loop: Callable[..., Any]
    vmap: Callable[..., Any]
    grad: Callable[..., Any]
    jvp: Callable[..., Any]
    vjp: Callable[..., Any]
    checkpoint: Callable[..., Any]
    #: Run a function of one array, and return NumPy arrays.
    run: Callable[..., Any]


def nxla_library(compiler: str = "evaluator") -> Library:
    """Return nxla."""
    import nxla as nx

    def run(function: Callable[[Any], Any], x: Any) -> list[Any]:
        return [np.asarray(y) for y in nx.jit(function, compiler=compiler)(x)]

    return Library(
        xp=nx,
        array=functools.partial(nx.tensor, dtype=nx.float64),
        integer=functools.partial(nx.tensor, dtype=nx.int32),
        cond=nx.cond,
        scan=nx.scan,
        fori=lambda n, body, x: nx.fori(0, n, body, x),
        while_loop=nx.while_loop,
        vmap=nx.vmap,
        grad=nx.grad,
        jvp=lambda f, x, v: nx.jvp(f, (x,), (v,))[1],
        vjp=lambda f, x, v: nx.vjp(f, x)[1](v)[0],
        checkpoint=nx.checkpoint,
        run=run,
    )


def jax_library() -> Library:
    """Return JAX in double precision."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)

    def run(function: Callable[[Any], Any], x: Any) -> list[Any]:
        with jax.disable_jit():
            return [np.asarray(y) for y in function(x)]

    # Use Python control flow, because JAX's loops take twice as long without compilation.
    def cond(
        predicate: Any, on_true: Callable[..., Any], on_false: Callable[..., Any], x: Any
    ) -> Any:
        return jax.tree.map(functools.partial(jnp.where, predicate), on_true(x), on_false(x))

    def scan(step: Callable[..., Any], carry: Any, rows: Any) -> Any:
        results = []
        for row in rows:
            carry, result = step(carry, row)
            results.append(result)
        return carry, jnp.stack(results)

    def fori(n: int, body: Callable[..., Any], x: Any) -> Any:
        return functools.reduce(lambda x, i: body(i, x), range(n), x)

    def while_loop(predicate: Callable[..., Any], body: Callable[..., Any], state: Any) -> Any:
        # The trip count is unknown while derivatives are built; it is at most four.
        for _ in range(4):
            continues, next_state = predicate(state), body(state)
            state = jax.tree.map(functools.partial(jnp.where, continues), next_state, state)
        return state

    return Library(
        xp=jnp,
        array=functools.partial(jnp.asarray, dtype=jnp.float64),
        integer=functools.partial(jnp.asarray, dtype=jnp.int32),
        cond=cond,
        scan=scan,
        fori=fori,
        while_loop=while_loop,
        vmap=jax.vmap,
        grad=jax.grad,
        jvp=lambda f, x, v: jax.jvp(f, (x,), (v,))[1],
        vjp=lambda f, x, v: jax.vjp(f, x)[1](v)[0],
        checkpoint=lambda f, _: f,
        run=run,
    )


#: A function of a library and three numbers.
Program = Callable[[Library, Any], Any]


class Generator:
    """Generates programs from random numbers."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.text: list[str] = []

    def numbers(self) -> list[float]:
        """Return three constants."""
        return [self.random.uniform(-1.2, 1.2) for _ in range(SIZE)]

    def program(self, depth: int, derivatives: int = 2) -> Program:
        """Return a random program with limits for nested parts and nested derivatives."""
        if depth == 0:
            return self.leaf()
        kinds = [
            self._composition,
            self._product,
            self._cond,
            self._scan,
            self._fori,
            self._while_loop,
        ]
        kinds += [self._vmap, self._checkpoint, self._while_loop_with_bound_in_state]
        if derivatives > 0:
            kinds += [self._grad, self._jvp, self._vjp]
        kind = self.random.choice(kinds)
        self.text.append(kind.__name__)
        return kind(depth - 1, derivatives)

    def leaf(self) -> Program:
        """Return an element-wise function, or a function of all elements."""
        c = self.numbers()
        kinds: list[Program] = [
            lambda lib, x: lib.xp.sin(x) * lib.array(c),
            lambda lib, x: lib.xp.tanh(x + lib.array(c)),
            lambda lib, x: x * lib.xp.cos(lib.xp.sum(x * lib.array(c))),
            lambda lib, x: lib.xp.exp(-x * x) + lib.array(c),
            lambda lib, x: lib.xp.where(x > c[0], x * c[1], lib.xp.sin(x) + c[2]),
            lambda lib, x: lib.xp.sqrt(x * x + 1.0) * lib.array(c),
            lambda lib, x: lib.xp.flip(x) / (2.0 + lib.xp.cos(x)),
            lambda lib, x: lib.xp.max(x) * lib.array(c) + x,
            lambda lib, x: lib.xp.cumulative_sum(x) * 0.5,
            lambda lib, x: lib.xp.sort(x) * lib.array(c),
            lambda lib, x: (lib.array(c)[:, None] * x[None, :]) @ lib.xp.sin(x),
            self._with_constant(),
        ]
        index = self.random.randrange(len(kinds))
        self.text.append(f"leaf {index}")
        return kinds[index]

    def _with_constant(self) -> Program:
        """Return sums or products with a constant of any dtype and shape."""
        value, dtype = self.random.randint(0, 2), self.random.choice(["int32", "uint8", "float32"])
        shape = self.random.choice([(), (1,), (SIZE,), (2, 1), (2, SIZE)])
        outer, inner = (self.random.choice(["add", "subtract", "multiply"]) for _ in range(2))
        swaps = self.random.random() < 0.5

        def run(lib: Library, x: Any) -> Any:
            constant = lib.xp.full(shape, value, dtype=dtype)
            operands = (x, constant) if swaps else (constant, x)
            combined = getattr(lib.xp, outer)(lib.xp.sin(x), getattr(lib.xp, inner)(*operands))
            return lib.xp.sum(lib.xp.reshape(combined, (-1, SIZE)), axis=0)

        return run

    def _composition(self, depth: int, derivatives: int) -> Program:
        inner, outer = self.program(depth, derivatives), self.program(depth, derivatives)
        return lambda lib, x: outer(lib, inner(lib, x))

    def _product(self, depth: int, derivatives: int) -> Program:
        left, right = self.program(depth, derivatives), self.program(depth, derivatives)
        return lambda lib, x: left(lib, x) * right(lib, x) + x

    def _cond(self, depth: int, derivatives: int) -> Program:
        select = self.leaf()
        on_true, on_false = self.program(depth, derivatives), self.program(depth, derivatives)
        bound = self.random.uniform(-0.5, 0.5)

        def run(lib: Library, x: Any) -> Any:
            predicate = lib.xp.sum(select(lib, x)) > bound
            return lib.cond(predicate, lambda x: on_true(lib, x), lambda x: on_false(lib, x), x)

        return run

    def _scan(self, depth: int, derivatives: int) -> Program:
        body = self.program(depth, derivatives)
        rows = [self.numbers() for _ in range(self.random.randint(1, 4))]
        matrix = [self.numbers() for _ in range(SIZE)]

        def run(lib: Library, x: Any) -> Any:
            weights = lib.array(matrix) * x

            def step(h: Any, row: Any) -> tuple[Any, Any]:
                h = lib.xp.tanh(body(lib, h) @ weights + row * x)
                return h, lib.xp.sum(h)

            h, sums = lib.scan(step, x, lib.array(rows))
            return h + lib.xp.sum(sums) * 0.3

        return run

    def _fori(self, depth: int, derivatives: int) -> Program:
        body, trips = self.program(depth, derivatives), self.random.randint(1, 4)

        def run(lib: Library, x: Any) -> Any:
            return lib.fori(trips, lambda i, h: lib.xp.tanh(body(lib, h) + x * (i + 0.5)), x)

        return run

    def _while_loop(self, depth: int, derivatives: int) -> Program:
        body, bound = self.program(depth, derivatives), self.random.uniform(1.0, 4.0)

        def run(lib: Library, x: Any) -> Any:
            def step(state: Any) -> Any:
                h, progress = state
                return lib.xp.tanh(body(lib, h)) + x * 0.5, progress + 1.0 + lib.xp.sum(h * h) * 0.1

            start = (x, lib.xp.sum(x * 0.0))
            return lib.while_loop(lambda state: state[1] < bound, step, start)[0]

        return run

    def _while_loop_with_bound_in_state(self, depth: int, derivatives: int) -> Program:
        """Return a loop whose state contains its bound and step, which may change."""
        body = self.program(depth, derivatives)
        first, sign = self.random.randint(-2, 2), self.random.choice([-1, 1])
        increments = [self.random.randint(0, 1) for _ in range(2)]

        def run(lib: Library, x: Any) -> Any:
            def step(state: Any) -> Any:
                h, i, bound, by = state
                h = lib.xp.tanh(body(lib, h)) + x * 0.5
                return h, i + sign * by, bound - sign * increments[0], by + increments[1]

            def continues(state: Any) -> Any:
                return state[1] < state[2] if sign > 0 else state[1] > state[2]

            numbers = (first, first + 4 * sign, 1)
            start = (x, *(lib.integer(number) for number in numbers))
            return lib.while_loop(continues, step, start)[0]

        return run

    def _vmap(self, depth: int, derivatives: int) -> Program:
        inner, scales = self.program(depth, derivatives), self.numbers()[:2]

        def run(lib: Library, x: Any) -> Any:
            rows = lib.array(scales)[:, None] * x[None, :]
            return lib.xp.sum(lib.vmap(lambda row: inner(lib, row) + x * 0.1)(rows), axis=0)

        return run

    def _checkpoint(self, depth: int, derivatives: int) -> Program:
        inner = self.program(depth, derivatives)
        policy = self.random.choice(["nothing", "products", "everything"])
        return lambda lib, x: lib.checkpoint(lambda x: inner(lib, x), policy)(x)

    def _grad(self, depth: int, derivatives: int) -> Program:
        inner, weights = self.program(depth, derivatives - 1), self.numbers()

        def run(lib: Library, x: Any) -> Any:
            total = lambda x: lib.xp.sum(inner(lib, x) * lib.array(weights))  # noqa: E731
            return lib.xp.tanh(lib.grad(total)(x))

        return run

    def _jvp(self, depth: int, derivatives: int) -> Program:
        inner, direction = self.program(depth, derivatives - 1), self.numbers()
        return lambda lib, x: lib.xp.tanh(
            lib.jvp(lambda x: inner(lib, x), x, lib.array(direction) * x)
        )

    def _vjp(self, depth: int, derivatives: int) -> Program:
        inner, cotangent = self.program(depth, derivatives - 1), self.numbers()
        return lambda lib, x: lib.xp.tanh(
            lib.vjp(lambda x: inner(lib, x), x, lib.array(cotangent) + x)
        )


def results(
    lib: Library, program: Program, point: list[float], direction: list[float]
) -> list[Any]:
    """Return the value, the gradient and the directional derivative of a program."""

    def quantities(x: Any) -> list[Any]:
        def function(x: Any) -> Any:
            return program(lib, x)

        return [
            function(x),
            lib.grad(lambda x: lib.xp.sum(lib.xp.sin(function(x))))(x),
            lib.jvp(function, x, lib.array(direction)),
        ]

    return lib.run(quantities, lib.array(point))


def disagreements(
    seed: int, tested: dict[str, Library], reference_library: Library, depth: int = 3
) -> list[str]:
    """Return descriptions of the results that differ from the reference."""
    generator = Generator(seed)
    program = generator.program(depth)
    point, direction = generator.numbers(), generator.numbers()
    expected = results(reference_library, program, point, direction)
    failures = []
    for name, library in tested.items():
        try:
            found = results(library, program, point, direction)
        except Exception as error:
            failures.append(f"{name}: {type(error).__name__}: {error}")
            continue
        for kind, actual, reference in zip(
            ("value", "gradient", "jvp"), found, expected, strict=True
        ):
            largest = max(float(np.max(np.abs(reference))), 1.0)
            if not np.allclose(
                actual, reference, rtol=0.0, atol=TOLERANCE * largest, equal_nan=True
            ):
                failures.append(f"{name}: {kind} {actual}, expected {reference}")
    return [f"seed {seed} on {failure}\n  {' '.join(generator.text)}" for failure in failures]


def main() -> int:
    """Compare many programs; return 1 if any result differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--depth", type=int, default=3)
    parser.add_argument("--compiler", nargs="+", default=["evaluator"])
    options = parser.parse_args()
    tested = {name: nxla_library(name) for name in options.compiler}
    reference_library = jax_library()
    start, failures = time.monotonic(), 0
    for number, seed in enumerate(range(options.seed, options.seed + options.count), 1):
        for found in disagreements(seed, tested, reference_library, options.depth):
            failures += 1
            sys.stdout.write(f"{found}\n")
        if number % 500 == 0 or number == options.count:
            seconds = time.monotonic() - start
            sys.stdout.write(f"{number} programs, {failures} failures, {seconds:.0f} s\n")
            sys.stdout.flush()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
