"""Python scalars combined with integers, sums of booleans, and the gamma function."""

import math

import numpy as np
import pytest
import scipy.special
from hypothesis import given
from hypothesis import strategies as st

import nxla as nx
import test_dtype_pairs

INTEGERS = ["u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64"]
ARITHMETIC = [
    nx.add,
    nx.subtract,
    nx.multiply,
    nx.maximum,
    nx.bitwise_and,
    nx.fmod,
]


@given(st.sampled_from(INTEGERS), st.integers(-(2**63), 2**63 - 1), st.booleans())
def test_scalars_take_the_dtype_or_overflow(dtype, number, swapped):
    x = nx.ones(2, dtype=dtype)
    limits = nx.iinfo(dtype)
    for function in ARITHMETIC:
        args = (number, x) if swapped else (x, number)
        if limits.min <= number <= limits.max:
            if number != 0 or function is not nx.fmod:
                assert function(*args).dtype == nx.DType(dtype)
        else:
            with pytest.raises(OverflowError, match=f"{number} is out of bounds for {dtype}"):
                function(*args)


def test_out_of_range_scalars_raise_in_operators(compiler):
    x = nx.tensor([1, 200], dtype="u8")
    f = nx.jit(lambda x, n: x * 2 + n, static_argnames="n", compiler=compiler)
    assert f(x, n=100).tolist() == [102, 244]
    for invalid in (
        lambda: x + 300,
        lambda: 300 - x,
        lambda: x * -1,
        lambda: x // 256,
        lambda: 1000 % x,
        lambda: x & -1,
        lambda: x << 300,
        lambda: nx.where(x > 1, x, 300),
        lambda: f(x, n=300),
    ):
        with pytest.raises(OverflowError, match="out of bounds for u8"):
            invalid()
    # A tensor widens the result; comparisons and float functions accept any scalar.
    assert (x + nx.tensor(300, dtype="u16")).tolist() == [301, 500]
    assert (x < 300).tolist() == [True, True]
    assert (x == -1).tolist() == [False, False]
    assert nx.logical_and(x, 300).tolist() == [True, True]
    assert (x / 400).dtype == nx.float32
    assert (nx.tensor([1.0]) + 10**6).dtype == nx.float32


def test_scalars_combined_with_booleans(compiler):
    mask = nx.tensor([True, False])
    f = nx.jit(lambda m: (m * 2, m + 300, m & True, m + True, m * 2**40), compiler=compiler)
    doubled, more, both, added, large = f(mask)
    assert (doubled.dtype, more.dtype, large.dtype) == (nx.int32, nx.int32, nx.int64)
    assert more.tolist() == [301, 300]
    assert large.tolist() == [2**40, 0]
    assert both.dtype == nx.bool
    assert added.tolist() == [2, 1]


def test_sums_of_booleans_have_the_default_integer_dtype(compiler):
    mask = nx.tensor([[True, False], [True, True]])
    f = nx.jit(lambda m: (nx.sum(m), nx.prod(m, axis=0), m.sum(0), nx.mean(m)), compiler=compiler)
    total, product, rows, mean = f(mask)
    assert (total.dtype, product.dtype, rows.dtype) == (nx.int32,) * 3
    assert (total.item(), product.tolist(), rows.tolist()) == (3, [1, 0], [2, 1])
    assert mean.item() == 0.75
    assert nx.sum(mask, dtype="u8").dtype == nx.uint8
    assert nx.sum(nx.tensor([1], dtype="u8")).dtype == nx.uint32


ARGUMENTS = np.array(
    [
        -170.6,
        -33.3,
        -2.5,
        -1.0001,
        -0.5,
        -1e-6,
        1e-6,
        0.1,
        0.5,
        0.9,
        1.0,
        1.5,
        2.0,
        3.7,
        20,
        1e5,
        1e30,
    ]
)


@pytest.mark.parametrize("dtype", ["f64", "f32", "f16", "bf16"])
def test_gamma_functions_match_scipy(compiler, dtype):
    in_range = np.abs(np.log10(np.abs(ARGUMENTS))) < (40 if dtype in ("f64", "f32") else 2)
    x = nx.tensor(ARGUMENTS[in_range], dtype=dtype)
    points = np.asarray(nx.astype(x, "f64"))
    expected = scipy.special.gammaln(points), scipy.special.digamma(points)
    found = nx.jit(lambda x: (nx.lgamma(x), nx.digamma(x)), compiler=compiler)(x)
    tolerance = {"f64": 1e-12, "f32": 2e-5, "f16": 2e-3, "bf16": 2e-2}[dtype]
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == nx.DType(dtype)
        numbers = np.asarray(nx.astype(ours, "f64"))
        np.testing.assert_allclose(numbers, theirs, rtol=tolerance, atol=tolerance)


#: Numbers around the zeros at 1 and 2, and their results in `mpmath` with 40 digits.
LOG_GAMMA = [
    (0.5, 0.5723649429247001),
    (0.75, 0.20328095143129538),
    (1 - 2**-13, 7.047315303717008e-05),
    (1 - 2**-20, 5.504765026737053e-07),
    (1.0, 0.0),
    (1 + 2**-20, -5.504750066148867e-07),
    (1 + 2**-13, -7.044864160936656e-05),
    (1.25, -0.09827183642181316),
    (1.5, -0.12078223763524522),
    (1.75, -0.08440112102048555),
    (2 - 2**-13, -5.160461064981216e-05),
    (2 - 2**-20, -4.0319826848018475e-07),
    (2.0, 0.0),
    (2 + 2**-20, 4.0319885504430156e-07),
    (2 + 2**-13, 5.16142209163108e-05),
    (2.25, 0.1248717148923966),
    (2.5, 0.2846828704729192),
]


@pytest.mark.parametrize("dtype", ["f64", "f32"])
def test_lgamma_is_accurate_around_its_zeros(compiler, dtype):
    points, expected = zip(*LOG_GAMMA, strict=True)
    x = nx.tensor(points, dtype=dtype)
    found = nx.jit(nx.lgamma, compiler=compiler)(x)
    tolerance = 4 * nx.finfo(dtype).eps
    np.testing.assert_allclose(found.tolist(), expected, rtol=tolerance, atol=0)


def test_gamma_functions_at_poles_and_infinities(compiler):
    x = nx.tensor([0.0, -0.0, -1.0, -2.0, math.inf, -math.inf, math.nan], dtype="f64")
    value, slope = nx.jit(lambda x: (nx.lgamma(x), nx.digamma(x)), compiler=compiler)(x)
    np.testing.assert_array_equal(np.asarray(value), [math.inf] * 6 + [math.nan])
    expected = [-math.inf, math.inf, math.nan, math.nan, math.inf, math.nan, math.nan]
    np.testing.assert_array_equal(np.asarray(slope), expected)
    large = nx.tensor([-(2.0**53), -1e30, -1e38, -1.7e308], dtype="f64")
    for dtype in ("bf16", "f32", "f64"):
        found = nx.jit(nx.lgamma, compiler=compiler)(nx.astype(large, dtype))
        assert found.tolist() == [math.inf] * 4, dtype
    assert nx.lgamma(5).dtype == nx.float32
    with pytest.raises(nx.DTypeError, match="lgamma"):
        nx.lgamma(1j)


def test_gamma_functions_have_derivatives(compiler):
    points = ARGUMENTS[1:-1]
    x = nx.tensor(points, dtype="f64")
    slope = nx.jit(nx.grad(lambda x: nx.sum(nx.lgamma(x))), compiler=compiler)(x)
    np.testing.assert_allclose(np.asarray(slope), scipy.special.digamma(points), rtol=1e-9)
    curve = nx.jit(nx.grad(lambda x: nx.sum(nx.digamma(x))), compiler=compiler)(x)
    positive = points > 0
    trigamma = scipy.special.polygamma(1, points[positive])
    np.testing.assert_allclose(np.asarray(curve)[positive], trigamma, rtol=1e-9)
    assert np.isfinite(np.asarray(curve)).all()


def test_repeat_and_frequencies_check_memory(compiler):
    for oversized in (
        lambda: nx.fft.rfftfreq(2**40),
        lambda: nx.fft.fftfreq(2**40),
        lambda: nx.repeat(nx.ones(1), 2**45),
    ):
        with nx.default_options(compiler="evaluator"), pytest.raises(MemoryError):
            oversized()
    for n in (1, 2, 5, 8, 101):
        expected = np.fft.fftfreq(n, 0.25), np.fft.rfftfreq(n, 0.25)
        np.testing.assert_allclose(np.asarray(nx.fft.fftfreq(n, 0.25)), expected[0], rtol=1e-6)
        halves = nx.fft.rfftfreq(n, 0.25, dtype="f64")
        np.testing.assert_allclose(np.asarray(halves), expected[1], rtol=1e-15)
    assert nx.fft.fftfreq(0).shape == (0,)
    with pytest.raises(nx.ArgumentError, match="n: must be at least 0; got -1"):
        nx.fft.fftfreq(-1)
    with pytest.raises(nx.ArgumentError, match="n: must be at least 1"):
        nx.fft.rfftfreq(0)
    x = nx.tensor(np.arange(6).reshape(2, 3), names=["row", "column"])
    f = nx.jit(lambda x: (nx.repeat(x, 2, axis="column"), nx.repeat(x, [2, 0], axis=0)))
    with nx.default_options(compiler=compiler):
        wide, rows = f(x)
    assert wide.names == ["row", "column"]
    assert wide.tolist() == [[0, 0, 1, 1, 2, 2], [3, 3, 4, 4, 5, 5]]
    assert rows.tolist() == [[0, 1, 2], [0, 1, 2]]
    assert nx.repeat(x, 0).shape == (0,)


@pytest.mark.parametrize(
    ("number", "dtype"),
    [
        (300, "u8"),
        (-1, "u8"),
        (-1, "u32"),
        (2**63, "s64"),
        (2**64, "u64"),
        (128, "s8"),
        (1e10, "s32"),
    ]
    + [(nan, dtype) for nan in (float("nan"), float("inf")) for dtype in ("s32", "u64")],
)
def test_out_of_range_elements_raise(number, dtype):
    makers = (
        lambda: nx.tensor(number, dtype),
        lambda: nx.tensor([0, number], dtype),
        lambda: nx.asarray([[number]], dtype),
        lambda: nx.full((2,), number, dtype),
        lambda: nx.full_like(nx.zeros(2, dtype), number),
        nx.jit(lambda: nx.full((2,), number, dtype)),
    )
    for make in makers:
        with pytest.raises(OverflowError, match=f"out of bounds for elements of {dtype}"):
            make()


def test_elements_in_range_and_typed_values_convert():
    assert nx.tensor([0, 255], "u8").tolist() == [0, 255]
    assert nx.full(2, -128, "s8").tolist() == [-128, -128]
    assert nx.tensor(2**64 - 1, "u64").item() == 2**64 - 1
    assert nx.tensor([255.9, -0.5], "u8").tolist() == [255, 0]
    assert nx.tensor([2, True], "bool").tolist() == [True, True]
    # Values with a dtype are converted as by `astype`.
    assert nx.tensor(np.array([300]), "u8").tolist() == [44]
    assert nx.tensor([nx.tensor(300), np.int64(-1)], "u8").tolist() == [44, 255]
    assert nx.astype(nx.tensor(300), "u8").item() == 44


@pytest.mark.parametrize("dtype", ["bool", "u8", "s32", "bf16", "f32"])
def test_complex_numbers_are_not_elements_of_real_tensors(dtype):
    for make in (
        lambda: nx.tensor(1j, dtype=dtype),
        lambda: nx.tensor([1, 1j], dtype=dtype),
        lambda: nx.asarray(1j, dtype=dtype),
        lambda: nx.full((2,), 1j, dtype=dtype),
        lambda: nx.zeros(2, dtype=dtype).at[0].set(1j),
    ):
        with pytest.raises(nx.DTypeError, match="complex number cannot become an element"):
            make()


@pytest.mark.parametrize("dtype", test_dtype_pairs.DTYPES)
def test_lists_with_tensors_promote_as_operands(dtype):
    """`tensor` returns the dtypes, values and errors of `stack`, eagerly and while tracing."""

    def outcome(call, *operands):
        try:
            result = call(*operands)
        except OverflowError:
            return "OverflowError"
        return str(result.dtype), str(result.tolist())

    x = nx.tensor(1, dtype)
    others = [nx.tensor(1, other) for other in test_dtype_pairs.DTYPES]
    others += [nx.tensor(2**63, "u64"), nx.tensor(-1, "s64")]
    for scalar in (True, 1, -1, 300, 2**40, 2**63, 1.5, 1e10, 1j):
        expected = outcome(lambda x, y=scalar: nx.stack([x, y]), x)
        by_scalar = lambda x, y=scalar: nx.tensor([x, y])  # noqa: E731
        for call in (by_scalar, nx.jit(by_scalar)):
            assert outcome(call, x) == expected, (dtype, scalar)
        nested = lambda x, y=scalar: nx.tensor([[x, y], [y, 0]])  # noqa: E731
        assert outcome(nested, x) == outcome(nx.jit(nested), x), (dtype, scalar)
    for other in others:
        expected = outcome(lambda x, y: nx.stack([x, y]), x, other)
        by_tensor = lambda x, y: nx.tensor([x, y])  # noqa: E731
        for call in (by_tensor, nx.jit(by_tensor)):
            assert outcome(call, x, other) == expected, (dtype, other.dtype)


@pytest.mark.parametrize("make", [nx.tensor, nx.asarray])
def test_scalars_in_lists_with_tensors_must_fit_the_dtype(make):
    x = nx.tensor(1, "s8")
    for call in (lambda x: make([x, 300], "u8"), nx.jit(lambda x: make([x, 300], "u8"))):
        with pytest.raises(OverflowError, match="300 is out of bounds for elements of u8"):
            call(x)
    wrap = lambda x: make([nx.astype(x, "s32") * 300, 2], "u8")  # noqa: E731
    assert wrap(x).tolist() == nx.jit(wrap)(x).tolist() == [44, 2]


def test_lists_keep_names_and_vectorized_axes():
    """A list with such tensors is stacked, eagerly and while tracing."""
    named = nx.tensor([1, 2], names=["a"])
    vectors = nx.vectorize(nx.tensor([[1, 2], [3, 4]]), "v")
    for x, parts in ((named, [3, 4]), (vectors, [3, 4]), (vectors[0], 5)):
        make = lambda x, parts=parts: nx.tensor([parts, x])  # noqa: E731
        expected = nx.stack([nx.tensor(parts), x])
        for found in (make(x), nx.jit(make)(x), nx.asarray([parts, x])):
            assert found.names == expected.names
            assert found.vectorized_axes == expected.vectorized_axes
            assert found.shape == expected.shape
            assert nx.devectorize(found).tolist() == nx.devectorize(expected).tolist()
    rows = nx.add([named, [3, 4]], 1)
    assert list(rows.names) == [None, "a"]
    assert rows.tolist() == [[2, 3], [4, 5]]


def test_named_elements_of_lists_are_checked_before_they_are_written():
    named = nx.tensor([1j, 2j], names=["a"])
    with pytest.raises(nx.DTypeError, match="a complex number cannot become an element"):
        nx.zeros((1, 2)).at[:].set([named])
    assert nx.zeros((1, 2)).at[:].set([nx.real(named)]).tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize(
    ("x", "number", "advice"),
    [
        (nx.tensor([5], "u8"), 300, (300, "s32")),
        (nx.tensor([5], "u8"), -1, (-1, "s32")),
        (nx.tensor([5], "u32"), -1, (-1, "s32")),
        (nx.tensor([5]), 2**40, (2**40, "s64")),
        (nx.tensor([5]), 2**63, None),
        (nx.tensor([5], "u64"), -1, None),
        (nx.tensor([5]), 2**64, None),
    ],
)
def test_advice_for_large_scalars_has_the_right_result(x, number, advice):
    with pytest.raises(OverflowError, match="out of bounds") as raised:
        x + number
    if advice is None:
        assert str(raised.value).endswith('convert the tensor first, as in nx.astype(x, "f64")')
        wide = nx.astype(x, "f64") + number
    else:
        value, dtype = advice
        assert f'choose a dtype, as in nx.tensor({value}, "{dtype}")' in str(raised.value)
        wide = x + nx.tensor(value, dtype)
    assert wide.tolist() == [float(5 + number) if advice is None else 5 + number]


@pytest.mark.parametrize(
    "make",
    [
        lambda: nx.tensor([np.int64(-1), np.uint64(2**63)]),
        lambda: nx.tensor([[np.int64(-1)], [np.uint64(2**63)]]),
        lambda: nx.tensor([np.array([-1]), np.array([2**63], "uint64")]),
        lambda: nx.asarray([nx.tensor(-1, "s8"), nx.tensor(2**63, "u64")]),
        lambda: nx.stack([[np.int64(-1), np.uint64(2**63)]]),
        lambda: nx.tensor([-1, np.uint64(2**63)]),
        lambda: nx.tensor([np.int32(-1), 2**63]),
    ],
)
def test_typed_integers_without_a_common_dtype_raise(make):
    with pytest.raises(
        OverflowError, match=r"share no integer dtype; got -1 and 9223372036854775808"
    ):
        make()


def test_typed_integers_with_a_common_dtype():
    small = nx.tensor([np.int64(-1), np.uint64(5)])
    assert (small.dtype, small.tolist()) == (nx.int64, [-1, 5])
    typed = nx.tensor([np.int64(-1), np.uint64(2**63)], dtype="f64")
    assert typed.tolist() == [-1.0, 2.0**63]
    # Two tensors promote by their dtypes.
    assert nx.stack([nx.tensor(-1, "s64"), nx.tensor(5, "u64")]).dtype == nx.int64
