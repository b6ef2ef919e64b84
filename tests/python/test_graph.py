"""Expressions and their stages."""

import concurrent.futures
import pickle

import numpy as np
import pytest

import nxla as nx


def example(x, y):
    return nx.cos(nx.sin(-x)) + y


def before_cos(node):
    return "before" if node.op == "cos" else "none"


def test_the_documentation_example_prints_its_stages():
    stages = nx.graph.split(nx.debug_expr(example)(1, 2), before_cos)
    first, second = stages.stages
    assert first.expr.lines() == [
        "parameter a:0   s32",
        "b = negate a    s32",
        "c = sin b       f32",
    ]
    assert second.expr.lines() == [
        "parameter a:1   f32",
        "parameter c:0   s32",
        "b = cos a       f32",
        "d = add b, c    f32",
    ]
    assert second.arguments == [(None, 1), (0, 0)]


def test_staged_equals_whole(compiler):
    expression = nx.debug_expr(example)(1, 2)
    for decision in ("before", "after", "both"):
        stages = nx.graph.split(
            expression, lambda node, d=decision: d if node.op in ("sin", "add") else "none"
        )
        staged = nx.graph.run(stages, 1, 2, compiler=compiler)
        assert staged.item() == nx.jit(example, compiler=compiler)(1, 2).item()


def test_an_accumulator_decides_with_what_came_before():
    def every_second(node, count):
        return ("after" if count % 2 else "none"), count + 1

    stages, count = nx.graph.split(nx.debug_expr(example)(1, 2), every_second, 0)
    assert count == 4
    assert len(stages) > 1


def test_stages_run_on_an_executor_and_travel_as_bytes():
    stages = nx.graph.split(nx.debug_expr(example)(1, 2), before_cos)
    with concurrent.futures.ThreadPoolExecutor(2) as executor:
        result = nx.graph.run(stages, 1, 2, executor=executor)
    np.testing.assert_allclose(np.asarray(result), np.cos(np.sin(-1)) + 2, rtol=1e-6)
    again = pickle.loads(pickle.dumps(stages.stages[0]))
    assert again.digest == stages.stages[0].digest
    np.testing.assert_allclose(np.asarray(again.run(1)[0]), np.sin(-1), rtol=1e-6)


def test_a_wrong_decision_is_refused():
    with pytest.raises(nx.ArgumentError, match="invalid decision 'maybe'"):
        nx.graph.split(nx.debug_expr(example)(1, 2), lambda node: "maybe")


def test_equal_functions_have_equal_digests():
    left = nx.debug_expr(lambda a, b: nx.sin(a) * b)(1.0, 2.0)
    right = nx.debug_expr(lambda x, y: nx.sin(x) * y)(3.0, 4.0)
    assert left.digest == right.digest
    assert left.digest != nx.debug_expr(lambda a, b: nx.cos(a) * b)(1.0, 2.0).digest


def test_pictures_are_svg():
    expression = nx.debug_expr(example)(1, 2)
    for picture in (expression.to_svg(), nx.graph.split(expression, before_cos).to_svg()):
        assert picture.startswith("<svg")
        assert picture.rstrip().endswith("</svg>")


def test_long_chains():
    def chain(x):
        for _ in range(100_000):
            x = nx.sin(x)
        return x

    expression = nx.debug_expr(chain)(0.5)
    assert len(expression) == 100_001
    assert len(expression.lines(limit=10)) <= 13
    count = iter(range(10**9))
    stages = nx.graph.split(
        expression, lambda node: "after" if next(count) % 1000 == 999 else "none"
    )
    assert len(stages) == 101
    assert nx.graph.run(stages, 0.5).item() == nx.jit(chain)(0.5).item()
