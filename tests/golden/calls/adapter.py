"""How a call of Nx becomes a call of nxla.

An `Adapter` names the function of nxla, its options, and the defaults that differ from Nx (`sort`
uses the first axis in Nx, and the last one in nxla). Unknown options are passed on, so that the
function rejects them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import nxla as nx
from golden.values import Atom, Keyword, Range, Type, dtype_name

#: Atoms that stand for numbers.
NUMBERS = {"nan": float("nan"), "infinity": float("inf"), "neg_infinity": float("-inf")}


@dataclass(frozen=True)
class Adapter:
    """A function of Nx, and its counterpart in nxla."""

    function: Callable[..., Any]
    #: The names of Nx's options in nxla.
    options: Mapping[str, str] = field(default_factory=dict)
    #: Values of missing options, by their names in nxla.
    defaults: Mapping[str, Any] = field(default_factory=dict)
    #: True if no program computes the result; then one backend is enough.
    host: bool = False

    def __call__(self, args: list[Any], options: Mapping[str, Any]) -> Any:
        """Call the function of nxla with the arguments and options of a call of Nx."""
        given = {self.options.get(key, key): plain(value) for key, value in options.items()}
        # Every option with a dtype uses the same names.
        if isinstance(given.get("dtype"), str):
            given["dtype"] = dtype_name(given["dtype"])
        return self.function(*(plain(x) for x in args), **{**self.defaults, **given})


def plain(value: Any) -> Any:
    """Convert atoms and dtypes to strings, ranges to slices, and keyword lists to pairs."""
    if isinstance(value, Atom):
        return NUMBERS.get(value.name, value.name)
    if isinstance(value, Type):
        return value.dtype
    if isinstance(value, Range):
        return range(value.first, value.last + (1 if value.step > 0 else -1), value.step)
    if isinstance(value, Keyword):
        return [(key, plain(item)) for key, item in value.items]
    if isinstance(value, list):
        return [plain(x) for x in value]
    if isinstance(value, tuple):
        return tuple(plain(x) for x in value)
    return value


def nxla_function(name: str) -> Callable[..., Any]:
    """Return the function of nxla with this name, looked up when it is called."""

    def call(*args: Any, **options: Any) -> Any:
        found: Any = nx
        for part in name.split("."):
            found = getattr(found, part)
        return found(*args, **options)

    call.__name__ = name
    return call


def adapt(
    name: str | Callable[..., Any],
    options: Mapping[str, str] | None = None,
    *,
    host: bool = False,
    **defaults: Any,
) -> Adapter:
    """Create an adapter of a function of nxla, or of a function for this adapter only."""
    function = nxla_function(name) if isinstance(name, str) else name
    return Adapter(function, options or {}, defaults, host)
