"""Exceptions: subclasses of `NxlaError`, most of them also of a built-in exception.

A message names the operation, the argument, both shapes, and the source line: ``dot: axis 1 of left
and axis 0 of right: must have equal sizes; got 3 and 4 (train.py:31)``.
"""

from __future__ import annotations

from nxla import _hints
from nxla._core import (
    ArgumentError,
    DeviceError,
    DTypeError,
    ExecutionError,
    FormatError,
    GradientError,
    InternalError,
    NxlaError,
    OptionError,
    OutOfMemoryError,
    ShapeError,
    TraceError,
)


class CaptureWarning(UserWarning):
    """A function captures a large tensor instead of receiving it as an argument."""


class RecompileWarning(UserWarning):
    """A function was compiled more often than its option `max_compiles` allows."""


__all__ = [
    "ArgumentError",
    "CaptureWarning",
    "DTypeError",
    "DeviceError",
    "ExecutionError",
    "FormatError",
    "GradientError",
    "InternalError",
    "NxlaError",
    "OptionError",
    "OutOfMemoryError",
    "RecompileWarning",
    "ShapeError",
    "TraceError",
]

_hints.install_missing_names(globals())
