"""A process ends soon after its exit begins, even if computations are running."""

import signal
import subprocess
import sys
import textwrap
import time

import pytest

from where import DEVICE

#: The maximum seconds until a process ends, and a margin for a busy machine.
MAX_SECONDS = 2.0
MARGIN = 2.0

PRELUDE = """
import signal, sys, threading, time
import nxla as nx

def leave(*_):
    print("leaving", flush=True)
    sys.exit(3)

endless = nx.jit(
    lambda x: nx.while_loop(lambda s: s >= 0, lambda s: s * 0, x), compiler="COMPILER"
)
slow = nx.jit(
    lambda x: nx.hook(x + 1, lambda _: (started.set(), time.sleep(60))), compiler="COMPILER"
)
started = threading.Event()
nx.jit(lambda x: x + 1, compiler="COMPILER")(1.0)
"""

#: The code that the main thread runs before the process exits.
SCENARIOS = {
    "in a loop": """
        signal.signal(signal.SIGALRM, leave)
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        endless(1.0).item()
    """,
    "after an interrupt": """
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        try:
            endless(1.0).item()
        except KeyboardInterrupt:
            leave()
    """,
    "in a donated loop": """
        donating = nx.jit(
            lambda x: nx.while_loop(lambda s: s[0] >= 0, lambda s: s * 0, x),
            compiler="COMPILER",
            donate_argnums=0,
        )
        x = nx.ones(9) if "COMPILER" == "evaluator" else nx.device_put(nx.ones(9), "DEVICE")
        donating.warm_up(x)
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 1.0)
        try:
            donating(x).tolist()
        except KeyboardInterrupt:
            assert x.is_released() == ("COMPILER" != "evaluator")
            leave()
    """,
    "with a daemon thread in a loop": """
        threading.Thread(target=lambda: endless(1.0).item(), daemon=True).start()
        time.sleep(0.5)
        leave()
    """,
    "with a daemon thread in a hook": """
        threading.Thread(target=lambda: slow(1.0).item(), daemon=True).start()
        started.wait()
        leave()
    """,
    "after an interrupt of a pipeline": """
        def endless(x):
            return nx.while_loop(lambda s: s >= 0, lambda s: s * 0, x)

        expression = nx.debug_expr(lambda x: nx.graph.mark(endless(x), "end") + 1)(1.0)
        stages = nx.graph.split(expression, nx.graph.Policy.marks("end"))
        signal.signal(signal.SIGALRM, signal.default_int_handler)

        def batches():
            yield 1.0
            # The stages of the first batch have begun.
            signal.setitimer(signal.ITIMER_REAL, 0.5)
            yield 2.0

        try:
            list(nx.graph.pipeline(stages, batches(), compiler="COMPILER"))
        except KeyboardInterrupt:
            leave()
    """,
    "in a hook": """
        signal.signal(signal.SIGALRM, leave)
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        slow(1.0)
    """,
    "with a stream in a hook": """
        step = lambda x, s: (nx.hook(x, lambda _: (started.set(), time.sleep(60))), s)
        stream = nx.stream(step, nx.template((), nx.int32), 0, compiler="COMPILER")
        stream.send(1)
        started.wait()
        leave()
    """,
}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_exit_is_prompt_during_computations(compiler, scenario):
    if "SIGALRM" in SCENARIOS[scenario] and not hasattr(signal, "SIGALRM"):
        pytest.skip("requires signals of timers")
    script = (PRELUDE + textwrap.dedent(SCENARIOS[scenario])).replace("COMPILER", compiler)
    script = script.replace("DEVICE", DEVICE)
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as child:
        try:
            assert child.stdout.readline() == "leaving\n", child.stderr.read()
            start = time.monotonic()
            status = child.wait(timeout=60)
            seconds = time.monotonic() - start
        finally:
            child.kill()
        assert status == 3, child.stderr.read()
    assert seconds < MAX_SECONDS + MARGIN


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("delay", [0.02, 0.1])
def test_exit_during_first_programs_succeeds(delay):
    # The plugin makes static objects in its first products; the end of the process destroys them.
    script = f"""
        import time
        import nxla as nx

        x = nx.zeros((1200, 1200))
        f = nx.jit(lambda x: x @ x @ x @ x @ x @ x @ x @ x @ x @ x, compiler="xla")
        f.warm_up(x)
        y = f(x)
        for _ in range(12):
            y = f(y)
        time.sleep({delay})
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True, timeout=60)


def test_the_variables_of_a_program_are_finalized(tmp_path):
    path = tmp_path / "results.csv"
    code = f"""
        class Last:
            def __del__(self):
                print("finalized")
        last = Last()
        file = open({str(path)!r}, "w")
        file.write("1,2,3")
        import nxla as nx
        nx.jit(lambda x: x + 1)(1.0)
        """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "finalized\n"
    assert path.read_text() == "1,2,3"
