"""Programs over a mesh: the types of their inputs, their traces, and their options."""

from __future__ import annotations

import functools
import threading
from typing import NamedTuple

from nxla import _core, tree
from nxla._arguments import name_of
from nxla._signatures import BoundedCache, SignatureCache, without_data
from nxla._spec import make_function, spec_of
from nxla._values import user_line
from nxla.errors import ArgumentError, OptionError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence
    from typing import Any, TypeVar

    from nxla._core import Divided, Expression, Template, Tensor, TreeDef
    from nxla._spec import FunctionSpec
    from nxla.sharding import Layout, Mesh, ShardedTensor

    V = TypeVar("V")

#: Options that select one device or require the evaluator.
_OF_ONE_DEVICE = (
    "plugin",
    "cpu_device_count",
    "preallocate",
    "client",
    "device",
    "stages",
    "hooks",
    "compile_after",
    "compile_above",
)

#: Options of a call that a program over a mesh does not have.
_OF_CALLS = ("max_compiles", "on_max_compiles", "on_unusable_donation", "on_conflict")


class MeshOptions(NamedTuple):
    """The options of a function over a mesh."""

    #: The function that has the options, for error messages.
    what: str
    #: True checks the results of every run for NaN; None leaves the choice to the thread.
    checks_nans: bool | None
    #: The options of XLA, on top of the default options of the caller.
    own: dict[str, Any]

    def in_force(self) -> dict[str, Any]:
        """Return the options of XLA for a call on this thread."""
        defaults = _core.get_default_options()
        if defaults.get("compiler") not in ("auto", "xla"):
            return self.own
        dropped = (*_OF_ONE_DEVICE, "kernels")
        kept = {name: value for name, value in defaults.items() if name not in dropped}
        return {**kept, **self.own}


def reject_marked_arguments(what: str, *marks: Any) -> None:
    """Raise an error if static or donated arguments are marked."""
    if any(marks):
        raise ArgumentError(
            f"{what}: static_argnums, donate_argnums: not supported for a function over a mesh; "
            "bind static arguments with functools.partial"
        )


def with_own_options(
    function: Callable[..., Any], options: dict[str, Any], what: str
) -> tuple[FunctionSpec, dict[str, Any]]:
    """Return the specification of a function, and options on top of those of a jitted function.

    Raises
    ------
    ArgumentError
        If the jitted function has static or donated arguments.
    """
    spec = spec_of(function, what)
    reject_marked_arguments(what, spec.positions, spec.names, spec.donated)
    # Derivatives such as nx.grad(f) can join traces; a function over a mesh never does.
    inherited = {name: spec.options[name] for name in spec.options if name != "on_conflict"}
    return spec, {**inherited, **options}


def mesh_function(
    function: Callable[..., Any], options: dict[str, Any], what: str
) -> tuple[Callable[..., Any], MeshOptions]:
    """Return the function to trace, and the options of a call with those of a jitted function.

    Raises
    ------
    OptionError
        If a program over a mesh does not have an option.
    """
    spec, options = with_own_options(function, options, what)
    given = {name: value for name, value in options.items() if value is not None}
    checks_nans = given.pop("debug_nans", None)
    if not isinstance(checks_nans, bool | None):
        raise ArgumentError(f"{what}: debug_nans: must be one of False, True; got {checks_nans!r}")
    own = _xla_options(given, what)
    # A function checks its options when it is made.
    _core.Function(spec.function, what, own)
    return spec.function, MeshOptions(what, checks_nans, own)


def _xla_options(given: dict[str, Any], what: str) -> dict[str, Any]:
    """Return the XLA options of a function, and reject options without meaning for a mesh."""
    if given.get("compiler", "xla") not in ("auto", "xla"):
        raise OptionError(
            f"{what}: compiler: must be 'xla' for a program over several devices; got "
            f"{given['compiler']!r}"
        )
    for name in (*_OF_ONE_DEVICE, *_OF_CALLS):
        if name in given:
            raise OptionError(f"{what}: {name}: not supported for a program over a mesh")
    if given.get("kernels", False) is not False:
        raise OptionError(
            f"{what}: kernels: must be False for a program over a mesh; got {given['kernels']!r}"
        )
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


class _Trace(threading.local):
    """The mesh of the function that is traced on the current thread."""

    mesh: Mesh | None = None


_trace = _Trace()


def check_mesh_of_trace(mesh: Mesh, what: str) -> None:
    """Raise an error if the traced function runs over another mesh."""
    if _trace.mesh is not None and _trace.mesh != mesh:
        raise ArgumentError(
            f"{what}: must have the axes and devices of the mesh over which the traced function "
            f"runs, {_trace.mesh}; got {mesh}{user_line()}"
        )


def trace_over_mesh(
    function: Callable[..., Any], args: tuple[Any, ...], mesh: Mesh, what: str
) -> Expression:
    """Trace a function for templates, and reject what a program over a mesh cannot contain."""

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

    outer, _trace.mesh = _trace.mesh, mesh
    try:
        expression = make_function(checked).debug_expr(*args)
    finally:
        _trace.mesh = outer
    if expression.captured:
        raise ArgumentError(
            f"{what}: {name_of(function)}: must not capture a large tensor or a tensor on a "
            "device; pass it as an argument with a sharding"
        )
    return expression


def _hook_names(expression: Expression) -> set[str]:
    """Return the names of the hooks in an expression."""
    names = set()
    for node in expression.nodes:
        for region in node.regions:
            names |= _hook_names(region)
        if node.op == "io_call" and node.attributes["name"] is not None:
            names.add(node.attributes["name"])
    return names


#: The executables of the process.
_executables = BoundedCache()


def _settings_key(settings: dict[str, Any]) -> str:
    """Return the key of settings, which are numbers, strings and paths; 1 and True differ."""
    return repr(sorted(settings.items()))


class MeshPrograms:
    """The programs of a function over a mesh."""

    def __init__(
        self, function: Callable[..., Any], mesh: Mesh, options: MeshOptions, *, jitted: bool
    ) -> None:
        self.function, self.mesh, self.options = function, mesh, options
        #: None if every call traces the function, because the variables of its closure can change.
        self._known = SignatureCache(function, name_of(function)) if jitted else None

    def get_or_make(
        self,
        structure: TreeDef,
        types: list[InputType],
        make: Callable[[dict[str, Any]], V],
    ) -> V:
        """Return the program of a call, which `make` compiles with the settings of the call."""
        settings = self.options.in_force()
        if self._known is None:
            return make(settings)
        args = structure.unflatten([without_data(template_of(kind)) for kind in types])
        return self._known.get_or_make(args, _settings_key(settings), lambda: make(settings))

    def trace(self, args: tuple[Any, ...]) -> Expression:
        """Trace the function for templates."""
        return trace_over_mesh(self.function, args, self.mesh, self.options.what)

    def compile(
        self,
        expression: Expression,
        inputs: Sequence[Layout],
        outputs: Sequence[Layout] | None,
        settings: dict[str, Any],
    ) -> MeshProgram:
        """Compile an expression; equal expressions share an executable."""
        inputs, outputs = tuple(inputs), None if outputs is None else tuple(outputs)
        mesh, what = self.mesh, self.options.what
        key: Hashable = (expression.digest, mesh, inputs, outputs, _settings_key(settings))
        divided = _executables.get_or_make(
            key, lambda: _core.Divided(what, expression, mesh._mesh, inputs, outputs, settings)
        )
        return MeshProgram(expression, divided, self.options)


class MeshProgram:
    """A compiled program over a mesh, for one signature."""

    def __init__(self, expression: Expression, divided: Divided, options: MeshOptions) -> None:
        #: The traced function.
        self.expression = expression
        self._options, self._divided = options, divided
        self._hooks = _hook_names(expression)

    @property
    def text(self) -> str:
        """The StableHLO module before the division."""
        return self._divided.text

    def run(self, lists: list[list[Tensor]]) -> list[list[Tensor]]:
        """Run on a list of parts for each device, and return a list of results for each device.

        Raises
        ------
        OptionError
            If the default options have a function for a hook of the program.
        """
        for name in sorted(self._hooks & _core.get_default_options().get("hooks", {}).keys()):
            raise OptionError(
                f"{self._options.what}: hooks: not supported for a program over a mesh; the "
                f"default options have a function for the hook {name!r}"
            )
        if self._options.checks_nans is None:
            return self._divided.run(lists)
        before = _core.set_debug_nans(self._options.checks_nans)
        try:
            return self._divided.run(lists)
        finally:
            _core.set_debug_nans(before)
