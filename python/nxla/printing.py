"""Print options of tensors: `set_print_options`."""

from __future__ import annotations

import math

from nxla import _core
from nxla.errors import ArgumentError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Self

    from nxla._core import Tensor

__all__ = ["PrintOptions", "set_print_options"]

#: The current options; None until an option is set.
_options: dict[str, int | None] = {}

#: The values of options that are not set while others are.
_DEFAULTS = {
    "precision": None, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "device": True,
}  # fmt: skip

#: Stored bits of the mantissas of floats.
_MANTISSA = {"f8_e5m2": 2, "f8_e4m3fn": 3, "bf16": 7, "f16": 10, "f32": 23, "c64": 23}


class PrintOptions:
    """A context manager that restores the previous print options."""

    def __init__(self, before: dict[str, int | None]) -> None:
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

    Without options, the first 50 elements are printed as in Nx. A call changes only the given
    options; a call without options resets all of them.

    Parameters
    ----------
    precision : int, optional
        Digits after the decimal point; by default the fewest that identify the number in its dtype.
    threshold : int, optional
        The number of elements above which each axis is shortened; 1000 once an option is set.
    edgeitems : int, optional
        The number of elements at each end of a shortened axis; 3.
    linewidth : int, optional
        The maximum number of characters in a line; 80.
    device : bool, optional
        False hides the line with the device and the buffer of a tensor on a device.

    Returns
    -------
    PrintOptions
        A context manager that restores the previous options.

    Raises
    ------
    ArgumentError
        If an option is negative, or a line has no room for an element.

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
    least = {"precision": 0, "threshold": 0, "edgeitems": 1, "linewidth": 1}
    for name, value in given.items():
        if value is not None and (not isinstance(value, int) or value < least[name]):
            raise ArgumentError(
                f"set_print_options: {name}: must be an int of at least {least[name]}; got "
                f"{value!r}"
            )
    before = dict(_options)
    given["device"] = device
    changes = {name: value for name, value in given.items() if value is not None}
    _replace({**_options, **changes} if changes else {})
    return PrintOptions(before)


def _replace(options: dict[str, int | None]) -> None:
    _options.clear()
    _options.update(options)
    _core.set_tensor_text(_text if options else None)


def _text(x: Tensor, usual: str) -> str:
    """Return the string of a tensor with these options; `usual` contains the header."""
    options = {**_DEFAULTS, **_options}
    lines = usual.split("\n")
    if not options["device"]:
        signature = f"  {x.device}, buffer "
        lines = [line for line in lines if not line.startswith(signature)]
    if set(_options) == {"device"}:
        return "\n".join(lines)
    body = 2
    if x.ndim or x.vectorized_axes:
        body = next(at for at, line in enumerate(lines) if line.startswith("  [") and at > 1)
    else:
        body = len(lines) - 2
    shape = (*(size for size in dict(x.vectorized_axes).values()), *x.shape)
    plain = _core.devectorize(x) if x.vectorized_axes else x
    edge, cut = int(options["edgeitems"] or 1), [False] * len(shape)
    if math.prod(shape) > int(options["threshold"] or 0):
        for axis, size in enumerate(shape):
            if size > 2 * edge:
                ends = [(0, edge), (size - edge, edge)]
                parts = [_core.slice_along_axis(plain, *end, axis=axis) for end in ends]
                plain, cut[axis] = _core.concat(parts, axis=axis), True
    elements = _nested(plain.tolist(), plain.dtype, options["precision"])
    width = max(int(options["linewidth"] or 1) - 2, 1)
    shown = _lists(elements, cut, edge, 2, width) if shape else str(elements)
    return "\n".join([*lines[:body], f"  {shown}", ">"])


def _nested(value: Any, dtype: _core.DType, precision: int | None) -> Any:
    """Return the strings of elements."""
    if isinstance(value, list):
        return [_nested(one, dtype, precision) for one in value]
    if isinstance(value, complex):
        real, imaginary = (_number(part, dtype, precision) for part in (value.real, value.imag))
        return f"{real}{'' if imaginary[0] == '-' else '+'}{imaginary}i"
    if isinstance(value, bool):
        return str(int(value))
    return _number(value, dtype, precision) if isinstance(value, float) else str(value)


def _number(value: float, dtype: _core.DType, precision: int | None) -> str:
    """Return the string of a float."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Inf" if value > 0 else "-Inf"
    if precision is None:
        return _shortest(value, _MANTISSA.get(dtype.name))
    size = abs(value)
    if size >= 1e8 or (0 < size < 0.5 * 10.0**-precision):
        return f"{value:.{precision}e}"
    return f"{value:.{precision}f}"


def _shortest(value: float, mantissa: int | None) -> str:
    """Return the fewest digits that identify the number in its dtype."""
    if mantissa is None or value == 0:
        return _plain(value)
    # Half of the distance to the next number.
    reach = math.ldexp(0.5, math.frexp(value)[1] - 1 - mantissa)
    for digits in range(1, 18):
        text = f"{value:.{digits}g}"
        if abs(float(text) - value) < reach:
            return _plain(float(text))
    return _plain(value)


def _plain(value: float) -> str:
    """Return the string of a float with an exponent in the notation of Nx."""
    mantissa, mark, exponent = repr(value).partition("e")
    return f"{mantissa}e{int(exponent)}" if mark else mantissa


def _lists(texts: list[Any], cut: list[bool], edge: int, indent: int, width: int) -> str:
    """Return nested lists; the innermost lists are broken into lines."""
    entries = list(texts)
    if cut[0]:
        entries.insert(edge, "...")
    if len(cut) == 1:
        return _row(entries, indent, width)
    if not entries:
        return "[]"
    inner = " " * (indent + 2)
    shown = [
        entry if isinstance(entry, str) else _lists(entry, cut[1:], edge, indent + 2, width)
        for entry in entries
    ]
    return "[\n" + ",\n".join(inner + entry for entry in shown) + "\n" + " " * indent + "]"


def _row(entries: list[str], indent: int, width: int) -> str:
    lines, line = [], "["
    for position, entry in enumerate(entries):
        text = entry + ("," if position + 1 < len(entries) else "]")
        if len(line) > 1 and indent + len(line) + 1 + len(text) > width + 2:
            lines.append(line)
            line = " " + text
        else:
            line += text if len(line) == 1 else " " + text
    if not entries:
        line = "[]"
    return ("\n" + " " * indent).join([*lines, line])
