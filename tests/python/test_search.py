"""Positions of elements, distinct elements, and sorting."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nxla as nx

SETTINGS = settings(max_examples=100, deadline=None)
nan = float("nan")


@st.composite
def arrays(draw, numbers=(0, 1, 2, -3, 2.5, nan, math.inf, -0.0)):
    dtypes = ["float32", "float64", "int32", "int64", "uint8", "bool", "complex64"]
    dtype = draw(st.sampled_from(dtypes))
    shape = tuple(draw(st.lists(st.integers(0, 4), min_size=1, max_size=3)))
    total = int(np.prod(shape))
    drawn = draw(st.lists(st.sampled_from(numbers), min_size=total, max_size=total))
    if dtype in ("int32", "int64", "uint8", "bool"):
        drawn = [0 if not math.isfinite(number) else abs(int(number)) for number in drawn]
    return np.array(drawn, dtype=dtype).reshape(shape)


@SETTINGS
@given(arrays())
def test_nonzero(x):
    found = nx.nonzero(nx.tensor(x))
    assert [axis.tolist() for axis in found] == [axis.tolist() for axis in np.nonzero(x)]
    assert all(axis.dtype == nx.int32 for axis in found)


@SETTINGS
@given(arrays())
def test_unique(x):
    found = nx.unique_all(nx.tensor(x))
    values, inverse = found.values.numpy(), found.inverse_indices.numpy()
    has_nan = x.dtype.kind in "fc"
    nans = np.isnan(x.reshape(-1)) if has_nan else np.zeros(x.size, bool)
    assert values.dtype == x.dtype
    assert inverse.shape == x.shape
    # The inverse reconstructs the tensor; counts and first positions are correct.
    assert np.array_equal(values[inverse], x, equal_nan=has_nan)
    assert len(values) == len(np.unique(x.reshape(-1)[~nans])) + nans.sum()
    assert np.array_equal(values[: len(values) - nans.sum()], np.unique(x.reshape(-1)[~nans]))
    flat = inverse.reshape(-1)
    assert found.counts.tolist() == np.bincount(flat, minlength=len(values)).tolist()
    assert found.indices.tolist() == [flat.tolist().index(index) for index in range(len(values))]
    assert np.array_equal(nx.unique_values(x).numpy(), values, equal_nan=has_nan)
    assert nx.unique_counts(x).counts.tolist() == found.counts.tolist()
    assert nx.unique_inverse(x).inverse_indices.tolist() == inverse.tolist()


@SETTINGS
@given(
    st.lists(st.sampled_from([-2.0, 0.0, 1.0, 1.5, 3.0, math.inf, nan]), max_size=9),
    st.lists(st.sampled_from([-3.0, -2.0, 0.0, 1.0, 1.2, 3.0, 9.0, math.inf, nan]), max_size=6),
    st.sampled_from(["left", "right"]),
    st.booleans(),
)
def test_searchsorted_matches_numpy(numbers, queries, side, shuffled):
    x1, x2 = np.array(numbers, np.float32), np.array(queries, np.float32)
    order = np.argsort(x1, kind="stable")
    expected = np.searchsorted(x1[order], x2, side=side)
    if shuffled:
        found = nx.searchsorted(x1, x2, side=side, sorter=order)
    else:
        found = nx.searchsorted(x1[order], x2, side=side)
    assert found.tolist() == expected.tolist()
    assert found.dtype == nx.int32


def test_searchsorted_and_isin_in_jit(compiler):
    with nx.default_options(compiler=compiler):
        found = nx.jit(nx.searchsorted)(nx.tensor([1, 3, 3, 5]), nx.tensor([[3, 9], [0, 4]]))
        assert found.tolist() == [[1, 4], [0, 3]]
        isin = nx.jit(lambda x, y: nx.isin(x, y))
        assert isin(nx.arange(40), nx.arange(0, 40, 2)).tolist() == [True, False] * 20


@pytest.mark.parametrize("dtype", ["float32", "int64", "bfloat16"])
@pytest.mark.parametrize("axes", [(None, 0), (0, None), (0, 0)])
def test_vmapped_searchsorted(compiler, axes, dtype):
    rng = np.random.default_rng(1)
    x1 = np.sort(rng.integers(-9, 9, (3, 10)), axis=1)
    x2 = rng.integers(-9, 9, (3, 4, 5))
    x1, x2 = (x if axis == 0 else x[0] for x, axis in zip((x1, x2), axes, strict=True))
    with nx.default_options(compiler=compiler):
        search = nx.jit(nx.vmap(lambda x, y: nx.searchsorted(x, y, side="right"), in_axes=axes))
        found = search(nx.tensor(x1, dtype=dtype), nx.tensor(x2, dtype=dtype))
    entry = [
        lambda index, x=x, axis=axis: x[index] if axis == 0 else x
        for x, axis in zip((x1, x2), axes, strict=True)
    ]
    expected = [
        np.searchsorted(entry[0](index), entry[1](index), side="right") for index in range(3)
    ]
    assert found.tolist() == np.stack(expected).tolist()


@SETTINGS
@given(arrays(), arrays(), st.booleans())
def test_isin_matches_numpy(x1, x2, invert):
    found = nx.isin(nx.tensor(x1), nx.tensor(x2), invert=invert)
    assert found.tolist() == np.isin(x1, x2, invert=invert).tolist()
    assert nx.isin(3, [1, 3]).item()
    assert nx.isin([1, 3], 3).tolist() == [False, True]


def test_isin_with_integers_of_any_size():
    x = nx.tensor([1, 2])
    assert nx.isin(x, [2**64, 1]).tolist() == [True, False]
    assert nx.isin(x, (-1, 2**63, 2)).tolist() == [False, True]
    assert nx.isin(x, [2**64, -(2**70)], invert=True).tolist() == [True, True]
    large = nx.tensor([2**63 - 1, 2**53 + 1])
    assert nx.isin(large, [2**53, 2**63, -1, 2**64]).tolist() == [False, False]
    assert nx.isin(nx.tensor([True, False]), [2**64, 1]).tolist() == [True, False]
    assert nx.isin(nx.tensor([2.0**64, 1.0]), [2**64, -1]).tolist() == [True, False]
    assert nx.isin(2**64, [2**64, -1]).item()
    assert nx.jit(lambda x: nx.isin(x, [2**64, 1]))(x).tolist() == [True, False]


@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted_in_integers_of_any_size(side):
    ordered = [-(2**64), -1, 1, 1, 2**63, 2**64]
    numbers = np.array([-(2**63), -1, 0, 1, 2, 2**63 - 1])
    expected = np.searchsorted(np.array(ordered, dtype=object), numbers.astype(object), side)
    assert nx.searchsorted(ordered, numbers, side=side).tolist() == expected.tolist()
    assert nx.searchsorted([1, 2**64], 5, side=side).item() == 1
    assert nx.searchsorted(ordered, 1.5, side=side).item() == 4
    assert nx.searchsorted([2**64], nx.tensor([1, 2]), side=side).tolist() == [0, 0]


@pytest.mark.parametrize("count", [3, 40])
def test_isin_of_complex_numbers_matches_numpy(count):
    rng = np.random.default_rng(count)
    x1, x2 = (
        (rng.integers(-3, 4, shape) + 1j * rng.integers(-3, 4, shape)).astype("c8")
        for shape in ((6, 5), count)
    )
    x1[0, :3] = np.nan, complex(-0.0, 1.0), complex(1.0, np.nan)
    x2[:3] = complex(1.0, np.nan), complex(0.0, 1.0), np.nan
    expected = np.isin(x1, x2).tolist()
    assert nx.isin(x1, x2).tolist() == nx.jit(nx.isin)(x1, x2).tolist() == expected
    assert nx.isin(1j, x2).item()
    rows = nx.vectorize(nx.tensor(x1), "rows")
    assert nx.devectorize(nx.isin(rows, x2)).tolist() == expected
    # The elements are grouped: no value has the size of all pairs.
    expression = nx.debug_expr(nx.isin)(nx.template((1000,), "c64"), nx.template((100,), "c64"))
    assert max(math.prod(node.shape) for node in expression.nodes) <= 2 * 1100


def test_data_dependent_shapes_raise_in_jit():
    functions = [nx.nonzero, nx.unique_values, nx.unique_all, nx.unique_counts, nx.unique_inverse]
    for function in functions:
        with pytest.raises(nx.TraceError, match=r"use nx\."):
            nx.jit(lambda x, f=function: f(x)[0])(nx.ones(3))
    with pytest.raises(nx.TraceError, match="static argument"):
        nx.jit(lambda x, n: nx.repeat(x, n))(nx.ones(2), nx.tensor([1, 2]))


def test_repeat_by_a_tensor():
    assert nx.repeat([1, 2], nx.tensor([1, 3])).tolist() == [1, 2, 2, 2]
    assert nx.repeat([[1, 2]], nx.tensor(2), axis=1).tolist() == [[1, 1, 2, 2]]
    assert nx.repeat([1, 2], [3]).tolist() == [1, 1, 1, 2, 2, 2]
    for repeats in ([1], [1, 2, 3], [-1, 1], [0.5, 1]):
        with pytest.raises(nx.ArgumentError):
            nx.repeat([1, 2], repeats if len(repeats) != 1 else [-1])


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: nx.nonzero(3), nx.ShapeError),
        (lambda: nx.searchsorted([[1]], 1), nx.ShapeError),
        (lambda: nx.searchsorted([1j], 1), nx.DTypeError),
        (lambda: nx.searchsorted([1], 1, side="middle"), nx.ArgumentError),
        (lambda: nx.unique_values(nx.vectorize([1, 2], "x")), nx.ArgumentError),
        (lambda: nx.broadcast_shapes((2,), (3,)), nx.ShapeError),
    ],
)
def test_invalid_operands_raise(call, error):
    with pytest.raises(error):
        call()


def test_broadcast_shapes():
    assert nx.broadcast_shapes() == ()
    assert nx.broadcast_shapes((2, 1), (1, 3), (3,)) == (2, 3)
    assert nx.broadcast_shapes((0,), (1,)) == (0,)


def large(dtype, *, with_nan=False):
    x = np.random.default_rng(5).integers(-50, 50, (3, 20_000)).astype(dtype)
    if with_nan:
        x[1, [700, 9_000]] = nan
    return x


@pytest.mark.parametrize("backend", ["evaluator", "xla"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int64"])
def test_argmax_and_argmin_of_large_tensors(dtype, backend):
    x = large(dtype, with_nan=dtype.startswith("float"))
    for axis in (0, 1, None):
        largest = nx.jit(lambda x, axis=axis: nx.argmax(x, axis=axis), compiler=backend)(x)
        least = nx.jit(lambda x, axis=axis: nx.argmin(x, axis=axis), compiler=backend)(x)
        np.testing.assert_array_equal(largest, np.argmax(x, axis=axis))
        np.testing.assert_array_equal(least, np.argmin(x, axis=axis))


@pytest.mark.parametrize("shape", [(70_000, 3), (9, 600), (40, 31), (40, 33), (40, 100)])
@pytest.mark.parametrize("dtype", ["float64", "int8", "bool", "int64"])
@pytest.mark.parametrize("tie_break", ["low", "high"])
def test_argmax_and_argmin_with_ties(shape, dtype, tie_break):
    x = np.random.default_rng(2).integers(0, 2, shape).astype(dtype)
    # Place the value in the last row, which is not part of a group of rows, and in a single row.
    x[-1] = x.max() if dtype == "bool" else 2
    x[:, -1] = x[:, 0]
    for axis in (0, 1):
        for name in ("argmax", "argmin"):
            found = getattr(nx, name)(x, axis=axis, tie_break=tie_break)
            if tie_break == "low":
                expected = getattr(np, name)(x, axis=axis)
            else:
                last = getattr(np, name)(np.flip(x, axis=axis), axis=axis)
                expected = x.shape[axis] - 1 - last
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("backend", ["evaluator", "xla"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint16"])
@pytest.mark.parametrize("k", [1, 60, 19_000])
def test_top_k_of_large_tensors(dtype, k, backend):
    x = np.abs(large(dtype))
    if dtype.startswith("float"):
        x[2, 17] = nan
    values, positions = nx.jit(lambda x: nx.top_k(x, k), compiler=backend)(x)
    # Equal elements keep their order, and NaN comes before all numbers.
    order = np.argsort(np.where(np.isnan(x), -np.inf, -x.astype("f8")), axis=1, kind="stable")
    np.testing.assert_array_equal(positions, order[:, :k])
    np.testing.assert_array_equal(values, np.take_along_axis(x, order[:, :k], 1))


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64", "uint8", "int16"])
def test_comparisons_combined_with_booleans(dtype, compiler):
    values = np.arange(100, dtype=dtype) % 11
    if dtype.startswith("float"):
        values[::7] = np.nan
    x, y, flags = nx.tensor(values), nx.tensor(values[::-1].copy()), nx.tensor(values > 4)

    def function(x, y, flags):
        inside = (x > 2) & (y < 9)
        return nx.isin(x, nx.tensor([1, 3, 5], dtype)), inside | (x == y) | flags, flags & (x < y)

    found = nx.jit(function, compiler=compiler)(x, y, flags)
    flipped = values[::-1]
    inside = (values > 2) & (flipped < 9)
    expected = (
        np.isin(values, [1, 3, 5]),
        inside | (values == flipped) | (values > 4),
        (values > 4) & (values < flipped),
    )
    for result, reference in zip(found, expected, strict=True):
        assert np.array_equal(np.asarray(result), reference)
