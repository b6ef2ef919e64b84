"""The types of the states of loops: Python scalars in them, and the checks of each iteration."""

from __future__ import annotations

import functools

from nxla import _core, tree
from nxla._values import as_tensor, call_as, new_tensor, new_tensors, template_of, user_line
from nxla.errors import ArgumentError, DTypeError, ShapeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias, TypeVar

    from nxla._types import Names, TensorLike

    S = TypeVar("S")
    C = TypeVar("C")

    #: The structure of a state, and the dtype, shape, vectorized axes and names of each leaf.
    StateTypes: TypeAlias = tuple[tree.TreeDef, list[tuple[Any, ...]]]

#: The kinds of dtypes that can represent a Python scalar type without changing the value.
_KINDS: dict[type, tuple[str, ...]] = {
    bool: ("pred",),
    int: ("signed", "unsigned", "float", "complex"),
    float: ("float", "complex"),
    complex: ("complex",),
}


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


def keeps_names(before: Names, after: Names) -> bool:
    """Return whether axes keep their names; a state without names can receive them."""
    return before == after or not any(before)


def join_axes(function: str, before: Any, after: S) -> S:
    """Return a state with the vectorized axes of the previous state, followed by new axes.

    It is the order of a traced loop. Otherwise, the operations of the body would determine the
    order. States of different structures are left to the checks of the caller.
    """
    old, structure = tree.flatten(before)
    if not any(getattr(leaf, "vectorized_axes", ()) for leaf in old):
        return after
    new, found = tree.flatten(after)
    if found != structure:
        return after
    pairs = zip(old, new, strict=True)
    joined: S = structure.unflatten([_join_axes(function, *pair) for pair in pairs])
    return joined


def _join_axes(function: str, before: Any, after: Any) -> Any:
    axes = getattr(before, "vectorized_axes", ())
    if not axes or axes == getattr(after, "vectorized_axes", ()):
        return after
    from nxla.vectors import broadcast_vectors

    return call_as(function, broadcast_vectors, [before, number_like(after, before)])[1]


def next_state(
    function: str,
    roots: list[tuple[str, str]],
    types: StateTypes,
    step: tuple[TensorLike, S, S],
) -> S:
    """Return the state after a step with the types that it has in a traced loop.

    The step consists of the condition, the state before the step and the result of the body.
    """
    holds, state, result = step
    following: S = new_tensors(result)
    if state_types(following) == types:
        return following
    check_step_types(function, roots, holds, state, result)
    following = new_tensors(tree.map(number_like, result, state))
    return join_axes(function, state, following)


def has_numbers(value: Any) -> bool:
    """Return whether a container contains a Python scalar, which has no fixed type."""
    return any(type(leaf) in _KINDS for leaf in tree.leaves(value))


def fix_types(value: S) -> S:
    """Return a container with new tensors; Python scalars stay, because their dtypes are open."""
    fixed: S = tree.map(lambda leaf: leaf if type(leaf) in _KINDS else new_tensor(leaf), value)
    return fixed


def typed_like(init: C, carry: C) -> C:
    """Return the initial carry with the types that scalars have after a step."""
    leaves, structure = tree.flatten(init)
    typed = []
    for leaf, (before, after) in enumerate(zip(leaves, tree.leaves(carry), strict=True)):
        start = as_tensor(number_like(before, after))
        if type(before) in _KINDS and start.dtype != (dtype := as_tensor(after).dtype):
            raise DTypeError(
                f"scan: carry{structure.leaf_path(leaf)}: must keep its dtype; got {before!r}, and "
                f'{dtype} after a step; begin with nx.tensor({before!r}, "{dtype}"){user_line()}'
            )
        typed.append(start)
    result: C = structure.unflatten(typed)
    return result


def number_like(x: TensorLike, later: TensorLike) -> TensorLike:
    """Return a scalar with the type of a later value, if the type can represent it."""
    later = as_tensor(later)
    if later.dtype.kind in _KINDS.get(type(x), ()):
        return _core.full(later.shape, x, later.dtype)
    return x


def check_step(function: str, part: str, before: Any, after: Any, *, first: bool = False) -> None:
    """Check that a step of a scan returns the structure and types of the previous step.

    In the first step a scalar may become a tensor of any type.
    """
    old, structure = tree.flatten(before)
    new, found = tree.flatten(after)
    if found != structure:
        raise ArgumentError(
            f"{function}: {part}: must keep its structure {structure}; got {found}{user_line()}"
        )
    for leaf, pair in enumerate(zip(old, new, strict=True)):
        if first and type(pair[0]) in _KINDS:
            continue
        was, now = (as_tensor(value) for value in pair)
        is_same = was.shape == now.shape and was.dtype == now.dtype
        # The names of rows are merged, but the names of a carry are part of its type.
        if is_same and (part != "carry" or keeps_names(was.names, now.names)):
            continue
        kind = DTypeError if was.dtype != now.dtype and was.shape == now.shape else ShapeError
        raise kind(
            f"{function}: {part}{structure.leaf_path(leaf)}: must keep its type "
            f"{template_of(was)}; got {template_of(now)} after a step{user_line()}"
        )
