"""Functions of NumPy and built-in functions of Python, called with tensors."""

import math

import numpy as np
import pytest

import nxla as nx

X = np.array([[3.0, 1.0, 2.5], [0.5, -1.0, 4.25]], dtype=np.float32)

#: NumPy functions that dispatch to methods.
METHOD_CALLS = {
    "all": lambda x: np.all(x > 0, axis=1),
    "amax": lambda x: np.amax(x, axis=0),
    "any": lambda x: np.any(x > 4, axis=1, keepdims=True),
    "argmax": lambda x: np.argmax(x, axis=1),
    "argmin": lambda x: np.argmin(x, axis=0),
    "argsort": lambda x: np.argsort(x, axis=1, kind="stable"),
    "clip": lambda x: np.clip(x, 0, 2),
    "cumprod": lambda x: np.cumprod(x),
    "cumsum": lambda x: np.cumsum(x, axis=0),
    "cumsum of all": lambda x: np.cumsum(x),
    "max": lambda x: np.max(x),
    "mean": lambda x: np.mean(x, axis=(0, 1)),
    "mean in a dtype": lambda x: np.mean(x, 0, np.float64),
    "min": lambda x: np.min(x, axis=-1),
    "prod": lambda x: np.prod(x, axis=0, keepdims=True),
    "repeat": lambda x: np.repeat(x, 2, axis=1),
    "reshape": lambda x: np.reshape(x, (3, 2)),
    "round": lambda x: np.round(x),
    "round to a decimal": lambda x: np.round(x, 1),
    "round to tens": lambda x: np.round(x * 10, -1),
    "squeeze": lambda x: np.squeeze(x[:1], axis=0),
    "std": lambda x: np.std(x, axis=1, ddof=1),
    "std of all": lambda x: np.std(x),
    "sum": lambda x: np.sum(x),
    "all with where": lambda x: np.all(x > 0, axis=0, where=x < 4),
    "any with where": lambda x: np.any(x > 2, where=x < 4, axis=1),
    "max with where": lambda x: np.max(x, axis=1, initial=-5.0, where=x < 2),
    "max with initial": lambda x: np.max(x, axis=0, initial=2.0),
    "min with where": lambda x: np.min(x, initial=2.0, where=x > 0.75),
    "prod with where": lambda x: np.prod(x, axis=1, initial=2.0, where=x > 0),
    "sum with where": lambda x: np.sum(x, axis=0, where=x > 0),
    "mean with where": lambda x: np.mean(x, axis=0, where=x > 0),
    "mean with where for rows": lambda x: np.mean(x, axis=1, keepdims=True, where=x[:, :1] > 0),
    "std with where": lambda x: np.std(x, axis=1, where=x < 4),
    "var with where": lambda x: np.var(x, where=x < 4, ddof=1),
    "sum with initial": lambda x: np.sum(x, initial=10.0),
    "sum in a dtype": lambda x: np.sum(x, axis=1, dtype=np.float64),
    "swapaxes": lambda x: np.swapaxes(x, 0, 1),
    "transpose": lambda x: np.transpose(x, (1, 0)),
    "var": lambda x: np.var(x),
    "var with a correction": lambda x: np.var(x, axis=0, correction=1),
}

#: Functions that return indices: s32 here, and int64 in NumPy.
INDICES = {"argmax", "argmin", "argsort"}


@pytest.mark.parametrize("name", METHOD_CALLS)
def test_numpy_functions_dispatch_to_methods(compiler, name):
    call = METHOD_CALLS[name]
    expected = call(X)
    with nx.default_options(compiler=compiler):
        for found in (call(nx.tensor(X)), nx.jit(call)(X)):
            assert isinstance(found, nx.Tensor)
            assert found.shape == expected.shape
            assert found.dtype == (np.int32 if name in INDICES else expected.dtype)
            assert np.allclose(found.numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize(
    "name", ["all", "any", "argmax", "max", "mean", "prod", "std", "sum", "var"]
)
def test_out_argument_raises(name):
    with pytest.raises(nx.ArgumentError, match=rf"{name}: .*out: must be None"):
        getattr(np, name)(nx.tensor(X), out=np.zeros(()))


def test_invalid_method_arguments_raise():
    x = nx.tensor(X)
    with pytest.raises(nx.ArgumentError, match="must not be passed together"):
        x.std(ddof=1, correction=1)
    with pytest.raises(nx.ArgumentError, match="kind: must be one of"):
        x.argsort(kind="bogo")
    with pytest.raises(nx.ArgumentError, match="order: must be 'C'"):
        np.reshape(x, (3, 2), order="F")
    with pytest.raises(nx.ArgumentError, match="initial: is required"):
        np.max(x, where=x > 0)
    with pytest.raises(nx.ArgumentError, match="decimals: must be an int"):
        x.round(0.5)


def test_other_numpy_functions_return_arrays():
    x = nx.tensor(X)
    for found, expected in [
        (np.sin(x), np.sin(X)),
        (np.add(X, x), X + X),
        (np.matmul(x, X.T), X @ X.T),
        (np.concatenate([x, X]), np.concatenate([X, X])),
        (np.where(x > 1, x, 0), np.where(X > 1, X, 0)),
        (np.sort(x), np.sort(X)),
    ]:
        assert type(found) is np.ndarray
        assert found.dtype == expected.dtype
        assert np.array_equal(found, expected)
    z = np.ones((2, 3), np.float32)
    np.add(z, x, out=z)
    assert np.array_equal(z, X + 1)


@pytest.mark.parametrize("function", [np.sin, lambda x: np.add(X, x), np.sort, np.asarray])
def test_numpy_functions_of_traced_values_raise(function):
    with pytest.raises(nx.TraceError, match="use the function of the same name in nx"):
        nx.jit(function)(X)


OPERATORS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "**": lambda a, b: a**b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "divmod": lambda a, b: divmod(a, b)[1] + divmod(a, b)[0],
}


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize(
    "other", [X + 2, np.float32(2), np.float64(3), np.int32(2)], ids=["array", "f32", "f64", "s32"]
)
def test_operators_with_numpy_operands_return_tensors(name, other):
    operator = OPERATORS[name]
    x = np.abs(X)
    for found, expected in [
        (operator(other, nx.tensor(x)), operator(other, x)),
        (operator(nx.tensor(x), other), operator(x, other)),
        (nx.jit(lambda x: operator(other, x))(x), operator(other, x)),
    ]:
        assert isinstance(found, nx.Tensor)
        assert np.allclose(found.numpy(), expected, rtol=1e-5)


def test_matmul_and_bitwise_with_numpy_return_tensors():
    x, bits = nx.tensor(X), np.array([1, 2, 3], np.int32)
    assert isinstance(X.T @ x, nx.Tensor)
    assert np.allclose((X.T @ x).numpy(), X.T @ X)
    for found, expected in [
        (bits & nx.tensor(bits + 1), bits & (bits + 1)),
        (bits | nx.tensor(bits + 1), bits | (bits + 1)),
        (bits ^ nx.tensor(bits + 1), bits ^ (bits + 1)),
        (bits << nx.tensor(bits), bits << bits),
        (bits >> nx.tensor(bits), bits >> bits),
    ]:
        assert isinstance(found, nx.Tensor)
        assert found.tolist() == expected.tolist()


def test_in_place_add_does_not_modify_the_array():
    z = original = np.ones((2, 3), np.float32)
    z += nx.tensor(X)
    assert isinstance(z, nx.Tensor)
    assert np.array_equal(z.numpy(), X + 1)
    assert np.array_equal(original, np.ones((2, 3)))


SELECTED = {
    "sum": {"initial": 2.0}, "prod": {}, "mean": {}, "var": {"ddof": 1}, "std": {},
    "max": {"initial": -9.0}, "min": {"initial": 9.0},
}  # fmt: skip


@pytest.mark.parametrize("name", SELECTED)
@pytest.mark.parametrize("excluded", [math.nan, math.inf, -math.inf])
def test_excluded_elements_change_neither_values_nor_gradients(compiler, name, excluded):
    selected = [True, False, True, True, False]
    x = nx.tensor(np.where(selected, [1.5, 0.0, -2.0, 4.0, 0.0], excluded))

    def function(x, where):
        return getattr(x, name)(where=where, **SELECTED[name])

    call = nx.jit(nx.value_and_grad(function), compiler=compiler)
    value, gradient = call(x, nx.tensor(selected))
    expected, slopes = call(x[selected], nx.tensor([True] * 3))
    np.testing.assert_allclose(value, expected, rtol=1e-14)
    np.testing.assert_allclose(gradient[selected], slopes, rtol=1e-14)
    assert gradient[[1, 4]].tolist() == [0.0, 0.0]


def test_python_builtins():
    assert round(nx.tensor([0.5, 1.5, 2.7])).tolist() == [0.0, 2.0, 3.0]
    assert round(nx.tensor(2.567, "f64"), 2).item() == 2.57
    assert round(nx.tensor([15, 25, 1234], "s16"), -1).tolist() == [20, 20, 1230]
    assert round(nx.tensor([15]), 2).tolist() == [15]
    assert [part.tolist() for part in divmod(nx.tensor([7, -7]), 2)] == [[3, -4], [1, 1]]
    assert [part.item() for part in divmod(7, nx.tensor(2))] == [3, 1]
    assert [row.tolist() for row in reversed(nx.tensor([[1, 2], [3, 4]]))] == [[3, 4], [1, 2]]
    assert math.trunc(nx.tensor(-2.5)) == -2
    assert f"{nx.tensor(1.5):.3f}" == "1.500"
    last = nx.jit(lambda x: next(reversed(x)) + round(x[0]) + divmod(x[1], 2)[1])
    assert last(nx.tensor([1.5, 3.0, 10.0])).item() == 13.0
    with pytest.raises(nx.TraceError):
        nx.jit(math.trunc)(1.5)
    with pytest.raises(TypeError):
        reversed(nx.tensor(1))


@pytest.mark.parametrize("function", [math.floor, math.ceil, math.trunc])
def test_whole_numbers_of_python(function):
    for dtype, number in (("s64", -(2**62) - 1), ("u64", 2**64 - 1), ("pred", True), ("s8", -3)):
        found = function(nx.tensor(number, dtype))
        assert type(found) is int
        assert found == number
    for number in (-1.5, 1.5, 2.0, 1e300):
        assert function(nx.tensor(number, "f64")) == function(number)
    with pytest.raises(ValueError, match="NaN"):
        function(nx.tensor(math.nan))
    with pytest.raises(nx.TraceError):
        nx.jit(function)(nx.tensor(1))


@pytest.mark.parametrize("x", [np.array(3, "i4"), np.array([[1.5, 2.5]]), np.zeros(0, "f4")])
def test_bytes_of_a_tensor(x):
    assert bytes(nx.tensor(x)) == x.tobytes()
    with pytest.raises(nx.TraceError):
        nx.jit(lambda x: nx.tensor(list(bytes(x))))(x)


class Reflected:
    """An operand with its own reflected division."""

    def __rdivmod__(self, value):
        return type(value).__name__


@pytest.mark.parametrize("function", [lambda f: f, nx.jit])
def test_divmod_of_foreign_operands(function):
    x = nx.tensor([1.0, 2.0])
    for operands in (lambda x: divmod(x, object()), lambda x: divmod(object(), x)):
        with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for divmod\(\)"):
            function(operands)(x)
    assert divmod(x, Reflected()) == "Tensor"
    with pytest.raises(nx.ShapeError, match="divmod: operands: expected shapes that broadcast"):
        function(lambda x: divmod(x, nx.ones(3)))(x)
    with pytest.raises(nx.DTypeError, match="divmod: operand: expected a real dtype; got c64"):
        function(lambda x: divmod(1j, x))(x)


@pytest.mark.parametrize(
    "scalar",
    [np.datetime64("2020-01-01"), np.timedelta64(3, "s"), np.bytes_(b"abc"), np.str_("abc")],
    ids=["datetime64", "timedelta64", "bytes", "str"],
)
def test_non_numeric_scalars_and_arrays_raise(scalar):
    for call in (nx.tensor, nx.asarray, nx.sum, nx.jit(nx.sum), lambda x: nx.tensor([x])):
        for value in (scalar, np.array([scalar])):
            with pytest.raises(nx.DTypeError, match=r"dtype must exist in nxla; got"):
                call(value)


def test_byte_buffers_become_uint8():
    for value in (np.uint8(97), bytearray(b"a"), memoryview(b"a"), np.frombuffer(b"a", np.uint8)):
        assert nx.tensor(value).dtype == nx.uint8
        assert nx.flatten(nx.tensor(value)).tolist() == [97]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("float", "f64"),
        ("int", np.dtype(int).name),
        ("complex", "c128"),
        ("half", "f16"),
        ("single", "f32"),
        ("double", "f64"),
        ("<i4", "s32"),
        ("=i8", "s64"),
        ("<f4", "f32"),
        ("<f8", "f64"),
        (">f4", "f32"),
        ("<c16", "c128"),
        ("?", "pred"),
        (np.longlong, "s64"),
        (np.intc, "s32"),
        # Names of nxla have priority, and Python's classes mean the default dtypes.
        ("u8", "u8"),
        ("f8", "f8_e5m2"),
        (float, "f32"),
        (int, "s32"),
    ],
)
def test_dtype_names_match_numpy(spec, expected):
    assert nx.zeros(1, spec).dtype == expected
    assert nx.zeros(1, expected).dtype == spec


@pytest.mark.parametrize(
    "spec", ["i4", "f4", "u1", "c16", "object", "M8", "S3", "longdouble", "i4,f4", dict, "hello"]
)
def test_unsupported_dtypes_raise(spec):
    with pytest.raises(nx.DTypeError, match="must be a NumPy name or one of"):
        nx.zeros(1, spec)
    assert nx.float32 != spec


@pytest.mark.parametrize("name", ["i4", "f4", "c16"])
def test_error_for_a_short_name_of_numpy_explains_its_number(name):
    with pytest.raises(nx.DTypeError, match="counts bytes in NumPy and bits in nxla"):
        nx.zeros(1, name)
