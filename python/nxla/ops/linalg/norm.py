"""Norms of vectors and matrices."""

from __future__ import annotations

from nxla import _core
from nxla._values import as_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from nxla._core import Tensor
    from nxla._types import Axes, TensorLike


def norm(
    x: TensorLike,
    /,
    *,
    ord: float | Literal["fro", "nuc"] | None = None,
    axis: Axes | None = None,
    keepdims: bool = False,
) -> Tensor:
    """Return the length of vectors, or a norm of matrices.

    `vector_norm` and `matrix_norm` say which of them is meant; here the number of axes does.

    Parameters
    ----------
    x : tensor_like
        Numbers; integers count as ``float32``.
    ord : float or {"fro", "nuc"}, optional
        By default the root of the sum of squares, as ``"fro"``. For vectors a number ``p`` gives
        ``sum(abs(x) ** p) ** (1 / p)``, 0 counts what is not 0, infinity is the largest magnitude,
        and minus infinity the smallest. For matrices 1 and infinity give the largest sum of a
        column or a row, 2 the largest singular value, their negatives the smallest of these, and
        ``"nuc"`` the sum of the singular values.
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
    >>> nx.linalg.norm([3.0, 4.0]).item(), nx.linalg.norm([3.0, -4.0], ord=1).item()
    (5.0, 7.0)
    """
    return _core.norm(x, ord, axis, keepdims)


def vector_norm(
    x: TensorLike,
    /,
    *,
    axis: Axes | None = None,
    keepdims: bool = False,
    ord: float = 2,
) -> Tensor:
    """Return the norm of vectors along one axis, or of all elements along several.

    Parameters
    ----------
    x : tensor_like
        Numbers; integers count as ``float32``.
    axis : int or str, or a sequence, optional
        The axes whose elements form one vector; all by default.
    keepdims : bool
        Whether these axes stay, with size 1.
    ord : float
        As for `norm` of vectors.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.linalg.vector_norm([[3.0, 4.0], [6.0, 8.0]], axis=1).tolist()
    [5.0, 10.0]
    """
    x = as_tensor(x)
    rank = len(x.shape)
    axes = tuple(range(rank)) if axis is None else _positions(x, axis)
    kept = [at for at in range(rank) if at not in axes]
    rows = _core.transpose(x, [*kept, *axes]) if axes != tuple(range(rank))[-len(axes) :] else x
    rows = _core.reshape(rows, [*(x.shape[at] for at in kept), -1])
    result = _core.norm(rows, ord, -1, False)
    if not keepdims:
        return result
    return _core.reshape(result, [1 if at in axes else x.shape[at] for at in range(rank)])


def matrix_norm(
    x: TensorLike,
    /,
    *,
    keepdims: bool = False,
    ord: float | Literal["fro", "nuc"] = "fro",
) -> Tensor:
    """Return the norm of the matrices in the last two axes.

    Parameters
    ----------
    x : tensor_like
        Numbers, with at least two axes; integers count as ``float32``.
    keepdims : bool
        Whether the last two axes stay, with size 1.
    ord : {1, 2, inf, -1, -2, -inf, "fro", "nuc"}
        As for `norm` of matrices.

    Raises
    ------
    ArgumentError
        If there is no such norm.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.linalg.matrix_norm([[3.0, 0.0], [0.0, 4.0]]).item()
    5.0
    >>> nx.linalg.matrix_norm([[3.0, 0.0], [0.0, 4.0]], ord="nuc").item()
    7.0
    """
    return _core.norm(x, ord, (-2, -1), keepdims)


def _positions(x: Tensor, axis: Axes) -> tuple[int, ...]:
    """Return where axes are, counted from the front."""
    _core.sum(x, axis)  # Refuses axes that are not there.
    given = (axis,) if isinstance(axis, int | str) else tuple(axis)
    rank = len(x.shape)
    found = [x.names.index(one) if isinstance(one, str) else one % rank for one in given]
    return tuple(sorted(found))
