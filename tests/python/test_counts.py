"""Binomial, multinomial and Student's t draws against the distributions of SciPy."""

import numpy as np
import pytest
import scipy.stats

import nxla as nx
from nxla._signatures import BoundedCache

DRAWS = 20_000
KEY = nx.random.key(3)
BINOMIALS = [(10, 0.3), (10, 0.9), (1000, 0.02), (40, 0.5), (1000, 0.5), (1000, 0.985)]


def is_plausible(counts, probabilities):
    """Test counts of categories by Pearson's statistic."""
    expected = probabilities * counts.sum()
    usual = expected > 5
    statistic = np.sum((counts - expected)[usual] ** 2 / expected[usual])
    return scipy.stats.chi2.sf(statistic, usual.sum() - 1) > 1e-4


@pytest.mark.parametrize(("n", "p"), BINOMIALS)
def test_binomial(compiler, n, p):
    with nx.default_options(compiler=compiler):
        drawn, _ = nx.random.binomial(KEY, n, p, shape=DRAWS)
    counts = np.bincount(drawn.numpy(), minlength=n + 1)
    assert is_plausible(counts, scipy.stats.binom.pmf(np.arange(n + 1), n, p))


def test_large_binomials():
    n, p = 10**12, 0.37
    drawn = nx.random.binomial(KEY, nx.tensor(n, dtype="s64"), p, DRAWS, "s64").value.numpy()
    scaled = (drawn - n * p) / np.sqrt(n * p * (1 - p))
    assert scipy.stats.kstest(scaled, "norm").pvalue > 1e-4


def test_binomial_edge_cases():
    n, p = [5, 5, 0, 7, -1, 3], [0.0, 1.0, 0.5, 2.0, 0.5, float("nan")]
    assert nx.random.binomial(KEY, n, p).value.tolist() == [0, 5, 0, -1, -1, -1]
    value, key = nx.random.binomial(KEY, 10, [0.5, 0.25], shape=(3, 2), dtype="u8")
    assert value.dtype == "u8"
    assert value.shape == (3, 2)
    split = nx.random.binomial_split(KEY, 10, [0.5, 0.25], shape=(3, 2), dtype="u8")
    assert nx.all(value == split).item()
    assert not nx.all(key == KEY).item()
    with pytest.raises(nx.ShapeError, match="binomial: parameters: must broadcast"):
        nx.random.binomial(KEY, 10, [0.5, 0.25], shape=3)
    with pytest.raises(nx.ShapeError, match=r"binomial: shape: parameters \(2,\) must broadcast"):
        nx.random.binomial(KEY, 10, [0.5, 0.25], shape=())
    with pytest.raises(nx.DTypeError, match="binomial: dtype: must be an integer dtype; got f32"):
        nx.random.binomial(KEY, 10, 0.5, dtype="f32")
    with pytest.raises(nx.ArgumentError, match="binomial: p: a tuple of integers can be a shape"):
        nx.random.binomial(KEY, 10, (1, 0))


def test_multinomial(compiler):
    p = np.array([0.2, 0.3, 0.0, 0.5])
    with nx.default_options(compiler=compiler):
        drawn, _ = nx.random.multinomial(KEY, 6, 2 * p, shape=DRAWS)
    drawn = drawn.numpy()
    assert np.all(drawn.sum(axis=1) == 6)
    outcomes, counts = np.unique(drawn, axis=0, return_counts=True)
    assert is_plausible(counts, scipy.stats.multinomial.pmf(outcomes, 6, p))


def test_multinomials_in_batches():
    p = nx.tensor([[0.25, 0.75], [1.0, 0.0]])
    drawn = nx.random.multinomial_split(KEY, [5, 7], p, shape=(3, 2))
    assert drawn.shape == (3, 2, 2)
    assert nx.sum(drawn, axis=-1).tolist() == [[5, 7]] * 3
    assert drawn[:, 1].tolist() == [[7, 0]] * 3
    assert nx.random.multinomial_split(KEY, 4, [1.0]).tolist() == [4]
    with pytest.raises(
        nx.ShapeError, match=r"multinomial: shape: parameters \(2,\) must broadcast"
    ):
        nx.random.multinomial(KEY, [5, 7], p, shape=())
    with pytest.raises(nx.ShapeError, match="multinomial: parameters: must broadcast"):
        nx.random.multinomial(KEY, [5, 7], p, shape=3)
    with pytest.raises(nx.ShapeError, match="multinomial: p: must have categories"):
        nx.random.multinomial(KEY, 4, 0.5)


@pytest.mark.parametrize("df", [1.0, 4.0, 30.0])
def test_student_t(compiler, df):
    with nx.default_options(compiler=compiler):
        drawn, _ = nx.random.student_t(KEY, df, shape=DRAWS)
    assert scipy.stats.kstest(drawn.numpy(), scipy.stats.t(df).cdf).pvalue > 1e-4


def test_dtypes_of_student_t():
    assert nx.random.student_t(KEY, 3).value.dtype == "f32"
    assert nx.random.student_t_split(KEY, 3, dtype="f64").dtype == "f64"
    assert nx.random.student_t_split(KEY, nx.ones(2, dtype="bf16")).dtype == "bf16"
    with pytest.raises(nx.DTypeError, match="student_t: dtype: must be a float dtype; got s32"):
        nx.random.student_t(KEY, 3.0, dtype="s32")


def test_draws_of_several_keys(compiler):
    keys = nx.random.split(KEY, 3)
    with nx.default_options(compiler=compiler):
        batched = nx.vmap(lambda key: nx.random.binomial_split(key, 100, 0.3))(keys)
        separate = [nx.random.binomial_split(key, 100, 0.3).item() for key in keys]
    assert batched.tolist() == separate


def test_draws_are_traced_once_for_equal_shapes(monkeypatch):
    from nxla import _signatures
    from nxla.ops import counts

    traced = []
    draw = counts._binomial

    def counted(key, n, p):
        traced.append(n.shape)
        return draw(key, n, p)

    monkeypatch.setattr(_signatures, "_programs", BoundedCache())
    monkeypatch.setattr(counts, "_binomial", counted)
    random = nx.random
    for seed in range(3):
        key = random.key(seed)
        for shape, dtype in ((4, "s32"), (5, "s32"), (5, "u8")):
            drawn, _ = random.binomial(key, 9, [0.25], shape, dtype)
            assert drawn.shape == (shape,)
            assert drawn.dtype == dtype
            jitted = nx.jit(lambda key, s=shape, d=dtype: random.binomial(key, 9, [0.25], s, d))
            if seed == 2:
                assert nx.all(jitted(key).value == drawn).item()
    assert traced == [(4,), (5,), (5,)] * 2  # The function is called twice: eagerly and in `jit`.
    for categories in (2, 3, 2):
        value = random.multinomial_split(key, 9, nx.ones(categories), 4)
        assert value.shape == (4, categories)
        assert nx.sum(value, axis=1).tolist() == [9] * 4
    assert len(traced) == 8
    for dtype in ("f32", "f64", "f32"):
        assert random.student_t_split(key, 5.0, 3, dtype).dtype == dtype
    assert len(_signatures._programs._values) == 3 + 1 + 2
