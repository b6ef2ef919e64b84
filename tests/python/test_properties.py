"""Random tensors and random expressions: NumPy, XLA and stages agree with the evaluator.

Sizes start at zero, and ranks are zero to six. Random expressions use operations that are exact on
small integers, so that rounding cannot explain a difference.
"""

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import nxla as nx

settings.register_profile(
    "properties",
    deadline=None,
    derandomize=True,
    max_examples=20,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
quick = settings(settings.get_profile("properties"))

SHAPES = arrays.array_shapes(min_dims=0, max_dims=6, min_side=0, max_side=3)
FLOATS = [np.float32, np.float64]
INTEGERS = [np.int8, np.int32, np.int64, np.uint8, np.uint16]
DTYPES = [np.bool_, *INTEGERS, *FLOATS]


def integer_arrays(dtype, shape, low=-4, high=4):
    """Return a strategy for arrays of small integers."""
    low = 0 if np.dtype(dtype).kind in "ub" else low
    high = 1 if np.dtype(dtype).kind == "b" else high
    elements = st.integers(low, high)
    return arrays.arrays(np.int64, shape, elements=elements).map(lambda x: x.astype(dtype))


@st.composite
def operands(draw, dtypes=DTYPES, count=1, shapes=SHAPES, low=-4, high=4):
    dtype, shape = draw(st.sampled_from(dtypes)), draw(shapes)
    return tuple(draw(integer_arrays(dtype, shape, low, high)) for _ in range(count))


def assert_agree(ours, theirs, exact=False):
    ours = np.asarray(ours)
    assert ours.shape == theirs.shape
    if exact or ours.dtype.kind in "iub":
        np.testing.assert_array_equal(ours, theirs)
    else:
        wide = ours.dtype == np.float64 and theirs.dtype == np.float64
        np.testing.assert_allclose(ours, theirs, rtol=1e-9 if wide else 2e-6, atol=1e-6)


# --- against numpy ---

ELEMENTWISE = {
    "sin": np.sin, "cos": np.cos, "tanh": np.tanh, "exp": np.exp, "expm1": np.expm1,
    "atan": np.arctan, "sinh": np.sinh, "asinh": np.arcsinh, "cbrt": np.cbrt, "floor": np.floor,
    "ceil": np.ceil, "trunc": np.trunc, "round": np.rint, "sqrt": np.sqrt, "square": np.square,
    "abs": np.abs, "negative": np.negative, "sign": np.sign, "isnan": np.isnan, "isinf": np.isinf,
    "signbit": np.signbit, "log1p": np.log1p, "reciprocal": np.reciprocal,
}  # fmt: skip
BINARY = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide,
    "maximum": np.maximum, "minimum": np.minimum, "remainder": np.remainder, "fmod": np.fmod,
    "floor_divide": np.floor_divide, "atan2": np.arctan2, "hypot": np.hypot, "equal": np.equal,
    "less": np.less, "greater_equal": np.greater_equal, "logical_and": np.logical_and,
    "logical_xor": np.logical_xor, "copysign": np.copysign, "logaddexp": np.logaddexp,
}  # fmt: skip
INTEGER = {
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
}  # fmt: skip
REDUCTIONS = {
    "sum": np.sum, "prod": np.prod, "mean": np.mean, "var": np.var, "any": np.any, "all": np.all,
    "count_nonzero": np.count_nonzero,
}  # fmt: skip


@pytest.mark.parametrize("name", ELEMENTWISE)
@quick
@given(operands(FLOATS))
def test_unary_functions_match_numpy(name, given_operands):
    (x,) = given_operands
    x = x / 3
    with np.errstate(all="ignore"):
        assert_agree(getattr(nx, name)(x), ELEMENTWISE[name](x))


@pytest.mark.parametrize("name", BINARY)
@quick
@given(operands(FLOATS, count=2))
def test_binary_functions_match_numpy(name, given_operands):
    x, y = given_operands
    with np.errstate(all="ignore"):
        assert_agree(getattr(nx, name)(x / 3, y), BINARY[name](x / 3, y))


@pytest.mark.parametrize("name", [*INTEGER, "add", "subtract", "multiply", "maximum", "less"])
@quick
@given(operands(INTEGERS, count=2))
def test_integer_functions_match_numpy(name, given_operands):
    x, y = given_operands
    function = INTEGER.get(name) or BINARY[name]
    assert_agree(getattr(nx, name)(x, y), function(x, y), exact=True)


@quick
@given(st.data())
def test_broadcasting_matches_numpy(data):
    shapes = data.draw(arrays.mutually_broadcastable_shapes(num_shapes=2, max_dims=6, max_side=3))
    dtype = data.draw(st.sampled_from([np.int32, np.float32]))
    x, y = (data.draw(integer_arrays(dtype, shape)) for shape in shapes.input_shapes)
    assert_agree(nx.add(x, y), x + y, exact=True)
    assert_agree(nx.where(nx.less(x, y), x, y), np.where(x < y, x, y), exact=True)


@pytest.mark.parametrize("name", REDUCTIONS)
@quick
@given(st.data())
def test_reductions_match_numpy(name, data):
    dtypes = FLOATS if name in ("mean", "var") else [np.int32, np.int64, *FLOATS]
    (x,) = data.draw(operands(dtypes, low=-2, high=2))
    axes = data.draw(
        st.none() | arrays.valid_tuple_axes(x.ndim, min_size=1) if x.ndim else st.none()
    )
    keep = data.draw(st.booleans())
    if name in ("mean", "var"):
        assume(x.size > 0)
    found = getattr(nx, name)(x, axis=axes, keepdims=keep)
    assert_agree(found, np.asarray(REDUCTIONS[name](x, axis=axes, keepdims=keep)))


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
@quick
@given(st.data())
def test_extrema_match_numpy(name, data):
    shapes = arrays.array_shapes(min_dims=1, max_dims=6, min_side=1, max_side=3)
    (x,) = data.draw(operands([np.int32, np.float32], shapes=shapes))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    assert_agree(getattr(nx, name)(x, axis=axis), getattr(np, name)(x, axis=axis), exact=True)


@quick
@given(st.data())
def test_shape_functions_match_numpy(data):
    (x,) = data.draw(operands())
    assert_agree(nx.reshape(x, (x.size,)), x.reshape(x.size), exact=True)
    assert_agree(nx.flip(x), np.flip(x), exact=True)
    axes = tuple(data.draw(st.permutations(range(x.ndim))))
    assert_agree(nx.permute_dims(x, axes), np.transpose(x, axes), exact=True)
    axis = data.draw(st.integers(-x.ndim - 1, x.ndim))
    assert_agree(nx.expand_dims(x, axis=axis), np.expand_dims(x, axis), exact=True)
    assert_agree(nx.stack([x, x], axis=axis), np.stack([x, x], axis), exact=True)
    if x.ndim:
        axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
        shift = data.draw(st.integers(-4, 4))
        assert_agree(nx.concat([x, x], axis=axis), np.concatenate([x, x], axis), exact=True)
        assert_agree(nx.roll(x, shift, axis=axis), np.roll(x, shift, axis), exact=True)
        assert_agree(nx.repeat(x, 2, axis=axis), np.repeat(x, 2, axis), exact=True)


@quick
@given(st.data())
def test_sorting_and_cumulative_sums_match_numpy(data):
    shapes = arrays.array_shapes(min_dims=1, max_dims=6, min_side=0, max_side=3)
    (x,) = data.draw(operands([np.int32, np.float32], shapes=shapes))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    assert_agree(nx.sort(x, axis=axis), np.sort(x, axis), exact=True)
    assert_agree(nx.argsort(x, axis=axis), np.argsort(x, axis, kind="stable"), exact=True)
    assert_agree(nx.cumulative_sum(x, axis=axis), np.cumsum(x, axis, dtype=x.dtype), exact=True)
    descending = nx.argsort(x, axis=axis, descending=True)
    assert_agree(nx.take_along_axis(x, descending, axis=axis), -np.sort(-x, axis), exact=True)


@quick
@given(st.data())
def test_indexing_matches_numpy(data):
    shapes = arrays.array_shapes(min_dims=0, max_dims=6, min_side=0, max_side=3)
    (x,) = data.draw(operands([np.int32], shapes=shapes))
    key = data.draw(arrays.basic_indices(x.shape, allow_newaxis=True))
    assert_agree(nx.tensor(x)[key], x[key], exact=True)


@quick
@given(st.data())
def test_products_match_numpy(data):
    n, k, m = (data.draw(st.integers(0, 4)) for _ in range(3))
    dtype = data.draw(st.sampled_from([np.int32, *FLOATS]))
    x, y = data.draw(integer_arrays(dtype, (2, n, k))), data.draw(integer_arrays(dtype, (k, m)))
    assert_agree(nx.matmul(x, y), x @ y)
    assert_agree(nx.tensordot(x, y, axes=1), np.tensordot(x, y, 1))
    assert_agree(nx.outer(x[0, :, 0], y[0]) if n * k * m else nx.zeros((0,)),
          np.outer(x[0, :, 0], y[0]) if n * k * m else np.zeros((0,), np.float32))  # fmt: skip


# --- random expressions ---


def bounded(x):
    """Clip numbers, so that products stay exact."""
    return nx.clip(x, -32, 32)


def along_last(function):
    """Broadcast a reduction of the last axis to the shape of the operand."""
    return lambda a, b: bounded(function(a, axis=-1, keepdims=True) + b) if a.ndim else a


STEPS = [
    lambda a, b: bounded(a + b),
    lambda a, b: bounded(a - b),
    lambda a, b: bounded(a * b),
    nx.maximum,
    nx.minimum,
    lambda a, b: bounded(-a),
    lambda a, b: nx.where(a > b, a, b * 2 - b),
    lambda a, b: nx.flip(a),
    along_last(nx.sum),
    lambda a, b: nx.reshape(nx.reshape(a, (-1,)) if a.size else nx.flatten(a), a.shape),
    lambda a, b: nx.concat([a[1:], b[:1]], axis=0) if a.ndim and a.shape[0] else b,
    lambda a, b: nx.sort(a, axis=-1) if a.ndim else a,
    lambda a, b: nx.cond(nx.any(a > b), lambda: a, lambda: bounded(b + 1)),
    lambda a, b: nx.fori(0, 2, lambda i, s: bounded(s + b), a),
    lambda a, b: nx.permute_dims(nx.permute_dims(a)),
    lambda a, b: nx.stack([a, b], axis=0)[1],
    lambda a, b: nx.abs(a),
]


@st.composite
def expressions(draw, shapes):
    """Draw a random function of two tensors, and its arguments."""
    dtype, shape = draw(st.sampled_from([np.float32, np.int32, np.float64])), draw(shapes)
    numbers = st.tuples(st.integers(0, len(STEPS) - 1), st.integers(0, 30), st.integers(0, 30))
    steps = draw(st.lists(numbers, min_size=1, max_size=12))

    def function(x, y):
        values = [x, y]
        for step, left, right in steps:
            values.append(STEPS[step](values[left % len(values)], values[right % len(values)]))
        return values[-1], {"other": values[len(values) // 2]}

    return function, (draw(integer_arrays(dtype, shape)), draw(integer_arrays(dtype, shape)))


SMALL = arrays.array_shapes(min_dims=0, max_dims=6, min_side=0, max_side=2) | st.sampled_from(
    [(), (1,), (0,), (3, 0, 2), (1, 1, 1, 1, 1, 1), (2, 1, 2, 1, 2, 1)]
)


@settings(quick, max_examples=25)
@given(expressions(SMALL))
def test_xla_matches_the_evaluator(case):
    function, args = case
    expression = nx.debug_expr(function)(*args)
    expression.verify()
    ours = expression.run(*args, compiler="evaluator")
    theirs = expression.run(*args, compiler="xla")
    for x, y in zip(nx.tree.leaves(ours), nx.tree.leaves(theirs), strict=True):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


@settings(quick, max_examples=100)
@given(expressions(SMALL), st.randoms(use_true_random=False))
def test_stages_match_the_whole_expression(case, random):
    function, args = case
    expression = nx.debug_expr(function)(*args)
    decisions = ["before", "after", "both", "none", "none"]
    stages = nx.graph.split(expression, lambda node: random.choice(decisions))
    whole_result = nx.tree.leaves(expression.run(*args))
    for x, y in zip(whole_result, nx.tree.leaves(nx.graph.run(stages, *args)), strict=True):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        assert np.asarray(x).tobytes() == np.asarray(y).tobytes()


@settings(quick, max_examples=60)
@given(expressions(SMALL))
def test_serialization_and_rewriting_keep_the_digest(case):
    function, args = case
    expression = nx.debug_expr(function)(*args)
    loaded = nx.Expression.from_bytes(expression.to_bytes())
    rewritten = nx.tree.rewrite(expression, lambda node, operands: None)
    assert expression.digest == loaded.digest == rewritten.digest
    assert expression.digest == nx.debug_expr(function)(*args).digest


@settings(quick, max_examples=40)
@given(expressions(SMALL))
def test_eager_matches_compiled(case):
    function, args = case
    args = [nx.tensor(x) for x in args]
    eager, compiled = function(*args), nx.jit(function)(*args)
    for x, y in zip(nx.tree.leaves(eager), nx.tree.leaves(compiled), strict=True):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))
