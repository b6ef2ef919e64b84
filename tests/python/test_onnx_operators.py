"""Operators of ONNX models: optional inputs, attributes, and invalid sizes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import nxla as nx
from onnx_files import (
    field,
    floating,
    floats,
    graph,
    graph_attribute,
    integer,
    integers,
    model,
    node,
    run,
    tensor,
    text,
    texts,
    value,
)

X = np.array([-2.0, -0.5, 0.25, 3.0], dtype=np.float32)
BIAS = np.array([0.5, -1.0, 2.0, 0.0], dtype=np.float32)


def gelu(x: np.ndarray, approximate: bool) -> np.ndarray:
    if approximate:
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return np.array([0.5 * each * (1 + math.erf(each / math.sqrt(2))) for each in x])


@pytest.mark.parametrize(("op", "approximate"), [("FastGelu", True), ("BiasGelu", False)])
def test_gelu_with_bias(op: str, approximate: bool) -> None:
    found = run(op, [X, BIAS], domain="com.microsoft").numpy()
    np.testing.assert_allclose(found, gelu(X + BIAS, approximate), rtol=1e-5, atol=1e-6)


def test_gelu_without_bias() -> None:
    found = run("FastGelu", [X], domain="com.microsoft").numpy()
    np.testing.assert_allclose(found, gelu(X, True), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu_approximations(approximate: str) -> None:
    found = run("Gelu", [X], text("approximate", approximate)).numpy()
    np.testing.assert_allclose(found, gelu(X, approximate == "tanh"), rtol=1e-5, atol=1e-6)


def test_top_k_attribute_before_opset_10() -> None:
    values, indices = run("TopK", [X], integer("k", 2), outputs=2, version=9).values()
    assert values.tolist() == [3.0, 0.25]
    assert indices.tolist() == [3, 2]


def weights(directions: int) -> list[np.ndarray]:
    """Return the input, weights and recurrent weights of an RNN with one feature and one unit."""
    x = np.array([1.0, 2.0], dtype=np.float32).reshape(2, 1, 1)
    ones = np.ones((directions, 1, 1), dtype=np.float32)
    return [x, ones, ones]


def test_directions_of_a_recurrent_layer() -> None:
    first, second = math.tanh(1), math.tanh(2)
    forward = [first, math.tanh(2 + first)]
    backward = [math.tanh(1 + second), second]
    for direction, expected in [("forward", [forward]), ("reverse", [backward])]:
        found = run("RNN", weights(1), text("direction", direction), integer("hidden_size", 1))
        np.testing.assert_allclose(found.numpy()[:, 0, 0, 0], expected[0], rtol=1e-5)
    both = run("RNN", weights(2), text("direction", "bidirectional"), integer("hidden_size", 1))
    np.testing.assert_allclose(both.numpy()[:, :, 0, 0].T, [forward, backward], rtol=1e-5)


def rotary(*attributes: bytes) -> Any:
    x = np.ones((1, 1, 2, 2), dtype=np.float32)
    positions = np.array([[0, 1]])
    tables = np.cos([[0.0], [1.0]]), np.sin([[0.0], [1.0]])
    inputs = [x, positions, *(table.astype(np.float32) for table in tables)]
    return run("RotaryEmbedding", inputs, *attributes, domain="com.microsoft")


def test_rotary_embedding_values() -> None:
    expected = [[1, 1], [math.cos(1) - math.sin(1), math.cos(1) + math.sin(1)]]
    for attributes in ((), (floating("scale", 1.0), integer("is_packed_batching", 1))):
        np.testing.assert_allclose(rotary(*attributes).numpy()[0, 0], expected, rtol=1e-5)


def test_gather_and_one_hot_accept_negative_indices() -> None:
    indices = np.array([-1, 0, 1])
    assert run("Gather", [X, indices]).tolist() == [3.0, -2.0, -0.5]
    hot = run("OneHot", [indices, BIAS[:2]], constants={1: np.array(3)}, version=11)
    expected = np.where(np.eye(3, dtype=bool)[[2, 0, 1]], -1.0, 0.5)
    np.testing.assert_array_equal(hot.numpy(), expected)
    outside = run("OneHot", [np.array([3, -4]), BIAS[:2]], constants={1: np.array(3)}, version=11)
    np.testing.assert_array_equal(outside.numpy(), np.full((2, 3), 0.5))


@pytest.mark.parametrize("p", [1, 2])
def test_lp_normalization_divides_by_a_norm(p: int) -> None:
    x = np.stack([X, np.zeros_like(X)])
    norm = np.linalg.norm(x, ord=p, axis=-1, keepdims=True)
    expected = x / np.where(norm == 0, 1, norm)
    found = run("LpNormalization", [x], integer("p", p)).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_reduce_log_sum_exp_of_integers() -> None:
    x = np.array([[1, 2], [3, 4]], dtype=np.int32)
    found = run("ReduceLogSumExp", [x], constants={1: np.array([1])}, version=18).numpy()
    assert (
        found.tolist()
        == np.log(np.exp(x.astype(float)).sum(1, keepdims=True)).astype(np.int32).tolist()
    )


def test_casts_to_narrow_integers_keep_low_bits() -> None:
    x = np.array([-9.0, -1.5, 3.7, 16.0, 21.0], dtype=np.float32)
    for data_type, bits, is_signed in [(21, 4, False), (22, 4, True), (25, 2, False)]:
        low = np.trunc(x).astype(np.int64) & (2**bits - 1)
        expected = np.where(is_signed & (low >> (bits - 1) == 1), low - 2**bits, low)
        found = run("Cast", [x], integer("to", data_type))
        assert nx.astype(found, "s32").tolist() == expected.tolist()


@pytest.mark.parametrize(("data_type", "bits"), [(2, 8), (3, 8), (4, 16), (12, 32)])
def test_casts_of_negative_floats_keep_low_bits(data_type: int, bits: int) -> None:
    x = np.array([-1.5, -1.0, -0.5, -200.0, 300.0, 70000.0], dtype=np.float32)
    low = np.trunc(x).astype(np.int64) % 2**bits
    expected = np.where((data_type == 3) & (low >= 128), low - 256, low)
    found = run("Cast", [x], integer("to", data_type))
    assert nx.astype(found, "s64").tolist() == expected.tolist()


def test_reversed_slices_start_at_an_element() -> None:
    # A start before the first element is the first element; ONNX Runtime returns the same.
    for start, end, expected in [(-9, -9, [-2.0]), (-9, 0, []), (9, -9, X[::-1].tolist())]:
        constants = {index: np.array([each]) for index, each in enumerate([start, end, 0, -1], 1)}
        assert run("Slice", [X], constants=constants).tolist() == expected


def test_casts_to_f8_saturate_or_return_nan() -> None:
    x = np.array([464.0, 465.0, -1e6, math.inf, math.nan, 1.0], dtype=np.float32)
    for saturate, expected in [
        (1, [448, 448, -448, 448, math.nan, 1]),
        (0, [448, math.nan, math.nan, math.nan, math.nan, 1]),
    ]:
        found = run("Cast", [x], integer("to", 17), integer("saturate", saturate))
        np.testing.assert_array_equal(nx.astype(found, "f32").numpy(), expected)


def test_scatter_nd_of_rows() -> None:
    x, rows = np.zeros((4, 3), dtype=np.float32), np.array([[2], [0]])
    updates = np.arange(6, dtype=np.float32).reshape(2, 3)
    expected = x.copy()
    expected[[2, 0]] = updates
    assert run("ScatterND", [x, rows, updates]).tolist() == expected.tolist()


def test_depth_to_space_and_space_to_depth() -> None:
    x = np.arange(2 * 3 * 4 * 6, dtype=np.float32).reshape(2, 3, 4, 6)
    blocks = x.reshape(2, 3, 2, 2, 3, 2)
    for mode, order in [("DCR", (0, 3, 5, 1, 2, 4)), ("CRD", (0, 1, 3, 5, 2, 4))]:
        attributes = [integer("blocksize", 2), text("mode", mode)]
        depth = run("SpaceToDepth", [x], *attributes, version=27).numpy()
        np.testing.assert_array_equal(depth, blocks.transpose(order).reshape(2, 12, 2, 3))
        np.testing.assert_array_equal(run("DepthToSpace", [depth], *attributes).numpy(), x)


def test_conv_transpose_output_shape() -> None:
    x, kernel = np.ones((1, 1, 3), dtype=np.float32), np.ones((1, 1, 2), dtype=np.float32)
    gaps = [1, 1, 0, 0, 1, 1, 0, 0, 1, 1]
    for stride, expected in [
        (2, [1] * 6 + [0]),
        (2, [1] * 6),
        (2, [1] * 5),
        (4, gaps),
        (4, [*gaps, 0, 0]),
        (4, [*gaps, 0, 0, 0]),
    ]:
        attributes = [integers("output_shape", [len(expected)]), integers("strides", [stride])]
        assert run("ConvTranspose", [x, kernel], *attributes).tolist() == [[expected]]


def test_integer_gemm_truncates_once() -> None:
    a, b, c = (np.array(entries) for entries in ([[1, 2]], [[3], [4]], [[3]]))
    for alpha, beta, expected in [(0.5, 0.5, 7), (0.5, 1.0, 8), (1.0, 0.5, 12), (-0.5, 0.0, -5)]:
        attributes = [floating("alpha", alpha), floating("beta", beta)]
        assert run("Gemm", [a, b, c], *attributes).tolist() == [[expected]]
    large, one = np.array([[2**60 + 1]]), np.array([[1]])
    found = run("Gemm", [large, one, one], floating("alpha", 2.0), floating("beta", 3.0))
    assert (str(found.dtype), found.tolist()) == ("s64", [[2**61 + 5]])


def test_shrink_truncates_its_attributes_for_integers() -> None:
    x = np.array([-3, -1, 0, 1, 3])
    found = run("Shrink", [x], floating("lambd", 1.5), floating("bias", 1.5))
    assert found.tolist() == [-2, 0, 0, 0, 2]


@pytest.mark.parametrize(
    ("op", "shape", "attributes", "options", "expected"),
    [
        ("ReduceL2", (1, 400), [], {}, 6000.0),
        ("ReduceLogSum", (1, 400), [], {}, math.log(120000)),
        ("LpPool", (1, 1, 400), [integers("kernel_shape", [400])], {"version": 22}, 6000.0),
        ("GlobalLpPool", (1, 1, 400), [], {"version": 22}, 6000.0),
        ("LRN", (1, 1, 2, 2), [integer("size", 1)], {}, 300 / 10**0.75),
    ],
)
def test_f16_reductions_do_not_overflow(
    op: str, shape: tuple[int, ...], attributes: list[bytes], options: Any, expected: float
) -> None:
    found = run(op, [np.full(shape, 300, dtype=np.float16)], *attributes, **options)
    assert str(found.dtype) == "f16"
    np.testing.assert_allclose(found.numpy().reshape(-1), expected, rtol=2e-3)


def test_f16_variance_of_large_elements() -> None:
    x = np.array([300, -300, 300, -300], dtype=np.float16).reshape(1, 1, 2, 2)
    found = run("MeanVarianceNormalization", [x])
    assert (str(found.dtype), found.tolist()) == ("f16", [[[[1.0, -1.0], [1.0, -1.0]]]])


def test_swiglu() -> None:
    for alpha in (1.0, 0.5):
        found = run("SwiGLU", [X, BIAS], floating("alpha", alpha), version=28).numpy()
        np.testing.assert_allclose(found, X / (1 + np.exp(-alpha * X)) * BIAS, rtol=1e-5)


@pytest.mark.parametrize("has_past", [False, True])
def test_causal_convolution_with_state(has_past: bool) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 3, 5)).astype(np.float32)
    kernel = rng.standard_normal((3, 1, 4)).astype(np.float32)
    bias, past = (rng.standard_normal(s).astype(np.float32) for s in ((3,), (2, 3, 3)))
    start = past if has_past else np.zeros_like(past)
    whole = np.concatenate([start, x], axis=2)
    expected = np.stack([(whole[:, :, t : t + 4] * kernel[:, 0]).sum(-1) for t in range(5)], axis=2)
    expected += bias[:, None]
    for activation in ("none", "silu"):
        inputs = [x, kernel, bias, past if has_past else None]
        attributes = [text("activation", activation)]
        found, state = run(
            "CausalConvWithState", inputs, *attributes, outputs=2, version=27
        ).values()
        activated = expected / (1 + np.exp(-expected)) if activation == "silu" else expected
        np.testing.assert_allclose(found.numpy(), activated, rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(state.numpy(), whole[:, :, -3:])


def test_stft_matches_fft_of_frames() -> None:
    signal = np.random.default_rng(1).standard_normal((2, 30)).astype(np.float32)
    window = np.hanning(8).astype(np.float32)
    frames = np.stack([signal[:, start : start + 8] for start in range(0, 23, 5)], axis=1)
    for onesided, transform in [(1, np.fft.rfft), (0, np.fft.fft)]:
        expected = transform(frames * window)
        attribute = integer("onesided", onesided)
        found = run("STFT", [signal[..., None], window], attribute, constants={1: np.array(5)})
        pairs = np.stack([expected.real, expected.imag], axis=-1)
        np.testing.assert_allclose(found.numpy(), pairs, rtol=1e-4, atol=1e-5)


def test_mel_weights_are_triangles_of_equal_mel_width() -> None:
    bands, length, rate, low, high = 8, 16, 8192, 0.0, 4096.0
    constants = {0: bands, 1: length, 2: rate, 3: np.float32(low), 4: np.float32(high)}
    found = run("MelWeightMatrix", [], constants=constants).numpy()
    mel = 2595 * np.log10(1 + np.array([low, high]) / 700)
    hertz = 700 * (10 ** ((mel[0] + (mel[1] - mel[0]) / (bands + 2) * np.arange(10)) / 2595) - 1)
    edges = np.floor((length + 1) * hertz / rate)
    expected = np.zeros((length // 2 + 1, bands))
    for band in range(bands):
        points = dict(zip(edges[band : band + 3], (0.0, 0.0, 0.0), strict=True))
        points[edges[band + 1]] = 1.0
        expected[:, band] = np.interp(np.arange(9), list(points), list(points.values()), 0, 0)
    np.testing.assert_allclose(found, expected, atol=1e-6)


IMAGE = np.ones((1, 1, 4, 4), dtype=np.float32)
SCALE, ZERO = np.float32(1.0), np.uint8(0)
HUGE = 2**62

#: Operators with invalid inputs or attributes, and the error message.
INVALID_CASES: list[tuple[str, list[Any], list[bytes], dict[str, Any], str]] = [
    ("Gelu", [X], [text("approximate", "erf")], {}, "approximate: must be none or tanh"),
    ("TopK", [X], [], {"version": 9, "outputs": 2}, "k: must be a number"),
    ("RNN", weights(2), [], {}, "must have 1 entries for forward; got 2"),
    ("RNN", weights(1), [text("direction", "bidirectional")], {}, "must have 2 entries"),
    ("RNN", weights(1), [text("direction", "sideways")], {}, "direction: must be forward"),
    ("ConvTranspose", [IMAGE, np.ones((1, 1, 3), np.float32)], [], {}, "W: must have 4 axes"),
    ("ConvTranspose", [IMAGE, np.ones((1,), np.float32)], [], {}, "spatial axes"),
    (
        "QLinearConv",
        [IMAGE.astype(np.uint8), SCALE, ZERO, np.ones(1, np.uint8), X[:2], ZERO, SCALE, ZERO],
        [],
        {},
        "spatial axes",
    ),
    ("TensorScatter", [IMAGE, np.ones(1, np.float32)], [], {"version": 24}, "must have the rank"),
    ("MaxPool", [IMAGE], [integers("kernel_shape", [HUGE, HUGE])], {}, "kernel_shape: must have 2"),
    (
        "MaxPool",
        [IMAGE],
        [integers("kernel_shape", [1, 1]), integers("pads", [HUGE] * 4)],
        {},
        "pads: must be at most",
    ),
    (
        "AveragePool",
        [IMAGE],
        [integers("kernel_shape", [1, 1]), integers("pads", [2**63 - 1] * 4)],
        {},
        "pads: must be at most",
    ),
    (
        "MaxPool",
        [IMAGE],
        [integers("kernel_shape", [1, 1]), integers("strides", [2**63 - 1] * 2)],
        {},
        "strides: must have 2",
    ),
    (
        "MaxUnpool",
        [IMAGE, IMAGE.astype(np.int64)],
        [integers("kernel_shape", [2**31, 2**31]), integers("strides", [2**31, 2**31])],
        {},
        "MaxUnpool",
    ),
    (
        "RotaryEmbedding",
        [IMAGE[..., :0], IMAGE[0, 0, :, :0], IMAGE[0, 0, :, :0]],
        [integer("interleaved", 1)],
        {"version": 23},
        "rotary_embedding_dim: must be even",
    ),
    ("CumSum", [X, np.array([], dtype=np.int64)], [], {"outputs": 2}, "CumSum"),
    (
        "ThresholdedRelu",
        [np.array([1, 2])],
        [floating("alpha", 0.5)],
        {},
        r"input: must be a float for the number 0\.5; got s64",
    ),
    (
        "DepthToSpace",
        [np.ones((1, 6, 2, 2), np.float32)],
        [integer("blocksize", 2)],
        {},
        "blocksize: must have a square that divides the channels; got 2",
    ),
    (
        "SpaceToDepth",
        [np.ones((1, 1, 2, 3), np.float32)],
        [integer("blocksize", 2)],
        {},
        "blocksize: must divide height and width; got 2",
    ),
    ("RNN", weights(1), [texts("activations", ["Frob"])], {}, 'recurrent layers; got "Frob"'),
]


@pytest.mark.parametrize(("op", "inputs", "attributes", "options", "match"), INVALID_CASES)
def test_invalid_inputs_and_attributes_raise(
    op: str, inputs: list[Any], attributes: list[bytes], options: dict[str, Any], match: str
) -> None:
    with pytest.raises((nx.FormatError, nx.ArgumentError), match=match):
        run(op, inputs, *attributes, **options)


def test_unsupported_attributes_raise() -> None:
    match = r"RotaryEmbedding \(\"y0\"\): scale: must be 1.0; got 2"
    with pytest.raises(nx.ArgumentError, match=match):
        rotary(floating("scale", 2.0))


def loop(limit: np.ndarray, state: list[int], body: bytes) -> bytes:
    """Return a model of a loop over `x`, whose body can read `z`."""
    repeat = node("Loop", ["m", "", "x"], ["y"], graph_attribute("body", body))
    inputs = [value("x", state), value("z", [3])]
    return model(graph([repeat], inputs, [value("y", None)], [tensor("m", limit)]))


@pytest.mark.parametrize(
    ("limit", "match"),
    [(np.array([], dtype=np.int64), "M: must be one number"), (HUGE, "must keep the type")],
)
def test_invalid_loop_without_nodes_raises(limit: Any, match: str) -> None:
    """The state gets another shape in each iteration, so that the loop cannot be rolled."""
    names = [value("i", [], 7), value("go", [], 9), value("s", None)]
    body = graph([], names, [value("go", [], 9), value("z", [3])])
    function = nx.from_onnx(loop(np.asarray(limit), [2], body))
    with pytest.raises(nx.FormatError, match=match):
        function(nx.ones(2), nx.ones(3))


def test_loop_without_trip_count_is_unrolled() -> None:
    """The state grows in each of three iterations."""
    names = [value("i", [], 7), value("go", [], 9), value("s", None)]
    nodes = [
        node("Less", ["i", "last"], ["next"]),
        node("Concat", ["s", "x"], ["t"], integer("axis", 0)),
        node("Identity", ["i"], ["scanned"]),
    ]
    outputs = [value("next", [], 9), value("t", None), value("scanned", [], 7)]
    constants = [tensor("last", np.array(2)), tensor("start", np.array(True))]
    for condition in ("", "start"):
        for count in (1, 2):
            body = graph(nodes, names, outputs[: 1 + count])
            results = ["y", "all"][:count]
            repeat = node("Loop", ["", condition, "x"], results, graph_attribute("body", body))
            shown = [value(name, None) for name in results]
            function = nx.from_onnx(model(graph([repeat], [value("x", [2])], shown, constants)))
            found = function(nx.ones(2))
            if count == 2:
                assert found["all"].tolist() == [0, 1, 2]
                found = found["y"]
            assert found.tolist() == [1.0] * 8


def test_stacked_outputs_of_data_dependent_loop_raise() -> None:
    names = [value("i", [], 7), value("go", [], 9), value("s", [2])]
    nodes = [
        node("Add", ["s", "s"], ["t"]),
        node("ReduceMax", ["t"], ["largest"], integer("keepdims", 0)),
        node("Less", ["largest", "limit"], ["next"]),
    ]
    outputs = [value("next", [], 9), value("t", [2]), value("largest", [])]
    attribute = graph_attribute("body", graph(nodes, names, outputs))
    repeat = node("Loop", ["", "", "x"], ["y", "all"], attribute)
    inputs, results = [value("x", [2]), value("limit", [])], [value("y", None), value("all", None)]
    function = nx.from_onnx(model(graph([repeat], inputs, results)))
    with pytest.raises(nx.ArgumentError, match="body: the number of iterations depends on the"):
        function(nx.ones(2), nx.tensor(9.0))


@pytest.mark.parametrize("is_equal", [True, False])
def test_branches_have_equal_shapes(is_equal: bool) -> None:
    joined = node("Concat", ["x", "x"], ["a"], integer("axis", 0))
    then = graph([node("Neg", ["x"], ["a"]) if is_equal else joined], [], [value("a", None)])
    otherwise = graph([node("Identity", ["x"], ["b"])], [], [value("b", None)])
    branches = [graph_attribute("then_branch", then), graph_attribute("else_branch", otherwise)]
    nodes = [node("If", ["c"], ["y"], *branches)]
    inputs = [value("c", [], 9), value("x", [1, 2])]
    function = nx.from_onnx(model(graph(nodes, inputs, [value("y", None)])))
    if is_equal:
        assert function(nx.tensor(True), nx.ones((1, 2))).tolist() == [[-1.0, -1.0]]
        return
    match = (
        r"the shape of output 0 must not depend on the data; got f32\[2\]\[2\] and f32\[1\]\[2\]"
    )
    with pytest.raises(nx.ArgumentError, match=match):
        function(nx.tensor(True), nx.ones((1, 2)))


@pytest.mark.parametrize(("op", "gates"), [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("has_lengths", [False, True])
def test_recurrent_layers_of_empty_sequences(
    op: str, gates: int, direction: str, has_lengths: bool
) -> None:
    count = 2 if direction == "bidirectional" else 1
    matrix = np.ones((count, gates, 1), dtype=np.float32)
    state = np.full((count, 1, 1), 0.5, dtype=np.float32)
    lengths = np.zeros(1, dtype=np.int32) if has_lengths else None
    inputs = [np.ones((0, 1, 1), np.float32), matrix, matrix, None, lengths, state]
    attributes = [text("direction", direction), integer("hidden_size", 1)]
    found = run(op, inputs, *attributes, outputs=2)
    assert found["y0"].shape == (0, count, 1, 1)
    assert found["y1"].tolist() == state.tolist()


def test_a_scan_of_an_empty_sequence_returns_its_state() -> None:
    nodes = [node("Add", ["s", "e"], ["t"]), node("Neg", ["t"], ["u"])]
    names = [value("s", [2]), value("e", [2])]
    body = graph(nodes, names, [value("t", [2]), value("u", [2])])
    attributes = [graph_attribute("body", body), integer("num_scan_inputs", 1)]
    scan = node("Scan", ["s0", "x"], ["y", "all"], *attributes)
    inputs = [value("s0", [2]), value("x", ["n", 2])]
    results = [value("y", None), value("all", None)]
    function = nx.from_onnx(model(graph([scan], inputs, results)))
    found = function(nx.tensor([1.0, 2.0]), nx.ones((0, 2)))
    assert (found["y"].tolist(), found["all"].shape) == ([1.0, 2.0], (0, 2))


def test_axes_with_equal_names_must_have_equal_sizes() -> None:
    nodes = [node("Add", ["a", "b"], ["c"])]
    inputs = [value("a", ["n"]), value("b", ["n"])]
    function = nx.from_onnx(model(graph(nodes, inputs, [value("c", None)])))
    assert function(nx.ones(3), nx.ones(3)).tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(nx.ShapeError, match='"b": axis n must have the size 3; got f32\\[1\\]'):
        function(nx.ones(3), nx.ones(1))


def test_nonpositive_axis_sizes_are_dynamic() -> None:
    for size in (0, -1):
        nodes = [node("Neg", ["x"], ["y"])]
        function = nx.from_onnx(model(graph(nodes, [value("x", [size])], [value("y", None)])))
        assert function.inputs == [("x", "f32[?]")]
        assert function(nx.ones(2)).tolist() == [-1.0, -1.0]


def test_named_output_after_unnamed_outputs_must_exist() -> None:
    nodes = [node("Relu", ["x"], ["", "", "y"])]
    function = nx.from_onnx(model(graph(nodes, [value("x", [2])], [value("y", None)])))
    with pytest.raises(nx.ArgumentError, match="at most 1 are supported; got 3"):
        function(nx.ones(2))


def test_results_keep_the_order_of_the_model() -> None:
    nodes = [node("Neg", ["x"], ["b"]), node("Abs", ["x"], ["a"])]
    outputs = [value("b", None), value("a", None)]
    function = nx.from_onnx(model(graph(nodes, [value("x", [1])], outputs)))
    for each in (function, nx.jit(function)):
        assert list(each(nx.ones(1))) == ["b", "a"]


def test_unsupported_values_and_operators_are_listed() -> None:
    sequence = field(1, "s") + field(2, field(4, field(1, field(1, field(1, 1)))))
    nodes = [node("Unique", ["x"], ["y"], name="first")]
    inputs = [value("x", [2], 23), sequence]
    with pytest.raises(nx.ArgumentError) as error:
        nx.from_onnx(model(graph(nodes, inputs, [value("y", [2], 8)])))
    listed = str(error.value)
    assert "4 unsupported operations" in listed
    for expected in (
        'Unique ("first")',
        'input ("x"): the dtype float4e2m1',
        'input ("s"): must be a tensor; got a value of the kind sequence',
        'output ("y"): tensors of strings',
    ):
        assert expected in listed


def test_an_unsupported_dtype_of_a_cast_names_the_node() -> None:
    with pytest.raises(nx.ArgumentError, match=r'Cast \("y0"\): to: the dtype float8e8m0'):
        run("Cast", [X], integer("to", 24))


def test_non_path_file_argument_raises() -> None:
    with pytest.raises(nx.ArgumentError, match="from_onnx: file: must be a path; got 3"):
        nx.from_onnx(3)  # type: ignore[arg-type]


def test_grid_sample_modes_and_padding() -> None:
    x = np.arange(12, dtype=np.float32).reshape(1, 1, 3, 4)
    theta = np.array([[[1, 0, 0], [0, 1, 0]]], dtype=np.float32)
    for aligns in (0, 1):
        attribute = integer("align_corners", aligns)
        size = {1: np.array([1, 1, 3, 4])}
        grid = run("AffineGrid", [theta], attribute, constants=size, version=20)
        # The identity reads each element, in every mode.
        for mode in ("nearest", "linear", "cubic"):
            attributes = [attribute, text("mode", mode)]
            found = run("GridSample", [x, grid.numpy()], *attributes, version=20)
            np.testing.assert_allclose(found.numpy(), x, rtol=1e-5, atol=1e-5)
    # Half an element to the right of the last column, in a row.
    outside = np.array([[[[1 + 1 / 3, 0]]]], dtype=np.float32)
    for padding, expected in [("zeros", 3.5), ("border", 7.0), ("reflection", 6.5)]:
        attributes = [integer("align_corners", 1), text("padding_mode", padding)]
        found = run("GridSample", [x, outside], *attributes, version=20)
        np.testing.assert_allclose(found.item(), expected, rtol=1e-5)


def test_gradient_of_grid_sample() -> None:
    grid = np.array([[[[0.1, -0.3], [0.5, 0.9]]]], dtype=np.float32)
    body = graph(
        [node("GridSample", ["x", "g"], ["y"], text("mode", "cubic"))],
        [value("x", [1, 1, 3, 4])],
        [value("y", None)],
        [tensor("g", grid)],
    )
    function = nx.from_onnx(model(body, 20))
    x = nx.tensor(np.arange(12, dtype=np.float32).reshape(1, 1, 3, 4))
    slope = nx.grad(lambda x: nx.sum(function(x)))(x).numpy()
    # The samples are linear in the image.
    np.testing.assert_allclose((slope * x.numpy()).sum(), nx.sum(function(x)).item(), rtol=1e-4)


def test_col2im() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 3 * 4, 9)).astype(np.float32)
    expected = np.zeros((2, 3, 6, 6), dtype=np.float32)
    parts = x.reshape(2, 3, 2, 2, 3, 3)
    for i, j, k, l in np.ndindex(2, 2, 3, 3):  # noqa: E741
        row, column = 2 * k + i - 1, 2 * l + j - 1
        if 0 <= row < 4 and 0 <= column < 5:
            expected[:, :, row, column] += parts[:, :, i, j, k, l]
    constants = {1: np.array([4, 5]), 2: np.array([2, 2])}
    attributes = [integers("strides", [2, 2]), integers("pads", [1, 1, 1, 0])]
    found = run("Col2Im", [x], *attributes, constants=constants, version=18).numpy()
    np.testing.assert_allclose(found, expected[:, :, :4, :5], rtol=1e-6)
    with pytest.raises(nx.FormatError, match="must have blocks of 4 at"):
        run("Col2Im", [x], constants=constants, version=18)


def quantized_product(
    a: np.ndarray, b: np.ndarray, parameters: dict[str, np.ndarray], rows: int
) -> np.ndarray:
    """Return the formula of QLinearMatMul; vectors of `a` and `y` have an element for each row."""
    column = {
        name: value.reshape(rows, 1) if name[0] in "ay" and value.size > 1 else value
        for name, value in parameters.items()
    }
    wide = (a.astype(np.int32) - column["a_zero"]) @ (b.astype(np.int32) - column["b_zero"])
    scaled = wide * (column["a_scale"] * column["b_scale"] / column["y_scale"])
    return np.clip(np.round(scaled) + column["y_zero"], 0, 255).astype(np.uint8)


@pytest.mark.parametrize("shape", [(2, 2), (2, 3), (3, 1)])
@pytest.mark.parametrize("vectors", ["", "a", "b", "y", "aby"])
def test_qlinear_matmul_with_row_and_column_scales(vectors: str, shape: tuple[int, int]) -> None:
    random = np.random.default_rng(0)
    rows, columns = shape
    a = random.integers(0, 255, (rows, 4), np.uint8)
    b = random.integers(0, 255, (4, columns), np.uint8)
    parameters = {}
    for name, count in [("a", rows), ("b", columns), ("y", rows)]:
        size = (count,) if name in vectors else ()
        scale = random.choice([0.25, 0.5, 1.0, 2.0], size).astype(np.float32)
        parameters[f"{name}_scale"] = scale * np.float32(100 if name == "y" else 1)
        parameters[f"{name}_zero"] = random.integers(90, 140, size, np.uint8)
    order = ["a_scale", "a_zero", "b", "b_scale", "b_zero", "y_scale", "y_zero"]
    inputs = [a, *(b if name == "b" else parameters[name] for name in order)]
    wide = {name: np.asarray(value) for name, value in parameters.items()}
    expected = quantized_product(a, b, wide, rows)
    np.testing.assert_array_equal(run("QLinearMatMul", inputs).numpy(), expected)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32])
@pytest.mark.parametrize(
    "limits", [(0, 5, 2), (5, 0, -2), (0, 0, 1), (3, 0, 1), (-3, 4, 7), (1, 10, 3), (10, 1, -3)]
)
def test_range_values(limits: tuple[int, int, int], dtype: type) -> None:
    constants = {index: np.array(each, dtype) for index, each in enumerate(limits)}
    found = run("Range", [], constants=constants)
    assert str(found.dtype) == {"int32": "s32", "int64": "s64", "float32": "f32"}[dtype.__name__]
    assert found.tolist() == list(range(*limits))


@pytest.mark.parametrize("start", [2**60 + 1, -(2**63), 2**63 - 10])
@pytest.mark.parametrize("step", [1, 3, -1])
def test_range_of_large_integers_is_exact(start: int, step: int) -> None:
    limits = (start, start + 7, step) if step > 0 else (start + 7, start, step)
    constants = {index: np.array(each, np.int64) for index, each in enumerate(limits)}
    assert run("Range", [], constants=constants).tolist() == list(range(*limits))
    constants[2] = np.array(0, np.int64)
    with pytest.raises(nx.FormatError, match="delta: must not be 0"):
        run("Range", [], constants=constants)


#: Activations of recurrent layers with their parameters and defaults.
ACTIVATIONS = {
    "Sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "Tanh": math.tanh,
    "Relu": lambda x: max(x, 0.0),
    "ThresholdedRelu": lambda x, alpha=1.0: x if x >= alpha else 0.0,
    "Softsign": lambda x: x / (1 + abs(x)),
    "Softplus": lambda x: math.log1p(math.exp(x)),
    "LeakyRelu": lambda x, alpha=0.01: x if x >= 0 else alpha * x,
    "Elu": lambda x, alpha=1.0: x if x >= 0 else alpha * (math.exp(x) - 1),
    "HardSigmoid": lambda x, alpha=0.2, beta=0.5: max(0.0, min(1.0, alpha * x + beta)),
    "Affine": lambda x, alpha=1.0, beta=0.0: alpha * x + beta,
    "ScaledTanh": lambda x, alpha=1.0, beta=1.0: alpha * math.tanh(beta * x),
}


@pytest.mark.parametrize("first", ACTIVATIONS)
@pytest.mark.parametrize("second", ACTIVATIONS)
def test_recurrent_activations_use_their_parameters(first: str, second: str) -> None:
    # The directions of a layer with one step have one activation each.
    alphas, betas, values = [0.3, 0.6], [0.2, 0.4], []
    left, right = iter(alphas), iter(betas)
    for name in (first, second):
        function = ACTIVATIONS[name]
        count = function.__code__.co_argcount if hasattr(function, "__code__") else 1
        parameters = [next(left)] if count > 1 else []
        parameters += [next(right)] if count > 2 else []
        values.append(function(-1.5, *parameters))
    x = np.full((1, 1, 1), -1.5, np.float32)
    ones = np.ones((2, 1, 1), np.float32)
    found = run(
        "RNN",
        [x, ones, ones],
        text("direction", "bidirectional"),
        integer("hidden_size", 1),
        texts("activations", [first, second]),
        floats("activation_alpha", alphas),
        floats("activation_beta", betas),
    )
    np.testing.assert_allclose(found.numpy().reshape(-1), values, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(("alpha", "expected"), [(-1.5, -1.5), (-1.0, 0.0)])
def test_thresholded_relu_includes_its_threshold(alpha: float, expected: float) -> None:
    x, one = np.full((1, 1, 1), -1.5, np.float32), np.ones((1, 1, 1), np.float32)
    names, alphas = texts("activations", ["ThresholdedRelu"]), floats("activation_alpha", [alpha])
    assert run("RNN", [x, one, one], names, alphas).item() == expected
