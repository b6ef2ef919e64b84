"""Conversion of source text to Python functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from golden.elixir.errors import ElixirError, Unsupported
from golden.elixir.interpreter import Definition, Module, Scope, inline, run
from golden.elixir.library import containers_only
from golden.elixir.parser import parse
from golden.elixir.patterns import names
from golden.elixir.syntax import Block, Call, Literal, Node, Variable, keyword_items
from golden.elixir.values import FunctionValue

DEFINITIONS = {"defn", "defnp", "def", "defp", "deftransform", "deftransformp"}


def load(
    source: str, builtins: Mapping[str, Callable[..., Any]] | None = None, name: str = "M"
) -> Module:
    """Read the body of a module.

    `builtins` are functions that the source calls but does not define.
    """
    return load_body(name, parse(source), builtins or {})


def load_body(name: str, body: Node, builtins: Mapping[str, Callable[..., Any]]) -> Module:
    """Read the block between ``do`` and ``end`` of a module."""
    module = Module(name)
    scope = Scope(module, False, {}, dict(builtins))
    for node in body.body if isinstance(body, Block) else (body,):
        if isinstance(node, Call) and node.name in DEFINITIONS:
            _define(module, node)
        elif isinstance(node, Call) and node.name == "@":
            key, value = node.args
            assert isinstance(key, Literal)
            module.attributes[key.value] = run(value, scope)
        else:
            run(node, scope)
    return module


def _define(module: Module, node: Call) -> None:
    """Add a clause of a function."""
    head, *rest = node.args
    guard: Node | None = None
    if isinstance(head, Call) and head.name == "when":
        head, guard = head.args
        if node.name.startswith("defn"):
            raise ElixirError("guards are not supported by defn", "CompileError")
    body = (keyword_items(rest[-1]) or {}).get("do") if rest else None
    if isinstance(head, Variable):
        head = Call(head.name, (), head.line)
    if isinstance(head, Call) and body is None:
        # A head without a body names parameters and defaults for the clauses that follow.
        module.heads[head.name] = head.args
        return
    if not isinstance(head, Call) or body is None:
        raise Unsupported(f"definition {head}")
    if node.name in ("defn", "defnp"):
        _check_head(module, head)
    module.functions.setdefault(head.name, []).append(Definition(node.name, head.args, guard, body))


def _check_head(module: Module, head: Call) -> None:
    """Check that a numerical function has one clause with distinct variables."""
    others = module.functions.get(head.name, [])
    if any(len(other.parameters) == len(head.args) for other in others):
        raise ElixirError(f"{head.name} has more than one clause", "CompileError")
    variables = [name for parameter in head.args for name in names(parameter)]
    if len(set(variables)) < len(variables):
        raise ElixirError(f"a variable of {head.name} is there twice", "CompileError")


def function(
    module: Module, name: str, builtins: Mapping[str, Callable[..., Any]] | None = None
) -> FunctionValue:
    """Return a function of a module as one that can be traced: calling it runs its body."""
    definition = module.functions[name][0]
    known = dict(builtins or {})
    optional = any(isinstance(p, Call) and p.name == "\\\\" for p in definition.parameters)
    arity = None if optional else len(definition.parameters)
    return containers_only(
        FunctionValue(name, arity, lambda *args: inline(module, name, args, known))
    )


def evaluate(
    source: str,
    bindings: Mapping[str, Any] | None = None,
    module: Module | None = None,
    builtins: Mapping[str, Callable[..., Any]] | None = None,
) -> Any:
    """Run a snippet with these variables as host code."""
    scope = Scope(module or Module("M"), False, dict(bindings or {}), dict(builtins or {}))
    return run(parse(source), scope)
