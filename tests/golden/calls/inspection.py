"""Functions that inspect tensors and dtypes: metadata, types, constants, bytes."""

from __future__ import annotations

from typing import Any

import nxla as nx
from golden.calls.adapter import Adapter, adapt
from golden.calls.elementwise import as_node

SHORT = {"f8_e5m2": "f8"}


def _zeros(dtype: Any) -> nx.Tensor:
    return nx.zeros((), dtype=dtype)


def _merge_number(dtype: Any, number: Any) -> Any:
    return nx.result_type(dtype, number)


def _infinite(dtype: Any) -> bool:
    return dtype != "f8_e4m3fn" and nx.DType(dtype).kind in ("float", "complex")


def _normalize(dtype: Any) -> Any:
    return nx.DType(f"{dtype[0]}{dtype[1]}" if isinstance(dtype, tuple) else dtype)


def _names(x: Any) -> Any:
    return list(nx.tensor(x).names) if isinstance(x, int | float) else list(x.names)


def _size(x: Any) -> int:
    if not isinstance(x, tuple):
        return nx.tensor(x).size
    total = 1
    for size in x:
        total *= size
    return total


def _to_flat_list(x: Any, *, limit: Any = None) -> list[Any]:
    return nx.flatten(nx.devectorize(x)).tolist()[:limit]


def _to_binary(x: Any, *, limit: Any = None) -> bytes:
    return nx.to_binary(x) if limit is None else nx.to_binary(nx.flatten(x)[:limit])


def _copied(container: Any, backend: Any = None) -> Any:
    # In Nx a backend is a module; nxla has no counterpart.
    del backend
    return nx.tree.map(lambda x: nx.asarray(x).to_host(), container)


def _serialize(container: Any, *, compressed: Any = None) -> bytes:
    # The compression does not change the contents.
    del compressed
    return nx.serialize(container)


def _bits(x: Any) -> int:
    x = nx.devectorize(nx.asarray(x))
    return x.size * x.dtype.bits


def _load(dtype: str) -> Any:
    return lambda data: nx.from_binary(data, dtype).tolist()[0]


def _dump(dtype: str) -> Any:
    return lambda number: nx.to_binary(nx.tensor(number, dtype))


def _of_type(name: str) -> Any:
    def call(dtype: Any = None) -> Any:
        function = getattr(nx.constants, name)
        return function() if dtype is None else function(dtype)

    return call


CONSTANTS = [
    *("nan", "infinity", "neg_infinity", "max", "max_finite", "min", "min_finite", "i", "pi", "e"),
    *("smallest_positive_normal", "epsilon", "euler_gamma"),
]

CALLS: dict[tuple[str, str], Adapter] = {
    ("Nx", "type"): adapt(lambda x: nx.tensor(x).dtype, host=True),
    ("Nx", "shape"): adapt(
        lambda x: (nx.zeros(x) if isinstance(x, tuple) else nx.asarray(x)).shape, host=True
    ),
    ("Nx", "rank"): adapt(
        lambda x: len(x) if isinstance(x, tuple) else nx.tensor(x).ndim, host=True
    ),
    ("Nx", "names"): adapt(_names, host=True),
    ("Nx", "axes"): adapt(
        lambda x: list(range(len(x) if isinstance(x, tuple) else nx.tensor(x).ndim)), host=True
    ),
    ("Nx", "size"): adapt(_size, host=True),
    ("Nx", "flat_size"): adapt(lambda x: nx.devectorize(nx.asarray(x)).size, host=True),
    ("Nx", "axis_size"): adapt("axis_size", host=True),
    ("Nx", "axis_index"): adapt("axis_index", host=True),
    ("Nx", "byte_size"): adapt(lambda x: _bits(x) // 8, host=True),
    ("Nx", "bit_size"): adapt(_bits, host=True),
    ("Nx", "compatible?"): adapt("compatible", host=True),
    ("Nx", "to_number"): adapt(lambda x: nx.asarray(x).item(), host=True),
    ("Nx", "to_list"): adapt(lambda x: x.tolist(), host=True),
    ("Nx", "to_flat_list"): adapt(_to_flat_list, host=True),
    ("Nx", "to_binary"): adapt(_to_binary, host=True),
    ("Nx", "to_heatmap"): adapt("to_heatmap", host=True),
    ("Nx", "serialize"): adapt(_serialize, host=True),
    ("Nx", "deserialize"): adapt("deserialize", host=True),
    ("Nx", "backend_transfer"): adapt(_copied, host=True),
    ("Nx", "backend_copy"): adapt(_copied, host=True),
    ("Nx.Defn.Composite", "flatten_list"): adapt("tree.leaves", host=True),
    ("Nx.Defn.Composite", "traverse"): adapt(lambda x, f: nx.tree.map(f, x), host=True),
    ("Nx.Testing", "assert_all_close"): adapt("testing.assert_all_close", host=True),
    ("Nx.Testing", "assert_equal"): adapt("testing.assert_equal", host=True),
    ("Nx", "load_numpy!"): adapt("load_numpy", host=True),
    ("Nx", "load_numpy_archive!"): adapt(
        lambda data: list(nx.load_numpy_archive(data).items()), host=True
    ),
    ("Nx.Type", "merge"): adapt(nx.result_type, host=True),
    ("Nx.Type", "merge_number"): adapt(_merge_number, host=True),
    ("Nx.Type", "to_floating"): adapt(lambda t: nx.sqrt(_zeros(t)).dtype, host=True),
    ("Nx.Type", "to_complex"): adapt(lambda t: as_node("conj")(_zeros(t)).dtype, host=True),
    ("Nx.Type", "to_real"): adapt(lambda t: as_node("real")(_zeros(t)).dtype, host=True),
    ("Nx.Type", "to_aggregate"): adapt(lambda t: nx.sum(_zeros(t)).dtype, host=True),
    ("Nx.Type", "float?"): adapt(lambda t: nx.DType(t).kind in ("float", "complex"), host=True),
    ("Nx.Type", "integer?"): adapt(lambda t: nx.DType(t).kind in ("signed", "unsigned"), host=True),
    ("Nx.Type", "complex?"): adapt(lambda t: nx.DType(t).kind == "complex", host=True),
    ("Nx.Type", "infinite_float?"): adapt(_infinite, host=True),
    ("Nx.Type", "to_string"): adapt(lambda t: SHORT.get(t, str(nx.DType(t))), host=True),
    ("Nx.Type", "infer"): adapt(lambda x: nx.tensor(x).dtype, host=True),
    ("Nx.Type", "normalize!"): adapt(_normalize, host=True),
    **{("Nx.Constants", name): adapt(_of_type(name), host=True) for name in CONSTANTS},
    **{
        ("Nx.Floating", f"load_{name}"): adapt(_load(dtype), host=True)
        for name, dtype in (("bf16", "bf16"), ("f8", "f8_e5m2"), ("f8_e4m3fn", "f8_e4m3fn"))
    },
    **{
        ("Nx.Floating", f"dump_{name}"): adapt(_dump(dtype), host=True)
        for name, dtype in (("bf16", "bf16"), ("f8", "f8_e5m2"), ("f8_e4m3fn", "f8_e4m3fn"))
    },
}
