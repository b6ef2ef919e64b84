"""Rules about shapes that Nx has as functions of their own: ours show in the shapes of results."""

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
    """Find the padding on each side: the window sums of ones at the ends tell it."""
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


CALLS: dict[tuple[str, str], Adapter] = {
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
