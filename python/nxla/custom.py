"""Functions with custom derivative rules."""

from __future__ import annotations

import functools
import threading
from types import MethodType

from nxla import _core, _hints, _pickling, tree
from nxla._arguments import name_of, names_of, signature_of
from nxla._values import (
    arrays_to_tensors,
    call_as,
    index_list,
    keeps_structure,
    new_tensors,
    require_callable,
)
from nxla.errors import ArgumentError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from inspect import Signature
    from typing import Any, Concatenate, ParamSpec, Protocol, Self, TypeVar, overload

    from nxla._core import Tensor
    from nxla._types import TensorLike

    F = TypeVar("F", bound=Callable[..., Any])
    P = ParamSpec("P")
    Q = ParamSpec("Q")
    R = TypeVar("R")
    R_co = TypeVar("R_co", covariant=True)
    T = TypeVar("T")

    class CustomFunction(Protocol[P, R_co]):
        """A function with a custom derivative."""

        __name__: str

        @property
        def __wrapped__(self) -> Callable[P, R_co]: ...
        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
        @overload
        def __get__(self, instance: None, owner: type | None = None, /) -> Self: ...
        @overload
        def __get__(
            self: CustomFunction[Concatenate[T, Q], R_co], instance: T, owner: type | None = None, /
        ) -> Callable[Q, R_co]: ...

    class CustomJvp(CustomFunction[P, R_co], Protocol[P, R_co]):
        """The return value of `custom_jvp`."""

        def defjvp(self, rule: F, /) -> F: ...

    class CustomVjp(CustomFunction[P, R_co], Protocol[P, R_co]):
        """The return value of `custom_vjp`."""

        def defvjp(
            self,
            forward: Callable[..., tuple[Any, Any]],
            backward: Callable[..., tuple[Any, ...]],
            /,
        ) -> None: ...


__all__ = ["custom_grad", "custom_jvp", "custom_vjp", "stop_grad"]


@keeps_structure
def stop_grad(x: Any, /) -> Any:
    """Return the value unchanged; its gradient is zero.

    Parameters
    ----------
    x : tensor_like or container
        The value that counts as a constant for gradients.

    Returns
    -------
    Tensor or container
        The value, with tensors for numbers and arrays.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.grad(lambda x: x * nx.stop_grad(x))(3.0).item()
    3.0
    """
    return tree.map(_core.stop_grad, x)


@keeps_structure
def custom_grad(value: Any, inputs: Any, rule: Callable[[Any], Any], /) -> Any:
    """Return a value with a custom derivative.

    Parameters
    ----------
    value : tensor or container
        The computed value.
    inputs : tensor or container
        The values from which it was computed. Other values in its computation count as constants.
    rule : callable
        A function from the cotangents of `value`, in its structure, to the cotangents of `inputs`,
        in their structure. It may use any other value of the trace.

    Returns
    -------
    tensor or container
        The value.

    Raises
    ------
    ArgumentError
        If the rule does not return one cotangent for each input.

    Examples
    --------
    >>> import nxla as nx
    >>> def clipped(x):
    ...     return nx.custom_grad(x, x, lambda g: nx.clip(g, -1.0, 1.0))
    >>> nx.grad(lambda x: 10.0 * clipped(x))(2.0).item()
    1.0
    """
    require_callable("custom_grad", "rule", rule)
    if not _core.is_tracing():
        return new_tensors(value)
    leaves, structure = tree.flatten(value)
    input_leaves, input_structure = tree.flatten(inputs)

    def flat_rule(cotangents: list[Tensor]) -> list[TensorLike]:
        answer, answer_structure = tree.flatten(rule(structure.unflatten(cotangents)))
        if answer_structure != input_structure:
            raise ArgumentError(
                f"custom_grad: rule: result must have the structure of inputs, {input_structure}; "
                f"got {answer_structure}"
            )
        return answer

    return structure.unflatten(_core.custom_grad(leaves, input_leaves, flat_rule))


class _Running(threading.local):
    """The number of running rules of a thread."""

    rules = 0
    #: The number of derivatives around the outermost rule.
    derivatives = 0


#: The running rules of all functions.
_all_running = _Running()


class _Custom:
    """A function with arguments that are not differentiated."""

    #: The public function that made the object, and the method that sets its rule, for errors.
    _derivative: str
    _setter: str

    __call__: Callable[..., Any]

    def __init__(
        self, function: Callable[..., Any], nondiff_argnums: int | str | Iterable[int | str]
    ) -> None:
        require_callable(self._derivative, "function", function)
        self._function = function
        #: Positions and names of the arguments that are not differentiated.
        self._constant: list[int | str] = index_list(
            self._derivative, "nondiff_argnums", nondiff_argnums
        )
        #: The number of running rules of this function on each thread.
        self._running = _Running()
        self.__name__ = name_of(function)
        self.__qualname__ = getattr(function, "__qualname__", self.__name__)
        self.__module__ = getattr(function, "__module__", None) or ""
        self.__doc__ = getattr(function, "__doc__", None)
        self.__wrapped__ = function

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Return the import path of the function, or its parts; copies are the function itself."""
        if path := _pickling.import_path(self):
            return path
        rules = {name: vars(self)[name] for name in ("_rule", "_rules") if name in vars(self)}
        return type(self), (self._function, self._constant), rules

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any], /) -> Self:
        return self

    def __get__(self, instance: Any, owner: type | None = None, /) -> Any:
        """Return the function as a method, whose first argument is the instance."""
        return self if instance is None else MethodType(self, instance)

    @functools.cached_property
    def _signature(self) -> Signature | None:
        return signature_of(self._function)

    def _arguments(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """Return all arguments of a call, the constant ones and the differentiated ones.

        Arrays among the differentiated arguments become tensors.
        """
        every = list(self._positional(args, kwargs))
        constant = sorted({self._position(which, every) for which in self._constant})
        moving = [at for at in range(len(every)) if at not in constant]
        for at in moving:
            every[at] = arrays_to_tensors(every[at])
        return every, [every[at] for at in constant], [every[at] for at in moving]

    def _positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Return all arguments of a call by position, as rules receive them."""
        if self._signature is None and not kwargs:
            return args
        try:
            if self._signature is None:
                raise TypeError("a function without a signature must not have keyword arguments")
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise ArgumentError(f"{self._derivative}: {self.__name__}: {error}") from None
        bound.apply_defaults()
        unplaced = [name for name in bound.kwargs if name in kwargs]
        if unplaced:
            raise ArgumentError(
                f"{self._derivative}: function: {self.__name__} must not have keyword-only "
                f"arguments; got {', '.join(map(repr, unplaced))}"
            )
        return bound.args

    def _position(self, which: int | str, args: list[Any]) -> int:
        if isinstance(which, int):
            if not 0 <= which < len(args):
                raise ArgumentError(
                    f"{self._derivative}: nondiff_argnums: must be from 0 to {len(args) - 1}, the "
                    f"positions of the arguments of {self.__name__}; got {which}"
                )
            return which
        names = [name for name, _ in names_of(self._function, len(args))]
        if which not in names:
            raise ArgumentError(
                f"{self._derivative}: nondiff_argnums: must be arguments of {self.__name__} "
                f"({', '.join(names)}); got {which!r}"
            )
        return names.index(which)

    def _is_plain(self) -> bool:
        """Return whether a call runs the function without its rule.

        Rules are traced at the call, so the trace of a rule that calls its function must end. Each
        rule around a call takes the place of one derivative, and a value that is not
        differentiated again needs no rule.
        """
        if not _core.is_tracing():
            return True
        return self._running.rules > 0 and _all_running.rules >= _all_running.derivatives

    def _run_rule(self, rule: Callable[..., Any], *args: Any) -> Any:
        """Run a rule, which may call the function."""
        if _all_running.rules == 0:
            _all_running.derivatives = _core.derivative_depth()
        self._running.rules += 1
        _all_running.rules += 1
        try:
            return rule(*args)
        finally:
            self._running.rules -= 1
            _all_running.rules -= 1

    def _missing_rule(self) -> ArgumentError:
        """Return the error of a call without a rule."""
        return ArgumentError(
            f"{self._derivative}: {self.__name__} must have a rule; set it with `{self._setter}`"
        )


class _CustomJvp(_Custom):
    """The return value of `custom_jvp`."""

    _derivative, _setter = "custom_jvp", "defjvp"

    _rule: Callable[..., Any] | None = None

    def defjvp(self, rule: Callable[..., Any], /) -> Callable[..., Any]:
        """Set the rule and return it."""
        require_callable("defjvp", "rule", rule)
        self._rule = rule
        return rule

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._rule is None:
            raise self._missing_rule()
        every, constant, moving = self._arguments(args, kwargs)
        value = self._function(*every)
        if self._is_plain():
            return new_tensors(value)
        rule = self._rule
        leaves, structure = tree.flatten(value)
        input_leaves, input_structure = tree.flatten(moving)

        def flat_rule(tangents: list[Any]) -> list[Any]:
            given = tuple(input_structure.unflatten(tangents))
            answer = self._run_rule(rule, *constant, tuple(moving), given)
            changes, found = tree.flatten(answer)
            if found != structure:
                # A rule of JAX returns the pair of the value and the tangent.
                is_pair = found == tree.flatten((value, value))[1]
                cure = "; return the tangent alone, without the value" if is_pair else ""
                raise ArgumentError(
                    f"custom_jvp: rule: tangents of {self.__name__} must have the structure "
                    f"{structure}; got {found}{cure}"
                )
            return changes

        return structure.unflatten(_core.custom_jvp(leaves, input_leaves, flat_rule))


class _CustomVjp(_Custom):
    """The return value of `custom_vjp`."""

    _derivative, _setter = "custom_vjp", "defvjp"

    _rules: tuple[Callable[..., Any], Callable[..., Any]] | None = None

    def defvjp(self, forward: Callable[..., Any], backward: Callable[..., Any], /) -> None:
        """Set the forward and the backward rule."""
        require_callable("defvjp", "forward", forward)
        require_callable("defvjp", "backward", backward)
        self._rules = (forward, backward)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._rules is None:
            raise self._missing_rule()
        every, constant, moving = self._arguments(args, kwargs)
        if self._is_plain():
            return new_tensors(self._function(*every))
        forward, backward = self._rules
        # Otherwise only a later derivative of the traced program needs the residuals.
        is_differentiated = _core.derivative_depth() > 0
        value, residuals = (
            self._run_forward(forward, every)
            if is_differentiated
            else (self._function(*every), None)
        )

        def rule(cotangents: Any) -> Any:
            known = residuals if is_differentiated else self._run_forward(forward, every)[1]
            found = self._run_rule(backward, *constant, known, cotangents)
            if not isinstance(found, tuple) or len(found) != len(moving):
                kind = type(found).__name__
                count = f"{len(found)}" if isinstance(found, tuple) else f"a value of type {kind}"
                raise ArgumentError(
                    f"custom_vjp: backward rule: {self.__name__} must return a tuple with a "
                    f"cotangent for each of its {len(moving)} arguments; got {count}"
                )
            for argument, cotangent in zip(moving, found, strict=True):
                expected, got = tree.flatten(argument)[1], tree.flatten(cotangent)[1]
                if got != expected:
                    raise ArgumentError(
                        f"custom_vjp: backward rule: cotangents of {self.__name__} must have the "
                        f"structure of the arguments, {expected}; got {got}; pass nx.zeros_like "
                        "for an argument without a gradient, or set nondiff_argnums"
                    )
            return found

        return call_as("custom_vjp", custom_grad, value, tuple(moving), rule)

    def _run_forward(self, forward: Callable[..., Any], arguments: list[Any]) -> tuple[Any, Any]:
        """Return the result and the residuals of the forward rule."""
        answer = self._run_rule(forward, *arguments)
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise ArgumentError(
                f"custom_vjp: forward rule: {self.__name__} must return (result, residuals)"
            )
        return answer


if TYPE_CHECKING:

    @overload
    def custom_jvp(
        function: Callable[P, R], /, *, nondiff_argnums: int | str | Iterable[int | str] = ()
    ) -> CustomJvp[P, R]: ...

    @overload
    def custom_jvp(
        *, nondiff_argnums: int | str | Iterable[int | str] = ()
    ) -> Callable[[Callable[P, R]], CustomJvp[P, R]]: ...


def custom_jvp(
    function: Callable[..., Any] | None = None,
    /,
    *,
    nondiff_argnums: int | str | Iterable[int | str] = (),
) -> Any:
    """Return a function with a custom forward-mode rule.

    Parameters
    ----------
    function : callable
        Its arguments can be passed by position. Rules receive all arguments by position, including
        keyword arguments and defaults. If `function` is omitted, the result is a decorator.
    nondiff_argnums : int or str, or an iterable of them
        Positions or names of arguments that are not differentiated. They may have any type, such
        as functions.

    Returns
    -------
    callable
        It is called like `function`. Values that `function` uses but does not receive as arguments
        count as constants: their derivative is zero. Its method ``defjvp`` sets the rule. The rule
        receives the arguments that are not differentiated, a tuple of the other arguments, and a
        tuple of their tangents; it returns the tangent of the result, in its structure. The rule
        must be linear in the tangents, because gradients transpose it. The rule may call the
        function; higher derivatives of the call use the rule again.

    Raises
    ------
    ArgumentError
        If an argument with this position or name does not exist, if an argument is keyword-only, or
        if the rule returns another number of tangents than results, or one that does not broadcast
        to the shape of its result.

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
        return lambda function: _CustomJvp(function, nondiff_argnums)
    return _CustomJvp(function, nondiff_argnums)


if TYPE_CHECKING:

    @overload
    def custom_vjp(
        function: Callable[P, R], /, *, nondiff_argnums: int | str | Iterable[int | str] = ()
    ) -> CustomVjp[P, R]: ...

    @overload
    def custom_vjp(
        *, nondiff_argnums: int | str | Iterable[int | str] = ()
    ) -> Callable[[Callable[P, R]], CustomVjp[P, R]]: ...


def custom_vjp(
    function: Callable[..., Any] | None = None,
    /,
    *,
    nondiff_argnums: int | str | Iterable[int | str] = (),
) -> Any:
    """Return a function with a custom reverse-mode rule.

    Parameters
    ----------
    function : callable
        Its arguments can be passed by position. Rules receive all arguments by position, including
        keyword arguments and defaults. If `function` is omitted, the result is a decorator.
    nondiff_argnums : int or str, or an iterable of them
        Positions or names of arguments that are not differentiated. They may have any type, such
        as functions.

    Returns
    -------
    callable
        It is called like `function`. Values that `function` uses but does not receive as arguments
        count as constants: their derivative is zero. Its method ``defvjp`` sets two rules. The
        forward rule receives all arguments, and returns the result and the residuals. The backward
        rule receives the arguments that are not differentiated, the residuals, and the cotangents
        of the result; it returns a tuple with one cotangent for each of the other arguments. Both
        rules may call the function; higher derivatives of the call use the rules again. A call that
        is not differentiated runs `function` instead of the forward rule.

    Raises
    ------
    ArgumentError
        If an argument with this position or name does not exist, if an argument is keyword-only, or
        if the backward rule returns another number of cotangents than arguments, or one that does
        not broadcast to the shape of its argument.

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
        return lambda function: _CustomVjp(function, nondiff_argnums)
    return _CustomVjp(function, nondiff_argnums)


_hints.install(globals())
