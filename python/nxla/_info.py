"""The inspection interface of the Array API standard."""

from __future__ import annotations

from nxla import _core
from nxla.limits import isdtype
from nxla.placement import Device, devices

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from nxla._core import DType
    from nxla._types import DeviceLike

#: The revisions of the standard whose functions the package has.
VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")
__array_api_version__ = VERSIONS[-1]

_DTYPES = {
    "bool": _core.pred,
    "int8": _core.s8,
    "int16": _core.s16,
    "int32": _core.s32,
    "int64": _core.s64,
    "uint8": _core.u8,
    "uint16": _core.u16,
    "uint32": _core.u32,
    "uint64": _core.u64,
    "float32": _core.f32,
    "float64": _core.f64,
    "complex64": _core.c64,
    "complex128": _core.c128,
}


class ArrayNamespaceInfo:
    """The result of `__array_namespace_info__`: capabilities, devices and dtypes.

    Examples
    --------
    >>> import nxla as nx
    >>> info = nx.__array_namespace_info__()
    >>> info.capabilities()["boolean indexing"], info.default_dtypes()["integral"]
    (True, s32)
    """

    def capabilities(self) -> dict[str, Any]:
        """Return the optional capabilities of the standard.

        Shapes that depend on data, and boolean masks, are supported outside traced functions.
        """
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": None}

    def default_device(self) -> Device:
        """Return the default device of new tensors."""
        return _core.full((), 0, _core.f32).device if not _core.is_tracing() else Device("host")

    def default_dtypes(self, *, device: DeviceLike | None = None) -> dict[str, DType]:  # noqa: ARG002
        """Return the default dtypes of scalars."""
        return {
            "real floating": _core.f32,
            "complex floating": _core.c64,
            "integral": _core.s32,
            "indexing": _core.s32,
        }

    def dtypes(
        self,
        *,
        device: DeviceLike | None = None,  # noqa: ARG002
        kind: str | tuple[str, ...] | None = None,
    ) -> dict[str, DType]:
        """Return the dtypes of the standard by name, or of some kinds; see `nxla.isdtype`.

        Every device supports all dtypes.
        """
        if kind is None:
            return dict(_DTYPES)
        return {name: dtype for name, dtype in _DTYPES.items() if isdtype(dtype, kind)}

    def devices(self) -> list[Device]:
        """Return the available devices."""
        return devices()


def __array_namespace_info__() -> ArrayNamespaceInfo:  # noqa: N807
    """Return the description of the package that the Array API standard requires."""
    return ArrayNamespaceInfo()
