"""Profiles, logs of compilations, and memory reports."""

import gc
import json
import logging
import subprocess
import sys
import threading
import time
import traceback

import pytest

import nxla as nx
from where import PLATFORM


def events(file):
    with open(file, encoding="utf-8") as opened:
        return json.load(opened)["traceEvents"]


def event_names(file, **fields):
    found = [e for e in events(file) if all(e.get(key) == value for key, value in fields.items())]
    return [event["name"] for event in found]


def test_profile_records_all_events(tmp_path, device):
    file = tmp_path / "trace.json"
    x = nx.ones(2000, device="host")

    def shown(x):
        return nx.sum(x * 7.0625)

    with nx.profile(file):
        f = nx.jit(shown, compiler="xla", device=device)
        assert f(x).item() == 14125.0
        nx.jit(lambda x: nx.sin(x) - 9.0625, stages=nx.graph.Policy.every_ops(1))(1.0)
        # A thread of the plugin reports the end of a run, which may take a moment.
        time.sleep(0.05)
    calls = event_names(file, cat="call", ph="X")
    assert calls == ["call shown", "call <lambda>"]
    assert "trace shown" in event_names(file, cat="trace")
    assert {"lower to StableHLO", "compile by XLA"} <= set(event_names(file, cat="compile"))
    assert {"copy to device", "read from device"} <= set(event_names(file, cat="transfer"))
    assert len(event_names(file, cat="stage")) >= 2
    # The device records the start and the end of a run.
    started, ended = event_names(file, ph="b"), event_names(file, ph="e")
    assert len(started) == len(ended) >= 1
    assert str(device) in [e["args"]["name"] for e in events(file) if e["name"] == "thread_name"]
    (copied,) = [e for e in events(file) if e["name"] == "copy to device"]
    assert copied["args"]["bytes"] == "8000"
    (call,) = [e for e in events(file) if e["name"] == "call shown"]
    assert call["ts"] <= copied["ts"] <= copied["ts"] + copied["dur"] <= call["ts"] + call["dur"]


def test_profile_excludes_calls_outside_of_it(tmp_path):
    f = nx.jit(lambda x: x - 5.0625)
    f(1.0)
    with nx.profile(tmp_path / "trace.json"):
        pass
    f(1.0)
    assert event_names(tmp_path / "trace.json", ph="X") == []


def test_profile_distinguishes_threads(tmp_path):
    f = nx.jit(lambda x: x - 4.0625)
    f(1.0)
    with nx.profile(tmp_path / "trace.json"):
        threads = [threading.Thread(target=f, args=(1.0,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    calls = [event for event in events(tmp_path / "trace.json") if event["name"] == "call <lambda>"]
    assert len({event["tid"] for event in calls}) == 3


def test_nested_profiles_raise(tmp_path):
    with nx.profile(tmp_path / "outer.json"):
        with (
            pytest.raises(nx.ExecutionError, match="another profile is active"),
            nx.profile(tmp_path / "inner.json"),
        ):
            pass
        nx.jit(lambda x: x - 3.0625)(1.0)
    assert "call <lambda>" in event_names(tmp_path / "outer.json")
    with pytest.raises(OSError, match="nowhere"), nx.profile(tmp_path / "nowhere" / "x.json"):
        pass
    with pytest.raises(ZeroDivisionError), nx.profile(tmp_path / "failed.json"):
        raise ZeroDivisionError
    assert events(tmp_path / "failed.json")


def test_compilations_are_logged(caplog):
    def noted(x):
        return x - 2.0625

    f = nx.jit(noted)
    with caplog.at_level(logging.DEBUG, logger="nxla"):
        f(1.0)
        f(2.0)
    (record,) = caplog.records
    assert record.name == "nxla"
    assert record.getMessage().startswith("noted: traced in ")
    assert f.cache_report()["digests"][0][:8] in record.getMessage()
    caplog.clear()
    nx.jit(lambda x: x - 1.0625)(1.0)
    assert not caplog.records


def test_unused_modules_are_not_imported():
    program = (
        "import sys, nxla as nx; nx.jit(lambda x: x + 1)(1.0); "
        "print([m for m in ('logging', 'nxla.ahead', 'nxla._doctor') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_memory_report_counts_live_tensors(device):
    nx.jit(lambda x: x, device=device)(1.0)

    def usage():
        return nx.memory_report()[device.name]

    before = usage()
    x = nx.ones(5000, device=device)
    assert usage()["bytes"] - before["bytes"] == 20000
    assert usage()["tensors"] - before["tensors"] == 1
    y = nx.jit(lambda x: x + 1)(x)
    assert usage()["bytes"] - before["bytes"] == 40000
    assert usage()["peak"] >= before["bytes"] + 40000
    x.deallocate()
    assert usage()["bytes"] - before["bytes"] == 20000
    z = nx.jit(lambda y: y + 1, donate_argnums=0)(y)
    assert usage()["bytes"] - before["bytes"] == 20000
    del x, y, z
    assert usage()["bytes"] == before["bytes"]
    assert usage()["tensors"] == before["tensors"]


def resident():
    """Return the memory of the process in bytes, by the operating system."""
    with open("/proc/self/statm", encoding="ascii") as opened:
        return int(opened.read().split()[1]) * 4096


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("work", ["operations", "calls", "compilations"])
def test_repeated_work_does_not_leak(work, device):
    x = nx.ones(64, device=device)
    f = nx.jit(lambda x: nx.sin(x) + 1)

    def run_once(number):
        if work == "operations":
            _ = (x + 1.5) * x
        elif work == "calls":
            f(x)
        else:
            nx.jit(lambda x: x * (number + 0.3125), compiler="xla")(x)

    def usage():
        (x + 1.5).block_until_ready()
        return nx.memory_report()[device.name]["tensors"], nx.memory_report()[device.name]["bytes"]

    count = 12 if work == "compilations" else 2000
    nx.set_cache_limit(1 << 20)
    try:
        for number in range(count):
            run_once(number)
        before, memory = usage(), resident()
        for number in range(count):
            run_once(-1 - number)
        assert usage() == before
        # A leak of one small tensor per iteration would exceed the limit.
        assert resident() - memory < (24 << 20 if work == "compilations" else 2 << 20)
    finally:
        nx.set_cache_limit(512 << 20)


def test_tracker_reports_live_tensors_with_their_line(device):
    before = nx.ones(7)
    with nx.track_tensors() as tracker, nx.track_tensors() as inner:
        live = [nx.ones((3, 5), device=device) for _ in range(4)]
        donated = nx.ones(6, device=device)
        freed = nx.ones(6)
    after = nx.ones(8)
    assert inner.live()[0].bytes == 240
    del freed
    nx.jit(lambda x: x + 1, donate_argnums=0)(donated)
    (found,) = tracker.live()
    assert (found.type, found.count, found.bytes) == ("f32[3][5]", 4, 240)
    assert found.device == device.name
    assert "test_observability.py:" in found.line
    table = str(tracker).splitlines()
    assert len(table) == 2
    assert table[0].split() == ["bytes", "tensors", "type", "device", "line"]
    assert (before.shape, after.shape, len(live)) == ((7,), (8,), 4)
    del live
    assert tracker.live() == []


def test_tracker_covers_threads_and_drops_freed_tensors():
    with nx.track_tensors() as tracker:
        live = []
        threads = [
            threading.Thread(target=lambda: live.extend(nx.ones(2) for _ in range(2000)))
            for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        for _ in range(20_000):
            nx.tensor(1.0)
        for thread in threads:
            thread.join()
        assert sum(group.count for group in tracker.live()) == 6000


def test_only_the_failed_call_in_flight_raises(compiler):
    def checked(x):
        def look(value):
            if value.item() == 3:
                raise ValueError("three")
            return value

        return nx.runtime_call(look, nx.template(()), x) * 2

    f = nx.jit(checked, compiler=compiler)
    results = []
    for number in range(1, 11):
        try:
            results.append(f(float(number)))
        except ValueError as error:
            results.append(error)
    assert [isinstance(result, ValueError) for result in results].index(True) == 2
    lines = traceback.extract_tb(results[2].__traceback__)
    assert any(line.line == "results.append(f(float(number)))" for line in lines)
    del results[2]
    assert [result.item() for result in results] == [2, 4, 8, 10, 12, 14, 16, 18, 20]


def test_calls_are_asynchronous(device):
    x = nx.ones((600, 600), device=device) / 600

    def powers(x):
        y = x
        for _ in range(6):
            y = y @ x
        return y

    f = nx.jit(powers)
    f(x).block_until_ready()
    results = [f(x) for _ in range(10)]
    assert not all(result.is_ready() for result in results)
    for result in results:
        assert nx.sum(result).item() == pytest.approx(600, rel=1e-3)
        assert result.is_ready()


# --- the backend that ran ---


@pytest.mark.parametrize("name", ["evaluator", "xla", "auto"])
def test_functions_profiles_and_logs_name_the_backend(name, tmp_path, caplog):
    def work(x):
        return nx.sin(x) * 0.40625

    f = nx.jit(work, compiler=name)
    assert repr(f) == "<nxla function work>"
    caplog.set_level("DEBUG", logger="nxla")
    file = tmp_path / "trace.json"
    with nx.profile(file):
        f(nx.ones(7))
    # The evaluator cannot access the memory of a GPU, so `auto` runs every call on XLA.
    backend = "xla" if name == "xla" or (name, PLATFORM) == ("auto", "cuda") else "evaluator"
    assert repr(f) == f"<nxla function work on {backend}>"
    assert f.cache_report()["backends"] == [backend]
    assert f.explain(nx.ones(7)).backend == backend
    assert any(f"for {backend}: " in record.getMessage() for record in caplog.records)
    events = json.loads(file.read_text(encoding="utf-8"))["traceEvents"]
    calls = [event for event in events if event["name"] == "call work"]
    assert [event["args"]["backend"] for event in calls] == [backend]
    if backend == "xla":
        assert any(event["name"].endswith("on xla") for event in events)
    nx.jit(work, compiler="xla")(nx.ones(3))
    g = nx.jit(work)
    with nx.default_options(compiler="xla"):
        g(nx.ones(2))
    g(nx.ones(2))
    assert repr(g) == "<nxla function work on evaluator and xla>"


def test_log_suggests_xla_once_for_slow_programs():
    program = (
        "import nxla as nx\n"
        "f = nx.jit(lambda x: nx.fori(0, 10_000_000, lambda i, y: nx.sin(y), x))\n"
        "t = nx.template((2, 2))\n"
        "f.warm_up(t)\n"
        "nx.jit(lambda x: f(x) + 1).warm_up(t)\n"
        "nx.jit(lambda x: x + 1)(1.0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    (line,) = done.stderr.splitlines()
    assert 'compiler="auto"' in line
    assert "nx.explain" in line
    quiet = program.splitlines()
    quiet = "\n".join([*quiet[:1], quiet[1][:-1] + ', compiler="evaluator")', *quiet[2:4]])
    done = subprocess.run([sys.executable, "-c", quiet], capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_memory_report_counts_host_tensors():
    before = nx.memory_report()["host"]
    x = nx.ones((1000, 10))
    y = nx.reshape(x, (10, 1000))  # Both tensors share memory.
    usage = nx.memory_report()["host"]
    assert usage["bytes"] - before["bytes"] == 40_000
    assert usage["tensors"] - before["tensors"] == 1
    assert usage["peak"] >= usage["bytes"]
    z = x * 2.5
    assert nx.memory_report()["host"]["bytes"] - before["bytes"] >= 80_000
    del x, y, z
    gc.collect()
    assert nx.memory_report()["host"]["bytes"] - before["bytes"] < 40_000


def large(x):
    rows = nx.broadcast_to(x, (1 << 21, 1 << 20))
    return nx.sort(rows + nx.sin(rows), axis=0)


@pytest.mark.parametrize("name", ["evaluator", "xla", "auto"])
def test_out_of_memory_error_names_operation_and_line(name):
    rows = r"f32\[2097152\]\[1048576\].*test_observability"
    with pytest.raises(nx.OutOfMemoryError, match=rows) as e:
        nx.jit(large, compiler=name)(1.0).block_until_ready()
    assert isinstance(e.value, MemoryError)
    wide = nx.ones((1 << 20, 1))
    with pytest.raises(nx.OutOfMemoryError, match=r"f32\[1048576\]\[1048576\].*test_observability"):
        nx.jit(lambda x: nx.matmul(x, x.T), compiler=name)(wide).block_until_ready()
