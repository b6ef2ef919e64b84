"""Compilers written in Python."""

from __future__ import annotations

from nxla import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from nxla._core import Expression, Function, Tensor
    from nxla._types import DeviceLike
    from nxla.streams import Stream

__all__ = ["Compiler", "current_compiler", "register_compiler"]

_registered: dict[str, Compiler] = {}


class Compiler:
    """The base class of compilers.

    A subclass defines `name` and `compile`. Pass an instance to functions as ``compiler=``; after
    `register_compiler` its name is sufficient.

    Examples
    --------
    >>> import nxla as nx
    >>> class Counting(nx.Compiler):
    ...     name = "counting"
    ...     compiled = 0
    ...
    ...     def compile(self, expression, options):
    ...         self.compiled += 1
    ...         return lambda inputs: expression.run(*inputs)
    >>> counting = Counting()
    >>> f = nx.jit(lambda x: x + 1, compiler=counting)
    >>> f(1).item(), f(2).item(), counting.compiled
    (2, 3, 1)
    """

    #: The name of the compiler in options.
    name: str

    def compile(
        self, expression: Expression, options: dict[str, Any]
    ) -> Callable[[list[Tensor]], Iterable[Tensor]]:
        """Return a function from the tensors of all inputs to the tensors of all outputs.

        The hooks of the expression must call their listeners: ``attributes["function"]`` of a hook
        node does so on the thread that runs the function, and `Expression.run` does too. Other nxla
        functions that the returned function calls run on the evaluator by default.

        Parameters
        ----------
        expression : Expression
            The expression to compile.
        options : dict
            The settings of the call, which the compiler must check.
        """
        raise NotImplementedError(f"{type(self).__name__}: compile: must be defined by a compiler")

    def jit(self, function: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
        """Return the result of `nxla.jit` for a function with these options.

        The default traces the function for each new signature, and calls `compile`.
        """
        from nxla.transform import make_function

        return make_function(function, options={**options, "compiler": self})

    def stream(
        self,
        function: Callable[..., Any],
        template: Any,
        initial: Any,
        options: dict[str, Any],
        *,
        constants: tuple[Any, ...] = (),
        bound: int | None = None,
    ) -> Stream[Any]:
        """Return the result of `nxla.stream` for a function with these options.

        The default runs each step through `compile`.

        Parameters
        ----------
        function, template, initial
            As for `nxla.stream`.
        options : dict
            The other options of the call.
        constants : tuple
            The arguments of the function after its state. Passed only if the call has some.
        bound : int, optional
            The most chunks that are sent and not received. Passed only if the call has one.
        """
        from nxla.streams import Stream

        options = {**options, "compiler": self}
        return Stream(function, template, initial, options, constants=constants, bound=bound)

    def partitions_options(self, options: dict[str, Any]) -> list[dict[str, Any]]:
        """Return options for each device that can run programs independently."""
        return [options]

    def to_backend(self, options: dict[str, Any]) -> DeviceLike:  # noqa: ARG002
        """Return the device of the results, or its name. New data is placed there."""
        return "host"


def register_compiler(compiler: Compiler, /) -> str:
    """Register a compiler under its name; a compiler of the same name is replaced.

    Returns
    -------
    str
        The name.

    Raises
    ------
    OptionError
        If the object is not a `Compiler`, or has no name.
    """
    name = _core.register_compiler(compiler)
    _registered[name] = compiler
    return name


def current_compiler() -> str | None:
    """Return the name of the compiler of the current trace; None outside a trace.

    Examples
    --------
    >>> import nxla as nx
    >>> names = []
    >>> f = nx.jit(lambda x: (names.append(nx.current_compiler()), x)[1], compiler="evaluator")
    >>> f(1.0).item(), names, nx.current_compiler()
    (1.0, ['evaluator'], None)
    """
    return _core.current_compiler()


def overrides(compiler: Any, method: str) -> Compiler | None:
    """Return the compiler if it is written in Python and overrides a method.

    The class of the compiler need not be a subclass of `Compiler`.
    """
    found = _registered.get(compiler) if isinstance(compiler, str) else compiler
    if found is None or isinstance(found, str):
        return None
    # An attribute of the instance also overrides the method.
    own = getattr(getattr(found, method, None), "__func__", getattr(found, method, None))
    return found if callable(own) and own is not getattr(Compiler, method) else None


def jitted_by_compiler(
    function: Function[..., Any], compiler: Compiler, settings: dict[str, Any]
) -> Callable[..., Any] | None:
    """Return a function that the default compiler jits, if the compiler overrides `jit`.

    A function with a named compiler was jitted when it was created. Compilers in the default
    options are only known when the function is called.
    """
    if overrides(compiler, "jit") is None:
        return None
    known: list[tuple[Compiler, dict[str, Any], Callable[..., Any]]]
    known = function.__dict__.setdefault("_by_compiler", [])
    for other, given, made in known:
        if other is compiler and given == settings:
            return made
    made = compiler.jit(function.callable, {"compiler": compiler, **settings})
    recipe = getattr(function, "_recipe", None)
    if recipe is None or recipe.jitted:
        known.append((compiler, settings, made))
    return made
