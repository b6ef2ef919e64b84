"""The rule for tests and examples that need XLA, for systems without a plugin.

``NXLA_TEST_PLATFORM=none`` hides installed plugins from the tests and from their child processes.
A test that fails because no plugin is found is skipped, except on the evaluator. A test that hides
the error requests the fixture `device`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import nxla as nx

IS_WITHOUT_PLUGIN = os.environ.get("NXLA_TEST_PLATFORM") == "none"

if IS_WITHOUT_PLUGIN:
    # The variable also accepts the name of a platform, and no platform has this name.
    os.environ["NXLA_PJRT_PLUGIN"] = "none"

#: Errors of functions that need a plugin on a platform without a plugin.
NO_PLUGIN = re.compile(
    r'no PJRT plugin found|device: name: must be one of host; got "cpu:0"$', re.M
)


def runs_on_evaluator(item: pytest.Item) -> bool:
    """Return whether a test runs on the evaluator only, which never needs a plugin."""
    parameters = getattr(item, "callspec", None) and item.callspec.params
    return bool(parameters) and parameters.get("compiler") == "evaluator"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Skip the tests and examples that need XLA if ``NXLA_TEST_PLATFORM=none`` is set."""
    report = yield
    if IS_WITHOUT_PLUGIN and report.failed and not runs_on_evaluator(item):
        output = getattr(call.excinfo.value, "stderr", None) or ""
        if NO_PLUGIN.search(report.longreprtext) or NO_PLUGIN.search(str(output)):
            report.outcome = "skipped"
            report.longrepr = (str(item.path), (item.location[1] or 0) + 1, "needs a PJRT plugin")
    return report


@pytest.fixture(scope="session")
def device() -> nx.Device:
    """Return the first device of the plugin; without a plugin, skip the test."""
    if IS_WITHOUT_PLUGIN:
        pytest.skip("needs a PJRT plugin")
    import nxla as nx

    return nx.devices()[1]
