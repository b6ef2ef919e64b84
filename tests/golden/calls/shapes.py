"""Shape functions of Nx; nxla computes the shapes of results instead."""

from __future__ import annotations

from typing import Any

import nxla as nx
from golden.calls.adapter import Adapter, adapt


def _zeros(shape: Any, names: Any = None) -> nx.Tensor:
    return nx.zeros(tuple(shape), dtype="u8", names=names)


def _described(x: nx.Tensor) -> tuple[Any, ...]:
    return (tuple(x.shape), tuple(x.names))


def _numbered(shape: Any) -> nx.Tensor:
    """Name each axis by its position."""
    return _zeros(shape, [str(axis) for axis in range(len(shape))])


def _kept(shape: Any) -> list[str | None]:
    return nx.squeeze(_numbered(shape)).names


def _padding(shape: Any, window: Any, rule: Any) -> Any:
    """Return the padding on each side, from window sums of ones at the ends."""
    low, high = [], []
    for axis, size in enumerate(shape):
        line = nx.window_sum(nx.ones((size,), dtype="s32"), (window[axis],), padding=rule).tolist()
        low.append(window[axis] - line[0])
        high.append(len(line) + window[axis] - 1 - size - low[-1])
    return [list(pair) for pair in zip(low, high, strict=True)]


def _broadcast(shape: Any, target: Any, axes: Any) -> str:
    nx.broadcast_to(_zeros(shape), target, axes=axes)
    return "ok"


def _binary(shape1: Any, names1: Any, shape2: Any, names2: Any) -> Any:
    return _described(nx.add(_zeros(shape1, names1), _zeros(shape2, names2)))


def _contract(shape: Any, axes: Any, names: Any, keep: Any) -> Any:
    return _described(nx.sum(_zeros(shape, names), axis=axes, keepdims=keep))


def _concatenate(shapes: Any, names: Any, axis: Any, offset: Any) -> Any:
    assert offset == 0
    parts = [_zeros(shape, given) for shape, given in zip(shapes, names, strict=True)]
    return (*_described(nx.concat(parts, axis=axis)), axis)


def _pool(shape: Any, window: Any, strides: Any, padding: Any, dilations: Any) -> Any:
    result = nx.window_sum(
        _zeros(shape), window, strides=strides, padding=padding, dilations=dilations
    )
    return (tuple(result.shape), padding)


def _slice(shape: Any, starts: Any, lengths: Any, strides: Any) -> Any:
    return (starts, list(nx.slice(_zeros(shape), starts, lengths, strides=strides).shape))


def _dot(*args: Any) -> Any:
    shape1, axes1, names1, batch1, shape2, axes2, names2, batch2 = args
    return _described(
        nx.dot(
            _zeros(shape1, names1),
            _zeros(shape2, names2),
            x1_contract=axes1,
            x1_batch=batch1,
            x2_contract=axes2,
            x2_batch=batch2,
        )
    )


def _transpose(shape: Any, axes: Any, names: Any) -> Any:
    return _described(nx.permute_dims(_zeros(shape, names), axes))


def _take(shape: Any, names: Any, indices: Any, index_names: Any, axis: Any) -> Any:
    return _described(nx.take(_zeros(shape, names), _zeros(indices, index_names), axis=axis))


def _stack(shapes: Any, names: Any, axis: Any, name: Any = None, offset: Any = 0) -> Any:
    del offset
    parts = [_zeros(shape, given) for shape, given in zip(shapes, names, strict=True)]
    return _described(nx.stack(parts, axis=axis, name=name))


CALLS: dict[tuple[str, str], Adapter] = {
    ("Nx.Shape", "dot"): adapt(_dot, host=True),
    ("Nx.Shape", "transpose"): adapt(_transpose, host=True),
    ("Nx.Shape", "take"): adapt(_take, host=True),
    ("Nx.Shape", "stack"): adapt(_stack, host=True),
    ("Nx.Shape", "take_along_axis"): adapt(
        lambda shape, indices, axis: (
            nx.take_along_axis(_zeros(shape), _zeros(indices), axis=axis).shape
        ),
        host=True,
    ),
    ("Nx.Shape", "gather"): adapt(
        lambda shape, indices, axes: nx.gather(_zeros(shape), _zeros(indices), axes=axes).shape,
        host=True,
    ),
    ("Nx.Shape", "flatten"): adapt(
        lambda shape, names, axes: _described(nx.flatten(_zeros(shape, names), axes=axes)),
        host=True,
    ),
    ("Nx.Shape", "broadcast_axes"): adapt(
        lambda shape, target: list(range(len(target) - len(shape), len(target))), host=True
    ),
    ("Nx.Shape", "normalize_axis"): adapt(
        lambda shape, axis, names, offset=0: nx.axis_index(_zeros(shape, names), axis) + offset,
        host=True,
    ),
    ("Nx.Shape", "broadcast!"): adapt(_broadcast, host=True),
    ("Nx.Shape", "binary_broadcast"): adapt(_binary, host=True),
    ("Nx.Shape", "contract"): adapt(_contract, host=True),
    ("Nx.Shape", "reshape"): adapt(
        lambda shape, target: nx.reshape(_zeros(shape), target).shape, host=True
    ),
    ("Nx.Shape", "pad"): adapt(
        lambda shape, config: nx.pad(_zeros(shape), 0, config).shape, host=True
    ),
    ("Nx.Shape", "dilate"): adapt(
        lambda shape, by: nx.pad(_zeros(shape), 0, [(0, 0, n - 1) for n in by]).shape, host=True
    ),
    ("Nx.Shape", "squeeze"): adapt(
        lambda shape, axes, names: _described(nx.squeeze(_zeros(shape, names), axes)), host=True
    ),
    ("Nx.Shape", "concatenate"): adapt(_concatenate, host=True),
    ("Nx.Shape", "normalize_axes"): adapt(
        lambda shape, axes, names: [nx.axis_index(_zeros(shape, names), a) for a in axes],
        host=True,
    ),
    ("Nx.Shape", "tile"): adapt(
        lambda shape, repetitions: nx.tile(_zeros(shape), repetitions).shape, host=True
    ),
    ("Nx.Shape", "merge_names!"): adapt(
        lambda left, right: list(_binary([1] * len(left), left, [1] * len(right), right)[1]),
        host=True,
    ),
    ("Nx.Shape", "find_name!"): adapt(
        lambda names, name: nx.axis_index(_zeros([1] * len(names), names), name), host=True
    ),
    ("Nx.Shape", "named_axes!"): adapt(
        lambda names, shape: list(_zeros(shape, names).names), host=True
    ),
    ("Nx.Shape", "to_string"): adapt(
        lambda shape, names: str(_zeros(shape, names)).split("\n")[1].strip().removeprefix("u8"),
        host=True,
    ),
    ("Nx.Shape", "to_padding_config"): adapt(_padding, host=True),
    ("Nx.Shape", "pool"): adapt(_pool, host=True),
    ("Nx.Shape", "slice"): adapt(_slice, host=True),
    ("Nx.Shape", "squeeze_axes"): adapt(
        lambda shape: [i for i, _ in enumerate(shape) if str(i) not in _kept(shape)], host=True
    ),
    ("Nx.Shape", "transpose_axes"): adapt(lambda shape: list(range(len(shape)))[::-1], host=True),
}
