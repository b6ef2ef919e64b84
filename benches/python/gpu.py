"""Compare nxla with JAX and PyTorch on a GPU: the cost of a call, and factorizations.

The first table has the microseconds of ``x + 1``, with and without waiting for the result. The
second table has the milliseconds of factorizations and solves of matrices on the device, the ratio
of nxla to the faster of JAX and PyTorch, and the error of nxla. All libraries run in this process.
The script checks all results on the host.

``NXLA_PJRT_PLUGIN=cuda python benches/python/gpu.py [calls] [factorizations]`` selects the tables.
After ``--limit SECONDS`` (default 80), no further case starts. A case is skipped if the last size
suggests that a call takes longer than `MAX_SECONDS`. With a plugin for CPUs, the sizes are small:
such a run only tests the script.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import numpy as np
from libraries import is_on_gpu

Shape = tuple[int, ...]

#: Batches and sides, in the order of their measurement, with their dtype.
SIZES: tuple[tuple[Shape, str], ...] = (
    ((64,), "f32"),
    ((512,), "f32"),
    ((1000, 8), "f32"),
    ((1000, 32), "f32"),
    ((64, 128), "f32"),
    ((512,), "f64"),
    ((2048,), "f32"),
)
SMALL: tuple[tuple[Shape, str], ...] = (((8,), "f32"), ((5, 8), "f32"), ((16,), "f64"))
DTYPES = {"f32": np.float32, "f64": np.float64}
#: The largest error relative to the norm of the right side.
TOLERANCES = {"f32": 1e-4, "f64": 1e-11}
#: Columns of the right side of solves.
COLUMNS = 16
#: Seconds for the runs of one case.
SECONDS = 0.1
#: A call that takes more seconds runs once.
SLOW = 3.0
#: Calls that are expected to take more seconds do not run.
MAX_SECONDS = 10.0
#: Series of calls, and the calls of one.
SERIES, CALLS = 20, 200


@dataclass(frozen=True)
class Backend:
    """A library: its compiler, transfers and functions."""

    jit: Callable[[Callable[..., Any]], Callable[..., Any]]
    put: Callable[[np.ndarray], Any]
    #: Waits for an array.
    wait: Callable[[Any], Any]
    host: Callable[[Any], np.ndarray]
    linalg: SimpleNamespace


def of_nxla(compiler: str) -> Backend:
    """Return nxla with one of its compilers."""
    import nxla as nx

    device = nx.devices()[1]
    return Backend(
        jit=lambda function: nx.jit(function, compiler=compiler),
        put=lambda x: nx.device_put(nx.tensor(x), device),
        wait=lambda x: x.block_until_ready(),
        host=np.asarray,
        linalg=SimpleNamespace(
            cholesky=nx.linalg.cholesky,
            lu=nx.linalg.lu,
            qr=nx.linalg.qr,
            eigh=nx.linalg.eigh,
            svd=lambda a: nx.linalg.svd(a, full_matrices=False),
            solve=nx.linalg.solve,
            triangular_solve=nx.linalg.triangular_solve,
        ),
    )


def of_jax() -> Backend:
    """Return JAX on the same hardware."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_platforms", None if is_on_gpu() else "cpu")
    jax.config.update("jax_enable_x64", True)

    def lu(a):
        both, _, permutation = jax.lax.linalg.lu(a)
        rows = jnp.arange(a.shape[-1])
        p = (permutation[..., None, :] == rows[:, None]).astype(a.dtype)
        return p, jnp.tril(both, -1) + jnp.eye(a.shape[-1], dtype=a.dtype), jnp.triu(both)

    def triangular_solve(a, b):
        return jax.lax.linalg.triangular_solve(a, b, left_side=True, lower=True)

    return Backend(
        jit=jax.jit,
        put=jax.device_put,
        wait=lambda x: x.block_until_ready(),
        host=np.asarray,
        linalg=SimpleNamespace(
            cholesky=jnp.linalg.cholesky,
            lu=lu,
            qr=jnp.linalg.qr,
            eigh=jnp.linalg.eigh,
            svd=lambda a: jnp.linalg.svd(a, full_matrices=False),
            solve=jnp.linalg.solve,
            triangular_solve=triangular_solve,
        ),
    )


def of_torch() -> Backend:
    """Return PyTorch, which runs eagerly."""
    import torch

    device = "cuda" if is_on_gpu() else "cpu"
    linalg = torch.linalg
    return Backend(
        jit=lambda function: function,
        put=lambda x: torch.tensor(x, device=device),
        wait=lambda _: torch.cuda.synchronize() if is_on_gpu() else None,
        host=lambda x: x.cpu().numpy(),
        linalg=SimpleNamespace(
            cholesky=linalg.cholesky,
            lu=linalg.lu,
            qr=linalg.qr,
            eigh=linalg.eigh,
            svd=lambda a: linalg.svd(a, full_matrices=False),
            solve=linalg.solve,
            triangular_solve=lambda a, b: linalg.solve_triangular(a, b, upper=False),
        ),
    )


#: The libraries by the names of their columns.
LIBRARIES = {
    "xla": partial(of_nxla, "xla"),
    "auto": partial(of_nxla, "auto"),
    "jax": of_jax,
    "torch": of_torch,
}


def backends(names: list[str]) -> dict[str, Backend]:
    """Return the installed libraries, and print why others are omitted."""
    found: dict[str, Backend] = {}
    for name in names:
        make = LIBRARIES[name]
        if name in ("jax", "torch") and find_spec(name) is None:
            print(f"not installed: {name}")
            continue
        try:
            found[name] = make()
            found[name].put(np.zeros(1, np.float32))
        except Exception as error:
            found.pop(name, None)
            print(f"{name} does not work here: {error}")
    return found


def per_call(call: Callable[[], Any], wait: Callable[[Any], Any]) -> tuple[float, float]:
    """Return the least seconds of a call, without and with waiting for each result."""
    for _ in range(10):
        wait(call())
    least = {False: float("inf"), True: float("inf")}
    gc.collect()
    for waits in (False, True):
        for _ in range(SERIES):
            result = None
            start = time.perf_counter()
            for _ in range(CALLS):
                result = call()
                if waits:
                    wait(result)
            taken = (time.perf_counter() - start) / CALLS
            wait(result)
            least[waits] = min(least[waits], taken)
    return least[False], least[True]


def measure_calls(libraries: dict[str, Backend]) -> None:
    """Print the cost of a call of each library."""
    title = "a call, µs"
    print(f"\n{title:<52}{''.join(f'{name:>12}' for name in libraries)}")
    arrays = {"a scalar": np.float32(0.5), "1,000 elements": np.ones(1000, np.float32)}
    for words, array in arrays.items():
        for mode in ("compiled", "as typed"):
            rows: dict[str, list[str]] = {"without waiting": [], "with waiting": []}
            for name, lib in libraries.items():
                if mode == "as typed" and name == "auto":
                    # Operations outside of compiled functions have no compiler of their own.
                    cells = ("—", "—")
                else:
                    x = lib.put(np.asarray(array))
                    function = (lambda x: x + 1) if mode == "as typed" else lib.jit(lambda x: x + 1)
                    taken = per_call(lambda f=function, x=x: f(x), lib.wait)
                    cells = tuple(f"{seconds * 1e6:.2f}" for seconds in taken)
                for row, cell in zip(rows.values(), cells, strict=True):
                    row.append(f"{cell:>12}")
            for kind, row in rows.items():
                print(f"{f'x + 1, {words}, {mode}, {kind}':<52}{''.join(row)}", flush=True)


@cache
def matrices(size: Shape, dtype: str, kind: str) -> np.ndarray:
    """Return well-conditioned matrices: general, symmetric and definite, or lower-triangular."""
    *batch, side = size
    random = np.random.default_rng(0)
    x = random.standard_normal((*batch, side, side)) / side**0.5
    if kind == "definite":
        x = x @ np.swapaxes(x, -1, -2) + np.eye(side)
    elif kind == "lower":
        x = np.tril(x) / 2 + 2.0 * np.eye(side)
    elif kind == "dominant":
        x = x + 2.0 * np.eye(side)
    return x.astype(DTYPES[dtype])


def right_side(size: Shape, dtype: str, columns: int) -> np.ndarray:
    """Return random columns."""
    return np.random.default_rng(1).standard_normal((*size, columns)).astype(DTYPES[dtype])


def transposed(x: np.ndarray) -> np.ndarray:
    """Return the transposed matrices."""
    return np.swapaxes(x, -1, -2)


#: The kind of matrix, and whether the function has a right side.
FUNCTIONS = {
    "cholesky": ("definite", False),
    "lu": ("general", False),
    "qr": ("general", False),
    "eigh": ("definite", False),
    "svd": ("general", False),
    "solve": ("dominant", True),
    "triangular_solve": ("lower", True),
}

#: The product of the factors and columns, by which a factorization is checked.
PRODUCTS: dict[str, Callable[..., np.ndarray]] = {
    "cholesky": lambda v, lower: lower @ (transposed(lower) @ v),
    "lu": lambda v, p, lower, upper: p @ (lower @ (upper @ v)),
    "qr": lambda v, q, r: q @ (r @ v),
    "eigh": lambda v, values, q: q @ (values[..., None] * (transposed(q) @ v)),
    "svd": lambda v, u, values, vh: u @ (values[..., None] * (vh @ v)),
}


def error_of(function: str, arguments: list[np.ndarray], results: list[np.ndarray]) -> float:
    """Return the error of results, relative to the norm of the right side.

    Products of factors are compared on one column, which takes less time than the whole product.
    """
    wide = [x.astype(np.float64) for x in results]
    matrix = arguments[0].astype(np.float64)
    if function in PRODUCTS:
        column = right_side(matrix.shape[:-1], "f64", 1)
        found, expected = PRODUCTS[function](column, *wide), matrix @ column
    else:
        found, expected = matrix @ wide[0], arguments[1].astype(np.float64)
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


def measure(lib: Backend, function: str, arguments: list[np.ndarray]) -> tuple[float, float]:
    """Return the least seconds of a call, and the error of its results."""
    run = lib.jit(getattr(lib.linalg, function))
    inputs = [lib.put(x) for x in arguments]

    def call() -> Any:
        results = run(*inputs)
        parts = list(results) if isinstance(results, tuple) else [results]
        for part in parts:
            lib.wait(part)
        return parts

    start = time.perf_counter()
    results = call()
    first = time.perf_counter() - start
    # The first call includes compilation, so that it only counts if another call takes too long.
    least, until = first if first > MAX_SECONDS else float("inf"), time.perf_counter() + SECONDS
    while least == float("inf") or (time.perf_counter() < until and least < SLOW):
        start = time.perf_counter()
        results = call()
        least = min(least, time.perf_counter() - start)
    return least, error_of(function, arguments, [lib.host(part) for part in results])


class Budget:
    """Decides which cases run: the time of the script is limited."""

    def __init__(self, seconds: float) -> None:
        self.until = time.perf_counter() + seconds
        self.last: dict[tuple[str, str, int, str], tuple[int, float]] = {}

    def skip_reason(self, name: str, function: str, size: Shape, dtype: str) -> str | None:
        """Return why a case does not run."""
        if time.perf_counter() > self.until:
            return "no time"
        side, seconds = self.last.get((name, function, len(size), dtype), (size[-1], 0.0))
        expected = seconds * (size[-1] / side) ** 2
        return f"> {MAX_SECONDS:.0f} s" if expected > MAX_SECONDS else None

    def note(self, name: str, function: str, size: Shape, dtype: str, seconds: float) -> None:
        """Note the time of a case for the next size."""
        self.last[name, function, len(size), dtype] = size[-1], seconds


def measure_case(
    libraries: dict[str, Backend], function: str, size: Shape, dtype: str, budget: Budget
) -> list[str]:
    """Measure a function in all libraries, and print a line; return the failures of nxla."""
    kind, has_right_side = FUNCTIONS[function]
    arguments = [matrices(size, dtype, kind)]
    if has_right_side:
        arguments.append(right_side(size, dtype, COLUMNS))
    *batch, side = size
    case = f"{function}, {dtype}, {f'{batch[0]} of ' if batch else ''}{side}"
    taken: dict[str, float] = {}
    failures: list[str] = []
    cells, error = "", float("nan")
    for name, lib in libraries.items():
        skip_reason = budget.skip_reason(name, function, size, dtype)
        if skip_reason is None:
            try:
                taken[name], deviation = measure(lib, function, arguments)
            except Exception as problem:
                skip_reason = "failed"
                print(f"{case}, {name}: {problem}"[:300], file=sys.stderr, flush=True)
        if skip_reason is not None:
            cells += f"{skip_reason:>12}"
            failures += [f"{case}: failed"] if (name, skip_reason) == ("xla", "failed") else []
            continue
        budget.note(name, function, size, dtype, taken[name])
        exceeds_tolerance = not deviation <= TOLERANCES[dtype]
        cells += f"{format(taken[name] * 1e3, '.3f') + ('!' if exceeds_tolerance else ''):>12}"
        if name == "xla":
            error = deviation
            failures += [f"{case}: the error is {deviation:.1e}"] if exceeds_tolerance else []
    others = [seconds for name, seconds in taken.items() if name != "xla"]
    share = taken["xla"] / min(others) if others and "xla" in taken else float("nan")
    print(f"{case:<36}{cells}{share:>12.2f}{error:>12.1e}", flush=True)
    return failures


def measure_factorizations(libraries: dict[str, Backend], limit: float) -> list[str]:
    """Print the time of factorizations and solves; return the failures of nxla."""
    # On a GPU, `auto` runs all programs on XLA.
    libraries = {name: lib for name, lib in libraries.items() if name != "auto"}
    title = "factorizations, ms"
    print(f"\n{title:<36}{''.join(f'{name:>12}' for name in [*libraries, 'xla/best', 'error'])}")
    failures, budget = [], Budget(limit)
    for size, dtype in SIZES if is_on_gpu() else SMALL:
        for function in FUNCTIONS:
            failures += measure_case(libraries, function, size, dtype, budget)
    print("an exclamation mark follows the time of results with a large error")
    return failures


def main() -> None:
    """Print the tables on the command line, or all."""
    parser = argparse.ArgumentParser(description="Compare libraries on a GPU.")
    parser.add_argument("tables", nargs="*", help="calls, factorizations; default: both")
    parser.add_argument("--libraries", default=",".join(LIBRARIES), help="default: %(default)s")
    parser.add_argument("--limit", type=float, default=80.0, help="seconds; default: 80")
    arguments = parser.parse_args()
    start = time.perf_counter()
    # By default JAX reserves most of the memory of the device.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    from nxla.plugins import find_default

    libraries = backends(arguments.libraries.split(","))
    import nxla as nx

    print(f"plugin: {find_default()}; device: {nx.devices()[1].kind}")
    failures: list[str] = []
    if not arguments.tables or "calls" in arguments.tables:
        measure_calls(libraries)
    if not arguments.tables or "factorizations" in arguments.tables:
        left = arguments.limit - (time.perf_counter() - start)
        failures = measure_factorizations(libraries, left)
    print(f"{time.perf_counter() - start:.0f} s in all")
    if failures:
        raise SystemExit("\n".join(failures))


if __name__ == "__main__":
    main()
