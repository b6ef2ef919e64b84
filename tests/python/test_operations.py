"""Functions on tensors, compared with NumPy, and errors for invalid arguments."""

import cmath

import numpy as np
import pytest

import nxla as nx

NUMPY_MODES = {"cyclic": "wrap", "mirror": "symmetric", "reflect": "reflect", "replicate": "edge"}


@pytest.mark.parametrize("shape", [(1,), (2,), (5,), (3, 4)])
def test_pad_outer_matches_numpy(shape, compiler):
    array = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    cases = [
        (rule, [(low, high)] * len(shape))
        for rule in NUMPY_MODES
        for low, high in ((0, 1), (1, 0), (2, 2), (3, 11))
    ]

    def pad(x):
        return [nx.pad_outer(x, rule, widths) for rule, widths in cases]

    for (rule, widths), padded in zip(cases, nx.jit(pad, compiler=compiler)(array), strict=True):
        assert padded.tolist() == np.pad(array, widths, mode=NUMPY_MODES[rule]).tolist()


def test_pad_outer_rejects_invalid_arguments():
    for rule, widths in (("zigzag", [(1, 1)]), ("mirror", [(-1, 0)]), ("mirror", [(1, 1), (1, 1)])):
        with pytest.raises(nx.ArgumentError, match="pad_outer"):
            nx.pad_outer([1, 2], rule, widths)
    with pytest.raises(nx.ArgumentError, match="scalar"):
        nx.pad_outer(1, "mirror", [])
    with pytest.raises(nx.ArgumentError, match="must have elements to repeat"):
        nx.pad_outer(nx.zeros((0,)), "mirror", [(1, 1)])


def test_complex_keeps_special_real_and_imaginary_parts(compiler):
    make = nx.jit(nx.complex, compiler=compiler)
    special = [0.0, 1.5, float("inf"), float("-inf"), float("nan")]
    result = make(nx.tensor(special), nx.expand_dims(nx.tensor(special), axis=1)).numpy()
    for row, imag in enumerate(special):
        np.testing.assert_array_equal(result.real[row], special)
        np.testing.assert_array_equal(result.imag[row], np.full(5, imag))
    assert nx.complex(nx.tensor(1.0, "f64"), 2).dtype == nx.complex128
    with pytest.raises(nx.DTypeError):
        nx.complex(1j, 2.0)


INVERSES = ["asin", "acos", "atan", "asinh", "acosh", "atanh"]


@pytest.mark.parametrize("name", INVERSES)
def test_branch_cuts_match_cmath(name):
    for z in (complex(2, 0.0), complex(2, -0.0), complex(-2, 0.0), 2j, complex(-0.0, -2), 0.3 - 4j):
        found = getattr(nx, name)(nx.tensor(z, "c128")).item()
        assert cmath.isclose(found, getattr(cmath, name)(z), rel_tol=1e-12), (z, found)


@pytest.mark.parametrize("name", ["log2", "log10"])
def test_logarithms_of_complex_zero_and_infinity(name, compiler):
    array = np.array([0, 1j * np.inf, -4, 3 + 4j], np.complex64)
    found = nx.jit(lambda x: getattr(nx, name)(x), compiler=compiler)(array)
    with np.errstate(divide="ignore"):
        expected = getattr(np, name)(array)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5)


def test_composite_operations_are_blocks():
    def composed(x):
        values, indices = nx.top_k(x, 2)
        gathered = nx.take(x, indices, axis=0), nx.take_along_axis(x, indices, axis=0)
        bins = nx.fft.irfft(nx.fft.rfft(x)), nx.real(nx.fft.fft2(nx.reshape(x, (2, 2))))
        return values, gathered, bins, nx.phase(x), nx.all_close(x, 1.0)

    text = str(nx.debug_expr(composed)(nx.template((4,), "f32")))
    for block in (
        "top_k{k: 2}",
        "take{axis: 0}",
        "take_along_axis{axis: 0}",
        "rfft{length: 4, axis: 0}",
        "irfft{length: 4, axis: 0}",
        "fftn{lengths: [2, 2], axes: [0, 1]}",
        "phase{}",
        "all_close{equal_nan: false, rtol: 1.0e-5, atol: 1.0e-8}",
    ):
        assert f"block {block}, " in text


def test_negative_counts_raise():
    calls = {
        "tile": lambda: nx.tile([1], [-1]),
        "slice": lambda: nx.slice([1, 2], [0], [-1]),
        "top_k": lambda: nx.top_k([1], -1),
        "diff": lambda: nx.diff([1], n=-1),
        "window_sum": lambda: nx.window_sum([1, 2], (2,), strides=-1),
        "linspace": lambda: nx.linspace(0, 1, -1),
    }
    for name, call in calls.items():
        with pytest.raises(nx.ArgumentError, match=f"{name}: .*must not be negative[;,] got"):
            call()


def test_eager_and_traced_folds_agree():
    x = nx.tensor([1, 2, 3], "u8")
    for call in (
        lambda x: nx.reduce(x, 0, nx.add),
        lambda x: nx.window_reduce(x, 0, nx.add, (2,)),
        lambda x: nx.reduce(x, 0, nx.add, dtype="s64"),
    ):
        eager, traced = call(x), nx.jit(call)(x)
        assert (eager.dtype, eager.tolist()) == (traced.dtype, traced.tolist())


def test_clip_is_one_operation_for_scalar_bounds():
    def slope(low, high):
        return nx.grad(lambda x: nx.clip(x, low, high))(nx.tensor([0.5, 1.0, 2.0, 9.0])).tolist()

    assert slope(1.0, 3.0) == slope(nx.tensor(1.0), nx.tensor(3.0))


def test_finfo_and_iinfo_match_numpy():
    for name in ("float16", "float32", "float64"):
        ours, numpy_info = nx.finfo(name), np.finfo(name)
        for key in ("bits", "eps", "max", "min", "smallest_normal"):
            assert getattr(ours, key) == getattr(numpy_info, key)
        assert nx.constants.epsilon(name).item() == numpy_info.eps
    for name in ("int8", "int64", "uint16", "uint64"):
        ours, numpy_info = nx.iinfo(name), np.iinfo(name)
        assert (ours.max, ours.min) == (numpy_info.max, numpy_info.min)
        assert nx.constants.max(name).item() == numpy_info.max
    with pytest.raises(nx.DTypeError):
        nx.finfo("s32")
    with pytest.raises(nx.ArgumentError, match="numeric"):
        nx.isdtype("s32", "whole")


def test_heatmaps_show_vectorized_axes_and_nan():
    x = nx.vectorize(nx.tensor([[0.0, 1.0], [float("nan"), 1.0]]), "entry")
    lines = repr(nx.to_heatmap(x, ansi_enabled=False)).split("\n")
    assert lines[1:] == ["  vectorized[entry: 2]", "  f32[2]", "  ", "  09", "  09", ">"]


def test_vecdot_axis_refers_to_the_broadcast_shape():
    x, y = nx.tensor([1, 2], names=["x"]), nx.tensor([[1, 1], [3, 4]], names=[None, "x"])
    assert nx.vecdot(x, y, axis="x").tolist() == nx.vecdot(x, y).tolist() == [3, 11]
    assert nx.vecdot([[1, 2], [3, 4]], [[1, 1], [3, 4]], axis=0).tolist() == [10, 18]
    with pytest.raises(nx.ShapeError, match="size of axis 0"):
        nx.vecdot([1, 2], [[1, 1], [3, 4]], axis=0)


@pytest.mark.parametrize(
    "function", [nx.nn.cosine_similarity, nx.nn.kl_divergence, nx.nn.softmax_cross_entropy]
)
@pytest.mark.parametrize("names", [["column"], None])
def test_names_are_axes_of_the_broadcast_shape(function, names):
    x = nx.tensor([0.5, 0.5, 0.25], names=names)
    y = nx.tensor([[0.5, 1.0, 0.0], [0.5, 0.0, 2.0]], names=["row", "column"])
    assert function(x, y, axis="column").tolist() == function(x, y, axis=-1).tolist()
    assert function(y, x, axis="column").tolist() == function(y, x, axis=-1).tolist()


def test_statistics_do_not_overflow_internally(compiler):
    def evaluate(function, *args, **options):
        return nx.jit(lambda *x: function(*x, **options), compiler=compiler)(*args)

    largest = 2**31 - 1
    assert evaluate(nx.mean, nx.tensor([largest] * 4)).item() == np.float32(largest)
    assert evaluate(nx.median, nx.tensor([largest] * 2)).item() == np.float32(largest)
    assert evaluate(nx.mean, nx.tensor([2**32 - 1] * 3, dtype=nx.uint32)).item() == np.float32(
        2**32
    )
    for dtype, value in ((nx.uint64, 2**64 - 1), (nx.int64, -(2**63))):
        found = evaluate(nx.mean, nx.full((5,), value, dtype=dtype)).item()
        assert found == np.float32(value)
        assert evaluate(nx.var, nx.full((5,), value, dtype=dtype)).item() == 0
    large = nx.full((70_000,), 3.0, dtype=nx.float16)
    assert (evaluate(nx.mean, large).item(), evaluate(nx.var, large).item()) == (3.0, 0.0)
    assert evaluate(nx.mean, large).dtype == nx.float16
    high = nx.tensor([60_000.0, 60_000.0], dtype=nx.float16)
    assert evaluate(nx.mean, high).item() == np.float16(60_000)


def test_variance_of_complex_numbers_is_real(compiler):
    x = np.array([1 + 2j, 3 - 1j, -2j], np.complex64)
    for function, expected in ((nx.var, np.var(x)), (nx.std, np.std(x))):
        found = nx.jit(function, compiler=compiler)(x)
        assert found.dtype == nx.float32
        assert found.item() == pytest.approx(expected, rel=1e-6)


def test_median_keeps_nan_and_axes(compiler):
    x = np.array([[1.0, np.nan, 3.0], [4.0, 5.0, 6.0]], np.float32)
    median = nx.jit(lambda x: nx.median(x, axis=1), compiler=compiler)
    np.testing.assert_array_equal(median(x), np.median(x, axis=1))
    several = np.stack([x, x + 10.0, x * 2.0])
    for axis, keep in (((0, 2), False), ((-1, 0), True), ((0, 1, 2), True)):
        median = nx.jit(lambda x, a=axis, k=keep: nx.median(x, a, keepdims=k), compiler=compiler)
        np.testing.assert_array_equal(median(several), np.median(several, axis, keepdims=keep))
    for function in (nx.median, nx.argmax, nx.argmin):
        found = nx.jit(lambda x, f=function: f(x, keepdims=True), compiler=compiler)(x[1:])
        assert found.shape == (1, 1)
        assert found.item() == function(x[1:]).item()


def test_all_close_compares_integers_by_value(compiler):
    close = nx.jit(lambda x, y: nx.all_close(x, y, atol=3.0), compiler=compiler)
    u8 = nx.uint8
    assert not close(nx.tensor([0], dtype=u8), nx.tensor([255], dtype=u8)).item()
    assert close(nx.tensor([0], dtype=u8), nx.tensor([3], dtype=u8)).item()
    low, high = nx.tensor([-(2**31)]), nx.tensor([2**31 - 1])
    assert not close(low, high).item()


def test_scalar_window_applies_to_all_axes(compiler):
    x = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    with nx.default_options(compiler=compiler):
        for call in (lambda f: f, nx.jit):
            for pool in (nx.nn.max_pool, nx.nn.avg_pool):
                for strides in (None, 1):
                    scalar = call(lambda x, f=pool, s=strides: f(x, 2, strides=s))(x)
                    pair = call(lambda x, f=pool, s=strides: f(x, (2, 2), strides=s and (s, s)))(x)
                    assert scalar.tolist() == pair.tolist()
            for window in (nx.window_sum, nx.window_max, nx.window_mean):
                scalar = call(lambda x, f=window: f(x, 2))(x[0, 0])
                assert scalar.tolist() == window(x[0, 0], (2, 2)).tolist()
            assert call(lambda x: nx.tile(x, 2))(x[0, 0]).tolist() == np.tile(x[0, 0], 2).tolist()
        folded = nx.window_reduce(x[0, 0], 0, lambda element, total: total + element, 2)
        assert folded.tolist() == nx.window_sum(x[0, 0], (2, 2)).tolist()
        # Entries of a vectorized axis have separate axes.
        entries = nx.vmap(lambda x: nx.window_sum(x, 2))(x[0])
        assert entries.tolist() == nx.window_sum(x[0], (1, 2, 2)).tolist()


@pytest.mark.parametrize("indices", [[1, 3], (2,), [1, -1], np.array([2, 4]), []])
def test_split_at_several_indices(indices):
    x = np.arange(10).reshape(5, 2)
    for call in (lambda f: f, nx.jit):
        found = call(lambda x: nx.split(x, indices))(x)
        expected = np.split(x, indices)
        assert [part.tolist() for part in found] == [part.tolist() for part in expected]
    assert [part.tolist() for part in nx.split(x[0], at=np.int64(1))] == [[0], [1]]
    columns = nx.split(x, [1], axis=1)
    assert [part.shape for part in columns] == [(5, 1), (5, 1)]
