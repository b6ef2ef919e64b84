"""The JAX counterpart of examples/gpt.py."""

import jax
import jax.numpy as jnp
import optax

TEXT = (
    "the quick brown fox jumps over the lazy dog and runs away from the other quick brown fox. " * 8
)


def attention(p, x, heads):
    q, k, v = (jnp.reshape(x @ p[name], (*x.shape[:2], heads, -1)) for name in "qkv")
    mixed = jax.nn.dot_product_attention(q, k, v, is_causal=True)
    return jnp.reshape(mixed, x.shape) @ p["o"]


def norm(p, x):
    return jax.nn.standardize(x, epsilon=1e-5) * p


def gpt(params, tokens, heads):
    x = params["letters"][tokens] + params["places"][: tokens.shape[1]]
    for p in params["blocks"]:
        x = x + attention(p, norm(p["norm1"], x), heads)
        x = x + jax.nn.gelu(norm(p["norm2"], x) @ p["up"]) @ p["down"]
    return norm(params["norm"], x) @ params["letters"].T


def loss(params, tokens, heads):
    logits = gpt(params, tokens[:, :-1], heads)
    return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]))


def init(key, letters, length, width, depth):
    keys = iter(jax.random.split(key, 99))
    draw = lambda *shape: jax.random.normal(next(keys), shape) * shape[0] ** -0.5  # noqa: E731
    block = lambda: {  # noqa: E731
        **{name: draw(width, width) for name in "qkvo"},
        **{"up": draw(width, 4 * width), "down": draw(4 * width, width)},
        **{"norm1": jnp.ones(width), "norm2": jnp.ones(width)},
    }
    places, table = draw(length, width), draw(letters, width)
    blocks = [block() for _ in range(depth)]
    return {"letters": table, "places": places, "blocks": blocks, "norm": jnp.ones(width)}


def run(steps=200, length=32, width=64, depth=2, heads=4):
    letters = sorted(set(TEXT))
    codes = jnp.array([letters.index(letter) for letter in TEXT])
    rows = jnp.stack([codes[i : i + length + 1] for i in range(0, len(TEXT) - length, length)])
    params = init(jax.random.key(0), len(letters), length, width, depth)
    optimizer = optax.adamw(optax.warmup_cosine_decay_schedule(0.0, 3e-3, 10, max(steps, 11)))

    @jax.jit
    def step(params, state):
        value, slopes = jax.value_and_grad(loss)(params, rows, heads)
        updates, state = optimizer.update(slopes, state, params)
        return optax.apply_updates(params, updates), state, value

    state, losses = optimizer.init(params), []
    for _ in range(steps):
        params, state, value = step(params, state)
        losses.append(value)
    return {"losses": jnp.stack(losses)}
