"""Operators of ONNX Runtime on integers with a scale and a zero point."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nxla as nx
from onnx_files import floating, integer, integers, run

DOMAIN = "com.microsoft"
RNG = np.random.default_rng(0)


def number(value: float) -> np.ndarray:
    return np.array(value, np.float32)


def operand(dtype: Any, *shape: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return integers, their scale, their zero point, and the numbers that they represent."""
    limits = np.iinfo(dtype)
    values = RNG.integers(limits.min, limits.max, shape, endpoint=True).astype(dtype)
    scale, zero = number(0.03), np.array((limits.min + limits.max) // 2 + 7, dtype)
    return values, scale, zero, (values.astype(np.float64) - zero) * scale


def quantize(values: np.ndarray, scale: np.ndarray, zero: np.ndarray) -> np.ndarray:
    limits = np.iinfo(zero.dtype)
    return np.clip(np.rint(values / scale) + zero, limits.min, limits.max)


def assert_quantized(found: Any, expected: np.ndarray) -> None:
    """Compare integers; a few may be rounded to a neighbor."""
    difference = np.abs(found.numpy().astype(np.int64) - expected)
    assert found.shape == expected.shape
    assert difference.max() <= 1
    assert (difference > 0).mean() < 0.1


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
@pytest.mark.parametrize("has_zero", [False, True])
def test_arithmetic_of_integers(op: str, dtype: Any, has_zero: bool) -> None:
    a, a_scale, a_zero, x = operand(dtype, 3, 1, 5)
    b, b_scale, b_zero, y = operand(dtype, 4, 1)
    scale, zero = number(0.0713), np.array(11 if has_zero else 0, dtype)
    if not has_zero:
        x, y = a.astype(np.float64) * a_scale, b.astype(np.float64) * b_scale
    inputs = [a, a_scale, a_zero, b, b_scale, b_zero, scale, zero]
    if not has_zero:
        inputs[2] = inputs[5] = inputs[7] = None
    expected = quantize(x + y if op == "QLinearAdd" else x * y, scale, zero)
    assert_quantized(run(op, inputs, domain=DOMAIN), expected)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_functions_of_integers(dtype: Any) -> None:
    x, scale, zero, values = operand(dtype, 50)
    out, out_zero = number(1 / 256), np.array(np.iinfo(dtype).min, dtype)
    inputs = [x, scale, zero, out, out_zero]
    expected = quantize(1 / (1 + np.exp(-values)), out, out_zero)
    assert_quantized(run("QLinearSigmoid", inputs, domain=DOMAIN), expected)
    inputs = [x, scale, zero, scale, zero]
    found = run("QLinearLeakyRelu", inputs, floating("alpha", 0.3), domain=DOMAIN)
    expected = quantize(np.where(values < 0, 0.3 * values, values), scale, zero)
    assert_quantized(found, expected)


@pytest.mark.parametrize("opset", [12, 13])
def test_softmax_of_integers(opset: int) -> None:
    x, scale, zero, values = operand(np.uint8, 2, 3, 4)
    out, out_zero = number(1 / 256), np.array(0, np.uint8)
    options = [integer("opset", opset), integer("axis", 1)]
    found = run("QLinearSoftmax", [x, scale, zero, out, out_zero], *options, domain=DOMAIN)
    axes = (1, 2) if opset == 12 else (1,)
    powers = np.exp(values - values.max(axis=axes, keepdims=True))
    expected = quantize(powers / powers.sum(axis=axes, keepdims=True), out, out_zero)
    assert_quantized(found, expected)


@pytest.mark.parametrize("is_last", [0, 1])
def test_pools_of_integers(is_last: int) -> None:
    x, scale, zero, values = operand(np.uint8, 1, 2, 4, 6)
    out, out_zero = number(0.0213), np.array(100, np.uint8)

    def move(array: np.ndarray) -> np.ndarray:
        return np.moveaxis(array, 1, -1) if is_last else array

    inputs = [np.ascontiguousarray(move(x)), scale, zero, out, out_zero]
    option = integer("channels_last", is_last)
    found = run("QLinearGlobalAveragePool", inputs, option, domain=DOMAIN)
    mean = values.mean(axis=(2, 3), keepdims=True)
    assert_quantized(found, move(quantize(mean, out, out_zero)))
    windows = np.lib.stride_tricks.sliding_window_view(values, (2, 3), axis=(2, 3))
    mean = windows[:, :, ::2, ::3].mean(axis=(-1, -2))
    options = [option, integers("kernel_shape", [2, 3]), integers("strides", [2, 3])]
    found = run("QLinearAveragePool", inputs, *options, domain=DOMAIN)
    assert_quantized(found, move(quantize(mean, out, out_zero)))


def test_concatenation_of_integers() -> None:
    *first, x = operand(np.uint8, 2, 3)
    *second, y = operand(np.uint8, 2, 4)
    second[1] = number(0.05)
    y = y / 0.03 * 0.05
    out, zero = number(0.0413), np.array(120, np.uint8)
    found = run("QLinearConcat", [out, zero, *first, *second], integer("axis", 1), domain=DOMAIN)
    assert_quantized(found, quantize(np.concatenate([x, y], axis=1), out, zero))


@pytest.mark.parametrize("columns", [1, 5])
@pytest.mark.parametrize("is_quantized", [False, True])
def test_general_products_of_integers(columns: int, is_quantized: bool) -> None:
    a, a_scale, a_zero, x = operand(np.uint8, 4, 3)
    b = RNG.integers(-127, 127, (5, 4)).astype(np.int8)
    b_scale = RNG.uniform(0.01, 0.02, columns).astype(np.float32)
    b_zero = RNG.integers(-5, 5, columns).astype(np.int8)
    if columns == 1:
        b_scale, b_zero = b_scale[0], b_zero[0]
    c = RNG.integers(-500, 500, 5).astype(np.int32)
    weights = (b.T.astype(np.float64) - b_zero) * b_scale
    expected = 0.5 * (x.T @ weights + c * (a_scale * b_scale))
    out, zero = number(0.1), np.array(128, np.uint8)
    inputs = [a, a_scale, a_zero, b, b_scale, b_zero, c]
    options = [integer("transA", 1), integer("transB", 1), floating("alpha", 0.5)]
    found = run("QGemm", [*inputs, *([out, zero] if is_quantized else [])], *options, domain=DOMAIN)
    if is_quantized:
        assert_quantized(found, quantize(expected, out, zero))
    else:
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("columns", [1, 5])
def test_products_of_integers_are_floats(columns: int) -> None:
    a, a_scale, a_zero, x = operand(np.uint8, 2, 3, 4)
    b = RNG.integers(0, 255, (4, 5)).astype(np.uint8)
    b_scale = RNG.uniform(0.01, 0.02, columns).astype(np.float32)
    b_zero = RNG.integers(100, 150, columns).astype(np.uint8)
    if columns == 1:
        b_scale, b_zero = b_scale[0], b_zero[0]
    bias = RNG.standard_normal(5).astype(np.float32)
    weights = (b.astype(np.float64) - b_zero) * b_scale
    inputs = [a, b, a_scale, b_scale, a_zero, b_zero, bias]
    found = run("MatMulIntegerToFloat", inputs, domain=DOMAIN)
    np.testing.assert_allclose(found.numpy(), x @ weights + bias, rtol=1e-4, atol=1e-4)
    x = RNG.standard_normal((2, 3, 4)).astype(np.float32)
    low, high = min(x.min(), 0), max(x.max(), 0)
    step = np.float32((high - low) / 255)
    zero = np.rint(-low / step)
    rounded = (np.clip(np.rint(x / step) + zero, 0, 255) - zero) * step
    found = run("DynamicQuantizeMatMul", [x, b, b_scale, b_zero, bias], domain=DOMAIN)
    np.testing.assert_allclose(found.numpy(), rounded @ weights + bias, rtol=1e-3, atol=1e-3)


def test_scales_of_an_axis() -> None:
    x = RNG.standard_normal((2, 3, 4)).astype(np.float32)
    scale, zero = np.array([0.1, 0.2, 0.3], np.float32), np.array([3, 7, 100], np.uint8)
    integers_ = np.clip(np.rint(x / scale[:, None]) + zero[:, None], 0, 255)
    found = run("QuantizeLinear", [x, scale, zero], integer("axis", 1), domain=DOMAIN)
    assert_quantized(found, integers_)
    stored = integers_.astype(np.uint8)
    found = run("DequantizeLinear", [stored, scale, zero], integer("axis", 1), domain=DOMAIN)
    expected = (integers_ - zero[:, None]) * scale[:, None]
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5)


def test_scales_of_elements_raise() -> None:
    x, scale, zero, _ = operand(np.uint8, 3)
    many = np.full(3, scale)
    with pytest.raises(nx.ArgumentError, match="input 1: must be one number"):
        run("QLinearSigmoid", [x, many, zero, scale, zero], domain=DOMAIN)


@pytest.mark.parametrize("operator", ["MatMulIntegerToFloat", "QAttention", "QGemm"])
@pytest.mark.parametrize("argument", ["scale", "zero point"])
def test_parameters_of_rows_raise(operator: str, argument: str) -> None:
    a, b = np.ones((1, 3, 6), np.uint8), np.ones((6, 6), np.uint8)
    scale, zero, bias = number(0.1), np.array(1, np.uint8), np.ones(6, np.float32)
    rows = [np.full(3, 0.1, np.float32), zero] if argument == "scale" else [scale, np.full(3, zero)]
    inputs = {
        "MatMulIntegerToFloat": [a, b, rows[0], scale, rows[1], zero, bias],
        "QAttention": [a, b, bias, rows[0], scale, None, rows[1], zero],
        "QGemm": [a[0], *rows, b, scale, zero],
    }
    options = [integer("num_heads", 1)] if operator == "QAttention" else []
    with pytest.raises(
        nx.ArgumentError, match=f"{argument} of the first matrix: must be one number"
    ):
        run(operator, inputs[operator], *options, domain=DOMAIN)
