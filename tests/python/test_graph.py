"""Expressions and their stages."""

import concurrent.futures
import multiprocessing
import pickle
import subprocess
import sys

import numpy as np
import pytest

import nxla as nx
from where import PLATFORM


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


def test_staged_results_equal_jitted_results(compiler):
    expression = nx.debug_expr(example)(1, 2)
    for decision in ("before", "after", "both"):
        stages = nx.graph.split(
            expression, lambda node, d=decision: d if node.op in ("sin", "add") else "none"
        )
        staged = nx.graph.run(stages, 1, 2, compiler=compiler)
        assert staged.item() == nx.jit(example, compiler=compiler)(1, 2).item()


def test_split_decisions_use_an_accumulator():
    def every_second(node, count):
        return ("after" if count % 2 else "none"), count + 1

    stages, count = nx.graph.split(nx.debug_expr(example)(1, 2), every_second, 0)
    assert count == 4
    assert len(stages) > 1


def test_stages_run_on_an_executor_and_are_pickled():
    stages = nx.graph.split(nx.debug_expr(example)(1, 2), before_cos)
    with concurrent.futures.ThreadPoolExecutor(2) as executor:
        result = nx.graph.run(stages, 1, 2, executor=executor)
    np.testing.assert_allclose(np.asarray(result), np.cos(np.sin(-1)) + 2, rtol=1e-6)
    restored = pickle.loads(pickle.dumps(stages.stages[0]))
    assert restored.digest == stages.stages[0].digest
    np.testing.assert_allclose(np.asarray(restored.run(1)[0]), np.sin(-1), rtol=1e-6)


def test_invalid_decisions_are_rejected():
    with pytest.raises(nx.ArgumentError, match=r"must return .*; got 'maybe'"):
        nx.graph.split(nx.debug_expr(example)(1, 2), lambda node: "maybe")


def test_equal_functions_have_equal_digests():
    left = nx.debug_expr(lambda a, b: nx.sin(a) * b)(1.0, 2.0)
    right = nx.debug_expr(lambda x, y: nx.sin(x) * y)(3.0, 4.0)
    assert left.digest == right.digest
    assert left.digest != nx.debug_expr(lambda a, b: nx.cos(a) * b)(1.0, 2.0).digest


def test_blocks_are_shown_by_name_or_body():
    expression = nx.debug_expr(nx.cumulative_sum)(nx.template((2,), "s32"))
    assert "block cumulative_sum{axis: 0, reverse: false}, a" in expression.to_text()
    for text in (expression.to_text(blocks="body"), *expression.lines(blocks="body")[-1:]):
        assert "block" not in text
        assert "add" in text
    with pytest.raises(nx.ArgumentError, match='blocks: must be "name" or "body"'):
        expression.lines(blocks="bodies")


def test_has_hooks_includes_hooks_in_loops():
    def loop(x):
        return nx.fori(0, 2, lambda i, s: nx.hook(s + i, lambda s: None), x)

    assert nx.debug_expr(loop)(1).has_hooks
    assert not nx.debug_expr(nx.sin)(1).has_hooks


def test_graphs_render_as_svg():
    expression = nx.debug_expr(example)(1, 2)
    for picture in (expression.to_svg(), nx.graph.split(expression, before_cos).to_svg()):
        assert picture.startswith("<svg")
        assert picture.rstrip().endswith("</svg>")


def test_split_and_run_of_long_chains():
    def chain(x):
        for _ in range(100_000):
            x = nx.sin(x)
        return x

    expression = nx.debug_expr(chain)(0.5)
    assert len(expression.nodes) == 100_001
    assert len(expression.lines(limit=10)) <= 13
    count = iter(range(10**9))
    stages = nx.graph.split(
        expression, lambda node: "after" if next(count) % 1000 == 999 else "none"
    )
    assert len(stages) == 101
    assert nx.graph.run(stages, 0.5).item() == nx.jit(chain)(0.5).item()


@pytest.fixture(scope="module")
def processes():
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        yield pool


def after_every(*ops):
    return lambda node: "after" if node.op in ops else "none"


def test_stages_run_in_spawned_processes(processes):
    stages = nx.graph.split(nx.debug_expr(example)(1, 2), before_cos)
    found = nx.graph.run(stages, 1, 2, executor=processes).item()
    assert found == nx.jit(example)(1, 2).item()


@pytest.mark.parametrize("source", ["call", "defaults"])
def test_stages_in_other_processes_use_the_named_device(processes, source):
    stages = nx.graph.split(nx.debug_expr(example)(1, 2), before_cos)
    expected = nx.jit(example, compiler="xla")(1, 2).item()
    (device,) = [device for device in nx.devices() if device.platform == PLATFORM][:1]
    if source == "call":
        found = nx.graph.run(stages, 1, 2, executor=processes, device=device)
    else:
        with nx.default_options(device=device):
            found = nx.graph.run(stages, 1, 2, executor=processes)
    assert found.item() == expected
    assert nx.graph.run(stages, 1, 2, executor=processes, compiler="xla").item() == expected


def test_hooks_are_called_in_the_process_of_the_caller(processes):
    own, named, computed = [], [], []

    def double(value):
        computed.append(value.item())
        return value * 2

    def function(x):
        x = nx.hook(nx.sin(x), lambda value: own.append(value.item()))
        x = nx.hook(nx.cos(x), "named")
        x = nx.runtime_call(double, nx.template((), nx.float32), x)
        return nx.exp(x)

    expression = nx.debug_expr(function)(nx.template((), nx.float32))
    stages = nx.graph.split(expression, after_every("sin", "cos", "io_call", "runtime_call"))
    hooks = {"named": lambda value: named.append(value.item())}
    found = nx.graph.run(stages, 0.0, executor=processes, hooks=hooks)
    assert found.item() == pytest.approx(np.exp(2.0))
    assert (own, named, computed) == ([0.0], [1.0], [1.0])
    with nx.default_options(hooks=hooks):
        nx.graph.run(stages, 0.0, executor=processes)
    assert named == [1.0, 1.0]
    # A hook without a listener does not keep a stage in this process.
    nx.graph.run(stages, 0.0, executor=processes)
    assert (len(own), len(named), len(computed)) == (3, 2, 3)


def test_stages_with_hooks_are_not_pickled():
    expression = nx.debug_expr(lambda x: nx.hook(nx.sin(x), print))(1.0)
    (stage,) = nx.graph.split(expression, lambda node: "none").stages
    with pytest.raises(nx.ArgumentError, match="cannot leave the process"):
        pickle.dumps(stage)


class Counting(nx.Compiler):
    """Counts compiled programs."""

    name = "counting"

    def __init__(self):
        self.compiled = 0

    def compile(self, expression, options):
        self.compiled += 1
        return lambda inputs: expression.run(*inputs)


def test_stages_on_an_executor_use_the_default_options():
    stages = nx.graph.split(nx.debug_expr(example)(1, 2), before_cos)
    counting = Counting()
    with (
        concurrent.futures.ThreadPoolExecutor(2) as executor,
        nx.default_options(compiler=counting),
    ):
        nx.graph.run(stages, 1, 2, executor=executor)
    assert counting.compiled == 2


def test_errors_of_executors_are_raised_by_run():
    class Failing:
        def submit(self, function, *args):
            future = concurrent.futures.Future()
            future.set_exception(ZeroDivisionError("there"))
            return future

    class Wrong:
        def submit(self, function, *args):
            future = concurrent.futures.Future()
            future.set_result([nx.zeros((3,), "bf16")])
            return future

    stages = nx.graph.split(nx.debug_expr(example)(1, 2), before_cos)
    with pytest.raises(ZeroDivisionError, match="there"):
        nx.graph.run(stages, 1, 2, executor=Failing())
    with pytest.raises(nx.ArgumentError, match=r"stage 0: result 0 must be f32; got bf16\[3\]"):
        nx.graph.run(stages, 1, 2, executor=Wrong())


def test_stages_run_on_the_device_of_their_operands():
    stages = nx.graph.split(nx.debug_expr(example)(1, 2), before_cos)
    one = nx.jit(lambda x: x, compiler="xla")(1)
    assert nx.graph.run(stages, 1, 2).device == "host"
    assert nx.graph.run(stages, one, 2).device != "host"
    assert stages.stages[0].run(one)[0].device != "host"
    assert nx.debug_expr(example)(1, 2).run(one, 2).device != "host"


@pytest.mark.parametrize(
    "call",
    [
        "expression.run(1.0, compiler='xla')",
        "nx.graph.run(stages, 1.0, compiler='xla')",
        "stages.stages[0].run(1.0, compiler='xla')[0]",
    ],
)
def test_a_fresh_process_finds_the_plugin(call):
    program = f"""
import nxla as nx
expression = nx.debug_expr(lambda x: nx.sin(x))(1.0)
stages = nx.graph.split(expression, lambda node: "none")
print({call}.device)
"""
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120
    )
    assert found.stdout.strip() not in ("", "host")


def split_after_sine():
    expression = nx.debug_expr(lambda x: {"y": nx.cos(nx.sin(x))})(0.0)
    return nx.graph.split(expression, lambda node: "after" if node.op == "sin" else "none")


def test_run_accepts_a_list_of_stages():
    stages = split_after_sine()
    expected = stages.run(0.5)["y"].tolist()
    for listed in (list(stages.stages), tuple(stages), [stages[1], stages[0]]):
        assert nx.graph.run(listed, 0.5)["y"].tolist() == expected
    with concurrent.futures.ThreadPoolExecutor() as pool:
        assert nx.graph.run(list(stages), 0.5, executor=pool)["y"].tolist() == expected


def test_mismatched_lists_of_stages_raise():
    stages = split_after_sine()
    copy = nx.Stage.from_bytes(stages[0].to_bytes())
    for listed, problem in [
        ([], "at least one stage"),
        ([stages[0]], "stage 1 is missing"),
        ([stages[0], stages[1], stages[0]], "got 3 items"),
        ([stages[0], split_after_sine()[1]], "item 1 belongs to another graph"),
        ([copy, stages[1]], "item 0 was read from bytes"),
    ]:
        with pytest.raises(nx.ArgumentError, match=problem):
            nx.graph.run(listed, 0.5)
        with pytest.raises(nx.ArgumentError, match=problem):
            nx.graph.pipeline(listed, [0.5])


def test_pipelines_accept_a_list_of_stages():
    stages = split_after_sine()
    found = [result["y"].item() for result in nx.graph.pipeline(list(stages), [0.0, 1.0])]
    assert found == [nx.graph.run(stages, x)["y"].item() for x in (0.0, 1.0)]


def test_the_last_stage_has_the_container_of_the_function():
    stages = split_after_sine()
    assert "{'y': b}" in str(stages[1].expr)
    assert list(stages[1].expr.run(0.0)) == ["y"]
    # A stage that computes other values returns a tuple.
    assert isinstance(stages[0].expr.run(0.0), tuple)


@pytest.mark.parametrize(
    "results",
    [
        lambda one, other: {"a": one, "b": other},
        lambda one, other: (other, one),
        lambda one, other: {"a": one, "b": one, "c": [other]},
        lambda one, other: (one, one),
        lambda one, other: one,
    ],
)
def test_the_last_stage_returns_the_container_of_the_function(results):
    def function(x):
        y = nx.exp(nx.exp(x))
        return results(nx.sin(y), nx.cos(y))

    def decide(node):
        return "after" if node.op == "exp" else "none"

    x = nx.tensor([0.5, -0.5])
    expression = nx.debug_expr(function)(x)
    for rule in (decide, nx.graph.Policy.every_ops(2)):
        stages = nx.graph.split(expression, rule)
        last = stages[-1].expr
        assert str(last).splitlines()[1] == str(expression).splitlines()[1]
        staged, whole = nx.graph.run(stages, x), nx.jit(function, compiler="evaluator")(x)
        assert nx.tree.map(nx.Tensor.tolist, staged) == nx.tree.map(nx.Tensor.tolist, whole)
        run = last.run(nx.exp(nx.exp(x)))
        assert nx.tree.map(nx.Tensor.tolist, run) == nx.tree.map(nx.Tensor.tolist, whole)
