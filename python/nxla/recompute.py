"""Checkpoints: derivatives that recompute values instead of storing them."""

from __future__ import annotations

import functools
from collections.abc import Iterable

from nxla import _core, _hints, tree
from nxla._arguments import name_of
from nxla._values import arrays_to_tensors, as_list, new_tensors, require_callable
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
    function: Callable[P, R], /, policy: str | Sequence[str] | None = "nothing"
) -> Callable[P, R]:
    """Return a function whose derivative stores few values and recomputes the others.

    A gradient needs intermediate values of the function. By default they stay in memory until the
    reverse pass uses them. A checkpoint recomputes them, at the cost of one more pass over the
    function. Backends never merge a recomputed value with the original one.

    Parameters
    ----------
    function : callable
        A function of tensors, containers and other values. Tensors among the arguments and captured
        tensors are always stored.
    policy : str or sequence of str, optional
        The values that are stored besides the arguments: ``"nothing"`` or None; ``"products"``
        (matrix products and convolutions); the values with one of these notes (see `annotate`); or
        ``"everything"``. Values inside a loop are not stored individually: make a checkpoint of its
        body. A function with hooks stores nothing.

    Returns
    -------
    callable
        A function with the arguments and results of `function`. Its second derivative also stores
        only these values.

    Raises
    ------
    ArgumentError
        If the policy does not exist, or is not a string or a sequence of strings.

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
    if policy is None:
        policy = "nothing"
    if isinstance(policy, str) or not isinstance(policy, Iterable):
        keep, names = policy, []
        if policy not in _POLICIES:
            raise ArgumentError(
                "checkpoint: policy: must be 'nothing', 'products', 'everything' or a list of "
                f"notes; got {policy!r}"
            )
    else:
        keep, names = "named", as_list("checkpoint", "policy", policy)
        if not all(isinstance(name, str) for name in names):
            raise ArgumentError(f"checkpoint: policy: notes must be strings; got {names!r}")
    require_callable("checkpoint", "function", function)

    @_hints.with_hints
    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        every, around = tree.flatten(arrays_to_tensors((args, kwargs)))
        if not _core.is_tracing():
            own_args, own_kwargs = around.unflatten(every)
            return new_tensors(function(*own_args, **own_kwargs))  # type: ignore[no-any-return]
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
                raise ArgumentError(
                    f"checkpoint: function: {name_of(function)} must return a tensor"
                )
            return results

        results = _core.checkpoint([every[place] for place in places], call, keep, names)
        return structure.unflatten(results)  # type: ignore[no-any-return]

    return wrapped


_hints.install(globals())
