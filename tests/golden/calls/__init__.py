"""The table from functions of Nx to functions of nxla, with one module for each group."""

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
