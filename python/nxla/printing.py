"""Print options of tensors: `set_print_options`."""

from __future__ import annotations

import threading

from nxla import _core, _hints
from nxla._values import as_count
from nxla.errors import ArgumentError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any, Self

__all__ = ["PrintOptions", "set_print_options"]

_DEFAULTS: dict[str, Any] = {
    "precision": None, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "device": True,
}  # fmt: skip

#: The options in force. The lock makes a change of some options one step for other threads.
_current = dict(_DEFAULTS)
_lock = threading.Lock()

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
        _change(lambda _: self._before)

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
    return PrintOptions(_change(lambda before: {**before, **changes} if changes else _DEFAULTS))


def _change(update: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    """Set the options that a function of the current options returns; return the previous ones."""
    with _lock:
        before = dict(_current)
        options = {**before, **update(before)}
        _core.set_printing(tuple(options.values()))
        _current.update(options)
    return before


_hints.install(globals())
