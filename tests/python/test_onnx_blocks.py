"""Operators of ONNX Runtime on weights of few bits with a scale for each block."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nxla as nx
from onnx_files import field, graph, integer, model, node, run, tensor, value

DOMAIN = "com.microsoft"
RNG = np.random.default_rng(0)


def pack(values: np.ndarray, bits: int) -> np.ndarray:
    """Return bytes that hold the integers of the last axis, lowest bits first."""
    each = 8 // bits
    missing = -values.shape[-1] % each
    values = np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, missing)])
    parts = values.reshape(*values.shape[:-1], -1, each).astype(np.uint32)
    return (parts << (bits * np.arange(each))).sum(-1).astype(np.uint8)


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("zero", ["default", "packed", "float"])
@pytest.mark.parametrize("order", ["none", "groups"])
def test_matrix_products_with_weights_of_few_bits(bits: int, zero: str, order: str) -> None:
    outputs, inputs, block, blocks = 5, 40, 16, 3
    x = RNG.standard_normal((2, 3, inputs)).astype(np.float32)
    integers = RNG.integers(0, 2**bits, (outputs, blocks, block))
    scales = RNG.uniform(0.1, 1, (outputs, blocks)).astype(np.float32)
    bias = RNG.standard_normal(outputs).astype(np.float32)
    zeros = np.full((outputs, blocks), 2 ** (bits - 1), np.float32)
    stored: Any = None
    if zero == "packed":
        zeros = RNG.integers(0, 2**bits, (outputs, blocks))
        stored = pack(zeros, bits)
    elif zero == "float":
        zeros = stored = RNG.uniform(0, 2**bits, (outputs, blocks)).astype(np.float32)
    places = np.arange(inputs) // block
    groups: Any = None
    if order == "groups":
        places = RNG.permutation(places)
        groups = places.astype(np.int32)
    weights = integers.reshape(outputs, -1)[:, :inputs].astype(np.float64)
    weights = (weights - zeros[:, places]) * scales[:, places]
    attributes = [("K", inputs), ("N", outputs), ("bits", bits), ("block_size", block)]
    found = run(
        "MatMulNBits",
        [x, pack(integers, bits), scales, stored, groups, bias],
        *(integer(name, value) for name, value in attributes),
        domain=DOMAIN,
    )
    np.testing.assert_allclose(found.numpy(), x @ weights.T + bias, rtol=1e-4, atol=1e-4)


def test_a_product_without_weights_is_zero() -> None:
    x, bias = np.ones((2, 32), np.float32), np.arange(3, dtype=np.float32)
    empty, scales = np.zeros((3, 0, 16), np.uint8), np.zeros((3, 0), np.float32)
    attributes = [integer("K", 32), integer("N", 3), integer("block_size", 32)]
    inputs = [x, empty, scales, None, None, bias]
    found = run("MatMulNBits", inputs, *attributes, domain=DOMAIN)
    assert found.tolist() == [bias.tolist()] * 2
    inputs[2] = np.ones((3, 1), np.float32)
    with pytest.raises(nx.FormatError, match="B: must have elements for the scales f32"):
        run("MatMulNBits", inputs, *attributes, domain=DOMAIN)


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        ("bits", 3, "bits: must be 2, 4 or 8; got 3"),
        ("weight_prepacked", 1, "weight_prepacked: must be 0"),
    ],
)
def test_unsupported_attributes_of_products_raise(name: str, value: int, match: str) -> None:
    x, packed = np.ones((1, 16), np.float32), np.zeros((1, 1, 8), np.uint8)
    attributes = [integer("K", 16), integer("N", 1), integer("block_size", 16)]
    inputs = [x, packed, np.ones((1, 1), np.float32)]
    with pytest.raises(nx.ArgumentError, match=match):
        run("MatMulNBits", inputs, *attributes, integer(name, value), domain=DOMAIN)


def test_packed_initializers_are_inputs_of_the_program() -> None:
    # As constants, the integers would be unpacked during compilation, and need more memory.
    integers, scales = RNG.integers(0, 16, (8, 2, 16)), np.ones((8, 2), np.float32)
    options = [integer("K", 32), integer("N", 8), integer("block_size", 16)]
    product = node("MatMulNBits", ["x", "packed", "scales"], ["y"], *options, domain=DOMAIN)
    constants = [tensor("packed", pack(integers, 4)), tensor("scales", scales)]
    body = graph([product], [value("x", ["n", 32])], [value("y", None)], constants)
    source = model(body) + field(8, field(1, DOMAIN) + field(2, 1))
    x = RNG.standard_normal((3, 32)).astype(np.float32)
    expected = x @ (integers.reshape(8, 32) - 8.0).T
    function = nx.from_onnx(source)
    assert list(function.weights) == ["scales"]
    np.testing.assert_allclose(function(x).numpy(), expected, rtol=1e-4, atol=1e-4)
    trained = nx.from_onnx(source, weights="arguments")
    weights = {"scales": nx.tensor(2 * scales)}
    np.testing.assert_allclose(trained(weights, x).numpy(), 2 * expected, rtol=1e-4, atol=1e-4)
    gradient = nx.grad(lambda w: nx.sum(trained(w, x)))(weights)["scales"].numpy()
    terms = ((integers.reshape(8, 32) - 8.0) * x.sum(0)).reshape(8, 2, 16)
    np.testing.assert_allclose(gradient, terms.sum(-1), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("has_zero", [False, True])
def test_gathers_from_quantized_tables(bits: int, has_zero: bool) -> None:
    integers = RNG.integers(0, 2**bits, (6, 40))
    scales = RNG.uniform(0.1, 1, (6, 3)).astype(np.float32)
    zeros = np.full((6, 3), 2 ** (bits - 1))
    if has_zero:
        zeros = RNG.integers(0, 2**bits, (6, 3))
    places = np.arange(40) // 16
    table = (integers - zeros[:, places]) * scales[:, places]
    indices = np.array([[0, -1, 5], [2, 2, -6]])
    found = run(
        "GatherBlockQuantized",
        [pack(integers, bits), indices, scales, pack(zeros, bits) if has_zero else None],
        integer("bits", bits),
        integer("block_size", 16),
        domain=DOMAIN,
    )
    np.testing.assert_allclose(found.numpy(), table[indices], rtol=1e-6)


def test_entries_out_of_range_are_zero() -> None:
    integers, scales = np.full((2, 16), 129, np.uint8), np.ones((2, 1), np.float32)
    attributes = [integer("bits", 8), integer("block_size", 16)]
    inputs = [integers, np.array([1, 2, -3, -2]), scales]
    found = run("GatherBlockQuantized", inputs, *attributes, domain=DOMAIN)
    assert found.numpy()[:, 0].tolist() == [1, 0, 0, 1]


@pytest.mark.parametrize("axis", [0, 2])
def test_gathers_along_the_axis_of_blocks(axis: int) -> None:
    integers = RNG.integers(0, 256, (2, 3, 32)).astype(np.uint8)
    scales = RNG.uniform(0.1, 1, (2, 3, 2)).astype(np.float32)
    table = (integers.astype(np.float64) - 128) * scales.repeat(16, axis=2)
    indices = np.array([1, 0, -1])
    attributes = {"bits": 8, "block_size": 16, "gather_axis": axis, "quantize_axis": 2}
    found = run(
        "GatherBlockQuantized",
        [integers, indices, scales],
        *(integer(name, value) for name, value in attributes.items()),
        domain=DOMAIN,
    )
    np.testing.assert_allclose(found.numpy(), table.take(indices, axis), rtol=1e-6)
