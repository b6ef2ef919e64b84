"""Derivatives of reductions with functions, along axes and in windows."""

import numpy as np
import pytest

import nxla as nx

X = nx.reshape(nx.sin(nx.arange(24, dtype=nx.float64) + 1.0), (2, 3, 4))
WINDOW = {"padding": [(0, 0), (1, 1), (0, 2)], "strides": (1, 1, 2)}


def close(found, expected, tolerance=1e-9):
    assert nx.all_close(found, expected, rtol=tolerance, atol=tolerance).item(), (found, expected)


def differences(function, x, step=1e-6):
    flat = nx.reshape(x, (-1,))
    slopes = []
    for index in range(flat.shape[0]):
        moved = nx.reshape(nx.astype(nx.arange(flat.shape[0]) == index, nx.float64) * step, x.shape)
        slopes.append((function(x + moved) - function(x - moved)) / (2 * step))
    return nx.reshape(nx.stack(slopes), x.shape)


FUNCTIONS = {
    "sum": (lambda x, a: x + a, 0.5),
    "product": (lambda x, a: a * x, 0.5),
    "max": (nx.maximum, -3.0),
    "min": (lambda x, a: nx.minimum(a, x), 3.0),
    "logaddexp": (nx.logaddexp, -1.0),
    "polynomial": (lambda x, a: a * 0.5 + x**2, 0.25),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_reductions_have_forward_and_reverse_derivatives(name, compiler):
    function, start = FUNCTIONS[name]

    def weighted(y):
        return nx.sum(y * nx.cos(nx.reshape(nx.arange(y.size, dtype=nx.float64), y.shape)))

    losses = [
        lambda x, axes=axes, keepdims=keepdims: weighted(
            nx.reduce(x, start, function, axis=axes, keepdims=keepdims)
        )
        for axes, keepdims in [((1,), False), ((0, 2), True), (None, False)]
    ]
    losses.append(lambda x: weighted(nx.window_reduce(x, start, function, (1, 2, 3), **WINDOW)))
    # Use only some of the losses on XLA, because they take long to compile.
    for loss in losses if compiler == "evaluator" else losses[2:]:
        expected = differences(nx.jit(loss), X)

        def derivatives(x, d, loss=loss):
            return nx.grad(loss)(x), nx.jvp(loss, (x,), (d,))[1]

        gradient, tangent = nx.jit(derivatives, compiler=compiler)(X, X)
        close(gradient, expected, 1e-6)
        close(tangent, nx.sum(expected * X), 1e-6)


def test_reductions_differentiate_initial_and_captured_values():
    def loss(start, slope):
        return nx.sum(nx.reduce(X, start, lambda x, a: a * slope + x, axis=1))

    by_start, by_slope = nx.grad(loss, argnums=(0, 1))(nx.tensor(0.5, dtype=nx.float64), 0.25)
    # Three steps for each of eight results.
    close(by_start, nx.tensor(8 * 0.25**3, dtype=nx.float64))
    step = 1e-5
    half = nx.tensor(0.5, dtype=nx.float64)
    close(by_slope, (loss(half, 0.25 + step) - loss(half, 0.25 - step)) / (2 * step), 1e-4)
    second = nx.grad(nx.grad(lambda s: loss(s, 0.25) ** 2))(half)
    close(second, nx.tensor(2 * (8 * 0.25**3) ** 2, dtype=nx.float64))


def test_the_gradient_of_a_cholesky_factor_is_symmetric():
    a = nx.tensor([[4.0, 1.0], [1.0, 3.0]], dtype=nx.float64)
    for compiler in ("evaluator", "xla"):
        found = nx.jit(nx.grad(lambda a: nx.sum(nx.linalg.cholesky(a))), compiler=compiler)(a)
        close(found, nx.matrix_transpose(found), 1e-12)
        tangent = nx.jvp(lambda a: nx.sum(nx.linalg.cholesky(a)), (a,), (a,))[1]
        close(tangent, nx.sum(found * a))
        # Only the symmetric part of a tangent affects the result.
        skew = nx.tensor([[0.0, 1.0], [-1.0, 0.0]], dtype=nx.float64)
        close(nx.jvp(nx.linalg.cholesky, (a,), (skew,))[1], nx.zeros_like(a))


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "f16", "s32", "u8"])
@pytest.mark.parametrize(
    ("shape", "size", "strides"),
    [
        # Windows that do not overlap, with remaining rows or gaps, and windows that overlap.
        ((7, 6), (2, 2), (2, 2)),
        ((9,), (2,), (4,)),
        ((2, 4, 5), (1, 2, 2), (1, 2, 3)),
        ((4, 4), (4, 4), (4, 4)),
        ((5, 17), (1, 17), (1, 17)),
        ((5, 7), (2, 3), (1, 2)),
    ],
)
def test_window_scatter_is_equal_on_both_backends(dtype, shape, size, strides):
    rng = np.random.default_rng(3)
    counts = tuple((n - k) // s + 1 for n, k, s in zip(shape, size, strides, strict=True))
    x = rng.integers(0, 3, shape).astype(np.float64)
    if dtype[0] in "fb":
        x[rng.random(shape) < 0.1] = np.nan
        x[rng.random(shape) < 0.1] = -0.0
    x = nx.astype(nx.tensor(x), dtype)
    source = nx.astype(nx.tensor(rng.integers(-3, 4, counts).astype(np.float64)), dtype)

    def scatter_all(x, source):
        return [
            function(x, source, initial, size, strides=strides)
            for function in (nx.window_scatter_max, nx.window_scatter_min)
            for initial in (0, 2)
        ]

    found, expected = (
        [nx.to_binary(each) for each in nx.jit(scatter_all, compiler=compiler)(x, source)]
        for compiler in ("xla", "evaluator")
    )
    assert found == expected


@pytest.mark.parametrize("name", FUNCTIONS)
def test_windows_apply_the_function_to_padding(name, compiler):
    """The initial value is an element of each window that reaches into the padding."""
    function, start = FUNCTIONS[name]

    def windows(ones):
        own = [nx.window_reduce(x, start, function, (2,) * x.ndim, padding="same") for x in ones]
        padded = [nx.pad(x, start, [(0, 1)] * x.ndim) for x in ones]
        return own, [nx.window_reduce(x, start, function, (2,) * x.ndim) for x in padded]

    ones = [nx.ones((2,) * rank, dtype="f64") for rank in (1, 2, 3)]
    own, padded = nx.jit(windows, compiler=compiler)(ones)
    for rank, x, y in zip((1, 2, 3), own, padded, strict=True):
        expected = np.ones((2,) * rank)
        padding = np.pad(expected, [(0, 1)] * rank, constant_values=start)
        for index in np.ndindex(expected.shape):
            total = nx.tensor(start, dtype="f64")
            for element in padding[tuple(slice(i, i + 2) for i in index)].ravel():
                total = function(nx.tensor(element), total)
            expected[index] = total.item()
        np.testing.assert_allclose(x, expected, rtol=1e-12)
        np.testing.assert_allclose(y, expected, rtol=1e-12)


WINDOW_FUNCTIONS = ["window_sum", "window_product", "window_max", "window_min", "window_mean"]


PADDING = [(0, -1), (-1, 0), (-1, -1), (2, -1), (-1, 2), (-5, 6), (6, -5)]


@pytest.mark.parametrize("padding", PADDING)
def test_windows_with_negative_padding(padding, compiler):
    def run(x):
        functions = [getattr(nx, name) for name in WINDOW_FUNCTIONS]
        return [f(x, size, padding=[padding] * x.ndim) for f in functions for size in (1, 2)]

    for shape in ((3,), (3, 4)):
        x = nx.reshape(nx.arange(np.prod(shape), dtype="f64") + 1, shape)
        found = nx.jit(run, compiler=compiler)(x)
        neutral = {"window_product": 1.0, "window_max": -np.inf, "window_min": np.inf}
        cases = [(name, size) for name in WINDOW_FUNCTIONS for size in (1, 2)]
        for (name, size), result in zip(cases, found, strict=True):
            padded = nx.pad(x, neutral.get(name, 0.0), [padding] * x.ndim)
            wanted = getattr(nx, name)(padded, size)
            np.testing.assert_allclose(result, wanted, rtol=1e-12, err_msg=f"{name} {size}")
