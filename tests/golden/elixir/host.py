"""Elixir's own functions and special forms, as far as golden cases use them."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from golden.elixir.errors import ElixirError, Unsupported
from golden.elixir.inspect import inspect, to_string
from golden.elixir.syntax import Access, Alias, Call, Clauses, Node, keyword_items
from golden.elixir.values import Atom, ModuleName, Range, is_keyword, truthy

if TYPE_CHECKING:
    from golden.elixir.interpreter import Scope

    Run = Callable[[Node, "Scope"], Any]


def quotient(left: int, right: int) -> int:
    """Divide integers, rounding toward zero."""
    whole = abs(left) // abs(right)
    return whole if (left < 0) == (right < 0) else -whole


def remainder(left: int, right: int) -> int:
    """Return what `quotient` leaves."""
    return left - right * quotient(left, right)


def make_range(first: int, last: int) -> Range:
    """Make ``first..last``, which counts down if it has to."""
    return Range(first, last, 1 if first <= last else -1)


def function_and_options(rest: Sequence[Any]) -> tuple[Callable[[Any], Any], dict[str, Any]]:
    """Split the arguments of ``print_value``: an optional function, then optional options."""
    function: Callable[[Any], Any] = lambda shown: shown  # noqa: E731
    options: dict[str, Any] = {}
    for part in rest:
        if callable(part):
            function = part
        else:
            options = dict(part)
    return function, options


def print_line(value: Any, options: dict[str, Any]) -> None:
    """Print a value the way ``IO.inspect`` does."""
    label = f"{options['label']}: " if "label" in options else ""
    sys.stdout.write(f"{label}{inspect(value)}\n")


# --- special forms ---


def case(node: Call, scope: Scope, run: Run) -> Any:
    """``case value do pattern -> body … end``."""
    from golden.elixir.interpreter import select_clause

    value = run(node.args[0], scope)
    entries = keyword_items(node.args[-1])
    assert entries is not None
    body = entries["do"]
    assert isinstance(body, Clauses)
    chosen = select_clause(body.clauses, [value], scope)
    if chosen is None:
        raise ElixirError(f"no case clause matching: {inspect(value)}", "CaseClauseError")
    return run(chosen[0].body, chosen[1])


def _if(node: Call, scope: Scope, run: Run) -> Any:
    entries = keyword_items(node.args[1])
    assert entries is not None
    word = "do" if truthy(run(node.args[0], scope)) else "else"
    return run(entries[word], scope.inner({})) if word in entries else None


def _cond(node: Call, scope: Scope, run: Run) -> Any:
    entries = keyword_items(node.args[-1])
    assert entries is not None
    body = entries["do"]
    assert isinstance(body, Clauses)
    for clause in body.clauses:
        inner = scope.inner({})
        if truthy(run(clause.patterns[0], inner)):
            return run(clause.body, inner)
    raise ElixirError("no cond clause evaluated to a truthy value", "CondClauseError")


def _and(node: Call, scope: Scope, run: Run) -> Any:
    left = run(node.args[0], scope)
    return run(node.args[1], scope) if truthy(left) else left


def _or(node: Call, scope: Scope, run: Run) -> Any:
    left = run(node.args[0], scope)
    return left if truthy(left) else run(node.args[1], scope)


def _import(node: Call, scope: Scope, run: Run) -> Any:
    del scope, run
    target = node.args[0]
    return ModuleName(target.name) if isinstance(target, Alias) else None


def _update(node: Call, scope: Scope, run: Run) -> None:
    """``put_in(x[key], value)`` and the like: Python's assignment, which tensors refuse."""
    from golden.elixir import library

    place = node.args[0]
    if not isinstance(place, Access):
        raise Unsupported(f"update of {place}")
    library.update(run(place.container, scope), run(place.key, scope), pop=node.name == "pop_in")


SPECIAL: dict[str, Callable[..., Any]] = {
    "put_in": _update,
    "get_and_update_in": _update,
    "pop_in": _update,
    "case": case,
    "if": _if,
    "cond": _cond,
    "and": _and,
    "or": _or,
    "&&": _and,
    "||": _or,
    "import": _import,
    "alias": _import,
    "require": _import,
}


# --- functions ---


def fail(*args: Any) -> None:
    """Raise ``raise("text")``, or ``raise(Exception, "text")``."""
    if len(args) == 1:
        raise ElixirError(str(args[0]), "RuntimeError")
    raise ElixirError(str(args[1]), args[0].name)


def merge_options(options: Any, known: Any) -> Any:
    """Check options and fill in defaults: ``keyword!(opts, [:required, key: default])``."""
    if not is_keyword(options):
        raise ElixirError(f"expected a keyword list, got: {inspect(options)}", "ArgumentError")
    names = [item[0] if isinstance(item, tuple) else item for item in known]
    for key, _ in options:
        if key not in names:
            raise ElixirError(
                f"unknown key :{key} in {inspect(options)}, expected one of {inspect(names)}",
                "ArgumentError",
            )
    merged = dict(item for item in known if isinstance(item, tuple))
    merged.update(options)
    return list(merged.items())


def _assert_keys(options: Any, names: Any) -> Any:
    present = {key for key, _ in options}
    for name in names:
        if name not in present:
            raise ElixirError(
                f"expected key :{name} in keyword list, got: {inspect(options)}", "ArgumentError"
            )
    return options


def _tap(value: Any, function: Callable[..., Any]) -> Any:
    function(value)
    return value


def _stepped(bounds: Range, step: int) -> Range:
    return Range(bounds.first, bounds.last, step)


def _concatenate(left: Any, right: Any) -> str:
    if not isinstance(left, str) or not isinstance(right, str):
        raise ElixirError("construction of binary failed", "ArgumentError")
    return left + right


FUNCTIONS: dict[tuple[str, int], Callable[..., Any]] = {
    ("+", 2): operator.add,
    ("-", 2): operator.sub,
    ("*", 2): operator.mul,
    ("/", 2): operator.truediv,
    ("**", 2): operator.pow,
    ("div", 2): quotient,
    ("rem", 2): remainder,
    ("max", 2): max,
    ("min", 2): min,
    ("abs", 1): abs,
    ("==", 2): operator.eq,
    ("!=", 2): operator.ne,
    ("<", 2): operator.lt,
    (">", 2): operator.gt,
    ("<=", 2): operator.le,
    (">=", 2): operator.ge,
    ("-", 1): operator.neg,
    ("not", 1): operator.not_,
    ("!", 1): lambda value: not truthy(value),
    ("++", 2): operator.add,
    ("<>", 2): _concatenate,
    ("..", 0): lambda: Range(0, -1, 1),
    ("..", 2): make_range,
    ("//", 2): _stepped,
    ("raise", 1): fail,
    ("raise", 2): fail,
    ("inspect", 1): inspect,
    ("to_string", 1): to_string,
    ("elem", 2): operator.getitem,
    ("tuple_size", 1): len,
    ("length", 1): len,
    ("hd", 1): lambda items: items[0],
    ("tl", 1): lambda items: items[1:],
    ("tap", 2): _tap,
    ("then", 2): lambda value, function: function(value),
    ("keyword!", 2): merge_options,
    ("assert_keys", 2): _assert_keys,
}

#: What numerical code shares.
EVERYWHERE = [
    ("..", 2), ("//", 2), ("raise", 1), ("raise", 2), ("inspect", 1), ("elem", 2), ("tap", 2),
    ("then", 2), ("keyword!", 2), ("assert_keys", 2), ("<>", 2), ("tuple_size", 1), ("length", 1),
]  # fmt: skip


# --- modules ---


def _reduce(items: Any, *rest: Any) -> Any:
    source = iter(items)
    *initial, function = rest
    total = initial[0] if initial else next(source)
    for item in source:
        total = function(item, total)
    return total


def _map_reduce(items: Any, total: Any, function: Callable[..., Any]) -> Any:
    made = []
    for item in items:
        result, total = function(item, total)
        made.append(result)
    return made, total


def _keyword_get(options: Any, key: Atom, default: Any = None) -> Any:
    return next((value for name, value in options if name == key), default)


MODULES: dict[tuple[str, str], Callable[..., Any]] = {
    ("Enum", "reduce"): _reduce,
    ("Enum", "map"): lambda items, function: [function(item) for item in items],
    ("Enum", "map_reduce"): _map_reduce,
    ("Enum", "to_list"): list,
    ("Enum", "count"): len,
    ("Enum", "sum"): sum,
    ("Enum", "with_index"): lambda items: [(item, place) for place, item in enumerate(items)],
    ("Enum", "zip"): lambda left, right: list(zip(left, right, strict=False)),
    ("Enum", "at"): operator.getitem,
    ("Enum", "reverse"): lambda items: list(reversed(list(items))),
    ("Keyword", "get"): _keyword_get,
    ("Keyword", "fetch!"): _keyword_get,
    ("List", "to_tuple"): tuple,
    ("Tuple", "to_list"): list,
    ("Tuple", "append"): lambda items, item: (*items, item),
    ("Map", "get"): lambda items, key, default=None: items.get(key, default),
    ("Map", "put"): lambda items, key, value: {**items, key: value},
    ("Map", "new"): dict,
    ("IO", "iodata_to_binary"): lambda data: data,
}


def call(module: str, name: str, args: Sequence[Any]) -> Any:
    """Call a function of one of Elixir's modules."""
    found = MODULES.get((module, name))
    if found is None:
        raise Unsupported(f"{module}.{name}/{len(args)}")
    return found(*args)
