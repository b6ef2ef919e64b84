"""Products, convolutions, linear algebra, Fourier transforms and random numbers."""

from __future__ import annotations

from typing import Any

import nxla as nx
from golden.calls.adapter import Adapter, adapt

AXES = {"axes": "axis", "keep_axes": "keepdims"}
FFT = {"length": "n"}
FFT2 = {"lengths": "s"}
CONV = {"feature_group_size": "feature_groups", "batch_group_size": "batch_groups"}
DRAW = {"type": "dtype"}
RANDOM = [
    *("key", "split", "fold_in", "randint", "uniform", "normal", "gumbel", "multivariate_normal"),
    *("shuffle", "randint_split", "uniform_split", "normal_split", "gumbel_split"),
    *("multivariate_normal_split", "threefry2x32_20_concat"),
]


def _dot(*args: Any) -> Any:
    if len(args) == 2:
        return nx.dot(*args)
    if len(args) == 4:
        x1, axes1, x2, axes2 = args
        return nx.dot(x1, x2, x1_contract=axes1, x2_contract=axes2)
    x1, axes1, batch1, x2, axes2, batch2 = args
    return nx.dot(x1, x2, x1_contract=axes1, x2_contract=axes2, x1_batch=batch1, x2_batch=batch2)


def _transform(name: str) -> Any:
    def call(x: Any, *, eps: Any = None, n: Any = None, **options: Any) -> Any:
        # In Nx, `eps` rounds small results to zero; nxla does not need it.
        del eps
        if n == "power_of_two" and name != "irfft":
            axis = options.get("axis", -1)
            n = 1 << (x.shape[nx.axis_index(x, axis)] - 1).bit_length()
        return getattr(nx.fft, name)(x, n=n, **options)

    return call


def _transform2(name: str) -> Any:
    def call(x: Any, *, eps: Any = None, s: Any = None, axes: Any = (-2, -1)) -> Any:
        del eps
        if s is not None and len(s) == len(axes):
            sizes = [x.shape[nx.axis_index(x, axis)] for axis in axes]
            powers = [1 << (size - 1).bit_length() for size in sizes]
            s = [p if n == "power_of_two" else n for n, p in zip(s, powers, strict=True)]
        return getattr(nx.fft, name)(x, s=s, axes=tuple(axes))

    return call


def _solve(x1: Any, x2: Any) -> Any:
    if x1.ndim > 2 and x1.shape[:-1] == x2.shape:
        # Nx reads one vector for each matrix, where nxla and the Array API read matrices.
        return nx.linalg.solve(x1, x2[..., None])[..., 0]
    return nx.linalg.solve(x1, x2)


def _matrix_power(x: Any, n: Any) -> Any:
    power = nx.linalg.matrix_power(x, n)
    if n == 0:
        # Nx returns its default identity matrix, where nxla and NumPy keep the dtype.
        return nx.astype(power, nx.int32)
    # Nx keeps the names of axes.
    return nx.rename(power, x.names) if n > 0 else power


def _outer(x1: Any, x2: Any) -> Any:
    product = nx.outer(x1, x2)
    first, last = (getattr(x, "names", None) or [None] for x in (x1, x2))
    if None in product.names and first[0] != last[-1]:
        # Nx also names the axes of operands that it flattens.
        return nx.rename(product, [first[0], last[-1]])
    return product


def _choice(*args: Any, **options: Any) -> Any:
    chosen, key = nx.random.choice(*args, **options)
    # Nx drops the names of axes.
    return nx.rename(chosen, [None] * chosen.ndim), key


def _drop(name: str, *ignored: str) -> Any:
    """Call a function of nxla without the options for the iteration of Nx."""

    def call(*args: Any, **options: Any) -> Any:
        kept = {key: value for key, value in options.items() if key not in ignored}
        found: Any = nx
        for part in name.split("."):
            found = getattr(found, part)
        return found(*args, **kept)

    return call


def _norm(x: Any, *, ord: Any = None, **options: Any) -> Any:
    given = {
        "frobenius": "fro",
        "nuclear": "nuc",
        "inf": float("inf"),
        "infinity": float("inf"),
        "neg_infinity": float("-inf"),
        "neg_inf": float("-inf"),
        "-inf": float("-inf"),
    }.get(ord, ord)
    return nx.linalg.norm(x, ord=given, **options)


def _matrix_rank(x: Any, **options: Any) -> Any:
    # nxla returns its default integer, as in the Array API; Nx returns an unsigned integer.
    return nx.astype(nx.linalg.matrix_rank(x, **options), nx.uint32)


CALLS: dict[tuple[str, str], Adapter] = {
    ("Nx", "dot"): adapt(_dot),
    ("Nx", "outer"): Adapter(_outer),
    ("Nx", "conv"): adapt("conv", CONV),
    **{("Nx", name): adapt(_transform(name), FFT) for name in ("fft", "ifft", "rfft", "irfft")},
    **{("Nx", name): adapt(_transform2(name), FFT2) for name in ("fft2", "ifft2")},
    ("Nx.LinAlg", "adjoint"): adapt("linalg.adjoint"),
    ("Nx.LinAlg", "cholesky"): adapt("linalg.cholesky"),
    ("Nx.LinAlg", "triangular_solve"): adapt(
        "linalg.triangular_solve", {"transform_a": "transform"}
    ),
    ("Nx.LinAlg", "norm"): adapt(_norm, AXES),
    ("Nx.LinAlg", "solve"): Adapter(_solve),
    ("Nx.LinAlg", "invert"): adapt("linalg.inv"),
    ("Nx.LinAlg", "determinant"): adapt("linalg.det"),
    ("Nx.LinAlg", "lu"): adapt(_drop("linalg.lu", "eps")),
    ("Nx.LinAlg", "qr"): adapt(_drop("linalg.qr", "eps")),
    ("Nx.LinAlg", "eigh"): adapt(_drop("linalg.eigh", "eps", "max_iter")),
    ("Nx.LinAlg", "svd"): adapt(
        _drop("linalg.svd", "max_iter", "eps"), {"full_matrices?": "full_matrices"}
    ),
    ("Nx.LinAlg", "pinv"): adapt("linalg.pinv", {"eps": "rtol"}),
    ("Nx.LinAlg", "matrix_power"): Adapter(_matrix_power),
    ("Nx.LinAlg", "matrix_rank"): adapt(_matrix_rank, {"eps": "rtol"}),
    ("Nx.LinAlg", "least_squares"): adapt("linalg.least_squares", {"eps": "rtol"}),
    **{("Nx.Random", name): adapt(f"random.{name}", DRAW) for name in RANDOM},
    ("Nx.Random", "choice"): adapt(_choice, DRAW),
}
