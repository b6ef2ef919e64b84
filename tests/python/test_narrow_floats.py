"""Functions and derivatives of narrow floats over more elements than their dtypes can count."""

import numpy as np
import pytest

import nxla as nx

#: More elements than the largest number of `float16` and of the 8-bit floats.
MANY = 70_000

#: The distance from 1 to the next number.
STEPS = {"f16": 2.0**-10, "bf16": 2.0**-7, "f8": 2.0**-2, "f8_e4m3fn": 2.0**-3}


def wide(x):
    with nx.default_options(compiler="evaluator"):
        return np.asarray(nx.astype(x, nx.float32))


def assert_agree(found, expected, dtype):
    """Assert that numbers equal `float32` results that were rounded once or twice."""
    assert str(found.dtype) == dtype or found.dtype == nx.tensor(0, dtype=dtype).dtype
    found, expected = wide(found), wide(expected)
    smallest = {"f16": 2.0**-24, "bf16": 0, "f8": 2.0**-16, "f8_e4m3fn": 2.0**-9}[dtype]
    np.testing.assert_allclose(found, expected, rtol=1.1 * STEPS[dtype], atol=1.1 * smallest)


def pool(x):
    return nx.mean(nx.nn.avg_pool(nx.reshape(x[:900], (1, 1, 900)), (900,)))


FUNCTIONS = {
    "mean": lambda x: nx.mean(x),
    "mean of squares": lambda x: nx.mean(x * x),
    "variance": lambda x: nx.var(x),
    "deviation": lambda x: nx.std(x),
    "nan mean": lambda x: nx.nanmean(x),
    "pool": pool,
    "weighted": lambda x: nx.weighted_mean(x, nx.astype(x * 0 + 1, x.dtype)),
    "window": lambda x: nx.window_mean(x[:900], (900,)),
    "log of a sum": lambda x: nx.logsumexp(x),
    "ties": lambda x: nx.max(nx.minimum(x, nx.astype(0.5, x.dtype))),
}


@pytest.mark.parametrize("dtype", STEPS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_over_many_elements(name, dtype, compiler):
    function = FUNCTIONS[name]
    x = nx.tensor(np.random.default_rng(0).uniform(0.5, 1.0, MANY), dtype=dtype)
    with nx.default_options(compiler=compiler):
        scaled = 256.0

        def loss(x):
            return nx.sum(nx.astype(function(x), nx.float32)) * scaled

        assert_agree(nx.grad(loss)(x), nx.grad(loss)(nx.astype(x, nx.float32)), dtype)


def test_gradient_of_a_mean_is_one_over_the_count(compiler):
    with nx.default_options(compiler=compiler):
        x = nx.ones(65_520, dtype="f16")
        gradient = nx.grad(lambda x: nx.mean(x) * 1024)(x)
        assert gradient.dtype == nx.float16
        assert nx.all(gradient == np.float16(1024 / 65_520)).item()
        change = nx.jvp(lambda x: nx.mean(x), (x,), (x,))[1]
        assert change.item() == 1.0
        ties = nx.jvp(lambda x: nx.max(x), (x,), (x,))[1]
        assert ties.item() == 1.0


@pytest.mark.parametrize("dtype", STEPS)
def test_means_over_many_elements(dtype, compiler):
    with nx.default_options(compiler=compiler):
        ones = nx.ones(MANY, dtype=dtype)
        for mean in (nx.weighted_mean(ones, ones), nx.mean(ones)):
            assert (mean.dtype, mean.item()) == (ones.dtype, 1.0)
        window = nx.window_mean(ones, (MANY,))
        assert (window.dtype, window.tolist()) == (ones.dtype, [1.0])
        columns = nx.tensor(np.resize([1.0, -1.0], (MANY, 2)), dtype=dtype)
        assert nx.covariance(columns).dtype == ones.dtype
        signs = nx.tensor(np.resize([1.0, -1.0], (MANY, 1)), dtype=dtype)
        assert nx.covariance(signs).tolist() == [[1.0]]
        assert_agree(nx.logsumexp(ones), nx.logsumexp(nx.ones(MANY)), dtype)


@pytest.mark.parametrize("dtype", STEPS)
def test_linspace_and_arange(dtype, compiler):
    with nx.default_options(compiler=compiler):
        for steps in (3, 300, MANY):
            found = nx.linspace(0, 1, steps, dtype=dtype)
            expected = nx.tensor(np.linspace(0, 1, steps), dtype=dtype)
            assert_agree(found, expected, dtype)
            ends = nx.linspace(nx.zeros(2), nx.ones(2), steps, dtype=dtype)
            # Compare by NumPy, because XLA would compile each comparison.
            found = wide(found)
            assert found[-1] == 1.0
            assert (np.diff(found) >= 0).all()
            assert (wide(ends) == found).all()
        counted = nx.arange(0, 1, 2.0**-17, dtype=dtype)
        assert_agree(counted, nx.tensor(np.arange(0, 1, 2.0**-17), dtype=dtype), dtype)


def test_gradient_of_a_handwritten_normalization(compiler):
    """Sums over a channel cancel, so that only the rounding errors remain."""
    rng = np.random.default_rng(3)
    x = rng.normal(2.0, 1.0, (81_920, 3))
    w = rng.normal(size=(81_920, 3))

    def loss(x, w):
        centered = x - nx.mean(x, axis=0, keepdims=True)
        y = centered / nx.sqrt(nx.var(x, axis=0, keepdims=True) + 1e-5)
        return nx.mean(nx.sum(y * w, axis=1)) * 1024

    def gradient(dtype):
        found = nx.grad(loss)(nx.tensor(x, dtype=dtype), nx.tensor(w, dtype=dtype))
        return np.asarray(nx.astype(found, nx.float64))

    with nx.default_options(compiler=compiler):
        narrow, exact = gradient("f16"), gradient("f32")
    assert np.abs(narrow - exact).max() < 2e-3 * np.abs(exact).max()
    # The function does not change if a constant is added to its operand, so its gradient sums to
    # zero.
    assert np.abs(narrow.sum(axis=0)).max() < 0.05, narrow.sum(axis=0)
