"""Valid and invalid DLPack capsules that the tests construct directly."""

import ctypes

import numpy as np
import pytest

import nxla as nx

READ_ONLY, IS_COPIED = 1, 2
FLOAT32 = (2, 32)


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Managed(ctypes.Structure):
    _fields_ = [("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    ]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Exporter:
    """Exports memory with arbitrary fields, which may be invalid."""

    def __init__(self, array, version=None, flags=0, **fields):
        shape = array.shape
        dims = (ctypes.c_int64 * len(shape))(*fields.pop("dims", shape))
        code, bits = FLOAT32
        tensor = DLTensor(array.ctypes.data, 1, 0, len(shape), code, bits, 1, dims, None, 0)
        self.deleted = 0
        self.deleter = DELETER(self.delete)
        address = ctypes.cast(self.deleter, ctypes.c_void_p)
        if version is None:
            self.managed, self.name = Managed(tensor, None, address), b"dltensor"
        else:
            self.managed = Versioned(version, 0, None, address, flags, tensor)
            self.name = b"dltensor_versioned"
        for name, value in fields.items():
            setattr(self.managed.tensor, name, value)
        self.array, self.version = array, version

    def delete(self, _):
        self.deleted += 1

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **kwargs):
        if self.version is None and kwargs:
            raise TypeError("__dlpack__() got an unexpected keyword argument 'max_version'")
        return new_capsule(ctypes.addressof(self.managed), self.name, None)


def numbers(size=2048):
    return np.arange(size, dtype=np.float32)


def shares(tensor, x):
    return np.shares_memory(tensor.numpy(), x)


@pytest.mark.parametrize("version", [None, 1])
def test_capsules_are_copied_and_released(version):
    exporter = Exporter(numbers(), version)
    tensor = nx.from_dlpack(exporter)
    assert exporter.deleted == 1
    exporter.array[...] = -1
    assert tensor.tolist() == numbers().tolist()


@pytest.mark.parametrize("version", [None, 1])
def test_shared_capsules_are_released_with_the_tensor(version):
    exporter = Exporter(numbers(), version)
    tensor = nx.from_dlpack(exporter, copy=False)
    assert shares(tensor, exporter.array)
    assert exporter.deleted == 0
    del tensor
    assert exporter.deleted == 1


def test_only_copied_capsules_are_shared_by_default():
    """The read-only flag forbids writes by the consumer, but not by the exporter."""
    exporter = Exporter(numbers(), 1, READ_ONLY)
    assert not shares(nx.from_dlpack(exporter), exporter.array)
    exporter = Exporter(numbers(), 1, IS_COPIED)
    assert shares(nx.from_dlpack(exporter), exporter.array)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"data": None}, "data: must not be null"),
        ({"shape": None}, "must have a size for each of 1 axes"),
        ({"dims": (-1,)}, "sizes must not be negative; got -1"),
        ({"ndim": -1}, "number of axes must not be negative; got -1"),
        ({"dims": (1 << 62,)}, "must fit the address space"),
        ({"code": 99}, "type code 99"),
        ({"lanes": 2}, "type code"),
    ],
)
@pytest.mark.parametrize("version", [None, 1])
@pytest.mark.parametrize("copy", [None, False])
def test_invalid_capsules_are_rejected_and_released(fields, message, version, copy):
    exporter = Exporter(numbers(8), version, **fields)
    with pytest.raises((nx.ArgumentError, nx.DTypeError), match=message):
        nx.from_dlpack(exporter, copy=copy)
    assert exporter.deleted == 1


def test_a_capsule_of_an_unknown_version_is_refused():
    exporter = Exporter(numbers(8), 2)
    with pytest.raises(nx.ArgumentError, match="must have major version 1 of DLPack; got 2"):
        nx.from_dlpack(exporter)
    assert exporter.deleted == 1


@pytest.mark.parametrize("version", [None, 1])
@pytest.mark.parametrize("copy", [None, True, False])
def test_an_empty_capsule_is_an_empty_tensor(version, copy):
    empty = np.zeros((0, 3), np.float32)
    for fields in ({}, {"data": None}, {"data": 1}):
        tensor = nx.from_dlpack(Exporter(empty, version, **fields), copy=copy)
        assert (tensor.shape, tensor.dtype) == ((0, 3), nx.float32)
    assert nx.asarray(empty, copy=copy).shape == (0, 3)


def test_a_misaligned_capsule_is_copied():
    memory = np.frombuffer(bytearray(numbers(9).tobytes()), np.uint8)
    exporter = Exporter(numbers(8), data=memory.ctypes.data + 1)
    with pytest.raises(nx.ArgumentError, match="copy: must not be False for memory"):
        nx.from_dlpack(exporter, copy=False)
    assert nx.from_dlpack(exporter).tolist() == memory[1:33].view(np.float32).tolist()


#: Strides of arrays over 24 numbers: the first element, the shape and the strides in elements.
STRIDED = {
    "transposed": (0, (3, 8), (1, 3)),
    "every second": (0, (12,), (2,)),
    "rows with a gap": (1, (3, 4), (8, 1)),
    "permuted": (0, (4, 2, 3), (1, 12, 4)),
    "reversed": (23, (24,), (-1,)),
    "reversed rows": (16, (3, 8), (-8, 1)),
    "repeated": (5, (4, 3), (0, 0)),
    "repeated rows": (2, (3, 4), (0, 1)),
    "size 1": (3, (1, 5), (-(2**62), 2)),
    "overlapping": (0, (5, 4), (1, 1)),
}


@pytest.mark.parametrize("name", STRIDED)
@pytest.mark.parametrize("version", [None, 1])
def test_strided_capsules_are_copied_in_row_major_order(name, version):
    start, shape, strides = STRIDED[name]
    memory = numbers(24)
    places = start + sum(
        stride * index
        for stride, index in zip(strides, np.indices(shape), strict=True)
        if stride != -(2**62)
    )
    expected = memory[places]

    def exporter():
        entries = (ctypes.c_int64 * len(strides))(*strides)
        made = Exporter(np.empty(shape, np.float32), version, IS_COPIED, strides=entries)
        made.kept, made.managed.tensor.data = memory, memory.ctypes.data
        made.managed.tensor.byte_offset = 4 * start
        return made

    read = [
        nx.from_dlpack,
        nx.tensor,
        nx.asarray,
        lambda x: nx.asarray(x, copy=True),
        nx.jit(lambda x: x * 1),
        lambda x: nx.zeros(shape) + x,
    ]
    for function in read:
        made = exporter()
        assert function(made).tolist() == expected.tolist()
        assert made.deleted >= 1
    with pytest.raises(nx.ArgumentError, match="copy: must not be False for memory"):
        nx.from_dlpack(exporter(), copy=False)


@pytest.mark.parametrize("stride", [2**61, 2**63 - 1, -(2**63), -(2**61)])
def test_strides_outside_the_address_space_are_rejected(stride):
    exporter = Exporter(numbers(8), 1, strides=(ctypes.c_int64 * 1)(stride))
    with pytest.raises(nx.ArgumentError, match="strides: elements must be in the address space"):
        nx.from_dlpack(exporter)
    assert exporter.deleted == 1
