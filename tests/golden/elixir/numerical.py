"""Numerical code: the semantics of operators, conditions, loops and functions in ``defn``.

An operator with two numbers is Elixir's operator; an operator with a tensor is the function of Nx.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import nxla as nx
from golden.elixir import host, library, standard
from golden.elixir.errors import ElixirError, MatchError, Unsupported
from golden.elixir.patterns import match
from golden.elixir.syntax import Call, Clauses, Node, Tuple, Variable, keyword_items
from golden.elixir.values import Atom, Range, foreign

if TYPE_CHECKING:
    from golden.elixir.interpreter import Scope

    Run = Callable[[Node, "Scope"], Any]

#: Operators: the function of Nx, and the function of two numbers.
BINARY: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "+": ("add", operator.add),
    "-": ("subtract", operator.sub),
    "*": ("multiply", operator.mul),
    "/": ("divide", operator.truediv),
    "**": ("pow", operator.pow),
    "div": ("quotient", standard.quotient),
    "rem": ("remainder", standard.remainder),
    "max": ("max", max),
    "min": ("min", min),
    "&&&": ("bitwise_and", operator.and_),
    "|||": ("bitwise_or", operator.or_),
    "<<<": ("left_shift", operator.lshift),
    ">>>": ("right_shift", operator.rshift),
}
#: Operators that return a boolean in host code, and 0 or 1 in numerical code.
PREDICATES: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "==": ("equal", operator.eq),
    "!=": ("not_equal", operator.ne),
    "<": ("less", operator.lt),
    ">": ("greater", operator.gt),
    "<=": ("less_equal", operator.le),
    ">=": ("greater_equal", operator.ge),
    "and": ("logical_and", lambda a, b: bool(a) and bool(b)),
    "or": ("logical_or", lambda a, b: bool(a) or bool(b)),
}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | complex)


def _truth(value: Any) -> Any:
    return nx.tensor(int(value), nx.bool)


def _binary(name: str, on_numbers: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def apply(left: Any, right: Any) -> Any:
        booleans = isinstance(left, bool) or isinstance(right, bool)
        if _is_number(left) and _is_number(right) and not booleans:
            return on_numbers(left, right)
        return library.call("Nx", name, [left, right])

    return apply


def _predicate(name: str, on_numbers: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def apply(left: Any, right: Any) -> Any:
        if _is_number(left) and _is_number(right):
            return _truth(on_numbers(left, right))
        return library.call("Nx", name, [left, right])

    return apply


def _not(value: Any) -> Any:
    return _truth(not value) if _is_number(value) else library.call("Nx", "logical_not", [value])


def _negate(value: Any) -> Any:
    return -value if _is_number(value) else library.call("Nx", "negate", [value])


#: Functions that read or move data, which a traced value does not have.
FORBIDDEN = {
    *("backend_copy", "backend_transfer", "backend_deallocate", "to_list", "to_flat_list"),
    *("to_binary", "to_number", "to_heatmap", "to_batched", "load_numpy!", "load_numpy_archive!"),
    *("compatible?", "default_backend", "serialize", "deserialize", "from_pointer", "to_pointer"),
}
#: Modules that numerical code may call; other modules are only for `deftransform`.
ALLOWED = ("Nx", "Complex", "Access")


def check_allowed(module: str, name: str, arity: int) -> None:
    """Reject calls that are not allowed in numerical code."""
    known = module.split(".", maxsplit=1)[0] in ALLOWED
    if not known or (module == "Nx" and name in FORBIDDEN):
        raise ElixirError(f"{module}.{name}/{arity} is not allowed inside defn", "CompileError")


# --- conditions ---


def _if(node: Call, scope: Scope, run: Run) -> Any:
    predicate, branches = node.args
    entries = keyword_items(branches)
    assert entries is not None
    value = run(predicate, scope)

    def body(word: str) -> Callable[[], Any]:
        return lambda: run(entries[word], scope.inner({}))

    if "else" in entries:
        return nx.if_(value, body("do"), body("else"))
    return nx.if_(value, body("do"))


def _cond(node: Call, scope: Scope, run: Run) -> Any:
    entries = keyword_items(node.args[-1])
    assert entries is not None
    body = entries["do"]
    assert isinstance(body, Clauses)
    clauses: list[tuple[Any, Callable[[], Any]]] = []
    for clause in body.clauses:
        # The body sees the variables that the predicate binds.
        inner = scope.inner({})
        predicate = run(clause.patterns[0], inner)
        clauses.append((predicate, lambda clause=clause, inner=inner: run(clause.body, inner)))
    if clauses[-1][0] is not True:
        raise ElixirError(
            "cond/if expects at least one branch to always evaluate to true", "CompileError"
        )
    return nx.cond(clauses[:-1], otherwise=clauses[-1][1])


# --- loops ---


def _while(node: Call, scope: Scope, run: Run) -> Any:
    initial, condition, *rest = node.args
    generator = isinstance(condition, Call) and condition.name == "<-"
    body, options = _body_and_options(rest, generator)
    pattern, state = _initial(initial, scope, run)
    within = replace(scope, variables={k: foreign(v) for k, v in scope.variables.items()})

    def step(state: Any, bound: dict[str, Any], *, looping: bool = True) -> Any:
        outer = within if looping else scope
        return run(body, outer.inner({**_bound(pattern, state), **bound}))

    if generator:
        unroll = run(options["unroll"], scope) if "unroll" in options else False
        if unroll is not False and unroll is not True and type(unroll) is not int:
            raise ElixirError(f"while: invalid unroll: {unroll!r}", "CompileError")
        source = run(condition.args[1], scope)
        return _Generator(condition.args[0], source, step).run(state, unroll)
    return nx.while_loop(
        lambda state: run(condition, within.inner(_bound(pattern, state))),
        lambda state: step(state, {}),
        state,
    )


def _body_and_options(rest: Sequence[Node], generator: bool) -> tuple[Node, dict[str, Node]]:
    parts = [keyword_items(part) or {} for part in rest]
    if not parts or list(parts[-1]) != ["do"]:
        raise ElixirError("while: expected a do-block as the last argument", "ArgumentError")
    options = {key: value for part in parts[:-1] for key, value in part.items()}
    if not set(options) <= ({"unroll"} if generator else set()):
        raise ElixirError(f"while: unexpected options {list(options)}", "CompileError")
    return parts[-1]["do"], options


def _initial(node: Node, scope: Scope, run: Run) -> tuple[Node, Any]:
    """Return the pattern and the initial value of the state."""
    match node:
        case Variable():
            return node, run(node, scope)
        case Call("=", (pattern, value)):
            return pattern, run(value, scope)
        case Tuple(items):
            parts = [_initial(item, scope, run) for item in items]
            return Tuple(tuple(p for p, _ in parts)), tuple(v for _, v in parts)
    raise ElixirError("while: expected variables", "ArgumentError")


def _bound(pattern: Node, value: Any) -> dict[str, Any]:
    bound = match(pattern, value)
    if bound is None:
        raise MatchError(value)
    return bound


class _Generator:
    """Evaluate ``pattern <- source``: a loop over a range or over the first axis of a tensor.

    As in Nx, the loop carries the index first, then the tensor, then the state.
    """

    def __init__(self, pattern: Node, source: Any, step: Callable[..., Any]) -> None:
        self.pattern = pattern
        self.step = step
        self.tensor = None if isinstance(source, Range) else source
        if isinstance(source, Range):
            self.first, self.stride, self.count = source.first, source.step, len(source)
        elif isinstance(source, nx.Tensor | nx.Expr) and source.ndim:
            self.first, self.stride, self.count = 0, 1, source.shape[0]
        else:
            raise ElixirError("generators in while expect a range or a tensor", "CompileError")

    def run(self, state: Any, unroll: bool | int) -> Any:
        copies = self.count if unroll is True else int(unroll) or 1
        if unroll is True or (unroll and copies >= self.count):
            return self.inlined(state, range(self.count))
        trips = self.count // copies * copies
        state = self.loop(state, trips, copies)
        return self.inlined(state, range(trips, self.count))

    def element(self, tensor: Any, index: Any) -> dict[str, Any]:
        return _bound(self.pattern, index if tensor is None else tensor[index])

    def inlined(self, state: Any, positions: range) -> Any:
        for position in positions:
            index = self.first + position * self.stride
            state = self.step(state, self.element(self.tensor, index), looping=False)
        return state

    def loop(self, state: Any, trips: int, copies: int) -> Any:
        last = self.first + (trips - 1) * self.stride
        carried = () if self.tensor is None else (self.tensor,)

        def continues(all_state: tuple[Any, ...]) -> Any:
            index = all_state[0]
            return index <= last if self.stride > 0 else index >= last

        def body(all_state: tuple[Any, ...]) -> tuple[Any, ...]:
            index, *tensor, inner = all_state
            for copy in range(copies):
                position = index + copy * self.stride if copy else index
                inner = self.step(inner, self.element(tensor[0] if tensor else None, position))
            return (index + copies * self.stride, *tensor, inner)

        return nx.while_loop(continues, body, (self.first, *carried, state))[-1]


# --- derivatives and inspection ---


def _grad(value: Any, function: Callable[..., Any]) -> Any:
    return nx.grad(function)(value)


def value_and_grad(
    value: Any, function: Callable[..., Any], transform: Callable[..., Any] | None = None
) -> Any:
    """Return a value, and the gradient of the part that `transform` selects from the value."""
    if transform is None:
        return nx.value_and_grad(function)(value)

    def both(x: Any) -> tuple[Any, Any]:
        result = function(x)
        return transform(result), result

    (_, result), gradient = nx.value_and_grad(both, has_aux=True)(value)
    return result, gradient


def _io_call(value: Any, *spec: Any) -> Any:
    return nx.hook(value, *(str(part) if isinstance(part, Atom) else part for part in spec))


def _print_value(value: Any, *rest: Any) -> Any:
    function, options = host.function_and_options(rest)
    return nx.hook(value, lambda shown: host.print_line(function(shown), options))


def _print_expr(value: Any, options: Any = ()) -> Any:
    host.print_line(value, dict(options))
    return value


SPECIAL: dict[str, Callable[..., Any]] = {
    "if": _if,
    "cond": _cond,
    "while": _while,
    "case": host.case,
}

FUNCTIONS: dict[tuple[str, int], Callable[..., Any]] = {
    **{(sign, 2): _binary(*found) for sign, found in BINARY.items()},
    **{(sign, 2): _predicate(*found) for sign, found in PREDICATES.items()},
    ("-", 1): _negate,
    ("+", 1): lambda value: value,
    ("not", 1): _not,
    ("..", 0): lambda: Range(0, -1, 1),
    ("grad", 1): nx.grad,
    ("grad", 2): _grad,
    ("value_and_grad", 1): nx.value_and_grad,
    ("value_and_grad", 2): value_and_grad,
    ("value_and_grad", 3): value_and_grad,
    ("stop_grad", 1): nx.stop_grad,
    ("custom_grad", 3): nx.custom_grad,
    **{(name, count): _io_call for name in ("io_call", "hook") for count in (2, 3)},
    **{("print_value", count): _print_value for count in (1, 2, 3)},
    **{("print_expr", count): _print_expr for count in (1, 2)},
    **{key: host.FUNCTIONS[key] for key in host.EVERYWHERE},
}


def kernel(name: str, args: Sequence[Any]) -> Any:
    """Call a function of ``Nx.Defn.Kernel`` by its name."""
    found = FUNCTIONS.get((name, len(args)))
    if found is None:
        raise Unsupported(f"Nx.Defn.Kernel.{name}/{len(args)}")
    return found(*args)
