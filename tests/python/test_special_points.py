"""Derivatives at points where a naive rule divides by zero or counts a value twice.

Expected values are closed forms, cofactors by NumPy, or central differences by NumPy.
"""

import functools
import itertools
import math
import time

import numpy as np
import pytest
import scipy.special

import backends
import nxla as nx

STEP = 1e-5


def f64(values):
    return nx.tensor(np.asarray(values, "f8"))


def difference(function, x):
    """Return the gradient of a NumPy function of an array by central differences."""
    gradient = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[index] = STEP
        gradient[index] = (function(x + step) - function(x - step)) / (2 * STEP)
    return gradient


def check_gradient(function, x, expected, compiler, rtol=1e-9, atol=1e-9):
    """Compare reverse mode and forward mode with a gradient."""
    modes = {"reverse": nx.grad(function), "forward": nx.jacfwd(function)}
    for mode, found in backends.run_all(modes, compiler, f64(x)).items():
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol, err_msg=mode)


# --- products ---


def product_without(x, *omitted):
    """Return the product of all elements except the ones at some positions."""
    return np.prod(np.delete(x, omitted))


def product_hessian(x):
    size = len(x)
    others = [
        [product_without(x, i, j) if i != j else 0.0 for j in range(size)] for i in range(size)
    ]
    return np.array(others)


PRODUCTS = {
    "prod": nx.prod,
    "prod_axis": lambda x: nx.sum(nx.prod(nx.reshape(x, (-1, 1)), axis=0)),
    "keepdims": lambda x: nx.sum(nx.prod(x, axis=0, keepdims=True)),
    "nanprod": nx.nanprod,
    "reduce": lambda x: nx.reduce(x, nx.tensor(1.0, dtype="f64"), lambda a, b: a * b),
    "cumulative_prod": lambda x: nx.cumulative_prod(x)[-1],
    "segment_prod": lambda x: nx.segment_prod(x, nx.zeros(x.shape, dtype="s32"), num_segments=1)[0],
    "at_multiply": lambda x: (
        nx.ones(1, dtype="f64").at[nx.zeros(x.shape, dtype="s32")].multiply(x)[0]
    ),
    "window_product": lambda x: nx.window_product(x, x.shape)[0],
}

POINTS = [
    [0.0, 3.0, 5.0],
    [2.0, 0.0, 0.0],
    [0.0, 0.0, 0.0],
    [1.5, -2.0, 0.0, 4.0, 3.0],
    [2.0, 0.0, 0.0, 0.0, 5.0, 7.0, -1.0],
    [0.0],
]


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_with_zeros(name, compiler):
    product = PRODUCTS[name]
    for point in POINTS if compiler == "evaluator" else POINTS[1:2]:
        x = np.array(point)
        gradient = [product_without(x, index) for index in range(len(x))]
        check_gradient(product, x, gradient, compiler)
        modes = [(nx.jacfwd, nx.jacrev)]
        if compiler == "evaluator":
            modes += [(nx.jacrev, nx.jacfwd), (nx.jacfwd, nx.jacfwd), (nx.jacrev, nx.jacrev)]
        for outer, inner in modes:
            hessian = nx.jit(outer(inner(product)), compiler=compiler)(f64(x))
            np.testing.assert_allclose(np.asarray(hessian), product_hessian(x), atol=1e-12)


def test_third_derivative_of_a_product():
    x = np.array([0.0, 0.0, 0.0, 7.0])
    third = np.asarray(nx.jacfwd(nx.jacrev(nx.grad(nx.prod)))(f64(x)))
    for i, j, k in np.ndindex(third.shape):
        expected = product_without(x, i, j, k) if len({i, j, k}) == 3 else 0.0
        assert third[i, j, k] == expected


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64", "c64"])
def test_products_along_axes_with_zeros(dtype):
    """Each row has a different number of zeros; the axes are reduced separately and together."""
    x = np.array([[[1, 2, 3], [4, 0, 5]], [[0, 0, 2], [1, 1, 0]]], "f4")
    for axis in (0, 1, 2, (0, 2), None):
        axes = tuple(range(3)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
        expected = np.zeros_like(x)
        for index in np.ndindex(x.shape):
            others = x.copy()
            others[index] = 1
            row = tuple(slice(None) if i in axes else index[i] for i in range(3))
            expected[index] = np.prod(others[row])

        def total(x, axis=axis):
            return nx.sum(nx.real(nx.prod(x, axis=axis)))

        found = nx.astype(nx.real(nx.grad(total)(nx.tensor(x).astype(dtype))), "f32")
        np.testing.assert_array_equal(np.asarray(found), expected)


# --- determinants ---


def cofactors(a):
    rows = range(len(a))

    def minor(i, j):
        return np.linalg.det(np.delete(np.delete(a, i, 0), j, 1))

    return np.array([[(-1) ** (i + j) * minor(i, j) for j in rows] for i in rows])


def matrix_of_rank(side, rank, seed=0):
    random = np.random.default_rng(seed)
    return random.normal(size=(side, rank)) @ random.normal(size=(rank, side))


@pytest.mark.parametrize("side", [2, 3, 4, 5, 8])
def test_gradients_of_determinants_of_every_rank(side, compiler):
    gradient = nx.jit(nx.grad(nx.linalg.det), compiler=compiler)
    for rank in range(side, -1, -1):
        a = matrix_of_rank(side, rank)
        scale = max(1.0, np.abs(a).max()) ** (side - 1)
        found = np.asarray(gradient(f64(a)))
        np.testing.assert_allclose(found, cofactors(a), rtol=1e-8, atol=1e-11 * scale)


def test_forward_mode_of_singular_determinants():
    for a in (
        np.diag([2.0, 3.0, 5.0, 0.0]),
        np.diag(np.ones(4), 1),
        matrix_of_rank(5, 4),
        matrix_of_rank(5, 3),
    ):
        check_gradient(nx.linalg.det, a, cofactors(a), "evaluator", atol=1e-10)


@pytest.mark.parametrize("rank", [4, 3, 2, 1])
def test_second_derivatives_of_singular_determinants(rank):
    a = np.random.default_rng(1).integers(-3, 4, (4, rank)) @ np.eye(4)[:rank] * 1.0
    expected = np.stack([
        difference(lambda b, index=index: cofactors(b)[index], a) for index in np.ndindex(a.shape)
    ]).reshape(4, 4, 4, 4)  # fmt: skip
    for hessian in (nx.hessian(nx.linalg.det), nx.jacrev(nx.jacrev(nx.linalg.det))):
        np.testing.assert_allclose(np.asarray(hessian(f64(a))), expected, atol=1e-6)


def test_singular_entries_of_a_batch(compiler):
    """Regular matrices of a batch have the gradient of `inv`; only singular ones differ."""
    batch = np.stack(
        [
            np.diag([2.0, 3.0, 5.0, 0.0]),
            np.eye(4)[[1, 0, 2, 3]],
            matrix_of_rank(4, 4),
            0 * np.eye(4),
        ]
    )
    expected = np.stack([cofactors(a) for a in batch])
    both = {
        "batch": nx.grad(lambda a: nx.sum(nx.linalg.det(a))),
        "vmap": nx.vmap(nx.grad(nx.linalg.det)),
    }
    for gradient in both.values():
        found = np.asarray(nx.jit(gradient, compiler=compiler)(f64(batch)))
        np.testing.assert_allclose(found, expected, atol=1e-10)


def test_slogdet_in_a_batch_with_a_singular_matrix(compiler):
    regular = [np.eye(4)[[1, 0, 2, 3]], matrix_of_rank(4, 4)]
    batch = np.stack([regular[0], np.diag([2.0, 3.0, 5.0, 0.0]), regular[1]])
    found = nx.jit(nx.grad(lambda a: nx.sum(nx.linalg.slogdet(a)[1])), compiler=compiler)(
        f64(batch)
    )
    for index, a in ((0, regular[0]), (2, regular[1])):
        np.testing.assert_allclose(np.asarray(found)[index], np.linalg.inv(a).T, atol=1e-10)


def test_narrow_complex_and_tiny_determinants():
    a = np.diag([2.0, 3.0, 5.0, 0.0])
    f32 = np.asarray(nx.grad(nx.linalg.det)(nx.tensor(a.astype("f4"))))
    np.testing.assert_allclose(f32, cofactors(a), atol=1e-4)
    complex_ = nx.grad(lambda a: nx.real(nx.linalg.det(a)))(nx.tensor(a * (1 + 1j)))
    expected = np.diag([0, 0, 0, 30 * (1 + 1j) ** 3])
    np.testing.assert_allclose(np.abs(np.asarray(complex_)), np.abs(expected), atol=1e-12)
    # The determinant underflows; its cofactors do not.
    tiny = nx.grad(nx.linalg.det)(nx.tensor((np.eye(4) * 1e-12).astype("f4")))
    np.testing.assert_allclose(np.asarray(tiny), np.eye(4) * 1e-36, rtol=1e-5, atol=1e-42)


# --- writes ---


def last_write(shape, positions, updates):
    """Return the array that NumPy stores; the last of several writes to an element remains."""
    x = np.zeros(shape)
    x[positions] = updates
    return x


@pytest.mark.parametrize(
    ("shape", "positions"),
    [
        ((2,), np.array([1, 1])),
        ((4,), np.array([3, 0, 3, 3, 1])),
        ((3, 2), np.array([1, 1, 0])),
        ((3, 4), (np.array([0, 0, 2]), np.array([1, 1, 3]))),
        ((5,), np.array([[0, 1], [1, 0]])),
        ((2, 3), (slice(None), np.array([2, 0, 2]))),
    ],
)
def test_only_the_last_write_has_a_gradient(shape, positions, compiler):
    updates = np.arange(1.0, 1 + np.zeros(shape)[positions].size).reshape(
        np.zeros(shape)[positions].shape
    )
    weights = np.random.default_rng(0).normal(size=shape)
    indices = (
        tuple(nx.tensor(p) if isinstance(p, np.ndarray) else p for p in positions)
        if isinstance(positions, tuple)
        else nx.tensor(positions)
    )

    def write(updates):
        return nx.sum(nx.zeros(shape, dtype="f64").at[indices].set(updates) * weights)

    expected = difference(lambda u: np.sum(last_write(shape, positions, u) * weights), updates)
    check_gradient(write, updates, expected, compiler)
    batched = nx.jit(nx.vmap(nx.grad(write)), compiler=compiler)(f64([updates, updates]))
    np.testing.assert_allclose(np.asarray(batched), [expected, expected], atol=1e-9)


def test_clamped_writes_to_one_element(compiler):
    """Indices out of range are clamped to the last element, so that writes collide there."""
    positions = nx.tensor(np.array([7, 2, 9], "i4"))

    def write(updates):
        written = nx.indexed_put(
            nx.zeros(3, dtype="f64"), nx.clip(positions, 0, 2)[:, None], updates
        )
        return nx.sum(written * f64([2.0, 3.0, 5.0]))

    check_gradient(write, np.ones(3), [0.0, 0.0, 5.0], compiler)


# --- control flow with vectorized axes ---


def branches(w, x):
    return nx.cond(x > 0, lambda: w * nx.log(x), lambda: w / (x - 1))


def switched(w, x):
    choices = [lambda x: w * nx.log(x), lambda x: w / (x - 4), lambda x: w * nx.sqrt(x - 4)]
    return nx.switch(nx.astype(x, "s32") // 4, choices, x)


def nested(w, x):
    def inner():
        return nx.cond(x > 1, lambda: w * nx.log(x - 1), lambda: w / x)

    return nx.cond(x > 0, inner, lambda: w * x)


def while_loop(w, x):
    """The body is undefined at the end of the loop, and some entries run no iteration."""

    def step(state):
        return (state[0] + w * nx.sqrt(4 - state[1]), state[1] + 1.0)

    return nx.while_loop(lambda state: state[1] < 4, step, (x * 1.0, x))[0]


def checkpointed(w, x):
    return nx.checkpoint(branches)(w, x)


def loop_of_branches(w, x):
    return nx.fori(0, 3, lambda i, total: total + branches(w, x) * (i + 1), x * 0)


def gradient_in_branch(w, x):
    def inner():
        return nx.grad(lambda y: w * w * nx.log(y) * nx.log(x))(x)

    return nx.cond(x > 0, inner, lambda: w * x)


def entry_counts(w, x):
    """Entries take different numbers of iterations, beyond which the body is not defined."""
    count = nx.astype(x, "s32")

    def root(i, total):
        return total + w * nx.sqrt(nx.astype(count - i, "f64"))

    return nx.fori(0, count, root, x * 0)


def transformed(w, x):
    """Apply transformations inside a branch."""

    def inside():
        rows = nx.vmap(lambda y: w * nx.log(y))(nx.stack([x, x]))
        scanned = nx.scan(lambda c, k: (c + k * w * nx.log(x), c), w * 0, f64([1.0, 2.0]))[0]
        tangent = nx.jvp(lambda y: w * nx.log(y), (x,), (1 / x,))[1]
        return nx.sum(rows) + scanned + tangent + w * nx.log(nx.stop_grad(x))

    return nx.cond(x > 0, inside, lambda: w * x)


FLOWS = {
    "cond": (branches, [0.0, 1.0, 2.0, -3.0]),
    "all_alike": (branches, [0.0, -1.0, -2.0]),
    "switch": (switched, [1.0, 4.5, 9.0, 5.0]),
    "nested": (nested, [0.0, 0.5, 1.0, 2.5]),
    "while": (while_loop, [0.0, 2.5, 4.0, 9.0]),
    "no_iterations": (while_loop, [4.0, 9.0]),
    "checkpoint": (checkpointed, [0.0, 1.0, 2.0, -3.0]),
    "fori": (loop_of_branches, [0.0, 2.0]),
    "entry_counts": (entry_counts, [0.0, 2.0, 3.0]),
    "transformed": (transformed, [0.0, 1.0, 2.0]),
    "grad": (gradient_in_branch, [0.0, 1.0, 2.0]),
}


#: The first argument of each function of control flow.
W = 2.0


@functools.cache
def separate_derivatives(name):
    """Return the derivatives by `w`, by `x` and twice by `w` for each entry."""
    function, xs = FLOWS[name]
    derivatives = nx.jit(
        lambda w, x: (
            nx.grad(function)(w, x),
            nx.grad(function, argnums=1)(w, x),
            nx.hessian(function)(w, x),
        )
    )
    results = [derivatives(f64(W), f64(x)) for x in xs]
    return [np.array([each.item() for each in column]) for column in zip(*results, strict=True)]


@pytest.mark.parametrize("name", FLOWS)
def test_untaken_branches_do_not_affect_derivatives(name, compiler):
    """Derivatives of all entries are the sum, or the row, of derivatives of single entries."""
    function, xs = FLOWS[name]

    def total(w, xs):
        return nx.sum(nx.vmap(function, in_axes=(None, 0))(w, xs))

    by_w, by_x, twice = separate_derivatives(name)
    derivatives = {
        "reverse by w": (nx.grad(total), by_w.sum()),
        "forward by w": (nx.jacfwd(total), by_w.sum()),
        "reverse by x": (nx.grad(total, argnums=1), by_x),
        "forward by x": (nx.jacfwd(total, argnums=1), by_x),
        "by each x": (nx.vmap(nx.grad(function, argnums=1), in_axes=(None, 0)), by_x),
        "twice by w": (nx.hessian(total), twice.sum()),
    }
    functions = {label: derivative for label, (derivative, _) in derivatives.items()}
    found = backends.run_all(functions, compiler, f64(W), f64(xs))
    for label, (_, expected) in derivatives.items():
        slack = 1e-12 if label == "twice by w" else 0
        np.testing.assert_allclose(found[label], expected, 1e-12, slack, err_msg=label)


def test_untaken_branches_over_two_mapped_axes(compiler):
    """The predicate depends on two mapped axes, each operand on one."""

    def distance(x, y):
        return nx.cond(nx.equal(x, y), lambda: x * 0, lambda: nx.sqrt(nx.abs(x - y)))

    def total(xs):
        rows = nx.vmap(lambda x: nx.vmap(lambda y: distance(x, y))(xs))
        return nx.sum(rows(xs))

    xs = np.array([0.0, 1.0, 4.0])

    def smooth(xs):
        return np.sum(np.sqrt(np.abs(xs[:, None] - xs)))

    check_gradient(total, xs, difference(smooth, xs), compiler, rtol=1e-8)


def test_vectorized_axes_with_branches(compiler):
    def total(w, xs):
        rows = nx.vectorize(xs, "rows")
        selected = nx.cond(rows > 0, lambda: w * nx.log(rows), lambda: w * rows)
        return nx.sum(nx.devectorize(selected))

    found = nx.jit(nx.grad(total), compiler=compiler)(f64(2.0), f64([0.0, 1.0, 2.0]))
    np.testing.assert_allclose(found.item(), np.log(2.0))


def test_branches_in_a_fold(compiler):
    """The function of a fold is batched as a program, after it was traced for scalars."""

    def logarithms(w, xs):
        def step(x, total):
            return nx.cond(x > 0, lambda: total + w * nx.log(x), lambda: total)

        return nx.sum(nx.reduce(xs, f64(0.0), step, axis=0))

    def roots(w, xs):
        def step(state):
            return (state[0] + w * nx.sqrt(4 - state[1]), state[1] + 1.0)

        def loop(x):
            return nx.while_loop(lambda state: state[1] < 4, step, (x * 0, x))[0]

        return nx.sum(nx.reduce(xs, f64(0.0), lambda x, total: total + loop(x), axis=0))

    xs = np.array([[0.0, 1.0], [2.0, 0.0], [3.0, 4.0]])
    sums = {
        logarithms: np.log(xs[xs > 0]).sum(),
        roots: sum(np.sqrt(4 - count) for x in xs.ravel() for count in np.arange(x, 4)),
    }
    for function, expected in sums.items():
        found = nx.jit(nx.grad(function), compiler=compiler)(f64(2.0), f64(xs))
        np.testing.assert_allclose(found.item(), expected)


def test_branches_with_captured_data():
    rows = nx.vectorize(f64([0.0, 1.0, 2.0]), "rows")

    def total(w):
        selected = nx.cond(rows > 0, lambda: w * nx.log(rows), lambda: w * rows)
        return nx.sum(nx.devectorize(selected))

    np.testing.assert_allclose(nx.grad(total)(f64(2.0)).item(), np.log(2.0))


def test_values_of_vectorized_branches():
    """A branch that uses a value of all entries and values of each entry."""
    xs = np.array([0.0, 1.0, 2.0])

    def function(xs):
        rows = nx.vectorize(xs, "rows")

        def combine():
            return nx.sum(nx.devectorize(rows)) + rows

        return nx.devectorize(nx.cond(rows > 0, combine, lambda: rows - 1))

    np.testing.assert_array_equal(np.asarray(nx.jit(function)(f64(xs))), [-1.0, 4.0, 5.0])


# --- ties ---


def test_ties_share_a_gradient_in_both_modes(compiler):
    """The derivative at a tie is the mean over the elements that are equal, in both modes."""
    x = np.array([1.0, 3.0, 3.0, 0.0])
    for function, expected in (
        (nx.max, [0, 0.5, 0.5, 0]),
        (nx.min, [0, 0, 0, 1]),
        (lambda x: nx.maximum(x, 3.0)[1], [0, 0.5, 0, 0]),
    ):
        check_gradient(function, x, expected, compiler)


@pytest.mark.parametrize("function", [nx.max, nx.min, nx.logsumexp], ids=["max", "min", "lse"])
def test_empty_reductions_have_zero_derivatives(function, compiler):
    empty = nx.zeros((0, 3))
    reduce = lambda x: function(x, axis=0)  # noqa: E731
    forward = nx.jit(lambda x: nx.jvp(reduce, (x,), (x,))[1], compiler=compiler)
    assert forward(empty).tolist() == [0.0, 0.0, 0.0]
    assert nx.jit(nx.jacfwd(reduce), compiler=compiler)(empty).shape == (3, 0, 3)


# --- smooth functions of values that are equal, zero or at a limit ---


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def bce(x, label):
    return -label * np.log(sigmoid(x)) - (1 - label) * np.log(sigmoid(-x))


#: A function of two numbers, NumPy's function, and points where an implementation changes branches.
SMOOTH = {
    "logaddexp": (nx.logaddexp, np.logaddexp, [(0, 0), (1, 1), (-2, -2), (1, 3), (3, 1)]),
    "hypot": (nx.hypot, np.hypot, [(1, 1), (-1, 1), (2, -2), (3, 4), (0, 2), (-2, 0)]),
    "squareplus": (
        lambda x, y: nx.nn.squareplus(x) * y, lambda x, y: (x + np.sqrt(x * x + 4)) / 2 * y,
        [(2, 1), (-2, 1), (0, 1)],
    ),
    "pow": (nx.pow, np.power, [(2, 0), (2, 1), (3, 2), (0.5, -1)]),
    "cross entropy": (
        nx.nn.sigmoid_binary_cross_entropy, bce, [(0, 0), (1, 0), (1, 1), (-2, 1), (0, 0.5)],
    ),
    "lgamma": (
        lambda x, y: nx.lgamma(x) * y, lambda x, y: np.vectorize(math.lgamma)(x) * y,
        [(0.5, 1), (-0.5, 1), (-1.5, 2), (2, 1), (1, 1)],
    ),
    "sparse_plus": (
        lambda x, y: nx.nn.sparse_plus(x) * y,
        lambda x, y: np.where(x < 1, np.maximum(x + 1, 0) ** 2 / 4, x) * y, [(0, 1)],
    ),
    "multiply": (nx.multiply, np.multiply, [(0, 0), (0, 2)]),
}  # fmt: skip


@pytest.mark.parametrize("name", SMOOTH)
def test_smooth_functions_have_all_derivatives(name, compiler):
    """Gradients and Hessians, in all modes and under vmap, against central differences."""
    ours, theirs, points = SMOOTH[name]

    def function(point):
        return ours(point[0], point[1])

    for point in np.array(points, "f8"):
        gradient = difference(lambda p: theirs(p[0], p[1]), point)
        check_gradient(function, point, gradient, compiler, rtol=1e-6, atol=1e-6)
    steps = np.eye(2) * 1e-3
    hessians = {
        f"{outer.__name__} of {inner.__name__}": nx.vmap(outer(inner(function)))
        for outer, inner in [
            (nx.jacfwd, nx.jacrev), (nx.jacrev, nx.jacrev), (nx.jacfwd, nx.jacfwd),
        ]
    }  # fmt: skip
    for modes, of_points in backends.run_all(hessians, compiler, f64(points)).items():
        for point, found in zip(points, np.asarray(of_points), strict=True):
            mixed = [
                [
                    sum(
                        a * b * theirs(*(np.array(point) + a * first_step + b * second_step))
                        for a in (1, -1)
                        for b in (1, -1)
                    )
                    / 4e-6
                    for second_step in steps
                ]
                for first_step in steps
            ]
            label = f"{modes} at {point}"
            np.testing.assert_allclose(found, mixed, rtol=1e-4, atol=1e-4, err_msg=label)


def test_second_derivatives_of_digamma_at_half_integers(compiler):
    """The derivatives of the reflection of the gamma function, which tangents made infinite."""
    third = nx.jit(nx.grad(nx.grad(nx.digamma)), compiler=compiler)
    x = np.array([-0.5, -1.5, -2.5, 0.5])
    found = [third(f64(each)).item() for each in x]
    # The polygamma function of order 2: -2 times the sum of the inverse cubes of x + k.
    k = np.arange(200_000)
    expected = [-2 * np.sum(1 / (each + k) ** 3) for each in x]
    np.testing.assert_allclose(found, expected, rtol=1e-8)


@pytest.mark.parametrize(("dtype", "rtol"), [("f32", 1e-6), ("f64", 1e-14)])
def test_digamma_is_accurate_near_its_root(dtype, rtol, compiler):
    offsets = np.concatenate([np.logspace(-9, -1, 60), [0.0]])
    x = nx.tensor(1.4616321449683623 + np.concatenate([offsets, -offsets]), dtype)
    found = nx.jit(nx.digamma, compiler=compiler)(x)
    expected = scipy.special.digamma(np.asarray(x, "f8"))
    np.testing.assert_allclose(found, expected, rtol=rtol)
    assert (np.sign(found) == np.sign(expected)).all()
    # The derivative is the trigamma function.
    slopes = nx.jit(nx.vmap(nx.grad(nx.digamma)), compiler=compiler)(x)
    expected = scipy.special.polygamma(1, np.asarray(x, "f8"))
    np.testing.assert_allclose(slopes, expected, rtol=10 * rtol)


def test_digamma_has_derivatives_at_its_poles_and_at_infinity(compiler):
    x = f64([0.0, -0.0, np.inf, -1.0, -np.inf])
    for derivative in (nx.grad, nx.jacfwd):
        slopes = nx.jit(nx.vmap(derivative(nx.digamma)), compiler=compiler)(x)
        np.testing.assert_array_equal(np.asarray(slopes), [np.inf, np.inf, 0.0, np.nan, np.nan])


def test_derivatives_at_piecewise_boundaries(compiler):
    check_gradient(nx.nn.sparse_plus, 1.0, 1.0, compiler)
    check_gradient(nx.nn.sparse_plus, -1.0, 0.0, compiler)
    for derivative in (nx.grad, nx.jacfwd):
        at_zero = nx.jit(derivative(lambda p: nx.hypot(p[0], p[1])), compiler=compiler)
        assert at_zero(f64([0.0, 0.0])).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("order", [0.5, -1])
def test_norms_of_orders_below_one_have_no_derivative_at_zero(order, compiler):
    norm = lambda x: nx.linalg.vector_norm(x, ord=order)  # noqa: E731
    assert nx.jit(norm, compiler=compiler)(f64([0.0, 0.0])).item() == 0.0
    for derivative in (nx.grad, nx.jacfwd):
        slopes = nx.jit(derivative(norm), compiler=compiler)(f64([0.0, 0.0]))
        assert np.isnan(np.asarray(slopes)).all()


def test_std_of_equal_elements_has_nan_gradient(compiler):
    """The root of the variance is smooth only where a number is added to the variance."""
    x = f64([2.0, 2.0, 2.0])
    assert np.isnan(np.asarray(nx.jit(nx.grad(nx.std), compiler=compiler)(x))).all()
    smooth = nx.jit(nx.grad(lambda x: nx.sqrt(nx.var(x) + 1e-12)), compiler=compiler)
    assert smooth(x).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("function", [nx.remainder, nx.fmod])
def test_remainders_are_differentiated_at_multiples(function, compiler):
    """The slope is 1 for ``x`` and ``-n`` for ``y``, also where the remainder is zero."""
    x, y = f64([-6.0, -2.0, 0.0, 2.0, 6.0, 7.0]), f64([2.0, -2.0, 2.0, -2.0, 3.0, 2.0])
    for derivative in (nx.grad, nx.jacfwd):
        rule = derivative(function, argnums=(0, 1))
        dx, dy = nx.jit(nx.vmap(rule), compiler=compiler)(x, y)
        assert dx.tolist() == [1.0] * 6
        np.testing.assert_array_equal(np.asarray(dy), [3.0, -1.0, 0.0, 1.0, -2.0, -3.0])
    # A zero has the sign of the divisor in `%` and of the dividend in `fmod`.
    signs = np.copysign(1, y if function is nx.remainder else x)[:5]
    zeros = np.asarray(nx.jit(function, compiler=compiler)(x, y))[:5]
    np.testing.assert_array_equal(np.copysign(1, zeros), signs)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_second_derivatives_of_angles_at_tiny_points(mode, compiler):
    """Each term of the mixed derivatives overflows in ``float32``."""
    angle = lambda p: nx.atan2(p[0], p[1])  # noqa: E731
    outer = nx.jacfwd if mode == "forward" else nx.jacrev
    hessian = nx.jit(outer(nx.grad(angle)), compiler=compiler)
    inf = math.inf
    for point, expected in {
        (1e-20, 1e-20): [[-inf, 0.0], [0.0, inf]],
        (1e-25, 2e-25): [[-inf, -inf], [-inf, inf]],
        (1e-25, 0.0): [[0.0, inf], [inf, 0.0]],
        (0.0, 1e-25): [[0.0, -inf], [-inf, 0.0]],
    }.items():
        found = np.asarray(hessian(nx.tensor(point)))
        np.testing.assert_array_equal(found, expected)


# --- infinities of other elements ---


def test_a_segment_product_ignores_other_segments_in_its_gradient(compiler):
    x = nx.tensor([1e15, 1e15, 1e15, 0.5, 0.25])
    second = lambda x: nx.segment_prod(x, [0, 0, 0, 1, 1], num_segments=2)[1]  # noqa: E731
    for derivative in (nx.grad, nx.jacfwd):
        slopes = nx.jit(derivative(second), compiler=compiler)(x)
        assert slopes.tolist() == [0.0, 0.0, 0.0, 0.25, 0.5]


@pytest.mark.parametrize("update", ["multiply", "divide", "power", "max", "min"])
def test_scattered_updates_ignore_other_elements_in_their_gradients(update, compiler):
    """The derivative of each update is the derivative of the update alone, for every order."""

    def total(x, positions):
        return nx.sum(getattr(nx.full(4, 2.0).at[positions], update)(x))

    for numbers in itertools.permutations([float("inf"), 1.0, 2.0, 3.0]):
        slopes = nx.jit(nx.grad(total), compiler=compiler)(nx.tensor(numbers), nx.arange(4))
        alone = [nx.grad(total)(nx.tensor([x]), nx.tensor([at])) for at, x in enumerate(numbers)]
        np.testing.assert_array_equal(np.asarray(slopes), np.concatenate(alone))


def test_factors_of_an_infinity_have_infinite_gradients(compiler):
    """Only the last of the partial products is written."""
    product = lambda x: nx.full(2, float("inf")).at[[0, 0]].multiply(x)[0]  # noqa: E731
    slopes = nx.jit(nx.grad(product), compiler=compiler)(nx.tensor([2.0, 3.0]))
    assert slopes.tolist() == [float("inf"), float("inf")]


# --- compile time ---


@pytest.mark.parametrize("method", ["multiply", "divide", "power", "segment_prod"])
def test_compile_time_does_not_grow_with_the_size(method):
    """Derivatives of scatters are loops: unrolled, they took XLA minutes at this size."""

    def total(updates, positions):
        if method == "segment_prod":
            return nx.sum(nx.segment_prod(updates, positions, num_segments=len(updates)))
        return nx.sum(getattr(nx.ones(updates.shape).at[positions], method)(updates))

    updates, positions = nx.ones(200_000), nx.zeros(200_000, dtype="s32")
    start = time.perf_counter()
    gradient = nx.jit(nx.grad(total), compiler="xla")(updates, positions)
    assert np.isfinite(np.asarray(gradient)).all()
    assert time.perf_counter() - start < 10
