"""Compare distributions of `nx.random` with SciPy for fixed keys."""

import math

import numpy as np
import pytest

import nxla as nx
from where import PLATFORM

stats = pytest.importorskip("scipy.stats")
random = nx.random

COUNT = 4000
#: The significance level. The keys are fixed, so the results of the tests are reproducible.
SIGNIFICANCE = 1e-4

CONTINUOUS = [
    ("exponential", (2.0,), stats.expon(scale=2.0)),
    ("laplace", (1.0, 3.0), stats.laplace(1.0, 3.0)),
    ("truncated_normal", (-1.0, 2.0), stats.truncnorm(-1.0, 2.0)),
    ("truncated_normal", (4.0, 6.0), stats.truncnorm(4.0, 6.0)),
    ("truncated_normal", (-np.inf, -7.0), stats.truncnorm(-np.inf, -7.0)),
    ("truncated_normal", (-np.inf, np.inf), stats.norm()),
    ("truncated_normal", (-1.0, np.inf), stats.truncnorm(-1.0, np.inf)),
    ("truncated_normal", (1.9, 2.1), stats.truncnorm(1.9, 2.1)),
    ("gamma", (0.05,), stats.gamma(0.05)),
    ("gamma", (0.7,), stats.gamma(0.7)),
    ("gamma", (1.0,), stats.gamma(1.0)),
    ("gamma", (3.5,), stats.gamma(3.5)),
    ("gamma", (1000.0,), stats.gamma(1000.0)),
    ("beta", (2.0, 5.0), stats.beta(2.0, 5.0)),
    ("beta", (0.5, 0.5), stats.beta(0.5, 0.5)),
    ("beta", (1.0, 1.0), stats.uniform()),
]


@pytest.mark.parametrize(
    ("name", "parameters", "expected"),
    CONTINUOUS,
    ids=[f"{name}{parameters}" for name, parameters, _ in CONTINUOUS],
)
def test_continuous_distributions(compiler, name, parameters, expected):
    with nx.default_options(compiler=compiler):
        draw = getattr(random, name)
        # Compiling takes longer than drawing.
        runs = [("f32", False), ("f64", True)]
        for dtype, jitted in runs if compiler == "evaluator" else [("f32", True)]:
            # Parameters are arguments of a compiled draw, so XLA compiles each distribution once.
            run = lambda key, *p, dtype=dtype: draw(key, *p, shape=COUNT, dtype=dtype)  # noqa: E731
            x, _ = (nx.jit(run) if jitted else run)(random.key(5), *parameters)
            assert str(x.dtype) == dtype
            x = np.asarray(x).astype("f8")
            assert stats.kstest(x, expected.cdf).pvalue > SIGNIFICANCE


@pytest.mark.parametrize("rate", [0.0, 0.3, 4.0, 9.99, 10.0, 55.0, 3000.0])
def test_poisson(compiler, rate):
    with nx.default_options(compiler=compiler):
        x, _ = random.poisson(random.key(2), rate, shape=COUNT)
    assert x.dtype == nx.int32
    x = np.asarray(x)
    assert x.min() >= 0
    if rate == 0.0:
        assert x.max() == 0
        return
    # The edges of ranges that have about equal expected counts.
    edges = np.unique(stats.poisson(rate).ppf(np.linspace(0, 1, 12))[1:-1])
    expected = np.diff(np.concatenate([[0.0], stats.poisson(rate).cdf(edges), [1.0]])) * COUNT
    found = np.bincount(np.searchsorted(edges, x), minlength=len(expected))
    frequent = expected > 5
    chi = ((found - expected)[frequent] ** 2 / expected[frequent]).sum()
    assert stats.chi2(frequent.sum()).sf(chi) > SIGNIFICANCE
    assert abs(x.mean() - rate) < 5 * np.sqrt(rate / COUNT)


def test_poisson_with_several_rates(compiler):
    rates = nx.tensor([0.5, -1.0, np.nan, 20.0, 1e6, 0.0])
    with nx.default_options(compiler=compiler):
        x, _ = random.poisson(random.key(0), rates, shape=(2000, 6), dtype="s64")
    means = np.asarray(x).mean(axis=0)
    assert x.dtype == nx.int64
    np.testing.assert_allclose(means, [0.5, -1.0, -1.0, 20.0, 1e6, 0.0], rtol=0.1)


def test_bernoulli(compiler):
    p = nx.tensor([0.0, 0.2, 0.9, 1.0])
    with nx.default_options(compiler=compiler):
        x, _ = random.bernoulli(random.key(1), p, shape=(COUNT, 4))
        assert x.dtype == nx.bool
        means = np.asarray(x).mean(axis=0)
        np.testing.assert_allclose(means, [0.0, 0.2, 0.9, 1.0], atol=0.03)
        assert (means[0], means[3]) == (0.0, 1.0)
        assert random.bernoulli(random.key(1), p)[0].shape == (4,)
        assert abs(np.asarray(random.bernoulli(random.key(1), shape=COUNT)[0]).mean() - 0.5) < 0.04


def test_categorical(compiler):
    p = np.array([[0.1, 0.2, 0.7], [0.0, 0.5, 0.5]])
    with nx.default_options(compiler=compiler), np.errstate(divide="ignore"):
        logits = nx.tensor(np.log(p))
        x, _ = random.categorical(random.key(1), logits, shape=(COUNT, 2))
        assert x.dtype == nx.int32
        for row in range(2):
            shares = np.bincount(np.asarray(x)[:, row], minlength=3) / COUNT
            np.testing.assert_allclose(shares, p[row], atol=0.03)
            assert row == 0 or shares[0] == 0
        columns, _ = random.categorical(random.key(1), nx.tensor(np.log(p.T)), axis=0, shape=(9, 2))
        assert columns.shape == (9, 2)
        named = nx.tensor(np.log(p), names=["example", "class"])
        assert random.categorical(random.key(1), named, axis="class")[0].shape == (2,)
        assert random.categorical(random.key(1), [0, 5], dtype="u8")[0].dtype == nx.uint8


def test_dirichlet(compiler):
    alpha = np.array([0.5, 2.0, 3.5])
    with nx.default_options(compiler=compiler):
        x, _ = random.dirichlet(random.key(3), nx.tensor(alpha), shape=COUNT)
        x = np.asarray(x)
        np.testing.assert_allclose(x.sum(axis=1), 1.0, rtol=1e-9)
        for index in range(3):
            expected = stats.beta(alpha[index], alpha.sum() - alpha[index])
            assert stats.kstest(x[:, index], expected.cdf).pvalue > SIGNIFICANCE
        # The concentration is so small that the gamma variables underflow to zero.
        tiny, _ = random.dirichlet(random.key(3), nx.full(3, 1e-4), shape=50)
        np.testing.assert_allclose(np.asarray(tiny).sum(axis=1), 1.0, rtol=1e-6)
        of_rows = nx.eval_shape(random.dirichlet, random.key(3), nx.ones((5, 2)))
        assert of_rows[0].shape == (5, 2)


def test_permutations(compiler):
    with nx.default_options(compiler=compiler):
        orders = []
        key = random.key(0)
        for _ in range(300):
            order, key = random.permutation(key, 3)
            orders.append(tuple(order.tolist()))
        counts = [orders.count(order) for order in set(orders)]
        assert len(counts) == 6
        assert min(counts) > 25
        x = nx.reshape(nx.arange(12), (4, 3))
        rows, next_key = random.permutation(random.key(1), x)
        shuffled, shuffled_key = random.shuffle(random.key(1), x)
        assert rows.tolist() == shuffled.tolist()
        assert next_key.tolist() == shuffled_key.tolist()
    with pytest.raises(nx.ArgumentError):
        random.permutation(random.key(0), -1)


SPLIT = [
    ("bernoulli", (0.5,)),
    ("exponential", (1.0,)),
    ("laplace", (0.0, 2.0)),
    ("truncated_normal", (-1.0, 1.0)),
    ("gamma", (2.0,)),
    ("beta", (2.0, 3.0)),
    ("poisson", (3.0,)),
    ("dirichlet", ([1.0, 2.0],)),
    ("categorical", ([0.0, 1.0],)),
]


@pytest.mark.parametrize(("name", "parameters"), SPLIT)
def test_split_functions_and_vmap(name, parameters):
    key = random.key(7)
    next_key, draw_key = random.split(key)
    drawn, returned_key = getattr(random, name)(key, *parameters, shape=(3,))
    assert returned_key.tolist() == next_key.tolist()
    expected = getattr(random, name + "_split")(draw_key, *parameters, shape=(3,))
    assert drawn.tolist() == expected.tolist()
    keys = random.split(key, parts=4)
    each = nx.vmap(lambda key: getattr(random, name + "_split")(key, *parameters, shape=(3,)))(keys)
    for index in range(4):
        row = getattr(random, name + "_split")(keys[index], *parameters, shape=(3,))
        np.testing.assert_allclose(np.asarray(each[index]), np.asarray(row), rtol=1e-6)


def test_parameter_edge_cases():
    key = random.key(0)
    assert np.isnan(random.gamma(key, -1.0)[0].item())
    assert random.gamma(key, 0.0)[0].item() == 0.0
    assert random.gamma(key, np.inf)[0].item() == np.inf
    assert random.gamma(key, nx.tensor(2.0, "bf16"))[0].dtype == nx.bfloat16
    x = np.asarray(random.exponential(key, shape=100000)[0])
    assert np.isfinite(x).all()
    assert x.min() >= 0
    x = np.asarray(random.truncated_normal(key, 9.0, 10.0, shape=100)[0])
    assert ((x >= 9.0) & (x <= 10.0)).all()
    x, _ = random.truncated_normal(key, [1.0, 0.0, 3.0, 2.0], [-1.0, 1.0, 2.5, 2.0])
    assert np.isnan(x).tolist() == [True, False, True, False]
    assert nx.grad(lambda a: random.gamma(key, a)[0])(2.0).item() == 0.0


@pytest.mark.parametrize(("name", "parameters"), SPLIT)
def test_invalid_keys_shapes_and_dtypes_raise(name, parameters):
    draw = getattr(random, name)
    with pytest.raises(nx.ShapeError, match="key"):
        draw([1, 2, 3], *parameters)
    with pytest.raises(nx.NxlaError):
        draw(random.key(0), *(nx.ones((4, 5)) for _ in parameters), shape=(2, 3))
    if name != "bernoulli":
        wrong = "f32" if name in ("poisson", "categorical") else "s32"
        with pytest.raises(nx.DTypeError, match="dtype"):
            draw(random.key(0), *parameters, dtype=wrong)


def test_incompatible_parameters_raise():
    with pytest.raises(nx.ShapeError, match="must broadcast"):
        random.beta(random.key(0), nx.ones(2), nx.ones(3))
    with pytest.raises(nx.ShapeError, match="ends with"):
        random.categorical(random.key(0), nx.ones((2, 3)), shape=(3,))
    with pytest.raises(nx.ShapeError):
        random.categorical(random.key(0), nx.ones((2, 3)), axis=5)
    with pytest.raises(nx.DTypeError):
        random.gamma(random.key(0), 1j)
    assert random.beta(random.key(0), nx.ones((2, 1)), nx.ones(3))[0].shape == (2, 3)


def tail(near, far):
    """Return the CDF of the distance from `near`, by erfcx, which does not underflow."""
    special = pytest.importorskip("scipy.special")
    erfcx = special.erfcx

    def survival(d):
        ratio = erfcx((near + d) / np.sqrt(2)) / erfcx(near / np.sqrt(2))
        return np.exp(-near * d - d * d / 2) * ratio

    end = survival(far - near) if np.isfinite(far) else 0.0
    return lambda d: (1 - survival(np.asarray(d))) / (1 - end)


def draw_f64_and_f32(low, high):
    """Return draws of both dtypes; bounds are arguments, so that all tests share one program."""
    draw = lambda dtype: random.truncated_normal(  # noqa: E731
        random.key(7), low, high, shape=COUNT, dtype=dtype
    )[0]
    return draw("f64"), draw("f32")


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    ("near", "far"),
    [(2.5, 3.0), (5.0, np.inf), (9.0, np.inf), (39.0, 40.0), (100.0, np.inf), (40.0, 40.001)],
)
def test_tails_of_the_normal_distribution(compiler, near, far, sign):
    bounds = (near, far) if sign > 0 else (-far, -near)
    x, narrow = nx.jit(draw_f64_and_f32, compiler=compiler)(*nx.tensor(bounds, dtype="f64"))
    distance = sign * np.asarray(x) - near
    assert distance.min() >= 0
    assert distance.max() <= far - near
    assert stats.kstest(distance, tail(near, far)).pvalue > SIGNIFICANCE
    np.testing.assert_array_equal(np.asarray(narrow), np.asarray(x).astype("f4"))


def test_truncated_normal_with_equal_or_invalid_bounds(compiler):
    low = nx.tensor([3.0, np.inf, -np.inf, np.nan, 3.0, 0.5])
    high = nx.tensor([3.0, np.inf, -np.inf, 3.0, np.nan, 0.5])
    with nx.default_options(compiler=compiler):
        x, _ = nx.jit(random.truncated_normal)(random.key(0), low, high)
    np.testing.assert_array_equal(
        np.asarray(x), np.array([3.0, np.inf, -np.inf, np.nan, np.nan, 0.5], "f4")
    )


#: Every distribution with float results, with parameters that are exact in all dtypes.
FLOATS = {
    "uniform": (), "normal": (), "gumbel": (), "exponential": (), "laplace": (),
    "truncated_normal": (-1.0, 2.0), "gamma": (2.0,), "beta": (2.0, 1.0),
}  # fmt: skip


NARROW = ["f16", "bf16", "f8_e5m2", "f8_e4m3fn"]


def assert_rounded(name, wide, narrow):
    """Check that narrow draws are the rounded draws of f32."""
    rounded = np.asarray(nx.astype(nx.astype(wide, narrow.dtype), "f32"))
    found, wide = np.asarray(nx.astype(narrow, "f32")), np.asarray(wide)
    if name == "uniform":
        # Numbers that would be rounded to 1 become the largest number below 1.
        assert found.max() < 1.0
        np.testing.assert_array_equal(found[rounded < 1], rounded[rounded < 1], str(narrow.dtype))
    else:
        np.testing.assert_array_equal(found, rounded, str(narrow.dtype))
    assert abs(found.mean() - wide.mean()) < 0.03 * wide.std(), narrow.dtype
    assert abs(found.std() / wide.std() - 1) < 0.05, narrow.dtype


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("name", FLOATS)
def test_narrow_draws_are_rounded_draws_of_f32(name, dtype):
    draw, key, parameters = getattr(random, name), random.key(4), FLOATS[name]
    wide, narrow = (draw(key, *parameters, shape=COUNT, dtype=each)[0] for each in ("f32", dtype))
    assert str(narrow.dtype) == dtype
    assert_rounded(name, wide, narrow)


@pytest.mark.parametrize("name", FLOATS)
def test_narrow_draws_of_xla_are_rounded_draws_of_f32(name):
    draw = getattr(random, name)

    # XLA takes long to compile a draw, so one program returns the draws of all dtypes.
    def draws(key, *parameters):
        return [draw(key, *parameters, shape=COUNT, dtype=each)[0] for each in ("f32", *NARROW)]

    wide, *narrow = nx.jit(draws, compiler="xla")(random.key(4), *FLOATS[name])
    for dtype, drawn in zip(NARROW, narrow, strict=True):
        assert str(drawn.dtype) == dtype
        # On a GPU, XLA rounds to f16 and then to f8_e5m2.
        if (PLATFORM, dtype) != ("cuda", "f8_e5m2"):
            assert_rounded(name, wide, drawn)


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f8_e5m2", "f32", "f64"])
def test_many_categories_of_equal_probability(compiler, dtype):
    with nx.default_options(compiler=compiler):
        logits = nx.zeros((500, 2000), dtype=dtype)
        x, _ = random.categorical(random.key(1), logits)
        activations, _ = nx.nn.dropout(random.key(1), nx.ones(20_000, dtype=dtype), 0.25)
    assert stats.kstest(np.asarray(x) / 2000, stats.uniform().cdf).pvalue > SIGNIFICANCE
    share = np.mean(np.asarray(nx.astype(activations, "f32")) > 0)
    assert abs(share - 0.75) < 0.02


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
def test_weighted_choice(compiler, dtype):
    p = np.array([0.0, 0.25, 0.0, 0.5, 0.25, 0.0])
    with nx.default_options(compiler=compiler):
        weights = nx.tensor(p, dtype=dtype)
        x, _ = random.choice(random.key(2), nx.arange(6), weights, samples=COUNT)
        shares = np.bincount(np.asarray(x), minlength=6) / COUNT
        np.testing.assert_allclose(shares, p, atol=0.03)
        assert (shares[p == 0] == 0).all()
        x, _ = random.choice(random.key(2), nx.arange(6), weights, samples=3, replace=False)
        assert sorted(x.tolist()) == [1, 3, 4]


def test_weighted_choice_of_many_samples(compiler):
    """A matrix of entries by samples would have 40 GB."""
    count = 200_000
    p = nx.tensor(np.arange(count) % 2, dtype="f64")
    with nx.default_options(compiler=compiler):
        x, _ = random.choice(random.key(2), nx.arange(count), p, samples=count)
    x = np.asarray(x)
    assert (x % 2 == 1).all()
    assert stats.kstest(x / count, stats.uniform().cdf).pvalue > SIGNIFICANCE


#: Parameters of every function that draws from a distribution.
PARAMETERS = dict(SPLIT) | {
    "uniform": (0.0, 1.0),
    "normal": (0.0, 1.0),
    "gumbel": (),
    "randint": (0, 9),
    "multivariate_normal": ([0.0, 1.0], [[2.0, 1.0], [1.0, 2.0]]),
    "binomial": (10.0, 0.3),
    "multinomial": (10.0, [0.2, 0.8]),
    "student_t": (5.0,),
}


def test_samples_have_no_gradient_in_parameters():
    names = {name for name in random.__all__ if f"{name}_split" in random.__all__}
    assert names == PARAMETERS.keys()
    key = random.key(3)
    for name in sorted(names):
        draws = (
            getattr(random, f"{name}_split"),
            lambda *a, name=name: getattr(random, name)(*a)[0],
        )
        parameters = [nx.tensor(parameter) for parameter in PARAMETERS[name]]
        for position, parameter in enumerate(parameters):
            for draw in draws:

                def total(x, draw=draw, parameters=parameters, position=position):
                    return nx.sum(draw(key, *parameters[:position], x, *parameters[position + 1 :]))

                for derivative in (nx.grad, nx.jacfwd):
                    assert not nx.any(derivative(total)(parameter)), (name, position)
    weights = lambda p: nx.sum(random.choice(key, nx.ones(3), p, samples=4)[0])  # noqa: E731
    assert nx.grad(weights)(nx.tensor([0.2, 0.3, 0.5])).tolist() == [0.0] * 3


@pytest.mark.parametrize("compiler", ["evaluator", "xla"])
@pytest.mark.parametrize(
    "p", [[1.0, math.nan], [0.5, -0.5, 1.0], [0.0, 0.0], [math.inf, 1.0], [math.nan, math.nan]]
)
def test_multinomial_of_invalid_probabilities(p, compiler):
    draw = nx.jit(nx.random.multinomial_split, compiler=compiler)
    assert draw(nx.random.key(0), 10, nx.tensor([p, [1.0] + [0.0] * (len(p) - 1)])).tolist() == [
        [-1] * len(p),
        [10] + [0] * (len(p) - 1),
    ]
