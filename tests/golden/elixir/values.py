"""Values of Elixir without a Python counterpart.

Tuples, lists, maps, numbers and strings are Python's types. A keyword list is a list of pairs whose
first parts are atoms. The atoms true, false and nil are True, False and None. Tensors are tensors
of nxla.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import nxla as nx
from golden.elixir.errors import ElixirError


class Atom(str):
    """An atom. An atom as a key of a map becomes a string key of a Python dict."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f":{self}"


@dataclass(frozen=True)
class Range:
    """Integers from `first` to `last`, both included."""

    first: int
    last: int
    step: int

    def __iter__(self) -> Any:
        return iter(range(self.first, self.last + (1 if self.step > 0 else -1), self.step))

    def __len__(self) -> int:
        return len(range(self.first, self.last + (1 if self.step > 0 else -1), self.step))


@dataclass(frozen=True)
class Struct:
    """A struct other than a tensor, such as ``%Nx.Mesh{}``."""

    name: str
    fields: dict[str, Any]


@dataclass(frozen=True)
class ModuleName:
    """A module that is referred to by its name."""

    name: str


@dataclass(frozen=True)
class FunctionValue:
    """A function of Elixir, which Python can call."""

    name: str
    #: The number of arguments; None if the number depends on defaults.
    arity: int | None
    run: Callable[..., Any]

    @property
    def __name__(self) -> str:
        return self.name

    def __call__(self, *args: Any) -> Any:
        """Call the function."""
        if self.arity not in (None, len(args)):
            raise ElixirError(
                f"{self.name}/{self.arity} got {len(args)} arguments", "BadArityError"
            )
        return self.run(*args)


def is_keyword(value: Any) -> bool:
    """Return whether a value is a keyword list."""
    return isinstance(value, list) and all(
        isinstance(x, tuple) and len(x) == 2 and isinstance(x[0], Atom) for x in value
    )


def truthy(value: Any) -> bool:
    """Return whether a condition is true in host code."""
    return value is not None and value is not False


@dataclass(frozen=True)
class Foreign:
    """A traced value in a loop that does not carry the value; only the type is known."""

    shape: tuple[int, ...]
    dtype: Any
    names: tuple[Any, ...]

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)


def foreign(value: Any) -> Any:
    """Return a value of an outer scope for the body of a loop."""
    if isinstance(value, nx.Expr):
        return Foreign(tuple(value.shape), value.dtype, tuple(value.names))
    if isinstance(value, tuple):
        return tuple(foreign(item) for item in value)
    if isinstance(value, dict):
        return {key: foreign(item) for key, item in value.items()}
    return value
