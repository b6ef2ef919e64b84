"""`nx.optim` compared with optax, which only this file needs."""

import numpy as np
import pytest

import nxla as nx

optax = pytest.importorskip(
    "optax", reason="optax is not installed, so there is nothing to compare"
)
jax = pytest.importorskip("jax")

OPTIMISERS = [
    ("sgd", {}),
    ("sgd", {"momentum": 0.9}),
    ("sgd", {"momentum": 0.9, "nesterov": True}),
    ("adam", {}),
    ("adam", {"b1": 0.8, "eps_root": 1e-6, "nesterov": True}),
    ("adamw", {"weight_decay": 0.05}),
    ("adamw", {"mask": {"b": False, "w": [True, False]}}),
    ("adamw", {"mask": lambda params: {"b": True, "w": [False, True]}, "weight_decay": 0.1}),
    ("lion", {"weight_decay": 0.1}),
    ("adagrad", {}),
    ("adagrad", {"initial_accumulator_value": 0.0}),
    ("rmsprop", {}),
    ("rmsprop", {"centered": True, "momentum": 0.5, "nesterov": True, "initial_scale": 0.1}),
    ("rmsprop", {"eps_in_sqrt": False}),
]


def start():
    rng = np.random.default_rng(0)
    return {
        "w": [rng.normal(size=(3, 2)).astype("f4"), rng.normal(size=2).astype("f4")],
        "b": np.float32(0.5),
    }


def loss(sum_, params):
    w, b = params["w"], params["b"]
    return sum_((w[0] ** 2 + w[1]) ** 2) + (b - 1.0) ** 2


@pytest.mark.parametrize(("name", "options"), OPTIMISERS)
@pytest.mark.parametrize("schedule", [False, True])
def test_optimizers(name, options, schedule):
    rates = [
        module.exponential_decay(0.05, 2, 0.5) if schedule else 0.05 for module in (nx.optim, optax)
    ]
    ours, theirs = (
        getattr(nx.optim, name)(rates[0], **options),
        getattr(optax, name)(rates[1], **options),
    )
    params, expected = nx.tree.map(nx.tensor, start()), start()
    state, their_state = ours.init(params), theirs.init(expected)

    @nx.jit(donate_argnums=(0, 1))
    def step(params, state):
        slopes = nx.grad(lambda params: loss(nx.sum, params))(params)
        updates, state = ours.update(slopes, state, params)
        return nx.optim.apply_updates(params, updates), state

    for _ in range(5):
        params, state = step(params, state)
        slopes = jax.grad(lambda params: loss(jax.numpy.sum, params))(expected)
        updates, their_state = theirs.update(slopes, their_state, expected)
        expected = optax.apply_updates(expected, updates)
    for got, wanted in zip(nx.tree.leaves(params), jax.tree.leaves(expected), strict=True):
        assert got.dtype == nx.float32
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


def test_optimizers_on_xla():
    optimizer = nx.optim.chain(nx.optim.clip_by_global_norm(1.0), nx.optim.adam(0.05))
    steps = {}
    for compiler in ("evaluator", "xla"):
        with nx.default_options(compiler=compiler):
            params = nx.tree.map(nx.tensor, start())
            state = optimizer.init(params)

            @nx.jit(donate_argnums=(0, 1))
            def step(params, state):
                slopes = nx.grad(lambda params: loss(nx.sum, params))(params)
                updates, state = optimizer.update(slopes, state, params)
                return nx.optim.apply_updates(params, updates), state

            for _ in range(3):
                params, state = step(params, state)
            steps[compiler] = [np.asarray(x) for x in nx.tree.leaves(params)]
    for left, right in zip(*steps.values(), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-5)


SCHEDULES = [
    ("constant_schedule", (0.3,), {}),
    ("linear_schedule", (1.0, 0.25, 8), {"transition_begin": 3}),
    ("exponential_decay", (1.0, 4, 0.5), {}),
    (
        "exponential_decay",
        (1.0, 4, 0.5),
        {"transition_begin": 2, "staircase": True, "end_value": 0.2},
    ),
    ("exponential_decay", (1.0, 4, 2.0), {"end_value": 3.0}),
    ("cosine_decay_schedule", (0.5, 10), {"alpha": 0.1, "exponent": 2.0}),
    ("warmup_cosine_decay_schedule", (0.1, 1.0, 4, 12), {"end_value": 0.05}),
    ("piecewise_constant_schedule", (1.0, {3: 0.5, 7: 0.1}), {}),
    ("piecewise_constant_schedule", (1.0,), {}),
]


@pytest.mark.parametrize(("name", "arguments", "options"), SCHEDULES)
def test_schedules(name, arguments, options):
    ours, theirs = (
        getattr(nx.optim, name)(*arguments, **options),
        getattr(optax, name)(*arguments, **options),
    )
    jitted = nx.jit(ours)
    for step in range(15):
        expected = float(theirs(step))
        assert ours(step).item() == pytest.approx(expected, rel=1e-5, abs=1e-7)
        assert jitted(nx.tensor(step)).item() == pytest.approx(expected, rel=1e-5, abs=1e-7)


def test_joined_schedules():
    def parts(m):
        return [m.constant_schedule(0.5), m.linear_schedule(1.0, 0.0, 4), m.constant_schedule(2.0)]

    ours = nx.optim.join_schedules(parts(nx.optim), [2, 5])
    theirs = optax.join_schedules(parts(optax), [2, 5])
    assert [ours(i).item() for i in range(8)] == pytest.approx([float(theirs(i)) for i in range(8)])


def test_clipping():
    grads = nx.tree.map(nx.tensor, start())
    for name in ("clip", "clip_by_global_norm"):
        for limit in (0.3, 100.0):
            ours, theirs = getattr(nx.optim, name)(limit), getattr(optax, name)(limit)
            got, _ = ours.update(grads, ours.init(grads))
            expected, _ = theirs.update(start(), theirs.init(start()))
            for left, right in zip(nx.tree.leaves(got), jax.tree.leaves(expected), strict=True):
                np.testing.assert_allclose(left, right, rtol=1e-5)
    squares = [np.sum(np.square(x)) for x in jax.tree.leaves(start())]
    assert nx.optim.global_norm(grads).item() == pytest.approx(np.sqrt(np.sum(squares)))
    assert nx.optim.clip_by_global_norm(1.0).update(nx.zeros(3), ())[0].tolist() == [0.0] * 3


def test_dtypes_stay():
    for dtype in ("bf16", "f16", "f64"):
        params = {"w": nx.ones(3, dtype=dtype)}
        for optimizer in (
            nx.optim.adam(nx.optim.linear_schedule(0.1, 0.0, 5)),
            nx.optim.rmsprop(0.1, centered=True),
            nx.optim.lion(0.1),
        ):
            state = optimizer.init(params)
            updates, state = optimizer.update(params, state, params)
            after = nx.optim.apply_updates(params, updates)
            assert str(after["w"].dtype) == dtype
            # Moments of narrow parameters are f32: their squares would overflow or vanish.
            kept = "f64" if dtype == "f64" else "f32"
            assert {str(x.dtype) for x in nx.tree.leaves(state)} <= {kept, "s32"}


def test_first_steps_of_adam_keep_their_digits():
    adam = nx.optim.adam(1.0, b2=0.999999, eps=0.0)
    updates, _ = adam.update(nx.tensor(3.0), adam.init(nx.tensor(0.0)))
    assert updates.item() == pytest.approx(-1.0, rel=1e-5)


def test_what_is_refused():
    params = nx.ones(2)
    adamw = nx.optim.adamw(0.1)
    with pytest.raises(nx.ArgumentError, match="params: must be passed"):
        adamw.update(params, adamw.init(params))
    with pytest.raises(nx.ArgumentError, match="create it with init"):
        nx.optim.adam(0.1).update(params, ())
    with pytest.raises(nx.ArgumentError, match="boundaries"):
        nx.optim.join_schedules([nx.optim.constant_schedule(1.0)], [3])
    with pytest.raises(nx.ArgumentError, match="positive"):
        nx.optim.linear_schedule(0.0, 1.0, 0)
    with pytest.raises(nx.ArgumentError, match="positive"):
        nx.optim.warmup_cosine_decay_schedule(0.0, 1.0, 5, 5)
    with pytest.raises(nx.ArgumentError, match="negative"):
        nx.optim.piecewise_constant_schedule(1.0, {1: -1.0})
    with pytest.raises(nx.ArgumentError):
        nx.optim.apply_updates({"a": params}, {"b": params})
