"""Prefixes of containers: values that each apply to all leaves of a part of a container.

The axes of `nxla.vmap` and the shardings of functions over a mesh are prefixes.
"""

from __future__ import annotations

from nxla import _core, tree
from nxla._values import kind_of
from nxla.errors import ArgumentError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def expand_prefix(
    prefix: Any, container: Any, is_value: Callable[[Any], bool], what: str, values: str
) -> list[Any]:
    """Return the value of each leaf of a container.

    Parameters
    ----------
    prefix : object
        A value, or a container with the structure of `container`, whose parts are prefixes of its
        parts. A list and a tuple may replace each other. The part for a part without leaves, such
        as a string, is ignored.
    container : container
        The container with the leaves.
    is_value : callable
        Returns whether an object is a value.
    what : str
        The start of error messages.
    values : str
        A description of the values, for error messages.

    Raises
    ------
    ArgumentError
        If the structures differ.
    """
    if is_value(prefix):
        return [prefix] * len(tree.leaves(container))
    parts, inner = _child_lists(prefix, container)
    if len(parts) != len(inner):
        raise ArgumentError(
            f"{what}: must be {values} or a container with the structure of the value; got "
            f"{prefix!r} for {kind_of(container)}"
        )
    return [
        value
        for part, child in zip(parts, inner, strict=True)
        if tree.leaves(child)
        for value in expand_prefix(part, child, is_value, what, values)
    ]


def prefix_values(prefix: Any, is_value: Callable[[Any], bool]) -> list[Any]:
    """Return the values in a prefix."""
    if is_value(prefix):
        return [prefix]
    parts = _core.take_apart(prefix)
    return [] if parts is None else [v for each in parts[3] for v in prefix_values(each, is_value)]


def _child_lists(prefix: Any, container: Any) -> tuple[list[Any], list[Any]]:
    """Return the children of two containers; lists of different lengths if the kinds differ."""
    if isinstance(prefix, dict) and isinstance(container, dict):
        if prefix.keys() != container.keys():
            return [], [None]
        keys = tree.ordered_keys(container)
        return [prefix[key] for key in keys], [container[key] for key in keys]
    if isinstance(prefix, list | tuple) and isinstance(container, list | tuple):
        return list(prefix), list(container)
    parts, inner = _core.take_apart(prefix), _core.take_apart(container)
    if type(prefix) is not type(container) or parts is None or inner is None:
        return [], [None]
    return parts[3], inner[3]
