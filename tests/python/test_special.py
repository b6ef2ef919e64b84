"""`nx.special` compared with SciPy, and derivatives compared with closed forms and differences."""

import math

import numpy as np
import pytest
import scipy.special

import nxla as nx
from nxla._signatures import BoundedCache

special = nx.special

BESSEL = ("i0", "i0e", "i1", "i1e", "j0", "j1", "k0", "k0e", "k1", "k1e", "y0", "y1")
#: The functions of one argument, with the range of their arguments.
UNARY = {name: (1e-3 if name[0] in "ky" else -40.0, 40.0) for name in BESSEL} | {
    "entr": (1e-3, 5.0),
    "logit": (0.01, 0.99),
}
#: Arguments of the other functions, inside of their domains.
RNG = np.random.default_rng(0)
WIDE = 10.0 ** RNG.uniform(-2, 3.5, size=(2, 400))
MULTIVARIATE = {
    "betainc": (*WIDE, RNG.beta(np.maximum(WIDE[0], 0.1), np.maximum(WIDE[1], 0.1))),
    "betaln": tuple(WIDE[:, :200]),
    "gammainc": (WIDE[0], WIDE[0] * 10.0 ** RNG.normal(0, 0.3, size=400)),
    "gammaincc": (WIDE[0], WIDE[0] * 10.0 ** RNG.normal(0, 0.3, size=400)),
    "polygamma": (RNG.integers(0, 8, size=200).astype(float), 10.0 ** RNG.uniform(-2, 3, 200)),
    "xlog1py": (np.array([0.0, 2.0, 0.0]), np.array([-1.0, 1e-9, 3.0])),
    "xlogy": (np.array([0.0, 2.0, 0.0]), np.array([0.0, 3.0, 3.0])),
    "zeta": (RNG.uniform(1.01, 30, 200), 10.0 ** RNG.uniform(-1, 2, 200)),
}


def scipy_value(name, *arguments):
    with np.errstate(all="ignore"):
        return getattr(scipy.special, name)(*arguments)


#: The number of elements of all arguments on XLA.
LENGTH = 2000


def values(compiler, name, *arguments):
    """Return the values of a function as an array.

    The arguments are repeated to one length on XLA, which takes long to compile these functions, so
    that all tests share one program for each function and dtype.
    """
    count = len(arguments[0])
    if compiler == "xla":
        wide = [np.resize(nx.astype(x, "f64"), LENGTH) for x in arguments]
        arguments = [nx.tensor(x, dtype=arguments[0].dtype) for x in wide]
    with nx.default_options(compiler=compiler):
        found = getattr(special, name)(*arguments)
    assert {x.dtype for x in arguments} == {found.dtype}
    return np.asarray(nx.astype(found, "f64"))[:count]


#: Other names of operations, whose values other tests check.
OPERATIONS = {
    "digamma": nx.digamma, "erf": nx.erf, "erfc": nx.erfc, "erfinv": nx.erf_inv,
    "expit": nx.sigmoid, "gammaln": nx.lgamma, "logsumexp": nx.logsumexp,
}  # fmt: skip


def test_every_function_has_a_case():
    assert set(special.__all__) == UNARY.keys() | MULTIVARIATE.keys() | OPERATIONS.keys()
    assert all(getattr(special, name) is function for name, function in OPERATIONS.items())


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", ["f64", "f32", "bf16"])
def test_functions_of_one_argument(compiler, name, dtype):
    x = np.linspace(*UNARY[name], 301)
    tensor = nx.tensor(x, dtype=dtype)
    x = np.asarray(nx.astype(tensor, "f64"))
    expected = scipy_value(name, x)
    found = values(compiler, name, tensor)
    eps = 1e-14 if dtype == "f64" else 2 * float(nx.finfo(dtype).eps)
    # Near zeros of a function, the error is absolute.
    size = np.maximum(np.abs(expected), {"j": 0.1, "y": 0.1, "e": 0.1, "l": 1.0}.get(name[0], 0.0))
    error = np.abs(found - expected)
    assert np.all(error <= eps * size), (x[np.argmax(error / size)], np.max(error / size))


@pytest.mark.parametrize("name", MULTIVARIATE)
def test_functions_of_several_arguments(compiler, name):
    arguments = MULTIVARIATE[name]
    expected = scipy_value(
        name,
        *(a.astype(int) if name == "polygamma" and a is arguments[0] else a for a in arguments),
    )
    found = values(compiler, name, *map(nx.tensor, arguments))
    # SciPy itself has these errors for large parameters.
    np.testing.assert_allclose(
        found, expected, rtol=1e-9, atol=1e-9 if name == "betaln" else 1e-300
    )


def test_values_beyond_the_accuracy_of_scipy():
    # Computed with 50 digits by mpmath.
    beta = special.betaln(
        *(nx.tensor(x, dtype="f64") for x in (9368.682507615777, 0.11622328569207956))
    )
    assert beta.item() == pytest.approx(1.0328109152983658, rel=1e-14)
    inside = [
        nx.tensor(x, dtype="f64")
        for x in (9528.47047414844, 4006.4215217060337, 0.7017481980282627)
    ]
    assert special.betainc(*inside).item() == pytest.approx(0.2830386815273777, rel=1e-13)


@pytest.mark.parametrize("name", ["gammainc", "gammaincc"])
def test_edges_of_incomplete_gamma_functions(name):
    a = np.array([0.0, 1.0, 1.0, math.inf, -1.0, 2.0, math.nan, 1.0, 3.0])
    x = np.array([1.0, 0.0, math.inf, 2.0, 1.0, -1.0, 1.0, math.nan, 3.0])
    found = getattr(special, name)(nx.tensor(a), nx.tensor(x)).numpy()
    np.testing.assert_allclose(found, scipy_value(name, a, x), rtol=1e-14)


def test_edges_of_the_incomplete_beta_function():
    a, b = np.array([1.0, 1.0, -1.0, 2.0, 2.0]), np.array([2.0, 2.0, 2.0, 2.0, 2.0])
    x = np.array([0.0, 1.0, 0.5, 1.5, math.nan])
    found = special.betainc(*map(nx.tensor, (a, b, x))).tolist()
    assert found[:2] == [0.0, 1.0]
    assert all(map(math.isnan, found[2:]))


@pytest.mark.parametrize("name", BESSEL)
def test_edges_of_bessel_functions(name):
    x = np.array([0.0, math.inf, math.nan] + ([-1.0] if name[0] in "ky" else [-math.inf]))
    with np.errstate(all="ignore"):
        expected = scipy_value(name, x)
    if name in ("i0e", "i1e", "j0", "j1", "y0", "y1"):  # SciPy returns NaN for some limits.
        expected[1] = 0.0
    if name in ("i0e", "i1e", "j0", "j1"):
        expected[3] = 0.0
    if name in ("i0", "i1"):
        expected[[1, 3]] = [math.inf, -math.inf if name == "i1" else math.inf]
    found = getattr(special, name)(nx.tensor(x)).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-15)


#: Arguments whose values would cancel or underflow in the formulas of other arguments, and the
#: values, computed with 400 digits by mpmath.
EXACT = {
    "betainc": [
        ((1, 1e-10, 0.999), 6.907755276596282e-10), ((1, 1e-100, 0.999), 6.907755278982136e-100),
        ((40, 0.004, 0.98), 0.0012509608880268595), ((0.3, 1e-6, 0.7), 3.8863734333510006e-6),
        ((1e-8, 1e-6, 0.7), 0.990099018290078), ((1e3, 1e-12, 0.9995), 5.599252432179446e-13),
        ((2, 0.0049, 0.9), 0.00685873329367696), ((1e-300, 1, 0.3), 1.0),
    ],
    "gammainc": [
        ((12, 1e-12), 2.0876756987848823e-153), ((10, 1e-20), 2.7557319223985875e-207),
        ((10, 1e-10), 2.755731922148069e-107), ((30, 1e-8), 3.769987592332157e-273),
        ((1000, 499.5), 1.997517217889237e-86), ((10, 4.9), 0.028344838692214037),
        ((1e-20, 0.1), 1.0), ((1e4, 1e4), 0.5013298083399552),
        ((1e4, 7000), 9.711672437705851e-249), ((1e4, 9000), 2.073299202433928e-25),
        ((1e6, 1e6), 0.5001329807608725), ((1e6, 995000), 2.749580359270071e-07),
        ((1e8, 1e8 + 2e4), 0.9772444692251449), ((1e4, 13500), 1.0), ((1e300, 1e299), 0.0),
    ],
    "gammaincc": [
        ((1e-20, 0.1), 1.8229239584193904e-20), ((1e-5, 1), 2.1938617914074714e-6),
        ((0.1, 1e-10), 0.8948862993897778), ((0.19, 1.1), 0.0424298337615162),
        ((1e-20, 1e-30), 6.850033712491984e-19), ((1e-150, 0.5), 5.597735947761608e-151),
        ((1e4, 1e4), 0.4986701916600448), ((1e4, 11000), 1.6928531496469328e-22),
        ((1e4, 13500), 2.3086561643555273e-219), ((1e6, 1e6), 0.4998670192391274),
        ((1e8, 1e8 + 2e4), 0.022755530774855204), ((1e4, 7000), 1.0), ((1e300, 1e301), 0.0),
    ],
    "i0": [((711,), 9.087162727263793e306)],
    "i1": [((711,), 9.080770067322847e306), ((-711,), -9.080770067322847e306)],
    "j0": [((1e308,), -2.470656412079008e-155)],
    "k0": [((1e-305,), 702.4043848788423), ((3e-308,), 708.2135278691563)],
    "k0e": [((1e-305,), 702.4043848788423), ((3e-308,), 708.2135278691563)],
    "k1": [((1e-305,), 1e305), ((3e-308,), 1 / 3e-308)],
    "k1e": [((1e-305,), 1e305), ((3e-308,), 1 / 3e-308)],
    "logit": [((0.5,), 0.0), ((0.5 + 2.0**-40,), 2.0**-38), ((0.5 - 2.0**-50,), -(2.0**-48))],
    "polygamma": [((1, 1e200), 1e-200)],
    "y0": [((1e-305,), -447.1645196115597)],
    "y1": [((1e-305,), -6.366197723675814e304)],
    "zeta": [((2, 1e200), 1e-200), ((1e155, 1), 1.0)],
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_values_without_cancellation_or_underflow(compiler, name):
    points, expected = zip(*EXACT[name], strict=True)
    arguments = [nx.tensor(column, dtype="f64") for column in zip(*points, strict=True)]
    found = values(compiler, name, *arguments)
    np.testing.assert_allclose(found, expected, rtol=2e-13)


@pytest.mark.parametrize("name", ["betainc", "gammainc", "gammaincc"])
@pytest.mark.parametrize("dtype", ["f64", "f32"])
def test_distribution_functions_are_between_0_and_1(compiler, name, dtype):
    a, b = 10.0 ** np.random.default_rng(5).uniform(-20, 3, size=(2, 2000))
    last = (np.linspace(0.001, 0.999, 2000),) if name == "betainc" else ()
    arguments = [nx.tensor(x, dtype=dtype) for x in (a, b, *last)]
    found = values(compiler, name, *arguments)
    assert np.all((found >= 0.0) & (found <= 1.0))


def test_small_values_of_f32_distribution_functions(compiler):
    upper = values(compiler, "gammaincc", nx.tensor([1e-20]), nx.tensor([0.1]))
    beta = values(compiler, "betainc", nx.tensor([1.0]), nx.tensor([1e-10]), nx.tensor([0.75]))
    assert upper.item() == pytest.approx(1.8229239584193904e-20, rel=1e-6)
    assert beta.item() == pytest.approx(1e-10 * math.log(4.0), rel=1e-6)


INF = math.inf


@pytest.mark.parametrize("name", ["gammainc", "gammaincc"])
@pytest.mark.parametrize("dtype", ["f64", "f32"])
def test_gamma_functions_of_the_largest_arguments(compiler, name, dtype):
    """XLA replaces the reciprocals of the largest numbers by zero, so the fraction cannot run."""
    largest = nx.finfo(dtype).max
    last = [largest, largest / 2, largest / 4, 1e6, INF, math.nan]
    a, x = (nx.tensor(v.ravel(), dtype=dtype) for v in np.meshgrid([0.5, 2.0, 9999.0, 1e5], last))
    found = values(compiler, name, a, x)
    limit = 1.0 if name == "gammainc" else 0.0
    np.testing.assert_array_equal(found, np.repeat([*[limit] * 5, math.nan], 4))
    if name == "gammainc":
        slopes = nx.grad(lambda a, x: nx.sum(special.gammainc(a, x)), argnums=(0, 1))
        for slope in nx.jit(slopes, compiler=compiler)(a, x):
            np.testing.assert_array_equal(np.asarray(slope)[:20], 0.0)


BETA_POINTS = [
    (1.0, 1e200, 0.5), (1e200, 1.0, 0.5), (1.0, 1e308, 0.3), (1e308, 1.0, 0.7),
    (0.5, 2e154, 1e-154), (1.0, 2e154, 1e-154), (1e-300, 1e200, 1e-200), (3.0, 6e18, 1e-18),
    (3.0, 6e12, 1e-12), (0.5, 1e200, 1e-200), (1e308, 1e-300, 0.5), (1e160, 3e160, 0.1),
    (1e160, 3e160, 0.5),
]  # fmt: skip


def test_beta_functions_of_large_parameters(compiler):
    """No product overflows, and the fraction does not cancel for the complement of a small `x`."""
    points = np.array(BETA_POINTS).T
    arguments = [nx.tensor(x) for x in points]
    found = values(compiler, "betainc", *arguments)
    expected = np.array([scipy_value("betainc", *point) for point in BETA_POINTS])
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    slopes = nx.grad(lambda *x: nx.sum(special.betainc(*x)), argnums=(0, 1, 2))
    for slope in nx.jit(slopes, compiler=compiler)(*arguments):
        assert np.all(np.isfinite(np.asarray(slope)))


@pytest.mark.parametrize("dtype", ["f64", "f32"])
def test_beta_functions_of_the_largest_parameters(compiler, dtype):
    m, nan = nx.finfo(dtype).max, math.nan
    cases = [
        ((1.0, m, 0.5), 1), ((m, 1.0, 0.5), 0), ((2.0, m / 2, 0.5), 1), ((m / 2, 2.0, 0.5), 0),
        ((m, 0.5, 1.0), 1), ((0.5, m, 0.0), 0), ((m, m / 2, 0.1), 0), ((m, m / 2, 0.9), 1),
        ((1.0, m, nan), nan), ((nan, m, 0.5), nan), ((m, INF, 0.5), 1), ((INF, m, 0.5), 0),
    ]  # fmt: skip
    points, expected = zip(*cases, strict=True)
    arguments = [nx.tensor(column, dtype=dtype) for column in zip(*points, strict=True)]
    np.testing.assert_array_equal(values(compiler, "betainc", *arguments), expected)


def test_an_element_that_does_not_converge_is_nan(monkeypatch):
    from nxla.special import incomplete

    monkeypatch.setattr(incomplete, "_MAX_ITERATIONS", 1000)

    def is_still(state):
        return state[0] < 0.5

    changes = nx.tensor([0.0, 1.0], dtype="f64")
    found = incomplete._repeat(lambda state: state, (changes, nx.tensor(1.0)), is_still)
    assert found[0].tolist() == pytest.approx([0.0, math.nan], nan_ok=True)


#: Infinite arguments, and the limits of functions at the arguments.
LIMITS = {
    "betainc": [((2, INF, 0.5), 1), ((INF, 2, 0.5), 0), ((2, INF, 0), 0), ((INF, 2, 1), 1)],
    "betaln": [((2, INF), -INF), ((INF, 0.1), -INF), ((20, INF), -INF), ((0, INF), INF)],
    "polygamma": [((0, INF), INF), ((1, INF), 0), ((4, INF), 0)],
    "zeta": [
        ((INF, 1), 1), ((INF, 0.5), INF), ((INF, 2), 0), ((5, INF), 0), ((1, INF), INF),
        ((INF, INF), 0), ((INF, -1), math.nan), ((0.5, INF), math.nan), ((INF, math.nan), math.nan),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("dtype", ["f64", "f32"])
def test_limits_at_infinite_arguments(compiler, name, dtype):
    points, expected = zip(*LIMITS[name], strict=True)
    arguments = [nx.tensor(column, dtype=dtype) for column in zip(*points, strict=True)]
    found = values(compiler, name, *arguments)
    np.testing.assert_array_equal(found, np.array(expected, float))


@pytest.mark.parametrize("name", [*UNARY, *MULTIVARIATE])
def test_derivatives(name):
    """Forward mode, reverse mode and differences agree, in first and second order."""
    function = getattr(special, name)
    points = {
        "betainc": (2.0, 3.0, 0.4), "betaln": (2.5, 30.0), "gammainc": (2.0, 5.0),
        "gammaincc": (3.5, 2.0), "polygamma": (1.0, 1.5), "xlogy": (2.0, 3.0),
        "xlog1py": (2.0, 3.0), "zeta": (2.5, 1.5), "logit": (0.3,),
    }  # fmt: skip
    arguments = tuple(nx.tensor(x, dtype="f64") for x in points.get(name, (1.7,)))
    if name == "polygamma":  # The order must be an integer.
        nx.testing.check_grads(lambda x: function(1.0, x), arguments[1:], order=2)
    else:
        nx.testing.check_grads(function, arguments, order=1 if name == "betainc" else 2)


@pytest.mark.parametrize("a", [0.01, 2.0, 30.0, 200.0])
@pytest.mark.parametrize("ratio", [0.5, 0.95, 1.1, 2.0])
def test_derivatives_in_the_parameter_of_the_gamma_distribution(a, ratio):
    """Differences of a fourth order formula, with SciPy's values."""
    x, step = a * ratio, a * 1e-3
    weights = {-2: 1 / 12, -1: -2 / 3, 1: 2 / 3, 2: -1 / 12}
    slope = sum(w * scipy.special.gammainc(a + k * step, x) for k, w in weights.items()) / step
    point = (nx.tensor(a, dtype="f64"), nx.tensor(x, dtype="f64"))
    found = nx.grad(special.gammainc)(*point).item()
    assert found == pytest.approx(slope, rel=1e-7, abs=1e-11)
    assert nx.grad(special.gammaincc)(*point).item() == pytest.approx(-slope, rel=1e-7, abs=1e-11)


@pytest.mark.parametrize("name", ["gammainc", "gammaincc"])
@pytest.mark.parametrize("dtype", ["f64", "f32"])
def test_gamma_functions_of_large_parameters(compiler, name, dtype):
    """The number of steps is bounded, so large parameters do not take longer."""
    a = np.repeat([1e4, 1e6, 1e12, 1e16, 2.0**70, 1e30 if dtype == "f32" else 1e300], 5)
    # Round the parameters first: SciPy has large errors at more than 4.5 deviations.
    a = nx.tensor(a, dtype=dtype)
    wide = np.asarray(a, "f8")
    x = wide + np.tile([-4.0, -1.0, 0.0, 0.5, 3.0], 6) * np.sqrt(wide)
    x = nx.tensor(x, dtype=dtype)
    found = values(compiler, name, a, x)
    expected = scipy_value(name, *(np.asarray(v, "f8") for v in (a, x)))
    rtol = 1e-13 if dtype == "f64" else 1e-7
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=1e-300)


@pytest.mark.parametrize("name", ["gammainc", "gammaincc"])
@pytest.mark.parametrize("dtype", ["f64", "f32"])
@pytest.mark.parametrize("a", [1e4, 1e12, 1e16, 1e20])
def test_derivatives_of_gamma_functions_of_large_parameters(name, dtype, a):
    weights = {-2: 1 / 12, -1: -2 / 3, 1: 2 / 3, 2: -1 / 12}
    step = math.sqrt(a) * 1e-2
    parameter = nx.tensor(a, dtype=dtype)
    for deviation in (-2.0, 0.0, 1.5):
        x = nx.tensor(parameter.item() + deviation * math.sqrt(a), dtype=dtype)
        point, coordinates = (parameter, x), np.array([parameter.item(), x.item()])
        for argument, found in enumerate(nx.grad(getattr(special, name), argnums=(0, 1))(*point)):
            change = step * np.eye(2)[argument]
            slope = (
                sum(w * scipy_value(name, *(coordinates + k * change)) for k, w in weights.items())
                / step
            )
            assert found.dtype == dtype
            assert found.item() == pytest.approx(slope, rel=1e-7 if dtype == "f64" else 1e-6)


def test_derivatives_at_integer_parameters():
    # The continued fraction of an integer parameter is finite, but its derivative is not.
    def slope(a):
        return nx.grad(special.gammainc)(
            nx.tensor(a, dtype="f64"), nx.tensor(5.0, dtype="f64")
        ).item()

    assert slope(2.0) == pytest.approx((slope(2.0 - 1e-6) + slope(2.0 + 1e-6)) / 2, rel=1e-8)


def test_batches_and_scalars():
    a, x = nx.tensor([1.0, 2.0, 3.0]), nx.tensor([1.0, 3.0, 0.5])
    np.testing.assert_allclose(
        nx.vmap(special.gammainc)(a, x).numpy(), special.gammainc(a, x).numpy(), rtol=1e-6
    )
    assert special.gammainc(1, 2).dtype == "f32"
    assert special.i0(nx.zeros((0, 3))).shape == (0, 3)
    with pytest.raises(nx.DTypeError, match="j0: operand: must be real; got"):
        special.j0(1j)


@pytest.mark.parametrize("name", ["gammainc", "gammaincc"])
def test_many_elements_converge(name):
    """Rounding keeps some elements of a large tensor from a change of exactly zero."""
    a = np.random.default_rng(1).uniform(0.01, 20.0, size=30_000)
    found = getattr(special, name)(nx.tensor(a + 0.5), nx.tensor(a)).numpy()
    np.testing.assert_allclose(found, scipy_value(name, a + 0.5, a), rtol=1e-12)


def test_derivatives_of_many_elements_converge():
    a, b, x = np.random.default_rng(1).uniform(0.01, 0.99, size=(3, 3000))
    operands = [nx.tensor(20.0 * a), nx.tensor(20.0 * b), nx.tensor(x)]
    slopes = nx.grad(lambda *operands: nx.sum(special.betainc(*operands)), argnums=(0, 1))(
        *operands
    )
    for slope, change in zip(slopes, ((1e-4, 0.0), (0.0, 1e-4)), strict=True):
        up, down = (
            scipy_value("betainc", 20.0 * a + s * change[0], 20.0 * b + s * change[1], x)
            for s in (1, -1)
        )
        np.testing.assert_allclose(slope.numpy(), (up - down) / 2e-4, rtol=1e-3, atol=1e-7)


def test_functions_are_traced_once_for_equal_types(monkeypatch):
    from nxla import _signatures
    from nxla.special import elementary

    traced = []
    logit_of = elementary._logit

    def counted(x):
        traced.append(x.shape)
        return logit_of(x)

    monkeypatch.setattr(_signatures, "_programs", BoundedCache())
    monkeypatch.setattr(elementary, "_logit", counted)
    for shape in ((2,), (3,), (2,), (3,)):
        found = nx.special.logit(nx.full(shape, 0.5))
        assert found.tolist() == [0.0] * shape[0]
    assert traced == [(2,), (3,)]
    assert list(_signatures._programs._values) == [("logit", (None,))]
    x = nx.tensor([0.25, 0.5])
    assert nx.vmap(nx.special.logit)(x).tolist() == nx.special.logit(x).tolist()
    assert nx.grad(lambda x: nx.sum(nx.special.logit(x)))(x)[1].item() == pytest.approx(4.0)


def test_names_of_other_libraries_have_hints():
    with pytest.raises(AttributeError, match=r"nx\.abs"):
        nx.special.absolute  # noqa: B018
