"""Count the files that mention a function, and the lists of its arguments.

Run it as `python tools/count_places.py [folder of the project] [name …]`. Files that are generated
or data do not count: the stub, `docs/ops.md`, `docs/names.md`, lists that tests compare with, and
recorded results. Neither do this script, benches, examples, and docs that only use the function.

An argument list counts if most of the arguments are declared close together with their types, as
fields or parameters.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

#: Patterns of the names of a function, and the names of its specific arguments in all layers.
FUNCTIONS: dict[str, tuple[str, list[str]]] = {
    "cbrt": (r"\b[Cc]brt\b", []),
    "cumulative_sum": (r"\bcumulative_sum\b", []),
    "conv": (
        r"\b(?:conv|Conv|ConvOptions|Convolution)\b",
        [
            r"strides",
            r"padding",
            r"input_dilation",
            r"kernel_dilation",
            r"feature_groups",
            r"batch_groups",
            r"input_(?:permutation|axes)",
            r"kernel_(?:permutation|axes)",
            r"output_(?:permutation|axes)",
        ],
    ),
}
SOURCES = {".rs", ".py", ".pyi", ".md"}
EXCLUDED = re.compile(
    r"(?:^|/)(?:target|\.venv|\.git|\.cargo|benches|examples|tools|README\.md|docs/names\.md"
    r"|docs/ops\.md|docs/decisions|docs/performance\.md|tests/golden|tests/python/public_api\.txt)(?:/|$)"
)
#: Only hand-written stubs are counted; generated stubs contain this text in their header.
GENERATED = "`make stubs` writes them"
#: The maximum distance of two arguments of one list, in lines.
MAX_DISTANCE = 12


def sources(root: Path) -> dict[str, str]:
    """Return the counted sources by their paths."""
    found = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.suffix not in SOURCES or EXCLUDED.search(name) or not path.is_file():
            continue
        text = path.read_text(encoding="utf-8")
        if GENERATED not in text[:200]:
            found[name] = text
    return found


def lists(text: str, arguments: list[str]) -> int:
    """Count the declarations of most of the arguments together in a source."""
    lines = text.split("\n")
    declared = [
        (number, position)
        for number, line in enumerate(lines)
        for position, argument in enumerate(arguments)
        if re.search(rf"\b{argument}(?:\(\S+\))?: (?:impl |&|[A-Z]|usize|int\b)", line)
        and not line.strip().startswith(("//", "#"))
    ]
    count, group, last = 0, set[int](), -MAX_DISTANCE
    for number, position in [*declared, (len(lines) + 2 * MAX_DISTANCE, -1)]:
        if number - last > MAX_DISTANCE:
            count += len(group) > len(arguments) / 2
            group = set()
        group.add(position)
        last = number
    return count


def main() -> None:
    """Print the counts."""
    arguments = sys.argv[1:]
    root = Path(arguments.pop(0) if arguments else ".")
    texts = sources(root)
    for name in arguments or FUNCTIONS:
        pattern, arguments_of = FUNCTIONS.get(name, (rf"\b{name}\b", []))
        mentioned = [path for path, text in texts.items() if re.search(pattern, text)]
        tests = [path for path in mentioned if path.startswith("tests/") or "/tests" in path]
        docs = [path for path in mentioned if path.endswith(".md")]
        other = [path for path in mentioned if path not in {*tests, *docs}]
        out = sys.stdout.write
        out(f"{name}: {len(other)} files, {len(tests)} of tests, {len(docs)} of docs\n")
        out("".join(f"    {path}\n" for path in [*other, *tests, *docs]))
        if arguments_of:
            counts = {path: lists(texts[path], arguments_of) for path in other}
            total = sum(counts.values())
            listed = ", ".join(f"{path} {count}" for path, count in counts.items() if count)
            out(f"    arguments declared {total} times: {listed}\n")


if __name__ == "__main__":
    main()
