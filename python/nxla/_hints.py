"""Errors of public functions: hints for arguments of other libraries, and short tracebacks.

A traceback ends at the line of the user: `nxla._core.filter_traceback` removes the frames of the
package.
"""

from __future__ import annotations

import functools
from types import FunctionType

from nxla import _core
from nxla._exports import MODULES
from nxla._values import with_article

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    F = TypeVar("F", bound=Callable[..., Any])

#: The possible names of an argument here, by its name in another library. The name of a function
#: precedes arguments of this function alone.
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "alpha": ("learning_rate",),
    "axes": ("axis",),
    "axis": ("axes",),
    "beta1": ("b1",),
    "beta2": ("b2",),
    "betas": ("b1",),
    "diff.order": ("n",),
    "dim": ("axis", "axes"),
    "dims": ("axes", "axis"),
    "eps": ("epsilon",),
    "epsilon": ("eps",),
    "keep_axes": ("keepdims",),
    "keepdim": ("keepdims",),
    "loc": ("mean",),
    "lr": ("learning_rate",),
    "maxval": ("high",),
    "minval": ("low",),
    "scale": ("standard_deviation",),
    "shape": ("samples",),
    "size": ("shape", "samples"),
    "step_size": ("learning_rate",),
    "std": ("standard_deviation",),
    "stride": ("strides",),
    "unbiased": ("correction",),
}

#: The way to do without an argument, by its name in another library. The name of a class precedes
#: arguments of its methods, and the name of a function arguments of this function alone.
INSTEAD: dict[str, str] = {
    "Place.mode": "an index out of range selects the nearest element; nx.indexed_put and "
    "nx.indexed_add drop updates out of range",
    "argsort.direction": "descending=True sorts in descending order",
    "dtype": "convert the result with nx.astype",
    "holomorphic": "leave it out: a complex result has the derivative of a holomorphic function",
    "initial": "combine the result with the value",
    "inplace": "tensors do not change: use the result",
    "is_leaf": "the leaves are tensors, numbers and arrays",
    "order": "elements are in row-major order",
    "out": "tensors do not change: use the result",
    "pad.constant_values": "the value precedes the widths, as in nx.pad(x, 3, [(1, 1)])",
    "pad.mode": 'nx.pad_outer pads with elements, as in nx.pad_outer(x, "reflect", [(1, 1)])',
    "prevent_cse": "leave it out: what a checkpoint recomputes is not merged",
    "requires_grad": "nx.grad of a function differentiates it",
    "sort.direction": "descending=True sorts in descending order",
    "where": "select elements with nx.where before",
}


def keyword_message(function: Callable[..., Any], keyword: str) -> str:
    """Return the message for a keyword that is not an argument of a function."""
    import inspect
    from difflib import get_close_matches

    message = f"{function.__name__}() got an unexpected keyword argument {keyword!r}"
    parameters = [p for p in inspect.signature(function).parameters.values() if p.name != "self"]
    names = [p.name for p in parameters if p.kind not in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL)]
    specific = f"{function.__name__}.{keyword}"
    for here in ARGUMENTS.get(specific) or ARGUMENTS.get(keyword, ()):
        if here in names:
            return f"{message}; in nxla it is {here}="
        if any(parameter.name == here for parameter in parameters):
            return f"{message}; in nxla it is {here}, which is passed by position"
    owner = function.__qualname__.rpartition(".")[0]
    keys = (f"{owner}.{keyword}", specific, keyword)
    instead = next((INSTEAD[key] for key in keys if key in INSTEAD), None)
    if instead is not None:
        return f"{message}; {instead}"
    similar = get_close_matches(keyword, names, n=1)
    if similar:
        return f"{message}; did you mean {similar[0]}=?"
    arguments = ", ".join(parameter.name for parameter in parameters)
    if names:
        return f"{message}; its arguments are {arguments}"
    return f"{message}; its arguments, by position, are {arguments or 'none'}"


def _is_refused(function: Callable[..., Any], error: Exception) -> bool:
    """Return whether a function did not run because its arguments do not match its signature."""
    entry = error.__traceback__
    while entry is not None:
        if entry.tb_frame.f_code is function.__code__:
            return False
        entry = entry.tb_next
    return isinstance(error, TypeError) and str(error).startswith(f"{function.__qualname__}() ")


#: The messages of PyO3 for an argument of a wrong type, and the requirements in their place, into
#: which the names of types are inserted with their articles.
CONVERSIONS = (
    (r"'(None)' is not an instance of '(\w+)'", "must be {1}; got {0}Type"),
    (r"'(\w+)' (?:object )?is not an instance of '(\w+)'", "must be {1}; got {0}"),
    (r"'(\w+)' object cannot be interpreted as an integer", "must be an integer; got {0}"),
    (r"must be real number, not (\w+)", "must be a number; got {0}"),
    (r"'(\w+)' object is not iterable", "must be a sequence; got {0}"),
    (r"Can't extract `(str)` to `Vec`", "must be a sequence; got {0}"),
    (r"can't convert negative int to unsigned", "must not be negative"),
    (r"(?:Python )?int too (?:large|big) to convert.*", "must fit in 64 bits"),
)


def _name_argument(function: Callable[..., Any], error: Exception) -> None:
    """Name the function and the argument in the error of a compiled function for a wrong type.

    PyO3 adds the name of the argument as a note, and does not name the function. Errors from other
    modules, such as a function of the user or of another package, stay as they are.
    """
    notes, entry = getattr(error, "__notes__", None), error.__traceback__
    if not notes or entry is None:
        return
    while entry.tb_next is not None:
        entry = entry.tb_next
    import re

    argument = re.fullmatch(r"while processing '(\w+)'", notes[0])
    module = entry.tb_frame.f_globals.get("__name__", "")
    if argument is None or module.partition(".")[0] != "nxla":
        return
    # A helper, such as `tree.map`, leaves the error to the function that received the argument.
    code = function.__code__
    if argument[1] not in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
        return
    del notes[0]
    message = str(error).removeprefix(f"{argument[1]}: ")
    for pattern, requirement in CONVERSIONS:
        found = re.fullmatch(pattern, message)
        if found is not None:
            message = requirement.format(*map(with_article, found.groups()))
    name = function.__qualname__.removesuffix(".__init__").rpartition(".")[2]
    error.args = (f"{name}: {argument[1]}: {message}",)


def _prepare(function: Callable[..., Any], error: Exception) -> None:
    """Prepare the error of a call for the caller: add the hint, and remove frames."""
    if not _is_refused(function, error):
        _name_argument(function, error)
        _core.filter_traceback(error)
        return
    error.__traceback__ = None
    message = str(error)
    _, found, keyword = message.partition("got an unexpected keyword argument '")
    if found:
        error.args = (keyword_message(function, keyword.partition("'")[0]),)
        return
    code = function.__code__
    if "got some positional-only arguments" in message:
        names = code.co_varnames[: code.co_posonlyargcount]
        by_position = ", ".join(name for name in names if name != "self")
        error.args = (f"{message}; its arguments, by position, are {by_position}",)
    elif code.co_kwonlyargcount and message.endswith(("was given", "were given")):
        end = code.co_argcount + code.co_kwonlyargcount
        by_name = ", ".join(f"{name}=" for name in code.co_varnames[code.co_argcount : end])
        error.args = (f"{message}; pass by keyword: {by_name}",)


def with_hints(function: F) -> F:
    """Return a function whose errors have hints, and end at the frame of the caller."""
    prepare = _prepare
    # A decorator, such as `contextlib.contextmanager`, passes arguments to the declared function.
    wrapped = getattr(function, "__wrapped__", None)
    declared: Any = wrapped if isinstance(wrapped, FunctionType) else function

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            prepare(declared, error)
            raise  # Without an operand, `raise` adds no entry for this frame to the traceback.

    # The globals tell `doctest` the module of a function.
    name, closure = function.__name__, call.__closure__
    made = FunctionType(call.__code__, declared.__globals__, name, None, closure)
    functools.update_wrapper(made, function)
    return made  # type: ignore[return-value]


def install(module: dict[str, Any]) -> None:
    """Wrap the public functions of a module and of its public classes by `with_hints`.

    A wrapped function names itself in errors, so helpers of a module that lists its public names
    stay as they are.
    """
    public = {*module.get("__all__", module), *MODULES}
    for name, value in list(module.items()):
        if getattr(value, "__module__", None) != module["__name__"]:
            continue
        if isinstance(value, FunctionType):
            if not name.startswith("_") and name in public:
                module[name] = with_hints(value)
        elif isinstance(value, type):
            is_private = name.startswith("_")  # Its instances may be functions of users.
            for method, function in list(vars(value).items()):
                is_method = not method.startswith("_") and not is_private
                is_called = method in ("__init__", "__call__") or is_method
                if is_called and isinstance(function, FunctionType):
                    setattr(value, method, with_hints(function))


def missing_name_error(name: str, module: str) -> AttributeError:
    """Return the error for a name that a module of the package does not have, with a hint."""
    if name.startswith("_"):  # Each import from a module looks up its `__path__`.
        return AttributeError(f"module {module!r} has no attribute {name!r}", name=name)
    from nxla import _other_libraries

    return _other_libraries.missing_name_error(name, module)


def install_missing_names(module: dict[str, Any]) -> None:
    """Make the errors for missing names of a module suggest the names to use.

    `dir` lists the public names, without the helpers that the module imports. The module does not
    declare `__getattr__` itself, because type checkers accept every name of a module that does.
    """

    def missing_name(name: str) -> Any:
        raise missing_name_error(name, module["__name__"])

    module["__getattr__"] = missing_name
    module["__dir__"] = lambda: sorted(module["__all__"])
