"""Products, factorizations and transforms among the kernels of ``kernels.py``."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from kernel_case import Bench, Case, Kernel, UnsupportedError, shared

#: More elements would take seconds.
SQUARES = ((32, 32), (316, 316), (1024, 1024))
BATCHES = ((16, 8, 8), (25, 64, 64), (256, 128, 128))
SMALL = ((60, 4, 4), (1500, 8, 8), (6000, 4, 4))
CONVOLVED = ((1, 4, 16, 16), (4, 8, 56, 56), (8, 32, 64, 64))
MAPS = ((32, 32), (316, 316), (100000, 10), (3162, 3162))
PLANES = ((32, 32), (316, 316), (1024, 1024))
SYSTEMS = ((32, 32), (128, 128), (512, 512))
FACTORS = ((32, 32), (128, 128), (256, 256))
SIGNALS = ((1, 1024), (25, 4096), (2500, 4096))


def convolution(x: Any, kernel: Any) -> Any:
    """Return a 3x3 convolution in the usual form for NumPy: patches times the kernel."""
    framed = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    patches = np.lib.stride_tricks.sliding_window_view(framed, (3, 3), axis=(2, 3))
    return np.tensordot(patches, kernel, axes=((1, 4, 5), (1, 2, 3))).transpose(0, 3, 1, 2)


def convolved(b: Bench) -> Case:
    """A convolution with equal numbers of input and output channels."""
    channels = b.shape[1]
    arguments = (b.normal(*b.shape), b.normal(channels, channels, 3, 3, operand=1))
    return Case(b.lib.conv or convolution, arguments)


def filtered(b: Bench) -> Case:
    """A separate 3x3 filter for each channel."""
    channels = b.shape[1]
    if b.lib.conv is None:
        raise UnsupportedError(b.name)
    arguments = (b.normal(*b.shape), b.normal(channels, 1, 3, 3, operand=1))
    return Case(partial(b.lib.conv, groups=channels), arguments)


def mapped(transposed: bool) -> Any:
    """Return the product of a matrix, or of its transpose, and a vector."""

    def make(b: Bench) -> Case:
        rows, columns = b.shape
        vector = b.normal(rows if transposed else columns, operand=1)
        return Case(
            (lambda a, v: a.T @ v) if transposed else (lambda a, v: a @ v),
            (b.normal(*b.shape), vector),
        )

    return make


def small_mapped(b: Bench) -> Case:
    """A small matrix times a vector for each entry of a batch."""
    return Case(
        lambda a, v: b.xp.einsum("nij,nj->ni", a, v),
        (b.normal(*b.shape), b.normal(*b.shape[:-1], operand=1)),
    )


def projected(b: Bench) -> Case:
    """Sequences times one matrix."""
    width = b.shape[-1]
    return Case(lambda x, w: x @ w, (b.normal(*b.shape), b.normal(width, width, operand=1)))


def triangular_solve(b: Bench) -> Case:
    """A triangular system with 32 right-hand sides."""
    factor = np.linalg.cholesky(b.definite())
    return Case(b.lib.solve_lower, (factor, b.normal(len(factor), 32, operand=1)))


def solve(b: Bench) -> Case:
    """A system with 32 right-hand sides."""
    matrix = b.definite()
    return Case(b.xp.linalg.solve, (matrix, b.normal(len(matrix), 32, operand=1)))


def lu(b: Bench) -> Case:
    """An LU factorization with pivots: a permutation and two triangles."""
    homes = {"numpy": "scipy.linalg", "jax": "jax.scipy.linalg"}
    factor = import_module(homes.get(b.name, "nxla.linalg")).lu
    return Case(factor, (b.normal(*b.shape),), lambda p, lower, upper: (p @ lower @ upper, upper))


def qr(b: Bench) -> Case:
    """A QR factorization; signs of rows may differ."""
    return Case(b.xp.linalg.qr, (b.normal(*b.shape),), lambda q, r: (q @ r, np.abs(r)))


def eigh(b: Bench) -> Case:
    """Eigenvalues and vectors; signs of vectors may differ."""
    return Case(b.xp.linalg.eigh, (b.definite(),), lambda w, v: (w, (v * w) @ v.T))


def svd(b: Bench) -> Case:
    """Singular values and vectors; signs of vectors may differ."""
    return Case(
        lambda x: b.xp.linalg.svd(x, full_matrices=False),
        (b.normal(*b.shape),),
        lambda u, s, vt: (s, (u * s) @ vt),
    )


def inverse(b: Bench) -> Case:
    """Inverses of small matrices."""
    matrices = b.normal(*b.shape) + 8 * np.eye(b.shape[-1], dtype=b.dtype)
    return Case(b.xp.linalg.inv, (matrices,))


def fft(b: Bench) -> Case:
    """The Fourier transform of complex numbers."""
    return Case(b.xp.fft.fft, (b.normal(*b.shape) + 1j * b.normal(*b.shape, operand=1),))


def planar(b: Bench) -> Case:
    """The Fourier transform of a plane of complex numbers."""
    return Case(b.xp.fft.fft2, (b.normal(*b.shape) + 1j * b.normal(*b.shape, operand=1),))


PRODUCT = shared(lambda _, x, y: x @ y, 2)
CONTRACT = {
    "matmul": Kernel("contract", SQUARES, PRODUCT),
    "matmul by 384x384": Kernel("contract", ((8, 64, 384),), projected),
    "batched matmul": Kernel("contract", BATCHES, PRODUCT),
    "small matmul": Kernel("contract", SMALL, PRODUCT),
    "small matrices by vectors": Kernel("contract", SMALL, small_mapped),
    "matrix by vector": Kernel("contract", MAPS, mapped(transposed=False)),
    "transpose by vector": Kernel("contract", MAPS, mapped(transposed=True)),
    "conv 3x3": Kernel("contract", CONVOLVED, convolved),
    "conv 3x3 by channel": Kernel("contract", CONVOLVED, filtered),
}
LINALG = {
    "cholesky": Kernel("linalg", SYSTEMS, lambda b: Case(b.lib.cholesky, (b.definite(),))),
    "triangular solve": Kernel("linalg", SYSTEMS, triangular_solve),
    "lu": Kernel("linalg", SYSTEMS, lu),
    "solve": Kernel("linalg", SYSTEMS, solve),
    "qr": Kernel("linalg", FACTORS, qr),
    "eigh": Kernel("linalg", FACTORS, eigh),
    "svd": Kernel("linalg", FACTORS, svd),
    "inverse": Kernel("linalg", ((256, 16, 16),), inverse),
    "fft": Kernel("fft", SIGNALS, fft),
    "fft2": Kernel("fft", PLANES, planar),
    "rfft": Kernel("fft", SIGNALS, shared(lambda xp, x: xp.fft.rfft(x))),
}
