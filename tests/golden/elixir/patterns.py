"""Pattern matching: whether a value matches, and the values of the variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import nxla as nx
from golden.elixir.errors import Unsupported
from golden.elixir.syntax import Alias, Call, List, Literal, Map, Node, Tuple, Variable
from golden.elixir.values import Atom, Range, Struct

#: Names of the structs of Nx that a pattern may match; a node of a graph matches them too.
TENSOR_STRUCTS = {"T", "Nx.Tensor", "Tensor"}
EXPR_STRUCTS = {"Expr", "Nx.Defn.Expr"}


class _Bound(dict[str, Any]):
    """The variables that a pattern binds. A repeated variable must match equal values."""

    def __init__(self, known: Mapping[str, Any]) -> None:
        super().__init__()
        #: Variables of the surrounding scope, which pinned names refer to.
        self.known = known

    def bind(self, name: str, value: Any) -> bool:
        if name in self and not _same(self[name], value):
            return False
        self[name] = value
        return True


def match(
    pattern: Node, value: Any, known: Mapping[str, Any] | None = None
) -> dict[str, Any] | None:
    """Return the variables of a match, or None if the value does not match.

    `known` are the variables that ``^name`` may refer to.
    """
    bound = _Bound(known or {})
    return dict(bound) if _fits(pattern, value, bound) else None


def _same(left: Any, right: Any) -> bool:
    return left is right or (type(left) is type(right) and bool(left == right))


def names(pattern: Node) -> list[str]:
    """List the variables of a pattern, in order."""
    match pattern:
        case Variable(name):
            return [] if name == "_" else [name]
        case Tuple(items):
            return [name for item in items for name in names(item)]
        case List(items, tail):
            return [n for item in (*items, *([tail] if tail else ())) for n in names(item)]
        case Map(pairs):
            return [name for _, item in pairs for name in names(item)]
        case Call("=", (left, right)):
            return names(left) + names(right)
        case Call("\\\\", (left, _)):
            return names(left)
    return []


def _fits(pattern: Node, value: Any, bound: _Bound) -> bool:
    match pattern:
        case Variable("_"):
            return True
        case Variable(name):
            return bound.bind(name, value)
        case Literal(expected):
            return _same(expected, value)
        case Alias(name):
            return getattr(value, "name", None) == name
        case Tuple(items):
            return isinstance(value, tuple) and _all_fit(items, value, bound)
        case List(items, tail):
            return isinstance(value, list) and _list_fits(items, tail, value, bound)
        case Map():
            return _map_fits(pattern, value, bound)
        case Call("=", (left, right)):
            return _fits(left, value, bound) and _fits(right, value, bound)
        case Call("\\\\", (left, _)):
            return _fits(left, value, bound)
        case Call("^", (Variable(name),)):
            return _same(bound.known[name], value)
        case Call("<>", (Literal(str() as start), rest)):
            starts = isinstance(value, str) and value.startswith(start)
            return starts and _fits(rest, value[len(start) :], bound)
        case Call("//", (Call("..", (first, last)), step)) if isinstance(value, Range):
            ends = (first, value.first), (last, value.last), (step, value.step)
            return all(_fits(pattern, end, bound) for pattern, end in ends)
        case Call("..", (first, last)) if isinstance(value, Range):
            return _fits(first, value.first, bound) and _fits(last, value.last, bound)
        case Call("-", (Literal(int() | float() as number),)):
            return _same(-number, value)
        case Call(".." | "//"):
            return False
    raise Unsupported(f"pattern {pattern}")


def _all_fit(patterns: tuple[Node, ...], values: Any, bound: _Bound) -> bool:
    return len(patterns) == len(values) and all(
        _fits(p, v, bound) for p, v in zip(patterns, values, strict=True)
    )


def _list_fits(items: tuple[Node, ...], tail: Node | None, value: list[Any], bound: _Bound) -> bool:
    if tail is None:
        return _all_fit(items, value, bound)
    count = len(items)
    if len(value) < count or not _all_fit(items, value[:count], bound):
        return False
    return _fits(tail, value[count:], bound)


def _map_fits(pattern: Map, value: Any, bound: _Bound) -> bool:
    fields = _fields(pattern.struct, value)
    if fields is None:
        return False
    for key, inner in pattern.pairs:
        pinned = isinstance(key, Call) and key.name == "^" and isinstance(key.args[0], Variable)
        if not pinned and not isinstance(key, Literal):
            raise Unsupported(f"key {key} in a pattern")
        name = key.value if isinstance(key, Literal) else bound.known[key.args[0].name]
        if name not in fields or not _fits(inner, fields[name], bound):
            return False
    return True


def _fields(struct: str | None, value: Any) -> dict[str, Any] | None:
    """Return the fields of a map, a struct, a tensor, or a node of a graph."""
    if struct in TENSOR_STRUCTS:
        if isinstance(value, nx.graph.Node):
            return {"data": value, "shape": tuple(value.shape)}
        return {"shape": tuple(value.shape)} if isinstance(value, nx.Tensor | nx.Expr) else None
    if struct in EXPR_STRUCTS:
        return _node_fields(value) if isinstance(value, nx.graph.Node) else None
    if isinstance(value, Struct):
        return value.fields if struct in (None, value.name) else None
    return value if struct is None and isinstance(value, dict) else None


def _node_fields(node: nx.graph.Node) -> dict[str, Any]:
    args: list[Any] = list(node.args)
    if node.op == "metadata":
        # Nx keeps a map next to the operand; `library.metadata` writes its keys into the note.
        args = [args[0], {Atom(key): True for key in (node.note or "").split()}]
    return {"op": Atom(node.op), "args": args}
