"""Draw the graph and the stages of the loss function in README.md.

``python tools/drawings.py`` writes ``docs/_static/graph.svg`` and ``docs/_static/stages.svg``.
``python tools/drawings.py --check`` writes nothing and fails if a file is out of date.
"""

from __future__ import annotations

from pathlib import Path

from generated import write_or_check

import nxla as nx

STATIC = Path(__file__).resolve().parent.parent / "docs" / "_static"


def loss(w: nx.Tensor, x: nx.Tensor, y: nx.Tensor) -> nx.Tensor:
    """Return the mean squared error of a layer."""
    return nx.mean((nx.tanh(x @ w) - y) ** 2)


def drawings() -> dict[Path, str]:
    """Return the content of each drawing."""
    expression = nx.debug_expr(loss)(nx.template((3, 2)), nx.template((4, 3)), nx.template((4, 2)))
    stages = nx.graph.split(expression, lambda node: "after" if node.op == "tanh" else "none")
    return {STATIC / "graph.svg": expression.to_svg(), STATIC / "stages.svg": stages.to_svg()}


if __name__ == "__main__":
    write_or_check(drawings(), "python tools/drawings.py")
