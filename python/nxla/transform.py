"""Functions of functions: compile them, look at them, differentiate them."""

from __future__ import annotations

import functools

from nxla import _core, tree
from nxla._arguments import name_of, names_of
from nxla._observer import Observer
from nxla.compiler import overrides
from nxla.errors import ArgumentError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, ParamSpec, TypeVar, overload

    from nxla._core import Compiled, Expression, Function, Template, Tensor
    from nxla._types import DTypeLike, Names, Shape, TensorLike
    from nxla.ahead import ImportedFunction
    from nxla.sharding import ShardedFunction

    P = ParamSpec("P")
    R = TypeVar("R")
    A = TypeVar("A")
    B = TypeVar("B")
    X = TypeVar("X")

__all__ = [
    "compile",
    "custom_grad",
    "debug_expr",
    "debug_expr_apply",
    "defn",
    "export",
    "import_stablehlo",
    "jit",
    "jit_apply",
    "stop_grad",
    "template",
]

if TYPE_CHECKING:

    @overload
    def jit(
        function: Callable[P, R],
        /,
        *,
        static_argnums: int | Iterable[int] = (),
        static_argnames: str | Iterable[str] = (),
        donate_argnums: int | Iterable[int] = (),
        donate_argnames: str | Iterable[str] = (),
        **options: Any,
    ) -> Function[P, R]: ...

    @overload
    def jit(
        *,
        static_argnums: int | Iterable[int] = (),
        static_argnames: str | Iterable[str] = (),
        donate_argnums: int | Iterable[int] = (),
        donate_argnames: str | Iterable[str] = (),
        **options: Any,
    ) -> Callable[[Callable[P, R]], Function[P, R]]: ...


def jit(
    function: Callable[..., Any] | None = None,
    /,
    *,
    static_argnums: int | Iterable[int] = (),
    static_argnames: str | Iterable[str] = (),
    donate_argnums: int | Iterable[int] = (),
    donate_argnames: str | Iterable[str] = (),
    **options: Any,
) -> Any:
    """Make a function that runs compiled.

    Nothing happens until it is called. For each new signature (dtypes, shapes and names of the
    tensors, the containers around them, values of static arguments) it is traced and compiled;
    later calls with that signature only run what was compiled.

    Parameters
    ----------
    function : callable, optional
        Takes and gives tensors and containers of them. Left out, the result is a decorator.
    static_argnums, static_argnames : int or str, or several, optional
        Arguments that are part of the signature instead of inputs. They must be hashable, or made
        of lists, dicts and sets of what is. Strings, functions, None and other values with an
        equality of their own are static without being named here. An object that is equal to
        itself alone may change unnoticed: it has to be named, or be a container
        (`nxla.tree.register_container`).
    donate_argnums : int or several, optional
        Arguments whose memory on a device the results may take over; they cannot be used
        afterwards. Negative numbers count from the end.
    donate_argnames : str or several, optional
        The same by name, or by the path of a part: ``"state"``, ``"state.mean"``, ``"grads['w']"``.
    **options
        ``compiler`` (a name or a `Compiler`), ``device`` (a `Device` or its name),
        ``hooks`` (a dict of names and functions),
        ``stages`` (a `graph.Policy` or its name: how the program is cut into parts that are
        compiled by themselves), ``progress`` (whether a bar on standard error shows how many of
        the stages are compiled, if that takes long), ``on_conflict`` (what a call during another
        trace does:
        ``"reuse"`` to become part of the trace, which is the default without other options;
        ``"raise"``, which is the default with some; ``"force"`` to run by itself), and settings of
        the compiler.
        ``max_compiles`` (how many programs it is meant to compile), with ``on_max_compiles``
        (what happens for more: ``"warn"``, ``"raise"`` or ``"log"``; the text says what differed
        from the call before). ``debug_nans`` (see `debug_nans`). ``on_unusable_donation``: what
        happens if no result has the type of a donated tensor, or the tensor is not needed:
        ``"ignore"``, ``"warn"`` or ``"raise"``.
        ``in_shardings`` and ``out_shardings`` make a function over the devices of a `Mesh`: a
        `Sharding` for all, or a container that begins like the arguments (a tuple with an entry
        for each) and the results; None stands for what every device has all of. Arguments are
        divided as these say, and results come as `ShardedTensor`. See `nxla.sharding`.

        The settings of the compiler ``"xla"``:

        ``plugin``
            The path of a plugin, in place of the one that is found.
        ``device``, ``cpu_device_count``
            The number of a device, and how many devices a plugin for the CPU shall make.
        ``preallocate``
            Whether a plugin for GPUs takes most of their memory at once; by default it does not.
        ``precision``
            That of products on hardware that can trade it for speed: ``"default"``, ``"high"``,
            ``"highest"``.
        ``kernels``
            Whether factorizations, triangular and linear solves, sorts, top-k, cumulative
            reductions and Fourier transforms are custom calls of the evaluator's kernels on a CPU.
            By default they are where the plugin can call the host; ``False`` leaves them to XLA.
        ``cache_dir``, ``cache_bytes``
            A folder in which executables outlive the process, and how many bytes it may have. By
            default what the environment says in ``NXLA_CACHE_DIR`` and ``NXLA_CACHE_BYTES``; no
            folder, or an empty name, is none.
        ``xla_...``
            XLA's own flags, by their names: ``xla_cpu_enable_fast_math=True``. Those that the
            plugin does not know, and values that are none of theirs, raise a `DeviceError`.

        The compiler ``"auto"`` chooses between the other two for each call (see `explain`). It has
        the settings of ``"xla"``, and two that others refuse:

        ``compile_above``
            Microseconds, 500 by default: programs estimated at no more run on the evaluator.
        ``compile_after``
            How many calls run on the evaluator for each signature, 2 by default. XLA compiles
            during the last one and runs all later calls, whose last digits may differ. Without the
            setting, programs that take the evaluator long run on XLA from the first call.

        The compiler ``"evaluator"``, the default, has no settings.

    Returns
    -------
    Function
        With the name, the docstring and the signature of `function`. Its method ``lower`` traces
        for arguments or templates without running, and gives a `nxla.ahead.Lowered`: the program as
        StableHLO text, its operations, and what a compiler says of its cost and memory.

    Raises
    ------
    OptionError
        If there is no such compiler, or it has no such setting.
    ArgumentError
        If a static or donated argument is none of the function's.

    Examples
    --------
    >>> import nxla as nx
    >>> @nx.jit
    ... def norm(x):
    ...     return nx.sqrt(nx.sum(x * x))
    >>> norm(nx.tensor([3.0, 4.0])).item()
    5.0
    >>> @nx.jit(static_argnames="power")
    ... def raised(x, power):
    ...     return x if power == 1 else x**power
    >>> raised(nx.tensor([2.0, 3.0]), power=2).tolist()
    [4.0, 9.0]
    >>> norm.lower(nx.template(3)).nodes
    {'parameter': 1, 'multiply': 1, 'sum': 1, 'sqrt': 1}
    """
    if function is None:
        return functools.partial(
            jit,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
            donate_argnums=donate_argnums,
            donate_argnames=donate_argnames,
            **options,
        )
    if "in_shardings" in options or "out_shardings" in options:
        return _over_a_mesh(
            function, options, static_argnums, static_argnames, donate_argnums, donate_argnames
        )
    custom = overrides(options.get("compiler"), "jit")
    if custom is not None:
        if any(
            given != ()
            for given in (static_argnums, static_argnames, donate_argnums, donate_argnames)
        ):
            raise ArgumentError(
                f"jit: the compiler {custom.name!r} has its own way to jit, which takes no static "
                "or donated arguments"
            )
        return custom.jit(function, options)
    donated = _donated(_recipe(function).function, donate_argnums, donate_argnames)
    return make_function(function, static_argnums, static_argnames, donated, options)


def _over_a_mesh(
    function: Callable[..., Any], options: dict[str, Any], *marks: Any
) -> ShardedFunction:
    """Make a function over the devices of a mesh."""
    from nxla.sharding import ShardedFunction

    if any(each != () for each in marks):
        raise ArgumentError(
            "jit: a function over a mesh takes no static and no donated arguments; bind what is "
            "static by functools.partial"
        )
    inputs, outputs = options.pop("in_shardings", None), options.pop("out_shardings", None)
    return ShardedFunction(function, inputs, outputs, options)


#: Options that functions see to themselves, and their defaults.
_OWN_OPTIONS = {
    "debug_nans": False,
    "max_compiles": None,
    "on_max_compiles": "warn",
    "on_unusable_donation": "ignore",
}


class _Recipe:
    """How a `Function` was made, for functions that are made of it."""

    def __init__(
        self,
        function: Callable[..., Any],
        positions: list[int],
        names: list[str],
        donated: list[Donated],
        options: dict[str, Any],
        jitted: bool = True,
    ) -> None:
        self.function = function
        self.positions = positions
        self.names = names
        self.donated = donated
        self.options = options
        #: Whether what has been traced stands for later calls.
        self.jitted = jitted

    @property
    def engine_options(self) -> dict[str, Any]:
        """The options that say what compiles the function, and how."""
        return {key: self.options[key] for key in self.options if key not in _OWN_OPTIONS}


def _recipe(function: Callable[..., Any]) -> _Recipe:
    """Return what a function is to be traced as.

    A jitted function is traced as the function that it was made of, which could not be called
    otherwise, and keeps its static arguments and its options.
    """
    if not callable(function):
        raise ArgumentError(f"jit: expected a function, got {type(function).__name__}")
    if isinstance(function, _core.Function):
        known = getattr(function, "_recipe", None)
        if isinstance(known, _Recipe):
            return known
    return _Recipe(function, [], [], [], {}, jitted=False)


#: A donated argument: its position if it can be given by position, its name, and the path of the
#: part of it that is meant, which is empty for all of it.
Donated = tuple[int | None, str, str]


def make_function(
    function: Callable[..., Any],
    static_argnums: int | Iterable[int] = (),
    static_argnames: str | Iterable[str] = (),
    donated: Iterable[Donated] = (),
    options: dict[str, Any] | None = None,
    jitted: bool = True,
) -> Function[..., Any]:
    """Make a `Function`, which knows how it was made, and looks like the function it is made of.

    One that is not `jitted` is traced at every call; equal programs are compiled once all the same.
    """
    recipe = _recipe(function)
    positions, names = _statics(recipe.function, static_argnums, static_argnames)
    positions = sorted({*positions, *recipe.positions})
    names = sorted({*names, *recipe.names})
    donated = [*recipe.donated, *(each for each in donated if each not in recipe.donated)]
    all_options = {**recipe.options, **(options or {})}
    new = _Recipe(recipe.function, positions, names, donated, all_options, jitted)
    name = name_of(recipe.function)
    own = {key: new.options.get(key) or default for key, default in _OWN_OPTIONS.items()}
    observer = Observer(
        name,
        new.options.get("max_compiles"),
        str(own["on_max_compiles"]),
        str(own["on_unusable_donation"]),
    )
    made = _core.Function(
        recipe.function,
        name,
        new.engine_options,
        positions,
        names,
        donated,
        bool(own["debug_nans"]),
        observer,
        not jitted,
    )
    functools.update_wrapper(made, recipe.function)
    made._recipe = new  # type: ignore[attr-defined]
    return made


def _positions(function: Callable[..., Any], argnums: int | Iterable[int], option: str) -> set[int]:
    """Return positions counted from the start, for an option that names arguments of a function."""
    given = [argnums] if isinstance(argnums, int) else list(argnums)
    if not given:
        return set()
    from inspect import Parameter, signature

    parameters = signature(function).parameters.values()
    count = len(parameters)
    open_end = any(p.kind is Parameter.VAR_POSITIONAL for p in parameters)
    positions = {position + count if position < 0 else position for position in given}
    for position in positions:
        if position < 0 or (position >= count and not open_end):
            raise ArgumentError(
                f"jit: {name_of(function)} has {count} arguments, {option} names number {position}"
            )
    return positions


def _donated(
    function: Callable[..., Any],
    argnums: int | Iterable[int],
    argnames: str | Iterable[str],
) -> list[Donated]:
    """Return position, name and path of each donated argument, or part of one."""
    positions = sorted(_positions(function, argnums, "donate_argnums"))
    paths = [argnames] if isinstance(argnames, str) else list(argnames)
    if not positions and not paths:
        return []
    import re
    from inspect import Parameter, signature

    parameters = list(signature(function).parameters.values())
    any_name = any(p.kind is Parameter.VAR_KEYWORD for p in parameters)
    positional = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    by_name: dict[str, int | None] = {
        p.name: position if p.kind in positional else None for position, p in enumerate(parameters)
    }
    by_position = {position: name for name, position in by_name.items() if position is not None}
    donated: list[Donated] = [(each, by_position.get(each, ""), "") for each in positions]
    for path in paths:
        parts = re.fullmatch(r"(\w+)((?:[.\[].*)?)", path)
        name = parts[1] if parts else path
        if parts is None or (name not in by_name and not any_name):
            raise ArgumentError(
                f"jit: {name_of(function)} has no argument {name!r}, "
                f"donate_argnames must begin with one of {', '.join(by_name)}"
            )
        donated.append((by_name.get(name), name, parts[2]))
    return donated


def _statics(
    function: Callable[..., Any],
    argnums: int | Iterable[int],
    argnames: str | Iterable[str],
) -> tuple[list[int], list[str]]:
    """Return positions and names of static arguments, each argument under both."""
    positions = _positions(function, argnums, "static_argnums")
    names = {argnames} if isinstance(argnames, str) else set(argnames)
    if not positions and not names:
        return [], []
    from inspect import Parameter, signature

    parameters = list(signature(function).parameters.values())
    any_name = any(p.kind is Parameter.VAR_KEYWORD for p in parameters)
    known = [p.name for p in parameters]
    for name in names:
        if name not in known and not any_name:
            raise ArgumentError(
                f"jit: {name_of(function)} has no argument {name!r}, "
                f"static_argnames must be among {', '.join(known)}"
            )
    positional = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    for position, parameter in enumerate(parameters):
        if parameter.kind in positional and (position in positions or parameter.name in names):
            positions.add(position)
            names.add(parameter.name)
    return sorted(positions), sorted(names)


def jit_apply(function: Callable[..., R], /, *args: Any, **options: Any) -> R:
    """Compile a function and call it: ``jit(function, **options)(*args)``.

    Programs are kept by what they compute, so calling this again compiles nothing; a function made
    by `jit` once also saves the tracing.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.jit_apply(nx.add, nx.tensor([1, 2]), 3).tolist()
    [4, 5]
    """
    return jit(function, **options)(*args)


if TYPE_CHECKING:

    @overload
    def defn(function: Callable[P, R], /, **options: Any) -> Function[P, R]: ...

    @overload
    def defn(**options: Any) -> Callable[[Callable[P, R]], Function[P, R]]: ...


def defn(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Define a numerical function: compiled when called, and part of the trace inside another one.

    It is `jit` with ``on_conflict="reuse"``.

    Examples
    --------
    >>> import nxla as nx
    >>> @nx.defn
    ... def softplus(x):
    ...     return nx.log1p(nx.exp(x))
    >>> @nx.defn
    ... def total(x):
    ...     return nx.sum(softplus(x))
    >>> for line in total.debug_expr(nx.template((3,))).lines():
    ...     print(line)
    parameter a:0                            f32[3]
    b = exp a                                f32[3]
    c = log1p b                              f32[3]
    d = sum c, axes: nil, keep_axes: false   f32
    """
    options = {"on_conflict": "reuse", **options}
    return jit(**options) if function is None else jit(function, **options)


def compile(function: Callable[..., R], templates: Sequence[Any], /, **options: Any) -> Compiled[R]:
    """Trace and compile a function now, for these types of arguments and no others.

    Parameters
    ----------
    function : callable
        Takes and gives tensors and containers of them.
    templates : sequence
        One for each positional argument: a `template`, a tensor, a number, or a container of them.
        Arguments without any tensor (strings, functions, None) and static ones are fixed here, and
        left out when the result is called.
    **options
        As for `jit`. Those with the name of an argument of the function are arguments, which are
        fixed here too.

    Returns
    -------
    Compiled
        Takes the remaining arguments, by position or by name. It raises an `ArgumentError` that
        names the argument if one has another type, and never compiles again.

    Raises
    ------
    ArgumentError
        If an argument that is given by name has a tensor in it, which has no place in a call.

    Examples
    --------
    >>> import nxla as nx
    >>> f = nx.compile(lambda x, y: x * y, [nx.template((2,)), nx.template((), nx.int32)])
    >>> f(nx.tensor([1.5, 2.5]), 2).tolist()
    [3.0, 5.0]
    >>> nx.compile(nx.sum, [nx.template((2, 2))], axis=1)(nx.ones((2, 2))).tolist()
    [2.0, 2.0]
    """
    recipe = _recipe(function)
    named = {name: options.pop(name) for name in _arguments_among(recipe.function, options)}
    return compile_for(function, list(templates), named, options)


def compile_for(
    function: Callable[..., R],
    templates: list[Any],
    named: dict[str, Any],
    options: dict[str, Any],
) -> Compiled[R]:
    """Compile a function for templates and arguments that are given by name."""
    recipe = _recipe(function)
    function, options = _with_arguments(recipe.function, named), {**recipe.options, **options}
    inputs = [
        position not in recipe.positions and bool(tree.leaves(template))
        for position, template in enumerate(templates)
    ]
    if all(inputs):
        bound = function
    else:
        fixed = list(zip(inputs, templates, strict=True))

        @functools.wraps(function)
        def bound(*args: Any) -> R:
            given = iter(args)
            return function(*(next(given) if is_input else value for is_input, value in fixed))

        names = names_of(function, len(templates))
        left = [name for is_input, name in zip(inputs, names, strict=True) if is_input]
        bound._argument_names = left  # type: ignore[attr-defined]

    remaining = [t for is_input, t in zip(inputs, templates, strict=True) if is_input]
    custom = overrides(options.get("compiler"), "jit")
    if custom is not None and overrides(custom, "compile") is None:
        raise ArgumentError(
            f"compile: the compiler {custom.name!r} has its own way to jit, and compiles no "
            "templates"
        )
    # The inputs that remain are counted anew.
    places = [position for position, is_input in enumerate(inputs) if is_input]
    donated: list[Donated] = [
        (places.index(position), "", path)
        for position, _, path in recipe.donated
        if position in places
    ]
    return make_function(bound, donated=donated, options=options).compile(*remaining)


def _arguments_among(function: Callable[..., Any], options: dict[str, Any]) -> list[str]:
    """Return which names are those of arguments of a function, rather than of options."""
    if not options:
        return []
    from inspect import Parameter, signature

    try:
        parameters = signature(function).parameters.values()
    except (TypeError, ValueError):  # Not every function of C tells its arguments.
        return []
    named = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    return [p.name for p in parameters if p.kind in named and p.name in options]


def _with_arguments(function: Callable[..., Any], named: dict[str, Any]) -> Callable[..., Any]:
    """Return a function with arguments that are fixed by name."""
    if not named:
        return function
    for name, value in named.items():
        if any(isinstance(leaf, _core.Tensor | _core.Template) for leaf in tree.leaves(value)):
            raise ArgumentError(
                f"compile: {name} has a tensor in it; give its template by position, since the "
                "compiled function takes its inputs so"
            )
    fixed = functools.partial(function, **named)
    functools.update_wrapper(fixed, function)
    return fixed


def template(
    shape: Shape,
    dtype: DTypeLike = _core.f32,
    *,
    names: Names | None = None,
    vectorized_axes: Sequence[tuple[str, int]] = (),
) -> Template:
    """Stand for an input without data, for `compile`, `debug_expr` and `stream`.

    Parameters
    ----------
    shape : int or sequence of int
        The sizes of the axes.
    dtype : dtype_like
        The element type.
    names : sequence of (str or None), optional
        The names of the axes.
    vectorized_axes : sequence of (str, int), optional
        Names and sizes of vectorized axes, which `shape` leaves out.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.template((2, 3), nx.int32)
    s32[2][3]
    """
    return _core.Template(shape, dtype, names, list(vectorized_axes))


def debug_expr(
    function: Callable[..., Any],
    /,
    *,
    static_argnums: int | Iterable[int] = (),
    static_argnames: str | Iterable[str] = (),
    **options: Any,
) -> Callable[..., Expression]:
    """Make a function that gives the expression of a call instead of running it.

    Parameters
    ----------
    function : callable
        Takes and gives tensors and containers of them.
    static_argnums, static_argnames, **options
        As for `jit`.

    Returns
    -------
    callable
        Takes the arguments of `function`, or templates in their place. The result prints as text,
        shows as a picture in a notebook, and can be split by `nxla.graph.split`.

    Examples
    --------
    >>> import nxla as nx
    >>> for line in nx.debug_expr(lambda a, b: nx.sin(-a) + b)(1, 2).lines():
    ...     print(line)
    parameter a:0   s32
    parameter d:1   s32
    b = negate a    s32
    c = sin b       f32
    e = add c, d    f32
    """
    return make_function(function, static_argnums, static_argnames, (), options).debug_expr


def debug_expr_apply(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Expression:
    """Return the expression of a call: ``debug_expr(function)(*args, **kwargs)``."""
    return make_function(function).debug_expr(*args, **kwargs)


def export(
    function: Callable[..., Any],
    args: Sequence[Any],
    /,
    file: str | os.PathLike[str] | None = None,
    **options: Any,
) -> str:
    """Write a function for certain types of arguments as StableHLO, to be run elsewhere.

    Parameters
    ----------
    function : callable
        Takes and gives tensors and containers of them.
    args : sequence
        One for each positional argument: a `template`, a tensor, a number, or a container of them.
        What holds no tensor is fixed. Tensors that the function mentions become part of the text.
    file : path, optional
        Where to write the text.
    **options
        As for `jit`; ``precision`` matters to the text.

    Returns
    -------
    str
        The text: a comment with the signature in one line, then a StableHLO module, which other
        users of StableHLO read as it is. Its function ``@main`` takes the tensors of the arguments
        that it needs, in their order.

    Raises
    ------
    ArgumentError
        If a result comes in a container other than tuples, lists, and dicts with strings as keys.
    DeviceError
        If there are hooks that somebody listens to, or an operation that StableHLO lacks.

    Examples
    --------
    >>> import nxla as nx
    >>> text = nx.export(lambda x: {"twice": 2 * x}, [nx.template(3)])
    >>> for line in text.splitlines()[1:3]:
    ...     print(line)
    module @nxla {
      func.func public @main(%0: tensor<3xf32>) -> tensor<3xf32> {
    """
    from nxla.ahead import written

    return written(function, tuple(args), file, options)


def import_stablehlo(source: str | os.PathLike[str], /, **options: Any) -> ImportedFunction:
    """Make a function of StableHLO, which runs with XLA.

    Parameters
    ----------
    source : path or str
        A file, or the text itself. What `export` wrote takes and gives the containers of the
        function that it was; any other module takes a tensor for each parameter of its function
        ``@main``, and gives its result or a tuple of them.
    **options
        ``device``, and settings of the compiler ``"xla"``, as for `jit`.

    Returns
    -------
    ImportedFunction
        Compiled when it is first called. It runs by itself, and is not part of traces.

    Raises
    ------
    FormatError
        If there is no function ``@main`` of tensors whose shapes are known, or the first line of
        an exported file is damaged. What XLA makes of the rest is told by the first call.
    OSError
        If there is no file of that name, or it cannot be read.

    Examples
    --------
    >>> import nxla as nx
    >>> text = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }"
    >>> nx.import_stablehlo(text).inputs
    [('argument 0', 'f32[2]')]
    """
    from nxla.ahead import imported

    return imported(source, options)


def _derived(function: Callable[..., Any], recipe: _Recipe) -> Function[..., Any]:
    """Make a function with the arguments and the options of another one.

    What it closes over may be something else at the next call, which only a function that was
    jitted leaves out of account.
    """
    functools.update_wrapper(function, recipe.function)
    options = {**recipe.options, "on_conflict": "reuse"}
    return make_function(
        function, recipe.positions, recipe.names, (), options, jitted=recipe.jitted
    )


def stop_grad(x: Any, /) -> Any:
    """Return the value unchanged; no gradient flows through it.

    Parameters
    ----------
    x : tensor_like or container
        What counts as a constant for gradients.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.grad(lambda x: x * nx.stop_grad(x))(3.0).item()
    3.0
    """
    return tree.map(_core.stop_grad, x)


def custom_grad(value: Any, inputs: Any, rule: Callable[[Any], Any], /) -> Any:
    """Return a value with a derivative of one's own.

    Parameters
    ----------
    value : tensor or container
        What was computed.
    inputs : tensor or container
        What it was computed from.
    rule : callable
        Takes the cotangents, in the structure of `value`, and gives those of `inputs` in their
        structure. It may use any value at hand.

    Returns
    -------
    tensor or container
        The value.

    Raises
    ------
    ArgumentError
        If the rule does not give one cotangent for each input.

    Examples
    --------
    >>> import nxla as nx
    >>> def clipped(x):
    ...     return nx.custom_grad(x, x, lambda g: nx.clip(g, -1.0, 1.0))
    >>> nx.grad(lambda x: 10.0 * clipped(x))(2.0).item()
    1.0
    """
    if not _core.is_tracing():
        return value
    leaves, structure = tree.flatten(value)
    input_leaves, input_structure = tree.flatten(inputs)

    def flat_rule(cotangents: list[Tensor]) -> list[TensorLike]:
        answer, answer_structure = tree.flatten(rule(structure.unflatten(cotangents)))
        if answer_structure != input_structure:
            raise ArgumentError(
                f"custom_grad: the rule gave {answer_structure}, the inputs are {input_structure}"
            )
        return answer

    return structure.unflatten(_core.custom_grad(leaves, input_leaves, flat_rule))
