"""Rules that all functions of a family share with NumPy: integers, dtypes, indices and errors."""

import math

import numpy as np
import pytest

import nxla as nx

MASK = np.array([True, False, True, True])
COLUMNS = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.mark.parametrize("integer", [int, np.int64, np.int8, np.uint64])
def test_out_of_range_index_raises(integer):
    x = nx.tensor([1, 2, 3])
    for call in (
        lambda i: x[i],
        lambda i: x[i,],
        lambda i: x.at[i].set(0),
        lambda i: x.at[i].add(1),
        lambda i: x.__setitem__(i, 0),
        lambda i: nx.jit(lambda y: y[i])(x),
    ):
        with pytest.raises(IndexError, match="out of range"):
            call(integer(10))
    assert x[integer(2)].item() == 3
    assert x.at[integer(1)].set(0).tolist() == [1, 0, 3]


def test_oversized_index_raises_index_error():
    for index in (2**70, -(2**70)):
        with pytest.raises(IndexError, match="64 bits"):
            nx.tensor([1, 2, 3])[index]


# Dtypes of sums, products and extremes.

#: Reductions, and the dtypes of their results for booleans and for `u64`.
RESULT_DTYPES = {
    "sum": ("s32", "u64"),
    "prod": ("s32", "u64"),
    "nansum": ("s32", "u64"),
    "nanprod": ("s32", "u64"),
    "cumulative_sum": ("s32", "u64"),
    "cumulative_prod": ("s32", "u64"),
    "nancumsum": ("s32", "u64"),
    "nancumprod": ("s32", "u64"),
    "trace": ("s32", "u64"),
    "max": ("pred", "u64"),
    "min": ("pred", "u64"),
    "cumulative_max": ("pred", "u64"),
    "cumulative_min": ("pred", "u64"),
}


@pytest.mark.parametrize("name", RESULT_DTYPES)
def test_reduction_dtypes_of_booleans_and_u64(name):
    function = nx.linalg.trace if name == "trace" else getattr(nx, name)
    shape = (1, 1) if name == "trace" else (1,)
    of_booleans, of_u64 = RESULT_DTYPES[name]
    found = function(nx.full(shape, True))
    assert (found.dtype.name, found.reshape(-1).tolist()) == (nx.DType(of_booleans).name, [True])
    found = function(nx.full(shape, 2**63, dtype="u64"))
    assert (found.dtype.name, found.reshape(-1).tolist()) == (nx.DType(of_u64).name, [2**63])


def test_cumulative_sum_of_a_mask_is_signed():
    for count in (nx.cumulative_sum, nx.nancumsum, lambda x: x.cumsum(), np.cumsum):
        assert (count(nx.tensor(~MASK)) - 1).tolist() == [-1, 0, 0, 0]


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("name", ["mean", "var", "std"])
def test_masked_moments_keep_range_and_dtype(name, dtype):
    x = nx.astype(nx.tensor(np.tile([100.0, 300.0], 3000)), dtype)
    expected, found = getattr(x, name)(), getattr(x, name)(where=True)
    assert found.dtype == expected.dtype
    assert found.item() == pytest.approx(expected.item(), rel=1e-2)
    assert math.isfinite(found.item())


def test_extremes_of_booleans_with_an_initial_value_are_booleans():
    x = nx.tensor(MASK)
    for call in (np.max, np.min):
        for initial in (False, True):
            for options in ({}, {"where": x}):
                found = call(x, initial=initial, **options)
                numpy_options = dict.fromkeys(options, MASK)
                assert found.dtype.kind == "pred"
                assert found.item() == call(MASK, initial=initial, **numpy_options)


# Python scalars and lists combined with tensors.

X64 = nx.tensor([1.0, 2.0], "f64")

#: Calls with a list (or NumPy's array of its exact elements) next to a tensor of `f64`.
LIST_CALLS = {
    "dot": lambda x: nx.dot(x, X64),
    "einsum": lambda x: nx.einsum("i,i", x, X64),
    "gradient": lambda x: nx.gradient(x, X64),
    "inner": lambda x: nx.linalg.vecdot(x, X64),
    "matmul": lambda x: nx.matmul(x, X64),
    "operator @": lambda x: X64 @ x,
    "operator @ from the right": lambda x: X64.__rmatmul__(x),
    "outer": lambda x: nx.linalg.outer(x, X64),
    "reduce": lambda x: nx.reduce(x, X64[0] * 0, nx.add),
    "reduce in a trace": lambda x: nx.jit(lambda y: nx.reduce(x, y[0] * 0, nx.add))(X64),
    "tensordot": lambda x: nx.tensordot(x, X64, axes=1),
    "trapezoid": lambda x: nx.trapezoid(x, X64),
    "vdot": lambda x: nx.vdot(x, X64),
    "vdot from the right": lambda x: nx.vdot(X64, x),
    "window_reduce": lambda x: nx.window_reduce(x, X64[0] * 0, nx.add, 2),
}


@pytest.mark.parametrize("name", LIST_CALLS)
def test_lists_take_the_dtype_of_the_other_operand(name):
    call, numbers = LIST_CALLS[name], [0.1, 0.3]
    expected, found = call(np.array(numbers)), call(numbers)
    assert found.dtype == expected.dtype == nx.float64
    assert found.tolist() == expected.tolist()


#: Folds of a vector, and their first result.
FOLDS = {
    "reduce": lambda x, initial, f: nx.reduce(x, initial, f),
    "reduce in a trace": lambda x, initial, f: nx.jit(lambda y: nx.reduce(y, initial, f))(x),
    "window_reduce": lambda x, initial, f: nx.window_reduce(x, initial, f, x.size)[0],
    "window_reduce in a trace": lambda x, initial, f: nx.jit(
        lambda y: nx.window_reduce(y, initial, f, y.size)
    )(x)[0],
}


@pytest.mark.parametrize("name", FOLDS)
def test_initial_value_of_a_fold_follows_scalar_promotion(name):
    fold = FOLDS[name]
    count = fold(nx.full(300, True), 0, lambda element, total: element + total)
    assert (count.dtype, count.item()) == (nx.int32, 300)
    found = fold(nx.full(300, True), False, nx.logical_or)
    assert (found.dtype.kind, found.item()) == ("pred", True)
    total = fold(nx.tensor([1, 2], "u8"), 3, nx.add)
    assert (total.dtype, total.item()) == (nx.uint8, 6)
    with pytest.raises(OverflowError, match="300 is out of bounds for u8"):
        fold(nx.tensor([1], "u8"), 300, nx.add)


UNSIGNED = ["u8", "u16", "u32", "u64"]
SIGNED = ["s8", "s16", "s32", "s64"]


@pytest.mark.parametrize("dtype", UNSIGNED + SIGNED)
def test_arange_with_negative_step(dtype):
    for start, stop, step in ((5, 0, -1), (5, -1, -2), (100, 0, -30), (3, 3, -1), (7, 0, -7)):
        found = nx.arange(start, stop, step, dtype=dtype)
        assert found.dtype == nx.DType(dtype)
        assert found.tolist() == list(range(start, stop, step))


@pytest.mark.parametrize("signed", SIGNED)
def test_floor_division_of_u64_uses_the_promoted_dtype(signed):
    divisors = nx.tensor([12879973358101162425, 2**64 - 1, 3, 2**63], "u64")
    for value in (100, -100, 7):
        x = nx.tensor([value] * 4, signed)
        wide = nx.astype(x, "s64"), nx.astype(divisors, "s64")
        for function in (nx.floor_divide, nx.remainder):
            assert function(x, divisors).dtype == nx.int64
            assert function(x, divisors).tolist() == function(*wide).tolist()
            assert function(divisors, x).tolist() == function(*wide[::-1]).tolist()


# Values of single functions.


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
def test_nan_to_num_keeps_its_replacements(dtype):
    values = [math.nan, math.inf, -math.inf, 1.0]
    replacements = [0.0, math.nan, math.inf, -math.inf, 5.0]
    numpy_dtype = {"f16": np.float16, "f32": np.float32, "f64": np.float64}[dtype]
    for nan in replacements:
        for posinf in replacements:
            for neginf in replacements:
                options = {"nan": nan, "posinf": posinf, "neginf": neginf}
                expected = np.nan_to_num(np.array(values, numpy_dtype), **options)
                found = nx.nan_to_num(nx.tensor(values, dtype), **options)
                np.testing.assert_array_equal(np.asarray(found), expected, str(options))


@pytest.mark.parametrize("name", ["divide", "power", "multiply", "add", "subtract", "set"])
@pytest.mark.parametrize("dtype", ["f32", "c64"])
def test_updates_leave_the_other_elements_unchanged(name, dtype):
    others = [math.inf, -math.inf, math.nan, -0.0, 0.1]
    if dtype == "c64":
        others = [complex(x, y) for x in others for y in (*others, 1.0)]
    x = nx.tensor([2.0, *others], dtype)
    changed = getattr(x.at[0], name)(2)
    expected = {"divide": 1, "power": 4, "multiply": 4, "add": 4, "subtract": 0, "set": 2}[name]
    assert changed[0].item() == pytest.approx(expected)
    assert np.asarray(changed[1:]).tobytes() == np.asarray(x[1:]).tobytes()


def test_diff_with_prepend_and_append():
    for values in ([1, 2, 4], [[1, 2, 4], [3, 5, 9]]):
        x = np.array(values, np.int32)
        for axis in range(x.ndim):
            for options in ({"prepend": 0}, {"append": 7}, {"prepend": 0, "append": 7}):
                found = nx.diff(x, axis=axis, **options)
                assert found.tolist() == np.diff(x, axis=axis, **options).tolist()
                assert nx.diff(x, 0, axis, **options).tolist() == x.tolist()
    assert nx.diff(nx.zeros((0,), dtype="s32"), prepend=0).shape == (0,)
    named = nx.zeros((2, 3), names=["row", "column"])
    assert nx.diff(named, axis="column", prepend=0).shape == (2, 3)


def test_diagonals_of_empty_matrices():
    for shape in ((0, 0), (0, 3), (3, 0)):
        empty = nx.zeros(shape)
        assert nx.take_diagonal(empty).shape == (0,)
        assert nx.put_diagonal(empty, nx.zeros(0)).shape == shape
        with pytest.raises(nx.ArgumentError, match="inside a matrix"):
            nx.put_diagonal(empty, nx.zeros(1))
    empty = nx.zeros((0, 0))
    assert nx.einsum("ii", empty).item() == 0
    assert nx.einsum("ii->i", empty).shape == (0,)
    assert nx.einsum("bii->b", nx.zeros((2, 0, 0))).tolist() == [0, 0]


@pytest.mark.parametrize(
    "dtype", ["pred", "u8", "s8", "u16", "s16", "u32", "s32", "u64", "f16", "f32"]
)
def test_bincount_weights_do_not_wrap(dtype):
    x = nx.tensor([0] * 300)
    expected = nx.sum(nx.ones(300, dtype=dtype))
    counts = nx.bincount(x, weights=nx.ones(300, dtype=dtype))
    assert (counts.dtype, counts.tolist()) == (expected.dtype, [300])


def test_bincount_of_booleans():
    assert nx.bincount(MASK).tolist() == np.bincount(MASK.astype(int)).tolist()
    assert nx.bincount(MASK, weights=[1, 2, 3, 4]).tolist() == [2, 8]


# Errors.

ERRORS = {
    "allclose": (lambda: nx.allclose(nx.ones(2), nx.ones(3)), nx.ShapeError, "^allclose: "),
    "bincount of floats": (lambda: nx.bincount([0.5]), nx.DTypeError, "^bincount: x: "),
    "bincount of a matrix": (lambda: nx.bincount([[1]]), nx.ShapeError, "^bincount: x: "),
    "bincount of weights": (
        lambda: nx.bincount([1, 2], weights=[1]), nx.ShapeError, "^bincount: weights: ",
    ),
    "bincount length": (lambda: nx.bincount([1], length=-1), nx.ArgumentError, "bincount: length"),
    "bincount minlength": (
        lambda: nx.bincount([1], minlength=-1), nx.ArgumentError, "bincount: minlength",
    ),
    "histogram range": (
        lambda: nx.histogram([1.0], range=[0, 1, 2]), nx.ArgumentError, "histogram: range",
    ),
    "conv": (
        lambda: nx.conv(nx.ones((1, 1, 4)), nx.ones((1, 1, 2)), padding=[(1,)]),
        nx.ArgumentError, r"^conv: padding: must be pairs \(low, high\); got \[\(1,\)\]$",
    ),
    "conv_transpose": (
        lambda: nx.nn.conv_transpose(nx.ones((1, 1, 4)), nx.ones((1, 1, 2)), padding=[(1,)]),
        nx.ArgumentError, "^conv_transpose: padding: must be pairs",
    ),
    "max_pool": (
        lambda: nx.nn.max_pool(nx.ones((1, 1, 4)), 2, padding=[(1, 2, 3)]),
        nx.ArgumentError, "^max_pool: padding: must be pairs",
    ),
    "avg_pool": (
        lambda: nx.nn.avg_pool(nx.ones((1, 1, 4)), 2, padding=[()]),
        nx.ArgumentError, "^avg_pool: padding: must be pairs",
    ),
    "window_sum": (
        lambda: nx.window_sum(nx.ones(4), 2, padding=[(1,)]),
        nx.ArgumentError, "^window_sum: padding: must be pairs",
    ),
    "window_max": (
        lambda: nx.window_max(nx.ones(4), 2, padding=[(1,)]),
        nx.ArgumentError, "^window_max: padding: must be pairs",
    ),
    "pad_outer": (
        lambda: nx.pad_outer(nx.ones((2, 2)), "reflect", [(1,), (1, 2)]),
        nx.ArgumentError, "^pad_outer: widths: must be pairs",
    ),
    "pad_outer by a number": (
        lambda: nx.pad_outer(nx.ones((2, 2)), 0, [(1,), (1, 2)]),
        nx.ArgumentError, "^pad_outer: widths: must be pairs",
    ),
    "fft2 of one axis": (
        lambda: nx.fft.fft2(nx.ones((2, 2)), axes=(0,)),
        nx.ArgumentError, r"^fft2: axes: must be two axes; got \(0,\)$",
    ),
    "ifft2 of three axes": (
        lambda: nx.fft.ifft2(nx.ones((2, 2)), axes=(0, 1, 2)),
        nx.ArgumentError, "^ifft2: axes: must be two axes",
    ),
    "sizes of fftn": (
        lambda: nx.fft.fftn(nx.ones(2), s=(-1,), axes=(0,)),
        nx.ArgumentError, "^fftn: s: must be at least 1; got -1",
    ),
    "size of fft": (
        lambda: nx.fft.fft(nx.ones(2), 0), nx.ArgumentError, "^fft: n: must be at least 1; got 0",
    ),
    "eye": (
        lambda: nx.eye(2, vectorized_axes=[("a",)]),
        nx.ArgumentError, "^eye: vectorized_axes: must be pairs",
    ),
    "iota": (
        lambda: nx.iota(2, vectorized_axes=[("a", 1, 2)]),
        nx.ArgumentError, "^iota: vectorized_axes: must be pairs",
    ),
    "lstm_cell": (
        lambda: nx.nn.lstm_cell((nx.ones(2),), nx.ones(3), nx.ones((3, 8)), nx.ones((2, 8))),
        nx.ArgumentError, "^lstm_cell: carry: must be a pair",
    ),
    "muon": (
        lambda: nx.optim.muon(0.1, ns_coeffs=(1.0, 2.0)),
        nx.ArgumentError, "^muon: ns_coeffs: must be three numbers",
    ),
    "scale_by_muon": (
        lambda: nx.optim.scale_by_muon(ns_coeffs=(1.0,)),
        nx.ArgumentError, "^scale_by_muon: ns_coeffs: must be three numbers",
    ),
    "isclose": (lambda: nx.isclose(nx.ones(2), nx.ones(3)), nx.ShapeError, "^isclose: "),
    "pad by a number": (lambda: nx.pad(nx.ones(2), 0, 1), nx.ArgumentError, "^pad: config: "),
    "pad by one": (lambda: nx.pad(nx.ones(2), 0, [(1,)]), nx.ArgumentError, "^pad: config: "),
    "pad by four": (
        lambda: nx.pad(nx.ones(2), 0, [(1, 2, 3, 4)]), nx.ArgumentError, "^pad: config: ",
    ),
    "swapaxes": (lambda: nx.ones((2, 3)).swapaxes(0, 5), nx.ShapeError, "^swapaxes: "),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_errors_name_the_function_and_the_argument(name):
    call, error, message = ERRORS[name]
    with pytest.raises(error, match=message):
        call()


def test_argument_forms_match_numpy():
    assert nx.broadcast_shapes(3, (3,), (2, 1)) == np.broadcast_shapes(3, (3,), (2, 1))
    counts = nx.histogram(COLUMNS, bins=3, range=[0, 3])[0]
    assert counts.tolist() == np.histogram(COLUMNS, bins=3, range=[0, 3])[0].tolist()
