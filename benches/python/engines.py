"""What is compared: libraries behind one small interface."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

Array = Any
Function = Callable[..., Any]

REFERENCE = "jax"
"""The engine that the others are compared with."""


class Engine(Protocol):
    """A library, as far as the tasks need it."""

    name: str
    xp: Any
    """The namespace with the functions of the Array API standard."""

    def tensor(self, values: np.ndarray[Any, Any]) -> Array:
        """Return the values where the engine computes."""

    def compiled(self, function: Function) -> Function:
        """Return the function in the form that runs fastest."""

    def gradient(self, function: Function) -> Function | None:
        """Return the gradient for the first argument, if the engine has such a thing."""

    def traced(self, function: Function, arguments: Sequence[Array]) -> Callable[[], object] | None:
        """Return a call that traces the function and does no more."""

    def wait(self, result: Array) -> None:
        """Return when the result, a tensor or a list of them, has been computed."""


class Numpy:
    """Runs functions as they are."""

    name = "numpy"
    xp = np

    def tensor(self, values: np.ndarray[Any, Any]) -> Array:
        return values

    def compiled(self, function: Function) -> Function:
        return function

    def gradient(self, function: Function) -> Function | None:
        return None

    def traced(self, function: Function, arguments: Sequence[Array]) -> Callable[[], object] | None:
        return None

    def wait(self, result: Array) -> None:
        pass


class Jax:
    """JAX on the CPU."""

    name = "jax"

    def __init__(self) -> None:
        import jax

        self.jax = jax
        self.xp = jax.numpy

    def tensor(self, values: np.ndarray[Any, Any]) -> Array:
        return self.jax.block_until_ready(self.xp.asarray(values))

    def compiled(self, function: Function) -> Function:
        return self.jax.jit(function)

    def gradient(self, function: Function) -> Function | None:
        return self.jax.grad(function)

    def traced(self, function: Function, arguments: Sequence[Array]) -> Callable[[], object] | None:
        # A new function object each time, since traces are kept by object.
        return lambda: self.jax.make_jaxpr(lambda *values: function(*values))(*arguments)

    def wait(self, result: Array) -> None:
        self.jax.block_until_ready(result)


class Nxla:
    """This project, with one of its compilers."""

    def __init__(self, compiler: str) -> None:
        import nxla as nx

        self.name = f"nxla {compiler}"
        self.nx = nx
        self.xp = nx
        self.compiler = compiler

    def tensor(self, values: np.ndarray[Any, Any]) -> Array:
        # An identity puts the values where this compiler's results live.
        result = self.nx.jit(lambda x: x + 0, compiler=self.compiler)(self.nx.asarray(values))
        self.wait(result)
        return result

    def compiled(self, function: Function) -> Function:
        return self.nx.jit(function, compiler=self.compiler)

    def gradient(self, function: Function) -> Function | None:
        return self.nx.grad(function)

    def traced(self, function: Function, arguments: Sequence[Array]) -> Callable[[], object] | None:
        return lambda: self.nx.debug_expr(function)(*arguments)

    def wait(self, result: Array) -> None:
        for leaf in result if isinstance(result, list) else [result]:
            leaf.block_until_ready()


ENGINES: list[Callable[[], Engine]] = [
    Jax,
    Numpy,
    lambda: Nxla("evaluator"),
    lambda: Nxla("xla"),
]
