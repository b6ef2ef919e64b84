"""The exceptions of nxla that correspond to exceptions of Nx.

Nx raises ``ArgumentError`` for nearly every mistake; nxla has a class for each kind of mistake.
Errors of Erlang and of Nx's reference backend are marked native; nxla may raise any error or return
a value.
"""

from __future__ import annotations

from pathlib import Path

import nxla as nx
from golden.elixir.errors import ElixirError
from golden.values import Failure

#: The classes that correspond to an exception of Nx.
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
    """Return whether an exception corresponds to the error of Nx."""
    if expected.native and isinstance(raised, nx.NxlaError | TypeError | AssertionError):
        return True
    if isinstance(raised, ElixirError):
        return raised.exception == expected.exception
    if isinstance(raised, MATCHING.get(expected.exception, ())):
        return True
    if type(raised) is not TypeError:
        return False
    # Python rejects unknown options and arguments of a wrong type. The error counts only if it
    # comes from a function of nxla and not from a function of these tests.
    text = str(raised)
    compiled = any(note.startswith("while processing") for note in getattr(raised, "__notes__", ()))
    # An argument of a wrong type is an error like "window_sum: padding: must be of type …; got 1".
    named = ": must be " in text and "; got " in text
    rejected = "unexpected keyword" in text or "missing" in text
    return rejected or compiled or named or _inside_nxla(raised)


def _inside_nxla(raised: BaseException) -> bool:
    frame = raised.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    package = str(Path(nx.__file__).parent)
    return frame is not None and frame.tb_frame.f_code.co_filename.startswith(package)
