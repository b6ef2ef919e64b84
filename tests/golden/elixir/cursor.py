"""A place in a list of tokens."""

from __future__ import annotations

from golden.elixir.errors import ElixirError
from golden.elixir.lexer import Token


class Cursor:
    """Goes over tokens; the last one, the end of the file, is never passed."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.position = 0

    @property
    def token(self) -> Token:
        """The token that comes."""
        return self.tokens[self.position]

    def next(self) -> Token:
        """Take the token that comes."""
        token = self.token
        self.position += 1
        return token

    def at(self, kind: str, *values: str) -> bool:
        """Tell whether a token of this kind, one of these, comes."""
        return self.token.kind == kind and (not values or self.token.value in values)

    def accept(self, kind: str, *values: str) -> bool:
        """Take the token if it is one of these."""
        if self.at(kind, *values):
            self.position += 1
            return True
        return False

    def expect(self, value: str) -> None:
        """Take this token, or fail."""
        token = self.next()
        if token.value != value:
            raise ElixirError(
                f"line {token.line}: expected {value}, got {token.value}", "SyntaxError"
            )

    def skip_lines(self) -> None:
        """Take ends of lines."""
        while self.accept("eol"):
            pass
