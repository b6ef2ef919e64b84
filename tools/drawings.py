"""Draw the graph and the stages of the loss function in README.md.

``python tools/drawings.py`` writes ``docs/_static/graph.svg`` and ``docs/_static/stages.svg``.
``python tools/drawings.py --check`` writes nothing and fails if a file is out of date.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nxla as nx

STATIC = Path(__file__).resolve().parent.parent / "docs" / "_static"


def loss(w: nx.Tensor, x: nx.Tensor, y: nx.Tensor) -> nx.Tensor:
    """Return the mean squared error of a layer."""
    return nx.mean((nx.tanh(x @ w) - y) ** 2)


def drawings() -> dict[str, str]:
    """Return the drawings by the names of their files."""
    expression = nx.debug_expr(loss)(nx.template((3, 2)), nx.template((4, 3)), nx.template((4, 2)))
    stages = nx.graph.split(expression, lambda node: "after" if node.op == "tanh" else "none")
    return {"graph.svg": expression.to_svg(), "stages.svg": stages.to_svg()}


def main() -> int:
    """Write the drawings, or compare them with the files."""
    stale = {
        name: drawing
        for name, drawing in drawings().items()
        if not (STATIC / name).exists() or (STATIC / name).read_text(encoding="utf-8") != drawing
    }
    if "--check" in sys.argv:
        for name in stale:
            sys.stderr.write(f"docs/_static/{name}: run `python tools/drawings.py`\n")
        return bool(stale)
    for name, drawing in stale.items():
        (STATIC / name).write_text(drawing, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
