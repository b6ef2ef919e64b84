"""Special forms of Elixir, whose arguments are not evaluated before the call."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from golden.elixir.errors import ElixirError, Unsupported
from golden.elixir.inspect import inspect
from golden.elixir.patterns import match
from golden.elixir.standard import items
from golden.elixir.syntax import (
    Access,
    Alias,
    Call,
    Clauses,
    List,
    Literal,
    Node,
    Remote,
    Variable,
    keyword_items,
)  # fmt: skip
from golden.elixir.values import Atom, ModuleName, truthy

if TYPE_CHECKING:
    from golden.elixir.interpreter import Scope

    Run = Callable[[Node, "Scope"], Any]

#: The messages that the process has sent to itself.
_mailbox: deque[Any] = deque()


def send(_target: Any, message: Any) -> Any:
    """Add a message to the messages that ``receive`` reads."""
    _mailbox.append(message)
    return message


def _options(node: Call) -> tuple[tuple[Node, ...], dict[str, Node]]:
    """Split the arguments of a form into expressions and keyword arguments."""
    entries: dict[str, Node] = {}
    count = len(node.args)
    while count and (found := keyword_items(node.args[count - 1])) is not None:
        entries = {**found, **entries}
        count -= 1
    return node.args[:count], entries


def _choose(clauses: Node, values: list[Any], scope: Scope, run: Run) -> tuple[bool, Any]:
    """Run the first matching clause; return whether one matched."""
    from golden.elixir.interpreter import select_clause

    assert isinstance(clauses, Clauses)
    chosen = select_clause(clauses.clauses, values, scope)
    return (False, None) if chosen is None else (True, run(chosen[0].body, chosen[1]))


def _with(node: Call, scope: Scope, run: Run) -> Any:
    steps, entries = _options(node)
    inner = scope.inner({})
    for step in steps:
        if not (isinstance(step, Call) and step.name == "<-"):
            run(step, inner)
            continue
        value = run(step.args[1], inner)
        bound = match(step.args[0], value, inner.variables)
        if bound is not None:
            inner.variables.update(bound)
            continue
        if "else" not in entries:
            return value
        fits, result = _choose(entries["else"], [value], scope, run)
        if not fits:
            raise ElixirError(f"no with clause matching: {inspect(value)}", "WithClauseError")
        return result
    return run(entries["do"], inner)


def _for(node: Call, scope: Scope, run: Run) -> Any:
    steps, entries = _options(node)
    scopes = [scope.inner({})]
    for step in steps:
        if isinstance(step, Call) and step.name == "<-":
            pattern, source = step.args
            scopes = [
                outer.inner(bound)
                for outer in scopes
                for item in items(run(source, outer))
                if (bound := match(pattern, item, outer.variables)) is not None
            ]
        else:
            scopes = [inner for inner in scopes if truthy(run(step, inner))]
    if "reduce" in entries:
        total = run(entries["reduce"], scope)
        for inner in scopes:
            _, total = _choose(entries["do"], [total], inner, run)
        return total
    made = [run(entries["do"], inner) for inner in scopes]
    if "uniq" in entries:
        made = list(dict.fromkeys(made))
    if "into" not in entries:
        return made
    target = run(entries["into"], scope)
    return {**target, **dict(made)} if isinstance(target, dict) else target + made


def _try(node: Call, scope: Scope, run: Run) -> Any:
    _, entries = _options(node)
    try:
        return run(entries["do"], scope.inner({}))
    except ElixirError as raised:
        if "rescue" not in entries:
            raise
        return _rescued(raised, entries["rescue"], scope, run)
    finally:
        if "after" in entries:
            run(entries["after"], scope.inner({}))


def _rescued(raised: ElixirError, clauses: Node, scope: Scope, run: Run) -> Any:
    assert isinstance(clauses, Clauses)
    for clause in clauses.clauses:
        pattern = clause.patterns[0]
        bound: dict[str, Any] = {}
        if isinstance(pattern, Call) and pattern.name == "in":
            name, pattern = pattern.args
            bound = match(name, raised) or {}
        elif isinstance(pattern, Variable):
            bound, pattern = match(pattern, raised) or {}, List(())
        wanted = pattern.items if isinstance(pattern, List) else (pattern,)
        names = [item.name for item in wanted if isinstance(item, Alias)]
        if not names or raised.exception in names:
            return run(clause.body, scope.inner(bound))
    raise raised


def _receive(node: Call, scope: Scope, run: Run) -> Any:
    _, entries = _options(node)
    if not _mailbox:
        raise ElixirError("no message has been sent", "RuntimeError")
    return _choose(entries["do"], [_mailbox.popleft()], scope, run)[1]


def _matches(node: Call, scope: Scope, run: Run) -> bool:
    pattern, value = node.args
    return match(pattern, run(value, scope), scope.variables) is not None


# --- names of modules ---


def _alias(node: Call, scope: Scope, run: Run) -> Any:
    del run
    target, *options = node.args
    if not isinstance(target, Alias):
        return None
    given = keyword_items(options[0]) if options else None
    short = given["as"] if given else None
    name = short.name if isinstance(short, Alias) else target.name.rsplit(".", 1)[-1]
    full = scope.module.resolve(target.name)
    scope.module.aliases[name] = full
    return ModuleName(full)


def _import(node: Call, scope: Scope, run: Run) -> Any:
    del run
    target = node.args[0]
    if not isinstance(target, Alias):
        return None
    full = scope.module.resolve(target.name)
    scope.module.imports.append(full)
    return ModuleName(full)


def _define_module(node: Call, scope: Scope, run: Run) -> Any:
    del run
    from golden.elixir.modules import load_body

    target, entries = node.args[0], keyword_items(node.args[1])
    assert isinstance(target, Alias)
    assert entries is not None
    scope.module.modules[target.name] = load_body(target.name, entries["do"], scope.builtins)
    return ModuleName(target.name)


# --- positions inside containers ---


def _path(target: Node, scope: Scope, run: Run) -> tuple[Any, list[Any]]:
    """Return the container of a position, and the keys that lead to it."""
    if isinstance(target, Access):
        container, keys = _path(target.container, scope, run)
        return container, [*keys, run(target.key, scope)]
    if isinstance(target, Remote) and not target.parentheses:
        container, keys = _path(target.target, scope, run)
        return container, [*keys, Atom(target.name)]
    return run(target, scope), []


def _changed(container: Any, keys: list[Any], change: Callable[[Any], Any]) -> Any:
    from golden.elixir import library

    if not keys:
        return change(container)
    if not isinstance(container, dict | list):
        # Python has item assignment, which Nx does not have.
        library.update(container, keys[0], pop=False)
        return container
    inner = _changed(library.access(container, keys[0]), keys[1:], change)
    if isinstance(container, dict):
        return {**container, keys[0]: inner}
    return [(key, inner if key == keys[0] else value) for key, value in container]


def _update(node: Call, scope: Scope, run: Run) -> Any:
    """Evaluate ``put_in(x[key], value)`` and similar forms."""
    from golden.elixir import library

    container, keys = _path(node.args[0], scope, run)
    if len(node.args) > 1 and isinstance(node.args[1], List) and not keys:
        keys = run(node.args[1], scope)
    if node.name == "pop_in" and not isinstance(container, dict | list):
        library.update(container, keys[0], pop=True)
    if node.name not in ("put_in", "update_in", "get_and_update_in"):
        raise Unsupported(node.name)
    value = run(node.args[-1], scope)
    change = (lambda _: value) if node.name == "put_in" else value
    return _changed(container, keys, change)


# --- bytes ---

_FLOATS = {16: "e", 32: "f", 64: "d"}


def _bytes(node: Call, scope: Scope, run: Run) -> bytes:
    """``<<1, x::float-32-native>>``."""
    return b"".join(_segment(part, scope, run) for part in node.args)


def _segment(part: Node, scope: Scope, run: Run) -> bytes:
    spec: list[Any] = []
    if isinstance(part, Call) and part.name == "::":
        part, specification = part.args
        spec = _specification(specification)
    value = run(part, scope)
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes):
        return value
    order = "big" if not {"native", "little"} & set(spec) else "little"
    sizes = [entry for entry in spec if isinstance(entry, int)]
    if "float" in spec or isinstance(value, float):
        letter = _FLOATS[sizes[0] if sizes else 64]
        return struct.pack(("<" if order == "little" else ">") + letter, value)
    size = sizes[0] if sizes else 8
    return (value % (1 << size)).to_bytes(size // 8, order)  # type: ignore[arg-type]


def _specification(node: Node) -> list[Any]:
    match node:
        case Call("-", (left, right)):
            return _specification(left) + _specification(right)
        case Call("size", (Literal(size),)):
            return [size]
        case Variable(name):
            return [name]
        case Literal(value):
            return [value]
    raise Unsupported(f"bytes as {node}")


SPECIAL: dict[str, Callable[..., Any]] = {
    "with": _with,
    "for": _for,
    "try": _try,
    "receive": _receive,
    "match?": _matches,
    "put_in": _update,
    "update_in": _update,
    "get_and_update_in": _update,
    "pop_in": _update,
    "alias": _alias,
    "import": _import,
    "require": _alias,
    "use": _import,
    "defmodule": _define_module,
    "<<>>": _bytes,
}
