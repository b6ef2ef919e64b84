"""Policies: stages without a decision about every node, and functions compiled in stages."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import nxla as nx
from nxla.graph import Policy


def layer(x, weights, mask):
    y = nx.tanh(x @ weights["w"] + weights["b"]) * nx.exp(-mask)
    y = x + y
    centered = y - nx.mean(y, axis=-1, keepdims=True)
    return centered / nx.sqrt(nx.mean(centered * centered, axis=-1, keepdims=True) + 1e-3)


def model(params, x, mask):
    x = x @ params["embed"]
    for weights in params["layers"]:
        x = layer(x, weights, mask)
    return x @ params["head"]


def loss(params, x, mask):
    return nx.mean(model(params, x, mask) ** 2)


def step(params, x, mask):
    value, gradients = nx.value_and_grad(loss)(params, x, mask)
    return nx.tree.map(lambda p, g: p - 0.1 * g, params, gradients), value


def numbers(layers=6, width=8):
    random = np.random.default_rng(0)

    def normal(*shape):
        return random.normal(size=shape)

    params = {
        "embed": normal(5, width),
        "layers": [{"w": normal(width, width), "b": normal(width)} for _ in range(layers)],
        "head": normal(width, 3),
    }
    return params, normal(4, 5), normal(4, width)


POLICIES = [
    Policy.every_ops(7),
    Policy.at_most_ops(9),
    Policy.balanced(5),
    Policy.memory(1 << 13),
    Policy.layers(),
    Policy.training(),
    Policy.auto(),
]


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_staged_training_step_matches_the_whole(policy, compiler):
    arguments = numbers()
    expected = nx.jit(step, compiler=compiler)(*arguments)
    stages = nx.graph.split(nx.debug_expr(step)(*arguments), policy)
    found = nx.graph.run(stages, *arguments, compiler=compiler)
    jitted = nx.jit(step, compiler=compiler, stages=policy)(*arguments)
    for result in (found, jitted):
        for left, right in zip(nx.tree.leaves(expected), nx.tree.leaves(result), strict=True):
            np.testing.assert_allclose(np.asarray(left), np.asarray(right), rtol=1e-9, atol=1e-12)


def test_stages_are_a_sequence():
    expression = nx.debug_expr(lambda x: nx.cos(nx.sin(x)))(1.0)
    stages = nx.graph.split(expression, Policy.every_ops(1))
    first, last = stages
    assert [stage.id for stage in stages] == [0, 1]
    assert (stages[0].digest, stages[-1].digest) == (first.digest, last.digest)
    with pytest.raises(IndexError, match="must be below 2, the number of stages; got 2"):
        stages[2]
    with pytest.raises(IndexError, match="must be below 2, the number of stages; got -3"):
        stages[-3]


@pytest.mark.parametrize("layers", [3, 6, 12])
def test_equal_layers_share_one_program(layers):
    arguments = numbers(layers)
    stages = nx.graph.split(nx.debug_expr(model)(*arguments), "layers")
    digests = [stage.digest for stage in stages]
    assert len(digests) - len(set(digests)) == layers - 1, stages.explain()


def test_layers_policy_finds_backward_layers():
    arguments = numbers(12)
    stages = nx.graph.split(nx.debug_expr(step)(*arguments), "layers")
    digests = [stage.digest for stage in stages]
    assert len(digests) - len(set(digests)) >= 2 * (12 - 3), stages.explain()


def test_equal_stages_are_compiled_once():
    arguments = numbers(8, width=7)
    before = nx.cache_report()
    nx.jit(model, compiler="xla", stages="layers")(*arguments)
    after = nx.cache_report()
    stages = nx.graph.split(nx.debug_expr(model)(*arguments), "layers")
    distinct = len({stage.digest for stage in stages})
    # The executable of all stages together is an additional one.
    assert after["misses"] - before["misses"] == distinct + 1
    assert len(stages) > distinct + 5


def test_training_policy_splits_into_passes():
    arguments = numbers(2)
    stages = nx.graph.split(nx.debug_expr(step)(*arguments), "training")
    assert [stage.name for stage in stages] == ["forward", "backward", "update"]
    counts = [stage.expr.op_counts() for stage in stages]
    assert "tanh" in counts[0]
    assert "tanh" not in counts[1]
    assert "dot" not in counts[2]
    assert "forward" in stages.explain()
    with pytest.raises(nx.ArgumentError, match="contains no gradient"):
        nx.graph.split(nx.debug_expr(model)(*arguments), "training")


def test_marks_name_stages():
    def marked(x):
        code = nx.graph.mark(nx.tanh(x), "encoder")
        return nx.graph.mark(nx.sum(code), "decoder") + 1

    expression = nx.debug_expr(marked)(nx.template((3,)))
    stages = nx.graph.split(expression, "marks")
    assert [stage.name for stage in stages] == ["encoder", "decoder", None]
    assert repr(stages[0]).startswith("<stage 0 (encoder) of")
    decoder = nx.graph.split(expression, Policy.marks("decoder"))
    assert [stage.name for stage in decoder] == ["decoder", None]
    with pytest.raises(nx.ArgumentError, match=r'marks: .*\(encoder, decoder\); got "head"'):
        nx.graph.split(expression, Policy.marks("head"))
    # Serialization keeps names.
    assert nx.graph.Stage.from_bytes(stages[0].to_bytes()).name == "encoder"
    # A mark has no effect outside a trace.
    assert nx.graph.mark(3, "three") == 3


def test_invalid_policies_raise():
    expression = nx.debug_expr(lambda x: nx.sin(x))(nx.template((1000,)))
    for name in ("every_ops", "at_most_ops", "balanced", "memory"):
        argument = "bytes" if name == "memory" else "count"
        with pytest.raises(nx.ArgumentError, match=f"^{name}: {argument}: must be positive; got 0"):
            getattr(Policy, name)(0)
    with pytest.raises(nx.ArgumentError, match="with its operands needs 8000"):
        nx.graph.split(expression, Policy.memory(4000))
    with pytest.raises(nx.ArgumentError, match='"layers", "training", "marks" or "auto"'):
        nx.graph.split(expression, "layer")
    with pytest.raises(nx.ArgumentError, match="stages: must be a Policy"):
        nx.jit(lambda x: x, stages=3)
    with pytest.raises(nx.ArgumentError, match="split: decide: must be callable with a state"):
        nx.graph.split(expression, Policy.auto(), [])
    with pytest.raises(
        nx.ArgumentError, match="split: initial: must be a state after the callable"
    ):
        nx.graph.split(expression, [], lambda node, state: ("none", state))


def test_policies_support_equality_and_pickling():
    for policy in POLICIES:
        copy = pickle.loads(pickle.dumps(policy))
        assert copy == policy
        assert hash(copy) == hash(policy)
    assert Policy.every_ops(2) != Policy.every_ops(3)
    assert repr(Policy.marks("a", "b")) == 'Policy.marks("a", "b")'
    with nx.default_options(stages="layers"):
        assert nx.default_options()["stages"] == Policy.layers()


def test_hooks_in_stages_are_called_in_order(compiler):
    seen = []

    def shown(x):
        x = nx.hook(nx.sin(x), "one", lambda value: seen.append(("one", value.item())))
        x = nx.hook(nx.cos(x), "two")
        return nx.exp(x)

    function = nx.jit(shown, compiler=compiler, stages=Policy.every_ops(1), hooks={
        "two": lambda value: seen.append(("two", round(value.item(), 5)))
    })  # fmt: skip
    for _ in range(2):
        seen.clear()
        assert function(0.0).item() == pytest.approx(np.e)
        assert seen == [("one", 0.0), ("two", 1.0)]


def test_donated_arguments_of_staged_functions(device):
    function = nx.jit(
        lambda x, y: nx.cos(nx.sin(x)) + y,
        compiler="xla",
        stages=Policy.every_ops(1),
        donate_argnums=(0, 1),
    )
    x = nx.device_put(np.ones((64, 64), np.float32), device)
    y = nx.device_put(np.zeros((64, 64), np.float32), device)
    result = function(x, y)
    np.testing.assert_allclose(np.asarray(result), np.cos(np.sin(np.ones((64, 64)))), rtol=1e-6)


def test_simulation_of_independent_branches():
    def branches(x, y):
        for _ in range(10):
            x = nx.sin(x)
        for _ in range(10):
            y = nx.cos(y)
        return x + y

    expression = nx.debug_expr(branches)(nx.template((8,)), nx.template((8,)))
    stages = nx.graph.split(expression, Policy.every_ops(10))
    serial = stages.simulate(1, seconds=[2.0, 2.0, 1.0])
    both = stages.simulate(2, seconds=[2.0, 2.0, 1.0], latency=0.0, bandwidth=float("inf"))
    assert (serial.makespan, both.makespan) == (5.0, 3.0)
    assert {worker for _, worker, *_ in both.runs} == {0, 1}
    assert "worker  1" in str(both)
    measured = stages.measure(np.ones(8, np.float32), np.ones(8, np.float32), repeat=2)
    assert len(measured) == 3
    assert all(time > 0 for time in measured)
    with pytest.raises(nx.ArgumentError, match="workers: must be at least 1; got 0"):
        stages.simulate(0)
    with pytest.raises(nx.ArgumentError, match="seconds: must be 3"):
        stages.simulate(1, seconds=[1.0])
    with pytest.raises(
        nx.ArgumentError, match="bandwidth must be positive and latency must not be negative; got 0"
    ):
        stages.simulate(1, bandwidth=0.0)


def test_trip_counts_scale_simulated_durations():
    def branch(x, trips):
        return nx.fori(0, trips, lambda _, y: nx.sin(y) + 1.0, x)

    def both(x, y):
        return nx.sqrt(branch(x, 1_000)) + nx.sqrt(branch(y, 1_000_000))

    expression = nx.debug_expr(both)(0.5, 0.5)
    stages = nx.graph.split(expression, lambda node: "before" if node.op == "sqrt" else "none")
    short, long, _ = (end - start for *_, start, end, _ in stages.simulate(1).runs)
    # A stage takes some microseconds in addition to its work.
    assert 100 < long / short <= 1000
    submitted = []

    class Executor(ThreadPoolExecutor):
        def submit(self, function, /, *args, **kwargs):
            submitted.append(args)
            return super().submit(function, *args, **kwargs)

    with Executor(1) as executor:
        result = nx.graph.run(stages, 0.5, 0.5, executor=executor)
    assert nx.all_close(result, expression.run(0.5, 0.5)).item()
    assert [stages._ranks()[stage] for stage in (0, 1, 2)] == [1, 0, 2]
    assert len(submitted) == 3


def test_auto_policy_splits_large_programs():
    def chain(x):
        for _ in range(2000):
            x = nx.sin(x) * 1.5
        return x

    expression = nx.debug_expr(chain)(1.0)
    stages = nx.graph.split(expression, "auto")
    assert len(stages) > 4
    whole = nx.jit(chain)(0.3)
    assert nx.jit(chain, compiler="xla", stages="auto")(0.3).item() == pytest.approx(whole.item())
