"""DLPack capsules and buffers with random, mostly invalid fields.

The memory behind them is larger than any valid field needs. A reader that trusts an undetectable
false field therefore reads only memory of this process.
"""

from __future__ import annotations

import ctypes
import math
from typing import TYPE_CHECKING, Any

import nxla as nx
from fuzz.driver import Failure, main

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

#: The size in bytes of the memory to which capsules point.
MEMORY = 1 << 20
_MEMORY = (ctypes.c_uint8 * MEMORY)()
#: Strides can be negative, so capsules point to the middle.
_ADDRESS = ctypes.addressof(_MEMORY) + MEMORY // 2


class _Device(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_int), ("number", ctypes.c_int))


class _Type(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int),
        ("type", _Type),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


_capsule = ctypes.pythonapi.PyCapsule_New
_capsule.restype = ctypes.py_object
_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Exporter:
    """An object whose capsule has the fields of a case."""

    def __init__(self, case: Any) -> None:
        self.case = case
        self.kept: list[Any] = []

    def __dlpack_device__(self) -> Any:
        return self.case["says_device"]

    def __dlpack__(self, **kwargs: Any) -> Any:
        case = self.case
        if case["answer"] == "raise":
            raise RuntimeError("no")
        if case["answer"] == "other":
            return 3
        if kwargs and not case["versioned"]:
            raise TypeError("no such argument")
        made = _Versioned() if case["versioned"] else _Managed()
        if case["versioned"]:
            made.major, made.minor, made.flags = case["version"], 0, case["flags"]
        tensor = made.tensor
        tensor.data = None if case["data"] is None else _ADDRESS + case["data"]
        tensor.device = _Device(*case["device"])
        tensor.ndim = case["ndim"]
        tensor.type = _Type(*case["type"])
        for name in ("shape", "strides"):
            if case[name] is not None:
                # The array has as many entries as the largest number of axes that is accepted.
                array = (ctypes.c_int64 * 1100)(*case[name])
                self.kept.append(array)
                setattr(tensor, name, array)
        tensor.byte_offset = case["offset"]
        self.kept.append(made)
        name = b"dltensor_versioned" if case["versioned"] else b"dltensor"
        self.kept.append(name)
        return _capsule(ctypes.addressof(made), name, None)


_KEPT: list[Any] = []


def generate(rng: random.Random) -> Any:
    rank = rng.choice([0, 1, 1, 2, 3])
    sizes = [0, 1, 2, 3, 5, 8]
    if rng.random() < 0.3:
        sizes += [-1, -(2**63), 2**31, 2**40, 2**62, 2**63 - 1]
    shape = [rng.choice(sizes) for _ in range(rank)]
    strides = None
    if rng.random() < 0.5:
        strides = [math.prod(shape[at + 1 :]) for at in range(rank)]
        strides = [stride if -(2**63) <= stride < 2**63 else 1 for stride in strides]
        if rank and rng.random() < 0.4:
            # Strides of small arrays stay inside of the memory, others leave the address space.
            inside = [0, -1, 7] if max(shape) <= 8 else []
            strides[rng.randrange(rank)] = rng.choice([*inside, 2**63 - 1, -(2**63)])
    return {
        "answer": rng.choice(["capsule"] * 12 + ["raise", "other"]),
        "says_device": rng.choice([[1, 0]] * 8 + [[2, 0], [-1, 5], [1], "x", None]),
        "versioned": rng.random() < 0.5,
        "version": rng.choice([1, 1, 1, 0, 2, 2**32 - 1]),
        "flags": rng.choice([0, 1, 2, 3, 2**64 - 1]),
        "data": rng.choice([0, 0, 0, 64, 1, 3, None]),
        "device": rng.choice([[1, 0], [1, 0], [2, 0], [13, 9]]),
        "ndim": rng.choice([rank] * 8 + [-1, 0, 2**31 - 1, 5000, 700]),
        "type": rng.choice(
            [
                [2, 32, 1],
                [2, 64, 1],
                [0, 8, 1],
                [1, 16, 1],
                [6, 8, 1],
                [5, 64, 1],
                [4, 16, 1],
                [2, 16, 1],
                [2, 32, 4],
                [2, 7, 1],
                [9, 8, 1],
                [255, 255, 65535],
                [0, 0, 0],
                [1, 64, 0],
            ]
        ),
        "shape": shape if rng.random() < 0.93 else None,
        "strides": strides,
        "offset": rng.choice([0, 0, 0, 4, 1, 2**63, 2**64 - 8]),
        "function": rng.choice(["from_dlpack", "tensor"]),
    }


def check(case: Any) -> int:
    exporter = Exporter(case)
    # Tensors may keep the exported memory.
    _KEPT.append(exporter)
    del _KEPT[:-100]
    read = nx.from_dlpack if case["function"] == "from_dlpack" else nx.tensor
    try:
        x = read(exporter)
    except (nx.NxlaError, TypeError, ValueError, BufferError, MemoryError):
        return 1
    except RuntimeError as raised:
        if case["answer"] != "raise":
            raise Failure(f"raises {type(raised).__name__}: {raised}") from raised
        return 1
    except BaseException as raised:
        raise Failure(f"raises {type(raised).__name__}: {raised}") from raised
    if (
        case["shape"] is not None
        and case["ndim"] == len(case["shape"])
        and list(x.shape) != case["shape"]
    ):
        raise Failure(f"the shape is {x.shape}")
    if any(size < 0 for size in x.shape) or x.size * x.dtype.itemsize > MEMORY:
        raise Failure(f"believed {x.dtype}{x.shape}")
    repr(x)
    return 1


def smaller(case: Any) -> Iterator[Any]:
    plain = {
        "says_device": [1, 0],
        "versioned": False,
        "version": 1,
        "flags": 0,
        "data": 0,
        "device": [1, 0],
        "type": [2, 32, 1],
        "strides": None,
        "offset": 0,
        "function": "from_dlpack",
    }
    for name, value in plain.items():
        if case[name] != value:
            yield {**case, name: value}


if __name__ == "__main__":
    main(["buffers"])
