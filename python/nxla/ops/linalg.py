"""Linear algebra and Fourier transforms, over the last axes."""

from __future__ import annotations

import math

from nxla import _core
from nxla._values import as_tensor
from nxla.errors import ArgumentError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from nxla._core import Tensor
    from nxla._types import Axes, Axis, TensorLike

    Norm = Literal["backward", "ortho", "forward"]


def cholesky(x: TensorLike, /, *, upper: bool = False) -> Tensor:
    """Return the triangular root of symmetric (Hermitian) positive definite matrices.

    Parameters
    ----------
    x : tensor_like
        Square matrices in the last two axes; only the lower triangle is read.
    upper : bool
        Whether the root is the upper triangular one.

    Returns
    -------
    Tensor
        ``L`` with ``L @ adjoint(L) == x``, or its adjoint. NaN where a matrix is not positive
        definite.

    Raises
    ------
    ShapeError
        If the matrices are not square.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.cholesky([[4.0, 2.0], [2.0, 5.0]]).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    lower = _core.cholesky(x)
    return _core.adjoint(lower) if upper else lower


def triangular_solve(
    a: TensorLike,
    b: TensorLike,
    /,
    *,
    lower: bool = True,
    left_side: bool = True,
    transform: Literal["none", "transpose", "conjugate"] = "none",
) -> Tensor:
    """Solve ``a @ x == b`` for a triangular matrix.

    Parameters
    ----------
    a : tensor_like
        Square matrices in the last two axes; only one triangle is read.
    b : tensor_like
        Right sides: matrices with as many rows, or a vector.
    lower : bool
        Whether the lower triangle of `a` is read.
    left_side : bool
        Whether to solve ``a @ x == b``, or ``x @ a == b``.
    transform : {"none", "transpose", "conjugate"}
        What is done to `a` first.

    Raises
    ------
    ShapeError
        If the matrices are not square, or the right side does not fit.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.triangular_solve([[2.0, 0.0], [1.0, 4.0]], [2.0, 9.0]).tolist()
    [1.0, 2.0]
    """
    return _core.triangular_solve(a, b, lower, left_side, transform)


def adjoint(x: TensorLike, /) -> Tensor:
    """Exchange the last two axes, and conjugate complex numbers.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.adjoint([[1 + 1j, 2 + 0j]]).tolist()
    [[(1-1j)], [(2-0j)]]
    """
    return _core.adjoint(x)


def norm(
    x: TensorLike, /, *, ord: float | None = None, axis: Axes | None = None, keepdims: bool = False
) -> Tensor:
    """Return the length of vectors, or a norm of matrices.

    Parameters
    ----------
    x : tensor_like
        Numbers; integers count as ``float32``.
    ord : float, optional
        By default the root of the sum of squares. For vectors a whole number ``p`` gives
        ``sum(abs(x) ** p) ** (1 / p)``, infinity the largest magnitude, minus infinity the
        smallest. For matrices 1 and infinity give the largest sum of a column or a row.
    axis : int or str, or a sequence, optional
        One axis for vectors, two for matrices; all by default.
    keepdims : bool
        Whether these axes stay, with size 1.

    Raises
    ------
    ArgumentError
        If there is no such norm.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.norm([3.0, 4.0]).item(), nx.norm([3.0, -4.0], ord=1).item()
    (5.0, 7.0)
    """
    return _core.norm(x, ord, axis, keepdims)


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
    >>> nx.fft([1.0, 0.0, 0.0, 0.0]).tolist()
    [(1+0j), (1+0j), (1+0j), (1+0j)]
    """
    return _scaled(_core.fft(x, n, axis), axis, norm, inverse=False)


def ifft(
    x: TensorLike, /, *, n: int | None = None, axis: Axis = -1, norm: Norm = "backward"
) -> Tensor:
    """Return the inverse discrete Fourier transform. Parameters and errors are those of `fft`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.ifft([4.0, 0.0, 0.0, 0.0]).tolist()
    [(1+0j), (1+0j), (1+0j), (1+0j)]
    """
    return _scaled(_core.ifft(x, n, axis), axis, norm, inverse=True)


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
    >>> nx.fft2([[1.0, 0.0], [0.0, 0.0]]).tolist()
    [[(1+0j), (1+0j)], [(1+0j), (1+0j)]]
    """
    rows, columns = (None, None) if s is None else s
    return fft(fft(x, n=columns, axis=axes[1], norm=norm), n=rows, axis=axes[0], norm=norm)


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
    >>> nx.ifft2([[4.0, 0.0], [0.0, 0.0]]).tolist()
    [[(1+0j), (1+0j)], [(1+0j), (1+0j)]]
    """
    rows, columns = (None, None) if s is None else s
    return ifft(ifft(x, n=columns, axis=axes[1], norm=norm), n=rows, axis=axes[0], norm=norm)


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
    >>> nx.rfft([1.0, 0.0, 0.0, 0.0]).tolist()
    [(1+0j), (1+0j), (1+0j)]
    """
    if norm == "backward":
        return _core.rfft(x, n, axis)
    x = as_tensor(x)
    count = n if n is not None else _size(x, axis)
    return _core.multiply(_core.rfft(x, n, axis), _factor(count, norm, inverse=False))


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
    >>> nx.irfft([1.0, 1.0, 1.0]).tolist()
    [1.0, 0.0, 0.0, 0.0]
    """
    return _scaled(_core.irfft(x, n, axis), axis, norm, inverse=True)


def _size(x: Tensor, axis: Axis) -> int:
    return x.shape[x.names.index(axis) if isinstance(axis, str) else axis]


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
