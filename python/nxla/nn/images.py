"""Transposed convolutions and resampling of images."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from nxla import _core, _hints
from nxla._values import (
    as_bool,
    as_count,
    as_number,
    as_pairs,
    as_tensor,
    call_as,
    index_list,
    to_index,
)
from nxla.errors import ArgumentError, ShapeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal

    from nxla._core import Tensor
    from nxla._types import Padding, PerAxis, TensorLike

    Method = Literal["nearest", "linear", "cubic"]

__all__ = ["conv_transpose", "interpolate", "resize"]


def _per_axis(op: str, name: str, value: PerAxis, count: int) -> list[int]:
    index = to_index(value)
    values = index_list(op, name, value, names=False) if index is None else [index] * count
    if len(values) != count:
        raise ArgumentError(f"{op}: {name}: must have {count} entries; got {len(values)}")
    return values


def conv_transpose(
    x: TensorLike,
    kernel: TensorLike,
    /,
    *,
    strides: PerAxis = 1,
    padding: Padding = "valid",
    output_padding: PerAxis = 0,
    kernel_dilation: PerAxis = 1,
    feature_groups: int = 1,
) -> Tensor:
    """Return the transposed convolution, the gradient of `nxla.conv` with respect to its operand.

    Parameters
    ----------
    x : tensor_like
        The operand, of shape ``(batch, channels, *sizes)``.
    kernel : tensor_like
        The kernel of the convolution that is transposed, of shape ``(channels, output channels //
        groups, *window)``. It is the weight of PyTorch's ``conv_transpose``.
    strides : int or sequence of int
        The factor by which each size grows.
    padding : {"valid", "same"} or sequence of (int, int)
        The number of elements that are removed from the result. ``"valid"`` removes none.
        ``"same"`` removes ``max(dilation * (window - 1) + 1 - stride, 0)`` in total, so that each
        size is multiplied by its stride, as in JAX. Pairs remove elements before and after each
        axis. With strides above 1, the padding ``"same"`` of `nxla.conv` is larger: pass pairs for
        its gradient.
    output_padding : int or sequence of int
        The number of elements that are added at the end of each axis; not with ``"same"``.
    kernel_dilation : int or sequence of int
        The distance between the elements of the kernel.
    feature_groups : int
        The number of groups of channels that are convolved on their own.

    Returns
    -------
    Tensor
        Sizes are ``(size - 1) * stride + dilation * (window - 1) + 1 - padding + output_padding``.

    Raises
    ------
    ShapeError
        If the ranks or the channels do not match.
    ArgumentError
        If an argument has another number of entries, or ``output_padding`` is passed with
        ``"same"``.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nn.conv_transpose([[[1.0, 2.0]]], [[[1.0, 1.0, 1.0]]], strides=2).tolist()
    [[[1.0, 1.0, 3.0, 2.0, 2.0]]]
    """
    x, kernel = as_tensor(x), as_tensor(kernel)
    op, count = "conv_transpose", x.ndim - 2
    feature_groups = as_count(op, "feature_groups", feature_groups, 1)
    if count < 1 or kernel.ndim != x.ndim:
        raise ShapeError(
            f"{op}: kernel: must have the {x.ndim} axes of x, at least 3; got shape {kernel.shape}"
        )
    if kernel.shape[0] != x.shape[1] or x.shape[1] % feature_groups:
        raise ShapeError(
            f"{op}: kernel: must have {x.shape[1]} input channels first, a multiple of "
            f"{feature_groups} groups; got shape {kernel.shape}"
        )
    steps = _per_axis(op, "strides", strides, count)
    added = _per_axis(op, "output_padding", output_padding, count)
    gaps = _per_axis(op, "kernel_dilation", kernel_dilation, count)
    reach = [gap * (size - 1) for gap, size in zip(gaps, kernel.shape[2:], strict=True)]
    if padding == "same" and any(added):
        raise ArgumentError(
            f'{op}: output_padding: must be 0 with padding="same"; got {output_padding}'
        )
    removed = _cropping(op, padding, steps, reach, added)
    around = [
        (far - low, far - high + more)
        for far, (low, high, more) in zip(reach, removed, strict=True)
    ]
    return call_as(
        op,
        _core.conv,
        x,
        _reverse_kernel(kernel, feature_groups),
        padding=around,
        input_dilation=steps,
        kernel_dilation=gaps,
        feature_groups=feature_groups,
    )


def _cropping(
    op: str, padding: Padding, steps: list[int], reach: list[int], added: list[int]
) -> list[tuple[int, int, int]]:
    """Return the elements that are removed at both ends and added at the end of each axis."""
    if padding == "valid":
        return [(0, 0, more) for more in added]
    if padding == "same":
        totals = [max(far + 1 - step, 0) for step, far in zip(steps, reach, strict=True)]
        return [
            (total // 2, total - total // 2, step - far - 1 + total)
            for step, far, total in zip(steps, reach, totals, strict=True)
        ]
    if isinstance(padding, str):
        raise ArgumentError(f'{op}: padding: must be "valid", "same" or pairs; got {padding!r}')
    pairs = as_pairs(op, "padding", padding, "(low, high)")
    if len(pairs) != len(steps):
        raise ArgumentError(f"{op}: padding: must have {len(steps)} pairs; got {len(pairs)}")
    return [(low, high, more) for (low, high), more in zip(pairs, added, strict=True)]


def _reverse_kernel(kernel: Tensor, groups: int) -> Tensor:
    """Return the kernel with the channels exchanged, within groups, and the window reversed."""
    channels, outputs, *window = kernel.shape
    split = _core.reshape(kernel, (groups, channels // groups, outputs, *window))
    swapped = _core.swapaxes(split, 1, 2)
    whole = _core.reshape(swapped, (groups * outputs, channels // groups, *window))
    return _core.flip(whole, list(range(2, whole.ndim)))


def _cubic(sharpness: float) -> Callable[[float], float]:
    """Return R. Keys' kernel ("Cubic convolution interpolation", 1981)."""

    def kernel(t: float) -> float:
        t = abs(t)
        if t < 1.0:
            return ((sharpness + 2.0) * t - (sharpness + 3.0)) * t * t + 1.0
        if t < 2.0:
            return sharpness * (((t - 5.0) * t + 8.0) * t - 4.0)
        return 0.0

    return kernel


def _triangle(t: float) -> float:
    return max(0.0, 1.0 - abs(t))


#: The kernel of each method, and its radius.
_KERNELS = {"linear": (_triangle, 1), "cubic": (_cubic(-0.5), 2), "sharp": (_cubic(-0.75), 2)}


def _positions(size: int, target: int, *, align_corners: bool, factor: float | None) -> list[float]:
    """Return the position in the operand of each element of the result."""
    if align_corners:
        step = (size - 1) / (target - 1) if target > 1 else 0.0
        return [i * step for i in range(target)]
    step = size / target if factor is None else 1.0 / factor
    return [(i + 0.5) * step - 0.5 for i in range(target)]


def _resample(
    x: Tensor,
    axis: int,
    kernel: Callable[[float], float],
    radius: int,
    places: list[float],
    *,
    widen: float,
    clamp: bool,
) -> Tensor:
    """Return weighted sums of neighbors along an axis.

    With `clamp`, neighbors outside of the image equal the edge; otherwise they have the weight 0.
    """
    size, wide = x.shape[axis], radius * widen
    taps = 2 * math.ceil(wide) + (widen > 1.0)
    firsts = [
        math.floor(place - wide) + 1 if widen == 1.0 else math.ceil(place - wide)
        for place in places
    ]
    rows = []
    for place, first in zip(places, firsts, strict=True):
        weights = [kernel((place - (first + tap)) / widen) for tap in range(taps)]
        if not clamp:
            weights = [w if 0 <= first + tap < size else 0.0 for tap, w in enumerate(weights)]
        if not clamp or widen > 1.0:
            total = sum(weights) or 1.0
            weights = [w / total for w in weights]
        rows.append(weights)
    columns = [tap for tap in range(taps) if any(row[tap] for row in rows)]
    if not columns:
        return _core.multiply(x, 0.0)
    scales = [_core.tensor([row[tap] for row in rows], x.dtype) for tap in columns]
    indices = [
        _core.tensor([min(max(first + tap, 0), size - 1) for first in firsts], "s32")
        for tap in columns
    ]
    if widen == 1.0:
        # A sum of a few neighbors reads each element of the image once.
        shape = [-1 if i == axis else 1 for i in range(x.ndim)]
        parts = [
            _core.take(x, index, axis) * _core.reshape(scale, shape)
            for index, scale in zip(indices, scales, strict=True)
        ]
        return functools.reduce(_core.add, parts)
    # The derivative of a sum would scatter once for each neighbor.
    shape = [1] * axis + [len(places), len(columns)] + [1] * (x.ndim - axis - 1)
    neighbors = _core.take(x, _core.stack(indices, 1), axis)
    return _core.sum(neighbors * _core.reshape(_core.stack(scales, 1), shape), axis=axis + 1)


def _widen(x: Tensor) -> Tensor:
    """Return the operand in the dtype of the computation: at least `float32`."""
    if x.dtype.kind == "complex" or (x.dtype.kind == "float" and x.dtype.bits >= 32):
        return x
    return _core.astype(x, _core.f32)


def _round_to(result: Tensor, x: Tensor) -> Tensor:
    return _core.astype(result, x.dtype) if x.dtype.kind == "float" else result


def resize(
    x: TensorLike,
    shape: Sequence[int],
    /,
    method: Method = "linear",
    *,
    antialias: bool = True,
) -> Tensor:
    """Resample a tensor to another shape, as ``jax.image.resize``.

    Parameters
    ----------
    x : tensor_like
        Numbers; integers count as ``float32``, except for ``"nearest"``.
    shape : sequence of int
        The size of each axis.
    method : {"nearest", "linear", "cubic"}
        The interpolation. Elements are areas, so that their centers are at halves. The cubic kernel
        is that of Keys with -0.5.
    antialias : bool
        If True, the kernel is as wide as an element of the result where an axis shrinks.

    Returns
    -------
    Tensor
        A tensor of the new shape, in the dtype of `x`; the interpolation of integers is a
        ``float32``.

    Raises
    ------
    ShapeError
        If the number of axes differs, or a size is not positive.
    ArgumentError
        If the method is unknown.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nn.resize([0.0, 1.0], (4,)).tolist()
    [0.0, 0.25, 0.75, 1.0]
    """
    antialias = as_bool("resize", "antialias", antialias)
    x, target = as_tensor(x), index_list("resize", "shape", shape, names=False)
    if len(target) != x.ndim or any(size < 1 for size in (*target, *x.shape)):
        raise ShapeError(
            f"resize: shape: must have {x.ndim} positive sizes for {x.shape}; got {tuple(target)}"
        )
    if method not in ("nearest", "linear", "cubic"):
        raise ArgumentError(
            f'resize: method: must be "nearest", "linear" or "cubic"; got {method!r}'
        )
    result = x if method == "nearest" else _widen(x)
    for axis, (size, new) in enumerate(zip(x.shape, target, strict=True)):
        if size == new:
            continue
        places = _positions(size, new, align_corners=False, factor=None)
        if method == "nearest":
            result = _take_nearest(result, axis, places)
            continue
        kernel, radius = _KERNELS[method]
        widen = max(size / new, 1.0) if antialias else 1.0
        result = _resample(result, axis, kernel, radius, places, widen=widen, clamp=False)
    return result if method == "nearest" else _round_to(result, x)


def _take_nearest(x: Tensor, axis: int, places: list[float]) -> Tensor:
    """Return the elements whose area contains the positions."""
    size = x.shape[axis]
    index = [min(max(math.floor(place + 0.5), 0), size - 1) for place in places]
    return _core.take(x, _core.tensor(index, "s32"), axis)


def _scales(op: str, scale_factor: float | Sequence[float], count: int) -> list[float]:
    """Return the factor of each of `count` axes."""
    given = scale_factor if isinstance(scale_factor, Sequence) else [scale_factor] * count
    scales = [as_number(op, "scale_factor", each) for each in given]
    if not all(map(math.isfinite, scales)):
        raise ArgumentError(f"{op}: scale_factor: must be finite; got {scale_factor!r}")
    if len(scales) != count:
        raise ArgumentError(f"{op}: scale_factor: must have {count} entries; got {len(scales)}")
    return [float(scale) for scale in scales]


def interpolate(
    x: TensorLike,
    /,
    size: PerAxis | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: Literal[
        "nearest", "nearest-exact", "linear", "bilinear", "trilinear", "bicubic"
    ] = "nearest",
    *,
    align_corners: bool = False,
    antialias: bool = False,
) -> Tensor:
    """Resample the spatial axes of images, as ``torch.nn.functional.interpolate``.

    Parameters
    ----------
    x : tensor_like
        Images of shape ``(batch, channels, *sizes)``; integers count as ``float32``, except for the
        nearest neighbor.
    size : int or sequence of int, optional
        The new sizes.
    scale_factor : float or sequence of float, optional
        The factors of the sizes, instead of `size`. Positions are computed from the factors.
    mode : str
        ``"nearest"`` (the element at the rounded-down position), ``"nearest-exact"`` (the element
        at the center), ``"linear"``, ``"bilinear"`` or ``"trilinear"`` by the number of axes, or
        ``"bicubic"`` (Keys' kernel with -0.75, and with -0.5 if `antialias` is True).
    align_corners : bool
        If True, the first and the last elements of operand and result are at the same positions;
        not for the nearest neighbor.
    antialias : bool
        If True, the kernel is as wide as an element of the result where an axis shrinks; not for
        the nearest neighbor, and not with `align_corners`.

    Returns
    -------
    Tensor
        Images of shape ``(batch, channels, *new_sizes)``, in the dtype of `x`; the interpolation of
        integers is a ``float32``. With `scale_factor`, a new size is rounded down.

    Raises
    ------
    ArgumentError
        If the mode is unknown or has another number of axes, an option does not apply, or not
        exactly one of `size` and `scale_factor` is passed.
    ShapeError
        If the tensor has no spatial axis, or a size is not positive.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nn.interpolate([[[0.0, 1.0]]], scale_factor=2, mode="linear", align_corners=True)[0, 0]
    #nxla.Tensor<
      f32[4]
      [0.0, 0.33333334, 0.6666667, 1.0]
    >
    """
    x = as_tensor(x)
    op, count = "interpolate", x.ndim - 2
    axes = {"linear": 1, "bilinear": 2, "trilinear": 3, "bicubic": 2}
    if mode not in ("nearest", "nearest-exact") and axes.get(mode) != count:
        raise ArgumentError(
            f"{op}: mode: must be a method for {count} spatial axes, such as "
            f"{['nearest', *(name for name, n in axes.items() if n == count)]}; got {mode!r}"
        )
    for name, value in (("align_corners", align_corners), ("antialias", antialias)):
        if as_bool(op, name, value) and mode.startswith("nearest"):
            raise ArgumentError(f"{op}: {name}: must be False for mode {mode!r}; got {value}")
    if align_corners and antialias:
        raise ArgumentError(f"{op}: antialias: must be False with align_corners; got {antialias}")
    if (size is None) == (scale_factor is None):
        raise ArgumentError(f"{op}: size, scale_factor: exactly one must be passed")
    factors: list[float | None] = [None] * count
    if scale_factor is not None:
        scales = _scales(op, scale_factor, count)
        factors = [*scales]
        target = [math.floor(old * scale) for old, scale in zip(x.shape[2:], scales, strict=True)]
    else:
        assert size is not None
        target = _per_axis(op, "size", size, count)
    if count < 1 or any(new < 1 for new in (*target, *x.shape[2:])):
        raise ShapeError(
            f"{op}: x: must have spatial axes with positive sizes; got {x.shape} to {target}"
        )
    result = x if mode.startswith("nearest") else _widen(x)
    for axis, (new, factor) in enumerate(zip(target, factors, strict=True), 2):
        old = x.shape[axis]
        if mode == "nearest":
            starts = [i * old // new if factor is None else int(i / factor) for i in range(new)]
            result = _take_nearest(result, axis, [float(start) for start in starts])
            continue
        places = _positions(old, new, align_corners=align_corners, factor=factor)
        if mode == "nearest-exact":
            result = _take_nearest(result, axis, places)
            continue
        cubic = "cubic" if antialias else "sharp"
        kernel, radius = _KERNELS[cubic if mode == "bicubic" else "linear"]
        shrink = old / new if factor is None else 1.0 / factor
        widen = max(shrink, 1.0) if antialias else 1.0
        result = _resample(result, axis, kernel, radius, places, widen=widen, clamp=not antialias)
    return result if mode.startswith("nearest") else _round_to(result, x)


_hints.install(globals())
