"""Train a small transformer with JAX. `test_user_programs.py` runs the same text with nxla."""

import jax
import jax.numpy as jnp
from jax import lax, nn, random

VOCAB, LENGTH, WIDTH, HEADS, DEPTH = 17, 12, 16, 4, 2


def draw(key, shape, scale=WIDTH**-0.5):
    return scale * random.normal(key, shape)


def init_block(key):
    keys = random.split(key, 4)
    return {
        "norm1": {"scale": jnp.ones(WIDTH), "shift": jnp.zeros(WIDTH)},
        "norm2": {"scale": jnp.ones(WIDTH), "shift": jnp.zeros(WIDTH)},
        "qkv": draw(keys[0], (WIDTH, 3 * WIDTH)),
        "out": draw(keys[1], (WIDTH, WIDTH)),
        "up": draw(keys[2], (WIDTH, 4 * WIDTH)),
        "down": draw(keys[3], (4 * WIDTH, WIDTH), scale=0.5 * WIDTH**-0.5),
    }


def init(key):
    keys = random.split(key, 3)
    return {
        "tokens": draw(keys[0], (VOCAB, WIDTH), scale=0.1),
        "positions": draw(keys[1], (LENGTH, WIDTH), scale=0.1),
        "blocks": jax.vmap(init_block)(random.split(keys[2], DEPTH)),
    }


def norm(p, x):
    mean = x.mean(axis=-1, keepdims=True)
    variance = jnp.var(x, axis=-1, keepdims=True)
    return p["scale"] * (x - mean) / jnp.sqrt(variance + 1e-5) + p["shift"]


def attention(p, x):
    q, k, v = jnp.split(x @ p["qkv"], 3, axis=-1)
    q, k, v = (z.reshape(*z.shape[:2], HEADS, -1).transpose(0, 2, 1, 3) for z in (q, k, v))
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / jnp.sqrt(q.shape[-1])
    causal = jnp.tril(jnp.ones(scores.shape[-2:], dtype=bool))
    weights = nn.softmax(jnp.where(causal, scores, -jnp.inf), axis=-1)
    return (weights @ v).transpose(0, 2, 1, 3).reshape(x.shape) @ p["out"]


def block(x, p):
    x = x + attention(p, norm(p["norm1"], x))
    return x + nn.gelu(norm(p["norm2"], x) @ p["up"]) @ p["down"], None


def loss(params, tokens):
    x = params["tokens"][tokens[:, :-1]] + params["positions"]
    x, _ = lax.scan(block, x, params["blocks"])
    log_p = nn.log_softmax(x @ params["tokens"].T)
    return -jnp.mean(jnp.sum(nn.one_hot(tokens[:, 1:], VOCAB) * log_p, axis=-1))


@jax.jit
def step(params, tokens):
    value, grads = jax.value_and_grad(loss)(params, tokens)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value


def run(steps=20):
    params = jax.jit(init)(random.key(0))
    tokens = (jnp.arange(8)[:, None] + 3 * jnp.arange(LENGTH + 1)) % VOCAB
    losses = []
    for _ in range(steps):
        params, value = step(params, tokens)
        losses.append(float(value))
    return losses
