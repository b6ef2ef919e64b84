"""`nx.random`: known numbers, distributions, and errors."""

import numpy as np
import pytest

import nxla as nx

random = nx.random


def test_keys():
    assert random.key(0).tolist() == [0, 0]
    assert random.key(999999999999).tolist() == [232, 3567587327]
    assert random.key(-1).tolist() == [2**32 - 1, 2**32 - 1]
    assert random.key(nx.tensor(12, "u64")).tolist() == [0, 12]
    # The published test vectors of the generator: zeros, and the digits of pi.
    assert random.fold_in(random.key(0), 0).tolist() == [1797259609, 2579123966]
    key = nx.tensor([320440878, 57701188], "u32")
    data = nx.tensor((608135816 << 32) + 2242054355, "u64")
    assert random.fold_in(key, data).tolist() == [3297917596, 1212020640]


def test_splits():
    key = random.key(1701)
    assert random.split(key, parts=4).tolist() == [
        [4000152724, 2030591747],
        [2287976877, 2598630646],
        [2426625787, 580268518],
        [3136765380, 433355682],
    ]
    assert random.split(key, parts=3).shape == (3, 2)
    folded = random.fold_in(random.key(42), [[1, 99], [1234, 13]]).tolist()
    assert folded[0][1] == random.fold_in(random.key(42), 99).tolist()
    assert random.fold_in(random.key(0), -1).tolist() == [145227835, 1976240827]


def test_functions_agree_with_their_split_forms():
    key = random.key(7)
    next_key, subkey = random.split(key)
    for name, arguments in [
        ("uniform", ()),
        ("normal", (1.0, 2.0)),
        ("randint", (0, 100)),
        ("gumbel", ()),
        ("multivariate_normal", ([0.0, 1.0], [[1.0, 0.5], [0.5, 1.0]])),
    ]:
        drawn, after = getattr(random, name)(key, *arguments, shape=(3,))
        assert after.tolist() == next_key.tolist()
        separate = getattr(random, name + "_split")(subkey, *arguments, shape=(3,))
        assert drawn.tolist() == separate.tolist()


@pytest.mark.parametrize("dtype", ["bf16", "f16", "f32", "f64", "c64", "c128"])
def test_distributions(dtype):
    key, count = random.key(3), 20000
    uniform, key = random.uniform(key, -1.0, 3.0, shape=count, dtype=dtype)
    normal, key = random.normal(key, 2.0, 0.5, shape=count, dtype=dtype)
    for part in ("real", "imag") if dtype.startswith("c") else ("real",):
        x = np.asarray(nx.astype(getattr(nx, part)(uniform), "f64"))
        assert x.min() >= -1.0
        assert x.max() <= 3.0
        assert abs(x.mean() - 1.0) < 0.05
        assert abs(x.var() - 16 / 12) < 0.05
        y = np.asarray(nx.astype(getattr(nx, part)(normal), "f64"))
        assert np.isfinite(y).all()
        assert abs(y.mean() - 2.0) < 0.02
        assert abs(y.std() - 0.5) < 0.02


@pytest.mark.parametrize("dtype", ["u8", "s8", "u16", "s32", "u64", "s64"])
def test_integers(dtype):
    x, _ = random.randint(random.key(3), 5, 15, shape=5000, dtype=dtype)
    assert str(x.dtype) == dtype
    counts = np.bincount(np.asarray(x).astype(int), minlength=15)
    assert counts[:5].sum() == 0
    assert counts[5:].min() > 350
    low, _ = random.randint(random.key(3), -5, nx.tensor([-4, 0]), shape=2)
    assert low.tolist()[0] == -5


INTEGERS = ["s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"]


def limits(dtype):
    """Return the least and the largest integer of a dtype."""
    bits = int(dtype[1:])
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if dtype[0] == "s" else (0, 2**bits - 1)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("bounds", [None, *INTEGERS])
def test_integers_between_wide_bounds(bounds, dtype, compiler):
    """The bounds are Python integers, or tensors of another dtype."""
    ranges = [limits(dtype), limits(bounds or dtype)]
    least, most = max(low for low, _ in ranges), min(high for _, high in ranges)
    ranges = [(least, most), (least // 2, most), (least, most // 3), (most - 5, most)]

    def draw(key, *ranges):
        return [
            random.randint(
                key,
                *(nx.tensor(bound, bounds) if bounds else bound for bound in each),
                shape=4000,
                dtype=dtype,
            )[0]
            for each in ranges
        ]

    # XLA compiles all ranges as one program, which takes less time.
    programs = [ranges] if compiler == "xla" else [[each] for each in ranges]
    drawn = []
    for each in programs:
        compiled = nx.jit(lambda key, each=each: draw(key, *each), compiler=compiler)
        drawn += compiled(random.key(3))
    for (low, high), values in zip(ranges, drawn, strict=True):
        x = [int(value) for value in values.tolist()]
        assert low <= min(x) <= max(x) < high
        # The counts of values in 5 parts of the range must be within 5 standard deviations.
        span = high - low
        found = np.bincount([(value - low) * 5 // span for value in x], minlength=5)
        starts = [-(-part * span // 5) for part in range(6)]
        expected = np.diff([4000 * (start / span) for start in starts])
        assert np.abs(found - expected).max() < 5 * np.sqrt(4000 * 0.2), (low, high)


def test_integers_outside_of_the_dtype():
    for low, high, dtype in [(0, 257, "u8"), (-1, 5, "u16"), (0, 2**31 + 1, "s32")]:
        with pytest.raises(nx.ArgumentError, match=f"from {low} to below {high}; got {dtype}"):
            random.randint(random.key(1), low, high, dtype=dtype)
    for dtype in ["u8", "s8", "s32", "s64"]:
        low, high = limits(dtype)
        x, _ = random.randint(random.key(1), low, high + 1, shape=2000, dtype=dtype)
        x = np.asarray(x).astype(float) / (high - low + 1)
        assert abs(x.mean() - (0.5 if low == 0 else 0.0)) < 0.03


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("low", [-1.0, 0.125, 1.0, 3.0, 1024.0])
def test_uniform_values_are_below_high(dtype, low, compiler):
    """Between neighboring floats the last rounding would return `high`."""
    key, low = random.key(5), nx.tensor(low, dtype)
    high = low

    def draw(key, low, high):
        return random.uniform(key, low, high, shape=500, dtype=dtype)[0]

    compiled = nx.jit(draw, compiler=compiler)
    for _ in range(3):
        high = nx.nextafter(high, nx.tensor(np.inf, dtype))
        drawn = [compiled(key, low, high)]
        # With constant bounds, XLA would compile a program for each pair of bounds.
        if compiler == "evaluator":
            constant = nx.jit(lambda key, high=high: draw(key, low, high), compiler=compiler)
            drawn.append(constant(key))
        for x in drawn:
            assert nx.all(low <= x).item()
            assert nx.all(x < high).item()


def test_multivariate_normal_covariances():
    mean, covariance = np.array([1.0, -2.0]), np.array([[2.0, 0.8], [0.8, 1.0]])
    for method in ("cholesky", "eigh", "svd"):
        x, _ = random.multivariate_normal(
            random.key(1), mean, covariance, method=method, shape=20000
        )
        x = np.asarray(x)
        np.testing.assert_allclose(x.mean(axis=0), mean, atol=0.05)
        np.testing.assert_allclose(np.cov(x.T), covariance, atol=0.05)


def test_shuffle():
    x = nx.reshape(nx.arange(12), (3, 4))
    rows, _ = random.shuffle(random.key(42), x)
    assert sorted(rows.tolist()) == x.tolist()
    columns, _ = random.shuffle(random.key(42), x, axis=1)
    assert np.sort(np.asarray(columns), axis=1).tolist() == x.tolist()
    each, _ = random.shuffle(random.key(10), nx.iota((3, 4), axis=1), axis=1, independent=True)
    assert each.tolist() == [[2, 1, 3, 0], [3, 0, 1, 2], [2, 3, 0, 1]]


def test_choice():
    key = random.key(2)
    x, _ = random.choice(key, nx.reshape(nx.arange(6), (3, 2)), samples=6, replace=False)
    assert x.tolist() == [2, 0, 4, 5, 1, 3]
    p = [0.01, 0.1, 0.19, 0.6, 0.05, 0.05]
    x = nx.reshape(nx.arange(6), (2, 3))
    assert random.choice(key, x, p, samples=6)[0].tolist() == [3, 3, 3, 0, 3, 3]
    assert random.choice(key, x, p, samples=6, replace=False)[0].tolist() == [3, 1, 2, 5, 4, 0]
    for weights in (None, [0.25] * 4):
        for replace in (True, False):
            empty, _ = random.choice(
                key, nx.ones((2, 4)), weights, samples=0, axis=1, replace=replace
            )
            assert empty.shape == (2, 0)
    samples, _ = random.choice(random.key(1), nx.arange(4), [0.0, 0.5, 0.5, 0.0], samples=2000)
    assert set(samples.tolist()) == {1, 2}


def test_traced_draws():
    def draw(key):
        x, key = random.normal(key, shape=(2, 3))
        y, key = random.randint(key, 0, 9, shape=4)
        return x, y, key

    key = random.key(5)
    eager, traced = draw(key), nx.jit(draw)(key)
    for a, b in zip(eager, traced, strict=True):
        assert nx.all_close(a, b).item()
    slope = nx.grad(lambda mean: nx.sum(random.normal(key, mean, 1.0, shape=3)[0]))(2.0)
    assert slope.item() == 0.0


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize(
    ("name", "arguments", "options"),
    [
        ("uniform", (), {"shape": (2,)}),
        ("uniform", (-1.0, 1.0), {"shape": (2, 3), "dtype": "f64", "names": ("a", None)}),
        ("normal", (1.0, 2.0), {"shape": (3,)}),
        ("randint", (0, 100), {"shape": (3,), "dtype": "u8"}),
        ("gumbel", (), {"shape": (2,)}),
        ("multivariate_normal", ([0.0, 1.0], [[1.0, 0.5], [0.5, 1.0]]), {"shape": (2,)}),
        ("shuffle", (nx.arange(5),), {}),
        ("shuffle", (nx.reshape(nx.arange(6), (2, 3)),), {"axis": 1, "independent": True}),
        ("choice", (nx.arange(5),), {"samples": 3}),
        ("choice", ([10, 20, 30], [0.1, 0.2, 0.7]), {"samples": 2, "replace": False}),
    ],
)
def test_vectorized_keys_match_separate_keys(name, arguments, options, traced):
    def draw(key):
        return getattr(random, name)(key, *arguments, **options)

    keys = random.split(random.key(3), parts=3)
    drawn, next_key = (nx.jit(draw) if traced else draw)(nx.vectorize(keys, "k"))
    assert drawn.vectorized_axes == next_key.vectorized_axes == (("k", 3),)
    for index in range(3):
        separate, after = draw(keys[index])
        assert nx.devectorize(next_key)[index].tolist() == after.tolist()
        assert drawn.shape == separate.shape
        assert drawn.names == separate.names
        assert nx.all_close(nx.devectorize(drawn)[index], separate).item()


def test_vectorized_keys_are_split_and_folded_separately():
    keys = random.split(random.key(3), parts=2)
    vectors = nx.vectorize(keys, "k")
    parts = nx.devectorize(random.split(vectors, parts=4))
    folded = nx.devectorize(random.fold_in(vectors, [5, 6, 7]))
    for index in range(2):
        assert parts[index].tolist() == random.split(keys[index], parts=4).tolist()
        assert folded[index].tolist() == random.fold_in(keys[index], [5, 6, 7]).tolist()


def test_axis_names():
    x, _ = random.uniform(random.key(1), shape=(2, 3), names=("x", None))
    assert list(x.names) == ["x", None]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: random.split([1, 2]), nx.ShapeError, "split: key: expected .*got s32"),
        (lambda: random.split(random.key(1), parts=0), nx.ArgumentError, "parts"),
        (lambda: random.split(random.key(1), parts=-1), nx.ArgumentError, "at least 1; got -1"),
        (
            lambda: random.choice(random.key(1), [1, 2], samples=-1),
            nx.ArgumentError,
            "samples: must be at least 0; got -1",
        ),
        (lambda: random.key(1.5), nx.DTypeError, "key: seed"),
        (lambda: random.key([1, 2]), nx.ShapeError, "a scalar"),
        (lambda: random.uniform(random.key(1), dtype="s32"), nx.DTypeError, "a float or complex"),
        (lambda: random.normal(nx.zeros(3, dtype="u32")), nx.ShapeError, "key: expected .*got u32"),
        (lambda: random.randint(random.key(1), 0, 9, dtype="f32"), nx.DTypeError, "an integer"),
        (lambda: random.gumbel(random.key(1), dtype="c64"), nx.DTypeError, "a float dtype"),
        (
            lambda: random.uniform(random.key(1), nx.zeros(3), nx.ones(3), shape=2),
            nx.ShapeError,
            "low: expected",
        ),
        (
            lambda: random.multivariate_normal(random.key(1), [0.0], [[1.0, 0.0]]),
            nx.ShapeError,
            "covariance",
        ),
        (
            lambda: random.multivariate_normal(random.key(1), [0.0], [[1.0]], method="lu"),
            nx.ArgumentError,
            "method: must be",
        ),
        (lambda: random.choice(random.key(1), 1.0), nx.ArgumentError, "at least one axis"),
        (
            lambda: random.choice(random.key(1), [1, 2], samples=3, replace=False),
            nx.ArgumentError,
            "without replacement",
        ),
        (lambda: random.choice(random.key(1), [1, 2], [1.0]), nx.ShapeError, "one for each entry"),
    ],
)
def test_invalid_arguments_raise(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_invalid_bounds_raise(compiler):
    key = nx.random.key(1)
    list_as_bound = r"low: expected a shape that broadcasts to shape=\[\], .*; got \[1\]"
    for draw in (nx.random.uniform, lambda key, low: nx.random.randint(key, low, 9)):
        with pytest.raises(nx.ShapeError, match=list_as_bound):
            nx.jit(lambda k, draw=draw: draw(k, [5]), compiler=compiler)(key)
    with pytest.raises(nx.ShapeError, match="mean: expected"):
        nx.random.normal(key, [2, 3])
    for low, high in ((5, 5), (7, 2)):
        with pytest.raises(nx.ArgumentError, match="high: must exceed low"):
            nx.random.randint(key, low, high)
    rows = nx.random.uniform_split(key, [[0.0], [10.0]], [[1.0], [11.0]], shape=(2, 3))
    assert (rows[0] < 1).tolist() == [True] * 3
    assert (rows[1] >= 10).tolist() == [True] * 3
