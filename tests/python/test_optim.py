"""`nx.optim` compared with optax, whose values are recorded, see `recordings`."""

import math

import numpy as np
import pytest

import nxla as nx

OPTIMIZERS = [
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


def optimize_with_optax(jax, name, options, schedule):
    """Return the parameters after five steps as one vector."""
    import optax

    rate = optax.exponential_decay(0.05, 2, 0.5) if schedule else 0.05
    optimizer, params = getattr(optax, name)(rate, **options), start()
    state = optimizer.init(params)
    for _ in range(5):
        slopes = jax.grad(lambda params: loss(jax.numpy.sum, params))(params)
        updates, state = optimizer.update(slopes, state, params)
        params = optax.apply_updates(params, updates)
    return ravel_params(params)


def ravel_params(params):
    return np.concatenate([np.ravel(leaf) for leaf in nx.tree.leaves(params)])


def minimize(optimizer, steps):
    """Return the parameters after some steps of an optimizer, which donate their arguments."""
    params = nx.tree.map(nx.tensor, start())
    state = optimizer.init(params)

    @nx.jit(donate_argnums=(0, 1))
    def step(params, state):
        slopes = nx.grad(lambda params: loss(nx.sum, params))(params)
        updates, state = optimizer.update(slopes, state, params)
        return nx.optim.apply_updates(params, updates), state

    for _ in range(steps):
        params, state = step(params, state)
    return params


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS)
@pytest.mark.parametrize("schedule", [False, True])
def test_optimizers(name, options, schedule, recorded):
    rate = nx.optim.exponential_decay(0.05, 2, 0.5) if schedule else 0.05
    optimizer = getattr(nx.optim, name)(rate, **options)
    params = minimize(optimizer, steps=5)
    assert {leaf.dtype for leaf in nx.tree.leaves(params)} == {nx.float32}
    expected = recorded(optimize_with_optax, name, options, schedule)
    np.testing.assert_allclose(ravel_params(params), expected, rtol=1e-4, atol=1e-5)


def test_optimizers_on_xla():
    optimizer = nx.optim.chain(nx.optim.clip_by_global_norm(1.0), nx.optim.adam(0.05))
    results = {}
    for compiler in ("evaluator", "xla"):
        with nx.default_options(compiler=compiler):
            params = minimize(optimizer, steps=3)
        results[compiler] = [np.asarray(x) for x in nx.tree.leaves(params)]
    for left, right in zip(*results.values(), strict=True):
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


def schedule_of_optax(jax, name, arguments, options):
    """Return the values of a schedule for the first 15 steps."""
    import optax

    schedule = getattr(optax, name)(*arguments, **options)
    return np.array([float(schedule(step)) for step in range(15)])


def test_schedules_without_a_transition():
    rate = nx.jit(nx.optim.warmup_cosine_decay_schedule(0.0, 1.0, 0, 4))
    assert [round(rate(step).item(), 4) for step in (0, 2, 4)] == [1.0, 0.5, 0.0]
    rate = nx.jit(nx.optim.linear_schedule(1.0, 0.25, 0, transition_begin=2))
    assert [rate(step).item() for step in (1, 2, 3)] == [1.0, 0.25, 0.25]
    with pytest.raises(nx.ArgumentError, match="linear_schedule: transition_steps: must not be"):
        nx.optim.linear_schedule(1.0, 0.25, -1)


def test_schedules_reject_non_numeric_arguments():
    for schedule, argument in (
        (lambda n: nx.optim.linear_schedule(1.0, 0.0, n), "transition_steps"),
        (lambda n: nx.optim.exponential_decay(1.0, n, 0.5), "transition_steps"),
        (lambda n: nx.optim.exponential_decay(1.0, 2, n), "decay_rate"),
        (lambda n: nx.optim.cosine_decay_schedule(1.0, n), "decay_steps"),
        (lambda n: nx.optim.warmup_cosine_decay_schedule(0.0, 1.0, n, 4), "warmup_steps"),
        (lambda n: nx.optim.warmup_cosine_decay_schedule(0.0, 1.0, 2, n), "decay_steps"),
    ):
        for value in ("3", None):
            with pytest.raises(nx.ArgumentError, match=rf"{argument}: must be a number; got "):
                schedule(value)


@pytest.mark.parametrize(("name", "arguments", "options"), SCHEDULES)
def test_schedules(name, arguments, options, recorded):
    schedule = getattr(nx.optim, name)(*arguments, **options)
    jitted = nx.jit(schedule)
    expected = recorded(schedule_of_optax, name, arguments, options)
    for step, value in enumerate(expected):
        assert schedule(step).item() == pytest.approx(value, rel=1e-5, abs=1e-7)
        assert jitted(nx.tensor(step)).item() == pytest.approx(value, rel=1e-5, abs=1e-7)


def join_constants(module):
    parts = [
        module.constant_schedule(0.5),
        module.linear_schedule(1.0, 0.0, 4),
        module.constant_schedule(2.0),
    ]
    schedule = module.join_schedules(parts, [2, 5])
    return np.array([schedule(step) for step in range(8)])


def join_constants_of_optax(jax):
    import optax

    return join_constants(optax)


def test_joined_schedules(recorded):
    np.testing.assert_allclose(
        join_constants(nx.optim), recorded(join_constants_of_optax), rtol=1e-6
    )


def clip_with_optax(jax, name, limit):
    import optax

    clip = getattr(optax, name)(limit)
    return ravel_params(clip.update(start(), clip.init(start()))[0])


def test_clipping(recorded):
    grads = nx.tree.map(nx.tensor, start())
    for name in ("clip", "clip_by_global_norm"):
        for limit in (0.3, 100.0):
            clip = getattr(nx.optim, name)(limit)
            got, _ = clip.update(grads, clip.init(grads))
            expected = recorded(clip_with_optax, name, limit)
            np.testing.assert_allclose(ravel_params(got), expected, rtol=1e-5)
    squares = np.square(ravel_params(start())).sum()
    assert nx.optim.global_norm(grads).item() == pytest.approx(np.sqrt(squares))
    assert nx.optim.clip_by_global_norm(1.0).update(nx.zeros(3), ())[0].tolist() == [0.0] * 3


def test_optimizers_keep_dtypes():
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
            state_dtype = "f64" if dtype == "f64" else "f32"
            assert {str(x.dtype) for x in nx.tree.leaves(state)} <= {state_dtype, "s32"}


def test_first_adam_step_is_accurate():
    adam = nx.optim.adam(1.0, b2=0.999999, eps=0.0)
    updates, _ = adam.update(nx.tensor(3.0), adam.init(nx.tensor(0.0)))
    assert updates.item() == pytest.approx(-1.0, rel=1e-5)


def test_invalid_arguments_raise():
    params = nx.ones(2)
    adamw = nx.optim.adamw(0.1)
    with pytest.raises(nx.ArgumentError, match="params: must be passed"):
        adamw.update(params, adamw.init(params))
    with pytest.raises(nx.ArgumentError, match="create it with init"):
        nx.optim.adam(0.1).update(params, ())
    with pytest.raises(nx.ArgumentError, match="boundaries"):
        nx.optim.join_schedules([nx.optim.constant_schedule(1.0)], [3])
    with pytest.raises(nx.ArgumentError, match="positive"):
        nx.optim.warmup_cosine_decay_schedule(0.0, 1.0, 5, 5)
    with pytest.raises(nx.ArgumentError, match="negative"):
        nx.optim.piecewise_constant_schedule(1.0, {1: -1.0})
    with pytest.raises(nx.ArgumentError):
        nx.optim.apply_updates({"a": params}, {"b": params})


@pytest.mark.parametrize(
    "function", [nx.optim.clip, nx.optim.clip_by_global_norm, nx.optim.clip_by_block_rms]
)
def test_clipping_limits_must_not_be_negative(function):
    for limit in (-1.0, math.nan):
        with pytest.raises(nx.ArgumentError, match=rf"^{function.__name__}: \w+: must not be neg"):
            function(limit)
    traced = nx.jit(lambda limit, x: function(limit).update(x, ())[0])
    assert nx.all(nx.abs(traced(0.5, nx.tensor([3.0, 0.0]))) <= 0.75)


@pytest.mark.parametrize("value", [-0.5, 1.5, math.nan])
@pytest.mark.parametrize(
    ("function", "argument"),
    [
        (nx.optim.sgd, "momentum"),
        (nx.optim.adam, "b1"),
        (nx.optim.adamw, "b2"),
        (nx.optim.lion, "b1"),
        (nx.optim.lion, "b2"),
    ],
)
def test_decay_rates_are_in_the_unit_interval(function, argument, value):
    with pytest.raises(nx.ArgumentError, match=r": must be at least 0 and .*; got "):
        function(0.1, **{argument: value})


@pytest.mark.parametrize("value", [-0.5, math.nan])
@pytest.mark.parametrize("argument", ["eps", "eps_root", "weight_decay"])
def test_epsilons_and_weight_decays_are_not_negative(argument, value):
    with pytest.raises(nx.ArgumentError, match=f"{argument}: must not be negative; got "):
        nx.optim.adamw(0.1, **{argument: value})


def test_integer_parameters_are_rounded_to_nearest():
    params = nx.tensor([5, -5, 5])
    updates = nx.tensor([-0.1, 0.1, 0.7])
    assert nx.optim.apply_updates(params, updates).tolist() == [5, -5, 6]


@pytest.mark.parametrize("name", ["adam", "adamw", "lamb", "muon"])
def test_traced_decay_rates(name):
    x, gradient = nx.tensor([[1.0, 2.0], [3.0, 5.0]]), nx.tensor([[0.3, -0.1], [0.2, 0.7]])

    def updates(b1, b2):
        rates = {"beta": b1, "adam_b2": b2} if name == "muon" else {"b1": b1, "b2": b2}
        optimizer = getattr(nx.optim, name)(0.1, **rates)
        state = optimizer.init(x)
        for scale in (1.0, 2.0, -0.5):
            update, state = optimizer.update(gradient * scale, state, x)
        return update

    for b1, b2 in [(0.9, 0.99), (0.0, 0.5)]:
        found = nx.jit(updates)(nx.tensor(b1), nx.tensor(b2))
        np.testing.assert_allclose(found, updates(b1, b2), rtol=1e-5)


@pytest.mark.parametrize("shape", [(3, 4), (4, 3)])
def test_muon_of_complex_matrices(shape):
    random = np.random.default_rng(0)
    gradient = nx.tensor(random.normal(size=shape) + 1j * random.normal(size=shape))
    optimizer = nx.optim.scale_by_muon()
    update, _ = optimizer.update(gradient, optimizer.init(gradient))
    values = np.linalg.svd(np.asarray(update), compute_uv=False)
    assert values.max() / values.min() < 2
