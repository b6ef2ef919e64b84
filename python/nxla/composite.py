"""Functions over the leaves of containers.

The order of leaves is the order of `nxla.tree.flatten`: tuples and lists by position, dicts by
sorted keys, dataclasses and named tuples by their fields.
"""

from __future__ import annotations

from nxla import _hints, tree
from nxla._values import as_list, require_callable
from nxla.errors import ArgumentError
from nxla.ops.metadata import _alike, leaves_fit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeVar

    A = TypeVar("A")

__all__ = ["compatible", "count", "flatten_list", "reduce", "traverse"]

_MISSING: Any = object()


def compatible(left: Any, right: Any, fits: Callable[[Any, Any], bool] | None = None, /) -> bool:
    """Return whether two containers have the same structure and compatible leaves.

    Parameters
    ----------
    left, right : container
        Containers of tensors, templates, traced values, numbers and arrays.
    fits : callable, optional
        A function of one leaf of each container. By default dtypes, shapes and vectorized axes
        must be equal, and axis names if both leaves have them.

    Returns
    -------
    bool
        True if the structures are equal and `fits` holds for each pair of leaves.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.composite.compatible({"a": 1}, {"a": nx.template((), nx.int32)})
    True
    >>> nx.composite.compatible({"a": 1}, {"b": 1})
    False
    >>> nx.composite.compatible((1, 2), (1.5, 2.5), lambda x, y: True)
    True
    """
    if fits is not None:
        require_callable("compatible", "fits", fits)
    return leaves_fit(left, right, fits or _alike)


def count(container: Any, /) -> int:
    """Return the number of leaves.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.composite.count({"a": 1, "b": (2, [3])})
    3
    """
    return tree.flatten(container)[1].num_leaves


def traverse(container: Any, function: Callable[..., Any], initial: Any = _MISSING, /) -> Any:
    """Return a container with new leaves.

    Parameters
    ----------
    container : container
        The container; scalars are passed on as scalars.
    function : callable
        ``function(leaf)`` returns the new leaf. With an initial state, ``function(leaf, state)``
        returns the new leaf and the next state.
    initial : object, optional
        The initial state.

    Returns
    -------
    container
        The new container; with a state, ``(container, state)``.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.composite.traverse({"a": 1, "b": (2, 3)}, lambda x: x * 10)
    {'a': 10, 'b': (20, 30)}
    >>> nx.composite.traverse([5, 6], lambda x, position: (position, position + 1), 0)
    ([0, 1], 2)
    """
    require_callable("traverse", "function", function)
    if initial is _MISSING:
        return tree.map(function, container)
    leaves, structure = tree.flatten(container)
    state = initial
    rebuilt = []
    for leaf in leaves:
        answer = function(leaf, state)
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise ArgumentError("traverse: function: must return (leaf, state) if initial is given")
        rebuilt.append(answer[0])
        state = answer[1]
    return structure.unflatten(rebuilt), state


def reduce(container: Any, initial: A, function: Callable[[Any, A], A], /) -> A:
    """Fold the leaves into a state, in order.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.composite.reduce({"a": 1, "b": (2, 3)}, 0, lambda leaf, total: total + leaf)
    6
    """
    require_callable("reduce", "function", function)
    state = initial
    for leaf in tree.flatten(container)[0]:
        state = function(leaf, state)
    return state


def flatten_list(containers: Iterable[Any], tail: Iterable[Any] = (), /) -> list[Any]:
    """Return the leaves of several containers in order, followed by the tail.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.composite.flatten_list([1, {"b": 3, "a": 2}], [4])
    [1, 2, 3, 4]
    """
    containers = as_list("flatten_list", "containers", containers)
    tail = as_list("flatten_list", "tail", tail)
    return [*tree.leaves(containers), *tail]


_hints.install(globals())
_hints.install_missing_names(globals())
