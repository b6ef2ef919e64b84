"""What is too small to be compiled is the evaluator's on a CPU: `compile_above`."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import nxla as nx
from where import DEVICE, on_cpu

pytestmark = on_cpu

X = np.linspace(-3.0, 3.0, 1000, dtype=np.float32)
BIG = np.linspace(-3.0, 3.0, 200_000, dtype=np.float32)
#: As it is where nobody says otherwise; the other tests have XLA do all.
USUAL = {"compiler": "xla", "compile_above": 500}


def rounded(x):
    """Numbers that the engines round in different ways."""
    return nx.sinh(x) * nx.tanh(x) + nx.log1p(x * x)


def by_xla(function, *args):
    return nx.jit(function, compiler="xla", compile_above=0)(*args).numpy()


def by_evaluator(function, *args):
    return nx.jit(function)(*args).numpy()


def test_engines_round_in_different_ways():
    """What tells the tests below who computed."""
    for x in (X, BIG):
        assert not np.array_equal(by_evaluator(rounded, x), by_xla(rounded, x))


def test_small_programs_are_the_evaluators_and_others_are_compiled():
    f = nx.jit(rounded, **USUAL)
    small, big = f(X), f(BIG)
    assert np.array_equal(small.numpy(), by_evaluator(rounded, X))
    assert np.array_equal(big.numpy(), by_xla(rounded, BIG))
    assert str(small.device) == str(big.device) == DEVICE


def test_the_limit_is_what_is_said():
    assert np.array_equal(
        nx.jit(rounded, compiler="xla", compile_above=1)(X).numpy(), by_xla(rounded, X)
    )
    assert np.array_equal(
        nx.jit(rounded, compiler="xla", compile_above=10**6)(BIG).numpy(),
        by_evaluator(rounded, BIG),
    )


@pytest.mark.parametrize("options", [{"kernels": False}, {"xla_cpu_enable_fast_math": False}])
def test_who_wants_xla_has_xla(options, monkeypatch):
    monkeypatch.delenv("NXLA_COMPILE_ABOVE")
    assert np.array_equal(
        nx.jit(rounded, compiler="xla", **options)(X).numpy(),
        nx.jit(rounded, compiler="xla", compile_above=0, **options)(X).numpy(),
    )
    assert np.array_equal(nx.jit(rounded, compiler="xla")(X).numpy(), by_evaluator(rounded, X))


def test_loops_are_compiled():
    def loop(x):
        return nx.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, rounded(s[1])), (0, x))[1]

    assert np.array_equal(nx.jit(loop, **USUAL)(X).numpy(), by_xla(loop, X))


def test_operations_at_once_are_small_programs_too():
    x = nx.device_put(X, DEVICE)
    with nx.default_options(**USUAL):
        y = nx.sinh(x)
    assert np.array_equal(y.numpy(), by_evaluator(nx.sinh, X))
    assert str(y.device) == DEVICE


def test_results_go_on_to_compiled_programs_and_back():
    small = nx.jit(lambda x: x * 2 + 1, **USUAL)
    compiled = nx.jit(lambda x: x - 1, compiler="xla", compile_above=0)
    x = nx.tensor(X)
    for _ in range(3):
        x = compiled(small(x))
    np.testing.assert_allclose(x.numpy(), X * 8, rtol=1e-5)


def test_what_no_program_wants_is_read_copied_and_freed():
    x = nx.jit(lambda x: x + 1, **USUAL)(X)
    y = x.to_device(DEVICE, copy=True)
    assert x.is_ready()
    assert x.tolist() == y.tolist() == (X + 1).tolist()
    assert not x.is_released()
    assert x.deallocate()
    assert x.is_released()
    assert not x.deallocate()
    assert y.tolist() == (X + 1).tolist()
    with pytest.raises(nx.NxlaError, match="released"):
        x.tolist()
    with pytest.raises(nx.NxlaError, match="released"):
        nx.jit(lambda x: x * 2, compiler="xla", compile_above=0)(x)


@pytest.mark.parametrize("size", [10, 100_000])
@pytest.mark.parametrize("above", [0, 10**6])
def test_donated_arguments_are_gone(size, above):
    first = nx.jit(lambda x: x + 1, **USUAL)(np.zeros(size, np.float32))
    kept = nx.jit(lambda x: x.reshape((-1, 1)), compiler="xla", compile_above=10**6)(first)
    f = nx.jit(lambda x: x * 3, compiler="xla", compile_above=above, donate_argnums=0)
    assert f(first).tolist() == [3.0] * size
    assert kept.tolist() == [[1.0]] * size
    with pytest.raises(nx.NxlaError, match="donated"):
        first.tolist()


def test_views_of_what_xla_computed_do_not_keep_it_from_being_donated():
    x = nx.jit(lambda x: x + 1, compiler="xla", compile_above=0)(np.zeros(100_000, np.float32))
    view = nx.jit(lambda x: x.reshape((100, 1000)), **USUAL)(x)
    on_host = nx.jit(lambda x: x.reshape((100, 1000)), compiler="evaluator")(x)
    step = nx.jit(lambda x: x * 3, compiler="xla", compile_above=0, donate_argnums=0)
    for _ in range(3):
        x = step(x)
    assert np.all(x.numpy() == 27.0)
    assert np.all(view.numpy() == 1.0)
    assert np.all(on_host.numpy() == 1.0)


def test_results_are_what_they_were_when_arguments_change():
    array = np.zeros(5000, np.float32)
    f = nx.jit(lambda x: x + 0, **USUAL)
    g = nx.jit(lambda x: x, **USUAL)
    y, z = f(array), g(array)
    array[:] = 7
    assert not y.numpy().any()
    assert not z.numpy().any()


def test_hooks_are_called():
    seen = []

    def look(x):
        return nx.hook(x * 2, "twice")

    f = nx.jit(look, **USUAL, hooks={"twice": lambda x: seen.append(x.tolist())})
    assert f(np.ones(2, np.float32)).tolist() == [2.0, 2.0]
    assert seen == [[2.0, 2.0]]


def test_names_and_vectorized_axes_stay():
    x = nx.tensor(np.ones((2, 3), np.float32), names=("a", "b"))
    assert nx.jit(lambda x: x + 1, **USUAL)(x).names == ["a", "b"]
    rows = nx.vectorize(nx.tensor(np.ones((2, 3), np.float32)), "row")
    assert nx.jit(lambda x: nx.sum(x), **USUAL)(rows).tolist() == [3.0, 3.0]


def test_errors_name_the_callers_line():
    with pytest.raises(nx.NxlaError, match="test_small_programs"):
        nx.jit(lambda x: x + np.ones(3, np.float32), **USUAL)(np.ones(2, np.float32))


def test_what_xla_says_of_a_program_is_known():
    compiled = [
        nx.jit(rounded, compiler="xla", compile_above=above).lower(X).compile()
        for above in (0, 100)
    ]
    first, second = (one.cost_analysis() for one in compiled)
    assert first == second


def test_many_threads_want_what_is_at_hand():
    compiled = nx.jit(lambda x: x * 2, compiler="xla", compile_above=0)
    compiled(X)
    with ThreadPoolExecutor(8) as pool:
        for _ in range(50):
            x = nx.jit(lambda x: x + 1, **USUAL)(X)
            for y in pool.map(lambda _, x=x: compiled(x).numpy(), range(8)):
                np.testing.assert_array_equal(y, (X + 1) * 2)


@pytest.mark.parametrize("wrong", [-1, "some", 1.5, True])
def test_no_number_of_microseconds(wrong):
    with pytest.raises(nx.OptionError, match="compile_above"):
        nx.jit(rounded, compiler="xla", compile_above=wrong)


def test_only_xla_compiles():
    with pytest.raises(nx.OptionError, match="compile_above"):
        nx.jit(rounded, compiler="evaluator", compile_above=1)


def test_functions_over_a_mesh_are_compiled():
    by_rows = nx.Mesh(data=2).sharding("data")
    with pytest.raises(nx.OptionError, match="compile_above"):
        nx.jit(rounded, in_shardings=by_rows, compile_above=1)(X)
    with nx.default_options(**USUAL):
        divided = nx.jit(rounded, in_shardings=by_rows)(X)
    np.testing.assert_allclose(np.asarray(divided), by_xla(rounded, X), rtol=1e-6)


@pytest.mark.parametrize(
    ("value", "expected"), [("0", "compiled"), ("100", "evaluated"), ("", "error"), ("x", "error")]
)
def test_the_environment_decides_where_nobody_does(value, expected):
    program = """
import numpy as np, nxla as nx
f = lambda x: nx.sinh(x) * nx.tanh(x) + nx.log1p(x * x)
x = np.linspace(-3.0, 3.0, 1000, dtype=np.float32)
try:
    found = nx.jit(f, compiler="xla")(x).numpy()
except nx.OptionError as error:
    assert "NXLA_COMPILE_ABOVE" in str(error)
    print("error")
else:
    same = np.array_equal(found, nx.jit(f)(x).numpy())
    print("evaluated" if same else "compiled")
"""
    environment = {**os.environ, "NXLA_COMPILE_ABOVE": value}
    ran = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == expected
