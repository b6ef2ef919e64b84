"""The JAX counterpart of examples/nbody.py."""

import jax
import jax.numpy as jnp


def energy(x, v, m):
    gaps = jnp.sqrt(jnp.sum((x[:, None] - x[None]) ** 2, axis=-1) + 0.01)
    bound = jnp.sum(jnp.where(jnp.eye(len(m)) > 0, 0.0, m[:, None] * m / gaps))
    return 0.5 * jnp.sum(m[:, None] * v**2) - 0.5 * bound


def forces(x, m):
    return -jax.grad(lambda x: energy(x, jnp.zeros_like(x), m))(x) / m[:, None]


def move(x, v, m, dt, steps):
    def step(state, _):
        x, v = state
        v = v + 0.5 * dt * forces(x, m)
        x = x + dt * v
        v = v + 0.5 * dt * forces(x, m)
        return (x, v), energy(x, v, m)

    return jax.lax.scan(step, (x, v), None, length=steps)


def run(bodies=64, steps=200, dt=0.002):
    keys = jax.random.split(jax.random.key(0), 3)
    x = jax.random.normal(keys[0], (bodies, 3))
    v = jax.random.normal(keys[1], (bodies, 3)) * 0.3
    m = jax.random.uniform(keys[2], (bodies,)) / bodies
    (x, v), energies = jax.jit(move, static_argnums=(3, 4))(x, v, m, dt, steps)
    return {"x": x, "energies": energies}
