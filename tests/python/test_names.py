"""The table of names in the docs says what is there."""

import re
from pathlib import Path

import pytest

import nxla as nx
from nxla._elsewhere import NAMES

ROOT = Path(__file__).parents[2]
ROWS = [
    [cell.strip().strip("`") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
    for line in (ROOT / "docs/names.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| `")
]


def test_the_table_is_long():
    assert len(ROWS) > 250


@pytest.mark.parametrize("name", sorted({row[1] for row in ROWS if row[1]}))
def test_python_names_exist(name):
    found = nx
    assert name.startswith("nx.")
    for part in name.split(".")[1:]:
        found = getattr(found, part)


def test_rust_names_exist():
    sources = "\n".join(
        path.read_text(encoding="utf-8")
        for crate in ("nxla", "runtime", "expr", "tensor", "split")
        for path in (ROOT / "crates" / crate / "src").rglob("*.rs")
    )
    functions = set(re.findall(r"\bfn (\w+)", sources))
    # Methods of element-wise ops are made from the rows of the op table.
    functions |= set(re.findall(r'^ +[A-Z]\w+ (\w+) "', sources, re.MULTILINE))
    # So are cumulative functions, forwards and in reverse.
    functions |= set(re.findall(r"^    (\w+) \w+_reverse \w+;", sources, re.MULTILINE))
    # Functions on tensors are declared in macros, which make them public.
    functions |= set(re.findall(r"^    fn (\w+)\(\w+[;)]", sources, re.MULTILINE))
    # Types, and the variants of enums.
    types = set(re.findall(r"\b(?:struct|enum|trait) (\w+)", sources))
    variants = set(re.findall(r"^ +([A-Z]\w*)[,(]", sources, re.MULTILINE))
    # Operators are written as such; what begins with f32 or f64 is Rust's own.
    names = {row[2] for row in ROWS if re.fullmatch(r"(?!f32|f64)[\w:]+", row[2])}
    named = {name.rpartition("::")[2] for name in names}
    assert len(named) > 100
    assert named - functions - types - variants == set()


def test_what_is_in_python_is_in_rust_or_says_what_to_write_instead():
    missing = [row[0] for row in ROWS if row[1] and not row[2] and "Rust: " not in row[3]]
    assert missing == []


def test_what_has_no_python_name_says_what_to_write_instead():
    assert [row[0] for row in ROWS if not row[1] and not row[3]] == []


def test_names_of_other_libraries_are_told_and_listed():
    for name, here in NAMES.items():
        with pytest.raises(AttributeError, match=re.escape(f"{name!r}; here it is {here}")):
            getattr(nx, name)
        for mentioned in re.findall(r"nx\.(\w+)", here):
            assert hasattr(nx, mentioned), here
        for method in re.findall(r"the method (\w+) of a tensor", here):
            assert hasattr(nx.Tensor, method)
    with pytest.raises(AttributeError, match=r"'nothing_like_it'$"):
        _ = nx.nothing_like_it
    assert not hasattr(nx, "concatenate")
    lines = (ROOT / "docs/names.md").read_text(encoding="utf-8").splitlines()
    rows = [f"| {name} | {here} |" for name, here in sorted(NAMES.items())]
    assert [line for line in lines if line in rows] == rows
