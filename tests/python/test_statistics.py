"""Quantiles, statistics without NaN, counts and interpolation, compared with NumPy."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import nxla as nx

METHODS = ["linear", "lower", "higher", "midpoint", "nearest"]
BACKENDS = ["evaluator", "xla"]

shapes = hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4)
floats = st.floats(-100, 100, width=32, allow_subnormal=False)
floats_or_nan = st.one_of(floats, st.just(np.nan))
# XLA treats subnormal numbers as zero.
fractions = st.floats(0, 1, allow_subnormal=False)


def axes_of(x):
    """Return a strategy for axes of an array, in the forms that NumPy accepts."""
    subsets = st.lists(st.sampled_from(range(x.ndim)), min_size=1, unique=True).map(tuple)
    return st.one_of(st.none(), st.integers(-x.ndim, x.ndim - 1), subsets)


def backend_settings(backend):
    """Return settings with fewer examples for backends that compile."""
    return settings(max_examples=100 if backend == "evaluator" else 12, deadline=None)


@pytest.mark.parametrize("backend", BACKENDS)
def test_quantiles_match_numpy(backend):
    @backend_settings(backend)
    @given(st.data())
    def check(data):
        x = data.draw(hnp.arrays(np.float64, shapes, elements=floats_or_nan))
        q = data.draw(st.one_of(fractions, hnp.arrays(np.float64, 3, elements=fractions)))
        axis, keep = data.draw(axes_of(x)), data.draw(st.booleans())
        method = data.draw(st.sampled_from(METHODS))
        options = {"axis": axis, "method": method, "keepdims": keep}
        with nx.default_options(compiler=backend), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for ours, theirs, fraction in [
                (nx.quantile, np.quantile, q),
                (nx.nanquantile, np.nanquantile, q),
                (nx.percentile, np.percentile, q * 100),
                (nx.nanpercentile, np.nanpercentile, q * 100),
            ]:
                got, expected = (
                    np.asarray(ours(x, fraction, **options)),
                    theirs(x, fraction, **options),
                )
                if method in ("linear", "midpoint"):
                    np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-9)
                else:
                    # A rounding error in the position selects another neighbor.
                    reference = theirs(
                        x, np.clip(fraction, 0, 100), **{**options, "method": "linear"}
                    )
                    assert got.shape == np.shape(reference)
                    np.testing.assert_array_equal(np.isnan(got), np.isnan(reference))

    check()


def test_quantile_methods(compiler):
    x = np.array([[3.0, 1.0, 2.0, 10.0, 7.0], [0.0, -1.0, 5.0, 5.0, 9.0]])
    q = np.array([0.0, 0.1, 0.25, 0.5, 0.8, 1.0])
    with nx.default_options(compiler=compiler):
        for method in METHODS:
            got = nx.quantile(x, q, axis=1, method=method)
            np.testing.assert_allclose(got, np.quantile(x, q, axis=1, method=method))
        assert nx.quantile(x, q, axis=1).shape == (6, 2)
        assert np.isnan(np.asarray(nx.quantile(x, [-0.1, 1.1]))).all()
        # The distance of equal infinities is zero, not NaN.
        assert nx.quantile([0.0, np.inf, np.inf], [0.5, 0.7]).tolist() == [np.inf, np.inf]
        assert nx.quantile([1, 2], 0.5).dtype == nx.float32
        assert nx.quantile(nx.tensor([1.0, 2.0], "f16"), 0.5).dtype == nx.float16


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
def test_quantiles_between_extreme_elements(dtype, compiler):
    inf = np.inf
    largest = nx.finfo(dtype).max
    cases = [
        ([-inf, 0.0], 0.25, -inf),
        ([-inf, 0.0], 0.5, -inf),
        ([-inf, 0.0], 1.0, 0.0),
        ([0.0, inf], 0.0, 0.0),
        ([0.0, inf], 0.25, inf),
        ([-inf, -inf, inf], 0.25, -inf),
        ([-inf, inf], 0.5, np.nan),
        ([-largest, largest], 0.5, 0.0),
        ([-largest, largest], 0.75, largest / 2),
        ([largest, largest], 0.25, largest),
    ]
    for elements, q, expected in cases:
        x = nx.tensor(elements, dtype)

        def all_methods(x, q=q):
            functions = (nx.quantile, nx.nanquantile)
            return [f(x, q, method=m) for f in functions for m in ("linear", "midpoint")]

        linear, midpoint, *ignoring = [y.item() for y in nx.jit(all_methods, compiler=compiler)(x)]
        np.testing.assert_allclose([linear, ignoring[0]], expected, rtol=1e-2)
        if q == 0.5:
            np.testing.assert_equal([midpoint, ignoring[1]], [expected] * 2)
            np.testing.assert_equal(nx.nanmedian(x).item(), expected)


@pytest.mark.parametrize("dtype", ["bool", "s4", "u8", "s16", "u32", "s64", "f16", "f32", "c64"])
def test_cumulative_functions_agree_on_dtypes(dtype, compiler):
    x = nx.astype(nx.ones(300), dtype)
    for name, other in [("nancumsum", "cumulative_sum"), ("nancumprod", "cumulative_prod")]:
        found = nx.jit(getattr(nx, name), compiler=compiler)(x)
        assert found.dtype == getattr(nx, other)(x).dtype
        expected = np.arange(1, 301) if name == "nancumsum" else np.ones(300)
        np.testing.assert_array_equal(np.asarray(found), expected)


def test_quantile_rejects_invalid_arguments():
    with pytest.raises(nx.ArgumentError, match="must have at least one element"):
        nx.quantile(nx.zeros((2, 0)), 0.5, axis=1)
    with pytest.raises(nx.ShapeError, match="scalar or a vector"):
        nx.quantile([1.0], [[0.5]])
    with pytest.raises(nx.DTypeError, match="real"):
        nx.quantile([1j], 0.5)
    with pytest.raises(nx.ArgumentError, match="method: must be"):
        nx.quantile([1.0], 0.5, method="cubic")


NAMES = ["nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar", "nanstd", "nanmedian"]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", NAMES)
def test_nan_reductions_match_numpy(backend, name):
    @backend_settings(backend)
    @given(st.data())
    def check(data):
        x = data.draw(hnp.arrays(np.float64, shapes, elements=floats_or_nan))
        axis, keep = data.draw(axes_of(x)), data.draw(st.booleans())
        with nx.default_options(compiler=backend), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            got = getattr(nx, name)(x, axis, keepdims=keep)
            expected = getattr(np, name)(x, axis=axis, keepdims=keep)
        assert got.shape == expected.shape
        np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-9, atol=1e-6)

    check()


def test_nan_reductions_of_special_values(compiler):
    nan, inf = np.nan, np.inf
    x = nx.tensor([[nan, -inf, 1.0], [nan, nan, -inf], [nan, nan, nan]])
    with nx.default_options(compiler=compiler):
        assert nx.nanargmax(x, axis=1).tolist() == [2, 2, -1]
        assert nx.nanargmin(x, axis=1).tolist() == [1, 2, -1]
        assert nx.nanargmax(x).item() == 2
        assert nx.nanargmax([3, 9, 4]).item() == 1
        assert nx.nancumsum([1.0, nan, 2.0]).tolist() == [1.0, 1.0, 3.0]
        assert nx.nancumprod([[2.0, nan], [nan, 3.0]], axis=1).tolist() == [[2.0, 2.0], [1.0, 3.0]]
        assert nx.nanvar([1.0, nan, 3.0], correction=1).item() == 2.0
        assert np.isnan(nx.nanvar([1.0, nan], correction=1).item())
        assert nx.nansum([1, 2]).dtype == nx.int32
        # A sum that fits the dtype does not overflow.
        assert nx.nanmean(nx.full(4000, 100.0, dtype="f16")).item() == 100.0
        values = nx.tensor([1 + 1j, complex(nan, 0), 3 - 1j])
        assert nx.nansum(values).item() == 4 + 0j
        assert nx.nanmean(values).item() == 2 + 0j
        assert nx.nanvar(values).item() == pytest.approx(2.0)
        empty = nx.zeros((2, 0), "bool")
        for name in ("sum", "prod", "max", "min"):
            found = getattr(nx, f"nan{name}")(empty, axis=1)
            expected = getattr(nx, name)(empty, axis=1)
            assert (found.dtype, found.tolist()) == (expected.dtype, expected.tolist()), name


def test_derivatives_of_nan_reductions(compiler):
    x = nx.tensor([1.0, np.nan, 4.0, 2.0])
    with nx.default_options(compiler=compiler):
        assert nx.grad(nx.nansum)(x).tolist() == [1.0, 0.0, 1.0, 1.0]
        assert nx.grad(nx.nanmax)(x).tolist() == [0.0, 0.0, 1.0, 0.0]
        np.testing.assert_allclose(nx.grad(nx.nanmean)(x), [1 / 3, 0, 1 / 3, 1 / 3], rtol=1e-6)
        expected = 2 * (np.array([1.0, 7 / 3, 4.0, 2.0]) - 7 / 3) / 3
        np.testing.assert_allclose(nx.grad(nx.nanvar)(x), expected, atol=1e-6)
        slope = nx.grad(lambda x: nx.quantile(x, 0.25))(nx.tensor([4.0, 1.0, 3.0]))
        assert slope.tolist() == [0.0, 0.5, 0.5]


@pytest.mark.parametrize("dtype", ["f16", "f64"])
@pytest.mark.parametrize("name", ["quantile", "nanquantile", "percentile", "nanpercentile"])
def test_derivatives_of_quantiles_of_equal_elements(name, dtype, compiler):
    """Both neighbors of a position have their share of the derivative, also if they are equal."""
    scale = 100 if name.endswith("percentile") else 1
    fractions = [0.0, 0.3, 0.5, 0.8, 1.0]

    def function(x):
        return getattr(nx, name)(x, [fraction * scale for fraction in fractions])

    for x in ([1.1, 1.1], [1.1, 1.1, 1.1], [0.3, 2.0, 0.3, 2.0, 0.3], [0.0, -0.0]):
        order = np.argsort(x, kind="stable")
        expected = np.zeros((len(fractions), len(x)))
        for row, q in zip(expected, fractions, strict=True):
            position = q * (len(x) - 1)
            row[order[int(np.floor(position))]] += 1 - position % 1
            row[order[int(np.ceil(position))]] += position % 1
        tensor = nx.tensor(x, dtype)
        values, slopes = nx.jit(lambda x: (function(x), nx.jacrev(function)(x)), compiler=compiler)(
            tensor
        )
        np.testing.assert_allclose(nx.astype(slopes, "f64"), expected, atol=1e-3)
        if len(set(x)) == 1:
            assert values.tolist() == [tensor[0].item()] * len(fractions)
    slope = nx.jit(nx.grad(nx.nanmedian), compiler=compiler)(nx.tensor([1.0, np.nan, 1.0], dtype))
    assert slope.tolist() == [0.5, 0.0, 0.5]


@pytest.mark.parametrize("backend", BACKENDS)
def test_histograms_match_numpy(backend):
    @backend_settings(backend)
    @given(st.data())
    def check(data):
        x = data.draw(
            hnp.arrays(
                np.float64, st.integers(1, 20), elements=st.floats(-5, 5, allow_subnormal=False)
            )
        )
        weights = data.draw(hnp.arrays(np.float64, x.shape, elements=st.floats(0, 2)))
        edges = np.unique(data.draw(hnp.arrays(np.float64, 5, elements=st.integers(-5, 5))))
        with nx.default_options(compiler=backend):
            if len(edges) > 1:
                for options in ({}, {"weights": weights}):
                    counts, found_edges = nx.histogram(x, edges, **options)
                    expected, _ = np.histogram(x, edges, **options)
                    np.testing.assert_allclose(counts, expected, atol=1e-9)
                    np.testing.assert_array_equal(found_edges, edges)
            counts, found_edges = nx.histogram(x, bins=4, range=(-2.0, 2.0))
            expected, their_edges = np.histogram(x, bins=4, range=(-2.0, 2.0))
            np.testing.assert_array_equal(counts, expected)
            np.testing.assert_allclose(found_edges, their_edges)

    check()


def test_histogram_bins_and_errors(compiler):
    with nx.default_options(compiler=compiler):
        counts, edges = nx.jit(lambda x: nx.histogram(x, bins=2))(nx.tensor([0.0, 1.0, 4.0]))
        assert counts.tolist() == [2, 1]
        assert edges.tolist() == [0.0, 2.0, 4.0]
        assert counts.dtype == nx.int32
        density, _ = nx.histogram([0.0, 1.0, 4.0], bins=[0.0, 1.0, 5.0], density=True)
        np.testing.assert_allclose(density, [1 / 3, 1 / 6], rtol=1e-6)
        x = np.array([0.3, 1.2, 2.2, 2.5, 2.7, 0.1, 0.2])
        density, _ = nx.histogram(x, 5, (-2, 3), density=True)
        expected, _ = np.histogram(x, 5, (-2, 3), density=True)
        np.testing.assert_allclose(density, expected, rtol=1e-14)
        assert nx.histogram([7.0], bins=1)[1].tolist() == [6.5, 7.5]
        assert nx.histogram([1.0, np.nan], bins=[0.0, 2.0])[0].tolist() == [1]
        assert nx.histogram(nx.zeros(0), bins=2)[0].tolist() == [0, 0]
    with pytest.raises(nx.ArgumentError, match="at least 1"):
        nx.histogram([1.0], bins=0)
    with pytest.raises(nx.ArgumentError, match="two finite increasing numbers"):
        nx.histogram([1.0], range=(2.0, 1.0))
    with pytest.raises(nx.ShapeError, match="two edges"):
        nx.histogram([1.0], bins=[1.0])
    with pytest.raises(nx.ShapeError, match="weights"):
        nx.histogram([1.0], weights=[1.0, 2.0])


def test_bincount(compiler):
    with nx.default_options(compiler=compiler):
        x = np.array([0, 5, 1, 1, 3], "u8")
        np.testing.assert_array_equal(nx.bincount(x), np.bincount(x))
        np.testing.assert_array_equal(nx.bincount(x, minlength=9), np.bincount(x, minlength=9))
        weights = np.arange(5.0)
        np.testing.assert_allclose(nx.bincount(x, weights), np.bincount(x, weights))
        assert nx.jit(lambda x: nx.bincount(x, length=3))(nx.tensor([2, 7, -1, 2])).tolist() == [
            0, 0, 2,
        ]  # fmt: skip
        assert nx.bincount(nx.zeros(0, dtype="s32")).tolist() == []
    with pytest.raises(nx.TraceError, match="bincount: length: is required"):
        nx.jit(nx.bincount)(nx.tensor([1]))
    with pytest.raises(nx.ArgumentError, match="negative"):
        nx.bincount([-1])
    with pytest.raises(nx.DTypeError):
        nx.bincount([1.5])
    with pytest.raises(nx.ShapeError):
        nx.bincount([[1]])


def test_segment_reductions(compiler):
    rng = np.random.default_rng(0)
    with nx.default_options(compiler=compiler):
        for shape in [(12,), (12, 3), (7, 2, 2)]:
            data = rng.integers(-9, 9, shape).astype("f4")
            ids = rng.integers(-1, 5, shape[0])
            for name, ufunc, initial in [
                ("sum", np.add, 0.0),
                ("prod", np.multiply, 1.0),
                ("max", np.maximum, -np.inf),
                ("min", np.minimum, np.inf),
            ]:
                expected = np.full((6, *shape[1:]), initial, "f4")
                for entry, number in zip(data, ids, strict=True):
                    if number >= 0:
                        expected[number] = ufunc(expected[number], entry)
                got = nx.jit(getattr(nx, f"segment_{name}"), static_argnums=(2,))(data, ids, 6)
                np.testing.assert_array_equal(got, expected)
        assert nx.segment_max([1, 2], [0, 2]).tolist() == [1, -(2**31), 2]
        assert nx.segment_sum([1, 2, 3], [1, 1, 0]).tolist() == [3, 3]
        for name in ("max", "min"):
            reduced = getattr(nx, f"segment_{name}")([np.nan, 1.0, 2.0], [0, 0, 1])
            np.testing.assert_array_equal(reduced, [np.nan, 2.0])
        assert nx.segment_sum(nx.zeros((0, 2)), nx.zeros(0, dtype="s32"), 2).shape == (2, 2)
        assert nx.segment_max(nx.zeros((0,)), nx.zeros(0, dtype="s32"), 1).tolist() == [-np.inf]


def test_derivatives_of_segment_reductions(compiler):
    data, ids = nx.tensor([3.0, 5.0, 2.0, 4.0]), nx.tensor([0, 1, 0, 7])
    weights = nx.tensor([10.0, 100.0])
    with nx.default_options(compiler=compiler):
        for name, expected in [
            ("sum", [10.0, 100.0, 10.0, 0.0]),
            ("prod", [20.0, 100.0, 30.0, 0.0]),
            ("max", [10.0, 100.0, 0.0, 0.0]),
            ("min", [0.0, 100.0, 10.0, 0.0]),
        ]:
            function = getattr(nx, f"segment_{name}")
            slope = nx.grad(lambda x, f=function: nx.sum(weights * f(x, ids, 2)))(data)
            assert slope.tolist() == expected


def test_segment_reductions_reject_invalid_arguments():
    with pytest.raises(nx.TraceError, match="num_segments: is required"):
        nx.jit(nx.segment_sum)(nx.tensor([1.0]), nx.tensor([0]))
    with pytest.raises(nx.DTypeError, match="segment_ids"):
        nx.segment_sum([1.0], [0.5], 1)
    with pytest.raises(nx.ShapeError, match="one number for each entry"):
        nx.segment_sum([1.0, 2.0], [0], 1)
    with pytest.raises(nx.DTypeError, match="real"):
        nx.segment_max([1j], [0], 1)
    with pytest.raises(nx.ArgumentError, match="num_segments: must be at least 0"):
        nx.segment_sum([1.0], [0], -1)


@pytest.mark.parametrize("backend", BACKENDS)
def test_interp_matches_numpy(backend):
    @backend_settings(backend)
    @given(st.data())
    def check(data):
        numbers = st.floats(-10, 10, width=16)
        xp = data.draw(hnp.arrays(np.float64, st.integers(1, 6), elements=numbers, unique=True))
        fp = data.draw(hnp.arrays(np.float64, xp.shape, elements=numbers))
        x = data.draw(hnp.arrays(np.float64, shapes, elements=numbers))
        period = data.draw(st.sampled_from([None, 7.5, -3.0]))
        with nx.default_options(compiler=backend):
            points = np.sort(xp)
            np.testing.assert_allclose(nx.interp(x, points, fp), np.interp(x, points, fp))
            got = nx.interp(x, points, fp, left=-1.0, right=8.0)
            np.testing.assert_allclose(got, np.interp(x, points, fp, left=-1.0, right=8.0))
            if period is not None and len(np.unique(xp % abs(period))) == len(xp):
                got = nx.interp(x, xp, fp, period=period)
                np.testing.assert_allclose(got, np.interp(x, xp, fp, period=period), atol=1e-9)

    check()


def test_interp_edge_cases(compiler):
    with nx.default_options(compiler=compiler):
        # Of two points at the same position, the last one is used, as in NumPy.
        assert nx.interp([1.0], [0.0, 1.0, 1.0, 2.0], [0.0, 1.0, 5.0, 6.0]).tolist() == [5.0]
        assert np.isnan(nx.interp(np.nan, [0.0, 1.0], [0.0, 1.0]).item())
        slope = nx.grad(lambda x: nx.interp(x, [0.0, 1.0, 3.0], [0.0, 10.0, 14.0]))
        assert [slope(x).item() for x in (0.5, 2.0, 9.0)] == [10.0, 2.0, 0.0]
        fractions = nx.grad(lambda fp: nx.interp(0.25, [0.0, 1.0], fp))(nx.tensor([3.0, 4.0]))
        assert fractions.tolist() == [0.75, 0.25]
        huge = nx.tensor([0.0, 1e38, 2e38])
        found = nx.interp(huge, nx.tensor([-3e38, 3e38]), nx.tensor([-1.0, 1.0]))
        np.testing.assert_allclose(found, [0, 1 / 3, 2 / 3], rtol=1e-6, atol=1e-7)
        # Points at a finite distance from an end of an interval have its value, as in NumPy.
        xp, fp = nx.tensor([-np.inf, 0.0, 1.0, np.inf]), nx.tensor([1.0, 2.0, 3.0, 4.0])
        x = nx.tensor([-np.inf, -1.0, 0.5, 2.0, np.inf])
        assert nx.interp(x, xp, fp).tolist() == [1.0, 2.0, 2.5, 3.0, 4.0]
        assert np.isnan(nx.interp(np.nan, xp, fp).item())
        for slope in (nx.grad(nx.interp), nx.jacfwd(nx.interp)):
            assert [slope(x, xp, fp).item() for x in (-1.0, 0.5, 2.0)] == [0.0, 1.0, 0.0]
        assert nx.grad(nx.interp, argnums=1)(-1.0, xp, fp).tolist() == [0.0] * 4
    with pytest.raises(nx.ShapeError, match="as long as"):
        nx.interp(0.0, [0.0, 1.0], [0.0])
    with pytest.raises(nx.ArgumentError, match="period"):
        nx.interp(0.0, [0.0], [0.0], period=0.0)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_isclose_matches_numpy(data):
    special = st.sampled_from([0.0, 1.0, 1.0 + 1e-6, 1.1, -1.0, np.inf, -np.inf, np.nan])
    x = data.draw(hnp.arrays(np.float64, 4, elements=special))
    y = data.draw(hnp.arrays(np.float64, 4, elements=special))
    equal_nan = data.draw(st.booleans())
    for rtol, atol in [(1e-5, 1e-8), (0.0, 0.2)]:
        options = {"rtol": rtol, "atol": atol, "equal_nan": equal_nan}
        expected = np.isclose(x, y, **options)
        np.testing.assert_array_equal(nx.isclose(x, y, **options), expected)
        assert nx.allclose(x, y, **options).item() == expected.all()


def test_vectorized_bincount_requires_a_length():
    x = nx.vectorize(nx.tensor([[0, 1, 1], [2, 2, 2]]), "row")
    with pytest.raises(nx.ArgumentError, match=r"^bincount: length: is required for vectorized"):
        nx.bincount(x)
    with pytest.raises(nx.ArgumentError, match=r"^segment_sum: num_segments: is required for vec"):
        nx.segment_sum(x, x)
    assert nx.bincount(x, length=3).tolist() == [[1, 2, 0], [0, 0, 3]]


@pytest.mark.parametrize("compiler", ["evaluator", "xla"])
def test_interp_of_nan_with_equal_points(compiler):
    xp, fp = nx.tensor([1.0, 1.0, 2.0]), nx.tensor([0.0, 5.0, 6.0])
    found = nx.jit(nx.interp, compiler=compiler)(nx.tensor([float("nan"), 1.5]), xp, fp)
    np.testing.assert_array_equal(found, [np.nan, 5.5])


@pytest.mark.parametrize(("x", "mean"), [((3, 2), (4, 2)), ((2, 3, 2), (5, 1, 2)), ((3, 2), (2,))])
def test_covariance_broadcasts_means(x, mean, compiler):
    rng = np.random.default_rng(7)
    x, mean = rng.normal(size=x), rng.normal(size=mean)
    centered = x - mean[..., None, :]
    expected = np.swapaxes(centered, -1, -2) @ centered / x.shape[-2]
    found = nx.jit(nx.covariance, compiler=compiler)(x, mean)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


REDUCTIONS = [
    "all", "any", "argmax", "argmin", "count_nonzero", "logsumexp", "max", "mean", "median", "min",
    "mode", "nanargmax", "nanargmin", "nanmax", "nanmean", "nanmedian", "nanmin", "nanprod",
    "nanstd", "nansum", "nanvar", "prod", "std", "sum", "var",
]  # fmt: skip


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_keep_the_names_of_the_other_axes(name):
    x = nx.tensor(np.arange(24.0).reshape(2, 3, 4), names=["a", "b", "c"])
    function = getattr(nx, name)
    assert list(function(x, axis="b").names) == ["a", "c"]
    assert list(function(x, axis=1, keepdims=True).names) == ["a", "b", "c"]
    if "arg" not in name and name != "mode":
        assert list(function(x, axis=("a", "b")).names) == ["c"]
        assert list(function(x, axis=("a", "b"), keepdims=True).names) == ["a", "b", "c"]


@pytest.mark.parametrize("function", [nx.quantile, nx.nanquantile])
def test_quantiles_keep_the_names_of_the_other_axes(function):
    x = nx.tensor(np.arange(24.0).reshape(2, 3, 4), names=["a", "b", "c"])
    q = nx.tensor([0.25, 0.5], names=["q"])
    assert list(function(x, 0.5, axis="b").names) == ["a", "c"]
    assert list(function(x, [0.25, 0.5], axis=("a", "b")).names) == [None, "c"]
    assert list(function(x, q, axis="c", keepdims=True).names) == ["q", "a", "b", "c"]
    assert list(function(nx.rename(x, [None] * 3), q, axis=0).names) == ["q", None, None]
    expected = np.quantile(x.numpy(), [0.25, 0.5], axis=(0, 1))
    np.testing.assert_allclose(function(x, q, axis=("a", "b")), expected)
