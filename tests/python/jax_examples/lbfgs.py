"""The JAX counterpart of examples/lbfgs.py."""

import jax
import jax.numpy as jnp


def rosenbrock(x):
    return jnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def direction(g, steps, changes):
    """The product of the inverse Hessian and the gradient, by the last steps and changes."""
    rho = jnp.sum(steps * changes, axis=1)
    rho = jnp.where(rho > 1e-10, 1.0 / jnp.where(rho > 1e-10, rho, 1.0), 0.0)

    def back(q, row):
        s, y, r = row
        a = r * jnp.dot(s, q)
        return q - a * y, a

    q, shares = jax.lax.scan(back, g, (steps, changes, rho), reverse=True)
    length = jnp.dot(changes[-1], changes[-1])
    q = q * jnp.where(length > 0, jnp.dot(steps[-1], changes[-1]) / jnp.maximum(length, 1e-30), 1.0)

    def forth(q, row):
        s, y, r, a = row
        return q + s * (a - r * jnp.dot(y, q)), ()

    return -jax.lax.scan(forth, q, (steps, changes, rho, shares))[0]


def lbfgs(f, x, count, memory):
    def step(_, state):
        x, g, steps, changes = state
        d = direction(g, steps, changes)
        slope = jnp.dot(d, g)
        # Armijo's rule: halve the step until the value decreases enough.
        enough = lambda t: f(x + t * d) <= f(x) + 1e-4 * t * slope  # noqa: E731
        t = jax.lax.while_loop(lambda t: ~enough(t) & (t > 1e-8), lambda t: t * 0.5, 1.0)
        new = x + t * d
        slopes = jax.grad(f)(new)
        keep = lambda rows, row: jnp.concat([rows[1:], row[None]], axis=0)  # noqa: E731
        return new, slopes, keep(steps, new - x), keep(changes, slopes - g)

    empty = jnp.zeros((memory, x.shape[0]))
    return jax.lax.fori_loop(0, count, step, (x, jax.grad(f)(x), empty, empty))[0]


def run(size=10, count=60, memory=5):
    start = jnp.full((size,), -0.5)
    x = jax.jit(lambda x: lbfgs(rosenbrock, x, count, memory))(start)
    return {"x": x, "f": rosenbrock(x)}
