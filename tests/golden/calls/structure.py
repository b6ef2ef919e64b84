"""Making tensors, moving their elements, indexing and sorting."""

from __future__ import annotations

from typing import Any

import nxla as nx
from golden.calls.adapter import NUMBERS, Adapter, adapt
from golden.values import SPECIAL, dtype_name

TYPED = {"type": "dtype"}
AXIS = {"keep_axis": "keepdims"}
DTYPES = [
    *("u2", "u4", "u8", "u16", "u32", "u64", "s2", "s4", "s8", "s16", "s32", "s64"),
    *("f8", "bf16", "f16", "f32", "f64", "c64", "c128"),
]


def _numbers(value: Any) -> Any:
    """Convert the atoms inside nested lists into numbers."""
    if isinstance(value, list):
        return [_numbers(x) for x in value]
    return {**SPECIAL, **NUMBERS}.get(value, value) if isinstance(value, str) else value


def _tensor(value: Any, **options: Any) -> Any:
    return nx.tensor(_numbers(value), **options)


def _typed(dtype: str) -> Any:
    return lambda value: nx.tensor(_numbers(value), dtype_name(dtype))


def _to_template(container: Any) -> Any:
    def described(x: nx.Tensor) -> nx.Template:
        x = nx.asarray(x)
        return nx.template(x.shape, x.dtype, names=x.names)

    return nx.tree.map(described, container)


def _linspace(start: Any, stop: Any, *, num: Any = None, dtype: Any = None, **options: Any) -> Any:
    if dtype is None or nx.DType(dtype).kind in ("float", "complex"):
        return nx.linspace(start, stop, num, dtype=dtype, **options)
    # Nx truncates the bounds to integers, and then the numbers between them.
    bounds = (nx.astype(x, dtype) for x in (start, stop))
    return nx.astype(nx.linspace(*bounds, num, dtype=nx.float32, **options), dtype)


def _spread(made: Any, vectors: Any) -> Any:
    """Repeat a tensor along new vectorized axes."""
    if not vectors:
        return made
    sizes = [size for _, size in vectors]
    spread = nx.broadcast_to(made, (*sizes, *made.shape))
    return nx.vectorize(spread, [name for name, _ in vectors])


def _iota(shape: Any, *, vectorized_axes: Any = (), **options: Any) -> Any:
    return _spread(nx.iota(_shape_of(shape), **options), vectorized_axes)


def _eye(
    shape: Any,
    *,
    dtype: Any = "s32",
    names: Any = None,
    vectorized_axes: Any = (),
    **options: Any,
) -> Any:
    sizes = (shape, shape) if isinstance(shape, int) else _shape_of(shape)
    if len(sizes) < 2:
        raise nx.ShapeError(f"an identity matrix has two axes, not {sizes}")
    *batch, rows, columns = sizes
    own = None if names is None else names[-2:]
    made = nx.eye(rows, columns, dtype=dtype, names=own, **options)
    if batch:
        made = nx.broadcast_to(made, sizes, names=names)
    return _spread(made, vectorized_axes)


def _fill(x: Any, value: Any, *, dtype: Any = None) -> Any:
    return nx.full_like(x, value, dtype=dtype or nx.result_type(x, value))


def _shape_of(shape: Any) -> Any:
    """Return a shape; Nx also accepts a tensor with this shape."""
    sizes = shape.shape if isinstance(shape, nx.Tensor | nx.Expr) else shape
    if isinstance(sizes, int):
        raise nx.ShapeError(f"a shape of Nx is a tuple, not {sizes}")
    return tuple(-1 if size == "auto" else size for size in sizes)


def _names_of(shape: Any, names: Any) -> Any:
    if names is None and isinstance(shape, nx.Tensor | nx.Expr):
        return shape.names
    return names


def _reshape(x: Any, shape: Any, *, names: Any = None) -> Any:
    return nx.reshape(x, _shape_of(shape), names=_names_of(shape, names))


def _broadcast(x: Any, shape: Any, *, names: Any = None, **options: Any) -> Any:
    return nx.broadcast_to(x, _shape_of(shape), names=_names_of(shape, names), **options)


def _squeeze(x: Any, *, axes: Any = None) -> Any:
    return nx.squeeze(x, axes)


def _transpose(x: Any, *, axes: Any = None) -> Any:
    return nx.permute_dims(x, axes)


def _new_axis(x: Any, axis: Any, name: Any = None, **options: Any) -> Any:
    return nx.expand_dims(x, axis=axis, name=name, **options)


def _joined(function: str) -> Any:
    """Join the leaves of a container, as Nx does; nxla joins a sequence."""

    def join(arrays: Any, **options: Any) -> Any:
        return getattr(nx, function)(nx.tree.leaves(arrays), **options)

    return join


def _slice(x: Any, starts: Any, lengths: Any, *, strides: Any = None) -> Any:
    if isinstance(strides, int):
        strides = [strides] * len(starts)
    return nx.slice(x, starts, lengths, strides=strides)


def _sorted(function: str) -> Any:
    def call(
        x: Any, *, direction: Any = "asc", axis: Any = 0, stable: Any = False, **options: Any
    ) -> Any:
        # nxla has a boolean option; an atom that Nx rejects is rejected here too.
        descending = {"asc": False, "desc": True}.get(direction, direction)
        sort = getattr(nx, function)
        return sort(x, axis=axis, descending=descending, stable=stable, **options)

    return call


def _take(x: Any, indices: Any, options: Any = (), **more: Any) -> Any:
    return nx.take(x, indices, **{"axis": 0, **dict(options), **more})


def _top_k(x: Any, *, k: Any = 1) -> Any:
    return nx.top_k(x, k)


def _reflect(x: Any, *, padding_config: Any = None) -> Any:
    return nx.pad_outer(x, "reflect", padding_config)


def _to_batched(x: Any, size: Any, **options: Any) -> Any:
    names = [name for name, _ in getattr(x, "vectorized_axes", ())]
    if not names:
        return list(nx.to_batched(x, size, **options))
    # Nx divides the first vectorized axis, where nxla divides the first axis of each entry.
    batches = nx.to_batched(nx.devectorize(x, keep_names=False), size, **options)
    return [nx.vectorize(batch, names) for batch in batches]


CALLS: dict[tuple[str, str], Adapter] = {
    **{("Nx", name): adapt(_typed(name)) for name in DTYPES},
    ("Nx", "tensor"): adapt(_tensor, TYPED),
    ("Nx", "to_tensor"): adapt("asarray"),
    ("Nx", "template"): adapt("template", host=True),
    ("Nx", "to_template"): adapt(_to_template, host=True),
    ("Nx", "iota"): adapt(_iota, TYPED),
    ("Nx", "eye"): adapt(_eye, TYPED),
    ("Nx", "tri"): adapt("tri"),
    ("Nx", "tril"): adapt("tril"),
    ("Nx", "triu"): adapt("triu"),
    ("Nx", "linspace"): adapt(_linspace, TYPED | {"n": "num"}),
    ("Nx", "fill"): adapt(_fill, TYPED),
    ("Nx", "take_diagonal"): adapt("take_diagonal"),
    ("Nx", "make_diagonal"): adapt("make_diagonal"),
    ("Nx", "put_diagonal"): adapt("put_diagonal"),
    ("Nx", "from_binary"): adapt("from_binary", host=True),
    ("Nx", "reshape"): adapt(_reshape),
    ("Nx", "flatten"): adapt("flatten"),
    ("Nx", "new_axis"): adapt(_new_axis),
    ("Nx", "squeeze"): adapt(_squeeze),
    ("Nx", "rename"): adapt("rename"),
    ("Nx", "broadcast"): adapt(_broadcast),
    ("Nx", "tile"): adapt("tile"),
    ("Nx", "transpose"): adapt(_transpose),
    ("Nx", "pad"): adapt("pad"),
    ("Nx", "pad_outer"): adapt("pad_outer"),
    ("Nx", "reflect"): adapt(
        lambda x, *, padding_config: nx.pad_outer(x, "reflect", padding_config)
    ),
    ("Nx", "reverse"): adapt("flip", {"axes": "axis"}),
    ("Nx", "split"): adapt(lambda x, at, *, axis=0: nx.split(x, at=at, axis=axis)),
    ("Nx", "concatenate"): adapt(_joined("concat")),
    ("Nx", "stack"): adapt(_joined("stack")),
    ("Nx", "slice"): adapt(_slice),
    ("Nx", "slice_along_axis"): adapt("slice_along_axis", {"strides": "stride"}),
    ("Nx", "put_slice"): adapt("put_slice"),
    ("Nx", "take"): adapt(_take),
    ("Nx", "take_along_axis"): adapt("take_along_axis", axis=0),
    ("Nx", "gather"): adapt("gather"),
    ("Nx", "indexed_add"): adapt("indexed_add"),
    ("Nx", "indexed_put"): adapt("indexed_put"),
    ("Nx", "sort"): adapt(_sorted("sort")),
    ("Nx", "argsort"): adapt(_sorted("argsort"), TYPED),
    ("Nx", "top_k"): adapt(_top_k),
    ("Nx", "diff"): adapt("diff", {"order": "n"}),
    ("Nx", "to_batched"): adapt(_to_batched, host=True),
}
