"""The JAX counterpart of examples/montecarlo.py."""

import jax
import jax.numpy as jnp


def price(parameters, normals, strike, years):
    start, volatility, rate = parameters
    dt = years / normals.shape[1]
    steps = (rate - 0.5 * volatility**2) * dt + volatility * dt**0.5 * normals
    paths = start * jnp.exp(jnp.cumsum(steps, axis=1))
    payoff = jnp.maximum(jnp.mean(paths, axis=1) - strike, 0.0)
    return jnp.exp(-rate * years) * payoff


def run(paths=20000, days=64):
    normals = jax.random.normal(jax.random.key(0), (paths, days))
    both = jnp.concat([normals, -normals], axis=0)
    parameters = (jnp.array(100.0), jnp.array(0.2), jnp.array(0.05))
    mean = lambda parameters, normals: jnp.mean(price(parameters, normals, 100.0, 1.0))  # noqa: E731
    value, (delta, vega, rho) = jax.jit(jax.value_and_grad(mean))(parameters, both)
    worst = jnp.quantile(price(parameters, both, 100.0, 1.0), 0.95)
    return {"value": value, "delta": delta, "vega": vega, "rho": rho, "worst": worst}
