"""The JAX counterpart of examples/gp.py."""

import jax
import jax.numpy as jnp


def kernel(p, x, y):
    return jnp.exp(p["size"] - 0.5 * ((x[:, None] - y) / jnp.exp(p["length"])) ** 2)


def factor(p, x):
    noise = jnp.exp(p["noise"]) + 1e-4
    return jnp.linalg.cholesky(kernel(p, x, x) + noise * jnp.eye(len(x)))


def loss(p, x, y):
    root = factor(p, x)
    z = jax.scipy.linalg.solve_triangular(root, y, lower=True)
    return 0.5 * jnp.sum(z**2) + jnp.sum(jnp.log(jnp.diagonal(root)))


def predict(p, x, y, at):
    root = factor(p, x)
    between = jax.scipy.linalg.solve_triangular(root, kernel(p, x, at), lower=True)
    mean = between.T @ jax.scipy.linalg.solve_triangular(root, y, lower=True)
    return mean, jnp.exp(p["size"]) - jnp.sum(between**2, axis=0)


def run(points=60, steps=100):
    x = jnp.linspace(-3.0, 3.0, points)
    y = jnp.sin(2.0 * x) + 0.2 * jax.random.normal(jax.random.key(0), (points,))
    p = {name: jnp.array(0.0) for name in ("length", "noise", "size")}
    slopes = jax.jit(jax.grad(loss))
    for _ in range(steps):
        p = jax.tree.map(lambda p, g: p - 0.01 * g, p, slopes(p, x, y))
    mean, variance = jax.jit(predict)(p, x, y, jnp.linspace(-4.0, 4.0, 9))
    return {"p": p, "mean": mean, "variance": variance}
