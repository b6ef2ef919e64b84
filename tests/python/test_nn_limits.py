"""Layers and losses at the limits of their arguments, and initializers with invalid arguments."""

import functools
import math

import numpy as np
import pytest

import nxla as nx

nn = nx.nn
init = nn.initializers
KEY = nx.random.key(3)


@pytest.mark.parametrize("dtype", ["s8", "u8", "s32", "u32", "s64", "u64"])
@pytest.mark.parametrize("axis", [-1, 0])
def test_out_of_range_labels_have_nan_loss(compiler, axis, dtype):
    logits = np.random.default_rng(0).normal(size=(6, 6)).astype("f4")
    outside = [-100, -1, 6] if dtype.startswith("s") else [6, 100, 255]
    labels = nx.tensor([0, 5, 3, *outside], dtype=dtype)

    def loss_of(x):
        return nn.softmax_cross_entropy_with_integer_labels(x, labels, axis=axis)

    with nx.default_options(compiler=compiler):
        loss = np.asarray(loss_of(nx.tensor(logits)))
        usable = nx.tensor([True] * 3 + [False] * 3)
        slopes = np.asarray(
            nx.grad(lambda x: nx.sum(nx.where(usable, loss_of(x), 0.0)))(nx.tensor(logits))
        )
        total = np.asarray(nx.grad(lambda x: nx.sum(loss_of(x)))(nx.tensor(logits)))
    logs = logits - np.log(np.exp(logits).sum(axis, keepdims=True))
    rows = logs if axis == -1 else logs.T
    np.testing.assert_allclose(loss[:3], -rows[[0, 1, 2], [0, 5, 3]], rtol=1e-5)
    assert np.isnan(loss[3:]).all()
    ignored = slopes[3:] if axis == -1 else slopes[:, 3:]
    assert (ignored == 0.0).all()
    np.testing.assert_array_equal(total, slopes)


def test_u8_labels_of_300_classes():
    loss = nn.softmax_cross_entropy_with_integer_labels(
        nx.zeros((2, 300)), nx.tensor([255, 0], dtype="u8")
    )
    np.testing.assert_allclose(np.asarray(loss), math.log(300), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["s32", "u8", "bool"])
def test_running_statistics_of_integers_become_floats(compiler, dtype):
    mean, variance = nx.tensor([0], dtype=dtype), nx.tensor([1], dtype=dtype)
    with nx.default_options(compiler=compiler):
        for step in range(2):
            _, mean, variance = nn.batch_norm_train([[1.0], [4.0]], mean, variance, momentum=0.5)
            assert mean.dtype == variance.dtype == "f32"
            assert mean.item() == [1.25, 1.875][step]
            assert variance.item() == [1.625, 1.9375][step]


def test_dropout_of_all_elements_is_zero(compiler):
    x = nx.tensor([1.0, -math.inf, math.inf, math.nan])
    with nx.default_options(compiler=compiler):
        dropped, _ = nn.dropout(KEY, x, 1.0)
        slopes = nx.grad(lambda x: nx.sum(nn.dropout(KEY, x, 1.0)[0]))(x)
    assert dropped.tolist() == slopes.tolist() == [0.0] * 4


def test_huber_loss_with_infinite_delta(compiler):
    with nx.default_options(compiler=compiler):
        found = nn.huber_loss([0.0, 1.0, -3.0], 0.0, delta=math.inf)
        slopes = nx.grad(lambda x: nx.sum(nn.huber_loss(x, 0.0, delta=math.inf)))(
            nx.tensor([2.0, -3.0])
        )
    assert found.tolist() == [0.0, 0.5, 4.5]
    assert slopes.tolist() == [2.0, -3.0]


def test_huber_gradient_is_exact_for_small_errors(compiler):
    with nx.default_options(compiler=compiler):
        slopes = nx.grad(lambda x: nx.sum(nn.huber_loss(x, 0.0, delta=1e4)))(
            nx.tensor([1e-4, -3e-3, 1e4, -2e4])
        )
    np.testing.assert_allclose(slopes, np.float32([1e-4, -3e-3, 1e4, -1e4]), rtol=2e-7)


SCALED = [
    init.glorot_normal, init.glorot_uniform, init.he_normal, init.he_uniform, init.lecun_normal,
    init.lecun_uniform,
]  # fmt: skip


@pytest.mark.parametrize("make", SCALED)
@pytest.mark.parametrize("axis", [2, 7, -3])
def test_initializers_reject_invalid_axes(make, axis):
    for name in ("in_axis", "out_axis"):
        with pytest.raises(nx.ArgumentError, match=f"{name}: must be an axis of shape"):
            make(**{name: axis})(KEY, (2, 3))


def test_initializers_reject_invalid_arguments():
    for scale in (-1.0, math.nan):
        with pytest.raises(nx.ArgumentError, match="scale: must not be negative"):
            init.variance_scaling(scale, "fan_in", "normal")
    with pytest.raises(nx.ArgumentError, match="orthogonal: axis: must be an axis of shape"):
        init.orthogonal(axis=2)(KEY, (2, 3))


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (2, 0, 3)])
@pytest.mark.parametrize("make", [*SCALED, init.orthogonal])
def test_initializers_of_empty_shapes(make, shape):
    assert make()(KEY, shape).shape == shape


@pytest.mark.parametrize("function", [nx.fft.fftshift, nx.fft.ifftshift])
@pytest.mark.parametrize("axes", [2, -3, "z", [0, 2]])
def test_axes_of_shifts_must_exist(function, axes):
    with pytest.raises(nx.ShapeError, match="shift: axes: must be"):
        function(nx.zeros((2, 3)), axes=axes)


@pytest.mark.parametrize("strides", [1, 2, 3])
@pytest.mark.parametrize("window", [1, 2, 3, 4])
def test_conv_transpose_is_the_gradient_of_same_padding(strides, window):
    x, kernel = nx.ones((1, 2, 12)), nx.tensor(np.random.default_rng(1).normal(size=(3, 2, window)))
    y, backward = nx.vjp(lambda x: nx.conv(x, kernel, strides=strides, padding="same"), x)
    total = window - 1
    pairs = [(total // 2, total - total // 2)]
    extra = (12 + total - window) % strides
    found = nn.conv_transpose(y, kernel, strides=strides, padding=pairs, output_padding=extra)
    np.testing.assert_allclose(np.asarray(found), np.asarray(backward(y)[0]), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
@pytest.mark.parametrize("approximate", [False, True, None])
def test_derivatives_of_gated_units_have_limits(approximate, dtype, compiler):
    """The functions are the identity far above zero, and zero far below."""
    gelu = functools.partial(nn.gelu, approximate=approximate)
    function = nn.hard_silu if approximate is None else gelu
    size = nx.finfo(dtype).max
    x = nx.tensor([math.inf, size, 50.0, -50.0, -size, -math.inf], dtype)
    with nx.default_options(compiler=compiler):
        assert function(x).tolist() == [math.inf, size, 50.0, 0.0, 0.0, 0.0]
        assert nx.grad(lambda x: nx.sum(function(x)))(x).tolist() == [1.0] * 3 + [0.0] * 3
        tangents = nx.jvp(function, (x,), (nx.ones_like(x),))[1]
        assert tangents.tolist() == [1.0] * 3 + [0.0] * 3
    assert math.isnan(function(nx.tensor(math.nan)).item())
