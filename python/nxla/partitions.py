"""Calls through the callbacks of a compiler, and calls of one function on several partitions.

A compiler may implement the callbacks of `Nx.Defn.Compiler` by their names: ``__jit__``,
``__compile__``, ``__stream__``, ``__partitions_options__`` and ``__to_backend__``. The arguments of
the first two are:

``key``
    The function of the user. The key does not contain types: a cache of the results of
    ``fun(vars)`` needs the types, shapes and names of ``vars`` in its key too.
``vars``
    The arguments as a tuple of containers, with a `template` for each tensor.
``fun``
    Traces the function: ``fun(vars)`` returns its `Expression`.
``args_list``
    A list for each partition, of functions that return the tensors of its arguments in order.
    The tensor at each position has the type of the template in ``vars``.
``options``
    The options of the call on top of the default options, without the compiler. They always contain
    ``hooks``.
"""

from __future__ import annotations

import functools
from types import MethodType

from nxla import _core, _hints, tree
from nxla._arguments import name_of
from nxla._marks import MARKS, reject_marks
from nxla._signatures import SignatureCache
from nxla._spec import OWN_OPTIONS, FunctionSpec, JittedFunction, spec_of
from nxla._values import as_list, as_tensor, template_of
from nxla.compiler import callback
from nxla.errors import ArgumentError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeVar

    from nxla._core import Expression
    from nxla.streams import Stream

    R = TypeVar("R")

__all__ = ["jit_partitions"]

#: Options of `jit` itself, which are not passed to compilers.
_OF_JIT = ("compiler", "on_conflict")


def jit_partitions(
    function: Callable[..., R], args_list: Sequence[Sequence[Any]], /, **options: Any
) -> list[R]:
    """Run a function on several lists of arguments, each on a partition of the compiler.

    Parameters
    ----------
    function : callable
        Takes and returns tensors and containers of them.
    args_list : sequence of sequence
        The arguments of each partition. All have the same containers, dtypes, shapes, names of axes
        and vectorized axes.
    **options
        As for `jit`, on top of the options of a jitted function. A compiler with the callback
        ``__jit__`` or ``__compile__`` gets all lists in one call. For every other compiler, list
        ``k`` runs with the options of partition ``k`` among `partitions_options`, which begin anew
        when there are more lists than partitions. With a device by name, all lists run on the
        device.

    Returns
    -------
    list
        The results of each list of arguments.

    Raises
    ------
    ArgumentError
        If the lists differ in their containers, dtypes, shapes, names of axes or vectorized axes,
        or the function has static or donated arguments and the compiler has callbacks.

    Examples
    --------
    >>> import nxla as nx
    >>> shards = [[nx.tensor([1.0, 2.0])], [nx.tensor([3.0, 4.0])]]
    >>> [total.item() for total in nx.jit_partitions(nx.sum, shards)]
    [3.0, 7.0]
    """
    from nxla.options import partitions_options
    from nxla.transform import jit

    spec = spec_of(function, "jit_partitions")
    options = {**spec.options, **options}
    lists = [
        tuple(as_list("jit_partitions", "args_list", args))
        for args in as_list("jit_partitions", "args_list", args_list)
    ]
    _check_same(name_of(function), lists)
    if not lists:
        return []
    compiler = in_force(options)
    if has_callbacks(compiler):
        reject_marks("jit_partitions", options, "fix arguments with functools.partial")
        if any((spec.positions, spec.names, spec.donated)):
            raise ArgumentError(
                "jit_partitions: function: must not have static or donated arguments with a "
                f"compiler that has callbacks; got {name_of(function)}; fix arguments with "
                "functools.partial"
            )
        return call_lists(function, lists, compiler, options)
    others = ("hooks", "on_conflict", *MARKS, *OWN_OPTIONS)
    settings = {name: value for name, value in options.items() if name not in others}
    parts = partitions_options(**settings)
    return [
        jit(function, **{**options, **parts[number % len(parts)]})(*args)
        for number, args in enumerate(lists)
    ]


def in_force(options: dict[str, Any]) -> Any:
    """Return the compiler that options choose, or the default options of the thread."""
    named = options.get("compiler")
    return _core.get_default_options().get("compiler") if named is None else named


def has_callbacks(compiler: Any) -> bool:
    """Return whether a compiler implements callbacks instead of the method `compile`."""
    return any(callback(compiler, name) is not None for name in ("__jit__", "__compile__"))


class CallbackFunction(JittedFunction):
    """A jitted function that calls the callbacks of a compiler."""

    def __init__(
        self,
        function: Callable[..., Any],
        compiler: Any,
        options: dict[str, Any],
        static: tuple[list[int], list[str]] = ([], []),
    ) -> None:
        self.callable = function
        self.compiler = compiler
        self.options = options
        self._positions, self._names = static
        #: The functions with fixed static arguments, which are the keys of a cache of the compiler.
        self._fixed = SignatureCache(lambda _: None, name_of(function), static=[0])
        functools.update_wrapper(self, function)
        self._spec = FunctionSpec(function, *static, [], options)

    def __get__(self, instance: Any, owner: type | None = None, /) -> Any:
        """Return the function as a method, whose first argument is the instance."""
        return self if instance is None else MethodType(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function on one partition."""
        if _core.is_tracing():
            conflict = self.options.get("on_conflict", "raise")
            if _core.inlines_call(name_of(self.callable), conflict):
                return self.callable(*args, **kwargs)
        function, args = self._without_static(args, kwargs)
        return call_lists(function, [args], self.compiler, self.options)[0]

    def _without_static(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Return the function with fixed static arguments, and the other arguments."""
        function = self.callable
        named = {
            name: value
            for name, value in kwargs.items()
            if name in self._names or _core.is_setting_of(function, value)
        }
        if len(named) < len(kwargs):
            from inspect import signature

            others = {name: value for name, value in kwargs.items() if name not in named}
            bound = signature(function).bind_partial(*args, **others)
            args, named = bound.args, {**named, **bound.kwargs}
        placed = {at: args[at] for at in self._positions if at < len(args)}
        if not placed and not named:
            return function, args
        rest = tuple(x for at, x in enumerate(args) if at not in placed)
        return self._with_fixed(placed, named), rest

    def _with_fixed(self, placed: dict[int, Any], named: dict[str, Any]) -> Callable[..., Any]:
        """Return the function with arguments fixed by position and by name."""
        fixed = [*placed.items(), *sorted(named.items())]

        def call(*args: Any) -> Any:
            given = iter(args)
            count = len(args) + len(placed)
            own = [placed[at] if at in placed else next(given) for at in range(count)]
            return self.callable(*own, **named)

        functools.update_wrapper(call, self.callable)
        if any(isinstance(value, _core.Tensor) for _, value in fixed):
            return call
        try:
            return self._fixed.get_or_make([fixed], None, lambda: call)
        except ArgumentError:  # A value is not hashable.
            return call


def call_lists(
    function: Callable[..., Any],
    lists: list[tuple[Any, ...]],
    compiler: Any,
    options: dict[str, Any],
) -> list[Any]:
    """Run a function on lists of arguments by the callbacks of a compiler."""
    variables = tree.map(template_of, lists[0])
    own = _options(compiler, options)
    trace = _tracer(function, compiler)
    args_list = [
        [functools.partial(as_tensor, leaf) for leaf in tree.leaves(args)] for args in lists
    ]
    jit = callback(compiler, "__jit__")
    with _within(own):
        if jit is not None:
            results = jit(function, variables, trace, args_list, own)
        else:
            results = _callback(compiler, "__compile__")(function, variables, trace, own)(args_list)
    return _check_results(compiler, results, len(lists))


def compile_by_callback(
    function: Callable[..., Any], templates: Sequence[Any], compiler: Any, options: dict[str, Any]
) -> Any:
    """Return the function that the callback ``__compile__`` returns for templates."""
    variables = tree.map(template_of, tuple(templates))
    trace, own = _tracer(function, compiler), _options(compiler, options)
    run = _callback(compiler, "__compile__")(function, variables, trace, own)
    name = name_of(function)

    def call(*args: Any, **kwargs: Any) -> Any:
        args = _core.compiled_arguments(name, function, variables, args, kwargs)
        args_list = [[functools.partial(as_tensor, leaf) for leaf in tree.leaves(args)]]
        with _within(own):
            return _check_results(compiler, run(args_list), 1)[0]

    return functools.update_wrapper(call, function)


def expression_by_callback(
    compiler: Any, expression: Expression, options: dict[str, Any]
) -> Callable[[list[Any]], list[Any]]:
    """Return a function of the inputs of an expression that callbacks of a compiler run."""
    variables = tuple(_core.Template(shape, dtype) for shape, dtype in expression.inputs)
    own = {**options, "hooks": {}}
    compile, jit = callback(compiler, "__compile__"), callback(compiler, "__jit__")
    if compile is not None:
        run = compile(expression, variables, lambda _: expression, own)
    elif jit is not None:

        def run(args_list: list[list[Any]]) -> Any:
            return jit(expression, variables, lambda _: expression, args_list, own)

    else:
        raise NotImplementedError(
            f"{type(compiler).__name__}: must implement __compile__ or __jit__"
        )

    def call(inputs: list[Any]) -> list[Any]:
        results = run([[functools.partial(as_tensor, tensor) for tensor in inputs]])
        return tree.leaves(_check_results(compiler, results, 1)[0])

    return call


def stream_by_callback(
    function: Callable[..., Any],
    template: Any,
    initial: Any,
    constants: tuple[Any, ...],
    options: dict[str, Any],
) -> Stream[Any] | None:
    """Return the stream that the callback ``__stream__`` makes; None without this callback."""
    compiler = in_force(options)
    start = callback(compiler, "__stream__")
    if start is None:
        return None
    values = tree.leaves((template, initial, *constants))
    flat = [functools.partial(as_tensor, leaf) for leaf in tree.leaves((initial, *constants))]
    structures = (tree.map(template_of, template), tree.map(template_of, initial))
    variables = [template_of(leaf) for leaf in values]
    arguments = tree.flatten((template, initial, *constants))[1]

    def trace(variables: Sequence[Any]) -> Expression:
        return _tracer(function, compiler)(arguments.unflatten(list(variables)))

    streams = start(function, *structures, variables, trace, [flat], _options(compiler, options))
    made: Stream[Any] = _check_results(compiler, streams, 1)[0]
    return made


def _within(own: dict[str, Any]) -> Any:
    """Return default options for use inside callbacks, which must not call their own compiler."""
    from nxla.options import default_options

    return default_options({"compiler": "evaluator", "hooks": own["hooks"]})


def _callback(compiler: Any, name: str) -> Callable[..., Any]:
    found = callback(compiler, name)
    if found is None:
        raise NotImplementedError(f"{type(compiler).__name__}: must implement {name}")
    return found


def _tracer(function: Callable[..., Any], compiler: Any) -> Callable[[Any], Expression]:
    """Return a function that traces another function for templates of its arguments."""
    from nxla.transform import debug_expr

    return lambda variables: debug_expr(function, compiler=compiler)(*variables)


def _options(compiler: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that a callback receives."""
    defaults = dict(_core.get_default_options())
    if defaults.get("compiler") not in (None, compiler):
        # Settings belong to the compiler for which they were written.
        defaults = {"hooks": defaults.get("hooks", {})}
    hooks = {**defaults.get("hooks", {}), **(options.get("hooks") or {})}
    merged = {**defaults, **options, "hooks": hooks}
    return {name: value for name, value in merged.items() if name not in _OF_JIT}


def _check_same(name: str, lists: Sequence[tuple[Any, ...]]) -> None:
    """Raise unless all lists of arguments have the containers and the types of the first."""
    if len(lists) < 2:
        return
    leaves, structure = tree.flatten(lists[0])
    expected = [template_of(leaf) for leaf in leaves]
    for number, args in enumerate(lists[1:], start=1):
        found, other = tree.flatten(args)
        if other != structure:
            raise ArgumentError(f"{name}: arguments {number}: must be {structure}; got {other}")
        for position, (leaf, template) in enumerate(zip(found, expected, strict=True)):
            own = template_of(leaf)
            if own != template:
                path = structure.leaf_path(position)
                raise ArgumentError(
                    f"{name}: arguments {number}{path}: must be {template}; got {own}"
                )


def _check_results(compiler: Any, results: Any, count: int) -> list[Any]:
    """Return the results of a callback, one for each of `count` lists of arguments."""
    found = list(results)
    if len(found) != count:
        name = getattr(compiler, "name", compiler)
        raise ArgumentError(
            f"compiler {name!r}: results: must have one entry for each of {count} lists of "
            f"arguments; got {len(found)}"
        )
    return found


_hints.install(globals())
