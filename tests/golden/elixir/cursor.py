"""A position in a list of tokens."""

from __future__ import annotations

from golden.elixir.errors import ElixirError
from golden.elixir.lexer import Token


class Cursor:
    """Iterates over tokens; it never passes the last one, the end of the file."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.position = 0

    @property
    def token(self) -> Token:
        """The next token."""
        return self.tokens[self.position]

    def next(self) -> Token:
        """Return the current token and advance."""
        token = self.token
        self.position += 1
        return token

    def at(self, kind: str, *values: str) -> bool:
        """Return whether the current token has a kind and one of the values."""
        return self.token.kind == kind and (not values or self.token.value in values)

    def accept(self, kind: str, *values: str) -> bool:
        """Return the current token and advance, if it has one of the values."""
        if self.at(kind, *values):
            self.position += 1
            return True
        return False

    def expect(self, value: str) -> None:
        """Advance past this token, or fail."""
        token = self.next()
        if token.value != value:
            raise ElixirError(
                f"line {token.line}: expected {value}, got {token.value}", "SyntaxError"
            )

    def skip_lines(self) -> None:
        """Skip ends of lines."""
        while self.accept("eol"):
            pass
