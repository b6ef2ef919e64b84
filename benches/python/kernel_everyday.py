"""Kernels of ``kernels.py`` that are short compositions of several ops."""

from __future__ import annotations

from typing import Any

import numpy as np
from kernel_case import Bench, Case, Kernel, shared

POINTS = ((30, 8), (180, 16), (1000, 32))
TABLES = ((100, 10), (2000, 50), (200_000, 50))
ROWS = ((16, 64), (1600, 64), (156_250, 64))
GRIDS = ((32, 32), (316, 316), (3162, 3162))
VECTORS = ((1_000,), (100_000,), (10_000_000,))
SEARCHED = ((1_000,), (100_000,), (1_000_000,))
SCORES = ((1, 1000), (100, 1000), (10_000, 1000))


def distances(xp: Any, x: Any, y: Any) -> Any:
    """Return the distances between all pairs of points."""
    return xp.sqrt(xp.sum((x[:, None] - y[None]) ** 2, axis=-1))


def nearest(b: Bench) -> Case:
    """The nearest center for each point, as in the k-means algorithm."""
    count, size = b.shape

    def function(x: Any, centres: Any) -> Any:
        return b.xp.argmin(b.xp.sum((x[:, None] - centres[None]) ** 2, axis=-1), axis=1)

    return Case(function, (b.normal(count, size), b.normal(16, size, operand=1)))


def normalized(xp: Any, x: Any) -> Any:
    """Return rows of length 1."""
    return x / xp.sqrt(xp.sum(x * x, axis=1, keepdims=True))


def standardized(xp: Any, x: Any) -> Any:
    """Return columns with mean 0 and standard deviation 1."""
    return (x - xp.mean(x, axis=0)) / xp.std(x, axis=0)


def covariance(xp: Any, x: Any) -> Any:
    """Return the covariance of columns."""
    shifted = x - xp.mean(x, axis=0)
    return shifted.T @ shifted / (x.shape[0] - 1)


def heat(_: Any, u: Any) -> Any:
    """Return a step of the heat equation at the inner points of a grid."""
    neighbors = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
    return u[1:-1, 1:-1] + 0.1 * (neighbors - 4.0 * u[1:-1, 1:-1])


def logistic(b: Bench) -> Case:
    """The gradient of a logistic regression."""
    rows, columns = b.shape
    features, labels = b.normal(*b.shape), b.positive(rows) > 0.7
    weights = b.normal(columns, operand=1) * np.asarray(0.1, b.dtype)

    def gradient(x: Any, w: Any, y: Any) -> Any:
        return x.T @ (1.0 / (1.0 + b.xp.exp(-(x @ w))) - y) / rows

    return Case(gradient, (features, weights, labels.astype(b.dtype)))


def spectral(b: Bench) -> Case:
    """Compute a derivative along the rows of a periodic plane by the Fourier transform."""
    side = b.shape[0]
    waves = np.fft.fftfreq(side, 1 / side).astype(b.dtype)

    def derivative(x: Any, k: Any) -> Any:
        return b.xp.real(b.xp.fft.ifft2(1j * k[:, None] * b.xp.fft.fft2(x)))

    return Case(derivative, (b.normal(side, side), waves))


def searched(b: Bench) -> Case:
    """Return the insertion positions of numbers among a thousand sorted numbers."""
    among = np.linspace(-3, 3, 1000).astype(b.dtype)
    return Case(lambda x: b.xp.searchsorted(among, x), (b.normal(*b.shape),))


def cross_entropy(b: Bench) -> Case:
    """Return the mean cross-entropy of a thousand classes."""
    xp, (count, classes) = b.xp, b.shape

    def function(scores: Any, labels: Any) -> Any:
        shifted = scores - xp.max(scores, axis=1, keepdims=True)
        total = xp.log(xp.sum(xp.exp(shifted), axis=1))
        return xp.mean(total - xp.take_along_axis(shifted, labels[:, None], axis=1)[:, 0])

    return Case(function, (b.normal(*b.shape), b.indices(count, classes)))


EVERYDAY = {
    "distances of points": Kernel("everyday", POINTS, shared(distances, 2)),
    "nearest of 16 centres": Kernel("everyday", ROWS, nearest),
    "rows of length 1": Kernel("everyday", ROWS, shared(normalized)),
    "standardized columns": Kernel("everyday", TABLES, shared(standardized)),
    "covariance": Kernel("everyday", TABLES, shared(covariance)),
    "heat equation": Kernel("everyday", GRIDS, shared(heat)),
    "differences": Kernel("everyday", VECTORS, shared(lambda _, x: x[1:] - x[:-1])),
    "logistic gradient": Kernel("everyday", TABLES, logistic),
    "spectral derivative": Kernel("everyday", GRIDS, spectral),
    "searchsorted": Kernel("everyday", SEARCHED, searched),
    "cross entropy": Kernel("everyday", SCORES, cross_entropy),
}
