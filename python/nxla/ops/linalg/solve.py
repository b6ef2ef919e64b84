"""Systems of linear equations, inverses, determinants and powers."""

from __future__ import annotations

from itertools import zip_longest
from typing import NamedTuple

from nxla import _core
from nxla._values import as_tensor
from nxla.errors import ShapeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from nxla._core import Tensor
    from nxla._types import TensorLike


class SlogdetResult(NamedTuple):
    """What `slogdet` returns: ``sign * exp(logabsdet)`` is the determinant."""

    sign: Tensor
    logabsdet: Tensor


def solve(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Solve ``x1 @ x == x2``.

    Parameters
    ----------
    x1 : tensor_like
        Square matrices in the last two axes.
    x2 : tensor_like
        Right sides: one vector, or matrices with as many rows. Leading axes broadcast.

    Returns
    -------
    Tensor
        Floats or complex numbers; NaN where a matrix is singular.

    Raises
    ------
    ShapeError
        If the matrices are not square, or the right side does not fit.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.linalg.solve([[2.0, 0.0], [1.0, 4.0]], [2.0, 9.0]).tolist()
    [1.0, 2.0]
    """
    a, b = as_tensor(x1), as_tensor(x2)
    batch = a.shape[:-2]
    if len(b.shape) == 1 and batch:
        b = _core.broadcast(b, (*batch, *b.shape))
    elif len(b.shape) > 1 and len(a.shape) > 1 and b.shape[:-2] != batch:
        shape = _broadcast_shape(batch, b.shape[:-2])
        a = _core.broadcast(a, (*shape, *a.shape[-2:]))
        b = _core.broadcast(b, (*shape, *b.shape[-2:]))
    return _core.solve(a, b)


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
    >>> nx.linalg.triangular_solve([[2.0, 0.0], [1.0, 4.0]], [2.0, 9.0]).tolist()
    [1.0, 2.0]
    """
    return _core.triangular_solve(a, b, lower, left_side, transform)


def inv(x: TensorLike, /) -> Tensor:
    """Return the inverse of square matrices.

    Parameters
    ----------
    x : tensor_like
        Square matrices in the last two axes.

    Returns
    -------
    Tensor
        Floats or complex numbers; NaN where a matrix is singular.

    Raises
    ------
    ShapeError
        If the matrices are not square.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.linalg.inv([[2.0, 0.0], [0.0, 4.0]]).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    return _core.invert(x)


def det(x: TensorLike, /) -> Tensor:
    """Return the determinant of square matrices.

    Parameters
    ----------
    x : tensor_like
        Square matrices in the last two axes.

    Raises
    ------
    ShapeError
        If the matrices are not square.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.linalg.det([[2.0, 3.0], [1.0, 4.0]]).item()
    5.0
    """
    return _core.determinant(x)


def slogdet(x: TensorLike, /) -> SlogdetResult:
    """Return the sign and the logarithm of the magnitude of determinants.

    A determinant may be too large or too small for a number where its logarithm is not. A singular
    matrix gives 0 and minus infinity; complex matrices have a phase for a sign.

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
    return SlogdetResult(*_core.slogdet(x))


def matrix_power(x: TensorLike, n: int, /) -> Tensor:
    """Multiply square matrices with themselves.

    Parameters
    ----------
    x : tensor_like
        Square matrices in the last two axes.
    n : int
        The number of factors; 0 gives the identity, a negative number factors of the inverse.

    Raises
    ------
    ShapeError
        If the matrices are not square.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.linalg.matrix_power([[1, 1], [0, 1]], 5).tolist()
    [[1, 5], [0, 1]]
    """
    return _core.matrix_power(x, n)


def matrix_rank(x: TensorLike, /, *, rtol: float | None = None) -> Tensor:
    """Return how many singular values of each matrix are not negligible.

    Parameters
    ----------
    x : tensor_like
        Matrices in the last two axes, not empty.
    rtol : float, optional
        Values up to this multiple of the largest one do not count. By default the larger side times
        the precision of the dtype.

    Returns
    -------
    Tensor
        ``int32``.

    Raises
    ------
    ShapeError
        If there are no matrices.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.linalg.matrix_rank([[1.0, 2.0], [2.0, 4.0]]).item()
    1
    """
    return _core.matrix_rank(x, rtol)


def pinv(x: TensorLike, /, *, rtol: float | None = None) -> Tensor:
    """Return the pseudo-inverse (of Moore and Penrose) of matrices.

    Parameters
    ----------
    x : tensor_like
        Matrices in the last two axes, not empty.
    rtol : float, optional
        Singular values up to this multiple of the largest one count as 0. By default the larger
        side times the precision of the dtype.

    Raises
    ------
    ShapeError
        If there are no matrices.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.linalg.pinv([[2.0, 0.0], [0.0, 0.0]]).tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    """
    return _core.pinv(x, rtol)


def least_squares(a: TensorLike, b: TensorLike, /, *, rtol: float | None = None) -> Tensor:
    """Return the ``x`` of least norm for which ``a @ x`` is nearest to ``b``.

    Parameters
    ----------
    a : tensor_like
        Matrices in the last two axes, not empty.
    b : tensor_like
        For each of them a vector, or a matrix with as many rows.
    rtol : float, optional
        As for `pinv`.

    Raises
    ------
    ShapeError
        If there are no matrices, or the right side does not fit.

    Examples
    --------
    >>> import nxla as nx
    >>> x = nx.linalg.least_squares([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]], [1.0, 3.0, 5.0])
    >>> nx.all_close(x, [1.0, 2.0], atol=1e-5).item()
    True
    """
    return _core.least_squares(a, b, rtol)


def adjoint(x: TensorLike, /) -> Tensor:
    """Exchange the last two axes, and conjugate complex numbers.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.linalg.adjoint([[1 + 1j, 2 + 0j]]).tolist()
    [[(1-1j)], [(2-0j)]]
    """
    return _core.adjoint(x)


def trace(x: TensorLike, /, *, offset: int = 0) -> Tensor:
    """Return the sum of a diagonal of each matrix.

    Parameters
    ----------
    x : tensor_like
        Matrices in the last two axes.
    offset : int
        How many columns right of the main diagonal.

    Raises
    ------
    ShapeError
        If there are no matrices.
    ArgumentError
        If the diagonal is outside of them.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.linalg.trace([[1, 2], [3, 4]]).item()
    5
    """
    return _core.trace(x, offset)


def cross(x1: TensorLike, x2: TensorLike, /, *, axis: int = -1) -> Tensor:
    """Return the cross product of vectors of three elements.

    Parameters
    ----------
    x1, x2 : tensor_like
        Vectors along one axis; the other axes broadcast.
    axis : int
        The axis, of size 3 in both; counted from the end where they have other ranks.

    Raises
    ------
    ShapeError
        If the axis has another size, or the others do not broadcast.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.linalg.cross([1, 0, 0], [0, 1, 0]).tolist()
    [0, 0, 1]
    """
    return _core.cross(x1, x2, axis)


def outer(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Return every element of one vector times every element of another.

    Unlike `nxla.outer` it takes vectors only, and conjugates nothing.

    Raises
    ------
    ShapeError
        If an operand is no vector.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.linalg.outer([1, 2], [3, 4]).tolist()
    [[3, 4], [6, 8]]
    """
    x1, x2 = as_tensor(x1), as_tensor(x2)
    for x in (x1, x2):
        if len(x.shape) != 1:
            raise ShapeError(f"outer: operands must be vectors, got one of shape {x.shape}")
    return _core.multiply(_core.new_axis(x1, 1), x2)


def _broadcast_shape(first: Sequence[int], second: Sequence[int]) -> tuple[int, ...]:
    """Return the shape that both broadcast to, or the larger one where they do not."""
    pairs = zip_longest(reversed(first), reversed(second), fillvalue=1)
    return tuple(reversed([y if x == 1 else x for x, y in pairs]))
