"""The syntax tree that the parser builds and the interpreter runs.

As in Elixir's own trees, operators, keywords such as ``if`` and calls of local functions are all a
`Call`. A do-block is the last argument, a list of pairs ``(:do, body)``, ``(:else, body)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


class Node:
    """An expression."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Literal(Node):
    """A number, a string, an atom, true, false or nil."""

    value: Any


@dataclass(frozen=True, slots=True)
class Text(Node):
    """A string with expressions inside."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Variable(Node):
    """A variable; in a pattern, a name to bind."""

    name: str
    line: int = 0


@dataclass(frozen=True, slots=True)
class Alias(Node):
    """The name of a module."""

    name: str


@dataclass(frozen=True, slots=True)
class Attribute(Node):
    """``@name``."""

    name: str


@dataclass(frozen=True, slots=True)
class Tuple(Node):
    """``{a, b}``."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class List(Node):
    """``[a, b]``, and keyword lists, whose items are pairs."""

    items: tuple[Node, ...]
    tail: Node | None = None


@dataclass(frozen=True, slots=True)
class Map(Node):
    """``%{a: 1}``, ``%{map | a: 1}`` and ``%Struct{a: 1}``."""

    pairs: tuple[tuple[Node, Node], ...]
    base: Node | None = None
    struct: str | None = None


@dataclass(frozen=True, slots=True)
class Call(Node):
    """``name(arguments)`` without a module, or an operator."""

    name: str
    args: tuple[Node, ...]
    line: int = 0


@dataclass(frozen=True, slots=True)
class Remote(Node):
    """``target.name(arguments)``; without parentheses it may be a field."""

    target: Node
    name: str
    args: tuple[Node, ...]
    parentheses: bool


@dataclass(frozen=True, slots=True)
class Apply(Node):
    """``function.(arguments)``."""

    function: Node
    args: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Access(Node):
    """``container[key]``."""

    container: Node
    key: Node


@dataclass(frozen=True, slots=True)
class Clause:
    """``patterns when guard -> body``."""

    patterns: tuple[Node, ...]
    guard: Node | None
    body: Node


@dataclass(frozen=True, slots=True)
class Clauses(Node):
    """The clauses with arrows between ``do`` and ``end``."""

    clauses: tuple[Clause, ...]


@dataclass(frozen=True, slots=True)
class Function(Node):
    """``fn … -> … end``."""

    clauses: tuple[Clause, ...]


@dataclass(frozen=True, slots=True)
class Capture(Node):
    """``&(…)``."""

    body: Node


@dataclass(frozen=True, slots=True)
class CaptureArgument(Node):
    """``&1``."""

    position: int


@dataclass(frozen=True, slots=True)
class Sigil(Node):
    """``~NAME[text]modifiers``."""

    name: str
    text: str
    modifiers: str


@dataclass(frozen=True, slots=True)
class Block(Node):
    """A sequence of expressions."""

    body: tuple[Node, ...]


def keyword_items(node: Node) -> dict[str, Node] | None:
    """Return the entries of a keyword list as written; None if it is something else."""
    if not isinstance(node, List):
        return None
    entries: dict[str, Node] = {}
    for item in node.items:
        pair = isinstance(item, Tuple) and len(item.items) == 2
        if not pair or not isinstance(item.items[0], Literal):
            return None
        entries[str(item.items[0].value)] = item.items[1]
    return entries
