"""The kernels of ``kernels.py``, each written once for all libraries as far as their words allow.

`KERNELS` maps names to the family of ops of a kernel, its shapes, and a function that returns a
`Case`: the function, its data, and the part of the results that all libraries must agree on. NumPy
versions are idiomatic, and use SciPy for missing functions. ``kernel_linalg.py`` contains products,
factorizations and transforms, ``kernel_everyday.py`` compositions of several ops, and
``kernel_integers.py`` integers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from kernel_case import Bench, Case, Kernel, copied, over, shared
from kernel_everyday import EVERYDAY
from kernel_functions import FUNCTIONS
from kernel_integers import INTEGERS
from kernel_linalg import CONTRACT, LINALG
from zoo import layer_norm, softmax

FLAT = ((1_000,), (100_000,), (10_000_000,))
MATRIX = ((32, 32), (316, 316), (3162, 3162))
ROWS = ((8, 128), (100, 1024), (10_000, 1024))
IMAGES = ((1, 4, 16, 16), (4, 8, 56, 56), (16, 32, 140, 140))
#: JAX takes seconds for ten million.
SORTED = ((1_000,), (100_000,), (1_000_000,))


def ten_operations(xp: Any, x: Any) -> Any:
    """Return a chain of ten cheap element-wise operations."""
    y = xp.abs(x * 1.5 - 0.5) + x
    z = xp.sqrt(y * 2.0 + 0.25)
    return (z - x) * z + 1.0


def power(exponent: float) -> Any:
    """Return a constructor of the kernel of a power with a number as the exponent."""
    return lambda b: Case(lambda x: x**exponent, (b.positive(*b.shape),))


def padded(b: Bench) -> Any:
    """Return a function that pads a matrix with one zero on each side."""
    return b.by(
        numpy=lambda x: np.pad(x, 1),
        jax=lambda x: b.xp.pad(x, 1),
        nxla=lambda x: b.xp.pad(x, 0.0, [(1, 1), (1, 1)]),
    )


def spread(b: Bench) -> Case:
    """Broadcast a row to all rows of a matrix."""
    row = Bench(b.name, b.lib, b.shape[1:], b.dtype)
    return copied(lambda xp, x: xp.broadcast_to(x, b.shape))(row)


def pooled(x: Any) -> Any:
    """Return the maximum of each 2x2 window, by the fastest method of NumPy."""
    upper = np.maximum(x[..., ::2, ::2], x[..., ::2, 1::2])
    return np.maximum(upper, np.maximum(x[..., 1::2, ::2], x[..., 1::2, 1::2]))


def running_sum(b: Bench) -> Any:
    """Return the function for cumulative sums."""
    return b.xp.cumulative_sum


def normed(b: Bench) -> Case:
    """Compute a layer norm over the last axis from basic operations."""
    width = b.shape[-1]
    operands = (b.normal(*b.shape), b.normal(width, operand=1), b.normal(width, operand=2))
    return Case(lambda x, weight, bias: layer_norm(b.xp, x, weight, bias, 1e-5), operands)


def log_of_sum_of_exp(xp: Any, x: Any) -> Any:
    """Compute the logarithm of the sum of exponentials of each row, without overflow."""
    largest = xp.max(x, axis=1, keepdims=True)
    return xp.log(xp.sum(xp.exp(x - largest), axis=1)) + largest[:, 0]


def gather(b: Bench) -> Case:
    """Gather as many elements as the tensor has, from random positions."""
    (size,) = b.shape
    return Case(lambda x, i: b.xp.take(x, i, axis=0), (b.normal(size), b.indices(size, size)))


def scatter(b: Bench, ufunc: Any, method: str) -> Case:
    """Combine as many numbers as the tensor has elements with elements at random positions."""

    def in_place(x: Any, i: Any, updates: Any) -> Any:
        result = x.copy()
        ufunc.at(result, i, updates)
        return result

    def update(x: Any, i: Any, updates: Any) -> Any:
        return getattr(x.at[i], method)(updates)

    (size,) = b.shape
    function = in_place if b.name == "numpy" else update
    return Case(function, (b.normal(size), b.indices(size, size), b.normal(size, operand=1)))


def dynamic_slice(b: Bench) -> Case:
    """A slice of half the length, from an offset in an argument."""
    length = b.shape[0] // 2

    def jax(x: Any, start: Any) -> Any:
        from jax.lax import dynamic_slice

        return dynamic_slice(x, (start,), (length,))

    function = b.by(
        numpy=lambda x, start: x[int(start) : int(start) + length].copy(),
        jax=jax,
        nxla=lambda x, start: b.xp.slice(x, [start], [length]),
    )
    return Case(function, (b.normal(*b.shape), np.asarray(length // 3, np.int32)))


def argsort(b: Bench) -> Case:
    """Sort indices; the order of equal numbers is not compared."""
    x = b.normal(*b.shape)
    return Case(
        lambda x: b.xp.argsort(x, stable=False), (x,), essence=lambda order: (x[np.asarray(order)],)
    )


def top_k(b: Bench) -> Case:
    """The 100 largest numbers and their positions."""

    def partitioned(x: Any) -> Any:
        largest = np.argpartition(x, -100)[-100:]
        order = largest[np.argsort(-x[largest])]
        return x[order], order

    def jax(x: Any) -> Any:
        from jax.lax import top_k

        return top_k(x, 100)

    function = b.by(numpy=partitioned, jax=jax, nxla=lambda x: b.xp.top_k(x, 100))
    return Case(function, (b.normal(*b.shape),), essence=lambda values, _: (values,))


def drawn(b: Bench, which: str) -> Case:
    """Draw random numbers.

    The generators differ, so only mean and deviation are compared, with a large tolerance.
    """

    def summary(x: Any) -> tuple[Any, ...]:
        x = np.asarray(x, np.float64)
        return (np.asarray([np.mean(x), np.std(x), x.size / size]),)

    (size,) = b.shape
    tolerance = 0.01 + 5 * size**-0.5
    if b.name == "numpy":
        generator: Any = np.random.default_rng(0)
        draw = generator.standard_normal if which == "normal" else generator.random
        return Case(lambda: draw(b.shape, b.dtype), (), summary, tolerance)

    def jax(key: Any) -> Any:
        import jax.random

        return getattr(jax.random, which)(key, b.shape, b.kind)

    def nxla(key: Any) -> Any:
        return getattr(b.xp.random, which)(key, shape=b.shape, dtype=b.kind)[0]

    key = np.asarray([0, 42], np.uint32)
    return Case(b.by(jax=jax, nxla=nxla), (key,), summary, tolerance)


def iota(b: Bench) -> Case:
    """Count from zero."""
    return Case(lambda: b.xp.arange(b.shape[0], dtype=b.kind))


def eye(b: Bench) -> Case:
    """Create the identity matrix."""
    return Case(lambda: b.xp.eye(b.shape[0], dtype=b.kind))


ELEMENTWISE = {
    "add": shared(lambda _, x, y: x + y, 2),
    "chain of 10 ops": shared(ten_operations),
    "chain of functions": shared(lambda xp, x: xp.exp(xp.sin(x)) * 0.5 + xp.tanh(x)),
    "exp": shared(lambda xp, x: xp.exp(x)),
    "tanh": shared(lambda xp, x: xp.tanh(x)),
    "erf": over(lambda b: b.lib.erf),
    "power of 3": power(3),
    "power of 2.5": power(2.5),
    "select": shared(lambda xp, x, y: xp.where(x > y, x, y), 2),
    "cast to int32": shared(lambda xp, x: xp.astype(x, xp.int32)),
}
MOVEMENT = {
    "transpose": copied(lambda xp, x: xp.permute_dims(x, (1, 0))),
    "pad": over(padded),
    "concatenate": shared(lambda xp, x, y: xp.concat([x, y], axis=0), 2),
    "reverse": copied(lambda xp, x: xp.flip(x, axis=1)),
    "broadcast": spread,
}
REDUCE = {
    "sum by row": shared(lambda xp, x: xp.sum(x, axis=1)),
    "sum by column": shared(lambda xp, x: xp.sum(x, axis=0)),
    "sum of all": shared(lambda xp, x: xp.sum(x)),
    "max by row": shared(lambda xp, x: xp.max(x, axis=1)),
    "max by column": shared(lambda xp, x: xp.max(x, axis=0)),
    "max of all": shared(lambda xp, x: xp.max(x)),
    "mean and var by row": shared(lambda xp, x: (xp.mean(x, axis=1), xp.var(x, axis=1))),
    "mean and var by column": shared(lambda xp, x: (xp.mean(x, axis=0), xp.var(x, axis=0))),
    "mean squared error": shared(lambda xp, p, y: xp.mean((p - y) ** 2), operands=2),
    "norm": shared(lambda xp, x: xp.sqrt(xp.sum(x * x))),
    "log of sum of exp by row": shared(log_of_sum_of_exp),
    "number above": shared(lambda xp, x: xp.sum(x > 0.5)),
    "argmax by row": shared(lambda xp, x: xp.argmax(x, axis=1)),
}

KERNELS = {
    **{name: Kernel("element-wise", FLAT, make) for name, make in ELEMENTWISE.items()},
    **FUNCTIONS,
    **{name: Kernel("movement", MATRIX, make) for name, make in MOVEMENT.items()},
    **{name: Kernel("reduce", MATRIX, make) for name, make in REDUCE.items()},
    "max-pool 2x2": Kernel("window", IMAGES, over(lambda b: b.lib.pool or pooled)),
    "cumulative sum": Kernel("window", FLAT, over(running_sum)),
    **CONTRACT,
    "gather": Kernel("index", FLAT, gather),
    "scatter-add": Kernel("index", FLAT, lambda b: scatter(b, np.add, "add")),
    "scatter-max": Kernel("index", FLAT, lambda b: scatter(b, np.maximum, "max")),
    "sort": Kernel("index", SORTED, shared(lambda xp, x: xp.sort(x))),
    "argsort": Kernel("index", SORTED, argsort),
    "top 100": Kernel("index", SORTED, top_k),
    "dynamic slice": Kernel("index", FLAT, dynamic_slice),
    **LINALG,
    "random normal": Kernel("random", FLAT, lambda b: drawn(b, "normal")),
    "random uniform": Kernel("random", FLAT, lambda b: drawn(b, "uniform")),
    "softmax": Kernel("norm", ROWS, shared(softmax)),
    "layer norm": Kernel("norm", ROWS, normed),
    "iota": Kernel("creation", FLAT, iota),
    "eye": Kernel("creation", MATRIX, eye),
    **EVERYDAY,
    **INTEGERS,
}
