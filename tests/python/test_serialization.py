"""Tensors as bytes: pickles, NumPy files, and the format of nxla."""

import io
import pickle

import numpy as np
import pytest

import nxla as nx

DTYPES = ["pred", "u4", "s8", "u64", "f8_e4m3fn", "bf16", "f16", "f32", "f64", "c64", "c128"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("save", [nx.serialize, pickle.dumps])
def test_tensors_round_trip(dtype, save):
    x = nx.astype(nx.tensor([[0, 1, 1], [1, 0, 1]], names=["row", None]), dtype)
    restored = (nx.deserialize if save is nx.serialize else pickle.loads)(save(x))
    assert (restored.dtype, restored.names) == (x.dtype, x.names)
    assert nx.to_binary(restored) == nx.to_binary(x)
    assert restored.tolist() == x.tolist()


def test_containers_round_trip():
    value = {"a": (nx.tensor(1.5), [2, 2.5, 1 + 2j, None, True, "text"]), "b": nx.zeros((0, 3))}
    restored = nx.deserialize(nx.serialize(value))
    assert restored["a"][0].item() == 1.5
    assert restored["a"][1] == value["a"][1]
    assert restored["b"].shape == (0, 3)


def test_damaged_containers_are_rejected():
    saved = nx.serialize([nx.tensor([1, 2]), 3])
    for damaged in (b"", b"foo", saved[:4], saved[:-1], saved + b"\0", b"x" + saved[1:]):
        with pytest.raises(nx.FormatError, match="deserialize"):
            nx.deserialize(damaged)
    with pytest.raises(nx.ArgumentError, match="got a set"):
        nx.serialize({"a": {1}})


def test_raw_bytes_round_trip():
    x = nx.tensor([[1.0, -2.0]], "f16")
    assert nx.to_binary(x) == x.numpy().tobytes()
    assert nx.from_binary(nx.to_binary(x), "f16").tolist() == [1.0, -2.0]
    for data, dtype in ((b"", "u8"), (b"123", "f16")):
        with pytest.raises(nx.FormatError, match="from_binary"):
            nx.from_binary(data, dtype)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<i4", ">i4", "<f8", ">f2", "|b1", ">c8"])
def test_numpy_files_load(dtype, order, tmp_path):
    array = np.asarray([[0, 1, 2], [3, 4, 5]], dtype=dtype, order=order)
    path = tmp_path / "array.npy"
    np.save(path, array)
    for source in (path, path.read_bytes()):
        loaded = nx.load_numpy(source)
        assert loaded.tolist() == array.tolist()
        assert loaded.numpy().dtype == array.dtype.newbyteorder("=")


def test_invalid_numpy_files_are_rejected(tmp_path):
    archive = io.BytesIO()
    np.savez(archive, x=np.zeros(2))
    with pytest.raises(nx.FormatError, match="load_numpy_archive"):
        nx.load_numpy(archive.getvalue())
    single = io.BytesIO()
    np.save(single, np.zeros(2))
    with pytest.raises(nx.FormatError, match=r"use nx\.load_numpy"):
        nx.load_numpy_archive(single.getvalue())
    objects = io.BytesIO()
    np.save(objects, np.array([{}]), allow_pickle=True)
    for data in (b"", b"nothing", objects.getvalue()):
        with pytest.raises(nx.FormatError, match="load_numpy"):
            nx.load_numpy(data)
    with pytest.raises(FileNotFoundError):
        nx.load_numpy(tmp_path / "missing.npy")
