"""Values never change: a call uses the values at its start, even if the array changes later.

Each entry point receives a writable array that is overwritten as soon as the call returns.
"""

import copy
import multiprocessing
import operator
import subprocess
import sys
import threading
from collections import deque
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest

import nxla as nx
from where import DEVICE, PLATFORM

SMALL = (8,)
# Larger than all size limits for copies. The computation takes long enough to be running after the
# call returns.
LARGE = (256, 256)
ROUNDS = 200
# The number of results under computation while the array is filled again.
IN_FLIGHT = 16

both_shapes = pytest.mark.parametrize("shape", [SMALL, LARGE], ids=["small", "large"])


def array(shape, value):
    return np.full(shape, value, np.float32)


def nonconstant(shape, value):
    """Return an array with two values; a constant array would become a part of the program."""
    result = array(shape, value)
    result.flat[-1] = value / 2
    return result


def overwrite(x):
    x[...] = -1.0


def check(found, shape, value, make=array):
    """Assert that each element of a result is twice the argument."""
    np.testing.assert_array_equal(np.asarray(found), make(shape, 2 * value))


def check_rounds(call, shape, rounds=ROUNDS, make=array):
    """Double one array repeatedly, and overwrite the array after each call."""
    buffer, results = make(shape, 0), deque()
    for i in range(rounds):
        buffer[...] = make(shape, i)
        results.append((i, call(buffer)))
        overwrite(buffer)
        while len(results) > IN_FLIGHT or (results and i == rounds - 1):
            value, result = results.popleft()
            check(result, shape, value, make)


@both_shapes
def test_jitted_calls_use_values_at_the_call(compiler, shape):
    check_rounds(nx.jit(lambda x: x + x, compiler=compiler), shape)


def test_large_arrays_in_flight_keep_their_values(compiler):
    # The evaluator has finished when it returns, and its products are slow in test builds.
    shape = LARGE if compiler == "xla" else (96, 96)
    weights = nx.tensor(np.eye(shape[0], dtype=np.float32) * 2)
    slow = nx.jit(lambda x, w: x @ w, compiler=compiler)
    check_rounds(lambda x: slow(x, weights), shape)


@both_shapes
def test_returned_arguments_keep_their_values(compiler, shape):
    x = array(shape, 3)
    results = [
        nx.jit(lambda x: x, compiler=compiler)(x),
        nx.jit(lambda x: nx.reshape(x, (-1,)), compiler=compiler)(x),
        nx.jit(lambda x: {"x": x, "y": (x,)}, compiler=compiler)({"a": x}["a"])["y"][0],
    ]
    overwrite(x)
    for result in results:
        assert set(np.asarray(result).ravel().tolist()) == {3.0}


@both_shapes
def test_compiled_calls_use_values_at_the_call(compiler, shape):
    x = array(shape, 0)
    check_rounds(nx.compile(lambda x: x * 2, [x], compiler=compiler), shape)


@both_shapes
@pytest.mark.parametrize(
    "function",
    [
        nx.tensor,
        nx.asarray,
        nx.from_dlpack,
        lambda x: nx.reshape(x, x.shape),
        lambda x: nx.astype(x, nx.float32),
        lambda x: nx.stack([x])[0],
        lambda x: nx.broadcast_to(x, x.shape),
        lambda x: nx.squeeze(nx.expand_dims(x, axis=0), axis=0),
    ],
)
def test_eager_calls_use_values_at_the_call(function, shape):
    def double(x):
        result = function(x)
        return result + result

    check_rounds(double, shape)


@both_shapes
def test_streams_use_values_at_the_send(compiler, shape):
    state = array((), 0)
    scale = array((), 2)
    template = nx.template(shape, nx.float32)
    stream = nx.stream(lambda x, s, k: (x * k + s, s), template, state, scale, compiler=compiler)
    overwrite(state)
    overwrite(scale)
    buffer = array(shape, 0)
    for i in range(ROUNDS + IN_FLIGHT):
        if i < ROUNDS:
            buffer[...] = i
            stream.send(buffer)
            overwrite(buffer)
        if i >= IN_FLIGHT:
            check(stream.recv(), shape, i - IN_FLIGHT)
    stream.done()


def test_stages_use_values_at_the_call(compiler):
    def function(x):
        for _ in range(2):
            x = x * 2 / 2
        return x * 2

    expression = nx.debug_expr(function)(array(LARGE, 0))
    count = iter(range(1000))
    stages = nx.graph.split(expression, lambda _: "after" if next(count) % 2 else "none")
    check_rounds(lambda x: nx.graph.run(stages, x, compiler=compiler), LARGE)
    with ThreadPoolExecutor(2) as executor:
        check_rounds(lambda x: nx.graph.run(stages, x, compiler=compiler, executor=executor), LARGE)


@both_shapes
@pytest.mark.filterwarnings("ignore::nxla.errors.CaptureWarning")
def test_captured_arrays_keep_their_values(compiler, shape):
    two = array(shape, 2)
    # A small array becomes a constant of the program, which XLA compiles again for each value.
    rounds = ROUNDS if shape == LARGE else 20
    call = lambda x: nx.jit(lambda y: x * y, compiler=compiler)(two)  # noqa: E731
    check_rounds(call, shape, rounds, nonconstant)


@both_shapes
def test_hooks_receive_values_of_their_run(compiler, shape):
    seen = []
    function = nx.jit(lambda x: nx.hook(x, seen.append, "seen") * 2, compiler=compiler)
    check_rounds(function, shape)
    for i, value in enumerate(seen):
        check(value + value, shape, i)
    assert len(seen) == ROUNDS


def test_donated_host_memory_is_not_written(compiler):
    """A device does not write to shared memory of the host."""
    x = nx.tensor(array(LARGE, 3))
    view = x.numpy()
    function = nx.jit(lambda x: x * 2, compiler=compiler, donate_argnums=0)
    check(function(x), LARGE, 3)
    assert set(view.ravel().tolist()) == {3.0}
    device = nx.jit(lambda x: x + 0, compiler=compiler)(array(LARGE, 3))
    copy = device.numpy()
    check(function(device), LARGE, 3)
    assert set(copy.ravel().tolist()) == {3.0}


def test_concurrently_written_array_is_read_once():
    """A call computes with one copy, in which each element is old or new."""
    buffer = array((1 << 20,), 0)
    stop = threading.Event()

    def refill():
        value = 0
        while not stop.is_set():
            value += 1
            buffer[...] = value

    writer = threading.Thread(target=refill)
    writer.start()
    try:
        difference = nx.jit(lambda x: nx.max(nx.abs(x - (x + 0))))
        for _ in range(20):
            assert difference(buffer).item() == 0
    finally:
        stop.set()
        writer.join()


# Tests of shared and copied memory.


def shares_memory(tensor, x):
    return np.shares_memory(tensor.numpy(), x)


def test_immutable_memory_is_shared():
    tensor = nx.tensor(array(LARGE, 1))
    ours = tensor.numpy()
    assert shares_memory(nx.asarray(ours), ours)
    assert shares_memory(nx.asarray(ours[3:9]), ours)
    assert shares_memory(nx.reshape(ours, (-1,)), ours)
    data = array(LARGE, 1).tobytes()
    over_bytes = np.frombuffer(data, np.float32)
    assert shares_memory(nx.asarray(over_bytes), over_bytes)
    assert shares_memory(nx.tensor(memoryview(data)), over_bytes.view(np.uint8))


def test_read_only_views_of_writable_memory_are_copied():
    owner = array(LARGE, 1)
    view = owner[:]
    view.flags.writeable = False
    frozen = array(LARGE, 1)
    writable_view = frozen[:]
    frozen.flags.writeable = False
    over_bytearray = np.frombuffer(bytearray(owner.tobytes()), np.float32)
    over_bytearray.flags.writeable = False
    for x in (view, frozen, over_bytearray, memoryview(owner).toreadonly()):
        assert not shares_memory(nx.asarray(x), np.asarray(x))
    copied = nx.asarray(frozen)
    writable_view[...] = 5
    assert set(copied.numpy().ravel().tolist()) == {1.0}


def test_copy_false_shares_writable_memory():
    x = array(LARGE, 1)
    for function in (nx.tensor, nx.asarray, nx.from_dlpack):
        assert shares_memory(function(x, copy=False), x)
        assert not shares_memory(function(x, copy=True), x)
        assert not shares_memory(function(x), x)
    tiny = np.arange(3.0)
    assert shares_memory(nx.asarray(tiny, copy=False), tiny)


@pytest.mark.parametrize(
    "copy_of",
    [
        nx.Tensor.copy,
        copy.deepcopy,
        lambda x: nx.asarray(x, copy=True),
        lambda x: x.to_device("host", copy=True),
        lambda x: nx.backend_copy(x, "host"),
    ],
    ids=["copy", "deepcopy", "asarray", "to_device", "backend_copy"],
)
def test_copies_do_not_share_memory_of_arrays(copy_of):
    x = array(SMALL, 1)
    copied = copy_of(nx.tensor(x, copy=False))
    x[...] = 7
    assert set(copied.numpy().ravel().tolist()) == {1.0}


@pytest.mark.parametrize(
    "x",
    [
        array(LARGE, 1).T[:, ::2],
        np.frombuffer(b"\0" * 9, np.uint8)[1:].view("<f4"),
        np.arange(3, dtype=">i4"),
        [1.0, 2.0],
        1.0,
    ],
    ids=["strided", "misaligned", "byte order", "list", "number"],
)
def test_copy_false_raises_if_a_copy_is_needed(x):
    with pytest.raises(nx.ArgumentError, match="copy: must not be False for memory"):
        nx.asarray(x, copy=False)
    assert nx.asarray(x).tolist() == np.asarray(x).tolist()


@pytest.mark.parametrize("dtype", ["c64", "c128", "f64", "s64", "f16"])
def test_flip_of_memory_at_any_offset(dtype):
    form = np.dtype(nx.zeros((), dtype=dtype).numpy().dtype)
    for offset in range(0, 16, form.alignment):
        memory = bytes(offset) + (np.arange(70_000) % 1000).astype(form).tobytes()
        x = np.frombuffer(memory, form, offset=offset)
        for source in (x, nx.tensor(x), nx.from_dlpack(x.copy())):
            assert np.array_equal(nx.flip(source), x[::-1])


def test_copy_false_raises_for_another_dtype():
    with pytest.raises(nx.ArgumentError, match="copy: must not be False for memory"):
        nx.asarray(array(SMALL, 1), dtype=nx.int32, copy=False)


@pytest.mark.skipif(sys.platform != "linux", reason="requires ru_maxrss in kilobytes")
def test_compile_does_not_read_template_arrays():
    """As a template, an array of 256 MB costs no memory: its pages are not accessed."""
    code = """
import resource
import numpy as np
import nxla as nx
compiled = nx.compile(lambda x: x[0], [np.zeros(8, np.float32)])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
compiled = nx.compile(lambda x: x[0], [np.zeros(1 << 26, np.float32)])
assert "f32[67108864]" in repr(compiled), compiled
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
assert grown < 64 << 10, grown
"""
    subprocess.run([sys.executable, "-c", code], check=True)


# --- functions that run as Python code outside of traces ---

#: Functions that call a function of one tensor, by names. Some of them call it traced.
CALLERS = {
    "cond": lambda f, x: nx.cond(True, f, lambda x: x, x),
    "cond, not selected": lambda f, x: nx.cond(False, f, lambda x: x, x),
    "switch": lambda f, x: nx.switch(1, [f, f, lambda x: x], x),
    "switch, not selected": lambda f, x: nx.switch(2, [f, f, lambda x: x], x),
    "switch of one branch": lambda f, x: nx.switch(0, [f], x),
    "while_loop": lambda f, x: nx.while_loop(
        lambda s: s[0] < 2, lambda s: (s[0] + 1, f(s[1])), (0, x)
    )[1],
    "while_loop without iterations": lambda f, x: nx.while_loop(lambda s: False, f, x),
    "fori": lambda f, x: nx.fori(0, 2, lambda i, s: f(s), x),
    "fori without iterations": lambda f, x: nx.fori(0, 0, lambda i, s: f(s), x),
    "for_each": lambda f, x: nx.for_each(range(3), lambda i, s: f(s), x, unroll=2),
    "for_each, unrolled": lambda f, x: nx.for_each(range(2), lambda i, s: f(s), x, unroll=True),
    "scan": lambda f, x: nx.scan(lambda c, v: (f(c), v), x, nx.arange(3.0)),
    "scan, both": lambda f, x: nx.scan(lambda c, v: (f(c), c), x, nx.arange(3.0)),
    "scan of one step": lambda f, x: nx.scan(lambda c, v: (f(c), c), x, nx.arange(1.0)),
    "map": lambda f, x: nx.map(f, nx.stack([x, x])),
    "associative_scan": lambda f, x: nx.associative_scan(lambda p, q: f(p), x),
    "checkpoint": lambda f, x: nx.checkpoint(f)(x),
    "custom_jvp": lambda f, x: with_jvp(f)(x),
    "custom_vjp": lambda f, x: with_vjp(f)(x),
    "custom_grad": lambda f, x: nx.custom_grad(x, x, lambda g: g),
    "runtime_call": lambda f, x: nx.runtime_call(f, nx.template((2,)), x),
    "hook": lambda f, x: nx.hook(x, f),
    "annotate": lambda f, x: nx.annotate(x, "note"),
}  # fmt: skip


def with_jvp(f):
    function = nx.custom_jvp(f)
    function.defjvp(lambda primals, tangents: tangents[0])
    return function


def with_vjp(f):
    function = nx.custom_vjp(f)
    function.defvjp(lambda x: (f(x), None), lambda residuals, cotangent: (cotangent,))
    return function


def assign(x):
    if not nx.is_tracing():
        x[0] = 9.0
    return x


@pytest.mark.parametrize("name", CALLERS)
@pytest.mark.parametrize(
    "function", [lambda x: operator.iadd(x, 1.0), assign, lambda x: x], ids=["add", "assign", "x"]
)
def test_functions_of_eager_calls_do_not_change_arguments(name, function):
    for x in (np.ones(2, np.float32), nx.ones(2)):
        result = CALLERS[name](function, x)
        assert x.tolist() == [1.0, 1.0]
        # An assignment to the result does not change the argument either.
        for leaf in nx.tree.leaves(result):
            leaf[0] = 7.0
        assert x.tolist() == [1.0, 1.0]
    if function is not assign:
        x = np.ones(2, np.float32)
        eager, traced = CALLERS[name](function, x), nx.jit(lambda: CALLERS[name](function, x))()
        assert [y.tolist() for y in nx.tree.leaves(eager)] == [
            y.tolist() for y in nx.tree.leaves(traced)
        ]


@pytest.mark.parametrize("name", CALLERS)
def test_eager_and_traced_calls_have_equal_dtypes(name):
    def half(x):
        assert isinstance(x, nx.Tensor | nx.Expr)
        return nx.astype(x / 2, "f32")

    x = np.ones(2, np.float32)
    eager, traced = CALLERS[name](half, x), nx.jit(lambda: CALLERS[name](half, x))()
    assert [y.dtype for y in nx.tree.leaves(eager)] == [y.dtype for y in nx.tree.leaves(traced)]


def test_scan_steps_return_separate_tensors():
    def step(carry, value):
        carry[0] = value
        return carry, carry

    carry, rows = nx.scan(step, nx.zeros(2), nx.arange(3.0))
    assert (carry.tolist(), rows[:, 0].tolist()) == ([2.0, 0.0], [0.0, 1.0, 2.0])


@pytest.mark.parametrize("on_device", [False, True])
def test_workers_receive_data_once_and_again_after_assignments(on_device, device):
    x = nx.zeros(LARGE).to_device(device if on_device else "host")
    stages = nx.graph.split(nx.debug_expr(nx.sum)(x), lambda node: "none")
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        for number in range(3):
            received = []
            for _ in range(2):
                before = nx.graph.traffic()["sent"]
                assert nx.graph.run(stages, x, executor=pool).item() == number
                received.append(nx.graph.traffic()["sent"] - before >= x.nbytes)
            assert received == [True, False]
            x[0, number] = 1.0


def test_arrays_without_a_copy():
    """NumPy before version 2 does not pass the argument `copy`."""
    x = nx.tensor([1.0, 2.0])
    for dtype in (None, "f4", np.float32, np.dtype("f4")):
        assert shares_memory(x, x.__array__(dtype, copy=False))
    message = "array: copy: must not be False for another dtype"
    with pytest.raises(ValueError, match=message):
        x.__array__("f8", copy=False)
    if PLATFORM != "none":
        with pytest.raises(ValueError, match=message):
            x.to_device(DEVICE).__array__(copy=False)
    assert x.__array__("f8", copy=None).dtype == x.__array__("f8").dtype == np.float64
