"""The hardware for tests of XLA: the host, or the platform in ``NXLA_TEST_PLATFORM``."""

import os

import pytest

#: The platform, such as ``"cpu"`` or ``"cuda"``; ``"none"`` skips the tests that need XLA.
PLATFORM = os.environ.get("NXLA_TEST_PLATFORM") or "cpu"

#: The name of the first device.
DEVICE = "cpu:0" if PLATFORM == "none" else f"{PLATFORM}:0"

#: Marks tests of folds that combine the elements in order, as CPUs do.
in_order = pytest.mark.skipif(PLATFORM == "cuda", reason="a GPU folds elements in another order")

#: Marks tests that divide one processor into several devices, or that test CPU plugins.
on_cpu = pytest.mark.skipif(PLATFORM != "cpu", reason="requires a CPU plugin")
