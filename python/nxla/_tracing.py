"""Types of results without running, and names of the parts of a traced function."""

from __future__ import annotations

from contextlib import ContextDecorator
from typing import Self

from nxla import _core, _hints
from nxla._values import require_callable
from nxla.errors import ArgumentError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any

__all__ = ["eval_shape", "named_scope"]


def eval_shape(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Return the dtypes and shapes of the results of a call, without computing them.

    Parameters
    ----------
    function : callable
        A function of tensors and containers.
    *args, **kwargs
        The arguments; templates stand for tensors.

    Returns
    -------
    Template or container
        A template for each tensor of the result, in its containers.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.eval_shape(lambda w, x: {"y": x @ w}, nx.template((3, 4)), nx.template((2, 3)))
    {'y': f32[2][4]}
    """
    from nxla.transform import debug_expr

    require_callable("eval_shape", "function", function)
    expression = debug_expr(function)(*args, **kwargs)
    templates: list[Any] = []
    for node, (shape, dtype) in zip(expression.output_nodes, expression.outputs, strict=True):
        names = node.names if any(name is not None for name in node.names) else None
        templates.append(_core.Template(shape, dtype, names))
    return expression.arrange(templates)


class named_scope(ContextDecorator):  # noqa: N801  # called like a function
    """Name the operations that a block of code traces.

    Nested scopes form a path: ``node.scope`` is ``"encoder/layer_0"``. `nxla.view` groups nodes by
    scope, and profiles of XLA show it. The name has no influence on the program or its digest.
    Outside a traced function it has no effect.

    Parameters
    ----------
    name : str
        The name, without a slash.

    Raises
    ------
    ArgumentError
        If the name is empty or contains a slash.

    Examples
    --------
    >>> import nxla as nx
    >>> def model(x):
    ...     with nx.named_scope("encoder"):
    ...         return nx.tanh(x)
    >>> expression = nx.debug_expr(model)(1.0)
    >>> [(node.op, node.scope) for node in expression.nodes]
    [('parameter', None), ('tanh', 'encoder')]

    It is also a decorator:

    >>> @nx.named_scope("decoder")
    ... def decode(x):
    ...     return nx.exp(x)
    >>> nx.debug_expr(decode)(1.0).nodes[1].scope
    'decoder'
    """

    def __init__(self, name: str, /) -> None:
        if not isinstance(name, str) or not name or "/" in name:
            raise ArgumentError(
                f"named_scope: name: must be a nonempty string without a slash; got {name!r}"
            )
        # One decorator object serves all calls on all threads, so it has no state.
        self._name = name

    def __enter__(self) -> Self:
        if _core.is_tracing():
            _core.enter_scope(self._name)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if _core.is_tracing():
            _core.exit_scope()


_hints.install(globals())
