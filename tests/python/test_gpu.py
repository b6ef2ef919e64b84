"""NVIDIA GPUs: devices, memory, placement of results, hooks, and the precision of products.

The other tests of XLA run on a GPU too, with ``NXLA_TEST_PLATFORM=cuda``. This file tests the
statements of the guide "On a GPU" that a CPU cannot show.
"""

import gc
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import nxla as nx
from where import DEVICE, PLATFORM

pytestmark = pytest.mark.skipif(
    PLATFORM != "cuda", reason="needs an NVIDIA GPU: NXLA_TEST_PLATFORM=cuda"
)

#: Settings of the other tests that change the precision of products.
PRECISION_VARIABLES = ("NVIDIA_TF32_OVERRIDE", "XLA_FLAGS")


def run(code):
    """Run code in a process with the default settings of XLA, and return its output."""
    environment = {k: v for k, v in os.environ.items() if k not in PRECISION_VARIABLES}
    done = subprocess.run(
        [sys.executable, "-c", "import numpy as np\nimport nxla as nx\n" + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=300,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    return done.stdout


def test_the_devices_are_the_host_and_the_gpus():
    host, *gpus = nx.devices()
    assert host.platform == "host"
    assert [gpu.name for gpu in gpus] == [f"{PLATFORM}:{index}" for index in range(len(gpus))]
    assert all(gpu.platform == PLATFORM for gpu in gpus)
    assert gpus[0] == DEVICE
    assert gpus[0].kind


def test_memory_is_counted_by_the_plugin(device):
    stats = device.memory_stats()
    assert 0 <= stats["in_use"] < stats["limit"]
    x = nx.device_put(nx.ones((1 << 22,)), device)
    x.block_until_ready()
    assert device.memory_stats()["in_use"] >= 1 << 24
    assert device.memory_stats()["peak"] >= 1 << 24
    del x


def test_memory_is_allocated_on_demand():
    printed = run("""
        device = nx.devices()[1]
        x = nx.device_put(nx.ones((1 << 20,)), device)
        nx.jit(lambda x: nx.sum(x * 2), compiler="xla")(x).item()
        stats = device.memory_stats()
        print(stats.get("pool", stats["in_use"]), stats["limit"])
    """)
    reserved, limit = map(int, printed.split())
    assert reserved < limit / 10


def test_the_doctor_reports_the_driver_and_the_memory():
    command = [sys.executable, "-m", "nxla", "doctor", "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "NVIDIA GPUs" in done.stdout
    assert "driver " in done.stdout
    assert "preallocated" not in done.stdout


def test_live_tensors_are_counted_for_each_device(device):
    def live_memory():
        gc.collect()
        return nx.memory_report().get(device.name, {"bytes": 0, "tensors": 0})

    before = live_memory()
    x = nx.device_put(nx.ones((1 << 20,)), device)
    y = nx.jit(lambda x: x * 3, compiler="xla")(x)
    during = live_memory()
    assert during["bytes"] - before["bytes"] == 2 << 22
    assert during["tensors"] - before["tensors"] == 2
    assert during["peak"] >= during["bytes"]
    x.deallocate()
    assert live_memory()["bytes"] - before["bytes"] == 1 << 22
    del y
    assert live_memory()["bytes"] == before["bytes"]


def pairs(x):
    return nx.sum(nx.sort(x[:, None] * x[None, :], axis=1))


@pytest.mark.parametrize("compiler", ["xla", "auto"])
def test_too_large_programs_raise_with_the_source_line(compiler, device):
    x = nx.device_put(nx.ones((1 << 20,)), device)
    with pytest.raises(nx.OutOfMemoryError, match=r"f32\[1048576\]\[1048576\].*test_gpu\.py"):
        nx.jit(pairs, compiler=compiler)(x).block_until_ready()
    # The device and the process still work.
    assert nx.sum(x).item() == 1 << 20
    assert nx.jit(pairs, compiler=compiler)(x[:3]).item() == 9.0


def test_too_large_eager_results_raise(device):
    with pytest.raises(nx.OutOfMemoryError, match="cannot allocate"):
        nx.ones((1 << 44,), device=device).block_until_ready()
    assert nx.ones((4,), device=device).tolist() == [1.0] * 4


def step(weights, x):
    loss = nx.mean(nx.tanh(x @ weights) ** 2)
    return weights - 0.1 * loss, loss


@pytest.mark.parametrize("size", [2, 512], ids=["small", "large"])
def test_auto_keeps_arguments_and_results_on_the_device(size, device):
    weights, x = (nx.device_put(nx.ones((size, size)), device) for _ in range(2))
    f = nx.jit(step, compiler="auto")
    assert f.explain(weights, x).backend == "xla"
    assert "is not host memory" in f.explain(weights, x).reason
    before = nx.transfer_report()
    for _ in range(4):
        weights, loss = f(weights, x)
        assert (weights.device, loss.device) == (device, device)
    loss.block_until_ready()
    assert nx.transfer_report() == before
    assert f.cache_report()["backends"] == ["xla"]


def test_calls_run_on_the_device_of_their_arguments(device):
    weights, x = (nx.device_put(nx.ones((64, 64)), device) for _ in range(2))
    before = nx.transfer_report()
    weights, loss = nx.jit(step)(weights, x)
    slopes = nx.grad(lambda w: step(w, x)[1])(weights)
    eager = nx.exp(slopes @ x)[0] + 1
    for result in (weights, loss, slopes, eager):
        result.block_until_ready()
        assert result.device == device
    after = nx.transfer_report()
    assert after["read"] == before["read"]
    # The index and the number 1 are sent.
    assert after["sent"] - before["sent"] <= 16


def test_large_data_round_trips(device):
    data = np.random.default_rng(0).standard_normal((1 << 22,)).astype(np.float32)
    before = nx.transfer_report()
    moved = nx.device_put(data, device)
    data_before = data.copy()
    data[:] = 0.0
    np.testing.assert_array_equal(moved.numpy(), data_before)
    after = nx.transfer_report()
    assert after["sent"] - before["sent"] == data.nbytes
    assert after["read"] - before["read"] == data.nbytes


@pytest.mark.parametrize("compiler", ["xla", "auto"])
def test_hooks_run_in_order_with_their_values(compiler, device):
    seen = []

    def descend(x):
        def body(i, x):
            x = nx.hook(x * 0.5, lambda value: seen.append(("half", value.tolist())))
            return nx.hook(x + 1, lambda value: seen.append(("one", value.tolist())))

        return nx.fori(0, 3, body, x)

    result = nx.jit(descend, compiler=compiler)(nx.device_put(nx.tensor([2.0, 6.0]), device))
    assert result.tolist() == [2.0, 2.5]
    halves = [[1.0, 3.0], [1.0, 2.0], [1.0, 1.5]]
    expected = [("half", half) for half in halves]
    assert seen[::2] == expected
    assert seen[1::2] == [("one", [x + 1 for x in half]) for half in halves]


def test_results_of_runtime_calls_return_to_the_device(device):
    def f(x):
        doubled = nx.runtime_call(lambda v: v.numpy() * 2, nx.template((3,), "f32"), x)
        return doubled + 1

    x = nx.device_put(nx.tensor([1.0, 2.0, 3.0]), device)
    result = nx.jit(f, compiler="xla")(x)
    assert result.tolist() == [3.0, 5.0, 7.0]
    assert result.device == device


def test_products_use_tf32_unless_precision_is_highest():
    printed = run("""
        random = np.random.default_rng(0)
        a, b = (random.standard_normal((1024, 1024)).astype(np.float32) for _ in range(2))
        exact = a.astype(np.float64) @ b.astype(np.float64)
        for options in ({}, {"precision": "highest"}):
            found = nx.jit(nx.matmul, compiler="xla", **options)(a, b).numpy()
            print(np.linalg.norm(found - exact) / np.linalg.norm(exact))
    """)
    default, highest = map(float, printed.split())
    # TF32 has eleven bits, f32 has 24.
    assert 2**-14 < default < 2**-9
    assert highest < 2**-18


def test_several_processes_share_the_device(device):
    x = nx.device_put(nx.ones((1 << 20,)), device)
    printed = run("print(nx.sum(nx.ones((1 << 20,), device=nx.devices()[1])).item())")
    assert float(printed) == 1 << 20
    assert nx.sum(x).item() == 1 << 20
