"""Tensors: construction, conversion and printing."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nxla as nx

NUMPY_DTYPES = [
    np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64,
    np.float16, np.float32, np.float64, np.complex64, np.complex128,
]  # fmt: skip


@pytest.mark.parametrize("dtype", NUMPY_DTYPES)
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
def test_numpy_round_trip(dtype, shape):
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    back = np.asarray(nx.tensor(array))
    assert back.dtype == dtype
    np.testing.assert_array_equal(back, array)


def test_arrays_of_any_layout():
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    for view in (array.T, array[::-1], array[:, ::2], np.asfortranarray(array)):
        np.testing.assert_array_equal(np.asarray(nx.tensor(view)), view)


def test_dlpack_round_trip():
    array = np.arange(6, dtype=np.int64).reshape(2, 3)
    tensor = nx.from_dlpack(array)
    np.testing.assert_array_equal(np.from_dlpack(tensor), array)


def test_tensors_copy_arrays():
    array = np.zeros(4, np.float32)
    tensor = nx.tensor(array)
    array[0] = 1.0
    assert tensor.tolist() == [0.0, 0.0, 0.0, 0.0]


def test_dtypes_of_scalars_and_nested_lists():
    assert nx.tensor(3).dtype == nx.int32
    assert nx.tensor(3.5).dtype == nx.float32
    assert nx.tensor(True).dtype == nx.bool
    assert nx.tensor(1 + 2j).dtype == nx.complex64
    assert nx.tensor([[1, 2.5], [3, 4]]).tolist() == [[1.0, 2.5], [3.0, 4.0]]


def test_dtypes_compare_with_anything():
    assert nx.float32 == "float32" == nx.float32
    assert nx.float32 == np.dtype("float32")
    assert nx.float32 != None  # noqa: E711 - the comparison is what is tested
    assert nx.float32 != object()


def test_pickling():
    tensor = nx.tensor([[1.0, 2.0]], dtype=nx.bfloat16)
    loaded = pickle.loads(pickle.dumps(tensor))
    assert loaded.dtype == nx.bfloat16
    assert nx.astype(loaded, nx.float32).tolist() == [[1.0, 2.0]]


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.floats(-1e3, 1e3, width=32), min_size=1, max_size=20),
    st.floats(-1e3, 1e3, width=32),
)
def test_arithmetic_matches_numpy(numbers, scalar):
    array = np.array(numbers, np.float32)
    tensor = nx.tensor(array)
    with np.errstate(all="ignore"):
        pairs = [
            (tensor + scalar, array + np.float32(scalar)),
            (scalar - tensor, np.float32(scalar) - array),
            (tensor * tensor, array * array),
            (nx.maximum(tensor, scalar), np.maximum(array, np.float32(scalar))),
        ]
    for ours, theirs in pairs:
        np.testing.assert_array_equal(np.asarray(ours), theirs)


@settings(deadline=None, max_examples=60)
@given(st.integers(-50, 50), st.integers(-50, 50).filter(bool))
def test_integer_division_matches_python(x, y):
    left, right = nx.tensor(x), nx.tensor(y)
    assert (left // right).item() == x // y
    assert (left % right).item() == x % y


def test_indexing_matches_numpy():
    array = np.arange(60).reshape(3, 4, 5)
    tensor = nx.tensor(array)
    keys = [
        0, -1, (1, 2), (slice(None), 1), (slice(2, 0, -1),), (..., slice(None, None, 2)),
        (None, 1), (1, None, slice(1, 3)), (slice(0, 0),),
    ]  # fmt: skip
    for key in keys:
        np.testing.assert_array_equal(np.asarray(tensor[key]), array[key])
    np.testing.assert_array_equal(np.asarray(tensor[nx.tensor([2, 0])]), array[[2, 0]])
    with pytest.raises(IndexError, match="index 3 is out of range for axis 0 of size 3"):
        tensor[3]


def test_single_elements_support_format_specs() -> None:
    assert f"{nx.tensor(3.14159):.2f}" == "3.14"
    assert f"{nx.tensor([[7]]):>4}" == "   7"
    assert f"{nx.tensor(1 + 2j)}" == str(nx.tensor(1 + 2j))
    with pytest.raises(nx.ArgumentError, match="must have exactly one element"):
        f"{nx.zeros((2,)):.2f}"


def test_oversized_tensors_raise_out_of_memory() -> None:
    with pytest.raises(nx.OutOfMemoryError, match="cannot allocate"):
        nx.zeros((1 << 40, 1 << 20))
    with pytest.raises(nx.OutOfMemoryError, match="cannot allocate"):
        nx.jit(lambda x: nx.sum(nx.exp(nx.broadcast_to(x, (1 << 40, 1 << 20))), axis=0))(1.0)


def test_repr_and_tolist_of_huge_empty_tensors():
    x = nx.zeros((2**40, 0))
    assert repr(x).count("[]") == 6
    with pytest.raises(MemoryError, match="tolist"):
        x.tolist()
    assert nx.zeros((2, 0)).tolist() == [[], []]


@pytest.mark.parametrize(
    "make",
    [
        lambda names: nx.iota((2, 3), names=names),
        lambda names: nx.eye(2, names=names),
        lambda names: nx.zeros((2, 3), names=names),
        lambda names: nx.full((2, 3), 7, names=names),
        lambda names: nx.full((2, 3), nx.tensor(7), names=names),
    ],
)
def test_creation_functions_require_all_axis_names(make, compiler):
    with nx.default_options(compiler=compiler):
        assert make(["a", None]).names == ["a", None]
        for names in (["a"], ["a", "b", "c"]):
            with pytest.raises(nx.ShapeError, match="names: expected 2 entries"):
                make(names)
            with pytest.raises(nx.ShapeError, match="names: expected 2 entries"):
                nx.jit(lambda names=names: make(names))()
