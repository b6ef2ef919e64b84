"""With too little memory, a function returns its result or a descriptive `MemoryError`."""

import sys

import pytest

import nxla as nx
from children import run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits and /proc")

#: Programs that each allocate several megabytes; the pool of freed memory is empty.
PROGRAMS = {
    "add": "x + 1",
    "window_reduce": "nx.window_sum(nx.ones((1 << 20,)), (3,))",
    "window_scatter": "nx.window_scatter_max(x, half, 0.0, (2,), strides=(2,))",
    "fft": "nx.fft.fft(x)",
    "sort": "nx.sort(nx.ones((2048, 1024)), axis=0)",
    "conv": "nx.conv(nx.ones((1, 4, 512, 512)), nx.ones((8, 4, 3, 3)))",
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_results_and_kernel_buffers_raise_out_of_memory(program):
    printed = run(f"""
        from nxla import _core
        x, half = nx.ones((1 << 21,)), nx.ones((1 << 20,))
        float(nx.sum(nx.sort(x)).item())
        _core.release_held_memory()
        limit(2)
        try:
            results = [{program} for _ in range(40)]
        except nx.OutOfMemoryError as error:
            print(isinstance(error, MemoryError), error)
    """)
    assert printed.startswith("True ")
    assert "bytes" in printed


@pytest.mark.parametrize(
    "program",
    [
        "nx.tensor(array)", "nx.tensor(numbers)", "nx.from_dlpack(array[::2].copy())",
        "nx.from_binary(bytes(16 << 20), 'f32')", "nx.load_numpy(npy)", "x.tolist()",
        "nx.serialize({'x': x})", "nx.deserialize(saved)", "pickle.loads(pickled)",
        "nx.to_binary(x)", "x.numpy().copy()",
        "nx.jit(lambda: nx.tensor(array) + 1, compiler='evaluator')()",
    ],
)  # fmt: skip
def test_conversions_raise_memory_error(program):
    printed = run(f"""
        import io, pickle
        from nxla import _core
        array = np.ones(4 << 20)
        numbers = [1.0] * (2 << 20)
        x = nx.ones((4 << 20,))
        saved, pickled = nx.serialize(x), pickle.dumps(x)
        file = io.BytesIO()
        np.save(file, array)
        npy = file.getvalue()
        _core.release_held_memory()
        limit(4)
        try:
            results = [{program} for _ in range(9)]
        except MemoryError:
            print("refused")
    """)
    assert printed == "refused\n"


def test_computation_without_memory_for_threads():
    # Each thread of the pool needs some megabytes for its stack.
    printed = run("""
        x = nx.ones((1 << 17,))
        limit(1)
        try:
            print(nx.sum(nx.sin(x) * 0 + 1).item())
        except MemoryError:
            print("refused")
    """)
    assert printed in ("131072.0\n", "refused\n")


def test_out_of_memory_error_is_a_memory_error():
    with pytest.raises(MemoryError, match="bytes"):
        nx.ones((1 << 44,)) + 1
    assert issubclass(nx.OutOfMemoryError, (nx.NxlaError, MemoryError))


LONG_KERNELS = {
    "products of integers": "nx.matmul(integers, integers)",
    "windows": "nx.window_sum(wide, (99, 99), padding='same')",
    "factorization": "nx.linalg.eigh(square)",
    "element-wise code": "long(wide)",
}


@pytest.mark.parametrize("program", LONG_KERNELS.values(), ids=LONG_KERNELS)
def test_long_kernels_are_interrupted(program):
    printed = run(f"""
        integers = nx.astype(nx.ones((2500, 2500)), "s64")
        wide = nx.ones((4000, 4000))
        square = nx.eye(1500) + nx.reshape(nx.iota((1500 * 1500,)), (1500, 1500)) * 1e-6
        square = square + nx.matrix_transpose(square)
        def code(x):
            for i in range(60):
                x = nx.sin(x) + nx.exp(x * 0.1)
            return x
        long = nx.jit(code, compiler="evaluator")
        signal.signal(signal.SIGINT, signal.default_int_handler)
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        start = time.monotonic()
        try:
            {program}
        except KeyboardInterrupt:
            print("interrupted")
        sys.stderr.write(str(time.monotonic() - start))
        # The thread pool still works.
        assert nx.sum(nx.ones((1 << 17,))).item() == 1 << 17
        os._exit(0 if time.monotonic() - start < 10 else 5)
    """)
    assert printed in ("interrupted\n", "")


@pytest.mark.stress
def test_xla_programs_do_not_exhaust_memory():
    # Each program has twenty operations that fusion cannot combine, and needs about thirty memory
    # maps. The plugin frees the maps of a program: with a cache for six programs, an evicted
    # program leaves no map and about a kilobyte. Live functions keep their graphs, about ten
    # kilobytes each. The plugin compiles the parts of a program on several threads; parts that are
    # compiled at the same time need half as much memory again while the program lives. On one
    # processor the figures do not depend on the load of the machine.
    printed = run(
        """
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        def program(number):
            def f(x):
                for step in range(5):
                    x = nx.sin(x) * (number + step)
                    x = x / (nx.max(nx.abs(x)) + 1)
                return x
            return nx.jit(f, compiler="xla")
        def usage():
            with open("/proc/self/maps") as maps, open("/proc/self/statm") as pages:
                megabytes = int(pages.read().split()[1]) * resource.getpagesize() >> 20
                return sum(1 for _ in maps), megabytes
        x = nx.tensor(np.linspace(-1, 1, 16, dtype=np.float32))
        results, seen = [], []
        for number in range(5000):
            f = program(number)
            result = f(x).numpy()
            assert np.isfinite(result).all() and np.abs(result).max() <= 1, number
            results.append(f)
            if number % 250 == 249:
                seen.append(usage())
                print(number + 1, *seen[-1], flush=True)
        assert np.allclose(results[0](x).numpy(), program(0)(x).numpy())
        half = len(seen) // 2
        maps, megabytes = (max(kind) for kind in zip(*seen[half:]))
        first_maps, first_megabytes = (max(kind) for kind in zip(*seen[4:half]))
        # The cache estimates the size of programs with an error of at most a fifth.
        assert maps < first_maps + 2000, seen
        assert megabytes < first_megabytes + 100, seen
        """,
        timeout=7200,
    )
    assert printed
