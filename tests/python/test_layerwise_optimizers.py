"""Layer-wise optimizers and wrappers of gradient transformations, against formulas in f64."""

import itertools

import numpy as np
import pytest

import nxla as nx

optim = nx.optim
RNG = np.random.default_rng(0)
W, B = RNG.normal(size=(6, 4)), RNG.normal(size=4)
GRADS = [(RNG.normal(size=(6, 4)), RNG.normal(size=4)) for _ in range(4)]
RATE = 0.05


def run(optimizer, compiler, dtype="f64", grads=GRADS):
    """Return the updates of each step, with changing parameters."""
    params = {"b": nx.tensor(B, dtype=dtype), "w": nx.tensor(W, dtype=dtype)}

    @nx.jit(compiler=compiler)
    def step(params, state, grads):
        updates, state = optimizer.update(grads, state, params)
        return updates, optim.apply_updates(params, updates), state

    state, found = optimizer.init(params), []
    for w, b in grads:
        slopes = {"b": nx.tensor(b, dtype=dtype), "w": nx.tensor(w, dtype=dtype)}
        updates, params, state = step(params, state, slopes)
        assert updates["w"].dtype == dtype
        found.append([np.asarray(nx.astype(updates[name], "f64")) for name in "wb"])
    return found


def adam_steps(grads, b1=0.9, b2=0.999, eps=1e-8):
    m = v = 0.0
    for step, g in enumerate(grads, 1):
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g**2
        yield m / (1 - b1**step) / (np.sqrt(v / (1 - b2**step)) + eps)


def lamb(param, grads):
    for update in adam_steps(grads, eps=1e-6):
        decayed = update + 0.1 * param
        step = -RATE * decayed * np.linalg.norm(param) / np.linalg.norm(decayed)
        param = param + step
        yield step


def adafactor(param, grads):
    rows = columns = squares = 0.0
    for step, g in enumerate(grads, 1):
        decay = 1 - step**-0.8
        if g.ndim == 2:
            rows = decay * rows + (1 - decay) * (g**2 + 1e-30).mean(axis=0)
            columns = decay * columns + (1 - decay) * (g**2 + 1e-30).mean(axis=1)
            # The estimated mean of squares is the outer product of row and column means.
            update = g / np.sqrt(np.outer(columns, rows) / rows.mean())
        else:
            squares = decay * squares + (1 - decay) * (g**2 + 1e-30)
            update = g / np.sqrt(squares)
        update = update / max(1.0, np.sqrt(np.mean(update**2)))
        update = -RATE * update * max(np.sqrt(np.mean(param**2)), 1e-3)
        param = param + update
        yield update


def muon(param, grads):
    if param.ndim < 2:
        m = v = 0.0
        for step, g in enumerate(grads, 1):
            m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
            ahead = 0.9 * m / (1 - 0.9 ** (step + 1)) + 0.1 * g / (1 - 0.9**step)
            yield -RATE * ahead / (np.sqrt(v / (1 - 0.999**step)) + 1e-8)
        return
    m = 0.0
    for step, g in enumerate(grads, 1):
        m = 0.95 * m + 0.05 * g
        x = 0.95 * m / (1 - 0.95 ** (step + 1)) + 0.05 * g / (1 - 0.95**step)
        left, singular, right = np.linalg.svd(x, full_matrices=False)
        singular = singular / np.linalg.norm(singular)
        for _ in range(5):  # The iteration changes only the singular values.
            singular = 3.4445 * singular - 4.775 * singular**3 + 2.0315 * singular**5
        yield -RATE * (left * singular) @ right * np.sqrt(max(1.0, param.shape[1] / param.shape[0]))


OPTIMIZERS = {
    "lamb": (optim.lamb(RATE, weight_decay=0.1), lamb),
    "adafactor": (optim.adafactor(RATE, min_dim_size_to_factor=4), adafactor),
    "muon": (optim.muon(RATE), muon),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("dtype", ["f64", "f32", "bf16"])
def test_optimizers_match_formulas(compiler, name, dtype):
    optimizer, formula = OPTIMIZERS[name]
    found = run(optimizer, compiler, dtype)
    narrow = lambda x: np.asarray(nx.astype(nx.tensor(x, dtype=dtype), "f64"))  # noqa: E731
    rtol = {"f64": 1e-7, "f32": 1e-4, "bf16": 0.1}[dtype]
    for k, param in enumerate((W, B)):
        expected = list(formula(narrow(param), [narrow(pair[k]) for pair in GRADS]))
        for left, right in zip(found, expected, strict=True):
            np.testing.assert_allclose(left[k], right, rtol=rtol, atol=rtol * np.abs(right).max())


def test_states_of_narrow_parameters_are_float32():
    params = {"w": nx.ones((4, 4), dtype="bf16"), "b": nx.ones(4, dtype="f16")}
    for optimizer in (
        *(pair[0] for pair in OPTIMIZERS.values()), optim.ema(0.9), optim.lbfgs(0.1),
        optim.MultiSteps(optim.adam(0.1), 2),
        optim.masked(optim.adam(0.1), {"w": True, "b": False}),
    ):  # fmt: skip
        state = optimizer.init(params)
        updates, next_state = optimizer.update(nx.tree.map(nx.ones_like, params), state, params)
        assert [x.dtype for x in nx.tree.leaves(updates)] == ["f16", "bf16"]
        for leaves in (nx.tree.leaves(state), nx.tree.leaves(next_state)):
            assert {str(x.dtype) for x in leaves} <= {"f32", "s32"}


def test_large_adafactor_states_are_rows_and_columns():
    state = optim.adafactor(RATE).init(nx.ones((256, 2, 300)))
    assert sorted(x.size for x in nx.tree.leaves(state)) == [1, 512, 600]


def test_trust_ratios_of_zeros_are_one():
    trust = optim.scale_by_trust_ratio()
    assert trust.update(nx.ones(2), (), nx.zeros(2))[0].tolist() == [1.0, 1.0]
    assert trust.update(nx.zeros(2), (), nx.ones(2))[0].tolist() == [0.0, 0.0]
    with pytest.raises(nx.ArgumentError, match="scale_by_trust_ratio: params: must be passed"):
        trust.update(nx.ones(2), ())


@pytest.mark.parametrize("debias", [True, False])
def test_ema(compiler, debias):
    found = run(optim.ema(0.75, debias), compiler)
    mean = 0.0
    for step, ((w, _), pair) in enumerate(zip(GRADS, found, strict=True), 1):
        mean = 0.75 * mean + 0.25 * w
        np.testing.assert_allclose(pair[0], mean / (1 - 0.75**step if debias else 1), rtol=1e-6)


@pytest.mark.parametrize("use_grad_mean", [True, False])
def test_multi_steps_are_steps_of_a_larger_batch(compiler, use_grad_mean):
    grads = [*GRADS, *GRADS[::-1]]
    found = run(optim.MultiSteps(optim.adam(RATE), 4, use_grad_mean), compiler, grads=grads)
    for k in range(2):
        sums = [sum(pair[k] for pair in grads[i : i + 4]) for i in (0, 4)]
        expected = adam_steps([total / 4 if use_grad_mean else total for total in sums])
        for step, update in enumerate(found):
            if step % 4 == 3:
                np.testing.assert_allclose(update[k], -RATE * next(expected), rtol=1e-5)
            else:
                assert np.all(update[k] == 0.0)


def test_multi_steps_by_a_schedule():
    optimizer = optim.MultiSteps(optim.sgd(1.0), lambda updates: updates + 1)
    state, done = optimizer.init(nx.tensor(0.0)), []
    for _ in range(6):
        update, state = optimizer.update(nx.tensor(2.0), state)
        done.append(update.item())
        assert optimizer.has_updated(state).item() == (done[-1] != 0.0)
    assert done == [-2.0, 0.0, -2.0, 0.0, 0.0, -2.0]
    with pytest.raises(nx.ArgumentError, match="MultiSteps: every_k_schedule: must be at least 1"):
        optim.MultiSteps(optim.sgd(1.0), 0)


@pytest.mark.parametrize("mask", [{"w": True, "b": False}, lambda tree: {"w": True, "b": False}])
def test_masked(compiler, mask):
    found = run(optim.masked(optim.adam(RATE), mask), compiler)
    expected = adam_steps([w for w, _ in GRADS])
    for (w, b), (_, slope) in zip(found, GRADS, strict=True):
        np.testing.assert_allclose(w, -RATE * next(expected), rtol=1e-5)
        np.testing.assert_array_equal(b, slope)
    with pytest.raises(nx.ArgumentError, match="masked: mask: must have a boolean for each of 2"):
        optim.masked(optim.adam(RATE), [True]).init({"w": nx.ones(2), "b": nx.ones(2)})


def test_incremental_update():
    means = optim.incremental_update({"w": nx.ones(2)}, {"w": nx.zeros(2, dtype="f16")}, 0.25)
    assert means["w"].tolist() == [0.25, 0.25]
    assert means["w"].dtype == "f16"


A = np.diag([1.0, 10.0, 100.0, 3.0, 0.5])


def rosenbrock(w):
    return nx.sum(100.0 * (w[1:] - w[:-1] ** 2) ** 2 + (1.0 - w[:-1]) ** 2)


def test_lbfgs_minimizes(compiler):
    optimizer = optim.lbfgs()

    @nx.jit(compiler=compiler)
    def step(w, state):
        value, slopes = nx.value_and_grad(rosenbrock)(w)
        updates, state = optimizer.update(slopes, state, w, value=value, value_fn=rosenbrock)
        return optim.apply_updates(w, updates), state, value

    w = nx.tensor([-1.2, 1.0, -1.2, 1.0], dtype="f64")
    state, values = optimizer.init(w), []
    for _ in range(80):
        w, state, value = step(w, state)
        values.append(value.item())
    # The line search never accepts a larger value.
    assert all(after <= before for before, after in itertools.pairwise(values))
    np.testing.assert_allclose(w.numpy(), 1.0, atol=1e-8)


def test_lbfgs_direction_is_that_of_the_dense_update(compiler):
    """The two-loop recursion is the inverse BFGS update of as many steps as the memory has."""
    optimizer = optim.scale_by_lbfgs(memory_size=2)
    points = RNG.normal(size=(4, 5))
    state = optimizer.init(nx.tensor(points[0]))
    with nx.default_options(compiler=compiler):
        for point in points:
            found, state = optimizer.update(nx.tensor(A @ point), state, nx.tensor(point))
    inverse = None
    for before, after in ((1, 2), (2, 3)):
        s = points[after] - points[before]
        y = A @ s
        if inverse is None:
            last = points[3] - points[2]
            inverse = np.eye(5) * (last @ A @ last) / (A @ last @ A @ last)
        left = np.eye(5) - np.outer(s, y) / (s @ y)
        inverse = left @ inverse @ left.T + np.outer(s, s) / (s @ y)
    np.testing.assert_allclose(found.numpy(), inverse @ A @ points[3], rtol=1e-9)


def test_errors_of_lbfgs():
    optimizer = optim.lbfgs()
    state = optimizer.init(nx.ones(2))
    with pytest.raises(nx.ArgumentError, match="lbfgs: value, value_fn: must be passed to update"):
        optimizer.update(nx.ones(2), state, nx.ones(2))
    with pytest.raises(nx.ArgumentError, match=r"^lbfgs: params: must be passed"):
        optimizer.update(nx.ones(2), state)
    with pytest.raises(nx.ArgumentError, match=r"^lbfgs: memory_size: must be at least 1"):
        optim.lbfgs(memory_size=0)


def test_norms_do_not_overflow_or_underflow(compiler):
    trust = nx.jit(optim.scale_by_trust_ratio().update, compiler=compiler)
    muon = optim.scale_by_muon(nesterov=False)
    lbfgs = optim.scale_by_lbfgs()
    for scale in (1e30, 1e-30):
        w = scale * nx.tensor([3.0, 4.0])
        found, _ = trust(w[::-1], (), w)
        np.testing.assert_allclose(found.numpy() / scale, [4.0, 3.0], rtol=1e-6)
    with nx.default_options(compiler=compiler):
        expected, _ = muon.update(nx.eye(2), muon.init(nx.eye(2)))
        found, _ = muon.update(1e25 * nx.eye(2), muon.init(nx.eye(2)))
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-4)
        # The first step of L-BFGS has the norm 1.
        w = nx.zeros(2)
        found, _ = lbfgs.update(1e30 * nx.tensor([3.0, 4.0]), lbfgs.init(w), w)
        np.testing.assert_allclose(found.numpy(), [0.6, 0.8], rtol=1e-6)


def test_eager_multi_steps_runs_one_branch():
    calls = []

    def update(grads, state, params=None):
        calls.append(params)
        return grads, state

    optimizer = optim.MultiSteps(optim.GradientTransformation(lambda _: (), update), 3)
    state = optimizer.init(nx.zeros(2))
    for step in range(1, 7):
        updates, state = optimizer.update(nx.ones(2), state)
        assert len(calls) == step // 3
        assert updates.tolist() == [float(step % 3 == 0)] * 2
    # Entries of a vectorized step select different branches.
    many = optim.MultiSteps(optim.sgd(1.0), lambda _: nx.vectorize(nx.tensor([1, 2]), "entry"))
    updates, _ = many.update(nx.tensor(2.0), many.init(nx.tensor(0.0)))
    assert nx.devectorize(updates).tolist() == [-2.0, 0.0]


@pytest.mark.parametrize("wrap", [lambda f: f, nx.jit])
def test_infinite_gradients_do_not_reach_the_next_multi_step(wrap):
    optimizer = optim.MultiSteps(optim.sgd(1.0), 2)
    state, update = optimizer.init(nx.tensor(0.0)), wrap(optimizer.update)
    found = []
    for g in (1.0, float("inf"), 2.0, 4.0):
        updates, state = update(nx.tensor(g), state)
        found.append(updates.item())
    assert not np.isfinite(found[1])
    assert found[2:] == [0.0, -3.0]


def test_errors_of_masks_and_missing_parameters():
    params = [nx.eye(2), nx.ones(2)]
    with pytest.raises(nx.ArgumentError, match="muon: mask: must have a boolean for each of 2"):
        optim.muon(0.1, mask=[True]).init(params)
    with pytest.raises(nx.ArgumentError, match="masked: mask: must have a boolean for each of 2"):
        optim.masked(optim.scale(1.0), [True]).init(params)
    for mask in ([True], [True, False, True]):
        decay = optim.add_decayed_weights(0.1, mask)
        with pytest.raises(nx.ArgumentError, match="add_decayed_weights: mask: must have a bool"):
            decay.update(params, decay.init(params), params)
    for name in ("scale_by_trust_ratio", "scale_by_param_block_rms"):
        with pytest.raises(nx.ArgumentError, match=f"{name}: params: must be passed to update"):
            getattr(optim, name)().update(params, ())


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (lambda: optim.lamb(lr=0.1), "in nxla it is learning_rate="),
        (lambda: optim.lbfgs(lr=0.1), "in nxla it is learning_rate="),
        (lambda: optim.ema(0.9, debiased=True), "did you mean debias="),
    ],
)
def test_misspelled_arguments_have_hints(call, hint):
    with pytest.raises(TypeError, match=hint):
        call()
