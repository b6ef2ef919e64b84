"""Jitted functions, gradients, containers and options."""

import dataclasses
import inspect
import os
import subprocess
import sys
from collections import namedtuple

import numpy as np
import pytest

import nxla as nx


def test_jit_returns_equal_results_on_every_compiler(compiler):
    f = nx.jit(lambda x, y: nx.sin(x) @ y + 1, compiler=compiler)
    x, y = np.ones((2, 3), np.float32), np.full((3, 4), 2.0, np.float32)
    np.testing.assert_allclose(np.asarray(f(x, y)), np.sin(x) @ y + 1, rtol=1e-6)


def test_gradients_of_several_variables(compiler):
    def loss(params, x):
        return nx.mean((x @ params["w"] + params["b"]) ** 2)

    params = {"w": np.ones((3, 2), np.float32), "b": np.zeros(2, np.float32)}
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    step = nx.jit(nx.value_and_grad(loss), compiler=compiler)
    value, gradient = step(params, x)
    out = x @ params["w"]
    np.testing.assert_allclose(value.item(), np.mean(out**2), rtol=1e-6)
    np.testing.assert_allclose(np.asarray(gradient["w"]), x.T @ out / out.size * 2, rtol=1e-5)
    np.testing.assert_allclose(np.asarray(gradient["b"]), out.sum(0) / out.size * 2, rtol=1e-5)


def test_nested_gradients():
    third = nx.grad(nx.grad(nx.grad(lambda x: x**4)))
    assert third(2.0).item() == 48.0


def test_a_captured_value_is_constant_for_the_gradient():
    f = nx.jit(lambda x: nx.grad(lambda t: t * x)(x))
    assert f(3.0).item() == 3.0


def test_containers_keep_their_structure():
    pair = namedtuple("pair", ["left", "right"])

    @dataclasses.dataclass
    class State:
        position: object
        speed: object

    f = nx.jit(lambda p, s, d: (pair(p.right, p.left), State(s.speed, s.position), [d["a"], None]))
    swapped, state, rest = f(pair(1, 2.0), State(3, 4), {"a": 5})
    assert (swapped.left.item(), swapped.right.item()) == (2.0, 1)
    assert (state.position.item(), state.speed.item()) == (4, 3)
    assert rest[0].item() == 5
    assert rest[1] is None


def test_calls_with_equal_types_share_a_cache_entry():
    f = nx.jit(lambda x: x + 1)
    f(1.0)
    f(2.0)
    assert f.cache_report()["misses"] == 1
    f(1)
    assert f.cache_report()["misses"] == 2


def test_static_arguments():
    f = nx.jit(lambda x, mode: x * 2 if mode == "double" else x, static_argnames=["mode"])
    assert f(3, mode="double").item() == 6
    assert f(3, mode="same").item() == 3


def test_jit_keeps_name_signature_and_docstring():
    def area(width, height=2.0):
        """Width times height."""
        return width * height

    jitted = nx.jit(area)
    assert jitted.__name__ == "area"
    assert jitted.__doc__ == "Width times height."
    assert str(inspect.signature(jitted)) == "(width, height=2.0)"


def test_default_options_are_restored():
    before = nx.default_options()
    with nx.default_options(compiler="xla"):
        assert nx.jit(lambda x: x + 1)(1.0).device != "host"
    assert nx.default_options() == before
    assert nx.jit(lambda x: x + 1)(1.0).device == "host"


def test_large_captured_tensors_become_inputs():
    table = nx.tensor(np.arange(10_000, dtype=np.float32))
    f = nx.jit(lambda i: nx.take(table, i))
    with pytest.warns(nx.CaptureWarning):
        assert f(77).item() == 77.0


def test_control_flow(compiler):
    @nx.jit(compiler=compiler)
    def collatz(n):
        def body(state):
            n, steps = state
            n = nx.cond(n % 2 == 0, lambda: n // 2, lambda: 3 * n + 1)
            return n, steps + 1

        return nx.while_loop(lambda state: state[0] != 1, body, (n, 0))[1]

    assert collatz(27).item() == 111


def test_hooks_run_in_order(compiler):
    seen = []

    def f(x):
        y = nx.hook(x + 1, "first", lambda v: seen.append(("first", v.item())))
        return nx.hook(y * 2, "second", lambda v: seen.append(("second", v.item())))

    assert nx.jit(f, compiler=compiler)(1).item() == 4
    assert seen == [("first", 2), ("second", 4)]


def test_runtime_calls_return_values(compiler):
    calls = []

    def divmod_(pair, k):
        calls.append(k.item())
        left, right = (np.asarray(x) for x in pair)
        return {"q": left // right, "r": left % right * k.item()}

    def f(x, y):
        like = {"q": nx.template((3,), nx.int32), "r": nx.template((3,), nx.int32)}
        result = nx.runtime_call(divmod_, like, (x, y), 10)
        return result["q"] + result["r"]

    x, y = nx.tensor([7, 8, 9]), nx.tensor([2, 3, 4])
    assert nx.jit(f, compiler=compiler)(x, y).tolist() == [13, 22, 12]
    assert f(x, y).tolist() == [13, 22, 12]
    assert calls == [10, 10]


def test_runtime_calls_inside_of_loops_and_branches(compiler):
    def double(v):
        return nx.tensor(v.item() * 2)

    @nx.jit(compiler=compiler)
    def f(x):
        def body(state):
            i, x = state
            x = nx.cond(
                i % 2 == 0, lambda: nx.runtime_call(double, nx.template((), nx.int32), x), lambda: x
            )
            return i + 1, x

        return nx.while_loop(lambda s: s[0] < 4, body, (0, x))[1]

    assert f(3).item() == 12


def test_runtime_calls_with_mismatched_results_raise(compiler):
    def f(x):
        return nx.runtime_call(lambda v: nx.zeros(3), nx.template((2,)), x)

    with pytest.raises(nx.ArgumentError, match=r"type f32\[2\] of template; got f32\[3\]"):
        nx.jit(f, compiler=compiler)(nx.ones(2))

    def g(x):
        return nx.runtime_call(lambda v: (v, v), nx.template((2,)), x)

    with pytest.raises(nx.ArgumentError, match="structure of template"):
        nx.jit(g, compiler=compiler)(nx.ones(2))


def test_an_exception_in_a_runtime_call_reaches_the_caller(compiler):
    def fail(value):
        raise LookupError("no such thing")

    f = nx.jit(lambda x: nx.runtime_call(fail, x, x) + 1, compiler=compiler)
    with pytest.raises(LookupError, match="no such thing"):
        f(1.0)
    assert nx.jit(lambda x: x + 1, compiler=compiler)(1.0).item() == 2.0


NESTED = """
import os, threading
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
import numpy as np
import nxla as nx

ones = np.ones((200, 200), np.float32)
scalar = nx.template(())
product = nx.jit(lambda x: nx.sum(x @ x) / 200**3, compiler="xla")
held = nx.jit(lambda x: x @ x / 200, compiler="xla")(ones)

def calls(function):
    zero = lambda x: 0 * nx.sum(x @ x)
    return nx.jit(lambda x: 1 + nx.runtime_call(function, scalar, zero(x)), compiler="xla")

once = calls(lambda v: product(ones * 1) + product(held))
twice = calls(lambda v: once(ones) + once(held) + np.asarray(held)[0, 0])
assert once(ones).item() == 3
assert twice(ones).item() == 8
threads = [threading.Thread(target=lambda: seen.append(twice(ones).item())) for _ in range(4)]
seen = []
for thread in threads: thread.start()
for thread in threads: thread.join()
assert seen == [8] * 4
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs to be bound to one core")
@pytest.mark.usefixtures("device")
def test_nested_runtime_calls_do_not_deadlock_on_one_core():
    # On one core XLA has a single thread, which waits for the call.
    subprocess.run([sys.executable, "-c", NESTED], check=True, timeout=120)


def identity_call(x):
    return nx.runtime_call(lambda v: v, x, x)


def in_scan(x):
    return nx.scan(lambda state, row: (identity_call(state) * row, row), x, nx.ones(3))[0]


def in_branch(x):
    return nx.cond(x > 0, lambda: identity_call(x), lambda: x)


def in_while_loop(x):
    return nx.while_loop(lambda y: y < 10.0, lambda y: identity_call(y) * 2.0, x)


DERIVATIVES = {
    "grad": nx.grad,
    "value_and_grad": nx.value_and_grad,
    "jacobian": nx.jacobian,
    "jacfwd": nx.jacfwd,
    "jacrev": nx.jacrev,
    "hessian": nx.hessian,
    "vjp": lambda f: lambda x: nx.vjp(f, x)[1](1.0),
    "jvp": lambda f: lambda x: nx.jvp(f, (x,), (1.0,)),
    "linearize": lambda f: lambda x: nx.linearize(f, x)[1](1.0),
}


@pytest.mark.parametrize("function", [identity_call, in_scan, in_while_loop, in_branch])
@pytest.mark.parametrize("derivative", DERIVATIVES)
def test_a_derivative_through_a_runtime_call_is_an_error(derivative, function):
    message = r"runtime_call: function: must have a derivative.*stop_grad.*custom_jvp"
    with pytest.raises(nx.GradientError, match=message + r".*\(test_functions\.py:\d+\)"):
        nx.jit(DERIVATIVES[derivative](function))(3.0)


def test_runtime_calls_with_stop_grad_or_custom_rules(compiler):
    @nx.custom_jvp
    def sine(x):
        return nx.runtime_call(np.sin, x, x)

    @sine.defjvp
    def rule(primals, tangents):
        return nx.cos(primals[0]) * tangents[0]

    @nx.custom_vjp
    def cosine(x):
        return nx.runtime_call(np.cos, x, x)

    cosine.defvjp(lambda x: (cosine(x), x), lambda x, cotangent: (-nx.sin(x) * cotangent,))
    integer = nx.template((), "s32")
    cases = [
        (lambda x: x * identity_call(nx.stop_grad(x)), 3.0),
        (lambda x: x * nx.stop_grad(identity_call(x)), 3.0),
        (lambda x: x * identity_call(nx.astype(x, "s32")), 3.0),
        (lambda x: x * nx.runtime_call(lambda v: nx.astype(v, "s32"), integer, x), 3.0),
        (lambda x: nx.where(identity_call(x) > 0, 2 * x, x), 2.0),
        (lambda x: nx.scan(lambda y, row: (sine(y) * row, row), x, nx.ones(1))[0], np.cos(3.0)),
        (cosine, -np.sin(3.0)),
    ]
    for index, (function, expected) in enumerate(cases):
        found = nx.jit(nx.grad(function), compiler=compiler)(3.0).item()
        assert found == pytest.approx(expected, rel=1e-6), index
        stages = nx.graph.split(nx.debug_expr(nx.grad(function))(3.0), lambda node: "before")
        found = nx.graph.run(list(stages), 3.0, compiler=compiler).item()
        assert found == pytest.approx(expected, rel=1e-6), index


def test_an_exception_in_a_hook_reaches_the_caller(compiler):
    def fail(value):
        raise LookupError("no such thing")

    f = nx.jit(lambda x: nx.hook(x, "look", fail), compiler=compiler)
    with pytest.raises(LookupError, match="no such thing"):
        f(1.0)
    assert nx.jit(lambda x: x + 1, compiler=compiler)(1.0).item() == 2.0
