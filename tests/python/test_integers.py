"""Compare functions of large tensors of integers and booleans with NumPy, on every backend."""

import functools

import numpy as np
import pytest

import backends
import nxla as nx

DTYPES = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


@pytest.fixture(params=backends.BACKENDS)
def backend(request):
    return request.param


@pytest.fixture
def jit(backend):
    return lambda function: backends.jit(function, backend)


def integers(dtype, *shape, seed=0):
    """Return small integers, and some at both ends of their dtype."""
    rng = np.random.default_rng(seed)
    ends = np.iinfo(dtype)
    small = rng.integers(max(-100, ends.min), 100, shape)
    large = rng.integers(ends.min, ends.max, shape, dtype=dtype, endpoint=True)
    # Place small numbers in a separate block, so that some loops see only small numbers.
    return np.where(np.arange(shape[-1]) < shape[-1] // 2, small.astype(dtype), large)


@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions_of_large_matrices(backend, dtype):
    x = integers(dtype, 257, 300)
    wide = {"i": np.int32, "u": np.uint32}[x.dtype.kind]
    wide = np.promote_types(x.dtype, wide)
    functions = {
        (name, axis): lambda x, name=name, axis=axis: getattr(nx, name)(x, axis=axis)
        for axis in (None, 0, 1)
        for name in ("sum", "max", "min", "argmax", "argmin")
    }
    for (name, axis), found in backends.run_all(functions, backend, x).items():
        options = {"dtype": wide} if name == "sum" else {}
        expected = getattr(np, name)(x, axis=axis, **options)
        np.testing.assert_array_equal(found, expected, err_msg=f"{name}, axis {axis}")


@pytest.mark.parametrize("dtype", ["bool", "int8", "int32", "int64", "float32", "float64"])
def test_counts(backend, dtype):
    x = np.random.default_rng(1).integers(0, 2 if dtype == "bool" else 9, (257, 300)).astype(dtype)
    y = np.roll(x, 1, axis=1)

    def counts(x, y, axis):
        return (
            nx.sum(x > 0, axis=axis),
            nx.count_nonzero(x, axis=axis),
            nx.sum((x == y).astype("int32"), axis=axis),
            nx.mean(x != y, axis=axis),
            nx.any(x > 7, axis=axis),
            nx.all((x >= 0) & (y >= 0), axis=axis),
        )

    functions = {axis: functools.partial(counts, axis=axis) for axis in (None, 0, 1)}
    for axis, found in backends.run_all(functions, backend, x, y).items():
        expected = (
            np.sum(x > 0, axis=axis),
            np.count_nonzero(x, axis=axis),
            np.sum(x == y, axis=axis),
            np.mean(x != y, axis=axis),
            np.any(x > 7, axis=axis),
            np.all((x >= 0) & (y >= 0), axis=axis),
        )
        for number, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
            label = f"count {number}, axis {axis}"
            np.testing.assert_allclose(ours, theirs, rtol=1e-6, err_msg=label)
        assert [count.dtype for count in found[:3]] == [nx.int32] * 3


@pytest.mark.parametrize("dtype", DTYPES)
def test_division_by_constants(backend, dtype):
    x = integers(dtype, 3, 1000)
    signs = (1, -1) if x.dtype.kind == "i" else (1,)
    divisors = [sign * number for number in (1, 2, 3, 7, 10, 127) for sign in signs]
    functions = {divisor: lambda x, d=divisor: (x // d, x % d) for divisor in divisors}
    for divisor, (quotient, remainder) in backends.run_all(functions, backend, x).items():
        label = f"divisor {divisor}"
        # NumPy warns about the smallest integer divided by -1, whose quotient does not fit.
        with np.errstate(over="ignore"):
            expected = x // x.dtype.type(divisor)
        np.testing.assert_array_equal(quotient, expected, err_msg=label)
        np.testing.assert_array_equal(remainder, x % x.dtype.type(divisor), err_msg=label)


@pytest.mark.parametrize("dtype", DTYPES)
def test_division_by_tensors(jit, dtype):
    x, y = integers(dtype, 3, 1000), integers(dtype, 3, 1000, seed=1)
    y = np.where(y == 0, y.dtype.type(1), y)
    found = jit(lambda x, y: (x // y, x % y))(x, y)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(found[0], x // y)
    np.testing.assert_array_equal(found[1], x % y)


@pytest.mark.parametrize("dtype", DTYPES)
def test_powers(jit, dtype):
    x = integers(dtype, 3, 1000)
    for exponent in (0, 1, 2, 3, 4, 5):
        np.testing.assert_array_equal(jit(lambda x, n=exponent: x**n)(x), x**exponent)


@pytest.mark.parametrize("dtype", ["bool", *DTYPES])
def test_cumulative_sums(backend, dtype):
    x = integers("uint8", 60, 70) % 2 == 1 if dtype == "bool" else integers(dtype, 60, 70)
    wide = np.promote_types(x.dtype, np.uint32 if x.dtype.kind == "u" else np.int32)
    functions = {
        (axis, reverse): functools.partial(nx.cumulative_sum, axis=axis, reverse=reverse)
        for axis in (0, 1)
        for reverse in (False, True)
    }
    for (axis, reverse), found in backends.run_all(functions, backend, x).items():
        flipped = np.flip(x, axis) if reverse else x
        expected = np.cumsum(flipped, axis=axis, dtype=wide)
        expected = np.flip(expected, axis) if reverse else expected
        assert found.dtype in (nx.int32, nx.uint32, nx.int64, nx.uint64)
        label = f"axis {axis}, reverse {reverse}"
        np.testing.assert_array_equal(np.asarray(found).astype(wide), expected, err_msg=label)


def test_isin(jit):
    x = integers("int32", 3, 1000)
    for candidates in ([3], [1, 5, 99], list(range(-8, 9))):
        found = jit(lambda x, candidates=candidates: nx.isin(x, candidates))(x)
        np.testing.assert_array_equal(found, np.isin(x, candidates))
    numbers = np.array([0.5, np.nan, np.inf, -0.0])
    found = jit(lambda x: nx.isin(x, numbers))(numbers)
    np.testing.assert_array_equal(found, [True, False, True, True])
    assert jit(lambda x: nx.isin(x, [1j, 2j]))(np.array([1j, 3])).tolist() == [True, False]


SINGULAR = "matrix_norm nuc and 2"

#: Functions of a matrix whose intermediate results do not fit in its dtype, with NumPy's functions.
FLOAT_RESULTS = {
    **{
        f"vector_norm {order}": (
            lambda x, order=order: nx.linalg.vector_norm(x, axis=1, ord=order),
            lambda x, order=order: np.linalg.norm(x, axis=1, ord=order),
        )
        for order in (0, 1, 2, 3, np.inf, -np.inf)
    },
    **{
        f"matrix_norm {order}": (
            lambda x, order=order: nx.linalg.matrix_norm(x, ord=order),
            lambda x, order=order: np.linalg.norm(x, ord=order),
        )
        for order in ("fro", 1, -1, np.inf, -np.inf)
    },
    # XLA takes long to compile the singular values, so both norms share them.
    SINGULAR: (
        lambda x: nx.stack([nx.linalg.matrix_norm(x, ord=order) for order in ("nuc", 2)]),
        lambda x: np.array([np.linalg.norm(x, ord=order) for order in ("nuc", 2)]),
    ),
    "window_mean": (
        lambda x: nx.window_mean(x, (1, 4)),
        lambda x: np.lib.stride_tricks.sliding_window_view(x, 4, axis=1).mean(axis=-1),
    ),
    "mean": (lambda x: nx.mean(x, axis=1), lambda x: x.mean(axis=1)),
    # As in Nx, deviations of integers are squared in f32, which cannot represent squares of 64-bit
    # integers.
    "std": (
        lambda x: nx.std(nx.astype(x, "f64"), axis=1),
        lambda x: x.std(axis=1),
    ),
    "nanmean": (lambda x: nx.nanmean(x, axis=0), lambda x: x.mean(axis=0)),
    "median": (lambda x: nx.median(x, axis=1), lambda x: np.median(x, axis=1)),
    "hypot": (lambda x: nx.hypot(x, x), lambda x: np.hypot(x, x)),
    "huber_loss": (
        lambda x: nx.nn.huber_loss(x, x[::-1]),
        lambda x: np.where(x == x[::-1], 0.0, np.abs(x - x[::-1]) - 0.5),
    ),
}


@functools.cache
def float_results(backend, dtype):
    """Return a matrix of extreme integers, and the results of functions of the matrix."""
    ends = np.iinfo(dtype)
    x = np.array([[ends.max] * 6, [ends.min] * 6, [0, ends.max, 64, ends.min, 7, ends.max]], dtype)
    functions = {name: function for name, (function, _) in FLOAT_RESULTS.items()}
    # XLA alone compiles only the singular values again, because only their program has a kernel.
    singular = {SINGULAR: functions.pop(SINGULAR)}
    return x, {
        **backends.run_all(functions, backend, x),
        **backends.run_all(singular, backend, x),
    }


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FLOAT_RESULTS)
def test_float_functions_of_extreme_integers(backend, name, dtype):
    x, found = float_results(backend, dtype)
    expected = FLOAT_RESULTS[name][1](x.astype(np.float64))
    # Differences of large numbers have rounding errors relative to the numbers.
    slack = 1e-6 * float(np.abs(expected).max())
    np.testing.assert_allclose(found[name], expected, rtol=1e-5, atol=slack)


def covariance(x):
    return nx.covariance(nx.reshape(x, (-1, 1)))[0, 0]


#: Functions that subtract elements or multiply differences, and the same functions of NumPy.
DIFFERENCES = {
    "var": (nx.var, np.var),
    "std": (nx.std, np.std),
    "nanmean": (nx.nanmean, np.mean),
    "nanvar": (nx.nanvar, np.var),
    "nanstd": (nx.nanstd, np.std),
    "masked var": (lambda x: np.var(x, where=x >= 0), np.var),
    "masked std": (lambda x: np.std(x, where=x >= 0), np.std),
    "masked mean": (lambda x: np.mean(x, where=x >= 0), np.mean),
    "weighted_mean": (lambda x: nx.weighted_mean(x, x), lambda x: np.average(x, weights=x)),
    "covariance": (covariance, lambda x: np.cov(x, bias=True)),
    "gradient": (nx.gradient, np.gradient),
    "gradient downward": (lambda x: nx.gradient(x[::-1]), lambda x: np.gradient(x[::-1])),
    "gradient with coordinates": (lambda x: nx.gradient(nx.arange(100), x), lambda x: np.ones(100)),
    "trapezoid": (lambda x: nx.trapezoid(nx.ones(100), x), lambda x: x[-1] - x[0]),
    "interp": (lambda x: nx.interp(x, x, nx.arange(100.0)), lambda x: np.arange(100)),
    "bins": (lambda x: nx.astype(nx.histogram(x, 4)[0], "f32"), lambda x: np.full(4, 25)),
    "density": (
        lambda x: nx.histogram(x, 4, density=True)[0],
        lambda x: np.histogram(x, 4, density=True)[0],
    ),
}


@functools.cache
def differences(backend, dtype):
    """Return close integers, and the results of functions that subtract them."""
    first = min(np.iinfo(dtype).max - 99, 2**45)
    x = np.arange(100, dtype=dtype) + np.asarray(first, dtype)
    functions = {name: function for name, (function, _) in DIFFERENCES.items()}
    return x, backends.run_all(functions, backend, x)


@pytest.mark.parametrize("name", DIFFERENCES)
@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64", "uint64"])
def test_differences_of_close_integers_are_exact(backend, dtype, name):
    x, results = differences(backend, dtype)
    found, expected = results[name], DIFFERENCES[name][1]
    assert found.dtype == nx.float32
    np.testing.assert_allclose(found, expected(x.astype(np.float64)), rtol=1e-6)


@pytest.mark.parametrize("name", ["var", "std", "nanvar", "nanstd", "masked var", "covariance"])
def test_statistics_of_timestamps_do_not_overflow(jit, name):
    function, expected = DIFFERENCES[name]
    x = np.random.default_rng(0).integers(15 * 10**17, 18 * 10**17, 20_000)
    np.testing.assert_allclose(jit(function)(x), expected(x.astype(np.float64)), rtol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
def test_gradient_of_full_range_steps(jit, dtype):
    ends = np.iinfo(dtype)
    x = np.array([ends.min, ends.max, ends.min], dtype)
    step = float(ends.max) - float(ends.min)
    np.testing.assert_allclose(jit(nx.gradient)(x), [step, 0.0, -step], rtol=1e-6)


def test_histogram_edges_of_integers_are_float32(jit):
    edges = jit(lambda x: nx.histogram(x, 2)[1])(np.array([0, 4]))
    assert (edges.dtype, edges.tolist()) == (nx.float32, [0.0, 2.0, 4.0])
