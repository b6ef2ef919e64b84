"""Vectorized axes."""

from __future__ import annotations

from typing import Any

import nxla as nx
from golden.calls.adapter import Adapter, adapt


def _vectorize(x: Any, axes: Any) -> Any:
    return nx.vectorize(x, axes)


def _revectorize(x: Any, axes: Any, **options: Any) -> Any:
    sizes = [(name, -1 if size == "auto" else size) for name, size in axes]
    if "target_shape" in options:
        shape = options["target_shape"]
        options["target_shape"] = tuple(-1 if size == "auto" else size for size in shape)
    return nx.revectorize(x, sizes, **options)


CALLS: dict[tuple[str, str], Adapter] = {
    ("Nx", "vectorize"): adapt(_vectorize),
    ("Nx", "devectorize"): adapt("devectorize"),
    ("Nx", "revectorize"): adapt(_revectorize),
    ("Nx", "reshape_vectors"): adapt("reshape_vectors"),
    ("Nx", "broadcast_vectors"): adapt("broadcast_vectors"),
}
