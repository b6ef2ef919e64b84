"""Systems of linear equations, inverses, determinants and powers."""

from __future__ import annotations

from typing import NamedTuple

from nxla import _core, _hints
from nxla._values import as_tensors, template_of, user_line
from nxla.errors import ShapeError
from nxla.ops.metadata import broadcast_shapes, common_shape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nxla._core import Tensor
    from nxla._types import TensorLike


class SlogdetResult(NamedTuple):
    """The result of `slogdet`: ``sign * exp(logabsdet)`` is the determinant."""

    sign: Tensor
    logabsdet: Tensor


def solve(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Solve ``x1 @ x == x2``.

    Parameters
    ----------
    x1 : tensor_like
        Square matrices in the last two axes.
    x2 : tensor_like
        Right sides: one vector if it has one axis, else matrices with as many rows. Leading axes
        broadcast.

    Returns
    -------
    Tensor
        Floats or complex numbers; NaN where a matrix is singular.

    Raises
    ------
    ShapeError
        If the matrices are not square, or the right side does not match.

    Notes
    -----
    As in the Array API, one vector for each matrix is ``x2[..., None]``, a matrix of one column.
    `triangular_solve` also reads such vectors without the last axis.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.linalg.solve([[2.0, 0.0], [1.0, 4.0]], [2.0, 9.0]).tolist()
    [1.0, 2.0]
    """
    a, b = as_tensors("solve", x1, x2)
    batch = a.shape[:-2]
    _check_sides(a, b)
    if len(b.shape) == 1 and batch:
        b = _core.broadcast_to(b, (*batch, *b.shape))
    elif len(b.shape) > 1 and len(a.shape) > 1 and b.shape[:-2] != batch:
        shape = broadcast_shapes(batch, b.shape[:-2])
        a = _core.broadcast_to(a, (*shape, *a.shape[-2:]))
        b = _core.broadcast_to(b, (*shape, *b.shape[-2:]))
    return _core.solve_batch(a, b)


def _check_sides(a: Tensor, b: Tensor) -> None:
    """Check that the right sides fit the matrices, and raise an error with the original shapes."""
    if len(a.shape) < 2 or len(b.shape) < 2:
        return
    sides = f"{template_of(a)} and {template_of(b)}"
    if a.shape[-2] != a.shape[-1]:
        raise ShapeError(
            f"solve: x1: must have square matrices in the last two axes; got {sides}{user_line()}"
        )
    if b.shape[-2] != a.shape[-1]:
        hint = "; vectors, one for each matrix, are x2[..., None]" * (b.shape == a.shape[:-1])
        raise ShapeError(
            f"solve: x2: must have matrices of {a.shape[-1]} rows; got {sides}{hint}{user_line()}"
        )
    if common_shape([a.shape[:-2], b.shape[:-2]]) is None:
        raise ShapeError(f"solve: operands: leading axes must broadcast; got {sides}{user_line()}")


def slogdet(x: TensorLike, /) -> SlogdetResult:
    """Return the sign and the logarithm of the magnitude of determinants.

    The logarithm is finite even if the determinant would overflow or underflow. The result for a
    singular matrix is 0 and minus infinity. The sign of a complex determinant is its phase.

    Raises
    ------
    ShapeError
        If the matrices are not square.

    Examples
    --------
    >>> import nxla as nx
    >>> sign, logabsdet = nx.linalg.slogdet([[0.0, 1.0], [1.0, 0.0]])
    >>> sign.item(), logabsdet.item()
    (-1.0, 0.0)
    """
    return SlogdetResult(*_core.slogdet_parts(x))


def outer(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Return every element of one vector times every element of another.

    Unlike `nxla.outer`, it accepts only vectors, and does not conjugate.

    Raises
    ------
    ShapeError
        If an operand is not a vector.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.linalg.outer([1, 2], [3, 4]).tolist()
    [[3, 4], [6, 8]]
    """
    x1, x2 = as_tensors("outer", x1, x2)
    for x in (x1, x2):
        if len(x.shape) != 1:
            raise ShapeError(f"outer: operands: must be vectors; got shape {x.shape}")
    return _core.multiply(_core.expand_dims(x1, axis=1), x2)


_hints.install(globals())
