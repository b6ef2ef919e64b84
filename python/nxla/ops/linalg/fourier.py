"""Fourier transforms."""

from __future__ import annotations

import math

from nxla import _core
from nxla._values import as_tensor
from nxla.errors import ArgumentError
from nxla.ops.movement import roll

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from nxla._core import Tensor
    from nxla._types import Axes, Axis, DTypeLike, TensorLike

    Norm = Literal["backward", "ortho", "forward"]


def fft(
    x: TensorLike, /, *, n: int | None = None, axis: Axis = -1, norm: Norm = "backward"
) -> Tensor:
    """Return the discrete Fourier transform along an axis.

    Parameters
    ----------
    x : tensor_like
        Numbers of any dtype.
    n : int, optional
        How many elements to transform; the axis is cut, or filled with zeros. All by default.
    axis : int or str
        The axis.
    norm : {"backward", "ortho", "forward"}
        Which direction divides by the number of elements: the inverse, both by its root, or this
        one.

    Returns
    -------
    Tensor
        Complex numbers.

    Raises
    ------
    ShapeError
        If there is no such axis.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.fft.fft([1.0, 2.0, 3.0, 4.0]).tolist()
    [(10+0j), (-2+2j), (-2+0j), (-2-2j)]
    """
    return _scaled(_core.fft(x, _points(n), axis), axis, norm, inverse=False)


def ifft(
    x: TensorLike, /, *, n: int | None = None, axis: Axis = -1, norm: Norm = "backward"
) -> Tensor:
    """Return the inverse discrete Fourier transform. Parameters and errors are those of `fft`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.fft.ifft([6.0, -2.0 + 2.0j, -2.0, -2.0 - 2.0j]).tolist()
    [0j, (1+0j), (2+0j), (3+0j)]
    """
    return _scaled(_core.ifft(x, _points(n), axis), axis, norm, inverse=True)


def rfft(
    x: TensorLike, /, *, n: int | None = None, axis: Axis = -1, norm: Norm = "backward"
) -> Tensor:
    """Return the half of the Fourier transform of real numbers that determines the other.

    Parameters are those of `fft`.

    Returns
    -------
    Tensor
        Complex numbers, ``n // 2 + 1`` along the axis.

    Raises
    ------
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.fft.rfft([1.0, 0.0, 0.0, 0.0]).tolist()
    [(1+0j), (1+0j), (1+0j)]
    """
    if norm == "backward":
        return _core.rfft(x, _points(n), axis)
    x = as_tensor(x)
    count = n if n is not None else _size(x, axis)
    return _core.multiply(_core.rfft(x, _points(n), axis), _factor(count, norm, inverse=False))


def irfft(
    x: TensorLike, /, *, n: int | None = None, axis: Axis = -1, norm: Norm = "backward"
) -> Tensor:
    """Return the inverse of `rfft`.

    Parameters are those of `fft`; `n` is the number of elements of the result, by default
    ``2 * (m - 1)`` for ``m`` elements of `x`.

    Returns
    -------
    Tensor
        Floats.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.fft.irfft([1.0, 1.0, 1.0]).tolist()
    [1.0, 0.0, 0.0, 0.0]
    """
    return _scaled(_core.irfft(x, _points(n), axis), axis, norm, inverse=True)


def fftn(
    x: TensorLike,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Axes | None = None,
    norm: Norm = "backward",
) -> Tensor:
    """Return the discrete Fourier transform along several axes.

    Parameters
    ----------
    x : tensor_like
        Numbers of any dtype.
    s : sequence of int, optional
        How many elements to transform along each axis, which is cut, or filled with zeros.
    axes : int or str, or a sequence, optional
        The axes; by default as many of the last as `s` has entries, or all.
    norm : {"backward", "ortho", "forward"}
        As for `fft`.

    Returns
    -------
    Tensor
        Complex numbers.

    Raises
    ------
    ShapeError
        If there are no such axes.
    ArgumentError
        If `s` has not one entry for each axis.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.fft.fftn([[1.0, 0.0], [0.0, 0.0]]).tolist()
    [[(1+0j), (1+0j)], [(1+0j), (1+0j)]]
    """
    return _scaled_all(_core.fftn(x, _points_of_each(s), axes), s, axes, norm, inverse=False)


def ifftn(
    x: TensorLike,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Axes | None = None,
    norm: Norm = "backward",
) -> Tensor:
    """Return the inverse of `fftn`, with its parameters.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.fft.ifftn([[4.0, 0.0], [0.0, 0.0]]).tolist()
    [[(1+0j), (1+0j)], [(1+0j), (1+0j)]]
    """
    return _scaled_all(_core.ifftn(x, _points_of_each(s), axes), s, axes, norm, inverse=True)


def rfftn(
    x: TensorLike,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Axes | None = None,
    norm: Norm = "backward",
) -> Tensor:
    """Return the half of the transform of real numbers that determines the other.

    The last axis is transformed by `rfft`, the others by `fft`. Parameters are those of `fftn`.

    Raises
    ------
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.fft.rfftn([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]).shape
    (2, 2)
    """
    if norm == "backward":
        return _core.rfftn(x, _points_of_each(s), axes)
    x = as_tensor(x)
    whole = math.prod(_lengths(x, s, axes))
    return _core.multiply(
        _core.rfftn(x, _points_of_each(s), axes), _factor(whole, norm, inverse=False)
    )


def irfftn(
    x: TensorLike,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Axes | None = None,
    norm: Norm = "backward",
) -> Tensor:
    """Return the inverse of `rfftn`, with its parameters.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.fft.irfftn(nx.ones((2, 2))).tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    return _scaled_all(_core.irfftn(x, _points_of_each(s), axes), s, axes, norm, inverse=True)


def hfft(
    x: TensorLike, /, *, n: int | None = None, axis: Axis = -1, norm: Norm = "backward"
) -> Tensor:
    """Return the transform, which is real, of a signal whose other half is the conjugate.

    Parameters are those of `fft`; `n` is the number of elements of the result, by default
    ``2 * (m - 1)`` for ``m`` elements of `x`.

    Returns
    -------
    Tensor
        Floats.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.fft.hfft([1.0, 0.0, 0.0]).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    inverse = _opposite(norm)
    return irfft(_core.conjugate(x), n=n, axis=axis, norm=inverse)


def ihfft(
    x: TensorLike, /, *, n: int | None = None, axis: Axis = -1, norm: Norm = "backward"
) -> Tensor:
    """Return the inverse of `hfft`. Parameters are those of `fft`.

    Raises
    ------
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.fft.ihfft([1.0, 1.0, 1.0, 1.0]).tolist()
    [(1-0j), -0j, -0j]
    """
    inverse = _opposite(norm)
    return _core.conjugate(rfft(x, n=n, axis=axis, norm=inverse))


def fft2(
    x: TensorLike,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: tuple[Axis, Axis] = (-2, -1),
    norm: Norm = "backward",
) -> Tensor:
    """Return the discrete Fourier transform along two axes.

    Parameters
    ----------
    x : tensor_like
        Numbers, with at least two axes.
    s : (int, int), optional
        How many elements to transform along each.
    axes : (int or str, int or str)
        The axes.
    norm : {"backward", "ortho", "forward"}
        As for `fft`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.fft.fft2([[1.0, 0.0], [0.0, 0.0]]).tolist()
    [[(1+0j), (1+0j)], [(1+0j), (1+0j)]]
    """
    return fftn(x, s=s, axes=axes, norm=norm)


def ifft2(
    x: TensorLike,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: tuple[Axis, Axis] = (-2, -1),
    norm: Norm = "backward",
) -> Tensor:
    """Return the inverse of `fft2`, with its parameters.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.fft.ifft2([[4.0, 0.0], [0.0, 0.0]]).tolist()
    [[(1+0j), (1+0j)], [(1+0j), (1+0j)]]
    """
    return ifftn(x, s=s, axes=axes, norm=norm)


def fftfreq(n: int, /, *, d: float = 1.0, dtype: DTypeLike | None = None) -> Tensor:
    """Return the frequencies of what `fft` returns, in cycles per unit of the spacing `d`.

    Parameters
    ----------
    n : int
        The number of elements.
    d : float
        The distance between them.
    dtype : dtype_like, optional
        ``float32`` by default.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.fft.fftfreq(4, d=0.25).tolist()
    [0.0, 1.0, -2.0, -1.0]
    """
    steps = [*range((n + 1) // 2), *range(-(n // 2), 0)]
    return _core.tensor([step / (n * d) for step in steps], dtype or "f32")


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: DTypeLike | None = None) -> Tensor:
    """Return the frequencies of what `rfft` returns. Parameters are those of `fftfreq`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.fft.rfftfreq(4, d=0.25).tolist()
    [0.0, 1.0, 2.0]
    """
    return _core.tensor([step / (n * d) for step in range(n // 2 + 1)], dtype or "f32")


def fftshift(x: TensorLike, /, *, axes: Axes | None = None) -> Tensor:
    """Move the element of frequency 0 to the middle of each axis.

    Parameters
    ----------
    x : tensor_like
        A tensor.
    axes : int or str, or a sequence, optional
        The axes; all by default.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.fft.fftshift([0, 1, 2, -2, -1]).tolist()
    [-2, -1, 0, 1, 2]
    """
    x = as_tensor(x)
    axes = _all_axes(x, axes)
    return roll(x, [_size(x, axis) // 2 for axis in axes], axis=axes)


def ifftshift(x: TensorLike, /, *, axes: Axes | None = None) -> Tensor:
    """Undo `fftshift`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.fft.ifftshift([-2, -1, 0, 1, 2]).tolist()
    [0, 1, 2, -2, -1]
    """
    x = as_tensor(x)
    axes = _all_axes(x, axes)
    return roll(x, [-(_size(x, axis) // 2) for axis in axes], axis=axes)


def _all_axes(x: Tensor, axes: Axes | None) -> list[Axis]:
    if axes is None:
        return list(range(len(x.shape)))
    return [axes] if isinstance(axes, int | str) else list(axes)


def _size(x: Tensor, axis: Axis) -> int:
    return x.shape[x.names.index(axis) if isinstance(axis, str) else axis]


def _points(n: int | None) -> int | None:
    """Refuse a number of points that no transform has."""
    if n is not None and n < 1:
        raise ArgumentError(f"fft: n must be at least 1, got {n}")
    return n


def _points_of_each(s: Sequence[int] | None) -> Sequence[int] | None:
    for n in s or ():
        _points(n)
    return s


def _lengths(x: Tensor, s: Sequence[int] | None, axes: Axes | None) -> Sequence[int]:
    """Return the number of points along each transformed axis."""
    return s if s is not None else [_size(x, axis) for axis in _all_axes(x, axes)]


def _opposite(norm: Norm) -> Norm:
    """Return the norm under which the inverse divides as this direction does under `norm`."""
    if norm == "backward":
        return "forward"
    return "backward" if norm == "forward" else norm


def _factor(count: int, norm: Norm, *, inverse: bool) -> float:
    """Return what a transform of so many elements is multiplied by; the engine's is "backward"."""
    if norm == "ortho":
        return math.sqrt(count) if inverse else 1.0 / math.sqrt(count)
    if norm == "forward":
        return float(count) if inverse else 1.0 / count
    raise ArgumentError(f'fft: norm must be "backward", "ortho" or "forward", got {norm!r}')


def _scaled(transformed: Tensor, axis: Axis, norm: Norm, *, inverse: bool) -> Tensor:
    if norm == "backward":
        return transformed
    count = _size(transformed, axis)
    return _core.multiply(transformed, _factor(count, norm, inverse=inverse))


def _scaled_all(
    transformed: Tensor,
    s: Sequence[int] | None,
    axes: Axes | None,
    norm: Norm,
    *,
    inverse: bool,
) -> Tensor:
    if norm == "backward":
        return transformed
    if axes is None and s is not None:
        axes = range(-len(s), 0)
    count = math.prod(_size(transformed, axis) for axis in _all_axes(transformed, axes))
    return _core.multiply(transformed, _factor(count, norm, inverse=inverse))
