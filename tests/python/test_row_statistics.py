"""Several statistics of the same rows, which fused kernels compute, compared with NumPy in f64."""

import numpy as np
import pytest

import backends
import nxla as nx


def log_sum_exp(xp, x):
    largest = xp.max(x, axis=-1, keepdims=True)
    return xp.log(xp.sum(xp.exp(x - largest), axis=-1)) + xp.max(x, axis=-1)


def cross_entropy(xp, x):
    shifted = x - xp.max(x, axis=-1, keepdims=True)
    return xp.log(xp.sum(xp.exp(shifted), axis=-1)) - shifted[..., 7]


def range_mean_and_variance(xp, x):
    return xp.max(x, axis=-1) - xp.min(x, axis=-1), xp.mean(x, axis=-1), xp.var(x, axis=-1)


def skewness(xp, x):
    shifted = x - xp.mean(x, axis=-1, keepdims=True)
    return xp.mean(shifted**3, axis=-1) / xp.mean(shifted**2, axis=-1) ** 1.5


def sums_over_two_axes(xp, x):
    x = xp.reshape(x, (x.shape[0], 16, -1))
    largest = xp.max(x, axis=(1, 2), keepdims=True)
    return xp.sum(xp.exp(x - largest), axis=(1, 2)), largest


def broadcast_row_maximum(xp, x):
    """A result with the reduced axis of size 1 broadcasts along rows."""
    x = x[: x.shape[1], : x.shape[0]]
    x = x[: min(x.shape), : min(x.shape)]
    largest = xp.max(x, axis=1)
    return xp.sum(xp.exp(x - largest), axis=1), largest


FUNCTIONS = [
    log_sum_exp,
    cross_entropy,
    range_mean_and_variance,
    skewness,
    sums_over_two_axes,
    broadcast_row_maximum,
]


@pytest.mark.parametrize("backend", backends.BACKENDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
@pytest.mark.parametrize("shape", [(300, 320), (17, 2048), (2000, 48)], ids=str)
def test_statistics_agree_with_numpy(function, shape, dtype, backend):
    x = np.random.default_rng(3).normal(2.0, 3.0, shape).astype(dtype)
    found = backends.jit(lambda x: function(nx, x), backend)(x)
    expected = function(np, x.astype(np.float64))
    tolerance = 2e-5 if dtype == "float32" else 1e-12
    for ours, theirs in zip(nx.tree.leaves(found), nx.tree.leaves(expected), strict=True):
        assert ours.dtype == dtype
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("backend", backends.BACKENDS)
def test_log_sum_exp_in_loops_gradients_and_vmap(backend):
    x = np.random.default_rng(4).normal(size=(64, 600)).astype(np.float32)

    def summed(x, scales):
        def step(total, scale):
            return total + log_sum_exp(nx, x * scale).sum(), total

        return nx.scan(step, 0.0, scales)[0]

    def loss(x):
        return log_sum_exp(nx, x).sum()

    scales = np.float32([0.5, 1.0, 2.0])
    looped = backends.jit(summed, backend)(x, scales)
    mapped = backends.jit(nx.vmap(lambda x, s: loss(x * s), in_axes=(None, 0)), backend)(x, scales)
    np.testing.assert_allclose(looped.item(), mapped.numpy().sum(), rtol=1e-5)
    slope = backends.jit(nx.grad(loss), backend)(x).numpy()
    shifted = np.exp(x - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(slope, shifted / shifted.sum(axis=1, keepdims=True), atol=1e-6)
    # NaN and infinities propagate as in separate operations.
    x[3, 5], x[4, 6], x[5, :] = np.nan, np.inf, -np.inf
    found = backends.jit(lambda x: log_sum_exp(nx, x), backend)(x).numpy()
    assert np.isnan(found[3:6]).all()
    assert np.isfinite(np.delete(found, [3, 4, 5])).all()
