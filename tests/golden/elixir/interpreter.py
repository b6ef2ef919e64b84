"""Running a syntax tree.

There are two languages in it. In numerical code (``defn``) operators, conditions and loops are
those of tensors; elsewhere they are Elixir's own. A `Scope` knows which one it is in; both share
what is here: variables, matching, functions, calls, containers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import nxla as nx
from golden.elixir import host, library, numerical
from golden.elixir.errors import ElixirError, MatchError, Unsupported
from golden.elixir.inspect import to_string
from golden.elixir.patterns import match
from golden.elixir.syntax import (
    Access,
    Alias,
    Apply,
    Attribute,
    Block,
    Call,
    Capture,
    CaptureArgument,
    Clause,
    Clauses,
    Function,
    List,
    Literal,
    Map,
    Node,
    Remote,
    Sigil,
    Text,
    Tuple,
    Variable,
)  # fmt: skip
from golden.elixir.values import Atom, FunctionValue, ModuleName, Struct, truthy


@dataclass
class Definition:
    """A clause of a function of a module."""

    kind: str
    parameters: tuple[Node, ...]
    guard: Node | None
    body: Node


@dataclass
class Module:
    """A module with its definitions."""

    name: str
    functions: dict[str, list[Definition]] = field(default_factory=dict)
    #: The parameters of function heads without a body.
    heads: dict[str, tuple[Node, ...]] = field(default_factory=dict)
    attributes: dict[str, Any] = field(default_factory=dict)
    #: Aliases of modules.
    aliases: dict[str, str] = field(default_factory=dict)
    #: Modules whose functions may be called without their names.
    imports: list[str] = field(default_factory=list)
    #: Modules that the source defines, or that are predefined.
    modules: dict[str, Module] = field(default_factory=dict)

    def resolve(self, name: str) -> str:
        """Return the full name of a module."""
        first, dot, rest = name.partition(".")
        return self.aliases.get(first, first) + dot + rest


@dataclass
class Scope:
    """The names that are defined at a position of the source."""

    module: Module
    numerical: bool
    variables: dict[str, Any]
    #: Functions that the source calls without a module name, such as the recorder of golden cases.
    builtins: dict[str, Callable[..., Any]]
    captured: Sequence[Any] = ()

    def inner(self, bound: dict[str, Any]) -> Scope:
        """Return a nested scope with more variables."""
        return replace(self, variables={**self.variables, **bound})


def run(node: Node, scope: Scope) -> Any:
    """Evaluate an expression; its bindings stay in the scope."""
    match node:
        case Literal(value):
            return value
        case Variable(name):
            return _variable(node, name, scope)
        case Block(body):
            result = None
            for expression in body:
                result = run(expression, scope)
            return result
        case Tuple(items):
            return tuple(run(item, scope) for item in items)
        case List(items, tail):
            head = [run(item, scope) for item in items]
            return head if tail is None else head + run(tail, scope)
        case Map():
            return _map(node, scope)
        case Text(parts):
            return "".join(to_string(run(part, scope)) for part in parts)
        case Call():
            return _call(node, scope)
        case Remote():
            return _remote(node, scope)
        case Apply(function, args):
            return call(run(function, scope), [run(arg, scope) for arg in args])
        case Access(container, key):
            return library.access(run(container, scope), run(key, scope))
        case Function(clauses):
            return _function(clauses, scope)
        case Capture(body):
            return _capture(body, scope)
        case CaptureArgument(position):
            return scope.captured[position - 1]
        case Attribute(name):
            return scope.module.attributes[name]
        case Alias(name):
            return ModuleName(scope.module.resolve(name))
        case Sigil(name, text, modifiers):
            return library.sigil(name, text, modifiers)
        case Clauses():
            raise ElixirError("unexpected ->", "CompileError")
    raise Unsupported(f"expression {node}")


def call(function: Any, args: Sequence[Any]) -> Any:
    """Call a function value."""
    if not callable(function):
        raise ElixirError(f"expected a function, got {function!r}", "BadFunctionError")
    return function(*args)


def _variable(node: Variable, name: str, scope: Scope) -> Any:
    if name in scope.variables:
        return scope.variables[name]
    if name == "__MODULE__":
        return ModuleName(scope.module.name)
    if name in scope.module.functions or name in scope.builtins:
        return _call(Call(name, (), node.line), scope)
    raise ElixirError(f'undefined variable "{name}"', "CompileError")


def bind(pattern: Node, value: Any, scope: Scope) -> None:
    """Match a value; the variables stay in the scope."""
    bound = match(pattern, value, scope.variables)
    if bound is None:
        raise MatchError(value)
    scope.variables.update(bound)


def _map(node: Map, scope: Scope) -> Any:
    entries = {run(key, scope): run(value, scope) for key, value in node.pairs}
    if node.struct is not None:
        return Struct(node.struct, entries)
    if node.base is None:
        return entries
    base = run(node.base, scope)
    unknown = [key for key in entries if key not in base]
    if unknown:
        raise ElixirError(f"key {unknown[0]!r} not found", "KeyError")
    return {**base, **entries}


# --- functions ---


def _function(clauses: tuple[Clause, ...], scope: Scope) -> FunctionValue:
    def run_clauses(*args: Any) -> Any:
        inner = select_clause(clauses, args, scope)
        if inner is None:
            raise ElixirError("no function clause matching", "FunctionClauseError")
        clause, within = inner
        return run(clause.body, within)

    return FunctionValue("fn", len(clauses[0].patterns), run_clauses)


def select_clause(
    clauses: Sequence[Clause], args: Sequence[Any], scope: Scope
) -> tuple[Clause, Scope] | None:
    """Return the first matching clause, and the scope of its body."""
    for clause in clauses:
        bound = match(Tuple(clause.patterns), tuple(args), scope.variables)
        if bound is None:
            continue
        inner = scope.inner(bound)
        if clause.guard is None or truthy(run(clause.guard, replace(inner, numerical=False))):
            return clause, inner
    return None


def _capture(body: Node, scope: Scope) -> FunctionValue:
    """``&f/1``, ``&Module.f/1``, or an expression with ``&1``."""
    if isinstance(body, Call) and body.name == "/" and isinstance(body.args[1], Literal):
        target, arity = body.args[0], body.args[1].value
        # The names of the parameters of a capture; no source can contain such names.
        names = tuple(Variable(f"&{index}") for index in range(arity))
        made: Node
        if isinstance(target, Variable):
            made = Call(target.name, names, target.line)
        elif isinstance(target, Remote):
            made = Remote(target.target, target.name, names, True)
        else:
            raise Unsupported(f"capture of {target}")
        name = str(target.name)

        def run_named(*args: Any) -> Any:
            if isinstance(target, Variable) and name in scope.module.functions:
                return call_local(scope.module, name, args, scope)
            bound = {variable.name: arg for variable, arg in zip(names, args, strict=True)}
            return run(made, scope.inner(bound))

        return FunctionValue(name, arity, run_named)

    def run_body(*args: Any) -> Any:
        return run(body, replace(scope.inner({}), captured=args))

    return FunctionValue("capture", _highest(body), run_body)


def _highest(node: Any) -> int:
    """Return the highest number of an ``&n`` in an expression."""
    if isinstance(node, CaptureArgument):
        return node.position
    if isinstance(node, tuple):
        return max((_highest(item) for item in node), default=0)
    if isinstance(node, Node):
        return max((_highest(getattr(node, name)) for name in type(node).__slots__), default=0)
    return 0


# --- calls ---


def _call(node: Call, scope: Scope) -> Any:
    if node.name == "=":
        value = run(node.args[1], scope)
        bind(node.args[0], value, scope)
        return value
    if node.name == "|>":
        return _pipe(node.args[0], node.args[1], scope)
    language = numerical if scope.numerical else host
    special = language.SPECIAL.get(node.name)
    if special is not None and node.name not in scope.module.functions:
        return special(node, scope, run)
    args = [run(arg, scope) for arg in node.args]
    if node.name in scope.module.functions:
        if scope.numerical and scope.module.functions[node.name][0].kind in ("def", "defp"):
            raise ElixirError(f"{node.name} is not a numerical function", "CompileError")
        return call_local(scope.module, node.name, args, scope)
    found = scope.builtins.get(node.name) or language.FUNCTIONS.get((node.name, len(args)))
    if found is None and node.name in scope.variables and not args:
        return scope.variables[node.name]
    if found is not None:
        return found(*args)
    for module in scope.module.imports:
        if library.knows(module, node.name):
            return library.call(module, node.name, args)
    raise ElixirError(f"undefined function {node.name}/{len(args)}", "CompileError")


def _pipe(left: Node, right: Node, scope: Scope) -> Any:
    match right:
        case Call(name, args, line):
            return run(Call(name, (left, *args), line), scope)
        case Variable(name, line):
            return run(Call(name, (left,), line), scope)
        case Remote(target, name, args):
            return run(Remote(target, name, (left, *args), True), scope)
        case Apply(function, args):
            return run(Apply(function, (left, *args)), scope)
    raise Unsupported(f"pipe into {right}")


def call_local(module: Module, name: str, args: Sequence[Any], scope: Scope) -> Any:
    """Call a function of a module; ``defn`` compiles outside a trace."""
    definitions = module.functions[name]
    if definitions[0].kind in ("defn", "defnp") and not nx._core.is_tracing():
        run_inline = partial(inline, module, name, builtins=scope.builtins)
        whole = FunctionValue(name, len(args), lambda *inputs: run_inline(args=inputs))
        return library.jit(whole)(*args)
    return inline(module, name, args, scope.builtins)


def inline(
    module: Module, name: str, args: Sequence[Any], builtins: dict[str, Callable[..., Any]]
) -> Any:
    """Run a function of a module in the current trace."""
    for definition in module.functions[name]:
        scope = Scope(module, definition.kind in ("defn", "defnp"), {}, builtins)
        parameters = definition.parameters
        head = module.heads.get(name, parameters)
        if len(head) != len(parameters):
            head = parameters
        given = _with_defaults(head, args, scope)
        if given is None:
            continue
        patterns, values = given
        if head is not parameters:
            patterns = parameters
        chosen = select_clause([Clause(patterns, definition.guard, definition.body)], values, scope)
        if chosen is not None:
            return run(chosen[0].body, chosen[1])
    raise ElixirError(
        f"no function clause matching in {name}/{len(args)}",
        "FunctionClauseError" if name in module.functions else "UndefinedFunctionError",
    )


def _with_defaults(
    parameters: Sequence[Node], args: Sequence[Any], scope: Scope
) -> tuple[tuple[Node, ...], list[Any]] | None:
    """Insert defaults; return None if the number of arguments does not match."""
    missing = len(parameters) - len(args)
    optional = [p for p in parameters if isinstance(p, Call) and p.name == "\\\\"]
    if not 0 <= missing <= len(optional):
        return None
    # If arguments are missing, the first optional parameters receive the arguments.
    given = set(map(id, optional[: len(optional) - missing]))
    source = iter(args)
    patterns: list[Node] = []
    values: list[Any] = []
    for parameter in parameters:
        if isinstance(parameter, Call) and parameter.name == "\\\\":
            patterns.append(parameter.args[0])
            taken = id(parameter) in given
            values.append(next(source) if taken else run(parameter.args[1], scope))
        else:
            patterns.append(parameter)
            values.append(next(source))
    return tuple(patterns), values


def _remote(node: Remote, scope: Scope) -> Any:
    target = node.target
    if isinstance(target, Alias):
        args = [run(arg, scope) for arg in node.args]
        name = scope.module.resolve(target.name)
        if name in scope.module.modules:
            return call_local(scope.module.modules[name], node.name, args, scope)
        if name == scope.module.name:
            return call_local(scope.module, node.name, args, scope)
        if scope.numerical:
            numerical.check_allowed(name, node.name, len(args))
        return library.call(name, node.name, args)
    value = run(target, scope)
    if isinstance(value, dict) and not node.parentheses:
        if node.name not in value:
            raise ElixirError(f"key :{node.name} not found", "KeyError")
        return value[node.name]
    if isinstance(value, ModuleName | Atom):
        args = [run(arg, scope) for arg in node.args]
        name = value.name if isinstance(value, ModuleName) else f":{value}"
        if name == scope.module.name:
            return call_local(scope.module, node.name, args, scope)
        return library.call(name, node.name, args)
    found = library.field(value, node.name)
    if found is not None:
        return found[0]
    raise Unsupported(f"field {node.name} of {type(value).__name__}")
