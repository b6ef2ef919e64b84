"""Attention operators of ONNX Runtime, compared with loops over sequences, heads and queries."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import nxla as nx
from onnx_files import (
    floating,
    graph,
    integer,
    integers,
    model,
    node,
    run,
    tensor,
    text,
    value,
)

DOMAIN = "com.microsoft"
RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def attributes(options: dict[str, Any]) -> list[bytes]:
    """Return attributes of Python values."""
    kinds = {int: integer, float: floating, str: text, list: integers}
    return [kinds[type(value)](name, value) for name, value in options.items()]


def softmax(scores: np.ndarray, sink: float | None = None) -> np.ndarray:
    largest = max(scores.max(), -math.inf if sink is None else sink)
    powers = np.exp(scores - largest)
    return powers / (powers.sum() + (0 if sink is None else math.exp(sink - largest)))


def rotate(x: np.ndarray, cos: np.ndarray, sin: np.ndarray, interleaved: bool) -> np.ndarray:
    """Rotate pairs of the first features of a vector."""
    half = len(cos)
    pairs = (slice(0, 2 * half, 2), slice(1, 2 * half, 2))
    first, second = pairs if interleaved else (slice(0, half), slice(half, 2 * half))
    y = x.copy()
    y[first] = cos * x[first] - sin * x[second]
    y[second] = sin * x[first] + cos * x[second]
    return y


class Case:
    """Operands and attributes of `GroupQueryAttention`."""

    heads, groups, size = 4, 2, 16

    def __init__(self, lengths: list[int], queries: int, capacity: int, **options: Any) -> None:
        batch, self.lengths, self.queries = len(lengths), lengths, queries
        self.valid = options.pop("valid", [min(length, queries) for length in lengths])
        self.packed = options.pop("packed", False)
        self.total = max(lengths)
        self.query = normal(batch, queries, self.heads * self.size)
        self.key = normal(batch, queries, self.groups * self.size)
        self.value = normal(batch, queries, self.groups * self.size)
        self.past = [normal(batch, self.groups, capacity, self.size) for _ in range(2)]
        angles = RNG.uniform(0, 6, (16, options.pop("rotated", 16) // 2)).astype(np.float32)
        self.tables = [np.cos(angles), np.sin(angles)]
        self.bias = normal(1, self.heads, queries, self.total) if options.pop("bias", 0) else None
        self.sink = normal(self.heads) if options.pop("sink", 0) else None
        self.norms = [normal(self.size), normal(self.size)] if options.pop("norms", 0) else None
        self.has_valid = options.pop("has_valid", False)
        self.options = options

    def run(self) -> list[np.ndarray]:
        query, key, value = self.query, self.key, self.value
        if self.packed:
            query = np.concatenate([query, key, value], axis=-1)
        last = np.array(self.lengths, np.int32) - 1
        is_rotary = self.options.get("do_rotary", 0)
        inputs = [query, *([None, None] if self.packed else [key, value]), *self.past, last]
        inputs += self.tables if is_rotary else [None, None]
        inputs += [None, self.bias, self.sink, None, None, *(self.norms or [None, None])]
        inputs += [np.array(self.valid, np.int32) if self.has_valid else None]
        found = run(
            "GroupQueryAttention",
            inputs,
            *attributes({"num_heads": self.heads, "kv_num_heads": self.groups, **self.options}),
            outputs=4 if self.options.get("qk_output", 0) else 3,
            constants={6: np.array(self.total, np.int32)},
            domain=DOMAIN,
        )
        return [each.numpy() for each in found.values()]

    def heads_of(self, x: np.ndarray, entry: int, place: int, start: int) -> np.ndarray:
        """Return the vectors of one token, normalized and rotated."""
        vectors = x[entry, place].reshape(-1, self.size)
        is_query = x is self.query
        if self.norms and x is not self.value:
            square = np.mean(vectors**2, axis=-1, keepdims=True)
            vectors = vectors / np.sqrt(square + 1e-6) * self.norms[0 if is_query else 1]
        if self.options.get("do_rotary", 0) and x is not self.value:
            tables = [table[start + place] for table in self.tables]
            interleaved = bool(self.options.get("rotary_interleaved", 0))
            vectors = np.stack([rotate(vector, *tables, interleaved) for vector in vectors])
        return vectors

    def expected(self, entry: int) -> tuple[Any, ...]:
        """Return the result, keys, values and scores of one sequence."""
        length, valid = self.lengths[entry], self.valid[entry]
        start = length - valid
        key, value = (past[entry, :, :start] for past in self.past)
        new = [
            np.stack([self.heads_of(x, entry, place, start) for place in range(valid)], axis=1)
            for x in (self.key, self.value)
        ]
        key = np.concatenate([key, new[0]], axis=1)
        value = np.concatenate([value, new[1]], axis=1)
        result = np.zeros((valid, self.heads, self.size))
        shown = np.zeros((self.heads, valid, length))
        for place in range(valid):
            query = self.heads_of(self.query, entry, place, start)
            for head in range(self.heads):
                group = head * self.groups // self.heads
                scores = key[group] @ query[head]
                scores = scores * (self.options.get("scale", 0) or 1 / math.sqrt(self.size))
                cap = self.options.get("softcap", 0)
                scores = np.tanh(scores / cap) * cap if cap else scores
                if self.bias is not None:
                    scores = scores + self.bias[0, head, place, :length]
                distance = start + place - np.arange(length)
                allowed = distance >= 0 if self.options.get("causal", 1) else distance == distance
                window = self.options.get("local_window_size", -1)
                allowed &= (distance < window) | (window <= 0)
                scores = np.where(allowed, scores, -math.inf)
                sink = self.sink[head] if self.sink is not None else None
                sink = 0.0 if self.options.get("smooth_softmax", 0) == 1 else sink
                weights = softmax(scores, sink)
                shown[head, place] = weights if self.options.get("qk_output", 0) == 2 else scores
                result[place, head] = weights @ value[group]
        return result.reshape(valid, -1), key, value, shown


CASES = {
    "prompt": lambda: Case([5, 5], 5, 0),
    "ragged prompt": lambda: Case([5, 3], 5, 0, do_rotary=1),
    "packed": lambda: Case([5, 4], 5, 0, packed=True, do_rotary=1),
    "next token": lambda: Case([7, 7], 1, 6, do_rotary=1),
    "next tokens of one sequence": lambda: Case([7], 3, 4, do_rotary=1),
    "ragged tokens": lambda: Case([7, 4], 1, 6, do_rotary=1, rotary_interleaved=1),
    "shared buffer": lambda: Case([7, 4], 1, 12, do_rotary=1, rotated=8),
    "shared buffer of one sequence": lambda: Case([7], 2, 12),
    "window": lambda: Case([9], 4, 5, local_window_size=3),
    "soft cap": lambda: Case([5, 5], 5, 0, softcap=0.5, scale=0.7),
    "smooth softmax": lambda: Case([5], 5, 0, smooth_softmax=1),
    "sink": lambda: Case([5, 5], 5, 0, sink=1),
    "bias": lambda: Case([5, 4], 1, 4, bias=1),
    "scores": lambda: Case([5], 5, 0, qk_output=1, bias=1, softcap=2.0),
    "weights": lambda: Case([5], 2, 3, qk_output=2),
    "not causal": lambda: Case([5, 3], 5, 0, causal=0),
    "padded chunks": lambda: Case([7, 3], 3, 8, valid=[2, 3], has_valid=True, do_rotary=1),
    "padding after the buffer": lambda: Case([8], 3, 8, valid=[2], has_valid=True),
    "norms": lambda: Case([5], 5, 0, norms=1, do_rotary=1),
}


@pytest.mark.parametrize("name", CASES)
def test_group_query_attention(name: str) -> None:
    case = CASES[name]()
    result, *present = case.run()
    capacity = max(case.total, case.past[0].shape[2])
    assert [each.shape[2] for each in present[:2]] == [capacity] * 2
    for entry, length in enumerate(case.lengths):
        valid = case.valid[entry]
        expected, *states, shown = case.expected(entry)
        np.testing.assert_allclose(result[entry, :valid], expected, rtol=1e-4, atol=1e-5)
        for found, state in zip(present, states, strict=False):
            np.testing.assert_allclose(found[entry, :, :length], state, rtol=1e-5, atol=1e-6)
        if case.options.get("qk_output", 0):
            found = np.where(np.isinf(shown), -math.inf, present[2][entry])
            np.testing.assert_allclose(found, shown, rtol=1e-4, atol=1e-5)


def test_operands_of_16_bits_keep_their_dtype() -> None:
    case = Case([7], 2, 5, do_rotary=1, softcap=2.0, sink=1)
    for name in ("query", "key", "value", "sink"):
        setattr(case, name, getattr(case, name).astype(np.float16))
    case.past, case.tables = ([x.astype(np.float16) for x in y] for y in (case.past, case.tables))
    result, *present = case.run()
    assert [each.dtype for each in (result, *present)] == [np.float16] * 3
    np.testing.assert_allclose(result[0], case.expected(0)[0], rtol=1e-2, atol=5e-3)


def decoder() -> Any:
    """Return attention whose lengths are computed from a mask, as in ONNX Runtime GenAI."""
    angles = RNG.uniform(0, 6, (16, 4)).astype(np.float32)
    constants = {
        "weights": normal(8, 16 + 8 + 8),
        "cos": np.cos(angles),
        "sin": np.sin(angles),
        "one": np.array(1),
    }
    options = {"num_heads": 2, "kv_num_heads": 1, "do_rotary": 1}
    inputs = ["packed", "", "", "past_key", "past_value", "last", "total", "cos", "sin"]
    nodes = [
        node("ReduceSum", ["mask", "one"], ["count"], integer("keepdims", 0)),
        node("Sub", ["count", "one"], ["end"]),
        node("Cast", ["end"], ["last"], integer("to", 6)),
        node("Shape", ["mask"], ["sizes"]),
        node("Gather", ["sizes", "one"], ["width"]),
        node("Cast", ["width"], ["total"], integer("to", 6)),
        node("MatMul", ["x", "weights"], ["packed"]),
        node(
            "GroupQueryAttention",
            inputs,
            ["y", "key", "value"],
            *attributes(options),
            domain=DOMAIN,
        ),
    ]
    declared = [value("x", ["batch", "length", 8]), value("mask", ["batch", "total"], 7)]
    past = [value(name, ["batch", 1, "past", 8]) for name in ("past_key", "past_value")]
    weights = [tensor(name, each) for name, each in constants.items()]
    outputs = [value(name, None) for name in ("y", "key", "value")]
    return nx.from_onnx(model(graph(nodes, declared + past, outputs, weights)))


@pytest.mark.parametrize("capacity", [0, 10])
def test_tokens_after_a_prompt_equal_one_prompt(capacity: int) -> None:
    # The second sequence ends earlier, so its tokens follow a shorter prompt.
    function, x = decoder(), normal(2, 7, 8)
    state = nx.zeros((2, 1, capacity, 8))
    whole, *_ = function(x, np.ones((2, 7), np.int64), state, state).values()
    mask = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
    result, key, value_ = function(x[:, :5], mask, state, state).values()
    np.testing.assert_allclose(result.numpy()[0], whole.numpy()[0, :5], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(result.numpy()[1, :3], whole.numpy()[1, :3], rtol=1e-4, atol=1e-5)
    for step in range(2):
        mask = np.concatenate([np.ones((2, 1), np.int64), mask], axis=1)
        token = np.stack([x[0, 5 + step], x[1, 3 + step]])[:, None]
        result, key, value_ = function(token, mask, key, value_).values()
        assert key.shape[2] == (capacity or 6 + step)
        expected = np.stack([whole.numpy()[0, 5 + step], whole.numpy()[1, 3 + step]])
        np.testing.assert_allclose(result.numpy()[:, 0], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"k_quant_type": "PER_TENSOR"}, "k_quant_type: must be NONE"),
        ({"sliding_window_cache": 1}, "sliding_window_cache: must be 0"),
        ({"local_window_size": 2, "causal": 0}, "local_window_size: must be -1"),
        ({"qk_output": 3}, "qk_output: must be 0, 1 or 2"),
    ],
)
def test_unsupported_group_query_attention_raises(options: dict[str, Any], match: str) -> None:
    with pytest.raises((nx.ArgumentError, nx.FormatError), match=match):
        Case([3], 3, 0, **options).run()


@pytest.mark.parametrize("missing", [0, 1])
def test_one_of_two_inputs_raises(missing: int) -> None:
    case, norms = Case([5], 2, 3), Case([5], 5, 0, norms=1)
    case.past[missing] = norms.norms[missing] = None
    for group, names in ((case, "past_key, past_value"), (norms, "q_norm_weight, k_norm_weight")):
        with pytest.raises(nx.FormatError, match=f"{names}: must both exist or both be missing"):
            group.run()
    past = [normal(2, 2, 2, 4), normal(2, 2, 2, 4)]
    past[missing] = None
    inputs = [normal(2, 4, 8), normal(2, 4, 8), normal(2, 4, 8), None, None, None, *past]
    with pytest.raises(nx.FormatError, match="past_key, past_value: must both exist"):
        run("MultiHeadAttention", inputs, integer("num_heads", 2), domain=DOMAIN)


@pytest.mark.parametrize(
    ("columns", "options", "match"),
    [
        (
            (4, 4),
            {"rotary_embedding_dim": 4},
            "num_heads: must be positive if rotary_embedding_dim",
        ),
        (
            (4, 4),
            {"rotary_embedding_dim": -2},
            "rotary_embedding_dim: must not be negative; got -2",
        ),
        ((4, 1), {"num_heads": 2}, "cos_cache, sin_cache: must have 4 columns"),
        ((1, 4), {"num_heads": 2}, "cos_cache, sin_cache: must have 4 columns"),
    ],
)
def test_invalid_rotary_embeddings_raise(columns: Any, options: Any, match: str) -> None:
    inputs = [normal(2, 3, 16), np.zeros((2, 3), np.int64), *(normal(5, each) for each in columns)]
    with pytest.raises(nx.FormatError, match=match):
        run("RotaryEmbedding", inputs, *attributes(options), domain=DOMAIN)


def attend(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    terms: np.ndarray,
    scale: float | None = None,
) -> np.ndarray:
    """Return attention of `[batch, heads, length, size]`; the terms are added to the scores."""
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = query @ key.swapaxes(-1, -2) * scale + terms
    weights = np.apply_along_axis(softmax, -1, scores)
    means = (weights @ value).swapaxes(1, 2)
    return means.reshape(*means.shape[:2], -1)


def split(x: np.ndarray, heads: int) -> np.ndarray:
    return x.reshape(*x.shape[:2], heads, -1).swapaxes(1, 2)


def padding(keep: Any) -> np.ndarray:
    return np.where(keep, 0.0, -10000.0)


#: Masks of 2 sequences with 4 queries and 6 keys, and the terms of the scores.
KEEP = np.arange(6) < np.array([[5], [3]])
PAIRS = RNG.integers(0, 2, (2, 4, 6)).astype(np.int32)
PAIRS[..., 0] = 1  # Without any key, the scores of 32 bits lose their digits to the filter value.
MASKS: dict[str, tuple[Any, Any]] = {
    "none": (None, 0.0),
    "lengths": (np.array([5, 3], np.int32), padding(KEEP)[:, None, None]),
    "keys": (KEEP.astype(np.int32), padding(KEEP)[:, None, None]),
    "pairs": (PAIRS, padding(PAIRS)[:, None]),
}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("layout", ["separate", "packed keys", "cached", "past"])
def test_multi_head_attention(mask: str, layout: str) -> None:
    heads = 2
    query, key, value = normal(2, 4, 8), normal(2, 6, 8), normal(2, 6, 12)
    bias, term = normal(8 + 8 + 12), normal(1, 2, 4, 6)
    past: list[Any] = [None, None]
    if layout == "packed keys":
        value, bias = normal(2, 6, 8), normal(24)
    elif layout == "past":
        past = [normal(2, 2, 2, 4), normal(2, 2, 2, 6)]
        key, value = key[:, :4], value[:, :4]
    q, k, v = query + bias[:8], key + bias[8:16], value + bias[16:]
    parts = [split(q, heads), split(k, heads), split(v, heads)]
    inputs: list[Any] = [query, key, value]
    if layout == "packed keys":
        pairs = [each.reshape(2, 6, heads, 1, 4) for each in (key, value)]
        inputs = [query, np.concatenate(pairs, axis=3), None]
    elif layout == "cached":
        # Keys and values with heads have their bias already.
        parts[1:] = inputs[1:] = [split(key, heads).copy(), split(value, heads).copy()]
    elif layout == "past":
        parts[1:] = [np.concatenate([a, b], 2) for a, b in zip(past, parts[1:], strict=True)]
    stored, terms = MASKS[mask]
    found = run(
        "MultiHeadAttention",
        [*inputs, bias, stored, term, *past],
        integer("num_heads", heads),
        outputs=3,
        domain=DOMAIN,
    )
    results = [each.numpy() for each in found.values()]
    expected = [attend(*parts, terms + term), *parts[1:]]
    for result, reference in zip(results, expected, strict=True):
        np.testing.assert_allclose(result, reference, rtol=1e-4, atol=1e-5)


def test_packed_and_causal_multi_head_attention() -> None:
    parts = [normal(2, 3, 2, 1, 4) for _ in range(3)]
    options = {"num_heads": 2, "unidirectional": 1, "scale": 0.25}
    packed = np.concatenate(parts, axis=3)
    found = run("MultiHeadAttention", [packed], *attributes(options), domain=DOMAIN)
    causal = np.where(np.tri(3, dtype=bool), 0.0, -math.inf)
    heads = [each[..., 0, :].swapaxes(1, 2) for each in parts]
    expected = attend(*heads, causal, scale=0.25)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4, atol=1e-5)


#: Further masks of 2 sequences with 4 queries after 2 earlier keys.
RANGE = (np.arange(6) < np.array([[6], [5]])) & (np.arange(6) >= np.array([[1], [2]]))
SQUARE = RNG.integers(0, 2, (2, 1, 8, 8)).astype(np.int32)
SQUARE[..., 0] = 1
MORE_MASKS = MASKS | {
    "ends and starts": (np.array([6, 5, 1, 2], np.int32), padding(RANGE)[:, None, None]),
    "square": (SQUARE, padding(SQUARE[:, :, 2:6, :6])),
}


@pytest.mark.parametrize("mask", MORE_MASKS)
@pytest.mark.parametrize("is_causal", [0, 1])
def test_attention_with_past(mask: str, is_causal: int) -> None:
    x, weights, bias, past = normal(2, 4, 5), normal(5, 24), normal(24), normal(2, 2, 2, 2, 4)
    stored, terms = MORE_MASKS[mask]
    options = {"num_heads": 2, "unidirectional": is_causal}
    inputs = [x, weights, bias, stored, past]
    found = run("Attention", inputs, *attributes(options), outputs=2, domain=DOMAIN)
    result, present = (each.numpy() for each in found.values())
    query, key, value = (split(each, 2) for each in np.split(x @ weights + bias, 3, axis=-1))
    state = np.stack([np.concatenate(pair, 2) for pair in zip(past, (key, value), strict=True)])
    causal = np.where(np.tri(4, 6, 2, dtype=bool), 0.0, -math.inf) if is_causal else 0.0
    np.testing.assert_allclose(present, state, rtol=1e-4, atol=1e-5)
    expected = attend(query, *state, terms + causal)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


def test_attention_with_sizes_and_bias_of_scores() -> None:
    x, weights, term = normal(2, 3, 5), normal(5, 8 + 8 + 4), normal(2, 1, 3, 3)
    options = {"num_heads": 2, "qkv_hidden_sizes": [8, 8, 4], "scale": 0.3}
    inputs = [x, weights, None, None, None, term]
    found = run("Attention", inputs, *attributes(options), domain=DOMAIN)
    query, key, value = (split(each, 2) for each in np.split(x @ weights, [8, 16], axis=-1))
    expected = attend(query, key, value, term, scale=0.3)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("columns", [1, 24])
def test_attention_of_integers(columns: int) -> None:
    x, weights = (RNG.integers(0, 255, shape).astype(np.uint8) for shape in ((2, 3, 5), (5, 24)))
    zeros = [np.array(130, np.uint8), np.full(columns, 120, np.uint8)]
    scales = [np.array(0.01, np.float32), RNG.uniform(0.01, 0.02, columns).astype(np.float32)]
    bias, lengths = normal(24), np.array([3, 2], np.int32)
    if columns == 1:
        zeros[1], scales[1] = zeros[1][0], scales[1][0]
    inputs = [x, weights, bias, *scales, lengths, *zeros]
    found = run("QAttention", inputs, integer("num_heads", 2), domain=DOMAIN)
    wide = [each.astype(np.float64) - zero for each, zero in zip((x, weights), zeros, strict=True)]
    projected = (wide[0] @ wide[1]) * (scales[0] * scales[1]) + bias
    parts = (split(each, 2) for each in np.split(projected, 3, axis=-1))
    terms = padding(np.arange(3) < lengths[:, None])[:, None, None]
    np.testing.assert_allclose(found.numpy(), attend(*parts, terms), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "inputs", "match"),
    [
        ({"num_heads": 2, "do_rotary": 1}, [], "do_rotary: must be 0"),
        ({"num_heads": 2}, [np.zeros(8, np.int32)], "mask: must have an entry for each sequence"),
        ({"num_heads": 5}, [], "num_heads: must divide"),
        ({}, [], "num_heads: must be positive"),
        ({"num_heads": 2, "qkv_hidden_sizes": [8, 8]}, [], "qkv_hidden_sizes: must be three"),
    ],
)
def test_unsupported_attention_raises(options: Any, inputs: list[Any], match: str) -> None:
    inputs = [normal(2, 3, 5), normal(5, 24), normal(24), *inputs]
    with pytest.raises((nx.ArgumentError, nx.FormatError), match=match):
        run("Attention", inputs, *attributes(options), domain=DOMAIN)
