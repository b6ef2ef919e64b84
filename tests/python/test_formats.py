"""Damaged data raises a `FormatError` with the position, without excessive allocations."""

import dataclasses
import hashlib
import io
import json
import pickle
import struct
import zipfile

import numpy as np
import pytest

import nxla as nx


def with_checksum(data):
    """Return a container: the signature, the checksum and the data."""
    return b"nxla\0\0\0\2" + hashlib.blake2b(data, digest_size=16).digest() + data


def serialized(head, data=b""):
    head = json.dumps(head).encode() if not isinstance(head, bytes) else head
    return with_checksum(struct.pack("<Q", len(head)) + head + data)


def nested(depth):
    return b'{"list":[' * depth + b'{"value":1}' + b"]}" * depth


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "byte 0: must be the start of a container"),
        (b"nxla\0\0\0\1" + bytes(24), "byte 0: must be the start of a container"),
        (b"nxla\0\0\0\2" + bytes(24), "byte 8: must be the checksum"),
        (with_checksum(b"\xff" * 8), "byte 24: must be the length of a head"),
        (serialized(b"{"), "byte 32: must be JSON"),
        (serialized(b"[" * 100_000), "byte 32: must be JSON"),
        (serialized(nested(300)), "256 levels at most"),
        (serialized(7), "head: expected a kind and its value, found 7"),
        (serialized({"value": [1]}), "head.value: expected a number"),
        (serialized({"complex": ["1", 2]}), "head.complex: expected two numbers"),
        (serialized({"tensor": ["f32", "9" * 9, None, []]}), "expected a shape, found '999999999'"),
        (serialized({"tensor": ["f32", [-1], None, []]}), "expected a shape"),
        (serialized({"tensor": ["f32", [True], None, []]}), "expected a shape"),
        (serialized({"tensor": ["f32", [2**70], None, []]}), "must start 47223664828696"),
        (serialized({"tensor": ["f32", [3], None, []]}, b"12345678"), "12 bytes of the elements"),
        (serialized({"tensor": ["f77", [1], None, []]}), "f77"),
        (serialized({"tensor": ["pred", [1], None, []]}, b"\7"), "got 0x07 at index 0"),
        (serialized({"tensor": ["f32", [0], [3], []]}), "expected a name or null"),
        (serialized({"dict": [1]}), "head.dict: expected an object"),
        (serialized({"set": []}), "expected a kind of value, found 'set'"),
        (serialized({"class": 3}), "expected the name of a class"),
        (serialized({"list": [{"value": 1}]}, b"more"), "must be the end; got 4 bytes more"),
        (serialized({"container": ["dict", None, {"value": 3}, []]}), "container"),
        (serialized({"container": ["named", "builtins:int", {"value": 3}, []]}), "a named tuple"),
    ],
)
def test_container_errors_state_position_and_expectation(data, message):
    with pytest.raises(nx.FormatError) as error:
        nx.deserialize(data)
    assert message in str(error.value)
    assert isinstance(error.value, ValueError)


def test_every_flipped_bit_of_a_container_is_detected():
    data = nx.serialize({"w": nx.tensor([1.0, -2.0]), "name": "a", "none": None})
    for bit in range(8 * len(data)):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(nx.FormatError):
            nx.deserialize(damaged)


@pytest.mark.parametrize("suffix", [".nxla", ".npy", ".npz", ".safetensors"])
def test_errors_of_load_name_the_file(suffix, tmp_path):
    file = tmp_path / f"model{suffix}"
    nx.save(file, nx.tensor([1.0, 2.0]) if suffix == ".npy" else {"w": nx.tensor([1.0, 2.0])})
    file.write_bytes(file.read_bytes()[:-3])
    with pytest.raises(nx.FormatError) as error:
        nx.load(file)
    assert str(error.value).startswith(f"load: {file}: ")


@dataclasses.dataclass
class Settings:
    rate: float
    steps: int


@dataclasses.dataclass
class Registered:
    rate: float


nx.register_container(
    Registered, lambda value: ((value.rate,), None), lambda _, children: Registered(*children)
)


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("Settings", ["rate", "steps", "__class__"]),
        ("Settings", ["rate", "other"]),
        ("Settings", ["steps", "rate"]),
        ("Settings", ["rate", "rate"]),
        ("Settings", ["rate"]),
        ("Settings", []),
        ("Registered", ["rate"]),
    ],
)
def test_serialized_dataclasses_have_exactly_their_fields(name, fields):
    def instance(fields, values):
        names = {"tuple": [{"value": field} for field in fields]}
        return serialized({"container": ["dataclass", f"{__name__}:{name}", names, values]})

    values = [{"value": 1} for _ in fields]
    with pytest.raises(nx.FormatError, match=r"a dataclass|fields: must be"):
        nx.deserialize(instance(fields, values))
    if name == "Settings":
        with pytest.raises(nx.FormatError, match="children: must be 2"):
            nx.deserialize(instance(["rate", "steps"], values[:1]))
        accepted = instance(["rate", "steps"], [{"value": 1}, {"value": 2}])
        assert nx.deserialize(accepted) == Settings(1, 2)


def test_deserialize_does_not_call_module_getattr():
    class Lazy:
        def __getattr__(self, name):
            raise AssertionError("must not be called")

    import sys

    sys.modules["lazy_module_of_a_test"] = Lazy()
    try:
        with pytest.raises(nx.ArgumentError, match="must be defined"):
            nx.deserialize(serialized({"class": "lazy_module_of_a_test:name"}))
    finally:
        del sys.modules["lazy_module_of_a_test"]


def npy(header, data=b"", version=1):
    packed = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + packed + header + data


def head(descr="'<f4'", order="False", shape="(3,)"):
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}}}".encode()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "at byte 0, expected the start of a file of NumPy"),
        (b"\x93NUMPY\x07\x00", "at byte 6, expected a version"),
        (npy(head())[:9], "at byte 6, expected a version"),
        (npy(head())[:20], "at byte 8, expected a header of at most 10 bytes"),
        (npy(b" " * 20_000), "at byte 8, expected a header of at most 10000 bytes"),
        (npy(b"(" * 5000), "at byte 10, expected a header"),
        (npy(b"__import__('os').abort()"), "at byte 10, expected a header"),
        (npy(head(shape="(1 << 40,)")), "at byte 10, expected a header"),
        (npy(head(shape="(-3,)")), "at byte 10, expected a header"),
        (npy(head(shape="(True,)")), "at byte 10, expected a header"),
        (npy(head(order="3")), "at byte 10, expected a header"),
        (npy(head(shape="(1099511627776,)")), "expected 4398046511104 bytes of elements"),
        (npy(head(), b"12345678901"), "expected 12 bytes of elements; got 11"),
        (npy(head(), b"1234567890123"), "expected 12 bytes of elements; got 13"),
        (npy(head(), b"", 2), "expected 12 bytes of elements"),
        (npy(head(descr="'|O'", shape="()"), bytes(8)), "expected a dtype that exists in nxla"),
        (npy(head(descr="'zzz'")), "expected a dtype that exists in nxla"),
        (npy(head(descr="'|V0'")), "expected a dtype that exists in nxla"),
        (npy(head(descr="('<f4', (2,))", shape="(1,)"), bytes(8)), "expected a header"),
        (npy(head(shape=f"({2**64}, 0)")), "at byte 10, expected a header"),
        (npy(head(shape=f"({2**63}, 8)")), "expected fewer bytes of elements"),
        (npy(head(shape=str((1,) * 65)), bytes(4)), "64"),
    ],
)
def test_numpy_file_errors_state_position_and_expectation(data, message):
    with pytest.raises(nx.FormatError) as error:
        nx.load_numpy(data)
    assert message in str(error.value)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as members:
        members.writestr("x.npy", data)
    with pytest.raises(nx.FormatError, match='member "x"'):
        nx.load_numpy_archive(archive.getvalue())


@pytest.mark.parametrize(
    "arguments",
    [
        ([1], ["\ud800"], []),
        ([1], None, ["\ud800"]),
        ([2**70], None, []),
        ([-1], None, []),
        ("1", None, []),
        ([2], None, []),
        ([1] * 65, None, []),
        ([1], ["a", "b"], []),
        ([1], ["a", 3], []),
        ([1], None, ["a", "b"]),
    ],
)
def test_invalid_pickles_raise_format_errors(arguments):
    rebuild = nx.tensor([1.0]).__reduce__()[0]
    assert rebuild(bytes(4), nx.DType("f32"), [1], ["a"], []).names == ["a"]
    with pytest.raises(nx.FormatError):
        rebuild(bytes(4), nx.DType("f32"), *arguments)


def test_archives_with_excessive_sizes_are_rejected():
    file = io.BytesIO()
    np.savez_compressed(file, x=np.zeros(1 << 20))
    assert nx.load_numpy_archive(file.getvalue())["x"].shape == (1 << 20,)
    data = bytearray(file.getvalue())
    # The size field of the archive directory, which is read before unpacking.
    offset = data.rindex(b"PK\x01\x02") + 24
    data[offset : offset + 4] = struct.pack("<I", 0xFFFFFF00)
    with pytest.raises(nx.FormatError, match="got 4294967040"):
        nx.load_numpy_archive(bytes(data))
    with pytest.raises(nx.FormatError, match="the archive is damaged"):
        nx.load_numpy_archive(file.getvalue()[:-30])


def test_damaged_programs_and_stages_raise():
    expression = nx.debug_expr(lambda x: nx.sin(x) + 1)(nx.zeros(3))
    data = expression.to_bytes()
    for cut in (data[:3], data[:-1], b"foo" + data):
        with pytest.raises(nx.FormatError):
            nx.Expression.from_bytes(cut)
    stage = nx.graph.split(expression, lambda node: "none").stages[0]
    with pytest.raises(nx.FormatError, match="at byte 4"):
        nx.Stage.from_bytes(stage.to_bytes()[:7])
    with pytest.raises(nx.FormatError, match="cannot be read"):
        nx.Stage.from_bytes(stage.to_bytes()[:100] + bytes(200))
    pickled = pickle.dumps(nx.tensor([True, False]))
    with pytest.raises(nx.FormatError, match="got 0x07 at index 0"):
        pickle.loads(pickled.replace(b"\x01\x00", b"\x07\x00"))
