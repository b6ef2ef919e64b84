"""Heatmaps of tensors for a terminal."""

from __future__ import annotations

import sys

from nxla import _core, _hints
from nxla._values import as_tensor
from nxla.errors import ArgumentError, DTypeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nxla._core import Tensor
    from nxla._types import TensorLike


class Heatmap:
    """A tensor that prints as a picture. `to_heatmap` returns it."""

    def __init__(self, tensor: Tensor, *, ansi_enabled: bool | None, ansi_whitespace: str) -> None:
        self._tensor = tensor
        self._ansi = ansi_enabled
        self._whitespace = ansi_whitespace

    def __repr__(self) -> str:
        """Return the picture."""
        ansi = sys.stdout.isatty() if self._ansi is None else self._ansi
        # The representation of a tensor with vectorized axes starts with an additional line.
        lines = repr(self._tensor).split("\n")[1:]
        kind = "\n".join(lines[: 2 if self._tensor.vectorized_axes else 1]).strip()
        return self._tensor._heatmap(kind, self._whitespace if ansi else None)


def to_heatmap(
    x: TensorLike, /, *, ansi_enabled: bool | None = None, ansi_whitespace: str = "\u3000"
) -> Heatmap:
    """Show a tensor as a picture of characters.

    Parameters
    ----------
    x : tensor_like
        Real numbers, with at least one axis. Each matrix of the last two axes, vectorized ones
        among them, has a scale of its own. NaN counts as its smallest number.
    ansi_enabled : bool, optional
        If True, draw with shades of gray, by ANSI escape sequences, or with the digits 0 to 9;
        by default shades if standard output is a terminal.
    ansi_whitespace : str
        The string for each number if shades are drawn; by default a double-width space.

    Returns
    -------
    Heatmap
        Its `repr` is the picture.

    Raises
    ------
    ArgumentError
        If `x` is a scalar.
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.to_heatmap([1, 2, 3], ansi_enabled=False)
    #nxla.Heatmap<
      s32[3]
      059
    >
    """
    tensor = as_tensor(x)
    if not isinstance(tensor, _core.Tensor):
        raise ArgumentError("to_heatmap: x: must be a tensor with data; got a traced value")
    if tensor.ndim == 0:
        raise ArgumentError("to_heatmap: x: must have at least one axis; got a scalar")
    if tensor.dtype.kind == "complex":
        raise DTypeError(f"to_heatmap: x: must be real; got {tensor.dtype}")
    return Heatmap(tensor, ansi_enabled=ansi_enabled, ansi_whitespace=ansi_whitespace)


_hints.install(globals())
