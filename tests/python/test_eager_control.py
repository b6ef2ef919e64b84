"""Eager and traced control flow return equal values, axes, names and dtypes."""

import numpy as np
import pytest

import nxla as nx


def outcome(call):
    """Return the type and values of each tensor of a result, or the class and text of an error."""
    try:
        result = call()
    except nx.NxlaError as error:
        return type(error), str(error).split(" (")[0]
    leaves = [(x, nx.devectorize(x, keep_names=False)) for x in nx.tree.leaves(result)]
    return [(x.dtype, x.vectorized_axes, x.names, flat.tolist()) for x, flat in leaves]


def tensor(shape, *axes, names=None, dtype="f4"):
    """Return different numbers with vectorized axes, and with names of the other axes."""
    x = nx.tensor(np.arange(1, 1 + np.prod(shape), dtype=dtype).reshape(shape))
    if names is not None:
        x = nx.rename(x, [*[None] * len(axes), *names])
    return nx.vectorize(x, list(axes))


#: Pairs of types: an initial state, and the value with which each step combines it.
PAIRS = {
    "no axes": (tensor(2), tensor(2)),
    "a new axis": (tensor(2), tensor((3, 2), "b")),
    "different axes": (tensor((2, 2), "a"), tensor((3, 2), "b")),
    "another order": (tensor((2, 3, 2), "a", "b"), tensor((3, 2, 2), "b", "a")),
    "fewer axes": (tensor((3, 2, 2), "b", "a"), tensor((2, 2), "a")),
    "an axis of size 1": (tensor((1, 2), "b"), tensor((3, 2), "b")),
    "different sizes": (tensor((2, 2), "b"), tensor((3, 2), "b")),
    "new names": (tensor(2), tensor(2, names=["k"])),
    "a new axis and names": (tensor((2, 2), "a"), tensor((3, 2), "b", names=["k"])),
    "old names": (tensor(2, names=["k"]), tensor((3, 2), "b")),
    "partial names": (
        tensor((1, 2), names=["j", None]),
        tensor((3, 1, 2), "b", names=["j", "k"]),
    ),
    "integers": (tensor(2, dtype="i8"), tensor((3, 2), "b", dtype="i8")),
    "scalars": (tensor((), dtype="i8"), tensor(3, "b", dtype="i8")),
}

#: Steps of a loop over two states. Parts that receive axes from each other need several steps.
STEPS = {
    "state + value": lambda s, v: (s[0] + v, s[1]),
    "value + state": lambda s, v: (v + s[0], v - s[1]),
    "value": lambda s, v: (v, s[1] * 2),
    "cumulative": lambda s, v: (s[0] + s[1], s[1] + v),
    "swapped": lambda s, v: (v + s[1], s[0] * 2),
    "number": lambda s, v: (s[0] * 1, 3),
}

#: The unrolling of a loop.
UNROLL = (False, True, 2)


def loops(step, count):
    """Return functions of a state and a value that run a step some times."""
    rows = nx.full((count,), 1.0)

    def repeated(s, v, **options):
        body = lambda s: (s[0] + 1, step(s[1], v))  # noqa: E731
        return nx.while_loop(lambda s: s[0] < count, body, (0, s), **options)[1]

    def scanned(s, v, *, unroll, reverse):
        def body(s, _):
            # The order of the axes of a result depends on the axes of the carry.
            return step(s, v), (s[0], s[0] * v, v * s[0])

        return nx.scan(body, s, rows, unroll=unroll, reverse=reverse)

    found = {
        "while_loop": repeated,
        "while_loop, bounded": lambda s, v: repeated(s, v, max_trips=3),
    }
    for unroll in UNROLL:
        found |= {
            f"fori, {unroll}": lambda s, v, u=unroll: nx.fori(
                0, count, lambda _, s: step(s, v), s, unroll=u
            ),
            f"for_each, {unroll}": lambda s, v, u=unroll: nx.for_each(
                rows, lambda _, s: step(s, v), s, unroll=u
            ),
            f"scan, {unroll}": lambda s, v, u=unroll: scanned(s, v, unroll=u, reverse=False),
            f"scan, {unroll}, reverse": lambda s, v, u=unroll: scanned(
                s, v, unroll=u, reverse=True
            ),
        }
    return found


@pytest.mark.parametrize("count", [0, 1, 3])
@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("pair", PAIRS)
def test_eager_loops_equal_traced_loops(pair, name, count):
    state, value = PAIRS[pair]
    start = (state, state * 2)
    found = {}
    for loop, run in loops(STEPS[name], count).items():
        found[loop] = outcome(lambda: run(start, value))  # noqa: B023
        assert found[loop] == outcome(lambda: nx.jit(run)(start, value)), loop  # noqa: B023
    assert found["scan, True"] == found["scan, 2"] == found["scan, False"]
    assert (
        found["scan, True, reverse"] == found["scan, 2, reverse"] == found["scan, False, reverse"]
    )
    # The order of axes does not depend on the loop or on unrolling. An unrolled loop is not
    # compared where a number in its state or the number of steps determines types.
    if count == 3 and name != "number" and isinstance(found["fori, False"], list):
        for loop, result in found.items():
            assert result[:2] == found["fori, False"], loop


@pytest.mark.parametrize("pair", PAIRS)
def test_eager_conditionals_equal_traced_conditionals(pair):
    state, value = PAIRS[pair]
    branches = [lambda x, v: x, lambda x, v: v, lambda x, v: v + x]

    def clauses(p, q, x, v):
        first, second, third = branches
        return nx.cond(
            [(p, lambda: first(x, v)), (q, lambda: second(x, v))], otherwise=lambda: third(x, v)
        )

    cases = [(lambda i, x, v: nx.switch(i, branches, x, v), (i,)) for i in range(3)]
    for p in (False, True):
        cases += [(lambda p, x, v: nx.cond(p, *branches[:2], x, v), (p,))]
        cases += [(lambda p, x, v: nx.cond(p, *branches[2:0:-1], x, v), (p,))]
        cases += [(lambda p, x, v: nx.if_(p, lambda: x + v), (p,))]
        cases += [(clauses, (p, q)) for q in (False, True)]
    masks = (nx.vectorize([True, False, True], "b"), nx.vectorize([True, False], "a"))
    if pair != "different sizes":
        cases += [(clauses, masks), (clauses, masks[::-1]), (clauses, (False, masks[0]))]
    for run, predicates in cases:
        eager = outcome(lambda: run(*predicates, state, value))  # noqa: B023
        assert eager == outcome(lambda: nx.jit(run)(*predicates, state, value))  # noqa: B023


def test_eager_loops_call_hooks_once_in_each_step():
    value = tensor(3, "b")
    for loop in (nx.fori, lambda *args: nx.fori(*args, unroll=True)):
        seen = []
        step = lambda i, s: nx.hook(s + value, lambda v: seen.append(v.tolist()))  # noqa: B023, E731
        loop(0, 2, step, 0.0)
        assert seen == [[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]]
    seen = []
    # The types of the parts are complete only after a second step, which does not run.
    step = lambda s, x: (nx.hook((s[0] + s[1], s[1] + x), seen.append), s[0])  # noqa: E731
    carry, before = nx.scan(step, (0.0, 0.0), nx.expand_dims(value, 0))
    assert (len(seen), carry[0].tolist(), before.tolist()) == (1, [0.0] * 3, [[0.0]] * 3)
