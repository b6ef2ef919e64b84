"""Pictures of tensors made of text, to look at in a terminal."""

from __future__ import annotations

import sys

from nxla import _core
from nxla._values import as_tensor
from nxla.errors import ArgumentError, DTypeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nxla._core import Tensor
    from nxla._types import TensorLike

#: Terminals have 24 shades of grey from here on; digits have 10.
_FIRST_SHADE, _SHADES, _DIGITS = 232, 24, 10


class Heatmap:
    """A tensor that shows as a picture. `to_heatmap` makes it."""

    def __init__(self, tensor: Tensor, *, ansi_enabled: bool | None, ansi_whitespace: str) -> None:
        self._tensor = tensor
        self._ansi = ansi_enabled
        self._whitespace = ansi_whitespace

    def __repr__(self) -> str:
        """Return the picture."""
        lines = self._lines(self._tensor.tolist(), self._tensor.ndim)
        kind = repr(self._tensor).split("\n")[1]
        # A picture of several rows begins on a line of its own, so that they stand together.
        first = ["  "] if self._tensor.ndim == 2 else []
        return "\n".join(["#nxla.Heatmap<", kind, *first, *("  " + line for line in lines), ">"])

    def _lines(self, values: list, ndim: int) -> list[str]:  # type: ignore[type-arg]
        if ndim == 1:
            return self._picture([values])
        if ndim == 2:
            return self._picture(values)
        lines = ["["]
        for position, value in enumerate(values):
            if position:
                lines[-1] += ","
                lines.append("  ")
            lines += ["  " + line for line in self._lines(value, ndim - 1)]
        return [*lines, "]"]

    def _picture(self, rows: list[list[float]]) -> list[str]:
        """Draw a matrix: its smallest number is dark, its largest bright."""
        ansi = sys.stdout.isatty() if self._ansi is None else self._ansi
        numbers = [number for row in rows for number in row]
        low, high = min(numbers, default=0), max(numbers, default=0)
        scale = ((_SHADES if ansi else _DIGITS) - 1) / ((high - low) or 1)
        # Halves go up.
        levels = [[int((number - low) * scale + 0.5) for number in row] for row in rows]
        if not ansi:
            return ["".join(str(level) for level in row) for row in levels]
        cell = f"\x1b[48;5;{{}}m{self._whitespace}"
        return [
            "".join(cell.format(_FIRST_SHADE + level) for level in row) + "\x1b[0m"
            for row in levels
        ]


def to_heatmap(
    x: TensorLike, /, *, ansi_enabled: bool | None = None, ansi_whitespace: str = "\u3000"
) -> Heatmap:
    """Show a tensor as a picture in text.

    Parameters
    ----------
    x : tensor_like
        Finite real numbers, with at least one axis. Each matrix of the last two axes has a scale
        of its own.
    ansi_enabled : bool, optional
        Whether to draw with shades of grey, by ANSI escape sequences, or with the digits 0 to 9;
        by default shades if standard output is a terminal.
    ansi_whitespace : str
        What each number is drawn with if there are shades; by default a space twice as wide as
        others.

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
        raise ArgumentError("to_heatmap: a traced value has no numbers yet")
    if tensor.ndim == 0:
        raise ArgumentError("to_heatmap: a scalar has no picture")
    if tensor.dtype.kind == "complex":
        raise DTypeError(f"to_heatmap: the dtype is {tensor.dtype}, expected a real one")
    return Heatmap(tensor, ansi_enabled=ansi_enabled, ansi_whitespace=ansi_whitespace)
