"""The types of the states of eager loops, with the checks of traced loops."""

from __future__ import annotations

import functools

from nxla import _core, tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias, TypeVar

    from nxla._types import Names, TensorLike

    S = TypeVar("S")

    #: The structure of a state, and the dtype, shape, vectorized axes and names of each leaf.
    StateTypes: TypeAlias = tuple[tree.TreeDef, list[tuple[Any, ...]]]


def check_step_types(
    function: str, roots: list[tuple[str, str]], holds: TensorLike, state: S, following: S
) -> None:
    """Raise the errors of a traced loop for two consecutive states.

    The body is not traced: it may compute with values that only exist outside of a trace.
    """
    check = functools.partial(
        _core.while_loop, lambda _: holds, lambda _: following, state, function, roots
    )
    _core.Function(check, function).debug_expr()


@functools.lru_cache(maxsize=256)
def check_leaves(function: str, structure: tree.TreeDef) -> None:
    """Reject a state with a value that is not a tensor, as a traced loop does."""
    state = structure.unflatten([_core.tensor(0)] * structure.num_leaves)
    check_step_types(function, [], False, state, state)


def state_types(state: Any) -> StateTypes:
    """Return the types of a state of tensors."""
    leaves, structure = tree.flatten(state)
    return structure, [(x.dtype, x.shape, x.vectorized_axes, x.names) for x in leaves]


def keeps_types(before: StateTypes, after: StateTypes) -> bool:
    """Return whether a state keeps its types; an axis without a name can receive one."""
    return before[0] == after[0] and all(
        old[:-1] == new[:-1] and keeps_names(old[-1], new[-1])
        for old, new in zip(before[1], after[1], strict=True)
    )


def keeps_names(before: Names, after: Names) -> bool:
    """Return whether all named axes keep their names."""
    return all(old in (None, new) for old, new in zip(before, after, strict=True))
