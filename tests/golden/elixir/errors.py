"""Errors of Elixir code, as opposed to errors of the package under test."""

from __future__ import annotations


class ElixirError(Exception):
    """An exception of Elixir: raised by the source, or by the language itself."""

    def __init__(self, message: str, exception: str) -> None:
        super().__init__(message)
        self.exception = exception


class MatchError(ElixirError):
    """A value that matches no pattern."""

    def __init__(self, value: object) -> None:
        super().__init__(f"no match of right hand side value: {value!r}", "MatchError")


class Unsupported(Exception):  # noqa: N818 - it is about the reader
    """A feature of Elixir or of Nx that this reader does not support."""
