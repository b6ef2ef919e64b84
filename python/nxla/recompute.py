"""What the derivative of a function keeps of it, and what it computes again."""

from __future__ import annotations

import functools

from nxla import _core, tree
from nxla._arguments import name_of
from nxla.errors import ArgumentError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, ParamSpec, TypeVar

    P = ParamSpec("P")
    R = TypeVar("R")

__all__ = ["checkpoint"]

_POLICIES = ("nothing", "products", "everything")


def checkpoint(
    function: Callable[P, R], /, policy: str | Sequence[str] = "nothing"
) -> Callable[P, R]:
    """Make a function whose derivative keeps little of it, and computes the rest again.

    A gradient needs values that the function itself is done with: without this they stay in memory
    until the way back comes to them. With it they take the time of one more pass over the function.
    What is computed again is never merged with what was computed before, by either engine.

    Parameters
    ----------
    function : callable
        Takes and gives tensors and containers of them, and whatever else: only tensors among the
        arguments, and what the function captures, count as what is there anyway.
    policy : str or sequence of str
        What is kept besides the arguments: ``"nothing"``; ``"products"`` of matrices, and
        convolutions; the values that have one of these notes (see `annotate`); ``"everything"``.
        Values inside of a loop are not kept one by one: make a checkpoint of its body. Of a
        function with hooks nothing is kept.

    Returns
    -------
    callable
        Takes and gives what `function` does. Its second derivative keeps no more.

    Raises
    ------
    ArgumentError
        If there is no such policy.

    Examples
    --------
    >>> import nxla as nx
    >>> def layer(x, w):
    ...     return nx.tanh(nx.annotate(x @ w, "product"))
    >>> remembers = nx.checkpoint(layer, policy=["product"])
    >>> w = nx.tensor([[0.0, 1.0], [1.0, 0.0]])
    >>> nx.grad(lambda w: nx.sum(remembers(nx.ones((1, 2)), w)))(nx.zeros_like(w)).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    if isinstance(policy, str):
        keep, names = policy, []
        if policy not in _POLICIES:
            raise ArgumentError(
                "checkpoint: policy must be 'nothing', 'products', 'everything' or a list of "
                f"notes, got {policy!r}"
            )
    else:
        keep, names = "named", list(policy)
        if not all(isinstance(name, str) for name in names):
            raise ArgumentError(f"checkpoint: notes must be strings, got {names!r}")
    if not callable(function):
        raise ArgumentError(f"checkpoint: expected a function, got {type(function).__name__}")

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        if not _core.is_tracing():
            return function(*args, **kwargs)
        every, around = tree.flatten((args, kwargs))
        places = [at for at, x in enumerate(every) if isinstance(x, (_core.Tensor, _core.Expr))]
        structure: Any = None

        def call(leaves: list[Any]) -> list[Any]:
            nonlocal structure
            changed = list(every)
            for place, leaf in zip(places, leaves, strict=True):
                changed[place] = leaf
            own_args, own_kwargs = around.unflatten(changed)
            results, structure = tree.flatten(function(*own_args, **own_kwargs))
            if not results:
                raise ArgumentError(f"checkpoint: {name_of(function)} gave no tensor")
            return results

        results = _core.checkpoint([every[place] for place in places], call, keep, names)
        return structure.unflatten(results)  # type: ignore[no-any-return]

    return wrapped
