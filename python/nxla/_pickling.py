"""Pickling and copying of jitted functions, expressions, graphs of stages and templates.

Tensors, dtypes, devices and stages implement pickling in their own classes.
"""

from __future__ import annotations

import copyreg
import sys

from nxla import _core
from nxla.errors import ArgumentError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from nxla._marks import Donated


def register() -> None:
    """Register the classes with `pickle` and `copy`."""
    copyreg.pickle(_core.Function, _of_function)
    copyreg.pickle(_core.Expression, _of_expression)
    copyreg.pickle(_core.StageGraph, _of_stages)
    copyreg.pickle(_core.Template, _of_template)


def import_path(function: Any) -> str | None:
    """Return the path of a function in its module, or None if another object has this path."""
    path = getattr(function, "__qualname__", "")
    found: Any = sys.modules.get(getattr(function, "__module__", None) or "")
    for part in path.split("."):
        found = getattr(found, part, None)
    return str(path) if found is function else None


def _of_function(function: Any) -> str | tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return the import path of a function, or its parts.

    A decorated function is imported by its name. Executables are not pickled; the function is
    compiled again when it is called.
    """
    if path := import_path(function):
        return path
    spec = getattr(function, "_spec", None)
    if spec is None:
        name = getattr(function, "__qualname__", "")
        raise ArgumentError(f"pickle: {name!r}: must be a function that nx.jit returned")
    marks = (spec.positions, spec.names, spec.donated)
    return _function, (spec.function, *marks, spec.options, spec.jitted)


def _function(
    function: Callable[..., Any],
    positions: list[int],
    names: list[str],
    donated: list[Donated],
    options: dict[str, Any],
    jitted: bool,
) -> Any:
    from nxla._spec import make_function

    return make_function(function, positions, names, donated, options, jitted)


def _of_expression(expression: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    if expression.has_hooks:
        raise ArgumentError(
            "pickle: expression: must not contain hooks with functions; to_bytes omits the "
            "functions"
        )
    return _core.Expression._from_parts, expression._parts()


def _of_stages(stages: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    return _core.StageGraph._from_parts, stages._parts()


def _of_template(template: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    names = template.names if any(template.names) else None
    parts = (template.shape, template.dtype, names, template.vectorized_axes)
    return _core.Template, parts
