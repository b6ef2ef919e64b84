"""Conversion of tensors from and to bytes: raw memory, NumPy files, and serialized containers."""

from __future__ import annotations

import math
import struct
import sys

from nxla import _core, _hints
from nxla._files import byte_view, path_of, raw_bytes
from nxla._values import as_count, as_dtype, call_as, kind_of, user_line
from nxla.errors import ArgumentError, FormatError, TraceError
from nxla.placement import placed_on

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Iterable
    from types import UnionType
    from typing import Any

    from nxla._core import Tensor
    from nxla._types import DeviceLike, DTypeLike, TensorLike

#: The first bytes of a serialized container; the last one is the version of the format.
_MAGIC = b"nxla\x00\x00\x00\x02"
_LENGTH = struct.Struct("<Q")
#: The maximum nesting depth of containers, here and in the rest of the package.
_MOST_NESTED = 256
#: The first integer with more digits than Python reads from a string by default.
_INTEGER_LIMIT = 10**4300
#: The number of bytes of the checksum, which is the BLAKE2b hash of all bytes after it.
_CHECKSUM = 16


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
        The device; by default the device of the current options, or the host.

    Returns
    -------
    Tensor
        A vector of the dtype.

    Raises
    ------
    FormatError
        If `data` is empty or not bytes, or its length is not a multiple of the element size.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.from_binary(bytes([1, 0, 2, 0]), "u8").tolist()
    [1, 0, 2, 0]
    """
    data, dtype = raw_bytes("from_binary", data), as_dtype("from_binary", dtype)
    count, rest = divmod(len(data), dtype.itemsize)
    if not data or rest:
        raise FormatError(
            f"from_binary: data: length must be a positive multiple of {dtype.itemsize} bytes; got "
            f"{len(data)}"
        )
    return placed_on(
        "from_binary",
        device,
        call_as("from_binary", _core.tensor_from_bytes, data, dtype, [count]),
    )


def to_binary(x: TensorLike, /, *, limit: int | None = None) -> bytes:
    """Return the elements as raw bytes, row by row; the inverse of `from_binary`.

    Parameters
    ----------
    x : tensor_like
        Any tensor.
    limit : int, optional
        The maximum number of elements. Only these elements are read from a device.

    Returns
    -------
    bytes
        The elements in the byte order of this machine. Integers of less than 8 bits take a byte
        each.

    Raises
    ------
    ArgumentError
        If the limit is negative.
    TraceError
        If the tensor is a traced value.

    Examples
    --------
    >>> import nxla as nx
    >>> list(nx.to_binary(nx.tensor([1, 258], "u16")))
    [1, 0, 2, 1]
    >>> list(nx.to_binary(nx.tensor([1, 258], "u16"), limit=1))
    [1, 0]
    """
    if limit is not None:
        limit = as_count("to_binary", "limit", limit)
    return known_tensor("to_binary", "x", x)._first_bytes(limit)


def known_tensor(function: str, argument: str, value: TensorLike) -> Tensor:
    """Return a value as a tensor with elements, which a traced value does not have."""
    if isinstance(value, _core.Expr):
        raise TraceError(
            f"{function}: {argument}: must not be traced, because its elements are known only "
            f"when the function runs; return it from the function{user_line()}"
        )
    return value if isinstance(value, _core.Tensor) else _core.tensor(value)


def load_numpy(file: str | os.PathLike[str] | bytes | bytearray | memoryview, /) -> Tensor:
    """Read a tensor from a NumPy file (``.npy``).

    Parameters
    ----------
    file : path or bytes_like
        The path of the file, or its contents.

    Returns
    -------
    Tensor
        A tensor with the shape and the dtype of the array.

    Raises
    ------
    FormatError
        If the file is not a NumPy array or is damaged, or nxla does not have its dtype.
    OSError
        If the file cannot be read.

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
    return _core.place(_core.tensor_from_npy("load_numpy", _content("load_numpy", file)))


def load_numpy_archive(
    file: str | os.PathLike[str] | bytes | bytearray | memoryview, /
) -> dict[str, Tensor]:
    """Read the tensors of a NumPy archive (``.npz``), by name.

    Parameters and errors are the same as for `load_numpy`.

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
    function = "load_numpy_archive"
    tensors = _core.tensors_from_npz(function, _content(function, file))
    return {name: _core.place(x) for name, x in tensors}


def _content(function: str, file: str | os.PathLike[str] | bytes | bytearray | memoryview) -> bytes:
    """Return the bytes of a file, or the bytes themselves."""
    if isinstance(file, bytes | bytearray | memoryview):
        return raw_bytes(function, file)
    with open(path_of(function, file), "rb") as source:
        return source.read()


def serialize(container: Any, /) -> bytes:
    """Write a container of tensors to bytes, for a file or another process.

    Parameters
    ----------
    container : container
        Any container of tensors, arrays, numbers, strings, booleans and None. Classes (named
        tuples, dataclasses, and classes of `register_container`) are written by name.

    Returns
    -------
    bytes
        The bytes, which `deserialize` reads on any machine.

    Raises
    ------
    ArgumentError
        If the container contains other types of values, is nested more than 256 deep, or contains
        itself.
    TraceError
        If the container contains a traced value.

    Examples
    --------
    >>> import nxla as nx
    >>> saved = nx.serialize({"w": nx.tensor([1.0, 2.0]), "steps": 3})
    >>> nx.deserialize(saved)["w"].tolist(), nx.deserialize(saved)["steps"]
    ([1.0, 2.0], 3)
    """
    import json

    data: list[bytes] = []
    try:
        head = json.dumps(_describe(container, data, 0), allow_nan=True).encode()
    except RecursionError as error:
        raise ArgumentError(f"serialize: container: must be nested less deep; {error}") from error
    parts = [_LENGTH.pack(len(head)), head, *data]
    return b"".join([_MAGIC, _checksum(parts), *parts])


def _checksum(parts: Iterable[bytes | memoryview]) -> bytes:
    """Return the checksum of the bytes that follow it in a serialized container."""
    from hashlib import blake2b

    checksum = blake2b(digest_size=_CHECKSUM)
    for part in parts:
        checksum.update(part)
    return checksum.digest()


def _describe(value: Any, data: list[bytes], depth: int) -> Any:
    """Describe a value inside `depth` containers as JSON, and collect the elements of tensors."""
    if depth > _MOST_NESTED:
        raise ArgumentError(
            f"serialize: container: must be nested at most {_MOST_NESTED} deep, and must not "
            "contain itself"
        )
    if isinstance(value, _core.Tensor | _core.Expr):
        tensor = known_tensor("serialize", "container", value)
        raw, dtype, shape, names, vectorized = tensor.__reduce__()[1]
        data.append(_little_endian(raw, dtype.itemsize, dtype.kind == "complex"))
        return {"tensor": [dtype.name, shape, names, vectorized]}
    if value is None or isinstance(value, bool | int | float | str):
        if isinstance(value, int) and abs(value) >= _INTEGER_LIMIT:
            raise ArgumentError("serialize: container: integers must have at most 4300 digits")
        return {"value": value}
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    if isinstance(value, type):
        return {"class": _class_name(value)}
    parts = _core.take_apart(value)
    if parts is None:
        array = _array(value)
        if array is not None:
            return _describe(array, data, depth)
        raise ArgumentError(
            "serialize: container: must contain tensors, arrays, numbers, strings, booleans "
            f"and None; got {kind_of(value)}"
        )
    kind, container, extra, children = parts
    items = [_describe(item, data, depth + 1) for item in children]
    if kind in ("tuple", "list"):
        return {kind: items}
    if kind == "dict" and all(isinstance(key, str) for key in extra):
        return {"dict": dict(zip(extra, items, strict=True))}
    name = None if container is None else _class_name(container)
    return {"container": [kind, name, _describe(extra, data, depth + 1), items]}


def _array(value: Any) -> Tensor | None:
    """Return an array as a tensor, and None for other objects."""
    known = hasattr(value, "__dlpack__") or hasattr(value, "__array__")
    return _core.tensor(value) if known else None


def _class_name(value: type) -> str:
    """Return the name of a class: its module, and its name in the module."""
    name = f"{value.__module__}:{value.__qualname__}"
    if _class_named(name) is not value:
        raise ArgumentError(f"serialize: class {name}: must be importable by its name")
    return name


def _class_named(name: str) -> type | None:
    """Return the class with a name from a module of nxla, or from another imported module."""
    import importlib
    from contextlib import suppress

    module, _, path = name.partition(":")
    # Optimizer states must load in a new process. Reading must not run code of other packages.
    if module.startswith("nxla."):
        with suppress(ImportError):
            importlib.import_module(module)
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        # Read `__dict__`, because the `__getattr__` of a module may import other modules.
        found = getattr(found, "__dict__", {}).get(part)
    return found if isinstance(found, type) else None


def deserialize(data: bytes | bytearray | memoryview, /) -> Any:
    """Read a container that `serialize` has written.

    Memory is linear in the number of bytes. Classes are looked up in modules that are imported
    already and in modules of nxla. They must be containers: named tuples, dataclasses, or classes
    of `register_container`, which are constructed by their registered functions.

    Parameters
    ----------
    data : bytes-like
        The bytes that `serialize` returned.

    Returns
    -------
    Any
        A container of tensors on the host, and of the Python values that were saved.

    Raises
    ------
    FormatError
        If the bytes are in another format, damaged or truncated; the message contains the position.
    ArgumentError
        If a class is unknown, because its module has not been imported.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.deserialize(nx.serialize({"w": nx.ones(2)}))["w"].tolist()
    [1.0, 1.0]
    """
    import json

    view = byte_view("deserialize", data)
    checked = len(_MAGIC) + _CHECKSUM
    start = checked + _LENGTH.size
    if bytes(view[: len(_MAGIC)]) != _MAGIC or len(view) < start:
        raise FormatError(
            "deserialize: byte 0: must be the start of a container that this version of "
            f"nx.serialize wrote; got {bytes(view[: len(_MAGIC)])!r}"
        )
    if _checksum([view[checked:]]) != view[len(_MAGIC) : checked]:
        raise FormatError(
            f"deserialize: byte {len(_MAGIC)}: must be the checksum of the bytes that follow; the "
            "bytes are damaged or cut off"
        )
    (length,) = _LENGTH.unpack(view[checked:start])
    if length > len(view) - start:
        raise FormatError(
            f"deserialize: byte {checked}: must be the length of a head within "
            f"{len(view) - start} bytes; got {length}"
        )
    try:
        head = json.loads(bytes(view[start : start + length]))
    except (ValueError, RecursionError) as broken:
        raise FormatError(f"deserialize: byte {start}: must be JSON; {broken}") from broken
    reader = _Reader(view, start + length)
    try:
        value = reader.value(head, "head", 0)
    except RecursionError as error:
        raise FormatError(f"deserialize: head: must be nested less deep; {error}") from error
    if reader.at != len(view):
        left = len(view) - reader.at
        raise FormatError(f"deserialize: byte {reader.at}: must be the end; got {left} bytes more")
    return value


class _Reader:
    """Reads the values that a header describes, and the elements of tensors after the header."""

    def __init__(self, view: memoryview, at: int) -> None:
        self.view = view
        self.at = at

    def expect(self, holds: bool, expected: str, path: str, found: object) -> None:
        if not holds:
            raise FormatError(f"deserialize: {path}: expected {expected}, found {found!r}"[:500])

    def value(self, head: Any, path: str, depth: int) -> Any:
        """Return the value of a description."""
        self.expect(depth <= _MOST_NESTED, f"{_MOST_NESTED} levels at most", path[:100], "more")
        self.expect(isinstance(head, dict) and len(head) == 1, "a kind and its value", path, head)
        ((kind, described),) = head.items()
        path = f"{path}.{kind}"
        if kind == "value":
            plain = described is None or isinstance(described, bool | int | float | str)
            self.expect(plain, "a number, a string, a boolean or null", path, described)
            return described
        if kind == "complex":
            parts = isinstance(described, list) and len(described) == 2
            parts = parts and all(isinstance(part, int | float) for part in described)
            self.expect(parts, "two numbers", path, described)
            return complex(float(described[0]), float(described[1]))
        if kind == "class":
            return self.class_of_name(described, path)
        if kind == "dict":
            self.expect(isinstance(described, dict), "an object", path, described)
            return {
                key: self.value(item, f"{path}[{key!r}]", depth + 1)
                for key, item in described.items()
            }
        self.expect(isinstance(described, list), "a list", path, described)
        if kind == "tensor":
            return self.tensor(described, path)
        if kind == "container":
            self.expect(len(described) == 4, "kind, class, structure and children", path, described)
            self.expect(isinstance(described[3], list), "a list of children", path, described[3])
            items = self.items(described[3], path, depth)
            return self.container(described, items, path, depth)
        self.expect(kind in ("tuple", "list"), "a kind of value", path, kind)
        items = self.items(described, path, depth)
        return tuple(items) if kind == "tuple" else items

    def items(self, described: list[Any], path: str, depth: int) -> list[Any]:
        """Return the values of children.

        Reading uses two or three frames of Python for a level of nesting, so that `_MOST_NESTED`
        levels fit into its recursion limit of 1000.
        """
        pairs = enumerate(described)
        return [self.value(item, f"{path}[{index}]", depth + 1) for index, item in pairs]

    def tensor(self, described: list[Any], path: str) -> Tensor:
        self.expect(len(described) == 4, "dtype, shape, names and axes", path, described)
        name, shape, names, vectorized = described

        def are(items: Any, kinds: type | UnionType) -> bool:
            return isinstance(items, list) and all(isinstance(item, kinds) for item in items)

        self.expect(isinstance(name, str), "the name of a dtype", path, name)
        sizes = are(shape, int) and all(size >= 0 and type(size) is int for size in shape)
        self.expect(sizes, "a shape", path, shape)
        known = names is None or (are(names, str | None) and len(names) <= len(shape))
        self.expect(known, "a name or null for each axis", path, names)
        self.expect(are(vectorized, str), "names of axes", path, vectorized)
        try:
            dtype = _core.DType(name)
        except (TypeError, ValueError) as broken:
            raise FormatError(f"deserialize: {path}: {broken}") from broken
        size = math.prod(shape) * dtype.itemsize
        left = len(self.view) - self.at
        if size > left:
            raise FormatError(
                f"deserialize: byte {self.at}: must start {size} bytes of the elements of {path}; "
                f"got {left}"
            )
        raw = bytes(self.view[self.at : self.at + size])
        raw = _little_endian(raw, dtype.itemsize, dtype.kind == "complex")
        try:
            made = _core.tensor_from_bytes(raw, dtype, shape, names, vectorized)
        except (TypeError, ValueError, OverflowError) as broken:
            raise FormatError(f"deserialize: {path}, at byte {self.at}: {broken}") from broken
        self.at += size
        return _core.place(made)

    def container(self, described: list[Any], children: list[Any], path: str, depth: int) -> Any:
        """Return a container that the registered function of its class constructs."""
        kind, name, extra, _ = described
        # The tensors of the structure follow the tensors of the children.
        extra = self.value(extra, f"{path}.structure", depth + 1)
        container: Any = None if name is None else self.class_of_name(name, path)
        if kind == "named":
            is_named = issubclass(container, tuple) and hasattr(container, "_fields")
            self.expect(is_named, "a named tuple", path, name)
        elif kind == "dataclass":
            self.expect(hasattr(container, "__dataclass_fields__"), "a dataclass", path, name)
        else:
            self.expect(kind in ("dict", "registered"), "a kind of container", path, kind)
        try:
            return _core.put_together(kind, container, extra, children)
        # A class may reject its arguments by any exception.
        except Exception as broken:
            why = f"{type(broken).__name__}: {broken}"
            raise FormatError(f"deserialize: {path}: {why}") from broken

    def class_of_name(self, name: Any, path: str) -> type:
        self.expect(isinstance(name, str), "the name of a class", path, name)
        found = _class_named(name)
        if found is None:
            raise ArgumentError(
                f"deserialize: class {name}: must be defined; import its module first"
            )
        return found


def _little_endian(raw: bytes, itemsize: int, is_complex: bool) -> bytes:
    """Convert elements to or from little endian, which is a no-op on most machines."""
    if sys.byteorder == "little":
        return raw
    width = itemsize // 2 if is_complex else itemsize
    turned = bytearray(len(raw))
    for byte in range(width):
        turned[byte::width] = raw[width - 1 - byte :: width]
    return bytes(turned)


_hints.install(globals())
