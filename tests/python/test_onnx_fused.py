"""Operators of ONNX Runtime that stand for several operators of ONNX."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import nxla as nx
from onnx_files import floating, floats, integer, run, text

DOMAIN = "com.microsoft"
RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def layer_norm(x: np.ndarray, scale: np.ndarray, shift: np.ndarray) -> np.ndarray:
    variance = x.var(axis=-1, keepdims=True)
    return (x - x.mean(axis=-1, keepdims=True)) / np.sqrt(variance + 1e-12) * scale + shift


ACTIVATIONS: dict[str, tuple[list[float], Any]] = {
    "": ([], lambda x: x),
    "Relu": ([], lambda x: np.maximum(x, 0)),
    "Tanh": ([], np.tanh),
    "Sigmoid": ([], lambda x: 1 / (1 + np.exp(-x))),
    "LeakyRelu": ([0.3], lambda x: np.where(x < 0, 0.3 * x, x)),
    "HardSigmoid": ([0.3, 0.4], lambda x: np.clip(0.3 * x + 0.4, 0, 1)),
}


@pytest.mark.parametrize("name", [*ACTIVATIONS, "Clip"])
def test_convolution_with_sum_and_activation(name: str) -> None:
    clip = ([-0.5, 0.7], lambda x: np.clip(x, -0.5, 0.7))
    parameters, function = clip if name == "Clip" else ACTIVATIONS[name]
    x, kernel, bias, sum_ = normal(1, 2, 6), normal(3, 2, 2), normal(3), normal(1, 3, 5)
    options = [text("activation", name), floats("activation_params", parameters)]
    inputs = [x, kernel, bias, None if name == "Clip" else sum_]
    found = run("FusedConv", inputs, *(options if name else []), domain=DOMAIN).numpy()
    windows = np.lib.stride_tricks.sliding_window_view(x[0], 2, axis=1)
    expected = np.einsum("cwk,ock->ow", windows, kernel) + bias[:, None]
    expected = expected if name == "Clip" else expected + sum_[0]
    np.testing.assert_allclose(found[0], function(expected), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", [*ACTIVATIONS, "Elu", "Celu", "Selu", "Softplus", "Softsign"])
def test_general_product_with_activation(name: str) -> None:
    more: dict[str, tuple[list[float], Any]] = {
        "Elu": ([0.5], lambda x: np.where(x < 0, 0.5 * np.expm1(x), x)),
        "Celu": ([0.5], lambda x: np.where(x < 0, 0.5 * np.expm1(x / 0.5), x)),
        "Selu": ([], lambda x: 1.0507010 * np.where(x < 0, 1.6732632 * np.expm1(x), x)),
        "Softplus": ([], lambda x: np.log1p(np.exp(x))),
        "Softsign": ([], lambda x: x / (1 + np.abs(x))),
    }
    parameters, function = (ACTIVATIONS | more)[name]
    names = ["activation_alpha", "activation_beta"]
    options = [floating(key, value) for key, value in zip(names, parameters, strict=False)]
    options += [text("activation", name), integer("transB", 1), floating("alpha", 0.5)]
    a, b, c = normal(3, 4), normal(5, 4), normal(5)
    found = run("FusedGemm", [a, b, c], *options, domain=DOMAIN).numpy()
    np.testing.assert_allclose(found, function(0.5 * a @ b.T + c), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "parameter", "value", "function"),
    [
        ("HardSigmoid", "beta", 0.6, lambda x: np.clip(0.2 * x + 0.6, 0, 1)),
        ("Selu", "gamma", 0.5, lambda x: 0.5 * np.where(x < 0, 1.6732632 * np.expm1(x), x)),
    ],
)
def test_missing_parameters_have_defaults(
    name: str, parameter: str, value: float, function: Any
) -> None:
    a, b = normal(3, 4), normal(4, 5)
    options = [text("activation", name), floating(f"activation_{parameter}", value)]
    found = run("FusedGemm", [a, b], *options, domain=DOMAIN).numpy()
    np.testing.assert_allclose(found, function(a @ b), rtol=1e-4, atol=1e-5)


def test_an_unknown_activation_raises() -> None:
    inputs = [normal(2, 2), normal(2, 2)]
    match = 'activation: the function "Sin" is not supported'
    with pytest.raises(nx.ArgumentError, match=match):
        run("FusedGemm", inputs, text("activation", "Sin"), domain=DOMAIN)


@pytest.mark.parametrize("batch", [0, 1])
@pytest.mark.parametrize("rows", [0, 1])
def test_transposed_products(batch: int, rows: int) -> None:
    a, b = normal(2, 3, 4), normal(2, 4, 3)
    left = a.transpose(1, 0, 2) if batch else a
    left = left.swapaxes(1, 2) if rows else left
    right = np.resize(b, (left.shape[0], left.shape[2], 3))
    names = {"transBatchA": batch, "transA": rows, "transBatchB": 0, "transB": 0}
    options = [integer(name, value) for name, value in names.items()]
    found = run("FusedMatMul", [a, right], *options, floating("alpha", 0.5), domain=DOMAIN)
    np.testing.assert_allclose(found.numpy(), 0.5 * left @ right, rtol=1e-4, atol=1e-5)
    # The second operand in the layout of the first one.
    stored = right.swapaxes(1, 2) if rows else right
    stored = stored.transpose(1, 0, 2) if batch else stored
    names = {"transBatchA": 0, "transA": 0, "transBatchB": batch, "transB": rows}
    options = [integer(name, value) for name, value in names.items()]
    found = run("FusedMatMul", [left, stored], *options, domain=DOMAIN)
    np.testing.assert_allclose(found.numpy(), left @ right, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("rows", [0, 1])
def test_transposed_products_of_four_axes(rows: int) -> None:
    # The batch axes are 1 and 2 before the transposition, and 0 and 1 after it.
    a, b = normal(3, 2, 5, 4), normal(2, 5, 3 if rows else 4, 6)
    left = a.transpose(1, 2, 0, 3)
    left = left.swapaxes(-1, -2) if rows else left
    options = [integer("transBatchA", 1), integer("transA", rows)]
    found = run("FusedMatMul", [a, b], *options, domain=DOMAIN)
    np.testing.assert_allclose(found.numpy(), left @ b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("has_segments", [False, True])
@pytest.mark.parametrize("has_positions", [False, True])
def test_embeddings(has_segments: bool, has_positions: bool) -> None:
    words = RNG.integers(0, 7, (2, 3)).astype(np.int32)
    segments = RNG.integers(0, 2, (2, 3)).astype(np.int32)
    positions = np.array([[2, 0, 1]], np.int32)
    word_table, position_table, segment_table = normal(7, 4), normal(3, 4), normal(2, 4)
    scale, shift, mask = normal(4), normal(4), np.array([[1, 1, 0], [1, 1, 1]], np.int32)
    inputs: list[Any] = [words, segments if has_segments else None, word_table, position_table]
    inputs += [segment_table if has_segments else None, scale, shift, mask]
    inputs += [positions if has_positions else None]
    found = run("EmbedLayerNormalization", inputs, outputs=3, domain=DOMAIN)
    result, counts, total = (each.numpy() for each in found.values())
    expected = word_table[words] + (position_table[positions] if has_positions else position_table)
    expected = expected + (segment_table[segments] if has_segments else 0)
    np.testing.assert_allclose(total, expected, rtol=1e-5)
    np.testing.assert_allclose(result, layer_norm(total, scale, shift), rtol=1e-3, atol=1e-5)
    assert counts.tolist() == [2, 3]


def test_embeddings_without_mask_count_no_words() -> None:
    words, table = np.zeros((2, 3), np.int32), normal(3, 4)
    inputs = [words, None, table, table, None, normal(4), normal(4)]
    found = run("EmbedLayerNormalization", inputs, outputs=2, domain=DOMAIN)
    assert found["y1"].tolist() == [0, 0]


@pytest.mark.parametrize("shape", [(2, 3, 4), (1, 3, 4), (3, 4)])
def test_normalization_of_a_residual_sum(shape: tuple[int, ...]) -> None:
    x, skip, scale, shift, bias = normal(2, 3, 4), normal(*shape), *(normal(4) for _ in range(3))
    inputs = [x, skip, scale, shift, bias]
    found = run("SkipLayerNormalization", inputs, domain=DOMAIN).numpy()
    expected = layer_norm(x + skip + bias, scale, shift)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)


def test_simplified_normalizations() -> None:
    x, skip, scale, bias = normal(2, 3, 4), normal(2, 3, 4), normal(4), normal(4)
    root = np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5)
    found = run("SimplifiedLayerNormalization", [x, scale], outputs=2)
    np.testing.assert_allclose(found["y0"].numpy(), x / root * scale, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found["y1"].numpy(), 1 / root, rtol=1e-4)
    total = x + skip + bias
    root = np.sqrt((total**2).mean(-1, keepdims=True) + 1e-12)
    inputs = [x, skip, scale, bias]
    found = run("SkipSimplifiedLayerNormalization", inputs, domain=DOMAIN)
    np.testing.assert_allclose(found.numpy(), total / root * scale, rtol=1e-4, atol=1e-6)


def test_quick_gelu() -> None:
    x = normal(5)
    for alpha in (1.702, 0.5):
        found = run("QuickGelu", [x], floating("alpha", alpha), domain=DOMAIN).numpy()
        np.testing.assert_allclose(found, x / (1 + np.exp(-alpha * x)), rtol=1e-5)
    found = run("Gelu", [x], domain=DOMAIN).numpy()
    halves = [0.5 * each * (1 + math.erf(each / math.sqrt(2))) for each in x]
    np.testing.assert_allclose(found, halves, rtol=1e-4, atol=1e-6)
