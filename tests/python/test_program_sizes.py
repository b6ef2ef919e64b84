"""The size of programs and of their largest tensors, for small and for large inputs.

The tests do not run programs. They write the StableHLO modules for 100 and for 100,000 elements,
and compare the numbers of lines and the largest tensors.
"""

import functools
import inspect
import math
import re

import pytest

import nxla as nx

SMALL, LARGE = 100, 100_000
TYPE = re.compile(r"tensor<((?:\d+x)*)[a-z]")
#: Functions whose results grow with the number of entries: a line for each entry, or an element for
#: each pair of entries.
SUPERLINEAR = {
    "broadcast_vectors", "kron", "make_diagonal", "meshgrid", "multinomial", "multinomial_split",
    "outer", "reshape_vectors", "stack", "unstack",
    "from_jax",  # It needs JAX.
}  # fmt: skip


def measure_program(function, args):
    """Return the number of lines of a program and the size of its largest tensor."""
    text = nx.jit(function, compiler="xla").lower(*args).as_text()
    sizes = (math.prod(map(int, dims.split("x")[:-1])) for dims in TYPE.findall(text))
    return text.count("\n"), max(sizes)


def assert_linear(function, small, large):
    small_lines, _ = measure_program(function, small)
    lines, elements = measure_program(function, large)
    # Bisections and prefix sums have one more step each time the size doubles.
    assert lines <= 2.5 * small_lines + 60
    # A derivative stores the values of each step.
    assert elements <= 20 * LARGE


def operands(count):
    """Return combinations of operands; each function accepts at least one of them."""
    x, ids, key = nx.template(count), nx.template(count, "s32"), nx.template(2, "u32")
    return [(x,), (ids,), (x, x), (x, ids), (ids, ids), (x, ids, x), (key, x), (key, x, x)]


def functions():
    found = {}
    for module in (nx, nx.nn, nx.linalg, nx.random, nx.fft):
        for name in module.__all__:
            function = getattr(module, name)
            if callable(function) and not inspect.isclass(function):
                found.setdefault(function, name)
    return [(name, function) for function, name in found.items() if name not in SUPERLINEAR]


def test_functions_scale_linearly(capsys):
    checked = set()
    for name, function in functions():
        for small, large in zip(operands(SMALL), operands(LARGE), strict=True):
            try:
                measure_program(lambda *args, function=function: function(*args), small)
            except (nx.NxlaError, TypeError, ValueError, AttributeError, RuntimeError):
                continue  # The function needs other operands.
            assert_linear(lambda *args, function=function: function(*args), small, large)
            checked.add(name)
    capsys.readouterr()  # Some functions print.
    assert len(checked) > 200


def slope(function, position):
    """Return the gradient of the sum of the results of a function."""

    def total(*args):
        results = nx.tree.leaves(function(*args))
        floats = [x for x in results if x.dtype.kind == "float"]
        return functools.reduce(nx.add, [nx.sum(x) for x in floats])

    return nx.grad(total, argnums=position)


def test_gradients_scale_linearly(capsys):
    checked = set()
    for name, function in functions():
        for small, large in zip(operands(SMALL), operands(LARGE), strict=True):
            for position in range(len(small)):
                if small[position].dtype != nx.float32:
                    continue
                gradient = slope(function, position)
                try:
                    measure_program(gradient, small)
                except (nx.NxlaError, TypeError, ValueError, AttributeError, RuntimeError):
                    continue  # The function needs other operands, or has no derivative.
                assert_linear(gradient, small, large)
                checked.add(name)
    capsys.readouterr()  # Some functions print.
    assert len(checked) > 100


def update_at(update):
    return lambda x, ids: getattr(x.at[ids], update)(x)


EXPLICIT_SIZES = {
    "weighted choice": lambda x, ids: nx.random.choice(
        nx.random.key(0), ids, x, samples=x.shape[0]
    )[0],
    "weighted choice without replacement": lambda x, ids: nx.random.choice(
        nx.random.key(0), ids, x, samples=x.shape[0] // 2, replace=False
    )[0],
    "shuffle": lambda x, ids: nx.random.shuffle(nx.random.key(0), x)[0],
    "categorical": lambda x, ids: nx.random.categorical(nx.random.key(0), x)[0],
    "truncated_normal": lambda x, ids: nx.random.truncated_normal(nx.random.key(0), x, x + 1)[0],
    "bincount": lambda x, ids: nx.bincount(ids, length=x.shape[0]),
    **{
        f"segment_{name}": lambda x, ids, name=name: getattr(nx, f"segment_{name}")(
            x, ids, x.shape[0]
        )
        for name in ("sum", "prod", "max", "min")
    },
    **{f"at.{name}": update_at(name) for name in ("set", "add", "multiply", "min", "max")},
}


@pytest.mark.parametrize("name", EXPLICIT_SIZES)
def test_functions_with_explicit_sizes_scale_linearly(name):
    function = EXPLICIT_SIZES[name]
    assert_linear(function, operands(SMALL)[3], operands(LARGE)[3])
    if name.startswith(("segment", "at")) and name not in ("segment_prod", "at.multiply"):
        slope = nx.grad(lambda x, ids: nx.sum(function(x, ids)))
        assert_linear(slope, operands(SMALL)[3], operands(LARGE)[3])
