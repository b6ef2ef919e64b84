"""Conditionals and loops: values, captured values and errors."""

import numpy as np
import pytest

import nxla as nx
from nxla import _core


def ops(f, *args):
    return nx.debug_expr(f)(*args).op_counts()


# --- conditionals ---


@pytest.mark.parametrize("x", [-1.0, 0.0, 2.0])
def test_only_the_selected_branch_runs(compiler, x):
    seen = []

    def f(x):
        return nx.cond(
            [
                (x < 0, lambda: nx.hook(x * 10, lambda v: seen.append("negative"))),
                (x == 0, lambda: nx.hook(x + 1, lambda v: seen.append("zero"))),
            ],
            otherwise=lambda: nx.hook(x * x, lambda v: seen.append("positive")),
        )

    expected = {-1.0: (-10.0, "negative"), 0.0: (1.0, "zero"), 2.0: (4.0, "positive")}[x]
    assert nx.jit(f, compiler=compiler)(x).item() == expected[0]
    assert seen == [expected[1]]


def test_branch_results_are_promoted_and_broadcast(compiler):
    def f(p, x):
        return nx.cond(p, lambda: (1, x), lambda: (nx.tensor([1.5, 2.5]), nx.tensor([[0], [1]])))

    first, second = nx.jit(f, compiler=compiler)(True, nx.tensor([1.0, 2.0, 3.0]))
    assert (first.dtype, first.shape, first.tolist()) == (nx.float32, (2,), [1.0, 1.0])
    assert (second.dtype, second.shape) == (nx.float32, (2, 3))


def test_constant_predicates_select_while_tracing():
    def never():
        raise AssertionError("a branch that is ruled out is not traced")

    assert "cond" not in ops(lambda x: nx.cond(True, lambda: x, never), 1.0)
    assert "cond" not in ops(lambda x: nx.cond(0, never, lambda: x), 1.0)
    clauses = lambda x: nx.cond([(False, never), (x > 1, lambda: x)], otherwise=lambda: -x)  # noqa: E731
    assert ops(clauses, 1.0)["cond"] == 1


def test_branches_and_bodies_capture_outer_values(compiler):
    def f(x):
        scale = nx.sin(x)

        def body(state):
            i, total = state
            return i + 1, total + nx.cond(i > 1, lambda: scale * x, lambda: scale)

        return nx.while_loop(lambda s: s[0] < 4, body, (0, 0.0))[1]

    x = 0.5
    s = nx.sin(x).item()
    assert nx.jit(f, compiler=compiler)(x).item() == pytest.approx(2 * s + 2 * s * x)
    # Values that do not depend on the state are computed once, before the loop.
    assert ops(f, x)["sin"] == 1


def test_errors_of_branches_name_branch_leaf_and_shapes():
    x = nx.tensor([1.0, 2.0])
    wide = nx.tensor([1.0, 2.0, 3.0])
    # The dtype of a branch counts even if the branch is never selected.
    never, maybe = (False, lambda: {"loss": [wide]}), lambda: {"loss": [x]}
    with pytest.raises(
        nx.ShapeError,
        match=r"cond: branch 2, result\['loss'\]\[0\]: must broadcast with f32\[2\] .*"
        r"; got f32\[3\].*\.py:",
    ):
        nx.jit(lambda p: nx.cond([never, (p, maybe)], otherwise=never[1]))(True)
    entries = nx.vectorize(nx.tensor([True, False]), "entry")
    with pytest.raises(
        nx.ShapeError, match=r"branch 1, result\[1\]: must broadcast with f32\[2\] .*; got f32\[3\]"
    ):
        nx.jit(lambda p: nx.cond(p, lambda: (x, x), lambda: (wide[0], wide)))(entries)
    with pytest.raises(
        nx.ArgumentError,
        match=r"branch 1: must return \(\*, \*\), like branch 0; got \* \(test_control\.py",
    ):
        nx.jit(lambda p: nx.cond(p, lambda: (x, x), lambda: x))(True)
    with pytest.raises(nx.ShapeError, match="reduce it with all or any"):
        nx.jit(lambda x: nx.cond(x > 0, lambda: x, lambda: -x))(x)


def test_an_exception_in_a_branch_is_raised():
    def fail():
        raise KeyError("inside")

    with pytest.raises(KeyError, match="inside"):
        nx.jit(lambda p: nx.cond(p, lambda: 1, fail))(True)


# --- loops ---


def test_fori_matches_python_loops(compiler):
    def f(n, x):
        return nx.fori(0, n, lambda i, y: y * 2 + i, x)

    expected = 1
    for i in range(7):
        expected = expected * 2 + i
    assert nx.jit(f, compiler=compiler)(7, 1).item() == expected
    assert f(7, 1).item() == expected
    assert nx.jit(f, compiler=compiler)(0, 1).item() == 1


#: Bounds in different dtypes, or beyond the default dtype of the lower bound.
BOUNDS = {
    "large ints": (2**31 - 2, 2**31 + 1),
    "ints beyond s32": (2**40, 2**40 + 3),
    "a narrow lower bound": (nx.tensor(250, "u8"), nx.tensor(300)),
    "a narrow upper bound": (nx.tensor(250), nx.tensor(255, "u8")),
    "signs": (nx.tensor(-3, "s8"), nx.tensor(200, "u8")),
    "a wide upper bound": (0, nx.tensor(3, "s64")),
    "the end of a dtype": (250, nx.tensor(255, "u8")),
}


@pytest.mark.parametrize("case", BOUNDS)
def test_counters_reach_the_upper_bound(compiler, case):
    lower, upper = BOUNDS[case]
    first, end = (x.item() if isinstance(x, nx.Tensor) else x for x in BOUNDS[case])

    def f(lower, upper):
        start = (nx.tensor(0), nx.tensor(0, "s64"))
        return nx.fori(lower, upper, lambda i, s: (s[0] + 1, i.astype("s64")), start)

    traced = (
        lambda *bounds: nx.jit(f, compiler=compiler)(*bounds),
        nx.jit(lambda: f(lower, upper)),
    )
    for iterations, last in (f(lower, upper), traced[0](lower, upper), traced[1]()):
        assert (iterations.item(), last.item()) == (end - first, end - 1)


@pytest.mark.parametrize("bound", [2.5, True, nx.tensor(3.0), nx.tensor(1j)])
def test_bounds_must_be_integers(bound):
    with pytest.raises(nx.DTypeError, match="fori: upper: must be an integer; got"):
        nx.fori(0, bound, lambda i, s: s, 0)
    with pytest.raises(nx.DTypeError, match="fori: lower: must be an integer; got"):
        nx.jit(lambda: nx.fori(bound, 4, lambda i, s: s, 0))()
    with pytest.raises(OverflowError, match="300 is out of bounds for u8"):
        nx.fori(nx.tensor(250, "u8"), 300, lambda i, s: s, 0)


@pytest.mark.parametrize("unroll", [False, 2, True])
@pytest.mark.parametrize(
    "numbers",
    [
        range(0, 2**32, 2**31 - 1),
        range(2**31 - 2, 2**31 + 3),
        range(2**40 + 4, 2**40, -1),
        range(-(2**31), 2**31 - 1, 2**30),
    ],
)
def test_ranges_may_exceed_32_bits(compiler, numbers, unroll):
    def f():
        body = lambda i, s: s * 3 + i  # noqa: E731
        return nx.for_each(numbers, body, nx.tensor(0, "s64"), unroll=unroll)

    expected = 0
    for i in numbers:
        expected = expected * 3 + i
    assert f().item() == nx.jit(f, compiler=compiler)().item() == expected


def test_loops_with_more_than_2_to_the_31_steps_count_in_64_bits():
    scan = lambda x: nx.scan(lambda c, _: (c + 1, ()), x, length=2**33, unroll=3)[0]  # noqa: E731
    each = lambda x: nx.for_each(range(2**33), lambda _, s: s + 1, x, unroll=3)  # noqa: E731
    for loop in (scan, each):
        module = nx.jit(loop).lower(1.0).as_text()
        assert "tensor<i64>" in module
        assert "tensor<i32>" not in module


@pytest.mark.parametrize("unroll", [False, True, 1, 2, 3, 5, 100])
def test_unrolled_loops_return_the_same_values(compiler, unroll):
    xs = nx.tensor([[1, 2], [3, 4], [5, 6], [7, 8], [9, 10]])

    def over_tensors(xs):
        body = lambda pair, s: s * 3 + pair["x"] - pair["y"]  # noqa: E731
        return nx.for_each({"x": xs, "y": xs * 2}, body, nx.tensor([0, 0]), unroll=unroll)

    def over_range(x):
        return nx.for_each(range(9, -2, -3), lambda i, s: s * 3 + i, x, unroll=unroll)

    state = [0, 0]
    for row in xs.tolist():
        state = [s * 3 - x for s, x in zip(state, row, strict=True)]
    assert nx.jit(over_tensors, compiler=compiler)(xs).tolist() == state
    total = 1
    for i in range(9, -2, -3):
        total = total * 3 + i
    assert nx.jit(over_range, compiler=compiler)(1).item() == total


def test_unroll_determines_how_often_the_body_is_traced():
    def count(unroll):
        calls = []
        nx.debug_expr(
            lambda x: nx.for_each(range(7), lambda i, s: calls.append(i) or s + i, x, unroll=unroll)
        )(1)
        return len(calls)

    assert [count(unroll) for unroll in (False, True, 1, 3, 7, 9)] == [1, 7, 1, 3 + 1, 7, 7]
    assert "while" not in ops(lambda x: nx.fori(0, 3, lambda i, s: s + i, x, unroll=True), 1)
    with pytest.raises(nx.ArgumentError, match="unroll: must be"):
        nx.for_each(range(3), lambda i, s: s, 0, unroll=0)
    with pytest.raises(nx.ArgumentError, match="requires ints"):
        nx.jit(lambda n: nx.fori(0, n, lambda i, s: s, 0, unroll=True))(3)


#: Calls of all loops with any options.
LOOPS = {
    "while_loop": lambda **options: nx.while_loop(lambda s: s < 0, lambda s: s, 1.0, **options),
    "fori": lambda **options: nx.fori(0, 3, lambda i, s: s, 1.0, **options),
    "fori, unrolled": lambda **options: nx.fori(0, 3, lambda i, s: s, 1.0, unroll=True, **options),
    "for_each": lambda **options: nx.for_each(range(3), lambda i, s: s, 1.0, **options),
    "scan": lambda **options: nx.scan(lambda c, x: (c, x), 1.0, nx.ones(3), **options),
}

#: Values that are not counts, with the requirement in the error.
INVALID_COUNTS = {
    -1: "must be at least 0; got -1",
    True: "must be an integer; got True",
    1.5: "must be an integer; got 1.5",
    "1": "must be an integer; got '1'",
    2**64: r"must be below 2\*\*63; got 18446744073709551616",
}


@pytest.mark.parametrize("name", LOOPS)
def test_options_of_loops_are_checked_without_a_gradient(name):
    function, loop = name.split(",")[0], LOOPS[name]
    for run in (loop, lambda **options: nx.jit(lambda: loop(**options))()):
        for value in ("foo", "", None, 1):
            with pytest.raises(
                nx.ArgumentError, match=f'^{function}: gradient: must be one of "au'
            ):
                run(gradient=value)
        for value, requirement in INVALID_COUNTS.items():
            with pytest.raises(
                nx.ArgumentError, match=f"^{function}: gradient_bytes: {requirement}$"
            ):
                run(gradient_bytes=value)
        run(gradient="log", gradient_bytes=np.int32(0))


def test_all_gradient_methods_are_accepted():
    for method in ("auto", "store", "recompute", "sqrt", "log"):
        loop = lambda x, method=method: nx.fori(0, 3, lambda i, s: s * x, x, gradient=method)  # noqa: E731
        assert nx.grad(loop)(2.0).item() == 32.0
    with pytest.raises(nx.ArgumentError) as ours:
        LOOPS["fori"](gradient="foo")
    with pytest.raises(nx.ArgumentError) as native:
        nx.jit(lambda: _core.while_loop(lambda s: s < 0, lambda s: s, 1.0, "fori", [], "foo", 1))()
    assert str(native.value).replace('"foo"', "'foo'").startswith(str(ours.value))


def test_step_counts_are_validated():
    step = lambda c, x: (c, x)  # noqa: E731
    for value, requirement in INVALID_COUNTS.items():
        for xs in (None, nx.ones(1)):
            with pytest.raises(nx.ArgumentError, match=f"^scan: length: {requirement}$"):
                nx.scan(step, 0, xs, length=value)
        with pytest.raises(nx.ArgumentError, match=f"^while_loop: max_trips: {requirement}$"):
            nx.while_loop(lambda s: s < 0, lambda s: s, 0, max_trips=value)
    ys = nx.scan(lambda c, _: (c + 1, c), 0, length=np.int64(2))[1]
    assert ys.tolist() == [0, 1]


def test_generators_are_validated():
    with pytest.raises(nx.ArgumentError, match="generator: must be a range, a tensor"):
        nx.for_each([], lambda x, s: s, 0)
    with pytest.raises(nx.ArgumentError, match="first axes"):
        nx.for_each(nx.tensor(1), lambda x, s: s, 0)
    with pytest.raises(nx.ArgumentError, match=r"\(2,\), \(3,\)"):
        nx.for_each((nx.tensor([1, 2]), nx.tensor([1, 2, 3])), lambda x, s: s, 0)


def test_the_number_of_steps_does_not_change_dtypes(compiler):
    """A scalar takes the dtype of a step, and a state keeps its dtype."""
    for dtype in ("f16", "f64"):
        for count in (0, 1, 2):
            rows = nx.zeros(count, dtype)
            total = nx.jit(
                lambda xs: nx.scan(lambda c, x: (c + x, x), 0.0, xs)[0], compiler=compiler
            )
            assert str(total(rows).dtype) == dtype
    for count in (1, 2):
        with pytest.raises(nx.DTypeError, match="for_each: state: must keep the type"):
            nx.jit(lambda x, n=count: nx.for_each(range(n), lambda _, s: s.astype("f64"), x))(1.0)


def test_scan_and_map(compiler):
    def f(xs):
        return nx.scan(lambda total, x: (total + x, total), 0.0, xs), nx.map(nx.sum, xs * xs)

    xs = nx.tensor([1.0, 2.0, 3.0])
    (total, before), squares = nx.jit(f, compiler=compiler)(xs)
    assert (total.item(), before.tolist(), squares.tolist()) == (
        6.0,
        [0.0, 1.0, 3.0],
        [1.0, 4.0, 9.0],
    )
    one = nx.jit(lambda xs: nx.map(lambda x: {"y": x + 1}, xs), compiler=compiler)(nx.tensor([4]))
    assert one["y"].tolist() == [5]
    none = nx.jit(lambda: nx.scan(lambda c, _: (c * 2, c), 1, length=0), compiler=compiler)()
    assert (none[0].item(), none[1].shape) == (1, (0,))
    steps = nx.scan(lambda c, _: (c * 2, c), 1, length=4, unroll=2)
    assert (steps[0].item(), steps[1].tolist()) == (16, [1, 2, 4, 8])


def test_a_scan_traces_its_step_once():
    calls = 0

    def step(carry, x):
        nonlocal calls
        calls += 1
        return carry * x, carry

    xs = nx.tensor([2.0, 3.0])

    def nested(start):
        return nx.scan(lambda c, x: nx.scan(step, c * x, xs), start, xs)

    last, before = nx.jit(nested)(nx.tensor(1.0))
    assert (last.item(), before.tolist(), calls) == (216.0, [[2.0, 4.0], [36.0, 72.0]], 1)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("unroll", [False, 2, 3, 5, True])
def test_unrolled_scans_return_the_same_values(compiler, unroll, reverse):
    def f(xs):
        def step(carry, x):
            total, names = carry
            return (total + x, names * 2), {"before": total, "pair": nx.stack([x, total])}

        return nx.scan(step, (0, nx.tensor(1)), xs, unroll=unroll, reverse=reverse)

    xs = nx.tensor([1.0, 2.0, 4.0, 8.0, 16.0])
    eager = f(xs)
    (total, power), ys = nx.jit(f, compiler=compiler)(xs)
    before = [30.0, 28.0, 24.0, 16.0, 0.0] if reverse else [0.0, 1.0, 3.0, 7.0, 15.0]
    assert (total.item(), power.item()) == (31.0, 32)
    assert (ys["before"].dtype, ys["before"].tolist()) == (nx.float32, before)
    assert ys["pair"].tolist() == [[x, y] for x, y in zip(xs.tolist(), before, strict=True)]
    assert [x.tolist() for x in nx.tree.leaves(eager)] == [
        x.tolist() for x in nx.tree.leaves(((total, power), ys))
    ]


def test_scalar_carries_take_the_type_of_the_step(compiler):
    rows = nx.tensor([[1.0, 2.0], [3.0, 4.0]])

    def f(rows):
        totals = nx.scan(lambda c, x: (c + x, c), 0, rows)
        doubles = nx.scan(lambda c, x: (c + nx.sum(x), c), np.float64(0.5), rows.astype("f64"))
        return totals, doubles

    for function in (f, nx.jit(f, compiler=compiler)):
        (total, before), (double, halves) = function(rows)
        assert (total.tolist(), before.tolist()) == ([4.0, 6.0], [[0.0, 0.0], [1.0, 2.0]])
        assert (double.dtype, double.item(), halves.tolist()) == (nx.float64, 10.5, [0.5, 3.5])


def test_empty_scans_do_not_call_hooks(compiler):
    seen = []

    def f(xs):
        def step(total, x):
            total = nx.hook(total + x, lambda value: seen.append(value.item()))
            return total, total

        return nx.scan(step, 0.0, xs)

    none = nx.zeros((0,))
    for function in (f, nx.jit(f, compiler=compiler)):
        total, ys = function(none)
        assert (total.item(), ys.shape, ys.dtype, seen) == (0.0, (0,), nx.float32, [])
    # The trial step that determines the type of a number does not call the hook either.
    assert nx.jit(f, compiler=compiler)(nx.tensor([1.0, 2.0]))[1].tolist() == seen == [1.0, 3.0]


def test_steps_may_add_axes_and_names_to_the_carry(compiler):
    entries = nx.vectorize([[1.0, 2.0], [3.0, 4.0]], "entry")
    named = nx.tensor([1.0, 2.0], names=["x"])

    def f(entries, named):
        sums = nx.scan(lambda c, _: (c + entries, c), nx.zeros((2,)), length=3)
        return sums, nx.scan(lambda c, _: (c + named, c), nx.zeros((2,)), length=2)

    for function in (f, nx.jit(f, compiler=compiler)):
        (total, before), (sums, _) = function(entries, named)
        assert total.vectorized_axes == (("entry", 2),)
        assert nx.devectorize(total).tolist() == [[3.0, 6.0], [9.0, 12.0]]
        assert nx.devectorize(before)[1].tolist() == [[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]]
        assert (sums.names, sums.tolist()) == (["x"], [2.0, 4.0])


def test_errors_of_loops_name_the_leaf_and_types():
    def grows(x):
        return nx.while_loop(
            lambda s: s["n"] < 3, lambda s: {"n": s["n"] + 1, "x": s["x"] * 1.5}, {"n": 0, "x": x}
        )

    with pytest.raises(
        nx.DTypeError,
        match=r"while_loop: state\['x'\]: must keep the type s32; got f32 after.*test_control\.py",
    ):
        nx.jit(grows)(1)
    with pytest.raises(
        nx.ArgumentError, match=r"body_fn: must return the structure of the initial state, .*; got"
    ):
        nx.jit(lambda x: nx.while_loop(lambda s: s < 3, lambda s: (s, s), x))(1)
    with pytest.raises(nx.ShapeError, match="reduce it with all or any"):
        nx.jit(lambda x: nx.while_loop(lambda s: s < 3, lambda s: s + 1, x))(nx.tensor([1, 2]))


@pytest.mark.parametrize("vectorized", [False, True])
def test_errors_of_loops_name_the_leaf_of_the_user_state(vectorized):
    x = nx.tensor([1.0, 2.0])
    stop = nx.vectorize(nx.tensor([2, 3]), "entry") if vectorized else 2
    shown = r"(vectorized\[entry: 2\])?f32"

    def grown(s):
        return {"w": [s["w"][0][None]]}

    start = {"w": [x]}
    after = rf"\['w'\]\[0\]: must keep the type {shown}\[2\]; got {shown}\[1\]\[2\] after the body"
    with pytest.raises(nx.ShapeError, match=rf"while_loop: state\['s'\]{after}"):
        nx.jit(
            lambda n: nx.while_loop(
                lambda s: s["i"] < n, lambda s: {"i": s["i"] + 1, "s": grown(s["s"])},
                {"i": 0, "s": start},
            )
        )(stop)  # fmt: skip
    with pytest.raises(nx.ShapeError, match=rf"fori: state{after}"):
        nx.jit(lambda n: nx.fori(0, n, lambda i, s: grown(s), start))(stop)
    with pytest.raises(nx.ShapeError, match=rf"for_each: state{after}"):
        nx.jit(lambda: nx.for_each(range(3), lambda i, s: grown(s), start))()


def test_loops_outside_of_traces_check_their_state_as_well():
    x = nx.tensor([1.0, 2.0])
    with pytest.raises(nx.DTypeError, match=r"fori: state\['n'\]: must keep the type s32; got f32"):
        nx.fori(0, 3, lambda i, s: {"n": s["n"] * 0.5}, {"n": 1})
    with pytest.raises(nx.ShapeError, match=r"while_loop: state\[1\]: must keep .*got f32\[4\]"):
        nx.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, nx.concat([s[1], s[1]])), (0, x))
    with pytest.raises(
        nx.ArgumentError, match=r"body_fn: must return the structure of the initial state, .*; got"
    ):
        nx.while_loop(lambda s: s < 3, lambda s: (s, s), 1)
    entries = nx.vectorize(x, "entry")
    assert nx.fori(0, 3, lambda i, s: s + entries, 0.0).tolist() == [3.0, 6.0]


def test_errors_of_scans_name_carry_and_result():
    x = nx.tensor([1.0, 2.0])
    scanned = lambda f, init: nx.jit(lambda: nx.scan(f, init, x))()  # noqa: E731
    with pytest.raises(
        nx.ShapeError, match=r"scan: carry\['n'\]: must keep its type f32; got f32\[2\]"
    ):
        scanned(lambda c, x: ({"n": nx.stack([c["n"], x])}, x), {"n": x[0]})
    with pytest.raises(nx.DTypeError, match=r"scan: carry: must keep its type s32; got f32"):
        scanned(lambda c, x: (c + x, x), nx.tensor(0))
    with pytest.raises(
        nx.DTypeError, match=r"scan: carry: must keep its dtype; got 0.5, and s32"
    ) as error:
        scanned(lambda c, x: (nx.astype(x, "s32"), x), 0.5)
    assert 'begin with nx.tensor(0.5, "s32") (test_control.py' in str(error.value)
    with pytest.raises(
        nx.ArgumentError, match=r"carry: must keep its structure \*; got \(\*, \*\)"
    ):
        scanned(lambda c, x: ((c, c), x), 0)
    # Loop two steps at a time; the last of three steps follows the loop.
    dtypes = iter(["f32", "f32", "s32"])
    with pytest.raises(nx.DTypeError, match=r"scan: y: must keep its type f32; got s32"):
        nx.jit(
            lambda: nx.scan(
                lambda c, _: (c, nx.astype(c, next(dtypes))), nx.tensor(0.0), length=3, unroll=2
            )
        )()
    # A Python scalar takes the dtype that the first step returns.
    last, (_, before) = scanned(lambda c, x: (c + x, (x, c)), 0)
    assert (last.tolist(), before.tolist(), before.dtype) == (3.0, [0.0, 1.0], nx.float32)
    small = nx.scan(lambda c, x: (c + x, c), 0, nx.tensor([200, 50], "u8"))
    assert (small[0].item(), small[1].tolist(), small[1].dtype) == (250, [0, 200], nx.uint8)


def test_a_value_from_inside_a_loop_cannot_be_used_outside():
    leaked = []

    def body(s):
        leaked.append(s)
        return s + 1

    def f(x):
        return nx.while_loop(lambda s: s < 3, body, x) + leaked[0]

    with pytest.raises(nx.TraceError, match="inside a loop"):
        nx.jit(f)(1)


@pytest.mark.parametrize(
    "statement",
    [
        "if x > 0: pass",
        "while x > 0: break",
        "x > 0 and x < 1",
        "not x > 0",
        "bool(x)",
        "for _ in range(x): pass",
    ],
)
def test_python_control_flow_errors_suggest_replacements(statement):
    code = compile(statement, "users_file.py", "exec")

    def f(x):
        exec(code, {"x": x})

    with pytest.raises(nx.TraceError, match=r"use (nx\.|a static).*users_file\.py:1"):
        nx.jit(f)(1)


def test_derivatives_of_loops_and_branches(compiler):
    def f(x):
        y = nx.fori(0, 3, lambda i, y: y * x, 1.0)
        return nx.cond(x > 1, lambda: y, lambda: 2 * y)

    g = nx.jit(nx.grad(f), compiler=compiler)
    assert g(2.0).item() == pytest.approx(12.0)
    assert g(0.5).item() == pytest.approx(1.5)


def test_rendering_of_control_flow():
    def f(x):
        nx.fori(0, 2, lambda i, s: nx.hook(s + i, "trip"), x)
        return nx.cond(x > 1, lambda: nx.sin(x), lambda: nx.cos(x))

    expression = nx.debug_expr(f)(1.0)
    for text in (expression.to_svg(), expression.to_mermaid(), str(expression)):
        assert "cond" in text
    assert expression.to_svg().startswith("<svg")
    assert expression._repr_svg_() == expression.to_svg()


def test_thousands_of_loops_in_one_program_take_linear_time():
    from time import perf_counter

    def seconds(count):
        def f(x):
            for _ in range(count):
                x = nx.fori(0, 2, lambda i, s: s + i, x)
            return x

        start = perf_counter()
        nx.debug_expr(f)(1)
        return perf_counter() - start

    seconds(50)
    assert seconds(1600) < 40 * seconds(160)


def test_control_flow_outside_of_a_trace_is_eager():
    assert not _core.is_tracing()
    assert nx.cond(nx.tensor(3) > 2, lambda: 1, lambda: 2).item() == 1
    assert nx.while_loop(lambda s: s < 10, lambda s: s * 2, 1).item() == 16
    assert nx.if_(True, lambda: {"a": nx.tensor([1, 2])})["a"].tolist() == [1, 2]


# --- eager calls have the checks of traced calls ---


def outcome(call):
    """Return the types and values of a result, or the class and the message of an error."""
    try:
        result = call()
    except nx.NxlaError as error:
        return type(error), str(error).split(" (")[0]
    return nx.tree.map(lambda x: (x.dtype, x.shape, x.tolist()), result)


BRANCHES = [
    lambda: nx.ones(2),
    lambda: nx.ones(3),
    lambda: nx.ones((3, 1), "s32"),
    lambda: nx.tensor(2.5, "f64"),
    lambda: 1,
    lambda: nx.zeros(2, "bf16"),
    lambda: (nx.ones(2), 1),
    lambda: {"a": nx.ones(2), "b": True},
    lambda: {"a": nx.zeros((2, 2), "u8"), "b": nx.tensor(7)},
]


@pytest.mark.parametrize("first", BRANCHES)
@pytest.mark.parametrize("second", BRANCHES)
def test_eager_and_traced_conditionals_have_equal_outcomes(first, second):
    for index in (0, 1, 2):
        traced = nx.jit(lambda i: nx.switch(i, [first, second, first]))
        assert outcome(lambda: nx.switch(index, [first, second, first])) == outcome(  # noqa: B023
            lambda: traced(index)  # noqa: B023
        )
    for pred in (True, False):
        traced = nx.jit(lambda p: nx.if_(p, first))
        assert outcome(lambda: nx.if_(pred, first)) == outcome(lambda: traced(pred))  # noqa: B023


def test_branches_that_are_not_selected_do_not_run():
    seen = []
    x = nx.tensor([1.0, 2.0])

    def shown(name):
        return lambda: nx.hook(x * 2, lambda value: seen.append((name, value.tolist())))

    nx.cond(True, shown("true"), shown("false"))
    nx.cond([(False, shown(0)), (True, shown(1))], otherwise=shown(2))
    nx.if_(False, shown("never"))
    assert seen == [("true", [2.0, 4.0]), (1, [2.0, 4.0])]
    # The selected branch is called once, with concrete values.
    calls = []
    nx.cond(True, lambda: calls.append(x[0].item()) or x, lambda: x)
    assert calls == [1.0]


@pytest.mark.parametrize(
    "options", [{"compiler": "evaluator"}, {"hooks": {"seen": print}}], ids=str
)
def test_functions_with_options_are_called_in_eager_control_flow(options):
    own = nx.jit(lambda x: x + 1, **options)
    called_inside = lambda x: own(x) * 1  # noqa: E731
    x = nx.tensor([1.0, 2.0])
    for function in (own, called_inside):
        for pred in (False, True):
            expected = [2.0, 3.0] if pred else [-1.0, -2.0]
            assert nx.cond(pred, function, nx.negative, x).tolist() == expected
            assert nx.switch(1 - pred, [function, nx.negative], x).tolist() == expected
        # The branch that is not selected determines the dtype.
        scalar = nx.cond(True, lambda x: 1, function, x)
        assert scalar.tolist() == [1.0, 1.0]
        for count in range(3):
            found = nx.fori(0, count, lambda _, x, function=function: function(x), x)
            assert found.tolist() == [1.0 + count, 2.0 + count]
        with pytest.raises(nx.NxlaError, match="on_conflict"):
            nx.jit(lambda x, function=function: nx.cond(x[0] > 0, function, nx.negative, x))(x)
    # An error in a check restores the previous mode.
    with pytest.raises(nx.ArgumentError):
        nx.cond(True, own, lambda x: (x, x), x)
    with pytest.raises(nx.NxlaError, match="on_conflict"):
        nx.jit(lambda x: own(x))(x)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_eager_and_traced_loops_have_equal_outcomes(count):
    for body in (lambda i, s: nx.ones(3), lambda i, s: (s, s), lambda i, s: s + i):
        loop = lambda x: nx.fori(0, count, body, x)  # noqa: B023, E731
        assert outcome(lambda: loop(nx.ones(2))) == outcome(lambda: nx.jit(loop)(nx.ones(2)))  # noqa: B023


def test_scalar_operands_of_branches_are_tensors():
    for run in (lambda f, p: f(p), lambda f, p: nx.jit(f)(p)):
        reciprocal = lambda p: nx.cond(p, lambda a: 0.0, lambda a: 1 / a, 0.0)  # noqa: E731
        assert run(reciprocal, True).item() == 0.0
        narrow = lambda p: nx.cond(p, lambda a: a.astype("f16"), nx.zeros_like, 1.0)  # noqa: E731
        assert run(narrow, True).item() == 1.0
        halves = lambda i: nx.switch(i, [lambda a: a / 2, lambda a: a / 4], np.ones(2, "i4"))  # noqa: E731
        assert (run(halves, 0).dtype, run(halves, 1).tolist()) == (nx.float32, [0.25, 0.25])


def test_scalar_carries_are_tensors_after_the_first_step(compiler):
    xs = nx.tensor([1.0, 2.0, 3.0])
    for run in (lambda f: f(), lambda f: nx.jit(f, compiler=compiler)()):
        for unroll in (False, True):
            scan = lambda f, init: run(lambda: nx.scan(f, init, xs, unroll=unroll))  # noqa: B023, E731
            assert scan(lambda c, x: (c.astype("f32") + x, x), 0.0)[0].item() == 6.0
            last, before = scan(lambda c, x: (c + 1, c), 2**31 - 2)
            assert (last.dtype, last.item()) == (nx.int32, 1 - 2**31)
            assert before.tolist() == [2**31 - 2, 2**31 - 1, -(2**31)]
            _, inverse = scan(lambda c, x: (c + 1.0, 1 / c), 0.0)
            assert inverse.tolist() == [np.inf, 1.0, 0.5]
            _, halves = scan(lambda c, x: (c, c / 2), np.ones(2, "i4"))
            assert (halves.dtype, halves.tolist()) == (nx.float32, [[0.5, 0.5]] * 3)


def test_loops_reject_values_that_are_not_tensors():
    message = "must be a tensor; got a str"
    calls = [
        lambda: nx.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1]), (0, "a")),
        lambda: nx.fori(0, 2, lambda i, s: s, (0, "a")),
        lambda: nx.scan(lambda c, x: ((c[0] + 1, c[1]), x), (0, "a"), nx.arange(3)),
        lambda: nx.scan(lambda c, x: (c, (x, "a")), 0, nx.arange(3)),
        lambda: nx.map(lambda x: (x, "a"), nx.arange(3)),
    ]
    for call in calls:
        for run in (call, nx.jit(call)):
            with pytest.raises(nx.ArgumentError, match=message):
                run()


def test_eager_loops_with_untraceable_bodies_name_the_changed_state():
    numbers = np.array([1, 2, 3], "i8")
    with pytest.raises(nx.DTypeError, match=r"fori: state: must keep the type s32; got s64"):
        nx.fori(0, 3, lambda i, s: s + numbers[i], 0)
    with pytest.raises(nx.DTypeError, match=r"while_loop: state\['n'\]: must keep the type s32"):
        nx.while_loop(
            lambda s: s["n"].item() < 3, lambda s: {"n": s["n"] + numbers[s["n"]]}, {"n": 0}
        )


@pytest.mark.parametrize("pred", [False, True])
def test_if_with_a_constant_predicate_in_a_trace(compiler, pred):
    seen = []

    def f(x):
        return nx.if_(pred, lambda: (nx.hook(x * 2, seen.append), 1))

    for function in (f, nx.jit(f, compiler=compiler)):
        seen.clear()
        found, number = function(nx.tensor([3.0]))
        assert (found.tolist(), number.item(), number.dtype) == ([6.0 * pred], pred, nx.int32)
        assert len(seen) == pred


def test_errors_of_map_name_map():
    calls = [
        (lambda: nx.map(lambda x, y: x, nx.ones(2), nx.ones(3)), r"map: xs: .*\(2,\), \(3,\)"),
        (lambda: nx.map(lambda x: x, 1.0), r"map: xs: must have first axes .*got shapes \(\)"),
        (lambda: nx.map(lambda x: x, ()), "map: xs: must contain a tensor"),
        (lambda: nx.map(lambda x: x, nx.ones(2), unroll=-1), "map: unroll: must be a bool or at"),
    ]
    for call, text in calls:
        for run in (call, nx.jit(call)):
            with pytest.raises(nx.ArgumentError, match=f"^{text}"):
                run()
    for unroll in (0, 1.5, "1"):
        with pytest.raises(nx.ArgumentError, match="scan: unroll: must be a bool or at least 1"):
            nx.scan(lambda c, x: (c, x), 0.0, nx.ones(2), unroll=unroll)


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("unroll", [1, 2, 5, 7])
def test_the_index_of_a_partly_unrolled_loop_is_a_tensor(unroll, jit):
    def add_shifted(i, total):
        # A Python number would not wrap.
        return total + (i << 20) * (i << 20) + nx.astype(i.dtype == nx.int32, "f64")

    def run(start):
        return nx.fori(0, 5, add_shifted, start, unroll=unroll)

    assert (nx.jit(run) if jit else run)(nx.zeros((), "f64")).item() == 5.0
