"""Options that mark arguments as static or donated."""

from __future__ import annotations

from typing import NamedTuple

from nxla._arguments import name_of, signature_of
from nxla._paths import format_path, path_steps
from nxla._values import index_list, to_index
from nxla.errors import ArgumentError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

__all__ = [
    "MARKS",
    "Donated",
    "donated_arguments",
    "marked_arguments",
    "reject_marks",
    "static_arguments",
]

#: Options that mark arguments.
MARKS: tuple[str, ...] = ("static_argnums", "static_argnames", "donate_argnums", "donate_argnames")


class Donated(NamedTuple):
    """A donated argument, or the donated part of one."""

    #: The position, or None for an argument that cannot be passed by position.
    position: int | None
    #: The name, which is empty for an argument that cannot be passed by name.
    name: str
    #: The path of the part, which is empty for the whole argument.
    path: str


def marked_arguments(option: str, marked: Any) -> list[Any]:
    """Return the positions or names of arguments that an option contains; none for None."""
    is_position = option.endswith("argnums")
    try:
        marks = [] if marked is None else index_list("jit", option, marked)
    except ArgumentError:
        marks = [marked]
    if all(to_index(mark) is not None if is_position else isinstance(mark, str) for mark in marks):
        return marks
    kind = "a position or several" if is_position else "a name or several"
    raise ArgumentError(f"jit: {option}: must be {kind}; got {marked!r}")


def reject_marks(what: str, options: dict[str, Any], instead: str) -> None:
    """Raise an error if options mark arguments, which a function does not support."""
    for option in MARKS:
        if option in options and marked_arguments(option, options.pop(option)):
            raise ArgumentError(f"{what}: {option}: not supported; {instead}")


def _positions(
    function: Callable[..., Any], argnums: int | Iterable[int] | None, option: str
) -> set[int]:
    """Return positions counted from the start, for an option that names arguments of a function."""
    given = marked_arguments(option, argnums)
    if not given:
        return set()
    from inspect import Parameter

    kinds = [parameter.kind for parameter in _parameters(function, option)]
    count = sum(kind in _positional() for kind in kinds)
    is_open = Parameter.VAR_POSITIONAL in kinds
    for position in given:
        if is_open and position < 0:
            raise ArgumentError(
                f"jit: {option}: must not be negative, because {name_of(function)} takes any "
                f"number of arguments by position; got {position}"
            )
        if not is_open and not -count <= position < count:
            raise ArgumentError(
                f"jit: {option}: must be below {count}, the number of arguments that "
                f"{name_of(function)} takes by position, and at least -{count}; got {position}"
            )
    return {position + count if position < 0 else position for position in given}


def _positional() -> tuple[Any, Any]:
    """Return the kinds of parameters that have a position."""
    from inspect import Parameter

    return Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD


def _parameters(function: Callable[..., Any], option: str) -> list[Any]:
    """Return the parameters of a function, for an option that names some of them."""
    signature = signature_of(function)
    if signature is None:
        raise ArgumentError(
            f"jit: {option}: must mark arguments of a function with a signature; got "
            f"{name_of(function)}, which has none; wrap it in a Python function"
        )
    return list(signature.parameters.values())


def _named_parameters(function: Callable[..., Any], option: str) -> tuple[list[Any], bool]:
    """Return the parameters that stand for one argument, and whether all names are accepted."""
    from inspect import Parameter

    parameters = _parameters(function, option)
    several = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    named = [parameter for parameter in parameters if parameter.kind not in several]
    return named, any(parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters)


def donated_arguments(
    function: Callable[..., Any],
    argnums: int | Iterable[int] | None,
    argnames: str | Iterable[str] | None,
) -> list[Donated]:
    """Return position, name and path of each donated argument or part."""
    positions = sorted(_positions(function, argnums, "donate_argnums"))
    paths = marked_arguments("donate_argnames", argnames)
    if not positions and not paths:
        return []
    parameters, any_name = _named_parameters(function, "donate_argnames")
    positional = _positional()
    by_name: dict[str, int | None] = {
        p.name: position if p.kind in positional else None for position, p in enumerate(parameters)
    }
    by_position = {position: name for name, position in by_name.items() if position is not None}
    donated = [Donated(position, by_position.get(position, ""), "") for position in positions]
    for path in paths:
        name, *steps = path_steps("jit: donate_argnames", path)
        if name not in by_name and not any_name:
            raise ArgumentError(
                f"jit: donate_argnames: must start with an argument of {name_of(function)} "
                f"({', '.join(by_name)}); got {name!r}"
            )
        if any((to_index(step) or 0) < 0 for step in steps):
            raise ArgumentError(f"jit: donate_argnames: indices must not be negative; got {path!r}")
        donated.append(Donated(by_name.get(name), name, format_path(tuple(steps))))
    return donated


def static_arguments(
    function: Callable[..., Any],
    argnums: int | Iterable[int] | None,
    argnames: str | Iterable[str] | None,
) -> tuple[list[int], list[str]]:
    """Return positions and names of static arguments, each argument under both."""
    positions = _positions(function, argnums, "static_argnums")
    names = set(marked_arguments("static_argnames", argnames))
    if not positions and not names:
        return [], []
    parameters, any_name = _named_parameters(function, "static_argnames")
    known = [p.name for p in parameters]
    for name in names:
        if name not in known and not any_name:
            raise ArgumentError(
                f"jit: static_argnames: must be arguments of {name_of(function)} "
                f"({', '.join(known)}); got {name!r}"
            )
    positional = _positional()
    for position, parameter in enumerate(parameters):
        if parameter.kind in positional and (position in positions or parameter.name in names):
            positions.add(position)
            names.add(parameter.name)
    return sorted(positions), sorted(names)
