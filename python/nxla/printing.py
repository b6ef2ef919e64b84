"""Print options of tensors: `set_print_options`."""

from __future__ import annotations

from nxla import _core, _hints
from nxla._values import as_count
from nxla.errors import ArgumentError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Self

__all__ = ["PrintOptions", "set_print_options"]

_DEFAULTS: dict[str, Any] = {
    "precision": None, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "device": True,
}  # fmt: skip

#: The smallest values.
_LEAST = {"precision": 0, "threshold": 0, "edgeitems": 1, "linewidth": 1}


class PrintOptions:
    """A context manager that restores the previous print options."""

    def __init__(self, before: dict[str, Any]) -> None:
        self._before = before

    def __enter__(self) -> Self:
        """Return the context manager; the options are already set."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Restore the previous options."""
        _replace(self._before)

    def __repr__(self) -> str:
        return "PrintOptions()"


def set_print_options(
    *,
    precision: int | None = None,
    threshold: int | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    device: bool | None = None,
) -> PrintOptions:
    """Set the print options of tensors, permanently or in a ``with`` block.

    A call changes only the given options; a call without options resets all of them.

    Parameters
    ----------
    precision : int, optional
        Digits after the decimal point; by default the fewest that identify the number in its dtype.
    threshold : int, optional
        The number of elements above which the middle of each axis is omitted; 1000 by default.
    edgeitems : int, optional
        The number of elements at each end of a shortened axis; 3 by default.
    linewidth : int, optional
        The maximum number of characters in a line; 80 by default.
    device : bool, optional
        False hides the device and the buffer of a tensor on a device.

    Returns
    -------
    PrintOptions
        A context manager that restores the previous options.

    Raises
    ------
    ArgumentError
        If an option is not an integer, or too small.

    Examples
    --------
    >>> import nxla as nx
    >>> with nx.set_print_options(precision=2, threshold=4, edgeitems=1):
    ...     print(nx.tensor([1 / 3, 2.0, 3.0, 4.0, 5.0]))
    #nxla.Tensor<
      f32[5]
      [0.33, ..., 5.00]
    >
    """
    given = {
        "precision": precision,
        "threshold": threshold,
        "edgeitems": edgeitems,
        "linewidth": linewidth,
    }
    if device is not None and not isinstance(device, bool):
        raise ArgumentError(f"set_print_options: device: must be True or False; got {device!r}")
    for name, value in given.items():
        if value is not None:
            as_count("set_print_options", name, value, _LEAST[name])
    changes = {name: value for name, value in given.items() if value is not None}
    if device is not None:
        changes["device"] = device
    before = _replace(_DEFAULTS)
    if changes:
        _replace({**before, **changes})
    return PrintOptions(before)


def _replace(options: dict[str, Any]) -> dict[str, Any]:
    """Set all options, and return the previous options."""
    return dict(zip(_DEFAULTS, _core.set_printing(tuple(options.values())), strict=True))


_hints.install(globals())
