"""Tensors from and to bytes: raw memory, numpy's files, and containers in a format of our own."""

from __future__ import annotations

import io
import struct
import sys

from nxla import _core
from nxla.errors import ArgumentError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from typing import Any

    from nxla._core import Tensor
    from nxla._types import DeviceLike, DTypeLike, TensorLike

#: What serialized containers begin with; the last byte is the version of the format.
_MAGIC = b"nxla\x00\x00\x00\x01"
_LENGTH = struct.Struct("<Q")


def from_binary(
    data: bytes | bytearray | memoryview,
    dtype: DTypeLike,
    /,
    *,
    device: DeviceLike | None = None,
) -> Tensor:
    """Make a vector of raw bytes.

    Parameters
    ----------
    data : bytes_like
        The elements one after the other, in the byte order of this machine. Integers of less than
        8 bits take a byte each.
    dtype : dtype_like
        The element type.
    device : Device or str, optional
        Where to put it; by default where the options in force say, else on the host.

    Raises
    ------
    ArgumentError
        If there are no bytes, or the last element is cut off.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.from_binary(bytes([1, 0, 2, 0]), "u8").tolist()
    [1, 0, 2, 0]
    """
    data, dtype = bytes(data), _core.DType(dtype)
    count, rest = divmod(len(data), dtype.itemsize)
    if not data or rest:
        raise ArgumentError(
            f"from_binary: {len(data)} bytes are no whole number of elements of {dtype.itemsize}"
        )
    return _core.place(_core.tensor_from_bytes(data, dtype, [count]), device)


def to_binary(x: TensorLike, /, *, limit: int | None = None) -> bytes:
    """Return the elements as raw bytes, row by row; the inverse of `from_binary`.

    Parameters
    ----------
    x : tensor_like
        Any tensor.
    limit : int, optional
        How many elements to return at most. Only these are read from a device.

    Raises
    ------
    ArgumentError
        If the limit is negative.

    Examples
    --------
    >>> import nxla as nx
    >>> list(nx.to_binary(nx.tensor([1, 258], "u16")))
    [1, 0, 2, 1]
    >>> list(nx.to_binary(nx.tensor([1, 258], "u16"), limit=1))
    [1, 0]
    """
    if limit is not None and limit < 0:
        raise ArgumentError(f"to_binary: expected a number of elements, got limit={limit}")
    return (x if isinstance(x, _core.Tensor) else _core.tensor(x))._first_bytes(limit)


def load_numpy(file: str | os.PathLike[str] | bytes, /) -> Tensor:
    """Read a tensor from a file of numpy (``.npy``).

    Parameters
    ----------
    file : path or bytes
        The file, or what is in it.

    Raises
    ------
    ArgumentError
        If it is no such file, or its dtype is none of ours.

    Examples
    --------
    >>> import io
    >>> import numpy as np
    >>> import nxla as nx
    >>> file = io.BytesIO()
    >>> np.save(file, np.array([1.5, 2.5]))
    >>> nx.load_numpy(file.getvalue()).tolist()
    [1.5, 2.5]
    """
    loaded = _load(file, "load_numpy")
    if not hasattr(loaded, "dtype"):
        raise ArgumentError("load_numpy: this is an archive; use nx.load_numpy_archive")
    return _own(loaded)


def load_numpy_archive(file: str | os.PathLike[str] | bytes, /) -> dict[str, Tensor]:
    """Read the tensors of an archive of numpy (``.npz``), by name.

    Parameters and errors are those of `load_numpy`.

    Examples
    --------
    >>> import io
    >>> import numpy as np
    >>> import nxla as nx
    >>> file = io.BytesIO()
    >>> np.savez(file, w=np.array([1.5]), b=np.array([2]))
    >>> {name: x.tolist() for name, x in nx.load_numpy_archive(file.getvalue()).items()}
    {'w': [1.5], 'b': [2]}
    """
    loaded = _load(file, "load_numpy_archive")
    if hasattr(loaded, "dtype"):
        raise ArgumentError("load_numpy_archive: this is a single array; use nx.load_numpy")
    with loaded:
        return {name: _own(loaded[name]) for name in loaded.files}


def _load(file: str | os.PathLike[str] | bytes, function: str) -> Any:
    import numpy as np

    try:
        return np.load(io.BytesIO(file) if isinstance(file, bytes) else file, allow_pickle=False)
    except (ValueError, EOFError) as refused:
        raise ArgumentError(f"{function}: {refused}") from refused


def _own(array: Any) -> Tensor:
    # Files may be of either byte order; DLPack and buffers are of the machine's.
    return _core.tensor(array.astype(array.dtype.newbyteorder("="), copy=False))


def serialize(container: Any, /) -> bytes:
    """Write a container of tensors to bytes, for a file or another process.

    Parameters
    ----------
    container : container
        Any container, of tensors, arrays, numbers, texts, truth values and None. Classes (of named
        tuples, dataclasses, and those of `register_container`) are written by name.

    Returns
    -------
    bytes
        For `deserialize`, on any machine.

    Raises
    ------
    ArgumentError
        If there is something else in the container.

    Examples
    --------
    >>> import nxla as nx
    >>> saved = nx.serialize({"w": nx.tensor([1.0, 2.0]), "steps": 3})
    >>> nx.deserialize(saved)["w"].tolist(), nx.deserialize(saved)["steps"]
    ([1.0, 2.0], 3)
    """
    import json

    data: list[bytes] = []
    head = json.dumps(_described(container, data), allow_nan=True).encode()
    return b"".join([_MAGIC, _LENGTH.pack(len(head)), head, *data])


def _described(value: Any, data: list[bytes]) -> Any:
    """Describe a value in JSON; the elements of tensors are put aside."""
    if isinstance(value, _core.Tensor):
        raw, dtype, shape, names, vectorized = value.__reduce__()[1]
        data.append(_little_endian(raw, dtype.itemsize, dtype.kind == "complex"))
        return {"tensor": [dtype.name, shape, names, vectorized]}
    if value is None or isinstance(value, bool | int | float | str):
        return {"value": value}
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    if isinstance(value, type):
        return {"class": _class_name(value)}
    parts = _core.take_apart(value)
    if parts is None:
        array = _array(value)
        if array is not None:
            return _described(array, data)
        raise ArgumentError(f"serialize: cannot write a {type(value).__name__}")
    kind, container, extra, children = parts
    items = [_described(item, data) for item in children]
    if kind in ("tuple", "list"):
        return {kind: items}
    if kind == "dict" and all(isinstance(key, str) for key in extra):
        return {"dict": dict(zip(extra, items, strict=True))}
    name = None if container is None else _class_name(container)
    return {"container": [kind, name, _described(extra, data), items]}


def _array(value: Any) -> Tensor | None:
    """Return an array as a tensor, and None for what is no array."""
    known = hasattr(value, "__dlpack__") or hasattr(value, "__array__")
    return _core.tensor(value) if known else None


def _class_name(value: type) -> str:
    """Return where a class is found again: its module and its name in there."""
    name = f"{value.__module__}:{value.__qualname__}"
    if _class_named(name) is not value:
        raise ArgumentError(f"serialize: the class {name} is not found under its name")
    return name


def _class_named(name: str) -> type | None:
    """Return the class of a name, in modules that are imported: bytes do not get to import any."""
    module, _, path = name.partition(":")
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        found = getattr(found, part, None)
    return found if isinstance(found, type) else None


def deserialize(data: bytes | bytearray | memoryview, /) -> Any:
    """Read a container that `serialize` has written.

    Raises
    ------
    ArgumentError
        If the bytes are something else, or are cut off; if a class is not known here: the module
        that defines it has to be imported before.
    """
    import json

    view = memoryview(data).cast("B")
    start = len(_MAGIC) + _LENGTH.size
    if bytes(view[: len(_MAGIC)]) != _MAGIC or len(view) < start:
        raise ArgumentError("deserialize: these bytes are not of nx.serialize, or of its future")
    (length,) = _LENGTH.unpack(view[len(_MAGIC) : start])
    try:
        head = json.loads(bytes(view[start : start + length]))
        value, end = _restored(head, view, start + length)
    except ArgumentError:
        raise
    except (ValueError, KeyError, TypeError) as broken:
        raise ArgumentError(f"deserialize: the bytes are damaged: {broken}") from broken
    if end != len(view):
        raise ArgumentError(f"deserialize: {len(view) - end} bytes are left over")
    return value


def _restored(head: Any, view: memoryview, at: int) -> tuple[Any, int]:
    """Return the value that a description stands for, and where its data ends."""
    ((kind, described),) = head.items()
    if kind == "value":
        return described, at
    if kind == "complex":
        return complex(*described), at
    if kind == "tensor":
        name, shape, names, vectorized = described
        dtype = _core.DType(name)
        size = dtype.itemsize
        for length in shape:
            size *= length
        if at + size > len(view):
            raise ValueError("a tensor is cut off")
        raw = _little_endian(bytes(view[at : at + size]), dtype.itemsize, dtype.kind == "complex")
        return _core.tensor_from_bytes(raw, dtype, shape, names, vectorized), at + size
    if kind == "dict":
        entries = {}
        for key, item in described.items():
            entries[key], at = _restored(item, view, at)
        return entries, at
    if kind == "class":
        return _known_class(described), at
    if kind == "container":
        return _restored_container(described, view, at)
    items, at = _restored_items(described, view, at)
    return (tuple(items) if kind == "tuple" else items), at


def _restored_items(described: list[Any], view: memoryview, at: int) -> tuple[list[Any], int]:
    items = []
    for item in described:
        restored, at = _restored(item, view, at)
        items.append(restored)
    return items, at


def _restored_container(described: list[Any], view: memoryview, at: int) -> tuple[Any, int]:
    """Return a container that is put together by the rules of its class."""
    kind, name, extra, items = described
    # Children were written before what else belongs to the structure.
    children, at = _restored_items(items, view, at)
    extra, at = _restored(extra, view, at)
    container = None if name is None else _known_class(name)
    if kind == "named" and not hasattr(container, "_fields"):
        raise ValueError(f"{name} is no named tuple")
    if kind == "dataclass" and not hasattr(container, "__dataclass_fields__"):
        raise ValueError(f"{name} is no dataclass")
    return _core.put_together(kind, container, extra, children), at


def _known_class(name: str) -> type:
    found = _class_named(name)
    if found is None:
        raise ArgumentError(
            f"deserialize: there is no class {name}; import the module that defines it before"
        )
    return found


def _little_endian(raw: bytes, itemsize: int, is_complex: bool) -> bytes:
    """Turn elements to or from little endian; nothing to do on most machines."""
    if sys.byteorder == "little":
        return raw
    width = itemsize // 2 if is_complex else itemsize
    turned = bytearray(len(raw))
    for byte in range(width):
        turned[byte::width] = raw[width - 1 - byte :: width]
    return bytes(turned)
