"""Arguments that are paths of files, or bytes."""

from __future__ import annotations

import os

from nxla._values import kind_of
from nxla.errors import ArgumentError, FormatError

__all__ = ["byte_view", "path_of", "raw_bytes"]


def path_of(function: str, file: str | os.PathLike[str]) -> str:
    """Return a file path; a number, which `open` would treat as a descriptor, is rejected.

    Raises
    ------
    ArgumentError
        If the value is not a path.
    """
    if not isinstance(file, str | os.PathLike):
        raise ArgumentError(f"{function}: file: must be a path; got {_brief(file)}")
    return os.fspath(file)


def _brief(value: object) -> str:
    """Return None or an integer as written, and only the type of a value that may be large."""
    if value is None or isinstance(value, int):
        return repr(value)
    return kind_of(value)


def byte_view(function: str, data: bytes | bytearray | memoryview) -> memoryview:
    """Return the bytes of a bytes-like object, without a copy if they are contiguous.

    Raises
    ------
    FormatError
        If the object is not bytes-like. Integers are rejected: ``bytes(8)`` is 8 zeros.
    """
    try:
        view = memoryview(data)
    except (TypeError, ValueError, BufferError):
        view = None
    # NumPy scalars have a buffer without axes.
    if view is None or view.ndim == 0:
        hint = "; pass the content of the file" if isinstance(data, str | os.PathLike) else ""
        raise FormatError(f"{function}: data: must be bytes; got {_brief(data)}{hint}")
    is_flat = view.ndim == 1 and view.itemsize == 1 and view.c_contiguous
    return (view if is_flat else memoryview(view.tobytes())).cast("B")


def raw_bytes(function: str, data: bytes | bytearray | memoryview) -> bytes:
    """Return a bytes-like object as bytes; see `byte_view` for errors."""
    return data if isinstance(data, bytes) else byte_view(function, data).tobytes()
