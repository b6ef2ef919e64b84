"""A function of a tensor and of a moved part of the same tensor, compared with NumPy."""

import itertools

import numpy as np
import pytest

import nxla as nx

SHAPES = [(1,), (5,), (8,), (2, 2), (4, 4), (2, 64), (1, 2, 2), (2, 2, 2), (3, 5, 4), (4, 4, 16)]

#: Functions that move elements; the arguments are a namespace of functions and an array.
MOVED = {
    "transposed": lambda m, x: m.permute_dims(x, tuple(range(x.ndim))[::-1]),
    "rotated axes": lambda m, x: m.moveaxis(x, 0, -1),
    "reversed": lambda m, x: m.flip(x),
    "reversed rows": lambda m, x: m.flip(x, 0),
    "rolled": lambda m, x: m.roll(x, 1, 0),
    "repeated": lambda m, x: m.broadcast_to(m.reshape(x, -1)[:1], x.shape),
    "flat": lambda m, x: m.reshape(m.reshape(x, -1)[::-1], x.shape),
}  # fmt: skip
FUNCTIONS = {
    "subtract": lambda m, x, y: m.subtract(x, y),
    "maximum, reversed": lambda m, x, y: m.maximum(y, x),
    "not_equal": lambda m, x, y: m.not_equal(x, y),
    "where": lambda m, x, y: m.where(x > 1, y, x),
    "sum of products": lambda m, x, y: m.sum(x * y),
    "row sums": lambda m, x, y: m.sum(x * y, axis=-1),
}


def numbers(shape, dtype):
    return (np.arange(np.prod(shape)) * 7 % 5).reshape(shape).astype(dtype)


def check(compiler, move, shape, dtype):
    x = numbers(shape, dtype)
    try:
        np.broadcast_shapes(move(np, x).shape, shape)
    except ValueError:
        return
    for name, function in FUNCTIONS.items():
        if dtype == "?" and name not in {"not_equal", "where", "maximum, reversed"}:
            continue

        def whole(m, x, function=function):
            return function(m, x, move(m, x))

        found = nx.jit(lambda x: whole(nx, x), compiler=compiler)(nx.tensor(x))
        np.testing.assert_array_equal(np.asarray(found), whole(np, x), err_msg=name)


@pytest.mark.parametrize("dtype", ["?", "u1", "f4", "f8"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", MOVED)
def test_functions_of_moved_operands(name, shape, dtype):
    check("evaluator", MOVED[name], shape, dtype)


@pytest.mark.parametrize("dtype", ["?", "u1", "f4", "f8"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_functions_of_slices(shape, dtype):
    """A slice with one element along an axis is broadcast to the shape of the tensor."""
    parts = [slice(None), slice(0, 1), slice(-1, None)]
    for index in itertools.product(parts, repeat=len(shape)):
        check("evaluator", lambda m, x, index=index: x[index], shape, dtype)


@pytest.mark.parametrize("shape", [(4, 4), (2, 3, 4)], ids=str)
def test_functions_of_moved_operands_on_xla(shape):
    for move in MOVED.values():
        check("xla", move, shape, "f4")
    check("xla", lambda m, x: x[..., :1], shape, "f4")
