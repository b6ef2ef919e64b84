"""Write the page of names of the Rust documentation from the table in docs/names.md.

rustdoc resolves each name of the page, so `make check` fails for a name that does not exist.
`python tools/names.py` writes the page; a test compares it with the table.
"""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "crates/nxla/src/names.md"

#: Table entries that the root of the crate does not export, with their paths.
RELATIVE = {"Graph": "crate::graph::Graph"}

#: Methods of `Tensor` and `Expr` that belong to the types to which these types dereference.
DEREFERENCED = {
    "Tensor": {"deallocate", "device", "first", "names", "ty"},
    "Expr": {"dtype", "id", "shape"},
}

HEAD = """\
The table maps each function of [Nx](https://hexdocs.pm/nx) to its name in this crate. Functions of
[`Expr`](crate::Expr) are also functions of [`Tensor`](crate::Tensor)."""


def link(name: str) -> str:
    """Return a span of code, with a link if it is the path of an item."""
    if not re.fullmatch(r"(?!f32|f64)[A-Za-z_]\w*(?:::\w+)*", name):
        return f"`{name}`"
    owner, _, rest = name.partition("::")
    if rest in DEREFERENCED.get(owner, ()):
        return f"[`{name}`](nxla_runtime::Raw{name})"
    target = RELATIVE.get(owner, "crate" if owner == "nxla" else f"crate::{owner}")
    if owner == "nxla" and rest.islower():  # A module may have the same name.
        target = f"fn@{target}"
    return f"[`{name}`]({target}::{rest})" if rest else f"[`{name}`]({target})"


def page() -> str:
    """Return the page: the rows of the table that have a name in Rust."""
    lines, heading = [HEAD], ""
    for line in (ROOT / "docs/names.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            heading = line
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if not line.startswith("| `") or len(cells) < 4:
            continue
        names = [link(name) for name in re.findall(r"`([^`]+)`", cells[2])]
        names += [link(name) for name in re.findall(r"`(\w+(?:::\w+)+)`", cells[3])]
        if names:
            if heading:
                lines += ["", heading.replace("## ", "# "), "| Nx | Rust |", "|---|---|"]
                heading = ""
            lines.append(f"| {cells[0]} | {', '.join(names)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
