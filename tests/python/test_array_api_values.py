"""Special values and dtypes that the Array API standard defines."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nxla as nx
from where import DEVICE

inf, nan = float("inf"), float("nan")


def run(compiler, function, *args):
    """Return the result of a function, which must be equal eagerly and jitted."""
    with nx.default_options(compiler=compiler):
        eager = function(*args)
        jitted = nx.jit(function)(*args)
    assert eager.dtype == jitted.dtype
    equal_nan = eager.dtype.kind != "pred"
    # NumPy lacks bf16; f32 represents every bf16 number.
    wide = [nx.astype(x, "f32") if x.dtype == "bf16" else x for x in (eager, jitted)]
    assert np.array_equal(wide[0].numpy(), wide[1].numpy(), equal_nan=equal_nan)
    return eager


def signed_values(x):
    """Return numbers with the signs of zeros."""
    return [(value, math.copysign(1, value)) for value in x.tolist()]


# --- dtypes of new tensors ---


@pytest.mark.parametrize("dtype", ["pred", "s8", "u64", "f16", "f64"])
def test_real_and_imag_of_real_numbers_keep_their_dtype(compiler, dtype):
    x = nx.tensor([0, 1, 1], dtype=dtype)
    assert run(compiler, nx.real, x).dtype == run(compiler, nx.imag, x).dtype == x.dtype
    assert (x.real.tolist(), x.imag.tolist()) == ([0, 1, 1], [0, 0, 0])


def test_dtype_none_means_the_default_dtype():
    assert nx.ones(3, dtype=None).dtype == nx.zeros(3, dtype=None).dtype == nx.float32
    assert nx.eye(2, dtype=None).dtype == nx.empty(2).dtype == nx.float32
    assert nx.full(2, 1).dtype == nx.int32
    assert nx.full(2, True).dtype == nx.bool


@pytest.mark.parametrize(
    ("scalar", "dtype"),
    [
        (np.float64(0.1), nx.float64),
        (np.float32(0.1), nx.float32),
        (np.complex128(0.1j), nx.complex128),
        (np.complex64(0.1j), nx.complex64),
        (np.int64(3), nx.int64),
        (np.uint8(3), nx.uint8),
        (np.bool_(True), nx.bool),
    ],
)
def test_numpy_scalars_keep_their_dtype(scalar, dtype):
    assert nx.tensor(scalar).dtype == nx.asarray(scalar).dtype == dtype
    assert nx.tensor(scalar).item() == scalar
    assert nx.tensor([scalar, scalar]).dtype == dtype
    assert nx.tensor([[scalar], [scalar]]).tolist() == [[scalar], [scalar]]
    assert nx.jit(lambda x: x)(scalar).dtype == dtype
    assert (nx.tensor([1], "s8") * scalar).dtype == nx.result_type(nx.int8, dtype)


def test_python_scalars_take_the_dtype_of_numpy_scalars():
    assert nx.tensor([1.0, np.float16(2)]).dtype == nx.float16
    assert nx.tensor([1, np.float64(2)]).dtype == nx.float64


def test_tensor_accepts_lists_of_arrays():
    parts = [nx.tensor([1, 2]), np.array([3, 4], np.int32), [5, 6], range(7, 9)]
    assert nx.tensor(parts).tolist() == [[1, 2], [3, 4], [5, 6], [7, 8]]
    assert nx.tensor([np.ones((2, 3)), np.zeros((2, 3))]).shape == (2, 2, 3)
    assert nx.tensor([np.zeros((0, 2)), np.zeros((0, 2))]).shape == (2, 0, 2)
    assert nx.tensor([[], []]).shape == (2, 0)
    for ragged in ([[1, 2], np.ones(3)], [np.ones(2), 1], [1, np.ones(2)], [[], 1], [[], [[]]]):
        with pytest.raises(nx.ArgumentError):
            nx.tensor(ragged)


def test_tensor_accepts_lists_of_traced_values():
    both = nx.jit(lambda x, y: nx.tensor([[x, 1.0], [y, x * y]]))(2.0, 3.0)
    assert both.tolist() == [[2.0, 1.0], [3.0, 6.0]]
    assert nx.jit(lambda x: nx.asarray([x, x], dtype="s8"))(2.0).dtype == nx.int8


def test_tensor_accepts_ranges_and_the_array_protocol():
    class Column:
        """An object with the interface of a pandas column."""

        def __init__(self, values):
            self.values = np.asarray(values)

        def __array__(self, dtype=None, copy=None):
            return self.values

    assert nx.tensor(range(3)).tolist() == [0, 1, 2]
    assert nx.sum(range(4)).item() == 6
    assert nx.tensor(Column([1.5, 2.5])).dtype == nx.float64
    assert nx.jit(lambda x: x + 1)(Column([1, 2])).tolist() == [2, 3]
    assert (nx.tensor([1, 2]) + Column([1, 2])).tolist() == [2, 4]
    with pytest.raises(nx.NxlaError):
        nx.tensor(Column(["a", None]))


def test_tensor_accepts_pandas_objects():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    assert nx.tensor(frame).tolist() == [[1.0, 3.0], [2.0, 4.0]]
    assert nx.tensor(frame["b"]).tolist() == [3.0, 4.0]


def test_numpy_accepts_nxla_dtypes():
    for dtype in (nx.float32, nx.int8, nx.uint64, nx.complex128, nx.bool):
        assert np.zeros(3, dtype=dtype).dtype == dtype
        assert np.dtype(nx.zeros(2, dtype).dtype) == dtype


def test_duplicate_axis_names_are_rejected():
    for make in (
        lambda: nx.ones((2, 3), names=["a", "a"]),
        lambda: nx.tensor([[1]], names=["a", "a"]),
        lambda: nx.rename(nx.ones((2, 3)), ["a", "a"]),
        lambda: nx.template((2, 3), names=["a", "a"]),
        lambda: nx.reshape(nx.ones(6), (2, 3), names=["a", "a"]),
    ):
        with pytest.raises(nx.ArgumentError, match=r'names: must be distinct; got "a" twice'):
            make()
    assert nx.ones((2, 3), names=[None, None]).names == [None, None]


# --- sums ---


def test_sums_of_unsigned_integers_stay_unsigned(compiler):
    x = nx.tensor([2**63, 2**63 - 1], "u64")
    total = run(compiler, nx.sum, x)
    assert (total.dtype, total.item()) == (nx.uint64, 2**64 - 1)
    product = run(compiler, nx.prod, nx.tensor([2**62 + 1, 3], "u64"))
    assert (product.dtype, product.item()) == (nx.uint64, 3 * 2**62 + 3)
    trace = run(compiler, nx.linalg.trace, nx.tensor([[2**63, 0], [0, 1]], "u64"))
    assert (trace.dtype, trace.item()) == (nx.uint64, 2**63 + 1)
    mean = run(compiler, nx.mean, nx.tensor([2**63, 2**63], "u64"))
    assert mean.item() == 2.0**63


@pytest.mark.parametrize(
    ("dtype", "sums"),
    [("s8", "s32"), ("u8", "u32"), ("s64", "s64"), ("u64", "u64"), ("f16", "f16")],
)
def test_cumulative_sums_have_the_dtype_of_sums(compiler, dtype, sums):
    x = nx.tensor([100, 100], dtype)
    for function in (nx.cumulative_sum, nx.cumulative_prod):
        found = run(compiler, function, x)
        assert found.dtype == nx.DType(sums)
        assert found.dtype == nx.sum(x).dtype
        assert found[1].item() == (200 if function is nx.cumulative_sum else 10000)
    assert nx.cumulative_sum(x, dtype=dtype).dtype == nx.DType(dtype)


def test_vecdot_has_the_common_dtype_and_checks_sizes(compiler):
    found = run(compiler, nx.vecdot, nx.tensor([10, 20], "u8"), nx.tensor([2, 2], "u8"))
    assert (found.dtype, found.item()) == (nx.uint8, 60)
    found = run(compiler, nx.vecdot, nx.tensor([1j, 2]), nx.tensor([1j, 1]))
    assert found.item() == 3
    assert run(compiler, nx.vecdot, nx.ones((4, 1, 3)), nx.ones((2, 3))).shape == (4, 2)
    with pytest.raises(nx.ShapeError, match="size of axis"):
        nx.vecdot(nx.ones((2, 1)), nx.ones((2, 3)))
    named = nx.vecdot(nx.ones((2, 3), names=[None, "x"]), nx.ones(3), "x")
    assert named.tolist() == [3.0, 3.0]


def test_conj_of_real_numbers_is_the_identity(compiler):
    x = nx.tensor([0.1, 1e300], "f64")
    assert run(compiler, nx.conj, x).dtype == nx.float64
    assert run(compiler, nx.conj, x).tolist() == [0.1, 1e300]
    assert run(compiler, nx.conj, nx.tensor([2**40], "s64")).tolist() == [2**40]
    assert run(compiler, nx.conj, nx.tensor([1 + 2j])).tolist() == [1 - 2j]


# --- conversions ---

OUT_OF_RANGE = [1e20, -1e20, 3e38, -3e38, inf, -inf, nan, 300.7, -300.7, 3.7, -3.7, 0.0, -0.0]


@pytest.mark.parametrize("source", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize(
    "target", ["s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64", "s4", "u2"]
)
def test_float_to_integer_conversion_saturates(compiler, source, target):
    x = nx.tensor(OUT_OF_RANGE, source)
    limits = nx.iinfo(target)
    expected = [
        0 if math.isnan(value) else int(min(max(value, limits.min), limits.max))
        for value in x.tolist()
    ]
    assert run(compiler, lambda x: nx.astype(x, target), x).tolist() == expected
    # Data and scalars are converted by the same rule, except that scalars out of range are errors.
    assert nx.tensor(x.to_host(), target).tolist() == expected
    for value, converted in zip(x.tolist(), expected, strict=True):
        if math.isfinite(value) and int(value) == converted:
            assert nx.tensor([value], target).tolist() == [converted]
            assert nx.full(1, value, target).tolist() == [converted]
        else:
            with pytest.raises(OverflowError):
                nx.tensor([value], target)
            with pytest.raises(OverflowError):
                nx.full(1, value, target)


def test_complex_and_integer_to_integer_conversion(compiler):
    x = nx.tensor([1e20 + 1j, nan * 1j, -1e20])
    assert run(compiler, lambda x: nx.astype(x, "s32"), x).tolist() == [2**31 - 1, 0, -(2**31)]
    assert run(compiler, lambda x: nx.astype(x, "u8"), nx.tensor([300, -1])).tolist() == [44, 255]


def test_astype_returns_the_same_tensor_only_without_copy():
    x = nx.ones(3)
    assert nx.astype(x, nx.float32, copy=False) is x
    assert nx.astype(x, nx.float32) is not x
    assert nx.astype(x, nx.float64, copy=False).dtype == nx.float64
    assert nx.astype(x, nx.float64, device=DEVICE).device == DEVICE


# --- complex numbers ---


@pytest.mark.parametrize(
    ("name", "z", "expected"),
    [
        ("tanh", complex(nan, 0.0), complex(nan, 0.0)),
        ("tan", complex(0.0, nan), complex(0.0, nan)),
        ("asinh", complex(nan, 0.0), complex(nan, 0.0)),
        ("asin", complex(0.0, nan), complex(0.0, nan)),
        ("acos", complex(0.0, nan), complex(math.pi / 2, nan)),
        ("atanh", complex(0.0, nan), complex(0.0, nan)),
        ("atanh", complex(inf, nan), complex(0.0, nan)),
        ("atan", complex(nan, 0.0), complex(nan, 0.0)),
    ],
)
def test_complex_nan_follows_annex_g(name, z, expected):
    found = getattr(nx, name)(nx.tensor(z, "c128")).item()
    for part, wanted in ((found.real, expected.real), (found.imag, expected.imag)):
        assert math.isnan(part) if math.isnan(wanted) else part == wanted


# --- signed zeros ---


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
def test_zero_remainders_have_the_sign_of_the_divisor(compiler, dtype):
    x = nx.tensor([0.0, 0.0, -0.0, -0.0, 6.0, -6.0, 6.0, -6.0], dtype)
    y = nx.tensor([1.0, -1.0, 1.0, -1.0, 3.0, 3.0, -3.0, -3.0], dtype)
    found = run(compiler, nx.remainder, x, y)
    assert signed_values(found) == [(0.0, math.copysign(1, value)) for value in y.tolist()]


def test_remainder_matches_numpy(compiler):
    x = nx.tensor([5.0, -5.0, 5.0, -5.0, 1.0, -1.0, inf, 1.0, 5.5], "f64")
    y = nx.tensor([3.0, 3.0, -3.0, -3.0, inf, inf, 2.0, nan, 0.0], "f64")
    expected = np.remainder(x.numpy()[:-3], y.numpy()[:-3])
    found = run(compiler, nx.remainder, x, y)
    assert np.array_equal(found.numpy()[:-3], expected)
    assert np.isnan(found.numpy()[-3:]).all()


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
def test_the_sign_of_zeros_is_zero(compiler, dtype):
    found = run(compiler, nx.sign, nx.tensor([-0.0, 0.0, -2.0, 3.0, -inf], dtype))
    # NumPy does not have all of these dtypes.
    assert signed_values(nx.astype(found, "f64")) == [(0, 1), (0, 1), (-1, -1), (1, 1), (-1, -1)]
    assert math.isnan(run(compiler, nx.sign, nx.tensor(nan, dtype)).item())
    assert run(compiler, nx.sign, nx.tensor(0j)).item() == 0


def test_nextafter_matches_numpy(compiler):
    for dtype in (np.float32, np.float64):
        x = np.array([1, 1, 0, 0, -0.0, -1, inf, -inf, nan, 1, 5, 2], dtype)
        y = np.array([2, 0, 1, -1, 1, 0, 0, 0, 1, nan, 5, inf], dtype)
        found = run(compiler, nx.nextafter, nx.tensor(x), nx.tensor(y))
        assert np.array_equal(found.numpy(), np.nextafter(x, y), equal_nan=True)
    with pytest.raises(nx.DTypeError):
        nx.nextafter(1j, 1.0)


# --- linspace ---


@settings(max_examples=100, deadline=None)
@given(
    st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.integers(2, 60), st.sampled_from(["f32", "f64"])
)
def test_linspace_ends_are_exact(start, stop, num, dtype):
    found = nx.linspace(start, stop, num, dtype=dtype)
    ends = nx.tensor([start, stop], dtype).tolist()
    assert [found[0].item(), found[-1].item()] == ends
    between = nx.linspace(nx.tensor(start, dtype), nx.tensor(stop, dtype), num)
    assert (between.dtype, between[-1].item()) == (nx.DType(dtype), ends[1])


def test_linspace_between_huge_ends(compiler):
    for start, stop, dtype in ((-3e38, 3e38, "f32"), (-1.5e308, 1.5e308, "f64")):
        ends = [nx.tensor(end, dtype) for end in (start, stop)]
        expected = [start, start / 2, 0.0, stop / 2, stop]
        for found in (
            run(compiler, lambda: nx.linspace(start, stop, 5, dtype=dtype)),  # noqa: B023
            run(compiler, lambda start, stop: nx.linspace(start, stop, 5), *ends),
        ):
            np.testing.assert_allclose(found, expected, rtol=1e-6)
    found = run(compiler, lambda: nx.linspace(-3e38j, 3e38j, 3, dtype="c64"))
    np.testing.assert_allclose(found, [-3e38j, 0, 3e38j], rtol=1e-6)


def test_linspace_of_complex_numbers(compiler):
    found = run(compiler, lambda: nx.linspace(1j, 2, 3))
    assert (found.dtype, found.tolist()) == (nx.complex64, [1j, 1 + 0.5j, 2])
    assert nx.linspace(0, 1, 3, dtype="c128").tolist() == [0, 0.5, 1]
    assert nx.linspace(0, 1, 2, False).tolist() == [0.0, 0.5]
    assert nx.linspace(0, 1, 1).tolist() == [0.0]
    assert nx.linspace(0, 1, 0).shape == (0,)
    assert nx.linspace(nx.tensor([0.0, 1.0], "f64"), nx.tensor([1.0, 3.0], "f64"), 3).tolist() == [
        [0.0, 0.5, 1.0],
        [1.0, 2.0, 3.0],
    ]
    with pytest.raises(nx.DTypeError):
        nx.linspace(0, 1, 3, dtype="s32")


# --- empty, huge and tiny matrices ---


def test_linalg_of_empty_matrices(compiler):
    a = nx.zeros((0, 0))
    assert run(compiler, nx.linalg.det, a).item() == 1.0
    assert run(compiler, nx.linalg.det, nx.zeros((3, 0, 0))).tolist() == [1.0] * 3
    assert run(compiler, nx.linalg.trace, a).item() == 0
    assert run(compiler, nx.linalg.matrix_rank, a).item() == 0
    for function in (nx.linalg.inv, nx.linalg.cholesky, nx.linalg.pinv):
        assert run(compiler, function, a).shape == (0, 0)
    assert run(compiler, lambda a: nx.linalg.matrix_power(a, 2), a).shape == (0, 0)
    assert run(compiler, lambda a: nx.linalg.matrix_power(a, -1), a).shape == (0, 0)
    assert run(compiler, nx.linalg.svdvals, nx.zeros((2, 0, 3))).shape == (2, 0)
    assert run(compiler, nx.linalg.eigvalsh, a).shape == (0,)
    assert run(compiler, nx.linalg.solve, a, nx.zeros((0, 2))).shape == (0, 2)
    assert run(compiler, nx.linalg.solve, a, nx.zeros(0)).shape == (0,)
    assert run(compiler, nx.linalg.pinv, nx.zeros((0, 3))).shape == (3, 0)
    assert run(compiler, nx.linalg.diagonal, a).shape == (0,)
    assert run(compiler, lambda x: nx.linalg.diagonal(x, 5), nx.zeros((4, 2, 2))).shape == (4, 0)
    with nx.default_options(compiler=compiler):
        sign, logabsdet = nx.linalg.slogdet(a)
        assert (sign.item(), logabsdet.item()) == (1.0, 0.0)
        q, r = nx.linalg.qr(nx.zeros((3, 0)), mode="complete")
        assert (q.tolist(), r.shape) == (nx.eye(3).tolist(), (3, 0))
        u, s, vh = nx.linalg.svd(nx.zeros((0, 2), "c128"))
        assert (u.shape, s.shape, vh.shape) == ((0, 0), (0,), (2, 2))
        assert (s.dtype, vh.dtype) == (nx.float64, nx.complex128)
        assert [part.shape for part in nx.linalg.eigh(a)] == [(0,), (0, 0)]
        assert [part.shape for part in nx.linalg.lu(a)] == [(0, 0)] * 3


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("exponent", [-0.9, -0.5, 0.5, 0.9])
@pytest.mark.parametrize(
    "options",
    [{"compiler": "evaluator"}, {"compiler": "xla"}, {"compiler": "xla", "kernels": False}],
    ids=["evaluator", "xla", "xla alone"],
)
def test_factorizations_of_huge_and_tiny_matrices(options, dtype, exponent):
    scale = float(nx.finfo(dtype).max) ** exponent
    unit = np.array([[1.0, 2.0, 0.5], [3.0, -1.0, 2.0], [0.5, 4.0, 1.0]])
    a = nx.tensor(unit * scale, dtype)
    tolerance = 100 * nx.finfo(dtype).eps
    with nx.default_options(options):
        s = nx.linalg.svdvals(a).numpy() / scale
        q, r = nx.linalg.qr(a)
        u, values, vh = nx.linalg.svd(a)
        w, v = nx.linalg.eigh(a)
    assert np.allclose(s, np.linalg.svd(unit)[1], rtol=tolerance)
    assert np.allclose(q.numpy() @ (r.numpy() / scale), unit, atol=10 * tolerance)
    product = (u.numpy() * (values.numpy() / scale)) @ vh.numpy()
    assert np.allclose(product, unit, atol=10 * tolerance)
    lower = np.tril(unit) + np.tril(unit, -1).T
    assert np.allclose(w.numpy() / scale, np.linalg.eigvalsh(lower), rtol=tolerance)
    product = (v.numpy() * (w.numpy() / scale)) @ v.numpy().T
    assert np.allclose(product, lower, atol=10 * tolerance)


def test_tolerances_may_be_tensors(compiler):
    a = nx.tensor([[[1.0, 0.0], [0.0, 0.1]], [[1.0, 0.0], [0.0, 0.1]]])
    with nx.default_options(compiler=compiler):
        assert nx.linalg.matrix_rank(a, rtol=nx.tensor([0.5, 0.01])).tolist() == [1, 2]
        inverse = nx.linalg.pinv(a, rtol=nx.tensor([0.5, 0.01]))
        assert np.allclose(inverse.numpy()[:, 1, 1], [0, 10])
        assert nx.linalg.matrix_rank(a, rtol=0.5).tolist() == [1, 1]


@pytest.mark.parametrize("dtype", ["f32", "f64", "c64", "c128"])
def test_eigenvalues_of_nonsymmetric_matrices(compiler, dtype):
    rng = np.random.default_rng(1)
    a = rng.normal(size=(3, 4, 4))
    a = (a + 1j * rng.normal(size=a.shape)) if dtype[0] == "c" else a
    a = nx.tensor(a, dtype)
    tolerance = 1e-4 if nx.finfo(a.dtype).bits == 32 else 1e-10
    with nx.default_options(compiler=compiler):
        for function in (nx.linalg.eig, nx.jit(nx.linalg.eig)):
            values, vectors = function(a)
            assert values.dtype == vectors.dtype == nx.result_type(a.dtype, nx.complex64)
            w, v = values.numpy(), vectors.numpy()
            assert np.allclose(a.numpy() @ v, v * w[:, None, :], atol=tolerance)
            assert np.allclose(np.linalg.norm(v, axis=-2), 1, atol=tolerance)
            # Each eigenvalue of NumPy is among the results of nxla. Sorting is not used, because a
            # rounding error would exchange conjugates.
            distances = np.abs(np.linalg.eigvals(a.numpy())[..., None] - w[:, None, :])
            assert (distances.min(-1) < tolerance).all()
        assert nx.linalg.eigvals(nx.zeros((2, 0, 0))).shape == (2, 0)
        assert np.isnan(nx.linalg.eigvals(nx.tensor([[nan]])).numpy()).all()
    with pytest.raises(nx.ShapeError):
        nx.linalg.eig(nx.ones((2, 3)))


# --- debugging ---


def test_debug_nans_allows_constant_infinities(compiler):
    with nx.default_options(compiler=compiler), nx.debug_nans():
        mask = nx.where(nx.tensor([True, False]), 0.0, -inf)
        assert mask.tolist() == [0.0, -inf]
        assert nx.full(2, -inf).tolist() == [-inf, -inf]
        assert nx.jit(lambda m: mask + m)(mask).tolist() == [0.0, -inf]
        with pytest.raises(nx.ExecutionError):
            nx.log(nx.tensor(0.0))
        with pytest.raises(nx.ExecutionError):
            nx.divide(nx.tensor(0.0), 0.0)


# --- vmap ---


def test_vmap_axes_may_be_containers(compiler):
    with nx.default_options(compiler=compiler):
        tree = {"b": nx.tensor(1.0), "a": nx.tensor([1.0, 2.0])}
        add = nx.vmap(lambda d: d["a"] + d["b"], in_axes=({"a": 0, "b": None},))
        assert add(tree).tolist() == [2.0, 3.0]
        nested = nx.vmap(lambda p, x: p[0]["w"] * x + p[1], in_axes=([{"w": 0}, None], 1))
        found = nested([{"w": nx.tensor([1.0, 2.0])}, nx.tensor(5.0)], nx.ones((3, 2)))
        assert found.tolist() == [[6.0] * 3, [7.0] * 3]
        outs = nx.vmap(lambda x: {"s": x + 1, "c": nx.tensor(3.0)}, out_axes={"s": 1, "c": None})
        found = outs(nx.zeros((2, 3)))
        assert (found["s"].shape, found["c"].shape) == ((3, 2), ())
    with pytest.raises(nx.ArgumentError, match="structure of the value"):
        nx.vmap(lambda d: d["a"], in_axes=({"b": 0},))({"a": nx.ones(2)})
    with pytest.raises(nx.ArgumentError, match="one for each argument"):
        nx.vmap(lambda x: x, in_axes=(0, 0))(nx.ones(2))


# --- rounding, new axes and ranges ---


def test_round_rounds_each_part_of_complex_numbers(compiler):
    x = np.array([0.5 + 1.5j, -0.5 - 2.5j, complex(inf, 0.4), complex(-1.6, nan)], "c16")
    for dtype in ("c64", "c128"):
        found = run(compiler, nx.round, nx.tensor(x, dtype))
        wanted = np.round(x)
        for ours, theirs in ((nx.real(found), wanted.real), (nx.imag(found), wanted.imag)):
            np.testing.assert_array_equal(ours.numpy(), theirs)
            np.testing.assert_array_equal(nx.signbit(ours).numpy(), np.signbit(theirs))
    assert nx.round(nx.tensor(2.5 - 0.5j)).item() == 2 - 0j


@pytest.mark.parametrize("axis", [(0, -1), (-1, 0), (1, 2), (), [3, 0, 1]])
def test_expand_dims_takes_several_axes(axis):
    x = np.arange(6, dtype="f4").reshape(2, 3)
    wanted = np.expand_dims(x, tuple(axis))
    np.testing.assert_array_equal(nx.expand_dims(nx.tensor(x), axis=axis).numpy(), wanted)
    traced = nx.jit(lambda x: nx.expand_dims(x, axis), compiler="evaluator")
    np.testing.assert_array_equal(traced(x).numpy(), wanted)


def test_expand_dims_rejects_invalid_axes():
    with pytest.raises(nx.ArgumentError, match="must be distinct; got axis 1 of the result twice"):
        nx.expand_dims([1, 2], axis=(1, -2))
    with pytest.raises(nx.ArgumentError, match="must be in range for a result with 3 axes; got 3"):
        nx.expand_dims([1, 2], axis=(3, 0))
    with pytest.raises(nx.ArgumentError, match="name: requires one new axis"):
        nx.expand_dims([1, 2], axis=(0, 1), name="x")


@pytest.mark.parametrize(
    "limits",
    [
        (0, 1, 1 / 3),
        (0, 1, 1 / 70_000),
        (1.0, 0.0, -1 / 3),
        (0.5, 2.5, 0.01),
        (1, 0, 0.1),
        (0, 2 * 10**9, 10**6),
        (10, 0, -3),
        (np.int64(5),),
        (np.int32(2), np.int64(9), 2),
    ],
)
def test_arange_has_the_length_of_numpy(limits):
    found, expected = nx.arange(*limits), np.arange(*limits)
    assert found.shape == expected.shape
    assert found.dtype == ("s32" if expected.dtype.kind == "i" else "f32")
    last = expected.astype(found.numpy().dtype)[-1:]
    np.testing.assert_allclose(found.numpy()[-1:], last, rtol=1e-5)


# --- the shape of results, and arguments of any size ---


def test_functions_of_several_arrays_return_tuples(compiler):
    with nx.default_options(compiler=compiler):
        for function in (nx.meshgrid, nx.broadcast_arrays):
            for count in (1, 2, 3):
                vectors = [nx.arange(4)] * count
                assert type(function(*vectors)) is tuple
                assert type(nx.jit(function)(*vectors)) is tuple
                assert len(function(*vectors)) == count


@pytest.mark.parametrize("k", [0, 1, -2, 3, -3, 2**31, -(2**31), 2**63, -(2**63) - 1, 10**30])
def test_diagonals_at_any_offset(compiler, k):
    """NumPy has no offsets of more than 64 bits; all offsets beyond the matrix are equivalent."""
    near = max(-9, min(k, 9))
    x = np.arange(12.0, dtype="f4").reshape(3, 4)
    with nx.default_options(compiler=compiler):
        for shape in [(3, 4), (4, 3), (0, 2)]:
            assert nx.eye(*shape, k=k).tolist() == np.eye(*shape, k=near).tolist()
            assert nx.tri(*shape, k).tolist() == np.tri(*shape, k=near).tolist()
        assert nx.tril(x, k=k).tolist() == np.tril(x, k=near).tolist()
        assert nx.triu(x, k=k).tolist() == np.triu(x, k=near).tolist()
        assert nx.linalg.trace(x, offset=k).item() == np.trace(x, offset=near)
        assert nx.linalg.diagonal(x, offset=k).tolist() == np.diagonal(x, offset=near).tolist()


OPTIONS = [
    {},
    {"compiler": "evaluator"},
    {"compiler": "xla"},
    {"device": "host"},
    {"device": DEVICE},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_default_device_is_one_of_the_devices(options):
    info = nx.__array_namespace_info__()
    with nx.default_options(**options):
        assert info.default_device() in info.devices()
        assert nx.zeros(2).device in info.devices()
        for device in info.devices():
            assert nx.zeros(2, device=device).device == device
