"""Promises about stages: how an expression is split, and how stages run."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import nxla as nx


def square_sum(x, y):
    return nx.sin(nx.negative(x)) + y


def test_an_expression_iterates_over_its_outputs():
    expression = nx.debug_expr(square_sum)(1, 2)
    stages = nx.graph.split(expression, lambda node: "after" if node.op == "negate" else "none")
    (boundary,) = stages[0].expr
    assert (boundary.op, boundary.shape, boundary.dtype) == ("negate", (), nx.int32)
    (result,) = stages[1].expr
    assert (result.op, result.dtype) == ("add", nx.float32)
    several = nx.debug_expr(lambda x: {"a": nx.sin(x), "b": (x * 2, x + 1)})(1.0)
    assert [node.op for node in several] == ["sin", "multiply", "add"]
    assert len(several) == len(list(several)) == len(several.output_nodes) == 3
    assert several[0] == several.output_nodes[0]
    assert several[-1].op == "add"
    with pytest.raises(IndexError, match="must be below 3, the number of outputs; got 3"):
        several[3]


@pytest.mark.parametrize("every", [1, 2, 3, 5])
def test_accumulator_splits_by_operation_count(compiler, every):
    def chain(x):
        for function in (nx.sin, nx.cos, nx.tanh, nx.exp, nx.negative, nx.abs, nx.sqrt):
            x = function(x)
        return x

    def decide(node, count):
        return ("after" if count % every == 0 else "none"), count + 1

    expression = nx.debug_expr(chain)(0.5)
    stages, count = nx.graph.split(expression, decide, 1)
    operations = [n.op for s in stages for n in s.expr.nodes if n.op not in ("parameter",)]
    assert operations == ["sin", "cos", "tanh", "exp", "negate", "abs", "sqrt"]
    assert count == 1 + len(operations)
    # No operation follows the last one.
    sizes = [sum(n.op != "parameter" for n in s.expr.nodes) for s in stages]
    assert sum(sizes) == 7
    assert all(size == every for size in sizes[:-1])
    expected = np.sqrt(np.abs(-np.exp(np.tanh(np.cos(np.sin(0.5))))))
    result = nx.graph.run(stages, 0.5, compiler=compiler).item()
    assert result == pytest.approx(expected, rel=1e-6)


def test_decisions_are_made_in_post_order():
    seen = []
    expression = nx.debug_expr(lambda x, y: nx.sin(x) * nx.cos(y) + nx.exp(x))(1.0, 2.0)
    nx.graph.split(expression, lambda node: seen.append(node.op))
    assert seen == ["sin", "cos", "multiply", "exp", "add"]


@pytest.mark.parametrize(
    ("decision", "ops"),
    [
        ("none", [["negate", "sin", "cos"]]),
        ("before", [["negate"], ["sin", "cos"]]),
        ("after", [["negate", "sin"], ["cos"]]),
        ("both", [["negate"], ["sin"], ["cos"]]),
    ],
)
def test_split_decisions(compiler, decision, ops):
    expression = nx.debug_expr(lambda x: nx.cos(nx.sin(nx.negative(x))))(2)
    stages = nx.graph.split(expression, lambda n: decision if n.op == "sin" else "none")
    found = [[n.op for n in s.expr.nodes if n.op != "parameter"] for s in stages]
    assert found == ops
    result = nx.graph.run(stages, 2, compiler=compiler).item()
    assert result == pytest.approx(np.cos(np.sin(-2.0)), rel=1e-6)


def test_decision_receives_operation_type_and_operands():
    seen = {}

    def decide(node):
        seen[node.op] = (node.shape, node.dtype, [arg.op for arg in node.args], node.attributes)
        return "none"

    nx.graph.split(nx.debug_expr(lambda x: nx.sum(nx.sin(x), axis=0))(nx.ones((2, 3))), decide)
    assert seen["sin"] == ((2, 3), nx.float32, ["parameter"], {})
    assert seen["sum"] == ((3,), nx.float32, ["sin"], {"axes": (0,), "keep_axes": False})


def test_lists_of_stages_run_in_any_order(compiler):
    expression = nx.debug_expr(square_sum)(1, 2)
    split = lambda e: nx.graph.split(e, lambda n: "after" if n.op == "negate" else "none")  # noqa: E731
    stages = split(expression)
    expected = np.sin(-3.0) + 4
    for chain in (list(stages), list(stages)[::-1], tuple(stages)):
        result = nx.graph.run(chain, 3, 4, compiler=compiler)
        assert result.item() == pytest.approx(expected, rel=1e-6)
    other = split(nx.debug_expr(lambda x, y: nx.negative(x) * y)(1, 2))
    for chain, message in [
        ([], "at least one stage"),
        ([stages[1]], "stage 0 is missing"),
        ([stages[0], other[1]], "item 1 belongs to another graph"),
        ([stages[0], "stage"], "item 1 is str"),
    ]:
        with pytest.raises(nx.ArgumentError, match=message):
            nx.graph.run(chain, 3, 4, compiler=compiler)


def test_independent_stages_run_on_an_executor(compiler):
    expression = nx.debug_expr(lambda x, y: nx.sum(nx.sin(x)) + nx.sum(nx.cos(y)))(
        nx.ones(3), nx.ones(2)
    )
    stages = nx.graph.split(expression, lambda n: "after" if n.op in ("sin", "cos") else "none")
    with ThreadPoolExecutor() as pool:
        result = nx.graph.run(stages, nx.ones(3), nx.ones(2), executor=pool, compiler=compiler)
    assert result.item() == pytest.approx(3 * np.sin(1.0) + 2 * np.cos(1.0), rel=1e-6)
