"""Hooks: host functions that see values while a program runs."""

import gc
import threading
import weakref
from collections import OrderedDict

import pytest

import nxla as nx


def append_to(seen, label=None):
    return lambda v: seen.append(v.item() if label is None else (label, v.item()))


def test_hooks_in_control_flow_run_once_per_iteration(compiler):
    seen = []

    def f(x):
        nx.hook(x, append_to(seen, "start"))

        def body(i, s):
            s = nx.hook(s + i, append_to(seen, "trip"))
            return nx.cond(s > 2, lambda: nx.hook(s, append_to(seen, "large")), lambda: s)

        y = nx.fori(0, 4, body, x)
        return nx.hook(y, append_to(seen, "end"))

    assert nx.jit(f, compiler=compiler)(0).item() == 6
    assert seen == [
        ("start", 0), ("trip", 0), ("trip", 1), ("trip", 3), ("large", 3), ("trip", 6),
        ("large", 6), ("end", 6),
    ]  # fmt: skip


def test_unused_control_flow_with_hooks_is_kept(compiler):
    seen = []

    def f(x):
        nx.fori(0, 2, lambda i, s: nx.hook(s + i, append_to(seen, "loop")), x)
        nx.cond(x > 0, lambda: nx.hook(x, append_to(seen, "branch")), lambda: x)
        # Two equal loops with hooks are not merged.
        for _ in range(2):
            nx.while_loop(lambda s: s < 3, lambda s: nx.hook(s + 1, "named"), x)
        return x

    hooks = {"named": append_to(seen, "named")}
    assert nx.jit(f, compiler=compiler, hooks=hooks)(1).item() == 1
    named = [("named", 2), ("named", 3)]
    assert seen == [("loop", 1), ("loop", 2), ("branch", 1), *named, *named]


def test_hooks_without_listeners_are_removed(compiler):
    def f(x):
        nx.fori(0, 10**9, lambda i, s: nx.hook(s + i, "trip"), x)
        return x + 1

    # Running the loop would take seconds.
    assert nx.jit(f, compiler=compiler)(1).item() == 2


def test_calls_may_override_hook_functions(compiler):
    first, second, own = [], [], []

    def f(x):
        return nx.hook(x + 1, "x", append_to(own)) * 2

    before = nx.cache_report()["misses"]
    assert nx.jit_apply(f, 1, compiler=compiler).item() == 4
    assert nx.jit_apply(f, 2, compiler=compiler, hooks={"x": append_to(first)}).item() == 6
    assert nx.jit_apply(f, 3, compiler=compiler, hooks={"x": append_to(second)}).item() == 8
    g = nx.jit(f, compiler=compiler)
    with nx.default_options(hooks={"x": append_to(first)}):
        g(4)
    g(5)
    assert (own, first, second) == ([2, 6], [3, 5], [4])
    # The program does not contain the function.
    assert nx.cache_report()["misses"] - before <= 1


def test_hook_functions_are_not_kept_alive(compiler):
    class Listener:
        def __call__(self, value):
            pass

    def run():
        listener = Listener()
        nx.jit(lambda x: nx.hook(x * 3.25, listener), compiler=compiler)(1.0)
        nx.jit(lambda x: nx.hook(x * 3.5, "x"), compiler=compiler, hooks={"x": listener})(1.0)
        return weakref.ref(listener)

    reference = run()
    gc.collect()
    assert reference() is None


def test_equal_programs_call_their_own_functions(compiler):
    seen = []
    functions = [
        nx.jit(lambda x, n=n: nx.hook(x - 1, lambda v: seen.append(n)), compiler=compiler)
        for n in range(3)
    ]
    for f in (*functions, *functions):
        f(1.0)
    assert seen == [0, 1, 2, 0, 1, 2]


def test_hooks_of_equal_and_different_functions_are_distinct(compiler):
    seen = []
    a, b = (lambda v: seen.append("a")), (lambda v: seen.append("b"))

    def run(first, second):
        nx.jit(lambda x: nx.hook(nx.hook(x, first) + 1, second), compiler=compiler)(1)

    run(a, a)
    run(a, b)
    run(b, a)
    assert seen == ["a", "a", "a", "b", "b", "a"]


def test_hooks_receive_containers(compiler):
    seen = []

    def f(x):
        return nx.hook({"x": x, "pair": (x + 1, nx.tensor([1.0, 2.0]))}, seen.append)["pair"][0]

    assert nx.jit(f, compiler=compiler)(1).item() == 2
    assert seen[0]["x"].item() == 1
    assert seen[0]["pair"][1].tolist() == [1.0, 2.0]


class StopError(Exception):
    pass


def test_exceptions_in_hooks_end_the_program(compiler):
    seen = []

    def listen(value):
        seen.append(value.item())
        if value.item() == 3:
            raise StopError("at three")

    f = nx.jit(lambda x: nx.fori(0, 100, lambda i, s: nx.hook(s + 1, listen), x), compiler=compiler)
    for _ in range(2):
        with pytest.raises(StopError, match="at three"):
            f(0)
    assert seen == [1, 2, 3, 1, 2, 3]
    # The device still works after the error.
    assert nx.jit(lambda x: x + 1, compiler=compiler)(1).item() == 2


def test_exceptions_reach_the_thread_of_their_call(compiler):
    def listen(value):
        raise StopError(str(value.item()))

    f = nx.jit(lambda x: nx.hook(x, listen), compiler=compiler)
    wrong = []

    def call(n):
        for _ in range(20):
            try:
                f(n)
            except StopError as error:
                if str(error) != str(n):
                    wrong.append((n, str(error)))

    threads = [threading.Thread(target=call, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_hook_may_run_programs(compiler):
    seen = []

    def listen(value):
        inner = nx.jit(lambda v: nx.fori(0, 50, lambda i, s: s + v, 0.0), compiler=compiler)
        seen.append(inner(value).item())

    def f(x):
        return nx.fori(0, 40, lambda i, s: nx.hook(s + 1, listen), x)

    # Run more concurrent threads than a device has.
    threads = [threading.Thread(target=nx.jit(f, compiler=compiler), args=(0.0,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads)
    assert sorted(seen) == sorted(4 * [50.0 * n for n in range(1, 41)])


def test_print_value_applies_its_function(compiler, capsys):
    f = nx.jit(lambda x: nx.print_value(x, lambda x: x.tolist(), label="x") + 1, compiler=compiler)
    assert f(nx.tensor([1, 2])).tolist() == [2, 3]
    assert capsys.readouterr().out == "x: [1, 2]\n"
    with pytest.raises(nx.ArgumentError, match="print_value: function: must be a function; got a"):
        nx.print_value(1, "x")


def test_a_fast_program_waits_for_its_hooks():
    seen = []
    large = nx.zeros((1 << 20,))  # 4 MiB

    def f(x, n):
        def body(i, x):
            nx.hook(x, lambda v: seen.append(v.size))
            return x + 1

        return nx.fori(0, n, body, x)

    nx.jit(f, compiler="xla")(large, 100)
    assert seen == 100 * [1 << 20]


def test_gradients_call_hooks_once(compiler):
    seen = []
    f = nx.grad(lambda x: nx.fori(0, 3, lambda i, s: nx.hook(s * x, append_to(seen)), 1.0))
    assert nx.jit(f, compiler=compiler)(2.0).item() == pytest.approx(12.0)
    assert seen == [2.0, 4.0, 8.0]


def test_stages_run_loops_with_hooks_in_order(compiler):
    seen = []

    def f(x):
        y = nx.annotate(nx.sin(x), "cut")
        nx.fori(0, 2, lambda i, s: nx.hook(s, lambda v: seen.append("loop")), x)
        return nx.hook(nx.cos(y), lambda v: seen.append("after"))

    stages = nx.graph.split(nx.debug_expr(f)(1.0), lambda node: "after" if node.note else "none")
    nx.graph.run(stages, 1.0, compiler=compiler)
    assert seen == ["loop", "loop", "after"]


class Point:
    """A user-defined container."""

    def __init__(self, x, y):
        self.x, self.y = x, y


nx.register_container(Point, lambda p: ([p.x, p.y], None), lambda _, parts: Point(*parts))


@pytest.mark.parametrize("source", ["jit", "default options", "another default"])
def test_overriding_hook_functions_receive_containers(compiler, source):
    seen = []
    own = [] if source == "another default" else None

    def f(x):
        shown = {"b": x * 2, "a": [x + 1, Point(x, x - 1)], "c": OrderedDict(z=x, y=x * 3)}
        return nx.hook(shown, "state", *([] if own is None else [own.append]))["b"]

    if source == "jit":
        y = nx.jit(f, compiler=compiler, hooks={"state": seen.append})(3)
    else:
        with nx.default_options(compiler=compiler, hooks={"state": seen.append}):
            y = nx.jit(f)(3)
    assert y.item() == 6
    assert not own
    [shown] = seen
    assert shown.keys() == {"a", "b", "c"}
    first, point = shown["a"]
    assert (shown["b"].item(), first.item(), point.x.item(), point.y.item()) == (6, 4, 3, 2)
    assert isinstance(shown["c"], OrderedDict)
    assert [(name, value.item()) for name, value in shown["c"].items()] == [("z", 3), ("y", 9)]


def test_overriding_hook_functions_receive_vectorized_axes(compiler):
    seen = []
    x = nx.vectorize(nx.tensor([1.0, 2.0]), "batch")
    nx.jit(lambda x: nx.hook(x, "x") + 1, compiler=compiler, hooks={"x": seen.append})(x)
    nx.jit(lambda x: nx.hook((x,), "x")[0] + 1, compiler=compiler, hooks={"x": seen.append})(5)
    assert seen[0].vectorized_axes == x.vectorized_axes
    assert nx.devectorize(seen[0]).tolist() == [1.0, 2.0]
    assert isinstance(seen[1], tuple)
    assert seen[1][0].item() == 5


def test_named_hooks_of_containers_without_listeners_are_removed(compiler):
    def f(x):
        nx.fori(0, 10**9, lambda i, s: nx.hook({"s": s + i}, "trip")["s"], x)
        return x + 1

    assert nx.jit(f, compiler=compiler)(1).item() == 2
    gradient = nx.grad(lambda x: nx.hook({"y": x * x}, "y")["y"])
    seen = []
    with nx.default_options(compiler=compiler, hooks={"y": seen.append}):
        assert gradient(3.0).item() == 6
    assert [each["y"].item() for each in seen] == [9]


def test_hooks_of_stages_receive_containers(compiler):
    seen = []

    def f(x):
        return nx.hook({"doubled": x * 2}, "state")["doubled"] + 1

    stages = nx.graph.split(
        nx.debug_expr(f)(3.0), lambda node: "after" if node.op == "multiply" else "none"
    )
    with nx.default_options(compiler=compiler, hooks={"state": seen.append}):
        stages.run(3.0)
    assert [each["doubled"].item() for each in seen] == [6]


def test_runtime_calls_refuse_vectorized_values():
    x = nx.vectorize(nx.ones((2, 3)), "entry")
    calls = {
        "arguments: must not have vectorized axes": lambda x: nx.runtime_call(
            nx.sum, nx.template(()), x
        ),
        "must have the type f32 of template; got vectorized": lambda x: nx.runtime_call(
            lambda _: nx.vectorize(nx.ones(2), "entry"), nx.template(()), nx.devectorize(x)
        ),
    }
    for message, call in calls.items():
        for run in (call, nx.jit(call)):
            with pytest.raises(nx.NxlaError, match=message):
                run(x)


def test_infinitely_recursive_hooks_raise(compiler):
    f = nx.jit(lambda x: nx.hook(x, lambda x: f(x)), compiler=compiler)
    with pytest.raises(RecursionError):
        f(1.0)


def test_listeners_do_not_replace_runtime_calls(compiler):
    a = nx.tensor([[2.0, 1.0], [0.0, 3.0]])
    received = []
    f = nx.jit(nx.linalg.eig, compiler=compiler, hooks={"nx.linalg.eig": received.append})
    assert sorted(f(a).eigenvalues.numpy().real.tolist()) == [2.0, 3.0]
    assert received == []
