"""The evaluator does the first calls, and XLA those that follow: `compile_after`."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import nxla as nx
from where import PLATFORM

X = np.linspace(-3.0, 3.0, 4096, dtype=np.float32)


def rounded(x):
    """Numbers that the engines round in different ways."""
    return nx.sinh(x) * nx.tanh(x) + nx.log1p(x * x)


def by(compiler):
    """What one engine gives, whatever options are in force."""
    options = {"compile_after": 0} if compiler == "xla" else {}
    return nx.jit(rounded, compiler=compiler, **options)(X).numpy()


def is_by(compiler, result):
    return np.array_equal(result.numpy(), by(compiler))


def test_engines_round_in_different_ways():
    """What tells the tests below who computed."""
    assert not np.array_equal(by("evaluator"), by("xla"))
    np.testing.assert_allclose(by("evaluator"), by("xla"), rtol=1e-5)


@pytest.mark.parametrize("after", [0, 1, 3])
def test_calls_are_counted(after):
    f = nx.jit(rounded, compiler="xla", compile_after=after)
    results = [f(X) for _ in range(after + 3)]
    assert [is_by("evaluator", result) for result in results] == [True] * after + [False] * 3
    assert all(is_by("xla", result) for result in results[after:])
    assert {result.device.platform for result in results} == {PLATFORM}


def test_each_signature_is_counted_by_itself():
    f = nx.jit(lambda x: (rounded(x), x), compiler="xla", compile_after=1)
    assert is_by("evaluator", f(X)[0])
    assert f(X[:7])[1].tolist() == X[:7].tolist()
    assert is_by("xla", f(X)[0])


def test_defaults_count_too():
    f = nx.jit(rounded)
    with nx.default_options(compiler="xla", compile_after=1):
        assert is_by("evaluator", f(X))
        assert is_by("xla", f(X))
    with nx.default_options(compiler="xla"):
        assert is_by("xla", f(X))


def test_what_is_compiled_ahead_is_compiled():
    f = nx.jit(rounded, compiler="xla", compile_after=5)
    compiled = f.lower(X).compile()
    assert is_by("xla", compiled(X))
    assert compiled.memory_analysis()["arguments"] == X.nbytes


def test_hooks_are_called_by_both():
    seen = []

    def look(x):
        return nx.hook(nx.hook(x * 2, lambda v: seen.append(v.item())), "named")

    hooks = {"named": lambda v: seen.append(-v.item())}
    f = nx.jit(look, compiler="xla", compile_after=1, hooks=hooks)
    assert [f(i).item() for i in range(3)] == [0, 2, 4]
    assert seen == [0, 0, 2, -2, 4, -4]


def test_what_is_donated_is_gone_after_either():
    f = nx.jit(lambda x: x + 1, compiler="xla", compile_after=1, donate_argnums=0)
    for _ in range(2):
        x = nx.jit(lambda x: x * 1, compiler="xla")(X)
        assert f(x).tolist() == (X + 1).tolist()
        with pytest.raises(nx.DeviceError, match="donated"):
            x.numpy()


def test_names_and_vectorized_axes_are_kept():
    f = nx.jit(lambda x: x * 2, compiler="xla", compile_after=1)
    named = nx.tensor(np.ones((2, 3)), names=["rows", "columns"])
    vectors = nx.vectorize(nx.tensor(np.ones((2, 3))), "batch")
    for _ in range(2):
        assert f(named).names == ["rows", "columns"]
        assert f(vectors).vectorized_axes == vectors.vectorized_axes


def test_stages_are_compiled_after_the_same_calls():
    f = nx.jit(rounded, compiler="xla", compile_after=1, stages="auto")
    assert is_by("evaluator", f(X))
    np.testing.assert_allclose(f(X).numpy(), by("xla"), rtol=1e-6)


def test_a_mistake_of_the_compiler_is_told_to_who_needs_it():
    f = nx.jit(rounded, compiler="xla", compile_after=1, xla_cpu_no_such_flag=True)
    assert is_by("evaluator", f(X))
    for _ in range(2):
        with pytest.raises(nx.DeviceError, match="xla_cpu_no_such_flag"):
            f(X)


def test_threads_share_the_count():
    f = nx.jit(rounded, compiler="xla", compile_after=4)
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(f, [X] * 24))
    assert sum(is_by("evaluator", result) for result in results) == 4
    assert sum(is_by("xla", result) for result in results) == 20


@pytest.mark.parametrize("wrong", [-1, "soon", True, 1.5])
def test_it_is_a_number_of_calls(wrong):
    with pytest.raises(nx.OptionError, match="compile_after"):
        nx.jit(rounded, compiler="xla", compile_after=wrong)


def test_only_a_compiler_that_is_slow_has_it():
    with pytest.raises(nx.OptionError, match="compile_after"):
        nx.jit(rounded, compiler="evaluator", compile_after=1)


def test_a_mesh_has_no_place_for_the_evaluator():
    by_rows = nx.Mesh(data=2).sharding("data")
    with pytest.raises(nx.OptionError, match="compile_after"):
        nx.jit(rounded, in_shardings=by_rows, compile_after=1)(X)
    with nx.default_options(compiler="xla", compile_after=1):
        divided = nx.jit(rounded, in_shardings=by_rows)(X)
    np.testing.assert_allclose(np.asarray(divided), by("xla"), rtol=1e-6)


ONE_CALL = """
import nxla as nx

f = nx.jit(lambda x: nx.scan(lambda c, _: (nx.sin(nx.cumulative_sum(c)), c), x, length=9)[0],
           compiler="xla", compile_after=1)
print(f(nx.ones(50)).shape, flush=True)
"""


def test_a_process_may_end_while_xla_compiles():
    command = [sys.executable, "-c", ONE_CALL]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "(50,)\n", "")
