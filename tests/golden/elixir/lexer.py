"""Tokens of Elixir source.

Newlines are tokens, because they end expressions; the ones inside of brackets, after an operator
and before one are dropped here, so that the parser never meets them. A token remembers whether
space came before it: ``f -1`` is a call and ``f - 1`` a subtraction, ``f (x)`` is not ``f(x)``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from golden.elixir.errors import ElixirError


@dataclass(frozen=True)
class Token:
    """A token: its kind, its value, and the space around it."""

    kind: str  # int float string charlist atom key alias name op capture sigil eol end_of_file
    value: Any
    line: int
    space_before: bool
    space_after: bool = False


#: Longer operators come first.
OPERATORS = [
    "<<<", ">>>", "&&&", "|||", "===", "!==", "=~", "...", "^^^", "~~~", "+++", "---",
    "<<", ">>", "->", "<-", "=>", "==", "!=", "<=", ">=", "|>", "<>", "++", "--", "&&", "||", "**",
    "..", "//", "\\\\", "::", "%{", "+", "-", "*", "/", "=", "<", ">", "!", "&", "|", "@", ".", ",",
    "(", ")", "[", "]", "{", "}", ";", "%", "^",
]  # fmt: skip

#: Tokens after which an expression continues on the next line.
CONTINUES = {
    "<<<", ">>>", "&&&", "|||", "===", "!==", "=~", "->", "<-", "=>", "==", "!=", "<=", ">=",
    "<<", "|>", "<>", "++", "--", "&&", "||", "**", "//", "\\\\", "::", "%{", "+", "-", "*", "/",
    "=", "<", ">", "!", "&", "|", ".", ",", "(", "[", "{", "%", "^", "and", "or", "not", "in",
    "when",
}  # fmt: skip

#: Tokens that continue the previous line, unless they may begin an expression.
LEADS = {
    "<<<", ">>>", "&&&", "|||", "===", "!==", "=~", "->", "<-", "=>", "==", "!=", "<=", ">=",
    "|>", "<>", "++", "--", "&&", "||", "**", "//", "\\\\", "::", "*", "/", "=", "<", ">", "|",
    ".", ",", ")", "]", "}", ">>", "and", "or", "in", "when",
}  # fmt: skip

WORD_OPERATORS = {"and", "or", "not", "in", "when"}

_PATTERNS = [
    ("space", r"[ \t]+|\\\n"),
    ("comment", r"#[^\n]*"),
    ("eol", r"\n"),
    ("float", r"\d[\d_]*\.\d[\d_]*(?:[eE][+-]?\d+)?"),
    ("int", r"0x[0-9a-fA-F]+|0b[01]+|0o[0-7]+|\d[\d_]*"),
    ("sigil", r"~(?:[A-Z]+|[a-z])[\[({<|/\"]"),
    ("quoted_key", r'"[^"\n]*":(?=\s)'),
    ("heredoc", r'"""[ \t]*\n'),
    ("string", r'"'),
    ("charlist", r"'(?:[^'\\\n]|\\.)*'"),
    ("character", r"\?(?:\\.|[^\s\\])"),
    ("quoted", r':"(?:[^"\\]|\\.)*"'),
    ("key", r"[A-Za-z_][A-Za-z0-9_]*[?!]?:(?=\s)"),
    ("alias", r"[A-Z][A-Za-z0-9_]*"),
    ("name", r"[a-z_][A-Za-z0-9_]*[?!]?"),
    ("atom", r":(?:[A-Za-z_][A-Za-z0-9_@]*[?!]?|\*\*|\+\+|--|[-+*/<>]=?|==|!=|&&&|\|\|\|)"),
    ("capture", r"&\d+"),
    ("op", "|".join(re.escape(op) for op in OPERATORS)),
]
_TOKEN = re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern in _PATTERNS))

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "s": " ", "0": "\0", "e": "\x1b"}


def tokenize(source: str) -> list[Token]:
    """Split source into tokens; the last one is the end of the file."""
    raw = _scan(source)
    kept: list[Token] = []
    for token, following in zip(raw, [*raw[1:], raw[-1]], strict=True):
        if token.kind == "eol":
            previous = kept[-1] if kept else None
            drop = (
                previous is None
                or previous.kind in ("eol", "key")
                or (previous.kind == "op" and previous.value in CONTINUES)
                or (following.kind == "op" and following.value in LEADS)
                or following.kind == "eol"
            )
            if drop:
                continue
        kept.append(token)
    return kept


def _scan(source: str) -> list[Token]:
    tokens: list[Token] = []
    position, line, space = 0, 1, False
    while position < len(source):
        found = _TOKEN.match(source, position)
        if found is None:
            raise ElixirError(f"no token at {source[position : position + 20]!r}", "SyntaxError")
        kind, text = str(found.lastgroup), found.group()
        start, position = position, found.end()
        if kind in ("space", "comment"):
            space = True
            line += text.count("\n")
            continue
        value: Any = text
        if kind == "string":
            value, position = _string(source, position)
        elif kind == "heredoc":
            kind, (value, position) = "string", _heredoc(source, position)
        elif kind == "sigil":
            value, position = _sigil(source, found)
        else:
            kind, value = _value(kind, text)
        after = source[position : position + 1].isspace()
        tokens.append(Token(kind, value, line, space, after))
        line += source.count("\n", start, position)
        space = kind == "eol"
    tokens.append(Token("end_of_file", None, line, True))
    return tokens


def _value(kind: str, text: str) -> tuple[str, Any]:
    """Read a token of fixed form."""
    match kind:
        case "int":
            return kind, int(text.replace("_", ""), 0)
        case "float":
            return kind, float(text.replace("_", ""))
        case "atom":
            return kind, text[1:]
        case "quoted":
            return "atom", text[2:-1]
        case "key":
            return kind, text[:-1]
        case "quoted_key":
            return "key", text[1:-2]
        case "character":
            return "int", ord(_ESCAPES.get(text[2:], text[2:]) if text[1] == "\\" else text[1])
        case "capture":
            return kind, int(text[1:])
        case "name" if text in WORD_OPERATORS:
            return "op", text
        case "op" if text == ";":
            return "eol", text
    return kind, text


def _string(source: str, position: int) -> tuple[list[Any], int]:
    """Read a string up to its closing quote: literal parts, and tokens of interpolated parts."""
    parts: list[Any] = []
    text = ""
    while source[position] != '"':
        if source[position] == "\\":
            escaped = source[position + 1]
            text += _ESCAPES.get(escaped, escaped)
            position += 2
        elif source.startswith("#{", position):
            end = _closing(source, position + 2)
            parts += [text, tokenize(source[position + 2 : end])]
            text, position = "", end + 1
        else:
            text += source[position]
            position += 1
    return [*parts, text], position + 1


def _heredoc(source: str, position: int) -> tuple[list[Any], int]:
    """Read a multi-line string, which is indented like its closing quotes."""
    closing = re.compile(r'\n?([ \t]*)"""').search(source, position - 1)
    if closing is None:
        raise ElixirError("a heredoc is not closed", "SyntaxError")
    lines = source[position : closing.start()].split("\n") if closing.start() >= position else []
    body = "".join(f"{line.removeprefix(closing[1])}\n" for line in lines)
    return _string(body.replace('"', '\\"') + '"', 0)[0], closing.end()


def _closing(source: str, position: int) -> int:
    depth = 1
    while True:
        depth += {"{": 1, "}": -1}.get(source[position], 0)
        if depth == 0:
            return position
        position += 1


def _sigil(source: str, found: re.Match[str]) -> tuple[tuple[str, str, str], int]:
    """Read a sigil: its name, the text between its brackets, and the letters after them."""
    opening = found.group()[-1]
    pairs = {"[": "]", "(": ")", "{": "}", "<": ">"}
    end = source.index(pairs.get(opening, opening), found.end())
    modifiers = re.compile(r"[A-Za-z0-9]*").match(source, end + 1)
    assert modifiers is not None
    text = source[found.end() : end]
    return (found.group()[1:-1], text, modifiers.group()), modifiers.end()
