"""What the tests share."""

import os
import subprocess
import sys

import pytest

from where import PLATFORM

# Programs for libraries that need not be installed; the tests that run them look for those.
collect_ignore_glob = ["twins/*"]


#: Says whether the devices of a plugin can be used, and what is wrong with them otherwise.
TRY = """
import sys
import nxla as nx
nx.jit(lambda x: x + 1, compiler="xla")(1.0).item()
platforms = {device.platform for device in nx.devices()}
assert sys.argv[1] in platforms, f"the plugin has no device of it, but of {sorted(platforms)}"
"""


def missing(platform):
    """Return why tests cannot run on a platform, None if they can."""
    from nxla import plugins

    path = os.environ.get(plugins.VARIABLE) or plugins.find_for(platform)
    if path is None:
        return "no plugin for it is installed; python -m nxla doctor says which there are"
    # A plugin without its hardware may end the process.
    environment = {**os.environ, plugins.VARIABLE: path}
    command = [sys.executable, "-c", TRY, platform]
    tried = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if tried.returncode:
        return (tried.stderr.strip().splitlines() or [f"it ended with {tried.returncode}"])[-1]
    os.environ[plugins.VARIABLE] = path
    return None


def pytest_configure():
    """Have XLA do what is too small to be compiled, and multiply as what it is compared with."""
    os.environ.setdefault("NXLA_COMPILE_ABOVE", "0")
    if PLATFORM != "cpu":
        os.environ.setdefault("NVIDIA_TF32_OVERRIDE", "0")
        os.environ.setdefault("XLA_FLAGS", "--xla_gpu_enable_triton_gemm=false")
        # JAX would take most of the memory there.
        os.environ.setdefault("JAX_PLATFORMS", "cpu")


def pytest_collection_modifyitems(items):
    """Skip all tests, and say why, where the platform that is to be tested is not at hand."""
    why = None if PLATFORM == "cpu" else missing(PLATFORM)
    if why is not None:
        mark = pytest.mark.skip(reason=f"NXLA_TEST_PLATFORM={PLATFORM}: {why}")
        for item in items:
            item.add_marker(mark)


@pytest.fixture(params=["evaluator", "xla"])
def compiler(request):
    """Each compiler in turn; XLA without a plugin fails the test, and says what is missing."""
    return request.param
