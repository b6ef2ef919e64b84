"""Functions over several devices: meshes, shardings, and sharded tensors.

A `Mesh` arranges devices along named axes. A `Sharding` assigns the axes of a tensor to axes of the
mesh. ``nx.jit(f, in_shardings=…, out_shardings=…)`` compiles a function of whole tensors for all
devices of the mesh: XLA divides the program and inserts the communication. Data parallelism divides
the batch; tensor parallelism divides the weights.

>>> import nxla as nx
>>> mesh = nx.Mesh(batch=2)
>>> rows, everywhere = mesh.sharding("batch"), mesh.sharding()
>>> f = nx.jit(lambda w, x: nx.sum(x @ w), in_shardings=(everywhere, rows))
>>> f(nx.ones((3, 2)), nx.ones((4, 3))).item()
24.0
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from types import MethodType

from nxla import _core, _hints, tree
from nxla._arguments import name_of, reject_named_arguments
from nxla._core import Device
from nxla._marks import reject_marks
from nxla._mesh_programs import (
    MeshPrograms,
    check_mesh_of_trace,
    input_type,
    mesh_function,
    template_of,
)
from nxla._prefixes import expand_prefix, prefix_values
from nxla._values import as_list, index_list, kind_of, to_index
from nxla.errors import ArgumentError, OptionError, TraceError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from nxla._core import DType, Tensor, TreeDef
    from nxla._mesh_programs import InputType, MeshProgram
    from nxla._types import DeviceLike

__all__ = [
    "Mesh",
    "ShardedFunction",
    "ShardedTensor",
    "Sharding",
    "shard",
    "shard_jit",
    "shard_jit_apply",
    "with_sharding_constraint",
]

#: For each axis of a tensor, the mesh axes that divide it.
Layout = tuple[tuple[str, ...], ...]


class Mesh:
    """Devices along named axes; the last axis is contiguous.

    Parameters
    ----------
    axes : mapping of str to int, optional
        Names and sizes of the axes.
    devices : sequence of device_like, optional
        Devices of one client. By default the devices of XLA's default client; a CPU plugin creates
        as many as the mesh needs.
    **named : int
        Names and sizes of further axes, which follow `axes`.

    Raises
    ------
    OptionError
        If the number of devices is not the product of the sizes.
    TypeError
        If a name is not a string.

    Examples
    --------
    >>> import nxla as nx
    >>> mesh = nx.Mesh(data=2, model=2)
    >>> mesh, mesh.size
    (Mesh(data=2, model=2), 4)
    """

    def __init__(
        self,
        axes: Mapping[str, int] | None = None,
        /,
        *,
        devices: Sequence[DeviceLike] | None = None,
        **named: int,
    ) -> None:
        if not hasattr(axes, "keys") and axes is not None:
            raise OptionError(
                f"Mesh: axes: must be a dict from names to sizes; got {kind_of(axes)}"
            )
        #: Sizes by name.
        self.axes: dict[str, int] = {**(axes or {}), **named}
        for name, size in self.axes.items():
            count = to_index(size)
            if count is None or count < 1:
                raise OptionError(f"Mesh: {name}: size must be at least 1; got {size!r}")
            self.axes[name] = count
        #: The number of devices.
        self.size = math.prod(self.axes.values())
        given = None
        if devices is not None:
            given = [Device(each) for each in as_list("Mesh", "devices", devices)]
        self._mesh = _core.DeviceMesh(list(self.axes.items()), given)
        #: The devices, in row-major order.
        self.devices: list[Device] = self._mesh.devices

    def sharding(self, *along: str | Sequence[str] | None) -> Sharding:
        """Return a sharding from a mesh axis, several mesh axes, or None for each axis of a tensor.

        Further axes of the tensor are not divided. Without axes, every device has the whole tensor.
        """
        return Sharding(self, along)

    def places(self) -> Iterator[dict[str, int]]:
        """Return the index of each device along each axis."""
        for numbers in itertools.product(*map(range, self.axes.values())):
            yield dict(zip(self.axes, numbers, strict=True))

    def __reduce__(self) -> tuple[Any, ...]:
        return functools.partial(Mesh, devices=self.devices), (self.axes,)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mesh):
            return NotImplemented
        return list(self.axes.items()) == list(other.axes.items()) and self.devices == other.devices

    def __hash__(self) -> int:
        return hash((tuple(self.axes.items()), tuple(self.devices)))

    def __repr__(self) -> str:
        return f"Mesh({', '.join(f'{name}={size}' for name, size in self.axes.items())})"


class Sharding:
    """The division of tensors over a mesh; returned by `Mesh.sharding`.

    Examples
    --------
    >>> import nxla as nx
    >>> mesh = nx.Mesh(data=2)
    >>> mesh.sharding(None, "data"), mesh.sharding()
    (Sharding(None, 'data'), Sharding())
    >>> mesh.sharding(None, "data").part((3, 4))
    (3, 2)
    """

    def __init__(self, mesh: Mesh, along: Iterable[str | Sequence[str] | None]) -> None:
        #: The mesh.
        self.mesh = mesh
        layout: list[tuple[str, ...]] = []
        for each in along:
            names = () if each is None else (each,) if isinstance(each, str) else each
            layout.append(tuple(as_list("sharding", "axes", names)))
        #: For each axis of a tensor, the mesh axes that divide it.
        self.layout: Layout = tuple(layout)
        for name in itertools.chain.from_iterable(self.layout):
            if not isinstance(name, str):
                raise OptionError(f"sharding: axes: mesh axes must be strings; got {name!r}")
        mesh._mesh.check(self.layout)

    @property
    def is_replicated(self) -> bool:
        """True if every device has the whole tensor."""
        return not any(self.layout)

    def part(self, shape: Iterable[int]) -> tuple[int, ...]:
        """Return the shape of one device's part of a tensor with this shape.

        Raises
        ------
        ShapeError
            If an axis cannot be divided into equal parts.
        """
        sizes = tuple(index_list("part", "shape", shape, names=False))
        return tuple(self.mesh._mesh.part(sizes, self.layout))

    def indices(self, shape: Iterable[int]) -> list[tuple[slice, ...]]:
        """Return the part of a tensor on each device of the mesh, as slices."""
        shape = tuple(index_list("indices", "shape", shape, names=False))
        part = self.part(shape)
        return [
            tuple(slice(at, at + size) for at, size in zip(starts, part, strict=True))
            for starts in self.mesh._mesh.starts(shape, self.layout)
        ]

    def _padded_layout(self, rank: int) -> list[list[str]]:
        """Return the layout with an entry for each axis of a tensor."""
        if len(self.layout) > rank:
            self.part((1,) * rank)
        return [list(names) for names in self.layout] + [[]] * (rank - len(self.layout))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sharding):
            return NotImplemented
        return self._trimmed_layout() == other._trimmed_layout() and self.mesh == other.mesh

    def __hash__(self) -> int:
        return hash((self._trimmed_layout(), self.mesh))

    def _trimmed_layout(self) -> Layout:
        layout = self.layout
        while layout and not layout[-1]:
            layout = layout[:-1]
        return layout

    def __repr__(self) -> str:
        shown = (
            repr(names[0]) if len(names) == 1 else repr(names) if names else "None"
            for names in self.layout
        )
        return f"Sharding({', '.join(shown)})"


class ShardedTensor:
    """A tensor that is divided over a mesh; returned by `nxla.shard` and by functions over a mesh.

    Functions over the mesh use the parts on their devices. All other code reads the parts and
    assembles them like an array. Conversions to Python numbers and comparisons also gather the
    whole tensor, and return the results of a `Tensor`.
    """

    def __init__(self, shape: tuple[int, ...], sharding: Sharding, shards: list[Tensor]) -> None:
        #: The shape of the whole tensor.
        self.shape = shape
        #: The division of the tensor.
        self.sharding = sharding
        #: The part of each device, in the order of the mesh.
        self.shards = shards

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self.shards[0].dtype

    @property
    def names(self) -> list[str | None]:
        """The names of the axes; None for an axis without a name."""
        return self.shards[0].names

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    def block_until_ready(self) -> ShardedTensor:
        """Wait until all parts are computed."""
        for part in self.shards:
            part.block_until_ready()
        return self

    def gather(self) -> Tensor:
        """Return the whole tensor on the host. Each part is read once.

        Raises
        ------
        DeviceError
            If the computation of a part has failed.
        """
        sharding = self.sharding
        return sharding.mesh._mesh.gather(self.shards, self.shape, sharding.layout)

    def tolist(self) -> Any:
        """Return the elements of the whole tensor as nested lists."""
        return self.gather().tolist()

    def item(self) -> Any:
        """Return the only element as a Python number."""
        return self.gather().item()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.gather().__array__(dtype, copy)

    def __bool__(self) -> bool:
        return bool(self.gather())

    def __int__(self) -> int:
        return int(self.gather())

    def __index__(self) -> int:
        return operator.index(self.gather())

    def __float__(self) -> float:
        return float(self.gather())

    def __complex__(self) -> complex:
        return complex(self.gather())

    def __format__(self, spec: str) -> str:
        return format(self.gather(), spec) if spec else str(self)

    def __eq__(self, other: object) -> Tensor:  # type: ignore[override]
        return _compare(operator.eq, self, other)

    def __ne__(self, other: object) -> Tensor:  # type: ignore[override]
        return _compare(operator.ne, self, other)

    def __lt__(self, other: object) -> Tensor:
        return _compare(operator.lt, self, other)

    def __le__(self, other: object) -> Tensor:
        return _compare(operator.le, self, other)

    def __gt__(self, other: object) -> Tensor:
        return _compare(operator.gt, self, other)

    def __ge__(self, other: object) -> Tensor:
        return _compare(operator.ge, self, other)

    def __hash__(self) -> int:
        return id(self)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a scalar tensor has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        kind = _core.Template(self.shape, self.dtype, self.names)
        lines = [f"{kind}, {self.sharding} over {self.sharding.mesh}"]
        indices = self.sharding.indices(self.shape)
        for device, index in zip(self.sharding.mesh.devices, indices, strict=True):
            where = ", ".join(f"{each.start}:{each.stop}" for each in index)
            lines.append(f"{device}: [{where}]")
        return "#nxla.ShardedTensor<\n  " + "\n  ".join(lines) + "\n>"


def _compare(compare: Callable[..., Any], x: ShardedTensor, other: object) -> Tensor:
    """Compare the whole tensors element by element, as `Tensor` does."""
    result: Tensor = compare(
        x.gather(), other.gather() if isinstance(other, ShardedTensor) else other
    )
    return result


def shard(container: Any, sharding: Any, /) -> Any:
    """Divide tensors among the devices of a mesh.

    Parameters
    ----------
    container : container
        Tensors, numbers and arrays. Each device receives only its part.
    sharding : Sharding or container
        One sharding for all tensors, or a container of shardings with the structure of `container`
        or a prefix of it. None replicates the tensors.

    Returns
    -------
    container
        A `ShardedTensor` for each tensor.

    Raises
    ------
    ShapeError
        If an axis cannot be divided into equal parts.

    Examples
    --------
    >>> import nxla as nx
    >>> mesh = nx.Mesh(data=2)
    >>> x = nx.shard(nx.arange(4), mesh.sharding("data"))
    >>> [part.tolist() for part in x.shards], x.tolist()
    ([[0, 1], [2, 3]], [0, 1, 2, 3])
    """
    leaves, structure = tree.flatten(container)
    shardings = spread_shardings(sharding, container, None, "shard: sharding")
    return structure.unflatten(
        [_divide(leaf, each) for leaf, each in zip(leaves, shardings, strict=True)]
    )


def _divide(value: Any, sharding: Sharding) -> ShardedTensor:
    """Return a value with the given sharding; a value that has it already is not moved."""
    if isinstance(value, ShardedTensor):
        if value.sharding == sharding:
            return value
        value = value.gather()
    whole = _core.tensor(value)
    parts = sharding.mesh._mesh.divide(whole, sharding.layout)
    return ShardedTensor(tuple(whole.shape), sharding, parts)


def require_mesh(function: str, mesh: object) -> None:
    """Raise an error for an argument that is not a mesh."""
    if not isinstance(mesh, Mesh):
        raise ArgumentError(f"{function}: mesh: must be a Mesh; got {kind_of(mesh)}")


def _is_sharding(part: Any) -> bool:
    return part is None or isinstance(part, Sharding)


def _meshes(*prefixes: Any) -> list[Mesh]:
    found = [each for prefix in prefixes for each in prefix_values(prefix, _is_sharding)]
    return [each.mesh for each in found if each is not None]


def spread_shardings(prefix: Any, container: Any, mesh: Mesh | None, what: str) -> list[Sharding]:
    """Return the sharding of each leaf of a container, from a prefix of its structure."""
    found = expand_prefix(prefix, container, _is_sharding, what, "a sharding, None")
    mesh = mesh or next(iter(_meshes(prefix)), None)
    if mesh is None:
        raise ArgumentError(f"{what}: must contain a sharding, because None does not name a mesh")
    replicated = Sharding(mesh, ())
    return [replicated if each is None else each for each in found]


def spread_over_arguments(
    prefix: Any, args: tuple[Any, ...], mesh: Mesh, what: str, function: str
) -> list[Sharding]:
    """Return the sharding of each leaf of the arguments: one for all, or one for each argument."""
    if not _is_sharding(prefix):
        if not isinstance(prefix, tuple | list):
            raise ArgumentError(
                f"{what}: must be a sharding, None or a tuple with an entry for each argument of "
                f"{function}; got {kind_of(prefix)}"
            )
        if len(prefix) != len(args):
            raise ArgumentError(
                f"{what}: must be {len(args)}, one for each argument of {function}; got "
                f"{len(prefix)}"
            )
    return spread_shardings(prefix, args, mesh, what)


def _one_mesh(*prefixes: Any) -> Mesh:
    meshes = _meshes(*prefixes)
    if not meshes:
        raise ArgumentError("jit: in_shardings, out_shardings: must contain a sharding")
    if any(mesh != meshes[0] for mesh in meshes):
        raise ArgumentError("jit: in_shardings, out_shardings: must use one mesh")
    return meshes[0]


class ShardedFunction:
    """A function over all devices of a mesh; returned by ``nx.jit(f, in_shardings=…)``."""

    def __init__(
        self,
        function: Callable[..., Any],
        in_shardings: Any,
        out_shardings: Any,
        options: dict[str, Any],
        mesh: Mesh | None = None,
        names: tuple[str, str, str] = ("jit", "in_shardings", "out_shardings"),
        *,
        jitted: bool = True,
    ) -> None:
        self.mesh = mesh or _one_mesh(in_shardings, out_shardings)
        self._in, self._out = in_shardings, out_shardings
        #: The public function and its arguments with the shardings, for error messages.
        self._what, self._labels = names[0], [f"{names[0]}: {each}" for each in names[1:]]
        self._function, mesh_options = mesh_function(function, options, self._what)
        self._programs = MeshPrograms(self._function, self.mesh, mesh_options, jitted=jitted)
        functools.update_wrapper(self, function)

    def __get__(self, instance: Any, owner: type | None = None, /) -> Any:
        """Return the function as a method, whose first argument is the instance."""
        return self if instance is None else MethodType(self, instance)

    def _compile_for(
        self, args: tuple[Any, ...]
    ) -> tuple[list[Any], list[Sharding], MeshProgram, list[Sharding]]:
        """Return leaves and shardings of a call, the program, and the shardings of its outputs."""
        leaves, structure = tree.flatten(args)
        name = name_of(self._function)
        shardings = spread_over_arguments(self._in, args, self.mesh, self._labels[0], name)
        leaves = [
            leaf if isinstance(leaf, ShardedTensor) else _core.tensor(leaf) for leaf in leaves
        ]
        types = [input_type(leaf, self._what) for leaf in leaves]

        def make(settings: dict[str, Any]) -> tuple[MeshProgram, list[Sharding]]:
            return self._compile(structure, types, shardings, settings)

        program, outputs = self._programs.get_or_make(structure, types, make)
        return leaves, shardings, program, outputs

    def _compile(
        self,
        structure: TreeDef,
        types: list[InputType],
        shardings: list[Sharding],
        settings: dict[str, Any],
    ) -> tuple[MeshProgram, list[Sharding]]:
        """Trace and compile the function, and return the shardings of the outputs too."""
        templates = structure.unflatten([template_of(kind) for kind in types])
        expression = self._programs.trace(templates)
        numbers = expression.arrange(list(range(len(expression.outputs))))
        outputs = _spread_results(self._out, numbers, self.mesh, self._labels[1])
        layouts = ([each.layout for each in shardings], [each.layout for each in outputs])
        return self._programs.compile(expression, *layouts, settings), outputs

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Run on tensors, arrays, `ShardedTensor` objects, and containers of these.

        Arguments without the sharding of ``in_shardings`` are sent to the devices part by part.
        They are passed by position.
        """
        reject_named_arguments(named, name_of(self._function))
        if _core.is_tracing():
            raise TraceError(
                f"{name_of(self._function)}: must not be called in a trace, because it runs over "
                "a mesh; jit the outermost function with shardings, and use "
                "nx.with_sharding_constraint inside"
            )
        leaves, shardings, program, outputs = self._compile_for(args)
        divided = [_divide(leaf, each) for leaf, each in zip(leaves, shardings, strict=True)]
        lists = [[each.shards[at] for each in divided] for at in range(self.mesh.size)]
        results = program.run(lists)
        shapes = [tuple(shape) for shape, _ in program.expression.outputs]
        whole = [
            ShardedTensor(shape, each, [parts[number] for parts in results])
            for number, (shape, each) in enumerate(zip(shapes, outputs, strict=True))
        ]
        return program.expression.arrange(whole)

    def as_text(self, *args: Any, **named: Any) -> str:
        """Return the StableHLO module for these arguments, with its shardings."""
        reject_named_arguments(named, name_of(self._function))
        return self._compile_for(args)[2].text

    def __repr__(self) -> str:
        return f"<nxla function {name_of(self._function)} over {self.mesh}>"


def _spread_results(prefix: Any, results: Any, mesh: Mesh, what: str) -> list[Sharding]:
    """Return a sharding for each output, in order; `results` contains output indices."""
    found = spread_shardings(prefix, results, mesh, what)
    ordered = sorted(zip(tree.leaves(results), found, strict=True), key=lambda pair: pair[0])
    return [each for _, each in ordered]


def with_sharding_constraint(value: Any, sharding: Sharding, /) -> Any:
    """Set the sharding of an intermediate value, inside a function over a mesh.

    Outside such a function it has no effect. It never changes values.

    Parameters
    ----------
    value : tensor or container
        The value; each of its tensors receives the sharding.
    sharding : Sharding
        A sharding of the function's mesh.

    Returns
    -------
    tensor or container
        The value with the sharding.

    Raises
    ------
    ShapeError
        If an axis cannot be divided into equal parts.
    ArgumentError
        If the function runs over another mesh.

    Examples
    --------
    >>> import nxla as nx
    >>> mesh = nx.Mesh(data=2)
    >>> def f(x):
    ...     return nx.sum(nx.with_sharding_constraint(x * 2, mesh.sharding("data")))
    >>> nx.jit(f, in_shardings=(None,), out_shardings=mesh.sharding())(nx.ones(4)).item()
    8.0
    """
    if not isinstance(sharding, Sharding):
        raise ArgumentError(
            "with_sharding_constraint: sharding: must be a Sharding, as mesh.sharding returns; got "
            f"{kind_of(sharding)}"
        )
    if not _core.is_tracing():
        for leaf in tree.leaves(value):
            sharding.part(leaf.shape if hasattr(leaf, "shape") else ())
        return value
    check_mesh_of_trace(sharding.mesh, "with_sharding_constraint: sharding")

    def marked(x: Any) -> Any:
        shape = tuple(getattr(x, "shape", ()))
        sharding.part(shape)
        return _core.annotate(x, _core.sharding_note(sharding.layout, len(shape)))

    return tree.map(marked, value)


def shard_jit(
    function: Callable[..., Any],
    mesh: Mesh,
    /,
    *,
    input_shardings: Sequence[Mapping[int | str, Sequence[int | str]]],
    **options: Any,
) -> Callable[[Sequence[Sequence[Any]]], list[Any]]:
    """Return a function that accepts a list of divided arguments for each device.

    It is the function of Nx with this name; ``nx.jit(f, in_shardings=…)`` accepts whole tensors.

    Parameters
    ----------
    function : callable
        A function of whole tensors, whose axes have the total length of the parts.
    mesh : Mesh
        The devices.
    input_shardings : sequence of mapping
        One mapping for each tensor among the arguments. A key is an axis of the tensor, by position
        (negative positions count from the end) or name. Its value is a list of mesh axes, by
        position or name. Axes without a key are not divided.
    **options
        Settings of the compiler ``"xla"``, as for `jit`, without static and donated arguments.

    Returns
    -------
    callable
        It accepts a sequence of argument lists, one for each device, and returns one result for
        each device: the parts that XLA chooses.

    Raises
    ------
    ArgumentError
        If the number of mappings or of argument lists is wrong.
    OptionError
        If an axis of the mesh does not exist or is named twice for a tensor.

    Examples
    --------
    >>> import nxla as nx
    >>> mesh = nx.Mesh(x=2)
    >>> f = nx.shard_jit(lambda a, b: a + b, mesh, input_shardings=[{0: ["x"]}, {0: [0]}])
    >>> one, two = nx.tensor([1]), nx.tensor([2])
    >>> [part.tolist() for part in f([[one, two], [two, two]])]
    [[3], [4]]
    """
    if not isinstance(input_shardings, tuple | list):
        kind = kind_of(input_shardings)
        raise ArgumentError(f"shard_jit: input_shardings: must be a list of dicts; got {kind}")
    require_mesh("shard_jit", mesh)
    reject_marks("shard_jit", options, "bind static arguments with functools.partial")
    traced, mesh_options = mesh_function(function, options, "shard_jit")
    programs = MeshPrograms(traced, mesh, mesh_options, jitted=True)

    @_hints.with_hints
    def run(args_list: Sequence[Sequence[Any]]) -> list[Any]:
        if _core.is_tracing():
            raise TraceError("shard_jit: must not be called in a trace")
        lists_of_args = [
            as_list("shard_jit", "arguments", args)
            for args in as_list("shard_jit", "arguments", args_list)
        ]
        if len(lists_of_args) != mesh.size:
            raise ArgumentError(
                f"shard_jit: arguments: must be {mesh.size} lists, one for each device; got "
                f"{len(lists_of_args)}"
            )
        flat = [tree.flatten(tuple(args)) for args in lists_of_args]
        structure = flat[0][1]
        if any(each != structure for _, each in flat):
            raise ArgumentError("shard_jit: arguments: must have the same structure on all devices")
        lists = [[_core.tensor(leaf) for leaf in leaves] for leaves, _ in flat]
        types = [[input_type(x, "shard_jit") for x in parts] for parts in lists]

        def make(settings: dict[str, Any]) -> MeshProgram:
            return _whole(programs, input_shardings, structure, types[0], settings)

        program = programs.get_or_make(structure, types[0], make)
        return [program.expression.arrange(parts) for parts in program.run(lists)]

    return run


def _whole(
    programs: MeshPrograms,
    input_shardings: Sequence[Mapping[int | str, Sequence[int | str]]],
    structure: TreeDef,
    types: list[InputType],
    settings: dict[str, Any],
) -> MeshProgram:
    """Compile a function for the types of the parts."""
    mesh = programs.mesh
    if len(input_shardings) != len(types):
        raise ArgumentError(
            f"shard_jit: input_shardings: must be {len(types)}, one for each tensor; got "
            f"{len(input_shardings)}"
        )
    templates, layouts = [], []
    for number, (given, (shape, dtype, names)) in enumerate(
        zip(input_shardings, types, strict=True)
    ):
        layout = _by_axis(given, mesh, shape, names, f"shard_jit: input_shardings[{number}]")
        sharding = Sharding(mesh, layout)
        whole = list(shape)
        for axis, along in enumerate(layout):
            for name in along:
                whole[axis] *= mesh.axes[name]
        templates.append(template_of((tuple(whole), dtype, names)))
        layouts.append(sharding.layout)
    expression = programs.trace(structure.unflatten(templates))
    return programs.compile(expression, layouts, None, settings)


def _by_axis(
    given: Mapping[int | str, Sequence[int | str]],
    mesh: Mesh,
    shape: tuple[int, ...],
    names: tuple[str | None, ...],
    what: str,
) -> list[list[str]]:
    """Return for each axis of a tensor the mesh axes of a mapping."""
    if not hasattr(given, "items"):
        raise ArgumentError(f"{what}: must be a dict of axes; got {kind_of(given)}")
    layout: list[list[str]] = [[] for _ in shape]
    known = list(mesh.axes)
    for axis, along in given.items():
        if isinstance(axis, str):
            if axis not in names:
                raise ArgumentError(
                    f"{what}: axes must be names of the tensor's axes; got {axis!r}"
                )
            position = names.index(axis)
        else:
            position = axis + len(shape) if axis < 0 else axis
            if not 0 <= position < len(shape):
                raise ArgumentError(
                    f"{what}: axes must be below {len(shape)}, the rank of the tensor; got {axis}"
                )
        if layout[position]:
            raise ArgumentError(f"{what}: axes must be unique; got {axis!r} twice")
        for each in along:
            if isinstance(each, int) and not 0 <= each < len(known):
                raise OptionError(f"{what}: mesh axes must be below {len(known)}; got {each}")
            layout[position].append(known[each] if isinstance(each, int) else each)
    return layout


def shard_jit_apply(
    function: Callable[..., Any], mesh: Mesh, args_list: Sequence[Sequence[Any]], /, **options: Any
) -> list[Any]:
    """Compile a function for a mesh and call it: ``shard_jit(f, mesh, **options)(args_list)``.

    Examples
    --------
    >>> import nxla as nx
    >>> parts = [[nx.tensor([1, 2])], [nx.tensor([3, 4])]]
    >>> totals = nx.shard_jit_apply(nx.sum, nx.Mesh(x=2), parts, input_shardings=[{0: [0]}])
    >>> [total.item() for total in totals]
    [10, 10]
    """
    return shard_jit(function, mesh, **options)(args_list)


_hints.install(globals())
