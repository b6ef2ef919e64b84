"""Gradients of samples, integrals, bins and partitions, against NumPy and SciPy."""

import numpy as np
import pytest
import scipy.linalg

import nxla as nx
from nxla import _signatures
from nxla._signatures import BoundedCache

RNG = np.random.default_rng(0)
F = RNG.normal(size=(6, 5))
COORDINATES = np.sort(RNG.normal(size=6))

GRADIENTS = {
    "all axes": ((), {}),
    "one axis": ((), {"axis": 1}),
    "second order": ((), {"edge_order": 2}),
    "one spacing": ((2.0,), {}),
    "coordinates": ((COORDINATES, 0.5), {"edge_order": 2}),
    "coordinates of one axis": ((COORDINATES,), {"axis": 0}),
    "several axes": ((0.5, 2.0), {"axis": (-1, 0)}),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradient(compiler, name):
    spacings, options = GRADIENTS[name]
    expected = np.gradient(F, *spacings, **options)
    with nx.default_options(compiler=compiler):
        found = nx.gradient(nx.tensor(F), *map(nx.tensor, spacings), **options)
    if not isinstance(expected, tuple | list):
        expected, found = [expected], [found]
    for left, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(left.numpy(), right, rtol=1e-10)


@pytest.mark.parametrize("edge_order", [1, 2])
def test_gradient_of_equal_spacing_ignores_the_element_itself(compiler, edge_order):
    rows = np.array(
        [[1.0, 1e8, 3.0, 7.0, -2.0], [1.0, 2.0, np.nan, 7.0, 5.0], [1, 2, np.inf, 7, 5]]
    )
    slopes = nx.jit(
        lambda f: [nx.gradient(f, h, axis=1, edge_order=edge_order) for h in (1.0, 0.5)],
        compiler=compiler,
    )
    for dtype in ("f4", "f8"):
        f = rows.astype(dtype)
        with np.errstate(invalid="ignore"):
            expected = [np.gradient(f, h, axis=1, edge_order=edge_order) for h in (1.0, 0.5)]
        for found, right in zip(slopes(nx.tensor(f)), expected, strict=True):
            np.testing.assert_array_equal(found[:, 1:-1], right[:, 1:-1])
            np.testing.assert_allclose(found, right, rtol=1e-6)
    assert nx.gradient(nx.tensor([0, 255, 4, 250], "u8"))[1:3].tolist() == [2.0, -2.5]


def test_gradient_of_coordinates_does_not_overflow(compiler):
    f, x = np.array([0.0, 1e300, 1e300]), np.array([0.0, 1.0, 1e10])
    found = nx.jit(nx.gradient, compiler=compiler)(nx.tensor(f), nx.tensor(x))
    np.testing.assert_allclose(found, np.gradient(f, x), rtol=1e-14)


def test_gradient_of_two_samples_and_of_integers():
    assert nx.gradient([1, 4]).tolist() == [3.0, 3.0]
    with pytest.raises(nx.ShapeError, match="gradient: f: must have at least 3 elements"):
        nx.gradient([1.0, 2.0], edge_order=2)
    with pytest.raises(nx.ArgumentError, match="gradient: edge_order: must be 1 or 2; got 3"):
        nx.gradient(nx.ones(9), edge_order=3)
    with pytest.raises(nx.ShapeError, match="gradient: spacing: must be a number or 6"):
        nx.gradient(nx.tensor(F), nx.ones(4), axis=0)


@pytest.mark.parametrize("dtype", ["s32", "u8", "s64"])
def test_derivatives_of_integer_samples_with_equal_neighbors(dtype):
    x, weights = nx.tensor([3, 3, 5, 1], dtype), nx.tensor([1.0, 2.0, 4.0, 8.0])
    for function in (
        lambda x: nx.sum(weights * nx.gradient(x)),
        lambda x: nx.trapezoid(weights, x),
    ):
        expected = nx.grad(function)(nx.astype(x, "f64"))
        assert nx.grad(function)(x).tolist() == expected.tolist()


def test_trapezoid(compiler):
    coordinates = np.cumsum(RNG.random((6, 5)), axis=0)
    y = nx.tensor(F)
    with nx.default_options(compiler=compiler):
        for found, expected in (
            (nx.trapezoid(y, dx=0.3), np.trapezoid(F, dx=0.3)),
            (nx.trapezoid(y, nx.tensor(COORDINATES), axis=0), np.trapezoid(F, COORDINATES, axis=0)),
            (nx.trapezoid(y, nx.tensor(coordinates), axis=0), np.trapezoid(F, coordinates, axis=0)),
        ):
            np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)
    assert nx.trapezoid(nx.ones((2, 1))).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("dtype", [nx.float16, nx.float8_e5m2, nx.float8_e4m3fn])
def test_intermediate_results_of_narrow_floats_do_not_overflow(compiler, dtype):
    largest = 0.75 * nx.finfo(dtype).max
    with nx.default_options(compiler=compiler):
        total = nx.trapezoid(nx.full(10, largest, dtype), dx=0.01)
        slopes = nx.gradient(nx.tensor([-largest, 0.0, largest], dtype))
    assert total.dtype == slopes.dtype == dtype
    np.testing.assert_allclose(nx.astype(total, "f64"), 0.0675 * nx.finfo(dtype).max, rtol=0.1)
    np.testing.assert_allclose(nx.astype(slopes, "f64"), [largest] * 3, rtol=0.1)


@pytest.mark.parametrize(
    "bins",
    [
        [],
        [0.0, 1.0, 2.0, 2.0, 5.0],
        [5.0, 2.0, 2.0, 1.0],
        [1.0],
        [np.nan],
        [2.0, 2.0],
        [np.inf, 1.0, -np.inf],
    ],
)
@pytest.mark.parametrize("right", [False, True])
def test_digitize(compiler, bins, right):
    x = np.array([[-1.0, 0.0, 0.5, 1.0, 2.0], [3.0, 5.0, np.nan, np.inf, -np.inf]])
    with nx.default_options(compiler=compiler):
        found = nx.jit(lambda x, bins: nx.digitize(x, bins, right=right))(
            nx.tensor(x), nx.tensor(bins, dtype="f64")
        )
    np.testing.assert_array_equal(found.numpy(), np.digitize(x, bins, right=right))


@pytest.mark.parametrize("dtype", ["f64", "f32", "f16"])
def test_nan_to_num(compiler, dtype):
    x = np.array([1.0, np.nan, np.inf, -np.inf], dtype=nx.DType(dtype).name.replace("f", "float"))
    with nx.default_options(compiler=compiler):
        np.testing.assert_array_equal(nx.nan_to_num(nx.tensor(x)).numpy(), np.nan_to_num(x))
        found = nx.nan_to_num(nx.tensor(x), nan=7.0, posinf=8.0, neginf=9.0)
    assert found.tolist() == [1.0, 7.0, 8.0, 9.0]


def test_nan_to_num_of_other_dtypes():
    assert nx.nan_to_num(nx.tensor([1, 2])).dtype == "s32"
    z = nx.nan_to_num(nx.tensor([complex(np.nan, np.inf)]), posinf=5.0)
    assert z.tolist() == [5j]


def test_partitions(compiler):
    x = RNG.integers(0, 20, size=(4, 9)).astype("f4")
    with nx.default_options(compiler=compiler):
        for axis, kth in ((-1, 3), (0, -1), (1, (2, 5))):
            values = nx.partition(nx.tensor(x), kth, axis=axis).numpy()
            order = nx.argpartition(nx.tensor(x), kth, axis=axis).numpy()
            np.testing.assert_array_equal(np.take_along_axis(x, order, axis), values)
            for index in (kth,) if isinstance(kth, int) else kth:
                expected = np.take(np.partition(x, index, axis=axis), index, axis)
                np.testing.assert_array_equal(np.take(values, index, axis), expected)
    with pytest.raises(nx.ArgumentError, match="partition: kth: must be one of 9 positions; got 9"):
        nx.partition(nx.tensor(x), 9)
    with pytest.raises(
        nx.ShapeError, match=r"^argpartition: axis: must be an axis of shape \(4, 9\) .*; got 2$"
    ):
        nx.argpartition(nx.tensor(x), 0, axis=2)


def test_statistics_accept_numpy_keywords(compiler):
    x = np.array([1, 2, 4, 9])
    with nx.default_options(compiler=compiler):
        mean = nx.mean(nx.tensor(x), dtype="f64")
        assert mean.dtype == "f64"
        assert mean.item() == 4.0
        assert nx.mean(nx.tensor([1, 2]), dtype="s32").item() == 1
        assert nx.var(nx.tensor(x), ddof=1).item() == pytest.approx(np.var(x, ddof=1))
        assert nx.std(nx.tensor(x), ddof=2).item() == pytest.approx(np.std(x, ddof=2))
        nans = nx.tensor([1.0, np.nan, 4.0])
        assert nx.nanvar(nans, ddof=1).item() == pytest.approx(4.5)
        assert nx.nanstd(nans, ddof=1).item() == pytest.approx(4.5**0.5)
        rows = np.array([[1.0, 2.0], [3.0, 6.0], [2.0, 5.0]])
        expected = np.cov(rows, rowvar=False, ddof=1)
        np.testing.assert_allclose(nx.covariance(nx.tensor(rows), ddof=1).numpy(), expected)
    for function in (nx.var, nx.std, nx.nanvar, nx.nanstd):
        with pytest.raises(nx.ArgumentError, match="ddof: must not be passed together with"):
            function(nans, correction=1, ddof=1)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 20.0])
@pytest.mark.parametrize("dtype", ["f64", "f32", "c128"])
def test_expm(compiler, scale, dtype):
    a = RNG.normal(size=(3, 5, 5)) * scale / 5
    a = a + 0.5j * a[::-1] if dtype == "c128" else a
    expected = np.stack([scipy.linalg.expm(matrix) for matrix in a])
    with nx.default_options(compiler=compiler):
        found = nx.linalg.expm(nx.tensor(a, dtype=dtype)).numpy()
    eps = 1e-5 if dtype == "f32" else 1e-12
    np.testing.assert_allclose(found, expected, atol=eps * np.abs(expected).max())


@pytest.mark.parametrize("scale", [0.3, 4.0])
def test_derivatives_of_expm(compiler, scale):
    a, change = RNG.normal(size=(2, 4, 4))
    a = a * scale
    forward = scipy.linalg.expm_frechet(a, change)[1]
    backward = scipy.linalg.expm_frechet(a.T, change)[1]
    with nx.default_options(compiler=compiler):
        _, found = nx.jvp(nx.linalg.expm, (nx.tensor(a),), (nx.tensor(change),))
        adjoint = nx.grad(lambda a: nx.sum(nx.linalg.expm(a) * change))(nx.tensor(a))
    np.testing.assert_allclose(found.numpy(), forward, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(adjoint.numpy(), backward, rtol=1e-9, atol=1e-10)


def test_expm_of_batches_and_of_other_shapes():
    a = nx.tensor(RNG.normal(size=(3, 2, 2)))
    np.testing.assert_allclose(
        nx.vmap(nx.linalg.expm)(a).numpy(), nx.linalg.expm(a).numpy(), rtol=1e-12
    )
    assert nx.linalg.expm(nx.zeros((0, 2, 2))).shape == (0, 2, 2)
    assert nx.linalg.expm(nx.eye(2, dtype="f16")).dtype == "f16"
    with pytest.raises(nx.ShapeError, match=r"expm: x: expected square .* got f32\[2\]\[3\]"):
        nx.linalg.expm(nx.ones((2, 3)))


def test_digitize_searches_once(monkeypatch):
    searches, search = [], nx.searchsorted

    def searchsorted(*args, **kwargs):
        searches.append(kwargs)
        return search(*args, **kwargs)

    monkeypatch.setattr("nxla.ops.search.searchsorted", searchsorted)
    assert nx.digitize([2.5, 0.0], [3.0, 2.0, 1.0]).tolist() == [1, 3]
    assert searches == [{"side": "right"}]


def test_functions_accept_axis_names(compiler):
    x = nx.tensor(F, names=["row", "column"])
    with nx.default_options(compiler=compiler):
        for position, name in enumerate(x.names):
            slopes = nx.gradient(x, axis=name)
            assert nx.all(slopes == nx.gradient(F, axis=position)).item()
            total = nx.trapezoid(x, axis=name)
            assert nx.all(total == nx.trapezoid(F, axis=position)).item()
            least = nx.partition(x, 2, axis=name)
            assert least.names == x.names
            assert nx.all(least == nx.partition(F, 2, axis=position)).item()
            order = nx.argpartition(x, 2, axis=name)
            assert nx.all(order == nx.argpartition(F, 2, axis=position)).item()
        both = nx.gradient(x, axis=["column", "row"])
    for found, expected in zip(both, np.gradient(F, axis=(1, 0)), strict=True):
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-10)
    for name, call in (
        ("gradient", lambda: nx.gradient(x, axis="depth")),
        ("trapezoid", lambda: nx.trapezoid(x, axis="depth")),
        ("partition", lambda: nx.partition(x, 0, axis="depth")),
    ):
        with pytest.raises(
            nx.ShapeError, match=f"^{name}: axis: must be an axis of .* got 'depth'"
        ):
            call()


def test_function_cache_is_bounded_and_distinguishes_scalars(monkeypatch):

    def call(x, scalar):
        traced.append(scalar)
        return x * scalar

    traced = []
    monkeypatch.setattr(_signatures, "_programs", BoundedCache())
    monkeypatch.setattr(_signatures, "LIMIT", 4)
    for _ in range(2):
        for scalar, dtype in ((1, "s32"), (1.0, "f32"), (0.0, "f32"), (-0.0, "f32")):
            found = _signatures.run_traced(call, "test", nx.tensor([2]), scalar, key="test")
            assert found.dtype == dtype
            assert found.tolist() == [2 * scalar]
            assert str(found.tolist()) == str([2 * scalar])
    assert list(map(str, traced)) == ["1", "1.0", "0.0", "-0.0"]
    for key in range(20):
        _signatures.run_traced(call, "test", nx.tensor([2]), 3, key=key)
        assert len(_signatures._programs._values) <= 4
