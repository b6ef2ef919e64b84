"""The table from functions of Nx to ours, one module for each part of it."""

from golden.calls import (
    elementwise,
    inspection,
    products,
    reductions,
    shapes,
    structure,
    vectors,
)
from golden.calls.adapter import Adapter

#: Adapters by module and function of Nx.
CALLS: dict[tuple[str, str], Adapter] = {
    **elementwise.CALLS,
    **inspection.CALLS,
    **products.CALLS,
    **reductions.CALLS,
    **shapes.CALLS,
    **structure.CALLS,
    **vectors.CALLS,
}
