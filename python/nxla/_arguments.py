"""Arguments of calls: their names, and the arguments that a derivative selects."""

from __future__ import annotations

from functools import partial
from types import FunctionType, MethodType

from nxla import _core, tree
from nxla._paths import Attribute, container_parts, path_steps
from nxla._values import index_list, to_index
from nxla.errors import ArgumentError, OptionError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from inspect import Parameter, Signature
    from typing import Any, TypeAlias

    #: An argument by position or by name, or a part of one by its path.
    Argument: TypeAlias = int | str

__all__ = [
    "SHARDINGS",
    "SelectedArguments",
    "name_of",
    "names_of",
    "parameters_of",
    "reject_named_arguments",
    "reject_shardings",
    "require_list",
    "signature_of",
    "split_aux",
]


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
