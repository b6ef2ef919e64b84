"""Transformations of functions: compile, inspect, export and differentiate them."""

from __future__ import annotations

import functools

from nxla import _core, _hints, tree
from nxla._arguments import names_of, parameters_of, reject_shardings, require_list
from nxla._marks import MARKS, Donated, donated_arguments, marked_arguments, static_arguments
from nxla._spec import JIT_OPTIONS, make_function, spec_of
from nxla._values import as_pairs, require_callable
from nxla.compiler import callback, has_own_jit, overrides, own_jit
from nxla.errors import ArgumentError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, ParamSpec, TypeVar, overload

    from nxla._core import Compiled, Expression, Function, Template
    from nxla._types import DTypeLike, Names, Shape
    from nxla.ahead import ImportedFunction
    from nxla.sharding import ShardedFunction

    P = ParamSpec("P")
    R = TypeVar("R")
    A = TypeVar("A")
    B = TypeVar("B")
    X = TypeVar("X")

__all__ = [
    "compile",
    "debug_expr",
    "debug_expr_apply",
    "defn",
    "export",
    "import_stablehlo",
    "jit",
    "jit_apply",
    "template",
]

if TYPE_CHECKING:

    @overload
    def jit(
        function: Callable[P, R],
        /,
        *,
        static_argnums: int | Iterable[int] | None = (),
        static_argnames: str | Iterable[str] | None = (),
        donate_argnums: int | Iterable[int] | None = (),
        donate_argnames: str | Iterable[str] | None = (),
        **options: Any,
    ) -> Function[P, R]: ...

    @overload
    def jit(
        *,
        static_argnums: int | Iterable[int] | None = (),
        static_argnames: str | Iterable[str] | None = (),
        donate_argnums: int | Iterable[int] | None = (),
        donate_argnames: str | Iterable[str] | None = (),
        **options: Any,
    ) -> Callable[[Callable[P, R]], Function[P, R]]: ...


def jit(
    function: Callable[..., Any] | None = None,
    /,
    *,
    static_argnums: int | Iterable[int] | None = (),
    static_argnames: str | Iterable[str] | None = (),
    donate_argnums: int | Iterable[int] | None = (),
    donate_argnames: str | Iterable[str] | None = (),
    **options: Any,
) -> Any:
    """Return a compiled version of a function.

    The function is traced and compiled in its first call for each new signature: the dtypes, shapes
    and axis names of the tensors, the structure of the containers, and the values of static
    arguments. Later calls with the same signature run the compiled program.

    Parameters
    ----------
    function : callable, optional
        A function of tensors and containers. If it is omitted, `jit` returns a decorator.
    static_argnums, static_argnames : int or str, or several, optional
        Arguments that are part of the signature instead of inputs. They must be hashable, or lists,
        dicts and sets of hashable values. Strings, None and other values that compare by value are
        static without being named, and so are functions, classes and modules. An object with
        attributes whose class does not define equality must be named, or be a container
        (`nxla.tree.register_container`), because it can change unnoticed.
    donate_argnums : int or several, optional
        Arguments whose device memory the results may reuse. An accepted call consumes the donated
        tensors that the function uses, even if the run fails. The caller cannot use these tensors
        afterwards, and must not pass the same tensor again in another argument. Tensors on the host
        are never consumed. Negative numbers count from the end.
    donate_argnames : str or several, optional
        The same by name, or by the path of a part: ``"state"``, ``"state.mean"``, ``"grads['w']"``.
    **options
        Options of every compiler, and settings of the selected compiler.

        ``compiler``
            A name or a `Compiler`.
        ``device``
            A `Device` or its name.
        ``client``
            The name of a client: its first device, or the device with the index ``device``.
        ``hooks``
            A dict of names and functions, which named hooks call.
        ``stages``
            A `graph.Policy`, or ``"layers"``, ``"training"``, ``"marks"`` or ``"auto"``; the
            program is split by it, and the stages are compiled separately.
        ``progress``
            If True, show a progress bar on standard error while many stages are compiled.
        ``on_conflict``
            The action for a call during another trace: ``"reuse"`` makes the function a part of
            the trace (the default without other options), ``"raise"`` raises an error (the default
            with other options), and ``"force"`` runs the function separately.
        ``max_compiles``, ``on_max_compiles``
            The expected number of compiled programs, and the action when it is exceeded:
            ``"warn"``, ``"raise"`` or ``"log"``. The message names the difference to the last call.
        ``debug_nans``
            True checks the results, False does not, also under `nxla.debug_nans`.
        ``on_unusable_donation``
            The action if no result has the type of a donated tensor, or the program does not use
            the tensor: ``"ignore"``, ``"warn"`` or ``"raise"``.
        ``in_shardings``, ``out_shardings``
            The division of arguments and results over the devices of a `Mesh`: a `Sharding` for all
            of them, or a container with the structure of the arguments (a tuple with one entry for
            each) or of the results. None is a copy on every device. Results are `ShardedTensor`
            objects. See `nxla.sharding`.

        The settings of the compiler ``"xla"``:

        ``plugin``
            The path of a plugin to load instead of the installed one.
        ``device``, ``cpu_device_count``
            The index of a device, and the number of devices that a CPU plugin creates.
        ``preallocate``
            If True, a GPU plugin allocates most of the memory at once; False by default.
        ``precision``
            The precision of products on hardware that trades it for speed: ``"default"``,
            ``"high"`` or ``"highest"``.
        ``kernels``
            If True, factorizations, triangular and linear solves, sorts, top-k, cumulative
            reductions and Fourier transforms are custom calls of the evaluator's kernels on a CPU;
            if False, XLA computes them. The default is True if the plugin can call the host.
        ``cache_dir``, ``cache_bytes``
            The folder in which executables are stored for other processes, and its size limit in
            bytes. The defaults are the environment variables ``NXLA_CACHE_DIR`` and
            ``NXLA_CACHE_BYTES``. An empty name disables the cache.
        ``xla_...``
            XLA flags by their names: ``xla_cpu_enable_fast_math=True``. The plugin rejects unknown
            flags and invalid values, and the call raises an `OptionError`.

        The compiler ``"auto"`` chooses between the other two for each call (see `explain`). It has
        the settings of ``"xla"``, and two more. Without both, XLA runs only loops of small steps.

        ``compile_above``
            Programs with at most this estimated time run on the evaluator; in microseconds, 500
            by default.
        ``compile_after``
            The number of calls of each signature that run on the evaluator, 2 by default. XLA
            compiles during the last one and runs all later calls, whose last digits may differ.
            Without the setting, programs that are slow on the evaluator run on XLA from the first
            call.

        The compiler ``"evaluator"``, the default, has no settings.

    Returns
    -------
    Function
        It has the name, the docstring and the signature of `function`. Its method ``lower`` traces
        for arguments or templates without running, and returns a `nxla.ahead.Lowered`: the
        StableHLO module, the operations, and the compiler's figures for cost and memory.

        Two kinds of results can be called but do not have the methods of a `Function`: with
        `in_shardings` or `out_shardings`, a `nxla.sharding.ShardedFunction`; and the function of a
        compiler written in Python that has its own ``jit`` or callbacks.

    Raises
    ------
    OptionError
        If the compiler does not exist, or does not have the setting.
    ArgumentError
        If the function does not have a static or donated argument, or a call passes a donated
        tensor twice.

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
    static_argnums = marked_arguments("static_argnums", static_argnums)
    static_argnames = marked_arguments("static_argnames", static_argnames)
    donate_argnums = marked_arguments("donate_argnums", donate_argnums)
    donate_argnames = marked_arguments("donate_argnames", donate_argnames)
    has_marks = any((static_argnums, static_argnames, donate_argnums, donate_argnames))
    if "in_shardings" in options or "out_shardings" in options:
        return _over_a_mesh(function, options, has_marks)
    spec = spec_of(function, "jit")
    donated = donated_arguments(spec.function, donate_argnums, donate_argnames)
    compiler = options.get("compiler")
    if has_own_jit(compiler):
        static = static_arguments(spec.function, static_argnums, static_argnames)
        return own_jit(function, compiler, options, static, bool(donated))
    return make_function(function, static_argnums, static_argnames, donated, options)


def _over_a_mesh(
    function: Callable[..., Any], options: dict[str, Any], has_marks: bool
) -> ShardedFunction:
    """Return a function that runs over the devices of a mesh."""
    from nxla._mesh_programs import reject_marked_arguments
    from nxla.sharding import ShardedFunction

    reject_marked_arguments("jit", has_marks)
    inputs, outputs = options.pop("in_shardings", None), options.pop("out_shardings", None)
    return ShardedFunction(function, inputs, outputs, options)


def jit_apply(function: Callable[..., R], /, *args: Any, **options: Any) -> R:
    """Compile a function and call it: ``jit(function, **options)(*args)``.

    Keyword arguments are options of `jit`. Bind keyword arguments of the function with
    `functools.partial`.

    Programs are cached by their digest, so calling `jit_apply` again compiles nothing. A function
    that `jit` returned also avoids the trace.

    Parameters
    ----------
    function : callable
        A function of tensors and containers.
    *args
        The arguments of `function`.
    **options
        As for `jit`.

    Returns
    -------
    Any
        The result of `function`.

    Raises
    ------
    OptionError
        If an option does not exist, or its value is invalid.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.jit_apply(nx.add, nx.tensor([1, 2]), 3).tolist()
    [4, 5]
    """
    require_callable("jit_apply", "function", function)
    return jit(function, **options)(*args)


if TYPE_CHECKING:

    @overload
    def defn(function: Callable[P, R], /, **options: Any) -> Function[P, R]: ...

    @overload
    def defn(**options: Any) -> Callable[[Callable[P, R]], Function[P, R]]: ...


def defn(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Return a function that is compiled when called, and part of the trace inside another one.

    It is `jit` with ``on_conflict="reuse"``.

    Parameters
    ----------
    function : callable, optional
        A function of tensors and containers. If it is omitted, `defn` returns a decorator.
    **options
        As for `jit`, except ``in_shardings`` and ``out_shardings``.

    Returns
    -------
    Function
        As for `jit`.

    Raises
    ------
    ArgumentError
        If `function` is not callable.
    OptionError
        If an option does not exist, or its value is invalid.

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
    reject_shardings(options)
    options = {"on_conflict": "reuse", **options}
    if function is None:
        return jit(**options)
    require_callable("defn", "function", function)
    return jit(function, **options)


def compile(function: Callable[..., R], templates: Sequence[Any], /, **options: Any) -> Compiled[R]:
    """Trace and compile a function for argument types before the first call.

    Parameters
    ----------
    function : callable
        A function of tensors and containers.
    templates : sequence
        One entry for each positional argument: a `template`, a tensor, a number, or a container of
        these. Arguments without tensors (strings, functions, None) and static arguments are fixed
        here and omitted in calls of the result. A last entry that is a dict of names of arguments,
        such as ``{"axis": 1}``, fixes these arguments too.
    **options
        As for `jit`. Keyword arguments of the function are fixed here too.

    Returns
    -------
    Compiled
        It accepts the remaining arguments by position or by name. It raises an `ArgumentError` that
        names the argument if the type differs, and never compiles again.

    Raises
    ------
    ArgumentError
        If `templates` is not a list or a tuple, or if a keyword argument contains a tensor.

    Examples
    --------
    >>> import nxla as nx
    >>> f = nx.compile(lambda x, y: x * y, [nx.template((2,)), nx.template((), nx.int32)])
    >>> f(nx.tensor([1.5, 2.5]), 2).tolist()
    [3.0, 5.0]
    >>> nx.compile(nx.sum, [nx.template((2, 2))], axis=1)(nx.ones((2, 2))).tolist()
    [2.0, 2.0]
    """
    spec = spec_of(function, "compile")
    require_list("compile", "templates", templates)
    positional, listed = _without_options(spec.function, list(templates))
    _refuse_options(spec.function, positional)
    named = {name: options.pop(name) for name in _arguments_among(spec.function, options)}
    marks: dict[str, Any] = {name: options.pop(name) for name in MARKS if name in options}
    if marks:
        function = jit(function, **marks)
    return compile_for(function, positional, {**listed, **named}, options)


def compile_for(
    function: Callable[..., R],
    templates: list[Any],
    named: dict[str, Any],
    options: dict[str, Any],
) -> Compiled[R]:
    """Compile a function for templates and arguments that are given by name."""
    from nxla.partitions import compile_by_callback, in_force

    options = {**spec_of(function, "compile").options, **options}
    bound, remaining, donated = _with_fixed(function, templates, named)
    compiler = in_force(options)
    if callback(compiler, "__compile__") is not None:
        if donated:
            name = getattr(compiler, "name", compiler)
            raise ArgumentError(
                f"compile: compiler: {name!r} has callbacks and does not support donated arguments"
            )
        called: Compiled[R] = compile_by_callback(bound, remaining, compiler, options)
        return called
    return _compile(bound, remaining, donated, options)


def compile_step(
    function: Callable[..., Any], templates: list[Any], options: dict[str, Any]
) -> Compiled[Any]:
    """Compile the step of a stream, which is an executable also for a compiler with callbacks."""
    options = {**spec_of(function, "stream").options, **options}
    return _compile(*_with_fixed(function, templates, {}), options)


def _compile(
    function: Callable[..., R],
    templates: list[Any],
    donated: list[Donated],
    options: dict[str, Any],
) -> Compiled[R]:
    """Compile a function whose arguments are all inputs."""
    custom = overrides(options.get("compiler"), "jit")
    if custom is not None and overrides(custom, "compile") is None:
        raise ArgumentError(
            f"compile: compiler: {custom.name!r} overrides jit and cannot compile for templates"
        )
    return make_function(function, donated=donated, options=options).compile(*templates)


def _with_fixed(
    function: Callable[..., R], templates: list[Any], named: dict[str, Any]
) -> tuple[Callable[..., R], list[Any], list[Donated]]:
    """Return a function of the inputs among templates, and their templates and donations."""
    spec = spec_of(function, "compile")
    function = _with_arguments(spec.function, named)
    inputs = [
        position not in spec.positions and bool(tree.leaves(template))
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
    # Renumber the remaining inputs.
    places = [position for position, is_input in enumerate(inputs) if is_input]
    donated = [
        Donated(places.index(each.position), "", each.path)
        for each in spec.donated
        if each.position in places
    ]
    return bound, remaining, donated


def _without_options(
    function: Callable[..., Any], templates: list[Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Split templates from a last dict that names other arguments of a function."""
    last = templates[-1] if templates else None
    if not isinstance(last, dict) or not last or not all(isinstance(name, str) for name in last):
        return templates, {}
    if any(isinstance(leaf, _core.Tensor | _core.Template) for leaf in tree.leaves(last)):
        return templates, {}
    taken = [name for name, _ in names_of(function, len(templates) - 1)[: len(templates) - 1]]
    known = set(_arguments_among(function, last))
    if known != set(last) or known & set(taken):
        return templates, {}
    return templates[:-1], dict(last)


def _refuse_options(function: Callable[..., Any], templates: list[Any]) -> None:
    """Raise an error for a dict of options after the templates of all arguments."""
    from inspect import Parameter

    last = templates[-1] if templates else None
    if not isinstance(last, dict) or not last or not set(last) <= set(JIT_OPTIONS):
        return
    kinds = [parameter.kind for parameter in parameters_of(function)]
    by_position = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    count = sum(kind in by_position for kind in kinds)
    if kinds and Parameter.VAR_POSITIONAL not in kinds and len(templates) > count:
        options = ", ".join(f"{name}={value!r}" for name, value in last.items())
        raise ArgumentError(
            f"compile: templates: must not contain options; got {last!r}; pass keywords, as in "
            f"nx.compile(function, templates, {options})"
        )


def _arguments_among(function: Callable[..., Any], options: dict[str, Any]) -> list[str]:
    """Return the names that are arguments of a function rather than options."""
    if not options:
        return []
    from inspect import Parameter

    named = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    return [p.name for p in parameters_of(function) if p.kind in named and p.name in options]


def _with_arguments(function: Callable[..., Any], named: dict[str, Any]) -> Callable[..., Any]:
    """Return a function with fixed keyword arguments."""
    if not named:
        return function
    for name, value in named.items():
        if any(isinstance(leaf, _core.Tensor | _core.Template) for leaf in tree.leaves(value)):
            raise ArgumentError(
                f"compile: {name}: a keyword argument must not contain a tensor; pass its "
                "template by position"
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
    """Describe an input without data, for `compile`, `debug_expr` and `stream`.

    Parameters
    ----------
    shape : int or sequence of int
        The sizes of the axes.
    dtype : dtype_like
        The element type; ``float32`` by default.
    names : sequence of (str or None), optional
        The names of the axes.
    vectorized_axes : sequence of (str, int), optional
        Names and sizes of vectorized axes, which are not part of `shape`.

    Returns
    -------
    Template
        A description with a shape and a dtype.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.template((2, 3), nx.int32)
    s32[2][3]
    """
    vectors = as_pairs("template", "vectorized_axes", vectorized_axes, "(name, size)")
    return _core.Template(shape, dtype, names, vectors)


def debug_expr(
    function: Callable[..., Any],
    /,
    *,
    static_argnums: int | Iterable[int] | None = (),
    static_argnames: str | Iterable[str] | None = (),
    **options: Any,
) -> Callable[..., Expression]:
    """Return a function that returns the expression of a call instead of running it.

    Parameters
    ----------
    function : callable
        A function of tensors and containers.
    static_argnums, static_argnames, **options
        As for `jit`.

    Returns
    -------
    callable
        A function of the arguments of `function`, or of templates for them. The result can be
        printed, is drawn in a notebook, and can be split by `nxla.graph.split`.

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
    require_callable("debug_expr", "function", function)
    return make_function(function, static_argnums, static_argnames, (), options).debug_expr


def debug_expr_apply(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Expression:
    """Return the expression of a call: ``debug_expr(function)(*args, **kwargs)``.

    Keyword arguments are arguments of the function. Use `debug_expr` for options.

    Examples
    --------
    >>> import nxla as nx
    >>> for line in nx.debug_expr_apply(nx.sum, nx.ones((2, 3)), keepdims=True).lines():
    ...     print(line)
    parameter a:0                           f32[2][3]
    b = sum a, axes: nil, keep_axes: true   f32[1][1]
    """
    require_callable("debug_expr_apply", "function", function)
    return make_function(function).debug_expr(*args, **kwargs)


def export(
    function: Callable[..., Any],
    args: Sequence[Any],
    /,
    file: str | os.PathLike[str] | None = None,
    **options: Any,
) -> str:
    """Write a function for certain argument types as a StableHLO module.

    Parameters
    ----------
    function : callable
        A function of tensors and containers.
    args : sequence
        One entry for each positional argument: a `template`, a tensor, a number, or a container of
        these. Arguments without tensors are fixed. Captured tensors become constants.
    file : path, optional
        The file to write.
    **options
        As for `jit`; ``precision`` changes the module.

    Returns
    -------
    str
        A comment line with the signature, and a StableHLO module that other tools can read. The
        arguments of its function ``@main`` are the used tensors of the arguments, in order.

    Raises
    ------
    ArgumentError
        If a result is in a container other than tuples, lists, and dicts with string keys. A named
        tuple is written as a tuple.
    DeviceError
        If a hook has a listener, or StableHLO does not have an operation.

    Examples
    --------
    >>> import nxla as nx
    >>> text = nx.export(lambda x: {"twice": 2 * x}, [nx.template(3)])
    >>> for line in text.splitlines()[1:3]:
    ...     print(line)
    module @nxla {
      func.func public @main(%0: tensor<3xf32>) -> tensor<3xf32> {
    """
    from nxla.ahead import write_stablehlo

    require_callable("export", "function", function)
    require_list("export", "args", args)
    return write_stablehlo(function, tuple(args), file, options)


def import_stablehlo(source: str | os.PathLike[str], /, **options: Any) -> ImportedFunction:
    """Return a function that runs a StableHLO module on XLA.

    Parameters
    ----------
    source : path or str
        A file, or the module as a string. A module that `export` wrote accepts and returns the
        original containers. Calls may omit all arguments without tensors. Other values of fixed
        arguments than those of the export are an error. Any other module accepts one tensor for
        each parameter of its function ``@main``, and returns one tensor or a tuple.
    **options
        ``device``, and settings of the compiler ``"xla"``, as for `jit`.

    Returns
    -------
    ImportedFunction
        Compiled in the first call. It cannot be part of a trace.

    Raises
    ------
    FormatError
        If the module has no function ``@main`` of tensors with static shapes, or the first line of
        an exported file is damaged. XLA checks the rest in the first call.
    OSError
        If the file does not exist or cannot be read.

    Examples
    --------
    >>> import nxla as nx
    >>> text = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }"
    >>> nx.import_stablehlo(text).inputs
    [('argument 0', 'f32[2]')]
    """
    from nxla.ahead import read_stablehlo

    return read_stablehlo(source, options)


_hints.install(globals())
