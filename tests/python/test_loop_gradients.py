"""Gradients of loops: the stored iterations, which must not change the results."""

import numpy as np
import pytest

import nxla as nx

METHODS = ["auto", "store", "recompute", "sqrt", "log"]
STEPS = 37


def f64(values):
    return nx.tensor(values, dtype=nx.float64)


def close(found, expected, tolerance=1e-9):
    found, expected = nx.tree.flatten(found)[0], nx.tree.flatten(expected)[0]
    for left, right in zip(found, expected, strict=True):
        assert nx.all_close(left, right, rtol=tolerance, atol=tolerance).item(), (left, right)


W = f64([[0.3, -0.2], [0.5, 0.7]])
H = f64([0.1, 0.4])
ROWS = nx.reshape(nx.sin(nx.arange(2 * STEPS, dtype=nx.float64)), (STEPS, 2))


def iteration(w, h, row):
    return nx.tanh(h @ w + row) * nx.cos(h)


def scanned(w, h, **options):
    def step(h, row):
        h = iteration(w, h, row)
        return h, nx.sum(h**2)

    h, norms = nx.scan(step, h, ROWS, **options)
    return nx.sum(h) + nx.sum(norms)


def counted(w, h, **options):
    return nx.sum(nx.fori(0, STEPS, lambda i, h: iteration(w, h, ROWS[i]), h, **options))


def bounded(w, h, **options):
    def body(state):
        h, i = state
        return iteration(w, h, ROWS[i]), i + 1

    # The loop ends before the bound is reached.
    return nx.sum(nx.while_loop(lambda s: s[1] < STEPS, body, (h, 0), max_trips=50, **options)[0])


def data_dependent(w, h, **options):
    """A loop with a trip count that depends on the data."""
    start = nx.sum(h * 0.0)

    def body(state):
        h, count, i = state
        return iteration(w, h, ROWS[i]), count + 1.0, i + 1

    return nx.sum(nx.while_loop(lambda s: s[1] < STEPS - 0.5, body, (h, start, 0), **options)[0])


@pytest.fixture(scope="module")
def expected():
    """Return the gradients and second derivatives of unrolled loops."""
    results = {}
    for loop in (scanned, counted):

        def unrolled(w, h, loop=loop):
            return loop(w, h, unroll=True)

        def direction(w, h, unrolled=unrolled):
            return nx.sum(nx.grad(unrolled)(w, h) * W)

        first = nx.grad(unrolled, argnums=(0, 1))(W, H)
        results[loop] = first, nx.grad(direction, argnums=1)(W, H)
    return results


@pytest.mark.parametrize("method", METHODS)
def test_gradient_methods_agree(method, compiler, expected):
    for loop in (scanned, counted, bounded, data_dependent):
        if loop is data_dependent and method in ("store", "recompute"):
            continue
        # Compiling takes long, so XLA runs only a scan and an unbounded loop.
        if compiler == "xla" and loop in (counted, bounded):
            continue
        first, second = expected[scanned if loop is scanned else counted]

        def differentiated(w, h, loop=loop):
            return loop(w, h, gradient=method)

        gradient = nx.jit(nx.grad(differentiated, argnums=(0, 1)), compiler=compiler)
        close(gradient(W, H), first)
        if compiler == "xla":
            continue
        if method in ("auto", "log") or loop is scanned:
            twice = nx.grad(lambda w, h, f=differentiated: nx.sum(nx.grad(f)(w, h) * W), argnums=1)
            close(nx.jit(twice, compiler=compiler)(W, H), second)
        change = nx.jvp(lambda w, f=differentiated: f(w, H), (W,), (W,))[1]
        close(change, nx.sum(first[0] * W))


@pytest.mark.parametrize("method", ["store", "recompute"])
def test_unbounded_loops_reject_store_and_recompute(method):
    with pytest.raises(nx.GradientError, match="known or bounded"):
        nx.grad(lambda w: data_dependent(w, H, gradient=method))(W)


@pytest.mark.parametrize("trips", [0, 1, 2, 15, 16, 17, 300])
def test_gradients_for_any_trip_count(trips, compiler):
    @nx.jit(compiler=compiler)
    def gradient(x, count):
        def power(x):
            def body(state):
                i, y = state
                return i + 1, nx.sin(y) * x

            return nx.while_loop(lambda s: s[0] < count, body, (0, x))[1]

        return nx.value_and_grad(power)(x)

    y, dy = 1.01, 1.0
    for _ in range(trips):
        sine = nx.sin(f64(y)).item()
        cosine = nx.cos(f64(y)).item()
        y, dy = sine * 1.01, cosine * dy * 1.01 + sine
    value, slope = gradient(f64(1.01), trips)
    assert value.item() == pytest.approx(y, rel=1e-9)
    assert slope.item() == pytest.approx(dy, rel=1e-9)


#: Loops without iterations.
EMPTY_LOOPS = {
    "empty range": lambda x, **options: nx.fori(0, 0, lambda i, c: c * c * x, x, **options),
    "range that ends before its start": lambda x, **options: nx.fori(
        5, 3, lambda i, c: c * c * x, x, **options
    ),
    "no elements": lambda x, **options: nx.for_each(range(0), lambda i, c: c * c * x, x, **options),
    "no rows": lambda x, **options: nx.for_each(
        nx.zeros((0, 2), dtype="f64"), lambda row, c: c * row * x, x, **options
    ),
    "no iterations allowed": lambda x, **options: nx.while_loop(
        lambda c: nx.any(c < 10.0), lambda c: c * c * x, x, max_trips=0, **options
    ),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", EMPTY_LOOPS)
def test_loops_without_iterations_pass_their_cotangents(name, method, compiler):
    x = f64([2.0, 3.0])

    def total(x):
        return nx.sum(EMPTY_LOOPS[name](x, gradient=method) * x)

    close(nx.jit(nx.value_and_grad(total), compiler=compiler)(x), (f64(13.0), x * 2.0))
    twice = nx.grad(lambda x: nx.sum(nx.grad(total)(x)))
    close(nx.jit(twice, compiler=compiler)(x), f64([2.0, 2.0]))
    close(nx.jvp(total, (x,), (x,))[1], f64(26.0))


def test_max_trips_ends_the_loop():
    def run(x):
        return nx.while_loop(lambda y: y < 1e9, lambda y: y * 2.0, x, max_trips=5)

    assert run(1.0).item() == 32.0
    assert nx.jit(nx.grad(run))(1.0).item() == 32.0
    assert nx.grad(run)(1e8).item() == 16.0
    rows = nx.vmap(nx.grad(run))(nx.tensor([1.0, 1e8, 1e10]))
    assert rows.tolist() == [32.0, 16.0, 1.0]
    with pytest.raises(nx.ArgumentError, match="max_trips"):
        nx.while_loop(lambda y: y < 1.0, lambda y: y, 0.0, max_trips=-1)
    with pytest.raises(nx.ArgumentError, match='gradient: must be one of "auto"'):
        nx.jit(lambda x: nx.while_loop(lambda y: y < 1.0, lambda y: y, x, gradient="some"))(2.0)


@pytest.mark.parametrize("method", METHODS)
def test_gradients_of_vmapped_bounded_loops(method, compiler):
    def run(x):
        return nx.while_loop(lambda y: y < 1e9, lambda y: y * 2.0, x, max_trips=5, gradient=method)

    xs = nx.tensor([1.0, 1e8, 1e10])
    for rows in (nx.vmap(run), nx.vmap(lambda x: nx.vmap(run)(x[None])[0])):
        gradient = nx.jit(nx.grad(lambda x, rows=rows: nx.sum(rows(x))), compiler=compiler)
        assert gradient(xs).tolist() == [32.0, 16.0, 1.0]


def test_gradient_bytes_selects_the_method():
    def loop_count_and_text(**options):
        expression = nx.debug_expr(nx.grad(lambda w: scanned(w, H, **options)))(W)
        return expression.op_counts()["while"], str(expression)

    # One forward loop with residuals, and one backward loop. No additional loop counts iterations.
    stored = loop_count_and_text()
    assert stored[0] == 2
    assert loop_count_and_text(gradient="store") == stored
    assert loop_count_and_text(gradient_bytes=1 << 20) == stored
    assert loop_count_and_text(gradient="recompute")[0] == 2
    states = STEPS * 2 * 8
    assert loop_count_and_text(gradient_bytes=states) == loop_count_and_text(gradient="recompute")
    assert loop_count_and_text(gradient_bytes=0)[1] != loop_count_and_text(gradient="recompute")[1]


@pytest.mark.parametrize("method", METHODS)
def test_hooks_in_loops_run_once(method):
    seen = []

    def run(x):
        def body(i, y):
            return nx.sin(nx.hook(y, lambda y: seen.append(1))) * x

        return nx.fori(0, 6, body, x, gradient=method)

    nx.jit(nx.grad(run))(0.5)
    assert len(seen) == 6


def test_gradients_of_nested_loops(compiler):
    def run(x, **options):
        def outer(i, y):
            inner = nx.fori(0, 3, lambda j, z: nx.sin(z) * x + j, y, **options)
            return nx.cos(inner) + y * x

        return nx.fori(0, 4, outer, x, **options)

    expected = nx.grad(lambda x: run(x, unroll=True))(f64(0.7))
    for method in METHODS if compiler == "evaluator" else ["auto", "sqrt"]:
        gradient = nx.jit(nx.grad(lambda x, m=method: run(x, gradient=m)), compiler=compiler)
        close(gradient(f64(0.7)), expected)


@pytest.mark.parametrize(
    "row_index",
    [
        lambda i: i,
        lambda i: 6 - i,
        lambda i: i - 1,
        lambda i: i + 3,
        lambda i: i // 2,
        lambda i: i * 2,
        lambda i: i * 0 + 2,
    ],
    ids=[
        "in order",
        "backwards",
        "before",
        "beyond the end",
        "twice",
        "every second row",
        "one row",
    ],
)
def test_gradients_of_rows_written_in_a_loop(row_index, compiler):
    def total(rows, xs):
        def body(i, rows):
            return nx.put_slice(rows, [row_index(i), 0], nx.reshape(nx.sin(xs[i]), (1, 2)))

        weights = nx.iota((7, 2), dtype="f64") + 1
        return nx.sum(nx.fori(1, 6, body, rows) ** 2 * weights)

    rows = np.linspace(-1, 1, 14).reshape(7, 2)
    xs = np.linspace(0.2, 2, 14).reshape(7, 2)
    with nx.default_options(compiler=compiler):
        nx.testing.check_grads(total, (rows, xs), order=2)


#: Updates of a bound and a step that a loop holds in its states.
UPDATES = {
    "unchanged": (lambda bound, i: bound, lambda step, i: step),
    "changing bound": (lambda bound, i: bound - i % 2, lambda step, i: step),
    "changing step": (lambda bound, i: bound, lambda step, i: step + i),
    "both changing": (lambda bound, i: bound - 1, lambda step, i: step + 1),
}
#: Counting up and down, with the condition, the sign of the step and the initial state.
DIRECTIONS = {
    "below": (lambda i, bound: i < bound, 1, (0, 10)),
    "up to": (lambda i, bound: i <= bound, 1, (0, 10)),
    "mirrored": (lambda i, bound: bound > i, 1, (0, 10)),
    "above": (lambda i, bound: i > bound, -1, (30, 18)),
}


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("updates", UPDATES)
def test_gradients_with_bounds_and_steps_in_states(updates, direction):
    holds, sign, (first, bound) = DIRECTIONS[direction]
    next_bound, next_step = UPDATES[updates]

    def body(state):
        i, bound, step, x = state
        return i + sign * step, next_bound(bound, i), next_step(step, i), nx.sin(x) * 2.0

    def run(x, **options):
        state = (nx.tensor(first), nx.tensor(bound), nx.tensor(1), x)
        return nx.while_loop(lambda s: holds(s[0], s[1]), body, state, **options)[3]

    def unrolled(x):
        state = (first, bound, 1, x)
        while holds(state[0], state[1]):
            state = body(state)
        return state[3]

    x = f64(0.7)
    with nx.default_options(compiler="evaluator"):
        close(nx.jit(run)(x), unrolled(x))
        expected = nx.grad(unrolled)(x)
        close(nx.jit(nx.grad(run))(x), expected)
        close(nx.jvp(run, (x,), (f64(1.0),))[1], expected)


def delay(levels, states):
    """Return nested loops whose iterations pass each state on to the next one."""
    inner = delay(levels - 1, states) if levels > 0 else lambda x: x

    def function(x):
        def body(state):
            count, values = state
            return count + 1, (inner(values[0]), *(value * 2.0 for value in values[:-1]))

        start = (nx.tensor(0), (x, *(x * 0.0 for _ in range(states - 1))))
        return nx.while_loop(lambda state: state[0] < states, body, start)[1][-1]

    return function


@pytest.mark.parametrize(("levels", "states"), [(1, 3), (2, 2), (3, 20), (12, 2)])
def test_analyses_of_nested_loops_visit_each_body_once(levels, states):
    # With a visit for each state that a loop makes active, the last two cases would take hours.
    f = delay(levels, states)
    for derivative in (nx.grad(f), lambda x: nx.jvp(f, (x,), (nx.ones_like(x),))[1]):
        expression = nx.debug_expr(derivative)(nx.template((), "f64"))
        if levels < 3:  # The functions are linear.
            assert expression.run(f64(0.5)).item() == f(f64(1.0)).item() != 0


def test_gradients_of_sequential_loops_share_nodes():
    def f(x):
        for _ in range(60):
            x = nx.fori(0, 3, lambda i, x: nx.sin(x) * x, x)
        return x

    gradient = nx.debug_expr(nx.grad(f))(nx.template((), "f64"))
    second = nx.debug_expr(nx.grad(nx.grad(f)))(nx.template((), "f64"))
    assert len(second.nodes) < 40 * len(gradient.nodes)
    x = f64(0.9)
    close(gradient.run(x), (f(x + 1e-7) - f(x - 1e-7)) / 2e-7, 1e-6)
