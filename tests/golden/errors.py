"""Which of our errors stand for which of Nx's.

Nx raises ``ArgumentError`` for nearly every mistake; ours say what kind of mistake it is. Errors
that are accidents of Erlang or of Nx's reference backend are marked native: any error of ours, or a
value, is as good.
"""

from __future__ import annotations

import nxla as nx
from golden.values import Failure

#: The classes that stand for an exception of Nx.
MATCHING: dict[str, tuple[type[Exception], ...]] = {
    "ArgumentError": (nx.ShapeError, nx.DTypeError, nx.ArgumentError, nx.OptionError),
    "RuntimeError": (nx.ShapeError, nx.ArgumentError, nx.TraceError, nx.ExecutionError),
}


def matches(expected: Failure, raised: Exception) -> bool:
    """Tell whether what was raised is the mistake that Nx found."""
    if isinstance(raised, MATCHING.get(expected.exception, ())):
        return True
    # Python itself refuses options that a function does not have, and ones that it misses.
    text = str(raised)
    return type(raised) is TypeError and ("unexpected keyword" in text or "missing" in text)
