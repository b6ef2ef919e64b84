"""What the tests share."""

import pytest


@pytest.fixture(params=["evaluator", "xla"])
def compiler(request):
    """Each compiler in turn; XLA without a plugin fails the test, and says what is missing."""
    return request.param
