"""Pattern matching: which variables a value binds, if it fits at all."""

from __future__ import annotations

from typing import Any

import nxla as nx
from golden.elixir.errors import Unsupported
from golden.elixir.syntax import Alias, Call, List, Literal, Map, Node, Tuple, Variable
from golden.elixir.values import Atom, Struct

#: Structs of Nx that a source may look into; both are seen in a node of a graph.
TENSOR_STRUCTS = {"T", "Nx.Tensor", "Tensor"}
EXPR_STRUCTS = {"Expr", "Nx.Defn.Expr"}


def match(pattern: Node, value: Any) -> dict[str, Any] | None:
    """Return what the pattern binds; None if the value does not fit."""
    bound: dict[str, Any] = {}
    return bound if _fits(pattern, value, bound) else None


def names(pattern: Node) -> list[str]:
    """List the variables of a pattern, in order."""
    match pattern:
        case Variable(name):
            return [] if name == "_" else [name]
        case Tuple(items):
            return [name for item in items for name in names(item)]
        case Call("=", (left, _)):
            return names(left)
    return []


def _fits(pattern: Node, value: Any, bound: dict[str, Any]) -> bool:
    match pattern:
        case Variable("_"):
            return True
        case Variable(name):
            bound[name] = value
            return True
        case Literal(expected):
            return type(expected) is type(value) and bool(expected == value)
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
    raise Unsupported(f"pattern {pattern}")


def _all_fit(patterns: tuple[Node, ...], values: Any, bound: dict[str, Any]) -> bool:
    return len(patterns) == len(values) and all(
        _fits(p, v, bound) for p, v in zip(patterns, values, strict=True)
    )


def _list_fits(
    items: tuple[Node, ...], tail: Node | None, value: list[Any], bound: dict[str, Any]
) -> bool:
    if tail is None:
        return _all_fit(items, value, bound)
    count = len(items)
    if len(value) < count or not _all_fit(items, value[:count], bound):
        return False
    return _fits(tail, value[count:], bound)


def _map_fits(pattern: Map, value: Any, bound: dict[str, Any]) -> bool:
    fields = _fields(pattern.struct, value)
    if fields is None:
        return False
    for key, inner in pattern.pairs:
        assert isinstance(key, Literal)
        if key.value not in fields or not _fits(inner, fields[key.value], bound):
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
