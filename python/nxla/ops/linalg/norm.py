"""Norms of vectors and matrices."""

from __future__ import annotations

import math

from nxla import _core, _hints
from nxla._values import as_tensor, call_as
from nxla.ops.metadata import axis_positions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nxla._core import Tensor
    from nxla._types import Axes, TensorLike


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
        If True, the reduced axes are kept with size 1.
    ord : float
        As for `norm` of vectors.

    Returns
    -------
    Tensor
        The norms, without the reduced axes. They are real, also for complex numbers.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.linalg.vector_norm([[3.0, 4.0], [6.0, 8.0]], axis=1).tolist()
    [5.0, 10.0]
    """
    x = as_tensor(x)
    rank = len(x.shape)
    axes = tuple(sorted(axis_positions("vector_norm", x, axis)))
    kept = [at for at in range(rank) if at not in axes]
    rows = _core.permute_dims(x, [*kept, *axes]) if axes != tuple(range(rank))[-len(axes) :] else x
    # A size of -1 is ambiguous next to an empty axis.
    size = math.prod(x.shape[at] for at in axes)
    rows = _core.reshape(rows, [*(x.shape[at] for at in kept), size])
    result = call_as("vector_norm", _core.norm, rows, ord=ord, axis=-1)
    if keepdims:
        result = _core.reshape(result, [1 if at in axes else x.shape[at] for at in range(rank)])
        kept = list(range(rank))
    return _core.rename(result, [x.names[at] for at in kept])


_hints.install(globals())
