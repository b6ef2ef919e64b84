"""The JAX counterpart of examples/spectral.py."""

import jax
import jax.numpy as jnp


def step(u, dt, viscosity):
    waves = jnp.fft.rfftfreq(len(u), d=1.0 / len(u))
    # Products of the upper third of the waves would alias to lower frequencies.
    kept = waves < len(u) / 3
    slope = lambda u: jnp.fft.irfft(-0.5j * waves * kept * jnp.fft.rfft(u**2))  # noqa: E731
    decay = jnp.exp(-viscosity * waves**2 * dt)
    spread = lambda u: jnp.fft.irfft(decay * jnp.fft.rfft(u))  # noqa: E731
    first = slope(u)
    return spread(u + 0.5 * dt * first) + 0.5 * dt * slope(spread(u + dt * first))


def run(points=256, steps=400, dt=0.002, viscosity=0.05):
    x = jnp.linspace(0.0, 2 * jnp.pi, points, endpoint=False)
    start = jnp.sin(x) + 0.5 * jnp.cos(2 * x)
    solve = lambda u: jax.lax.fori_loop(0, steps, lambda _, u: step(u, dt, viscosity), u)  # noqa: E731
    u = jax.jit(solve)(start)
    return {"u": u, "energy": jnp.mean(u**2)}
