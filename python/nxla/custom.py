"""Derivatives of one's own, in place of those of an expression."""

from __future__ import annotations

import threading

from nxla import _core, tree
from nxla._arguments import name_of
from nxla.errors import ArgumentError
from nxla.transform import custom_grad

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

__all__ = ["custom_jvp", "custom_vjp"]


class _Custom:
    """A function that is called with some arguments that are not differentiated."""

    def __init__(
        self, function: Callable[..., Any], derivative: str, nondiff_argnums: Iterable[int]
    ) -> None:
        self._function = function
        self._derivative = derivative
        self._constant = sorted(set(nondiff_argnums))
        #: Whether a rule runs on this thread: a call in it is one of the function itself.
        self._rules_run = threading.local()
        self.__name__ = name_of(function)
        self.__doc__ = getattr(function, "__doc__", None)
        self.__wrapped__ = function

    def _split(self, args: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Return the arguments that are not differentiated, and those that are."""
        for position in self._constant:
            if not 0 <= position < len(args):
                raise ArgumentError(
                    f"{self._derivative}: {self.__name__} was called with {len(args)} positional "
                    f"arguments, nondiff_argnums names number {position}"
                )
        constant = [args[position] for position in self._constant]
        return constant, [x for at, x in enumerate(args) if at not in self._constant]

    def _is_plain(self) -> bool:
        """Tell whether a call is one of the function itself: no trace, or a rule of its own."""
        return not _core.is_tracing() or getattr(self._rules_run, "depth", 0) > 0

    def _run_rule(self, rule: Callable[..., Any], *args: Any) -> Any:
        """Run a rule, which may call the function."""
        self._rules_run.depth = getattr(self._rules_run, "depth", 0) + 1
        try:
            return rule(*args)
        finally:
            self._rules_run.depth -= 1

    def _missing(self) -> ArgumentError:
        return ArgumentError(
            f"{self._derivative}: {self.__name__} has no rule yet; give it one with "
            f"`{'defjvp' if self._derivative == 'custom_jvp' else 'defvjp'}`"
        )


class _CustomJvp(_Custom):
    """What `custom_jvp` gives."""

    _rule: Callable[..., Any] | None = None

    def defjvp(self, rule: Callable[..., Any], /) -> Callable[..., Any]:
        """Set the rule, and return it."""
        self._rule = rule
        return rule

    def __call__(self, *args: Any) -> Any:
        if self._rule is None:
            raise self._missing()
        value = self._function(*args)
        if self._is_plain():
            return value
        rule = self._rule
        constant, moving = self._split(args)
        leaves, structure = tree.flatten(value)
        input_leaves, input_structure = tree.flatten(moving)

        def flat_rule(tangents: list[Any]) -> list[Any]:
            given = tuple(input_structure.unflatten(tangents))
            answer = self._run_rule(rule, *constant, tuple(moving), given)
            changes, found = tree.flatten(answer)
            if found != structure:
                raise ArgumentError(
                    f"custom_jvp: the rule of {self.__name__} gave {found}, "
                    f"the result is {structure}"
                )
            return changes

        return structure.unflatten(_core.custom_jvp(leaves, input_leaves, flat_rule))


class _CustomVjp(_Custom):
    """What `custom_vjp` gives."""

    _rules: tuple[Callable[..., Any], Callable[..., Any]] | None = None

    def defvjp(self, forward: Callable[..., Any], backward: Callable[..., Any], /) -> None:
        """Set both rules."""
        self._rules = (forward, backward)

    def __call__(self, *args: Any) -> Any:
        if self._rules is None:
            raise self._missing()
        if self._is_plain():
            return self._function(*args)
        forward, backward = self._rules
        constant, moving = self._split(args)
        answer = self._run_rule(forward, *args)
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise ArgumentError(
                f"custom_vjp: the forward rule of {self.__name__} must give (result, residuals)"
            )
        value, residuals = answer

        def rule(cotangents: Any) -> Any:
            found = self._run_rule(backward, *constant, residuals, cotangents)
            if not isinstance(found, tuple) or len(found) != len(moving):
                count = len(found) if isinstance(found, tuple) else 1
                raise ArgumentError(
                    f"custom_vjp: the backward rule of {self.__name__} gave {count} cotangents "
                    f"for {len(moving)} arguments; it must give a tuple of one for each"
                )
            return found

        return custom_grad(value, tuple(moving), rule)


def custom_jvp(
    function: Callable[..., Any] | None = None, /, *, nondiff_argnums: Iterable[int] = ()
) -> Any:
    """Make a function with a derivative of one's own, that says how changes go on.

    Parameters
    ----------
    function : callable
        Takes positional arguments. Left out, the result is a decorator.
    nondiff_argnums : iterable of int
        Arguments that are not differentiated for. They may be anything, such as functions.

    Returns
    -------
    callable
        Is called as `function`. Its method ``defjvp`` sets the rule, which is called with the
        arguments that are not differentiated, then a tuple of the others, and a tuple of how these
        change; it gives how the result changes, in its structure. The rule must be linear in the
        changes: gradients are made of it too.

    Raises
    ------
    ArgumentError
        If the rule gives changes of another number or shape than the results.

    Examples
    --------
    >>> import nxla as nx
    >>> @nx.custom_jvp
    ... def log1pexp(x):
    ...     return nx.log1p(nx.exp(x))
    >>> @log1pexp.defjvp
    ... def rule(primals, tangents):
    ...     return tangents[0] * nx.sigmoid(primals[0])
    >>> nx.grad(log1pexp)(100.0).item()
    1.0
    """
    if function is None:
        return lambda function: _CustomJvp(function, "custom_jvp", nondiff_argnums)
    return _CustomJvp(function, "custom_jvp", nondiff_argnums)


def custom_vjp(
    function: Callable[..., Any] | None = None, /, *, nondiff_argnums: Iterable[int] = ()
) -> Any:
    """Make a function with a derivative of one's own, that says how cotangents go back.

    Parameters
    ----------
    function : callable
        Takes positional arguments. Left out, the result is a decorator.
    nondiff_argnums : iterable of int
        Arguments that are not differentiated for. They may be anything, such as functions.

    Returns
    -------
    callable
        Is called as `function`. Its method ``defvjp`` sets two rules. The forward rule takes all
        arguments, and gives the result and whatever the other one wants to know. The backward rule
        is called with the arguments that are not differentiated, then with that, and with the
        cotangents of the result; it gives a tuple of cotangents, one for each of the other
        arguments.

    Raises
    ------
    ArgumentError
        If the backward rule gives cotangents of another number or shape than the arguments.

    Examples
    --------
    >>> import nxla as nx
    >>> @nx.custom_vjp
    ... def clipped(x, limit):
    ...     return x
    >>> def forward(x, limit):
    ...     return x, limit
    >>> def backward(limit, cotangent):
    ...     return nx.clip(cotangent, -limit, limit), nx.zeros_like(limit)
    >>> clipped.defvjp(forward, backward)
    >>> nx.grad(lambda x: 10.0 * clipped(x, 2.0))(5.0).item()
    2.0
    """
    if function is None:
        return lambda function: _CustomVjp(function, "custom_vjp", nondiff_argnums)
    return _CustomVjp(function, "custom_vjp", nondiff_argnums)
