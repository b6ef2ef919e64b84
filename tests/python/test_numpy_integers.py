"""Functions accept NumPy integers wherever they accept ints: the examples of the documentation
with one int replaced by an ``int64``, and calls without an example."""

import ast
import contextlib
import doctest
import inspect
import io
import types

import numpy as np
import pytest

import nxla as nx

MODULES = [nx, nx.nn, nx.nn.initializers, nx.fft, nx.linalg, nx.random, nx.optim, nx.data]
#: Functions whose results depend on the dtype of an int.
DTYPE_SENSITIVE = {"fori", "window_reduce", "tensor", "vectorize"}
#: Functions whose examples require a file.
FILE_FUNCTIONS = {"from_onnx"}


def examples():
    """Return the lines of the examples of public functions, by name."""
    found = {}
    for module in MODULES:
        for name in module.__all__:
            function = getattr(module, name)
            if isinstance(function, types.ModuleType) or name in FILE_FUNCTIONS:
                continue
            parsed = doctest.DocTestParser().get_examples(inspect.getdoc(function) or "")
            lines = [example.source for example in parsed]
            if any(constants(line) for line in lines):
                found[f"{module.__name__.removeprefix('nxla').lstrip('.') or 'nx'}.{name}"] = lines
    return found


def constants(line):
    """Return the positions of ints that are arguments, or entries of tuples that are."""
    found = []
    for call in ast.walk(ast.parse(line)):
        if not isinstance(call, ast.Call):
            continue
        name = ast.unparse(call.func)
        if not name.startswith("nx.") or name.rpartition(".")[2] in DTYPE_SENSITIVE:
            continue
        for argument in [*call.args, *(keyword.value for keyword in call.keywords)]:
            entries = argument.elts if isinstance(argument, ast.Tuple) else [argument]
            found += [
                (entry.lineno, entry.col_offset)
                for entry in entries
                if isinstance(entry, ast.Constant) and type(entry.value) is int
            ]
    return found


class Replacement(ast.NodeTransformer):
    """Replace the int at a position by a call of ``int64``."""

    def __init__(self, position):
        self.position = position

    def visit_Constant(self, node):
        if (node.lineno, node.col_offset) != self.position:
            return node
        return ast.Call(ast.Name("int64", ast.Load()), [node], [])


def run(lines):
    scope = {"int64": np.int64}
    with contextlib.redirect_stdout(io.StringIO()):
        for line in lines:
            exec(line, scope)


EXAMPLES = examples()


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_run_with_numpy_integers(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = EXAMPLES[name]
    for index, line in enumerate(lines):
        for position in constants(line):
            tree = ast.fix_missing_locations(Replacement(position).visit(ast.parse(line)))
            run([*lines[:index], ast.unparse(tree), *lines[index + 1 :]])


KEY = nx.random.key(7)
X = nx.tensor(np.arange(24.0).reshape(1, 1, 4, 6))
CALLS = {
    "fftshift": lambda i: nx.fft.fftshift(X, axes=i(2)),
    "fftshift of several": lambda i: nx.fft.fftshift(X, axes=[i(2), i(-1)]),
    "ifftshift": lambda i: nx.fft.ifftshift(X, axes=i(3)),
    "roll": lambda i: nx.roll(X, i(1), axis=i(-1)),
    "roll of several": lambda i: nx.roll(X, [i(1), i(2)], axis=(i(2), i(3))),
    "moveaxis": lambda i: nx.moveaxis(X, i(2), i(0)),
    "conv_transpose": lambda i: nx.nn.conv_transpose(
        X, nx.ones((1, 1, 2, 2)), strides=i(2), output_padding=i(1), kernel_dilation=i(1)
    ),
    "interpolate": lambda i: nx.nn.interpolate(X, i(3)),
    "binomial": lambda i: nx.random.binomial_split(KEY, 5, 0.5, shape=i(3)),
    "multinomial": lambda i: nx.random.multinomial_split(KEY, 5, [0.5, 0.5], shape=i(3)),
    "student_t": lambda i: nx.random.student_t_split(KEY, 5.0, shape=i(3)),
    "permutation": lambda i: nx.random.permutation(KEY, i(5)).value,
    "normal": lambda i: nx.random.normal_split(KEY, (i(2), i(3))),
    "uniform": lambda i: nx.random.uniform_split(KEY, (i(2), i(3))),
    "grad": lambda i: nx.grad(lambda x, y: x * y, argnums=i(1))(2.0, 3.0),
    "grad of several": lambda i: nx.grad(lambda x, y: x * y, argnums=(i(0), i(1)))(2.0, 3.0)[1],
    "grad by name": lambda i: nx.grad(lambda x, y: x * y, argnums=(i(0), "y"))(2.0, 3.0)[1],
    "jacrev": lambda i: nx.jacrev(lambda x, y: x * y, argnums=i(1))(2.0, 3.0),
    "jit": lambda i: nx.jit(lambda x, n: x * n, static_argnums=i(1))(2.0, 3),
    "vmap": lambda i: nx.vmap(lambda x: x * 2, in_axes=i(1), out_axes=i(1))(nx.ones((2, 3))),
    "tensordot": lambda i: nx.tensordot(nx.ones((2, 3)), nx.ones((3, 2)), axes=i(1)),
    "tensordot of axes": lambda i: nx.tensordot(nx.ones((2, 3)), nx.ones((3, 2)), (i(1), [i(0)])),
    "einsum": lambda i: nx.einsum(nx.ones((2, 3)), [i(0), i(1)], [i(1)]),
    "partition": lambda i: nx.partition([3, 1, 2], i(1)),
    "histogram": lambda i: nx.histogram([1.0, 2.0], bins=i(2))[0],
    "round": lambda i: nx.tensor([1.25, 2.0]).round(i(1)),
    "fori": lambda i: nx.fori(i(0), i(3), lambda _, x: x + 1.0, 0.0, unroll=i(2)),
}


@pytest.mark.parametrize("integer", [np.int64, np.int8, np.uint32])
@pytest.mark.parametrize("name", CALLS)
def test_numpy_integers_match_ints(name, integer):
    expected = CALLS[name](int)
    found = CALLS[name](lambda n: integer(n) if n >= 0 else np.int64(n))
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint64])
@pytest.mark.parametrize("position", range(3))
def test_arange_bounds_do_not_wrap(dtype, position):
    extremes = np.iinfo(dtype)
    low, high = int(extremes.min), int(extremes.max)
    third = (high - low) // 3
    for bounds in [(low, high, third), (high, low, -third), (high - 9, high, 2), (0, high, third)]:
        if not low <= bounds[position] <= high:
            continue
        arguments = list(bounds)
        arguments[position] = dtype(bounds[position])
        wide = "u64" if dtype is np.uint64 else "s64"
        assert nx.arange(*arguments, dtype=wide).tolist() == list(range(*bounds)), arguments


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.uint32])
def test_fft_frequencies_do_not_wrap(dtype):
    n = int(np.iinfo(np.uint8).max) if dtype is np.uint8 else 127
    for frequencies in (nx.fft.fftfreq, nx.fft.rfftfreq):
        assert frequencies(dtype(n)).tolist() == frequencies(n).tolist()
        assert frequencies(n, dtype(2)).tolist() == frequencies(n, 2).tolist()


@pytest.mark.parametrize(
    ("bounds", "dtype"),
    [
        ((0, 1e8, 2.5), "s64"),
        ((0.5, 2**24 + 10, 1), "s32"),
        ((0, 2**25, 0.75), "u32"),
        ((-100, 127, 200), "s8"),
        ((200, 0, -70), "u8"),
        ((-30000, 30000, 40000), "s16"),
    ],
)
def test_integer_arange_is_exact(bounds, dtype):
    start, stop, step = bounds
    count = -int((start - stop) // step)
    found = nx.arange(*bounds, dtype=dtype)
    for index in (*range(min(count, 5)), count - 1):
        assert found[index].item() == int(start + index * step)


@pytest.mark.parametrize("bounds", [(2**31 - 2, 2**31 + 2), (1 - 2**31, -(2**31) - 3, -1)])
def test_arange_beyond_the_default_dtype_raises(bounds):
    with pytest.raises(OverflowError, match=r"arange: dtype: must hold .*nx\.int64"):
        nx.arange(*bounds)
    assert nx.arange(*bounds, dtype="s64").tolist() == list(range(*bounds))
    fitting = range(*bounds)[:2]
    assert nx.arange(fitting.start, fitting.stop, fitting.step).tolist() == list(fitting)
