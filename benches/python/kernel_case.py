"""The kernels of ``kernels.py``, and their implementations in each library."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from libraries import Library

#: The number of elements for all operands of the largest kernel, and the distance between the
#: starts of operands.
ELEMENTS, OFFSET = 10_500_000, 4096


class UnsupportedError(Exception):
    """A library cannot express a kernel."""


def identity(*results: Any) -> tuple[Any, ...]:
    """Return results as they are."""
    return results


@dataclass(frozen=True)
class Case:
    """A kernel in a library."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    #: Extract the part of the results on which all libraries must agree; signs and orders may
    #: differ.
    essence: Callable[..., tuple[Any, ...]] = identity
    #: The allowed difference relative to the largest number; `None` selects it by the dtype.
    tolerance: float | None = None


@cache
def numbers(dtype: str) -> Any:
    """Return normal numbers or small integers, whose slices are the operands of all kernels."""
    if dtype == "float64":
        return np.random.default_rng(0).standard_normal(ELEMENTS)
    if dtype == "int64":
        return np.random.default_rng(0).integers(-50, 50, ELEMENTS)
    return numbers("float64" if dtype == "float32" else "int64").astype(dtype)


@dataclass(frozen=True)
class Bench:
    """A library, and the data of a kernel."""

    name: str
    lib: Library
    shape: tuple[int, ...]
    dtype: str

    @property
    def xp(self) -> Any:
        """The functions of the Array API standard."""
        return self.lib.xp

    @property
    def kind(self) -> Any:
        """Return the dtype of the library."""
        return getattr(self.lib.xp, self.dtype)

    def by(self, **functions: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function for the library; both backends of nxla have the same function."""
        name = self.name if self.name in ("numpy", "jax") else "nxla"
        if name not in functions:
            raise UnsupportedError(name)
        return functions[name]

    def normal(self, *shape: int, operand: int = 0) -> Any:
        """Return normal numbers or small integers that differ between operands."""
        start = operand * OFFSET
        return numbers(self.dtype)[start : start + math.prod(shape)].reshape(shape)

    def positive(self, *shape: int) -> Any:
        """Return numbers of at least a tenth."""
        return np.abs(self.normal(*shape)) + np.asarray(0.1, self.dtype)

    def indices(self, count: int, below: int) -> Any:
        """Return positions, in the default index dtype of the library."""
        dtype = np.intp if self.name == "numpy" else np.int32
        return np.random.default_rng(1).integers(0, below, count).astype(dtype)

    def definite(self) -> Any:
        """Return a symmetric, positive definite matrix."""
        square = self.normal(*self.shape)
        return square @ square.T + len(square) * np.eye(len(square), dtype=self.dtype)


@dataclass(frozen=True)
class Kernel:
    """A kernel for all libraries."""

    family: str
    shapes: tuple[tuple[int, ...], ...]
    make: Callable[[Bench], Case]
    dtypes: tuple[str, ...] = ("f32", "f64")


def over(function: Callable[[Bench], Callable[..., Any]], operands: int = 1) -> Any:
    """Return a constructor of a kernel over normal numbers, given a selection of its code."""

    def make(b: Bench) -> Case:
        arrays = (b.normal(*b.shape, operand=operand) for operand in range(operands))
        return Case(function(b), tuple(arrays))

    return make


def shared(function: Callable[..., Any], operands: int = 1) -> Any:
    """Return a constructor of a kernel with the same code for all libraries."""
    return over(lambda b: lambda *arrays: function(b.xp, *arrays), operands)


def copied(function: Callable[..., Any]) -> Any:
    """Return a function that copies the result of NumPy, which is a view for this kernel."""

    def choose(b: Bench) -> Callable[..., Any]:
        if b.name == "numpy":
            return lambda x: function(np, x).copy(order="C")
        return lambda x: function(b.xp, x)

    return over(choose)
