"""Vectorized axes: leading axes that functions do not see.

A tensor with vectorized axes shows the shape of its other axes, and every function treats it as a
collection of tensors of this shape. Vectorized axes have names, by which the axes of several
operands are aligned: each operand receives the axes of all operands, and axes of size 1 are
broadcast.

>>> import nxla as nx
>>> rows = nx.vectorize([[1, 2, 3], [4, 5, 6]], "row")
>>> rows.shape, rows.vectorized_axes
((3,), (('row', 2),))
>>> nx.sum(rows)
#nxla.Tensor<
  vectorized[row: 2]
  s32
  [6, 15]
>
"""

from __future__ import annotations

import functools

from nxla import _core, _hints, tree
from nxla._prefixes import expand_prefix
from nxla._values import (
    as_count,
    as_list,
    as_pairs,
    as_tensor,
    index_list,
    keeps_structure,
    template_of,
    to_index,
    user_line,
)
from nxla.errors import ArgumentError, ShapeError
from nxla.ops.movement import moveaxis

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, ParamSpec, TypeAlias, TypeVar, overload

    from nxla._core import Expr, Function, Tensor
    from nxla._types import Leaf, Names, Shape, TensorLike

    P = ParamSpec("P")
    T = TypeVar("T")

    #: An axis to vectorize: its name, or its name and its size.
    VectorAxis: TypeAlias = str | tuple[str, int | str | None]

#: The types of numbers, and of operands that are not copied.
_NUMBERS = (int, float, complex)
_OPERANDS = (_core.Tensor, _core.Expr, *_NUMBERS)


def _axes(axes: VectorAxis | Iterable[VectorAxis], function: str) -> list[tuple[str, int | None]]:
    """Return names with sizes; None for an omitted size."""
    if isinstance(axes, str):
        axes = [axes]
    found: list[tuple[str, int | None]] = []
    for axis in as_list(function, "axes", axes):
        if isinstance(axis, str):
            found.append((axis, None))
            continue
        if not isinstance(axis, tuple | list) or len(axis) != 2 or not isinstance(axis[0], str):
            raise ArgumentError(
                f"{function}: axes: must be names or pairs (name, size); got {axis!r}"
            )
        name, size = axis
        if size is None or size == "auto" or size == -1:
            found.append((name, None))
        elif (count := to_index(size)) is not None and count >= 0:
            found.append((name, count))
        else:
            raise ArgumentError(
                f"{function}: axes: size of {name!r} must be an int, or None to infer it; got "
                f"{size!r}"
            )
    return found


if TYPE_CHECKING:
    # Nested numbers are one tensor, and a sequence of tensors is a container.

    @overload
    def vectorize(x: Sequence[Any], axes: VectorAxis | Iterable[VectorAxis], /) -> Any: ...

    @overload
    def vectorize(x: Leaf, axes: VectorAxis | Iterable[VectorAxis], /) -> Tensor: ...

    @overload
    def vectorize(x: T, axes: VectorAxis | Iterable[VectorAxis], /) -> T: ...


def vectorize(x: Any, axes: VectorAxis | Iterable[VectorAxis], /) -> Any:
    """Vectorize the leading axes: functions then work on each entry.

    Parameters
    ----------
    x : tensor_like or container
        Tensors with at least as many axes as names.
    axes : str, or sequence of str and (str, int)
        The names, outermost first; they follow the existing vectorized axes. An optional size is
        checked.

    Returns
    -------
    Tensor or container
        The same elements; ``shape`` and ``names`` describe one entry.

    Raises
    ------
    ShapeError
        If the tensor has fewer axes than names, an axis has another size, or a name is in use.

    Examples
    --------
    >>> import nxla as nx
    >>> x = nx.vectorize([[1, 2], [3, 4]], [("x", 2)])
    >>> y = nx.vectorize([10, 20, 30], "y")
    >>> nx.add(x, y).vectorized_axes, nx.add(x, y).shape
    ((('x', 2), ('y', 3)), (2,))
    """
    wanted = _axes(axes, "vectorize")
    return _map(lambda leaf: _core.vectorize(leaf, wanted), x)


@keeps_structure
def devectorize(x: Any, /, *, keep_names: bool = True) -> Any:
    """Convert vectorized axes to ordinary leading axes.

    Parameters
    ----------
    x : tensor_like or container
        Tensors; tensors without vectorized axes are returned unchanged.
    keep_names : bool
        If True, the new axes keep the names of the vectorized axes.

    Returns
    -------
    Tensor or container
        Tensors whose vectorized axes are the first axes of their shapes.

    Examples
    --------
    >>> import nxla as nx
    >>> x = nx.devectorize(nx.vectorize([[1, 2], [3, 4]], "x"))
    >>> x.shape, x.names
    ((2, 2), ['x', None])
    """
    return _map(lambda leaf: _core.devectorize(leaf, keep_names), x)


@keeps_structure
def revectorize(
    x: Any,
    axes: VectorAxis | Iterable[VectorAxis],
    /,
    *,
    target_shape: Shape | None = None,
    target_names: Names | None = None,
) -> Any:
    """Change vectorized axes and shape; the elements keep their row-major order.

    Parameters
    ----------
    x : tensor_like or container
        Any tensor.
    axes : sequence of (str, int)
        All vectorized axes of the result; the size ``None`` (or ``-1`` or ``"auto"``) is inferred.
    target_shape : int or sequence of int, optional
        The shape of an entry; -1 is inferred. By default it is unchanged.
    target_names : sequence of (str or None), optional
        The names of the axes of an entry.

    Returns
    -------
    Tensor or container
        Tensors with the vectorized axes `axes`.

    Raises
    ------
    ShapeError
        If the sizes do not multiply to the number of elements, or several sizes are omitted.

    Examples
    --------
    >>> import nxla as nx
    >>> x = nx.vectorize(nx.iota((6, 2)), "x")
    >>> nx.revectorize(x, [("a", 2), ("b", None)]).vectorized_axes
    (('a', 2), ('b', 3))
    >>> nx.revectorize(x, [("a", 2)], target_shape=(-1,)).shape
    (6,)
    """
    wanted = _axes(axes, "revectorize")
    if target_shape is not None:
        target_shape = index_list("revectorize", "target_shape", target_shape, names=False)
    return _map(lambda leaf: _core.revectorize(leaf, wanted, target_shape, target_names), x)


def reshape_vectors(values: Sequence[TensorLike], /, *, align_ranks: bool = False) -> list[Tensor]:
    """Align the vectorized axes of tensors, in the order of their first use.

    New axes have size 1. Nothing changes if no tensor is vectorized.

    Parameters
    ----------
    values : sequence of tensor_like
        Tensors; axes with the same name have the same size, or size 1.
    align_ranks : bool
        If True, add leading axes of size 1 to entries until all ranks are equal.

    Returns
    -------
    list of Tensor
        The values with the same vectorized axes, in the same order.

    Raises
    ------
    ShapeError
        If axes of one name have different sizes.

    Examples
    --------
    >>> import nxla as nx
    >>> x, y = nx.vectorize([1, 2], "x"), nx.vectorize([1, 2, 3], "y")
    >>> [z.vectorized_axes for z in nx.reshape_vectors([x, y])]
    [(('x', 2), ('y', 1)), (('x', 1), ('y', 3))]
    """
    values = as_list("reshape_vectors", "values", values)
    return _core.align_vectors(values, align_ranks, False)


def broadcast_vectors(
    values: Sequence[TensorLike], /, *, align_ranks: bool = False
) -> list[Tensor]:
    """Align the vectorized axes of tensors, and broadcast them to the full size.

    Parameters and errors are the same as for `reshape_vectors`.

    Examples
    --------
    >>> import nxla as nx
    >>> x, y = nx.vectorize([1, 2], "x"), nx.tensor([7])
    >>> nx.devectorize(nx.broadcast_vectors([x, y])[1], keep_names=False).tolist()
    [[7], [7]]
    """
    values = as_list("broadcast_vectors", "values", values)
    return _core.align_vectors(values, align_ranks, True)


def spread(function: str, x: Tensor, axes: Sequence[tuple[str, int]]) -> Tensor:
    """Broadcast a tensor without vectorized axes over the given axes of a `function`."""
    pairs = as_pairs(function, "vectorized_axes", axes, "(name, size)")
    if not pairs:
        return x
    sizes = [as_count(function, "vectorized_axes", size) for _, size in pairs]
    repeated = _core.rename(
        _core.broadcast_to(x, [*sizes, *x.shape]), [*[None] * len(sizes), *x.names]
    )
    return _core.vectorize(repeated, pairs)


def vmap(function: Callable[P, Any], /, in_axes: Any = 0, out_axes: Any = 0) -> Function[P, Any]:
    """Return a function of many entries from a function of one entry.

    The function is traced with values of the shape of one entry, and each operation computes all
    entries at once. It uses `vectorize` for axes without names.

    Parameters
    ----------
    function : callable
        A function of tensors and containers.
    in_axes : int, None, or sequence of them
        The axis with the entries of each positional argument; None for an argument that all entries
        share. One int applies to all arguments. For a container, it applies to each of its tensors,
        or the value is a container with an int or None for each part.
    out_axes : int, or container
        The axis with the entries of each result: one int for all, or a container with the structure
        of the result. Its parts are ints, or None for a result that is equal for all entries.

    Returns
    -------
    Function
        It runs compiled, and becomes part of the trace inside another jitted function. Keyword
        arguments are mapped along their first axis. Unless `function` is jitted, it is traced in
        every call; `nxla.jit` of the mapped function is traced once.

    Raises
    ------
    ShapeError
        If sizes along the mapped axes differ, an axis does not exist, or no argument is mapped.
    ArgumentError
        If `in_axes` has the wrong length, a container of axes does not match its value, or
        `out_axes` is None for a result that depends on a mapped argument.

    Examples
    --------
    >>> import nxla as nx
    >>> outer = nx.vmap(nx.vmap(lambda x, y: x * y, in_axes=(None, 0)), in_axes=(0, None))
    >>> outer(nx.tensor([1, 2]), nx.tensor([3, 4])).tolist()
    [[3, 4], [6, 8]]
    >>> per_row = nx.vmap(nx.grad(lambda x: nx.sum(x**2)))
    >>> per_row(nx.tensor([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [[2.0, 4.0], [6.0, 8.0]]
    """
    from nxla._spec import derived_function, spec_of

    spec = spec_of(function, "vmap")
    if not (in_axes is None or _is_axis(in_axes) or isinstance(in_axes, list | tuple)):
        raise ArgumentError(
            "vmap: in_axes: must be an int, None, or a list with an entry for each argument; got "
            f"{in_axes!r}"
        )

    @functools.wraps(spec.function)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        specs = [in_axes] * len(args) if in_axes is None or _is_axis(in_axes) else list(in_axes)
        if len(specs) != len(args):
            raise ArgumentError(
                f"vmap: in_axes: must have {len(args)} entries, one for each argument; got "
                f"{len(specs)}"
            )
        # An argument without an axis is passed on unchanged.
        given = zip([*args, *kwargs.values()], [*specs, *[0] * len(kwargs)], strict=True)
        parts = [_part(arg, spec) for arg, spec in given]
        _require_axes(parts, list(kwargs))
        pairs = [pair for leaves, _, axes in parts for pair in zip(leaves, axes, strict=True)]
        leaves = [leaf for leaf, axis in pairs if axis is not None]
        mapped_axes = [axis for _, axis in pairs if axis is not None]
        output = tree.flatten(())[1]

        def call(entries: list[Any]) -> list[Any]:
            nonlocal output
            rest = iter(entries)
            changed = []
            for leaves, structure, axes in parts:
                given = [
                    leaf if axis is None else next(rest)
                    for leaf, axis in zip(leaves, axes, strict=True)
                ]
                changed.append(given[0] if structure is None else structure.unflatten(given))
            named = dict(zip(kwargs, changed[len(args) :], strict=True))
            result = spec.function(*changed[: len(args)], **named)
            results, output = tree.flatten(result)
            result_axes.extend(_leaf_axes("out_axes", out_axes, result))
            shared.extend(_unmap(results, result_axes, entries))
            return [x for x, axis in zip(results, result_axes, strict=True) if axis is not None]

        result_axes: list[int | None] = []
        shared: list[TensorLike] = []
        one_axis = out_axes if _is_axis(out_axes) else 0
        stacked = iter(_core.map_entries(leaves, mapped_axes, one_axis, call))
        unmapped = iter(shared)
        placed = [
            next(unmapped) if axis is None else _move_entries(next(stacked), one_axis, axis)
            for axis in result_axes
        ]
        return output.unflatten(placed)

    derived: Function[P, Any] = derived_function(mapped, spec)
    return derived


def _move_entries(x: Expr, source: int, target: int) -> Tensor:
    """Return a result with the axis of the entries at another position."""
    if not -x.ndim <= target < x.ndim:
        raise ShapeError(
            f"vmap: out_axes: must be in range for {template_of(x)}; got {target}{user_line()}"
        )
    return moveaxis(x, source, target)


def _unmap(
    results: list[TensorLike], axes: list[int | None], entries: list[Any]
) -> list[TensorLike]:
    """Return the results without an output axis, which must be equal for all entries."""
    name = entries[0].vectorized_axes[-1][0]
    shared = [x for x, axis in zip(results, axes, strict=True) if axis is None]
    for x in shared:
        if name in dict(as_tensor(x).vectorized_axes):
            raise ArgumentError(
                "vmap: out_axes: must be an int for a result that depends on a mapped argument; "
                f"got None{user_line()}"
            )
    return shared


def _is_axis(spec: Any) -> bool:
    return to_index(spec) is not None


def _part(arg: Any, spec: Any) -> tuple[list[Any], tree.TreeDef | None, list[int | None]]:
    """Return the leaves of an argument, its structure (None if it is one leaf), and their axes."""
    if spec is None:
        return [arg], None, [None]
    leaves, structure = tree.flatten(arg)
    return leaves, structure, _leaf_axes("in_axes", spec, arg)


def _require_axes(
    parts: list[tuple[list[Any], tree.TreeDef | None, list[int | None]]], names: list[str]
) -> None:
    """Raise an error for a mapped number, among positional arguments and then named ones."""
    count = len(parts) - len(names)
    for position, (leaves, _, axes) in enumerate(parts):
        for leaf, axis in zip(leaves, axes, strict=True):
            if axis is None or getattr(leaf, "shape", ()) != ():
                continue
            if position < count:
                raise ShapeError(
                    "vmap: in_axes: must be None for a value without axes; got "
                    f"{axis} for {template_of(leaf)} in argument {position}"
                )
            raise ShapeError(
                f"vmap: {names[position - count]}: must have an axis, because keyword arguments "
                f"are mapped along their first axis; got {template_of(leaf)}; pass the argument "
                "by position with in_axes=None"
            )


def _leaf_axes(argument: str, spec: Any, value: Any) -> list[int | None]:
    """Return the axis of each leaf; an axis (or None) applies to all leaves below it."""
    return expand_prefix(
        spec,
        value,
        lambda part: part is None or _is_axis(part),
        f"vmap: {argument}",
        "an int, None",
    )


def _map(function: Callable[[Any], Any], x: Any) -> Any:
    """Apply a function to a tensor, nested numbers, or each tensor of a container."""

    def apply(leaf: Any) -> Any:
        is_data = not isinstance(leaf, _OPERANDS)
        return function(_core.place(_core.tensor(leaf)) if is_data else leaf)

    if isinstance(x, list | tuple) and all(isinstance(leaf, _NUMBERS) for leaf in tree.leaves(x)):
        return function(_core.place(_core.tensor(x)))
    return tree.map(apply, x)


_hints.install(globals())
