"""Exceptions. All are `NxlaError`; most are also the built-in exception that fits.

A text names the operation as it was written, the argument, both shapes, and the line:
``dot: axis 1 of left and axis 0 of right: must have equal sizes; got 3 and 4 (train.py:31)``.
"""

from __future__ import annotations

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
    """A large tensor that a function uses without taking it as an argument."""


class RecompileWarning(UserWarning):
    """A function that was compiled more often than it was meant to be."""


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
