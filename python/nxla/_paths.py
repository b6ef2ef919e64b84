"""Paths of the leaves of containers: the steps to each leaf, and their notation."""

from __future__ import annotations

import operator
from typing import NamedTuple

from nxla import _core, tree
from nxla.errors import ArgumentError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, TypeAlias

    #: The steps from a container to a leaf: keys of dicts, indices, and an `Attribute` for a field.
    LeafPath: TypeAlias = tuple[Any, ...]

__all__ = ["Attribute", "container_parts", "format_path", "leaf_paths", "path_steps"]


class Attribute(NamedTuple):
    """A step of a path that is an attribute."""

    name: str


def leaf_paths(container: Any) -> list[LeafPath]:
    """Return the path of each leaf, in the order of `tree.flatten`.

    The steps through a registered class of dicts, such as `OrderedDict`, are its keys, and the
    steps through other registered classes are indices.
    """
    return [part.path for part in container_parts(container) if part.is_leaf]


class Part(NamedTuple):
    """A leaf of a container, a value without leaves, or the data of a registered container."""

    path: LeafPath
    value: Any
    is_leaf: bool


def container_parts(container: Any) -> list[Part]:
    """Return the leaves of a container in the order of `tree.flatten`, and its other values."""
    tree.flatten(container)  # Rejects deep containers, and containers that contain themselves.
    found: list[Part] = []
    _collect_parts(container, (), found)
    return found


def _collect_parts(value: Any, path: LeafPath, found: list[Part]) -> None:
    """Append the parts of a value whose own path is `path`."""
    parts = _core.take_apart(value)
    if parts is None:
        found.append(Part(path, value, bool(tree.leaves(value))))
        return
    kind, _, extra, children = parts
    for step, child in zip(_child_steps(value, kind, extra, children), children, strict=True):
        _collect_parts(child, (*path, step), found)
    # The data of a dict are its keys, which are steps of the paths.
    if kind == "registered" and not isinstance(value, dict):
        found.append(Part(path, extra, is_leaf=False))


def _child_steps(value: Any, kind: str, extra: Any, children: Sequence[Any]) -> Iterable[Any]:
    """Return the steps from a container to its children."""
    if kind == "named":
        return map(Attribute, value._fields)
    if kind == "dataclass":
        return map(Attribute, extra)
    if kind == "dict":
        return list(extra)
    count = len(children)
    is_dict = isinstance(value, dict) and len(value) == count
    if is_dict and all(map(operator.is_, value.values(), children)):
        return list(value)
    return range(count)


def format_path(path: LeafPath) -> str:
    """Return a path as in ``['layers'][0].w``."""
    return "".join(
        f".{step.name}" if isinstance(step, Attribute) else f"[{step!r}]" for step in path
    )


def path_steps(option: str, path: str) -> list[Any]:
    """Return the name of an argument, and the steps from it to a part.

    Errors start with `option`, a function and its argument.
    """
    import ast

    steps: list[Any] = []
    try:
        node = ast.parse(path, mode="eval").body
        while not isinstance(node, ast.Name):
            if isinstance(node, ast.Attribute):
                steps.append(Attribute(node.attr))
            elif isinstance(node, ast.Subscript):
                steps.append(ast.literal_eval(node.slice))
            else:
                raise ValueError(path)
            node = node.value
    except (SyntaxError, ValueError):
        raise ArgumentError(
            f"{option}: must be a name or a path, as in 'x' or \"params['w']\"; got {path!r}"
        ) from None
    return [node.id, *reversed(steps)]
