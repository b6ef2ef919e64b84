"""Gradients of functions and of calls."""

from __future__ import annotations

from nxla import _core, _hints, tree
from nxla._arguments import SelectedArguments, name_of, split_aux
from nxla._spec import derived_function, spec_of
from nxla._values import as_bool, require_callable
from nxla.errors import ArgumentError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, overload

    from nxla._arguments import Argument
    from nxla._core import Function, Tensor
    from nxla._types import TensorLike

    P = ParamSpec("P")
    R = TypeVar("R")
    A = TypeVar("A")
    B = TypeVar("B")
    X = TypeVar("X")

__all__ = ["grad", "safe_where", "value_and_grad"]

if TYPE_CHECKING:
    # The gradient of a scalar is a tensor, and the gradient of a container has its structure. Types
    # that a type checker cannot infer are `Any`.

    @overload
    def grad(variables: A, function: Callable[[A], Any], /) -> A: ...

    @overload
    def grad(
        function: Callable[Concatenate[complex, P], Any],
        /,
        argnums: Literal[0] = 0,
        has_aux: Literal[False] = False,
    ) -> Function[Concatenate[TensorLike, P], Tensor]: ...

    @overload
    def grad(
        function: Callable[Concatenate[A, P], Any],
        /,
        argnums: Literal[0] = 0,
        has_aux: Literal[False] = False,
    ) -> Function[Concatenate[A, P], A]: ...

    @overload
    def grad(
        function: Callable[Concatenate[A, B, P], Any],
        /,
        argnums: Literal[1],
        has_aux: Literal[False] = False,
    ) -> Function[Concatenate[A, B, P], B]: ...

    @overload
    def grad(
        function: Callable[Concatenate[A, B, P], Any],
        /,
        argnums: tuple[Literal[0], Literal[1]],
        has_aux: Literal[False] = False,
    ) -> Function[Concatenate[A, B, P], tuple[A, B]]: ...

    @overload
    def grad(
        function: Callable[Concatenate[A, P], tuple[Any, X]],
        /,
        argnums: Literal[0] = 0,
        *,
        has_aux: Literal[True],
    ) -> Function[Concatenate[A, P], tuple[A, X]]: ...

    @overload
    def grad(
        function: Callable[P, Any],
        /,
        argnums: Argument | Sequence[Argument] = 0,
        has_aux: bool = False,
    ) -> Function[P, Any]: ...


def grad(function: Any, /, argnums: Any = 0, has_aux: bool = False) -> Any:
    """Return a function that computes the gradient of the sum of another function's result.

    A result that is not a scalar is summed, as in Nx; JAX and PyTorch raise an error. State the sum
    with `nxla.sum`, or use `nxla.vjp` for other weights and `nxla.jacobian` for all derivatives. An
    integer argument counts as a float, and its gradient is at least ``f32``.

    ``grad(function, argnums)`` is a function; ``grad(variables, function)`` is the gradient of
    ``function(variables)``.

    Parameters
    ----------
    function : callable
        A function that returns one tensor.
    argnums : int or str, or a sequence of them
        The differentiated arguments: a positional argument by its position, any argument by its
        name, or a part of one by its path, such as ``"params['w']"`` or ``"state.velocity"``.
        Arguments may be containers. A sequence must not select a tensor twice.
    has_aux : bool
        If True, `function` returns ``(value, aux)``; only the value is differentiated.

    Returns
    -------
    Function or container
        A function that returns the gradient in the structure of the argument, or a tuple of
        gradients if `argnums` is a sequence; with `has_aux` it returns ``(gradient, aux)``. It runs
        compiled, and becomes part of the trace inside another jitted function. Unless `function`
        is jitted, it is traced in every call and sees the current values of captured variables;
        `nxla.jit` of the gradient is traced once. For a call: the gradient, in the structure of
        the variables.

    Raises
    ------
    GradientError
        If an operation has no derivative.
    ArgumentError
        If `argnums` is not an argument or selects a tensor twice, or if the value of real arguments
        is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.grad(lambda x: x**3)(2.0).item()
    12.0
    >>> loss = lambda params, x: nx.sum((x * params["w"] + params["b"]) ** 2)
    >>> params = {"w": 1.0, "b": 0.0}
    >>> nx.grad(loss)(params, nx.tensor([1.0, 2.0]))["w"].item()
    10.0
    >>> nx.grad(loss, "params['b']")(params, nx.tensor([1.0, 2.0])).item()
    6.0
    >>> nx.grad(params, lambda params: loss(params, nx.tensor([1.0, 2.0])))["w"].item()
    10.0
    """
    if callable(argnums):
        variables, called = function, argnums
        return grad(called, 0, has_aux)(variables)
    spec = spec_of(function, "grad")

    def gradient(*args: Any, **kwargs: Any) -> Any:
        result, gradients = _differentiate(
            "grad", spec.function, argnums, has_aux, None, args, kwargs
        )
        return (gradients, result[1]) if has_aux else gradients

    return derived_function(gradient, spec)


if TYPE_CHECKING:

    @overload
    def value_and_grad(
        variables: A,
        function: Callable[[A], R],
        transform: Callable[[R], Any] | None = None,
        /,
    ) -> tuple[R, A]: ...

    @overload
    def value_and_grad(
        function: Callable[Concatenate[complex, P], R],
        /,
        argnums: Literal[0] = 0,
        has_aux: bool = False,
        *,
        transform: Callable[[R], Any] | None = None,
    ) -> Function[Concatenate[TensorLike, P], tuple[R, Tensor]]: ...

    @overload
    def value_and_grad(
        function: Callable[Concatenate[A, P], R],
        /,
        argnums: Literal[0] = 0,
        has_aux: bool = False,
        *,
        transform: Callable[[R], Any] | None = None,
    ) -> Function[Concatenate[A, P], tuple[R, A]]: ...

    @overload
    def value_and_grad(
        function: Callable[Concatenate[A, B, P], R],
        /,
        argnums: Literal[1],
        has_aux: bool = False,
        *,
        transform: Callable[[R], Any] | None = None,
    ) -> Function[Concatenate[A, B, P], tuple[R, B]]: ...

    @overload
    def value_and_grad(
        function: Callable[Concatenate[A, B, P], R],
        /,
        argnums: tuple[Literal[0], Literal[1]],
        has_aux: bool = False,
        *,
        transform: Callable[[R], Any] | None = None,
    ) -> Function[Concatenate[A, B, P], tuple[R, tuple[A, B]]]: ...

    @overload
    def value_and_grad(
        function: Callable[P, R],
        /,
        argnums: Argument | Sequence[Argument] = 0,
        has_aux: bool = False,
        *,
        transform: Callable[[R], Any] | None = None,
    ) -> Function[P, tuple[R, Any]]: ...


def value_and_grad(
    function: Any, /, argnums: Any = 0, has_aux: Any = False, *, transform: Any = None
) -> Any:
    """Return a function that computes result and gradient of another function, or compute both.

    ``value_and_grad(function, argnums)`` is a function. ``value_and_grad(variables, function,
    transform)`` returns result and gradient of ``function(variables)``.

    Parameters
    ----------
    function, argnums, has_aux
        As for `grad`.
    transform : callable, optional
        A function from the result of `function` to the value that is differentiated.

    Returns
    -------
    Function or tuple
        A function that returns ``(result, gradient)``; with `has_aux` the result is
        ``(value, aux)``. For a call: the tuple itself.

    Examples
    --------
    >>> import nxla as nx
    >>> value, gradient = nx.value_and_grad(lambda x, y: x * y, argnums=(0, 1))(2.0, 3.0)
    >>> value.item(), [g.item() for g in gradient]
    (6.0, [3.0, 2.0])
    >>> model = lambda w: {"guess": w * 2.0, "loss": (w * 2.0 - 1.0) ** 2}
    >>> found, gradient = nx.value_and_grad(3.0, model, lambda found: found["loss"])
    >>> found["guess"].item(), found["loss"].item(), gradient.item()
    (6.0, 25.0, 20.0)
    """
    if callable(argnums):
        variables, called = function, argnums
        if callable(has_aux):
            has_aux, transform = False, has_aux
        return value_and_grad(called, 0, has_aux, transform=transform)(variables)
    if transform is not None and (has_aux or not callable(transform)):
        raise ArgumentError(
            "value_and_grad: transform: must be a function of the result, without has_aux"
        )
    spec = spec_of(function, "value_and_grad")

    def both(*args: Any, **kwargs: Any) -> Any:
        return _differentiate(
            "value_and_grad", spec.function, argnums, has_aux, transform, args, kwargs
        )

    return derived_function(both, spec)


def _differentiate(
    derivative: str,
    function: Callable[..., Any],
    argnums: Argument | Sequence[Argument],
    has_aux: bool,
    transform: Callable[[Any], Any] | None,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> tuple[Any, Any]:
    """Call a function with tracers for some arguments; return its result and the gradients."""
    name = name_of(function)
    has_aux = as_bool(derivative, "has_aux", has_aux)
    selected = SelectedArguments(derivative, function, argnums, args, kwargs)
    called = selected.call(function)
    if not (selected.leaves or selected.is_empty()):
        raise ArgumentError(f"{derivative}: argnums: arguments of {name} must contain a tensor")
    output_structure = selected.structure

    def call(tracers: list[Any]) -> tuple[Any, list[Any]]:
        nonlocal output_structure
        result = value = called(tracers)
        if has_aux:
            value, _ = split_aux(derivative, name, result)
        if transform is not None:
            value = transform(result)
        outputs, output_structure = tree.flatten(result)
        return value, outputs

    if not selected.leaves:
        _, results = call([])
        return output_structure.unflatten(results), selected.structure.unflatten([])
    results, gradients = _core.values_and_grads(selected.leaves, call)
    return output_structure.unflatten(results), selected.structure.unflatten(gradients)


def safe_where(
    condition: TensorLike,
    function: Callable[[Any], TensorLike],
    x: TensorLike,
    otherwise: TensorLike = 0.0,
    /,
    *,
    inside: TensorLike = 1.0,
) -> Tensor:
    """Return ``function(x)`` where a condition holds, with a finite gradient elsewhere.

    ``where(condition, function(x), otherwise)`` has the gradient NaN where `function` has an
    infinite slope, even if the value is not selected: the slope is multiplied by 0. `safe_where`
    calls the function with `inside` there.

    Parameters
    ----------
    condition : tensor_like
        The condition under which the function is defined.
    function : callable
        A function of a tensor with the broadcast shape of `x` and `condition`.
    x : tensor_like
        The argument.
    otherwise : tensor_like
        The result where the condition does not hold.
    inside : tensor_like
        An argument at which the function is smooth.

    Returns
    -------
    Tensor
        The values of `function` where `condition` holds, else `otherwise`.

    Examples
    --------
    >>> import nxla as nx
    >>> root = lambda x: nx.safe_where(x > 0, nx.sqrt, x)
    >>> nx.grad(lambda x: nx.sum(root(x)))(nx.tensor([0.0, 4.0])).tolist()
    [0.0, 0.25]
    """
    require_callable("safe_where", "function", function)
    harmless = _core.where(condition, x, inside)
    return _core.where(condition, function(harmless), otherwise)


_hints.install(globals())
