"""Gradients through extrema of computed values: XLA compares the values that it has reduced."""

import numpy as np
import pytest

import nxla as nx
from where import on_cpu


def normalized(x, n=nx):
    y = n.tanh(x) + n.sum(x * x, axis=0, keepdims=True) * 0.01
    return n.sum(y / (1 + n.max(n.abs(y), axis=1, keepdims=True)))


@pytest.mark.parametrize("seed", range(10))
def test_gradient_of_rows_divided_by_their_maximum(seed):
    x = np.random.default_rng(seed).normal(size=(20, 50))
    found = nx.jit(nx.grad(normalized), compiler="xla")(x)
    expected = nx.jit(nx.grad(normalized), compiler="evaluator")(x)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    index = np.unravel_index(np.argmax(np.abs(np.tanh(x))), x.shape)
    step = np.zeros_like(x)
    step[index] = 1e-6
    slope = (normalized(x + step, np) - normalized(x - step, np)) / 2e-6
    assert np.asarray(found)[index] == pytest.approx(slope, rel=1e-6)


#: Arrays that XLA computes again for each consumer.
VALUES = [
    lambda x, r: nx.tanh(x) + nx.sum(x * x, axis=0, keepdims=True) * r[0],
    lambda x, r: x * r[0] + nx.sin(x) * r[1] + nx.sum(nx.cos(x), axis=0) * r[2],
    lambda x, r: nx.exp(x * r[0]) - nx.mean(x * x, axis=1, keepdims=True) * r[1],
    lambda x, r: (x - nx.mean(x, axis=1, keepdims=True)) * r[0] + x * r[1],
    lambda x, r: nx.sigmoid(x) * x + nx.flip(nx.sum(nx.sin(x), axis=0), axis=0) * r[0],
    lambda x, r: x * r[0] + nx.roll(x, 1, axis=0) * nx.sum(x, axis=0) * r[1],
]

#: Functions whose derivatives search for the selected elements.
CHOICES = [
    lambda y: nx.max(y, axis=1, keepdims=True),
    lambda y: nx.min(y, axis=0, keepdims=True),
    lambda y: nx.max(y),
    lambda y: nx.max(nx.abs(y), axis=(0, 1), keepdims=True),
    lambda y: nx.linalg.vector_norm(y, ord=float("inf"), axis=1, keepdims=True),
    lambda y: nx.max(nx.reshape(y, (y.shape[0] // 2, -1)), axis=1),
    lambda y: nx.max(y, axis=1, keepdims=True) - nx.min(y, axis=1, keepdims=True),
    lambda y: nx.max(nx.permute_dims(y)[1:], axis=0),
    lambda y: nx.window_max(y, (1, 3), strides=(1, 2), dilations=(1, 2)),
    lambda y: nx.window_min(y, (2, 2)),
    lambda y: nx.cumulative_max(y, axis=1),
    lambda y: nx.median(y, axis=1, keepdims=True),
    lambda y: nx.top_k(y, 3)[0],
    lambda y: nx.nanmax(y, axis=0, keepdims=True),
    lambda y: nx.max(nx.where(y < 0.5, y, -9.0), axis=1),
    lambda y: nx.max(nx.max(y, axis=1)),
]


def program(seed):
    """Return a random function of an array."""
    rng = np.random.default_rng(seed)
    r = rng.uniform(0.1, 1.0, 3).tolist()
    value = VALUES[rng.integers(len(VALUES))]
    choice = CHOICES[seed % len(CHOICES)]
    form = rng.integers(4)

    def function(x):
        y = value(x, r)
        chosen = choice(y)
        if form == 0:
            return nx.sum(y) / (2 + nx.sum(chosen * chosen))
        if form == 1:
            return nx.mean(y * y) * nx.mean(nx.sin(chosen)) + nx.sum(chosen)
        if form == 2 and chosen.ndim == y.ndim:
            return nx.sum(nx.tanh(nx.sum(y, axis=1) * 0.1)) + nx.sum(nx.exp(chosen * 0.1))
        return nx.sum(nx.tanh(chosen)) + nx.sum(nx.sin(y))

    return function


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("seed", range(20))
def test_random_programs(seed, dtype):
    function = program(seed)
    rng = np.random.default_rng(1000 + seed)
    x = rng.normal(size=(int(rng.integers(4, 24)) * 2, int(rng.integers(9, 70)))).astype(dtype)
    found = np.asarray(nx.jit(nx.grad(function), compiler="xla")(x))
    expected = np.asarray(nx.jit(nx.grad(function), compiler="evaluator")(x))
    scale = np.abs(expected).max()
    share = 1e-3 if dtype == "f4" else 1e-9
    np.testing.assert_allclose(found, expected, rtol=share, atol=share * scale)
    direction = rng.normal(size=x.shape).astype(dtype)
    tangent = nx.jit(lambda x, v: nx.jvp(function, (x,), (v,))[1], compiler="xla")(x, direction)
    slope = float(np.vdot(expected, direction))
    tolerance = share * float(np.linalg.norm(expected))
    assert tangent.item() == pytest.approx(slope, abs=tolerance)
    if dtype == "f8":
        step = 1e-6 * direction
        ends = [nx.jit(function, compiler="evaluator")(x + sign * step) for sign in (1, -1)]
        difference = (ends[0].item() - ends[1].item()) / 2e-6
        assert slope == pytest.approx(difference, rel=1e-4, abs=1e-4 * float(scale))


def test_stored_values_are_not_overwritten():
    """The first steps of the maximum occur twice, and only one of them is stored."""

    def function(x):
        y = (x - nx.mean(x, axis=1, keepdims=True)) * 0.3 + x * 0.7
        return nx.sum(y) * nx.sum(nx.sin(nx.cumulative_max(y, axis=1)))

    x, direction = np.random.default_rng(0).normal(size=(2, 34, 14))
    found, expected = (
        nx.jit(lambda x, v: nx.jvp(function, (x,), (v,)), compiler=compiler)(x, direction)
        for compiler in ("xla", "evaluator")
    )
    for one, other in zip(found, expected, strict=True):
        assert one.item() == pytest.approx(other.item(), rel=1e-12)


@pytest.mark.parametrize("size", [(20, 50), (300, 1100)])
@pytest.mark.parametrize("compare", [lambda y, m: y == m, lambda y, m: y >= m])
def test_masks_of_row_maxima_select_one_element(size, compare):
    def mask(x):
        y = nx.tanh(x) + nx.sum(x * x, axis=0, keepdims=True) * 0.01
        return nx.sum(compare(y, nx.max(y, axis=1, keepdims=True)), axis=1)

    x = np.random.default_rng(0).normal(size=size)
    assert nx.all(nx.jit(mask, compiler="xla")(x) == 1).item()


def test_returned_maxima_are_elements_of_the_array():
    def both(x):
        y = nx.tanh(x) + nx.sum(x * x, axis=0, keepdims=True) * 0.01
        return y, nx.max(y, axis=1)

    x = np.random.default_rng(0).normal(size=(20, 50))
    y, largest = nx.jit(both, compiler="xla")(x)
    assert np.array_equal(np.asarray(y).max(axis=1), np.asarray(largest))


def normalized_in_scan(x, r):
    def step(carry, row):
        y = nx.tanh(row) * r + carry * nx.sum(row * row) * 0.01
        return y / (1 + nx.max(nx.abs(y))), nx.max(y * 1.5 + row)

    carry, rows = nx.scan(step, x[0] * 0.5, x)
    return nx.sum(carry) + nx.sum(rows * rows)


FORMS = {
    "scan": lambda x: normalized_in_scan(x, 0.7),
    "checkpoint": nx.checkpoint(normalized),
    "checkpoint of products": nx.checkpoint(normalized, "products"),
    "checkpoint of everything": nx.checkpoint(normalized, "everything"),
    "cond": lambda x: nx.cond(nx.sum(x) < 1e9, lambda: normalized(x), lambda: nx.sum(x)),
    "vmap": lambda x: nx.sum(nx.vmap(normalized)(nx.stack([x, x * 0.5]))),
}


@pytest.mark.parametrize("form", FORMS)
def test_extrema_inside_of_control_flow(form):
    x = np.random.default_rng(5).normal(size=(20, 50))
    gradient = nx.grad(FORMS[form])
    found = nx.jit(gradient, compiler="xla")(x)
    expected = nx.jit(gradient, compiler="evaluator")(x)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)


def test_vjp_that_runs_after_the_forward_pass():
    x = nx.tensor(np.random.default_rng(6).normal(size=(20, 50)))
    with nx.default_options(compiler="xla"):
        _, pull = nx.vjp(nx.jit(normalized), x)
        found = pull(nx.tensor(1.0, dtype=nx.float64))[0]
    expected = nx.jit(nx.grad(normalized), compiler="evaluator")(x)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)


@on_cpu
def test_gradients_over_several_devices():
    mesh = nx.Mesh(data=2)
    x = np.random.default_rng(7).normal(size=(20, 50))
    gradient = nx.grad(normalized)
    found = nx.jit(gradient, in_shardings=mesh.sharding("data", None))(x)
    expected = nx.jit(gradient, compiler="evaluator")(x)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)


#: Extrema whose result at index 1 is NaN, with the elements that contribute to it.
UNDEFINED = {
    "max": (lambda x: nx.max(nx.reshape(x, (2, 2)), axis=1), [2, 3]),
    "min": (lambda x: nx.min(nx.reshape(x, (2, 2)), axis=1), [2, 3]),
    "max of float16": (lambda x: nx.max(nx.reshape(nx.astype(x, "f16"), (2, 2)), axis=1), [2, 3]),
    "vector_norm": (
        lambda x: nx.linalg.vector_norm(nx.reshape(x, (2, 2)), ord=float("inf"), axis=1), [2, 3]
    ),
    "segment_max": (lambda x: nx.segment_max(x, [0, 0, 1, 1], num_segments=2), [2, 3]),
    "segment_min": (lambda x: nx.segment_min(x, [0, 0, 1, 1], num_segments=2), [2, 3]),
    "at.max": (lambda x: nx.zeros(3).at[[0, 0, 1, 1]].max(x), [2, 3]),
    "at.min": (lambda x: nx.ones(3).at[[0, 0, 1, 1]].min(x), [2, 3]),
}  # fmt: skip


@pytest.mark.parametrize("name", UNDEFINED)
@pytest.mark.parametrize("compiler", ["evaluator", "xla"])
def test_derivatives_of_nan_extrema_are_nan(name, compiler):
    function, undefined = UNDEFINED[name]
    x = nx.tensor([0.25, 0.5, 3.0, float("nan")])
    slopes = nx.jit(nx.grad(lambda x: nx.sum(function(x))), compiler=compiler)(x)
    assert np.flatnonzero(np.isnan(slopes)).tolist() == undefined
    tangents = nx.jit(lambda x: nx.jvp(function, (x,), (nx.ones(4),))[1], compiler=compiler)(x)
    assert np.flatnonzero(np.isnan(tangents)).tolist() == [1]


def test_nan_without_an_update_keeps_its_gradient():
    x = nx.tensor([float("nan"), 1.0])
    function = lambda x: x.at[[1, 1]].max([0.0, 2.0])  # noqa: E731
    assert nx.grad(lambda x: nx.sum(function(x)))(x).tolist() == [1.0, 0.0]
    assert nx.jvp(function, (x,), (nx.ones(2),))[1].tolist() == [1.0, 0.0]
