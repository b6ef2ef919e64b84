"""One face for the libraries that the models of ``zoo.py`` are written against.

A model is one function of a `Library`, so that all compute the same. What numpy has no word for (a
compiler, derivatives, convolutions) is left out there, and so are the models that need it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Library:
    """The functions that models need, under the same names for all libraries."""

    #: The functions of the Array API standard.
    xp: Any
    jit: Callable[[Callable[..., Any]], Callable[..., Any]]
    #: Moves a container of arrays to the device on which functions run.
    put: Callable[[Any], Any]
    #: Wait for a container of results, and return it.
    wait: Callable[[Any], Any]
    #: The arrays of a container, in order.
    leaves: Callable[[Any], list[Any]]
    #: Applies a function to the arrays of containers of one structure.
    tree_map: Callable[..., Any]
    scan: Callable[..., Any]
    while_loop: Callable[..., Any]
    erf: Callable[[Any], Any]
    sigmoid: Callable[[Any], Any]
    cholesky: Callable[[Any], Any]
    #: Solves ``l x = b`` or, transposed, ``l^T x = b``, for a lower-triangular ``l``.
    solve_lower: Callable[..., Any]
    value_and_grad: Callable[..., Any] | None = None
    #: A convolution with equal input and output sizes; the axes are batch, channels, then
    #: positions.
    conv_same: Callable[[Any, Any], Any] | None = None
    #: The maximum of each 2 x 2 window.
    pool: Callable[[Any], Any] | None = None


def nxla_library(compiler: str, **options: Any) -> Library:
    """Return nxla with one of its compilers and options for it."""
    import nxla as nx

    def jit(function):
        return nx.jit(function, compiler=compiler, **options)

    def solve_lower(factor, b, transposed=False):
        transform = "transpose" if transposed else "none"
        return nx.linalg.triangular_solve(factor, b, transform=transform)

    def put(container):
        tensors = nx.tree.map(nx.tensor, container)
        if compiler == "evaluator":
            return tensors
        # The results of a program are on its device.
        return nx.tree.map(nx.jit(lambda x: x, compiler=compiler), tensors)

    def wait(results):
        for leaf in nx.tree.leaves(results):
            leaf.block_until_ready()
        return results

    return Library(
        xp=nx,
        jit=jit,
        put=put,
        wait=wait,
        leaves=nx.tree.leaves,
        tree_map=nx.tree.map,
        scan=nx.scan,
        while_loop=nx.while_loop,
        erf=nx.erf,
        sigmoid=nx.sigmoid,
        cholesky=nx.linalg.cholesky,
        solve_lower=solve_lower,
        value_and_grad=nx.value_and_grad,
        conv_same=lambda x, kernel: nx.conv(x, kernel, padding="same"),
        pool=lambda x: nx.window_max(x, (1, 1, 2, 2), strides=(1, 1, 2, 2)),
    )


def jax_library() -> Library:
    """Return JAX."""
    import jax
    import jax.numpy as jnp

    def pool(x):
        window = (1, 1, 2, 2)
        return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, window, "VALID")

    def solve_lower(factor, b, transposed=False):
        trans = "T" if transposed else "N"
        return jax.scipy.linalg.solve_triangular(factor, b, lower=True, trans=trans)

    return Library(
        xp=jnp,
        jit=jax.jit,
        put=jax.device_put,
        wait=jax.block_until_ready,
        leaves=jax.tree.leaves,
        tree_map=jax.tree.map,
        scan=jax.lax.scan,
        while_loop=jax.lax.while_loop,
        erf=jax.scipy.special.erf,
        sigmoid=jax.nn.sigmoid,
        cholesky=jnp.linalg.cholesky,
        solve_lower=solve_lower,
        value_and_grad=jax.value_and_grad,
        conv_same=lambda x, kernel: jax.lax.conv(x, kernel, (1, 1), "SAME"),
        pool=pool,
    )


def numpy_library() -> Library:
    """Return NumPy, with Python loops."""
    from scipy.linalg import solve_triangular
    from scipy.special import erf, expit

    def leaves(container):
        if isinstance(container, dict):
            container = [container[key] for key in sorted(container)]
        if isinstance(container, (list, tuple)):
            return [leaf for part in container for leaf in leaves(part)]
        return [container]

    def tree_map(function, container, *others):
        if isinstance(container, dict):
            return {
                key: tree_map(function, part, *(other[key] for other in others))
                for key, part in container.items()
            }
        if isinstance(container, (list, tuple)):
            parts = zip(container, *others, strict=True)
            return type(container)(tree_map(function, *part) for part in parts)
        return function(container, *others)

    def scan(step, carry, xs, length=None):
        rows = []
        for index in range(len(leaves(xs)[0]) if length is None else length):
            carry, y = step(carry, None if xs is None else tree_map(lambda x, at=index: x[at], xs))
            rows.append(y)
        return carry, tree_map(lambda *ys: np.stack(ys), rows[0], *rows[1:])

    def while_loop(condition, body, state):
        while condition(state):
            state = body(state)
        return state

    return Library(
        xp=np,
        jit=lambda function: function,
        put=lambda container: container,
        wait=lambda results: results,
        leaves=leaves,
        tree_map=tree_map,
        scan=scan,
        while_loop=while_loop,
        erf=erf,
        sigmoid=expit,
        cholesky=np.linalg.cholesky,
        solve_lower=lambda factor, b, transposed=False: solve_triangular(
            factor, b, lower=True, trans="T" if transposed else "N"
        ),
    )


def library(name: str) -> Library:
    """Return a library by the name of its column."""
    if name == "jax":
        return jax_library()
    return numpy_library() if name == "numpy" else nxla_library(name)


#: The minimum number of times that a step is timed.
LEAST_STEPS = 5


def least_time(
    lib: Library, step: Callable[..., Any], arguments: tuple[Any, ...], seconds: float
) -> float:
    """Return the least time of a step, including the wait for results, over some seconds."""
    times: list[float] = []
    until = time.perf_counter() + seconds
    while len(times) < LEAST_STEPS or time.perf_counter() < until:
        start = time.perf_counter()
        lib.wait(step(*arguments))
        times.append(time.perf_counter() - start)
    return min(times)
