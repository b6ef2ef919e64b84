"""Loops and small programs in bytecode of the evaluator return the bits of separate iterations.

The bodies pass on, swap, update, slice, move, reduce and multiply their states, call ops without an
instruction, and contain loops and branches. Each body runs with tensors in the arena and with boxed
tensors. The tests include programs over small tensors.
"""

import functools

import numpy as np
import pytest

import nxla as nx

TRIPS = 5


def numbers(shape, dtype="float32", seed=0):
    """Return random numbers, the same each time."""
    generator = np.random.default_rng(seed)
    return nx.tensor(generator.uniform(-2, 2, shape).astype(np.float32)).astype(dtype)


def repeat_body(body, trips):
    """Return a function that runs a body `trips` times with the iteration and the state."""

    def loop(state):
        start = (nx.tensor(0), state)
        end = nx.while_loop(lambda s: s[0] < trips, lambda s: (s[0] + 1, body(s[0], s[1])), start)
        return end[1]

    return loop


def assert_same_bits(found, expected):
    """Compare the leaves of two containers."""
    found, expected = nx.tree.leaves(found), nx.tree.leaves(expected)
    assert len(found) == len(expected)
    for x, y in zip(found, expected, strict=True):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        # NumPy does not have bfloat16.
        dtype = "float32" if x.dtype == nx.bfloat16 else x.dtype
        left, right = np.asarray(x.astype(dtype)), np.asarray(y.astype(dtype))
        assert left.tobytes() == right.tobytes()


def check(body, state, trips=TRIPS):
    """Compare a loop with separate calls of its body for each iteration."""
    run = nx.jit(repeat_body(body, trips), compiler="evaluator")
    once = nx.jit(body, compiler="evaluator")
    expected = state
    for iteration in range(trips):
        expected = once(nx.tensor(iteration), expected)
    assert_same_bits(run(state), expected)
    # The next run does not see values of the first one.
    assert_same_bits(run(state), expected)


def identity(i, s):
    return s


def swap(i, s):
    return s[1], s[0]


def rotate(i, s):
    a, b, c = s
    return b, c, a + b


def duplicate(i, s):
    both = s[0] + s[1]
    return both, both


def write(i, s):
    table, x = s
    return nx.put_slice(table, [i], nx.reshape(x[0], (1,))), x * 1.5


def write_and_read(i, s):
    table, x = s
    put = nx.put_slice(table, [i + 1], nx.reshape(x[0] + table[0], (1,)))
    return put, x + table[1] - put[i]


def write_twice(i, s):
    table, x = s
    once = nx.put_slice(table, [i], nx.reshape(x[0], (1,)))
    twice = nx.put_slice(once, [2 * i], nx.reshape(x[1], (1,)))
    return nx.where(i > 2, once, twice), x * 1.5


def slice_states(i, s):
    table, x = s
    part = nx.slice(table, [i * 2], [2])
    return table * 0.5, nx.concat([part, x[:-2]]) + x[1]


def move_elements(i, s):
    a, b = s
    square = nx.reshape(a[:4], (2, 2))
    mirrored = nx.concat([square.T, nx.flip(square, 0)], axis=1)
    stacked = nx.stack([mirrored[0], mirrored[1] * 2], axis=1)
    padded = nx.pad(nx.reshape(stacked, (8,)), 1.5, [(1, 2, 1)])
    return a + padded[3], b * 0.5 + nx.sum(padded)


def reduce_states(i, s):
    a, b = s
    table = a[:6].reshape(2, 3)
    c = nx.max(table, axis=0) + nx.sum(table, axis=1)[0] - nx.min(b)
    return a - nx.mean(a) + c[1], nx.cumulative_sum(b) * 0.1 + nx.argmax(a)


def multiply_matrices(i, s):
    a, b = s
    square = a[:9].reshape(3, 3)
    c = square @ square.T @ b[:3]
    return a * 0.5 + nx.einsum("ij,ik->jk", square, square)[1, 2] * 0.01, b * 0.5 + c[0] * 0.01


def call_library_ops(i, s):
    a, b = s
    order = nx.argsort(a)
    gathered = nx.take(b, order % 7)
    return nx.sort(gathered) * 0.9, b + nx.cumulative_sum(a)[-1] * 0.01 + nx.linalg.norm(a) * 0.1


def mix_dtypes(i, s):
    a, b = s
    n = (a * 10).astype("int32")
    wide = (n // 3).astype("float64") + b[0].astype("bfloat16")
    odd = (n % 2 == 1) & (b > 0)
    return wide.astype("float32") * 0.1, nx.where(odd, b, -b) + (n ^ i).astype("float32") * 0.01


def inner_loop(i, s):
    a, b = s

    def inner(j, t):
        # Only one of the four products changes between iterations of the inner loop.
        return t * 0.5 + a[0] * b[1] * (i + 1) + nx.sin(b[2] * 3.0) * j, t[::-1] + a[1]

    left, right = nx.while_loop(
        lambda t: t[0] < i, lambda t: (t[0] + 1, inner(t[0], t[1][0])), (nx.tensor(0), (a, a))
    )[1]
    return left, right * 0.1 + b * 0.5


def choose(i, s):
    a, b = s
    a, b = nx.cond(i % 2 == 0, lambda: (b, a), lambda: (a * 0.5, nx.put_slice(b, [1], a[:1])))
    return nx.cond(
        [(b[0] > 0, lambda: (a, b)), (a[0] > 1, lambda: (b, b))], otherwise=lambda: (a, a)
    )


def loop_in_branch(i, s):
    def grow(t):
        return repeat_body(lambda j, u: (u[0] + u[1][0] * j, u[1]), 3)(t)

    return nx.cond(s[0][0] > 0, grow, lambda t: (t[0] + 1.0, t[1] * 0.5), s)


def checkpoint_body(i, s):
    return nx.checkpoint(lambda a, b: (nx.sin(a) + b[0], b * a[1]))(*s)


def constants(i, s):
    a, b = s
    large = nx.iota((5000,)).astype("float32") + nx.full((5000,), 2.0)
    return a + large[i] + nx.eye(3)[i % 3, 0], b + nx.tensor([0.5, 0.25, 1.0])[i % 3]


BODIES = [
    identity,
    swap,
    duplicate,
    write,
    write_and_read,
    write_twice,
    slice_states,
    move_elements,
    reduce_states,
    multiply_matrices,
    call_library_ops,
    mix_dtypes,
    inner_loop,
    choose,
    loop_in_branch,
    checkpoint_body,
    constants,
]


@pytest.mark.parametrize("sizes", [(12, 12), (12, 5000), (5000, 12), (5000, 5000)])
@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_loop_matches_separate_iterations(body, sizes):
    if (
        body is swap
        or body is choose
        or body is duplicate
        or body is call_library_ops
        or body is mix_dtypes
    ):
        sizes = (sizes[0], sizes[0])
    if body is inner_loop and sizes[0] != sizes[1]:
        pytest.skip("the body adds its states")
    check(body, (numbers(sizes[0]), numbers(sizes[1], seed=1)))


@pytest.mark.parametrize("size", [1, 4096, 4097])
def test_loop_rotates_states(size):
    check(rotate, tuple(numbers(size, seed=seed) for seed in range(3)), trips=7)


@pytest.mark.parametrize("dtype", ["bfloat16", "float64", "complex64", "uint8", "int16", "bool"])
def test_other_dtypes(dtype):
    def body(i, s):
        a, b = s
        both = nx.where(a > b, a, b) if dtype != "complex64" else a * b
        return (a + both).astype(dtype), (b * both).astype(dtype)

    check(body, (numbers(10, dtype), numbers(10, dtype, seed=1)))


def rotation(angle):
    sine, cosine = nx.sin(angle), nx.cos(angle)
    matrix = nx.stack([nx.stack([cosine, -sine]), nx.stack([sine, cosine])])
    return matrix @ matrix[0], nx.sum(matrix * 2.5, axis=0), matrix


def branches_sharing_constants(angle):
    def small(x):
        return x * 2.5 + nx.tensor([1.0, 2.0, 3.0]), nx.sqrt(x + 7.25)

    def large(x):
        return x - 2.5, nx.cond(x > 3, lambda: x * 7.25, lambda: nx.exp(x) + 2.5)

    first, second = nx.cond(angle < 1, small, lambda x: (nx.full((3,), 7.25), x + 2.5), angle)
    third, last = nx.cond(angle > 1, large, lambda x: (x + 2.5, x - 7.25), angle)
    return first * 7.25, second + 2.5, third, last / 7.25


def table_row(angle):
    table = nx.reshape(nx.iota((6000,)), (60, 100)).astype("float32")
    row = table[(angle * 10).astype("int32")] * 0.5
    return nx.max(row), nx.put_slice(row, [3], nx.reshape(angle, (1,)))[:5], angle


@pytest.mark.parametrize("function", [rotation, branches_sharing_constants, table_row])
def test_small_programs_match_eager_operations(function):
    run = nx.jit(function, compiler="evaluator")
    for angle in (4.0, 0.5, 1.0, 2.0, 0.25):
        # Outside a trace each operation is a separate program.
        assert_same_bits(run(nx.tensor(angle)), function(nx.tensor(angle)))


def test_zero_iterations_and_empty_tensors():
    check(duplicate, (numbers(3), numbers(3)), trips=0)
    check(lambda i, s: (s[0] * 2.0, s[1] + nx.sum(s[0])), (numbers((0, 3)), numbers(2)))


def test_loop_invariants_are_recomputed_for_each_call():
    def run(scale, x):
        return repeat_body(lambda i, s: s + nx.exp(scale) * nx.sum(scale * 2.0), 3)(x)

    jitted = nx.jit(run, compiler="evaluator")
    for seed in range(3):
        scale, x = numbers(4, seed=seed), numbers(4, seed=seed + 10)
        expected = x
        for _ in range(3):
            expected = expected + nx.exp(scale) * nx.sum(scale * 2.0)
        assert_same_bits(jitted(scale, x), expected)


def test_untaken_branch_allocates_no_memory():
    def huge(x):
        return x + nx.sum(nx.full((1 << 44,), 1.0)) + nx.sum(nx.full((5000,), x))

    def body(i, x):
        return nx.cond(i < 0, huge, lambda x: x + 1.0, x)

    found = nx.jit(repeat_body(body, 3), compiler="evaluator")(nx.tensor(0.0))
    assert float(found) == 3.0


def test_hooks_of_nested_loops_are_called_in_order():
    seen = []

    def inner(i, j, t):
        nx.hook((i, j), lambda pair: seen.append((int(pair[0]), int(pair[1]))))
        return t + 1.0

    def body(i, s):
        return nx.cond(i == 1, lambda t: t, repeat_body(functools.partial(inner, i), 2), s)

    found = nx.jit(repeat_body(body, 3), compiler="evaluator")(nx.tensor(0.0))
    assert float(found) == 4.0
    assert seen == [(0, 0), (0, 1), (2, 0), (2, 1)]


def test_shared_regions_are_not_expanded():
    # Each level contains the previous level twice: written out, it would be thousands of loops.
    def level(depth):
        if depth == 0:
            return lambda x: x * 0.5 + 1.0
        inner_level = level(depth - 1)
        once = repeat_body(lambda i, s: inner_level(s), 1)
        return lambda x: once(x) - once(x * 2.0)

    check(lambda i, s: level(11)(s), nx.tensor(0.25), trips=2)


def test_many_live_values():
    def body(i, s):
        rows = [nx.sort(s * float(k)) for k in range(120)]
        return nx.stack([nx.sum(row * rows[-1]) for row in rows])[:1] * 1e-3 + s

    check(body, numbers(4000), trips=2)
