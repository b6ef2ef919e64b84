"""Tests of forked processes, and of the end of processes with running threads."""

import os
import shutil
import sys

import pytest

from children import run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks, signals and /proc")

BACKENDS = ["evaluator", "xla"]


def test_evaluator_works_in_a_forked_child():
    printed = run("""
        x = nx.ones((1 << 18,))
        work = lambda: float(nx.sum(nx.sin(x) * 2 + nx.sort(x)).item())
        before = work()
        for _ in range(3):
            child = os.fork()
            if child == 0:
                grandchild = os.fork()
                same = work() == before
                if grandchild == 0:
                    os._exit(not same)
                os._exit(not same or os.waitpid(grandchild, 0)[1])
            assert os.waitpid(child, 0)[1] == 0
        print(work() == before)
    """)
    assert printed == "True\n"


def test_fork_does_not_inherit_locks():
    # Threads compile and drop programs without the interpreter lock.
    printed = run("""
        def compile_repeatedly():
            number = 0
            while True:
                number += 1
                nx.jit(lambda x: x + number, compiler="evaluator")(1.0)
                if number % 3 == 0:
                    nx.set_cache_limit(0)
                    nx.set_cache_limit(1 << 20)
        for _ in range(3):
            threading.Thread(target=compile_repeatedly, daemon=True).start()
        x = nx.ones((1 << 10,))
        for number in range(400):
            child = os.fork()
            if child == 0:
                # An alarm ends a child that waits forever, and its status is the signal.
                signal.alarm(20)
                os._exit(nx.sum(nx.sin(x) * 0 + number).item() != number << 10)
            status = os.waitpid(child, 0)[1]
            assert status == 0, (number, status)
        print("done")
        os._exit(0)
    """)
    assert printed == "done\n"


def test_fork_waits_for_a_thread_that_imports():
    # A thread calls a function while it holds the lock of imports, for which `os.fork` waits.
    printed = run("""
        import _imp
        holds_lock = threading.Event()
        def call_with_import_lock():
            _imp.acquire_lock()
            holds_lock.set()
            time.sleep(0.2)
            nx.jit(lambda x: x + 1, compiler="evaluator")(1.0)
            _imp.release_lock()
        thread = threading.Thread(target=call_with_import_lock)
        thread.start()
        holds_lock.wait()
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            os._exit(nx.jit(lambda x: x + 2, compiler="evaluator")(1.0).item() != 3)
        thread.join()
        print(os.waitpid(child, 0)[1])
    """)
    assert printed == "0\n"


def test_stages_run_in_a_pool_of_forked_processes():
    printed = run("""
        import concurrent.futures, multiprocessing
        def function(x, y):
            return nx.sum(nx.sin(x) * y), nx.sort(x + y)
        x = nx.ones((1 << 17,))
        expected = nx.jit(function, compiler="evaluator")(x, x)
        graph = nx.graph.split(
            nx.debug_expr(function)(x, x), lambda node: "before" if node.op == "sum" else "none"
        )
        context = multiprocessing.get_context("fork")
        with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
            found = nx.graph.run(graph, x, x, executor=pool)
        print(all((a == b).numpy().all() for a, b in zip(found, expected)))
    """)
    assert printed == "True\n"


def test_xla_raises_in_a_forked_child():
    printed = run("""
        function = nx.jit(lambda x: x + 1, compiler="xla")
        y = function(nx.ones(3))
        child = os.fork()
        if child == 0:
            for attempt in (lambda: function(nx.ones(3)), lambda: y + y,
                            lambda: nx.jit(lambda x: x * 3, compiler="xla")(nx.ones(3))):
                try:
                    attempt()
                except nx.DeviceError as error:
                    assert "fork" in str(error), error
                else:
                    sys.exit(4)
            del y
            assert nx.sum(nx.ones((1 << 17,))).item() == 1 << 17
            sys.exit(3)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), y.tolist())
    """)
    assert printed == "3 [2.0, 2.0, 2.0]\n"


def test_streams_raise_in_a_forked_child():
    printed = run("""
        stream = nx.stream(lambda x, total: (total, total + x), nx.template((), nx.int32), 0)
        stream.send(1)
        stream.recv()
        child = os.fork()
        if child == 0:
            try:
                stream.send(2)
                stream.recv()
            except Exception as error:
                sys.exit(3 if "this process is a fork" in str(error) else 4)
            sys.exit(5)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        stream.send(2)
        print(stream.recv().item())
    """)
    assert printed == "3\n1\n"


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("hook", ["time.sleep(0.3)", "sum(range(10**4))"])
def test_exit_with_daemon_threads_in_hooks(backend, hook):
    run(
        f"""
        function = nx.jit(lambda x: nx.hook(x + 1, lambda _: {hook}), compiler="{backend}")
        x = nx.ones(3)
        function(x)
        def work():
            while True:
                function(x)
        for _ in range(3):
            threading.Thread(target=work, daemon=True).start()
        time.sleep(0.4)
        sys.exit(3)
        """,
        status=3,
    )


@pytest.mark.parametrize("backend", BACKENDS)
def test_exit_with_a_stream_in_a_hook(backend):
    run(
        f"""
        def step(x, total):
            return nx.hook(total, lambda _: time.sleep(0.3)), total + x
        stream = nx.stream(step, nx.template((), nx.int32), 0, compiler="{backend}")
        for i in range(9):
            stream.send(i)
        time.sleep(0.2)
        sys.exit(3)
        """,
        status=3,
    )


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "work",
    [
        "nx.while_loop(lambda x: x >= 0, lambda x: x * 0, nx.tensor(1.0))",
        "nx.sum(nx.matmul(nx.ones((200, 200)), nx.ones((200, 200))))",
    ],
    ids=["endless loop", "queue"],
)
def test_exit_with_computing_daemon_threads(backend, work):
    run(
        f"""
        function = nx.jit(lambda: {work}, compiler="{backend}")
        def go():
            while True:
                function()
        for _ in range(2):
            threading.Thread(target=go, daemon=True).start()
        time.sleep(1.0)
        sys.exit(3)
        """,
        status=3,
    )


@pytest.mark.parametrize("wait", [0.05, 0.4])
def test_exit_during_compilation(wait):
    run(
        f"""
        def function(x):
            for i in range(150):
                x = nx.sin(x) * nx.matmul(x, x) + i
            return x
        compiled = nx.jit(function, compiler="xla")
        nx.jit(lambda x: x + 1, compiler="xla")(nx.ones(3))
        threading.Thread(target=lambda: compiled(nx.ones((20, 20))), daemon=True).start()
        time.sleep({wait})
        sys.exit(3)
        """,
        status=3,
    )


def test_exit_with_a_tracing_daemon_thread():
    run(
        """
        def function(x):
            for i in range(200):
                x = nx.sin(x) + i
            return x
        def go():
            while True:
                nx.jit(function, compiler="evaluator")(nx.ones(3))
        threading.Thread(target=go, daemon=True).start()
        time.sleep(0.5)
        sys.exit(3)
        """,
        status=3,
    )


@pytest.mark.parametrize(
    "work",
    [
        "nx.jit(lambda x: (wait(), x)[1])(1.0)",
        "nx.sin(Waits())",
        "nx.ones(wait() for _ in range(3))",
        "nx.jit(lambda x: x)(Record(1.0))",
        "nx.jit(Waits())",
    ],
    ids=["function", "attribute", "iterator", "container", "finalizer"],
)
def test_exit_with_a_daemon_thread_in_callbacks(work):
    # The thread requests the object while the interpreter shuts down.
    run(
        f"""
        import dataclasses
        def wait():
            waiting.set()
            time.sleep(0.2)
            return 1
        class Waits:
            __array__ = property(lambda _: wait())
            __call__ = __del__ = lambda self: wait()
        @dataclasses.dataclass
        class Record:
            x: float
            def __getattribute__(self, name):
                return name == "x" and float(wait())
        class Last:
            def __del__(self):
                time.sleep(0.4)
        waiting, sys.last_value = threading.Event(), Last()
        threading.Thread(target=lambda: {work}, daemon=True).start()
        waiting.wait()
        sys.exit(3)
        """,
        status=3,
    )


def script_with_plugin(path):
    return f"""
        try:
            nx.jit(lambda x: x + 1, compiler="xla", plugin={str(path)!r})(nx.ones(3))
        except nx.DeviceError as error:
            print(error)
    """


@pytest.mark.usefixtures("device")
def test_truncated_plugin_is_rejected(tmp_path):
    from nxla.plugins import find

    whole = find()
    path = tmp_path / "cut.so"
    with open(whole, "rb") as source, open(path, "wb") as target:
        shutil.copyfileobj(source, target)
        target.truncate(os.path.getsize(whole) // 2)
    assert "is truncated" in run(script_with_plugin(path))
    path.write_bytes(b"no library at all" * 10)
    assert "not a shared library" in run(script_with_plugin(path))


def test_aborting_plugin_is_rejected(tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    source, path = tmp_path / "aborts.c", tmp_path / "aborts.so"
    source.write_text(
        "#include <stdlib.h>\n__attribute__((constructor)) static void go(void) { abort(); }\n"
    )
    assert os.system(f"{compiler} -shared -fPIC -o {path} {source}") == 0
    assert "signal 6" in run(script_with_plugin(path))


def test_plugin_check_is_cached(tmp_path):
    environment = dict(os.environ, XDG_CACHE_HOME=str(tmp_path))
    code = """
        import subprocess
        nx.jit(lambda x: x + 1, compiler="xla")(nx.ones(3))
        print(open(os.path.join(os.environ["XDG_CACHE_HOME"], "nxla", "plugins")).read())
    """
    first = run(code, env=environment)
    assert run(code, env=environment) == first
    assert len(first.split()) == 3
