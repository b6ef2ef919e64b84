"""A common interface to the libraries for the models of ``zoo.py``.

A model is one function of a `Library`, so that all libraries compute the same. NumPy has neither a
compiler nor derivatives nor convolutions, so models that need derivatives or convolutions do not
run in NumPy. JAX and PyTorch are optional: ``pip install torch`` installs PyTorch.

The plugin of nxla selects the hardware of all libraries: with ``NXLA_PJRT_PLUGIN=cuda``, or if the
only plugin is a plugin for GPUs, JAX and PyTorch compute on the GPU too. The evaluator and NumPy
compute on the host.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
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
    #: Copies an array to NumPy.
    host: Callable[[Any], np.ndarray] = np.asarray
    value_and_grad: Callable[..., Any] | None = None
    #: A convolution of an input and a kernel of odd sizes, with zeros of half of the kernel around
    #: the positions. Further arguments are ``stride`` and ``groups``. The axes are batch, channels,
    #: then positions.
    conv: Callable[..., Any] | None = None
    #: The maximum of each 2 x 2 window.
    pool: Callable[[Any], Any] | None = None


@cache
def is_on_gpu() -> bool:
    """Return whether the selected plugin is a plugin for GPUs, by the name of its file."""
    from nxla.plugins import find_default

    name = Path(find_default() or "").name
    return any(word in name for word in ("cuda", "rocm", "gpu"))


def same_padding(kernel: Any) -> list[tuple[int, int]]:
    """Return the zeros before and after each axis that a convolution with the kernel adds."""
    return [(size // 2, size // 2) for size in kernel.shape[2:]]


def nxla_library(compiler: str, **options: Any) -> Library:
    """Return nxla with one of its compilers and options for it."""
    import nxla as nx

    def jit(function):
        return nx.jit(function, compiler=compiler, **options)

    def solve_lower(factor, b, transposed=False):
        transform = "transpose" if transposed else "none"
        return nx.linalg.triangular_solve(factor, b, transform=transform)

    def conv(x, kernel, stride=1, groups=1):
        padding = same_padding(kernel)
        return nx.conv(x, kernel, strides=stride, padding=padding, feature_groups=groups)

    def put(container):
        tensors = nx.tree.map(nx.tensor, container)
        if compiler == "evaluator":
            return tensors
        if is_on_gpu():
            return nx.device_put(tensors, nx.devices()[1])
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
        conv=conv,
        pool=lambda x: nx.window_max(x, (1, 1, 2, 2), strides=(1, 1, 2, 2)),
    )


def jax_library() -> Library:
    """Return JAX."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_platforms", None if is_on_gpu() else "cpu")

    def pool(x):
        window = (1, 1, 2, 2)
        return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, window, "VALID")

    def conv(x, kernel, stride=1, groups=1):
        strides, padding = (stride,) * (x.ndim - 2), same_padding(kernel)
        return jax.lax.conv_general_dilated(x, kernel, strides, padding, feature_group_count=groups)

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
        conv=conv,
        pool=pool,
    )


def leaves(container: Any) -> list[Any]:
    """Return the arrays of a container, in the order of sorted keys."""
    if isinstance(container, dict):
        container = [container[key] for key in sorted(container)]
    if isinstance(container, (list, tuple)):
        return [leaf for part in container for leaf in leaves(part)]
    return [container]


def tree_map(function: Callable[..., Any], container: Any, *others: Any) -> Any:
    """Apply a function to the arrays of containers of one structure, in the order of `leaves`."""
    if isinstance(container, dict):
        return {
            key: tree_map(function, container[key], *(other[key] for other in others))
            for key in sorted(container)
        }
    if isinstance(container, (list, tuple)):
        parts = zip(container, *others, strict=True)
        return type(container)(tree_map(function, *part) for part in parts)
    return function(container, *others)


def loop_of(stack: Callable[..., Any]) -> Callable[..., Any]:
    """Return `scan` as a Python loop, with a function that stacks the results of iterations."""

    def scan(step, carry, xs, length=None):
        rows = []
        for index in range(len(leaves(xs)[0]) if length is None else length):
            carry, y = step(carry, None if xs is None else tree_map(lambda x, at=index: x[at], xs))
            rows.append(y)
        return carry, tree_map(lambda *ys: stack(ys), rows[0], *rows[1:])

    return scan


def while_loop(condition: Callable[..., Any], body: Callable[..., Any], state: Any) -> Any:
    """Run a while loop in Python."""
    while condition(state):
        state = body(state)
    return state


def numpy_library() -> Library:
    """Return NumPy, with Python loops."""
    from scipy.linalg import solve_triangular
    from scipy.special import erf, expit

    return Library(
        xp=np,
        jit=lambda function: function,
        put=lambda container: container,
        wait=lambda results: results,
        leaves=leaves,
        tree_map=tree_map,
        scan=loop_of(np.stack),
        while_loop=while_loop,
        erf=erf,
        sigmoid=expit,
        cholesky=np.linalg.cholesky,
        solve_lower=lambda factor, b, transposed=False: solve_triangular(
            factor, b, lower=True, trans="T" if transposed else "N"
        ),
    )


def torch_library(compiled: bool) -> Library:
    """Return PyTorch: eager, or with ``torch.compile``. Scans and loops are Python loops."""
    import torch
    from torch.nn import functional

    torch.set_num_threads(processors())
    device = "cuda" if is_on_gpu() else "cpu"
    if is_on_gpu():
        # XLA and cuDNN round the factors of products to TF32 by default.
        torch.set_float32_matmul_precision("high")

    def wait(results):
        if is_on_gpu():
            torch.cuda.synchronize()
        return results

    def solve_lower(factor, b, transposed=False):
        factor = factor.mT if transposed else factor
        return torch.linalg.solve_triangular(factor, b, upper=transposed)

    def value_and_grad(function):
        if compiled:
            return lambda *arguments: torch.func.grad_and_value(function)(*arguments)[::-1]

        def both(x, *others):
            x = tree_map(lambda leaf: leaf.detach().requires_grad_(), x)
            value = function(x, *others)
            gradients = iter(torch.autograd.grad(value, leaves(x), materialize_grads=True))
            return value.detach(), tree_map(lambda _: next(gradients), x)

        return both

    def conv(x, kernel, stride=1, groups=1):
        function = (functional.conv1d, functional.conv2d, functional.conv3d)[x.ndim - 3]
        padding = [before for before, _ in same_padding(kernel)]
        return function(x, kernel, None, stride, padding, groups=groups)

    return Library(
        xp=torch_namespace(),
        jit=torch.compile if compiled else lambda function: function,
        put=lambda container: tree_map(partial(torch.tensor, device=device), container),
        wait=wait,
        leaves=leaves,
        tree_map=tree_map,
        host=lambda x: x.cpu().numpy(),
        scan=loop_of(torch.stack),
        while_loop=while_loop,
        erf=torch.special.erf,
        sigmoid=torch.sigmoid,
        cholesky=torch.linalg.cholesky,
        solve_lower=solve_lower,
        value_and_grad=value_and_grad,
        conv=conv,
        pool=lambda x: functional.max_pool2d(x, 2),
    )


def torch_namespace() -> SimpleNamespace:
    """Return the functions of PyTorch under their names in the Array API standard.

    PyTorch itself accepts ``axis`` and ``keepdims``.
    """
    import torch

    def maximum(x, y):
        return torch.maximum(x, y) if isinstance(y, torch.Tensor) else torch.clamp_min(x, y)

    def take(x, indices, axis):
        found = torch.index_select(x, axis, indices.reshape(-1))
        return found.reshape(*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])

    def where(condition, x, y):
        x, y = (float(z) if isinstance(z, np.generic) else z for z in (x, y))
        return torch.where(condition, x, y)

    return SimpleNamespace(
        exp=torch.exp,
        log=torch.log,
        max=torch.amax,
        maximum=maximum,
        mean=torch.mean,
        permute_dims=torch.permute,
        reshape=torch.reshape,
        sqrt=torch.sqrt,
        sum=torch.sum,
        take=take,
        tanh=torch.tanh,
        where=where,
    )


def processors() -> int:
    """Return the number of processors that this process may use, as all libraries do."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def library(name: str) -> Library:
    """Return a library by the name of its column."""
    if name == "jax":
        return jax_library()
    if name in ("torch", "torch.compile"):
        return torch_library(compiled=name == "torch.compile")
    return numpy_library() if name == "numpy" else nxla_library(name)


def installed(packages: dict[str, str]) -> list[str]:
    """Return the libraries whose packages are installed, and print the missing packages."""
    missing = {package for package in packages.values() if find_spec(package) is None}
    if missing:
        print(f"not installed: {', '.join(sorted(missing))}")
    return [name for name, package in packages.items() if package not in missing]


#: The minimum number of timed steps.
MIN_STEPS = 5


def least_time(
    lib: Library, step: Callable[..., Any], arguments: tuple[Any, ...], seconds: float
) -> float:
    """Return the least time of a step, including the wait for results, over some seconds."""
    times: list[float] = []
    until = time.perf_counter() + seconds
    while len(times) < MIN_STEPS or time.perf_counter() < until:
        start = time.perf_counter()
        lib.wait(step(*arguments))
        times.append(time.perf_counter() - start)
    return min(times)
