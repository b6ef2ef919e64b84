"""Derivatives of functions over vectorized axes."""

import itertools

import numpy as np
import pytest

import nxla as nx


@pytest.fixture
def scaled():
    """Return a function whose derivative is its second argument."""
    function = nx.custom_vjp(lambda x, s: x * 1.0)
    function.defvjp(lambda x, s: (x * 1.0, s), lambda s, c: (c * s, nx.zeros_like(s)))
    return function


def test_shared_output_has_per_entry_gradients(scaled, compiler):
    factors = nx.tensor([1.0, 2.0, 3.0])
    per_entry = nx.jit(nx.vmap(nx.grad(scaled), in_axes=(None, 0)), compiler=compiler)
    assert per_entry(0.5, factors).tolist() == [1.0, 2.0, 3.0]
    weights = nx.tensor([1.0, 10.0, 100.0])
    weighted = nx.grad(lambda x: nx.sum(nx.vmap(scaled, in_axes=(None, 0))(x, factors) * weights))
    assert nx.jit(weighted, compiler=compiler)(0.5).item() == 321.0


def test_shared_output_has_per_entry_tangents(compiler):
    function = nx.custom_jvp(lambda x, y: nx.sin(x))
    function.defjvp(lambda primals, tangents: tangents[0] * primals[1])
    factors = nx.tensor([1.0, 2.0, 3.0])
    values = nx.jit(nx.vmap(function, in_axes=(None, 0)), compiler=compiler)(0.5, factors)
    np.testing.assert_allclose(values, [np.sin(0.5)] * 3, rtol=1e-6)
    slopes = nx.vmap(nx.grad(function), in_axes=(None, 0))
    assert nx.jit(slopes, compiler=compiler)(0.5, factors).tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("inside", ["plain", "batched", "scan", "checkpoint", "cond"])
def test_custom_rules_use_captured_entry_values(inside, compiler):
    factors = nx.tensor([1.0, 2.0, 3.0])
    weights = nx.tensor([1.0, 10.0, 100.0])
    scale = nx.custom_vjp(lambda w, s: w * 1.0, nondiff_argnums=(1,))
    scale.defvjp(lambda w, s: (w * 1.0, None), lambda s, _, cotangent: (cotangent * s,))

    def call(w, s):
        if inside == "scan":
            return nx.scan(lambda x, _: (scale(x, s), None), w, length=1)[0]
        if inside == "checkpoint":
            return nx.checkpoint(lambda x: scale(x, s))(w)
        if inside == "cond":
            return nx.cond(w > 0, lambda: scale(w, s), lambda: w)
        return scale(w, s)

    def entries(w):
        # A compiled function is a graph in the graph, whose ops are batched.
        entry_function = nx.jit(call) if inside == "batched" else call
        return nx.vmap(entry_function, in_axes=(None, 0))(w, factors)

    slope = nx.jit(nx.grad(lambda w: nx.sum(entries(w) * weights)), compiler=compiler)
    assert slope(0.5).item() == 321.0
    per_entry = nx.jit(nx.vmap(lambda s: nx.grad(lambda w: call(w, s))(0.5)), compiler=compiler)
    assert per_entry(factors).tolist() == [1.0, 2.0, 3.0]
    tangents = nx.jit(lambda w: nx.jvp(entries, (w,), (1.0,))[1], compiler=compiler)
    assert tangents(0.5).tolist() == [1.0, 2.0, 3.0]


def test_custom_rules_broadcast_an_axis_of_size_1(compiler):
    x, y = nx.vectorize([5.0], "a"), nx.vectorize([1.0, 2.0], "a")

    def product(x, y):
        return nx.custom_grad(x * y, x, lambda cotangent: cotangent * y)

    values = nx.jit(product, compiler=compiler)(x, y)
    assert nx.devectorize(values).tolist() == [5.0, 10.0]
    slope = nx.jit(nx.grad(product), compiler=compiler)(x, y)
    assert nx.devectorize(slope).tolist() == [1.0, 2.0]


#: Functions that vectorize their result.
VECTORIZING = {
    "elements": lambda x: nx.vectorize(x * x, "v"),
    "rows": lambda x: nx.vectorize(nx.outer(x, nx.sin(x)), "v"),
    "two axes": lambda x: nx.vectorize(nx.outer(x, nx.sin(x))[:2], ["v", "w"]),
    "names": lambda x: nx.sum(
        nx.vectorize(nx.rename(nx.outer(x, nx.exp(x)), ("a", "b")), "v"), axis="b"
    ),
    "a branch": lambda x: nx.cond(x[0] > 0, lambda: nx.vectorize(x * x, "v"), lambda: x[0]),
}


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("name", VECTORIZING)
def test_vectorized_results_have_per_entry_derivatives(name, traced):
    function = VECTORIZING[name]
    run = nx.jit if traced else lambda function: function
    x = nx.tensor([1.0, 2.0, 3.0])
    expected = run(nx.jacfwd(function))(x)

    def pull_back(x):
        y, pull = nx.vjp(function, x)
        return pull(nx.ones_like(y))[0]

    def total(x):
        return nx.sum(function(x))

    found = {
        "jacrev": run(nx.jacrev(function))(x),
        "vjp": run(pull_back)(x),
        "grad": run(nx.grad(total))(x),
        "value_and_grad": run(lambda x: nx.value_and_grad(total)(x)[1])(x),
    }
    totals = expected if expected.ndim == 1 else nx.sum(expected, axis=0)
    for derivative, result in found.items():
        reference = expected if derivative == "jacrev" else totals
        assert result.vectorized_axes == reference.vectorized_axes
        np.testing.assert_allclose(nx.devectorize(result), nx.devectorize(reference), rtol=1e-6)


#: Functions of a differentiated value `w` and a captured value `d`.
FUNCTIONS = {
    "of both": lambda w, d: nx.sin(w * d),
    "of the value": lambda w, d: nx.sin(w) * 2,
    "of the captured value": lambda w, d: d * 2.0,
    "constant": lambda w, d: nx.ones(3),
    "several": lambda w, d: (nx.sin(w * d), nx.cos(w), d, nx.ones(3)),
}


def total(results):
    """Return the sum of all results, each with another factor."""
    return sum(nx.sum(nx.sin(y)) * (i + 1) for i, y in enumerate(nx.tree.leaves(results)))


def pull_back(function, v, *primals):
    """Return the gradients for multiples of a cotangent."""
    y, pull = nx.vjp(function, *primals)
    leaves, structure = nx.tree.flatten(y)
    return pull(structure.unflatten([v * (i + 1.0) for i in range(len(leaves))]))


#: Derivatives of a function `f` at `w` in a direction `v`, with a captured value `d`.
DERIVATIVES = {
    "jvp": lambda f, w, v, d: nx.jvp(lambda w: f(w, d), (w,), (v,)),
    "jvp of two": lambda f, w, v, d: nx.jvp(f, (w, d), (v, v)),
    "linearize": lambda f, w, v, d: nx.linearize(lambda w: f(w, d), w)[1](v),
    "linearize grad": lambda f, w, v, d: nx.linearize(nx.grad(lambda w: total(f(w, d))), w)[1](v),
    "vjp": lambda f, w, v, d: pull_back(lambda w: f(w, d), v, w),
    "vjp of two": lambda f, w, v, d: pull_back(f, v, w, d),
    "jacfwd": lambda f, w, v, d: nx.jacfwd(lambda w: f(w * v, d))(w),
    "jacrev": lambda f, w, v, d: nx.jacrev(lambda w: f(w * v, d))(w),
    "hessian": lambda f, w, v, d: nx.hessian(lambda w: f(w * v, d))(w),
    "hessian_diagonal": lambda f, w, v, d: nx.hessian_diagonal(lambda w: total(f(w * v, d)))(w),
}


def mapped_depths(depth):
    """Return by how many of `depth` nested maps `w`, `v` and `d` are mapped."""
    return [case for case in itertools.product(range(depth + 1), repeat=3) if depth in case]


def select(x, depth, entry=()):
    """Return the rows that `depth` of two nested maps map, or the row for an entry of both."""
    return x[(0,) * (2 - depth) + entry[2 - depth :]]


@pytest.mark.parametrize("derivative", DERIVATIVES)
@pytest.mark.parametrize(
    ("name", "backend"), [*((name, "evaluator") for name in FUNCTIONS), ("several", "xla")]
)
def test_derivatives_of_partly_mapped_arguments(derivative, name, backend):
    def one(*arguments):
        return DERIVATIVES[derivative](FUNCTIONS[name], *arguments)

    def mapped(case, arguments):
        function = one
        for depth in range(1, max(case) + 1):
            in_axes = tuple(0 if depth <= own else None for own in case)
            function = nx.vmap(function, in_axes=in_axes)
        return function(*map(select, arguments, case))

    # XLA takes long to compile a program.
    cases = mapped_depths(1) + (mapped_depths(2) if backend == "evaluator" else [])
    arguments = np.random.default_rng(0).normal(size=(3, 4, 2, 3)).astype(np.float32)
    run = nx.jit(lambda *arguments: [mapped(case, arguments) for case in cases], compiler=backend)
    run_one = nx.jit(one, compiler="evaluator")
    for case, found in zip(cases, run(*arguments), strict=True):
        sizes = (4, 2) if max(case) == 2 else (1, 2)
        entries = []
        for entry in np.ndindex(sizes):
            rows = [select(x, depth, entry) for x, depth in zip(arguments, case, strict=True)]
            entries.append([leaf.numpy() for leaf in nx.tree.leaves(run_one(*rows))])
        for result, leaves in zip(nx.tree.leaves(found), zip(*entries, strict=True), strict=True):
            expected = np.reshape(leaves, (*sizes[2 - max(case) :], *leaves[0].shape))
            assert result.shape == expected.shape, case
            np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5, err_msg=str(case))


def test_results_depend_on_other_entries_of_their_arguments():
    x = nx.vectorize(nx.ones((3, 2)), "a")

    def function(x):
        return nx.sum(nx.devectorize(x))

    assert nx.devectorize(nx.vjp(function, x)[1](2.0)[0]).tolist() == [[2.0, 2.0]] * 3
    with pytest.raises(nx.ArgumentError, match=r'cotangent 0: must not have .* axis "a"'):
        nx.vjp(function, x)[1](nx.vectorize(nx.ones(3), "a"))
    for derivative in ("jacfwd", "jacrev"):
        message = f'{derivative}: result 0: must have the vectorized axis "a" of the arguments'
        with pytest.raises(nx.ShapeError, match=message):
            getattr(nx, derivative)(function)(x)


def test_jacobians_of_constants_have_the_axes_of_the_arguments():
    x, c = nx.vectorize(nx.ones((3, 2)), "a"), nx.vectorize(nx.ones((4, 5)), "b")
    for derivative in (nx.jacfwd, nx.jacrev):
        zeros = derivative(lambda x: nx.ones(5))(x)
        assert (zeros.vectorized_axes, zeros.shape) == ((("a", 3),), (5, 2))
        zeros = derivative(lambda x: c)(x)
        assert sorted(zeros.vectorized_axes) == [("a", 3), ("b", 4)]
        assert (zeros.shape, np.any(nx.devectorize(zeros))) == ((5, 2), False)


def test_linear_maps_along_axes_that_results_vectorize(compiler):
    rows = nx.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 2.0], [1.0, 1.0, 3.0]])
    x, directions = nx.tensor([1.0, 2.0, 3.0]), nx.vectorize(rows, "v")

    def function(x):
        return nx.vectorize(x * x, "v")

    def both(x, directions):
        push = nx.linearize(function, x)[1]
        return nx.jvp(function, (x,), (directions,))[1], push(directions), push(x)

    along, pushed, shared = nx.jit(both, compiler=compiler)(x, directions)
    assert nx.devectorize(along).tolist() == nx.devectorize(pushed).tolist() == [2.0, 4.0, 18.0]
    assert nx.devectorize(shared).tolist() == [2.0, 8.0, 18.0]


def test_names_of_vectorized_axes_are_distinct():
    with pytest.raises(nx.ArgumentError, match='vectorized_axes: names must be distinct; got "a"'):
        nx.template((3,), vectorized_axes=[("a", 2), ("a", 2)])
    adds = nx.debug_expr(lambda x: nx.vectorize(x, "v"))(nx.ones(3))
    values = nx.vectorize(nx.ones((2, 3)), "v")
    message = 'call: values: must not have the vectorized axis "v", which result 0 adds'
    with pytest.raises(nx.ArgumentError, match=message):
        nx.jit(lambda x: nx.expr.call(adds, x))(values)


@pytest.mark.parametrize("jacobian", [nx.jacrev, nx.jacfwd])
def test_jacobians_of_a_constant_state_of_a_loop_are_zero(jacobian):
    def second(x):
        start = (nx.tensor(1.0), nx.tensor(1.0))
        return nx.fori(0, 3, lambda _, state: (state[0] * x, state[1] * 2.0), start)[1]

    x = nx.vectorize(nx.tensor([1.0, 2.0, 3.0]), "v")
    assert nx.devectorize(jacobian(second)(x)).tolist() == [0.0, 0.0, 0.0]
