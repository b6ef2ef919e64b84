"""Stages on Dask and Ray clusters and process pools: the location of values, and failures."""

import concurrent.futures
import gc
import glob
import logging
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from functools import partial

import numpy as np
import pytest

import nxla as nx
from nxla import _core
from nxla._cluster.dask import Parcel

distributed = pytest.importorskip("distributed", reason="Dask is not installed")

SIZE = 256
#: The signal that ends a process immediately. On Windows, every signal does.
KILL = getattr(signal, "SIGKILL", signal.SIGTERM)
#: Bytes of a value between stages.
LARGE = 4 * SIZE * SIZE


def layers(x, ws):
    for w in ws:
        x = nx.tanh(x @ w)
    return nx.sum(x)


def after(*ops):
    return lambda node: "after" if node.op in ops else "none"


def chain(count=4):
    """Return stages that each take a large value and a separate weight, and the arguments."""
    rng = np.random.default_rng(0)
    x, *ws = (nx.tensor(rng.normal(size=(SIZE, SIZE)).astype("f4") / 16) for _ in range(count + 1))
    stages = nx.graph.split(nx.debug_expr(layers)(x, ws), after("tanh"))
    assert len(stages) == count + 1
    return stages, (x, ws)


def slow_stages(x):
    """Return stages that take about half a second each, and no memory."""

    def iterate(x, count):
        return nx.fori(0, count, lambda i, s: nx.sin(s) + 1.0, x)

    short = 100_000
    run = nx.jit(lambda x: iterate(x, short))
    run(0.5)
    start = time.perf_counter()
    run(0.5).item()
    long = int(short * 0.5 / (time.perf_counter() - start))

    def slow(x):
        return nx.cos(iterate(nx.cos(iterate(nx.cos(iterate(x, long)), long)), long))

    return nx.graph.split(nx.debug_expr(slow)(x), after("cos"))


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def pool():
    with new_pool() as pool:
        yield pool


def new_pool(count=2, **arguments):
    context = multiprocessing.get_context("spawn")
    return concurrent.futures.ProcessPoolExecutor(count, mp_context=context, **arguments)


@pytest.fixture(scope="module")
def ray_cluster():
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield ray
    ray.shutdown()


@pytest.fixture(params=["dask", "pool", "ray"])
def executor(request):
    names = {"dask": "client", "pool": "pool", "ray": "ray_cluster"}
    return request.getfixturevalue(names[request.param])


def shared_memory():
    """Return the shared memory blocks of this process that are in use."""
    gc.collect()
    return glob.glob(f"/dev/shm/nx{os.getpid():x}*")


# --- results ---


def test_executors_return_the_local_results(executor, compiler):
    stages, (x, ws) = chain()
    found = nx.graph.run(stages, x, ws, executor=executor, compiler=compiler)
    expected = nx.graph.run(stages, x, ws, compiler=compiler)
    assert found.item() == expected.item()


def test_values_with_several_consumers_reach_each_stage(executor):
    def function(x):
        q, r = nx.linalg.qr(x)
        shared = nx.exp(q)
        return {"sum": nx.sin(shared) + nx.cos(shared), "pair": (r, x), "constant": 2 * x[0]}

    x = nx.tensor(np.random.default_rng(1).normal(size=(150, 150)).astype("f4"))
    stages = nx.graph.split(nx.debug_expr(function)(x), after("exp", "sin", "block"))
    assert len(stages) > 2
    found = nx.graph.run(stages, x, executor=executor)
    expected = nx.graph.run(stages, x)
    for left, right in zip(nx.tree.leaves(found), nx.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(np.asarray(left), np.asarray(right))


def test_all_argument_kinds_reach_workers(executor):
    table = nx.tensor(np.arange(5000, dtype="f4"))

    def function(b, a):
        return nx.sin(b["z"]) + b["a"] * a + nx.sum(table)

    b = {"z": np.float32(0.5), "a": nx.tensor([1.0, 2.0], dtype=nx.float64)}
    stages = nx.graph.split(nx.debug_expr(function)(b, 3), after("sin"))
    found = nx.graph.run(stages, b, 3, executor=executor)
    np.testing.assert_allclose(np.asarray(found), np.asarray(function(b, 3)), rtol=1e-6)


@pytest.mark.parametrize("dtype", [nx.float32, nx.bfloat16, nx.uint4, nx.bool, nx.complex64])
def test_every_dtype_is_transferred(executor, dtype):
    x = nx.astype(nx.arange(70_000) % 2, dtype)
    stages = nx.graph.split(nx.debug_expr(lambda x: nx.flip(nx.flip(x)))(x), after("reverse"))
    found = nx.graph.run(stages, x, executor=executor)
    assert found.dtype == dtype
    assert bool(nx.all(found == x).item())


def test_functions_are_called_in_the_process_of_the_caller(executor):
    observed, computed = [], []

    def double(value):
        computed.append(os.getpid())
        return value * 2

    def function(x):
        x = nx.hook(nx.sin(x), "named")
        x = nx.runtime_call(double, nx.template((), nx.float32), nx.cos(x))
        return nx.exp(x)

    expression = nx.debug_expr(function)(nx.template((), nx.float32))
    stages = nx.graph.split(expression, after("sin", "cos", "runtime_call"))
    hooks = {"named": lambda value: observed.append((value.item(), threading.current_thread()))}
    found = nx.graph.run(stages, 0.0, executor=executor, hooks=hooks)
    assert found.item() == pytest.approx(np.exp(2.0))
    assert observed == [(0.0, threading.main_thread())]
    assert computed == [os.getpid()]
    # A hook without a listener does not keep a stage in this process.
    nx.graph.run(stages, 0.0, executor=executor)
    assert len(observed) == 1


def test_default_options_of_the_caller_apply_in_workers(executor):
    stages, (x, ws) = chain(1)
    with (
        nx.default_options(compiler="xla", xla_no_such_flag=1),
        pytest.raises(nx.NxlaError, match="xla_no_such_flag") as raised,
    ):
        nx.graph.run(stages, x, ws, executor=executor)
    # The error names the stage and its source line.
    (note,) = raised.value.__notes__
    assert note.startswith("while running stage 0, from ")
    assert "test_cluster.py:" in note


# --- locations of values ---


def test_intermediate_values_bypass_the_caller(client, monkeypatch):
    from distributed.comm import tcp

    crossed = [0]

    def counted(function):
        async def count(*args, **kwargs):
            found = await function(*args, **kwargs)
            crossed[0] += sum(memoryview(frame).nbytes for frame in found)
            return found

        return count

    def received(function):
        async def count(frames, *args, **kwargs):
            crossed[0] += sum(memoryview(frame).nbytes for frame in frames)
            return await function(frames, *args, **kwargs)

        return count

    stages, (x, ws) = chain(8)
    expected = nx.graph.run(stages, x, ws).item()
    assert nx.graph.run(stages, x, ws, executor=client).item() == expected
    # The scheduler is in this process too, so its traffic is counted.
    monkeypatch.setattr(tcp, "to_frames", counted(tcp.to_frames))
    monkeypatch.setattr(tcp, "from_frames", received(tcp.from_frames))
    before = nx.graph.traffic()
    assert nx.graph.run(stages, x, ws, executor=client).item() == expected
    now = nx.graph.traffic()
    # The workers have the weights and programs from the first run.
    assert 0 < crossed[0] < LARGE
    assert now["sent"] - before["sent"] == 0
    assert now["received"] - before["received"] == 4


def test_intermediate_values_are_in_shared_memory(pool):
    others = len(shared_memory())
    stages, (x, ws) = chain(8)
    nx.graph.run(stages, x, ws, executor=pool)
    before = nx.graph.traffic()
    nx.graph.run(stages, x, ws, executor=pool)
    now = nx.graph.traffic()
    assert now["received"] - before["received"] == 4
    # At most the program is sent again, to the process that did not receive it the first time.
    assert now["sent"] - before["sent"] < LARGE
    assert len(shared_memory()) == others + 9, "the arguments, once"
    del x, ws
    assert len(shared_memory()) == others


def test_equal_programs_are_sent_once(client):
    stages, (x, ws) = chain(6)
    digests = {stage.digest for stage in stages.stages}
    assert len(digests) == 3, "the first, the last, and all others"
    nx.graph.run(stages, x, ws, executor=client)
    program_keys = [
        key for keys in client.has_what().values() for key in keys if "nxla-program" in key
    ]
    assert {key.removeprefix("nxla-program-") for key in program_keys} >= digests
    assert nx.graph.run(stages, x, ws, executor=client).item() is not None


def test_tensors_are_released_with_the_last_reference(client):
    stages, (x, ws) = chain(2)
    nx.graph.run(stages, x, ws, executor=client)
    threads = client.nthreads
    del x, ws, threads
    until = time.monotonic() + 5
    while time.monotonic() < until:
        stored_keys = [
            key for keys in client.has_what().values() for key in keys if "Parcel" in key
        ]
        if not stored_keys:
            return
        time.sleep(0.05)
    pytest.fail(f"the cluster keeps {stored_keys}")


def test_pickling_shares_the_memory_of_tensors():
    x = nx.tensor(np.arange(10_000, dtype="f4"))
    buffers = []
    data = pickle.dumps(x, protocol=5, buffer_callback=buffers.append)
    assert len(data) < 1000
    (buffer,) = buffers
    address = np.frombuffer(buffer, "f4").__array_interface__["data"][0]
    assert address == np.asarray(x).__array_interface__["data"][0]
    restored_x = pickle.loads(data, buffers=buffers)
    assert bool(nx.all(restored_x == x).item())
    # Writable memory is copied.
    mutable = bytearray(buffer)
    copied = pickle.loads(data, buffers=[mutable])
    mutable[:4] = b"\1\1\1\1"
    assert copied[0].item() == 0.0
    # A `Parcel` shares writable memory, because a worker receives it for this tensor only.
    data = pickle.dumps(Parcel(x), protocol=5, buffer_callback=lambda _: None)
    mutable = bytearray(buffer)
    restored = pickle.loads(data, buffers=[mutable]).tensor
    start = np.frombuffer(mutable, "u1").__array_interface__["data"][0]
    assert np.asarray(restored).__array_interface__["data"][0] == start
    assert sys.getsizeof(restored) >= 40_000
    assert sys.getsizeof(Parcel(restored)) >= 40_000
    for protocol in range(5):
        assert bool(nx.all(pickle.loads(pickle.dumps(x, protocol=protocol)) == x).item())


# --- failures ---


def workers_of(client):
    return client.run(os.getpid)


def test_stages_of_a_dead_worker_run_on_another_worker(client):
    stages = slow_stages(0.5)
    expected = nx.graph.run(stages, 0.5).item()

    def kill():
        time.sleep(0.3)
        until = time.monotonic() + 30
        busy = []
        while not busy and time.monotonic() < until:
            busy = [worker for worker, tasks in client.processing().items() if tasks]
        os.kill(pids[busy[0]], KILL)
        killed.append(busy[0])

    killed = []
    pids = workers_of(client)
    thread = threading.Thread(target=kill)
    thread.start()
    assert nx.graph.run(stages, 0.5, executor=client).item() == expected
    thread.join()
    assert killed
    client.wait_for_workers(2, timeout=30)


def test_data_of_dead_workers_is_resent_and_hooks_run_once(client):
    stages, (x, ws) = chain(3)
    expected = nx.graph.run(stages, x, ws).item()
    assert nx.graph.run(stages, x, ws, executor=client).item() == expected
    for pid in workers_of(client).values():
        os.kill(pid, KILL)
    # All tensors and programs on the workers are lost.
    assert nx.graph.run(stages, x, ws, executor=client).item() == expected

    def function(x, w):
        return nx.sum(nx.hook(nx.sin(x), "observed") @ w)

    stages = nx.graph.split(nx.debug_expr(function)(x, ws[0]), after("sin", "dot"))
    observed = []

    def listen(value):
        observed.append(value)
        for pid in workers_of(client).values():
            os.kill(pid, KILL)

    found = nx.graph.run(stages, x, ws[0], executor=client, hooks={"observed": listen})
    assert found.item() == nx.graph.run(stages, x, ws[0]).item()
    assert len(observed) == 1
    client.wait_for_workers(2, timeout=30)


def test_a_cluster_without_workers_raises_without_hanging():
    with (
        distributed.LocalCluster(
            n_workers=0, dashboard_address=":0", silence_logs=logging.CRITICAL
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        stages, (x, ws) = chain(1)
        start = time.monotonic()
        with pytest.raises(nx.ExecutionError, match="no worker"):
            nx.graph.run(stages, x, ws, executor=client)
        assert time.monotonic() - start < 10
    with pytest.raises(nx.ExecutionError, match="closed"):
        nx.graph.run(stages, x, ws, executor=client)


def test_a_killed_process_raises_and_names_the_stage():
    stages = slow_stages(0.5)
    with new_pool(1) as pool:
        pid = pool.submit(os.getpid).result()
        threading.Timer(0.4, os.kill, (pid, KILL)).start()
        start = time.monotonic()
        with pytest.raises(nx.ExecutionError, match=r"stage \d: a process of the pool died"):
            nx.graph.run(stages, 0.5, executor=pool)
        assert time.monotonic() - start < 10
    assert not shared_memory()


def hide_nxla():
    """Make a process in which nxla cannot be imported."""
    for name in [*sys.modules]:
        if name.split(".")[0] == "nxla":
            sys.modules[name] = None


def test_errors_name_workers_without_nxla():
    stages, (x, ws) = chain(1)
    with new_pool(1, initializer=hide_nxla) as pool:
        start = time.monotonic()
        with pytest.raises(nx.ExecutionError, match="or could not import nxla"):
            nx.graph.run(stages, x, ws, executor=pool)
        assert time.monotonic() - start < 10
    with (
        distributed.LocalCluster(
            n_workers=1, dashboard_address=":0", silence_logs=logging.CRITICAL
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        (worker,) = client.run(hide_nxla)
        start = time.monotonic()
        with pytest.raises(
            nx.ExecutionError, match=f"worker {worker}: must have nxla .*; got no nxla"
        ):
            nx.graph.run(stages, x, ws, executor=client)
        assert time.monotonic() - start < 10


def test_errors_name_workers_with_another_version(executor, monkeypatch):
    from nxla._cluster.dask import _CLUSTERS

    stages, (x, ws) = chain(1)
    _CLUSTERS.clear()
    version = _core.__version__
    monkeypatch.setattr(_core, "__version__", "0.0.1")
    with pytest.raises(
        nx.ExecutionError, match=rf"must have nxla 0\.0\.1, .*; got (nxla )?{version}"
    ):
        nx.graph.run(stages, x, ws, executor=executor)


def test_stages_of_a_dead_ray_worker_run_again(ray_cluster, tmp_path):
    # The first worker that runs the second stage ends its process; the next worker finds the file.
    from nxla._cluster import ray as cluster

    died = tmp_path / "died"
    original = cluster.run_stage

    def deadly(stage, tensors, options, label):
        if label == "stage 1" and not died.exists():
            died.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return original(stage, tensors, options, label)

    def work(*args):
        from nxla._cluster import ray as cluster

        cluster.run_stage = deadly
        try:
            return cluster.work(*args)
        finally:
            cluster.run_stage = original

    stages, (x, ws) = chain(2)
    known = cluster.RayExecutor(ray_cluster, {}).known
    remote, known.work = known.work, ray_cluster.remote(work)
    try:
        found = nx.graph.run(stages, x, ws, executor=ray_cluster)
    finally:
        known.work = remote
    assert died.exists()
    assert found.item() == nx.graph.run(stages, x, ws).item()


def test_invalid_executors_are_rejected():
    stages, (x, ws) = chain(1)
    with pytest.raises(nx.ArgumentError, match="executor: must have the method submit"):
        nx.graph.run(stages, x, ws, executor=4)


def test_interrupts_cancel_pending_stages(executor):
    # A process in the background may ignore the signal by default.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    stages = slow_stages(0.25)
    threading.Timer(0.2, signal.raise_signal, (signal.SIGINT,)).start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        nx.graph.run(stages, 0.25, executor=executor)
    assert time.monotonic() - start < 3
    until = time.monotonic() + 5
    while isinstance(executor, distributed.Client) and any(executor.processing().values()):
        assert time.monotonic() < until, "stages still run"
        time.sleep(0.05)


def test_shared_memory_is_freed_after_errors(pool):
    def function(x):
        y = nx.exp(nx.sin(x))
        return nx.hook(nx.cos(y), "fails") + y

    before = shared_memory()
    x = nx.ones((SIZE, SIZE))
    stages = nx.graph.split(nx.debug_expr(function)(x), after("sin", "exp"))

    def fail(value):
        assert len(shared_memory()) > len(before) + 1
        raise ZeroDivisionError("here")

    with pytest.raises(ZeroDivisionError, match="here"):
        nx.graph.run(stages, x, executor=pool, hooks={"fails": fail})
    del x
    assert shared_memory() == before


# --- pipelines ---


def doubling():
    def function(x):
        return nx.exp(nx.log(nx.exp(nx.log(x)))) * 2

    return nx.graph.split(nx.debug_expr(function)(1.0), after("log", "exp"))


@pytest.mark.parametrize("kind", ["local", "threads", "pool", "dask"])
def test_batches_stream_in_order(kind, request):
    executors = {
        "local": lambda: None,
        "threads": lambda: concurrent.futures.ThreadPoolExecutor(2),
        "pool": partial(request.getfixturevalue, "pool"),
        "dask": partial(request.getfixturevalue, "client"),
    }
    requested = []

    def batches():
        for number in range(1, 13):
            requested.append(number)
            yield float(number)

    count = 0
    results = nx.graph.pipeline(doubling(), batches(), executor=executors[kind](), in_flight=3)
    for count, result in enumerate(results, 1):
        assert result.item() == pytest.approx(2 * count, rel=1e-5)
        assert len(requested) <= count + 2
    assert count == 12


def test_several_batches_are_in_flight_concurrently():
    meeting = threading.Barrier(2, timeout=20)

    class Meeting:
        """Runs a stage after it has received two batches."""

        def __init__(self):
            self.pool = concurrent.futures.ThreadPoolExecutor(4)

        def submit(self, function, *args):
            return self.pool.submit(lambda: (meeting.wait(), function(*args))[1])

    stages = nx.graph.split(nx.debug_expr(nx.sin)(1.0), lambda node: "none")
    found = list(nx.graph.pipeline(stages, [0.0] * 4, executor=Meeting(), in_flight=2))
    assert [y.item() for y in found] == [0.0] * 4


def test_closing_a_pipeline_cancels_pending_batches(pool):
    results = nx.graph.pipeline(doubling(), iter(float, None), executor=pool)
    next(results)
    results.close()
    with pytest.raises(StopIteration):
        next(results)
    # The pool is unchanged.
    assert pool.submit(os.getpid).result(timeout=10)
    assert not shared_memory()


def test_errors_end_a_pipeline(pool):
    def failing():
        yield 1.0
        raise ZeroDivisionError("the source")

    with pytest.raises(ZeroDivisionError, match="the source"):
        list(nx.graph.pipeline(doubling(), failing(), executor=pool, in_flight=1))
    with pytest.raises(nx.ArgumentError, match="in_flight: must be at least 1"):
        nx.graph.pipeline(doubling(), [1.0], in_flight=0)
    observed = []

    def listen(value):
        observed.append(round(value.item()))
        if observed[-1] == 3:
            raise ValueError("the third")

    stages = nx.graph.split(
        nx.debug_expr(lambda x: nx.exp(nx.hook(nx.abs(x), "observed")))(1.0), after("abs")
    )
    batches, found = map(float, range(1, 10)), []
    results = nx.graph.pipeline(stages, batches, executor=pool, hooks={"observed": listen})
    with pytest.raises(ValueError, match="the third"):
        found.extend(results)
    # Workers finish in any order. Earlier batches have finished, and no later batch starts.
    assert len(found) == 2
    assert {1, 2, 3} <= set(observed)
    assert all(number < 3 for number in observed[observed.index(3) + 1 :])


# --- training ---


def attention(p, x):
    q, k, v = (x @ p[name] for name in ("q", "k", "v"))
    scores = q @ nx.permute_dims(k, (0, 2, 1)) * 8**-0.5
    powers = nx.exp(scores - nx.max(scores, axis=-1, keepdims=True))
    x = x + (powers / nx.sum(powers, axis=-1, keepdims=True)) @ v
    return x + nx.tanh(x @ p["up"]) @ p["down"]


def embed(p, tokens):
    return nx.take(p["tokens"], tokens, axis=0) + p["positions"]


def score(p, x):
    return attention(p["block"], x) @ p["head"]


def cross_entropy(scores, targets):
    shifted = scores - nx.max(scores, axis=-1, keepdims=True)
    logs = shifted - nx.log(nx.sum(nx.exp(shifted), axis=-1, keepdims=True))
    return -nx.mean(nx.sum(logs * targets, axis=-1))


def adam(p, gradients, state):
    count = state["count"] + 1.0
    means = nx.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["means"], gradients)
    squares = nx.tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, state["squares"], gradients)
    first, second = 1.0 - 0.9**count, 1.0 - 0.99**count
    p = nx.tree.map(
        lambda p, m, s: p - 1e-2 * (m / first) / (nx.sqrt(s / second) + 1e-8), p, means, squares
    )
    return p, {"count": count, "means": means, "squares": squares}


def small_gpt():
    rng = np.random.default_rng(0)

    def normal(*shape):
        return nx.tensor((rng.normal(size=shape) * 0.2).astype("f4"))

    def block():
        sizes = {"q": (8, 8), "k": (8, 8), "v": (8, 8), "up": (8, 16), "down": (16, 8)}
        return {name: normal(*shape) for name, shape in sizes.items()}

    parameters = [
        {"tokens": normal(11, 8), "positions": normal(6, 8)},
        block(),
        {"block": block(), "head": normal(8, 11)},
    ]
    zeros = [nx.tree.map(lambda w: 0.0 * w, p) for p in parameters]
    states = [{"count": nx.tensor(0.0), "means": z, "squares": z} for z in zeros]
    tokens = nx.tensor(rng.integers(0, 11, (8, 6)).astype("i4"))
    targets = nx.tensor(np.eye(11, dtype="f4")[rng.integers(0, 11, (8, 6))])
    return [embed, attention, score], parameters, states, tokens, targets


def trained_in_one_process(functions, parameters, states, tokens, targets, steps, parts):
    """Train with basic transformations: the sum of the gradients of all parts."""

    @nx.jit
    def loss(parameters, tokens, targets):
        x = tokens
        for function, p in zip(functions, parameters, strict=True):
            x = function(p, x)
        return cross_entropy(x, targets)

    both = nx.jit(nx.value_and_grad(loss))
    update = nx.jit(lambda p, g, s: adam(p, nx.tree.map(lambda g: g / parts, g), s))
    losses, size = [], tokens.shape[0] // parts
    for _ in range(steps):
        total, sums = None, None
        for part in range(parts):
            rows = slice(part * size, (part + 1) * size)
            value, gradients = both(parameters, tokens[rows], targets[rows])
            total = value if total is None else total + value
            sums = gradients if sums is None else nx.tree.map(lambda a, b: a + b, sums, gradients)
        found = [update(p, g, s) for p, g, s in zip(parameters, sums, states, strict=True)]
        parameters, states = [p for p, _ in found], [s for _, s in found]
        losses.append((total / parts).item())
    return losses, parameters


@pytest.mark.parametrize(
    ("kind", "schedule"),
    [("local", "gpipe"), ("local", "1f1b"), ("pool", "1f1b"), ("dask", "gpipe"), ("dask", "1f1b")],
)
def test_pipelined_training_is_bit_identical_to_plain_training(kind, schedule, request):
    fixtures = {"pool": "pool", "dask": "client"}
    executor = request.getfixturevalue(fixtures[kind]) if kind in fixtures else None
    functions, parameters, states, tokens, targets = small_gpt()
    with nx.default_options(compiler="evaluator"):
        expected = trained_in_one_process(*small_gpt(), steps=10, parts=4)
        step = nx.graph.pipeline_step(
            functions, cross_entropy, adam, parts=4, schedule=schedule, executor=executor
        )
        losses = []
        for _ in range(10):
            loss, parameters, states = step(parameters, states, tokens, targets)
            losses.append(loss.item())
    assert losses == expected[0]
    assert losses[-1] < losses[0]
    for left, right in zip(nx.tree.leaves(parameters), nx.tree.leaves(expected[1]), strict=True):
        np.testing.assert_array_equal(np.asarray(left), np.asarray(right))


@pytest.mark.parametrize("layers", [1, 2, 4])
@pytest.mark.parametrize("parts", [1, 3, 8])
@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_schedules_run_each_part_once_within_memory_bounds(schedule, layers, parts):
    orders = nx.graph.pipeline_schedule(schedule, layers, parts)
    for layer, order in enumerate(orders[:-1]):
        pending = most = 0
        for kind, _ in order:
            pending += 1 if kind == "forward" else -1
            most = max(most, pending)
        assert pending == 0
        assert most == (parts if schedule == "gpipe" else min(layers - layer, parts))
        for wanted in ("forward", "backward"):
            assert [part for kind, part in order if kind == wanted] == list(range(parts))
    assert orders[-1] == [("backward", part) for part in range(parts)]


def descend(parameters, gradients, state):
    return parameters - 0.1 * gradients, state


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_pipelined_steps_keep_names(schedule):
    def first(w, x):
        return nx.sum(x, axis="feature") * nx.sum(w, axis="in")

    def middle(w, x):
        return nx.rename(nx.sum(x, axis="batch") * w, ["again"])

    def last(w, x):
        return nx.sum(x, axis="again") * w

    def loss(y, targets):
        return y - nx.sum(targets, axis="batch")

    parameters = [nx.ones(2, names=["in"]), nx.ones(3, names=["out"]), nx.tensor(2.0)]
    step = nx.graph.pipeline_step([first, middle, last], loss, descend, parts=2, schedule=schedule)
    x = nx.reshape(nx.arange(8.0), (4, 2), names=["batch", "feature"])
    targets = nx.ones(4, names=["batch"])
    value, updated, _ = step(parameters, [()] * 3, x, targets)
    # Each part is a batch of two rows.
    assert value.item() == (12.0 * sum(range(8)) - 4.0) / 2
    assert [parameter.names for parameter in updated] == [["in"], ["out"], []]
    with pytest.raises(nx.ArgumentError, match="must not have vectorized axes"):
        step(parameters, [()] * 3, nx.vectorize(x[None], "v"), targets)


def test_compiler_of_a_pipelined_step_overrides_default_options(device):
    options = ({"compiler": "xla", "device": 0}, {"compiler": "xla", "device": device})
    step = nx.graph.pipeline_step(
        [lambda w, x: w * x], lambda y, t: nx.sum(y * t), descend, parts=2, compiler="evaluator"
    )
    for defaults in options:
        with nx.default_options(defaults):
            assert step([2.0], [()], np.ones(2), np.ones(2))[0].device.name == "host"


def test_invalid_pipeline_steps_are_rejected():
    functions, parameters, states, tokens, targets = small_gpt()
    with pytest.raises(nx.ArgumentError, match='schedule: must be "gpipe" or "1f1b"'):
        nx.graph.pipeline_step(functions, cross_entropy, adam, parts=4, schedule="zero")
    step = nx.graph.pipeline_step(functions, cross_entropy, adam, parts=3)
    with pytest.raises(nx.ArgumentError, match="must divide into 3 equal parts"):
        step(parameters, states, tokens, targets)
    step = nx.graph.pipeline_step(functions, cross_entropy, adam, parts=4)
    with pytest.raises(nx.ArgumentError, match="states: must be 3, one for each layer; got 2"):
        step(parameters, states[:2], tokens, targets)


def test_pipeline_steps_check_batch_sizes():
    layers = [lambda p, x: nx.tanh(x @ p), lambda p, x: x @ p]
    step = nx.graph.pipeline_step(
        layers, lambda y, t: nx.mean((y - t) ** 2), lambda p, g, s: (p - 0.1 * g, s), parts=2
    )
    parameters = [nx.ones((5, 4)), nx.ones((4, 3))]
    with pytest.raises(nx.ArgumentError, match=r"x, targets: must have first axes of one size"):
        # Two rows of targets would broadcast to twelve rows.
        step(parameters, [(), ()], nx.ones((12, 5)), nx.ones((2, 3)))


@pytest.mark.parametrize("in_flight", [1, 3])
def test_pipelines_yield_results_before_source_errors(in_flight):
    def batches():
        yield 1.0
        yield 2.0
        raise ValueError("no more data")

    expression = nx.debug_expr(lambda x: nx.exp(nx.log(x)) + 1)(1.0)
    stages = nx.graph.split(expression, lambda node: "after" if node.op == "log" else "none")
    results = []
    with pytest.raises(ValueError, match="no more data"):
        results.extend(
            round(y.item()) for y in nx.graph.pipeline(stages, batches(), in_flight=in_flight)
        )
    assert results == [2, 3]
