"""Programs of a new user on each compiler, compared with closed forms, NumPy and JAX."""

from pathlib import Path

import numpy as np
import pytest

import nxla as nx
from where import PLATFORM

PROGRAMS = Path(__file__).with_name("programs")


@pytest.fixture(autouse=True)
def default_compiler(compiler):
    """Run each program on each compiler."""
    with nx.default_options(compiler=compiler):
        yield


# --- a convolutional network with checkpoints ---


def stripes(seed, count):
    """Return noisy images of vertical and horizontal stripes, with their labels."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, count)
    waves = np.sin(np.arange(8) * np.pi / 2 + rng.uniform(0, 2 * np.pi, (count, 1)))
    images = np.where(labels[:, None, None], waves[:, :, None], waves[:, None, :])
    images = images + 0.3 * rng.normal(size=images.shape)
    return images[:, None].astype("f4"), labels


def classify(params, images):
    x = nx.nn.relu(nx.conv(images, params["kernel"], padding="same"))
    x = nx.nn.avg_pool(x, 4)
    return nx.flatten(x, axes=(1, 2, 3)) @ params["w"] + params["b"]


def classification_loss(params, images, labels):
    logits = classify(params, images)
    return nx.mean(nx.nn.softmax_cross_entropy_with_integer_labels(logits, labels))


@nx.jit
def start_training(key):
    keys, he = nx.random.split(key, 3), nx.nn.initializers.he_normal()
    kernel, w = he(keys[0], (6, 1, 3, 3)), he(keys[1], (24, 2))
    params = {"kernel": kernel, "w": w, "b": nx.zeros(2)}
    return {"params": params, "optimizer": nx.optim.adam(0.02).init(params), "key": keys[2]}


@nx.jit
def train_on_batch(state, images, labels):
    key, batch_key = nx.random.split(state["key"])
    rows = nx.random.randint_split(batch_key, (32,), 0, len(images))
    slopes = nx.grad(classification_loss)(state["params"], images[rows], labels[rows])
    updates, optimizer = nx.optim.adam(0.02).update(slopes, state["optimizer"])
    params = nx.optim.apply_updates(state["params"], updates)
    return {"params": params, "optimizer": optimizer, "key": key}


def classify_in_numpy(params, images):
    kernel, w, b = (np.asarray(params[name]) for name in ("kernel", "w", "b"))
    padded = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    x = np.maximum(np.einsum("nchwij,ocij->nohw", windows, kernel), 0)
    x = x.reshape(len(images), -1, 2, 4, 2, 4).mean(axis=(3, 5))
    return x.reshape(len(images), -1) @ w + b


def test_a_convolutional_network_continues_from_a_checkpoint(tmp_path):
    images, labels = stripes(0, 200)
    state = start_training(nx.random.key(0))
    for _ in range(15):
        state = train_on_batch(state, images, labels)
    nx.save(tmp_path / "checkpoint.nxla", state)
    loaded = nx.load(tmp_path / "checkpoint.nxla")
    for _ in range(15):
        state = train_on_batch(state, images, labels)
        loaded = train_on_batch(loaded, images, labels)
    leaves, structure = nx.tree.flatten(state)
    continued, continued_structure = nx.tree.flatten(loaded)
    assert structure == continued_structure
    for x, y in zip(leaves, continued, strict=True):
        # Convolutions on a GPU add in an order that changes from run to run.
        tolerance = 0.0 if PLATFORM == "cpu" else 1e-4
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=tolerance, atol=tolerance)
    images, labels = stripes(1, 100)
    logits = np.asarray(nx.jit(classify)(loaded["params"], images))
    expected = classify_in_numpy(loaded["params"], images)
    np.testing.assert_allclose(logits, expected, rtol=1e-4, atol=1e-4)
    assert np.mean(logits.argmax(axis=1) == labels) > 0.9


# --- a transformer that was written for JAX ---

#: The lines that change, by their text in the program for JAX.
PORT = {
    "import jax": "import nxla as jax",
    "import jax.numpy as jnp": "import nxla as jnp",
    "from jax import lax, nn, random": "import nxla as lax; from nxla import nn, random",
    "    return scale * random.normal(key, shape)": (
        "    return scale * random.normal_split(key, shape)"
    ),
    '    q, k, v = jnp.split(x @ p["qkv"], 3, axis=-1)': (
        '    q, k, v = jnp.split(x @ p["qkv"], sections=3, axis=-1)'
    ),
}

#: The losses of the program with JAX 0.10.2 on a CPU, with `jax_threefry_partitionable=False`.
LOSSES = [
    *(3.000615, 2.839852, 2.715926, 2.602219, 2.487126, 2.374035, 2.266297, 2.160693, 2.055892),
    *(1.952209, 1.85277, 1.77825, 1.796227, 1.801261, 1.697404, 1.453801, 1.319878, 1.229184),
    *(1.147075, 1.069962),
]


def test_a_transformer_for_jax_needs_few_changes():
    lines = (PROGRAMS / "transformer_jax.py").read_text(encoding="utf-8").splitlines()
    assert all(lines.count(line) == 1 for line in PORT)
    assert len(PORT) <= 6
    assert len(lines) >= 74
    ported = {}
    text = "\n".join(PORT.get(line, line) for line in lines)
    exec(compile(text, "transformer_nxla.py", "exec"), ported)
    np.testing.assert_allclose(ported["run"](), LOSSES, rtol=2e-4)


# --- Hamiltonian Monte Carlo ---


def sample_posterior(key, x, y, precision, noise, draws=400, steps=8, size=0.08):
    """Sample the weights of a Bayesian linear regression by one chain."""

    def energy(w):
        return 0.5 * precision * nx.sum(w**2) + 0.5 * nx.sum((y - x @ w) ** 2) / noise**2

    force = nx.grad(energy)

    def leapfrog(_, state):
        w, p = state
        p = p - 0.5 * size * force(w)
        w = w + size * p
        return w, p - 0.5 * size * force(w)

    def draw(w, key):
        momentum_key, accept_key = nx.random.split(key)
        p = nx.random.normal_split(momentum_key, w.shape)
        new, new_p = nx.fori(0, steps, leapfrog, (w, p))
        change = energy(w) + 0.5 * nx.sum(p**2) - energy(new) - 0.5 * nx.sum(new_p**2)
        accepted = nx.log(nx.random.uniform_split(accept_key)) < change
        w = nx.where(accepted, new, w)
        return w, (w, accepted)

    _, (samples, accepted) = nx.scan(draw, nx.zeros(x.shape[1]), nx.random.split(key, draws))
    return samples, nx.mean(accepted)


def test_hamiltonian_monte_carlo_finds_the_moments_of_a_posterior():
    rng = np.random.default_rng(0)
    x, precision, noise = rng.normal(size=(20, 2)), 1.0, 0.8
    y = x @ np.array([1.0, -0.5]) + noise * rng.normal(size=20)
    keys = nx.random.split(nx.random.key(1), 16)
    data = x.astype("f4"), y.astype("f4")
    chains = nx.vmap(
        lambda key, x, y: sample_posterior(key, x, y, precision, noise), (0, None, None)
    )
    samples, rates = nx.jit(chains)(keys, *data)
    assert np.min(rates) > 0.8
    samples = np.asarray(samples)[:, 50:].reshape(-1, 2)
    covariance = np.linalg.inv(precision * np.eye(2) + x.T @ x / noise**2)
    mean = covariance @ x.T @ y / noise**2
    np.testing.assert_allclose(samples.mean(axis=0), mean, atol=0.02)
    np.testing.assert_allclose(np.cov(samples.T), covariance, atol=0.006)


# --- a differential equation that is fitted to data ---


def grow(params, start, dt, steps):
    """Solve the logistic equation by the classical method of Runge and Kutta."""

    def slope(y):
        return params["rate"] * y * (1.0 - y / params["capacity"])

    def step(y, _):
        k1 = slope(y)
        k2 = slope(y + 0.5 * dt * k1)
        k3 = slope(y + 0.5 * dt * k2)
        k4 = slope(y + dt * k3)
        y = y + dt / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        return y, y

    return nx.scan(step, start, length=steps)[1]


def test_a_gradient_fits_the_parameters_of_a_differential_equation():
    dt, steps, rate, capacity, start = 0.2, 40, 1.3, 2.5, 0.1
    t = dt * np.arange(1, steps + 1)
    data = (capacity / (1 + (capacity / start - 1) * np.exp(-rate * t))).astype("f4")
    optimizer = nx.optim.adam(nx.optim.cosine_decay_schedule(0.05, 300))

    def loss(params, data):
        return nx.mean((grow(params, nx.tensor(start), dt, steps) - data) ** 2)

    @nx.jit
    def fit(params, data):
        def step(_, state):
            params, moments = state
            updates, moments = optimizer.update(nx.grad(loss)(params, data), moments)
            return nx.optim.apply_updates(params, updates), moments

        return nx.fori(0, 300, step, (params, optimizer.init(params)))[0]

    fitted = fit({"rate": nx.tensor(1.0), "capacity": nx.tensor(2.0)}, data)
    assert fitted["rate"].item() == pytest.approx(rate, abs=2e-3)
    assert fitted["capacity"].item() == pytest.approx(capacity, abs=2e-3)


# --- an ensemble by vmap ---


def fit_ridge(penalty, rows, x, y):
    """Fit a ridge regression to some rows by gradient descent."""

    def loss(w):
        return nx.sum((x[rows] @ w - y[rows]) ** 2) + penalty * nx.sum(w**2)

    return nx.fori(0, 300, lambda _, w: w - 0.01 * nx.grad(loss)(w), nx.zeros(x.shape[1]))


def test_vmap_trains_an_ensemble():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 3)).astype("f4")
    y = (x @ [1.0, -2.0, 0.5] + 0.1 * rng.normal(size=30)).astype("f4")
    penalties = np.linspace(0.5, 3.0, 5, dtype="f4")
    rows = rng.integers(0, 30, (5, 20))
    train = nx.vmap(fit_ridge, in_axes=(0, 0, None, None))
    weights = np.asarray(nx.jit(train)(penalties, rows, x, y))
    for penalty, sample, found in zip(penalties, rows, weights, strict=True):
        a, b = x[sample].astype("f8"), y[sample].astype("f8")
        expected = np.linalg.solve(a.T @ a + penalty * np.eye(3), a.T @ b)
        np.testing.assert_allclose(found, expected, atol=1e-4)


# --- a stream ---


def smooth(batch, state):
    """Smooth the rows of a batch exponentially; the state is the last smoothed row."""

    def step(state, row):
        state = 0.8 * state + 0.2 * row
        return state, state

    last, rows = nx.scan(step, state, batch)
    return rows, last


def test_a_stream_smooths_a_signal():
    signal = np.random.default_rng(0).normal(size=(27, 3)).astype("f4")
    batches = [signal[begin : begin + 8] for begin in range(0, len(signal), 8)]
    with nx.stream(smooth, nx.template((8, 3), "f32"), nx.zeros(3)) as stream:
        results = [np.asarray(rows) for rows in stream.over(batches, partial="pad")]
    assert [len(rows) for rows in results] == [8, 8, 8, 3]
    state, expected = np.zeros(3), []
    for row in signal:
        state = 0.8 * state + 0.2 * row
        expected.append(state)
    np.testing.assert_allclose(np.concatenate(results), expected, atol=1e-6)


# --- stages on Dask ---


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    with distributed.Client(processes=False, dashboard_address=None) as client:
        yield client


def update_layers(layers, x, y):
    def loss(layers):
        hidden = nx.tanh(x @ layers[0])
        return nx.sum((hidden @ layers[1] - y) ** 2)

    slopes = nx.grad(loss)(layers)
    return [w - 0.1 * slope for w, slope in zip(layers, slopes, strict=True)]


def test_dask_runs_the_stages_of_a_training_step(client, compiler):
    rng = np.random.default_rng(0)
    shapes = [(3, 5), (5, 2), (6, 3), (6, 2)]
    first, second, x, y = (rng.normal(size=shape).astype("f4") for shape in shapes)
    arguments = [first, second], x, y
    expression = nx.debug_expr(update_layers)(*arguments)
    stages = nx.graph.split(expression, nx.graph.Policy.every_ops(4))
    assert len(stages) > 2
    found = nx.graph.run(stages, *arguments, executor=client, compiler=compiler)
    hidden = np.tanh(x @ first)
    error = 2 * (hidden @ second - y)
    slope_of_first = x.T @ ((error @ second.T) * (1 - hidden**2))
    np.testing.assert_allclose(found[0], first - 0.1 * slope_of_first, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found[1], second - 0.1 * hidden.T @ error, rtol=1e-4, atol=1e-4)
