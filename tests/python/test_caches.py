"""Tests of the number of compilations and of the reports about them."""

import gc
import logging
import re
import threading
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import nxla as nx
from nxla._signatures import BoundedCache


def misses():
    return nx.cache_report()["misses"]


def test_functions_report_their_compilations(compiler):
    f = nx.jit(lambda x: x * 2.125, compiler=compiler)
    f(1.0)
    f(2.0)
    f(nx.tensor([1.0, 2.0]))
    report = f.cache_report()
    assert (report["entries"], report["hits"], report["misses"]) == (2, 1, 2)
    assert len(set(report["digests"])) == 2
    assert report["bytes"] > 0
    f.clear_cache()
    assert f.cache_report()["entries"] == 0


def test_equal_programs_of_different_functions_compile_once(compiler):
    def make():
        return nx.jit(lambda x: nx.sin(x) * 5.125, compiler=compiler)

    class Model:
        def __call__(self, x):
            y = nx.sin(x)
            return y * 5.125

    before = misses()
    for _ in range(3):
        make()(1.0)
    nx.jit(Model(), compiler=compiler)(1.0)
    assert misses() - before == 1


@pytest.mark.usefixtures("device")
def test_threads_compile_a_shared_program_once():
    before = misses()

    def work():
        nx.jit(lambda x: nx.cos(x) * 6.125, compiler="xla")(1.0)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert misses() - before == 1


def test_concurrent_first_calls_leave_one_entry():
    barrier = threading.Barrier(2)

    def traced(x):
        barrier.wait(30)
        return x + 7

    f = nx.jit(traced)
    results = []
    threads = [threading.Thread(target=lambda: results.append(f(1).item())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [8, 8]
    report = f.cache_report()
    assert (report["entries"], report["misses"]) == (1, 2)


def test_concurrent_cache_misses_return_one_value():
    barrier, cache = threading.Barrier(2), BoundedCache()

    def make():
        barrier.wait(30)
        return object()

    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(lambda _: cache.get_or_make("key", make), range(2))
    assert first is second


def test_the_cache_limit_evicts_programs():
    f = nx.jit(lambda x: nx.fori(0, 3, lambda i, s: s * 1.5 + i, x))
    evictions = nx.cache_report()["evictions"]
    try:
        nx.set_cache_limit(1 << 16)
        for size in range(1, 60):
            f(nx.zeros((size,)))
        report = nx.cache_report()
        assert report["evictions"] > evictions
        assert report["bytes"] <= 1 << 16
        assert f.cache_report()["entries"] < 59
        # An evicted program is compiled again.
        assert f(nx.zeros((1,))).tolist() == [f(0.0).item()]
    finally:
        nx.set_cache_limit(512 << 20)
    with pytest.raises(nx.ArgumentError, match="set_cache_limit: size: must be at least 0; got -1"):
        nx.set_cache_limit(-1)


def test_evicted_programs_leave_reports_immediately(compiler):
    f = nx.jit(lambda x: nx.sin(x) * 7.125, compiler=compiler)
    g = nx.jit(lambda x: nx.cos(x) * 7.125, compiler=compiler)
    compiled = nx.compile(lambda x: nx.tan(x) * 7.125, [nx.template(())], compiler=compiler)
    for function in (f, g):
        function(0.0)
    (digest,) = f.cache_report()["digests"]
    before = nx.cache_report()
    try:
        # No compilation or call happens between the new limit and the reports.
        nx.set_cache_limit(0)
        for function in (f, g):
            report = function.cache_report()
            assert (report["entries"], report["bytes"], report["digests"]) == (0, 0, [])
        assert nx.cache_report()["bytes"] == 0
        assert nx.cache_report()["evictions"] > before["evictions"]
        # The next call compiles again, and evicts the other program.
        assert f(0.0).item() == 0
        assert (f.cache_report()["misses"], f.cache_report()["digests"]) == (2, [digest])
        assert g(0.0).item() == 7.125
        assert (f.cache_report()["entries"], g.cache_report()["entries"]) == (0, 1)
        assert compiled(0.0).item() == 0
        assert (g.cache_report()["entries"], g.cache_report()["bytes"]) == (0, 0)
    finally:
        nx.set_cache_limit(512 << 20)


def test_frequently_called_programs_are_not_evicted(compiler):
    often = nx.jit(lambda x: nx.sin(x) * 8.125, compiler=compiler)
    often(0.0)
    try:
        nx.set_cache_limit(0)
        often(0.0)
        size = often.cache_report()["bytes"]
        nx.set_cache_limit(3 * size + size // 2)
        others = [nx.jit(lambda x, k=k: nx.cos(x) * k, compiler=compiler) for k in (1.5, 2.5, 3.5)]
        for other in others:
            other(0.0)
            often(0.0)
        assert often.cache_report()["misses"] == 2
        assert [other.cache_report()["entries"] for other in others] == [0, 1, 1]
    finally:
        nx.set_cache_limit(512 << 20)


def test_excess_compilations_report_the_changed_argument():
    def f(x, y=None, mode="a"):
        return x * 2

    g = nx.jit(f, max_compiles=2, on_max_compiles="raise")
    g(nx.zeros((1,)))
    g(nx.zeros((2,)))
    g(nx.zeros((1,)))
    with pytest.raises(
        nx.ExecutionError,
        match=r"f: compiled 3 times, max_compiles is 2; .*argument 0 was f32\[2\], is f32\[3\]$",
    ):
        g(nx.zeros((3,)))
    # A rejected call does not become the previous call that an error compares with.
    for _ in range(2):
        with pytest.raises(nx.ExecutionError, match=r"argument 0 was f32\[2\], is f32\[3\]$"):
            g(nx.zeros((3,)))
    warned = nx.jit(f, max_compiles=1)
    warned(nx.zeros((1,)))
    with pytest.warns(nx.RecompileWarning, match=r"argument 'mode' was absent, is .*'b'"):
        warned(nx.zeros((1,)), mode="b")
    with pytest.warns(nx.RecompileWarning, match=r"argument 1.* was absent, is"):
        warned(nx.zeros((1,)), {"k": nx.zeros((2,))})


def test_too_many_compilations_can_be_logged(caplog):
    g = nx.jit(lambda x: x + 1, max_compiles=1, on_max_compiles="log")
    g(1)
    with caplog.at_level(logging.WARNING, "nxla"):
        g(1.5)
    assert "argument 0 was the int 1, is the float 1.5" in caplog.text


def test_compilation_limits_are_validated():
    with pytest.raises(nx.ArgumentError, match="max_compiles"):
        nx.jit(lambda x: x, max_compiles=0)
    with pytest.raises(nx.ArgumentError, match="'warn', 'raise', 'log'"):
        nx.jit(lambda x: x, max_compiles=1, on_max_compiles="panic")


@pytest.mark.parametrize(
    ("option", "values"),
    [
        ("max_compiles", [0, -1, "2", 1.5, True]),
        ("on_max_compiles", ["panic", "", [], 1, True]),
        ("on_unusable_donation", ["panic", "", [], 0, False]),
        ("debug_nans", ["x", "", [], 0, 1]),
    ],
)
def test_options_of_functions_are_checked(option, values):
    for value in values:
        with pytest.raises(nx.ArgumentError, match=f"jit: {option}: must be .*; got "):
            nx.jit(lambda x: x, **{option: value})
    assert nx.jit(lambda x: x, **{option: None})(1.0).item() == 1.0


def call_captured():
    large = nx.tensor(np.arange(1 << 16, dtype=np.float32))
    nx.jit(lambda x: nx.sum(large * x))(1.0)


def call_recompiled():
    f = nx.jit(lambda x: x * 2, max_compiles=1)
    [f(x) for x in (1.0, nx.ones(2))]


def call_donated():
    f = nx.jit(nx.sum, donate_argnums=0, on_unusable_donation="warn")
    f(nx.ones(3))


@pytest.mark.parametrize("call", [call_captured, call_recompiled, call_donated])
def test_warnings_show_the_line_of_the_call(call):
    with pytest.warns(UserWarning, match="hidden|compiled|donated") as caught:
        call()
    first = call.__code__.co_firstlineno
    assert [warning.filename for warning in caught] == [__file__]
    assert caught[0].lineno == first + 2


def test_large_captured_tensors_become_inputs_with_a_warning(compiler):
    table = np.arange(1 << 16, dtype=np.float32)
    large = nx.tensor(table)

    def f(x):
        return nx.sum(large * x)

    g = nx.jit(f, compiler=compiler)
    with pytest.warns(
        nx.CaptureWarning, match=r"f: the tensor f32\[65536\] of 256 KiB.*test_caches\.py:\d+"
    ):
        assert g(1.0).item() == pytest.approx(float(table.sum()))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        g(2.0)
        g(nx.tensor([1.0]))
        nx.jit(lambda x: x + nx.tensor([1.0, 2.0]), compiler=compiler)(1.0)
    before = misses()
    for fill in (2.0, 3.0):
        check_captured(compiler, fill)
    # The numbers are inputs of the program.
    assert misses() - before <= 1


def test_the_large_tensors_of_one_function_share_a_warning(compiler):
    weights = [nx.tensor(np.arange(size, dtype=np.float32)) for size in (1 << 16, 1 << 17)]
    more = nx.tensor(np.arange(1 << 16, dtype=np.float64))

    def f(x):
        total = nx.sum(x)
        for weight in weights:
            total = total + nx.sum(weight) * 0.0
        return total if x.dtype == nx.float32 else total + nx.sum(more)

    g = nx.jit(f, compiler=compiler)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        g(1.0)
        g(nx.ones(2))
        g(nx.ones(2, "f64"))
    texts = [str(warning.message) for warning in caught]
    assert [warning.category for warning in caught] == [nx.CaptureWarning] * 2, texts
    assert re.match(
        r"f: 2 tensors of 768 KiB, .*become hidden inputs; the largest is f32\[131072\] at "
        r"test_caches\.py:\d+; pass them as arguments",
        texts[0],
    )
    assert texts[1].startswith("f: the tensor f64[65536] of 512 KiB")


def check_captured(compiler, fill):
    filled = np.full((1 << 16,), fill, dtype=np.float32)
    # Equal elements would be stored as one number of the program instead of an input.
    filled[-1] = 0.0
    other = nx.tensor(filled)
    with pytest.warns(nx.CaptureWarning):
        assert nx.jit(lambda x: nx.sum(other * x), compiler=compiler)(1.0).item() == fill * (
            (1 << 16) - 1
        )


@pytest.mark.filterwarnings("ignore:.*becomes a hidden input")
def test_the_cache_limit_evicts_captured_tensors():
    apply = nx.jit(lambda function, x: function(x), compiler="evaluator")
    x = nx.ones(1 << 16)

    def scaled(number):
        offsets = nx.arange(1 << 16) + number
        function = lambda x: nx.min(x + offsets)  # noqa: E731
        assert apply(function, x).item() == 1 + number
        return weakref.ref(function)

    often = lambda x: nx.max(x) + 1  # noqa: E731
    functions = []
    nx.set_cache_limit(8 << 20)
    try:
        for number in range(100):
            functions.append(scaled(number))
            assert apply(often, x).item() == 2.0
        gc.collect()
    finally:
        nx.set_cache_limit(512 << 20)
    live = [number for number, function in enumerate(functions) if function() is not None]
    assert 20 < live[0] < 99
    # A function that is called again and again stays compiled.
    assert apply.cache_report()["misses"] == 101
