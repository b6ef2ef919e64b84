"""The JAX counterpart of examples/minilm.py."""

import jax
import jax.numpy as jnp


def layer_norm(p, x):
    return jax.nn.standardize(x, epsilon=1e-5) * p[0] + p[1]


def encoder(params, tokens, mask, heads):
    x = layer_norm(params["norm"], params["words"][tokens] + params["places"][: tokens.shape[1]])
    seen = mask[:, None, None, :]
    for p in params["blocks"]:
        split = lambda y: jnp.reshape(y, (*y.shape[:2], heads, -1))  # noqa: E731
        q, k, v = (split(x @ p[name] + p[name + "b"]) for name in "qkv")
        mixed = jax.nn.dot_product_attention(q, k, v, mask=seen)
        x = layer_norm(p["norm1"], x + jnp.reshape(mixed, x.shape) @ p["o"])
        hidden = jax.nn.gelu(x @ p["up"], approximate=False)
        x = layer_norm(p["norm2"], x + hidden @ p["down"])
    weight = mask[:, :, None]
    mean = jnp.sum(x * weight, axis=1) / jnp.sum(weight, axis=1)
    return mean / jnp.linalg.norm(mean, axis=-1, keepdims=True)


def init(key, words, length, width, depth):
    keys = iter(jax.random.split(key, 99))
    draw = lambda *shape: 0.1 * jax.random.normal(next(keys), shape)  # noqa: E731
    norm = lambda: (jnp.ones(width), draw(width))  # noqa: E731
    block = lambda: {  # noqa: E731
        **{name: draw(width, width) for name in "qkvo"},
        **{name + "b": draw(width) for name in "qkv"},
        **{"up": draw(width, 4 * width), "down": draw(4 * width, width)},
        **{"norm1": norm(), "norm2": norm()},
    }
    table, places, first = draw(words, width), draw(length, width), norm()
    blocks = [block() for _ in range(depth)]
    return {"words": table, "places": places, "norm": first, "blocks": blocks}


def run(width=384, depth=6, heads=12, words=1000, length=16):
    params = init(jax.random.key(0), words, length, width, depth)
    tokens = jnp.reshape(jnp.arange(4 * length) * 37 % words, (4, length))
    lengths = jnp.array([length, length // 2, length // 2, 3])
    mask = jnp.arange(length) < lengths[:, None]
    # The third sentence differs from the second one only at masked words.
    tokens = jnp.concat([tokens[:2], jnp.where(mask[1:2], tokens[1:2], 7), tokens[3:]], axis=0)
    vectors = jax.jit(encoder, static_argnums=3)(params, tokens, mask, heads)
    return {"alike": vectors @ vectors.T}
