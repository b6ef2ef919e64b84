"""Compilers written in Python."""

from __future__ import annotations

from types import FunctionType

from nxla import _core, _hints
from nxla._spec import make_function
from nxla.errors import ArgumentError, OptionError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from nxla._core import Expression, Function, Tensor
    from nxla._types import DeviceLike
    from nxla.streams import Stream

__all__ = ["Compiler", "current_compiler", "is_tracing", "register_compiler"]

_registered: dict[str, Compiler] = {}


class Compiler:
    """The base class of compilers.

    A subclass has a `name` and a method `compile`. Pass an instance as ``compiler=``; after
    `register_compiler` its name is enough. The callbacks of `Nx.Defn.Compiler` may replace the
    methods: ``__jit__(key, vars, fun, args_list, options)`` and
    ``__compile__(key, vars, fun, options)`` get one list of arguments for each partition, and
    ``__stream__``, ``__partitions_options__`` and ``__to_backend__`` are called as in Nx. A class
    or a module without this base class may have them too. See `nxla.partitions`.

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

    With the callbacks, the cache belongs to the compiler:

    >>> class Caching:
    ...     name = "caching"
    ...     traced = {}
    ...
    ...     def __jit__(self, key, vars, fun, args_list, options):
    ...         signature = (key, tuple(nx.tree.leaves(vars)))
    ...         if signature not in self.traced:
    ...             self.traced[signature] = fun(vars)
    ...         expression = self.traced[signature]
    ...         return [expression.run(*(arg() for arg in args)) for args in args_list]
    >>> caching = Caching()
    >>> [y.item() for y in nx.jit_partitions(nx.sqrt, [[4.0], [9.0]], compiler=caching)]
    [2.0, 3.0]
    >>> len(caching.traced)
    1
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

        Returns
        -------
        callable
            A function from a list of the input tensors to an iterable of the output tensors.
        """
        raise NotImplementedError(f"{type(self).__name__}: compile: must be defined by a compiler")

    def jit(self, function: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
        """Return the result of `nxla.jit` for a function with these options.

        The default traces the function for each new signature, and calls `compile`.
        """
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
            The arguments of the function after its state. Passed only if the call has constants.
        bound : int, optional
            The maximum number of chunks that are sent and not received. Passed only if the call has
            a bound.

        Returns
        -------
        Stream
            An object with the methods of `nxla.Stream`.
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

    Parameters
    ----------
    compiler : Compiler
        An object with a `name` and a method `compile`, or with the callbacks; see `Compiler`.

    Returns
    -------
    str
        The name.

    Raises
    ------
    OptionError
        If the object has no name, or implements neither `compile` nor the callback ``__compile__``
        or ``__jit__``.

    Examples
    --------
    >>> import nxla as nx
    >>> class Direct(nx.Compiler):
    ...     name = "direct"
    ...
    ...     def compile(self, expression, options):
    ...         return lambda inputs: expression.run(*inputs)
    >>> nx.register_compiler(Direct())
    'direct'
    >>> nx.jit(lambda x: x + 1, compiler="direct")(1).item()
    2
    """
    name = _core.register_compiler(compiler)
    _registered[name] = compiler
    return name


def is_tracing() -> bool:
    """Return whether a function is being traced on this thread.

    Examples
    --------
    >>> import nxla as nx
    >>> seen = []
    >>> nx.jit(lambda x: (seen.append(nx.is_tracing()), x)[1])(1.0).item(), seen, nx.is_tracing()
    (1.0, [True], False)
    """
    return _core.is_tracing()


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


def _compiler_of(compiler: Any) -> Any:
    """Return the registered compiler of a name, None without one; any other object as it is."""
    return _registered.get(compiler) if isinstance(compiler, str) else compiler


def overrides(compiler: Any, method: str) -> Compiler | None:
    """Return the compiler if it is written in Python and overrides a method.

    The class of the compiler need not be a subclass of `Compiler`.
    """
    found = _compiler_of(compiler)
    # An attribute of the instance also overrides the method.
    own = getattr(getattr(found, method, None), "__func__", getattr(found, method, None))
    return found if callable(own) and own is not getattr(Compiler, method) else None


def callback(compiler: Any, name: str) -> Callable[..., Any] | None:
    """Return a callback of a compiler written in Python; None without it.

    A method may have its plain name, or the name of the callback in Nx, which comes first.
    """
    found = _compiler_of(compiler)
    for spelling in dict.fromkeys((f"__{name.strip('_')}__", name)):
        method = getattr(found, spelling, None)
        if callable(method):
            made: Callable[..., Any] = method
            return made
    return None


def require_instance(compiler: Any) -> None:
    """Raise an error for a class whose method `compile` requires an instance.

    Raises
    ------
    OptionError
        If the object is such a class.
    """
    if isinstance(compiler, type) and overrides(compiler, "compile") is not None:
        from inspect import getattr_static

        if isinstance(getattr_static(compiler, "compile"), FunctionType):
            name = compiler.__name__
            raise OptionError(f"compiler: must be an instance; got the class {name}; pass {name}()")


def is_complete(compiler: Any) -> bool:
    """Return whether an object implements the methods of a compiler."""
    own = any(overrides(compiler, method) is not None for method in ("compile", "jit"))
    return own or any(callback(compiler, name) is not None for name in ("__compile__", "__jit__"))


def compile_expression(
    compiler: Any, expression: Expression, options: dict[str, Any]
) -> Callable[[list[Tensor]], Iterable[Tensor]]:
    """Return the function that a compiler returns for an expression."""
    if overrides(compiler, "compile") is not None:
        made: Callable[[list[Tensor]], Iterable[Tensor]] = compiler.compile(expression, options)
        return made
    from nxla.partitions import expression_by_callback

    return expression_by_callback(compiler, expression, options)


def has_own_jit(compiler: Any) -> bool:
    """Return whether a compiler overrides the method `jit`, or has callbacks instead."""
    if overrides(compiler, "jit") is not None or callback(compiler, "__jit__") is not None:
        return True
    return overrides(compiler, "compile") is None and callback(compiler, "__compile__") is not None


def own_jit(
    function: Callable[..., Any],
    compiler: Any,
    options: dict[str, Any],
    static: tuple[list[int], list[str]],
    donates: bool,
) -> Callable[..., Any]:
    """Return a function that the method `jit` or the callbacks of a compiler jit.

    Parameters
    ----------
    static : (list of int, list of str)
        The positions and the names of static arguments.
    donates : bool
        True if the function has donated arguments.
    """
    custom = overrides(compiler, "jit")
    if donates or (custom is not None and any(static)):
        kinds = "donated" if custom is None else "static or donated"
        name = getattr(compiler, "name", compiler)
        raise ArgumentError(
            f"jit: compiler: {name!r} has its own way to jit and does not support {kinds} arguments"
        )
    if custom is not None:
        return custom.jit(function, options)
    from nxla.partitions import CallbackFunction

    return CallbackFunction(function, compiler, options, static)


def jitted_by_compiler(
    function: Function[..., Any], compiler: Compiler, settings: dict[str, Any]
) -> Callable[..., Any] | None:
    """Return a function that the default compiler jits, if the compiler overrides `jit`.

    A function with a named compiler was jitted when it was created. Compilers in the default
    options are only known when the function is called.
    """
    if not has_own_jit(compiler):
        return None
    # Only the last set of settings is stored, because its hooks may change at every call.
    known: tuple[Any, dict[str, Any], Callable[..., Any]] | None
    known = function.__dict__.get("_by_compiler")
    if known is not None and known[0] is compiler and known[1] == settings:
        kept: Callable[..., Any] = known[2]
        return kept
    spec = getattr(function, "_spec", None)
    static = ([], []) if spec is None else (spec.positions, spec.names)
    donates = spec is not None and bool(spec.donated)
    options = {**settings, "compiler": compiler}
    made = own_jit(function.callable, compiler, options, static, donates)
    if spec is None or spec.jitted:
        function.__dict__["_by_compiler"] = (compiler, settings, made)
    return made


_hints.install(globals())
