"""Construction of jitted functions, and of functions that are derived from them."""

from __future__ import annotations

import functools
from types import MethodType
from typing import NamedTuple

from nxla import _core
from nxla._arguments import SHARDINGS, name_of, names_of
from nxla._marks import MARKS, static_arguments
from nxla._observer import Observer
from nxla._values import require_callable
from nxla.errors import ArgumentError, OptionError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from nxla._core import Function
    from nxla._marks import Donated


#: Options that `Function` handles itself, with their defaults.
OWN_OPTIONS = {
    "debug_nans": None,
    "max_compiles": None,
    "on_max_compiles": "warn",
    "on_unusable_donation": "ignore",
}

#: The options of `jit` that are not settings of a compiler.
JIT_OPTIONS = (
    *("compiler", "device", "client", "hooks", "stages", "progress", "on_conflict"),
    *OWN_OPTIONS,
    *MARKS,
    *SHARDINGS,
)


class FunctionSpec(NamedTuple):
    """The construction of a `Function`, from which other functions are derived."""

    function: Callable[..., Any]
    positions: list[int]
    names: list[str]
    donated: list[Donated]
    options: dict[str, Any]
    #: True if later calls reuse a trace.
    jitted: bool = True

    def bind(self, instance: Any) -> FunctionSpec:
        """Return the function as a method of an instance, its first argument."""
        first = {name for name, _ in names_of(self.function, 1)[:1]}
        return self._replace(
            function=MethodType(self.function, instance),
            positions=[position - 1 for position in self.positions if position > 0],
            names=[name for name in self.names if name not in first],
            donated=[
                each if each.position is None else each._replace(position=each.position - 1)
                for each in self.donated
                if each.position != 0
            ],
        )

    @property
    def compiler_options(self) -> dict[str, Any]:
        """The options of the compiler."""
        return {key: self.options[key] for key in self.options if key not in OWN_OPTIONS}


class JittedFunction:
    """A jitted function that is not a `Function`: a compiler written in Python runs it."""

    _spec: FunctionSpec


def spec_of(function: Callable[..., Any], op: str) -> FunctionSpec:
    """Return the specification of a function; an error names the public function `op`.

    The specification of a jitted function is its own: the original function with its static
    arguments and options.
    """
    require_callable(op, "function", function)
    if isinstance(function, _core.BoundFunction):
        return spec_of(function.__func__, op).bind(function.__self__)
    if isinstance(function, _core.Function | JittedFunction):
        known = getattr(function, "_spec", None)
        if isinstance(known, FunctionSpec):
            return known
    return FunctionSpec(function, [], [], [], {}, jitted=False)


def make_function(
    function: Callable[..., Any],
    static_argnums: int | Iterable[int] | None = (),
    static_argnames: str | Iterable[str] | None = (),
    donated: Iterable[Donated] = (),
    options: dict[str, Any] | None = None,
    jitted: bool = True,
) -> Function[..., Any]:
    """Return a `Function` with its specification and the original name and docstring.

    A function that is not `jitted` is traced in every call; equal programs are compiled once.
    """
    spec = spec_of(function, "jit")
    positions, names = static_arguments(spec.function, static_argnums, static_argnames)
    positions = sorted({*positions, *spec.positions})
    names = sorted({*names, *spec.names})
    donated = [*spec.donated, *(each for each in donated if each not in spec.donated)]
    for each in donated:
        if each.position in positions or each.name in names:
            raise ArgumentError(
                f"jit: donate_argnums: must not select a static argument; got {each.name!r}"
            )
    all_options = {**spec.options, **(options or {})}
    new = FunctionSpec(spec.function, positions, names, donated, all_options, jitted)
    name = name_of(spec.function)
    set_options = {key: value for key, value in new.options.items() if value is not None}
    own: Any = {key: set_options.get(key, default) for key, default in OWN_OPTIONS.items()}
    observer = Observer(name, **own)
    compiler_options = new.compiler_options
    if own["debug_nans"] and compiler_options.get("on_conflict") is None:
        # A trace that the function joins would drop the checks, like the options of a compiler.
        compiler_options["on_conflict"] = "raise"
    try:
        made = _core.Function(
            spec.function,
            name,
            compiler_options,
            positions,
            names,
            donated,
            own["debug_nans"],
            observer,
            not jitted,
        )
    except OptionError as error:
        _suggest_option(error, compiler_options)
        raise
    functools.update_wrapper(made, spec.function)
    made._spec = new  # type: ignore[attr-defined]
    return made


def _suggest_option(error: OptionError, options: dict[str, Any]) -> None:
    """Add the most similar option of `jit` to an error for an option that no compiler has."""
    from difflib import get_close_matches

    for name in options:
        text = str(error)
        # Errors that name another compiler with the option keep that suggestion.
        unknown = (f'option "{name}": does not exist', f' has no option "{name}"; it has no')
        if any(part in text for part in unknown):
            similar = get_close_matches(name, JIT_OPTIONS, n=1)
            if similar and similar[0] != name:
                error.args = (f"{error}; did you mean {similar[0]}=?",)
            return


def derived_function(function: Callable[..., Any], spec: FunctionSpec) -> Any:
    """Return a `Function` with the arguments and options of another one.

    It reuses traces only if the other function is jitted, because captured variables can change.
    """
    functools.update_wrapper(function, spec.function)
    options = {**spec.options, "on_conflict": "reuse"}
    return make_function(function, spec.positions, spec.names, (), options, jitted=spec.jitted)
