"""Argument orders of random functions, and the named pair that they return."""

import inspect
import re

import pytest

import nxla as nx

KEY = nx.random.key(7)

#: Calls with the argument order of Nx, and the same draw with the argument order of JAX.
ORDERS = {
    "uniform": (
        lambda: nx.random.uniform(KEY, -1.0, 1.0, shape=(2, 3), dtype="f64"),
        lambda: nx.random.uniform(KEY, (2, 3), "f64", -1.0, 1.0),
        lambda: nx.random.uniform(KEY, (2, 3), dtype="f64", minval=-1.0),
    ),
    "normal": (
        lambda: nx.random.normal(KEY, shape=(2, 3), dtype="f64"),
        lambda: nx.random.normal(KEY, (2, 3), "f64"),
        lambda: nx.random.normal(KEY, (2, 3), dtype="f64"),
    ),
    "randint": (
        lambda: nx.random.randint(KEY, 3, 9, shape=(2, 3), dtype="s64"),
        lambda: nx.random.randint(KEY, (2, 3), 3, 9, "s64"),
        lambda: nx.random.randint(KEY, (2, 3), minval=3, maxval=9, dtype="s64"),
    ),
    "truncated_normal": (
        lambda: nx.random.truncated_normal(KEY, -1.0, 1.0, shape=(2, 3), dtype="f64"),
        lambda: nx.random.truncated_normal(KEY, -1.0, 1.0, (2, 3), "f64"),
    ),
    "gumbel": (
        lambda: nx.random.gumbel(KEY, shape=(2, 3), dtype="f64"),
        lambda: nx.random.gumbel(KEY, (2, 3), "f64"),
    ),
    "bernoulli": (
        lambda: nx.random.bernoulli(KEY, 0.3, shape=(2, 3)),
        lambda: nx.random.bernoulli(KEY, 0.3, (2, 3)),
    ),
    "gamma": (
        lambda: nx.random.gamma(KEY, 3.0, shape=(2, 3), dtype="f64"),
        lambda: nx.random.gamma(KEY, 3.0, (2, 3), "f64"),
    ),
    "beta": (
        lambda: nx.random.beta(KEY, 3.0, 2.0, shape=(2, 3), dtype="f64"),
        lambda: nx.random.beta(KEY, 3.0, 2.0, (2, 3), "f64"),
    ),
    "poisson": (
        lambda: nx.random.poisson(KEY, 3.0, shape=(2, 3), dtype="s64"),
        lambda: nx.random.poisson(KEY, 3.0, (2, 3), "s64"),
    ),
    "categorical": (
        lambda: nx.random.categorical(KEY, [[0.0], [1.0]], axis=0, shape=(4, 1)),
        lambda: nx.random.categorical(KEY, [[0.0], [1.0]], 0, (4, 1)),
    ),
}


@pytest.mark.parametrize("name", ORDERS)
def test_argument_orders_draw_equal_samples(name):
    expected, *others = (call() for call in ORDERS[name])
    for sample in others:
        assert sample.value.dtype == expected.value.dtype
        assert sample.value.tolist() == expected.value.tolist()
        assert sample.key.tolist() == expected.key.tolist()


@pytest.mark.parametrize("name", ["uniform", "normal", "randint"])
def test_split_forms_accept_both_orders(name):
    bounds = (3, 9) if name == "randint" else ()
    split = getattr(nx.random, f"{name}_split")
    expected = split(KEY, *bounds, shape=(2, 3))
    assert split(KEY, (2, 3), *bounds).tolist() == expected.tolist()


@pytest.mark.parametrize("name", ["exponential", "laplace", "bernoulli"])
def test_ambiguous_tuple_raises(name):
    for draw in (getattr(nx.random, name), getattr(nx.random, f"{name}_split")):
        with pytest.raises(nx.ArgumentError, match=r"write shape=\(2, 1\)"):
            draw(KEY, (2, 1))
        assert nx.tree.flatten(draw(KEY, [0.5, 0.25]))[0][0].shape == (2,)


def test_choice_refuses_a_shape_as_probabilities():
    with pytest.raises(nx.ArgumentError, match=r"choice: p: .*; got \(2, 3\); write samples="):
        nx.random.choice(KEY, nx.arange(2), (2, 3))
    assert nx.random.choice(KEY, nx.arange(2), [0, 3])[0].tolist() == [1]


#: Calls that pass an argument twice, by argument name.
DUPLICATES = {
    "randint": {
        "high": [
            lambda draw: draw(KEY, 0, 5, (2,)),
            lambda draw: draw(KEY, 0, 100, maxval=5),
        ],
        "low": [
            lambda draw: draw(KEY, 0, high=100, minval=99),
            lambda draw: draw(KEY, (2,), 0, minval=99, maxval=100),
        ],
        "shape": [lambda draw: draw(KEY, (2,), maxval=5, shape=(3,))],
    },
    "uniform": {
        "low": [lambda draw: draw(KEY, 0.0, 1.0, (2,))],
        "high": [lambda draw: draw(KEY, 0.0, 1.0, maxval=1000.0, shape=(2,))],
        "dtype": [lambda draw: draw(KEY, (2,), "f16", dtype="f64")],
        "shape": [lambda draw: draw(KEY, (2,), shape=(3,))],
    },
    "normal": {
        "dtype": [lambda draw: draw(KEY, (2,), "f16", dtype="f64")],
        "shape": [lambda draw: draw(KEY, (2,), shape=(3,))],
    },
}


@pytest.mark.parametrize("name", DUPLICATES)
def test_duplicate_arguments_raise(name):
    for draw in (getattr(nx.random, name), getattr(nx.random, f"{name}_split")):
        for argument, calls in DUPLICATES[name].items():
            for call in calls:
                with pytest.raises(nx.ArgumentError, match=rf": {argument}.*: must be passed once"):
                    call(draw)
    with pytest.raises(nx.ArgumentError, match=r"shape=\(2,\)"):
        nx.random.randint(KEY, 0, 5, (2,))


@pytest.mark.parametrize("name", ["normal_split", "uniform_split", "randint_split"])
def test_a_traced_size_must_be_static(name):
    bounds = (3, 9) if name == "randint_split" else ()
    draw = nx.jit(lambda n: getattr(nx.random, name)(KEY, (2, n), *bounds))
    with pytest.raises(nx.TraceError, match=rf"{name}: shape: .*; use a static argument"):
        draw(3)


def test_missing_bound_raises():
    with pytest.raises(nx.ArgumentError, match=r"high \(maxval\)"):
        nx.random.randint(KEY, (5,), 9)


def test_every_draw_returns_a_sample():
    calls = {name: orders[0] for name, orders in ORDERS.items()}
    calls["exponential"] = lambda: nx.random.exponential(KEY)
    calls["laplace"] = lambda: nx.random.laplace(KEY)
    calls["dirichlet"] = lambda: nx.random.dirichlet(KEY, [1.0, 2.0])
    calls["multivariate_normal"] = lambda: nx.random.multivariate_normal(KEY, [0.0], [[1.0]])
    calls["permutation"] = lambda: nx.random.permutation(KEY, 4)
    calls["shuffle"] = lambda: nx.random.shuffle(KEY, [1, 2, 3])
    calls["choice"] = lambda: nx.random.choice(KEY, [1, 2, 3])
    calls["binomial"] = lambda: nx.random.binomial(KEY, 4, 0.5)
    calls["multinomial"] = lambda: nx.random.multinomial(KEY, 4, [0.5, 0.5])
    calls["student_t"] = lambda: nx.random.student_t(KEY, 3.0)
    returns_pairs = {
        name
        for name in nx.random.__all__
        if inspect.isfunction(function := getattr(nx.random, name))
        and inspect.signature(function).return_annotation == "Sample"
    }
    assert returns_pairs == set(calls)
    for call in calls.values():
        sample = call()
        value, key = sample
        assert isinstance(sample, nx.random.Sample)
        assert sample.value is value
        assert sample.key is key
        assert key.shape == (2,)


def test_a_sample_passes_through_jit_and_containers():
    sample = nx.jit(lambda key: nx.random.normal(key, (3,)))(KEY)
    assert isinstance(sample, nx.random.Sample)
    assert sample.value.tolist() == nx.random.normal(KEY, (3,)).value.tolist()


@pytest.mark.parametrize("name", ["sum", "sin", "sort", "reshape", "tensor", "add", "stack", "exp"])
@pytest.mark.parametrize("mode", ["eager", "jit"])
def test_functions_reject_samples(name, mode):
    more = {"reshape": ((4,),), "add": (1.0,)}.get(name, ())

    def call(key):
        sample = nx.random.normal(key, (2,))
        return getattr(nx, name)([sample, sample] if name == "stack" else sample, *more)

    with pytest.raises((nx.ArgumentError, TypeError), match=r"Sample\(value, key\)"):
        (nx.jit(call) if mode == "jit" else call)(KEY)


#: Functions of a sequence or a container of tensors.
SEQUENCES = {
    "concat": nx.concat,
    "stack": nx.stack,
    "index": lambda sample: nx.ones(2)[sample],
    "update at an index": lambda sample: nx.ones(2).at[sample].set(1.0),
    "global_norm": nx.optim.global_norm,
    "apply_updates": lambda sample: nx.optim.apply_updates(sample, sample),
    "incremental_update": lambda sample: nx.optim.incremental_update(sample, sample, 0.5),
}


@pytest.mark.parametrize("name", SEQUENCES)
@pytest.mark.parametrize("mode", ["eager", "jit"])
def test_a_sample_is_not_a_sequence_of_tensors(name, mode):
    def call(key):
        return SEQUENCES[name](nx.random.normal(key, (2,)))

    requirement = (
        r"must .*; got the named tuple Sample\(value, key\) that a random function returns"
    )
    with pytest.raises(nx.ArgumentError, match=requirement):
        (nx.jit(call) if mode == "jit" else call)(KEY)


#: The arguments of each function of `nx.random` after its key.
ARGUMENTS = {
    "beta": (1.0, 1.0),
    "binomial": (3, 0.5),
    "categorical": ([0.5, 0.5],),
    "choice": ([1, 2],),
    "dirichlet": ([1.0, 2.0],),
    "fold_in": (1,),
    "gamma": (1.0,),
    "multinomial": (3, [0.5, 0.5]),
    "multivariate_normal": ([0.0], [[1.0]]),
    "permutation": ([1, 2],),
    "poisson": (1.0,),
    "randint": (0, 3),
    "shuffle": ([1, 2],),
    "student_t": (3.0,),
    "truncated_normal": (0.0, 1.0),
}
#: The functions that take a key.
WITH_KEY = sorted(set(nx.random.__all__) - {"Sample", "key"})


@pytest.mark.parametrize("name", [*WITH_KEY, "dropout", "dropout_split"])
def test_invalid_key_error_names_the_function(name):
    is_dropout = name.startswith("dropout")
    function = getattr(nx.nn if is_dropout else nx.random, name)
    more = (nx.ones(2), 0.5) if is_dropout else ARGUMENTS.get(name.removesuffix("_split"), ())
    keys = [(nx.ones(3), "f32[3]"), (3, "s32"), (nx.tensor([1, 2]), "s32[2]")]
    for key, ty in keys:
        message = f"{name}: key: expected a key, which is u32[2]; got {ty}"
        for call in (
            lambda key=key: function(key, *more),
            nx.jit(lambda key=key: function(key, *more)),
        ):
            with pytest.raises(nx.ShapeError, match="^" + re.escape(message)):
                call()
    with pytest.raises(nx.NxlaError, match=f"^{name}: .*got str"):
        function("key", *more)


def test_noninteger_bounds_require_a_dtype():
    key = nx.random.key(0)
    for draw in (nx.random.randint, nx.random.randint_split):
        with pytest.raises(nx.DTypeError, match=rf"^{draw.__name__}: high \(maxval\): must be an"):
            draw(key, 0, 2.5)
        with pytest.raises(nx.DTypeError, match=rf"^{draw.__name__}: low \(minval\): must be an"):
            draw(key, nx.tensor(0.0), 2)
    assert nx.random.randint_split(key, 0, 1.5, dtype="s32").dtype == nx.int32
