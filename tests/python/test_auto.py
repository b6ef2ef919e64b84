"""The compiler `auto`: the backend of a call, which only the last digits of results show."""

import dataclasses
import functools
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import nxla as nx
from where import DEVICE, PLATFORM, on_cpu

pytestmark = on_cpu

SMALL = np.linspace(-3.0, 3.0, 1000, dtype=np.float32)
#: A cost above `compile_above`.
MIDDLE = np.linspace(-3.0, 3.0, 1_000_000, dtype=np.float32)


def rounded(x):
    """Return digits that differ between the backends."""
    return nx.sinh(x) * nx.tanh(x) + nx.log1p(x * x)


def repeats(steps):
    """Return a function with a loop of small steps whose digits differ between the backends."""

    def function(x):
        number = nx.fori(0, steps, lambda _, value: value * 0.5 + 1.0, nx.sum(x) * 0)
        return rounded(x) + number * 0

    return function


def compute_on(compiler, function=rounded, x=SMALL):
    return nx.jit(function, compiler=compiler)(x).numpy()


def backend_of(result, function=rounded, x=SMALL):
    """Return which backend has computed a result."""
    (found,) = (
        name
        for name in ("evaluator", "xla")
        if np.array_equal(result, compute_on(name, function, x))
    )
    return found


def test_backends_round_differently():
    """The tests below distinguish backends by the last digits of results."""
    for x in (SMALL, MIDDLE):
        assert not np.array_equal(compute_on("evaluator", x=x), compute_on("xla", x=x))
        np.testing.assert_allclose(compute_on("evaluator", x=x), compute_on("xla", x=x), rtol=1e-5)


#: Programs of every size, with the number of compilations that the plugin counts. They run in a
#: separate process, because compilations of earlier tests may still be in progress in this one.
COUNT_PROGRAMS = """
import numpy as np
import nxla as nx
from nxla import _core

x = np.linspace(-3.0, 3.0, 500_001, dtype=np.float32)

def rounded(x):
    return nx.sinh(x) * nx.tanh(x) + nx.log1p(x * x)

functions = {
    "a number": (lambda x: x + 0.125, 1.0),
    "nothing to compute": (lambda x: x, x[:11]),
    "small": (rounded, x[:13]),
    "a sort": (lambda x: nx.sort(x), x[:17]),
    "a factorization": (lambda x: nx.linalg.qr(x)[1], np.eye(3, dtype=np.float32) * 7),
    "a loop": (lambda x: nx.fori(0, 3, lambda _, s: s * 1.5, x), x[:19]),
    "a reduction": (lambda x: nx.sum(x), x[:21]),
    "large": (rounded, x),
}
for name, (function, argument) in functions.items():
    before = _core._plugin_report()
    f = nx.jit(function, compiler="xla")
    f(argument).block_until_ready()
    after = _core._plugin_report()
    counts = {key: after[key] - before[key] for key in after}
    assert counts == {"compiled": 1, "started": 1}, (name, counts)
    assert f.cache_report()["backends"] == ["xla"], name
    assert f.explain(argument).backend == "xla", name
print("counted")
"""


def test_xla_compiles_every_program():
    command = [sys.executable, "-c", COUNT_PROGRAMS]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "counted\n"), done.stderr


def test_small_programs_run_on_the_evaluator():
    f = nx.jit(rounded, compiler="auto")
    for _ in range(4):
        assert backend_of(f(SMALL)) == "evaluator"
    assert str(f(SMALL).device) == DEVICE
    assert f.cache_report()["backends"] == ["evaluator"]


@pytest.mark.parametrize("after", [None, 0, 1, 3])
def test_first_calls_run_on_the_evaluator(after):
    options = {} if after is None else {"compile_after": after}
    function = repeats(5_000)
    f = nx.jit(function, compiler="auto", **options)
    backends, explained = [], []
    for _ in range(5):
        explained.append(f.explain(SMALL).backend)
        backends.append(backend_of(f(SMALL), function))
    first = 2 if after is None else after
    assert backends == ["evaluator"] * first + ["xla"] * (5 - first)
    assert explained == backends
    assert f.cache_report()["backends"] == ["xla"]


def test_compile_options_move_programs_to_xla():
    for options, backends in (
        ({}, ["evaluator"] * 3),
        ({"compile_above": 500}, ["evaluator", "evaluator", "xla"]),
        ({"compile_after": 1}, ["evaluator", "xla", "xla"]),
    ):
        f = nx.jit(rounded, compiler="auto", **options)
        assert [backend_of(f(MIDDLE), x=MIDDLE) for _ in range(3)] == backends


def test_calls_are_counted_per_function_and_signature():
    options = {"compiler": "auto", "compile_above": 0, "compile_after": 1}
    for _ in range(2):
        f = nx.jit(rounded, **options)
        assert backend_of(f(SMALL)) == "evaluator"
        f(SMALL[:7])
        assert backend_of(f(SMALL)) == "xla"


def newton(x):
    """Return square roots by a loop of unknown length."""
    error = lambda y: nx.max(nx.abs(y * y - x))  # noqa: E731
    return nx.while_loop(lambda y: error(y) > 1e-3, lambda y: (y + x / y) / 2, x)


def test_slow_loops_of_small_steps_start_on_xla():
    x = np.linspace(1.0, 3.0, 8, dtype=np.float32)
    explanation = nx.explain(nx.jit(newton, compiler="auto"), x)
    assert (explanation.backend, explanation.estimated) == ("xla", None)
    assert "iterations" in explanation.reason
    scanned = nx.jit(repeats(1_000_000))
    with nx.default_options(compiler="auto"):
        explanation = scanned.explain(SMALL)
    assert explanation.backend == "xla"
    assert explanation.estimated > 0.25


def test_argument_shapes_select_the_backend():
    """The shapes decide which backend runs a function."""

    def function(x):
        number = nx.fori(0, x.shape[0] ** 2, lambda _, value: value * 0.5 + 1.0, nx.sum(x) * 0)
        return rounded(x) + number * 0

    f = nx.jit(function, compiler="auto")
    backends = {}
    for size in (8, 16, 100, 1000):
        x = np.linspace(-3.0, 3.0, size, dtype=np.float32)
        explained = [f.explain(x)]
        results = [f(x)]
        explained.append(f.explain(x))
        results.append(f(x))
        explained.append(f.explain(x))
        results.append(f(x))
        backends[size] = [explanation.backend for explanation in explained]
        expected = np.sinh(x) * np.tanh(x) + np.log1p(x * x)
        for result in results:
            assert str(result.device) == DEVICE
            np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5, atol=1e-6)
    assert backends[8] == backends[16] == ["evaluator"] * 3
    assert backends[100] == ["evaluator", "evaluator", "xla"]
    assert backends[1000] == ["xla"] * 3


LARGE_STEPS = {
    "functions": rounded,
    "integers": lambda x: nx.floor(x).astype(nx.int32) @ nx.ones((300, 300), nx.int32),
    "products": lambda x: nx.tanh(x @ x) @ x,
    "a loop of products": lambda x: nx.scan(lambda c, _: (c @ x, None), x, length=10)[0],
    "a loop of unknown length": lambda x: newton(nx.abs(x) + 1),
    "branches": lambda x: nx.cond(nx.sum(x) > 0, nx.sinh, nx.tanh, x),
    "many small operations": lambda x: functools.reduce(lambda y, _: y[1:], range(290), x @ x),
}


@pytest.mark.parametrize("function", LARGE_STEPS.values(), ids=LARGE_STEPS)
def test_programs_with_large_steps_stay_on_the_evaluator(function):
    x = np.random.default_rng(0).normal(size=(300, 300)).astype("f4") / 20
    f = nx.jit(function, compiler="auto")
    for _ in range(4):
        explanation = f.explain(x)
        assert explanation.backend == "evaluator"
        assert re.search("loops of small steps|the estimate is at most", explanation.reason)
        assert str(f(x).device) == DEVICE
    assert f.lower(x).compile().memory_analysis()["arguments"] == x.nbytes


def test_explanations_have_estimated_and_measured_times():
    f = nx.jit(rounded, compiler="auto", compile_after=1, compile_above=0)
    before = nx.explain(f, SMALL)
    assert before.measured == {}
    assert 0 < before.estimated < 5e-4
    assert "call 1" in before.reason
    for _ in range(3):
        f(SMALL).block_until_ready()
    after = nx.explain(f, SMALL)
    assert set(after.measured) == {"evaluator", "xla"}
    assert all(0 < seconds < 10 for seconds in after.measured.values())
    assert str(after).startswith("xla: ")
    assert "estimated on the evaluator" in str(after)


def test_other_compilers_are_explained():
    assert nx.explain(rounded, SMALL).backend == "evaluator"
    assert "on the host" in nx.explain(rounded, SMALL).reason
    on_device = nx.device_put(SMALL, DEVICE)
    explanation = nx.explain(rounded, on_device)
    assert explanation.backend == "xla"
    assert DEVICE in explanation.reason
    assert nx.explain(nx.jit(rounded, compiler="evaluator"), SMALL).reason.startswith("the options")


#: Arguments and options on both sides of each limit of `auto`.
CASES = {
    "small": (SMALL, {}),
    "not small": (SMALL, {"compile_above": 0}),
    "middle": (MIDDLE, {"compile_above": 500}),
    "one call": (SMALL, {"compile_above": 0, "compile_after": 1}),
    "immediately": (SMALL, {"compile_above": 0, "compile_after": 0}),
}


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


def calls(case, function=rounded, **options):
    """Return the results of three calls of a function; XLA may run the last call."""
    x, limits = case
    f = nx.jit(function, compiler="auto", **limits, **options)
    return [f(x) for _ in range(3)]


def test_results_match_xla_in_value_and_device(case):
    for result in calls(case):
        np.testing.assert_allclose(result.numpy(), compute_on("xla", x=case[0]), rtol=1e-5)
        assert str(result.device) == DEVICE


def test_donated_arguments_are_consumed(case):
    x, limits = case
    f = nx.jit(rounded, compiler="auto", donate_argnums=0, **limits)
    make = nx.jit(lambda x: x * 1, compiler="xla")
    for _ in range(4):
        argument = make(x)
        np.testing.assert_allclose(f(argument).numpy(), compute_on("xla", x=x), rtol=1e-5)
        with pytest.raises(nx.NxlaError, match="donated"):
            argument.numpy()


def test_hooks_are_called(case):
    seen = []

    def hooked(x):
        shown = nx.hook(x[0], lambda v: seen.append(v.item()))
        return nx.hook(rounded(x) + shown * 0, "named")

    hooks = {"named": lambda v: seen.append(v.shape)}
    calls(case, hooked, hooks=hooks)
    assert seen == [-3.0, case[0].shape] * 3


def test_errors_of_hooks_are_raised(case):
    def fail(_):
        raise ValueError("of the user")

    x, limits = case
    f = nx.jit(lambda x: rounded(nx.hook(x, fail)), compiler="auto", **limits)
    for _ in range(4):
        with pytest.raises(ValueError, match="of the user"):
            f(x)


def test_results_can_be_copied_and_freed(case):
    for result in calls(case):
        copy = result.to_device(DEVICE, copy=True)
        expected = result.numpy().copy()
        assert result.deallocate()
        assert not result.deallocate()
        with pytest.raises(nx.NxlaError, match="deallocated or donated"):
            result.tolist()
        with pytest.raises(nx.NxlaError, match="deallocated or donated"):
            nx.jit(lambda x: x * 2, compiler="xla")(result)
        np.testing.assert_array_equal(copy.numpy(), expected)


def test_results_do_not_change_with_arguments(case):
    x, limits = case
    array = x.copy()
    f = nx.jit(lambda x: (x, rounded(x)), compiler="auto", **limits)
    for _ in range(3):
        array[:] = x
        same, other = f(array)
        array[:] = 7
        np.testing.assert_array_equal(same.numpy(), x)
        np.testing.assert_allclose(other.numpy(), compute_on("xla", x=x), rtol=1e-5)


def test_names_and_vectorized_axes_are_kept(case):
    x, limits = case
    rows = x.reshape((10, -1))
    f = nx.jit(rounded, compiler="auto", **limits)
    g = nx.jit(nx.sum, compiler="auto", **limits)
    for _ in range(3):
        assert f(nx.tensor(rows, names=("a", "b"))).names == ["a", "b"]
        sums = g(nx.vectorize(nx.tensor(rows), "row"))
        assert sums.vectorized_axes == (("row", 10),)
    with pytest.raises(nx.NxlaError, match="test_auto"):
        nx.jit(lambda x: x + np.ones(3, np.float32), compiler="auto", **limits)(x)


def test_stages_and_streams_match_xla(case):
    x, limits = case
    for result in calls(case, stages="auto"):
        np.testing.assert_allclose(result.numpy(), compute_on("xla", x=x), rtol=1e-5)
    stream = nx.stream(
        lambda x, total: (total, total + nx.sum(rounded(x))),
        nx.template(x.shape, nx.float32),
        np.float32(0),
        compiler="auto",
        **limits,
    )
    for _ in range(4):
        stream.send(x)
    for step in range(4):
        expected = step * compute_on("xla", x=x).sum(dtype=np.float64)
        assert stream.recv().item() == pytest.approx(expected, rel=1e-3)
    stream.done()


def test_views_do_not_prevent_donation():
    x = nx.jit(lambda x: x + 1, compiler="xla")(np.zeros(100_000, np.float32))
    view = nx.jit(lambda x: x.reshape((100, 1000)), compiler="auto")(x)
    on_host = nx.jit(lambda x: x.reshape((100, 1000)), compiler="evaluator")(x)
    step = nx.jit(lambda x: x * 3, compiler="xla", donate_argnums=0)
    for _ in range(3):
        x = step(x)
    assert np.all(x.numpy() == 27.0)
    assert np.all(view.numpy() == 1.0)
    assert np.all(on_host.numpy() == 1.0)


def test_threads_share_the_call_count():
    f = nx.jit(rounded, compiler="auto", compile_above=0, compile_after=4)
    with ThreadPoolExecutor(8) as pool:
        backends = [backend_of(result) for result in pool.map(f, [SMALL] * 24)]
    assert sorted(backends) == ["evaluator"] * 4 + ["xla"] * 20


def test_programs_compiled_ahead_run_on_xla():
    f = nx.jit(rounded, compiler="auto", compile_after=5)
    compiled = f.lower(MIDDLE).compile()
    assert backend_of(compiled(MIDDLE), x=MIDDLE) == "xla"
    assert compiled.memory_analysis()["arguments"] == MIDDLE.nbytes
    of_xla = nx.jit(rounded, compiler="xla").lower(SMALL).compile()
    assert f.lower(SMALL).compile().cost_analysis() == of_xla.cost_analysis()


def test_eager_operations_follow_the_defaults():
    with nx.default_options(compiler="auto"):
        y = nx.sinh(nx.device_put(SMALL, DEVICE))
    assert backend_of(y, nx.sinh) == "evaluator"
    assert str(y.device) == DEVICE


@pytest.mark.parametrize("compiler", ["xla", "auto"])
def test_flags_of_xla_are_checked_before_the_first_call_runs(compiler):
    options = {"compiler": compiler, "donate_argnums": 0}
    x = nx.device_put(SMALL, DEVICE)
    for flag in ({"xla_cpu_no_such_flag": True}, {"xla_cpu_enable_fast_math": "perhaps"}):
        f = nx.jit(rounded, **options, **flag)
        for _ in range(2):
            with pytest.raises(nx.OptionError, match=next(iter(flag))):
                f(x)
    assert x.tolist() == SMALL.tolist()
    right = nx.jit(rounded, **options, xla_cpu_enable_fast_math=True)
    assert right(x).tolist() == pytest.approx(rounded(SMALL).tolist())


@pytest.mark.parametrize("name", ["compile_above", "compile_after"])
def test_options_of_auto_are_rejected_by_other_compilers(name):
    for compiler in ("evaluator", "xla"):
        with pytest.raises(nx.OptionError, match=f'{name}.*compiler="auto"'):
            nx.jit(rounded, compiler=compiler, **{name: 1})
    with pytest.raises(nx.OptionError, match=name):
        nx.jit(rounded, **{name: 1})
    by_rows = nx.Mesh(data=2).sharding("data")
    with pytest.raises(nx.OptionError, match=name):
        nx.jit(rounded, in_shardings=by_rows, **{name: 1})(SMALL)
    for wrong in (-1, "soon", True, 1.5):
        with pytest.raises(nx.OptionError, match=name):
            nx.jit(rounded, compiler="auto", **{name: wrong})


def test_sharded_functions_are_compiled():
    by_rows = nx.Mesh(data=2).sharding("data")
    with nx.default_options(compiler="auto", compile_after=1):
        divided = nx.jit(rounded, in_shardings=by_rows)(SMALL)
    np.testing.assert_allclose(np.asarray(divided), compute_on("xla"), rtol=1e-6)


def test_host_or_missing_plugin_selects_the_evaluator(tmp_path):
    f = nx.jit(rounded, compiler="auto", device="host")
    assert f.explain(MIDDLE).backend == "evaluator"
    assert str(f(MIDDLE).device) == "host"
    program = """
import nxla as nx
f = nx.jit(lambda x: nx.sin(x) + 1, compiler="auto")
print(f(0.0).item(), f(0.0).device, f.explain(0.0).backend, f.explain(0.0).reason, sep="; ")
"""
    script = f"import nxla.plugins as plugins\nplugins.find = lambda: None\n{program}"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"PATH": "/usr/bin:/bin"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "1.0; host; evaluator; no XLA plugin is installed"


ONE_CALL = """
import nxla as nx

f = nx.jit(lambda x: nx.scan(lambda c, _: (nx.sin(nx.cumulative_sum(c)), c), x, length=9)[0],
           compiler="auto", compile_after=1)
print(f(nx.ones(50)).shape, flush=True)
"""


def test_a_process_may_end_while_xla_compiles():
    command = [sys.executable, "-c", ONE_CALL]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "(50,)\n", "")


def test_no_environment_variable_changes_a_compiler():
    assert PLATFORM == "cpu"
    assert not {"NXLA_COMPILER", "NXLA_COMPILE_ABOVE", "NXLA_MALLOC_THRESHOLDS"} & set(os.environ)


def test_a_jitted_method_is_explained():
    @dataclasses.dataclass(frozen=True)
    class Scale:
        factor: float

        @nx.jit(compiler="evaluator")
        def run(self, x):
            return x * self.factor

    explanation = nx.explain(Scale(2.0).run, 1.0)
    assert explanation.reason == Scale(2.0).run.explain(1.0).reason
