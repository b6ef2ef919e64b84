"""Functions stay accurate for arguments at the ends of the ranges of their dtypes."""

import numpy as np
import pytest

import nxla as nx

INF = np.inf


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("scale", [1e-170, 1e160])
@pytest.mark.parametrize("side", [3, 40])
def test_factorizations_without_overflow_of_squares(dtype, scale, side, compiler):
    a = np.random.default_rng(side).standard_normal((side, side)).astype(dtype)
    p, lower, upper = nx.jit(nx.linalg.lu, compiler=compiler)(nx.tensor(a * scale))
    product = np.asarray(p) @ np.asarray(lower) @ (np.asarray(upper) / scale)
    np.testing.assert_allclose(product, a, atol=1e-12)
    inverse = nx.jit(nx.linalg.inv, compiler=compiler)(nx.tensor(a * scale))
    np.testing.assert_allclose(np.asarray(inverse) @ (a * scale), np.eye(side), atol=1e-10)


def test_pivots_are_compared_without_squares(compiler):
    a = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1e-170], [0.0, 1e-170, 0.0]])
    inverse = nx.jit(nx.linalg.inv, compiler=compiler)(nx.tensor(a))
    np.testing.assert_allclose(np.asarray(inverse) @ a, np.eye(3))


@pytest.mark.parametrize(
    ("rows", "dtype", "expected"),
    [
        ([[300.0, 299.0], [300.0, 300.0]], "f16", 300.0),
        ([[4097.0, 4096.0], [4098.0, 4097.0]], "f32", 1.0),
        ([[30001, 30000], [30002, 30001]], "s32", 1.0),
        ([[4097.0, 0.0, 4096.0], [0.0, 1.0, 0.0], [4098.0, 0.0, 4097.0]], "f32", 1.0),
    ],
)
def test_small_determinants_do_not_cancel(rows, dtype, expected, compiler):
    found = nx.jit(nx.linalg.det, compiler=compiler)(nx.tensor(rows, dtype=dtype))
    assert found.item() == expected


def test_cross_products_of_half_floats_do_not_overflow(compiler):
    x, y = nx.tensor([300.0, 299.0, 1.0], "f16"), nx.tensor([300.0, 300.0, 1.0], "f16")
    cross = nx.jit(nx.linalg.cross, compiler=compiler)(x, y)
    assert cross.dtype == nx.float16
    assert cross.tolist() == [-1.0, 0.0, 300.0]


def test_indices_beyond_signed_integers_are_clamped_or_ignored(compiler):
    def jit(function):
        return nx.jit(function, compiler=compiler)

    x = nx.tensor([[1.0, 2.0, 3.0]])
    for dtype, index in (("u64", 2**63 + 5), ("u32", 2**31 + 5)):
        indices = nx.tensor([index], dtype=dtype)
        assert jit(lambda i: x[nx.tensor([0]), i])(indices).tolist() == [3.0]
        selected = jit(lambda i: nx.take_along_axis(x, i[nx.newaxis], axis=1))(indices)
        assert selected.tolist() == [[3.0]]
    numbers = nx.tensor([0, 2**63, 0], dtype="u64")
    entries = nx.tensor([2.0, 3.0, 5.0])
    assert jit(lambda n: nx.segment_prod(entries, n, 2))(numbers).tolist() == [10.0, 1.0]
    assert jit(lambda n: nx.segment_sum(entries, n, 2))(numbers).tolist() == [7.0, 0.0]


@pytest.mark.parametrize(
    ("count", "q", "method"),
    [(11, 0.1, "higher"), (11, 0.7, "lower"), (1001, 0.999, "higher"), (11, [0.1, 0.7], "nearest")],
)
def test_quantiles_are_found_in_double_precision(count, q, method, compiler):
    x = np.arange(count, dtype=np.float32)
    expected = np.quantile(x.astype(np.float64), q, method=method)
    quantile = nx.jit(lambda x: nx.quantile(x, q, method=method), compiler=compiler)
    assert quantile(x).tolist() == expected.tolist()
    percent = (np.asarray(q) * 100).tolist()
    percentile = nx.jit(lambda x: nx.percentile(x, percent, method=method), compiler=compiler)
    expected = np.percentile(x.astype(np.float64), percent, method=method)
    assert percentile(x).tolist() == expected.tolist()


@pytest.mark.parametrize("position", range(4))
def test_interpolation_next_to_nan_is_nan(position, compiler):
    """Intervals with an end of NaN have no values between their ends."""
    xs, ys = np.arange(4.0), np.array([1.0, 3.0, 2.0, 4.0])
    xs[position] = np.nan
    inside = np.array([n + 0.5 for n in (position - 1, position) if 0 <= n < 3])
    function = nx.jit(nx.interp, compiler=compiler)
    assert np.isnan(np.asarray(function(inside, xs, ys))).all()
    if position > 1:
        found = function(np.array([-1.0, 0.0, 0.5, position - 1.0]), xs, ys)
        np.testing.assert_array_equal(found, [1.0, 1.0, 2.0, ys[position - 1]])


def test_interpolation_passes_through_its_points(compiler):
    def interp(x, *points):
        xp = nx.tensor([0.0, 1.0, 2.0])
        function = nx.jit(nx.interp, compiler=compiler)
        return function(nx.tensor([x]), xp, nx.tensor(points)).item()

    assert interp(2.0, 0.0, 1e8, 1.0) == 1.0
    assert interp(1.0, 0.0, 1.0, INF) == 1.0
    assert interp(0.5, INF, INF, 0.0) == INF
    assert interp(1.5, 0.0, 1.0, -INF) == -INF
    assert interp(1.25, 0.0, -3e38, 3e38) == pytest.approx(-1.5e38)
    assert np.isnan(interp(1.5, 0.0, -INF, INF))
    points = nx.tensor([0.0, 1.0, 2.0]), nx.tensor([0.0, 3.0, 1.0])
    slopes = nx.jit(nx.vmap(nx.grad(lambda x: nx.interp(x, *points))), compiler=compiler)
    assert slopes(nx.tensor([0.25, 0.75, 1.0, 1.75])).tolist() == [3.0, 3.0, -2.0, -2.0]


def test_square_roots_of_complex_numbers():
    z = np.array([-1e30 + 1j, 1.7e308 + 1.7e308j, -1 + 1e-20j, 3e-310 + 1e-312j, complex(-4, -0.0)])
    found = nx.jit(nx.sqrt, compiler="evaluator")(nx.tensor(z))
    np.testing.assert_allclose(np.asarray(found).view(np.float64), np.sqrt(z).view(np.float64))
    z = np.array([710 + 1.5j, 1e-20 - 745j, 700.5 + 2j])
    for function in (nx.exp, nx.cos, nx.sinh, nx.cosh):
        found = np.asarray(nx.jit(function, compiler="evaluator")(nx.tensor(z)))
        with np.errstate(all="ignore"):
            expected = getattr(np, function.__name__)(z)
        np.testing.assert_allclose(found.real, expected.real, rtol=1e-12)
        np.testing.assert_allclose(found.imag, expected.imag, rtol=1e-12)
    found = nx.jit(nx.atanh, compiler="evaluator")(nx.tensor(np.array([1 + 1e-160j])))
    np.testing.assert_allclose(np.asarray(found), np.arctanh(np.array([1 + 1e-160j])))


def test_logsumexp_ignores_elements_with_zero_scale(compiler):
    function = nx.jit(lambda x, s: nx.logsumexp(x, scale=s), compiler=compiler)
    factors = nx.tensor([0.0, 1.0])
    assert function(nx.tensor([1000.0, 0.0]), factors).item() == 0.0
    assert function(nx.tensor([INF, 0.0]), factors).item() == 0.0
    assert function(nx.tensor([5.0, 0.0]), nx.zeros(2)).item() == -INF
    slopes = nx.jit(nx.grad(lambda s, x: nx.logsumexp(x, scale=s)), compiler=compiler)
    np.testing.assert_allclose(slopes(factors, nx.tensor([1.0, 0.0])), [np.e, 1.0], rtol=1e-6)


def test_norms_of_negative_order_follow_the_smallest_element(compiler):
    def norm(x, order):
        return nx.jit(lambda x: nx.linalg.vector_norm(x, ord=order), compiler=compiler)(x).item()

    assert norm(nx.tensor([1e25, 1e-20]), -1) == np.float32(1e-20)
    assert norm(nx.tensor([INF, INF]), -1) == INF
    assert norm(nx.tensor([0.0, 2.0]), -2) == 0.0
    assert norm(nx.tensor([2.0, 2.0]), -1) == 1.0


def test_variance_of_too_few_elements_is_infinite(compiler):
    x = nx.tensor([1.0, 2.0])
    for correction in (2, 3):
        variance = nx.jit(lambda x, c=correction: nx.var(x, correction=c), compiler=compiler)
        assert variance(x).item() == INF


def test_uniform_spans_beyond_the_largest_float(compiler):
    low, high = nx.tensor(-3e38), nx.tensor(3e38)
    draw = nx.jit(lambda k: nx.random.uniform_split(k, low, high, shape=(50,)), compiler=compiler)
    drawn = np.asarray(draw(nx.random.key(0)))
    assert (np.abs(drawn) <= 3.0001e38).all()
    assert (drawn < 0).sum() in range(10, 40)


def test_negative_powers_of_integers(compiler):
    x = nx.tensor([0, 2, 1, -1, -2])
    for exponent in (-1, -2, -3):
        power = nx.jit(lambda x, e=exponent: x**e, compiler=compiler)(x)
        assert power.tolist() == [0, 0, 1, (-1) ** -exponent, 0]


def test_hypot_at_infinity(compiler):
    hypot = nx.jit(nx.hypot, compiler=compiler)
    assert hypot(INF, np.nan).item() == INF
    assert np.isnan(hypot(0.0, np.nan).item())
    slopes = nx.jit(nx.grad(nx.hypot, argnums=(0, 1)), compiler=compiler)(INF, 1.0)
    assert [slope.item() for slope in slopes] == [1.0, 0.0]
    for derivative in (nx.grad, nx.jacfwd):
        slopes = nx.jit(derivative(nx.hypot, argnums=(0, 1)), compiler=compiler)
        assert [slope.item() for slope in slopes(INF, -INF)] == [0.5, -0.5]
        assert [slope.item() for slope in slopes(2.0, -INF)] == [0.0, -1.0]


def test_logaddexp_of_equal_infinities_has_equal_derivatives(compiler):
    slopes = nx.jit(nx.grad(nx.logaddexp, argnums=(0, 1)), compiler=compiler)
    for x in (INF, -INF, 3.0):
        assert [slope.item() for slope in slopes(x, x)] == [0.5, 0.5]


@pytest.mark.parametrize("dtype", ["f8_e5m2", "f8_e4m3fn", "bf16", "f16"])
def test_logaddexp_of_narrow_floats_rounds_once(dtype, compiler):
    generator = np.random.default_rng(0)
    x, y = (nx.tensor(generator.uniform(-8, 8, 500), dtype=dtype) for _ in "xy")
    found = nx.jit(nx.logaddexp, compiler=compiler)(x, y)
    assert found.dtype == x.dtype
    exact = np.logaddexp(nx.astype(x, "f64"), nx.astype(y, "f64"))
    wanted = nx.astype(nx.tensor(exact), dtype)
    np.testing.assert_array_equal(nx.astype(found, "f64"), nx.astype(wanted, "f64"))


@pytest.mark.parametrize(
    ("actual", "expected", "dtype", "largest"),
    [
        ([-128], [127], "s8", 255.0),
        ([2**31 - 1], [-(2**31 - 1)], "s32", 2.0**32 - 2),
        ([0], [2**64 - 1], "u64", 2.0**64),
        ([1], [200], "u8", 199.0),
    ],
)
def test_assert_all_close_does_not_wrap(actual, expected, dtype, largest):
    actual, expected = nx.tensor(actual, dtype), nx.tensor(expected, dtype)
    with pytest.raises(AssertionError, match=f"differ by up to {largest}".replace("+", r"\+")):
        nx.testing.assert_all_close(actual, expected, atol=5.0)
    nx.testing.assert_all_close(nx.tensor([1], dtype), nx.tensor([2], dtype), atol=2.0)


def test_assert_all_close_of_complex_numbers():
    nx.testing.assert_all_close([1j], [1j + 1e-6])
    with pytest.raises(AssertionError, match=r"differ by up to 5\.0 "):
        nx.testing.assert_all_close([3.0], [4j])


@pytest.mark.parametrize(
    "xs", [[-np.inf, 0.0], [0.0, np.inf], [-np.inf, np.inf], [-np.inf, 0.0, np.inf]]
)
def test_interpolation_at_infinite_points_is_the_value_there(xs, compiler):
    ys = np.arange(1.0, len(xs) + 1)
    found = nx.jit(nx.interp, compiler=compiler)(np.array(xs), np.array(xs), ys)
    np.testing.assert_array_equal(np.asarray(found), ys)
