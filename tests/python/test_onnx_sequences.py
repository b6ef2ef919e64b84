"""Sequences of ONNX models, whose length the trace knows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nxla as nx
from onnx_files import field, graph, graph_attribute, integer, model, node, tensor, value

X = np.arange(10, dtype=np.float32).reshape(2, 5)


def apply(nodes: list[bytes], weights: dict[str, Any] | None = None, **options: Any) -> Any:
    """Return the output `y` of nodes for the input `x`."""
    constants = [tensor(name, np.asarray(each)) for name, each in (weights or {}).items()]
    body = graph(nodes, [value("x", [2, 5])], [value("y", None)], constants)
    return nx.from_onnx(model(body, **options))(nx.tensor(X))


JOIN = node("ConcatFromSequence", ["s"], ["y"], integer("axis", 0), integer("new_axis", 1))


@pytest.mark.parametrize(
    ("split", "sizes"), [(np.array(2), [2, 2, 1]), (np.array([1, 4]), [1, 4]), (None, [1] * 5)]
)
@pytest.mark.parametrize("position", [0, 1, -1])
def test_parts_of_a_tensor(split: Any, sizes: list[int], position: int) -> None:
    weights = {"at": np.array(position)} | ({} if split is None else {"split": split})
    inputs = ["x"] if split is None else ["x", "split"]
    nodes = [
        node("SplitToSequence", inputs, ["s"], integer("axis", 1)),
        node("SequenceAt", ["s", "at"], ["y"]),
    ]
    expected = np.split(X, np.cumsum(sizes)[:-1], axis=1)[position]
    assert apply(nodes, weights).tolist() == expected.tolist()


@pytest.mark.parametrize("inputs", [["x"], ["x", "one"]])
def test_parts_without_their_axis(inputs: list[str]) -> None:
    options = [integer("axis", 1), integer("keepdims", 0)]
    nodes = [node("SplitToSequence", inputs, ["s"], *options), JOIN]
    assert apply(nodes, {"one": np.array(1)}).tolist() == X.T.tolist()


def test_a_loop_appends_to_a_sequence() -> None:
    # The exporter of PyTorch writes such loops for lists.
    body = graph(
        [
            node("Identity", ["c"], ["d"]),
            node("Gather", ["x", "i"], ["row"]),
            node("SequenceInsert", ["p", "row"], ["q"]),
        ],
        [value("i", []), value("c", []), value("p", None)],
        [value("d", None), value("q", None), value("row", None)],
    )
    nodes = [
        node("SequenceEmpty", [], ["e"]),
        node("Shape", ["x"], ["sizes"]),
        node("Gather", ["sizes", "zero"], ["m"]),
        node("Loop", ["m", "", "e"], ["s", "rows"], graph_attribute("body", body)),
        node("ConcatFromSequence", ["s"], ["all"], integer("axis", 0)),
        node("Flatten", ["rows"], ["flat"]),
        node("Reshape", ["flat", "last"], ["list"]),
        node("Add", ["all", "list"], ["y"]),
    ]
    weights = {"zero": np.array(0), "last": np.array([-1])}
    assert apply(nodes, weights).tolist() == (2 * X.reshape(-1)).tolist()


def test_a_known_branch_returns_a_sequence() -> None:
    then = graph([node("SequenceConstruct", ["x", "x"], ["a"])], [], [value("a", None)])
    otherwise = graph([node("SequenceConstruct", ["x"], ["b"])], [], [value("b", None)])
    body = graph_attribute("then_branch", then), graph_attribute("else_branch", otherwise)
    nodes = [node("If", ["yes"], ["s"], *body), JOIN]
    for truth, count in [(True, 2), (False, 1)]:
        assert apply(nodes, {"yes": np.array(truth)}).tolist() == [X.tolist()] * count
    nodes = [node("ReduceMax", ["x"], ["t"], integer("keepdims", 0)), *nodes]
    nodes[0:1] = [nodes[0], node("Cast", ["t"], ["yes"], integer("to", 9))]
    match = r'If \("s"\): then_branch: output 0: must be a tensor; got a sequence of 2'
    with pytest.raises(nx.ArgumentError, match=match):
        apply(nodes)


@pytest.mark.parametrize("place", [None, 0, 1, -1, 2])
def test_insertions_and_removals(place: int | None) -> None:
    weights = {} if place is None else {"at": np.array(place)}
    at = [] if place is None else ["at"]
    start = [node("SequenceConstruct", ["x", "z"], ["p"]), node("Neg", ["x"], ["z"])][::-1]
    extra = node("Add", ["x", "x"], ["w"])
    inserted = [*start, extra, node("SequenceInsert", ["p", "w", *at], ["s"]), JOIN]
    items = [X, -X]
    items.insert(2 if place is None else place, X + X)
    assert apply(inserted, weights).tolist() == np.stack(items).tolist()
    removed = [*start, node("SequenceErase", ["p", *at], ["s"]), JOIN]
    items = [X, -X]
    if place == 2:
        with pytest.raises(nx.FormatError, match="position: must be below 2; got 2"):
            apply(removed, weights)
    else:
        items.pop(-1 if place is None else place)
        assert apply(removed, weights).tolist() == np.stack(items).tolist()


def test_the_length_determines_a_shape() -> None:
    nodes = [
        node("SequenceEmpty", [], ["e"]),
        node("SequenceInsert", ["e", "x"], ["s"]),
        node("Identity", ["s"], ["t"]),
        node("SequenceInsert", ["t", "x"], ["u"]),
        node("SequenceLength", ["u"], ["n"]),
        node("Unsqueeze", ["n", "axes"], ["m"]),
        node("Expand", ["half", "m"], ["y"]),
    ]
    weights = {"axes": np.array([0]), "half": np.array([0.5], np.float32)}
    assert apply(nodes, weights).tolist() == [0.5, 0.5]


def test_sequences_enter_branches_and_functions() -> None:
    construct = node("SequenceConstruct", ["x", "x"], ["s"])
    first = node("SequenceAt", ["s", "zero"], ["b"])
    branch = graph([first], [], [value("b", None)])
    body = graph_attribute("then_branch", branch), graph_attribute("else_branch", branch)
    sum_ = node("ReduceSum", ["x"], ["t"], integer("keepdims", 0))
    nodes = [construct, sum_, node("Cast", ["t"], ["c"], integer("to", 9))]
    found = apply([*nodes, node("If", ["c"], ["y"], *body)], {"zero": np.array(0)})
    assert found.tolist() == X.tolist()
    inner = [node("SequenceConstruct", ["p", "p", "p"], ["q"])]
    function = b"".join(
        [field(1, "Three"), field(4, "p"), field(5, "q"), field(10, "own")]
        + [field(7, each) for each in inner]
        + [field(9, field(2, 21))]
    )
    nodes = [node("Three", ["x"], ["s"], domain="own"), JOIN]
    assert apply(nodes, functions=[function]).tolist() == np.stack([X] * 3).tolist()


@pytest.mark.parametrize(
    ("nodes", "match"),
    [
        (
            [node("SequenceConstruct", ["x"], ["s"]), node("Neg", ["s"], ["y"])],
            "Neg .*input 0: must be a tensor; got a sequence of 1",
        ),
        ([node("SequenceConstruct", ["x"], ["y"])], "output .*must be a tensor; got a sequence"),
        ([node("SequenceLength", ["x"], ["y"])], "input 0: must be a sequence; got a tensor"),
        (
            [
                node("Shape", ["x"], ["n"]),
                node("SequenceConstruct", ["x", "n"], ["s"]),
                node("SequenceLength", ["s"], ["y"]),
            ],
            "sequence: must have elements of one dtype; got f32 and s64",
        ),
    ],
)
def test_invalid_sequences_raise(nodes: list[bytes], match: str) -> None:
    with pytest.raises((nx.ArgumentError, nx.FormatError), match=match):
        apply(nodes)


@pytest.mark.parametrize("sizes", [None, np.ones(65537, np.int64)])
def test_a_split_has_a_limited_number_of_parts(sizes: Any) -> None:
    inputs = ["x"] if sizes is None else ["x", "sizes"]
    nodes = [node("SplitToSequence", inputs, ["s"]), node("SequenceLength", ["s"], ["y"])]
    weights = [] if sizes is None else [tensor("sizes", sizes)]
    body = graph(nodes, [value("x", [65537])], [value("y", None)], weights)
    with pytest.raises(nx.ArgumentError, match="split: must be at most 65536 parts; got 65537"):
        nx.from_onnx(model(body))(nx.zeros(65537))


def test_a_model_has_a_limited_number_of_parts() -> None:
    nodes = [node("SplitToSequence", ["x"], [f"s{index}"]) for index in range(16)]
    nodes += [node("SequenceLength", ["s0"], ["y"])]
    function = nx.from_onnx(model(graph(nodes, [value("x", [65536])], [value("y", None)])))
    with pytest.raises(nx.FormatError, match="model has more than 1048576 nodes"):
        function(nx.zeros(65536))
