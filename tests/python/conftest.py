"""What the tests share."""

import pytest

# Programs for libraries that need not be installed; the tests that run them look for those.
collect_ignore_glob = ["twins/*"]


@pytest.fixture(params=["evaluator", "xla"])
def compiler(request):
    """Each compiler in turn; XLA without a plugin fails the test, and says what is missing."""
    return request.param
