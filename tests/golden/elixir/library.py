"""Functions of Nx; most come from the table of tensor functions.

This module contains functions that take functions, belong to `Nx.Defn`, or return Elixir values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import nxla as nx
from golden import values
from golden.calls import CALLS
from golden.calls.adapter import NUMBERS, plain
from golden.elixir import host, numerical, standard
from golden.elixir.errors import ElixirError, Unsupported
from golden.elixir.inspect import inspect
from golden.elixir.values import (
    Atom,
    Foreign,
    FunctionValue,
    ModuleName,
    Range,
    Struct,
    is_keyword,
    truthy,
)

#: Functions with a keyword list that does not contain options, and the position of the list.
KEYWORD_ARGUMENTS = {
    "vectorize": 1, "revectorize": 1, "tensor": 0, "runtime_call": 2,
}  # fmt: skip
#: The atoms that types begin with: `{:f, 32}`.
KINDS = ("u", "s", "f", "bf", "c", "f8_e4m3fn")


def call(module: str, name: str, args: Sequence[Any]) -> Any:
    """Call a function of a module that the source does not define."""
    own = OWN.get((module, name))
    if own is not None:
        return own(*args)
    if module == "Nx.Defn.Kernel":
        return numerical.kernel(name, args)
    if module == "Kernel":
        return host.kernel(name, args)
    if not module.startswith("Nx"):
        return standard.call(module, name, args)
    found = CALLS.get((module, name))
    if found is None:
        raise Unsupported(f"the interpreter of the tests does not map {module}.{name}")
    positional, options = _split(name, list(args))
    return found(positional, options)


def knows(module: str, name: str) -> bool:
    """Return whether a module has a function."""
    return (
        (module, name) in OWN or (module, name) in CALLS or name in standard.MODULES.get(module, {})
    )


def field(value: Any, name: str) -> tuple[Any] | None:
    """Return the field of a struct; None if it has none of that name."""
    if isinstance(value, ElixirError):
        fields: dict[str, Any] = {"message": str(value)}
    elif isinstance(value, Struct):
        fields = value.fields
    elif isinstance(value, Range):
        fields = {"first": value.first, "last": value.last, "step": value.step}
    elif isinstance(value, nx.Tensor | nx.Expr):
        names = [n and Atom(n) for n in value.names]
        vectors = [(Atom(axis), size) for axis, size in value.vectorized_axes]
        fields = {"shape": tuple(value.shape), "type": _type(value), "names": names}
        fields["vectorized_axes"] = vectors
    else:
        fields = {}
    return (fields[name],) if name in fields else None


def _split(name: str, args: list[Any]) -> tuple[list[Any], dict[str, Any]]:
    """Separate options from arguments, and convert atoms and types to the notation of the table."""
    options: dict[str, Any] = {}
    last = len(args) - 1
    if args and is_keyword(args[-1]) and args[-1] and KEYWORD_ARGUMENTS.get(name) != last:
        # The device of a tensor is not an option of these functions in nxla.
        options = {str(key): _plain(value) for key, value in args.pop() if key != "backend"}
    return [_plain(arg) for arg in args], options


def _plain(value: Any) -> Any:
    if isinstance(value, Atom):
        return values.Atom(str(value))
    if isinstance(value, Range):
        return values.Range(value.first, value.last, value.step)
    if isinstance(value, tuple) and len(value) == 2 and value[0] in KINDS:
        return values.Type(_type_name(value))
    if isinstance(value, tuple):
        return tuple(_plain(item) for item in value)
    if isinstance(value, list) and is_keyword(value):
        return [(str(key), _plain(item)) for key, item in value]
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


def _type_name(dtype: Any) -> str:
    """Return the name in nxla of a type, which is an atom or a pair."""
    if isinstance(dtype, tuple):
        dtype = dtype[0] if dtype[0] == "f8_e4m3fn" else f"{dtype[0]}{dtype[1]}"
    return values.dtype_name(str(dtype))


# --- inspection of tensors ---


def _type(x: Any) -> tuple[Atom, int]:
    name = str(_tensor(x).dtype)
    if name == "pred":
        return Atom("u"), 8
    letters = name.rstrip("0123456789")
    return Atom(letters), int(name[len(letters) :])


def _tensor(x: Any) -> Any:
    return x if isinstance(x, nx.Tensor | nx.Expr | Foreign) else nx.tensor(x)


def _numbers(data: Any) -> Any:
    """Replace atoms of numbers, such as infinities, by the numbers."""
    if isinstance(data, list):
        return [_numbers(item) for item in data]
    return NUMBERS.get(str(data), data) if isinstance(data, Atom) else data


def _make_tensor(data: Any, options: Any = ()) -> Any:
    given = dict(options)
    data = _numbers(data)
    dtype = given.get("type")
    made = nx.tensor(data, _type_name(dtype)) if dtype else nx.tensor(data)
    return nx.rename(made, [n and str(n) for n in given["names"]]) if "names" in given else made


def access(container: Any, key: Any) -> Any:
    """``container[key]``: of a keyword list, a map, or a tensor."""
    if isinstance(container, dict):
        return container.get(key)
    if isinstance(container, list):
        return next((value for name, value in container if name == key), None)
    if isinstance(key, list) and not key:
        return container
    return container[_python_index(container, key)]


def update(container: Any, key: Any, *, pop: bool) -> None:
    """Assign to ``container[key]``, or delete it."""
    if pop:
        del container[_python_index(container, key)]
    else:
        container[_python_index(container, key)] = 0


def _python_index(tensor: Any, key: Any) -> Any:
    """Return the Python index of a key."""
    if isinstance(key, list) and is_keyword(key):
        if len({name for name, _ in key}) < len(key):
            raise ElixirError(f"an axis is there twice: {inspect(key)}", "ArgumentError")
        indices: list[Any] = [slice(None)] * tensor.ndim
        for name, part in key:
            if name not in tensor.names:
                raise nx.ShapeError(f"no axis has the name {name}: {tensor.names}")
            axis = tensor.names.index(name)
            indices[axis] = _index(_scalar(part), tensor.shape[axis])
        return tuple(indices)
    if isinstance(key, list):
        sizes = [*tensor.shape, *(0 for _ in key)]
        return tuple(_index(_scalar(part), size) for part, size in zip(key, sizes, strict=False))
    return _index(key, tensor.shape[0] if tensor.ndim else 0)


def _scalar(part: Any) -> Any:
    if isinstance(part, nx.Tensor | nx.Expr) and part.ndim:
        raise ElixirError("only scalars may be among several indices", "ArgumentError")
    return part


def _index(part: Any, size: int) -> Any:
    if not isinstance(part, Range):
        return part
    # Python clamps slices to the size of the axis; Elixir does not.
    first, last = (end + size if end < 0 else end for end in (part.first, part.last))
    for end in (first, last):
        if not 0 <= end < size:
            raise ElixirError(f"index {end} is out of bounds: {size}", "ArgumentError")
    if part.step < 0 or last < first:
        raise ElixirError(f"range {part} has a negative step or is empty", "ArgumentError")
    return slice(first, last + 1, part.step)


def sigil(name: str, text: str, modifiers: str) -> Any:
    """``~MAT[1 2]f32`` and ``~VEC[1 2]``."""
    if name in ("s", "S", "c", "C"):
        return text
    if name in ("w", "W"):
        return [Atom(word) if modifiers == "a" else word for word in text.split()]
    rows = [[_number(word) for word in line.split()] for line in text.strip().splitlines()]
    if name.startswith("V") and len(rows) != 1:
        raise ElixirError("must be one-dimensional", "ArgumentError")
    data = rows if name.startswith("M") else rows[0] if rows else []
    return nx.tensor(data, values.dtype_name(modifiers)) if modifiers else nx.tensor(data)


def _number(word: str) -> Any:
    for read in (int, float, lambda w: complex(w.replace("i", "j"))):
        try:
            return read(word)
        except ValueError:
            continue
    raise ElixirError(f"cannot read {word!r}", "ArgumentError")


# --- higher-order functions ---


def containers_only(function: Callable[..., Any]) -> FunctionValue:
    """Reject values that are not containers in Elixir: lists, strings, atoms and nil."""

    def run(*args: Any) -> Any:
        result = function(*args)
        _check_container(result)
        return result

    return FunctionValue(function.__name__, getattr(function, "arity", 1), run)


def _check_container(value: Any) -> None:
    if isinstance(value, tuple | dict):
        for item in value.values() if isinstance(value, dict) else value:
            _check_container(item)
    elif value is None or isinstance(value, list | str | bool | ModuleName):
        raise ElixirError(f"{inspect(value)} is not a container", "Protocol.UndefinedError")


def _static(value: Any) -> bool:
    """Return whether an argument belongs to the function (a list or a function)."""
    return isinstance(value, list) or callable(value)


def _check_argument(value: Any) -> None:
    if value is None or isinstance(value, str | bool):
        raise ElixirError(f"{inspect(value)} is not a tensor", "Protocol.UndefinedError")


def _with_static(function: Callable[..., Any], args: Sequence[Any]) -> Callable[..., Any]:
    """Bind lists and functions as constants; other arguments stay parameters."""

    def call(*given: Any) -> Any:
        source = iter(given)
        return function(*(arg if _static(arg) else next(source) for arg in args))

    call.__name__ = function.__name__
    return call


def jit(function: Callable[..., Any], options: Any = ()) -> Any:
    """Compile a function at its first call, as ``Nx.Defn.jit`` does."""
    checked = containers_only(function)

    def call(*args: Any) -> Any:
        for arg in args:
            _check_argument(arg)
        compiled = nx.jit(_with_static(checked, args), **_options(options))
        return compiled(*(arg for arg in args if not _static(arg)))

    return FunctionValue(function.__name__, getattr(function, "arity", 1), call)


def _compile(function: Callable[..., Any], templates: Sequence[Any], options: Any = ()) -> Any:
    dynamic = [template for template in templates if not _static(template)]
    whole = _with_static(containers_only(function), templates)
    return nx.compile(whole, dynamic, **_options(options))


def _options(options: Any) -> dict[str, Any]:
    # The option for garbage collection concerns only the evaluator of Nx.
    given = {str(key): value for key, value in options if key != "garbage_collect"}
    compiler = given.get("compiler")
    if isinstance(compiler, ModuleName):
        given["compiler"] = "evaluator" if compiler.name.endswith("Evaluator") else compiler.name
    return given


def _grad(first: Any, *rest: Any) -> Any:
    if rest:
        return nx.grad(rest[0])(first)
    _check_arity(first)
    return nx.grad(first)


def _value_and_grad(first: Any, *rest: Any) -> Any:
    if rest:
        return numerical.value_and_grad(first, *rest)
    return nx.value_and_grad(first)


def _check_arity(function: Any) -> None:
    if getattr(function, "arity", 1) != 1:
        raise ElixirError("no function clause matching in Nx.Defn.grad/1", "FunctionClauseError")


def _metadata(value: Any, notes: dict[str, Any]) -> Any:
    return nx.annotate(value, " ".join(key for key, on in notes.items() if truthy(on)))


def _runtime_call(template: Any, value: Any, *rest: Any) -> Any:
    *options, function = rest
    if nx._core.is_tracing() and getattr(function, "name", "") in ("fn", "capture"):
        raise ElixirError("runtime_call in defn takes a named function, &f/2", "CompileError")
    static = options[0] if options else []
    return nx.runtime_call(lambda given: function(given, static), template, value)


def _reduce(tensor: Any, initial: Any, *rest: Any) -> Any:
    *options, function = rest
    given = dict(options[0]) if options else {}
    axes = given.get("axes")
    axis = None if axes is None else tuple(axes)
    return nx.reduce(
        tensor, initial, function, axis=axis, keepdims=bool(given.get("keep_axes", False))
    )


def _window_reduce(tensor: Any, initial: Any, window: Any, *rest: Any) -> Any:
    *options, function = rest
    _, given = _split("window_reduce", [tensor, options[0] if options else []])
    given = {key: plain(value) for key, value in given.items()}
    if "window_dilations" in given:
        given["dilations"] = given.pop("window_dilations")
    return nx.window_reduce(tensor, initial, function, window, **given)


def _template(shape: tuple[int, ...], dtype: Any, options: Any = ()) -> Any:
    names = dict(options).get("names")
    return nx.template(shape, _type_name(dtype), names=names)


def _typed(dtype: str) -> Callable[[Any], Any]:
    return lambda data: nx.tensor(_numbers(data), values.dtype_name(dtype))


def _io_call(value: Any, *spec: Any) -> Any:
    if not any(callable(part) for part in spec):
        raise ElixirError("a name stands for a function in numerical code only", "ArgumentError")
    return nx.hook(value, *(str(part) if isinstance(part, Atom) else part for part in spec))


def _block(_: Struct, args: Sequence[Any], template: Any, default: Callable[..., Any]) -> Any:
    if default.arity != 1 + len(args):  # type: ignore[attr-defined]
        raise ElixirError("the default takes the struct and the arguments", "ArgumentError")
    del template
    return default(None, *args)


def _deallocate(container: Any) -> Atom:
    for leaf in nx.tree.leaves(container):
        leaf.deallocate()
    return Atom("ok")


def _no_mesh(*_: Any) -> Any:
    raise ElixirError("no compiler here runs a function on several devices", "RuntimeError")


def _is_tensor(value: Any) -> bool:
    number = isinstance(value, int | float | complex) and not isinstance(value, bool)
    special = isinstance(value, Atom) and value in values.SPECIAL
    return number or special or isinstance(value, nx.Tensor | nx.Expr)


def _compatible(left: Any, right: Any, same: Callable[[Any, Any], Any]) -> bool:
    (lefts, left_structure), (rights, right_structure) = map(nx.tree.flatten, (left, right))
    if left_structure != right_structure:
        return False
    return all(truthy(same(*pair)) for pair in zip(lefts, rights, strict=True))


def _traverse(container: Any, *rest: Any) -> Any:
    *total, function = rest
    return nx.composite.traverse(container, function, *total)


def _decide(callback: Callable[..., Any]) -> Callable[..., Any]:
    def decide(node: Any, *state: Any) -> Any:
        answer = callback(node, *state)
        return (str(answer[0]), answer[1]) if state else str(answer)

    return decide


def _split_graph(expression: Any, *rest: Any) -> Any:
    *initial, callback = rest
    found = nx.graph.split(expression, _decide(callback), *initial)
    return found[0] if initial else found


#: Functions that create a tensor of the dtype in their name.
# fmt: off
DTYPES = [
    "u2", "u4", "u8", "u16", "u32", "u64", "s2", "s4", "s8", "s16", "s32", "s64",
    "f8", "f8_e4m3fn", "bf16", "f16", "f32", "f64", "c64", "c128",
]
# fmt: on

OWN: dict[tuple[str, str], Callable[..., Any]] = {
    ("Nx", "type"): _type,
    ("Nx", "shape"): lambda x: tuple(_tensor(x).shape),
    ("Nx", "rank"): lambda x: _tensor(x).ndim,
    ("Nx", "size"): lambda x: _tensor(x).size,
    ("Nx", "names"): lambda x: [n and Atom(n) for n in _tensor(x).names],
    ("Nx", "axes"): lambda x: list(range(_tensor(x).ndim)),
    ("Nx", "axis_size"): lambda x, axis: (
        nx.axis_size(_tensor(x), str(axis))
        if isinstance(axis, str)
        else nx.axis_size(_tensor(x), axis)
    ),
    ("Nx", "tensor"): _make_tensor,
    ("Nx", "template"): _template,
    ("Nx", "to_number"): lambda x: x.item(),
    ("Nx", "reduce"): _reduce,
    ("Nx", "window_reduce"): _window_reduce,
    ("Nx", "runtime_call"): _runtime_call,
    ("Nx", "io_call"): _io_call,
    ("Nx", "hook"): _io_call,
    ("Nx", "block"): _block,
    ("Nx", "is_tensor"): _is_tensor,
    ("Nx", "backend_deallocate"): _deallocate,
    ("Nx.Container", "traverse"): _traverse,
    ("Nx.Defn.Composite", "traverse"): _traverse,
    ("Nx.Defn.Composite", "reduce"): nx.composite.reduce,
    ("Nx.Defn.Composite", "count"): nx.composite.count,
    ("Nx.Defn.Composite", "compatible?"): _compatible,
    ("Nx.Defn.Graph", "split"): _split_graph,
    ("Nx.Defn.Graph", "run"): lambda stages, args, *_: nx.graph.run(stages, *args),
    ("Nx.Defn.Compiler", "current"): nx.current_compiler,
    ("Nx.Defn", "shard_jit"): _no_mesh,
    ("Nx.Defn", "shard_jit_apply"): _no_mesh,
    ("Nx.Defn", "global_default_options"): lambda *_: [],
    ("Nx.Defn", "jit"): jit,
    ("Nx.Defn", "jit_apply"): lambda f, args, options=(): jit(f, options)(*args),
    ("Nx.Defn", "compile"): _compile,
    ("Nx.Defn", "debug_expr"): lambda f, *_: nx.debug_expr(f),
    ("Nx.Defn", "debug_expr_apply"): lambda f, args, *_: nx.debug_expr(f)(*args),
    ("Nx.Defn", "default_options"): lambda *_: [],
    ("Nx.Defn", "to_backend"): lambda *_: (ModuleName("Nx.BinaryBackend"), []),
    ("Nx", "with_default_backend"): lambda _backend, function: function(),
    ("Nx.Defn", "grad"): _grad,
    ("Nx.Defn", "value_and_grad"): _value_and_grad,
    ("Nx.Defn.Expr", "metadata"): _metadata,
    **{("Nx", name): _typed(name) for name in DTYPES},
}
