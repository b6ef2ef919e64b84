"""Write the table of error messages in ``docs/reference/errors.md``.

``python tools/errors.py`` writes the section "All messages" from the sources of the crates and of
the Python package. ``python tools/errors.py --check`` fails if the section is out of date.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

from generated import write_or_check

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "errors.md"
HEADING = "## All messages\n"
INTRODUCTION = """
`python tools/errors.py` writes this section from the sources. Braces contain inserted expressions.
Many messages of the crates are the last part of an error, after the operation and the argument.
"""

#: The attribute or the constructor of an error in Rust; its parentheses contain the message.
RUST_ERROR = re.compile(
    r"#\[error\(|\b(?:\w*Error|ErrorKind)::\w+\(|\bPy\w+(?:Error|Warning)::new_err\("
    r"|\b\w+_error\(|\b(?:invalid|wrong|usage)\(|\brefuse\w*\(|\breject\w*\("
)
#: A message that a variable holds before an error is created.
RUST_REASON = re.compile(r'\blet (?:why|message|reason) =((?:"(?:[^"\\]|\\.)*"|[^;"])*);')
RUST_SUBJECT = re.compile(r'\s*(?:&?self,\s*)?"([\w.]+)",')
RUST_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
#: A phrase that is inserted into other messages.
RUST_PHRASE = re.compile(r"(?:a|an|and|got|without)\b[^:;]{0,20}")
#: The reason why a panic is impossible, which users do not see.
RUST_PANIC = re.compile(r'(?:\.expect\(|\bunreachable!\()\s*"(?:[^"\\]|\\.)*"', re.DOTALL)


def rust_code(path: Path) -> str:
    """Return a Rust source without its tests and comments."""
    text = path.read_text(encoding="utf-8").split("#[cfg(test)]\nmod ")[0]
    return RUST_PANIC.sub("", re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))


def closing(text: str, start: int) -> int:
    """Return the index of the parenthesis that closes the one before an index."""
    depth, index = 1, start
    while depth and index < len(text):
        string = RUST_STRING.match(text, index)
        if string:
            index = string.end()
            continue
        depth += {"(": 1, ")": -1}.get(text[index], 0)
        index += 1
    return index


def rust_messages(path: Path) -> Iterator[str]:
    """Yield the messages of the errors that a Rust source creates."""
    text = rust_code(path)
    calls = [text[each.end() : closing(text, each.end())] for each in RUST_ERROR.finditer(text)]
    for code in calls + RUST_REASON.findall(text):
        # `argument_error("op", "message")` contains the operation before the message.
        subject = RUST_SUBJECT.match(code)
        prefix = f"{subject[1]}: " if subject else ""
        for string in RUST_STRING.findall(code):
            message = re.sub(r"\\\n\s*", "", string).replace('\\"', '"').replace("\\n", " ")
            if re.search(r"[a-z] ", message) and not RUST_PHRASE.fullmatch(message):
                yield prefix + message


def python_text(node: ast.expr) -> str | None:
    """Return the value of a string expression, with braces around inserted expressions."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(python_text(part) or "" for part in parts)
        case ast.FormattedValue(value=value):
            return f"{{{ast.unparse(value)}}}"
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return (python_text(left) or "") + (python_text(right) or "")
        case _:
            return None


def python_messages(path: Path) -> Iterator[str]:
    """Yield the messages of the exceptions that a Python source raises."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        name = ast.unparse(node.func).rpartition(".")[2]
        message = python_text(node.args[0])
        if name.endswith("Error") and message and " " in message:
            yield " ".join(message.split())


def section() -> str:
    """Return the section with the messages of each crate and of the package."""
    groups: dict[str, set[str]] = {}
    for path in sorted((ROOT / "crates").glob("*/src/**/*.rs")):
        if "tests" in path.stem or "tests" in path.parts:
            continue
        groups.setdefault(path.relative_to(ROOT / "crates").parts[0], set()).update(
            rust_messages(path)
        )
    package: set[str] = groups.setdefault("Python package", set())
    for path in sorted((ROOT / "python" / "nxla").rglob("*.py")):
        package.update(python_messages(path))
    parts = [HEADING, INTRODUCTION]
    for name, messages in groups.items():
        if messages:
            title = name if name == "Python package" else f"Crate `{name}`"
            rows = [f"| `` {row.replace('|', '&#124;').strip()} `` |\n" for row in sorted(messages)]
            parts += [f"\n### {title}\n", "| message |\n|---|\n", *rows]
    return "".join(parts)


def main() -> None:
    """Write the section, or compare it with the page."""
    head = PAGE.read_text(encoding="utf-8").partition(HEADING)[0].rstrip("\n")
    write_or_check({PAGE: f"{head}\n\n{section()}"}, "python tools/errors.py")


if __name__ == "__main__":
    main()
