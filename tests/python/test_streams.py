"""Streams: order, state, back-pressure, and all ways to end."""

import asyncio
import contextlib
import gc
import sys
import threading
import time
import weakref
from concurrent.futures import CancelledError
from pathlib import Path

import numpy as np
import pytest

import nxla as nx

SCALAR = nx.template((), nx.int32)


def sums(compiler="evaluator", **options):
    return nx.stream(lambda x, s: (s, s + x), SCALAR, 0, compiler=compiler, **options)


def threads():
    """Return the number of threads of this process that run steps of streams."""
    names = Path("/proc/self/task").glob("*/comm")
    count = 0
    for name in names:
        # A thread may end while its state is read.
        with contextlib.suppress(OSError):
            count += name.read_text().strip() == "nxla stream"
    return count


def eventually(holds):
    """Return whether a condition holds within seconds; earlier threads may still be running."""
    deadline = time.monotonic() + 10
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.01)
    return holds()


def copy_to_device(value):
    return nx.jit(lambda x: x, compiler="xla")(value)


def test_documentation_example_of_streams(compiler):
    stream = sums(compiler)
    found = []
    for x in range(1, 6):
        stream.send(x)
        found.append(stream.recv().item())
    assert (*found, stream.done().item()) == (0, 1, 3, 6, 10, 15)


def test_results_arrive_in_order(compiler):
    stream = sums(compiler)
    for x in range(1, 6):
        stream.send(x)
    deferred = stream.recv_deferred()
    assert [result.item() for result in stream] == [1, 3, 6, 10]
    assert deferred.result(10).item() == 0
    assert stream.done().item() == 15
    assert stream.done().item() == 15


def test_containers_and_constants(compiler):
    def step(x, state, scale):
        return {"y": x["a"] * scale}, (state[0] + 1, x["a"])

    template = {"a": nx.template((2,))}
    stream = nx.stream(step, template, (0, nx.zeros((2,))), 10.0, compiler=compiler)
    stream.send({"a": nx.tensor([1.0, 2.0])})
    assert stream.recv()["y"].tolist() == [10.0, 20.0]
    count, last = stream.done()
    assert (count.item(), last.tolist()) == (1, [1.0, 2.0])


def test_over_keeps_few_chunks_in_flight(compiler):
    stream = sums(compiler, bound=3)
    assert [result.item() for result in stream.over(range(100))][-1] == sum(range(99))
    assert stream.done().item() == sum(range(100))


def test_asynchronous_iteration():
    async def main():
        stream = sums()
        for x in range(1, 4):
            stream.send(x)
        return [result.item() async for result in stream]

    assert asyncio.run(main()) == [0, 1, 3]


def test_full_stream_blocks_senders():
    stream = sums(bound=2)
    stream.send(1)
    stream.send(2)
    with pytest.raises(TimeoutError):
        stream.send(3, timeout=0.05)
    sender = threading.Thread(target=stream.send, args=(3,))
    sender.start()
    time.sleep(0.05)
    assert sender.is_alive()
    assert stream.recv().item() == 0
    sender.join(10)
    assert not sender.is_alive()
    assert [stream.recv().item(), stream.recv().item()] == [1, 3]


def test_invalid_calls_raise():
    stream = sums()
    with pytest.raises(TimeoutError, match="not available yet"):
        stream.recv(timeout=0.01)
    with pytest.raises(nx.ArgumentError, match="stream: chunk: must be s32; got f32"):
        stream.send(1.5)
    stream.send(1)
    with pytest.raises(nx.ExecutionError, match="1 results have not been received"):
        stream.done()
    stream.recv()
    stream.done()
    with pytest.raises(nx.ExecutionError, match="all results have been received"):
        stream.recv()
    with pytest.raises(nx.ExecutionError, match="done"):
        stream.send(1)
    with pytest.raises(nx.ArgumentError, match="must return"):
        nx.stream(lambda x, s: x, SCALAR, 0)
    with pytest.raises(nx.ArgumentError, match="must return a state like the old one"):
        nx.stream(lambda x, s: (x, s * 1.5), SCALAR, nx.tensor(0))
    with pytest.raises(nx.ArgumentError, match="bound"):
        sums(bound=0)


def test_failing_step_ends_the_stream(compiler):
    def look(value):
        if value.item() == 2:
            raise ZeroDivisionError("two")

    stream = nx.stream(lambda x, s: (nx.hook(x, look), s + x), SCALAR, 0, compiler=compiler)
    for x in range(1, 5):
        stream.send(x) if x < 3 else None
    assert stream.recv().item() == 1
    with pytest.raises(ZeroDivisionError, match="two"):
        stream.recv()
    with pytest.raises(ZeroDivisionError):
        stream.send(3)
    with pytest.raises(ZeroDivisionError):
        stream.done()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_cancellation_drops_waiting_chunks():
    before = threads()
    go = threading.Event()
    stream = nx.stream(lambda x, s: (nx.hook(x, lambda v: go.wait(10)), s + x), SCALAR, 0)
    with stream:
        for x in range(3):
            stream.send(x)
        time.sleep(0.05)
    go.set()
    assert stream.recv().item() == 0
    with pytest.raises(CancelledError):
        stream.recv()
    with pytest.raises(CancelledError):
        stream.send(1)
    assert eventually(lambda: threads() <= before)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_collected_stream_ends_its_thread():
    before = threads()
    streams = [sums() for _ in range(5)]
    assert eventually(lambda: threads() >= 5)
    del streams
    gc.collect()
    assert eventually(lambda: threads() <= before)


def test_other_calls_run_while_a_stream_is_open(compiler):
    stream = sums(compiler)
    f = nx.jit(lambda x: nx.fori(0, 10, lambda i, s: s + i, x), compiler=compiler)
    for x in range(20):
        stream.send(x)
        assert f(x).item() == x + 45
    assert [result.item() for result in stream][-1] == sum(range(19))
    assert stream.done().item() == sum(range(20))


def test_the_state_stays_on_the_device():
    stream = sums("xla")
    stream.send(1)
    stream.recv()
    assert stream.done().device != "host"


def test_concurrent_senders():
    stream = nx.stream(lambda x, s: (x, s + x), SCALAR, 0, bound=5)
    received = []

    sender = [
        threading.Thread(target=lambda: [stream.send(1) for _ in range(25)]) for _ in range(2)
    ]
    for thread in sender:
        thread.start()
    deadline = time.monotonic() + 30
    while len(received) < 50 and time.monotonic() < deadline:
        try:
            received.append(stream.recv().item())
        except nx.ExecutionError:
            time.sleep(0.001)
    for thread in sender:
        thread.join(10)
    assert received == 50 * [1]
    assert stream.done().item() == 50


def test_concurrent_receivers_get_each_result_once():
    stream = nx.stream(lambda x, s: (x, s), SCALAR, 0)
    for x in range(60):
        stream.send(x)
    received = []

    def receive():
        received.extend(stream.recv().item() for _ in range(20))

    receivers = [threading.Thread(target=receive) for _ in range(3)]
    for thread in receivers:
        thread.start()
    for thread in receivers:
        thread.join(30)
    assert sorted(received) == list(range(60))


def test_recv_after_a_timeout():
    go = threading.Event()
    stream = nx.stream(lambda x, s: (nx.hook(x, lambda v: go.wait(10)), s + x), SCALAR, 0)
    stream.send(7)
    with pytest.raises(TimeoutError):
        stream.recv(timeout=0.05)
    go.set()
    assert stream.recv(timeout=10).item() == 7


def test_deferred_results_raise_errors_of_steps():
    def look(value):
        if value.item() == 2:
            raise ZeroDivisionError("two")

    stream = nx.stream(lambda x, s: (nx.hook(x, look), s), SCALAR, 0)
    stream.send(1)
    stream.send(2)
    first, second = stream.recv_deferred(), stream.recv_deferred()
    assert first.result(10).item() == 1
    with pytest.raises(ZeroDivisionError, match="two"):
        second.result(10)
    with pytest.raises(nx.ExecutionError, match="all results have been received"):
        stream.recv_deferred()


def test_operands_select_the_device_of_a_stream():
    on_host = nx.stream(lambda x, s: (s, s + x), SCALAR, 0)
    on_host.send(1)
    assert on_host.recv().device == "host"

    by_state = nx.stream(lambda x, s: (s, s + x), SCALAR, copy_to_device(1))
    by_state.send(1)
    assert by_state.recv().device != "host"
    assert by_state.done().device != "host"

    by_chunk = nx.stream(lambda x, s: (s, s + x), SCALAR, 0)
    by_chunk.send(1)
    by_chunk.send(copy_to_device(2))
    by_chunk.send(3)
    devices = [result.device == "host" for result in by_chunk]
    assert devices == [True, False, False]
    state = by_chunk.done()
    assert (state.device != "host", state.item()) == (True, 6)


def test_arguments_select_the_device_of_compiled_functions():
    compiled = nx.compile(lambda x: x + 1, [SCALAR])
    assert compiled(1).device == "host"
    assert compiled(copy_to_device(1)).device != "host"
    assert compiled(copy_to_device(2)).item() == 3
    assert compiled(1).device == "host"


def test_freed_results_do_not_affect_a_stream():
    stream = sums("xla")
    for x in range(5):
        stream.send(x)
        stream.recv().deallocate()
    assert stream.done().item() == 10


def test_cancelled_task_leaves_its_result_in_the_stream():
    async def main():
        go = threading.Event()
        stream = nx.stream(lambda x, s: (nx.hook(x, lambda v: go.wait(10)), s), SCALAR, 0)
        stream.send(5)

        async def first():
            results = aiter(stream)
            return await anext(results)

        task = asyncio.create_task(first())
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go.set()
        return await first()

    assert asyncio.run(main()).item() == 5


def test_reference_cycles_with_streams_are_collected():
    class Model:
        def __init__(self):
            self.stream = sums()
            self.itself = self

    model = Model()
    seen = weakref.ref(model)
    del model
    gc.collect()
    assert seen() is None


def test_scalar_states_take_the_dtypes_of_the_step(compiler):
    with nx.default_options(compiler=compiler):
        total = nx.stream(lambda x, s: (s, s + x), nx.template((), "f32"), 0)
        assert [result.item() for result in total.over([0.5, 1.0])] == [0.0, 0.5]
        assert total.done().dtype == nx.float32

        def step(x, state):
            return state["n"], {"n": state["n"] + 1, "mean": state["mean"] * 0.5 + x}

        means = nx.stream(step, nx.template((), "f64"), {"n": 0, "mean": 0})
        chunks = [nx.tensor(chunk, "f64") for chunk in (1.0, 2.0)]
        assert [result.item() for result in means.over(chunks)] == [0, 1]
        last = means.done()
        assert (last["n"].dtype, last["mean"].dtype) == (nx.int32, nx.float64)
        assert last["mean"].item() == 2.5
    # A tensor as a state keeps its dtype, so a step must return the dtype.
    with pytest.raises(nx.ArgumentError, match="must return a state like the old one"):
        nx.stream(lambda x, s: (s, s + x), nx.template((), "f32"), nx.tensor(0))


def test_recv_waits_for_a_later_send():
    stream, found = sums(), []
    receiver = threading.Thread(target=lambda: found.append(stream.recv(timeout=30).item()))
    receiver.start()
    time.sleep(0.05)
    assert receiver.is_alive()
    stream.send(5)
    receiver.join(30)
    assert found == [0]
    # The end of the stream wakes a receiver.
    errors = []

    def receive():
        try:
            stream.recv(timeout=30)
        except nx.ExecutionError as error:
            errors.append(error)

    receiver = threading.Thread(target=receive)
    receiver.start()
    time.sleep(0.05)
    stream.done()
    receiver.join(30)
    assert "all results have been received" in str(errors[0])


def test_partial_batch_policies(compiler):
    def step(batch, total):
        return (batch["x"] * 2, nx.sum(batch["x"])), total + nx.sum(batch["x"])

    def start():
        template = {"x": nx.template((4, 2), "f32"), "y": nx.template(4, "s32")}
        return nx.stream(step, template, 0.0, compiler=compiler)

    rows = np.arange(20, dtype="f4").reshape(10, 2)
    batches = [{"x": rows[i : i + 4], "y": np.arange(4)[: 10 - i].astype("i4")} for i in (0, 4, 8)]
    with pytest.raises(nx.ArgumentError, match="must be f32"):
        list(start().over(batches))
    with pytest.raises(nx.ArgumentError, match="partial: must be"):
        start().over(batches, partial="skip")
    stream = start()
    doubled = [result[0].numpy() for result in stream.over(batches, partial="drop")]
    np.testing.assert_array_equal(np.concatenate(doubled), 2 * rows[:8])
    assert stream.done().item() == rows[:8].sum()
    stream = start()
    results = list(stream.over(batches, partial="pad"))
    np.testing.assert_array_equal(np.concatenate([x.numpy() for x, _ in results]), 2 * rows)
    assert [total.item() for _, total in results] == [rows[i : i + 4].sum() for i in (0, 4, 8)]
    assert stream.done().item() == rows.sum()


@pytest.mark.parametrize("compiler", ["evaluator", "xla"])
def test_vectorized_states(compiler):
    initial = {"sum": nx.vectorize(nx.tensor([[1.0, 2.0], [3.0, 4.0]]), "entry"), "steps": 0}

    def step(x, state):
        return nx.sum(state["sum"]), {"sum": state["sum"] + x, "steps": state["steps"] + 1}

    stream = nx.stream(step, nx.template((2,), nx.float32), initial, compiler=compiler)
    for _ in range(3):
        stream.send(nx.ones(2))
    results = [stream.recv() for _ in range(3)]
    assert [nx.devectorize(x).tolist() for x in results] == [[3.0, 7.0], [5.0, 9.0], [7.0, 11.0]]
    state = stream.done()
    assert state["sum"].vectorized_axes == (("entry", 2),)
    assert nx.devectorize(state["sum"]).tolist() == [[4.0, 5.0], [6.0, 7.0]]
    assert state["steps"].item() == 3
    with pytest.raises(nx.ArgumentError, match="must return a state like the old one"):
        nx.stream(lambda x, s: (x, s + x), initial["sum"], nx.zeros(2), compiler=compiler)


@pytest.mark.parametrize("source", ["raises", "wrong chunk"])
def test_results_precede_the_error_of_a_later_chunk(source):
    def chunks():
        yield nx.ones(2)
        yield nx.ones(2) * 2
        if source == "raises":
            raise ValueError("no more data")
        yield nx.ones(3)

    stream = nx.stream(lambda x, s: (x * 10, s + 1), nx.template((2,)), 0)
    results = []
    with pytest.raises((ValueError, nx.ArgumentError)):
        results.extend(x.tolist() for x in stream.over(chunks()))
    # `extend` keeps what it received before the error.
    assert results == [[10.0, 10.0], [20.0, 20.0]]
    assert stream.done().item() == 2


def test_over_requires_received_results():
    s = nx.stream(lambda x, total: (x * total, total + x), nx.template(()), 0.0)
    s.send(5.0)
    with pytest.raises(nx.ExecutionError, match="over: the results of all earlier chunks"):
        s.over([1.0, 2.0])
    assert s.recv().item() == 0.0
    assert [result.item() for result in s.over([1.0, 2.0])] == [5.0, 12.0]
