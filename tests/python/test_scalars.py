"""Python scalars, NumPy scalars, 0-d tensors and lists combined with tensors of every dtype.

The expected values come from NumPy on arrays of the same dtype, or are exact integers. A scalar
must be rounded once, to the dtype of the other operand, in eager, jitted and vmapped calls.
"""

import ast
import bisect
import math
import operator
from pathlib import Path

import numpy as np
import pytest

import nxla as nx
import test_dtype_pairs

#: For each dtype: elements, and a scalar that does not fit in 32 bits.
WIDE = {
    "f64": ([0.3, 0.7, 2.3], 0.1),
    "c128": ([0.3 + 0.2j, 0.7, 2.3j], 0.1 + 0.3j),
    "s64": ([3, 5, 2**53 + 1], 2**53 + 3),
    "u64": ([3, 5, 2**63 + 1], 2**63 + 3),
}
NUMPY = {"f64": "f8", "c128": "c16", "s64": "i8", "u64": "u8"}
KINDS = {"f64": "f", "c128": "c", "s64": "i", "u64": "i"}


def update_with(operation):
    """Return an update of one element of an array."""

    def update(x, s):
        x = x.copy()
        x[1] = operation(x[1], s)
        return x

    return update


def assign(x, s):
    """Assign to an element of a copy, which only works outside of traced functions."""
    x = nx.asarray(x, copy=True) + 0
    x[1] = s
    return x


def put(x, s):
    """Return an array with another last element."""
    return update_with(lambda _, s: s)(x, s)


def edges(x, s):
    """Return an array between two scalars."""
    return np.concatenate([[s], x, [s]]).astype(x.dtype)


def add(x, y):
    """Add two values, as the function of a reduction."""
    return x + y


MASK = np.array([True, False, True])
INDEX = nx.tensor([1])

#: The name, the kinds of dtypes, the function of nxla for a tensor and a scalar, and NumPy's
#: function.
UPDATES = [
    ("at.set", "fci", lambda x, s: x.at[1].set(s), put),
    ("at.set at a tensor", "fci", lambda x, s: x.at[nx.tensor(1)].set(s), put),
    ("at.set at a list", "fci", lambda x, s: x.at[[1]].set(s), put),
    ("at.set at a mask", "fci", lambda x, s: x.at[[False, True, False]].set(s), put),
    ("at.set of a list", "fci", lambda x, s: x.at[1:2].set([s]), put),
    ("at.add", "fci", lambda x, s: x.at[1].add(s), update_with(operator.add)),
    ("at.subtract", "fci", lambda x, s: x.at[1].subtract(s), update_with(operator.sub)),
    ("at.multiply", "fci", lambda x, s: x.at[1].multiply(s), update_with(operator.mul)),
    ("at.divide", "fc", lambda x, s: x.at[1].divide(s), update_with(operator.truediv)),
    ("at.power", "fc", lambda x, s: x.at[1].power(s), update_with(operator.pow)),
    ("at.min", "fi", lambda x, s: x.at[1].min(s), update_with(np.minimum)),
    ("at.max", "fi", lambda x, s: x.at[1].max(s), update_with(np.maximum)),
    ("at.apply", "fci", lambda x, s: x.at[1].apply(lambda _: s), put),
    ("indexed_put", "fci", lambda x, s: nx.indexed_put(x, [1], s), put),
    ("indexed_put", "fci", lambda x, s: nx.indexed_put(x, INDEX, s), put),
    ("indexed_add", "fci", lambda x, s: nx.indexed_add(x, [1], s), update_with(operator.add)),
    ("put_slice", "fci", lambda x, s: nx.put_slice(x, [INDEX[0]], [s]), put),
    (
        "put_diagonal",
        "fci",
        lambda x, s: nx.put_diagonal(nx.make_diagonal(x), [s, s, s]),
        lambda x, s: np.diag(np.full_like(x, s)),
    ),
]
CHOICES = [
    ("where", "fci", lambda x, s: nx.where(MASK, x, s), lambda x, s: np.where(MASK, x, s)),
    ("where", "fci", lambda x, s: nx.where(MASK, s, x), lambda x, s: np.where(MASK, s, x)),
    ("where", "fci", lambda x, s: nx.where(MASK, [s, s, s], x), lambda x, s: np.where(MASK, s, x)),
    ("clip", "fi", nx.clip, np.maximum),
    ("clip", "fi", lambda x, s: nx.clip(x, max=s), np.minimum),
    ("clip", "fi", lambda x, s: nx.clip(s, x, x), lambda x, _: x),
    ("clip", "f", lambda x, s: nx.clip(nx.astype(x, "s8"), s, x), None),
    ("full_like", "fci", nx.full_like, np.full_like),
    ("full", "fci", lambda x, s: nx.full((3,), s, x.dtype), np.full_like),
    ("full", "fci", lambda x, s: nx.full((3,), [s], x.dtype), np.full_like),
    ("astype", "fci", lambda x, s: nx.astype(s, x.dtype), lambda x, s: np.array(s, x.dtype)),
    ("astype", "fci", lambda x, s: nx.astype([s], x.dtype), lambda x, s: np.array([s], x.dtype)),
    ("pad", "fci", lambda x, s: nx.pad(x, s, [(1, 1)]), edges),
    ("pad_outer", "fci", lambda x, s: nx.pad_outer(x, s, [(1, 1)]), edges),
    ("concat", "fci", lambda x, s: nx.concat([[s], x, [s]]), edges),
    ("stack", "fci", lambda x, s: nx.stack([x[0], s]), lambda x, s: np.stack([x[0], s])),
    (
        "diff",
        "fci",
        lambda x, s: nx.diff(x, prepend=[s], append=[s]),
        lambda x, s: np.diff(edges(x, s)),
    ),
    ("interp", "f", lambda x, s: nx.interp(x + 9, x, x, right=s), np.full_like),
    (
        "interp",
        "f",
        lambda x, s: nx.interp(s, [0.0, 1.0], x[:2]),
        lambda x, s: np.interp(s, [0, 1], x[:2]),
    ),
]
COMPARISONS = [
    ("equal", "fci", lambda x, s: nx.equal(x.at[1].set(s), s), lambda x, s: put(x, s) == s),
    ("isin", "fci", lambda x, s: nx.isin(x.at[1].set(s), s), lambda x, s: put(x, s) == s),
    ("isin", "fci", lambda x, s: nx.isin(x.at[1].set(s), [s]), lambda x, s: put(x, s) == s),
    ("isin", "fci", lambda x, s: nx.isin(s, x.at[1].set(s)), lambda *_: np.array(True)),
    ("isclose", "f", lambda x, s: nx.isclose(x.at[1].set(s), s, 0, 0), lambda x, s: put(x, s) == s),
    (
        "all_close",
        "f",
        lambda x, s: nx.all_close(x * 0 + s, s, rtol=0, atol=0),
        lambda *_: np.array(True),
    ),
    ("allclose", "f", lambda x, s: nx.allclose(x * 0 + s, s, 0, 0), lambda *_: np.array(True)),
    (
        "searchsorted",
        "fi",
        lambda x, s: nx.searchsorted(nx.sort(x.at[1].set(s)), s),
        lambda x, s: np.searchsorted(np.sort(put(x, s)), s).astype("i4"),
    ),
    (
        "searchsorted",
        "fi",
        lambda x, s: nx.searchsorted(nx.sort(x.at[1].set(s)), [s], side="right"),
        lambda x, s: np.searchsorted(np.sort(put(x, s)), [s], side="right").astype("i4"),
    ),
    (
        "histogram",
        "f",
        lambda x, s: nx.histogram(x, [0.0, s, 9.0])[1],
        lambda x, s: np.array([0.0, s, 9.0], x.dtype),
    ),
]
COMPUTED = [
    (
        "logsumexp",
        "f",
        lambda x, s: nx.logsumexp(x, scale=s),
        lambda x, s: np.log(np.sum(s * np.exp(x))),
    ),
    ("log", "c", lambda x, s: nx.log(x, s), lambda x, s: np.log(x) / np.log(s)),
    ("log", "f", lambda x, s: nx.log(x, s), lambda x, s: np.log(x) / np.log(s)),
    ("quantile", "f", nx.quantile, np.quantile),
    ("percentile", "f", nx.percentile, np.percentile),
    ("nanquantile", "f", nx.nanquantile, np.nanquantile),
    ("nanpercentile", "f", nx.nanpercentile, np.nanpercentile),
    ("reduce", "fci", lambda x, s: nx.reduce(x, s, add), lambda x, s: x.sum() + s),
    ("max", "fi", lambda x, s: x.max(initial=s), lambda x, s: np.max(x, initial=s)),
    ("min", "fi", lambda x, s: x.min(initial=s), lambda x, s: np.min(x, initial=s)),
    ("sum", "fci", lambda x, s: x.sum(initial=s), lambda x, s: np.sum(x, initial=s)),
    ("prod", "fci", lambda x, s: x.prod(initial=s), lambda x, s: np.prod(x, initial=s)),
    ("outer", "fi", nx.outer, lambda x, s: np.outer(x, s)),
    ("kron", "fci", nx.kron, lambda x, s: np.kron(x, s)),
    ("dot", "fci", nx.dot, np.multiply),
    ("matmul", "fci", lambda x, s: nx.matmul(x, [s, s, s]), lambda x, s: x @ np.full_like(x, s)),
    ("vecdot", "fi", lambda x, s: nx.vecdot(x, [s, s, s]), lambda x, s: x @ np.full_like(x, s)),
    ("einsum", "fci", lambda x, s: nx.einsum("i,->i", x, s), np.multiply),
    ("cross", "f", lambda x, s: nx.cross(x, [s, 0, 0]), lambda x, s: np.cross(x, [s, 0, 0])),
    (
        "solve",
        "fc",
        lambda x, s: nx.linalg.solve(nx.make_diagonal(x), [s, s, s]),
        lambda x, s: s / x,
    ),
    (
        "weighted_mean",
        "f",
        lambda x, s: nx.weighted_mean(x, [s, 1, 1]),
        lambda x, s: np.average(x, weights=[s, 1, 1]),
    ),
    ("leaky_relu", "f", lambda x, s: nx.nn.leaky_relu(-x, negative_slope=s), lambda x, s: -x * s),
    ("squared_error", "f", nx.nn.squared_error, lambda x, s: (x - s) ** 2),
    ("linspace", "fc", lambda x, s: nx.linspace(x[0], s, 3), lambda x, s: np.linspace(x[0], s, 3)),
    (
        "normal",
        "f",
        lambda x, s: nx.random.normal(nx.random.key(0), s, 0.0, shape=(3,), dtype="f64")[0],
        np.full_like,
    ),
]
_BINARY = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide,
    "pow": np.power, "remainder": np.remainder, "floor_divide": np.floor_divide, "fmod": np.fmod,
    "atan2": np.arctan2, "maximum": np.maximum, "minimum": np.minimum, "hypot": np.hypot,
    "copysign": np.copysign, "nextafter": np.nextafter, "logaddexp": np.logaddexp,
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
    "equal": np.equal, "not_equal": np.not_equal, "less": np.less, "less_equal": np.less_equal,
    "greater": np.greater, "greater_equal": np.greater_equal,
    "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor,
}  # fmt: skip
_COMPLEX = {"add", "subtract", "multiply", "divide", "pow", "equal", "not_equal"}
_INTEGER = {
    "add", "subtract", "multiply", "maximum", "minimum", "remainder", "floor_divide", "fmod",
    "bitwise_and", "bitwise_or", "bitwise_xor", "equal", "not_equal", "less", "less_equal",
    "greater", "greater_equal", "logical_and", "logical_or", "logical_xor",
}  # fmt: skip


def binary_rows(name):
    """Return a row for a function of two operands, and one for its operands exchanged."""
    kinds = "f" * ("bitwise" not in name) + "c" * (name in _COMPLEX) + "i" * (name in _INTEGER)
    ours, theirs = getattr(nx, name), _BINARY[name]
    yield name, kinds, ours, theirs
    yield name, kinds, lambda x, s: ours(s, x), lambda x, s: theirs(s, x)


ROWS = [
    *UPDATES,
    *CHOICES,
    *COMPARISONS,
    *COMPUTED,
    *(row for name in _BINARY for row in binary_rows(name)),
]

#: Functions whose other operands are functions, or are parameters of an algorithm.
WITHOUT_SCALARS = {
    "checkpoint", "custom_grad", "custom_jvp", "matrix_rank", "pinv", "window_reduce",
}  # fmt: skip


def test_every_function_of_two_operands_has_a_row():
    stub = Path(nx.__file__).with_name("_core.pyi").read_text()
    functions = [node for node in ast.parse(stub).body if isinstance(node, ast.FunctionDef)]
    several = {
        function.name
        for function in functions
        if sum(
            "TensorLike" in ast.unparse(a)
            for a in ast.walk(function.args)
            if isinstance(a, ast.arg)
        )
        > 1
    }
    public = {
        name
        for name in several
        if hasattr(nx, name) or hasattr(nx.nn, name) or hasattr(nx.linalg, name)
    }
    # The rows of functions of tensors only are in the other table.
    rows = {row[0] for row in (*ROWS, *test_dtype_pairs.ROWS)}
    assert public - rows == WITHOUT_SCALARS


def assert_same(found, expected):
    """Compare with NumPy to a few units in the last place of 64 bits, and exactly for integers."""
    found = np.asarray(found)
    if expected.dtype.kind in "fc":
        np.testing.assert_allclose(found, expected, rtol=2e-15, atol=2e-16)
    else:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", WIDE)
def test_scalars_are_rounded_to_the_dtype_of_the_tensor(dtype):
    data, scalar = WIDE[dtype]
    array = np.array(data, NUMPY[dtype])
    exact = array.dtype.type(scalar)
    x = nx.tensor(array)
    rows = [row for row in ROWS if KINDS[dtype] in row[1]]

    def all_rows(x):
        return [ours(x, scalar) for _, _, ours, _ in rows]

    eager = all_rows(x)
    jitted = nx.jit(all_rows, compiler="evaluator")(x)
    on_xla = nx.jit(all_rows, compiler="xla")(x)
    mapped = nx.vmap(all_rows)(nx.stack([x, x]))
    failures = []
    for row, (name, _, ours, theirs) in enumerate(rows):
        found = np.asarray(eager[row])
        try:
            if theirs is not None:
                with np.errstate(all="ignore"):
                    assert_same(found, np.asarray(theirs(array, exact)))
            assert {each[row].dtype for each in (jitted, on_xla, mapped)} == {eager[row].dtype}
            # An eager and a jitted call return equal bits.
            assert np.asarray(jitted[row]).tobytes() == found.tobytes(), "jitted"
            assert_same(on_xla[row], found)
            assert_same(mapped[row], np.stack([found, found]))
            # A scalar tensor with the dtype equals the converted scalar.
            assert_same(ours(x, exact), found)
            assert_same(ours(x, nx.tensor(scalar, dtype=dtype)[None][0]), found)
        except (AssertionError, ValueError, nx.NxlaError) as error:
            failures.append(f"{name}, row {row}: {error}")
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize("dtype", WIDE)
def test_assignment_rounds_once(dtype):
    data, scalar = WIDE[dtype]
    array = np.array(data, NUMPY[dtype])
    for value in (scalar, array.dtype.type(scalar), nx.tensor(scalar, dtype=dtype)):
        assert_same(assign(nx.tensor(array), value), put(array, scalar))
    x = nx.tensor(array) + 0
    x[:2] = [scalar, scalar]
    assert_same(x, np.concatenate([[array.dtype.type(scalar)] * 2, array[2:]]))


INTEGERS = ["bool", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64"]
FLOATS = ["f16", "f32", "f64", "c64", "c128"]
NUMPY_CODES = {
    "bool": "?", "f16": "f2", "f32": "f4", "c64": "c8", "u8": "u1", "u16": "u2", "u32": "u4",
    "s8": "i1", "s16": "i2", "s32": "i4", **NUMPY,
}  # fmt: skip
ORDERS = {
    nx.less: operator.lt, nx.less_equal: operator.le, nx.greater: operator.gt,
    nx.greater_equal: operator.ge, nx.equal: operator.eq, nx.not_equal: operator.ne,
}  # fmt: skip
RING = {nx.add: operator.add, nx.subtract: operator.sub, nx.multiply: operator.mul}


def extremes(dtype):
    """Return the ends of a dtype of integers, and some numbers between them."""
    if dtype == "bool":
        return [False, True]
    limits = nx.iinfo(dtype)
    candidates = [
        limits.min,
        limits.min + 1,
        -1,
        0,
        1,
        5,
        2**63 - 1,
        2**63,
        limits.max - 1,
        limits.max,
    ]
    return sorted({n for n in candidates if limits.min <= n <= limits.max})


def wrap(number, dtype):
    """Return the value of an integer in a dtype."""
    limits = nx.iinfo(dtype)
    return (number - limits.min) % (limits.max - limits.min + 1) + limits.min


def modes(function, *operands):
    """Return the results of a function eagerly, jitted on both backends and vmapped."""
    yield "eager", function(*operands)
    yield "evaluator", nx.jit(function, compiler="evaluator")(*operands)
    yield "xla", nx.jit(function, compiler="xla")(*operands)
    mapped = nx.vmap(function)(*[nx.stack([x, x]) for x in operands])
    yield "vmap", [x[1] for x in mapped]


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64", "c64", "c128"])
def test_eager_and_traced_powers_are_bitwise_equal(dtype):
    rng = np.random.default_rng(0)
    x = nx.astype(nx.tensor(np.abs(rng.normal(size=2000)) + 0.1), dtype)
    for exponent in (-3, -2, -1, 0, 1, 2, 3, 4, 7, 65, 0.5, -0.5, 1.0, 2.0, 1.5):

        def power(x, exponent=exponent):
            return x**exponent

        traced = nx.jit(power, compiler="evaluator")(x)
        with nx.default_options(compiler="evaluator"):
            eager = power(x)
        assert nx.to_binary(eager) == nx.to_binary(traced), exponent
    assert nx.to_binary(x**1) == nx.to_binary(x)


def test_mixed_integer_dtypes_are_compared_exactly():
    pairs = [(a, b) for a in INTEGERS for b in INTEGERS if "u64" in (a, b)]
    pairs += [("u8", "s8"), ("s64", "bool"), ("u32", "s64")]
    numbers = {dtype: extremes(dtype) for dtype in INTEGERS}

    def compare(*tensors):
        by_dtype = dict(zip(INTEGERS, tensors, strict=True))
        found = []
        for a, b in pairs:
            x, y = by_dtype[a][:, None], by_dtype[b][None]
            found += [order(x, y) for order in ORDERS]
            found += [nx.isin(by_dtype[a], by_dtype[b])]
            found += [nx.searchsorted(by_dtype[a], by_dtype[b], side=s) for s in ("left", "right")]
            found += [nx.maximum(x, y), nx.minimum(x, y), nx.clip(x, y.min(), y.max())]
            found += [function(x, y) for function in RING]
        return found

    expected = []
    for a, b in pairs:
        xs, ys = numbers[a], numbers[b]

        def table(function, xs=xs, ys=ys):
            return [[function(x, y) for y in ys] for x in xs]

        expected += [table(order) for order in ORDERS.values()]
        expected += [[x in ys for x in xs]]
        expected += [
            [bisect.bisect_left(xs, y) for y in ys],
            [bisect.bisect_right(xs, y) for y in ys],
        ]
        expected += [table(max), table(min), [[min(max(x, *ys[:1]), ys[-1])] for x in xs]]
        common = nx.result_type(a, b)
        common = nx.uint8 if common == nx.bool else common
        expected += [table(lambda x, y, f=f, c=common: wrap(f(x, y), c)) for f in RING.values()]
    tensors = [nx.tensor(numbers[dtype], dtype=dtype) for dtype in INTEGERS]
    for mode, found in modes(compare, *tensors):
        rows = len(expected) // len(pairs)
        for row, (ours, exact) in enumerate(zip(found, expected, strict=True)):
            assert ours.tolist() == exact, (mode, pairs[row // rows], row % rows)


@pytest.mark.parametrize("size", [0, 1, 2**31, 2**53 + 1, 2**63, 2**64, 2**70, 10**50, 10**400])
def test_python_integers_of_any_size_are_compared_exactly(size):
    for number in (size, -size):
        for dtype in INTEGERS:
            numbers = extremes(dtype)
            x = nx.tensor(numbers, dtype=dtype)
            for ours, exact in ORDERS.items():
                expected = [exact(n, number) for n in numbers]
                assert ours(x, number).tolist() == expected
                assert ours(number, x).tolist() == [exact(number, n) for n in numbers]
                assert nx.jit(lambda x, f=ours: f(x, number))(x).tolist() == expected  # noqa: B023
            assert nx.isin(x, number).tolist() == [n == number for n in numbers]
            assert nx.searchsorted(x, number).item() == bisect.bisect_left(numbers, number)


def test_mixed_dtypes_use_the_promoted_dtype():
    dtypes = ["bool", "u8", "u64", "s16", "s64", *FLOATS]
    pairs = [(a, b) for a in dtypes for b in dtypes if a in FLOATS or b in FLOATS]
    data = {
        dtype: np.array([1, 0, 1] if dtype == "bool" else [3, 5, 1], NUMPY_CODES[dtype])
        for dtype in dtypes
    }
    for dtype in FLOATS:
        data[dtype] = data[dtype] / data[dtype].dtype.type(7)
    functions = {
        nx.multiply: np.multiply,
        nx.equal: np.equal,
        (lambda x, y: nx.where(MASK, x, y)): (lambda x, y: np.where(MASK, x, y)),
        (lambda x, y: nx.concat([x, y])): (lambda x, y: np.concatenate([x, y])),
    }

    def all_pairs(*tensors):
        by_dtype = dict(zip(dtypes, tensors, strict=True))
        return [f(by_dtype[a], by_dtype[b]) for a, b in pairs for f in functions]

    tensors = [nx.tensor(data[dtype]) for dtype in dtypes]
    for mode, found in modes(all_pairs, *tensors):
        results = iter(found)
        for a, b in pairs:
            common = NUMPY_CODES[str(nx.result_type(a, b))]
            for theirs in functions.values():
                ours = np.asarray(next(results))
                expected = theirs(data[a].astype(common), data[b].astype(common))
                assert ours.dtype == expected.dtype, (mode, a, b)
                bound = 4 * np.finfo(common).eps
                np.testing.assert_allclose(ours, expected, bound, bound, err_msg=f"{mode} {a} {b}")


def test_result_type_is_the_dtype_of_a_sum():
    def dtype_or_error(function):
        try:
            return function()
        except OverflowError:
            return OverflowError

    for dtype in test_dtype_pairs.DTYPES:
        x = nx.zeros((), dtype=dtype)
        for number in (True, 0, 1, -1, 300, 2**40, 1.5, 1j):
            if dtype == "bool" and number is True:
                continue  # A sum of booleans is an integer; their common dtype is not.
            expected = dtype_or_error(lambda x=x, y=number: (x + y).dtype)
            found = dtype_or_error(lambda x=x, y=number: nx.result_type(x, y))
            assert found == expected, (dtype, number)


@pytest.mark.parametrize(
    "make",
    [
        lambda: nx.tensor([-1, 2**63]),
        lambda: nx.tensor((2**64 - 1, -(2**63))),
        lambda: nx.tensor([[-1], [2**63]]),
        lambda: nx.tensor([-1, 2**64]),
        lambda: nx.tensor([np.True_, -1, 2**63]),
        lambda: nx.stack([np.True_, -1, 2**63]),
        lambda: nx.jit(lambda x: nx.tensor([x, -1, 2**63]))(np.True_),
        lambda: nx.asarray([-1, 2**63]),
        lambda: nx.stack([-1, 2**63]),
        lambda: nx.stack([[-1], [2**63]]),
        lambda: nx.concat([[-1], [2**63]]),
        lambda: nx.full((2,), [-1, 2**63]),
        lambda: nx.where(MASK, -1, 2**63),
        lambda: nx.add([-1], [2**63]),
        lambda: nx.jit(lambda x: x + nx.stack([-1, 2**63]))(nx.tensor([1, 2])),
    ],
)
def test_literals_without_a_common_integer_dtype_raise(make):
    with pytest.raises(OverflowError, match=r"share no integer dtype; got -.*; pass a float dtype"):
        make()


def test_large_integer_literals_with_a_common_dtype():
    expected = [-1.0, 2.0**63]
    assert nx.tensor([-1, 2**63], dtype="f64").tolist() == expected
    assert nx.tensor([-1.0, 2**63]).tolist() == expected
    x = nx.zeros(2, dtype="f64")
    x[:] = [-1, 2**63]
    assert x.tolist() == expected
    assert nx.tensor([0.5, 2**70]).tolist() == [0.5, 2.0**70]
    assert (
        nx.tensor([2**70], dtype="f64").tolist()
        == nx.full((1,), 2**70, "f64").tolist()
        == [2.0**70]
    )
    for literal in (
        nx.tensor([2**63, 1]),
        nx.tensor([True, 2**63]),
        nx.stack([1, 2**63]),
        nx.concat([[1], [2**63]]),
        nx.where(MASK[:1], 2**63, 1),
        nx.add(2**63, [1]),
    ):
        assert literal.dtype == nx.uint64
        assert max(np.ravel(literal.tolist())) >= 2**63
    with pytest.raises(OverflowError, match="out of bounds for u64"):
        nx.stack([nx.tensor(2**63, dtype="u64"), -1])


#: Functions of a tensor and an integer, which is an operand, an element or a limit.
WITH_INTEGER = {
    "multiply": lambda x, n: x * n,
    "divide": lambda x, n: n / x,
    "maximum": nx.maximum,
    "where": lambda x, n: nx.where([True, False], x, n),
    "stack": lambda x, n: nx.stack([x[0], n]),
    "set": lambda x, n: x.at[0].set(n),
    "clip": lambda x, n: nx.clip(x, n, None) if n < 0 else nx.clip(x, 0, n),
}


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        (name, dtype)
        for name in WITH_INTEGER
        for dtype in ("f32", "f64", "c128")
        if dtype != "c128" or name not in ("maximum", "clip")
    ],
)
@pytest.mark.parametrize("number", [2**100, 2**127, math.factorial(34), -(10**38), 10**300])
def test_large_integers_become_floats_with_float_tensors(name, dtype, number):
    call, x = WITH_INTEGER[name], nx.tensor([1.0, 2.0], dtype=dtype)
    expected = call(x, float(number))
    for found in (call(x, number), nx.jit(call, static_argnums=1)(x, number)):
        assert found.dtype == expected.dtype
        assert found.tolist() == expected.tolist()


def test_tensors_of_large_integers():
    number = 10**40
    for found in (nx.tensor(number, "f64"), nx.full(1, number, "f64"), nx.tensor([number], "f64"),
                  nx.tensor(number, "c128")):  # fmt: skip
        assert found.item() == 1e40
    assert nx.tensor([1.5, 10**30]).tolist() == nx.tensor([1.5, 1e30]).tolist()
    assert nx.tensor([1.5, np.float16(3)]).dtype == nx.float16
    for dtype in ("s32", "u64", "pred"):
        with pytest.raises(OverflowError, match=r"1e40"):
            nx.tensor([1], dtype=dtype) * number
    for dtype in ("s32", "u64"):
        with pytest.raises(OverflowError, match=r"1e40 is out of bounds"):
            nx.tensor(number, dtype)
    for make in (nx.tensor, lambda n: nx.tensor([1, n]), lambda n: nx.full(2, n), nx.jit(nx.sin)):
        with pytest.raises(OverflowError, match="1e40 fits neither s64 nor u64"):
            make(number)


@pytest.mark.parametrize("digits", [400, 5000])
def test_integers_beyond_all_floats_raise(digits):
    number = 10**digits
    calls = [nx.tensor, lambda n: nx.tensor([1.0]) * n, lambda n: nx.tensor([1]) * n,
             lambda n: nx.tensor(n, "f64"), lambda n: nx.tensor([1.0, n])]  # fmt: skip
    for call in calls:
        with pytest.raises(OverflowError, match=f"got an integer of {number.bit_length()} bits"):
            call(number)


def test_clip_limits_beyond_the_dtype():
    x = nx.tensor([0, 7, 255], dtype="u8")
    assert nx.clip(x, -1, 300).tolist() == np.clip(np.array([0, 7, 255], "u1"), -1, 300).tolist()
    for limit in (2**70, 10**40, 10**400):
        for values in (x, nx.astype(x, "f64")):
            found = nx.clip(values, -limit, limit)
            assert (found.dtype, found.tolist()) == (values.dtype, values.tolist())
            jitted = nx.jit(lambda y, n=limit: nx.clip(y, -n, n))
            assert jitted(values).tolist() == values.tolist()
        for limits in ((limit, None), (None, -limit)):
            with pytest.raises(OverflowError, match="out of bounds for u8"):
                nx.clip(x, *limits)
    for limits in ((300, None), (None, -1)):
        with pytest.raises(OverflowError, match="out of bounds for u8"):
            nx.clip(x, *limits)


@pytest.mark.parametrize("dtype", ["u8", "s8", "s32", "u64", "s64"])
def test_roll_by_tensor_shifts(dtype):
    array = np.arange(24).reshape(2, 3, 4)
    x = nx.tensor(array)
    by_axis = nx.jit(lambda x, n: nx.roll(x, n, 1))
    for shift in (0, 1, 3, 5, 100, *(() if dtype[0] == "u" else (-1, -7, -100))):
        n = nx.tensor(shift, dtype=dtype)
        assert by_axis(x, n).tolist() == np.roll(array, shift, 1).tolist()
        assert nx.roll(x, n).tolist() == np.roll(array, shift).tolist()
        found = nx.roll(x, (n, 1), (0, 2))
        assert found.tolist() == np.roll(array, (shift, 1), (0, 2)).tolist()
    shifts = nx.tensor([0, 1, 2], dtype=dtype)
    rolled = nx.vmap(lambda n: nx.roll(x, n, 2))(shifts)
    assert rolled.tolist() == [np.roll(array, n, 2).tolist() for n in range(3)]


def test_roll_rejects_noninteger_shifts():
    for shift in (1.5, nx.tensor(1.5), nx.tensor([1, 2])):
        with pytest.raises(nx.ArgumentError, match="roll: shift: must be an integer"):
            nx.roll([1, 2, 3], shift, 0)


def test_conversions_to_float8_e4m3fn_saturate():
    values = [1000.0, -1000.0, float("inf"), float("-inf"), 448.0, 464.0, 470.0]
    for source in ("f64", "f32", "bf16"):
        x = nx.tensor(values, dtype=source)
        for compiler in ("evaluator", "xla"):
            found = nx.jit(lambda x: x.astype("f8_e4m3fn").astype("f32"), compiler=compiler)(x)
            assert found.tolist() == [448.0, -448.0, 448.0, -448.0, 448.0, 448.0, 448.0]
        assert np.isnan(
            nx.tensor([np.nan], dtype=source).astype("f8_e4m3fn").astype("f32").numpy()
        ).all()


@pytest.mark.parametrize("count", [3, 5000])
def test_nonzero_bytes_of_boolean_arrays_are_true(count):
    raw = np.arange(count, dtype="u1") % 251
    flags = raw.view(bool)
    expected = (raw != 0).tolist()
    frozen = np.frombuffer(raw.tobytes(), "u1").view(bool)
    pair = np.stack([raw, raw]).view(bool)
    for array, elements in (
        (flags, expected),
        (frozen, expected),
        (flags[::2], expected[::2]),
        (flags[::-1], expected[::-1]),
        (memoryview(flags), expected),
        (pair.T, [[value, value] for value in expected]),
    ):
        x = nx.tensor(array)
        assert x.dtype == nx.bool
        assert x.tolist() == elements
        assert nx.logical_not(array).tolist() == np.logical_not(elements).tolist()
        assert (
            nx.asarray(array, copy=True).astype("u8").tolist()
            == np.asarray(elements).astype(int).tolist()
        )


@pytest.mark.parametrize("mask", [[False, True], [False, False], np.ma.nomask])
def test_masked_arrays_raise(mask):
    masked = np.ma.array([1.0, 2.0], mask=mask)
    for convert in (
        nx.tensor,
        nx.asarray,
        lambda x: nx.tensor([1.0, 1.0]) + x,
        nx.sum,
        lambda x: nx.tensor([x, x]),
        nx.jit(lambda x: x + 1),
    ):
        with pytest.raises(
            nx.ArgumentError, match=r"must not be masked; got .*MaskedArray; pass value.filled"
        ):
            convert(masked)
    assert nx.tensor(masked.filled(0.0)).shape == (2,)


# --- scalars that branches, rules and functions return ---

#: For each dtype: an element, and scalars that must take the dtype.
RETURNED = {
    "f64": (0.3, [0.1, 1, True]),
    "c128": (0.3, [0.1 + 0.3j, 0.1, 1]),
    "u64": (2**63 + 5, [0, 2**63 + 3, True]),
    "s64": (2**53 + 1, [-(2**53) - 3, 7]),
    **{dtype: (0.5, [0.0, 1]) for dtype in ("bf16", "f16", "f8_e4m3fn", "f32")},
    **{dtype: (3, [0, 100, True]) for dtype in ("u8", "u16", "s8", "s32")},
    "pred": (True, [False]),
}
#: Conditionals of a predicate, a tensor and a scalar. A true predicate selects the tensor.
CONDITIONALS = {
    "where": lambda p, x, s: nx.where(p, x, s),
    "if_": lambda p, x, s: nx.if_(p, lambda: x, lambda: s),
    "cond": lambda p, x, s: nx.cond(p, lambda x: x, lambda _: s, x),
    "clauses": lambda p, x, s: nx.cond([(p, lambda: x)], otherwise=lambda: s),
    "middle": lambda p, x, s: nx.cond(
        [(p, lambda: x), (nx.logical_not(p), lambda: s)], otherwise=lambda: s
    ),
    "container": lambda p, x, s: nx.cond(p, lambda: {"a": [x]}, lambda: {"a": [s]})["a"][0],
    "first": lambda p, x, s: nx.if_(nx.logical_not(p), lambda: s, lambda: x),
    "switch": lambda p, x, s: nx.switch(nx.astype(p, "s32"), [lambda: s, lambda: x]),
    "vectorized": lambda p, x, s: nx.devectorize(
        nx.cond(nx.vectorize(nx.reshape(p, (1,)), "v"), lambda: x, lambda: s)
    )[0],
}


@pytest.mark.parametrize("mode", ["eager", "evaluator", "xla"])
@pytest.mark.parametrize("name", CONDITIONALS)
@pytest.mark.parametrize("dtype", RETURNED)
def test_scalars_returned_by_branches_are_rounded_once(dtype, name, mode):
    value, scalars = RETURNED[dtype]
    x = nx.tensor(value, dtype)
    # XLA compiles the choices of all scalars as one program, which takes less time.
    for group in [scalars] if mode == "xla" else [[scalar] for scalar in scalars]:

        def choose(p, x, group=group):
            return [CONDITIONALS[name](p, x, scalar) for scalar in group]

        function = choose if mode == "eager" else nx.jit(choose, compiler=mode)
        for holds in (True, False):
            predicate = nx.tensor(holds)
            for scalar, result in zip(group, function(predicate, x), strict=True):
                expected = nx.where(predicate, x, scalar)
                assert (result.dtype, result.item()) == (expected.dtype, expected.item()), scalar


@pytest.mark.parametrize("name", [name for name in CONDITIONALS if name != "where"])
def test_scalars_of_all_branches_share_a_dtype(name):
    choose = CONDITIONALS[name]
    for x, s in ((2**63 + 5, 0), (1, 0.5), (True, 3)):
        for holds in (True, False):
            expected = nx.where(holds, x, s)
            result = nx.jit(lambda p, x=x, s=s: choose(p, x, s))(nx.tensor(holds))
            assert (result.dtype, result.item()) == (expected.dtype, expected.item())
    with pytest.raises(OverflowError, match="out of bounds for u8"):
        nx.jit(lambda p, x: choose(p, x, 300))(nx.tensor(True), nx.tensor(1, "u8"))


def with_vjp(x, s):
    """Return the gradient of a function whose backward rule returns a scalar."""

    @nx.custom_vjp
    def f(x):
        return x

    f.defvjp(lambda x: (x, None), lambda _, g: (s,))
    return nx.grad(f)(x)


def with_jvp(x, s):
    """Return the derivative of a function whose rule returns a scalar."""

    @nx.custom_jvp
    def f(x):
        return x

    f.defjvp(lambda values, tangents: s)
    return nx.jvp(f, (x,), (nx.ones_like(x),))[1]


#: Functions of a tensor and a scalar that return the scalar in the dtype of the tensor.
RULES = {
    "custom_grad": lambda x, s: nx.grad(lambda x: nx.custom_grad(x, x, lambda g: s))(x),
    "custom_vjp": with_vjp,
    "custom_jvp": with_jvp,
    "reduce": lambda x, s: nx.reduce(nx.reshape(x, (1,)), x, lambda a, b: s),
    "window_reduce": lambda x, s: nx.window_reduce(nx.reshape(x, (1,)), x, lambda a, b: s, 1)[0],
    "while_loop": lambda x, s: nx.while_loop(lambda y: y > 0.3, lambda y: s, x),
    "fori": lambda x, s: nx.fori(0, 3, lambda i, y: s, x),
}


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("dtype", ["f64", "f32", "bf16", "f16"])
def test_scalars_returned_by_rules_are_rounded_once(compiler, dtype, name):
    x = nx.tensor(0.5, dtype)
    result = nx.jit(lambda x: RULES[name](x, 0.1), compiler=compiler)(x)
    assert (result.dtype, result.item()) == (x.dtype, nx.tensor(0.1, dtype).item())
