"""The JAX counterpart of examples/ode.py."""

import jax
import jax.numpy as jnp

# The coefficients of the Bogacki-Shampine method of order 3, with an error estimate.
ERROR = (-5 / 72, 1 / 12, 1 / 9, -1 / 8)


def system(y, p):
    return jnp.stack([p[0] * y[0] - p[1] * y[0] * y[1], p[2] * y[0] * y[1] - p[3] * y[1]])


def stages(y, h, p):
    k1 = system(y, p)
    k2 = system(y + 0.5 * h * k1, p)
    k3 = system(y + 0.75 * h * k2, p)
    new = y + h * (2 / 9 * k1 + 1 / 3 * k2 + 4 / 9 * k3)
    k4 = system(new, p)
    return new, h * sum(e * k for e, k in zip(ERROR, (k1, k2, k3, k4), strict=True))


def adaptive(y, end, p, tolerance):
    def step(state):
        t, y, h, count = state
        h = jnp.minimum(h, end - t)
        new, error = stages(y, h, p)
        size = jnp.max(jnp.abs(error)) / tolerance
        fits = size <= 1.0
        factor = jnp.clip(0.9 * jnp.maximum(size, 1e-6) ** (-1 / 3), 0.2, 5.0)
        return t + jnp.where(fits, h, 0.0), jnp.where(fits, new, y), h * factor, count + 1

    begin = (jnp.array(0.0), y, jnp.array(0.1), jnp.array(0))
    return jax.lax.while_loop(lambda state: state[0] < end - 1e-6, step, begin)


def fixed(y, h, steps, p):
    return jax.lax.scan(lambda y, _: (stages(y, h, p)[0],) * 2, y, None, length=steps)[1]


def run(end=10.0, steps=200, rounds=20):
    y, p = jnp.array([1.0, 0.5]), jnp.array([1.1, 0.4, 0.1, 0.4])
    t, last, _, count = jax.jit(lambda y, p: adaptive(y, end, p, 1e-4))(y, p)
    path = fixed(y, end / steps, steps, p)
    loss = lambda p: jnp.mean((fixed(y, end / steps, steps, p) - path) ** 2)  # noqa: E731
    slope, guess = jax.jit(jax.value_and_grad(loss)), p * 1.05
    for _ in range(rounds):
        value, g = slope(guess)
        guess = guess - 0.0001 * g
    return {"t": t, "last": last, "guess": guess, "loss": value, "quick": count < steps}
