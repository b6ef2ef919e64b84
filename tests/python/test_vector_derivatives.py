"""Derivatives of functions over vectorized axes."""

import numpy as np
import pytest

import nxla as nx


@pytest.fixture
def scaled():
    """Return a function whose derivative is its second argument."""
    function = nx.custom_vjp(lambda x, s: x * 1.0)
    function.defvjp(lambda x, s: (x * 1.0, s), lambda s, c: (c * s, nx.zeros_like(s)))
    return function


def test_shared_output_has_per_entry_gradients(scaled, compiler):
    factors = nx.tensor([1.0, 2.0, 3.0])
    per_entry = nx.jit(nx.vmap(nx.grad(scaled), in_axes=(None, 0)), compiler=compiler)
    assert per_entry(0.5, factors).tolist() == [1.0, 2.0, 3.0]
    weights = nx.tensor([1.0, 10.0, 100.0])
    weighted = nx.grad(lambda x: nx.sum(nx.vmap(scaled, in_axes=(None, 0))(x, factors) * weights))
    assert nx.jit(weighted, compiler=compiler)(0.5).item() == 321.0


def test_shared_output_has_per_entry_tangents(compiler):
    function = nx.custom_jvp(lambda x, y: nx.sin(x))
    function.defjvp(lambda primals, tangents: tangents[0] * primals[1])
    factors = nx.tensor([1.0, 2.0, 3.0])
    values = nx.jit(nx.vmap(function, in_axes=(None, 0)), compiler=compiler)(0.5, factors)
    np.testing.assert_allclose(values, [np.sin(0.5)] * 3, rtol=1e-6)
    slopes = nx.vmap(nx.grad(function), in_axes=(None, 0))
    assert nx.jit(slopes, compiler=compiler)(0.5, factors).tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("inside", ["plain", "batched", "scan", "checkpoint", "cond"])
def test_custom_rules_use_captured_entry_values(inside, compiler):
    factors = nx.tensor([1.0, 2.0, 3.0])
    weights = nx.tensor([1.0, 10.0, 100.0])
    scale = nx.custom_vjp(lambda w, s: w * 1.0, nondiff_argnums=(1,))
    scale.defvjp(lambda w, s: (w * 1.0, None), lambda s, _, cotangent: (cotangent * s,))

    def call(w, s):
        if inside == "scan":
            return nx.scan(lambda x, _: (scale(x, s), None), w, length=1)[0]
        if inside == "checkpoint":
            return nx.checkpoint(lambda x: scale(x, s))(w)
        if inside == "cond":
            return nx.cond(w > 0, lambda: scale(w, s), lambda: w)
        return scale(w, s)

    def entries(w):
        # A compiled function is a graph in the graph, whose ops are batched.
        entry_function = nx.jit(call) if inside == "batched" else call
        return nx.vmap(entry_function, in_axes=(None, 0))(w, factors)

    slope = nx.jit(nx.grad(lambda w: nx.sum(entries(w) * weights)), compiler=compiler)
    assert slope(0.5).item() == 321.0
    per_entry = nx.jit(nx.vmap(lambda s: nx.grad(lambda w: call(w, s))(0.5)), compiler=compiler)
    assert per_entry(factors).tolist() == [1.0, 2.0, 3.0]
    tangents = nx.jit(lambda w: nx.jvp(entries, (w,), (1.0,))[1], compiler=compiler)
    assert tangents(0.5).tolist() == [1.0, 2.0, 3.0]


def test_custom_rules_broadcast_an_axis_of_size_1(compiler):
    x, y = nx.vectorize([5.0], "a"), nx.vectorize([1.0, 2.0], "a")

    def product(x, y):
        return nx.custom_grad(x * y, x, lambda cotangent: cotangent * y)

    values = nx.jit(product, compiler=compiler)(x, y)
    assert nx.devectorize(values).tolist() == [5.0, 10.0]
    slope = nx.jit(nx.grad(product), compiler=compiler)(x, y)
    assert nx.devectorize(slope).tolist() == [1.0, 2.0]


#: Functions that vectorize their result.
VECTORIZING = {
    "elements": lambda x: nx.vectorize(x * x, "v"),
    "rows": lambda x: nx.vectorize(nx.outer(x, nx.sin(x)), "v"),
    "two axes": lambda x: nx.vectorize(nx.outer(x, nx.sin(x))[:2], ["v", "w"]),
    "names": lambda x: nx.sum(
        nx.vectorize(nx.rename(nx.outer(x, nx.exp(x)), ("a", "b")), "v"), axis="b"
    ),
    "a branch": lambda x: nx.cond(x[0] > 0, lambda: nx.vectorize(x * x, "v"), lambda: x[0]),
}


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("name", VECTORIZING)
def test_vectorized_results_have_per_entry_derivatives(name, traced):
    function = VECTORIZING[name]
    run = nx.jit if traced else lambda function: function
    x = nx.tensor([1.0, 2.0, 3.0])
    expected = run(nx.jacfwd(function))(x)

    def pull_back(x):
        y, pull = nx.vjp(function, x)
        return pull(nx.ones_like(y))[0]

    def total(x):
        return nx.sum(function(x))

    found = {
        "jacrev": run(nx.jacrev(function))(x),
        "vjp": run(pull_back)(x),
        "grad": run(nx.grad(total))(x),
        "value_and_grad": run(lambda x: nx.value_and_grad(total)(x)[1])(x),
    }
    totals = expected if expected.ndim == 1 else nx.sum(expected, axis=0)
    for derivative, result in found.items():
        reference = expected if derivative == "jacrev" else totals
        assert result.vectorized_axes == reference.vectorized_axes
        np.testing.assert_allclose(nx.devectorize(result), nx.devectorize(reference), rtol=1e-6)


def test_linear_maps_along_axes_that_results_vectorize(compiler):
    rows = nx.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 2.0], [1.0, 1.0, 3.0]])
    x, directions = nx.tensor([1.0, 2.0, 3.0]), nx.vectorize(rows, "v")

    def function(x):
        return nx.vectorize(x * x, "v")

    def both(x, directions):
        push = nx.linearize(function, x)[1]
        return nx.jvp(function, (x,), (directions,))[1], push(directions), push(x)

    along, pushed, shared = nx.jit(both, compiler=compiler)(x, directions)
    assert nx.devectorize(along).tolist() == nx.devectorize(pushed).tolist() == [2.0, 4.0, 18.0]
    assert nx.devectorize(shared).tolist() == [2.0, 8.0, 18.0]
