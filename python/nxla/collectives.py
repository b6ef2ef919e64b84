"""Collectives: functions over the devices of a mesh axis, for use inside `nxla.shard_map`.

A function under `nxla.shard_map` sees the part of each tensor on one device. A value that depends
on a part *varies* along the mesh axes that divide the part: each device has a different value. A
value that depends on no part is equal on all devices. `psum`, `pmean`, `pmax`, `pmin` and
`all_gather` combine the values of all devices into one. `ppermute`, `all_to_all` and `psum_scatter`
exchange values.

Mesh axes are vectorized axes of the values that vary along them, so these functions are
compositions of ordinary functions. They have derivatives, run on any compiler, and can be
serialized. XLA's partitioner translates them to communication between devices.

>>> import nxla as nx
>>> mesh = nx.Mesh(data=2)
>>> rows = mesh.sharding("data")
>>> def normalized(x):
...     return x / nx.collectives.psum(nx.sum(x), "data")
>>> nx.shard_map(normalized, mesh, rows, rows)(nx.tensor([1.0, 2.0, 3.0, 4.0])).tolist()
[0.10000000149011612, 0.20000000298023224, 0.30000001192092896, 0.4000000059604645]
"""

from __future__ import annotations

import functools
import itertools
import math
import threading

from nxla import _core, _hints, tree
from nxla._arguments import name_of, reject_named_arguments
from nxla._marks import reject_marks
from nxla._mesh_programs import check_mesh_of_trace, with_own_options
from nxla._spec import make_function
from nxla._values import as_bool, as_int, as_list, as_pairs, as_tensor
from nxla.errors import ArgumentError, ShapeError
from nxla.ops.create import zeros
from nxla.ops.movement import moveaxis
from nxla.vectors import spread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from nxla._core import Tensor
    from nxla.sharding import Mesh, Sharding

__all__ = [
    "all_gather",
    "all_to_all",
    "axis_index",
    "axis_size",
    "pmax",
    "pmean",
    "pmin",
    "ppermute",
    "psum",
    "psum_scatter",
    "pvary",
    "shard_map",
]


class _Meshes(threading.local):
    """Names and sizes of the mesh whose function is traced on the current thread."""

    def __init__(self) -> None:
        self.axes: dict[str, int] = {}


_meshes = _Meshes()


class _Entered:
    """Context manager that sets the current mesh axes."""

    def __init__(self, axes: dict[str, int]) -> None:
        self._axes = axes

    def __enter__(self) -> None:
        self._before = _meshes.axes
        _meshes.axes = {**self._before, **self._axes}

    def __exit__(self, *_: object) -> None:
        _meshes.axes = self._before


def constrain(x: Tensor) -> Tensor:
    """Constrain a value so that each device holds its entry of the leading axes."""
    along = [name if name in _meshes.axes else None for name, _ in x.vectorized_axes]
    if not _meshes.axes or not _core.is_tracing():
        return x
    whole = _core.devectorize(x, False)
    layout = [[name] if name else [] for name in along]
    marked = _core.annotate(whole, _core.sharding_note(layout, whole.ndim))
    named = _core.rename(marked, [*[None] * len(along), *x.names])
    return _core.vectorize(named, list(x.vectorized_axes))


def _names(axis_name: str | Sequence[str]) -> tuple[str, ...]:
    if isinstance(axis_name, str):
        return (axis_name,)
    return tuple(as_list("collectives", "axis_name", axis_name))


def axis_size(axis_name: str | Sequence[str], /) -> int:
    """Return the number of devices along one or several mesh axes.

    Raises
    ------
    ArgumentError
        If the call is not inside `shard_map` over a mesh with the axis.

    Examples
    --------
    >>> import nxla as nx
    >>> mesh = nx.Mesh(data=2)
    >>> nx.shard_map(lambda: nx.collectives.axis_size("data"), mesh, (), None)().item()
    2
    """
    size = 1
    for name in _names(axis_name):
        if name not in _meshes.axes:
            known = ", ".join(_meshes.axes)
            raise ArgumentError(
                f"collectives: axis_name: must be an axis of the mesh ({known}); got {name!r}"
                if known
                else f"collectives: axis_name: {name!r} requires a call of nx.shard_map"
            )
        size *= _meshes.axes[name]
    return size


def _gather_axis(function: str, x: Any, name: str) -> Tensor:
    """Return the values of all devices along an axis as the first axis of a tensor."""
    if not isinstance(name, str):
        raise ArgumentError(f"{function}: axis_name: must be a string; got {name!r}")
    x = _vary(x, name)
    vectors = list(x.vectorized_axes)
    at = [each for each, _ in vectors].index(name)
    rest = vectors[:at] + vectors[at + 1 :]
    whole = moveaxis(_core.devectorize(x, False), at, len(rest))
    # The axis has no name, and neither have the axes that are vectorized again.
    return _vectorize_leading(whole, rest, [None, *x.names])


def _vary(value: Any, name: str) -> Tensor:
    """Return a value that varies along an axis; a value that did not vary is repeated."""
    size = axis_size(name)
    x = as_tensor(value)
    vectors = list(x.vectorized_axes)
    if name in dict(vectors):
        return x
    whole = _core.rename(_core.devectorize(x, False), [None] * (len(vectors) + x.ndim))
    return constrain(
        _vectorize_leading(spread("shard_map", whole, [(name, size)]), vectors, x.names)
    )


def _vectorize_leading(
    x: Tensor, vectors: list[tuple[str, int]], names: Sequence[str | None]
) -> Tensor:
    named = _core.rename(x, [*[None] * len(vectors), *names])
    return _core.vectorize(named, vectors) if vectors else named


def _scatter_axis(x: Tensor, name: str, size: int) -> Tensor:
    """Assign each device along an axis its entry of the first axis of a tensor."""
    names = [None, *x.names[1:]]
    return constrain(_core.vectorize(_core.rename(x, names), [(name, size)]))


def _reduce_leaves(
    function: str, x: Any, axis_name: str | Sequence[str], reduce: Callable[..., Tensor]
) -> Any:
    names = _names(axis_name)

    def one(leaf: Any) -> Tensor:
        leading = as_tensor(leaf)
        for name in names:
            leading = _gather_axis(function, leading, name)
        return constrain(reduce(leading, axis=tuple(range(len(names)))))

    return tree.map(one, x)


def _total(leading: Tensor, axis: int | tuple[int, ...]) -> Tensor:
    """Return the sum along axes in the dtype of the tensor; booleans are counted."""
    total = _core.sum(leading, axis=axis)
    return total if leading.dtype == _core.DType("pred") else _core.astype(total, leading.dtype)


def psum(x: Any, axis_name: str | Sequence[str], /) -> Any:
    """Return the sum over all devices along one or several mesh axes.

    Parameters
    ----------
    x : tensor_like or container
        The value of each device. An equal value is multiplied by the number of devices.
    axis_name : str or sequence of str
        The mesh axes.

    Returns
    -------
    Tensor or container
        The sums, which do not vary along the axes, with the shapes and dtypes of `x`. Booleans are
        counted.

    Raises
    ------
    ArgumentError
        If the mesh does not have the axis, or the function is called outside `shard_map`.

    Examples
    --------
    >>> import nxla as nx
    >>> mesh = nx.Mesh(data=2)
    >>> f = nx.shard_map(
    ...     lambda x: nx.collectives.psum(x, "data"), mesh, mesh.sharding("data"), None
    ... )
    >>> f(nx.tensor([1, 2, 3, 4])).tolist()
    [4, 6]
    """
    return _reduce_leaves("psum", x, axis_name, _total)


def pmean(x: Any, axis_name: str | Sequence[str], /) -> Any:
    """Return the mean over all devices along one or several mesh axes.

    Parameters and errors are the same as for `psum`. The mean has the dtype of `nxla.mean`: it is
    computed in at least ``float32``, and the mean of integers and booleans is a ``float32``.

    Examples
    --------
    >>> import nxla as nx
    >>> mesh = nx.Mesh(data=2)
    >>> f = nx.shard_map(
    ...     lambda x: nx.collectives.pmean(x, "data"), mesh, mesh.sharding("data"), None
    ... )
    >>> f(nx.tensor([1.0, 2.0, 3.0, 4.0])).tolist()
    [2.0, 3.0]
    """
    return _reduce_leaves("pmean", x, axis_name, _core.mean)


def pmax(x: Any, axis_name: str | Sequence[str], /) -> Any:
    """Return the element-wise maximum over all devices along one or several mesh axes.

    Parameters and errors are the same as for `psum`.

    Examples
    --------
    >>> import nxla as nx
    >>> mesh = nx.Mesh(data=2)
    >>> f = nx.shard_map(
    ...     lambda x: nx.collectives.pmax(x, "data"), mesh, mesh.sharding("data"), None
    ... )
    >>> f(nx.tensor([1, 5, 3, 4])).tolist()
    [3, 5]
    """
    return _reduce_leaves("pmax", x, axis_name, _core.max)


def pmin(x: Any, axis_name: str | Sequence[str], /) -> Any:
    """Return the element-wise minimum over all devices along one or several mesh axes.

    Parameters and errors are the same as for `psum`.

    Examples
    --------
    >>> import nxla as nx
    >>> mesh = nx.Mesh(data=2)
    >>> f = nx.shard_map(
    ...     lambda x: nx.collectives.pmin(x, "data"), mesh, mesh.sharding("data"), None
    ... )
    >>> f(nx.tensor([1, 5, 3, 4])).tolist()
    [1, 4]
    """
    return _reduce_leaves("pmin", x, axis_name, _core.min)


def pvary(x: Any, axis_name: str | Sequence[str], /) -> Any:
    """Return the value, marked as varying along one or several mesh axes.

    A loop state that varies after the first iteration must start as varying.

    Parameters and errors are the same as for `psum`.

    Examples
    --------
    >>> import nxla as nx
    >>> mesh = nx.Mesh(data=2)
    >>> def f(x):
    ...     total = nx.collectives.pvary(0.0, "data")
    ...     return nx.fori(0, 3, lambda i, total: total + x[0], total)[None]
    >>> rows = mesh.sharding("data")
    >>> nx.shard_map(f, mesh, rows, rows)(nx.tensor([1.0, 2.0])).tolist()
    [3.0, 6.0]
    """

    def one(leaf: Any) -> Any:
        for name in _names(axis_name):
            leaf = _vary(leaf, name)
        return leaf

    return tree.map(one, x)


def axis_index(axis_name: str | Sequence[str], /) -> Tensor:
    """Return the index of the device along mesh axes; the last axis is the fastest.

    Returns
    -------
    Tensor
        A scalar of dtype s32 that varies along these axes.

    Raises
    ------
    ArgumentError
        If the mesh does not have the axis, or the function is called outside `shard_map`.

    Examples
    --------
    >>> import nxla as nx
    >>> mesh = nx.Mesh(data=2)
    >>> rows = mesh.sharding("data")
    >>> f = nx.shard_map(lambda x: x + nx.collectives.axis_index("data"), mesh, rows, rows)
    >>> f(nx.tensor([10, 10, 10, 10])).tolist()
    [10, 10, 11, 11]
    """
    index: Any = None
    for name in _names(axis_name):
        size = axis_size(name)
        one = constrain(_core.vectorize(_core.iota((size,), dtype="s32"), [(name, size)]))
        index = one if index is None else index * size + one
    if index is None:
        raise ArgumentError("axis_index: axis_name: must name at least one axis")
    found: Tensor = index
    return found


def all_gather(x: Any, axis_name: str, /, *, axis: int = 0, tiled: bool = False) -> Any:
    """Return the values of all devices along a mesh axis, stacked or concatenated.

    Parameters
    ----------
    x : tensor_like or container
        The value of each device.
    axis_name : str
        The mesh axis.
    axis : int
        The position of the new axis, or the concatenated axis of `x`.
    tiled : bool
        If True, concatenate along the axis `axis` of `x` instead of stacking along a new axis.

    Returns
    -------
    Tensor or container
        A value that is equal on all devices.

    Raises
    ------
    ArgumentError
        If the mesh does not have the axis, or the function is called outside `shard_map`.
    ShapeError
        If the tensor does not have the axis.

    Examples
    --------
    >>> import nxla as nx
    >>> mesh = nx.Mesh(data=2)
    >>> f = nx.shard_map(
    ...     lambda x: nx.collectives.all_gather(x, "data"), mesh, mesh.sharding("data"), None
    ... )
    >>> f(nx.tensor([1, 2, 3, 4])).tolist()
    [[1, 2], [3, 4]]
    """

    def one(leaf: Any) -> Any:
        leading = _gather_axis("all_gather", leaf, axis_name)
        at = _position("all_gather", "axis", axis, leading.ndim - (1 if tiled else 0))
        moved = moveaxis(leading, 0, at)
        return constrain(_merge_axes(moved, at) if tiled else moved)

    return tree.map(one, x)


def psum_scatter(
    x: Any, axis_name: str, /, *, scatter_dimension: int = 0, tiled: bool = False
) -> Any:
    """Return each device's part of the sum over all devices along a mesh axis.

    Parameters
    ----------
    x : tensor_like or container
        The value of each device.
    axis_name : str
        The mesh axis.
    scatter_dimension : int
        The axis of the sum that is divided among the devices.
    tiled : bool
        If True, the axis keeps a part of its elements. If False, it must have one element for each
        device and is removed.

    Returns
    -------
    Tensor or container
        The parts, which vary along the axis, with the dtype of `psum`.

    Raises
    ------
    ArgumentError
        If the mesh does not have the axis, or the function is called outside `shard_map`.
    ShapeError
        If the tensor does not have the axis, or the axis cannot be divided into equal parts.

    Examples
    --------
    >>> import nxla as nx
    >>> mesh = nx.Mesh(data=2)
    >>> rows = mesh.sharding("data")
    >>> f = nx.shard_map(
    ...     lambda x: nx.collectives.psum_scatter(x, "data", tiled=True), mesh, rows, rows
    ... )
    >>> f(nx.tensor([1, 2, 3, 4])).tolist()
    [4, 6]
    """

    def one(leaf: Any) -> Any:
        leading = _gather_axis("psum_scatter", leaf, axis_name)
        total = _total(leading, axis=0)
        size = axis_size(axis_name)
        at = _position("psum_scatter", "scatter_dimension", scatter_dimension, total.ndim)
        return _scatter_axis(_chunks("psum_scatter", total, at, size, tiled), axis_name, size)

    return tree.map(one, x)


def all_to_all(
    x: Any, axis_name: str, /, split_axis: int, concat_axis: int, *, tiled: bool = False
) -> Any:
    """Divide each device's value along an axis, and send each device one part of every value.

    Parameters
    ----------
    x : tensor_like or container
        The value of each device.
    axis_name : str
        The mesh axis.
    split_axis : int
        The axis of `x` that is divided into one part for each device.
    concat_axis : int
        The axis along which the received parts are placed, in the order of their senders.
    tiled : bool
        If True, concatenate the parts along the axis `concat_axis` of `x`. If False, `split_axis`
        must have one element for each device and is removed, and `concat_axis` is a new axis.

    Returns
    -------
    Tensor or container
        The received parts of each device, in the containers of `x`. With `tiled`, the axis
        `split_axis` is divided by the number of devices, and `concat_axis` is multiplied by it.

    Raises
    ------
    ArgumentError
        If the mesh does not have the axis, or the function is called outside `shard_map`.
    ShapeError
        If the tensor does not have the axis, or the axis cannot be divided into equal parts.

    Examples
    --------
    >>> import nxla as nx
    >>> mesh = nx.Mesh(data=2)
    >>> rows = mesh.sharding("data")
    >>> def f(x):
    ...     return nx.collectives.all_to_all(x, "data", 1, 0, tiled=True)
    >>> x = nx.tensor([[1, 2, 3, 4], [5, 6, 7, 8]])
    >>> nx.shard_map(f, mesh, rows, mesh.sharding(None, "data"))(x).tolist()
    [[1, 2, 3, 4], [5, 6, 7, 8]]
    """

    def one(leaf: Any) -> Any:
        leading = _gather_axis("all_to_all", leaf, axis_name)
        size, rank = axis_size(axis_name), leading.ndim - 1
        split = _position("all_to_all", "split_axis", split_axis, rank)
        to = _position("all_to_all", "concat_axis", concat_axis, rank)
        # The axes are the receivers, the senders, and the axes of the parts.
        chunks = _chunks("all_to_all", leading, split + 1, size, tiled)
        moved = moveaxis(chunks, 1, to + 1)
        joined = _merge_axes(moved, to + 1) if tiled else moved
        return _scatter_axis(joined, axis_name, size)

    return tree.map(one, x)


def ppermute(x: Any, axis_name: str, /, perm: Sequence[tuple[int, int]]) -> Any:
    """Send values between devices along a mesh axis.

    Parameters
    ----------
    x : tensor_like or container
        The value of each device.
    axis_name : str
        The mesh axis.
    perm : sequence of (int, int)
        Pairs of source and target devices. A device is a source at most once and a target at most
        once. A device that is not a target receives zeros.

    Returns
    -------
    Tensor or container
        The received value of each device, with the shapes and dtypes of `x`.

    Raises
    ------
    ArgumentError
        If the mesh does not have the axis or a device, a device is repeated, or the function is
        called outside `shard_map`.

    Examples
    --------
    >>> import nxla as nx
    >>> mesh = nx.Mesh(data=2)
    >>> rows = mesh.sharding("data")
    >>> f = nx.shard_map(
    ...     lambda x: nx.collectives.ppermute(x, "data", [(0, 1), (1, 0)]), mesh, rows, rows
    ... )
    >>> f(nx.tensor([1, 2, 3, 4])).tolist()
    [3, 4, 1, 2]
    """
    size = axis_size(axis_name)
    pairs = [
        (as_int("ppermute", "perm", source), as_int("ppermute", "perm", target))
        for source, target in as_pairs("ppermute", "perm", perm, "(source, target)")
    ]
    for each in zip(*pairs, strict=True):
        if len(set(each)) < len(each) or not all(0 <= at < size for at in each):
            raise ArgumentError(
                f"ppermute: perm: each of {size} devices must be a source at most once and a "
                f"target at most once; got {pairs}"
            )

    def one(leaf: Any) -> Any:
        leading = _gather_axis("ppermute", leaf, axis_name)
        result = zeros(leading.shape, dtype=leading.dtype)
        for distance, mask in _distances(pairs, size):
            # The partitioner recognizes rotations and no other permutations.
            sent = leading
            if distance:
                sent = _core.concat([leading[-distance:], leading[:-distance]], axis=0)
            if not all(mask):
                receives = _core.reshape(_core.tensor(mask), [size] + [1] * (leading.ndim - 1))
                sent = _core.where(receives, sent, result)
            result = sent
        return _scatter_axis(result, axis_name, size)

    return tree.map(one, x)


def _distances(pairs: list[tuple[int, int]], size: int) -> Iterator[tuple[int, list[bool]]]:
    """Return the distances by which values are rotated, and the receiving devices of each."""
    for distance in sorted({(target - source) % size for source, target in pairs}):
        targets = {target for source, target in pairs if (target - source) % size == distance}
        yield distance, [at in targets for at in range(size)]


def _position(function: str, argument: str, axis: int, rank: int) -> int:
    axis = as_int(function, argument, axis)
    if not -rank <= axis < rank:
        raise ShapeError(
            f"{function}: {argument}: must be an axis of a tensor with {rank} axes; got {axis}"
        )
    return axis % rank


def _chunks(function: str, x: Tensor, axis: int, size: int, tiled: bool) -> Tensor:
    """Divide an axis into parts along a new first axis."""
    tiled = as_bool(function, "tiled", tiled)
    length = x.shape[axis]
    if length % size if tiled else length != size:
        wanted = f"a multiple of {size}" if tiled else f"equal to {size}"
        raise ShapeError(
            f"{function}: axis: the size of the divided axis must be {wanted}, the number of "
            f"devices; got {length}"
        )
    if tiled:
        names = list(x.names)
        shape = [*x.shape[:axis], size, length // size, *x.shape[axis + 1 :]]
        x = _core.reshape(x, shape, names=[*names[:axis], None, *names[axis:]])
    return moveaxis(x, axis, 0)


def _merge_axes(x: Tensor, axis: int) -> Tensor:
    """Merge an axis with the next one, which keeps its name."""
    names = list(x.names)
    shape = [*x.shape[:axis], x.shape[axis] * x.shape[axis + 1], *x.shape[axis + 2 :]]
    return _core.reshape(x, shape, names=names[:axis] + names[axis + 1 :])


def shard_map(
    function: Callable[..., Any],
    mesh: Mesh,
    /,
    in_specs: Any,
    out_specs: Any,
    **options: Any,
) -> Callable[..., Any]:
    """Return a function of whole tensors from a function of the part on one device.

    Inside `function`, tensors have the shapes of parts, and the functions of `nxla.collectives`
    combine the values of devices. Gradients inside are gradients of each device's own result.
    Gradients of the returned function are gradients of the whole.

    Parameters
    ----------
    function : callable
        A function of tensors and containers. It is traced once for all devices: in each call, or
        for each signature if it is jitted.
    mesh : Mesh
        The devices.
    in_specs : Sharding, None or container
        The division of the arguments: one `Sharding` for all, or one for each argument. An argument
        may have a container of shardings with a prefix of its structure. None means not divided.
    out_specs : Sharding, None or container
        The assembly of the results, in the same form. A result may vary only along the mesh axes of
        its sharding.
    **options
        As for `jit`. With ``compiler="evaluator"``, here or in the default options, the host
        computes the values of all devices.

    Returns
    -------
    callable
        Inside a trace it becomes part of the trace, and the outermost function places the data.
        Outside it runs on the devices of the mesh and returns a `ShardedTensor` for each result.

    Raises
    ------
    ShapeError
        If an axis of an argument cannot be divided into equal parts, or a result has fewer axes
        than its sharding names.
    ArgumentError
        If specs do not match the arguments, belong to another mesh, or a result varies along an
        axis that its sharding omits, or an argument varies along an axis of its sharding already.

    Examples
    --------
    >>> import nxla as nx
    >>> mesh = nx.Mesh(data=2)
    >>> def loss(w, x):
    ...     return nx.collectives.pmean(nx.mean((x @ w) ** 2), "data")
    >>> whole = nx.shard_map(loss, mesh, (None, mesh.sharding("data")), None)
    >>> w, x = nx.ones((3,)), nx.ones((4, 3))
    >>> whole(w, x).item(), nx.grad(whole)(w, x).tolist()
    (9.0, [6.0, 6.0, 6.0])
    """
    from nxla.partitions import in_force
    from nxla.sharding import (
        ShardedFunction,
        require_mesh,
        spread_over_arguments,
        spread_shardings,
    )

    require_mesh("shard_map", mesh)
    reject_marks("shard_map", options, "bind static arguments with functools.partial")
    spec, options = with_own_options(function, options, "shard_map")

    def parts_of(args: tuple[Any, ...]) -> tuple[Any, ...]:
        leaves, structure = tree.flatten(args)
        specs = spread_over_arguments(
            in_specs, args, mesh, "shard_map: in_specs", name_of(function)
        )
        _check_mesh(specs, mesh, "in_specs")
        parts = [_part(leaf, spec) for leaf, spec in zip(leaves, specs, strict=True)]
        found: tuple[Any, ...] = structure.unflatten(parts)
        return found

    @functools.wraps(function)
    def whole(*args: Any) -> Any:
        with _Entered(mesh.axes):
            results = spec.function(*parts_of(args))
            leaves, structure = tree.flatten(results)
            specs = spread_shardings(out_specs, results, mesh, "shard_map: out_specs")
            _check_mesh(specs, mesh, "out_specs")
            return structure.unflatten(
                [_together(leaf, spec) for leaf, spec in zip(leaves, specs, strict=True)]
            )

    simulated = options.get("compiler") == "evaluator"
    checks = {"debug_nans": options.get("debug_nans")}
    host_options = options if simulated else {"compiler": "evaluator", **checks}
    mesh_options = {} if simulated else options
    names = ("shard_map", "in_specs", "out_specs")
    # The variables of a function that is not jitted can change, so every call traces it.
    jitted = spec.jitted
    on_host = make_function(whole, options=host_options, jitted=jitted)
    on_mesh = ShardedFunction(whole, in_specs, out_specs, mesh_options, mesh, names, jitted=jitted)

    @_hints.with_hints
    @functools.wraps(function)
    def mapped(*args: Any, **named: Any) -> Any:
        reject_named_arguments(named, name_of(function))
        if _core.is_tracing():
            check_mesh_of_trace(mesh, "shard_map: mesh")
            return whole(*args)
        return (on_host if in_force(options) == "evaluator" else on_mesh)(*args)

    return mapped


def _check_mesh(specs: list[Sharding], mesh: Mesh, what: str) -> None:
    """Raise an error for a sharding of another mesh."""
    for each in specs:
        if each.mesh != mesh:
            raise ArgumentError(
                f"shard_map: {what}: shardings must use the mesh of shard_map; got {each.mesh}"
            )


def _part(value: Any, spec: Sharding) -> Tensor:
    """Return the part of each device of a whole tensor; it varies along the dividing axes."""
    x = as_tensor(value)
    shape: list[int] = []
    names: list[str | None] = []
    places: dict[str, int] = {}
    sizes = spec.part(x.shape)
    for size, name, along in zip(sizes, x.names, spec._padded_layout(x.ndim), strict=True):
        for axis in along:
            places[axis] = len(shape)
            shape.append(spec.mesh.axes[axis])
            names.append(None)
        shape.append(size)
        names.append(name)
    if not places:
        return x
    for axis, _ in x.vectorized_axes:
        if axis in places:
            raise ArgumentError(
                f"shard_map: in_specs: must not name {axis!r}, a vectorized axis of the argument; "
                "an outer shard_map over this mesh axis adds it, and so does nx.vectorize"
            )
    order = [*places.values(), *(at for at in range(len(shape)) if at not in places.values())]
    parts = _core.permute_dims(_core.reshape(x, shape, names=names), order)
    return constrain(_core.vectorize(parts, [(axis, spec.mesh.axes[axis]) for axis in places]))


def _together(x: Any, spec: Sharding) -> Tensor:
    """Return the whole tensor from the parts of the devices."""
    x = as_tensor(x)
    layout = spec._padded_layout(x.ndim)
    named = list(itertools.chain.from_iterable(layout))
    for name, _ in x.vectorized_axes:
        if name in spec.mesh.axes and name not in named:
            raise ArgumentError(
                f"shard_map: out_specs: must name {name!r}, along which a result varies; name the "
                "axis, or combine the values with a function of nx.collectives such as psum"
            )
    for name in named:
        x = _vary(x, name)
    for name in reversed(named):
        x = _gather_axis("shard_map", x, name)
    shape, names = x.shape[len(named) :], x.names[len(named) :]
    places = {name: at for at, name in enumerate(named)}
    order: list[int] = []
    for at, along in enumerate(layout):
        order += [places[name] for name in along] + [len(named) + at]
    sizes = [
        size * math.prod(spec.mesh.axes[name] for name in along)
        for size, along in zip(shape, layout, strict=True)
    ]
    return _core.reshape(_core.permute_dims(x, order), sizes, names=names)


_hints.install(globals())
_hints.install_missing_names(globals())
