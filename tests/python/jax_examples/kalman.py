"""The JAX counterpart of examples/kalman.py."""

import jax
import jax.numpy as jnp

STEP = jnp.array([[1.0, 0.1], [0.0, 1.0]])
LOOK = jnp.array([[1.0, 0.0]])
DRIFT = 0.01 * jnp.eye(2)
NOISE = jnp.array([[0.25]])


def update(state, seen):
    mean, spread = state
    mean, spread = STEP @ mean, STEP @ spread @ STEP.T + DRIFT
    surprise = seen - LOOK @ mean
    weight = LOOK @ spread @ LOOK.T + NOISE
    gain = jnp.linalg.solve(weight, LOOK @ spread).T
    likelihood = -0.5 * (
        jnp.dot(surprise, jnp.linalg.solve(weight, surprise)) + jnp.linalg.slogdet(weight)[1]
    )
    state = mean + gain @ surprise, spread - gain @ LOOK @ spread
    return state, (state[0], likelihood)


def simulate(key, steps):
    keys = jax.random.split(key)
    push = jax.random.normal(keys[0], (steps, 2)) * 0.1
    noise = jax.random.normal(keys[1], (steps, 1)) * 0.5
    move = lambda x, z: (STEP @ x + z[0], LOOK @ (STEP @ x + z[0]) + z[1])  # noqa: E731
    return jax.lax.scan(move, jnp.zeros(2), (push, noise))[1]


def run(steps=200, targets=8):
    keys = jax.random.split(jax.random.key(0), targets)
    seen = jax.vmap(lambda key: simulate(key, steps))(keys)
    begin = (jnp.zeros(2), jnp.eye(2))
    means, likelihoods = jax.jit(jax.vmap(lambda row: jax.lax.scan(update, begin, row)[1]))(seen)
    return {"means": means, "likelihood": jnp.sum(likelihoods, axis=1)}
