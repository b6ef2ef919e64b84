"""The derivative rule of every op, by the table of ops.

The tests compare forward mode with central differences, and with complex steps for functions that
accept complex numbers. They compare reverse mode with forward mode, and second derivatives of both
modes. The tests fail for a row of ``docs/ops.md`` that no case uses.
"""

import re
from pathlib import Path

import pytest

import nxla as nx

TABLE = Path(__file__).parents[2] / "docs" / "ops.md"


def differentiable():
    rows = re.findall(r"^\| `(\w+)` \|.*\| yes \|$", TABLE.read_text("utf-8"), re.MULTILINE)
    return [op for op in rows if op not in ("parameter", "elem")]


def numbers(dtype, *shape, low=0.25, high=0.75, seed=1):
    """Return distinct numbers of a range."""
    size = 1
    for length in shape:
        size *= length
    fractions = nx.fmod(nx.arange(size, dtype=nx.float64) * 0.6180339887 * seed + 0.3 * seed, 1.0)
    values = nx.reshape(fractions, shape) * (high - low) + low
    if dtype.kind == "complex":
        values = nx.complex(values, nx.flip(values) * 0.5 + 0.1)
    return nx.astype(values, dtype)


def matrix(dtype, n=3):
    return numbers(dtype, 2, n, n) + nx.eye(n, dtype=dtype) * 2.0


def hermitian(a):
    return a + nx.conj(nx.matrix_transpose(a))


def positive(dtype):
    a = matrix(dtype)
    return a @ nx.conj(nx.matrix_transpose(a))


def loop(x):
    return nx.fori(0, 3, lambda i, y: nx.sin(y) * x + i, x)


def spectrum(a):
    """Return eigenvalues, and functions of eigenvectors that do not depend on their phases."""
    w, v = nx.linalg.eigh(hermitian(a))
    return w, nx.abs(v) ** 2


def singular(a):
    """Return singular values, and functions of the vectors that do not depend on their phases."""
    u, s, v = nx.linalg.svd(a, full_matrices=False)
    return s, nx.abs(u) ** 2, nx.abs(v) ** 2


def host(values):
    """Return values through a hook."""
    return nx.hook(values, lambda shown: None)


POSITIVE = [
    "exp",
    "expm1",
    "log",
    "log1p",
    "sigmoid",
    "sin",
    "cos",
    "tan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "sqrt",
    "rsqrt",
    "cbrt",
]
UNARY = [*POSITIVE, "asin", "acos", "atan", "atanh", "erf", "erfc", "erf_inv", "negate", "abs"]
UNARY += ["sign", "real", "imag", "conjugate", "acosh"]
BINARY = ["add", "subtract", "multiply", "divide", "pow", "atan2", "remainder", "max", "min"]
PYTHON_NAMES = {
    "negate": "negative",
    "conjugate": "conj",
    "max": "maximum",
    "min": "minimum",
    "remainder": "fmod",
}

#: For each op: a function, and the function that makes its arguments with a given dtype.
CASES = {op: (getattr(nx, PYTHON_NAMES.get(op, op)), lambda d: [numbers(d, 2, 3)]) for op in UNARY}
CASES["acosh"] = (nx.acosh, lambda d: [numbers(d, 2, 3, low=1.5, high=2.5)])
for _op in BINARY:
    _function = getattr(nx, PYTHON_NAMES.get(_op, _op))
    # The second operand is broadcast.
    CASES[_op] = (_function, lambda d: [numbers(d, 2, 3), numbers(d, 3, low=1.1, high=1.6, seed=2)])
WINDOW = {"strides": (1, 2), "padding": [(1, 0), (0, 1)]}


def parts(d, *shapes):
    return [numbers(d, *shape, seed=index + 1) for index, shape in enumerate(shapes)]


CASES |= {
    "complex": (nx.complex, lambda d: parts(d, (3,), (3,))),
    "select": (
        lambda x, y: nx.where(nx.tensor([True, False, True]), x, y),
        lambda d: parts(d, (2, 3), (3,)),
    ),
    "clip": (lambda x: nx.clip(x, 0.41, 0.63), lambda d: [numbers(d, 7)]),
    "as_type": (
        lambda x: nx.astype(nx.astype(x, nx.complex128), x.dtype),
        lambda d: [numbers(d, 3)],
    ),
    "bitcast": (lambda x: nx.bitcast(x, x.dtype), lambda d: [numbers(d, 3)]),
    "reshape": (lambda x: nx.reshape(x, (3, 2)), lambda d: [numbers(d, 2, 3)]),
    "squeeze": (nx.squeeze, lambda d: [numbers(d, 2, 1, 3)]),
    "transpose": (lambda x: nx.permute_dims(x, (2, 0, 1)), lambda d: [numbers(d, 2, 1, 3)]),
    "reverse": (lambda x: nx.flip(x, axis=1), lambda d: [numbers(d, 2, 3)]),
    "broadcast": (lambda x: nx.broadcast_to(x, (4, 2, 3)), lambda d: [numbers(d, 2, 1)]),
    "pad": (
        lambda x, v: nx.pad(x, v, [(1, -1, 1), (0, 2, 0)]),
        lambda d: parts(d, (3, 3), ()),
    ),
    "concatenate": (lambda x, y: nx.concat([x, y, x], axis=-1), lambda d: parts(d, (2, 3), (2, 1))),
    "stack": (lambda x, y: nx.stack([x, y], axis=1), lambda d: parts(d, (2, 3), (2, 3))),
    "sum": (lambda x: nx.sum(x, axis=(0, 2)), lambda d: [numbers(d, 2, 3, 2)]),
    "product": (lambda x: nx.prod(x, axis=1), lambda d: [numbers(d, 2, 3)]),
    "reduce_max": (lambda x: nx.max(x, axis=0), lambda d: [numbers(d, 4, 3)]),
    "reduce_min": (lambda x: nx.min(x, axis=1, keepdims=True), lambda d: [numbers(d, 4, 3)]),
    "reduce": (
        lambda x, a: nx.reduce(x, a, lambda e, a: a * 0.5 + e * e, axis=1),
        lambda d: parts(d, (2, 3), ()),
    ),
    "window_sum": (lambda x: nx.window_sum(x, (2, 2), **WINDOW), lambda d: [numbers(d, 3, 4)]),
    "window_product": (
        lambda x: nx.window_product(x, (2, 2), **WINDOW),
        lambda d: [numbers(d, 3, 4)],
    ),
    "window_max": (lambda x: nx.window_max(x, (2, 2), **WINDOW), lambda d: [numbers(d, 3, 4)]),
    "window_min": (lambda x: nx.window_min(x, (2, 2), **WINDOW), lambda d: [numbers(d, 3, 4)]),
    "window_reduce": (
        lambda x, a: nx.window_reduce(x, a, lambda e, a: a * 0.5 + e * e, (2, 2), **WINDOW),
        lambda d: parts(d, (3, 4), ()),
    ),
    "window_scatter_max": (
        lambda x, s, i: nx.window_scatter_max(x, s, i, (2, 2), strides=(2, 2)),
        lambda d: parts(d, (4, 4), (2, 2), ()),
    ),
    "window_scatter_min": (
        lambda x, s, i: nx.window_scatter_min(x, s, i, (2, 2), strides=(2, 2)),
        lambda d: parts(d, (4, 4), (2, 2), ()),
    ),
    "dot": (lambda x, y: x @ y, lambda d: parts(d, (2, 3, 4), (4, 2))),
    "conv": (
        lambda x, k: nx.conv(x, k, strides=(2, 1), padding=[(1, 0), (1, 1)], kernel_dilation=2),
        lambda d: parts(d, (2, 2, 5, 5), (3, 2, 2, 2)),
    ),
    "slice": (lambda x: x[1:4:2, 1], lambda d: [numbers(d, 5, 3)]),
    "put_slice": (lambda x, y: nx.put_slice(x, [1, 0], y), lambda d: parts(d, (4, 3), (2, 2))),
    "gather": (lambda x: x[nx.tensor([2, 0, 2])], lambda d: [numbers(d, 3, 2)]),
    "indexed_add": (
        lambda x, y: nx.indexed_add(x, nx.tensor([[1], [1], [0]]), y),
        lambda d: parts(d, (3,), (3,)),
    ),
    "indexed_put": (
        lambda x, y: nx.indexed_put(x, nx.tensor([[2], [0]]), y),
        lambda d: parts(d, (3,), (2,)),
    ),
    "sort": (lambda x: nx.sort(x, axis=0), lambda d: [numbers(d, 4, 3)]),
    "fft": (lambda x: nx.fft.fft(x, n=5), lambda d: [numbers(d, 2, 4)]),
    "ifft": (lambda x: nx.fft.ifft(x, n=3), lambda d: [numbers(d, 2, 4)]),
    "triangular_solve": (
        lambda a, b: nx.linalg.triangular_solve(a, b, lower=True),
        lambda d: [matrix(d), numbers(d, 2, 3, 2)],
    ),
    "cholesky": (lambda a: nx.linalg.cholesky(hermitian(a)), lambda d: [positive(d)]),
    "lu": (lambda a: nx.linalg.lu(a)[1:], lambda d: [matrix(d)]),
    "qr": (lambda a: tuple(nx.linalg.qr(a)), lambda d: [matrix(d)]),
    "eigh": (spectrum, lambda d: [matrix(d)]),
    "svd": (singular, lambda d: [matrix(d)[:, :, :2]]),
    "metadata": (lambda x: nx.annotate(nx.sin(x), "a note"), lambda d: [numbers(d, 3)]),
    "cond": (
        lambda x: nx.cond(nx.real(x[0]) > 0.1, lambda: nx.sin(x), lambda: x * 2.0),
        lambda d: [numbers(d, 3)],
    ),
    "while": (loop, lambda d: [numbers(d, 3)]),
    "io_call": (lambda x: host(nx.sin(x)), lambda d: [numbers(d, 3)]),
    "block": (nx.checkpoint(lambda x: nx.sin(nx.cos(x))), lambda d: [numbers(d, 3)]),
}

#: Functions that are undefined or not smooth for complex numbers.
REAL = {"erf", "erfc", "erf_inv", "max", "min", "remainder", "complex", "clip", "bitcast"}
REAL |= {"reduce_max", "reduce_min", "window_max", "window_min", "sort", "atan2", "sign"}
REAL |= {"window_scatter_max", "window_scatter_min", "cbrt"}

#: Analytic functions, whose values at complex numbers determine their real derivatives.
ANALYTIC = set(POSITIVE) - {"cbrt"} | {"asin", "acos", "atan", "atanh", "acosh"}


def test_every_row_of_the_table_has_a_case():
    assert sorted(CASES) == sorted(differentiable())


@pytest.mark.parametrize("op", sorted(CASES))
def test_rules_match_finite_differences(op):
    function, arguments = CASES[op]
    nx.testing.check_grads(function, arguments(nx.float64), order=2)
    if op not in REAL:
        nx.testing.check_grads(function, arguments(nx.complex128), order=1)


FAMILIES = {
    "unary": [op for op in UNARY if op != "acosh"],
    "binary": BINARY,
    "others": [op for op in CASES if op not in UNARY and op not in BINARY and op != "io_call"],
}


def combine_cases(ops, dtype):
    """Return the cases of several ops as one function, with its arguments."""
    groups = [CASES[op][1](dtype) for op in ops]

    def function(*groups):
        pairs = zip(ops, groups, strict=True)
        return [nx.tree.leaves(CASES[op][0](*arguments)) for op, arguments in pairs]

    return function, groups


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("dtype", [nx.float64, nx.float32, nx.complex128, nx.complex64], ids=str)
def test_forward_and_reverse_mode_agree_on_all_backends(family, dtype, compiler):
    ops = [op for op in FAMILIES[family] if dtype.kind == "float" or op not in REAL]
    if compiler == "xla" and dtype != nx.float64:
        pytest.skip("XLA takes long to compile, so it runs only f64")
    function, groups = combine_cases(ops, dtype)
    values, structure = nx.tree.flatten(groups)

    def both(values, changes):
        function_of = lambda values: function(*structure.unflatten(values))  # noqa: E731
        _, change = nx.jvp(function_of, (values,), (changes,))
        result, pull = nx.vjp(function_of, values)
        cotangents = nx.tree.map(lambda y: nx.astype(nx.cos(nx.real(y)), y.dtype), result)
        (back,) = pull(cotangents)
        pairs = zip(nx.tree.leaves(cotangents), nx.tree.leaves(change), strict=True)
        forwards = [nx.real(nx.sum(c * t)) for c, t in pairs]
        backwards = [nx.real(nx.sum(b * d)) for b, d in zip(back, changes, strict=True)]
        return sum(forwards), sum(backwards), change

    changes = [nx.flip(x) * 0.5 for x in values]
    forwards, backwards, change = nx.jit(both, compiler=compiler)(values, changes)
    tolerance = 1e-9 if dtype in (nx.float64, nx.complex128) else 1e-3
    assert forwards.item() == pytest.approx(backwards.item(), rel=tolerance)
    # The backends agree.
    if compiler == "xla":
        expected = nx.jit(both, compiler="evaluator")(values, changes)[2]
        for left, right in zip(nx.tree.leaves(change), nx.tree.leaves(expected), strict=True):
            assert nx.all_close(left, right, rtol=1e-7, atol=1e-7).item()


def test_derivatives_match_complex_steps():
    for op in sorted(ANALYTIC):
        function, arguments = CASES[op]
        (x,) = arguments(nx.float64)
        step = 1e-100
        expected = nx.imag(function(nx.complex(x, nx.full_like(x, step)))) / step
        found = nx.jvp(function, (x,), (nx.ones_like(x),))[1]
        assert nx.all_close(found, expected, rtol=1e-13, atol=1e-13).item(), op


@pytest.mark.parametrize("axes", [None, 0, 1, 2, (0, 1), (2, 0), (0, 1, 2), ()])
def test_reductions_along_all_axes(axes):
    x = numbers(nx.float64, 2, 3, 2)
    for keepdims in (False, True):

        def reduced(x, keepdims=keepdims):
            options = {"axis": axes, "keepdims": keepdims}
            results = [nx.sum(x, **options), nx.prod(x, **options)]
            return [*results, nx.max(x, **options), nx.min(x, **options)]

        nx.testing.check_grads(reduced, (x,), order=1)


def test_check_grads_finds_wrong_derivatives():
    def wrong(x):
        return nx.custom_grad(nx.sin(x), x, lambda g: 2.0 * g)

    with pytest.raises(AssertionError, match="fwd: derivative must match"):
        nx.testing.check_grads(wrong, (0.5,))
    with pytest.raises(AssertionError, match=r"rev: .* along one direction"):
        nx.testing.check_grads(wrong, (0.5,), modes=("rev",))

    # The first derivative is correct, and the second one is wrong.
    def twice(x):
        return nx.custom_grad(nx.sin(x), x, lambda g: nx.stop_grad(nx.cos(x)) * g)

    nx.testing.check_grads(twice, (0.5,), order=1)
    with pytest.raises(AssertionError, match=r"(fwd|rev) of fwd"):
        nx.testing.check_grads(twice, (0.5,), order=2)
    with pytest.raises(nx.ArgumentError, match="order: must be at least 1"):
        nx.testing.check_grads(nx.sin, (0.5,), order=0)
    with pytest.raises(nx.ArgumentError, match="must contain a float or complex tensor"):
        nx.testing.check_grads(nx.sin, (1,))
