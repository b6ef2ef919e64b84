"""Functions that `nx.from_jax` imports have the derivatives of JAX, including custom rules."""

import sys

import numpy as np
import pytest

import nxla as nx

X = np.array([-0.5, 0.1, 0.3, 0.9], np.float32)
WIDE_RANGE = np.array([-1000.0, -90.0, 0.0, 3.0, 100.0], np.float32)
BACKENDS = ["evaluator", "xla"]


@pytest.fixture
def jax():
    return pytest.importorskip("jax", exc_type=ImportError)


def close(found, expected):
    found, expected = np.asarray(found), np.asarray(expected)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=1e-5)


def straight_through(jax, x):
    return (x + jax.lax.stop_gradient(jax.numpy.round(x) - x)).sum()


def half_stopped(jax, x):
    return (x * jax.lax.stop_gradient(x)).sum()


def reversal(jax, x):
    reverse = jax.custom_vjp(lambda x: x)
    reverse.defvjp(lambda x: (x, None), lambda _, cotangent: (-cotangent,))
    return (reverse(x) ** 2).sum()


def stable_softplus(jax, x):
    jnp = jax.numpy
    softplus = jax.custom_jvp(lambda x: jnp.log(1 + jnp.exp(x)))
    softplus.defjvp(lambda x, t: (softplus(*x), t[0] * (1 - 1 / (1 + jnp.exp(x[0])))))
    return softplus(x).sum()


def activations(jax, x):
    functions = (jax.nn.relu, jax.nn.softplus, jax.nn.sigmoid, jax.nn.silu, jax.nn.log_sigmoid)
    return sum((function(x) * (index + 1)).sum() for index, function in enumerate(functions))


def loop(jax, x):
    def step(carry, item):
        carry = jax.numpy.tanh(carry * item + jax.lax.stop_gradient(carry))
        return carry, jax.nn.relu(carry) * item

    carry, items = jax.lax.scan(step, x[0], jax.numpy.tile(x, 3))
    return carry + items.sum()


def observed(jax, x):
    jax.debug.callback(lambda x: None, x)
    return jax.numpy.sin(x).sum()


def independent(jax, x):
    return jax.numpy.ones(3).sum()


CASES = [
    (straight_through, X),
    (half_stopped, X),
    (reversal, X),
    (stable_softplus, np.array([1.0, 80.0], np.float32)),
    (activations, WIDE_RANGE),
    (loop, X),
    (observed, X),
    (independent, X),
]


@pytest.mark.parametrize("compiler", BACKENDS)
@pytest.mark.parametrize(("function", "x"), CASES, ids=lambda it: getattr(it, "__name__", ""))
def test_derivatives_match_jax(jax, function, x, compiler):
    def original(x):
        return function(jax, x)

    f = nx.from_jax(original, x)
    gradient = jax.grad(original)

    def run(derivative, *args):
        return nx.jit(derivative, compiler=compiler)(*args)

    close(run(f, x), original(x))
    close(run(nx.grad(f), x), gradient(x))
    value, slopes = run(nx.value_and_grad(f), x)
    close(value, original(x))
    close(slopes, gradient(x))
    # A custom VJP of JAX has no forward mode; nxla transposes it.
    close(run(lambda x: nx.jvp(f, (x,), (nx.ones_like(x),))[1], x), gradient(x).sum())
    close(run(nx.hessian(f), x), jax.jacrev(gradient)(x))
    close(run(nx.jacobian(nx.grad(f)), x), jax.jacrev(gradient)(x))
    both = np.stack([x, x + 1])
    close(run(nx.vmap(nx.grad(f)), both), jax.vmap(gradient)(both))


def test_custom_rules_determine_derivatives(jax):
    def slopes(function, x):
        return nx.grad(nx.from_jax(lambda x: function(jax, x), x))(x).tolist()

    assert slopes(straight_through, X) == [1.0] * 4
    assert slopes(half_stopped, X) == X.tolist()
    assert slopes(reversal, X) == (-2 * X).tolist()
    assert slopes(stable_softplus, np.array([100.0], np.float32)) == [1.0]


def test_gamma_has_the_implicit_derivative(jax):
    key = jax.random.key(0)

    def draw(shape):
        return jax.random.gamma(key, shape).sum()

    close(nx.grad(nx.from_jax(draw, X + 2))(X + 2), jax.grad(draw)(X + 2))


@pytest.mark.parametrize("compiler", BACKENDS)
def test_third_derivative_of_a_loop_matches_jax(jax, compiler):
    def function(x):
        return jax.lax.scan(lambda c, _: (jax.numpy.sin(c) * x, None), x, None, 4)[0]

    f = nx.from_jax(function, 1.0)
    expected = jax.grad(jax.grad(jax.grad(function)))(0.3)
    x = np.float32(0.3)
    close(nx.jit(nx.grad(nx.grad(nx.grad(f))), compiler=compiler)(x), expected)

    def forward(g):
        return lambda x: nx.jvp(g, (x,), (nx.ones_like(x),))[1]

    close(nx.jit(forward(nx.grad(forward(f))), compiler=compiler)(x), expected)


def test_while_loop_without_reverse_rule_is_differentiable(jax):
    def function(x):
        return jax.lax.while_loop(lambda c: c[0] < 10, lambda c: c * 2, x).sum()

    f = nx.from_jax(function, np.ones(2, np.float32))
    assert nx.grad(f)(np.ones(2, np.float32)).tolist() == [16.0, 16.0]


@pytest.mark.parametrize("compiler", BACKENDS)
def test_integers_and_unused_arguments_have_no_derivative(jax, compiler):
    def function(at, x, unused, nothing):
        y = jax.numpy.sin(x)[at["at"]] * jax.lax.stop_gradient(x)
        return {"y": y, "largest": jax.numpy.argmax(x), "nothing": nothing}

    at, unused = {"at": np.array([0, 2, 1, 1], np.int32)}, np.ones(5, np.float32)
    f = nx.from_jax(function, at, X, unused, None)
    found = nx.jit(f, compiler=compiler)(at, X, unused, None)
    assert (found["largest"].item(), found["nothing"]) == (3, None)

    def total(x, unused):
        return nx.sum(f(at, x, unused, None)["y"])

    slope, zero = nx.jit(nx.grad(total, (0, 1)), compiler=compiler)(X, unused)
    close(slope, jax.grad(lambda x: function(at, x, unused, None)["y"].sum())(X))
    assert zero.tolist() == [0.0] * 5
    assert nx.from_jax(lambda x: x + 1, at["at"])(at["at"]).tolist() == [1, 3, 2, 2]


@pytest.mark.parametrize("compiler", BACKENDS)
def test_derivatives_of_complex_functions_match_jax(jax, compiler):
    def function(z, x):
        jnp = jax.numpy
        return (jnp.abs(z * jnp.exp(1j * z) * x + jax.lax.stop_gradient(z) * z.conj()) ** 2).sum()

    z, x = np.array([1 + 2j, -0.5 + 0.3j], np.complex64), X[2:]
    gradients = nx.jit(nx.grad(nx.from_jax(function, z, x), (0, 1)), compiler=compiler)(z, x)
    for found, expected in zip(gradients, jax.grad(function, (0, 1))(z, x), strict=True):
        close(found, expected)

    def square(z):
        return z * jax.lax.stop_gradient(z)

    f = nx.from_jax(square, z)
    close(nx.jvp(f, (z,), (1j * z,))[1], 1j * z**2)
    close(nx.vjp(f, z)[1](1j * z)[0], 1j * z**2)


@pytest.mark.parametrize("is_jitted", [False, True])
def test_gradients_of_captured_weights_match_jax(jax, is_jitted):
    jnp = jax.numpy
    matrix, bias, scale = jnp.arange(12.0).reshape(4, 3) / 8, jnp.zeros(3), jnp.float32(3)

    def layer(matrix, bias, scale, x):
        return jax.nn.relu(jax.jit(lambda x: x @ matrix)(x) * 0 + bias * scale).sum()

    def captured(x):
        return layer(matrix, bias, scale, x)

    f = nx.from_jax(jax.jit(captured) if is_jitted else captured, X, weights="arguments")
    assert sorted(weight.shape for weight in f.weights) == [(), (3,), (4, 3)]
    expected = jax.grad(layer, (0, 1, 2))(matrix, bias, scale, X)
    by_shape = {gradient.shape: gradient for gradient in expected}
    gradients = nx.grad(lambda weights: f(weights, X))(f.weights)
    for found, weight in zip(gradients, f.weights, strict=True):
        close(found, by_shape[weight.shape])


def test_a_saved_program_keeps_the_derivatives_of_jax(jax):
    f = nx.from_jax(lambda x: straight_through(jax, x), X)
    loaded = nx.Expression.from_bytes(nx.debug_expr(f)(X).to_bytes())
    assert nx.grad(lambda x: nx.expr.call(loaded, x)[0])(X).tolist() == [1.0] * 4


def test_derivatives_keep_64_bits(jax):
    enable_x64 = (jax if hasattr(jax, "enable_x64") else jax.experimental).enable_x64
    x = X.astype(np.float64)
    with enable_x64(True):
        f = nx.from_jax(lambda x: half_stopped(jax, x), x)
    assert nx.grad(f)(x).tolist() == x.tolist()


@pytest.mark.parametrize("has_loop", [False, True])
def test_the_gradient_computes_the_function_once(jax, has_loop):
    def step(x):
        return jax.numpy.tanh(jax.numpy.tanh(x) * x)

    def function(x):
        if has_loop:
            return jax.lax.scan(lambda c, _: (step(c), None), x, None, 3)[0].sum()
        return step(x).sum()

    f = nx.from_jax(function, X)
    without = nx.jit(f, compiler="xla").lower(X).as_text()
    text = nx.jit(nx.grad(f), compiler="xla").lower(X).as_text()
    assert without.count("stablehlo.tanh") == 2
    assert text.count("stablehlo.tanh") == 2
    assert text.count("stablehlo.while") == 2 * without.count("stablehlo.while")


def test_from_jax_requires_jax(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(ImportError):
        nx.from_jax(lambda x: x, X)


def test_stablehlo_text_has_no_derivative_rules():
    # `x * stop_gradient(x)` is a product in StableHLO.
    f = nx.from_stablehlo("""
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = stablehlo.multiply %x, %x : tensor<4xf32>
      return %0 : tensor<4xf32>
    }""")
    close(nx.grad(lambda x: nx.sum(f(x)))(X), 2 * X)
