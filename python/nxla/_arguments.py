"""Arguments of calls: their names, file paths, bytes, and the paths of their tensors."""

from __future__ import annotations

import operator
import os
from functools import partial
from types import FunctionType, MethodType
from typing import NamedTuple

from nxla import _core, tree
from nxla._values import index_list, to_index
from nxla.errors import ArgumentError, FormatError, OptionError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from inspect import Parameter, Signature
    from typing import Any, TypeAlias

    #: An argument by position or by name, or a part of one by its path.
    Argument: TypeAlias = int | str
    #: The steps from a container to a leaf: keys of dicts, indices, and an `Attribute` for a field.
    LeafPath: TypeAlias = tuple[Any, ...]

__all__ = [
    "Attribute", "SelectedArguments", "byte_view", "container_parts", "format_path", "leaf_paths",
    "name_of", "names_of", "parameters_of", "path_of", "path_steps", "raw_bytes",
    "reject_named_arguments", "reject_shardings", "require_list", "signature_of", "split_aux",
]  # fmt: skip


#: The flag of code that takes any number of arguments, `inspect.CO_VARARGS`.
_VARARGS = 0x04


def name_of(function: Callable[..., Any]) -> str:
    """Return the name of a function for error messages."""
    return getattr(function, "__name__", None) or type(function).__name__


def reject_named_arguments(named: dict[str, Any], function: str) -> None:
    """Raise an error for arguments that are passed by name."""
    for name in named:
        raise ArgumentError(
            f"{function}: {name}: must be passed by position, because shardings are assigned to "
            "arguments by position"
        )


#: The options of `nxla.jit` that make a function run over a mesh.
SHARDINGS: tuple[str, ...] = ("in_shardings", "out_shardings")


def reject_shardings(options: Mapping[str, Any]) -> None:
    """Raise an error for the options in `SHARDINGS`."""
    for option in SHARDINGS:
        if option in options:
            raise OptionError(
                f"{option}: must be an option of nx.jit; other functions compile for one device"
            )


def require_list(function: str, argument: str, value: Any) -> None:
    """Raise an error unless a value lists the arguments of a call; tensors are iterable too."""
    if not isinstance(value, list | tuple) or hasattr(value, "_fields"):
        raise ArgumentError(
            f"{function}: {argument}: must be a list with an entry for each argument, as in "
            f"nx.{function}(function, [template]); got {type(value).__name__}"
        )


def path_of(function: str, file: str | os.PathLike[str]) -> str:
    """Return a file path; a number, which `open` would treat as a descriptor, is rejected.

    Raises
    ------
    ArgumentError
        If the value is not a path.
    """
    if not isinstance(file, str | os.PathLike):
        raise ArgumentError(f"{function}: file: must be a path; got {_brief(file)}")
    return os.fspath(file)


def _brief(value: object) -> str:
    """Return None or an integer as written, and only the type of a value that may be large."""
    if value is None or isinstance(value, int):
        return repr(value)
    return f"a {type(value).__name__}"


def byte_view(function: str, data: bytes | bytearray | memoryview) -> memoryview:
    """Return the bytes of a bytes-like object, without a copy if they are contiguous.

    Raises
    ------
    FormatError
        If the object is not bytes-like. Integers are rejected: ``bytes(8)`` is 8 zeros.
    """
    try:
        view = memoryview(data)
    except (TypeError, ValueError, BufferError):
        view = None
    # NumPy scalars have a buffer without axes.
    if view is None or view.ndim == 0:
        hint = "; pass the content of the file" if isinstance(data, str | os.PathLike) else ""
        raise FormatError(f"{function}: data: must be bytes; got {_brief(data)}{hint}")
    is_flat = view.ndim == 1 and view.itemsize == 1 and view.c_contiguous
    return (view if is_flat else memoryview(view.tobytes())).cast("B")


def raw_bytes(function: str, data: bytes | bytearray | memoryview) -> bytes:
    """Return a bytes-like object as bytes; see `byte_view` for errors."""
    return data if isinstance(data, bytes) else byte_view(function, data).tobytes()


class Attribute(NamedTuple):
    """A step of a path that is an attribute."""

    name: str


def leaf_paths(container: Any) -> list[LeafPath]:
    """Return the path of each leaf, in the order of `tree.flatten`.

    The steps through a registered class of dicts, such as `OrderedDict`, are its keys, and the
    steps through other registered classes are indices.
    """
    return [part.path for part in container_parts(container) if part.is_leaf]


class Part(NamedTuple):
    """A leaf of a container, a value without leaves, or the data of a registered container."""

    path: LeafPath
    value: Any
    is_leaf: bool


def container_parts(container: Any) -> list[Part]:
    """Return the leaves of a container in the order of `tree.flatten`, and its other values."""
    tree.flatten(container)  # Rejects deep containers, and containers that contain themselves.
    found: list[Part] = []
    _collect_parts(container, (), found)
    return found


def _collect_parts(value: Any, path: LeafPath, found: list[Part]) -> None:
    """Append the parts of a value whose own path is `path`."""
    parts = _core.take_apart(value)
    if parts is None:
        found.append(Part(path, value, bool(tree.leaves(value))))
        return
    kind, _, extra, children = parts
    for step, child in zip(_child_steps(value, kind, extra, children), children, strict=True):
        _collect_parts(child, (*path, step), found)
    # The data of a dict are its keys, which are steps of the paths.
    if kind == "registered" and not isinstance(value, dict):
        found.append(Part(path, extra, is_leaf=False))


def _child_steps(value: Any, kind: str, extra: Any, children: Sequence[Any]) -> Iterable[Any]:
    """Return the steps from a container to its children."""
    if kind == "named":
        return map(Attribute, value._fields)
    if kind == "dataclass":
        return map(Attribute, extra)
    if kind == "dict":
        return list(extra)
    count = len(children)
    is_dict = isinstance(value, dict) and len(value) == count
    if is_dict and all(map(operator.is_, value.values(), children)):
        return list(value)
    return range(count)


def format_path(path: LeafPath) -> str:
    """Return a path as in ``['layers'][0].w``."""
    return "".join(
        f".{step.name}" if isinstance(step, Attribute) else f"[{step!r}]" for step in path
    )


def names_of(function: Callable[..., Any], count: int) -> list[tuple[str, bool]]:
    """Return the names of positional arguments, and whether each may be passed by name."""
    known: list[tuple[str, bool]] | None = getattr(function, "_argument_names", None)
    if known is None:
        known = _names_of_code(function, count)
    if known is None:
        known = _names_of_signature(function, count)
    more = [(f"argument {position}", False) for position in range(len(known), count)]
    return [*known[:count], *more]


def _names_of_code(function: Callable[..., Any], count: int) -> list[tuple[str, bool]] | None:
    """Return the names in the code of a function, None for names that only the signature contains.

    `inspect.signature` takes longer than it takes to trace a small function.
    """
    skipped = 0
    while True:
        # A method has the dict of its function, whose `__wrapped__` accepts the instance too.
        if isinstance(function, MethodType | _core.BoundFunction):
            skipped += 1
            function = function.__func__
            continue
        state = getattr(function, "__dict__", {})
        if "__signature__" in state:
            return None
        if "__wrapped__" in state:
            function = state["__wrapped__"]
        elif isinstance(function, partial) and not function.keywords:
            skipped += len(function.args)
            function = function.func
        else:
            break
    if not isinstance(function, FunctionType):
        return None
    code = function.__code__
    names = [
        (name, position >= code.co_posonlyargcount)
        for position, name in enumerate(code.co_varnames[: code.co_argcount])
    ]
    if code.co_flags & _VARARGS:
        more = code.co_varnames[code.co_argcount + code.co_kwonlyargcount]
        names += [(f"{more}[{i}]", False) for i in range(skipped + count - len(names))]
    return names[skipped:]


def signature_of(function: Callable[..., Any]) -> Signature | None:
    """Return the signature of a function, or None for a C function without one."""
    from inspect import signature

    try:
        return signature(function)
    except (TypeError, ValueError):
        return None


def parameters_of(function: Callable[..., Any]) -> list[Parameter]:
    """Return the parameters of a function; none if it has no signature."""
    signature = signature_of(function)
    return [] if signature is None else list(signature.parameters.values())


def _names_of_signature(function: Callable[..., Any], count: int) -> list[tuple[str, bool]]:
    """Return the names in the signature of a function."""
    from inspect import Parameter

    names: list[tuple[str, bool]] = []
    for parameter in parameters_of(function):
        if parameter.kind is Parameter.VAR_POSITIONAL:
            more = range(count - len(names))
            names += [(f"{parameter.name}[{position}]", False) for position in more]
        elif parameter.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD):
            names.append((parameter.name, parameter.kind is Parameter.POSITIONAL_OR_KEYWORD))
    return names


class SelectedArguments:
    """The parts of the arguments of a call that `argnums` names."""

    def __init__(
        self,
        derivative: str,
        function: Callable[..., Any],
        argnums: Argument | Sequence[Argument],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        self._all, self._around = tree.flatten((args, kwargs))
        places = self._around.unflatten(list(range(len(self._all))))
        single = isinstance(argnums, str) or to_index(argnums) is not None
        names = index_list(derivative, "argnums", argnums)
        parts = [_part(derivative, function, name, places) for name in names]
        self._places, structure = tree.flatten(parts[0] if single else tuple(parts))
        # The derivative of a tensor with two tracers would belong to one of them.
        if len(set(self._places)) < len(self._places):
            raise ArgumentError(
                f"{derivative}: argnums: must not select a tensor twice; got {tuple(names)}"
            )
        self.structure = structure
        self.leaves = [self._all[place] for place in self._places]

    def is_empty(self) -> bool:
        """Return whether the selected arguments are containers without tensors or other values."""
        return not self.leaves and not container_parts(self.structure.unflatten([]))

    def call(self, function: Callable[..., Any]) -> Callable[[list[Any]], Any]:
        """Return the call with other values for the selected leaves."""

        def called(leaves: list[Any]) -> Any:
            changed = list(self._all)
            for place, leaf in zip(self._places, leaves, strict=True):
                changed[place] = leaf
            args, kwargs = self._around.unflatten(changed)
            return function(*args, **kwargs)

        return called


def _part(derivative: str, function: Callable[..., Any], which: Argument, places: Any) -> Any:
    """Return an argument of the call ``(args, kwargs)``, or a part of it."""
    from inspect import Parameter

    args, kwargs = places
    name = name_of(function)
    if isinstance(which, int):
        if not args:
            raise ArgumentError(
                f"{derivative}: argnums: must be a name, because {name} received no positional "
                f"argument; got {which}; write argnums={next(iter(kwargs), 'x')!r}, or pass the "
                "argument by position"
            )
        if not -len(args) <= which < len(args):
            raise ArgumentError(
                f"{derivative}: argnums: must be from {-len(args)} to {len(args) - 1}, the "
                f"positions of the arguments of {name}; got {which}"
            )
        return args[which]
    steps = path_steps(f"{derivative}: argnums", which)
    root = steps[0]
    if root in kwargs:
        part = kwargs[root]
    else:
        kinds = {parameter.name: parameter.kind for parameter in parameters_of(function)}
        position = list(kinds).index(root) if root in kinds else len(args)
        kind = kinds.get(root)
        if kind is Parameter.VAR_POSITIONAL:
            part = tuple(args[position:])
        elif kind is Parameter.VAR_KEYWORD:
            part = {key: value for key, value in kwargs.items() if key not in kinds}
        elif position < len(args):
            part = args[position]
        elif kind is None and Parameter.VAR_KEYWORD not in kinds.values():
            raise ArgumentError(
                f"{derivative}: argnums: must name parameters of {name} ({', '.join(kinds)}); got "
                f"{root!r}"
            )
        else:
            raise ArgumentError(f"{derivative}: argnums: {root!r} must be passed to {name}")
    for step in steps[1:]:
        try:
            part = getattr(part, step.name) if isinstance(step, Attribute) else part[step]
        except (AttributeError, KeyError, IndexError, TypeError):
            raise ArgumentError(
                f"{derivative}: argnums: must be a part of the arguments of {name}; got {which}"
            ) from None
    return part


def split_aux(derivative: str, function: str, result: Any) -> tuple[Any, Any]:
    """Return the two entries of the result of a function with auxiliary results."""
    if not isinstance(result, tuple) or len(result) != 2:
        raise ArgumentError(f"{derivative}: has_aux: {function} must return (result, aux)")
    return result


def path_steps(option: str, path: str) -> list[Any]:
    """Return the name of an argument, and the steps from it to a part.

    Errors start with `option`, a function and its argument.
    """
    import ast

    steps: list[Any] = []
    try:
        node = ast.parse(path, mode="eval").body
        while not isinstance(node, ast.Name):
            if isinstance(node, ast.Attribute):
                steps.append(Attribute(node.attr))
            elif isinstance(node, ast.Subscript):
                steps.append(ast.literal_eval(node.slice))
            else:
                raise ValueError(path)
            node = node.value
    except (SyntaxError, ValueError):
        raise ArgumentError(
            f"{option}: must be a name or a path, as in 'x' or \"params['w']\"; got {path!r}"
        ) from None
    return [node.id, *reversed(steps)]
