"""Optimizers of narrow parameters compared with formulas in f64, and gradients of any size."""

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


OPTIMISERS = {
    "adam": (optim.adam(RATE), adam),
    "adam with a schedule": (optim.adam(optim.constant_schedule(RATE)), adam),
    "adamw": (optim.adamw(RATE, weight_decay=0.25), lambda grads: adam(grads, decay=0.25)),
    "rmsprop": (optim.rmsprop(RATE), rmsprop),
    "adagrad": (optim.adagrad(RATE), adagrad),
    "lion": (optim.lion(RATE), lion),
    "momentum": (optim.sgd(RATE, 0.9, nesterov=True), momentum),
}


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("name", OPTIMISERS)
def test_updates_are_those_of_the_formulas(compiler, name, dtype):
    optimizer, formula = OPTIMISERS[name]
    params = nx.tensor(PARAMS, dtype=dtype)
    grads = [nx.tensor(g, dtype=dtype) for g in GRADS]
    known = [np.asarray(nx.astype(g, "f64")) for g in grads]
    step = nx.jit(optimizer.update, compiler=compiler)
    state = optimizer.init(params)
    dtypes = [leaf.dtype for leaf in nx.tree.leaves(state)]
    wide = dtype if dtype == "f64" else "f32"
    assert {str(d) for d in dtypes} <= {wide, "s32"}
    for g, wanted in zip(grads, formula(known), strict=True):
        updates, state = step(g, state, params)
        assert updates.dtype == dtype
        assert [leaf.dtype for leaf in nx.tree.leaves(state)] == dtypes
        close = {"f16": 2e-3, "bf16": 1e-2, "f32": 2e-5, "f64": 1e-12}[dtype]
        # The smallest numbers of f16 are 6e-8 apart.
        np.testing.assert_allclose(
            np.asarray(nx.astype(updates, "f64")), wanted, rtol=close, atol=1e-7
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
    wanted = direction / np.linalg.norm(direction) * max_norm
    close = {"f16": 2e-3, "bf16": 1e-2}.get(dtype, 1e-5)
    np.testing.assert_allclose(found, wanted, rtol=close)
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


def test_gradients_that_are_not_finite_are_not_hidden():
    clip = optim.clip_by_global_norm(1.0)
    assert np.isnan(np.asarray(clip.update(nx.tensor([np.nan, 1.0]), ())[0])).all()
    assert optim.global_norm(nx.tensor([np.inf, 1.0])).item() == np.inf
    assert np.isnan(optim.global_norm(nx.tensor([np.nan, 1.0])).item())


ALL_OPTIMIZERS = ("adafactor", "adagrad", "adam", "adamw", "lamb", "lion", "muon", "rmsprop", "sgd")


@pytest.mark.parametrize("name", ALL_OPTIMIZERS)
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (2, 0, 3)])
def test_parameters_may_be_empty(name, shape):
    params = {"empty": nx.ones(shape), "full": nx.ones((2, 3))}
    optimizer = getattr(optim, name)(0.1)
    updates, _ = optimizer.update(params, optimizer.init(params), params)
    assert updates["empty"].shape == shape
    assert nx.all(nx.isfinite(updates["full"]))
