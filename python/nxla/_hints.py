"""Hints for arguments that functions of NumPy, JAX, PyTorch and Optax have."""

from __future__ import annotations

import functools
from types import FunctionType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    F = TypeVar("F", bound="Callable[..., Any]")

#: The possible names of an argument here, by its name in another library.
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "alpha": ("learning_rate",),
    "axes": ("axis",),
    "axis": ("axes",),
    "beta1": ("b1",),
    "beta2": ("b2",),
    "betas": ("b1",),
    "dim": ("axis", "axes"),
    "dims": ("axes", "axis"),
    "epsilon": ("eps",),
    "high": ("maxval",),
    "keep_axes": ("keepdims",),
    "keepdim": ("keepdims",),
    "loc": ("mean",),
    "low": ("minval",),
    "lr": ("learning_rate",),
    "maxval": ("high",),
    "minval": ("low",),
    "scale": ("standard_deviation",),
    "size": ("shape",),
    "step_size": ("learning_rate",),
    "std": ("standard_deviation",),
    "stride": ("strides",),
    "unbiased": ("correction",),
}

#: The way to do without an argument, by its name in another library.
INSTEAD: dict[str, str] = {
    "initial": "combine the result with the value",
    "inplace": "tensors do not change: use the result",
    "order": "elements are in row-major order",
    "out": "tensors do not change: use the result",
    "requires_grad": "nx.grad of a function differentiates it",
    "where": "select elements with nx.where before",
}


def keyword_message(function: Callable[..., Any], keyword: str) -> str:
    """Return the message for a keyword that is not an argument of a function."""
    import inspect
    from difflib import get_close_matches

    message = f"{function.__name__}() got an unexpected keyword argument {keyword!r}"
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return message
    names = [p.name for p in parameters if p.kind not in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL)]
    for here in ARGUMENTS.get(keyword, ()):
        if here in names:
            return f"{message}; in nxla it is {here}="
    if keyword in INSTEAD:
        return f"{message}; {INSTEAD[keyword]}"
    similar = get_close_matches(keyword, names, n=1)
    if similar:
        return f"{message}; did you mean {similar[0]}=?"
    arguments = ", ".join(parameter.name for parameter in parameters)
    return f"{message}; its arguments are {arguments}" if names else message


def _refused(function: Callable[..., Any], error: TypeError) -> str | None:
    """Return the message for a call that failed because of a keyword; None for other errors."""
    trace = error.__traceback__
    if trace is None or trace.tb_next is not None:
        return None  # The function itself raised the error, so the call was valid.
    before, found, keyword = str(error).rpartition("got an unexpected keyword argument '")
    return keyword_message(function, keyword.rstrip("'")) if found and before else None


def with_hints(function: F) -> F:
    """Return a function whose errors about keywords name the argument here."""
    refused = _refused

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            message = refused(function, error)
            if message is None:
                raise
        raise TypeError(message)

    # The globals tell `doctest` the module of a function.
    name, closure = function.__name__, call.__closure__
    made = FunctionType(call.__code__, function.__globals__, name, None, closure)
    functools.update_wrapper(made, function)
    return made  # type: ignore[return-value]


def install(module: dict[str, Any]) -> None:
    """Add hints to the public functions that a module defines."""
    for name, value in list(module.items()):
        if name.startswith("_") or not isinstance(value, FunctionType):
            continue
        if value.__module__ == module["__name__"]:
            module[name] = with_hints(value)
