"""Optimizers compared with formulas in f64, masks, and gradients of any size and shape."""

from collections import OrderedDict, namedtuple

import numpy as np
import pytest

import nxla as nx

optim = nx.optim

RATE = 0.5
GRADS = [np.array([0.0, 300.0, 6e4, -1e-4]), np.array([0.0, -200.0, 3e4, 1e-3])]
PARAMS = np.array([1.0, 2.0, -4.0, 0.5])


def adam(grads, decay=0.0, b1=0.9, b2=0.999, eps=1e-8):
    m, v = 0.0, 0.0
    for step, g in enumerate(grads, 1):
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g**2
        update = m / (1 - b1**step) / (np.sqrt(v / (1 - b2**step)) + eps)
        yield -RATE * (update + decay * PARAMS)


def rmsprop(grads, decay=0.9, eps=1e-8):
    v = 0.0
    for g in grads:
        v = decay * v + (1 - decay) * g**2
        yield -RATE * g / np.sqrt(v + eps)


def adagrad(grads, start=0.1, eps=1e-7):
    total = start
    for g in grads:
        total = total + g**2
        yield -RATE * g / np.sqrt(total + eps)


def lion(grads, b1=0.9, b2=0.99, decay=1e-3):
    m = 0.0
    for g in grads:
        yield -RATE * (np.sign(b1 * m + (1 - b1) * g) + decay * PARAMS)
        m = b2 * m + (1 - b2) * g


def momentum(grads, decay=0.9):
    total = 0.0
    for g in grads:
        total = g + decay * total
        yield -RATE * (g + decay * total)


OPTIMIZERS = {
    "adam": (optim.adam(RATE), adam),
    "adam with a schedule": (optim.adam(optim.constant_schedule(RATE)), adam),
    "adamw": (optim.adamw(RATE, weight_decay=0.25), lambda grads: adam(grads, decay=0.25)),
    "rmsprop": (optim.rmsprop(RATE), rmsprop),
    "adagrad": (optim.adagrad(RATE), adagrad),
    "lion": (optim.lion(RATE), lion),
    "momentum": (optim.sgd(RATE, 0.9, nesterov=True), momentum),
}


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_updates_match_formulas(compiler, name, dtype):
    optimizer, formula = OPTIMIZERS[name]
    params = nx.tensor(PARAMS, dtype=dtype)
    grads = [nx.tensor(g, dtype=dtype) for g in GRADS]
    known = [np.asarray(nx.astype(g, "f64")) for g in grads]
    step = nx.jit(optimizer.update, compiler=compiler)
    state = optimizer.init(params)
    dtypes = [leaf.dtype for leaf in nx.tree.leaves(state)]
    wide = dtype if dtype == "f64" else "f32"
    assert {str(d) for d in dtypes} <= {wide, "s32"}
    for g, expected in zip(grads, formula(known), strict=True):
        updates, state = step(g, state, params)
        assert updates.dtype == dtype
        assert [leaf.dtype for leaf in nx.tree.leaves(state)] == dtypes
        tolerance = {"f16": 2e-3, "bf16": 1e-2, "f32": 2e-5, "f64": 1e-12}[dtype]
        # The smallest numbers of f16 are 6e-8 apart.
        np.testing.assert_allclose(
            np.asarray(nx.astype(updates, "f64")), expected, rtol=tolerance, atol=1e-7
        )
    assert optim.apply_updates(params, updates).dtype == dtype


def test_single_transformations_keep_the_dtype():
    g = nx.tensor([1.0, 300.0], dtype="f16")
    transformations = [
        optim.scale(2.0), optim.trace(0.9), optim.scale_by_adam(), optim.scale_by_lion(),
        optim.scale_by_rss(), optim.scale_by_rms(centered=True), optim.clip(1.0),
        optim.clip_by_global_norm(1.0), optim.add_decayed_weights(0.1),
        optim.scale_by_schedule(optim.constant_schedule(0.1)), optim.identity(),
    ]  # fmt: skip
    for transformation in transformations:
        updates, _ = transformation.update(g, transformation.init(g), g)
        assert updates.dtype == "f16"
        assert np.isfinite(np.asarray(updates)).all()


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("size", ["tiny", "plain", "huge"])
def test_clipping_by_norm_keeps_the_direction(compiler, size, dtype):
    limits = nx.finfo(dtype)
    tiny = float(limits.smallest_normal) * 64
    factor = {"tiny": 8 * tiny, "plain": 1.0, "huge": float(limits.max)}
    direction = np.array([0.5, -0.25, 1.0, 1.0])
    g = {"a": nx.tensor(direction[:3] * factor[size], dtype=dtype),
         "b": nx.tensor(direction[3] * factor[size], dtype=dtype)}  # fmt: skip
    max_norm = tiny if size == "tiny" else 0.5
    clip = nx.jit(optim.clip_by_global_norm(max_norm).update, compiler=compiler)
    clipped, _ = clip(g, ())
    found = np.append(*(np.asarray(nx.astype(clipped[name], "f64")) for name in "ab"))
    expected = direction / np.linalg.norm(direction) * max_norm
    tolerance = {"f16": 2e-3, "bf16": 1e-2}.get(dtype, 1e-5)
    np.testing.assert_allclose(found, expected, rtol=tolerance)
    assert clipped["b"].dtype == dtype


@pytest.mark.parametrize("max_norm", [0.0, 1.0])
def test_clipping_zeros(compiler, max_norm):
    clip = optim.clip_by_global_norm(max_norm)
    step = nx.jit(lambda g: clip.update(g, ())[0], compiler=compiler)
    assert step(nx.zeros(3)).tolist() == [0.0, 0.0, 0.0]
    slope = nx.jit(nx.grad(lambda g: nx.sum(clip.update(g, ())[0])), compiler=compiler)
    assert np.isfinite(np.asarray(slope(nx.zeros(3)))).all()
    assert clip.update((), ())[0] == ()
    assert optim.global_norm(()).item() == 0.0


def test_nonfinite_gradients_propagate():
    clip = optim.clip_by_global_norm(1.0)
    assert np.isnan(np.asarray(clip.update(nx.tensor([np.nan, 1.0]), ())[0])).all()
    assert optim.global_norm(nx.tensor([np.inf, 1.0])).item() == np.inf
    assert np.isnan(optim.global_norm(nx.tensor([np.nan, 1.0])).item())


ALL_OPTIMIZERS = ("adafactor", "adagrad", "adam", "adamw", "lamb", "lion", "muon", "rmsprop", "sgd")


@pytest.mark.parametrize("name", ALL_OPTIMIZERS)
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (2, 0, 3)])
def test_empty_parameters(name, shape):
    params = {"empty": nx.ones(shape), "full": nx.ones((2, 3))}
    optimizer = getattr(optim, name)(0.1)
    updates, _ = optimizer.update(params, optimizer.init(params), params)
    assert updates["empty"].shape == shape
    assert nx.all(nx.isfinite(updates["full"]))


Layer = namedtuple("Layer", "w b")
#: Parameters whose leaves are in another order than the sorted keys.
LAYERS = OrderedDict([("w", nx.eye(2)), ("bias", nx.ones((2, 2)))])


def decays_weight(params):
    return {key: key != "bias" for key in params}


@pytest.mark.parametrize("mask", [decays_weight, {"bias": False, "w": True}])
@pytest.mark.parametrize(
    "make_optimizer",
    [
        lambda mask: optim.adamw(1.0, weight_decay=0.5, mask=mask),
        lambda mask: optim.chain(
            optim.masked(optim.add_decayed_weights(0.5), mask), optim.scale(-1.0)
        ),
        lambda mask: optim.muon(1.0, mask=mask, weight_decay=0.5),
        lambda mask: optim.lamb(1.0, weight_decay=0.5, mask=mask),
    ],
)
def test_masks_are_matched_by_key(make_optimizer, mask):
    optimizer, zeros = make_optimizer(mask), nx.tree.map(nx.zeros_like, LAYERS)
    updates, _ = optimizer.update(zeros, optimizer.init(LAYERS), LAYERS)
    assert nx.all(updates["bias"] == 0).item()
    assert nx.all(nx.take_diagonal(updates["w"]) <= -0.5).item()


@pytest.mark.parametrize(
    ("mask", "reason"),
    [
        ({"w": True, "b": False}, r"got none for \['bias'\] and one for \['b'\]"),
        ({"w": True}, r"got none for \['bias'\]$"),
        ({"w": True, "bias": True, "x": True}, r"got one for \['x'\]$"),
        ([True, False], r"none for \['w'\] and 1 more and one for \[0\]"),
        (True, "one for the whole container"),
        ({"w": {"a": True}, "bias": False}, r"one for \['w'\]\['a'\]"),
        ({"w": np.ones((2, 2), bool), "bias": False}, r"contain booleans; got shape \(2, 2\)"),
    ],
)
@pytest.mark.parametrize("name", ["add_decayed_weights", "masked", "muon"])
def test_masks_with_other_paths_are_rejected(name, mask, reason):
    optimizer = {
        "add_decayed_weights": lambda: optim.add_decayed_weights(0.5, mask),
        "masked": lambda: optim.masked(optim.scale(0.5), mask),
        "muon": lambda: optim.muon(0.1, mask=mask),
    }[name]()
    with pytest.raises(nx.ArgumentError, match=f"{name}: mask: must .*{reason}"):
        optimizer.update(LAYERS, optimizer.init(LAYERS), LAYERS)


def test_a_boolean_for_a_subtree_is_rejected():
    params = {"layer": Layer(nx.ones(2), None)}
    with pytest.raises(nx.ArgumentError, match=r"none for \['layer'\]\.w and one for \['layer'\]$"):
        optim.add_decayed_weights(0.5, {"layer": True}).update(params, (), params)
    decay = optim.add_decayed_weights(0.5, {"layer": Layer(True, None)})
    assert decay.update(params, (), params)[0]["layer"].w.tolist() == [1.5, 1.5]


def test_parameters_must_have_the_structure_of_gradients():
    grads, decay = dict(LAYERS), optim.add_decayed_weights(0.5)
    masked = optim.masked(decay, {"w": True, "bias": True})
    with pytest.raises(nx.ArgumentError, match="must have the structure"):
        masked.update(grads, masked.init(grads), LAYERS)


def test_updates_must_have_parameter_shapes():
    small, large = {"a": [nx.ones(2)]}, {"a": [nx.ones((3, 2))]}
    message = r"\['a'\]\[0\]: must have the shape of its {}, \(2,\); got \({}\)"
    for updates, shape in ((large, "3, 2"), ({"a": [1.0]}, "")):
        match = "apply_updates: updates" + message.format("parameter", shape)
        with pytest.raises(nx.ShapeError, match=match):
            optim.apply_updates(small, updates)
        match = "incremental_update: new_tensors" + message.format("running mean", shape)
        with pytest.raises(nx.ShapeError, match=match):
            optim.incremental_update(updates, small, 0.1)
    assert optim.apply_updates(nx.tensor(1.0), 1.0).item() == 2.0


@pytest.mark.parametrize(
    "optimizer",
    [
        optim.sgd(0.1, 0.9), optim.adam(0.1), optim.adagrad(0.1), optim.rmsprop(0.1),
        optim.lion(0.1), optim.ema(0.9), optim.muon(0.1, mask={"a": True}),
        optim.MultiSteps(optim.sgd(0.1), 2), optim.scale_by_lbfgs(),
        optim.adafactor(0.1), optim.adafactor(0.1, multiply_by_parameter_scale=False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("shape", [(3, 2), ()])
def test_gradients_of_other_shapes_are_rejected(optimizer, shape):
    state = optimizer.init({"a": nx.ones(2)})
    with pytest.raises(nx.ShapeError, match="update: grads"):
        optimizer.update({"a": nx.ones(shape)}, state, {"a": nx.ones(2)})


#: Transformations with a state of their own, by the names in errors.
STATEFUL = {
    "trace": optim.trace(0.9),
    "scale_by_adam": optim.scale_by_adam(),
    "scale_by_lion": optim.scale_by_lion(),
    "scale_by_rss": optim.scale_by_rss(),
    "scale_by_rms": optim.scale_by_rms(centered=True),
    "scale_by_schedule": optim.scale_by_schedule(optim.constant_schedule(0.1)),
    "ema": optim.ema(0.9),
    "MultiSteps": optim.MultiSteps(optim.sgd(0.1), 2),
    "scale_by_lbfgs": optim.scale_by_lbfgs(),
    "scale_by_factored_rms": optim.scale_by_factored_rms(),
    "scale_by_muon": optim.scale_by_muon(),
    "chain": optim.chain(optim.scale_by_adam(), optim.scale(-0.1)),
}


def _kind(state):
    """Return the fields of a state, which some classes share, or the class of another value."""
    return getattr(state, "_fields", type(state))


@pytest.mark.parametrize("name", STATEFUL)
def test_states_of_other_optimizers_are_rejected(name):
    params = {"a": nx.ones((2, 2))}
    others = [3, None, (), *(other.init(params) for other in STATEFUL.values())]
    own = STATEFUL[name].init(params)
    for state in others:
        if _kind(state) != _kind(own):
            with pytest.raises(nx.ArgumentError, match=f"^{name}: state: must "):
                STATEFUL[name].update(params, state, params)
    STATEFUL[name].update(params, own, params)


def test_has_updated_rejects_other_states():
    with pytest.raises(nx.ArgumentError, match=r"^MultiSteps: state: must be a MultiStepsState"):
        STATEFUL["MultiSteps"].has_updated(3)


@pytest.mark.parametrize(
    "name",
    [
        *("trace", "scale_by_adam", "scale_by_lion", "scale_by_rss", "scale_by_rms"),
        *("ema", "MultiSteps", "scale_by_lbfgs", "scale_by_muon"),
    ],
)
def test_states_for_other_parameters_are_rejected(name):
    params, others = {"a": nx.ones((2, 2))}, {"b": nx.ones((2, 2))}
    state = STATEFUL[name].init(others)
    with pytest.raises(nx.ArgumentError, match=r"^update: grads: must have the structure of"):
        STATEFUL[name].update(params, state, params)


@pytest.mark.parametrize(
    "transform",
    [
        optim.add_decayed_weights(0.1),
        optim.scale_by_trust_ratio(),
        optim.scale_by_param_block_rms(),
    ],
)
def test_gradients_must_have_parameter_shapes(transform):
    with pytest.raises(
        nx.ShapeError, match=r"update: grads\['a'\]: must have the shape of its par"
    ):
        transform.update({"a": nx.ones(2)}, (), {"a": nx.ones((3, 2))})
