"""The JAX counterpart of examples/mandelbrot.py."""

import jax
import jax.numpy as jnp


def counts(x, y, limit):
    c = x + 1j * y[:, None]

    def step(_, state):
        z, count = state
        near = jnp.abs(z) <= 2.0
        return jnp.where(near, z * z + c, z), count + near

    begin = (jnp.zeros_like(c), jnp.zeros(c.shape, dtype=jnp.int32))
    return jax.lax.fori_loop(0, limit, step, begin)[1]


def run(width=78, height=32, limit=50):
    x, y = jnp.linspace(-2.1, 0.7, width), jnp.linspace(-1.2, 1.2, height)
    return {"counts": jax.jit(counts, static_argnums=2)(x, y, limit)}
