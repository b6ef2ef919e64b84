"""Tie-breaking of functions that choose among equal elements, on every compiler."""

import functools
import itertools
from pathlib import Path

import numpy as np
import pytest

import nxla as nx

SEEDS = range(3)
DTYPES = ["u8", "s32", "s64", "u64", "f32", "f16", "f64"]


def repeated_numbers(seed, shape, dtype="f32", count=3):
    """Return random numbers with few distinct values, so that most of them are repeated."""
    numbers = np.random.default_rng(seed).integers(0, count, shape)
    return np.asarray(nx.tensor(numbers, dtype=dtype))


def run(compiler, function, *arguments):
    results = nx.jit(function, compiler=compiler)(*arguments)
    leaves = [np.asarray(leaf) for leaf in nx.tree.leaves(results)]
    return leaves if len(leaves) > 1 else leaves[0]


def windows(shape, size, strides, padding, dilations):
    """Return for each window the indices that it covers, in row-major order."""
    counts = [
        (n + low + high - (k - 1) * gap - 1) // step + 1
        for n, k, step, (low, high), gap in zip(
            shape, size, strides, padding, dilations, strict=True
        )
    ]
    for window in np.ndindex(*counts):
        positions = []
        for tap in np.ndindex(*size):
            position = tuple(
                index * step + t * gap - low
                for index, step, t, gap, (low, _) in zip(
                    window, strides, tap, dilations, padding, strict=True
                )
            )
            if all(0 <= p < n for p, n in zip(position, shape, strict=True)):
                positions.append(position)
        yield window, positions


def selected_position(x, positions, is_max):
    """Return the last of the extreme elements: an element stays if the next one is less extreme."""
    best = None
    for position in positions:
        stays = best is not None and (x[best] > x[position] if is_max else x[best] < x[position])
        best = best if stays else position
    return best


CASES = [
    ((5, 6), (2, 2), (1, 1), ((0, 0), (0, 0))),
    ((5, 6), (2, 2), (1, 1), ((0, 1), (0, 1))),
    ((5, 6), (2, 2), (2, 2), ((0, 0), (0, 0))),
    ((5, 6), (3, 2), (1, 2), ((1, 1), (2, 1))),
    ((5, 6), (2, 3), (3, 3), ((1, 1), (0, 0))),
    ((7,), (4,), (1,), ((3, 3),)),
    ((7,), (1,), (2,), ((2, 2),)),
    ((3, 4, 5), (2, 2, 2), (1, 2, 1), ((1, 0), (0, 1), (1, 1))),
    # Rows of more than eight windows, in the tensor and in the padding.
    ((4, 30), (2, 2), (2, 2), ((0, 0), (0, 0))),
    ((3, 4, 27), (1, 2, 3), (1, 2, 2), ((0, 0), (2, 2), (1, 1))),
    ((2, 40), (2, 4), (1, 3), ((1, 1), (2, 5))),
    ((2, 3, 20), (1, 2, 1), (1, 1, 1), ((0, 0), (0, 1), (0, 0))),
]


@functools.cache
def scatter_case(case, seed, is_max):
    """Return the source of a scatter, the weights of its elements, the result and the gradient."""
    shape, size, strides, padding = case
    x = repeated_numbers(seed, shape)
    covered = list(windows(shape, size, strides, padding, (1,) * len(shape)))
    counts = tuple(n + 1 for n in covered[-1][0])
    source = np.random.default_rng(seed).integers(0, 9, counts).astype(np.float32)
    weights = np.arange(x.size, dtype=np.float32).reshape(shape)
    expected, picked = np.full(shape, 2, np.float32), np.zeros(counts, np.float32)
    for window, positions in covered:
        best = selected_position(x, positions, is_max)
        if best is not None:
            expected[best] += source[window]
            picked[window] = weights[best]
    return source, weights, expected, picked


# XLA takes long to compile a scatter, and the dtype changes only its comparison.
@pytest.mark.parametrize(
    ("compiler", "case", "dtype"),
    [
        *itertools.product(["evaluator"], CASES, DTYPES),
        *(("xla", case, "f32") for case in CASES),
        *(("xla", CASES[3], dtype) for dtype in DTYPES if dtype != "f32"),
    ],
)
def test_window_scatter_selects_the_last_extremum(compiler, case, dtype):
    shape, size, strides, padding = case
    ops = {True: nx.window_scatter_max, False: nx.window_scatter_min}

    # One program for all seeds, because XLA takes long to compile each scatter.
    def scatter_all(x, source, weights, xs, sources):
        def results(op):
            def scatter(x, source):
                return op(x, source, 2.0, size, strides=strides, padding=padding)

            gradient = nx.grad(lambda source: nx.sum(scatter(x, source) * weights))(source)
            return scatter(x, source), gradient, nx.vmap(scatter)(xs, sources)

        return [results(op) for op in ops.values()]

    compiled = nx.jit(scatter_all, compiler=compiler)
    batch = np.stack([repeated_numbers(seed, shape, dtype) for seed in SEEDS])
    sources = np.stack([scatter_case(case, seed, True)[0] for seed in SEEDS])
    for seed in SEEDS:
        weights = scatter_case(case, seed, True)[1]
        found = compiled(batch[seed], sources[seed], weights, batch, sources)
        for is_max, (result, gradient, both) in zip(ops, found, strict=True):
            label = f"{ops[is_max].__name__}, seed {seed}"
            _, _, expected, picked = scatter_case(case, seed, is_max)
            np.testing.assert_array_equal(result, expected, err_msg=label)
            # The derivative belongs to the same element.
            np.testing.assert_array_equal(gradient, picked, err_msg=f"gradient of {label}")
            rows = np.stack([scatter_case(case, row, is_max)[2] for row in SEEDS])
            np.testing.assert_array_equal(both, rows, err_msg=f"vmap of {label}")


@pytest.mark.parametrize("big", [2**53, 2**62])
def test_large_integers_are_compared_exactly(compiler, big):
    x = np.array([big + 1, big, big + 1, big], np.int64)
    result = run(
        compiler,
        lambda x, s: nx.window_scatter_max(x, s, 0.0, (2,)),
        nx.tensor(x, dtype="s64"),
        np.float32([1, 2, 4]),
    )
    np.testing.assert_array_equal(result, [1, 0, 6, 0])


def test_window_scatter_with_nan(compiler):
    x = np.tile(np.float32([3, np.nan, 1, 1, np.nan]), 7)
    for step in (1, 2, 3):
        covered = list(windows(x.shape, (3,), (step,), [(1, 1)], (1,)))
        source = np.arange(1, len(covered) + 1, dtype=np.float32)
        expected = np.zeros_like(x)
        for window, positions in covered:
            expected[selected_position(x, positions, True)] += source[window]
        result = run(
            compiler,
            lambda x, s, step=step: nx.window_scatter_max(
                x, s, 0.0, (3,), strides=(step,), padding=[(1, 1)]
            ),
            x,
            source,
        )
        np.testing.assert_array_equal(result, expected)


def test_backends_agree_on_overlapping_windows():
    x = np.random.default_rng(0).integers(0, 10, (300, 300)).astype(np.int32)
    source = np.random.default_rng(1).integers(-9, 9, (300, 300)).astype(np.int32)
    for op in (nx.window_scatter_max, nx.window_scatter_min):
        evaluator, xla = (
            run(each, lambda x, s, op=op: op(x, s, 0, (2, 2), padding="same"), x, source)
            for each in ("evaluator", "xla")
        )
        np.testing.assert_array_equal(evaluator, xla)


@pytest.mark.parametrize("dtype", DTYPES)
def test_pool_gradients_go_to_the_last_extremum(compiler, dtype):
    if not dtype.startswith("f"):
        pytest.skip("integers have no gradients")
    x = repeated_numbers(1, (6, 7), dtype)
    for op, is_max in ((nx.window_max, True), (nx.window_min, False)):
        expected = np.zeros(x.shape)
        for _, positions in windows(x.shape, (3, 2), (1, 2), [(1, 1), (0, 1)], (1, 1)):
            expected[selected_position(x, positions, is_max)] += 1

        def pooled(x, op=op):
            return nx.sum(op(x, (3, 2), strides=(1, 2), padding=[(1, 1), (0, 1)]))

        np.testing.assert_array_equal(run(compiler, nx.grad(pooled), x), expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [0, 1])
def test_argmax_and_argmin_tie_break(compiler, dtype, axis):
    for seed in SEEDS:
        x = repeated_numbers(seed, (7, 9), dtype)
        size = x.shape[axis]
        for op, reference in ((nx.argmax, np.argmax), (nx.argmin, np.argmin)):
            first = reference(x, axis=axis)
            last = size - 1 - reference(np.flip(x, axis), axis=axis)
            for tie_break, expected in (("low", first), ("high", last)):
                result = run(
                    compiler,
                    lambda x, op=op, tie=tie_break: op(x, axis, tie_break=tie),
                    x,
                )
                np.testing.assert_array_equal(result, expected)
        np.testing.assert_array_equal(run(compiler, nx.argmax, x), np.argmax(x))


@pytest.mark.parametrize("dtype", DTYPES)
def test_sorting_is_stable(compiler, dtype):
    for seed in SEEDS:
        x = repeated_numbers(seed, (5, 40), dtype)
        ascending = np.argsort(x, axis=1, kind="stable")
        descending = np.argsort(-x.astype(np.float64), axis=1, kind="stable")
        np.testing.assert_array_equal(run(compiler, lambda x: nx.argsort(x, 1), x), ascending)
        result = run(compiler, lambda x: nx.argsort(x, 1, descending=True), x)
        np.testing.assert_array_equal(result, descending)
        for k in (1, 7, 40):
            values, indices = run(compiler, lambda x, k=k: nx.top_k(x, k), x)
            np.testing.assert_array_equal(indices, descending[:, :k])
            np.testing.assert_array_equal(values, np.take_along_axis(x, descending[:, :k], 1))


def test_zeros_of_both_signs_are_equal(compiler):
    x = np.float32([0.0, -0.0, 0.0, -0.0])
    assert run(compiler, nx.argmax, x) == 0
    assert run(compiler, nx.argmin, x) == 0
    assert run(compiler, lambda x: nx.argmin(x, tie_break="high"), x) == 3
    np.testing.assert_array_equal(run(compiler, nx.argsort, x), range(4))
    np.testing.assert_array_equal(run(compiler, lambda x: nx.top_k(x, 4)[1], x), range(4))
    result = run(compiler, lambda x: nx.window_scatter_max(x, x[:3] * 0 + 1, 0.0, (2,)), x)
    np.testing.assert_array_equal(result, [0, 1, 1, 1])
    np.testing.assert_array_equal(run(compiler, lambda x: nx.searchsorted(x, x), x), [0] * 4)


@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted_with_ties(compiler, side):
    for seed in SEEDS:
        x, queries = np.sort(repeated_numbers(seed, 20)), repeated_numbers(seed + 9, 11, count=5)
        result = run(compiler, lambda x, q: nx.searchsorted(x, q, side=side), x, queries)
        np.testing.assert_array_equal(result, np.searchsorted(x, queries, side=side))


def test_mode_returns_the_smallest_value(compiler):
    x = np.int32([[2, 1, 2, 1], [3, 0, 0, 3]])
    np.testing.assert_array_equal(run(compiler, lambda x: nx.mode(x, 1), x), [1, 0])


def test_ties_share_the_gradient_of_max_and_min(compiler):
    for seed in SEEDS:
        x = repeated_numbers(seed, (4, 9))
        for op, extremum in ((nx.max, x.max(1)), (nx.min, x.min(1))):
            ties = x == extremum[:, None]
            expected = ties / ties.sum(1, keepdims=True)
            gradient = run(compiler, nx.grad(lambda x, op=op: nx.sum(op(x, axis=1))), x)
            np.testing.assert_allclose(gradient, expected, rtol=1e-6)
        y = repeated_numbers(seed + 5, (4, 9))
        for op, wins in ((nx.maximum, x > y), (nx.minimum, x < y)):
            gradient = run(compiler, nx.grad(lambda x, op=op, y=y: nx.sum(op(x, y))), x)
            np.testing.assert_array_equal(gradient, wins + 0.5 * (x == y))


@pytest.mark.parametrize("dtype", DTYPES)
def test_gradients_of_cumulative_extrema_with_ties(compiler, dtype):
    is_float = dtype[0] == "f"
    limits = nx.finfo(dtype) if is_float else nx.iinfo(dtype)
    ends = {"max": limits.min, "min": limits.max}
    if is_float:
        ends = {"max": -np.inf, "min": np.inf}
    for name, end in ends.items():
        function = getattr(nx, f"cumulative_{name}")
        middle = (3, 1) if name == "max" else (1, 3)
        for reverse in (False, True):
            x = nx.tensor([end, end, *middle], dtype=dtype)
            x = nx.flip(x) if reverse else x
            total = nx.grad(lambda x, f=function, r=reverse: nx.sum(f(x, reverse=r)))
            found = run(compiler, total, x)
            expected = [1.5, 0.5, 2, 0]
            np.testing.assert_array_equal(found, expected[::-1] if reverse else expected)


def test_ties_in_a_segment_share_the_gradient(compiler):
    ids = np.int32([0, 1, 0, 1, 0, 1, 1, 7, -1])
    weights = np.float32([3, 5])
    change = np.arange(9, dtype=np.float32)
    for seed in SEEDS:
        x = repeated_numbers(seed, 9)
        for op, extreme in ((nx.segment_max, np.max), (nx.segment_min, np.min)):
            expected = np.zeros(9)
            for segment in (0, 1):
                ties = (ids == segment) & (x == extreme(x[ids == segment]))
                expected[ties] = weights[segment] / ties.sum()

            def total(x, op=op):
                return nx.sum(op(x, ids, 2) * weights)

            np.testing.assert_allclose(run(compiler, nx.grad(total), x), expected, rtol=1e-6)
            tangent = run(compiler, lambda x, f=total: nx.jvp(f, (x,), (change,))[1], x)
            np.testing.assert_allclose(tangent, expected @ change, rtol=1e-6)


def test_tied_updates_share_the_gradient(compiler):
    x, updates = np.float32([2, 2, 0, 5]), np.float32([2, 2, 1, 3, 9])
    positions = np.int32([0, 0, 2, 2, 3])
    weights = np.float32([1, 2, 4, 8])
    x_gradient, updates_gradient = run(
        compiler,
        nx.grad(lambda x, u: nx.sum(x.at[positions].max(u) * weights), argnums=(0, 1)),
        x,
        updates,
    )
    np.testing.assert_allclose(x_gradient, [1 / 3, 2, 0, 0], rtol=1e-6)
    np.testing.assert_allclose(updates_gradient, [1 / 3, 1 / 3, 0, 4, 8], rtol=1e-6)


def test_gradient_of_sort_follows_the_stable_permutation(compiler):
    weights = np.arange(1, 10, dtype=np.float32)
    for seed, descending in itertools.product(SEEDS, (False, True)):
        x = repeated_numbers(seed, 9)
        order = np.argsort(-x if descending else x, kind="stable")
        expected = np.zeros(9)
        expected[order] = weights
        gradient = run(
            compiler,
            nx.grad(lambda x, d=descending: nx.sum(nx.sort(x, descending=d) * weights)),
            x,
        )
        np.testing.assert_array_equal(gradient, expected)


#: The functions in the first table of ``docs/derivatives.md``, and the points as numbers.
TABLE = {
    "a cast to `s32` and back": (lambda x: nx.astype(nx.astype(x, "s32"), "f32"), 1.5),
    "a cast to `bool` and back": (lambda x: nx.astype(nx.astype(x, "bool"), "f32"), 1.5),
    "`abs`": (nx.abs, 0),
    "`sign`, `floor`, `round`": ((nx.sign, 0), (nx.floor, 1), (nx.round, 0.5)),
    "`sqrt`, `cbrt`, `x ** 0.5`": ((nx.sqrt, 0), (nx.cbrt, 0), (lambda x: x**0.5, 0)),
    "`x ** 0.0`": (lambda x: x**0.0, 0),
    "`log`": (nx.log, 0),
    "`asin`": (nx.asin, 1),
    "`x / x`": (lambda x: x / x, 0),
    "`atan2(x, x)`": (lambda x: nx.atan2(x, x), 0),
    "norm": ((nx.linalg.norm, [0, 0]), (nx.linalg.vector_norm, [0, 0])),
    "standard deviation": (nx.std, [1, 1]),
    "`max`": (nx.max, [1, 1, 0]),
    "`maximum(x, 1)`": (lambda x: nx.maximum(x, 1), 1),
    "`maximum(x, 0)`": (lambda x: nx.maximum(x, 0), 0),
    "`relu`": (nx.nn.relu, 0),
    "`clip(x, 0, 1)`": (lambda x: nx.clip(x, 0, 1), [0, 1]),
    "`prod`": ((nx.prod, [0, 2, 3]), (nx.prod, [0, 0, 3])),
    "`sort` times 1, 2, 3": (lambda x: nx.sort(x) * nx.tensor([1, 2, 3]), [1, 1, 0]),
    "`cumulative_max`": (nx.cumulative_max, [1, 1]),
    "`window_max(x, 2)`": (lambda x: nx.window_max(x, 2), [1, 1]),
    "`fmod(x, 2)`": (lambda x: nx.fmod(x, 2), 2),
}


def test_table_of_derivatives_matches_results(compiler):
    page = (Path(__file__).parents[2] / "docs" / "derivatives.md").read_text(encoding="utf-8")
    rows = page.partition("| function | at | nxla | JAX | PyTorch |\n")[2].partition("\n\n")[0]
    cells = [[cell.strip() for cell in row.strip("| ").split(" | ")] for row in rows.splitlines()]
    numbers = [row for row in cells[1:] if row[1] != "any"]
    assert {row[0] for row in numbers} == TABLE.keys()
    for name, cell, ours, *_ in numbers:
        cases = TABLE[name] if isinstance(TABLE[name][0], tuple) else (TABLE[name],)
        if name == "`prod`":
            cases = [case for case in cases if str(case[1]) == cell.strip("`")]
        expected = [float(number) for number in ours.split(", ")]
        for function, point in cases:
            assert cell in ("a jump", str(point), f"`{point}`")
            found = run(compiler, nx.grad(function), nx.tensor(point, "f32"))
            np.testing.assert_array_equal(np.ravel(found), expected, err_msg=f"{name} at {cell}")


@pytest.mark.parametrize("dtype", ["s4", "s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"])
def test_casts_to_integers_have_the_derivative_one(dtype):
    cast = lambda x: nx.astype(x, dtype) * x  # noqa: E731
    for derivative in (nx.grad, nx.jacfwd):
        assert derivative(cast)(1.5).item() == 1.5 + 1.0
    with pytest.raises(nx.GradientError, match="integer division has no derivative"):
        nx.grad(lambda x: nx.astype(x, dtype) // 2 * x)(1.5)
