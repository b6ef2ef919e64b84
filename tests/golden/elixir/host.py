"""The functions and special forms of Elixir that golden cases use."""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import nxla as nx
from golden.elixir import forms
from golden.elixir.errors import ElixirError, Unsupported
from golden.elixir.inspect import inspect, to_string
from golden.elixir.standard import items, make_range, merge_options, quotient, remainder
from golden.elixir.syntax import Call, Clauses, Node, keyword_items
from golden.elixir.values import Atom, ModuleName, Range, Struct, truthy

if TYPE_CHECKING:
    from golden.elixir.interpreter import Scope

    Run = Callable[[Node, "Scope"], Any]


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


def _unless(node: Call, scope: Scope, run: Run) -> Any:
    entries = keyword_items(node.args[1])
    assert entries is not None
    word = "else" if truthy(run(node.args[0], scope)) else "do"
    return run(entries[word], scope.inner({})) if word in entries else None


SPECIAL: dict[str, Callable[..., Any]] = {
    "case": case,
    "if": _if,
    "unless": _unless,
    "cond": _cond,
    "and": _and,
    "or": _or,
    "&&": _and,
    "||": _or,
    **forms.SPECIAL,
}


# --- functions ---


def fail(*args: Any) -> None:
    """Raise ``raise("text")``, or ``raise(Exception, "text")``."""
    if len(args) == 1:
        raise ElixirError(str(args[0]), "RuntimeError")
    raise ElixirError(str(args[1]), args[0].name)


def _assert_keys(options: Any, names: Any) -> Any:
    present = {key for key, _ in options}
    for name in names:
        if name not in present:
            raise ElixirError(
                f"expected key :{name} in keyword list, got: {inspect(options)}", "ArgumentError"
            )
    return options


def _kind(*kinds: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kinds) and not isinstance(value, bool)


def _concatenated(left: Any, right: Any) -> Any:
    return left + right


def _removed(left: Any, right: Any) -> Any:
    left = list(left)
    for item in right:
        if item in left:
            left.remove(item)
    return left


def _element(container: Any, index: int) -> Any:
    if not 0 <= index < len(container):
        raise ElixirError(f"element {index} does not exist", "ArgumentError")
    return container[index]


def _replaced(container: Any, index: int, value: Any) -> Any:
    return (*container[:index], value, *container[index + 1 :])


def _divide(left: Any, right: Any) -> Any:
    if right == 0:
        raise ElixirError("bad argument in arithmetic expression", "ArithmeticError")
    return left / right


def _get_in(container: Any, path: Any) -> Any:
    from golden.elixir import library

    for key in path:
        container = None if container is None else library.access(container, key)
    return container


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
    ("/", 2): _divide,
    ("**", 2): operator.pow,
    ("div", 2): quotient,
    ("rem", 2): remainder,
    ("max", 2): max,
    ("min", 2): min,
    ("abs", 1): abs,
    ("round", 1): lambda x: math.floor(x + 0.5) if x >= 0 else math.ceil(x - 0.5),
    ("trunc", 1): math.trunc,
    ("floor", 1): math.floor,
    ("ceil", 1): math.ceil,
    ("==", 2): operator.eq,
    ("!=", 2): operator.ne,
    ("===", 2): lambda a, b: type(a) is type(b) and a == b,
    ("!==", 2): lambda a, b: type(a) is not type(b) or a != b,
    ("<", 2): operator.lt,
    (">", 2): operator.gt,
    ("<=", 2): operator.le,
    (">=", 2): operator.ge,
    ("-", 1): operator.neg,
    ("+", 1): operator.pos,
    ("not", 1): operator.not_,
    ("!", 1): lambda value: not truthy(value),
    ("++", 2): _concatenated,
    ("--", 2): _removed,
    ("in", 2): lambda item, collection: item in items(collection),
    ("<>", 2): _concatenate,
    ("&&&", 2): operator.and_,
    ("|||", 2): operator.or_,
    ("<<<", 2): operator.lshift,
    (">>>", 2): operator.rshift,
    ("..", 0): lambda: Range(0, -1, 1),
    ("..", 2): make_range,
    ("//", 2): _stepped,
    ("raise", 1): fail,
    ("raise", 2): fail,
    ("inspect", 1): inspect,
    ("inspect", 2): lambda value, _options: inspect(value),
    ("to_string", 1): to_string,
    ("elem", 2): _element,
    ("put_elem", 3): _replaced,
    ("get_in", 2): _get_in,
    ("tuple_size", 1): len,
    ("map_size", 1): len,
    ("length", 1): len,
    ("hd", 1): lambda items: items[0],
    ("tl", 1): lambda items: items[1:],
    ("is_integer", 1): _kind(int),
    ("is_float", 1): _kind(float),
    ("is_number", 1): _kind(int, float),
    ("is_boolean", 1): lambda value: isinstance(value, bool),
    ("is_nil", 1): lambda value: value is None,
    ("is_atom", 1): lambda value: value is None or isinstance(value, bool | Atom | ModuleName),
    ("is_binary", 1): lambda x: isinstance(x, str | bytes) and not isinstance(x, Atom),
    ("is_list", 1): _kind(list),
    ("is_tuple", 1): _kind(tuple),
    ("is_map", 1): _kind(dict, Struct, nx.Tensor, nx.Expr),
    ("is_struct", 1): _kind(Struct, nx.Tensor, nx.Expr),
    ("is_function", 1): callable,
    ("is_function", 2): lambda f, arity: callable(f) and getattr(f, "arity", arity) == arity,
    ("is_map_key", 2): lambda container, key: key in container,
    ("apply", 2): lambda function, args: function(*args),
    ("self", 0): lambda: Atom("self"),
    ("send", 2): forms.send,
    ("tap", 2): _tap,
    ("then", 2): lambda value, function: function(value),
    ("keyword!", 2): merge_options,
    ("assert_keys", 2): _assert_keys,
}


def kernel(name: str, args: Sequence[Any]) -> Any:
    """Call a function of ``Kernel`` by its name."""
    found = FUNCTIONS.get((name, len(args)))
    if found is None:
        raise Unsupported(f"Kernel.{name}/{len(args)}")
    return found(*args)


#: Functions that are also available in numerical code.
EVERYWHERE = [
    ("..", 2), ("//", 2), ("raise", 1), ("raise", 2), ("inspect", 1), ("elem", 2), ("tap", 2),
    ("then", 2), ("keyword!", 2), ("assert_keys", 2), ("<>", 2), ("tuple_size", 1), ("length", 1),
]  # fmt: skip
