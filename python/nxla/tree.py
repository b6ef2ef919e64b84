"""Containers of tensors: tuples, lists, dicts, named tuples, dataclasses, registered classes.

What is no container and no tensor, number or array (None, a string, a function) belongs to the
structure: it comes out of `unflatten` and `map` as it went in.
"""

from __future__ import annotations

from nxla import _core
from nxla._core import TreeDef, register_container
from nxla.errors import ArgumentError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

__all__ = ["TreeDef", "flatten", "leaves", "map", "register_container", "unflatten"]


def flatten(tree: Any, /) -> tuple[list[Any], TreeDef]:
    """Return the leaves of a container and its structure.

    The entries of a dict whose keys are strings come in the order of the keys, so that two dicts
    with the same keys have the same structure.

    Parameters
    ----------
    tree : container
        Tensors, traced values, numbers and arrays, at any depth.

    Returns
    -------
    leaves : list
        What is at the ends.
    structure : TreeDef
        What is around it, for `unflatten`.

    Examples
    --------
    >>> import nxla as nx
    >>> leaves, structure = nx.tree.flatten({"b": 2, "a": (1, "kept")})
    >>> leaves
    [1, 2]
    >>> nx.tree.unflatten(structure, [10, 20])
    {'a': (10, 'kept'), 'b': 20}
    """
    return _core.tree_flatten(tree)


def unflatten(structure: TreeDef, leaves: Iterable[Any], /) -> Any:
    """Fill a structure with leaves; the inverse of `flatten`.

    Raises
    ------
    ArgumentError
        If there are more or fewer leaves than the structure holds.
    """
    return structure.unflatten(list(leaves))


def leaves(tree: Any, /) -> list[Any]:
    """Return the leaves of a container.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.tree.leaves([1, (2.5, None)])
    [1, 2.5]
    """
    return _core.tree_flatten(tree)[0]


def map(function: Callable[..., Any], tree: Any, /, *rest: Any) -> Any:
    """Apply a function to each leaf, or to the leaves of several containers in step.

    Parameters
    ----------
    function : callable
        Takes one leaf of each container and gives the new one.
    tree : container
        Its structure is that of the result.
    *rest : container
        More containers of the same structure.

    Returns
    -------
    container
        The new leaves in the structure of `tree`.

    Raises
    ------
    ArgumentError
        If the containers differ in structure.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.tree.map(lambda p, g: p - g, {"w": 3, "b": 2}, {"w": 1, "b": 1})
    {'b': 1, 'w': 2}
    """
    items, structure = _core.tree_flatten(tree)
    if not rest:
        return structure.unflatten([function(item) for item in items])
    columns = [items]
    for position, other in enumerate(rest, start=1):
        others, other_structure = _core.tree_flatten(other)
        if other_structure != structure:
            raise ArgumentError(
                f"tree.map: container {position} is {other_structure}, the first is {structure}"
            )
        columns.append(others)
    return structure.unflatten([function(*row) for row in zip(*columns, strict=True)])
