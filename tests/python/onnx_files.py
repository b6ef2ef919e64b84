"""Writes ONNX files without the package `onnx`: the messages as bytes."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

import nxla as nx

#: The data types of ONNX by dtype of NumPy.
TYPES = {
    "float32": 1,
    "uint8": 2,
    "int8": 3,
    "int16": 5,
    "int32": 6,
    "int64": 7,
    "bool": 9,
    "float16": 10,
    "float64": 11,
}


def field(number: int, value: int | bytes | str) -> bytes:
    """Return a field of a protocol buffer."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def node(op: str, inputs: list[str], outputs: list[str], *attributes: bytes, **more: str) -> bytes:
    """Return a NodeProto."""
    parts = [field(1, name) for name in inputs] + [field(2, name) for name in outputs]
    parts += [field(4, op), field(3, more.get("name", "")), field(7, more.get("domain", ""))]
    return b"".join(parts + [field(5, attribute) for attribute in attributes])


def integer(name: str, value: int) -> bytes:
    """Return an AttributeProto of an integer."""
    return field(1, name) + field(3, value) + field(20, 2)


def graph_attribute(name: str, graph: bytes) -> bytes:
    return field(1, name) + field(6, graph) + field(20, 5)


def value(name: str, shape: list[int | str] | None, data_type: int = 1) -> bytes:
    """Return a ValueInfoProto."""
    dims = b""
    for size in shape or []:
        dims += field(1, field(1, size) if isinstance(size, int) else field(2, size))
    tensor = field(1, data_type) + (field(2, dims) if shape is not None else b"")
    return field(1, name) + field(2, field(1, tensor))


def tensor(name: str, array: Any) -> bytes:
    """Return a TensorProto with raw data."""
    dims = b"".join(field(1, size) for size in array.shape)
    return dims + field(2, TYPES[str(array.dtype)]) + field(8, name) + field(9, array.tobytes())


def graph(
    nodes: list[bytes], inputs: list[bytes], outputs: list[bytes], weights: list[bytes] = ()
) -> bytes:
    """Return a GraphProto."""
    parts = [field(1, each) for each in nodes] + [field(5, each) for each in weights]
    parts += [field(11, each) for each in inputs] + [field(12, each) for each in outputs]
    return b"".join([field(2, "test"), *parts])


def model(graph: bytes, version: int = 21, functions: list[bytes] = ()) -> bytes:
    """Return a ModelProto."""
    parts = [field(25, function) for function in functions]
    return field(1, 10) + field(8, field(2, version)) + field(7, graph) + b"".join(parts)


def floating(name: str, value: float) -> bytes:
    """Return an AttributeProto of a 32-bit float."""
    return field(1, name) + varint(2 << 3 | 5) + struct.pack("<f", value) + field(20, 1)


def text(name: str, value: str) -> bytes:
    """Return an AttributeProto of a string."""
    return field(1, name) + field(4, value) + field(20, 3)


def integers(name: str, values: list[int]) -> bytes:
    """Return an AttributeProto of a list of integers."""
    return field(1, name) + b"".join(field(8, value) for value in values) + field(20, 7)


def floats(name: str, values: list[float]) -> bytes:
    """Return an AttributeProto of a list of 32-bit floats."""
    packed = struct.pack(f"<{len(values)}f", *values)
    return field(1, name) + field(7, packed) + field(20, 6)


def texts(name: str, values: list[str]) -> bytes:
    """Return an AttributeProto of a list of strings."""
    return field(1, name) + b"".join(field(9, value) for value in values) + field(20, 8)


def run(
    op: str,
    inputs: list[Any],
    *attributes: bytes,
    outputs: int = 1,
    constants: dict[int, Any] | None = None,
    version: int = 21,
    domain: str = "",
) -> Any:
    """Apply an operator; inputs by position are arguments, `constants` are initializers."""
    arrays = [np.asarray(each) if each is not None else None for each in inputs]
    names = [f"x{index}" if each is not None else "" for index, each in enumerate(arrays)]
    initializers = {f"c{index}": np.asarray(each) for index, each in (constants or {}).items()}
    for index in constants or {}:
        names[index:index] = [f"c{index}"]
    results = [f"y{index}" for index in range(outputs)]
    declared = [
        value(f"x{index}", list(each.shape), TYPES[str(each.dtype)])
        for index, each in enumerate(arrays)
        if each is not None
    ]
    body = graph(
        [node(op, names, results, *attributes, domain=domain)],
        declared,
        [value(name, None) for name in results],
        [tensor(name, each) for name, each in initializers.items()],
    )
    sets = field(8, field(1, domain) + field(2, 1)) if domain else b""
    function = nx.from_onnx(model(body, version) + sets)
    return function(*[nx.tensor(each) for each in arrays if each is not None])
