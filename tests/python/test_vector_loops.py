"""Loops under `vmap` whose state gets the vectorized axis only in the body."""

import numpy as np
import pytest

import nxla as nx
from where import in_order

X = np.linspace(0.5, 3.0, 5, dtype="f4")


def newton(a):
    return nx.fori(0, 20, lambda i, x: 0.5 * (x + a / x), 1.0)


def newton_while(a):
    def step(state):
        i, x = state
        return i + 1, 0.5 * (x + a / x)

    return nx.while_loop(lambda state: state[0] < 20, step, (0, 1.0))[1]


def until_small(a):
    """The number of iterations depends on the entry, which the condition sees after one step."""
    return nx.while_loop(lambda x: x > 0.1, lambda x: x * 0.5 * nx.minimum(a, 1.5), 4.0)


def two_parts(a):
    """The second part becomes vectorized in the second trace of the body."""
    return nx.fori(0, 4, lambda i, s: (s[0] + a, s[1] + s[0]), (0.0, 0.0))[1]


def counter_bound(a):
    return nx.while_loop(lambda s: s[0] < s[1], lambda s: (s[0] + 1.0, a), (0.0, 10.0))[0]


def scan(a):
    return nx.scan(lambda carry, x: (carry * a + x, carry), 0.0, nx.tensor([1.0, 2.0, 3.0]))


def branch(a):
    return nx.cond(a > 1.0, lambda: a * 2.0, lambda: 0.0)


def switched(a):
    index = nx.astype(nx.clip(a, 0.0, 2.0), "s32")
    return nx.switch(index, [lambda: 0.0, lambda: a, lambda: a * a])


def prefix(a):
    return nx.associative_scan(lambda x, y: x + y * a, nx.tensor([1.0, 2.0, 3.0]))


def fold_sum(a):
    return nx.reduce(nx.tensor([1.0, 2.0, 3.0]), 0.0, lambda x, y: x + y) * a


def for_each(a):
    return nx.for_each(range(3), lambda i, x: x + a * i, 0.0)


def nested(a):
    return nx.fori(0, 3, lambda i, x: nx.fori(0, i + 1, lambda j, y: y + a * x, 1.0), 0.5)


FUNCTIONS = [
    newton, newton_while, until_small, two_parts, counter_bound, scan, branch, switched, prefix,
    fold_sum, for_each, nested,
]  # fmt: skip


def leaves(value):
    return [np.asarray(leaf) for leaf in nx.tree.flatten(value)[0]]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
@pytest.mark.parametrize("mode", ["eager", "jit"])
def test_vmap_matches_a_loop_over_entries(function, mode, compiler):
    x = nx.tensor(X)
    mapped = nx.vmap(function)
    if mode == "jit":
        mapped = nx.jit(mapped, compiler=compiler)
    found = leaves(mapped(x))
    separate = [leaves(nx.jit(function, compiler=compiler)(nx.tensor(a))) for a in X]
    for position, part in enumerate(found):
        expected = np.stack([entry[position] for entry in separate])
        np.testing.assert_allclose(part, expected, rtol=2e-5)


@pytest.mark.parametrize("function", [newton, newton_while, two_parts, scan, branch, nested])
def test_gradients_of_vmap_match_entries(function):
    def total(x):
        return sum(nx.sum(leaf) for leaf in nx.tree.flatten(nx.vmap(function)(x))[0])

    def single(a):
        return sum(nx.sum(leaf) for leaf in nx.tree.flatten(function(a))[0])

    found = np.asarray(nx.grad(total)(nx.tensor(X)))
    expected = [nx.grad(single)(nx.tensor(a)).item() for a in X]
    np.testing.assert_allclose(found, expected, rtol=2e-5)


def test_loops_in_nested_vmaps():
    mapped = nx.vmap(lambda a: nx.vmap(lambda b: nx.fori(0, 3, lambda i, x: x * a + b, 1.0))(b))
    a, b = nx.tensor(X), nx.tensor(X[:3])
    expected = np.ones((5, 3))
    for _ in range(3):
        expected = expected * X[:, None] + X[None, :3]
    np.testing.assert_allclose(np.asarray(mapped(a)), expected, rtol=1e-5)


def test_loop_hooks_run_once_per_iteration():
    seen = []

    def step(i, x):
        return nx.hook(x + nx.tensor(1.0), lambda value: seen.append(value)) + step.a

    def function(a):
        step.a = a
        return nx.fori(0, 3, step, 0.0)

    nx.jit(nx.vmap(function))(nx.tensor(X))
    assert len(seen) == 3


def folded_with_entries(a):
    return nx.reduce(nx.tensor([1.0, 2.0, 3.0]), 0.5, lambda x, y: x * a + y)


def folded_rows(a):
    x = nx.tensor(np.arange(12, dtype="f4").reshape(2, 3, 2) / 7)
    maximum = nx.reduce(x * a, 1.0, lambda x, y: nx.maximum(x * a, y), axis=(0, 2), keepdims=True)
    return (
        maximum,
        nx.reduce(x, a, lambda x, y: x + a * y, axis=-1),
        nx.reduce(x, 0.0, lambda x, y: a),
    )


@pytest.mark.parametrize(
    "function",
    # The function is not associative, and other devices fold in another order.
    [pytest.param(folded_with_entries, marks=in_order), folded_rows],
)
@pytest.mark.parametrize("mode", ["eager", "jit"])
def test_folds_with_entry_dependent_functions(function, mode, compiler):
    test_vmap_matches_a_loop_over_entries(function, mode, compiler)


def test_folds_in_nested_vmaps():
    x = nx.tensor([1.0, 2.0, 3.0])
    fold = lambda a, b: nx.reduce(x, 0.0, lambda v, total: total * b + v * a)  # noqa: E731
    a, b = nx.tensor([0.5, 2.0]), nx.tensor([1.0, 3.0, -1.0])
    both = nx.vmap(lambda a: nx.vmap(lambda b: fold(a, b))(b))
    # The elements have the weights b**2, b and 1 in some order; the function is not associative.
    found = both(a).numpy()
    expected = np.array([[fold(p, q).item() for q in b] for p in a])
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    slopes = nx.grad(lambda a: nx.sum(both(a)))(a).numpy()
    expected = [sum(nx.grad(lambda a: fold(a, q))(p).item() for q in b) for p in a]  # noqa: B023
    np.testing.assert_allclose(slopes, expected, rtol=1e-6)


def test_empty_loops_keep_names_and_vectorized_axes(compiler):
    def rows(count):
        x = nx.tensor(np.zeros((2, count, 3), "f4"), names=[None, None, "column"])
        return nx.vectorize(x, "row")

    def f(xs):
        return nx.scan(lambda total, x: (total, x), 0.0, xs)[1]

    for function in (f, nx.jit(f, compiler=compiler)):
        empty, nonempty = function(rows(0)), function(rows(2))
        assert (empty.shape, empty.dtype) == ((0, 3), nx.float32)
        assert (empty.names, empty.vectorized_axes) == (nonempty.names, nonempty.vectorized_axes)
        assert (empty.names[1], empty.vectorized_axes) == ("column", (("row", 2),))

    def names_of_row(x, total):
        assert (x.names, x.vectorized_axes) == (["column"], (("row", 2),))
        return total

    assert nx.for_each(rows(0), names_of_row, 0.0).item() == 0.0
