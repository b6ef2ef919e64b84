"""Printed values, as ``inspect`` and string interpolation return them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import nxla as nx
from golden.elixir.values import Atom, ModuleName, Range, Struct, is_keyword


def to_string(value: Any) -> str:
    """Return the text of ``#{value}`` in a string."""
    return str(value) if isinstance(value, str) else inspect(value)


def inspect(value: Any) -> str:
    """Return a value printed in Elixir's syntax, with tensors printed by nxla."""
    match value:
        case None:
            return "nil"
        case bool():
            return str(value).lower()
        case nx.Tensor() | nx.Expr():
            return str(value)
        case Atom():
            return f":{value}"
        case str():
            return f'"{value}"'
        case tuple():
            return _between("{", map(inspect, value), "}")
        case list() if value and is_keyword(value):
            return _between("[", (f"{key}: {inspect(item)}" for key, item in value), "]")
        case list():
            return _between("[", map(inspect, value), "]")
        case dict():
            return _between("%{", (f"{k}: {inspect(v)}" for k, v in value.items()), "}")
        case Range(first, last, step):
            return f"{first}..{last}" + ("" if step == 1 else f"//{step}")
        case ModuleName(name):
            return name
        case Struct(name, fields):
            return f"%{name}" + inspect(fields)[1:]
    return str(value)


def _between(opening: str, items: Iterable[str], closing: str) -> str:
    """Join items; further lines of an item are indented by the bracket."""
    text = ", ".join(items)
    return opening + text.replace("\n", "\n" + " " * len(opening)) + closing
