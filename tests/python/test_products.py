"""Tests of einsum, Kronecker products, rotations, switch and associative scans."""

import itertools
import sys

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import nxla as nx
from where import on_cpu

BACKENDS = ["evaluator", "xla"]


@st.composite
def einsum_cases(draw):
    """Return subscripts, and arrays with matching axes."""
    sizes = {letter: draw(st.integers(1, 3)) for letter in "abcdZ"}
    terms, arrays = [], []
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    covered = draw(st.lists(st.integers(1, 3), max_size=2))
    for _ in range(draw(st.integers(1, 4))):
        letters = draw(st.lists(st.sampled_from(sorted(sizes)), max_size=3))
        shape = [draw(st.sampled_from([1, sizes[letter]])) for letter in letters]
        # A letter that is repeated in one operand denotes a diagonal, so its axes have equal sizes.
        shape = [shape[letters.index(letter)] for letter in letters]
        term = "".join(letters)
        if covered and draw(st.booleans()):
            position, count = draw(st.integers(0, len(letters))), draw(st.integers(0, len(covered)))
            term = term[:position] + "..." + term[position:]
            shape[position:position] = covered[len(covered) - count :]
        terms.append(term)
        arrays.append(rng.integers(-3, 4, shape).astype("f8"))
    subscripts = draw(st.sampled_from([",", " , "])).join(terms)
    if draw(st.booleans()):
        used = sorted(set("".join(terms)) - {"."})
        output = draw(st.permutations(used)) if used else []
        output = "".join(output[: draw(st.integers(0, len(used)))])
        subscripts += "->" + ("..." if "..." in subscripts else "") + output
    return subscripts, arrays


@pytest.mark.parametrize("backend", BACKENDS)
def test_einsum(backend):
    @settings(max_examples=150 if backend == "evaluator" else 20, deadline=None)
    @given(einsum_cases(), st.sampled_from([True, False, "greedy"]))
    def check(case, optimize):
        subscripts, arrays = case
        try:
            expected = np.einsum(subscripts, *arrays)
        except ValueError:
            assume(False)
        with nx.default_options(compiler=backend):
            got = nx.einsum(subscripts, *arrays, optimize=optimize)
        np.testing.assert_allclose(got, expected)

    check()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("rows", "columns"), [(7, 5), (5000, 10), (300, 70), (3, 4000), (70, 300)])
def test_matrix_vector_products(rows, columns, backend):
    rng = np.random.default_rng(0)
    for dtype, tolerance in (("f4", 1e-5), ("f8", 1e-12), ("c16", 1e-12), ("i4", 0)):
        a = rng.integers(-4, 5, (rows, columns)).astype(dtype)
        x, y = (rng.integers(-4, 5, size).astype(dtype) for size in (columns, rows))
        products = nx.jit(lambda a, x, y: (a @ x, x @ a.T, y @ a, a.T @ y), compiler=backend)
        for found, expected in zip(products(a, x, y), (a @ x, a @ x, y @ a, y @ a), strict=True):
            assert found.dtype == getattr(nx, expected.dtype.name)
            np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", ["f32", "s32", "c64"])
def test_small_products_in_all_axis_orders(dtype):
    rng = np.random.default_rng(9)
    orders = itertools.product(("nij", "nji", "ij"), ("njk", "nkj"), ("nik", "nki"))
    vectors = [("nij", "nj", "ni"), ("nij", "ni", "nj"), ("nj", "nij", "ni"), ("ij", "i", "j")]
    for left, right, result in (*orders, *vectors):
        for sizes in itertools.product((1, 5, 8, 23), repeat=3):
            axes = dict(zip("ijk", sizes, strict=True), n=3)
            x, y = (
                nx.tensor(rng.integers(-9, 9, [axes[axis] for axis in part]), dtype)
                for part in (left, right)
            )
            subscripts = f"{left},{right}->{result}"
            found = np.asarray(nx.einsum(subscripts, x, y))
            expected = np.einsum(subscripts, np.asarray(x), np.asarray(y))
            np.testing.assert_array_equal(found, expected, f"{subscripts} {sizes}")


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kernels", [pytest.param(True, marks=on_cpu), False])
def test_per_example_gradients_of_a_shared_weight(backend, kernels):
    options = {"kernels": kernels} if backend == "xla" else {}
    rng = np.random.default_rng(0)
    normal = lambda *shape: rng.standard_normal(shape)  # noqa: E731
    losses = [
        (lambda w, x: nx.sum(nx.tanh(x @ w) @ w.T), normal(5, 4), normal(6, 5)),
        (lambda w, x: nx.sum(nx.tanh(x @ w) @ w.T), normal(5, 4), normal(6, 3, 5)),
        (lambda w, x: nx.sum(nx.sin(nx.einsum("ij,kj->ik", w, x))), normal(2, 4), normal(6, 3, 4)),
        (
            lambda w, x: nx.sum(nx.tanh(nx.conv(x[None], w, padding="same", strides=2)) ** 2),
            normal(4, 2, 3, 3),
            normal(6, 2, 8, 8),
        ),
        (
            lambda w, x: nx.sum(nx.conv(x[None], w, feature_groups=2) ** 2),
            normal(4, 1, 3),
            normal(6, 2, 9),
        ),
    ]
    for loss, w, x in losses:
        batched = nx.jit(nx.vmap(nx.grad(loss), in_axes=(None, 0)), compiler=backend, **options)
        single = nx.jit(nx.grad(loss), compiler="evaluator")
        expected = np.stack([np.asarray(single(w, entry)) for entry in x])
        np.testing.assert_allclose(batched(w, x), expected, rtol=1e-9, atol=1e-9)


def test_einsum_with_axis_lists():
    x, y = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    for arguments in [(x, [0, 1], y, [1, 2], [0, 2]), (x, [5, 30], y, [30, 2]), (x, [1, 0])]:
        np.testing.assert_allclose(nx.einsum(*arguments), np.einsum(*arguments))
    for subscripts, operands in [
        (",ij", (2.0, x)),
        ("ij,", (x, 2.0)),
        ("i,jkl->kijl", (x[0], [y])),
    ]:
        np.testing.assert_allclose(
            nx.einsum(subscripts, *operands), np.einsum(subscripts, *operands)
        )
    for shape, subscripts in [((0, 0), "ii->i"), ((2, 0, 0), "jii->ji"), ((0, 0, 2), "iij->j")]:
        found = nx.einsum(subscripts, np.zeros(shape))
        np.testing.assert_array_equal(found, np.einsum(subscripts, np.zeros(shape)))
    batch = (x, [..., 0], y, [0, 2], [..., 2])
    np.testing.assert_allclose(nx.einsum(*batch), np.einsum(*batch))


def test_outer_products_and_leading_diagonals_need_no_transposition():
    outer = nx.debug_expr(lambda x, y, z: nx.einsum("i,j,k->ijk", x, y, z))
    for expression in (
        outer(nx.zeros(2), nx.zeros(3), nx.zeros(4)),
        nx.debug_expr(lambda x: nx.einsum("iij->j", x))(nx.zeros((3, 3, 4))),
    ):
        assert "transpose" not in str(expression)


def test_contraction_order_options(compiler, monkeypatch):
    rng = np.random.default_rng(1)
    arrays = [rng.normal(size=shape).astype("f4") for shape in [(2, 30), (30, 30), (30, 2), (2,)]]
    subscripts = "ab,bc,cd,d->a"
    expected = np.einsum(subscripts, *arrays)
    path, _ = np.einsum_path(subscripts, *arrays)
    with nx.default_options(compiler=compiler):
        for optimize in (True, False, "optimal", path, path[1:], [(0, 1, 2, 3)]):
            got = nx.einsum(subscripts, *arrays, optimize=optimize)
            np.testing.assert_allclose(got, expected, rtol=1e-4)
        # Without the package, nxla chooses the order of the products.
        monkeypatch.setitem(sys.modules, "opt_einsum", None)
        np.testing.assert_allclose(nx.einsum(subscripts, *arrays), expected, rtol=1e-4)
    with pytest.raises(nx.ArgumentError, match="not installed"):
        nx.einsum(subscripts, *arrays, optimize="greedy")


def test_cheapest_contraction_comes_first(monkeypatch):
    monkeypatch.setitem(sys.modules, "opt_einsum", None)
    expression = nx.debug_expr(lambda *x: nx.einsum("ab,bc,cd,d->a", *x))(
        *(nx.template(shape, "f32") for shape in [(20, 30), (30, 40), (40, 50), (50,)])
    )
    # Products of a matrix and a vector, never of two matrices.
    assert "f32[20][40]" not in str(expression)
    assert "f32[30][50]" not in str(expression)


def test_einsum_with_jit_grad_and_vmap(compiler):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(3, 4)), rng.normal(size=(4, 4))

    def value(x, y):
        return nx.sum(nx.sin(nx.einsum("ij,jk,kk->i", x, y, y)))

    with nx.default_options(compiler=compiler):
        slopes = nx.jit(nx.grad(value, argnums=(0, 1)))(nx.tensor(x), nx.tensor(y))
        step = 1e-6
        for position, slope in enumerate(slopes):
            moved = [x.copy(), y.copy()]
            moved[position][1, 2] += step
            difference = (
                value(*map(nx.tensor, moved)) - value(nx.tensor(x), nx.tensor(y))
            ).item() / step
            assert slope[1, 2].item() == pytest.approx(difference, abs=1e-4)
        rows = nx.vmap(lambda row: nx.einsum("i,ij->j", row, nx.tensor(y)))(nx.tensor(x))
        np.testing.assert_allclose(rows, x @ y)


def test_dtypes_of_einsum():
    small = nx.tensor([[100, 100]], "u8")
    assert nx.einsum("ij->", small).dtype == nx.uint8
    assert nx.einsum("ij,ij", small, nx.tensor([[1.0, 2.0]], "f16")).dtype == nx.float16
    assert nx.einsum("ij,ij->i", [[1j, 2]], [[1, 2]]).tolist() == [4 + 1j]
    # Sums of booleans are numbers, of one factor as of two.
    mask = nx.tensor([[True, False], [True, True]])
    for subscripts, expected in (("ij->i", [1, 2]), ("ij->", 3), ("ii", 2), ("ij,ij->i", [1, 2])):
        factors = [mask] * (subscripts.partition("->")[0].count(",") + 1)
        total = nx.einsum(subscripts, *factors)
        assert (total.dtype, total.tolist()) == (nx.uint8, expected), subscripts
    assert nx.einsum("ij->ji", mask).dtype == nx.bool


@pytest.mark.parametrize(
    ("subscripts", "shapes", "message"),
    [
        ("ij,jk", [(2, 3)], "one term for each of 1 operands; got 2"),
        ("ij", [(2,)], "got 2 labels"),
        ("i", [(2, 3)], "got 1 labels"),
        ("ij,jk", [(2, 3), (4, 5)], "got 3 and 4 for 'j'"),
        ("i->ij", [(2,)], "must use labels of operands"),
        ("i->ii", [(2,)], "must be distinct in the result"),
        ("i.j", [(2, 3)], "must be letters and an ellipsis"),
        ("......i", [(2, 3)], "at most one ellipsis"),
        ("...i->i", [(2, 3)], "must have an ellipsis in the result"),
    ],
)
def test_invalid_subscripts_raise(subscripts, shapes, message):
    with pytest.raises(nx.ArgumentError, match=message):
        nx.einsum(subscripts, *map(nx.zeros, shapes))


def test_invalid_contraction_paths_raise():
    x = nx.ones((2, 2))
    for path in ([(0, 3)], [(0, 0)], [(1,), (5, 6)]):
        with pytest.raises(nx.ArgumentError, match="must be positions"):
            nx.einsum("ij,jk,kl", x, x, x, optimize=path)
    with pytest.raises(nx.ArgumentError, match="einsum"):
        nx.einsum("ij,jk,kl", x, x, x, optimize="nonsense")
    with pytest.raises(nx.ArgumentError, match="from 0 to 51"):
        nx.einsum(x, [0, 99])


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_kronecker(data):
    shapes = [tuple(data.draw(st.lists(st.integers(1, 3), max_size=3))) for _ in range(2)]
    x, y = (np.arange(np.prod(shape, dtype=int)).reshape(shape) for shape in shapes)
    np.testing.assert_array_equal(nx.kron(x, y), np.kron(x, y))


def test_rot90_swapaxes_and_cross(compiler):
    x = np.arange(24).reshape(2, 3, 4)
    with nx.default_options(compiler=compiler):
        for axes in [(0, 1), (2, 0), (-1, 1)]:
            for k in range(-2, 6):
                np.testing.assert_array_equal(nx.rot90(x, k, axes), np.rot90(x, k, axes))
            np.testing.assert_array_equal(nx.swapaxes(x, *axes), np.swapaxes(x, *axes))
    named = nx.tensor(x, names=["a", "b", "c"])
    assert nx.swapaxes(named, "a", 2).names == ["c", "b", "a"]
    with pytest.raises(nx.ShapeError):
        nx.rot90(x, 1, (0, 0))
    with pytest.raises(nx.ArgumentError, match="two"):
        nx.rot90(x, 1, (0, 1, 2))
    with pytest.raises(nx.ShapeError):
        nx.swapaxes(x, 0, 3)
    np.testing.assert_array_equal(
        nx.cross([1.0, 2.0, 3.0], [0.0, 1.0, 0.0]), np.cross([1, 2, 3], [0, 1, 0])
    )


def test_switch(compiler):
    branches = [lambda x: x + 1, lambda x: x * 10.0, lambda x: -x]
    with nx.default_options(compiler=compiler):
        for run in (nx.switch, nx.jit(lambda i, x: nx.switch(i, branches, x))):
            arguments = (branches,) if run is nx.switch else ()
            got = [run(i, *arguments, 4.0).item() for i in (-3, 0, 1, 2, 7)]
            assert got == [5.0, 5.0, 40.0, -4.0, -4.0]
        slope = nx.jit(nx.grad(lambda x, i: nx.switch(i, branches, x)))
        assert [slope(2.0, i).item() for i in range(3)] == [1.0, 10.0, -1.0]
        each = nx.vmap(lambda i: nx.switch(i, branches, 4.0))(nx.tensor([2, 0, 1]))
        assert each.tolist() == [-4.0, 5.0, 40.0]
        # A branch that an index outside of the trace excludes is not traced.
        constant_index = nx.jit(lambda x: nx.switch(1, [lambda x: 1 / 0, branches[1]], x))
        assert constant_index(4.0).item() == 40.0
    assert nx.switch(nx.tensor(1, "u8"), [lambda: {"a": 1}, lambda: {"a": 2}])["a"].item() == 2
    with pytest.raises(nx.ArgumentError, match="branches: must not be empty"):
        nx.switch(0, [])
    with pytest.raises(nx.DTypeError, match="integer"):
        nx.switch(0.5, branches, 1.0)
    with pytest.raises(nx.ShapeError, match="scalar"):
        nx.switch([0], branches, 1.0)


def test_switch_regions_receive_index_and_operands():
    # If they received all predicates, the size would be the square of the number of branches.
    branches = [lambda x, number=number: nx.sin(x * number) for number in range(2, 10)]
    expression = nx.debug_expr(lambda i, x: nx.switch(i, branches, x))(0, 1.0)
    (node,) = [node for node in expression.nodes if node.op == "cond"]
    assert [len(region.inputs) for region in node.regions] == [2] * len(node.regions)


def test_reverse_scan(compiler):
    def step(carry, x):
        return carry * 2 + x["a"], carry

    xs = {"a": nx.tensor([1.0, 2.0, 3.0, 4.0, 5.0])}
    with nx.default_options(compiler=compiler):
        for unroll in (False, True, 2):
            run = lambda xs, unroll=unroll: nx.scan(step, 1.0, xs, reverse=True, unroll=unroll)  # noqa: E731
            for carry, ys in (run(xs), nx.jit(run)(xs)):
                assert carry.item() == 161.0
                assert ys.tolist() == [80.0, 39.0, 18.0, 7.0, 1.0]
        slope = nx.grad(lambda xs: nx.scan(step, 1.0, xs, reverse=True)[0])(xs)["a"]
        assert slope.tolist() == [1.0, 2.0, 4.0, 8.0, 16.0]


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 20), st.booleans(), st.sampled_from([0, 1, -1]), st.booleans())
def test_associative_scan(count, reverse, axis, jitted):
    rng = np.random.default_rng(count)
    shape = (count, 2) if axis == 0 else (2, count)
    a, b = rng.uniform(0.5, 1.5, shape), rng.normal(size=shape)

    def step(p, q):
        return {"a": p["a"] * q["a"], "b": p["b"] * q["a"] + q["b"]}

    def run(a, b):
        return nx.associative_scan(step, {"a": a, "b": b}, reverse=reverse, axis=axis)

    got = (nx.jit(run) if jitted else run)(nx.tensor(a), nx.tensor(b))
    a, b = np.moveaxis(a, axis, 0), np.moveaxis(b, axis, 0)
    order = range(count)[:: -1 if reverse else 1]
    product, total = np.ones(2), np.zeros(2)
    for i in order:
        product, total = product * a[i], total * a[i] + b[i]
        np.testing.assert_allclose(np.moveaxis(np.asarray(got["a"]), axis, 0)[i], product)
        np.testing.assert_allclose(np.moveaxis(np.asarray(got["b"]), axis, 0)[i], total, atol=1e-12)


def test_associative_scan_rejects_invalid_arguments():
    x = nx.arange(3)
    with pytest.raises(nx.ArgumentError, match="same size"):
        nx.associative_scan(nx.add, (x, nx.arange(4)))
    with pytest.raises(nx.ArgumentError, match="same size"):
        nx.associative_scan(nx.add, ())
    with pytest.raises(nx.ShapeError, match="got 1"):
        nx.associative_scan(nx.add, x, axis=1)
    with pytest.raises(nx.ArgumentError, match="must have the structure"):
        nx.associative_scan(lambda p, q: (p, q), x)
    slope = nx.grad(lambda x: nx.sum(nx.associative_scan(nx.multiply, x)))(
        nx.tensor([2.0, 3.0, 4.0])
    )
    assert slope.tolist() == [16.0, 10.0, 6.0]
