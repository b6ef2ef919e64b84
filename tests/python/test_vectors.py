"""Vectorized axes: eager and traced, on both backends, with gradients and control flow."""

import pickle

import numpy as np
import pytest

import nxla as nx

COMPILERS = ["evaluator", "xla"]


def rows():
    return nx.vectorize(nx.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), "row")


def values(x):
    return np.asarray(nx.devectorize(x, keep_names=False))


def test_shape_and_repr_of_vectorized_tensors():
    x = rows()
    assert (x.shape, x.ndim, x.size, len(x)) == ((3,), 1, 3, 3)
    assert x.vectorized_axes == (("row", 2),)
    assert x.tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    assert x.numpy().shape == (2, 3)
    assert x.nbytes == 24
    assert str(x) == (
        "#nxla.Tensor<\n  vectorized[row: 2]\n  f32[3]\n  [\n    [1.0, 2.0, 3.0],\n"
        "    [4.0, 5.0, 6.0]\n  ]\n>"
    )
    with pytest.raises(nx.ArgumentError, match="must have exactly one element"):
        nx.vectorize([1.0], "x").item()


def test_pickling_keeps_vectorized_axes():
    x = pickle.loads(pickle.dumps(rows()))
    assert x.vectorized_axes == (("row", 2),)
    assert x.shape == (3,)
    assert nx.compatible(nx.deserialize(nx.serialize(x)), x)
    assert not nx.compatible(x, nx.devectorize(x))


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        (["a", "b", "c"], "axes: must be at most the axes of .*; got 3"),
        ([("a", 5)], "must be 2; got 5"),
        (["y"], "names must differ from the other axes"),
        (["a", "a"], "names must differ from the vectorized axes"),
    ],
)
def test_vectorize_rejects_invalid_axes(axes, message):
    x = nx.reshape(nx.iota(6), (2, 3), names=["x", "y"])
    with pytest.raises(nx.ShapeError, match=message):
        nx.vectorize(x, axes)
    with pytest.raises(nx.ShapeError, match=message):
        nx.jit(lambda x: nx.vectorize(x, axes))(x)


def test_vectorize_devectorize_and_revectorize():
    x = nx.reshape(nx.iota(6), (2, 3), names=["x", "y"])
    single = nx.vectorize(x, "v")
    assert (single.names, single.vectorized_axes) == (["y"], (("v", 2),))
    assert nx.devectorize(single).names == ["v", "y"]
    assert nx.devectorize(single, keep_names=False).names == [None, "y"]
    both = nx.vectorize(single, "w")
    assert both.vectorized_axes == (("v", 2), ("w", 3))
    revectorized = nx.revectorize(both, [("a", 3), ("b", "auto")])
    assert (revectorized.vectorized_axes, revectorized.shape) == ((("a", 3), ("b", 2)), ())
    flat = nx.revectorize(both, [], target_shape=(3, -1), target_names=["p", "q"])
    assert (flat.vectorized_axes, flat.shape, flat.names) == ((), (3, 2), ["p", "q"])
    with pytest.raises(nx.ShapeError, match="sizes: must have at most one unknown"):
        nx.revectorize(both, [("a", None), ("b", None)])
    with pytest.raises(nx.ShapeError, match="must have the number of elements"):
        nx.revectorize(both, [("a", 4)])
    assert nx.vectorize({"a": x, "b": (x,)}, "v")["b"][0].vectorized_axes == (("v", 2),)


def test_vectorized_axes_combine_by_name():
    x, y = nx.vectorize([1, 2], "x"), nx.vectorize([10, 20, 30], "y")
    total = x + y
    assert total.vectorized_axes == (("x", 2), ("y", 3))
    assert total.tolist() == [[11, 21, 31], [12, 22, 32]]
    assert (y + x).vectorized_axes == (("y", 3), ("x", 2))
    wide = nx.vectorize([[1], [2]], "x") * nx.vectorize([[1, 2, 3]], "x")
    assert wide.shape == (3,)
    with pytest.raises(nx.ShapeError, match='"x" has size 2 in one operand and 3 in another'):
        x + nx.vectorize([1, 2, 3], "x")
    reshaped = nx.reshape_vectors([x, y, nx.tensor([[7]])], align_ranks=True)
    assert [z.vectorized_axes for z in reshaped] == [
        (("x", 2), ("y", 1)),
        (("x", 1), ("y", 3)),
        (("x", 1), ("y", 1)),
    ]
    assert [z.shape for z in reshaped] == [(1, 1), (1, 1), (1, 1)]
    repeated = nx.broadcast_vectors([y, x])
    assert [z.tolist() for z in repeated] == [[[10] * 2, [20] * 2, [30] * 2], [[1, 2]] * 3]


def test_errors_report_the_shape_of_an_entry():
    with pytest.raises(nx.ShapeError, match=r"axis: must be in range for f32\[3\]; got -2"):
        nx.sum(rows(), axis=-2)
    with pytest.raises(
        nx.ShapeError, match=r"operands: expected shapes that broadcast; got f32\[3\] and f32\[2\]"
    ):
        rows() + nx.tensor([1.0, 2.0])


# Functions of one array, which are compared with separate calls for each entry.
FUNCTIONS = {
    "sum": lambda x: nx.sum(x, axis=-1),
    "mean": nx.mean,
    "softmax": lambda x: nx.exp(x) / nx.sum(nx.exp(x), axis=-1, keepdims=True),
    "sort": lambda x: nx.sort(x, descending=True),
    "argmax": nx.argmax,
    "cumulative_sum": lambda x: nx.cumulative_sum(x, axis=1),
    "reshape": lambda x: nx.reshape(x, (3, 2)),
    "transpose": lambda x: x.T,
    "pad": lambda x: nx.pad(x, x[0, 0], [(1, 0), (0, 2)]),
    "clip": lambda x: nx.clip(x, x[0, 0], x[1, 2]),
    "index": lambda x: x[1, ::-1],
    "dynamic index": lambda x: x[:, nx.argmax(x[0])],
    "put_slice": lambda x: nx.put_slice(x, [0, nx.argmax(x[0])], x[:, :1] * 2),
    "take": lambda x: nx.take(x, nx.argsort(x[0]), axis=1),
    "matmul": lambda x: x @ x.T,
    "outer": lambda x: nx.outer(x[0], x[1]),
    "window": lambda x: nx.window_max(x, (1, 2), padding="same"),
    "median": lambda x: nx.median(x, axis=1),
    "where": lambda x: nx.where(x > 2, x, 0),
    "zeros_like": nx.zeros_like,
    "stack": lambda x: nx.stack([x, -x], axis=-1),
    "fft": lambda x: nx.abs(nx.fft.fft(x)),
    "cholesky": lambda x: nx.linalg.cholesky(x @ x.T + nx.eye(2)),
    "reduce": lambda x: nx.reduce(x, x[0, 0], lambda a, b: nx.maximum(a, b), axis=1),
    "scan": lambda x: nx.scan(lambda c, r: (c + r, c * r), x[0], x),
    "cond": lambda x: nx.cond(nx.sum(x) > 12, lambda: x * 2, lambda: x - 1),
    "while": lambda x: nx.while_loop(lambda s: nx.sum(s) < 40, lambda s: s * 1.5, x),
    "fori": lambda x: nx.fori(0, nx.astype(x[0, 0], nx.int32), lambda i, s: s + i, x),
    "grad": nx.grad(lambda x: nx.sum(nx.sin(x) * x)),
    "custom_grad": nx.grad(lambda x: nx.sum(nx.custom_grad(x, x, lambda g: g * x))),
}

DATA = np.array(
    [[[1, 5, 2], [0.5, 3, 4]], [[3, 1, 2], [2, 2.5, 1]], [[2, 4, 4.5], [1, 0, 3]]], np.float32
)


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_vectorized_functions_match_entries(name, compiler):
    function = FUNCTIONS[name]
    entries = [nx.tree.leaves(function(nx.tensor(entry))) for entry in DATA]
    jitted = nx.jit(function, compiler=compiler)
    for result in (jitted(nx.vectorize(nx.tensor(DATA), "v")), nx.vmap(jitted)(nx.tensor(DATA))):
        for position, leaf in enumerate(nx.tree.leaves(result)):
            expected = np.stack([np.asarray(entry[position]) for entry in entries])
            np.testing.assert_allclose(np.asarray(leaf), expected, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_eager_and_traced_vectorized_functions_agree(name):
    function = FUNCTIONS[name]
    x = nx.vectorize(nx.tensor(DATA), "v")
    eager, traced = nx.tree.leaves(function(x)), nx.tree.leaves(nx.jit(function)(x))
    for left, right in zip(eager, traced, strict=True):
        assert left.vectorized_axes == right.vectorized_axes == (("v", 3),)
        np.testing.assert_allclose(np.asarray(left), np.asarray(right), rtol=2e-5, atol=1e-6)


def test_vectorized_axes_are_part_of_the_cache_key():
    calls = []

    @nx.jit
    def total(x):
        calls.append(x.vectorized_axes)
        return nx.sum(x)

    plain = nx.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert total(plain).item() == 10
    assert total(nx.vectorize(plain, "a")).tolist() == [3.0, 7.0]
    assert total(plain).item() == 10
    assert total(nx.vectorize(plain, "b")).vectorized_axes == (("b", 2),)
    assert total(nx.vectorize(plain, "a")).vectorized_axes == (("a", 2),)
    assert calls == [(), (("a", 2),), (("b", 2),)]


def test_templates_and_compiled_functions():
    template = nx.template((3,), vectorized_axes=[("row", 2)])
    assert repr(template) == "vectorized[row: 2] f32[3]"
    compiled = nx.compile(nx.sum, [template])
    assert compiled(rows()).tolist() == [6.0, 15.0]
    with pytest.raises(nx.ArgumentError, match=r"vectorized\[other: 2\] f32\[3\]"):
        compiled(nx.vectorize(nx.zeros((2, 3)), "other"))
    with pytest.raises(nx.ArgumentError, match=r"f32\[2\]\[3\]"):
        compiled(nx.zeros((2, 3)))
    text = str(nx.debug_expr(nx.sum)(template))
    assert text.startswith("#nxla.Expr<\n  vectorized[row: 2]\n  f32\n")


def test_stages_keep_vectorized_axes():
    expression = nx.debug_expr(lambda x: nx.sum(nx.annotate(x * 2, "cut")))(rows())
    stages = nx.graph.split(expression, lambda node: "after" if node.note else "none")
    assert len(stages) == 2
    assert nx.graph.run(stages, rows()).vectorized_axes == (("row", 2),)


def test_gradients_of_vectorized_functions():
    y = nx.vectorize(nx.tensor([1.0, 2.0]), "v")
    both = nx.grad(lambda x, y: nx.sum(x * y), argnums=(0, 1))
    dx, dy = both(nx.tensor([3.0, 4.0]), y)
    assert dx.vectorized_axes == dy.vectorized_axes == (("v", 2),)
    assert (dx.tolist(), dy.tolist()) == ([[1.0, 1.0], [2.0, 2.0]], [7.0, 7.0])
    # The function is traced twice, but its hook runs once.
    seen = []

    def shown(x):
        return nx.sum(nx.hook(x * y, seen.append))

    assert nx.grad(shown)(nx.tensor([3.0, 4.0])).tolist() == [[1.0, 1.0], [2.0, 2.0]]
    assert [x.vectorized_axes for x in seen] == [(("v", 2),)]


def test_unselected_branches_are_not_computed():
    seen = []

    def function(x):
        return nx.cond(x > 0, lambda: nx.hook(x, seen.append), lambda: x * 10)

    x = nx.vectorize(nx.tensor([-1.0, -2.0]), "v")
    assert nx.jit(function)(x).tolist() == [-10.0, -20.0]
    assert seen == []
    x = nx.vectorize(nx.tensor([1.0, -2.0]), "v")
    assert nx.jit(function)(x).tolist() == [1.0, -20.0]
    assert len(seen) == 1


def test_branches_with_vectorized_results():
    @nx.jit
    def function(flag, x, y):
        single = nx.cond(flag > 0, lambda: (x, 1), lambda: (y, 2.5))
        multiple = nx.cond([(x > 1, lambda: y), (flag > 0, lambda: -y)], otherwise=lambda: 0)
        return single, multiple

    x, y = nx.vectorize([1, 2], "a"), nx.vectorize([[1, 2, 3]] * 2, "b")
    single, multiple = function(1, x, y)
    assert single[0].vectorized_axes == (("a", 2), ("b", 2))
    assert single[0].tolist() == [[[1, 1, 1]] * 2, [[2, 2, 2]] * 2]
    assert single[1].item() == 1.0
    assert multiple.tolist() == [[[-1, -2, -3]] * 2, [[1, 2, 3]] * 2]
    with pytest.raises(nx.ShapeError, match="expected a scalar"):
        nx.jit(lambda y: nx.cond(y > 1, lambda: 1, lambda: 2))(y)


def test_loop_states_become_vectorized():
    x = nx.vectorize(nx.tensor([1, 2]), "v")
    reached = nx.jit(lambda x: nx.while_loop(lambda s: s < 5, lambda s: s + x, 0))(x)
    assert reached.tolist() == [5, 6]
    total = nx.jit(lambda x: nx.while_loop(lambda s: s < 5 * x, lambda s: s + 1, 0))(x)
    assert total.tolist() == [5, 10]


def test_vmap_in_axes_and_out_axes():
    x = nx.tensor(np.arange(24.0, dtype=np.float32).reshape(2, 3, 4))
    result = nx.vmap(lambda row, scale: row * scale, in_axes=(1, None), out_axes=-1)(x, 2.0)
    np.testing.assert_allclose(np.asarray(result), np.asarray(x).transpose(0, 2, 1) * 2)
    assert nx.vmap(lambda x: 7)(nx.zeros(3)).tolist() == [7, 7, 7]
    nested = nx.vmap(lambda d, y: (d["x"] + y, y), in_axes=(0, 0))({"x": nx.iota(3)}, nx.iota(3))
    assert [leaf.tolist() for leaf in nested] == [[0, 2, 4], [0, 1, 2]]
    with pytest.raises(nx.ShapeError, match="must have equal sizes"):
        nx.vmap(lambda x, y: x)(nx.zeros(2), nx.zeros(3))
    with pytest.raises(nx.ShapeError, match="no argument is mapped"):
        nx.vmap(lambda x: x, in_axes=None)(nx.zeros(2))
    with pytest.raises(nx.ShapeError, match=r"must be in range for .*; got 1"):
        nx.vmap(lambda x: x, in_axes=1)(nx.zeros(2))
    with pytest.raises(nx.ShapeError, match=r"must be in range for .*; got 1"):
        nx.vmap(lambda x: x, out_axes=1)(nx.zeros(2))
    with pytest.raises(nx.ArgumentError, match="structure of the value"):
        nx.vmap(lambda x: x, in_axes=({"b": 0},))({"a": nx.zeros(2)})


def test_out_axes_none_requires_equal_results(compiler):
    @nx.jit(compiler=compiler)
    def shared(x, y):
        function = lambda x, y: {"x": x * y, "y": y + 1, "7": 7}  # noqa: E731
        return nx.vmap(function, in_axes=(0, None), out_axes={"x": -1, "y": None, "7": None})(x, y)

    for size in (0, 1, 3):
        found = shared(nx.ones((size, 2)), nx.tensor([3.0, 4.0]))
        assert found["x"].shape == (2, size)
        assert (found["y"].tolist(), found["7"].item()) == ([4.0, 5.0], 7)
    # The outer map has entries; the inner map does not.
    inner = nx.vmap(lambda x, y: (x, y), in_axes=(0, None), out_axes=(0, None))
    x, y = nx.vmap(inner, in_axes=(None, 0))(nx.ones(2), nx.iota(3))
    assert (x.shape, y.tolist()) == ((3, 2), [0, 1, 2])
    for size in (0, 1, 5):
        for function in (lambda x: x, lambda x: x * 0, lambda x: (1, nx.sum(x))):
            with pytest.raises(nx.ArgumentError, match="out_axes: must be an int for a result"):
                nx.vmap(function, out_axes=None)(nx.iota(size))


def test_creation_with_vectorized_axes():
    assert nx.iota((2,), vectorized_axes=[("x", 2), ("y", 1)]).tolist() == [[[0, 1]], [[0, 1]]]
    assert nx.eye(2, vectorized_axes=[("x", 2)]).shape == (2, 2)
    assert nx.full_like(rows(), 7).vectorized_axes == (("row", 2),)


def test_vectorized_axes_follow_argument_order():
    predicate = nx.vectorize(nx.tensor([True, False]), "p")
    x = nx.vectorize(nx.tensor([1.5, 2.5, 3.5]), "x")
    selected = nx.where(predicate, x, 0)
    assert selected.vectorized_axes == (("p", 2), ("x", 3))
    assert selected.dtype == nx.float32
    assert values(selected).tolist() == [[1.5, 2.5, 3.5], [0.0, 0.0, 0.0]]
    assert nx.where(predicate, 1, 2).dtype == nx.int32


def test_assertions_compare_all_entries():
    x = nx.vectorize(nx.tensor([[1.0, 2.0], [3.0, 4.0], [0.5, 0.25]]), "row")
    y = nx.vectorize(nx.tensor([1.0, 2.0]), "column")
    nx.testing.assert_all_close(x, x)
    nx.testing.assert_all_close(x + y, y + x)
    nx.testing.assert_equal(x, x)
    with pytest.raises(AssertionError, match=r"by up to 4\.0"):
        nx.testing.assert_all_close(x, x * 2)
    for other, difference in (
        (x + 1, "elements"),
        (x[0], "shape"),
        (nx.ones(2), "vectorized axes"),
    ):
        with pytest.raises(AssertionError, match=f"the tensors differ in .*{difference}"):
            nx.testing.assert_equal(x, other)
    nx.testing.check_grads(lambda x, y: nx.sum(nx.sin(x) * y), (x, y))
    with pytest.raises(AssertionError, match="fwd: derivative must match"):
        nx.testing.check_grads(lambda x: nx.custom_grad(nx.sin(x), x, lambda g: g), (x,))
