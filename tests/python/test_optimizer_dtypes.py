"""Every transformation of `nx.optim`: dtypes of updates and states for any hyperparameters, and
axis names, complex gradients and special steps."""

import inspect

import numpy as np
import pytest

import nxla as nx

optim = nx.optim
GRADS = {"v": np.array([[1.0, -2.0]]), "w": np.array([[0.5, 1.0], [2.0, -1.0]])}
PARAMS = {"v": np.array([[0.5, 1.0]]), "w": np.array([[1.0, 2.0], [3.0, 4.0]])}
#: The values of parameters without a numeric default.
VALUES = {
    "momentum": 0.9,
    "clipping_threshold": 1.0,
    "weight_decay_rate": 0.1,
    "learning_rate": 0.1,
}


def transformations():
    """Return all functions that return a transformation of gradients."""
    functions = {name: getattr(optim, name) for name in optim.__all__}
    return {
        name: function
        for name, function in functions.items()
        if inspect.isfunction(function)
        and inspect.signature(function).return_annotation == "GradientTransformation"
        and name not in ("chain", "identity", "masked")
    }


def float_hyperparameters(function):
    """Return the hyperparameters of a function that are floats, with values."""
    found = {}
    for name, parameter in inspect.signature(function).parameters.items():
        kind = str(parameter.annotation)
        if kind == "Schedule":
            found[name] = 0.1
        elif "float" in kind and not kind.startswith("tuple"):
            default = parameter.default
            found[name] = default if isinstance(default, float) else VALUES.get(name, 0.1)
    return found


def required_arguments(function):
    """Return the smallest arguments of a function."""
    known = inspect.signature(function).parameters
    return {
        name: value
        for name, value in float_hyperparameters(function).items()
        if known[name].default is inspect.Parameter.empty or name in ("momentum", "learning_rate")
    }


def as_argument(name, value):
    return optim.constant_schedule(value) if name == "step_size_fn" else value


def cases():
    for name, function in transformations().items():
        hyperparameters = float_hyperparameters(function)
        options = [{}]
        options += [{"centered": True}] * ("centered" in inspect.signature(function).parameters)
        for number in hyperparameters:
            for extra_options in options:
                yield pytest.param(
                    name, [number], extra_options, id=f"{name}-{number}-{extra_options}"
                )
        yield pytest.param(name, list(hyperparameters), options[-1], id=f"{name}-all")


def container(arrays, dtype):
    return {name: nx.tensor(array, dtype=dtype) for name, array in arrays.items()}


def dtypes(values):
    return [leaf.dtype for leaf in nx.tree.leaves(values)]


def line_search_arguments(transformation):
    """Return the arguments of a line search if a transformation takes them."""
    if "value_fn" not in inspect.signature(transformation.update).parameters:
        return {}
    return {"value": 1.0, "value_fn": lambda params: nx.sum(params["w"] ** 2)}


def check_dtypes(transformation, params, grads):
    """Check that two steps return the dtypes of the gradients and of the first state."""
    state = transformation.init(params)
    known = dtypes(state)
    for _ in range(2):
        updates, state = transformation.update(
            grads, state, params, **line_search_arguments(transformation)
        )
        assert dtypes(updates) == dtypes(grads)
        assert dtypes(state) == known


def test_transformations_are_discovered():
    found = transformations()
    assert len(found) >= 24
    assert {"adam", "lbfgs", "adafactor", "muon", "ema", "scale_by_schedule"} <= set(found)


@pytest.mark.parametrize(("name", "wide", "options"), list(cases()))
def test_numpy_hyperparameters_do_not_change_dtypes(name, wide, options):
    function = getattr(optim, name)
    values = {
        **required_arguments(function),
        **{number: float_hyperparameters(function)[number] for number in wide},
    }
    arguments = {
        number: as_argument(number, np.float64(value) if number in wide else value)
        for number, value in values.items()
    }
    transformation = function(**arguments, **options)
    check_dtypes(transformation, container(PARAMS, "f32"), container(GRADS, "f32"))


@pytest.mark.parametrize("name", list(transformations()))
@pytest.mark.parametrize("dtype", ["f16", "bf16", "f64"])
def test_gradients_of_another_dtype_do_not_change_the_state(name, dtype):
    function = getattr(optim, name)
    arguments = {
        number: as_argument(number, value) for number, value in required_arguments(function).items()
    }
    check_dtypes(function(**arguments), container(PARAMS, "f32"), container(GRADS, dtype))


@pytest.mark.parametrize("name", ["adam", "rmsprop", "adafactor", "adagrad", "lion", "sgd"])
def test_scan_carries_the_optimizer_state(name):
    function = getattr(optim, name)
    transformation = function(**{n: np.float64(x) for n, x in required_arguments(function).items()})
    params, grads = container(PARAMS, "f32"), container(GRADS, "f32")

    def step(carry, _):
        params, state = carry
        updates, state = transformation.update(grads, state, params)
        return (optim.apply_updates(params, updates), state), None

    (after, _), _ = nx.scan(step, (params, transformation.init(params)), None, length=3)
    assert dtypes(after) == dtypes(params)


def test_numpy_learning_rate_is_traced_once():
    optimizer, traces = optim.adam(np.float64(0.1), b1=np.float64(0.9)), []

    @nx.jit
    def step(params, state):
        traces.append(None)
        updates, state = optimizer.update(params, state, params)
        return optim.apply_updates(params, updates), state

    params = container(PARAMS, "f32")
    state = optimizer.init(params)
    for _ in range(3):
        params, state = step(params, state)
    assert len(traces) == 1


@pytest.mark.parametrize("dtype", ["s32", "u8"])
def test_updates_of_integers_are_not_rounded(dtype):
    grads = nx.tensor([1, 2], dtype=dtype)
    for optimizer in (optim.sgd(0.25, momentum=0.5), optim.adam(0.25), optim.adagrad(0.25)):
        state = optimizer.init(grads)
        updates, next_state = optimizer.update(grads, state, grads)
        assert updates.dtype == "f32"
        assert nx.all(updates < 0).item()
        assert dtypes(next_state) == dtypes(state)


@pytest.mark.parametrize(
    "optimizer",
    [
        optim.rmsprop(0.1, centered=True),
        optim.scale_by_rms(centered=True),
        optim.rmsprop(0.1, centered=True, eps_in_sqrt=False),
    ],
)
def test_centered_rms_of_constant_gradients_is_finite(optimizer, compiler):
    grads = nx.tensor([1526.8623046875, 3.3, -0.7])
    step, state = nx.jit(optimizer.update, compiler=compiler), optimizer.init(grads)
    for _ in range(160):
        updates, state = step(grads, state)
        assert np.isfinite(np.asarray(updates)).all()


@pytest.mark.parametrize("dtype", ["c64", "c128"])
@pytest.mark.parametrize(
    "name", ["adam", "adamw", "adagrad", "rmsprop", "sgd", "lamb", "adafactor"]
)
def test_complex_gradients_are_scaled_by_real_squares(name, dtype):
    function = getattr(optim, name)
    variants = [{"centered": True}, {}] if name == "rmsprop" else [{}]
    for options in variants:
        optimizer = function(0.1, **options)
        grads = nx.tensor([1 + 2j, -2j, 3.0], dtype=dtype)
        params = nx.tensor([1.0, 1.0, 1.0], dtype=dtype)
        state = optimizer.init(params)
        updates, next_state = optimizer.update(grads, state, params)
        assert dtypes(next_state) == dtypes(state)
        assert updates.dtype == dtype
        if name != "adamw":  # The weight decay of adamw has another direction.
            ratio = np.asarray(updates) / np.asarray(grads)
            np.testing.assert_allclose(ratio.imag, 0.0, atol=1e-6)
            assert (ratio.real < 0).all()


@pytest.mark.parametrize("optimizer", [optim.lbfgs(0.1), optim.scale_by_lbfgs()])
def test_lbfgs_rejects_complex_numbers(optimizer):
    real, complex_ = nx.ones(2), nx.ones(2, "c64")
    with pytest.raises(nx.DTypeError, match="params: must be real; got c64"):
        optimizer.init({"w": complex_})
    with pytest.raises(nx.DTypeError, match="grads: must be real; got c64"):
        optimizer.update({"w": complex_}, optimizer.init({"w": real}), {"w": real})


def test_centered_variance_of_complex_gradients():
    optimizer = optim.scale_by_rms(decay=0.5, eps=0.0, centered=True)
    grads = nx.tensor([3 + 4j])
    updates, _ = optimizer.update(grads, optimizer.init(grads))
    # The mean of squares is 25 / 2, and the square of the mean is 25 / 4.
    np.testing.assert_allclose(np.asarray(updates), [(3 + 4j) / 2.5], rtol=1e-5)


def rosenbrock(w):
    return (1 - w[0]) ** 2 + 100 * (w[1] - w[0] ** 2) ** 2


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda: optim.lbfgs(),
        lambda: optim.chain(optim.identity(), optim.lbfgs()),
        lambda: optim.chain(optim.chain(optim.lbfgs()), optim.scale(1.0)),
        lambda: optim.masked(optim.lbfgs(), True),
        lambda: optim.MultiSteps(optim.lbfgs(), 1).gradient_transformation(),
        lambda: optim.chain(optim.MultiSteps(optim.lbfgs(), 1).gradient_transformation()),
    ],
)
def test_nested_line_searches(wrapped):
    optimizer, w = wrapped(), nx.tensor([-1.0, 1.0])
    state = optimizer.init(w)
    for _ in range(40):
        value, slopes = nx.value_and_grad(rosenbrock)(w)
        updates, state = optimizer.update(slopes, state, w, value=value, value_fn=rosenbrock)
        w = optim.apply_updates(w, updates)
    np.testing.assert_allclose(np.asarray(w), 1.0, atol=1e-3)


def test_masked_line_search_uses_all_parameters():
    mask = {"b": False, "w": True}
    optimizer = optim.chain(
        optim.masked(optim.lbfgs(), mask),
        optim.masked(optim.scale(-0.1), {name: not selected for name, selected in mask.items()}),
    )

    def loss(params):
        return rosenbrock(params["w"]) + params["b"] ** 2

    params = {"b": nx.tensor(3.0), "w": nx.tensor([-1.0, 1.0])}
    state = optimizer.init(params)
    for _ in range(40):
        value, slopes = nx.value_and_grad(loss)(params)
        updates, state = optimizer.update(slopes, state, params, value=value, value_fn=loss)
        params = optim.apply_updates(params, updates)
    np.testing.assert_allclose(np.asarray(params["w"]), 1.0, atol=1e-3)
    assert abs(params["b"].item()) < 0.01


@pytest.mark.parametrize("name", list(transformations()))
def test_updates_keep_axis_names(name):
    function = getattr(optim, name)
    arguments = {
        number: as_argument(number, value) for number, value in required_arguments(function).items()
    }
    transformation = function(**arguments)
    params, grads = (
        {key: nx.tensor(x, dtype="f32", names=["rows", "columns"]) for key, x in arrays.items()}
        for arrays in (PARAMS, GRADS)
    )
    updates, _ = transformation.update(
        grads, transformation.init(params), params, **line_search_arguments(transformation)
    )
    for key, grad in grads.items():
        assert updates[key].names == grad.names


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
def test_incremental_updates_do_not_overflow(dtype):
    largest = float(nx.finfo(dtype).max) * 0.9 if dtype in ("f16", "bf16") else 1.0
    if dtype == "bf16":
        largest = 1e38  # Differences are computed in f32, which has the range of bf16.
    new, old = nx.tensor([largest], dtype=dtype), nx.tensor([-largest], dtype=dtype)
    found = optim.incremental_update(new, old, 0.5)
    assert found.dtype == dtype
    assert found.tolist() == [0.0]
    found = optim.incremental_update(new, old, np.float64(0.5))
    assert found.dtype == dtype


@pytest.mark.parametrize(
    ("name", "offset"),
    [("adafactor", {"decay_offset": 10}), ("scale_by_factored_rms", {"step_offset": 10})],
)
def test_decay_offset_does_not_bias_the_mean(name, offset, compiler):
    optimizer = getattr(optim, name)(**offset)
    params, grads = container(PARAMS, "f32"), container(GRADS, "f32")
    step, state = nx.jit(optimizer.update, compiler=compiler), optimizer.init(params)
    plain = getattr(optim, name)()
    expected, _ = plain.update(grads, plain.init(params), params)
    for _ in range(12):
        updates, state = step(grads, state, params)
        for key, update in expected.items():
            np.testing.assert_allclose(np.asarray(updates[key]), np.asarray(update), rtol=1e-5)
