"""Custom derivatives of functions over vectorized axes."""

import numpy as np
import pytest

import nxla as nx


@pytest.fixture
def scaled():
    """Return a function whose derivative is its second argument."""
    function = nx.custom_vjp(lambda x, s: x * 1.0)
    function.defvjp(lambda x, s: (x * 1.0, s), lambda s, c: (c * s, nx.zeros_like(s)))
    return function


def test_an_output_that_all_entries_share_has_a_derivative_for_each(scaled, compiler):
    factors = nx.tensor([1.0, 2.0, 3.0])
    each = nx.jit(nx.vmap(nx.grad(scaled), in_axes=(None, 0)), compiler=compiler)
    assert each(0.5, factors).tolist() == [1.0, 2.0, 3.0]
    weights = nx.tensor([1.0, 10.0, 100.0])
    weighted = nx.grad(lambda x: nx.sum(nx.vmap(scaled, in_axes=(None, 0))(x, factors) * weights))
    assert nx.jit(weighted, compiler=compiler)(0.5).item() == 321.0


def test_tangents_differ_between_entries_that_share_an_output(compiler):
    function = nx.custom_jvp(lambda x, y: nx.sin(x))
    function.defjvp(lambda primals, tangents: tangents[0] * primals[1])
    factors = nx.tensor([1.0, 2.0, 3.0])
    values = nx.jit(nx.vmap(function, in_axes=(None, 0)), compiler=compiler)(0.5, factors)
    np.testing.assert_allclose(values, [np.sin(0.5)] * 3, rtol=1e-6)
    slopes = nx.vmap(nx.grad(function), in_axes=(None, 0))
    assert nx.jit(slopes, compiler=compiler)(0.5, factors).tolist() == [1.0, 2.0, 3.0]
