"""Random numbers at the limits of parameters: singular covariances, empty ranges, complex and large
parameters."""

import math

import numpy as np
import pytest

import nxla as nx

random = nx.random
KEY = random.key(7)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("method", ["eigh", "svd"])
@pytest.mark.parametrize("root", [[1.0, 2.0, 3.0], [0.0, 0.0, 0.0], [1e3, -1e-3, 7.0]])
def test_singular_covariances(compiler, method, root, dtype):
    covariance = np.outer(root, root)
    with nx.default_options(compiler=compiler):
        drawn = random.multivariate_normal_split(
            KEY, nx.zeros(3, dtype=dtype), nx.tensor(covariance, dtype=dtype),
            method=method, shape=4000,
        )  # fmt: skip
    found = np.asarray(drawn)
    scale = max(np.abs(covariance).max(), 1.0)
    np.testing.assert_allclose(np.cov(found.T), covariance, atol=0.1 * scale)
    # The samples are multiples of one vector.
    np.testing.assert_allclose(np.cross(found, root), 0.0, atol=2e-2 * scale)


def plain_bounds(low, high):
    return low, high


#: Conversions of bounds whose values are checked before the draw.
BOUND_FORMS = [
    plain_bounds,
    lambda *bounds: map(np.int64, bounds),
    lambda *bounds: map(np.uint8, bounds),
]


@pytest.mark.parametrize("bounds", [(5, 5), (7, 5), (0, 0)])
@pytest.mark.parametrize("form", BOUND_FORMS)
def test_empty_scalar_ranges_raise(form, bounds):
    low, high = form(*bounds)
    with pytest.raises(nx.ArgumentError, match="high: must exceed low"):
        random.randint(KEY, low, high)
    with pytest.raises(nx.ArgumentError, match="high: must exceed low"):
        random.randint_split(KEY, low, high, shape=3, dtype="s32")


@pytest.mark.parametrize("dtype", ["s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"])
def test_empty_tensor_ranges_return_the_lower_bound(compiler, dtype):
    low = nx.tensor([0, 5, 9, 100, 3], dtype=dtype)
    high = nx.tensor([0, 5, 2, 50, 4], dtype=dtype)
    with nx.default_options(compiler=compiler):
        found = random.randint_split(KEY, low, high, shape=(20, 5))
        mixed = random.randint_split(KEY, 0, nx.tensor(0, dtype=dtype), shape=20)
        full = random.randint_split(KEY, low, nx.tensor(127, dtype=dtype), shape=(200, 5))
    assert found.dtype == dtype
    assert np.asarray(found).tolist() == [[0, 5, 9, 100, 3]] * 20
    assert np.asarray(mixed).tolist() == [0] * 20
    assert nx.all(nx.logical_and(full >= low, full < 127)).item()


@pytest.mark.parametrize("dtype", ["s8", "u8", "s16", "u16"])
def test_ranges_include_the_largest_integer(dtype):
    limits = nx.iinfo(dtype)
    low, high = nx.tensor(int(limits.min)), nx.tensor(int(limits.max) + 1)
    found = np.asarray(random.randint_split(KEY, low, high, shape=4000, dtype=dtype)).astype("i8")
    assert found.min() < limits.min + 0.05 * 2**limits.bits
    assert found.max() > limits.max - 0.05 * 2**limits.bits


def test_descending_float_ranges_raise():
    for low, high in ((2.0, 1.0), (np.float64(2.0), 1), (np.float32(2.0), np.float32(-1.0))):
        with pytest.raises(nx.ArgumentError, match="high: must be at least low"):
            random.uniform(KEY, low, high)
        with pytest.raises(nx.ArgumentError, match="high: must be at least low"):
            random.uniform(KEY, (2,), minval=low, maxval=high)
    assert random.uniform_split(KEY, 2.0, 2.0).item() == 2.0


@pytest.mark.parametrize("dtype", ["c64", "c128"])
def test_complex_draws_broadcast_parameters(compiler, dtype):
    with nx.default_options(compiler=compiler):
        uniform = random.uniform_split(KEY, [0.0, 100.0, -5.0], [1.0, 101.0, -4.0],
                                       shape=(50, 3), dtype=dtype)  # fmt: skip
        normal = random.normal_split(KEY, [0.0, 1e3], [1.0, 10.0], shape=(500, 2), dtype=dtype)
    assert uniform.dtype == dtype
    for parts in (np.asarray(uniform).real, np.asarray(uniform).imag):
        assert (np.floor(parts) == [0.0, 100.0, -5.0]).all()
    for parts in (np.asarray(normal).real, np.asarray(normal).imag):
        np.testing.assert_allclose(parts.mean(0), [0.0, 1e3], atol=2.0)
        np.testing.assert_allclose(parts.std(0), [1.0, 10.0], rtol=0.2)


def test_complex_parameters():
    found = np.asarray(random.normal_split(KEY, nx.tensor([1 + 100j, -50j]), 0.5, shape=(500, 2)))
    np.testing.assert_allclose(found.mean(0), [1 + 100j, -50j], atol=0.2)
    found = np.asarray(random.uniform_split(KEY, nx.tensor(1 + 100j), 2 + 200j, shape=500))
    assert ((found.real >= 1) & (found.real < 2) & (found.imag >= 100) & (found.imag < 200)).all()
    assert found.imag.max() > 150
    # A real draw cannot represent the imaginary part.
    for draw in (random.normal_split, random.uniform_split):
        with pytest.raises(nx.DTypeError, match="complex"):
            draw(KEY, nx.tensor(1 + 100j), 0.5, shape=3, dtype="f32")


@pytest.mark.parametrize("seed", [2**70 + 5, -(2**70) + 5, 2**64 + 5, 5])
def test_keys_use_the_lower_bits_of_any_integer(seed):
    assert random.key(seed).tolist() == random.key(5).tolist()


def test_keys_of_negative_seeds():
    assert random.key(-1).tolist() == random.key(2**64 - 1).tolist() == [2**32 - 1, 2**32 - 1]


def check_is_normal(standard):
    """Check the first moments and the median of standardized samples."""
    count = len(standard)
    assert abs(standard.mean()) < 5 / math.sqrt(count)
    assert standard.std() == pytest.approx(1.0, abs=0.03)
    assert np.mean(standard < 0.0) == pytest.approx(0.5, abs=0.02)
    assert np.mean(np.abs(standard) < 1.0) == pytest.approx(0.6827, abs=0.02)


@pytest.mark.parametrize("p", [0.5, 0.999, 0.3, 1e-10])
@pytest.mark.parametrize("n", [1e13, 1e14, 2.0**53])
def test_large_binomial_counts(n, p):
    n, p = nx.tensor(n, dtype="f64"), nx.tensor(p, dtype="f64")
    drawn = np.asarray(random.binomial_split(KEY, n, p, shape=10000, dtype="s64")).astype("f8")
    mean = n.item() * p.item()
    check_is_normal((drawn - mean + 0.0) / math.sqrt(mean * (1.0 - p.item())))


@pytest.mark.parametrize("rate", [1e3, 1e8, 1e12, 1e15, 1e16, 1e17])
def test_large_poisson_counts(compiler, rate):
    with nx.default_options(compiler=compiler):
        drawn = random.poisson_split(KEY, nx.tensor(rate, dtype="f64"), shape=10000, dtype="s64")
    check_is_normal((np.asarray(drawn).astype("f8") - rate) / math.sqrt(rate))


@pytest.mark.parametrize("rate", [10.0, 12.5, 30.0])
def test_poisson_counts_match_probabilities(rate):
    drawn = np.asarray(random.poisson_split(KEY, rate, shape=100000))
    for count in range(int(rate) - 8, int(rate) + 12):
        expected = math.exp(count * math.log(rate) - rate - math.lgamma(count + 1))
        error = math.sqrt(expected / 100000)
        assert np.mean(drawn == count) == pytest.approx(expected, abs=5 * error)


@pytest.mark.parametrize("a", [1.0, 3.5, 1e4, 1e6, 1e8])
def test_gamma_samples_have_full_precision(compiler, a):
    with nx.default_options(compiler=compiler):
        narrow = np.asarray(random.gamma_split(KEY, nx.tensor(a), shape=20000)).astype("f8")
    assert narrow.mean() == pytest.approx(a, abs=5 * math.sqrt(a / 20000))
    assert narrow.std() == pytest.approx(math.sqrt(a), rel=0.03)
    # Neighbors among 20000 sorted samples are about as close as the dtype allows.
    steps = np.diff(np.unique(narrow))
    assert steps.min() <= 4 * np.spacing(np.float32(a))
    if a >= 1e4:
        check_is_normal((narrow - a) / math.sqrt(a))


def test_gamma_with_special_parameters():
    found = np.asarray(random.gamma_split(KEY, [0.0, math.inf, -1.0, math.nan], shape=4))
    np.testing.assert_array_equal(found, [0.0, math.inf, math.nan, math.nan])
    small = np.asarray(random.gamma_split(KEY, 0.01, shape=20000, dtype="f64"))
    assert small.mean() == pytest.approx(0.01, abs=0.004)


def test_student_t_of_infinite_freedom_is_normal():
    found = random.student_t_split(KEY, math.inf, shape=10000)
    mixed = random.student_t_split(KEY, [5.0, math.inf, 0.5], shape=(100, 3))
    check_is_normal(np.asarray(found))
    assert np.isfinite(np.asarray(mixed)).all()


def test_choice_from_an_empty_tensor_raises():
    for p in (None, nx.zeros(0)):
        with pytest.raises(nx.ArgumentError, match="choice: x: must have at least one entry"):
            random.choice(KEY, nx.zeros(0), p)


def test_zero_probability_entries_are_chosen_last():
    p = nx.tensor([0.0, 0.5, 0.0, 0.5])
    for seed in range(20):
        found = random.choice(random.key(seed), nx.arange(4), p, samples=4, replace=False)
        assert sorted(found.value.tolist()[:2]) == [1, 3]
        assert sorted(found.value.tolist()[2:]) == [0, 2]
