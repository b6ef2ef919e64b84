"""Strides and dilations beyond the size of a tensor result in one window, without overflow."""

import numpy as np
import pytest

import nxla as nx

X = np.arange(12, dtype=np.float32).reshape(3, 4)
LARGE = [7, 2**31, 2**62, 2**63 - 1]
OPS = {
    "sum": (nx.window_sum, np.sum),
    "max": (nx.window_max, np.max),
    "min": (nx.window_min, np.min),
    "mean": (nx.window_mean, np.mean),
    "product": (nx.window_product, np.prod),
}


@pytest.mark.parametrize("stride", LARGE)
@pytest.mark.parametrize("op", OPS)
def test_a_stride_beyond_the_tensor_leaves_the_first_window(compiler, op, stride):
    function, reference = OPS[op]
    for size in (1, 2, (3, 4), (1, 4)):
        window = X[: np.broadcast_to(size, 2)[0], : np.broadcast_to(size, 2)[1]]
        f = nx.jit(lambda x, size=size: function(x, size, strides=stride), compiler=compiler)
        np.testing.assert_array_equal(np.asarray(f(X)), [[reference(window)]])
        eager = function(nx.tensor(X), size, strides=stride)
        np.testing.assert_array_equal(np.asarray(eager), [[reference(window)]])


@pytest.mark.parametrize("stride", LARGE)
def test_window_scatter_and_gradients_with_large_strides(compiler, stride):
    expected = np.zeros_like(X)
    expected[1, 1] = 5

    def scatter(x):
        return nx.window_scatter_max(x, [[5.0]], 0.0, (2, 2), strides=stride)

    np.testing.assert_array_equal(np.asarray(nx.jit(scatter, compiler=compiler)(X)), expected)
    for op, value in ((nx.window_max, (1, 1)), (nx.window_min, (0, 0))):
        gradient = nx.jit(
            nx.grad(lambda x, op=op: nx.sum(op(x, (2, 2), strides=stride))), compiler=compiler
        )
        expected = np.zeros_like(X)
        expected[value] = 1
        np.testing.assert_array_equal(np.asarray(gradient(X)), expected)


@pytest.mark.parametrize("dilation", LARGE)
def test_a_dilation_beyond_the_tensor_leaves_windows_of_one_element(compiler, dilation):
    f = nx.jit(lambda x: nx.window_sum(x, 1, dilations=dilation), compiler=compiler)
    np.testing.assert_array_equal(np.asarray(f(X)), X)
    f = nx.jit(lambda x: nx.window_sum(x, 2, dilations=dilation), compiler=compiler)
    assert f(X).shape == (0, 0)


@pytest.mark.parametrize("step", LARGE)
def test_convolutions_with_large_strides_and_dilations(compiler, step):
    x = 1 + X[None, None]
    point = np.ones((1, 1, 1, 1), np.float32)
    f = nx.jit(lambda x, kernel: nx.conv(x, kernel, strides=step), compiler=compiler)
    assert f(x, np.ones_like(x)).tolist() == [[[[x.sum()]]]]
    f = nx.jit(lambda x, kernel: nx.conv(x, kernel, kernel_dilation=step), compiler=compiler)
    np.testing.assert_array_equal(np.asarray(f(x, point)), x)
    f = nx.jit(lambda x, kernel: nx.conv(x, kernel, input_dilation=step), compiler=compiler)
    assert f(x[:, :, :1, :1], point).tolist() == [[[[1.0]]]]
