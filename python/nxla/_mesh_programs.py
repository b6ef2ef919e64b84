"""Programs over a mesh: the types of their inputs, their traces, and their options."""

from __future__ import annotations

import functools

from nxla import _core, tree
from nxla._arguments import name_of
from nxla._values import user_line
from nxla.errors import ArgumentError, OptionError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from nxla._core import Expression, Template, Tensor
    from nxla.sharding import ShardedTensor

#: Options that select one device or require the evaluator.
_OF_ONE_DEVICE = (
    "plugin",
    "cpu_device_count",
    "preallocate",
    "device",
    "stages",
    "hooks",
    "compile_after",
    "compile_above",
)


def engine_options(options: dict[str, Any], what: str) -> dict[str, Any]:
    """Return the XLA options of a call, and reject options without meaning for a mesh."""
    from nxla.options import default_options

    given = {name: value for name, value in options.items() if value is not None}
    if given.get("compiler", "xla") not in ("auto", "xla"):
        raise OptionError(
            f"{what}: compiler: must be 'xla' for a program over several devices; got "
            f"{given['compiler']!r}"
        )
    limits = ("max_compiles", "on_max_compiles", "on_unusable_donation")
    for name in (*_OF_ONE_DEVICE, *limits, "on_conflict"):
        if name in given:
            raise OptionError(f"{what}: {name}: not supported for a program over a mesh")
    defaults = default_options()
    if defaults.get("compiler") in ("auto", "xla"):
        kept = {name: value for name, value in defaults.items() if name not in _OF_ONE_DEVICE}
        given = {**kept, **given}
    return {**given, "compiler": "xla"}


#: Shape, dtype and axis names of an input.
InputType = tuple[tuple[int, ...], str, tuple[str | None, ...]]


def input_type(x: Tensor | ShardedTensor, what: str) -> InputType:
    """Return the type of an input, and reject vectorized axes, which no sharding can name."""
    if getattr(x, "vectorized_axes", ()):
        raise ArgumentError(
            f"{what}: arguments: must not have vectorized axes; got {_listed(x)}; use "
            "nx.devectorize, and nx.vectorize in the function"
        )
    return tuple(x.shape), str(x.dtype), tuple(x.names)


def template_of(kind: InputType) -> Template:
    """Return the template of an input."""
    shape, dtype, names = kind
    return _core.Template(shape, dtype, names if any(names) else None, [])


def _listed(x: Any) -> str:
    return ", ".join(f"{name}: {size}" for name, size in x.vectorized_axes)


def trace_over_mesh(function: Callable[..., Any], args: tuple[Any, ...], what: str) -> Expression:
    """Trace a function for templates, and reject what a program over a mesh cannot contain."""
    from nxla.transform import make_function

    @functools.wraps(function)
    def checked(*args: Any) -> Any:
        results = function(*args)
        for leaf in tree.leaves(results):
            if getattr(leaf, "vectorized_axes", ()):
                raise ArgumentError(
                    f"{what}: results: must not have vectorized axes; got {_listed(leaf)}; use "
                    f"nx.devectorize{user_line()}"
                )
        return results

    expression = make_function(checked).debug_expr(*args)
    if expression.captured:
        raise ArgumentError(
            f"{what}: {name_of(function)}: must not capture a large tensor or a tensor on a "
            "device; pass it as an argument with a sharding"
        )
    return expression
