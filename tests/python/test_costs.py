"""The size of programs and of their largest tensors, for few and for many elements.

The tests do not run programs. They write the StableHLO modules for 100 and for 100,000 elements,
and compare the numbers of lines and the largest tensors.
"""

import functools
import inspect
import math
import re

import pytest

import nxla as nx

FEW, MANY = 100, 100_000
TYPE = re.compile(r"tensor<((?:\d+x)*)[a-z]")
#: Functions whose results grow with the number of entries: a line for each entry, or an element for
#: each pair of entries.
BY_NATURE = {
    "broadcast_vectors", "kron", "make_diagonal", "meshgrid", "multinomial", "multinomial_split",
    "outer", "reshape_vectors", "stack", "unstack",
    "from_jax",  # It needs JAX.
}  # fmt: skip


def measured(function, args):
    """The lines of a program, and the elements of its largest tensor."""
    text = nx.jit(function, compiler="xla").lower(*args).as_text()
    sizes = (math.prod(map(int, dims.split("x")[:-1])) for dims in TYPE.findall(text))
    return text.count("\n"), max(sizes)


def assert_linear(function, few, many):
    few_lines, _ = measured(function, few)
    lines, elements = measured(function, many)
    # Bisections and prefix sums have one more step each time the size doubles.
    assert lines <= 2.5 * few_lines + 60
    # A derivative stores the values of each step.
    assert elements <= 20 * MANY


def operands(count):
    """Combinations of operands; each function accepts at least one of them."""
    x, at, key = nx.template(count), nx.template(count, "s32"), nx.template(2, "u32")
    return [(x,), (at,), (x, x), (x, at), (at, at), (x, at, x), (key, x), (key, x, x)]


def functions():
    found = {}
    for module in (nx, nx.nn, nx.linalg, nx.random, nx.fft):
        for name in module.__all__:
            function = getattr(module, name)
            if callable(function) and not inspect.isclass(function):
                found.setdefault(function, name)
    return [(name, function) for function, name in found.items() if name not in BY_NATURE]


def test_functions_of_vectors(capsys):
    checked = set()
    for name, function in functions():
        for few, many in zip(operands(FEW), operands(MANY), strict=True):
            try:
                measured(lambda *args, function=function: function(*args), few)
            except (nx.NxlaError, TypeError, ValueError, AttributeError, RuntimeError):
                continue  # The function needs other operands.
            assert_linear(lambda *args, function=function: function(*args), few, many)
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


def test_gradients_of_functions_of_vectors(capsys):
    checked = set()
    for name, function in functions():
        for few, many in zip(operands(FEW), operands(MANY), strict=True):
            for position in range(len(few)):
                if few[position].dtype != nx.float32:
                    continue
                gradient = slope(function, position)
                try:
                    measured(gradient, few)
                except (nx.NxlaError, TypeError, ValueError, AttributeError, RuntimeError):
                    continue  # The function needs other operands, or has no derivative.
                assert_linear(gradient, few, many)
                checked.add(name)
    capsys.readouterr()  # Some functions print.
    assert len(checked) > 100


def at(update):
    return lambda x, ids: getattr(x.at[ids], update)(x)


OTHERS = {
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
    **{f"at.{name}": at(name) for name in ("set", "add", "multiply", "min", "max")},
}


@pytest.mark.parametrize("name", OTHERS)
def test_functions_with_sizes_of_their_own(name):
    function = OTHERS[name]
    assert_linear(function, operands(FEW)[3], operands(MANY)[3])
    if name.startswith(("segment", "at")) and name not in ("segment_prod", "at.multiply"):
        slope = nx.grad(lambda x, ids: nx.sum(function(x, ids)))
        assert_linear(slope, operands(FEW)[3], operands(MANY)[3])
