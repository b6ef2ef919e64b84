"""The matrix exponential."""

from __future__ import annotations

import math

from nxla import _core, _hints
from nxla._signatures import run_traced
from nxla._values import as_tensor, float_dtype
from nxla.errors import ShapeError
from nxla.ops.loops import fori

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from nxla._core import Tensor
    from nxla._types import TensorLike

#: The degree of the Padé approximant, and the 1-norm up to which it has the precision of `float64`.
_DEGREE = 13
_LARGEST_NORM = 5.371920351148152


def _coefficients() -> list[float]:
    """Return the coefficients of the numerator of the Padé approximant; the first one is 1."""
    found = [1.0]
    for k in range(1, _DEGREE + 1):
        found.append(found[-1] * (_DEGREE - k + 1) / (k * (2 * _DEGREE - k + 1)))
    return found


def _approximant(a: Tensor) -> Tensor:
    """Return the exponential of matrices of a small norm."""
    c = _coefficients()
    a2 = a @ a
    a4 = a2 @ a2
    a6 = a4 @ a2
    one = _core.eye(a.shape[-2:], a.dtype)

    def half(first: int) -> Tensor:
        """Sum every second term from a coefficient on."""
        inner = c[first + 10] * a4 + c[first + 8] * a2
        if first + 12 <= _DEGREE:
            inner = inner + c[first + 12] * a6
        outer = c[first + 6] * a6 + c[first + 4] * a4 + c[first + 2] * a2 + c[first] * one
        return a6 @ inner + outer

    odd, even = a @ half(1), half(0)
    return _core.solve_batch(even - odd, even + odd)


def _exponential(a: Tensor) -> Tensor:
    norm = _core.max(_core.sum(_core.abs(_core.stop_grad(a)), -2), -1)
    norm = _core.where(_core.isfinite(norm), norm, 0.0)
    power = _core.ceil(_core.log2(_core.maximum(norm / _LARGEST_NORM, 1.0)))
    scale = _core.astype(_core.pow(2.0, _core.negative(power)), a.dtype)
    result = _approximant(a * _core.expand_dims(scale, (-2, -1)))
    if not math.prod(norm.shape):
        return result
    power = _core.expand_dims(power, (-2, -1))

    def square(i: Any, x: Tensor) -> Tensor:
        return _core.where(_core.astype(i, power.dtype) < power, x @ x, x)

    found: Tensor = fori(0, _core.astype(_core.max(power), "s32"), square, result)
    return found


def _rounded_exponential(a: Tensor) -> Tensor:
    """Return the exponential in the dtype of the operand, computed in at least 32 bits."""
    dtype = float_dtype(a)
    wide = _core.f64 if dtype.bits < 32 else dtype
    return _core.astype(_exponential(_core.astype(a, wide)), dtype)


def expm(x: TensorLike, /) -> Tensor:
    """Return the matrix exponential.

    Parameters
    ----------
    x : tensor_like
        Square matrices in the last two axes; integers count as ``float32``.

    Returns
    -------
    Tensor
        Matrices of the shape of `x`.

    Raises
    ------
    ShapeError
        If the matrices are not square.

    Notes
    -----
    N. J. Higham, "The scaling and squaring method for the matrix exponential revisited" (2005),
    with the approximant of degree 13.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.linalg.expm([[0.0, 1.0], [0.0, 0.0]]).tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    a = as_tensor(x)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ShapeError(
            f"expm: x: must be square matrices in the last two axes; got shape {a.shape}"
        )
    return run_traced(_rounded_exponential, "expm", a, key="expm")


_hints.install(globals())
