"""Which of our errors stand for which of Nx's.

Nx raises ``ArgumentError`` for nearly every mistake; ours say what kind of mistake it is. Errors
that are accidents of Erlang or of Nx's reference backend are marked native: any error of ours, or a
value, is as good.
"""

from __future__ import annotations

from pathlib import Path

import nxla as nx
from golden.elixir.errors import ElixirError
from golden.values import Failure

#: The classes that stand for an exception of Nx.
MATCHING: dict[str, tuple[type[Exception], ...]] = {
    "ArgumentError": (
        nx.ShapeError,
        nx.DTypeError,
        nx.ArgumentError,
        nx.OptionError,
        nx.FormatError,
    ),
    "RuntimeError": (nx.ShapeError, nx.ArgumentError, nx.TraceError, nx.ExecutionError),
}


def matches(expected: Failure, raised: BaseException) -> bool:
    """Tell whether what was raised is the mistake that Nx found."""
    if expected.native and isinstance(raised, nx.NxlaError | TypeError | AssertionError):
        return True
    if isinstance(raised, ElixirError):
        return raised.exception == expected.exception
    if isinstance(raised, MATCHING.get(expected.exception, ())):
        return True
    if type(raised) is not TypeError:
        return False
    # Python itself refuses options that a function does not have, and arguments of a wrong type,
    # as long as it is our function that is called wrongly, and not one of these tests.
    text = str(raised)
    compiled = any(note.startswith("while processing") for note in getattr(raised, "__notes__", ()))
    return "unexpected keyword" in text or "missing" in text or compiled or _inside_nxla(raised)


def _inside_nxla(raised: BaseException) -> bool:
    frame = raised.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    package = str(Path(nx.__file__).parent)
    return frame is not None and frame.tb_frame.f_code.co_filename.startswith(package)
