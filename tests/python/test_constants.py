"""Constants in compiled functions, which must act as tensors with the same values."""

import itertools

import numpy as np
import pytest

import nxla as nx
from test_dtype_pairs import COMPLEX, DTYPES, FLOATS

VALUES = [0.1, -0.0, 1.0, 3.0, 100.0, 1e6, 1e30, 16777217.0]


OPERATIONS = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
    "power": lambda x, y: x**y,
}


def contents(tensors):
    """Return the dtypes, shapes and exact elements."""
    return [(str(x.dtype), x.shape, repr(x.tolist())) for x in tensors]


def check(function, *arguments, compiler):
    """Compare the results of a list of tensors with and without compilation."""
    with nx.default_options(compiler=compiler):
        expected = contents(function(*arguments))
        assert contents(nx.jit(function)(*arguments)) == expected


@pytest.mark.parametrize("dtype", FLOATS + COMPLEX)
def test_a_constant_is_rounded_before_it_is_converted(dtype, compiler):
    def convert():
        constants = [nx.full((), value, dtype=dtype) for value in VALUES]
        return [x.astype(target) for x in constants for target in DTYPES]

    check(convert, compiler=compiler)


@pytest.mark.parametrize("dtype", FLOATS + COMPLEX)
def test_operations_on_two_constants(dtype, compiler):
    def compute():
        pairs = itertools.product(VALUES, VALUES)
        constants = [
            (nx.full((), one, dtype=dtype), nx.full((), other, dtype="f32")) for one, other in pairs
        ]
        operations = [OPERATIONS[name] for name in ("add", "subtract", "multiply")]
        return [operation(x, y) for operation in operations for x, y in constants]

    check(compute, compiler=compiler)


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("dtype", FLOATS + COMPLEX)
def test_neutral_constants_keep_signs_and_special_values(dtype, name):
    # XLA drops the addition of zero itself.
    x = nx.tensor([-0.0, 0.0, 1.5, -2.0, np.inf, -np.inf, np.nan], dtype=dtype)

    def compute(x):
        constants = [0, 1, 0.0, -0.0, 1.0]
        constants += [nx.full((), value, dtype=dtype) for value in (0.0, -0.0, 1.0)]
        orders = [(x, c) for c in constants] + [(c, x) for c in constants]
        return [OPERATIONS[name](*operands) for operands in orders]

    check(compute, x, compiler="evaluator")


@pytest.mark.parametrize("dtype", ["u8", "s8", "s32", "u64", "s64", "f16", "f32", "f8_e4m3fn"])
def test_sums_and_products_with_constants_of_other_types(dtype):
    others = ["u8", "s8", "s32", "s64", "f32", "f8_e4m3fn"]
    x, y = (nx.tensor(values, dtype=dtype) for values in ([100, 7, 3], [90, 1, 2]))

    def compute(x, y):
        results = []
        for other, value, shape in itertools.product(others, (0, 1, 5), ((), (2, 3))):
            c = nx.full(shape, value, dtype=other)
            inner = [c + y, y + c, c - y, c * y, y * c, x + c, c * x]
            results += [x + z for z in inner] + [z * x for z in inner] + [c + z for z in inner]
        return results

    check(compute, x, y, compiler="evaluator")


def test_sums_with_constants_under_vmap(compiler):
    def compute(x, y):
        zeros = [nx.zeros(shape, dtype="f32") for shape in ((), (2, 1))]
        return [nx.vmap(lambda x, y, c=c: x + (c - y))(x, y) for c in zeros]

    x, y = nx.tensor([[1, 2], [3, 4]]), nx.tensor([[5, 6], [7, 8]])
    check(compute, x, y, compiler=compiler)
