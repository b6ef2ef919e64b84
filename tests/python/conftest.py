"""Fixtures and options of all tests."""

import itertools
import os
import subprocess
import sys

import pytest

from recordings import RECORDS, Recording
from where import PLATFORM

# Programs for optional libraries; the tests that run the programs check for the libraries.
collect_ignore_glob = ["programs/*", "jax_examples/*"]


#: A program that tests the devices of a plugin, and prints the error if they fail.
PROBE = """
import sys
import nxla as nx
nx.jit(lambda x: x + 1, compiler="xla")(1.0).item()
platforms = {device.platform for device in nx.devices()}
assert sys.argv[1] in platforms, f"the plugin must have such a device; got {sorted(platforms)}"
"""


def missing_reason(platform):
    """Return why tests cannot run on a platform, None if they can."""
    from nxla import plugins

    path = os.environ.get(plugins.VARIABLE) or plugins.find_for(platform)
    if path is None:
        return "no plugin for it is installed; `python -m nxla doctor` lists the plugins"
    # A plugin without its hardware may end the process.
    environment = {**os.environ, plugins.VARIABLE: path}
    command = [sys.executable, "-c", PROBE, platform]
    probe = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if probe.returncode:
        return (probe.stderr.strip().splitlines() or [f"the probe ended with {probe.returncode}"])[
            -1
        ]
    os.environ[plugins.VARIABLE] = path
    return None


def pytest_configure():
    """Set the precision of products on GPUs for comparisons, and leave memory for JAX."""
    if PLATFORM not in {"cpu", "none"}:
        os.environ.setdefault("NVIDIA_TF32_OVERRIDE", "0")
        os.environ.setdefault("XLA_FLAGS", "--xla_gpu_enable_triton_gemm=false")
        # By default, JAX would reserve most of the memory of the device.
        os.environ.setdefault("JAX_PLATFORMS", "cpu")


#: Files whose tests also run on `auto`, because they test calls. Tests of values need only the
#: evaluator and XLA, because `auto` returns the values of one of them.
RUN_ON_AUTO = {
    "test_control.py",
    "test_donation.py",
    "test_errors.py",
    "test_exit.py",
    "test_expression_calls.py",
    "test_foreign_calls.py",
    "test_functions.py",
    "test_garbage.py",
    "test_hooks.py",
    "test_loop_counters.py",
    "test_policies.py",
    "test_promises_backend.py",
    "test_promises_compiler.py",
    "test_promises_defn.py",
    "test_promises_expr.py",
    "test_promises_graph.py",
    "test_retracing.py",
    "test_streams.py",
    "test_user_programs.py",
    "test_value_semantics.py",
}


def compiler_of(item):
    """Return the compiler of a test, or None without one."""
    return getattr(item, "callspec", None) and item.callspec.params.get("compiler")


def is_selected(item):
    """Return whether results of a test can differ on `auto`, and the test runs on `auto`."""
    return compiler_of(item) != "auto" or item.path.name in RUN_ON_AUTO


def pytest_collection_modifyitems(items):
    """Select the tests to run, and skip all tests with a reason if the platform is missing."""
    items[:] = [item for item in items if is_selected(item)]
    if PLATFORM == "none":
        for item in items:
            if compiler_of(item) == "xla":
                item.add_marker(pytest.mark.skip(reason="needs a PJRT plugin"))
        return
    why = None if PLATFORM == "cpu" else missing_reason(PLATFORM)
    if why is not None:
        mark = pytest.mark.skip(reason=f"NXLA_TEST_PLATFORM={PLATFORM}: {why}")
        for item in items:
            item.add_marker(mark)


@pytest.fixture(params=["evaluator", "xla", "auto"])
def compiler(request):
    """Return each compiler; XLA without a plugin fails the test and names the missing plugin."""
    return request.param


@pytest.fixture(scope="module")
def recording(request):
    """Return the recorded values of a test file."""
    found = Recording(request.path.stem)
    yield found
    if RECORDS:
        found.save()


@pytest.fixture
def recorded(request, recording):
    """Return a function that returns the next recorded value of a test, see `recordings`."""
    name = request.node.name
    if (compiler := compiler_of(request.node)) is not None:
        name = name.replace(f"{compiler}-", "").replace(f"[{compiler}]", "")
    number = itertools.count()
    return lambda compute, *args: recording.value(f"{name} {next(number)}", compute, args)
